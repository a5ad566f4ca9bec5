"""Long short-term memory over sequences of one length.

Lives here: LSTMSequence, its gradient, and the gradient of that.
Not here: sequences of different lengths (ops/sequence/lstm.py), the layer with its weights (nn/layers/recurrent.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import floating
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from ...scalar.arrays import sigmoid
from .. import like_device
from ..accumulation import wide, widened
from ..array import concat, expand_dims, reshape, shape, zeros_like
from ..definition import operator
from ..linalg import matmul
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor


def gates_of(x: np.ndarray, number: int) -> list[np.ndarray]:
    """Return views of the gates, which lie side by side along the last axis."""
    units = x.shape[-1] // number
    return [x[..., k * units : (k + 1) * units] for k in range(number)]


def wide_copy(x: np.ndarray) -> np.ndarray:
    """Return a copy of x in the dtype that it is computed in."""
    return x.astype(wide(x.dtype))


def with_first(first: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return the states before each step, as `states_before`, of arrays."""
    return np.concatenate([first[None], states])[:-1]


def sequence_shapes(
    layer: str, gates: int, x: TensorShape, operands: Mapping[str, TensorShape]
) -> tuple[list[int | None], list[int | None]]:
    """Return the shapes [time, batch, units] of states and [time, batch, gates units] of gates.

    layer: its name in errors; x: the shape of its input projections; operands: shapes by name, `recurrent_kernel`
    [units, gates units], `bias` [gates units], `gates` like x; others of rank 2 [batch,
    units], of rank 3 [time, batch, units]. Raises InvalidArgumentError for an operand of another shape.
    """
    steps, batch, width = (None, None, None) if x.dims is None else x.dims
    kernel = operands["recurrent_kernel"]
    units = None if kernel.dims is None else kernel.dims[0]
    if units is None and width is not None:
        if width % gates:
            raise InvalidArgumentError(
                what=f"the last axis of x is not a multiple of {gates}",
                found=f"shape {x}",
                wanted=f"[time, batch, {gates} * units]",
            )
        units = width // gates
    wide = None if units is None else gates * units
    states, projections = [steps, batch, units], [steps, batch, wide]
    special = {"x": projections, "gates": projections, "recurrent_kernel": [units, wide], "bias": [wide]}
    for name, operand in {"x": x, **operands}.items():
        expected = special.get(name) or (states[1:] if operand.rank == 2 else states)
        if not operand.is_compatible_with(expected):
            sizes = ", ".join("?" if d is None else str(d) for d in expected)
            raise InvalidArgumentError(
                what=f"{name!r} does not fit the other operands of {layer}",
                found=f"shape {operand}",
                wanted=f"shape [{sizes}] for {units} units",
            )
    return states, projections


def _shapes(op: Any, x: Tensor, names: Sequence[str]) -> tuple[list[int | None], list[int | None]]:
    operands = {name: getattr(op, name) for name in names}
    shapes = {name: v.spec.shape for name, v in operands.items() if v is not None}
    return sequence_shapes("an LSTM", 4, x.spec.shape, shapes)


