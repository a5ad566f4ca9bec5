"""Convolutions over one to three dimensions, and their gradients.

Lives here: Conv2D, Conv3D, Conv2DBackpropInput, Conv2DBackpropFilter, Conv3DBackpropInput, Conv3DBackpropFilter; under
TensorFlow's names conv1d ... conv3d, their transposes, convolution, atrous_conv2d.
Not here: depthwise convolutions (depthwise.py), the sums (ops/windows.py).

The convolution is linear in its input and in its filter, so the three operators of a rank are gradients of one another.
In the functions, strides and dilations are one number, one per spatial dimension, or one per dimension of the input;
padding is "SAME", "VALID" or a list of (before, after) pairs, one per dimension of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import floating, index, int32
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from .. import dispatch
from ..array import concat, expand_dims, reshape, squeeze
from ..array.shape_operators import dims_tensor, shape_op
from ..attributes import Attr, one_of
from ..definition import operator
from ..registry import documented_by
from ..shape_inference import shape_from
from ..slots import Input, OperatorDefinition, Output
from ..windows import (
    FORMATS,
    PADDINGS,
    AxisWindow,
    channel_axis,
    check_sliding,
    convolve,
    convolve_by_filter,
    convolve_by_input,
    out_size,
    padding_of,
    pairs,
    sequence,
    spatial_axes,
    spatial_windows,
)

if TYPE_CHECKING:
    from ..tensor import Tensor

Dims = Sequence["int | None"]


def dims_of_rank(shape: TensorShape, rank: int) -> Dims:
    """Return the sizes of a shape, None if unknown. Raises InvalidArgumentError for another rank."""
    if shape.dims is None:
        return (None,) * rank
    if len(shape.dims) != rank:
        raise InvalidArgumentError(what="a shape of the wrong rank", found=str(shape), wanted=f"rank {rank}")
    return shape.dims


def check_depths(image: int | None, depth: int | None, filters: int | None) -> None:
    """Check that the channels of the image are a multiple of the filter's. Raises InvalidArgumentError."""
    if image is None or depth is None:
        return
    if depth == 0 or image % depth:
        raise InvalidArgumentError(
            what=f"input depth must be evenly divisible by filter depth: {image} vs {depth}",
            found={"input channels": image, "filter input channels": depth},
            wanted="equal numbers, or with groups a multiple",
        )
    groups = image // depth
    if filters is not None and groups and filters % groups:
        raise InvalidArgumentError(
            what=f"output depth must be evenly divisible by number of groups: {filters} vs {groups}",
            found={"filters": filters, "groups": groups},
        )


def output_shape_of(op: Any, n: int, image: Dims, kernel: Dims, channels: int | None) -> TensorShape:
    """Infer the output shape of a convolution. Raises InvalidArgumentError if the kernel exceeds the padded image."""
    check_sliding(op, n)
    out: list[int | None] = [image[0]] * (n + 2)
    out[channel_axis(op.data_format)] = channels
    pads = pairs(op.explicit_paddings, n + 2)
    for axis, k in zip(spatial_axes(op.data_format), kernel):
        out[axis] = out_size(image[axis], k, op.strides[axis], op.dilations[axis], op.padding, pads[axis])
    return TensorShape(out)


def check_backprop(op: Any, shape: TensorShape, computed: TensorShape) -> None:
    """Check that out_backprop has the shape of the forward result. Raises InvalidArgumentError."""
    if not shape.is_compatible_with(computed):
        raise InvalidArgumentError(
            what="Size of out_backprop doesn't match computed",
            found=f"out_backprop {shape}",
            wanted=str(computed),
            do="check output_shape, strides and padding against the formula of the convolution",
        )


class Filters(NamedTuple):
    """A kind of filter: the properties and sums of convolutions by it.

    channels: the channels of the output by those of the image and the sizes of the filter; it raises
    InvalidArgumentError if these do not agree. forward, by_input, by_filter: the sums (ops/windows.py).
    """

    channels: Callable[[int | None, Dims], int | None]
    forward: Callable[..., np.ndarray]
    by_input: Callable[..., np.ndarray]
    by_filter: Callable[..., np.ndarray]


