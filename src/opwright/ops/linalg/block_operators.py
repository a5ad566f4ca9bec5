"""Linear operators made of blocks: along the diagonal, below it, and Kronecker products."""

from __future__ import annotations

from typing import Any, Unpack

from ...core.shapes import TensorShape
from .. import array, dispatch
from ..tensor import Tensor
from .linear_operator import LinearOperator, adjoint_if
from .operator_hints import HINTS, Hints, all_hold, hints_of, or_else

__all__ = ["LinearOperatorBlockDiag", "LinearOperatorBlockLowerTriangular", "LinearOperatorKronecker"]


class LinearOperatorBlockDiag(LinearOperator):
    """Operators along the diagonal, zeros elsewhere."""

    def __init__(self, operators: Any, *hints: Any, **named: Unpack[Hints]) -> None:
        self.operators = list(operators)
        if not self.operators:
            raise ValueError("a block diagonal operator needs at least one operator")
        defaults = {hint: all_hold(self.operators, hint) for hint in HINTS}
        options = or_else(hints_of(*hints, **named), **defaults, name="_ds_".join(each.name for each in self.operators))
        super().__init__(self.operators[0].dtype, **options)

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
            x = array.split(adjoint_if(x, adjoint_arg), [getattr(each, side) for each in self.operators], axis=-2)
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

    def __init__(self, operators: Any, *hints: Any, **named: Unpack[Hints]) -> None:
        self.operators = [list(row) for row in operators]
        if (found := [len(row) for row in self.operators]) != list(range(1, len(self.operators) + 1)):
            raise ValueError(
                f"the i-th row of a block lower triangular operator has i + 1 operators, these have {found}"
            )
        diagonal = [row[-1] for row in self.operators]
        options = or_else(hints_of(*hints, **named), is_non_singular=all_hold(diagonal, "is_non_singular"))
        super().__init__(diagonal[0].dtype, **options)

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


class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product of operators: a block of the second for each element of the first."""

    def __init__(self, operators: Any, *hints: Any, **named: Unpack[Hints]) -> None:
        self.operators = list(operators)
        if not self.operators:
            raise ValueError("a Kronecker product needs at least one operator")
        options = or_else(
            hints_of(*hints, **named),
            is_non_singular=all_hold(self.operators, "is_non_singular"),
            name="_x_".join(each.name for each in self.operators),
        )
        super().__init__(self.operators[0].dtype, **options)

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
