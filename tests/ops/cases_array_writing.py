"""Rows for arrays written by index, padded, cut into blocks and distributed.

Lives here: rows for scatter.py, padding.py, splits.py of ops/array.
"""

from __future__ import annotations

import numpy as np
from harness import bad, bf16, bools, case, f32, f64, i32, strings


def ints(*values):
    return np.array(values, np.int32)


def longs(*values):
    return np.array(values, np.int64)


# ---- oracles, written out ------------------------------------------------------------------------------------------


def scattered(combine):
    """tensor, indices, updates: each update worked in, one by one."""

    def oracle(tensor, indices, updates):
        out = np.array(tensor)
        for at in np.ndindex(*indices.shape[:-1]):
            key = tuple(indices[at])
            out[key] = combine(out[key], updates[at])
        return out

    return oracle


def from_zeros(indices, updates, shape):
    return scattered(lambda old, new: old + new)(np.zeros(tuple(shape), updates.dtype), indices, updates)


def bordered(value=0.0):
    def oracle(x, paddings, *_):
        out = np.full([d + sum(p) for d, p in zip(x.shape, paddings)], value)
        for at in np.ndindex(*x.shape):
            out[tuple(i + p[0] for i, p in zip(at, paddings))] = x[at]
        return out

    return oracle


def source(i, before, n, skip):
    """The place that place i of a mirrored dimension is a copy of."""
    j = i - before
    if j < 0:
        return -j - (1 - skip)
    return j if j < n else 2 * n - 1 - skip - j


def mirrored(skip):
    def oracle(x, paddings):
        out = np.zeros([d + sum(p) for d, p in zip(x.shape, paddings)])
        for at in np.ndindex(*out.shape):
            out[at] = x[tuple(source(i, p[0], n, skip) for i, p, n in zip(at, paddings, x.shape))]
        return out

    return oracle


def folded(skip):
    def oracle(dy, paddings):
        sizes = [d - sum(p) for d, p in zip(dy.shape, paddings)]
        out = np.zeros(sizes)
        for at in np.ndindex(*dy.shape):
            out[tuple(source(i, p[0], n, skip) for i, p, n in zip(at, paddings, sizes))] += dy[at]
        return out

    return oracle


