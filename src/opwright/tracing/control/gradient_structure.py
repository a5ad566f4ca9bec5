"""Forms of gradients of branches and loops, known before the gradients are recorded.

Lives here: the inputs of a body that its outputs depend on by ways that gradients can go; whether a gradient is sparse
rows, and its parts as tensors.
Not here: recording it (branches.py, loop_gradient.py), differentiating (ops/autodiff.py).

Branches must agree on the form of a gradient, and a loop on that of its sum, before any is there. The body's use of
the operand decides: where the body only looks up rows, the gradient is rows, and a large table is never filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.specs import TensorSpec
from ...eager.variable import Variable
from ...ops import array
from ...ops.array.shaping import dims_tensor
from ...ops.autodiff import OpRecord, is_trainable
from ...ops.indexed_slices import IndexedSlices
from .body import Body


def reaching(body: Body, operands: Sequence[Any], targets: Sequence[Any]) -> list[int]:
    """The positions of those inputs that gradients arriving at the targets may reach.

    operands: what the node is given for each input; a variable's gradient is that of the variable.
    """
    live = {id(t) for t in targets}
    for record in reversed(body.trace.recorder.records):
        if type(record) is OpRecord and record.op.gradient_rule is None and record.op.has_gradient_rule:
            continue  # differentiation ends here, by declaration
        if any(id(y) in live for y in record.outputs):
            live.update(id(x) for x in record.inputs)
    found = []
    for i, (operand, placeholder) in enumerate(zip(operands, body.inputs)):
        source = operand if isinstance(operand, Variable) else placeholder
        handle = operand.dtype.name == "resource" and not isinstance(operand, Variable)
        if id(source) in live and is_trainable(source.dtype) and not handle:
            found.append(i)
    return found


_PASSES_ON = frozenset({"Identity", "ReadVariable"})


def gets_rows(body: Body, source: Any, targets: Sequence[Any]) -> bool:
    """Whether gradients that arrive at the targets reach a source (input or variable) as sparse rows, if at all."""
    shape = source.shape
    if not shape.rank or not shape[1:].is_fully_defined():
        return False  # no rows at all need a width too
    live = {id(t) for t in targets}
    for record in reversed(body.trace.recorder.records):
        if any(id(y) in live for y in record.outputs):
            live.update(id(x) for x in record.inputs)
    tables = {id(source)}
    for record in body.trace.recorder.records:
        if not any(id(x) in tables for x in record.inputs) or not any(id(y) in live for y in record.outputs):
            continue
        if type(record) is OpRecord and record.op.name in _PASSES_ON:
            tables.update(id(y) for y in record.outputs)
        elif type(record) is not OpRecord or not _looks_up(record, tables):
            return False
    return not any(id(t) in tables for t in targets)


def _looks_up(record: OpRecord, tables: set[int]) -> bool:
    """Whether all a call does with a table is to look rows up."""
    if any(id(x) in tables for x in record.inputs[1:]):
        return False
    if record.op.name == "EmbeddingRows":
        return True
    call: Any = record.bound
    result: bool = record.op.name == "Gather" and call.axis == 0 and call.batch_dims == 0
    return result


def parts(grad: Any, operand: Any) -> list[Any]:
    """A gradient as values and int64 indices; none at all where there is no gradient."""
    if grad is None:
        return [array.zeros([0, *operand.shape[1:]], operand.dtype), array.zeros([0], "int64")]
    if not isinstance(grad, IndexedSlices):  # every row of it, then
        return [grad, array.range(array.shape(grad, "int64")[0])]
    return [grad.values, array.cast(grad.indices, "int64")]


def part_specs(operand: Any) -> list[TensorSpec]:
    """The types of these parts."""
    return [TensorSpec([None, *operand.shape[1:]], operand.dtype), TensorSpec([None], "int64")]


def together(values: Any, indices: Any, operand: Any) -> IndexedSlices:
    """The gradient out of its parts."""
    known = operand.shape
    return IndexedSlices(values, indices, dims_tensor(known) if known.is_fully_defined() else array.shape(operand))
