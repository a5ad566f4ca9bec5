"""LinearOperator: a matrix, or a batch of them, known by what it does to vectors.

Lives here: the base class, products of operators, their adjoints and inverses.
Not here: hints (operator_hints.py); operators of a certain structure (diagonal_operators.py, band_operators.py,
block_operators.py, orthogonal_operators.py, low_rank_update.py, circulant_operators.py).
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from ...core.shapes import TensorShape
from .. import array, debugging, dispatch, math
from ..tensor import Tensor
from .diagonals import band_part, diag_part
from .einsum import adjoint
from .factorization import cholesky, eigvalsh, svd
from .matmul import product
from .matrix_functions import cholesky_solve
from .operator_hints import HINTS, HintedOperator, Hints, all_hold, hints_of, or_else
from .solvers import det, inv, slogdet, solve, triangular_solve
from .spectral import eigvals

__all__ = [
    "LinearOperator",
    "LinearOperatorAdjoint",
    "LinearOperatorComposition",
    "LinearOperatorFullMatrix",
    "LinearOperatorInversion",
    "LinearOperatorLowerTriangular",
]


def with_batch_of(matrix: Any, x: Any) -> tuple[Tensor, Tensor]:
    """Return two matrices with the same batch dimensions."""
    batch = array.broadcast_dynamic_shape(array.shape(matrix)[:-2], array.shape(x)[:-2])
    return tuple(  # type: ignore[return-value]
        each
        if each.shape.rank == 2 and each is matrix and x.shape.rank == 2
        else array.broadcast_to(each, array.concat([batch, array.shape(each)[-2:]], 0))
        for each in (matrix, x)
    )


def adjoint_if(x: Any, condition: bool) -> Any:
    """Return the conjugate transpose of a matrix, or the matrix."""
    return adjoint(x) if condition else x


class LinearOperator(HintedOperator):
    """A matrix [..., m, n] that may have a structure of its own: `matmul`, `solve`, `determinant` and more.

    A derived class implements `_shape()` and `_matmul(x, adjoint=False, adjoint_arg=False)` or `_to_dense()`, and what
    else its structure makes quicker, with the constructor's arguments of `HintedOperator`.
    """

    # Methods of derived classes

    def _shape(self) -> Any:
        return self._to_dense().shape

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return product(self._to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _to_dense(self) -> Any:
        return self._matmul(array.eye(self.domain_dimension_tensor(), dtype=self.dtype))

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        matrix, rhs = with_batch_of(self._to_dense(), adjoint_if(rhs, adjoint_arg))
        if self.is_positive_definite and self.is_self_adjoint:
            return cholesky_solve(cholesky(matrix), rhs)
        return solve(matrix, rhs, adjoint=adjoint)

    def _determinant(self) -> Any:
        return det(self._to_dense())

    def _log_abs_determinant(self) -> Any:
        return slogdet(self._to_dense())[1]

    def _diag_part(self) -> Any:
        return diag_part(self._to_dense())

    def _trace(self) -> Any:
        return math.reduce_sum(self.diag_part(), -1)

    # Properties

    @property
    def shape(self) -> TensorShape:
        """Return the shape [..., m, n]."""
        return TensorShape(self._shape())

    @property
    def batch_shape(self) -> TensorShape:
        """Return the shape without the last two dimensions."""
        return self.shape[:-2]

    @property
    def tensor_rank(self) -> int | None:
        """Return the number of dimensions, those of the batch included."""
        return self.shape.rank

    @property
    def domain_dimension(self) -> Any:
        """Return n, the number of elements of vectors that it is applied to."""
        return self.shape[-1]

    @property
    def range_dimension(self) -> Any:
        """Return m, the number of elements of results."""
        return self.shape[-2]

    @property
    def is_square(self) -> bool | None:
        """Return whether m equals n, None if that is not known."""
        hint = self._hints["is_square"]
        rows, columns = (self.range_dimension, self.domain_dimension) if hint is None else (None, None)
        return hint if rows is None or columns is None else bool(rows == columns)

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """Return the shape as a tensor of integers."""
        shape = self.shape
        return dispatch.to_tensor(shape.as_list()) if shape.is_fully_defined() else array.shape(self._to_dense())

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """Return the shape without the last two dimensions, as a tensor of integers."""
        return self.shape_tensor()[:-2]

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """Return the number of dimensions as a tensor."""
        return array.size(self.shape_tensor())

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """Return n as a tensor."""
        columns = self.domain_dimension
        return self.shape_tensor()[-1] if columns is None else dispatch.to_tensor(columns)

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """Return m as a tensor."""
        rows = self.range_dimension
        return self.shape_tensor()[-2] if rows is None else dispatch.to_tensor(rows)

    # Calls

    def to_dense(self, name: str = "to_dense") -> Any:
        """Return the matrix."""
        return self._to_dense()

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """Return its product with a matrix [..., n, k] or another operator. adjoint, adjoint_arg: of the adjoints."""
        if isinstance(x, LinearOperator):
            left, right = (self.adjoint() if adjoint else self), (x.adjoint() if adjoint_arg else x)
            return LinearOperatorComposition([left, right])
        return self._matmul(self._operand(x), adjoint=adjoint, adjoint_arg=adjoint_arg)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """Return its product with a vector [..., n]."""
        return array.squeeze(self._matmul(array.expand_dims(self._operand(x), -1), adjoint=adjoint), -1)

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """Return the matrix x with A x = rhs, or A^H x = rhs. adjoint_arg: the adjoint of rhs is meant."""
        self._must("is_non_singular", "solve")
        self._must("is_square", "solve")
        if isinstance(rhs, LinearOperator):
            left = self.inverse()
            return LinearOperatorComposition(
                [left.adjoint() if adjoint else left, rhs.adjoint() if adjoint_arg else rhs]
            )
        return self._solve(self._operand(rhs), adjoint=adjoint, adjoint_arg=adjoint_arg)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """Return the vector x with A x = rhs, or A^H x = rhs."""
        self._must("is_non_singular", "solve")
        self._must("is_square", "solve")
        return array.squeeze(self._solve(array.expand_dims(self._operand(rhs), -1), adjoint=adjoint), -1)

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """Return the operator of the conjugate transpose."""
        return self if self.is_self_adjoint else LinearOperatorAdjoint(self)

    H = property(adjoint, doc="The operator of the conjugate transpose.")

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """Return the operator whose `matmul` is this one's `solve`."""
        return LinearOperatorInversion(self)

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """Return the lower triangular operator L with L L^H = A. raises ValueError without the hints that it is
        self-adjoint and positive definite"""
        if not (self.is_positive_definite and self.is_self_adjoint):
            raise ValueError(f"{self.name}: cholesky needs is_self_adjoint=True and is_positive_definite=True")
        return LinearOperatorLowerTriangular(cholesky(self._to_dense()), is_non_singular=True)

    def determinant(self, name: str = "det") -> Any:
        """Return the determinant."""
        self._must("is_square", "determinant")
        return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Any:
        """Return the logarithm of the determinant's absolute value."""
        self._must("is_square", "log_abs_determinant")
        return self._log_abs_determinant()

    def diag_part(self, name: str = "diag_part") -> Any:
        """Return the elements of the diagonal."""
        return self._diag_part()

    def trace(self, name: str = "trace") -> Any:
        """Return the sum of the diagonal."""
        return self._trace()

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """Return the eigenvalues, of self-adjoint operators in ascending order."""
        self._must("is_square", "eigvals")
        return eigvalsh(self._to_dense()) if self.is_self_adjoint else eigvals(self._to_dense())

    def cond(self, name: str = "cond") -> Tensor:
        """Return the largest singular value, divided by the smallest."""
        values = svd(self._to_dense(), compute_uv=False)
        return math.reduce_max(values, -1) / math.reduce_min(values, -1)

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        """Return the sum of its matrix and x."""
        return self._to_dense() + self._operand(x)

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """Check that the condition number is less than 1 / (1e3 of the dtype's epsilon)."""
        limit = 1e-3 / float(np.finfo(self.dtype.real_dtype.as_numpy_dtype).eps)
        return debugging.assert_less(self.cond(), array.cast(limit, self.dtype.real_dtype), "the operator is singular")

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """Check that a self-adjoint operator has a Cholesky decomposition."""
        return debugging.assert_positive(eigvalsh(self._to_dense()), "the operator is not positive definite")

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """Check that the matrix equals its conjugate transpose."""
        matrix = self._to_dense()
        return debugging.assert_equal(matrix, adjoint(matrix), "the operator is not self-adjoint")

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: shape={self.shape}, dtype={self.dtype.name}>"

    def _operand(self, x: Any) -> Tensor:
        return dispatch.to_tensor(x, self.dtype)


