"""Long short-term memory: LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM, BIDIRECTIONAL_SEQUENCE_LSTM.

Lives here: the operators, with float activations and weights of float or int8.
Not here: the cell (lstm_cell.py), products and time (recurrent.py), LSTMs on integers (quantized/recurrent.py), simple
recurrence (rnn.py).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.slots import Input, Output
from .definition import LiteDefinition, lite_operator
from .lstm_cell import BASIC, GATES, LstmCell, LstmNames, check_direction, optional, required, steps_and_batch
from .quantized.operand import Operand, present
from .recurrent import (
    Arrays,
    Kernel,
    Operands,
    RecurrentRegistration,
    activation_attr,
    both_directions,
    both_specs,
    check_aux,
    check_state,
    check_weights,
    linked,
    no_kernel,
    one_direction,
    products_for,
    sigmoid,
)
from .shapes import refuse, spec, text


def _one_direction(op: Any, operands: Operands, outs: Sequence[Operand], node: Any) -> Kernel:
    x, weights = present(operands, "input", "input_to_output_weights")
    if x.type == "INT8" and weights.type == "INT8":
        from .quantized.recurrent import integer_lstm

        return integer_lstm(op, operands, outs[0], node)
    return one_direction(op, LstmCell(op, operands, LstmNames(), products_for(op, x, weights)), outs[0])


def _basic(op: Any, operands: Operands, outs: Sequence[Operand], node: Any) -> Kernel:
    """Return the rule of kernel_type BASIC: one matrix for the gates input, new, forget and output."""
    x, weights = present(operands, "input", "input_to_forget_weights")
    if x.type == "UINT8":
        from .quantized.recurrent import basic_lstm

        return basic_lstm(op, operands, outs)
    if x.type != "FLOAT32" or weights.type != "FLOAT32":
        raise no_kernel(op, x, weights)

    def run(arrays: Arrays) -> tuple[np.ndarray, ...]:
        x, h, w, b, c = (arrays[name] for name in BASIC)
        joined = np.concatenate([x, h], 1)
        let_in, new, forget, let_out = np.split(np.matmul(joined, w.T) + b, 4, 1)
        state = sigmoid(let_in) * np.tanh(new) + sigmoid(forget) * c
        y = sigmoid(let_out) * np.tanh(state)
        np.copyto(h, y)
        np.copyto(c, state)
        return y, state, joined, np.concatenate([let_in, new, forget, let_out], 1)

    return run


def _infer_basic(op: Any) -> list[TensorSpec]:
    x, h, w, b, c = (getattr(op, name) for name in BASIC)
    if any(o is None for o in (x, h, w, b, c)):
        raise refuse("LSTM of kernel_type BASIC has 5 inputs", wanted="input, state, weights, bias, cell state")
    dims = [o.spec.shape.dims for o in (x, h)]
    if dims[0] is None or dims[1] is None:
        return [TensorSpec(None, x.spec.dtype)] * 4
    if len(dims[0]) != 2 or len(dims[1]) != 2:
        raise refuse("input and state have 2 dimensions", found=[text(d) for d in dims], wanted="[batch, n]")
    (batch, n_in), (_, n) = dims
    total = None if n_in is None or n is None else n_in + n
    four = None if n is None else 4 * n
    check_weights("previous output", h, batch, n)
    check_weights("weights", w, four, total)
    check_weights("bias", b, four)
    check_weights("previous state", c, batch, n)
    return [spec(size, x.spec.dtype) for size in ((batch, n), (batch, n), (batch, total), (batch, four))]


def _states(op: Any) -> tuple[str, ...]:
    return (BASIC[1], BASIC[4]) if op.kernel_type == "BASIC" else ("output_state", "cell_state")


def _full_or_basic(op: Any, operands: Operands, outs: Sequence[Operand], node: Any) -> Kernel:
    return (_basic if op.kernel_type == "BASIC" else _one_direction)(op, operands, outs, node)


def _check_operands(op: Any, batch: Any) -> int | None:
    n_cell, n_out = check_direction(op, LstmNames(), op.input.spec)
    check_state("output_state", op.output_state, batch, n_out)
    check_state("cell_state", op.cell_state, batch, n_cell)
    return n_out


@lite_operator("LSTM")
class LstmOp(LiteDefinition):
    """One step of an LSTM, or with kernel_type BASIC of one with a matrix for all gates.

    .. math:: c' = f c + i g,\\ y = h' = P (o\\ act(c')) + p_b

    input: [batch, n], or [time, batch, n]; weights [cells, n] and [cells, out]; y: [batch, out], [time, batch, out].
    The module's docstring has the formulas of the gates; states are variable tensors. BASIC: x [batch, n], previous
    output [batch, out], weights [4 out, n + out], bias, previous state; y, state, x with output, sums of the gates.
    """

    input = Input((float32,))
    (
        input_to_input_weights,
        input_to_forget_weights,
        input_to_cell_weights,
        input_to_output_weights,
        recurrent_to_input_weights,
        recurrent_to_forget_weights,
        recurrent_to_cell_weights,
        recurrent_to_output_weights,
        cell_to_input_weights,
        cell_to_forget_weights,
        cell_to_output_weights,
        input_gate_bias,
        forget_gate_bias,
        cell_gate_bias,
        output_gate_bias,
        projection_weights,
        projection_bias,
        output_state,
        cell_state,
        input_layer_norm_coefficients,
        forget_layer_norm_coefficients,
        cell_layer_norm_coefficients,
        output_layer_norm_coefficients,
    ) = optional(23)
    ys = Output(like="input", repeated=True)
    fused_activation_function = activation_attr()
    intermediates = Attr([object], default=())

    def infer(op: Any) -> list[TensorSpec]:
        if op.kernel_type == "BASIC":
            return _infer_basic(op)
        for name in (
            *[
                t[g]
                for t in (LstmNames().input_weights, LstmNames().recurrent_weights, LstmNames().biases)
                for g in GATES[1:]
            ],
            "output_state",
            "cell_state",
        ):
            if getattr(op, name) is None:
                raise refuse(f"input {name} is left out", wanted="this input")
        x = op.input.spec
        if x.shape.dims is not None and len(x.shape) not in (2, 3):
            raise refuse("the input of LSTM has 2 or 3 dimensions", found=text(x.shape), wanted="[batch, n]")
        n_out = _check_operands(op, None if x.shape.dims is None else x.shape.dims[-2])
        return [TensorSpec(None, x.dtype) if x.shape.dims is None else spec((*x.shape.dims[:-1], n_out), x.dtype)]

    registration = functools.partial(RecurrentRegistration, rule=_full_or_basic, states=_states)


@lite_operator("UNIDIRECTIONAL_SEQUENCE_LSTM")
class UnidirectionalSequenceLstmOp(LiteDefinition):
    """An LSTM over a sequence.

    .. math:: c' = f c + i g,\\ y_t = h' = P (o\\ act(c')) + p_b

    input: [batch, time, n], or [time, batch, n] where time_major is set; weights [cells, n] and [cells, out] (vectors
    [cells] for the recurrent ones where diagonal_recurrent_tensors is set); y: [batch, time, out]. The module's
    docstring has the formulas of the gates; states are variable tensors.
    """

    input = Input((float32,))
    (input_to_input_weights,) = optional(1)
    input_to_forget_weights, input_to_cell_weights, input_to_output_weights = required(3)
    (recurrent_to_input_weights,) = optional(1)
    recurrent_to_forget_weights, recurrent_to_cell_weights, recurrent_to_output_weights = required(3)
    cell_to_input_weights, cell_to_forget_weights, cell_to_output_weights, input_gate_bias = optional(4)
    forget_gate_bias, cell_gate_bias, output_gate_bias = required(3)
    projection_weights, projection_bias = optional(2)
    output_state, cell_state = required(2)
    (
        input_layer_norm_coefficients,
        forget_layer_norm_coefficients,
        cell_layer_norm_coefficients,
        output_layer_norm_coefficients,
    ) = optional(4)
    y = Output(like="input")
    fused_activation_function = activation_attr()
    intermediates = Attr([object], default=())

    def infer(op: Any) -> TensorSpec:
        x = op.input.spec
        _, batch = steps_and_batch(op, x)
        n_out = _check_operands(op, batch)
        return TensorSpec(None, x.dtype) if x.shape.dims is None else spec((*x.shape.dims[:-1], n_out), x.dtype)

    registration = functools.partial(RecurrentRegistration, rule=_one_direction, states=("output_state", "cell_state"))


FORWARD, BACKWARD = LstmNames("fw_"), LstmNames("bw_")


def _both(op: Any, operands: Operands, outs: Sequence[Operand], node: Any) -> Kernel:
    x, weights = present(operands, "input", "fw_input_to_output_weights")
    by = products_for(op, x, weights)
    cells = [LstmCell(op, operands, names, by) for names in (FORWARD, BACKWARD)]
    sizes = [o.shape[-1] for o in present(operands, *(n.recurrent_weights["output"] for n in (FORWARD, BACKWARD)))]

    def link(arrays: Arrays) -> tuple[Any, Any]:
        return linked(arrays["input"], arrays["aux_input"], arrays["fw_aux_input_to_forget_weights"] is not None)

    return both_directions(op, cells, sizes, link)


@lite_operator("BIDIRECTIONAL_SEQUENCE_LSTM")
class BidirectionalSequenceLstmOp(LiteDefinition):
    """Two LSTMs over a sequence, one from its start and one from its end.

    .. math:: y^{fw}_t = LSTM_{fw}(x_0 ... x_t),\\ y^{bw}_t = LSTM_{bw}(x_{T-1} ... x_t)

    input: [time, batch, n], or [batch, time, n] where time_major is not set; fw_y, bw_y: [time, batch, out], or one
    after another in one where merge_outputs is set. aux_input: with weights for it, a second input of both; without,
    the input of the second LSTM. The docstring of UNIDIRECTIONAL_SEQUENCE_LSTM describes the weights.
    """

    input = Input((float32,))
    (fw_input_to_input_weights,) = optional(1)
    fw_input_to_forget_weights, fw_input_to_cell_weights, fw_input_to_output_weights = required(3)
    (fw_recurrent_to_input_weights,) = optional(1)
    fw_recurrent_to_forget_weights, fw_recurrent_to_cell_weights, fw_recurrent_to_output_weights = required(3)
    fw_cell_to_input_weights, fw_cell_to_forget_weights, fw_cell_to_output_weights, fw_input_gate_bias = optional(4)
    fw_forget_gate_bias, fw_cell_gate_bias, fw_output_gate_bias = required(3)
    fw_projection_weights, fw_projection_bias, bw_input_to_input_weights = optional(3)
    bw_input_to_forget_weights, bw_input_to_cell_weights, bw_input_to_output_weights = required(3)
    (bw_recurrent_to_input_weights,) = optional(1)
    bw_recurrent_to_forget_weights, bw_recurrent_to_cell_weights, bw_recurrent_to_output_weights = required(3)
    bw_cell_to_input_weights, bw_cell_to_forget_weights, bw_cell_to_output_weights, bw_input_gate_bias = optional(4)
    bw_forget_gate_bias, bw_cell_gate_bias, bw_output_gate_bias = required(3)
    bw_projection_weights, bw_projection_bias = optional(2)
    fw_output_state, fw_cell_state, bw_output_state, bw_cell_state = required(4)
    (
        aux_input,
        fw_aux_input_to_input_weights,
        fw_aux_input_to_forget_weights,
        fw_aux_input_to_cell_weights,
        fw_aux_input_to_output_weights,
        bw_aux_input_to_input_weights,
        bw_aux_input_to_forget_weights,
        bw_aux_input_to_cell_weights,
        bw_aux_input_to_output_weights,
    ) = optional(9)
    ys = Output(like="input", repeated=True)
    fused_activation_function = activation_attr()

    def infer(op: Any) -> list[TensorSpec]:
        x = op.input.spec
        _, batch = steps_and_batch(op, x)
        check_aux(op.input, op.aux_input)
        second, aux = linked(op.input, op.aux_input, op.fw_aux_input_to_forget_weights is not None)
        sizes = []
        for names, source in ((FORWARD, op.input), (BACKWARD, second)):
            n_cell, n_out = check_direction(op, names, source.spec, None if aux is None else aux.spec)
            check_state(names.h, getattr(op, names.h), batch, n_out)
            check_state(names.c, getattr(op, names.c), batch, n_cell)
            sizes.append(n_out)
        return both_specs(op, x, sizes)

    registration = functools.partial(
        RecurrentRegistration, rule=_both, states=(FORWARD.h, FORWARD.c, BACKWARD.h, BACKWARD.c)
    )
