"""The table of cases, continued: images, volumes, boxes, segments, look-ups, random numbers, sequences, windows.

Oracle: the official interpreter's reference kernels. oracle=False where these refuse or get wrong what the table says.
"""

from __future__ import annotations

import numpy as np
from one_operator import Case, Const, bad, bools, case, f32, ints

CASES: dict[str, list[Case]] = {}
_sum = {"rtol": 1e-5, "atol": 1e-5}
scalar = lambda v, dtype=np.int32: Const(v, dtype)  # noqa: E731
i64 = lambda *v: Const(list(v), np.int64)  # noqa: E731
of = lambda kind, *shape: ints(*shape, low=0 if np.dtype(kind).kind == "u" else -9, dtype=kind)  # noqa: E731

# ---- images ------------------------------------------------------------------------------------------------

for _name in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
    CASES[_name] = [
        case(f32(*shape), Const(size), **flags, rtol=1e-5, atol=1e-5)
        for shape, size in (((1, 4, 5, 2), [7, 3]), ((2, 3, 3, 1), [3, 9]), ((1, 1, 6, 3), [4, 1]))
        for flags in ({}, {"align_corners": True}, {"half_pixel_centers": True})
    ]
    CASES[_name] += [
        bad(f32(1, 4, 4, 1), Const([-1, 2]), says="not positive"),
        bad(f32(1, 0, 4, 1), Const([2, 2]), says="empty"),
        bad(f32(1, 4, 4, 1), Const([2]), says="not two numbers"),
        bad(f32(4, 4, 1), Const([2, 2]), says="rank"),
    ]
CASES["RESIZE_BILINEAR"] += [
    bad(f32(1, 4, 4, 1), Const([2, 2]), align_corners=True, half_pixel_centers=True, says="exclude each other"),
    bad(f32(1, 4, 4, 1), Const([0, 2]), says="not positive"),
]
CASES["RESIZE_NEAREST_NEIGHBOR"] += [case(of(t, 1, 3, 4, 2), Const([5, 2])) for t in (np.uint8, np.int8, np.int16)]
_k = {"stride_w": 1, "stride_h": 1, "filter_width": 2, "filter_height": 2}
CASES["L2_POOL_2D"] = [
    case(f32(1, 4, 4, 3), **_k),
    case(f32(2, 5, 7, 2), **_k | {"stride_w": 2, "stride_h": 2, "padding": "VALID"}),
    case(f32(1, 5, 5, 1), **_k | {"filter_width": 3, "stride_w": 2}, fused_activation_function="RELU6"),
    bad(f32(1, 4, 4, 2), stride_w=1, stride_h=1, says="filter_width must be positive"),
]
CASES["LOCAL_RESPONSE_NORMALIZATION"] = [
    # the official reference kernel leaves the last channel of a window out, its optimised one does not
    case(f32(1, 2, 3, 7), radius=r, bias=b, alpha=a, beta=e, oracle=False)
    for r, b, a, e in ((2, 1.0, 1e-3, 0.75), (0, 2.0, 0.5, 0.5), (9, 1.0, 1.0, 1.0))
]
CASES["LOCAL_RESPONSE_NORMALIZATION"] += [bad(f32(1, 2, 2, 3), radius=-1, says="negative"), bad(f32(2, 3), says="rank")]


def _conv3d(x, f, bias=True, **options):
    b = Const(f32(f[-1]), np.float32) if bias else None
    steps = {"stride_d": 1, "stride_w": 1, "stride_h": 1}
    return case(f32(*x), Const(f32(*f), np.float32), b, **steps | options, **_sum)


