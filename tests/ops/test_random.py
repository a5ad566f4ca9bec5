"""Random numbers: that seeds repeat them, that they go on where they should, and that they follow their distributions.

Lives here: what one row cannot say.  Not here: shapes, dtypes and errors (cases_random.py).
Bounds are some five standard errors of the statistic under a fixed seed, so that they neither flicker nor pass a
wrong one.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, Philox

import opwright as ow
from opwright.ops import nn, random

N = 40_000


@pytest.fixture(autouse=True)
def no_seed_left_behind() -> Iterator[None]:
    from opwright.ops.random import state

    yield
    state._global_seed = None
    state._calls.clear()


def numbers(tensor: Any) -> Any:
    return np.asarray(tensor, np.float64)


def same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(numbers(a), numbers(b)))


# ---- seeds ----------------------------------------------------------------------------------------------------------

DRAWS = {
    "normal": lambda seed=None: random.normal([4], seed=seed),
    "uniform": lambda seed=None: random.uniform([4], seed=seed),
    "integers": lambda seed=None: random.uniform([4], 0, 1 << 30, "int32", seed=seed),
    "truncated_normal": lambda seed=None: random.truncated_normal([4], seed=seed),
    "shuffle": lambda seed=None: random.shuffle(np.arange(50), seed=seed),
    "categorical": lambda seed=None: random.categorical(np.zeros((1, 1000)), 4, seed=seed),
    "gamma": lambda seed=None: random.gamma([4], 2.0, seed=seed),
    "poisson": lambda seed=None: random.poisson([4], 1000.0, seed=seed),
    "dropout": lambda seed=None: nn.dropout(np.ones(99, np.float32), 0.5, seed=seed),
}
draws = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)


@draws
def test_global_seed_repeats_a_program(draw: Any) -> None:
    random.set_seed(5)
    first = [draw(), draw(), draw(9), draw(9)]
    random.set_seed(5)
    again = [draw(), draw(), draw(9), draw(9)]
    assert all(map(same, first, again))
    assert not same(first[0], first[1])
    assert not same(first[2], first[3])
    assert not same(first[0], first[2])
    random.set_seed(6)
    assert not same(draw(), first[0])


@draws
def test_without_seeds_nothing_repeats(draw: Any) -> None:
    assert not same(draw(), draw())


@draws
def test_operator_seed_without_global_seed(draw: Any) -> None:
    from opwright.ops.random import state

    first = [draw(9), draw(9)]
    state._calls.clear()  # a new program
    again = [draw(9), draw(9)]
    assert all(map(same, first, again))
    assert not same(first[0], first[1])


def test_seed_of_any_integer() -> None:
    for seed in (0, -1, 2**63, 2**70, np.int64(4)):
        random.set_seed(seed)
        a = random.normal([3])
        random.set_seed(seed)
        assert same(a, random.normal([3]))
    with pytest.raises((TypeError, AttributeError)):
        random.set_seed("5")


def test_no_global_seed() -> None:
    drawn = []
    for _ in range(2):
        random.set_seed(5)
        random.set_seed(None)
        drawn.append(random.uniform([4]).numpy().tolist())
    assert drawn[0] != drawn[1]


def test_negative_seeds_differ() -> None:
    """Keys of 64 bits, of which NumPy would make one float64."""
    seeds = [[1, -5], [1, -6], [1, 0], [-1, 1], [-2, 1], [1 << 62, -1]]
    drawn = [tuple(numbers(random.stateless_uniform([4], seed))) for seed in seeds]
    assert len(set(drawn)) == len(seeds)
    key = np.array([1, (1 << 64) - 5], np.uint64)
    expected = Generator(Philox(key=key, counter=np.zeros(4, np.uint64))).random(4, np.float32)
    assert same(random.stateless_uniform([4], [1, -5]), expected)


def test_stateless_is_a_function_of_its_seed() -> None:
    for draw in (random.stateless_normal, random.stateless_uniform, random.stateless_truncated_normal):
        assert same(draw([5], [1, 2]), draw([5], [1, 2]))
        assert not same(draw([5], [1, 2]), draw([5], [2, 1]))
    random.set_seed(3)
    assert same(random.stateless_normal([5], [1, 2]), random.stateless_normal([5], np.array([1, 2])))
    assert same(nn.stateless_dropout(np.ones(9), 0.5, [1, 2]), nn.stateless_dropout(np.ones(9), 0.5, [1, 2]))


def test_split_seeds_are_independent() -> None:
    a, b = numbers(random.split([1, 2])).astype(np.int64)
    x, y = numbers(random.stateless_normal([N], a)), numbers(random.stateless_normal([N], b))
    assert abs(np.corrcoef(x, y)[0, 1]) < 5 / math.sqrt(N)
    assert not same(random.fold_in([1, 2], 0), random.fold_in([1, 2], 1))


def test_generators() -> None:
    a, b = random.Generator.from_seed(4), random.Generator.from_seed(4)
    first, second = a.normal([3]), a.normal([3])
    assert same(first, b.normal([3]))
    assert same(second, b.normal([3]))
    assert not same(first, second)
    assert not same(first, random.Generator.from_seed(5).normal([3]))
    one, two = a.split(2)
    assert not same(one.uniform([3]), two.uniform([3]))
    assert a.uniform([50], 3, 5, "int32").dtype.name == "int32"
    assert set(numbers(a.uniform([50], 3, 5, "int32"))) == {3, 4}
    a.reset_from_seed(4)
    assert same(first, a.normal([3]))
    assert a.make_seeds(3).shape == (2, 3)
    random.set_global_generator(a)
    assert random.get_global_generator() is a


def test_eager_calls_leave_nothing_behind() -> None:
    from opwright.ops.random import state

    random.set_seed(1)
    seen = {float(random.normal([])) for _ in range(500)}
    assert len(seen) == 500
    assert not state._calls


def test_threads_share_one_sequence_without_repeats() -> None:
    random.set_seed(1)
    result: list[float] = []

    def work() -> None:
        result.extend(float(random.normal([], seed=2)) for _ in range(200))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(result)) == 800


# ---- traced ---------------------------------------------------------------------------------------------------------


def _body() -> Any:
    return random.normal([3]), random.normal([3]), random.uniform([3], seed=7)


def test_each_run_of_a_function_draws_on() -> None:
    f = ow.function(_body)
    for seed in (None, 3):
        if seed is not None:
            random.set_seed(seed)
        one, two = f(), f()
        assert not any(map(same, one, two))
        assert not same(one[0], one[1])


def test_functions_of_one_body_begin_alike() -> None:
    random.set_seed(3)
    f, g = ow.function(_body), ow.function(lambda: _body())
    one, two = f(), f()
    assert all(map(same, one, g()))
    assert all(map(same, two, g()))
    random.set_seed(3)
    assert all(map(same, one, f()))


# ---- distributions
# ----------------------------------------------------------------------------------------------------


def phi(x: Any) -> Any:
    return np.array([(1 + math.erf(v / math.sqrt(2))) / 2 for v in np.ravel(x)])


def follows(x: Any, cdf: Any) -> None:
    """Kolmogorov's test at a level of some 1e-6."""
    x = np.sort(numbers(x).ravel())
    steps = np.arange(x.size + 1) / x.size
    expected = cdf(x)
    distance = max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))
    assert distance < 2.7 / math.sqrt(x.size), f"distance {distance}"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distributions(dtype: str) -> None:
    random.set_seed(11)
    follows(random.normal([N], 3.0, 2.0, dtype), lambda x: phi((x - 3) / 2))
    follows(random.uniform([N], -1.0, 4.0, dtype), lambda x: (x + 1) / 5)
    low, high = phi([-2.0, 2.0])
    follows(random.truncated_normal([N], dtype=dtype), lambda x: (phi(x) - low) / (high - low))
    follows(random.gamma([N], 1.0, 2.0, dtype), lambda x: 1 - np.exp(-2 * x))
    follows(random.stateless_normal([N], [1, 2], dtype=dtype), phi)
    follows(random.stateless_uniform([N], [1, 2], dtype=dtype), lambda x: x)


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 11), ("bfloat16", 8)])
def test_uniform_halves_are_even_and_below_one(dtype: str, bits: int) -> None:
    random.set_seed(2)
    x = numbers(random.uniform([N], dtype=dtype)) * 2**bits
    assert np.array_equal(x, np.round(x))
    assert x.min() == 0
    assert x.max() == 2**bits - 1
    assert abs(x.mean() - (2**bits - 1) / 2) < 5 * 2**bits / math.sqrt(12 * N)


