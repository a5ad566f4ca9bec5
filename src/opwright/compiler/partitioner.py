"""Partition a graph into compiled regions and the nodes between them, and plan the regions.

Lives here: `compile_regions`, `Partitioner`: loop operations of nodes, regions and their plans, reasons of uncompiled
nodes.
Not here: the partitions themselves (regions.py), rules (lowering/), fusion and plans (loops/), the graph with its
regions replaced (regions.py).

A node is compiled if a rule lowers it and a kernel computes each operation. The state of a variable is a value that
each read and write of the variable writes; every other effect writes the state of all variables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from ..core import flags
from ..core.dtypes import variant
from ..core.errors import InternalError, InvalidArgumentError
from ..graph import Graph, Node, Value
from .certain_nodes import CertainNodes
from .functional_control_flow import functionalized
from .inlined_kernels import own_kernel, user_code
from .kernels import NoKernel
from .kernels.scalar_loops import scalar_loop
from .loops.buffers import Buffer
from .loops.fusion import fused
from .loops.graph import LoopGraph
from .loops.ops import LoopOp, Update, View
from .loops.planner import WITHOUT_GUARDS, plan_of
from .loops.update_order import GuardBehindUpdate, numbers_first
from .lowering.context import Buffers, LoweringContext, NoLowering
from .lowering.control_flow import lower_node
from .lowering.nodes import GraphNode, catalogue_operand
from .lowering.registry import lower
from .lowering.scalar_loops import loop_of
from .lowering.updates import HandleMemory
from .region_sequences import RegionSequence, in_sequence
from .regions import (
    KEY,
    ROWS,
    CallOf,
    CompiledGraph,
    CompiledLoop,
    CompiledRegion,
    Dependencies,
    NodeAccess,
    Operands,
    UncompiledNode,
    dependencies_of,
    note_of,
    partition,
    replace_regions,
    schedule,
    shape_of,
)
from .update_calls import updating_rows
from .update_regions import UPDATES, UpdateGrouping, UpdatingRegion, updates_of

MIN_NODES, MIN_ELEMENTS = 2, 4096
"""Minimum nodes of a region, or else elements: a native call costs as much as one of NumPy's."""
_WORLD = "state that no variable names"
_SEQUENCES = "sequences of random numbers"


def compile_regions(graph: Graph, call_of: CallOf) -> CompiledGraph:
    """Return the graph with its regions as calls. call_of: see `replace_regions`."""
    graph, partitioner, functional = _partitioner(graph)
    order = partitioner.planned()
    regions = [entry for entry in order if isinstance(entry, CompiledRegion)]
    loops = [entry for entry in order if isinstance(entry, CompiledLoop)]
    uncompiled = partitioner.uncompiled()
    notes: list[Any] = []
    note = note_of(partitioner.nodes, order, uncompiled, notes, functional)

    def within(inner: Graph) -> Graph:
        compiled = compile_regions(inner, call_of)
        notes.append(compiled.note)
        regions.extend(compiled.regions)
        loops.extend(compiled.loops)
        uncompiled.extend(compiled.uncompiled)
        return compiled.graph

    return CompiledGraph(
        replace_regions(graph, partitioner.operands, order, call_of, within), regions, loops, uncompiled, note
    )


def _partitioner(graph: Graph) -> tuple[Graph, Partitioner, list[int]]:
    """Return the graph with control flow without effects where it is compiled then, its partitioner, and the indices of
    the nodes that were replaced."""
    functional, replaced = functionalized(graph)
    while True:
        partitioner = _with_lists_as_arrays(Partitioner(functional))
        compiled = [i for i, node in replaced.items() if node in partitioner.ops or node in partitioner.loops]
        if len(compiled) == len(replaced):
            return functional, partitioner, compiled
        functional, replaced = functionalized(graph, compiled)


