"""Linear operators that keep lengths: reflections and permutations."""

from __future__ import annotations

from typing import Any, Unpack

from ...core import dtypes
from ...core.shapes import TensorShape
from .. import array, dispatch, math
from ..tensor import Tensor
from .linear_operator import LinearOperator, adjoint_if
from .matmul import product
from .operator_hints import Hints

__all__ = ["LinearOperatorHouseholder", "LinearOperatorPermutation"]


class LinearOperatorHouseholder(LinearOperator):
    """Reflections at the hyperplanes that vectors [..., n] are normal to: I - 2 v v^H / (v^H v)."""

    implied = Hints(is_non_singular=True, is_self_adjoint=True, is_positive_definite=False, is_square=True)

    def __init__(self, reflection_axis: Any, *hints: Any, **named: Unpack[Hints]) -> None:
        self._axis = dispatch.to_tensor(reflection_axis)
        super().__init__(self._axis.dtype, *hints, **named)

    @property
    def reflection_axis(self) -> Tensor:
        """Return the vector."""
        return self._axis

    def _shape(self) -> TensorShape:
        return self._axis.shape.concatenate(self._axis.shape[-1:])

    def _to_dense(self) -> Any:
        return self._matmul(array.eye(array.shape(self._axis)[-1], dtype=self.dtype))

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = adjoint_if(x, adjoint_arg)
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

    implied = Hints(is_non_singular=True, is_square=True)

    def __init__(self, perm: Any, dtype: Any = dtypes.float32, *hints: Any, **named: Unpack[Hints]) -> None:
        self._perm = dispatch.to_tensor(perm)
        super().__init__(dtype, *hints, **named)

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
        x = adjoint_if(x, adjoint_arg)
        order = math.argsort(self._perm) if adjoint else self._perm
        batch = array.broadcast_dynamic_shape(array.shape(order)[:-1], array.shape(x)[:-2])
        order = array.broadcast_to(order, array.concat([batch, array.shape(order)[-1:]], 0))
        x = array.broadcast_to(x, array.concat([batch, array.shape(x)[-2:]], 0))
        return array.gather(x, order, axis=-2, batch_dims=(order.shape.rank or 1) - 1)

    def _log_abs_determinant(self) -> Any:
        return array.zeros(array.shape(self._perm)[:-1], self.dtype)
