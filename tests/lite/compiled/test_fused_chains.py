"""Chains of two operators, as fusion has them and as the reference kernels do: every pair that a rule can meet.

The sizes lie on both sides of the thresholds of the code: vectors of 16 to 64 bytes, tables of 256, blocks that threads
share. The oracle is the reference interpreter (itself held against the official one, operator by operator, in
tests/lite/ops); and the engine without fusion, which a chain of integers may differ from in rounding alone.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from engine_kit import engine
from foreign import HERE
from fused_models import KINDS, PRODUCERS, STAGES, Chains, Stage, joined
from lite_kit import run

from opwright import lite
from opwright.compiler.loops import fusion
from opwright.core.errors import OpError
from opwright.lite.interpreter import OpResolverType
from thorough import THOROUGH

SIZES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300, 1000)
CHANNELS = (1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65)
SOME = ["INT8", "FLOAT32", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("UINT8", "INT16"))]
STEP = {"FLOAT32": 2e-4, "INT16": 12}
"""Tolerances in units of the output; 2 steps for bytes."""
FLIPS = 0.05
"""The share of elements that may differ by more: where a step in the first operator's result changes a comparison, or
is multiplied in the second's."""


def reference(content: bytes, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
    return run(lite.Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF), feeds)


def compiled(content: bytes, feeds: Sequence[np.ndarray], threads: int = 1) -> list[np.ndarray]:
    with engine(verify=True):
        return run(lite.Interpreter(model_content=content, num_threads=threads), feeds)


@functools.cache
def serves(stage: Stage, kind: str, shape: tuple[int, ...]) -> bool:
    """Whether the reference has a stage for tensors of this type."""
    chains = Chains(kind, shape)
    try:
        chains.end(stage.write(chains, chains.x))
        reference(chains.content(), chains.feeds())
    except (OpError, ValueError, RuntimeError):
        return False
    return True


