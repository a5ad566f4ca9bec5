"""Every row of jax_rows.py, imported: values as JAX computes them, and gradients as `jax.grad`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow

jax = pytest.importorskip("jax")
jax_rows = pytest.importorskip("jax_rows")

TOLERANCES = {2: 0.02, 4: 2e-4, 8: 1e-6}
"""By the bytes of a float: what JAX's float32 functions of one element differ by from others."""


@pytest.fixture(autouse=True)
def wide():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def check_equal(actual: Any, expected: Any, tolerance: float | None) -> None:
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    if expected.dtype.kind in "iub" or tolerance == 0:
        np.testing.assert_array_equal(actual, expected)
        return
    tolerance = tolerance or TOLERANCES[expected.real.dtype.itemsize]
    if expected.dtype.kind not in "fc":  # bfloat16
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def gradients(function: Any, row: Any, arguments: Any) -> None:
    places = tuple(i for i, a in enumerate(arguments) if np.asarray(a).dtype.kind == "f")

    def loss(*values: Any) -> Any:
        results = jax.tree_util.tree_leaves(row.function(*values))
        return sum(jax.numpy.sin(r).sum() for r in results if r.dtype.kind == "f")

    expected = jax.grad(loss, argnums=places)(*arguments)
    values = [ow.constant(np.asarray(a)) for a in arguments]
    with ow.GradientTape() as tape:
        for i in places:
            tape.watch(values[i])
        results = [r for r in ow.nest.flatten(function(*values)) if r.dtype.is_floating]
        total = ow.math.add_n([ow.cast(ow.reduce_sum(ow.sin(r)), ow.float64) for r in results])
    actual = tape.gradient(total, [values[i] for i in places], unconnected_gradients="zero")
    for a, b in zip(actual, expected):
        check_equal(ow.convert_to_tensor(a).numpy(), b, 2e-3)


def check(row: Any) -> None:
    arguments = row.operands()
    expected = jax.tree_util.tree_leaves(row.function(*arguments))
    function = ow.from_jax(row.function, *arguments)
    actual = ow.nest.flatten(function(*arguments))
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected):
        check_equal(a.numpy(), b, row.tolerance)
    if row.gradient:
        gradients(function, row, arguments)


@pytest.mark.parametrize("primitive", sorted({r.primitive for r in jax_rows.ROWS}))
def test_values_and_gradients_equal_jax(primitive):
    failures = []
    for row in (r for r in jax_rows.ROWS if r.primitive == primitive):
        try:
            check(row)
        except Exception as error:
            dtypes = ", ".join(str(np.asarray(a).dtype) for a in row.arguments)
            failures.append(f"{row.label} ({dtypes}): {str(error).strip()[:500]}")
    assert not failures, "\n".join(failures)


# ---- properties ------------------------------------------------------------------------------------------------------


def test_every_rule_of_a_primitive_of_arithmetic_has_a_row():
    from opwright.frontends.jax.execution import load_rules

    without = {
        "add_any",
        "call",
        "checkpoint",
        "closed_call",
        "composite",
        "copy_p",
        "core_call",
        "core_closed_call",
        "custom_lin",
        "custom_vmap_call",
        "device_put",
        "dim_as_value",
        "empty",
        "empty2",
        "from_edtype",
        "iota_2x32_shape",
        "layout_constraint",
        "linear_call",
        "lu_pivots_to_permutation",
        "mulhi",
        "name",
        "pjit",
        "pvary",
        "random_clone",
        "random_unwrap",
        "random_wrap",
        "reduced_vary_cast_p",
        "remat",
        "shape_assertion",
        "sharding_constraint",
        "stack",
        "to_edtype",
        "unstack",
    }
    assert set(load_rules().names()) - {r.primitive for r in jax_rows.ROWS} <= without
