"""Recurrent operators without LSTM cells: RNN, UNIDIRECTIONAL_SEQUENCE_RNN, BIDIRECTIONAL_SEQUENCE_RNN,
UNIDIRECTIONAL_SEQUENCE_GRU, DynamicGru, SVDF.

Lives here: their rules.  Not here: LSTMs, and the parts that they share with these (lstm.py); kernels.

SVDF of integers: features are int16 in steps of the state, and sums of int32 are requantized to the output,

    state = quantize(sum(x w) s_x s_w / s_state)      y = quantize((sum(state t) + bias) s_state s_t / s_y, zero_y)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32, int8, int16, int32, uint8
from ..loops.buffers import Buffer, IndexMap, Window
from ..loops.expressions import apply, arg, convert, quantize, scalar
from ..loops.ops import Contract, Move
from ..loops.recurrent_ops import Gru, Rnn, Svdf
from .context import LoweringContext, NoLowering, RuleOperand
from .lstm import direction_outputs, float_output, from_input, matrix, state_of
from .operand_expressions import clamped, in_steps, map_elements, steps_per
from .registry import rule

AUXILIARY = 9
"""Index of the auxiliary input of BIDIRECTIONAL_SEQUENCE_RNN, which its weights follow, one per direction."""


@rule("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN")
def one_direction(ctx: LoweringContext) -> None:
    """Lower a unidirectional RNN; RNN is a sequence of one step."""
    x = ctx.operand(0)
    time_major = ctx.operator == "RNN" or bool(ctx.attr("time_major"))
    shape = (1, *x.shape) if ctx.operator == "RNN" else x.shape
    units = ctx.operand(1).shape[0]
    y = float_output(ctx, (*x.shape[:-1], units))
    with ctx.reshaped(y, (*shape[:-1], units)) as out:
        _direction(ctx, x, shape, out, 1, time_major)


@rule("BIDIRECTIONAL_SEQUENCE_RNN")
def both_directions(ctx: LoweringContext) -> None:
    """Lower a bidirectional RNN; with time as first axis, the second direction reads an auxiliary input without
    weights."""
    x, auxiliary = ctx.operand(0), ctx.optional(AUXILIARY)
    time_major = bool(ctx.attr("time_major"))
    has_weights = ctx.optional(AUXILIARY + 1) is not None
    sizes = [ctx.operand(index).shape[0] for index in (1, 5)]
    second = auxiliary if auxiliary is not None and not has_weights and time_major else x
    with direction_outputs(ctx, x, sizes) as outs:
        for i, (source, out) in enumerate(zip((x, second), outs)):
            auxiliary_weights = (auxiliary, AUXILIARY + 1 + i) if auxiliary is not None and has_weights else None
            _direction(ctx, source, x.shape, out, 1 + 4 * i, time_major, bool(i), auxiliary_weights)


def _direction(
    ctx: LoweringContext,
    x: RuleOperand,
    shape: tuple[int, ...],
    out: Buffer,
    index: int,
    time_major: bool,
    backward: bool = False,
    more: tuple[RuleOperand, int] | None = None,
) -> None:
    """Add the operations of one direction.

    place: index of the weights, which the recurrent weights, a bias and the state follow. more: an auxiliary input, and
    the index of its weights.
    """
    if x.dtype is not float32 or len(shape) != 3 or (more is not None and more[0].dtype is not float32):
        raise NoLowering(f"simple recurrence of {x}")
    recurrent = matrix(ctx, index + 1)
    units, batch = recurrent.buffer.shape[0], shape[1] if time_major else shape[0]
    state = state_of(ctx, index + 3, batch, units)
    total = from_input(ctx, x, index, index + 2, units)
    if more is not None:
        total = from_input(ctx, more[0], more[1], total, units)
    ctx.add(
        Rnn,
        out,
        total,
        recurrent.buffer,
        state,
        ctx.attr("fused_activation_function") or "NONE",
        time_major,
        backward,
        recurrent.rounding,
        recurrent.scale,
    )


@rule("SVDF")
def svdf(ctx: LoweringContext) -> None:
    x, weights, time, state = ctx.operand(0), ctx.operand(1), ctx.operand(2), ctx.operand(4)
    rank = int(ctx.attr("rank"))
    if len(x.shape) != 2 or len(weights.shape) != 2 or len(time.shape) != 2 or rank < 1 or weights.shape[0] % rank:
        raise NoLowering(f"filters {weights} and {time} of rank {rank}")
    (batch, _), (filters, _) = x.shape, weights.shape
    y = ctx.output((batch, filters // rank))
    if not state.is_variable or state.size != batch * time.size or time.shape[0] != filters:
        raise NoLowering(f"a state {state} of {time}")
    (_of_integers if x.dtype is int8 else _of_floats)(ctx, x, y)


def _of_floats(ctx: LoweringContext, x: RuleOperand, y: RuleOperand) -> None:
    weights, time, bias, state = (ctx.operand(1), ctx.operand(2), ctx.optional(3), ctx.operand(4))
    filters = weights.shape[0]
    features = from_input(ctx, x, 1, None, filters)
    value = arg(0, float32)
    operands: tuple[Buffer, ...] = ()
    if bias is not None:
        if bias.shape != y.shape[1:] or bias.dtype is not float32:
            raise NoLowering(f"a bias {bias}")
        value, operands = apply("add", value, arg(1, float32)), (bias.buffer,)
    if y.dtype is not float32 or state.dtype is not float32:
        raise NoLowering(f"filters of {x} to {y}")
    ctx.add(
        Svdf,
        y.buffer,
        features,
        state.buffer,
        _reals(ctx, time),
        operands,
        clamped(value, ctx.attr("fused_activation_function")),
    )


def _reals(ctx: LoweringContext, time: RuleOperand) -> Buffer:
    """Return filters over time as real values."""
    if time.dtype is float32:
        return time.buffer
    if time.dtype not in (int8, uint8) or time.constant is None or (time.dtype is int8 and time.zero):
        raise NoLowering(f"filters {time}")
    reals = time.constant.view(np.int8).astype(np.float32) * np.float32(time.scale)
    return Buffer(f"{time.buffer.name}.reals", float32, time.shape, reals)


def _of_integers(ctx: LoweringContext, x: RuleOperand, y: RuleOperand) -> None:
    weights, time, bias, state = (ctx.operand(1), ctx.operand(2), ctx.optional(3), ctx.operand(4))
    kinds = [o.dtype for o in (weights, time, state, y)]
    if kinds != [int8, int16, int16, int8] or weights.zero or time.zero:
        raise NoLowering(f"filters of {', '.join(kind.name for kind in kinds)}")
    filters, columns, batch = *weights.shape, x.shape[0]
    factor = steps_per(x.scale * weights.scale, state)
    to_state = apply("mul", convert(arg(0, int32), float32), scalar(factor, float32))
    features = ctx.new(int16, (batch, 1, 1, filters), ".features")
    source, filter = ctx.viewed(x.buffer, (batch, 1, 1, columns)), ctx.viewed(weights.buffer, (filters, 1, 1, columns))
    ctx.add(Contract, features, source, filter, (), quantize(to_state, state.zero, int16), Window((1, 1)), 1, x.zero)
    total: Any = arg(0, int32)
    operands: tuple[Buffer, ...] = ()
    if bias is not None:
        if bias.shape != y.shape[1:] or bias.dtype is not int32:
            raise NoLowering(f"a bias {bias}")
        total, operands = apply("add", total, arg(1, int32)), (bias.buffer,)
    value = apply("mul", convert(total, float32), scalar(steps_per(state.scale * time.scale, y), float32))
    ctx.add(Svdf, y.buffer, features, state.buffer, time.buffer, operands, in_steps(value, y))


@rule(custom=("UNIDIRECTIONAL_SEQUENCE_GRU",))
def gru(ctx: LoweringContext) -> None:
    """Lower a GRU; batch and time axes are exchanged for the kernel."""
    x, h = ctx.operand(0), ctx.operand(1)
    gates, gate_bias, candidate, candidate_bias = (ctx.operand(index) for index in range(2, 6))
    if len(x.shape) != 3 or len(h.shape) != 2 or any(o.dtype is not float32 for o in ctx.operands) or not x.size:
        raise NoLowering(f"gated units of {x}")
    (steps, batch, n), units = x.shape, h.shape[1]
    outputs = ctx.output((steps, batch, units)), ctx.output(h.shape, 1)
    constants = [o.constant for o in (gates, gate_bias, candidate, candidate_bias)]
    shapes = [(2 * units, n + units), (2 * units,), (units, n + units), (units,)]
    if any(k is None or k.shape != shape for k, shape in zip(constants, shapes)) or h.shape[0] != batch:
        raise NoLowering("weights that are not constant, or of other shapes")
    w, b, c, d = (np.asarray(k) for k in constants)
    name = outputs[0].buffer.name

    def constant(label: str, array: np.ndarray) -> Buffer:
        return Buffer(f"{name}.{label}", float32, array.shape, np.ascontiguousarray(array, np.float32))

    update, reset = w[units:], w[:units]
    filter = constant("filter", np.concatenate([update[:, :n], reset[:, :n], c[:, :n]])[:, None, None])
    bias = constant("bias", np.concatenate([b[units:], b[:units], d]))
    recurrent = np.concatenate([update[:, n:].T, reset[:, n:].T], 1).ravel(), c[:, n:].T.ravel()
    rows = ctx.new(float32, (batch, steps, n), ".rows")
    sums = ctx.new(float32, (batch * steps, 1, 1, 3 * units), ".sums")
    ctx.add(Move, rows, (x.buffer,), (IndexMap((0, 0, 0), rows.shape, 0, (n, batch * n, 1)),))
    ctx.add(
        Contract,
        sums,
        ctx.viewed(rows, (batch * steps, 1, 1, n)),
        filter,
        (bias,),
        apply("add", arg(0, float32), arg(1, float32)),
        Window((1, 1)),
    )
    hidden = ctx.new(float32, (batch, steps, units), ".units")
    ctx.add(
        Gru,
        hidden,
        ctx.viewed(sums, (batch, steps, 3 * units)),
        constant("recurrent", np.concatenate(recurrent)),
        (h.buffer,),
        "TANH",
        True,
    )
    each = (units, steps * units, 1)
    ctx.add(Move, outputs[0].buffer, (hidden,), (IndexMap((0, 0, 0), (steps, batch, units), 0, each),))
    ctx.add(Move, outputs[1].buffer, (hidden,), (IndexMap((0, 0), (batch, units), (steps - 1) * units, each[1:]),))


ACTIVATIONS = {"tanh": "TANH", "relu": "RELU", "identity": "NONE"}


@rule("DynamicGru")
def dynamic_gru(ctx: LoweringContext) -> None:
    """Lower a GRU over sequences of one constant length, without intermediate values for gradients."""
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
        biased = ctx.new(float32, x.shape)
        map_elements(ctx, biased, [x, bias.buffer], lambda a, b: apply("add", a, b))
        x = biased
    y, gates = ctx.output((batch * steps, cells)).buffer, ctx.viewed(x, (batch, steps, 3 * cells))
    backward, origin_mode = bool(ctx.attr("is_reverse")), bool(ctx.attr("origin_mode"))
    states = () if h is None else (h.buffer,)
    with ctx.reshaped(y, (batch, steps, cells)) as out:
        ctx.add(Gru, out, gates, weight, states, activation, origin_mode, backward)
