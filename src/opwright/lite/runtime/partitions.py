"""Partitions: which of the nodes that a delegate claims become one, so that the graph stays a graph.

Lives here: who must run before whom, grouping, merging, the order that results. Plain numbers in, plain numbers out.
Not here: what a delegate is told (delegation.py).

Nodes are places 0, 1, 2, ... in an execution plan. A partition is a set of claimed nodes that is

    connected   along tensors that one of them makes and another reads, and along effects, which keep their order
    acyclic     no path leaves it and comes back: its inputs are all there before any of its outputs is needed
    maximal     no two partitions joined by a tensor could be one without breaking the rule above

The first two steps are the official partitioner's epochs, reached in one pass as the plan is sorted already. They take
as one what can be run without a pause for other nodes; that can cut too often (where an epoch ended for the sake of
another branch), so the third step merges neighbours. Its searches are bounded: past the budget, what is not merged
stays apart, which is right, too.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

BUDGET = 2_000_000  # steps of search for merging, about half a second; networks of 1000 nodes take a few thousand


class Steps(NamedTuple):
    """What one node touches. reads, writes: tensors, by any name; ordered: whether it has an effect besides (on a
    variable, a table, the world), so that it keeps its place among all such nodes."""

    reads: Sequence[int]
    writes: Sequence[int]
    ordered: bool = False


class Flow(NamedTuple):
    """Which earlier nodes each node waits for: `data` for a tensor they make or an effect they have, `waits` for that
    or any other reason."""

    data: list[set[int]]
    waits: list[set[int]]


def flow_of(nodes: Iterable[Steps]) -> Flow:
    """The dependencies of nodes given in a valid order. A tensor written twice keeps its writers and readers apart."""
    data: list[set[int]] = []
    waits: list[set[int]] = []
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    last_ordered = None
    for place, node in enumerate(nodes):
        made = {writer[t] for t in node.reads if t in writer}
        other = {r for t in node.writes for r in readers.get(t, ())} | {writer[t] for t in node.writes if t in writer}
        if node.ordered:
            made |= set() if last_ordered is None else {last_ordered}
            last_ordered = place
        for t in node.reads:
            readers.setdefault(t, []).append(place)
        for t in node.writes:
            writer[t] = place
            readers.pop(t, None)
        data.append(made)
        waits.append((made | other) - {place})
    return Flow(data, waits)


def partition(flow: Flow, claimed: set[int], connected: bool = True) -> list[list[int]]:
    """The partitions of the claimed nodes, each sorted, in the order of their first nodes. connected: as
    above; else nodes that nothing joins may be in one, too, so that there are fewer."""
    level = _epochs(flow, claimed)
    group = _Groups(len(level))
    for node in claimed:
        for earlier in flow.data[node]:
            if earlier in claimed and level[earlier] == level[node]:
                group.join(earlier, node)
    neighbours = {(e, node) for node in claimed for e in flow.data[node] if e in claimed}
    if not connected:
        neighbours |= set(itertools.pairwise(sorted(claimed)))
    _merge(flow, sorted(neighbours), group)
    members: dict[int, list[int]] = {}
    for node in sorted(claimed):
        members.setdefault(group.of(node), []).append(node)
    return list(members.values())


def _epochs(flow: Flow, claimed: set[int]) -> list[int]:
    """Of each node the least epoch in which it can run; claimed nodes run in odd ones, the others in even ones.

    Where a claimed node waits for another without reading from it, an epoch lies between: what is joined within an
    epoch is joined by tensors, so that no path of another kind can run between two of its nodes.
    """
    level: list[int] = []
    for node, earlier in enumerate(flow.waits):
        mine = node in claimed
        least = max((level[e] + 2 * (mine and e in claimed and e not in flow.data[node]) for e in earlier), default=0)
        level.append(least + ((least & 1) != mine))
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


def _merge(flow: Flow, neighbours: Sequence[tuple[int, int]], group: _Groups) -> None:
    """Join groups of neighbours where no path leads from the one to the other over a third, until there are none."""
    later: dict[int, set[int]] = {}
    earlier: dict[int, set[int]] = {}
    for node, waits in enumerate(flow.waits):
        for e in waits:
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
            found, steps = _detour(later, a, b, steps)
            if not found and b not in later.get(a, ()):  # else a path back would be a cycle
                found, steps = _detour(later, b, a, steps)
            if steps <= 0:
                return
            if found:
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
    """Whether a path leads from a to b over a third group; and the steps that are left."""
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


def arrange(flow: Flow, groups: Sequence[Sequence[int]]) -> list[tuple[int | None, int]]:
    """The plan in which each group is one: (group, its first node) and (None, node), as early as the old plan has them.

    raises ValueError where the groups are no partitions: a cycle would run through one of them
    """
    of: dict[int, int] = {node: place for place, group in enumerate(groups) for node in group}
    first = [min(group) for group in groups]
    count = len(flow.waits)

    def key(node: int) -> int:
        return first[of[node]] if node in of else node

    later: dict[int, set[int]] = {}
    open_: dict[int, int] = dict.fromkeys(map(key, range(count)), 0)
    for node, waits in enumerate(flow.waits):
        for e in waits:
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
