"""Contractions and depthwise convolutions of 8 bits with the instructions of lesser processors of x86:
exact sums, whole and in parts.

Without VNNI rows are widened (gemm_int16.py); with 256 bits of it tiles have fewer rows.
"""

import numpy as np
import pytest
import test_depthwise_int8 as depthwise
import test_gemm_hybrid as hybrid
import test_gemm_int8 as vectors
from form_kit import buffer, run, split
from test_gemm_int8 import PLAIN, SAME, SUM, made, out_shape, requantised, rounded, sums

import opwright as ow
from opwright.compiler import target as processors
from opwright.compiler.kernels import contraction_steps_int8, register_tiles
from opwright.compiler.kernels.gemm_int16 import bounded_steps, widens
from opwright.compiler.kernels.register_tiles import PanelsInt8, vector_tile
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.ops import Contract
from opwright.compiler.target import NAMED
from opwright.core.dtypes import float32, int4, int8, int32, uint8
from thorough import sampled

NAMES = ("x86-64-v2", "x86-64-v3", "x86-64-v3-vnni", "x86-64-v4")


def runs(name):
    """Whether code for a target runs here."""
    here, there = processors.processor(), NAMED[name]
    needs = (*(f[1:] for f in there.features.split(",") if f), *processors.IMPLIED.get(there.cpu, ()))
    return here.is_x86 and all(here.has(f) for f in needs)


on_targets = pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            n,
            marks=[
                pytest.mark.skipif(not runs(n), reason="this processor lacks some instructions"),
                *([] if n == "x86-64-v3" else [pytest.mark.slow]),
            ],
        )
        for n in NAMES
    ],
)


def rows(*ids):
    """Cases of the vectors' table by their ids' beginnings; each has one."""
    result = [next(c for c in vectors.CASES if c.id.startswith(i)) for i in ids]
    assert len({c.id for c in result}) == len(ids)
    return result


ROWS = rows(
    "1x3x1x1-1-1x1",
    "1x29x1x16-17-",
    "1x50x1x36-33-",
    "1x13x1x8-48-",
    "1x1x1x20-480-",
    "2x5x7x11-40-",
    "37x1x1x20-21-",
    "1x33x31x3-32-3x3s2",
    "2x7x7x20-33-5x3",
    "1x28x28x16-24-3x3",
    "1x20x28x5-24-3x3s1d2",
    "1x14x28x12-24-3x3s1d1-g2",
    "1x1x1x35-37-1x1s1d1-u8u8",
    "1x20x1x36-37-1x1s1d1-i8i8-1--128",
    "1x15x28x6-20-3x3s1d1-u8u8-0-255",
    "1x15x28x6-20-3x3s1d1-i8i8--7-0-dynamic",
    "20x1x1x37-45-1x1s1d1-i8i8-4-9-dynamic",
)


@on_targets
@pytest.mark.parametrize("part", sampled(range(6), 3))
def test_sums(name, part):
    for row in ROWS[part::6]:
        with ow.flags(target=name):
            form, inputs, expected = made(*row.values)
            actual = run(form, inputs)
            np.testing.assert_array_equal(actual, expected, err_msg=row.id)
            np.testing.assert_array_equal(split(form, inputs, 3), actual, err_msg=row.id)


@on_targets
def test_extremes_are_exact(name):
    """Products of the greatest bytes, which saturate where instructions add pairs of them in 16 bits."""
    with ow.flags(target=name):
        for depth, window in ((1031, PLAIN), (12, Window((3, 3), padding=SAME))):
            shape = (1, 6, 9, depth)
            for dtype, x, zero in ((int8, -128, 127), (int8, 127, -128), (uint8, 255, 0)):
                for w in (-128, 127):
                    xs = np.full(shape, x, dtype.np)
                    ws = np.full((17, *window.size, depth), w, np.int8)
                    source, out = buffer(xs), out_shape(shape, 17, window)
                    filters = Buffer("w", int8, ws.shape, ws)
                    form = Contract(Buffer("y", int32, out), source, filters, (), SUM, window, 1, zero)
                    expected = sums(xs.astype(int) - zero, ws.astype(int), window, 1, out)
                    np.testing.assert_array_equal(run(form, {source: xs}), expected)


