"""Operations of recurrent layers: steps and sequences of LSTM, GRU, RNN and SVDF, and the gradients of sequences.

Not here: operations of other domains (domain_ops.py), their kernels (compiler/kernels).
"""

from __future__ import annotations

from typing import Literal

from ...core.records import record
from .buffers import Buffer
from .expressions import Expr
from .ops import LoopOp


@record
class Lstm(LoopOp):
    """A sequence of steps of a long short-term memory, float32; output [time, batch, out] (or [batch, time, out]).

        i, f, o = sigmoid(G + R h + p c)    g = act(G + R h)    c' = f c + i g    h' = P (o act(c')) + p_b
    gates: G, what does not depend on the state: [time, batch, cells] each (batch first as the output), for i, f, g, o;
    of three i is 1 - f. recurrent: R, [cells, out] each, or [cells], the diagonals of matrices. peepholes: p, [cells],
    for i, f, o (f, o); or none. projection: P [out, cells] and p_b [out]; P; or none, and out is cells. h [batch, out],
    c [batch, cells]: the state, which is read and then written. clips: of c' and of h' after a projection; 0: none.
    backward: from the last step to the first.

    norms: of each gate coefficients [cells] and a bias [cells], for i, f, g, o (f, g, o), or none: what a function is
    applied to is normalised over the cells, times the coefficient, plus the bias then. rounding: h, and what is
    projected, are rounded to int8 as Contract's input; R and P are int8, and scales what one stands for, of each gate
    and of P.
    """

    gates: tuple[Buffer, ...]
    recurrent: tuple[Buffer, ...]
    h: Buffer
    c: Buffer
    peepholes: tuple[Buffer, ...] = ()
    projection: tuple[Buffer, ...] = ()
    activation: str = "TANH"
    time_major: bool = True
    clips: tuple[float, float] = (0.0, 0.0)
    backward: bool = False
    norms: tuple[Buffer, ...] = ()
    rounding: Literal["", "symmetric", "asymmetric"] = ""
    scales: tuple[float, ...] = ()


@record
class LstmInt8(LoopOp):
    """The steps of an LSTM of int8 with int16 cells; output int8 [time, batch, out] (or [batch, time, out]).

        i, f, o = sigmoid(G + R h + p c)    g = tanh(G + R h)    c' = f c + i g    h' = P (o tanh(c'))
    gates: G as sums of int32, for i, f, g, o; of three i is 1 - f. recurrent: R, int8. projection: P, int8, and its
    bias, int32; P; or none. h int8 and c int16: the state, read and written. clips: of c' and h', in their steps.
    power: a step of c is 2^power. zeros: of what is projected, of h.

    Factors are (m, e), m 2^(e - 31): gate_factors take G and R h of each gate to its steps, 2^-12 but where sums are
    normalised; hidden_factor takes o tanh(c'), output_factor what P gives to steps of int8.

    peepholes: p, int16 [cells], for i, f, o (f, o); peephole_factors take p c to steps of the gate. norms: of each gate
    coefficients, int16 [cells], and a bias, int32 [cells]; or none: sums are normalised over the cells, as
    lite/ops/quantized/recurrent.py says, to steps of 2^-12. norm_factors: (m, e, least variance) of each.
    """

    gates: tuple[Buffer, ...]
    recurrent: tuple[Buffer, ...]
    h: Buffer
    c: Buffer
    projection: tuple[Buffer, ...]
    gate_factors: tuple[tuple[int, int], ...]
    hidden_factor: tuple[int, int]
    output_factor: tuple[int, int]
    zeros: tuple[int, int]
    clips: tuple[int, int]
    power: int
    time_major: bool
    peepholes: tuple[Buffer, ...] = ()
    peephole_factors: tuple[tuple[int, int], ...] = ()
    norms: tuple[Buffer, ...] = ()
    norm_factors: tuple[tuple[int, int, int], ...] = ()


@record
class LstmInt8Gates(LoopOp):
    """One step of an LSTM of int8 whose gates are int8, with cells of 2^-15; output int8 [batch, out].

        f, o = sigmoid(n(G + R h))    g = tanh(n(G + R h))    c' = f c + (1 - f) g    h' = P (o tanh(c'))
    inside, outside: R h and G of f, g, o as sums of int32 [batch, cells]. n: rounds both to int8, and normalizes their
    sum over the cells, in float32, as lite/ops/quantized/recurrent.py says. norms: for each gate coefficients and a
    bias, float32 [3, 2, cells], and the coefficients' scales, float32 [3]. tables: sigmoid and tanh of gates, tanh of
    cells, int16 [65536]. projection: P, int8, and its bias, int32; or P. h int8 and c int16: the state, c read and both
    written. clips: of c' and h', in their steps. zero: of h.

    Factors are (m, e), m 2^(e - 31). parts: of each gate, for G and for R h, the factor to their int8, its zero point
    and the factor to the scale of the sum.
    """

    outside: tuple[Buffer, ...]
    inside: tuple[Buffer, ...]
    norms: tuple[Buffer, ...]
    tables: tuple[Buffer, ...]
    projection: tuple[Buffer, ...]
    h: Buffer
    c: Buffer
    parts: tuple[tuple[int, int, int, int, int], ...]
    output_factor: tuple[int, int]
    zero: int
    clips: tuple[int, int]


