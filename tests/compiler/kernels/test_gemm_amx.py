"""Contractions of int8 on tiles: the bits that vectors give, sums as in int64, tails of everything, nothing outside."""

import contextlib

import numpy as np
import pytest
import test_gemm_int8 as vectors
from form_kit import buffer, run, split
from hypothesis import given, settings
from hypothesis import strategies as st
from test_gemm_hybrid import EXPR
from test_gemm_int8 import CASES, EPILOGUES, PLAIN, SAME, SHAPE, SUM, integers, made, requantised

from opwright.compiler.kernels import gemm_int8 as gemm_int8_module
from opwright.compiler.kernels import register_tiles
from opwright.compiler.kernels.convolution_int8 import convolution_int8
from opwright.compiler.kernels.gemm_int8 import gemm_int8
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import Contract, MatMul
from opwright.compiler.loops.planner import plan_of
from opwright.compiler.target import NAMED, host
from opwright.core.dtypes import float32, int8, int32, uint8
from opwright.core.errors import UnimplementedError
from thorough import examples

tiled = pytest.mark.skipif(not host().has("amx-int8"), reason="this processor has no tiles, or may not use them")
AMX = NAMED["x86-64-v4-amx"]


@contextlib.contextmanager
def tiles(use):
    """Within, tiles compute whatever they can, or nothing. Gives a list of the tiles that selectors choose."""
    chosen = []

    def recorded(*sizes):
        chosen.append(amx_tile(*sizes))
        return chosen[-1]

    amx_tile = register_tiles.amx_tile

    with pytest.MonkeyPatch.context() as patch:
        for name in ("FEW_ROWS", "FEW_STEPS", "SHALLOW", "FEW_PRODUCTS"):
            patch.setattr(gemm_int8_module, name, 1 if use else 1 << 60)
        patch.setattr(register_tiles, "amx_tile", recorded)
        yield chosen


def both(form, arrays):
    """Return the result of an operation with tiles; check that vectors and any split of the work give the same bits."""
    with tiles(True) as chosen:
        result = run(form, arrays)
        np.testing.assert_array_equal(split(form, arrays, 3), result)
    assert all(chosen)
    assert chosen
    with tiles(False) as chosen:
        np.testing.assert_array_equal(run(form, arrays), result)
    assert not any(chosen)
    return result


ROWS = [
    pytest.param(*case.values, id=case.id, marks=() if i % 4 == 0 else pytest.mark.slow) for i, case in enumerate(CASES)
]


@tiled
@pytest.mark.parametrize(("x", "features", "window", "groups", "kinds", "zeros", "constant"), ROWS)
def test_the_cases_of_vectors(x, features, window, groups, kinds, zeros, constant):
    form, arrays, expected = made(x, features, window, groups, kinds, zeros, constant)
    np.testing.assert_array_equal(both(form, arrays), expected)


@tiled
@pytest.mark.parametrize("name", EPILOGUES)
def test_every_epilogue(name):
    with tiles(True) as chosen:
        for x, features in (((1, 29, 1, 20), 45), ((1, 9, 17, 4), 33), ((1, 65, 1, 20), 16)):
            vectors.check_epilogue(name, x, features)
    assert all(chosen)


@tiled
def test_nothing_outside():
    """Slices of buffers, and an input whose last byte is the last of a page that may be read."""
    with tiles(True) as chosen:
        vectors.test_slices_of_buffers()
        vectors.test_reads_nothing_beyond_the_end()
    assert all(chosen)