_one = {"stride_d": 1, "stride_w": 1, "stride_h": 1}
CASES["CONV_3D"] = [
    _conv3d((1, 4, 5, 6, 2), (2, 3, 2, 2, 3)),
    _conv3d((2, 4, 4, 4, 1), (2, 2, 2, 1, 2), padding="VALID", stride_d=2, stride_h=2),
    _conv3d((1, 5, 5, 5, 2), (2, 2, 2, 2, 2), dilation_w_factor=2, dilation_d_factor=2, padding="VALID"),
    _conv3d((1, 3, 3, 3, 2), (1, 1, 1, 2, 2), bias=False, fused_activation_function="RELU"),
    bad(f32(1, 3, 3, 3, 2), f32(2, 2, 2, 3, 1), None, **_one, says="channels of x and filter differ"),
    bad(f32(1, 3, 3, 3, 2), f32(2, 2, 2, 2, 1), None, says="must be positive"),
    bad(f32(1, 3, 3, 3, 2), f32(2, 2, 2, 2, 1), f32(3), **_one, says="bias"),
    bad(f32(1, 3, 3, 3, 2), f32(5, 2, 2, 2, 1), None, **_one | {"padding": "VALID"}, says="larger than the image"),
]


def _conv3d_transpose(out, f, x, bias=False, **options):
    b = (Const(f32(f[3]), np.float32),) if bias else ()
    return case(Const(out), Const(f32(*f), np.float32), f32(*x), *b, **_one | options, **_sum)


CASES["CONV_3D_TRANSPOSE"] = [
    _conv3d_transpose([1, 3, 4, 4, 2], (2, 3, 3, 2, 3), (1, 3, 4, 4, 3)),
    _conv3d_transpose([2, 4, 8, 8, 1], (2, 3, 3, 1, 2), (2, 2, 4, 4, 2), stride_d=2, stride_w=2, stride_h=2),
    _conv3d_transpose(
        [1, 5, 9, 9, 2],
        (3, 3, 3, 2, 1),
        (1, 2, 4, 4, 1),
        bias=True,
        stride_d=2,
        stride_w=2,
        stride_h=2,
        padding="VALID",
    ),
    bad(Const([1, 7, 4, 4, 2]), f32(2, 3, 3, 2, 3), f32(1, 3, 4, 4, 3), **_one, says="output_shape does not fit"),
    bad(Const([1, 4, 4]), f32(2, 3, 3, 2, 3), f32(1, 3, 4, 4, 3), **_one, says="5 elements"),
]

# ---- boxes -------------------------------------------------------------------------------------------------

_boxes = np.float32(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [1, 10.1, 0, 11.1], [0, 100, 1, 101]]
)
_scores = np.float32([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])
_many = f32(30, 4, low=0, high=3)
CASES["NON_MAX_SUPPRESSION_V4"] = [
    case(b, s, scalar(n), scalar(t, np.float32), scalar(least, np.float32))
    for b, s, n, t, least in (
        (_boxes, _scores, 3, 0.5, 0.0),
        (_boxes, _scores, 6, 0.5, 0.4),
        (_boxes, _scores, 9, 0.95, 0.0),
        (_many, f32(30), 12, 0.3, -1.0),
    )
]
CASES["NON_MAX_SUPPRESSION_V4"] += [
    # of equal scores the official kernel chooses in the order of its heap
    case(_boxes, np.full(6, 0.5, np.float32), scalar(4), *(scalar(v, np.float32) for v in (0.5, 0.0)), oracle=False),
    bad(_boxes, _scores[:5], scalar(3), scalar(0.5, np.float32), scalar(0.0, np.float32), says="do not fit"),
    bad(_boxes, _scores, scalar(-3), scalar(0.5, np.float32), scalar(0.0, np.float32), says="negative"),
    bad(_boxes[:, :3], _scores, scalar(3), scalar(0.5, np.float32), scalar(0.0, np.float32), says="do not fit"),
]
CASES["NON_MAX_SUPPRESSION_V5"] = [
    case(b, s, scalar(n), scalar(t, np.float32), scalar(least, np.float32), scalar(sigma, np.float32))
    for b, s, n, t, least, sigma in (
        (_boxes, _scores, 6, 0.5, 0.0, 0.0),
        (_boxes, _scores, 6, 1.0, 0.0, 0.5),
        (_boxes, _scores, 6, 0.5, 0.35, 0.5),
        (_many, f32(30, low=0, high=1), 20, 1.0, 0.1, 0.25),
    )
]
CASES["NON_MAX_SUPPRESSION_V5"] += [
    bad(_boxes, _scores, scalar(3), *(scalar(v, np.float32) for v in (0.5, 0.0, -1.0)), says="soft_nms_sigma")
]

