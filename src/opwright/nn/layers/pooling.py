"""Pooling over windows, whole images, or a fixed number of parts.

Lives here: MaxPooling, AveragePooling, GlobalMaxPooling, GlobalAveragePooling, AdaptiveMaxPooling,
AdaptiveAveragePooling, each over one to three dimensions.  Not here: the operators (ops/nn/pooling.py).

Images are [batch, *spatial, channels], or with data_format "channels_first" [batch, channels, *spatial].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ops import array, math
from ...ops import nn as ops_nn
from ..layer_calls import InputSpec
from .configurable_layer import ConfigurableLayer, data_format_name, image_shape, padding_name, sizes, spatial_sizes
from .convolution import FORMATS, conv_output_size

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class _Pooling(ConfigurableLayer):
    """Pooling: the {what} of each window.

    pool_size: the window size, one integer or one per dimension. strides: by default pool_size. padding: "valid" or
    "same", whose padding does not count.
    """

    rank: int
    kind: str

    def __init__(
        self,
        pool_size: Any,
        strides: Any = None,
        padding: str = "valid",
        data_format: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        n = self.rank
        self._set_arguments(
            pool_size=sizes(pool_size, n, "pool_size"),
            strides=sizes(pool_size if strides is None else strides, n, "strides"),
            padding=padding_name(padding),
            data_format=data_format_name(data_format),
        )
        self.input_spec = InputSpec(ndim=n + 2)
        self._build_at_init()

    def call(self, inputs: Tensor) -> Tensor:
        """Apply the pooling."""
        return ops_nn.pool(
            inputs,
            list(self.pool_size),
            self.kind,
            list(self.strides),
            self.padding.upper(),
            FORMATS[self.rank, self.data_format],
        )

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the output shape. Raises ValueError if the window is larger than the image."""
        windows = zip(spatial_sizes(input_shape, self.data_format), self.pool_size, self.strides)
        middle = [conv_output_size(n, k, s, 1, self.padding) for n, k, s in windows]
        if any(n is not None and n <= 0 for n in middle):
            raise ValueError(
                f"Computed output size would be negative. Received: `inputs.shape={tuple(input_shape)}` "
                f"and "
                f"`pool_size={self.pool_size}`."
            )
        last = self.data_format == "channels_last"
        return image_shape(input_shape[0], middle, input_shape[-1 if last else 1], self.data_format)


class _Max(_Pooling):
    __doc__: str | None = (_Pooling.__doc__ or "").replace("{what}", "largest value")
    kind = "MAX"

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: str = "valid",
        data_format: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)


class _Average(_Pooling):
    __doc__: str | None = (_Pooling.__doc__ or "").replace("{what}", "mean")
    kind = "AVG"


class MaxPooling1D(_Max):
    __doc__ = _Max.__doc__
    rank = 1


class MaxPooling2D(_Max):
    __doc__ = _Max.__doc__
    rank = 2


class MaxPooling3D(_Max):
    __doc__ = _Max.__doc__
    rank = 3


class AveragePooling1D(_Average):
    __doc__ = _Average.__doc__
    rank = 1


class AveragePooling2D(_Average):
    __doc__ = _Average.__doc__
    rank = 2


class AveragePooling3D(_Average):
    __doc__ = _Average.__doc__
    rank = 3


