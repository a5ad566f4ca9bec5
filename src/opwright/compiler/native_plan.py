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
from .specialising import Shape, specialised

if TYPE_CHECKING:
    from . import partitioner
else:
    partitioner = later(".partitioner", __package__)  # rules and planning, for what the cache does not have

MOST = 64
"""Sets of shapes that are kept compiled; then the one that was made first goes."""
STATE = frozenset({"ReadVariable", "AssignVariable", "AssignAddVariable", "AssignSubVariable"})


class NativePlan:
    """Like a Plan: `run(*inputs) -> tuple of outputs`. graph: what it came from.

    What has no kernel runs as in a plain plan, between native calls: nothing is refused. `report()` says what and why.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._lock = forks.lock()
        self._made: dict[tuple[Shape | None, ...], tuple[Plan, CompiledGraph]] = {}
        self._plain: Plan | None = None
        self.run: Callable[..., tuple[Any, ...]] = self._first
        self._fixed = all(v.dtype.is_handle or v.shape.is_fully_defined() for v in graph.inputs)

    # ---- running ----------------------------------------------------------------------------------------------------

    def _first(self, *inputs: Any) -> tuple[Any, ...]:
        run = self._plan(inputs).run
        self.run = run if self._fixed else self._by_shapes
        return run(*inputs)

    def _by_shapes(self, *inputs: Any) -> tuple[Any, ...]:
        found = self._made.get(tuple([a.shape if type(a) is np.ndarray else None for a in inputs]))
        return (self._plan(inputs) if found is None else found[0]).run(*inputs)

    def consume(self, inputs: list[Any]) -> tuple[Any, ...]:
        """`run(*inputs)` that empties the list: an input that nobody else holds dies at its last use."""
        return self._plan(inputs).consume(inputs)

    def _plan(self, inputs: Sequence[Any]) -> Plan:
        """The plan for inputs of these shapes; the plain one where there is no compiling."""
        if self._plain is not None:
            return self._plain
        if self._fixed:
            key: tuple[Shape | None, ...] = tuple(_fixed_shape(v) for v in self.graph.inputs)
        else:
            key = tuple(
                a.shape if type(a) is np.ndarray else None if v.dtype.is_handle else np.shape(a)
                for a, v in zip(inputs, self.graph.inputs)
            )
        found = self._made.get(key)
        if found is None:
            with self._lock:
                found = self._made.get(key) or self._make(key)
        if found is not None:
            return found[0]
        assert self._plain is not None
        return self._plain

    def _make(self, key: tuple[Shape | None, ...]) -> tuple[Plan, CompiledGraph] | None:
        try:
            made = _compiled(specialised(self.graph, key))
            plan = Plan(made.graph)
        except (OpError, OSError, RuntimeError) as error:
            warnings.warn(f"{self.graph.name} is not compiled and runs on NumPy: {error}", RuntimeWarning, stacklevel=2)
            self._plain = Plan(self.graph)
            self.run = self._plain.run
            return None
        if "plan" in flags.show:
            print(plan, file=sys.stderr)
        while len(self._made) >= MOST:
            del self._made[next(iter(self._made))]
        self._made[key] = plan, made
        return plan, made

    # ---- errors and reports -----------------------------------------------------------------------------------------

    def explain(self, error: Exception, inputs: Sequence[Any] = ()) -> Exception:
        """As Plan.explain, by the plan that the error came out of."""
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
        """What the graph is for inputs of these shapes; None where it is not compiled."""
        key = tuple(shapes)
        with self._lock:
            found = self._made.get(key) or self._make(key)
        return None if found is None else found[1]

    def __str__(self) -> str:
        return "\n\n".join(str(plan) for plan, _ in self._made.values()) or f"plan of {self.graph.name}, not run yet"


class HotPlan:
    """A plain Plan that is compiled once it has been called so many times, in the background; calls go on meanwhile.

    It is compiled for the shapes of the call that was one too many, and later for others as NativePlan does.
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
        """`run(*inputs)` that empties the list: an input that nobody else holds dies at its last use."""
        return self._chosen(inputs).consume(inputs)

    def explain(self, error: Exception, inputs: Sequence[Any] = ()) -> Exception:
        """As Plan.explain, by the plan that the error came out of."""
        found = self._plain.explain(error, inputs)
        return found if found is not error or self._native is None else self._native.explain(error, inputs)

    def __str__(self) -> str:
        return str(self._native or self._plain)


def _compiled(graph: Graph) -> CompiledGraph:
    """Return a graph with its regions, of the cache where that has them."""
    key = cached_regions.key_of(graph)
    found = None if key is None else cached_regions.find(key, graph, function_of)
    if found is not None:
        return found
    compiled = partitioner.compile_regions(graph, function_of)
    for region in compiled.regions:
        region.plan.pack()
    if key is not None:
        compiling.submit(lambda: cached_regions.save(key, compiled), urgent=True)
    return compiled


def _fixed_shape(value: Any) -> Shape | None:
    return None if value.dtype.is_handle else tuple(value.shape.dims)


def report(made: CompiledGraph) -> str:
    """Say which nodes are compiled and which are not."""
    native = sum(len(s.nodes) for s in made.regions)
    stay = len(made.uncompiled)
    lines = [f"{made.graph.name}: {native} nodes in {len(made.regions)} native calls, {stay} as they are"]
    for i, s in enumerate(made.regions):
        names = ", ".join(n.name for n in s.nodes)
        lines.append(f"  native call {i}: {len(s.plan.steps)} steps for {names}")
    state = [left for left in made.uncompiled if left.op in STATE]
    lines += [f"  {left.op} {left.node}: {left.why}" for left in made.uncompiled if left.op not in STATE]
    if state:
        lines.append(f"  {len(state)} reads and writes of variables")
    return "\n".join(lines)
