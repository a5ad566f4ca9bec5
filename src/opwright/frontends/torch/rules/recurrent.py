"""Recurrent layers: LSTM, GRU and RNN over all steps, of several layers, in one direction or both.

Lives here: rules of ATen's recurrent operators on whole sequences. Not here: cells, which torch decomposes; packed
sequences, which torch.export refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....ops import array, linalg, math, nn
from ...recurrence import gru_sequence, lstm_sequence, projected, run_steps, with_gates
from .activations import dropout
from .table import AtenCall, aten, tensor

Direction = Callable[[Any, Sequence[Any], "list[Any]"], "tuple[Any, list[Any]]"]
"""A function (x, weights, state) of one direction: outputs of all steps, last state. x: [steps, batch, features]."""

_UPDATE_FIRST = (1, 0, 2)
"""Update, reset, candidate: the order of gates of GRUSequence among those of PyTorch."""


def _layers(
    op: AtenCall,
    direction: Direction,
    x: Any,
    state: Sequence[Any],
    params: Sequence[Any],
    num_layers: int,
    dropout_p: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Any, ...]:
    """Return the outputs of the last layer and the last states of all, stacked by layer and direction."""
    x, state = tensor(x), [tensor(s) for s in state]
    ways = 2 if bidirectional else 1
    count = len(params) // (num_layers * ways)
    x = array.transpose(x, [1, 0, 2]) if batch_first else x
    last: list[list[Any]] = []
    for layer in range(num_layers):
        if layer:
            x = dropout(op, x, dropout_p, train)
        outputs = []
        for way in range(ways):
            k = layer * ways + way
            weights = [tensor(p) for p in params[k * count : (k + 1) * count]]
            y, final = direction(array.reverse(x, [0]) if way else x, weights, [s[k] for s in state])
            outputs.append(array.reverse(y, [0]) if way else y)
            last.append(final)
        x = array.concat(outputs, 2) if bidirectional else outputs[0]
    x = array.transpose(x, [1, 0, 2]) if batch_first else x
    return (x, *(array.stack(values, 0) for values in zip(*last)))


def _lstm_direction(has_biases: bool) -> Direction:
    def run(x: Any, weights: Sequence[Any], state: list[Any]) -> tuple[Any, list[Any]]:
        w, r, *rest = weights
        gates = projected(x, w, rest[0] + rest[1] if has_biases else None)
        if len(rest) == 2 * has_biases:
            return lstm_sequence(gates, r, *state)
        projection = rest[-1]

        def step(state: list[Any], gate: Any, index: Any) -> tuple[list[Any], Any]:
            h, c = state
            i, f, g, o = array.split(gate + linalg.matmul(h, r, transpose_b=True), 4, 1)
            c = math.sigmoid(f) * c + math.sigmoid(i) * math.tanh(g)
            h = linalg.matmul(math.sigmoid(o) * math.tanh(c), projection, transpose_b=True)
            return [h, c], h

        return run_steps(step, gates, state)

    return run


@aten("lstm.input")
def lstm(op: AtenCall, x: Any, hx: Sequence[Any], params: Sequence[Any], has_biases: bool, *layers: Any) -> Any:
    return _layers(op, _lstm_direction(has_biases), x, hx, params, *layers)


def _gru_direction(has_biases: bool) -> Direction:
    def run(x: Any, weights: Sequence[Any], state: list[Any]) -> tuple[Any, list[Any]]:
        w, r, *biases = (with_gates(v, _UPDATE_FIRST) for v in weights)
        bias, recurrent_bias = biases if has_biases else (None, None)
        return gru_sequence(projected(x, w, bias), r, recurrent_bias, *state)

    return run


@aten("gru.input")
def gru(op: AtenCall, x: Any, hx: Any, params: Sequence[Any], has_biases: bool, *layers: Any) -> Any:
    return _layers(op, _gru_direction(has_biases), x, [hx], params, *layers)


def _rnn(activation: Callable[[Any], Any]) -> Callable[..., Any]:
    def rule(op: AtenCall, x: Any, hx: Any, params: Sequence[Any], has_biases: bool, *layers: Any) -> Any:
        def run(x: Any, weights: Sequence[Any], state: list[Any]) -> tuple[Any, list[Any]]:
            w, r, *biases = weights
            bias = biases[0] + biases[1] if has_biases else None

            def step(state: list[Any], gate: Any, index: Any) -> tuple[list[Any], Any]:
                h = activation(gate + linalg.matmul(state[0], r, transpose_b=True))
                return [h], h

            return run_steps(step, projected(x, w, bias), state)

        return _layers(op, run, x, [hx], params, *layers)

    return rule


aten("rnn_tanh.input")(_rnn(math.tanh))
aten("rnn_relu.input")(_rnn(nn.relu))
