"""Depthwise convolution and its gradients.

Lives here: DepthwiseConv2dNative, DepthwiseConv2dNativeBackpropInput, DepthwiseConv2dNativeBackpropFilter, and
TensorFlow's functions over them, with separable_conv2d.
Not here: convolutions that mix channels (convolution.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import floating, index
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from .. import dispatch
from ..array.shape_operators import shape_op
from ..attributes import Attr, one_of
from ..definition import operator
from ..registry import documented_by
from ..shape_inference import shape_from
from ..slots import Input, OperatorDefinition, Output
from ..windows import (
    FORMATS,
    PADDINGS,
    channel_axis,
    convolve_depthwise,
    depthwise_by_filter,
    depthwise_by_input,
    spatial_windows,
)
from .convolution import (
    Dims,
    as_sizes,
    attributes_of,
    check_backprop,
    check_data_format,
    conv2d,
    dims_of_rank,
    from_last,
    last_shape,
    output_shape_of,
    to_last,
)

if TYPE_CHECKING:
    import numpy as np

    from ...core.specs import TensorSpec
    from ..tensor import Tensor


def _output_shape(op: Any, image: Dims, kernel: Dims) -> TensorShape:
    channels = image[channel_axis(op.data_format)]
    _check_channels(channels, kernel[2])
    channels = kernel[2] if channels is None else channels
    out = None if channels is None or kernel[3] is None else channels * kernel[3]
    return output_shape_of(op, 2, image, kernel[:2], out)


def _check_channels(image: int | None, filter: int | None) -> None:
    if image is not None and filter is not None and image != filter:
        raise InvalidArgumentError(
            what=f"input and filter must have the same depth: {image} vs {filter}",
            found={"input channels": image, "filter channels": filter},
        )


@operator
class DepthwiseConv2dNative(OperatorDefinition):
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
    strides = Attr([int])
    padding = Attr(str, check=one_of(*PADDINGS))
    explicit_paddings = Attr([int], default=())
    data_format = Attr(str, default="NHWC", check=one_of(*FORMATS[2]))
    dilations = Attr([int], default=(1, 1, 1, 1))
    lod = "as input"

    def infer(op) -> TensorSpec:
        return op.input.spec.with_shape(
            _output_shape(op, dims_of_rank(op.input.spec.shape, 4), dims_of_rank(op.filter.spec.shape, 4))
        )

    def compute(op, input: Any, filter: Any) -> np.ndarray:
        x = to_last(input, op.data_format)
        _check_channels(x.shape[-1], filter.shape[2])
        windows = spatial_windows(op, x.shape[1:-1], filter.shape)
        return from_last(convolve_depthwise(x, filter, windows), op.data_format)

    def gradient(op, doutput: Any) -> tuple[Tensor, Tensor]:
        x, w = op.input, op.filter
        return (
            DepthwiseConv2dNativeBackpropInput(shape_op(x), w, doutput, **op.attrs),
            DepthwiseConv2dNativeBackpropFilter(x, shape_op(w), doutput, **op.attrs),
        )


@operator
class DepthwiseConv2dNativeBackpropInput(OperatorDefinition):
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
    strides = Attr([int])
    padding = Attr(str, check=one_of(*PADDINGS))
    explicit_paddings = Attr([int], default=())
    data_format = Attr(str, default="NHWC", check=one_of(*FORMATS[2]))
    dilations = Attr([int], default=(1, 1, 1, 1))
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        image = dims_of_rank(shape_from(op.input_sizes), 4)
        dy_shape = op.out_backprop.spec.shape
        check_backprop(op, dy_shape, _output_shape(op, image, dims_of_rank(op.filter.spec.shape, 4)))
        if image[0] is None and dy_shape.dims is not None:
            image = [dy_shape[0], *image[1:]]
        return op.filter.spec.with_shape(image)

    def compute(op, input_sizes: Any, filter: Any, out_backprop: Any) -> np.ndarray:
        dy, shape = to_last(out_backprop, op.data_format), last_shape(input_sizes, op.data_format)
        shape = (dy.shape[0] if shape[0] == -1 else shape[0], *shape[1:])
        _check_channels(shape[-1], filter.shape[2])
        windows = spatial_windows(op, shape[1:-1], filter.shape)
        channels = filter.shape[2] * filter.shape[3]
        check_backprop(op, TensorShape(dy.shape), TensorShape([shape[0], *(w.out for w in windows), channels]))
        return from_last(depthwise_by_input(dy, filter, shape, windows), op.data_format)

    def gradient(op, doutput: Any) -> tuple[None, Tensor, Tensor]:
        w, dy = op.filter, op.out_backprop
        return (
            None,
            DepthwiseConv2dNativeBackpropFilter(doutput, shape_op(w), dy, **op.attrs),
            DepthwiseConv2dNative(doutput, w, **op.attrs),
        )


@operator
class DepthwiseConv2dNativeBackpropFilter(OperatorDefinition):
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
    strides = Attr([int])
    padding = Attr(str, check=one_of(*PADDINGS))
    explicit_paddings = Attr([int], default=())
    data_format = Attr(str, default="NHWC", check=one_of(*FORMATS[2]))
    dilations = Attr([int], default=(1, 1, 1, 1))
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        kernel = dims_of_rank(shape_from(op.filter_sizes), 4)
        check_backprop(op, op.out_backprop.spec.shape, _output_shape(op, dims_of_rank(op.input.spec.shape, 4), kernel))
        return op.input.spec.with_shape(kernel)

    def compute(op, input: Any, filter_sizes: Any, out_backprop: Any) -> np.ndarray:
        x, dy, kernel = to_last(input, op.data_format), to_last(out_backprop, op.data_format), filter_sizes.tolist()
        _check_channels(x.shape[-1], kernel[2])
        windows = spatial_windows(op, x.shape[1:-1], kernel)
        check_backprop(
            op, TensorShape(dy.shape), TensorShape([x.shape[0], *(w.out for w in windows), kernel[2] * kernel[3]])
        )
        return depthwise_by_filter(x, dy, kernel, windows)

    def gradient(op, doutput: Any) -> tuple[Tensor, None, Tensor]:
        x, dy = op.input, op.out_backprop
        return (
            DepthwiseConv2dNativeBackpropInput(shape_op(x), doutput, dy, **op.attrs),
            None,
            DepthwiseConv2dNative(x, doutput, **op.attrs),
        )


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
