"""NativePlan: a graph whose native parts run as machine code, compiled for each set of input shapes.

Lives here: selection by shapes, `specialize` (the graph for one set of input shapes, simplified, with keys of random
numbers), the fallback to a plain Plan, the report on native parts.
Not here: when a function becomes one (tiered_plan.py), regions (partitioner.py, calls.py), plans of Python lines
(plan.py), passes (graph/passes/).
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import flags, forks
from ..core.errors import OpError, ResourceExhaustedError
from ..core.lazy_imports import later
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..graph import Graph, GraphRewriter, Node, Value
from ..graph.builder import constant_node, map_subgraphs, refined
from ..graph.passes import FOLD_LIMIT_BYTES, run_passes
from ..graph.passes.control_flow import control_operands, hoist_reads
from ..ops.dispatch import quietly
from . import calls
from .background import compiling
from .calls import every_node, function_of
from .complex_parts import with_real_arithmetic
from .fixed_lists import with_fixed_lists
from .functional_control_flow import with_keys
from .list_items import with_list_items
from .list_lengths import without_nested_lists
from .plan import Plan
from .regions import ROWS, CompiledGraph, CompiledRegion, NativeOperator
from .unmerged_rows import with_unmerged_rows
from .update_calls import updating, updating_rows

if TYPE_CHECKING:
    from . import partitioner
else:
    partitioner = later(".partitioner", __package__)  # rules and planning, for graphs that are not cached

MOST = 64
"""Maximum number of compiled sets of shapes; the oldest is evicted."""
STATE = frozenset({"ReadVariable", "AssignVariable", "AssignAddVariable", "AssignSubVariable"})
CHECKS = frozenset({"Assert", "CheckNumerics"})
"""Operators with an effect, which is an error or none."""

CONTROL = frozenset({"If", "Case", "While"})

Shape = tuple[int, ...]


def specialize(graph: Graph, shapes: Sequence[Shape | None]) -> Graph:
    """Return the graph for inputs of these shapes, simplified. A shape is None for a handle.

    Shapes are inferred again, in program order, in graphs of control flow as well; values that depend on shapes only
    are computed, so that computed shapes are known, too.
    """
    result = hoist_reads(without_nested_lists(_sized(graph, shapes)))
    if (read := with_list_items(result)) is not result:
        result = _sized(read, shapes)
    while (fixed := with_fixed_lists(result)) is not result:  # the length of one list is the trip count of another loop
        result = _sized(fixed, shapes)
    result.keep_origin(graph.origin)
    return with_keys(run_passes(with_real_arithmetic(with_unmerged_rows(result))))


def _sized(graph: Graph, shapes: Sequence[Shape | None]) -> Graph:
    """Return the graph with shapes inferred from those of inputs, None for one as it is declared."""
    rewriter = GraphRewriter(graph)
    for i, (value, shape) in enumerate(zip(graph.inputs, shapes, strict=True)):
        spec = value.spec if shape is None else value.spec.with_shape(TensorShape(shape))
        rewriter.inputs[i] = rewriter.mapping[value] = Value(value.name, spec)
    for node in graph.nodes:
        operands = [rewriter.operand(o) for o in node.inputs]
        copy = _sized_control_flow(node.replaced(inputs=operands, specs=_specs(node, operands)))
        nodes = _folded(copy) or [copy]
        rewriter.nodes += nodes
        rewriter.replace(node, [v for fresh in nodes for v in fresh.outputs])
    return rewriter.finish()


def _sized_control_flow(node: Node) -> Node:
    """Return control flow with shapes in its graphs, and of its results, that follow from the operands; any other node
    as it is."""
    graphs = list(node.subgraphs)
    if not graphs or node.op.name not in CONTROL or all(_is_sized(v) for graph in graphs for v in graph.values()):
        return node
    shapes = [_fixed_shape(v) if _is_sized(v) else None for v in control_operands(node)]
    while True:
        sized = [_sized(graph, shapes) for graph in graphs]
        if node.op.name != "While":
            break
        changing = [i for i, v in enumerate(sized[1].outputs) if shapes[i] not in (None, _fixed_shape(v))]
        if not changing:
            break
        for i in changing:  # its size varies from iteration to iteration
            shapes[i] = None
    results = zip(*(graph.outputs for graph in (sized[1:] if node.op.name == "While" else sized)))
    specs = [
        y.spec if len({_fixed_shape(v) for v in values}) > 1 else refined(y.spec, values[0].spec)
        for y, values in zip(node.outputs, results)
    ]
    replaced = iter(sized)
    return map_subgraphs(node.replaced(specs=specs), lambda graph: next(replaced))


def _is_sized(value: Value) -> bool:
    return not value.dtype.is_handle and value.shape.is_fully_defined()


def _specs(node: Node, operands: Sequence[Any]) -> list[TensorSpec]:
    """Return the types of the outputs as inferred from the operands, if they are more specific than recorded."""
    recorded = [v.spec for v in node.outputs]
    if all(s.shape.is_fully_defined() for s in recorded) or any(True for _ in node.subgraphs):
        return recorded
    try:
        inferred = node.op.infer(node.op.bind(dict(node.attrs)), operands)
    except (OpError, TypeError, ValueError):
        return recorded  # the error is reported at run time
    flat = [s for spec in inferred for s in (spec if isinstance(spec, list) else (spec,))]
    if len(flat) != len(recorded):
        return recorded
    return [
        r if r.shape.is_fully_defined() or s.shape.rank is None else r.with_shape(s.shape)
        for r, s in zip(recorded, flat)
    ]


def _folded(node: Node) -> list[Node] | None:
    """Return constants that replace a pure node whose operands are constant, or read by shape only."""
    op = node.op
    if op.name == "Const" or node.effect is not None or any(True for _ in node.subgraphs) or not node.outputs:
        return None
    by_shape = set(getattr(op, "shape_only", ()))
    arrays: list[Any] = []
    for name, operand in zip(op.input_names, node.inputs):
        if operand is None:
            arrays.append(None)
            continue
        parts = operand if isinstance(operand, tuple) else (operand,)
        values = [_array(v, name in by_shape) for v in parts]
        if any(a is None for a in values):
            return None
        arrays.append(values if isinstance(operand, tuple) else values[0])
    if not arrays or any(v.dtype.is_handle or not _small(v) for v in node.outputs):
        return None
    try:
        results = op.compute(op.bind(dict(node.attrs)), arrays)
    except Exception:  # reported at run time, unless an earlier node fails: rules of users raise what they like
        return None
    return [_constant(op, v, array) for v, array in zip(node.outputs, results)]


def _small(value: Value) -> bool:
    size = value.shape.num_elements()
    return size is not None and size * (value.dtype.size or 8) <= FOLD_LIMIT_BYTES // 16


def _array(value: Value, shape_alone: bool) -> np.ndarray | None:
    """Return the value if it is constant; if only its shape is read, zeros without memory."""
    if value.constant is not None:
        return value.constant
    if not shape_alone or value.dtype.is_handle or not value.shape.is_fully_defined():
        return None
    dims: Any = value.shape.dims
    return np.broadcast_to(np.zeros((), value.dtype.np), dims)


def _constant(op: Any, value: Value, array: Any) -> Node:
    array = np.array(array, value.dtype.np)
    return constant_node(op.const_operator(), array, TensorSpec(array.shape, value.dtype), value.name)


class _UnaliasedPlan(Plan):
    """A plan for distinct variables; a call with one variable as several arguments runs on NumPy. source: the graph
    whose control flow writes variables."""

    __slots__ = ("_handles", "_plain", "_source")

    def __init__(self, graph: Graph, source: Graph) -> None:
        super().__init__(graph)
        self._source, self._plain = source, None
        self._handles = [i for i, v in enumerate(graph.inputs) if v.dtype.is_handle]
        run = self.run

        def distinct(*inputs: Any) -> tuple[Any, ...]:
            return self._plainly(inputs) if self._is_aliased(inputs) else run(*inputs)

        if len(self._handles) > 1:
            self.run = distinct

    _plain: Plan | None

    def consume(self, inputs: list[Any]) -> tuple[Any, ...]:
        return self._plainly(inputs) if self._is_aliased(inputs) else super().consume(inputs)

    def _is_aliased(self, inputs: Sequence[Any]) -> bool:
        return len({id(inputs[i]) for i in self._handles}) < len(self._handles)

    def _plainly(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        if self._plain is None:
            self._plain = Plan(self._source)
        return self._plain.explained(*inputs)


def _is_functional(note: Any) -> bool:
    """Return whether control flow of a graph, or of graphs inside of it, is functionalized."""
    return bool(note["functional"]) or any(map(_is_functional, note["inner"]))


class NativePlan:
    """A plan whose regions are machine code: `run(*inputs) -> tuple of outputs`. graph: its source. warns: whether a
    warning names the function when the oldest of `MOST` plans is forgotten for the first time.

    Nodes without a kernel run as in a plain plan, between native calls. `report()` lists them with the reasons.
    """

    def __init__(self, graph: Graph, warns: bool = True) -> None:
        self.graph = graph
        self._lock = forks.lock()
        self._made: dict[tuple[Shape | None, ...], tuple[Plan, CompiledGraph]] = {}
        self._warns = warns
        self._plain: Plan | None = None
        self._ordered: Plan | None = None  # to report the first error in program order
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
            plan = _UnaliasedPlan(compiled.graph, self.graph) if _is_functional(compiled.note) else Plan(compiled.graph)
        except (OpError, OSError, RuntimeError) as error:
            warnings.warn(f"{self.graph.name} is not compiled and runs on NumPy: {error}", RuntimeWarning, stacklevel=2)
            self._plain = Plan(self.graph)
            self.run = self._plain.run
            return None
        if "plan" in flags.show:
            print(plan, file=sys.stderr)
        if len(self._made) >= MOST:
            self._forget_oldest()
        self._made[key] = plan, compiled
        return plan, compiled

    def _forget_oldest(self) -> None:
        """Remove the oldest plan; warn the first time, as a plan is made again when its shapes return."""
        del self._made[next(iter(self._made))]
        if self._warns:
            self._warns = False
            warnings.warn(
                f"{self.graph.name} has been compiled for {MOST} sets of input shapes. Each further one now replaces "
                f"the oldest, which is planned again if it returns. Pad inputs to a few sizes",
                RuntimeWarning,
                stacklevel=2,
            )

    def explain(self, error: Exception, inputs: Sequence[Any] = ()) -> Exception:
        """Implement Plan.explain for the plan that raised the error.

        inputs: of the call, if they are still there: the error is then the first one in program order.
        """
        plans = [plan for plan, _ in self._made.values()] + ([self._plain] if self._plain is not None else [])
        names = set()
        trace = error.__traceback__
        while trace is not None:
            names.add(trace.tb_frame.f_code.co_filename)
            trace = trace.tb_next
        for plan in plans:
            if plan.filename in names:
                explained = plan.explain(error)
                if plan is self._plain or not isinstance(explained, OpError):  # the exception of a signal's handler
                    return explained
                return self._in_program_order(explained, inputs)
        return error

    def _in_program_order(self, error: Exception, inputs: Sequence[Any]) -> Exception:
        """Return the error of the first node that fails in program order; `error` if that cannot be determined.

        A native call runs nodes of a forward and a backward pass, between nodes that remain. If several fail, the
        first one may be an operator of the gradient, whereas the program fails at the operator that the user wrote.
        """
        if not inputs or isinstance(error, (MemoryError, ResourceExhaustedError)):
            return error
        if self._ordered is None:
            self._ordered = Plan(_repeatable_part(self.graph))
        try:
            quietly(self._ordered.run, *inputs)
        except Exception as first:
            return self._ordered.explain(first)
        return error

    def compiled_for(self, shapes: Sequence[Shape | None]) -> CompiledGraph | None:
        """Return the compiled graph for inputs of these shapes; None if it is not compiled."""
        entry = self._entry(shapes)
        return None if entry is None else entry[1]

    def plan_for(self, shapes: Sequence[Shape | None]) -> Plan | None:
        """Return the plan for inputs of these shapes; None if nothing of it is machine code."""
        entry = self._entry(shapes)
        return None if entry is None or not (entry[1].regions or entry[1].loops) else entry[0]

    def _entry(self, shapes: Sequence[Shape | None]) -> tuple[Plan, CompiledGraph] | None:
        key = tuple(shapes)
        with self._lock:
            return self._made.get(key) or self._make(key)

    def __str__(self) -> str:
        return "\n\n".join(str(plan) for plan, _ in self._made.values()) or f"plan of {self.graph.name}, not run yet"


def call_of(entry: CompiledRegion | Node, connector: int | None = None) -> Callable[..., Any] | None:
    """Return the function of a region, or of a node of ROWS. connector: see function_of."""
    if isinstance(entry, Node):
        return updating_rows(entry)
    return (updating if entry.variables else function_of)(entry, connector)


def _repeatable_part(graph: Graph) -> Graph:
    """Return the nodes before the first one that may not run twice, with all values that none of them reads as results.

    A step that failed has left its variables as they were.
    """
    nodes = tuple(itertools.takewhile(_is_repeatable, graph.nodes))
    if len(nodes) == len(graph.nodes):
        return graph
    read = {v for node in nodes for v in node.operands}
    return Graph(graph.name, graph.inputs, nodes, tuple(v for n in nodes for v in n.outputs if v not in read))


def _is_repeatable(node: Node) -> bool:
    """Return whether a node may run twice: it writes nothing, and draws no random numbers."""
    passes = node.op.effect in (None, "read") or node.op.name in CHECKS
    return passes and all(_is_repeatable(inner) for graph in node.subgraphs for inner in graph.nodes)


def _compiled(graph: Graph) -> CompiledGraph:
    """Return a graph with its regions, from the cache if possible."""
    key = calls.key_of(graph)
    cached = None if key is None else calls.find_regions(key, graph, call_of)
    if cached is not None:
        return cached
    compiled = partitioner.compile_regions(graph, call_of)
    for region in compiled.regions:
        region.plan.pack()
    if key is not None:
        compiling.submit(lambda: calls.save_regions(key, compiled), urgent=True)
    return compiled


def _fixed_shape(value: Any) -> Shape | None:
    return None if value.dtype.is_handle or value.shape.dims is None else tuple(value.shape.dims)


def report(compiled: CompiledGraph) -> str:
    """Report which nodes are compiled and which are not."""
    of_rows = [n.name for n in every_node(compiled.graph) if n.op.name == ROWS and isinstance(n.op, NativeOperator)]
    native = sum(len(s.nodes) for s in compiled.regions) + len(of_rows)
    calls, stay = len(compiled.regions) + len(of_rows), len(compiled.uncompiled)
    lines = [f"{compiled.graph.name}: {native} nodes in {calls} native calls, {stay} as they are"]
    for i, s in enumerate(compiled.regions):
        names = ", ".join(n.name for n in s.nodes)
        lines.append(f"  native call {i}: {len(s.plan.steps)} steps for {names}")
    lines += [f"  native loop: {loop.steps} operations for {loop.node.name}" for loop in compiled.loops]
    lines += [f"  native call for {name}, of any number of rows" for name in of_rows]
    state = [left for left in compiled.uncompiled if left.op in STATE]
    lines += [f"  {left.op} {left.node}: {left.why}" for left in compiled.uncompiled if left.op not in STATE]
    if state:
        lines.append(f"  {len(state)} reads and writes of variables")
    return "\n".join(lines)
