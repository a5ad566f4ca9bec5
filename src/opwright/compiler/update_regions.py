"""Regions that write variables: all steps of an optimizer as one native call, in place.

Lives here: `UpdateGrouping`, which nodes are written together; `update_graph`, their loop graph.
Not here: the other regions and the plans (partitioner.py), the rules (lowering/updates.py), their calls
(update_calls.py).

A region of updates has no guards: whatever can fail runs before it or after it, in program order, so that an error
leaves the variables as nodes one by one would. It may contain reads of variables whose values only its updates use; an
update then reads the variable's own memory, which no node of the region may have written in between.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from ..graph import Node, Value
from .loops.buffers import Buffer
from .loops.graph import LoopGraph
from .loops.ops import LoopOp, Update
from .lowering.updates import joined
from .regions import CompiledRegion, Dependencies, NodeAccess, dependencies_of, partition, schedule

UPDATES = frozenset({"UpdateVariable", "AssignAddVariable", "AssignSubVariable"})
"""Operators whose nodes are lowered to updates in place."""
_ORDER = "what can fail and updates"

_TOTAL = (np.add, np.subtract, np.multiply)
"""Functions of integers that are defined for all of them."""

Entry = CompiledRegion | Node


class UpdateGrouping:
    """The regions and nodes of a schedule, with updates in groups.

    entries: in execution order; access_of: what a node reads and writes; updates: the operations of lowered nodes
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        access_of: Callable[[Node], NodeAccess],
        updates: Mapping[Node, Sequence[LoopOp]],
        outputs: Sequence[Value],
    ) -> None:
        self.entries, self._access_of, self._updates = entries, access_of, updates
        readers: dict[Value, list[Entry]] = {v: [] for v in outputs}
        for entry in entries:
            for v in entry.inputs if isinstance(entry, CompiledRegion) else entry.operands:
                readers.setdefault(v, []).append(entry)
        kept = set(outputs)
        self._readers = readers
        self.reads = {
            e
            for e in entries
            if isinstance(e, Node)
            and e.op.name == "ReadVariable"
            and e.outputs[0] not in kept
            and readers.get(e.outputs[0])
            and all(isinstance(r, Node) and r in updates for r in readers[e.outputs[0]])
        }

    def grouped(self, pays: Callable[[Sequence[Node]], bool]) -> list[CompiledRegion | Node | list[Node]]:
        """Return the schedule, with a list of nodes for each group that pays."""
        while True:
            dependencies = self._dependencies()
            claimed = {i for i, e in enumerate(self.entries) if isinstance(e, Node) and self._is_member(e)}
            groups = partition(dependencies, claimed, connected=False)
            nodes = [[e for e in map(self.entries.__getitem__, group) if isinstance(e, Node)] for group in groups]
            unfit = {read for group in nodes for read in self._unfit(group)}
            if not unfit:
                break
            self.reads -= unfit
        paying = [i for i, group in enumerate(nodes) if pays(group)]
        order = schedule(dependencies, [groups[i] for i in paying])
        return [self.entries[index] if group is None else nodes[paying[group]] for group, index in order]

    def _is_member(self, node: Node) -> bool:
        return node in self._updates or node in self.reads

    def _unfit(self, group: Sequence[Node]) -> set[Node]:
        """Return the reads of a group with a reader outside of it, or behind a write of the variable."""
        members, written = set(group), dict[Value, int]()
        unfit = {n for n in group if n in self.reads and any(r not in members for r in self._readers[n.outputs[0]])}
        reads = {n.outputs[0]: n for n in group if n in self.reads}
        version_of: dict[Node, int] = {}
        for node in group:
            if node in self.reads:
                version_of[node] = written.get(_handles(node)[0], 0)
                continue
            for v in node.operands:
                read = reads.get(v)
                if read is not None and version_of[read] != written.get(_handles(read)[0], 0):
                    unfit.add(read)
            for handle in _handles(node):
                written[handle] = written.get(handle, 0) + 1
        return unfit

    def _dependencies(self) -> Dependencies:
        return dependencies_of([self._access(entry) for entry in self.entries])

    def _access(self, entry: Entry) -> NodeAccess:
        if isinstance(entry, CompiledRegion):
            return NodeAccess([*entry.inputs, _ORDER], entry.outputs)
        reads, writes, _ = self._access_of(entry)
        if entry in self._updates:
            return NodeAccess(reads, [*writes, _ORDER])
        order: list[Hashable] = [] if _cannot_fail(entry) else [_ORDER]
        return NodeAccess([*reads, *order], writes)


def _handles(node: Node) -> list[Value]:
    return [v for v in node.operands if v.dtype.is_handle]


def _cannot_fail(node: Node) -> bool:
    """Return whether a node reads a variable, or computes a number from numbers without a division of integers."""
    if node.op.name == "ReadVariable":
        return True
    values = [*node.operands, *node.outputs]
    return (
        node.effect is None
        and node.op.catalogue
        and (node.op.elementwise or node.op.name == "Cast")
        and all(not v.dtype.is_handle and v.dtype.np.kind != "O" and v.shape.rank == 0 for v in values)
        and (node.op.compute_rule in _TOTAL or all(v.dtype.is_floating or v.dtype.is_bool for v in node.outputs))
    )


def update_graph(
    region: CompiledRegion, updates: Mapping[Node, Sequence[LoopOp]], buffer_of: Callable[[Value], Buffer]
) -> LoopGraph:
    """Return the loop graph of a group. buffer_of: the buffer of a value; of a handle, the variable's memory."""
    memory: dict[Buffer, Buffer] = {}
    ops: list[Update] = []
    for node in region.nodes:
        if node not in updates:
            memory[buffer_of(node.outputs[0])] = buffer_of(_handles(node)[0])
            continue
        for op in updates[node]:
            assert isinstance(op, Update)
            operands = tuple(memory.get(b, b) for b in op.operands)
            ops.append(dataclasses.replace(op, operands=operands))
    return LoopGraph(region.name, tuple(map(buffer_of, region.inputs)), (), tuple(joined(ops)))
