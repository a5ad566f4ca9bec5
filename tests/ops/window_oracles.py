"""Convolutions and pooling by loops over every output pixel and every kernel element, in float64: oracles."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np


def _axis(size: int, k: int, stride: int, dilation: int, padding: Any) -> list[list[int | None]]:
    """For each position of the window along an axis, the places it sees; None outside the image."""
    extent = (k - 1) * dilation + 1
    if padding == "SAME":
        out = math.ceil(size / stride)
        before = max((out - 1) * stride + extent - size, 0) // 2
    else:
        before, after = (0, 0) if padding == "VALID" else padding
        out = (size + before + after - extent) // stride + 1
    return [
        [p if 0 <= (p := o * stride + q * dilation - before) < size else None for q in range(k)] for o in range(out)
    ]


def _spatial(attrs: dict[str, Any]) -> tuple[int, list[int]]:
    data_format = attrs.get("data_format", "NHWC" if len(attrs["strides"]) == 4 else "NDHWC")
    return data_format.index("C"), [i for i, c in enumerate(data_format) if c not in "NC"]


def _padding(attrs: dict[str, Any], axis: int) -> Any:
    if attrs["padding"] != "EXPLICIT":
        return attrs["padding"]
    return attrs["explicit_paddings"][2 * axis : 2 * axis + 2]


def _seen(sizes: Any, kernel: Any, attrs: dict[str, Any]) -> list[list[list[int | None]]]:
    _, axes = _spatial(attrs)
    dilations = attrs.get("dilations", [1] * len(attrs["strides"]))
    return [
        _axis(sizes[i], kernel[i], attrs["strides"][a], dilations[a], _padding(attrs, a)) for i, a in enumerate(axes)
    ]


def _pairs(seen: Any) -> Any:
    """Each output position, kernel element and image position that meet."""
    for p in itertools.product(*(range(len(s)) for s in seen)):
        for q in itertools.product(*(range(len(s[0])) for s in seen)):
            at = tuple(s[i][j] for s, i, j in zip(seen, p, q))
            if None not in at:
                yield p, q, at


def conv(x: Any, w: Any, **attrs: Any) -> Any:
    channel, _ = _spatial(attrs)
    x = np.moveaxis(x, channel, -1)
    seen = _seen(x.shape[1:-1], w.shape, attrs)
    depth, filters = w.shape[-2:]
    share = filters // (x.shape[-1] // depth)
    y = np.zeros((x.shape[0], *map(len, seen), filters), x.dtype)
    for p, q, at in _pairs(seen):
        for n, o in itertools.product(range(x.shape[0]), range(filters)):
            group = o // share
            for c in range(depth):
                y[(n, *p, o)] += x[(n, *at, group * depth + c)] * w[(*q, c, o)]
    return np.moveaxis(y, -1, channel)


def conv_by_input(sizes: Any, w: Any, dy: Any, **attrs: Any) -> Any:
    channel, _ = _spatial(attrs)
    dx = np.moveaxis(np.zeros([dy.shape[0], *np.asarray(sizes)[1:]]), channel, -1).copy()
    dy = np.moveaxis(dy, channel, -1)
    seen = _seen(dx.shape[1:-1], w.shape, attrs)
    depth, filters = w.shape[-2:]
    share = filters // (dx.shape[-1] // depth)
    for p, q, at in _pairs(seen):
        for n, o in itertools.product(range(dx.shape[0]), range(filters)):
            for c in range(depth):
                dx[(n, *at, o // share * depth + c)] += dy[(n, *p, o)] * w[(*q, c, o)]
    return np.moveaxis(dx, -1, channel)


def conv_by_filter(x: Any, sizes: Any, dy: Any, **attrs: Any) -> Any:
    channel, _ = _spatial(attrs)
    x, dy, dw = np.moveaxis(x, channel, -1), np.moveaxis(dy, channel, -1), np.zeros(np.asarray(sizes))
    seen = _seen(x.shape[1:-1], dw.shape, attrs)
    depth, filters = dw.shape[-2:]
    share = filters // (x.shape[-1] // depth)
    for p, q, at in _pairs(seen):
        for n, o in itertools.product(range(x.shape[0]), range(filters)):
            for c in range(depth):
                dw[(*q, c, o)] += x[(n, *at, o // share * depth + c)] * dy[(n, *p, o)]
    return dw


def _dense_filter(w: Any) -> Any:
    """A depthwise filter as that of a convolution with one group a channel."""
    return w.reshape(*w.shape[:2], 1, -1)


def depthwise(x: Any, w: Any, **attrs: Any) -> Any:
    return conv(x, _dense_filter(w), **attrs)


def depthwise_by_input(sizes: Any, w: Any, dy: Any, **attrs: Any) -> Any:
    return conv_by_input(sizes, _dense_filter(w), dy, **attrs)


def depthwise_by_filter(x: Any, sizes: Any, dy: Any, **attrs: Any) -> Any:
    k = np.asarray(sizes)
    return conv_by_filter(x, [*k[:2], 1, k[2] * k[3]], dy, **attrs).reshape(k)


def _pool_windows(shape: Any, attrs: dict[str, Any]) -> Any:
    explicit = attrs.get("explicit_paddings")
    pads = [explicit[2 * i : 2 * i + 2] if explicit else attrs["padding"] for i in range(len(shape))]
    seen = [_axis(d, attrs["ksize"][i], attrs["strides"][i], 1, pads[i]) for i, d in enumerate(shape)]
    for p in itertools.product(*(range(len(s)) for s in seen)):
        yield p, [at for at in itertools.product(*(s[i] for s, i in zip(seen, p))) if None not in at]


def _pooled(x: Any, attrs: dict[str, Any], of: Any) -> Any:
    result = {p: of([x[at] for at in held]) for p, held in _pool_windows(x.shape, attrs)}
    y = np.zeros([1 + max(p[i] for p in result) for i in range(x.ndim)], x.dtype)
    for p, value in result.items():
        y[p] = value
    return y


def max_pool(x: Any, **attrs: Any) -> Any:
    return _pooled(x, attrs, max)


def avg_pool(x: Any, **attrs: Any) -> Any:
    return _pooled(x, attrs, lambda values: math.fsum(values) / len(values))


def max_pool_grad(x: Any, y: Any, g: Any, **attrs: Any) -> Any:
    dx = np.zeros(x.shape, x.dtype)
    for p, held in _pool_windows(x.shape, attrs):
        dx[max(held, key=lambda at: x[at])] += g[p]  # the first of equal ones
    return dx


def max_pool_grad_grad(x: Any, y: Any, g: Any, **attrs: Any) -> Any:
    out = np.zeros(y.shape, x.dtype)
    for p, held in _pool_windows(x.shape, attrs):
        out[p] = g[max(held, key=lambda at: x[at])]
    return out


def avg_pool_grad(shape: Any, g: Any, **attrs: Any) -> Any:
    dx = np.zeros(np.asarray(shape))
    for p, held in _pool_windows(dx.shape, attrs):
        for at in held:
            dx[at] += g[p] / len(held)
    return dx


def argmax_pool(batch: bool, **attrs: Any) -> Any:
    def oracle(x: Any) -> Any:
        y, at = max_pool(x, **attrs), None
        at = np.zeros(y.shape, np.int64)
        for p, held in _pool_windows(x.shape, attrs):
            best = max(held, key=lambda place: x[place])
            at[p] = np.ravel_multi_index(best if batch else (0, *best[1:]), x.shape)
        return y, at

    return oracle
