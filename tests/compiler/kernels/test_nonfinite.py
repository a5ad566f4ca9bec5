"""Infinities and NaN in products, convolutions and recurrence: they reach what they are summed into, and nothing else.

Kernels fill the ends of vectors, panels and patches with zeros; 0 times an infinity is NaN. The oracle is the
definition in float64, in which a tap outside of the image is no term of the sum. Depths and channels are no
multiples of vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from foreign import HERE
from form_kit import buffer, run, running_sums

from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import arg
from opwright.compiler.loops.fusion import fused
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import (
    Contract,
    Depthwise,
    FusedAttention,
    LoopOp,
    MatMul,
    Pool,
    Reduce,
    RowPass,
    TransposedContract,
)
from opwright.core import flags
from opwright.core.dtypes import float32
from thorough import crossed

SUM, F = arg(0, float32), np.float32
VALUES = {
    "infinity": [np.inf],
    "minus infinity": [-np.inf],
    "NaN": [np.nan],
    "both": [np.inf, -np.inf],
    "large": [2e37],
}


@pytest.fixture(params=HERE, autouse=True)
def target(request: Any) -> Iterator[str]:
    with flags.override(target=request.param):
        yield request.param


def spoilt(rng: np.random.Generator, shape: tuple[int, ...], values: list[float]) -> np.ndarray:
    """Random numbers with these among them, at random places of the first half."""
    x = rng.normal(size=shape).astype(F)
    flat = x.reshape(-1)
    room = -(-flat.size // 2)
    flat[rng.choice(room, min(room, len(values)), replace=False)] = values[:room]
    return x


def same(actual: np.ndarray, expected: np.ndarray, words: str = "") -> None:
    """NaN and infinities where the formula has them, other numbers near."""
    with np.errstate(all="ignore"):
        expected = expected.astype(F)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected), words)
    np.testing.assert_array_equal(np.isinf(actual) * np.sign(actual), np.isinf(expected) * np.sign(expected), words)
    np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-4, err_msg=words)


def check(form: LoopOp, inputs: dict[Buffer, np.ndarray], expected: np.ndarray, words: str = "") -> None:
    same(run(form, inputs), expected.reshape(form.output.shape), words)


def const(x: np.ndarray, name: str = "w") -> Buffer:
    return Buffer(name, float32, x.shape, x)


def product(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.einsum("...mk,...kn->...mn", x.astype(np.float64), w.astype(np.float64))


# ---- products ------------------------------------------------------------------------------------------------------


SIZES = {  # rows, depths, columns
    "some": ((1, 9), (1, 7, 9, 17), (1, 17)),
    "all": ((1, 2, 4, 7, 9, 14), (1, 2, 3, 6, 7, 8, 9, 15, 16, 17, 33), (1, 5, 8, 15, 16, 17, 24, 33)),
}
FEW_OR_ALL = pytest.mark.parametrize("sizes", ["some", pytest.param("all", marks=pytest.mark.slow)])


@FEW_OR_ALL
@pytest.mark.parametrize(("values", "known"), crossed(VALUES, [True, False]))
def test_fully_connected(values: str, known: bool, sizes: str) -> None:
    rng = np.random.default_rng(1)
    all_rows, depths, columns = SIZES[sizes]
    for rows in all_rows:
        for depth in depths:
            for features in columns:
                for left in (True, False):
                    good = rng.normal(size=(rows, depth)).astype(F), rng.normal(size=(features, depth)).astype(F)
                    bad = [spoilt(rng, a.shape, VALUES[values]) for a in good]
                    x, w = (bad[0], good[1]) if left else (good[0], bad[1])
                    image, filters = x.reshape(rows, 1, 1, depth), w.reshape(features, 1, 1, depth)
                    b, f = buffer(image), const(filters) if known else buffer(filters, "w")
                    form = Contract(Buffer("y", float32, (rows, 1, 1, features)), b, f, (), SUM, Window((1, 1)))
                    inputs = {b: image} if known else {b: image, f: filters}
                    check(form, inputs, product(x, w.T), f"{rows} x {depth} x {features}, {left}")


@FEW_OR_ALL
@pytest.mark.parametrize(("values", "turn_a", "turn_b"), crossed(VALUES, [False, True], [False, True]))
def test_matrix_products(values: str, turn_a: bool, turn_b: bool, sizes: str) -> None:
    rng = np.random.default_rng(2)
    all_rows, depths, all_columns = SIZES[sizes]
    for rows in all_rows:
        for depth in depths:
            for columns in all_columns:
                for left in (True, False):
                    good = rng.normal(size=(2, rows, depth)).astype(F), rng.normal(size=(2, depth, columns)).astype(F)
                    bad = [spoilt(rng, a.shape, VALUES[values]) for a in good]
                    a, b = (bad[0], good[1]) if left else (good[0], bad[1])
                    x = np.ascontiguousarray(a.swapaxes(1, 2)) if turn_a else a
                    w = np.ascontiguousarray(b.swapaxes(1, 2)) if turn_b else b
                    p, q = buffer(x, "a"), buffer(w, "b")
                    form = MatMul(Buffer("y", float32, (2, rows, columns)), p, q, (), SUM, turn_a, turn_b)
                    check(form, {p: x, q: w}, product(a, b), f"{rows} x {depth} x {columns}, {left}")


# ---- windows -------------------------------------------------------------------------------------------------------


def windowed(x: np.ndarray, w: np.ndarray, window: Window, size: tuple[int, int], deep: bool = False) -> np.ndarray:
    """The sums of a convolution: w [F, KH, KW, C], or [KH, KW, C] of a depthwise one; only over taps in the image."""
    n, height, width, _ = x.shape
    (kh, kw), (sh, sw), (dh, dw), (top, _, left, _) = window.size, window.strides, window.dilations, window.padding
    result = np.zeros((n, *size, w.shape[-1] if deep else w.shape[0]))
    with np.errstate(all="ignore"):
        for oy, ox, i, j in np.ndindex(*size, kh, kw):
            y, at = oy * sh + i * dh - top, ox * sw + j * dw - left
            if 0 <= y < height and 0 <= at < width:
                seen, taps = x[:, y, at].astype(np.float64), w[..., i, j, :].astype(np.float64)
                result[:, oy, ox] += seen * w[i, j] if deep else np.einsum("nc,fc->nf", seen, taps)
    return result


WINDOWS = {
    "1x1 padded": Window((1, 1), padding=(1, 1, 1, 1)),
    "3x3": Window((3, 3), padding=(1, 1, 1, 1)),
    "3x3 VALID": Window((3, 3)),
    "strides": Window((3, 3), (2, 2), padding=(0, 1, 0, 1)),
    "dilations": Window((3, 3), (1, 1), (2, 2), (2, 2, 2, 2)),
    "1x5": Window((1, 5), padding=(0, 0, 2, 2)),
    "even": Window((2, 4), padding=(0, 1, 1, 2)),
}


def _size(shape: tuple[int, ...], w: Window) -> tuple[int, int]:
    spans = [(k - 1) * d + 1 for k, d in zip(w.size, w.dilations)]
    return (
        (shape[1] + w.padding[0] + w.padding[1] - spans[0]) // w.strides[0] + 1,
        (shape[2] + w.padding[2] + w.padding[3] - spans[1]) // w.strides[1] + 1,
    )


@pytest.mark.parametrize(("values", "name"), crossed(VALUES, WINDOWS, every=4))
def test_convolutions(values: str, name: str) -> None:
    rng, window = np.random.default_rng(3), WINDOWS[name]
    for channels, features in ((3, 5), (9, 17)) if values == "both" else ((3, 5),):
        x = spoilt(rng, (1, 7, 9, channels), VALUES[values])
        w = rng.normal(size=(features, *window.size, channels)).astype(F)
        size, b = _size(x.shape, window), buffer(x)
        form = Contract(Buffer("y", float32, (1, *size, features)), b, const(w), (), SUM, window)
        check(form, {b: x}, windowed(x, w, window, size))


@pytest.mark.parametrize(  # channels and features: patches of 4x4 outputs, and of 2x2
    ("values", "channels"), crossed(["infinity", "minus infinity", "NaN", "both"], [32, 192])
)
def test_convolutions_by_patches(values: str, channels: int) -> None:
    """Winograd's: outputs that do not see the infinity are what they are without it."""
    rng, window = np.random.default_rng(4), Window((3, 3), padding=(1, 1, 1, 1))
    features = channels
    w = (rng.normal(size=(features, 3, 3, channels)) / 10).astype(F)
    x = rng.normal(size=(1, 9, 10, channels)).astype(F)
    x[0, 2, 3, : len(VALUES[values])] = VALUES[values]
    b, out = buffer(x), Buffer("y", float32, (1, 9, 10, features))
    actual = run(Contract(out, b, const(w), (), SUM, window), {b: x})
    expected = windowed(x, w, window, (9, 10))
    assert np.isfinite(expected).any()
    assert not np.isfinite(expected).all()
    same(actual, expected)


