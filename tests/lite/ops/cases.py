"""The table of cases: a row an operator; each feeds every check of test_lite_ops.py.

Oracle: the official interpreter's reference kernels. oracle=False where these refuse or get wrong what the table says.
"""

from __future__ import annotations

import cases_more
import numpy as np
from one_operator import Case, Const, bad, bools, case, f32, ints

f16 = lambda *shape: f32(*shape).astype(np.float16)  # noqa: E731
i64 = lambda *shape: ints(*shape, dtype=np.int64)  # noqa: E731
i16 = lambda *shape: ints(*shape, dtype=np.int16)  # noqa: E731
i8 = lambda *shape: ints(*shape, dtype=np.int8)  # noqa: E731
u8 = lambda *shape: ints(*shape, low=0, dtype=np.uint8)  # noqa: E731
positive = lambda *shape: f32(*shape, low=0.1, high=4.0)  # noqa: E731
text = lambda *items: np.array([i.encode() for i in items], object)  # noqa: E731
scalar = lambda v, dtype=np.int32: Const(v, dtype)  # noqa: E731

ALL_SORTS = (f32, ints, i64, bools, i8, u8, i16)
CASES: dict[str, list[Case]] = {}

# ---- element-wise ------------------------------------------------------------------------------------------

for _name, _inputs in {
    "ABS": [f32(2, 3), ints(2, 3), i16(4), f32(0, 3), f32()],
    "NEG": [f32(2, 3), ints(2, 3), i64(4)],
    "EXP": [f32(2, 3), f32(3, low=-80, high=80)],
    "LOG": [positive(2, 3)],
    "SQRT": [positive(2, 3)],
    "RSQRT": [positive(2, 3)],
    "SQUARE": [f32(2, 3)],
    "SIN": [f32(2, 3)],
    "COS": [f32(2, 3)],
    "FLOOR": [f32(2, 3)],
    "CEIL": [f32(2, 3)],
    "ROUND": [np.float32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 7.2])],
    "SIGN": [np.float32([-2, 0, 3]), np.int32([-2, 0, 3]), np.float64([-2, 0, 3])],
    "LOGICAL_NOT": [bools(2, 3)],
    "ZEROS_LIKE": [f32(2, 3), ints(2), i64(2)],
    "RELU": [f32(2, 3), f32(0)],
    "RELU6": [f32(2, 3, low=-9, high=9)],
    "RELU_N1_TO_1": [f32(2, 3)],
    "RELU_0_TO_1": [f32(2, 3)],
    "ELU": [f32(2, 3)],
    "HARD_SWISH": [f32(2, 8, low=-5, high=5)],
    "TANH": [f32(2, 8), f32(2, 3, low=-20, high=20)],
    "LOGISTIC": [f32(2, 8, low=-8, high=12)],
}.items():
    CASES[_name] = [case(x) for x in _inputs]
    CASES[_name].append(bad(np.zeros(2, np.complex64), says="dtype it does not take"))

CASES["LEAKY_RELU"] = [case(f32(2, 3), alpha=0.2), case(f32(4), alpha=-1.5)]
CASES["GELU"] = [case(f32(2, 8), rtol=2e-6), case(f32(2, 8), approximate=True, rtol=2e-6, atol=1e-6)]
CASES["PRELU"] = [
    case(f32(1, 2, 2, 3), Const(f32(1, 1, 3), np.float32)),
    case(f32(2, 3), f32(2, 3)),
    bad(f32(2, 3), f32(4), says="not broadcastable"),
    bad(f32(3), f32(2, 3), says="not broadcastable to x"),
]
CASES["SOFTMAX"] = [
    case(f32(2, 5), beta=1.0),
    case(f32(1, 2, 3, 4), beta=0.5),
    case(f32(7), beta=2.0),
    bad(f32(), beta=1.0, says="scalar"),
]
CASES["LOG_SOFTMAX"] = [
    case(f32(2, 5), atol=1e-6),
    case(f32(1, 2, 3, 4), atol=1e-6),
    case(f32(), oracle=False),  # the official kernel reads a last size that is not there
]
CASES["L2_NORMALIZATION"] = [case(f32(2, 5)), case(f32(1, 2, 3, 4)), case(np.zeros((2, 3), np.float32))]
CASES["CAST"] = [
    *[
        case(x(2, 3), out_data_type=t)
        for x in ALL_SORTS
        for t in ("FLOAT32", "INT32", "INT64", "BOOL", "INT16", "INT8")
        if not (x in (f32, ints, i64) and t in ("INT16", "INT8"))
    ],
    case(f32(2, 3, low=0), out_data_type="UINT8"),
    *[
        case(
            np.array([-1e20, -70000, -300, -128.5, -1.5, 127.5, 255.9, 300, 3e9, 1e20, np.nan, -np.inf], kind),
            out_data_type=t,
        )
        for kind in (np.float32, np.float64)
        for t in ("INT8", "UINT8", "INT16", "INT32", "UINT32", "INT64")
    ],
    case(np.float16([-np.inf, -300, 300, 65504, np.nan]), out_data_type="INT16"),
    case(np.complex64([1 + 2j]), out_data_type="FLOAT32"),
    case(np.float64([1.5]), out_data_type="FLOAT32"),
    case(np.float16([1.5]), out_data_type="FLOAT32"),
]