LIMITS = [  # weights of a channel, steps of four bytes whose sums int16 holds: 255 (|w0| + |w1|) <= 32767 / steps
    ([64, -64, 0, 1], 1),
    ([64, 65, 0, 0], 0),
    ([0, 64, 65, 0], 1),
    ([-128, 0, 0, 0], 1),
    ([127, -1, -128, 0], 1),
    ([32, 32, 1, -32], 2),
    ([-8, -8, 7, 7], 8),
    ([-8, 7, 7, 7], 8),
    ([1, 0, 0, 0], 64),
    ([0, 0, 0, 0], 64),
    ([3, 3, 127, 2, 128 - 256], 0),
    ([3, 3, 126, 2, 127], 1),
]


@pytest.mark.parametrize(("weights", "steps"), LIMITS)
def test_bounds_of_filters(weights, steps):
    for small in ([weights], [[0] * len(weights), weights]):  # the first channel alone says nothing of the others
        filters = np.array(small, np.int8)[:, None, None]
        form = Buffer("w", int8, filters.shape, filters)
        assert bounded_steps(NAMED["x86-64-v3"], form, len(weights)) == steps
        for other in ("x86-64-v2", "x86-64-v3-vnni", "x86-64-v4", "aarch64"):
            assert bounded_steps(NAMED[other], form, len(weights)) == 0
    assert bounded_steps(NAMED["x86-64-v3"], Buffer("w", int8, filters.shape), len(weights)) == 0


@pytest.mark.skipif(not runs("x86-64-v3"), reason="this processor lacks AVX2")
@on_targets
def test_floats_that_int32_does_not_hold_are_saturated(name):
    """Scales below 1 leave every sum within int32; others are held there before they become integers."""
    bias = np.array([2**31 - 1, -(2**31), 2**30 + 77, -(2**30), 12, -12, 0, 1] * 3, np.int32)
    x, weights = np.zeros((1, 1, 7, 8), np.int8), np.zeros((24, 1, 1, 8), np.int8)
    with ow.flags(target=name):
        for scale in (0.05, np.nextafter(np.float32(1), np.float32(0)), 1.0, 3.7, 1e30):
            scales = np.full(24, scale, np.float32)
            source, filters = buffer(x), Buffer("w", int8, weights.shape, weights)
            form = Contract(
                Buffer("y", int8, (1, 1, 7, 24)),
                source,
                filters,
                (Buffer("b", int32, (24,), bias), Buffer("s", float32, (24,), scales)),
                requantised(),
                PLAIN,
                1,
                0,
            )
            with np.errstate(over="ignore"):
                expected = np.broadcast_to(rounded(bias.astype(np.float32) * scales, 3), (1, 1, 7, 24))
            np.testing.assert_array_equal(run(form, {source: x}), expected, err_msg=str(scale))


@pytest.mark.parametrize(
    ("dtype", "ends", "bounded"),
    [
        (int8, (-64, 64), 1),
        (int8, (64, 64), 1),
        (int8, (-65, 64), 0),
        (int8, (-21, -21), 3),
        (int4, (-8, -8), 8),
        (int4, (7, -8), 8),
    ],
)
def test_sums_at_the_bounds(dtype, ends, bounded):
    """The largest bytes by the largest weights of a bound, with and without a rest of steps, in pieces of a window."""
    with ow.flags(target="x86-64-v3"):
        for depth, window in ((1031, PLAIN), (64, PLAIN), (7, Window((3, 3), padding=SAME))):
            ws = np.resize(np.array(ends, np.int8), (17, *window.size, depth)).astype(dtype.np)
            filters = Buffer("w", dtype, ws.shape, ws)
            shape = (1, 5, 9, depth)
            out = out_shape(shape, 17, window)
            for kind, x, zero in ((int8, 127, -128), (uint8, 255, 3), (int8, -128, 5)):
                xs = np.full(shape, x, kind.np)
                form = Contract(Buffer("y", int32, out), buffer(xs), filters, (), SUM, window, 1, zero)
                expected = sums(xs.astype(int) - zero, ws.astype(int), window, 1, out)
                np.testing.assert_array_equal(run(form, {form.input: xs}), expected)
        assert bounded_steps(processors.host(), filters, 7 * 3) == bounded


@on_targets
@pytest.mark.parametrize("epilogue", sampled(vectors.EPILOGUES))
def test_epilogues(name, epilogue):
    with ow.flags(target=name):
        vectors.check_epilogue(epilogue, vectors.KINDS["rows"], 45)


@pytest.mark.slow
@on_targets
def test_floats_that_are_rounded(name):
    with ow.flags(target=name):
        for case in (1, 4):
            hybrid.test_rounded_rows(case, int8, "asymmetric")


