"""The converter's table, continued: what merges, what is found, what goes; and sums of products in many forms."""

from __future__ import annotations

from typing import Any

import numpy as np
from convert_harness import case, f32, ints, pos

import opwright as ow

nn, m = ow.nn, ow.math
BATCH = {0: (0,)}
IMAGE = f32(2, 8, 7, 4)
K = f32(3, 3, 4, 5)
DW = f32(3, 3, 4, 2)
S, T = pos(4), f32(4)
W = f32(4, 3)
C = f32(2, 5, 4)


def conv(x: Any, padding: Any = "VALID", strides: Any = 1) -> Any:
    return nn.conv2d(x, K, strides, padding)


def erfc_gelu(x: Any) -> Any:
    return (0.5 * x) * m.erfc(-x * np.float32(np.sqrt(0.5)))  # as JAX has it


def erf_gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + m.erf(x / np.float32(np.sqrt(2.0))))


def tanh_gelu(x: Any) -> Any:
    return x * 0.5 * (1.0 + ow.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + 0.044715 * m.pow(x, 3.0))))


def by_hand(x: Any) -> Any:
    e = ow.exp(x - m.reduce_max(x, -1, True))
    return e / m.reduce_sum(e, -1, True)


MERGED = [
    case("scale_before_conv", lambda x: conv(x * S), IMAGE, ops="CONV_2D", open=BATCH),
    case("norm_before_conv", lambda x: conv(x * S + T), IMAGE, ops="CONV_2D"),
    case("norm_before_padded_conv", lambda x: conv(x * S + T, "SAME"), IMAGE, ops="MUL ADD CONV_2D"),
    case("scale_before_padded_conv", lambda x: conv(x / S, "SAME"), IMAGE, ops="CONV_2D"),
    case("norm_before_point", lambda x: nn.conv2d(x - T, K[:1, :1], 1, "SAME"), IMAGE, ops="CONV_2D"),
    case(
        "norm_before_depthwise",
        lambda x: nn.depthwise_conv2d(x * S + T, DW, [1, 1, 1, 1], "VALID"),
        IMAGE,
        ops="DEPTHWISE_CONV_2D",
    ),
    case("norm_before_dense", lambda x: ow.matmul(x * S + T, W), f32(3, 4), ops="FULLY_CONNECTED", open=BATCH),
    case("norm_before_dense_of_3", lambda x: ow.matmul(x * S + T, W), C, ops="FULLY_CONNECTED"),
    case("scaled_twice_read", lambda x: (conv(x * S), x * S), IMAGE, ops="MUL CONV_2D"),
    case(
        "shared_weights_stay",
        lambda x: (ow.matmul(x * S, W), ow.matmul(x, W) * 2.0),
        f32(3, 4),
        ops="MUL FULLY_CONNECTED FULLY_CONNECTED MUL",
    ),
    case(
        "padding_is_same", lambda x: conv(ow.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])), IMAGE, ops="CONV_2D", open=BATCH
    ),
    case("padding_is_not_same", lambda x: conv(ow.pad(x, [[0, 0], [2, 0], [1, 1], [0, 0]])), IMAGE, ops="PAD CONV_2D"),
    case(
        "padding_for_strides",
        lambda x: conv(ow.pad(x, [[0, 0], [0, 1], [1, 1], [0, 0]]), "VALID", 2),
        IMAGE,
        ops="CONV_2D",
    ),
    case(
        "transpose_conv_relu6",
        lambda x: nn.relu6(nn.conv2d_transpose(x, f32(3, 3, 6, 4), [2, 16, 14, 6], 2) + f32(6)),
        IMAGE,
        ops="TRANSPOSE_CONV",
    ),
    case(
        "conv3d_norm_relu",
        lambda x: nn.relu(nn.conv3d(x, f32(2, 2, 2, 3, 4), [1] * 5, "SAME") * S + T),
        f32(1, 4, 5, 6, 3),
        ops="CONV_3D",
    ),
    case(
        "bias_after_reshape",
        lambda x: ow.reshape(ow.matmul(x, f32(4, 6)), [-1, 2, 3]) + f32(2, 3),
        f32(5, 4),
        ops="FULLY_CONNECTED RESHAPE",
        open=BATCH,
    ),
    case(
        "relu_after_reshape",
        lambda x: nn.relu(ow.reshape(ow.matmul(x, W), [-1, 3, 1])),
        f32(5, 4),
        ops="FULLY_CONNECTED RESHAPE",
    ),
    case(
        "rows_by_hand",
        lambda x: ow.reshape(ow.matmul(ow.reshape(x, [-1, 4]), W) + f32(3), [2, 5, 3]),
        C,
        ops="FULLY_CONNECTED",
    ),
    case("batch_matmul_constant", lambda x: ow.matmul(x, f32(1, 4, 3)), C, ops="FULLY_CONNECTED"),
    case(
        "transposed_operand", lambda x, y: ow.matmul(x, ow.transpose(y, [0, 2, 1])), C, f32(2, 3, 4), ops="BATCH_MATMUL"
    ),
    case("constants_in_a_chain", lambda x: ((x + 1.0) + T) * 2.0 * S, f32(3, 4), ops="ADD MUL"),
]