# ---- two tensors -------------------------------------------------------------------------------------------

_shapes = [((2, 3), (2, 3)), ((2, 3), (3,)), ((), (2, 3)), ((2, 1, 3), (4, 1)), ((0, 3), (1, 3)), ((5,), ())]
for _name in ("ADD", "SUB", "MUL", "DIV"):
    _second = positive if _name == "DIV" else f32
    CASES[_name] = [case(f32(*a), _second(*b)) for a, b in _shapes]
    CASES[_name] += [
        case(f32(2, 8), _second(2, 8), fused_activation_function=a) for a in ("RELU", "RELU6", "RELU_N1_TO_1")
    ]
    CASES[_name] += [
        case(ints(2, 3), ints(3, low=1)),
        case(ints(4), ints(4, low=1, high=3), fused_activation_function="RELU6"),
        bad(f32(2, 3), f32(4), says="Given shapes, [2,3] and [4], are not broadcastable."),
        bad(f32(2), ints(2), says="differ in dtype"),
    ]
for _name in ("ADD", "SUB", "MUL"):
    CASES[_name] += [case(i64(2, 3), i64(2, 3))]
CASES["ADD"] += [case(i16(2, 3), i16(2, 3), pot_scale_int16=False)]
CASES["MUL"] += [case(np.complex64([1 + 2j]), np.complex64([3 - 1j])), case(np.uint32([2**31, 3]), np.uint32([3, 4]))]
CASES["DIV"] += [
    case(np.int32([7, -7, 7, -7]), np.int32([2, 2, -2, -2]), oracle=True),
    bad(ints(2), np.int32([1, 0]), says="Division by 0"),
]
for _name in ("MAXIMUM", "MINIMUM"):
    CASES[_name] = [case(f32(*a), f32(*b)) for a, b in _shapes[:4]]
    CASES[_name] += [case(x(2, 3), x(3)) for x in (ints, i64, i16, i8, u8)] + [bad(bools(2), bools(2), says="dtype")]
CASES["FLOOR_DIV"] = [
    case(f32(2, 3), positive(3)),
    case(ints(2, 8), ints(8, low=1)),
    case(ints(8), ints(8, low=-5, high=-1)),
    case(i16(8), ints(8, low=1, dtype=np.int16)),
    bad(ints(2), np.int32([1, 0]), says="Division by 0"),
]
CASES["FLOOR_MOD"] = [
    case(f32(2, 3), positive(3)),
    case(f32(8), -positive(8)),
    case(ints(2, 8), ints(8, low=1)),
    case(i64(8), ints(8, low=-5, high=-1, dtype=np.int64)),
    bad(ints(2), np.int32([1, 0]), says="Division by 0"),
]
CASES["POW"] = [
    case(positive(2, 3), f32(3)),
    case(ints(2, 3), ints(3, low=0, high=4)),
    bad(ints(2), np.int32([1, -1]), says="negative exponent"),
]
CASES["SQUARED_DIFFERENCE"] = [case(f32(2, 3), f32(3)), case(ints(2, 3), ints(1, 3))]
CASES["ATAN2"] = [case(f32(2, 8), f32(2, 8)), case(np.float64([1, -1]), np.float64([-1, -1]))]
CASES["ADD_N"] = [
    case(f32(2, 3), f32(2, 3), f32(2, 3)),
    case(ints(4), ints(4)),
    bad(f32(2), f32(3), says="differ in shape"),
]
for _name in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
    CASES[_name] = [case(ints(*a, low=0, high=2), ints(*b, low=0, high=2)) for a, b in _shapes[:4]]
    CASES[_name] += [case(f32(2, 3), f32(3)), case(i64(2, 3), i64(1))]
    CASES[_name] += [bad(f32(2), f32(3), says="not broadcastable")]
for _name in ("EQUAL", "NOT_EQUAL"):
    CASES[_name] += [case(bools(4), bools(4)), case(text("a", "b"), text("a", "c"))]
for _name in ("LOGICAL_AND", "LOGICAL_OR"):
    CASES[_name] = [case(bools(2, 3), bools(2, 3)), case(bools(2, 3), bools(3)), bad(f32(2), f32(2), says="dtype")]
