"""The converter's table, continued: types without a builtin operator, computed in wider ones; rules of other types;
reductions that drop dimensions.

Rows name operators in the file where a rule promises them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from convert_harness import case, f32, ints, pos

import opwright as ow

m = ow.math


def ends(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return integers at the ends of a type, and others, none of them 0 in the second."""
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    x = np.array([least, least + 1, least + 3, 0, 1, 7, most // 2, most - 1, most], dtype)
    return x, np.array([3, most, 5, 9, 2, most - 3, 3, 2, most], dtype)


# By type, functions without a builtin operator of it; sums and products wrap.
WITHOUT_BUILTIN = {
    "int8": [m.add, m.subtract, m.multiply, m.truncatediv, m.floordiv, m.floormod, m.less, m.equal],
    "uint8": [m.add, m.multiply, m.truncatediv, m.floormod, m.greater, m.less_equal],
    "int16": [m.subtract, m.truncatediv, m.not_equal],
    "uint16": [m.add, m.multiply, m.floormod, m.maximum, m.minimum, m.greater_equal, m.truncatediv],
    "uint32": [m.add, m.subtract, m.maximum, m.less, m.floormod],
}


def half_precision(x: Any, y: Any) -> Any:
    return m.reduce_sum(m.exp(ow.matmul(x, y) / np.float16(4)) - m.sqrt(m.abs(x)), 1)


def suppressed(boxes: Any, scores: Any, iou: Any) -> Any:
    return ow.image.non_max_suppression(boxes, scores, 8, iou, 0.1)


def corners(n: int) -> np.ndarray:
    first = pos(n, 2)
    return np.concatenate([first, first + pos(2, n).T], 1)


def around_reshape(*order: int) -> Any:
    return lambda x: ow.transpose(ow.reshape(ow.transpose(x, [1, 3, 0, 2]), [15, 2, 4]), order)


def around_split(x: Any) -> Any:
    return ow.transpose(ow.reshape(ow.transpose(x, [1, 0, 2]), [5, 2, 3, 4]), [2, 0, 3, 1])


def attention_output(x: Any) -> Any:
    """Join the heads of [n, heads, length, depth] last, as an exporter that keeps channels first does."""
    y = ow.reshape(ow.transpose(x, [1, 3, 2, 0]), [15, -1])
    return ow.matmul(ow.transpose(y, [1, 0]), f32(15, 2))


DIVIDENDS = np.array(
    [-(2**63), 2**63 - 1, -(2**63), 2**62 - 1, 2**53 + 1, -(2**40) - 3, -7, 7, 0, 999_999_999_999], np.int64
)
DIVISORS = np.array([3, 1, 2**63 - 1, -7, 1, 2**20 + 1, 2, -2, 5, 1_000_003], np.int64)
TOUCHING = np.float32([[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 2, 2]])  # half of one covers the one before
SCORES = np.linspace(1, 0.2, 20, dtype=np.float32)

TYPES = [
    *(
        case(f"{function.__name__}_{dtype}", function, *ends(dtype))
        for dtype, functions in WITHOUT_BUILTIN.items()
        for function in functions
    ),
    case("max_pool_uint8", lambda x: ow.nn.max_pool2d(x, 2, 2, "VALID"), ints(1, 4, 6, 3, high=255, low=0, dtype="u1")),
    case("half_precision", half_precision, f32(4, 4).astype("f2"), pos(4, 4).astype("f2"), rtol=2e-3),
    case("half_infinities", lambda x: m.is_inf(x * np.float16(9)), np.float16([1, 7000, 7300, -9000])),
    case("erf", m.erf, np.float32([*np.linspace(-5, 5, 101), 1e-30, -1e-4, 0.999999, 30, -1e20]), rtol=1e-6),
    case("erf_ends", m.erf, np.float32([np.nan, np.inf, -np.inf, 0])),
    case("erfc", m.erfc, np.float32([*np.linspace(-5, 9, 141), 1e-30, -1e-4, 0.999999, 30, -1e20]), rtol=5e-6),
    case("erfc_ends", m.erfc, np.float32([np.nan, np.inf, -np.inf, 0])),
    case("truncatemod_int64", m.truncatemod, np.int64([7, -7, 7, -7, 0, 2**62]), np.int64([3, 3, -3, -3, 5, -9])),
    case(
        "truncatemod_float", m.truncatemod, np.float32([7.5, -7.5, 7.5, -7.5, 0, -3]), np.float32([2, 2, -2, -2, 3, 3])
    ),
    case("gather_nd_batch", lambda x, i: ow.gather_nd(x, i, 1), f32(3, 4, 5, 2), ints(3, 6, 2, low=0, high=4)),
    case("gather_nd_batches", lambda x, i: ow.gather_nd(x, i, 2), f32(2, 3, 4, 2), ints(2, 3, 1, low=0, high=4)),
    case("left_shift_int64", ow.bitwise.left_shift, np.int64([1, -1, 2**40, 3, 5]), np.int64([62, 63, 3, 0, 33])),
    case("sort_unknown", lambda x: ow.sort(x, direction="DESCENDING"), f32(3, 7), open={0: (0, 1)}),
    case("mean_and_reshape", lambda x: ow.reshape(m.reduce_mean(x, [1, 2], True), [2, 5]), f32(2, 3, 4, 5), ops="MEAN"),
    case(
        "max_and_squeeze",
        lambda x: ow.squeeze(m.reduce_max(x, [-1], True), [2]),
        f32(2, 3, 4),
        open={0: (0,)},
        ops="REDUCE_MAX",
    ),
    case("transposes_around_reshape", around_reshape(0, 2, 1), f32(2, 3, 4, 5), ops="TRANSPOSE RESHAPE"),
    case("transposes_around_a_split", around_split, f32(6, 5, 4)),
    *(
        case(f"attention_transposes_{n}", attention_output, f32(n, 3, 4, 5), ops="TRANSPOSE RESHAPE FULLY_CONNECTED")
        for n in (1, 2)
    ),
    case(
        "mean_and_other_shape",
        lambda x: ow.reshape(m.reduce_mean(x, [1], True), [5, 2]),
        f32(2, 3, 5),
        ops="MEAN RESHAPE",
    ),
    case("suppression_by_tensors", suppressed, corners(20), SCORES, np.float32(0.2)),
    case("suppression_at_the_threshold", suppressed, TOUCHING, SCORES[:3], np.float32(0.5)),
    case("suppression_of_all", suppressed, TOUCHING, SCORES[:3], np.float32(0)),
    *(
        case(name, function, DIVIDENDS, DIVISORS)
        for name, function in (("floor_div_int64", m.floordiv), ("truncate_div_int64", m.truncatediv))
    ),
]
