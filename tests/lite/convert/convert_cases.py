"""The converter's table: functions, what they are run on, and the operators that their files must hold.

Rows name operators in the file where a rule promises them; the order of the names is the order in the file.
"""

from __future__ import annotations

import numpy as np
from convert_cases_fusing import FUSING
from convert_cases_more import MORE
from convert_cases_parts import PARTS
from convert_cases_types import TYPES
from convert_harness import bools, case, f32, ints, pos

import opwright as ow

nn, m = ow.nn, ow.math
W = f32(4, 3)
B = f32(3)
K = f32(3, 3, 4, 5)  # h, w, in, out
KB = f32(5)
DW = f32(3, 3, 4, 2)
IMAGE = f32(2, 8, 7, 4)
FLIPPED = np.ascontiguousarray(IMAGE.transpose(0, 3, 1, 2))
BATCH = {0: (0,)}


def unary(name: str, op: str, x: np.ndarray | None = None, space: object = m, **more: object) -> object:
    return case(name, getattr(space, name), f32(2, 3) if x is None else x, ops=op, **more)


def binary(name: str, op: str, x: np.ndarray, y: np.ndarray, suffix: str = "", **more: object) -> object:
    return case(f"{name}{suffix}", getattr(m, name), x, y, ops=op, **more)


ELEMENTWISE = [
    unary("abs", "ABS"),
    unary("abs", "ABS", ints(4)),
    unary("negative", "NEG"),
    unary("negative", "NEG", ints(4)),
    unary("exp", "EXP"),
    unary("log", "LOG", pos(5)),
    unary("sqrt", "SQRT", pos(5)),
    unary("rsqrt", "RSQRT", pos(5)),
    unary("square", "SQUARE"),
    unary("sin", "SIN"),
    unary("cos", "COS"),
    unary("tanh", "TANH"),
    unary("sigmoid", "LOGISTIC"),
    unary("floor", "FLOOR"),
    unary("ceil", "CEIL"),
    unary("sign", "SIGN"),
    unary("round", "ROUND", np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49], np.float32)),
    binary("add", "ADD", f32(2, 3), f32(3)),
    binary("add", "ADD", ints(2, 3), ints(2, 1), "_int"),
    binary("subtract", "SUB", f32(2, 3), f32(3)),
    binary("multiply", "MUL", f32(2, 3), f32(1, 3)),
    binary("divide", "DIV", f32(2, 3), pos(3)),
    binary("floordiv", "FLOOR_DIV", f32(2, 3), pos(3)),
    binary("floordiv", "FLOOR_DIV", ints(2, 3), ints(3, low=1), "_int"),
    binary("floormod", "FLOOR_MOD", f32(2, 3), pos(3)),
    binary("floormod", "FLOOR_MOD", ints(2, 3), ints(3, low=1), "_int"),
    binary("pow", "POW", pos(2, 3), f32(3)),
    binary("maximum", "MAXIMUM", f32(2, 3), f32(3)),
    binary("minimum", "MINIMUM", ints(2, 3), ints(3), "_int"),
    binary("squared_difference", "SQUARED_DIFFERENCE", f32(2, 3), f32(3)),
    binary("atan2", "ATAN2", f32(2, 3), f32(2, 3)),
    binary("equal", "EQUAL", ints(2, 3), ints(3)),
    binary("not_equal", "NOT_EQUAL", ints(2, 3), ints(3)),
    binary("less", "LESS", f32(2, 3), f32(3)),
    binary("less_equal", "LESS_EQUAL", ints(2, 3), ints(3)),
    binary("greater", "GREATER", f32(2, 3), f32(3)),
    binary("greater_equal", "GREATER_EQUAL", ints(2, 3, dtype=np.int64), ints(3, dtype=np.int64)),
    binary("logical_and", "LOGICAL_AND", bools(2, 3), bools(3)),
    binary("logical_or", "LOGICAL_OR", bools(2, 3), bools(3)),
    unary("logical_not", "LOGICAL_NOT", bools(4)),
    case("atan2_broadcast", m.atan2, f32(2, 3), pos(3), ops="BROADCAST_TO ATAN2"),
    case(
        "atan2_unknown",
        m.atan2,
        f32(2, 3),
        pos(1, 3),
        open=BATCH,
        ops="SHAPE SHAPE BROADCAST_ARGS BROADCAST_TO BROADCAST_TO ATAN2",
    ),
    case("rank_5_less", m.less, f32(2, 1, 2, 1, 2), f32(2, 2, 2), ops="BROADCAST_TO BROADCAST_TO LESS"),
    case("where", ow.where, bools(2, 3), f32(2, 3), f32(2, 3), ops="SELECT_V2"),
    case("where_broadcast", ow.where, bools(3), f32(2, 3), f32(2, 1), ops="SELECT_V2"),
    *(
        case(f"cast_{a}_{b}", lambda x, b=b: ow.cast(x, b), (f32(6) * 3).astype(a), ops="CAST")
        for a, b in (
            ("float32", "int32"),
            ("int32", "float32"),
            ("bool", "float32"),
            ("int64", "int32"),
            ("float32", "bool"),
        )
    ),
    unary("relu", "RELU", space=nn),
    unary("relu6", "RELU6", f32(2, 3) * 5, space=nn),
    unary("elu", "ELU", space=nn),
    case("leaky_relu", lambda x: nn.leaky_relu(x, 0.1), f32(2, 3), ops="LEAKY_RELU"),
    unary("gelu", "GELU", space=nn, rtol=2e-5),
    case("gelu_tanh", lambda x: nn.gelu(x, True), f32(2, 3), ops="GELU", rtol=2e-5),
    case("zeros_like", ow.zeros_like, f32(2, 3), open=BATCH),
    case("constants_fold", lambda x: x + ow.sqrt(ow.constant([4.0, 9.0])) * 2.0, f32(2), ops="ADD"),
    case("twice_the_same", lambda x: ow.sin(x) + ow.sin(x), f32(2), ops="SIN ADD"),
    case("identity_goes", lambda x: ow.stop_gradient(ow.identity(x)) + 1.0, f32(2), ops="ADD"),
    case("nothing_at_all", lambda x: (x, ow.constant([1, 2])), f32(2), ops=""),
    case("string_constant", lambda x: (x + 1.0, ow.constant(["a", "bcd"])), f32(2), ops="ADD"),
]


