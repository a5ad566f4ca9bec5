"""Operations of expressions: in kernels and in NumPy, against float64 and Python's integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from form_kit import buffer, run

from opwright.compiler.kernels import NoKernel
from opwright.compiler.kernels.expression import STRUCTURAL, check, tables
from opwright.compiler.loops import expressions
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.expressions import Expr, apply, arg, const, convert, lookup, quantize, scalar
from opwright.compiler.loops.ops import Map
from opwright.core import dtypes as d
from opwright.scalar.table import FUNCTIONS as ROWS
from thorough import crossed, sampled

N = 53  # no multiple of any vector
RNG = np.random.default_rng(4)


def _vectorized(f: Callable[..., Any]) -> Callable[..., Any]:
    return np.vectorize(f, otypes=[float])


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _round_away(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _any(count: int, kind: Any) -> list[np.ndarray]:
    """Operands of a dtype, its ends among them."""
    if np.dtype(kind).kind == "f":
        result = [(RNG.standard_normal(N) * 3).astype(kind) for _ in range(count)]
        for x in result:
            x[RNG.integers(0, N, 6)] = RNG.permutation(np.array([0.0, -0.0, 2.5, -3.5, 1.0, 100.0], kind))
        return result
    if np.dtype(kind).kind == "b":
        return [RNG.integers(0, 2, N).astype(bool) for _ in range(count)]
    ends = np.iinfo(kind)
    result = [RNG.integers(ends.min, ends.max, N, dtype=kind, endpoint=True) for _ in range(count)]
    result += [RNG.integers(max(ends.min, -9), 9, N).astype(kind) for _ in range(count)]
    for x in result:
        x[RNG.integers(0, N, 4)] = np.array([ends.min, ends.max, 0, 1], kind)
    return result[:count] if RNG.integers(2) else result[count:]


# name: (in float64, operands' range where it is not all numbers)
FLOATS: dict[str, tuple[Callable[..., Any], tuple[float, float] | None]] = {
    "add": (np.add, None),
    "sub": (np.subtract, None),
    "mul": (np.multiply, None),
    "div": (np.divide, (0.1, 9)),
    "floor_div": (np.floor_divide, (0.5, 9)),
    "floor_mod": (np.mod, (0.5, 40)),
    "pow": (np.power, (0.1, 5)),
    "atan2": (np.arctan2, None),
    "fma": (lambda x, y, z: x * y + z, None),
    "minimum": (np.minimum, None),
    "maximum": (np.maximum, None),
    "squared_difference": (lambda x, y: (x - y) ** 2, None),
    "neg": (np.negative, None),
    "abs": (np.abs, None),
    "sign": (np.sign, None),
    "square": (np.square, None),
    "sqrt": (np.sqrt, (0, 9)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0.1, 9)),
    "reciprocal": (lambda x: 1 / x, (0.1, 9)),
    "floor": (np.floor, None),
    "ceil": (np.ceil, None),
    "round_even": (np.rint, None),
    "round_away": (_round_away, None),
    "trunc": (np.trunc, None),
    "exp": (np.exp, (-20, 20)),
    "expm1": (np.expm1, (-20, 20)),
    "log": (np.log, (0.01, 99)),
    "log1p": (np.log1p, (-0.9, 99)),
    "sin": (np.sin, None),
    "cos": (np.cos, None),
    "tan": (np.tan, None),
    "asin": (np.arcsin, (-1, 1)),
    "acos": (np.arccos, (-1, 1)),
    "atan": (np.arctan, None),
    "sinh": (np.sinh, (-9, 9)),
    "cosh": (np.cosh, (-9, 9)),
    "tanh": (np.tanh, None),
    "asinh": (np.arcsinh, None),
    "acosh": (np.arccosh, (1, 9)),
    "atanh": (np.arctanh, (-0.9, 0.9)),
    "erf": (_vectorized(math.erf), None),
    "erfc": (_vectorized(math.erfc), None),
    "sigmoid": (_sigmoid, None),
    "softplus": (lambda x: np.logaddexp(0, x), None),
    "silu": (lambda x: x * _sigmoid(x), None),
    "gelu": (_vectorized(lambda x: x * math.erfc(-x / math.sqrt(2)) / 2), None),
    "gelu_tanh": (lambda x: x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)), None),
    "elu": (lambda x: np.where(x < 0, np.expm1(x), x), None),
    "relu": (lambda x: np.maximum(x, 0), None),
    "relu6": (lambda x: np.clip(x, 0, 6), None),
    "leaky_relu": (lambda x, a: np.where(x < 0, a * x, x), None),
    "hard_swish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, None),
    "clamp": (lambda x, a, b: np.clip(x, a, b), None),
    "clip": (lambda x, a, b: np.clip(x, a, b), None),
    "ieee_minimum": (np.minimum, None),
    "ieee_maximum": (np.maximum, None),
    "divide_no_nan": (np.divide, (0.1, 9)),
    "zero_or_quotient": (np.divide, (0.1, 9)),
    "truncate_div": (lambda x, y: np.trunc(x / y), (0.5, 9)),
    "truncate_mod": (np.fmod, (0.5, 40)),
    "softsign": (lambda x: x / (1 + np.abs(x)), None),
    "selu": (lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))), None),
}


def _arity(function: Callable[..., Any], name: str) -> int:
    return ROWS[name].arity


def given(name: str, kind: Any) -> list[np.ndarray]:
    function, within = FLOATS[name]
    if name in ("clamp", "clip"):
        return [_any(1, kind)[0], np.full(N, -1, kind), np.full(N, 2.5, kind)]
    if within is None:
        return _any(_arity(function, name), kind)
    return [RNG.uniform(*within, N).astype(kind) for _ in range(_arity(function, name))]


def both(expr: Expr, operands: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the results of a kernel and of NumPy."""
    buffers = [buffer(x, f"x{i}") for i, x in enumerate(operands)]
    shape = np.broadcast_shapes(*(x.shape for x in operands if x.shape != (256,))) or (1,)
    result = run(Map(Buffer("y", expr.dtype, shape), tuple(buffers), expr), dict(zip(buffers, operands)))
    with np.errstate(all="ignore"):
        return result, np.broadcast_to(expressions.evaluate_arrays(expr, operands), shape)


