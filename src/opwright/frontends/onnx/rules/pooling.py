"""Pools of ONNX: of windows, with pads that count or not, of whole images.

Lives here: MaxPool, AveragePool, LpPool, their global forms, MaxUnpool, MaxRoiPool.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import int64
from ....ops import array, math, nn
from ....ops.array import cast
from ....ops.dispatch import to_tensor
from ..execution import RULES
from ..operands import at, dims, dtype_of, rank_of, static_dims
from .convolution import Windows, channels_last, channels_second, columns, padded, windows_of

rule = RULES.rule


def _extended(windows: Windows, sizes: Any) -> Windows:
    """Return windows with the pads that ceil_mode needs and without pads that no window reaches."""
    after = []
    for size, k, s, d, b, a, count in zip(sizes, *windows):
        after.append(a if count is None else (count - 1) * s + (k - 1) * d + 1 - size - b)
    return windows._replace(after=after)


def _cut(x: Any, windows: Windows) -> tuple[Any, Windows]:
    """Return [n, ..., c] without elements that no window reaches, so that pads are not negative."""
    index: list[Any] = [slice(None)]
    for size, after in zip(dims(x)[1:-1], windows.after):
        index.append(slice(None) if after >= 0 or size is None else slice(0, size + after))
    if any(i != slice(None) for i in index):
        x = to_tensor(x)[tuple(index)]
    return x, windows._replace(after=[max(a, 0) for a in windows.after])


def _lowest(x: Any) -> Any:
    dtype = dtype_of(x)
    return -np.inf if dtype.is_floating else np.iinfo(dtype.np).min


@rule("MaxPool")
def max_pool(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    sizes = dims(x)[2:]
    exact = windows_of(sizes, attributes["kernel_shape"], attributes)
    plain = max(exact.dilations) == 1 and not context.wants(1) and len(sizes) <= 3
    last = channels_last(x)
    extended = _extended(exact, sizes)
    if plain and len(sizes) == 2 and (exact.same(sizes) or extended.same(sizes)):
        return channels_second(nn.max_pool2d(last, exact.kernel, exact.strides, "SAME"))
    last, windows = _cut(last, extended)
    last = padded(last, windows, _lowest(x))
    if plain:
        if len(sizes) == 1:
            wide = array.expand_dims(last, 1)
            pooled = array.squeeze(nn.max_pool2d(wide, [1, *windows.kernel], [1, *windows.strides], "VALID"), [1])
        else:
            pool = nn.max_pool2d if len(sizes) == 2 else nn.max_pool3d
            pooled = pool(last, windows.kernel, windows.strides, "VALID")
        return channels_second(pooled)
    elements = columns(last, windows)
    axis = rank_of(last) - 1
    values = channels_second(math.reduce_max(elements, axis))
    if not context.wants(1):
        return values
    where_ = _flat_positions(static_dims(x, "indices of a pool"), windows, attributes.get("storage_order", 0))
    chosen = channels_second(math.argmax(elements, axis))  # [n, c, ...]: the place in its window
    flat = np.broadcast_to(where_, (*dims(chosen), where_.shape[-1]))
    picked = array.gather(np.ascontiguousarray(flat), array.expand_dims(chosen, -1), batch_dims=rank_of(chosen))
    return values, array.squeeze(picked, [-1])


def _flat_positions(shape: Any, windows: Windows, columns_first: int) -> np.ndarray:
    """Return, for [n, c, ...], the position in the flat input of each window's elements."""
    n, c, *sizes = shape
    grids = []
    for count, k, s, d, b in zip(windows.results, *windows[:4]):
        grids.append(np.arange(count)[:, None] * s + np.arange(k) * d - b)  # type: ignore[arg-type]
    rank, total = len(sizes), 0
    strides = np.cumprod([1, *sizes[:-1]] if columns_first else [1, *sizes[:0:-1]])
    strides = strides if columns_first else strides[::-1]
    position: Any = 0
    for i, (grid, stride) in enumerate(zip(grids, strides)):
        form = [1] * (2 * rank)
        form[i], form[rank + i] = grid.shape
        position = position + grid.reshape(form) * stride
    total = int(np.prod(sizes))
    position = position.reshape([*position.shape[:rank], -1])
    batches = np.arange(n * c).reshape([n, c, *[1] * (rank + 1)]) * total
    result: np.ndarray = (position[None, None] + batches).astype(np.int64)
    return result


