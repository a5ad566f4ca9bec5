"""Tensors without elements in compiled models: what writes none takes no step; empty parts of a whole are left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from lite_kit import Build

import opwright as ow
from opwright import lite

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


@pytest.fixture(autouse=True)
def _compiled() -> Iterator[None]:
    with ow.flags(compiled=True, background=False):
        yield


def ran(content: bytes, *values: np.ndarray) -> list[np.ndarray]:
    """The outputs of a model whose every node runs as machine code."""
    interpreter = lite.Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    for _ in range(2):
        for detail, value in zip(interpreter.get_input_details(), values, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
    if interpreter._fast_path is None:  # which is a plan of all nodes, of an earlier process
        assert interpreter._engine is not None
        assert not interpreter._engine.delegate.refused
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def test_empty_parts_of_a_concatenation() -> None:
    nothing = np.zeros((2, 0), np.float32)
    b = Build().tensor("a", (2, 0)).tensor("b", (2, 3)).tensor("c", (2, 0)).tensor("d", (2, 3)).tensor("y", (2, 6))
    model = b.op("CONCATENATION", "a b c d", "y", axis=1).done("a b c d")
    (result,) = ran(model, nothing, X, nothing, X * 2)
    np.testing.assert_array_equal(result, np.concatenate([X, X * 2], 1))
    b = Build().tensor("a", (2, 0)).tensor("c", (2, 0)).tensor("y", (2, 0))
    (result,) = ran(b.op("CONCATENATION", "a c", "y", axis=1).done("a c"), nothing, nothing)
    assert result.shape == (2, 0)


def test_an_empty_part_of_a_split() -> None:
    b = Build().tensor("x", (2, 3)).tensor("n", type="INT32", data=np.int32([0, 2, 1]))
    b.tensor("axis", (), "INT32", np.int32(1))
    b.tensor("p", (2, 0)).tensor("q", (2, 2)).tensor("r", (2, 1))
    actual = ran(b.op("SPLIT_V", "x n axis", "p q r", num_splits=3).done("x", "p q r"), X)
    for one, expected in zip(actual, np.split(X, [0, 2], 1), strict=True):
        np.testing.assert_array_equal(one, expected)


def chain(b: Any) -> bytes:
    """relu(x) * x joined to z, in rows."""
    b.tensor("r", b.main.tensors[0].shape).op("RELU", "x", "r").tensor("m", b.main.tensors[0].shape)
    b.op("MUL", "r x", "m").tensor("y", (2, 3)).op("CONCATENATION", "m z", "y", axis=0)
    return b.done("x z")


def test_chains_of_nothing() -> None:
    (result,) = ran(chain(Build().tensor("x", (0, 3)).tensor("z", (2, 3))), np.zeros((0, 3), np.float32), X)
    np.testing.assert_array_equal(result, X)
    alone: dict[str, Any] = {
        "SOFTMAX": {"beta": 1.0},
        "L2_NORMALIZATION": {},
        "EXP": {},
        "TANH": {},
        "LEAKY_RELU": {"alpha": 0.5},
    }
    for name, options in alone.items():
        b = Build().tensor("x", (0, 3)).tensor("y", (0, 3))
        (result,) = ran(b.op(name, "x", "y", **options).done(), np.zeros((0, 3), np.float32))
        assert result.shape == (0, 3), name


def test_reductions_of_nothing_and_to_nothing() -> None:
    for name in ("SUM", "MEAN", "REDUCE_MAX"):
        b = Build().tensor("x", (0, 3)).tensor("axis", type="INT32", data=np.int32([1])).tensor("y", (0,))
        (result,) = ran(b.op(name, "x axis", "y", keep_dims=False).done(), np.zeros((0, 3), np.float32))
        assert result.shape == (0,), name
    b = Build().tensor("x", (0, 3)).tensor("axis", type="INT32", data=np.int32([0])).tensor("y", (3,))
    interpreter = lite.Interpreter(model_content=b.op("SUM", "x axis", "y", keep_dims=False).done(), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [0, 0, 0]


def test_a_product_of_no_rows() -> None:
    w = np.ones((4, 3), np.float32)
    b = Build().tensor("x", (0, 3)).tensor("w", data=w).tensor("y", (0, 4))
    (result,) = ran(b.op("FULLY_CONNECTED", "x w", "y").done(), np.zeros((0, 3), np.float32))
    assert result.shape == (0, 4)


def test_indices_that_choose_nothing_are_checked_still() -> None:
    """An operator that refuses values refuses them where it would write nothing, too."""
    b = Build().tensor("t", (3, 0)).tensor("i", (1,), "INT32").tensor("y", (1, 0))
    interpreter = lite.Interpreter(model_content=b.op("GATHER", "t i", "y").done("t i"), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(1, np.int32([7]))
    with pytest.raises(RuntimeError, match="GATHER"):
        interpreter.invoke()


def test_windows_that_fit_nowhere() -> None:
    w = np.ones((2, 3, 2, 1), np.float32)
    b = Build().tensor("x", (1, 2, 4, 1)).tensor("w", data=w).tensor("y", (1, 0, 3, 2))
    model = b.op("CONV_2D", "x w", "y", padding="VALID", stride_w=1, stride_h=1).done()
    (result,) = ran(model, np.zeros((1, 2, 4, 1), np.float32))
    assert result.shape == (1, 0, 3, 2)


def test_padding_nothing() -> None:
    for value in ({"data": np.float32(7)}, {"shape": ()}):
        b = Build().tensor("x", (0, 2)).tensor("margins", type="INT32", data=np.int32([[1, 1], [0, 1]]))
        b.tensor("v", type="FLOAT32", **value).tensor("y", (2, 3)).op("PADV2", "x margins v", "y")
        computed = "data" not in value
        (result,) = ran(b.done("x v" if computed else "x"), np.zeros((0, 2), np.float32), *[np.float32(7)] * computed)
        np.testing.assert_array_equal(result, np.full((2, 3), 7, np.float32))
