"""Each sequence to one row: sums, means, extremes, first and last rows.

Lives here: SequencePool, its gradient, and the functions `pool`, `first_step`, `last_step`.
Not here: the reductions of arrays (segments.py), segments by ids (ops/math/segment.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import real
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from .. import like_device
from ..attributes import Attr, one_of
from ..definition import operator
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from .segments import as_column, count, lengths_of, owners, reduced, rows_like, wide

if TYPE_CHECKING:
    from ..tensor import Tensor

POOL_TYPES = ("AVERAGE", "SUM", "SQRT", "LAST", "FIRST", "MAX")
DIVIDING = ("AVERAGE", "SQRT")


@operator
class SequencePool(OperatorDefinition):
    """One row for each sequence: the sum of its rows, their mean, the sum by the root of their number, the largest
    element by element, or the first or the last row; `pad_value` for a sequence without rows.

    .. math:: y_i = \\sum_t x_t, \\; \\frac{1}{n_i} \\sum_t x_t, \\; \\frac{1}{\\sqrt{n_i}} \\sum_t x_t,
              \\; \\max_t x_t, \\; x_{o_i}, \\; x_{o_{i+1} - 1} \\text{ over } o_i \\le t < o_{i+1}

    x: [rows, ...] with one or two LoD levels, of which the last is pooled; the one above becomes that of y.
    y: [number of sequences, ...]. max_index: int32, the row each largest element is from, the earliest of equal ones,
    -1 for an empty sequence; of other types, and with is_test, it has no rows.
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
        kept = y.shape if op.pooltype == "MAX" and not op.is_test else y.shape.rank and [0, *y.shape[1:]]
        return y, TensorSpec(UNKNOWN if kept is None else kept, dtypes.int32)

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
                index = _earliest(x, y, offsets, lengths)
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


def _earliest(x: np.ndarray, y: np.ndarray, offsets: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The first row of each sequence with its largest elements; a NaN, which any maximum with it is, is one."""
    if len(x) > 2**31 - 1:
        raise InvalidArgumentError(what="there are too many rows for int32 indices", found=len(x), wanted=2**31 - 1)
    hit = wide(x) == np.repeat(y, lengths, axis=0)
    if x.dtype.kind not in "iu" and np.isnan(y).any():
        hit |= np.isnan(x)
    at = np.flatnonzero(hit)[::-1]  # from the last to the first: of several the first is written last, and stays
    width = max(y[0].size, 1)
    rows = at // width
    if not like_device.on_host(y):  # GPUs write in any order
        none = np.iinfo(np.int32).max
        index = like_device.full(y, (len(y), width), none, np.int32)
        np.minimum.at(index, (owners(lengths)[rows], at - rows * width), rows.astype(np.int32))
        return np.where(index == none, np.int32(-1), index)[:, : y[0].size].reshape(y.shape)
    index = np.full((len(y), width), -1, np.int32)
    index[owners(lengths)[rows], at - rows * width] = rows
    return index[:, : y[0].size].reshape(y.shape)


@operator
class SequencePoolGrad(OperatorDefinition):
    """The gradient of SequencePool by its rows: each row gets what the pooled row took of it.

    .. math:: dx_t = \\sum_i dy_i \\frac{\\partial y_i}{\\partial x_t}

    dy: [number of sequences, ...]; max_index: as SequencePool recorded it, for MAX. dx: [rows, ...].
    raises InvalidArgumentError for MAX without max_index, and where dy has not one row a sequence
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
            _refuse_rows(dy, n)
        return rows_like(op.dy, None)

    def compute(op, dy: Any, offsets: Any, max_index: Any) -> np.ndarray:
        lengths = lengths_of(offsets, of="dx")
        if len(dy) != len(lengths):
            _refuse_rows(dy.shape, len(lengths))
        if op.pooltype == "SUM":
            return np.repeat(dy, lengths, axis=0)
        if op.pooltype in DIVIDING:
            share = wide(dy) / as_column(_divisors(op.pooltype, lengths, wide(dy[:0]).dtype), dy)
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


def _refuse_rows(dy: Any, n: int | None) -> None:
    raise InvalidArgumentError(what="dy has not one row for each sequence", found={"dy": dy, "sequences": n})


@operator
class SequencePick(OperatorDefinition):
    """Elements by the row recorded for each: what SequencePool took as the largest ones, of other rows.

    .. math:: y_{i,f} = x_{index_{i,f}, f}, \\quad 0 \\text{ where } index_{i,f} < 0

    x: [rows, ...]; max_index: [number of sequences, ...]. y: [number of sequences, ...].
    raises InvalidArgumentError where rows of x and of max_index differ in shape
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

    is_test: whether no gradients will be asked for; MAX then does not look for the rows.

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
