"""Operators between lists of tensors and tensors whose rows are their elements.

Lives here: stack, from tensor, gather, scatter, concat, split.  Not here: single elements (list_ops.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType, variant
from ..core.shapes import UNKNOWN, TensorShape
from ..core.specs import TensorSpec
from . import array
from .attributes import Attr, at_least
from .autodiff import is_trainable
from .definition import operator
from .list_ops import (
    LIST,
    SIZE,
    ListLength,
    ListReserve,
    ListResize,
    ListUnset,
    ListZerosLike,
    element_shape_of,
    element_spec,
    sizes,
    sizes_of,
)
from .shape_inference import shape_from
from .slots import Input, OperatorDefinition, Output
from .tensor import Tensor
from .tensor_list import TensorList, added, fail, merged, shape_text


def _row_shape(tensor: Any) -> TensorShape:
    """Return the shape of a tensor's rows. Raises InvalidArgumentError for a scalar."""
    shape = tensor.spec.shape
    if shape.rank == 0:
        raise fail(f"Tensor must be at least a vector, but saw shape: {shape_text(shape)}")
    return UNKNOWN if shape.rank is None else shape[1:]


def _rows(count: int | None, row_shape: TensorShape, dtype: DType) -> TensorSpec:
    return TensorSpec(UNKNOWN if row_shape.dims is None else [count, *row_shape.dims], dtype)


def row(array: np.ndarray, i: int) -> np.ndarray:
    """Return one row as an array, of shape () too."""
    return array[i, ...]


def _count(shape: TensorShape) -> int | None:
    return None if shape.rank is None else shape[0]


@operator
class ListStack(OperatorDefinition):
    """The elements of a list as one tensor, along a new first dimension; unset ones are zeros.

    .. math:: tensor_i = list_i

    element_dtype, element_shape: of the elements, as far as it is known; shape: a vector that says more of it. num:
    how many they are, -1 where that is not known. Output: [num, ...element_shape].
    raises InvalidArgumentError for another dtype, shapes that differ, another number, unset elements of unknown shape
    """

    list = Input(variant, rank=0)
    shape = Input(dtypes.index, optional=True, rank=1)
    tensor = Output()
    element_dtype = Attr(DType)
    element_shape = Attr(TensorShape, default=UNKNOWN)
    num = Attr(int, default=-1, check=at_least(-1))
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return _rows(None if op.num < 0 else op.num, element_spec(op).shape, op.element_dtype)

    def compute(op, list: TensorList, shape: Any) -> np.ndarray:
        list.check_dtype(op.element_dtype)
        if op.num not in (-1, list.length):
            raise fail(f"Operation expected a list with {op.num} elements but got a list with {list.length} elements.")
        return list.stack(element_shape_of(op, shape))

    def gradient(op, dtensor: Any) -> tuple[Tensor, None]:
        return ListFromTensor(dtensor), None


@operator
class ListFromTensor(OperatorDefinition):
    """The rows of a tensor as a list.

    .. math:: output_i = tensor_i

    raises InvalidArgumentError for a scalar
    """

    tensor = Input(dtypes.ALL)
    output = Output(dtype=variant)
    element_shape = Attr(TensorShape, default=UNKNOWN)
    no_need_buffer = ("tensor",)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        row_shape = _row_shape(op.tensor)
        if not op.element_shape.is_compatible_with(row_shape):
            raise fail(
                f"Specified a list with shape {shape_text(op.element_shape)} from a tensor with shape "
                f"{shape_text(row_shape)}"
            )
        return LIST

    def compute(op, tensor: Any) -> TensorList:
        shape = merged(op.element_shape, TensorShape(tensor.shape[1:]))
        elements = {i: row(tensor, i) for i in range(len(tensor))}
        return TensorList(len(tensor), dtypes.of_numpy(tensor.dtype), shape, elements)

    def gradient(op, doutput: Any) -> Tensor:
        x = op.tensor
        n = _count(x.shape)
        return ListStack(
            doutput, sizes_of(x, 1), element_dtype=x.dtype, element_shape=_row_shape(x), num=-1 if n is None else n
        )


@operator
class ListGather(OperatorDefinition):
    """Elements of a list by index, as one tensor; unset ones are zeros.

    .. math:: tensor_i = list_{indices_i}

    indices: int32 vector. Output: [n, ...element_shape].
    raises InvalidArgumentError for an index that is not there, another dtype, shapes that differ or are unknown
    """

    list = Input(variant, rank=0)
    indices = Input(SIZE, rank=1)
    shape = Input(dtypes.index, optional=True, rank=1)
    tensor = Output()
    element_dtype = Attr(DType)
    element_shape = Attr(TensorShape, default=UNKNOWN)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return _rows(_count(op.indices.spec.shape), element_spec(op).shape, op.element_dtype)

    def compute(op, list: TensorList, indices: Any, shape: Any) -> np.ndarray:
        list.check_dtype(op.element_dtype)
        return list.stack(element_shape_of(op, shape), indices.tolist())

    def gradient(op, dtensor: Any) -> tuple[Tensor, None, None]:
        return ListScatterAdd(ListZerosLike(op.list), op.indices, dtensor), None, None


