"""Convolutions and pools over images [n, h, w, c]: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, the pools.

Lives here: these operators' shapes and checks.
Not here: what windows see (windows.py), convolutions on arrays, which the catalogue has (ops/nn/), and on integers
(quantized/images.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, float16, float32, int32
from ...core.specs import TensorSpec
from ...ops import conv_arrays
from ...ops.slots import Input, Output
from ...ops.windows import Window
from .definition import lite_operator
from .fusing import fuse
from .parts import Part, whole
from .shapes import bounded, ints, product, refuse, same, spec, text
from .windows import along, bands, counts, out_size, pool_windows, pooled, spread, windows_of

_F = (float32,)


def _positive(op: Any, *names: str) -> None:
    for name in names:
        if getattr(op, name) < 1:
            raise refuse(f"{name} must be positive", found=getattr(op, name), wanted="at least 1")


def _slide(op: Any, x: Any, kernel: Any, depth: Any, dtype: DType) -> TensorSpec:
    """The output of a kernel of (h, w) over x, after checking strides, dilations and the padded image's size."""
    _positive(op, "stride_w", "stride_h")
    if hasattr(op, "dilation_w_factor"):
        _positive(op, "dilation_w_factor", "dilation_h_factor")
    n, h, w, c = x.dims or (None,) * 4
    steps = ((op.stride_h, getattr(op, "dilation_h_factor", 1)), (op.stride_w, getattr(op, "dilation_w_factor", 1)))
    out = [out_size(size, k, s, d, op.padding) for size, k, (s, d) in zip((h, w), kernel, steps)]
    if None not in (n, h, w, c, *kernel):
        padded = [v.before + v.size + v.after for v in windows_of(op, (h, w), kernel)]
        bounded((n, *padded, c), dtype, "the padded image")
    return spec((n, *out, depth), dtype)


def _check_bias(op: Any, depth: Any) -> None:
    if op.bias is not None and not same(product(op.bias.spec.shape.dims or (None,)), depth):
        raise refuse("the bias does not fit the filter", found=text(op.bias.spec.shape), wanted=f"[{depth}]")


def _cost(x: Any, channels: int, windows: Sequence[Window]) -> int:
    """Bytes that a pixel of the result takes: so many numbers, and its share of the padded image."""
    return x.itemsize * (channels + math.prod(w.stride for w in windows) * x.shape[3])


def _shape(x: Any, windows: Sequence[Window], depth: int) -> tuple[int, ...]:
    return (len(x), *(w.out for w in windows), depth)


def _finish(op: Any, y: Any, bias: Any) -> Any:
    if bias is not None:
        y += bias.reshape(-1)
    return fuse(op, y)


@lite_operator("CONV_2D")
class Conv2D:
    """A convolution; with fewer channels in the filter than in x, in groups.

    .. math:: y_{npqo} = act(b_o + \\sum_{ijc} x_{n, p s + i d, q s + j d, c} f_{oijc})

    x: [n, h, w, c]; filter: [o, kh, kw, c / groups]; bias: [o]
    """

    x = Input(_F, rank=4)
    filter = Input(_F, like="x", rank=4)
    bias = Input(_F, like="x", optional=True)
    y = Output(like="x")
    quantized = "images.conv_2d"
    hybrid = "hybrid.conv_2d"

    def infer(op: Any) -> TensorSpec:
        x, f = op.x.spec.shape, op.filter.spec.shape
        o, kh, kw, depth = f.dims or (None,) * 4
        channels = x[3] if x.rank else None
        if channels is not None and depth is not None:
            groups = channels // depth if depth else 0
            if depth == 0 or channels % depth or (groups and o is not None and o % groups) or groups == 0:
                raise refuse(
                    "the filter's depth does not divide the channels",
                    found={"x": text(x), "filter": text(f)},
                    wanted="x.shape[3] a multiple of filter.shape[3]",
                )
        _check_bias(op, o)
        return _slide(op, x, (kh, kw), o, op.x.spec.dtype)

    def parts(op: Any, x: Any, filter: Any, bias: Any) -> Iterator[Part]:
        w, windows = filter.transpose(1, 2, 3, 0), windows_of(op, x.shape[1:3], filter.shape[1:3])
        seen = math.prod(filter.shape[1:3]) * x.shape[3]
        for band in bands(len(x), windows, _cost(x, seen + 2 * len(filter), windows)):
            yield band.y, _finish(op, conv_arrays.convolve(op, x[band.x], w, band.windows), bias)

    def compute(op: Any, x: Any, filter: Any, bias: Any) -> Any:
        windows = windows_of(op, x.shape[1:3], filter.shape[1:3])
        return whole(op.parts(x, filter, bias), _shape(x, windows, len(filter)), x.dtype)


