"""Inputs and outputs of a signature in arrays of the caller, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import opwright as ow
from opwright import lite
from opwright.core import flags
from opwright.lite import Interpreter

X = np.random.default_rng(0).standard_normal((64, 300)).astype(np.float32)


def runner(function, *specs, **more):
    traced = ow.function(function, input_signature=specs)
    content = lite.TFLiteConverter.from_concrete_functions([traced.get_concrete_function()], traced).convert()
    return Interpreter(model_content=content, **more).get_signature_runner()


def of_x(shape=X.shape):
    return ow.TensorSpec(shape, ow.float32, name="x")


@pytest.fixture(params=[True, False], ids=["compiled", "reference"])
def _engine(request):
    with flags.override(compiled=request.param, background=False):
        yield


@pytest.mark.usefixtures("_engine")
def test_runs_read_and_write_the_arrays():
    run = runner(lambda x: {"y": ow.tanh(x) + 1.0, "n": ow.reduce_sum(x)}, of_x())
    x, y = X.copy(), np.zeros_like(X)
    run.bind({"x": x}, {"y": y})
    for _ in range(2):
        result = run()
        assert result["y"] is y
        np.testing.assert_allclose(y, np.tanh(x.astype(np.float64)) + 1, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(result["n"], x.sum(dtype=np.float64), rtol=1e-4)
        x -= 0.5
    other = X * 2
    np.testing.assert_allclose(run(x=other)["y"], np.tanh(other.astype(np.float64)) + 1, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(x, other)  # another value is copied into the array
    run.bind({"x": None}, {"y": None})
    again = run(x=X)["y"]
    assert again is not y
    np.testing.assert_allclose(again, np.tanh(X.astype(np.float64)) + 1, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(x, other)
    np.testing.assert_allclose(y, np.tanh(other.astype(np.float64)) + 1, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("_engine")
def test_an_input_that_is_read_after_the_output_is_written_is_copied_before():
    """Sums of rows, and of columns, of an array that the first result replaces."""
    late = runner(lambda x: {"y": x * 2.0, "n": ow.reduce_sum(ow.abs(ow.matmul(x, x, transpose_b=True)), 0)}, of_x())
    for run in (late, runner(lambda x: {"y": ow.reverse(x, [0])}, of_x())):
        both = X.copy()
        run.bind({"x": both}, {"y": both})
        before = both.copy()
        result = run()
        assert result["y"] is both
        if run is late:
            products = np.abs(before.astype(np.float64) @ before.T).sum(0)
            np.testing.assert_array_equal(both, before * 2)
            np.testing.assert_allclose(result["n"], products, rtol=1e-4)
            run()
            np.testing.assert_array_equal(both, before * 4)
        else:
            np.testing.assert_array_equal(both, before[::-1])


@pytest.mark.usefixtures("_engine")
def test_arrays_that_do_not_fit_are_refused():
    run = runner(lambda x: {"y": x + 1.0, "z": x - 1.0}, of_x())
    x = X.copy()
    wrong = [
        ({"w": x}, {}, "Invalid input name"),
        ({}, {"x": x}, "Invalid output name"),
        ({"x": x[:, :1]}, {}, r"float32\[64, 1\]"),
        ({"x": x.astype(np.float64)}, {}, "float64"),
        ({"x": np.asfortranarray(x)}, {}, "not contiguous"),
        ({"x": x.tolist()}, {}, "list"),
        ({}, {"y": np.broadcast_to(x, x.shape)}, "read-only"),
        ({}, {"y": x, "z": x}, "share memory"),
        ({"x": x}, {"y": np.zeros(x.size + 1, np.float32)[1:].reshape(x.shape)}, None),
    ]
    flat = np.zeros(x.size + 4, np.float32)
    wrong.append(({"x": flat[:-4].reshape(x.shape)}, {"y": flat[4:].reshape(x.shape)}, "share memory"))
    for inputs, outputs, message in wrong:
        if message is None:  # any alignment that NumPy calls aligned will do
            run.bind(inputs, outputs)
            np.testing.assert_array_equal(run()["y"], X + 1)
            run.bind(dict.fromkeys(inputs), dict.fromkeys(outputs))
            continue
        with pytest.raises(ValueError, match=message):
            run.bind(inputs, outputs)
    np.testing.assert_array_equal(run(x=X)["y"], X + 1)
    with pytest.raises(ValueError, match="expected 1 vs provided 0"):
        run()


@pytest.mark.usefixtures("_engine")
def test_another_shape_needs_other_arrays():
    run = runner(lambda x: {"y": x + 1.0}, of_x([None, 300]))
    y = np.zeros((1, 300), np.float32)
    run.bind(outputs={"y": y})
    assert run(x=X[:1])["y"] is y
    with pytest.raises(ValueError, match="another shape than the array"):
        run(x=X)
    run.bind(outputs={"y": None})
    np.testing.assert_array_equal(run(x=X)["y"], X + 1)
    np.testing.assert_array_equal(y, X[:1] + 1)
