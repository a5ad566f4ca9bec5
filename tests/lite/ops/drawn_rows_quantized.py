"""Rows of operators on quantised tensors (see drawn.Row)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from drawn import Draw, Drawn, Row, T, const, like, plain

ALL = ("INT8", "UINT8", "INT16")
BYTES = ("INT8", "UINT8")
SIGNED = ("INT8", "INT16")


def _slides(d: Draw) -> dict[str, object]:
    return {
        "padding": d.one("SAME", "VALID"),
        "stride_h": d.size(1, 2),
        "stride_w": d.size(1, 2),
        "fused_activation_function": d.activation(),
    }


def _dilated(d: Draw) -> dict[str, object]:
    return _slides(d) | {"dilation_h_factor": d.size(1, 2), "dilation_w_factor": d.size(1, 2)}


def _image(d: Draw, channels: int) -> T:
    return d.x(d.size(1, 2), d.size(5, 9), d.size(5, 9), channels)


def conv(d: Draw) -> Drawn:
    groups = d.one(1, 1, 2) if d.kind == "INT8" else 1
    depth, out = d.size(1, 4), d.size(1, 3) * groups
    x = _image(d, depth * groups)
    w = d.w(out, d.size(1, 3), d.size(1, 3), depth, axis=d.one(0, None))
    return Drawn([x, w, d.bias(x, w, out)], [d.y(6 if d.kind != "INT16" else 1)], _dilated(d))


def conv_narrow_bias(d: Draw) -> Drawn:
    x = _image(d, 3)
    w = d.w(4, 3, 3, 3, axis=0)
    return Drawn([x, w, d.bias(x, w, 4, "INT32")], [d.y(1)], {**_dilated(d), "quantized_bias_type": "INT32"})


def depthwise(d: Draw) -> Drawn:
    channels, times = d.size(1, 4), d.size(1, 2)
    x, out = _image(d, channels), channels * times
    w = d.w(1, d.size(1, 3), d.size(1, 3), out, axis=3 if d.kind != "UINT8" else None)
    return Drawn([x, w, d.bias(x, w, out)], [d.y(4)], {**_dilated(d), "depth_multiplier": times})


def transpose_conv(d: Draw) -> Drawn:
    n, h, w_, stride, out, c = d.size(1, 2), d.size(2, 4), d.size(2, 4), d.size(1, 2), d.size(1, 3), d.size(1, 3)
    x, w = d.x(n, h, w_, c), d.w(out, 3, 3, c, axis=d.one(0, None))
    bias = d.one(d.bias(x, w, out), None)
    inputs = [const(n, h * stride, w_ * stride, out), w, x, *([bias] if bias else [])]
    return Drawn(inputs, [d.y(3)], {"padding": "SAME", "stride_h": stride, "stride_w": stride})


def dense(d: Draw) -> Drawn:
    rows, k, n = d.size(1, 5), d.size(1, 40), d.size(1, 6)
    x, w = d.x(rows, k), d.w(n, k, axis=d.one(0, None))
    options = {"fused_activation_function": d.activation(), "keep_num_dims": d.one(True, False)}
    return Drawn([x, w, d.one(d.bias(x, w, n), None)], [d.y(4)], options)


def _packed(kind: str) -> Callable[[Draw], Drawn]:
    """Weights below a byte, of 14 to 16 columns, so that rows do not end where bytes do."""

    def draw(d: Draw) -> Drawn:
        k = d.one(14, 15, 16)
        x, w = d.x(3, k), d.w(5, k, kind=kind, axis=d.one(0, None))
        return Drawn([x, w, d.bias(x, w, 5)], [d.y(0.2)])

    return draw


def conv_int4(d: Draw) -> Drawn:
    x, w = d.x(1, 5, 6, 3), d.w(3, 2, 3, 3, kind="INT4", axis=0)
    return Drawn([x, w, d.bias(x, w, 3)], [d.y(1)], _dilated(d))


def depthwise_int4(d: Draw) -> Drawn:
    x, w = d.x(1, 5, 6, 3), d.w(1, 2, 3, 3, kind="INT4", axis=3)
    return Drawn([x, w, d.bias(x, w, 3)], [d.y(1)], {**_dilated(d), "depth_multiplier": 1})


def wide_output(d: Draw) -> Drawn:
    x, w = d.x(3, 9), d.w(5, 9)
    return Drawn([x, w, d.bias(x, w, 5)], [d.y(30, "INT16")])


def batch_matmul(d: Draw) -> Drawn:
    b, m, k, n = d.size(1, 3), d.size(1, 4), d.size(1, 30), d.size(1, 4)
    adj = d.one(False, True)
    return Drawn([d.x(b, m, k), d.x(*((b, n, k) if adj else (b, k, n)))], [d.y(5)], {"adj_y": adj})


def _two(d: Draw) -> tuple[T, T]:
    shape = d.shape(3)
    return d.x(*shape), d.x(*d.one(shape, shape[-1:], (1, *shape[1:])))


def summed(d: Draw) -> Drawn:
    x, y = _two(d)
    spread = max(x.scale, y.scale) * (d.high - d.low)
    return Drawn([x, y], [d.y(spread)], {"fused_activation_function": d.activation(), "pot_scale_int16": False})


def summed_by_shifts(d: Draw) -> Drawn:
    shape, power, apart = d.shape(3), d.size(6, 12), d.size(0, 3)
    x, y = d.x(*shape, scale=2.0**-power), d.x(*shape, scale=2.0 ** -(power + apart))
    return Drawn(d.one([x, y], [y, x]), [T("INT16", (), 2.0**-power)], {"fused_activation_function": d.activation()})


def product(d: Draw) -> Drawn:
    x, y = _two(d)
    spread = x.scale * y.scale * (d.high - d.low) ** 2 / 4
    return Drawn([x, y], [d.y(spread)], {"fused_activation_function": d.activation()})


def quotient(d: Draw) -> Drawn:
    """Scales for which the official kernel does not shift by more than 31 bits, but for x = 0."""
    x, y = _two(d)
    y.zero, y.scale = int(d.rng.integers(0, 100)), x.scale * float(d.rng.uniform(0.5, 1))
    y.values = np.where(y.values == y.zero, y.zero + 1, y.values).astype(y.values.dtype)
    return Drawn([x, y], [d.y(1)], {"fused_activation_function": d.activation()})


def difference(d: Draw) -> Drawn:
    x, y = _two(d)
    return Drawn([x, y], [d.y((max(x.scale, y.scale) * 128) ** 2)])


def compared(d: Draw) -> Drawn:
    x = d.x(200)
    y = d.x(200, scale=x.scale * d.one(1.0, 2.0, d.rng.uniform(0.5, 2)), zero=d.one(x.zero, None))
    same = np.round((x.values.astype(np.int64) - x.zero) * (x.scale / y.scale)) + y.zero  # nearly equal reals
    y.values = np.where(d.rng.integers(0, 2, 200), y.values, np.clip(same, d.low, d.high)).astype(y.values.dtype)
    return Drawn([x, y], [plain("BOOL")])


def extreme(d: Draw) -> Drawn:
    x, y = _two(d)
    y.scale, y.zero = x.scale, x.zero
    return Drawn([x, y], [like(x)])


def pool(d: Draw) -> Drawn:
    x = _image(d, d.size(1, 4))
    return Drawn([x], [like(x)], {**_slides(d), "filter_height": d.size(1, 4), "filter_width": d.size(1, 4)})


def _unary(spread: float, **options: object) -> Callable[[Draw], Drawn]:
    return lambda d: Drawn([d.x(60, scale=spread * 2 / (d.high - d.low))], [d.y(spread)], dict(options))


def _positive(low: float, high: float) -> Callable[[Draw], Drawn]:
    def draw(d: Draw) -> Drawn:
        x = d.x(60, scale=high / (d.high - d.low), zero=d.low if d.kind != "INT16" else 0)
        x.values = np.abs(x.values // 2 + 1) if d.kind == "INT16" else x.values
        return Drawn([x], [d.y(low)])

    return draw


def _fixed(**outputs: tuple[float, int]) -> Callable[[Draw], Drawn]:
    """An output whose parameters the operator fixes, by type."""

    def draw(d: Draw) -> Drawn:
        x = d.x(d.size(1, 4), d.size(1, 30), scale=float(np.float32(d.rng.uniform(0.5, 12) / (d.high - d.low))))
        return Drawn([x], [T(d.kind, (), *outputs[d.kind])])

    return draw


def softmax(d: Draw) -> Drawn:
    drawn = _fixed(INT8=(1 / 256, -128), UINT8=(1 / 256, 0), INT16=(1 / 32768, 0))(d)
    drawn.options["beta"] = float(np.float32(d.one(1.0, 0.5, 2.0)))
    return drawn


def leaky(d: Draw) -> Drawn:
    return Drawn([d.x(60)], [d.y(3)], {"alpha": float(np.float32(d.rng.uniform(-1, 1)))})


def prelu(d: Draw) -> Drawn:
    alpha = d.x(1, 1, 3)
    alpha.constant = True
    return Drawn([d.x(1, 3, 4, 3), alpha], [d.y(6)])


def _reduced(d: Draw) -> tuple[T, T, dict[str, object]]:
    axes = sorted(d.rng.choice(4, d.size(1, 4), replace=False).tolist())
    return d.x(*d.shape()), const(*axes), {"keep_dims": d.one(True, False)}


def mean(d: Draw) -> Drawn:
    x, axes, options = _reduced(d)
    return Drawn([x, axes], [d.y(x.scale * (d.high - d.low) / 2)], options)


def total(d: Draw) -> Drawn:
    x, axes, options = _reduced(d)
    n = float(np.prod([x.shape[a] for a in axes.values]))
    return Drawn([x, axes], [d.y(x.scale * (d.high - d.low) * np.sqrt(n))], options)


def powers(d: Draw) -> Drawn:
    x = d.x(*d.shape(3), scale=2.0 / (d.high - d.low))
    return Drawn([x, const(d.one(0, 1, 2))], [d.y(1)], {"keep_dims": d.one(True, False)})


def greatest(d: Draw) -> Drawn:
    x, axes, options = _reduced(d)
    return Drawn([x, axes], [like(x)], options)


def join(d: Draw) -> Drawn:
    axis, shape = d.size(0, 3), list(d.shape())
    x = d.x(*shape)
    shape[axis] = d.size()
    return Drawn([x, d.x(*shape, scale=x.scale, zero=x.zero)], [like(x)], {"axis": d.one(axis, axis - 4)})


def join_rescaled(d: Draw) -> Drawn:
    return Drawn([d.x(2, 3), d.x(2, 4)], [d.y(10)], {"axis": 1})


def pack(d: Draw) -> Drawn:
    x = d.x(*d.shape(3))
    return Drawn([x, d.x(*x.shape, scale=x.scale, zero=x.zero)], [like(x)], {"axis": d.size(0, 3), "values_count": 2})


def _pads(d: Draw) -> T:
    return T("INT32", (4, 2), values=d.rng.integers(0, 3, (4, 2)).astype(np.int32), constant=True)


def pad(d: Draw) -> Drawn:
    x = d.x(*d.shape())
    return Drawn([x, _pads(d)], [like(x)])


def pad_v2(d: Draw) -> Drawn:
    x = d.x(*d.shape())
    value = d.x(1, scale=x.scale, zero=x.zero)
    value.constant = True
    return Drawn([x, _pads(d), value], [like(x)])


def to_batch(d: Draw) -> Drawn:
    x = d.x(1, 4, 6, 2)
    pads = T("INT32", (2, 2), values=np.int32([[0, 2], d.one([0, 0], [2, 2])]), constant=True)
    return Drawn([x, const(2, 2), pads], [like(x)])


def from_batch(d: Draw) -> Drawn:
    x = d.x(4, 2, 3, 2)
    crops = T("INT32", (2, 2), values=np.int32([[0, 1], [1, 0]]), constant=True)
    return Drawn([x, const(2, 2), crops], [like(x)])


def resize(d: Draw) -> Drawn:
    x = _image(d, 2)
    return Drawn(
        [x, const(d.size(1, 12), d.size(1, 12))],
        [like(x)],
        d.one({}, {"align_corners": True}, {"half_pixel_centers": True}),
    )


def _moved(*more: T, outputs: int = 1, **options: object) -> Callable[[Draw], Drawn]:
    """x [2, 3, 4, 2], and integers that say what is done with it."""

    def draw(d: Draw) -> Drawn:
        x = d.x(2, 3, 4, 2)
        return Drawn([x, *more], [like(x)] * outputs, dict(options))

    return draw


def split(d: Draw) -> Drawn:
    x = d.x(2, 3, 4, 2)
    return Drawn([const(2), x], [like(x)] * 2, {"num_splits": 2})


def split_v(d: Draw) -> Drawn:
    x = d.x(2, 3, 4, 2)
    return Drawn([x, const(1, 3), const(2)], [like(x)] * 2, {"num_splits": 2})


def chosen(d: Draw) -> Drawn:
    x = d.x(2, 3)
    c = T("BOOL", (2, 3), values=d.rng.integers(0, 2, (2, 3)).astype(bool))
    return Drawn([c, x, d.x(2, 3, scale=x.scale, zero=x.zero)], [like(x)])


def searched(d: Draw) -> Drawn:
    return Drawn([d.x(3, 9), const(1)], [plain("INT32")], {"output_type": "INT32"})


def top(d: Draw) -> Drawn:
    x = d.x(3, 9)
    return Drawn([x, T("INT32", (), values=np.int32(4), constant=True)], [like(x), plain("INT32")])


def quantize(d: Draw) -> Drawn:
    return Drawn([d.real(90)], [d.y(4)])


def _requantize(kind: str) -> Callable[[Draw], Drawn]:
    return lambda d: Drawn([d.x(90)], [d.y(d.rng.uniform(0.5, 4), kind)])


def dequantize(d: Draw) -> Drawn:
    return Drawn([d.x(90)], [plain("FLOAT32")])


def dequantize_by_channel(d: Draw) -> Drawn:
    w = d.w(3, 4, 5, axis=1)
    return Drawn([w], [plain("FLOAT32")])


def _real_image(d: Draw, channels: int) -> T:
    return d.real(d.size(1, 2), d.size(5, 8), d.size(5, 8), channels)


def _real_bias(d: Draw, n: int) -> T:
    bias = d.real(n)
    bias.constant = True
    return bias


def hybrid_conv(d: Draw) -> Drawn:
    w = d.w(4, 3, 3, 3, axis=d.one(0, None))
    return Drawn([_real_image(d, 3), w, _real_bias(d, 4)], [plain("FLOAT32")], _dilated(d))


def hybrid_depthwise(d: Draw) -> Drawn:
    w = d.w(1, 3, 3, 6, axis=3)
    return Drawn([_real_image(d, 3), w, _real_bias(d, 6)], [plain("FLOAT32")], {**_dilated(d), "depth_multiplier": 2})


def hybrid_dense(d: Draw) -> Drawn:
    k, n = d.size(1, 40), d.size(1, 6)
    options = {"fused_activation_function": d.activation(), "asymmetric_quantize_inputs": d.one(True, False)}
    x, w = d.real(d.size(1, 4), k, spread=d.one(0.0, 1.0, 9.0)), d.w(n, k, axis=d.one(0, None))
    return Drawn([x, w, d.one(_real_bias(d, n), None)], [plain("FLOAT32")], options)


def _hybrid_packed(kind: str) -> Callable[[Draw], Drawn]:
    def draw(d: Draw) -> Drawn:
        w = d.w(5, d.one(7, 8, 16), kind=kind, axis=0)
        return Drawn(
            [d.real(3, w.shape[1]), w, _real_bias(d, 5)],
            [plain("FLOAT32")],
            {"asymmetric_quantize_inputs": d.one(True, False)},
        )

    return draw


def hybrid_batch_matmul(d: Draw) -> Drawn:
    adj = d.one(True, False)
    w = d.w(*((2, 5, 20) if adj else (2, 20, 5)))
    options = {"adj_y": adj, "asymmetric_quantize_inputs": d.one(True, False)}
    return Drawn([d.real(2, 3, 20), w], [plain("FLOAT32")], options)


def hybrid_lookup(d: Draw) -> Drawn:
    return Drawn([const(3, 0, 3, 5), d.w(6, 4, axis=d.one(0, None))], [plain("FLOAT32")])


def fake(d: Draw) -> Drawn:
    low, high = -float(d.rng.uniform(0, 5)), float(d.rng.uniform(0.1, 5))
    return Drawn([d.real(90)], [plain("FLOAT32")], {"min": low, "max": high, "num_bits": d.one(8, 4, 16)})


def widen(d: Draw) -> Drawn:
    values = d.rng.normal(0, 9, 60).astype(np.float16)
    return Drawn([T("FLOAT16", (60,), values=values, constant=d.one(True, False))], [plain("FLOAT32")])


FLOATS = 2e-6  # sums of a few exact products in another order
LOGISTIC = _fixed(INT8=(1 / 256, -128), UINT8=(1 / 256, 0), INT16=(1 / 32768, 0))
TANH = _fixed(INT8=(1 / 128, 0), UINT8=(1 / 128, 128), INT16=(1 / 32768, 0))

ROWS = [
    Row("CONV_2D", ALL, conv),
    Row("CONV_2D", ("INT16",), conv_narrow_bias, label="CONV_2D int32 bias"),
    Row("DEPTHWISE_CONV_2D", ALL, depthwise),
    Row("TRANSPOSE_CONV", ALL, transpose_conv),
    Row("FULLY_CONNECTED", ALL, dense),
    Row("FULLY_CONNECTED", SIGNED, _packed("INT4"), label="FULLY_CONNECTED int4"),
    Row("FULLY_CONNECTED", ("INT8",), _packed("INT2"), label="FULLY_CONNECTED int2"),
    Row("FULLY_CONNECTED", ("UINT8",), wide_output, label="FULLY_CONNECTED to int16"),
    Row("CONV_2D", SIGNED, conv_int4, label="CONV_2D int4"),
    Row("DEPTHWISE_CONV_2D", ("INT8",), depthwise_int4, label="DEPTHWISE_CONV_2D int4"),
    Row("BATCH_MATMUL", SIGNED, batch_matmul),
    Row("ADD", ALL, summed),
    *(Row(n, ("INT16",), summed_by_shifts, label=f"{n} by shifts") for n in ("ADD", "SUB")),
    Row("SUB", ALL, summed),
    Row("MUL", ALL, product),
    Row("DIV", BYTES, quotient, within=1),
    Row("SQUARED_DIFFERENCE", ("INT8",), difference),
    *(Row(n, ALL, compared) for n in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")),
    *(Row(n, ALL, extreme) for n in ("MAXIMUM", "MINIMUM")),
    *(Row(n, ALL, pool) for n in ("AVERAGE_POOL_2D", "MAX_POOL_2D")),
    *(Row(n, ALL, _unary(8)) for n in ("RELU", "RELU6")),
    *(Row(n, BYTES, _unary(3)) for n in ("RELU_N1_TO_1", "RELU_0_TO_1")),
    Row("LEAKY_RELU", ALL, leaky),
    Row("PRELU", BYTES, prelu),
    Row("HARD_SWISH", BYTES, lambda d: Drawn([d.x(60, scale=8 / 256)], [T(d.kind, (), 4.2 / 256, d.zero())])),
    Row("ELU", ("INT8",), _unary(3), path="OPT"),
    Row("GELU", ALL, _unary(3, approximate=False)),
    Row("GELU", BYTES, _unary(3, approximate=True), label="GELU approximate"),
    Row("GELU", ("INT16",), _unary(3, approximate=True), within=1, label="GELU approximate, wide"),  # a float32 formula
    Row("LOGISTIC", ALL, LOGISTIC),
    Row("TANH", ALL, TANH),
    Row("SOFTMAX", ALL, softmax),
    Row("LOG_SOFTMAX", BYTES, _fixed(INT8=(16 / 256, 127), UINT8=(16 / 256, 255)), path="OPT"),
    Row("LOG_SOFTMAX", ("INT8",), _fixed(INT8=(16 / 256, 127)), within=1, label="LOG_SOFTMAX reference"),
    Row("L2_NORMALIZATION", BYTES, _fixed(INT8=(1 / 128, 0), UINT8=(1 / 128, 128))),
    Row("ABS", SIGNED, _unary(3)),
    Row("EXP", SIGNED, _unary(2)),
    Row("LOG", SIGNED, _positive(4, 9)),
    Row("SQRT", SIGNED, _positive(3, 9)),
    Row("RSQRT", SIGNED, _positive(4, 9)),
    Row("MEAN", ALL, mean),
    Row("SUM", ALL, total, path="OPT"),
    Row("REDUCE_PROD", SIGNED, powers),
    *(Row(n, ALL, greatest) for n in ("REDUCE_MAX", "REDUCE_MIN")),
    Row("CONCATENATION", ALL, join),
    Row("CONCATENATION", ("UINT8",), join_rescaled, label="CONCATENATION rescaled"),
    Row("PACK", ALL, pack),
    Row("PAD", ALL, pad),
    Row("PADV2", ALL, pad_v2),
    Row("SPACE_TO_BATCH_ND", ALL, to_batch),
    Row("BATCH_TO_SPACE_ND", ALL, from_batch),
    Row("RESIZE_BILINEAR", ALL, resize),
    Row("RESIZE_NEAREST_NEIGHBOR", ALL, resize),
    Row("RESHAPE", ALL, _moved(const(6, -1))),
    Row("TRANSPOSE", ALL, _moved(const(3, 0, 2, 1))),
    Row("SQUEEZE", ALL, lambda d: Drawn([x := d.x(1, 3, 1)], [like(x)])),
    Row("EXPAND_DIMS", ALL, _moved(const(1))),
    Row("SLICE", ALL, _moved(const(0, 1, 1, 0), const(2, 2, -1, 1))),
    Row("STRIDED_SLICE", ALL, _moved(const(0, 2, 0, 1), const(2, 0, 4, 2), const(1, -1, 2, 1))),
    Row("GATHER", ALL, _moved(const(2, 0), axis=1)),
    Row("GATHER_ND", ALL, lambda d: Drawn([x := d.x(4, 3), const([3], [0])], [like(x)])),
    Row("SPLIT", ALL, split),
    Row("SPLIT_V", ALL, split_v),
    Row("UNPACK", ALL, _moved(outputs=3, num=3, axis=1)),
    Row("TILE", ("INT8", "UINT8"), _moved(const(1, 2, 1, 3))),
    Row("MIRROR_PAD", ALL, lambda d: Drawn([x := d.x(3, 4), const([1, 2], [0, 3])], [like(x)], {"mode": "REFLECT"})),
    Row("REVERSE_V2", ("UINT8", "INT8", "INT16"), _moved(const(2))),
    Row("DEPTH_TO_SPACE", BYTES, lambda d: Drawn([x := d.x(1, 2, 3, 8)], [like(x)], {"block_size": 2})),
    Row("SPACE_TO_DEPTH", BYTES, lambda d: Drawn([x := d.x(1, 4, 6, 2)], [like(x)], {"block_size": 2})),
    Row("BROADCAST_TO", SIGNED, lambda d: Drawn([x := d.x(3, 1), const(2, 3, 4)], [like(x)])),
    Row("SELECT", ALL, chosen),
    Row("SELECT_V2", ALL, chosen),
    *(Row(n, BYTES, searched) for n in ("ARG_MAX", "ARG_MIN")),
    Row("TOPK_V2", ALL, top),
    Row("QUANTIZE", ALL, quantize),
    *(Row("QUANTIZE", BYTES, _requantize(k), label=f"QUANTIZE to {k.lower()}") for k in ALL),
    Row("QUANTIZE", ("INT16",), _requantize("INT8"), label="QUANTIZE int16 to int8"),
    Row("DEQUANTIZE", ALL, dequantize),
    Row("DEQUANTIZE", ("INT8",), dequantize_by_channel, label="DEQUANTIZE by channel"),
    Row("DEQUANTIZE", ("FLOAT32",), widen, label="DEQUANTIZE float16"),
    Row("FAKE_QUANT", ("FLOAT32",), fake),
    Row("CONV_2D", ("FLOAT32",), hybrid_conv, within=FLOATS, label="CONV_2D hybrid"),
    Row("DEPTHWISE_CONV_2D", ("FLOAT32",), hybrid_depthwise, within=FLOATS, label="DEPTHWISE_CONV_2D hybrid"),
    Row("FULLY_CONNECTED", ("FLOAT32",), hybrid_dense, within=FLOATS, label="FULLY_CONNECTED hybrid"),
    Row("FULLY_CONNECTED", ("FLOAT32",), _hybrid_packed("INT4"), within=FLOATS, label="FULLY_CONNECTED hybrid int4"),
    Row("FULLY_CONNECTED", ("FLOAT32",), _hybrid_packed("INT2"), within=FLOATS, label="FULLY_CONNECTED hybrid int2"),
    Row("BATCH_MATMUL", ("FLOAT32",), hybrid_batch_matmul, within=FLOATS, label="BATCH_MATMUL hybrid"),
    Row("EMBEDDING_LOOKUP", ("FLOAT32",), hybrid_lookup, label="EMBEDDING_LOOKUP hybrid"),
]