@pytest.mark.parametrize("values", ["infinity", "NaN"])
def test_filters_of_run_time_by_patches(values: str) -> None:
    """Winograd's recomputes what an infinity among the weights spoils, without the taps outside of the image."""
    rng, window = np.random.default_rng(4), Window((3, 3), padding=(1, 1, 1, 1))
    x, w = rng.normal(size=(4, 9, 10, 32)).astype(F), rng.normal(size=(32, 3, 3, 32)).astype(F)
    w[5, 0, 0, 3] = VALUES[values][0]
    images, weights, out = buffer(x), buffer(w), Buffer("y", float32, (4, 9, 10, 32))
    actual = run(Contract(out, images, weights, (), SUM, window), {images: x, weights: w})
    expected = windowed(x, w, window, (9, 10))
    assert np.isfinite(expected[:, 0, :, 5]).all()
    same(actual, expected)


def test_patches_whose_transform_is_beyond_float32() -> None:
    """Transforms are up to 100 times the image's numbers; what comes out is no greater than it is."""
    rng, window = np.random.default_rng(12), Window((3, 3), padding=(1, 1, 1, 1))
    w = (rng.normal(size=(32, 3, 3, 32)) / 1000).astype(F)
    x = (rng.normal(size=(1, 9, 10, 32)) * 5e37).astype(F)
    b, out = buffer(x), Buffer("y", float32, (1, 9, 10, 32))
    expected = windowed(x, w, window, (9, 10))
    actual = run(Contract(out, b, const(w), (), SUM, window), {b: x})
    np.testing.assert_allclose(actual / 1e36, expected / 1e36, atol=1e-4 * expected.std() / 1e36)


