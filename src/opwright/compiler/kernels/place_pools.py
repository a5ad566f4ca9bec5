"""Pools that find where the greatest element is, and their inverse.

Lives here: the makers of MaxPlaces and PutInWindows, their families.
Not here: pools of the elements alone (pools.py), updates at coordinates (scatters.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float32
from .. import language as kl
from ..language import f32, i64, ptr
from ..loops.forms import Move
from ..loops.place_forms import MaxPlaces, PutInWindows
from . import Unmade, maker
from .epilogue import epilogue_of
from .grains import grain
from .moves import make_move

if TYPE_CHECKING:
    from ..loops.planning import Builder

LEAST = float(np.finfo(np.float32).min)


@kl.family
def max_places(work, x: ptr[f32], y: ptr[f32], places: ptr[f32], height: i64, width: i64, channels: i64, high: i64,
               wide: i64, kernel_h: i64, kernel_w: i64, step_h: i64, step_w: i64, top: i64, left: i64, added: f32,
               *more: i64, epilogue: Any):  # fmt: skip
    """An item is a line of windows."""
    lanes, finish = work.lanes(f32), epilogue.bind(more)
    for item in work.items():
        image = x + item // high * height * width * channels
        first = item % high * step_h - top
        for column in range(wide):
            start, out = column * step_w - left, (item * wide + column) * channels
            for c in range(0, channels, lanes):
                mask = kl.first(kl.minimum(channels - c, lanes), lanes)
                best, place = kl.full(f32, lanes, LEAST), kl.zeros(f32, lanes)
                for i in range(kl.maximum(0, -first), kl.minimum(kernel_h, height - first)):
                    for j in range(kl.maximum(0, -start), kl.minimum(kernel_w, width - start)):
                        v = (image + ((first + i) * width + start + j) * channels).load(c, lanes, mask)
                        better = v > best
                        best = kl.select(better, v, best)
                        place = kl.select(better, kl.splat((i * kernel_w + j).to(f32), lanes), place)
                y.store(finish(best, item * wide + column, c, lanes, mask), out + c, mask)
                places.store(place + added, out + c, mask)


@maker(MaxPlaces)
def make_max_places(form: MaxPlaces, build: Builder) -> None:
    """Channels in vectors."""
    x, window = form.input, form.window
    (y, first), (places, second) = form.results
    if any(b.dtype is not float32 for b in (x, y, places)) or x.parent is not None or len(x.shape) != 4 or not x.size:
        raise Unmade(f"windows of {x!r}")
    n, high, wide, channels = y.shape
    epilogue, more = epilogue_of(form.expr, (), y, build)
    out = build.pointer(form.output)
    words = [build.pointer(x), out.moved(first), out.moved(second), *x.shape[1:], high, wide, *window.size,
             *window.strides, window.padding[0], window.padding[2], form.more, *more]  # fmt: skip
    build.step(max_places.code(more=len(more), epilogue=epilogue), words, n * high,
               chunk=grain(4 * wide * channels * math.prod(window.size), n * high))  # fmt: skip


@kl.family
def put_in_windows(work, x: ptr[f32], places: ptr[f32], y: ptr[f32], high: i64, wide: i64, channels: i64, height: i64,
                   width: i64, kernel_w: i64, step_h: i64, step_w: i64, top: i64, left: i64):  # fmt: skip
    """An item is an image, whose elements go in their order."""
    for item in work.items():
        image = y + item * height * width * channels
        for p in range(high):
            for q in range(wide):
                at = ((item * high + p) * wide + q) * channels
                for c in range(channels):
                    place = places[at + c]
                    tap = kl.to_int(kl.clamp(kl.select(place > -1.0, place, -1.0), -1.0, 1e9)).to(i64)
                    i, j = p * step_h - top + tap // kernel_w, q * step_w - left + tap % kernel_w
                    if (place > -1.0) & (i >= 0) & (i < height) & (j >= 0) & (j < width):
                        image[(i * width + j) * channels + c] = x[at + c]


@maker(PutInWindows)
def make_put(form: PutInWindows, build: Builder) -> None:
    """Zeros first."""
    x, places, y, window = form.input, form.places, form.output, form.window
    if any(b.dtype is not float32 or b.parent is not None or len(b.shape) != 4 for b in (x, places, y)):
        raise Unmade(f"elements {x!r} at {places!r}")
    if x.shape != places.shape or (x.shape[0], x.shape[3]) != (y.shape[0], y.shape[3]):
        raise Unmade(f"elements {x!r} at {places!r} to {y!r}")
    make_move(Move(y, (), (), 0.0), build)
    words = [build.pointer(x), build.pointer(places), build.pointer(y), *x.shape[1:], *y.shape[1:3], window.size[1],
             *window.strides, window.padding[0], window.padding[2]]  # fmt: skip
    build.step(put_in_windows.code(), words, x.shape[0], chunk=1)
