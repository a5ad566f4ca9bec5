"""Contractions of 8 bits against sums in int64: every kernel that the selector may choose, odd sizes, any split."""

import ctypes
import mmap

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels.convolution_int8 import convolution_int8, patches
from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.gemm_int8 import gemm_int8
from opwright.compiler.kernels.grouped_convolution_int8 import GroupTileInt8, convolution_grouped_int8
from opwright.compiler.kernels.narrow_images import columns_as_channels
from opwright.compiler.kernels.tiling import WorkBlocks, evened
from opwright.compiler.kernels.weight_packing_int8 import pack_int8
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import apply, arg, convert, lookup, parametrised, quantize, scalar
from opwright.compiler.loops.ops import Contract
from opwright.core.dtypes import float32, int8, int32, uint8
from thorough import sampled

SUM = arg(0, int32)
BIASED = apply("add", SUM, arg(1, int32))
PLAIN = Window((1, 1))


def sums(x: np.ndarray, w: np.ndarray, window: Window, groups: int, shape: tuple[int, ...]) -> np.ndarray:
    """The contraction in int64, as its definition says; x and w are less their zero points."""
    (sy, sx), (dy, dx), (top, _, left, _) = window.strides, window.dilations, window.padding
    _, oh, ow, f = shape
    padded = np.pad(x.astype(np.float64), ((0, 0), (top, 64), (left, 64), (0, 0)))
    out = np.zeros(shape)
    c, each = w.shape[3], f // groups
    for ky, kx in np.ndindex(*window.size):
        part = padded[:, ky * dy :, kx * dx :][:, : (oh - 1) * sy + 1 : sy, : (ow - 1) * sx + 1 : sx]
        for g in range(groups):
            filters = w[g * each : (g + 1) * each, ky, kx].astype(np.float64)
            out[..., g * each : (g + 1) * each] += part[..., g * c : (g + 1) * c] @ filters.T  # exact below 2^53
    return out.astype(np.int64)


def out_shape(x: tuple[int, ...], features: int, window: Window) -> tuple[int, int, int, int]:
    """Return the output shape of a contraction of an input of shape x."""
    size = [
        (x[1 + i] + sum(window.padding[2 * i : 2 * i + 2]) - (window.size[i] - 1) * window.dilations[i] - 1)
        // window.strides[i]
        + 1
        for i in range(2)
    ]
    return x[0], size[0], size[1], features


