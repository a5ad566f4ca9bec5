"""Pools of images.

Lives here: rules of ATen's pools and adaptive pools. Not here: convolutions (linear.py), resizing (interpolation.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.dtypes import int64
from ....ops import array, linalg, math, nn
from ....ops.array_shapes import axes_last
from ....ops.windows import is_same_padding
from .table import AtenCall, aten, dim_size, rank_of, sizes, spread, tensor, to_nchw, to_nhwc


def _windows(
    x: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, n: int
) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Return sizes and steps of windows, and the elements added before and after each dimension."""
    window = spread(kernel, n)
    steps = spread(stride, n) if stride not in (None, [], ()) else window
    sides = []
    for size, k, s, p in zip(sizes(x)[2:], window, steps, spread(padding, n)):
        after = p
        if ceil_mode and size is not None:
            count = -(-(size + 2 * p - k) // s) + 1
            if (count - 1) * s >= size + p:
                count -= 1  # a window that would begin in the padding
            after = max((count - 1) * s + k - size - p, 0)
        sides.append((p, after))
    return window, steps, sides


def _batched(rule: Callable[..., Any], n: int) -> Callable[..., Any]:
    """Return a rule of images without a batch as well."""

    def batched(op: AtenCall, x: Any, *args: Any, **options: Any) -> Any:
        x = tensor(x)
        single = rank_of(x) == n + 1
        y = rule(op, array.expand_dims(x, 0) if single else x, n, *args, **options)
        if not single:
            return y
        return [array.squeeze(v, [0]) for v in y] if isinstance(y, (list, tuple)) else array.squeeze(y, [0])

    return batched


def _pooled(x: Any, n: int, window: list[int], steps: list[int], pool: Any, padding: str = "VALID") -> Any:
    """Pool channels-first images; sequences are images of one row."""
    if n == 1:
        y = _pooled(array.expand_dims(x, 2), 2, [1, *window], [1, *steps], pool, padding)
        return array.squeeze(y, [2])
    y = to_nhwc(x)
    pools = {("max", 2): nn.max_pool2d, ("avg", 2): nn.avg_pool2d, ("max", 3): nn.max_pool3d, ("avg", 3): nn.avg_pool3d}
    return to_nchw(pools[pool, n](y, window, steps, padding))


def _max_pool(
    op: AtenCall,
    x: Any,
    n: int,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    wide = spread(dilation, n)
    window, steps, sides = _windows(x, kernel, stride, padding, ceil_mode, n)
    if any(d > 1 for d in wide):
        extent = [(k - 1) * d + 1 for k, d in zip(window, wide)]
        _, _, sides = _windows(x, extent, steps, padding, ceil_mode, n)
        return _dilated(x, window, steps, sides, wide)
    if any(map(any, sides)):
        if is_same_padding(sizes(x)[2:], sides, window, steps, wide):
            return _pooled(x, n, window, steps, "max", "SAME")
        x = array.pad(x, [[0, 0], [0, 0], *map(list, sides)], constant_values=tensor(_lowest(x.dtype), x.dtype))
    return _pooled(x, n, window, steps, "max")


def _lowest(dtype: Any) -> Any:
    return float("-inf") if dtype.is_floating else dtype.min


def _dilated(x: Any, window: list[int], steps: list[int], sides: Any, wide: list[int]) -> Any:
    """Return maxima of windows with holes: the largest of shifted slices."""
    x = array.pad(x, [[0, 0], [0, 0], *map(list, sides)], constant_values=tensor(_lowest(x.dtype), x.dtype))
    for axis, (k, s, d) in enumerate(zip(window, steps, wide), 2):
        count = (int(x.shape[axis]) - (k - 1) * d - 1) // s + 1
        places = np.arange(count)[:, None] * s + np.arange(k)[None] * d
        x = math.reduce_max(array.gather(x, places.astype(np.int32), axis=axis), [axis + 1])
    return x


def _max_pool_indices(op: AtenCall, x: Any, n: int, *args: Any, **options: Any) -> Any:
    """Return maxima, and their positions in the flat image."""
    options.update(zip(("kernel", "stride", "padding", "dilation", "ceil_mode"), args))
    window, steps, sides = _windows(
        x, options["kernel"], options.get("stride", ()), options.get("padding", 0), options.get("ceil_mode", False), n
    )
    wide = spread(options.get("dilation", 1), n)
    dims = [int(d) for d in sizes(x)[2:]]  # type: ignore[arg-type]
    extent = [(k - 1) * d + 1 for k, d in zip(window, wide)]
    _, _, sides = _windows(x, extent, steps, options.get("padding", 0), options.get("ceil_mode", False), n)
    padded = array.pad(x, [[0, 0], [0, 0], *map(list, sides)], constant_values=tensor(_lowest(x.dtype), x.dtype))
    flat_places = np.arange(int(np.prod(dims))).reshape(dims)
    flat_places = np.pad(flat_places, sides)
    counts = [(d + sum(p) - e) // s + 1 for d, p, e, s in zip(dims, sides, extent, steps)]
    grids = [np.arange(c)[:, None] * s + np.arange(k)[None] * d for c, s, k, d in zip(counts, steps, window, wide)]
    whole = [d + sum(p) for d, p in zip(dims, sides)]
    places = np.zeros([1] * (2 * n), np.int64)
    for i, grid in enumerate(grids):
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = grid.shape
        places = places + grid.reshape(shape) * int(np.prod(whole[i + 1 :]))
    rows = places.reshape(int(np.prod(counts)), -1)
    lead = [-1 if x.shape[0] is None else int(x.shape[0]), int(x.shape[1])]
    return _best(
        array.reshape(padded, [*lead, int(np.prod(whole))]), rows, flat_places.reshape(-1)[rows], [*lead, *counts]
    )


def _best(flat: Any, rows: np.ndarray, origin: np.ndarray, dims: list[int]) -> tuple[Any, Any]:
    """Return the largest of the elements at `rows` of flat images, and the number in `origin` of the first such."""
    elements = array.gather(flat, rows.astype(np.int32), axis=2)
    best = math.argmax(elements, axis=3, output_type=int64)
    choices = array.one_hot(best, rows.shape[1], dtype=int64)
    positions = math.reduce_sum(choices * origin, [3])
    values = math.reduce_max(elements, [3])
    return array.reshape(values, dims), array.reshape(positions, dims)


def _avg_pool(
    op: AtenCall,
    x: Any,
    n: int,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    window, steps, sides = _windows(x, kernel, stride, padding, ceil_mode, n)
    dims = sizes(x)[2:]
    if any(map(any, sides)):
        x = array.pad(x, [[0, 0], [0, 0], *map(list, sides)])
    y = _pooled(x, n, window, steps, "avg")
    size = float(np.prod(window))
    if divisor_override:
        return y * tensor(size / divisor_override, op.dtype)
    if not any(map(any, sides)):
        return y
    before = spread(padding, n)
    over = [(0, a - p) for (_, a), p in zip(sides, before)]
    if count_include_pad and not any(map(any, over)):
        return y
    if None in dims:
        raise ValueError("an average pool with padding of an unknown size")
    mask = np.ones([int(d) + (2 * p if count_include_pad else 0) for d, p in zip(dims, before)])  # type: ignore[arg-type]
    mask = np.pad(mask, [(0, max(o, 0)) for _, o in over] if count_include_pad else sides)
    counts = np.lib.stride_tricks.sliding_window_view(mask, window)[tuple(slice(None, None, s) for s in steps)]
    counts = counts.reshape(*counts.shape[:n], -1).sum(-1)
    return y * tensor((size / counts).astype(op.dtype.np))


for _n in (1, 2, 3):
    aten(f"max_pool{_n}d")(_batched(_max_pool, _n))
    aten(f"max_pool{_n}d_with_indices")(_batched(_max_pool_indices, _n))
    aten(f"avg_pool{_n}d")(_batched(_avg_pool, _n))


# ---- adaptive pools ---------------------------------------------------------------------------------------------


def _adaptive_ranges(size: int, count: int) -> list[tuple[int, int]]:
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _adaptive(kind: str, n: int) -> Callable[..., Any]:
    def rule(op: AtenCall, x: Any, n: int, output: Any) -> Any:
        counts = [dim_size(x, i + 2) if c is None else c for i, c in enumerate(spread(output, n))]
        dims = sizes(x)[2:]
        if all(c == 1 for c in counts):
            axes = list(range(2, n + 2))
            return (math.reduce_mean if kind == "avg" else math.reduce_max)(x, axes, True)
        if dims == counts:
            return x
        if None in dims:
            raise ValueError("an adaptive pool of an unknown size")
        known = [int(d) for d in dims]  # type: ignore[arg-type]
        if all(d % c == 0 for d, c in zip(known, counts)):
            window = [d // c for d, c in zip(known, counts)]
            return _pooled(x, n, window, window, kind)
        for axis, (d, c) in enumerate(zip(known, counts), 2):
            if kind == "avg":
                weights = np.zeros((c, d))
                for i, (a, b) in enumerate(_adaptive_ranges(d, c)):
                    weights[i, a:b] = 1.0 / (b - a)
                x = along(x, weights, axis)
            else:
                cut = (slice(None),) * axis
                parts = [math.reduce_max(x[(*cut, slice(a, b))], [axis], True) for a, b in _adaptive_ranges(d, c)]
                x = array.concat(parts, axis=axis)
        return x

    return _batched(rule, n)


def along(x: Any, weights: np.ndarray, axis: int) -> Any:
    """Return the product of a constant matrix [new, old] and a tensor along one of its axes."""
    rank = rank_of(x)
    matrix = tensor(weights.astype(x.dtype.np))
    if axis == rank - 1:
        return linalg.matmul(x, matrix, transpose_b=True)
    if axis == rank - 2:
        return linalg.matmul(matrix, x)
    order, back = axes_last([axis], rank)
    return array.transpose(linalg.matmul(array.transpose(x, order), matrix, transpose_b=True), back)


for _n in (1, 2, 3):
    aten(f"adaptive_avg_pool{_n}d", f"_adaptive_avg_pool{_n}d")(_adaptive("avg", _n))


def _adaptive_indices(op: AtenCall, x: Any, n: int, counts: list[int]) -> tuple[Any, Any]:
    """Return maxima and positions of windows of several sizes, whose last element is repeated."""
    dims = [int(d) for d in sizes(x)[2:]]  # type: ignore[arg-type]
    places: Any = np.zeros([1] * (2 * n), np.int64)
    for i, (d, c) in enumerate(zip(dims, counts)):
        ranges = _adaptive_ranges(d, c)
        longest = max(b - a for a, b in ranges)
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = c, longest
        grid = np.array([np.minimum(np.arange(a, a + longest), b - 1) for a, b in ranges])
        places = places + grid.reshape(shape) * int(np.prod(dims[i + 1 :]))
    rows = places.reshape(int(np.prod(counts)), -1)
    lead = [-1 if x.shape[0] is None else int(x.shape[0]), int(x.shape[1])]
    return _best(array.reshape(x, [*lead, int(np.prod(dims))]), rows, rows, [*lead, *counts])


def _adaptive_max(n: int) -> Callable[..., Any]:
    def with_indices(op: AtenCall, x: Any, output: Any) -> Any:
        counts = spread(output, n)
        dims = [int(d) for d in sizes(x)[-n:]]  # type: ignore[arg-type]
        if any(d % c for d, c in zip(dims, counts)):
            return _batched(_adaptive_indices, n)(op, x, counts)
        window = [d // c for d, c in zip(dims, counts)]
        return _batched(_max_pool_indices, n)(op, x, window, window)

    return with_indices


for _n in (1, 2, 3):
    aten(f"adaptive_max_pool{_n}d")(_adaptive_max(_n))


@aten("im2col")
def im2col(op: AtenCall, x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    x = tensor(x)
    single = rank_of(x) == 3
    x = array.expand_dims(x, 0) if single else x
    x = array.pad(x, [[0, 0], [0, 0], *([p, p] for p in spread(padding, 2))])
    for axis, (k, d, s) in enumerate(zip(kernel, spread(dilation, 2), spread(stride, 2))):
        place = 2 + 2 * axis
        count = (int(x.shape[place]) - (k - 1) * d - 1) // s + 1
        places = np.arange(k)[:, None] * d + np.arange(count)[None] * s
        x = array.gather(x, places.astype(np.int32), axis=place)
    n, c, kh, h, kw, w = (-1 if v is None else int(v) for v in sizes(x))
    y = array.reshape(array.transpose(x, [0, 1, 2, 4, 3, 5]), [n, c * kh * kw, h * w])
    return array.squeeze(y, [0]) if single else y
