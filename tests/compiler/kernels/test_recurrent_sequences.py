"""All steps of an LSTM and of a GRU, and their gradients, as one kernel each, against NumPy in float64."""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from form_kit import compiles_for, targets

import opwright as ow
from opwright.compiler.kernels.gru_sequence import gru_sequence, gru_sequence_grad
from opwright.compiler.kernels.lstm_sequence import lstm_sequence, lstm_sequence_grad
from opwright.ops.nn.gru import GRUSequence
from opwright.ops.nn.lstm import LSTMSequence

sys.path.insert(0, str(Path(__file__).parents[2] / "ops"))
import sequence_oracles as by_loop

from thorough import crossed

SIZES = [
    # steps, batch, units: fewer cells than a vector, a part of one, several groups of vectors; rows left over
    (1, 1, 1),
    (7, 3, 5),
    (4, 13, 33),
    (3, 6, 70),
    (5, 32, 128),
    (2, 17, 16),
]


def stepped(layer: Any, inputs: list[np.ndarray], weights: list[np.ndarray], threads: int) -> list[np.ndarray]:
    """Return the layer's results and gradients from one native call."""

    @ow.function(jit_compile=True)
    def step(*values):
        with ow.GradientTape() as tape:
            tape.watch(values)
            outputs = layer(*values)
            total = sum(ow.reduce_sum(y * w) for y, w in zip(outputs, weights))
        return [*outputs, *tape.gradient(total, values)]

    values = list(map(ow.constant, inputs))
    with ow.flags(num_threads=threads):
        results = [y.numpy() for y in step(*values)]
    assert ", 0 as they are" in step.experimental_get_compiler_ir(*values)().splitlines()[0]
    return results


def operands(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Return operands of these shapes, the second of which is the recurrent kernel."""
    rng = np.random.default_rng(sum(map(math.prod, shapes)))
    scales = [1.0 if k != 1 else 1 / shapes[1][0] ** 0.5 for k in range(len(shapes))]
    return [(rng.uniform(-1, 1, shape) * scale).astype(np.float32) for shape, scale in zip(shapes, scales)]


def assert_near(results: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for y, exact in zip(results, expected, strict=True):
        np.testing.assert_allclose(y, exact, rtol=1e-4, atol=2e-6 * max(1.0, np.abs(exact).max()))


@pytest.mark.parametrize(("size", "threads"), crossed(SIZES, [1, 2], every=4), ids=str)
def test_states_and_gradients_of_an_lstm(size: tuple[int, int, int], threads: int) -> None:
    steps, batch, units = size
    inputs = operands((steps, batch, 4 * units), (units, 4 * units), (batch, units), (batch, units))
    weights = operands((steps, batch, units), (batch, units), (batch, units))
    results = stepped(LSTMSequence, inputs, weights, threads)
    exact, arrivals = ([a.astype(np.float64) for a in arrays] for arrays in (inputs, weights))
    h, last_h, last_c = by_loop.lstm_sequence(*exact)
    cells, gates, c = [], [], exact[3]
    for z, before in zip(exact[0], (exact[2], *h)):
        i, f, g, o = np.split(z + before @ exact[1], 4, -1)
        i, f, o, g = *(1 / (1 + np.exp(-v)) for v in (i, f, o)), np.tanh(g)
        c = f * c + i * g
        cells.append(c)
        gates.append(np.concatenate([i, f, g, o], -1))
    dx, dh0, dc0 = by_loop.lstm_sequence_grad(*arrivals, *exact, h, np.stack(cells), np.stack(gates))
    dkernel = np.einsum("tbu,tbg->ug", np.concatenate([exact[2][None], h])[:-1], dx)
    assert_near(results, [h, last_h, last_c, dx, dkernel, dh0, dc0])


@pytest.mark.parametrize(("size", "threads"), crossed(SIZES, [1, 2], every=4), ids=str)
def test_states_and_gradients_of_a_gru(size: tuple[int, int, int], threads: int) -> None:
    steps, batch, units = size
    inputs = operands((steps, batch, 3 * units), (units, 3 * units), (3 * units,), (batch, units))
    weights = operands((steps, batch, units), (batch, units))
    results = stepped(GRUSequence, inputs, weights, threads)
    exact, arrivals = ([a.astype(np.float64) for a in arrays] for arrays in (inputs, weights))
    h, last_h = by_loop.gru_sequence(*exact)
    gates, inner = [], []
    for x, before in zip(exact[0], (exact[3], *h)):
        (x_z, x_r, x_g), (n_z, n_r, n_g) = (np.split(v, 3, -1) for v in (x, before @ exact[1] + exact[2]))
        z, r = (1 / (1 + np.exp(-v)) for v in (x_z + n_z, x_r + n_r))
        gates.append(np.concatenate([z, r, np.tanh(x_g + r * n_g)], -1))
        inner.append(n_g)
    dx, dn, dh0 = by_loop.gru_sequence_grad(*arrivals, *exact, h, np.stack(gates), np.stack(inner))
    dkernel = np.einsum("tbu,tbg->ug", np.concatenate([exact[3][None], h])[:-1], dn)
    assert_near(results, [h, last_h, dx, dkernel, dn.sum((0, 1)), dh0])


@targets(
    (lstm_sequence, {"rows": 3}),
    (lstm_sequence_grad, {"rows": 4, "vectors": 4}),
    (gru_sequence, {"rows": 6}),
    (gru_sequence_grad, {"rows": 2, "vectors": 1}),
)
def test_kernels_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
