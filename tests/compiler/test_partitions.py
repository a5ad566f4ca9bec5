"""Partitions of random graphs: the rules checked one by one, by brute force."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.compiler import regions
from opwright.compiler.regions import NodeAccess, dependencies_of, partition, schedule
from thorough import examples


@st.composite
def graphs(draw, most=12):
    """Nodes in a valid order, and which of them are claimed."""
    count = draw(st.integers(1, most))
    nodes, result = [], 2  # tensors 0 and 1 are inputs
    for _ in range(count):
        reads = draw(st.lists(st.integers(0, result - 1), max_size=3))
        again = draw(st.booleans()) and draw(st.booleans()) and draw(st.booleans())
        writes = [draw(st.integers(0, result - 1))] if again else list(range(result, result + draw(st.integers(1, 2))))
        result = max(result, *(w + 1 for w in writes))
        nodes.append(NodeAccess(reads, writes, draw(st.integers(0, 6)) == 0))
    return nodes, draw(st.sets(st.integers(0, count - 1)))


def conflicts(nodes):
    """Pairs (i, j), i before j, that must keep their order."""
    for i, j in itertools.combinations(range(len(nodes)), 2):
        a, b = nodes[i], nodes[j]
        if (a.ordered and b.ordered) or {*a.writes} & {*b.reads, *b.writes} or {*a.reads} & {*b.writes}:
            yield i, j


def links_of(nodes):
    """Pairs (i, j) where j reads what i, the last writer before it, made; or where both have effects, and no node
    between them."""
    ordered = [i for i, node in enumerate(nodes) if node.ordered]
    yield from itertools.pairwise(ordered)
    for j, node in enumerate(nodes):
        for t in node.reads:
            writers = [i for i in range(j) if t in nodes[i].writes]
            if writers:
                yield writers[-1], j


def is_acyclic(pairs, groups, count):
    """Whether the graph with each group as one node has no cycle, by taking away nodes that wait for none."""
    of = {n: min(g) for g in groups for n in g}
    name = [of.get(n, n) for n in range(count)]
    edges = {(name[i], name[j]) for i, j in pairs if name[i] != name[j]}
    left = set(name)
    while free := left - {j for _, j in edges}:
        left -= free
        edges = {(i, j) for i, j in edges if i in left}
    return not left


def is_connected(group, links):
    reached, todo = {group[0]}, [group[0]]
    while todo:
        n = todo.pop()
        new = {a + b - n for a, b in links if n in (a, b)} & {*group} - reached
        reached |= new
        todo += new
    return reached == {*group}


@given(graphs())
@settings(max_examples=examples(150))
def test_partitions_are_partitions(drawn):
    nodes, claimed = drawn
    groups = partition(dependencies_of(nodes), claimed)
    assert sorted(n for g in groups for n in g) == sorted(claimed)
    assert all(g == sorted(g) for g in groups)
    assert [g[0] for g in groups] == sorted(g[0] for g in groups)


@given(graphs())
@settings(max_examples=examples(150))
def test_partitions_are_connected_acyclic_and_maximal(drawn):
    nodes, claimed = drawn
    groups = partition(dependencies_of(nodes), claimed)
    order, links = list(conflicts(nodes)), set(links_of(nodes))
    assert all(is_connected(g, links) for g in groups)
    assert is_acyclic(order, groups, len(nodes))
    for a, b in itertools.combinations(groups, 2):
        if any((i, j) in links or (j, i) in links for i in a for j in b):
            rest = [g for g in groups if g is not a and g is not b]
            assert not is_acyclic(order, [*rest, a + b], len(nodes)), (a, b)


@given(graphs())
@settings(max_examples=examples(150))
def test_partitions_that_need_not_be_connected_are_as_few_as_can_be(drawn):
    nodes, claimed = drawn
    groups = partition(dependencies_of(nodes), claimed, connected=False)
    order = list(conflicts(nodes))
    assert sorted(n for g in groups for n in g) == sorted(claimed)
    assert is_acyclic(order, groups, len(nodes))
    most = [0] * len(nodes)  # changes between claimed nodes and others on the path to a node that has most of them
    for j in range(len(nodes)):
        for i in (i for i, k in order if k == j):
            most[j] = max(most[j], most[i] + (most[i] % 2 != (j in claimed)))
        most[j] += most[j] % 2 != (j in claimed)
    assert len(groups) == (max((most[j] for j in claimed), default=0) + 1) // 2


@given(graphs(), st.data())
@settings(max_examples=examples(150))
def test_the_new_plan_keeps_every_order_that_matters(drawn, data):
    nodes, claimed = drawn
    dependencies = dependencies_of(nodes)
    groups = [g for g in partition(dependencies, claimed) if data.draw(st.booleans())]  # a delegate may leave some out
    plan = schedule(dependencies, groups)
    run = [n for group, first in plan for n in (groups[group] if group is not None else [first])]
    assert sorted(run) == list(range(len(nodes)))
    assert sum(group is not None for group, _ in plan) == len(groups)
    place = {n: i for i, n in enumerate(run)}
    assert all(place[i] < place[j] for i, j in conflicts(nodes))


def chain(*sources):
    """Nodes that each make one tensor, numbered as the nodes, from others; x is -1."""
    return dependencies_of([NodeAccess([s + 1 for s in source], [n + 1]) for n, source in enumerate(sources)])


KNOWN = {
    "one after the other": (((-1,), (0,), (1,)), {0, 1, 2}, [[0, 1, 2]]),
    "an operator between": (((-1,), (0,), (1,)), {0, 2}, [[0], [2]]),
    "a side branch is not an obstacle": (((-1,), (-1,), (0, 1)), {0, 2}, [[0, 2]]),
    "around a node that is not claimed": (((-1,), (0,), (0, 1)), {0, 2}, [[0], [2]]),
    "branches of one input stay apart": (((-1,), (-1,)), {0, 1}, [[0], [1]]),
    "branches that meet": (((-1,), (-1,), (0, 1)), {0, 1, 2}, [[0, 1, 2]]),
    "an epoch that ended for another branch": (((-1,), (0,), (1,), (0, 2), (0,)), {0, 2, 3, 4}, [[0, 4], [2, 3]]),
    "nothing": (((-1,),), set(), []),
}


@pytest.mark.parametrize("what", KNOWN)
def test_known_graphs(what):
    sources, claimed, expected = KNOWN[what]
    assert partition(chain(*sources), claimed) == expected


def test_a_group_with_a_cycle_is_no_plan():
    with pytest.raises(ValueError, match="cycle"):
        schedule(chain((-1,), (0,), (1,)), [[0, 2]])


def test_out_of_budget_partitions_are_still_right(monkeypatch):
    dependencies = chain((-1,), (0,), (-1,), (1, 2))
    assert partition(dependencies, {0, 2, 3}) == [[0], [2, 3]]
    monkeypatch.setattr(regions, "BUDGET", 0)
    assert partition(dependencies, {0, 2, 3}) == [[0], [2], [3]]
    assert [first for _, first in schedule(dependencies, [[0], [2], [3]])] == [0, 1, 2, 3]


def test_large_graphs_take_no_time():
    n = 5000
    dependencies = dependencies_of([NodeAccess([max(0, i - 7), i], [i + 1]) for i in range(n)])
    groups = partition(dependencies, {i for i in range(n) if i % 5})
    assert sum(map(len, groups)) == n - n // 5
    assert len(schedule(dependencies, groups)) == len(groups) + n // 5
