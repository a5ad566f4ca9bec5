"""BIDIRECTIONAL_SEQUENCE_LSTM: two LSTMs, of which one goes through the sequence from its end.

Lives here: the operator, with float activations (weights float or int8).  Not here: the LSTM itself (lstm.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...ops.slots import Input, Output
from .definition import lite_operator
from .lstm import Cell, Names, check_direction, needed, optional, steps_and_batch
from .quantized.operand import Operand, present
from .recurrent import (
    RecurrentRegistration,
    activation_attr,
    both_specs,
    check_aux,
    check_state,
    linked,
    outputs_of,
    products_for,
    sequence,
)

FORWARD, BACKWARD = Names("fw_"), Names("bw_")


def _both(op: Any, operands: Mapping[str, Operand | None], outs: Sequence[Operand], node: Any) -> Any:
    x, weights = present(operands, "input", "fw_input_to_output_weights")
    by = products_for(op, x, weights)
    forward, backward = (Cell(op, operands, names, by) for names in (FORWARD, BACKWARD))
    sizes = [o.shape[-1] for o in present(operands, *(n.recurrent_weights["output"] for n in (FORWARD, BACKWARD)))]

    def run(arrays: Mapping[str, Any]) -> Any:
        given, aux = arrays["input"], arrays["aux_input"]
        second, aux = linked(given, aux, arrays["fw_aux_input_to_forget_weights"] is not None)
        x, other = sequence(given, op.time_major), sequence(second, op.time_major)
        aux = None if aux is None else sequence(aux, op.time_major)
        made = [np.empty((*x.shape[:2], n), np.float32) for n in sizes]
        forward.run(arrays, x, made[0], aux)
        backward.run(arrays, other, made[1], aux, backward=True)
        return outputs_of(op, made)

    return run


@lite_operator("BIDIRECTIONAL_SEQUENCE_LSTM")
class BidirectionalSequenceLstm:
    """Two LSTMs over a sequence, one from its start and one from its end.

    .. math:: y^{fw}_t = LSTM_{fw}(x_0 ... x_t),\\ y^{bw}_t = LSTM_{bw}(x_{T-1} ... x_t)

    input: [time, batch, n], or [batch, time, n] where time_major is not set; fw_y, bw_y: [time, batch, out], or one
    after another in one where merge_outputs is set. aux_input: with weights for it, a second input of both; without,
    the input of the second LSTM. The docstring of UNIDIRECTIONAL_SEQUENCE_LSTM says what the weights are.
    """

    input = Input((float32,))
    (fw_input_to_input_weights,) = optional(1)
    fw_input_to_forget_weights, fw_input_to_cell_weights, fw_input_to_output_weights = needed(3)
    (fw_recurrent_to_input_weights,) = optional(1)
    fw_recurrent_to_forget_weights, fw_recurrent_to_cell_weights, fw_recurrent_to_output_weights = needed(3)
    fw_cell_to_input_weights, fw_cell_to_forget_weights, fw_cell_to_output_weights, fw_input_gate_bias = optional(4)
    fw_forget_gate_bias, fw_cell_gate_bias, fw_output_gate_bias = needed(3)
    fw_projection_weights, fw_projection_bias, bw_input_to_input_weights = optional(3)
    bw_input_to_forget_weights, bw_input_to_cell_weights, bw_input_to_output_weights = needed(3)
    (bw_recurrent_to_input_weights,) = optional(1)
    bw_recurrent_to_forget_weights, bw_recurrent_to_cell_weights, bw_recurrent_to_output_weights = needed(3)
    bw_cell_to_input_weights, bw_cell_to_forget_weights, bw_cell_to_output_weights, bw_input_gate_bias = optional(4)
    bw_forget_gate_bias, bw_cell_gate_bias, bw_output_gate_bias = needed(3)
    bw_projection_weights, bw_projection_bias = optional(2)
    fw_output_state, fw_cell_state, bw_output_state, bw_cell_state = needed(4)
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

    def infer(op: Any) -> Any:
        x = op.input.spec
        _, batch = steps_and_batch(op, x)
        check_aux(op.input, op.aux_input)
        second, aux = linked(op.input, op.aux_input, op.fw_aux_input_to_forget_weights is not None)
        sizes = []
        for names, given in ((FORWARD, op.input), (BACKWARD, second)):
            n_cell, n_out = check_direction(op, names, given.spec, None if aux is None else aux.spec)
            check_state(names.h, getattr(op, names.h), batch, n_out)
            check_state(names.c, getattr(op, names.c), batch, n_cell)
            sizes.append(n_out)
        return both_specs(op, x, sizes)

    def registration(operator: Any) -> Any:
        return RecurrentRegistration(operator, _both, (FORWARD.h, FORWARD.c, BACKWARD.h, BACKWARD.c))