@lite_operator("DEPTHWISE_CONV_2D")
class DepthwiseConv2D:
    """A convolution of each channel by itself, giving m channels each; depth_multiplier is not looked at.

    .. math:: y_{n, p, q, c m + j} = act(b_{c m + j} + \\sum_{ik} x_{n, p s + i d, q s + k d, c} f_{1, i, k, c m + j})

    x: [n, h, w, c]; filter: [1, kh, kw, c m]; bias: [c m]
    """

    x = Input(_F, rank=4)
    filter = Input(_F, like="x", rank=4)
    bias = Input(_F, like="x", optional=True)
    y = Output(like="x")
    quantized = "images.depthwise_conv_2d"
    hybrid = "hybrid.depthwise_conv_2d"

    def infer(op: Any) -> TensorSpec:
        x, f = op.x.spec.shape, op.filter.spec.shape
        one, kh, kw, depth = f.dims or (None,) * 4
        channels = x[3] if x.rank else None
        if not same(one, 1):
            raise refuse("the filter's first size is not 1", found=text(f), wanted="[1, kh, kw, channels]")
        if channels is not None and depth is not None and (depth % channels if channels else depth):
            raise refuse(
                "the filter's depth is no multiple of the channels",
                found={"x": text(x), "filter": text(f)},
                wanted="filter.shape[3] a multiple of x.shape[3]",
            )
        _check_bias(op, depth)
        return _slide(op, x, (kh, kw), depth, op.x.spec.dtype)

    def parts(op: Any, x: Any, filter: Any, bias: Any) -> Iterator[Part]:
        windows = windows_of(op, x.shape[1:3], filter.shape[1:3])
        by_channel = filter.reshape(*filter.shape[1:3], x.shape[3], -1 if x.shape[3] else 1)
        for band in bands(len(x), windows, _cost(x, 2 * filter.shape[3], windows)):
            yield band.y, _finish(op, conv_arrays.depthwise(x[band.x], by_channel, band.windows), bias)

    def compute(op: Any, x: Any, filter: Any, bias: Any) -> Any:
        windows = windows_of(op, x.shape[1:3], filter.shape[1:3])
        return whole(op.parts(x, filter, bias), _shape(x, windows, filter.shape[3]), x.dtype)


