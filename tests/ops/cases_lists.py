"""Rows for lists of tensors: list_ops.py and list_tensor_ops.py of ops.

Lives here: a row makes its list of a tensor's rows and gives back tensors, so that lists stay inside it.
Not here: that older versions of a list stay (test_tensor_list.py), TensorArray (tests/tracing).
"""

from __future__ import annotations

import numpy as np
from harness import bad, case, f32, f64, i32, strings

from opwright.ops import dispatch, list_ops, list_tensor_ops

SHAPE_DEPENDS_ON_DATA = {"ListGet", "ListPop", "ListStack", "ListGather", "ListConcat"}


def ints(*values):
    return np.array(values, np.int32)


def at(index):
    return np.array(index, np.int32)


def stacked(list_, x, **more):
    return list_tensor_ops.ListStack(list_, element_dtype=x.dtype, element_shape=x.shape[1:], **more)


def reserved(n, x):
    return list_ops.ListReserve(n, element_dtype=x.dtype, element_shape=x.shape)


def made(function):
    """`function` of the list of a tensor's rows, the tensor and more, as a list again, stacked."""

    def call(x, *more):
        return stacked(function(list_tensor_ops.ListFromTensor(x), *more), x)

    return call


def popped(x):
    list_, item = list_ops.ListPop(list_tensor_ops.ListFromTensor(x), element_dtype=x.dtype, element_shape=x.shape[1:])
    return stacked(list_, x), item


def with_rows(x, indices, values):
    out = np.array(x)
    for i, value in zip(indices, values):
        out[i] = value
    return out


def added_rows(x, indices, values):
    out = np.array(x)
    np.add.at(out, indices, values)
    return out


def without(x, indices):
    return with_rows(x, np.ravel(indices), np.zeros((np.size(indices), *x.shape[1:])))


def concatenated(x, y):
    list_ = list_ops.ListPush(list_ops.ListPush(list_ops.ListReserve(0, element_dtype=x.dtype), x), y)
    return list_tensor_ops.ListConcat(list_, element_dtype=x.dtype)


def concatenated_unset(x, leading):
    list_ = list_ops.ListSet(list_ops.ListReserve(3, element_dtype=x.dtype), 1, x)
    return list_tensor_ops.ListConcat(list_, leading, element_dtype=x.dtype, element_shape=[None, *x.shape[1:]])


def pieces(x, lengths):
    list_ = list_tensor_ops.ListSplit(x, lengths)
    first = list_ops.ListGet(list_, 0, element_dtype=x.dtype)
    return first, list_ops.ListGet(list_, 1, element_dtype=x.dtype) * 2.0, list_ops.ListLength(list_)


def get(x, index):
    return list_ops.ListGet(list_tensor_ops.ListFromTensor(x), index, element_dtype=x.dtype, element_shape=x.shape[1:])


def get_unset(x, index):
    return list_ops.ListGet(list_ops.ListSet(reserved(3, x), 0, x), index, element_dtype=x.dtype)


def get_unset_like(x, index):
    from opwright.ops.array import shape_op

    list_ = list_ops.ListReserve(3, element_dtype=x.dtype)
    return list_ops.ListGet(list_, index, shape_op(x), element_dtype=x.dtype) + x * 0


def gathered(x, indices):
    return list_tensor_ops.ListGather(
        list_tensor_ops.ListFromTensor(x), indices, element_dtype=x.dtype, element_shape=x.shape[1:]
    )


def doubled_sum(x, y):
    a, b = (
        list_tensor_ops.ListFromTensor(x),
        list_ops.ListSet(list_ops.ListZerosLike(list_tensor_ops.ListFromTensor(x)), 1, y),
    )
    return stacked(list_ops.ListAdd(list_ops.ListAdd(a, b), a), x)


def list_of(x):
    return list_tensor_ops.ListFromTensor(dispatch.to_tensor(x))


