"""Layers that change shapes, rearrange elements, and upsample images and sequences.

Lives here: Flatten, Reshape, Permute, RepeatVector, Cropping1D ... 3D, ZeroPadding1D ... 3D, UpSampling1D ... 3D;
`resize` for both data formats.
Not here: merging (merge.py), resizing to a size (preprocessing.py), the interpolation methods (ops/image).
"""

from __future__ import annotations

import math as python_math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...ops import array
from ...ops.image import resize as resize_images
from ..layer_calls import InputSpec
from .configurable_layer import ConfigurableLayer, data_format_name, image_shape, size_pairs, sizes, spatial_sizes

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class Flatten(ConfigurableLayer):
    """Flattening to [batch, n]; data_format "channels_first" moves channels last before."""

    def __init__(self, data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._set_arguments(data_format=data_format_name(data_format))
        self.input_spec = InputSpec(min_ndim=1)
        self._build_at_init()

    def call(self, inputs: Any) -> Tensor:
        """Return the flattened inputs."""
        rank = inputs.shape.rank
        if rank is None:
            return array.reshape(inputs, array.stack([array.shape(inputs)[0], -1]))
        if self.data_format == "channels_first" and rank > 1:
            inputs = array.transpose(inputs, [0, *range(2, rank), 1])
        batch, size = self.compute_output_shape(tuple(inputs.shape))
        if batch is None and size is not None:
            return array.reshape(inputs, [-1, size])
        return array.reshape(inputs, [array.shape(inputs)[0] if batch is None else batch, -1 if size is None else size])

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, Any | None]:
        """Return [batch, product of the other sizes]."""
        sizes = tuple(input_shape[1:])
        return (input_shape[0], None if None in sizes else python_math.prod(sizes))


