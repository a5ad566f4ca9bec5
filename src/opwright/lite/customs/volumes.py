"""Pools over volumes [n, d, h, w, c]: AvgPool3D and MaxPool3D, as TensorFlow's converter writes them.

Lives here: the two operators.  Not here: convolutions over volumes (lite/ops/volumes.py), pools that say where the
greatest was (pooling.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.definition import Input, Output
from ...ops.windows import Window, out_size, window
from ..ops.quantized.fixed_point import rounded_quotient
from ..ops.quantized.operand import Operand, check_same, check_scaled, check_symmetric, check_types
from ..ops.shapes import bounded, refuse, spec
from ..ops.sliding import along, counts
from .definition import custom_operator
from .pooling import check_pool

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
        x = along(x, w, axis, combine, initial)
    return x


def _seen(op: Any, x: np.ndarray, dtype: Any) -> np.ndarray:
    """How many elements of the volume each window sees, [d, h, w, 1]."""
    d, h, w = (counts(one, dtype) for one in _windows(op, x))
    return np.multiply.outer(np.multiply.outer(d, h), w)[..., None]


def _checked(op: Any, x: Operand, y: Operand) -> None:
    check_types(op, TYPES, x, y)
    check_scaled(x, y)
    check_same(x, y)
    if x.type == "INT16":
        check_symmetric(x, y)


def _average(op: Any, x: Operand, y: Operand) -> Any:
    """Sums of integers over their number, halves away from zero."""
    _checked(op, x, y)

    def run(q: Any) -> Any:
        total, n = _combined(op, q.astype(np.int32), np.add, 0), _seen(op, q, np.int32)
        return rounded_quotient(total, n)

    return run


def _maximum(op: Any, x: Operand, y: Operand) -> Any:
    _checked(op, x, y)
    return lambda q: _combined(op, q, np.maximum, x.low)


@custom_operator("AvgPool3D", "AveragePool3D")
class AvgPool3D:
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
class MaxPool3D:
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

    def compute(op: Any, x: Any) -> Any:
        return _combined(op, x, np.maximum, -np.inf)
