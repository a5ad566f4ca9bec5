"""Calls of large tensors by the compiler's kernels: vector code on all threads, for element-wise float32 operators.

Lives here: `kernel_of`, which selects the kernel of a call; which calls are compiled.
Not here: when compiled code takes over (compiler/tiered_plan.py), calls of small tensors (short_calls.py).

A call is a graph of one node, over one axis of unknown size, as a plan that is compiled once its calls take long. The
operator, dtypes, sizes and the number of the call decide, never the clock or the threads, and the result of an element
depends on no other element: a program that is run twice has the same bits. They are those of the same operator in a
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
UNCOUNTED = 2
"""Number of calls before there is a plan that counts them, which takes 0.2 ms."""
MOST = 256
"""Maximum number of operators, by attributes and operands, with a plan; the oldest is forgotten."""

Kernel = Callable[..., Any]
_plans: dict[tuple[Call, tuple[int, ...]], int | tiered_plan.TieredPlan] = {}  # or the number of calls, by ranks


def kernel_of(op: Operator, bound: Call, arrays: Sequence[np.ndarray]) -> Kernel:
    """Return the kernel for a call: a compiled one, or the reference for small or strided arrays and other dtypes.

    op: with a `vector_cost`; arrays: of its inputs
    """
    reference: Kernel = bound.reference
    largest = max(arrays, key=np.size)
    costly = op.profile.vector_cost >= LEAST_COST and op.name not in AS_FAST
    if largest.size < (LEAST_ELEMENTS if costly else LEAST_MOVED) or not flags.jit or flags.deterministic:
        return reference
    shape = largest.shape
    for a in arrays:
        if a.dtype is not dtypes.float32.np or a.shape not in (shape, ()) or not a.flags.c_contiguous:
            return reference
    ranks = tuple([min(a.ndim, 1) for a in arrays])
    plan = _plans.get((bound, ranks), 0)
    if type(plan) is int:
        plan = plan + 1 if plan < UNCOUNTED else _new_plan(op, bound, ranks)
        while len(_plans) >= MOST and (bound, ranks) not in _plans:
            del _plans[next(iter(_plans))]
        _plans[bound, ranks] = plan
        if type(plan) is int:
            return reference
    run: Callable[..., tuple[Any, ...]] = plan.run  # type: ignore[union-attr]  # no number

    def kernel(*operands: np.ndarray) -> np.ndarray:
        (result,) = run(*[a.reshape(-1) if a.ndim else a for a in operands])
        reshaped: np.ndarray = result.reshape(shape)
        return reshaped

    return kernel


def _new_plan(op: Operator, bound: Call, ranks: Sequence[int]) -> tiered_plan.TieredPlan:
    """Return the plan of a graph of one call; of operands of rank 1 the sizes are unknown."""
    inputs = [Value(name, TensorSpec([None] * rank, dtypes.float32)) for name, rank in zip(op.input_names, ranks)]
    (spec,) = op.infer(bound, inputs)
    node = Node(op, inputs, bound.attrs, [spec], op.name)
    ns = WIDE_NS if op.name in WIDE else NS_PER_COST * op.profile.vector_cost
    planned_ns = 4000 / tiered_plan.BYTES_PER_US  # by which plans estimate the time of any node
    compile_us = COMPILE_US * planned_ns / max(ns, planned_ns)
    return tiered_plan.TieredPlan(Graph(op.name, inputs, [node], node.outputs), compile_us, warns=False)
