"""Contractions of int8 by the instructions of 64-bit ARM, under qemu-user: exact sums; what tiles and panels are."""

from types import SimpleNamespace

import numpy as np
import pytest
from foreign import run_on
from foreign_plans import run_forms_on
from form_kit import buffer
from test_gemm_hybrid import by_blocks
from test_gemm_int8 import PLAIN, SUM, made, requantised, rounded
from test_int8_targets import rows

from opwright.compiler import language as kl
from opwright.compiler import target as targets
from opwright.compiler.kernels.epilogue import epilogue_of
from opwright.compiler.kernels.gemm_neon import is_paired, padded_quads, steps_for
from opwright.compiler.kernels.register_tiles import PanelsInt8, neon_tile
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.ops import Contract
from opwright.core.dtypes import float32, int8, int32

TARGETS = ("aarch64", "aarch64-dotprod", "aarch64-i8mm")
QUICK = "1x29x1x16-17-"
ROWS = rows(  # steps of a line in fours, in twos and alone; panels of one to four vectors; signs, zero points, windows
    QUICK,
    "1x3x1x1-1-1x1",
    "1x50x1x36-33-",
    "1x13x1x8-48-",
    "1x1x1x20-480-",
    "2x5x7x11-40-",
    "1x33x31x3-32-3x3s2",
    "1x28x28x16-24-3x3",
    "1x14x28x12-24-3x3s1d1-g2",
    "1x1x1x35-37-1x1s1d1-u8u8",
    "1x15x28x6-20-3x3s1d1-u8u8-0-255",
    "20x1x1x37-45-1x1s1d1-i8i8-4-9-dynamic",
)


@pytest.mark.parametrize(
    "row", [pytest.param(r, id=r.id, marks=() if r.id.startswith(QUICK) else pytest.mark.slow) for r in ROWS]
)
@pytest.mark.parametrize("name", TARGETS)
def test_sums(name, row, tmp_path):
    form, inputs, expected = made(*row.values)
    np.testing.assert_array_equal(run_forms_on(name, tmp_path, [form], inputs), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("x", "w"), [(-128, -128), (-128, 127), (127, -128)], ids=str)
def test_extremes_are_exact(name, x, w, tmp_path):
    """Two products of -128 by -128 are 2^15, which int16 does not hold."""
    xs, ws = np.full((1, 5, 1, 60), x, np.int8), np.full((9, 1, 1, 60), w, np.int8)
    source = buffer(xs)
    form = Contract(Buffer("y", int32, (1, 5, 1, 9)), source, Buffer("w", int8, ws.shape, ws), (), SUM, PLAIN, 1, 0)
    np.testing.assert_array_equal(run_forms_on(name, tmp_path, [form], {source: xs}), np.full((1, 5, 1, 9), 60 * x * w))


@kl.family
def signed_dots(work, acc: kl.ptr[kl.i32], a: kl.ptr[kl.i8], c: kl.ptr[kl.i8]):
    acc.store(kl.dot4_signed(acc.load(0, 8), a.load(0, 32), c.load(0, 32)))


@pytest.mark.parametrize("name", TARGETS)
def test_dots_of_signed_bytes(name, tmp_path):
    """Products of -128 among them; without dotprod, by other instructions."""
    rng = np.random.default_rng(0)
    acc, (a, c) = rng.integers(-999, 999, 8).astype(np.int32), rng.integers(-128, 128, (2, 8, 4)).astype(np.int8)
    a[:2], c[0], c[1] = -128, -128, 127
    expected = acc + (a.astype(int) * c).sum(1)
    np.testing.assert_array_equal(run_on(name, tmp_path, signed_dots, {}, [acc, a, c], 1)[0], expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("features", [11, 45], ids=str)  # last panels of three vectors, and of four with channels left
def test_requantised(name, features, tmp_path):
    factors = np.random.default_rng(2).uniform(0.0005, 0.005, features).astype(np.float32)
    scales = Buffer("factors", float32, factors.shape, factors)
    form, inputs, total = made(
        (1, 29, 1, 20), features, PLAIN, 1, (int8, int8), (-3, 0), True, requantised(), (scales,)
    )
    expected = rounded(total * factors.astype(np.float64), 3).astype(int)
    off = np.abs(run_forms_on(name, tmp_path, [form], inputs) - expected)
    assert off.max() <= 1
    assert (off != 0).sum() <= 1 + off.size // 1000  # a number at the edge between two may be rounded otherwise


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("shape", [(1, 33, 128, 4), (9, 21, 72, 3)], ids=str)
def test_scales_by_block(name, shape, tmp_path):
    form, inputs, expected = by_blocks(*shape, int8, np.float32)
    actual = run_forms_on(name, tmp_path, [form], inputs).reshape(expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_whole_steps():
    """Padding steps included, smmla runs an even number of steps, smull four instead of three."""
    for steps, expected in (
        (1, [1, 2, 3, 4, 5, 6, 7, 8]),
        (2, [2, 2, 4, 4, 6, 6, 8, 8]),
        (4, [1, 2, 4, 4, 5, 6, 8, 8]),
    ):
        assert [padded_quads(steps, quads) for quads in range(1, 9)] == expected


def test_whether_requantisation_meets_infinities():
    """Products of sums with other than finite numbers may be NaN, which becomes the least integer."""
    out, build = Buffer("y", int8, (2, 3)), SimpleNamespace(pointer=lambda *_: 0)
    for factor, expected in ((0.5, True), (np.inf, False), (np.nan, False)):
        factors = np.array([1.0, factor, 2.0], np.float32)
        scales = Buffer("factors", float32, (3,), factors)
        assert epilogue_of(requantised(1), (scales,), out, build)[0].finite is expected
    assert not epilogue_of(requantised(1), (Buffer("factors", float32, (3,)),), out, build)[0].finite


def test_which_filters_are_paired():
    for least, parts, expected in ((-127, 1, True), (-128, 1, False), (-127, 2, False)):
        ws = np.array([[least, 127]], np.int8)
        assert is_paired(Buffer("w", int8, ws.shape, ws), parts) is expected
    assert not is_paired(Buffer("w", int8, (1, 2)), 1)


def test_tiles_fit_the_registers():
    for name in TARGETS:
        target = targets.named(name)
        for features in (1, 4, 5, 8, 11, 16, 17, 100):
            tile = neon_tile(target, features)
            panels = PanelsInt8(features, 1, 16, tile)
            vectors = tile.width if steps_for(target) == 4 else tile.vectors
            assert tile.rows * vectors < target.registers
            assert features <= (panels.number - 1) * tile.width + panels.last < features + tile.lanes
    assert neon_tile(targets.named("x86-64-v3"), 16) is None
