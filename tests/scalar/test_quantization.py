"""Scales and zero points of ranges: on arrays and in kernels what their definition says in rationals and float32."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from exact_integers import nearest_away

from opwright.compiler import language as kl
from opwright.compiler.language import f32, ptr
from opwright.compiler.language.compilation import call
from opwright.scalar import numpy_namespace
from opwright.scalar.fixed_point import array_round_away, asymmetric_steps, finite_round_away, nudged, symmetric_steps
from opwright.scalar.formulas import round_away

_f = np.float32


@kl.family
def computed(work, low: ptr[f32], high: ptr[f32], y: ptr[f32]):
    """An item is a range; y: scale and inverse of symmetric steps, then scale, inverse and zero point."""
    for i in work.items():
        result = (*symmetric_steps(kl, low[i], high[i]), *asymmetric_steps(kl, low[i], high[i]))
        for place, number in enumerate(result):
            y[i * 5 + place] = number


def wanted_of(low: Any, high: Any) -> list[Any]:
    """As the module's docstring defines them, of float32."""
    if low == high:
        return [_f(1), _f(0), _f(1), _f(1), _f(0)]
    reach = max(high, -low)
    step = np.float64(_f(high) - _f(low)) / 255
    below, above = (Fraction(float(end / step)) for end in (np.float64(low), np.float64(high)))
    # Of numbers of float64 the sums are rounded once; halves are not met but by whole numbers of steps.
    zero = float(-128 - below) if 128 - below < 127 + above else float(127 - above)
    rounded = nearest_away(min(max(Fraction(zero), Fraction(-128)), Fraction(127)))
    return [reach / _f(127), _f(127) / reach, _f(step), _f(1) / _f(step), _f(rounded)]


def test_steps_of_rows() -> None:
    rng = np.random.default_rng(2)
    low = -np.abs(rng.normal(0, 2, 200)).astype(_f) * (rng.random(200) < 0.8)
    high = np.abs(rng.normal(0, 2, 200)).astype(_f) * (rng.random(200) < 0.8)
    low[:3], high[:3] = (0.0, -255.0, -1.0), (0.0, 0.0, 1.0)
    expected = np.array([wanted_of(*ends) for ends in zip(low, high)], _f)
    arrays = np.stack([*symmetric_steps(numpy_namespace, low, high), *asymmetric_steps(numpy_namespace, low, high)], 1)
    assert arrays.dtype == _f
    np.testing.assert_array_equal(arrays, expected)
    kernels = np.zeros_like(expected)
    call(computed.code(), [low, high, kernels], low.size)
    np.testing.assert_array_equal(kernels, expected)


def test_halves_go_away_from_zero() -> None:
    below_half = np.nextafter(0.5, 0.0)
    x = np.array([0.5, -0.5, 1.5, -2.5, below_half, -below_half, 2.0**52 + 1, 2.0**51 + 0.5, -3.49, 7.0])
    expected = [float(nearest_away(Fraction(v))) for v in x]
    np.testing.assert_array_equal(finite_round_away(numpy_namespace, x), expected)
    np.testing.assert_array_equal(round_away(numpy_namespace, x), expected)
    np.testing.assert_array_equal(array_round_away(x), expected)
    narrow = np.array([0.5, -1.5, np.nextafter(_f(0.5), _f(0)), 2.0**23 + 1, 2.0**22 + 0.5], _f)
    np.testing.assert_array_equal(array_round_away(narrow), [float(nearest_away(Fraction(float(v)))) for v in narrow])


def test_a_nudged_range_has_zero_among_its_numbers() -> None:
    for low, high, least, most in ((-6.0, 6.0, 0.0, 255.0), (-0.1, 1.3, 1.0, 15.0), (0.5, 2.0, 0.0, 255.0)):
        scale, left, right = map(float, nudged(np.float64(low), np.float64(high), least, most))
        assert abs(scale - (high - low) / (most - least)) <= 1e-15
        steps = -left / scale
        assert abs(steps - round(steps)) < 1e-9
        assert abs((right - left) - (high - low)) < 1e-9
        moved = min(abs(left - low), abs(right - high))
        assert moved <= scale / 2 + 1e-9 or low > 0  # a range without 0 is moved to it
        assert left <= 0 <= right
