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
    """The accesses of one node. reads, writes: tensors or state, by any name; ordered: whether it has another effect
    (on a variable, a table, the world) that orders it among all such nodes."""

    reads: Sequence[Hashable]
    writes: Sequence[Hashable]
    ordered: bool = False


class Dependencies(NamedTuple):
    """The earlier nodes that each node depends on: `data` for a tensor or an effect, `all` for any reason."""

    data: list[set[int]]
    all: list[set[int]]


def dependencies_of(nodes: Iterable[NodeAccess]) -> Dependencies:
    """Return the dependencies of nodes in a valid order. Rewriting a tensor orders its writers and readers."""
    data: list[set[int]] = []
    all_: list[set[int]] = []
    writer: dict[Hashable, int] = {}
    readers: dict[Hashable, list[int]] = {}
    last_ordered = None
    for index, node in enumerate(nodes):
        sources = {writer[t] for t in node.reads if t in writer}
        other = {r for t in node.writes for r in readers.get(t, ())} | {writer[t] for t in node.writes if t in writer}
        if node.ordered:
            sources |= set() if last_ordered is None else {last_ordered}
            last_ordered = index
        for t in node.reads:
            readers.setdefault(t, []).append(index)
        for t in node.writes:
            writer[t] = index
            readers.pop(t, None)
        data.append(sources)
        all_.append((sources | other) - {index})
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
    """Return the least level of each node; claimed nodes run at odd levels, the others at even ones.

    joining: by node, the dependencies on claimed nodes that may share its level; all other dependencies are on lower
    levels, so that nodes of a level are connected by such dependencies only.
    """
    level: list[int] = []
    for node, earlier in enumerate(dependencies.all):
        odd = node in claimed
        lower_bound = max(
            (level[e] + 2 * (odd and e in claimed and e not in joining[node]) for e in earlier), default=0
        )
        level.append(lower_bound + ((lower_bound & 1) != odd))
    return level


class _Groups:
    """Disjoint sets: union by the smaller number, with path halving."""

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
    """Join neighboring groups unless a path connects them through a third."""
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
            remaining, gone = sorted((a, b))
            for edges, back in ((later, earlier), (earlier, later)):
                both = (edges.pop(a, set()) | edges.pop(b, set())) - {a, b}
                edges[remaining] = both
                for other in both:
                    back[other] -= {gone}
                    back[other].add(remaining)
            changed = True
        neighbours = left


def _detour(later: dict[int, set[int]], a: int, b: int, steps: int) -> tuple[bool, int]:
    """Return whether a path leads from a to b through a third group, and the remaining search steps."""
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
    """Return the order in which each group is contiguous: (group, its first node) and (None, node), as early as before.

    raises ValueError if the groups are no partitions, as a cycle runs through one of them
    """
    of: dict[int, int] = {node: index for index, group in enumerate(groups) for node in group}
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