class LinearOperatorFullMatrix(LinearOperator):
    """A matrix [..., m, n] without structure."""

    def __init__(self, matrix: Any, *hints: Any, **named: Unpack[Hints]) -> None:
        self._matrix = dispatch.to_tensor(matrix)
        super().__init__(self._matrix.dtype, *hints, **named)

    @property
    def matrix(self) -> Tensor:
        """Return the matrix."""
        return self._matrix

    def _shape(self) -> TensorShape:
        return self._matrix.shape

    def _to_dense(self) -> Any:
        return self._matrix


class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangle of a matrix [..., n, n]; what is above is ignored."""

    implied = Hints(is_square=True)

    def __init__(self, tril: Any, *hints: Any, **named: Unpack[Hints]) -> None:
        self.tril = dispatch.to_tensor(tril)
        super().__init__(self.tril.dtype, *hints, **named)

    def _shape(self) -> TensorShape:
        return self.tril.shape

    def _to_dense(self) -> Any:
        return band_part(self.tril, -1, 0)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        matrix, rhs = with_batch_of(self._to_dense(), adjoint_if(rhs, adjoint_arg))
        return triangular_solve(matrix, rhs, lower=True, adjoint=adjoint)

    def _determinant(self) -> Any:
        return math.reduce_prod(diag_part(self.tril), -1)

    def _log_abs_determinant(self) -> Any:
        return math.reduce_sum(math.log(math.abs(diag_part(self.tril))), -1)

    def _diag_part(self) -> Any:
        return diag_part(self.tril)

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """Return the eigenvalues: the diagonal."""
        return diag_part(self.tril)


class LinearOperatorAdjoint(LinearOperator):
    """The conjugate transpose of an operator."""

    def __init__(self, operator: LinearOperator, *hints: Any, **named: Unpack[Hints]) -> None:
        self.operator = operator
        defaults = {hint: getattr(operator, hint) for hint in HINTS}
        options = or_else(hints_of(*hints, **named), **defaults, name=f"{operator.name}_adjoint")
        super().__init__(operator.dtype, **options)

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """Return the operator that this is the adjoint of."""
        return self.operator

    def _shape(self) -> TensorShape:
        shape = self.operator.shape
        return shape[:-2].concatenate([shape[-1], shape[-2]])

    def _to_dense(self) -> Any:
        return adjoint(self.operator.to_dense())

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self.operator._matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self.operator._solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Any:
        return math.conj(self.operator._determinant())

    def _log_abs_determinant(self) -> Any:
        return self.operator._log_abs_determinant()

    def _diag_part(self) -> Any:
        return math.conj(self.operator._diag_part())


class LinearOperatorInversion(LinearOperator):
    """The inverse of an operator: its `matmul` is the other's `solve`."""

    implied = Hints(is_non_singular=True, is_square=True)

    def __init__(self, operator: LinearOperator, *hints: Any, **named: Unpack[Hints]) -> None:
        if operator.is_non_singular is False:
            raise ValueError(f"{operator.name}: a singular operator has no inverse")
        if operator.is_square is False:
            raise ValueError(f"{operator.name}: an operator that is not square has no inverse")
        self.operator = operator
        defaults = {hint: getattr(operator, hint) for hint in ("is_self_adjoint", "is_positive_definite")}
        options = or_else(hints_of(*hints, **named), **defaults, name=f"{operator.name}_inverse")
        super().__init__(operator.dtype, **options)

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """Return the operator that this is the inverse of."""
        return self.operator

    def _shape(self) -> TensorShape:
        return self.operator.shape

    def _to_dense(self) -> Any:
        return inv(self.operator.to_dense())

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self.operator._solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self.operator._matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Any:
        return 1.0 / self.operator._determinant()

    def _log_abs_determinant(self) -> Any:
        return -self.operator._log_abs_determinant()


