"""The public functions of convolution, under TensorFlow's names: arguments as callers write them become attributes.

Lives here: conv1d ... conv3d, their transposes, convolution, depthwise_conv2d, separable_conv2d, atrous_conv2d.
Not here: the operators (convolution.py, depthwise.py).

strides and dilations are one number, one a spatial dimension, or one a dimension of the input; padding is "SAME",
"VALID" or a list of (before, after) pairs, one a dimension of the input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import InvalidArgumentError
from .. import dispatch
from ..array import concat, expand_dims, reshape, squeeze
from ..array.shaping import dims_tensor, shape_op
from ..windows import FORMATS, padding_of, sequence
from .convolution import Conv2D, Conv2DBackpropInput, Conv3D, Conv3DBackpropInput
from .depthwise import DepthwiseConv2dNative, DepthwiseConv2dNativeBackpropFilter, DepthwiseConv2dNativeBackpropInput

FORWARD = {2: Conv2D, 3: Conv3D}
BY_INPUT = {2: Conv2DBackpropInput, 3: Conv3DBackpropInput}


def known_format(op: str, data_format: str | None, n: int) -> str:
    """A data format of n spatial dimensions, by default channels last. Raises InvalidArgumentError."""
    if data_format is None:
        return FORMATS[n][0]
    if data_format not in FORMATS[n]:
        raise InvalidArgumentError(op=op, what="unknown data_format", found=repr(data_format),
                                   wanted=" or ".join(map(repr, FORMATS[n])))  # fmt: skip
    return data_format


def _attrs(n: int, data_format: str, strides: Any, padding: Any, dilations: Any) -> dict[str, Any]:
    kind, explicit = padding_of(padding)
    return {
        "strides": sequence(strides, n, data_format, "strides"),
        "padding": kind,
        "explicit_paddings": explicit,
        "data_format": data_format,
        "dilations": sequence(dilations, n, data_format, "dilations"),
    }


def _one_batch_dimension(x: Any, inner: int, use: Callable[[Any], Any]) -> Any:
    """`use(x)` with all dimensions but the last `inner` folded into one, and unfolded in the result."""
    x = dispatch.to_tensor(x)
    if x.shape.rank is None or x.shape.rank <= inner + 1:
        return use(x)
    batch = x.shape.rank - inner
    sizes = shape_op(x)
    y = use(reshape(x, concat([[-1], sizes[batch:]], 0)))
    return reshape(y, concat([sizes[:batch], shape_op(y)[1:]], 0))


def _convolve(n: int, input: Any, filters: Any, attrs: dict[str, Any], name: str | None) -> Any:
    return _one_batch_dimension(input, n + 1, lambda x: FORWARD[n](x, filters, **attrs, name=name))


def conv2d(input: Any, filters: Any, strides: Any, padding: Any, data_format: str = "NHWC", dilations: Any = None,
           name: str | None = None) -> Any:  # fmt: skip
    """See Conv2D. The input may have several batch dimensions."""
    return _convolve(
        2, input, filters, _attrs(2, known_format("Conv2D", data_format, 2), strides, padding, dilations), name
    )


def conv3d(input: Any, filters: Any, strides: Any, padding: Any, data_format: str = "NDHWC", dilations: Any = None,
           name: str | None = None) -> Any:  # fmt: skip
    """See Conv3D. The input may have several batch dimensions."""
    return _convolve(
        3, input, filters, _attrs(3, known_format("Conv3D", data_format, 3), strides, padding, dilations), name
    )


def _of_rank_2(value: Any, data_format: str, what: str) -> tuple[int, ...]:
    """Sizes of one spatial dimension as sizes of two, the new one first."""
    n, width, channels = sequence(value, 1, data_format, what)
    return (n, 1, width, channels) if data_format == "NWC" else (n, width, 1, channels)


def _padding_of_rank_2(padding: Any, data_format: str) -> Any:
    if isinstance(padding, str):
        return padding
    pairs = list(padding)
    pairs.insert(1 if data_format == "NWC" else 2, (0, 0))
    return pairs


def conv1d(input: Any, filters: Any, stride: Any, padding: Any, data_format: str = "NWC", dilations: Any = None,
           name: str | None = None) -> Any:  # fmt: skip
    """Convolution over one dimension: Conv2D of images of height 1.

    input: [batch, width, channels] (or "NCW"), filters: [width, channels / groups, out].
    """
    data_format = known_format("conv1d", data_format, 1)
    kind, explicit = padding_of(_padding_of_rank_2(padding, data_format))
    at = -3 if data_format == "NWC" else -2
    attrs = {
        "strides": _of_rank_2(stride, data_format, "stride"),
        "padding": kind,
        "explicit_paddings": explicit,
        "data_format": "NHWC" if data_format == "NWC" else "NCHW",
        "dilations": _of_rank_2(dilations, data_format, "dilations"),
    }
    filters = expand_dims(filters, 0)

    def use(x: Any) -> Any:
        return squeeze(Conv2D(expand_dims(x, at), filters, **attrs, name=name), [at])

    return _one_batch_dimension(input, 2, use)


def convolution(input: Any, filters: Any, strides: Any = None, padding: Any = "VALID", data_format: str | None = None,
                dilations: Any = None, name: str | None = None) -> Any:  # fmt: skip
    """Convolution over one, two or three dimensions, by the rank of `filters`. See Conv2D."""
    filters, input = dispatch.to_tensor(filters), dispatch.to_tensor(input)
    rank = filters.shape.rank if filters.shape.rank is not None else input.shape.rank
    if rank not in (3, 4, 5):
        raise InvalidArgumentError(op="convolution", node=name,
                                   what="the number of spatial dimensions is not 1, 2 or 3",
                                   found=f"input {input.spec.short()}, filters {filters.spec.short()}",
                                   wanted="filters of rank 3, 4 or 5")  # fmt: skip
    function: Any = {3: conv1d, 4: conv2d, 5: conv3d}[rank]
    formats = FORMATS[rank - 2]
    if data_format is not None and data_format not in formats:
        data_format = formats[1] if data_format.startswith("NC") else formats[0]
    return function(input, filters, strides, padding, data_format or formats[0], dilations, name=name)


def atrous_conv2d(value: Any, filters: Any, rate: int, padding: Any, name: str | None = None) -> Any:
    """Conv2D with holes: `rate` is the dilation of both image dimensions."""
    return conv2d(value, filters, 1, padding, dilations=rate, name=name)


# ---- transposed ---------------------------------------------------------------------------------------------------


def _sizes(output_shape: Any) -> Any:
    """A shape that may hold scalar tensors, as one tensor."""
    if hasattr(output_shape, "spec"):
        return output_shape
    return dims_tensor([int(d) if isinstance(d, np.integer) else d for d in output_shape])


def _transposed(n: int, input: Any, filters: Any, output_shape: Any, attrs: dict[str, Any], name: str | None) -> Any:
    return BY_INPUT[n](_sizes(output_shape), filters, input, **attrs, name=name)


def conv2d_transpose(input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME",
                     data_format: str = "NHWC", dilations: Any = None, name: str | None = None) -> Any:  # fmt: skip
    """The transpose of Conv2D: see Conv2DBackpropInput.

    filters: [height, width, out, channels]; output_shape: of the result, a batch of -1 is the input's.
    """
    attrs = _attrs(2, known_format("conv2d_transpose", data_format, 2), strides, padding, dilations)
    return _transposed(2, input, filters, output_shape, attrs, name)


def conv3d_transpose(input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME",
                     data_format: str = "NDHWC", dilations: Any = None, name: str | None = None) -> Any:  # fmt: skip
    """The transpose of Conv3D: see Conv3DBackpropInput."""
    attrs = _attrs(3, known_format("conv3d_transpose", data_format, 3), strides, padding, dilations)
    return _transposed(3, input, filters, output_shape, attrs, name)


def conv1d_transpose(input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME",
                     data_format: str = "NWC", dilations: Any = None, name: str | None = None) -> Any:  # fmt: skip
    """The transpose of conv1d: filters [width, out, channels]."""
    data_format = known_format("conv1d_transpose", data_format, 1)
    kind, explicit = padding_of(_padding_of_rank_2(padding, data_format))
    at = 1 if data_format == "NWC" else 2
    sizes = dispatch.to_tensor(_sizes(output_shape))
    y = Conv2DBackpropInput(
        concat([sizes[:at], [1], sizes[at:]], 0),
        expand_dims(filters, 0),
        expand_dims(input, at),
        strides=_of_rank_2(strides, data_format, "strides"),
        padding=kind,
        explicit_paddings=explicit,
        data_format="NHWC" if data_format == "NWC" else "NCHW",
        dilations=_of_rank_2(dilations, data_format, "dilations"),
        name=name,
    )
    return squeeze(y, [at])


def conv_transpose(input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME",
                   data_format: str | None = None, dilations: Any = None, name: str | None = None) -> Any:  # fmt: skip
    """The transpose of `convolution`, over one, two or three dimensions by the length of `output_shape`."""
    sizes = dispatch.to_tensor(_sizes(output_shape))
    rank = sizes.shape[0] if sizes.shape.rank == 1 else None
    if rank not in (3, 4, 5):
        raise InvalidArgumentError(op="conv_transpose", node=name, what="output_shape must have 3, 4 or 5 entries",
                                   found=sizes.spec.short())  # fmt: skip
    function: Any = {3: conv1d_transpose, 4: conv2d_transpose, 5: conv3d_transpose}[rank]
    return function(input, filters, sizes, strides, padding, data_format or FORMATS[rank - 2][0], dilations, name=name)


def atrous_conv2d_transpose(value: Any, filters: Any, output_shape: Any, rate: int, padding: Any,
                            name: str | None = None) -> Any:  # fmt: skip
    """The transpose of atrous_conv2d."""
    return conv2d_transpose(value, filters, output_shape, 1, padding, dilations=rate, name=name)


# ---- depthwise ----------------------------------------------------------------------------------------------------


def depthwise_conv2d(input: Any, filter: Any, strides: Any, padding: Any, data_format: str | None = None,
                     dilations: Any = None, name: str | None = None) -> Any:  # fmt: skip
    """See DepthwiseConv2dNative."""
    attrs = _attrs(2, known_format("depthwise_conv2d", data_format, 2), strides, padding, dilations)
    return DepthwiseConv2dNative(input, filter, **attrs, name=name)


def depthwise_conv2d_backprop_input(input_sizes: Any, filter: Any, out_backprop: Any, strides: Any, padding: Any,
                                    data_format: str = "NHWC", dilations: Any = (1, 1, 1, 1), name: str | None = None
                                    ) -> Any:  # fmt: skip
    """See DepthwiseConv2dNativeBackpropInput."""
    attrs = _attrs(2, known_format("depthwise_conv2d_backprop_input", data_format, 2), strides, padding, dilations)
    return DepthwiseConv2dNativeBackpropInput(_sizes(input_sizes), filter, out_backprop, **attrs, name=name)


def depthwise_conv2d_backprop_filter(input: Any, filter_sizes: Any, out_backprop: Any, strides: Any, padding: Any,
                                     data_format: str = "NHWC", dilations: Any = (1, 1, 1, 1), name: str | None = None
                                     ) -> Any:  # fmt: skip
    """See DepthwiseConv2dNativeBackpropFilter."""
    attrs = _attrs(2, known_format("depthwise_conv2d_backprop_filter", data_format, 2), strides, padding, dilations)
    return DepthwiseConv2dNativeBackpropFilter(input, _sizes(filter_sizes), out_backprop, **attrs, name=name)


def separable_conv2d(input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any, padding: Any,
                     data_format: str | None = None, dilations: Any = None, name: str | None = None
                     ) -> Any:  # fmt: skip
    """A depthwise convolution, then one of 1 x 1 that mixes the channels.

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
    middle = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(middle, pointwise_filter, 1, "VALID", data_format or "NHWC", name=name)
