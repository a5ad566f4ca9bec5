"""Gated recurrent units over sequences of different lengths.

Lives here: DynamicGru, its gradient, `dynamic_gru`.
Not here: batching by time step (segments.py), the layer over padded batches (nn/layers/).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import floating
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from .. import like_device, math
from ..accumulation import widened
from ..attributes import Attr, one_of
from ..definition import operator
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .lstm import check_shape, width_of
from .segments import ACTIVATIONS, SLOPES, TimeBatches, count


def _check(shapes: dict[str, Any], n: int | None) -> int | None:
    """Check shapes and return the width d. shapes: of the present inputs. n: the number of sequences, if known."""
    weight, x = TensorShape(shapes["weight"]), TensorShape(shapes["x"])
    d = width_of(weight, x, 3)
    tripled = None if d is None else 3 * d
    check_shape("weight", weight, [d, tripled], "its first size says, [d, 3 * d]")
    check_shape("x", x, [None, tripled], "follows from the weight")
    if "bias" in shapes:
        check_shape("bias", shapes["bias"], [1, tripled], "follows from the weight")
    if "h0" in shapes:
        check_shape("h0", shapes["h0"], [n, d], "[sequences, d]")
    return d


def _blocks(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of the gates [d, 2 d] and of the candidate [d, d], which are consecutive in memory."""
    d = len(weight)
    flat = weight.reshape(-1)
    return flat[: 2 * d * d].reshape(d, 2 * d), flat[2 * d * d :].reshape(d, d)


@operator
class DynamicGru(OperatorDefinition):
    """Run a gated recurrent unit over packed sequences, given the products of inputs and input weights.

    .. math:: (u, r) = g(x_{ur} + h_{t-1} W_{ur} + b_{ur}), \\; c = a(x_c + (r h_{t-1}) W_c + b_c), \\;
              h_t = (1 - u) h_{t-1} + u c, \\text{ or with origin\\_mode } u h_{t-1} + (1 - u) c

    x: [rows, 3 d] with one LoD level: update gate, reset gate, candidate; weight: [d, 3 d], whose memory holds W_ur as
    [d, 2 d], then W_c as [d, d]; bias: [1, 3 d]; h0: [number of sequences, d]; both by default zeros. hidden: [rows, d]
    with the LoD of x. is_reverse: process sequences from their ends. Arguments of sigmoids are clipped at 13.
    Differentiable once.
    raises InvalidArgumentError for x without LoD or with more levels, and for inconsistent shapes
    """

    x = Input(floating, rank=2, lod=1)
    weight = Input(floating, rank=2, like="x")
    bias = Input(floating, rank=2, like="x", optional=True)
    h0 = Input(floating, rank=2, like="x", optional=True)
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    hidden = Output(like="x")
    batch_gate = Output(like="x", intermediate=True, doc="u, r, c, by steps")
    batch_reset_hidden_prev = Output(like="x", intermediate=True, doc="r h, by steps")
    batch_hidden = Output(like="x", intermediate=True, doc="hidden, by steps")
    activation = Attr(str, default="tanh", check=one_of(*ACTIVATIONS))
    gate_activation = Attr(str, default="sigmoid", check=one_of(*ACTIVATIONS))
    is_reverse = Attr(bool, default=False)
    origin_mode = Attr(bool, default=False)
    no_need_buffer = ("x", "bias")
    lod = "as x"

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec, TensorSpec]:
        names = ("x", "weight", "bias", "h0")
        d = _check({k: getattr(op, k).spec.shape for k in names if getattr(op, k) is not None}, count(op.offsets))
        rows, dtype = op.x.spec.shape[0] if op.x.spec.shape.rank else None, op.x.spec.dtype
        narrow = TensorSpec([rows, d], dtype)
        return narrow, TensorSpec([rows, None if d is None else 3 * d], dtype), narrow, narrow

    def compute(op, x: Any, weight: Any, bias: Any, h0: Any, offsets: Any) -> tuple[Any, ...]:
        inputs = {"x": x, "weight": weight, "bias": bias, "h0": h0}
        _check({k: v.shape for k, v in inputs.items() if v is not None}, len(offsets) - 1)
        batches = TimeBatches(offsets, op.is_reverse, len(x))
        gates = widened(batches.sort(x))
        if bias is not None:
            gates += widened(bias)
        hidden = like_device.empty(gates, (len(x), len(weight)), gates.dtype)
        reset = np.zeros_like(hidden)
        h = None if h0 is None else widened(h0)[batches.active]
        _run(op, batches, gates, *_blocks(widened(weight)), h, hidden, reset)
        outputs = batches.restore(hidden), gates, reset, hidden
        return tuple([a.astype(x.dtype, copy=False) for a in outputs])

    def gradient(
        op, dhidden: Any, dbatch_gate: Any, dbatch_reset_hidden_prev: Any, dbatch_hidden: Any
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None, None]:
        dx, dweight, dh0 = DynamicGruGrad(
            dhidden,
            op.weight,
            op.h0,
            op.offsets,
            op.batch_gate,
            op.batch_reset_hidden_prev,
            op.batch_hidden,
            activation=op.activation,
            gate_activation=op.gate_activation,
            is_reverse=op.is_reverse,
            origin_mode=op.origin_mode,
        )
        dbias = None if op.bias is None else math.reduce_sum(dx, axis=0, keepdims=True)
        return dx, dweight, dbias, None if op.h0 is None else dh0, None