def infer_forward(op: Any, n: int, filters: Any, kind: Filters) -> TensorSpec:
    """Infer the output of a convolution over n spatial dimensions. Raises InvalidArgumentError."""
    image, kernel = dims_of_rank(op.input.spec.shape, n + 2), dims_of_rank(filters.spec.shape, n + 2)
    result: TensorSpec = op.input.spec.with_shape(_output_shape(op, n, image, kernel, kind))
    return result


def infer_by_input(op: Any, n: int, filters: Any, kind: Filters) -> TensorSpec:
    """Infer the gradient by the input. Raises InvalidArgumentError."""
    image, kernel = dims_of_rank(shape_from(op.input_sizes), n + 2), dims_of_rank(filters.spec.shape, n + 2)
    dy_shape = op.out_backprop.spec.shape
    check_backprop(op, dy_shape, _output_shape(op, n, image, kernel, kind))
    if image[0] is None and dy_shape.dims is not None:
        image = [dy_shape[0], *image[1:]]
    result: TensorSpec = filters.spec.with_shape(image)
    return result


def infer_by_filter(op: Any, n: int, kind: Filters) -> TensorSpec:
    """Infer the gradient by the filter. Raises InvalidArgumentError."""
    kernel, image = dims_of_rank(shape_from(op.filter_sizes), n + 2), dims_of_rank(op.input.spec.shape, n + 2)
    check_backprop(op, op.out_backprop.spec.shape, _output_shape(op, n, image, kernel, kind))
    result: TensorSpec = op.input.spec.with_shape(kernel)
    return result


def _output_shape(op: Any, n: int, image: Dims, kernel: Dims, kind: Filters) -> TensorShape:
    return output_shape_of(op, n, image, kernel, kind.channels(image[channel_axis(op.data_format)], kernel))


def to_last(x: np.ndarray, data_format: str) -> np.ndarray:
    """Move the channels to the last dimension."""
    return np.moveaxis(x, channel_axis(data_format), -1)


def from_last(x: np.ndarray, data_format: str) -> np.ndarray:
    """Move the channels from the last dimension to their position in `data_format`."""
    return np.moveaxis(x, -1, channel_axis(data_format))


def last_shape(sizes: np.ndarray, data_format: str) -> tuple[int, ...]:
    """Return the sizes of an image with the channels last."""
    channel = channel_axis(data_format)
    dims = sizes.tolist()
    return (*dims[:channel], *dims[channel + 1 :], dims[channel])


def compute_forward(op: Any, input: np.ndarray, filters: np.ndarray, kind: Filters) -> np.ndarray:
    """Compute a convolution. Raises InvalidArgumentError if the channels do not agree."""
    x = to_last(input, op.data_format)
    kind.channels(x.shape[-1], filters.shape)
    windows = spatial_windows(op, x.shape[1:-1], filters.shape)
    return from_last(kind.forward(op, x, filters, windows), op.data_format)


def compute_by_input(op: Any, sizes: np.ndarray, filters: np.ndarray, dy: np.ndarray, kind: Filters) -> np.ndarray:
    """Compute the gradient by the input. Raises InvalidArgumentError if dy is not of the output's shape."""
    dy, shape = to_last(dy, op.data_format), last_shape(sizes, op.data_format)
    shape = (dy.shape[0] if shape[0] == -1 else shape[0], *shape[1:])
    channels = kind.channels(shape[-1], filters.shape)
    windows = spatial_windows(op, shape[1:-1], filters.shape)
    check_backprop(op, TensorShape(dy.shape), TensorShape([shape[0], *(w.out for w in windows), channels]))
    return from_last(kind.by_input(dy, filters, shape, windows), op.data_format)


