"""Sequences of integer tokens.

Lives here: SequenceErase, SequenceEnumerate, `erase`, `enumerate`.  Not here: text (ops/strings).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from .. import like_device
from ..attributes import Attr, at_least
from ..definition import operator
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .segments import check_width_one, lengths_of, offsets_like


@operator
class SequenceErase(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Remove tokens from each sequence.

    .. math:: y = (x_t : x_t \\notin tokens)

    x: [rows, 1] with a LoD, of which the last level changes. y: [remaining rows, 1].
    raises InvalidArgumentError for x without LoD, or of another width than 1
    """

    x = Input(index)
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    y = Output(like="x")
    y_offsets = Output(dtype=dtypes.int64, lod_of="y")
    tokens = Attr([int])
    lod = "changed"
    gradient = None

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        check_width_one(op.x.spec.shape)
        return TensorSpec([None, 1], op.x.spec.dtype), offsets_like(op.offsets)

    def compute(op, x: Any, offsets: Any) -> tuple[Any, Any]:
        check_width_one(TensorShape(x.shape))
        lengths_of(offsets, len(x))
        remaining = ~np.isin(x[:, 0], like_device.array(x, np.array(op.tokens, np.int64)))
        new_positions = like_device.zeros(x, len(x) + 1, np.int64)
        np.cumsum(remaining, out=new_positions[1:])
        return x[remaining], new_positions[offsets]


@operator
class SequenceEnumerate(OperatorDefinition):
    """Return the win_size tokens beginning at each position; `pad_value` beyond the end of the sequence.

    .. math:: y_{t,j} = x_{t+j} \\text{ in the sequence of } t, \\text{ else the pad value}

    x: [rows, 1] with one LoD level. y: [rows, win_size], the same LoD.
    raises InvalidArgumentError for win_size below 2, x without LoD or with more levels, or of another width than 1
    """

    x = Input(index, lod=1)
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    y = Output(like="x")
    win_size = Attr(int, check=at_least(2))
    pad_value = Attr(int, default=0)
    gradient = None

    def infer(op) -> TensorSpec:
        shape = op.x.spec.shape
        check_width_one(shape)
        return TensorSpec([shape[0] if shape.rank else None, op.win_size], op.x.spec.dtype)

    def compute(op, x: Any, offsets: Any) -> np.ndarray:
        check_width_one(TensorShape(x.shape))
        lengths = lengths_of(offsets, len(x))
        positions = like_device.arange(x, len(x))[:, None] + like_device.arange(x, op.win_size)
        y = np.append(x[:, 0], x.dtype.type(op.pad_value))
        return y[np.where(positions < np.repeat(offsets[1:], lengths)[:, None], positions, len(x))]


@documented_by(SequenceErase)
def erase(x: Any, tokens: Sequence[int], name: str | None = None) -> tuple[Tensor, Tensor]:
    """Remove tokens from sequences.

    >>> x = ow.LoDTensor([[2], [2], [6], [1]], [[0, 3, 4]])
    >>> ow.sequence.erase(x, [2, 1]).to_nested()
    [[[6]], []]
    """
    return SequenceErase(x, tokens=tokens, name=name)


@documented_by(SequenceEnumerate)
def enumerate(x: Any, win_size: int, pad_value: int = 0, name: str | None = None) -> Tensor:
    """Return the subsequences of fixed length that start at each position.

    >>> ow.sequence.enumerate(ow.LoDTensor([[4], [5], [6]], [[0, 2, 3]]), 2).to_nested()
    [[[4, 5], [5, 0]], [[6, 0]]]
    """
    return SequenceEnumerate(x, win_size=win_size, pad_value=pad_value, name=name)
