"""LSTMs of floats: LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM, BIDIRECTIONAL_SEQUENCE_LSTM, by weights of floats or integers;
the catalogue's LSTMSequence and GRUSequence and their gradients.

Lives here: their rules, with LSTM of kernel_type BASIC, also of integers; weights, states and gate sums, which simple
recurrence shares.
Not here: LSTMs of int8 (lstm_int8.py), simple recurrence (rnn.py), the kernel of a step (../kernels/lstm.py).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import float32, int8, int16, int32, uint8
from ...scalar.fixed_point import multiplier
from ..loops.buffers import Buffer, IndexMap, Window, row_major
from ..loops.expressions import apply, arg, scalar
from ..loops.ops import Contract, Move
from ..loops.recurrent_ops import BasicLstm, GruSequence, GruSequenceGrad, Lstm, LstmSequence, LstmSequenceGrad
from .context import LoweringContext, NoLowering, RuleOperand
from .contractions import check_sums, hybrid_product
from .lstm_int8 import BIASES, NORMS, PEEPHOLES, PROJECTION, RECURRENT, STATE, WEIGHTS, integer_lstm
from .registry import rule

BIDIRECTIONAL = "BIDIRECTIONAL_SEQUENCE_LSTM"
DIRECTION_INPUTS, BIDIRECTIONAL_STATES, AUXILIARY = 17, 35, 39
"""Inputs of the bidirectional operator: number of weights per direction, index of the states, index of the auxiliary
input, which its weights follow."""


@rule("UNIDIRECTIONAL_SEQUENCE_LSTM", "LSTM")
def one_direction(ctx: LoweringContext) -> None:
    """Lower a unidirectional LSTM. LSTM of kernel_type FULL is a sequence of one step, or has time as first axis."""
    x = ctx.operand(0)
    if x.dtype is int8 and ctx.operand(RECURRENT + 1).dtype is int8:
        integer_lstm(ctx, x)
        return
    if ctx.operator == "LSTM" and ctx.attr("kernel_type") not in (0, "FULL"):
        basic_lstm(ctx)
        return
    time_major = ctx.operator == "LSTM" or bool(ctx.attr("time_major"))
    shape = (1, *x.shape) if ctx.operator == "LSTM" and len(x.shape) == 2 else x.shape
    n = ctx.operand(RECURRENT + 1).shape[-1]
    y = float_output(ctx, (*x.shape[:-1], n))
    with ctx.reshaped(y, (*shape[:-1], n)) as out:
        _direction(ctx, x, shape, out, (0, STATE), time_major=time_major)


@rule(BIDIRECTIONAL)
def both_directions(ctx: LoweringContext) -> None:
    """Lower a bidirectional LSTM; the second direction starts at the end of the sequence."""
    x = ctx.operand(0)
    if len(x.shape) != 3:
        raise NoLowering(f"a sequence {x}")
    auxiliary = ctx.optional(AUXILIARY)
    has_weights = ctx.optional(AUXILIARY + 2) is not None  # else the second direction reads the auxiliary input
    inputs = (x, auxiliary) if auxiliary is not None and not has_weights else (x, x)
    sizes = [ctx.operand(RECURRENT + 1 + auxiliary_weights).shape[-1] for auxiliary_weights in (0, DIRECTION_INPUTS)]
    with direction_outputs(ctx, x, sizes) as outs:
        for i, out in enumerate(outs):
            positions = (i * DIRECTION_INPUTS, BIDIRECTIONAL_STATES + 2 * i)
            auxiliary_weights = (auxiliary, AUXILIARY + 1 + 4 * i) if auxiliary is not None and has_weights else None
            _direction(
                ctx,
                inputs[i],
                x.shape,
                out,
                positions,
                time_major=bool(ctx.attr("time_major")),
                backward=bool(i),
                more=auxiliary_weights,
            )


def float_output(ctx: LoweringContext, shape: Sequence[int], index: int = 0) -> RuleOperand:
    """Return an output of float32, which the kernels of recurrent layers write. Raises NoLowering for other types: a
    file may state one of fewer bytes."""
    y = ctx.output(shape, index)
    if y.dtype is not float32:
        raise NoLowering(f"an output {y}")
    return y


@contextlib.contextmanager
def direction_outputs(ctx: LoweringContext, x: RuleOperand, sizes: Sequence[int]) -> Iterator[list[Buffer]]:
    """Yield the output of each direction, of these last sizes; if the operator merges them, concatenate them after."""
    shapes, merged = [(*x.shape[:2], n) for n in sizes], bool(ctx.attr("merge_outputs"))
    expected = [(*x.shape[:2], sum(sizes))] if merged else shapes
    ys = [float_output(ctx, shape, i) for i, shape in enumerate(expected)]
    if not merged:
        yield [y.buffer for y in ys]
        return
    outs = [ctx.new(float32, shape, f".direction{i}") for i, shape in enumerate(shapes)]
    yield outs
    starts = (0, sizes[0])
    maps = tuple(IndexMap((0, 0, start), shape, 0, row_major(shape)) for start, shape in zip(starts, shapes))
    ctx.add(Move, ys[0].buffer, tuple(outs), maps)


def _direction(
    ctx: LoweringContext,
    x: RuleOperand,
    shape: tuple[int, ...],
    out: Buffer,
    places: tuple[int, int],
    *,
    time_major: bool,
    backward: bool = False,
    more: tuple[RuleOperand, int] | None = None,
) -> None:
    """Add the operations of one direction.

    shape: [time, batch, n] or [batch, time, n]. places: offset of its weights relative to the first direction's, and
    index of its state. more: an auxiliary input, and the index of its weights.
    """
    offset, state = places
    if x.dtype is not float32 or len(shape) != 3 or (more is not None and more[0].dtype is not float32):
        raise NoLowering(f"an LSTM of {x}")
    gates = range(0 if ctx.optional(WEIGHTS + offset) is not None else 1, 4)
    diagonal = bool(ctx.attr("diagonal_recurrent_tensors"))
    recurrent = [(_diagonal if diagonal else matrix)(ctx, RECURRENT + offset + g) for g in gates]
    cells, outputs = recurrent[0].buffer.shape * (2 if diagonal else 1)
    batch = shape[1] if time_major else shape[0]
    h, c = (state_of(ctx, state + i, batch, n) for i, n in enumerate((outputs, cells)))
    peepholes = [ctx.optional(PEEPHOLES + offset + i) for i in range(0 if len(gates) == 4 else 1, 3)]
    peephole_weights = [
        _vector(ctx, PEEPHOLES + offset + i + 3 - len(peepholes), cells)
        for i, p in enumerate(peepholes)
        if p is not None
    ]
    if len(peephole_weights) not in (0, len(peepholes)):
        raise NoLowering("peepholes")
    projection, scales = _projection(ctx, offset, cells, outputs)
    norms = () if offset or ctx.operator == BIDIRECTIONAL else _norms(ctx, gates, cells)
    matrices = () if diagonal else recurrent
    rounding = {m.rounding for m in (*matrices, *(m for m in projection if isinstance(m, Matrix)))} or {""}
    if len(rounding) > 1 or any(m.buffer.shape != recurrent[0].buffer.shape for m in recurrent):
        raise NoLowering("weights of several types or shapes")
    sums = []
    for gate in gates:
        bias = None if norms else BIASES + offset + gate
        total = from_input(ctx, x, WEIGHTS + offset + gate, bias, cells)
        if more is not None and ctx.optional(more[1] + gate) is not None:
            total = from_input(ctx, more[0], more[1] + gate, total, cells)
        sums.append(total)
    ctx.add(
        Lstm,
        out,
        tuple(sums),
        tuple(m.buffer for m in recurrent),
        h,
        c,
        tuple(peephole_weights),
        tuple(p.buffer if isinstance(p, Matrix) else p for p in projection),
        ctx.attr("fused_activation_function") or "NONE",
        time_major,
        (float(ctx.attr("cell_clip")), float(ctx.attr("proj_clip"))),
        backward,
        norms,
        *rounding,
        (*(m.scale for m in recurrent), *scales),
    )


def _projection(
    ctx: LoweringContext, offset: int, cells: int, outputs: int
) -> tuple[tuple[Matrix | Buffer, ...], tuple[float, ...]]:
    """Return the projection from cells to outputs, its bias, and the scale of the matrix; empty tuples if absent."""
    if ctx.optional(PROJECTION + offset) is None:
        if cells != outputs or ctx.optional(PROJECTION + offset + 1) is not None:
            raise NoLowering(f"{cells} cells and {outputs} outputs")
        return (), ()
    weights = matrix(ctx, PROJECTION + offset)
    if weights.buffer.shape != (outputs, cells):
        raise NoLowering("a projection")
    if ctx.optional(PROJECTION + offset + 1) is None:
        return (weights,), (weights.scale,)
    bias = _parameters(ctx, PROJECTION + offset + 1)
    if bias.shape != (outputs,):
        raise NoLowering("a projection")
    return (weights, bias.buffer), (weights.scale,)


def _norms(ctx: LoweringContext, gates: range, cells: int) -> tuple[Buffer, ...]:
    """Return coefficients and biases of gates with layer normalization; an empty tuple if absent."""
    has_norm = [ctx.optional(NORMS + gate) is not None for gate in gates]
    if not any(has_norm):
        return ()
    parameters = [_parameters(ctx, index + gate) for gate in gates for index in (NORMS, BIASES)]
    if not all(has_norm) or any(o.shape != (cells,) for o in parameters):
        raise NoLowering("layer normalisation of some gates")
    return tuple(Buffer(o.buffer.name, float32, o.shape, o.constant) for o in parameters)


class Matrix(NamedTuple):
    """Weights. rounding: of the rows that they are multiplied with; scale: of quantized weights."""

    buffer: Buffer
    scale: float
    rounding: str


def matrix(ctx: LoweringContext, index: int) -> Matrix:
    """Return constant weights: float32, or int8 for hybrid kernels; uint8 of the first files is int8, too.

    raises NoLowering for others
    """
    w = ctx.operand(index)
    if w.is_constant and w.dtype is float32 and len(w.shape) == 2:
        return Matrix(w.buffer, 1.0, "")
    if w.buffer.constant is None or w.dtype not in (int8, uint8) or len(w.shape) != 2 or (w.dtype is int8 and w.zero):
        raise NoLowering(f"weights {w}")
    rounding = "asymmetric" if ctx.attr("asymmetric_quantize_inputs") else "symmetric"
    return Matrix(ctx.bits(w.buffer, int8, w.shape), w.scale, rounding)


def _diagonal(ctx: LoweringContext, index: int) -> Matrix:
    """Return the diagonal of a matrix as real values."""
    return Matrix(_vector(ctx, index, ctx.operand(index).size), 1.0, "")


def _vector(ctx: LoweringContext, index: int, n: int) -> Buffer:
    """Return constant weights per cell as real values."""
    w = ctx.operand(index)
    if not w.is_constant or w.shape != (n,) or w.dtype not in (float32, int8, uint8):
        raise NoLowering(f"weights {w}")
    if w.dtype is float32:
        return w.buffer
    assert w.constant is not None
    reals = w.constant.view(np.int8).astype(np.float32) * np.float32(w.scale)
    return Buffer(f"{w.buffer.name}.reals", float32, w.shape, reals)


def _parameters(ctx: LoweringContext, index: int) -> RuleOperand:
    """Return constant float32 parameters. Raises NoLowering for others."""
    w = ctx.operand(index)
    if not w.is_constant or w.dtype is not float32:
        raise NoLowering(f"weights {w}")
    return w


def state_of(ctx: LoweringContext, index: int, batch: int, n: int) -> Buffer:
    """Return the buffer of a float32 state variable. Raises NoLowering for others."""
    s = ctx.operand(index)
    if not s.is_variable or s.size != batch * n or s.dtype is not float32:
        raise NoLowering(f"a state {s}")
    return s.buffer


def from_input(ctx: LoweringContext, x: RuleOperand, index: int, addend: int | Buffer | None, cells: int) -> Buffer:
    """Add a gate's contribution from the inputs of all steps, [rows, 1, 1, cells].

    place: index of the weights; added: index of a bias, or a previous contribution.
    """
    w, n = matrix(ctx, index), x.shape[-1]
    if w.buffer.shape != (cells, n) or not n or not x.size:
        raise NoLowering(f"weights {w.buffer}")
    rows = x.size // n
    out = ctx.new(float32, (rows, 1, 1, cells), f".gate{index}")
    total = hybrid_product(scalar(w.scale, float32)) if w.rounding else arg(0, float32)
    operands: tuple[Any, ...] = ()
    if addend is not None:
        b = ctx.operand(addend) if isinstance(addend, int) else None
        if b is not None and (b.shape != (cells,) or b.dtype is not float32):
            raise NoLowering(f"a bias {b}")
        operands = (b.buffer if b is not None else addend,)
        total = apply("add", total, arg(1, float32))
    ctx.add(
        Contract,
        out,
        ctx.viewed(x.buffer, (rows, 1, 1, n)),
        ctx.viewed(w.buffer, (cells, 1, 1, n)),
        operands,
        total,
        Window((1, 1)),
        rounding=w.rounding,
    )
    return out


ACTIVATION = 1 / 128, 128
"""Scale and zero point of uint8 inputs and outputs."""


def basic_lstm(ctx: LoweringContext) -> None:
    """Lower an LSTM of kernel_type BASIC: one matrix for all gates, over concatenated input and state."""
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
    if tuple(o.dtype for o in (y, state, joined, gates)) != ((uint8, int16, uint8, int16) if fixed else (float32,) * 4):
        raise NoLowering(f"outputs {y}, {state}, {joined}, {gates}")
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
    ctx.add(Move, joined.buffer, (x.buffer, h.buffer), tuple(ends))
    kind = int32 if fixed else float32
    rows = (batch, 1, 1, n + cells)
    sums = ctx.new(kind, (batch, 1, 1, 4 * cells), ".sums")
    ctx.add(
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
        ctx.add(Move, gates.buffer, (flat,), (IndexMap((0, 0), gates.shape, 0, row_major(gates.shape)),))

    def make(packed: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.add(BasicLstm, packed, flat, h.buffer, c.buffer, results, factor, power)

    ctx.with_results(make, y.buffer, state.buffer, *((gates.buffer,) if fixed else ()))


@rule("LSTMSequence")
def lstm_sequence(ctx: LoweringContext) -> None:
    """Lower the catalogue's LSTM of float32."""
    x, recurrent, h0, c0 = (_dense(ctx, i) for i in range(4))
    steps = x.shape[0]
    state = (steps, *h0.shape)
    shapes = [state, h0.shape, h0.shape, state, x.shape]
    outputs = [ctx.output(shape, i).buffer for i, shape in enumerate(shapes)]

    def make(packed: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.add(LstmSequence, packed, x, recurrent, h0, c0, results)

    ctx.with_results(make, *outputs)


@rule("LSTMSequenceGrad")
def lstm_sequence_grad(ctx: LoweringContext) -> None:
    """Lower the gradient of the catalogue's LSTM of float32."""
    if ctx.optional(10) is not None:
        raise NoLowering("the gradient of cell states of all steps")
    dh, last_h, last_c, recurrent, first, c, gates = (_dense(ctx, i) for i in (0, 1, 2, 4, 6, 8, 9))
    outputs = [ctx.output(shape, i).buffer for i, shape in enumerate((gates.shape, first.shape, first.shape))]

    def make(packed: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.add(LstmSequenceGrad, packed, dh, last_h, last_c, recurrent, first, c, gates, results)

    ctx.with_results(make, *outputs)


@rule("GRUSequence")
def gru_sequence(ctx: LoweringContext) -> None:
    """Lower the catalogue's GRU of float32."""
    x, recurrent, bias, h0 = (_dense(ctx, i) for i in range(4))
    state = (x.shape[0], *h0.shape)
    outputs = [ctx.output(shape, i).buffer for i, shape in enumerate((state, h0.shape, x.shape, state))]

    def make(packed: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.add(GruSequence, packed, x, recurrent, bias, h0, results)

    ctx.with_results(make, *outputs)


@rule("GRUSequenceGrad")
def gru_sequence_grad(ctx: LoweringContext) -> None:
    """Lower the gradient of the catalogue's GRU of float32."""
    dh, last_h, recurrent, first, h, gates, inner = (_dense(ctx, i) for i in (0, 1, 3, 5, 6, 7, 8))
    outputs = [ctx.output(shape, i).buffer for i, shape in enumerate((gates.shape, gates.shape, first.shape))]

    def make(packed: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.add(GruSequenceGrad, packed, dh, last_h, recurrent, first, h, gates, inner, results)

    ctx.with_results(make, *outputs)


def _dense(ctx: LoweringContext, index: int) -> Buffer:
    operand = ctx.operand(index)
    if operand.dtype is not float32:
        raise NoLowering(f"a recurrent layer of {operand}")
    return operand.buffer
