"""Linear operators: products, systems, determinants and hints against NumPy's of the dense matrix, built by hand."""

import numpy as np
import pytest

import opwright as ow

RNG = np.random.default_rng(3)
L = ow.linalg
A, B, COMPLEX = RNG.standard_normal((3, 4, 4)) + 4 * np.eye(4)[None] * np.array([1, 1, 1])[:, None, None]
COMPLEX = COMPLEX + 1j * RNG.standard_normal((4, 4))
D, U, V = RNG.standard_normal((2, 4)) + 3, RNG.standard_normal((4, 2)), RNG.standard_normal((4, 2))
POSITIVE = A @ A.T
BANDS = RNG.standard_normal((3, 4)) + np.array([[0], [5], [0]])
SPECTRUM = np.fft.fft(RNG.standard_normal(4) + np.array([4, 0, 0, 0]))
AXIS = RNG.standard_normal((2, 4))
KERNEL = np.fft.ifft(SPECTRUM).real
IMAGE = np.fft.fft2(np.array([[4.0, 1.0], [0.5, -1.0]]))


def matrix(x):
    return L.LinearOperatorFullMatrix(x)


def circular(kernel):
    """Return the matrix of circular convolutions with an array, by its definition."""
    places = list(np.ndindex(kernel.shape))
    return np.array([[kernel[tuple(np.subtract(i, j) % kernel.shape)] for j in places] for i in places])


OPERATORS = {
    "full": (lambda: matrix(A), A),
    "batch": (lambda: matrix(np.stack([A, B])), np.stack([A, B])),
    "complex": (lambda: matrix(COMPLEX), COMPLEX),
    "positive": (
        lambda: L.LinearOperatorFullMatrix(POSITIVE, is_self_adjoint=True, is_positive_definite=True),
        POSITIVE,
    ),
    "diag": (lambda: L.LinearOperatorDiag(D), np.stack([np.diag(d) for d in D])),
    "complex diag": (lambda: L.LinearOperatorDiag(D[0] + 1j * D[1]), np.diag(D[0] + 1j * D[1])),
    "triangular": (lambda: L.LinearOperatorLowerTriangular(A), np.tril(A)),
    "identity": (lambda: L.LinearOperatorIdentity(4, [2], ow.float64), np.stack([np.eye(4)] * 2)),
    "scaled": (lambda: L.LinearOperatorScaledIdentity(4, D[:, 0]), D[:, 0, None, None] * np.eye(4)),
    "composition": (lambda: L.LinearOperatorComposition([matrix(A), L.LinearOperatorDiag(D)]), A * D[:, None]),
    "adjoint": (lambda: matrix(COMPLEX).H, COMPLEX.conj().T),
    "inversion": (lambda: matrix(A).inverse(), np.linalg.inv(A)),
    "blocks": (
        lambda: L.LinearOperatorBlockDiag([matrix(A[:3, :3]), L.LinearOperatorDiag(D[:, :1])]),
        np.stack([np.block([[A[:3, :3], np.zeros((3, 1))], [np.zeros((1, 3)), d[:1, None]]]) for d in D]),
    ),
    "lower blocks": (
        lambda: L.LinearOperatorBlockLowerTriangular([[matrix(A[:2, :2])], [matrix(A[2:, :2]), matrix(A[2:, 2:])]]),
        np.block([[A[:2, :2], np.zeros((2, 2))], [A[2:, :2], A[2:, 2:]]]),
    ),
    "kronecker": (
        lambda: L.LinearOperatorKronecker([matrix(A[:2, :2]), matrix(B[:2, :2])]),
        np.kron(A[:2, :2], B[:2, :2]),
    ),
    "low rank": (lambda: L.LinearOperatorLowRankUpdate(matrix(A), U, D[0, :2], V), A + U @ np.diag(D[0, :2]) @ V.T),
    "reflection": (
        lambda: L.LinearOperatorHouseholder(AXIS),
        np.stack([np.eye(4) - 2 * np.outer(v, v) / (v @ v) for v in AXIS]),
    ),
    "permutation": (lambda: L.LinearOperatorPermutation([2, 0, 3, 1], dtype=ow.float64), np.eye(4)[[2, 0, 3, 1]]),
    "toeplitz": (
        lambda: L.LinearOperatorToeplitz(BANDS[1], np.r_[BANDS[1, :1], BANDS[0, 1:]]),
        np.array([[BANDS[1, i - j] if i >= j else BANDS[0, j - i] for j in range(4)] for i in range(4)]),
    ),
    **{
        form: (
            lambda form=form: L.LinearOperatorTridiag(
                {"compact": BANDS, "sequence": list(BANDS), "matrix": np.triu(np.tril(A, 1), -1)}[form], form
            ),
            np.triu(np.tril(A, 1), -1)
            if form == "matrix"
            else np.diag(BANDS[0, :3], 1) + np.diag(BANDS[1]) + np.diag(BANDS[2, 1:], -1),
        )
        for form in ("compact", "sequence", "matrix")
    },
    "circulant": (lambda: L.LinearOperatorCirculant(SPECTRUM, input_output_dtype=ow.float64), circular(KERNEL)),
    "circulant 2d": (
        lambda: L.LinearOperatorCirculant2D(IMAGE, input_output_dtype=ow.float64),
        circular(np.fft.ifft2(IMAGE).real),
    ),
    "circulant 3d": (
        lambda: L.LinearOperatorCirculant3D(IMAGE[..., None], input_output_dtype=ow.complex128),
        circular(np.fft.ifft2(IMAGE).real[..., None]).astype(complex),
    ),
}


