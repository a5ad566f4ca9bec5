"""Writes src/opwright/scalar/numerics/polynomials.py: near-minimax polynomials and quotients of two, fitted
with 60 digits by mpmath.

`python tests/compiler/make_polynomials.py` writes the file; test_mathematics.py checks that it is up to date.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp

TARGET = Path(__file__).parents[2] / "src/opwright/scalar/numerics/polynomials.py"
DIGITS = 60


def _tail(f: Callable[[Any], Any], *first: Any) -> Callable[[Any], Any]:
    """(f(x) - first[0] - first[1] x - ...) / x^n, by f's Taylor series where x is small."""
    n = len(first)

    def tail(x: Any) -> Any:
        if abs(x) < mp.mpf(10) ** -12:
            return mp.taylor(f, 0, n + 2)[n]
        return (f(x) - sum(c * x**i for i, c in enumerate(first))) / x**n

    return tail


def _of_square(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """g with g(x^2) = f(x) / x, for an odd f."""

    def g(z: Any) -> Any:
        x = mp.sqrt(z) if z > mp.mpf(10) ** -30 else mp.mpf(10) ** -15
        return f(x) / x

    return g


def _tail_of_square(f: Callable[[Any], Any], first: Any) -> Callable[[Any], Any]:
    g = _of_square(f)

    def tail(z: Any) -> Any:
        z = z if z > mp.mpf(10) ** -20 else mp.mpf(10) ** -20
        return (g(z) - first) / z

    return tail


CENTRE = mp.mpf(2)
"""erfc(a) = exp(-a^2) q(t) / (1 + 2 a), with t = (a - CENTRE) / (a + CENTRE)."""


def _scaled_erfc(t: Any) -> Any:
    a = CENTRE * (1 + t) / (1 - t)
    return mp.erfc(a) * mp.exp(a * a) * (1 + 2 * a)


SLOPE = mp.mpf("0.4")
"""erfc(a) = exp(-a^2) t q(t), with t = 1 / (1 + SLOPE a): one division, for float32 alone."""


def _over_t(t: Any) -> Any:
    a = (1 / t - 1) / SLOPE
    return mp.erfc(a) * mp.exp(a * a) / t


def _t_of(a: float) -> Any:
    return (mp.mpf(a) - CENTRE) / (mp.mpf(a) + CENTRE)


# name: (function, from, to, number of coefficients, what it is)
FITS: dict[str, tuple[Callable[[Any], Any], Any, Any, int, str]] = {
    "EXP": (_tail(mp.exp, 1, 1), -mp.log(2) / 2, mp.log(2) / 2, 6, "(exp(r) - 1 - r) / r^2, |r| <= ln 2 / 2"),
    "EXP2": (_tail(lambda r: mp.power(2, r), 1), -mp.mpf(0.5), mp.mpf(0.5), 7, "(2^r - 1) / r, |r| <= 1/2"),
    "LOG": (
        _tail_of_square(lambda s: 2 * mp.atanh(s), 2),
        0,
        mp.mpf("0.0295"),
        5,
        "(2 atanh(s) / s - 2) / z of z = s^2, s = (m - 1) / (m + 1), m in [sqrt 1/2, sqrt 2]",
    ),
    "SIN": (
        _tail_of_square(mp.sin, 1),
        0,
        (mp.pi / 4 + mp.mpf("0.001")) ** 2,
        4,
        "(sin(r) / r - 1) / z of z = r^2, |r| <= pi / 4",
    ),
    "COS": (
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2 if z > mp.mpf(10) ** -12 else mp.mpf(1) / 24,
        0,
        (mp.pi / 4 + mp.mpf("0.001")) ** 2,
        3,
        "(cos(r) - 1 + z / 2) / z^2 of z = r^2, |r| <= pi / 4",
    ),
    "ATAN": (_tail_of_square(mp.atan, 1), 0, mp.mpf(1), 11, "(atan(t) / t - 1) / z of z = t^2, |t| <= 1"),
    "ASIN": (_tail_of_square(mp.asin, 1), 0, mp.mpf("0.25"), 7, "(asin(t) / t - 1) / z of z = t^2, |t| <= 1/2"),
    "ERF": (_of_square(mp.erf), 0, mp.mpf(1), 8, "erf(x) / x of z = x^2, |x| <= 1"),
    "ERFC": (
        _scaled_erfc,
        _t_of(1),
        _t_of(10.6),
        12,
        "erfc(a) exp(a^2) (1 + 2 a) of t = (a - 2) / (a + 2), 1 <= a <= 10.6",
    ),
    "SINGLE_EXP2": (_tail(lambda r: mp.power(2, r), 1), -mp.mpf(0.5), mp.mpf(0.5), 6, "as EXP2, for float32 alone"),
    "SHORT_EXP2": (_tail(lambda r: mp.power(2, r), 1), -mp.mpf(0.5), mp.mpf(0.5), 5, "as EXP2, for sums of 2^r and 1"),
    "SINGLE_EXP": (
        _tail(mp.exp, 1),
        -mp.log(2) / 2,
        mp.log(2) / 2,
        6,
        "(exp(r) - 1) / r, |r| <= ln 2 / 2, for float32 alone",
    ),
    "SINGLE_WIDE_EXP": (_tail(mp.exp, 1), -mp.log(2), mp.log(2), 7, "as SINGLE_EXP, |r| <= ln 2"),
    "SINGLE_FRACTION": (lambda r: mp.power(2, r), 0, mp.mpf(1), 6, "2^r, 0 <= r < 1, for float32 alone"),
    "SINGLE_SIN": (_tail_of_square(mp.sin, 1), 0, (mp.pi / 4 + mp.mpf("0.001")) ** 2, 3, "as SIN, for float32 alone"),
    "SINGLE_COS": (
        lambda z: (mp.cos(mp.sqrt(z)) - 1) / z if z > mp.mpf(10) ** -12 else -mp.mpf(1) / 2,
        0,
        (mp.pi / 4 + mp.mpf("0.001")) ** 2,
        4,
        "(cos(r) - 1) / z of z = r^2, |r| <= pi / 4, for float32 alone",
    ),
    "SINGLE_ERF": (_of_square(mp.erf), 0, mp.mpf(1), 6, "as ERF, for float32 alone"),
    "SINGLE_ERFC": (
        _over_t,
        1 / (1 + SLOPE * 10),
        mp.mpf(1),
        9,
        "erfc(a) exp(a^2) / t of t = 1 / (1 + 0.4 a), 0 <= a <= 10",
    ),
}


def fitted(name: str) -> tuple[list[float], float]:
    """The coefficients, the lowest power first, and the error of the fit."""
    with mp.workdps(DIGITS):
        f, low, high, count, _ = FITS[name]
        result, error = mp.chebyfit(f, [low, high], count, error=True, asc=True)
        return [float(c) for c in result], float(error)


TANH_END = mp.mpf("9.02")
"""Where tanh is 1 in float32."""
# name: (function of a square, the end of its argument, numbers of coefficients, what it is)
QUOTIENTS: dict[str, tuple[Callable[[Any], Any], Any, tuple[int, int], str]] = {
    "SINGLE_TANH": (_of_square(mp.tanh), TANH_END, (5, 5), "tanh(x) / (x q) of z = x^2, |x| <= 9.02, for float32 alone")
}


def fitted_quotient(name: str, nodes: int = 60, steps: int = 16) -> tuple[list[float], list[float], float]:
    """The coefficients of a numerator and a denominator that begins with 1, and the relative error of the fit.

    Least squares of p - f q at Chebyshev's nodes of x, weighted by the last denominator (Sanathanan and Koerner, 1963)
    and by the last errors (Lawson, 1961), which ends near the minimax quotient.
    """
    with mp.workdps(DIGITS):
        f, end, (above, below), _ = QUOTIENTS[name]
        places = [((1 - mp.cos(mp.pi * (k + mp.mpf(0.5)) / nodes)) / 2) ** 2 for k in range(nodes)]
        values = [f(s * end**2) for s in places]
        weights, divisors, best = [mp.mpf(1)] * nodes, [mp.mpf(1)] * nodes, (mp.inf, [], [])
        for _ in range(steps):
            a, b = mp.matrix(nodes, above + below - 1), mp.matrix(nodes, 1)
            for i, (s, value) in enumerate(zip(places, values)):
                scale = weights[i] / (value * divisors[i])
                row = [s**j for j in range(above)] + [-value * s**j for j in range(1, below)]
                for j, entry in enumerate(row):
                    a[i, j] = scale * entry
                b[i] = scale * value
            solution = list(mp.lu_solve(a.T * a, a.T * b))
            p, q = solution[:above], [mp.mpf(1), *solution[above:]]
            divisors = [mp.polyval(q[::-1], s) for s in places]
            errors = [abs(mp.polyval(p[::-1], s) / d / v - 1) for s, d, v in zip(places, divisors, values)]
            best = min(best, (max(errors), p, q), key=lambda candidate: candidate[0])
            weights = [w * mp.sqrt(e / max(errors) + mp.mpf("1e-3")) for w, e in zip(weights, errors)]
        error, p, q = best
        return *([float(c / end ** (2 * j)) for j, c in enumerate(part)] for part in (p, q)), float(error)


def two_over_pi(words: int = 10) -> list[int]:
    """The bits of 2 / pi behind the point, 32 a word."""
    with mp.workdps(200):
        whole = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (32 * words)))
    return [whole >> (32 * (words - 1 - i)) & 0xFFFFFFFF for i in range(words)]


