"""Learning rate schedules against their formulas.

Lives here: values, dtypes, tracing, configuration and errors of schedules.
Not here: optimizers that use them (test_optimizers_updates.py).
"""

from __future__ import annotations

import json

import numpy as np
import optimizer_oracles as oracles
import pytest

import opwright as ow
from opwright.optimizers import schedules

ROWS = [
    ("ExponentialDecay", oracles.exponential, {"initial_learning_rate": 0.5, "decay_steps": 10, "decay_rate": 0.9}),
    (
        "ExponentialDecay",
        oracles.exponential,
        {"initial_learning_rate": 0.5, "decay_steps": 4, "decay_rate": 0.5, "staircase": True},
    ),
    ("InverseTimeDecay", oracles.inverse_time, {"initial_learning_rate": 0.5, "decay_steps": 1.0, "decay_rate": 0.5}),
    (
        "InverseTimeDecay",
        oracles.inverse_time,
        {"initial_learning_rate": 0.1, "decay_steps": 4, "decay_rate": 2.0, "staircase": True},
    ),
    ("PiecewiseConstantDecay", oracles.piecewise, {"boundaries": [3, 10], "values": [1.0, 0.5, 0.25]}),
    ("PiecewiseConstantDecay", oracles.piecewise, {"boundaries": [], "values": [0.5]}),
    ("PolynomialDecay", oracles.polynomial, {"initial_learning_rate": 0.5, "decay_steps": 20}),
    (
        "PolynomialDecay",
        oracles.polynomial,
        {"initial_learning_rate": 0.5, "decay_steps": 10, "end_learning_rate": 0.01, "power": 0.5},
    ),
    (
        "PolynomialDecay",
        oracles.polynomial,
        {"initial_learning_rate": 0.5, "decay_steps": 8, "end_learning_rate": 0.1, "power": 2.0, "cycle": True},
    ),
    ("CosineDecay", oracles.cosine, {"initial_learning_rate": 0.5, "decay_steps": 20}),
    ("CosineDecay", oracles.cosine, {"initial_learning_rate": 0.5, "decay_steps": 10, "alpha": 0.25}),
    (
        "CosineDecay",
        oracles.cosine,
        {"initial_learning_rate": 0.0, "decay_steps": 10, "alpha": 0.1, "warmup_target": 0.5, "warmup_steps": 8},
    ),
    ("CosineDecay", oracles.cosine, {"initial_learning_rate": 0.1, "decay_steps": 10, "warmup_target": 0.5}),
    ("CosineDecayRestarts", oracles.cosine_restarts, {"initial_learning_rate": 0.5, "first_decay_steps": 4}),
    (
        "CosineDecayRestarts",
        oracles.cosine_restarts,
        {"initial_learning_rate": 0.5, "first_decay_steps": 5, "t_mul": 1.5, "m_mul": 0.75, "alpha": 0.1},
    ),
    (
        "CosineDecayRestarts",
        oracles.cosine_restarts,
        {"initial_learning_rate": 0.5, "first_decay_steps": 6, "t_mul": 1.0, "m_mul": 0.5},
    ),
]
TIMES = [0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 13, 16, 17, 19, 20, 23, 31, 40]


def ids(row):
    return "-".join([row[0], *(f"{k}={v}" for k, v in row[2].items())])


def away_from_restarts(row, t):
    """A float32 logarithm may put a restart one step off; both sides of it are then right within rounding."""
    if row[0] != "CosineDecayRestarts" or row[2].get("t_mul", 2.0) == 1.0:
        return True
    period, at = row[2]["first_decay_steps"], 0.0
    while at <= t:
        if at == t and t > 0:
            return False
        at, period = at + period, period * row[2].get("t_mul", 2.0)
    return True


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_values_follow_the_formula(row):
    name, formula, arguments = row
    schedule = getattr(schedules, name)(**arguments)
    traced = ow.function(lambda t: schedule(t))
    for t in TIMES:
        if not away_from_restarts(row, t):
            continue
        expected = formula(t, **arguments)
        for got in (schedule(t), schedule(ow.Variable(t, dtype="int64")), traced(ow.constant(t, dtype="int64"))):
            assert got.dtype.name == "float32"
            assert got.shape.rank == 0
            np.testing.assert_allclose(got.numpy(), expected, rtol=2e-5, atol=1e-6, err_msg=f"at step {t}")


def test_a_float64_rate_gives_float64():
    schedule = schedules.ExponentialDecay(np.float64(0.1) * ow.constant(1.0, "float64"), 10, 0.9)
    rate = schedule(7)
    assert rate.dtype is ow.float64
    np.testing.assert_allclose(rate.numpy(), 0.1 * 0.9**0.7, rtol=1e-14)


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_configurations_survive_json(row):
    name, _, arguments = row
    schedule = getattr(schedules, name)(**arguments)
    config = schedules.serialize(schedule)
    again = schedules.deserialize(json.loads(json.dumps(config)))
    assert type(again) is type(schedule)
    assert again.get_config() == schedule.get_config()
    assert arguments.items() <= schedule.get_config().items()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: schedules.ExponentialDecay(0.1, 0, 0.5), "decay_steps=0"),
        (lambda: schedules.InverseTimeDecay(0.1, -1, 0.5), "decay_steps=-1"),
        (lambda: schedules.PolynomialDecay(0.1, 0), "decay_steps=0"),
        (lambda: schedules.CosineDecay(0.1, 0), "decay_steps=0"),
        (lambda: schedules.CosineDecayRestarts(0.1, 0), "first_decay_steps=0"),
        (lambda: schedules.PiecewiseConstantDecay([1, 2], [0.1, 0.2]), "length 2, and values"),
        (lambda: schedules.deserialize({"class_name": "Nonsense", "config": {}}), "Nonsense"),
    ],
)
def test_wrong_arguments_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_a_schedule_of_ones_own():
    class Halving(schedules.LearningRateSchedule):
        arguments = ("first",)

        def __init__(self, first):
            self.first = first

        def __call__(self, step):
            return self.first / (2.0 ** int(step))

    config = schedules.serialize(Halving(0.5))
    assert schedules.deserialize(config, {"Halving": Halving})(2) == 0.125


def test_a_schedule_that_lacks_its_parts_reports_it():
    with pytest.raises(NotImplementedError, match="must override `__call__"):
        schedules.LearningRateSchedule()(0)
    with pytest.raises(NotImplementedError, match="get_config"):
        schedules.LearningRateSchedule().get_config()
