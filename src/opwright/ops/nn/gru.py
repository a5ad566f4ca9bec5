"""Gated recurrent units over sequences of one length.

Lives here: GRUSequence, its gradient, and the gradient of that.
Not here: sequences of different lengths (ops/sequence/gru.py), units that reset the state before its product, which
run in a loop over cells (nn/layers/recurrent.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import floating
from ...core.specs import TensorSpec
from ...scalar.arrays import sigmoid
from .. import like_device
from ..accumulation import widened
from ..array import concat, expand_dims, zeros_like
from ..definition import operator
from ..linalg import matmul
from ..math import reduce_sum
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .lstm import gates_of, product_over_time, sequence_shapes, states_before, wide_copy, with_first

GATES = 3


def _shapes(op: Any, x: Tensor, names: tuple[str, ...]) -> tuple[list[Any], list[Any]]:
    operands = {name: getattr(op, name).spec.shape for name in names}
    return sequence_shapes("a GRU", GATES, x.spec.shape, operands)


@operator
class GRUSequence(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Run gated recurrent units over all steps of a batch, given the projections of their inputs.

    .. math:: n = h_{t-1} R + b, \\quad z, r = \\sigma(x^{z,r}_t + n^{z,r}), \\quad
              g = \\tanh(x^g_t + r \\, n^g), \\quad h_t = z \\, h_{t-1} + (1 - z) g

    x: [time, batch, 3 units], the input projections of update gate, reset gate and candidate, side by side, with their
    biases; recurrent_kernel: R, [units, 3 units]; bias: b, [3 units]; h0: the state before the first step, [batch,
    units]. h: the states after each step, [time, batch, units]; last_h: that after the last step, [batch, units].
    Differentiable twice.
    raises InvalidArgumentError for operands whose shapes disagree
    source: K. Cho et al., Learning phrase representations using RNN encoder-decoder, 2014, with the reset gate after
    the product, as in cuDNN
    """

    x = Input(floating, rank=3)
    recurrent_kernel = Input(floating, rank=2, like="x")
    bias = Input(floating, rank=1, like="x")
    h0 = Input(floating, rank=2, like="x")
    h = Output(like="x")
    last_h = Output(like="x")
    gates = Output(like="x", intermediate=True, doc="z, r and g of each step")
    inner = Output(like="x", intermediate=True, doc="the part of n for g, of each step")
    no_need_buffer = ("x", "bias")
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, ...]:
        states, gates = _shapes(op, op.x, ("recurrent_kernel", "bias", "h0"))
        dtype = op.x.spec.dtype
        state = TensorSpec(states, dtype)
        return state, TensorSpec(states[1:], dtype), TensorSpec(gates, dtype), state

    def compute(op, x: Any, recurrent_kernel: Any, bias: Any, h0: Any) -> tuple[np.ndarray, ...]:
        units, kernel, gates = len(recurrent_kernel), widened(recurrent_kernel), wide_copy(x)
        h, inner = (like_device.empty(gates, (*x.shape[:2], units), gates.dtype) for _ in range(2))
        state, added = widened(h0), widened(bias)
        for step in range(len(x)):
            n = state @ kernel + added
            z = gates[step]
            z[:, : 2 * units] = sigmoid(z[:, : 2 * units] + n[:, : 2 * units])
            inner[step] = n[:, 2 * units :]
            candidate = z[:, 2 * units :]
            candidate += z[:, units : 2 * units] * inner[step]
            np.tanh(candidate, out=candidate)
            np.subtract(state, candidate, out=h[step])
            h[step] *= z[:, :units]
            h[step] += candidate
            state = h[step]
        return tuple([a.astype(x.dtype, copy=False) for a in (h, state.copy(), gates, inner)])

    def gradient(
        op, dh: Tensor, dlast_h: Tensor, dgates: Tensor, dinner: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        operands = (op.x, op.recurrent_kernel, op.bias, op.h0, op.h, op.gates, op.inner)
        dx, dn, dh0 = GRUSequenceGrad(dh, dlast_h, *operands)
        return dx, product_over_time(states_before(op.h0, op.h), dn), reduce_sum(dn, [0, 1]), dh0


@operator
class GRUSequenceGrad(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """Compute the gradients of GRUSequence with respect to x, n and its initial state, through time.

    .. math:: p_t = dh_t + p_{t+1} z_{t+1} + dn_{t+1} R^T, \\quad
              dx_t = [p (h_{t-1} - g) z (1 - z), \\; dx^g n^g r (1 - r), \\; p (1 - z) (1 - g^2)]_t, \\quad
              dn_t = [dx^z, \\; dx^r, \\; dx^g r]_t

    with the gradient of the last state in place of the terms of t + 1 at the last step. dh: [time, batch, units];
    dlast_h: [batch, units]; the others: operands and results of GRUSequence, of which x and bias are not read: they
    receive the second derivatives that pass through the gates. dx, dn: [time, batch, 3 units]; dh0: [batch, units].
    Differentiable once.
    raises InvalidArgumentError for operands whose shapes disagree
    """

    dh = Input(floating, rank=3)
    dlast_h = Input(floating, rank=2, like="dh")
    x = Input(floating, rank=3, like="dh")
    recurrent_kernel = Input(floating, rank=2, like="dh", doc="weights of GRUSequence")
    bias = Input(floating, rank=1, like="dh")
    h0 = Input(floating, rank=2, like="dh")
    h = Input(floating, rank=3, like="dh")
    gates = Input(floating, rank=3, like="dh")
    inner = Input(floating, rank=3, like="dh", doc="result of GRUSequence")
    dx = Output(like="dh")
    dn = Output(like="dh")
    dh0 = Output(like="dh")
    shape_only = no_need_buffer = ("x", "bias")
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        names = ("recurrent_kernel", "dh", "dlast_h", "bias", "h0", "h", "gates", "inner")
        states, gates = _shapes(op, op.x, names)
        dtype = op.dh.spec.dtype
        return TensorSpec(gates, dtype), TensorSpec(gates, dtype), TensorSpec(states[1:], dtype)

    def compute(
        op, dh: Any, dlast_h: Any, x: Any, recurrent_kernel: Any, bias: Any, h0: Any, h: Any, gates: Any, inner: Any
    ) -> tuple[np.ndarray, ...]:
        grads = _backpropagate(*map(widened, (dh, dlast_h, recurrent_kernel, h0, h, gates, inner)))[:3]
        return tuple([a.astype(dh.dtype, copy=False) for a in grads])

    def gradient(op, ddx: Tensor, ddn: Tensor, ddh0: Tensor) -> tuple[Any, ...]:
        operands = (op.dh, op.dlast_h, op.recurrent_kernel, op.h0, op.h, op.gates, op.inner)
        ddh, last_p, hidden, dx, dn, dbefore = GRUSequenceGradGrad(ddx, ddn, ddh0, *operands)
        # The gates are functions of x and h before the step; h is a result of the steps before.
        dbefore = dbefore + matmul(dn, op.recurrent_kernel, transpose_b=True)
        zeros = zeros_like(ddh0)
        after = concat([dbefore, expand_dims(zeros, 0)], 0)
        through = (op.x, op.recurrent_kernel, op.bias, op.h0, op.h, op.gates, op.inner)
        dx_through, dn_through, dh0 = GRUSequenceGrad(after[1:], zeros, *through)
        dn = dn + dn_through
        dkernel = product_over_time(hidden, op.dn) + product_over_time(states_before(op.h0, op.h), dn)
        return ddh, last_p, dx + dx_through, dkernel, reduce_sum(dn, [0, 1]), after[0] + dh0, None, None, None


def _backpropagate(
    dh: Any, dlast_h: Any, kernel: Any, h0: Any, h: Any, gates: Any, inner: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return dx, dn and dh0 of GRUSequenceGrad, and p of all steps."""
    z, r, g = gates_of(gates, GATES)
    before = with_first(h0, h)
    of_update, of_candidate, of_reset = (before - g) * z * (1 - z), (1 - z) * (1 - g * g), inner * r * (1 - r)
    dx, dn, p = np.empty_like(gates), np.empty_like(gates), dh.copy()
    units, transposed = h.shape[-1], kernel.T.copy()
    following = dlast_h
    for step in reversed(range(len(h))):
        p[step] += following
        now = dx[step]
        np.multiply(p[step], of_update[step], out=now[:, :units])
        np.multiply(p[step], of_candidate[step], out=now[:, 2 * units :])
        np.multiply(now[:, 2 * units :], of_reset[step], out=now[:, units : 2 * units])
        dn[step] = now
        dn[step, :, 2 * units :] *= r[step]
        following = dn[step] @ transposed
        following += p[step] * z[step]
    return dx, dn, following.copy(), p


@operator
class GRUSequenceGradGrad(OperatorDefinition[tuple[Tensor, ...]]):
    """Compute the gradients of GRUSequenceGrad with respect to its operands, from the first step to the last.

    The recurrence of GRUSequenceGrad is differentiated by the chain rule; P, X and N denote the gradients with respect
    to its p, dx and dn, where what dx and dn have in common counts in N.

    .. math:: N_t = ddn_t + P_{t-1} R, \\quad
              G_t = [ddx^g + N^g r + (ddx^r + N^r) n^g r (1 - r)]_t, \\quad
              P_t = P_{t-1} z_t + [(ddx^z + N^z) (h_{t-1} - g) z (1 - z) + G (1 - z) (1 - g^2)]_t

    with :math:`P_{-1} = ddh0`. ddx, ddn: [time, batch, 3 units]; ddh0: [batch, units]; the others as in
    GRUSequenceGrad. ddh: P, [time, batch, units]; last_p: P of the last step, [batch, units]; hidden: P of the step
    before, [time, batch, units], whose products with dn are a part of the gradient of the recurrent kernel; dx_gates,
    dn_gates: the gradients with respect to x and n through the gates, [time, batch, 3 units]; dbefore: with respect to
    the state before each step, where GRUSequenceGrad reads it, [time, batch, units]. Not differentiable: third
    derivatives need a loop over cells, `RNN(GRUCell(units))`.
    """

    ddx = Input(floating, rank=3)
    ddn = Input(floating, rank=3, like="ddx")
    ddh0 = Input(floating, rank=2, like="ddx")
    dh = Input(floating, rank=3, like="ddx", doc="operand of GRUSequenceGrad")
    dlast_h = Input(floating, rank=2, like="ddx", doc="operand of GRUSequenceGrad")
    recurrent_kernel = Input(floating, rank=2, like="ddx", doc="weights of GRUSequence")
    h0 = Input(floating, rank=2, like="ddx")
    h = Input(floating, rank=3, like="ddx")
    gates = Input(floating, rank=3, like="ddx")
    inner = Input(floating, rank=3, like="ddx", doc="result of GRUSequence")
    ddh = Output(like="ddx")
    last_p = Output(like="ddx")
    hidden = Output(like="ddx")
    dx_gates = Output(like="ddx")
    dn_gates = Output(like="ddx")
    dbefore = Output(like="ddx")
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, ...]:
        names = ("recurrent_kernel", "ddh0", "dh", "dlast_h", "h0", "h", "gates", "inner")
        states, gates = _shapes(op, op.ddx, names)
        dtype = op.ddx.spec.dtype
        state, gate = TensorSpec(states, dtype), TensorSpec(gates, dtype)
        return state, TensorSpec(states[1:], dtype), state, gate, gate, state

    def compute(
        op,
        ddx: Any,
        ddn: Any,
        ddh0: Any,
        dh: Any,
        dlast_h: Any,
        recurrent_kernel: Any,
        h0: Any,
        h: Any,
        gates: Any,
        inner: Any,
    ) -> tuple[np.ndarray, ...]:
        arrays = [widened(a) for a in (dh, dlast_h, recurrent_kernel, h0, h, gates, inner)]
        _, _, kernel, h0, h, gates, inner = arrays
        dx, _, _, p = _backpropagate(*arrays)
        z, r, g = gates_of(gates, GATES)
        before = with_first(h0, h)
        shared, n = wide_copy(ddx), wide_copy(ddn)
        ddh, hidden, of_candidate = np.empty_like(h), np.empty_like(h), np.empty_like(h)
        now = wide_copy(ddh0)
        for t in range(len(h)):
            hidden[t] = now
            n[t] += now @ kernel
            n_z, n_r, n_g = gates_of(n[t], GATES)
            x_z, x_r, x_g = gates_of(shared[t], GATES)
            x_z += n_z
            x_r += n_r
            of_candidate[t] = x_g + n_g * r[t] + x_r * inner[t] * r[t] * (1 - r[t])
            now = now * z[t] + x_z * (before[t] - g[t]) * z[t] * (1 - z[t])
            now += of_candidate[t] * (1 - z[t]) * (1 - g[t] * g[t])
            ddh[t] = now
        x_z, x_r, _ = gates_of(shared, GATES)
        n_g, dg = gates_of(n, GATES)[2], gates_of(dx, GATES)[2]
        dbefore = x_z * p * z * (1 - z)
        of_z = hidden * p + x_z * p * (before - g) * (1 - 2 * z) - of_candidate * p * (1 - g * g)
        of_r = n_g * dg + x_r * dg * inner * (1 - 2 * r)
        of_inner = x_r * dg * r * (1 - r)
        of_g = (-dbefore - 2 * of_candidate * p * (1 - z) * g) * (1 - g * g)
        of_r = (of_r + of_g * inner) * r * (1 - r)
        dx_gates = np.concatenate([of_z * z * (1 - z), of_r, of_g], -1)
        dn_gates = np.concatenate([dx_gates[..., : 2 * h.shape[-1]], of_inner + of_g * r], -1)
        results = (ddh, now, hidden, dx_gates, dn_gates, dbefore)
        return tuple([a.astype(ddx.dtype, copy=False) for a in results])

    def gradient(op, *grads: Any) -> Tensor:
        raise LookupError(
            "GRUSequenceGradGrad: a GRU has first and second derivatives. For third ones take "
            "ow.keras.layers.RNN(ow.keras.layers.GRUCell(units)), which runs its cell in a loop"
        )