def _run(
    op: Any,
    batches: TimeBatches,
    gates: np.ndarray,
    w_gates: np.ndarray,
    w_candidate: np.ndarray,
    h: Any,
    hidden: np.ndarray,
    reset: np.ndarray,
) -> None:
    """Run all steps. Overwrites gates, x + b, by the activated gates; and hidden and reset, which is r h."""
    d = hidden.shape[1]
    gate, activation = ACTIVATIONS[op.gate_activation], ACTIVATIONS[op.activation]
    product = like_device.empty(gates, (len(batches.active), 2 * d), gates.dtype)
    candidate_product = like_device.empty(gates, (len(batches.active), d), gates.dtype)
    for begin, end, continuing in batches:
        z, h_now, n = gates[begin:end], hidden[begin:end], end - begin
        if h is not None:
            z[:, : 2 * d] += np.matmul(h, w_gates, out=product[:n])
        gate(z[:, : 2 * d])
        u, c = z[:, :d], z[:, 2 * d :]
        if h is not None:
            r = np.multiply(h, z[:, d : 2 * d], out=reset[begin:end])
            c += np.matmul(r, w_candidate, out=candidate_product[:n])
        activation(c)
        if h is None and op.origin_mode:
            np.subtract(c, np.multiply(u, c, out=h_now), out=h_now)
        elif h is None:
            np.multiply(u, c, out=h_now)
        else:
            first, second = (c, h) if op.origin_mode else (h, c)  # h_t = first + u (second - first)
            np.subtract(second, first, out=h_now)
            h_now *= u
            h_now += first
        h = hidden[begin : begin + continuing]


