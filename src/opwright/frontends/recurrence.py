"""Recurrent layers of other frameworks: one direction over all steps of a sequence.

Lives here: `lstm_sequence`, `gru_sequence`, `run_steps`. Not here: order of gates, layers and directions of each
framework (onnx/rules/recurrent.py, torch/rules/recurrent.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.dtypes import int64
from ..ops import array, linalg
from ..ops.nn.gru import GRUSequence
from ..ops.nn.lstm import LSTMSequence
from ..tracing.control import scan

MAX_UNROLLED = 16
"""Greatest number of steps that are written out; more are a loop."""


def with_gates(weights: Any, order: Sequence[int]) -> Any:
    """Return weights [gates * units, ...] with their gates in another order: the k-th is that of number order[k]."""
    gates = array.split(weights, len(order), 0)
    return array.concat([gates[k] for k in order], 0)


def projected(x: Any, w: Any, bias: Any = None) -> Any:
    """Return the part of all gates that does not depend on the state, [steps, batch, gates * units]; w: [gates *
    units, features]."""
    product = linalg.matmul(x, w, transpose_b=True)
    return product if bias is None else product + bias


def lstm_sequence(gates: Any, r: Any, h0: Any, c0: Any) -> tuple[Any, list[Any]]:
    """Return the states after each step and the last state and cell.

    gates: [steps, batch, 4 * units], projections of the inputs with all biases; r: [4 * units, units]; both in the
    order input, forget, candidate, output. h0, c0: [batch, units]
    """
    h, last_h, last_c = LSTMSequence(gates, array.transpose(r, [1, 0]), h0, c0)
    return h, [last_h, last_c]


def gru_sequence(gates: Any, r: Any, bias: Any, h0: Any) -> tuple[Any, list[Any]]:
    """Return the states after each step and the last one; the reset gate multiplies the recurrent product.

    gates: [steps, batch, 3 * units], projections of the inputs with their biases; r: [3 * units, units]; bias: [3 *
    units], the recurrent one, None for 0; all in the order update, reset, candidate. h0: [batch, units]
    """
    bias = array.zeros_like(r[:, 0]) if bias is None else bias
    h, last = GRUSequence(gates, array.transpose(r, [1, 0]), bias, h0)
    return h, [last]


def run_steps(
    step: Callable[[list[Any], Any, Any], tuple[list[Any], Any]], gates: Any, state: list[Any]
) -> tuple[Any, list[Any]]:
    """Return the outputs of all steps, [steps, ...], and the last state.

    step: (state, gates of the step, its number) -> (state, output); the output is like state[0]. A known number of
    steps up to MAX_UNROLLED is written out, any other is a loop.
    """
    steps = gates.shape[0]
    if steps is not None and 0 < steps <= MAX_UNROLLED:
        outputs = []
        for t in range(steps):
            state, y = step(state, gates[t], np.int64(t))
            outputs.append(y)
        return array.stack(outputs, 0), state
    first = [array.identity(s) for s in state]
    line = array.range(np.int64(0), array.shape(gates, int64)[0])
    states, ys = scan(
        lambda carried, item: step(carried[0], item[0], item[1]), (gates, line), (first, array.zeros_like(first[0]))
    )
    return ys, [s[-1] for s in states]