def broadcast_gradient(x: object, y: object) -> object:
    with ow.GradientTape() as tape:
        tape.watch(y)
        loss = m.square(x * y)
    return tape.gradient(loss, y)


COMPOSITES = [
    case("reciprocal", m.reciprocal, pos(5), ops="DIV"),
    case("tan", m.tan, f32(9) / 2),
    case("expm1", m.expm1, np.array([-50, -1, -1e-4, 0, 1e-6, 0.3, 9], np.float32)),
    case("round_int", m.round, ints(4), ops=""),
    case("truncate_div", m.truncatediv, ints(5), ints(5, low=1), ops="DIV"),
    case("truncate_mod", m.truncatemod, ints(5), ints(5, low=1, seed=8)),
    case("approximate_equal", lambda x, y: m.approximate_equal(x, y, 0.5), f32(9), f32(9, seed=3), ops="SUB ABS LESS"),
    case("xlog1py", m.xlog1py, np.array([0, 1, 2], np.float32), np.array([-1, 1e-6, 2], np.float32)),
    case("xdivy", m.xdivy, np.array([0, 1, 2], np.float32), np.array([0, 1, 2], np.float32)),
    case("rint", m.rint, f32(9) * 3, ops="ROUND"),
    case("log1p", m.log1p, np.array([-0.9, -1e-4, 0, 1e-6, 0.3, 9, 1e20], np.float32)),
    case("softplus", m.softplus, np.array([-90, -3, -1e-3, 0, 2, 90, 1e4], np.float32)),
    case("softsign", nn.softsign, f32(7)),
    case("sinh", m.sinh, np.array([-5, -1e-3, 0, 1e-4, 2], np.float32)),
    case("cosh", m.cosh, f32(7)),
    case("log_sigmoid", m.log_sigmoid, np.array([-90, -1, 0, 3, 90], np.float32)),
    case("selu", nn.selu, f32(9)),
    case("silu", nn.silu, f32(9), ops="LOGISTIC MUL"),
    case("div_no_nan", m.divide_no_nan, f32(4), np.array([0, 1, -2, 0], np.float32)),
    case("mul_no_nan", m.multiply_no_nan, np.array([np.inf, 1, 2, 3], np.float32), np.array([0, 1, -2, 0], np.float32)),
    case("xlogy", m.xlogy, np.array([0, 1, 2], np.float32), np.array([0, 1, 2], np.float32)),
    case("is_nan", m.is_nan, np.array([np.nan, 1, np.inf], np.float32), ops="NOT_EQUAL"),
    case("is_inf", m.is_inf, np.array([np.nan, 1, -np.inf], np.float32), ops="ABS EQUAL"),
    case("is_finite", m.is_finite, np.array([np.nan, 1, -np.inf], np.float32), ops="ABS LESS"),
    case("clip_crossed", lambda x: ow.clip_by_value(x, 1.5, -0.5), f32(9)),
    case("clip", lambda x: ow.clip_by_value(x, -0.5, 1.5), f32(9)),
    case("l2_loss", nn.l2_loss, f32(2, 3)),
    case("euclidean_norm", lambda x: m.reduce_euclidean_norm(x, 1), f32(2, 3)),
    case("logical_xor", m.logical_xor, bools(5), bools(5, seed=9)),
    case("ones_like", lambda x: ow.ones_like(x) + x, f32(2, 3), open=BATCH),
    case("size", lambda x: ow.size(x) + 1, f32(2, 3), open=BATCH),
    case("rank", lambda x: ow.rank(x) + 1, f32(2), open={0: None}, ops="RANK ADD"),
    case("gradient_of_broadcast", broadcast_gradient, f32(4, 3), B),
    case("gradient_of_unknown_sizes", broadcast_gradient, f32(2, 4, 3), f32(4, 1), open={0: (0, 1), 1: (0, 1)}),
    case("gradient_of_equal_sizes", broadcast_gradient, f32(4, 3), f32(4, 3, seed=5), open={0: (0,), 1: (0,)}),
    case("square_int", m.square, ints(5), ops="MUL"),
    case("hard_swish", lambda x: x * nn.relu6(x + 3.0) / 6.0, f32(9) * 3, ops="HARD_SWISH"),
    case("hard_swish_inner", lambda x: x * (nn.relu6(x + 3.0) * (1 / 6)), f32(9) * 3, ops="HARD_SWISH"),
    case("relu_n1_to_1", lambda x: ow.minimum(ow.maximum(x, -1.0), 1.0), f32(9), ops="RELU_N1_TO_1"),
    case("relu6_by_hand", lambda x: ow.minimum(nn.relu(x), 6.0), f32(9) * 5, ops="RELU6"),
    case("l2_normalize", lambda x: nn.l2_normalize(x, -1), f32(2, 5), ops="L2_NORMALIZATION"),
    case("layer_norm", lambda x: nn.layer_normalization(x, f32(5), f32(5, seed=4)), f32(2, 3, 5)),
    case("layer_norm_of_an_inner_axis", lambda x: nn.layer_normalization(x, f32(3), f32(3, seed=4), 1), f32(2, 3, 5)),
]

