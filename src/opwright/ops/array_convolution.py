"""Convolutions of NumPy arrays over sliding windows: by im2col and matrix products, and their adjoints.

Lives here: convolutions forward, by input and by filter, dense (with groups) and depthwise, for any number of spatial
dimensions; the strategies among which a dense one is chosen.
Not here: positions of windows and paddings (windows.py), operators (nn/convolution.py, nn/depthwise.py).

Arrays are [n, *spatial, channels], filters [*kernel, channels / groups, out]; `windows` has one AxisWindow a spatial
dimension. 16-bit floats are added up in float32. Loops go over kernel elements and batches, never over pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from . import like_device
from .accumulation import wide
from .strategies import Strategies, Strategy
from .windows import AxisWindow, channel_axis, pad, spatial_windows, taps, unpadded

Windows = Sequence[AxisWindow]
COLUMN_BYTES = 1 << 26
"""Bytes that im2col copies at a time, at least one image: it copies every pixel once per kernel element."""


def im2col(x: np.ndarray, windows: Windows, groups: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield im2col matrices of parts of the batch: [groups, positions, kernel elements * channels / groups]."""
    n, channels = x.shape[0], x.shape[-1]
    kernel = math.prod(w.kernel for w in windows)
    out = [w.out for w in windows]
    image_bytes = math.prod(out) * kernel * channels * x.itemsize
    step = max(1, COLUMN_BYTES // max(image_bytes, 1))
    axes = tuple(range(1, 1 + len(windows)))
    starts = tuple(slice(0, (w.out - 1) * w.stride + 1, w.stride) for w in windows)
    holes = tuple(slice(None, None, w.dilation) for w in windows)
    padded = pad(x, windows)
    for first in range(0, n, step):
        part = slice(first, first + step)
        if kernel == 1:  # every pixel is a column: sliding_window_view costs 30 us
            pixels = padded[(part, *starts)].reshape(-1, groups, channels // groups)
            yield part, pixels.transpose(1, 0, 2)
            continue
        view = sliding_window_view(padded[part], tuple(w.extent for w in windows), axis=axes)
        view = view[(slice(None), *starts, slice(None), *holes)]  # [n, *out, channels, *kernel]
        view = np.moveaxis(view, 1 + len(windows), -1)
        rows = math.prod(view.shape[: 1 + len(windows)])
        seen = view.reshape(rows, kernel, groups, channels // groups).transpose(2, 0, 1, 3)
        yield part, seen.reshape(groups, rows, kernel * (channels // groups))


def _by_group(y: np.ndarray, groups: int) -> np.ndarray:
    """Return [n, *out, channels] as [groups, positions, channels / groups]."""
    return y.reshape(-1, groups, y.shape[-1] // groups).transpose(1, 0, 2)


def convolve(op: Any, x: np.ndarray, w: np.ndarray, windows: Windows, out: np.ndarray | None = None) -> np.ndarray:
    """y[n, p, o] = sum of x[n, p * stride + q * dilation - before, c] * w[q, c, o] over q and the group's c.

    out: where the result is written, of x's dtype; for arrays of the host
    """
    if not like_device.on_host(x):
        return _in_place(x, w, windows)
    if out is None:
        y: np.ndarray = CONVOLUTIONS[len(windows)](op, x, w, windows)
        return y
    way = CONVOLUTIONS[len(windows)].chosen(op, x, w, windows)
    products = _one_group(op, x, w, windows) and wide(x.dtype) == x.dtype == out.dtype and out.flags.c_contiguous
    if products and (way is None or _is_point(op, x, w, windows)):
        matrix = w.reshape(-1, w.shape[-1])
        for part, seen in im2col(x, windows, 1):
            np.matmul(seen[0], matrix, out=out[part].reshape(-1, w.shape[-1]))
    else:
        np.copyto(out, CONVOLUTIONS[len(windows)](op, x, w, windows), casting="unsafe")
    return out


def _by_columns(op: Any, x: np.ndarray, w: np.ndarray, windows: Windows) -> np.ndarray:
    """Convolve by im2col and one matrix product."""
    dtype, out = x.dtype, [v.out for v in windows]
    y = np.zeros((x.shape[0], *out, w.shape[-1]), wide(dtype))
    groups = _groups(x.shape[-1], w)
    if not y.size or not w.size:
        return y.astype(dtype)
    x, w = x.astype(wide(dtype), copy=False), w.astype(wide(dtype), copy=False)
    kernel, depth, filters = math.prod(w.shape[:-2]), w.shape[-2], w.shape[-1]
    matrix = (
        w.reshape(kernel, depth, groups, filters // groups).transpose(2, 0, 1, 3).reshape(groups, kernel * depth, -1)
    )
    for part, seen in im2col(x, windows, groups):
        product = np.matmul(seen, matrix)
        y[part] = product.transpose(1, 0, 2).reshape(-1, *out, filters)
    return y.astype(dtype, copy=False)


def _in_place(x: Any, w: Any, windows: Windows) -> np.ndarray:
    """Convolve on a device by a product for each element of the kernel and group, so that no pixel is copied."""
    dtype, filters, groups = x.dtype, w.shape[-1], _groups(x.shape[-1], w)
    y = like_device.zeros(x, (x.shape[0], *(v.out for v in windows), filters), wide(dtype))
    if y.size and w.size:
        padded, w = pad(x.astype(wide(dtype), copy=False), windows), w.astype(wide(dtype), copy=False)
        for index, seen in taps(windows):
            tap = w[index].reshape(w.shape[-2], groups, filters // groups).transpose(1, 0, 2)
            product = np.matmul(_by_group(padded[(slice(None), *seen)], groups), tap)
            y += product.transpose(1, 0, 2).reshape(y.shape)
    result: np.ndarray = y.astype(dtype, copy=False)
    return result


def _filter_in_place(x: Any, dy: Any, kernel: Sequence[int], depth: int, windows: Windows) -> np.ndarray:
    """Return the adjoint by the filter on a device; see `_in_place`."""
    dtype, filters = x.dtype, dy.shape[-1]
    dw = like_device.zeros(x, (*kernel, depth, filters), wide(dtype))
    if dw.size and dy.size:
        padded, groups = pad(x.astype(wide(dtype), copy=False), windows), x.shape[-1] // depth
        rows = _by_group(dy.astype(wide(dtype), copy=False), groups)
        for index, seen in taps(windows):
            product = np.matmul(_by_group(padded[(slice(None), *seen)], groups).transpose(0, 2, 1), rows)
            dw[index] = product.transpose(1, 0, 2).reshape(depth, filters)
    return dw.astype(dtype, copy=False)


def _by_taps(op: Any, x: np.ndarray, w: np.ndarray, windows: Windows) -> np.ndarray:
    """Convolve by one matrix product per kernel element, which reads the image in place."""
    dtype, y = x.dtype, None
    padded, w = pad(x.astype(wide(dtype), copy=False), windows), w.astype(wide(dtype), copy=False)
    for index, seen in taps(windows):
        image = padded[(slice(None), *seen)]
        flat = image.reshape(-1, image.shape[-1]) if image.flags.c_contiguous else image  # one product instead of many
        part = np.matmul(flat, w[index]).reshape(*image.shape[:-1], -1)
        y = part if y is None else np.add(y, part, out=y)
    assert y is not None
    array: np.ndarray = y.astype(dtype, copy=False)
    return array


def _one_group(op: Any, x: np.ndarray, w: np.ndarray, windows: Windows) -> bool:
    return x.size > 0 and w.size > 0 and x.shape[-1] == w.shape[-2] and all(v.out for v in windows)


def _is_point(op: Any, x: np.ndarray, w: np.ndarray, windows: Windows) -> bool:
    return all(v.kernel == 1 and not v.before and not v.after for v in windows) and _one_group(op, x, w, windows)


def _is_deep(op: Any, x: np.ndarray, w: np.ndarray, windows: Windows) -> bool:
    return (
        32 <= x.shape[-1] <= 128
        and w.shape[-1] <= 128
        and all(v.stride == 1 and v.kernel <= 3 for v in windows)
        and x.shape[0] * math.prod(v.out for v in windows) >= 2048
    )


def _prepared(op: Any, image: np.ndarray, filters: np.ndarray) -> tuple[Any, ...]:
    x = np.moveaxis(image, channel_axis(op.data_format), -1)
    return x, filters, spatial_windows(op, x.shape[1:-1], filters.shape)


def _strategies(n: int) -> Strategies:
    return Strategies(
        f"Conv{n}D",
        _by_columns,
        Strategy("point", _by_taps, _is_point, "a kernel of size 1 without padding", "conv_point", fits=_is_point),
        Strategy(
            "taps",
            _by_taps,
            _is_deep,
            "kernels up to 3 with stride 1, 32 to 128 channels, at least 2048 positions",
            "conv_taps",
            fits=_one_group,
            tolerance=4096,
        ),
        prepare=_prepared,
    )


CONVOLUTIONS = {n: _strategies(n) for n in (2, 3)}


def convolve_by_filter(
    x: np.ndarray, dy: np.ndarray, kernel: Sequence[int], depth: int, windows: Windows
) -> np.ndarray:
    """Return the adjoint of `convolve` with respect to its filter, [*kernel, depth, filters]."""
    if not like_device.on_host(x):
        array: np.ndarray = _filter_in_place(x, dy, kernel, depth, windows)
        return array
    dtype, filters = x.dtype, dy.shape[-1]
    groups = x.shape[-1] // depth if depth else 1
    total = np.zeros((groups, math.prod(kernel) * depth, filters // groups), wide(dtype))
    if total.size and dy.size:
        x, dy = x.astype(wide(dtype), copy=False), dy.astype(wide(dtype), copy=False)
        for part, seen in im2col(x, windows, groups):
            total += np.matmul(seen.transpose(0, 2, 1), _by_group(dy[part], groups))
    dw = total.reshape(groups, -1, depth, filters // groups).transpose(1, 2, 0, 3) if total.size else total
    return dw.reshape(*kernel, depth, filters).astype(dtype, copy=False)


def convolve_by_input(dy: np.ndarray, w: np.ndarray, shape: Sequence[int], windows: Windows) -> np.ndarray:
    """Return the adjoint of `convolve` with respect to its input: each kernel element adds to its pixels."""
    dtype, channels = dy.dtype, shape[-1]
    groups = _groups(channels, w)
    padded = like_device.zeros(dy, (shape[0], *(v.before + v.size + v.after for v in windows), channels), wide(dtype))
    if dy.size and w.size:
        dy, w = dy.astype(wide(dtype), copy=False), w.astype(wide(dtype), copy=False)
        rows = _by_group(dy, groups)
        for index, seen in taps(windows):
            tap = w[index].reshape(w.shape[-2], groups, -1).transpose(1, 2, 0)
            product = np.matmul(rows, tap).transpose(1, 0, 2)
            padded[(slice(None), *seen)] += product.reshape(*dy.shape[:-1], channels)
    return padded[(slice(None), *unpadded(windows))].astype(dtype, copy=False)


def _groups(channels: int, w: np.ndarray) -> int:
    return channels // w.shape[-2] if w.shape[-2] else 1


def convolve_depthwise(x: np.ndarray, w: np.ndarray, windows: Windows, out: np.ndarray | None = None) -> np.ndarray:
    """y[n, p, c * m + j] = sum of x[n, p * stride + q * dilation - before, c] * w[q, c, j] over q.

    out: where the result is written, of x's dtype; for arrays of the host
    """
    dtype, (channels, multiplier) = x.dtype, w.shape[-2:]
    padded, w = pad(x.astype(wide(dtype), copy=False), windows), w.astype(wide(dtype), copy=False)
    shape = (x.shape[0], *(v.out for v in windows), channels * multiplier)
    if (
        multiplier == 1
        and len(windows) > 1
        and math.prod(shape)
        and shape[-1] * shape[-2] > 1
        and like_device.on_host(x)
    ):
        in_place = out is not None and out.dtype == padded.dtype and out.flags.c_contiguous
        y = out if in_place else np.empty(shape, padded.dtype)
        assert y is not None
        _depthwise_by_sums(padded, w[..., 0], windows, y)
    else:
        y = like_device.zeros(x, (*shape[:-1], channels, multiplier), padded.dtype)
        product = None  # made once, as every element of the kernel sees as many pixels
        for index, seen in taps(windows):
            product = np.multiply(padded[(slice(None), *seen)][..., None], w[index], out=product)
            y += product
        y = y.reshape(shape)
    if out is None:
        return y.astype(dtype, copy=False)
    if y is not out:
        np.copyto(out, y, casting="unsafe")
    return out


LINE_CHANNELS = 64
"""With fewer channels, pixels under strides are gathered into lines first: loops over the channels alone take longer. A
single channel is gathered, too: its pixels and elements of a kernel are equally far apart, and summed in any order."""


def _depthwise_by_sums(padded: np.ndarray, w: np.ndarray, windows: Windows, y: np.ndarray) -> None:
    """Convolve each channel by itself; w: [*kernel, channels], y contiguous.

    A sum of products over views of the image adds the elements of a kernel up in order, and takes half the time of a
    product and a sum for each. Without strides, its vectors are lines of pixels and channels.
    """
    *others, last = windows
    channels, strides = w.shape[-1], [*padded.strides]
    by_pixel = [last.stride * strides[-2], strides[-1]]
    by_tap = last.dilation * strides[-2]
    line: tuple[int, ...] = (last.out, channels)
    if channels == 1 or (channels < LINE_CHANNELS and last.stride > 1):
        padded = np.stack([padded[..., last.tap(i), :] for i in range(last.kernel)], axis=-3)
        *strides, by_tap, pixel, channel = padded.strides
        by_pixel = [pixel, channel]
    if by_pixel[0] == channels * by_pixel[1]:
        line, by_pixel = (last.out * channels,), by_pixel[1:]
        w = np.repeat(w[..., None, :], last.out, axis=-2).reshape(*w.shape[:-1], -1)
    spatial, kernel = [v.out for v in others], [v.kernel for v in windows]
    over = [v.stride * stride for v, stride in zip(others, strides[1:])]
    under = [*(v.dilation * stride for v, stride in zip(others, strides[1:])), by_tap]
    seen = as_strided(padded, (len(y), *spatial, *kernel, *line), (strides[0], *over, *under, *by_pixel))
    axes = [*range(seen.ndim)]
    taps_at = axes[1 + len(spatial) :][: len(kernel)]
    kept = [i for i in axes if i not in taps_at]
    np.einsum(seen, axes, w, [*taps_at, axes[-1]], kept, out=y.reshape(len(y), *spatial, *line))


def depthwise_by_filter(x: np.ndarray, dy: np.ndarray, shape: Sequence[int], windows: Windows) -> np.ndarray:
    """Return the adjoint of `convolve_depthwise` with respect to its filter."""
    dtype = x.dtype
    padded = pad(x.astype(wide(dtype), copy=False), windows)
    dy = dy.astype(wide(dtype), copy=False).reshape(*dy.shape[:-1], *shape[-2:])
    dw: Any = like_device.zeros(x, tuple(shape), wide(dtype))
    for index, seen in taps(windows):
        dw[index] = np.einsum("nhwc,nhwcm->cm", padded[(slice(None), *seen)], dy)
    array: np.ndarray = dw.astype(dtype, copy=False)
    return array


def depthwise_by_input(dy: np.ndarray, w: np.ndarray, shape: Sequence[int], windows: Windows) -> np.ndarray:
    """Return the adjoint of `convolve_depthwise` with respect to its input."""
    dtype = dy.dtype
    dy = dy.astype(wide(dtype), copy=False).reshape(*dy.shape[:-1], *w.shape[-2:])
    w = w.astype(wide(dtype), copy=False)
    padded = like_device.zeros(dy, (shape[0], *(v.before + v.size + v.after for v in windows), shape[-1]), wide(dtype))
    for index, seen in taps(windows):
        padded[(slice(None), *seen)] += np.einsum("nhwcm,cm->nhwc", dy, w[index])
    return padded[(slice(None), *unpadded(windows))].astype(dtype, copy=False)
