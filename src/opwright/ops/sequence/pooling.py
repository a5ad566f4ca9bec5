"""Pooling of sequences to rows (sums, means, maxima, first and last rows), and expansion: repetition of rows and
sequences by the lengths of other sequences.

Lives here: SequencePool, its gradient, `pool`, `first_step`, `last_step`; SequenceExpand, SequenceExpandAs, `expand`,
`expand_as`.
Not here: the reductions of arrays (segments.py), segments by ids (ops/math/segment.py), repetition along an axis
(ops/array).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import real
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from .. import array, like_device
from ..accumulation import widened
from ..attributes import Attr, at_least, one_of
from ..definition import operator
from ..math.unsorted_segment import UnsortedSegmentSum
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .segments import as_column, check_rank, count, lengths_of, offsets_of, owners, reduced, rows_like, windows

if TYPE_CHECKING:
    from ..tensor import Tensor

POOL_TYPES = ("AVERAGE", "SUM", "SQRT", "LAST", "FIRST", "MAX")
DIVIDING = ("AVERAGE", "SQRT")


@operator
class SequencePool(OperatorDefinition):
    """Reduce each sequence to one row: sum, mean, sum divided by the square root of the length, maximum, first or last
    row; `pad_value` for an empty sequence.

    .. math:: y_i = \\sum_t x_t, \\; \\frac{1}{n_i} \\sum_t x_t, \\; \\frac{1}{\\sqrt{n_i}} \\sum_t x_t,
              \\; \\max_t x_t, \\; x_{o_i}, \\; x_{o_{i+1} - 1} \\text{ over } o_i \\le t < o_{i+1}

    x: [rows, ...] with one or two LoD levels, of which the last is pooled; y has the level above.
    y: [number of sequences, ...]. max_index: int32, the first row of each maximum, -1 for an empty sequence; without
    rows for other types and with is_test.
    raises InvalidArgumentError for x without LoD or with more levels, and for AVERAGE and SQRT of integers
    """

    x = Input(real, lod=(1, 2))
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    y = Output(like="x")
    max_index = Output(dtype=dtypes.int32, intermediate=True)
    pooltype = Attr(str, default="AVERAGE", check=one_of(*POOL_TYPES))
    pad_value = Attr(float, default=0.0)
    is_test = Attr(bool, default=False)
    no_need_buffer = ("x",)
    lod = "above"

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        if op.pooltype in DIVIDING and not op.x.spec.dtype.is_floating:
            raise InvalidArgumentError(
                what=f"pooltype {op.pooltype} is a fraction",
                found=op.x.spec.short(),
                wanted="floats",
                do="ow.cast(x, ow.float32)",
            )
        y = rows_like(op.x, count(op.offsets))
        index = y.shape if op.pooltype == "MAX" and not op.is_test else y.shape.rank and [0, *y.shape[1:]]
        return y, TensorSpec(UNKNOWN if index is None else index, dtypes.int32)

    def compute(op, x: Any, offsets: Any) -> tuple[Any, Any]:
        lengths = lengths_of(offsets, len(x))
        index = like_device.zeros(x, (0, *x.shape[1:]), np.int32)
        if op.pooltype in ("FIRST", "LAST"):
            filled = lengths > 0
            y = like_device.full(x, (len(lengths), *x.shape[1:]), op.pad_value, x.dtype)
            y[filled] = x[(offsets[:-1] if op.pooltype == "FIRST" else offsets[1:] - 1)[filled]]
        elif op.pooltype == "MAX":
            y = reduced(np.maximum, x, offsets, lengths, op.pad_value)
            if not op.is_test:
                index = _argmax(x, y, offsets, lengths)
        else:
            y = reduced(np.add, x, offsets, lengths, op.pad_value)
            if op.pooltype in DIVIDING:
                filled = lengths > 0
                y[filled] /= as_column(_divisors(op.pooltype, lengths, y.dtype)[filled], y)
        return y.astype(x.dtype, copy=False), index

    def gradient(op, dy: Any, dmax_index: Any) -> tuple[Tensor, None]:
        if op.pooltype != "MAX":
            return SequencePoolGrad(dy, op.offsets, pooltype=op.pooltype), None
        if op.is_test:
            raise InvalidArgumentError(
                op="SequencePool", what="is_test=True keeps no indices, which gradients need", do="is_test=False"
            )
        return SequencePoolGrad(dy, op.offsets, op.max_index, pooltype="MAX"), None


def _divisors(pooltype: str, lengths: np.ndarray, dtype: Any) -> np.ndarray:
    n = np.maximum(lengths, 1).astype(np.float64)
    array: np.ndarray = (np.sqrt(n) if pooltype == "SQRT" else n).astype(dtype)
    return array


def _argmax(x: np.ndarray, y: np.ndarray, offsets: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the first row of each maximum of each sequence. NaN counts as the maximum."""
    if len(x) > 2**31 - 1:
        raise InvalidArgumentError(what="there are too many rows for int32 indices", found=len(x), wanted=2**31 - 1)
    is_maximum = widened(x) == np.repeat(y, lengths, axis=0)
    if x.dtype.kind not in "iu" and np.isnan(y).any():
        is_maximum |= np.isnan(x)
    positions = np.flatnonzero(is_maximum)[::-1]  # descending, so that the first of several is written last
    width = max(y[0].size, 1)
    rows = positions // width
    if not like_device.on_host(y):  # GPUs write in any order
        unset = np.iinfo(np.int32).max
        index = like_device.full(y, (len(y), width), unset, np.int32)
        np.minimum.at(index, (owners(lengths)[rows], positions - rows * width), rows.astype(np.int32))
        return np.where(index == unset, np.int32(-1), index)[:, : y[0].size].reshape(y.shape)
    index = np.full((len(y), width), -1, np.int32)
    index[owners(lengths)[rows], positions - rows * width] = rows
    return index[:, : y[0].size].reshape(y.shape)


