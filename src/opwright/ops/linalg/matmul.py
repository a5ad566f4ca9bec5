"""Matrix products.

Lives here: MatMul; matmul, matvec, tensordot.  Not here: Einstein summation (einsum.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, as_dtype, numeric
from ...core.specs import TensorSpec
from .. import array, dispatch, lod_propagation
from ..accumulation import widened
from ..array_shapes import product_dims
from ..attributes import Attr
from ..definition import operator
from ..math.arithmetic import _conj
from ..registry import documented_by
from ..shape_inference import axis_in, known_value, static_axes
from ..slots import Input, OperatorDefinition, Output
from ..strategies import Strategies, Strategy

if TYPE_CHECKING:
    from ..tensor import Tensor


@operator
class MatMul(OperatorDefinition):
    """Multiply matrices, the last two dimensions; leading dimensions are batches and broadcast.

    .. math:: output_{ij} = \\sum_k a_{ik} b_{kj}

    a: [..., m, k], b: [..., k, n], of one dtype; output [..., m, n]. transpose_a: a is [..., k, m]; adjoint_a: a is the
    conjugate transpose; the same for b. output_type: int8 may be accumulated in int32. 16-bit floats are accumulated
    in float32.
    raises InvalidArgumentError if inner sizes differ, batches do not broadcast, or a rank is below 2
    """

    a = Input(numeric)
    b = Input(numeric, like="a")
    output = Output()
    transpose_a = Attr(bool, default=False)
    transpose_b = Attr(bool, default=False)
    adjoint_a = Attr(bool, default=False)
    adjoint_b = Attr(bool, default=False)
    output_type = Attr(DType, default=None)
    lod = lod_propagation.matmul

    def infer(op) -> TensorSpec:
        dims = product_dims(op.a.spec, op.b.spec, op.transpose_a or op.adjoint_a, op.transpose_b or op.adjoint_b)
        return TensorSpec(dims, op.output_type or op.a.spec.dtype)

    def compute(op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        dtype = a.dtype if op.output_type is None else op.output_type.np
        if op.output_type is not None:
            a, b = a.astype(dtype), b.astype(dtype)
        if dtype.itemsize == 2:
            a, b = widened(a), widened(b)
        if op.transpose_a or op.adjoint_a:
            a = (a.conj() if op.adjoint_a else a).swapaxes(-1, -2)
        if op.transpose_b or op.adjoint_b:
            b = (b.conj() if op.adjoint_b else b).swapaxes(-1, -2)
        product: np.ndarray = np.matmul(a, b) if a.ndim == 2 else MATMUL(op, a, b)
        return product if product.dtype == dtype else product.astype(dtype)

    def gradient(op, doutput: Any) -> tuple[Any, Any]:
        transposed_a, transposed_b = op.transpose_a or op.adjoint_a, op.transpose_b or op.adjoint_b
        # the transpose of a complex factor is the adjoint of its conjugate
        a = _conj(op.a) if op.transpose_a else op.a
        b = _conj(op.b) if op.transpose_b else op.b
        da = db = None
        if op.needs_gradient("a"):
            da = (
                product(b, doutput, transposed_b, True)
                if transposed_a
                else product(doutput, b, False, not transposed_b)
            )
            da = array.sum_to_shape_of(_conj(da) if op.transpose_a else da, op.a)
        if op.needs_gradient("b"):
            db = (
                product(doutput, a, True, transposed_a)
                if transposed_b
                else product(a, doutput, not transposed_a, False)
            )
            db = array.sum_to_shape_of(_conj(db) if op.transpose_b else db, op.b)
        return da, db


def _flat(op: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute all batches as rows of one product; np.matmul would compute one small product per batch."""
    result: np.ndarray = np.matmul(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[-1])
    return result