def refused(form: LoopOp) -> bool:
    from opwright.compiler.kernels import NoKernel
    from opwright.compiler.loops.planner import plan_of

    try:
        plan_of(LoopGraph("refused", (form.inputs[0],), (form.output,), (form,)))
    except NoKernel as why:
        assert "infinities or NaN" in str(why)  # noqa: PT017
        return True
    return False


@pytest.mark.parametrize("values", ["infinity", "NaN"])
def test_weights_next_to_padding(values: str) -> None:
    """A constant filter with an infinity stays with the reference where taps may lie outside; depthwise ones do not
    multiply what is outside."""
    rng = np.random.default_rng(5)
    for name, window in WINDOWS.items():
        taps = rng.normal(size=(*window.size, 9)).astype(F)
        taps[0, 0, 2] = VALUES[values][0]
        x = rng.normal(size=(1, 7, 9, 9)).astype(F)
        size, b = _size(x.shape, window), buffer(x)
        out = Buffer("y", float32, (1, *size, 9))
        check(Depthwise(out, b, const(taps), (), SUM, window), {b: x}, windowed(x, taps, window, size, True), name)
        filters = np.ascontiguousarray(np.broadcast_to(taps, (9, *taps.shape)))
        form = Contract(out, b, const(filters), (), SUM, window)
        if any(window.padding):
            assert refused(form), name
        else:
            check(form, {b: x}, windowed(x, filters, window, size), name)
    x = rng.normal(size=(1, 7, 9, 8)).astype(F)
    taps, b = spoilt(rng, (3, 3, 16), VALUES[values]), buffer(x)
    form = Depthwise(Buffer("y", float32, (1, 7, 9, 16)), b, const(taps), (), SUM, WINDOWS["3x3"], 2)
    check(form, {b: x}, windowed(np.repeat(x, 2, -1), taps, WINDOWS["3x3"], (7, 9), True))