CASES["SELECT"] = [
    case(bools(2, 3), f32(2, 3), f32(2, 3)),
    case(bools(2), f32(2, 3), f32(2, 3)),
    case(bools(), ints(2), ints(2)),
    bad(bools(3), f32(2, 3), f32(2, 3), says="condition"),
    bad(bools(2), f32(2), f32(3), says="differ in shape"),
]
CASES["SELECT_V2"] = [
    case(bools(2, 3), f32(2, 3), f32(2, 3)),
    case(bools(3), f32(2, 3), f32(2, 1)),
    case(bools(), ints(2), ints(2)),
    bad(bools(4), f32(2, 3), f32(2, 3), says="not broadcastable"),
]
CASES["WHERE"] = [
    case(bools(2, 3)),
    case(ints(3, 4, low=0, high=1)),
    case(np.zeros((2, 2), bool), oracle=False),
    case(f32(3)),
]

# ---- matrices and images -----------------------------------------------------------------------------------

_sum = {"rtol": 1e-5, "atol": 1e-5}
_w = Const(f32(4, 6), np.float32)
_b = Const(f32(4), np.float32)
CASES["FULLY_CONNECTED"] = [
    case(f32(3, 6), _w, _b, **_sum),
    case(f32(3, 6), _w, None, **_sum),
    case(f32(2, 3, 6), _w, _b, **_sum),
    case(f32(2, 3, 6), _w, _b, keep_num_dims=True, **_sum),
    case(f32(2, 12), _w, _b, **_sum),
    case(f32(3, 6), _w, _b, fused_activation_function="RELU6", **_sum),
    bad(f32(3, 5), _w, _b, says="do not fit"),
    bad(f32(3, 6), _w, Const(f32(3), np.float32), says="bias"),
    bad(f32(3, 6), Const(f32(4, 3, 2), np.float32), None, says="rank"),
]
CASES["BATCH_MATMUL"] = [
    case(f32(2, 3), f32(3, 4), **_sum),
    case(f32(5, 2, 3), f32(5, 3, 4), **_sum),
    case(f32(5, 2, 3), f32(3, 4), **_sum),
    case(f32(3, 2), f32(3, 4), adj_x=True, **_sum),
    case(f32(2, 1, 2, 3), f32(3, 4, 3), adj_y=True, **_sum),
    bad(f32(2, 3), f32(4, 5), says="inner sizes differ, 3 and 4"),
    bad(f32(3), f32(3, 4), says="ndims must be >= 2"),
]


def _conv(x, f, bias=True, **options):
    b = Const(f32(f[0]), np.float32) if bias else None
    return case(f32(*x), Const(f32(*f), np.float32), b, **{"stride_w": 1, "stride_h": 1} | options, **_sum)


CASES["CONV_2D"] = [
    _conv((1, 5, 5, 3), (4, 3, 3, 3)),
    _conv((2, 6, 7, 2), (3, 2, 3, 2), padding="VALID", stride_w=2, stride_h=3),
    _conv((1, 8, 8, 1), (2, 3, 3, 1), dilation_w_factor=2, dilation_h_factor=2),
    _conv((1, 8, 9, 2), (2, 3, 3, 2), dilation_w_factor=2, padding="VALID"),
    _conv((1, 4, 4, 6), (4, 3, 3, 3)),
    _conv((1, 5, 5, 3), (4, 1, 1, 3), fused_activation_function="RELU"),
    _conv((0, 5, 5, 3), (4, 3, 3, 3), oracle=False),
    _conv((1, 2, 2, 3), (4, 5, 5, 3)),
    bad(f32(1, 5, 5, 3), f32(4, 3, 3, 2), None, stride_w=1, stride_h=1, says="depth does not divide"),
    bad(f32(1, 5, 5, 3), f32(4, 3, 3, 3), None, says="stride_w must be positive"),
    bad(f32(1, 2, 2, 3), f32(4, 4, 4, 3), None, padding="VALID", stride_w=1, stride_h=1, says="larger than the image"),
    bad(f32(5, 5, 3), f32(4, 3, 3, 3), None, stride_w=1, stride_h=1, says="rank"),
    bad(f32(1, 5, 5, 3), f32(4, 3, 3, 3), f32(3), stride_w=1, stride_h=1, says="bias"),
    bad(f32(1, 5, 5, 3), f32(4, 3, 3, 3), None, stride_w=1, stride_h=1, dilation_w_factor=2**30, says="would take"),
    _conv((2, 7, 9, 24), (24, 3, 3, 1), fused_activation_function="RELU"),  # groups of one channel: depthwise
    _conv((1, 7, 9, 5), (10, 3, 2, 1), padding="VALID", stride_w=2, dilation_h_factor=2),
]


