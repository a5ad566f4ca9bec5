"""Gated recurrent units over sequences of different lengths.

Lives here: DynamicGru, its gradient, `dynamic_gru`.
Not here: the order of its work (batches.py), the layer over padded batches (keras).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import floating
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from .. import like_device, math
from ..attributes import Attr, one_of
from ..definition import operator
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .batches import ACTIVATIONS, SLOPES, TimeBatches
from .lstm import check_shape
from .segments import count, wide


def _check(shapes: dict[str, Any], n: int | None) -> int | None:
    """The width d. shapes: of the inputs that are there. n: the number of sequences, where known."""
    weight, x = TensorShape(shapes["weight"]), TensorShape(shapes["x"])
    d = weight[0] if weight.rank else None
    if d is None and x.rank and x[1] is not None:
        if x[1] % 3:
            raise InvalidArgumentError(
                what="the width of x is no multiple of 3", found=f"shape {x}", wanted="shape [rows, 3 * d]"
            )
        d = x[1] // 3
    tripled = None if d is None else 3 * d
    check_shape("weight", weight, [d, tripled], "its first size says, [d, 3 * d]")
    check_shape("x", x, [None, tripled], "follows from the weight")
    if "bias" in shapes:
        check_shape("bias", shapes["bias"], [1, tripled], "follows from the weight")
    if "h0" in shapes:
        check_shape("h0", shapes["h0"], [n, d], "[sequences, d]")
    return d


def _blocks(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the two gates [d, 2 d] and of the candidate [d, d], which lie in memory one after the other."""
    d = len(weight)
    flat = weight.reshape(-1)
    return flat[: 2 * d * d].reshape(d, 2 * d), flat[2 * d * d :].reshape(d, d)