REDUCTIONS = [
    *(
        case(
            f"{name}_{axis}_{keep}",
            lambda x, name=name, axis=axis, keep=keep: getattr(m, name)(x, axis, keep),
            x,
            ops=op,
        )
        for name, op, x in (
            ("reduce_sum", "SUM", f32(2, 3, 4)),
            ("reduce_mean", "MEAN", f32(2, 3, 4)),
            ("reduce_max", "REDUCE_MAX", ints(2, 3, 4)),
            ("reduce_min", "REDUCE_MIN", f32(2, 3, 4)),
            ("reduce_prod", "REDUCE_PROD", f32(2, 3, 4)),
            ("reduce_all", "REDUCE_ALL", bools(2, 3, 4)),
            ("reduce_any", "REDUCE_ANY", bools(2, 3, 4)),
        )
        for axis, keep in ((None, False), (-1, True), ((0, 2), False))
    ),
    case("sum_scalar", m.reduce_sum, np.float32(3), ops=""),
    case("argmax", lambda x: ow.argmax(x, 1), f32(2, 5), ops="ARG_MAX"),
    case("argmin_32", lambda x: ow.argmin(x, -1, ow.int32), ints(2, 5), ops="ARG_MIN"),
    case("top_k", lambda x: tuple(m.top_k(x, 3)), f32(2, 7), ops="TOPK_V2"),
    case("sort_down", lambda x: ow.sort(x, direction="DESCENDING"), f32(2, 7), ops="TOPK_V2", open=BATCH),
    case("sort", ow.sort, np.array([3, np.nan, -0.0, 0.0, -np.inf, 3], np.float32), ops="NEG TOPK_V2 NEG"),
    case("argsort_ties", ow.argsort, ints(3, 9, low=-2, high=2), ops="SUB TOPK_V2"),
    case("sort_int_limits", ow.sort, np.array([5, -(2**31), 2**31 - 1, 0], np.int32), ops="SUB TOPK_V2 SUB"),
    case("sort_axis", lambda x: ow.sort(x, 0), f32(5, 2), ops="NEG TRANSPOSE TOPK_V2 NEG TRANSPOSE"),
    case("cumsum", lambda x: m.cumsum(x, 1), f32(2, 5), ops="CUMSUM"),
    case("cumsum_reverse", lambda x: m.cumsum(x, -1, exclusive=True, reverse=True), ints(2, 5), ops="CUMSUM"),
]

