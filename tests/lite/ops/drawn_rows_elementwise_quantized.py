"""Rows of the table operator x type: operators on single elements and reductions, of tensors with scales.

Lives here: ranks 0 to 6, broadcast; mixed types; QUANTIZE and DEQUANTIZE between all types.
Not here: the same operators on the shapes that models have (drawn_rows_quantized.py), tensors without scales
(drawn_rows_elementwise.py, drawn_rows_reduction.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from drawn import LIMITS, NUMPY, Draw, Drawn, Row, T, like, plain
from drawn_rows_elementwise import COMPARISONS, broadcast_pair, filled, shape_of
from drawn_rows_elementwise import ROWS as ELEMENTWISE
from drawn_rows_reduction import ROWS as REDUCTIONS
from drawn_rows_reduction import axes_of, filled_shape

ALL = ("INT8", "UINT8", "INT16")
BYTES = ("INT8", "UINT8")
SIGNED = ("INT8", "INT16")


def _pair(d: Draw) -> tuple[T, T]:
    x, y = broadcast_pair(d)
    return d.x(*x), d.x(*y)


def summed(d: Draw) -> Drawn:
    x, y = _pair(d)
    spread = max(x.scale, y.scale) * (d.high - d.low)
    return Drawn([x, y], [d.y(spread)], {"fused_activation_function": d.activation(), "pot_scale_int16": False})


def multiplied(d: Draw) -> Drawn:
    x, y = _pair(d)
    spread = x.scale * y.scale * (d.high - d.low) ** 2 / 4
    return Drawn([x, y], [d.y(spread)], {"fused_activation_function": d.activation()})


def narrowed(d: Draw) -> Drawn:
    """Products of int16 in 8 bits, which may have a zero point; officially of one shape, and of such scales only."""
    shape = shape_of(d)
    x, y = d.x(*shape), d.x(*shape)
    x.scale, y.scale, kind = 2.0**-15, 2.0 ** -d.size(10, 15), d.one(*BYTES)
    return Drawn([x, y], [T(kind, (), x.scale * y.scale * 2.0**23, int(d.rng.integers(*LIMITS[kind])))])


def quotient(d: Draw) -> Drawn:
    """Quotients that the official kernel does not shift by more than 31 bits."""
    x, y = _pair(d)
    y.zero, y.scale = 0 if d.kind == "INT16" else int(d.rng.integers(0, 100)), x.scale * float(d.rng.uniform(0.5, 1))
    least = 300 if d.kind == "INT16" else 1
    y.values = np.where(np.abs(y.values.astype(np.int64) - y.zero) < least, y.zero + least, y.values)
    y.values = y.values.astype(NUMPY[d.kind])
    x.values = np.where(
        np.abs(x.values.astype(np.int64) - x.zero) < least, np.clip(x.zero + least, None, d.high), x.values
    ).astype(NUMPY[d.kind])
    return Drawn([x, y], [d.y(1 if d.kind != "INT16" else 100)], {"fused_activation_function": d.activation()})


def squared(d: Draw) -> Drawn:
    x, y = _pair(d)
    return Drawn([x, y], [d.y((max(x.scale, y.scale) * 128) ** 2)])


def greater(d: Draw) -> Drawn:
    x, y = _pair(d)
    y.scale, y.zero = x.scale, x.zero
    return Drawn([x, y], [like(x)])


def compared(d: Draw) -> Drawn:
    x, y = _pair(d)
    if d.one(True, False):
        y.scale, y.zero = x.scale, x.zero
    return Drawn([x, y], [plain("BOOL")])


def raw_integers(d: Draw) -> Drawn:
    """Operators to which scales mean nothing; no divisors of 0."""
    x, y = _pair(d)
    y.values = np.where((y.values == 0) | (y.values == -1), 3, y.values).astype(y.values.dtype)
    return Drawn([x, y], [like(x)])


def negated(d: Draw) -> Drawn:
    return Drawn([d.x(*shape_of(d))], [d.y(1)])


def prelu(d: Draw) -> Drawn:
    """The alphas of int16 are int8."""
    full = shape_of(d, 4)
    shape = tuple(d.one(1, n) for n in full)[d.size(0, len(full)) :]
    x, other = d.x(*full), Draw(int(d.rng.integers(1 << 30)), "INT8" if d.kind == "INT16" else d.kind)
    alpha = other.x(*shape)
    alpha.constant = d.one(True, False)
    return Drawn([x, alpha], [d.y(x.scale * (d.high - d.low))])


def _rows(**outputs: tuple[str, float, int]) -> Callable[[Draw], Drawn]:
    """Functions of the last dimension, whose output's parameters are fixed."""

    def draw(d: Draw) -> Drawn:
        shape = (*filled_shape(d)[:4], d.size(1, 30))
        x = d.x(*shape, scale=float(np.float32(d.rng.uniform(0.5, 12) / (d.high - d.low))))
        return Drawn([x], [T(outputs[d.kind][0], (), *outputs[d.kind][1:])])

    return draw


