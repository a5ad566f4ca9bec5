"""Nodes whose sizes are given while the model runs: the same sizes again, others, wrong ones, and back again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from lite_kit import Build

import opwright as ow
from opwright import lite

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(autouse=True, params=[True, False], ids=["compiled", "interpreted"])
def _compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    with ow.flags(compiled=request.param, background=False):
        yield


class Running:
    """An interpreter of a node `name` of x and others, all given when it runs, and a node after it that adds 1."""

    def __init__(self, name: str, *others: np.ndarray, **options: Any) -> None:
        b = Build().tensor("x", X.shape)
        for i, other in enumerate(others):
            b.tensor(f"o{i}", other.shape, "INT32")
        names = " ".join(["x", *(f"o{i}" for i in range(len(others)))])
        content = b.tensor("h", ()).op(name, names, "h", **options).tensor("one", data=np.float32(1)).tensor("y", ())
        self.interpreter = lite.Interpreter(model_content=content.op("ADD", "h one", "y").done(names), num_threads=1)
        self.interpreter.allocate_tensors()

    def __call__(self, *values: np.ndarray) -> np.ndarray:
        for detail, value in zip(self.interpreter.get_input_details(), values, strict=True):
            self.interpreter.set_tensor(detail["index"], value)
        self.interpreter.invoke()
        result: np.ndarray = self.interpreter.get_tensor(self.interpreter.get_output_details()[0]["index"])
        return result


def test_shapes_to_reshape_to() -> None:
    run = Running("RESHAPE", np.int32([0, 0]))
    for shape in ((4, 3), (4, 3), (2, 6), (2, 6), (4, 3), (-1, 2), (-1, 2), (6, 2)):
        for x in (X, X * 2):
            np.testing.assert_array_equal(run(x, np.int32(shape)), x.reshape(shape) + 1)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="RESHAPE"):
            run(X, np.int32([5, 5]))
        np.testing.assert_array_equal(run(X, np.int32([6, 2])), X.reshape(6, 2) + 1)


def test_places_of_a_slice_whose_size_stays() -> None:
    run = Running("SLICE", np.int32([0, 0]), np.int32([0, 0]))
    for begin in ((0, 0), (0, 0), (1, 2), (1, 2), (0, 1)):
        for size in ((2, 2), (2, 2), (1, 2)):
            expected = X[begin[0] : begin[0] + size[0], begin[1] : begin[1] + size[1]] + 1
            np.testing.assert_array_equal(run(X, np.int32(begin), np.int32(size)), expected)


def test_multiples_and_paddings() -> None:
    run = Running("TILE", np.int32([0, 0]))
    for times in ((1, 2), (1, 2), (2, 1), (0, 1), (2, 1), (2, 1)):
        np.testing.assert_array_equal(run(X, np.int32(times)), np.tile(X, times) + 1)
    run = Running("PAD", np.zeros((2, 2), np.int32))
    for margins in (((1, 0), (0, 1)), ((1, 0), (0, 1)), ((0, 1), (1, 0)), ((0, 0), (2, 2))):
        np.testing.assert_array_equal(run(X, np.int32(margins)), np.pad(X, margins) + 1)


def test_another_shape_of_the_input_and_back() -> None:
    run = Running("TILE", np.int32([0, 0]))
    for x in (X, X, X[:2], X[:2], X, X):
        run.interpreter.resize_tensor_input(0, x.shape)
        run.interpreter.allocate_tensors()
        for _ in range(2):
            np.testing.assert_array_equal(run(x, np.int32([2, 1])), np.tile(x, (2, 1)) + 1)


def test_results_as_many_as_there_are() -> None:
    b = Build().tensor("x", (6,)).tensor("y", (), "INT64").op("WHERE", "x", "y")
    interpreter = lite.Interpreter(model_content=b.done(), num_threads=1)
    interpreter.allocate_tensors()
    for x in ([1, 0, 2, 0, 0, 3], [1, 0, 2, 0, 0, 3], [0, 5, 5, 0, 5, 0], [0, 0, 0, 0, 0, 0], [0, 5, 5, 0, 5, 0]):
        interpreter.set_tensor(0, np.float32(x))
        for _ in range(2):
            interpreter.invoke()
            np.testing.assert_array_equal(interpreter.get_tensor(1), np.argwhere(x))
