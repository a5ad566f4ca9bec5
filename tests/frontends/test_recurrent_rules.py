"""Rules of ATen's recurrent operators against their formulas in float64: no torch is needed.

Lives here: LSTM, GRU and RNN, of several layers and directions. Not here: ONNX (test_onnx_backend.py), the operators on
whole sequences (tests/ops).
"""

from __future__ import annotations

import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import UnimplementedError
from opwright.frontends.torch.rules import TABLE, AtenCall, load_rules

load_rules()
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
UNITS, FEATURES, BATCH = 6, 5, 3


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(kind, x, state, w, r, b, c, projection):
    """One step by the formulas in torch's documentation of nn.LSTM, nn.GRU and nn.RNN, gates in their order there."""
    h = state[0]
    if kind.startswith("rnn"):
        z = x @ w.T + b + h @ r.T + c
        return [np.tanh(z) if kind == "rnn_tanh" else np.maximum(z, 0)]
    if kind == "gru":
        (xr, xz, xn), (hr, hz, hn) = (np.split(v, 3, -1) for v in (x @ w.T + b, h @ r.T + c))
        z = sigmoid(xz + hz)
        return [(1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * h]
    i, f, g, o = np.split(x @ w.T + b + h @ r.T + c, 4, -1)
    cell = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(cell)
    return [h if projection is None else h @ projection.T, cell]


def layers(kind, x, state, params, biased, number, ways):
    """Outputs of the last layer and last states, in float64; x: [steps, batch, features]."""
    count, final = len(params) // (number * ways), []
    for layer in range(number):
        sides = []
        for way in range(ways):
            k = layer * ways + way
            w, r, *rest = (p.astype(np.float64) for p in params[k * count : (k + 1) * count])
            b, c = rest[:2] if biased else (0.0, 0.0)
            projection = rest[-1] if len(rest) > 2 * biased else None
            now, ys = [s[k].astype(np.float64) for s in state], []
            for t in x[::-1] if way else x:
                now = step(kind, t, now, w, r, b, c, projection)
                ys.append(now[0])
            sides.append(np.stack(ys[::-1] if way else ys))
            final.append(now)
        x = np.concatenate(sides, -1)
    return [x, *(np.stack(v) for v in zip(*final))]


CASES = [
    # layers, both ways, batch first, biases, steps, projected units
    (1, False, True, True, 4, None),
    (2, True, False, True, 20, None),
    (1, True, True, False, 3, None),
    (2, True, True, True, 20, 2),
]


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(("number", "both", "batch_first", "biased", "steps", "units"), CASES)
def test_sequences(kind, number, both, batch_first, biased, steps, units):
    if units and kind != "lstm":
        units = None
    rng = np.random.default_rng(steps)
    ways, height, out = 1 + both, GATES[kind] * UNITS, units or UNITS
    params = []
    for layer in range(number):
        for _ in range(ways):
            shapes = [(height, ways * out if layer else FEATURES), (height, out)]
            shapes += [(height,)] * 2 * biased + ([(units, UNITS)] if units else [])
            params += [rng.normal(0, 0.5, s).astype(np.float32) for s in shapes]
    x = rng.normal(size=(steps, BATCH, FEATURES)).astype(np.float32)
    state = [rng.normal(size=(number * ways, BATCH, n)).astype(np.float32) for n in (out, UNITS)]
    state = state if kind == "lstm" else state[:1]
    expected = layers(kind, x, state, params, biased, number, ways)
    fed = x.swapaxes(0, 1) if batch_first else x
    if batch_first:
        expected[0] = expected[0].swapaxes(0, 1)

    def call(x, *rest):
        hx = list(rest[: len(state)])
        arguments = (x, hx if kind == "lstm" else hx[0], list(rest[len(state) :]))
        options = (biased, number, 0.0, False, both, batch_first)
        return TABLE.apply(f"aten::{kind}.input", AtenCall(), [*arguments, *options], {})

    for run in (call, ow.function(call)):
        actual = run(ow.constant(fed), *map(ow.constant, state), *map(ow.constant, params))
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            np.testing.assert_allclose(np.asarray(a), e, rtol=2e-5, atol=2e-5)


def test_dropout_in_training_is_refused():
    x, h = np.zeros((2, 1, 3), np.float32), np.zeros((2, 1, 4), np.float32)
    w = [np.zeros(s, np.float32) for s in ((4, 3), (4, 4), (4, 4), (4, 4))]
    with pytest.raises(UnimplementedError, match="eval"):
        TABLE.apply("aten::rnn_tanh.input", AtenCall(), [x, h, w, False, 2, 0.5, True, False, False], {})
