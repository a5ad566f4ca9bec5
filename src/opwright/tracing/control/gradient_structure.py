"""The structure of gradients of branches and loops, determined before they are recorded.

Lives here: the inputs of a body that gradients can reach; whether a gradient is sparse rows, and its parts as tensors.
Not here: recording of gradients (branches.py, loop_gradient.py), differentiation (ops/autodiff.py).

Branches must agree on the structure of a gradient, and a loop on the structure of its sum, before either exists. The
uses of the operand in the body determine it: if the body only looks up rows, the gradient is sparse, and a large table
is never filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.specs import TensorSpec
from ...eager.variable import Variable
from ...ops import array
from ...ops.array.shape_operators import dims_tensor
from ...ops.autodiff import OpRecord, is_trainable
from ...ops.indexed_slices import IndexedSlices
from .body import Body


def reachable_inputs(body: Body, operands: Sequence[Any], targets: Sequence[Any]) -> list[int]:
    """Return the indices of the inputs that gradients of the targets may reach.

    operands: the node's operand for each input; the gradient of a variable is accumulated for the variable.
    """
    live = {id(t) for t in targets}
    for record in reversed(body.trace.recorder.records):
        if type(record) is OpRecord and record.op.gradient_rule is None and record.op.has_gradient_rule:
            continue  # differentiation ends here, by declaration
        if any(id(y) in live for y in record.outputs):
            live.update(id(x) for x in record.inputs)
    indices = []
    for i, (operand, placeholder) in enumerate(zip(operands, body.inputs)):
        source = operand if isinstance(operand, Variable) else placeholder
        handle = operand.dtype.name == "resource" and not isinstance(operand, Variable)
        if id(source) in live and is_trainable(source.dtype) and not handle:
            indices.append(i)
    return indices


_IDENTITIES = frozenset({"Identity", "ReadVariable"})


def is_sparse(body: Body, source: Any, targets: Sequence[Any]) -> bool:
    """Return whether gradients of the targets reach a source (input or variable) as sparse rows, if at all."""
    shape = source.shape
    if not shape.rank or not shape[1:].is_fully_defined():
        return False  # an empty gradient requires a known row size
    live = {id(t) for t in targets}
    for record in reversed(body.trace.recorder.records):
        if any(id(y) in live for y in record.outputs):
            live.update(id(x) for x in record.inputs)
    tables = {id(source)}
    for record in body.trace.recorder.records:
        if not any(id(x) in tables for x in record.inputs) or not any(id(y) in live for y in record.outputs):
            continue
        if type(record) is OpRecord and record.op.name in _IDENTITIES:
            tables.update(id(y) for y in record.outputs)
        elif type(record) is not OpRecord or not _is_lookup(record, tables):
            return False
    return not any(id(t) in tables for t in targets)


def _is_lookup(record: OpRecord, tables: set[int]) -> bool:
    """Return whether a call uses a table only to look up rows."""
    if any(id(x) in tables for x in record.inputs[1:]):
        return False
    if record.op.name == "EmbeddingRows":
        return True
    call: Any = record.bound
    result: bool = record.op.name == "Gather" and call.axis == 0 and call.batch_dims == 0
    return result


def parts(grad: Any, operand: Any) -> list[Any]:
    """Return a gradient as values and int64 indices; empty ones for a missing gradient."""
    if grad is None:
        return [array.zeros([0, *operand.shape[1:]], operand.dtype), array.zeros([0], "int64")]
    if not isinstance(grad, IndexedSlices):  # all rows
        return [grad, array.range(array.shape(grad, "int64")[0])]
    return [grad.values, array.cast(grad.indices, "int64")]


def part_specs(operand: Any) -> list[TensorSpec]:
    """Return the specs of these parts."""
    return [TensorSpec([None, *operand.shape[1:]], operand.dtype), TensorSpec([None], "int64")]


def sparse_rows(values: Any, indices: Any, operand: Any) -> IndexedSlices:
    """Return the gradient with these parts."""
    shape = operand.shape
    return IndexedSlices(values, indices, dims_tensor(shape) if shape.is_fully_defined() else array.shape(operand))