def _depthwise(x, f, m, **options):
    options = {"stride_w": 1, "stride_h": 1, "depth_multiplier": m} | options
    return case(f32(*x), Const(f32(*f), np.float32), Const(f32(f[-1]), np.float32), **options, **_sum)


CASES["DEPTHWISE_CONV_2D"] = [
    _depthwise((1, 5, 5, 3), (1, 3, 3, 3), 1),
    _depthwise((2, 6, 7, 2), (1, 2, 3, 4), 2, padding="VALID", stride_w=2, stride_h=2),
    _depthwise((1, 8, 8, 1), (1, 3, 3, 1), 1, dilation_w_factor=2, dilation_h_factor=2),
    _depthwise((1, 4, 4, 2), (1, 3, 3, 2), 1, fused_activation_function="RELU6"),
    bad(f32(1, 4, 4, 2), f32(1, 3, 3, 3), None, stride_w=1, stride_h=1, depth_multiplier=1, says="depth"),
    bad(f32(1, 4, 4, 2), f32(2, 3, 3, 2), None, stride_w=1, stride_h=1, depth_multiplier=1, says="first size is not 1"),
]


def _transpose_conv(out, f, x, bias=False, **options):
    b = (Const(f32(f[0]), np.float32),) if bias else ()
    inputs = (Const(out), Const(f32(*f), np.float32), f32(*x), *b)
    return case(*inputs, **{"stride_w": 1, "stride_h": 1} | options, **_sum)


CASES["TRANSPOSE_CONV"] = [
    _transpose_conv([1, 4, 4, 2], (2, 3, 3, 3), (1, 4, 4, 3)),
    _transpose_conv([2, 8, 8, 1], (1, 3, 3, 2), (2, 4, 4, 2), stride_w=2, stride_h=2),
    _transpose_conv([1, 9, 9, 2], (2, 3, 3, 1), (1, 4, 4, 1), stride_w=2, stride_h=2, padding="VALID"),
    _transpose_conv([1, 4, 4, 2], (2, 3, 3, 3), (1, 4, 4, 3), bias=True, fused_activation_function="RELU"),
    bad(
        Const([1, 7, 4, 2]), f32(2, 3, 3, 3), f32(1, 4, 4, 3), stride_w=1, stride_h=1, says="output_shape does not fit"
    ),
    bad(Const([1, 4, 4]), f32(2, 3, 3, 3), f32(1, 4, 4, 3), stride_w=1, stride_h=1, says="4 elements"),
]
for _name in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
    _k = {"stride_w": 1, "stride_h": 1, "filter_width": 2, "filter_height": 2}
    CASES[_name] = [
        case(f32(1, 4, 4, 3), **_k),
        case(f32(2, 5, 7, 2), **_k | {"stride_w": 2, "stride_h": 2, "padding": "VALID"}),
        case(f32(1, 5, 5, 1), **_k | {"filter_width": 3, "stride_w": 2}),
        case(f32(1, 3, 3, 2), **_k | {"filter_width": 9}),
        case(f32(1, 4, 4, 2), **_k, fused_activation_function="RELU"),
        case(f32(1, 4, 4, 1), **_k | {"stride_w": 3, "stride_h": 3}),
        bad(f32(1, 4, 4, 2), stride_w=1, stride_h=1, says="filter_width must be positive"),
        bad(f32(1, 4, 4, 2), **_k | {"filter_width": 9, "padding": "VALID"}, says="larger than the image"),
        bad(f32(4, 4, 2), **_k, says="rank"),
    ]

# ---- reductions --------------------------------------------------------------------------------------------

for _name in ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
    CASES[_name] = [
        *[
            case(f32(2, 3, 4), Const(a), keep_dims=k, rtol=2e-6, atol=1e-6)
            for a in ([1], [0, 2], [-1], [0, 1, 2], [1, -2], 2)
            for k in (False, True)
        ],
        case(ints(2, 3, low=-3, high=3), Const([1])),
        case(i64(2, 3), Const([0])),
        bad(f32(2, 3), Const([2]), says="out of range"),
        bad(f32(2, 3), Const([-3]), says="out of range"),
        bad(f32(2, 3).astype(np.complex64), Const([0]), says="dtype"),
    ]
CASES["SUM"] += [case(f32(0, 3), Const([0])), case(f32(2, 3), Const(np.zeros(0)))]
for _name in ("REDUCE_ANY", "REDUCE_ALL"):
    CASES[_name] = [case(bools(2, 3, 4), Const(a), keep_dims=k) for a in ([1], [0, -1]) for k in (False, True)]
    CASES[_name] += [bad(f32(2), Const([0]), says="dtype")]
