"""Fixed-point formulas of operators: on arrays and in kernels what Python's integers say."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from exact_integers import clamped, nearest, nearest_away, rescaled, spread, wrapped

from opwright.compiler import language as kl
from opwright.compiler.language import i64, ptr
from opwright.compiler.language.compilation import call
from opwright.compiler.target import host
from opwright.scalar import numpy_namespace
from opwright.scalar.fixed_point_layers import ONE, FixedMean, GateNormalization, IntegerCells, Sampling, SoftmaxOfInt16

NUMBERS = 256
BY = 1518500250, -4
"""A multiplier."""


def truncated(x: Fraction) -> int:
    """Toward zero."""
    return abs(x).__floor__() * (1 if x >= 0 else -1)


def after(power: int) -> Callable[..., int]:
    """The state of cells of the scale 2^power: a and b are gates, c the state before."""

    def exact(a: int, b: int, c: int, d: int) -> int:
        fresh = wrapped(nearest_away(Fraction(abs(b) * d, 1 << (30 + power))), 16)
        return clamped(nearest_away(Fraction(abs(a) * c, 1 << 15)) + fresh, 16)

    return exact


def normalized(a: int, b: int, c: int, d: int) -> int:
    wide = rescaled(1024 * a - 77, *BY) * b + c
    rounded = truncated(Fraction(wide + (512 if wide > 0 else -512), 1024))
    return clamped(rescaled(rounded, *BY), 16)


def mean_of_four(a: int, b: int, c: int, d: int) -> int:
    across, down = Fraction(300, ONE), Fraction(1001, ONE)
    above, below = (p * (1 - across) + q * across for p, q in ((a, b), (c, d)))
    return nearest_away(above * (1 - down) + below * down)


Function = Callable[..., Any]
FORMULAS: dict[str, tuple[Function, Function]] = {
    # name: (formula over a namespace, of four int16, the same of Python's integers)
    **{
        f"cells of 2^{power}": (
            lambda m, a, b, c, d, power=power: IntegerCells(m, power).after(m.abs(a), c, m.abs(b), d),
            after(power),
        )
        for power in (-9, -15, -17, -30)
    },
    "mean": (
        lambda m, a, b, c, d: GateNormalization(m).moments(a * 50, m.abs(b) * 1000, 37)[0],
        lambda a, b, c, d: truncated(Fraction(a * 50 * 1024, 37)),
    ),
    "variance": (
        lambda m, a, b, c, d: GateNormalization(m).moments(a >> 9, b * b, 37)[1],
        lambda a, b, c, d: wrapped(
            truncated(Fraction(b * b * ((1 << 20) // 37) - truncated(Fraction((a >> 9) * 1024, 37)) ** 2, 1 << 20)), 32
        ),
    ),
    "normalized": (lambda m, a, b, c, d: GateNormalization(m).normalized(a, 77, BY, b, c, BY), normalized),
    "mean of four": (lambda m, a, b, c, d: FixedMean(m).of_four((a, b, c, d), 300, 1001), mean_of_four),
    "share": (
        lambda m, a, b, c, d: SoftmaxOfInt16(m).share(m.abs(a), m.abs(b), (c & 15) + 1),
        lambda a, b, c, d: min(nearest(Fraction(abs(a) * abs(b), 1 << (c % 16 + 1))), 32767),
    ),
}


@kl.family
def computed(work, a: ptr[i64], b: ptr[i64], c: ptr[i64], d: ptr[i64], y: ptr[i64], n: i64):
    """An item is a vector; y: a row of n for each formula."""
    lanes = work.target.vector_bytes // 8
    for item in work.items():
        inputs = [p.load(item * lanes, lanes) for p in (a, b, c, d)]
        for row, (formula, _) in enumerate(FORMULAS.values()):
            (y + row * n).store(formula(kl, *inputs), item * lanes)


def test_formulas_are_exact_in_both() -> None:
    inputs = [spread(seed, -(1 << 15), (1 << 15) - 1, NUMBERS) for seed in range(4)]
    inputs = [np.random.default_rng(seed).permutation(x) for seed, x in enumerate(inputs)]
    compiled = np.zeros((len(FORMULAS), NUMBERS), np.int64)
    call(computed.code(), [*inputs, compiled, NUMBERS], NUMBERS // (host().vector_bytes // 8))
    for (name, (formula, exact)), in_kernels in zip(FORMULAS.items(), compiled):
        expected = [exact(*map(int, four)) for four in zip(*inputs)]
        np.testing.assert_array_equal(formula(numpy_namespace, *inputs), expected, f"{name} on arrays")
        np.testing.assert_array_equal(in_kernels, expected, f"{name} in kernels")


def test_positions_lie_where_rationals_say() -> None:
    """Steps are fractions of a pixel cut to 1/1024; float32 is within its rounding of the position."""
    for size, out in ((1, 1), (7, 13), (13, 7), (5, 1), (4, 64)):
        for corners, centers in ((False, False), (True, False), (False, True)):
            scale = Fraction(size - 1, out - 1) if corners and out > 1 else Fraction(size, out)
            half = Fraction(1, 2) if centers else Fraction(0)
            exact = [(i + half) * scale - half for i in range(out)]
            positions = Sampling(size, out, corners, centers)
            for places, slack in ((positions.between(), 1e-4), (positions.between_steps(), (out + 2) / ONE)):
                before, later, weight = places
                at = before + np.asarray(weight, float) / (1 if weight.dtype.kind == "f" else ONE)
                np.testing.assert_allclose(at, np.array(exact, float), atol=slack)
                assert (before >= 0).all()
                assert (later <= size - 1).all()
                assert (later - before <= 1).all()
            jumps = [p + half + (Fraction(1, 2) if corners else 0) for p in exact]  # a pixel ends at a whole number
            clear = [i for i, p in enumerate(jumps) if abs(p - round(p)) > Fraction(1, 1000)]
            expected = [min(max(math.floor(jumps[i]), 0), size - 1) for i in clear]
            assert positions.nearest()[clear].tolist() == expected
