"""Diagonals and bands of matrices.

Lives here: MatrixDiag, MatrixDiagPart, MatrixSetDiag, MatrixBandPart; diag, diag_part, set_diag, band_part, trace,
tensor_diag, tensor_diag_part.
Not here: transposition (einsum.py), eye (ops/array).

A band of diagonals is packed as rows of the length of the longest, from the highest diagonal down. Shorter ones are
aligned to the left or the right of their rows according to `align`: first for superdiagonals, then for subdiagonals.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from .. import array, debugging, dispatch, like_device, lod_propagation, math
from ..attributes import Attr, length, one_of
from ..definition import operator
from ..math.reduction import Prod, Sum
from ..registry import documented_by
from ..shape_inference import is_static, static_axes, static_int
from ..slots import Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor

_ANY = tuple(d for d in dtypes.ALL if d is not dtypes.string)
_ALIGN = one_of("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def _bounds(k: Any) -> tuple[int, int]:
    """Return the lowest and the highest diagonal of k."""
    bounds = static_axes(k, "k")
    if bounds is None or len(bounds) not in (1, 2):
        raise TypeError(f"k is one integer or two; found {k!r}")
    return bounds[0], bounds[-1]


def _longest(k: tuple[int, ...], rows: int, columns: int) -> int:
    """Return the length of the longest diagonal of a band. Raises InvalidArgumentError if it is out of bounds."""
    low, high = k
    if low > high:
        raise InvalidArgumentError(what=f"lower_diag_index must not be larger than upper_diag_index: {low} > {high}")
    for name, diagonal in (("lower", low), ("upper", high)):
        if not -rows < diagonal < columns and diagonal != 0:
            raise InvalidArgumentError(
                what=f"{name}_diag_index is out of bound: {diagonal}. It must be between {-rows} and {columns}"
            )
    return min(rows + min(high, 0), columns - max(low, 0))


def packing(k: tuple[int, ...], rows: int, columns: int, align: str) -> Iterator[tuple[int, slice, Any, Any]]:
    """Iterate over diagonals: row and slice of the packed form, row and column indices of the matrix."""
    longest = _longest(k, rows, columns)
    above, below = (side == "RIGHT" for side in align.split("_"))
    for d in range(k[1], k[0] - 1, -1):
        n = max(0, min(rows + min(d, 0), columns - max(d, 0)))
        start = longest - n if (above if d >= 0 else below) else 0
        positions = np.arange(n)
        yield k[1] - d, slice(start, start + n), positions + max(-d, 0), positions + max(d, 0)


def _packed_dims(dims: Any, k: tuple[int, ...]) -> list[int | None]:
    """Infer the shape of a packed band of matrices of shape `dims`."""
    rows, columns = dims[-2:]
    longest = None if None in (rows, columns) else _longest(k, rows, columns)
    return [*dims[:-2], *([k[1] - k[0] + 1] if k[0] != k[1] else []), longest]


def _check_matrix(spec: TensorSpec) -> None:
    if spec.shape.rank is not None and spec.shape.rank < 2:
        raise InvalidArgumentError(what="input must be at least 2-dim", found=spec.short())


def _diagonal_origin(k: Any) -> tuple[Any, Any]:
    """Return row and column of the first element of a diagonal whose index is a tensor."""
    if isinstance(k, (list, tuple)) and len(k) != 1:
        raise TypeError(f"k: the bounds of a band must be known while tracing; found {k!r}")
    diagonal: Any = array.cast(k[0] if isinstance(k, (list, tuple)) else k, dtypes.int32)
    diagonal = diagonal if diagonal.shape.rank == 0 else array.reshape(diagonal, [])
    return math.maximum(-diagonal, 0), math.maximum(diagonal, 0)


def _matrix_paddings(x: Any, pairs: Any) -> Tensor:
    """Return paddings of the last two dimensions of a tensor. pairs: [[above, below], [left, right]]."""
    first = array.zeros(array.stack([array.rank(x) - 2, 2]), dtypes.int32)
    return array.concat([first, array.stack([array.stack(list(p)) for p in pairs])], 0)


def _diag_run_time(diagonal: Any, k: Any, rows: Any, columns: Any, padding: Any, name: str | None = None) -> Tensor:
    """Compute `diag` for a diagonal index known only at run time.

    rows, columns: None for the smallest number; if both are None, the matrices are square.
    """
    above, left = _diagonal_origin(k)
    square = MatrixDiag(diagonal, padding, k=(0, 0))
    n = array.shape_op(diagonal)[-1]
    below = rows - n - above if rows is not None else left if columns is None else 0
    right = columns - n - left if columns is not None else above if rows is None else 0
    paddings = _matrix_paddings(square, ((above, below), (left, right)))
    return array.pad(square, paddings, constant_values=padding, name=name)


def _submatrix_from(x: Any, k: Any) -> Tensor:
    """Slice matrices from the first element of a diagonal whose index is a tensor."""
    above, left = _diagonal_origin(k)
    shape = array.shape_op(x)
    inside = ((above == 0) | (above < shape[-2])) & ((left == 0) | (left < shape[-1]))
    debugging.Assert(inside, ["lower_diag_index is out of bound:", k])
    return array.getitem(x, (..., slice(above, None), slice(left, None)))


@operator
class MatrixDiag(OperatorDefinition):
    """Return matrices with given diagonals, and `padding_value` elsewhere.

    .. math:: output_{ij} = diagonal_{k_1 - d, i + min(d, 0) + offset} \\text{ with } d = j - i, \\; k_0 \\le d \\le k_1

    diagonal: [..., length], or [..., diagonals, length] for a band; k: the lowest and the highest diagonal, 0 the main
    one; num_rows, num_cols: -1 for the smallest number, if both are, square matrices; align: of a packed band.
    raises InvalidArgumentError for inconsistent sizes
    """

    diagonal = Input(_ANY)
    padding_value = Input(_ANY, rank=0, like="diagonal")
    output = Output(like="diagonal")
    k = Attr([int], default=(0, 0), check=length(2))
    num_rows = Attr(int, default=-1)
    num_cols = Attr(int, default=-1)
    align = Attr(str, default="RIGHT_LEFT", check=_ALIGN)
    no_need_buffer = ("diagonal", "padding_value")

    def lod(op) -> str:
        return lod_propagation.batched("diagonal", 1 if op.k[0] == op.k[1] else 2)(op)

    def sizes(op, dims: Any) -> tuple[Any, Any]:
        """Return the numbers of rows and columns, None if unknown, for a diagonal of shape `dims`."""
        low, high = op.k
        if low > high:
            raise InvalidArgumentError(
                what=f"lower_diag_index must not be larger than upper_diag_index: {low} > {high}"
            )
        if len(dims) < (1 if low == high else 2):
            raise InvalidArgumentError(
                what="diagonal must be at least 1-dim",
                found=list(dims),
                wanted=f"[..., {'' if low == high else 'diagonals, '}length]",
            )
        if low != high and dims[-2] not in (None, high - low + 1):
            raise InvalidArgumentError(
                what="The number of diagonals provided in the input does not match the "
                "lower_diag_index and upper_diag_index range",
                found=list(dims),
            )
        if dims[-1] is None:
            return (None if op.num_rows < 0 else op.num_rows), (None if op.num_cols < 0 else op.num_cols)
        min_rows, min_cols = dims[-1] - min(high, 0), dims[-1] + max(low, 0)
        rows, cols = op.num_rows, op.num_cols
        if rows < 0 and cols < 0:
            rows = cols = max(min_rows, min_cols)
        rows, cols = min_rows if rows < 0 else rows, min_cols if cols < 0 else cols
        for name, size, minimum in (("rows", rows, min_rows), ("columns", cols, min_cols)):
            if size < minimum:
                raise InvalidArgumentError(
                    what=f"The number of {name} is too small", found=size, wanted=f"at least {minimum}"
                )
        if rows != min_rows and cols != min_cols:
            raise InvalidArgumentError(
                what="The number of rows or columns is not consistent with the specified"
                " d_lower, d_upper, and diagonal",
                found=f"{rows} x {cols}",
                wanted=f"{min_rows} rows or {min_cols} columns",
            )
        return rows, cols

    def infer(op) -> TensorSpec:
        spec = op.diagonal.spec
        if spec.shape.dims is None:
            return spec
        batch = spec.shape.dims[: -1 if op.k[0] == op.k[1] else -2]
        return TensorSpec([*batch, *op.sizes(spec.shape.dims)], spec.dtype)

    def compute(op, diagonal: Any, padding_value: Any) -> np.ndarray:
        rows, cols = op.sizes(diagonal.shape)
        band = diagonal[..., None, :] if op.k[0] == op.k[1] else diagonal
        out = like_device.full(diagonal, (*band.shape[:-2], rows, cols), padding_value, diagonal.dtype)
        for row, span, i, j in packing(op.k, rows, cols, op.align):
            out[..., i, j] = band[..., row, span]
        return out

    def gradient(op, doutput: Any) -> tuple[Any, Any]:
        off_band = MatrixSetDiag(doutput, array.zeros_like(op.diagonal), k=op.k, align=op.align)
        return _part(doutput, op.k, op.align), array.sum_to_shape_of(off_band, op.padding_value)


@operator
class MatrixDiagPart(OperatorDefinition):
    """Return packed diagonals of matrices; shorter ones are padded with `padding_value`.

    .. math:: output_{k_1 - d, l + offset} = input_{l + max(-d, 0),\\, l + max(d, 0)}

    input: [..., m, n]; k: the lowest and the highest diagonal, 0 the main one; align: of a packed band.
    Output: [..., length] for one diagonal, else [..., diagonals, longest].
    raises InvalidArgumentError for diagonals outside the matrix
    """

    input = Input(_ANY)
    padding_value = Input(_ANY, rank=0, like="input")
    output = Output(like="input")
    k = Attr([int], default=(0, 0), check=length(2))
    align = Attr(str, default="RIGHT_LEFT", check=_ALIGN)
    no_need_buffer = ("input", "padding_value")
    lod = lod_propagation.batched("input", 2)

    def infer(op) -> TensorSpec:
        spec = op.input.spec
        _check_matrix(spec)
        return spec if spec.shape.dims is None else TensorSpec(_packed_dims(spec.shape.dims, op.k), spec.dtype)

    def compute(op, input: Any, padding_value: Any) -> np.ndarray:
        rows, cols = input.shape[-2:]
        shape = (*input.shape[:-2], op.k[1] - op.k[0] + 1, _longest(op.k, rows, cols))
        out = like_device.full(input, shape, padding_value, input.dtype)
        for row, span, i, j in packing(op.k, rows, cols, op.align):
            out[..., row, span] = input[..., i, j]
        return out[..., 0, :] if op.k[0] == op.k[1] else out

    def gradient(op, doutput: Any) -> tuple[Tensor, Any]:
        dinput = MatrixSetDiag(array.zeros_like(op.input), doutput, k=op.k, align=op.align)
        if op.k[0] == op.k[1]:
            return dinput, array.zeros_like(op.padding_value)  # a single diagonal has no padding
        inside = MatrixDiagPart(array.ones_like(op.input), array.zeros_like(op.padding_value), k=op.k, align=op.align)
        return dinput, array.sum_to_shape_of(doutput * (1 - inside), op.padding_value)


def _part(x: Any, k: tuple[int, ...], align: str) -> Tensor:
    return MatrixDiagPart(x, array.zeros([], x.dtype), k=k, align=align)


@operator
class MatrixSetDiag(OperatorDefinition):
    """Replace diagonals of matrices.

    .. math::
        output_{ij} = diagonal_{k_1 - d, i + min(d, 0) + offset}
        \\text{ if } k_0 \\le d = j - i \\le k_1 \\text{ else } input_{ij}

    input: [..., m, n]; diagonal: [..., length] for one, [..., diagonals, longest] for a band; k, align: as in
    MatrixDiagPart.
    raises InvalidArgumentError for inconsistent sizes
    """

    input = Input(_ANY)
    diagonal = Input(_ANY, like="input")
    output = Output(like="input")
    k = Attr([int], default=(0, 0), check=length(2))
    align = Attr(str, default="RIGHT_LEFT", check=_ALIGN)
    no_need_buffer = ("diagonal",)
    lod = lod_propagation.batched("input", 2)

    def infer(op) -> TensorSpec:
        spec, diagonal = op.input.spec, op.diagonal.spec
        _check_matrix(spec)
        if spec.shape.dims is not None:
            expected = TensorSpec(_packed_dims(spec.shape.dims, op.k), spec.dtype)
            if not expected.shape.is_compatible_with(diagonal.shape):
                raise InvalidArgumentError(
                    what="diagonal does not fit input and k", found=diagonal.short(), wanted=expected.short()
                )
        return spec

    def compute(op, input: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        rows, cols = input.shape[-2:]
        band = diagonal[..., None, :] if op.k[0] == op.k[1] else diagonal
        if band.shape != (*input.shape[:-2], op.k[1] - op.k[0] + 1, _longest(op.k, rows, cols)):
            raise InvalidArgumentError(what="diagonal does not fit input and k", found=list(diagonal.shape))
        out = input.copy()
        for row, span, i, j in packing(op.k, rows, cols, op.align):
            out[..., i, j] = band[..., row, span]
        return out

    def gradient(op, doutput: Any) -> tuple[Tensor, Any]:
        dinput = MatrixSetDiag(doutput, array.zeros_like(op.diagonal), k=op.k, align=op.align)
        return dinput, _part(doutput, op.k, op.align)


@documented_by(MatrixDiag)
def diag(
    diagonal: Any,
    name: str | None = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Return matrices with given diagonals. k: one diagonal, or the lowest and the highest."""
    rows, columns = static_int(num_rows, "num_rows"), static_int(num_cols, "num_cols")
    diagonal = dispatch.to_tensor(diagonal)
    padding = _padding(padding_value, diagonal.dtype)
    if not is_static(k):
        return _diag_run_time(diagonal, k, None if rows < 0 else rows, None if columns < 0 else columns, padding, name)
    return MatrixDiag(diagonal, padding, k=_bounds(k), num_rows=rows, num_cols=columns, align=align, name=name)


