"""Contractions of floats that are rounded to int8 a row at a time, against the definition in float64."""

import dataclasses

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets
from test_gemm_int8 import PLAIN, SAME, integers, out_shape, sums

from opwright.compiler.kernels.convolution_int8 import convolution_int8
from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.gemm_int8 import gemm_int8
from opwright.compiler.kernels.quantization import round_rows
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import apply, arg, convert, row_scale
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import Contract, View
from opwright.compiler.loops.planner import plan_of
from opwright.core.dtypes import float32, int4, int8, int32
from thorough import crossed

SUM = apply("mul", convert(arg(0, int32), float32), row_scale())
EXPR = apply("relu", apply("fma", SUM, arg(1, float32), arg(2, float32)))


def away(x: np.ndarray) -> np.ndarray:
    """Rounded, halves away from zero."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def rounded(x: np.ndarray, symmetric: bool) -> tuple[np.ndarray, np.ndarray]:
    """Integers less their zero points, and the scales, of x[n]; what LiteRT's kernels do."""
    rows = x.reshape(len(x), -1)
    low, high = np.minimum(rows.min(1), 0), np.maximum(rows.max(1), 0)
    values, scales = np.zeros(rows.shape), np.ones(len(x))
    for i, (row, lo, hi) in enumerate(zip(rows, low, high)):
        if lo == hi:
            continue
        if symmetric:
            reach = max(hi, -lo)
            values[i] = np.clip(away(row * (np.float32(127) / reach)), -127, 127)
            scales[i] = reach / np.float32(127)
        else:
            step = float(hi - lo) / 255
            ends = -128 - float(lo) / step, 127 - float(hi) / step
            zero = away(np.clip(ends[0] if 128 + abs(lo / step) < 127 + abs(hi / step) else ends[1], -128, 127))
            scales[i] = np.float32(step)
            q = np.clip(away(row * (np.float32(1) / np.float32(step))) + zero, -128, 127)
            values[i] = q - zero
    return values.reshape(x.shape), scales


CASES = [  # shape of the input, features, window
    ((1, 1, 1, 36), 20, PLAIN),
    ((5, 1, 1, 37), 45, PLAIN),
    ((33, 1, 1, 64), 16, PLAIN),
    ((1, 14, 14, 12), 33, PLAIN),
    ((2, 9, 28, 8), 24, Window((3, 3), padding=SAME)),
    ((1, 20, 28, 3), 24, Window((3, 3), (2, 2), padding=SAME)),
    ((2, 7, 7, 12), 40, Window((3, 3), padding=SAME)),
    ((2, 5, 5, 8), 640, Window((3, 3), padding=SAME)),
    ((1, 5, 28, 5), 8, PLAIN),
    ((1, 1, 1, 40), 150, PLAIN),
]


