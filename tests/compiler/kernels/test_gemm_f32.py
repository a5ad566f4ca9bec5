"""Contractions of float32 against sums in float64: every kernel that the selector may choose, odd sizes, any split."""

import dataclasses

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, run_in_used_memory, split, targets

from opwright.compiler.kernels import NoKernel, contractions_f32
from opwright.compiler.kernels.contractions_winograd import LEAST_PIXELS, faster_patch
from opwright.compiler.kernels.convolution_f32 import convolution
from opwright.compiler.kernels.epilogue import Epilogue, without_bias
from opwright.compiler.kernels.gemm_deep_f32 import gemm_deep
from opwright.compiler.kernels.gemm_f32 import gemm
from opwright.compiler.kernels.gemv_f32 import gemv
from opwright.compiler.kernels.grouped_convolution_f32 import GroupTile, convolution_grouped, is_narrow
from opwright.compiler.kernels.tiling import blocks, row_tiles
from opwright.compiler.kernels.weight_packing_f32 import pack
from opwright.compiler.kernels.winograd import transform_filter, winograd
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import apply, arg, const, scalar
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import Contract
from opwright.compiler.loops.planner import plan_of
from opwright.compiler.target import NAMED, host
from opwright.core import dtypes
from opwright.core.dtypes import bfloat16, float16, float32
from thorough import sampled

SUM = arg(0, float32)
BIASED = apply("add", SUM, arg(1, float32))
PLAIN = Window((1, 1))


def sums(x: np.ndarray, w: np.ndarray, window: Window, groups: int, shape: tuple[int, ...]) -> np.ndarray:
    """The contraction in float64, as its definition says."""
    (sy, sx), (dy, dx), (top, _, left, _) = window.strides, window.dilations, window.padding
    _, oh, ow, f = shape
    padded = np.pad(x.astype(np.float64), ((0, 0), (top, 64), (left, 64), (0, 0)))
    out = np.zeros(shape)
    c, each = w.shape[3], f // groups
    for ky, kx in np.ndindex(*window.size):
        part = padded[:, ky * dy :, kx * dx :][:, : (oh - 1) * sy + 1 : sy, : (ow - 1) * sx + 1 : sx]
        for g in range(groups):
            filters = w[g * each : (g + 1) * each, ky, kx].astype(np.float64)
            out[..., g * each : (g + 1) * each] += part[..., g * c : (g + 1) * c] @ filters.T
    return out


def out_shape(x: tuple[int, ...], features: int, window: Window) -> tuple[int, int, int, int]:
    """Return the output shape of a contraction of an input of shape x."""
    size = [
        (x[1 + i] + sum(window.padding[2 * i : 2 * i + 2]) - (window.size[i] - 1) * window.dilations[i] - 1)
        // window.strides[i]
        + 1
        for i in range(2)
    ]
    return x[0], size[0], size[1], features


def close(found: np.ndarray, wanted: np.ndarray, depth: int) -> None:
    """Compare within 1e-5 of the standard deviation of sums of that many unit normal products."""
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * max(1.0, depth**0.5))


def case(x, features, window=PLAIN, groups=1, dtype=float32, constant=True):
    """One row of the table."""
    kinds = f"{window.size[0]}x{window.size[1]}s{window.strides[1]}d{window.dilations[1]}"
    name = f"{'x'.join(map(str, x))}-{features}-{kinds}{'' if groups == 1 else f'-g{groups}'}-{dtype.short}"
    return pytest.param(x, features, window, groups, dtype, constant, id=name + ("" if constant else "-dynamic"))