def _softmax(**outputs: tuple[str, float, int]) -> Callable[[Draw], Drawn]:
    def draw(d: Draw) -> Drawn:
        drawn = _rows(**outputs)(d)
        drawn.options["beta"] = float(np.float32(d.one(1.0, 0.5)))
        return drawn

    return draw


def _reduced(output: Callable[[Draw, T, int], T]) -> Callable[[Draw], Drawn]:
    """Over some axes of at least one element. output: of a draw, the input and how many elements become one."""

    def draw(d: Draw) -> Drawn:
        shape = filled_shape(d)
        x, axes = d.x(*shape), axes_of(d, len(shape))
        over = {int(a) % len(shape) for a in axes.values.reshape(-1)} if shape else set()
        n = int(np.prod([shape[a] for a in over]))
        return Drawn([x, axes], [output(d, x, n)], {"keep_dims": d.one(True, False)})

    return draw


def product_of_few(d: Draw) -> Drawn:
    drawn = _reduced(lambda d, x, n: d.y(1))(d)
    drawn.inputs[0].scale = 2.0 / (d.high - d.low)
    return drawn


def _parameters(d: Draw, kind: str, n: int = 1) -> dict[str, object]:
    """Scales and zero points of a type that hold numbers up to about 5."""
    low, high = LIMITS.get(kind, (-(1 << 20), 1 << 20))
    scales = (10.0 / (high - low) * d.rng.uniform(0.7, 1.5, n)).astype(np.float32)
    symmetric = kind in ("INT16", "INT32")
    zeros = [0 if symmetric else int(d.rng.integers(low, high, endpoint=True)) for _ in range(n)]
    return {"scale": scales, "zero": np.array(zeros)}


def _quantized(to: str) -> Callable[[Draw], Drawn]:
    """Reals, some of them beyond the range."""

    def draw(d: Draw) -> Drawn:
        x = d.t(*filled_shape(d), low=-20, high=20)
        return Drawn([x], [T(to, (), **_parameters(d, to))])

    return draw


def _quantized_by_channel(to: str) -> Callable[[Draw], Drawn]:
    def draw(d: Draw) -> Drawn:
        shape = tuple(d.size(1, 4) for _ in range(d.size(1, 5)))
        axis = d.size(0, len(shape) - 1)
        parameters = _parameters(d, to, shape[axis])
        if to == "INT8":
            parameters["zero"] = np.zeros(shape[axis], int)
        return Drawn([d.t(*shape)], [T(to, shape, axis=axis, **parameters)])

    return draw


def _requantized(to: str) -> Callable[[Draw], Drawn]:
    def draw(d: Draw) -> Drawn:
        low, high = LIMITS.get(d.kind, (-(1 << 20), 1 << 20))
        x = d.t(*filled_shape(d), low=low, high=high)
        parameters = _parameters(d, d.kind)
        return Drawn([T(x.type, x.shape, values=x.values, **parameters)], [T(to, (), **_parameters(d, to))])

    return draw