class _Global(ConfigurableLayer):
    """Global pooling: the {what} of each channel, [batch, channels]; keepdims keeps spatial axes of size 1."""

    rank: int

    def __init__(self, data_format: Any = None, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._set_arguments(data_format=data_format_name(data_format), keepdims=keepdims)
        self.input_spec = InputSpec(ndim=self.rank + 2)
        self._build_at_init()

    @property
    def _axes(self) -> list[int]:
        first = 1 if self.data_format == "channels_last" else 2
        return list(range(first, first + self.rank))

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the output shape."""
        if self.keepdims:
            return tuple(1 if i in self._axes else d for i, d in enumerate(input_shape))
        return tuple(d for i, d in enumerate(input_shape) if i not in self._axes)


class _GlobalMax(_Global):
    def call(self, inputs: Any) -> Tensor:
        """Return the maxima."""
        return math.reduce_max(inputs, axis=self._axes, keepdims=self.keepdims)


class _GlobalAverage(_Global):
    def call(self, inputs: Any) -> Tensor:
        """Return the means."""
        return math.reduce_mean(inputs, axis=self._axes, keepdims=self.keepdims)


def _doc(what: str) -> str:
    return (_Global.__doc__ or "").replace("{what}", what)


class GlobalMaxPooling1D(_GlobalMax):
    __doc__ = _doc("largest value")
    rank = 1


class GlobalMaxPooling2D(_GlobalMax):
    __doc__ = _doc("largest value")
    rank = 2


class GlobalMaxPooling3D(_GlobalMax):
    __doc__ = _doc("largest value")
    rank = 3


class GlobalAveragePooling1D(_GlobalAverage):
    __doc__ = _doc("mean") + " Masked steps do not count."
    rank = 1

    def __init__(self, data_format: Any = None, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(data_format, keepdims, **kwargs)
        self.supports_masking = True

    def call(self, inputs: Any, mask: Any = None) -> Tensor:
        """Return the means over the unmasked steps. mask: [batch, steps]."""
        if mask is None:
            return super().call(inputs)
        unmasked = array.cast(array.expand_dims(mask, 2 if self.data_format == "channels_last" else 1), "bool")
        total = math.reduce_sum(
            array.where(unmasked, inputs, array.zeros_like(inputs)), axis=self._axes, keepdims=self.keepdims
        )
        return total / math.reduce_sum(array.cast(unmasked, inputs.dtype), axis=self._axes, keepdims=self.keepdims)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return None: the output has no steps."""
        return


class GlobalAveragePooling2D(_GlobalAverage):
    __doc__ = _doc("mean")
    rank = 2


class GlobalAveragePooling3D(_GlobalAverage):
    __doc__ = _doc("mean")
    rank = 3


def adaptive_pool(inputs: Tensor, output_size: tuple[int, ...], data_format: str, reduce: Any) -> Tensor:
    """Reduce each of output_size parts of images. Raises ValueError for images of unknown sizes."""
    first = 1 if data_format == "channels_last" else 2
    for axis, count in enumerate(output_size, first):
        size = inputs.shape[axis]
        if size is None:
            raise ValueError(f"Adaptive pooling needs known sizes of the image; found {inputs.shape}")
        before = (slice(None),) * axis
        parts = [inputs[(*before, slice(i * size // count, -(-(i + 1) * size // count)))] for i in range(count)]
        inputs = array.concat([reduce(p, axis=axis, keepdims=True) for p in parts], axis)
    return inputs


class _Adaptive(ConfigurableLayer):
    """Adaptive pooling: the {what} of each of output_size parts of an image.

    output_size: one integer or one per dimension. Part i of m along n values ranges from floor(i n / m) to
    ceil((i + 1) n / m). The input sizes must be known.
    """

    rank: int
    reduce: Any

    def __init__(self, output_size: Any, data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._set_arguments(
            output_size=sizes(output_size, self.rank, "output_size"), data_format=data_format_name(data_format)
        )
        self.input_spec = InputSpec(ndim=self.rank + 2)
        self._build_at_init()

    def call(self, inputs: Tensor) -> Tensor:
        """Apply the pooling."""
        return adaptive_pool(inputs, self.output_size, self.data_format, type(self).reduce)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the output shape."""
        last = self.data_format == "channels_last"
        return image_shape(input_shape[0], self.output_size, input_shape[-1 if last else 1], self.data_format)


class _AdaptiveMax(_Adaptive):
    __doc__: str | None = (_Adaptive.__doc__ or "").replace("{what}", "largest value")
    reduce = staticmethod(math.reduce_max)


class _AdaptiveAverage(_Adaptive):
    __doc__: str | None = (_Adaptive.__doc__ or "").replace("{what}", "mean")
    reduce = staticmethod(math.reduce_mean)


class AdaptiveMaxPooling1D(_AdaptiveMax):
    __doc__ = _AdaptiveMax.__doc__
    rank = 1


class AdaptiveMaxPooling2D(_AdaptiveMax):
    __doc__ = _AdaptiveMax.__doc__
    rank = 2


class AdaptiveMaxPooling3D(_AdaptiveMax):
    __doc__ = _AdaptiveMax.__doc__
    rank = 3


class AdaptiveAveragePooling1D(_AdaptiveAverage):
    __doc__ = _AdaptiveAverage.__doc__
    rank = 1


class AdaptiveAveragePooling2D(_AdaptiveAverage):
    __doc__ = _AdaptiveAverage.__doc__
    rank = 2


class AdaptiveAveragePooling3D(_AdaptiveAverage):
    __doc__ = _AdaptiveAverage.__doc__
    rank = 3


MaxPool1D, MaxPool2D, MaxPool3D = MaxPooling1D, MaxPooling2D, MaxPooling3D
AvgPool1D, AvgPool2D, AvgPool3D = AveragePooling1D, AveragePooling2D, AveragePooling3D
GlobalMaxPool1D, GlobalMaxPool2D, GlobalMaxPool3D = GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D
GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D = (
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalAveragePooling3D,
)
