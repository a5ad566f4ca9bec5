"""Partition a graph into the sets of nodes that each become one: regions of functions, delegates' nodes of files.

Lives here: dependencies, levels, grouping, merging, the schedule that results. Plain numbers in, plain numbers out.
Not here: which nodes are claimed (partitioner.py; files: lite/compiled/claims.py), what a partition becomes.

Nodes are places 0, 1, 2, ... in a valid order. A partition is a set of claimed nodes that is

    acyclic     no path leaves it and comes back: its inputs are all there before any of its outputs is needed
    connected   along tensors that one of them makes and another reads, and along effects, which keep their order;
                public delegates alone ask for this
    maximal     no two connected partitions joined by a tensor could be one without breaking the rules above

Levels are the official partitioner's epochs, computed in one pass as nodes are sorted already. Without connectedness a
level's claimed nodes are one partition, and no partition of the same nodes has fewer: nodes of two levels are apart by
a path through nodes that are not claimed. Connected partitions are the joined nodes of a level; as a level can end for
the sake of another branch, a further step merges neighbours. Its searches are bounded: past the budget, what is not
merged stays apart, which is right, too.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

BUDGET = 2_000_000  # steps of search for merging, about half a second; networks of 1000 nodes take a few thousand


class NodeAccess(NamedTuple):
    """What one node touches. reads, writes: tensors or state, by any name; ordered: whether it has an effect besides
    (on a variable, a table, the world), so that it keeps its place among all such nodes."""

    reads: Sequence[Hashable]
    writes: Sequence[Hashable]
    ordered: bool = False


class Dependencies(NamedTuple):
    """The earlier nodes that each node depends on: `data` for a tensor they make or an effect they have, `all` for that
    or any other reason."""

    data: list[set[int]]
    all: list[set[int]]


def dependencies_of(nodes: Iterable[NodeAccess]) -> Dependencies:
    """Return the dependencies of nodes in a valid order. A tensor written twice keeps its writers and readers apart."""
    data: list[set[int]] = []
    all_: list[set[int]] = []
    writer: dict[Hashable, int] = {}
    readers: dict[Hashable, list[int]] = {}
    last_ordered = None
    for place, node in enumerate(nodes):
        sources = {writer[t] for t in node.reads if t in writer}
        other = {r for t in node.writes for r in readers.get(t, ())} | {writer[t] for t in node.writes if t in writer}
        if node.ordered:
            sources |= set() if last_ordered is None else {last_ordered}
            last_ordered = place
        for t in node.reads:
            readers.setdefault(t, []).append(place)
        for t in node.writes:
            writer[t] = place
            readers.pop(t, None)
        data.append(sources)
        all_.append((sources | other) - {place})
    return Dependencies(data, all_)


def partition(dependencies: Dependencies, claimed: set[int], connected: bool = True) -> list[list[int]]:
    """Return the partitions of the claimed nodes, each sorted, in the order of their first nodes.

    connected: as above; else the claimed nodes of a level are one partition, whether tensors join them or not
    """
    level = levels(dependencies, claimed, dependencies.data if connected else dependencies.all)
    if connected:
        group = _Groups(len(level))
        neighbours = [(e, node) for node in sorted(claimed) for e in sorted(dependencies.data[node]) if e in claimed]
        for earlier, node in neighbours:
            if level[earlier] == level[node]:
                group.join(earlier, node)
        _merge(dependencies, sorted(neighbours), group)
        level = [group.of(node) for node in range(len(level))]
    members: dict[int, list[int]] = {}
    for node in sorted(claimed):
        members.setdefault(level[node], []).append(node)
    return list(members.values())


def levels(dependencies: Dependencies, claimed: set[int], joining: Sequence[set[int]]) -> list[int]:
    """Return the least level of each node; claimed nodes run at odd ones, the others at even ones.

    joining: by node, the dependencies on claimed nodes that share its level; between it and others that it depends on
    lies a level. So where tensors alone join, no path of another kind runs between two nodes of a level.
    """
    level: list[int] = []
    for node, earlier in enumerate(dependencies.all):
        odd = node in claimed
        least = max((level[e] + 2 * (odd and e in claimed and e not in joining[node]) for e in earlier), default=0)
        level.append(least + ((least & 1) != odd))
    return level


class _Groups:
    """Sets that are joined: union by the smaller number, with paths halved."""

    def __init__(self, count: int) -> None:
        self.parent = list(range(count))

    def of(self, node: int) -> int:
        parent = self.parent
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    def join(self, a: int, b: int) -> None:
        a, b = sorted((self.of(a), self.of(b)))
        self.parent[b] = a


def _merge(dependencies: Dependencies, neighbours: Sequence[tuple[int, int]], group: _Groups) -> None:
    """Join groups of neighbours while no path leads from the one to the other over a third."""
    later: dict[int, set[int]] = {}
    earlier: dict[int, set[int]] = {}
    for node, earlier_nodes in enumerate(dependencies.all):
        for e in earlier_nodes:
            a, b = group.of(e), group.of(node)
            if a != b:
                later.setdefault(a, set()).add(b)
                earlier.setdefault(b, set()).add(a)
    steps = BUDGET
    changed = True
    while changed:
        changed = False
        left = []
        for e, node in neighbours:
            a, b = group.of(e), group.of(node)
            if a == b:
                continue
            detour, steps = _detour(later, a, b, steps)
            if not detour and b not in later.get(a, ()):  # else a path back would be a cycle
                detour, steps = _detour(later, b, a, steps)
            if steps <= 0:
                return
            if detour:
                left.append((e, node))
                continue
            group.join(a, b)
            kept, gone = sorted((a, b))
            for edges, back in ((later, earlier), (earlier, later)):
                both = (edges.pop(a, set()) | edges.pop(b, set())) - {a, b}
                edges[kept] = both
                for other in both:
                    back[other] -= {gone}
                    back[other].add(kept)
            changed = True
        neighbours = left


def _detour(later: dict[int, set[int]], a: int, b: int, steps: int) -> tuple[bool, int]:
    """Return whether a path leads from a to b over a third group, and the steps that are left."""
    todo = [g for g in later.get(a, ()) if g != b]
    seen = set(todo)
    while todo and steps > 0:
        reached = later.get(todo.pop(), ())
        steps -= 1 + len(reached)
        if b in reached:
            return True, steps
        new = [g for g in reached if g not in seen]
        seen.update(new)
        todo += new
    return False, steps


def schedule(dependencies: Dependencies, groups: Sequence[Sequence[int]]) -> list[tuple[int | None, int]]:
    """Return the order in which each group is one: (group, its first node) and (None, node), as early as before.

    raises ValueError where the groups are no partitions: a cycle would run through one of them
    """
    of: dict[int, int] = {node: place for place, group in enumerate(groups) for node in group}
    first = [min(group) for group in groups]
    count = len(dependencies.all)

    def key(node: int) -> int:
        return first[of[node]] if node in of else node

    later: dict[int, set[int]] = {}
    open_: dict[int, int] = dict.fromkeys(map(key, range(count)), 0)
    for node, earlier_nodes in enumerate(dependencies.all):
        for e in earlier_nodes:
            a, b = key(e), key(node)
            if a != b and b not in later.setdefault(a, set()):
                later[a].add(b)
                open_[b] += 1
    ready = [k for k, n in open_.items() if n == 0]
    heapq.heapify(ready)
    plan: list[tuple[int | None, int]] = []
    while ready:
        k = heapq.heappop(ready)
        plan.append((of.get(k), k))
        for b in later.get(k, ()):
            open_[b] -= 1
            if open_[b] == 0:
                heapq.heappush(ready, b)
    if len(plan) != len(open_):
        raise ValueError("a cycle runs through a group of nodes")
    return plan
