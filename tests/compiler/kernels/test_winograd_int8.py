"""Convolutions of int8 by Winograd's way against sums in int64, to the bit: borders, slices, the largest sums."""

import numpy as np
import pytest
import test_gemm_int8 as direct
from form_kit import compiles_for, run, split, targets
from test_gemm_int8 import EPILOGUE, SAME, SUM, integers, made, out_shape, sums
from test_int8_targets import runs

import opwright as ow
from opwright.compiler.kernels.contractions_winograd import default_patch
from opwright.compiler.kernels.winograd_int8 import transform_filter_int8, transform_patches_int8, winograd_int8
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.ops import Contract
from opwright.compiler.target import NAMED
from opwright.core.dtypes import int8, int32, uint8

NAMES = ("x86-64-v3", "x86-64-v3-vnni", "x86-64-v4", "x86-64-v4-vnni")
QUICK = ("x86-64-v3", "x86-64-v4-vnni")
on_targets = pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            n,
            marks=[
                pytest.mark.skipif(not runs(n), reason="this processor lacks some instructions"),
                *([] if n in QUICK else [pytest.mark.slow]),
            ],
        )
        for n in NAMES
    ],
)
THREE = Window((3, 3), padding=SAME)


def form_of(shape, window, ws, zero):
    """A convolution of int8, its sums int32."""
    source = Buffer("x", int8, shape)
    out = Buffer("y", int32, out_shape(shape, len(ws), window))
    return Contract(out, source, Buffer("w", int8, ws.shape, ws), (), SUM, window, 1, zero)


@on_targets
@pytest.mark.parametrize(
    ("x", "features", "padding"),
    [
        ((1, 14, 14, 64), 64, SAME),
        ((2, 7, 9, 64), 96, SAME),
        ((1, 9, 13, 96), 64, (0, 0, 0, 0)),
        ((1, 6, 11, 64), 64, (2, 1, 0, 3)),
        ((1, 6, 6, 512), 64, SAME),
    ],
)
def test_sums(name, x, features, padding):
    with ow.flags(target=name):
        form, inputs, expected = made(x, features, Window((3, 3), padding=padding), 1, (int8, int8), (-7, 0), True)
        small = 0 if NAMED[name].vnni_lanes else 2
        assert default_patch(form, NAMED[name]) == (
            small if x[3] == 512 else 4
        )  # 4,608 weights may need more than 26 bits
        actual = run(form, inputs)
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(split(form, inputs, 3), actual)


@on_targets
def test_the_largest_sums(name):
    """Sums that fill the bits that come out, of either sign, and weights that no int16 would hold at other scales."""
    with ow.flags(target=name):
        for w, channels in ((127, 224), (-128, 192), (-128, 64)):
            ws = np.full((64, 3, 3, channels), w, np.int8)
            ws[1::2] = -np.maximum(ws[1::2], -127)
            ws[2::4, :, 1] = 0
            for x, zero in ((-128, 127), (127, -128)):
                xs = np.full((1, 6, 7, channels), x, np.int8)
                xs[:, ::2, 1::3] = -1 - x
                form = form_of(xs.shape, THREE, ws, zero)
                assert default_patch(form, NAMED[name]) == 4
                expected = sums(xs.astype(int) - zero, ws.astype(int), THREE, 1, form.output.shape)
                np.testing.assert_array_equal(run(form, {form.input: xs}), expected)


@on_targets
def test_where_it_wins(name):
    rng = np.random.default_rng(3)

    def patch(x, features, window=THREE, dtype=int8, zero=0, constant=True, most=128):
        ws = rng.integers(-most, most, (features, 3, 3, x[3])).astype(np.int8)
        out = Buffer("y", int32, out_shape(x, features, window))
        filters = Buffer("w", int8, ws.shape, ws if constant else None)
        return default_patch(Contract(out, Buffer("x", dtype, x), filters, (), SUM, window, 1, 0, zero), NAMED[name])

    assert patch((1, 56, 56, 64), 64) == 4
    assert patch((1, 14, 14, 256), 256) == 4
    small = 0 if NAMED[name].vnni_lanes else 2
    assert patch((1, 14, 14, 256), 512) == small  # patches of 4 have too large a filter when it is transformed
    assert patch((1, 14, 14, 512), 128) == small  # sums may be too large
    assert patch((1, 14, 14, 512), 512) == 0
    assert patch((1, 14, 14, 512), 128, most=80) == 4
    assert patch((1, 56, 56, 32), 32) == 4
    assert patch((1, 56, 56, 16), 16) == (4 if NAMED[name].vector_bytes == 32 and not NAMED[name].vnni_lanes else 0)
    for refused in (
        patch((1, 5, 56, 64), 64),
        patch((1, 56, 56, 64), 72),
        patch((1, 56, 56, 72), 64),
        patch((1, 56, 56, 64), 64, Window((3, 3), (2, 2), padding=SAME)),
        patch((1, 56, 56, 64), 64, Window((3, 3), dilations=(2, 2), padding=SAME)),
        patch((1, 56, 56, 64), 64, dtype=uint8),
        patch((1, 56, 56, 64), 64, zero=3),
        patch((1, 56, 56, 64), 64, constant=False),
    ):
        assert refused == 0
    assert (
        default_patch(form_of((1, 56, 56, 64), THREE, np.ones((64, 3, 3, 64), np.int8), 0), NAMED["aarch64-dotprod"])
        == 0
    )


@on_targets
@pytest.mark.parametrize("epilogue", direct.EPILOGUES)
def test_epilogues(name, epilogue):
    with ow.flags(target=name):
        direct.check_epilogue(epilogue, (1, 9, 17, 64), 64, THREE)


@on_targets
def test_slices_of_buffers(name):
    """Input and output inside the last axes of others."""
    rng = np.random.default_rng(1)
    with ow.flags(target=name):
        wide = Buffer("wide", int8, (1, 6, 13, 70))
        x = Buffer("x", int8, (1, 6, 13, 64), parent=wide, start=5)
        xs, ws = integers(rng, int8, wide.shape), integers(rng, int8, (64, 3, 3, 64))
        shape = out_shape(x.shape, 64, THREE)
        whole = Buffer("whole", int32, (*shape[:3], 80))
        y = Buffer("y", int32, shape, parent=whole, start=7)
        form = Contract(y, x, Buffer("w", int8, ws.shape, ws), (), SUM, THREE, 1, 11)
        assert default_patch(form, NAMED[name]) == 4
        actual = run(form, {wide: xs})
        expected = sums(xs[..., 5:69].astype(int) - 11, ws.astype(int), THREE, 1, shape)
        np.testing.assert_array_equal(actual[..., 7:71], expected)
        marked = np.full(1, 0x5A5A5A5A, np.int32)[0]
        assert (actual[..., :7] == marked).all()
        assert (actual[..., 71:] == marked).all()


@targets(
    (transform_filter_int8, {"m": 4, "vectors": 2}),
    (transform_patches_int8, {"m": 2}),
    (winograd_int8, {"more": 3, "rows": 3, "vectors": 2, "short": True, "m": 4, "epilogue": EPILOGUE}),
)
def test_compiles_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