ARRAYS = [
    case("reshape", lambda x: ow.reshape(x, [3, -1]), f32(2, 6), ops="RESHAPE"),
    case("reshape_batch", lambda x: ow.reshape(x, [-1, 2, 3]), f32(4, 6), ops="RESHAPE", open=BATCH),
    case("reshape_by_shape", lambda x: ow.reshape(x, [ow.shape(x)[0], 3, 2]), f32(4, 6), open=BATCH),
    case("expand_dims", lambda x: ow.expand_dims(x, 1), f32(2, 3), ops="EXPAND_DIMS"),
    case("squeeze", lambda x: ow.squeeze(x, [1]), f32(2, 1, 3), ops="SQUEEZE"),
    case("squeeze_all", ow.squeeze, f32(1, 2, 1), ops="SQUEEZE"),
    case(
        "broadcast_to", lambda x: ow.broadcast_to(x, [2, 3]), f32(3), ops="BROADCAST_TO", versions={"BROADCAST_TO": 2}
    ),
    case(
        "broadcast_args",
        ow.broadcast_dynamic_shape,
        ints(2, low=1, high=2),
        ints(2, low=3, high=4),
        ops="BROADCAST_ARGS",
    ),
    case("roll", lambda x: ow.roll(x, [1, -2], [0, 1]), f32(3, 5)),
    case("shape", lambda x: ow.shape(x), f32(2, 3), ops="SHAPE", open=BATCH),
    case("shape_64", lambda x: ow.shape(x, ow.int64), f32(2, 3), ops="SHAPE", open=BATCH),
    case("fill", lambda x: ow.fill(ow.shape(x), 2.5), f32(2, 3), ops="SHAPE FILL", open=BATCH),
    case("range", lambda x: ow.range(0, ow.shape(x)[0], 2), f32(7), open=BATCH),
    case("one_hot", lambda x: ow.one_hot(x, 5), ints(4, low=0, high=5), ops="ONE_HOT"),
    case("one_hot_axis", lambda x: ow.one_hot(x, 3, 2, -1, axis=0), ints(2, 2, low=0, high=3), ops="ONE_HOT"),
    case("concat", lambda x, y: ow.concat([x, y, x], -1), f32(2, 3), f32(2, 1), ops="CONCATENATION"),
    case("stack", lambda x, y: ow.stack([x, y], 1), f32(2, 3), f32(2, 3), ops="PACK"),
    case(
        "stack_bool",
        lambda x, y: ow.stack([x, y], 1),
        bools(2, 3),
        bools(2, 3, seed=4),
        ops="EXPAND_DIMS EXPAND_DIMS CONCATENATION",
    ),
    case(
        "unstack_64", lambda x: ow.unstack(x, axis=1), ints(2, 2, 3, dtype=np.int64), ops="STRIDED_SLICE STRIDED_SLICE"
    ),
    case("unstack", lambda x: ow.unstack(x, axis=1), f32(2, 3), ops="SPLIT RESHAPE RESHAPE RESHAPE"),
    case("unstack_of_any_batch", lambda x: ow.unstack(x, axis=1), f32(2, 3), ops="UNPACK", open={0: (0,)}),
    case("unstack_of_no_rows", lambda x: ow.unstack(ow.boolean_mask(x, x[:, 0] > 9), axis=1), f32(2, 3)),
    case("split", lambda x: ow.split(x, 3, -1), f32(2, 6), ops="SPLIT"),
    case("split_v", lambda x: ow.split(x, [1, 2, 3], 1), f32(2, 6), ops="SLICE SLICE SLICE"),
    case(
        "concat_of_concat",
        lambda x, y: ow.concat([x, ow.concat([y, x * y], -1), y], 1),
        f32(2, 3),
        f32(2, 3, seed=1),
        ops="MUL CONCATENATION",
    ),
    case(
        "concat_of_another_axis",
        lambda x, y: ow.concat([x, ow.concat([y, y], 0)], 1),
        f32(2, 3),
        f32(1, 3, seed=1),
        ops="CONCATENATION CONCATENATION",
    ),
    case("split_v_equal", lambda x: ow.split(x, [3, 3], 1), f32(2, 6), ops="SPLIT"),
    case("tile", lambda x: ow.tile(x, [2, 1, 3]), f32(1, 2, 2), ops="TILE"),
    case("transpose", lambda x: ow.transpose(x, [2, 0, 1]), f32(2, 3, 4), ops="TRANSPOSE"),
    case(
        "transpose_by_a_tensor", lambda x, n: ow.transpose(x, [n[0], 2, n[1]]), f32(2, 3, 4), np.array([1, 0], np.int32)
    ),
    case("transpose_all", ow.transpose, ints(2, 3), ops="TRANSPOSE"),
    case("transpose_twice", lambda x: ow.transpose(ow.transpose(x, [1, 2, 0]), [2, 0, 1]), f32(2, 3, 4), ops=""),
    case("pad", lambda x: ow.pad(x, [[1, 0], [2, 3]]), f32(2, 3), ops="PAD"),
    case("pad_value", lambda x: ow.pad(x, [[1, 0], [2, 3]], constant_values=7), ints(2, 3), ops="PADV2"),
    case("pad_reflect", lambda x: ow.pad(x, [[1, 0], [1, 2]], "REFLECT"), f32(2, 3), ops="MIRROR_PAD"),
    case("pad_symmetric", lambda x: ow.pad(x, [[1, 0], [1, 2]], "SYMMETRIC"), f32(2, 3), ops="MIRROR_PAD"),
    case("reverse", lambda x: ow.reverse(x, [0, 2]), f32(2, 3, 2), ops="REVERSE_V2 REVERSE_V2"),
    case("space_to_depth", lambda x: nn.space_to_depth(x, 2), f32(1, 4, 4, 2), ops="SPACE_TO_DEPTH"),
    case("depth_to_space", lambda x: nn.depth_to_space(x, 2), f32(1, 2, 2, 8), ops="DEPTH_TO_SPACE"),
    case(
        "space_to_batch",
        lambda x: ow.space_to_batch_nd(x, [2, 2], [[0, 0], [1, 1]]),
        f32(1, 4, 4, 2),
        ops="SPACE_TO_BATCH_ND",
    ),
    case(
        "batch_to_space",
        lambda x: ow.batch_to_space(x, [2, 2], [[0, 0], [1, 1]]),
        f32(4, 2, 3, 2),
        ops="BATCH_TO_SPACE_ND",
    ),
    case("add_n", lambda x, y: m.add_n([x, y, x]), f32(2, 3), f32(2, 3), ops="ADD_N"),
    case("add_n_of_two", lambda x, y: m.add_n([x, y]), f32(2, 3), f32(2, 3), ops="ADD"),
]

