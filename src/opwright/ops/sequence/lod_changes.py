"""Changes of width and LoD; scatters of sequences.

Lives here: SequenceReshape, SequenceScatter, LodReset with `reshape`, `scatter`, `lod_reset`, `lod_append`.
Not here: reshaping of dense tensors (ops/array), LoDs (core/lod.py, ops/lod_tensor.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtypes, lod
from ...core.dtypes import index, numeric
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device
from ..attributes import Attr, greater_than
from ..definition import operator
from ..lod_tensor import LoDTensor
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .pooling import SEQUENCE_DTYPES
from .segments import check_rank, check_width_one, count, lengths_of, offsets_like, owners


@operator
class LodReset(OperatorDefinition[tuple[Tensor, list[Tensor]]]):
    """Replace the LoD of x by the LoD of y or by offsets, or append a level.

    .. math:: out = x, \\quad lod(out) = lod(y), \\; (target), \\text{ or } (lod(x), target)

    x: [rows, ...]. y: a LoDTensor, of which only the LoD is read; or offsets, int32 or int64 [n + 1], which take
    precedence over target_lod. append: append the offsets as the last level to the LoD of x; ignored if y has a LoD.
    raises InvalidArgumentError for neither y nor target_lod, and for levels that are not a LoD of the rows of x: fewer
    than two offsets, or offsets that do not begin with 0, ascend, and end with the number of units below
    """

    x = Input()
    y = Input(optional=True)
    levels = Input(dtypes.int64, rank=1, repeated=True, optional=True, lod_of="y")
    x_levels = Input(dtypes.int64, rank=1, repeated=True, optional=True, lod_of="x")
    out = Output(like="x")
    out_offsets = Output(dtype=dtypes.int64, repeated=True, lod_of="out")
    target_lod = Attr([int], default=())
    append = Attr(bool, default=False)
    inplace = {"out": "x"}
    no_need_buffer = ("x", "y")
    lod = "changed"

    def infer(op) -> tuple[TensorSpec, list[TensorSpec]]:
        if op.x.spec.shape.rank == 0:
            raise InvalidArgumentError(what="x is a scalar, which has no rows", found=op.x.spec.short())
        if op.levels:
            return op.x.spec, [TensorSpec([level.spec.shape[0]], dtypes.int64) for level in op.levels]
        if op.y is None:
            if not op.target_lod:
                raise InvalidArgumentError(what="there is no LoD to set", wanted="y, or offsets as target_lod")
            n = len(op.target_lod)
            rows = op.x.spec.shape[0] if op.x.spec.shape.rank else None
            _check((np.array(op.target_lod, np.int64),), rows)
        elif op.y.spec.dtype not in dtypes.index:
            raise InvalidArgumentError(
                what="y has no LoD and does not hold offsets",
                found=op.y.spec.short(),
                wanted="a LoDTensor, or int32 or int64",
            )
        else:
            n = op.y.spec.shape.num_elements()
        x_levels = op.x_levels if op.append and op.x_levels else ()
        above = [TensorSpec([level.spec.shape[0]], dtypes.int64) for level in x_levels]
        return op.x.spec, [*above, TensorSpec([n], dtypes.int64)]

    def compute(op, x: Any, y: Any, levels: Any, x_levels: Any) -> tuple[Any, list[Any]]:
        if levels:
            new_levels = tuple(level.copy() for level in levels)
        else:
            if y is None:
                target = like_device.array(x, np.array(op.target_lod, np.int64))
            else:
                target = y.reshape(-1).astype(np.int64)
            above = tuple(level.copy() for level in x_levels) if op.append and x_levels else ()
            new_levels = (*above, target)
        _check(new_levels, len(x))
        return x, list(new_levels)

    def gradient(op, dout: Any, dout_offsets: Any) -> tuple[Any, None, None, None]:
        return dout, None, None, None


def _check(levels: lod.Levels, rows: int | None) -> None:
    why = lod.wrong(levels, rows)
    if why is not None:
        raise InvalidArgumentError(
            what=f"this is not a LoD for the rows of x: {why}",
            found=[level.tolist() if len(level) <= 12 else f"{len(level)} offsets" for level in levels],
            wanted="offsets from 0 up that end at the number of units below",
        )


@documented_by(LodReset)
def lod_reset(
    x: Any, y: Any = None, target_lod: Sequence[int] | None = None, append: bool = False, name: str | None = None
) -> LoDTensor:
    """Set the LoD of a tensor; return a LoDTensor.

    >>> ow.sequence.lod_reset(ow.constant([1, 2, 3]), target_lod=[0, 2, 3]).to_nested()
    [[1, 2], [3]]
    """
    x, y = dispatch.to_tensor(x), y if y is None else dispatch.to_tensor(y)
    parts: list[Any] = []
    for tensor in (x, y):
        has_lod = isinstance(tensor, LoDTensor)
        parts.append((tensor.values, list(tensor.levels) or None) if has_lod else (tensor, None))
    (rows, x_levels), (source, levels) = parts
    outputs = LodReset(
        rows, source, levels, x_levels, target_lod=() if target_lod is None else target_lod, append=append, name=name
    )
    return LoDTensor.of(*outputs)


def lod_append(x: Any, level: Any, name: str | None = None) -> LoDTensor:
    """Append a level to the LoD of x. level: its offsets, as numbers or a tensor; or a LoDTensor, for its LoD.

    raises InvalidArgumentError if the number of new sequences is not that of the level above
    """
    if isinstance(level, (list, tuple)):
        return lod_reset(x, target_lod=level, append=True, name=name)
    return lod_reset(x, level, append=True, name=name)


@operator
class SequenceReshape(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Reshape the rows of each sequence to another width.

    .. math:: y_i = \\text{the numbers of } x_i \\text{ in rows of } new\\_dim

    x: [rows, m] with one LoD level. y: [rows * m / new_dim, new_dim].
    raises InvalidArgumentError for x without LoD, with more levels or of another rank, and for a sequence whose size is
    not a multiple of new_dim
    """

    x = Input(SEQUENCE_DTYPES, rank=2, lod=1)
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    y = Output(like="x")
    y_offsets = Output(dtype=dtypes.int64, lod_of="y")
    new_dim = Attr(int, check=greater_than(0))
    inplace = {"y": "x"}
    no_need_buffer = ("x",)
    lod = "changed"

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        shape = op.x.spec.shape
        is_static = shape.rank is not None and None not in shape
        rows = shape[0] * shape[1] // op.new_dim if is_static else None
        return TensorSpec([rows, op.new_dim], op.x.spec.dtype), offsets_like(op.offsets)

    def compute(op, x: Any, offsets: Any) -> tuple[Any, Any]:
        numbers = lengths_of(offsets, len(x)) * x.shape[1]
        bad = np.flatnonzero(numbers % op.new_dim)
        if len(bad):
            i = int(bad[0])
            raise InvalidArgumentError(
                what=f"sequence {i + 1} of {len(numbers)} does not fill whole rows",
                found=f"{numbers[i]} numbers",
                wanted=f"a multiple of new_dim {op.new_dim}",
            )
        return x.reshape(x.size // op.new_dim, op.new_dim), offsets * x.shape[1] // op.new_dim

    def gradient(op, dy: Any, dy_offsets: Any) -> tuple[Any, None]:
        return array.reshape(dy, array.shape_op(op.x)), None


@operator
class SequenceScatter(OperatorDefinition):
    """Scatter-add the updates of sequence i to row i, at the indices of sequence i of ids.

    .. math:: y = x, \\quad y_{i, ids_t} \\mathrel{+}= updates_t \\text{ for } o_i \\le t < o_{i+1}

    x: [n, ...]; ids: int32 or int64 [rows, 1], indices into flattened rows; updates: [rows, 1]; ids and updates have
    the same LoD of one level with n sequences. y: as x.
    raises InvalidArgumentError for ids or updates without LoD or with more levels, of another shape, or of different
    LoDs; if the number of sequences is not n; and for an id out of range
    """

    x = Input(numeric)
    ids = Input(index, lod=1)
    updates = Input(numeric, like="x", lod=1)
    offsets = Input(dtypes.int64, rank=1, lod_of="ids")
    update_offsets = Input(dtypes.int64, rank=1, lod_of="updates")
    y = Output(like="x")
    places = Output(dtype=dtypes.int64, intermediate=True, doc="indices of the updates in flattened x")
    no_need_buffer = ("x", "updates")
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        x, ids, updates, n = op.x.spec.shape, op.ids.spec.shape, op.updates.spec.shape, count(op.offsets)
        check_rank(x.rank, 2)
        check_width_one(ids, "ids")
        check_width_one(updates, "updates")
        if x.rank is not None and None not in (n, x[0]) and n != x[0]:
            _raise_count_mismatch(n, x)
        if not ids.is_compatible_with(updates):
            raise InvalidArgumentError(what="ids and updates differ in rows", found={"ids": ids, "updates": updates})
        rows = ids[0] if ids.rank else None
        return op.x.spec, TensorSpec([rows], dtypes.int64)

    def compute(op, x: Any, ids: Any, updates: Any, offsets: Any, update_offsets: Any) -> tuple[Any, Any]:
        check_rank(x.ndim, 2)
        check_width_one(TensorShape(ids.shape), "ids")
        check_width_one(TensorShape(updates.shape), "updates")
        lengths = lengths_of(offsets, len(ids), "ids")
        if not np.array_equal(offsets, update_offsets) or len(updates) != len(ids):
            raise InvalidArgumentError(
                what="ids and updates are not sequences of the same lengths",
                found={"ids": offsets.tolist(), "updates": update_offsets.tolist()},
            )
        if len(lengths) != len(x):
            _raise_count_mismatch(len(lengths), x.shape)
        size = x[0].size
        columns = ids[:, 0].astype(np.int64)
        if columns.size and not (columns.min() >= 0 and columns.max() < size):
            raise InvalidArgumentError(
                what="an id is not a place in a row",
                found=f"ids from {columns.min()} to {columns.max()}",
                wanted=f"0 to {size - 1}",
            )
        places = owners(lengths) * size + columns
        y = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x.copy()
        np.add.at(y.reshape(-1), places, updates[:, 0].astype(y.dtype, copy=False))
        return y.astype(x.dtype, copy=False), places

    def gradient(op, dy: Any, dplaces: Any) -> tuple[Any, None, Any, None, None]:
        dupdates = array.gather(array.reshape(dy, [-1]), op.places)
        return dy, None, array.reshape(dupdates, array.shape_op(op.updates)), None, None


def _raise_count_mismatch(n: int | None, x: Any) -> None:
    raise InvalidArgumentError(
        what="there is not one sequence of ids for each row of x", found={"sequences": n, "x": f"shape {list(x)}"}
    )


@documented_by(SequenceReshape)
def reshape(x: Any, new_dim: int, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Reshape the rows of sequences to another width.

    >>> ow.sequence.reshape(ow.LoDTensor([[1, 2], [3, 4], [5, 6]], [[0, 2, 3]]), 1).to_nested()
    [[[1], [2], [3], [4]], [[5], [6]]]
    """
    return SequenceReshape(x, new_dim=new_dim, name=name)


@documented_by(SequenceScatter)
def scatter(x: Any, ids: Any, updates: Any, name: str | None = None) -> Tensor:
    """Add updates at the positions in sequences of indices.

    >>> ids, updates = ow.LoDTensor([[1], [1], [0]], [[0, 2, 3]]), ow.LoDTensor([[5], [6], [7]], [[0, 2, 3]])
    >>> ow.sequence.scatter(ow.zeros([2, 3], ow.int32), ids, updates).numpy().tolist()
    [[0, 11, 0], [7, 0, 0]]
    """
    return SequenceScatter(x, ids, updates, name=name)
