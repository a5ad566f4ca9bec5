"""Regions that write variables: a training step, or all steps of an optimizer, as one native call, in place.

Lives here: `UpdateGrouping`, which nodes are written together, and with which region; `updates_of`, their operations.
Not here: the other regions and the plans (partitioner.py), which nodes cannot fail (certain_nodes.py), the rules
(lowering/updates.py), where updates run in a plan (loops/update_order.py), their calls (update_calls.py).

Whatever can fail runs before an update or after it, in program order, so that an error leaves the variables as nodes
one by one would. The region that computes the gradients may fail: its plan runs updates behind its last guard. What
else can fail, and stands between the two, keeps them apart.

A region with updates may contain reads of variables whose values only it uses; it then reads the variable's own memory,
which no node of the region may have written in between. A variable whose old value is also read elsewhere is written by
a call of its own: the value has another owner as long as the first call runs, and would be copied.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..graph import Node, Value
from .certain_nodes import CertainNodes
from .loops.buffers import Buffer
from .loops.ops import LoopOp, RowsUpdate, Update
from .lowering.updates import joined
from .regions import CompiledRegion, Dependencies, NodeAccess, dependencies_of, partition, schedule

UPDATES = frozenset({"UpdateVariable", "UpdateRows", "AssignAddVariable", "AssignSubVariable"})
"""Operators whose nodes are lowered to updates in place."""

Entry = CompiledRegion | Node
Pays = Callable[[Sequence[Node]], bool]


class UpdatingRegion(NamedTuple):
    """The nodes of a region with updates. reads: of variables, for the region that computes gradients, if any; updates:
    in program order, with the reads for them."""

    reads: list[Node]
    region: CompiledRegion | None
    updates: list[Node]

    @property
    def nodes(self) -> list[Node]:
        """All nodes, in a valid order."""
        return [*self.reads, *(() if self.region is None else self.region.nodes), *self.updates]


class UpdateGrouping:
    """The regions and nodes of a schedule, with updates in groups.

    entries: in execution order; access_of: what a node reads and writes; updates: the operations of lowered nodes;
    certain: the nodes that cannot fail
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        access_of: Callable[[Node], NodeAccess],
        updates: Mapping[Node, Sequence[LoopOp]],
        outputs: Sequence[Value],
        certain: CertainNodes,
    ) -> None:
        self.entries, self._access_of, self._updates = entries, access_of, updates
        self._certain, self._outputs = certain, set(outputs)
        self._readers: dict[Value, list[int]] = {}
        for index, entry in enumerate(entries):
            for v in entry.inputs if isinstance(entry, CompiledRegion) else dict.fromkeys(entry.operands):
                self._readers.setdefault(v, []).append(index)
        self.reads = {e for i, e in enumerate(entries) if _is_read(e) and self._is_read_by_updates(e)}
        self._dependencies = self._ordered_dependencies()

    def _is_read_by_updates(self, read: Any) -> bool:
        value = read.outputs[0]
        readers = [self.entries[i] for i in self._readers.get(value, ())]
        return value not in self._outputs and bool(readers) and all(self._is_update(r) for r in readers)

    def _is_update(self, entry: Entry) -> bool:
        return isinstance(entry, Node) and entry in self._updates

    def grouped(self, pays: Pays) -> list[CompiledRegion | Node | UpdatingRegion]:
        """Return the schedule, with a region for each group that pays, by itself or with the region before it."""
        while True:
            claimed = {i for i, e in enumerate(self.entries) if self._is_update(e) or e in self.reads}
            groups = partition(self._dependencies, claimed, connected=False)
            unfit = {read for group in groups for read in self._unfit([self._node(i) for i in group])}
            if not unfit:
                break
            self.reads -= unfit
        paying = [group for group in groups if pays(list(map(self._node, group)))]
        final: list[list[int]] = list(paying)
        for group in paying:
            final = self._joined(group, final, pays)
        order = schedule(self._dependencies, final)
        return [self.entries[index] if group is None else self._region(final[group]) for group, index in order]

    def _node(self, index: int) -> Node:
        node = self.entries[index]
        assert isinstance(node, Node)
        return node

    def _region(self, group: Sequence[int]) -> UpdatingRegion:
        at = next((k for k, i in enumerate(group) if isinstance(self.entries[i], CompiledRegion)), None)
        if at is None:
            return UpdatingRegion([], None, list(map(self._node, group)))
        region = self.entries[group[at]]
        assert isinstance(region, CompiledRegion)
        return UpdatingRegion(list(map(self._node, group[:at])), region, list(map(self._node, group[at + 1 :])))

    def _unfit(self, group: Sequence[Node]) -> set[Node]:
        """Return the reads of a group with a reader outside of it, or behind a write of the variable."""
        members = set(group)
        reads = [n for n in group if n in self.reads]
        outside = {n for n in reads if any(self.entries[i] not in members for i in self._readers[n.outputs[0]])}
        return outside | _outdated(reads, group)

    # ---- with the region that computes the gradients --------------------------------------------------------------

    def _joined(self, group: list[int], groups: list[list[int]], pays: Pays) -> list[list[int]]:
        """Return the groups, where as many updates of one as possible are joined with a region."""
        taken = {i for other in groups for i in other}
        sources = {r for i in group for r in self._dependencies.data[i]} - taken
        region = max((i for i in sources if isinstance(self.entries[i], CompiledRegion)), default=None)
        if region is None:
            return groups
        joined = self._members(region, group)
        rest = [i for i in group if i not in joined]
        if not joined or not pays([self._node(i) for i in joined if i != region]):
            return groups
        kept = [rest] if rest and pays(list(map(self._node, rest))) else []
        changed = [*(other for other in groups if other is not group), joined, *kept]
        try:
            schedule(self._dependencies, changed)
        except ValueError:  # a cycle runs through two groups
            return groups
        return changed

    def _members(self, region: int, group: Sequence[int]) -> list[int]:
        """Return the members of a region with updates of a group: reads, the region, updates; none if it needs a result
        of an entry that needs one of its reads."""
        reads, held = self._absorbed(region, group)
        members, later, updates = {region, *reads}, set[int](), set(group)
        for i in range(min(members), max(*group, region) + 1):
            needed = self._dependencies.all[i]
            if i in members:
                if needed & later:
                    return []
            elif i in updates and not (needed & later) and held.isdisjoint(_handles(self._node(i))):
                members.add(i)
            elif needed & (members | later):
                later.add(i)
        written = {v for i in members & updates for v in _handles(self._node(i))}
        idle = {i for i in reads if written.isdisjoint(_handles(self._node(i)))}
        return sorted(members - idle) if members & updates else []

    def _absorbed(self, region: int, group: Sequence[int]) -> tuple[set[int], set[Value]]:
        """Return the reads that a region with these updates may contain, and the variables whose old values are used
        elsewhere while it runs or later."""
        written = {v for i in group for v in _handles(self._node(i))}
        within = {region, *group}
        nodes = [self._node(i) for i in group]
        reads: set[int] = set()
        held: set[Value] = set()
        for i, entry in enumerate(self.entries[: max(group)]):
            if not isinstance(entry, Node) or not _is_read(entry) or i in within or written.isdisjoint(_handles(entry)):
                continue
            value, readers = entry.outputs[0], self._readers.get(entry.outputs[0], [])
            if value not in self._outputs and all(r < region for r in readers):
                continue  # it is dead by then
            absorbed = i < region and value not in self._outputs and within.issuperset(readers)
            if absorbed and not _outdated([entry], nodes):
                reads.add(i)
            else:
                held.update(_handles(entry))
        return reads, held

    # ---- order ----------------------------------------------------------------------------------------------------

    def _ordered_dependencies(self) -> Dependencies:
        """Return the dependencies of entries, with the program order of updates and of what can fail."""
        accesses = [
            NodeAccess(e.inputs, e.outputs) if isinstance(e, CompiledRegion) else self._access_of(e)
            for e in self.entries
        ]
        data, all_ = dependencies_of(accesses)
        before, run, updating = set[int](), set[int](), False  # the last run of one kind, and the one before it
        for index, entry in enumerate(self.entries):
            is_update = self._is_update(entry)
            if not is_update and isinstance(entry, Node) and entry in self._certain:
                continue
            if is_update is not updating:
                before, run, updating = run, set(), is_update
            run.add(index)
            all_[index] |= before
        return Dependencies(data, all_)


