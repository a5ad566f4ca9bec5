"""Repetition of rows and sequences by the lengths of other sequences.

Lives here: SequenceExpand, SequenceExpandAs, `expand`, `expand_as`.
Not here: repetition along an axis (ops/array), sums, which are their gradients (pooling.py, ops/math).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import real
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, like_device
from ..attributes import Attr, at_least
from ..definition import operator
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .segments import check_rank, count, lengths_of, offsets_of, rows_like, windows

SEQUENCE_DTYPES = (*real, dtypes.bool)


@operator
class SequenceExpand(OperatorDefinition[tuple[Tensor, list[Tensor]]]):
    """Repeat each sequence of x, or each row if x has no LoD, by the length of the corresponding sequence of y.

    .. math:: out = (x_0, ..., x_0, x_1, ..., x_1, ...), \\; x_i \\text{ as often as the length of } y_i

    x: [rows, ...], with no LoD or one level. y: only its LoD is read; ref_level: the level that determines lengths, -1
    for the last. out: the repeated rows; if x has a LoD, with one sequence per repetition. A length of 0 drops x_i; an
    empty x_i repeated k times yields k empty sequences. A LoD has at least one sequence: if nothing is repeated, out
    has one empty sequence.
    raises InvalidArgumentError for x of rank below 2 or with more levels, y without LoD or without the level, and if
    the number of sequences (or rows) of x differs from that level's
    """

    x = Input(SEQUENCE_DTYPES, lod=(0, 1))
    y = Input(dtypes.any_dtype, optional=True)
    offsets = Input(dtypes.int64, rank=1, lod_of="x", optional=True)
    levels = Input(dtypes.int64, rank=1, repeated=True, lod_of="y")
    out = Output(like="x")
    out_offsets = Output(dtype=dtypes.int64, repeated=True, lod_of="out")
    rows = Output(dtype=dtypes.int64, intermediate=True)
    ref_level = Attr(int, default=-1, check=at_least(-1))
    no_need_buffer = ("x", "y")
    shape_only = ("y",)
    lod = "changed"

    def infer(op) -> tuple[TensorSpec, list[TensorSpec], TensorSpec]:
        check_rank(op.x.spec.shape.rank, 2)
        if not -1 <= op.ref_level < len(op.levels):
            raise InvalidArgumentError(
                what=f"y has no level {op.ref_level}",
                found=f"{len(op.levels)} levels",
                wanted="ref_level of -1, the last, or a level of y",
            )
        units = count(op.offsets) if op.offsets is not None else op.x.spec.shape[0] if op.x.spec.shape.rank else None
        times = count(op.levels[op.ref_level])
        if None not in (units, times) and units != times:
            _raise_unit_mismatch("rows" if op.offsets is None else "sequences", op.ref_level, units, times)
        out_offsets = [] if op.offsets is None else [TensorSpec([None], dtypes.int64)]
        return rows_like(op.x, None), out_offsets, TensorSpec([None], dtypes.int64)

    def compute(op, x: Any, y: Any, offsets: Any, levels: Any) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
        check_rank(x.ndim, 2)
        times = lengths_of(levels[op.ref_level], of="y")
        units = len(x) if offsets is None else len(offsets) - 1
        if len(times) != units:
            _raise_unit_mismatch("rows" if offsets is None else "sequences", op.ref_level, units, len(times))
        if offsets is None:
            rows = np.repeat(like_device.arange(times, units), times)
            return x.take(rows, 0), [], rows
        lengths = lengths_of(offsets, len(x))
        copies = np.repeat(lengths, times)
        rows = windows(np.repeat(offsets[:-1], times), copies)
        return x.take(rows, 0), [offsets_of(copies if len(copies) else like_device.zeros(copies, 1, np.int64))], rows

    def gradient(op, dout: Any, dout_offsets: Any, drows: Any) -> tuple[Tensor, None, None, None]:
        from ..math.unsorted_segment import UnsortedSegmentSum

        return UnsortedSegmentSum(dout, op.rows, array.shape_op(op.x)[0]), None, None, None


def _raise_unit_mismatch(what: str, level: int, units: Any, times: Any) -> None:
    where = "its last level" if level == -1 else f"level {level}"
    raise InvalidArgumentError(
        what=f"x has not as many {what} as y has sequences on {where}",
        found={"x": f"{units} {what}", "y": f"{times} sequences"},
        wanted="equal numbers",
    )


@operator
class SequenceExpandAs(OperatorDefinition):
    """Repeat each row of x by the length of the corresponding sequence of y, whose LoD out has.

    .. math:: out_t = x_i \\text{ for } o_i \\le t < o_{i+1}

    x: [number of sequences, ...]; its LoD is ignored. y: one level; only its LoD is read. out: [rows of y, ...]. An
    empty sequence drops its x_i.
    raises InvalidArgumentError for y without LoD or with more levels, and unless x has one row per sequence
    """

    x = Input(SEQUENCE_DTYPES)
    y = Input(dtypes.any_dtype, optional=True, lod=1)
    offsets = Input(dtypes.int64, rank=1, lod_of="y")
    out = Output(like="x")
    no_need_buffer = ("x", "y")
    shape_only = ("y",)
    lod = "as y"

    def infer(op) -> TensorSpec:
        n, rows = count(op.offsets), op.x.spec.shape
        if rows.rank and None not in (n, rows[0]) and n != rows[0]:
            _raise_row_mismatch(rows[0], n)
        y = op.y
        return rows_like(op.x, y.spec.shape[0] if y is not None and y.spec.shape.rank else None)

    def compute(op, x: Any, y: Any, offsets: Any) -> np.ndarray:
        lengths = lengths_of(offsets, of="y")
        if len(x) != len(lengths):
            _raise_row_mismatch(len(x), len(lengths))
        return np.repeat(x, lengths, axis=0)

    def gradient(op, dout: Any) -> tuple[Tensor, None, None]:
        from .pooling import SequencePool

        return SequencePool(dout, op.offsets, pooltype="SUM"), None, None


def _raise_row_mismatch(rows: int, sequences: int | None) -> None:
    raise InvalidArgumentError(
        what="x has not one row for each sequence of y",
        found={"x": f"{rows} rows", "y": f"{sequences} sequences"},
        wanted=f"x of {sequences} rows",
    )


@documented_by(SequenceExpand)
def expand(x: Any, y: Any, ref_level: int = -1, name: str | None = None) -> tuple[Tensor, list[Tensor]]:
    """Repeat each sequence or row of x by the lengths of y's sequences.

    >>> y = ow.LoDTensor([0, 0, 0], [[0, 2, 2, 3]])
    >>> ow.sequence.expand(ow.constant([[1], [2], [3]]), y).numpy().tolist()
    [[1], [1], [3]]
    """
    return SequenceExpand(x, y, ref_level=ref_level, name=name)


@documented_by(SequenceExpandAs)
def expand_as(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Repeat each row of x by the lengths of y's sequences.

    >>> y = ow.LoDTensor([0, 0, 0], [[0, 2, 2, 3]])
    >>> ow.sequence.expand_as(ow.constant([[1], [2], [3]]), y).to_nested()
    [[[1], [1]], [], [[3]]]
    """
    return SequenceExpandAs(x, y, name=name)
