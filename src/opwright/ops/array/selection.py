"""Selection by condition, distinct elements, binary search.

Lives here: Where, Select, Unique, UniqueWithCounts, LowerBound, UpperBound, and `boolean_mask`, `sequence_mask`,
`searchsorted`, `meshgrid` over operators.  Not here: gathers (indexing.py), sorting (math/).
"""

from __future__ import annotations

import math as python_math
from collections import namedtuple
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, as_dtype, index, numeric, real
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device, math
from ..array_functions import first_occurrences
from ..attributes import Attr, one_of
from ..definition import operator
from ..registry import documented_by
from ..shape_inference import axis_in, is_static, static_int
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .concatenation import concat
from .constants import range as range_
from .constants import zero_of
from .indexing import gather
from .shape_operators import broadcast_to, expand_dims, reshape, shape_op, squeeze
from .slices import getitem
from .type_conversion import cast


@operator
class Where(OperatorDefinition):
    """Return the indices of nonzero elements in row-major order.

    .. math:: index_k = (i_0, ..., i_{r-1}) \\text{ of the } k\\text{-th true element}

    Output: int64 [n, rank], n the number of true elements.
    """

    condition = Input((*numeric, dtypes.bool), doc="the tensor whose nonzero elements are located")
    index = Output(dtype=dtypes.int64)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        count = None if op.condition.constant is None else int(np.count_nonzero(op.condition.constant))
        return TensorSpec([count, op.condition.spec.shape.rank], dtypes.int64)

    def compute(op, condition: Any) -> np.ndarray:
        return np.argwhere(condition).astype(np.int64)


@operator
class Select(OperatorDefinition):
    """Select elements of x where the condition is true, of y elsewhere. All three broadcast.

    .. math:: output_i = x_i \\text{ if } condition_i \\text{ else } y_i
    """

    condition = Input(dtypes.bool)
    x = Input(dtypes.ALL)
    y = Input(dtypes.ALL, like="x")
    output = Output(like="x")
    elementwise = True
    inplace = {"output": ("x", "y")}

    def compute(op, condition: np.ndarray, x: np.ndarray, y: np.ndarray, *, out: Any = None) -> np.ndarray:
        if out is x and out is not None:
            np.copyto(out, y, where=np.logical_not(condition))
        elif out is y and out is not None:
            np.copyto(out, x, where=condition)
        else:
            return np.where(condition, x, y)
        return out

    def gradient(op, doutput: Any) -> tuple[None, Tensor, Tensor]:
        zero = zero_of(doutput)
        return None, Select(op.condition, doutput, zero), Select(op.condition, zero, doutput)


@documented_by(Select, Where)
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Select elements of x or y by a condition; without x and y, return the indices at which it is true.

    Raises ValueError for only one of x and y.
    """
    if x is None and y is None:
        return Where(condition, name=name)
    if x is None or y is None:
        raise ValueError("x and y must be either both None or both non-None.")
    if isinstance(condition, np.ndarray) and condition.dtype.kind in "iu":
        condition = condition != 0
    return Select(condition, x, y, name=name)


UniqueResult = namedtuple("Unique", ["y", "idx"])  # type: ignore[name-match]
UniqueWithCountsResult = namedtuple("UniqueWithCounts", ["y", "idx", "count"])  # type: ignore[name-match]


@operator
class Unique(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Return the distinct elements of a vector in the order of their first occurrence, and the inverse indices.

    .. math:: x_i = y_{idx_i}

    x: [n]. Output: y [m]; idx: out_idx [n].
    """

    x = Input(dtypes.ALL, rank=1)
    y = Output(like="x")
    idx = Output()
    out_idx = Attr(DType, default=dtypes.int32, check=one_of(*index))
    lod = "vanishes"
    gradient = None

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        return op.x.spec.with_shape([None]), TensorSpec([op.x.spec.shape[0]], op.out_idx)

    def compute(op, x: Any) -> tuple[np.ndarray, np.ndarray]:
        y, idx, _ = first_occurrences(x)
        return y, idx.astype(op.out_idx.np)


@documented_by(Unique)
def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> UniqueResult:
    """Return the distinct elements and the index of each input element among them, as a named tuple (y, idx)."""
    return UniqueResult(*Unique(x, out_idx=out_idx, name=name))