@pytest.mark.parametrize("bad", [True, False])
def test_pads_are_the_windows_where_weights_are_finite(bad: bool) -> None:
    """Zeros of an explicit pad are multiplied with the weights; what is outside of a window is not."""
    from opwright.compiler.loops.buffers import IndexMap
    from opwright.compiler.loops.ops import Move

    rng = np.random.default_rng(6)
    x, taps = rng.normal(size=(1, 4, 5, 8)).astype(F), rng.normal(size=(3, 3, 8)).astype(F)
    if bad:
        taps[0, 0, 3] = np.inf
    b, padded, y = buffer(x), Buffer("p", float32, (1, 6, 7, 8)), Buffer("y", float32, (1, 4, 5, 8))
    box = IndexMap((0, 1, 1, 0), x.shape, 0, (160, 40, 8, 1))
    forms = (Move(padded, (b,), (box,), 0.0), Depthwise(y, padded, const(taps), (), SUM, Window((3, 3))))
    graph, _ = fused(LoopGraph("pad", (b,), (y,), forms))
    assert len(graph.ops) == 1 + bad
    expected = windowed(np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), taps, Window((3, 3)), (4, 5), True)
    same(run(graph.ops, {b: x}), expected)


@pytest.mark.parametrize("values", VALUES)
def test_depthwise_and_transposed_convolutions_and_pools(values: str) -> None:
    rng = np.random.default_rng(7)
    for channels in (3, 9, 17) if values == "infinity" else (9,):
        x = spoilt(rng, (1, 7, 9, channels), VALUES[values])
        b = buffer(x)
        for name, window in WINDOWS.items():
            w, size = rng.normal(size=(*window.size, channels)).astype(F), _size(x.shape, window)
            out = Buffer("y", float32, (1, *size, channels))
            check(Depthwise(out, b, const(w), (), SUM, window), {b: x}, windowed(x, w, window, size, True), name)
            if max(window.dilations) == 1:
                ones = np.ones((*window.size, channels))
                check(Pool(out, b, "sum", SUM, window), {b: x}, windowed(x, ones, window, size, True), name)
        w = rng.normal(size=(5, 2, 2, channels)).astype(F)
        expected = np.zeros((1, 14, 18, 5))
        with np.errstate(all="ignore"):
            for i, j in np.ndindex(2, 2):
                expected[:, i::2, j::2] = np.einsum(
                    "nhwc,fc->nhwf", x.astype(np.float64), w[:, i, j].astype(np.float64)
                )
        form = TransposedContract(Buffer("y", float32, (1, 14, 18, 5)), b, const(w), (), SUM, Window((2, 2), (2, 2)))
        check(form, {b: x}, expected)


