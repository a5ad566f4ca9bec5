"""The table of scalar functions: who reads it, NumPy's side against float64, what becomes of NaN in every way."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from exact_functions import FLOATS

import opwright as ow
from opwright.compiler.elementwise import compile_elementwise
from opwright.compiler.language.operators import LOWER
from opwright.compiler.lowering.functions import SPECIAL
from opwright.compiler.lowering.registry import MODULES
from opwright.core.dtypes import bfloat16, float16, float32, float64, int32
from opwright.lite import ops as builtins
from opwright.lite.ops.elementwise import computation
from opwright.ops import registry
from opwright.scalar import table
from opwright.scalar.table import FUNCTIONS, OF_BUILTIN, OF_OPERATOR, ROWS, ScalarFunction

NAN = math.nan


# ---- who reads it ---------------------------------------------------------------------------------------------------


def test_names_are_said_once() -> None:
    assert len(FUNCTIONS) == len(ROWS)
    assert len(OF_OPERATOR) == sum(len(row.operators) for row in ROWS)
    assert len(OF_BUILTIN) == sum(bool(row.builtin) for row in ROWS)
    for row in ROWS:
        assert row.variant is None or row.variant[1] in FUNCTIONS
        assert set(row.calls) <= set(FUNCTIONS)
        assert row.formula is not None or row.exact


def test_the_catalogue_computes_by_its_rows() -> None:
    for name, row in OF_OPERATOR.items():
        rule = registry.get(name).compute_rule
        if name != "Select":  # which is written into the memory of an operand that is not chosen
            functions = enclosed(rule)
            names = [n for f in functions if hasattr(f, "__code__") for n in f.__code__.co_names]
            assert any(f in (row.numpy, row.ufunc, row.of_arrays) for f in functions) or "FUNCTIONS" in names, name


def enclosed(function: Any) -> list[Any]:
    """Return a function and the functions in its closure or arguments, at any depth."""
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    cells += getattr(function, "args", ())
    return [function, *(inner for held in cells if callable(held) for inner in enclosed(held))]


OWN = {
    "DIV": "integers overflow to the greatest",
    "FLOOR_DIV": "floats are divided in float64",
    "POW": "integers wrap, or become the least",
    "ELU": "the sign of zero",
    "HARD_SWISH": "it divides by 6",
    "LOGISTIC": "e^x below -9",
    "GELU": "float16 by steps",
    "FLOOR_MOD": "divisors are looked at",
    "LEAKY_RELU": "alpha is an option",
    "RSQRT": "short floats are computed in float32",
}
"""Builtin operators that have a computation of their own, with what it has that the row has not."""


def test_builtin_operators_compute_by_their_rows_or_say_why_not() -> None:
    for name in OF_BUILTIN:
        rule = builtins.get(name).compute_rule
        within = [rule, *(cell.cell_contents for cell in getattr(rule, "__closure__", None) or ())]
        wanted = computation(name)
        row = OF_BUILTIN[name]
        direct = any(found in (wanted, row.numpy, row.ufunc) for found in within)
        partial = any(getattr(found, "func", None) is row.formula is not None for found in within)
        assert direct or partial or name in OWN, name


def test_kernels_on_scalars_and_rules_know_the_rows_operators() -> None:
    assert set(LOWER) - set(OF_OPERATOR) == {"Cast", "Identity", "StopGradient", "Const"}
    ruled = {name for name, module in MODULES.items() if module.endswith((".functions", ".arithmetic"))}
    assert ruled & set(registry.catalogue()) - {"AddN", "BiasAdd", "Cast", *SPECIAL} == set(OF_OPERATOR)


# ---- NumPy's side ---------------------------------------------------------------------------------------------------


NEAR = (
    *("erf", "erfc", "sigmoid", "softplus", "softsign", "elu", "selu", "gelu", "gelu_tanh", "hard_swish", "relu"),
    *("relu6", "rsqrt", "reciprocal", "round_away"),
)


def test_numpy_is_near_float64_in_relative_terms() -> None:
    rng = np.random.default_rng(3)
    with np.errstate(all="ignore"):
        x = np.concatenate([rng.uniform(-30, 30, 4000), np.exp(rng.uniform(-60, 60, 4000)) * rng.choice([-1, 1], 4000)])
        for name in NEAR:
            row, oracle = FUNCTIONS[name], FLOATS[name]
            for dtype, far, end in ((np.float32, 4e-6, np.inf), (np.float64, 3e-13, 15)):  # the oracle has 53 bits, too
                a = x[np.abs(x) <= end].astype(dtype)
                a = np.abs(a) if name == "rsqrt" else a
                exact = oracle(a.astype(np.float64))
                allowed = far * np.abs(exact) + np.finfo(dtype).smallest_normal * 1e-6
                found = [row.of_arrays(a)]
                if row.formula is not None and dtype is np.float64:  # which kernels compute in where they have no code
                    found.append(row.formula(table.ARRAYS, a))
                for y in found:
                    gap = np.abs(y.astype(np.float64) - exact) / allowed
                    assert np.nanmax(np.where(np.isfinite(exact.astype(dtype)), gap, 0)) <= 1, (name, dtype)


def test_gelu_is_exact_far_below_zero() -> None:
    x = np.linspace(-12, -4, 500).astype(np.float32)
    exact = FLOATS["gelu"](x.astype(np.float64))
    for found in (FUNCTIONS["gelu"].of_arrays(x), ow.nn.gelu(ow.constant(x)).numpy()):
        np.testing.assert_allclose(found, exact, rtol=2e-7)


# ---- NaN ------------------------------------------------------------------------------------------------------------


def _points(arity: int) -> np.ndarray:
    """Operands, a column each, with NaN in one place or in several; the others are usual numbers."""
    points = [p for p in itertools.product((NAN, 0.25, 0.75), repeat=arity) if any(v != v for v in p)]
    return np.array(points * 8, np.float32)


def _wanted(row: ScalarFunction, operands: list[np.ndarray]) -> np.ndarray:
    """Return the NaN policy of the row."""
    count = operands[0].size
    if row.nan == table.PROPAGATES:
        return np.full(count, NAN)
    if row.nan == table.SECOND:
        return operands[1]
    if row.nan in (table.FALSE, table.TRUE):
        return np.full(count, row.nan == table.TRUE)
    if row.nan == table.TESTED:
        return np.full(count, row.name == "is_nan")
    if row.name == "leaky_relu":
        x, slope = operands if len(operands) == 2 else (*operands, np.float32(0.2))
        return np.where(x > 0, x, x * slope)
    if row.name == "pow":  # C's pow: of these points none has 1 or an exponent of 0
        return np.full(count, NAN)
    if row.name in ("divide_no_nan", "zero_or_quotient"):  # of these points none has a 0
        return np.full(count, NAN)
    raise AssertionError(f"{row.name}: nothing tests {row.nan!r}")


def _functions_of_floats() -> Iterator[ScalarFunction]:
    return (row for row in ROWS if row.takes(float32) and row.name not in ("select", "fma"))


def test_what_numpy_makes_of_nan() -> None:
    for row in _functions_of_floats():
        operands = list(_points(row.arity).T)
        if row.name == "clamp":  # whose bounds are numbers
            operands = [np.full(5, NAN, np.float32), np.zeros(5, np.float32), np.ones(5, np.float32)]
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(row.of_arrays(*operands), _wanted(row, operands), row.name)


@pytest.mark.slow
def test_what_kernels_on_scalars_make_of_nan() -> None:
    """One kernel tells of every operator, by a bit each, whether it gives NaN."""
    rows = {name: row for row in _functions_of_floats() for name in row.operators if not row.is_test}
    is_nan = registry.get("IsNan")
    for count in (1, 2):
        of_count = [name for name in rows if len(registry.get(name).inputs) == count]
        operands = [np.ascontiguousarray(a) for a in _points(count).T]

        def nans(*xs: Any, names: list[str] = of_count) -> Any:
            bits: Any = 0
            for k, name in enumerate(names):
                bits = bits + ow.cast(is_nan(registry.get(name)(*xs)), ow.int64) * (1 << k)
            return bits

        kernel = (lambda x, f=nans: f(x)) if count == 1 else (lambda x, y, f=nans: f(x, y))
        bits = compile_elementwise(kernel, "nans", [a.dtype for a in operands], {}).over(operands[0].shape, operands)
        for k, name in enumerate(of_count):
            wanted = np.isnan(_wanted(rows[name], operands))
            np.testing.assert_array_equal((bits >> k & 1).astype(bool), wanted, name)


def test_rows_say_which_dtypes_they_take() -> None:
    assert FUNCTIONS["exp"].takes(bfloat16)
    assert FUNCTIONS["exp"].takes(float16)
    assert not FUNCTIONS["exp"].takes(int32)
    assert FUNCTIONS["floor_div"].takes(int32)
    assert FUNCTIONS["floor_div"].takes_float64
    assert FUNCTIONS["selu"].only_float32  # as the exponential in its formula is
    assert not FUNCTIONS["rsqrt"].only_float32
    assert not FUNCTIONS["relu"].takes(float64) or not FUNCTIONS["relu"].only_float32
