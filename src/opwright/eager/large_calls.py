"""Calls of large float32 tensors by the compiler's kernels: vector code on all threads.

Lives here: `kernel_of` and `kernel_of_rows`, which select the kernel of an element-wise call and of a softmax; which
calls are compiled.
Not here: when compiled code takes over (compiler/tiered_plan.py), calls of small tensors (short_calls.py).

A call is a graph of one node, over an axis of unknown size, as a plan that is compiled once its calls take long. The
operator, dtypes, sizes and the number of the call decide, never the clock or the threads, and the result of an element
depends on no other element or row: a program that is run twice has the same bits. They are those of the operator in a
compiled function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes, flags
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
COMPILE_US = 100_000.0
"""Time to compile and load a kernel by itself, in microseconds."""
NS_PER_COST, WIDE_NS = 0.3, 100.0
"""Time of NumPy for an element, in nanoseconds: for each unit of the cost, and of functions rounded from float64."""
WIDE = frozenset({"Erf", "Erfc", "Gelu"})
ROWS = {"Softmax": 14, "LogSoftmax": 14}
"""Operators on rows along the attribute `axis`, with the cost of an element."""
LONGEST_ROW = 4096
"""Maximum number of elements of a row: NumPy, which sums by halves, rounds sums of longer ones less."""
UNCOUNTED = 2
"""Number of calls before there is a plan that counts them, which takes 0.2 ms."""
MOST = 256
"""Maximum number of operators, by attributes and operands, with a plan; the oldest is forgotten."""

Kernel = Callable[..., Any]
Dims = tuple[int | None, ...]
_plans: dict[tuple[Call, tuple[Dims, ...]], int | tiered_plan.TieredPlan] = {}  # or the number of calls, by shapes


def kernel_of(op: Operator, bound: Call, arrays: Sequence[np.ndarray]) -> Kernel:
    """Return the kernel for a call: a compiled one, or the reference for small or strided arrays and other dtypes.

    op: with a `vector_cost`; arrays: of its inputs
    """
    reference: Kernel = bound.reference
    largest = max(arrays, key=np.size)
    costly = op.profile.vector_cost >= LEAST_COST and op.name not in AS_FAST
    if largest.size < (LEAST_ELEMENTS if costly else LEAST_MOVED):
        return reference
    shape = largest.shape
    for a in arrays:
        if a.dtype is not dtypes.float32.np or a.shape not in (shape, ()) or not a.flags.c_contiguous:
            return reference
    return _tiered(op, bound, tuple([(None,) if a.ndim else () for a in arrays]), shape) or reference


def kernel_of_rows(op: Operator, bound: Any, x: np.ndarray) -> Kernel:
    """Return the kernel for a call of an operator of `ROWS`, as `kernel_of`; rows along another axis are strided."""
    large = x.size >= LEAST_ELEMENTS and x.dtype is dtypes.float32.np
    if large and bound.axis in (-1, x.ndim - 1) and x.shape[-1] <= LONGEST_ROW and x.flags.c_contiguous:
        return _tiered(op, bound, ((None, x.shape[-1]),), x.shape) or bound.reference
    reference: Kernel = bound.reference
    return reference


def _tiered(op: Operator, bound: Call, dims: tuple[Dims, ...], shape: tuple[int, ...]) -> Kernel | None:
    """Return the plan of a call as a kernel; None for the first calls, and where nothing is compiled.

    dims: of the operands; shape: of the result
    """
    if not flags.jit or flags.deterministic:  # equal calls have equal bits then, the first one's
        return None
    plan = _plans.get((bound, dims), 0)
    if type(plan) is int:
        plan = plan + 1 if plan < UNCOUNTED else _new_plan(op, bound, dims)
        while len(_plans) >= MOST and (bound, dims) not in _plans:
            _plans.pop(next(iter(_plans)), None)  # unless another thread has removed it
        _plans[bound, dims] = plan
        if type(plan) is int:
            return None
    run: Callable[..., tuple[Any, ...]] = plan.run  # type: ignore[union-attr]  # no number
    shapes = [tuple([-1 if d is None else d for d in one]) for one in dims]

    def kernel(*operands: np.ndarray) -> np.ndarray:
        (result,) = run(*[a.reshape(one) for a, one in zip(operands, shapes)])
        reshaped: np.ndarray = result.reshape(shape)
        return reshaped

    return kernel


def _new_plan(op: Operator, bound: Call, dims: Sequence[Dims]) -> tiered_plan.TieredPlan:
    """Return the plan of a graph of one call on operands of these sizes, None for unknown ones."""
    inputs = [Value(name, TensorSpec(one, dtypes.float32)) for name, one in zip(op.input_names, dims)]
    attrs = {**bound.attrs, "axis": -1} if op.name in ROWS else bound.attrs
    (spec,) = op.infer(op.bind(attrs), inputs)
    node = Node(op, inputs, attrs, [spec], op.name)
    ns = WIDE_NS if op.name in WIDE else NS_PER_COST * (ROWS.get(op.name) or op.profile.vector_cost)
    planned_ns = 4000 / tiered_plan.BYTES_PER_US  # by which plans estimate the time of any node
    compile_us = COMPILE_US * planned_ns / max(ns, planned_ns)
    return tiered_plan.TieredPlan(Graph(op.name, inputs, [node], node.outputs), compile_us, warns=False)
