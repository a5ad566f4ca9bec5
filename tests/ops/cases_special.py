"""Rows for special functions: `ops/math/{special,incomplete}.py`.

The oracles are the C library's functions, and values to 18 digits computed with mpmath 1.3 at 40 digits.
"""

from __future__ import annotations

import math

import numpy as np
from cases_math import array, edges, of, one_argument
from harness import bad, case, f16, f32, f64, i32, pos, unit

inf, nan = math.inf, math.nan
EXACT = {"rtol": 1e-13, "atol": 0.0, "grad": False, "half": False}


def away(x):
    """Map the values of a generator to [2.1, 4.1]."""
    return np.asarray(x * x.dtype.type(0.5) + x.dtype.type(3.1)).astype(x.dtype)


def half(x):
    """Map the values of a generator into (0.05, 0.95)."""
    return unit(x) * x.dtype.type(0.5) + x.dtype.type(0.5)


def table(*rows):
    """One case of many rows (arguments..., value)."""
    columns = [array(*column) for column in zip(*rows)]
    return case(*columns[:-1], expect=columns[-1], **EXACT)


def by_bisection(function, low, high):
    """An oracle: the inverse of an increasing function."""

    def inverse(y):
        a, b = low, high
        for _ in range(200):
            middle = (a + b) / 2
            a, b = (middle, b) if function(middle) < y else (a, middle)
        return a

    return inverse


def normal(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def psi(x):
    """digamma for x > 0: up to 40 by the recurrence, then four terms of the asymptotic series."""
    total = 0.0
    while x < 40:
        total, x = total - 1 / x, x + 1
    return total + math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6)


def hurwitz(s, q):
    """The Hurwitz zeta function: 3000 terms, the integral over the rest, the first two corrections."""
    n = 3000
    a = q + n
    return math.fsum((k + q) ** -s for k in range(n)) + a ** (1 - s) / (s - 1) + a**-s / 2 + s * a ** (-s - 1) / 12


def polygamma(n, x):
    return psi(x) if n == 0 else (-1) ** (n + 1) * math.factorial(int(n)) * hurwitz(n + 1, x)


def gamma_law(a, x, n=4000):
    """P(a, x) by Simpson's rule in u = t^a, which takes the singularity at 0 away: t^(a-1) dt = du / a."""
    top = x**a
    value = [math.exp(-((top * k / n) ** (1 / a))) for k in range(n + 1)]
    return top / n / 3 * (value[0] + value[-1] + 4 * sum(value[1:-1:2]) + 2 * sum(value[2:-1:2])) / a / math.gamma(a)


def beta_law(a, b, x, n=4000):
    """I_x(a, b) by Simpson's rule, for a, b >= 2."""
    value = [(x * k / n) ** (a - 1) * (1 - x * k / n) ** (b - 1) for k in range(n + 1)]
    integral = x / n / 3 * (value[0] + value[-1] + 4 * sum(value[1:-1:2]) + 2 * sum(value[2:-1:2]))
    return integral * math.gamma(a + b) / math.gamma(a) / math.gamma(b)


orders = array(0, 1, 2, 3)
far = array(-0.5, -2.75, -30.25)

