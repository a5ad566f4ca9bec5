"""Average pooling, and its gradient.

Lives here: AvgPool, AvgPool3D with AvgPoolGrad, AvgPool3DGrad. Not here: max pooling, functions under TensorFlow's
names (pooling.py), the positions of windows (../windows.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import floating, index
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from .. import like_device
from ..accumulation import wide
from ..array.shape_operators import shape_op
from ..attributes import Attr, one_of
from ..definition import operator
from ..shape_inference import shape_from
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from ..windows import FORMATS, AxisWindow, pad, taps, unpadded
from .convolution_rules import dims_of_rank
from .pooling_rules import check_gradient, pooled_shape, windows_of


def _counts(windows: Sequence[AxisWindow]) -> np.ndarray:
    """Count the elements of the image in each window, excluding padding."""
    total = np.ones((), np.int64)
    for w in windows:
        starts = np.arange(w.out) * w.stride - w.before
        count = np.minimum(starts + w.kernel, w.size) - np.maximum(starts, 0)
        total = np.multiply.outer(total, np.maximum(count, 1))
    return total


def _define_avg(n: int) -> tuple[Any, Any]:
    rank, suffix = n + 2, "3D" if n == 3 else ""

    @operator(name=f"AvgPool{suffix}")
    class AvgPooling(OperatorDefinition):
        """Compute the mean of each window, excluding padding.

        .. math:: output_p = \\frac{1}{|W_p|} \\sum_{i \\in W_p} input_i, \\quad
                  W_p = \\{p \\cdot strides + q - before\\} \\text{ inside the image}

        ksize, strides: one entry per dimension of input, 1 for the batch. 16-bit floats are accumulated in float32.
        raises InvalidArgumentError if a window is larger than the image and padding is VALID
        """

        input = Input(floating, rank=rank)
        output = Output(like="input")
        ksize = Attr([int])
        strides = Attr([int])
        padding = Attr(str, check=one_of("SAME", "VALID"))
        data_format = Attr(str, default=FORMATS[n][0], check=one_of(*FORMATS[n]))
        no_need_buffer = ("input",)
        lod = "as input"

        def infer(op) -> TensorSpec:
            return op.input.spec.with_shape(pooled_shape(op, op.input.spec.shape, rank))

        def compute(op, input: Any) -> np.ndarray:
            windows = windows_of(op, input.shape)
            padded = pad(input.astype(wide(input.dtype), copy=False), windows, 0, 0)
            total = like_device.zeros(input, [w.out for w in windows], padded.dtype)
            for _, tap in taps(windows):
                total += padded[tap]
            total /= like_device.array(input, _counts(windows).astype(padded.dtype))
            return total.astype(input.dtype, copy=False)

        def gradient(op, doutput: Any) -> Tensor:
            return AvgPoolingGrad(shape_op(op.input), doutput, **op.attrs)

    @operator(name=f"AvgPool{suffix}Grad")
    class AvgPoolingGrad(OperatorDefinition):
        """Compute the gradient of average pooling: distribute each window's gradient equally over its elements.

        .. math:: output_i = \\sum_{p :\\; i \\in W_p} grad_p / |W_p|

        orig_input_shape: the shape of the pool's input.
        """

        orig_input_shape = Input(index, rank=1)
        grad = Input(floating, rank=rank)
        output = Output(like="grad")
        ksize = Attr([int])
        strides = Attr([int])
        padding = Attr(str, check=one_of("SAME", "VALID"))
        data_format = Attr(str, default=FORMATS[n][0], check=one_of(*FORMATS[n]))
        lod = "vanishes"

        def infer(op) -> TensorSpec:
            shape = TensorShape(dims_of_rank(shape_from(op.orig_input_shape), rank))
            check_gradient(op, pooled_shape(op, shape, rank))
            return op.grad.spec.with_shape(shape)

        def compute(op, orig_input_shape: Any, grad: Any) -> np.ndarray:
            windows = windows_of(op, orig_input_shape.tolist())
            padded = like_device.zeros(grad, [w.before + w.size + w.after for w in windows], wide(grad.dtype))
            share = grad / like_device.array(grad, _counts(windows).astype(padded.dtype))
            for _, tap in taps(windows):
                padded[tap] += share
            return padded[unpadded(windows)].astype(grad.dtype, copy=False)

        def gradient(op, doutput: Any) -> tuple[None, Tensor]:
            return None, AvgPooling(doutput, **op.attrs)

    return AvgPooling, AvgPoolingGrad


AvgPool, AvgPoolGrad = _define_avg(2)

AvgPool3D, AvgPool3DGrad = _define_avg(3)