for _name in ("ARG_MAX", "ARG_MIN"):
    CASES[_name] = [case(f32(2, 3, 4), Const([a]), output_type="INT32") for a in (0, 1, 2, -1)]
    CASES[_name] += [
        case(ints(3, 5, low=0, high=2), Const(1), output_type="INT64"),
        case(bools(2, 5), Const([1]), output_type="INT32"),
        bad(f32(2, 3), Const([2]), output_type="INT32", says="out of range"),
        bad(f32(2, 3), Const([0]), output_type="FLOAT32", says="index type"),
        bad(f32(2, 0), Const([1]), output_type="INT32", says="empty"),
    ]
CASES["TOPK_V2"] = [
    case(f32(2, 6), scalar(3)),
    case(ints(3, 8, low=0, high=3), scalar(5)),
    case(f32(4), scalar(4)),
    case(u8(2, 5), scalar(2)),
    bad(f32(2, 3), scalar(4), says="TopK k is higher than the internal dimension"),
    bad(f32(), scalar(1), says="scalar"),
]
CASES["CUMSUM"] = [
    case(f32(2, 5), scalar(a), exclusive=e, reverse=r) for a in (0, -1) for e in (False, True) for r in (False, True)
]
CASES["CUMSUM"] += [case(ints(3, 4), scalar(1)), case(i64(3), scalar(0)), bad(f32(2), scalar(1), says="out of range")]

# ---- shapes ------------------------------------------------------------------------------------------------

CASES["RESHAPE"] = [
    case(f32(2, 6), Const([3, 4])),
    case(f32(2, 6), Const([-1, 3])),
    case(ints(4), new_shape=[2, 2]),
    case(f32(1), Const(np.zeros(0))),
    case(f32(0, 3), Const([3, 0])),
    case(bools(2, 2), Const([4])),
    case(i8(4), Const([2, -1])),
    bad(f32(2, 6), Const([5, 2]), says="a tensor with 12 values"),
    bad(f32(2, 6), Const([-1, -1]), says="Only one input size may be -1"),
    bad(f32(2, 6), Const([-1, 5]), says="a tensor with 12 values"),
]
CASES["EXPAND_DIMS"] = [case(f32(2, 3), scalar(a)) for a in (0, 1, 2, -1, -3)]
CASES["EXPAND_DIMS"] += [case(f32(), scalar(0)), bad(f32(2), scalar(3), says="out of range")]
CASES["SQUEEZE"] = [
    case(f32(1, 2, 1, 3)),
    case(f32(1, 2, 1, 3), squeeze_dims=[2]),
    case(f32(1, 2, 1, 3), squeeze_dims=[-4]),
    case(f32(1, 1)),
    bad(f32(2, 1), squeeze_dims=[0], says="expected a dimension of 1"),
    bad(f32(2, 1), squeeze_dims=[2], says="out of range"),
]
CASES["SHAPE"] = [
    case(f32(2, 3), out_type="INT32"),
    case(f32(0, 5, 1), out_type="INT64"),
    case(f32(), out_type="INT32", oracle=False),
    bad(f32(2), out_type="FLOAT32", says="index type"),
]
CASES["RANK"] = [case(f32(2, 3)), case(f32()), case(bools(1, 1, 1))]
CASES["TRANSPOSE"] = [case(f32(2, 3, 4), Const(p)) for p in ([0, 1, 2], [2, 0, 1], [1, 0, 2])]
CASES["TRANSPOSE"] += [case(x(2, 3), Const([1, 0])) for x in ALL_SORTS]
CASES["TRANSPOSE"] += [
    case(f32(2, 3, 1, 2, 2), Const([4, 2, 0, 1, 3])),
    bad(f32(2, 3), Const([0, 2]), says="not a permutation"),
    bad(f32(2, 3), Const([0, 0]), says="not a permutation"),
]
CASES["BROADCAST_TO"] = [
    case(f32(3), Const([2, 3])),
    case(f32(2, 1), Const([2, 4])),
    case(ints(), Const([2, 2])),
    case(bools(1, 3), Const([2, 2, 3])),
    bad(f32(3), Const([2, 4]), says="broadcastable"),
    bad(f32(2, 3), Const([3]), says="broadcastable"),
]
CASES["BROADCAST_ARGS"] = [
    case(np.int32([2, 1, 3]), np.int32([4, 1])),
    case(np.int64([5]), np.int64([5])),
    bad(Const([2]), Const([3]), says="Incompatible shapes"),
]
CASES["BITCAST"] = [
    case(f32(2, 3), output_type="INT32"),
    case(f32(2, 3), output_type="UINT8"),
    case(u8(2, 4), output_type="INT32"),
    bad(u8(2, 3), output_type="INT32", says="last dimension"),
]
CASES["FILL"] = [
    case(Const([2, 3]), np.float32(1.5)),
    case(Const([2], np.int64), np.int32(7)),
    case(Const(np.zeros(0)), np.float32(2)),
    case(Const([2]), np.array(True)),
    bad(Const([-1]), np.float32(1), says=">= 0"),
]
CASES["RANGE"] = [
    case(scalar(0), scalar(10), scalar(3)),
    case(scalar(5), scalar(-5), scalar(-2)),
    case(scalar(2, np.int64), scalar(2, np.int64), scalar(1, np.int64), oracle=False),
    case(scalar(0, np.float32), scalar(1, np.float32), scalar(0.25, np.float32)),
    bad(scalar(0), scalar(5), scalar(0), says="delta"),
    bad(scalar(0), scalar(5), scalar(-1), says="delta"),
]
CASES["ONE_HOT"] = [
    case(np.int32([0, 2, 1]), scalar(3), np.float32(1), np.float32(0), axis=-1),
    case(np.int64([[0, 5], [-1, 1]]), scalar(3), np.int32(7), np.int32(-7), axis=0),
    case(np.int32([[0, 1]]), scalar(2), np.array(True), np.array(False), axis=1),
    bad(np.int32([0]), scalar(3), np.float32(1), np.float32(0), axis=3, says="out of range"),
]

