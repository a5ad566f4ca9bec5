"""The arena planner: buffers alive together never overlap; on known cases the arena is as small as it can be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwright.compiler.memory import Allocation, Lifetimes, plan_arena

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
        # eight places at step 4, which no order by size, lifetime or first access alone fills
        ([Allocation(64 * n, *span) for n, *span in ((3, 3, 5), (3, 2, 3), (1, 2, 4), (2, 4, 6), (2, 4, 5))], 512),
    ],
)
def test_known_cases(found: list[Allocation], total: int) -> None:
    assert plan_arena(found, 64)[1] == total


def test_a_result_takes_the_place_of_an_operand_that_dies() -> None:
    lives: Lifetimes[str] = Lifetimes()
    for key, first, last in (("x", 0, 1), ("a", 1, 2), ("b", 2, 4), ("c", 2, 3)):
        lives.touch(key, first, last)
    assert lives.span("a") == (1, 2)
    assert lives.may_share("x", "a", 1)
    assert not lives.may_share("x", "a", 2)  # neither dies nor begins there
    assert not lives.may_share("x", "b", 1)  # which begins later
    assert not lives.may_share("a", "a", 2)
    lives.share("x", "a")
    assert lives.root("a") == "x"
    assert lives.span("a") == lives.span("x") == (0, 2)
    assert lives.may_share("a", "b", 2)  # through what it shares
    lives.share("a", "b")
    assert not lives.may_share("a", "c", 2)  # the memory is taken
    assert dict(lives.items()) == {"x": (0, 4), "c": (2, 3)}
    assert [lives.is_dead_after("a", i) for i in (3, 4)] == [False, True]
    assert lives.is_dead_after("nobody", 0)
    assert "b" in lives
    assert "nobody" not in lives
