"""Layers whose kernels are chosen by measure: those of networks that phones and servers run, as loop graphs.

Lives here: the lists of sizes, `layers`: a graph of each in float32 and in int8.  Not here: measuring (tune.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import Expr, apply, arg, convert, quantize
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import Contract, Depthwise, LoopOp, TransposedContract
from opwright.core.dtypes import DType, float32, int8, int32

#        lines and columns of the input, channels, features, window, stride
CONVOLUTIONS = (
    (224, 3, 32, 3, 2),
    (224, 3, 64, 7, 2),
    (224, 3, 64, 3, 1),
    (224, 64, 64, 3, 1),
    (160, 32, 64, 3, 2),
    (128, 16, 16, 3, 1),
    (128, 32, 32, 3, 1),
    (128, 64, 64, 3, 1),
    (112, 64, 128, 3, 1),
    (112, 128, 128, 3, 1),
    (96, 24, 24, 3, 1),
    (80, 64, 64, 3, 1),
    (64, 32, 32, 3, 1),
    (64, 64, 64, 3, 1),
    (56, 64, 64, 3, 1),
    (56, 64, 64, 5, 1),
    (56, 128, 128, 3, 2),
    (56, 128, 256, 3, 1),
    (40, 128, 128, 3, 1),
    (32, 3, 16, 3, 1),
    (32, 16, 16, 3, 1),
    (32, 16, 32, 3, 2),
    (32, 64, 64, 3, 1),
    (32, 128, 128, 3, 1),
    (28, 128, 128, 3, 1),
    (28, 256, 256, 3, 2),
    (28, 256, 512, 3, 1),
    (20, 64, 64, 3, 1),
    (20, 256, 256, 3, 1),
    (16, 32, 32, 3, 1),
    (16, 32, 64, 3, 2),
    (16, 128, 128, 3, 1),
    (14, 256, 256, 3, 1),
    (14, 512, 512, 3, 1),
    (14, 512, 512, 3, 2),
    (10, 128, 128, 3, 1),
    (8, 64, 64, 3, 1),
    (8, 256, 256, 3, 1),
    (7, 256, 256, 3, 1),
    (7, 512, 512, 3, 1),
)

#        lines and columns of the input, channels, window, stride
DEPTHWISE = (
    (112, 32, 3, 1),
    (112, 96, 3, 2),
    (56, 128, 3, 1),
    (56, 144, 3, 1),
    (56, 144, 3, 2),
    (56, 144, 5, 2),
    (28, 72, 5, 2),
    (28, 88, 3, 1),
    (28, 192, 3, 1),
    (28, 192, 3, 2),
    (28, 240, 5, 1),
    (28, 256, 3, 1),
    (14, 120, 5, 1),
    (14, 240, 5, 1),
    (14, 384, 3, 1),
    (14, 480, 5, 1),
    (14, 512, 3, 1),
    (14, 576, 3, 1),
    (14, 576, 3, 2),
    (14, 672, 5, 1),
    (14, 672, 5, 2),
    (7, 576, 5, 1),
    (7, 960, 3, 1),
    (7, 1024, 3, 1),
    (7, 1152, 5, 1),
)

#        lines and columns of the input, channels before, inside and after, window, stride
RESIDUALS = (
    (112, 32, 32, 16, 3, 1),
    (112, 16, 96, 24, 3, 2),
    (56, 24, 144, 24, 3, 1),
    (56, 24, 144, 32, 3, 2),
    (56, 24, 144, 40, 5, 2),
    (28, 32, 192, 32, 3, 1),
    (28, 32, 192, 64, 3, 2),
    (28, 40, 240, 40, 5, 1),
    (28, 40, 240, 80, 3, 2),
    (14, 64, 384, 64, 3, 1),
    (14, 80, 480, 80, 3, 1),
    (14, 96, 576, 96, 3, 1),
    (14, 112, 672, 112, 5, 1),
    (7, 160, 960, 160, 3, 1),
    (7, 192, 1152, 192, 5, 1),
)

#        rows, depth, features
PRODUCTS = (
    *(
        (rows, depth, features)
        for rows in (1, 2, 4, 8)
        for depth, features in (
            (64, 64),
            (96, 24),
            (24, 96),
            (128, 12),
            (256, 256),
            (512, 512),
            (768, 768),
            (768, 3072),
            (3072, 768),
            (640, 128),
            (1024, 1000),
            (1280, 1000),
            (2048, 1000),
            (4096, 4096),
        )
    ),
    (16, 768, 768),
    (49, 512, 2048),
    (49, 2048, 512),
    (49, 320, 1280),
    (49, 960, 160),
    (49, 160, 960),
    (64, 512, 512),
    (128, 768, 768),
    (128, 768, 3072),
    (128, 3072, 768),
    (196, 1024, 256),
    (196, 256, 1024),
    (196, 576, 96),
    (196, 96, 576),
    (197, 768, 3072),
    (256, 1024, 1024),
    (512, 768, 768),
    (784, 512, 128),
    (784, 128, 512),
    (784, 192, 32),
    (3136, 64, 256),
    (3136, 256, 64),
    (3136, 24, 144),
)

#        lines and columns of the input, channels, features, window, stride
TRANSPOSED = (
    (8, 512, 256, 3, 2),
    (16, 256, 128, 2, 2),
    (16, 128, 64, 4, 2),
    (32, 128, 64, 2, 2),
    (32, 64, 32, 4, 2),
    (64, 64, 32, 4, 2),
    (64, 32, 16, 2, 2),
    (128, 32, 16, 2, 2),
    (64, 16, 1, 2, 2),
    (64, 16, 4, 4, 2),
)

_rng = np.random.default_rng(30)


def layers() -> Iterator[LoopGraph]:
    """Every layer, first in float32, then in int8. Images are padded as for the same size."""
    for dtype in (float32, int8):
        for n, channels, features, size, stride in CONVOLUTIONS:
            yield _graph(_convolution(_image(dtype, n, channels), features, size, stride))
        for n, channels, size, stride in DEPTHWISE:
            yield _graph(_depthwise(_image(dtype, n, channels), size, stride))
        for n, before, inside, after, size, stride in RESIDUALS:
            expanded = _convolution(_image(dtype, n, before), inside, 1, 1)
            filtered = _depthwise(expanded.output, size, stride)
            yield _graph(expanded, filtered, _convolution(filtered.output, after, 1, 1, linear=True))
        for rows, depth, features in PRODUCTS:
            yield _graph(_convolution(Buffer("x", dtype, (1, rows, 1, depth)), features, 1, 1))
        for n, channels, features, size, stride in TRANSPOSED:
            yield _graph(_transposed(_image(dtype, n, channels), features, size, stride))


def _graph(*forms: LoopOp) -> LoopGraph:
    written = {id(form.output) for form in forms}
    inputs = [b for form in forms for b in form.inputs if b.constant is None and id(b) not in written]
    return LoopGraph("layer", tuple(inputs), (forms[-1].output,), forms)


def _image(dtype: DType, n: int, channels: int) -> Buffer:
    return Buffer("x", dtype, (1, n, n, channels))


def _window(n: int, size: int, stride: int) -> tuple[Window, int]:
    """A window with the padding that gives one output for each stride, and how many those are."""
    count = -(-n // stride)
    padding = max(0, (count - 1) * stride + size - n)
    ends = padding // 2, padding - padding // 2
    return Window((size, size), (stride, stride), (1, 1), (*ends, *ends)), count


def _weights(dtype: DType, *shape: int) -> Buffer:
    numbers = _rng.normal(size=shape) * 0.1 if dtype is float32 else _rng.integers(-127, 128, shape)
    return Buffer("w", dtype, shape, numbers.astype(dtype.np))


def _finished(dtype: DType, features: int, linear: bool) -> tuple[tuple[Buffer, ...], Expr]:
    """The operands and expression that most layers end in: a bias, and an activation, or a scale for each channel."""
    bias = Buffer("b", float32, (features,), _rng.normal(size=features).astype(np.float32))
    if dtype is float32:
        total = apply("add", arg(0, float32), arg(1, float32))
        return (bias,), total if linear else apply("relu6", total)
    start = Buffer("b", int32, (features,), _rng.integers(-1000, 1000, features).astype(np.int32))
    scale = Buffer("s", float32, (features,), _rng.uniform(1e-4, 1e-3, features).astype(np.float32))
    real = convert(apply("add", arg(0, int32), arg(1, int32)), float32)
    return (start, scale), quantize(apply("mul", real, arg(2, float32)), 3, int8, -128, 127)


def _convolution(x: Buffer, features: int, size: int, stride: int, linear: bool = False) -> Contract:
    number, height, width, channels = x.shape
    if size == 1 and stride == 1:
        window, (down, across) = Window((1, 1)), (height, width)
    else:
        window, down = _window(height, size, stride)
        across = down
    operands, expr = _finished(x.dtype, features, linear)
    out = Buffer("y", x.dtype, (number, down, across, features))
    zeros: dict[str, Any] = {} if x.dtype is float32 else {"input_zero": 3}
    return Contract(out, x, _weights(x.dtype, features, size, size, channels), operands, expr, window, **zeros)


def _depthwise(x: Buffer, size: int, stride: int) -> Depthwise:
    number, height, _, channels = x.shape
    window, count = _window(height, size, stride)
    operands, expr = _finished(x.dtype, channels, False)
    out = Buffer("y", x.dtype, (number, count, count, channels))
    zeros: dict[str, Any] = {} if x.dtype is float32 else {"input_zero": 3}
    return Depthwise(out, x, _weights(x.dtype, size, size, channels), operands, expr, window, 1, **zeros)


def _transposed(x: Buffer, features: int, size: int, stride: int) -> TransposedContract:
    """Return the layer of a window cut at the end of the image, for an output of `stride` times the input's size."""
    number, height, _, channels = x.shape
    padding = size - stride
    ends = padding // 2, padding - padding // 2
    window = Window((size, size), (stride, stride), (1, 1), (*ends, *ends))
    operands, expr = _finished(x.dtype, features, True)
    out = Buffer("y", x.dtype, (number, height * stride, height * stride, features))
    zeros: dict[str, Any] = {} if x.dtype is float32 else {"input_zero": 3}
    weights = _weights(x.dtype, features, size, size, channels)
    return TransposedContract(out, x, weights, operands, expr, window, **zeros)