def made(x, features, window, rounding, dtype=int8, groups=1):
    rng = np.random.default_rng(11)
    xs = (rng.standard_normal(x) * rng.uniform(0.1, 50, (x[0], 1, 1, 1)) + 0.3).astype(np.float32)
    xs[-1] *= len(xs) == 1  # the last of several rows is nothing but zeros
    ws = integers(rng, dtype, (features, *window.size, x[3] // groups))
    if len(xs) == 1:
        xs[0] = rng.standard_normal(x[1:]).astype(np.float32)
    scales, bias = rng.uniform(0.01, 0.1, features).astype(np.float32), rng.standard_normal(features).astype(np.float32)
    source = buffer(xs)
    out = Buffer("y", float32, out_shape(x, features, window))
    operands = (Buffer("scales", float32, scales.shape, scales), Buffer("bias", float32, bias.shape, bias))
    form = Contract(out, source, Buffer("w", dtype, ws.shape, ws), operands, EXPR, window, groups, rounding=rounding)
    values, row = rounded(xs, rounding == "symmetric")
    total = sums(values, ws.astype(int), window, groups, out.shape) * row[:, None, None, None]
    return form, {source: xs}, np.maximum(total * scales + bias, 0), np.abs(total * scales).max()


@pytest.mark.parametrize(
    ("case", "dtype", "rounding"),
    crossed(range(len(CASES)), [int8, int4], ["symmetric", "asymmetric"], every=4),
    ids=str,
)
def test_rounded_rows(case, dtype, rounding):
    x, features, window = CASES[case]
    form, inputs, expected, reach = made(x, features, window, rounding, dtype)
    actual = run(form, inputs)
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=reach * 2e-6)
    np.testing.assert_array_equal(split(form, inputs, 3), actual)


def test_groups():
    form, inputs, expected, reach = made((1, 12, 28, 12), 24, Window((3, 3), padding=SAME), "asymmetric", groups=3)
    np.testing.assert_allclose(run(form, inputs), expected, rtol=2e-6, atol=reach * 2e-6)


def test_halves_are_rounded_away_from_zero():
    x = np.array([127.0, 0.5, -0.5, 1.5, -2.5, 0.49999997, 0, 0], np.float32).reshape(1, 1, 1, 8)
    eye = np.eye(8, dtype=np.int8).reshape(8, 1, 1, 8)
    source = buffer(x)
    form = Contract(
        Buffer("y", float32, (1, 1, 1, 8)),
        source,
        Buffer("w", int8, eye.shape, eye),
        (),
        SUM,
        PLAIN,
        rounding="symmetric",
    )
    assert run(form, {source: x}).ravel().tolist() == [127, 1, -1, 2, -3, 0, 0, 0]


def test_products_of_the_same_rows_round_them_once():
    """A view of the rows shares the step; other roundings, and other rows, are steps of their own."""
    form, inputs, expected, _ = made((5, 1, 1, 36), 20, PLAIN, "asymmetric")
    ((source, x),) = inputs.items()
    forms, out = [], {}

    def add(read: Buffer, rounding: str) -> None:
        y = Buffer(f"y{len(forms)}", float32, form.output.shape)
        forms.append(dataclasses.replace(form, output=y, input=read, rounding=rounding))
        out[y] = np.empty(y.shape, np.float32)

    flat, again = Buffer("flat", float32, (5, 36)), Buffer("again", float32, (5, 1, 1, 36))
    other = Buffer("other", float32, x.shape)
    add(source, "asymmetric")
    forms += [View(flat, source), View(again, flat)]
    add(again, "asymmetric")
    add(source, "symmetric")
    add(other, "asymmetric")
    plan = plan_of(LoopGraph("test", (source, other), tuple(out), tuple(forms)))
    plan.pack()
    assert [step.code.address for step in plan.steps].count(round_rows.code(symmetric=False).address) == 2
    assert len(plan.steps) == 7
    running = plan.bind(1)
    arrays = {source: x, other: np.ascontiguousarray(x[::-1]), **out}
    running.connect({b: array.ctypes.data for b, array in arrays.items()})
    running.run()
    alone = run(dataclasses.replace(form, rounding="symmetric"), inputs)
    results = [expected, expected, alone, expected[::-1]]
    for actual, result in zip(out.values(), results, strict=True):
        np.testing.assert_allclose(actual, result, rtol=2e-6, atol=2e-6 * np.abs(result).max() + 1e-5)


KINDS = (("channel", float32), ("channel", float32)), ()
EPILOGUE = Epilogue(EXPR, *KINDS)
BLOCKED = Epilogue(apply("fma", apply("mul", arg(0, float32), row_scale()), arg(1, float32), arg(2, float32)), *KINDS)
SHAPE = {
    "rows": 4,
    "vectors": 2,
    "short": True,
    "narrow": 1,
    "epilogue": EPILOGUE,
    "more": 2,
    "rounded": True,
    "wide": False,
    "tiled": None,
    "widened": None,
    "flipped": False,
    "bounded": 0,
    "grouped": None,
}


@targets(
    (gemm_int8, {**SHAPE, "parts": 1, "blocked": False, "halved": False}),
    (gemm_int8, {**SHAPE, "parts": 1, "blocked": True, "halved": False, "epilogue": BLOCKED}),
    (gemm_int8, {**SHAPE, "rows": 1, "parts": 1, "blocked": True, "halved": True, "epilogue": BLOCKED}),
    (convolution_int8, {**SHAPE, "by_line": False}),
    (round_rows, {"symmetric": False}),
    (round_rows, {"symmetric": True}),
)
def test_compiles_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)


