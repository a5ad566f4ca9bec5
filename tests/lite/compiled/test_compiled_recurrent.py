"""Recurrent layers at sizes about those of vectors, over several runs: weights of int8 beside floats, layer
normalisation, simple recurrence, filters over time. The oracle is the official interpreter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from engine_kit import engine, plan_of
from foreign import HERE
from lite_kit import Build

from opwright import lite
from opwright.lite.format import objects
from thorough import THOROUGH, crossed

peer = pytest.importorskip("ai_edge_litert.interpreter")
RNG = np.random.default_rng(14)
RUNS = 3
WEIGHTS, RECURRENT, PEEPHOLES, BIASES, PROJECTION, STATES, NORMS = 1, 5, 9, 12, 16, 18, 20
KINDS = ("FLOAT32", "INT8")


def weights(b, name, kind, *shape):
    """Constants that keep sums near 1."""
    if kind == "FLOAT32":
        b.tensor(name, data=RNG.normal(0, shape[-1] ** -0.5, shape).astype(np.float32))
    else:
        q = objects.QuantizationParameters(scale=[0.02 * shape[-1] ** -0.5], zero_point=[0])
        b.tensor(name, type="INT8", data=RNG.integers(-127, 128, shape).astype(np.int8), quantization=q)
    return name


def floats(b, name, *shape, low=-0.5, high=0.5):
    b.tensor(name, data=RNG.uniform(low, high, shape).astype(np.float32))
    return name


def state(b, name, *shape, kind="FLOAT32", **more):
    b.tensor(name, shape, kind, is_variable=True, **more)
    return name


def layer(kind, steps, batch, n, cells, *, cifg=False, peepholes=False, projection=0, norm=False, asymmetric=False):
    """An LSTM."""
    b, inputs, out = Build().tensor("x", (steps, batch, n)), ["_"] * 24, projection or cells
    inputs[0] = "x"
    for gate in range(cifg, 4):
        inputs[WEIGHTS + gate] = weights(b, f"w{gate}", kind, cells, n)
        inputs[RECURRENT + gate] = weights(b, f"r{gate}", kind, cells, out)
        inputs[BIASES + gate] = floats(b, f"b{gate}", cells)
        if norm:
            inputs[NORMS + gate] = floats(b, f"n{gate}", cells, low=0.5, high=1.5)
    for i in range(cifg, 3) if peepholes else ():
        inputs[PEEPHOLES + i] = weights(b, f"p{i}", kind, cells)
    if projection:
        inputs[PROJECTION], inputs[PROJECTION + 1] = weights(b, "q", kind, out, cells), floats(b, "qb", out)
    inputs[STATES], inputs[STATES + 1] = state(b, "h", batch, out), state(b, "c", batch, cells)
    b.tensor("y", (steps, batch, out))
    return b.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        " ".join(inputs),
        "y",
        4,
        fused_activation_function="TANH",
        time_major=True,
        asymmetric_quantize_inputs=asymmetric,
    ).done()


def simple(kind, steps, batch, n, units, asymmetric):
    b = Build().tensor("x", (steps, batch, n)).tensor("y", (steps, batch, units))
    inputs = [
        "x",
        weights(b, "w", kind, units, n),
        weights(b, "r", kind, units, units),
        floats(b, "b", units),
        state(b, "h", batch, units),
    ]
    return b.op(
        "UNIDIRECTIONAL_SEQUENCE_RNN",
        " ".join(inputs),
        "y",
        3,
        fused_activation_function="TANH",
        time_major=True,
        asymmetric_quantize_inputs=asymmetric,
    ).done()


def filters(kind, batch, n, units, rank, memory):
    b = Build().tensor("x", (batch, n)).tensor("y", (batch, units))
    inputs = [
        "x",
        weights(b, "w", kind, units * rank, n),
        weights(b, "t", kind, units * rank, memory),
        floats(b, "b", units),
        state(b, "s", batch, units * rank * memory),
    ]
    return b.op("SVDF", " ".join(inputs), "y", 3, rank=rank, fused_activation_function="RELU").done()


def run(interpreter, inputs):
    """Each run's result."""
    interpreter.allocate_tensors()
    place = interpreter.get_input_details()[0]["index"]
    result = []
    for x in inputs:
        interpreter.set_tensor(place, x)
        interpreter.invoke()
        result.append(np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])))
    return result


