"""Rules for the LoD of results, for operators whose effect on it depends on the call.

Lives here: rules that several operators share, for their `lod`.  Not here: the meaning of the words (lod_calls.py).

A rule receives the call, with its attributes, and inputs that have a spec, and returns a word. The rows of the result
must be certain: if sizes or axes are known only at run time, the LoD vanishes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

UNCHANGED, VANISHES = "unchanged", "vanishes"
Rule = Callable[[Any], str]


def as_input(name: str) -> str:
    """Return the word for: the LoD of that input, whatever the others have."""
    return f"as {name}"


def _preserved(rows_stay: bool, name: str) -> str:
    return as_input(name) if rows_stay else VANISHES


def _rank(op: Any, name: str) -> int | None:
    value = getattr(op, name)
    result: int | None = (value[0] if isinstance(value, (tuple, list)) else value).spec.shape.rank
    return result


def along(axis: str, data: str, every: bool = True) -> Rule:
    """Return the rule that preserves the LoD of `data` unless an axis in this attribute is its first.

    every: whether None means every axis; else it means none.
    """

    def rule(op: Any) -> str:
        axes = getattr(op, axis)
        if axes is None:
            return _preserved(not every, data)
        rank = _rank(op, data)
        axes_ = axes if isinstance(axes, Sequence) else (axes,)
        return _preserved(all(a != 0 and (a > 0 or (rank is not None and a != -rank)) for a in axes_), data)

    return rule


def batched(data: str, core: int) -> Rule:
    """Return the rule that preserves the LoD of `data` if it has axes before the last `core` ones."""

    def rule(op: Any) -> str:
        rank = _rank(op, data)
        return _preserved(rank is not None and rank > core, data)

    return rule


def added_axis(axis: str, data: str) -> Rule:
    """Return the rule that preserves the LoD of `data` unless the new axis becomes the first."""

    def rule(op: Any) -> str:
        rank, position = _rank(op, data), getattr(op, axis)
        return _preserved(position > 0 or (position < 0 and rank is not None and position + rank + 1 > 0), data)

    return rule


def first_of(constant: str, data: str, holds: Callable[[Any], bool]) -> Rule:
    """Return the rule that preserves the LoD of `data` if `holds` is true of the first element of a constant input."""

    def rule(op: Any) -> str:
        value = getattr(op, constant).constant
        return _preserved(value is not None and value.ndim > 0 and len(value) > 0 and bool(holds(value[0])), data)

    return rule


def reshape(op: Any) -> str:
    """Preserve the LoD if the first size stays: explicitly, or because rows have as many elements as before."""
    old = op.tensor.spec.shape
    new = op.shape.constant
    if old.rank in (None, 0) or new is None or len(new) == 0:
        return VANISHES
    if old[0] is not None and new[0] == old[0]:
        return as_input("tensor")
    row = old[1:].num_elements()
    if new[0] != -1 or row is None:
        return VANISHES
    row_elements = 1
    for size in new[1:].tolist():
        row_elements *= size
    return _preserved(row == row_elements and row != 0, "tensor")


def strided_slice(op: Any) -> str:
    """Preserve the LoD if the first axis is selected completely: x[:, 3], x[..., 1:]."""
    rank = _rank(op, "input_")
    if op.ellipsis_mask & 1:  # the first axis is in the ellipsis, if any is
        begin = op.begin.spec.shape[0]
        leading = None if begin is None else begin - 1 - bin(op.new_axis_mask).count("1")
        return _preserved(rank is not None and leading is not None and rank > leading, "input_")
    steps = op.strides.constant
    is_full = op.begin_mask & 1 and op.end_mask & 1 and steps is not None and len(steps) and steps[0] == 1
    return _preserved(bool(is_full) and not (op.new_axis_mask | op.shrink_axis_mask) & 1, "input_")


def slice_(op: Any) -> str:
    """Preserve the LoD if the first axis is selected completely."""
    begin, size, rows = op.begin.constant, op.size.constant, op.input.spec.shape
    if begin is None or size is None or not rows.rank or begin[0] != 0:
        return VANISHES
    return _preserved(size[0] == -1 or (rows[0] is not None and size[0] == rows[0]), "input")


def squeeze(op: Any) -> str:
    """Preserve the LoD unless the first axis is removed."""
    shape = op.input.spec.shape
    if not shape.rank:
        return VANISHES
    if not op.axis:
        return _preserved(shape[0] is not None and shape[0] != 1, "input")
    return _preserved(all(a % shape.rank for a in op.axis), "input")


def broadcast_to(op: Any) -> str:
    """Preserve the LoD if no axis is added before the first and its size stays."""
    target, rows = op.shape.constant, op.input.spec.shape
    if target is None or rows.rank != len(target) or not rows.rank:
        return VANISHES
    return _preserved(rows[0] is not None and target[0] == rows[0], "input")


def gather(op: Any) -> str:
    """Return the LoD of the indices, or of the table if another axis is indexed."""
    rank = _rank(op, "params")
    if op.batch_dims:
        return UNCHANGED
    if op.axis == 0 or (rank is not None and op.axis == -rank):
        return as_input("indices")
    return as_input("params")


def matmul(op: Any) -> str:
    """Return the LoD of the first matrix unless transposed; of stacks of matrices, that of the stacks."""
    ranks = _rank(op, "a"), _rank(op, "b")
    if ranks == (2, 2):
        return VANISHES if op.transpose_a or getattr(op, "adjoint_a", False) else as_input("a")
    return UNCHANGED if ranks[0] == ranks[1] and ranks[0] is not None else VANISHES


def einsum(op: Any) -> str:
    """Preserve the LoD if the first index of the first operand is the first of the result."""
    left, _, right = op.equation.replace(" ", "").partition("->")
    first = left.split(",")[0]
    return _preserved(bool(first) and first[:1] == right[:1] and first[0].isalpha(), "inputs")


def transpose(op: Any) -> str:
    """Preserve the LoD if the first axis stays first."""
    perm = op.perm
    rank = _rank(op, "a")
    return _preserved(rank is not None and rank > 0 and (perm[0] == 0 if perm else rank == 1), "a")


def concat(op: Any) -> str:
    """Join the sequences along the first axis; preserve the LoD along others."""
    rank = _rank(op, "values")
    return "joined" if op.axis == 0 or (rank is not None and op.axis == -rank) else UNCHANGED
