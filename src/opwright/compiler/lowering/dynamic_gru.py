"""Recurrence over packed sequences: DynamicGru.

Lives here: its rule.  Not here: the kernel of its steps (../kernels/rnn.py).
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import float32
from ..loops.expressions import apply
from ..loops.recurrent_forms import Gru
from .context import LoweringContext, NoLowering
from .elementwise import map_elements
from .moves import writing
from .registry import rule

ACTIVATIONS = {"tanh": "TANH", "relu": "RELU", "identity": "NONE"}


@rule("DynamicGru")
def dynamic_gru(ctx: LoweringContext) -> None:
    """Of sequences of one length that is known: the result for each row, and nothing for gradients."""
    x, bias, h = ctx.operand(0).buffer, ctx.optional(2), ctx.optional(3)
    weight, lengths = ctx.operand(1).buffer, np.diff(ctx.constant(4))
    if x.dtype is not float32 or not lengths.size or (lengths != lengths[0]).any() or not lengths[0]:
        raise NoLowering(f"units over {x} of lengths {lengths[:8]}")
    activation = ACTIVATIONS.get(ctx.attr("activation"))
    if activation is None or ctx.attr("gate_activation") != "sigmoid":
        raise NoLowering(f"units with {ctx.attr('activation')}, {ctx.attr('gate_activation')}")
    cells, batch, steps = weight.shape[0], len(lengths), int(lengths[0])
    if x.shape != (batch * steps, 3 * cells):
        raise NoLowering(f"units over {x} of {batch} sequences of {steps}")
    if bias is not None:
        added = ctx.new(float32, x.shape)
        map_elements(ctx, added, [x, bias.buffer], lambda a, b: apply("add", a, b))
        x = added
    y, given = ctx.output((batch * steps, cells)).buffer, ctx.viewed(x, (batch, steps, 3 * cells))
    backward, keeps = bool(ctx.attr("is_reverse")), bool(ctx.attr("origin_mode"))
    states = () if h is None else (h.buffer,)
    writing(ctx, y, (batch, steps, cells),
               lambda out: ctx.form(Gru, out, given, weight, states, activation, keeps, backward))  # fmt: skip