INDEXING = [
    case("slice", lambda x: ow.slice(x, [0, 1], [2, -1]), f32(3, 4), ops="SLICE"),
    case("slice_brackets", lambda x: x[1:, ::2], f32(3, 5), ops="STRIDED_SLICE"),
    case("slice_backwards", lambda x: x[::-1, -1], f32(3, 5), ops="STRIDED_SLICE"),
    case(
        "slice_new_axis", lambda x: x[..., ow.newaxis, 1:2], f32(3, 5), ops="SLICE EXPAND_DIMS", versions={"SLICE": 1}
    ),
    case("slice_ellipsis_of_nothing", lambda x: x[..., :1], f32(2), ops="SLICE"),
    case("slice_by_tensor", lambda x, i: x[i[0] :, i[1]], f32(4, 5), ints(2, low=1, high=3), ops=None),
    case("gather", lambda x, i: ow.gather(x, i), f32(5, 3), ints(4, low=0, high=5), ops="GATHER"),
    case("gather_axis", lambda x, i: ow.gather(x, i, axis=-1), f32(3, 5), ints(2, 2, low=0, high=5), ops="GATHER"),
    case(
        "gather_batch",
        lambda x, i: ow.gather(x, i, axis=1, batch_dims=1),
        f32(2, 5),
        ints(2, 2, low=0, high=5),
        ops="GATHER",
        versions={"GATHER": 5},
    ),
    case("gather_nd", ow.gather_nd, f32(3, 4), ints(5, 2, low=0, high=3), ops="GATHER_ND"),
    case(
        "scatter_nd",
        lambda i, u: ow.scatter_nd(i, u, [6]),
        np.array([[1], [4], [1]], np.int32),
        f32(3),
        ops="SCATTER_ND",
    ),
    case("where_true", ow.where, bools(4, 3), ops="WHERE"),
]


