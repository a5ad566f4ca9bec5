"""Convolution, depthwise convolution and projection a band at a time: the same bits as one after the other, alone and
on threads; where it is done; what plans say of it and how they are kept."""

import dataclasses

import numpy as np
import pytest
from foreign import RUNNERS
from foreign_plans import run_forms_on
from hypothesis import example, given, settings
from hypothesis import strategies as st
from loop_semantics import meaning
from new_process import forget_code

from opwright.compiler import plan_cache, plan_serialization
from opwright.compiler.kernels import NoKernel, gemm_int8
from opwright.compiler.loops import fusion
from opwright.compiler.loops.buffers import Buffer, RowBand, Window, ring_lines
from opwright.compiler.loops.expressions import apply, arg, convert, quantize, scalar
from opwright.compiler.loops.fusion import fused
from opwright.compiler.loops.graph import LoopGraph, verify
from opwright.compiler.loops.ops import Banded, Contract, Depthwise, Map
from opwright.compiler.loops.planner import plan_of
from opwright.compiler.native.image import runs_images
from opwright.compiler.target import host
from opwright.core import flags
from opwright.core.dtypes import float32, int8, int32
from thorough import crossed, examples

RNG = np.random.default_rng(17)
PIXEL = Window((1, 1))
SAME = {s: Window((3, 3), (s, s), (1, 1), p) for s, p in ((1, (1, 1, 1, 1)), (2, (0, 1, 0, 1)))}
SUM, INT = arg(0, float32), arg(0, int32)
RELU6 = apply("relu6", apply("add", SUM, arg(1, float32)))
RESIDUAL = apply("add", apply("add", SUM, arg(1, float32)), arg(2, float32))
WIDTH = 42  # tiles of 14 pixels, and of 6: few kernels for all heights


def output(name, x, features, window, dtype=None):
    (kh, kw), (sh, sw), (dh, dw), (top, bottom, left, right) = (
        window.size,
        window.strides,
        window.dilations,
        window.padding,
    )
    high = (x.shape[1] + top + bottom - (kh - 1) * dh - 1) // sh + 1
    wide = (x.shape[2] + left + right - (kw - 1) * dw - 1) // sw + 1
    return Buffer(name, dtype or x.dtype, (x.shape[0], high, wide, features))


def weights(name, dtype, *shape):
    drawn = RNG.normal(size=shape) if dtype is float32 else RNG.integers(-127, 128, shape)
    return Buffer(name, dtype, shape, drawn.astype(dtype.np))


def requantised(scale, zero, low=-128):
    total = convert(apply("add", INT, arg(1, int32)), float32)
    return quantize(apply("mul", total, scalar(scale, float32)), zero, int8, low, 127)


def block(x, middle=24, projected=16, window=SAME[1], first=PIXEL, residual=False):
    """The forms of an inverted residual block: expanded, depthwise, projected; middle or projected 0: without."""
    forms = []
    floats = x.dtype is float32
    bias = float32 if floats else int32

    def named(more):
        return {} if floats else {"input_zero": more}

    b = x
    if middle:
        y = output("a", b, middle, first)
        w = weights("wa", x.dtype, middle, *first.size, b.shape[3])
        expr = RELU6 if floats else requantised(0.002, -128)
        forms.append(Contract(y, b, w, (weights("ba", bias, middle),), expr, first, **named(3), origin=("CONV_2D 0",)))
        b = y
    channels = b.shape[3]
    y = output("d", b, channels, window)
    expr = RELU6 if floats else requantised(0.01, 5)
    zero = named(-128 if middle else 3)
    forms.append(
        Depthwise(
            y,
            b,
            weights("wd", x.dtype, *window.size, channels),
            (weights("bd", bias, channels),),
            expr,
            window,
            **zero,
            origin=("DEPTHWISE_CONV_2D 1",),
        )
    )
    if projected:
        z = output("z", y, projected, PIXEL)
        operands = (weights("bz", bias, projected), *([x] if residual else []))
        expr = RESIDUAL if residual else apply("add", SUM, arg(1, float32)) if floats else requantised(0.003, 9)
        forms.append(
            Contract(
                z,
                y,
                weights("wz", x.dtype, projected, 1, 1, channels),
                operands,
                expr,
                PIXEL,
                **named(5),
                origin=("CONV_2D 2",),
            )
        )
    return forms


