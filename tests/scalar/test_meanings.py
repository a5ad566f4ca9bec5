"""Formulas of the scalar table are exact, and a change of any part of one is noticed.

Mutants of a formula (formula_mutants.py) are run on NumPy arrays, without a compiler, next to exact functions
(exact_functions.py; of fixed-point arithmetic: exact_integers.py).
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from exact_functions import dtypes_of, wrong
from exact_integers import spread
from formula_mutants import code_of, mutants_of
from test_fixed_point import EXACT

from opwright.scalar import fixed_point, formulas, table
from opwright.scalar import numpy_namespace as on_arrays
from opwright.scalar.fixed_point import FixedPoint, FixedPointInt32
from opwright.scalar.table import ROWS

FORMULAS = [row for row in ROWS if row.formula is not None]


def first_difference(rows: Any = FORMULAS) -> str:
    """Return the first difference of a row from what it is; empty if there is none."""
    return next((text for row in rows for dtype in dtypes_of(row) if (text := wrong(row, dtype))), "")


def test_formulas_are_exact() -> None:
    assert [text for row in FORMULAS if (text := first_difference([row]))] == []


# ---- mutants ---------------------------------------------------------------------------------------------------------


def functions() -> Iterator[tuple[str, Callable[..., Any], Any]]:
    """Yield (name, function, its tree): those of formulas.py, and lambdas in rows of the table."""
    for tree in ast.parse(inspect.getsource(formulas)).body:
        if isinstance(tree, ast.FunctionDef):
            yield tree.name, getattr(formulas, tree.name), tree
    lambdas = {row.formula.__code__.co_firstlineno: row for row in FORMULAS if row.formula.__name__ == "<lambda>"}
    for node in ast.walk(ast.parse(inspect.getsource(table))):
        if isinstance(node, ast.Lambda) and node.lineno in lambdas:
            yield lambdas[node.lineno].name, lambdas[node.lineno].formula, node


_DIVISOR = "any divisor will do where the result is not taken"
_SIGNS = "no remainder, and no divisor whose remainder is taken, is 0 there"
_ARRAYS = "NumPy's shifts by too many bits are 0; processors' are not, of which the compiled rows tell"
_WRAPS = "2^31, at which products stop, becomes the least int32 by itself"
_STOPS = "an odd number to the power 2^(bits - 2) is 1, an even one 0"
EQUAL = {
    "elu: x < 0.0 -> x <= 0.0": "expm1(0) is 0",
    "floor_quotient: 0 -> 1": _DIVISOR,
    "integer_power: 1 -> 2": _STOPS,
    "integer_power: 8 -> 9": _STOPS,
    "integer_power: dtype.size * 8 - 1 -> dtype.size * 8 + 1": _STOPS,
    "power_or_least: (total >= limit) | (total <= -limit) -> (total >= limit) & (total <= -limit)": _WRAPS,
    "power_or_least: -limit -> limit": _WRAPS,
    "power_or_least: 31 -> 32": "no exponent has a bit more",
    "power_or_least: total <= -limit -> total < -limit": _WRAPS,
    "power_or_least: total >= limit -> total > limit": _WRAPS,
    "quotient: 1 -> 2": _DIVISOR,
    "quotient: none | minus -> none & minus": "NumPy divides by 0; processors trap, of which the compiled rows tell",
    "shift_left_or_zero: (by >= 0) & (by < m.type_of(x).size * 8) -> (by >= 0) | (by < m.type_of(x).size * 8)": _ARRAYS,
    "shift_left_or_zero: 0 -> 1": _ARRAYS,
    "shift_left_or_zero: 8 -> 9": _ARRAYS,
    "shift_left_or_zero: by < m.type_of(x).size * 8 -> by <= m.type_of(x).size * 8": _ARRAYS,
    "sigmoid: x < 0.0 -> x <= 0.0": "exp(0) is 1",
    "softplus: x > 0.0 -> x >= 0.0": "0 is the other choice",
    "unlike_signs: 0 -> 1": _SIGNS,
    "unlike_signs: remainder < 0 -> remainder <= 0": _SIGNS,
    "unlike_signs: y < 0 -> y <= 0": _SIGNS,
}
"""Mutants that compute the same, and why."""


def test_every_change_of_a_formula_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    survivors, count = [], 0
    for name, function, tree in functions():
        rows = [row for row in FORMULAS if reads(row.formula, function)]
        assert rows or name == "polynomial", f"no row uses {name}"  # that one is of numerics/
        for words, mutant in mutants_of(tree) if rows else ():
            count += 1
            with monkeypatch.context() as patch:
                patch.setattr(function, "__code__", code_of(mutant, inspect.getmodule(function)))
                if not first_difference(rows):
                    survivors.append(f"{name}: {words}")
    assert count > 250
    assert sorted(set(survivors)) == sorted(EQUAL)


def reads(formula: Callable[..., Any], function: Callable[..., Any]) -> bool:
    """Return whether a formula is a function or calls it, at any depth."""
    if formula is function:
        return True
    module = vars(inspect.getmodule(formula))
    called = [module.get(name) for name in formula.__code__.co_names if name != formula.__name__]
    return any(reads(f, function) for f in called if inspect.isfunction(f) and inspect.getmodule(f) is formulas)


@pytest.mark.parametrize("name", ["SELU_SCALE", "SELU_ALPHA", "GELU_CUBIC", "GELU_SLOPE", "CLAMPS"])
def test_every_change_of_a_constant_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value = getattr(formulas, name)
    monkeypatch.setattr(formulas, name, {**value, "RELU6": (0, 7)} if name == "CLAMPS" else value * (1 + 1e-9))
    assert first_difference()


# ---- fixed-point arithmetic ------------------------------------------------------------------------------------------

ROUNDINGS = ("saturated", "wrapped", "high_product", "shifted_right", "rescale", "rescale_halves_up", "rescale_wide")
METHODS = {FixedPoint: ROUNDINGS[:4], FixedPointInt32: (*ROUNDINGS[4:], "floor_log2", "leading_zeros", "inverse_root")}
"""The methods whose mutants are tried: those with results that integers or real numbers say exactly."""


@functools.cache
def fixed_cases(width: int) -> tuple[list[np.ndarray], dict[str, list[int]]]:
    """Return operands a, b > 0 and e, and exact results of the formulas of a width."""
    ends = -(1 << (width - 1)), (1 << (width - 1)) - 1
    e = np.random.default_rng(4).integers(-31, 20, 400, endpoint=True)
    a, b = spread(1, *ends, 400), np.random.default_rng(2).permutation(spread(3, 1, ends[1], 400))
    numbers = [[int(v) for v in values] for values in (a, b, e)]
    return [a, b, e], {n: [f(*xs) for xs in zip(*numbers)] for n, (w, _, f) in EXACT.items() if w == width}


def first_fixed_difference() -> str:
    """Return the first formula of fixed-point arithmetic that is not exact, or not near; empty if there is none."""
    with np.errstate(all="ignore"):
        for width, numbers in ((32, FixedPointInt32(on_arrays)), (16, FixedPoint(on_arrays, 16))):
            arrays, results = fixed_cases(width)
            for name, exact in results.items():
                try:
                    if not np.array_equal(EXACT[name][1](numbers, *arrays), exact):
                        return name
                except (TypeError, ValueError, OverflowError) as error:
                    return f"{name}: {error}"
        b = fixed_cases(32)[0][1]
        root, power = FixedPointInt32(on_arrays).inverse_root(b)
        far = np.abs(np.ldexp(root.astype(float), power - 31) * np.sqrt(b) - 1) >= 2.0**-19
    return "inverse_root" if far.any() else ""


def test_every_change_of_fixed_point_arithmetic_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert first_fixed_difference() == ""
    survivors, count = [], 0
    for tree in ast.parse(inspect.getsource(fixed_point)).body:
        methods = METHODS.get(getattr(fixed_point, tree.name), ()) if isinstance(tree, ast.ClassDef) else ()
        for method in tree.body if methods else ():  # type: ignore[attr-defined]
            if isinstance(method, ast.FunctionDef) and method.name in methods:
                function = getattr(getattr(fixed_point, tree.name), method.name)  # type: ignore[attr-defined]
                for words, mutant in mutants_of(method):
                    count += 1
                    with monkeypatch.context() as patch:
                        patch.setattr(function, "__code__", code_of(mutant, fixed_point))
                        if not first_fixed_difference():
                            survivors.append(f"{method.name}: {words}")
    assert count > 100
    assert sorted(set(survivors)) == sorted(EQUAL_FIXED)


_OF_ONE = "the result for 1 is chosen apart, or near the general one"
_HELD = "numbers are held in twice their width, whose upper bits are all the sign"
EQUAL_FIXED = {
    "inverse_root: 0 -> 1": "full makes arrays of any number of elements",
    "inverse_root: 1 -> 2": _OF_ONE,
    "inverse_root: 1 << 28 -> 1 >> 28": _OF_ONE,
    "inverse_root: 2 -> 3": "two steps bring every int32 below 2^29",
    "inverse_root: 28 -> 29": _OF_ONE,
    "inverse_root: x <= 1 -> x < 1": _OF_ONE,
    "inverse_root: x >= 1 << 29 -> x > 1 << 29": "2^29 is within the range of the steps, too",
    "rescale: left > 0 -> left >= 0": "no shift",
    "rescale_wide: 0 -> 1": "sums of 64 bits are shifted by 1 at least",
    "shifted_right: 1 -> 2": _HELD,
    "shifted_right: 8 * m.type_of(x).size - 1 -> 8 * m.type_of(x).size + 1": _HELD,
    "shifted_right: 8 -> 9": _HELD,
}
"""Mutants that compute the same, and why."""
