"""Factors of matrices and solutions of systems as machine code: against float64, in every split, and the operators' own
errors."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run_in_used_memory, split, targets

import opwright as ow
from opwright.compiler.kernels.lu import lu, lu_solve
from opwright.compiler.kernels.substitution import cholesky, triangular_solve
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.matrix_ops import CholeskyFactor, TriangularSystem
from opwright.core import dtypes

SIZES = (1, 3, 8, 17, 24, 33, 50, 97)
MOST = 32.0
"""Errors in units of the last place of the largest element, of well-conditioned matrices; one more for each row."""

FLOATS = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def twice(function):
    """Compile a function of the double of its first argument: a node alone would remain as it is."""

    @ow.function(jit_compile=True)
    def compiled(x, *others):
        return function(x + x, *others)

    return compiled


def matrices(size, dtype, seed=0, batch=(2, 2)):
    """Return well-conditioned matrices in float64 that `dtype` represents, and their halves as tensors."""
    x = np.random.default_rng(seed + size).standard_normal((*batch, size, size)) / max(4, 2 * size) + np.eye(size)
    halves = (x / 2).astype(dtype)
    return 2 * halves.astype(np.float64), ow.constant(halves)


def assert_close(actual, expected, dtype, bound=2 * MOST):
    assert actual.dtype == dtype
    assert np.abs(actual - expected).max() <= bound * np.finfo(dtype).eps * max(1.0, np.abs(expected).max())


COMPILED = {
    "cholesky": twice(ow.linalg.cholesky),
    "inverse": twice(ow.linalg.inv),
    "inverse of the transpose": twice(lambda x: ow.linalg.inv(x, adjoint=True)),
    "determinant": twice(ow.linalg.det),
    "logarithm": twice(lambda x: ow.linalg.slogdet(x)[1]),
    "sign": twice(lambda x: ow.linalg.slogdet(x)[0]),
}
EXPECTED = {
    "cholesky": np.linalg.cholesky,
    "inverse": np.linalg.inv,
    "inverse of the transpose": lambda x: np.linalg.inv(x.swapaxes(-1, -2)),
    "determinant": np.linalg.det,
    "logarithm": lambda x: np.linalg.slogdet(x)[1],
    "sign": lambda x: np.linalg.slogdet(x)[0],
}


@FLOATS
@pytest.mark.parametrize("name", COMPILED)
def test_values(name, dtype):
    for size in SIZES:
        x, half = matrices(size, dtype)
        if name == "cholesky":
            x = x + x.swapaxes(-1, -2)
            half = ow.constant((x / 2).astype(dtype))
        elif name != "inverse":  # rows that have to be exchanged
            x, half = x[..., ::-1, :], half[..., ::-1, :]
        assert_close(COMPILED[name](half).numpy(), EXPECTED[name](x), dtype, MOST + size)
        assert ", 0 as they are" in COMPILED[name].experimental_get_compiler_ir(half)()


def test_cholesky_reads_the_lower_triangle_alone():
    x, _ = matrices(19, np.float64)
    x = x + x.swapaxes(-1, -2)
    lower = np.where(np.tri(19, dtype=bool), x, np.nan)
    factor = COMPILED["cholesky"](ow.constant(lower / 2)).numpy()
    assert_close(factor, np.linalg.cholesky(x), np.float64)
    assert not np.triu(factor, 1).any()


@FLOATS
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_triangular_systems(lower, adjoint, dtype):
    compiled = twice(lambda x, b: ow.linalg.triangular_solve(x, b, lower=lower, adjoint=adjoint))
    for size, columns in zip(SIZES, (1, 9, 33, 2, 24, 1, 70, 8)):
        x, half = matrices(size, dtype)
        triangle = np.tril(x) if lower else np.triu(x)
        other = ow.constant(np.where(triangle == 0.0, np.nan, half).astype(dtype))  # which is not read
        b = np.random.default_rng(size).standard_normal((2, 2, size, columns)).astype(dtype)
        expected = np.linalg.solve(triangle.swapaxes(-1, -2) if adjoint else triangle, b.astype(np.float64))
        assert_close(compiled(other, b).numpy(), expected, dtype)


@FLOATS
@pytest.mark.parametrize(("batch", "others"), [((), (3,)), ((3, 1), (2,)), ((2, 3), ())])
def test_batches_broadcast(batch, others, dtype):
    x, half = matrices(6, dtype, batch=batch)
    b = np.random.default_rng(1).standard_normal((*others, 6, 5)).astype(dtype)
    actual = twice(ow.linalg.triangular_solve)(half, b).numpy()
    lead = np.broadcast_shapes(batch, others)
    expected = np.linalg.solve(*(np.broadcast_to(a, (*lead, *a.shape[-2:])) for a in (np.tril(x), b.astype(float))))
    assert_close(actual, expected, dtype)


@FLOATS
@pytest.mark.parametrize("adjoint", [False, True])
def test_systems(adjoint, dtype):
    compiled = twice(lambda x, b: ow.linalg.solve(x, b, adjoint=adjoint))
    for size, columns in zip(SIZES, (1, 9, 33, 2, 24, 1, 70, 8)):
        x, half = matrices(size, dtype)
        x, half = x[..., ::-1, :], half[..., ::-1, :]
        b = np.random.default_rng(size).standard_normal((2, 2, size, columns)).astype(dtype)
        expected = np.linalg.solve(x.swapaxes(-1, -2) if adjoint else x, b.astype(np.float64))
        assert_close(compiled(half, b).numpy(), expected, dtype)


@FLOATS
def test_factors_have_the_operators_rows(dtype):
    compiled = twice(lambda x: ow.linalg.lu(x, output_idx_type=ow.int64))
    for size in SIZES:
        x = np.random.default_rng(size).standard_normal((3, size, size)).astype(dtype)
        factors, rows = (v.numpy() for v in compiled(ow.constant(x / 2)))
        np.testing.assert_array_equal(rows, ow.linalg.lu(ow.constant(x)).p.numpy())
        wide = factors.astype(np.float64)
        product = (np.tril(wide, -1) + np.eye(size)) @ np.triu(wide)
        assert_close(product.astype(dtype), np.take_along_axis(x.astype(np.float64), rows[..., None], -2), dtype, 64.0)
        assert np.abs(np.tril(wide, -1)).max() <= 1.0


def test_determinants_of_singular_matrices_and_of_numbers_that_overflow():
    singular = np.stack([np.zeros((3, 3)), np.ones((3, 3)), [[1, np.nan, 2], [0, 1, 0], [0, 0, 0]]])
    far = np.stack([np.diag([1e200, 1e-200, 1e200, 1e-200]), np.diag([1e200, -1e200, 1e-200, 1e-200])])
    for x in (singular, far):
        for name in ("determinant", "logarithm", "sign"):
            expected = {"determinant": ow.linalg.det, "logarithm": lambda x: ow.linalg.slogdet(x)[1]}.get(
                name, lambda x: ow.linalg.slogdet(x)[0]
            )(ow.constant(x))
            np.testing.assert_allclose(COMPILED[name](ow.constant(x / 2)), expected, rtol=1e-12)


SINGULAR = {
    "cholesky": (COMPILED["cholesky"], ow.linalg.cholesky, -np.eye(5)),
    "inverse": (COMPILED["inverse"], ow.linalg.inv, np.ones((5, 5))),
    "lu": (twice(ow.linalg.lu), ow.linalg.lu, np.zeros((5, 5))),
    "triangle": (
        twice(lambda x: ow.linalg.triangular_solve(x, ow.ones((5, 2)))),
        lambda x: ow.linalg.triangular_solve(x, ow.ones((5, 2))),
        np.diag([1.0, 2.0, 0.0, 1.0, 1.0]),
    ),
    "system": (
        twice(lambda x: ow.linalg.solve(x, ow.ones((5, 2)))),
        lambda x: ow.linalg.solve(x, ow.ones((5, 2))),
        np.ones((5, 5)),
    ),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_errors_are_the_operators(name):
    compiled, eager, x = SINGULAR[name]
    x = ow.constant(np.stack([np.eye(5), x]).astype(np.float32)) if name not in ("triangle", "system") else x
    x = ow.constant(np.asarray(x, np.float32))
    with pytest.raises(ow.errors.InvalidArgumentError) as of_operator:
        eager(x)
    with pytest.raises(ow.errors.InvalidArgumentError) as of_kernel:
        compiled(x / 2)
    assert str(of_operator.value).split(": ", 1)[1].splitlines()[0] in str(of_kernel.value)


def test_natural_gradients_and_their_derivatives_are_one_native_call():
    def step(jacobian, gradient):
        with ow.GradientTape() as tape:
            tape.watch(jacobian)
            fisher = ow.matmul(jacobian, jacobian, transpose_a=True) / 40.0 + 0.1 * ow.eye(12, dtype=jacobian.dtype)
            factor = ow.linalg.cholesky(fisher)
            direction = ow.linalg.cholesky_solve(factor, gradient)
            loss = ow.reduce_sum(direction**2) + ow.linalg.logdet(fisher)
        return direction, tape.gradient(loss, jacobian)

    rng = np.random.default_rng(3)
    arrays = rng.standard_normal((40, 12)), rng.standard_normal((12, 1))
    compiled = ow.function(step, jit_compile=True)
    single = [ow.constant(a.astype(np.float32)) for a in arrays]
    assert "1 native calls, 0 as they are" in compiled.experimental_get_compiler_ir(*single)()
    for actual, expected in zip(compiled(*single), step(*(ow.constant(a) for a in arrays))):
        np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-5)


@FLOATS
def test_every_split_and_used_memory(dtype):
    x, _ = matrices(29, dtype, batch=(5,))
    x = (x + x.swapaxes(-1, -2)).astype(dtype)
    b = np.random.default_rng(2).standard_normal((5, 29, 61)).astype(dtype)
    source, rhs = buffer(x), buffer(b, "b")
    for form, inputs in (
        (CholeskyFactor(Buffer("y", source.dtype, source.shape), source), {source: x}),
        (TriangularSystem(Buffer("y", rhs.dtype, rhs.shape), source, rhs, True, True), {source: x, rhs: b}),
    ):
        whole = run_in_used_memory(form, inputs)
        for parts in (2, 3, 7):
            np.testing.assert_array_equal(split(form, inputs, parts), whole)


@targets(
    (triangular_solve, {"source": dtypes.float32, "vectors": 3}),
    (cholesky, {"source": dtypes.float64, "vectors": 1}),
    (lu, {"source": dtypes.float32, "vectors": 2, "transposed": True, "singular": False}),
    (lu_solve, {"source": dtypes.float64, "vectors": 3, "identity": True}),
)
def test_compiles_for(family, constants, names):
    compiles_for(names, family, **constants)
