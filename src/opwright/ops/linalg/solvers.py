"""Systems of linear equations, inverses and determinants.

Lives here: MatrixInverse, MatrixDeterminant, LogMatrixDeterminant, MatrixSolve, MatrixTriangularSolve, their functions.
Not here: decompositions (factorization.py), least squares (matrix_functions.py).
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape, broadcast
from .. import array, lod_propagation, math
from ..attributes import Attr
from ..definition import operator
from ..math.arithmetic import _conj
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .diagonals import band_part
from .matmul import product

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from .. import signatures

SOLVABLE = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


def matrix_shape(x: Any, square: bool = True) -> TensorShape:
    """Return the static shape of an input of matrices. square: whether they must be square.

    raises InvalidArgumentError for a rank below 2, or matrices that are not square although they must be
    """
    shape = x.spec.shape
    if shape.rank is None:
        return UNKNOWN
    if shape.rank < 2:
        raise InvalidArgumentError(what=f"Input tensor must have rank >= 2, got {shape.rank}", found=x.spec.short())
    m, n = shape.dims[-2:]
    if not square:
        result: TensorShape = shape
        return result
    if None not in (m, n) and m != n:
        raise InvalidArgumentError(what="Input matrix must be square", found=x.spec.short())
    n = n if m is None else m
    return TensorShape([*shape.dims[:-2], n, n])


def as_column(x: Any) -> Tensor:
    """Reshape one number per matrix to [..., 1, 1]."""
    return array.expand_dims(array.expand_dims(x, -1), -1)


@operator
class MatrixInverse(OperatorDefinition):
    """Compute the inverse of square matrices.

    .. math:: output = input^{-1}, \\quad \\text{or } (input^H)^{-1} \\text{ if adjoint}

    input: [..., n, n].
    raises InvalidArgumentError for singular matrices
    """

    input = Input(SOLVABLE)
    output = Output(like="input")
    adjoint = Attr(bool, default=False)
    lod = lod_propagation.batched("input", 2)

    def infer(op) -> TensorSpec:
        return op.input.spec.with_shape(matrix_shape(op.input))

    def compute(op, input: Any) -> np.ndarray:
        x = np.swapaxes(input, -1, -2).conj() if op.adjoint else input
        try:
            return np.linalg.inv(x)
        except np.linalg.LinAlgError:
            raise InvalidArgumentError(what="Input is not invertible.", wanted="matrices of full rank") from None

    def gradient(op, doutput: Any) -> Tensor:
        y = op.output
        if op.adjoint:
            return -product(y, product(doutput, y, adjoint_a=True))
        return -product(y, product(doutput, y, adjoint_b=True), adjoint_a=True)


@documented_by(MatrixInverse)
def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Return the inverse of matrices."""
    return MatrixInverse(input, adjoint=adjoint, name=name)


def _nan_of_nan(matrices: np.ndarray, values: Any) -> np.ndarray:
    """Return a value for each matrix, NaN for those with a NaN: LAPACK takes it for a pivot of 0, as 0 is no less."""
    result: np.ndarray = np.where(np.isnan(matrices).any((-2, -1)), np.nan, values)
    return result


@operator
class MatrixDeterminant(OperatorDefinition):
    """Compute the determinant of square matrices. Differentiable for invertible matrices.

    .. math:: output = \\det input

    input: [..., n, n]; output: [...].
    """

    input = Input(SOLVABLE)
    output = Output(like="input")
    lod = lod_propagation.batched("input", 2)

    def infer(op) -> TensorSpec:
        shape = matrix_shape(op.input)
        return op.input.spec.with_shape(shape if shape.dims is None else shape.dims[:-2])

    def compute(op, input: np.ndarray) -> np.ndarray:
        return _nan_of_nan(input, np.linalg.det(input))

    def gradient(op, doutput: Any) -> Tensor:
        return as_column(doutput * _conj(op.output)) * MatrixInverse(op.input, adjoint=True)


det: signatures.MatrixDeterminant = MatrixDeterminant.as_function("det")


# The result of `slogdet`, printed under TensorFlow's name.
LogDet = namedtuple("LogMatrixDeterminant", ["sign", "log_abs_determinant"])  # type: ignore[name-match]


