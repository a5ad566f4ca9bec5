"""The converter's table, continued: images, volumes, bits, segments, scatters, matrices, spectra, sequences, training.

Rows name operators in the file where a rule promises them; the order of the names is the order in the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from convert_harness import Case, bools, case, f32, ints, pos

import opwright as ow
from opwright.ops import registry

IMAGE = f32(2, 8, 7, 4)
FLIPPED = np.ascontiguousarray(IMAGE.transpose(0, 3, 1, 2))
VOLUME = f32(2, 5, 6, 7, 3)
BATCH = {0: (0,)}


def call(
    name: str, *inputs: Any, ops: str | None = None, label: str = "", after: tuple[Any, ...] = (), **more: Any
) -> Case:
    """A row of one catalogue operator. inputs: arrays; after: constants among its operands; more: attributes."""
    keys = {k: more.pop(k) for k in ("open", "rtol", "versions") if k in more}
    op = registry.get(name)

    def function(*tensors: Any) -> Any:
        result = op(*tensors, *after, **more)
        return tuple(result) if isinstance(result, (tuple, list)) else result

    return case(f"{name}{label}", function, *inputs, ops=ops, **keys)


def sized(name: str, *size: int, x: np.ndarray = IMAGE, ops: str | None = None, label: str = "", **attrs: Any) -> Case:
    """A row that resizes an image."""
    flags = "".join(f"_{k}" for k, v in attrs.items() if v is True)
    return call(name, x, after=(np.array(size, np.int32),), ops=ops, label=f"{flags}{label}", open=BATCH, **attrs)


IMAGES = [
    *(
        sized(f"Resize{kind}", 11, 5, **flags, ops=ops)
        for kind, ops in (("Bilinear", "RESIZE_BILINEAR"), ("NearestNeighbor", "RESIZE_NEAREST_NEIGHBOR"))
        for flags in ({}, {"align_corners": True}, {"half_pixel_centers": True})
    ),
    sized(
        "ResizeBilinear", 3, 9, x=ints(1, 4, 4, 2, low=0, dtype=np.uint8), label="_bytes", ops="CAST RESIZE_BILINEAR"
    ),
    sized("ResizeNearestNeighbor", 3, 9, x=ints(1, 4, 4, 2), label="_int", ops="GATHER GATHER"),
    *(
        sized(f"Resize{kind}", 11, 5, **flags)
        for kind in ("Bicubic", "Area")
        for flags in ({}, {"align_corners": True})
    ),
    sized("ResizeBicubic", 4, 14, half_pixel_centers=True),
    call(
        "ScaleAndTranslate", IMAGE, label="_down", after=(np.int32([5, 9]), np.float32([0.6, 1.4]), np.float32([1, -2]))
    ),
    call("ResizeBilinearGrad", f32(2, 11, 5, 4), IMAGE, half_pixel_centers=True),
    call("ResizeBicubicGrad", f32(2, 11, 5, 4), IMAGE),
    call("ResizeNearestNeighborGrad", f32(2, 11, 5, 4), after=(np.int32([8, 7]),)),
    call(
        "ExtractImagePatches",
        IMAGE,
        sizes=[1, 3, 2, 1],
        strides=[1, 2, 2, 1],
        rates=[1, 1, 2, 1],
        padding="SAME",
        open=BATCH,
    ),
    call(
        "ExtractImagePatches",
        ints(1, 5, 5, 1),
        label="_valid",
        sizes=[1, 2, 2, 1],
        strides=[1, 1, 1, 1],
        rates=[1, 1, 1, 1],
        padding="VALID",
    ),
    call("RGBToHSV", np.abs(f32(2, 3, 3, 3)) / 2),
    call("HSVToRGB", np.abs(f32(2, 3, 3, 3)) / 2.1),
    call("RGBToHSV", np.float32([[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0], [0, 0, 1], [1, 0, 1]]), label="_corners"),
    case("adjust_hue", lambda x: ow.image.adjust_hue(x, 0.3), np.abs(f32(2, 3, 3, 3)) / 2),
    case("adjust_saturation", lambda x: ow.image.adjust_saturation(x, 1.7), np.abs(f32(2, 3, 3, 3)) / 2),
    case("adjust_contrast", lambda x: ow.image.adjust_contrast(x, 1.5), f32(2, 4, 5, 3), ops="MEAN SUB MUL ADD"),
    call("LRN", IMAGE, ops="LOCAL_RESPONSE_NORMALIZATION", depth_radius=1, alpha=0.2, beta=0.75, open=BATCH),
]


def boxes(n: int) -> np.ndarray:
    corner = np.abs(f32(n, 2)) * 2
    return np.concatenate([corner, corner + np.abs(f32(n, 2, seed=4)) + 0.1], 1)


def suppression(label: str, most: int, iou: float, least: float, sigma: float, **attrs: Any) -> Case:
    rest = (np.int32(most), np.float32(iou), np.float32(least), np.float32(sigma))
    return call(
        "NonMaxSuppression",
        boxes(20),
        np.linspace(0, 1, 20, dtype=np.float32)[::-1].copy(),
        label=label,
        after=rest,
        **attrs,
    )


def equals(n: int) -> np.ndarray:
    """Return scores of few values."""
    return np.random.default_rng(n).integers(1, 5, n).astype(np.float32) / 8


_touching = np.float32([[0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 2, 2]])
BOXES = [
    suppression("", 8, 0.3, 0.1, 0.0),
    suppression("_soft", 20, 0.3, 0.1, 0.5),
    suppression("_padded", 15, 0.2, 0.4, 0.0, pad_to_max_output_size=True),
    call(
        "NonMaxSuppression",
        _touching,
        np.float32([0.9, 0.8, 0.7]),
        label="_at_the_threshold",
        after=(np.int32(3), np.float32(0.5), np.float32(0), np.float32(0)),
    ),
    *(
        call(
            "NonMaxSuppression",
            np.float32([[5, 5, 5, 9], [0, 0, 2, 2], [5, 5, 5, 9], [7, 7, 7, 7], [0, 0, 2, 1.9]]),
            np.float32([0.9, 0.8, 0.7, 0.6, 0.5]),
            label=label,
            after=(np.int32(5), np.float32(0.5), np.float32(0), np.float32(sigma)),
            **more,
        )
        for label, sigma, more in (
            ("_without_areas", 0.0, {}),
            ("_without_areas_soft", 0.5, {}),
            ("_without_areas_of_any_count", 0.0, {"open": {0: (0,), 1: (0,)}}),
        )
    ),
    *(
        call(
            "NonMaxSuppression",
            boxes(60),
            equals(60),
            label=f"_equal_scores{label}",
            after=(np.int32(40), np.float32(0.4), np.float32(0.125), np.float32(0)),
            **more,
        )
        for label, more in (
            ("", {}),
            ("_padded", {"pad_to_max_output_size": True}),
            ("_of_any_count", {"open": {0: (0,), 1: (0,)}}),
        )
    ),
]

BITS = [
    *(
        call("BitwiseXor", ints(2, 5, low=0, dtype=t), ints(5, low=0, seed=7, dtype=t), ops="BITWISE_XOR")
        for t in (np.int32, np.uint8, np.int16)
    ),
    call("RightShift", ints(9, low=-99, high=99), ints(9, low=0, high=8), ops="RIGHT_SHIFT"),
    *(
        call(f"Bitwise{kind}", ints(40, low=-(2**31), high=2**31 - 1), ints(40, low=-(2**31), high=2**31 - 1, seed=9))
        for kind in ("And", "Or")
    ),
    *(
        call(
            f"Bitwise{kind}",
            ints(40, low=0, high=255, dtype=np.uint8),
            ints(40, low=0, high=255, seed=9, dtype=np.uint8),
        )
        for kind in ("And", "Or")
    ),
    *(
        call(f"Bitwise{kind}", *(ints(40, high=2**32, low=0, seed=i, dtype=np.uint32) for i in (1, 9)), label="_uint32")
        for kind in ("And", "Or")
    ),
    call("Invert", ints(9), ops="BITWISE_XOR"),
    call("Invert", ints(9, low=0, high=255, dtype=np.uint8)),
    call("Invert", ints(9, dtype=np.int64), ops="SUB"),
    call("LeftShift", ints(9, low=-(2**31), high=2**31 - 1), ints(9, low=0, high=31)),
    call("LeftShift", ints(9, dtype=np.int64), label="_constant", after=(np.int64(3),), ops="MUL"),
    call("Bitcast", f32(2, 3), type="int32", ops="BITCAST"),
    call("Bitcast", ints(3, 2), type="int64"),
]

IDS = np.int32([0, 0, 1, 3, 3])
SEGMENTS = [
    *(
        call(
            f"UnsortedSegment{kind}",
            f32(5, 3),
            np.int32([3, 0, -1, 0, 1]),
            after=(np.int32(5),),
            ops=f"UNSORTED_SEGMENT_{kind.upper()}",
        )
        for kind in ("Sum", "Prod", "Max", "Min")
    ),
    *(call(f"Segment{kind}", f32(5, 3), IDS) for kind in ("Sum", "Prod", "Max", "Min", "Mean")),
    call("SegmentSum", f32(4, 2), label="_constant", after=(np.int32([0, 1, 1, 2]),), ops="SEGMENT_SUM"),
    call("SegmentMax", ints(4), label="_constant", after=(np.int64([0, 1, 1, 2]),), ops="UNSORTED_SEGMENT_MAX"),
    call("DenseBincount", ints(20, low=0, high=9), after=(np.int32(6), np.zeros(0, np.float32))),
    case(
        "bincount_weights",
        lambda x, w: ow.math.bincount(x, w, minlength=6, maxlength=6),
        ints(20, low=0, high=9),
        f32(20),
    ),
    call(
        "DenseBincount",
        ints(20, low=0, high=9),
        label="_binary",
        after=(np.int32(6), np.zeros(0, np.int32)),
        binary_output=True,
    ),
    call("HistogramFixedWidth", f32(40), after=(np.float32([-1, 1.5]), np.int32(5))),
    call(
        "ConfusionMatrix",
        ints(9, low=0, high=3),
        ints(9, low=0, high=3, seed=5),
        after=(np.int32(4), np.ones(9, np.float32)),
    ),
]

WHERE = np.int32([[0, 1], [2, 3], [0, 1]])
SCATTERING = [
    call("TensorScatterUpdate", f32(3, 4), WHERE, f32(3)),
    call("TensorScatterUpdate", ints(3, 4, 2), np.int32([[2], [0]]), ints(2, 4, 2, seed=3), label="_rows"),
    *(call(f"TensorScatter{kind}", f32(3, 4), WHERE, f32(3)) for kind in ("Max", "Min")),
    *(
        call(f"TensorScatter{kind}", f32(3, 4), WHERE, f32(3), ops=f"SCATTER_ND {kind.upper()}", label="_nd")
        for kind in ("Add", "Sub")
    ),
    call("TensorScatterAdd", f32(3, 4), np.int32([[1], [1]]), f32(2, 4), label="_rows", open=BATCH),
    case(
        "stitch_constant",
        lambda a, b: ow.dynamic_stitch([[0, 2], [1, 3]], [a, b]),
        f32(2, 3),
        f32(2, 3, seed=3),
        ops="CONCATENATION GATHER",
    ),
    case(
        "stitch", lambda a, b, i: ow.dynamic_stitch([i, [1, 4]], [a, b]), f32(2, 3), f32(2, 3, seed=3), np.int32([1, 2])
    ),
    case("partition", lambda x, p: ow.dynamic_partition(x, p, 3), f32(6, 2), np.int32([0, 2, 0, 1, 2, 2])),
    call("GatherGrad", f32(3, 2), np.int32([4, 0, 4]), after=(np.int32([5, 2]),), ops="EXPAND_DIMS SCATTER_ND"),
    call("Unique", ints(12, low=0, high=5), ops="UNIQUE"),
    call("Unique", f32(4), out_idx="int64", ops="UNIQUE"),
    call("UniqueWithCounts", ints(12, low=0, high=5)),
    call("InvertPermutation", np.int32([3, 0, 2, 1])),
    call("InvertPermutation", np.int64([3, 0, 2, 1]), open=BATCH),
    call("EmbeddingRows", f32(5, 3), np.int32([[1, 2], [4, 0]]), padding_idx=2),
]

MATRICES = [
    call("MatrixDiag", f32(2, 3), after=(np.float32(0),), ops="MATRIX_DIAG", open=BATCH),
    call("MatrixDiag", f32(2, 3), label="_above", after=(np.float32(7),), k=(1, 1)),
    call("MatrixDiag", f32(2, 2, 3), label="_band", after=(np.float32(0),), k=(-1, 0)),
    call("MatrixDiagPart", f32(2, 3, 4), after=(np.float32(0),), open=BATCH),
    call("MatrixDiagPart", f32(3, 4), label="_band", after=(np.float32(5),), k=(-1, 1)),
    call("MatrixSetDiag", f32(2, 3, 4), f32(2, 3), ops="MATRIX_SET_DIAG", open={0: (0,), 1: (0,)}),
    call("MatrixSetDiag", f32(2, 3, 4), f32(2, 2, 3, seed=9), label="_band", k=(0, 1)),
    call("MatrixBandPart", f32(2, 3, 4), after=(np.int32(1), np.int32(0)), ops="SELECT_V2", open=BATCH),
    call("Cross", f32(4, 3), f32(4, 3, seed=5)),
    *(call(name, np.sort(ints(2, 6), -1), ints(2, 4, seed=6)) for name in ("LowerBound", "UpperBound")),
    case(
        "bucketize", lambda x: registry.get("UpperBound")(np.float32([[-1, 0, 0.5, 2]]), x), f32(1, 9), ops="BUCKETIZE"
    ),
]

COMPLEX = (f32(2, 6) + 1j * f32(2, 6, seed=5)).astype(np.complex64)
SPECTRAL = [
    call("Real", COMPLEX, ops="REAL"),
    call("Imag", COMPLEX, ops="IMAG"),
    call("ComplexAbs", COMPLEX, ops="COMPLEX_ABS"),
    call("Complex", f32(2, 3), f32(2, 3, seed=4), ops="PACK BITCAST"),
    call("Conj", COMPLEX),
    call("Angle", COMPLEX),
    call("RFFT2D", f32(2, 5, 8), after=(np.int32([4, 8]),), ops="RFFT2D", open=BATCH),
    call("RFFT", f32(2, 10), after=(np.int32([16]),), ops="EXPAND_DIMS RFFT2D SQUEEZE", open=BATCH),
    call("RFFT", f32(3, 10), label="_of_10", after=(np.int32([10]),), open=BATCH),
    call("RFFT", f32(7), label="_of_9", after=(np.int32([9]),)),
    call("FFT", COMPLEX),
    call("IFFT", COMPLEX),
    call("IRFFT", COMPLEX, after=(np.int32([10]),)),
    call("IRFFT", COMPLEX, label="_odd", after=(np.int32([7]),)),
]


def _conv3d(label: str, x: np.ndarray = VOLUME, **attrs: Any) -> Case:
    attrs = {"strides": [1] * 5, "padding": "SAME"} | attrs
    return call("Conv3D", x, label=label, after=(f32(2, 3, 2, 3, 4),), **attrs)


_pool = {"ksize": [1, 2, 3, 2, 1], "strides": [1, 2, 2, 1, 1]}
VOLUMES = [
    _conv3d("", ops="CONV_3D", open=BATCH),
    _conv3d("_valid", strides=[1, 2, 1, 2, 1], padding="VALID", ops="CONV_3D"),
    _conv3d(
        "_ncdhw",
        np.ascontiguousarray(VOLUME.transpose(0, 4, 1, 2, 3)),
        data_format="NCDHW",
        ops="TRANSPOSE CONV_3D TRANSPOSE",
    ),
    case(
        "conv3d_transpose",
        lambda x: ow.nn.conv3d_transpose(x, f32(2, 3, 3, 5, 3), [2, 10, 12, 14, 5], 2),
        VOLUME,
        ops="CONV_3D_TRANSPOSE",
    ),
    *(
        call(f"{kind}Pool3D", VOLUME, label=f"_{padding}", padding=padding, **_pool, open=BATCH)
        for kind in ("Avg", "Max")
        for padding in ("SAME", "VALID")
    ),
]

SEQUENCES = [
    call(
        "ReverseSequence",
        f32(3, 5, 2),
        np.int32([2, 5, 0]),
        seq_axis=1,
        ops="REVERSE_SEQUENCE",
        open={0: (0,), 1: (0,)},
    ),
    call("SequenceMask", ints(2, 3, low=0, high=5), label="_open"),
    call("SequenceMask", np.int64([1, 3, 0]), maxlen=4, out_dtype="float32"),
    call("Frame", f32(2, 11), after=(np.int32(4), np.int32(3)), ops="GATHER"),
    call("Frame", f32(2, 11), label="_padded", after=(np.int32(4), np.int32(3), np.float32(9))),
    call("OverlapAndAdd", f32(2, 5, 4), after=(np.int32(3),)),
    call("ShiftByOne", f32(2, 3), axis=1),
    call("ShiftByOne", f32(2, 3), label="_back", axis=0, reverse=True),
    *(
        call("Cumprod", f32(2, 7), label=f"_{e}_{r}", axis=1, exclusive=e, reverse=r)
        for e in (False, True)
        for r in (False, True)
    ),
    case("linspace", lambda a, b: ow.linspace(a, b, 5), np.float32(-1), np.float32(3)),
    call("InTopK", np.int32([1, 0, 2, 7]), f32(4, 5), after=(np.int32(2),)),
    call("UnravelIndex", ints(5, low=0, high=23), after=(np.int32([2, 3, 4]),)),
]


def grad(
    name: str,
    *inputs: np.ndarray,
    after: tuple[Any, ...] = (),
    before: tuple[Any, ...] = (),
    label: str = "",
    **attrs: Any,
) -> Case:
    op = registry.get(name)
    more = {k: attrs.pop(k) for k in ("open", "ops", "rtol") if k in attrs}
    return case(f"{name}{label}", lambda *t: op(*before, *t, *after, **attrs), *inputs, **more)


def _filter_grad(label: str, x: np.ndarray, out: tuple[int, ...], **attrs: Any) -> Case:
    op, attrs = registry.get("Conv2DBackpropFilter"), {"strides": [1, 1, 1, 1], "padding": "SAME"} | attrs
    return case(f"Conv2DBackpropFilter{label}", lambda a, dy: op(a, np.int32([3, 2, 4, 5]), dy, **attrs), x, f32(*out))


def _depthwise(kind: str, label: str, *inputs: np.ndarray, sizes: list[int], **attrs: Any) -> Case:
    op = registry.get(f"DepthwiseConv2dNativeBackprop{kind}")
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"} | attrs

    def function(a: Any, dy: Any) -> Any:
        return op(a, np.int32(sizes), dy, **attrs) if kind == "Filter" else op(np.int32(sizes), a, dy, **attrs)

    return case(f"{op.name}{label}", function, *inputs)


def max_pool_grad(x: Any, dy: Any, **attrs: Any) -> Any:
    y = registry.get("MaxPool")(x, **attrs)
    return registry.get("MaxPoolGrad")(x, y, dy, **attrs)


_windows = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1]}
ONE = f32(4, 3)


def _training_step(x: Any, labels: Any) -> Any:
    """The gradients of a small network: what on-device training converts."""
    kernel, dense = ow.constant(f32(3, 3, 1, 4) / 3), ow.constant(f32(4 * 16, 3) / 8)
    with ow.GradientTape() as tape:
        tape.watch([kernel, dense])
        h = ow.nn.relu(ow.nn.conv2d(x, kernel, 1, "SAME"))
        h = ow.nn.max_pool2d(h, 2, 2, "VALID")
        logits = ow.matmul(ow.reshape(h, [-1, 4 * 16]), dense)
        loss = ow.reduce_mean(ow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    return [loss, *tape.gradient(loss, [kernel, dense])]


def _batch_norm(x: Any, **attrs: Any) -> Any:
    return ow.nn.fused_batch_norm(x, pos(4), f32(4), **attrs)[:3]


TRAINING = [
    call("SoftmaxCrossEntropyWithLogits", np.abs(ONE), f32(4, 3, seed=8), ops="LOG_SOFTMAX MUL SUM NEG"),
    call("SparseSoftmaxCrossEntropyWithLogits", np.int32([2, 0, 1, 1]), ONE),
    call("SparseSoftmaxCrossEntropyWithLogits", np.int64([[2, 0], [1, 1]]), f32(2, 2, 3), label="_rank_3"),
    call("BiasAddGrad", IMAGE, ops="SUM", open=BATCH),
    call("BiasAddGrad", FLIPPED, label="_nchw", data_format="NCHW"),
    grad("TileGrad", f32(4, 3), after=(np.int32([2, 1]), np.int32([2, 3]))),
    *(
        grad("MirrorPadGrad", f32(6, 7), after=(np.int32([[2, 1], [1, 2]]),), label=f"_{mode}", mode=mode)
        for mode in ("REFLECT", "SYMMETRIC")
    ),
    grad(
        "StridedSliceGrad", f32(2, 2), before=(np.int32([5, 6]), np.int32([1, 5]), np.int32([4, 0]), np.int32([2, -3]))
    ),
    case("gradient_of_slices", lambda x: slice_gradient(x), f32(3, 2, 4)),
    _filter_grad("", IMAGE, (2, 8, 7, 5)),
    _filter_grad("_valid", IMAGE, (2, 3, 6, 5), strides=[1, 2, 1, 1], padding="VALID"),
    _filter_grad("_dilated", IMAGE, (2, 4, 5, 5), dilations=[1, 2, 2, 1], padding="VALID"),
    _filter_grad("_stride", IMAGE, (2, 4, 4, 5), strides=[1, 2, 2, 1]),
    _filter_grad("_nchw", FLIPPED, (2, 5, 8, 7), data_format="NCHW"),
    _depthwise("Filter", "", IMAGE, f32(2, 8, 7, 8), sizes=[3, 3, 4, 2]),
    _depthwise("Filter", "_stride", IMAGE, f32(2, 3, 3, 8), sizes=[3, 3, 4, 2], strides=[1, 2, 2, 1], padding="VALID"),
    _depthwise("Input", "", f32(3, 3, 4, 2), f32(2, 8, 7, 8), sizes=[2, 8, 7, 4]),
    _depthwise("Input", "_stride", f32(3, 3, 4, 2), f32(2, 4, 4, 8), sizes=[2, 8, 7, 4], strides=[1, 2, 2, 1]),
    *(
        grad(
            "AvgPoolGrad",
            f32(2, *out, 4),
            before=(np.int32([2, 8, 7, 4]),),
            label=f"_{padding}",
            padding=padding,
            **_windows,
        )
        for padding, out in (("SAME", (4, 4)), ("VALID", (3, 3)))
    ),
    *(
        case(
            f"MaxPoolGrad_{padding}",
            lambda x, dy, padding=padding: max_pool_grad(x, dy, padding=padding, **_windows),
            np.round(IMAGE),
            f32(2, *out, 4),
        )
        for padding, out in (("SAME", (4, 4)), ("VALID", (3, 3)))
    ),
    case("batch_norm_training", lambda x: _batch_norm(x, is_training=True), IMAGE),
    case("batch_norm_nchw", lambda x: _batch_norm(x, is_training=True, data_format="NCHW"), FLIPPED),
    case(
        "batch_norm_given", lambda x, m, v: _batch_norm(x, mean=m, variance=v, is_training=False), IMAGE, f32(4), pos(4)
    ),
    case("training_step", _training_step, f32(3, 8, 8, 1), np.int32([2, 0, 1])),
    case("assertions_go", lambda x: checked(x), f32(3), ops="ADD"),
]


def slice_gradient(x: Any) -> Any:
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = x[1:, ..., 0] * 2.0 + ow.reduce_sum(x[::-2, 1, 3])
    return tape.gradient(y, x)


def checked(x: Any) -> Any:
    ow.debugging.assert_less(x, 9.0)
    return x + 1.0


MATH = [
    case("asinh", ow.math.asinh, np.float32([-1e20, -3, -1e-4, 0, 1e-6, 0.5, 9, 1e12, 1e38])),
    case("acosh", ow.math.acosh, np.float32([1, 1.0001, 1.5, 9, 1e12, 1e38])),
    case("atanh", ow.math.atanh, np.float32([-0.99, -0.5, -1e-6, 0, 1e-4, 0.9])),
    case(
        "slice_update",
        lambda x, v: registry.get("TensorStridedSliceUpdate")(x, [1, 0], [3, 2], [1, 1], v),
        f32(4, 3),
        f32(2, 2),
        ops="DYNAMIC_UPDATE_SLICE",
    ),
    case(
        "slice_update_row",
        lambda x: registry.get("TensorStridedSliceUpdate")(x, [-1], [0], [1], np.float32(7), shrink_axis_mask=1),
        f32(4, 3),
    ),
    case("logical_bools", lambda x: ow.logical_and(x, x), bools(3)),
    case(
        "slice_update_computed",
        lambda x, v, i: registry.get("TensorStridedSliceUpdate")(x, i, i + np.int32([2, 2]), [1, 1], v),
        np.arange(12, dtype=np.float32).reshape(4, 3),
        -np.ones((2, 2), np.float32),
        np.int32([2, 1]),
        ops="DYNAMIC_UPDATE_SLICE",
    ),
]


def words(*values: bytes) -> np.ndarray:
    result = np.empty(len(values), object)
    result[:] = values
    return result


KEYS, NUMBERS = words(b"a", b"bc", b"d", b"a"), np.int64([5, 6, 7, 8])
TABLES = [
    call(
        "LookupTableFind",
        words(b"bc", b"z", b"", b"a"),
        after=(KEYS, NUMBERS, np.int64(-1)),
        ops="HASHTABLE HASHTABLE_IMPORT HASHTABLE_FIND",
    ),
    call(
        "LookupTableFind",
        words(b"bc", b"z", b"", b"a"),
        label="_of_floats",
        after=(KEYS, np.float32([5, 6, 7, 8]), np.float32(-1)),
    ),
    call("LookupTableFind", np.int64([6, 1, 8]), label="_of_words", after=(NUMBERS, KEYS, words(b"?")[0])),
    call("LookupTableFind", np.int32([6, 1, 8]), label="_narrow", after=(np.int32(NUMBERS), KEYS, words(b"?")[0])),
]

MORE = [
    *TABLES,
    *IMAGES,
    *BOXES,
    *BITS,
    *SEGMENTS,
    *SCATTERING,
    *MATRICES,
    *SPECTRAL,
    *VOLUMES,
    *SEQUENCES,
    *TRAINING,
    *MATH,
]
