"""Layers that resize images and sequences.

Lives here: UpSampling1D ... 3D, Resizing; `resize` for both data formats.
Not here: the interpolation methods (ops/image).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...ops import array
from ...ops.image import resize as resize_images
from ..input_spec import InputSpec
from .configurable_layer import ConfigurableLayer, data_format_name, image_shape, sizes, spatial_sizes

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


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
    if channels_first:  # move the channels last, and back
        lead = list(range(first - 1))
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
        self.built = True

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


class Resizing(ConfigurableLayer):
    """Resizing of images to height x width.

    interpolation: "bilinear", "nearest", "bicubic", "lanczos3" or "lanczos5". crop_to_aspect_ratio: crop instead of
    distorting. pad_to_aspect_ratio: pad with fill_value instead. antialias: average over the area of a new pixel.
    inputs: [batch, height, width, channels] or without batch, or channels first by data_format.
    raises ValueError for both crop and pad
    """

    def __init__(
        self,
        height: int,
        width: int,
        interpolation: str = "bilinear",
        crop_to_aspect_ratio: bool = False,
        pad_to_aspect_ratio: bool = False,
        fill_mode: str = "constant",
        fill_value: float = 0.0,
        antialias: bool = False,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if crop_to_aspect_ratio and pad_to_aspect_ratio:
            raise ValueError("Only one of `crop_to_aspect_ratio` & `pad_to_aspect_ratio` can be set to `True`.")
        if fill_mode != "constant":
            raise ValueError(f"Only fill_mode='constant' is supported by Resizing. Received: fill_mode={fill_mode}")
        check_interpolation(interpolation.lower(), ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5"))
        self._set_arguments(locals(), interpolation=interpolation.lower(), data_format=data_format_name(data_format))
        self.built = True

    def _first(self, rank: int) -> int:
        return rank - 3 if self.data_format == "channels_last" else rank - 2

    def call(self, inputs: Any) -> Tensor:
        """Resize the images."""
        first = self._first(inputs.shape.rank)
        x = array.cast(inputs, self.compute_dtype)
        if self.crop_to_aspect_ratio or self.pad_to_aspect_ratio:
            x = self._fit_aspect_ratio(x, first)
        return resize(x, [self.height, self.width], self.interpolation, first, self.antialias)

    def _fit_aspect_ratio(self, x: Any, first: int) -> Any:
        height, width = x.shape[first], x.shape[first + 1]
        if height is None or width is None:
            raise ValueError(f"Resizing to an aspect ratio needs known sizes of the image; found {x.shape}")
        if self.crop_to_aspect_ratio:
            rows = min(height, int(float(width * self.height) / self.width))
            columns = min(width, int(float(height * self.width) / self.height))
            top, left = int((height - rows) / 2), int((width - columns) / 2)
            before = (slice(None),) * first
            return x[(*before, slice(top, top + rows), slice(left, left + columns))]
        rows = max(height, int(float(width * self.height) / self.width))
        columns = max(width, int(float(height * self.width) / self.height))
        ends = [[0, 0] for _ in range(x.shape.rank)]
        for axis, (size, target) in zip((first, first + 1), ((height, rows), (width, columns))):
            ends[axis] = [(target - size) // 2] * 2  # equal on both sides: an odd pixel is dropped
        return array.pad(x, ends, constant_values=self.fill_value)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the input shape with height and width replaced."""
        first = self._first(len(input_shape))
        return (*input_shape[:first], self.height, self.width, *input_shape[first + 2 :])