def compute_by_filter(op: Any, x: np.ndarray, sizes: np.ndarray, dy: np.ndarray, kind: Filters) -> np.ndarray:
    """Compute the gradient by the filter. Raises InvalidArgumentError if dy is not of the output's shape."""
    x, dy, kernel = to_last(x, op.data_format), to_last(dy, op.data_format), sizes.tolist()
    channels = kind.channels(x.shape[-1], kernel)
    windows = spatial_windows(op, x.shape[1:-1], kernel[:-2])
    check_backprop(op, TensorShape(dy.shape), TensorShape([x.shape[0], *(w.out for w in windows), channels]))
    return kind.by_filter(x, dy, kernel, windows)


def _grouped_channels(image: int | None, kernel: Dims) -> int | None:
    check_depths(image, kernel[-2], kernel[-1])
    return kernel[-1]


def _by_filter(x: np.ndarray, dy: np.ndarray, kernel: Sequence[int], windows: Sequence[AxisWindow]) -> np.ndarray:
    return convolve_by_filter(x, dy, kernel[:-2], kernel[-2], windows)


GROUPED = Filters(_grouped_channels, convolve, convolve_by_input, _by_filter)
"""Filters [*kernel, channels / groups, out]."""


class Operators(NamedTuple):
    """A convolution and its gradients, which are linear in both operands: each is a gradient of the others."""

    forward: Any
    by_input: Any
    by_filter: Any

    def gradients(self, x: Any, w: Any, dy: Any, attrs: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Return the gradients of the convolution of x by w."""
        return self.by_input(shape_op(x), w, dy, **attrs), self.by_filter(x, shape_op(w), dy, **attrs)

    def gradients_by_input(self, w: Any, dy: Any, dx: Any, attrs: dict[str, Any]) -> tuple[None, Tensor, Tensor]:
        """Return the gradients of `by_input` of w and dy. dx: of its output."""
        return None, self.by_filter(dx, shape_op(w), dy, **attrs), self.forward(dx, w, **attrs)

    def gradients_by_filter(self, x: Any, dy: Any, dw: Any, attrs: dict[str, Any]) -> tuple[Tensor, None, Tensor]:
        """Return the gradients of `by_filter` of x and dy. dw: of its output."""
        return self.by_input(shape_op(x), dw, dy, **attrs), None, self.forward(x, dw, **attrs)


def _define(n: int, input_dtypes: Any) -> Operators:
    """Define the three operators over n spatial dimensions."""
    rank, ones = n + 2, (1,) * (n + 2)

    class SlidingOperator(OperatorDefinition):
        """Base of the three."""

        strides = Attr([int])
        padding = Attr(str, check=one_of(*PADDINGS))
        explicit_paddings = Attr([int], default=())
        data_format = Attr(str, default=FORMATS[n][0], check=one_of(*FORMATS[n]))
        dilations = Attr([int], default=ones)

    @operator(name=f"Conv{n}D")
    class Convolution(SlidingOperator):
        """Convolve images with a filter bank (cross-correlation).

        .. math:: output_{b,p,o} = \\sum_{q,c} input_{b,\\; p \\cdot strides + q \\cdot dilations -
                  before,\\; c} \\; filters_{q,c,o}

        input: [batch, *spatial, channels], or with channels second by data_format; filters: [*kernel, channels /
        groups, out]; the number of groups follows from the channels. strides, dilations: one entry per dimension of
        input, 1 for batch and channels. Output sizes: ceil(size / stride) with SAME padding, else
        floor((size + before + after - (kernel - 1) * dilation - 1) / stride) + 1; with EXPLICIT, explicit_paddings has
        before and after of each dimension. 16-bit floats are accumulated in float32.
        raises InvalidArgumentError for incompatible channels, or a window larger than the padded image
        """

        input = Input(input_dtypes, rank=rank)
        filters = Input(input_dtypes, rank=rank, like="input")
        output = Output(like="input")
        lod = "as input"

        def infer(op) -> TensorSpec:
            return infer_forward(op, n, op.filters, GROUPED)

        def compute(op, input: Any, filters: Any) -> np.ndarray:
            return compute_forward(op, input, filters, GROUPED)

        def gradient(op, doutput: Any) -> tuple[Tensor, Tensor]:
            return operators.gradients(op.input, op.filters, doutput, op.attrs)

    @operator(name=f"Conv{n}DBackpropInput")
    class BackpropInput(SlidingOperator):
        """Compute the gradient of a convolution with respect to its input: the transposed convolution.

        .. math:: output_{b,i,c} = \\sum_{p,q,o :\\; p \\cdot strides + q \\cdot dilations - before
                  = i} out\\_backprop_{b,p,o} \\; filters_{q,c,o}

        input_sizes: the shape of the convolution's input, -1 for the batch of out_backprop; filters, attributes: the
        convolution's; out_backprop: in the shape of its output.
        raises InvalidArgumentError if out_backprop does not have that shape
        """

        input_sizes = Input(index, rank=1)
        filters = Input(input_dtypes, rank=rank)
        out_backprop = Input(input_dtypes, rank=rank, like="filters")
        output = Output(like="filters")
        lod = "vanishes"

        def infer(op) -> TensorSpec:
            return infer_by_input(op, n, op.filters, GROUPED)

        def compute(op, input_sizes: Any, filters: Any, out_backprop: Any) -> np.ndarray:
            return compute_by_input(op, input_sizes, filters, out_backprop, GROUPED)

        def gradient(op, doutput: Any) -> tuple[None, Tensor, Tensor]:
            return operators.gradients_by_input(op.filters, op.out_backprop, doutput, op.attrs)

    @operator(name=f"Conv{n}DBackpropFilter")
    class BackpropFilter(SlidingOperator):
        """Compute the gradient of a convolution with respect to its filter.

        .. math:: output_{q,c,o} = \\sum_{b,p} input_{b,\\; p \\cdot strides + q \\cdot dilations -
                  before,\\; c} \\; out\\_backprop_{b,p,o}

        input, attributes: the convolution's; filter_sizes: the shape of its filter; out_backprop: in the shape of its
        output.
        raises InvalidArgumentError if out_backprop does not have that shape
        """

        input = Input(input_dtypes, rank=rank)
        filter_sizes = Input(index, rank=1)
        out_backprop = Input(input_dtypes, rank=rank, like="input")
        output = Output(like="input")
        lod = "vanishes"

        def infer(op) -> TensorSpec:
            return infer_by_filter(op, n, GROUPED)

        def compute(op, input: Any, filter_sizes: Any, out_backprop: Any) -> np.ndarray:
            return compute_by_filter(op, input, filter_sizes, out_backprop, GROUPED)

        def gradient(op, doutput: Any) -> tuple[Tensor, None, Tensor]:
            return operators.gradients_by_filter(op.input, op.out_backprop, doutput, op.attrs)

    operators = Operators(Convolution, BackpropInput, BackpropFilter)
    return operators


Conv2D, Conv2DBackpropInput, Conv2DBackpropFilter = _define(2, (*floating, int32))
Conv3D, Conv3DBackpropInput, Conv3DBackpropFilter = _define(3, floating)


FORWARD: dict[int, Callable[..., Tensor]] = {2: Conv2D, 3: Conv3D}
BY_INPUT: dict[int, Callable[..., Tensor]] = {2: Conv2DBackpropInput, 3: Conv3DBackpropInput}
BY_FILTER: dict[int, Callable[..., Tensor]] = {2: Conv2DBackpropFilter, 3: Conv3DBackpropFilter}


def check_data_format(op: str, data_format: str | None, n: int) -> str:
    """Return a data format of n spatial dimensions, by default channels last. Raises InvalidArgumentError."""
    if data_format is None:
        return FORMATS[n][0]
    if data_format not in FORMATS[n]:
        raise InvalidArgumentError(
            op=op, what="unknown data_format", found=repr(data_format), wanted=" or ".join(map(repr, FORMATS[n]))
        )
    return data_format


def attributes_of(n: int, data_format: str, strides: Any, padding: Any, dilations: Any) -> dict[str, Any]:
    kind, explicit = padding_of(padding)
    return {
        "strides": sequence(strides, n, data_format, "strides"),
        "padding": kind,
        "explicit_paddings": explicit,
        "data_format": data_format,
        "dilations": sequence(dilations, n, data_format, "dilations"),
    }


def _with_flat_batch(x: Any, inner: int, function: Callable[[Any], Tensor]) -> Tensor:
    """Apply a function to x with all but the last `inner` dimensions flattened; restore them in the result."""
    x = dispatch.to_tensor(x)
    if x.shape.rank is None or x.shape.rank <= inner + 1:
        return function(x)
    batch = x.shape.rank - inner
    sizes = shape_op(x)
    y = function(reshape(x, concat([[-1], sizes[batch:]], 0)))
    return reshape(y, concat([sizes[:batch], shape_op(y)[1:]], 0))


def _convolve(n: int, input: Any, filters: Any, attrs: dict[str, Any], name: str | None) -> Tensor:
    return _with_flat_batch(input, n + 1, lambda x: FORWARD[n](x, filters, **attrs, name=name))


@documented_by(Conv2D)
def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Compute a 2-D convolution. The input may have several batch dimensions."""
    return _convolve(
        2,
        input,
        filters,
        attributes_of(2, check_data_format("Conv2D", data_format, 2), strides, padding, dilations),
        name,
    )


@documented_by(Conv3D)
def conv3d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Compute a 3-D convolution. The input may have several batch dimensions."""
    return _convolve(
        3,
        input,
        filters,
        attributes_of(3, check_data_format("Conv3D", data_format, 3), strides, padding, dilations),
        name,
    )


def _of_rank_2(value: Any, data_format: str, what: str) -> tuple[int, ...]:
    """Convert sizes of one spatial dimension to sizes of two, of which the first is 1."""
    n, width, channels = sequence(value, 1, data_format, what)
    return (n, 1, width, channels) if data_format == "NWC" else (n, width, 1, channels)


def _padding_of_rank_2(padding: Any, data_format: str) -> str | list[Any]:
    if isinstance(padding, str):
        return padding
    pairs = list(padding)
    pairs.insert(1 if data_format == "NWC" else 2, (0, 0))
    return pairs


def conv1d(
    input: Any,
    filters: Any,
    stride: Any,
    padding: Any,
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Compute a 1-D convolution, by Conv2D of images of height 1.

    .. math:: output_{b,p,o} = \\sum_{q,c} input_{b,\\; p \\cdot stride + q \\cdot dilations - before,\\; c}
              \\; filters_{q,c,o}

    input: [batch, width, channels] (or "NCW"), filters: [width, channels / groups, out].
    """
    data_format = check_data_format("conv1d", data_format, 1)
    kind, explicit = padding_of(_padding_of_rank_2(padding, data_format))
    height_axis = -3 if data_format == "NWC" else -2
    attrs = {
        "strides": _of_rank_2(stride, data_format, "stride"),
        "padding": kind,
        "explicit_paddings": explicit,
        "data_format": "NHWC" if data_format == "NWC" else "NCHW",
        "dilations": _of_rank_2(dilations, data_format, "dilations"),
    }
    filters = expand_dims(filters, 0)

    def convolve(x: Any) -> Tensor:
        return squeeze(Conv2D(expand_dims(x, height_axis), filters, **attrs, name=name), [height_axis])

    return _with_flat_batch(input, 2, convolve)


@documented_by(Conv2D)
def convolution(
    input: Any,
    filters: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Compute a convolution over one, two or three dimensions, by the rank of `filters`."""
    filters, input = dispatch.to_tensor(filters), dispatch.to_tensor(input)
    rank = filters.shape.rank if filters.shape.rank is not None else input.shape.rank
    if rank not in (3, 4, 5):
        raise InvalidArgumentError(
            op="convolution",
            node=name,
            what="the number of spatial dimensions is not 1, 2 or 3",
            found=f"input {input.spec.short()}, filters {filters.spec.short()}",
            wanted="filters of rank 3, 4 or 5",
        )
    function: Callable[..., Tensor] = {3: conv1d, 4: conv2d, 5: conv3d}[rank]
    formats = FORMATS[rank - 2]
    if data_format is not None and data_format not in formats:
        data_format = formats[1] if data_format.startswith("NC") else formats[0]
    return function(input, filters, strides, padding, data_format or formats[0], dilations, name=name)


def atrous_conv2d(value: Any, filters: Any, rate: int, padding: Any, name: str | None = None) -> Tensor:
    """Compute a dilated 2-D convolution. rate: the dilation of both image dimensions."""
    return conv2d(value, filters, 1, padding, dilations=rate, name=name)


def as_sizes(output_shape: Any) -> Tensor:
    """Convert a shape, which may contain scalar tensors, to one tensor."""
    if hasattr(output_shape, "spec"):
        result: Tensor = output_shape
        return result
    return dims_tensor([int(d) if isinstance(d, np.integer) else d for d in output_shape])


def _transposed(n: int, input: Any, filters: Any, output_shape: Any, attrs: dict[str, Any], name: str | None) -> Tensor:
    return BY_INPUT[n](as_sizes(output_shape), filters, input, **attrs, name=name)


@documented_by(Conv2DBackpropInput)
def conv2d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Compute a transposed 2-D convolution.

    filters: [height, width, out, channels]; output_shape: of the result, -1 for the batch of the input.
    """
    attrs = attributes_of(2, check_data_format("conv2d_transpose", data_format, 2), strides, padding, dilations)
    return _transposed(2, input, filters, output_shape, attrs, name)


@documented_by(Conv3DBackpropInput)
def conv3d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Compute a transposed 3-D convolution."""
    attrs = attributes_of(3, check_data_format("conv3d_transpose", data_format, 3), strides, padding, dilations)
    return _transposed(3, input, filters, output_shape, attrs, name)


def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Compute a transposed 1-D convolution. filters: [width, out, channels]."""
    data_format = check_data_format("conv1d_transpose", data_format, 1)
    kind, explicit = padding_of(_padding_of_rank_2(padding, data_format))
    height_axis = 1 if data_format == "NWC" else 2
    sizes = dispatch.to_tensor(as_sizes(output_shape))
    y = Conv2DBackpropInput(
        concat([sizes[:height_axis], [1], sizes[height_axis:]], 0),
        expand_dims(filters, 0),
        expand_dims(input, height_axis),
        strides=_of_rank_2(strides, data_format, "strides"),
        padding=kind,
        explicit_paddings=explicit,
        data_format="NHWC" if data_format == "NWC" else "NCHW",
        dilations=_of_rank_2(dilations, data_format, "dilations"),
        name=name,
    )
    return squeeze(y, [height_axis])


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Compute a transposed convolution over one, two or three dimensions, by the length of `output_shape`."""
    sizes = dispatch.to_tensor(as_sizes(output_shape))
    rank = sizes.shape[0] if sizes.shape.rank == 1 else None
    if rank not in (3, 4, 5):
        raise InvalidArgumentError(
            op="conv_transpose", node=name, what="output_shape must have 3, 4 or 5 entries", found=sizes.spec.short()
        )
    function: Callable[..., Tensor] = {3: conv1d_transpose, 4: conv2d_transpose, 5: conv3d_transpose}[rank]
    return function(input, filters, sizes, strides, padding, data_format or FORMATS[rank - 2][0], dilations, name=name)


def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: Any, name: str | None = None
) -> Tensor:
    """Compute the transpose of atrous_conv2d."""
    return conv2d_transpose(value, filters, output_shape, 1, padding, dilations=rate, name=name)
