"""Rows for integrals of elementary functions: values to 17 digits computed with mpmath 1.3 at 40 digits.

Lives here: rows for ops/math/special.py.  Not here: other special functions (cases_special.py).
"""

from __future__ import annotations

import math

import numpy as np
from cases_math import array
from harness import bad, case, f32, f64, i32, pos

inf, nan = math.inf, math.nan
FOR_THE_DERIVATIVE = "values are below; this is for the derivative"


def table(*rows, rtol=4e-15):
    """One case of many rows (argument, value)."""
    xs, values = (array(*column) for column in zip(*rows))
    return case(xs, expect=values, rtol=rtol, atol=0.0, grad=False, half=False)


def edges(*rows):
    xs, values = (array(*column) for column in zip(*rows))
    return case(xs, expect=values, grad=False, half=False)


# fmt: off
CASES = {
    "Dawsn": [
        case(f64(2, 3), says_nothing=FOR_THE_DERIVATIVE),
        case(f32(4), says_nothing="the same, rounded once"),
        table(
            (-2.5, -0.2230837221674355), (1e-05, 9.999999999333333e-06), (0.05, 0.04991674994050925),
            (0.1999, 0.19465881961821746), (0.2, 0.19475103336802807), (0.7, 0.5105040575592318),
            (1.0, 0.5380795069127684), (2.0, 0.30134038892379195), (3.7, 0.1407511741154154),
            (9.0, 0.05590504672435046), (11.99, 0.04184799638217788), (12.01, 0.041777815634299956),
            (30.0, 0.016675941401059175)),
        edges((0.0, 0.0), (inf, 0.0), (-inf, 0.0), (nan, nan)),
        bad(i32(2), says="dtype"),
    ],
    "Expint": [
        case(pos(f64(2, 3)), says_nothing=FOR_THE_DERIVATIVE),
        case(pos(f32(4)), says_nothing="the same, rounded once"),
        table(
            (1e-05, -10.935699800043695), (0.05, -2.3678845985793746), (0.16, -1.0887312379008336),
            (0.3725074107813666, -5.1196989365556847e-17), (0.4, 0.10476521861932488), (0.64, 0.8898359484781864),
            (0.7, 1.0649071946242905), (1.0, 1.8951178163559368), (2.0, 4.95423435600189),
            (9.0, 1037.8782907170896), (39.99, 5981157892009202.0), (40.01, 6098852391355211.0),
            (300.0, 6.496482508088665e+127)),
        edges((0.0, -inf), (-1.0, nan), (-inf, nan), (inf, inf), (nan, nan)),
        bad(i32(2), says="dtype"),
    ],
    "FresnelCos": [
        case(f64(2, 3), says_nothing=FOR_THE_DERIVATIVE),
        case(f32(4), says_nothing="the same, rounded once"),
        table(
            (-2.5, -0.45741300964177706), (1e-05, 1e-05), (0.3, 0.2994009760520472), (1.0, 0.7798934003768229),
            (1.599, 0.3661010408507659), (1.601, 0.3648261990465601), (2.0, 0.48825340607534073),
            (3.7, 0.5419456621544874), (9.0, 0.5353661274681198), (45.25, 0.4955365327973008),
            (1234.5, 0.4999013269676977)),
        edges((0.0, 0.0), (inf, 0.5), (-inf, -0.5), (nan, nan)),
        bad(i32(2), says="dtype"),
    ],
    "FresnelSin": [
        case(f64(2, 3), says_nothing=FOR_THE_DERIVATIVE),
        case(f32(4), says_nothing="the same, rounded once"),
        table(
            (-2.5, -0.6191817558195929), (1e-05, 5.23598775598299e-16), (0.3, 0.014116998006576583),
            (1.0, 0.43825914739035476), (1.599, 0.6396565918249325), (1.601, 0.6381155711611799),
            (2.0, 0.34341567836369824), (3.7, 0.5749803498874729), (9.0, 0.4998610456296849),
            (45.25, 0.4945629732727724), (1234.5, 0.5002382179135549)),
        edges((0.0, 0.0), (inf, 0.5), (-inf, -0.5), (nan, nan)),
        bad(i32(2), says="dtype"),
    ],
    "Spence": [
        case(pos(f64(2, 3)), says_nothing=FOR_THE_DERIVATIVE),
        case(pos(f32(4)), says_nothing="the same, rounded once"),
        case(array(1.0, 1.00005, 0.99995, 1.5), says_nothing="the derivative around 1"),
        table(
            (1e-05, 1.6448089369929264), (0.05, 1.4406337969700396), (0.3, 0.8893776242860387),
            (0.499, 0.5836274350473919), (0.501, 0.5808548452950324), (0.999, 0.001000250111173652),
            (1.001, -0.000999750111048541), (1.3, -0.28007433375958296), (1.999, -0.8217737896472407),
            (2.001, -0.8231600840537919), (9.0, -3.6856760007574065), (10000000000.0, -266.73983958836556)),
        edges((0.0, math.pi**2 / 6), (1.0, 0.0), (-1.0, nan), (inf, -inf), (nan, nan)),
        bad(i32(2), says="dtype"),
    ],
    "math.special.dawsn": [case(np.float64(1.0), expect=0.5380795069127684)],
    "math.special.expint": [case(np.float64(1.0), expect=1.8951178163559368)],
    "math.special.fresnel_cos": [case(np.float64(1.0), expect=0.7798934003768229)],
    "math.special.fresnel_sin": [case(np.float64(1.0), expect=0.43825914739035476)],
    "math.special.spence": [case(np.float64(2.0), expect=-0.8224670334241132)],
}
# fmt: on
