"""Writing a node's result into the memory of an input that dies: whether it may be, and whether it is.

Lives here: `reuse`, the rule at planning time; `own` and `own_large`, what is still to be asked when the graph runs.
Not here: which names die at a node (writer.py), who declares `inplace` (the operators).

A definition's `inplace` is permission. A plan takes it where all of this holds, first by what the graph says:

    the operator computes by a ufunc, or by a `compute` that takes `out=`, and no other kernel is registered for it
    input and output are there, are different values, and dense: arrays of numbers, not of objects or handles
    this node is the last reader of the input, and reads it once, under no other name
    a node made the input: it is no argument, captured tensor or constant; and that node has nothing to do with state
    each buffer is given once and taken once
    dtypes are equal, shapes are equal for sure or compared at run time, and there are enough bytes for it to pay

and then by what the array says when the line is reached: nobody else holds it, or the array that it is a view of; it is
C-contiguous, aligned and writable. Python counts who holds an array: variables, lists, tensors of the caller, other
views, the first turn of a loop whose variable is still somebody else's. So no kernel can mislead a plan by giving a
view, a broadcast or something it keeps; the memory is then left alone and the result gets an array of its own.
C-contiguous, because a fresh result would be so too: what reads it next sees the same strides and adds in one order.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core.dtypes import DType
from ..graph import Node, Value

LEAST_BYTES = 32768
"""Below, asking (0.15 us) costs more than a fresh array. float32 a + b in us, fresh and into a: 16 KiB 0.9 and 0.9,
64 KiB 2.3 and 1.9, 256 KiB 54 and 6.4, 4 MiB 630 and 113: from where the system gives fresh pages, 5 to 8 times."""


@contextlib.contextmanager
def any_size() -> Iterator[None]:
    """Within it, whatever its size memory is used again where it may be: for checks that this changes no result."""
    global LEAST_BYTES
    before, LEAST_BYTES = LEAST_BYTES, 0
    try:
        yield
    finally:
        LEAST_BYTES = before


_count: Callable[[Any], int] | None = getattr(sys, "getrefcount", None)


def _counts(t: Any) -> tuple[int, int]:
    """References to an array, and to the one it is a view of, as `own` sees them."""
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
    """What `own` counts where nobody else holds the array: it differs among Pythons, which may borrow references."""
    if _count is None:
        return 0, 0
    scope: dict[str, Any] = {"counts": _counts}
    exec(_PROBE, scope)

    def kernel(t: Any, out: Any) -> Any:
        return out

    counts: tuple[int, int] = min(scope["probe"](kernel, lambda: np.empty(8).reshape(2, 4)) for _ in range(3))
    return counts


_ALONE, _BASE_ALONE = _calibrated()


def own(t: Any) -> Any:
    """`t` where its memory may be written: nobody else holds it, it is laid out as a fresh array is, and large."""
    base = t.base
    if t.nbytes < LEAST_BYTES or _count(t) > _ALONE or not t.flags.carray:  # type: ignore[misc]
        return None
    if base is None or (type(base) is np.ndarray and base.base is None and _count(base) <= _BASE_ALONE):  # type: ignore[misc]
        return t
    return None


def own_like(t: Any, *others: Any) -> Any:
    """`own(t)` where the result of broadcasting it with `others` has its shape. Not by a call: that would count."""
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


def reuse(node: Node, names: Any, dying: set[str], made: set[str]) -> tuple[str, str] | None:
    """How a node's line may reuse memory: the source of its `out=`, and the name of the input given up; or None.

    names: of the values. dying: those nobody reads after this node. made: those that nodes made, or turns of a loop.
    """
    op = node.op
    if not op.inplace or not op.profile.writes_out or op.cpu_kernels:
        return None
    output = node.outputs[0]
    if not _is_dense(output):
        return None
    for place in op.profile.inplace_places:
        value = node.inputs[place]
        if type(value) is not Value or value is output or not _is_dense(value) or value.dtype is not output.dtype:
            continue
        name = names[value]
        if name not in dying or name not in made or sum(names[v] == name for v in node.operands) != 1:
            continue
        taken, given = output.shape.dims, value.shape.dims
        if not taken or not given or len(taken) != len(given):
            continue  # scalars do not pay, and an unknown rank may be theirs
        if any(None not in (a, b) and a != b for a, b in zip(taken, given)):
            continue
        if None not in given and math.prod(given) * output.dtype.np.itemsize < LEAST_BYTES:  # type: ignore[arg-type]
            continue
        asked = [name]
        if op.elementwise and (None in given or None in taken):
            asked += [names[v] for v in node.operands if v is not value and v.shape.rank != 0]
        call = "own" if len(asked) == 1 else "own_like"
        return f"{call}({', '.join(asked)})", name
    return None


def _is_dense(value: Value) -> bool:
    return _is_number(value.dtype)


def _is_number(dtype: DType) -> bool:
    return not dtype.is_handle and dtype.np.kind != "O"


def makes_own(node: Node) -> bool:
    """Whether what a node gives may be its own: nothing is that comes from state."""
    return all(_is_number(v.dtype) for v in (*node.operands, *node.outputs))
