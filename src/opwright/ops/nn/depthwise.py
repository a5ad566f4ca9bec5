"""Depthwise convolution and its gradients.

Lives here: DepthwiseConv2dNative, DepthwiseConv2dNativeBackpropInput, DepthwiseConv2dNativeBackpropFilter, and
TensorFlow's functions over them, with separable_conv2d.
Not here: convolutions that mix channels (convolution.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.dtypes import floating, index
from ...core.errors import InvalidArgumentError
from .. import dispatch
from ..array_convolution import convolve_depthwise, depthwise_by_filter, depthwise_by_input
from ..attributes import Attr, one_of
from ..definition import operator
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..windows import FORMATS, PADDINGS, AxisWindow
from .convolution import Operators, attributes_of, conv2d
from .convolution_rules import (
    Dims,
    Filters,
    check_data_format,
    compute_by_filter,
    compute_by_input,
    compute_forward,
    infer_by_filter,
    infer_by_input,
    infer_forward,
)
from .transposed_convolution import as_sizes

if TYPE_CHECKING:
    import numpy as np

    from ...core.specs import TensorSpec
    from ..tensor import Tensor


def _multiplied_channels(image: int | None, kernel: Dims) -> int | None:
    """Return the channels of the output. Raises InvalidArgumentError if image and filter have different ones."""
    depth, multiplier = kernel[2:]
    if image is not None and depth is not None and image != depth:
        raise InvalidArgumentError(
            what=f"input and filter must have the same depth: {image} vs {depth}",
            found={"input channels": image, "filter channels": depth},
        )
    channels = depth if image is None else image
    return None if channels is None or multiplier is None else channels * multiplier


def _forward(_: Any, x: np.ndarray, w: np.ndarray, windows: Sequence[AxisWindow]) -> np.ndarray:
    return convolve_depthwise(x, w, windows)


DEPTHWISE = Filters(_multiplied_channels, _forward, depthwise_by_input, depthwise_by_filter)
"""Filters [rows, columns, channels, multiplier]."""


class _DepthwiseWindow(OperatorDefinition):
    """Base of the convolution and its gradients."""

    strides = Attr([int])
    padding = Attr(str, check=one_of(*PADDINGS))
    explicit_paddings = Attr([int], default=())
    data_format = Attr(str, default="NHWC", check=one_of(*FORMATS[2]))
    dilations = Attr([int], default=(1, 1, 1, 1))


@operator
class DepthwiseConv2dNative(_DepthwiseWindow):
    """Convolve each channel separately with `multiplier` filters, and concatenate the results.

    .. math:: output_{b,p,c \\cdot m + j} = \\sum_q input_{b,\\; p \\cdot strides + q \\cdot
              dilations - before,\\; c} \\; filter_{q,c,j}

    input: [batch, height, width, channels] or NCHW; filter: [rows, columns, channels, multiplier]. Attributes and
    output sizes as Conv2D's. 16-bit floats are accumulated in float32.
    raises InvalidArgumentError if channels differ, or the window is larger than the padded image
    """

    input = Input(floating, rank=4)
    filter = Input(floating, rank=4, like="input")
    output = Output(like="input")
    lod = "as input"

    def infer(op) -> TensorSpec:
        return infer_forward(op, 2, op.filter, DEPTHWISE)

    def compute(op, input: Any, filter: Any) -> np.ndarray:
        return compute_forward(op, input, filter, DEPTHWISE)

    def gradient(op, doutput: Any) -> tuple[Tensor, Tensor]:
        return OPERATORS.gradients(op.input, op.filter, doutput, op.attrs)


@operator
class DepthwiseConv2dNativeBackpropInput(_DepthwiseWindow):
    """Compute the gradient of a depthwise convolution with respect to its input.

    .. math:: output_{b,i,c} = \\sum_{p,q,j :\\; p \\cdot strides + q \\cdot dilations - before =
              i} out\\_backprop_{b,p,c \\cdot m + j} \\; filter_{q,c,j}

    input_sizes: the shape of the convolution's input, -1 for the batch of out_backprop; the others as
    DepthwiseConv2dNative's.
    raises InvalidArgumentError if out_backprop does not have the shape of the convolution's output
    """

    input_sizes = Input(index, rank=1)
    filter = Input(floating, rank=4)
    out_backprop = Input(floating, rank=4, like="filter")
    output = Output(like="filter")
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return infer_by_input(op, 2, op.filter, DEPTHWISE)

    def compute(op, input_sizes: Any, filter: Any, out_backprop: Any) -> np.ndarray:
        return compute_by_input(op, input_sizes, filter, out_backprop, DEPTHWISE)

    def gradient(op, doutput: Any) -> tuple[None, Tensor, Tensor]:
        return OPERATORS.gradients_by_input(op.filter, op.out_backprop, doutput, op.attrs)


@operator
class DepthwiseConv2dNativeBackpropFilter(_DepthwiseWindow):
    """Compute the gradient of a depthwise convolution with respect to its filter.

    .. math:: output_{q,c,j} = \\sum_{b,p} input_{b,\\; p \\cdot strides + q \\cdot dilations -
              before,\\; c} \\; out\\_backprop_{b,p,c \\cdot m + j}

    filter_sizes: the shape of the convolution's filter; the others as DepthwiseConv2dNative's.
    raises InvalidArgumentError if out_backprop does not have the shape of the convolution's output
    """

    input = Input(floating, rank=4)
    filter_sizes = Input(index, rank=1)
    out_backprop = Input(floating, rank=4, like="input")
    output = Output(like="input")
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return infer_by_filter(op, 2, DEPTHWISE)

    def compute(op, input: Any, filter_sizes: Any, out_backprop: Any) -> np.ndarray:
        return compute_by_filter(op, input, filter_sizes, out_backprop, DEPTHWISE)

    def gradient(op, doutput: Any) -> tuple[Tensor, None, Tensor]:
        return OPERATORS.gradients_by_filter(op.input, op.out_backprop, doutput, op.attrs)


OPERATORS = Operators(DepthwiseConv2dNative, DepthwiseConv2dNativeBackpropInput, DepthwiseConv2dNativeBackpropFilter)


@documented_by(DepthwiseConv2dNative)
def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Compute a depthwise 2-D convolution."""
    attrs = attributes_of(2, check_data_format("depthwise_conv2d", data_format, 2), strides, padding, dilations)
    return DepthwiseConv2dNative(input, filter, **attrs, name=name)