def turned(x):
    return np.swapaxes(x, -1, -2).conj()


@pytest.mark.parametrize("name", OPERATORS)
def test_linear_operator(name):
    make, dense = OPERATORS[name]
    operator, x = make(), RNG.standard_normal((4, 2)).astype(dense.dtype)
    system = np.linalg.solve
    expected = {
        "to_dense": (operator.to_dense(), dense),
        "matmul": (operator.matmul(x), dense @ x),
        "matmul of the adjoint": (operator.matmul(x, adjoint=True), turned(dense) @ x),
        "matmul with the adjoint": (operator.matmul(turned(x), adjoint_arg=True), dense @ x),
        "matvec": (operator.matvec(x[:, 0]), dense @ x[:, 0]),
        "solve": (operator.solve(x), system(dense, np.broadcast_to(x, (*dense.shape[:-2], 4, 2)))),
        "solve of the adjoint": (operator.solve(x, adjoint=True), np.linalg.inv(turned(dense)) @ x),
        "solve with the adjoint": (operator.solve(turned(x), adjoint_arg=True), np.linalg.inv(dense) @ x),
        "solvevec": (operator.solvevec(x[:, 0]), np.linalg.inv(dense) @ x[:, 0]),
        "determinant": (operator.determinant(), np.linalg.det(dense)),
        "logarithm": (operator.log_abs_determinant(), np.linalg.slogdet(dense)[1]),
        "diag_part": (operator.diag_part(), np.diagonal(dense, axis1=-2, axis2=-1)),
        "trace": (operator.trace(), np.trace(dense, axis1=-2, axis2=-1)),
        "add_to_tensor": (operator.add_to_tensor(np.eye(4)), dense + np.eye(4)),
        "adjoint": (operator.H.to_dense(), turned(dense)),
        "inverse": (operator.inverse().to_dense(), np.linalg.inv(dense)),
        "product of operators": ((operator @ operator).to_dense(), dense @ dense),
        "cond": (operator.cond(), np.linalg.cond(dense)),
        "eigenvalues": (np.sort_complex(operator.eigvals()), np.sort_complex(np.linalg.eigvals(dense))),
    }
    for what, (ours, theirs) in expected.items():
        np.testing.assert_allclose(ours, theirs, 1e-6, 1e-6, err_msg=what)
    assert operator.shape.as_list() == operator.shape_tensor().numpy().tolist() == list(dense.shape)
    assert operator.tensor_rank == dense.ndim
    assert (operator.domain_dimension, operator.range_dimension) == (4, 4)
    assert operator.dtype.as_numpy_dtype == dense.dtype
    assert operator.is_square


