"""Sliding windows: positions of a kernel on an image, output sizes, and convolutions over them on NumPy arrays.

Lives here: data formats, strides, dilations and paddings as arguments, output sizes, `AxisWindow`, shared by
convolutions and pools; convolutions by im2col and matrix products: forward, by input and by filter, dense (with
groups) and depthwise, for any number of spatial dimensions.
Not here: operators, checks of shapes (nn/convolution.py, nn/depthwise.py), reductions of windows (nn/pooling.py).

Arrays are [n, *spatial, channels], filters [*kernel, channels / groups, out]; `windows` has one AxisWindow a spatial
dimension. 16-bit floats are added up in float32. Loops go over kernel elements and batches, never over pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from ..core.dtypes import DType, bfloat16, float16, float32
from ..core.errors import InvalidArgumentError
from ..core.named_tuples import NamedTuple
from . import like_device
from .strategies import Strategies, Strategy

FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}
PADDINGS = ("SAME", "VALID", "EXPLICIT")


class AxisWindow(NamedTuple):
    """A sliding window along one dimension. size: of the image; before, after: padding; out: number of positions."""

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    out: int

    def tap(self, i: int) -> slice:
        """Return the slice of the padded dimension that kernel element `i` reads at all positions."""
        return (
            slice(i * self.dilation, i * self.dilation + (self.out - 1) * self.stride + 1, self.stride)
            if self.out
            else slice(0)
        )

    @property
    def extent(self) -> int:
        """Size of the kernel with its holes."""
        return (self.kernel - 1) * self.dilation + 1


def channel_axis(data_format: str) -> int:
    """Return the axis of channels."""
    return data_format.index("C")


def spatial_axes(data_format: str) -> tuple[int, ...]:
    """Return the axes of space."""
    return tuple(i for i, letter in enumerate(data_format) if letter not in "NC")


def out_size(
    size: int | None,
    kernel: int | None,
    stride: int,
    dilation: int,
    padding: str,
    pads: Sequence[int] = (0, 0),
    truncates: bool = False,
) -> int | None:
    """Return the number of positions of a kernel along a dimension; None if it is not known.

    truncates: whether (size - extent + stride) / stride rounds toward 0, as in the official run time of files, so that
    a kernel larger than the image by less than two strides has no position
    raises InvalidArgumentError where the kernel is empty or, unless padding is SAME, larger than the padded image
    """
    if kernel is not None and kernel < 1:
        raise InvalidArgumentError(what="the window is empty", found=f"size {kernel}", wanted="a size of at least 1")
    if padding == "SAME":
        return None if size is None else -(-size // stride)
    if size is None or kernel is None:
        return None
    extent, room = (kernel - 1) * dilation + 1, size + pads[0] + pads[1]
    if truncates and 0 < extent - room < 2 * stride:
        return 0
    if extent > max(room, 1):  # a window of 1 over an empty image has no position
        raise InvalidArgumentError(
            what=f"Negative dimension size caused by subtracting {extent} from {room}: "
            "the window is larger than the image",
            found={"window": extent, "image with its padding": room},
            wanted="a window no larger than the padded image",
            do='padding="SAME"',
        )
    return (room - extent) // stride + 1


def same_padding(size: int, kernel: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """Return the padding SAME of one dimension, (before, after): even on both sides, an odd one goes after."""
    out = -(-size // stride)
    total = max((out - 1) * stride + (kernel - 1) * dilation + 1 - size, 0) if out else 0
    return total // 2, total - total // 2


def is_same_padding(
    sizes: Iterable[int | None],
    pads: Iterable[tuple[int, int]],
    kernel: Iterable[int],
    strides: Iterable[int],
    dilations: Iterable[int],
) -> bool:
    """Return whether explicit paddings are those of SAME. A size that is unknown: whether they are for every size."""
    return all(
        explicit == same_padding(stride if size is None else size, k, stride, dilation)
        and (size is not None or stride == 1)
        for size, explicit, k, stride, dilation in zip(sizes, pads, kernel, strides, dilations)
    )


def window(
    size: int,
    kernel: int,
    stride: int,
    dilation: int,
    padding: str,
    pads: Sequence[int] = (0, 0),
    truncates: bool = False,
) -> AxisWindow:
    """Return the window of one dimension. Raises as out_size."""
    out = out_size(size, kernel, stride, dilation, padding, pads, truncates) or 0
    before, after = same_padding(size, kernel, stride, dilation) if padding == "SAME" else pads
    return AxisWindow(size, kernel, stride, dilation, before, after, out)


def pairs(explicit: Sequence[int], rank: int) -> list[tuple[int, int]]:
    """Return flat explicit paddings as (before, after) by dimension; zeros without any."""
    return list(zip(explicit[::2], explicit[1::2])) if explicit else [(0, 0)] * rank


def spatial_windows(op: Any, sizes: Sequence[int], kernel: Sequence[int]) -> list[AxisWindow]:
    """Return the windows over the spatial dimensions. sizes: of the image, in the order of op.data_format's spatial
    letters.
    """
    pads = pairs(op.explicit_paddings, len(op.strides))
    return [
        window(size, k, op.strides[axis], op.dilations[axis], op.padding, pads[axis])
        for axis, size, k in zip(spatial_axes(op.data_format), sizes, kernel)
    ]


def pad(x: np.ndarray, windows: Sequence[AxisWindow], value: Any = 0, first: int = 1) -> np.ndarray:
    """Return `x` with the padding of each window around dimensions `first`, `first` + 1, ... (np.pad costs 30 us, this
    3).
    """
    if not any(w.before or w.after for w in windows):
        return x
    shape, inside = list(x.shape), [slice(None)] * x.ndim
    for axis, w in enumerate(windows, first):
        shape[axis] = w.before + w.size + w.after
        inside[axis] = slice(w.before, w.before + w.size)
    padded = like_device.empty(x, shape, x.dtype)
    for axis, w in enumerate(windows, first):  # not the inside, which is written once
        around = inside[:axis]
        padded[(*around, slice(w.before))] = value
        padded[(*around, slice(w.before + w.size, None))] = value
    padded[tuple(inside)] = x
    return padded


def unpadded(windows: Sequence[AxisWindow]) -> tuple[slice, ...]:
    """Return the slices that extract the image from the padded image."""
    return tuple(slice(w.before, w.before + w.size) for w in windows)


def taps(windows: Sequence[AxisWindow]) -> Iterable[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yield each element of the kernel in row-major order, with the slices that it reads of the padded image."""
    for index in np.ndindex(*(w.kernel for w in windows)):
        yield index, tuple(w.tap(i) for w, i in zip(windows, index))


