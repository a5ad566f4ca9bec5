"""Custom operators that TensorFlow's converter writes run by themselves, with TensorFlow's answers."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from opwright.lite import Interpreter

HERE = pathlib.Path(__file__).parents[2] / "data" / "customs"
NAMES = sorted(path.stem for path in HERE.glob("*.tflite"))


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_those_of_tensorflow(name):
    with np.load(HERE / "answers.npz") as kept:
        arrays = {key.split("|")[1]: kept[key] for key in kept if key.startswith(f"{name}|")}
    run = Interpreter(model_path=str(HERE / f"{name}.tflite")).get_signature_runner()
    actual = run(**{key: value for key, value in arrays.items() if key[0] == "x"})
    expected = {key: value for key, value in arrays.items() if key[0] == "y"}
    assert set(actual) == set(expected)
    for key, want in expected.items():
        got = actual[key]
        assert (got.shape, got.dtype) == (want.shape, want.dtype), key
        exact = want.dtype.kind == "i"
        np.testing.assert_allclose(got, want, 0 if exact else 1e-5, 0 if exact else 1e-6, err_msg=key)