@documented_by(DepthwiseConv2dNativeBackpropInput)
def depthwise_conv2d_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Compute the gradient of a depthwise convolution with respect to its input."""
    data_format = check_data_format("depthwise_conv2d_backprop_input", data_format, 2)
    attrs = attributes_of(2, data_format, strides, padding, dilations)
    return DepthwiseConv2dNativeBackpropInput(as_sizes(input_sizes), filter, out_backprop, **attrs, name=name)


@documented_by(DepthwiseConv2dNativeBackpropFilter)
def depthwise_conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Compute the gradient of a depthwise convolution with respect to its filter."""
    data_format = check_data_format("depthwise_conv2d_backprop_filter", data_format, 2)
    attrs = attributes_of(2, data_format, strides, padding, dilations)
    return DepthwiseConv2dNativeBackpropFilter(input, as_sizes(filter_sizes), out_backprop, **attrs, name=name)


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Compute a depthwise-separable convolution: a depthwise convolution, then a pointwise one.

    depthwise_filter: [rows, columns, channels, multiplier]; pointwise_filter: [1, 1, channels * multiplier, out].
    raises InvalidArgumentError for a pointwise_filter that is not 1 x 1
    """
    pointwise_filter = dispatch.to_tensor(pointwise_filter)
    if not pointwise_filter.shape.is_compatible_with([1, 1, None, None]):
        raise InvalidArgumentError(
            op="separable_conv2d",
            node=name,
            what="pointwise_filter is not 1 x 1",
            found=pointwise_filter.spec.short(),
            wanted="[1,1,channels * multiplier,out]",
        )
    depthwise_output = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(depthwise_output, pointwise_filter, 1, "VALID", data_format or "NHWC", name=name)
