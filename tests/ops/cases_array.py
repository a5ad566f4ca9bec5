"""Rows for arrays: made, shaped, joined, cut, indexed, moved, padded, selected.

Lives here: rows for ops/array but scattering, padding, blocks and partitions (cases_array_writing.py).
"""

from __future__ import annotations

import itertools

import numpy as np
from harness import bad, bf16, bools, c64, c128, case, f32, f64, i32, i64, strings, u8

import opwright as ow

# The number of true or distinct elements, of pieces and the like is known only when the operator runs.
SHAPE_DEPENDS_ON_DATA = {"Unique", "UniqueWithCounts", "DynamicPartition"}


def ints(*values):
    return np.array(values, np.int32)


def longs(*values):
    return np.array(values, np.int64)


# ---- oracles, written out ------------------------------------------------------------------------------------------


def gathered(axis=0, batch=0):
    def oracle(params, indices):
        lead, middle, rest = params.shape[:batch], params.shape[batch:axis], params.shape[axis + 1 :]
        out = np.zeros(lead + middle + indices.shape[batch:] + rest, params.dtype)
        for b in np.ndindex(*lead):
            for p in np.ndindex(*middle):
                for i in np.ndindex(*indices.shape[batch:]):
                    out[b + p + i] = params[b + p + (indices[b + i],)]
        return out

    return oracle


def gathered_nd(batch=0):
    def oracle(params, indices):
        out = np.zeros(indices.shape[:-1] + params.shape[batch + indices.shape[-1] :], params.dtype)
        for at in np.ndindex(*indices.shape[:-1]):
            out[at] = params[at[:batch] + tuple(indices[at])]
        return out

    return oracle


def reversed_rows(x, lengths):
    out = x.copy()
    for b, n in enumerate(lengths):
        out[b, :n] = x[b, :n][::-1]
    return out


def distinct(x):
    seen = list(dict.fromkeys(x.tolist()))
    idx = [seen.index(v) for v in x.tolist()]
    return seen, idx, [x.tolist().count(v) for v in seen]


def slices_of(tensor, begin, end, strides, **masks):
    """The gradient of a strided slice as one call: the tensor gives the shape and is otherwise not read."""
    from opwright.ops.array.slices import StridedSliceGrad

    return StridedSliceGrad(
        ow.shape(tensor), begin, end, strides, ow.strided_slice(tensor, begin, end, strides, **masks), **masks
    )


def at(key):
    """`tensor[key]` as a function and its oracle."""
    return {"call": lambda x: x[key], "expect": lambda x: x[key]}


def at_tensors(x, i, j):
    return x[i:, ..., j, None]


A, B = f64(3, 4), f64(2, 3, 4)