# ---- rows and reductions -------------------------------------------------------------------------------------------


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - np.fmax.reduce(x, -1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


ROWS = {
    "softmax": ((), _softmax),
    "log_softmax": ((), lambda x: np.log(_softmax(x))),
    "l2_norm": ((1e-6,), lambda x: x / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), 1e-6)),
    "rms_norm": ((1e-6,), lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)),
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("values", ["infinity", "minus infinity", "NaN", "both"])
def test_other_rows_are_as_they_were(kind: str, values: str) -> None:
    numbers, formula = ROWS[kind]
    rng = np.random.default_rng(8)
    for n in (2, 7, 8, 9, 17, 33, 65):
        x = rng.normal(size=(3, n)).astype(F)
        x[1, n // 2 : n // 2 + len(VALUES[values])] = VALUES[values][: n - n // 2]
        b = buffer(x)
        with np.errstate(all="ignore"):
            expected = formula(x.astype(np.float64))
        actual = run(RowPass(Buffer("y", float32, x.shape), b, (), kind, SUM, SUM, numbers), {b: x})
        same(actual[[0, 2]], expected[[0, 2]])
        if kind == "softmax":  # of a row with infinities: minus infinity counts as nothing, others make it NaN
            same(actual[1], expected[1])


@pytest.mark.parametrize("values", ["infinity", "minus infinity", "NaN", "both"])
def test_reductions_and_running_sums(values: str) -> None:
    rng = np.random.default_rng(9)
    for n, inner in ((3, 1), (7, 1), (17, 1), (67, 1), (5, 3), (9, 17), (33, 5)):
        x = rng.normal(size=(2, n, inner)).astype(F)
        x[1, n // 2 : n // 2 + len(VALUES[values]), inner // 2] = VALUES[values]
        b = buffer(x)
        with np.errstate(all="ignore"):
            check(
                Reduce(Buffer("y", float32, (2, inner)), b, (1,), "sum", SUM, SUM), {b: x}, x.sum(1, dtype=np.float64)
            )
            check(running_sums(Buffer("y", float32, x.shape), b, 1), {b: x}, np.cumsum(x, 1, dtype=np.float64))
        if values != "NaN":
            for kind, formula in (("max", np.max), ("min", np.min)):
                check(Reduce(Buffer("y", float32, (2, inner)), b, (1,), kind, SUM, SUM), {b: x}, formula(x, 1))


@pytest.mark.parametrize("values", ["minus infinity", "NaN", "infinity"])
def test_attention(values: str) -> None:
    """In a query, a key and a value: other queries' results, and other columns, are as they were."""
    rng = np.random.default_rng(10)
    for m, n, d, e in ((4, 5, 3, 3), (13, 17, 9, 5), (12, 33, 7, 17)):
        for place in range(3):
            arrays = [rng.normal(size=s).astype(F) for s in ((2, m, d), (2, n, d), (2, n, e))]
            arrays[place][1, 2, 1] = VALUES[values][0]
            q, k, v = buffers = [buffer(a, name) for a, name in zip(arrays, "qkv")]
            with np.errstate(all="ignore"):
                x, y, z = (a.astype(np.float64) for a in arrays)
                expected = np.einsum("bmn,bne->bme", _softmax(np.einsum("bmd,bnd->bmn", x, y)), z)
            actual = run(FusedAttention(Buffer("y", float32, (2, m, e)), q, k, v, (), SUM), dict(zip(buffers, arrays)))
            same(actual, expected, f"{m} {n} {d} {e} {place}")


# ---- recurrence ----------------------------------------------------------------------------------------------------


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


@pytest.mark.parametrize("cells", [3, 5, 9, 17])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_lstm_and_gru_with_an_infinity_in_the_state(cells: int, value: float) -> None:
    """Gates of infinities are 0 and 1: the cells that follow are finite, also behind vectors' ends."""
    from opwright.compiler.loops.recurrent_ops import Gru, Lstm

    rng = np.random.default_rng(11)
    gates = [rng.normal(size=(3, 2, cells)).astype(F) for _ in range(4)]
    weights = [rng.normal(size=(cells, cells)).astype(F) for _ in range(4)]
    h0, c0 = rng.normal(size=(2, cells)).astype(F), rng.normal(size=(2, cells)).astype(F)
    h0[1, 1] = value
    parts = [buffer(g, f"g{i}") for i, g in enumerate(gates)]
    h, c = buffer(h0, "h"), buffer(c0, "c")
    form = Lstm(
        Buffer("y", float32, (3, 2, cells)), tuple(parts), tuple(const(w, f"w{i}") for i, w in enumerate(weights)), h, c
    )
    actual = run(form, {**dict(zip(parts, gates)), h: h0.copy(), c: c0.copy()})
    state, cell = h0.astype(np.float64), c0.astype(np.float64)
    with np.errstate(all="ignore"):
        for t in range(3):
            i, f, g, o = (g[t] + state @ w.T.astype(np.float64) for g, w in zip(gates, weights))
            cell = _sigmoid(f) * cell + _sigmoid(i) * np.tanh(g)
            state = _sigmoid(o) * np.tanh(cell)
            same(actual[t], state, f"LSTM, step {t}")
    assert math.isfinite(actual.sum())
    # of gated units: the cell itself is NaN from there on, in the next step all are
    x, w = rng.normal(size=(2, 3, 3 * cells)).astype(F), rng.normal(size=3 * cells * cells).astype(F)
    w[3 * cells : 4 * cells] = np.copysign(w[3 * cells : 4 * cells], value)  # the infinity opens the reset gates
    b, q, h = buffer(x), buffer(w, "w"), buffer(h0, "h")
    actual = run(Gru(Buffer("y", float32, (2, 3, cells)), b, q, (h,)), {b: x, q: w, h: h0})[:, 0]
    first, last = w[: 2 * cells * cells].reshape(cells, 2 * cells), w[2 * cells * cells :].reshape(cells, cells)
    state = h0.astype(np.float64)
    with np.errstate(all="ignore"):
        u, r = np.split(_sigmoid(x[:, 0, : 2 * cells] + state @ first.astype(np.float64)), 2, -1)
        expected = state + u * (np.tanh(x[:, 0, 2 * cells :] + (r * state) @ last.astype(np.float64)) - state)
    same(np.delete(actual, 1, 1), np.delete(expected, 1, 1), "GRU")


@pytest.mark.parametrize("cells", [3, 17])
def test_nan_in_cells_that_are_clipped(cells: int) -> None:
    """A bound on cells and outputs holds infinities, and lets NaN through."""
    from opwright.compiler.loops.recurrent_ops import Lstm

    rng = np.random.default_rng(12)
    gates = [rng.normal(size=(1, 4, cells)).astype(F) for _ in range(4)]
    c0 = rng.normal(size=(4, cells)).astype(F)
    c0[1, 1], c0[2, 1], c0[3, 1] = np.nan, np.inf, -np.inf
    parts = [buffer(g, f"g{i}") for i, g in enumerate(gates)]
    h, c = buffer(np.zeros((4, cells), F), "h"), buffer(c0, "c")
    weights = tuple(const(np.zeros((cells, cells), F), f"w{i}") for i in range(4))
    form = Lstm(Buffer("y", float32, (1, 4, cells)), tuple(parts), weights, h, c, clips=(0.4, 0.0))
    result = run(form, {**dict(zip(parts, gates)), h: np.zeros((4, cells), F), c: c0.copy()})[0]
    i, f, g, o = (gate[0].astype(np.float64) for gate in gates)
    cell = np.clip(_sigmoid(f) * c0.astype(np.float64) + _sigmoid(i) * np.tanh(g), -0.4, 0.4)
    same(result, _sigmoid(o) * np.tanh(cell), "clipped cells")
    assert np.isnan(result).sum() == 1