def chi_square(counts: Any, chances: Any) -> float:
    expected = np.sum(counts) * np.asarray(chances)
    return float(np.sum((counts - expected) ** 2 / expected))


def test_integers_are_unbiased() -> None:
    random.set_seed(4)
    counts = np.bincount(numbers(random.uniform([N], 0, 10, "int32")).astype(int), minlength=10)
    assert chi_square(counts, np.full(10, 0.1)) < 45  # 9 degrees of freedom
    # a remainder of 32 bits would favour the lower half two to one
    wide = numbers(random.uniform([N], 0, 3 << 29, "int32"))
    assert abs(np.mean(wide < (3 << 28)) - 0.5) < 5 / (2 * math.sqrt(N))


def test_categorical_follows_its_chances() -> None:
    random.set_seed(4)
    p = np.array([[0.1, 0.0, 0.6, 0.3], [0.25, 0.25, 0.25, 0.25]])
    with np.errstate(divide="ignore"):
        drawn = numbers(random.categorical(np.log(p), N)).astype(int)
    for row, chances in zip(drawn, p):
        counts = np.bincount(row, minlength=4)
        assert counts[chances == 0].sum() == 0
        assert chi_square(counts[chances > 0], chances[chances > 0]) < 30
    assert abs(np.corrcoef(drawn)[0, 1]) < 5 / math.sqrt(N)


