"""The table of optimizers with options, and a course of gradients to run each on.

Lives here: `ROWS`, `SAMPLED`, `problem`, `check`.
Not here: the formulas (optimizer_oracles.py), the tests (test_optimizers_updates.py, test_optimizers_compiled.py).
"""

from __future__ import annotations

import numpy as np
import pytest

from thorough import crossed

STEPS = 12
RATE = 0.0625  # a power of two, so that the float32 learning rate is this number exactly

OWN = {
    "SGD": [{}, {"momentum": 0.75}, {"momentum": 0.9, "nesterov": True}],
    "Adam": [{}, {"beta_1": 0.8, "beta_2": 0.9, "epsilon": 1e-3}, {"beta_2": 0.5, "amsgrad": True}],
    "AdamW": [{}, {"weight_decay": 0.125, "beta_1": 0.5}, {"beta_2": 0.5, "amsgrad": True}],
    "Adamax": [{}, {"beta_1": 0.7, "beta_2": 0.6, "epsilon": 1e-2}],
    "Nadam": [{}, {"beta_1": 0.7, "beta_2": 0.9, "epsilon": 1e-3}],
    "RMSprop": [
        {},
        {"rho": 0.5, "epsilon": 1e-2},
        {"momentum": 0.9},
        {"centered": True, "epsilon": 1e-3},
        {"centered": True, "momentum": 0.5, "rho": 0.7, "epsilon": 1e-3},
    ],
    "Adadelta": [{}, {"rho": 0.7, "epsilon": 1e-2}],
    "Adagrad": [{}, {"initial_accumulator_value": 0.0, "epsilon": 1e-2}, {"initial_accumulator_value": 1.5}],
    "Ftrl": [
        {},
        {"l1_regularization_strength": 0.5},
        {"l2_regularization_strength": 0.25, "beta": 0.5},
        {"l2_shrinkage_regularization_strength": 0.125, "learning_rate_power": -0.75},
        {"l1_regularization_strength": 0.1, "l2_regularization_strength": 0.1, "initial_accumulator_value": 1.0},
    ],
    "Lion": [{}, {"beta_1": 0.5, "beta_2": 0.75}],
}
SCHEDULE_FREE = [{}, {"beta_1": 0.7, "beta_2": 0.9, "warmup_steps": 4, "epsilon": 1e-3}]
COMMON = [
    {"weight_decay": 0.25},
    {"clipnorm": 0.5},
    {"clipnorm": 100.0},
    {"clipvalue": 0.25},
    {"global_clipnorm": 0.75},
    {"global_clipnorm": 100.0},
    {"use_ema": True, "ema_momentum": 0.75},
    {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 3},
    {"loss_scale_factor": 8.0},
    {"gradient_accumulation_steps": 3},
    {
        "gradient_accumulation_steps": 2,
        "clipnorm": 0.5,
        "weight_decay": 0.125,
        "use_ema": True,
        "ema_overwrite_frequency": 2,
    },
]
ROWS = [(name, options) for name, rows in OWN.items() for options in rows] + [
    (name, options) for name in ("SGD", "Adam", "Nadam") for options in COMMON
]
SAMPLED = [
    *(pytest.param(row) for row in ROWS if row[1] in OWN[row[0]]),
    *(pytest.param(p.values, marks=p.marks) for p in crossed(("SGD", "Adam", "Nadam"), COMMON, every=3)),
]
"""The rows as parameters; an option that all optimizers have is quick with one of them."""


def label(row):
    name, options = row
    return "-".join([name, *(f"{k}={v}" for k, v in options.items())])


def problem(steps=STEPS, seed=7, shapes=((3, 4), (5,), ())):
    """Start values of a matrix, a vector and a scalar, and their gradients for each step."""
    rng = np.random.default_rng(seed)
    start = [np.asarray(rng.uniform(-2, 2, s)) for s in shapes]
    return start, [[np.asarray(rng.uniform(-1, 1, s)) for s in shapes] for _ in range(steps)]


def check(course, expected, rtol):
    for step, (got, reference) in enumerate(zip(course, expected, strict=True)):
        for g, w in zip(got, reference, strict=True):
            np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol, err_msg=f"after step {step + 1}")