# ---- segments ----------------------------------------------------------------------------------------------

CASES["SEGMENT_SUM"] = [
    case(f32(5, 3), Const([0, 0, 1, 2, 2])),
    case(f32(5, 3), Const([1, 1, 1, 3, 3]), oracle=False),  # the official kernel takes no empty segments
    case(ints(4), Const([0, 1, 1, 2])),
    case(f32(2, 2, 2), Const([0, 1])),
    bad(f32(3), Const([0, 2, 1]), says="not sorted"),
    bad(f32(3), Const([-1, 0, 1]), says="negative"),
    bad(f32(3), Const([0, 1]), says="not one segment for each row"),
]
for _name in ("SUM", "PROD", "MAX", "MIN"):
    CASES[f"UNSORTED_SEGMENT_{_name}"] = [
        case(f32(5, 3), np.int32([3, 0, 1, 0, 3]), scalar(5)),
        case(ints(4, low=-3, high=3), np.int32([1, -1, 1, 0]), scalar(3)),
        case(f32(2, 3, 2), np.int32([[0, 1, 1], [2, 0, 0]]), scalar(3)),
        bad(f32(3), Const([0, 5, 1]), scalar(3), says="out of range"),
        bad(f32(3), Const([0, 1, 1]), scalar(-3), says="negative"),
        bad(f32(3), Const([0, 1]), scalar(3), says="does not start with"),
    ]

# ---- look-ups ----------------------------------------------------------------------------------------------

CASES["EMBEDDING_LOOKUP"] = [
    case(np.int32([2, 0, 2]), f32(3, 4)),
    case(np.int32([1, 0]), Const(f32(3, 2, 2), np.float32)),
    bad(np.int32([3]), f32(3, 4), says="out of bounds"),
    bad(np.int32([-1]), f32(3, 4), says="out of bounds"),
    bad(np.int32([0]), f32(3), says="not a list of rows"),
]
_ids = (np.int32([1, 3, 0, 1]), np.int32([[0, 0], [0, 1], [1, 0], [2, 3]]), Const([3, 4]), np.float32([2, 0.5, 1, 3]))
CASES["EMBEDDING_LOOKUP_SPARSE"] = [case(*_ids, f32(4, 5), combiner=c) for c in ("SUM", "MEAN", "SQRTN")]
CASES["EMBEDDING_LOOKUP_SPARSE"] += [
    case(
        np.int32([0, 2]),
        np.int32([[0, 1, 0], [1, 0, 2]]),
        Const([2, 2, 3]),
        np.float32([1, 2]),
        f32(3, 2, 2),
        combiner="MEAN",
    ),
    bad(np.int32([9]), np.int32([[0, 0]]), Const([3, 4]), np.float32([2]), f32(4, 5), says="out of bounds"),
    bad(np.int32([1]), np.int32([[5, 0]]), Const([3, 4]), np.float32([2]), f32(4, 5), says="out of range"),
    bad(np.int32([1]), np.int32([[0, 0]]), Const([3, 4]), np.float32([2, 3]), f32(4, 5), says="differ in number"),
    bad(np.int32([1]), np.int32([[0, 0]]), Const([3]), np.float32([2]), f32(4, 5), says="do not fit dense_shape"),
]
_text = np.array([b"a", b"bc", b"", b"d"], object)
CASES["HASHTABLE_LOOKUP"] = [
    case(np.int32([1234, -292, -11, 0]), Const([-11, 0, 1234]), f32(3, 2)),
    case(np.int32([7, 5]), Const([5, 6]), np.int32([50, 60])),
    case(np.int32([6, 9, 5]), Const([4, 5, 6, 7]), _text, oracle=False),
    bad(np.int32([1]), Const([5, 6]), f32(3), says="not one value for each key"),
]