def test_moments_of_counts() -> None:
    random.set_seed(4)
    x = numbers(random.poisson([N], [3.0, 40.0]))
    assert np.all(np.abs(x.mean(0) - [3, 40]) < 5 * np.sqrt(np.array([3, 40]) / N))
    assert np.all(np.abs(x.var(0) / [3, 40] - 1) < 0.06)
    b = numbers(random.stateless_binomial([N], [1, 2], 20.0, 0.25))
    assert abs(b.mean() - 5) < 5 * math.sqrt(3.75 / N)
    assert abs(b.var() / 3.75 - 1) < 0.06
    g = numbers(random.gamma([N], [0.5, 4.0], 2.0))
    assert np.all(np.abs(g.mean(0) - [0.25, 2.0]) < 5 * np.sqrt(np.array([0.125, 1.0]) / N))


def test_every_order_is_as_likely() -> None:
    random.set_seed(4)
    counts: dict[Any, int] = {}
    for _ in range(6000):
        order = tuple(numbers(random.shuffle(np.arange(3))).astype(int).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert chi_square(np.array(list(counts.values())), np.full(6, 1 / 6)) < 35
    pairs = np.stack([np.arange(100), np.arange(100)], 1)
    rows = numbers(random.shuffle(pairs))
    assert np.array_equal(rows[:, 0], rows[:, 1])
    assert not np.array_equal(rows[:, 0], np.arange(100))


def test_dropout_keeps_the_mean() -> None:
    random.set_seed(4)
    for dtype, rate in (("float32", 0.3), ("bfloat16", 0.1), ("float16", 0.01)):
        from opwright.core.dtypes import as_dtype

        y = numbers(nn.dropout(np.ones(N, as_dtype(dtype).np), rate))
        assert abs(np.mean(y == 0) - rate) < 5 * math.sqrt(rate * (1 - rate) / N)