# ---- joined, split, padded ---------------------------------------------------------------------------------

CASES["CONCATENATION"] = [
    case(f32(2, 3), f32(2, 2), axis=1),
    case(f32(2, 3), f32(1, 3), axis=0),
    case(f32(2, 3), f32(2, 1), f32(2, 2), axis=-1),
    *[case(x(2, 2), x(1, 2), axis=0) for x in ALL_SORTS],
    case(f32(2, 0), f32(2, 2), axis=1),
    case(f32(2, 3), f32(2, 2), axis=1, fused_activation_function="RELU", oracle=False),
    bad(f32(2, 3), f32(3, 3), axis=1, says="Dimension 0 of xs[0] and xs[1] differ: 2 and 3"),
    bad(f32(2, 3), f32(2, 3), axis=2, says="out of range"),
]
CASES["PACK"] = [case(f32(2, 3), f32(2, 3), values_count=2, axis=a) for a in (0, 1, 2, -1)]
CASES["PACK"] += [
    case(ints(2), ints(2), ints(2), values_count=3),
    case(f32(), f32(), values_count=2),
    bad(f32(2), f32(3), values_count=2, says="Dimension 0 of xs[0] and xs[1] differ: 2 and 3"),
    bad(f32(2), f32(2), values_count=3, says="values_count"),
]
CASES["UNPACK"] = [
    case(f32(2, 3), num=2),
    case(f32(2, 3), num=3, axis=1),
    case(ints(2, 3), num=3, axis=-1),
    case(bools(2, 2), num=2),
    bad(f32(2, 3), num=3, says="num is 3, dimension 0 has size 2"),
    bad(f32(2), num=2, axis=1, says="out of range"),
]
CASES["SPLIT"] = [case(scalar(a), f32(4, 6), num_splits=2) for a in (0, 1, -1)]
CASES["SPLIT"] += [
    case(scalar(0), ints(6), num_splits=3),
    bad(scalar(0), f32(5), num_splits=2, says="evenly"),
    bad(scalar(0), f32(4), num_splits=0, says="evenly"),
    bad(scalar(2), f32(4, 4), num_splits=2, says="out of range"),
]
CASES["SPLIT_V"] = [
    case(f32(4, 6), Const([1, 2, 3]), scalar(1), num_splits=3),
    case(f32(4, 6), Const([3, -1]), scalar(0), num_splits=2),
    case(i64(5), Const([2, 3], np.int64), scalar(-1), num_splits=2),
    bad(f32(4), Const([1, 2]), scalar(0), num_splits=2, says="make up"),
    bad(f32(4), Const([-1, -1]), scalar(0), num_splits=2, says="make up"),
]
CASES["TILE"] = [
    case(f32(2, 3), Const([2, 1])),
    case(ints(2), Const([3], np.int64)),
    case(bools(2, 2), Const([1, 2])),
    case(f32(2), Const([0])),
    bad(f32(2, 3), Const([2]), says="multiples"),
    bad(f32(2), Const([-1]), says="multiples"),
]
for _name, _value in (("PAD", ()), ("PADV2", (Const([2.5], np.float32),))):
    CASES[_name] = [
        case(f32(2, 3), Const([[1, 0], [0, 2]]), *_value),
        case(f32(1, 2, 2, 1), Const([[0, 0], [1, 1], [2, 0], [0, 1]]), *_value),
        case(f32(3), Const([[1, 1]], np.int64), *_value),
        bad(f32(2, 3), Const([[1, 0]]), *_value, says="a row for each dimension"),
        bad(f32(2), Const([[-1, 0]]), *_value, says="non-negative"),
    ]
