"""Operators that need a whole row at once: Softmax, LogSoftmax, LayerNorm.

Lives here: their rules.  Not here: the row kernels.
"""

from __future__ import annotations

from ...core.dtypes import float32
from ..loops.expressions import arg
from ..loops.forms import RowPass
from . import rule
from .nodes import At, Refused


@rule("Softmax", "LogSoftmax")
def softmax(at: At) -> None:
    x = at.operand(0)
    if int(at.attr("axis")) not in (-1, len(x.shape) - 1) or x.dtype is not float32 or not x.shape:
        raise Refused(f"softmax of {x} along {at.attr('axis')}")
    kind = "softmax" if at.node.op.name == "Softmax" else "log_softmax"
    at.form(RowPass, at.output(shape=x.shape), x, (), kind, arg(0, float32), arg(0, float32))


@rule("LayerNorm")
def layer_norm(at: At) -> None:
    x, scale, offset = at.operand(0), at.optional(1), at.optional(2)
    axes = tuple(int(a) % max(len(x.shape), 1) for a in at.attr("axis"))
    if axes != (len(x.shape) - 1,) or x.dtype is not float32 or scale is None or offset is None:
        raise Refused(f"rows of {x} along {axes}, with scale {scale}, offset {offset}")
    at.form(RowPass, at.output(shape=x.shape), x, (scale, offset), "layer_norm", arg(0, float32), arg(0, float32),
            (float(at.attr("epsilon")),))  # fmt: skip
