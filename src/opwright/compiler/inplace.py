"""In-place results, and the line order of plans in which values die early.

Lives here: `reuse`, the rule at planning time; `own` and `own_like`, the checks that remain at run time;
`shape_readers_first`.
Not here: the names that die at a node (writer.py), declarations of `inplace` (the operators).

A definition's `inplace` is permission to write a result into the memory of an input that dies. A plan takes it if all
of this holds, first by the graph:

    the operator computes by a ufunc, or by a `compute` that takes `out=`, and no other kernel is registered for it
    input and output are there, are different values, and dense: arrays of numbers, not of objects or handles
    this node is the last reader of the input, and reads it once, under no other name
    a node computed the input: it is not an argument, captured tensor or constant; and that node does not access state
    each buffer is reused at most once, by one result
    dtypes are equal, shapes are equal or compared at run time, and the buffer is large enough to be worth it

and then by the array when the line is reached: no other reference to it, or to the array that it is a view of, exists;
it is C-contiguous, aligned and writable. Python counts the references: variables, lists, tensors of the caller, other
views, the first iteration of a loop whose variable has another owner. So a kernel that returns a view, a broadcast or
an array that it keeps cannot mislead a plan: the memory is not reused, and the result is a new array.
C-contiguous, because a new result would be so too: later readers see the same strides and add in one order.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.dtypes import DType
from ..graph import Node, Value

LEAST_BYTES = 32768
"""Minimum bytes of a reused result: below, the check (0.15 us) costs more than a new array. float32 a + b in us, new
and into a: 16 KiB 0.9 and 0.9, 64 KiB 2.3 and 1.9, 256 KiB 54 and 6.4, 4 MiB 630 and 113."""


@contextlib.contextmanager
def any_size() -> Iterator[None]:
    """Reuse memory whatever its size within the context: for checks that this does not change results."""
    global LEAST_BYTES
    before, LEAST_BYTES = LEAST_BYTES, 0
    try:
        yield
    finally:
        LEAST_BYTES = before


_count: Callable[[Any], int] | None = getattr(sys, "getrefcount", None)


def _counts(t: Any) -> tuple[int, int]:
    """Return the reference counts of an array and of its base, as `own` observes them."""
    assert _count is not None
    base = t.base
    return _count(t), _count(base)


_PROBE = """
def probe(kernel, make):
    t1 = make()
    t2 = kernel(t1, out=counts(t1))
    return t2
"""  # as a plan has it: one local name, which is an operand too


def _calibrated() -> tuple[int, int]:
    """Return the counts that `own` observes for an array without other references: Python versions differ, as they may
    borrow references."""
    if _count is None:
        return 0, 0
    scope: dict[str, Any] = {"counts": _counts}
    exec(_PROBE, scope)

    def kernel(t: object, out: np.ndarray | None) -> np.ndarray | None:
        return out

    counts: tuple[int, int] = min(scope["probe"](kernel, lambda: np.empty(8).reshape(2, 4)) for _ in range(3))
    return counts


_ALONE, _BASE_ALONE = _calibrated()


def own(t: np.ndarray) -> np.ndarray | None:
    """Return `t` if its memory may be written: it has no other references, a fresh array's layout, and is large."""
    base = t.base
    if t.nbytes < LEAST_BYTES or _count(t) > _ALONE or not t.flags.carray:  # type: ignore[misc]
        return None
    if base is None or (type(base) is np.ndarray and base.base is None and _count(base) <= _BASE_ALONE):  # type: ignore[misc]
        return t
    return None


def own_like(t: np.ndarray, *others: np.ndarray) -> np.ndarray | None:
    """Return `own(t)` if the result of broadcasting it with `others` has its shape; inlined, as a call would add a
    reference."""
    base, shape = t.base, t.shape
    if t.nbytes < LEAST_BYTES or _count(t) > _ALONE or not t.flags.carray:  # type: ignore[misc]
        return None
    for other in others:
        if other.shape != shape and not _fits(other.shape, shape):
            return None
    if base is None or (type(base) is np.ndarray and base.base is None and _count(base) <= _BASE_ALONE):  # type: ignore[misc]
        return t
    return None


def _fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    return len(shape) <= len(into) and all(a in (1, b) for a, b in zip(shape[::-1], into[::-1]))


def reuse(node: Node, names: Any, dying: set[str], results: set[str]) -> tuple[str, str] | None:
    """Return the source of a node's `out=` argument, and the name of the input whose memory it reuses; or None.

    names: of the values. dying: those without later readers. results: of nodes and loop iterations.
    """
    op = node.op
    if not op.inplace or not op.profile.writes_out or op.cpu_kernels:
        return None
    output = node.outputs[0]
    if not _is_dense(output):
        return None
    for index in op.profile.inplace_places:
        value = node.inputs[index]
        if type(value) is not Value or value is output or not _is_dense(value) or value.dtype is not output.dtype:
            continue
        name = names[value]
        if name not in dying or name not in results or sum(names[v] == name for v in node.operands) != 1:
            continue
        dims, input_dims = output.shape.dims, value.shape.dims
        if not dims or not input_dims or len(dims) != len(input_dims):
            continue  # scalars do not pay, and an unknown rank may be theirs
        if any(None not in (a, b) and a != b for a, b in zip(dims, input_dims)):
            continue
        if None not in input_dims and math.prod(input_dims) * output.dtype.np.itemsize < LEAST_BYTES:  # type: ignore[arg-type]
            continue
        asked = [name]
        if op.elementwise and (None in input_dims or None in dims):
            asked += [names[v] for v in node.operands if v is not value and v.shape.rank != 0]
        call = "own" if len(asked) == 1 else "own_like"
        return f"{call}({', '.join(asked)})", name
    return None


def _is_dense(value: Value) -> bool:
    return _is_number(value.dtype)


def _is_number(dtype: DType) -> bool:
    return not dtype.is_handle and dtype.np.kind != "O"


def makes_own(node: Node) -> bool:
    """Return whether a node's results may be in memory of their own: results read from state are not."""
    return all(_is_number(v.dtype) for v in (*node.operands, *node.outputs))


def shape_readers_first(nodes: Sequence[Node]) -> Sequence[Node]:
    """Return the nodes in an order in which each reader of nothing but the shape of one value follows the value's
    producer, or is first.

    Gradients read shapes of forward values at the end of a recording, which would keep the tensors alive until then.
    Such nodes are pure and return few numbers.
    """
    movable = {node for node in nodes if _reads_a_shape(node)}
    if not movable:
        return nodes
    maker: dict[Value, Node] = {v: node for node in nodes for v in node.outputs}
    behind: dict[Node | None, list[Node]] = {}
    for node in nodes:
        if node in movable:
            (value,) = node.operands
            behind.setdefault(maker.get(value), []).append(node)
    order: list[Node] = []
    waiting = [n for n in reversed(nodes) if n not in movable] + behind.get(None, [])[::-1]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += reversed(behind.get(node, []))
    return order


def _reads_a_shape(node: Node) -> bool:
    op = node.op
    if not getattr(op, "shape_only", ()) or node.effect is not None or len(list(node.operands)) != 1:
        return False
    return (
        set(op.shape_only) == set(op.input_names)
        and all(v.shape.rank in (0, 1) for v in node.outputs)
        and not any(v.shape.rank is None for v in node.outputs)
    )