def _with_lists_as_arrays(partitioner: Partitioner) -> Partitioner:
    """Return the partitioner in which the lists of loops on single elements are arrays where loops over tensors read
    them, if those are compiled then; otherwise the partitioner itself."""
    apart: set[Node] = set()
    result = partitioner
    while more := result.lists_of_elements() - apart:
        apart |= more
        result = Partitioner(partitioner.graph, apart)
    return result if result.num_loops() > partitioner.num_loops() else partitioner


def code_of(node: Node) -> str:
    """Return a digest of the kernel of an operator that does not use the catalogue's."""
    if node.op.catalogue or own_kernel(node.op) is None:
        return "its own"
    context = LoweringContext(GraphNode(node), Buffers(catalogue_operand))
    try:
        lower(context)
    except NoLowering as why:
        return f"none: {why}"
    return user_code(context.ops[0])


class Partitioner:
    """A graph under partitioning. ops: of the nodes that may be compiled; updates: of writes of variables in place;
    loops: nodes that are one kernel each; why: reasons of the others; alone: nodes outside of regions, which would not
    pay; within: nodes of regions of updates.

    apart: loops on single elements that are lowered as loops over tensors
    """

    def __init__(self, graph: Graph, apart: Container[Node] = ()) -> None:
        self.graph, self.operands, self._apart = graph, Operands(graph), apart
        self.handles = [v for v in graph.inputs if v.dtype.is_handle]
        self.nodes = [node for node in self.operands.nodes if node.op.name != "Const"]
        tables = {next(n.operands): shape_of(n.outputs[0].spec) for n in self.nodes if _reads_known_shape(n)}
        self.buffers = Buffers(catalogue_operand, resources=HandleMemory(self.handles, tables))
        self.certain = CertainNodes(self.operands.nodes)
        self.ops: dict[Node, list[LoopOp]] = {}
        self.updates: dict[Node, list[LoopOp]] = {}
        self.loops: dict[Node, CompiledLoop] = {}
        self.why: dict[Node, str] = {}
        self.alone: set[Node] = set()
        self.within: set[Node] = set()
        read = {v for n in self.nodes for v in n.operands} | set(self.operands.outputs)
        for node in self.nodes:
            try:
                if self._is_scalar_loop(node):
                    continue
                ops = self._lowered(node, read)
                (self.ops if node.effect is None else self.updates)[node] = ops
            except NoLowering as why:
                if node.op.name != ROWS or updating_rows(node) is None:
                    self.why[node] = str(why)

    def _is_scalar_loop(self, node: Node) -> bool:
        """Add a node to the loops if it is one on single elements."""
        if not (node.op.catalogue and node.op.name == "While") or node in self._apart:
            return False
        try:
            self.loops[node] = _loop(node)
        except NoLowering:
            return False
        return True

    def lists_of_elements(self) -> set[Node]:
        """Return the loops on single elements of which an uncompiled loop reads lists."""
        loops = [node for node in self.why if node.op.name == "While"]
        read = {v for node in loops for v in node.operands if v.dtype is variant}
        return {node for node in self.loops if not read.isdisjoint(node.outputs)}

    def num_loops(self) -> int:
        """Return the number of compiled loops."""
        return len(self.loops) + len([node for node in self.ops if node.op.name == "While"])

    def _lowered(self, node: Node, read: Container[Value]) -> list[LoopOp]:
        if node.effect is not None and node.op.name not in UPDATES:
            raise NoLowering(f"it has effects ({node.effect})")
        if node.op.name == ROWS and node not in self.certain:
            raise NoLowering("its indices may be out of range")
        return lower_node(node, self.buffers, read.__contains__)

    def uncompiled(self) -> list[UncompiledNode]:
        """Return the uncompiled nodes, in program order."""
        why = self.why | dict.fromkeys(self.alone, "alone it costs less as it is")
        return [UncompiledNode(n.name, n.op.name, why[n]) for n in self.nodes if n in why and n not in self.within]

    def planned(self) -> list[CompiledRegion | CompiledLoop | Node]:
        """Return regions with their plans, loops and uncompiled nodes, in execution order."""
        while True:
            try:
                return self._planned()
            except NoKernel as why:
                self._leave(why)

    def _planned(self) -> list[CompiledRegion | CompiledLoop | Node]:
        dependencies = self._dependencies()
        compiled = {index for index, node in enumerate(self.nodes) if node in self.ops}
        groups = partition(dependencies, compiled, connected=False)
        while unfit := self._on_open_lists(groups):
            for node in unfit:
                del self.ops[node]
                self.why[node] = "a list is read or written outside of the native call"
            compiled -= {index for index, node in enumerate(self.nodes) if node in unfit}
            groups = partition(dependencies, compiled, connected=False)
        paying = [group for group in groups if self._pays([self.nodes[index] for index in group])]
        regions = [self._named([self.nodes[index] for index in group]) for group in paying]
        self.alone = {self.nodes[index] for index in compiled.difference(*paying)}
        order = schedule(dependencies, paying)
        entries = [self.nodes[index] if group is None else regions[group] for group, index in order]
        return [self.loops.get(e, e) if isinstance(e, Node) else e for e in self._with_updates(entries)]

    def _on_open_lists(self, groups: Sequence[Sequence[int]]) -> set[Node]:
        """Return the nodes on lists that other nodes than those of one group, or the graph's outputs, refer to."""
        group_of = {self.nodes[index]: number for number, group in enumerate(groups) for index in group}
        users: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for v in {*node.operands, *node.outputs}:
                if v.dtype is variant:
                    users.setdefault(v, []).append(node)
        is_open = [
            nodes
            for v, nodes in users.items()
            if v in self.operands.outputs or len({group_of.get(n) for n in nodes}) > 1 or group_of.get(nodes[0]) is None
        ]
        return {n for nodes in is_open for n in nodes if n in group_of}

    def _with_updates(self, order: Sequence[CompiledRegion | Node]) -> list[CompiledRegion | Node]:
        """Return a schedule with groups of updates in regions, and the plans of all regions."""
        grouped: list[CompiledRegion | Node | UpdatingRegion] = list(order)
        if self.updates:
            grouping = UpdateGrouping(order, self._access, self.updates, self.operands.outputs, self.certain)
            grouped = grouping.grouped(_written_together)
            self._leave_tables_apart(grouped)
            left = self.updates.keys() & {e for e in grouped if isinstance(e, Node)}
            self.alone |= {node for node in left if node.op.name != ROWS}  # those are calls of their own
        planned = [e if isinstance(e, Node) else self._planned_region(e) for e in self._in_sequence(grouped)]
        self.within = {n for e in planned if isinstance(e, CompiledRegion) for n in e.nodes}
        return planned

    def _leave_tables_apart(self, grouped: Sequence[CompiledRegion | Node | UpdatingRegion]) -> None:
        """Raise NoKernel for steps by rows in a region that does not read the table before, which knows its shape."""
        apart: list[LoopOp] = []
        for entry in grouped:
            if isinstance(entry, UpdatingRegion):
                read: set[Value] = set()
                for node in entry.nodes:
                    if node.op.name == "ReadVariable":
                        read.add(next(node.operands))
                    elif node.op.name == ROWS and next(node.operands) not in read:
                        apart += self.updates[node]
        if apart:
            error = NoKernel("a table that another native call reads")
            error.ops = dict.fromkeys(apart, str(error))
            raise error

    def _leave(self, why: NoKernel) -> None:
        """Leave the nodes of operations without a kernel uncompiled."""
        names = {name: reason for op, reason in why.ops.items() for name in op.origin}
        nodes = [n for n in (*self.ops, *self.updates) if n.name in names]
        if not nodes:
            raise InternalError(op=self.graph.name, what=f"no kernel for an operation of no node: {why}") from why
        for node in nodes:
            (self.ops if node in self.ops else self.updates).pop(node)
            if node.op.name != ROWS or updating_rows(node) is None:
                self.why[node] = f"no kernel: {names[node.name]}"

    def _dependencies(self) -> Dependencies:
        return dependencies_of([self._access(node) for node in self.nodes])

    def _access(self, node: Node) -> NodeAccess:
        operands, states = list(node.operands), [v for v in node.operands if v.dtype.is_handle]
        if node.effect is None:
            return NodeAccess(operands, node.outputs)
        if node.op.name == KEY:
            return NodeAccess([*operands, _WORLD], [*node.outputs, _SEQUENCES])
        if (
            node.effect in ("read", "write")
            and states
            and set(states) <= set(self.handles)
            and not any(True for _ in node.subgraphs)
        ):
            return NodeAccess([*operands, _WORLD], [*node.outputs, *states])
        return NodeAccess([*operands, *self.handles, _WORLD], [*node.outputs, *self.handles, _WORLD])

    def _pays(self, nodes: Sequence[Node]) -> bool:
        if any(n.op.name == "While" for n in nodes):
            return True
        if sum(map(_size, nodes)) >= MIN_NODES:
            return any(v.shape.rank for n in nodes for v in (*n.outputs, *n.operands))
        return any((v.shape.num_elements() or 0) >= MIN_ELEMENTS for n in nodes for v in (*n.outputs, *n.operands))

    def _named(self, nodes: Sequence[Node]) -> CompiledRegion:
        """Return the region of these nodes, without a plan."""
        return self.operands.region(self.graph.name, nodes, None, 0)

    def _in_sequence(self, grouped: Sequence[CompiledRegion | Node | UpdatingRegion]) -> list[Any]:
        """Return a schedule with regions behind updates joined with these, as regions with their plans."""
        if not any(isinstance(e, UpdatingRegion) for e in grouped):
            return list(grouped)
        joined = in_sequence(grouped, self._access, self.certain, self.operands.outputs, self._is_unguarded)
        try:
            return [self._planned_region(e) if isinstance(e, RegionSequence) else e for e in joined]
        except GuardBehindUpdate:
            return list(grouped)

    def _is_unguarded(self, region: CompiledRegion) -> bool:
        return all(isinstance(op, WITHOUT_GUARDS) for node in region.nodes for op in self.ops[node])

    def _planned_region(self, entry: CompiledRegion | UpdatingRegion | RegionSequence) -> CompiledRegion:
        """Return a region with its plan: the operations that compute, as fused without updates, then the updates; then
        the same of the regions behind it."""
        if isinstance(entry, CompiledRegion) and entry.plan is not None:
            return entry
        region = entry if isinstance(entry, CompiledRegion) else self._named(entry.nodes)
        memory = {v: Buffer(v.name, s.dtype, shape_of(s)) for v, s in region.variables.items()}
        memory |= {v: b for v, (b, _) in self.buffers.state.items() if isinstance(v, Value) and v in memory}

        def buffer_of(value: Value) -> Buffer:
            return memory[value] if value.dtype.is_handle else self.buffers.of(value).buffer

        inputs, outputs = (tuple(map(buffer_of, values)) for values in (region.inputs, region.outputs))
        parts = entry.parts if isinstance(entry, RegionSequence) else (entry,)
        graph, parts_of = self._fused([self._parts(part, buffer_of) for part in parts], inputs, outputs)
        plan = plan_of(graph, parts_of=parts_of)
        if "plan" in flags.show:
            print(plan, file=sys.stderr)
        return region._replace(plan=plan, work=sum(map(_elements, plan.ops)))

    def _fused(
        self,
        parts: Sequence[tuple[list[LoopOp], list[LoopOp], list[Update]]],
        inputs: tuple[Buffer, ...],
        outputs: tuple[Buffer, ...],
    ) -> tuple[LoopGraph, Callable[[LoopOp], Sequence[LoopOp] | None]]:
        """Return the loop graph of the reads, the computing operations and the updates of consecutive regions, each
        fused by itself, and the parts of its fused operations."""
        ops: list[LoopOp] = []
        parts_of: list[Callable[[LoopOp], Sequence[LoopOp] | None]] = []
        available = inputs
        for number, (reads, computed, updates) in enumerate(parts):
            own = [*reads, *computed]
            later = [op for part in parts[number + 1 :] for kind in part for op in kind]
            results = tuple(dict.fromkeys([*_among(outputs, own), *_operands([*updates, *later], own)]))
            graph, of_fused = fused(LoopGraph(self.graph.name, available, results, tuple(_needed(own, results))))
            ops += numbers_first(graph) if updates and not number else graph.ops
            ops += updates
            parts_of.append(of_fused)
            available = (*available, *results)
        whole = LoopGraph(self.graph.name, inputs, outputs, tuple(ops))
        return whole, lambda op: next((p for of in parts_of if (p := of(op)) is not None), None)

    def _parts(
        self, entry: CompiledRegion | UpdatingRegion, buffer_of: Callable[[Value], Buffer]
    ) -> tuple[list[LoopOp], list[LoopOp], list[Update]]:
        """Return the operations of a region: its reads of variables, what it computes and its updates."""
        if isinstance(entry, CompiledRegion):
            return [], [op for n in entry.nodes for op in self.ops[n]], []
        reads: list[LoopOp] = [
            View(buffer_of(n.outputs[0]), buffer_of(next(n.operands)), origin=(n.name,)) for n in entry.reads
        ]
        computed = [] if entry.region is None else [op for n in entry.region.nodes for op in self.ops[n]]
        return reads, computed, updates_of([*entry.reads, *entry.updates], self.updates, buffer_of)


