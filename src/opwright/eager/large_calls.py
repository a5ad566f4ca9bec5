"""Calls of large tensors by the compiler's kernels: vector code on all threads.

Lives here: `kernel_of`, which selects the kernel of an element-wise call, and `KERNELS`, which do it for calls along
rows, reductions and convolutions; which calls are compiled.
Not here: when compiled code takes over (compiler/compile_schedule.py), calls of small tensors (short_calls.py).

A call is a graph of one node, over an axis of unknown size, as a plan that is compiled once its calls take long. The
operator, dtypes, sizes and the number of the call decide, never the clock or the threads, and the result of an element
depends on no other element or row: a program that is run twice has the same bits. They are those of the operator in a
compiled function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes, flags
from ..core.dtypes import DType, of_numpy
from ..core.lazy_imports import later
from ..core.specs import TensorSpec
from ..graph import Graph, Node, Value
from ..ops.call import Call
from ..ops.definition import Operator

if TYPE_CHECKING:
    from ..compiler import tiered_plan
else:  # most programs make few large calls
    tiered_plan = later("..compiler.tiered_plan", __package__)

LEAST_ELEMENTS, LEAST_MOVED = 1 << 16, 1 << 23
"""Elements from which functions are compiled; the same for those with which NumPy is as fast on one thread until memory
decides: plans keep that of large results, which the system zeroes for NumPy page by page."""
LEAST_COST = 10
"""Cost (scalar/table.py) of the functions that take longer than their operands to load."""
AS_FAST = frozenset({"Sin", "Cos"})
"""Costly functions with which NumPy is as fast."""
SLOWER = frozenset({"Relu", "Relu6", "Select", "ClipByValue"})
"""Other functions with which NumPy is slower: four times at a million elements, by random conditions more."""
COMPILE_US = 100_000.0
"""Time to compile and load a kernel by itself, in microseconds."""
ROWS = frozenset({"Softmax", "LogSoftmax", "Cumsum"})
"""Operators on rows along the attribute `axis`."""
REDUCTIONS = frozenset({"Sum", "Mean", "ArgMax"})
"""Operators that reduce rows, or all elements; NumPy is as fast with maxima."""
CONVOLUTIONS = frozenset({"Conv2D"})
LONGEST_ROW = 4096
"""Maximum number of elements of a row: NumPy, which sums by halves, rounds sums of longer ones less."""
UNCOUNTED = 2
"""Number of calls before there is a plan that counts them, which takes 0.2 ms."""
MOST = 256
"""Maximum number of operators, by attributes and operands, with a plan; the oldest is forgotten."""

Kernel = Callable[..., Any]
Dims = tuple[int | None, ...]
_Key = tuple[Call, tuple[Dims, ...], Any]
_plans: dict[_Key, int | tiered_plan.TieredPlan] = {}  # or the number of calls, by shapes and dtype


def kernel_of(op: Operator, bound: Call, arrays: Sequence[np.ndarray]) -> Kernel:
    """Return the kernel for a call: a compiled one, or the reference for small or strided arrays and other dtypes.

    op: with a `vector_cost`; arrays: of its inputs
    """
    reference: Kernel = bound.reference
    largest = max(arrays, key=np.size)
    shape, size = largest.shape, largest.size
    if size < LEAST_ELEMENTS:
        return reference
    costly = op.profile.vector_cost >= LEAST_COST and op.name not in AS_FAST
    alike = all(a.shape in (shape, ()) for a in arrays)
    if alike and size < LEAST_MOVED and not costly and op.name not in SLOWER:
        return reference
    for a, declared in zip(arrays, op.inputs):
        expected = dtypes.bool if declared.dtypes == (dtypes.bool,) else dtypes.float32
        if a.dtype is not expected.np or not a.flags.c_contiguous:
            return reference
    dims = tuple([(None,) if a.ndim else () for a in arrays]) if alike else _broadcast_dims(shape, arrays)
    return (_tiered(op, bound, dims, shape, dtypes.float32) if dims else None) or reference


def _broadcast_dims(shape: tuple[int, ...], arrays: Sequence[np.ndarray]) -> tuple[Dims, ...] | None:
    """Return the sizes of operands as matrices of the result's rows, as rows or columns of it, and as numbers.

    None if they broadcast in another way, or to another shape.
    """
    rows = {math.prod(a.shape) for a in arrays if a.shape != shape and a.size > 1 and _is_row(a.shape, shape)}
    length = rows.pop() if rows else shape[-1]
    if rows:
        return None
    dims: list[Dims] = []
    for a in arrays:
        if a.shape == shape:
            dims.append((None, length))
        elif a.size == 1 and a.ndim <= len(shape):
            dims.append(())
        elif _is_row(a.shape, shape):
            dims.append((length,))
        elif a.shape == (*shape[:-1], 1) and length == shape[-1]:
            dims.append((None, 1))
        else:
            return None
    return tuple(dims)


def _is_row(part: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether a shape is that of the last axes, perhaps with axes of size 1 before them."""
    if len(part) > len(shape):
        return False
    kept = part
    while kept and kept[0] == 1:
        kept = kept[1:]
    return kept == shape[len(shape) - len(kept) :]


