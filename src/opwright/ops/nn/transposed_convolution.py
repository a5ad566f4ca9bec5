"""Transposed convolutions, under TensorFlow's names: conv1d_transpose ... conv3d_transpose, conv_transpose,
atrous_conv2d_transpose.

Not here: their operators, gradients by input of convolutions (convolution.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InvalidArgumentError
from .. import dispatch
from ..array import concat, expand_dims, squeeze
from ..array.shape_operators import dims_tensor
from ..registry import documented_by
from ..windows import FORMATS, padding_of
from .convolution import BY_INPUT, Conv2DBackpropInput, Conv3DBackpropInput, attributes_of, of_rank_2, padding_of_rank_2
from .convolution_rules import check_data_format

if TYPE_CHECKING:
    from ..tensor import Tensor


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
    """Compute a transposed 3-D convolution.

    filters: [depth, height, width, out, channels]; output_shape: of the result, -1 for the batch of the input.
    """
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
    """Compute a transposed 1-D convolution: the gradient of `conv1d` by its input.

    input: [batch, width, channels], or [batch, channels, width] with data_format "NCW"; filters: [width, out,
    channels]; output_shape: of the result, three sizes; strides, dilations: a number; padding: "SAME" or "VALID".
    raises InvalidArgumentError if `conv1d` of a tensor of output_shape has not the shape of the input
    """
    data_format = check_data_format("conv1d_transpose", data_format, 1)
    kind, explicit = padding_of(padding_of_rank_2(padding, data_format))
    height_axis = 1 if data_format == "NWC" else 2
    sizes = dispatch.to_tensor(as_sizes(output_shape))
    y = Conv2DBackpropInput(
        concat([sizes[:height_axis], [1], sizes[height_axis:]], 0),
        expand_dims(filters, 0),
        expand_dims(input, height_axis),
        strides=of_rank_2(strides, data_format, "strides"),
        padding=kind,
        explicit_paddings=explicit,
        data_format="NHWC" if data_format == "NWC" else "NCHW",
        dilations=of_rank_2(dilations, data_format, "dilations"),
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
    """Compute a transposed convolution over one, two or three dimensions, by the length of `output_shape`.

    Arguments as of `conv1d_transpose`, `conv2d_transpose` or `conv3d_transpose`; data_format: channels last by default.
    raises InvalidArgumentError unless output_shape has 3, 4 or 5 entries
    """
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
    """Compute the transpose of `atrous_conv2d`: `conv2d_transpose` with stride 1 and dilation `rate`.

    value: [batch, height, width, channels]; filters: [height, width, out, channels]; output_shape: of the result, four
    sizes; padding: "SAME" or "VALID"
    """
    return conv2d_transpose(value, filters, output_shape, 1, padding, dilations=rate, name=name)