def wide(dtype: Any) -> np.dtype[Any]:
    """Return the NumPy dtype to accumulate in: float32 for the 16-bit floats, else the dtype itself."""
    dtype = np.dtype(dtype)
    if dtype.itemsize != 2:  # bfloat16.np imports ml_dtypes
        result: np.dtype[Any] = dtype
        return result
    return np.dtype(np.float32) if dtype in (float16.np, bfloat16.np) else dtype


def wide_dtype(dtype: DType) -> DType:
    """Return the DType to accumulate in; see `wide`."""
    return float32 if dtype in (float16, bfloat16) else dtype


# ---- arguments -------------------------------------------------------------------------------------------------------


def sequence(value: Any, n: int, data_format: str, what: str) -> tuple[int, ...]:
    """Return sizes, strides or dilations for every dimension, from one number, one per spatial dimension, or all of
    them.

    raises ValueError for any other length
    """
    values = (1,) if value is None else tuple(np.asarray(getattr(value, "constant", value)).reshape(-1).tolist())
    if len(values) == 1:
        values *= n
    if len(values) == n:
        return (1, 1, *values) if channel_axis(data_format) == 1 else (1, *values, 1)
    if len(values) != n + 2:
        raise ValueError(f"{what} should be of length 1, {n} or {n + 2} but was {len(values)}: {value!r}")
    return values


def padding_of(padding: Any) -> tuple[str, tuple[int, ...]]:
    """Return the attributes `padding` and `explicit_paddings` for "SAME", "VALID", or a list of (before, after) by
    dimension.
    """
    if isinstance(padding, str):
        if padding == "EXPLICIT":
            raise ValueError(
                '"EXPLICIT" is not a valid value for `padding`; pass the list of (before, after) pairs itself'
            )
        return padding, ()
    flat: list[int] = []
    for pair in padding:
        if isinstance(pair, int) or len(pair) != 2:
            raise ValueError(f"explicit padding is a list of (before, after) pairs, one a dimension; found {padding!r}")
        flat.extend(int(p) for p in pair)
    return "EXPLICIT", tuple(flat)


def check_positive(op: Any, name: str, rank: int) -> tuple[int, ...]:
    """Return an attribute that has a positive number per dimension. Raises InvalidArgumentError."""
    values: tuple[int, ...] = getattr(op, name)
    if len(values) != rank:
        raise InvalidArgumentError(
            what=f"{name} has {len(values)} entries", found=list(values), wanted=f"{rank}, one a dimension"
        )
    if min(values) < 1:
        raise InvalidArgumentError(what=f"{name} must be positive", found=list(values), wanted="integers of at least 1")
    return values


def check_explicit(op: Any, rank: int) -> tuple[int, ...]:
    """Return explicit paddings, two per dimension if any. Raises InvalidArgumentError."""
    explicit: tuple[int, ...] = getattr(op, "explicit_paddings", ())
    if op.padding != "EXPLICIT" and explicit:
        raise InvalidArgumentError(
            what="explicit_paddings is given", found=list(explicit), wanted=f"none with padding {op.padding}"
        )
    if op.padding == "EXPLICIT" and len(explicit) != 2 * rank:
        raise InvalidArgumentError(
            what=f"explicit_paddings has {len(explicit)} entries",
            found=list(explicit),
            wanted=f"{2 * rank}, before and after each dimension",
        )
    return explicit


def check_sliding(op: Any, n: int) -> None:
    """Check the attributes that say how windows slide over n spatial dimensions. Raises InvalidArgumentError."""
    rank, channel = n + 2, channel_axis(op.data_format)
    for name in ("strides", "dilations"):
        values = check_positive(op, name, rank)
        if values[0] != 1 or values[channel] != 1:
            raise InvalidArgumentError(
                what=f"{name} in the batch and depth dimensions are not supported",
                found=list(values),
                wanted=f"1 at N and C of {op.data_format}",
            )
    explicit = check_explicit(op, rank)
    if explicit and min(explicit) < 0:
        raise InvalidArgumentError(what="explicit paddings must be nonnegative", found=list(explicit))
    if any(explicit[:2]) or any(explicit[2 * channel : 2 * channel + 2]):
        raise InvalidArgumentError(
            what="explicit padding in the batch or depth dimension is not supported",
            found=list(explicit),
            wanted=f"0 at N and C of {op.data_format}",
        )


Windows = Sequence[AxisWindow]
COLUMN_BYTES = (
    1 << 26
)  # im2col copies every pixel once per kernel element; the bytes copied at a time, at least one image


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
    """[n, *out, channels] as [groups, positions, channels / groups]."""
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
    """im2col, and one product of matrices."""
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
    """On devices: a product for each element of the kernel and group, so that no pixel is copied."""
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
    """`convolve_by_filter` on devices, as `_in_place`."""
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
