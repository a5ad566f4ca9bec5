"""LSTMs of int8 with int16 cells, and gates of int16 or int8.

Lives here: their rules; the indices of an LSTM's inputs by kind.
Not here: LSTMs of floats, whose rule calls this one (lstm.py), the integer rule (lite/ops/quantized/recurrent.py),
the kernel of a step (../kernels/lstm_int8.py).
"""

from __future__ import annotations

import math

import numpy as np

from ...core.dtypes import DType, float32, int8, int16, int32
from ...scalar.fixed_point import multiplier
from ...scalar.fixed_point_layers import NARROW_SCALE, least_variance, narrow_table, normalization_factor
from ..loops.buffers import Buffer, Window
from ..loops.expressions import Expr, apply, arg
from ..loops.ops import Contract
from ..loops.recurrent_ops import LstmInt8, LstmInt8Gates
from .context import LoweringContext, NoLowering, RuleOperand

WEIGHTS, RECURRENT, PEEPHOLES, BIASES, PROJECTION, STATE, NORMS = 1, 5, 9, 12, 16, 18, 20
"""Index of the first input of each kind; a kind's inputs are in the order input, forget, cell, output gate."""
GATE = 2.0**-12
NO_CLIP = 1 << 16
GATES, CELL = 4, 2
"""The number of gates, and the index of the cell gate."""
HIDDEN = 4
"""Index of the intermediate tensor with the scale of o tanh(c)."""


def integer_lstm(ctx: LoweringContext, x: RuleOperand) -> None:
    """Lower an LSTM with gates of int16, or of int8. Raises NoLowering for others."""
    intermediates = ctx.node.intermediates
    if len(intermediates) == 3 * GATES and ctx.operator == "LSTM":
        narrow_lstm(ctx, x)
        return
    if len(intermediates) != HIDDEN + 1:
        raise NoLowering(f"an LSTM of {x} with {len(intermediates)} intermediate tensors")
    time_major = ctx.operator == "LSTM" or bool(ctx.attr("time_major"))
    shape = (1, *x.shape) if ctx.operator == "LSTM" and len(x.shape) == 2 else x.shape
    gates = range(0 if ctx.optional(WEIGHTS) is not None else 1, 4)
    recurrent = [_weights(ctx, RECURRENT + g) for g in gates]
    if len(shape) != 3 or len(recurrent[0].shape) != 2:
        raise NoLowering(f"an LSTM of {x}")
    cells, outputs = recurrent[0].shape
    batch = shape[1] if time_major else shape[0]
    h, c, y = ctx.operand(STATE), ctx.operand(STATE + 1), ctx.output((*x.shape[:-1], outputs))
    for state, dtype, n in ((h, int8, outputs), (c, int16, cells)):
        if not state.is_variable or state.size != batch * n or state.dtype is not dtype:
            raise NoLowering(f"a state {state}")
    if any(r.shape != (cells, outputs) for r in recurrent) or y.dtype is not int8:
        raise NoLowering(f"recurrent weights of {cells} cells and {outputs} outputs")
    power = math.log2(c.scale)
    if power != round(power) or not -30 <= power <= -9 or c.zero:
        raise NoLowering(f"cells of the scale {c.scale}")
    hidden = ctx.buffers.of(intermediates[HIDDEN])
    present = [PROJECTION + i for i in range(2) if ctx.optional(PROJECTION + i) is not None]
    projection = [ctx.operand(i) for i in present]
    if not projection and cells != outputs:
        raise NoLowering(f"{cells} cells and {outputs} outputs")
    if projection and (
        projection[0].dtype is not int8
        or projection[0].shape != (outputs, cells)
        or any(b.constant is None or b.dtype is not int32 or b.shape != (outputs,) for b in projection[1:])
    ):
        raise NoLowering("a projection")
    # With a projection, the official kernel negates this zero point (lite/ops/quantized/recurrent.py).
    zero = -hidden.zero if projection else hidden.zero
    norms = _norms(ctx, gates, cells)
    steps = [ctx.buffers.of(intermediates[g]).scale if norms else GATE for g in gates]
    weights = [_weights(ctx, WEIGHTS + g) for g in gates]
    of_gates = [
        _factor(pair[0].scale, pair[1].scale, step)
        for w, r, step in zip(weights, recurrent, steps)
        for pair in ((w, x), (r, h))
    ]
    peepholes = _peepholes(ctx, gates, c, steps, cells)
    to_hidden = multiplier(float(np.float32(2.0**-30 / hidden.scale)))
    to_output = _factor(projection[0].scale, hidden.scale, h.scale) if projection else (0, 0)
    clips = _clip(ctx.attr("cell_clip"), c, 32767), _clip(ctx.attr("proj_clip"), y, 127)
    sums = [_from_input(ctx, x, g, cells, bool(norms)) for g in gates]
    with ctx.reshaped(y, (*shape[:-1], outputs)) as out:
        ctx.add(
            LstmInt8,
            out,
            tuple(sums),
            tuple(r.buffer for r in recurrent),
            h.buffer,
            c.buffer,
            tuple(p.buffer for p in projection),
            tuple(of_gates),
            to_hidden,
            to_output,
            (zero, h.zero),
            clips,
            round(power),
            time_major,
            tuple(p.buffer for p in peepholes),
            tuple(_peephole_factor(p, c, step) for p, step in peepholes.items()),
            tuple(b.buffer for pair in norms for b in pair),
            tuple(_norm_factor(n) for n, _ in norms),
        )


