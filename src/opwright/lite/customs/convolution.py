"""A transposed convolution with a bias whose output's size follows from the input's: Convolution2DTransposeBias.

Lives here: the operator, which MediaPipe's models have.  Not here: TRANSPOSE_CONV (lite/ops/convolution.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.definition import Input, Output
from ..ops.shapes import bounded, refuse, same, spec, text
from .definition import custom_operator
from .pooling import check_positive, padding_of

_F = (float32,)


@custom_operator("Convolution2DTransposeBias")
class Convolution2DTransposeBias:
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

    def infer(op: Any) -> TensorSpec:
        check_positive(op, "stride_w", "stride_h")
        x, f = op.x.spec.shape, op.filter.spec.shape
        n, h, w, c = x.dims or (None,) * 4
        o, kh, kw, depth = f.dims or (None,) * 4
        if not same(c, depth):
            raise refuse("channels of filter and x differ", found={"filter": text(f), "x": text(x)},
                         wanted="equal last sizes")  # fmt: skip
        if not same(op.bias.spec.shape[0], o):
            raise refuse("the bias does not fit the filter", found=text(op.bias.spec.shape), wanted=f"[{o}]")
        if h == 0 or w == 0:
            raise refuse("x is an image without pixels", found=text(x), wanted="sizes of at least 1")
        out = [result_size(op, size, k, s)[0] for size, k, s in ((h, kh, op.stride_h), (w, kw, op.stride_w))]
        if None not in (n, *out, o):
            bounded((n, *(a + (k or 0) for a, k in zip(out, (kh, kw))), o), float32, "the image")
        return spec((n, *out, o), float32)

    def compute(op: Any, x: Any, filter: Any, bias: Any) -> Any:
        (n, h, w, _), (o, kh, kw, _) = x.shape, filter.shape
        high, top = result_size(op, h, kh, op.stride_h)
        wide, left = result_size(op, w, kw, op.stride_w)
        whole = np.zeros((n, op.stride_h * (h - 1) + kh, op.stride_w * (w - 1) + kw, o), np.float32)
        for i in range(kh):
            rows = slice(i, i + op.stride_h * (h - 1) + 1, op.stride_h)
            for j in range(kw):
                whole[:, rows, j : j + op.stride_w * (w - 1) + 1 : op.stride_w] += x @ filter[:, i, j].T
        return whole[:, top : top + high, left : left + wide] + bias


def result_size(op: Any, size: Any, kernel: Any, stride: int) -> tuple[Any, int]:
    """One size of y, and how much is left out before it."""
    if size is None or kernel is None:
        return None, 0
    spare = max(0, kernel - (size - 1) % stride - 1) if padding_of(op) == "SAME" else 0
    return stride * (size - 1) + kernel - spare, spare // 2
