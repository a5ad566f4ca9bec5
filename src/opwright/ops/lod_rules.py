"""Rules that say what becomes of a LoD in calls of operators that are not by position in every call.

Lives here: rules that several operators share, for their `lod`.  Not here: what the words do (lod_calls.py).

A rule is given the call, with its attributes, and inputs that have a spec, and gives a word. What the rows of the
result are must be sure: where sizes or axes are known only when the graph runs, the LoD vanishes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

UNCHANGED, VANISHES = "unchanged", "vanishes"
Rule = Callable[[Any], str]


def as_input(name: str) -> str:
    """The word for: the LoD of that input, whatever the others have."""
    return f"as {name}"


def _kept(rows_stay: bool, name: str) -> str:
    return as_input(name) if rows_stay else VANISHES


def _rank(op: Any, name: str) -> int | None:
    value = getattr(op, name)
    result: int | None = (value[0] if isinstance(value, (tuple, list)) else value).spec.shape.rank
    return result


def along(axis: str, data: str, every: bool = True) -> Rule:
    """That of `data`, unless the axis, or one of the axes, in this attribute is its first.

    every: whether None means every axis; else it means none.
    """

    def rule(op: Any) -> str:
        axes = getattr(op, axis)
        if axes is None:
            return _kept(not every, data)
        rank = _rank(op, data)
        given = axes if isinstance(axes, Sequence) else (axes,)
        return _kept(all(a != 0 and (a > 0 or (rank is not None and a != -rank)) for a in given), data)

    return rule


def batched(data: str, core: int) -> Rule:
    """That of `data`, where it has axes before the last `core` ones, which the operator works on."""

    def rule(op: Any) -> str:
        rank = _rank(op, data)
        return _kept(rank is not None and rank > core, data)

    return rule


def added_axis(axis: str, data: str) -> Rule:
    """That of `data`, unless the new axis is put before its first."""

    def rule(op: Any) -> str:
        rank, at = _rank(op, data), getattr(op, axis)
        return _kept(at > 0 or (at < 0 and rank is not None and at + rank + 1 > 0), data)

    return rule


def first_of(constant: str, data: str, holds: Callable[[Any], bool]) -> Rule:
    """That of `data` where the first entry of another input is known while tracing and `holds` is true of it."""

    def rule(op: Any) -> str:
        value = getattr(op, constant).constant
        return _kept(value is not None and value.ndim > 0 and len(value) > 0 and bool(holds(value[0])), data)

    return rule


def reshape(op: Any) -> str:
    """Unchanged where the first size stays, as given or because a row has as many elements as before."""
    old = op.tensor.spec.shape
    new = op.shape.constant
    if old.rank in (None, 0) or new is None or len(new) == 0:
        return VANISHES
    if old[0] is not None and new[0] == old[0]:
        return as_input("tensor")
    row = old[1:].num_elements()
    if new[0] != -1 or row is None:
        return VANISHES
    wanted = 1
    for size in new[1:].tolist():
        wanted *= size
    return _kept(row == wanted and row != 0, "tensor")


def strided_slice(op: Any) -> str:
    """Unchanged where the first axis is taken whole: x[:, 3], x[..., 1:]."""
    rank = _rank(op, "input_")
    if op.ellipsis_mask & 1:  # the first axis is in the ellipsis, if any is
        begin = op.begin.spec.shape[0]
        taken = None if begin is None else begin - 1 - bin(op.new_axis_mask).count("1")
        return _kept(rank is not None and taken is not None and rank > taken, "input_")
    steps = op.strides.constant
    whole = op.begin_mask & 1 and op.end_mask & 1 and steps is not None and len(steps) and steps[0] == 1
    return _kept(bool(whole) and not (op.new_axis_mask | op.shrink_axis_mask) & 1, "input_")


def slice_(op: Any) -> str:
    """Unchanged where the first axis is taken whole."""
    begin, size, rows = op.begin.constant, op.size.constant, op.input.spec.shape
    if begin is None or size is None or not rows.rank or begin[0] != 0:
        return VANISHES
    return _kept(size[0] == -1 or (rows[0] is not None and size[0] == rows[0]), "input")


def squeeze(op: Any) -> str:
    """Unchanged unless the first axis goes."""
    shape = op.input.spec.shape
    if not shape.rank:
        return VANISHES
    if not op.axis:
        return _kept(shape[0] is not None and shape[0] != 1, "input")
    return _kept(all(a % shape.rank for a in op.axis), "input")


def broadcast_to(op: Any) -> str:
    """Unchanged where no axis is put before the first and it keeps its size."""
    wanted, rows = op.shape.constant, op.input.spec.shape
    if wanted is None or rows.rank != len(wanted) or not rows.rank:
        return VANISHES
    return _kept(rows[0] is not None and wanted[0] == rows[0], "input")


def gather(op: Any) -> str:
    """Looked-up rows are in the sequences of the indices; where another axis is looked up in, in those of the table."""
    rank = _rank(op, "params")
    if op.batch_dims:
        return UNCHANGED
    if op.axis == 0 or (rank is not None and op.axis == -rank):
        return as_input("indices")
    return as_input("params")


def matmul(op: Any) -> str:
    """Rows are those of the first matrix as it stands; of stacks of matrices, the stacks."""
    ranks = _rank(op, "a"), _rank(op, "b")
    if ranks == (2, 2):
        return VANISHES if op.transpose_a or getattr(op, "adjoint_a", False) else as_input("a")
    return UNCHANGED if ranks[0] == ranks[1] and ranks[0] is not None else VANISHES


def einsum(op: Any) -> str:
    """Unchanged where the first letter of the first operand is the first of the result."""
    left, _, right = op.equation.replace(" ", "").partition("->")
    first = left.split(",")[0]
    return _kept(bool(first) and first[:1] == right[:1] and first[0].isalpha(), "inputs")


def transpose(op: Any) -> str:
    """Unchanged where the first axis stays first."""
    perm = op.perm
    rank = _rank(op, "a")
    return _kept(rank is not None and rank > 0 and (perm[0] == 0 if perm else rank == 1), "a")


def concat(op: Any) -> str:
    """Along the first axis sequences come after sequences; along others they stay."""
    rank = _rank(op, "values")
    return "joined" if op.axis == 0 or (rank is not None and op.axis == -rank) else UNCHANGED
