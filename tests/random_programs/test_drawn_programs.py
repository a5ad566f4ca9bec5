"""Programs drawn at random give the same in every way of running (drawn_programs.py; there is a script in it)."""

from __future__ import annotations

import pytest
from drawn_programs import differences


@pytest.mark.parametrize("seed", range(5))
def test_a_few_programs(seed: int) -> None:
    assert differences(seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 3100, 25))
def test_many_programs(first: int) -> None:
    assert [text for seed in range(first, first + 25) for text in differences(seed)] == []