MATMUL = Strategies(
    "MatMul",
    lambda op, a, b: np.matmul(a, b),
    Strategy(
        "flat",
        _flat,
        lambda op, a, b: b.ndim == 2 and a.shape[-2] == 1 and a.size > 4 * a.shape[-1],
        "one row in each of more than 4 batches, times one matrix",
        "matmul_flat",
        fits=lambda op, a, b: b.ndim == 2 and a.size > 0,
        tolerance=4096,
    ),
    prepare=lambda op, a, b: (
        np.swapaxes(a, -1, -2) if op.transpose_a or op.adjoint_a else a,
        np.swapaxes(b, -1, -2) if op.transpose_b or op.adjoint_b else b,
    ),
)


def product(a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False) -> Tensor:
    """Multiply tensors, optionally by adjoints; for real tensors, record transposes."""
    key = adjoint_a, adjoint_b, a.dtype.is_complex
    bound = _bound.get(key)
    if bound is None:
        flags = ("adjoint_a", "adjoint_b") if key[2] else ("transpose_a", "transpose_b")
        bound = _bound[key] = MatMul.bind(dict(zip(flags, key)))
    result: Tensor = dispatch.call(MatMul, (a, b), bound)
    return result


_bound: dict[tuple[bool, bool, bool], Any] = {}  # the attributes of `product`, by its arguments and complex or not


@documented_by(MatMul)
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the matrix product. a_is_sparse, b_is_sparse, grad_a, grad_b: hints without effect.

    raises ValueError for transposing and adjoining the same matrix
    """
    if output_type is None and not (transpose_a or transpose_b or adjoint_a or adjoint_b):
        factors = _of_one_dtype(a, b, None)
        product: Tensor = dispatch.call(MatMul, factors, MatMul._default or MatMul.default_call(), name)
        return product
    for x, transpose, adjoint in (("a", transpose_a, adjoint_a), ("b", transpose_b, adjoint_b)):
        if transpose and adjoint:
            raise ValueError(
                f"Only one of `transpose_{x}` and `adjoint_{x}` can be True. "
                f"Received `transpose_{x}`=True, `adjoint_{x}`=True."
            )
    dtype = getattr(a, "dtype", None) or getattr(b, "dtype", None)
    if isinstance(dtype, DType) and not dtype.is_complex:
        transpose_a, transpose_b = transpose_a or adjoint_a, transpose_b or adjoint_b
        adjoint_a = adjoint_b = False
    a, b = _of_one_dtype(a, b, None if output_type is None else as_dtype(output_type))
    return MatMul(
        a,
        b,
        transpose_a=bool(transpose_a),
        transpose_b=bool(transpose_b),
        adjoint_a=bool(adjoint_a),
        adjoint_b=bool(adjoint_b),
        output_type=None if output_type is None else as_dtype(output_type),
        name=name,
    )


def _of_one_dtype(a: Any, b: Any, output_type: DType | None) -> tuple[Any, Any]:
    """Cast factors to a common dtype: bfloat16 and float32 to float32, 8-bit integers to the output's.

    Other pairs are returned unchanged, and rejected by the operator.
    """
    a_dtype, b_dtype = getattr(a, "dtype", None), getattr(b, "dtype", None)
    if a_dtype is b_dtype and output_type is None:
        return a, b
    if not (isinstance(a_dtype, DType) and isinstance(b_dtype, DType)):
        return a, b
    pair = {a.dtype, b.dtype}
    mixed = output_type if (output_type, pair) in _MIXED else None
    common = dtypes.float32 if pair == {dtypes.bfloat16, dtypes.float32} else mixed
    if common is None:
        return a, b
    return array.cast(a, common), array.cast(b, common)


_MIXED: Any = [
    (dtypes.int32, {dtypes.int8, dtypes.uint8}),
    (dtypes.bfloat16, {dtypes.bfloat16, dtypes.int8}),
    (dtypes.bfloat16, {dtypes.bfloat16, dtypes.uint8}),
]


@documented_by(MatMul)
def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the product of matrices and vectors: output[..., i] = sum over j of a[..., i, j] b[..., j]."""
    a, b = _alike(a, b)
    column = matmul(a, array.expand_dims(b, -1), transpose_a=transpose_a, adjoint_a=adjoint_a)
    return array.squeeze(column, [-1], name=name)


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Return a and b, which takes the dtype of a if it has none of its own."""
    if hasattr(a, "dtype") and not hasattr(b, "dtype"):
        a = dispatch.to_tensor(a)
        b = dispatch.to_tensor(b, a.dtype)
    return a, b


@documented_by(MatMul)
def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Contract pairs of axes: the last axes of a with the first of b, or named ones.

    axes: a number, or a pair of axes, or a pair of lists of axes. Output: the remaining axes of a, then of b.
    raises ValueError for lists of different lengths, InvalidArgumentError for different sizes
    """
    a, b = (dispatch.to_tensor(each) for each in _alike(a, b))
    if a.shape.rank is None or b.shape.rank is None:
        raise TypeError("tensordot: the ranks must be known while tracing")
    summed_a, summed_b = _paired_axes(axes, a.shape.rank, b.shape.rank)
    outer_axes_a = [i for i in range(a.shape.rank) if i not in summed_a]
    outer_axes_b = [i for i in range(b.shape.rank) if i not in summed_b]
    left, outer_a = _as_matrix(a, outer_axes_a, summed_a)
    in_order = [*summed_b, *outer_axes_b] == list(range(b.shape.rank))
    right, outer_b = _as_matrix(b, outer_axes_b, summed_b, outer_last=in_order)
    return array.reshape(MatMul(left, right, transpose_b=not in_order), [*outer_a, *outer_b], name=name)