@operator
class LogMatrixDeterminant(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Compute sign and logarithm of the absolute value of determinants; 0 and minus infinity for singular matrices.

    .. math:: \\det input = sign \\cdot e^{log\\_abs\\_determinant}

    input: [..., n, n]; sign, log_abs_determinant: [...], of input's dtype; the sign of a complex one has size 1.
    """

    input = Input(SOLVABLE)
    sign = Output(like="input")
    log_abs_determinant = Output(like="input")
    lod = lod_propagation.batched("input", 2)

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        shape = matrix_shape(op.input)
        spec = op.input.spec.with_shape(shape if shape.dims is None else shape.dims[:-2])
        return spec, spec

    def compute(op, input: Any) -> tuple[Any, Any]:
        sign, log_abs = np.linalg.slogdet(input)
        sign, log_abs = _nan_of_nan(input, sign), _nan_of_nan(input, log_abs)
        return sign.astype(input.dtype), log_abs.astype(input.dtype)

    def gradient(op, dsign: Any, dlog: Any) -> Tensor:
        # d log det = tr(input^-1 d input): the real part changes the logarithm, the imaginary part rotates the sign
        if op.input.dtype.is_complex:
            dlog = math.complex(math.real(dlog), -math.imag(_conj(dsign) * op.sign))
        return as_column(dlog) * MatrixInverse(op.input, adjoint=True)


@documented_by(LogMatrixDeterminant)
def slogdet(input: Any, name: str | None = None) -> LogDet:
    """Return the sign and the logarithm of the absolute value of determinants."""
    return LogDet(*LogMatrixDeterminant(input, name=name))


@operator
class MatrixSolve(OperatorDefinition):
    """Solve systems of linear equations.

    .. math:: matrix \\cdot output = rhs, \\quad \\text{or } matrix^H \\cdot output = rhs \\text{ if adjoint}

    matrix: [..., n, n]; rhs: [..., n, k]; output: [..., n, k].
    raises InvalidArgumentError for singular matrices or inconsistent shapes
    """

    matrix = Input(SOLVABLE)
    rhs = Input(SOLVABLE, like="matrix")
    output = Output(like="rhs")
    adjoint = Attr(bool, default=False)
    lod = lod_propagation.batched("matrix", 2)

    def infer(op) -> TensorSpec:
        matrix, rhs = matrix_shape(op.matrix), op.rhs.spec
        if rhs.shape.rank is None:
            return rhs.with_shape(matrix.dims and TensorShape([*matrix.dims[:-1], None]))
        if matrix.dims is None:
            return rhs
        if len(matrix.dims) != rhs.shape.rank:
            raise InvalidArgumentError(
                what="All input tensors must have the same rank", found=f"{op.matrix.spec.short()}, {rhs.short()}"
            )
        if not matrix[:-1].is_compatible_with(rhs.shape[:-1]):
            raise InvalidArgumentError(
                what="Input matrix and rhs are incompatible", found=f"{op.matrix.spec.short()}, {rhs.short()}"
            )
        return rhs.with_shape([*matrix[:-1].merge_with(rhs.shape[:-1]), rhs.shape[-1]])

    def compute(op, matrix: Any, rhs: Any) -> np.ndarray:
        try:
            return np.linalg.solve(np.swapaxes(matrix, -1, -2).conj() if op.adjoint else matrix, rhs)
        except np.linalg.LinAlgError:
            raise InvalidArgumentError(what="Input matrix is not invertible.", wanted="matrices of full rank") from None

    def gradient(op, doutput: Any) -> tuple[Any, Tensor]:
        drhs = MatrixSolve(op.matrix, doutput, adjoint=not op.adjoint)
        if op.adjoint:
            return -product(op.output, drhs, adjoint_b=True), drhs
        return -product(drhs, op.output, adjoint_b=True), drhs


@documented_by(MatrixSolve)
def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Solve systems of linear equations."""
    return MatrixSolve(matrix, rhs, adjoint=adjoint, name=name)


@operator
class MatrixTriangularSolve(OperatorDefinition):
    """Solve triangular systems of linear equations by substitution. Reads only one triangle.

    .. math:: matrix \\cdot output = rhs, \\quad \\text{or } matrix^H \\cdot output = rhs \\text{ if adjoint}

    matrix: [..., n, n]; rhs: [..., n, k]; batches broadcast. lower: read the lower triangle, else the upper.
    raises InvalidArgumentError for a zero on the diagonal or inconsistent shapes
    """

    matrix = Input(SOLVABLE)
    rhs = Input(SOLVABLE, like="matrix")
    output = Output(like="rhs")
    lower = Attr(bool, default=True)
    adjoint = Attr(bool, default=False)
    no_need_buffer = ("rhs",)
    lod = lod_propagation.batched("matrix", 2)

    def infer(op) -> TensorSpec:
        matrix, rhs = matrix_shape(op.matrix), matrix_shape(op.rhs, square=False)
        if matrix.dims is None or rhs.dims is None:
            return op.rhs.spec.with_shape(UNKNOWN)
        m, n = matrix.dims[-1], rhs.dims[-2]
        if None not in (m, n) and m != n:
            raise InvalidArgumentError(
                what="Input matrix and rhs are incompatible", found=f"{op.matrix.spec.short()}, {op.rhs.spec.short()}"
            )
        batch = broadcast(TensorShape(matrix.dims[:-2]), TensorShape(rhs.dims[:-2]))
        return op.rhs.spec.with_shape([*batch, n if m is None else m, rhs.dims[-1]])

    def compute(op, matrix: Any, rhs: Any) -> np.ndarray:
        n = matrix.shape[-1]
        diagonal = np.diagonal(matrix, axis1=-2, axis2=-1)
        if not diagonal.all():
            raise InvalidArgumentError(what="Input matrix is not invertible.", wanted="matrices of full rank")
        a = np.swapaxes(matrix, -1, -2).conj() if op.adjoint else matrix
        x = np.array(np.broadcast_to(rhs, (*np.broadcast_shapes(a.shape[:-2], rhs.shape[:-2]), *rhs.shape[-2:])))
        downward = op.lower != op.adjoint
        for i in range(n) if downward else reversed(range(n)):
            done = slice(0, i) if downward else slice(i + 1, n)
            x[..., i, :] -= np.matmul(a[..., i, None, done], x[..., done, :])[..., 0, :]
            x[..., i, :] /= a[..., i, i, None]
        return x

    def gradient(op, doutput: Any) -> tuple[Any, Any]:
        drhs = MatrixTriangularSolve(op.matrix, doutput, lower=op.lower, adjoint=not op.adjoint)
        x = op.output
        dmatrix = -(product(x, drhs, adjoint_b=True) if op.adjoint else product(drhs, x, adjoint_b=True))
        half = band_part(dmatrix, -1, 0) if op.lower else band_part(dmatrix, 0, -1)
        return array.sum_to_shape_of(half, op.matrix), array.sum_to_shape_of(drhs, op.rhs)


@documented_by(MatrixTriangularSolve)
def triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solve triangular systems of linear equations."""
    return MatrixTriangularSolve(matrix, rhs, lower=lower, adjoint=adjoint, name=name)
