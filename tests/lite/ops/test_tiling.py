"""Pieces of results: tiles cover each element once, and what windows see in a band is what they see in the whole.

Sums over windows are compared with the formula, written as loops over pixels, on integers that floats hold exactly.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from opwright.lite.ops import tiling
from opwright.ops.array_convolution import convolve, convolve_by_input, convolve_depthwise
from opwright.ops.windows import AxisWindow, window
from thorough import crossed

SHAPES = [(), (0,), (5,), (3, 0, 2), (4, 5), (1, 7, 1, 3), (2, 3, 4, 5)]


@pytest.mark.parametrize("room", [0, 1, 4, 7, 30, 10_000])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tiles_cover_each_element_once_in_order(shape: tuple[int, ...], room: int) -> None:
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    seen = [numbers[where].reshape(-1) for where in tiling.tiles(shape, room)]
    assert all(0 < part.size <= max(room, 1) for part in seen)
    assert all(np.array_equal(part, np.arange(part[0], part[0] + part.size)) for part in seen)
    assert np.array_equal(np.concatenate([np.zeros(0, int), *seen]), numbers.reshape(-1))


PAIRS = [((4, 5), (5,)), ((4, 1), (1, 5)), ((2, 3, 1), (4,)), ((), (3, 2)), ((6,), (1,)), ((0, 2), (2,)), ((), ())]


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=str)
def test_elements_broadcast(a: Any, b: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiling, "BLOCK", 4)
    x, y = np.arange(np.prod(a, dtype=int)).reshape(a), 100 * np.arange(np.prod(b, dtype=int)).reshape(b)
    shape = np.broadcast_shapes(a, b)
    result = tiling.merge_parts(tiling.elements(np.add, (x, y), shape), shape, np.int64)
    assert np.array_equal(result, np.broadcast_to(x, shape) + np.broadcast_to(y, shape))


def _geometries() -> list[Any]:
    random = np.random.RandomState(3)
    result = []
    while len(result) < 60:
        size, kernel, stride, dilation = (random.randint(1, most, 2).tolist() for most in (12, 6, 5, 4))
        padding = ("SAME", "VALID")[len(result) % 2]
        if padding == "VALID" and any((k - 1) * d + 1 > s for s, k, d in zip(size, kernel, dilation)):
            continue
        result.append((len(result) % 3 + 1, size, kernel, stride, dilation, padding))
    return result


def _pairs(windows: list[AxisWindow]) -> Any:
    """Each (position, tap, pixel) of a kernel that falls on the image."""
    for position in np.ndindex(*(w.out for w in windows)):
        for tap in np.ndindex(*(w.kernel for w in windows)):
            pixel = tuple(p * w.stride + t * w.dilation - w.before for p, t, w in zip(position, tap, windows))
            if all(0 <= i < w.size for i, w in zip(pixel, windows)):
                yield position, tap, pixel


@pytest.mark.parametrize("geometry", _geometries(), ids=str)
def test_bands_of_a_convolution_and_its_adjoint(geometry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiling, "SCRATCH", 600)
    n, size, kernel, *steps, padding = geometry
    windows = [window(s, k, stride, dilation, padding) for s, k, stride, dilation in zip(size, kernel, *steps)]
    random = np.random.RandomState(0)
    x = random.randint(-5, 6, (n, *size, 2)).astype(np.float32)
    w = random.randint(-5, 6, (*kernel, 2, 3)).astype(np.float32)
    y = np.zeros((n, *(v.out for v in windows), 3), np.float32)
    dy = random.randint(-5, 6, y.shape).astype(np.float32)
    dx = np.zeros_like(x)
    for position, tap, pixel in _pairs(windows):
        y[(slice(None), *position)] += x[(slice(None), *pixel)] @ w[tap]
        dx[(slice(None), *pixel)] += dy[(slice(None), *position)] @ w[tap].T
    for cost in (1, 40, 200):
        bands = list(tiling.bands(n, windows, cost))
        result = ((b.y, convolve(None, x[b.x], w, b.windows)) for b in bands)
        assert np.array_equal(tiling.merge_parts(result, y.shape, np.float32), y)
        in_place = np.full_like(y, np.nan)
        for b in bands:
            convolve(None, x[b.x], w, b.windows, in_place[b.y])
        assert np.array_equal(in_place, y)
        assert all(_size(b) * cost <= 600 or _size(b) == 1 for b in bands)
        spread = list(tiling.bands(n, windows, cost, tiling.output_piece))
        back = ((b.y, convolve_by_input(dy[b.x], w, (len(dy[b.x]), 0, 0, 2), b.windows)) for b in spread)
        assert np.array_equal(tiling.merge_parts(back, x.shape, np.float32), dx)
        for many in (bands, spread):  # each pixel of the result in one band
            assert sum(map(_size, many)) == n * np.prod(y.shape[1:3] if many is bands else size)
            assert len({tuple(itertools.chain(*((s.start, s.stop) for s in b.y))) for b in many}) == len(many)


def test_bands_have_whole_lines_where_lines_fit():
    windows = [window(56, 3, 1, 1, "SAME")] * 2
    for cost in range(1000, tiling.SCRATCH // 56, 500):
        assert all(b.y[2] == slice(0, 56) for b in tiling.bands(1, windows, cost))


@pytest.mark.parametrize(  # pixels under strides as they lie, and gathered into lines of 64 channels
    ("geometry", "line_channels", "dtype"),
    crossed(_geometries(), [1, 64], [np.float32, np.float16, np.float64], every=6),
    ids=str,
)
def test_depthwise_convolutions(geometry: Any, line_channels: int, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opwright.ops.array_convolution.LINE_CHANNELS", line_channels)
    n, size, kernel, *steps, padding = geometry
    windows = [window(s, k, stride, dilation, padding) for s, k, stride, dilation in zip(size, kernel, *steps)]
    random = np.random.RandomState(1)
    for multiplier in (1, 2):
        x = random.randint(-5, 6, (n, *size, 3)).astype(dtype)
        w = random.randint(-5, 6, (*kernel, 3, multiplier)).astype(dtype)
        y = np.zeros((n, *(v.out for v in windows), 3, multiplier), dtype)
        for position, tap, pixel in _pairs(windows):
            y[(slice(None), *position)] += x[(slice(None), *pixel)][..., None] * w[tap]
        y = y.reshape(*y.shape[:3], 3 * multiplier)
        out = np.full(y.shape, np.nan, dtype)
        for result in (convolve_depthwise(x, w, windows), convolve_depthwise(x, w, windows, out), out):
            assert result.dtype == dtype
            assert np.array_equal(result, y)
        apart = np.full((*y.shape[:3], 2 * y.shape[3]), np.nan, dtype)[..., ::2]  # no lines in its memory
        assert np.array_equal(convolve_depthwise(x, w, windows, apart), y)


@pytest.mark.parametrize(("kernel", "groups"), [(1, 1), (3, 1), (3, 2)])  # products, sums by kernel element, groups
def test_convolutions_are_written_in_place(kernel: int, groups: int) -> None:
    windows = [window(48, kernel, 1, 1, "SAME")] * 2
    random = np.random.RandomState(2)
    x = random.randint(-5, 6, (1, 48, 48, 32)).astype(np.float32)
    w = random.randint(-5, 6, (kernel, kernel, 32 // groups, 6)).astype(np.float32)
    padded = np.pad(x, ((0, 0), (kernel // 2,) * 2, (kernel // 2,) * 2, (0, 0)))
    y = np.zeros((1, 48, 48, 6), np.float32)
    for i, j in np.ndindex(kernel, kernel):
        for g, part in enumerate(np.split(padded[:, i : i + 48, j : j + 48], groups, -1)):
            channels = slice(g * 6 // groups, (g + 1) * 6 // groups)
            y[..., channels] += part @ w[i, j, :, channels]
    for out in (np.full_like(y, np.nan), np.full((1, 48, 48, 12), np.nan, np.float32)[..., ::2]):
        assert convolve(None, x, w, windows, out) is out
        assert np.array_equal(out, y)


def test_an_empty_sum_of_products_is_no_negative_zero():
    windows = [window(4, 3, 1, 1, "SAME")] * 2
    y = convolve_depthwise(np.zeros((1, 4, 4, 1), np.float32), -np.ones((3, 3, 1, 1), np.float32), windows)
    assert not np.signbit(y).any()


def _size(band: tiling.Band) -> int:
    return int(np.prod([s.stop - s.start for s in band.y]))