@record
class BasicLstm(LoopOp):
    """One step of an LSTM whose gates are i, g, f, o side by side: c' = sigmoid(f) c + sigmoid(i) tanh(g), h' =
    sigmoid(o) tanh(c').

    gates [batch, 4 cells], float32; or sums of int32, which factor, (m, e), takes to int16 of steps of 2^-12. h, c: the
    state, read and written: float32, or uint8 of steps of 2^-7 and int16 of steps of 2^power. results: h', c' and, of
    integers, the gates as int16; and the byte in `output` where each begins.
    """

    gates: Buffer
    h: Buffer
    c: Buffer
    results: tuple[tuple[Buffer, int], ...]
    factor: tuple[int, int] = (0, 0)
    power: int = 0


@record
class LstmSequence(LoopOp):
    """All steps of the catalogue's LSTMSequence, float32.

    x [time, batch, 4 cells]: the input projections of i, f, g, o, side by side. recurrent: [cells, 4 cells]. h, c
    [batch, cells]: the states before the first step. results: h [time, batch, cells], the last h and c, c [time, batch,
    cells] and the activated gates, like x; and the byte in `output` where each begins.
    """

    x: Buffer
    recurrent: Buffer
    h: Buffer
    c: Buffer
    results: tuple[tuple[Buffer, int], ...]


@record
class LstmSequenceGrad(LoopOp):
    """The gradients of LstmSequence with respect to x and the first states, from the last step to the first.

    dh [time, batch, cells], last_h, last_c [batch, cells]: the gradients of its results; recurrent, first (c before the
    first step), c, gates: its operands and results. results: the gradients of x, h and c; and the byte in `output`
    where each begins.
    """

    dh: Buffer
    last_h: Buffer
    last_c: Buffer
    recurrent: Buffer
    first: Buffer
    c: Buffer
    gates: Buffer
    results: tuple[tuple[Buffer, int], ...]


@record
class GruSequence(LoopOp):
    """All steps of the catalogue's GRUSequence, float32.

    x [time, batch, 3 cells]: the input projections of z, r, g, side by side. recurrent: [cells, 3 cells]; bias: [3
    cells]. h [batch, cells]: the state before the first step. results: h [time, batch, cells], the last h, the gates,
    like x, and the part of n for g [time, batch, cells]; and the byte in `output` where each begins.
    """

    x: Buffer
    recurrent: Buffer
    bias: Buffer
    h: Buffer
    results: tuple[tuple[Buffer, int], ...]


@record
class GruSequenceGrad(LoopOp):
    """The gradients of GruSequence with respect to x, n and the first state, from the last step to the first.

    dh [time, batch, cells], last_h [batch, cells]: the gradients of its results; recurrent, first (h before the first
    step), h, gates, inner: its operands and results. results: the gradients of x, n and h; and the byte in `output`
    where each begins.
    """

    dh: Buffer
    last_h: Buffer
    recurrent: Buffer
    first: Buffer
    h: Buffer
    gates: Buffer
    inner: Buffer
    results: tuple[tuple[Buffer, int], ...]


@record
class Gru(LoopOp):
    """A sequence's steps of gated recurrent units, float32; output [batch, time, cells], all sequences of one length.

        u, r = sigmoid(x_u + h U), sigmoid(x_r + h R)    c = act(x_c + (r h) C)
        h' = (1 - u) h + u c, or where the gate `keeps` u h + (1 - u) c
    x [batch, time, 3 cells]: what does not depend on the state, of u, r and c side by side. weight: in its memory lie
    U and R as [cells, 2 cells], then C as [cells, cells]. h: the first state [batch, cells]; zeros where it is left
    out. backward: from the last step.
    """

    x: Buffer
    weight: Buffer
    h: tuple[Buffer, ...] = ()
    activation: str = "TANH"
    keeps: bool = False
    backward: bool = False


@record
class Rnn(LoopOp):
    """A sequence's steps of simple recurrence, float32: h' = act(x + R h).

    output: [time, batch, units] (or [batch, time, units]).

    x: what does not depend on the state, of the output's shape. recurrent: R, [units, units]. h [batch, units]: the
    state, read and written. rounding, scale: as of Lstm. backward: from the last step.
    """

    x: Buffer
    recurrent: Buffer
    h: Buffer
    activation: str = "TANH"
    time_major: bool = True
    backward: bool = False
    rounding: Literal["", "symmetric", "asymmetric"] = ""
    scale: float = 1.0


@record
class Svdf(LoopOp):
    """Filters over time: output [batch, units] = expr(sum over a unit's filters and m of time[f, m] state[f, m],
    operands...).

    features [batch, filters]: what each filter gets now. state [batch, filters, memory]: what it has got, the newest
    last; moved back by one and written. time: [filters, memory]. Floats, or int16 whose sums are int32 and wrap.
    """

    features: Buffer
    state: Buffer
    time: Buffer
    operands: tuple[Buffer, ...]
    expr: Expr
