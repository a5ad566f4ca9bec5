"""Operators in a model that is being laid out: `x + y` and functions of KerasTensors.

Lives here: the operation that stands for one call of an operator.  Not here: layers proper (layer.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.shapes import TensorShape
from ..ops import dispatch
from ..ops.call import Call
from ..ops.definition import Operator
from . import naming
from .keras_tensor import KerasTensor, Node


class OperatorCall:
    """One operator with its attributes, called on KerasTensors and perhaps constants. It has no weights."""

    def __init__(self, op: Operator, bound: Call, name: str | None = None) -> None:
        self.op, self.bound = op, bound
        self.name = naming.fresh(name or op.name)
        self.nodes: list[Node] = []

    def __call__(self, *inputs: Any) -> Any:
        return dispatch.call(self.op, inputs, self.bound, self.name)

    def __repr__(self) -> str:
        return f"<OperatorCall {self.op.name} name={self.name}>"


def record(op: Operator, inputs: Sequence[Any], bound: Call, name: str | None) -> Any:
    """A node for the call, and the KerasTensors it gives."""
    specs = op.infer(bound, inputs, name)
    flat = [s for spec in specs for s in (spec if isinstance(spec, list) else (spec,))]
    operation = OperatorCall(op, bound, name)
    outputs = [KerasTensor(TensorShape(s.shape), s.dtype, operation.name) for s in flat]
    packed = op.pack_outputs(outputs)
    Node(operation, tuple(inputs), {}, packed)
    return packed