class Reshape(ConfigurableLayer):
    """Reshape to [batch, *target_shape]; one size may be -1, which is inferred.

    raises ValueError if the numbers of elements differ
    """

    def __init__(self, target_shape: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        target_shape = tuple(target_shape)
        if target_shape.count(-1) + target_shape.count(None) > 1:
            raise ValueError(
                f"There must be at most one unknown dimension (-1) in `target_shape`. Received: {target_shape}"
            )
        if any(d is not None and d < -1 for d in target_shape):
            raise ValueError(
                f"Each size of `target_shape` is a non-negative integer or -1. Received: target_shape={target_shape}"
            )
        self._set_arguments(target_shape=target_shape)
        self._build_at_init()

    def call(self, inputs: Any) -> Tensor:
        """Return the reshaped inputs."""
        batch = inputs.shape[0]
        target = self._resolved(tuple(inputs.shape)[1:])
        if batch is None and None not in target:
            return array.reshape(inputs, [-1, *target])
        batch = array.shape(inputs)[0] if batch is None else batch
        return array.reshape(inputs, [batch, *(-1 if d is None else d for d in target)])

    def _resolved(self, sizes: tuple[Any, ...]) -> tuple[Any, ...]:
        target = tuple(None if d == -1 else d for d in self.target_shape)
        if None in sizes:
            return target
        size, known_size = python_math.prod(sizes), python_math.prod(d for d in target if d is not None)
        fits = size == known_size if None not in target else known_size != 0 and size % known_size == 0
        if not fits:
            raise ValueError(
                "The total size of the tensor must be unchanged. Received: input_shape="
                f"{sizes}, target_shape={self.target_shape}"
            )
        return tuple(size // known_size if d is None else d for d in target)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return [batch, *target_shape]."""
        return (input_shape[0], *self._resolved(tuple(input_shape[1:])))


class Permute(ConfigurableLayer):
    """Permutation of dimensions. dims: a permutation of 1 ... rank - 1; the batch stays first."""

    def __init__(self, dims: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        dims = tuple(dims)
        if sorted(dims) != list(range(1, len(dims) + 1)):
            raise ValueError(
                "Invalid permutation argument `dims` for Permute Layer. The set of indices in `dims` "
                "must be "
                f"consecutive and start from 1. Received dims={dims}"
            )
        self._set_arguments(dims=dims)
        self.input_spec = InputSpec(ndim=len(dims) + 1)
        self._build_at_init()

    def call(self, inputs: Any) -> Tensor:
        """Return the transposed inputs."""
        return array.transpose(inputs, [0, *self.dims])

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the permuted sizes."""
        return (input_shape[0], *(input_shape[d] for d in self.dims))


class RepeatVector(ConfigurableLayer):
    """Repetition of [batch, features] to [batch, n, features]."""

    def __init__(self, n: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(n, int):
            raise TypeError(f"Expected an integer value for `n`, got {type(n)}.")
        if n < 1:
            raise ValueError(f"The argument `n` should be a positive integer. Received: n={n}")
        self._set_arguments(n=n)
        self.input_spec = InputSpec(ndim=2)
        self._build_at_init()

    def call(self, inputs: Any) -> Tensor:
        """Return the repeated inputs."""
        return array.tile(array.expand_dims(inputs, 1), [1, self.n, 1])

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, Any, Any]:
        """Return [batch, n, features]."""
        return (input_shape[0], self.n, input_shape[1])


class _Cropping(ConfigurableLayer):
    """Cropping of spatial dimensions.

    cropping: one integer, or for each dimension an integer or a pair (before, after).
    raises ValueError if nothing would remain
    """

    rank: int
    cropping: Any

    def _init(self, cropping: Any, data_format: Any) -> None:
        self._set_arguments(cropping=size_pairs(cropping, self.rank, "cropping"))
        self.data_format = data_format_name(data_format)
        if self.rank > 1:
            self._argument_names = (*self._argument_names, "data_format")
        self.input_spec = InputSpec(ndim=self.rank + 2)
        self._build_at_init()

    def call(self, inputs: Tensor) -> Tensor:
        """Crop the inputs."""
        self.compute_output_shape(tuple(inputs.shape))
        slices = tuple(slice(before, -after if after else None) for before, after in self.cropping)
        last = self.data_format == "channels_last"
        return inputs[(slice(None), *slices, slice(None)) if last else (slice(None), slice(None), *slices)]

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the output shape."""
        sizes = zip(spatial_sizes(input_shape, self.data_format), self.cropping)
        middle = [None if n is None else n - sum(c) for n, c in sizes]
        if any(n is not None and n <= 0 for n in middle):
            raise ValueError(
                "Values in `cropping` argument should be smaller than the corresponding spatial "
                "dimension of "
                f"the input. Received: input_shape={tuple(input_shape)}, "
                f"cropping={self.cropping}"
            )
        last = self.data_format == "channels_last"
        return image_shape(input_shape[0], middle, input_shape[-1 if last else 1], self.data_format)


class Cropping1D(_Cropping):
    __doc__ = _Cropping.__doc__
    rank = 1

    def __init__(self, cropping: Any = (1, 1), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init(cropping, "channels_last")
        self.cropping = self.cropping[0]

    def call(self, inputs: Tensor) -> Tensor:
        """Crop the inputs."""
        before, after = self.cropping
        self.compute_output_shape(tuple(inputs.shape))
        return inputs[:, before : -after if after else None, :]

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, Any | None, Any]:
        """Return the output shape."""
        size = None if input_shape[1] is None else input_shape[1] - sum(self.cropping)
        if size is not None and size <= 0:
            raise ValueError(
                "`cropping` parameter of `Cropping1D` layer must be smaller than the input length. "
                "Received: "
                f"input_shape={tuple(input_shape)}, cropping={self.cropping}"
            )
        return (input_shape[0], size, input_shape[2])


class Cropping2D(_Cropping):
    __doc__ = _Cropping.__doc__
    rank = 2

    def __init__(self, cropping: Any = ((0, 0), (0, 0)), data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init(cropping, data_format)


class Cropping3D(_Cropping):
    __doc__ = _Cropping.__doc__
    rank = 3

    def __init__(self, cropping: Any = ((1, 1), (1, 1), (1, 1)), data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init(cropping, data_format)


class _ZeroPadding(ConfigurableLayer):
    """Zero padding of spatial dimensions.

    padding: one integer, or for each dimension an integer or a pair (before, after).
    """

    rank: int
    padding: Any

    def _init(self, padding: Any, data_format: Any) -> None:
        self._set_arguments(
            padding=size_pairs(padding, self.rank, "padding"), data_format=data_format_name(data_format)
        )
        self.input_spec = InputSpec(ndim=self.rank + 2)
        self._build_at_init()

    def call(self, inputs: Any) -> Tensor:
        """Pad the inputs."""
        ends = [list(p) for p in self._pairs()]
        last = self.data_format == "channels_last"
        return array.pad(inputs, [[0, 0], *ends, [0, 0]] if last else [[0, 0], [0, 0], *ends])

    def _pairs(self) -> tuple[tuple[int, int], ...]:
        return self.padding if self.rank > 1 else (self.padding,)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the output shape."""
        sizes = zip(spatial_sizes(input_shape, self.data_format), self._pairs())
        middle = [None if n is None else n + sum(p) for n, p in sizes]
        last = self.data_format == "channels_last"
        return image_shape(input_shape[0], middle, input_shape[-1 if last else 1], self.data_format)


class ZeroPadding1D(_ZeroPadding):
    __doc__ = _ZeroPadding.__doc__
    rank = 1

    def __init__(self, padding: Any = 1, data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init(padding, data_format)
        self.padding = self.padding[0]


class ZeroPadding2D(_ZeroPadding):
    __doc__ = _ZeroPadding.__doc__
    rank = 2

    def __init__(self, padding: Any = (1, 1), data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init(padding, data_format)


class ZeroPadding3D(_ZeroPadding):
    __doc__ = _ZeroPadding.__doc__
    rank = 3

    def __init__(self, padding: Any = ((1, 1), (1, 1), (1, 1)), data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init(padding, data_format)


def check_interpolation(method: str, allowed: Sequence[str]) -> None:
    """Raise ValueError for an interpolation method that is not allowed."""
    if method not in allowed:
        raise ValueError(
            f"`interpolation` argument should be one of {', '.join(map(repr, allowed))}. Received: "
            f"interpolation={method!r}"
        )


def resize(x: Any, size: Sequence[Any], method: str, first: int, antialias: bool = False) -> Tensor:
    """Resize dimensions `first` and `first` + 1 of images; channels precede or follow them."""
    rank = x.shape.rank
    channels_first = first == rank - 2
    lead = range(first - 1)
    if channels_first:  # move the channels last, and back
        x = array.transpose(x, [*lead, first, first + 1, first - 1])
    y = array.cast(resize_images(x, list(size), method, antialias=antialias), x.dtype)
    return array.transpose(y, [*lead, rank - 1, first - 1, first]) if channels_first else y


class _UpSampling(ConfigurableLayer):
    """Repetition of each element `size` times along each spatial dimension."""

    rank: int

    def _init(self, size: Any, data_format: Any, **others: Any) -> None:
        self._set_arguments(size=sizes(size, self.rank, "size"), **others)
        self.data_format = data_format_name(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)
        self._build_at_init()

    def _repeat(self, x: Tensor) -> Tensor:
        first = 1 if self.data_format == "channels_last" else 2
        for axis, n in enumerate(self._factors(), first):
            x = array.repeat(x, n, axis=axis)
        return x

    def _factors(self) -> tuple[int, ...]:
        return self.size if isinstance(self.size, tuple) else (self.size,)

    def call(self, inputs: Tensor) -> Tensor:
        """Upsample the inputs."""
        return self._repeat(inputs)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the sizes multiplied by `size`."""
        sizes_ = zip(spatial_sizes(input_shape, self.data_format), self._factors())
        middle = [None if n is None else n * k for n, k in sizes_]
        last = self.data_format == "channels_last"
        return image_shape(input_shape[0], middle, input_shape[-1 if last else 1], self.data_format)


class UpSampling1D(_UpSampling):
    __doc__ = _UpSampling.__doc__
    rank = 1

    def __init__(self, size: int = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init(size, "channels_last")
        self.size = int(size)


class UpSampling2D(_UpSampling):
    """Upsampling of images. interpolation: "nearest", "bilinear", "bicubic", "lanczos3" or "lanczos5"."""

    rank = 2

    def __init__(
        self, size: Any = (2, 2), data_format: Any = None, interpolation: str = "nearest", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        interpolation = interpolation.lower()
        check_interpolation(interpolation, ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"))
        self._init(size, data_format, interpolation=interpolation)
        self._argument_names = (*self._argument_names, "data_format")

    def call(self, inputs: Tensor) -> Tensor:
        """Upsample the images."""
        if self.interpolation == "nearest":
            return self._repeat(inputs)
        first = 1 if self.data_format == "channels_last" else 2
        runtime_shape = array.shape(inputs)
        size = [
            (runtime_shape[first + i] if inputs.shape[first + i] is None else inputs.shape[first + i]) * k
            for i, k in enumerate(self.size)
        ]
        return resize(inputs, size, self.interpolation, first)


class UpSampling3D(_UpSampling):
    __doc__ = _UpSampling.__doc__
    rank = 3

    def __init__(self, size: Any = (2, 2, 2), data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init(size, data_format)
        self._argument_names = (*self._argument_names, "data_format")