@pytest.mark.parametrize("name", sampled(sorted(FLOATS), 5))  # tests/functions covers all of them
def test_of_float32(name: str) -> None:
    operands = given(name, np.float32)
    actual, numpy = both(apply(name, *(arg(i, d.float32) for i in range(len(operands)))), operands)
    expected = FLOATS[name][0](*(x.astype(np.float64) for x in operands))
    absolute = 1e-6 if name == "tan" else 1e-30
    allowed = 1e-5 * np.abs(expected) + ROWS[name].argument_error * np.abs(operands[0]) + absolute
    assert (np.abs(actual - expected) <= allowed).all()
    np.testing.assert_allclose(numpy, expected, rtol=1e-6, atol=absolute)


@pytest.mark.parametrize(
    ("name", "dtype"),
    crossed(["add", "mul", "div", "exp", "sigmoid", "hard_swish", "maximum", "sqrt", "gelu"], [d.float16, d.bfloat16]),
    ids=str,
)
def test_of_short_floats_rounds_once(name: str, dtype: d.DType) -> None:
    operands = [np.abs(x.astype(dtype.np)) + np.array(0.5, dtype.np) for x in given(name, np.float32)]
    actual, _ = both(apply(name, *(arg(i, dtype) for i in range(len(operands)))), operands)
    with np.errstate(over="ignore"):
        expected = FLOATS[name][0](*(x.astype(np.float64) for x in operands)).astype(np.float32).astype(dtype.np)
    gap = np.abs(actual.view(np.int16).astype(int) - expected.view(np.int16).astype(int))
    assert gap.max() <= 1
    assert (gap == 0).mean() > 0.9


@pytest.mark.parametrize("name", sampled(sorted(FLOATS), 4))
def test_of_float64(name: str) -> None:
    operands = given(name, np.float64)
    actual, _ = both(apply(name, *(arg(i, d.float64) for i in range(len(operands)))), operands)
    expected = FLOATS[name][0](*operands)
    np.testing.assert_allclose(actual, expected, rtol=1e-14, atol=1e-13)


# ---- integers ----------------------------------------------------------------------------------------------------