def _check_rows(tensor: Any, indices: Any) -> None:
    rows, expected = _count(tensor.spec.shape), _count(indices.spec.shape)
    _row_shape(tensor)
    if rows is not None and expected is not None and rows != expected:
        raise fail(f"Invalid number of rows in input tensor. Expected: {expected} Actual: {rows}")


def _checked_indices(list: TensorList, indices: np.ndarray, tensor: np.ndarray, grow: bool = False) -> Iterator[int]:
    """Yield the indices as checked numbers. Raises InvalidArgumentError."""
    if len(indices) != len(tensor):
        raise fail(f"Invalid number of rows in input tensor. Expected: {len(indices)} Actual: {len(tensor)}")
    for i in indices.tolist():
        if i < 0:
            raise fail("Indices in TensorListScatter must all be non-negative.")
        if i >= list.length and not grow:
            raise fail(f"TensorListScatter: Trying to scatter at index {i} in list with size {list.length}")
        yield i


@operator
class ListScatter(OperatorDefinition):
    """The list with the rows of a tensor at some indices; where an index comes twice its last row counts.

    .. math:: output_{indices_i} = tensor_i

    indices: int32 vector; tensor: [n, ...]. grow: whether indices behind the end make the list longer.
    raises InvalidArgumentError for an index that is not there, another number of rows, rows that the list does not take
    """

    list = Input(variant, rank=0)
    indices = Input(SIZE, rank=1)
    tensor = Input(dtypes.ALL)
    output = Output(dtype=variant)
    grow = Attr(bool, default=False)
    no_need_buffer = ("tensor",)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        _check_rows(op.tensor, op.indices)
        return LIST

    def compute(op, list: TensorList, indices: Any, tensor: Any) -> TensorList:
        for k, i in enumerate(_checked_indices(list, indices, tensor, op.grow)):
            list = list.set(i, row(tensor, k), op.grow)
        return list

    def gradient(op, doutput: Any) -> tuple[Any, None, None] | tuple[Any, None, Any]:
        x = op.tensor
        dlist: Any = ListUnset(doutput, op.indices)
        if op.grow:
            dlist = ListResize(dlist, ListLength(op.list))
        if not is_trainable(x.dtype):
            return dlist, None, None
        rows = ListGather(doutput, op.indices, sizes_of(x, 1), element_dtype=x.dtype, element_shape=_row_shape(x))
        return dlist, None, _last_of_each(rows, op.indices, ListLength(doutput))


def _last_of_each(rows: Any, indices: Any, length: Any) -> Tensor:
    """Return the rows, with zeros for those overwritten by a later row of the same index."""
    numbers = array.range(array.shape(indices)[0])
    lasts = ListScatter(ListReserve(length, element_dtype=SIZE), indices, numbers)
    stays = ListGather(lasts, indices, element_dtype=SIZE, element_shape=()) == numbers
    stays = array.reshape(stays, array.concat([array.shape(stays), array.fill([array.rank(rows) - 1], 1)], 0))
    return array.where(stays, rows, array.zeros_like(rows))


@operator
class ListScatterAdd(OperatorDefinition):
    """The list with the rows of a tensor added to its elements; an unset one counts as zeros.

    .. math:: output_j = list_j + \\sum_{i: indices_i = j} tensor_i

    indices: int32 vector; tensor: [n, ...].
    raises InvalidArgumentError for an index that is not there, another number of rows, rows that the list does not take
    """

    list = Input(variant, rank=0)
    indices = Input(SIZE, rank=1)
    tensor = Input(dtypes.numeric)
    output = Output(dtype=variant)
    no_need_buffer = ("tensor",)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        _check_rows(op.tensor, op.indices)
        return LIST

    def compute(op, list: TensorList, indices: Any, tensor: Any) -> TensorList:
        for k, i in enumerate(_checked_indices(list, indices, tensor)):
            before = list._get(i)
            list = list.set(i, row(tensor, k) if before is None else added(before, row(tensor, k)))
        return list

    def gradient(op, doutput: Any) -> tuple[Any, None, Tensor | None]:
        x = op.tensor
        dtensor = None
        if is_trainable(x.dtype):
            dtensor = ListGather(
                doutput, op.indices, sizes_of(x, 1), element_dtype=x.dtype, element_shape=_row_shape(x)
            )
        return doutput, None, dtensor


