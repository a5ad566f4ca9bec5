"""LSTM of kernel_type BASIC: one matrix for all gates, over input and state side by side.

Lives here: its rule.  Not here: other LSTMs (recurrent.py), the operator (lite/ops/lstm.py, ops/quantized/lstm.py).
"""

from __future__ import annotations

import math

from ...core.dtypes import float32, int16, int32, uint8
from ...scalar.multipliers import multiplier
from ..loops.expressions import apply, arg
from ..loops.forms import Buffer, Contract, IndexMap, Move, Window
from ..loops.recurrent_forms import BasicLstm
from .context import LoweringContext, NoLowering
from .contractions import check_sums
from .moves import row_major

ACTIVATION = 1 / 128, 128
"""Scale and zero point of what goes in and comes out as uint8."""


def basic_lstm(ctx: LoweringContext) -> None:
    x, h, w, bias, c = (ctx.operand(i) for i in range(5))
    fixed = x.dtype is uint8
    kinds = (uint8, uint8, uint8, int32, int16) if fixed else (float32,) * 5
    if (x.dtype, h.dtype, w.dtype, bias.dtype, c.dtype) != kinds or len(x.shape) != 2 or len(h.shape) != 2:
        raise NoLowering(f"an LSTM of {x} with {h}, {w}, {bias}, {c}")
    (batch, n), cells = x.shape, h.shape[1]
    shapes = [(batch, cells), (batch, cells), (batch, n + cells), (batch, 4 * cells)]
    y, state, joined, gates = (ctx.output(shape, i) for i, shape in enumerate(shapes))
    if (
        h.shape != shapes[0]
        or c.shape != shapes[0]
        or w.shape != (4 * cells, n + cells)
        or bias.shape != (4 * cells,)
        or not h.size
        or not h.is_variable
        or not c.is_variable
    ):
        raise NoLowering(f"an LSTM of {x} with {h}, {w}, {bias}, {c}")
    power, factor = 0, (0, 0)
    if fixed:
        if any((o.scale, o.zero) != ACTIVATION for o in (x, h, y)):
            raise NoLowering(f"the scales of {x}, {h} and {y}")
        power = round(math.log2(c.scale))
        if 2.0**power != c.scale or not -15 <= power <= -9 or c.zero:
            raise NoLowering(f"cells of the scale {c.scale}")
        check_sums(x, w, bias, 0)
        factor = multiplier(x.scale * w.scale * 4096)
    ends = [IndexMap((0, start), o.shape, 0, row_major(o.shape)) for o, start in ((x, 0), (h, n))]
    ctx.form(Move, joined.buffer, (x.buffer, h.buffer), tuple(ends))
    kind = int32 if fixed else float32
    rows = (batch, 1, 1, n + cells)
    sums = ctx.new(kind, (batch, 1, 1, 4 * cells), ".sums")
    ctx.form(
        Contract,
        sums,
        ctx.viewed(joined.buffer, rows),
        ctx.viewed(w.buffer, (4 * cells, 1, 1, n + cells)),
        (bias.buffer,),
        apply("add", arg(0, kind), arg(1, kind)),
        Window((1, 1)),
        input_zero=x.zero if fixed else 0,
        filter_zero=w.zero if fixed else 0,
    )
    flat = ctx.viewed(sums, gates.shape)
    if not fixed:
        ctx.form(Move, gates.buffer, (flat,), (IndexMap((0, 0), gates.shape, 0, row_major(gates.shape)),))

    def make(whole: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.form(BasicLstm, whole, flat, h.buffer, c.buffer, results, factor, power)

    ctx.with_results(make, y.buffer, state.buffer, *((gates.buffer,) if fixed else ()))
