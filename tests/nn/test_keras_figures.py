"""Losses, metrics and whole training runs give what Keras gives, from the same weights and data."""

import json
import pathlib

import numpy as np
import pytest

from nn import keras_cases as cases

FIGURES = json.loads((pathlib.Path(__file__).parent / "keras_figures.json").read_text())


def compare(actual, expected, rtol, atol):
    assert sorted(actual) == sorted(expected)
    for key, value in expected.items():
        np.testing.assert_allclose(actual[key], value, rtol=rtol, atol=atol, err_msg=key)


@pytest.mark.parametrize("case", cases.LOSSES, ids=cases.title)
def test_losses(tf, case):
    compare(cases.loss(tf, case), FIGURES["losses"][cases.title(case)], 2e-5, 2e-6)


@pytest.mark.parametrize("case", cases.METRICS, ids=cases.title)
def test_metrics(tf, case):
    compare(cases.metric(tf, case), FIGURES["metrics"][cases.title(case)], 2e-5, 2e-6)


@pytest.mark.parametrize("name", list(cases.RUNS))
def test_training_follows_the_curves_of_keras(tf, name):
    """1e-4: sums of float32 in another order, carried through the steps."""
    compare(cases.RUNS[name](tf), FIGURES["runs"][name], 1e-4, 1e-4)