def integers(rng: np.random.Generator, dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Over the whole range of a dtype, its ends often."""
    low, high = int(dtype.min), int(dtype.max)
    x = rng.integers(low, high + 1, shape)
    return np.where(rng.random(shape) < 0.1, rng.choice([low, high], shape), x).astype(dtype.np)


def case(x, features, window=PLAIN, groups=1, kinds=(int8, int8), zeros=(-7, 0), constant=True):
    """One row of the table."""
    shape = f"{window.size[0]}x{window.size[1]}s{window.strides[1]}d{window.dilations[1]}"
    name = (
        f"{'x'.join(map(str, x))}-{features}-{shape}{'' if groups == 1 else f'-g{groups}'}-{kinds[0].short}"
        f"{kinds[1].short}-{zeros[0]}-{zeros[1]}{'' if constant else '-dynamic'}"
    )
    return pytest.param(x, features, window, groups, kinds, zeros, constant, id=name)


SAME = (1, 1, 1, 1)
CASES = [
    # pointwise: rows by channels into features; every kind of last panel; whole and broken fours of channels
    *(
        case((1, m, 1, k), f)
        for m, k, f in [
            (3, 1, 1),
            (14, 8, 16),
            (29, 16, 17),
            (49, 5, 32),
            (50, 36, 33),
            (13, 8, 48),
            (31, 64, 49),
            (127, 3, 65),
            (400, 96, 24),
            (7, 600, 96),
            (49, 160, 960),
            (1, 1, 1),
            (1, 20, 480),
            (1, 1282, 100),
            (2, 17, 33),
        ]
    ),
    case((2, 5, 7, 11), 40, zeros=(127, 0)),
    case((37, 1, 1, 21), 21),
    case((37, 1, 1, 20), 21, zeros=(-128, 0)),
    # windows: inside and over the borders, lines long and short, strides, dilations, batches, groups
    case((1, 33, 31, 3), 32, Window((3, 3), (2, 2), padding=(0, 1, 0, 1))),
    case((1, 33, 31, 3), 16, Window((3, 3), (2, 2), padding=SAME)),
    case((1, 40, 56, 3), 40, Window((7, 7), (2, 2), padding=(3, 3, 3, 3)), zeros=(5, 0)),
    case((2, 9, 30, 5), 33, Window((3, 2), padding=(1, 1, 0, 1))),
    case((2, 7, 7, 20), 33, Window((5, 3), padding=(2, 2, 1, 1))),
    case((1, 14, 14, 32), 48, Window((1, 1), (2, 2))),
    case((1, 29, 29, 32), 48, Window((1, 1), (2, 2))),
    case((1, 28, 28, 16), 24, Window((3, 3), padding=SAME), zeros=(3, 0)),
    case((1, 20, 40, 4), 24, Window((3, 3), dilations=(2, 1), padding=(2, 2, 1, 1))),
    case((1, 20, 28, 5), 24, Window((3, 3), dilations=(1, 2), padding=(1, 1, 2, 2))),
    case((1, 20, 21, 4), 24, Window((3, 3), dilations=(1, 2), padding=(1, 1, 2, 2))),
    case((1, 3, 2, 4), 5, Window((5, 5), padding=(3, 3, 3, 3))),
    case((1, 1, 40, 9), 31, Window((1, 7), (1, 3), padding=(0, 0, 3, 3))),
    case((3, 4, 4, 70), 70, Window((2, 2), (3, 1))),
    case((2, 5, 5, 8), 640, Window((3, 3), padding=SAME)),  # windows are copied for so many features
    case((1, 12, 12, 12), 24, Window((3, 3), padding=SAME), 3),
    case((1, 14, 28, 12), 24, Window((3, 3), padding=SAME), 2),
    case((1, 12, 12, 12), 24, groups=4),
    # groups of few channels, whose outputs share a vector or fill it: as many outputs, more, less; parts of fours
    case((2, 9, 17, 32), 32, Window((3, 3), padding=SAME), 8),
    case((1, 8, 9, 32), 64, Window((3, 2), (2, 2), padding=(0, 1, 1, 0)), 16, zeros=(5, 0)),
    case((1, 7, 13, 64), 32, Window((3, 3), dilations=(2, 3), padding=(2, 2, 3, 3)), 8, (uint8, int8), (3, 0)),
    case((1, 6, 30, 48), 48, Window((5, 3), padding=(4, 4, 1, 1)), 3),
    case((1, 5, 3, 24), 32, Window((3, 3), padding=SAME), 4),
    # and whose outputs leave lanes of a vector unused: of several groups, of one, of a part of one
    case((1, 5, 9, 18), 18, Window((3, 3), padding=SAME), 6),
    case((2, 5, 9, 24), 24, Window((3, 3), (2, 1), padding=SAME), 2, zeros=(5, 0)),
    case((1, 5, 9, 20), 80, groups=2),
    # all outputs of a group are less than half of a vector, and groups share none
    case((2, 7, 9, 25), 10, Window((3, 3), (1, 2), padding=SAME), 5),
    case((1, 6, 14, 17), 17, Window((3, 2), padding=(1, 1, 0, 1)), 17, zeros=(5, 0)),
    # other dtypes, zero points of weights, filters that are no constants
    *(
        case((1, m, 1, k), 37, kinds=d, zeros=z)
        for m, k in ((1, 35), (20, 36))
        for d, z in (
            ((uint8, uint8), (128, 121)),
            ((uint8, int8), (3, 0)),
            ((int8, int8), (1, -128)),
            ((int8, uint8), (-128, 0)),
        )
    ),
    case((1, 15, 28, 6), 20, Window((3, 3), padding=SAME), kinds=(uint8, uint8), zeros=(0, 255)),
    case((1, 15, 28, 6), 20, Window((3, 3), padding=SAME), constant=False),
    case((1, 15, 15, 6), 20, Window((3, 3), (2, 2), padding=SAME), 2, constant=False),
    case((20, 1, 1, 37), 45, constant=False, zeros=(4, 9)),
]


def made(x, features, window, groups, kinds, zeros, constant, expr=BIASED, more=()):
    """The form, its arrays, and its sums with the bias added."""
    rng = np.random.default_rng(7)
    xs = integers(rng, kinds[0], x)
    ws = integers(rng, kinds[1], (features, *window.size, x[3] // groups))
    bias = rng.integers(-(2**20), 2**20, features).astype(np.int32)
    source, filters = buffer(xs), Buffer("w", kinds[1], ws.shape, ws if constant else None)
    out = Buffer("y", expr.dtype, out_shape(x, features, window))
    biases = Buffer("bias", int32, bias.shape, bias)
    form = Contract(out, source, filters, (biases, *more), expr, window, groups, *zeros)
    inputs = {source: xs} if constant else {source: xs, filters: ws}
    return form, inputs, sums(xs.astype(int) - zeros[0], ws.astype(int) - zeros[1], window, groups, out.shape) + bias


@pytest.mark.parametrize(
    ("x", "features", "window", "groups", "kinds", "zeros", "constant"),
    sampled(CASES, 3, by=lambda x, features, window, groups, kinds, *_: (window == PLAIN, groups > 1, kinds)),
)
def test_sums(x, features, window, groups, kinds, zeros, constant):
    form, inputs, expected = made(x, features, window, groups, kinds, zeros, constant)
    actual = run(form, inputs)
    np.testing.assert_array_equal(actual, expected)
    for parts in (2, 5):
        np.testing.assert_array_equal(split(form, inputs, parts), actual)


def requantised(operands: int = 2, zero: int = 3, *within: int):
    """quantize(float(sum + bias) * multiplier of the channel)."""
    return quantize(apply("mul", convert(BIASED, float32), arg(operands, float32)), zero, int8, *within)


def rounded(x: np.ndarray, zero: int, low: int = -128, high: int = 127) -> np.ndarray:
    return np.clip(np.rint(x) + zero, low, high).astype(np.int8)


TABLE = np.random.default_rng(5).integers(-128, 128, 256).astype(np.int8)
RESIDUAL = apply(
    "fma",
    convert(arg(3, int8), float32),
    scalar(0.3713, float32),
    apply("mul", convert(requantised(), float32), scalar(0.7189, float32)),
)
EPILOGUES = {
    "plain": (requantised(), lambda f, r: rounded(f, 3)),
    "relu6": (requantised(2, -100, -100, 55), lambda f, r: rounded(f, -100, -100, 55)),
    "table": (lookup(requantised(2, -5), arg(3, int8)), lambda f, r: TABLE[rounded(f, -5).astype(np.uint8)]),
    "residual": (quantize(RESIDUAL, 9, int8), lambda f, r: rounded(r * 0.3713 + rounded(f, 3) * 0.7189, 9)),
    "float": (apply("mul", convert(BIASED, float32), arg(2, float32)), lambda f, r: f),
}


KINDS = {"rows": (1, 29, 1, 20), "row": (1, 1, 1, 20), "image": (1, 9, 17, 4)}
FEATURES = (16, 45, 64)


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
    check_epilogue(name, KINDS[kind], features)


@pytest.mark.parametrize("name", sampled(EPILOGUES))
def test_epilogues_of_groups(name):
    """Vectors that are full, and vectors with unused lanes."""
    check_epilogue(name, (1, 9, 17, 32), 64, Window((3, 3), padding=SAME), 8)
    check_epilogue(name, (1, 5, 9, 15), 30, Window((3, 3), padding=SAME), 5)


def check_epilogue(name, x, features, window=None, groups=1):
    expr, of = EPILOGUES[name]
    rng = np.random.default_rng(2)
    window = window or (Window((3, 3), padding=SAME) if x[3] == 4 else PLAIN)
    factors = rng.uniform(0.0005, 0.005, features).astype(np.float32)
    rest = integers(rng, int8, out_shape(x, features, window))
    more = [buffer(rest, "rest")] if name == "residual" else []
    constants = [Buffer("factors", float32, factors.shape, factors)]
    constants += [Buffer("table", int8, (256,), TABLE)] if name == "table" else []
    kinds, zeros = (int8, int8), (-3, 0)
    form, inputs, total = made(x, features, window, groups, kinds, zeros, True, expr, (*constants, *more))
    inputs |= dict.fromkeys(more, rest)
    actual = run(form, inputs).astype(np.float64)
    expected = of(total * factors.astype(np.float64), rest.astype(np.float64))
    off = np.abs(actual - expected)
    if name == "float":
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
    elif name == "table":
        assert (off != 0).sum() <= 1 + off.size // 1000  # a number at the edge between two may be rounded otherwise
    else:
        assert off.max() <= 1
        assert (off != 0).sum() <= 1 + off.size // 1000


def test_slices_of_buffers():
    """Input and output inside the last axes of others."""
    rng = np.random.default_rng(1)
    for window in (PLAIN, Window((3, 3), padding=SAME), Window((3, 3), (2, 2), padding=SAME)):
        wide = Buffer("wide", int8, (1, 6, 16, 30))
        x = Buffer("x", int8, (1, 6, 16, 20), parent=wide, start=5)
        xs, ws = integers(rng, int8, wide.shape), integers(rng, int8, (24, *window.size, 20))
        shape = out_shape(x.shape, 24, window)
        whole = Buffer("whole", int32, (*shape[:3], 50))
        y = Buffer("y", int32, shape, parent=whole, start=7)
        form = Contract(y, x, Buffer("w", int8, ws.shape, ws), (), SUM, window, 1, 11)
        actual = run(form, {wide: xs})
        expected = sums(xs[..., 5:25].astype(int) - 11, ws.astype(int), window, 1, shape)
        np.testing.assert_array_equal(actual[..., 7:31], expected)
        marked = np.full(1, 0x5A5A5A5A, np.int32)[0]
        assert (actual[..., :7] == marked).all()
        assert (actual[..., 31:] == marked).all()


def test_reads_nothing_beyond_the_end():
    """The input ends at the end of a page, after which nothing may be read."""
    page = mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    memory = mmap.mmap(-1, 4 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(start + 3 * page), ctypes.c_size_t(page), 0) == 0
    rng = np.random.default_rng(1)
    for shape, window in (
        ((1, 14, 1, 21), PLAIN),
        ((1, 20, 28, 3), Window((3, 3), (2, 2), padding=(0, 1, 0, 1))),
        ((1, 8, 28, 5), Window((3, 3), padding=SAME)),
        ((37, 1, 1, 6), PLAIN),
        ((1, 9, 9, 7), Window((3, 3), padding=SAME)),
        ((1, 4, 29, 9), Window((1, 1), (1, 2))),
    ):
        xs = integers(rng, int8, shape)
        at_end = np.frombuffer(memory, np.int8, xs.size, 3 * page - xs.size).reshape(shape)
        at_end[:] = xs
        ws = integers(rng, int8, (20, *window.size, shape[3]))
        out = out_shape(shape, 20, window)
        x = buffer(xs)
        form = Contract(Buffer("y", int32, out), x, Buffer("w", int8, ws.shape, ws), (), SUM, window, 1, 2)
        np.testing.assert_array_equal(run(form, {x: at_end}), sums(xs.astype(int) - 2, ws.astype(int), window, 1, out))
    assert libc.mprotect(ctypes.c_void_p(start + 3 * page), ctypes.c_size_t(page), 3) == 0


SKELETON = parametrised(requantised())
EPILOGUE = Epilogue(SKELETON[0], (("channel", int32), ("channel", float32)), tuple(d for _, d in SKELETON[1]))
SHAPE = {
    "rows": 4,
    "vectors": 2,
    "short": True,
    "narrow": 1,
    "epilogue": EPILOGUE,
    "more": 3,
    "rounded": False,
    "wide": False,
    "tiled": None,
    "widened": None,
    "flipped": False,
    "bounded": 0,
    "grouped": None,
}


GROUPED = {name: SHAPE[name] for name in ("more", "epilogue")} | {"stride": 2, "rows": 3, "signed": True}


@targets(
    (gemm_int8, {**SHAPE, "parts": 1, "blocked": False, "halved": False}),
    (convolution_int8, {**SHAPE, "by_line": False}),
    (gemm_int8, {**SHAPE, "parts": 1, "blocked": False, "halved": False, "flipped": True}),
    (convolution_int8, {**SHAPE, "by_line": True, "flipped": True}),
    (patches, {"rounded": True}),
    (convolution_grouped_int8, {"tile": GroupTileInt8(2, 2, 4, 4, uint8), **GROUPED}),
    (
        pack_int8,
        {
            "dtype": uint8,
            "vectors": 2,
            "narrow": 1,
            "biased": True,
            "parts": 2,
            "ordered": True,
            "grouped": 0,
            "joined": False,
            "padded": False,
        },
    ),
)
def test_compiles_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)


def test_narrow_images():
    """Rows of few columns are pixels of a line: windows beyond both sides, of weights with a zero point, strided."""
    for x, features, window, kinds, zeros in (
        ((1, 19, 3, 1), 8, Window((4, 3), padding=(1, 2, 1, 1)), (int8, int8), (-7, 0)),
        ((2, 17, 1, 8), 16, Window((4, 1), padding=(1, 2, 0, 0)), (int8, int8), (5, 0)),
        ((1, 23, 4, 3), 5, Window((3, 2), (2, 2), padding=(1, 1, 0, 0)), (uint8, uint8), (9, 131)),
        ((2, 21, 3, 2), 4, Window((3, 5), (1, 1), (2, 1), (2, 2, 2, 2)), (int8, int8), (0, 0)),
        ((1, 7, 3, 3), 1, Window((2, 2), (1, 1), (1, 2), (2, 0, 1, 1)), (int8, int8), (18, 0)),  # a bias of one element
    ):
        form, inputs, expected = made(x, features, window, 1, kinds, zeros, True)
        assert columns_as_channels(form) is not None
        np.testing.assert_array_equal(run(form, inputs), expected, err_msg=str((x, window)))


@pytest.mark.parametrize(
    ("block", "tiles", "panels", "items"),
    [
        (WorkBlocks(4, 1, 5), 4, 5, 10),
        (WorkBlocks(1, 2, 3), 1, 5, 5),
        (WorkBlocks(1, 1, 5), 1, 5, 5),
        (WorkBlocks(2, 3, 14), 28, 3, 14),
        (WorkBlocks(1, 1, 1), 1, 1, 1),
        (WorkBlocks(1, 4, 33), 33, 4, 66),
        (WorkBlocks(8, 2, 17), 131, 2, 22),
        (WorkBlocks(1, 4, 65), 65, 4, 65),
    ],
)
def test_items_for_two_threads(block, tiles, panels, items):
    result = evened(block, tiles, panels)
    assert result.items == items == -(-tiles // result.tiles) * -(-panels // result.panels)
