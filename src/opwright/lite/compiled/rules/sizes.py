"""Operators that tell sizes: SHAPE, RANK. What is known before a run is a constant, which a run copies.

Lives here: these rules.
Not here: sizes that other nodes read, which are settled before there is a plan (lite/runtime/settling.py).
"""

from __future__ import annotations

import numpy as np

from ....compiler.loops.forms import Buffer, IndexMap, Move
from ....core.dtypes import int32, int64
from ..nodes import At, Refused
from . import rule


@rule("SHAPE", "RANK")
def sizes(at: At) -> None:
    shape = at.operand(0).shape
    told = np.asarray(shape if at.node.name == "SHAPE" else len(shape))
    y = at.output(told.shape)
    if y.dtype not in (int32, int64):
        raise Refused(f"sizes {y}")
    known = Buffer(f"{y.buffer.name}.sizes", y.dtype, told.shape, told.astype(y.dtype.np))
    at.form(Move, y.buffer, (known,), (IndexMap((0,) * told.ndim, told.shape, 0, (1,) * told.ndim),))