def _scattered(*shape: int) -> np.ndarray:
    """Whole numbers of all bits, without a draw from the table's generator."""
    return (np.arange(np.prod(shape)) * 2654435761 % 2**31).astype(np.int32).reshape(shape)


CASES["LSH_PROJECTION"] = [
    case(
        Const(f32(3, 2), np.float32),
        np.int32([12345, 54321, 67890, 9876]),
        Const([0.12, 0.34, 0.56, 0.67], np.float32),
        type="DENSE",
    ),
    case(Const(f32(3, 4), np.float32), np.int32([1, 54321, 67890, 9876]), type="SPARSE"),
    case(Const(f32(2, 8), np.float32), f32(5, 2), type="SPARSE"),
    bad(f32(2, 33), f32(5, 2), type="DENSE", says="more than 32 bits"),
    bad(f32(2, 3), f32(5, 2), says="not known"),
    bad(f32(2, 3), f32(5, 2), f32(4), type="DENSE", says="not one weight for each row"),
    *(  # the seed and 4 to 280 bytes are hashed, by another formula up to 16, 32 and 64
        case(Const([[0.5, -2.0], [3.0, 0.25]], np.float32), _scattered(3, size), type="DENSE")
        for size in (1, 3, 5, 7, 11, 15, 16, 31, 70)
    ),
    case(
        Const([[0.5, -2.0]], np.float32), _scattered(40_000), Const(np.cos(np.arange(40_000)), np.float32), type="DENSE"
    ),
    *(  # one row and two functions: few pairs
        case(Const([[0.5, -2.0]], np.float32), _scattered(1, size), type="DENSE") for size in (1, 3, 7, 15, 70, 1000)
    ),
]
CASES["SPARSE_TO_DENSE"] = [
    case(np.int32([[0, 1], [2, 3]]), Const([3, 4]), f32(2), scalar(7, np.float32)),
    case(np.int32([1, 3]), Const([5]), np.int32([8, 9]), scalar(-1)),
    case(np.int64([[0, 1], [2, 3]]), i64(3, 4), scalar(5, np.int64), scalar(0, np.int64)),
    case(np.int32(2), Const([5]), scalar(1.5, np.float32), scalar(0, np.float32)),
    bad(np.int32([[0, 4]]), Const([3, 4]), f32(1), scalar(7, np.float32), says="out of range"),
    bad(np.int32([[0, -1]]), Const([3, 4]), f32(1), scalar(7, np.float32), says="out of range"),
    bad(np.int32([[0, 1]]), Const([3]), f32(1), scalar(7, np.float32), says="do not fit the shape"),
    bad(np.int32([[0, 1]]), Const([3, 4]), f32(2), scalar(7, np.float32), says="do not fit the indices"),
    bad(np.int32([1]), Const([-3]), f32(1), scalar(7, np.float32), says="negative"),
]
CASES["DENSIFY"] = [case(Const(f32(2, 3), np.float32), oracle=False), bad(ints(3), says="dtype")]

# ---- sequences ---------------------------------------------------------------------------------------------

