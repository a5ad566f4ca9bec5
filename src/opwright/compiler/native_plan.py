"""NativePlan: a graph whose native parts run as machine code, compiled for each set of input shapes it is called with.

Lives here: choosing by shapes, falling back to a plain Plan, compiling what is called often, the report on what is
native.
Not here: what becomes native (partitioner.py, cached_regions.py), plans of Python lines (plan.py).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import flags, forks
from ..core.errors import OpError
from ..core.lazy_imports import later
from ..graph import Graph
from . import cached_regions
from .background import compiling
from .calls import function_of
from .plan import Plan
from .regions import CompiledGraph
from .shape_specialization import Shape, specialize

if TYPE_CHECKING:
    from . import partitioner
else:
    partitioner = later(".partitioner", __package__)  # rules and planning, for what the cache does not have

MOST = 64
"""Maximum number of compiled sets of shapes; the oldest is evicted."""
STATE = frozenset({"ReadVariable", "AssignVariable", "AssignAddVariable", "AssignSubVariable"})


class NativePlan:
    """A plan whose regions are machine code: `run(*inputs) -> tuple of outputs`. graph: its source.

    Nodes without a kernel run as in a plain plan, between native calls. `report()` lists them with the reasons.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._lock = forks.lock()
        self._made: dict[tuple[Shape | None, ...], tuple[Plan, CompiledGraph]] = {}
        self._plain: Plan | None = None
        self.run: Callable[..., tuple[Any, ...]] = self._first
        self._fixed = all(v.dtype.is_handle or v.shape.is_fully_defined() for v in graph.inputs)

    def _first(self, *inputs: Any) -> tuple[Any, ...]:
        run = self._plan(inputs).run
        self.run = run if self._fixed else self._by_shapes
        return run(*inputs)

    def _by_shapes(self, *inputs: Any) -> tuple[Any, ...]:
        entry = self._made.get(tuple([a.shape if type(a) is np.ndarray else None for a in inputs]))
        return (self._plan(inputs) if entry is None else entry[0]).run(*inputs)

    def consume(self, inputs: list[Any]) -> tuple[Any, ...]:
        """Implement `run(*inputs)` on a list, which it empties, so that an input without other references dies at its
        last use."""
        return self._plan(inputs).consume(inputs)

    def _plan(self, inputs: Sequence[Any]) -> Plan:
        """Return the plan for inputs of these shapes; the plain one if compilation is unavailable."""
        if self._plain is not None:
            return self._plain
        if self._fixed:
            key: tuple[Shape | None, ...] = tuple(_fixed_shape(v) for v in self.graph.inputs)
        else:
            key = tuple(
                a.shape if type(a) is np.ndarray else None if v.dtype.is_handle else np.shape(a)
                for a, v in zip(inputs, self.graph.inputs)
            )
        entry = self._made.get(key)
        if entry is None:
            with self._lock:
                entry = self._made.get(key) or self._make(key)
        if entry is not None:
            return entry[0]
        assert self._plain is not None
        return self._plain

    def _make(self, key: tuple[Shape | None, ...]) -> tuple[Plan, CompiledGraph] | None:
        try:
            compiled = _compiled(specialize(self.graph, key))
            plan = Plan(compiled.graph)
        except (OpError, OSError, RuntimeError) as error:
            warnings.warn(f"{self.graph.name} is not compiled and runs on NumPy: {error}", RuntimeWarning, stacklevel=2)
            self._plain = Plan(self.graph)
            self.run = self._plain.run
            return None
        if "plan" in flags.show:
            print(plan, file=sys.stderr)
        while len(self._made) >= MOST:
            del self._made[next(iter(self._made))]
        self._made[key] = plan, compiled
        return plan, compiled

    def explain(self, error: Exception, inputs: Sequence[Any] = ()) -> Exception:
        """Implement Plan.explain for the plan that raised the error."""
        plans = [plan for plan, _ in self._made.values()] + ([self._plain] if self._plain is not None else [])
        names = set()
        trace = error.__traceback__
        while trace is not None:
            names.add(trace.tb_frame.f_code.co_filename)
            trace = trace.tb_next
        for plan in plans:
            if plan.filename in names:
                return plan.explain(error, inputs)
        return error

    def compiled_for(self, shapes: Sequence[Shape | None]) -> CompiledGraph | None:
        """Return the compiled graph for inputs of these shapes; None if it is not compiled."""
        key = tuple(shapes)
        with self._lock:
            entry = self._made.get(key) or self._make(key)
        return None if entry is None else entry[1]

    def __str__(self) -> str:
        return "\n\n".join(str(plan) for plan, _ in self._made.values()) or f"plan of {self.graph.name}, not run yet"


class HotPlan:
    """A plain Plan that is compiled in the background after a number of calls, while calls continue.

    It is compiled for the shapes of the last of these calls, and later for others, as NativePlan does.
    """

    def __init__(self, graph: Graph, calls: int) -> None:
        self.graph = graph
        self._plain, self._left = Plan(graph), calls
        self._native: NativePlan | None = None

    def _chosen(self, inputs: Sequence[Any]) -> Plan | NativePlan:
        if self._native is not None:
            return self._native
        self._left -= 1
        if self._left == 0:
            native = NativePlan(self.graph)
            shapes = [None if v.dtype.is_handle else np.shape(a) for a, v in zip(inputs, self.graph.inputs)]
            compiling.submit(lambda: self._compile(native, shapes))
        return self._plain

    def _compile(self, native: NativePlan, shapes: Sequence[Shape | None]) -> None:
        if native.compiled_for(shapes) is not None:
            self._native = native

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Compute on arrays."""
        return self._chosen(inputs).run(*inputs)

    def consume(self, inputs: list[Any]) -> tuple[Any, ...]:
        """Implement `run(*inputs)` on a list, which it empties, so that an input without other references dies at its
        last use."""
        return self._chosen(inputs).consume(inputs)

    def explain(self, error: Exception, inputs: Sequence[Any] = ()) -> Exception:
        """Implement Plan.explain for the plan that raised the error."""
        explained = self._plain.explain(error, inputs)
        return explained if explained is not error or self._native is None else self._native.explain(error, inputs)

    def __str__(self) -> str:
        return str(self._native or self._plain)


def _compiled(graph: Graph) -> CompiledGraph:
    """Return a graph with its regions, from the cache if possible."""
    key = cached_regions.key_of(graph)
    cached = None if key is None else cached_regions.find(key, graph, function_of)
    if cached is not None:
        return cached
    compiled = partitioner.compile_regions(graph, function_of)
    for region in compiled.regions:
        region.plan.pack()
    if key is not None:
        compiling.submit(lambda: cached_regions.save(key, compiled), urgent=True)
    return compiled


def _fixed_shape(value: Any) -> Shape | None:
    return None if value.dtype.is_handle else tuple(value.shape.dims)


def report(compiled: CompiledGraph) -> str:
    """Report which nodes are compiled and which are not."""
    native = sum(len(s.nodes) for s in compiled.regions)
    stay = len(compiled.uncompiled)
    lines = [f"{compiled.graph.name}: {native} nodes in {len(compiled.regions)} native calls, {stay} as they are"]
    for i, s in enumerate(compiled.regions):
        names = ", ".join(n.name for n in s.nodes)
        lines.append(f"  native call {i}: {len(s.plan.steps)} steps for {names}")
    state = [left for left in compiled.uncompiled if left.op in STATE]
    lines += [f"  {left.op} {left.node}: {left.why}" for left in compiled.uncompiled if left.op not in STATE]
    if state:
        lines.append(f"  {len(state)} reads and writes of variables")
    return "\n".join(lines)
