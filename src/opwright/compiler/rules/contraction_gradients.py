"""Gradients of convolutions, as convolutions: Conv2DBackpropInput, Conv2DBackpropFilter.

Lives here: their rules.  Not here: windows (contractions.py).

    dx[n, y, x, c] = sum dy[n, y + top - ky, x + left - kx, f] w[ky, kx, c, f]
    dw[ky, kx, c, f] = sum x[n, y s + ky d - top, x s + kx d - left, c] dy[n, y, x, f]

The first, with strides of 1, is a convolution by the filter turned round; in the second images and channels change
places, strides and dilations too.
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import float32
from ..loops.expressions import arg
from ..loops.forms import Buffer, Contract, MatMul, TransposedContract, Window
from .contractions import floats, turned, window_of
from .nodes import At, Refused, places
from .registry import rule


@rule("Conv2DBackpropInput")
def by_input(at: At) -> None:
    w, dy = floats(at, 1, 2)
    y = at.output()
    kh, kw, channels, features = w.shape
    window, sizes = window_of(at, y.shape, (kh, kw))
    if dy.shape != (y.shape[0], *sizes, features) or y.shape[3] != channels:
        raise Refused(f"the gradient {dy} of a convolution of {y} and {w}")
    if window.strides != (1, 1):
        if window.dilations != (1, 1):
            raise Refused("strides and dilations")
        at.form(TransposedContract, y, dy, turned(at, w, (2, 0, 1, 3)), (), arg(0, float32), window)
        return
    spans = [(k - 1) * d for k, d in zip(window.size, window.dilations)]
    top, bottom, left, right = window.padding
    margins = (spans[0] - top, spans[0] - bottom, spans[1] - left, spans[1] - right)
    if min(margins) < 0:
        raise Refused(f"margins of {window.padding} around a window of {window.size}")
    filter = _turned_round(at, w)
    at.form(Contract, y, dy, filter, (), arg(0, float32), Window(window.size, (1, 1), window.dilations, margins))


def _turned_round(at: At, w: Buffer) -> Buffer:
    """[height, width, in, out] as [in, height, width, out], height and width backwards."""
    if w.constant is not None:
        array = np.ascontiguousarray(w.constant[::-1, ::-1].transpose(2, 0, 1, 3))
        return Buffer(f"{w.name}.round", w.dtype, array.shape, array)
    view = places(w)[::-1, ::-1].transpose(2, 0, 1, 3)
    made = at.new(w.dtype, view.shape)
    at.moved(made, (w, view, (0, 0, 0, 0)))
    return made


@rule("Conv2DBackpropFilter")
def by_filter(at: At) -> None:
    x, dy = floats(at, 0, 2)
    dw = at.output()
    kh, kw, channels, features = dw.shape
    window, sizes = window_of(at, x.shape, (kh, kw))
    n, height, width = x.shape[:3]
    if dy.shape != (n, *sizes, features) or x.shape[3] != channels:
        raise Refused(f"the gradient {dy} of a convolution of {x} by a filter {dw}")
    total = arg(0, float32)
    if window.size == window.strides == (1, 1) and not any(window.padding):
        rows = n * height * width
        a, b = at.viewed(x, (rows, channels)), at.viewed(dy, (rows, features))
        at.written(dw, (channels, features), lambda out: at.form(MatMul, out, a, b, (), total, True, False))
        return
    extents, margins = [], []
    for i, size in enumerate((height, width)):
        before = window.padding[2 * i]
        span = (window.size[i] - 1) * window.dilations[i] + (sizes[i] - 1) * window.strides[i] + 1
        behind = span - size - before
        extents.append(size + min(behind, 0))  # rows that no window reaches are left out
        margins += [before, max(behind, 0)]
    if min(extents) < 1:
        raise Refused(f"images {x} that windows do not reach")
    view = places(x)[:, : extents[0], : extents[1]].transpose(3, 1, 2, 0)
    images = at.new(x.dtype, view.shape)
    at.moved(images, (x, view, (0, 0, 0, 0)))
    seen = Window((sizes[0], sizes[1]), window.dilations, window.strides,
                  (margins[0], margins[1], margins[2], margins[3]))  # fmt: skip
    found = at.new(float32, (channels, kh, kw, features))
    at.form(Contract, found, images, turned(at, dy, (3, 1, 2, 0)), (), total, seen)
    at.moved(dw, (found, places(found).transpose(1, 2, 0, 3), (0, 0, 0, 0)))
