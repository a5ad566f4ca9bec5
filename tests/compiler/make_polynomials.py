"""Writes src/opwright/scalar/numerics/polynomials.py: near-minimax polynomials and quotients of two, fitted
with 60 digits by mpmath.

`python tests/compiler/make_polynomials.py` writes the file; test_mathematics.py checks that it is up to date.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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


BESSEL_LARGE = mp.mpf(10)
"""From where on Bessel functions are polynomials of 1 / x."""


def _scaled_i(order: int) -> Callable[[Any], Any]:
    def scaled(t: Any) -> Any:
        x = 1 / max(t, mp.mpf(10) ** -18)
        return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)

    return scaled


def _scaled_k(order: int, spread: int, middle: int) -> Callable[[Any], Any]:
    def scaled(s: Any) -> Any:
        x = 16 / max(spread * s + middle, mp.mpf(10) ** -16)
        return mp.sqrt(x) * mp.exp(x) * mp.besselk(order, x)

    return scaled


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
    "DOUBLE_EXP": (_tail(mp.exp, 1, 1), -mp.log(2) / 2, mp.log(2) / 2, 11, "as EXP, for float64"),
    "DOUBLE_LOG": (_tail_of_square(lambda s: 2 * mp.atanh(s), 2), 0, mp.mpf("0.0295"), 8, "as LOG, for float64"),
    "BESSEL_I0": (_scaled_i(0), 0, 1 / BESSEL_LARGE, 21, "sqrt(x) exp(-x) I_0(x) of t = 1 / x, x >= 10"),
    "BESSEL_I1": (_scaled_i(1), 0, 1 / BESSEL_LARGE, 21, "sqrt(x) exp(-x) I_1(x) of t = 1 / x, x >= 10"),
    **{
        f"BESSEL_K{order}_MIDDLE": (
            _scaled_k(order, 3, 5),
            -1,
            1,
            18,
            f"sqrt(x) exp(x) K_{order}(x) of s = (16 / x - 5) / 3, 2 <= x <= 8",
        )
        for order in (0, 1)
    },
    **{
        f"BESSEL_K{order}_FAR": (
            _scaled_k(order, 1, 1),
            -1,
            1,
            16,
            f"sqrt(x) exp(x) K_{order}(x) of s = 16 / x - 1, x >= 8",
        )
        for order in (0, 1)
    },
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
GELU_ENDS = mp.mpf("5.4"), mp.mpf("5.0")
"""Beyond which gelu and gelu_tanh are x, and -0.0 of negative x."""


def _half_tanh(x: Any) -> Any:
    return mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)) / 2


class Quotient(NamedTuple):
    """A quotient of polynomials of z = x^2 that is near f(x) / x, for an odd f, up to an end of x.

    counts: the numbers of coefficients. limit: what f is to be at the end, where it is not f(end). absolute: whether
    the error of f is to be small, not that of its ratio.
    """

    f: Callable[[Any], Any]
    end: Any
    counts: tuple[int, int]
    what: str
    limit: Any = None
    absolute: bool = False


QUOTIENTS = {
    "SINGLE_TANH": Quotient(mp.tanh, TANH_END, (5, 5), "tanh(x) / (x q) of z = x^2, |x| <= 9.02, for float32 alone"),
    "SINGLE_GELU": Quotient(
        lambda x: mp.erf(x / mp.sqrt(2)) / 2,
        GELU_ENDS[0],
        (6, 6),
        "erf(x / sqrt 2) / (2 x q) of z = x^2, |x| <= 5.4, where x p / q is 1 / 2; within 3.4e-08 / |x|",
        limit=mp.mpf(0.5),
        absolute=True,
    ),
    "SINGLE_GELU_TANH": Quotient(
        _half_tanh,
        GELU_ENDS[1],
        (6, 6),
        "tanh(sqrt(2 / pi) (x + 0.044715 x^3)) / (2 x q) of z = x^2, |x| <= 5, where x p / q is 1 / 2",
        limit=mp.mpf(0.5),
        absolute=True,
    ),
}


def _least_squares(rows: list[list[Any]], values: list[Any]) -> list[Any]:
    """Solve rows c = values by the normal equations."""
    columns = list(zip(*rows))
    normal = mp.matrix([[mp.fdot(one, other) for other in columns] for one in columns])
    return list(mp.lu_solve(normal, mp.matrix([mp.fdot(column, values) for column in columns])))


def fitted_quotient(name: str, nodes: int = 60, steps: int = 16) -> tuple[list[float], list[float], float]:
    """The coefficients of a numerator and a denominator that begins with 1, and the error of the fit.

    Least squares of p - f q at Chebyshev's nodes of x, weighted by the last denominator (Sanathanan and Koerner, 1963)
    and by the last errors (Lawson, 1961), which ends near the minimax quotient.
    """
    with mp.workdps(DIGITS):
        f, end, (above, below), _, limit, absolute = QUOTIENTS[name]
        places = [((1 - mp.cos(mp.pi * (k + mp.mpf(0.5)) / nodes)) / 2) ** 2 for k in range(nodes)]
        values = [_of_square(f)(s * end**2) for s in places]
        scales = [mp.sqrt(s) * end if absolute else 1 / value for s, value in zip(places, values)]
        weights, divisors, best = [mp.mpf(1)] * nodes, [mp.mpf(1)] * nodes, (mp.inf, [], [])
        for _ in range(steps):
            rows, targets = [], []
            for s, value, scale, weight, divisor in zip(places, values, scales, weights, divisors):
                factor = weight * scale / divisor
                row = [s**j for j in range(above)] + [-value * s**j for j in range(1, below)]
                rows.append([factor * entry for entry in row])
                targets.append(factor * value)
            if limit is not None:  # a thousand times as important as others
                last = 1000 * end / divisors[-1]
                rows.append([last] * above + [-last * limit / end] * (below - 1))
                targets.append(last * limit / end)
            solution = _least_squares(rows, targets)
            p, q = solution[:above], [mp.mpf(1), *solution[above:]]
            divisors = [mp.polyval(q[::-1], s) for s in places]
            errors = [
                abs(mp.polyval(p[::-1], s) / d - v) * scale for s, d, v, scale in zip(places, divisors, values, scales)
            ]
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
    for name, (_, _, _, what, _, _) in QUOTIENTS.items():
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