@lite_operator("TRANSPOSE_CONV")
class TransposeConv:
    """The adjoint of a convolution by its input: each pixel of x spreads over a window of y.

    .. math:: y_{n, p s + i, q s + j, o} \\mathrel{+}= x_{npqc} f_{oijc}

    output_shape: int32 [4]; filter: [o, kh, kw, c]; x: [n, p, q, c]; bias: [o]
    """

    output_shape = Input((int32,), rank=1)
    filter = Input(_F, rank=4)
    x = Input(_F, like="filter", rank=4)
    bias = Input(_F, like="filter", optional=True)
    y = Output(like="x")
    quantized = "images.transpose_conv"
    hybrid = "hybrid.transpose_conv"

    def infer(op: Any) -> TensorSpec:
        _positive(op, "stride_w", "stride_h")
        f, x, sizes = op.filter.spec.shape, op.x.spec.shape, ints(op.output_shape)
        o, kh, kw, c = f.dims or (None,) * 4
        if not same(op.output_shape.spec.shape[0], 4):
            raise refuse("output_shape has not four sizes", found=text(op.output_shape.spec.shape), wanted="[4]")
        if x.rank and not same(x[3], c):
            raise refuse(
                "channels of filter and x differ", found={"filter": text(f), "x": text(x)}, wanted="equal last sizes"
            )
        _check_bias(op, o)
        if sizes is None:
            return spec((x[0] if x.rank else None, None, None, o), op.x.spec.dtype)
        if min(sizes) < 0:
            raise refuse("output_shape has a negative size", found=sizes, wanted="sizes of at least 0")
        if None not in (*(x.dims or (None,)), o, kh, kw):
            windows = windows_of(op, sizes[1:3], (kh, kw))
            if [w.out for w in windows] != list(x.dims[1:3]) or sizes[0] != x[0] or sizes[3] != o:
                raise refuse(
                    "output_shape does not fit x and filter",
                    found={"output_shape": sizes, "x": text(x), "filter": text(f)},
                    wanted="a shape that the convolution takes to that of x",
                )
            bounded((x[0], *(w.before + w.size + w.after for w in windows), o), op.x.spec.dtype, "the padded image")
        return spec(sizes, op.x.spec.dtype)

    def parts(op: Any, output_shape: Any, filter: Any, x: Any, bias: Any) -> Iterator[Part]:
        n, h, w, outputs = map(int, output_shape)
        windows = windows_of(op, (h, w), filter.shape[1:3])
        for band in bands(n, windows, 3 * outputs * x.itemsize, spread):
            part = x[band.x]
            y = conv_arrays.by_input(part, filter.transpose(1, 2, 0, 3), (len(part), 0, 0, outputs), band.windows)
            yield band.y, _finish(op, y, bias)

    def compute(op: Any, output_shape: Any, filter: Any, x: Any, bias: Any) -> Any:
        return whole(op.parts(output_shape, filter, x, bias), output_shape, x.dtype)


def _pooled_spec(op: Any) -> TensorSpec:
    _positive(op, "filter_width", "filter_height")
    x = op.x.spec.shape
    return _slide(op, x, (op.filter_height, op.filter_width), x[3] if x.rank else None, op.x.spec.dtype)


def _pool(op: Any, x: Any) -> Any:
    return whole(op.parts(x), _shape(x, pool_windows(op, x), x.shape[3]), x.dtype)


def _mean(x: Any, rows: Window, columns: Window) -> Any:
    total = along(along(x, rows, 1, np.add, 0.0), columns, 2, np.add, 0.0)
    total /= np.multiply.outer(counts(rows), counts(columns))[..., None]
    return total


def _greatest(x: Any, rows: Window, columns: Window) -> Any:
    return along(along(x, rows, 1, np.fmax, -np.inf), columns, 2, np.fmax, -np.inf)


def _root_mean_square(x: Any, rows: Window, columns: Window) -> Any:
    return np.sqrt(_mean(np.square(x), rows, columns))


@lite_operator("AVERAGE_POOL_2D")
class AveragePool2D:
    """The mean over each window; padding does not count. float16 is added up in float32.

    .. math:: y_{npqc} = act(\\operatorname{mean}_{ij} x_{n, p s + i, q s + j, c})
    """

    x = Input((float32, float16), rank=4)
    y = Output(like="x")
    quantized = "images.average"
    infer = _pooled_spec
    compute = _pool

    def parts(op: Any, x: Any) -> Iterator[Part]:
        return pooled(op, x, lambda seen, *windows: fuse(op, _mean(seen.astype(np.float32, copy=False), *windows)))


@lite_operator("MAX_POOL_2D")
class MaxPool2D:
    """The greatest of each window, NaN aside.

    .. math:: y_{npqc} = act(\\max_{ij} x_{n, p s + i, q s + j, c})
    """

    x = Input(_F, rank=4)
    y = Output(like="x")
    quantized = "images.maximum"
    infer = _pooled_spec
    compute = _pool

    def parts(op: Any, x: Any) -> Iterator[Part]:
        return pooled(op, x, lambda *seen: fuse(op, _greatest(*seen)))


@lite_operator("L2_POOL_2D")
class L2Pool2D:
    """The root of the mean of the squares in each window; padding does not count.

    .. math:: y_{npqc} = act(\\sqrt{\\operatorname{mean}_{ij} x_{n, p s + i, q s + j, c}^2})
    """

    x = Input(_F, rank=4)
    y = Output(like="x")
    infer = _pooled_spec
    compute = _pool

    def parts(op: Any, x: Any) -> Iterator[Part]:
        return pooled(op, x, lambda *seen: fuse(op, _root_mean_square(*seen)))