CASES["PAD"] += [case(x(2, 3), Const([[1, 0], [0, 2]])) for x in (ints, i64, bools)]
CASES["MIRROR_PAD"] = [
    case(f32(3, 4), Const([[1, 2], [0, 3]]), mode="REFLECT"),
    case(f32(3, 4), Const([[3, 2], [0, 4]]), mode="SYMMETRIC"),
    case(ints(5), Const([[2, 2]]), mode="REFLECT"),
    bad(f32(3), Const([[3, 0]]), mode="REFLECT", says="less than the dimension size"),
]
CASES["REVERSE_V2"] = [case(f32(2, 3, 4), Const([a])) for a in (0, 1, 2, -1)] + [
    case(x(2, 3), Const([1])) for x in ALL_SORTS
]
CASES["REVERSE_V2"] += [case(f32(2, 3), Const([0, 1])), bad(f32(2, 3), Const([2]), says="out of range")]

# ---- parts -------------------------------------------------------------------------------------------------

CASES["SLICE"] = [
    case(f32(4, 5), Const([1, 2]), Const([2, 3])),
    case(f32(4, 5), Const([1, 0]), Const([-1, -1])),
    case(f32(4), Const([4]), Const([0]), oracle=False),
    *[case(x(3, 4), Const([0, 1], np.int64), Const([2, 2], np.int64)) for x in ALL_SORTS],
    case(f32(2, 2, 2, 2, 2), Const([0, 1, 0, 0, 1]), Const([2, 1, 2, 1, 1])),
    case(text("a", "bc", "d"), Const([1]), Const([2])),
    bad(f32(4), Const([2]), Const([3]), says="Expected size[0]"),
    bad(f32(4), Const([-1]), Const([1]), says="Expected begin[0]"),
    bad(f32(4), Const([0, 0]), Const([1, 1]), says="does not fit"),
]


def _strided(x, begin, end, strides, **masks):
    return case(x, Const(begin), Const(end), Const(strides), **masks)


CASES["STRIDED_SLICE"] = [
    _strided(f32(6), [1], [5], [2]),
    _strided(f32(6), [-2], [-7], [-1]),
    _strided(f32(6), [5], [0], [-2]),
    _strided(f32(4, 5), [1, 0], [3, 4], [1, 2]),
    _strided(f32(4, 5), [0, 1], [0, 3], [1, 1], begin_mask=1, end_mask=1),
    _strided(f32(4, 5), [1, 0], [2, 5], [1, 1], shrink_axis_mask=1),
    _strided(f32(4, 5), [-1, 0], [0, 5], [1, 1], shrink_axis_mask=1),
    _strided(f32(2, 3, 4), [0, 1], [0, 3], [1, 1], ellipsis_mask=1),
    _strided(f32(4, 5), [0, 1], [0, 3], [1, 1], new_axis_mask=1),
    _strided(f32(4), [10], [20], [1], oracle=False),
    _strided(f32(4), [3], [1], [1], oracle=False),
    _strided(f32(2, 3, 4), [0, 0, 1], [0, 0, 2], [1, 1, 1], ellipsis_mask=2, shrink_axis_mask=5),
    _strided(f32(6), [1], [3], [1], offset=True),
    *[_strided(x(3, 4), [0, 1], [2, 3], [1, 1]) for x in ALL_SORTS],
    bad(f32(4), Const([0]), Const([2]), Const([0]), says="non-zero"),
    bad(f32(4), Const([0, 0]), Const([2, 2]), Const([1, 1]), says="Index out of range"),
    bad(f32(4), Const([4]), Const([5]), Const([1]), shrink_axis_mask=1, says="out of bounds"),
    bad(f32(4), Const([0]), Const([2, 2]), Const([1]), says="differ in length"),
]
CASES["GATHER"] = [
    case(f32(4, 5), np.int32([3, 0, 0])),
    case(f32(4, 5), np.int32([[1, 2], [4, 0]]), axis=1),
    case(f32(4, 5), np.int64([2]), axis=-1),
    case(f32(2, 3, 4), np.int32([[0, 2], [1, 1]]), axis=1, batch_dims=1),
    case(f32(2, 3, 2, 4), np.int32([[3, 0], [1, 2]]), axis=3, batch_dims=1),
    case(f32(4), np.int32(2)),
    *[case(x(3, 2), np.int32([2, 0])) for x in ALL_SORTS],
    case(text("a", "bc", "d"), np.int32([2, 0])),
    bad(f32(4), np.int32([4]), says="out of bounds"),
    bad(f32(4), np.int32([-1]), says="out of bounds"),
    bad(f32(4), np.int32([0]), axis=1, says="out of range"),
    bad(f32(2, 3), np.int32([[0], [1], [2]]), axis=1, batch_dims=1, says="should be equal to indices.shape[0]"),
]
CASES["GATHER_ND"] = [
    case(f32(3, 4), np.int32([[0, 1], [2, 3]])),
    case(f32(3, 4), np.int32([[1], [0]])),
    case(f32(2, 3, 4), np.int64([[[0, 1]], [[1, 2]]])),
    *[case(x(3, 2), np.int32([[2, 0]])) for x in ALL_SORTS],
    bad(f32(3, 4), np.int32([[3, 0]]), says="out of bounds"),
    bad(f32(3), np.int32([[0, 0]]), says="params rank"),
]
CASES["SCATTER_ND"] = [
    case(np.int32([[1], [3], [1]]), f32(3), Const([5])),
    case(np.int32([[0], [2]]), f32(2, 4), Const([3, 4])),
    case(np.int32([[0, 1], [2, 2]]), ints(2), Const([3, 3])),
    bad(np.int32([[5]]), f32(1), Const([5]), says="out of bounds"),
    bad(np.int32([[0]]), f32(2), Const([5]), says="updates do not have the shape"),
]

