"""Every function of one and two numbers, over the whole range of its dtype, in every way of running.

The oracle is a formula in float64 (mpmath for float64 itself); errors are relative, allowed ones stand in the table.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from function_inputs import FLOATS, binary_inputs, finest, unary_inputs
from function_table import BINARY, UNARY, Row
from function_ways import WAYS, NoForm

import opwright as ow
from thorough import THOROUGH

ROWS = (*UNARY, *BINARY)
ALWAYS = ("eager", "traced", "jit")
QUICK = ("jit", "lite_compiled")


def operands(row: Row, dtype: str, count: int) -> tuple[np.ndarray, ...]:
    if row in BINARY:
        return binary_inputs(dtype, count)
    if not row.slow:
        return (unary_inputs(dtype, count),)
    x = unary_inputs(dtype, 30)
    size = np.abs(x.astype(float))
    return (x[~((size > 1e5) | ((size > 0) & (size < float(finest(dtype).tiny))))],)  # denormals halved are rounded


@functools.lru_cache(4)
def case_of(row: Row, dtype: str, count: int) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Return operands of a function and the exact results, which all ways share."""
    arrays = operands(row, dtype, count)
    return arrays, exact_of(row, arrays)


def exact_of(row: Row, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(row.exact(*(a.astype(np.float64) for a in arrays)), np.float64)


def units(exact: np.ndarray, dtype: str) -> np.ndarray:
    """A unit in the last place of each number."""
    info = finest(dtype)
    size = np.maximum(np.abs(np.where(np.isfinite(exact), exact, 1.0)), float(info.tiny))
    return np.exp2(np.floor(np.log2(size))) * float(info.eps)


def allowed(row: Row, way: str, dtype: str, arrays: tuple[np.ndarray, ...], exact: np.ndarray) -> np.ndarray | None:
    """Absolute error allowed at each number; None where the row compares none of this way."""
    within = _by_kind(row, way, dtype, exact)
    if within is None or way not in QUICK or dtype == "float64":
        return within
    x = arrays[0].astype(np.float64)
    return within + row.quick_of_argument * np.abs(np.where(np.isfinite(x), x, 0.0))


def _by_kind(row: Row, way: str, dtype: str, exact: np.ndarray) -> np.ndarray | None:
    """Absolute error allowed by the dtype's column of the table."""
    size = np.abs(np.where(np.isfinite(exact), exact, 0.0))
    if dtype == "float32" and way in (*QUICK, "lite"):
        relative = row.lite if way == "lite" else row.quick
        return None if relative is None else size * relative + (row.least if relative > 1e-7 else 2.0**-149)
    ulps = {"float32": row.ulps, "float64": row.wide}.get(dtype, row.short)
    if ulps is None:
        return None
    inside = dtype != "float64" and (row.least > 2.0**-126 or way in QUICK)  # short floats are float32 inside
    return (ulps + 1e-6) * units(exact, dtype) + (row.least if inside else 0.0)


def faults(result: np.ndarray, exact: np.ndarray, allowance: np.ndarray, row: Row, dtype: str, way: str) -> np.ndarray:
    """Where a result is not the exact one but for its allowance; infinities and NaN must be equal."""
    kind, largest = FLOATS[dtype], float(finest(dtype).max)
    with np.errstate(over="ignore", invalid="ignore"):
        y, rounded = result.astype(np.float64), exact.astype(kind).astype(np.float64)
        bad = ~(np.abs(y - exact) <= allowance)
        same = (y == rounded) | (np.isnan(y) & np.isnan(exact))
        edge = (
            np.isfinite(exact)
            & (np.abs(exact) > largest - 2 * allowance)
            & (np.sign(y) == np.sign(exact))
            & (np.abs(exact) < largest + 2 * allowance)
        )  # rounded to the largest number, or to infinity
        edge &= np.isinf(y) | (np.abs(y) > largest - 4 * allowance)
    bad &= ~same & ~edge
    lite = way.startswith("lite")
    if row.zeros and (row.lite_zeros or not lite):
        bad |= (y == 0) & (exact == 0) & (np.signbit(y) != np.signbit(exact))
    return bad & ~np.isnan(exact) if lite and not row.nans else bad


def check(row: Row, way: str, dtype: str, count: int) -> bool:
    """Whether the function has a form in this way; fails where that is further off than the table allows."""
    if way in row.without:
        return False
    arrays, exact = case_of(row, dtype, count)
    allowance = allowed(row, way, dtype, arrays, exact)
    if allowance is None:
        return False
    try:
        result = WAYS[way](row.function, *arrays)
    except NoForm:
        return False
    assert result.dtype == FLOATS[dtype]
    bad = faults(result, exact, allowance, row, dtype, way)
    if way.startswith("lite"):
        bad &= ~(np.abs(arrays[0]) >= row.lite_size)
    if bad.any():
        lines = [
            f"{row.name}({', '.join(repr(float(a[i])) for a in arrays)}) = {result[i]!r}, exact {exact[i]!r}, "
            f"off by {abs(float(result[i]) - exact[i]) / units(exact, dtype)[i]:.3g} units"
            for i in np.flatnonzero(bad)[:8]
        ]
        pytest.fail(f"{way}, {dtype}: {bad.sum()} of {bad.size} numbers\n" + "\n".join(lines))
    return True


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_function(row: Row) -> None:
    """float32 at few numbers: the ends, the points, some of each magnitude; in every way if thorough, otherwise in one
    of the ways of kernels and models, which differs from row to row."""
    others = [way for way in WAYS if way not in ALWAYS]
    for way in WAYS if THOROUGH else (*ALWAYS, others[ROWS.index(row) % len(others)]):
        served = check(row, way, "float32", 60)
        assert served or way not in ALWAYS or row.ulps is None


@pytest.mark.slow
@pytest.mark.parametrize("target", ["host", "x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_function_over_all_of_its_range(row: Row, target: str) -> None:
    with ow.flags(target=target):
        for way in WAYS if target == "host" else (*QUICK, "kernel", "kernel_on_arrays"):
            check(row, way, "float32", 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_function_of_short_floats(row: Row, dtype: str) -> None:
    for way in ("eager", "traced", "jit"):
        check(row, way, dtype, 2000)


@pytest.mark.slow
@pytest.mark.parametrize("row", [r for r in ROWS if r.digits is not None], ids=str)
def test_function_of_float64(row: Row) -> None:
    """Against mpmath. Numbers stay below 1e15, where its sines take no time."""
    arrays = operands(row, "float64", 60)
    usual = np.logical_and.reduce([np.abs(a) < 1e15 for a in arrays]) & np.logical_and.reduce([a != 0 for a in arrays])
    arrays = tuple(a[usual][:200] for a in arrays)
    with mp.workdps(60):
        exact = [_digits(row, *map(float, xs)) for xs in zip(*arrays)]
        for way in ("eager", "traced", "jit", "kernel"):
            try:
                result = WAYS[way](row.function, *arrays)
            except NoForm:
                continue
            for i, (y, z) in enumerate(zip(result, exact)):
                if z is None:
                    assert math.isnan(y), (way, [a[i] for a in arrays], y)
                elif math.isinf(y) or abs(z) > np.finfo(float).max:
                    assert math.isinf(y), (way, [a[i] for a in arrays], y, z)
                    assert abs(z) > np.finfo(float).max * 0.999, (way, [a[i] for a in arrays], y, z)
                else:
                    unit = math.ulp(max(abs(float(z)), 2.0**-1022))
                    gap = float(abs(mp.mpf(float(y)) - z) / unit)
                    assert gap <= row.wide + 1e-6, (way, [float(a[i]) for a in arrays], float(y), mp.nstr(z, 20), gap)


def _digits(row: Row, *xs: float) -> Any:
    assert row.digits is not None
    try:
        result = row.digits(*map(mp.mpf, xs))
    except (ValueError, ZeroDivisionError):
        return None
    return None if getattr(result, "imag", 0) != 0 or mp.isnan(result) else mp.mpf(getattr(result, "real", result))
