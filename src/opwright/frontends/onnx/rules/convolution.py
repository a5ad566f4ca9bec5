"""Convolutions of ONNX: channels stand second there and last in the catalogue.

Lives here: Conv, ConvTranspose, ConvInteger, DeformConv, CausalConv; windows, which pooling.py shares.
Each transposes its input and its result; the pass over layouts removes pairs of them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.dtypes import int32
from ....core.errors import InvalidArgumentError
from ....ops import array, linalg, math, nn
from ....ops.array import cast
from ....ops.dispatch import to_tensor
from ....ops.image.resize_weights import keys_weights
from ....ops.windows import is_same_padding, same_padding
from ...constants import FOLDING
from ...importing import known as static
from ..execution import RULES
from ..operands import at, dims, dtype_of, rank_of, static_dims

rule = RULES.rule


class Windows(NamedTuple):
    """Windows over spatial axes: sizes, strides, dilations, pads before and after, and sizes of the result."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    after: list[int]
    results: list[int | None]

    def same(self, sizes: Sequence[int | None]) -> bool:
        """Return whether the pads are those of TensorFlow's SAME."""
        return is_same_padding(sizes, zip(self.before, self.after), *self[:3])


def windows_of(sizes: Sequence[int | None], kernel: Sequence[int], attributes: Any) -> Windows:
    """Return the windows that attributes describe. sizes: of the input's spatial axes."""
    rank = len(kernel)
    strides = list(attributes.get("strides") or [1] * rank)
    dilations = list(attributes.get("dilations") or [1] * rank)
    mode = attributes.get("auto_pad", "NOTSET")
    pads = list(attributes.get("pads") or [0] * 2 * rank)
    if not len(strides) == len(dilations) == rank == len(sizes) or len(pads) != 2 * rank:
        raise InvalidArgumentError(what="attributes of windows have another rank", found=(kernel, strides, pads))
    if min(*strides, *dilations, *kernel) < 1:
        raise InvalidArgumentError(what="windows, strides and dilations are 1 at least", found=(kernel, strides))
    before, after = pads[:rank], pads[rank:]
    results: list[int | None] = []
    for i, (size, k, s, d) in enumerate(zip(sizes, kernel, strides, dilations)):
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            if size is None and s != 1:
                raise InvalidArgumentError(what=f"auto_pad {mode} needs the sizes at import")
            low, high = same_padding(size or k * d, k, s, d)
            before[i], after[i] = (low, high) if mode == "SAME_UPPER" else (high, low)
        elif mode == "VALID":
            before[i] = after[i] = 0
        if size is None:
            if attributes.get("ceil_mode") and s > 1:  # more padding gives the last window where there is one
                if s + after[i] > k:
                    raise InvalidArgumentError(what="ceil_mode of these windows needs the sizes at import")
                after[i] += s - 1
            results.append(None)
            continue
        span = size + before[i] + after[i] - (k - 1) * d - 1
        count = (-(-span // s) if attributes.get("ceil_mode") else span // s) + 1
        if attributes.get("ceil_mode") and (count - 1) * s >= size + before[i]:
            count -= 1  # a window that would begin in the padding
        results.append(count)
    return Windows(list(kernel), strides, dilations, before, after, results)


def channels_last(x: Any) -> Any:
    """Return [n, c, ...] as [n, ..., c]."""
    return array.transpose(x, [0, *range(2, rank_of(x)), 1])


def channels_second(x: Any) -> Any:
    """Return [n, ..., c] as [n, c, ...]."""
    return array.transpose(x, [0, rank_of(x) - 1, *range(1, rank_of(x) - 1)])


def _lifted(x: Any, w: Any, windows: Windows) -> tuple[Any, Any, Windows]:
    """Return a convolution over one axis as one over two."""
    kernel, strides, dilations, before, after, results = windows
    wide = Windows([1, *kernel], [1, *strides], [1, *dilations], [0, *before], [0, *after], [1, *results])
    return array.expand_dims(x, 2), array.expand_dims(w, 2), wide


def padded(x: Any, windows: Windows, value: Any = 0) -> Any:
    """Return [n, ..., c] with its spatial axes padded."""
    if not any(windows.before) and not any(windows.after):
        return x
    pads = [[0, 0], *([b, a] for b, a in zip(windows.before, windows.after)), [0, 0]]
    return array.pad(x, np.asarray(pads, np.int32), constant_values=np.asarray(value, dtype_of(x).np))


def convolved(x: Any, w: Any, windows: Windows, group: int, bias: Any = None) -> Any:
    """Return the convolution of [n, c, ...] with [m, c / group, ...]. bias: [m], added to each channel."""
    if rank_of(x) == 3:
        x, w, windows = _lifted(x, w, windows)
        return array.squeeze(convolved(x, w, windows, group, bias), [2])
    spatial = rank_of(x) - 2
    if spatial not in (2, 3):
        raise InvalidArgumentError(what="convolutions are over one to three axes", found=spatial)
    padding = "SAME" if windows.same(dims(x)[2:]) else "VALID"
    channels, filters = dims(x)[1], static_dims(w, "a convolution's weights")
    if channels is None or channels != filters[1] * group or filters[0] % group:
        raise InvalidArgumentError(
            what="channels do not fit the weights", found=f"{channels} channels, weights {filters}, {group} groups"
        )
    last = channels_last(x)
    if padding == "VALID":
        last = padded(last, windows)
    order = [*range(2, spatial + 2), 1, 0]
    equal_strides = len(set(windows.strides)) == 1
    if spatial == 2 and group == channels and filters[1] == 1 and group > 1 and equal_strides:
        w = array.reshape(w, [group, filters[0] // group, *filters[2:]])
        dilated = max(windows.dilations) > 1
        if not dilated or windows.strides == [1, 1]:
            result = nn.depthwise_conv2d(
                last,
                array.transpose(w, [2, 3, 0, 1]),
                [1, *windows.strides, 1],
                padding,
                dilations=windows.dilations if dilated else None,
            )
            return channels_second(result if bias is None else math.add(result, bias))
        w = array.reshape(w, [filters[0], 1, *filters[2:]])
    convolution = nn.conv2d if spatial == 2 else nn.conv3d
    split = group > 1 and spatial == 3  # conv2d takes groups from the numbers of channels
    parts = zip(array.split(last, group, -1) if split else [last], array.split(w, group, 0) if split else [w])
    results = [
        convolution(
            part,
            array.transpose(weights, order),
            [1, *windows.strides, 1],
            padding,
            dilations=[1, *windows.dilations, 1],
        )
        for part, weights in parts
    ]
    result = array.concat(results, -1) if split else results[0]
    return channels_second(result if bias is None else math.add(result, bias))


def with_bias(y: Any, bias: Any) -> Any:
    """Return y with a number added to each of its channels."""
    if bias is None:
        return y
    return math.add(y, array.reshape(bias, [1, -1, *[1] * (rank_of(y) - 2)]))


@rule("Conv")
def conv(context: Any, inputs: Any, attributes: Any) -> Any:
    x, w = inputs[:2]
    kernel = attributes.get("kernel_shape") or static_dims(w, "a convolution's weights")[2:]
    windows = windows_of(dims(x)[2:], kernel, attributes)
    return convolved(x, w, windows, attributes.get("group", 1), at(inputs, 2))


@rule("ConvInteger")
def conv_integer(context: Any, inputs: Any, attributes: Any) -> Any:
    """Convolve integers in float32, over as many channels at a time as keep every sum exact, below 2^24; in float64
    if that is not known."""
    x, w, x_zero, w_zero = (at(inputs, i) for i in range(4))
    group = attributes.get("group", 1)
    parts = _exact_parts(w, w_zero, group)
    dtype = np.float32 if parts else np.float64
    x, w = cast(x, dtype), cast(w, dtype)
    if x_zero is not None:
        x = math.subtract(x, cast(x_zero, dtype))
    if w_zero is not None:
        zero = cast(w_zero, dtype)
        w = math.subtract(w, array.reshape(zero, [-1, *[1] * (rank_of(w) - 1)]) if rank_of(zero) else zero)
    kernel = attributes.get("kernel_shape") or static_dims(w, "a convolution's weights")[2:]
    windows = windows_of(dims(x)[2:], kernel, attributes)
    if len(parts) < 2:
        return cast(convolved(x, w, windows, group), int32)
    sums = [cast(convolved(x[:, i:j], w[:, i:j], windows, 1), int32) for i, j in parts]
    return functools.reduce(math.add, sums)


def _exact_parts(w: Any, zero: Any, group: int) -> list[tuple[int, int]]:
    """Return ranges of the channels over which sums of products of 8-bit integers with these weights, less zero points,
    are exact in float32; none if there are no such ranges."""
    _, channels, *kernel = static_dims(w, "a convolution's weights")
    weights, zeros = static(w), static(zero)
    if weights is None or (zero is not None and zeros is None):
        each = np.full((1, channels), 255.0 * np.prod(kernel))
    else:
        shift = 0 if zeros is None else zeros.astype(np.float64).reshape(-1, *[1] * (weights.ndim - 1))
        each = np.abs(weights.astype(np.float64) - shift).sum(tuple(range(2, weights.ndim)))
    sums = np.concatenate([np.zeros((len(each), 1)), each.cumsum(1)], 1)
    limit, parts, start = (2**24 - 1) / 255.0, [], 0  # an integer less a zero point is 255 at most
    while start < channels:
        stop = start + int(((sums[:, start + 1 :] - sums[:, start : start + 1]).max(0) <= limit).sum())
        if stop == start:
            return []
        parts.append((start, stop))
        start = stop
    return parts if len(parts) == 1 or group == 1 else []


@rule("ConvTranspose")
def conv_transpose(context: Any, inputs: Any, attributes: Any) -> Any:
    """Return the whole sum of shifted windows, cut by the pads and filled up by output_padding."""
    x, w = inputs[:2]
    lifted = rank_of(x) == 3
    sizes, filters = list(dims(x)[2:]), static_dims(w, "a convolution's weights")
    rank, group = len(sizes), attributes.get("group", 1)
    strides = list(attributes.get("strides") or [1] * rank)
    dilations = list(attributes.get("dilations") or [1] * rank)
    extra = list(attributes.get("output_padding") or [0] * rank)
    pads = list(attributes.get("pads") or [0] * 2 * rank)
    kernel = list(attributes.get("kernel_shape") or filters[2:])
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    mode, shape = attributes.get("auto_pad", "NOTSET"), attributes.get("output_shape")
    more: list[int] | None = None  # by how much the whole sum is larger than the result
    if shape is not None:
        known_sizes = static_dims(x, "output_shape of ConvTranspose")[2:]
        more = [(n - 1) * s + r - t for n, s, r, t in zip(known_sizes, strides, reach, list(shape)[-rank:])]
    elif mode in ("SAME_UPPER", "SAME_LOWER"):
        more = [r - s for r, s in zip(reach, strides)]
    if more is not None:
        total = [max(m + e, 0) for m, e in zip(more, extra)]
        less = [t // 2 for t in total]
        begin = less if mode in ("SAME_UPPER", "NOTSET") else [t - n for t, n in zip(total, less)]
        end = [m - b for m, b in zip(more, begin)]
    else:
        begin = pads[:rank] if mode != "VALID" else [0] * rank
        end = [p - e for p, e in zip(pads[rank:] if mode != "VALID" else [0] * rank, extra)]
    if lifted:
        x, w, sizes = array.expand_dims(x, 2), array.expand_dims(w, 2), [1, *sizes]
        strides, dilations, reach, begin, end = [1, *strides], [1, *dilations], [1, *reach], [0, *begin], [0, *end]
    whole: list[Any] = [
        ((array.shape(x)[2 + i] if n is None else n) - 1) * s + r
        for i, (n, s, r) in enumerate(zip(sizes, strides, reach))
    ]
    spatial = len(whole)
    if spatial not in (2, 3):
        raise InvalidArgumentError(what="convolutions are over one to three axes", found=rank)
    last = channels_last(x)
    batch: Any = dims(x)[0]
    if batch is None:
        batch = array.shape(x)[0]
    transposed = nn.conv2d_transpose if spatial == 2 else nn.conv3d_transpose
    results = []
    for part, weights in zip(
        array.split(last, group, -1) if group > 1 else [last], array.split(w, group, 0) if group > 1 else [w]
    ):
        channels = filters[1]
        target: Any = [batch, *whole, channels]
        target = np.asarray(target, np.int32) if all(isinstance(t, int) for t in target) else array.stack(target)
        order = [*range(2, spatial + 2), 1, 0]
        weights = _dilated(weights, dilations)
        results.append(transposed(part, array.transpose(weights, order), target, [1, *strides, 1], "VALID"))
    y = array.concat(results, -1) if group > 1 else results[0]
    index: list[Any] = [slice(None)]
    missing = []
    for first, last_ones in zip(begin, end):
        index.append(slice(first, -last_ones if last_ones > 0 else None))
        missing.append([0, max(-last_ones, 0)])
    y = to_tensor(y)[tuple(index)]
    if any(m[1] for m in missing):
        y = array.pad(y, np.asarray([[0, 0], *missing, [0, 0]], np.int32))
    y = channels_second(y)
    return with_bias(array.squeeze(y, [2]) if lifted else y, at(inputs, 2))


def _dilated(w: Any, dilations: Sequence[int]) -> Any:
    """Return weights [..., k, ...] with zeros between them, for operators without dilation."""
    for axis, step in enumerate(dilations, 2):
        if step > 1:
            shape = [*static_dims(w, "weights")]
            wide = array.expand_dims(w, axis + 1)
            pads = np.zeros((len(shape) + 1, 2), np.int32)
            pads[axis + 1, 1] = step - 1
            joined = [*shape[:axis], shape[axis] * step, *shape[axis + 1 :]]
            w = array.reshape(array.pad(wide, pads), joined)
            index = [slice(None)] * len(joined)
            index[axis] = slice(0, joined[axis] - step + 1)
            w = to_tensor(w)[tuple(index)]
    return w


def columns(x: Any, windows: Windows) -> Any:
    """Return the elements of each window of [n, ..., c], already padded: [n, ..., windows' elements, c].

    Strided slices, one for each place in a window.
    """
    parts = []
    for place in np.ndindex(*windows.kernel):
        index: list[Any] = [slice(None)]
        for p, d, s, count in zip(place, windows.dilations, windows.strides, windows.results):
            if count is None:
                raise InvalidArgumentError(what="these windows need the sizes at import")
            index.append(slice(p * d, p * d + (count - 1) * s + 1, s))
        parts.append(to_tensor(x)[tuple(index)])
    return array.stack(parts, rank_of(x) - 1)


@rule("Col2Im")
def column_to_image(context: Any, inputs: Any, attributes: Any) -> Any:
    """Add the elements of windows at their places."""
    x = inputs[0]
    image = context.required(inputs[1], "the image's shape").tolist()
    block = context.required(inputs[2], "the block's shape").tolist()
    windows = windows_of(image, block, attributes)
    n, rows, _ = static_dims(x, "Col2Im")
    elements = int(np.prod(block))
    whole = [s + b + a for s, b, a in zip(image, windows.before, windows.after)]
    counts: list[int] = windows.results  # type: ignore[assignment]
    FOLDING.reserve(elements, *counts)
    places = np.zeros((elements, int(np.prod(counts))), np.int64)
    for row, place in enumerate(np.ndindex(*block)):
        grids = [p * d + np.arange(c) * s for p, d, c, s in zip(place, windows.dilations, counts, windows.strides)]
        places[row] = np.ravel_multi_index(np.meshgrid(*grids, indexing="ij"), whole).reshape(-1)
    moved = array.transpose(array.reshape(x, [n * rows // elements, elements * places.shape[1]]), [1, 0])
    flat = math.unsorted_segment_sum(moved, places.reshape(-1), np.int32(np.prod(whole)))
    y = array.reshape(array.transpose(flat, [1, 0]), [n, rows // elements, *whole])
    index = [slice(b, b + s) for b, s in zip(windows.before, image)]
    return to_tensor(y)[(slice(None), slice(None), *index)]


@rule("DeformConv")
def deformable_conv(context: Any, inputs: Any, attributes: Any) -> Any:
    """Sample each place of a window at an offset, bilinearly; then it is a product of matrices."""
    x, w, offset = inputs[:3]
    bias, mask = at(inputs, 3), at(inputs, 4)
    n, c, h, wide = static_dims(x, "DeformConv")
    m, per_group, kh, kw = static_dims(w, "DeformConv")
    windows = windows_of([h, wide], [kh, kw], attributes)
    oh, ow = (int(r) for r in windows.results if r is not None)
    group, parts = attributes.get("group", 1), attributes.get("offset_group", 1)
    rows = (np.arange(oh) * windows.strides[0] - windows.before[0])[None, None, :, None]
    cols = (np.arange(ow) * windows.strides[1] - windows.before[1])[None, None, None, :]
    rows = rows + (np.arange(kh) * windows.dilations[0]).repeat(kw)[None, :, None, None]
    cols = cols + np.tile(np.arange(kw) * windows.dilations[1], kh)[None, :, None, None]
    moves = array.reshape(offset, [n * parts, kh * kw, 2, oh, ow])
    y = math.add(moves[:, :, 0], np.asarray(rows, dtype_of(x).np))
    z = math.add(moves[:, :, 1], np.asarray(cols, dtype_of(x).np))
    images = array.transpose(array.reshape(x, [n * parts, c // parts, h, wide]), [0, 2, 3, 1])
    sampled = sample(images, [y, z], "linear", "zeros")  # [n * parts, k, oh, ow, c / parts]
    if mask is not None:
        sampled = math.multiply(sampled, array.expand_dims(array.reshape(mask, [n * parts, kh * kw, oh, ow]), -1))
    sampled = array.reshape(sampled, [n, parts, kh * kw, oh * ow, c // parts])
    sampled = array.reshape(array.transpose(sampled, [0, 1, 4, 2, 3]), [n, group, per_group * kh * kw, oh * ow])
    weights = array.reshape(w, [1, group, m // group, per_group * kh * kw])
    return with_bias(array.reshape(linalg.matmul(weights, sampled), [n, m, oh, ow]), bias)


def sample(images: Any, positions: Sequence[Any], mode: str, border: str) -> Any:
    """Return [n, ..., c] at real positions along its spatial axes, each [n, *places]: [n, *places, c].

    mode: linear, nearest or cubic. border: zeros outside, or the nearest element
    """
    sizes = static_dims(images, "sampling")[1:-1]
    if mode == "nearest":
        corners = [[(math.rint(p), None)] for p in positions]
    elif mode == "linear":
        corners = [_linear(p) for p in positions]
    else:
        corners = [_cubic(p) for p in positions]
    total: Any = None
    for picks in np.ndindex(*[len(c) for c in corners]):
        chosen = [corner[i] for corner, i in zip(corners, picks)]
        value = _picked(images, [place for place, _ in chosen], sizes, border)
        for _, weight in chosen:
            if weight is not None:
                value = math.multiply(value, array.expand_dims(weight, -1))
        total = value if total is None else math.add(total, value)
    return total


def _linear(p: Any) -> list[tuple[Any, Any]]:
    low = math.floor(p)
    part = math.subtract(p, low)
    one = np.asarray(1, dtype_of(p).np)
    return [(low, math.subtract(one, part)), (math.add(low, one), part)]


def _cubic(p: Any, a: float = -0.75) -> list[tuple[Any, Any]]:
    """Return four places with the weights of Keys' convolution (1981)."""
    low = math.floor(p)
    t = math.subtract(p, low)
    return [(low + float(i - 1), w) for i, w in enumerate(keys_weights(t, a))]


def _picked(images: Any, places: Sequence[Any], sizes: Sequence[int], border: str) -> Any:
    inside: Any = None
    clipped = []
    for place, size in zip(places, sizes):
        low, high = np.asarray(0, dtype_of(place).np), np.asarray(size - 1, dtype_of(place).np)
        fits = math.logical_and(math.greater_equal(place, low), math.less_equal(place, high))
        inside = fits if inside is None else math.logical_and(inside, fits)
        clipped.append(cast(math.minimum(math.maximum(place, low), high), int32))
    values = array.gather_nd(images, array.stack(clipped, -1), 1)
    if border != "zeros":
        return values
    return array.where(array.expand_dims(inside, -1), values, np.zeros((), dtype_of(images).np))