def by_blocks(rows, features, channels, blocks, dtype, stored, extreme=False):
    """A contraction whose weights have scales by block, what it is given, and what it writes.

    stored: the type that holds the scales exactly. extreme: inputs and weights of the greatest sums.
    """
    rng = np.random.default_rng(4)
    x = (rng.standard_normal((rows, 1, 1, channels)) + 0.2).astype(np.float32)
    w = integers(rng, dtype, (features, 1, 1, channels))
    if extreme:
        x[:], w[:] = -1, int(dtype.max)
        x[..., -1] = 1e-3
    scales = rng.uniform(0.01, 0.1, (features, blocks)).astype(stored).astype(np.float32)
    source = buffer(x)
    form = Contract(
        Buffer("y", float32, (rows, 1, 1, features)),
        source,
        Buffer("w", dtype, w.shape, w),
        (),
        apply("mul", arg(0, float32), row_scale()),
        PLAIN,
        rounding="asymmetric",
        scales=Buffer("scales", float32, scales.shape, scales),
    )
    values, steps = rounded(x, False)
    real = w.astype(float).reshape(features, blocks, -1) * scales[..., None]
    return form, {source: x}, values.reshape(rows, -1) @ real.reshape(features, -1).T * steps[:, None]


BLOCKS = [
    *[(1, 33, 128, 4), (37, 45, 96, 3), (29, 16, 20, 5), (5, 24, 120, 3), (1, 16, 256, 2), (3, 17, 48, 6)],
    (1, 167, 96, 3),  # panels side by side
    (37, 40, 256, 2),
]
"""Rows, features, channels and blocks: of 32 channels, of 4, and of others that halved panels have."""


@pytest.mark.parametrize(
    ("sizes", "dtype", "stored"), crossed(BLOCKS, [int8, int4], [np.float16, np.float32], every=4), ids=str
)
def test_scales_by_block(sizes, dtype, stored):
    rows, features, channels, blocks = sizes
    form, inputs, expected = by_blocks(rows, features, channels, blocks, dtype, stored)
    actual = run(form, inputs)
    np.testing.assert_allclose(actual.reshape(rows, features), expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_array_equal(split(form, inputs, 3), actual)


@pytest.mark.parametrize("rows", [4, 5, 22])
def test_rows_have_the_same_results_alone(rows):
    """Rows of one tile, and of several, for which a panel is unpacked once (gemm_int4_rows.py)."""
    form, inputs, _ = by_blocks(rows, 40, 128, 2, int4, np.float16)
    (x,) = inputs.values()
    together = run(form, inputs)
    for i in range(rows):
        alone, y = buffer(x[i : i + 1]), Buffer("y", float32, (1, 1, 1, 40))
        one = run(dataclasses.replace(form, input=alone, output=y), {alone: x[i : i + 1]})
        np.testing.assert_array_equal(one[0], together[i])


@pytest.mark.parametrize("dtype", [int8, int4], ids=lambda d: d.name)
@pytest.mark.parametrize("rows", [1, 5])
def test_the_greatest_sums_of_a_block_do_not_saturate(dtype, rows):
    form, inputs, expected = by_blocks(rows, 160, 512, 2, dtype, np.float16, extreme=True)
    actual = run(form, inputs).reshape(rows, 160)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