def narrow_lstm(ctx: LoweringContext, x: RuleOperand) -> None:
    """Lower one step of an LSTM with int8 gates: without an input gate and peepholes, with normalization and a
    projection. Raises NoLowering for others."""
    gates = range(1, GATES)
    absent = [WEIGHTS, RECURRENT, *range(PEEPHOLES, BIASES), NORMS]
    if len(x.shape) != 2 or any(ctx.optional(index) is not None for index in absent):
        raise NoLowering(f"an LSTM of {x} with gates of int8 and more inputs than they have")
    h, c, p = ctx.operand(STATE), ctx.operand(STATE + 1), _weights(ctx, PROJECTION)
    (batch, _), (outputs, cells) = x.shape, p.shape
    y = ctx.output((batch, outputs))
    for state, dtype, n in ((h, int8, outputs), (c, int16, cells)):
        if not state.is_variable or state.size != batch * n or state.dtype is not dtype:
            raise NoLowering(f"a state {state}")
    if c.scale != 2.0**-15 or c.zero or y.dtype is not int8:
        raise NoLowering(f"cells of the scale {c.scale}")
    bias = ctx.optional(PROJECTION + 1)
    if bias is not None and (bias.constant is None or bias.dtype is not int32 or bias.shape != (outputs,)):
        raise NoLowering(f"a bias {bias}")
    sums: dict[int, list[Buffer]] = {WEIGHTS: [], RECURRENT: []}
    parts, norms, scales = [], [], []
    for g in gates:
        both, *each = (ctx.buffers.of(ctx.node.intermediates[3 * g + k]) for k in range(3))
        for first, rows, part in zip(sums, (x, h), each):
            w = _weights(ctx, first + g)
            sums[first].append(_sums(ctx, rows, w, cells, f".{first}.{g}"))
            to_sum = multiplier(float(np.float32(part.scale) / np.float32(both.scale)))
            parts.append((*_factor(w.scale, rows.scale, part.scale), part.zero, *to_sum))
        coefficients, addend = _vector(ctx, NORMS + g, int16, cells), _vector(ctx, BIASES + g, int32, cells)
        scale = np.float32(coefficients.scale)
        offset = np.asarray(addend.buffer.constant, np.float32) * (scale * np.float32(2.0**-10))
        norms.append((np.asarray(coefficients.buffer.constant, np.float32), offset))
        scales.append(scale)
    tables = [
        narrow_table("logistic", NARROW_SCALE),
        narrow_table("tanh", NARROW_SCALE),
        narrow_table("tanh", 2.0**-15),
    ]
    ctx.add(
        LstmInt8Gates,
        y.buffer,
        tuple(sums[WEIGHTS]),
        tuple(sums[RECURRENT]),
        tuple(Buffer("norms", float32, a.shape, a) for a in (np.array(norms), np.array(scales))),
        tuple(Buffer("table", int16, table.shape, table) for table in tables),
        (p.buffer,) if bias is None else (p.buffer, bias.buffer),
        h.buffer,
        c.buffer,
        tuple(parts),
        multiplier(float(np.float32(p.scale * 2.0**-15 / h.scale))),
        h.zero,
        (_clip(ctx.attr("cell_clip"), c, 32767), _clip(ctx.attr("proj_clip"), y, 127)),
    )