@operator
class DynamicGruGrad(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """Compute the gradient of DynamicGru with respect to its inputs, by backpropagation through time.

    .. math:: dx_t = (dz_u, dz_r, dz_c), \\; dz_c = dh_t u \\, a'(c), \\; dz_u = dh_t (c - h_{t-1}) g'(u), \\;
              dz_r = (dz_c W_c^T) h_{t-1} g'(r), \\;
              dh_{t-1} = dh_t (1 - u) + (dz_c W_c^T) r + (dz_u, dz_r) W_{ur}^T

    dhidden: [rows, d]; the others as in DynamicGru; with origin_mode u and 1 - u are exchanged. dx: [rows, 3 d];
    dweight: [d, 3 d], in the memory layout of the weight; dh0: [number of sequences, d]. Not differentiable: its
    LookupError recommends the padded Keras layer for second derivatives.
    raises InvalidArgumentError if dhidden and hidden differ in shape
    """

    dhidden = Input(floating, rank=2)
    weight = Input(floating, rank=2, like="dhidden")
    h0 = Input(floating, rank=2, like="dhidden", optional=True)
    offsets = Input(dtypes.int64, rank=1)
    batch_gate = Input(floating, rank=2, like="dhidden")
    batch_reset_hidden_prev = Input(floating, rank=2, like="dhidden")
    batch_hidden = Input(floating, rank=2, like="dhidden")
    dx = Output(like="batch_gate")
    dweight = Output(like="weight", rows=False)
    dh0 = Output(like="dhidden", rows=False)
    activation = Attr(str, default="tanh", check=one_of(*ACTIVATIONS))
    gate_activation = Attr(str, default="sigmoid", check=one_of(*ACTIVATIONS))
    is_reverse = Attr(bool, default=False)
    origin_mode = Attr(bool, default=False)
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        check_shape("dhidden", op.dhidden.spec.shape, op.batch_hidden.spec.shape, "hidden")
        weight = op.weight.spec.shape
        start = TensorSpec([count(op.offsets), weight[0] if weight.rank else None], op.weight.spec.dtype)
        return op.batch_gate.spec, op.weight.spec, start

    def compute(
        op,
        dhidden: Any,
        weight: Any,
        h0: Any,
        offsets: Any,
        batch_gate: Any,
        batch_reset_hidden_prev: Any,
        batch_hidden: Any,
    ) -> tuple[Any, ...]:
        batches = TimeBatches(offsets, op.is_reverse, len(batch_hidden), "hidden")
        h_before = batches.before(widened(batch_hidden), h0)
        dh = batches.sort(widened(dhidden))
        w_gates, w_candidate = _blocks(widened(weight))
        dz, dh_first = _run_back(op, batches, widened(batch_gate), h_before, dh, w_gates, w_candidate)
        d = batch_hidden.shape[1]
        dw_gates = h_before.T @ dz[:, : 2 * d]
        dw_candidate = widened(batch_reset_hidden_prev).T @ dz[:, 2 * d :]
        dweight = np.concatenate([dw_gates.reshape(-1), dw_candidate.reshape(-1)]).reshape(weight.shape)
        grads = batches.restore(dz), dweight, batches.spread(dh_first, len(offsets) - 1)
        return tuple([a.astype(batch_hidden.dtype, copy=False) for a in grads])

    def gradient(op, *grads: Any) -> Tensor:
        raise LookupError(
            "DynamicGru: it has first derivatives only. For second ones take ow.keras.layers.GRU on "
            "padded sequences: rows, n = ow.sequence.pad(x), mask=ow.sequence.mask(n, dtype=ow.bool), "
            "and ow.sequence.unpad(result, n)"
        )


def _run_back(
    op: Any,
    batches: TimeBatches,
    gates: np.ndarray,
    h_before: np.ndarray,
    dh: np.ndarray,
    w_gates: np.ndarray,
    w_candidate: np.ndarray,
) -> tuple[Any, Any]:
    """Return dz by steps, and the gradient of the initial states of nonempty sequences. Overwrites dh.

    The factors of the gates' gradients depend only on recorded results and are computed for all steps at once.
    """
    d = h_before.shape[1]
    u, r, c = gates[:, :d], gates[:, d : 2 * d], gates[:, 2 * d :]
    slope = SLOPES[op.gate_activation]
    c_weight = 1.0 - u if op.origin_mode else u  # weight of c in h
    of_candidate = c_weight * SLOPES[op.activation](c)
    of_update = (h_before - c if op.origin_mode else c - h_before) * slope(u)
    of_reset = h_before * slope(r)
    h_weight = u if op.origin_mode else 1.0 - u
    dz = np.empty_like(gates)
    w_gates_t, w_candidate_t = w_gates.T.copy(), w_candidate.T.copy()
    dh_before = like_device.zeros(gates, (len(batches.active), d), gates.dtype)
    for begin, end, continuing in reversed(list(batches)):
        dh_now, now, size = dh[begin:end], dz[begin:end], end - begin
        dh_now[:continuing] += dh_before[:continuing]
        np.multiply(dh_now, of_candidate[begin:end], out=now[:, 2 * d :])
        np.multiply(dh_now, of_update[begin:end], out=now[:, :d])
        dreset = now[:, 2 * d :] @ w_candidate_t
        np.multiply(dreset, of_reset[begin:end], out=now[:, d : 2 * d])
        np.matmul(now[:, : 2 * d], w_gates_t, out=dh_before[:size])
        dreset *= r[begin:end]
        dh_before[:size] += dreset
        dh_now *= h_weight[begin:end]
        dh_before[:size] += dh_now
    return dz, dh_before


@documented_by(DynamicGru)
def dynamic_gru(
    x: Any,
    weight: Any,
    bias: Any = None,
    h0: Any = None,
    activation: str = "tanh",
    gate_activation: str = "sigmoid",
    is_reverse: bool = False,
    origin_mode: bool = False,
    name: str | None = None,
) -> Tensor:
    """Run a gated recurrent unit over sequences; return the hidden states.

    >>> x = ow.LoDTensor(ow.zeros([3, 6]), [[0, 2, 3]])
    >>> ow.sequence.dynamic_gru(x, ow.zeros([2, 6]), ow.ones([1, 6])).lod()
    [[0, 2, 3]]
    """
    return DynamicGru(
        x,
        weight,
        bias,
        h0,
        activation=activation,
        gate_activation=gate_activation,
        is_reverse=is_reverse,
        origin_mode=origin_mode,
        name=name,
    )