def batch_norm(x: object, s: float = 0.7) -> object:
    return nn.batch_normalization(x, f32(5), pos(5), f32(5, seed=3), f32(5, seed=4) * s, 1e-3)


MATRICES = [
    case("dense", lambda x: ow.matmul(x, W), f32(2, 4), ops="FULLY_CONNECTED", versions={"FULLY_CONNECTED": 1}),
    case("dense_transposed", lambda x: ow.matmul(x, W.T.copy(), transpose_b=True), f32(2, 4), ops="FULLY_CONNECTED"),
    case(
        "dense_bias", lambda x: ow.matmul(x, W) + B, f32(2, 4), ops="FULLY_CONNECTED", versions={"FULLY_CONNECTED": 1}
    ),
    case("dense_bias_add", lambda x: nn.bias_add(ow.matmul(x, W), B), f32(2, 4), ops="FULLY_CONNECTED", open=BATCH),
    case("dense_relu", lambda x: nn.relu(ow.matmul(x, W) + B), f32(2, 4), ops="FULLY_CONNECTED", open=BATCH),
    case("dense_relu6", lambda x: nn.relu6(ow.matmul(x, W) + B), f32(2, 4), ops="FULLY_CONNECTED"),
    case("dense_tanh", lambda x: ow.tanh(ow.matmul(x, W) + B), f32(2, 4), ops="FULLY_CONNECTED TANH"),
    case("dense_scaled", lambda x: (ow.matmul(x, W) + B) * 2.5, f32(2, 4), ops="FULLY_CONNECTED"),
    case(
        "dense_rank_3",
        lambda x: ow.matmul(x, W) - B,
        f32(2, 5, 4),
        ops="FULLY_CONNECTED",
        versions={"FULLY_CONNECTED": 5},
    ),
    case(
        "dense_used_twice", lambda x: (ow.matmul(x, W), nn.relu(ow.matmul(x, W))), f32(2, 4), ops="FULLY_CONNECTED RELU"
    ),
    case("matmul", ow.matmul, f32(2, 4), f32(4, 3), ops="BATCH_MATMUL"),
    case(
        "matmul_batch", lambda x, y: ow.matmul(x, y, transpose_a=True), f32(2, 4, 3), f32(2, 4, 5), ops="BATCH_MATMUL"
    ),
    case("einsum_dense", lambda x: ow.einsum("bij,jk->bik", x, W), f32(2, 5, 4)),
    case("einsum_attention", lambda x, y: ow.einsum("bqhd,bkhd->bhqk", x, y), f32(2, 3, 2, 4), f32(2, 5, 2, 4)),
    case("einsum_outer", lambda x, y: ow.einsum("i,j->ji", x, y), f32(3), f32(4)),
    case("einsum_sum", lambda x, y: ow.einsum("ijk,jl->l", x, y), f32(2, 3, 4), f32(3, 5)),
    case("softmax", nn.softmax, f32(2, 5), ops="SOFTMAX"),
    case("softmax_axis", lambda x: nn.softmax(x, 1), f32(2, 5, 3), ops="TRANSPOSE SOFTMAX TRANSPOSE"),
    case("log_softmax", nn.log_softmax, f32(2, 5), ops="LOG_SOFTMAX"),
]

