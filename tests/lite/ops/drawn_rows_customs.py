"""Rows of the table operator x type: shipped custom operators that an official run time has, too.

Lives here: these rows.  Not here: those without an official kernel (tests/lite/customs/), the kit (drawn.py).
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from drawn import Draw, Drawn, Row, T, const, plain

from opwright.lite.format.flexbuffers import encode_options


def _detected(d: Draw, regular: bool, most: int) -> Drawn:
    """A detector's outputs on a grid of anchors; scores of few values, so that many are equal."""
    n, classes, background = d.size(1, 30), d.size(1, 4 * most), int(d.rng.integers(2))
    anchors = np.concatenate([d.rng.uniform(0.2, 0.8, (n, 2)), d.rng.uniform(0.1, 0.4, (n, 2))], 1).astype(np.float32)
    options = {
        "max_detections": d.size(1, 12),
        "max_classes_per_detection": d.size(1, most),
        "num_classes": classes,
        "use_regular_nms": regular,
        "nms_score_threshold": float(d.one(0.0, 0.3, 0.5, 1.1)),
        "nms_iou_threshold": float(d.one(0.05, 0.5, 0.6, 1.0)),
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
        "_output_quantized": True,
        "_support_output_type_float_in_quantized_op": True,
    }
    if d.one(True, False):
        options["detections_per_class"] = d.size(1, 20)
    depth = classes + background
    extra = d.one(0, 0, 3)
    if d.kind == "UINT8":
        bytes_ = np.round(anchors * 255).astype(np.uint8)
        tensors = [
            T("UINT8", (1, n, 4 + extra), 0.05, 128, values=d.integers("UINT8", (1, n, 4 + extra))),
            T("UINT8", (1, n, depth), 1 / 16, 0, values=d.rng.integers(0, 17, (1, n, depth)).astype(np.uint8)),
            T("UINT8", (n, 4), 1 / 255, 0, values=bytes_, constant=True),
        ]
        tensors[0].values[..., 2:4] = d.rng.integers(100, 150, (1, n, 2))
    else:
        scores = d.rng.uniform(0, 1, (1, n, depth)) if d.one(True, False) else d.rng.integers(0, 5, (1, n, depth)) / 4
        tensors = [
            T("FLOAT32", (1, n, 4 + extra), values=d.rng.normal(0, 1, (1, n, 4 + extra)).astype(np.float32)),
            T("FLOAT32", (1, n, depth), values=scores.astype(np.float32)),
            T("FLOAT32", (n, 4), values=anchors, constant=True),
        ]
        if d.one(True, False, False):  # scores may be quantised alone
            tensors[1] = T("UINT8", (1, n, depth), 1 / 16, 0, values=d.integers("UINT8", (1, n, depth)) % 17)
    kinds = min(options["max_classes_per_detection"], classes)

    def filled(answers: list[np.ndarray]) -> list[np.ndarray]:
        """The rows of what was detected, or what is 0 beyond; the others hold what was in their memory."""
        *lists, count = answers
        if regular:
            return [*(a[:, : options["max_detections"]] for a in lists), count]
        rows = [a.reshape(options["max_detections"], -1, *a.shape[2:])[: int(count[0]), :kinds] for a in lists]
        return [*rows, count]

    outputs = [plain("FLOAT32") for _ in range(4)]
    return Drawn(tensors, outputs, custom=encode_options(options), defined=filled)


def fast(d: Draw) -> Drawn:
    return _detected(d, False, 2)


def several(d: Draw) -> Drawn:
    return _detected(d, False, 5)


def regular(d: Draw) -> Drawn:
    return _detected(d, True, 2)


def spectrogram(d: Draw) -> Drawn:
    samples, channels = d.size(0, 300), d.size(1, 3)
    x = T("FLOAT32", (samples, channels), values=d.rng.normal(0, 1, (samples, channels)).astype(np.float32))
    options = {"window_size": d.size(2, 70), "stride": d.size(1, 90), "magnitude_squared": bool(d.rng.integers(2))}
    return Drawn([x], [plain("FLOAT32")], custom=encode_options(options))


def mfcc(d: Draw) -> Drawn:
    bins, bands, rate = d.size(60, 300), d.size(1, 40), d.one(8000, 16000, 44100)
    x = T("FLOAT32", (d.size(1, 2), d.size(0, 3), bins), values=None)
    x.values = (d.rng.normal(0, 3, x.shape) ** 2).astype(np.float32)
    low = d.one(0, 20, 300)
    options = {
        "upper_frequency_limit": d.one(1000.0, 3999.5, 4000.0, 9000.0),
        "lower_frequency_limit": float(low),
        "filterbank_channel_count": bands,
        "dct_coefficient_count": d.size(1, bands),
    }
    return Drawn([x, const(rate)], [plain("FLOAT32")], custom=encode_options(options))


def verified(d: Draw) -> Drawn:
    shape = d.shape(d.one(0, 1, 3))
    custom = encode_options({"tolerance": d.one(0.0, 0.05, 300.0), "log_if_failed": bool(d.rng.integers(2))})
    if d.kind == "FLOAT16":
        x = d.t(*shape)
        custom = encode_options({"tolerance": 0.0, "log_if_failed": False})
        return Drawn([x, d.t(*shape, kind="FLOAT32")], [plain("FLOAT32")], custom=custom)
    x = d.x(*shape, scale=0.02)
    if d.kind == "INT16":
        x.scale = 1e-4
    real = (x.values.astype(np.float32) - x.zero) * np.float32(x.scale) + d.rng.normal(0, 0.1, shape)
    reference = T("FLOAT32", shape, values=real.astype(np.float32))
    if d.kind == "INT16":
        custom = encode_options({"tolerance": 1e5, "log_if_failed": True})
    return Drawn([x, reference], [plain("FLOAT32")], custom=custom)


