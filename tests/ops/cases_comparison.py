"""Rows for comparisons, logic, complex parts, signs, clipping and bits: `ops/math/{comparison,complexes,clipping}.py`
and `ops/bitwise.py`."""

from __future__ import annotations

import cmath
import math
import operator

import numpy as np
from cases_math import array, edges, of, text
from harness import bad, bf16, bools, c64, c128, case, f16, f32, f64, i8, i16, i32, i64, pos, strings, u8, u16, u32, u64

inf, nan = math.inf, math.nan


def compared(relation):
    """The rows of an order: every kind of number, ties, NaN, broadcasting."""
    oracle = of(relation)
    return [
        case(f64(2, 3), f64(3), expect=oracle),
        case(f32(0, 3), f32(1, 3), expect=np.zeros((0, 3), bool)),
        case(bf16(4), bf16(4), expect=oracle),
        case(f16(4), f16(), expect=oracle),
        case(array(1, 2, 3), array(1, 3, 2), expect=oracle),
        case(edges, edges[:, None], expect=oracle, half=False),
        *[case(make(2, 3), make(3), expect=oracle) for make in (i8, i32, i64, u8, u64)],
        case(f32(3), 0.5, expect=lambda x, y: oracle(x, np.array(0.5))),
        bad(f64(2), f64(3), says="shape"),
        bad(f32(2), f64(2), says="differ in dtype"),
    ]


def equality(relation):
    oracle = of(relation)
    return [
        *compared(relation),
        case(c128(3), c128(3), expect=oracle),
        case(array(1 + 2j, dtype=complex), array(1 + 2j, dtype=complex), expect=oracle),
        case(bools(4), np.array(True), expect=oracle),
        case(text("a", "b", ""), text("a", "c", ""), expect=oracle),
        case(strings(2, 2), text("x"), expect=oracle),
        case(np.array(b"a", object), np.array(b"a", object), expect=np.array(relation(b"a", b"a"))),
    ]


def logic(function):
    return [
        case(np.array([[False], [True]]), np.array([False, True]), expect=of(function)),
        case(bools(2, 3), bools(3), expect=of(function)),
        case(bools(0), bools(0), expect=np.zeros(0, bool)),
        bad(i32(2), i32(2), says="dtype"),
        bad(bools(2), bools(3), says="shape"),
    ]


def sign(x):
    if isinstance(x, complex):
        return x / abs(x) if x else 0j
    return x if x != x or x == 0 else math.copysign(1.0, x)


def bits(function):
    return [case(make(2, 3), make(3), expect=of(function)) for make in (i8, i16, i32, i64, u8, u16, u32, u64)] + [
        bad(f32(2), f32(2), says="dtype"),
        bad(i32(2), i64(2), says="differ in dtype"),
        bad(i32(2), i32(3), says="shape"),
    ]


def norm(x):
    return math.sqrt(sum(v * v for v in np.ravel(x).tolist()))


def clip(x, low, high):
    return max(min(x, high), low)


