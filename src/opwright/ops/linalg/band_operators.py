"""Linear operators given by diagonals: Toeplitz and tridiagonal matrices."""

from __future__ import annotations

from typing import Any, Unpack

from ...core.shapes import TensorShape
from .. import array, dispatch, math
from ..tensor import Tensor
from .bands import tridiagonal_matmul, tridiagonal_solve
from .diagonals import diag, diag_part
from .linear_operator import LinearOperator, adjoint_if, with_batch_of
from .operator_hints import Hints

__all__ = ["LinearOperatorToeplitz", "LinearOperatorTridiag"]


class LinearOperatorToeplitz(LinearOperator):
    """Matrices with equal elements along each diagonal: of the first column [..., n] and the first row [..., n]."""

    implied = Hints(is_square=True)

    def __init__(self, col: Any, row: Any, *hints: Any, **named: Unpack[Hints]) -> None:
        self.col = dispatch.to_tensor(col)
        self.row = dispatch.to_tensor(row, self.col.dtype)
        super().__init__(self.col.dtype, *hints, **named)

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

    implied = Hints(is_square=True)

    def __init__(self, diagonals: Any, diagonals_format: str = "compact", *hints: Any, **named: Unpack[Hints]) -> None:
        if diagonals_format not in ("matrix", "sequence", "compact"):
            raise ValueError(f"diagonals_format is matrix, sequence or compact, not {diagonals_format!r}")
        self.diagonals, self.diagonals_format = diagonals, diagonals_format
        if diagonals_format == "matrix":
            self._compact = diag_part(dispatch.to_tensor(diagonals), k=(-1, 1), align="LEFT_RIGHT")
        elif diagonals_format == "sequence":
            self._compact = array.stack([dispatch.to_tensor(each) for each in diagonals], axis=-2)
        else:
            self._compact = dispatch.to_tensor(diagonals)
        super().__init__(self._compact.dtype, *hints, **named)

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
        parts, x = with_batch_of(self._parts(adjoint), adjoint_if(x, adjoint_arg))
        return tridiagonal_matmul(parts, x)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        parts, rhs = with_batch_of(self._parts(adjoint), adjoint_if(rhs, adjoint_arg))
        return tridiagonal_solve(parts, rhs)


def _rolled(x: Any, shift: int) -> Any:
    return array.concat([x[..., -shift:], x[..., :-shift]], -1)