def empty(n, shape=None):
    """A list of float32 in which nothing is set."""
    return list_ops.ListReserve(n, element_dtype="float32", element_shape=shape)


def wrong(function):
    """A call that fails inside `function` of a list of three float32 vectors of two."""

    def call(*more):
        return function(list_of(np.zeros([3, 2], np.float32)), *more)

    return call


CASES = {
    "ListReserve": [
        case(at(3), call=lambda n: list_ops.ListLength(empty(n)), expect=3),
        case(
            at(2),
            call=lambda n: list_tensor_ops.ListStack(
                list_ops.ListReserve(n, element_dtype="float64", element_shape=[2]), element_dtype="float64"
            ),
            expect=np.zeros([2, 2]),
        ),
        bad(at(-1), says="must be a non negative number, but got -1", element_dtype="float32"),
    ],
    "ListLength": [
        case(f32(4, 2), call=lambda x: list_ops.ListLength(list_tensor_ops.ListFromTensor(x)), expect=4, grad=False),
        case(f32(0, 2), call=lambda x: list_ops.ListLength(list_tensor_ops.ListFromTensor(x)), expect=0, grad=False),
    ],
    "ListZerosLike": [case(f64(3, 2), call=made(list_ops.ListZerosLike), expect=np.zeros_like, grad=False)],
    "ListAdd": [
        case(f64(3, 2), f64(2), call=doubled_sum, expect=lambda x, y: 2 * x + [[0], [1], [0]] * y, grad=True),
        bad(call=wrong(lambda a: list_ops.ListAdd(a, list_ops.ListResize(a, 2))), says=("different lengths", "3", "2")),
        bad(call=wrong(lambda a: list_ops.ListAdd(a, list_ops.ListReserve(3, element_dtype="int32"))), says="dtypes"),
    ],
    "ListResize": [
        case(f64(3, 2), at(2), call=made(list_ops.ListResize), expect=lambda x, n: x[:2], grad=[0]),
        case(
            f64(3, 2), at(5), call=made(list_ops.ListResize), expect=lambda x, n: np.pad(x, [[0, 2], [0, 0]]), grad=[0]
        ),
        case(f64(3), at(3), call=made(list_ops.ListResize), expect=lambda x, n: x, grad=[0]),
        bad(at(-2), call=wrong(list_ops.ListResize), says="expects size to be non-negative. Got: -2"),
    ],
    "ListPush": [
        case(f64(3, 2), f64(2), call=made(list_ops.ListPush), expect=lambda x, y: np.concatenate([x, [y]]), grad=True),
        case(i32(3), i32(), call=made(list_ops.ListPush), expect=lambda x, y: np.append(x, y)),
        case(strings(2), strings(), call=made(list_ops.ListPush), expect=lambda x, y: np.append(x, y)),
        bad(f32(3), call=wrong(list_ops.ListPush), says=("append a tensor with incompatible shape", "[3]", "[2]")),
        bad(i32(2), call=wrong(list_ops.ListPush), says="op elements int32 but list elements float32"),
    ],
    "ListPop": [
        case(f64(3, 2), call=popped, expect=lambda x: [x[:2], x[2]], grad=True),
        case(f64(1), call=popped, expect=lambda x: [x[:0], x[0]], grad=True),
        bad(f32(0, 2), call=popped, says="Trying to pop from an empty list."),
        bad(call=wrong(lambda a: list_ops.ListPop(a, element_dtype="int32")), says="op elements int32"),
    ],
    "ListGet": [
        case(f64(3, 2), at(1), call=get, expect=lambda x, i: x[1], grad=[0]),
        case(f32(3), at(0), call=get, expect=lambda x, i: x[0], grad=[0]),
        case(f64(2), at(2), call=get_unset, expect=lambda x, i: 0 * x, grad=[0]),
        case(f64(2), at(0), call=get_unset, expect=lambda x, i: x, grad=[0]),
        case(f64(2, 1), at(2), call=get_unset_like, expect=lambda x, i: 0 * x, grad=[0]),
        bad(f32(3, 2), at(3), call=get, says="Trying to access element 3 in a list with 3 elements."),
        bad(f32(3, 2), at(-1), call=get, says="Trying to access element -1 in a list with 3 elements."),
        bad(call=wrong(lambda a: list_ops.ListGet(a, 0, element_dtype="int32")), says="but list elements float32"),
        bad(
            at(0),
            call=lambda i: list_ops.ListGet(empty(2, [None, 2]), i, element_dtype="float32"),
            says=("uninitialized tensor", "[?,2]", "no list element is set"),
        ),
    ],
    "ListSet": [
        case(
            f64(3, 2),
            at(1),
            f64(2),
            call=made(list_ops.ListSet),
            expect=lambda x, i, y: with_rows(x, [1], [y]),
            grad=[0, 2],
        ),
        case(
            f64(2),
            at(3),
            f64(),
            call=made(lambda a, i, y: list_ops.ListSet(a, i, y, grow=True)),
            expect=lambda x, i, y: np.concatenate([x, [0, y]]),
            grad=[0, 2],
        ),
        bad(at(3), f32(2), call=wrong(list_ops.ListSet), says="Trying to modify element 3 in a list with 3 elements."),
        bad(at(0), f32(3), call=wrong(list_ops.ListSet), says=("at a list index", "shape: [3] list shape: [2]")),
        bad(at(0), i32(2), call=wrong(list_ops.ListSet), says="op elements int32 but list elements float32"),
    ],
    "ListUnset": [
        case(f64(3, 2), at(1), call=made(list_ops.ListUnset), expect=without, grad=[0]),
        case(f64(3, 2), ints(0, 2, 0), call=made(list_ops.ListUnset), expect=without, grad=[0]),
        bad(ints(0, 3), call=wrong(list_ops.ListUnset), says="Trying to modify element 3"),
    ],
    "ListStack": [
        case(f64(3, 2), call=made(lambda a: a), expect=lambda x: x, grad=True),
        case(
            f32(3, 2),
            call=lambda x: list_tensor_ops.ListStack(list_tensor_ops.ListFromTensor(x), element_dtype=x.dtype, num=3),
            expect=lambda x: x,
            grad=True,
        ),
        case(f32(0, 2), call=made(lambda a: a), expect=lambda x: x, grad=False),
        case(strings(3), call=made(lambda a: a), expect=lambda x: x),
        bad(
            call=wrong(lambda a: list_tensor_ops.ListStack(a, element_dtype="float32", num=2)),
            says=("with 2 elements", "3"),
        ),
        bad(
            call=wrong(lambda a: list_tensor_ops.ListStack(a, element_dtype="float32", element_shape=[5])),
            says=("Incompatible shapes during merge", "[5]", "[2]"),
        ),
        bad(
            at(2),
            call=lambda n: list_tensor_ops.ListStack(empty(n), element_dtype="float32"),
            says=("only contains uninitialized tensors", "<unknown>"),
        ),
        bad(
            at(0),
            call=lambda n: list_tensor_ops.ListStack(empty(n), element_dtype="float32"),
            says="stack elements of an empty list",
        ),
    ],
    "ListFromTensor": [
        case(f64(3, 2), call=lambda x: get(x, 2) * get(x, 1), expect=lambda x: x[2] * x[1], grad=True),
        bad(f32(), says="must be at least a vector, but saw shape: []"),
        bad(f32(3, 2), element_shape=[3], says=("a list with shape [3]", "shape [2]")),
    ],
    "ListGather": [
        case(f64(3, 2), ints(2, 0, 2), call=gathered, expect=lambda x, i: x[i], grad=[0]),
        case(f64(3), ints(), call=gathered, expect=lambda x, i: x[:0], grad=[0]),
        bad(f32(3, 2), ints(0, 3), call=gathered, says="Trying to gather element 3 in a list with 3 elements."),
        bad(
            ints(1),
            call=lambda i: list_tensor_ops.ListGather(empty(2), i, element_dtype="float32"),
            says="gather uninitialized tensors",
        ),
    ],
    "ListScatter": [
        case(f64(4, 2), ints(2, 0), f64(2, 2), call=made(list_tensor_ops.ListScatter), expect=with_rows, grad=[0, 2]),
        case(
            f64(4, 2), ints(1, 3, 1), f64(3, 2), call=made(list_tensor_ops.ListScatter), expect=with_rows, grad=[0, 2]
        ),
        case(
            f64(1),
            ints(2, 0),
            f64(2),
            call=made(lambda a, i, y: list_tensor_ops.ListScatter(a, i, y, grow=True)),
            expect=lambda x, i, y: [[y[1], 0, y[0]]],
            grad=[0, 2],
        ),
        bad(ints(0, -1), f32(2, 2), call=wrong(list_tensor_ops.ListScatter), says="must all be non-negative"),
        bad(
            ints(0, 3),
            f32(2, 2),
            call=wrong(list_tensor_ops.ListScatter),
            says="scatter at index 3 in list with size 3",
        ),
        bad(ints(0), f32(2, 2), call=wrong(list_tensor_ops.ListScatter), says=("rows", "Expected: 1 Actual: 2")),
    ],
    "ListScatterAdd": [
        case(
            f64(4, 2),
            ints(1, 3, 1),
            f64(3, 2),
            call=made(list_tensor_ops.ListScatterAdd),
            expect=added_rows,
            grad=[0, 2],
        ),
        case(
            f64(4),
            ints(0, 0),
            f64(2),
            call=made(lambda a, i, y: list_tensor_ops.ListScatterAdd(list_ops.ListZerosLike(a), i, y)),
            expect=lambda x, i, y: added_rows(0 * x, i, y),
            grad=[2],
        ),
        bad(ints(0, 3), f32(2, 2), call=wrong(list_tensor_ops.ListScatterAdd), says="scatter at index 3"),
        bad(ints(0), f32(2, 2), call=wrong(list_tensor_ops.ListScatterAdd), says="Expected: 1 Actual: 2"),
    ],
    "ListConcat": [
        case(
            f64(3, 2),
            f64(1, 2),
            call=concatenated,
            expect=lambda x, y: [np.concatenate([x, y]), [3, 1]],
            gives=["float64", "int64"],
            grad=True,
        ),
        case(
            f64(2, 2),
            np.array([1, 9, 3]),
            call=concatenated_unset,
            grad=[0],
            expect=lambda x, n: [np.pad(x, [[1, 3], [0, 0]]), [1, 2, 3]],
        ),
        bad(f32(3, 2), f32(1, 3), call=concatenated, says=("Incompatible shapes during merge", "[2]", "[3]")),
        bad(f32(), f32(), call=concatenated, says="a scalar shape at index 0"),
        bad(
            at(0),
            call=lambda n: list_tensor_ops.ListConcat(empty(n), element_dtype="float32"),
            says="must be fully defined when concating an empty tensor list",
        ),
    ],
    "ListSplit": [
        case(f64(3, 2), np.array([1, 2]), call=pieces, expect=lambda x, n: [x[:1], 2 * x[1:], 2], grad=[0]),
        case(f64(2), np.array([2, 0]), call=pieces, expect=lambda x, n: [x, x[:0], 2], grad=[0]),
        bad(f32(), np.array([1, 2]), says="at least a vector"),
        bad(f32(3), np.array([1, 1]), says=("Unused values", "3", "2")),
        bad(f32(3), np.array([1, 3]), says="Attempting to slice [1, 4] from tensor with length 3"),
        bad(f32(3), np.array([-1, 4]), says="Invalid value in lengths: -1"),
    ],
}