@rule("MaxUnpool")
def max_unpool(context: Any, inputs: Any, attributes: Any) -> Any:
    """Put each value at its position in the flat result. An output_shape is that of the result's padded frame."""
    x, indices = inputs[:2]
    n, c, *sizes = static_dims(x, "MaxUnpool")
    kernel = attributes["kernel_shape"]
    strides = attributes.get("strides") or [1] * len(kernel)
    pads = attributes.get("pads") or [0] * 2 * len(kernel)
    rank = len(kernel)
    own = [(s - 1) * t + k - b - a for s, t, k, b, a in zip(sizes, strides, kernel, pads[:rank], pads[rank:])]
    flat = array.scatter_nd(
        array.reshape(cast(indices, int64), [-1, 1]),
        array.reshape(x, [-1]),
        np.asarray([n * c * np.prod(own)], np.int64),
    )
    y = array.reshape(flat, [n, c, *own])
    if at(inputs, 2) is None:
        return y
    target = context.required(inputs[2], "the result's shape").tolist()
    return array.pad(y, np.asarray([[0, t - s] for t, s in zip(target, [n, c, *own])], np.int32))


@rule("AveragePool")
def average_pool(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    sizes = dims(x)[2:]
    exact = windows_of(sizes, attributes["kernel_shape"], attributes)
    counted = bool(attributes.get("count_include_pad"))
    padless = not any(exact.before) and not any(exact.after)
    plain = max(exact.dilations) == 1 and len(sizes) == 2
    last, extended = channels_last(x), _extended(exact, sizes)
    if plain and not counted and (exact.same(sizes) or extended.same(sizes)):
        return channels_second(nn.avg_pool2d(last, exact.kernel, exact.strides, "SAME"))
    if plain and not attributes.get("ceil_mode"):
        if padless:
            return channels_second(nn.avg_pool2d(last, exact.kernel, exact.strides, "VALID"))
        if counted:
            return channels_second(nn.avg_pool2d(padded(last, exact), exact.kernel, exact.strides, "VALID"))
    if plain and None in sizes:
        return channels_second(_average_of_unknown_sizes(last, exact, counted, attributes))
    last, windows = _cut(last, extended)
    elements = columns(padded(last, windows), windows)
    total = math.reduce_sum(elements, rank_of(last) - 1)
    # How many elements of each window count: a product over the axes.
    counts: Any = np.ones(())
    for size, k, s, d, b, a, count in zip(sizes, *exact):
        place = np.arange(count)[:, None] * s + np.arange(k) * d
        low, high = (0, size + b + a) if counted else (b, size + b)
        counts = counts[..., None] * ((place >= low) & (place < high)).sum(1)
    average = math.realdiv(total, counts[None, ..., None].astype(dtype_of(x).np))
    return channels_second(average)


def _average_of_unknown_sizes(last: Any, windows: Windows, counted: bool, attributes: Any) -> Any:
    """Return the means of zeros and elements, divided by the share of the elements that count."""
    ones = array.ones_like(last[..., :1])
    if counted:  # pads count, except for the pads of ceil_mode
        added = [
            s - 1 if size is None and attributes.get("ceil_mode") else 0
            for size, s in zip(dims(last)[1:], windows.strides)
        ]
        ones = padded(ones, windows._replace(after=[a - e for a, e in zip(windows.after, added)]), 1)
        ends = padded(ones, windows._replace(before=[0, 0], after=added))
    else:
        ends = padded(ones, windows)
    sums, shares = (nn.avg_pool2d(v, windows.kernel, windows.strides, "VALID") for v in (padded(last, windows), ends))
    return math.realdiv(sums, shares)


@rule("LpPool")
def lp_pool(context: Any, inputs: Any, attributes: Any) -> Any:
    x, p = inputs[0], attributes.get("p", 2)
    sizes = dims(x)[2:]
    last, windows = _cut(channels_last(x), _extended(windows_of(sizes, attributes["kernel_shape"], attributes), sizes))
    elements = math.abs(columns(padded(last, windows), windows))
    power, root = np.asarray(p, dtype_of(x).np), np.asarray(1 / p, dtype_of(x).np)
    return channels_second(math.pow(math.reduce_sum(math.pow(elements, power), rank_of(last) - 1), root))


def _spatial(x: Any) -> list[int]:
    return list(range(2, rank_of(x)))


@rule("GlobalAveragePool")
def global_average_pool(context: Any, inputs: Any, attributes: Any) -> Any:
    return math.reduce_mean(inputs[0], _spatial(inputs[0]), True)


@rule("GlobalMaxPool")
def global_max_pool(context: Any, inputs: Any, attributes: Any) -> Any:
    return math.reduce_max(inputs[0], _spatial(inputs[0]), True)


@rule("GlobalLpPool")
def global_lp_pool(context: Any, inputs: Any, attributes: Any) -> Any:
    x, p = inputs[0], attributes.get("p", 2)
    power, root = np.asarray(p, dtype_of(x).np), np.asarray(1 / p, dtype_of(x).np)
    return math.pow(math.reduce_sum(math.pow(math.abs(x), power), _spatial(x), True), root)