CASES["REVERSE_SEQUENCE"] = [
    case(f32(3, 4, 2), np.int32([0, 4, 2]), seq_dim=1, batch_dim=0),
    case(f32(4, 3), np.int64([1, 4, 2]), seq_dim=0, batch_dim=1),
    case(ints(2, 2, 3, 4), np.int32([3, 1]), seq_dim=2, batch_dim=0),
    case(ints(2, 2, 3, 4), np.int32([1, 2, 2]), seq_dim=1, batch_dim=2),
    *[case(of(t, 2, 3), np.int32([3, 2]), seq_dim=1) for t in (np.uint8, np.int16, np.int64)],
    bad(f32(2, 3), np.int32([4, 1]), seq_dim=1, says="out of range"),
    bad(f32(2, 3), np.int32([-1, 1]), seq_dim=1, says="out of range"),
    bad(f32(2, 3), Const([1, 1]), seq_dim=0, says="one dimension"),
    bad(f32(2, 3), Const([1, 1]), seq_dim=2, says="seq_dim is out of range"),
    bad(f32(2, 3), Const([1]), seq_dim=1, says="not one length"),
]
CASES["UNIQUE"] = [
    case(np.int32([5, 2, 5, 9, 2, 1])),
    case(np.float32([0.5, -1, 0.5]), idx_out_type="INT64"),
    *[case(of(t, 9)) for t in (np.uint8, np.int8, np.int16, np.int64)],
    case(np.zeros(0, np.int32), oracle=False),
    bad(ints(2, 3), says="rank"),
    bad(ints(3), idx_out_type="FLOAT32", says="index type"),
]
CASES["BUCKETIZE"] = [
    case(np.float32([[-1, 0], [0.5, 99]]), boundaries=[0.0, 0.5, 10.0]),
    case(ints(7), boundaries=[-5.0, 2.0]),
    case(of(np.int64, 7), boundaries=[-5.0, 2.0]),
    case(np.float64([0.1, 0.10000000001]), boundaries=[0.1]),
    bad(f32(2), boundaries=[2.0, 1.0], says="sorted"),
]
_sentence = np.array([b"The quick brown\tfox  jumps over the lazy dog!"], object)
CASES["SKIP_GRAM"] = [
    case(_sentence, ngram_size=n, max_skip_size=s, include_all_ngrams=every)
    for n, s, every in ((2, 0, False), (2, 1, False), (3, 2, False), (3, 1, True), (1, 0, False), (99, 0, False))
]
CASES["SKIP_GRAM"] += [bad(_sentence, ngram_size=0, says="sizes"), bad(f32(2), ngram_size=1, says="dtype")]

# ---- numbers, matrices, transforms -------------------------------------------------------------------------

for _name in ("BITWISE_XOR", "RIGHT_SHIFT"):
    _second = {"low": 0, "high": 9} if _name == "RIGHT_SHIFT" else {}
    CASES[_name] = [
        case(of(t, 2, 5), ints(2, 5, low=0, high=9, dtype=t))
        for t in (np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32)
    ]
    CASES[_name] += [
        case(ints(2, 1, 3, low=-99, high=99), ints(4, 1, low=-2, high=40)),
        bad(ints(2), ints(3), says="not broadcastable"),
        bad(f32(2), f32(2), says="dtype"),
    ]
CASES["MATRIX_DIAG"] = [case(f32(3)), case(f32(2, 4)), bad(f32(), says="scalar")]
CASES["MATRIX_DIAG"] += [case(of(t, 2, 3)) for t in (np.uint8, np.int8, np.int16, np.int32, np.int64)]
CASES["MATRIX_SET_DIAG"] = [
    case(f32(3, 3), f32(3)),
    case(f32(2, 3, 5), f32(2, 3)),
    case(f32(4, 2), f32(2)),
    *[case(of(t, 2, 3), of(t, 2)) for t in (np.uint8, np.int8, np.int16, np.int32, np.int64)],
    bad(f32(2, 3), f32(3), says="does not fit the matrices"),
    bad(f32(3), f32(3), says="no matrices"),
]
_c64 = (f32(2, 3) + 1j * f32(2, 3)).astype(np.complex64)
for _name in ("REAL", "IMAG", "COMPLEX_ABS"):
    CASES[_name] = [case(_c64), case(_c64.astype(np.complex128)), bad(f32(2), says="dtype")]
