"""Recurrence over packed sequences: DynamicGru.

Lives here: its rule.  Not here: the kernel of its steps (../kernels/rnn.py).
"""

from __future__ import annotations

import numpy as np

from ...core.dtypes import float32
from ..loops.expressions import apply
from ..loops.recurrent_forms import Gru
from .elementwise import mapped
from .nodes import At, Refused
from .registry import rule

ACTIVATIONS = {"tanh": "TANH", "relu": "RELU", "identity": "NONE"}


@rule("DynamicGru")
def dynamic_gru(at: At) -> None:
    """Of sequences of one length that is known: the result for each row, and nothing for gradients."""
    x, bias, h = at.operand(0), at.optional(2), at.optional(3)
    weight, lengths = at.operand(1), np.diff(at.constant(4))
    if x.dtype is not float32 or not lengths.size or (lengths != lengths[0]).any() or not lengths[0]:
        raise Refused(f"units over {x} of lengths {lengths[:8]}")
    activation = ACTIVATIONS.get(at.attr("activation"))
    if activation is None or at.attr("gate_activation") != "sigmoid":
        raise Refused(f"units with {at.attr('activation')}, {at.attr('gate_activation')}")
    cells, batch, steps = weight.shape[0], len(lengths), int(lengths[0])
    if x.shape != (batch * steps, 3 * cells):
        raise Refused(f"units over {x} of {batch} sequences of {steps}")
    if bias is not None:
        added = at.new(float32, x.shape)
        mapped(at, added, [x, bias], lambda a, b: apply("add", a, b))
        x = added
    y, given = at.output(0, (batch * steps, cells)), at.viewed(x, (batch, steps, 3 * cells))
    backward, keeps = bool(at.attr("is_reverse")), bool(at.attr("origin_mode"))
    states = () if h is None else (h,)
    at.written(y, (batch, steps, cells),
               lambda out: at.form(Gru, out, given, weight, states, activation, keeps, backward))  # fmt: skip
