"""Long short-term memory over sequences of different lengths.

Lives here: DynamicLstm, its gradient, `dynamic_lstm`.
Not here: batching by time step (segments.py), the layer over padded batches (nn/layers/).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import floating
from ...core.errors import InvalidArgumentError, NotFoundError
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from .. import like_device
from ..accumulation import widened
from ..attributes import Attr, one_of
from ..definition import operator
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .segments import ACTIVATIONS, SLOPES, TimeBatches, count


def check_shape(name: str, shape: Any, expected: Iterable[int | None], why: str) -> None:
    """Raise InvalidArgumentError if an input does not have the shape implied by others. why: names their relation."""
    if not TensorShape(shape).is_compatible_with(expected):
        sizes = ["?" if d is None else d for d in expected]
        raise InvalidArgumentError(
            what=f"input {name!r} has another shape than {why}", found=f"shape {shape}", wanted=f"shape {sizes}"
        )


def width_of(weight: TensorShape, x: TensorShape, gates: int) -> int | None:
    """Return the width d of a cell of weights [d, gates d] and inputs [rows, gates d]. Raises InvalidArgumentError."""
    d: int | None = weight[0] if weight.rank else None
    width: int | None = x[1] if x.rank else None
    if d is not None or width is None:
        return d
    if width % gates:
        raise InvalidArgumentError(
            what=f"the width of x is not a multiple of {gates}", found=f"shape {x}", wanted=f"shape [rows, {gates} * d]"
        )
    return width // gates


def _check(op: Any, shapes: dict[str, Any], n: int | None) -> int | None:
    """Check shapes and return the width d. shapes: of the present inputs. n: the number of sequences, if known."""
    if ("h0" in shapes) != ("c0" in shapes):
        present, missing = ("h0", "c0") if "h0" in shapes else ("c0", "h0")
        raise NotFoundError(
            op="DynamicLstm", what=f"input {present!r} is given without {missing!r}", wanted="both or neither"
        )
    weight, x = TensorShape(shapes["weight"]), TensorShape(shapes["x"])
    d = width_of(weight, x, 4)

    def times(k: int) -> int | None:
        return None if d is None else k * d

    check_shape("weight", weight, [d, times(4)], "its first size says, [d, 4 * d]")
    check_shape("x", x, [None, times(4)], "follows from the weight")
    check_shape(
        "bias",
        shapes["bias"],
        [1, times(7 if op.use_peepholes else 4)],
        f"follows from use_peepholes={op.use_peepholes}",
    )
    if "h0" in shapes:
        if not TensorShape(shapes["h0"]).is_compatible_with(shapes["c0"]):
            raise InvalidArgumentError(what="h0 and c0 differ in shape", found={"h0": shapes["h0"], "c0": shapes["c0"]})
        check_shape("h0", shapes["h0"], [n, d], "[sequences, d]")
        check_shape("c0", shapes["c0"], [n, d], "[sequences, d]")
    return d


@operator
class DynamicLstm(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Run long short-term memory over packed sequences, given the products of inputs and input weights.

    .. math:: z = x_t + h_{t-1} W + b, \\; i = g(z_i + w_{ic} c_{t-1}), \\; f = g(z_f + w_{fc} c_{t-1}), \\;
              c_t = f c_{t-1} + i \\, a(z_c), \\; o = g(z_o + w_{oc} c_t), \\; h_t = o \\, s(c_t)

    x: [rows, 4 d] with one LoD level: candidate z_c, input gate, forget gate, output gate; weight: [d, 4 d] in the same
    order; bias: [1, 4 d], with use_peepholes [1, 7 d], the concatenation of b, w_ic, w_fc, w_oc; h0, c0: [number of
    sequences, d], by default zeros. hidden, cell: [rows, d] with the LoD of x. is_reverse: process sequences from their
    ends. Arguments of sigmoids are clipped at 13. Differentiable once, with respect to both outputs.
    raises InvalidArgumentError for x without LoD or with more levels, and for inconsistent shapes; NotFoundError for
    one of h0 and c0 without the other
    """

    x = Input(floating, rank=2, lod=1)
    weight = Input(floating, rank=2, like="x")
    bias = Input(floating, rank=2, like="x")
    h0 = Input(floating, rank=2, like="x", optional=True)
    c0 = Input(floating, rank=2, like="x", optional=True)
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    hidden = Output(like="x")
    cell = Output(like="x")
    batch_gate = Output(like="x", intermediate=True, doc="c~, i, f, o, by steps")
    batch_cell_pre_act = Output(like="x", intermediate=True, doc="s(c), by steps")
    use_peepholes = Attr(bool, default=True)
    is_reverse = Attr(bool, default=False)
    gate_activation = Attr(str, default="sigmoid", check=one_of(*ACTIVATIONS))
    cell_activation = Attr(str, default="tanh", check=one_of(*ACTIVATIONS))
    candidate_activation = Attr(str, default="tanh", check=one_of(*ACTIVATIONS))
    no_need_buffer = ("x",)
    lod = "as x"

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec, TensorSpec]:
        names = ("x", "weight", "bias", "h0", "c0")
        d = _check(op, {k: getattr(op, k).spec.shape for k in names if getattr(op, k) is not None}, count(op.offsets))
        rows = op.x.spec.shape[0] if op.x.spec.shape.rank else None
        narrow, broad = TensorSpec([rows, d], op.x.spec.dtype), [rows, None if d is None else 4 * d]
        return narrow, narrow, TensorSpec(broad, op.x.spec.dtype), narrow

    def compute(op, x: Any, weight: Any, bias: Any, h0: Any, c0: Any, offsets: Any) -> tuple[Any, ...]:
        inputs = {"x": x, "weight": weight, "bias": bias, "h0": h0, "c0": c0}
        _check(op, {k: v.shape for k, v in inputs.items() if v is not None}, len(offsets) - 1)
        d = len(weight)
        batches = TimeBatches(offsets, op.is_reverse, len(x))
        gates = widened(batches.sort(x))
        weight, bias = widened(weight), widened(bias)
        gates += bias[:, : 4 * d]
        hidden = like_device.empty(gates, (len(x), d), gates.dtype)
        cell, activated = np.empty_like(hidden), np.empty_like(hidden)
        h = None if h0 is None else widened(h0)[batches.active]
        c = None if c0 is None else widened(c0)[batches.active]
        _run(op, batches, gates, weight, bias[0, 4 * d :].reshape(-1, d), h, c, hidden, cell, activated)
        outputs = [batches.restore(hidden), batches.restore(cell), gates, activated]
        return tuple([a.astype(x.dtype, copy=False) for a in outputs])

    def gradient(
        op, dhidden: Any, dcell: Any, dbatch_gate: Any, dbatch_cell_pre_act: Any
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None, None]:
        dx, dweight, dbias, dh0, dc0 = DynamicLstmGrad(
            dhidden,
            dcell,
            op.weight,
            op.bias,
            op.h0,
            op.c0,
            op.offsets,
            op.hidden,
            op.cell,
            op.batch_gate,
            op.batch_cell_pre_act,
            use_peepholes=op.use_peepholes,
            is_reverse=op.is_reverse,
            gate_activation=op.gate_activation,
            cell_activation=op.cell_activation,
            candidate_activation=op.candidate_activation,
        )
        return dx, dweight, dbias, None if op.h0 is None else dh0, None if op.c0 is None else dc0, None