CASES["RFFT2D"] = [
    case(f32(4, 8), Const([4, 8]), rtol=1e-5, atol=1e-5),
    case(f32(2, 3, 5), Const([4, 4]), rtol=1e-5, atol=1e-5),
    case(f32(2, 5, 9), Const([2, 16]), rtol=1e-5, atol=1e-5),
    bad(f32(4, 8), Const([4, 6]), says="power of 2"),
    bad(f32(4, 8), Const([4]), says="two numbers"),
    bad(f32(4), Const([4, 4]), says="no image"),
]
for _name, _tolerance in (("RANDOM_UNIFORM", {}), ("RANDOM_STANDARD_NORMAL", {"rtol": 1e-5, "atol": 1e-6})):
    CASES[_name] = [
        case(Const(s), seed=a, seed2=b, **_tolerance) for s, a, b in (([3, 3], 1, 0), ([99], 2**40 + 2, -3))
    ]
    CASES[_name] += [case(Const([0, 2]), seed2=7), bad(Const([-1]), says="negative")]
CASES["MULTINOMIAL"] = [
    case(f32(3, 5), scalar(n), seed=4, seed2=s, output_type=t) for n, s, t in ((7, 1, "INT64"), (8, -2, "INT32"))
]
CASES["MULTINOMIAL"] += [
    case(np.float32([[0, -np.inf, 1, np.inf]]), scalar(30), seed=1),
    bad(f32(2, 3), scalar(-1), says="negative"),
    bad(f32(2, 0), scalar(1), says="no classes"),
]

# ---- parts and windows -------------------------------------------------------------------------------------

CASES["DYNAMIC_UPDATE_SLICE"] = [
    case(f32(3, 4), f32(2, 2), np.int32([1, 1])),
    case(f32(3, 4), f32(2, 2), np.int32([-5, 9])),
    case(f32(5), f32(0), np.int64([2])),
    *[case(of(t, 3, 3), of(t, 1, 2), np.int32([1, 0])) for t in (np.int8, np.int16, np.int32, np.int64, np.float16)],
    case(bools(4), bools(2), np.int32([1])),
    bad(f32(3, 4), f32(4, 2), np.int32([0, 0]), says="does not fit the operand"),
    bad(f32(3, 4), f32(2), np.int32([0, 0]), says="does not fit the operand"),
    bad(f32(3, 4), f32(2, 2), np.int32([0]), says="start_indices"),
]
CASES["DILATE"] = [
    case(f32(3, 3), Const([2, 3]), scalar(0, np.float32)),
    case(ints(2, 2, 2), Const([1, 2, 1]), scalar(-7)),
    case(f32(2, 3), Const([1, 1]), scalar(9, np.float32)),
    bad(f32(2, 3), Const([0, 1]), scalar(9, np.float32), says="positive"),
    bad(f32(2, 3), Const([2]), scalar(9, np.float32), says="does not fit the input"),
    bad(f32(0, 3), Const([2, 1]), scalar(9, np.float32), says="nothing to move apart"),
]
_reduce = lambda x, init, *lists, **o: case(x, scalar(init, x.dtype), *(i64(*v) for v in lists), **o)  # noqa: E731
CASES["REDUCE_WINDOW"] = [
    _reduce(f32(4, 6), 0, [2, 2], [2, 2], [1, 1], reduce_function="ADD"),
    _reduce(ints(5), 1, [3], [1], [2], reduce_function="MUL"),
    _reduce(f32(1, 4, 4, 2), -9, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], reduce_function="MAXIMUM"),
    _reduce(of(np.int64, 4, 4), 99, [2, 1], [1, 3], [1, 1], reduce_function="MINIMUM"),
    _reduce(f32(5), 0, [2], [2], [1], reduce_function="ADD", oracle=False),  # the official kernel reads past the end
    _reduce(bools(4), True, [2], [1], [1], reduce_function="ALL", oracle=False),
    _reduce(ints(4, low=0, high=1), 0, [2], [1], [1], reduce_function="ANY"),
    _reduce(f32(4), 0, [5], [1], [1], reduce_function="ADD"),  # no window fits: nothing comes out
    _reduce(f32(0, 3), 1, [1, 2], [1, 1], [1, 1], reduce_function="MAXIMUM"),
    bad(f32(4), scalar(0, np.float32), i64(0), i64(1), i64(1), reduce_function="ADD", says="positive"),
    bad(f32(4), scalar(0, np.float32), i64(1), i64(1), i64(1), says="reduce_function is none"),
    bad(f32(4), scalar(0, np.float32), i64(1, 1), i64(1), i64(1), reduce_function="ADD", says="does not fit the input"),
]