def dequantized(d: Draw) -> Drawn:
    low, high = LIMITS[d.kind]
    shape = filled_shape(d)
    constant = d.kind in ("INT4", "UINT4", "INT2") or d.one(True, False)
    x = d.t(*shape, low=low, high=high, constant=constant)
    return Drawn([T(x.type, shape, values=x.values, constant=constant, **_parameters(d, d.kind))], [plain("FLOAT32")])


def dequantized_by_channel(d: Draw) -> Drawn:
    shape = tuple(d.size(1, 4) for _ in range(d.size(1, 5)))
    axis = d.size(0, len(shape) - 1)
    x = d.t(*shape, low=LIMITS[d.kind][0], high=LIMITS[d.kind][1], constant=True)
    return Drawn(
        [T(x.type, shape, values=x.values, constant=True, axis=axis, **_parameters(d, d.kind, shape[axis]))],
        [plain("FLOAT32")],
    )


def between_floats(d: Draw) -> Drawn:
    return Drawn([d.t(*filled_shape(d))], [plain(d.one("FLOAT32", "FLOAT16"))])


def cast(d: Draw) -> Drawn:
    """The integers themselves become another type."""
    to = d.one("FLOAT32", "INT32", "UINT8", "INT8", "BOOL", "INT64")
    return Drawn([d.x(*shape_of(d))], [plain(to)], {"in_data_type": d.kind, "out_data_type": to})


def chosen(d: Draw) -> Drawn:
    x, y = _pair(d)
    y.scale, y.zero = x.scale, x.zero
    full = np.broadcast_shapes(x.shape, y.shape)
    condition = tuple(d.one(1, n) for n in full)[d.size(0, len(full)) :]
    return Drawn([d.t(*condition, kind="BOOL"), x, y], [T(d.kind, full, x.scale, x.zero)])


def places(d: Draw) -> Drawn:
    x = d.x(*(d.size(1, 4) for _ in range(d.size(1, 5))))
    x.values.reshape(-1)[0] = 1  # the official Python interface has no empty dynamic tensors
    return Drawn([x], [plain("INT64")])


def _scaled(draw: Callable[[Draw], Drawn]) -> Callable[[Draw], Drawn]:
    """The same model with scales on its int32 or int64, which mean nothing to the kernels."""

    def again(d: Draw) -> Drawn:
        drawn = draw(d)
        for t in (*drawn.inputs, *drawn.outputs):
            if t is not None and t.type == d.kind and not t.constant:
                t.scale, t.zero = 0.5, 0
        return drawn

    return again


L2 = _rows(INT8=("INT8", 1 / 128, 0), UINT8=("UINT8", 1 / 128, 128))
LOG = _rows(INT8=("INT8", 16 / 256, 127), UINT8=("UINT8", 16 / 256, 255))
WIDE = _softmax(INT8=("INT16", 1 / 65536, -32768), UINT8=("INT16", 1 / 65536, -32768))
SOFTMAX = _softmax(INT8=("INT8", 1 / 256, -128), UINT8=("UINT8", 1 / 256, 0), INT16=("INT16", 1 / 32768, 0))

