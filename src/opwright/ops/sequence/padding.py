"""Conversion between packed and padded sequences; masks.

Lives here: SequencePad, SequenceUnpad, SequenceMask, `pad`, `unpad`, `mask`.
Not here: padding of axes (ops/array/padding.py), nested lists (ops/lod_tensor.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, index, real
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device
from ..attributes import Attr, satisfies
from ..definition import operator
from ..lod_tensor import LoDTensor
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .pooling import SEQUENCE_DTYPES
from .segments import check_rank, count, lengths_of, offsets_of, windows


@operator
class SequencePad(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Pad packed sequences to equal length.

    .. math:: y_{i,t} = x_{o_i + t} \\text{ for } t < n_i, \\text{ else the pad value}; \\quad length_i = n_i

    x: [rows, ...] of rank 2 or more, with one LoD level; pad_value: one number, or a tensor shaped like one row.
    y: [number of sequences, padded_length, ...], by default of the maximum length; length: int64 [sequences].
    The padding has no gradient.
    raises InvalidArgumentError for x without LoD or with more levels, a pad value of another shape, and a sequence
    longer than padded_length
    """

    x = Input(SEQUENCE_DTYPES, lod=1)
    pad_value = Input(SEQUENCE_DTYPES, like="x")
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    y = Output(like="x")
    length = Output(dtype=dtypes.int64)
    padded_length = Attr(int, default=-1, check=satisfies("-1 or at least 0", lambda n: n >= -1))
    no_need_buffer = ("x", "pad_value")
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        x, value, n = op.x.spec.shape, op.pad_value.spec.shape, count(op.offsets)
        check_rank(x.rank, 2)
        if x.rank is not None and value.rank is not None and not _fills(value, x[1:]):
            _raise_value_mismatch(value, x)
        length = None if op.padded_length < 0 else op.padded_length
        y = UNKNOWN if x.rank is None else [n, length, *x[1:]]
        return TensorSpec(y, op.x.spec.dtype), TensorSpec([n], dtypes.int64)

    def compute(op, x: Any, pad_value: Any, offsets: Any) -> tuple[Any, np.ndarray]:
        check_rank(x.ndim, 2)
        if not _fills(TensorShape(pad_value.shape), TensorShape(x.shape[1:])):
            _raise_value_mismatch(pad_value.shape, x.shape)
        lengths = lengths_of(offsets, len(x))
        longest = int(lengths.max())
        width = longest if op.padded_length < 0 else op.padded_length
        if width < longest:
            raise InvalidArgumentError(
                what="a sequence is longer than padded_length",
                found=f"{longest} rows",
                wanted=f"at most {width}",
                do="padded_length=-1",
            )
        y = like_device.empty(x, (len(lengths) * width, *x.shape[1:]), x.dtype)
        y[...] = pad_value.reshape(()) if pad_value.size == 1 else pad_value
        y[windows(like_device.arange(lengths, len(lengths)) * width, lengths)] = x
        return y.reshape(len(lengths), width, *x.shape[1:]), lengths

    def gradient(op, dy: Any, dlength: Any) -> tuple[Tensor, None, None]:
        return SequenceUnpad(dy, op.length)[0], None, None


def _fills(value: TensorShape, step: TensorShape) -> bool:
    return value.is_compatible_with([]) or value.is_compatible_with([1]) or value.is_compatible_with(step)


def _raise_value_mismatch(value: Any, x: Any) -> None:
    raise InvalidArgumentError(
        what="the pad value is neither one number nor shaped like a row of x",
        found=f"shape {value}",
        wanted=f"shape [] or {list(x[1:])}",
    )