@operator
class UniqueWithCounts(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """Return the distinct elements of a vector as Unique does, with their counts.

    .. math:: count_k = |\\{i : idx_i = k\\}|, \\quad x_i = y_{idx_i}

    x: [n]. Output: y [m]; idx: out_idx [n]; count: out_idx [m].
    """

    x = Input(dtypes.ALL, rank=1)
    y = Output(like="x")
    idx = Output()
    count = Output()
    out_idx = Attr(DType, default=dtypes.int32, check=one_of(*index))
    lod = "vanishes"
    gradient = None

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        n = op.x.spec.shape[0]
        return op.x.spec.with_shape([None]), TensorSpec([n], op.out_idx), TensorSpec([None], op.out_idx)

    def compute(op, x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        y, idx, count = first_occurrences(x)
        return y, idx.astype(op.out_idx.np), count.astype(op.out_idx.np)


@documented_by(UniqueWithCounts)
def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> UniqueWithCountsResult:
    """Return distinct elements, inverse indices and counts, as a named tuple (y, idx, count)."""
    return UniqueWithCountsResult(*UniqueWithCounts(x, out_idx=out_idx, name=name))


def _bound_spec(op: Any) -> TensorSpec:
    rows, values = op.sorted_inputs.spec.shape, op.values.spec.shape
    if None not in (rows.rank, values.rank) and None not in (rows[0], values[0]) and rows[0] != values[0]:
        raise InvalidArgumentError(
            what="Leading dim_size of both tensors must match.", found={"sorted_inputs": rows, "values": values}
        )
    return TensorSpec(values.with_rank(2), op.out_type)


def _bounds(op: Any, sorted_inputs: np.ndarray, values: np.ndarray, side: Any) -> np.ndarray:
    bounds = like_device.empty(values, values.shape, op.out_type.np)
    if sorted_inputs.dtype.kind not in "biufc":  # bfloat16
        sorted_inputs, values = sorted_inputs.astype(np.float32), values.astype(np.float32)
    for row, (keys, row_values) in enumerate(zip(sorted_inputs, values)):
        bounds[row] = np.searchsorted(keys, row_values, side)
    return bounds


class _InsertionBound(OperatorDefinition):
    """Base of the searches for insertion places."""

    sorted_inputs = Input(real, rank=2)
    values = Input(real, rank=2, like="sorted_inputs")
    output = Output()
    out_type = Attr(DType, default=dtypes.int32, check=one_of(*index))
    lod = "vanishes"
    gradient = None
    infer = _bound_spec


@operator
class LowerBound(_InsertionBound):
    """Find the first index at which each value could be inserted into a sorted row, by binary search.

    .. math:: output[b, j] = |\\{i : sorted\\_inputs[b, i] < values[b, j]\\}|

    sorted_inputs: [b, n]; values: [b, m]. Output: out_type [b, m].
    """

    def compute(op, sorted_inputs: Any, values: Any) -> np.ndarray:
        return _bounds(op, sorted_inputs, values, "left")


@operator
class UpperBound(_InsertionBound):
    """Find the last index at which each value could be inserted into a sorted row, by binary search.

    .. math:: output[b, j] = |\\{i : sorted\\_inputs[b, i] \\le values[b, j]\\}|

    sorted_inputs: [b, n]; values: [b, m]. Output: out_type [b, m].
    """

    def compute(op, sorted_inputs: Any, values: Any) -> np.ndarray:
        return _bounds(op, sorted_inputs, values, "right")


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Find the indices at which values would be inserted into a sorted last dimension.

    .. math:: left_j = |\\{i : s_i < values_j\\}|, \\quad right_j = |\\{i : s_i \\le values_j\\}|

    side: "left" (LowerBound) or "right" (UpperBound). raises ValueError for another side
    """
    bound = {"left": LowerBound, "right": UpperBound}.get(side)
    if bound is None:
        raise ValueError(f"Argument `side` must be either 'right' or 'left'. Received: `side` = '{side}'.")
    sequence = dispatch.to_tensor(sorted_sequence)
    values = dispatch.to_tensor(values, sequence.dtype)
    bounds = bound(_flatten_batch(sequence), _flatten_batch(values), out_type=as_dtype(out_type))
    return reshape(bounds, shape_op(values), name=name)


def _flatten_batch(x: Any) -> Tensor:
    """Flatten all dimensions but the last into one. Raises InvalidArgumentError for a scalar."""
    if x.shape.rank == 0:
        raise InvalidArgumentError(
            op="searchsorted",
            what="sorted_sequence and values need a last dimension",
            found=x.spec.short(),
            wanted="rank 1 or more",
        )
    last = x.shape[-1] if x.shape.rank is not None else None
    if last:
        return reshape(x, [-1, last])
    shape = shape_op(x)
    count = math.reduce_prod(getitem(shape, slice(0, -1)))
    return reshape(x, concat([reshape(count, [1]), getitem(shape, slice(-1, None))], 0))


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool, name: str | None = None) -> Tensor:
    """Return masks of the first `lengths` elements of rows of `maxlen`, by default the largest length.

    .. math:: mask[..., j] = j < lengths[...]

    Fractions of lengths count with a fractional maxlen, and without one, as in TensorFlow.
    raises ValueError for a maxlen that is not a scalar
    """
    lengths = dispatch.to_tensor(lengths)
    if maxlen is None:
        maxlen = math.maximum(math.reduce_max(lengths), 0)
    else:
        maxlen = dispatch.to_tensor(maxlen)
        if maxlen.shape.rank not in (None, 0):
            raise ValueError(
                f"Argument `maxlen` must be scalar for sequence_mask, received `maxlen` with shape {maxlen.shape}"
            )
    row = range_(cast(0, maxlen.dtype), maxlen, cast(1, maxlen.dtype))
    if not maxlen.dtype.is_floating and lengths.dtype.is_floating:
        lengths = cast(lengths, maxlen.dtype)
    result = math.less(cast(row, lengths.dtype), expand_dims(lengths, -1), name=name)
    return result if as_dtype(dtype) is dtypes.bool else cast(result, dtype)


def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str | None = "boolean_mask") -> Tensor:
    """Select the elements or slices of a tensor where a mask of the dimensions beginning at `axis` is true.

    Shape tensor.shape[:axis] + [n] + tensor.shape[axis+rank(mask):].
    raises ValueError if the mask is a scalar, of unknown rank, or of an incompatible shape
    """
    tensor, mask = dispatch.to_tensor(tensor), dispatch.to_tensor(mask, dtypes.bool)
    rank = mask.shape.rank
    if rank is None:
        raise ValueError(
            "Number of mask dimensions must be specified, even if some dimensions are None. "
            "E.g. shape=[None] is ok, but shape=None is not."
        )
    if rank == 0:
        raise ValueError("mask cannot be scalar.")
    if not is_static(axis):
        return array.run_time_axes.replace_axes(lambda x: boolean_mask(x, mask), tensor, axis, before=rank, name=name)
    axis = 0 if axis is None else static_int(axis, "axis")
    if tensor.shape.rank is not None:
        axis = axis_in(axis, tensor.shape.rank)
        if not tensor.shape[axis : axis + rank].is_compatible_with(mask.shape):
            raise ValueError(f"Shapes {tensor.shape[axis : axis + rank]} and {mask.shape} are incompatible")
    if tensor.shape.is_fully_defined() and mask.shape.is_fully_defined():
        sizes = tensor.shape.as_list()
        sizes[axis : axis + rank] = [python_math.prod(sizes[axis : axis + rank])]
        tensor = reshape(tensor, sizes)  # of a vector, too: its gradient is dense, as in TensorFlow
    elif rank > 1:
        shape = shape_op(tensor)
        count = reshape(math.reduce_prod(getitem(shape, slice(axis, axis + rank))), [1])
        tensor = reshape(
            tensor, concat([getitem(shape, slice(0, axis)), count, getitem(shape, slice(axis + rank, None))], 0)
        )
    elif axis == 0:
        tensor = reshape(tensor, shape_op(tensor))  # its gradient is dense, as in TensorFlow
    rows = squeeze(Where(reshape(mask, [-1])), [1])
    return gather(tensor, rows, axis=axis, name=name)


def meshgrid(*args: Any, **kwargs: Any) -> list[Any]:
    """Return the coordinates of a grid.

    .. math:: output_k[i_0, ..., i_n] = args_k[i_k]

    indexing: "xy" (default: the first two dimensions swapped) or "ij"; name. Scalars count as vectors of one element.
    raises ValueError for another indexing, TypeError for other keywords
    """
    indexing, name = kwargs.pop("indexing", "xy"), kwargs.pop("name", "meshgrid")
    if kwargs:
        raise TypeError(f"{next(iter(kwargs))!r} is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    vectors = [reshape(a, [-1]) for a in args]
    if not vectors:
        return []
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        axes[:2] = [1, 0]
    lengths = [shape_op(v) for v in vectors]
    shape = concat([lengths[axes.index(i)] for i in range(len(vectors))], 0)
    grids = []
    for vector, axis in zip(vectors, axes):
        sizes = [1] * len(vectors)
        sizes[axis] = -1
        grids.append(broadcast_to(reshape(vector, sizes), shape, name=name))
    return grids