IMAGES = [
    case("conv", lambda x: nn.conv2d(x, K, 1, "SAME"), IMAGE, ops="CONV_2D", versions={"CONV_2D": 1}),
    case("conv_stride", lambda x: nn.conv2d(x, K, [2, 1], "VALID"), IMAGE, ops="CONV_2D", open=BATCH),
    case(
        "conv_dilated", lambda x: nn.conv2d(x, K, 1, "SAME", dilations=2), IMAGE, ops="CONV_2D", versions={"CONV_2D": 1}
    ),
    case("conv_bias_relu", lambda x: nn.relu(nn.conv2d(x, K, 1, "SAME") + KB), IMAGE, ops="CONV_2D", open=BATCH),
    case("conv_bias_relu6", lambda x: nn.relu6(nn.bias_add(nn.conv2d(x, K, 1, "SAME"), KB)), IMAGE, ops="CONV_2D"),
    case("conv_clip", lambda x: ow.clip_by_value(nn.conv2d(x, K, 1, "SAME"), -1.0, 1.0), IMAGE, ops="CONV_2D"),
    case("conv_explicit", lambda x: nn.conv2d(x, K, 1, [[0, 0], [1, 2], [0, 1], [0, 0]]), IMAGE, ops="PAD CONV_2D"),
    case("conv_batch_norm", lambda x: nn.relu(batch_norm(nn.conv2d(x, K, 1, "SAME"))), IMAGE, ops="CONV_2D"),
    case(
        "fused_batch_norm",
        lambda x: nn.fused_batch_norm(
            nn.conv2d(x, K, 1, "SAME"), pos(5), KB, f32(5, seed=2), pos(5) * 2, is_training=False
        )[0],
        IMAGE,
        ops="CONV_2D",
    ),
    case("conv_nchw", lambda x: nn.conv2d(x, K, 1, "SAME", "NCHW"), FLIPPED, ops="TRANSPOSE CONV_2D TRANSPOSE"),
    case(
        "conv_nchw_chain",
        lambda x: nn.conv2d(
            nn.relu(nn.bias_add(nn.conv2d(x, K, 1, "SAME", "NCHW"), KB, "NCHW")), f32(3, 3, 5, 2), 1, "SAME", "NCHW"
        ),
        FLIPPED,
        ops="TRANSPOSE CONV_2D CONV_2D TRANSPOSE",
    ),
    case(
        "nchw_head",
        lambda x: m.reduce_mean(nn.conv2d(x, K, 1, "SAME", "NCHW"), [2, 3]),
        FLIPPED,
        ops="TRANSPOSE CONV_2D MEAN",
    ),
    case("conv1d", lambda x: nn.conv1d(x, f32(3, 4, 5), 1, "SAME"), f32(2, 9, 4)),
    case(
        "depthwise",
        lambda x: nn.depthwise_conv2d(x, DW, [1, 1, 1, 1], "SAME"),
        IMAGE,
        ops="DEPTHWISE_CONV_2D",
        versions={"DEPTHWISE_CONV_2D": 1},
    ),
    case(
        "depthwise_dilated",
        lambda x: nn.relu(nn.depthwise_conv2d(x, DW, [1, 1, 1, 1], "VALID", dilations=[2, 2]) + f32(8)),
        IMAGE,
        ops="DEPTHWISE_CONV_2D",
        versions={"DEPTHWISE_CONV_2D": 2},
    ),
    case("depthwise_nchw", lambda x: nn.depthwise_conv2d(x, DW, [1, 1, 2, 2], "SAME", data_format="NCHW"), FLIPPED),
    case(
        "conv_transpose",
        lambda x: nn.conv2d_transpose(x, f32(3, 3, 6, 4), [2, 16, 14, 6], 2),
        IMAGE,
        ops="TRANSPOSE_CONV",
        versions={"TRANSPOSE_CONV": 1},
    ),
    case(
        "conv_transpose_bias",
        lambda x: nn.conv2d_transpose(x, f32(3, 3, 6, 4), [2, 16, 14, 6], 2) + f32(6),
        IMAGE,
        ops="TRANSPOSE_CONV",
        versions={"TRANSPOSE_CONV": 3},
    ),
    case(
        "conv_transpose_explicit",
        lambda x: nn.conv2d_transpose(x, f32(3, 3, 6, 4), [2, 15, 14, 6], 2, [[0, 0], [1, 1], [1, 0], [0, 0]]),
        IMAGE,
    ),
    case(
        "conv_transpose_batch",
        lambda x: nn.conv2d_transpose(x, f32(3, 3, 6, 4), [ow.shape(x)[0], 16, 14, 6], 2),
        IMAGE,
        open=BATCH,
    ),
    case("max_pool", lambda x: nn.max_pool2d(x, 2, 2, "VALID"), IMAGE, ops="MAX_POOL_2D", open=BATCH),
    case("max_pool_same", lambda x: nn.relu(nn.max_pool2d(x, [3, 2], 1, "SAME")), IMAGE, ops="MAX_POOL_2D"),
    case(
        "max_pool_explicit",
        lambda x: nn.max_pool2d(x, 2, 2, [[0, 0], [1, 1], [0, 1], [0, 0]]),
        IMAGE,
        ops="PADV2 MAX_POOL_2D",
    ),
    case("avg_pool", lambda x: nn.avg_pool2d(x, 2, 2, "SAME"), IMAGE, ops="AVERAGE_POOL_2D"),
    case("avg_pool_nchw", lambda x: nn.avg_pool2d(x, 2, 2, "VALID", "NCHW"), FLIPPED),
]

_SLOT = ow.Variable(np.zeros(3, np.float32))


def _through_a_variable(x: object) -> object:
    _SLOT.assign(x)
    return _SLOT + 1.0


STATE = [case("variable", _through_a_variable, f32(3), ops="CALL_ONCE VAR_HANDLE ASSIGN_VARIABLE READ_VARIABLE ADD")]

CASES = [
    *STATE,
    *ELEMENTWISE,
    *COMPOSITES,
    *REDUCTIONS,
    *ARRAYS,
    *INDEXING,
    *MATRICES,
    *IMAGES,
    *MORE,
    *FUSING,
    *TYPES,
    *PARTS,
]
