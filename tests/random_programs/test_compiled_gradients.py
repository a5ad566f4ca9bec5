"""Values and gradients of drawn programs are the same compiled as eagerly (compiled_gradients.py; a script, too)."""

from __future__ import annotations

import pytest
from compiled_gradients import differences
from gradient_programs_drawn import Program, draw

from thorough import examples


def texts(seed: int) -> list[str]:
    return [f"seed {seed}: {text}" for text in differences(draw(seed), seed).texts]


@pytest.mark.parametrize("first", range(0, examples(40), 5))
def test_a_few_programs(first: int) -> None:
    assert [text for seed in range(first, first + 5) for text in texts(seed)] == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 2100, 25))
def test_many_programs(first: int) -> None:
    assert [text for seed in range(first, first + 25) for text in texts(seed)] == []


def test_seeds_are_reproducible() -> None:
    def text(program: Program) -> str:
        return f"{program}\n{[a.tobytes() for _, a in program.inputs]}"

    assert text(draw(17)) == text(draw(17))
    assert len({text(draw(seed)) for seed in range(20)}) == 20
