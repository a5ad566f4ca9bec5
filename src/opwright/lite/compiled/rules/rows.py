"""Operators that need a whole row at once: SOFTMAX.

Lives here: its rule.  Not here: the row kernels.
"""

from __future__ import annotations

from ....compiler.loops.expressions import apply, arg, scalar
from ....compiler.loops.forms import RowPass
from ....core.dtypes import float32
from ..nodes import At, Refused, real, stored
from . import rule


@rule("SOFTMAX")
def softmax(at: At) -> None:
    x = at.operand(0)
    y = at.output(x.shape)
    if x.dtype is not y.dtype or not x.shape:
        raise Refused(f"softmax of {x} to {y}")
    before = apply("mul", real(x, 0), scalar(at.option("beta"), float32))
    at.form(RowPass, y.buffer, x.buffer, (), "softmax", before, stored(arg(0, float32), y))