CASES = {
    "Erf": [
        *one_argument(math.erf),
        case(edges, expect=of(math.erf), rtol=1e-15, atol=0.0, grad=False),
        case(f64(40, 5) * 3, expect=of(math.erf), **EXACT),
    ],
    "Erfc": [
        *one_argument(math.erfc),
        case(array(-inf, -6, 0.4, 3, 10, 26, 28, inf, nan), expect=of(math.erfc), **EXACT),
        case(f64(40, 5) * 13, expect=of(math.erfc), **EXACT),
    ],
    "Erfinv": [
        *one_argument(by_bisection(math.erf, -9, 9), make=unit),
        table(
            (1e-20, 8.86226925452757965e-21),
            (0.001, 0.000886227157466552123),
            (0.5, 0.476936276204469873),
            (0.849, 1.01541115581900849),
            (0.9, 1.16308715367667416),
            (0.999, 2.32675376551352449),
            (-0.999999, -3.45891073727549878),
            (1 - 2**-52, 5.8050186831934533),
            (1, inf),
            (-1, -inf),
            (1.5, nan),
        ),
    ],
    "Ndtri": [
        *one_argument(by_bisection(normal, -9, 9), make=half),
        table(
            (1e-20, -9.26234008979840758),
            (0.001, -3.09023230616781354),
            (0.075, -1.43953147093845593),
            (0.3, -0.524400512708040816),
            (0.75, 0.674489750196081743),
            (0.999, 3.09023230616781328),
            (0, -inf),
            (1, inf),
            (0.5, 0),
            (-0.1, nan),
        ),
    ],
    "math.erfcinv": [
        case(half(f64(2, 3)), expect=of(lambda y: by_bisection(lambda x: -math.erfc(x), -9, 9)(-y))),
        table(
            (1e-20, 6.60158062235514257),
            (0.001, 2.32675376551352467),
            (0.5, 0.476936276204469873),
            (1.5, -0.476936276204469873),
            (1.999, -2.32675376551354658),
        ),
    ],
    "Lgamma": [
        *one_argument(math.lgamma, make=away),
        table(
            (1e-200, 460.517018598809137),
            (0.25, 1.28802252469807746),
            (0.6, 0.398233858069234934),
            (1.0000000001, -5.77215712578324404e-11),
            (1.25, -0.0982718364218131615),
            (1.9999, -0.000042275208772153458),
            (2.5, 0.28468287047291916),
            (3.999, 1.79050349348444303),
            (7.5, 7.53436423675873296),
            (12.5, 18.7343475119364457),
            (100, 359.134205369575399),
            (1e10, 220258509288.810581),
            (-0.5, 1.2655121234846454),
            (-2.75, 0.00448789753595577331),
            (-30.25, -74.0223974503554775),
            (0, inf),
            (-3, inf),
            (inf, inf),
            (-inf, inf),
            (nan, nan),
            (1, 0),
            (2, 0),
        ),
        case(array(-0.5, -2.75, -4.6), expect=of(math.lgamma)),
    ],
    "Digamma": [
        *one_argument(psi, make=pos),
        table(
            (1e-200, -1.00000000000000002e200),
            (0.25, -4.22745353337626541),
            (1, -0.577215664901532861),
            (1.4616321449683622, -9.24126552172942752e-17),
            (2.75, 0.818901024975432592),
            (3.5, 1.10315664064524319),
            (9.5, 2.19773787640294953),
            (20, 2.97052399224214905),
            (1e10, 23.0258509298904568),
            (-0.5, 0.0364899739785765206),
            (-2.75, -1.95905526497799701),
            (-30.25, 6.56752670517274744),
            (0, nan),
            (-3, nan),
            (inf, inf),
            (nan, nan),
        ),
        case(far, expect=array(0.0364899739785765206, -1.95905526497799701, 6.56752670517274744)),
    ],
    "Zeta": [
        case(away(f64(2, 3)), pos(f64(3)), expect=of(hurwitz), grad=[1], half=False),
        case(away(f32(2, 3)), pos(f32(2, 1)), expect=of(hurwitz), grad=[1], half=False),
        table(
            (2, 1, 1.64493406684822644),
            (1.001, 0.5, 1001.96486397035586),
            (3.5, 0.001, 31622776602.8068415),
            (20, 2.5, 1.10083454668541431e-8),
            (4, 30, 0.0000129766727745602151),
            (1.5, 1000, 0.0632613685445149273),
            (2, -1.5, 9.37924664498912375),
            (3, -1.5, 0.118102025820863702),
            (1, 2, inf),
            (2, 0, inf),
            (2, -1, inf),
            (2.5, inf, 0),
            (inf, 2, 0),
            (inf, 1, 1),
            (inf, 0.5, inf),
            (2.5, -1.5, nan),
            (0.5, 2, nan),
            (3, -3, nan),
        ),
        bad(f16(2), f16(2), says="dtype"),
        bad(f64(2), f64(3), says="shape"),
    ],
    "Polygamma": [
        case(orders, pos(f64(2, 4)), expect=of(polygamma), grad=[1], rtol=1e-9),
        case(orders.astype(np.float32), away(f32(4)), expect=of(polygamma), grad=[1]),
        table(
            (1, 1, 1.64493406684822644),
            (1, 0.1, 101.433299150792748),
            (2, 0.5, -16.82879664423432),
            (3, 7.25, 0.00643303759794015666),
            (7, 20, 6.67475581817607109e-7),
            (1, -1.5, 9.37924664498912375),
            (2, -1.5, -0.236204051641727403),
            (2, -1.25, 123.72136678366236),
            (0, 1, -0.577215664901532861),
            (1.5, 2, nan),
            (-1, 2, nan),
            (1, 0, inf),
            (2, -1, nan),
        ),
        bad(i32(2), i32(2), says="dtype"),
        bad(f64(2), f64(3), says="shape"),
        bad(f64(2), f32(2), says="dtype"),
        case(
            array(1.0),
            array(1.0, 0.1, -1.5),
            expect=array(1.64493406684822644, 101.433299150792748, 9.37924664498912375),
            static=[0],
            **EXACT,
        ),
    ],
    "math.lbeta": [
        case(
            pos(f64(2, 3)),
            expect=lambda x: np.array([sum(map(math.lgamma, r)) - math.lgamma(sum(r)) for r in x.tolist()]),
        ),
        case(array(1.0), expect=np.array(0.0)),
        case(np.zeros((2, 0)), expect=array(-inf, -inf)),
    ],
    "Igamma": [
        case(pos(f64(2, 3)), pos(f64(3)), expect=of(gamma_law), rtol=1e-5),
        case(pos(f32(2, 3)), away(f32(2, 1)), expect=of(gamma_law), rtol=1e-4),
        table(
            (0.5, 0.1, 0.34527915398142298),
            (0.5, 3, 0.98569412156457036),
            (3, 1, 0.080301397071394196),
            (3, 10, 0.997230604284488424),
            (10, 9.5, 0.478173977762792589),
            (10, 25, 0.999778523361751216),
            (100, 80, 0.0171083130351331142),
            (100, 110, 0.841721329939912906),
            (1000, 1010, 0.627678944736994728),
            (20000, 19300, 2.77375072787966899e-7),
            (1e6, 1e6, 0.500132980760872591),
            (1e10, 1e10 + 3e5, 0.998649983783308093),
            (1e10, 1e10 - 8e5, 6.2103592112473083e-16),
            (3e300, 3e300, 0.5),
            (1e12, 2e12, 1),
            (1, 0, 0),
            (0, 1, nan),
            (-1, 1, nan),
            (2, inf, 1),
            (inf, 1, 0),
            (2, -1, nan),
            (1, nan, nan),
        ),
        bad(i32(2), i32(2), says="dtype"),
    ],
    "Igammac": [
        case(pos(f64(2, 3)), pos(f64(3)), expect=of(lambda a, x: 1 - gamma_law(a, x)), rtol=1e-4),
        table(
            (0.5, 0.1, 0.65472084601857702),
            (0.5, 3, 0.0143058784354296395),
            (3, 1, 0.919698602928605804),
            (3, 10, 0.00276939571551157594),
            (10, 9.5, 0.521826022237207411),
            (10, 25, 0.000221476638248783581),
            (100, 80, 0.982891686964866886),
            (100, 110, 0.158278670060087094),
            (1000, 1010, 0.372321055263005272),
            (20000, 19300, 0.999999722624927212),
            (1e6, 1e6, 0.499867019239127409),
            (1e10, 1e10 + 3e5, 0.00135001621669190652),
            (1e12, 2e12, 0),
            (1, 0, 1),
            (0, 1, nan),
            (2, inf, 0),
            (inf, 1, 1),
            (2, -1, nan),
        ),
        bad(i32(2), i32(2), says="dtype"),
        bad(f64(2), f64(3), says="shape"),
        bad(f64(2), f32(2), says="dtype"),
    ],
    "IgammaGradA": [
        table(
            (0.5, 0.1, -0.822936096979598752),
            (0.5, 3, -0.0472403264479737509),
            (3, 1, -0.106459352943942267),
            (3, 10, -0.00412047081956147737),
            (10, 9.5, -0.128827641679308206),
            (10, 25, -0.00022661830393258108),
            (100, 80, -0.00440264324346863497),
            (100, 110, -0.0238086568548903865),
            (20000, 19300, -1.02450589205693e-8),
            (1e6, 1e6, -0.000398942313646625),
            (1e10, 1e10 + 3e5, -4.43218080492679e-8),
        ),
        bad(i32(2), i32(2), says="dtype"),
        bad(f64(2), f64(3), says="shape"),
        bad(f64(2), f32(2), says="dtype"),
    ],
    "Betainc": [
        case(away(f64(2, 3)), away(f64(3)), half(f64(2, 1)), expect=of(beta_law), rtol=1e-7, grad=[2]),
        case(away(f32(3)), away(f32(3)), half(f32(3)), expect=of(beta_law), grad=[2]),
        table(
            (0.5, 0.5, 0.25, 1 / 3),
            (2, 3, 0.1, 0.0523),
            (2, 3, 0.9, 0.9963),
            (10, 0.5, 0.75, 0.0178065586078446358),
            (30, 40, 0.4, 0.318143802590562987),
            (1, 1, 0.625, 0.625),
            (0.01, 5, 0.001, 0.952795880007077236),
            (2e4, 3e4, 0.402, 0.819371366685762446),
            (1e8, 2e8, 0.33335, 0.72985712555478667),
            (12, 5e6, 2e-6, 0.303226242166007448),
            (1e6, 20, 0.99998, 0.470222621053505213),
            (2, 2, 0, 0),
            (2, 2, 1, 1),
            (0, 2, 0.5, nan),
            (-1, 2, 0.5, nan),
            (2, 2, 1.5, nan),
        ),
        bad(i32(2), i32(2), i32(2), says="dtype"),
        bad(f64(2), f64(2), f64(3), says="shape"),
    ],
}
