"""Losses of the training steps of the bench, compiled, compared with the same steps in float64, eager NumPy.

Lives here: ten steps of each workload at its reduced sizes; fifty, where slow.  Not here: single gradients and
updates (tests/optimizers, tests/tracing).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from benchmarks import training_models
from benchmarks.workloads import WORKLOADS, batch_of

import opwright as ow
from thorough import crossed

RTOL = 1e-4
"""Relative error of a loss; steps after the tenth amplify roundings, and are held to ten times as much."""
FEW, MANY = 10, 50
RATES = {"resnet18": 1e-4, "cnn": 1e-4}
"""Learning rates other than the bench's. Adam's first steps are as long for a gradient of 1e-9 as for one of 1, so a
rounding that changes its sign moves a weight by twice the rate; at a rate of 1e-3 even eager float32 then leaves
float64 by 4e-4 with batch normalisation of small batches, and by 5e-3 in 50 steps of the CNN."""
QUICK = ("mlp", "cnn", "lstm")


@contextmanager
def floatx(name: str) -> Any:
    before = ow.keras.backend.floatx()
    ow.keras.backend.set_floatx(name)
    try:
        yield
    finally:
        ow.keras.backend.set_floatx(before)


@functools.cache
def batches(name: str, count: int) -> list[Any]:
    return [batch_of(name, WORKLOADS[name].reduced, seed) for seed in range(count)]


@functools.cache
def initial_weights(name: str) -> list[np.ndarray]:
    ow.keras.utils.set_random_seed(1)
    weights: list[np.ndarray] = training_models.MODELS[name](ow, WORKLOADS[name].reduced).get_weights()
    return weights


def rate_of(name: str) -> float:
    return RATES.get(name, training_models.LEARNING_RATE)


def model_of(name: str) -> Any:
    model = training_models.MODELS[name](ow, WORKLOADS[name].reduced)
    model.set_weights(initial_weights(name))
    return model


def looped(name: str, count: int, wrap: Callable[[Any], Any], dtype: str) -> np.ndarray:
    """Return the losses of a custom loop. wrap: of the step, before it runs."""

    def tensors(arrays: Any) -> list[Any]:
        return [ow.constant(a.astype(dtype) if a.dtype.kind == "f" else a) for a in arrays]

    initial_weights(name)
    with floatx(dtype):
        step = wrap(training_models.step_of(ow, name, model_of(name), rate_of(name)))
        losses = []
        for inputs, targets in batches(name, count):
            *x, y = tensors((*inputs, targets))
            losses.append(float(step(x[0] if len(x) == 1 else x, y)))
    return np.array(losses)


@functools.cache
def expected(name: str, count: int) -> np.ndarray:
    return looped(name, count, lambda step: step, "float64")


def fitted(name: str, count: int) -> np.ndarray:
    """Return the losses of the steps of `fit`, which compiles its step in the course of them."""
    losses: list[float] = []

    class Losses(ow.keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_begin(self, batch, logs=None):
            self.model.reset_metrics()  # a loss of the batch, where logs have the mean of an epoch

        def on_train_batch_end(self, batch, logs=None):
            losses.append(logs["loss"])

    model = model_of(name)
    optimizer = training_models.optimizer_of(ow, name, rate_of(name))
    model.compile(optimizer, training_models.loss_of(ow, name), jit_compile="auto")
    every = batches(name, count)
    x = [np.concatenate(parts) for parts in zip(*(inputs for inputs, _ in every))]
    y = np.concatenate([targets for _, targets in every])
    with ow.flags(hot_calls=2):
        model.fit(
            x[0] if len(x) == 1 else x,
            y,
            batch_size=WORKLOADS[name].reduced["batch"],
            shuffle=False,
            verbose=0,
            callbacks=[Losses()],
        )
    return np.array(losses)


def compiled(name: str, count: int) -> np.ndarray:
    return looped(name, count, lambda step: ow.function(step, jit_compile=True), "float32")


WAYS = {"jit": compiled, "fit": fitted}


def agree(actual: np.ndarray, exact: np.ndarray) -> None:
    np.testing.assert_allclose(actual[:FEW], exact[:FEW], RTOL)
    np.testing.assert_allclose(actual[FEW:], exact[FEW:], 10 * RTOL)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *crossed(QUICK, WAYS),
        *[
            pytest.param(n, way, marks=pytest.mark.slow)
            for n in training_models.MODELS
            if n not in QUICK
            for way in WAYS
        ],
    ],
)
def test_ten_steps(name, way):
    agree(WAYS[way](name, FEW), expected(name, FEW))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", training_models.MODELS)
def test_fifty_steps(name, way):
    agree(WAYS[way](name, MANY), expected(name, MANY))


def test_every_workload_has_a_model():
    assert list(training_models.MODELS) == list(WORKLOADS)