def _paired_axes(axes: Any, rank_a: int, rank_b: int) -> tuple[list[int], list[int]]:
    axes = known_value(axes)
    if axes is None:
        raise TypeError("tensordot: axes must be known while tracing")
    if isinstance(axes, (list, tuple)):
        axes = [static_axes(side, "tensordot: axes") if not isinstance(side, int) else side for side in axes]
    if isinstance(axes, np.ndarray):
        axes = axes.tolist()
    if isinstance(axes, int):
        if axes < 0:
            raise ValueError(f"`axes` must be at least 0. Received: {axes}.")
        if axes > min(rank_a, rank_b):
            raise ValueError(f"`axes` must not be larger than the number of dimensions of a and b. Received {axes}")
        return list(range(rank_a - axes, rank_a)), list(range(axes))
    if len(axes) != 2:
        raise ValueError(f"`axes` must be an integer or have length 2. Received {axes}.")
    axes_a, axes_b = ([side] if isinstance(side, int) else [int(i) for i in side] for side in axes)
    if len(axes_a) != len(axes_b):
        raise ValueError(f"Different number of contraction axes `a` and `b`, {len(axes_a)} != {len(axes_b)}.")
    return [axis_in(i, rank_a) for i in axes_a], [axis_in(i, rank_b) for i in axes_b]


def _as_matrix(x: Any, outer_axes: list[int], summed: list[int], outer_last: bool = False) -> tuple[Tensor, list[Any]]:
    """Reshape x to a matrix [outer, summed], if outer_last [summed, outer]; return it with the outer sizes: numbers, or
    scalar tensors if unknown."""
    dims = x.shape.dims
    sizes = [array.shape_op(x)[i] if d is None else d for i, d in enumerate(dims)]
    outer_sizes: list[Any] = [sizes[i] for i in outer_axes]
    total: Any = 1
    for i in summed:
        total = total * sizes[i]
    perm = [*summed, *outer_axes] if outer_last else [*outer_axes, *summed]
    transposed = x if perm == list(range(len(dims))) else array.transpose(x, perm)
    rows: Any = 1
    for size in outer_sizes:
        rows = rows * size
    return array.reshape(transposed, [total, rows] if outer_last else [rows, total]), outer_sizes