def _is_read(entry: Entry) -> bool:
    return isinstance(entry, Node) and entry.op.name == "ReadVariable"


def _outdated(reads: Sequence[Node], nodes: Sequence[Node]) -> set[Node]:
    """Return the reads whose value one of the nodes, updates in program order, needs after an earlier one of them has
    written the variable. A read among the nodes is at its place, any other before all of them."""
    source = {read.outputs[0]: read for read in reads}
    version_of: dict[Node, int] = {}
    written: dict[Value, int] = {}
    outdated: set[Node] = set()
    for node in nodes:
        if _is_read(node):
            version_of[node] = written.get(_handles(node)[0], 0)
            continue
        for v in node.operands:
            read = source.get(v)
            if read is not None and version_of.get(read, 0) != written.get(_handles(read)[0], 0):
                outdated.add(read)
        for handle in _handles(node):
            written[handle] = written.get(handle, 0) + 1
    return outdated


def _handles(node: Node) -> list[Value]:
    return [v for v in node.operands if v.dtype.is_handle]


def updates_of(
    nodes: Sequence[Node], updates: Mapping[Node, Sequence[LoopOp]], buffer_of: Callable[[Value], Buffer]
) -> list[Update]:
    """Return the operations of updates and of reads before them, in passes. buffer_of: the buffer of a value; of a
    handle, the variable's memory."""
    memory: dict[Buffer, Buffer] = {}
    ops: list[Update] = []
    for node in nodes:
        if node not in updates:
            memory[buffer_of(node.outputs[0])] = buffer_of(_handles(node)[0])
            continue
        for op in updates[node]:
            assert isinstance(op, Update)
            operands = tuple(memory.get(b, b) for b in op.operands)
            changed: dict[str, Any] = {"operands": operands}
            if isinstance(op, RowsUpdate):
                changed["indices"] = memory.get(op.indices, op.indices)
            ops.append(dataclasses.replace(op, **changed))
    return joined(ops)
