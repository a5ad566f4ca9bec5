"""Batch and layer normalisation of short floats with float32 statistics and parameters: rounded at the end alone."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import opwright as ow

RNG = np.random.default_rng(0)
X = RNG.standard_normal((64, 8)) * 3
MEAN, OFFSET, SCALE = (RNG.standard_normal(8).astype(np.float32) for _ in range(3))
VARIANCE = np.exp(RNG.standard_normal(8)).astype(np.float32)
SHORT = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def unit(y: np.ndarray, dtype: type) -> np.ndarray:
    info = ml_dtypes.finfo(dtype)
    return np.exp2(np.floor(np.log2(np.maximum(np.abs(y), float(info.tiny))))) * float(info.eps)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("with_scale", [False, True])
@pytest.mark.parametrize("dtype", SHORT)
def test_batch_normalization_of_short_floats_next_to_float32(dtype: str, with_scale: bool, traced: bool) -> None:
    """As TensorFlow 2.21: x inv + base, the two factors combined in float32 and rounded to x's dtype."""
    kind = SHORT[dtype]
    x = X.astype(kind)
    offset, scale = (OFFSET, SCALE) if with_scale else (None, None)

    def normalized(x):
        return ow.nn.batch_normalization(x, MEAN, VARIANCE, offset, scale, 1e-3)

    y = (ow.function(normalized) if traced else normalized)(ow.constant(x)).numpy()
    assert y.dtype == kind
    inverse = 1 / np.sqrt(VARIANCE.astype(float) + 1e-3) * (SCALE if with_scale else 1.0)
    base = (OFFSET if with_scale else 0.0) - MEAN * inverse
    factor, base = inverse.astype(kind).astype(float), base.astype(kind).astype(float)
    product = x.astype(float) * factor
    # one unit for each rounding: of the factor and the base, of the product, of the sum
    allowed = 0.5 * unit(product, kind) + unit(product + base, kind) + 0.01 * unit(base, kind)
    assert (np.abs(y.astype(float) - (product + base)) <= allowed).all()


def test_statistics_of_x_s_own_dtype_stay_in_it() -> None:
    x = ow.constant(X.astype(np.float16))
    mean, variance = (ow.constant(v.astype(np.float16)) for v in (MEAN, VARIANCE))
    graph = (
        ow.function(lambda x, m, v: ow.nn.batch_normalization(x, m, v, None, None, 1e-3))
        .get_concrete_function(x, mean, variance)
        .graph
    )
    assert "Cast" not in {op.type for op in graph.get_operations()}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_wider_x_takes_narrower_statistics(dtype: str) -> None:
    y = ow.nn.batch_normalization(X.astype(dtype), MEAN, VARIANCE, OFFSET, SCALE, 1e-3).numpy()
    assert y.dtype == dtype
    expected = (X - MEAN) / np.sqrt(VARIANCE + 1e-3) * SCALE + OFFSET
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_gradients_reach_float32_parameters_of_short_x() -> None:
    x, scale = ow.constant(X.astype(np.float16)), ow.constant(SCALE)
    with ow.GradientTape() as tape:
        tape.watch([x, scale])
        y = ow.reduce_sum(ow.cast(ow.nn.batch_normalization(x, MEAN, VARIANCE, OFFSET, scale, 1e-3), "float32"))
    dx, dscale = tape.gradient(y, [x, scale])
    inverse = 1 / np.sqrt(VARIANCE + 1e-3)
    assert (dx.dtype.name, dscale.dtype.name) == ("float16", "float32")
    np.testing.assert_allclose(dx.numpy()[0], (SCALE * inverse).astype(np.float16), rtol=2e-3)
    np.testing.assert_allclose(dscale.numpy(), ((X - MEAN) * inverse).sum(0), rtol=2e-2, atol=0.5)


# ---- selections of eigenvalues, ranks (TensorFlow 2.21's results) ----------------------------------------------------


def test_eigenvalues_are_selected_with_both_ends() -> None:
    a, b = ow.constant([1.0, 2.0, 3.0, 4.0]), ow.constant([0.5, 0.1, 0.2])
    e = ow.linalg.eigh_tridiagonal(a, b)
    for i in range(4):
        for j in range(i + 1, 4):
            result = ow.linalg.eigh_tridiagonal(a, b, select="v", select_range=(e[i], e[j]))
            np.testing.assert_array_equal(result.numpy(), e.numpy()[i : j + 1])
    values, vectors = ow.linalg.eigh_tridiagonal(a, b, eigvals_only=False, select="v", select_range=(e[1], e[2]))
    assert values.shape == (2,)
    assert vectors.shape == (4, 2)


@pytest.mark.parametrize("tol", [None, 0.1, [[0.1], [0.2]], [[0.1, 0.1, 0.1]]])
def test_the_rank_s_tolerance_broadcasts_with_the_singular_values(tol: object) -> None:
    matrices = np.stack([np.diag([1.0, 0.15, 0.01]), np.diag([1.0, 0.15, 0.01])])
    result = ow.linalg.matrix_rank(matrices, tol=tol).numpy()
    assert result.shape == (2,)
    if tol is not None:
        np.testing.assert_array_equal(result, [2, 1 if np.ndim(tol) == 2 and len(tol) == 2 else 2])