@operator
class SequencePoolGrad(OperatorDefinition):
    """Compute the gradient of SequencePool with respect to its rows.

    .. math:: dx_t = \\sum_i dy_i \\frac{\\partial y_i}{\\partial x_t}

    dy: [number of sequences, ...]; max_index: as SequencePool recorded it, for MAX. dx: [rows, ...].
    raises InvalidArgumentError for MAX without max_index, and unless dy has one row per sequence
    """

    dy = Input(real)
    offsets = Input(dtypes.int64, rank=1, lod_of="dy")
    max_index = Input(dtypes.int32, optional=True)
    dx = Output(like="dy")
    pooltype = Attr(str, default="AVERAGE", check=one_of(*POOL_TYPES))
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        if op.pooltype == "MAX" and op.max_index is None:
            raise InvalidArgumentError(
                what="pooltype MAX needs the recorded max_index", found="none", wanted="what the forward call gave"
            )
        n, dy = count(op.offsets), op.dy.spec.shape
        if dy.rank and None not in (n, dy[0]) and n != dy[0]:
            _raise_row_mismatch(dy, n)
        return rows_like(op.dy, None)

    def compute(op, dy: Any, offsets: Any, max_index: Any) -> np.ndarray:
        lengths = lengths_of(offsets, of="dx")
        if len(dy) != len(lengths):
            _raise_row_mismatch(dy.shape, len(lengths))
        if op.pooltype == "SUM":
            return np.repeat(dy, lengths, axis=0)
        if op.pooltype in DIVIDING:
            share = widened(dy) / as_column(_divisors(op.pooltype, lengths, widened(dy[:0]).dtype), dy)
            return np.repeat(share.astype(dy.dtype, copy=False), lengths, axis=0)
        filled = lengths > 0
        dx = like_device.zeros(dy, (int(offsets[-1]), *dy.shape[1:]), dy.dtype)
        if op.pooltype == "MAX":
            np.put_along_axis(dx, max_index[filled], dy[filled], axis=0)
        else:
            dx[(offsets[:-1] if op.pooltype == "FIRST" else offsets[1:] - 1)[filled]] = dy[filled]
        return dx

    def gradient(op, ddx: Any) -> tuple[Tensor, None, None]:
        if op.pooltype == "MAX":
            return SequencePick(ddx, op.offsets, op.max_index), None, None
        return SequencePool(ddx, op.offsets, pooltype=op.pooltype), None, None