def rotated(d: Draw) -> Drawn:
    n = d.one(2, 4, 16, 64, 128, 256)
    shape = (*d.shape(d.one(1, 2)), n * d.size(1, 3))
    custom = encode_options({"hadamard_size": n, "random_binary_vector": [1] * n})
    return Drawn([d.t(*shape)], [T("FLOAT32", shape)], custom=custom)


def attended(d: Draw) -> Drawn:
    """One query, or one head of keys: the official kernel mixes up queries and keys where there are several of each."""
    heads = d.size(1, 3)
    groups = d.one(1, 1, 2, 3)
    queries, keys, size = d.size(1, 4) if heads * groups == 1 or heads == 1 else 1, d.size(1, 6), d.size(1, 8)
    q, k = (1, queries, heads * groups, size), (1, keys, heads, size)
    mask = d.one((1, 1, queries, keys), (1, heads * groups, queries, keys), (1, 1, 1, keys))
    tensors = [d.t(*shape, low=-2, high=2) for shape in (q, k, k, mask)]
    custom = encode_options({"scale": d.one(0.0, 0.5, -1.0)})
    return Drawn(tensors, [T("FLOAT32", q)], custom=custom)


def external_cache(d: Draw) -> Drawn:
    entries, heads, size, n = d.size(2, 8), d.size(1, 3), d.size(1, 4), d.size(1, 4)
    at = np.sort(d.rng.integers(0, entries, n)).astype(np.int32)
    if n > 2 and d.one(True, False):
        at[-1] = 0  # the list ends before it, or all positions are 0
    cache, part = (1, entries, heads, size), (1, n, heads, size)
    tensors = [d.t(*cache), d.t(*cache), T("INT32", (n,), values=at), d.t(*part), d.t(*part)]
    return Drawn(tensors, [T("FLOAT32", cache), T("FLOAT32", cache)], custom=b"")


def kept_cache(d: Draw) -> Drawn:
    """Several runs at one position, which may be beyond what the cache holds at first."""
    entries, heads, size = d.size(3, 8), d.size(1, 3), d.size(1, 4)
    n = d.size(1, 3)
    first = d.size(0, 2 * entries - n)  # beyond, the official kernel writes outside its memory
    at = (first + np.arange(n)).astype(np.int64)
    part = (1, n, heads, size)
    custom = encode_options({"kv_cache_max": entries, "num_layers": 3, "layer_index": d.size(0, 2)})
    tensors = [T("INT64", (n,), values=at), d.t(*part), d.t(*part)]
    return Drawn(tensors, [T("FLOAT32", (1, entries, heads, size)) for _ in range(2)], custom=custom, runs=3)


def spread(d: Draw) -> Drawn:
    x, kernel = (d.size(1, 2), d.size(1, 5), d.size(1, 5), d.size(1, 3)), (d.size(1, 4), d.size(1, 4))
    o, same = d.size(1, 3), d.one(1, 2)
    strides = d.size(1, min(3, kernel[1])), d.size(1, min(3, kernel[0]))  # across, down; XNNPACK takes no holes
    out = []
    for size, k, s in zip(x[1:3], kernel, strides[::-1]):
        spare = max(0, k - (size - 1) % s - 1) if same == 1 else 0
        out.append(s * (size - 1) + k - spare)
    tensors = [d.t(*x), d.t(o, *kernel, x[3], constant=True), d.t(o, constant=True)]
    return Drawn(tensors, [T("FLOAT32", (x[0], *out, o))], custom=struct.pack("<3i", same, *strides))


ROWS: list[Any] = [
    Row("TFLite_Detection_PostProcess", ("FLOAT32", "UINT8"), fast, 1e-7, label="TFLite_Detection_PostProcess, fast"),
    Row(
        "TFLite_Detection_PostProcess",
        ("FLOAT32", "UINT8"),
        several,
        1e-7,
        label="TFLite_Detection_PostProcess, several classes",
    ),
    Row(
        "TFLite_Detection_PostProcess",
        ("FLOAT32", "UINT8"),
        regular,
        1e-7,
        label="TFLite_Detection_PostProcess, regular",
    ),
    Row("AudioSpectrogram", ("FLOAT32",), spectrogram, 1e-7),
    Row("Mfcc", ("FLOAT32",), mfcc, 2e-7),
    Row("NumericVerify", ("INT8", "UINT8", "INT16", "FLOAT16"), verified),
    Row("aeq.hadamard_rotation", ("FLOAT32",), rotated, path="OPT"),
    Row("odml.scaled_dot_product_attention", ("FLOAT32",), attended, 1e-6, path="GENAI"),
    Row("odml.update_external_kv_cache", ("FLOAT32",), external_cache, path="GENAI"),
    Row("odml.update_kv_cache", ("FLOAT32",), kept_cache, path="GENAI"),
    Row("Convolution2DTransposeBias", ("FLOAT32",), spread, 1e-6, path="AUTO"),
]
