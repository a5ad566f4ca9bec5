"""Rows for Bessel functions: values to 17 digits computed with mpmath 1.3 at 40 digits.

Lives here: rows for ops/math/bessel.py.  Not here: other special functions (cases_special.py).
"""

from __future__ import annotations

import math

import numpy as np
from cases_math import array
from cases_special import away, table
from harness import bad, case, f32, f64, i32

inf, nan = math.inf, math.nan


def near(*rows):
    """One case of many rows (argument, value); near zeros of the function the error is that of its size around."""
    xs, values = (array(*column) for column in zip(*rows))
    return case(xs, expect=values, rtol=1e-13, atol=3e-16, grad=False, half=False)


# fmt: off
CASES = {
    "BesselI0": [
        case(away(f64(2, 3)), says_nothing="values are below; this is for the derivative"),
        case(away(f32(4)), says_nothing="the same, rounded once"),
        table((1e-08, 1.0), (0.001, 1.0000002500000156), (0.3, 1.022626879351597),
              (2.0, 2.2795853023360673), (5.0, 27.239871823604446), (12.5, 30596.335155785153),
              (24.999, 5768905514.55215), (25.0, 5774560606.4663105), (30.0, 781672297823.9775),
              (100.0, 1.0737517071310738e+42)),
        case(array(0.0, inf, nan), expect=np.array([1.0, inf, nan]), grad=False, half=False),
        bad(i32(2), says="dtype"),
    ],
    "BesselI1": [
        case(away(f64(2, 3)), says_nothing="values are below; this is for the derivative"),
        case(away(f32(4)), says_nothing="the same, rounded once"),
        table((1e-08, 5e-09), (0.001, 0.0005000000625000026), (0.3, 0.15169384000359276),
              (2.0, 1.590636854637329), (5.0, 24.335642142450528), (12.5, 29345.74964207113),
              (24.999, 5652319605.480333), (25.0, 5657865129.878701), (30.0, 768532038938.957),
              (100.0, 1.0683693903381625e+42)),
        case(array(0.0, inf, nan), expect=np.array([0.0, inf, nan]), grad=False, half=False),
        bad(i32(2), says="dtype"),
    ],
    "BesselI0e": [
        case(away(f64(2, 3)), says_nothing="values are below; this is for the derivative"),
        case(away(f32(4)), says_nothing="the same, rounded once"),
        table((1e-08, 0.9999999900000001), (0.001, 0.9990007495835156), (0.3, 0.7575806251825479),
              (2.0, 0.30850832255367105), (5.0, 0.18354081260932836), (12.5, 0.1140219294622889),
              (24.999, 0.08019839425680447), (25.0, 0.0801967735474367), (30.0, 0.0731459464822373),
              (100.0, 0.03994437929909668), (1234.5, 0.011355558821026901)),
        case(array(0.0, inf, nan), expect=np.array([1.0, 0.0, nan]), grad=False, half=False),
        bad(i32(2), says="dtype"),
    ],
    "BesselI1e": [
        case(away(f64(2, 3)), says_nothing="values are below; this is for the derivative"),
        case(away(f32(4)), says_nothing="the same, rounded once"),
        table((1e-08, 4.99999995e-09), (0.001, 0.0004995003123542213), (0.3, 0.1123775606398388),
              (2.0, 0.21526928924893765), (5.0, 0.16397226694454237), (12.5, 0.10936143099065089),
              (24.999, 0.07857763574776944), (25.0, 0.07857611331929278), (30.0, 0.07191633059864755),
              (100.0, 0.03974415302513025), (1234.5, 0.011350958634589748)),
        case(array(0.0, inf, nan), expect=np.array([0.0, 0.0, nan]), grad=False, half=False),
        bad(i32(2), says="dtype"),
    ],
    "BesselK0": [
        case(away(f64(2, 3)), says_nothing="values are below; this is for the derivative"),
        case(away(f32(4)), says_nothing="the same, rounded once"),
        table((1e-08, 18.536612259610777), (0.001, 7.023688800562382), (0.3, 1.3724600605442974),
              (2.0, 0.11389387274953344), (5.0, 0.0036910983340425942), (12.5, 1.3084036967769775e-06),
              (24.999, 3.467696143636593e-12), (25.0, 3.4641615622131143e-12), (30.0, 2.1324774964630563e-14),
              (100.0, 4.656628229175902e-45)),
        case(array(0.0, inf, nan), expect=np.array([inf, 0.0, nan]), grad=False, half=False),
        bad(i32(2), says="dtype"),
    ],
    "BesselK1": [
        case(away(f64(2, 3)), says_nothing="values are below; this is for the derivative"),
        case(away(f32(4)), says_nothing="the same, rounded once"),
        table((1e-08, 99999999.9999999), (0.001, 999.9962381560856), (0.3, 3.055992033457325),
              (2.0, 0.13986588181652243), (5.0, 0.004044613445452165), (12.5, 1.3597678438215176e-06),
              (24.999, 3.536385387837414e-12), (25.0, 3.5327780731999337e-12), (30.0, 2.1677320018915495e-14),
              (100.0, 4.6798537356369095e-45)),
        case(array(0.0, inf, nan), expect=np.array([inf, 0.0, nan]), grad=False, half=False),
        bad(i32(2), says="dtype"),
    ],
    "BesselK0e": [
        case(away(f64(2, 3)), says_nothing="values are below; this is for the derivative"),
        case(away(f32(4)), says_nothing="the same, rounded once"),
        table((1e-08, 18.536612444976903), (0.001, 7.030716002378251), (0.3, 1.8526273007720142),
              (2.0, 0.8415682150707714), (5.0, 0.547807564313519), (12.5, 0.35109349766701514),
              (24.999, 0.24944154544738967), (25.0, 0.2494366045755967), (30.0, 0.22788666561625373),
              (100.0, 0.12517562165912657), (1234.5, 0.035667316406815634)),
        case(array(0.0, inf, nan), expect=np.array([inf, 0.0, nan]), grad=False, half=False),
        bad(i32(2), says="dtype"),
    ],
    "BesselK1e": [
        case(away(f64(2, 3)), says_nothing="values are below; this is for the derivative"),
        case(away(f32(4)), says_nothing="the same, rounded once"),
        table((1e-08, 100000000.99999991), (0.001, 1000.9967345590684), (0.3, 4.12515776224447),
              (2.0, 1.0334768470686886), (5.0, 0.6002738587883126), (12.5, 0.36487641350940625),
              (24.999, 0.2543825640716736), (25.0, 0.25437732954208525), (30.0, 0.2316541293777118),
              (100.0, 0.12579995047957854), (1234.5, 0.03568175954137276)),
        case(array(0.0, inf, nan), expect=np.array([inf, 0.0, nan]), grad=False, half=False),
        bad(i32(2), says="dtype"),
    ],
    "BesselJ0": [
        case(away(f64(2, 3)), says_nothing="values are below; this is for the derivative"),
        case(away(f32(4)), says_nothing="the same, rounded once"),
        near((1e-08, 1.0), (0.001, 0.9999997500000156), (0.3, 0.9776262465382961),
              (2.0, 0.22389077914123567), (5.0, -0.1775967713143383), (12.5, 0.1468840547004211),
              (24.999, 0.09614138240616853), (25.0, 0.09626678327595811), (30.0, -0.08636798358104021),
              (100.0, 0.019985850304223122), (1234.5, -0.013550379618035721)),
        case(array(0.0, inf, nan), expect=np.array([1.0, 0.0, nan]), grad=False, half=False),
        bad(i32(2), says="dtype"),
    ],
    "BesselJ1": [
        case(away(f64(2, 3)), says_nothing="values are below; this is for the derivative"),
        case(away(f32(4)), says_nothing="the same, rounded once"),
        near((1e-08, 5e-09), (0.001, 0.0004999999375000026), (0.3, 0.148318816273104),
              (2.0, 0.5767248077568734), (5.0, -0.32757913759146523), (12.5, -0.16548380461475973),
              (24.999, -0.12545146980669455), (25.0, -0.1253502495802899), (30.0, -0.11875106261662294),
              (100.0, -0.07714535201411216), (1234.5, 0.0182175083373925)),
        case(array(0.0, inf, nan), expect=np.array([0.0, 0.0, nan]), grad=False, half=False),
        bad(i32(2), says="dtype"),
    ],
    "BesselY0": [
        case(away(f64(2, 3)), says_nothing="values are below; this is for the derivative"),
        case(away(f32(4)), says_nothing="the same, rounded once"),
        near((1e-08, -11.80077387717953), (0.001, -4.471416611375923), (0.3, -0.8072735778045195),
              (2.0, 0.5103756726497451), (5.0, -0.30851762524903376), (12.5, -0.1712143068446693),
              (24.999, -0.12734820056741034), (25.0, -0.12724943226800614), (30.0, -0.11729573168666403),
              (100.0, -0.07724431336508315), (1234.5, 0.018222995047412552)),
        case(array(0.0, inf, nan), expect=np.array([-inf, 0.0, nan]), grad=False, half=False),
        bad(i32(2), says="dtype"),
    ],
    "BesselY1": [
        case(away(f64(2, 3)), says_nothing="values are below; this is for the derivative"),
        case(away(f32(4)), says_nothing="the same, rounded once"),
        near((1e-08, -63661977.236758195), (0.001, -636.6221672311394), (0.3, -2.2931051383885293),
              (2.0, -0.10703243154093754), (5.0, 0.14786314339122683), (12.5, -0.1538382565375012),
              (24.999, -0.098706616767517), (25.0, -0.09882996478323741), (30.0, 0.08442557066174723),
              (100.0, -0.020372312002759792), (1234.5, 0.013557761447180334)),
        case(array(0.0, inf, nan), expect=np.array([-inf, 0.0, nan]), grad=False, half=False),
        bad(i32(2), says="dtype"),
    ],
}