def _sums(ctx: LoweringContext, x: RuleOperand, w: RuleOperand, cells: int, name: str) -> Buffer:
    """Add the products of rows of int8 and weights: int32 [rows, cells]."""
    n = x.shape[-1]
    if w.shape != (cells, n) or not n or not x.size:
        raise NoLowering(f"weights {w}")
    rows = x.size // n
    out = ctx.new(int32, (rows, 1, 1, cells), name)
    filters, total = ctx.viewed(w.buffer, (cells, 1, 1, n)), arg(0, int32)
    ctx.add(Contract, out, ctx.viewed(x.buffer, (rows, 1, 1, n)), filters, (), total, Window((1, 1)), input_zero=x.zero)
    return out


def _vector(ctx: LoweringContext, index: int, dtype: DType, cells: int) -> RuleOperand:
    """Return a constant vector with a number per cell. Raises NoLowering for others."""
    v = ctx.operand(index)
    if v.buffer.constant is None or v.dtype is not dtype or v.shape != (cells,):
        raise NoLowering(f"a vector {v}")
    return v


def _peepholes(
    ctx: LoweringContext, gates: range, c: RuleOperand, steps: list[float], cells: int
) -> dict[RuleOperand, float]:
    """Return the peephole weights of all gates except the cell gate, with their gates' scales; empty if absent."""
    inputs = [(PEEPHOLES + (g if g < CELL else g - 1), step) for g, step in zip(gates, steps) if g != CELL]
    if all(ctx.optional(index) is None for index, _ in inputs):
        return {}
    return {_vector(ctx, index, int16, cells): step for index, step in inputs}


def _factor(weights: float, x: float, step: float) -> tuple[int, int]:
    """Return the multiplier from products to steps, computed in float32."""
    return multiplier(float(np.float32(weights) * np.float32(x) / np.float32(step)))


def _peephole_factor(p: RuleOperand, c: RuleOperand, step: float) -> tuple[int, int]:
    return multiplier(float(np.float32(c.scale * p.scale / step)))


def _norms(ctx: LoweringContext, gates: range, cells: int) -> list[tuple[RuleOperand, RuleOperand]]:
    """Return coefficients and bias of each normalized gate; empty if absent."""
    if all(ctx.optional(NORMS + g) is None for g in gates):
        return []
    return [(_vector(ctx, NORMS + g, int16, cells), _vector(ctx, BIASES + g, int32, cells)) for g in gates]


def _norm_factor(coefficients: RuleOperand) -> tuple[int, int, int]:
    """Return m, e and the least variance; see lite/ops/quantized/recurrent.py."""
    return *normalization_factor(coefficients.scale), least_variance(coefficients.scale)


def _clip(bound: float, o: RuleOperand, high: int) -> int:
    """Return a clip option in steps of the operand's scale, saturated; NO_CLIP for 0."""
    return int(np.minimum(np.float32(bound) / np.float32(o.scale), high)) or NO_CLIP


def _weights(ctx: LoweringContext, index: int) -> RuleOperand:
    """Return constant int8 weights with one scale. Raises NoLowering for others."""
    w = ctx.operand(index)
    if w.constant is None or w.dtype is not int8 or w.zero:
        raise NoLowering(f"weights {w}")
    return w


def _from_input(ctx: LoweringContext, x: RuleOperand, gate: int, cells: int, normed: bool) -> Buffer:
    """Add a gate's contribution from the inputs of all steps: int32 [rows, 1, 1, cells]. normed: its bias is added
    later."""
    w, bias, n = _weights(ctx, WEIGHTS + gate), None if normed else ctx.optional(BIASES + gate), x.shape[-1]
    if (
        w.shape != (cells, n)
        or not n
        or not x.size
        or (bias is not None and (bias.shape != (cells,) or bias.dtype is not int32))
    ):
        raise NoLowering(f"weights {w}, bias {bias}")
    rows = x.size // n
    out = ctx.new(int32, (rows, 1, 1, cells), f".gate{gate}")
    total: Expr = arg(0, int32)
    if bias is not None:
        total = apply("add", total, arg(1, int32))
    ctx.add(
        Contract,
        out,
        ctx.viewed(x.buffer, (rows, 1, 1, n)),
        ctx.viewed(w.buffer, (cells, 1, 1, n)),
        (bias.buffer,) if bias is not None else (),
        total,
        Window((1, 1)),
        input_zero=x.zero,
    )
    return out