ROWS = [
    *(Row(n, ALL, summed, label=f"{n} broadcast") for n in ("ADD", "SUB")),
    Row("MUL", ALL, multiplied, label="MUL broadcast"),
    *(
        Row(n, BYTES, filled(draw), within=1, path="AUTO", label=f"{n} broadcast")  # XNNPACK rounds otherwise
        for n, draw in (("ADD", summed), ("SUB", summed), ("MUL", multiplied))
    ),
    Row("MUL", ("INT16",), narrowed, label="MUL to 8 bits"),
    Row("DIV", ALL, quotient, label="DIV broadcast"),
    Row("SQUARED_DIFFERENCE", ("INT8",), squared, label="SQUARED_DIFFERENCE broadcast"),
    *(Row(n, ALL, greater, label=f"{n} broadcast") for n in ("MAXIMUM", "MINIMUM")),
    *(Row(n, ALL, compared, label=f"{n} broadcast") for n in COMPARISONS),
    *(Row(n, SIGNED, raw_integers, label=f"{n} quantized") for n in ("FLOOR_DIV", "FLOOR_MOD")),
    *(Row(n, (*ALL, "UINT16"), raw_integers, label=f"{n} quantized") for n in ("BITWISE_XOR", "RIGHT_SHIFT")),
    Row("NEG", SIGNED, negated, label="NEG quantized"),
    Row("NEG", SIGNED, lambda d: Drawn([d.x(*filled_shape(d))], [plain("FLOAT32")]), label="NEG into a float by name"),
    Row("QUANTIZE", ALL, lambda d: Drawn([d.t(*filled_shape(d))], [d.y(1)]), label="QUANTIZE without a scale"),
    Row("PRELU", ALL, prelu, label="PRELU broadcast"),
    Row("SELECT_V2", ALL, chosen, label="SELECT_V2 broadcast"),
    Row("CAST", ALL, cast, label="CAST quantized"),
    Row("WHERE", BYTES, places, label="WHERE quantized"),
    Row("SOFTMAX", BYTES, WIDE, label="SOFTMAX to int16"),
    Row("SOFTMAX", ALL, SOFTMAX, label="SOFTMAX of any rank"),
    Row("LOG_SOFTMAX", BYTES, LOG, path="OPT", label="LOG_SOFTMAX of any rank"),
    Row("L2_NORMALIZATION", BYTES, L2, label="L2_NORMALIZATION of any rank"),
    Row("MEAN", ALL, _reduced(lambda d, x, n: d.y(x.scale * (d.high - d.low) / 2)), label="MEAN of any rank"),
    Row(
        "SUM",
        ALL,
        _reduced(lambda d, x, n: d.y(x.scale * (d.high - d.low) * np.sqrt(n))),
        path="OPT",
        label="SUM of any rank",
    ),
    Row("REDUCE_PROD", SIGNED, product_of_few, label="REDUCE_PROD of any rank"),
    *(Row(n, ALL, _reduced(lambda d, x, n: like(x)), label=f"{n} of any rank") for n in ("REDUCE_MAX", "REDUCE_MIN")),
    *(Row("QUANTIZE", ("FLOAT32",), _quantized(k), label=f"QUANTIZE to {k.lower()}") for k in (*ALL, "INT4", "UINT4")),
    *(
        Row("QUANTIZE", ("FLOAT32",), _quantized_by_channel(k), label=f"QUANTIZE by channel to {k.lower()}")
        for k in ALL
    ),
    *(Row("QUANTIZE", BYTES, _requantized(k), label=f"QUANTIZE again to {k.lower()}") for k in ALL),
    *(
        Row("QUANTIZE", ("INT16",), _requantized(k), label=f"QUANTIZE again to {k.lower()}")
        for k in ("INT8", "INT16", "INT32")
    ),
    *(Row("QUANTIZE", ("INT32",), _requantized(k), label=f"QUANTIZE again to {k.lower()}") for k in SIGNED),
    Row("QUANTIZE", ("FLOAT16",), filled(_quantized("UINT8")), within=1, path="AUTO", label="QUANTIZE to uint8"),
    Row("QUANTIZE", ("FLOAT32", "FLOAT16"), between_floats, path="AUTO", label="QUANTIZE between floats"),
    Row("DEQUANTIZE", (*ALL, "INT4", "UINT4", "INT2"), dequantized, label="DEQUANTIZE of any rank"),
    Row("DEQUANTIZE", (*BYTES, "INT4", "UINT4", "INT2"), dequantized_by_channel, label="DEQUANTIZE by any channel"),
    *(
        Row(r.name, (k,), _scaled(r.draw), label=f"{r.label} scaled")
        for r in (*ELEMENTWISE, *REDUCTIONS)
        for k in ("INT32", "INT64")
        if k in r.kinds and r.name not in ("REDUCE_PROD", "BITCAST")
    ),
]
