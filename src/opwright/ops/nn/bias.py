"""Bias addition.

Lives here: BiasAdd and its gradient BiasAddGrad.  Not here: addition with broadcasting (ops/math/).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import numeric
from ...core.errors import InvalidArgumentError
from .. import dispatch
from ..array import zeros_like
from ..attributes import Attr, one_of
from ..definition import operator
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..windows import wide

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..tensor import Tensor


def _channel_axis(op: Any, rank: int) -> int:
    """Return the channel dimension of a tensor of the given rank. Raises InvalidArgumentError for ranks below 2."""
    if rank < 2:
        raise InvalidArgumentError(
            what="the rank must be at least 2", found=f"rank {rank}", wanted="[batch, ..., channels]"
        )
    return 1 if op.data_format == "NCHW" else rank - 1


@operator
class BiasAdd(OperatorDefinition):
    """Add a bias to each channel.

    .. math:: output_{..., c} = value_{..., c} + bias_c

    value: [batch, ..., channels], with data_format NCHW [batch, channels, ...]; bias: [channels].
    raises InvalidArgumentError if the numbers of channels differ
    """

    value = Input(numeric)
    bias = Input(numeric, like="value", rank=1)
    output = Output(like="value")
    data_format = Attr(str, default="NHWC", check=one_of("NHWC", "NCHW"))
    inplace = {"output": "value"}
    lod = "as value"

    def infer(op) -> TensorSpec:
        shape, bias = op.value.spec.shape, op.bias.spec.shape
        if shape.dims is None:
            return op.value.spec
        axis = _channel_axis(op, len(shape))
        if bias.rank == 1 and None not in (bias[0], shape[axis]) and bias[0] != shape[axis]:
            position = "last" if axis == len(shape) - 1 else "second"
            raise InvalidArgumentError(
                what=f"Must provide as many biases as the {position} dimension of the input tensor: "
                f"{list(bias)} vs. {list(shape)}",
                found=f"value {op.value.spec.short()}, bias {op.bias.spec.short()}",
            )
        return op.value.spec

    def compute(op, value: np.ndarray, bias: np.ndarray, *, out: Any = None) -> np.ndarray:
        axis = _channel_axis(op, value.ndim)
        if bias.shape[0] != value.shape[axis]:
            raise InvalidArgumentError(
                what=f"Must provide as many biases as channels: {bias.shape[0]} vs. {value.shape[axis]}"
            )
        output: np.ndarray = np.add(value, bias.reshape([-1 if i == axis else 1 for i in range(value.ndim)]), out)
        return output

    def gradient(op, doutput: Any) -> tuple[Any, Tensor]:
        return doutput, BiasAddGrad(doutput, data_format=op.data_format)


@operator
class BiasAddGrad(OperatorDefinition):
    """Compute the gradient of a bias: sum over all dimensions but the channels.

    .. math:: output_c = \\sum_{...} out\\_backprop_{..., c}
    """

    out_backprop = Input(numeric)
    output = Output(like="out_backprop")
    data_format = Attr(str, default="NHWC", check=one_of("NHWC", "NCHW"))
    no_need_buffer = ("out_backprop",)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        shape = op.out_backprop.spec.shape
        return op.out_backprop.spec.with_shape([None if shape.dims is None else shape[_channel_axis(op, len(shape))]])

    def compute(op, out_backprop: np.ndarray) -> np.ndarray:
        axis = _channel_axis(op, out_backprop.ndim)
        axes = tuple(i for i in range(out_backprop.ndim) if i != axis)
        output: np.ndarray = np.sum(out_backprop, axes, dtype=wide(out_backprop.dtype)).astype(out_backprop.dtype)
        return output

    def gradient(op, doutput: Any) -> Tensor:
        return BiasAdd(zeros_like(op.out_backprop), doutput, data_format=op.data_format)


@documented_by(BiasAdd)
def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """Add a bias to each channel. data_format: channels are the second dimension if it begins with "NC"."""
    if data_format is not None and not data_format.startswith("N"):
        raise InvalidArgumentError(
            op="BiasAdd",
            node=name,
            what="`data_format` must be of the form `N...C` or `NC...`",
            found=repr(data_format),
        )
    second = data_format is not None and data_format.startswith("NC")
    value = dispatch.to_tensor(value)
    return BiasAdd(value, bias, data_format="NCHW" if second else "NHWC", name=name)