# ---- StableHLO ---------------------------------------------------------------------------------------------

for _name in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM"):
    CASES[f"STABLEHLO_{_name}"] = [
        case(f32(2, 3), f32(2, 3)),
        *[case(of(t, 2, 3), of(t, 2, 3)) for t in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.float16)],
        bad(f32(2, 3), f32(3), says="differ in shape"),
    ]
CASES["STABLEHLO_AND"] = [case(bools(5), bools(5)), case(ints(2, 3), ints(2, 3)), bad(f32(2), f32(2), says="dtype")]
CASES["STABLEHLO_SHIFT_LEFT"] = [
    *[case(of(t, 9), ints(9, low=0, high=6, dtype=t)) for t in (np.int8, np.int16, np.int32)],
    bad(ints(2), ints(3), says="differ in shape"),
]
_zero = scalar(0, np.float32)
CASES["STABLEHLO_PAD"] = [
    case(f32(2, 3), scalar(7, np.float32), edge_padding_low=low, edge_padding_high=high, interior_padding=inner)
    for low, high, inner in (
        ([1, 0], [0, 2], [0, 0]),
        ([0, 1], [1, 0], [1, 2]),
        ([-1, 0], [0, -1], [0, 0]),
        ([1, -1], [-1, 2], [2, 1]),
        ([-2, -2], [3, 3], [1, 3]),
    )
]
CASES["STABLEHLO_PAD"] += [
    bad(f32(2, 3), _zero, edge_padding_low=[1], edge_padding_high=[1], interior_padding=[0], says="do not fit"),
    bad(f32(2), _zero, edge_padding_low=[1], edge_padding_high=[1], interior_padding=[-1], says="negative"),
]
_g = {"offset_dims": [1], "collapsed_slice_dims": [0], "start_index_map": [0], "index_vector_dim": 1}
CASES["STABLEHLO_GATHER"] = [
    case(f32(5, 3), np.int32([[4], [0], [9]]), slice_sizes=[1, 3], **_g, rank=2),
    case(ints(5, 3), np.int64([[4], [0]]), slice_sizes=[1, 2], **_g, rank=2),
    case(
        f32(3, 4, 2),
        np.int32([[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 9]]]),
        offset_dims=[2, 3],
        collapsed_slice_dims=[0],
        start_index_map=[1, 0],
        index_vector_dim=2,
        slice_sizes=[1, 2, 2],
        rank=4,
    ),
    bad(f32(5, 3), np.int32([[4]]), slice_sizes=[1, 4], **_g, says="slice_sizes do not fit"),
    bad(f32(5, 3), np.int32([[4]]), slice_sizes=[2, 3], **_g, says="dimensions of size 1"),
    bad(f32(5, 3), np.int32([[4, 1]]), slice_sizes=[1, 3], **_g, says="start_index_map"),
    bad(f32(5, 3), np.int32([[4]]), slice_sizes=[1, 3], **_g | {"offset_dims": [0, 1]}, says="offset_dims"),
]