@pytest.mark.slow
@on_targets
def test_scales_by_block(name):
    with ow.flags(target=name):
        for stored in (np.float16, np.float32):
            hybrid.test_scales_by_block((9, 21, 72, 3), int8, stored)
            hybrid.test_scales_by_block((9, 21, 72, 3), int4, stored)


@pytest.mark.slow
@on_targets
def test_depthwise(name):
    with ow.flags(target=name):
        for size, stride, channels, zero in ((3, 1, 19, -128), (5, 2, 5, 127)):
            window = Window((size, size), (stride, stride), padding=(size // 2,) * 4)
            xs = depthwise.drawn(np.int8, 1, 8, 7, channels)
            xs[:, ::2] = -128
            depthwise.check(xs, depthwise.drawn(np.int8, size, size, channels), window, x_zero=zero)
        for zero in (0, 255):  # weights of nine bits
            ends = np.where(depthwise.drawn(np.int8, 3, 3, 17) > 0, 0, 255).astype(np.uint8)
            depthwise.check(depthwise.drawn(np.uint8, 1, 4, 6, 17), ends, depthwise.SAME3, 1, 255 - zero, zero)
        depthwise.test_requantised()
    depthwise.test_looked_up_beside_an_operand(name)


@on_targets
def test_results_that_are_looked_up(name):
    with ow.flags(target=name):
        for kind, features in (("rows", 45), ("rows", 64), ("image", 45)):
            vectors.check_epilogue("table", vectors.KINDS[kind], features)


@pytest.mark.parametrize(
    ("target", "window", "out_height", "rows", "team", "seen"),
    [
        ("x86-64-v4-vnni", (3, 3), 112, 4, 2, 2),
        ("x86-64-v4-vnni", (5, 5), 112, 4, 2, 4),
        ("x86-64-v3-vnni", (3, 3), 112, 4, 2, 2),
        ("x86-64-v3-vnni", (5, 5), 112, 2, 2, 4),
        ("x86-64-v3", (3, 3), 112, 2, 2, 4),
        ("x86-64-v3", (5, 5), 112, 2, 2, 6),
        ("x86-64-v3", (4, 4), 112, 2, 1, 2),
    ],
)
def test_rows_of_depthwise_tiles(target, window, out_height, rows, team, seen):
    """Two rows of outputs see the same groups where the second needs no more; two teams where registers hold them."""
    tiles = register_tiles.depthwise_tiles_of(NAMED[target], Window(window), out_height, 1, 8)
    result = register_tiles.depthwise_tile_of(tiles, out_height)
    assert (result.rows, result.team, len(result.seen)) == (rows, team, seen)


@pytest.mark.parametrize(
    ("target", "width", "channels", "features", "copied"),
    [
        ("x86-64-v4-vnni", 7, 512, 512, True),
        ("x86-64-v4-vnni", 32, 16, 16, False),
        ("x86-64-v4-vnni", 14, 256, 256, False),
        ("x86-64-v4-vnni", 8, 64, 64, False),
        ("x86-64-v3", 6, 512, 512, True),
        ("x86-64-v3", 5, 512, 512, False),
        ("x86-64-v3", 6, 16, 16, False),
    ],
)
def test_when_windows_of_3x3_are_copied(target, width, channels, features, copied):
    """Where lines are shorter than tiles, if the steps that are saved cost more than the copies."""
    panels = PanelsInt8(features, 3, 3 * channels, vector_tile(NAMED[target], features))
    assert contraction_steps_int8._is_copying_faster(panels, width, 9 * channels) == copied


@pytest.mark.parametrize(
    ("name", "widened", "tile"),
    [
        ("x86-64-v2", True, (5, 2, 4)),
        ("x86-64-v3", True, (5, 2, 8)),
        ("x86-64-v4", True, (12, 2, 16)),
        ("x86-64-v3-vnni", False, (6, 2, 8)),
        ("x86-64-v4-vnni", False, (14, 2, 16)),
        ("aarch64", False, (14, 2, 4)),
        ("aarch64-dotprod", False, (14, 2, 4)),
    ],
)
def test_which_targets_widen(name, widened, tile):
    """Sums, weights, a number of the row and a product before it is added fit in the registers."""
    result = vector_tile(NAMED[name], 100)
    assert widens(NAMED[name]) == result.widened == widened
    assert (result.rows, result.vectors, result.lanes) == tile
    assert result.rows * result.vectors + result.vectors + 1 + widened <= NAMED[name].registers
