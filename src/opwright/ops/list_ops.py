"""Operators on lists of tensors: what `TensorArray` and the gradients of loops are made of.

Lives here: reserve, push, pop, get, set, resize, stack, gather, scatter, concat, split, and what their gradients need.
Not here: the list itself (tensor_list.py), `TensorArray` (tracing/tensor_array.py).

A list is a scalar of dtype variant. It is a value like any other: no operator changes one, so all are pure, and their
gradients are written with each other. The gradient of a list is a list of as many elements; elements without gradient
are unset, which keeps the gradient of "element i" in a loop at one element each time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType, variant
from ..core.shapes import SCALAR, UNKNOWN, TensorShape
from ..core.specs import TensorSpec
from . import array
from .attributes import Attr
from .autodiff import is_trainable
from .definition import operator
from .shape_inference import shape_from
from .slots import Input, OperatorDefinition, Output
from .tensor import Tensor
from .tensor_list import TensorList, fail, merged

LIST = TensorSpec(SCALAR, variant)
SIZE = dtypes.int32


def sizes_of(tensor: Any, leading: int = 0) -> Tensor | None:
    """Return the `shape` input for elements like `tensor` (without leading dimensions); None if the spec has all."""
    if tensor.shape.rank is not None and tensor.shape[leading:].is_fully_defined():
        return None
    return array.shape_op(tensor)[leading:]


def element_shape_of(op: Any, shape: Any) -> TensorShape:
    """Return the shape of elements from the attribute and the input `shape`, at run time."""
    return op.element_shape if shape is None else merged(op.element_shape, sizes(shape))


def sizes(shape: Any) -> TensorShape:
    """Return the shape that a vector specifies at run time, with -1 for an unknown size."""
    return TensorShape([None if n < 0 else n for n in np.asarray(shape).reshape(-1).tolist()])


def element_spec(op: Any) -> TensorSpec:
    """Return the inferred spec of an element, from the attributes and the input `shape`."""
    shape = op.element_shape
    if op.shape is not None:
        shape = merged(shape, shape_from(op.shape))
    return TensorSpec(shape, op.element_dtype)


def _at_least_0(what: str, n: Any) -> None:
    if n is not None and int(n) < 0:
        raise fail(f"{what} {int(n)}")


@operator
class ListReserve(OperatorDefinition):
    """A list of a given number of elements, none of them set.

    .. math:: output = (\\varnothing, \\ldots, \\varnothing)

    num_elements: int32 scalar. element_dtype, element_shape: of the elements, checked when one is set.
    raises InvalidArgumentError for a negative number
    """

    num_elements = Input(SIZE, rank=0)
    output = Output(dtype=variant)
    element_dtype = Attr(DType)
    element_shape = Attr(TensorShape, default=UNKNOWN)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        _at_least_0("The num_elements to reserve must be a non negative number, but got", op.num_elements.constant)
        return LIST

    def compute(op, num_elements: Any) -> TensorList:
        n = int(num_elements)
        _at_least_0("The num_elements to reserve must be a non negative number, but got", n)
        return TensorList(n, op.element_dtype, op.element_shape)


@operator
class ListLength(OperatorDefinition):
    """The number of elements, set or not.

    .. math:: output = |list|
    """

    list = Input(variant, rank=0)
    output = Output(dtype=SIZE)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return TensorSpec(SCALAR, SIZE)

    def compute(op, list: TensorList) -> np.generic:
        return np.int32(list.length)


@operator
class ListZerosLike(OperatorDefinition):
    """A list of the same length in which nothing is set: the zero of its gradients.

    .. math:: output = (\\varnothing, \\ldots, \\varnothing)
    """

    list = Input(variant, rank=0)
    output = Output(dtype=variant)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return LIST

    def compute(op, list: TensorList) -> TensorList:
        return list.zeros_like()


@operator
class ListAdd(OperatorDefinition):
    """Sums, element by element; an element that is unset in one is that of the other.

    .. math:: output_i = x_i + y_i

    x, y: lists of one length and dtype. Costs as much as the one with fewer elements set has of them.
    raises InvalidArgumentError for lengths or dtypes that differ
    """

    x = Input(variant, rank=0)
    y = Input(variant, rank=0)
    output = Output(dtype=variant)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return LIST

    def compute(op, x: TensorList, y: TensorList) -> TensorList:
        return x.add(y)

    def gradient(op, doutput: Any) -> tuple[Any, Any]:
        return doutput, doutput


@operator
class ListResize(OperatorDefinition):
    """The list with `size` elements: its first ones, or more at the end that are unset.

    .. math:: output_i = list_i \\text{ if } i < |list| \\text{ else } \\varnothing

    raises InvalidArgumentError for a negative size
    """

    list = Input(variant, rank=0)
    size = Input(SIZE, rank=0)
    output = Output(dtype=variant)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        _at_least_0("TensorListSlice expects size to be non-negative. Got:", op.size.constant)
        return LIST

    def compute(op, list: TensorList, size: Any) -> TensorList:
        return list.resize(int(size))

    def gradient(op, doutput: Any) -> tuple[Tensor, None]:
        return ListResize(doutput, ListLength(op.list)), None


@operator
class ListPush(OperatorDefinition):
    """The list with one element more, at its end.

    .. math:: output = (list_0, \\ldots, list_{n-1}, item)

    raises InvalidArgumentError for an item of another dtype or shape than the list takes
    """

    list = Input(variant, rank=0)
    item = Input(dtypes.anything)
    output = Output(dtype=variant)
    no_need_buffer = ("item",)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return LIST

    def compute(op, list: TensorList, item: Any) -> TensorList:
        return list.push(item)

    def gradient(op, doutput: Any) -> tuple[Tensor, Any]:
        item = op.item
        dlist, ditem = ListPop(doutput, sizes_of(item), element_dtype=item.dtype, element_shape=item.shape)
        return dlist, of_item(ditem, item)


def of_item(ditem: Tensor, item: Any) -> Tensor | None:
    """Return the gradient of an item in the form that its rule returns: None if not differentiable, full length for a
    list.
    """
    if item.dtype is variant:
        return ListAdd(ListZerosLike(item), ditem)  # what was unset has no length
    return ditem if is_trainable(item.dtype) else None


@operator
class ListPop(OperatorDefinition[tuple[Tensor, Tensor]]):
    """The list without its last element, and that element; zeros where it is unset.

    .. math:: output = (list_0, \\ldots, list_{n-2}), \\quad item = list_{n-1}

    element_dtype, element_shape: of the item, as far as it is known. shape: a vector that says more of it, -1 where
    a size is unknown.
    raises InvalidArgumentError for an empty list, for another dtype, for an unset element of unknown shape
    """

    list = Input(variant, rank=0)
    shape = Input(dtypes.index, optional=True, rank=1)
    output = Output(dtype=variant)
    item = Output(kind="of element_dtype")
    element_dtype = Attr(DType)
    element_shape = Attr(TensorShape, default=UNKNOWN)
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        return LIST, element_spec(op)

    def compute(op, list: TensorList, shape: Any) -> tuple[TensorList, Any]:
        list.check_dtype(op.element_dtype)
        return list.pop(element_shape_of(op, shape))

    def gradient(op, doutput: Any, ditem: Any) -> tuple[Tensor, None]:
        return (ListPush(doutput, ditem) if ditem is not None else ListResize(doutput, ListLength(op.list))), None


@operator
class ListGet(OperatorDefinition):
    """An element of a list; zeros where it is unset.

    .. math:: item = list_{index}

    element_dtype, element_shape: of the item, as far as it is known. shape: a vector that says more of it, -1 where
    a size is unknown.
    raises InvalidArgumentError for an index that is not there, another dtype, an unset element of unknown shape
    """

    list = Input(variant, rank=0)
    index = Input(SIZE, rank=0)
    shape = Input(dtypes.index, optional=True, rank=1)
    item = Output(kind="of element_dtype")
    element_dtype = Attr(DType)
    element_shape = Attr(TensorShape, default=UNKNOWN)
    lod = "vanishes"

    infer = element_spec

    def compute(op, list: TensorList, index: Any, shape: Any) -> object:
        list.check_dtype(op.element_dtype)
        return list.get(int(index), element_shape_of(op, shape))

    def gradient(op, ditem: Any) -> tuple[Tensor, None, None]:
        return ListSet(ListZerosLike(op.list), op.index, ditem), None, None


@operator
class ListSet(OperatorDefinition):
    """The list with another element at an index.

    .. math:: output_i = item \\text{ if } i = index \\text{ else } list_i

    grow: whether an index behind the end makes the list longer; elements between are unset.
    raises InvalidArgumentError for an index that is not there, an item of another dtype or shape than the list takes
    """

    list = Input(variant, rank=0)
    index = Input(SIZE, rank=0)
    item = Input(dtypes.anything)
    output = Output(dtype=variant)
    grow = Attr(bool, default=False)
    no_need_buffer = ("item",)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return LIST

    def compute(op, list: TensorList, index: Any, item: Any) -> TensorList:
        return list.set(int(index), item, op.grow)

    def gradient(op, doutput: Any) -> tuple[Tensor, None, Any | None]:
        item = op.item
        ditem = None
        if is_trainable(item.dtype):
            ditem = of_item(
                ListGet(doutput, op.index, sizes_of(item), element_dtype=item.dtype, element_shape=item.shape), item
            )
        dlist = ListUnset(doutput, op.index)
        return (ListResize(dlist, ListLength(op.list)) if op.grow else dlist), None, ditem


@operator
class ListUnset(OperatorDefinition):
    """The list with the elements at some indices unset.

    .. math:: output_i = \\varnothing \\text{ if } i \\in indices \\text{ else } list_i

    indices: int32, a scalar or vector. raises InvalidArgumentError for an index that is not there
    """

    list = Input(variant, rank=0)
    indices = Input(SIZE, rank=(0, 1))
    output = Output(dtype=variant)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return LIST

    def compute(op, list: TensorList, indices: Any) -> TensorList:
        return list.unset_at(np.asarray(indices).reshape(-1).tolist())

    def gradient(op, doutput: Any) -> tuple[Tensor, None]:
        return ListUnset(doutput, op.indices), None
