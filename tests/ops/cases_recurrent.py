"""Rows of recurrent layers over sequences of one length: `ops/nn/lstm.py`, `ops/nn/gru.py`.

Lives here: a row or two of each kind for each operator.  Not here: second derivatives (test_sequence_recurrent.py),
sequences of different lengths (cases_sequence.py). Oracles are loops over steps (sequence_oracles.py).
"""

from __future__ import annotations

import sequence_oracles as by_loop
from harness import bad, case, f64


def lstm_grads(steps, batch, units):
    """Operands of LSTMSequenceGrad; gates are activated."""
    state, first = (steps, batch, units), (batch, units)
    shapes = [state, first, first, (steps, batch, 4 * units), (units, 4 * units), first, first, state, state]
    return [*(f64(*shape) for shape in shapes), f64(steps, batch, 4 * units) / 4 + 0.5]


def lstm_grad_row(steps, batch, units, dc=False):
    inputs = [*lstm_grads(steps, batch, units), f64(steps, batch, units) if dc else None]
    return case(*inputs, grad=False, expect=by_loop.lstm_sequence_grad)


def gru_grads(steps, batch, units):
    """Operands of GRUSequenceGrad; gates are activated."""
    state, first, gates = (steps, batch, units), (batch, units), (steps, batch, 3 * units)
    shapes = [state, first, gates, (units, 3 * units), (3 * units,), first, state]
    return [*(f64(*shape) for shape in shapes), f64(*gates) / 4 + 0.5, f64(*state)]


CASES = {
    "LSTMSequence": [
        case(f64(3, 2, 12), f64(3, 12), f64(2, 3), f64(2, 3), expect=by_loop.lstm_sequence),
        case(f64(1, 3, 4), f64(1, 4), f64(3, 1), f64(3, 1), expect=by_loop.lstm_sequence),
        case(f64(0, 2, 8), f64(2, 8), f64(2, 2), f64(2, 2), expect=by_loop.lstm_sequence),
        bad(f64(3, 2, 11), f64(3, 12), f64(2, 3), f64(2, 3), says=("'x'", "[3, 2, 12]")),
        bad(f64(3, 2, 12), f64(3, 9), f64(2, 3), f64(2, 3), says=("'recurrent_kernel'", "[3, 12]")),
        bad(f64(3, 2, 12), f64(3, 12), f64(3, 3), f64(2, 3), says=("'h0'", "[2, 3]")),
        bad(f64(3, 2, 12), f64(3, 12), f64(2, 3), f64(2, 4), says=("'c0'", "[2, 3]")),
        bad(f64(3, 12), f64(3, 12), f64(2, 3), f64(2, 3), says="rank"),
    ],
    "LSTMSequenceGrad": [
        lstm_grad_row(3, 2, 2),
        lstm_grad_row(2, 1, 3, dc=True),
        bad(*lstm_grads(3, 2, 2)[:9], f64(3, 2, 7), None, says=("'gates'", "[3, 2, 8]")),
        bad(f64(3, 2, 3), *lstm_grads(3, 2, 2)[1:], None, says=("'dh'", "[3, 2, 2]")),
    ],
    "LSTMSequenceGradGrad": [
        bad(
            f64(3, 2, 8),
            f64(2, 2),
            f64(2, 2),
            *[lstm_grads(3, 2, 2)[k] for k in (0, 1, 2, 4, 6)],
            f64(2, 2, 2),
            f64(3, 2, 8),
            None,
            says=("'c'", "[3, 2, 2]"),
        )
    ],
    "GRUSequence": [
        case(f64(3, 2, 9), f64(3, 9), f64(9), f64(2, 3), expect=by_loop.gru_sequence),
        case(f64(1, 3, 3), f64(1, 3), f64(3), f64(3, 1), expect=by_loop.gru_sequence),
        case(f64(0, 2, 6), f64(2, 6), f64(6), f64(2, 2), expect=by_loop.gru_sequence),
        bad(f64(3, 2, 8), f64(3, 9), f64(9), f64(2, 3), says=("'x'", "[3, 2, 9]")),
        bad(f64(3, 2, 9), f64(3, 12), f64(9), f64(2, 3), says=("'recurrent_kernel'", "[3, 9]")),
        bad(f64(3, 2, 9), f64(3, 9), f64(3), f64(2, 3), says=("'bias'", "[9]")),
        bad(f64(3, 2, 9), f64(3, 9), f64(9), f64(3, 3), says=("'h0'", "[2, 3]")),
    ],
    "GRUSequenceGrad": [
        case(*gru_grads(3, 2, 2), grad=False, expect=by_loop.gru_sequence_grad),
        bad(*gru_grads(3, 2, 2)[:8], f64(3, 2, 3), says=("'inner'", "[3, 2, 2]")),
    ],
    "GRUSequenceGradGrad": [
        bad(
            f64(3, 2, 6),
            f64(3, 2, 6),
            f64(2, 2),
            *[gru_grads(3, 2, 2)[k] for k in (0, 1, 3, 5, 6, 7)],
            f64(2, 2, 2),
            says=("'inner'", "[3, 2, 2]"),
        )
    ],
}
