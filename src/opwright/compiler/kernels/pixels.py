"""Images read between pixels, at places that are computed for each pixel of the result.

Lives here: the maker of PixelsAt, its family.  Not here: affine maps (warping.py), other sizes (resize.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import float32
from .. import language as kl
from ..language import f32, i64, ptr
from ..loops.warping_forms import PixelsAt
from . import Unmade, maker
from .grains import grain

if TYPE_CHECKING:
    from ..loops.planning import Builder


@kl.family
def pixels_at(work, x: ptr[f32], places: ptr[f32], y: ptr[f32], height: i64, width: i64, channels: i64, high: i64,
              wide: i64, *, flow: bool):  # fmt: skip
    """An item is a line of the output, of images of `high` by `wide` pixels."""
    lanes = work.lanes(f32)
    for item in work.items():
        image = x + item // high * height * width * channels
        for column in kl.loop(wide):
            at = item * wide + column
            u, v = places[2 * at], places[2 * at + 1]
            out = y + at * channels
            if flow:
                _bordered(image, out, (item % high).to(f32) - u, column.to(f32) - v, height, width, channels, lanes)
            else:
                _bounded(image, out, v, u, height, width, channels, lanes)


def _bordered(image: Any, out: Any, row: Any, column: Any, height: Any, width: Any, channels: Any, lanes: int) -> None:
    """A pixel at a place that is moved to the border."""
    (i, a), (j, b) = (_within(at, size) for at, size in ((row, height), (column, width)))
    upper = image + (i * width + j) * channels
    lower = upper + width * channels
    for c in range(0, channels, lanes):
        mask = kl.first(kl.minimum(channels - c, lanes), lanes)
        first, second = (_mixed(p.load(c, lanes, mask), (p + channels).load(c, lanes, mask), b) for p in (upper, lower))
        out.store(_mixed(first, second, a), c, mask)


def _within(at: Any, size: Any) -> tuple[Any, Any]:
    """The pixel before a place, at most the last but one, and how far beyond it the place is."""
    first = kl.floor(at)
    first = kl.clamp(kl.select(first == first, first, 0.0), 0.0, (size - 2).to(f32))
    beyond = at - first
    return first.to(i64), kl.select(beyond < 0.0, 0.0, kl.select(beyond > 1.0, 1.0, beyond))


def _mixed(a: Any, b: Any, share: Any) -> Any:
    return (b - a) * share + a


def _bounded(image: Any, out: Any, row: Any, column: Any, height: Any, width: Any, channels: Any, lanes: int) -> None:
    """A pixel at a place outside of which all is 0."""
    inside = (column > -1.0) & (row > -1.0) & (column < width.to(f32)) & (row < height.to(f32))
    row, column = kl.select(inside, row, 0.0), kl.select(inside, column, 0.0)
    top, left = kl.floor(row), kl.floor(column)
    dy, dx = top + 1.0 - row, left + 1.0 - column
    i, j = top.to(i64), left.to(i64)
    corners = ((dx * dy, i, j), ((1.0 - dx) * (1.0 - dy), i + 1, j + 1), (dx * (1.0 - dy), i + 1, j),
               ((1.0 - dx) * dy, i, j + 1))  # fmt: skip
    for c in range(0, channels, lanes):
        mask = kl.first(kl.minimum(channels - c, lanes), lanes)
        total = kl.zeros(f32, lanes)
        for share, p, q in corners:
            there = inside & (p >= 0) & (q >= 0) & (p < height) & (q < width)
            pixel = image + kl.select(there, p * width + q, 0) * channels
            total = total + kl.select(there.splat(lanes), pixel.load(c, lanes, mask), 0.0) * share
        out.store(kl.select(inside.splat(lanes), total, 0.0), c, mask)


@maker(PixelsAt)
def make_pixels(form: PixelsAt, build: Builder) -> None:
    """Channels in vectors."""
    x, places, y = form.input, form.places, form.output
    if any(b.parent is not None or b.dtype is not float32 for b in (x, places, y)) or not x.size:
        raise Unmade(f"{x!r} read at {places!r}")
    if len(x.shape) != 4 or len(y.shape) != 4 or places.shape != (*y.shape[:3], 2) or x.shape[0] != y.shape[0] \
            or x.shape[3] != y.shape[3] or (form.flow and min(x.shape[1:3]) < 2):  # fmt: skip
        raise Unmade(f"{x!r} read at {places!r} to {y!r}")
    words = [build.pointer(x), build.pointer(places), build.pointer(y), *x.shape[1:], *y.shape[1:3]]
    lines = y.shape[0] * y.shape[1]
    build.step(pixels_at.code(flow=form.flow), words, lines, chunk=grain(20 * y.shape[2] * (x.shape[3] + 4), lines))
