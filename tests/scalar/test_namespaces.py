"""The two namespaces that formulas are written over: the same names, and both as exact arithmetic has it."""

from __future__ import annotations

import inspect
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from opwright.compiler import language as kl
from opwright.compiler.language import f64, i64, ptr
from opwright.compiler.language.compilation import call
from opwright.compiler.target import host
from opwright.core.dtypes import DType, float32, float64, int16, int32, int64
from opwright.scalar import numpy_namespace as on_arrays


def test_the_kernel_language_has_every_name_with_the_same_parameters() -> None:
    for name in on_arrays.__all__:
        here, there = getattr(on_arrays, name), getattr(kl, name)
        if isinstance(here, DType):
            assert here is there, name
        else:
            expected, actual = (list(inspect.signature(f).parameters.values()) for f in (here, there))
            assert [p.default for p in expected] == [p.default for p in actual[: len(expected)]], name
            assert all(p.default is not p.empty for p in actual[len(expected) :]), name


def wrapped(x: int, bits: int) -> int:
    """Return x as a signed integer of that width."""
    return (x + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def truncated(a: int, c: int) -> int:
    """a / c toward zero."""
    return abs(a) // abs(c) * (1 if (a < 0) == (c < 0) else -1)


def whole(function: Callable[[float], int], a: float) -> float:
    """Round a float by a function to integers; keep the sign of a zero."""
    return math.copysign(function(a), a) if math.isfinite(a) else a


Function = Callable[..., Any]
OF_INTEGERS: dict[str, tuple[Function, Function]] = {
    # name: (formula over a namespace, the same on Python's integers, whose result is wrapped to the dtype's bits)
    "select": (lambda m, a, c: m.select(a < c, a, 7), lambda a, c: a if a < c else 7),
    "select_of_number": (lambda m, a, c: m.select((a & 1) != 0, -3, c), lambda a, c: -3 if a % 2 else c),
    "minimum": (lambda m, a, c: m.minimum(a, c), min),
    "maximum": (lambda m, a, c: m.maximum(a, c), max),
    "clamp": (lambda m, a, c: m.clamp(a, -9, 100), lambda a, c: min(max(a, -9), 100)),
    "fma": (lambda m, a, c: m.fma(a, c, a), lambda a, c: a * c + a),
    "abs": (lambda m, a, c: m.abs(a), lambda a, c: abs(a)),
    "truncated_quotient": (
        lambda m, a, c: m.truncated_quotient(a, m.maximum(c, 3)),
        lambda a, c: truncated(a, max(c, 3)),
    ),
    "truncated_quotient_by_number": (lambda m, a, c: m.truncated_quotient(a, -7), lambda a, c: truncated(a, -7)),
    "convert": (lambda m, a, c: m.convert(a, m.i8), lambda a, c: wrapped(a, 8)),
    "full": (lambda m, a, c: m.full(m.i64, 0, 5) << (m.convert(a, m.i64) & 31), lambda a, c: 5 << (a & 31)),
    "value": (lambda m, a, c: m.value(3) - m.convert(m.value(a), m.i64), lambda a, c: 3 - a),
    "zeros": (lambda m, a, c: m.zeros(m.i64) - m.convert(a, m.i64), lambda a, c: -a),
    "bitcast": (
        lambda m, a, c: m.bitcast(m.convert(a, m.f64), m.i64) >> 1,
        lambda a, c: struct.unpack("<q", struct.pack("<d", a))[0] >> 1,
    ),
    "type_of": (lambda m, a, c: a >> (8 * m.type_of(a).size - 1), lambda a, c: -1 if a < 0 else 0),
    "operators": (
        lambda m, a, c: ~(a ^ c) + (a | 12) - (a & c) + (a >> 3) + (c << 2) - a * 5,
        lambda a, c: ~(a ^ c) + (a | 12) - (a & c) + (a >> 3) + (c << 2) - a * 5,
    ),
}
OWN_WIDTH = "full", "value", "zeros", "bitcast"
"""Whose results are int64, whatever the operands are."""

OF_FLOATS: dict[str, tuple[Function, Function]] = {
    # The same; what Python gives is rounded to float32 for operands of float32.
    "minimum": (lambda m, a, c: m.minimum(a, c), lambda a, c: a if a < c else c),
    "maximum": (lambda m, a, c: m.maximum(a, c), lambda a, c: a if a > c else c),
    "clamp": (lambda m, a, c: m.clamp(a, -2.0, 3.5), lambda a, c: 3.5 if a > 3.5 else a if a > -2.0 else -2.0),
    "select": (lambda m, a, c: m.select(a == c, 0.25, a), lambda a, c: 0.25 if a == c else a),
    "abs": (lambda m, a, c: m.abs(a), lambda a, c: abs(a)),
    "sqrt": (lambda m, a, c: m.sqrt(m.maximum(a, 0.0)), lambda a, c: math.sqrt(a) if a > 0.0 else 0.0),
    "round_even": (lambda m, a, c: m.round_even(a), lambda a, c: whole(round, a)),
    "floor": (lambda m, a, c: m.floor(a), lambda a, c: whole(math.floor, a)),
    "ceil": (lambda m, a, c: m.ceil(a), lambda a, c: whole(math.ceil, a)),
    "trunc": (lambda m, a, c: m.trunc(a), lambda a, c: whole(math.trunc, a)),
    "convert": (
        lambda m, a, c: m.convert(m.convert(m.clamp(a, -9.9, 9.9), m.i32), m.f64),
        lambda a, c: float(math.trunc(min(a, 9.9) if a > -9.9 else -9.9)),
    ),
    "to_int": (
        lambda m, a, c: m.convert(m.to_int(m.convert(m.clamp(a, -9.5, 9.5), m.f32)), m.f64),
        lambda a, c: float(round(min(a, 9.5) if a > -9.5 else -9.5)),
    ),
}


@kl.family
def integers(work, a: ptr[i64], c: ptr[i64], y: ptr[i64], n: i64, *, dtype: DType, lanes: int):
    """An item is a vector, or where lanes is 0 a number; y: a row of n for each formula."""
    for item in work.items():
        at = item * max(lanes, 1)
        left, right = a.load(at, lanes).to(dtype), c.load(at, lanes).to(dtype)
        for row, (formula, _) in enumerate(OF_INTEGERS.values()):
            (y + row * n).store(formula(kl, left, right).to(i64), at)


@kl.family
def floats(work, a: ptr[f64], c: ptr[f64], y: ptr[f64], n: i64, *, dtype: DType, lanes: int):
    """As `integers`."""
    for item in work.items():
        at = item * max(lanes, 1)
        left, right = a.load(at, lanes).to(dtype), c.load(at, lanes).to(dtype)
        for row, (formula, _) in enumerate(OF_FLOATS.values()):
            (y + row * n).store(formula(kl, left, right).to(f64), at)


def test_integers_are_exact_in_both() -> None:
    rng = np.random.default_rng(5)
    for dtype in (int16, int32, int64):
        ends = [dtype.min, dtype.min + 1, -10, -9, -1, 0, 1, 2, 100, 101, dtype.max - 1, dtype.max]
        spread = rng.integers(dtype.min, dtype.max, 52, np.int64, endpoint=True) >> rng.integers(0, 50, 52)
        some = np.concatenate([np.array(ends, np.int64), spread])
        a, c = some, rng.permutation(some)
        compiled = [np.zeros((len(OF_INTEGERS), a.size), np.int64) for _ in range(2)]
        for lanes, y in zip((0, host().vector_bytes // 8), compiled):
            call(integers.code(dtype=dtype, lanes=lanes), [a, c, y, a.size], a.size // max(lanes, 1))
        for row, (name, (formula, exact)) in enumerate(OF_INTEGERS.items()):
            bits = 64 if name in OWN_WIDTH else 8 * dtype.size
            expected = [wrapped(exact(int(p), int(q)), bits) for p, q in zip(a, c)]
            actual = formula(on_arrays, a.astype(dtype.np), c.astype(dtype.np))
            for way, result in (("arrays", actual), ("numbers", compiled[0][row]), ("vectors", compiled[1][row])):
                np.testing.assert_array_equal(result, expected, f"{name} of {dtype.name}, {way}")


def test_floats_round_right_in_both() -> None:
    rng = np.random.default_rng(6)
    some = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -2.5, 3.5, -2.0, 9.5, -9.5, math.inf, -math.inf, math.nan, 1e9, 8388609.0]
    a = np.concatenate([np.array(some), rng.normal(0, 8, 48)]).astype(np.float32).astype(np.float64)
    c = rng.permutation(a)
    for dtype in (float32, float64):
        compiled = [np.zeros((len(OF_FLOATS), a.size)) for _ in range(2)]
        for lanes, y in zip((0, host().vector_bytes // 8), compiled):
            call(floats.code(dtype=dtype, lanes=lanes), [a, c, y, a.size], a.size // max(lanes, 1))
        for row, (name, (formula, exact)) in enumerate(OF_FLOATS.items()):
            expected = np.array([exact(float(p), float(q)) for p, q in zip(a, c)]).astype(dtype.np).astype(np.float64)
            actual = formula(on_arrays, a.astype(dtype.np), c.astype(dtype.np))
            for way, result in (("arrays", actual), ("numbers", compiled[0][row]), ("vectors", compiled[1][row])):
                np.testing.assert_array_equal(result, expected, f"{name} of {dtype.name}, {way}")
                assert (np.signbit(result) == np.signbit(expected))[~np.isnan(expected)].all(), (name, dtype.name, way)


def test_gather_takes_vectors_and_numbers() -> None:
    table = np.array([5, -7, 1 << 40, 0, 9, 2, 3, 4], np.int64)
    indices = np.array([3, 2, 2, 7, 0, 1, 6, 5], np.int64)
    expected = [int(table[i]) for i in indices]
    np.testing.assert_array_equal(on_arrays.gather(table, indices), expected)
    for lanes in (0, host().vector_bytes // 8):
        actual = np.zeros_like(indices)
        call(gathered.code(lanes=lanes), [table, indices, actual], indices.size // max(lanes, 1))
        np.testing.assert_array_equal(actual, expected)


@kl.family
def gathered(work, table: ptr[i64], indices: ptr[i64], y: ptr[i64], *, lanes: int):
    for item in work.items():
        at = item * max(lanes, 1)
        y.store(kl.gather(table, indices.load(at, lanes)), at)
