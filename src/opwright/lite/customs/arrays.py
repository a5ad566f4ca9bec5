"""Data movement and partial sorting: Roll, BroadcastGradientArgs, and the first k in the official kernels' order.

Lives here: the two operators, as TensorFlow's converter writes them; `falling`.
Not here: the catalogue's Roll (ops/array), which elements are sorted (detection.py).

Official kernels select the first k by C++'s `partial_sort`, which is not stable: the order of equal values, such as the
scores of quantised models, follows from its heap. `falling` performs the same steps: it builds a heap of the first k
with the least at the top, replaces the top by each greater element of the rest, and takes the heap apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import any_dtype, int32, int64
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from ..ops.shapes import axis_in, ints, refuse, same, spec, text
from .definition import custom_operator

_INDEX = (int32, int64)


@custom_operator("Roll")
class Roll:
    """Elements moved along axes; those that pass the end come in at the front.

    .. math:: y_{..., (i + shift) \\bmod n, ...} = x_{..., i, ...}

    x: any type and shape; shift, axis: one number each, or lists of one length; axes may be negative, and of an axis
    named twice the shifts add up.
    """

    x = Input(any_dtype)
    shift = Input(_INDEX)
    axis = Input(_INDEX)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        shift, axis = op.shift.spec.shape, op.axis.spec.shape
        if (shift.rank or 0) > 1 or (axis.rank or 0) > 1 or not same(shift.num_elements(), axis.num_elements()):
            raise refuse(
                "shift and axis do not fit each other",
                found={"shift": text(shift), "axis": text(axis)},
                wanted="one number each, or lists of one length",
            )
        axes = ints(op.axis)
        if axes is not None and op.x.spec.shape.rank is not None:
            for one in axes:
                axis_in(one, op.x.spec.shape.rank)
        return op.x.spec

    def compute(op: Any, x: Any, shift: Any, axis: Any) -> Any:
        axes = [axis_in(int(a), x.ndim) for a in axis.reshape(-1)]
        return np.roll(x, [int(s) for s in shift.reshape(-1)], axes)


@custom_operator("BroadcastGradientArgs")
class BroadcastGradientArgs:
    """By which axes of a broadcast result the gradients of its two operands are summed.

    .. math:: axes_a = \\{i : a_i = 1 \\ne b_i\\} \\cup \\{i : a_i = b_i = 1\\}, \\quad axes_b \\text{ likewise}

    a, b: shapes, int32 or int64 [rank]; the shorter one has ones before it. Both lists are empty where a = b.
    """

    a = Input(_INDEX, rank=1)
    b = Input(_INDEX, like="a", rank=1)
    axes_a = Output(like="a")
    axes_b = Output(like="a")

    def infer(op: Any) -> Any:
        found = spec((None,), op.a.spec.dtype)
        return found, found

    def compute(op: Any, a: Any, b: Any) -> Any:
        if a.shape == b.shape and np.array_equal(a, b):
            return np.zeros(0, a.dtype), np.zeros(0, a.dtype)
        rank = max(len(a), len(b))
        one, other = (np.concatenate([np.ones(rank - len(s), s.dtype), s]) for s in (a, b))
        if np.any((one != other) & (one != 1) & (other != 1)):
            raise refuse(
                "the shapes do not broadcast",
                found={"a": a.tolist(), "b": b.tolist()},
                wanted="sizes that are equal or 1, aligned at the last dimension",
            )
        return tuple(np.flatnonzero(s == 1).astype(a.dtype) for s in (one, other))


def falling(values: np.ndarray, k: int) -> list[int]:
    """Indices of the k greatest, the greatest first. values: float32 [n]; 1 <= k <= n."""
    if k == 1:
        return [int(np.argmax(values))]
    if len(np.unique(values)) == len(values):
        return [int(i) for i in np.argsort(-values, kind="stable")[:k]]
    listed = values.tolist()
    return _partial_sort(listed, list(range(len(listed))), k)


def _partial_sort(values: list[float], indices: list[int], k: int) -> list[int]:
    for parent in range(k // 2 - 1, -1, -1):
        _sift(values, indices, parent, k, indices[parent])
    for i in range(k, len(indices)):
        if values[indices[i]] > values[indices[0]]:
            taken, indices[i] = indices[i], indices[0]
            _sift(values, indices, 0, k, taken)
    for last in range(k - 1, 0, -1):
        taken, indices[last] = indices[last], indices[0]
        _sift(values, indices, 0, last, taken)
    return indices[:k]


def _sift(values: list[float], heap: list[Any], hole: int, size: int, taken: int) -> None:
    """Put `taken` where the heap [0, size) has a hole: the hole goes down to a leaf, then `taken` rises from there."""
    top, child = hole, hole
    while child < (size - 1) // 2:
        child = 2 * child + 2
        if values[heap[child]] > values[heap[child - 1]]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * child + 1
        heap[hole] = heap[child]
        hole = child
    while hole > top and values[heap[(hole - 1) // 2]] > values[taken]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = taken