def banded(forms, lines):
    return Banded(forms[-1].output, tuple(forms), lines, origin=sum((f.origin for f in forms), ()))


def image(*shape, dtype=float32):
    return Buffer("t0", dtype, shape)


def drawn(x):
    result = RNG.normal(size=x.shape) if x.dtype is float32 else RNG.integers(-128, 128, x.shape)
    return result.astype(x.dtype.np)


def run(plan, arrays, threads=1):
    plan.pack()
    running = plan.bind(threads)
    (out,) = plan.graph.outputs
    y = np.full(out.shape, 77, out.dtype.np)
    running.connect({out: y.ctypes.data, **{b: a.ctypes.data for b, a in zip(plan.graph.inputs, arrays)}})
    for _ in range(3 if threads > 1 else 1):
        running.run()
    return y


def check(forms, lines, exact=True):
    """In bands, on one thread and on two, as one after the other; and that right."""
    x, y = forms[0].inputs[0], forms[-1].output
    apart = LoopGraph("apart", (x,), (y,), tuple(forms))
    whole = LoopGraph("bands", (x,), (y,), (banded(forms, lines),))
    verify(whole)
    arrays = [drawn(x)]
    expected, plan = run(plan_of(apart), arrays), plan_of(whole)
    assert plan.steps[0].covers == len(plan.steps) - 1 >= 2
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(run(plan, arrays, threads), expected)
    if exact:
        (right,) = meaning(apart, arrays)
        if y.dtype is float32:
            np.testing.assert_allclose(expected, right, rtol=1e-4, atol=1e-3)
        else:
            assert np.abs(expected.astype(int) - right).max() <= 1
    return plan


WINDOWS = [
    SAME[1],
    SAME[2],
    Window((3, 3)),
    Window((5, 3), (2, 1), (1, 1), (2, 2, 1, 1)),
    Window((2, 3), (3, 2), (1, 1), (0, 0, 1, 0)),
    Window((1, 1), (2, 2)),
]


@settings(deadline=None, max_examples=examples(40))
@given(
    st.sampled_from(WINDOWS),
    st.integers(5, 23),
    st.integers(1, 3),
    st.sampled_from([2, 4, 8]),
    st.booleans(),
    st.booleans(),
)
@example(SAME[1], 5, 1, 16, True, True)
@example(SAME[2], 23, 3, 1, True, True)
def test_any_block_of_floats(window, height, batch, lines, before, after):
    x = image(batch, height, WIDTH, 24)
    forms = block(x, 32 * before, 16 * (after or not before), window)
    check(forms, lines, exact=False)


@settings(deadline=None, max_examples=examples(30))
@given(st.sampled_from(WINDOWS[:4]), st.integers(5, 23), st.integers(1, 3), st.sampled_from([2, 4, 8]))
def test_any_block_of_bytes(window, height, batch, lines):
    """Padding is the zero point of what lies between."""
    check(block(image(batch, height, WIDTH, 24, dtype=int8), 32, 16, window), lines, exact=False)


@pytest.mark.skipif(not host().has("amx-int8"), reason="this processor has no tiles, or may not use them")
def test_bands_on_tiles(monkeypatch):
    """Tiles of a band have other rows than those of the whole."""
    for name in ("FEW_ROWS", "FEW_STEPS", "SHALLOW", "FEW_PRODUCTS"):
        monkeypatch.setattr(gemm_int8, name, 1)
    for window in (SAME[1], SAME[2]):
        check(block(image(2, 11, WIDTH, 24, dtype=int8), 32, 16, window), 3, exact=False)


