"""Linear algebra on matrices: Cholesky, Lu, MatrixDeterminant, LogMatrixDeterminant, MatrixInverse, MatrixSolve,
MatrixTriangularSolve.

Lives here: their rules.
Not here: products (matmul.py), diagonals (diagonals.py), the kernels (../kernels/substitution.py, lu.py).
"""

from __future__ import annotations

import math

from ...core.dtypes import float32, float64, int64
from ..loops.buffers import Buffer, IndexMap
from ..loops.expressions import Expr, apply, arg, const, convert
from ..loops.matrix_ops import CholeskyFactor, LuFactor, LuSolution, TriangularSystem
from ..loops.ops import Map, Move, Reduce, View
from .context import LoweringContext, NoLowering, RuleOperand
from .operand_expressions import truth
from .registry import rule


def _square(x: RuleOperand) -> RuleOperand:
    """Return square matrices of floats. Raises NoLowering for others, and for none."""
    if x.dtype not in (float32, float64) or len(x.shape) < 2 or x.shape[-1] != x.shape[-2] or not x.size:
        raise NoLowering(f"the matrices {x}")
    return x


@rule("Cholesky")
def cholesky(ctx: LoweringContext) -> None:
    """Lower the lower triangular factors of positive definite matrices."""
    x = _square(ctx.operand(0))
    ctx.add(CholeskyFactor, ctx.output(x.shape).buffer, x.buffer)


@rule("MatrixTriangularSolve")
def triangular_solve(ctx: LoweringContext) -> None:
    """Lower the solution of triangular systems."""
    matrix, rhs = _square(ctx.operand(0)), ctx.operand(1)
    y = ctx.output()
    if rhs.dtype is not matrix.dtype or not y.size:
        raise NoLowering(f"right-hand sides {rhs} of {matrix}")
    lower, adjoint = bool(ctx.attr("lower")), bool(ctx.attr("adjoint"))
    ctx.add(TriangularSystem, y.buffer, matrix.buffer, rhs.buffer, lower, adjoint)


def _factors(ctx: LoweringContext, x: RuleOperand, transposed: bool, singular: bool) -> list[Buffer]:
    """Add the factors of matrices by LU; return them, the order of rows and the parity of exchanges."""
    batch, size = x.shape[:-2], x.shape[-1]
    shapes = {".lu": (x.dtype, x.shape), ".rows": (int64, (*batch, size)), ".parity": (x.dtype, batch)}
    results = [ctx.new(dtype, shape, name) for name, (dtype, shape) in shapes.items()]

    def make(packed: Buffer, places: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.add(LuFactor, packed, x.buffer, transposed, singular, places)

    ctx.with_results(make, *results)
    return results


@rule("Lu")
def lu(ctx: LoweringContext) -> None:
    """Lower the factors of invertible matrices with the order of their rows."""
    x = _square(ctx.operand(0))
    factors, rows, _ = _factors(ctx, x, False, False)
    ctx.add(View, ctx.output(x.shape).buffer, factors)
    order = ctx.output(rows.shape, 1).buffer
    ctx.add(Map, order, (rows,), convert(arg(0, int64), order.dtype))


@rule("MatrixInverse")
def inverse(ctx: LoweringContext) -> None:
    """Lower inverses: the solutions for identity matrices."""
    x = _square(ctx.operand(0))
    factors, rows, _ = _factors(ctx, x, bool(ctx.attr("adjoint")), False)
    ctx.add(LuSolution, ctx.output(x.shape).buffer, factors, rows)


@rule("MatrixSolve")
def solve(ctx: LoweringContext) -> None:
    """Lower the solution of linear systems."""
    matrix, rhs = _square(ctx.operand(0)), ctx.operand(1)
    y = ctx.output(rhs.shape)
    if rhs.dtype is not matrix.dtype or rhs.shape[:-1] != matrix.shape[:-1] or not y.size:
        raise NoLowering(f"right-hand sides {rhs} of {matrix}")
    factors, rows, _ = _factors(ctx, matrix, bool(ctx.attr("adjoint")), False)
    ctx.add(LuSolution, y.buffer, factors, rows, rhs.buffer)


@rule("MatrixDeterminant", "LogMatrixDeterminant")
def determinant(ctx: LoweringContext) -> None:
    """Lower determinants, or their signs and the logarithms of their magnitudes, by sums of logarithms in float64."""
    x = _square(ctx.operand(0))
    batch, size = x.shape[:-2], x.shape[-1]
    factors, _, parity = _factors(ctx, x, False, True)
    pivots = ctx.new(x.dtype, (*batch, size), ".pivots")
    with ctx.reshaped(pivots, (math.prod(batch), size)) as out:
        ctx.add(Move, out, (factors,), (IndexMap((0, 0), out.shape, 0, (size * size, size + 1)),))
    logarithms, signs = ctx.new(float64, pivots.shape, ".logarithms"), ctx.new(x.dtype, pivots.shape, ".signs")
    magnitude = apply("abs", convert(arg(0, x.dtype), float64))
    ctx.add(Map, logarithms, (pivots,), apply("log", magnitude))
    ctx.add(Map, signs, (pivots,), apply("sign", arg(0, x.dtype)))
    total, sign = ctx.new(float64, batch, ".total"), ctx.new(x.dtype, batch, ".sign")
    axis = len(batch)
    ctx.add(Reduce, total, logarithms, (axis,), "sum", arg(0, float64), arg(0, float64))
    ctx.add(Reduce, sign, signs, (axis,), "prod", arg(0, x.dtype), arg(0, x.dtype))
    of_rows = apply("mul", arg(0, x.dtype), arg(1, x.dtype))
    is_zero = truth("equal", arg(0, x.dtype), const(0.0, x.dtype))
    finite = Expr("select", float64, (is_zero, const(-math.inf, float64), arg(2, float64)))
    y = ctx.output(batch).buffer
    if ctx.operator == "LogMatrixDeterminant":
        ctx.add(Map, y, (sign, parity), of_rows)
        ctx.add(Map, ctx.output(batch, 1).buffer, (sign, parity, total), convert(finite, x.dtype))
        return
    value = apply("mul", convert(of_rows, float64), apply("exp", finite))
    ctx.add(Map, y, (sign, parity, total), convert(value, x.dtype))
