"""Tiered compilation: a plan of Python lines, replaced by machine code for the input shapes that are called often.

Lives here: `TieredPlan`, the number of calls after which a set of shapes is compiled, and after which its code runs.
Not here: compilation itself (native_plan.py), the thread that it runs on (background.py).

Both numbers follow from the graph and the sizes of its inputs alone, never from the clock: machine code rounds
differently from NumPy, and a program that is run twice has to give the same bits twice. If the code is not there at its
call, the call waits for it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import flags, forks
from ..core.lazy_imports import later
from ..graph import Graph, Value
from .plan import Plan

if TYPE_CHECKING:
    from . import background, native_plan
else:  # most functions are called a few times only
    background = later(".background", __package__)
    native_plan = later(".native_plan", __package__)

FEWEST_CALLS, MOST_CALLS = 3, 50
"""Bounds of the number of calls before the compiler starts."""
MOST_AWAITED = 10_000
"""Maximum number of calls between the start of the compiler and the first call of its code."""
COMPILE_US, PLAN_US = 3000.0, 500.0
"""Estimated time to compile one node, in microseconds, and to plan it for further shapes. Kernels take sizes as
arguments, so that most of those compiled for one set of shapes serve the others. Training steps of 16 tutorials take
1.2 to 10 ms of processor time a node."""
NODE_US, BYTES_PER_US = 3.0, 10_000.0
"""Estimated time of a node of a plain plan: its call, its results."""
PRODUCTS_PER_US = {
    **dict.fromkeys(("Conv", "DepthwiseConv"), 2_000.0),
    **dict.fromkeys(("MatMul", "Einsum", "LSTMSequence", "GRUSequence"), 10_000.0),
    "CTCLoss": 70.0,  # 61 ms for logits [150, 32, 32] and labels [32, 25]
}
"""Multiplications in a microsecond, by the beginning of a contraction's name. Convolutions copy windows: in the same
tutorials they reach 500 to 2,000, products of matrices 5,000. The operator that is none takes as long as one would."""
ITERATIONS = 100
"""Estimated number of times that a loop runs its body; a branch runs once, if at all."""
MOST_COUNTED = 1024
"""Maximum number of sets of shapes whose calls are counted; the oldest is forgotten."""
MANY = 8
"""Number of compiled sets of shapes after which a warning names the function."""

Shape = tuple[int, ...]
Key = tuple[Shape | None, ...]
Run = Callable[..., tuple[Any, ...]]


def call_time(graph: Graph, unknown: int = 1) -> float:
    """Estimate the time of a call of a graph's plain plan, in microseconds. unknown: the size of unknown dimensions.

    A contraction of a [m, k] and b [k, n] takes m k n = sqrt(|a| |b| |a b|) multiplications; the same formula stands
    for convolutions, where it is a lower bound.
    """
    time = 0.0
    for node in graph.nodes:
        results = [_elements(v, unknown) for v in node.outputs]
        time += NODE_US + sum(results) * 4 / BYTES_PER_US
        if rate := next((rate for op, rate in PRODUCTS_PER_US.items() if node.op.name.startswith(op)), None):
            operands = sorted([_elements(v, unknown) for v in node.operands])
            time += math.sqrt(math.prod(operands[-2:]) * max(results)) / rate
        times = [call_time(part, unknown) for part in node.subgraphs]
        time += ITERATIONS * sum(times) if node.op.name == "While" else max(times, default=0.0)
    return time


def _elements(value: Value, unknown: int) -> int:
    if value.dtype.is_handle or value.shape.dims is None:
        return 0 if value.dtype.is_handle else unknown
    return math.prod([unknown if d is None else d for d in value.shape.dims])


def _count(graph: Graph) -> int:
    """Return the number of nodes, those of loops and branches among them."""
    return sum([1 + sum([_count(part) for part in node.subgraphs]) for node in graph.nodes])


def schedule(graph: Graph, unknown: int = 1, node_us: float = COMPILE_US) -> tuple[int, int]:
    """Return the number of the call at which the compiler starts, and of the one that runs its code.

    The compiler starts once calls have taken a twentieth of its own time, by estimate, and its code runs when calls
    since then have taken as long as it has: a function that is called now and then never waits for it. unknown: the
    size of unknown dimensions; node_us: time of the compiler per node.
    """
    if flags.hot_calls:
        return flags.hot_calls, flags.hot_calls + 1
    time, compilation = max(call_time(graph, unknown), NODE_US), node_us * _count(graph)
    start = min(MOST_CALLS, max(FEWEST_CALLS, math.ceil(compilation / 20 / time)))
    return start, start + min(MOST_AWAITED, math.ceil(compilation / time))


class _Candidate:
    """A set of shapes that has not been compiled. calls: so far; start, switch: the numbers of the calls at which the
    compiler starts and at which its code runs; plan: the one that it made."""

    __slots__ = ("calls", "job", "plan", "start", "switch")

    def __init__(self, start: float, switch: float) -> None:
        self.calls, self.start, self.switch = 0, start, switch
        self.job: background.Job | None = None
        self.plan: Plan | None = None


class TieredPlan:
    """A plain plan, and machine code for the input shapes that are called often: `run(*inputs) -> tuple of outputs`.

    graph: its source. compile_us: as COMPILE_US; warns: whether a warning names the function after `MANY` sets of
    shapes. Shapes that are called once or twice never occupy the compiler; at most `native_plan.MOST` sets of them are
    kept compiled.
    """

    def __init__(self, graph: Graph, compile_us: float = COMPILE_US, warns: bool = True) -> None:
        self.graph, self._compile_us, self._warns = graph, compile_us, warns
        self._plain = Plan(graph)
        self._native: native_plan.NativePlan | None = None
        self._lock = forks.lock()
        self._fixed = all(v.dtype.is_handle or v.shape.is_fully_defined() for v in graph.inputs)
        self._candidates: dict[Key, _Candidate] = {}
        self._compiled: dict[Key, Plan] = {}
        self._number = 0
        self._schedules: dict[tuple[int, float], tuple[int, int]] = {}
        self.run: Run = self._run

    def _run(self, *inputs: Any) -> tuple[Any, ...]:
        return self._chosen(inputs).run(*inputs)

    def consume(self, inputs: list[Any]) -> tuple[Any, ...]:
        """Implement `run(*inputs)` on a list, which it empties, so that an input without other references dies at its
        last use."""
        return self._chosen(inputs).consume(inputs)

    def _chosen(self, inputs: Sequence[Any]) -> Plan:
        key = () if self._fixed else tuple([a.shape if type(a) is np.ndarray else None for a in inputs])
        return self._compiled.get(key) or self._count(key, inputs)

    def _count(self, key: Key, inputs: Sequence[Any]) -> Plan:
        """Return the plan for one more call of shapes that are not compiled."""
        with self._lock:
            candidate = self._candidates.get(key) or self._candidate(key, inputs)
            candidate.calls += 1
            if candidate.calls != candidate.start and candidate.calls < candidate.switch:
                return self._plain
            shapes = [None if v.dtype.is_handle else np.shape(a) for a, v in zip(inputs, self.graph.inputs)]
            if candidate.calls == candidate.start:
                candidate.job = background.compiling.submit(lambda: self._compile(candidate, shapes))
                return self._plain
        if candidate.job is not None:
            candidate.job.run()
            candidate.job.wait()
        return self._switch(key, candidate.plan or self._compile(candidate, shapes))

    def _compile(self, candidate: _Candidate, shapes: Sequence[Shape | None]) -> Plan:
        """Return the plan for these shapes, also kept as `candidate.plan`: the plain one if nothing can be compiled.

        The user has not asked for machine code, so that no fault of the compiler is an error of the call.
        """
        with self._lock:
            native = self._native = self._native or native_plan.NativePlan(self.graph, warns=False)
        try:
            plan = native.plan_for(shapes)
        except Exception as error:
            plan, fault = None, f"{type(error).__name__}: {error}"
            warnings.warn(f"{self.graph.name} is not compiled: {fault}", RuntimeWarning, stacklevel=2)
        candidate.plan = plan or self._plain
        return candidate.plan

    def _candidate(self, key: Key, inputs: Sequence[Any]) -> _Candidate:
        while len(self._candidates) >= MOST_COUNTED:
            del self._candidates[next(iter(self._candidates))]
        arrays = [a for a, v in zip(inputs, self.graph.inputs) if not v.dtype.is_handle]
        are_arrays = all(isinstance(a, (np.ndarray, np.generic)) for a in arrays)  # and no lists of tensors
        bounds = self._schedule(inputs) if are_arrays else (math.inf, math.inf)
        candidate = self._candidates[key] = _Candidate(*bounds)
        return candidate

    def _schedule(self, inputs: Sequence[Any]) -> tuple[int, int]:
        """Return the schedule for inputs of these sizes: one for each power of two of the largest unknown dimension.

        Once kernels are there for one set of shapes, others are scheduled by the time that planning takes.
        """
        sizes = [
            size
            for a, v in zip(inputs, self.graph.inputs)
            if not v.dtype.is_handle and v.shape.dims is not None and v.shape.rank == np.ndim(a)
            for size, dim in zip(np.shape(a), v.shape.dims)
            if dim is None
        ]
        key = power, node_us = max(sizes, default=1).bit_length(), PLAN_US if self._number else self._compile_us
        if key not in self._schedules:
            self._schedules[key] = schedule(self.graph, 1 << power >> 1 or 1, node_us)
        return self._schedules[key]

    def _switch(self, key: Key, plan: Plan) -> Plan:
        """Run these shapes by that plan from now on; return it."""
        with self._lock:
            if key in self._compiled:
                return self._compiled[key]
            self._candidates.pop(key, None)
            while len(self._compiled) >= native_plan.MOST:
                del self._compiled[next(iter(self._compiled))]
            self._compiled[key] = plan
            self._number += plan is not self._plain
            many = self._warns and plan is not self._plain and self._number == MANY
        if self._fixed:
            self.run = plan.run
        if many:
            warnings.warn(
                f"{self.graph.name} has been compiled for {MANY} sets of input shapes. Pad inputs to a few sizes, or "
                f"pass jit_compile=False to ow.function",
                RuntimeWarning,
                stacklevel=2,
            )
        return plan

    def explain(self, error: Exception, inputs: Sequence[Any] = ()) -> Exception:
        """Implement Plan.explain for the plan that raised the error."""
        explained = self._plain.explain(error, inputs)
        return explained if explained is not error or self._native is None else self._native.explain(error, inputs)

    def __str__(self) -> str:
        return str(self._native) if self._native is not None and self._compiled else str(self._plain)
