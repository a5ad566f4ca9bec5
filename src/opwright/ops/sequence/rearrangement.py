"""Rearrangement of sequences: concatenation, slicing, reversal; removal and n-grams of tokens.

Lives here: SequenceConcat, SequenceSlice, SequenceReverse, SequenceErase, SequenceEnumerate and their functions.
Not here: operators along axes of dense tensors (ops/array), text (ops/strings).
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index
from ...core.errors import InvalidArgumentError, OutOfRangeError, compose
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from .. import array, like_device
from ..attributes import Attr, at_least
from ..definition import operator
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .pooling import SEQUENCE_DTYPES
from .segments import (
    check_rank,
    check_width_one,
    check_widths,
    count,
    lengths_of,
    offsets_like,
    offsets_of,
    rows_like,
    windows,
)


@operator
class SequenceConcat(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Concatenate sequence i of all inputs to sequence i of y.

    .. math:: y_i = (x_{1,i}, x_{2,i}, ...), \\quad o_i(y) = \\sum_j o_i(x_j)

    x: two or more packed tensors [rows, ...] with one LoD level and equal numbers of sequences. y: [all rows, ...].
    raises InvalidArgumentError for a single input, one without LoD or with more levels, and if the numbers of
    sequences or the shapes of rows differ
    """

    x = Input(SEQUENCE_DTYPES, repeated=True, lod=1)
    offsets = Input(dtypes.int64, repeated=True, rank=1, lod_of="x")
    y = Output(like="x")
    y_offsets = Output(dtype=dtypes.int64, lod_of="y")
    rows = Output(dtype=dtypes.int64, repeated=True, intermediate=True, doc="indices in y of the rows of each input")
    no_need_buffer = ("x",)
    lod = "changed"

    def infer(op) -> tuple[TensorSpec, TensorSpec, list[TensorSpec]]:
        if len(op.x) < 2:
            raise InvalidArgumentError(what="there is nothing to join", found=f"{len(op.x)} inputs", wanted="2 or more")
        if len(op.offsets) != len(op.x):
            raise InvalidArgumentError(
                what="there are not offsets for each input", found=f"{len(op.offsets)} for {len(op.x)}"
            )
        check_widths({f"input {i}": x.spec.shape for i, x in builtins.enumerate(op.x)})
        counts = [count(o) for o in op.offsets]
        if len(set(counts) - {None}) > 1:
            _raise_count_mismatch(counts)
        sizes = [x.spec.shape[0] if x.spec.shape.rank else None for x in op.x]
        ranked = next((x for x in op.x if x.spec.shape.rank is not None), op.x[0])
        y = rows_like(ranked, None if None in sizes else sum(n or 0 for n in sizes))
        return y, offsets_like(op.offsets[0]), [TensorSpec([n], dtypes.int64) for n in sizes]

    def compute(op, x: Any, offsets: Any) -> tuple[Any, Any, list[np.ndarray]]:
        check_widths({f"input {i}": part.shape for i, part in builtins.enumerate(x)})
        if len({len(o) for o in offsets}) > 1:
            _raise_count_mismatch([len(o) - 1 for o in offsets])
        lengths = [lengths_of(o, len(part), f"input {i}") for i, (part, o) in builtins.enumerate(zip(x, offsets))]
        joined = np.sum(np.stack(offsets), axis=0)
        y = like_device.empty(x[0], (int(joined[-1]), *x[0].shape[1:]), x[0].dtype)
        starts = joined[:-1].copy()
        rows = []
        for part, n in zip(x, lengths):
            rows.append(windows(starts, n))
            y[rows[-1]] = part
            starts += n
        return y, joined, rows

    def gradient(op, dy: Any, dy_offsets: Any, drows: Any) -> tuple[list[Tensor], None]:
        return [SequenceTake(dy, where) for where in op.rows], None


def _raise_count_mismatch(counts: list[Any]) -> None:
    raise InvalidArgumentError(what="inputs differ in their number of sequences", found=counts, wanted="equal numbers")