def _raise_row_mismatch(dy: Any, n: int | None) -> None:
    raise InvalidArgumentError(what="dy has not one row for each sequence", found={"dy": dy, "sequences": n})


@operator
class SequencePick(OperatorDefinition):
    """Gather elements by recorded row indices: the second derivative of max pooling.

    .. math:: y_{i,f} = x_{index_{i,f}, f}, \\quad 0 \\text{ where } index_{i,f} < 0

    x: [rows, ...]; max_index: [number of sequences, ...]. y: [number of sequences, ...].
    raises InvalidArgumentError if rows of x and of max_index differ in shape
    """

    x = Input(real)
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    max_index = Input(dtypes.int32)
    y = Output(like="x")
    no_need_buffer = ("x",)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        x, index = op.x.spec, op.max_index.spec.shape
        if None not in (x.shape.rank, index.rank) and not (
            x.shape.rank == index.rank and index.rank and x.shape[1:].is_compatible_with(index[1:])
        ):
            raise InvalidArgumentError(
                what="rows and indices differ in shape", found={"x": x.shape, "max_index": index}
            )
        return TensorSpec(index, x.dtype)

    def compute(op, x: Any, offsets: Any, max_index: Any) -> np.ndarray:
        filled = lengths_of(offsets, len(x)) > 0
        y = like_device.zeros(x, max_index.shape, x.dtype)
        y[filled] = np.take_along_axis(x, max_index[filled], axis=0)
        return y

    def gradient(op, dy: Any) -> tuple[Tensor, None, None]:
        return SequencePoolGrad(dy, op.offsets, op.max_index, pooltype="MAX"), None, None


@documented_by(SequencePool)
def pool(
    x: Any, pooltype: str = "average", pad_value: float = 0.0, is_test: bool = False, name: str | None = None
) -> Tensor:
    """Reduce each sequence to one row. pooltype: average, sum, sqrt, max, first or last, case-insensitive.

    is_test: no gradients are required; MAX then does not record row indices.

    >>> ow.sequence.pool(ow.LoDTensor([[1.0], [2.0], [5.0]], [[0, 2, 2, 3]]), "max").numpy().tolist()
    [[2.0], [0.0], [5.0]]
    """
    kind = pooltype.upper() if isinstance(pooltype, str) else pooltype
    return SequencePool(x, pooltype=kind, pad_value=pad_value, is_test=is_test, name=name)


@documented_by(SequencePool)
def first_step(x: Any, name: str | None = None) -> Tensor:
    """Return the first row of each sequence, zeros for an empty one."""
    return SequencePool(x, pooltype="FIRST", name=name)


@documented_by(SequencePool)
def last_step(x: Any, name: str | None = None) -> Tensor:
    """Return the last row of each sequence, zeros for an empty one."""
    return SequencePool(x, pooltype="LAST", name=name)


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
            _raise_sequence_mismatch(rows[0], n)
        y = op.y
        return rows_like(op.x, y.spec.shape[0] if y is not None and y.spec.shape.rank else None)

    def compute(op, x: Any, y: Any, offsets: Any) -> np.ndarray:
        lengths = lengths_of(offsets, of="y")
        if len(x) != len(lengths):
            _raise_sequence_mismatch(len(x), len(lengths))
        return np.repeat(x, lengths, axis=0)

    def gradient(op, dout: Any) -> tuple[Tensor, None, None]:
        return SequencePool(dout, op.offsets, pooltype="SUM"), None, None


def _raise_sequence_mismatch(rows: int, sequences: int | None) -> None:
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