CASES = [
    # pointwise: rows by channels into features; every kind of last panel
    *(
        case((1, m, 1, k), f)
        for m, k, f in [
            (3, 1, 1),
            (14, 7, 16),
            (29, 16, 17),
            (49, 5, 32),
            (50, 33, 33),
            (13, 8, 48),
            (31, 64, 49),
            (127, 3, 65),
            (400, 96, 24),
            (7, 600, 96),
            (49, 160, 960),
        ]
    ),
    case((2, 5, 7, 11), 40),
    # one row or two: the filter as it is
    *(case((m, 1, 1, k), f) for m, k, f in [(1, 1, 1), (1, 16, 16), (2, 17, 33), (1, 1280, 100), (1, 31, 47)]),
    case((5, 1, 1, 37), 21, constant=False),
    case((1, 40, 1, 37), 45, constant=False),
    *(case((m, 1, 1, 35), 37, dtype=d) for m in (1, 20) for d in (float16, bfloat16)),
    case((20, 1, 1, 35), 37, dtype=float16, constant=False),
    # windows: inside and over the borders, lines long and short, strides, dilations, batches, groups
    case((1, 33, 31, 3), 32, Window((3, 3), (2, 2), padding=(0, 1, 0, 1))),
    case((1, 33, 31, 3), 16, Window((3, 3), (2, 2), padding=(1, 1, 1, 1))),
    case((2, 9, 30, 5), 33, Window((3, 2), padding=(1, 1, 0, 1))),
    case((2, 7, 7, 20), 33, Window((5, 3), padding=(2, 2, 1, 1))),
    case((1, 14, 14, 32), 48, Window((1, 1), (2, 2))),
    case((1, 29, 29, 32), 48, Window((1, 1), (2, 2))),
    case((1, 20, 40, 4), 24, Window((3, 3), dilations=(2, 1), padding=(2, 2, 1, 1))),
    case((1, 20, 21, 4), 24, Window((3, 3), dilations=(1, 2), padding=(1, 1, 2, 2))),
    case((1, 3, 2, 4), 5, Window((5, 5), padding=(3, 3, 3, 3))),
    case((1, 1, 40, 9), 31, Window((1, 7), (1, 3), padding=(0, 0, 3, 3))),
    case((3, 4, 4, 70), 70, Window((2, 2), (3, 1))),
    case((1, 12, 12, 12), 24, Window((3, 3), padding=(1, 1, 1, 1)), 3),
    case((1, 12, 12, 12), 24, groups=4),
    case((1, 15, 15, 6), 20, Window((3, 3), (2, 2), padding=(1, 1, 1, 1)), 2, constant=False),
    case((1, 12, 20, 6), 20, Window((3, 3), padding=(1, 1, 1, 1)), dtype=float16),
    # groups of few channels, whose outputs share vectors or fill them: as many outputs, more, less; lines of no pixel
    case((2, 9, 17, 32), 32, Window((3, 3), padding=(1, 1, 1, 1)), 8),
    case((1, 8, 9, 16), 32, Window((3, 2), (2, 2), padding=(0, 1, 1, 0)), 8),
    case((1, 7, 13, 64), 32, Window((3, 3), dilations=(2, 3), padding=(2, 2, 3, 3)), 8),
    case((1, 6, 30, 24), 24, Window((5, 3), padding=(4, 4, 1, 1)), 3, float16),
    case((1, 4, 5, 64), 64, Window((3, 3), (1, 2), padding=(1, 1, 1, 1)), 2),
    case((3, 5, 21, 16), 64, groups=4),
    case((1, 3, 3, 8), 64, Window((7, 7), padding=(5, 5, 5, 5)), 8),
    # and whose outputs leave lanes of vectors unused: of several groups, of one, of a part of one
    case((1, 5, 9, 18), 18, Window((3, 3), padding=(1, 1, 1, 1)), 6),
    case((2, 5, 9, 24), 24, Window((3, 3), (2, 1), padding=(1, 1, 1, 1)), 2),
    case((1, 5, 9, 20), 80, groups=2),
    # all outputs of a group are less than half of a vector, and groups share none
    case((2, 7, 9, 15), 10, Window((3, 3), (1, 2), padding=(1, 1, 1, 1)), 5),
    case((1, 6, 14, 17), 17, Window((3, 2), padding=(1, 1, 0, 1)), 17),
    # few channels, which are one group: strided, more outputs than a block; as many by panels; one column
    case((2, 13, 15, 3), 7, Window((3, 3), (2, 2), padding=(0, 1, 2, 0))),
    case((1, 9, 10, 8), 72, Window((5, 4), dilations=(1, 2), padding=(2, 2, 3, 3))),
    case((2, 9, 15, 9), 7, Window((3, 3), (2, 2), padding=(0, 1, 2, 1))),
    case((2, 23, 1, 5), 20, Window((4, 3), (2, 1), padding=(2, 1, 1, 1))),
]


