"""The arena planner: buffers alive together never overlap; on known cases the arena is as small as it can be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwright.compiler import Allocation, plan_arena

buffers = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 20), st.integers(0, 8)).map(
        lambda t: Allocation(t[0], t[1], t[1] + t[2])
    ),
    max_size=30,
)


@given(buffers, st.sampled_from([1, 16, 64]))
def test_buffers_alive_together_do_not_overlap(found: list[Allocation], alignment: int) -> None:
    offsets, total = plan_arena(found, alignment)
    for i, a in enumerate(found):
        assert offsets[i] % alignment == 0
        assert offsets[i] + a.size <= total or a.size == 0
        for j, b in enumerate(found[:i]):
            together = a.first <= b.last and b.first <= a.last
            if together and a.size and b.size:
                assert offsets[i] + a.size <= offsets[j] or offsets[j] + b.size <= offsets[i]


@given(buffers)
def test_the_arena_holds_at_least_the_busiest_step(found: list[Allocation]) -> None:
    _, total = plan_arena(found, 1)
    busiest = max((sum(b.size for b in found if b.first <= t <= b.last) for t in range(30)), default=0)
    assert busiest <= total <= sum(b.size for b in found)


@pytest.mark.parametrize(
    ("found", "total"),
    [
        ([], 0),
        ([Allocation(0, 0, 3)], 0),
        ([Allocation(100, 0, 1), Allocation(100, 2, 3)], 128),  # one after the other: the same place
        ([Allocation(100, 0, 2), Allocation(100, 2, 3)], 256),  # together at step 2
        # a chain: only neighbours live together, so two places do
        ([Allocation(64, i, i + 1) for i in range(10)], 128),
    ],
)
def test_known_cases(found: list[Allocation], total: int) -> None:
    assert plan_arena(found, 64)[1] == total