@operator
class SequenceTake(OperatorDefinition):
    """Gather distinct rows: one input of concatenated sequences.

    .. math:: y_k = x_{rows_k}

    x: [n, ...]; rows: int64 [m], no two equal. y: [m, ...].
    raises InvalidArgumentError for a row out of range
    """

    x = Input(SEQUENCE_DTYPES)
    rows = Input(dtypes.int64, rank=1)
    y = Output(like="x")
    no_need_buffer = ("x",)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return rows_like(op.x, op.rows.spec.shape[0])

    def compute(op, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        _check_rows(rows, len(x))
        return x.take(rows, 0)

    def gradient(op, dy: Any) -> tuple[Tensor, None]:
        return SequencePlace(dy, op.rows, array.shape_op(op.x)[0]), None


@operator
class SequencePlace(OperatorDefinition):
    """Scatter distinct rows into zeros: the gradient of SequenceTake and SequenceSlice.

    .. math:: x_{rows_k} = y_k

    y: [m, ...]; rows: int64 [m], no two equal; size: a scalar, the number of rows of x. x: [size, ...].
    raises InvalidArgumentError for a row out of range
    """

    y = Input(SEQUENCE_DTYPES)
    rows = Input(dtypes.int64, rank=1)
    size = Input(index, rank=0)
    x = Output(like="y")
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return rows_like(op.y, None)

    def compute(op, y: Any, rows: Any, size: Any) -> np.ndarray:
        _check_rows(rows, int(size))
        x = like_device.zeros(y, (int(size), *y.shape[1:]), y.dtype)
        x[rows] = y
        return x

    def gradient(op, dx: Any) -> tuple[Tensor, None, None]:
        return SequenceTake(dx, op.rows), None, None


def _check_rows(rows: np.ndarray, size: int) -> None:
    if rows.size and not (rows.min() >= 0 and rows.max() < size):
        raise InvalidArgumentError(
            what="there is no such row", found=f"rows {rows.min()} to {rows.max()}", wanted=f"0 to {size - 1}"
        )


@operator
class SequenceSlice(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Slice each sequence: `length` rows beginning at row `offset`.

    .. math:: y_i = (x_{o_i + offset_i}, ..., x_{o_i + offset_i + length_i - 1})

    x: [rows, ...] with one LoD level; offset, length: int32 or int64 [number of sequences, 1]. y: [sum of length, ...].
    raises InvalidArgumentError for x without LoD or with more levels, offset or length of another shape or below 0;
    OutOfRangeError for a window past the end of its sequence
    """

    x = Input(SEQUENCE_DTYPES, lod=1)
    offset = Input(index)
    length = Input(index)
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    y = Output(like="x")
    y_offsets = Output(dtype=dtypes.int64, lod_of="y")
    rows = Output(dtype=dtypes.int64, intermediate=True)
    no_need_buffer = ("x",)
    lod = "changed"

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        n = count(op.offsets)
        for name in ("offset", "length"):
            _check_column(name, getattr(op, name).spec.shape, n)
        return rows_like(op.x, None), offsets_like(op.offsets), TensorSpec([None], dtypes.int64)

    def compute(op, x: Any, offset: Any, length: Any, offsets: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        lengths = lengths_of(offsets, len(x))
        for name, values in (("offset", offset), ("length", length)):
            _check_column(name, values.shape, len(lengths))
            if values.size and values.min() < 0:
                raise InvalidArgumentError(
                    what=f"input {name!r} is negative", found=int(values.min()), wanted="at least 0"
                )
        first, size = offset.reshape(-1).astype(np.int64), length.reshape(-1).astype(np.int64)
        past = np.flatnonzero(first + size > lengths)
        if len(past):
            i = int(past[0])
            raise OutOfRangeError(
                what=f"the window of sequence {i} goes past its end",
                found=f"offset {first[i]}, length {size[i]}",
                wanted=f"within {lengths[i]} rows",
            )
        rows = windows(offsets[:-1] + first, size)
        return x.take(rows, 0), offsets_of(size), rows

    def gradient(op, dy: Any, dy_offsets: Any, drows: Any) -> tuple[Tensor, None, None, None]:
        return SequencePlace(dy, op.rows, array.shape_op(op.x)[0]), None, None, None


def _check_column(name: str, shape: Any, n: int | None) -> None:
    if getattr(shape, "rank", 2) is None:
        return
    if len(shape) != 2 or shape[1] not in (1, None) or (None not in (n, shape[0]) and shape[0] != n):
        raise InvalidArgumentError(
            what=f"input {name!r} is not one number for each sequence",
            found=f"shape {list(shape)}",
            wanted=f"shape [{'n' if n is None else n}, 1]",
        )


@operator
class SequenceReverse(OperatorDefinition):
    """Reverse the rows of each sequence.

    .. math:: y_{o_i + k} = x_{o_{i+1} - 1 - k}

    x: [rows, ...] of rank 2 or more, with one LoD level. y: the same shape and LoD.
    raises InvalidArgumentError for x without LoD, with more levels, or of rank below 2
    """

    x = Input(SEQUENCE_DTYPES, lod=1)
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    y = Output(like="x")
    no_need_buffer = ("x",)

    def infer(op) -> TensorSpec:
        check_rank(op.x.spec.shape.rank, 2)
        return op.x.spec

    def compute(op, x: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        check_rank(x.ndim, 2)
        ends = offsets[:-1] + offsets[1:] - 1
        y: np.ndarray = x.take(np.repeat(ends, lengths_of(offsets, len(x))) - like_device.arange(offsets, len(x)), 0)
        return y

    def gradient(op, dy: Any) -> tuple[Tensor, None]:
        return SequenceReverse(dy, op.offsets), None


@documented_by(SequenceConcat)
def concat(x: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Concatenate sequences pairwise. x: a list of LoDTensors.

    >>> a, b = ow.LoDTensor([1, 2, 3], [[0, 2, 3]]), ow.LoDTensor([7, 8], [[0, 0, 2]])
    >>> ow.sequence.concat([a, b]).to_nested()
    [[1, 2], [3, 7, 8]]

    raises TypeError for x that is not a list or tuple
    """
    if not isinstance(x, (list, tuple)):
        raise TypeError(
            compose(
                "x is not a list",
                op="SequenceConcat",
                found=f"a {type(x).__name__}",
                wanted="a list of two or more LoDTensors",
            )
        )
    return SequenceConcat(x, name=name)


@documented_by(SequenceSlice)
def slice(x: Any, offset: Any, length: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Extract a slice of each sequence.

    >>> x = ow.LoDTensor([1, 2, 3, 4], [[0, 3, 4]])
    >>> ow.sequence.slice(x, [[1], [0]], [[2], [0]]).to_nested()
    [[2, 3], []]
    """
    return SequenceSlice(x, offset, length, name=name)


@documented_by(SequenceReverse)
def reverse(x: Any, name: str | None = None) -> Tensor:
    """Reverse each sequence.

    >>> ow.sequence.reverse(ow.LoDTensor([[1], [2], [3]], [[0, 2, 3]])).to_nested()
    [[[2], [1]], [[3]]]
    """
    return SequenceReverse(x, name=name)


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
