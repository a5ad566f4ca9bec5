"""The same rows under another LoD.

Lives here: LodReset, `lod_reset`, `lod_append`.  Not here: LoDs themselves (core/lod.py, ops/lod_tensor.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtypes, lod
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import beside, dispatch
from ..attributes import Attr
from ..definition import Input, Output, operator
from ..lod_tensor import LoDTensor


@operator
class LodReset:
    """The rows of x under another LoD: that of y, or offsets given as numbers; or under one more level.

    .. math:: out = x, \\quad lod(out) = lod(y), \\; (target), \\text{ or } (lod(x), target)

    x: [rows, ...]. y: a LoDTensor, of which only the LoD is read, whole; or else offsets, int32 or int64 [n + 1], that
    go before target_lod. append: these offsets become a new last level under those of x; what y has as a LoD replaces.
    raises InvalidArgumentError for neither y nor target_lod, and for levels that are no LoD over the rows of x: of
    fewer than two offsets, that do not start at 0, fall, or do not end at the number of units below
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

    def infer(op) -> Any:
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
            raise InvalidArgumentError(what="y has no LoD and is no offsets", found=op.y.spec.short(),
                                       wanted="a LoDTensor, or int32 or int64")  # fmt: skip
        else:
            n = op.y.spec.shape.num_elements()
        kept = op.x_levels if op.append and op.x_levels else ()
        above = [TensorSpec([level.spec.shape[0]], dtypes.int64) for level in kept]
        return op.x.spec, [*above, TensorSpec([n], dtypes.int64)]

    def compute(op, x, y, levels, x_levels) -> Any:
        if levels:
            made = tuple(level.copy() for level in levels)
        else:
            target = beside.array(x, np.array(op.target_lod, np.int64)) if y is None else y.reshape(-1).astype(np.int64)
            above = tuple(level.copy() for level in x_levels) if op.append and x_levels else ()
            made = (*above, target)
        _check(made, len(x))
        return x, list(made)

    def gradient(op, dout, dout_offsets) -> Any:
        return dout, None, None, None


def _check(levels: lod.Levels, rows: int | None) -> None:
    why = lod.wrong(levels, rows)
    if why is not None:
        found = [level.tolist() if len(level) <= 12 else f"{len(level)} offsets" for level in levels]
        raise InvalidArgumentError(what=f"this is no LoD for the rows of x: {why}", found=found,
                                   wanted="offsets from 0 up that end at the number of units below")  # fmt: skip


def lod_reset(x: Any, y: Any = None, target_lod: Sequence[int] | None = None, append: bool = False,
              name: str | None = None) -> Any:  # fmt: skip
    """See LodReset; a LoDTensor.

    >>> ow.sequence.lod_reset(ow.constant([1, 2, 3]), target_lod=[0, 2, 3]).to_nested()
    [[1, 2], [3]]
    """
    x, y = dispatch.to_tensor(x), y if y is None else dispatch.to_tensor(y)
    parts: list[Any] = []
    for given in (x, y):
        has = isinstance(given, LoDTensor)
        parts.append((given.values, list(given.levels) or None) if has else (given, None))
    (rows, x_levels), (source, levels) = parts
    made = LodReset(rows, source, levels, x_levels, target_lod=() if target_lod is None else target_lod,
                    append=append, name=name)  # fmt: skip
    return LoDTensor.of(*made)


def lod_append(x: Any, level: Any, name: str | None = None) -> Any:
    """One more level under those x has. level: its offsets, as numbers or a tensor; or a LoDTensor, whose LoD x gets.

    raises InvalidArgumentError where there are not as many new sequences as the level above speaks of
    """
    if isinstance(level, (list, tuple)):
        return lod_reset(x, target_lod=level, append=True, name=name)
    return lod_reset(x, level, append=True, name=name)