def _reads_known_shape(node: Node) -> bool:
    return node.op.name == "ReadVariable" and node.outputs[0].shape.is_fully_defined()


def _size(node: Node) -> int:
    """Return the number of a node's operators, those of its graphs included."""
    return 1 + sum(n.op.name != "Const" and _size(n) for graph in node.subgraphs for n in graph.nodes)


def _written_together(nodes: Sequence[Node]) -> bool:
    """Return whether a group of updates pays: a rule on arrays is a dozen calls of NumPy, a sum is one."""
    return any(n.op.name in ("UpdateVariable", ROWS) for n in nodes) or any(
        (v.shape.num_elements() or 0) >= MIN_ELEMENTS for n in nodes for v in n.operands
    )


def _operands(readers: Sequence[LoopOp], ops: Sequence[LoopOp]) -> list[Buffer]:
    """Return the buffers that operations read and one of the others computes."""
    return _among([b for op in readers for b in op.inputs], ops)


def _among(buffers: Iterable[Buffer], ops: Sequence[LoopOp]) -> list[Buffer]:
    """Return the buffers that one of the operations computes."""
    computed = {id(op.output) for op in ops}
    return [b for b in buffers if id(b) in computed]


def _elements(op: LoopOp) -> int:
    """Return the approximate number of elements that an operation computes."""
    return op.output.size * (len(op.inputs) if isinstance(op, Update) else 1)


def _loop(node: Node) -> CompiledLoop:
    """Return a `While` node as one kernel. Raises NoLowering if it is none."""
    loop = loop_of(node)
    try:
        code = scalar_loop.code(program=loop.program)
    except InvalidArgumentError as error:  # it is too large
        raise NoLowering(error.message) from None
    return CompiledLoop(node, code.address, loop.inputs, loop.program.size)


def _needed(ops: Sequence[LoopOp], outputs: Iterable[Buffer]) -> list[LoopOp]:
    """Return the operations that the outputs depend on, in order."""
    needed = {id(b) for b in outputs}
    live = []
    for op in reversed(ops):
        if id(op.output) in needed:
            live.append(op)
            needed.update(id(b) for b in op.inputs)
    return live[::-1]