def _assignment(name: str, numbers: list[str]) -> str:
    """Return the assignment of a tuple, laid out as the formatter does: on one line, or a number a line."""
    line = f"{name} = ({', '.join(numbers)})"
    return line if len(line) <= 120 else "\n".join([f"{name} = (", *(f"    {number}," for number in numbers), ")"])


def text() -> str:
    """The module."""
    lines = [
        '"""Polynomials of the vector functions, the lowest power first: near-minimax fits in float64.',
        "",
        "Lives here: numbers, made by tests/compiler/make_polynomials.py, which says how.  "
        "Not here: what they are for.",
        '"""',
        "",
    ]
    for name, (_, _, _, _, what) in FITS.items():
        result, error = fitted(name)
        lines += [_assignment(name, list(map(repr, result))), f'"""{what}; within {error:.1e}."""', ""]
    for name, (_, _, _, what) in QUOTIENTS.items():
        p, q, error = fitted_quotient(name)
        lines += [_assignment(name, list(map(repr, p))), _assignment(f"{name}_DIVISOR", list(map(repr, q)))]
        lines += [f'"""{what}; within {error:.1e}."""', ""]
    lines += [
        _assignment("TWO_OVER_PI", [f"0x{word:08X}" for word in two_over_pi()]),
        '"""The bits of 2 / pi behind the point, 32 a word."""',
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text(), "utf-8")