def _kernel_of_rows(op: Operator, bound: Any, arrays: Sequence[Any]) -> Kernel:
    """Return the kernel for a call of an operator of `ROWS`, as `kernel_of`; rows along another axis are strided."""
    (x,) = arrays
    reference: Kernel = bound.reference
    if x.dtype is not dtypes.float32.np or bound.axis not in (-1, x.ndim - 1):
        return reference
    if x.shape[-1] > LONGEST_ROW or not x.flags.c_contiguous:
        return reference
    return _tiered(op, bound, ((None, x.shape[-1]),), x.shape, dtypes.float32) or reference


def _kernel_of_reduction(op: Operator, bound: Any, arrays: Sequence[Any]) -> Kernel:
    """Return the kernel for a call of an operator of `REDUCTIONS`, as `kernel_of`: over the last axes, or all."""
    (x,) = arrays
    reference: Kernel = bound.reference
    if x.dtype not in _REDUCED or not x.flags.c_contiguous:
        return reference
    rank, axis = x.ndim, bound.axis
    axes = range(rank) if axis is None else sorted([a % rank for a in ((axis,) if type(axis) is int else axis)])
    rest = rank - len(axes)
    if [*axes] != [*range(rest, rank)] or not axes:
        return reference
    dims: Dims = (None, math.prod(x.shape[rest:])) if rest or op.name == "ArgMax" else (None,)
    ones = (1,) * len(axes) if getattr(bound, "keepdims", False) else ()
    return _tiered(op, bound, (dims,), (*x.shape[:rest], *ones), of_numpy(x.dtype)) or reference


_REDUCED = (dtypes.float32.np, dtypes.float64.np)


def _kernel_of_convolution(op: Operator, bound: Any, arrays: Sequence[Any]) -> Kernel:
    """Return the kernel for a call of an operator of `CONVOLUTIONS`, as `kernel_of`: for batches of any size."""
    x, filters = arrays
    dense = x.flags.c_contiguous and filters.flags.c_contiguous
    if x.dtype is dtypes.float32.np and filters.dtype is dtypes.float32.np and dense:
        return _tiered(op, bound, ((None, *x.shape[1:]), filters.shape), None, dtypes.float32) or bound.reference
    reference: Kernel = bound.reference
    return reference


KERNELS: dict[str, Callable[[Operator, Any, Sequence[Any]], Kernel]] = {
    **dict.fromkeys(ROWS, _kernel_of_rows),
    **dict.fromkeys(REDUCTIONS, _kernel_of_reduction),
    **dict.fromkeys(CONVOLUTIONS, _kernel_of_convolution),
}
"""The function that selects the kernel of a call whose first operand has `LEAST_ELEMENTS`, by operator."""


def _tiered(
    op: Operator, bound: Call, dims: tuple[Dims, ...], shape: tuple[int, ...] | None, dtype: DType
) -> Kernel | None:
    """Return the plan of a call as a kernel; None for the first calls, and where nothing is compiled.

    dims: of the operands; shape: of the result, None for the plan's; dtype: of the operands that are not bools
    """
    if not flags.jit or flags.deterministic:  # equal calls have equal bits then, the first one's
        return None
    key = bound, dims, dtype
    plan = _plans.get(key, 0)
    if type(plan) is int:
        plan = plan + 1 if plan < UNCOUNTED else _new_plan(op, bound, dims, dtype)
        while len(_plans) >= MOST and key not in _plans:
            _plans.pop(next(iter(_plans)), None)  # unless another thread has removed it
        _plans[key] = plan
        if type(plan) is int:
            return None
    run: Callable[..., tuple[Any, ...]] = plan.run  # type: ignore[union-attr]  # no number
    shapes = [tuple([-1 if d is None else d for d in one]) for one in dims]

    def kernel(*operands: np.ndarray) -> np.ndarray:
        (result,) = run(*[a.reshape(one) for a, one in zip(operands, shapes)])
        reshaped: np.ndarray = result if shape is None else result.reshape(shape)
        return reshaped

    return kernel


def _new_plan(op: Operator, bound: Call, dims: Sequence[Dims], dtype: DType) -> tiered_plan.TieredPlan:
    """Return the plan of a graph of one call on operands of these sizes, None for unknown ones."""
    kinds = [dtypes.bool if declared.dtypes == (dtypes.bool,) else dtype for declared in op.inputs]
    inputs = [Value(name, TensorSpec(one, kind)) for name, one, kind in zip(op.input_names, dims, kinds)]
    attrs = {**bound.attrs, **_axis_of_rows(op, len(dims[0]))}
    (spec,) = op.infer(op.bind(attrs), inputs)
    node = Node(op, inputs, attrs, [spec], op.name)
    return tiered_plan.TieredPlan(Graph(op.name, inputs, [node], node.outputs), COMPILE_US, warns=False)


def _axis_of_rows(op: Operator, rank: int) -> dict[str, Any]:
    """Return the attributes of a call on rows that differ from those of the user's call. rank: of its operand."""
    if op.name in ROWS:
        return {"axis": -1}
    if op.name in REDUCTIONS:
        return {"axis": rank - 1} if op.name == "ArgMax" else {"axis": (rank - 1,), "keepdims": False}
    return {}