def _run(
    op: Any,
    batches: TimeBatches,
    gates: np.ndarray,
    weight: np.ndarray,
    peepholes: np.ndarray,
    h: Any,
    c: Any,
    hidden: np.ndarray,
    cell: np.ndarray,
    activated: np.ndarray,
) -> None:
    """Run all steps. Overwrites gates, x + b, by the activated gates; and hidden, cell, activated, which is s(cell)."""
    d = hidden.shape[1]
    gate, candidate, cell_activation = (
        ACTIVATIONS[op.gate_activation],
        ACTIVATIONS[op.candidate_activation],
        ACTIVATIONS[op.cell_activation],
    )
    product = like_device.empty(gates, (len(batches.active), 4 * d), gates.dtype)
    part = product[:, :d]
    for begin, end, continuing in batches:
        z, c_now, n = gates[begin:end], cell[begin:end], end - begin
        if h is not None:
            z += np.matmul(h, weight, out=product[:n])
        candidate(z[:, :d])
        if op.use_peepholes:
            if c is not None:
                z[:, d : 2 * d] += np.multiply(c, peepholes[0], out=part[:n])
                z[:, 2 * d : 3 * d] += np.multiply(c, peepholes[1], out=part[:n])
            gate(z[:, d : 3 * d])
        else:
            gate(z[:, d:])
        np.multiply(z[:, :d], z[:, d : 2 * d], out=c_now)
        if c is not None:
            c_now += np.multiply(c, z[:, 2 * d : 3 * d], out=part[:n])
        if op.use_peepholes:
            z[:, 3 * d :] += np.multiply(c_now, peepholes[2], out=part[:n])
            gate(z[:, 3 * d :])
        s = activated[begin:end]
        s[...] = c_now
        cell_activation(s)
        np.multiply(z[:, 3 * d :], s, out=hidden[begin:end])
        h, c = hidden[begin : begin + continuing], c_now[:continuing]