CASES = {
    # ---- comparisons and logic ----
    "Equal": equality(operator.eq),
    "NotEqual": equality(operator.ne),
    "Less": [*compared(operator.lt), bad(c64(2), c64(2), says="dtype")],
    "LessEqual": [*compared(operator.le), bad(strings(2), strings(2), says="dtype")],
    "Greater": [*compared(operator.gt), bad(bools(2), bools(2), says="dtype")],
    "GreaterEqual": compared(operator.ge),
    "ApproximateEqual": [
        case(array(1, 2, 3), array(1.000001, 2.1, 3), expect=[True, False, True], half=False),
        case(array(1, 2, 3), array(1.3, 2.1, 3.6), tolerance=0.5, expect=[True, True, False]),
        case(i32(4), i32(4), expect=of(lambda x, y: x == y)),
        case(np.uint8([1, 200]), np.uint8([2, 199]), tolerance=2.0, expect=[True, True]),
        case(c64(2, 2), c64(2, 2), tolerance=1.0, expect=of(lambda x, y: abs(x - y) < 1)),
        bad(f32(2), f32(1), says="same shape"),
    ],
    "LogicalAnd": logic(lambda x, y: x and y),
    "LogicalOr": logic(lambda x, y: x or y),
    "math.logical_xor": logic(lambda x, y: x != y),
    "LogicalNot": [
        case(bools(2, 3), expect=of(lambda x: not x)),
        case(np.array(True), expect=np.array(False)),
        bad(f32(2), says="dtype"),
    ],
    # ---- complex numbers, size and sign ----
    "Complex": [
        case(f64(2, 3), f64(3), expect=of(complex), gives="complex128"),
        case(f32(2, 1), f32(), expect=of(complex), gives="complex64", half=False),
        case(f32(0, 2), f32(2), expect=np.zeros((0, 2), complex), half=False),
        case(array(inf, 0.0), array(-0.0, nan), expect=of(complex), grad=False, half=False),
        bad(f16(2), f16(2), says="dtype"),
        bad(f32(2), f32(3), says="shape"),
        bad(f32(2), f64(2), says="dtype"),
    ],
    "Real": [
        case(c128(2, 3), expect=of(lambda z: z.real), gives="float64"),
        case(c64(), expect=of(lambda z: z.real)),
        bad(f32(2), says="dtype"),
    ],
    "math.real": [case(c64(3), expect=of(lambda z: z.real), gives="float32"), case(f32(3), expect=lambda x: x)],
    "Imag": [case(c128(2, 3), expect=of(lambda z: z.imag), gives="float64"), case(c64(0), expect=np.zeros(0))],
    "math.imag": [
        case(c64(3), expect=of(lambda z: z.imag), gives="float32"),
        case(f32(3), expect=np.zeros(3), grad=False),
    ],
    "Conj": [
        case(c128(2, 3), expect=of(lambda z: z.conjugate())),
        case(c64(), expect=of(lambda z: z.conjugate())),
        bad(f32(2), says="dtype"),
    ],
    "math.conj": [
        case(c64(3), expect=of(lambda z: z.conjugate())),
        case(f32(3), expect=lambda x: x),
        case(i32(3), expect=lambda x: x),
        bad(bools(2), says="numeric", raises=TypeError),
    ],
    "Angle": [
        case(c128(2, 3), expect=of(cmath.phase), gives="float64"),
        case(c64(3), expect=of(cmath.phase)),
        case(np.array([-1 + 0j, complex(-1, -0.0), 0j, 1j]), expect=of(cmath.phase), grad=False),
    ],
    "math.angle": [
        case(c64(3), expect=of(cmath.phase)),
        case(f32(2, 3), expect=of(lambda x: math.pi if x < 0 else 0.0), grad=False),
    ],
    "Abs": [
        case(f64(2, 3), expect=of(abs)),
        case(f32(0), expect=np.zeros(0)),
        case(f16(3), expect=of(abs)),
        case(bf16(3), expect=of(abs)),
        case(edges, expect=of(abs), grad=False),
        case(i32(5), expect=of(abs)),
        case(i64(5), expect=of(abs)),
        case(np.array([-128, -5], np.int8), expect=[-128, 5]),
        bad(u8(2), says="dtype"),
        bad(strings(2), says="dtype"),
    ],
    "ComplexAbs": [
        case(c128(2, 3), expect=of(abs), gives="float64"),
        case(c64(3), expect=of(abs), gives="float32"),
        case(np.array([3e300 + 4e300j, 0j]), expect=array(5e300, 0), grad=False),
    ],
    "math.abs": [
        case(c64(3), expect=of(abs), gives="float32"),
        case(f32(3), expect=of(abs)),
        case(i32(3), expect=of(abs)),
    ],
    "Sign": [
        case(f64(2, 3), expect=of(sign)),
        case(array(-2, 0, nan, inf), expect=array(-1, 0, nan, 1), grad=False),
        case(c128(2, 3), expect=of(sign)),
        case(np.array([0j, 2j]), expect=np.array([0j, 1j]), grad=False),
        case(i32(5), expect=of(lambda x: (x > 0) - (x < 0))),
        case(i8(5), expect=of(lambda x: (x > 0) - (x < 0))),
        bad(u8(2), says="dtype"),
    ],
    # ---- clipping ----
    "ClipByValue": [
        case(f64(2, 3), np.float64(-1.05), np.float64(0.95), expect=of(clip)),
        case(f64(2, 3), f64(3) - 2, f64(2, 1) + 2, expect=of(clip)),
        case(f32(0, 3), np.float32(0), np.float32(1), expect=np.zeros((0, 3))),
        case(bf16(5), -1.0, 1.0, expect=lambda x, a, b: np.clip(x.astype(float), -1, 1)),
        case(i32(7), 0, 2, expect=lambda x, a, b: of(clip)(x, np.array(0), np.array(2))),
        case(array(-1, 0, 3, nan), np.float64(2), np.float64(1), expect=array(2, 2, 2, nan), grad=False),
        bad(f64(2), f64(2, 1), np.float64(1), says="clip_value_min cannot be broadcast"),
        bad(f64(2, 1), np.float64(1), f64(3), says="clip_value_max cannot be broadcast"),
        bad(f64(2), f64(3), np.float64(1), says="shape"),
        bad(c64(2), c64(2), c64(2), says="dtype"),
    ],
    "clip_by_value": [
        case(f64(2, 3), -1.05, 0.95, expect=lambda x, a, b: of(clip)(x, np.array(-1.05), np.array(0.95)))
    ],
    "clip_by_norm": [
        case(f64(2, 3), 1.0, expect=lambda x, n: x / norm(x)),
        case(f64(2, 3), 100.0, expect=lambda x, n: x),
        case(array([3.0, 4.0], [6.0, 8.0]), 6.0, axes=[1], expect=array([3.0, 4.0], [3.6, 4.8])),
        case(np.zeros((2, 2)), 1.0, expect=np.zeros((2, 2))),
        case(array([3.0, 4.0]), -1, expect=np.zeros((1, 2))),
        bad(f32(2), f32(3, 1), says="cannot be broadcast"),
    ],
    "clip_by_global_norm": [
        case([array(3.0, 0.0), array(4.0)], 1.0, expect=lambda ts, n: (array(0.6, 0), array(0.8), np.array(5.0))),
        case([f32(2), f32(2)], 100.0, expect=lambda ts, n: (*ts, np.array(norm(np.concatenate(ts))))),
        case(
            [array(3.0, 0.0), None, array(4.0)],
            10.0,
            use_norm=np.float64(20.0),
            trace=False,
            expect=lambda ts, n: (array(1.5, 0), array(2.0), np.array(20.0)),
        ),
        case([array(inf, 1.0)], 1.0, expect=lambda ts, n: (array(nan, nan), np.array(inf)), grad=False),
        bad(3, 1.0, says="sequence", raises=TypeError),
    ],
    "math.global_norm": [case([f64(2), f64(2, 3)], expect=lambda ts: np.array(math.hypot(norm(ts[0]), norm(ts[1]))))],
    "math.clip_by_average_norm": [
        case(array(3.0, 4.0), 1.0, expect=array(1.2, 1.6)),
        case(array(3.0, 4.0), 5.0, expect=array(3.0, 4.0)),
    ],
    # ---- bits ----
    "BitwiseAnd": bits(operator.and_),
    "BitwiseOr": bits(operator.or_),
    "BitwiseXor": bits(operator.xor),
    "Invert": [
        *[case(make(2, 3), expect=of(lambda x: ~x)) for make in (i8, i16, i32, i64)],
        case(u8(5), expect=of(lambda x: 255 - x)),
        case(u32(5), expect=of(lambda x: 2**32 - 1 - x)),
        bad(f32(2), says="dtype"),
        bad(bools(2), says="dtype"),
    ],
    "LeftShift": [
        case(i32(2, 3), pos(i32(3)), expect=of(lambda x, y: x << y)),
        case(i64(2, 3), pos(i64(3)), expect=of(lambda x, y: x << y)),
        case(u8(6), pos(u8(6)), expect=of(lambda x, y: x << y & 255)),
        case(
            np.array([1, 1, -1, 5], np.int32), np.array([40, -1, 3, 33], np.int32), expect=[-(2**31), 1, -8, -(2**31)]
        ),
        case(np.array([1], np.uint8), np.array([200], np.uint8), expect=[128]),
        bad(f32(2), f32(2), says="dtype"),
    ],
    "RightShift": [
        case(i32(2, 3), pos(i32(3)), expect=of(lambda x, y: x >> y)),
        case(i8(2, 3), pos(i8(3)), expect=of(lambda x, y: x >> y)),
        case(u64(6), pos(u64(6)), expect=of(lambda x, y: x >> y)),
        case(np.array([-8, 8, -8, 64], np.int32), np.array([40, -1, 1, 33], np.int32), expect=[-1, 8, -4, 0]),
        bad(f32(2), f32(2), says="dtype"),
    ],
}
