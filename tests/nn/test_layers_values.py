"""Layers compute what Keras computes: outputs, gradients by inputs and weights, state, weights' order and shapes."""

import pathlib

import numpy as np
import pytest

from nn import layer_cases
from nn.layer_cases import CASES

EXPECTED = np.load(pathlib.Path(__file__).parent.parent / "data" / "layers.npz")


def expected(name):
    """Return the record of a case."""
    return {key.partition("/")[2]: EXPECTED[key] for key in EXPECTED.files if key.partition("/")[0] == name}


def same(record, reference):
    """Records agree to float32's accuracy."""
    assert set(record) == set(reference)
    for key, value in reference.items():
        if value.dtype.kind == "U":
            assert record[key].tolist() == value.tolist(), key
        else:
            assert record[key].shape == value.shape, key
            np.testing.assert_allclose(record[key], value, rtol=2e-5, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("name", CASES)
def test_values(tf, name):
    _, record = layer_cases.run(tf, tf.keras.layers, CASES[name])
    same(record, expected(name))