def _toward_zero(x: int, y: int) -> int:
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _power(x: int, y: int) -> int:
    return x**y if y >= 0 else x ** (-y % 2) if x in (1, -1) else 0


INTEGERS: dict[str, Callable[..., int]] = {  # of Python's integers, before they wrap
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "minimum": min,
    "maximum": max,
    "neg": lambda x: -x,
    "abs": abs,
    "square": lambda x: x * x,
    "squared_difference": lambda x, y: (x - y) ** 2,
    "sign": lambda x: (x > 0) - (x < 0),
    "div": _toward_zero,
    "floor_div": lambda x, y: x // y if y else 0,
    "floor_mod": lambda x, y: x % y if y else 0,
    "truncate_div": _toward_zero,
    "truncate_mod": lambda x, y: x - y * _toward_zero(x, y) if y else 0,
    "ieee_minimum": min,
    "ieee_maximum": max,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
    "shift_left": lambda x, y: x << y,
    "shift_right": lambda x, y: x >> y,
    "shift_left_or_zero": lambda x, y: x << y if 0 <= y < 64 else 0,
}
KINDS = (d.int8, d.uint8, d.int16, d.uint16, d.int32, d.uint32, d.int64, d.uint64)


@pytest.mark.parametrize("name", sampled(sorted(INTEGERS), 4))
@pytest.mark.parametrize(
    "dtype",
    [
        d.int8,
        d.uint8,
        pytest.param(d.int16, marks=pytest.mark.slow),
        pytest.param(d.uint16, marks=pytest.mark.slow),
        d.int32,
        d.int64,
        pytest.param(d.uint32, marks=pytest.mark.slow),
        pytest.param(d.uint64, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_of_integers(name: str, dtype: d.DType) -> None:
    bits = dtype.size * 8
    operands = _any(_arity(INTEGERS[name], name), dtype.np)
    if name.startswith("shift"):
        beyond = 9 if name.endswith("_or_zero") else 0
        operands[1] = RNG.integers(-beyond, bits + beyond, N).astype(dtype.np)
    actual, numpy = both(apply(name, *(arg(i, dtype) for i in range(len(operands)))), operands)
    exact = [INTEGERS[name](*map(int, xs)) for xs in zip(*operands)]
    expected = np.array([v % 2**bits for v in exact], np.uint64).astype(f"u{dtype.size}").view(dtype.np)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(numpy, expected)


def test_integer_powers_beyond_the_type_are_the_least() -> None:
    x, y = RNG.integers(-9, 9, N).astype(np.int32), RNG.integers(0, 40, N).astype(np.int32)
    x[:6], y[:6] = (2, 2, -2, -2, 46340, -1), (30, 31, 31, 33, 2, 2**31 - 1)
    actual, numpy = both(apply("pow_or_least", arg(0, d.int32), arg(1, d.int32)), [x, y])
    exact = [(int(a) ** int(b % 2 if abs(a) == 1 else b)) for a, b in zip(x, y)]
    expected = np.array([v if abs(v) < 2**31 else -(2**31) for v in exact], np.int32)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(numpy, expected)


@pytest.mark.parametrize("dtype", [d.int32, pytest.param(d.int64, marks=pytest.mark.slow)], ids=str)
def test_integer_powers_wrap(dtype: d.DType) -> None:
    x, y = RNG.integers(-9, 9, N).astype(dtype.np), RNG.integers(-3, 40, N).astype(dtype.np)
    actual, _ = both(apply("pow", arg(0, dtype), arg(1, dtype)), [x, y])
    bits = dtype.size * 8
    expected = [_power(int(a), int(b)) % 2**bits for a, b in zip(x, y)]
    np.testing.assert_array_equal(actual, np.array(expected, np.uint64).astype(f"u{dtype.size}").view(dtype.np))


@pytest.mark.parametrize(
    ("name", "dtype"),
    crossed(
        ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"],
        [d.float16, d.float32, d.float64, d.int8, d.uint8, d.int64],
        every=3,
    ),
    ids=str,
)
def test_comparisons(name: str, dtype: d.DType) -> None:
    x, y = _any(2, dtype.np)
    y[::3] = x[::3]
    if dtype.is_floating:
        x[5] = y[7] = np.nan
    expr = apply(name, arg(0, dtype), arg(1, dtype), dtype=d.bool)
    result, numpy = both(expr, [x, y])
    np.testing.assert_array_equal(result, getattr(np, name)(x, y))
    np.testing.assert_array_equal(numpy, getattr(np, name)(x, y))


@pytest.mark.parametrize("dtype", [d.float16, d.bfloat16, d.float32, d.float64], ids=str)
def test_what_is_no_number(dtype: d.DType) -> None:
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, *[-2.0] * 30]).astype(dtype.np)
    for name, test in (("is_nan", np.isnan), ("is_inf", np.isinf), ("is_finite", np.isfinite)):
        result, numpy = both(apply(name, arg(0, dtype), dtype=d.bool), [x])
        np.testing.assert_array_equal(result, test(x.astype(np.float64)))
        np.testing.assert_array_equal(numpy, result)


def test_masks_and_selection() -> None:
    x, y, m = *_any(2, np.bool_), _any(1, np.float32)[0]
    for name in ("logical_and", "logical_or"):
        result, numpy = both(apply(name, arg(0, d.bool), arg(1, d.bool)), [x, y])
        np.testing.assert_array_equal(result, getattr(np, name)(x, y))
        np.testing.assert_array_equal(numpy, result)
    result, _ = both(apply("logical_not", arg(0, d.bool)), [x])
    np.testing.assert_array_equal(result, ~x)
    (whole,) = _any(1, np.int32)
    result, numpy = both(apply("bitwise_not", arg(0, d.int32)), [whole])
    np.testing.assert_array_equal(result, [~int(v) for v in whole])
    np.testing.assert_array_equal(numpy, result)
    chosen = apply("select", arg(0, d.bool), arg(1, d.float32), const(-2.0, d.float32), dtype=d.float32)
    result, _ = both(chosen, [x, m])
    np.testing.assert_array_equal(result, np.where(x, m, np.float32(-2)))


# ---- other dtypes ------------------------------------------------------------------------------------------------


ALL = (*KINDS, d.bool, d.float16, d.float32, d.float64)


@pytest.mark.parametrize(
    ("source", "into"), sampled([(source, into) for source in (*ALL, d.bfloat16) for into in ALL], 7), ids=str
)
def test_conversions(source: d.DType, into: d.DType) -> None:
    x = _any(1, np.float32 if source is d.bfloat16 else source.np)[0].astype(source.np)
    if source.is_floating and not into.is_floating:
        x = np.clip(
            x.astype(np.float64),
            max(into.limits[0], -1000) if not into.is_bool else -9,
            min(into.limits[1], 1000) if not into.is_bool else 9,
        ).astype(source.np)
    result, _ = both(convert(arg(0, source), into), [x])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(result, x.astype(into.np))


@pytest.mark.parametrize("into", [d.int8, d.uint8, d.int16, d.int32, d.int64], ids=str)
def test_floats_outside_of_integers_become_the_nearest_end(into: d.DType) -> None:
    low, high = (int(v) for v in into.limits)
    x = np.resize(np.array([1e30, -1e30, np.inf, -np.inf, 3.7, -3.7], np.float32), 42)
    result, _ = both(convert(arg(0, d.float32), into), [x])
    np.testing.assert_array_equal(result, np.resize([high, low, high, low, 3, max(low, -3)], 42))


@pytest.mark.parametrize("count", [3, 64], ids=["elements", "vectors"])
def test_floats_at_the_ends_of_int32(count: int) -> None:
    below = np.nextafter(np.float32(2**31), np.float32(0))
    x = np.array([below, 2.0**31, -(2.0**31), np.nextafter(np.float32(-(2**31)), -np.inf), np.nan, -0.9], np.float32)
    expected = [int(below), 2**31 - 1, -(2**31), -(2**31), 0, 0]
    result, _ = both(convert(arg(0, d.float32), d.int32), [np.resize(x, count)])
    np.testing.assert_array_equal(result, np.resize(expected, count))


@pytest.mark.parametrize(
    ("dtype", "zero", "within"),
    [(d.int8, -5, ()), (d.uint8, 128, ()), (d.int16, 0, ()), (d.int8, 3, (3, 60)), (d.uint8, 0, (10, 99))],
    ids=str,
)
def test_quantize_rounds_to_even_and_saturates(dtype: d.DType, zero: int, within: tuple[int, ...]) -> None:
    x = np.concatenate([RNG.uniform(-400, 400, N), [0.5, 1.5, 2.5, -0.5, -1.5, 1e30, -1e30, np.inf, -np.inf, np.nan]])
    x = x.astype(np.float32)
    low, high = within or (int(v) for v in dtype.limits)
    result, _ = both(quantize(arg(0, d.float32), zero, dtype, *within), [x])
    held = np.clip(np.nan_to_num(x.astype(np.float64), nan=-1e9, posinf=1e9, neginf=-1e9), -1e9, 1e9)
    np.testing.assert_array_equal(result, np.clip(np.rint(held) + zero, low, high))


@pytest.mark.parametrize("dtype", [d.int8, d.uint8], ids=str)
@pytest.mark.parametrize("n", [1, 16, 64, 200])
def test_lookup(dtype: d.DType, n: int) -> None:
    table = RNG.permutation(256).astype(np.uint8).view(np.int8)
    x = RNG.integers(0, 256, n).astype(np.uint8).view(dtype.np)
    expr = lookup(arg(0, dtype), arg(1, d.int8))
    assert tables(expr) == {1}
    t = Buffer("t", d.int8, (256,), table)
    b = buffer(x)
    np.testing.assert_array_equal(run(Map(Buffer("y", d.int8, (n,)), (b, t), expr), {b: x}), table[x.view(np.uint8)])


@pytest.mark.parametrize(
    ("source", "into"), [(d.int16, d.int16), (d.int8, d.int32), (d.uint8, d.float32), (d.int16, d.uint8)], ids=str
)
def test_wide_tables(source: d.DType, into: d.DType) -> None:
    size = 1 << (8 * source.size)
    table = RNG.integers(0, 200, size).astype(into.np)
    x = RNG.integers(*source.limits, 201, endpoint=True).astype(source.np)
    t, b = Buffer("t", into, (size,), table), buffer(x)
    expr = lookup(arg(0, source), arg(1, into))
    expected = table[x.view(f"u{source.size}")]
    np.testing.assert_array_equal(run(Map(Buffer("y", into, (201,)), (b, t), expr), {b: x}), expected)
    np.testing.assert_array_equal(expressions.evaluate_arrays(expr, [x, table]), expected)


def test_numbers_are_code_or_words() -> None:
    x = _any(1, np.float32)[0]
    value = apply("fma", arg(0, d.float32), scalar(1.25, d.float32), const(-0.75, d.float32))
    result, numpy = both(value, [x])
    np.testing.assert_allclose(result, x.astype(np.float64) * 1.25 - 0.75, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(numpy, result, rtol=1e-6, atol=1e-7)


def test_nan_stays_in_activations_and_gives_way_as_the_second_operand() -> None:
    x = np.array([np.nan, 1, -1], np.float32)
    for name in ("relu", "relu6", "hard_swish", "sigmoid", "tanh", "gelu", "elu"):
        result, _ = both(apply(name, arg(0, d.float32)), [x])
        np.testing.assert_array_equal(np.isnan(result), [True, False, False], name)
    result, _ = both(apply("maximum", arg(0, d.float32), const(0.5, d.float32)), [x])
    np.testing.assert_array_equal(result, np.array([0.5, 1, 0.5], np.float32))


@pytest.mark.parametrize(
    "expr", [apply("exp", arg(0, d.int32)), apply("nothing", arg(0, d.float32)), arg(0, d.complex64)], ids=str
)
def test_what_kernels_lack_is_refused(expr: Expr) -> None:
    with pytest.raises(NoKernel, match=expr.op if expr.args else "complex64"):
        check(expr)


def test_every_operation_is_tested_and_stands_in_numpy() -> None:
    tested = {
        *FLOATS,
        *INTEGERS,
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "is_nan",
        "is_inf",
        "is_finite",
        "logical_and",
        "logical_or",
        "logical_not",
        "select",
        "pow_or_least",
        "bitwise_not",
    }
    assert set(ROWS) == tested
    assert set(STRUCTURAL) - set(expressions.STRUCTURAL) == {"lookup"}
