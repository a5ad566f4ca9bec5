"""MeanVarianceNormalization, by its definition in ONNX (operator set 13), for channels that come last.

Lives here: this operator.  Not here: L2_NORMALIZATION, LOCAL_RESPONSE_NORMALIZATION (lite/ops/activation.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.specs import TensorSpec
from ...ops.attributes import Attr, at_least
from ...ops.definition import Input, Output
from ..ops.shapes import refuse
from .definition import custom_operator


@custom_operator("MeanVarianceNormalization")
class MeanVarianceNormalization:
    """Elements less the mean over some axes, over their standard deviation.

    .. math:: y = (x - E x) / (\\sqrt{E (x - E x)^2} + eps)

    x: float32 of any rank from 1. axes: over which the mean goes, negative ones from the end; by default all but the
    last (each channel of [batch, height, width, channels] by itself). normalize_variance: else y = x - E x
    """

    x = Input(float32)
    y = Output(like="x")
    axes = Attr([int], default=())
    normalize_variance = Attr(bool, default=True)
    eps = Attr(float, default=1e-9, check=at_least(0.0))

    def infer(op: Any) -> TensorSpec:
        rank = op.x.spec.shape.rank
        if rank == 0:
            raise refuse("x is a scalar", wanted="1 dimension or more")
        if rank is not None and any(not -rank <= axis < rank for axis in op.axes):
            raise refuse("an axis is out of range for x", found=list(op.axes), wanted=f"-{rank} to {rank - 1}")
        if rank is not None and len({axis % rank for axis in op.axes}) != len(op.axes):
            raise refuse("an axis is named twice", found=list(op.axes), wanted="each once")
        return op.x.spec

    def compute(op: Any, x: Any) -> Any:
        axes = op.axes or tuple(range(max(x.ndim - 1, 1)))
        wide = x.astype(np.float64)
        less = wide - wide.mean(axes, keepdims=True)
        if op.normalize_variance:
            less = less / (np.sqrt(np.square(less).mean(axes, keepdims=True)) + op.eps)
        return less.astype(np.float32)