@operator
class ListConcat(OperatorDefinition[tuple[Tensor, Tensor]]):
    """The elements of a list one after the other along their first dimension, and how long each one is.

    .. math:: tensor = [list_0; list_1; \\ldots], \\quad lengths_i = |list_i|

    element_dtype; element_shape: of each element, as far as it is known; shape: a vector that says more of it, without
    the first dimension. leading: how long elements that are unset are taken to be, int64 [n]; without it, as others.
    raises InvalidArgumentError for another dtype, scalars, shapes that differ or are unknown
    """

    list = Input(variant, rank=0)
    leading = Input(dtypes.int64, optional=True, rank=1)
    shape = Input(dtypes.index, optional=True, rank=1)
    tensor = Output()
    lengths = Output(dtype=dtypes.int64)
    element_dtype = Attr(DType)
    element_shape = Attr(TensorShape, default=UNKNOWN)
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        if op.element_shape.rank == 0:
            raise fail("Concat saw a scalar shape at index 0 but requires at least vectors.")
        row_shape = op.element_shape[1:] if op.element_shape.rank else UNKNOWN
        if op.shape is not None:
            row_shape = merged(row_shape, shape_from(op.shape))
        return _rows(None, row_shape, op.element_dtype), TensorSpec([None], dtypes.int64)

    def compute(op, list: TensorList, leading: Any, shape: Any) -> tuple[np.ndarray, np.ndarray]:
        list.check_dtype(op.element_dtype)
        element_shape = merged(op.element_shape, list.element_shape)
        if shape is not None:
            element_shape = merged(element_shape, TensorShape([None, *sizes(shape).as_list()]))
        elements = list.elements()
        first, row_shape = (element_shape[0], element_shape[1:]) if element_shape.rank else (None, UNKNOWN)
        for i, x in enumerate(elements):
            if x is not None:
                if x.ndim == 0:
                    raise fail(f"Concat saw a scalar shape at index {i} but requires at least vectors.")
                row_shape = merged(row_shape, TensorShape(x.shape[1:]))
        if not row_shape.is_fully_defined():
            raise fail(
                "All except the first dimension must be fully defined when concating an empty tensor list. "
                f"element_shape: {shape_text(element_shape)}"
            )
        if first is None and leading is None and any(x is None for x in elements):
            lengths = {len(x) for x in elements if x is not None}
            if len(lengths) != 1:
                where = next(i for i, x in enumerate(elements) if x is None)
                raise fail(f"List contains uninitialized tensor at index {where}, and it is not known how long it is")
            (first,) = lengths
        for i, x in enumerate(elements):
            if x is None:
                length = first if leading is None else int(leading[i])
                elements[i] = list.unset(TensorShape([length, *row_shape]), "concat")
        row_sizes: Any = row_shape.as_list()
        start: Any = np.empty((0, *row_sizes), list.dtype.np)
        return np.concatenate([start, *elements]), np.array([len(x) for x in elements], np.int64)

    def gradient(op, dtensor: Any, dlengths: Any) -> tuple[Tensor, None, None]:
        return ListSplit(dtensor, op.lengths), None, None


@operator
class ListSplit(OperatorDefinition):
    """The rows of a tensor as a list of pieces of given lengths.

    .. math:: output_i = tensor_{s_i : s_i + lengths_i}, \\quad s_i = \\sum_{j < i} lengths_j

    tensor: [rows, ...]; lengths: int64 [n], adding up to rows.
    raises InvalidArgumentError for a scalar, for lengths that are negative or do not add up
    """

    tensor = Input(dtypes.ALL)
    lengths = Input(dtypes.int64, rank=1)
    output = Output(dtype=variant)
    no_need_buffer = ("tensor",)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        _row_shape(op.tensor)
        return LIST

    def compute(op, tensor: Any, lengths: Any) -> TensorList:
        offset, elements = 0, {}
        for i, n in enumerate(lengths.tolist()):
            if n < 0:
                raise fail(f"Invalid value in lengths: {n}")
            if offset + n > len(tensor):
                raise fail(f"Attempting to slice [{offset}, {offset + n}] from tensor with length {len(tensor)}")
            elements[i] = tensor[offset : offset + n]
            offset += n
        if offset != len(tensor):
            raise fail(f"Unused values in tensor. Length of tensor: {len(tensor)} Values used: {offset}")
        shape = TensorShape([None, *tensor.shape[1:]])
        return TensorList(len(lengths), dtypes.of_numpy(tensor.dtype), shape, elements)

    def gradient(op, doutput: Any) -> tuple[Tensor, None]:
        x = op.tensor
        shape = UNKNOWN if x.shape.rank is None else TensorShape([None, *x.shape[1:]])
        dtensor, _ = ListConcat(doutput, op.lengths, sizes_of(x, 1), element_dtype=x.dtype, element_shape=shape)
        return dtensor, None
