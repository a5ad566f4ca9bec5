"""LinearOperatorLowRankUpdate: an operator plus a product of thin matrices, solved by the Woodbury identity."""

from __future__ import annotations

from typing import Any, Unpack

from ...core.shapes import TensorShape
from .. import array, dispatch
from ..tensor import Tensor
from .diagonal_operators import LinearOperatorDiag, LinearOperatorIdentity
from .linear_operator import LinearOperator, adjoint_if, with_batch_of
from .matmul import product
from .operator_hints import Hints, all_hold, hints_of, or_else
from .solvers import det, slogdet, solve

__all__ = ["LinearOperatorLowRankUpdate"]


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
        is_diag_update_positive: bool | None = None,
        *hints: Any,
        **named: Unpack[Hints],
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
        options = hints_of(*hints, **named)
        if v is None:
            options = or_else(options, is_self_adjoint=all_hold([base_operator, self.diag_operator], "is_self_adjoint"))
            if self.is_diag_update_positive:
                options = or_else(options, is_positive_definite=base_operator.is_positive_definite or None)
        super().__init__(base_operator.dtype, **options)

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
        x = adjoint_if(x, adjoint_arg)
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
        rhs = adjoint_if(rhs, adjoint_arg)
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