FOUND = [
    case("maximum_relu", lambda x: ow.maximum(x, 0.0), f32(9), ops="RELU"),
    case("leaky_by_hand", lambda x: ow.maximum(x, 0.2 * x), f32(9), ops="LEAKY_RELU"),
    case("prelu_by_hand", lambda x: nn.relu(x) - S * nn.relu(-x), f32(3, 4), ops="PRELU"),
    case("prelu_negated", lambda x: nn.relu(x) + (-S) * nn.relu(-x), f32(3, 4), ops="PRELU"),
    case("softmax_by_hand", by_hand, C, ops="SOFTMAX", open=BATCH),
    case("gelu_by_erf", erf_gelu, C, ops="GELU", rtol=2e-5, open=BATCH),
    case("gelu_by_erfc", erfc_gelu, C, ops="GELU", rtol=2e-5, open=BATCH),
    case("gelu_by_tanh", tanh_gelu, C, ops="GELU", rtol=2e-5),
]

GONE = [
    case("add_zero", lambda x: x + 0.0, f32(3, 4), ops=""),
    case("times_one", lambda x: x * np.ones(4, np.float32), C, ops="", open=BATCH),
    case("add_zero_that_spreads", lambda x: x + np.zeros((2, 1), np.float32), f32(4), ops="ADD"),
    case("divided_by_one", lambda x: x / 1.0, f32(3), ops=""),
    case("minus_zero", lambda x: x - 0.0, f32(3), ops=""),
    case("no_padding", lambda x: ow.pad(x, [[0, 0], [0, 0]]), f32(2, 3), ops=""),
    case("whole_slice", lambda x: ow.slice(x, [0, 0], [-1, 3]), f32(2, 3), ops="", open=BATCH),
    case("tile_once", lambda x: ow.tile(x, [1, 1]), f32(2, 3), ops="", open=BATCH),
    case(
        "reshape_three_times",
        lambda x: ow.squeeze(ow.expand_dims(ow.reshape(x, [3, 2]), 1), [1]),
        f32(2, 3),
        ops="RESHAPE",
    ),
    case("transpose_of_ones", lambda x: ow.transpose(x, [0, 3, 1, 2]), f32(2, 1, 5, 1), ops="RESHAPE"),
]


def einsum(label: str, equation: str, *inputs: np.ndarray, constant: tuple[np.ndarray, ...] = (), **more: Any) -> Any:
    return case(f"einsum_{label}", lambda *t: ow.einsum(equation, *t, *constant), *inputs, **more)


EINSUMS = [
    einsum("reduced", "ijk->ik", f32(2, 3, 4), ops="SUM"),
    einsum("turned", "ijk->kij", f32(2, 3, 4), ops="TRANSPOSE"),
    einsum("elements", "ij,ij->ij", f32(2, 3), f32(2, 3, seed=5), ops="MUL"),
    einsum("dot", "i,i->", f32(5), f32(5, seed=5)),
    einsum("outer_of_3", "i,j,k->kij", f32(2), f32(3), f32(4)),
    einsum("three", "ij,jk,kl->il", f32(2, 3), f32(3, 4), f32(4, 5)),
    einsum("broadcast", "...ij,...jk->...ik", f32(2, 1, 3, 4), f32(5, 4, 2)),
    einsum("weights", "abc,cd->abd", C, constant=(W,), ops="FULLY_CONNECTED", open={0: (0, 1)}),
    einsum("heads", "abc,cde->abde", C, constant=(f32(4, 2, 3),), ops="FULLY_CONNECTED RESHAPE", open=BATCH),
    einsum("heads_of_any_length", "abc,cde->abde", C, constant=(f32(4, 2, 3),), open={0: (0, 1)}),
    einsum("heads_joined", "abde,dec->abc", f32(2, 5, 2, 3), constant=(f32(2, 3, 4),), ops="RESHAPE FULLY_CONNECTED"),
    case("einsum_weights_first", lambda x: ow.einsum("cd,abc->abd", W, x), C, ops="FULLY_CONNECTED"),
    einsum(
        "scores",
        "aecd,abcd->acbe",
        f32(2, 5, 2, 3),
        f32(2, 4, 2, 3, seed=6),
        ops="TRANSPOSE TRANSPOSE BATCH_MATMUL",
        open={0: (0, 1), 1: (0, 1)},
    ),
    einsum("values", "acbe,aecd->abcd", f32(2, 2, 4, 5), f32(2, 5, 2, 3), open={0: (0,), 1: (0,)}),
    einsum("ints", "ij,ij->ij", ints(2, 3), ints(2, 3, seed=5), ops="MUL"),
]

FUSING = [*MERGED, *FOUND, *GONE, *EINSUMS]
