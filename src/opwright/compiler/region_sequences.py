"""Regions that follow one another in one native call: what reads variables after an update runs behind it.

Lives here: `RegionSequence`; `in_sequence`, which joins the regions of a schedule where their order permits it.
Not here: regions with updates (update_regions.py), their plans (partitioner.py), the order of operations behind an
update (loops/update_order.py).

Steps of two optimizers in turn (a discriminator's and a generator's), of weights that are moved and moved back
(sharpness-aware minimization), and averages of weights after a step are such sequences. A call that a guard stops has
written nothing and is repeated by operators, so that whatever runs behind an update may not have guards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeAlias

from ..graph import Node, Value
from .certain_nodes import CertainNodes
from .regions import CompiledRegion, Dependencies, NodeAccess, dependencies_of, schedule
from .update_regions import UpdatingRegion


class RegionSequence(NamedTuple):
    """Regions with updates in one native call, in order."""

    parts: tuple[UpdatingRegion, ...]

    @property
    def nodes(self) -> list[Node]:
        """All nodes, in a valid order."""
        return [node for part in self.parts for node in part.nodes]


Entry: TypeAlias = CompiledRegion | Node | UpdatingRegion | RegionSequence


def in_sequence(
    entries: Sequence[Entry],
    access_of: Callable[[Node], NodeAccess],
    certain: CertainNodes,
    outputs: Collection[Value],
    is_unguarded: Callable[[CompiledRegion], bool],
) -> list[Entry]:
    """Return the schedule in which regions behind one with updates are joined with it.

    entries: in execution order; access_of: what a node reads and writes; certain: the nodes that cannot fail; outputs:
    of the graph; is_unguarded: whether no operation of a region may stop a plan
    """
    entries = list(entries)
    at = 0
    while at < len(entries):
        if isinstance(entries[at], UpdatingRegion | RegionSequence):
            joined = _joined_with_next(entries, at, access_of, certain, outputs, is_unguarded)
            if joined is not None:
                entries, at = joined, 0
                continue
        at += 1
    return entries


def _joined_with_next(
    entries: Sequence[Entry],
    at: int,
    access_of: Callable[[Node], NodeAccess],
    certain: CertainNodes,
    outputs: Collection[Value],
    is_unguarded: Callable[[CompiledRegion], bool],
) -> list[Entry] | None:
    """Return the schedule in which a region with updates is joined with the next region; None if it cannot be."""
    behind = next((i for i in range(at + 1, len(entries)) if not isinstance(entries[i], Node)), None)
    if behind is None:
        return None
    last = _parts(entries[behind])
    if any(part.region is not None and not is_unguarded(part.region) for part in last):
        return None
    within = set(last[0].nodes)  # a later part would read what this one has written
    used_outside = {v for e in entries for n in _nodes(e) if n not in within for v in n.operands}
    reads = [
        (i, e)
        for i, e in enumerate(entries[at + 1 : behind], at + 1)
        if isinstance(e, Node) and e.op.name == "ReadVariable"
        if e.outputs[0] not in used_outside and e.outputs[0] not in outputs
        if any(e.outputs[0] in n.operands for n in within)
    ]
    group = [at, *(i for i, _ in reads), behind]
    try:
        order = schedule(_dependencies(entries, access_of, certain), [group])
    except ValueError:  # something between the two needs the first, and the second needs it
        return None
    begin = last[0]._replace(reads=[*(e for _, e in reads), *last[0].reads])
    joined = RegionSequence((*_parts(entries[at]), begin, *last[1:]))
    return [joined if number == 0 else entries[index] for number, index in order]


def _parts(entry: Entry) -> tuple[UpdatingRegion, ...]:
    if isinstance(entry, RegionSequence):
        return entry.parts
    if isinstance(entry, CompiledRegion):
        return (UpdatingRegion([], entry, []),)
    assert isinstance(entry, UpdatingRegion)
    return (entry,)


def _nodes(entry: Entry) -> Sequence[Node]:
    return [entry] if isinstance(entry, Node) else entry.nodes


def _dependencies(
    entries: Sequence[Entry], access_of: Callable[[Node], NodeAccess], certain: CertainNodes
) -> Dependencies:
    """Return the dependencies of entries, with the program order of updates and of what can fail."""
    accesses = []
    for entry in entries:
        each = [access_of(node) for node in _nodes(entry)]
        reads = dict.fromkeys(t for access in each for t in access.reads)
        writes = dict.fromkeys(t for access in each for t in access.writes)
        accesses.append(NodeAccess([t for t in reads if t not in writes], list(writes)))
    data, all_ = dependencies_of(accesses)
    before, run, updating = set[int](), set[int](), False  # the last run of one kind, and the one before it
    for index, entry in enumerate(entries):
        if isinstance(entry, Node) and entry in certain:
            continue
        writes_variables = isinstance(entry, UpdatingRegion | RegionSequence)
        if writes_variables is not updating:
            before, run, updating = run, set(), writes_variables
        run.add(index)
        all_[index] |= before
    return Dependencies(data, all_)