def blocks_to_depth(s):
    def oracle(x):
        n, h, w, c = x.shape
        out = np.zeros((n, h // s, w // s, c * s * s))
        for k, i, j, d in np.ndindex(n, h, w, c):
            out[k, i // s, j // s, ((i % s) * s + j % s) * c + d] = x[k, i, j, d]
        return out

    return oracle


def depth_to_blocks(s):
    def oracle(x):
        n, h, w, c = x.shape
        out = np.zeros((n, h * s, w * s, c // (s * s)))
        for k, i, j, d in np.ndindex(*out.shape):
            out[k, i, j, d] = x[k, i // s, j // s, ((i % s) * s + j % s) * out.shape[3] + d]
        return out

    return oracle


def channels_first(oracle):
    return lambda x: oracle(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def blocks_to_batch(x, block, paddings):
    """[n, h, w, c] with two blocks."""
    (p, q), (top, left) = block, paddings[:, 0]
    n, h, w, c = x.shape
    tall, wide = h + paddings[0].sum(), w + paddings[1].sum()
    out = np.zeros((n * p * q, tall // p, wide // q, c))
    for k, i, j in np.ndindex(n, h, w):
        y, z = i + top, j + left
        out[((y % p) * q + z % q) * n + k, y // p, z // q] = x[k, i, j]
    return out


def batch_to_blocks(x, block, crops):
    (p, q), n = block, x.shape[0] // (block[0] * block[1])
    whole = np.zeros((n, x.shape[1] * p, x.shape[2] * q, x.shape[3]))
    for k, y, z in np.ndindex(*whole.shape[:3]):
        whole[k, y, z] = x[((y % p) * q + z % q) * n + k, y // p, z // q]
    return whole[:, crops[0, 0] : whole.shape[1] - crops[0, 1], crops[1, 0] : whole.shape[2] - crops[1, 1]]


def stitched(indices, data):
    rows = 1 + max(int(i.max()) for i in indices)
    out = np.zeros((rows, *data[0].shape[indices[0].ndim :]))
    for numbers, slices in zip(indices, data):
        for at in np.ndindex(*numbers.shape):
            out[numbers[at]] = slices[at]
    return out


TWICE = ints([1], [3], [1])


# fmt: off
def updated(x, begin, end, strides, value):
    y = x.copy()
    y[tuple(slice(*b) for b in zip(begin, end, strides))] = value
    return y


CASES = {
    "TensorStridedSliceUpdate": [
        case(f64(5, 3), np.int32([1, 0]), np.int32([4, 2]), np.int32([2, 1]), f64(2, 2), expect=updated,
             static=(1, 2, 3)),
        case(f64(4), np.int32([1]), np.int32([3]), np.int32([1]), f64(), expect=updated, static=(1, 2, 3)),
        case(f32(3), np.int64([2]), np.int64([3]), np.int64([1]), np.float32(7), shrink_axis_mask=1,
             expect=lambda x, b, e, s, v: updated(x, b, e, s, v), static=(1, 2, 3)),
        bad(f32(4), np.int32([0]), np.int32([2]), np.int32([1]), f32(3), says="the value does not fill the slice"),
    ],
    # ---- by index (scatter.py) ----
    "ScatterNd": [
        case(TWICE, f64(3), ints(5), expect=from_zeros),
        case(ints([0, 1], [2, 0]), f64(2, 4), ints(3, 2, 4), expect=from_zeros),
        case(np.zeros((2, 2, 1), np.int64), f64(2, 2, 3), longs(2, 3), expect=from_zeros),
        case(np.zeros((0, 1), np.int32), f64(0, 2), ints(3, 2), expect=np.zeros((3, 2))),
        case(np.zeros((2, 0), np.int32), f64(2, 3), ints(3), expect=lambda i, u, s: u[0] + u[1]),
        case(TWICE, bf16(3), ints(5), expect=from_zeros),
        bad(ints([5]), f32(1), ints(5), says=("indices[0] = [5]", "shape [5]")),
        bad(ints([-1]), f32(1), ints(5), says="[-1]"),
        bad(ints([0]), f32(2), ints(5), says="updates of shape (1,)"),
        bad(np.int32(0), f32(2), ints(5), says="rank at least 1"),
    ],
    "scatter_nd": [case(longs([1]), np.array([2.0]), [3], expect=np.array([0, 2.0, 0]))],
    "TensorScatterUpdate": [
        case(f64(4), ints([1], [3]), f64(2), expect=scattered(lambda old, new: new)),
        case(f64(3, 2), longs([2], [0]), f64(2, 2), expect=scattered(lambda old, new: new)),
        case(strings(3), ints([1]), strings(1), expect=lambda t, i, u: [t[0], u[0], t[2]]),
        case(bools(3), ints([1]), np.array([True]), expect=lambda t, i, u: np.array([t[0], True, t[2]])),
        bad(f32(3), ints([3]), f32(1), says=("indices[0] = [3]", "tensor of shape [3]")),
        bad(f32(3), ints([0]), f32(2), says="updates"),
    ],
    "TensorScatterAdd": [
        bad(f32(3), ints([3]), f32(1), says=("indices[0] = [3]", "tensor of shape [3]")),
        case(f64(4), TWICE, f64(3), expect=scattered(lambda old, new: old + new)),
        case(i32(3, 2), ints([2], [2]), i32(2, 2), expect=scattered(lambda old, new: old + new)),
    ],
    "TensorScatterSub": [
        case(f64(4), TWICE, f64(3), expect=scattered(lambda old, new: old - new)),
        bad(f32(3), ints([3]), f32(1), says=("indices[0] = [3]", "tensor of shape [3]")),
    ],
    "TensorScatterMax": [
        bad(f32(3), ints([3]), f32(1), says=("indices[0] = [3]", "tensor of shape [3]")),
        case(f64(4), TWICE, f64(3), expect=scattered(max)),
        case(f64(4, 2), ints([0, 1], [3, 0]), f64(2), expect=scattered(max)),
    ],
    "TensorScatterMin": [
        case(f64(4), TWICE, f64(3), expect=scattered(min)),
        bad(f32(3), ints([3]), f32(1), says=("indices[0] = [3]", "tensor of shape [3]")),
    ],
    "tensor_scatter_nd_max": [
        case(np.zeros(2), ints([0], [0]), np.ones(2), expect=np.array([1.0, 0.0]), grad=False),
    ],
    # ---- padded (padding.py) ----
    "Pad": [
        case(f64(2, 3), ints([1, 2], [0, 1]), None, expect=bordered()),
        case(f64(3), longs([2, 0]), np.float64(1.5), expect=bordered(1.5)),
        case(np.float64(3), np.zeros((0, 2), np.int32), None, expect=np.float64(3)),
        case(f64(2, 0), ints([0, 0], [1, 1]), None, expect=np.zeros((2, 2))),
        case(np.array([b"a"], object), ints([0, 1]), np.array(b"x", object), expect=[b"a", b"x"]),
        bad(f32(2, 3), ints([1, 2]), None, says="(2, 2)"),
        bad(f32(2), ints([-1, 2]), None, says="non-negative: -1 2"),
        bad(f32(2), ints([1, 2]), f32(2), says="rank"),
    ],
    "pad": [
        case(f64(2), [[1, 0]], expect=lambda x, p: np.array([0, *x])),
        case(f64(2), [[1, 0]], constant_values=-1, expect=lambda x, p: np.array([-1, *x])),
        case(f64(3), [[2, 1]], mode="reflect", expect=lambda x, p: x[[2, 1, 0, 1, 2, 1]]),
        case(f64(2), [[2, 1]], mode="SYMMETRIC", expect=lambda x, p: x[[1, 0, 0, 1, 1]]),
        bad(f32(2), [[1, 1]], says="mode", mode="EDGE", raises=ValueError),
    ],
    "MirrorPad": [
        case(f64(3, 4), ints([2, 1], [0, 3]), mode="REFLECT", expect=mirrored(1)),
        case(f64(3, 4), longs([3, 1], [4, 4]), mode="SYMMETRIC", expect=mirrored(0)),
        bad(f32(2), ints([2, 0]), says="less than", mode="REFLECT"),
        bad(f32(2), ints([0, 3]), says="no greater than", mode="SYMMETRIC"),
        bad(f32(2), ints([0, -1]), says="non-negative", mode="SYMMETRIC"),
        bad(f32(2), ints([0, 1]), says="mode", mode="EDGE"),
    ],
    "MirrorPadGrad": [
        case(f64(6, 7), ints([2, 1], [0, 3]), mode="REFLECT", expect=folded(1)),
        case(f64(7, 9), ints([3, 1], [3, 2]), mode="SYMMETRIC", expect=folded(0)),
        bad(f32(4), ints([3, 3]), says="smaller than its paddings", mode="REFLECT"),
    ],
    # ---- blocks ----
    "SpaceToDepth": [
        case(f64(2, 4, 6, 3), block_size=2, expect=blocks_to_depth(2)),
        case(f64(1, 2, 4, 6), block_size=2, data_format="NCHW", expect=channels_first(blocks_to_depth(2))),
        bad(f32(1, 3, 4, 1), says=("dimension 1", "divisible"), block_size=2),
        bad(f32(1, 2, 2), says="rank", block_size=2),
        bad(f32(1, 2, 2, 1), says="block_size", block_size=1),
    ],
    "DepthToSpace": [
        case(f64(2, 2, 3, 8), block_size=2, expect=depth_to_blocks(2)),
        case(f64(1, 9, 2, 1), block_size=3, data_format="NCHW", expect=channels_first(depth_to_blocks(3))),
        bad(f32(1, 2, 2, 6), says="divisible", block_size=2),
    ],
    "SpaceToBatchND": [
        case(f64(2, 4, 5, 2), ints(2, 3), ints([1, 1], [0, 1]), expect=blocks_to_batch),
        case(f64(2, 3), ints(3), ints([0, 0]),
             expect=lambda x, b, p: np.array([[x[k, i]] for i in range(3) for k in range(2)])),
        bad(f32(1, 3, 4, 1), ints(2, 2), ints([0, 0], [0, 0]), says="not divisible"),
        bad(f32(1, 4), ints(2, 2), ints([0, 0], [0, 0]), says="rank"),
        bad(f32(1, 4), ints(0), ints([0, 0]), says="positive"),
        bad(f32(1, 4), ints(2), ints([-1, 1]), says="negative"),
    ],
    "BatchToSpaceND": [
        case(f64(12, 2, 2, 1), ints(2, 3), ints([1, 0], [0, 2]), expect=batch_to_blocks),
        bad(f32(3, 2), ints(2), ints([0, 0]), says="divisible"),
        bad(f32(2, 1), ints(2), ints([2, 2]), says="crops"),
    ],
    "batch_to_space": [
        case(f64(4, 1, 1, 1), 2, [[0, 0], [0, 0]], expect=lambda x, b, c: x.reshape(1, 2, 2, 1)),
    ],
    "space_to_batch": [case(f64(1, 2, 2, 1), [2, 2], [[0, 0], [0, 0]], expect=lambda x, b, p: x.reshape(4, 1, 1, 1))],
    # ---- distributed (splits.py) ----
    "DynamicPartition": [
        case(f64(5, 2), ints(0, 2, 0, 2, 2), num_partitions=3,
             expect=lambda x, p: [x[[0, 2]], np.zeros((0, 2)), x[[1, 3, 4]]]),
        case(f64(2, 2), ints([0, 1], [1, 1]), num_partitions=2,
             expect=lambda x, p: [x[0, :1], np.array([x[0, 1], *x[1]])]),
        bad(f32(2), ints(0, 3), says="partitions[1] = 3 is not in [0, 2)", num_partitions=2),
        bad(f32(2), ints(0, 0, 0), says="start with", num_partitions=2),
    ],
    "DynamicStitch": [
        case([ints(0, 3), ints([1, 2])], [f64(2, 2), f64(1, 2, 2)], expect=stitched),
        case([np.int32(1), ints(0)], [f64(3), f64(1, 3)], expect=stitched),
        case([ints(), ints(1)], [f64(0), f64(1)], expect=lambda i, d: np.array([0, d[1][0]])),
        bad([ints(-1)], [f32(1)], says="indices[0]"),
        bad([ints(0)], [f32(2)], says="data[0].shape must start"),
        bad([ints(0), ints(1)], [f32(1, 2), f32(1, 3)], says="slices of shape"),
    ],
}
