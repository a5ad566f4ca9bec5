"""LSTMs of int8 with int16 cells.

Lives here: their rule.
Not here: those of floats, who asks (recurrent.py), the rule on integers that this follows (ops/quantized/lstm.py), the
kernel of the steps (compiler/kernels/recurrent_int8.py).
"""

from __future__ import annotations

import math

import numpy as np

from ....compiler.loops.expressions import Expr, apply, arg, convert, scalar
from ....compiler.loops.forms import Buffer, Contract, Window
from ....compiler.loops.recurrent_forms import LstmInt8
from ....core.dtypes import float32, int8, int16, int32
from ..nodes import At, Operand, Refused
from .recurrent import BIASES, NORMS, PEEPHOLES, PROJECTION, RECURRENT, STATE, WEIGHTS

GATE = 2.0**-12
NO_CLIP = 1 << 16
HIDDEN = 4
"""Which of the intermediate tensors says the scale of o tanh(c)."""


def integer_lstm(at: At, x: Operand) -> None:
    """Without peepholes and normalisation. Raises Refused for others."""
    intermediates = [v.tensor for v in at.node.intermediates if v is not None]
    if len(intermediates) != HIDDEN + 1:
        raise Refused(f"an LSTM of {x} with {len(intermediates)} intermediate tensors")
    if any(at.optional(i) is not None for i in (*range(PEEPHOLES, BIASES), *range(NORMS, NORMS + 4))):
        raise Refused("peepholes, or layer normalisation within an LSTM")
    time_major = at.node.name == "LSTM" or bool(at.option("time_major"))
    shape = (1, *x.shape) if at.node.name == "LSTM" and len(x.shape) == 2 else x.shape
    gates = range(0 if at.optional(WEIGHTS) is not None else 1, 4)
    recurrent = [_known(at, RECURRENT + g) for g in gates]
    if len(shape) != 3 or len(recurrent[0].shape) != 2:
        raise Refused(f"an LSTM of {x}")
    cells, outputs = recurrent[0].shape
    batch = shape[1] if time_major else shape[0]
    h, c, y = at.operand(STATE), at.operand(STATE + 1), at.output((*x.shape[:-1], outputs))
    for state, dtype, n in ((h, int8, outputs), (c, int16, cells)):
        if not state.tensor.is_variable or state.size != batch * n or state.dtype is not dtype:
            raise Refused(f"a state {state}")
    if any(r.shape != (cells, outputs) for r in recurrent) or y.dtype is not int8:
        raise Refused(f"recurrent weights of {cells} cells and {outputs} outputs")
    power = math.log2(c.scale)
    if power != round(power) or not -30 <= power <= -9 or c.zero:
        raise Refused(f"cells of the scale {c.scale}")
    hidden = at.of(intermediates[HIDDEN])
    given = [PROJECTION + i for i in range(2) if at.optional(PROJECTION + i) is not None]
    projection = [at.operand(i) for i in given]
    if not projection and cells != outputs:
        raise Refused(f"{cells} cells and {outputs} outputs")
    if projection and (projection[0].dtype is not int8 or projection[0].shape != (outputs, cells) or any(
            b.constant is None or b.dtype is not int32 or b.shape != (outputs,) for b in projection[1:])):  # fmt: skip
        raise Refused("a projection")
    # With a projection the official kernel has this zero point with the other sign (ops/quantized/lstm.py).
    zero = -hidden.zero if projection else hidden.zero
    of_gates = [float(r.scale) * h.scale / GATE for r in recurrent]
    factors = (*[0.0] * (4 - len(gates)), *of_gates, 2.0**-30 / hidden.scale,
               float(projection[0].scale) * hidden.scale / h.scale if projection else 0.0, zero, h.zero)  # fmt: skip
    clips = _clip(at.option("cell_clip"), c, 32767), _clip(at.option("proj_clip"), y, 127)
    sums = [_from_input(at, x, g, cells) for g in gates]
    out, close = at.under(y, (*shape[:-1], outputs))
    at.form(LstmInt8, out, tuple(sums), tuple(r.buffer for r in recurrent), h.buffer, c.buffer,
            tuple(p.buffer for p in projection), factors, clips, round(power), time_major)  # fmt: skip
    close()


def _clip(most: float, o: Operand, high: int) -> int:
    """An option of a clip in steps of its scale, cut; 0 is none."""
    return int(np.minimum(np.float32(most) / np.float32(o.scale), high)) or NO_CLIP


def _known(at: At, place: int) -> Operand:
    """Weights. Raises Refused where they are not constants of int8 with one scale."""
    w = at.operand(place)
    if w.constant is None or w.dtype is not int8 or w.zero:
        raise Refused(f"weights {w}")
    return w


def _from_input(at: At, x: Operand, gate: int, cells: int) -> Buffer:
    """What a gate gets from the inputs of all steps, in its steps: whole numbers, [rows, 1, 1, cells]."""
    w, bias, n = _known(at, WEIGHTS + gate), at.optional(BIASES + gate), x.shape[-1]
    if w.shape != (cells, n) or not n or not x.size or (
            bias is not None and (bias.shape != (cells,) or bias.dtype is not int32)):  # fmt: skip
        raise Refused(f"weights {w}, bias {bias}")
    rows = x.size // n
    out = at.new(float32, (rows, 1, 1, cells), f".gate{gate}")
    total: Expr = arg(0, int32)
    if bias is not None:
        total = apply("add", total, arg(1, int32))
    steps = apply("round_even", apply("mul", convert(total, float32), scalar(w.scale * x.scale / GATE, float32)))
    limits = np.iinfo(np.int16)
    held = apply("minimum", apply("maximum", steps, scalar(float(limits.min), float32)),
                 scalar(float(limits.max), float32))  # fmt: skip
    at.form(Contract, out, at.viewed(x.buffer, (rows, 1, 1, n)), at.viewed(w.buffer, (cells, 1, 1, n)),
            (bias.buffer,) if bias is not None else (), held, Window((1, 1)), input_zero=x.zero)  # fmt: skip
    return out
