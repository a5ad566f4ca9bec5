"""Linear operators of a certain structure, whose products and systems cost less than those of a matrix.

Lives here: diagonals, identities, permutations, reflections, bands, blocks, Kronecker products, updates of low rank.
Not here: the base class (linear_operator.py), convolutions (circulant_operators.py).
"""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ...core.shapes import TensorShape
from .. import array, dispatch, math
from ..tensor import Tensor
from .bands import tridiagonal_matmul, tridiagonal_solve
from .diagonals import diag, diag_part
from .einsum import adjoint as adjoint_of
from .linear_operator import LinearOperator, all_hold, with_batch_of
from .matmul import product
from .solvers import det, slogdet, solve

__all__ = [
    "LinearOperatorBlockDiag",
    "LinearOperatorBlockLowerTriangular",
    "LinearOperatorDiag",
    "LinearOperatorHouseholder",
    "LinearOperatorIdentity",
    "LinearOperatorKronecker",
    "LinearOperatorLowRankUpdate",
    "LinearOperatorPermutation",
    "LinearOperatorScaledIdentity",
    "LinearOperatorToeplitz",
    "LinearOperatorTridiag",
    "LinearOperatorZeros",
]
Hint = bool | None


def _conj(x: Any, turn: bool) -> Any:
    return math.conj(x) if turn and dispatch.to_tensor(x).dtype.is_complex else x


def _argument(x: Any, adjoint_arg: bool) -> Any:
    return adjoint_of(x) if adjoint_arg else x