class LinearOperatorComposition(LinearOperator):
    """The product of operators: the last is applied first."""

    def __init__(self, operators: Any, *hints: Any, **named: Unpack[Hints]) -> None:
        self.operators = list(operators)
        if not self.operators:
            raise ValueError("a composition needs at least one operator")
        options = or_else(
            hints_of(*hints, **named),
            is_non_singular=all_hold(self.operators, "is_non_singular"),
            name="_o_".join(each.name for each in self.operators),
        )
        super().__init__(self.operators[0].dtype, **options)

    def _shape(self) -> TensorShape:
        shapes = [each.shape for each in self.operators]
        batch: TensorShape = shapes[0][:-2]
        for shape in shapes[1:]:
            batch = array.broadcast_static_shape(batch, shape[:-2])
        return batch.concatenate([shapes[0][-2], shapes[-1][-1]])

    def _to_dense(self) -> Any:
        result: Any = self.operators[-1].to_dense()
        for each in self.operators[-2::-1]:
            result = each.matmul(result)
        return result

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        for each in self.operators if adjoint else self.operators[::-1]:
            x, adjoint_arg = each.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg), False
        return x

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        for each in self.operators[::-1] if adjoint else self.operators:
            rhs, adjoint_arg = each.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg), False
        return rhs

    def _determinant(self) -> Any:
        if not all(each.is_square for each in self.operators):
            return super()._determinant()
        result: Any = self.operators[0].determinant()
        for each in self.operators[1:]:
            result = result * each.determinant()
        return result

    def _log_abs_determinant(self) -> Any:
        if not all(each.is_square for each in self.operators):
            return super()._log_abs_determinant()
        total: Any = self.operators[0].log_abs_determinant()
        for each in self.operators[1:]:
            total = total + each.log_abs_determinant()
        return total
