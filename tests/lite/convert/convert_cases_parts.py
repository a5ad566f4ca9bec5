"""The converter's table, continued: parts of tensors, in the forms that official delegates take whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from convert_harness import case, f32

import opwright as ow

nn = ow.nn
IMAGE = f32(2, 4, 6, 3)
POINT, WINDOW = f32(1, 1, 4, 8), f32(3, 3, 4, 8, seed=1)
COLUMNS, ROWS, SCALE, OFFSET = f32(5, 6), f32(4, 3, seed=1), f32(4, 1, seed=2), f32(4, 1, seed=3)
TOKENS = f32(2, 5, 24)
ROUND = [[0, 0], [1, 1], [1, 1], [0, 0]]


def every_second(x: Any, *places: tuple[int, int]) -> list[Any]:
    return [x[:, i::2][:, :, j::2] for i, j in places]


def padded_pool(x: Any, pads: Any = ROUND) -> Any:
    return nn.max_pool2d(ow.pad(x, pads, constant_values=-np.inf), 3, 2, "VALID")


def dense_block(x: Any) -> Any:
    parts = [x]
    for i in range(7):
        parts.append(nn.relu(ow.concat(parts, -1)[:, :2] - float(i)))
    return ow.concat(parts, -1)


def attended(q: Any, k: Any, v: Any) -> Any:
    y = ow.matmul(nn.softmax(ow.matmul(q * 0.5, k, transpose_b=True)), v)
    return ow.reshape(ow.transpose(y, [0, 2, 1, 3]), [2, 5, -1])


def stacked_heads(x: Any) -> Any:
    """As Swin and ViT of timm: one tensor of queries, keys and values, transposed, then taken apart."""
    y = ow.transpose(ow.reshape(x, [2, 5, 3, 2, 4]), [2, 0, 3, 1, 4])
    return attended(y[0], y[1], y[2])


def split_heads(x: Any) -> Any:
    """As MaxViT and torch.nn.MultiheadAttention: taken apart, and each part transposed."""
    return attended(*(ow.transpose(ow.reshape(y, [2, 5, 2, 4]), [0, 2, 1, 3]) for y in ow.split(x, 3, -1)))


def uneven_heads(x: Any) -> Any:
    """As LeViT: values are wider than queries and keys, which are transposed for the product."""
    q, k, v = ow.split(ow.reshape(x, [2, 5, 2, 12]), [3, 3, 6], -1)
    scores = ow.matmul(ow.transpose(q, [0, 2, 1, 3]), ow.transpose(k, [0, 2, 3, 1]))
    y = ow.matmul(nn.softmax(scores), ow.transpose(v, [0, 2, 1, 3]))
    return ow.reshape(ow.transpose(y, [0, 2, 1, 3]), [2, 5, 12])


def padded_and_whole(x: Any) -> Any:
    """As RepVGG and MobileOne: channels-first images are read by a convolution of points and one of padded windows."""
    y = ow.transpose(x, [0, 2, 3, 1])
    z = ow.transpose(ow.pad(x, [[0, 0], [0, 0], [1, 1], [1, 1]]), [0, 2, 3, 1])
    return nn.conv2d(y, POINT, 2, "VALID") + nn.conv2d(z, WINDOW, 2, "VALID")


def mixed_rows(x: Any) -> Any:
    """As ResMLP: scale and offset of columns are merged into the product of rows that follows."""
    return ow.matmul(ow.transpose(ow.matmul(x, COLUMNS) * SCALE + OFFSET, [0, 2, 1]), ROWS) + 1.0


HEADS = "RESHAPE TRANSPOSE RESHAPE SPLIT MUL BATCH_MATMUL SOFTMAX BATCH_MATMUL TRANSPOSE RESHAPE"

PARTS = [
    case("part_of_an_axis", lambda x: x[:, 1] + x[:, -1], IMAGE, ops="SLICE RESHAPE SLICE RESHAPE ADD"),
    case("part_of_a_part", lambda x: x[1:, 1:][:, :2, 2:4], IMAGE, ops="SLICE"),
    case("part_of_any_batch", lambda x: x[:, 1:3], IMAGE, ops="STRIDED_SLICE", open={0: (0,)}),
    case("halves_by_slices", lambda x: x[:, :2] * x[:, 2:], IMAGE, ops="SPLIT MUL"),
    case("halves_of_the_first_axis", lambda x: x[0] * x[1], IMAGE, ops="RESHAPE SPLIT MUL"),
    case("strided_once", lambda x: x[:, ::2][:, :, 1::2], IMAGE, ops="STRIDED_SLICE"),
    case(
        "patches", lambda x: ow.concat(every_second(x, (0, 0), (0, 1), (1, 0), (1, 1)), -1), IMAGE, ops="SPACE_TO_DEPTH"
    ),
    case(
        "patches_by_columns",
        lambda x: ow.concat(every_second(x, (0, 0), (1, 0), (0, 1), (1, 1)), -1),
        IMAGE,
        ops="RESHAPE TRANSPOSE RESHAPE",
    ),
    case(
        "patches_in_no_order",
        lambda x: ow.concat(every_second(x, (0, 0), (1, 1), (0, 1), (1, 0)), -1),
        IMAGE,
        ops="STRIDED_SLICE " * 6 + "CONCATENATION",
    ),
    case(
        "patches_of_three",
        lambda x: ow.concat([x[:, :, i::3] for i in range(3)], 1),
        IMAGE,
        ops="RESHAPE TRANSPOSE RESHAPE",
    ),
    case(
        "broadcast_by_the_sum",
        lambda x: x / ow.broadcast_to(ow.reduce_sum(x * x, -1, keepdims=True), IMAGE.shape),
        IMAGE,
        ops="MUL SUM DIV",
    ),
    case("zeros_before_a_maximum", lambda x: padded_pool(nn.relu(x)), IMAGE, ops="RELU PAD MAX_POOL_2D"),
    case("infinities_before_a_maximum", padded_pool, IMAGE, ops="PADV2 MAX_POOL_2D"),
    case(
        "windows_of_padding_alone",
        lambda x: padded_pool(nn.relu(x), [[0, 0], [3, 1], [1, 1], [0, 0]]),
        IMAGE,
        ops="RELU PADV2 MAX_POOL_2D",
    ),
    case("a_block_that_grows", dense_block, f32(3, 2)),
    case("padded_and_whole", padded_and_whole, f32(1, 4, 8, 8), ops="TRANSPOSE PAD CONV_2D CONV_2D ADD"),
    case("mixed_rows", mixed_rows, f32(2, 4, 5), ops="FULLY_CONNECTED TRANSPOSE FULLY_CONNECTED"),
    case(
        "one_row",
        lambda x: ow.matmul(ow.reshape(nn.relu(x), [1, 4]), ROWS),
        f32(1, 1, 1, 4),
        ops="RELU FULLY_CONNECTED",
    ),
    case("heads_stacked", stacked_heads, TOKENS, ops=HEADS),
    case("heads_split", split_heads, TOKENS, ops=HEADS),
    case(
        "heads_uneven",
        uneven_heads,
        TOKENS,
        ops="RESHAPE TRANSPOSE SLICE SLICE SLICE BATCH_MATMUL SOFTMAX BATCH_MATMUL TRANSPOSE RESHAPE",
    ),
]
