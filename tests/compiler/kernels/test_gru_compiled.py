"""The steps of gated recurrent units as one kernel, against NumPy in float64 and the catalogue's operator."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels.rnn import gru
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.recurrent_ops import Gru
from opwright.core.dtypes import float32

RNG = np.random.default_rng(15)
ACTIVATIONS = {"TANH": np.tanh, "NONE": lambda x: x, "RELU": lambda x: np.maximum(x, 0)}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def expected(x, weights, h, activation, keeps, backward):
    n = h.shape[1]
    out = np.zeros((*x.shape[:2], n))
    for t in reversed(range(x.shape[1])) if backward else range(x.shape[1]):
        u, r = (sigmoid(x[:, t, k * n : (k + 1) * n] + h @ weights[k].T) for k in range(2))
        c = ACTIVATIONS[activation](x[:, t, 2 * n :] + (r * h) @ weights[2].T)
        h = u * h + (1 - u) * c if keeps else (1 - u) * h + u * c
        out[:, t] = h
    return out


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(
    ("batch", "steps", "cells", "start", "activation", "keeps"),
    [
        (1, 1, 1, False, "TANH", False),
        (1, 7, 37, True, "TANH", False),
        (4, 5, 64, False, "TANH", True),
        (3, 4, 20, True, "RELU", False),
        (2, 6, 33, True, "NONE", True),
    ],
)
def test_steps_of_gated_units(batch, steps, cells, start, activation, keeps, backward):
    x = RNG.normal(0, 0.7, (batch, steps, 3 * cells)).astype(np.float32)
    weights = [RNG.normal(0, 0.5 * cells**-0.5, (cells, cells)).astype(np.float32) for _ in range(3)]
    h = RNG.normal(0, 0.5, (batch, cells)).astype(np.float32)
    inputs = {buffer(x): x}
    states = ()
    if start:
        states = (buffer(h, "h"),)
        inputs[states[0]] = h
    whole = np.concatenate([np.concatenate([weights[0].T, weights[1].T], 1).ravel(), weights[2].T.ravel()])
    weight = buffer(whole.reshape(cells, 3 * cells), "weight")
    x_ = next(iter(inputs))
    inputs[weight] = np.ascontiguousarray(whole)
    form = Gru(Buffer("y", float32, (batch, steps, cells)), x_, weight, states, activation, keeps, backward)
    reference = expected(x.astype(np.float64), weights, h if start else np.zeros_like(h), activation, keeps, backward)
    actual = run(form, inputs)
    np.testing.assert_allclose(actual, reference, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(split(form, inputs, 2), actual)


@targets((gru, {"rows": 2, "start": True, "activation": "TANH", "keeps": False}))
def test_gated_units_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