@operator
class DynamicLstmGrad(OperatorDefinition[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]]):
    """Compute the gradient of DynamicLstm with respect to its inputs, by backpropagation through time.

    .. math:: dc_t = dh_t \\, o \\, s'(c_t) + dz_o w_{oc} + dcell_t + dc_{t+1} f_{t+1} + dz_{i,t+1} w_{ic}
              + dz_{f,t+1} w_{fc}, \\quad dh_t = dhidden_t + dz_{t+1} W^T

    dhidden, dcell: [rows, d]; the others as in DynamicLstm. dx: [rows, 4 d]; dweight, dbias as weight and bias; dh0,
    dc0: [number of sequences, d]. Not differentiable: its LookupError recommends the padded Keras layer for second
    derivatives.
    raises InvalidArgumentError if dhidden or dcell differs from hidden in shape
    """

    dhidden = Input(floating, rank=2)
    dcell = Input(floating, rank=2, like="dhidden")
    weight = Input(floating, rank=2, like="dhidden")
    bias = Input(floating, rank=2, like="dhidden")
    h0 = Input(floating, rank=2, like="dhidden", optional=True)
    c0 = Input(floating, rank=2, like="dhidden", optional=True)
    offsets = Input(dtypes.int64, rank=1)
    hidden = Input(floating, rank=2, like="dhidden")
    cell = Input(floating, rank=2, like="dhidden")
    batch_gate = Input(floating, rank=2, like="dhidden")
    batch_cell_pre_act = Input(floating, rank=2, like="dhidden")
    dx = Output(like="batch_gate")
    dweight = Output(like="weight", rows=False)
    dbias = Output(like="bias", rows=False)
    dh0 = Output(like="dhidden", rows=False)
    dc0 = Output(like="dhidden", rows=False)
    use_peepholes = Attr(bool, default=True)
    is_reverse = Attr(bool, default=False)
    gate_activation = Attr(str, default="sigmoid", check=one_of(*ACTIVATIONS))
    cell_activation = Attr(str, default="tanh", check=one_of(*ACTIVATIONS))
    candidate_activation = Attr(str, default="tanh", check=one_of(*ACTIVATIONS))
    lod = "vanishes"

    def infer(op) -> tuple[TensorSpec, TensorSpec, TensorSpec, TensorSpec, TensorSpec]:
        for name in ("dhidden", "dcell"):
            check_shape(name, getattr(op, name).spec.shape, op.hidden.spec.shape, "hidden")
        weight = op.weight.spec.shape
        start = TensorSpec([count(op.offsets), weight[0] if weight.rank else None], op.weight.spec.dtype)
        return op.batch_gate.spec, op.weight.spec, op.bias.spec, start, start

    def compute(
        op,
        dhidden: Any,
        dcell: Any,
        weight: Any,
        bias: Any,
        h0: Any,
        c0: Any,
        offsets: Any,
        hidden: Any,
        cell: Any,
        batch_gate: Any,
        batch_cell_pre_act: Any,
    ) -> tuple[Any, ...]:
        d, dtype = hidden.shape[1], hidden.dtype
        batches = TimeBatches(offsets, op.is_reverse, len(hidden), "hidden")
        weight, peepholes, gates = widened(weight), widened(bias)[0, 4 * d :].reshape(-1, d), widened(batch_gate)
        h_before = batches.before(batches.sort(widened(hidden)), h0)
        cells = batches.sort(widened(cell))
        c_before = batches.before(cells, c0)
        dh, dc = batches.sort(widened(dhidden)), batches.sort(widened(dcell))
        dz, dh_first, dc_first = _run_back(
            op, batches, gates, widened(batch_cell_pre_act), c_before, dh, dc, weight, peepholes
        )
        dbias = dz.sum(0)
        if op.use_peepholes:
            pairs = ((dz[:, d : 2 * d], c_before), (dz[:, 2 * d : 3 * d], c_before), (dz[:, 3 * d :], cells))
            dbias = np.concatenate([dbias, *(np.einsum("td,td->d", a, b) for a, b in pairs)])
        n = len(offsets) - 1
        grads = (
            batches.restore(dz),
            h_before.T @ dz,
            dbias[None],
            batches.spread(dh_first, n),
            batches.spread(dc_first, n),
        )
        return tuple([a.astype(dtype, copy=False) for a in grads])

    def gradient(op, *grads: Any) -> Tensor:
        raise LookupError(
            "DynamicLstm: it has first derivatives only. For second ones take ow.keras.layers.LSTM on "
            "padded sequences: rows, n = ow.sequence.pad(x), mask=ow.sequence.mask(n, dtype=ow.bool), "
            "and ow.sequence.unpad(result, n)"
        )


