"""Linear operators that are diagonal: of a vector, identities, zeros."""

from __future__ import annotations

from typing import Any, Unpack

from ...core import dtypes
from ...core.shapes import TensorShape
from .. import array, dispatch, math
from ..tensor import Tensor
from .diagonals import diag
from .linear_operator import LinearOperator, adjoint_if
from .operator_hints import Hints, hints_of, or_else

__all__ = ["LinearOperatorDiag", "LinearOperatorIdentity", "LinearOperatorScaledIdentity", "LinearOperatorZeros"]


def _conj(x: Any, turn: bool) -> Any:
    return math.conj(x) if turn and dispatch.to_tensor(x).dtype.is_complex else x


class LinearOperatorDiag(LinearOperator):
    """The diagonal matrix of a vector [..., n]."""

    implied = Hints(is_square=True)

    def __init__(self, diag: Any, *hints: Any, **named: Unpack[Hints]) -> None:
        self._diag = dispatch.to_tensor(diag)
        if not self._diag.dtype.is_complex:
            self.implied = {**self.implied, "is_self_adjoint": True}
        super().__init__(self._diag.dtype, *hints, **named)

    @property
    def diag(self) -> Tensor:
        """Return the diagonal."""
        return self._diag

    def _shape(self) -> TensorShape:
        return self._diag.shape.concatenate(self._diag.shape[-1:])

    def _to_dense(self) -> Any:
        return diag(self._diag)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        result: Any = _conj(self._diag, adjoint)[..., None] * adjoint_if(x, adjoint_arg)
        return result

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        result: Any = adjoint_if(rhs, adjoint_arg) / _conj(self._diag, adjoint)[..., None]
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
        self, num_rows: int, multiplier: Any, *hints: Any, assert_proper_shapes: bool = False, **named: Unpack[Hints]
    ) -> None:
        self._multiplier = dispatch.to_tensor(multiplier)
        vector = self._multiplier[..., None] * array.ones([num_rows], self._multiplier.dtype)
        super().__init__(vector, *hints, **named)

    @property
    def multiplier(self) -> Tensor:
        """Return what the identity is multiplied by."""
        return self._multiplier


class LinearOperatorIdentity(LinearOperatorDiag):
    """Identity matrices [*batch_shape, num_rows, num_rows]."""

    implied = Hints(is_non_singular=True, is_self_adjoint=True, is_positive_definite=True, is_square=True)

    def __init__(
        self,
        num_rows: int,
        batch_shape: Any = None,
        dtype: Any = None,
        *hints: Any,
        assert_proper_shapes: bool = False,
        **named: Unpack[Hints],
    ) -> None:
        batch = [] if batch_shape is None else list(TensorShape(batch_shape))
        vector = array.ones([*batch, num_rows], dtypes.as_dtype(dtype or dtypes.float32))
        super().__init__(vector, *hints, **named)


class LinearOperatorZeros(LinearOperator):
    """Matrices of zeros [*batch_shape, num_rows, num_columns]."""

    implied = Hints(is_non_singular=False, is_positive_definite=False)

    def __init__(
        self,
        num_rows: int,
        num_columns: int | None = None,
        batch_shape: Any = None,
        dtype: Any = None,
        *hints: Any,
        assert_proper_shapes: bool = False,
        **named: Unpack[Hints],
    ) -> None:
        batch = [] if batch_shape is None else list(TensorShape(batch_shape))
        self._dims = [*batch, num_rows, num_rows if num_columns is None else num_columns]
        options = or_else(hints_of(*hints, **named), is_square=True)
        if options["is_square"] and self._dims[-1] != num_rows:
            raise ValueError(f"{num_rows} rows and {num_columns} columns of zeros are not square, pass is_square=False")
        super().__init__(dtype or dtypes.float32, **or_else(options, is_self_adjoint=options["is_square"]))

    def _shape(self) -> TensorShape:
        return TensorShape(self._dims)

    def _to_dense(self) -> Any:
        return array.zeros(self._dims, self.dtype)
