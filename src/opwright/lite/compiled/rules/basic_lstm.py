"""LSTM of kernel_type BASIC: one matrix for all gates, over input and state side by side.

Lives here: its rule.  Not here: other LSTMs (recurrent.py), the operator (lite/ops/lstm.py, ops/quantized/lstm.py).
"""

from __future__ import annotations

import math

from ....compiler.loops.expressions import apply, arg
from ....compiler.loops.forms import Buffer, Contract, IndexMap, Move, Window
from ....compiler.loops.recurrent_forms import BasicLstm
from ....core.dtypes import float32, int16, int32, uint8
from ....scalar.multipliers import multiplier
from ..nodes import At, Refused
from .contractions import check_sums
from .moving import row_major

ACTIVATION = 1 / 128, 128
"""Scale and zero point of what goes in and comes out as uint8."""


def basic_lstm(at: At) -> None:
    x, h, w, bias, c = (at.operand(i) for i in range(5))
    fixed = x.dtype is uint8
    kinds = (uint8, uint8, uint8, int32, int16) if fixed else (float32,) * 5
    if (x.dtype, h.dtype, w.dtype, bias.dtype, c.dtype) != kinds or len(x.shape) != 2 or len(h.shape) != 2:
        raise Refused(f"an LSTM of {x} with {h}, {w}, {bias}, {c}")
    (batch, n), cells = x.shape, h.shape[1]
    shapes = [(batch, cells), (batch, cells), (batch, n + cells), (batch, 4 * cells)]
    y, state, joined, gates = (at.output(shape, i) for i, shape in enumerate(shapes))
    if h.shape != shapes[0] or c.shape != shapes[0] or w.shape != (4 * cells, n + cells) or bias.shape != (4 * cells,) \
            or not h.size or not h.tensor.is_variable or not c.tensor.is_variable:  # fmt: skip
        raise Refused(f"an LSTM of {x} with {h}, {w}, {bias}, {c}")
    power, factor = 0, (0, 0)
    if fixed:
        if any((o.scale, o.zero) != ACTIVATION for o in (x, h, y)):
            raise Refused(f"the scales of {x}, {h} and {y}")
        power = round(math.log2(c.scale))
        if 2.0**power != c.scale or not -15 <= power <= -9 or c.zero:
            raise Refused(f"cells of the scale {c.scale}")
        check_sums(x, w, bias, 0)
        factor = multiplier(x.scale * w.scale * 4096)
    ends = [IndexMap((0, start), o.shape, 0, row_major(o.shape)) for o, start in ((x, 0), (h, n))]
    at.form(Move, joined.buffer, (x.buffer, h.buffer), tuple(ends))
    kind = int32 if fixed else float32
    rows = (batch, 1, 1, n + cells)
    sums = at.new(kind, (batch, 1, 1, 4 * cells), ".sums")
    at.form(Contract, sums, at.viewed(joined.buffer, rows), at.viewed(w.buffer, (4 * cells, 1, 1, n + cells)),
            (bias.buffer,), apply("add", arg(0, kind), arg(1, kind)), Window((1, 1)),
            input_zero=x.zero if fixed else 0, filter_zero=w.zero if fixed else 0)  # fmt: skip
    flat = at.viewed(sums, gates.shape)
    if not fixed:
        at.form(Move, gates.buffer, (flat,), (IndexMap((0, 0), gates.shape, 0, row_major(gates.shape)),))

    def make(whole: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        at.form(BasicLstm, whole, flat, h.buffer, c.buffer, results, factor, power)

    at.with_results(make, y.buffer, state.buffer, *((gates.buffer,) if fixed else ()))
