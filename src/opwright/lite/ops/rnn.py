"""Simple recurrence: RNN, UNIDIRECTIONAL_SEQUENCE_RNN, BIDIRECTIONAL_SEQUENCE_RNN; and SVDF, which filters over time.

Lives here: the operators, with float activations and weights of float or int8.
Not here: the cell of LSTMs (lstm_cell.py), products and time (recurrent.py), SVDF on integers (quantized/recurrent.py).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from .definition import LiteDefinition, lite_operator
from .lstm_cell import steps_and_batch
from .quantized.operand import Operand, present
from .recurrent import (
    ACTIVATIONS,
    Arrays,
    Kernel,
    Operands,
    Products,
    RecurrentRegistration,
    activation_attr,
    both_directions,
    both_specs,
    check_aux,
    check_state,
    check_weights,
    linked,
    one_direction,
    products_for,
)
from .shapes import refuse, same, spec, text


def _last(x: Any) -> int | None:
    return x.spec.shape[-1] if x.spec.shape.rank else None


def _check(op: Any, prefix: str, x: Any, batch: Any) -> int | None:
    """Check the weights of one direction; return its number of units."""
    weights = getattr(op, f"{prefix}weights")
    units = weights.spec.shape[0] if weights.spec.shape.rank == 2 else None
    check_weights(f"{prefix}weights", weights, units, _last(x))
    check_weights(f"{prefix}recurrent_weights", getattr(op, f"{prefix}recurrent_weights"), units, units)
    check_weights(f"{prefix}bias", getattr(op, f"{prefix}bias"), units)
    check_state(f"{prefix}hidden_state", getattr(op, f"{prefix}hidden_state"), batch, units)
    return units


class RnnCell:
    """One direction: `run` steps through a sequence, reading and writing its state."""

    def __init__(self, op: Any, operands: Operands, prefix: str, by: Products) -> None:
        self.act, self.by, self.prefix = ACTIVATIONS[op.fused_activation_function], by, prefix
        names = (f"{prefix}weights", f"{prefix}recurrent_weights", f"{prefix}aux_weights")
        self.matrices = [(n, by.matrix(operands[n])) for n in names if operands.get(n) is not None]

    def run(self, arrays: Arrays, x: Any, out: Any, aux: Any = None, backward: bool = False) -> None:
        """Step through x [time, batch, n] and write [time, batch, units]; the state is read and written."""
        by = self.by
        steps, batch = x.shape[:2]
        ready = [make(arrays[name]) for name, make in self.matrices]
        y = by.times(by.rows(x.reshape(steps * batch, -1)), ready[0])
        if aux is not None and len(ready) > 2:
            y += by.times(by.rows(aux.reshape(steps * batch, -1)), ready[2])
        y += arrays[f"{self.prefix}bias"]
        y = y.reshape(steps, batch, -1)
        h = arrays[f"{self.prefix}hidden_state"].reshape(batch, -1)
        for t in reversed(range(steps)) if backward else range(steps):
            np.copyto(h, self.act(y[t] + by.times(by.rows(h), ready[1])))
            out[t] = h


def _steps(op: Any, operands: Operands, outs: Sequence[Operand], node: Any) -> Kernel:
    x, weights = present(operands, "input", "weights")
    return one_direction(op, RnnCell(op, operands, "", products_for(op, x, weights)), outs[0])


@lite_operator("RNN")
class RnnOp(LiteDefinition):
    """One step of a recurrent layer, whose output is its state.

    .. math:: y = h' = act(W x + R h + b)

    input: [batch, n]; weights: [units, n]; recurrent_weights: [units, units]; bias: [units]; hidden_state: a variable
    tensor [batch, units]; y: [batch, units].
    """

    input = Input((float32,), rank=2)
    weights, recurrent_weights, bias, hidden_state = (Input((float32,)) for _ in range(4))
    y = Output(like="input")
    fused_activation_function = activation_attr()

    def infer(op: Any) -> TensorSpec:
        batch = op.input.spec.shape[0] if op.input.spec.shape.rank else None
        return spec((batch, _check(op, "", op.input, batch)), op.input.spec.dtype)

    registration = functools.partial(RecurrentRegistration, rule=_steps, states=("hidden_state",))


@lite_operator("UNIDIRECTIONAL_SEQUENCE_RNN")
class UnidirectionalSequenceRnnOp(LiteDefinition):
    """A recurrent layer over a sequence.

    .. math:: y_t = h' = act(W x_t + R h + b)

    input: [batch, time, n], or [time, batch, n] where time_major is set; y: [batch, time, units]; the others as RNN's.
    """

    input = Input((float32,))
    weights, recurrent_weights, bias, hidden_state = (Input((float32,)) for _ in range(4))
    y = Output(like="input")
    fused_activation_function = activation_attr()

    def infer(op: Any) -> TensorSpec:
        x = op.input.spec
        units = _check(op, "", op.input, steps_and_batch(op, x)[1])
        return TensorSpec(None, x.dtype) if x.shape.dims is None else spec((*x.shape.dims[:-1], units), x.dtype)

    registration = functools.partial(RecurrentRegistration, rule=_steps, states=("hidden_state",))


def _linked(op: Any, x: Any, aux: Any, has_weights: bool) -> tuple[Any, Any]:
    """Apply `linked`; without time_major, the official kernel ignores aux without weights."""
    return linked(x, aux, has_weights) if op.time_major or has_weights else (x, None)


def _both(op: Any, operands: Operands, outs: Sequence[Operand], node: Any) -> Kernel:
    x, weights = present(operands, "input", "fw_weights")
    by = products_for(op, x, weights)
    cells = [RnnCell(op, operands, prefix, by) for prefix in ("fw_", "bw_")]
    sizes = [o.shape[0] for o in present(operands, "fw_weights", "bw_weights")]

    def link(arrays: Arrays) -> tuple[Any, Any]:
        return _linked(op, arrays["input"], arrays["aux_input"], arrays["fw_aux_weights"] is not None)

    return both_directions(op, cells, sizes, link)


@lite_operator("BIDIRECTIONAL_SEQUENCE_RNN")
class BidirectionalSequenceRnnOp(LiteDefinition):
    """Two recurrent layers over a sequence, one from its start and one from its end.

    .. math:: y_t = h' = act(W x_t + A a_t + R h + b)

    aux_input: with fw_aux_weights and bw_aux_weights a second input a of both; without,
    the input of the second layer if time_major is set.
    fw_y, bw_y: [batch, time, units] ([time, batch, units] where time_major is set), or one after another in one where
    merge_outputs is set; the others as RNN's.
    """

    input = Input((float32,))
    (
        fw_weights,
        fw_recurrent_weights,
        fw_bias,
        fw_hidden_state,
        bw_weights,
        bw_recurrent_weights,
        bw_bias,
        bw_hidden_state,
    ) = (Input((float32,)) for _ in range(8))
    aux_input, fw_aux_weights, bw_aux_weights = (Input((float32,), optional=True) for _ in range(3))
    ys = Output(like="input", repeated=True)
    fused_activation_function = activation_attr()

    def infer(op: Any) -> list[TensorSpec]:
        x = op.input.spec
        _, batch = steps_and_batch(op, x)
        check_aux(op.input, op.aux_input)
        second, aux = _linked(op, op.input, op.aux_input, op.fw_aux_weights is not None)
        sizes = []
        for prefix, source in (("fw_", op.input), ("bw_", second)):
            sizes.append(_check(op, prefix, source, batch))
            if aux is not None:
                check_weights(f"{prefix}aux_weights", getattr(op, f"{prefix}aux_weights"), sizes[-1], _last(aux))
        return both_specs(op, x, sizes)

    registration = functools.partial(RecurrentRegistration, rule=_both, states=("fw_hidden_state", "bw_hidden_state"))


# ---- filters over time -----------------------------------------------------------------------------------------------


def _filters(op: Any, operands: Operands, outs: Sequence[Operand], node: Any) -> Kernel:
    x, feature, time = present(operands, "input", "weights_feature", "weights_time")
    if x.type == "INT8":
        from .quantized.recurrent import svdf

        return svdf(op, operands, outs[0])
    by = products_for(op, x, feature)
    matrix, vector, act = by.matrix(feature), by.vector(time), ACTIVATIONS[op.fused_activation_function]

    def run(arrays: Arrays) -> tuple[np.ndarray]:
        state = shifted(arrays["state"], x.shape[0], feature.shape[0])
        state[:, :, -1] = by.times(by.rows(arrays["input"]), matrix(arrays["weights_feature"]))
        y = np.einsum("bfm,fm->bf", state, vector(arrays["weights_time"]))
        y, bias = y.reshape(len(y), -1, op.rank).sum(2, dtype=np.float32), arrays["bias"]
        return (act(y if bias is None else y + bias),)

    return run


def shifted(state: np.ndarray, batch: int, filters: int) -> np.ndarray:
    """Shift the state [batch, filters, memory] of each filter by one step; the last element is to be set."""
    past = state.reshape(batch, filters, -1)
    past[:, :, :-1] = past[:, :, 1:].copy()
    return past


@lite_operator("SVDF")
class SvdfOp(LiteDefinition):
    """Filters over the features of the input, then over time; each unit is the sum of `rank` of them.

    .. math:: y_u = act(b_u + \\sum_{f \\in u} \\sum_m T_{fm} s_{fm}),\\ s_f = (W_f x)\\ \\text{of the last runs}

    input: [batch, n]; weights_feature W: [filters, n]; weights_time T: [filters, memory]; bias: [filters / rank];
    state: a variable tensor [batch, memory * filters]; y: [batch, filters / rank].
    """

    input = Input((float32,), rank=2)
    weights_feature, weights_time = Input((float32,), rank=2), Input((float32,), rank=2)
    bias, state = Input((float32,), optional=True), Input((float32,))
    y = Output(like="input")
    fused_activation_function = activation_attr()

    def infer(op: Any) -> TensorSpec:
        filters, n = op.weights_feature.spec.shape.dims or (None, None)
        other, memory = op.weights_time.spec.shape.dims or (None, None)
        batch, features = op.input.spec.shape.dims or (None, None)
        if op.rank < 1 or not same(filters, other) or not same(features, n) or (filters or 0) % op.rank or memory == 0:
            raise refuse(
                "input, filters and rank do not fit each other",
                found={
                    "input": text(op.input.spec.shape),
                    "features": text(op.weights_feature.spec.shape),
                    "time": text(op.weights_time.spec.shape),
                    "rank": op.rank,
                },
                wanted="features [filters, n], time [filters, memory], rank that divides filters",
            )
        units = None if filters is None else filters // op.rank
        check_weights("bias", op.bias, units)
        check_state("state", op.state, batch, None if memory is None or filters is None else memory * filters)
        return spec((batch, units), op.input.spec.dtype)

    registration = functools.partial(RecurrentRegistration, rule=_filters, states=("state",))