@operator
class DynamicGru(OperatorDefinition):
    """A layer of gated recurrent units over packed sequences; the product of the inputs with their weights is not part
    of it, x is that already.

    .. math:: (u, r) = g(x_{ur} + h_{t-1} W_{ur} + b_{ur}), \\; c = a(x_c + (r h_{t-1}) W_c + b_c), \\;
              h_t = (1 - u) h_{t-1} + u c, \\text{ or with origin\\_mode } u h_{t-1} + (1 - u) c

    x: [rows, 3 d] with one LoD level, side by side update gate, reset gate, candidate; weight: [d, 3 d], in whose
    memory lie first W_ur as [d, 2 d], then W_c as [d, d]; bias: [1, 3 d]; h0: [number of sequences, d]; both zeros if
    left out. hidden: [rows, d] with the LoD of x. is_reverse walks each sequence from its end. A sigmoid holds its
    argument at 13 and below; its slope there is that of 13. There are first derivatives only.
    raises InvalidArgumentError for x without LoD or with more levels, and for shapes that do not fit
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
        there = ("x", "weight", "bias", "h0")
        d = _check({k: getattr(op, k).spec.shape for k in there if getattr(op, k) is not None}, count(op.offsets))
        rows, dtype = op.x.spec.shape[0] if op.x.spec.shape.rank else None, op.x.spec.dtype
        narrow = TensorSpec([rows, d], dtype)
        return narrow, TensorSpec([rows, None if d is None else 3 * d], dtype), narrow, narrow

    def compute(op, x: Any, weight: Any, bias: Any, h0: Any, offsets: Any) -> tuple[Any, ...]:
        given = {"x": x, "weight": weight, "bias": bias, "h0": h0}
        _check({k: v.shape for k, v in given.items() if v is not None}, len(offsets) - 1)
        batches = TimeBatches(offsets, op.is_reverse, len(x))
        gates = wide(batches.sort(x))
        if bias is not None:
            gates += wide(bias)
        hidden = like_device.empty(gates, (len(x), len(weight)), gates.dtype)
        reset = np.zeros_like(hidden)
        h = None if h0 is None else wide(h0)[batches.active]
        _run(op, batches, gates, *_blocks(wide(weight)), h, hidden, reset)
        back = batches.restore(hidden), gates, reset, hidden
        return tuple([a.astype(x.dtype, copy=False) for a in back])

    def gradient(
        op, dhidden: Any, dbatch_gate: Any, dbatch_reset_hidden_prev: Any, dbatch_hidden: Any
    ) -> tuple[Tensor, Tensor, Any, Tensor, None]:
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
    """The steps: gates, x + b at first, become the activated gates; hidden and reset, r h, are filled."""
    d = hidden.shape[1]
    gate, activation = ACTIVATIONS[op.gate_activation], ACTIVATIONS[op.activation]
    product = like_device.empty(gates, (len(batches.active), 2 * d), gates.dtype)
    other = like_device.empty(gates, (len(batches.active), d), gates.dtype)
    for begin, end, going_on in batches:
        z, now, n = gates[begin:end], hidden[begin:end], end - begin
        if h is not None:
            z[:, : 2 * d] += np.matmul(h, w_gates, out=product[:n])
        gate(z[:, : 2 * d])
        u, c = z[:, :d], z[:, 2 * d :]
        if h is not None:
            r = np.multiply(h, z[:, d : 2 * d], out=reset[begin:end])
            c += np.matmul(r, w_candidate, out=other[:n])
        activation(c)
        first, second = (c, h) if op.origin_mode else (h, c)  # h_t = first + u (second - first)
        if first is None:
            np.multiply(u, second, out=now)
        elif second is None:
            np.subtract(first, np.multiply(u, first, out=now), out=now)
        else:
            np.subtract(second, first, out=now)
            now *= u
            now += first
        h = hidden[begin : begin + going_on]


@operator
class DynamicGruGrad(OperatorDefinition[tuple[Tensor, Tensor, Tensor]]):
    """The gradient of DynamicGru by its inputs, walked back through the steps.

    .. math:: dx_t = (dz_u, dz_r, dz_c), \\; dz_c = dh_t u \\, a'(c), \\; dz_u = dh_t (c - h_{t-1}) g'(u), \\;
              dz_r = (dz_c W_c^T) h_{t-1} g'(r), \\;
              dh_{t-1} = dh_t (1 - u) + (dz_c W_c^T) r + (dz_u, dz_r) W_{ur}^T

    dhidden: [rows, d]; the others as in DynamicGru; with origin_mode u and 1 - u change places. dx: [rows, 3 d];
    dweight: [d, 3 d], its memory as the weight's; dh0: [number of sequences, d]. It has no gradient of its own: second
    derivatives are refused with a LookupError, which says how the padded layer (keras) gives them.
    raises InvalidArgumentError where dhidden has another shape than hidden
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
        h_before = batches.before(wide(batch_hidden), h0)
        dh = batches.sort(wide(dhidden))
        w_gates, w_candidate = _blocks(wide(weight))
        dz, dh_first = _run_back(op, batches, wide(batch_gate), h_before, dh, w_gates, w_candidate)
        d = batch_hidden.shape[1]
        dw_gates = h_before.T @ dz[:, : 2 * d]
        dw_candidate = wide(batch_reset_hidden_prev).T @ dz[:, 2 * d :]
        dweight = np.concatenate([dw_gates.reshape(-1), dw_candidate.reshape(-1)]).reshape(weight.shape)
        made = batches.restore(dz), dweight, batches.spread(dh_first, len(offsets) - 1)
        return tuple([a.astype(batch_hidden.dtype, copy=False) for a in made])

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
    """dz by steps, and the gradient of the first states of the sequences that have rows. dh is written to.

    What each gate's gradient is multiplied by follows from kept results, so it is worked out for all steps at once.
    """
    d = h_before.shape[1]
    u, r, c = gates[:, :d], gates[:, d : 2 * d], gates[:, 2 * d :]
    slope = SLOPES[op.gate_activation]
    taken = 1.0 - u if op.origin_mode else u  # how much of c is in h
    of_candidate = taken * SLOPES[op.activation](c)
    of_update = (h_before - c if op.origin_mode else c - h_before) * slope(u)
    of_reset = h_before * slope(r)
    kept = u if op.origin_mode else 1.0 - u
    dz = np.empty_like(gates)
    back_gates, back_candidate = w_gates.T.copy(), w_candidate.T.copy()
    dh_before = like_device.zeros(gates, (len(batches.active), d), gates.dtype)
    for begin, end, going_on in reversed(list(batches)):
        dh_now, now, size = dh[begin:end], dz[begin:end], end - begin
        dh_now[:going_on] += dh_before[:going_on]
        np.multiply(dh_now, of_candidate[begin:end], out=now[:, 2 * d :])
        np.multiply(dh_now, of_update[begin:end], out=now[:, :d])
        dreset = now[:, 2 * d :] @ back_candidate
        np.multiply(dreset, of_reset[begin:end], out=now[:, d : 2 * d])
        np.matmul(now[:, : 2 * d], back_gates, out=dh_before[:size])
        dreset *= r[begin:end]
        dh_before[:size] += dreset
        dh_now *= kept[begin:end]
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
