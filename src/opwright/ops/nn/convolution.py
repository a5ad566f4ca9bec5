"""Convolutions over two and three dimensions, and their adjoints by input and by filter.

Lives here: Conv2D, Conv3D, Conv2DBackpropInput, Conv2DBackpropFilter, Conv3DBackpropInput, Conv3DBackpropFilter.
Not here: depthwise convolutions (depthwise.py), the functions that call these (convolving.py), the sums
(conv_arrays.py).

The three of a rank are each other's gradients: the convolution is linear in its input and in its filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import floating, index, int32
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from .. import conv_arrays
from ..array.shaping import shape_op
from ..attributes import Attr, one_of
from ..definition import Input, Output, operator
from ..inference import shape_from
from ..windows import FORMATS, PADDINGS, channel_axis, check_sliding, out_size, pairs, spatial_axes, spatial_windows

Dims = Sequence["int | None"]


def known_dims(shape: TensorShape, rank: int) -> Dims:
    """The sizes, all unknown where the rank is. Raises InvalidArgumentError for another rank."""
    if shape.dims is None:
        return (None,) * rank
    if len(shape.dims) != rank:
        raise InvalidArgumentError(what="a shape of the wrong rank", found=str(shape), wanted=f"rank {rank}")
    return shape.dims


def check_depths(image: int | None, depth: int | None, filters: int | None) -> None:
    """Channels of image and filter must agree up to groups. Raises InvalidArgumentError."""
    if image is None or depth is None:
        return
    if depth == 0 or image % depth:
        raise InvalidArgumentError(what=f"input depth must be evenly divisible by filter depth: {image} vs {depth}",
                                   found={"input channels": image, "filter input channels": depth},
                                   wanted="equal numbers, or with groups a multiple")  # fmt: skip
    groups = image // depth
    if filters is not None and groups and filters % groups:
        raise InvalidArgumentError(
            what=f"output depth must be evenly divisible by number of groups: {filters} vs {groups}",
            found={"filters": filters, "groups": groups},
        )


def slid(op: Any, n: int, image: Dims, kernel: Dims, channels: int | None) -> TensorShape:
    """The shape that a kernel sliding over an image gives. Raises InvalidArgumentError for too large a kernel."""
    check_sliding(op, n)
    out: list[int | None] = [image[0]] * (n + 2)
    out[channel_axis(op.data_format)] = channels
    pads = pairs(op.explicit_paddings, n + 2)
    for at, k in zip(spatial_axes(op.data_format), kernel):
        out[at] = out_size(image[at], k, op.strides[at], op.dilations[at], op.padding, pads[at])
    return TensorShape(out)


def check_backprop(op: Any, found: TensorShape, computed: TensorShape, what: str = "out_backprop") -> None:
    """The gradient given must have the shape of the forward result. Raises InvalidArgumentError."""
    if not found.is_compatible_with(computed):
        raise InvalidArgumentError(
            what=f"Size of {what} doesn't match computed",
            found=f"{what} {found}",
            wanted=str(computed),
            do="check output_shape, strides and padding against the formula of the convolution",
        )


def _infer_forward(op: Any, n: int) -> TensorSpec:
    image, kernel = known_dims(op.input.spec.shape, n + 2), known_dims(op.filters.spec.shape, n + 2)
    check_depths(image[channel_axis(op.data_format)], kernel[-2], kernel[-1])
    return op.input.spec.with_shape(slid(op, n, image, kernel, kernel[-1]))


def _infer_by_input(op: Any, n: int) -> TensorSpec:
    wanted = TensorShape(known_dims(shape_from(op.input_sizes), n + 2))
    image, kernel = wanted.dims or (), known_dims(op.filters.spec.shape, n + 2)
    channel = channel_axis(op.data_format)
    check_depths(image[channel], kernel[-2], kernel[-1])
    found = op.out_backprop.spec.shape
    check_backprop(op, found, slid(op, n, image, kernel, kernel[-1]))
    if image[0] is None and found.dims is not None and found[0] is not None:
        wanted = TensorShape([found[0], *image[1:]])  # the batch is the same on both sides
    return op.filters.spec.with_shape(wanted)


def _infer_by_filter(op: Any, n: int) -> TensorSpec:
    kernel, image = known_dims(shape_from(op.filter_sizes), n + 2), known_dims(op.input.spec.shape, n + 2)
    check_depths(image[channel_axis(op.data_format)], kernel[-2], kernel[-1])
    check_backprop(op, op.out_backprop.spec.shape, slid(op, n, image, kernel, kernel[-1]))
    return op.input.spec.with_shape(kernel)


def to_last(x: np.ndarray, data_format: str) -> np.ndarray:
    """With the channels moved to the end."""
    return np.moveaxis(x, channel_axis(data_format), -1)


def from_last(x: np.ndarray, data_format: str) -> np.ndarray:
    """With the channels moved from the end to where `data_format` has them."""
    return np.moveaxis(x, -1, channel_axis(data_format))


def last_shape(sizes: np.ndarray, data_format: str) -> tuple[int, ...]:
    """The sizes of an image with its channels moved to the end."""
    channel = channel_axis(data_format)
    dims = sizes.tolist()
    return (*dims[:channel], *dims[channel + 1 :], dims[channel])


def _compute_forward(op: Any, input: np.ndarray, filters: np.ndarray) -> np.ndarray:
    x = to_last(input, op.data_format)
    check_depths(x.shape[-1], *filters.shape[-2:])
    windows = spatial_windows(op, x.shape[1:-1], filters.shape)
    return from_last(conv_arrays.convolve(op, x, filters, windows), op.data_format)


def _compute_by_input(op: Any, input_sizes: np.ndarray, filters: np.ndarray, out_backprop: np.ndarray) -> np.ndarray:
    dy, shape = to_last(out_backprop, op.data_format), last_shape(input_sizes, op.data_format)
    shape = (dy.shape[0] if shape[0] == -1 else shape[0], *shape[1:])
    check_depths(shape[-1], *filters.shape[-2:])
    windows = spatial_windows(op, shape[1:-1], filters.shape)
    check_backprop(op, TensorShape(dy.shape), TensorShape([shape[0], *(w.out for w in windows), filters.shape[-1]]))
    return from_last(conv_arrays.by_input(dy, filters, shape, windows), op.data_format)


def _compute_by_filter(op: Any, input: np.ndarray, filter_sizes: np.ndarray, out_backprop: np.ndarray) -> np.ndarray:
    x, dy = to_last(input, op.data_format), to_last(out_backprop, op.data_format)
    *kernel, depth, filters = filter_sizes.tolist()
    check_depths(x.shape[-1], depth, filters)
    windows = spatial_windows(op, x.shape[1:-1], kernel)
    check_backprop(op, TensorShape(dy.shape), TensorShape([x.shape[0], *(w.out for w in windows), filters]))
    return conv_arrays.by_filter(x, dy, kernel, depth, windows)


def _define(n: int, taken: Any) -> tuple[Any, Any, Any]:
    """The three operators over n spatial dimensions."""
    rank, ones = n + 2, (1,) * (n + 2)

    @operator(name=f"Conv{n}D")
    class Forward:
        """Convolution as the field has it (cross-correlation) of images with a bank of filters.

        .. math:: output_{b,p,o} = \\sum_{q,c} input_{b,\\; p \\cdot strides + q \\cdot dilations -
                  before,\\; c} \\; filters_{q,c,o}

        input: [batch, *spatial, channels], or with channels second by data_format; filters: [*kernel, channels /
        groups, out]; the number of groups follows from the channels. strides, dilations: one entry a dimension of
        input, 1 for batch and channels. Output sizes: ceil(size / stride) with SAME padding, else
        floor((size + before + after - (kernel - 1) * dilation - 1) / stride) + 1; EXPLICIT takes before and after of
        each dimension from explicit_paddings. 16-bit floats are added up in float32.
        raises InvalidArgumentError if channels do not fit, or the window is larger than the padded image
        """

        input = Input(taken, rank=rank)
        filters = Input(taken, rank=rank, like="input")
        output = Output(like="input")
        strides = Attr([int])
        padding = Attr(str, check=one_of(*PADDINGS))
        explicit_paddings = Attr([int], default=())
        data_format = Attr(str, default=FORMATS[n][0], check=one_of(*FORMATS[n]))
        dilations = Attr([int], default=ones)
        lod = "as input"

        def infer(op) -> Any:
            return _infer_forward(op, n)

        def compute(op, input, filters) -> Any:
            return _compute_forward(op, input, filters)

        def gradient(op, doutput) -> Any:
            x, w = op.input, op.filters
            return ByInput(shape_op(x), w, doutput, **op.attrs), ByFilter(x, shape_op(w), doutput, **op.attrs)

    @operator(name=f"Conv{n}DBackpropInput")
    class ByInput:
        """The gradient of a convolution by its input: the transposed convolution.

        .. math:: output_{b,i,c} = \\sum_{p,q,o :\\; p \\cdot strides + q \\cdot dilations - before
                  = i} out\\_backprop_{b,p,o} \\; filters_{q,c,o}

        input_sizes: the shape of the convolution's input, a batch of -1 is out_backprop's; filters and attributes as
        the convolution's; out_backprop: of its output's shape.
        raises InvalidArgumentError if out_backprop is not of the shape the convolution gives
        """

        input_sizes = Input(index, rank=1)
        filters = Input(taken, rank=rank)
        out_backprop = Input(taken, rank=rank, like="filters")
        output = Output(like="filters")
        strides = Attr([int])
        padding = Attr(str, check=one_of(*PADDINGS))
        explicit_paddings = Attr([int], default=())
        data_format = Attr(str, default=FORMATS[n][0], check=one_of(*FORMATS[n]))
        dilations = Attr([int], default=ones)
        lod = "vanishes"

        def infer(op) -> Any:
            return _infer_by_input(op, n)

        def compute(op, input_sizes, filters, out_backprop) -> Any:
            return _compute_by_input(op, input_sizes, filters, out_backprop)

        def gradient(op, doutput) -> Any:
            w, dy = op.filters, op.out_backprop
            return None, ByFilter(doutput, shape_op(w), dy, **op.attrs), Forward(doutput, w, **op.attrs)

    @operator(name=f"Conv{n}DBackpropFilter")
    class ByFilter:
        """The gradient of a convolution by its filter.

        .. math:: output_{q,c,o} = \\sum_{b,p} input_{b,\\; p \\cdot strides + q \\cdot dilations -
                  before,\\; c} \\; out\\_backprop_{b,p,o}

        input and attributes as the convolution's; filter_sizes: the shape of its filter; out_backprop: of its
        output's shape.
        raises InvalidArgumentError if out_backprop is not of the shape the convolution gives
        """

        input = Input(taken, rank=rank)
        filter_sizes = Input(index, rank=1)
        out_backprop = Input(taken, rank=rank, like="input")
        output = Output(like="input")
        strides = Attr([int])
        padding = Attr(str, check=one_of(*PADDINGS))
        explicit_paddings = Attr([int], default=())
        data_format = Attr(str, default=FORMATS[n][0], check=one_of(*FORMATS[n]))
        dilations = Attr([int], default=ones)
        lod = "vanishes"

        def infer(op) -> Any:
            return _infer_by_filter(op, n)

        def compute(op, input, filter_sizes, out_backprop) -> Any:
            return _compute_by_filter(op, input, filter_sizes, out_backprop)

        def gradient(op, doutput) -> Any:
            x, dy = op.input, op.out_backprop
            return ByInput(shape_op(x), doutput, dy, **op.attrs), None, Forward(x, doutput, **op.attrs)

    return Forward, ByInput, ByFilter


Conv2D, Conv2DBackpropInput, Conv2DBackpropFilter = _define(2, (*floating, int32))
Conv3D, Conv3DBackpropInput, Conv3DBackpropFilter = _define(3, floating)