@pytest.mark.parametrize(("dtype", "window"), crossed([float32, int8], WINDOWS, every=4), ids=repr)
def test_is_right(window, dtype):
    check(block(image(2, 11, 9, 8, dtype=dtype), 20, 12, window), 4)


@pytest.mark.parametrize(
    "first",
    [
        Window((3, 3), (2, 2), (1, 1), (0, 1, 0, 1)),
        Window((3, 3), (1, 1), (2, 2), (2, 2, 2, 2)),
        Window((5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),
        Window((1, 1), (2, 2)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [float32, int8])
def test_a_window_before(first, dtype):
    """Each band of it sees its own lines of the image, with the padding that is there."""
    check(block(image(1, 29, 84, 3, dtype=dtype), 16, 24, first=first), 2)


def test_what_is_added_is_read_before_it_is_written_over():
    forms = block(image(1, 17, WIDTH, 16), 32, 16, residual=True)
    x, y = image(1, 17, WIDTH, 16), forms[-1].output
    copied = forms[0].input
    last = Buffer("y", float32, y.shape)
    given, end = Map(copied, (x,), apply("neg", SUM)), Map(last, (y,), apply("neg", SUM))
    plans = [plan_of(LoopGraph("g", (x,), (last,), (given, *f, end))) for f in (forms, [banded(forms, 2)])]
    array = drawn(x)
    np.testing.assert_array_equal(run(plans[0], [array]), run(plans[1], [array], 2))


def test_a_slice_of_a_concatenation_is_written_in_place():
    forms = block(image(2, 13, WIDTH, 16), 32, 16)
    whole = Buffer("whole", float32, (2, 13, WIDTH, 24))
    part = Buffer("part", float32, (2, 13, WIDTH, 16), None, whole, 8)
    forms[-1] = dataclasses.replace(forms[-1], output=part)
    graphs = [LoopGraph("g", (forms[0].input,), (whole,), f) for f in (tuple(forms), (banded(forms, 4),))]
    array = drawn(forms[0].input)
    np.testing.assert_array_equal(*(run(plan_of(g), [array], 2) for g in graphs))


def test_ring_lines():
    """The lines of a band fit, and the new lines of the next band are contiguous."""
    for size in range(1, 8):
        for stride in range(1, 5):
            for lines in range(1, 9):
                kept = ring_lines(Window((size, 1), (stride, 1)), lines)
                assert kept % (lines * stride) == 0
                assert kept >= (lines - 1) * stride + size
                assert kept < (lines - 1) * stride + size + lines * stride


# ---- the rule --------------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """A cache in which the blocks of these tests do not stay."""
    monkeypatch.setattr(fusion, "cache_bytes", lambda: 1 << 14)


def found(forms, *outputs):
    unknown = [f.filter for f in forms if isinstance(f, Depthwise) and f.filter.constant is None]
    graph = LoopGraph("g", (forms[0].inputs[0], *unknown), outputs or (forms[-1].output,), tuple(forms))
    with flags.override(verify=True):
        return [
            tuple(type(p).__name__ for p in f.parts) if isinstance(f, Banded) else type(f).__name__
            for f in fused(graph)[0].ops
        ]


def test_blocks_are_found(small):
    x = image(1, 20, WIDTH, 16)
    assert found(block(x)) == [("Contract", "Depthwise", "Contract")]
    assert found(block(x, projected=0)) == [("Contract", "Depthwise")]
    assert found(block(x, middle=0)) == [("Depthwise", "Contract")]
    assert found(block(x, residual=True)) == [("Contract", "Depthwise", "Contract")]


def test_what_stays_in_the_cache_is_left():
    assert found(block(image(1, 20, WIDTH, 16))) == ["Contract", "Depthwise", "Contract"]


def test_what_others_need_is_left(small):
    forms = block(image(1, 20, WIDTH, 16))
    assert found(forms, forms[-1].output, forms[0].output) == ["Contract", ("Depthwise", "Contract")]
    assert found(forms, forms[-1].output, forms[1].output) == [("Contract", "Depthwise"), "Contract"]
    again = Map(Buffer("again", float32, forms[0].output.shape), (forms[0].output,), apply("neg", SUM))
    assert found([*forms, again], forms[-1].output, again.output) == ["Contract", ("Depthwise", "Contract"), "Map"]


@pytest.mark.parametrize(
    "change",
    [
        lambda a, d, c: (a, dataclasses.replace(d, window=Window((3, 3), (1, 1), (2, 1), (2, 2, 1, 1))), c),
        lambda a, d, c: (a, dataclasses.replace(d, filter=Buffer("given", float32, d.filter.shape)), c),
    ],
)
def test_windows_with_holes_and_unknown_filters_are_left(small, change):
    assert "Depthwise" in found(change(*block(image(1, 20, WIDTH, 16))))


def test_winograds_way_is_not_cut(small):
    """Its patches would be others: the parts run."""
    x = image(1, 24, 56, 64)
    forms = block(x, 64, 16, first=Window((3, 3), (1, 1), (1, 1), (1, 1, 1, 1)))
    graph = LoopGraph("g", (x,), (forms[-1].output,), tuple(forms))
    after, apart = fused(graph)
    with pytest.raises(NoKernel, match="results in bands would differ"):
        plan_of(after)
    plan = plan_of(after, apart)
    assert [type(f).__name__ for f in plan.ops] == ["Contract", "Depthwise", "Contract"]
    array = drawn(x)
    np.testing.assert_array_equal(run(plan, [array]), run(plan_of(graph), [array]))


@pytest.mark.parametrize("width", [9, 16, 42])
@pytest.mark.parametrize("height", [4, 5, 8, 9])
def test_windows_over_lines_of_any_length(small, width, height):
    """Short lines are put together to tiles, and then summed in another order than one line alone: the parts run."""
    forms = block(image(1, height, width, 5), 20, 12, first=Window((3, 3), (1, 1), (1, 1), (1, 1, 1, 1)))
    graph = LoopGraph("g", (forms[0].input,), (forms[-1].output,), tuple(forms))
    array = drawn(forms[0].input)
    np.testing.assert_array_equal(run(plan_of(*fused(graph)), [array]), run(plan_of(graph), [array]))


def test_lines_are_few_where_they_are_long(small, monkeypatch):
    def lines(width, cache):
        monkeypatch.setattr(fusion, "cache_bytes", lambda: cache)
        forms = block(image(1, 40, width, 16), 64)
        (form,) = fused(LoopGraph("g", (forms[0].input,), (forms[-1].output,), tuple(forms)))[0].ops
        return form.lines

    assert [lines(w, 1 << 18) for w in (28, 56, 112)] == [2, 2, 2]
    assert lines(28, 1 << 19) > lines(112, 1 << 19)


@pytest.mark.parametrize(("height", "cache_kib", "is_cut"), [(14, 112, False), (14, 80, True), (64, 448, True)])
def test_small_images_of_which_strands_repeat_many_lines_are_left(monkeypatch, height, cache_kib, is_cut):
    """Strands compute 2 lines of [1, 14, 42, 40] float32, 92 KiB, twice: more than a sixteenth."""
    monkeypatch.setattr(fusion, "cache_bytes", lambda: cache_kib << 10)
    forms = block(image(1, height, WIDTH, 16), 40)
    first = fused(LoopGraph("g", (forms[0].input,), (forms[-1].output,), tuple(forms)))[0].ops[0]
    assert isinstance(first, Banded) == is_cut


# ---- plans -----------------------------------------------------------------------------------------------------------


def test_memory_and_constants_are_not_more():
    forms = block(image(1, 60, WIDTH, 16), 96, 16)
    x, y = forms[0].input, forms[-1].output
    apart, whole = (plan_of(LoopGraph("g", (x,), (y,), f)) for f in (tuple(forms), (banded(forms, 2),)))
    assert whole.arena < apart.arena / 4
    assert sum(c.nbytes for c in whole.constants) == sum(c.nbytes for c in apart.constants)


def test_text():
    forms = block(image(1, 8, WIDTH, 16), 32, 16)
    graph = LoopGraph("g", (forms[0].input,), (forms[-1].output,), (banded(forms, 4),))
    _, head, *parts, _, _ = str(graph).splitlines()
    assert head == f"  z: f32[1, 8, {WIDTH}, 16] = Banded(lines=4):"
    assert [p.split(" = ")[1].split("(")[0] for p in parts] == ["Contract", "Depthwise", "Contract"]
    assert parts[1].startswith("    d: ")
    assert parts[1].endswith("# DEPTHWISE_CONV_2D 1")
    _, first, *others = str(plan_of(graph)).splitlines()
    assert first == "    0 strands() x 2"
    assert [line.split()[1] for line in others] == ["0:"] * 3 + ["1:"] * 3
    assert others[1].endswith("# DEPTHWISE_CONV_2D 1")


def test_profiles_tell_the_parts_apart():
    forms = block(image(1, 8, WIDTH, 16), 32, 16)
    plan = plan_of(LoopGraph("g", (forms[0].input,), (forms[-1].output,), (banded(forms, 4),)))
    plan.pack()
    for threads in (1, 2):
        running = plan.bind(threads)
        arrays = [drawn(forms[0].input), np.zeros(forms[-1].output.shape, np.float32)]
        running.connect({b: a.ctypes.data for b, a in zip((forms[0].input, forms[-1].output), arrays)})
        times = running.profile()
        assert [s.op.origin[0] for s, seconds in times if seconds > 0 and s.op] == [f.origin[0] for f in forms] * 2


@pytest.mark.skipif(not runs_images(), reason="LLVM's own loader is used on this system")
def test_cached_plans_keep_strands(tmp_path, monkeypatch):
    forms = block(image(1, 19, WIDTH, 16), 32, 16, residual=True)
    out = Buffer("t9", float32, forms[-1].output.shape)
    forms[-1] = dataclasses.replace(forms[-1], output=out)
    forget_code(monkeypatch)
    with flags.override(cache_dir=tmp_path):
        plan = plan_of(LoopGraph("g", (forms[0].input,), (out,), (banded(forms, 2),)))
        array = drawn(forms[0].input)
        expected = run(plan, [array])
        plan_serialization.save("bands", [plan], None, {})
        kept = plan_cache.find("bands")
        assert kept is not None
        for threads in (1, 2):
            running = kept.plans[0].bind(threads, lambda index: 0)
            y = np.zeros(out.shape, np.float32)
            running.connect({0: array.ctypes.data, 9: y.ctypes.data})
            running.run()
            np.testing.assert_array_equal(y, expected)
            names = [s.op.origin[0] for s, seconds in running.profile() if s.op and seconds > 0]
            assert set(names) == {f.origin[0] for f in forms}


@pytest.mark.parametrize(
    "name", [pytest.param(t, marks=() if t == "aarch64-dotprod" else pytest.mark.slow) for t in sorted(RUNNERS)]
)
@pytest.mark.parametrize("dtype", [float32, int8])
def test_bands_run_on(name, dtype, tmp_path):
    x = image(1, 9, 10, 8, dtype=dtype)
    forms = block(x, 20, 12, SAME[2])
    array = drawn(x)
    given = {x: array}
    got = run_forms_on(name, tmp_path, [banded(forms, 2)], given)
    (right,) = meaning(LoopGraph("g", (x,), (forms[-1].output,), tuple(forms)), [array])
    if dtype is float32:
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-3)
    else:
        assert np.abs(got.astype(int) - right).max() <= 1


def test_rows_are_addresses():
    """A band of a slice of a concatenation starts where its first pixel's slice does."""
    whole = Buffer("w", float32, (1, 4, 5, 24))
    part = Buffer("p", float32, (1, 4, 5, 16), None, whole, 8)
    assert RowBand("r", float32, (1, 2, 5, 16), of=part, first=10).pitch == 24
