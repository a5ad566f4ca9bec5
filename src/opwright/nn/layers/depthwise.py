"""Depthwise and separable convolutions.

Lives here: DepthwiseConv1D, DepthwiseConv2D, SeparableConv1D, SeparableConv2D.
Not here: convolutions over all channels (convolution.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ops import array
from ...ops import nn as ops_nn
from .convolution import FORMATS, ConvolutionBase, causally_padded, conv_output_shape

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def depthwise_convolution(
    inputs: Any, kernel: Any, strides: tuple[int, ...], padding: str, dilations: tuple[int, ...], data_format: str
) -> Tensor:
    """Compute a depthwise convolution over one or two dimensions, one as an image of height 1."""
    last, rank = data_format == "channels_last", len(strides)
    if padding == "causal":
        inputs, padding = causally_padded(inputs, kernel.shape[0], dilations[0], data_format), "valid"
    axis = 1 if last else 2
    if rank == 1:
        inputs, kernel = array.expand_dims(inputs, axis), array.expand_dims(kernel, 0)
        strides, dilations = (1, *strides), (1, *dilations)
    along = (1, *strides, 1) if last else (1, 1, *strides)
    y = ops_nn.depthwise_conv2d(inputs, kernel, along, padding.upper(), FORMATS[2, data_format], list(dilations))
    return array.squeeze(y, [axis]) if rank == 1 else y


def _depthwise(layer: Any, inputs: Any, kernel: Any) -> Tensor:
    """Apply a layer's depthwise convolution."""
    return depthwise_convolution(inputs, kernel, layer.strides, layer.padding, layer.dilation_rate, layer.data_format)


class _Depthwise(ConvolutionBase):
    """Convolution of each channel with `depth_multiplier` filters.

    The output has channels * depth_multiplier channels. Other arguments as those of convolutions. Weights: kernel
    [*kernel_size, channels, depth_multiplier], bias [channels * depth_multiplier].
    """

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: Any = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._check_depth_multiplier(depth_multiplier)
        self._set_window(locals())

    def build(self, input_shape: Any) -> None:
        """Create kernel and bias."""
        channels = self._channels(input_shape)
        self.compute_output_shape(input_shape)
        self.kernel = self._weight("kernel", (*self.kernel_size, channels, self.depth_multiplier), "depthwise")
        self.bias = self._weight("bias", (channels * self.depth_multiplier,)) if self.use_bias else None

    def call(self, inputs: Tensor) -> Tensor:
        """Apply the convolution, bias and activation."""
        return self._finish(_depthwise(self, inputs, self._cast(self.kernel)))

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the output shape."""
        channels = input_shape[-1 if self.data_format == "channels_last" else 1]
        return conv_output_shape(self, input_shape, channels * self.depth_multiplier)


class DepthwiseConv1D(_Depthwise):
    __doc__ = _Depthwise.__doc__
    rank = 1
    causal = True


class DepthwiseConv2D(_Depthwise):
    __doc__ = _Depthwise.__doc__
    rank = 2


class _Separable(ConvolutionBase):
    """Depthwise convolution followed by a pointwise convolution.

    filters: the channels after; depth_multiplier: the filters of each channel in the first. Other arguments as those
    of convolutions. Weights: depthwise_kernel [*kernel_size, channels, depth_multiplier], pointwise_kernel [1 ...,
    channels * depth_multiplier, filters], bias [filters].
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: Any = None,
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        pointwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._check_filters(filters)
        self._check_depth_multiplier(depth_multiplier)
        self._set_window(locals())

    def build(self, input_shape: Any) -> None:
        """Create both kernels and the bias."""
        channels = self._channels(input_shape)
        self.compute_output_shape(input_shape)
        middle = channels * self.depth_multiplier
        self.depthwise_kernel = self._weight(
            "depthwise_kernel", (*self.kernel_size, channels, self.depth_multiplier), "depthwise"
        )
        self.pointwise_kernel = self._weight("pointwise_kernel", (*(1,) * self.rank, middle, self.filters), "pointwise")
        self.bias = self._weight("bias", (self.filters,)) if self.use_bias else None

    def call(self, inputs: Tensor) -> Tensor:
        """Apply both convolutions, bias and activation."""
        y = _depthwise(self, inputs, self._cast(self.depthwise_kernel))
        y = ops_nn.convolution(y, self._cast(self.pointwise_kernel), 1, "VALID", self._format)
        return self._finish(y)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the output shape."""
        return conv_output_shape(self, input_shape, self.filters)


class SeparableConv1D(_Separable):
    __doc__ = _Separable.__doc__
    rank = 1
    causal = True


class SeparableConv2D(_Separable):
    __doc__ = _Separable.__doc__
    rank = 2


SeparableConvolution1D, SeparableConvolution2D = SeparableConv1D, SeparableConv2D