# ---- blocks ------------------------------------------------------------------------------------------------

CASES["SPACE_TO_DEPTH"] = [
    case(f32(1, 4, 6, 2), block_size=2),
    case(ints(2, 3, 3, 1), block_size=3),
    bad(f32(1, 3, 4, 1), block_size=2, says="divisible by block_size"),
    bad(f32(1, 4, 4, 1), block_size=0, says="positive"),
    bad(f32(4, 4, 1), block_size=2, says="rank"),
]
CASES["DEPTH_TO_SPACE"] = [
    case(f32(1, 2, 3, 8), block_size=2),
    case(ints(2, 1, 1, 9), block_size=3),
    bad(f32(1, 2, 2, 3), block_size=2, says="divisible by block_size"),
]
CASES["SPACE_TO_BATCH_ND"] = [
    case(f32(1, 4, 4, 2), Const([2, 2]), Const([[0, 0], [0, 0]])),
    case(f32(2, 3, 4, 1), Const([2, 3]), Const([[1, 0], [0, 2]])),
    case(f32(2, 5, 3), Const([3]), Const([[0, 1]])),
    bad(f32(1, 3, 4, 1), Const([2, 2]), Const([[0, 0], [0, 0]]), says="divisible by its block"),
    bad(f32(1, 4, 4, 1), Const([0, 2]), Const([[0, 0], [0, 0]]), says="positive"),
    bad(f32(1, 4, 4, 1), Const([2, 2]), Const([[-2, 0], [0, 0]]), says="negative"),
]
CASES["BATCH_TO_SPACE_ND"] = [
    case(f32(4, 2, 2, 2), Const([2, 2]), Const([[0, 0], [0, 0]])),
    case(f32(12, 2, 2, 1), Const([2, 3]), Const([[1, 0], [0, 2]])),
    case(f32(6, 2, 3), Const([3]), Const([[0, 1]])),
    bad(f32(3, 2, 2, 1), Const([2, 2]), Const([[0, 0], [0, 0]]), says="divisible by 4"),
    bad(f32(4, 2, 2, 1), Const([2, 2]), Const([[3, 3], [0, 0]]), says="crops"),
]

CASES |= cases_more.CASES

# Operators that a model of them alone does not run, and where they are tested.
ELSEWHERE = {
    **dict.fromkeys(("CALL", "IF", "STABLEHLO_CASE", "STABLEHLO_COMPOSITE", "WHILE"), "subgraphs"),
    **dict.fromkeys(("STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SCATTER"), "test_stablehlo_reductions.py"),
    "STABLEHLO_RNG_BIT_GENERATOR": "drawn_rows_stablehlo.py",
    **dict.fromkeys(("ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE"), "variables"),
    **dict.fromkeys(("HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE"), "hash tables"),
    **dict.fromkeys(
        (
            "LSTM",
            "RNN",
            "SVDF",
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            "UNIDIRECTIONAL_SEQUENCE_RNN",
            "BIDIRECTIONAL_SEQUENCE_LSTM",
            "BIDIRECTIONAL_SEQUENCE_RNN",
        ),
        "recurrent layers",
    ),
    **dict.fromkeys(("DEQUANTIZE", "FAKE_QUANT", "QUANTIZE"), "quantised tensors"),
}
