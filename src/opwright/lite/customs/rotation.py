"""Rotations that spread outliers before quantising: aeq.hadamard_rotation.

Lives here: the operator.  Not here: quantisation (lite/ops/quantization.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.definition import Input, Output
from ..ops.shapes import refuse, text
from .definition import custom_operator


@custom_operator("aeq.hadamard_rotation")
class HadamardRotation:
    """The normalised Walsh-Hadamard transform of each run of hadamard_size elements along the last axis.

    .. math:: y_i = n^{-1/2} \\sum_j (-1)^{|i \\wedge j|} x_j, \\quad n = hadamard\\_size

    x: [..., features], rank 2 or 3; hadamard_size: a power of 2 that divides features; i ∧ j: bits in both, counted.
    random_binary_vector is in files and has no effect.
    """

    x = Input((float32,))
    y = Output(like="x")
    hadamard_size = Attr(int, default=0)
    random_binary_vector = Attr([int], default=())

    def infer(op: Any) -> TensorSpec:
        n, shape = op.hadamard_size, op.x.spec.shape
        if n < 2 or n & (n - 1):
            raise refuse("hadamard_size is not a power of 2", found=n, wanted="2, 4, 8, ...")
        if shape.rank not in (None, 2, 3):
            raise refuse("x is neither a matrix nor a batch of them", found=text(shape), wanted="rank 2 or 3")
        if shape.rank and shape[-1] is not None and shape[-1] % n:
            raise refuse("hadamard_size does not divide the features", found={"x": text(shape), "hadamard_size": n},
                         wanted="a divisor of the last size of x")  # fmt: skip
        return op.x.spec

    def compute(op: Any, x: Any) -> Any:
        y, half = x.reshape(-1, op.hadamard_size).copy(), 1
        while half < op.hadamard_size:
            pairs = y.reshape(-1, 2, half)
            a, b = pairs[:, 0].copy(), pairs[:, 1]
            pairs[:, 0] += b
            np.subtract(a, b, out=b)
            half *= 2
        y *= np.float32(1.0 / np.sqrt(op.hadamard_size))
        return y.reshape(x.shape)