# fmt: off
CASES = {
    # ---- made (constants.py) ----
    "Const": [case(value=np.array([1, 2]), expect=np.array([1, 2])), bad(says="missing")],
    "Fill": [
        case(ints(2, 3), np.float64(1.5), expect=np.full((2, 3), 1.5)),
        case(longs(), np.float32(2), expect=np.float32(2), gives="float32"),
        bad(ints(2, -1), np.float32(0), says="negative"),
        bad(ints(2), f32(2), says="rank"),
        bad([2.0], np.float32(0), says="dims", raises=TypeError),
    ],
    "zeros": [
        case([2, 3], expect=np.zeros((2, 3)), gives="float32"),
        case(ints(2, 0), expect=np.zeros((2, 0), bool), dtype="bool"),
        case([2], expect=[b"", b""], dtype="string"),
        case(range(2, 4), expect=np.zeros((2, 3))),
        bad([2, -3], says="negative"),
        bad([2.0], says="not an integer", raises=TypeError),
        bad(2.0, says="not an integer", raises=TypeError),
        bad(f32(2), says="not an integer", raises=TypeError),
        bad([np.float32(2.0)], says="not an integer", raises=TypeError),
    ],
    "ones": [
        case([2], expect=np.ones(2, np.int64), dtype="int64", gives="int64"),
        bad([2, 3.0], says="not an integer", raises=TypeError),
    ],
    "zeros_like": [case(f64(2, 3), expect=np.zeros((2, 3)), grad=False), case(strings(2), expect=[b"", b""])],
    "ones_like": [case(f32(3), expect=np.ones(3, int), dtype="int32", gives="int32")],
    "Range": [
        case(np.int32(3), np.int32(18), np.int32(3), expect=np.array([3, 6, 9, 12, 15])),
        case(np.float32(3), np.float32(1), np.float32(-0.5), expect=np.array([3, 2.5, 2, 1.5])),
        case(np.int64(5), np.int64(5), np.int64(1), expect=np.zeros(0, int)),
        bad(np.int32(0), np.int32(3), np.int32(0), says="delta != 0"),
        bad(np.int32(3), np.int32(0), np.int32(1), says="start <= limit"),
    ],
    "range": [
        case(5, expect=np.arange(5), gives="int32"),
        case(1, 2.0, expect=np.array([1.0]), gives="float32"),
        case(0, 10, 3, expect=np.array([0, 3, 6, 9]), dtype="int64", gives="int64"),
    ],
    "LinSpace": [
        case(np.float64(1), np.float64(3), num=5, expect=np.array([1, 1.5, 2, 2.5, 3])),
        case(np.float32(1), np.float32(3), num=1, expect=np.array([1.0])),
        bad(np.float32(1), np.float32(3), num=0, says="num > 0"),
    ],
    "linspace": [
        case(0, 1, num=3, expect=np.array([0, 0.5, 1]), gives="float64"),
        case(np.float32([0, 1]), np.float32([1, 3]), num=3, expect=np.array([[0, 1], [0.5, 2], [1, 3]])),
        case(np.float32([0, 1]), np.float32([1, 3]), num=3, axis=-1, expect=np.array([[0, 0.5, 1], [1, 2, 3]])),
    ],
    "OneHot": [
        case(ints(0, 2, -1, 5), np.int32(3), np.float32(1), np.float32(0),
             expect=np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]])),
        case(ints(1, 0), np.int32(2), np.int32(5), np.int32(-5), axis=0, expect=np.array([[-5, 5], [5, -5]])),
        case(i64(2, 3, low=0, high=4), np.int32(4), np.float64(2), np.float64(1), axis=1,
             expect=lambda i, d, on, off: np.array([[[on if i[a,
                 c] == k else off for c in range(3)] for k in range(4)] for a in range(2)])),
        bad(ints(0), np.int32(-1), np.float32(1), np.float32(0), says="non-negative"),
    ],
    "one_hot": [
        case(ints(1), 2, expect=np.array([[0, 1.0]]), gives="float32"),
        case(ints(1), 2, expect=np.array([[False, True]]), dtype="bool", on_value=True, off_value=False),
    ],
    "eye": [
        case(2, expect=np.array([[1.0, 0], [0, 1]]), gives="float32"),
        case(1, 2, batch_shape=[2], dtype="int32", expect=np.array([[[1, 0]], [[1, 0]]])),
    ],
    # ---- dtypes (type_conversion.py) ----
    "Cast": [
        case(np.array([-1.9, 0.0, 2.7], np.float32), dtype="int32", expect=np.array([-1, 0, 2])),
        case(np.array([0, 2, -1], np.int32), dtype="bool", expect=np.array([False, True, True])),
        case(f64(2, 3), dtype="float64", expect=lambda x: x),
        case(np.array([1 + 2j, -3j], np.complex128), dtype="float64", expect=np.array([1.0, 0.0])),
        case(np.array([1.5, -2.5]), dtype="complex128", expect=np.array([1.5 + 0j, -2.5])),
        case(bools(3), dtype="bfloat16", expect=lambda x: np.array([1.0 if v else 0.0 for v in x]), gives="bfloat16"),
        bad(strings(2), says="dtype", dtype="int32"),
        bad(f32(2), says="not supported", dtype="string"),
    ],
    "saturate_cast": [
        case(np.array([-1e9, 300.7, 5], np.float32), "uint8", expect=np.array([0, 255, 5])),
        case(np.array([-(2**63), 2**63 - 1]), "uint64", expect=np.array([0, 2**63 - 1])),
        case(np.array([0, 2**64 - 1], np.uint64), "int64", expect=np.array([0, 2**63 - 1])),
        case(np.array([-1, 2**63 - 1]), "float32", expect=np.array([-1.0, 2.0**63])),
        case(np.array([1e300, -1e300]), "int64", expect=np.array([2**63 - 1024, -(2**63)]), half=False, grad=False),
        case(np.array([-200, 100, 200], np.int32), "int8", expect=np.array([-128, 100, 127])),
    ],
    "Bitcast": [
        case(np.array([1.0], np.float32), type="int32", expect=np.array([0x3F800000]), half=False),
        case(np.array([0x3F800000], np.int32), type="uint8", expect=np.array([[0, 0, 128, 63]])),
        case(np.array([0, 0, 128, 63], np.uint8), type="float32", expect=np.float32(1.0)),
        case(np.float32(1.0), type="int32", expect=np.int32(0x3F800000), half=False),
        bad(u8(3), says="Cannot bitcast", type="float32"),
    ],
    # ---- shaped (shape_operators.py, shape_checks.py) ----
    "Identity": [case(f64(2, 3), expect=lambda x: x), case(strings(2), expect=lambda x: x)],
    "StopGradient": [case(f64(3), expect=lambda x: x)],
    "Shape": [
        case(f32(2, 0, 3), expect=np.array([2, 0, 3]), gives="int32"),
        case(np.float32(1), out_type="int64", expect=np.zeros(0, int), gives="int64"),
    ],
    "shape": [case(f32(2, 3), expect=np.array([2, 3]), gives="int32")],
    "shape_n": [case([f32(2), f32(2, 1)], expect=[np.array([2]), np.array([2, 1])])],
    "Size": [case(f32(2, 3), expect=np.int32(6), gives="int32"), case(f32(0, 3), out_type="int64", expect=np.int64(0))],
    "Rank": [case(f32(2, 3), expect=np.int32(2)), case(np.float32(1), expect=np.int32(0))],
    "Reshape": [
        case(f64(2, 3), ints(3, 2), expect=lambda x, s: np.array([x.ravel()[2 * i : 2 * i + 2] for i in range(3)])),
        case(f32(2, 3), longs(-1), expect=lambda x, s: np.concatenate(list(x))),
        case(f32(1), longs(), expect=lambda x, s: x[0]),
        case(f32(0, 3), ints(-1, 3), expect=np.zeros((0, 3))),
        case(f32(0, 3), ints(0, -1), expect=np.zeros((0, 3))),
        case(f32(0, 6), ints(2, -1, 0), expect=np.zeros((2, 3, 0))),
        bad(f32(2, 3), ints(4), says=("6 values", "has 4")),
        bad(f32(2, 3), ints(-1, -1), says="Only one"),
        bad(f32(2, 3), ints(-1, 4), says="times an unknown size"),
    ],
    "reshape": [
        case(f32(2, 3), [3, -1], expect=lambda x, s: np.array([x.ravel()[2 * i : 2 * i + 2] for i in range(3)])),
        case(f32(2), 2, expect=lambda x, s: x),
    ],
    "ExpandDims": [
        case(f64(2, 3), axis=1, expect=lambda x: x[:, None]),
        case(np.float32(1.0), axis=-1, expect=np.array([1.0])),
        bad(f32(2), says="axis 3", axis=3),
    ],
    "Squeeze": [
        case(f64(1, 3, 1), expect=lambda x: x[0, :, 0], unknown=False),
        case(f32(1, 3, 1), axis=[-1], expect=lambda x: x[:, :, 0]),
        case(f32(1, 1), expect=lambda x: x[0, 0], unknown=False),
        bad(f32(2, 1), says="squeeze dim[0]", axis=[0]),
    ],
    "BroadcastTo": [
        case(f64(1, 3), ints(2, 2, 3), expect=lambda x, s: np.array([[x[0], x[0]], [x[0], x[0]]])),
        case(np.float64(2.0), longs(2), expect=np.array([2.0, 2.0])),
        bad(f32(2), ints(3), says="Incompatible"),
        bad(f32(2, 2), ints(2), says="Incompatible"),
    ],
    "SumToLike": [
        case(f64(2, 3), f64(1, 3), expect=lambda x, like: np.array([x[0] + x[1]]), grad=(0,)),
        case(f64(2, 3), np.float64(0), expect=lambda x, like: sum(x.ravel().tolist()), grad=(0,)),
        case(f64(2, 3), f64(2, 3), expect=lambda x, like: x, grad=(0,)),
        bad(f64(2, 3), f64(2), says="Incompatible shapes"),
        bad(f64(3), f64(1, 3), says="does not broadcast"),
    ],
    "EnsureShape": [
        case(f64(2, 3), expect=lambda x: x, shape=[None, 3]),
        bad(f64(2, 3), says="not compatible with expected shape", shape=[None, 4]),
    ],
    "BroadcastArgs": [
        case(ints(2, 1, 3), ints(4, 1), expect=np.array([2, 4, 3])),
        case(longs(), longs(2), expect=np.array([2]), gives="int64"),
        bad(ints(2), ints(3), says="Incompatible"),
    ],
    "broadcast_dynamic_shape": [case([2, 1], ints(3), expect=np.array([2, 3])),
                                case(longs(2), ints(1), expect=np.array([2]))],
    "identity_n": [case([f32(2), i32(3)], expect=lambda xs: list(xs))],
    "guarantee_const": [case(f32(2), expect=lambda x: x)],
    # ---- joined and split (concatenation.py, splits.py) ----
    "Concat": [
        case([f64(2, 3), f64(1, 3), f64(0, 3)], axis=0, expect=lambda vs: np.array([row for v in vs for row in v])),
        case([f64(2, 1), f64(2, 3)], axis=-1, expect=lambda vs: np.array([[*p, *q] for p, q in zip(*vs)])),
        case([bf16(2)], axis=0, expect=lambda vs: vs[0], gives="bfloat16"),
        case([strings(2), strings(1)], axis=0, expect=lambda vs: [*vs[0], *vs[1]]),
        case([c128(2), c128(3)], axis=0, expect=lambda vs: np.array([*vs[0], *vs[1]])),
        bad([f32(2, 3), f32(2, 3), f32(2, 4)], says=("dimension 1", "values[0]", "values[2]", "3 and 4"), axis=0),
        bad([f32(2, 3), f32(2)], says=("values[1]", "rank"), axis=0),
        bad([np.float32(1), np.float32(1)], says="scalar", axis=0),
        bad([f32(2)], says="axis 1", axis=1),
        bad([], says="no tensors", axis=0),
    ],
    "concat": [case(f32(2, 2), 0, expect=lambda x, axis: x),
               case([f64(2), f64(1)], np.int32(0), static=(1,), expect=lambda vs, a: np.array([*vs[0], *vs[1]]))],
    "Pack": [
        case([f64(2, 3), f64(2, 3)], expect=lambda vs: np.array(vs)),
        case([f64(2), f64(2), f64(2)], axis=-1, expect=lambda vs: np.array([[v[i] for v in vs] for i in range(2)])),
        case([np.float64(1.0), np.float64(2.0)], expect=np.array([1.0, 2.0])),
        case([strings(2), strings(2)], axis=1, expect=lambda vs: [list(p) for p in zip(*vs)]),
        bad([f32(2), f32(3)], says=("dimension 0", "values[0]", "values[1]")),
        bad([f32(2)], says="axis", axis=2),
    ],
    "stack": [case([1, 2.5], expect=np.array([1, 2.5]), gives="float32"),
              case(f32(2, 2), expect=lambda x: x, unknown=False)],
    "Unpack": [
        case(f64(2, 3), num=2, expect=lambda x: [x[0], x[1]]),
        case(f64(2, 3), num=3, axis=-1, expect=lambda x: [x[:, 0], x[:, 1], x[:, 2]]),
        case(f32(3), num=3, expect=lambda x: list(x)),
        bad(f32(2, 3), says="num is 4", num=4),
        bad(np.float32(1), says="scalar", num=1),
    ],
    "unstack": [
        case(f64(2, 3), expect=lambda x: [x[0], x[1]], unknown=False),
        bad(f32(2), says="not in range", axis=3, raises=ValueError),
    ],
    "Split": [
        case(f64(2, 6), num_split=3, axis=1, expect=lambda x: [x[:, :2], x[:, 2:4], x[:, 4:]]),
        bad(f32(5), says="3 equal parts", num_split=3),
        bad(f32(5), says="num_split", num_split=0),
    ],
    "SplitV": [
        case(f64(6, 2), ints(1, 3, 2), num_split=3, expect=lambda x, s: [x[:1], x[1:4], x[4:]]),
        case(f64(2, 5), longs(2, -1, 0), num_split=3, axis=-1, expect=lambda x, s: [x[:, :2], x[:, 2:], x[:, :0]]),
        bad(f32(5), ints(2, 2), says=("size 5", "[2, 2]"), num_split=2),
        bad(f32(5), ints(-1, -1), says="-1", num_split=2),
        bad(f32(5), ints(2, 3), says="num is 3", num_split=3),
    ],
    "split": [
        case(f64(4, 2), 2, expect=lambda x, n: [x[:2], x[2:]]),
        case(f64(4, 2), [1, 3], expect=lambda x, n: [x[:1], x[1:]]),
        case(f64(2, 4), ints(1, -1), expect=lambda x, n: [x[:, :1], x[:, 1:]], axis=1, num=2),
    ],
    "Tile": [
        case(f64(2, 3), ints(2, 1), expect=lambda x, m: np.array([x[0], x[1], x[0], x[1]])),
        case(f64(2), longs(3), expect=lambda x, m: np.array([*x, *x, *x])),
        case(f64(2, 3), ints(0, 2), expect=np.zeros((0, 6))),
        case(strings(1), ints(2), expect=lambda x, m: [x[0], x[0]]),
        bad(f32(2, 3), ints(2), says="length 2"),
        bad(f32(2), ints(-1), says="at least 0"),
    ],
    "TileGrad": [
        case(f64(4, 3), ints(2, 1), ints(2, 3), expect=lambda dy, m, s: dy[:2] + dy[2:]),
        case(f64(0, 3), ints(0, 1), ints(2, 3), expect=np.zeros((2, 3))),
        bad(f64(5), ints(2), ints(2), says="does not give the input"),
    ],
    "repeat": [
        case(f64(2, 3), 2, axis=0, expect=lambda x, r: np.array([x[0], x[0], x[1], x[1]])),
        case(f64(2, 2), ints(2, 0, 1, 3),
             expect=lambda x, r: np.array([v for v, n in zip(x.ravel(), r) for _ in range(n)])),
        case(f64(2, 2), ints(1, 2), axis=1, expect=lambda x, r: x[:, [0, 1, 1]]),
        case(np.float64(3.0), 2, expect=np.array([3.0, 3.0])),
        case(f32(2), np.int64(2), expect=lambda x, r: x[[0, 0, 1, 1]]),
        bad(f32(3), ints(1, 2), says="2 repeats for 3"),
    ],
    # ---- sliced (slices.py) ----
    "Slice": [
        case(f64(3, 4), ints(1, 0), ints(2, 3), expect=lambda x, b, s: x[1:3, :3]),
        case(f64(3, 4), longs(0, 2), longs(-1, -1), expect=lambda x, b, s: x[:, 2:]),
        case(f64(3), ints(3), ints(0), expect=np.zeros(0)),
        case(strings(3), ints(1), ints(1), expect=lambda x, b, s: x[1:2]),
        case(np.float64(1.5), ints(), ints(), expect=np.float64(1.5)),
        bad(f32(3, 4), ints(4, 0), ints(0, 1), says="begin[0] in [0, 3], but got 4"),
        bad(f32(3, 4), ints(1, 0), ints(3, 1), says="size[0] in [0, 2], but got 3"),
        bad(f32(3, 4), ints(0, 0), ints(1, -2), says="size[1]"),
        bad(f32(3, 4), ints(0), ints(1), says="2 numbers"),
        bad(f32(3), ints(), ints(), says="1 numbers"),
    ],
    "StridedSlice": [
        case(f64(5, 4), ints(1, 0), ints(4, 4), ints(2, 3), expect=lambda x, *k: x[1:4:2, 0:4:3]),
        case(f64(5, 4), ints(-2), ints(-9), ints(-2), expect=lambda x, *k: x[-2:-9:-2]),
        case(f64(5, 4), ints(9, -9), ints(0, 9), ints(-3, 2), begin_mask=1, end_mask=1,
             expect=lambda x, *k: x[::-3, ::2]),
        case(B, ints(0, 1), ints(0, 3), ints(1, 1), ellipsis_mask=1, expect=lambda x, *k: x[..., 1:3]),
        case(B, ints(0, 0, 2), ints(0, 0, 0), ints(1, 1, 1), ellipsis_mask=2, new_axis_mask=1, shrink_axis_mask=4,
             expect=lambda x, *k: x[None, ..., 2]),
        case(B, longs(-1, 0, 1), longs(0, 0, 2), longs(1, 1, 1), new_axis_mask=2, shrink_axis_mask=5,
             expect=lambda x, *k: x[-1, None, 1]),
        case(f64(3), ints(2), ints(1), ints(1), expect=np.zeros(0)),
        case(f64(3), ints(), ints(), ints(), expect=lambda x, *k: x),
        case(strings(4), ints(3), ints(0), ints(-2), end_mask=1, expect=lambda x, *k: x[::-2]),
        bad(f32(3), ints(3), ints(4), ints(1), says="slice index 3 of dimension 0 out of bounds", shrink_axis_mask=1),
        bad(f32(3), ints(-4), ints(4), ints(1), says="slice index -4", shrink_axis_mask=1),
        bad(f32(3), ints(0), ints(1), ints(0), says="strides[0] must be non-zero"),
        bad(f32(3), ints(0, 0), ints(1, 1), ints(1, 1), says="only 1 dims"),
        bad(f32(3), ints(0, 0), ints(1, 1), ints(1, 1), says="Multiple ellipses", ellipsis_mask=3),
        bad(f32(3), ints(0, 0), ints(1), ints(1), says="differ in length"),
        bad(f32(3), ints(0), ints(1), ints(-1), says="only stride 1", shrink_axis_mask=1),
    ],
    "StridedSliceGrad": [
        case(ints(4), ints(1), ints(4), ints(2), f64(2), expect=lambda s, b, e, k, dy: np.array([0, dy[0], 0, dy[1]])),
        case(f64(3, 2), ints(-1), ints(0), ints(1), call=slices_of, shrink_axis_mask=1,
             expect=lambda x, *k: np.array([[0, 0], [0, 0], x[2]])),
        bad(ints(4), ints(4), ints(5), ints(1), np.float32(1), says="slice index 4", shrink_axis_mask=1),
        bad(ints(4), ints(0), ints(3), ints(1), f32(2), says="3"),
        bad(ints(4), ints(4), ints(5), ints(1), np.float32([1]), says="does not have the shape of the slice"),
    ],
    "strided_slice": [case(f64(3, 4), [1], [3], expect=lambda x, b, e: x[1:3])],
    "getitem": [
        *(case(B, **at(key)) for key in (
            0, -1, (0, 1), (0, -1, 2), slice(None), slice(1, None), (slice(None), slice(None, None, 2)), slice(None,
                None, -1),
            (slice(None), slice(2, 0, -1)), ..., (..., 0), (0, ...), None, (..., None), (None, 0, None, slice(1, 3),
                ...),
            (slice(0, 0),), (slice(-100, 100), 1), (slice(None), np.int64(1)), (),
        )),
        case(B, np.int32(1), np.int64(-1), call=at_tensors, expect=lambda x, i, j: x[1:, ..., -1, None]),
        bad(B, says="mask cannot be scalar", call=lambda x: x[True], raises=ValueError),
        case(A, np.bool_([True, False, True]), call=lambda x, m: x[m], expect=lambda x, m: x[[0, 2]]),
        case(i32(5), np.int32(2), call=lambda x, i: x[x[i] * 0 + i], expect=lambda x, i: x[2]),
        case(np.int32(3), call=lambda n: ow.range(10)[n : 2 * n : n - 1], expect=np.array([3, 5])),
        bad(B, says="slice index 2 of dimension 0", call=lambda x: x[2]),
        bad(B, says="only 3 dims", call=lambda x: x[0, 0, 0, 0]),
        bad(B, says="Only integers, slices", call=lambda x: x[1.5], raises=TypeError),
        bad(B, says="Only integers, slices", call=lambda x: x["a"], raises=TypeError),
        bad(B, ints(0, 1), says="Only integers, slices", call=lambda x, i: x[i], raises=TypeError),
        bad(B, says="Multiple ellipses", call=lambda x: x[..., ...]),
        bad(B, says="non-zero", call=lambda x: x[::0]),
    ],
    # ---- indexed (indexing.py) ----
    "UnravelIndex": [
        case(ints(2, 5, 7, 0), ints(3, 3), expect=lambda i, d: np.stack(np.unravel_index(i, tuple(d)))),
        case(np.int64(23), longs(2, 3, 4), expect=[1, 2, 3], gives="int64"),
        case(longs(), longs(2, 3), expect=np.zeros((2, 0)), gives="int64"),
        bad(ints(1, 9), ints(3, 3), says="indices[1] = 9 is not in [0, 9)"),
        bad(np.int32(-1), ints(3, 3), says="not in [0, 9)"),
        bad(np.int32(0), ints(3, 0), says="size below 1"),
        bad(ints([1]), ints(3), says="rank"),
        bad(ints(1), np.int32(3), says="rank"),
        bad(ints(1), longs(3), says="dtype"),
    ],
    "unravel_index": [case([2, 5, 7], [3, 3], expect=[[0, 1, 2], [2, 2, 1]], gives="int32")],
    "Gather": [
        case(f64(4, 3), ints(2, 0, 2), expect=gathered()),
        case(f64(4, 3), i64(2, 2, low=0, high=4), expect=gathered()),
        case(f64(4), np.int32(3), expect=lambda p, i: p[3]),
        case(f64(2, 4, 3), ints(3, 1), axis=1, expect=gathered(1)),
        case(f64(2, 4), i32(2, 2, low=0, high=4), axis=-1, expect=gathered(1)),
        case(f64(2, 4, 3), i32(2, 5, low=0, high=4), axis=1, batch_dims=1, expect=gathered(1, 1)),
        case(f64(2, 3, 4, 2), i32(2, 2, low=0, high=4), axis=2, batch_dims=1, expect=gathered(2, 1)),
        case(f64(2, 3, 4), i32(2, 3, low=0, high=4), axis=2, batch_dims=2, expect=gathered(2, 2)),
        case(f64(2, 3), i32(2, 2, low=0, high=3), axis=1, batch_dims=-1, expect=gathered(1, 1)),
        case(bf16(3), ints(1), expect=lambda p, i: p[1:2]),
        case(strings(3), ints(2, 0), expect=lambda p, i: p[[2, 0]]),
        case(f64(3, 2), np.zeros((0,), np.int32), expect=np.zeros((0, 2))),
        case(f64(3, 0), ints(1, 2), expect=np.zeros((2, 0))),
        bad(f32(3, 2), np.array([[0, 1], [3, 0]], np.int32), says="indices[1, 0] = 3 is not in [0, 3)"),
        bad(f32(3), ints(-1), says="= -1 is not in [0, 3)"),
        bad(f32(3), np.int32(5), says="indices = 5 is not in"),
        bad(f32(3), f32(2), says="dtype"),
        bad(np.float32(3), ints(0), says="at least 1"),
        bad(f32(2, 3), i32(3, 3, low=0, high=2), says="should be equal", axis=1, batch_dims=1),
        bad(f32(2, 3), ints(0, 0), says="batch_dims", axis=0, batch_dims=1),
    ],
    "gather": [
        case(f64(2, 3), i32(2, 2, low=0, high=3), batch_dims=1, expect=gathered(1, 1)),
        case([1.0, 2.0], [1], expect=np.array([2.0]), gives="float32"),
    ],
    "GatherGrad": [
        case(f64(3, 2), ints(0, 1, 0), ints(2, 2), expect=lambda dy, i, s: np.array([dy[0] + dy[2], dy[1]])),
        case(f64(2, 3), i32(2, 3, low=0, high=2), ints(2, 2), axis=1, batch_dims=1,
             expect=lambda dy, i, s: np.array([[sum(d for d, j in zip(r, k) if j == c) for c in (0, 1)] for r,
                 k in zip(dy, i)])),
        bad(f32(2), ints(0, 5), ints(3), says="= 5 is not in [0, 3)"),
    ],
    "GatherNd": [
        bad(f32(2), f32(1), says="dtype"),
        case(f64(3, 4), np.array([[0, 1], [2, 3]], np.int32), expect=gathered_nd()),
        case(f64(3, 4), longs([2], [0], [2]), expect=gathered_nd()),
        case(f64(2, 3, 4), i32(2, 2, 1, low=0, high=2), expect=gathered_nd()),
        case(f64(2, 3, 4), i32(2, 5, 2, low=0, high=3), batch_dims=1, expect=gathered_nd(1)),
        case(f64(2, 3, 4), i32(2, 1, low=0, high=3), batch_dims=1, expect=gathered_nd(1)),
        case(f64(2, 2, 3), i64(2, 2, 2, 1, low=0, high=3), batch_dims=2, expect=gathered_nd(2)),
        case(f64(2, 3), np.zeros((2, 0), np.int32), expect=lambda p, i: np.array([p, p])),
        bad(f32(2, 2), np.array([[0, 0], [2, 3]], np.int32), says=("indices[1] = [2, 3]", "shape [2, 2]")),
        bad(f32(2, 2), i32(1, 3, low=0, high=1), says="3 vs. 2"),
    ],
    # ---- moved (permutation.py) ----
    "Permute": [
        case(f64(2, 3), np.int32([1, 0]), expect=lambda x, _: np.array([[x[i, j] for i in (0, 1)] for j in range(3)])),
        case(B, np.int64([2, 0, 1]), expect=lambda x, p: np.array(
            [[[x[i, j, k] for j in range(3)] for i in range(2)] for k in range(4)])),
        case(B, np.int32([0, -1, 1]), expect=lambda x, p: x.swapaxes(1, 2)),
        case(np.float64(1), np.zeros(0, np.int32), expect=lambda x, p: x),
        bad(f32(2, 3), np.int32([0, 0]), says="permutation"),
        bad(f32(2, 3), np.int32([0]), says="number of dimensions"),
    ],
    "Transpose": [
        case(f64(2, 3), expect=lambda x: np.array([[x[i, j] for i in range(2)] for j in range(3)])),
        case(B, perm=[2, 0, 1],
             expect=lambda x: np.array([[[x[i, j, k] for j in range(3)] for i in range(2)] for k in range(4)])),
        case(B, perm=[0, -1, 1], expect=lambda x: x.swapaxes(1, 2)),
        case(np.float64(1), expect=np.float64(1)),
        bad(f32(2, 3), says="permutation", perm=[0, 0]),
        bad(f32(2, 3), says="permutation", perm=[0]),
    ],
    "transpose": [
        case(c64(2, 3), conjugate=True,
             expect=lambda x: np.array([[x[i, j].conjugate() for i in range(2)] for j in range(3)]), half=False),
        case(f32(2, 3), perm=np.array([1, 0]), expect=lambda x: x.T),
    ],
    "Reverse": [
        case(B, axis=[1], expect=lambda x: x[:, [2, 1, 0]]),
        case(B, axis=[0, -1], expect=lambda x: x[[1, 0]][:, :, [3, 2, 1, 0]]),
        case(f32(2), axis=[], expect=lambda x: x),
        bad(f32(2, 2), says="twice", axis=[0, -2]),
        bad(f32(2), says="axis 1", axis=[1]),
    ],
    "Roll": [
        case(f64(5), ints(2), axis=[0], expect=lambda x, s: x[[3, 4, 0, 1, 2]]),
        case(f64(2, 3), longs(-1, 7), axis=[0, 1], expect=lambda x, s: x[[1, 0]][:, [2, 0, 1]]),
        case(f64(4), ints(1, 1), axis=[0, 0], expect=lambda x, s: x[[2, 3, 0, 1]]),
        bad(f32(2), ints(1, 2), says="same size", axis=[0]),
        bad(np.float32(2), ints(1), says="1-D", axis=[0]),
    ],
    "roll": [case(f64(3), 1, 0, expect=lambda x, s, a: x[[2, 0, 1]]),
             case(f64(1, 3), [1, 1], [1, -1], expect=lambda x, s, a: x[:, [1, 2, 0]])],
    "ReverseSequence": [
        case(f64(3, 4), ints(0, 2, 4), seq_axis=1, expect=reversed_rows),
        case(f64(4, 2, 3), longs(1, 3, 4), seq_axis=0, batch_axis=2,
             expect=lambda x, n: reversed_rows(x.transpose(2, 0, 1), n).transpose(1, 2, 0)),
        bad(f32(2, 3), ints(1, 4), says="seq_lengths[1] = 4", seq_axis=1),
        bad(f32(2, 3), ints(1), says="seq_lengths", seq_axis=1),
        bad(f32(2, 3), ints(1, 1), says="batch_axis == seq_axis", seq_axis=0),
    ],
    # ---- selected (selection.py) ----
    "Where": [
        case(bools(2, 3),
             expect=lambda c: np.array([[i, j] for i in range(2) for j in range(3) if c[i, j]]), gives="int64"),
        case(np.array([0.0, -0.0, np.nan, 2.0]), expect=np.array([[2], [3]])),
        case(np.bool_(True), expect=np.zeros((1, 0), int)),
        case(np.zeros((2, 0), bool), expect=np.zeros((0, 2), int)),
        bad(strings(2), says="dtype"),
    ],
    "Select": [
        case(bools(2, 3), f64(2, 3), f64(2, 3),
             expect=lambda c, x, y: np.array([[q if p else r for p, q, r in zip(*z)] for z in zip(c, x, y)])),
        case(bools(2, 1), f64(3), np.float64(0.5),
             expect=lambda c, x, y: np.array([[v if p[0] else y for v in x] for p in c])),
        case(bools(3), bf16(3), bf16(3), expect=lambda c, x, y: np.array([q if p else r for p, q, r in zip(c, x, y)])),
        case(bools(2), strings(2), strings(2), expect=lambda c, x, y: [q if p else r for p, q, r in zip(c, x, y)]),
        bad(bools(2), f32(2), f64(2), says="differ in dtype"),
        bad(bools(2), f32(3), f32(3), says="Incompatible"),
        bad(f32(2), f32(2), f32(2), says="dtype"),
    ],
    "where": [
        case(bools(2), expect=lambda c: np.array([[i] for i in range(2) if c[i]])),
        case(bools(2), 1.0, 2.0, expect=lambda c, x, y: np.array([1.0 if p else 2.0 for p in c])),
        bad(bools(2), f32(2), says="both", raises=ValueError),
    ],
    "Unique": [
        case(ints(4, 1, 4, 2, 1), expect=lambda x: distinct(x)[:2]),
        case(f32(0), expect=[np.zeros(0), np.zeros(0, int)], out_idx="int64", gives=["float32", "int64"]),
        case(np.array([b"b", b"a", b"b"], object), expect=[[b"b", b"a"], np.array([0, 1, 0])]),
        case(np.array([1.5, 0.5, 1.5], ow.bfloat16.np), expect=[np.array([1.5, 0.5]), np.array([0, 1, 0])]),
        bad(f32(2, 2), says="rank"),
    ],
    "UniqueWithCounts": [
        case(longs(4, 1, 4, 2, 1, 4), expect=distinct, out_idx="int64"),
        case(np.array([b"b", b"a", b"b"], object), expect=[[b"b", b"a"], np.array([0, 1, 0]), np.array([2, 1])]),
    ],
    "unique": [case(ints(7, 7, 3), expect=[np.array([7, 3]), np.array([0, 0, 1])])],
    "unique_with_counts": [case(ints(7, 7, 3), expect=[np.array([7, 3]), np.array([0, 0, 1]), np.array([2, 1])])],
    "LowerBound": [
        case(ints([1, 3, 3, 5], [0, 0, 0, 0]), ints([3, 6], [0, 1]), expect=np.array([[1, 4], [0, 4]]), gives="int32"),
        bad(f32(2, 3), f32(1, 3), says="must match"),
    ],
    "UpperBound": [
        case(np.array([[1, 3, 3, 5.0]], np.float32), np.array([[3, 0, 9.0]], np.float32), out_type="int64",
             expect=np.array([[3, 0, 4]])),
        bad(f32(2), f32(2), says="rank"),
    ],
    "searchsorted": [
        case(ints(1, 3, 5), ints(0, 3, 9), expect=np.array([0, 1, 3])),
        bad(ints(1, 3, 5), np.int32(3), says="last dimension"),
        case(ints([1, 3, 5], [2, 4, 6]), ints([3], [6]), side="right", expect=np.array([[2], [3]])),
        case(f32(0), np.array([1.0], np.float32), expect=np.array([0])),
        bad(ints(1), ints(1), says="side", side="up", raises=ValueError),
    ],
    "sequence_mask": [
        case(ints(1, 3, 2), 5, expect=lambda n, m: np.array([[j < k for j in range(5)] for k in n])),
        case(ints([1, 3], [2, 0]), expect=lambda n: np.array([[[j < k for j in range(3)] for k in r] for r in n])),
        case(ints(1, 0), dtype="float32", expect=np.array([[1.0], [0.0]]), gives="float32"),
        case(np.array([0.5, 1.5]), 2, expect=np.array([[False, False], [True, False]])),  # as TensorFlow has it
        bad(ints(1), ints(1), says="maxlen", raises=ValueError),
    ],
    "boolean_mask": [
        case(f64(3, 2), np.array([True, False, True]), expect=lambda x, m: x[[0, 2]]),
        case(B, bools(2, 3), expect=lambda x, m: np.array([x[i, j] for i in range(2) for j in range(3) if m[i, j]])),
        case(B, bools(4), axis=2, expect=lambda x, m: x[:, :, [k for k in range(4) if m[k]]]),
        bad(B, bools(3), says="incompatible", raises=ValueError),
        bad(B, np.bool_(True), says="scalar", raises=ValueError),
    ],
    "meshgrid": [
        case(f64(2), f64(3), expect=lambda x, y: [np.array([x] * 3), np.array([[v, v] for v in y])]),
        case(f64(2), f64(3), f64(1), indexing="ij",
             expect=lambda x, y, z: list(np.array(list(itertools.product(x, y, z))).reshape(2, 3, 1, 3).transpose(3,
                 0, 1, 2))),
        case(f32(3), expect=lambda x: [x]),
        bad(f32(2), says="indexing", indexing="up", raises=ValueError),
    ],
}
