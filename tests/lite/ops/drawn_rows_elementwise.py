"""Rows of the table operator x type: arithmetic, comparison, choice and functions of single elements, of any type.

Lives here: rows on plain numbers, of ranks 0 to 6, broadcast, with sizes of 0 and 1 and with numbers at the ends of
their range; draws that rows of other files share.
Not here: tensors with scales (drawn_rows_elementwise_quantized.py), reductions and casts (drawn_rows_reduction.py).

Half precision that REF and OPT refuse is compared with XNNPACK (AUTO).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from drawn import NUMPY, Draw, Drawn, Row, T, plain

NARROW = ("INT8", "UINT8", "INT16")
INTEGERS = ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32")
SINGLE = 1e-6  # float32 functions, computed otherwise: some units in the last place of the greatest
DOUBLE = 1e-15  # float64 functions: some units in the last place of the greatest
HALF = 1e-3  # two units in the last place of float16
COARSE = 8e-3  # one of bfloat16
ENDS = (0.0, -0.0, 1.5, -2.5, 3e38, -3e38, 1e-20, np.inf, -np.inf, np.nan)


def shape_of(d: Draw, most: int = 6, least: int = 0) -> tuple[int, ...]:
    """Up to `most` sizes of 1 to 3; one time in eight one of them is 0."""
    sizes = [d.size(1, 3) for _ in range(d.size(least, most))]
    if sizes and d.size(1, 8) == 1:
        sizes[d.size(0, len(sizes) - 1)] = 0
    return tuple(sizes)


def broadcast_pair(d: Draw, most: int = 6) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast: sizes of one or the other are 1, leading ones are left out."""
    full = shape_of(d, most, d.kind == "STRING")
    masks = [d.rng.integers(0, 3, len(full)) for _ in range(2)]
    x = tuple(1 if a == 0 else n for n, a in zip(full, masks[0], strict=True))
    y = tuple(1 if b == 0 and a != 0 else n for n, a, b in zip(full, *masks, strict=True))
    if d.kind == "STRING":  # a scalar string does not survive the official Python interface
        return d.one((x, y), (full, full))
    return d.one((x, y[d.size(0, len(y)) :]), (x[d.size(0, len(x)) :], y), (full, full), (full, ()), ((), full))