class LinearOperatorDiag(LinearOperator):
    """The diagonal matrix of a vector [..., n]."""

    def __init__(
        self,
        diag: Any,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        if is_square is False:
            raise ValueError(f"{name}: diagonal operators are square")
        self._diag = dispatch.to_tensor(diag)
        if not self._diag.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError(f"{name}: real diagonal operators are self-adjoint")
            is_self_adjoint = True
        super().__init__(self._diag.dtype, is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    @property
    def diag(self) -> Tensor:
        """Return the diagonal."""
        return self._diag

    def _shape(self) -> TensorShape:
        return self._diag.shape.concatenate(self._diag.shape[-1:])

    def _to_dense(self) -> Any:
        return diag(self._diag)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        result: Any = _conj(self._diag, adjoint)[..., None] * _argument(x, adjoint_arg)
        return result

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        result: Any = _argument(rhs, adjoint_arg) / _conj(self._diag, adjoint)[..., None]
        return result

    def _determinant(self) -> Any:
        return math.reduce_prod(self._diag, -1)

    def _log_abs_determinant(self) -> Any:
        total: Any = math.reduce_sum(math.log(math.abs(self._diag)), -1)
        return array.cast(total, self.dtype)

    def _diag_part(self) -> Any:
        return self._diag

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """Return the diagonal."""
        return self._diag

    def cond(self, name: str = "cond") -> Tensor:
        """Return the largest absolute value, divided by the smallest."""
        values = math.abs(self._diag)
        return math.reduce_max(values, -1) / math.reduce_min(values, -1)


class LinearOperatorScaledIdentity(LinearOperatorDiag):
    """Identity matrices of size num_rows, each times an element of a multiplier [...]."""

    def __init__(
        self,
        num_rows: int,
        multiplier: Any,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        self._multiplier = dispatch.to_tensor(multiplier)
        vector = self._multiplier[..., None] * array.ones([num_rows], self._multiplier.dtype)
        super().__init__(vector, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name)

    @property
    def multiplier(self) -> Tensor:
        """Return what the identity is multiplied by."""
        return self._multiplier


class LinearOperatorIdentity(LinearOperatorDiag):
    """Identity matrices [*batch_shape, num_rows, num_rows]."""

    def __init__(
        self,
        num_rows: int,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: Hint = True,
        is_self_adjoint: Hint = True,
        is_positive_definite: Hint = True,
        is_square: Hint = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        if not is_self_adjoint or not is_square or not is_non_singular or not is_positive_definite:
            raise ValueError(f"{name}: an identity is square, self-adjoint, positive definite and not singular")
        batch = [] if batch_shape is None else list(TensorShape(batch_shape))
        vector = array.ones([*batch, num_rows], dtypes.as_dtype(dtype or dtypes.float32))
        super().__init__(vector, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name)


class LinearOperatorZeros(LinearOperator):
    """Matrices of zeros [*batch_shape, num_rows, num_columns]."""

    def __init__(
        self,
        num_rows: int,
        num_columns: int | None = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: Hint = False,
        is_self_adjoint: Hint = True,
        is_positive_definite: Hint = False,
        is_square: Hint = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        batch = [] if batch_shape is None else list(TensorShape(batch_shape))
        self._dims = [*batch, num_rows, num_rows if num_columns is None else num_columns]
        if is_non_singular or is_positive_definite:
            raise ValueError(f"{name}: a matrix of zeros is singular")
        if is_square and self._dims[-1] != num_rows:
            raise ValueError(f"{name}: {num_rows} rows and {num_columns} columns are not square, pass is_square=False")
        super().__init__(dtype or dtypes.float32, False, is_self_adjoint, False, is_square, name)

    def _shape(self) -> TensorShape:
        return TensorShape(self._dims)

    def _to_dense(self) -> Any:
        return array.zeros(self._dims, self.dtype)


class LinearOperatorHouseholder(LinearOperator):
    """Reflections at the hyperplanes that vectors [..., n] are normal to: I - 2 v v^H / (v^H v)."""

    def __init__(
        self,
        reflection_axis: Any,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        if is_self_adjoint is False or is_non_singular is False or is_square is False or is_positive_definite:
            raise ValueError(f"{name}: reflections are square, self-adjoint, not singular and not positive definite")
        self._axis = dispatch.to_tensor(reflection_axis)
        super().__init__(self._axis.dtype, True, True, False, True, name)

    @property
    def reflection_axis(self) -> Tensor:
        """Return the vector."""
        return self._axis

    def _shape(self) -> TensorShape:
        return self._axis.shape.concatenate(self._axis.shape[-1:])

    def _to_dense(self) -> Any:
        return self._matmul(array.eye(array.shape(self._axis)[-1], dtype=self.dtype))

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = _argument(x, adjoint_arg)
        column = self._axis[..., None]
        unit = column / array.cast(math.sqrt(math.reduce_sum(math.abs(column) ** 2, -2, keepdims=True)), self.dtype)
        result: Any = x - 2 * unit * product(unit, x, adjoint_a=True)
        return result

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _determinant(self) -> Any:
        return -array.ones(array.shape(self._axis)[:-1], self.dtype)

    def _log_abs_determinant(self) -> Any:
        return array.zeros(array.shape(self._axis)[:-1], self.dtype)


class LinearOperatorPermutation(LinearOperator):
    """Permutations of vectors: row i of the result is row perm[..., i] of the operand."""

    def __init__(
        self,
        perm: Any,
        dtype: Any = dtypes.float32,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorPermutation",
    ) -> None:
        if is_non_singular is False or is_square is False:
            raise ValueError(f"{name}: permutations are square and not singular")
        self._perm = dispatch.to_tensor(perm)
        super().__init__(dtype, True, is_self_adjoint, is_positive_definite, True, name)

    @property
    def perm(self) -> Tensor:
        """Return the indices."""
        return self._perm

    def _shape(self) -> TensorShape:
        return self._perm.shape.concatenate(self._perm.shape[-1:])

    def _to_dense(self) -> Any:
        return array.one_hot(self._perm, array.shape(self._perm)[-1], dtype=self.dtype)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, not adjoint, adjoint_arg)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = _argument(x, adjoint_arg)
        order = math.argsort(self._perm) if adjoint else self._perm
        batch = array.broadcast_dynamic_shape(array.shape(order)[:-1], array.shape(x)[:-2])
        order = array.broadcast_to(order, array.concat([batch, array.shape(order)[-1:]], 0))
        x = array.broadcast_to(x, array.concat([batch, array.shape(x)[-2:]], 0))
        return array.gather(x, order, axis=-2, batch_dims=(order.shape.rank or 1) - 1)

    def _log_abs_determinant(self) -> Any:
        return array.zeros(array.shape(self._perm)[:-1], self.dtype)


class LinearOperatorToeplitz(LinearOperator):
    """Matrices with equal elements along each diagonal: of the first column [..., n] and the first row [..., n]."""

    def __init__(
        self,
        col: Any,
        row: Any,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:
        if is_square is False:
            raise ValueError(f"{name}: Toeplitz operators are square here")
        self.col = dispatch.to_tensor(col)
        self.row = dispatch.to_tensor(row, self.col.dtype)
        super().__init__(self.col.dtype, is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    def _shape(self) -> TensorShape:
        shape = array.broadcast_static_shape(self.col.shape, self.row.shape)
        return shape.concatenate(shape[-1:])

    def _to_dense(self) -> Any:
        shape = array.broadcast_dynamic_shape(array.shape(self.col), array.shape(self.row))
        col, row = (array.broadcast_to(x, shape) for x in (self.col, self.row))
        diagonals = array.concat([row[..., :0:-1], col], -1)
        places = array.range(array.shape(col)[-1])
        return array.gather(diagonals, places[:, None] - places + array.shape(col)[-1] - 1, axis=-1)

    def _diag_part(self) -> Any:
        return self.col[..., :1] + array.zeros(array.shape(self._to_dense())[:-1], self.dtype)


class LinearOperatorTridiag(LinearOperator):
    """Matrices with elements on the diagonal and next to it.

    diagonals_format: "compact", of [..., 3, n] with the diagonals above, of and below the main one; "sequence", of a
    list of these three; "matrix", of the whole matrix.
    """

    def __init__(
        self,
        diagonals: Any,
        diagonals_format: str = "compact",
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorTridiag",
    ) -> None:
        if diagonals_format not in ("matrix", "sequence", "compact"):
            raise ValueError(f"{name}: diagonals_format is matrix, sequence or compact, not {diagonals_format!r}")
        if is_square is False:
            raise ValueError(f"{name}: tridiagonal operators are square")
        self.diagonals, self.diagonals_format = diagonals, diagonals_format
        if diagonals_format == "matrix":
            self._compact = diag_part(dispatch.to_tensor(diagonals), k=(-1, 1), align="LEFT_RIGHT")
        elif diagonals_format == "sequence":
            self._compact = array.stack([dispatch.to_tensor(each) for each in diagonals], axis=-2)
        else:
            self._compact = dispatch.to_tensor(diagonals)
        super().__init__(self._compact.dtype, is_non_singular, is_self_adjoint, is_positive_definite, True, name)

    def _shape(self) -> TensorShape:
        shape = self._compact.shape
        return shape[:-2].concatenate([shape[-1], shape[-1]])

    def _to_dense(self) -> Any:
        return diag(self._compact, k=(-1, 1), align="LEFT_RIGHT")

    def _diag_part(self) -> Any:
        return self._compact[..., 1, :]

    def _parts(self, adjoint: bool) -> Tensor:
        """Return the diagonals of the matrix, or of its adjoint."""
        if not adjoint:
            return self._compact
        upper, main, lower = (math.conj(self._compact[..., i, :]) for i in range(3))
        return array.stack([_rolled(lower, -1), main, _rolled(upper, 1)], axis=-2)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        parts, x = with_batch_of(self._parts(adjoint), _argument(x, adjoint_arg))
        return tridiagonal_matmul(parts, x)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        parts, rhs = with_batch_of(self._parts(adjoint), _argument(rhs, adjoint_arg))
        return tridiagonal_solve(parts, rhs)


def _rolled(x: Any, shift: int) -> Any:
    return array.concat([x[..., -shift:], x[..., :-shift]], -1)


class LinearOperatorBlockDiag(LinearOperator):
    """Operators along the diagonal, zeros elsewhere."""

    def __init__(
        self,
        operators: Any,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = True,
        name: str | None = None,
    ) -> None:
        self.operators = list(operators)
        if not self.operators:
            raise ValueError("a block diagonal operator needs at least one operator")
        hints = [is_non_singular, is_self_adjoint, is_positive_definite]
        names = ("is_non_singular", "is_self_adjoint", "is_positive_definite")
        hints = [all_hold(self.operators, h) if hint is None else hint for h, hint in zip(names, hints)]
        name = name or "_ds_".join(each.name for each in self.operators)
        super().__init__(self.operators[0].dtype, hints[0], hints[1], hints[2], is_square, name)

    def _shape(self) -> TensorShape:
        return _batch_of(self.operators).concatenate(
            [
                sum(each.range_dimension for each in self.operators),
                sum(each.domain_dimension for each in self.operators),
            ]
        )

    def _apply(self, x: Any, call: str, adjoint: bool, adjoint_arg: bool) -> Any:
        """Return each operator's product or solution with its rows of x, below one another."""
        blocks = isinstance(x, (list, tuple))
        side = "range_dimension" if adjoint != (call == "solve") else "domain_dimension"
        if not blocks:
            x = array.split(_argument(x, adjoint_arg), [getattr(each, side) for each in self.operators], axis=-2)
        parts = [getattr(each, call)(part, adjoint=adjoint) for each, part in zip(self.operators, x)]
        if blocks:
            return parts
        batch = array.shape(parts[0])[:-2]
        for part in parts[1:]:
            batch = array.broadcast_dynamic_shape(batch, array.shape(part)[:-2])
        parts = [array.broadcast_to(p, array.concat([batch, array.shape(p)[-2:]], 0)) for p in parts]
        return array.concat(parts, -2)

    def _operand(self, x: Any) -> Any:
        listed = isinstance(x, (list, tuple)) and bool(x) and dispatch.to_tensor(x[0]).shape.rank != 0
        if listed and len(x) == len(self.operators) and (dispatch.to_tensor(x[0]).shape.rank or 0) > 1:
            return [dispatch.to_tensor(each, self.dtype) for each in x]
        return super()._operand(x)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._apply(x, "matmul", adjoint, adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._apply(rhs, "solve", adjoint, adjoint_arg)

    def _to_dense(self) -> Any:
        return _assembled(
            [[each if i == j else None for j in range(len(self.operators))] for i, each in enumerate(self.operators)],
            self,
        )

    def _determinant(self) -> Any:
        result: Any = self.operators[0].determinant()
        for each in self.operators[1:]:
            result = result * each.determinant()
        return result

    def _log_abs_determinant(self) -> Any:
        result: Any = self.operators[0].log_abs_determinant()
        for each in self.operators[1:]:
            result = result + each.log_abs_determinant()
        return result


class LinearOperatorBlockLowerTriangular(LinearOperator):
    """Rows of operators, the i-th of i + 1 of them, zeros to their right."""

    def __init__(
        self,
        operators: Any,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorBlockLowerTriangular",
    ) -> None:
        self.operators = [list(row) for row in operators]
        if [len(row) for row in self.operators] != list(range(1, len(self.operators) + 1)):
            raise ValueError(f"{name}: the i-th row has i + 1 operators, these have {[len(r) for r in self.operators]}")
        diagonal = [row[-1] for row in self.operators]
        if is_non_singular is None:
            is_non_singular = all_hold(diagonal, "is_non_singular")
        super().__init__(diagonal[0].dtype, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name)

    def _shape(self) -> TensorShape:
        diagonal = [row[-1] for row in self.operators]
        rows, columns = (sum(getattr(each, d) for each in diagonal) for d in ("range_dimension", "domain_dimension"))
        return _batch_of([each for row in self.operators for each in row]).concatenate([rows, columns])

    def _to_dense(self) -> Any:
        count = len(self.operators)
        return _assembled([row + [None] * (count - len(row)) for row in self.operators], self)

    def _determinant(self) -> Any:
        return LinearOperatorBlockDiag([row[-1] for row in self.operators])._determinant()

    def _log_abs_determinant(self) -> Any:
        return LinearOperatorBlockDiag([row[-1] for row in self.operators])._log_abs_determinant()


def _batch_of(operators: Any) -> TensorShape:
    batch: TensorShape = operators[0].batch_shape
    for each in operators[1:]:
        batch = array.broadcast_static_shape(batch, each.batch_shape)
    return batch


def _assembled(blocks: list[list[Any]], whole: LinearOperator) -> Tensor:
    """Return the matrix of rows of operators, None for zeros."""
    diagonal = [row[i] for i, row in enumerate(blocks)]
    batch = list(whole.batch_shape)
    rows = []
    for below, row in zip(diagonal, blocks):
        sizes = [(below.range_dimension, column.domain_dimension) for column in diagonal]
        parts = [
            array.zeros([*batch, *size], whole.dtype)
            if each is None
            else array.broadcast_to(each.to_dense(), [*batch, *size])
            for each, size in zip(row, sizes)
        ]
        rows.append(array.concat(parts, -1))
    return array.concat(rows, -2)


class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product of operators: a block of the second for each element of the first."""

    def __init__(
        self,
        operators: Any,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str | None = None,
    ) -> None:
        self.operators = list(operators)
        if not self.operators:
            raise ValueError("a Kronecker product needs at least one operator")
        if is_non_singular is None:
            is_non_singular = all_hold(self.operators, "is_non_singular")
        name = name or "_x_".join(each.name for each in self.operators)
        dtype = self.operators[0].dtype
        super().__init__(dtype, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name)

    def _shape(self) -> TensorShape:
        rows = columns = 1
        for each in self.operators:
            rows, columns = rows * each.range_dimension, columns * each.domain_dimension
        return _batch_of(self.operators).concatenate([rows, columns])

    def _to_dense(self) -> Any:
        result: Any = self.operators[0].to_dense()
        for each in self.operators[1:]:
            block: Any = each.to_dense()
            result = result[..., :, None, :, None] * block[..., None, :, None, :]
            shape = array.shape(result)
            rows, columns = shape[-4] * shape[-3], shape[-2] * shape[-1]
            result = array.reshape(result, array.concat([shape[:-4], array.stack([rows, columns])], 0))
        static: Tensor = array.ensure_shape(result, self._shape())
        return static

    def _determinant(self) -> Any:
        # det(A x B) = det(A) ** n det(B) ** m
        result: Any = 1.0
        for each in self.operators:
            result = result * each.determinant() ** (self.domain_dimension // each.domain_dimension)
        return array.cast(result, self.dtype)

    def _log_abs_determinant(self) -> Any:
        result: Any = 0.0
        for each in self.operators:
            result = result + each.log_abs_determinant() * (self.domain_dimension // each.domain_dimension)
        return array.cast(result, self.dtype)


class LinearOperatorLowRankUpdate(LinearOperator):
    """L + U D V^H, of an operator L and two matrices U, V [..., n, k]; its systems are those of L and of k unknowns.

    diag_update: the diagonal of D [..., k], ones if None; v: U if None.
    """

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: Hint = None,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        self.base_operator, self.is_diag_update_positive = base_operator, is_diag_update_positive
        self.u = dispatch.to_tensor(u, base_operator.dtype)
        self.v = self.u if v is None else dispatch.to_tensor(v, base_operator.dtype)
        if diag_update is None:
            self.is_diag_update_positive = True
            self.diag_update = None
            self.diag_operator: LinearOperator = LinearOperatorIdentity(self.u.shape[-1], dtype=base_operator.dtype)
        else:
            self.diag_update = dispatch.to_tensor(diag_update, base_operator.dtype)
            self.diag_operator = LinearOperatorDiag(self.diag_update)
        if v is None and self.is_diag_update_positive and is_positive_definite is None:
            is_positive_definite = True if base_operator.is_positive_definite else None
        if v is None and is_self_adjoint is None:
            is_self_adjoint = True if base_operator.is_self_adjoint and self.diag_operator.is_self_adjoint else None
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(base_operator.dtype, *hints, name)

    def _shape(self) -> TensorShape:
        shape = self.base_operator.shape
        batch = array.broadcast_static_shape(shape[:-2], self.u.shape[:-2])
        return array.broadcast_static_shape(batch, self.v.shape[:-2]).concatenate(shape[-2:])

    def _to_dense(self) -> Any:
        update = product(self.u, self.diag_operator.matmul(self.v, adjoint_arg=True))
        return self.base_operator.to_dense() + update

    def _sides(self, adjoint: bool) -> tuple[Tensor, Tensor]:
        return (self.v, self.u) if adjoint else (self.u, self.v)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = _argument(x, adjoint_arg)
        left, right = self._sides(adjoint)
        update = product(left, self.diag_operator.matmul(product(right, x, adjoint_a=True), adjoint=adjoint))
        result: Any = self.base_operator.matmul(x, adjoint=adjoint) + update
        return result

    def _capacitance(self, adjoint: bool = False) -> Any:
        """Return D^-1 + V^H L^-1 U (the Woodbury identity), of the adjoint where wanted."""
        left, right = self._sides(adjoint)
        inner = product(right, self.base_operator.solve(left, adjoint=adjoint), adjoint_a=True)
        return (
            self.diag_operator.inverse().adjoint().to_dense() + inner
            if adjoint
            else (self.diag_operator.inverse().to_dense() + inner)
        )

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = _argument(rhs, adjoint_arg)
        left, right = self._sides(adjoint)
        first = self.base_operator.solve(rhs, adjoint=adjoint)
        inner = solve(*with_batch_of(self._capacitance(adjoint), product(right, first, adjoint_a=True)))
        result: Any = first - self.base_operator.solve(product(left, inner), adjoint=adjoint)
        return result

    def _determinant(self) -> Any:
        parts = [self.base_operator.determinant(), self.diag_operator.determinant()]
        result: Any = det(self._capacitance()) * parts[0] * parts[1]
        return result

    def _log_abs_determinant(self) -> Any:
        parts = [self.base_operator.log_abs_determinant(), self.diag_operator.log_abs_determinant()]
        result: Any = slogdet(self._capacitance())[1] + parts[0] + parts[1]
        return result