def _padding(value: Any, dtype: Any) -> Tensor:
    return dispatch.to_tensor(bool(value) if dtype.is_bool and not hasattr(value, "dtype") else value, dtype)


@documented_by(MatrixDiagPart)
def diag_part(
    input: Any, name: str | None = "diag_part", k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Return diagonals of matrices. k: one diagonal, or the lowest and the highest."""
    input = dispatch.to_tensor(input)
    if not is_static(k):
        return diag_part(_submatrix_from(input, k), name)
    return MatrixDiagPart(input, _padding(padding_value, input.dtype), k=_bounds(k), align=align, name=name)


@documented_by(MatrixSetDiag)
def set_diag(input: Any, diagonal: Any, name: str | None = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Replace diagonals of matrices. k: one diagonal, or the lowest and the highest."""
    if not is_static(k):
        input = dispatch.to_tensor(input)
        diagonal, shape = dispatch.to_tensor(diagonal, input.dtype), array.shape_op(input)
        sizes = shape[-2], shape[-1]
        on_diagonal = _diag_run_time(
            array.ones(array.shape_op(diagonal), dtypes.bool), k, *sizes, dispatch.to_tensor(False)
        )
        return array.where(
            on_diagonal, _diag_run_time(diagonal, k, *sizes, array.zeros([], input.dtype)), input, name=name
        )
    return MatrixSetDiag(input, diagonal, k=_bounds(k), align=align, name=name)


@operator
class MatrixBandPart(OperatorDefinition):
    """Set the elements of matrices outside a band around the main diagonal to zero.

    .. math:: output_{ij} = input_{ij} \\text{ if } i - j \\le lower \\text{ and } j - i \\le upper \\text{ else } 0

    input: [..., m, n]; num_lower, num_upper: scalars, the numbers of subdiagonals and superdiagonals; all if negative.
    raises InvalidArgumentError for numbers that exceed rows or columns
    """

    input = Input(_ANY)
    num_lower = Input(index, rank=0)
    num_upper = Input(index, rank=0, like="num_lower")
    output = Output(like="input")
    lod = lod_propagation.batched("input", 2)

    def infer(op) -> TensorSpec:
        spec = op.input.spec
        _check_matrix(spec)
        if spec.shape.dims is None:
            return TensorSpec(UNKNOWN, spec.dtype)
        for name, number, size in (
            ("num_lower", op.num_lower.constant, spec.shape.dims[-2]),
            ("num_upper", op.num_upper.constant, spec.shape.dims[-1]),
        ):
            if number is not None and size is not None and number > size:
                what = "rows" if name == "num_lower" else "columns"
                raise InvalidArgumentError(
                    what=f"{name} must be negative or less or equal to number of {what} ({size}) got: {int(number)}"
                )
        return spec

    def compute(op, input: np.ndarray, num_lower: np.ndarray, num_upper: np.ndarray) -> np.ndarray:
        i, j = like_device.arange(input, input.shape[-2])[:, None], like_device.arange(input, input.shape[-1])
        inside = ((num_lower < 0) | (i - j <= num_lower)) & ((num_upper < 0) | (j - i <= num_upper))
        return np.where(inside, input, input.dtype.type(0))

    def gradient(op, doutput: Any) -> tuple[Tensor, None, None]:
        return MatrixBandPart(doutput, op.num_lower, op.num_upper), None, None


band_part: signatures.MatrixBandPart = MatrixBandPart.as_function("band_part")


@documented_by(MatrixDiagPart)
def trace(x: Any, name: str | None = None) -> Tensor:
    """Return the trace of each matrix: output[...] = sum over i of x[..., i, i]."""
    return Sum(diag_part(x), axis=(-1,), name=name)


@documented_by(MatrixDiag)
def tensor_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """Return a diagonal tensor of twice the rank: `diagonal` where both halves of the index agree, zeros
    elsewhere.
    """
    diagonal = dispatch.to_tensor(diagonal)
    shape = array.shape_op(diagonal)
    return array.reshape(diag(array.reshape(diagonal, [-1])), array.concat([shape, shape], 0), name=name)


@documented_by(MatrixDiagPart)
def tensor_diag_part(input: Any, name: str | None = None) -> Tensor:
    """Return the diagonal of a tensor of even rank: the elements at which both halves of the index agree.

    raises InvalidArgumentError if the halves of the shape differ
    """
    input = dispatch.to_tensor(input)
    rank, dims = input.shape.rank, input.shape
    if rank is None or rank % 2 or not dims[: rank // 2].is_compatible_with(dims[rank // 2 :]):
        raise InvalidArgumentError(op="MatrixDiagPart", what="the two halves of the shape differ", found=str(dims))
    half = array.shape_op(input)[: rank // 2]
    side = Prod(half)
    return array.reshape(diag_part(array.reshape(input, [side, side])), half, name=name)