def contraction(x, features, window, groups, dtype, constant, expr=BIASED, more=()):
    """The form, its arrays, and its sums with the bias added."""
    rng = np.random.default_rng(7)
    xs = rng.standard_normal(x).astype(np.float32)
    ws = rng.standard_normal((features, *window.size, x[3] // groups)).astype(dtype.np)
    bias = rng.standard_normal(features).astype(np.float32)
    source, filters = buffer(xs), Buffer("w", dtype, ws.shape, ws if constant else None)
    out = Buffer("y", expr.dtype, out_shape(x, features, window))
    biases = Buffer("bias", float32, bias.shape, bias)
    form = Contract(out, source, filters, (biases, *more), expr, window, groups)
    given = {source: xs} if constant else {source: xs, filters: ws}
    return form, given, sums(xs, ws, window, groups, out.shape) + bias


@pytest.mark.parametrize(
    ("x", "features", "window", "groups", "dtype", "constant"),
    sampled(CASES, 3, by=lambda x, features, window, groups, dtype, constant: (window == PLAIN, groups > 1, dtype)),
)
def test_sums(x, features, window, groups, dtype, constant):
    form, given, wanted = contraction(x, features, window, groups, dtype, constant)
    found = run(form, given)
    close(found, wanted, form.filter.size // features)
    for parts in (2, 5):
        assert np.array_equal(split(form, given, parts), found)


@pytest.mark.parametrize(
    ("x", "features", "padding", "dtype", "m"),
    [
        ((1, 14, 15, 32), 64, (1, 1, 1, 1), float32, 4),
        pytest.param((5, 9, 6, 64), 96, (1, 1, 1, 1), float32, 4, marks=pytest.mark.slow),
        pytest.param((1, 8, 12, 48), 64, (0, 0, 0, 0), float32, 4, marks=pytest.mark.slow),
        ((1, 10, 7, 64), 32, (2, 0, 1, 3), float16, 4),
        ((1, 7, 13, 256), 192, (1, 1, 1, 1), float32, 2),
    ],
)
def test_winograd(x, features, padding, dtype, m):
    """Within 1e-4 of what the sums are like; the same bits for any split; slices of buffers."""
    form, given, expected = contraction(x, features, Window((3, 3), padding=padding), 1, dtype, True, RELU)
    assert faster_patch(x[3], features, expected.shape[1:3], 16) == m
    actual = run(form, given)
    np.testing.assert_allclose(actual, np.maximum(expected, 0), atol=1e-4 * expected.std(), rtol=1e-5)
    assert np.array_equal(split(form, given, 3), actual)
    filters = Buffer("w", dtype, form.filter.shape)
    given[filters], form = form.filter.constant, dataclasses.replace(form, filter=filters)
    names = [step.code.name for step in plan_of(LoopGraph("dynamic", tuple(given), (form.output,), (form,))).steps]
    patches = form.output.size // features >= LEAST_PIXELS
    assert any("transform_filter" in name for name in names) == patches
    if patches:  # a filter of run time is transformed by the same code
        assert np.array_equal(run_in_used_memory(form, given), actual)


def test_where_winograd_wins():
    for channels, features, pixels in [(24, 64, 20), (64, 24, 20), (16, 64, 20), (64, 64, 5), (512, 512, 14)]:
        assert faster_patch(channels, features, (pixels, pixels), 16) == 0


RELU = apply("relu", BIASED)
RELU6 = apply("relu6", BIASED)
HARD_SWISH = apply("hard_swish", BIASED)
SIGMOID = apply("sigmoid", BIASED)
EPILOGUES = {
    "relu6": (RELU6, lambda s, r: np.clip(s, 0, 6)),
    "hard_swish": (HARD_SWISH, lambda s, r: s * np.clip(s + 3, 0, 6) / 6),
    "sigmoid": (SIGMOID, lambda s, r: 1 / (1 + np.exp(-s))),
    "residual": (apply("relu", apply("add", BIASED, arg(2, float32))), lambda s, r: np.maximum(s + r, 0)),
    "twice": (apply("mul", SUM, apply("add", SUM, arg(1, float32))), None),
    "scaled": (apply("mul", BIASED, scalar(0.25, float32)), lambda s, r: s * 0.25),
    "below": (
        apply("minimum", apply("mul", BIASED, arg(2, float32)), const(1.5, float32)),
        lambda s, r: np.minimum(s * r, 1.5),
    ),
}


KINDS = {"gemm": (1, 30, 1, 20), "gemv": (1, 1, 1, 20), "convolution": (1, 9, 17, 4)}
FEATURES = (16, 45)


@pytest.mark.parametrize(
    ("name", "kind", "features"),
    [  # quick: each epilogue and each kind, the features in turn
        pytest.param(name, kind, features, marks=() if (i + j + k) % 6 == 0 else pytest.mark.slow)
        for i, name in enumerate(EPILOGUES)
        for j, kind in enumerate(KINDS)
        for k, features in enumerate(FEATURES)
    ],
)
def test_epilogues(name, kind, features):
    (expr, of), x = EPILOGUES[name], KINDS[kind]
    window = Window((3, 3), padding=(1, 1, 1, 1)) if x[3] == 4 else PLAIN
    rest = np.random.default_rng(3).standard_normal((*x[:3], features)).astype(np.float32)
    more = (buffer(rest, "rest"),) if name in ("residual", "below") else ()
    form, given, total = contraction(x, features, window, 1, float32, True, expr, more)
    given |= dict.fromkeys(more, rest)
    if of is None:
        wanted = (total - form.operands[0].constant) * total
    else:
        wanted = of(total, rest)
    np.testing.assert_allclose(run(form, given), wanted, rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("x", "window"), [((1, 30, 1, 20), PLAIN), ((1, 9, 17, 12), Window((3, 3), padding=(1, 1, 1, 1)))], ids=str
)
def test_activations_are_bounds_of_one_kernel(x, window):
    """Layers with a ReLU, a ReLU6 and none share machine code on x86; NaN and infinities pass as they did."""
    features = 16
    special = np.array([np.nan, np.inf, -np.inf, 7.0, -1.0, -0.0], np.float32)
    codes = set()
    above = apply("maximum", const(0.0, float32), BIASED)  # as activations of nodes are lowered
    within = apply("minimum", const(6.0, float32), above)
    for expr, low, high in ((BIASED, -np.inf, np.inf), (above, 0, np.inf), (within, 0, 6)):
        form, arrays, total = contraction(x, features, window, 1, float32, True, expr)
        codes |= {
            step.code.address for step in plan_of(LoopGraph("test", tuple(arrays), (form.output,), (form,))).steps
        }
        np.testing.assert_allclose(run(form, arrays), np.clip(total, low, high), rtol=1e-5, atol=1e-4)
        if window is PLAIN:  # one channel, times 1: sums are the numbers themselves
            pixels = np.resize(special, (1, 30, 1, 1))
            ones = Buffer("ones", float32, (features, 1, 1, 1), np.ones((features, 1, 1, 1), np.float32))
            zeros = Buffer("zeros", float32, (features,), np.full(features, -0.0, np.float32))
            y = Buffer("y", float32, (1, 30, 1, features))
            plain = Contract(y, buffer(pixels), ones, (zeros,), expr, PLAIN, 1)
            expected = np.where(pixels < low, low, np.where(pixels > high, high, pixels))
            np.testing.assert_array_equal(run(plain, {plain.input: pixels}), np.broadcast_to(expected, y.shape))
    assert len(codes) == 1 or not host().is_x86


@pytest.mark.parametrize("dtype", [float32, float16], ids=lambda t: t.name)
def test_one_row_by_blocks_of_channels(dtype):
    """Blocks of channels and a part of one, whatever the vectors; operands of a channel and of an element."""
    rest = np.random.default_rng(4).standard_normal((1, 1, 1, 555)).astype(np.float32)
    more = (buffer(rest, "rest"),)
    form, given, total = contraction((1, 1, 1, 57), 555, PLAIN, 1, dtype, True, EPILOGUES["residual"][0], more)
    given |= dict.fromkeys(more, rest)
    actual = run(form, given)
    np.testing.assert_allclose(actual, EPILOGUES["residual"][1](total, rest), rtol=2e-5, atol=1e-4)
    np.testing.assert_array_equal(split(form, given, 3), actual)


def test_slices_of_buffers():
    """Input and output inside the last axes of others."""
    rng = np.random.default_rng(1)
    for window in (PLAIN, Window((3, 3), padding=(1, 1, 1, 1))):
        wide = Buffer("wide", float32, (1, 6, 16, 30))
        x = Buffer("x", float32, (1, 6, 16, 20), parent=wide, start=4)
        whole = Buffer("whole", float32, (1, 6, 16, 50))
        y = Buffer("y", float32, (1, 6, 16, 33), parent=whole, start=10)
        xs = rng.standard_normal(wide.shape).astype(np.float32)
        ws = rng.standard_normal((33, *window.size, 20)).astype(np.float32)
        form = Contract(y, x, Buffer("w", float32, ws.shape, ws), (), SUM, window)
        found = run(form, {wide: xs})
        close(found[..., 10:43], sums(xs[..., 4:24], ws, window, 1, y.shape), 180)
        assert (np.delete(found, slice(10, 43), -1).view(np.uint8) == 0x5A).all()


def test_what_is_not_made():
    w = Buffer("w", float32, (4, 1, 1, 3), np.zeros((4, 1, 1, 3), np.float32))
    x64, y64 = (Buffer("b", dtypes.float64, (1, 1, 1, n)) for n in (3, 4))
    with pytest.raises(NoKernel, match="float64"):
        run(Contract(y64, x64, w, (), arg(0, dtypes.float64), PLAIN), {})


def test_bias_starts_the_sum():
    bias = Buffer("b", float32, (4,), np.zeros(4, np.float32))
    unknown = Buffer("b", float32, (4,))
    assert without_bias(RELU6, (bias,)) == (bias, apply("relu6", SUM), ())
    assert without_bias(apply("mul", BIASED, apply("sigmoid", BIASED)), (bias,)) == (
        bias,
        apply("mul", SUM, apply("sigmoid", SUM)),
        (),
    )
    third = apply("add", BIASED, arg(2, float32))
    assert without_bias(third, (bias, unknown)) == (bias, apply("add", SUM, arg(1, float32)), (unknown,))
    later = apply("add", apply("mul", SUM, arg(1, float32)), arg(2, float32))
    for expr, operands in [(RELU6, (unknown,)), (later, (bias, bias)), (EPILOGUES["twice"][0], (bias,))]:
        assert without_bias(expr, operands) == (None, expr, operands)


def test_tiles():
    assert row_tiles(49, 14) == (13, 4, 1)
    for rows in range(1, 100):
        for most in (1, 4, 14):
            height, tiles, tall = row_tiles(rows, most)
            assert height <= most
            assert 0 < tall <= tiles
            assert tall * height + (tiles - tall) * (height - 1) == rows
    for tiles, panels, work in [(1, 1, 100), (900, 3, 10_000), (4, 40, 300_000), (14, 8, 900_000)]:
        block = blocks(tiles, panels, 20_000, 40_000, work)
        assert block.items == -(-tiles // block.tiles) * -(-panels // block.panels)


@pytest.mark.parametrize(
    ("channels", "features", "groups"), [(32, 32, 8), (40, 40, 8), (96, 96, 8), (3, 40, 1), (15, 10, 5)]
)
def test_groups_share_a_step(channels, features, groups):
    """One step for all groups, whose output may be the memory of a residual."""
    rest = np.random.default_rng(4).standard_normal((1, 9, 17, features)).astype(np.float32)
    more, window = (buffer(rest, "rest"),), Window((3, 3), padding=(1, 1, 1, 1))
    (expr, wanted) = EPILOGUES["residual"]
    form, given, total = contraction((1, 9, 17, channels), features, window, groups, float32, True, expr, more)
    given |= dict.fromkeys(more, rest)
    steps = plan_of(LoopGraph("groups", tuple(given), (form.output,), (form,))).steps
    grouped = groups > 1 or is_narrow(form, host())
    assert [step.code.name.split(".")[-1] for step in steps] == ["convolution_grouped" if grouped else "convolution"]
    np.testing.assert_allclose(run_in_used_memory(form, given), wanted(total, rest), rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize(("name", "narrow"), [("x86-64-v2", True), ("x86-64-v3", True), ("aarch64-dotprod", False)])
def test_which_targets_read_few_channels_as_one_group(name, narrow):
    """Test that x86 does, where it takes less time, and 64-bit ARM does not; neither does with windows of one line."""
    window = Window((3, 3), (2, 2), padding=(0, 1, 0, 1))
    form, _, _ = contraction((1, 33, 33, 3), 16, window, 1, float32, True)
    assert is_narrow(form, NAMED[name]) == narrow
    form, _, _ = contraction((1, 33, 33, 3), 16, Window((1, 3)), 1, float32, True)
    assert not is_narrow(form, NAMED[name])


LIGHT, HEAVY = Epilogue(apply("relu6", SUM), (), ()), Epilogue(apply("sigmoid", SUM), (), ())
GROUPED = {"more": 0, "stride": 2, "rows": 2, "short": False, "epilogue": LIGHT}
CODE = {"more": 0, "rows": 2, "short": True, "wide": True, "halves": 1}


@targets(
    (gemm, CODE | {"epilogue": LIGHT, "short": False}),
    (
        gemm_deep,
        {
            "more": 0,
            "rows": 2,
            "short": False,
            "epilogue": LIGHT,
            "turned": False,
            "packs": False,
            "interleaves": False,
        },
    ),
    (convolution, CODE | {"epilogue": HEAVY, "lined": True, "short": False}),
    (convolution, CODE | {"epilogue": LIGHT, "lined": False, "wide": False}),
    (convolution_grouped, GROUPED | {"tile": GroupTile(2, 2, 4, 1, 4)}),
    (transform_filter, {"dtype": float16, "m": 2}),
    (gemv, {"more": 0, "dtype": float16, "epilogue": LIGHT}),
    (pack, {"dtype": bfloat16, "biased": True, "along": True}),
    (pack, {"dtype": float32, "biased": False, "along": False}),
)
def test_targets(family, constants, names):
    compiles_for(names, family, **constants)


@pytest.mark.slow
@targets(
    *((winograd, {"more": 0, "rows": 3, "short": True, "m": m, "dtype": float32, "epilogue": LIGHT}) for m in (2, 4)),
    (gemm, CODE | {"epilogue": HEAVY, "rows": 6, "halves": 3}),
    (
        gemm_deep,
        {"more": 0, "rows": 6, "short": True, "epilogue": HEAVY, "turned": True, "packs": True, "interleaves": False},
    ),
)
def test_targets_of_long_kernels(family, constants, names):
    compiles_for(names, family, **constants)


@pytest.mark.parametrize(
    ("x", "features", "window"),
    [
        ((3, 32, 33, 16), 7, Window((30, 31))),  # the gradient by a first layer's filter
        ((2, 34, 35, 5), 7, Window((34, 33), (1, 1), (1, 1), (1, 1, 0, 1))),
        ((1, 39, 40, 9), 24, Window((20, 19), (1, 2), (2, 2), (2, 0, 1, 1))),
    ],
    ids=str,
)
def test_few_outputs_with_long_sums_are_computed_in_parts(x, features, window, monkeypatch):
    """Test that errors are below those of one sum, and the bits those of one thread."""
    rng = np.random.default_rng(7)
    images = rng.standard_normal(x, dtype=np.float32)
    filters = rng.standard_normal((features, *window.size, x[3]), dtype=np.float32)
    shape = out_shape(x, features, window)
    source, taps = buffer(images), buffer(filters, "filter")
    form = Contract(Buffer("y", float32, shape), source, taps, (), SUM, window, 1)
    inputs = {source: images, taps: filters}
    exact = sums(images, filters, window, 1, shape)

    def errors():
        result = run_in_used_memory(form, inputs)
        return result, np.sqrt(np.mean((result - exact) ** 2))

    in_parts, error = errors()
    np.testing.assert_array_equal(in_parts, run(form, inputs, threads=2))
    monkeypatch.setattr(contractions_f32, "PARTS", 1)
    whole, of_whole = errors()
    assert (in_parts != whole).any()
    assert error < 0.8 * of_whole