def test_hints():
    positive = OPERATORS["positive"][0]()
    assert positive.is_non_singular
    assert positive.H is positive
    np.testing.assert_allclose(positive.cholesky().to_dense(), np.linalg.cholesky(POSITIVE), 1e-9, 1e-9)
    positive.assert_non_singular(), positive.assert_positive_definite(), positive.assert_self_adjoint()
    with pytest.raises(ValueError, match="is_self_adjoint=True"):
        matrix(A).cholesky()
    with pytest.raises(ow.errors.InvalidArgumentError, match="singular"):
        matrix(np.ones((2, 2))).assert_non_singular()
    named = L.LinearOperatorFullMatrix(POSITIVE, True, True, None, None, "covariance")  # TensorFlow's order
    assert (named.name, named.is_non_singular, named.is_self_adjoint) == ("covariance", True, True)
    assert (named.is_positive_definite, named.is_square, named.H is named) == (None, True, True)
    with pytest.raises(ValueError, match="is_square=False was passed, but a LinearOperatorDiag has is_square=True"):
        L.LinearOperatorDiag(D, is_square=False)
    with pytest.raises(ValueError, match="positive definite"):
        L.LinearOperatorFullMatrix(A, is_non_singular=False, is_positive_definite=True)
    assert L.LinearOperatorBlockDiag([matrix(U), matrix(A)]).is_square is False
    assert L.LinearOperatorBlockDiag([named, named]).is_non_singular
    wide = L.LinearOperatorZeros(2, 3, is_square=False)
    assert (wide.is_self_adjoint, wide.shape.as_list()) == (False, [2, 3])
    zeros = L.LinearOperatorZeros(4)
    assert zeros.is_non_singular is False
    np.testing.assert_array_equal(zeros.matmul(np.ones((4, 2), np.float32)), np.zeros((4, 2)))
    with pytest.raises(NotImplementedError, match="is_non_singular"):
        zeros.solve(np.ones((4, 2), np.float32))
    with pytest.raises(ValueError, match="singular"):
        zeros.inverse()


def test_operators_in_functions_of_classes_of_users_and_of_blocks():
    class Doubling(L.LinearOperator):
        def _shape(self):
            return ow.TensorShape([3, 3])

        def _matmul(self, x, adjoint=False, adjoint_arg=False):
            return 2.0 * (L.adjoint(x) if adjoint_arg else x)

    np.testing.assert_array_equal(Doubling(ow.float32).to_dense(), 2 * np.eye(3))
    np.testing.assert_allclose(Doubling(ow.float32).solvevec(np.ones(3, np.float32)), np.full(3, 0.5))

    @ow.function(input_signature=[ow.TensorSpec([None], ow.float64)])
    def slope(d):
        with ow.GradientTape() as tape:
            tape.watch(d)
            loss = L.LinearOperatorLowRankUpdate(L.LinearOperatorDiag(d), U).log_abs_determinant()
        return tape.gradient(loss, d)

    derivative = np.diag(np.linalg.inv(np.diag(D[0]) + U @ U.T))  # of log det M with respect to its diagonal
    np.testing.assert_allclose(slope(D[0]), derivative, 1e-9)
    parts = L.LinearOperatorBlockDiag([matrix(A), L.LinearOperatorDiag(D[0])]).matmul([U, V])
    np.testing.assert_allclose(parts[0], A @ U, 1e-9)
    np.testing.assert_allclose(parts[1], D[0][:, None] * V, 1e-9)
