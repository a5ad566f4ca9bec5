"""Shape assertions and shapes of broadcasts.

Lives here: EnsureShape, BroadcastArgs, `broadcast_static_shape`, `identity_n`, `shape_n`.
Not here: changing a shape (shape_operators.py), assertions on values (debugging).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape, as_shape, broadcast
from .. import array, dispatch, like_device
from ..attributes import Attr
from ..definition import operator
from ..registry import documented_by
from ..shape_inference import shape_from
from ..slots import Input, OperatorDefinition, Output
from .shape_operators import dims_tensor, identity, shape_op

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from .. import signatures
    from ..tensor import Tensor


@operator
class EnsureShape(OperatorDefinition):
    """Return a tensor if its shape is compatible with `shape`, which may be partly unknown.

    .. math:: output = x

    raises InvalidArgumentError for another shape: while tracing if it is known, else at run time
    """

    x = Input()
    output = Output(like="x")
    shape = Attr(TensorShape)
    inplace = {"output": "x"}

    def infer(op) -> TensorSpec:
        shape = op.x.spec.shape
        if not shape.is_compatible_with(op.shape):
            raise _mismatch(shape, op.shape)
        return op.x.spec.with_shape(shape.merge_with(op.shape))

    def compute(op, x: np.ndarray) -> np.ndarray:
        if not op.shape.is_compatible_with(np.shape(x)):
            raise _mismatch(np.shape(x), op.shape)
        return x

    def gradient(op, doutput: Tensor) -> Tensor:
        return doutput


def _mismatch(shape: Any, expected: Any) -> InvalidArgumentError:
    return InvalidArgumentError(what=f"Shape of tensor {shape} is not compatible with expected shape {expected}")


ensure_shape: signatures.EnsureShape = EnsureShape.as_function("ensure_shape")


@operator
class BroadcastArgs(OperatorDefinition):
    """Compute the shape to which two shapes broadcast.

    .. math:: r_i = \\max(s0_i, s1_i)

    s0, s1: int32 or int64 vectors. Output: [larger rank].
    raises InvalidArgumentError if the shapes do not broadcast
    """

    s0 = Input(index, rank=1)
    s1 = Input(index, rank=1, like="s0")
    r0 = Output(like="s0", doc="the common shape")
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        ranks = [op.s0.spec.shape.with_rank(1)[0], op.s1.spec.shape.with_rank(1)[0]]
        broadcast(shape_from(op.s0), shape_from(op.s1))
        return op.s0.spec.with_shape([None if None in ranks else max(ranks)])

    def compute(op, s0: np.ndarray, s1: np.ndarray) -> np.ndarray:
        shape = broadcast(TensorShape(s0.tolist()), TensorShape(s1.tolist()))
        r0: np.ndarray = like_device.array(s0, np.array(tuple(shape), s0.dtype))
        return r0


@documented_by(BroadcastArgs)
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """Return the shape to which two shapes broadcast, as a tensor. shape_x, shape_y: sizes or integer tensors."""
    x, y = (
        dims_tensor(list(s)) if isinstance(s, (list, tuple, TensorShape)) else dispatch.to_tensor(s)
        for s in (shape_x, shape_y)
    )
    if x.dtype is not y.dtype:
        x, y = array.cast(x, dtypes.int64), array.cast(y, dtypes.int64)
    return BroadcastArgs(x, y)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """Return the TensorShape to which two shapes broadcast. Both may be partly unknown.

    raises ValueError if they do not broadcast
    """
    return broadcast(as_shape(shape_x), as_shape(shape_y))


def identity_n(input: Any, name: str | None = None) -> list[Any]:
    """Return each tensor of a list as a new tensor."""
    return [identity(x, name=name) for x in input]


def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """Return a tensor unchanged. Exists for compatibility with programs that mark constants."""
    return identity(input, name=name)


def shape_n(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> list[Any]:
    """Return the shapes of a list of tensors."""
    return [shape_op(x, out_type, name) for x in input]
