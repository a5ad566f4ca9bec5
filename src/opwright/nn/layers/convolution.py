"""Convolutions and transposed convolutions over one, two and three dimensions.

Lives here: Conv1D ... Conv3D, Conv1DTranspose ... Conv3DTranspose.
Not here: depthwise and separable convolutions (depthwise.py), the operators (ops/nn/).

Images are [batch, *spatial, channels], or with data_format "channels_first" [batch, channels, *spatial].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...ops import array
from ...ops import nn as ops_nn
from ..layer_calls import InputSpec
from .configurable_layer import (
    ConfigurableLayer,
    LowRankAdaptation,
    channel_axis,
    data_format_name,
    image_shape,
    padding_name,
    sizes,
    spatial_sizes,
)

if TYPE_CHECKING:
    from ...ops.tensor import Tensor

FORMATS = {
    (1, "channels_last"): "NWC",
    (1, "channels_first"): "NCW",
    (2, "channels_last"): "NHWC",
    (2, "channels_first"): "NCHW",
    (3, "channels_last"): "NDHWC",
    (3, "channels_first"): "NCDHW",
}


def conv_output_size(size: int | None, kernel: int, stride: int, dilation: int, padding: str) -> int | None:
    """Return the number of window positions along one dimension."""
    if size is None:
        return None
    room = size - (kernel - 1) * dilation if padding == "valid" else size
    return (room - 1) // stride + 1


def conv_output_shape(layer: Any, input_shape: Sequence[Any], channels: Any) -> tuple[Any, ...]:
    """Return the output shape of a convolution. Raises ValueError if it would be empty."""
    middle = spatial_sizes(input_shape, layer.data_format)
    windows = zip(middle, layer.kernel_size, layer.strides, layer.dilation_rate)
    out = [conv_output_size(n, k, s, d, layer.padding) for n, k, s, d in windows]
    if any(n is not None and n <= 0 for n in out):
        raise ValueError(
            f"Computed output size would be zero or negative. Received `inputs shape={tuple(input_shape)}`, "
            f"`kernel shape={layer.kernel_size}`, `dilation_rate={layer.dilation_rate}`, `strides={layer.strides}`, "
            f"`padding={layer.padding}`."
        )
    return image_shape(input_shape[0], out, channels, layer.data_format)


def check_dilation(layer: Any) -> None:
    """Raise ValueError for a window with strides and dilation at once."""
    if max(layer.strides) > 1 and max(layer.dilation_rate) > 1:
        raise ValueError(
            "`strides > 1` not supported in conjunction with `dilation_rate > 1`. Received: "
            f"strides={layer.strides} and dilation_rate={layer.dilation_rate}"
        )


def causally_padded(inputs: Any, kernel_size: int, dilation: int, data_format: str) -> Tensor:
    """Return sequences padded before, so that a step of a convolution of padding VALID sees no later one."""
    ends = [[0, 0], [dilation * (kernel_size - 1), 0]]
    ends.insert(2 if data_format == "channels_last" else 1, [0, 0])
    return array.pad(inputs, ends)


class ConvolutionBase(ConfigurableLayer):
    """Base class of convolutions: window, strides, padding, dilation, data format, bias and activation."""

    rank: int
    bias: Any = None
    causal = False

    def _set_window(self, constructor_locals: Mapping[str, Any], omit: Sequence[str] = (), **arguments: Any) -> None:
        """Set the arguments of a constructor after checking those of the window. Arguments: see `_set_arguments`."""
        n = self.rank
        for name in ("kernel_size", "strides", "dilation_rate"):
            arguments[name] = sizes(constructor_locals[name], n, name)
        arguments["padding"] = padding_name(constructor_locals["padding"], self.causal)
        arguments["data_format"] = data_format_name(constructor_locals["data_format"])
        self._set_arguments(constructor_locals, omit, **arguments)
        self.input_spec = InputSpec(min_ndim=n + 2)
        if isinstance(self, (Conv, ConvTranspose)):
            check_dilation(self)

    @property
    def _format(self) -> str:
        return FORMATS[self.rank, self.data_format]

    def _channels(self, input_shape: Sequence[Any]) -> int:
        """Return the number of input channels and fix it in `input_spec`. Raises ValueError if it is unknown."""
        axis = channel_axis(self.data_format)
        channels = input_shape[axis]
        if channels is None:
            raise ValueError(
                "The channel dimension of the inputs should be defined. "
                f"Found input_shape={tuple(input_shape)}, channel axis {axis}."
            )
        self.input_spec = InputSpec(min_ndim=self.rank + 2, axes={axis: channels})
        return int(channels)

    def _finish(self, outputs: Any) -> Tensor:
        """Apply bias and activation."""
        if self.bias is not None:
            outputs = ops_nn.bias_add(
                outputs, self._cast(self.bias), "NHWC" if self.data_format == "channels_last" else "NCHW"
            )
        return self.activation(outputs)

    def _check_filters(self, filters: Any) -> None:
        if filters is not None and (not isinstance(filters, int) or filters <= 0):
            raise ValueError(
                f"Invalid value for argument `filters`. Expected a strictly positive value. Received filters={filters}."
            )

    def _check_depth_multiplier(self, depth_multiplier: Any) -> None:
        if not isinstance(depth_multiplier, int) or depth_multiplier <= 0:
            raise ValueError(
                "Invalid value for argument `depth_multiplier`. Expected a strictly positive value. "
                f"Received depth_multiplier={depth_multiplier}."
            )


class Conv(LowRankAdaptation, ConvolutionBase):
    """Convolution over `rank` dimensions, with bias and activation.

    .. math:: y_{b,p,o} = activation(bias_o + \\sum_{q,c} x_{b,\\; p \\cdot strides +
              q \\cdot dilation\\_rate - before,\\; c} \\; kernel_{q,c,o})

    filters: the number of output channels. kernel_size, strides, dilation_rate: one integer, or one per dimension.
    padding: "valid" or "same" (Conv1D also "causal": only before). groups: the number of independent groups of channels
    and filters. Weights: kernel [*kernel_size, channels / groups, filters], bias [filters].
    raises ValueError for inconsistent sizes
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: Any = None,
        dilation_rate: Any = 1,
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._check_filters(filters)
        if not isinstance(groups, int) or groups <= 0:
            raise ValueError(f"The number of groups must be a positive integer. Received: groups={groups}.")
        if filters % groups:
            raise ValueError(
                "The number of filters must be evenly divisible by the number of groups. Received: "
                f"groups={groups}, filters={filters}."
            )
        self._set_window(locals(), omit=("lora_rank", "lora_alpha"))
        self._init_lora(lora_rank, lora_alpha)

    def build(self, input_shape: Any) -> None:
        """Create kernel and bias."""
        channels = self._channels(input_shape)
        if channels % self.groups:
            raise ValueError(
                "The number of input channels must be evenly divisible by the number of groups. Received "
                f"groups={self.groups}, but the input has {channels} channels (full input shape is "
                f"{tuple(input_shape)})."
            )
        self.compute_output_shape(input_shape)
        self._kernel = self._weight("kernel", (*self.kernel_size, channels // self.groups, self.filters))
        self.bias = self._weight("bias", (self.filters,)) if self.use_bias else None
        self._build_lora()

    def call(self, inputs: Tensor) -> Tensor:
        """Apply the convolution, bias and activation."""
        padding = self.padding
        if padding == "causal":
            inputs = causally_padded(inputs, self.kernel_size[0], self.dilation_rate[0], self.data_format)
            padding = "valid"
        y = ops_nn.convolution(
            inputs, self._cast(self.kernel), list(self.strides), padding.upper(), self._format, list(self.dilation_rate)
        )
        return self._finish(y)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the output shape."""
        return conv_output_shape(self, input_shape, self.filters)


class Conv1D(Conv):
    __doc__ = Conv.__doc__
    rank = 1
    causal = True


class Conv2D(Conv):
    __doc__ = Conv.__doc__
    rank = 2


class Conv3D(Conv):
    __doc__ = Conv.__doc__
    rank = 3


# ---- transposed -----------------------------------------------------------------------------------------------------


def conv_transpose_size(
    size: int | None, kernel: int, stride: int, dilation: int, padding: str, extra: int | None
) -> int | None:
    """Return the input size of a convolution with `size` window positions; output_padding selects among candidates."""
    if size is None:
        return None
    kernel = (kernel - 1) * dilation + 1
    if padding == "valid":
        return (size - 1) * stride + kernel + (max(kernel, stride) - kernel if extra is None else extra)
    return size * stride if extra is None else (size - 1) * stride + kernel % 2 + extra


def conv_transpose_sizes(
    middle: Sequence[Any],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    output_padding: Sequence[int] | None,
) -> list[Any]:
    """Return `conv_transpose_size` of each dimension."""
    windows = zip(middle, kernel, strides, dilations, output_padding or (None,) * len(strides))
    return [conv_transpose_size(n, k, s, d, padding, extra) for n, k, s, d, extra in windows]


def transposed_convolution(
    inputs: Any,
    kernel: Any,
    strides: Sequence[int],
    padding: str,
    output_padding: Sequence[int] | None,
    dilations: Sequence[int],
    data_format: str,
) -> Tensor:
    """Compute a transposed convolution. kernel: [*sizes, filters, channels]; other arguments: see ConvTranspose."""
    dims = list(inputs.shape)
    if any(d is None for d in dims):
        runtime_shape = array.shape(inputs)
        dims = [runtime_shape[i] if d is None else d for i, d in enumerate(dims)]
    *window, filters, _ = kernel.shape
    middle = conv_transpose_sizes(spatial_sizes(dims, data_format), window, strides, dilations, padding, output_padding)
    shape = image_shape(dims[0], middle, filters, data_format)
    layout = FORMATS[len(strides), data_format]
    return ops_nn.conv_transpose(inputs, kernel, shape, list(strides), padding.upper(), layout, list(dilations))


class ConvTranspose(ConvolutionBase):
    """Transposed convolution: the gradient of a convolution with respect to its input.

    It upsamples an image by its strides. output_padding: one integer or one per dimension, below the strides: selects
    among the output sizes that a convolution would map to the input's. Other arguments: see Conv.
    Weights: kernel [*kernel_size, filters, channels], bias [filters].
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        output_padding: Any = None,
        data_format: Any = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._check_filters(filters)
        if output_padding is not None:
            output_padding = sizes(output_padding, self.rank, "output_padding", allow_zero=True)
        self._set_window(locals())
        if output_padding is not None and any(p >= s for p, s in zip(output_padding, self.strides)):
            raise ValueError(
                "`output_padding` must be smaller than `strides`. Received: "
                f"strides={self.strides}, output_padding={output_padding}"
            )

    def build(self, input_shape: Any) -> None:
        """Create kernel and bias."""
        channels = self._channels(input_shape)
        self.kernel = self._weight("kernel", (*self.kernel_size, self.filters, channels))
        self.bias = self._weight("bias", (self.filters,)) if self.use_bias else None

    def call(self, inputs: Any) -> Tensor:
        """Apply the transposed convolution, bias and activation."""
        y = transposed_convolution(
            inputs,
            self._cast(self.kernel),
            self.strides,
            self.padding,
            self.output_padding,
            self.dilation_rate,
            self.data_format,
        )
        return self._finish(y)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the output shape."""
        middle = conv_transpose_sizes(
            spatial_sizes(input_shape, self.data_format),
            self.kernel_size,
            self.strides,
            self.dilation_rate,
            self.padding,
            self.output_padding,
        )
        return image_shape(input_shape[0], middle, self.filters, self.data_format)


class Conv1DTranspose(ConvTranspose):
    __doc__ = ConvTranspose.__doc__
    rank = 1


class Conv2DTranspose(ConvTranspose):
    __doc__ = ConvTranspose.__doc__
    rank = 2


class Conv3DTranspose(ConvTranspose):
    __doc__ = ConvTranspose.__doc__
    rank = 3

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: Any = None,
        output_padding: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:  # Keras's order: output_padding after data_format
        super().__init__(filters, kernel_size, strides, padding, output_padding, data_format, *args, **kwargs)


Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
Convolution1DTranspose, Convolution2DTranspose = Conv1DTranspose, Conv2DTranspose
Convolution3DTranspose = Conv3DTranspose