def whole_range(d: Draw, *shape: int, kind: str | None = None) -> T:
    """Elements at the ends of their type's range, among others."""
    kind = kind or d.kind
    dtype = np.dtype(NUMPY[kind])
    t = d.t(*shape, kind=kind)
    if kind == "BOOL":
        return t
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        ends = np.array([limits.min, limits.max, limits.max // 2, 0, 1, -1 if limits.min else 2, 7], dtype)
    else:
        with np.errstate(all="ignore"):
            ends = np.array(ENDS).astype(dtype)
    chosen = d.rng.integers(0, 3, shape) == 0
    t.values = np.where(chosen, ends[d.rng.integers(0, len(ends), shape)], t.values).astype(dtype)
    return t


def filled(draw: Callable[[Draw], Drawn]) -> Callable[[Draw], Drawn]:
    """Drawn again until no tensor is empty: XNNPACK leaves those to the kernels behind it."""

    def again(d: Draw) -> Drawn:
        drawn = draw(d)
        while not all(t.values.size for t in drawn.inputs):
            drawn = draw(d)
        return drawn

    return again


def _two(
    low: float = -9, high: float = 9, output: str | None = None, fused: bool = False, y_low: float | None = None
) -> Callable[[Draw], Drawn]:
    """Two broadcast tensors of numbers between low and high."""

    def draw(d: Draw) -> Drawn:
        x, y = broadcast_pair(d)
        options = {"fused_activation_function": d.activation()} if fused else {}
        return Drawn(
            [d.t(*x, low=low, high=high), d.t(*y, low=low if y_low is None else y_low, high=high)],
            [plain(output or d.kind)],
            options,
        )

    return draw


def divided(d: Draw) -> Drawn:
    """No divisors of 0."""
    x, y = broadcast_pair(d)
    below = d.t(*y)
    below.values = np.where(np.abs(below.values.astype(np.float64)) < 0.5, 3, below.values).astype(below.values.dtype)
    return Drawn([d.t(*x), below], [plain(d.kind)])


def divided_and_fused(d: Draw) -> Drawn:
    drawn = divided(d)
    drawn.options = {"fused_activation_function": d.activation()}
    return drawn


def floored(d: Draw) -> Drawn:
    """Quotients that are integers, or just beside: multiples of a number that is none in binary."""
    drawn = divided(d)
    if d.kind == "FLOAT32":
        for t in drawn.inputs:
            t.values = (np.round(t.values) * np.float32(0.1)).astype(np.float32)
        drawn.inputs[1].values = np.where(drawn.inputs[1].values == 0, np.float32(0.3), drawn.inputs[1].values)
    return drawn


def powers(d: Draw) -> Drawn:
    x, y = broadcast_pair(d)
    exponents = d.t(*y, low=0 if d.kind == "INT32" else -3, high=9 if d.kind == "INT32" else 3)
    exponents.values = np.round(exponents.values)
    return Drawn(
        [d.t(*x, low=-40, high=40) if d.kind == "INT32" else d.t(*x, low=-3, high=3), exponents], [plain(d.kind)]
    )


def _ends(output: str | None = None) -> Callable[[Draw], Drawn]:
    """Two broadcast tensors with numbers at the ends of the range."""

    def draw(d: Draw) -> Drawn:
        x, y = broadcast_pair(d)
        return Drawn([whole_range(d, *x), whole_range(d, *y)], [plain(output or d.kind)])

    return draw


def same_shapes(d: Draw) -> Drawn:
    shape = shape_of(d)
    return Drawn([whole_range(d, *shape), whole_range(d, *shape)], [plain(d.kind)])


def shifted(d: Draw) -> Drawn:
    x, y = broadcast_pair(d)
    return Drawn([whole_range(d, *x), d.t(*y, low=-3, high=70)], [plain(d.kind)])


def many(d: Draw) -> Drawn:
    shape = shape_of(d)
    return Drawn([d.t(*shape) for _ in range(d.size(2, 5))], [plain(d.kind)])


def _one(low: float = -9, high: float = 9, **options: object) -> Callable[[Draw], Drawn]:
    return lambda d: Drawn([d.t(*shape_of(d), low=low, high=high)], [plain(d.kind)], dict(options))


def _one_of_ends(d: Draw) -> Drawn:
    return Drawn([whole_range(d, *shape_of(d))], [plain(d.kind)])


def halves(d: Draw) -> Drawn:
    """Numbers in the middle between integers, among others."""
    t = d.t(*shape_of(d))
    t.values = (np.round(t.values.astype(np.float32) * 4) / 4).astype(t.values.dtype)
    return Drawn([t], [plain(d.kind)])


def leaky(d: Draw) -> Drawn:
    return Drawn([d.t(*shape_of(d))], [plain(d.kind)], {"alpha": float(np.float32(d.rng.uniform(-1, 2)))})


def prelu(d: Draw) -> Drawn:
    full = shape_of(d, 4)
    alpha = tuple(d.one(1, n) for n in full)[d.size(0, len(full)) :]
    return Drawn([d.t(*full), d.t(*alpha, constant=d.kind == "FLOAT16" or d.one(True, False))], [plain(d.kind)])


def prelu_by_channel(d: Draw) -> Drawn:
    shape = (d.size(1, 2), d.size(1, 4), d.size(1, 4), d.size(1, 5))
    return Drawn([d.t(*shape), d.t(1, 1, shape[-1], constant=True)], [plain(d.kind)])


def _rows(**options: Callable[[Draw], object]) -> Callable[[Draw], Drawn]:
    """Functions of the last dimension, which is never empty."""

    def draw(d: Draw) -> Drawn:
        shape = (*shape_of(d, 3), d.size(1, 30))
        return Drawn([d.t(*shape, low=-4, high=4)], [plain(d.kind)], {k: v(d) for k, v in options.items()})

    return draw


def local_response(d: Draw) -> Drawn:
    options = {
        "radius": d.size(0, 4),
        "bias": float(np.float32(d.rng.uniform(0.5, 2))),
        "alpha": float(np.float32(d.rng.uniform(0, 1))),
        "beta": float(d.one(0.5, 0.75, 1.0)),
    }
    return Drawn([d.t(*d.shape(3), d.size(1, 9))], [plain("FLOAT32")], options)


def chosen(d: Draw) -> Drawn:
    """SELECT: one shape for both, the condition of that shape, a scalar, or a list for the first dimension.

    The official kernels leave an output of one element the shape that the file gives it, so the file has the right one.
    """
    shape = shape_of(d, 5, 1)
    condition = d.t(*d.one(shape, shape, (), shape[:1]), kind="BOOL")
    return Drawn([condition, d.t(*shape), d.t(*shape)], [T(d.kind, shape)])


def chosen_broadcast(d: Draw) -> Drawn:
    x, y = broadcast_pair(d)
    full = np.broadcast_shapes(x, y)
    condition = tuple(d.one(1, n) for n in full)[d.size(0, len(full)) :]
    return Drawn([d.t(*condition, kind="BOOL"), d.t(*x), d.t(*y)], [T(d.kind, full)])


def places(d: Draw) -> Drawn:
    shape = tuple(d.size(1, 4) for _ in range(d.size(1, 5)))
    x = d.t(*shape, low=-1, high=1)
    x.values = np.round(x.values) if d.kind == "FLOAT32" else x.values
    x.values.reshape(-1)[0] = 1  # the official Python interface has no empty dynamic tensors
    return Drawn([x], [plain("INT64")])


ORDERED = ("FLOAT32", "FLOAT16", "INT32", "INT64")
ANY = (
    "FLOAT32",
    "FLOAT16",
    "BFLOAT16",
    "FLOAT64",
    "INT8",
    "UINT8",
    "INT16",
    "UINT16",
    "INT32",
    "UINT32",
    "INT64",
    "UINT64",
    "BOOL",
    "COMPLEX64",
)
COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
HALVES = {  # float16 that XNNPACK alone takes: how it is drawn
    "ABS": _one(),
    "EXP": _one(-4, 1),
    "LOG": _one(0.1, 9),
    "SQRT": _one(0, 9),
    "RSQRT": _one(0.1, 9),
    "SQUARE": _one(),
    "CEIL": _one(),
    "RELU": _one(),
    "RELU6": _one(),
    "RELU_N1_TO_1": _one(-2, 2),
    "ELU": _one(),
    "HARD_SWISH": _one(),
    "LEAKY_RELU": leaky,
    "SUB": _two(),
    "DIV": divided,
    "SQUARED_DIFFERENCE": _two(-3, 3),
}
XNNPACK = {  # float32 there: what the default interpreter computes
    **HALVES,
    "ADD": _two(fused=True),
    "MUL": _two(fused=True),
    "MAXIMUM": _two(),
    "MINIMUM": _two(),
    "NEG": _one(),
    "FLOOR": _one(),
    "ROUND": halves,
    "SIN": _one(),
    "COS": _one(),
    "TANH": _one(),
    "LOGISTIC": _one(),
    "GELU": _one(),
    "PRELU": prelu_by_channel,
    "SOFTMAX": _rows(beta=lambda d: 1.0),
}
EXACT = ("ABS", "SQUARE", "CEIL", "RELU", "RELU6", "RELU_N1_TO_1", "SUB")

ROWS = [
    Row("ADD", ("FLOAT32", "FLOAT16", "INT32", "INT64"), _two(fused=True)),
    Row("ADD", ("INT16",), _two(output="INT16"), label="ADD raw"),
    Row("SUB", ("FLOAT32", "INT32", "INT64"), _two(fused=True)),
    Row("MUL", ("FLOAT32", "FLOAT16", "INT32", "INT64"), _two(fused=True)),
    Row("MUL", ("COMPLEX64",), _two(), within=SINGLE),
    Row("MUL", ("UINT32",), _ends()),
    Row("MUL", ("INT16",), _two(), label="MUL raw"),
    *(Row(n, ("INT32", "INT64"), _ends(), label=f"{n} wrapping") for n in ("ADD", "SUB", "MUL")),
    Row("DIV", ("FLOAT32", "INT32"), divided_and_fused),
    Row("FLOOR_DIV", ("FLOAT32", "INT32"), floored),
    Row("FLOOR_DIV", ("INT8", "INT16"), floored, label="FLOOR_DIV raw"),
    Row("FLOOR_MOD", ("FLOAT32", "INT32", "INT64"), divided),
    Row("FLOOR_MOD", ("INT8", "INT16"), floored, label="FLOOR_MOD raw"),
    Row("POW", ("FLOAT32",), powers, within=SINGLE),
    Row("POW", ("INT32",), powers),
    Row("SQUARED_DIFFERENCE", ("FLOAT32", "INT32"), _two()),
    *(Row(n, (*ORDERED, "BFLOAT16"), _ends()) for n in ("MAXIMUM", "MINIMUM")),
    *(Row(n, NARROW, _ends(), label=f"{n} raw") for n in ("MAXIMUM", "MINIMUM")),
    Row("ATAN2", ("FLOAT32",), same_shapes, within=SINGLE),
    Row("ATAN2", ("FLOAT64",), same_shapes, within=DOUBLE),
    Row("ATAN2", ("FLOAT16",), same_shapes, within=HALF),
    Row("ATAN2", ("BFLOAT16",), same_shapes, within=COARSE),
    Row("ADD_N", ("FLOAT32", "INT32"), many, within=SINGLE),
    Row("BITWISE_XOR", INTEGERS, _ends()),
    Row("RIGHT_SHIFT", INTEGERS, shifted),
    Row("LOGICAL_AND", ("BOOL",), _two()),
    Row("LOGICAL_OR", ("BOOL",), _two()),
    Row("LOGICAL_NOT", ("BOOL",), _one()),
    *(Row(n, ORDERED, _ends("BOOL")) for n in COMPARISONS),
    *(Row(n, ("INT16",), _ends("BOOL"), label=f"{n} raw") for n in COMPARISONS if n != "NOT_EQUAL"),
    *(Row(n, ("BFLOAT16",), _ends("BOOL")) for n in ("LESS", "GREATER")),
    *(Row(n, ("BOOL", "STRING"), _two(output="BOOL")) for n in ("EQUAL", "NOT_EQUAL")),
    Row("SELECT", tuple(k for k in ANY if k not in NARROW), chosen),
    Row("SELECT", NARROW, chosen, label="SELECT raw"),
    Row("SELECT_V2", tuple(k for k in ANY if k not in NARROW), chosen_broadcast),
    Row("SELECT_V2", NARROW, chosen_broadcast, label="SELECT_V2 raw"),
    Row("WHERE", ("BOOL", "FLOAT32", "INT32", "UINT32", "INT64", "INT8", "UINT8"), places),
    Row("ABS", ("FLOAT32", "INT32"), _one_of_ends),
    Row("ABS", ("INT16",), _one_of_ends, label="ABS raw"),
    Row("NEG", ("FLOAT32", "FLOAT16", "BFLOAT16", "INT32", "INT64"), _one_of_ends),
    Row("NEG", ("INT8", "INT16"), _one_of_ends, label="NEG raw"),
    Row("SIGN", ("FLOAT32", "FLOAT64", "INT32"), _one_of_ends),
    Row("SQUARE", ("FLOAT32",), _one_of_ends),
    Row("ZEROS_LIKE", ("FLOAT32", "INT32", "INT64"), _one_of_ends),
    Row("FLOOR", ("FLOAT32", "FLOAT16", "BFLOAT16"), _one_of_ends),
    Row("CEIL", ("FLOAT32",), _one_of_ends, path="OPT"),
    Row("ROUND", ("FLOAT32", "FLOAT16", "BFLOAT16"), halves, path="OPT"),
    Row("ROUND", ("FLOAT32",), _one_of_ends, path="OPT", label="ROUND of any"),
    *(Row(n, ("FLOAT32",), _one_of_ends, within=SINGLE) for n in ("EXP", "LOG", "SQRT", "RSQRT", "SIN", "COS")),
    *(Row(n, ("FLOAT16",), _one()) for n in ("SIN", "COS", "TANH")),
    Row("TANH", ("BFLOAT16",), _one()),
    *(Row(n, ("FLOAT32",), _one_of_ends) for n in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")),
    *(Row(n, ("FLOAT32",), _one_of_ends, within=SINGLE) for n in ("TANH", "LOGISTIC")),
    *(Row("LOGISTIC", (k,), _one(-20, 20), within=w) for k, w in (("FLOAT16", HALF), ("BFLOAT16", COARSE))),
    Row("ELU", ("FLOAT32",), _one_of_ends, within=SINGLE, path="OPT"),
    Row("HARD_SWISH", ("FLOAT32",), _one(-9, 9), within=SINGLE),
    Row("LEAKY_RELU", ("FLOAT32",), leaky),
    Row("PRELU", ("FLOAT32",), prelu),
    *(
        Row("GELU", ("FLOAT32",), _one(approximate=a), within=SINGLE, label=f"GELU{' approximate' * a}")
        for a in (False, True)
    ),
    *(Row("GELU", ("FLOAT16",), _one(approximate=a), label=f"GELU{' approximate' * a}") for a in (False, True)),
    *(
        Row("SOFTMAX", (k,), _rows(beta=lambda d: float(np.float32(d.one(1.0, 0.5, 2.0)))), within=w)
        for k, w in (("FLOAT32", SINGLE), ("FLOAT16", HALF))
    ),
    Row("LOG_SOFTMAX", ("FLOAT32",), _rows(), within=SINGLE),
    Row("L2_NORMALIZATION", ("FLOAT32",), _rows(), within=SINGLE),
    Row("LOCAL_RESPONSE_NORMALIZATION", ("FLOAT32",), local_response, within=3 * SINGLE, path="OPT"),
    *(Row(n, ("FLOAT16",), filled(draw), within=0 if n in EXACT else HALF, path="AUTO") for n, draw in HALVES.items()),
    Row("PRELU", ("FLOAT16",), prelu_by_channel, path="AUTO"),
    *(Row(n, ("FLOAT32",), filled(draw), within=SINGLE, path="AUTO") for n, draw in XNNPACK.items()),
]
