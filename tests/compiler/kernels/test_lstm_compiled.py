"""The steps of an LSTM as one kernel, against NumPy in float64."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, targets

from opwright.compiler.kernels.lstm import lstm
from opwright.compiler.kernels.lstm_int8 import lstm_int8
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.planner import plan_of
from opwright.compiler.loops.recurrent_ops import Lstm
from opwright.core.dtypes import float32

RNG = np.random.default_rng(11)
ACTIVATIONS = {
    "TANH": np.tanh,
    "NONE": lambda x: x,
    "RELU6": lambda x: np.clip(x, 0, 6),
    "RELU": lambda x: np.maximum(x, 0),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def clipped(x, most):
    return np.clip(x, -most, most) if most else x


def expected(gates, recurrent, h, c, peepholes, projection, activation, time_major, clips):
    act = ACTIVATIONS[activation]
    if not time_major:
        gates = [g.swapaxes(0, 1) for g in gates]
    out = []
    seen = dict(zip((0, 1, 3) if len(gates) == 4 else (0, 2), peepholes))
    for t in range(gates[0].shape[0]):
        z = [g[t] + h @ r.T for g, r in zip(gates, recurrent)]
        first = len(gates) - 3
        look = lambda i, c: c * seen[i] if i in seen else 0  # noqa: E731
        forget = sigmoid(z[first] + look(first, c))
        let_in = sigmoid(z[0] + look(0, c)) if first else 1 - forget
        c = clipped(forget * c + let_in * act(z[first + 1]), clips[0])
        y = sigmoid(z[-1] + look(len(gates) - 1, c)) * act(c)
        if projection:
            y = clipped(y @ projection[0].T + (projection[1] if len(projection) > 1 else 0), clips[1])
        h = y
        out.append(y)
    y = np.stack(out)
    return (y if time_major else y.swapaxes(0, 1)), h, c


def drawn(*shape, scale=0.5):
    return RNG.normal(0, scale, shape).astype(np.float32)


def run(gates, recurrent, h, c, peepholes, projection, activation, time_major, clips, backward):
    outputs = recurrent[0].shape[1]

    def known(arrays, name):
        return tuple(Buffer(f"{name}{i}", float32, a.shape, a) for i, a in enumerate(arrays))

    inputs = [buffer(g, f"g{i}") for i, g in enumerate(gates)]
    states = buffer(h, "h"), buffer(c, "c")
    y = Buffer("y", float32, (*gates[0].shape[:2], outputs))
    form = Lstm(
        y,
        tuple(inputs),
        known(recurrent, "r"),
        *states,
        known(peepholes, "p"),
        known(projection, "w"),
        activation,
        time_major,
        clips,
        backward,
    )
    plan = plan_of(LoopGraph("test", (*inputs, *states), (y,), (form,)))
    plan.pack()
    out = np.empty(y.shape, np.float32)
    state = h.copy(), c.copy()
    running = plan.bind()
    arrays = dict(zip((*inputs, *states, y), (*gates, *state, out)))
    running.connect({b: a.ctypes.data for b, a in arrays.items()})
    running.run()
    return out, *state


CASES = [
    # time, batch, cells, out, gates, peepholes, projection, activation, time major, clips
    (1, 1, 1, 1, 4, False, 0, "TANH", True, (0.0, 0.0)),
    (7, 1, 37, 37, 4, False, 0, "TANH", True, (0.0, 0.0)),
    (5, 3, 64, 64, 4, True, 0, "TANH", False, (0.0, 0.0)),
    (4, 4, 20, 20, 3, True, 0, "RELU6", True, (0.0, 0.0)),
    (6, 2, 33, 9, 4, True, 2, "TANH", False, (0.3, 0.2)),
    (3, 8, 17, 40, 3, False, 1, "RELU", True, (0.0, 0.5)),
    (3, 5, 16, 16, 4, False, 0, "NONE", True, (0.7, 0.0)),
    (2, 1, 128, 128, 4, False, 0, "RELU_N1_TO_1", True, (0.0, 0.0)),
]


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_steps_of_an_lstm(case, backward):
    steps, batch, cells, outputs, count, peeps, projected, activation, time_major, clips = case
    lead = (steps, batch) if time_major else (batch, steps)
    gates = [drawn(*lead, cells) for _ in range(count)]
    recurrent = [drawn(cells, outputs, scale=outputs**-0.5) for _ in range(count)]
    peepholes = [drawn(cells) for _ in range(count - 1)] if peeps else []
    projection = [drawn(outputs, cells, scale=cells**-0.5), drawn(outputs)][:projected]
    h, c = drawn(batch, outputs), drawn(batch, cells)
    rest = (peepholes, projection, activation, time_major, clips)
    turn = (lambda x: np.flip(x, 0 if time_major else 1)) if backward else (lambda x: x)
    y, *states = expected([turn(g.astype(np.float64)) for g in gates], recurrent, h, c, *rest)
    for actual, true in zip(run(gates, recurrent, h, c, *rest, backward), (turn(y), *states), strict=True):
        np.testing.assert_allclose(actual, true, rtol=1e-5, atol=1e-6)


@targets(
    (
        lstm,
        {
            "rows": 1,
            "gates": 4,
            "peepholes": True,
            "projected": 2,
            "activation": "TANH",
            "normed": False,
            "rounding": "",
            "diagonal": True,
        },
    ),
    (
        lstm,
        {
            "rows": 4,
            "gates": 3,
            "peepholes": False,
            "projected": 0,
            "activation": "RELU6",
            "normed": True,
            "rounding": "asymmetric",
            "diagonal": False,
        },
    ),
    (lstm_int8, {"rows": 1, "gates": 3, "projected": 2, "power": -17, "peepholes": True, "normed": True}),
)
def test_an_lstm_compiles_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
