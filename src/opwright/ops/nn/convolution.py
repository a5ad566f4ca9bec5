"""Convolutions over one to three dimensions, and their gradients.

Lives here: Conv2D, Conv3D, Conv2DBackpropInput, Conv2DBackpropFilter, Conv3DBackpropInput, Conv3DBackpropFilter; under
TensorFlow's names conv1d ... conv3d, convolution, atrous_conv2d.
Not here: their transposes (transposed_convolution.py), depthwise convolutions (depthwise.py), shape rules
(convolution_rules.py), the sums (ops/array_convolution.py).

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
from ...core.specs import TensorSpec
from .. import dispatch
from ..array import concat, expand_dims, reshape, squeeze
from ..array.shape_operators import shape_op
from ..array_convolution import convolve, convolve_by_filter, convolve_by_input
from ..attributes import Attr, one_of
from ..definition import operator
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..windows import FORMATS, PADDINGS, AxisWindow, padding_of, sequence
from .convolution_rules import (
    Dims,
    Filters,
    check_data_format,
    check_depths,
    compute_by_filter,
    compute_by_input,
    compute_forward,
    infer_by_filter,
    infer_by_input,
    infer_forward,
)

if TYPE_CHECKING:
    from ..tensor import Tensor


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


def of_rank_2(value: Any, data_format: str, what: str) -> tuple[int, ...]:
    """Convert sizes of one spatial dimension to sizes of two, of which the first is 1."""
    n, width, channels = sequence(value, 1, data_format, what)
    return (n, 1, width, channels) if data_format == "NWC" else (n, width, 1, channels)


def padding_of_rank_2(padding: Any, data_format: str) -> str | list[Any]:
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
    kind, explicit = padding_of(padding_of_rank_2(padding, data_format))
    height_axis = -3 if data_format == "NWC" else -2
    attrs = {
        "strides": of_rank_2(stride, data_format, "stride"),
        "padding": kind,
        "explicit_paddings": explicit,
        "data_format": "NHWC" if data_format == "NWC" else "NCHW",
        "dilations": of_rank_2(dilations, data_format, "dilations"),
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