@st.composite
def contractions(draw):
    """The input's shape, features, the window, the input's dtype and zero point."""
    if draw(st.booleans()):
        shape = draw(st.tuples(st.integers(1, 2), st.integers(1, 9), st.integers(1, 40), st.integers(1, 150)))
        window = PLAIN
    else:
        size = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
        dilations = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
        low = [(s - 1) * d + 1 for s, d in zip(size, dilations)]
        padding = tuple(draw(st.integers(0, low[i // 2] - 1)) for i in range(4))
        high, wide = draw(st.integers(low[0], low[0] + 6)), draw(st.integers(low[1], low[1] + 40))
        shape = draw(st.integers(1, 2)), high, wide, draw(st.integers(1, 40))
        window = Window(size, draw(st.tuples(st.integers(1, 3), st.integers(1, 3))), dilations, padding)
    kind = draw(st.sampled_from([int8, uint8]))
    return shape, draw(st.integers(1, 70)), window, kind, draw(st.integers(int(kind.min), int(kind.max)))


@tiled
@given(contractions())
@settings(max_examples=examples(12), deadline=None)
def test_drawn_contractions(drawn):
    shape, features, window, kind, zero = drawn
    form, arrays, expected = made(shape, features, window, 1, (kind, int8), (zero, 0), True)
    np.testing.assert_array_equal(both(form, arrays), expected)
    factors = np.random.default_rng(2).uniform(0.0005, 0.005, features).astype(np.float32)
    more = (Buffer("factors", float32, factors.shape, factors),)
    form, arrays, _ = made(shape, features, window, 1, (kind, int8), (zero, 0), True, requantised(), more)
    ideal = np.clip(np.rint(expected * factors.astype(np.float64)) + 3, -128, 127)
    assert np.abs(both(form, arrays) - ideal).max() <= 1


@tiled
@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 70), st.booleans(), st.integers(1, 3), st.data())
@settings(max_examples=10, deadline=None)
def test_drawn_products(rows, depth, columns, turned, batches, data):
    kinds = data.draw(st.tuples(*[st.sampled_from([int8, uint8])] * 2))
    zeros = tuple(data.draw(st.integers(int(k.min), int(k.max))) for k in kinds)
    rng = np.random.default_rng(rows)
    x, y = integers(rng, kinds[0], (batches, rows, depth)), integers(rng, kinds[1], (batches, depth, columns))
    expected = (x.astype(int) - zeros[0]) @ (y.astype(int) - zeros[1])
    if turned:
        y = np.ascontiguousarray(y.swapaxes(-1, -2))
    left, right = buffer(x, "a"), buffer(y, "b")
    form = MatMul(Buffer("y", int32, expected.shape), left, right, (), SUM, False, turned, *zeros)
    np.testing.assert_array_equal(both(form, {left: x, right: y}), expected)


@tiled
@pytest.mark.parametrize("rounding", ["symmetric", "asymmetric"])
@pytest.mark.parametrize(("shape", "window"), [((40, 1, 1, 64), PLAIN), ((2, 9, 28, 8), Window((3, 3), padding=SAME))])
def test_rounded_floats(shape, window, rounding):
    """Sums that floats are made of, which start with nothing: the numbers of test_gemm_hybrid.py, with either kind."""
    rng = np.random.default_rng(4)
    xs, ws = rng.standard_normal(shape).astype(np.float32), integers(rng, int8, (40, *window.size, shape[3]))
    x, operands = buffer(xs), [Buffer(n, float32, (40,), rng.random(40).astype(np.float32)) for n in ("scales", "bias")]
    y = Buffer("y", float32, (*shape[:3], 40))
    form = Contract(y, x, Buffer("w", int8, ws.shape, ws), tuple(operands), EXPR, window, 1, rounding=rounding)
    assert both(form, {x: xs}).any()


@tiled
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads(threads):
    """Workers size tiles of their own; plans of which only some steps use tiles."""
    form, arrays, expected = made((1, 30, 30, 24), 70, Window((3, 3), padding=SAME), 1, (int8, int8), (9, 0), True)
    with tiles(True):
        plan = plan_of(LoopGraph("test", tuple(arrays), (form.output,), (form,)))
        plan.pack()
        running, out = plan.bind(threads), np.empty(form.output.shape, np.int32)
        running.connect({form.output: out.ctypes.data, **{b: x.ctypes.data for b, x in arrays.items()}})
        for _ in range(20):
            out[:] = -1
            running.run()
            np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("rows", "features", "quads", "products", "wanted"),
    [
        (3136, 64, 16, 3136 * 64 * 64, (32, 2, 16, 16)),  # a pixel of 64 channels
        (12544, 16, 8, 12544 * 16 * 32, (32, 1, 16, 8)),  # one vector of channels
        (49, 512, 36, 49 * 512 * 144, (32, 2, 16, 12)),  # 36 quads are three times 12
        (1, 1000, 320, 1000 * 1280, None),  # a row: as quick as the filter is read
        (784, 64, 17, 784 * 64 * 68, None),  # 17 quads go one by one
        (784, 64, 4, 784 * 64 * 16, None),  # shallow
        (16, 32, 16, 16 * 32 * 64, None),  # little
        (64, 64, 0, 0, None),
    ],
)
def test_when(rows, features, quads, products, wanted):
    actual = register_tiles.amx_tile(AMX, rows, features, quads, products)
    assert wanted == (actual and (actual.rows, actual.vectors, actual.lanes, actual.depth))
    narrow = AMX._replace(vector_bytes=32)  # a processor that hides its wide vectors
    for target in (NAMED["x86-64-v4-vnni"], narrow):
        assert register_tiles.amx_tile(target, rows, features, quads, products) is None


@pytest.mark.parametrize(("rows", "vectors"), [pytest.param(16, 1, marks=pytest.mark.slow), (32, 2)])
def test_compiles_for_a_target_with_tiles(rows, vectors):
    shape = {**SHAPE, "rows": rows, "vectors": vectors, "narrow": vectors == 2}
    for family, more in (
        (gemm_int8, {"parts": 1, "blocked": False, "halved": False}),
        (convolution_int8, {"by_line": False}),
    ):
        for dtype in (int8, uint8):
            constants = {**shape, **more, "tiled": dtype}
            assert AMX.object_code(str(family.emit(AMX, **constants)))
    with pytest.raises(UnimplementedError, match="x86-64-v4-vnni has no tiles"):
        convolution_int8.emit(NAMED["x86-64-v4-vnni"], **{**shape, "by_line": False, "tiled": int8})