@operator
class SequenceUnpad(OperatorDefinition[tuple[Tensor, list[Tensor]]]):
    """Pack the sequences of a padded tensor: the inverse of SequencePad.

    .. math:: y_i = (x_{i,0}, ..., x_{i, length_i - 1})

    x: [n, padded, ...] of rank 2 or more; length: int32 or int64 [n]. y: [sum of length, ...] with one LoD level; for x
    of rank 2, [sum of length, 1].
    raises InvalidArgumentError for x of rank below 2, length of another shape, below 0 or above the padded length
    """

    x = Input(SEQUENCE_DTYPES)
    length = Input(index)
    y = Output(like="x")
    y_offsets = Output(dtype=dtypes.int64, repeated=True, lod_of="y", doc="one level, regardless of the LoD of x")
    no_need_buffer = ("x",)
    lod = "changed"

    def infer(op) -> tuple[TensorSpec, list[TensorSpec]]:
        x, length = op.x.spec.shape, op.length.spec.shape
        check_rank(x.rank, 2)
        _check_lengths(length, x[0] if x.rank else None)
        n = length[0] if length.rank else None
        row = None if x.rank is None else [1] if x.rank == 2 else list(x[2:])
        y = UNKNOWN if row is None else [None, *row]
        return TensorSpec(y, op.x.spec.dtype), [TensorSpec([None if n is None else n + 1], dtypes.int64)]

    def compute(op, x: Any, length: Any) -> tuple[Any, list[np.ndarray]]:
        check_rank(x.ndim, 2)
        _check_lengths(TensorShape(length.shape), len(x))
        padded = x.shape[1]
        if len(length) and not (length.min() >= 0 and length.max() <= padded):
            raise InvalidArgumentError(
                what="a length is not that of a padded row",
                found=f"lengths from {length.min()} to {length.max()}",
                wanted=f"0 to the padded length, {padded}",
            )
        lengths = length.astype(np.int64)
        if not len(lengths):
            raise InvalidArgumentError(what="there are no sequences", wanted="one or more, which may be empty")
        row = x.shape[2:] if x.ndim > 2 else (1,)
        flat = x.reshape(len(x) * padded, *row)
        return flat.take(windows(like_device.arange(lengths, len(x)) * padded, lengths), 0), [offsets_of(lengths)]

    def gradient(op, dy: Any, dy_offsets: Any) -> tuple[Tensor, None]:
        return SequenceRepad(dy, op.length, array.shape_op(op.x)), None


@operator
class SequenceRepad(OperatorDefinition):
    """Scatter packed rows into padded zeros of a given shape: the gradient of SequenceUnpad.

    .. math:: x_{i,t} = y_{o_i + t} \\text{ for } t < length_i, \\text{ else } 0

    y: [sum of length, ...]; length: [n]; shape: of x. x: [n, padded, ...].
    raises InvalidArgumentError if the number of rows of y is not the sum of the lengths
    """

    y = Input(SEQUENCE_DTYPES)
    length = Input(index)
    shape = Input(index, rank=1)
    x = Output(like="y")
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        constant, rank = op.shape.constant, op.shape.spec.shape[0]
        if constant is not None:
            return TensorSpec(constant.tolist(), op.y.spec.dtype)
        return TensorSpec(UNKNOWN if rank is None else [None] * rank, op.y.spec.dtype)

    def compute(op, y: Any, length: Any, shape: Any) -> np.ndarray:
        n, padded, *row = shape.tolist()
        if len(y) != length.sum():
            raise InvalidArgumentError(
                what="y has not as many rows as its sequences", found={"y": y.shape, "lengths": int(length.sum())}
            )
        x = like_device.zeros(y, (n * padded, *(row or (1,))), y.dtype)
        x[windows(like_device.arange(length, n) * padded, length.astype(np.int64))] = y
        return x.reshape(shape.tolist())

    def gradient(op, dx: Any) -> tuple[Tensor, None, None]:
        return SequenceUnpad(dx, op.length)[0], None, None


def _check_lengths(length: TensorShape, n: int | None) -> None:
    if not length.is_compatible_with([n]):
        raise InvalidArgumentError(
            what="input 'length' is not one number for each row of x",
            found=f"shape {length}",
            wanted=f"shape [{'n' if n is None else n}]",
        )