def agrees(content, shape, target, near):
    inputs = [RNG.normal(size=shape).astype(np.float32) for _ in range(RUNS)]
    kernels = peer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    expected = run(peer.Interpreter(model_content=content, experimental_op_resolver_type=kernels), inputs)
    with engine(verify=True, target=target):
        interpreter = lite.Interpreter(model_content=content)
        actual = run(interpreter, inputs)
    assert plan_of(interpreter) == ["Opwright"]
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=near, atol=near)


FLOAT, HYBRID = 2e-5, 0.02
"""A sum's last bit may move what is rounded by a step: of 127 or more, once each run."""


SHAPES = ((1, 1, 3, 5), (4, 3, 16, 17), (3, 4, 40, 33))
"""Steps, batch, inputs, cells."""
SOME = [(SHAPES[1], False, 15, "host"), (SHAPES[2], True, 0, "x86-64-v3")]


def lstm(kind, norm, shape, cifg, projection, target):
    content = layer(
        kind, *shape, cifg=cifg, peepholes=cifg, projection=projection, norm=norm, asymmetric=bool(projection)
    )
    agrees(content, shape[:3], target, FLOAT if kind == "FLOAT32" else HYBRID)


@pytest.mark.parametrize(("kind", "norm"), crossed(KINDS, [False, True]))
def test_some_lstms(kind, norm):
    for case in SOME:
        lstm(kind, norm, *case)


@pytest.mark.slow
@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("norm", [False, True])
def test_every_lstm(norm, target):
    for kind, shape, cifg, projection in itertools.product(KINDS, SHAPES, (False, True), (0, 15)):
        lstm(kind, norm, shape, cifg, projection, target)


SIMPLE = [(1, 1, 3, 5), (5, 3, 8, 16), (4, 2, 40, 33)][: 3 if THOROUGH else 2]
"""Steps, images, features and units."""


@pytest.mark.parametrize("target", HERE)
def test_simple_recurrence(target):
    for kind, (steps, batch, n, units) in itertools.product(KINDS, SIMPLE):
        content = simple(kind, steps, batch, n, units, asymmetric=batch == 3)
        agrees(content, (steps, batch, n), target, FLOAT if kind == "FLOAT32" else HYBRID)


@pytest.mark.parametrize("target", HERE)
def test_filters_over_time(target):
    for kind, rank, memory in itertools.product(KINDS, (1, 2), (1, 2, 16, 17, 18, 40)):
        agrees(filters(kind, 2, 12, 7, rank, memory), (2, 12), target, FLOAT if kind == "FLOAT32" else HYBRID)


@pytest.mark.parametrize("target", HERE)
def test_filters_of_integers(target):
    for rank, memory, units in ((1, 8, 6), (2, 17, 16), (2, 33, 9)):
        b = Build()

        def scaled(name, kind, scale, zero=0, b=b, **more):
            q = objects.QuantizationParameters(scale=[scale], zero_point=[zero])
            b.tensor(name, type=kind, quantization=q, **more)

        scaled("x", "INT8", 0.03, 4, shape=(3, 20))
        scaled("w", "INT8", 0.01, data=RNG.integers(-127, 128, (units * rank, 20)).astype(np.int8))
        scaled("t", "INT16", 1e-4, data=RNG.integers(-999, 1000, (units * rank, memory)).astype(np.int16))
        b.tensor("b", type="INT32", data=RNG.integers(-9999, 9999, units).astype(np.int32))
        scaled("s", "INT16", 2e-4, shape=(3, units * rank * memory), is_variable=True)
        scaled("y", "INT8", 0.02, -9, shape=(3, units))
        content = b.op("SVDF", "x w t b s", "y", 4, rank=rank, fused_activation_function="RELU").done()
        inputs = [RNG.integers(-128, 128, (3, 20)).astype(np.int8) for _ in range(RUNS)]
        with engine(verify=True, target=target):
            interpreter = lite.Interpreter(model_content=content)
            actual = run(interpreter, inputs)
        assert plan_of(interpreter) == ["Opwright"]
        kernels = peer.OpResolverType.BUILTIN_REF
        expected = run(peer.Interpreter(model_content=content, experimental_op_resolver_type=kernels), inputs)
        assert max(np.abs(a.astype(int) - b).max() for a, b in zip(actual, expected, strict=True)) <= 1
