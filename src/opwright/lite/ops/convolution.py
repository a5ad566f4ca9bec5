"""Convolutions of images [n, h, w, c] and volumes [n, d, h, w, c]: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, CONV_3D,
CONV_3D_TRANSPOSE.

Lives here: shape rules and checks of these operators, and their results in parts.
Not here: windows (tiling.py), pools (pooling.py), convolutions of arrays (ops/array_convolution.py), of integers
(quantized/images.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import float32, int32
from ...core.specs import TensorSpec
from ...ops.array_convolution import convolve, convolve_by_input, convolve_depthwise
from ...ops.slots import Input, Output
from ...ops.windows import AxisWindow
from .definition import LiteDefinition, lite_operator
from .shapes import Size, check_vector, ints, product, refuse, same, spec, text
from .tiling import (
    SCRATCH,
    Part,
    bands,
    check_padded,
    check_positive,
    fuse,
    merge_parts,
    out_size,
    output_piece,
    sliding_spec,
    windows_of,
)

_F = (float32,)
FEW_CHANNELS = 256


def _check_bias(op: Any, depth: Size) -> None:
    dims = None if op.bias is None else op.bias.spec.shape.dims
    if dims is not None and not same(product(dims), depth):
        raise refuse("the bias does not fit the filter", found=text(op.bias.spec.shape), wanted=f"[{depth}]")


def _cost(x: np.ndarray, channels: int, windows: Sequence[AxisWindow]) -> int:
    """Return the bytes of scratch memory per output pixel: its channels, and its share of the padded image."""
    return int(x.itemsize * (channels + math.prod(w.stride for w in windows) * x.shape[3]))


def _shape(x: np.ndarray, windows: Sequence[AxisWindow], depth: int) -> tuple[int, ...]:
    return (len(x), *(w.out for w in windows), depth)


def _written(op: Any, shape: tuple[int, ...], x: np.ndarray, *others: np.ndarray | None) -> np.ndarray:
    y = np.empty(shape, x.dtype)
    op.write(y, x, *others)
    return y


def _biased(op: Any, y: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    if bias is not None:
        bias = bias.reshape(-1)
        if y.flags.c_contiguous and len(bias) < FEW_CHANNELS and y.ndim > 2:  # by lines: longer loops
            lines = y.reshape(*y.shape[:-2], y.shape[-2] * y.shape[-1])
            lines += np.tile(bias, y.shape[-2])
        else:
            y += bias
    return fuse(op, y)


def _write_products(op: Any, y: np.ndarray, x: np.ndarray, filter: np.ndarray, bias: np.ndarray | None) -> None:
    """Write a convolution by single pixels: products of matrices, each biased and clamped while it is in the cache.

    The choices of `convolve` for each band take a tenth of the first answer of a mobile network.
    """
    depth, width = x.shape[-1], y.shape[-2]
    lines, results = x.reshape(-1, width, depth), y.reshape(-1, width, len(filter))
    matrix = filter.reshape(len(filter), depth).T
    step = max(SCRATCH // (y.itemsize * width * (2 * depth + len(filter))), 1)
    for first in range(0, len(lines), step):
        result = results[first : first + step]
        pixels = lines[first : first + step].reshape(-1, depth)
        np.matmul(pixels, matrix, out=result.reshape(-1, len(filter)))
        _biased(op, result, bias)


def _is_product(op: Any, y: np.ndarray, x: np.ndarray, filter: np.ndarray) -> bool:
    """Return whether a convolution is a product of the pixels as they are and a matrix."""
    ends = filter.shape[1:3] == (1, 1) and (op.stride_h, op.stride_w) == (1, 1) and filter.shape[3] == x.shape[3]
    return bool(ends and x.flags.c_contiguous and y.flags.c_contiguous and y.size and x.size)


def _transposed_spec(op: Any, spatial_kernel: Sequence[Size], o: Size, c: Size, windows: Any) -> TensorSpec:
    """Infer the result of a transposed convolution. windows: function of the spatial sizes of the result."""
    f, x, sizes = op.filter.spec.shape, op.x.spec.shape, ints(op.output_shape)
    rank = len(spatial_kernel) + 2
    check_vector(op.output_shape, rank, "output_shape")
    if x.rank and not same(x[-1], c):
        raise refuse(
            "channels of filter and x differ", found={"filter": text(f), "x": text(x)}, wanted="equal last sizes"
        )
    _check_bias(op, o)
    if sizes is None:
        return spec((x[0] if x.rank else None, *(None,) * len(spatial_kernel), o), op.x.spec.dtype)
    if min(sizes) < 0:
        raise refuse("output_shape has a negative size", found=sizes, wanted="sizes of at least 0")
    if o is not None and None not in (*(x.dims or (None,)), *spatial_kernel):
        image = windows(sizes[1:-1])
        if [w.out for w in image] != list(x.dims[1:-1]) or sizes[0] != x[0] or sizes[-1] != o:
            raise refuse(
                "output_shape does not fit x and filter",
                found={"output_shape": sizes, "x": text(x), "filter": text(f)},
                wanted="a shape whose convolution has the shape of x",
            )
        check_padded(x[0], image, o, op.x.spec.dtype)
    return spec(sizes, op.x.spec.dtype)


@lite_operator("CONV_2D")
class Conv2DOp(LiteDefinition):
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
        return sliding_spec(op, x, (kh, kw), o, op.x.spec.dtype)

    def write(op: Any, y: np.ndarray, x: np.ndarray, filter: np.ndarray, bias: np.ndarray | None) -> None:
        if _is_product(op, y, x, filter):
            _write_products(op, y, x, filter, bias)
            return
        w, windows = filter.transpose(1, 2, 3, 0), windows_of(op, x.shape[1:3], filter.shape[1:3])
        seen = math.prod(filter.shape[1:3]) * x.shape[3]
        for band in bands(len(x), windows, _cost(x, seen + len(filter), windows)):
            _biased(op, convolve(op, x[band.x], w, band.windows, y[band.y]), bias)

    def compute(op: Any, x: np.ndarray, filter: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        windows = windows_of(op, x.shape[1:3], filter.shape[1:3])
        return _written(op, _shape(x, windows, len(filter)), x, filter, bias)


@lite_operator("DEPTHWISE_CONV_2D")
class DepthwiseConv2DOp(LiteDefinition):
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
                "the filter's depth is not a multiple of the channels",
                found={"x": text(x), "filter": text(f)},
                wanted="filter.shape[3] a multiple of x.shape[3]",
            )
        _check_bias(op, depth)
        return sliding_spec(op, x, (kh, kw), depth, op.x.spec.dtype)

    def write(op: Any, y: np.ndarray, x: np.ndarray, filter: np.ndarray, bias: np.ndarray | None) -> None:
        windows = windows_of(op, x.shape[1:3], filter.shape[1:3])
        by_channel = filter.reshape(*filter.shape[1:3], x.shape[3], -1 if x.shape[3] else 1)
        for band in bands(len(x), windows, _cost(x, filter.shape[3], windows)):
            _biased(op, convolve_depthwise(x[band.x], by_channel, band.windows, y[band.y]), bias)

    def compute(op: Any, x: np.ndarray, filter: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        windows = windows_of(op, x.shape[1:3], filter.shape[1:3])
        return _written(op, _shape(x, windows, filter.shape[3]), x, filter, bias)


@lite_operator("TRANSPOSE_CONV")
class TransposeConvOp(LiteDefinition):
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
        check_positive(op, "stride_w", "stride_h")
        o, kh, kw, c = op.filter.spec.shape.dims or (None,) * 4
        return _transposed_spec(op, (kh, kw), o, c, lambda image: windows_of(op, image, (kh, kw)))

    def parts(
        op: Any, output_shape: np.ndarray, filter: np.ndarray, x: np.ndarray, bias: np.ndarray | None
    ) -> Iterator[Part]:
        n, h, w, outputs = map(int, output_shape)
        windows = windows_of(op, (h, w), filter.shape[1:3])
        for band in bands(n, windows, 3 * outputs * x.itemsize, output_piece):
            part = x[band.x]
            y = convolve_by_input(part, filter.transpose(1, 2, 0, 3), (len(part), 0, 0, outputs), band.windows)
            yield band.y, _biased(op, y, bias)

    def compute(op: Any, output_shape: Any, filter: np.ndarray, x: np.ndarray, bias: np.ndarray) -> np.ndarray:
        return merge_parts(op.parts(output_shape, filter, x, bias), output_shape, x.dtype)


_STEPS = ("stride_d", "stride_h", "stride_w", "dilation_d_factor", "dilation_h_factor", "dilation_w_factor")


def _steps(op: Any) -> list[tuple[int, int]]:
    """Return (stride, dilation) of each dimension, after checking them."""
    check_positive(op, *_STEPS)
    return [
        (op.stride_d, op.dilation_d_factor),
        (op.stride_h, op.dilation_h_factor),
        (op.stride_w, op.dilation_w_factor),
    ]


def _windows(op: Any, volume: Any, kernel: Any) -> list[AxisWindow]:
    return windows_of(op, volume, kernel, _steps(op))


@lite_operator("CONV_3D")
class Conv3DOp(LiteDefinition):
    """A convolution of volumes.

    .. math:: y_{npqro} = act(b_o + \\sum_{ijkc} x_{n, p s + i d, q s + j d, r s + k d, c} f_{ijkco})

    x: [n, d, h, w, c]; filter: [kd, kh, kw, c, o]; bias: [o]
    """

    x = Input(_F, rank=5)
    filter = Input(_F, rank=5)
    bias = Input(_F, optional=True)
    y = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        x, f = op.x.spec.shape, op.filter.spec.shape
        *kernel, c, o = f.dims or (None,) * 5
        n, *volume, channels = x.dims or (None,) * 5
        if not same(channels, c):
            raise refuse(
                "channels of x and filter differ",
                found={"x": text(x), "filter": text(f)},
                wanted="x.shape[4] == filter.shape[3]",
            )
        _check_bias(op, o)
        out = [out_size(size, k, s, d, op.padding) for size, k, (s, d) in zip(volume, kernel, _steps(op))]
        if n is not None and channels is not None and None not in (*volume, *kernel):
            check_padded(n, _windows(op, volume, kernel), channels, float32)
        return spec((n, *out, o), float32)

    def compute(op: Any, x: np.ndarray, filter: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        y = convolve(op, x, filter, _windows(op, x.shape[1:4], filter.shape[:3]))
        return _biased(op, y, bias)


@lite_operator("CONV_3D_TRANSPOSE")
class Conv3DTransposeOp(LiteDefinition):
    """The adjoint of a convolution of volumes by its input: each element of x spreads over a window of y.

    .. math:: y_{n, p s + i, q s + j, r s + k, o} \\mathrel{+}= x_{npqrc} f_{ijkoc}

    output_shape: int32 [5]; filter: [kd, kh, kw, o, c]; x: [n, p, q, r, c]; bias: [o]
    """

    output_shape = Input((int32,), rank=1)
    filter = Input(_F, rank=5)
    x = Input(_F, rank=5)
    bias = Input(_F, optional=True)
    y = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        *kernel, o, c = op.filter.spec.shape.dims or (None,) * 5
        _steps(op)
        return _transposed_spec(op, kernel, o, c, lambda volume: _windows(op, volume, kernel))

    def compute(
        op: Any, output_shape: np.ndarray, filter: np.ndarray, x: np.ndarray, bias: np.ndarray | None
    ) -> np.ndarray:
        shape = [int(s) for s in output_shape]
        windows = _windows(op, shape[1:4], filter.shape[:3])
        return _biased(op, convolve_by_input(x, filter, shape, windows), bias)
