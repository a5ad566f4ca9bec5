"""A form for each choice among kernels, in which it is put."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import apply, arg, convert, quantize
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import Contract, Depthwise, LoopOp, TransposedContract
from opwright.core.dtypes import DType, float32, int8, int32

RNG = np.random.default_rng(8)
SAME = Window((3, 3), padding=(1, 1, 1, 1))
SUM = arg(0, float32)


def drawn(dtype: DType, *shape: int) -> np.ndarray:
    """Numbers as activations and weights have."""
    result = RNG.normal(size=shape) if dtype is float32 else RNG.integers(-128, 128, shape)
    return result.astype(dtype.np)


def _weights(dtype: DType, *shape: int) -> Buffer:
    return Buffer("w", dtype, shape, drawn(dtype, *shape))


def _ends(dtype: DType, features: int) -> dict[str, object]:
    """The operands, the expression and the zero point of a layer."""
    if dtype is float32:
        bias = Buffer("b", float32, (features,), drawn(float32, features))
        return {"operands": (bias,), "expr": apply("add", SUM, arg(1, float32))}
    scale = Buffer("s", float32, (features,), RNG.uniform(1e-4, 1e-3, features).astype(np.float32))
    real = apply("mul", convert(arg(0, int32), float32), arg(1, float32))
    return {"operands": (scale,), "expr": quantize(real, 3, int8), "input_zero": 5}


def convolution(
    dtype: DType, n: int, channels: int, features: int, window: Window = SAME, x: Buffer | None = None
) -> Contract:
    x = Buffer("x", dtype, (1, n, n, channels)) if x is None else x
    size = n if window.strides == (1, 1) else n // 2
    w = _weights(dtype, features, *window.size, channels)
    return Contract(Buffer("y", dtype, (1, size, size, features)), x, w, window=window, **_ends(dtype, features))  # type: ignore[arg-type]


def product(dtype: DType, rows: int, depth: int, features: int) -> Contract:
    x, w = Buffer("x", dtype, (1, rows, 1, depth)), _weights(dtype, features, 1, 1, depth)
    return Contract(Buffer("y", dtype, (1, rows, 1, features)), x, w, window=Window((1, 1)), **_ends(dtype, features))  # type: ignore[arg-type]


def depthwise(dtype: DType, n: int, channels: int, x: Buffer | None = None, window: Window = SAME) -> Depthwise:
    x = Buffer("x", dtype, (1, n, n, channels)) if x is None else x
    out, w = Buffer("d", dtype, (1, n, n, channels)), _weights(dtype, *window.size, channels)
    return Depthwise(out, x, w, window=window, **_ends(dtype, channels))  # type: ignore[arg-type]


def transposed(dtype: DType) -> TransposedContract:
    x, w = Buffer("x", dtype, (1, 5, 5, 16)), _weights(dtype, 12, 2, 2, 16)
    out, window = Buffer("y", dtype, (1, 10, 10, 12)), Window((2, 2), (2, 2))
    return TransposedContract(out, x, w, window=window, **_ends(dtype, 12))  # type: ignore[arg-type]


def residual(dtype: DType) -> list[LoopOp]:
    first = convolution(dtype, 10, 8, 24, Window((1, 1)))
    middle = depthwise(dtype, 10, 24, first.output)
    return [first, middle, convolution(dtype, 10, 24, 8, Window((1, 1)), middle.output)]


FORMS: dict[str, Callable[[], list[LoopOp]]] = {
    "winograd": lambda: [convolution(float32, 9, 32, 64)],
    "winograd_int8": lambda: [convolution(int8, 9, 64, 64)],
    "lines_f32": lambda: [convolution(float32, 10, 12, 20, Window((3, 3), (2, 2), (1, 1), (0, 1, 0, 1)))],
    "few_rows_f32": lambda: [product(float32, 3, 40, 50)],
    "blocks_f32": lambda: [product(float32, 130, 130, 100)],
    "blocks_int8": lambda: [product(int8, 130, 520, 100)],
    "copies_int8": lambda: [convolution(int8, 7, 20, 24)],
    "depthwise_rows_f32": lambda: [depthwise(float32, 9, 20)],
    "depthwise_teams_int8": lambda: [depthwise(int8, 30, 20, window=Window((2, 2), padding=(0, 1, 0, 1)))],
    "bands": lambda: residual(float32),
    "taps": lambda: [transposed(float32)],
}
"""By choice, forms that put it."""


def graph_of(forms: list[LoopOp]) -> LoopGraph:
    """Forms one after the other as a graph."""
    return LoopGraph("layer", (forms[0].inputs[0],), (forms[-1].output,), tuple(forms))
