"""Transposed convolution with bias and pooling of volumes: Convolution2DTransposeBias, AvgPool3D, MaxPool3D.

Lives here: these operators, as MediaPipe's models and TensorFlow's converter have them.
Not here: TRANSPOSE_CONV (lite/ops/convolution.py), max pooling with
argmax (pooling.py).

Volumes are [n, d, h, w, c].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.slots import Input, Output
from ...ops.windows import Window, out_size, window
from ..ops.definition import LiteDefinition
from ..ops.quantized.fixed_point import rounded_quotient
from ..ops.quantized.operand import Operand, check_same, check_scaled, check_symmetric, check_types
from ..ops.shapes import bounded, refuse, same, spec, text
from ..ops.windows import check_positive, combine_along, counts
from .definition import custom_operator
from .pooling import check_pool, padding_of

_F = (float32,)


@custom_operator("Convolution2DTransposeBias")
class Convolution2DTransposeBias(LiteDefinition):
    """The adjoint of a convolution by its input, with a bias: each pixel of x spreads over a window of y.

    .. math:: y_{n, p s + i - a, q s + j - b, o} = b_o + \\sum_{ijc} x_{npqc} f_{oijc}

    x: [n, h, w, c]; filter: [o, kh, kw, c]; bias: [o]; y: [n, h', w', o], h' = s (h - 1) + kh for VALID padding; for
    SAME max(0, kh - (h - 1) mod s - 1) less, half of which (cut) is a, left out at the top; w' and b alike.
    """

    x = Input(_F, rank=4)
    filter = Input(_F, rank=4)
    bias = Input(_F, rank=1)
    y = Output(dtype=float32)
    layout = ("padding", "stride_w", "stride_h")
    padding = Attr(int, default=0)
    stride_w = Attr(int, default=0)
    stride_h = Attr(int, default=0)

    def result_size(op: Any, size: Any, kernel: Any, stride: int) -> tuple[Any, int]:
        """Return one size of y, and how much is left out before it."""
        if size is None or kernel is None:
            return None, 0
        spare = max(0, kernel - (size - 1) % stride - 1) if padding_of(op) == "SAME" else 0
        return stride * (size - 1) + kernel - spare, spare // 2

    def infer(op: Any) -> TensorSpec:
        check_positive(op, "stride_w", "stride_h")
        x, f = op.x.spec.shape, op.filter.spec.shape
        n, h, w, c = x.dims or (None,) * 4
        o, kh, kw, depth = f.dims or (None,) * 4
        if not same(c, depth):
            raise refuse(
                "channels of filter and x differ", found={"filter": text(f), "x": text(x)}, wanted="equal last sizes"
            )
        if not same(op.bias.spec.shape[0], o):
            raise refuse("the bias does not fit the filter", found=text(op.bias.spec.shape), wanted=f"[{o}]")
        if h == 0 or w == 0:
            raise refuse("x is an image without pixels", found=text(x), wanted="sizes of at least 1")
        out = [op.result_size(size, k, s)[0] for size, k, s in ((h, kh, op.stride_h), (w, kw, op.stride_w))]
        if None not in (n, *out, o):
            bounded((n, *(a + (k or 0) for a, k in zip(out, (kh, kw))), o), float32, "the image")
        return spec((n, *out, o), float32)

    def compute(op: Any, x: Any, filter: Any, bias: Any) -> Any:
        (n, h, w, _), (o, kh, kw, _) = x.shape, filter.shape
        high, top = op.result_size(h, kh, op.stride_h)
        wide, left = op.result_size(w, kw, op.stride_w)
        full = np.zeros((n, op.stride_h * (h - 1) + kh, op.stride_w * (w - 1) + kw, o), np.float32)
        for i in range(kh):
            rows = slice(i, i + op.stride_h * (h - 1) + 1, op.stride_h)
            for j in range(kw):
                full[:, rows, j : j + op.stride_w * (w - 1) + 1 : op.stride_w] += x @ filter[:, i, j].T
        return full[:, top : top + high, left : left + wide] + bias


TYPES = ("INT8 INT8", "INT16 INT16")


def _infer(op: Any) -> TensorSpec:
    check_pool(op, 5)
    if op.data_format != "NDHWC":
        raise refuse("data_format is not NDHWC", found=repr(op.data_format), wanted="NDHWC")
    dims = op.x.spec.shape.dims or (None,) * 5
    out = [out_size(size, k, s, 1, op.padding) for size, k, s in zip(dims[1:4], op.ksize[1:4], op.strides[1:4])]
    if None not in (*dims, *out):
        bounded((dims[0], *(max(a, b) for a, b in zip(dims[1:4], out)), dims[4]), float32, "the pooled volume")
    return spec((dims[0], *out, dims[4]), op.x.spec.dtype)


def _windows(op: Any, x: Any) -> list[Window]:
    return [window(size, k, s, 1, op.padding) for size, k, s in zip(x.shape[1:4], op.ksize[1:4], op.strides[1:4])]


def _combined(op: Any, x: np.ndarray, combine: np.ufunc, initial: float) -> np.ndarray:
    for axis, w in enumerate(_windows(op, x), 1):
        x = combine_along(x, w, axis, combine, initial)
    return x


def _seen(op: Any, x: np.ndarray, dtype: Any) -> np.ndarray:
    """How many elements of the volume each window sees, [d, h, w, 1]."""
    d, h, w = (counts(one, dtype) for one in _windows(op, x))
    result: np.ndarray = np.multiply.outer(np.multiply.outer(d, h), w)[..., None]
    return result


def _checked(op: Any, x: Operand, y: Operand) -> None:
    check_types(op, TYPES, x, y)
    check_scaled(x, y)
    check_same(x, y)
    if x.type == "INT16":
        check_symmetric(x, y)


def _average(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    """Compute means of integers, rounded half away from zero."""
    _checked(op, x, y)

    def run(q: Any) -> Any:
        total, n = _combined(op, q.astype(np.int32), np.add, 0), _seen(op, q, np.int32)
        return rounded_quotient(total, n)

    return run


def _maximum(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    _checked(op, x, y)
    return lambda q: _combined(op, q, np.maximum, x.low)


@custom_operator("AvgPool3D", "AveragePool3D")
class AvgPool3D(LiteDefinition):
    """The mean over each window; padding does not count.

    .. math:: y_{ntpqc} = \\operatorname{mean}_{ijk} x_{n, t s + i, p s + j, q s + k, c}

    x: [n, d, h, w, c], float32, or int8 and int16 with scales, which y shares; ksize, strides: [1, d, h, w, 1];
    padding: SAME or VALID; data_format: NDHWC
    """

    x = Input((float32,), rank=5)
    y = Output(like="x")
    ksize = Attr([int], default=())
    strides = Attr([int], default=())
    padding = Attr(str, default="")
    data_format = Attr(str, default="NDHWC")
    quantized = _average
    infer = _infer

    def compute(op: Any, x: Any) -> Any:
        return _combined(op, x, np.add, 0.0) / _seen(op, x, np.float32)


@custom_operator("MaxPool3D")
class MaxPool3D(LiteDefinition):
    """The greatest of each window.

    .. math:: y_{ntpqc} = \\max_{ijk} x_{n, t s + i, p s + j, q s + k, c}

    Tensors and attributes as for AvgPool3D.
    """

    x = Input((float32,), rank=5)
    y = Output(like="x")
    ksize = Attr([int], default=())
    strides = Attr([int], default=())
    padding = Attr(str, default="")
    data_format = Attr(str, default="NDHWC")
    quantized = _maximum
    infer = _infer

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        return _combined(op, x, np.maximum, -np.inf)
