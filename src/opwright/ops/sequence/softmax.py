"""Softmax over the steps of each sequence.

Lives here: SequenceSoftmax, its gradient, `softmax`.  Not here: softmax over an axis (ops/nn/softmax.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import floating
from ...core.errors import InvalidArgumentError
from ..definition import operator
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from .expansion import SequenceExpandAs
from .pooling import SequencePool
from .segments import count, lengths_of, reduced, wide

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..tensor import Tensor


@operator
class SequenceSoftmax(OperatorDefinition):
    """Apply softmax over the rows of each sequence.

    .. math:: y_t = \\frac{e^{x_t - m_i}}{\\sum_s e^{x_s - m_i}}, \\quad m_i = \\max_s x_s, \\; o_i \\le s, t < o_{i+1}

    x: [rows] or [rows, 1] with a LoD; its last level determines the sequences. y: the same shape and LoD.
    raises InvalidArgumentError for x without LoD, or of another width than 1
    """

    x = Input(floating, rank=(1, 2))
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    y = Output(like="x")
    no_need_buffer = ("x",)

    def infer(op) -> TensorSpec:
        if op.x.spec.shape.rank is not None:
            _check_steps(op.x.spec.shape)
        count(op.offsets)
        return op.x.spec

    def compute(op, x: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        lengths = lengths_of(offsets, len(x))
        _check_steps(x.shape)
        flat = wide(x.reshape(-1))
        y = flat - np.repeat(reduced(np.maximum, flat, offsets, lengths, 0.0), lengths)
        np.exp(y, out=y)
        y /= np.repeat(reduced(np.add, y, offsets, lengths, 1.0), lengths)
        result: np.ndarray = y.astype(x.dtype, copy=False).reshape(x.shape)
        return result

    def gradient(op, dy: Any) -> tuple[Tensor, None]:
        return SequenceSoftmaxGrad(dy, op.y, op.offsets), None


@operator
class SequenceSoftmaxGrad(OperatorDefinition):
    """Compute the gradient of SequenceSoftmax.

    .. math:: dx_t = y_t (dy_t - \\sum_s dy_s y_s), \\quad o_i \\le s, t < o_{i+1}

    dy, y: [rows] or [rows, 1]. dx: the same shape.
    raises InvalidArgumentError if dy and y differ in shape
    """

    dy = Input(floating, rank=(1, 2))
    y = Input(floating, like="dy", rank=(1, 2))
    offsets = Input(dtypes.int64, rank=1, lod_of="y")
    dx = Output(like="dy")

    def infer(op) -> TensorSpec:
        count(op.offsets)
        if not op.dy.spec.shape.is_compatible_with(op.y.spec.shape):
            raise InvalidArgumentError(
                what="dy and y differ in shape", found={"dy": op.dy.spec.shape, "y": op.y.spec.shape}
            )
        return op.dy.spec

    def compute(op, dy: np.ndarray, y: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        lengths = lengths_of(offsets, len(y), "y")
        shares = wide(y.reshape(-1))
        dx = wide(dy.reshape(-1)) * shares
        dx -= shares * np.repeat(reduced(np.add, dx, offsets, lengths, 0.0), lengths)
        result: np.ndarray = dx.astype(dy.dtype, copy=False).reshape(dy.shape)
        return result

    def gradient(op, ddx: Any) -> tuple[Tensor, Any, None]:
        def sequence_sum(x: Any) -> Tensor:
            return SequenceExpandAs(SequencePool(x, op.offsets, pooltype="SUM"), offsets=op.offsets)

        dy = ddx * (op.dy - sequence_sum(op.dy * op.y)) - op.dy * sequence_sum(ddx * op.y)
        return SequenceSoftmaxGrad(ddx, op.y, op.offsets), dy, None


def _check_steps(shape: Any) -> None:
    if len(shape) == 2 and shape[1] not in (1, None):
        raise InvalidArgumentError(
            what="a step has more than one number", found=f"shape {list(shape)}", wanted="shape [rows] or [rows, 1]"
        )


@documented_by(SequenceSoftmax)
def softmax(x: Any, name: str | None = None) -> Tensor:
    """Compute softmax within each sequence.

    >>> ow.sequence.softmax(ow.LoDTensor([1000.0, 1000.0, -3.0], [[0, 2, 3]])).to_nested()
    [[0.5, 0.5], [1.0]]
    """
    return SequenceSoftmax(x, name=name)