def _run_back(
    op: Any,
    batches: TimeBatches,
    gates: np.ndarray,
    activated: np.ndarray,
    c_before: np.ndarray,
    dh: np.ndarray,
    dc: np.ndarray,
    weight: np.ndarray,
    peepholes: np.ndarray,
) -> tuple[Any, Any, Any]:
    """Return dz by steps, and the gradients of the initial states of nonempty sequences. Overwrites dh and dc.

    The factors of the gates' gradients depend only on recorded results and are computed for all steps at once.
    """
    d = activated.shape[1]
    rows = len(activated)
    by_gate = gates.reshape(rows, 4, d)
    slope = SLOPES[op.gate_activation]
    of_cell = like_device.empty(gates, (rows, 3, d), gates.dtype)  # dz of candidate, input gate, forget gate by dc
    np.multiply(SLOPES[op.candidate_activation](by_gate[:, 0]), by_gate[:, 1], out=of_cell[:, 0])
    np.multiply(slope(by_gate[:, 1]), by_gate[:, 0], out=of_cell[:, 1])
    np.multiply(slope(by_gate[:, 2]), c_before, out=of_cell[:, 2])
    out_gate = by_gate[:, 3]
    of_hidden = slope(out_gate) * activated  # dz of the output gate by dh
    through = SLOPES[op.cell_activation](activated) * out_gate  # dc by dh
    dz = like_device.empty(gates, (rows, 4, d), gates.dtype)
    flat = dz.reshape(rows, 4 * d)
    weight_t = weight.T.copy()
    n = len(batches.active)
    dh_before, dc_before = like_device.zeros(gates, (n, d), gates.dtype), like_device.zeros(gates, (n, d), gates.dtype)
    for begin, end, continuing in reversed(list(batches)):
        dh_now, dc_now, now = dh[begin:end], dc[begin:end], dz[begin:end]
        if continuing:
            dh_now[:continuing] += dh_before[:continuing]
            dc_now[:continuing] += dc_before[:continuing]
        np.multiply(dh_now, of_hidden[begin:end], out=now[:, 3])
        dc_now += dh_now * through[begin:end]
        if op.use_peepholes:
            dc_now += now[:, 3] * peepholes[2]
        np.multiply(dc_now[:, None], of_cell[begin:end], out=now[:, :3])
        size = end - begin
        dc_previous = np.multiply(dc_now, by_gate[begin:end, 2], out=dc_before[:size])
        if op.use_peepholes:
            dc_previous += now[:, 1] * peepholes[0]
            dc_previous += now[:, 2] * peepholes[1]
        np.matmul(flat[begin:end], weight_t, out=dh_before[:size])
    return flat, dh_before, dc_before


@documented_by(DynamicLstm)
def dynamic_lstm(
    x: Any,
    weight: Any,
    bias: Any,
    h0: Any = None,
    c0: Any = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Run an LSTM over sequences; return the pair (hidden, cell).

    >>> x = ow.LoDTensor(ow.zeros([3, 8]), [[0, 2, 3]])
    >>> hidden, cell = ow.sequence.dynamic_lstm(x, ow.zeros([2, 8]), ow.ones([1, 8]), use_peepholes=False)
    >>> hidden.shape, hidden.lod()
    (TensorShape([3, 2]), [[0, 2, 3]])
    """
    return DynamicLstm(
        x,
        weight,
        bias,
        h0,
        c0,
        use_peepholes=use_peepholes,
        is_reverse=is_reverse,
        gate_activation=gate_activation,
        cell_activation=cell_activation,
        candidate_activation=candidate_activation,
        name=name,
    )