@operator
class LSTMSequence(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """Run long short-term memory over all steps of a batch, given the projections of its inputs.

    .. math:: i, f, g, o = x_t + h_{t-1} R, \\quad c_t = \\sigma(f) c_{t-1} + \\sigma(i) \\tanh(g), \\quad
              h_t = \\sigma(o) \\tanh(c_t)

    x: [time, batch, 4 units], the input projections of input gate, forget gate, candidate and output gate, side by
    side, with their biases; recurrent_kernel: R, [units, 4 units]; h0, c0: the states before the first step, [batch,
    units]. h: the states after each step, [time, batch, units]; last_h, last_c: those after the last step, [batch,
    units]. Differentiable twice.
    raises InvalidArgumentError for operands whose shapes disagree
    source: S. Hochreiter and J. Schmidhuber, Long short-term memory, 1997; with the forget gate of Gers et al., 2000
    """

    x = Input(floating, rank=3)
    recurrent_kernel = Input(floating, rank=2, like="x")
    h0 = Input(floating, rank=2, like="x")
    c0 = Input(floating, rank=2, like="x")
    h = Output(like="x")
    last_h = Output(like="x")
    last_c = Output(like="x")
    c = Output(like="x", intermediate=True, doc="cell states after each step")
    gates = Output(like="x", intermediate=True, doc="activated: sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)")
    no_need_buffer = ("x",)
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec, TensorSpec, TensorSpec]:
        states, gates = _shapes(op, op.x, ("recurrent_kernel", "h0", "c0"))
        dtype = op.x.spec.dtype
        state, last = TensorSpec(states, dtype), TensorSpec(states[1:], dtype)
        return state, last, last, state, TensorSpec(gates, dtype)

    def compute(op, x: Any, recurrent_kernel: Any, h0: Any, c0: Any) -> tuple[np.ndarray, ...]:
        steps, batch, _ = x.shape
        units, kernel, gates = len(recurrent_kernel), widened(recurrent_kernel), wide_copy(x)
        h, c = (like_device.empty(gates, (steps, batch, units), gates.dtype) for _ in range(2))
        state, cell = widened(h0), widened(c0)
        for step in range(steps):
            z = gates[step]
            z += state @ kernel
            for part in (z[:, : 2 * units], z[:, 3 * units :]):
                part[...] = sigmoid(part)
            candidate = np.tanh(z[:, 2 * units : 3 * units], out=z[:, 2 * units : 3 * units])
            np.multiply(z[:, units : 2 * units], cell, out=c[step])
            c[step] += z[:, :units] * candidate
            np.multiply(z[:, 3 * units :], np.tanh(c[step]), out=h[step])
            state, cell = h[step], c[step]
        return tuple([a.astype(x.dtype, copy=False) for a in (h, state.copy(), cell.copy(), c, gates)])

    def gradient(
        op, dh: Tensor, dlast_h: Tensor, dlast_c: Tensor, dc: Tensor, dgates: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        operands = (op.x, op.recurrent_kernel, op.h0, op.c0, op.h, op.c, op.gates)
        dx, dh0, dc0 = LSTMSequenceGrad(dh, dlast_h, dlast_c, *operands)
        return dx, product_over_time(states_before(op.h0, op.h), dx), dh0, dc0


def states_before(first: Tensor, states: Tensor) -> Tensor:
    """Return the states before each step: the first state, then all states but the last."""
    return concat([expand_dims(first, 0)[: shape(states)[0]], states[:-1]], 0)  # one copy; without steps there is none


def product_over_time(states: Tensor, gates: Tensor) -> Tensor:
    """Return sum over time and batch of states[t, b, :, None] * gates[t, b, None, :], as one matrix product."""
    rows, columns = (reshape(v, concat([[-1], shape(v)[2:]], 0)) for v in (states, gates))
    return matmul(rows, columns, transpose_a=True)


@operator
class LSTMSequenceGrad(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """Compute the gradients of LSTMSequence with respect to x and its initial states, through time.

    .. math:: p_t = dh_t + dz_{t+1} R^T, \\quad
              q_t = dc_t + q_{t+1} f_{t+1} + p_t o_t (1 - \\tanh^2 c_t), \\quad
              dz_t = [q g i (1 - i), \\; q c_{t-1} f (1 - f), \\; q i (1 - g^2), \\; p \\tanh(c) o (1 - o)]_t

    with the gradients of the last states in place of the terms of t + 1 at the last step. dh, dc: [time, batch, units];
    dlast_h, dlast_c: [batch, units]; the others: operands and results of LSTMSequence, of which x, h0 and h are not
    read: they receive the second derivatives that pass through the gates. dx: dz, [time, batch, 4 units]; dh0, dc0:
    [batch, units]. Differentiable once.
    raises InvalidArgumentError for operands whose shapes disagree
    """

    dh = Input(floating, rank=3)
    dlast_h = Input(floating, rank=2, like="dh")
    dlast_c = Input(floating, rank=2, like="dh")
    x = Input(floating, rank=3, like="dh")
    recurrent_kernel = Input(floating, rank=2, like="dh", doc="weights of LSTMSequence")
    h0 = Input(floating, rank=2, like="dh")
    c0 = Input(floating, rank=2, like="dh")
    h = Input(floating, rank=3, like="dh")
    c = Input(floating, rank=3, like="dh")
    gates = Input(floating, rank=3, like="dh")
    dc = Input(floating, rank=3, like="dh", optional=True)
    dx = Output(like="dh")
    dh0 = Output(like="dh")
    dc0 = Output(like="dh")
    no_need_buffer = ("x",)
    shape_only = ("x", "h0", "h")
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        names = ("recurrent_kernel", "dh", "dlast_h", "dlast_c", "h0", "c0", "h", "c", "gates", "dc")
        states, gates = _shapes(op, op.x, names)
        first, dtype = states[1:], op.dh.spec.dtype
        return TensorSpec(gates, dtype), TensorSpec(first, dtype), TensorSpec(first, dtype)

    def compute(
        op,
        dh: Any,
        dlast_h: Any,
        dlast_c: Any,
        x: Any,
        recurrent_kernel: Any,
        h0: Any,
        c0: Any,
        h: Any,
        c: Any,
        gates: Any,
        dc: Any,
    ) -> tuple[np.ndarray, ...]:
        arrays = [None if a is None else widened(a) for a in (dh, dlast_h, dlast_c, recurrent_kernel, c0, c, gates, dc)]
        grads = _backpropagate(*arrays)[:3]
        return tuple([a.astype(dh.dtype, copy=False) for a in grads])

    def gradient(op, ddx: Tensor, ddh0: Tensor, ddc0: Tensor) -> tuple[Any, ...]:
        operands = (op.dh, op.dlast_h, op.dlast_c, op.recurrent_kernel, op.c0, op.c, op.gates, op.dc)
        ddh, ddc, last_p, last_q, hidden, dz, dc0, dc = LSTMSequenceGradGrad(ddx, ddh0, ddc0, *operands)
        # The gates are functions of x and h before the step; h and c are results of the steps before.
        dbefore = matmul(dz, op.recurrent_kernel, transpose_b=True)
        after = concat([dbefore, expand_dims(zeros_like(ddh0), 0)], 0)
        last, through = zeros_like(ddh0), (op.x, op.recurrent_kernel, op.h0, op.c0, op.h, op.c, op.gates)
        dx, dh0, dc0_through = LSTMSequenceGrad(after[1:], last, last, *through, dc)
        dx = dx + dz
        dkernel = product_over_time(hidden, op.dx) + product_over_time(states_before(op.h0, op.h), dx)
        through_states = (dx, dkernel, after[0] + dh0, dc0 + dc0_through, None, None, None)
        return ddh, last_p, last_q, *through_states, None if op.dc is None else ddc


def _backpropagate(
    dh: Any, dlast_h: Any, dlast_c: Any, kernel: Any, c0: Any, c: Any, gates: Any, dc: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return dx, dh0 and dc0 of LSTMSequenceGrad, and p and q of all steps. Factors of p and q that do not depend on
    later steps are computed for all steps at once."""
    i, f, g, o = gates_of(gates, 4)
    before = with_first(c0, c)
    activated = np.tanh(c)
    through = o * (1 - activated * activated)
    slopes = [g * i * (1 - i), before * f * (1 - f), i * (1 - g * g), activated * o * (1 - o)]
    dx, p, q = np.empty_like(gates), dh.copy(), np.zeros_like(c) if dc is None else dc.copy()
    units, transposed = c.shape[-1], kernel.T.copy()
    next_p, next_q = dlast_h, dlast_c
    for step in reversed(range(len(c))):
        p[step] += next_p
        q[step] += next_q
        q[step] += p[step] * through[step]
        for k, slope in enumerate(slopes):
            source = p if k == 3 else q
            np.multiply(source[step], slope[step], out=dx[step, :, k * units : (k + 1) * units])
        next_p, next_q = dx[step] @ transposed, q[step] * f[step]
    return dx, next_p.copy(), next_q.copy(), p, q


@operator
class LSTMSequenceGradGrad(OperatorDefinition[tuple[Tensor, ...]]):
    """Compute the gradients of LSTMSequenceGrad with respect to its operands, from the first step to the last.

    The recurrences of LSTMSequenceGrad are differentiated by the chain rule; P, Q and Z denote the gradients with
    respect to its p, q and dz.

    .. math:: Z_t = ddx_t + P_{t-1} R, \\quad
              Q_t = Q_{t-1} f_t + [Z^i g i (1 - i) + Z^f c_{t-1} f (1 - f) + Z^g i (1 - g^2)]_t, \\quad
              P_t = [Z^o \\tanh(c) o (1 - o) + Q o (1 - \\tanh^2 c)]_t

    with :math:`P_{-1} = ddh0` and :math:`Q_{-1} = ddc0`. ddx: [time, batch, 4 units]; ddh0, ddc0: [batch, units]; the
    others as in LSTMSequenceGrad. ddh, ddc: P and Q, [time, batch, units]; last_p, last_q: P and Q of the last step,
    [batch, units]; hidden: P of the step before, [time, batch, units], whose products with dx are a part of the
    gradient of the recurrent kernel; dz: the gradient with respect to the arguments of the gates' activations, [time,
    batch, 4 units]; dc0, dc_state: with respect to c0 and c. Not differentiable: third derivatives need a loop over
    cells, `RNN(LSTMCell(units))`.
    """

    ddx = Input(floating, rank=3)
    ddh0 = Input(floating, rank=2, like="ddx")
    ddc0 = Input(floating, rank=2, like="ddx")
    dh = Input(floating, rank=3, like="ddx", doc="operand of LSTMSequenceGrad")
    dlast_h = Input(floating, rank=2, like="ddx", doc="operand of LSTMSequenceGrad")
    dlast_c = Input(floating, rank=2, like="ddx", doc="operand of LSTMSequenceGrad")
    recurrent_kernel = Input(floating, rank=2, like="ddx", doc="weights of LSTMSequence")
    c0 = Input(floating, rank=2, like="ddx")
    c = Input(floating, rank=3, like="ddx")
    gates = Input(floating, rank=3, like="ddx")
    dc = Input(floating, rank=3, like="ddx", optional=True)
    ddh = Output(like="ddx")
    ddc = Output(like="ddx")
    last_p = Output(like="ddx")
    last_q = Output(like="ddx")
    hidden = Output(like="ddx")
    dz = Output(like="ddx")
    dc0 = Output(like="ddx")
    dc_state = Output(like="ddx")
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, ...]:
        names = ("recurrent_kernel", "ddh0", "ddc0", "dh", "dlast_h", "dlast_c", "c0", "c", "gates", "dc")
        states, gates = _shapes(op, op.ddx, names)
        dtype = op.ddx.spec.dtype
        state, first = TensorSpec(states, dtype), TensorSpec(states[1:], dtype)
        return state, state, first, first, state, TensorSpec(gates, dtype), first, state

    def compute(
        op,
        ddx: Any,
        ddh0: Any,
        ddc0: Any,
        dh: Any,
        dlast_h: Any,
        dlast_c: Any,
        recurrent_kernel: Any,
        c0: Any,
        c: Any,
        gates: Any,
        dc: Any,
    ) -> tuple[np.ndarray, ...]:
        dtype = ddx.dtype
        arrays = [None if a is None else widened(a) for a in (dh, dlast_h, dlast_c, recurrent_kernel, c0, c, gates, dc)]
        _, _, _, kernel, c0, c, gates, _ = arrays
        _, _, _, p, q = _backpropagate(*arrays)
        i, f, g, o = gates_of(gates, 4)
        before = with_first(c0, c)
        activated = np.tanh(c)
        slope = 1 - activated * activated
        ddh, ddc, hidden, z = np.empty_like(c), np.empty_like(c), np.empty_like(c), wide_copy(ddx)
        now_p, now_q, previous_q = wide_copy(ddh0), wide_copy(ddc0), np.empty_like(c)
        for t in range(len(c)):
            hidden[t], previous_q[t] = now_p, now_q
            z[t] += now_p @ kernel
            z_i, z_f, z_g, z_o = gates_of(z[t], 4)
            now_q = now_q * f[t]
            now_q += z_i * g[t] * i[t] * (1 - i[t]) + z_f * before[t] * f[t] * (1 - f[t])
            now_q += z_g * i[t] * (1 - g[t] * g[t])
            now_p = z_o * activated[t] * o[t] * (1 - o[t]) + now_q * o[t] * slope[t]
            ddh[t], ddc[t] = now_p, now_q
        z_i, z_f, z_g, z_o = gates_of(z, 4)
        d_before = z_f * q * f * (1 - f)
        d_activated = z_o * p * o * (1 - o) - 2 * ddc * p * o * activated
        d_state = d_activated * slope
        d_state[:-1] += d_before[1:]
        first = d_before[0] if len(c) else np.zeros_like(c0)
        dz = np.concatenate(
            [
                (z_i * q * g * (1 - 2 * i) + z_g * q * (1 - g * g)) * i * (1 - i),
                (previous_q * q + z_f * q * before * (1 - 2 * f)) * f * (1 - f),
                (z_i * q * i * (1 - i) - 2 * z_g * q * i * g) * (1 - g * g),
                (z_o * p * activated * (1 - 2 * o) + ddc * p * slope) * o * (1 - o),
            ],
            -1,
        )
        return tuple([a.astype(dtype, copy=False) for a in (ddh, ddc, now_p, now_q, hidden, dz, first, d_state)])

    def gradient(op, *grads: Any) -> Tensor:
        raise LookupError(
            "LSTMSequenceGradGrad: an LSTM has first and second derivatives. For third ones take "
            "ow.keras.layers.RNN(ow.keras.layers.LSTMCell(units)), which runs its cell in a loop"
        )