def far(kind: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which elements differ by more than rounding."""
    limit = STEP.get(kind, 2)
    if a.dtype.kind != "f":
        return np.abs(a.astype(np.int64) - b.astype(np.int64)) > limit
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= limit * (1 + np.abs(b))
    return ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))


def compare(kind: str, names: Iterable[str], actual: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    wrong = []
    for name, a, b in zip(names, actual, expected, strict=True):
        share = far(kind, a, b)
        if share.sum() > max(1, FLIPS * share.size):
            wrong.append(f"{name}: {int(share.sum())} of {share.size}")
    assert not wrong, "\n".join(wrong)


def written(kind: str, shape: tuple[int, ...], chains: Sequence[tuple[Stage, ...]]) -> Chains:
    """The model of chains, each of stages one after the other."""
    model = Chains(kind, shape)
    for chain in chains:
        y = model.x
        for stage in chain:
            y = stage.write(model, y)
        model.end(y)
    return model


def check(
    kind: str,
    shape: tuple[int, ...],
    chains: Sequence[tuple[Stage, ...]],
    monkeypatch: Any = None,
    threads: Sequence[int] = (1, 2),
) -> None:
    """Both engines on one model of all chains; monkeypatch: where the engine without fusion is asked, too."""
    model, names = written(kind, shape, chains), [" -> ".join(map(str, chain)) for chain in chains]
    content, feeds = model.content(), model.feeds()
    with np.errstate(all="ignore"):
        expected = reference(content, feeds)
    first = compiled(content, feeds)
    compare(kind, names, first, expected)
    for n in threads[1:]:
        for a, b in zip(compiled(content, feeds, n), first):
            np.testing.assert_array_equal(a, b)
    if monkeypatch is not None:
        with monkeypatch.context() as patch:
            patch.setattr(fusion, "PASSES", ())
            compare(kind, names, first, compiled(model.content("apart"), feeds))


def pairs(
    kind: str, firsts: Sequence[Stage], shape: tuple[int, ...], count: int, seed: int = 0
) -> list[tuple[Stage, Stage]]:
    """Return pairs of stages that the reference has: all, or a random sample."""
    every = [(a, b) for a in firsts if serves(a, kind, shape) for b in STAGES if serves(b, kind, (2, 17))]
    drawn = random.Random(f"{kind} {seed}")
    return every if count >= len(every) else drawn.sample(every, count)


@pytest.fixture(params=HERE)
def target(request: Any) -> Any:
    from opwright.core import flags

    with flags.override(target=request.param):
        yield request.param


def in_turn(chains: Sequence[tuple[Stage, ...]], target: str) -> Sequence[tuple[Stage, ...]]:
    """Return the chains that a target runs: all on the first one and if thorough, otherwise every second."""
    return chains if THOROUGH or target == HERE[0] else chains[::2]


@pytest.mark.parametrize("kind", SOME)
@pytest.mark.parametrize("n", [pytest.param(17, marks=pytest.mark.slow), 257])
def test_some_pairs_of_maps(kind: str, n: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = pairs(kind, STAGES, (2, 17), 6 if THOROUGH and kind in ("INT8", "UINT8") else 2)
    check(kind, (2, n), in_turn(chosen, target), monkeypatch if THOROUGH or target == HERE[0] else None)


@pytest.mark.parametrize("kind", SOME)
@pytest.mark.parametrize("channels", [pytest.param(5, marks=pytest.mark.slow), 17])
def test_maps_behind_producers(kind: str, channels: int, target: str) -> None:
    check(kind, (1, 5, 6, channels), in_turn(pairs(kind, PRODUCERS, (1, 5, 6, 5), 4 if THOROUGH else 2), target))


@pytest.mark.parametrize("kind", ["INT8", pytest.param("UINT8", marks=pytest.mark.slow)])
def test_every_choice_that_is_a_function_of_one_byte(kind: str, target: str) -> None:
    """Tables of wide numbers, which comparisons have, within tables of bytes, which choices become."""
    chosen = [
        (s,)
        for s in STAGES
        if "number" in s.name.split()[1:2] and s.name.endswith(("number", "function")) and "SELECT" in s.name
    ]
    check(kind, (2, 300), in_turn([c for c in chosen if serves(c[0], kind, (2, 17))], target), threads=(1,))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(4))
def test_all_pairs_of_maps(kind: str, part: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every = pairs(kind, STAGES, (2, 17), 1200 if kind in ("INT8", "UINT8") else 160)[part::4]
    for start in range(0, len(every), 100):
        check(kind, (2, 300), every[start : start + 100], monkeypatch)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_all_sizes_of_maps(kind: str, target: str) -> None:
    every = pairs(kind, STAGES, (2, 17), 24, seed=1)
    for n in (*SIZES, 70_001):
        check(kind, (2, n), every)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_all_producers(kind: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, channels in enumerate(CHANNELS):
        check(kind, (1, 5, 6, channels), pairs(kind, PRODUCERS, (1, 5, 6, 5), 24, seed), monkeypatch)


@pytest.mark.parametrize("kind", SOME)
@pytest.mark.parametrize(
    "channels", [pytest.param(3, marks=pytest.mark.slow), 17, pytest.param(33, marks=pytest.mark.slow)]
)
def test_parts_of_a_concatenation(kind: str, channels: int, target: str) -> None:
    drawn = random.Random(f"{kind} {channels}")
    writers = ("CONV_2D 1x1", "CONV_2D 3x3", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D")
    image = [s for s in PRODUCERS if serves(s, kind, (1, 5, 6, 5)) and s.name in writers]
    maps = [s for s in STAGES if serves(s, kind, (2, 17)) and s.name.split()[0] not in ("LOGISTIC", "TANH")]
    chosen = [(joined((a, *drawn.sample(maps, 2))),) for a in (image if THOROUGH else image[::2])]
    check(kind, (1, 5, 6, channels), in_turn(chosen, target))
