"""Sequences in rows of another width, and sequences added into rows.

Lives here: SequenceReshape, SequenceScatter, `reshape`, `scatter`.  Not here: those of dense tensors (ops/array).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index, numeric
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from .. import array
from ..attributes import Attr, greater_than
from ..definition import Input, Output, operator
from .expanding import TAKEN
from .segments import check_rank, check_width_one, count, lengths_of, offsets_like, owners


@operator
class SequenceReshape:
    """The numbers of each sequence in rows of another width, in the order they stand.

    .. math:: y_i = \\text{the numbers of } x_i \\text{ in rows of } new\\_dim

    x: [rows, m] with one LoD level. y: [rows * m / new_dim, new_dim].
    raises InvalidArgumentError for x without LoD, with more levels or of another rank, and for a sequence whose numbers
    do not fill whole rows
    """

    x = Input(TAKEN, rank=2, lod=1)
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    y = Output(like="x")
    y_offsets = Output(dtype=dtypes.int64, lod_of="y")
    new_dim = Attr(int, check=greater_than(0))
    inplace = {"y": "x"}
    no_need_buffer = ("x",)
    lod = "changed"

    def infer(op) -> Any:
        shape = op.x.spec.shape
        known = shape.rank is not None and None not in shape
        rows = shape[0] * shape[1] // op.new_dim if known else None
        return TensorSpec([rows, op.new_dim], op.x.spec.dtype), offsets_like(op.offsets)

    def compute(op, x, offsets) -> Any:
        numbers = lengths_of(offsets, len(x)) * x.shape[1]
        bad = np.flatnonzero(numbers % op.new_dim)
        if len(bad):
            i = int(bad[0])
            raise InvalidArgumentError(what=f"sequence {i + 1} of {len(numbers)} does not fill whole rows",
                                       found=f"{numbers[i]} numbers",
                                       wanted=f"a multiple of new_dim {op.new_dim}")  # fmt: skip
        return x.reshape(x.size // op.new_dim, op.new_dim), offsets * x.shape[1] // op.new_dim

    def gradient(op, dy, dy_offsets) -> Any:
        return array.reshape(dy, array.shape_op(op.x)), None


@operator
class SequenceScatter:
    """The numbers of sequence i added into row i, at the places that the sequence of ids gives; equal ones add up.

    .. math:: y = x, \\quad y_{i, ids_t} \\mathrel{+}= updates_t \\text{ for } o_i \\le t < o_{i+1}

    x: [n, ...], a place is that in the row laid flat; ids: int32 or int64 [rows, 1], updates: [rows, 1], with the same
    one LoD level of n sequences. y: as x.
    raises InvalidArgumentError for ids or updates without LoD or with more levels, of another shape, or of LoDs that
    differ; where the number of sequences is not n; and for an id that is no place in a row
    """

    x = Input(numeric)
    ids = Input(index, lod=1)
    updates = Input(numeric, like="x", lod=1)
    offsets = Input(dtypes.int64, rank=1, lod_of="ids")
    update_offsets = Input(dtypes.int64, rank=1, lod_of="updates")
    y = Output(like="x")
    places = Output(dtype=dtypes.int64, intermediate=True, doc="of the updates, in x laid flat")
    no_need_buffer = ("x", "updates")
    lod = "vanishes"

    def infer(op) -> Any:
        x, ids, updates, n = op.x.spec.shape, op.ids.spec.shape, op.updates.spec.shape, count(op.offsets)
        check_rank(x.rank, 2)
        check_width_one(ids, "ids")
        check_width_one(updates, "updates")
        if x.rank is not None and None not in (n, x[0]) and n != x[0]:
            _refuse_count(n, x)
        if not ids.is_compatible_with(updates):
            raise InvalidArgumentError(what="ids and updates differ in rows", found={"ids": ids, "updates": updates})
        rows = ids[0] if ids.rank else None
        return op.x.spec, TensorSpec([rows], dtypes.int64)

    def compute(op, x, ids, updates, offsets, update_offsets) -> Any:
        check_rank(x.ndim, 2)
        check_width_one(TensorShape(ids.shape), "ids")
        check_width_one(TensorShape(updates.shape), "updates")
        lengths = lengths_of(offsets, len(ids), "ids")
        if not np.array_equal(offsets, update_offsets) or len(updates) != len(ids):
            raise InvalidArgumentError(what="ids and updates are not sequences of the same lengths",
                                       found={"ids": offsets.tolist(), "updates": update_offsets.tolist()})  # fmt: skip
        if len(lengths) != len(x):
            _refuse_count(len(lengths), x.shape)
        size = x[0].size
        at = ids[:, 0].astype(np.int64)
        if at.size and not (at.min() >= 0 and at.max() < size):
            raise InvalidArgumentError(what="an id is no place in a row", found=f"ids from {at.min()} to {at.max()}",
                                       wanted=f"0 to {size - 1}")  # fmt: skip
        places = owners(lengths) * size + at
        y = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x.copy()
        np.add.at(y.reshape(-1), places, updates[:, 0].astype(y.dtype, copy=False))
        return y.astype(x.dtype, copy=False), places

    def gradient(op, dy, dplaces) -> Any:
        taken = array.gather(array.reshape(dy, [-1]), op.places)
        return dy, None, array.reshape(taken, array.shape_op(op.updates)), None, None


def _refuse_count(n: int | None, x: Any) -> None:
    raise InvalidArgumentError(what="there is not one sequence of ids for each row of x",
                               found={"sequences": n, "x": f"shape {list(x)}"})  # fmt: skip


def reshape(x: Any, new_dim: int, name: str | None = None) -> Any:
    """See SequenceReshape.

    >>> ow.sequence.reshape(ow.LoDTensor([[1, 2], [3, 4], [5, 6]], [[0, 2, 3]]), 1).to_nested()
    [[[1], [2], [3], [4]], [[5], [6]]]
    """
    return SequenceReshape(x, new_dim=new_dim, name=name)


def scatter(x: Any, ids: Any, updates: Any, name: str | None = None) -> Any:
    """See SequenceScatter.

    >>> ids, updates = ow.LoDTensor([[1], [1], [0]], [[0, 2, 3]]), ow.LoDTensor([[5], [6], [7]], [[0, 2, 3]])
    >>> ow.sequence.scatter(ow.zeros([2, 3], ow.int32), ids, updates).numpy().tolist()
    [[0, 11, 0], [7, 0, 0]]
    """
    return SequenceScatter(x, ids, updates, name=name)
