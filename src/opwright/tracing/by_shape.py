"""What a trace records where an operator reads nothing but the shape of something made outside.

Lives here: `by_shape`.  Not here: captures of tensors that are read (trace.py).

A backward program that asks for the shape of a forward tensor must not keep that tensor from forward to backward. It
captures the shape, a small vector that the forward program computes, and stands in for the tensor by a zero broadcast
to it, which NumPy holds in one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.specs import TensorSpec
from ..ops.array.shaping import BroadcastTo, Shape
from ..ops.definition import Operator
from ..ops.outline import Outline
from .symbolic import SymbolicTensor

if TYPE_CHECKING:
    from .trace import FuncTrace


def by_shape(trace: FuncTrace, op: Operator, inputs: Sequence[Any]) -> list[Any]:
    """The inputs of a call in a trace; those of which it reads the shape alone in a form that captures no elements."""
    return [
        value
        if declared.name not in op.shape_only
        else type(value)(_standing_in(trace, v) for v in value)
        if isinstance(value, (list, tuple))
        else _standing_in(trace, value)
        for declared, value in zip(op.inputs, inputs)
    ]


def _standing_in(trace: FuncTrace, value: Any) -> Any:
    if type(value) is Outline and value.source is not None:
        value = value.source
    foreign = type(value) is SymbolicTensor and value.trace is not trace and value.trace.finished
    if not (foreign or type(value) is Outline) or value.dtype.is_handle or value.constant is not None:
        return value
    return hollow(trace, value)


def hollow(trace: FuncTrace, value: Any) -> SymbolicTensor:
    """A tensor in `trace` that has the shape and dtype of an outline, or of a tensor of a finished trace."""
    zero = np.zeros((), value.dtype.np)
    if value.dtype is dtypes.string:
        zero[()] = b""
    if value.shape.is_fully_defined():
        return trace.constant(np.broadcast_to(zero, tuple(value.shape)), value.dtype, "hollow")
    shape = trace.capture(_shape_of(value))
    one = trace.constant(zero, value.dtype)
    operator: Any = BroadcastTo
    specs = [TensorSpec(value.shape, value.dtype)]
    return trace.record_specs(operator, (one, shape), operator.bind({}), specs, "hollow", None)[0]


def _shape_of(value: SymbolicTensor) -> SymbolicTensor:
    """The shape of a tensor of a finished trace, computed there: once, however often it is asked for."""
    home = value.trace
    known = home.shapes.get(id(value))
    if known is None:
        with home.resumed():
            shape: Any = Shape
            known = home.shapes[id(value)] = shape(value, out_type=dtypes.int64)
    return known