@operator
class SequenceMask(OperatorDefinition):
    """Return a mask of the steps of padded sequences: 1 below the length, 0 from it on.

    .. math:: y_{..., j} = [j < x_{...}]

    x: lengths, any shape; maxlen: the number of steps, -1 for the largest length; max_len_tensor: the same as a tensor
    of one number, which takes precedence. y: out_dtype [*shape of x, maxlen].
    raises InvalidArgumentError for a maxlen of 0, and for a max_len_tensor below 1
    """

    x = Input(real)
    max_len_tensor = Input(index, optional=True)
    y = Output()
    maxlen = Attr(int, default=-1, check=satisfies("below 0, or at least 1", lambda n: n != 0))
    out_dtype = Attr(DType, default=dtypes.int64)
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        shape = op.x.spec.shape
        constant = None if op.max_len_tensor is None else op.max_len_tensor.constant
        if op.max_len_tensor is not None:
            size = None if constant is None else _as_max_length(constant)
        else:
            size = op.maxlen if op.maxlen > 0 else None
        return TensorSpec(UNKNOWN if shape.rank is None else [*shape, size], op.out_dtype)

    def compute(op, x: np.ndarray, max_len_tensor: np.ndarray) -> np.ndarray:
        if max_len_tensor is not None:
            size = _as_max_length(max_len_tensor)
        else:
            size = op.maxlen if op.maxlen > 0 else max(int(x.max()), 0) if x.size else 0
        steps = like_device.arange(x, size)
        steps = steps if x.dtype.kind in "iu" else steps.astype(x.dtype)
        return (steps < x[..., None]).astype(op.out_dtype.np)


def _as_max_length(maxlen: np.ndarray) -> int:
    if maxlen.size != 1 or maxlen.min() < 1:
        raise InvalidArgumentError(what="max_len_tensor is not one number of at least 1", found=maxlen.tolist())
    return int(maxlen.reshape(())[()])


@documented_by(SequencePad)
def pad(
    x: Any, pad_value: Any = 0.0, padded_length: int | None = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Pad sequences to equal length; return the pair (y, length). padded_length: by default the maximum length.

    >>> y, length = ow.sequence.pad(ow.LoDTensor([[1.0], [2.0], [3.0]], [[0, 2, 3]]), -1.0)
    >>> y.numpy()[..., 0].tolist(), length.numpy().tolist()
    ([[1.0, 2.0], [3.0, -1.0]], [2, 1])
    """
    size = -1 if padded_length is None else padded_length
    if isinstance(pad_value, float) and pad_value.is_integer() and not dispatch.to_tensor(x).dtype.is_floating:
        pad_value = int(pad_value)
    return SequencePad(x, pad_value, padded_length=size, name=name)


@documented_by(SequenceUnpad)
def unpad(x: Any, length: Any, name: str | None = None) -> LoDTensor:
    """Pack the sequences of a padded tensor; return a LoDTensor.

    >>> ow.sequence.unpad(ow.constant([[1, 2, 3], [4, 5, 6]]), [2, 1]).to_nested()
    [[[1], [2]], [[4]]]
    """
    x = x.values if isinstance(x, LoDTensor) else x
    return LoDTensor.of(*SequenceUnpad(x, length, name=name))


@documented_by(SequenceMask)
def mask(x: Any, maxlen: Any = None, dtype: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """Return a mask of the positions before given lengths.

    maxlen: a number, a tensor with one element, or None for the largest length.

    >>> ow.sequence.mask([2, 0, 3]).numpy().tolist()
    [[1, 1, 0], [0, 0, 0], [1, 1, 1]]
    """
    if hasattr(maxlen, "spec"):
        return SequenceMask(x, maxlen, out_dtype=dtype, name=name)
    return SequenceMask(x, maxlen=-1 if maxlen is None else maxlen, out_dtype=dtype, name=name)
