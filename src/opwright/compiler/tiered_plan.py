"""Tiered compilation: a plan of Python lines, replaced by machine code for the input shapes that are called often.

Lives here: `TieredPlan`, which counts the calls of each set of shapes.
Not here: at which call the compiler starts and at which its code runs (compile_schedule.py), compilation itself
(native_plan.py), the thread that it runs on (background.py).

If the code is not there at its call, the call waits for it, so that the clock never decides which result comes from
machine code. With an empty cache the compiler is late; the calls before that one wait for it, too, each for its share,
so that none waits for seconds. Estimates are left to the second call, as a first one is never compiled.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import flags, forks
from ..core.lazy_imports import later
from ..graph import Graph
from .plan import Plan

if TYPE_CHECKING:
    from . import background, compile_schedule, native_plan
    from .native import store
else:  # most functions are called a few times only
    background = later(".background", __package__)
    compile_schedule = later(".compile_schedule", __package__)
    native_plan = later(".native_plan", __package__)
    store = later(".native.store", __package__)

MOST_COUNTED = 1024
"""Maximum number of sets of shapes whose calls are counted; the oldest is forgotten."""
MANY = 8
"""Number of compiled sets of shapes after which a warning names the function."""

Shape = tuple[int, ...]
Key = tuple[Shape | None, ...]
Run = Callable[..., tuple[Any, ...]]


class _Candidate:
    """A set of shapes that has not been compiled. calls: so far; start, switch: the numbers of the calls at which the
    compiler starts and at which its code runs, 0 before they are estimated; plan: the one that it made; began: when the
    compiler did, and how many kernels it had compiled before; last: when the last call that could wait for
    it was done with that."""

    __slots__ = ("began", "calls", "job", "last", "plan", "start", "switch")

    def __init__(self) -> None:
        self.calls, self.start, self.switch = 0, 0.0, 0.0
        self.began: tuple[float, int] | None = None
        self.last = 0.0
        self.job: background.Job | None = None
        self.plan: Plan | None = None


class TieredPlan:
    """A plain plan, and machine code for the input shapes that are called often: `run(*inputs) -> tuple of outputs`.

    graph: its source. compile_us: time to compile it for the first set of shapes, by default as estimated; warns:
    whether a warning names the function after `MANY` sets of shapes. Shapes that are called once or twice never occupy
    the compiler; at most `native_plan.MOST` sets of them are kept compiled.
    """

    def __init__(self, graph: Graph, compile_us: float | None = None, warns: bool = True) -> None:
        self.graph, self._compile_us, self._warns = graph, compile_us, warns
        self._plain = Plan(graph)
        self._native: native_plan.NativePlan | None = None
        self._lock = forks.lock()
        self._fixed = all(v.dtype.is_handle or v.shape.is_fully_defined() for v in graph.inputs)
        self._candidates: dict[Key, _Candidate] = {}
        self._compiled: dict[Key, Plan] = {}
        self._number = 0
        self._schedules: dict[tuple[int, bool], tuple[int, int]] = {}
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
            candidate = self._candidates.get(key) or self._candidate(key)
            candidate.calls += 1
            if not candidate.start:
                if candidate.calls == 1 and flags.hot_calls != 1:
                    return self._plain
                candidate.start, candidate.switch = self._bounds(inputs)
            calls = candidate.calls
            if calls == candidate.start:
                shapes = self._shapes(inputs)
                candidate.job = background.compiling.submit(lambda: self._compile(candidate, shapes))
                return self._plain
        if calls < candidate.switch:
            if candidate.began is not None:
                self._keep_pace(candidate, calls)
            return self._plain
        if candidate.job is not None:
            candidate.job.run()
            candidate.job.wait()
        return self._switch(key, candidate.plan or self._compile(candidate, self._shapes(inputs)))

    def _shapes(self, inputs: Sequence[Any]) -> list[Shape | None]:
        return [None if v.dtype.is_handle else np.shape(a) for a, v in zip(inputs, self.graph.inputs)]

    def _keep_pace(self, candidate: _Candidate, calls: int) -> None:
        """Wait for a share of the compiler's time, if it compiles kernels that the cache lacks. calls: so far."""
        job, began, now = candidate.job, candidate.began, time.perf_counter()
        if job is None or began is None or job.done or store.num_not_found() == began[1]:
            return
        if candidate.last:
            expected, left = compile_schedule.cold_time(self.graph) / 1e6, candidate.switch - calls + 1
            seconds = compile_schedule.patience(expected, now - began[0], left, now - candidate.last)
            if seconds:
                job.wait(seconds)
                now = time.perf_counter()
        candidate.last = now

    def _compile(self, candidate: _Candidate, shapes: Sequence[Shape | None]) -> Plan:
        """Return the plan for these shapes, also kept as `candidate.plan`: the plain one if nothing can be compiled.

        The user has not asked for machine code, so that no fault of the compiler is an error of the call.
        """
        candidate.began = time.perf_counter(), store.num_not_found()
        with self._lock:
            native = self._native = self._native or native_plan.NativePlan(self.graph, warns=False)
        try:
            plan = native.plan_for(shapes)
        except Exception as error:
            plan, fault = None, f"{type(error).__name__}: {error}"
            warnings.warn(f"{self.graph.name} is not compiled: {fault}", RuntimeWarning, stacklevel=2)
        candidate.plan = plan or self._plain
        return candidate.plan

    def _candidate(self, key: Key) -> _Candidate:
        while len(self._candidates) >= MOST_COUNTED:
            del self._candidates[next(iter(self._candidates))]
        candidate = self._candidates[key] = _Candidate()
        return candidate

    def _bounds(self, inputs: Sequence[Any]) -> tuple[float, float]:
        """Return the schedule for these inputs; never, if lists of tensors are among them."""
        arrays = [a for a, v in zip(inputs, self.graph.inputs) if not v.dtype.is_handle]
        are_arrays = all(isinstance(a, (np.ndarray, np.generic)) for a in arrays)
        return self._schedule(inputs) if are_arrays else (math.inf, math.inf)

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
        key = power, is_further = max(sizes, default=1).bit_length(), self._number > 0
        if key not in self._schedules:
            compilation = compile_schedule.planning_time(self.graph) if is_further else self._compile_us
            self._schedules[key] = compile_schedule.schedule(self.graph, 1 << power >> 1 or 1, compilation)
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
