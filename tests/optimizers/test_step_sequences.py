"""Training steps that read variables which they have written: one native call, with the bits of several.

Lives here: steps as users write them (two optimizers, sharpness-aware minimization, averages, generator and
discriminator in turn), generated ones, guards.
Not here: a single optimizer's step (test_training_plans.py).
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.compiler import partitioner
from thorough import examples

RATE = 0.01


def report(f, *args):
    return f.experimental_get_compiler_ir(*args)("report").splitlines()[0]


@pytest.fixture
def apart(monkeypatch, tmp_path):
    """Return a context in which regions behind updates are native calls of their own; no plan is cached."""

    def run(function, *args):
        with monkeypatch.context() as context, ow.flags(cache_dir=str(tmp_path)):
            context.setattr(partitioner, "in_sequence", lambda entries, *_: list(entries))
            return function(*args)

    return run


class Network:
    """A perceptron with a hidden layer, and its gradients of a sparse cross entropy."""

    def __init__(self, dtype: Any, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        shapes = (20, 256), (256,), (256, 10), (10,)
        self.weights = [ow.Variable((0.1 * rng.standard_normal(s)).astype(dtype)) for s in shapes]

    def __call__(self, x: Any) -> Any:
        w, b, v, c = self.weights
        return ow.matmul(ow.nn.relu(ow.matmul(x, w) + b), v) + c

    def gradients(self, x: Any, y: Any) -> tuple[Any, list[Any]]:
        with ow.GradientTape() as tape:
            losses = ow.nn.sparse_softmax_cross_entropy_with_logits(y, self(x))
            loss = ow.reduce_mean(losses)
        return loss, tape.gradient(loss, self.weights)


def two_optimizers(dtype: Any) -> Any:
    net, first, second = Network(dtype), ow.optimizers.Adam(RATE), ow.optimizers.SGD(RATE, momentum=0.9)

    def step(x: Any, y: Any) -> Any:
        loss, gradients = net.gradients(x, y)
        first.apply_gradients(zip(gradients[:2], net.weights[:2]))
        second.apply_gradients(zip(gradients[2:], net.weights[2:]))
        return loss

    return step, net.weights


def sharpness_aware(dtype: Any) -> Any:
    net, optimizer = Network(dtype), ow.optimizers.SGD(RATE, momentum=0.9)

    def step(x: Any, y: Any) -> Any:
        loss, gradients = net.gradients(x, y)
        norm = ow.linalg.global_norm(gradients)
        moves = [0.05 * g / norm for g in gradients]
        for w, move in zip(net.weights, moves):
            w.assign_add(move)
        _, gradients = net.gradients(x, y)
        for w, move in zip(net.weights, moves):
            w.assign_sub(move)
        optimizer.apply_gradients(zip(gradients, net.weights))
        return loss

    return step, net.weights


def averaged(dtype: Any) -> Any:
    net, optimizer = Network(dtype), ow.optimizers.Adam(RATE)
    averages = [ow.Variable(w) for w in net.weights]

    def step(x: Any, y: Any) -> Any:
        loss, gradients = net.gradients(x, y)
        optimizer.apply_gradients(zip(gradients, net.weights))
        for average, w in zip(averages, net.weights):
            average.assign(0.9 * average + 0.1 * w)
        return loss

    return step, [*net.weights, *averages]


def averaged_in_place(dtype: Any) -> Any:
    net, optimizer = Network(dtype), ow.optimizers.Adam(RATE)
    averages = [ow.Variable(w) for w in net.weights]

    def step(x: Any, y: Any) -> Any:
        loss, gradients = net.gradients(x, y)
        optimizer.apply_gradients(zip(gradients, net.weights))
        for average, w in zip(averages, net.weights):
            average.assign_sub(0.1 * (average - w))
        return loss

    return step, [*net.weights, *averages]


def adversaries(dtype: Any) -> Any:
    generator, discriminator = Network(dtype), Network(dtype, 1)
    first, second = ow.optimizers.Adam(RATE), ow.optimizers.Adam(RATE)
    back = ow.constant(np.random.default_rng(2).standard_normal((10, 20)).astype(dtype))

    def fake(x: Any) -> Any:
        return ow.reduce_mean(ow.nn.softplus(discriminator(ow.matmul(generator(x), back))))

    def step(x: Any, y: Any) -> Any:
        with ow.GradientTape() as tape:
            loss = ow.reduce_mean(ow.nn.softplus(-discriminator(x))) + fake(x)
        first.apply_gradients(zip(tape.gradient(loss, discriminator.weights), discriminator.weights))
        with ow.GradientTape() as tape:
            other = -fake(x)
        second.apply_gradients(zip(tape.gradient(other, generator.weights), generator.weights))
        return loss

    return step, [*generator.weights, *discriminator.weights]


STEPS = (two_optimizers, sharpness_aware, averaged, averaged_in_place, adversaries)


def course(make: Any, dtype: Any = np.float32, **options: Any) -> tuple[list[np.ndarray], str]:
    """Return the losses and the weights of three steps, and the first line of the report."""
    rng = np.random.default_rng(7)
    args = ow.constant(rng.standard_normal((16, 20)).astype(dtype)), ow.constant(rng.integers(0, 10, 16))
    step, variables = make(dtype)
    f = ow.function(step, autograph=False, **options) if options else step
    losses = [f(*args).numpy() for _ in range(3)]
    return [*losses, *(v.numpy() for v in variables)], report(f, *args) if options else ""


@pytest.mark.parametrize("make", STEPS, ids=lambda f: f.__name__)
def test_a_step_is_one_native_call(make, apart):
    results, text = course(make, jit_compile=True)
    others, text_apart = apart(lambda: course(make, jit_compile=True))
    assert " in 1 native calls" in text
    assert make is two_optimizers or " in 1 native calls" not in text_apart
    for a, b, exact in zip(results, others, course(make, np.float64)[0], strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, exact, 1e-4, RATE / 100)  # Adam divides by the size of a gradient, however small


def test_a_step_that_a_guard_stops_writes_nothing():
    step, weights = sharpness_aware(np.float32)
    f = ow.function(step, autograph=False, jit_compile=True)
    x, before = ow.ones([16, 20]), [w.numpy() for w in weights]
    with pytest.raises(ow.errors.InvalidArgumentError):
        f(x, ow.constant(np.full(16, 10)))
    for w, value in zip(weights, before):
        np.testing.assert_array_equal(w, value)
    assert np.isfinite(f(x, ow.constant(np.full(16, 9))))


def program(seed: int, dtype: Any) -> tuple[Any, list[Any]]:
    """Return a step of random reads, writes, products, gradients and updates of four variables, and the variables."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    size = draw.choice((3, 33))
    v = [ow.Variable((0.3 * rng.standard_normal((size, size))).astype(dtype)) for _ in range(4)]
    optimizers = {"adam": ow.optimizers.Adam(RATE), "sgd": ow.optimizers.SGD(RATE, momentum=0.9)}
    for optimizer in optimizers.values():
        optimizer.build(v)
    kinds = ("add", "sub", "assign", "adam", "sgd", "product", "gradient", "read", "sine")
    lines = [(draw.choice(kinds), *(draw.randrange(4) for _ in range(3))) for _ in range(draw.randint(4, 12))]

    def step(x: Any) -> Any:
        values = [x, ow.tanh(x), x * 0.5, x]
        for kind, i, j, k in lines:
            if kind == "add":
                v[i].assign_add(0.1 * values[j])
            elif kind == "sub":
                v[i].assign_sub(0.1 * (v[j] - values[k]))
            elif kind == "assign":
                v[i].assign(0.9 * v[i] + 0.1 * values[j])
            elif kind in optimizers:
                pairs = {i: (ow.tanh(values[j]), v[i]), k: (ow.sin(values[k]), v[k])}
                optimizers[kind].apply_gradients(pairs.values())
            elif kind == "product":
                values[i] = ow.tanh(ow.matmul(v[j], values[k]))
            elif kind == "gradient":
                with ow.GradientTape() as tape:
                    loss = ow.reduce_sum(ow.tanh(ow.matmul(values[k], v[i]) + v[j]) ** 2) / size
                values[k] = tape.gradient(loss, v[i])
            elif kind == "read":
                values[i] = v[j].read_value()
            else:
                values[i] = ow.sin(v[j]) + values[k] * v[i]
        return values

    return step, v


@pytest.mark.parametrize("seed", range(examples(48)))
def test_generated_steps(seed, apart):
    def results(dtype: Any, compiled: bool) -> list[np.ndarray]:
        step, variables = program(seed, dtype)
        f = ow.function(step, autograph=False, jit_compile=True) if compiled else step
        x = ow.constant(np.random.default_rng(seed).standard_normal(variables[0].shape).astype(dtype))
        for _ in range(2):
            values = f(x)
        return [np.asarray(a) for a in (*values, *variables)]

    together = results(np.float32, True)
    for a, b, exact in zip(together, apart(results, np.float32, True), results(np.float64, False), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, exact, 1e-3, 1e-4)
