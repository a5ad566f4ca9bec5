"""Test that direct runs and copies equal others, and end when a condition that they depend on changes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from lite_kit import Build

import opwright as ow
from opwright import lite
from opwright.lite.runtime.ownership import MAX_BYTES

X = np.float32([[1, -2, 3], [4, 5, -6]])
Y = np.maximum(X, 0)


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with ow.flags(compiled=True, background=False, cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


def relu(shape: tuple[int, ...] = (2, 3)) -> bytes:
    b = Build().tensor("x", shape).tensor("y", shape)
    return b.op("RELU", "x", "y").done(signature="serving_default")


def direct(content: bytes, *values: Any, **options: Any) -> lite.Interpreter:
    """An interpreter that goes the direct way at the next run."""
    interpreter = lite.Interpreter(model_content=content, num_threads=1, **options)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    assert interpreter._ownership.direct is not None
    return interpreter


def test_results_are_those_of_the_values_set_last() -> None:
    interpreter = direct(relu(), X)
    for factor in (2, -1, 0.5):
        interpreter.set_tensor(0, (X * np.float32(factor)))
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(1), np.maximum(X * np.float32(factor), 0))
        np.testing.assert_array_equal(interpreter.get_tensor(0), X * np.float32(factor))
        assert interpreter._ownership.direct is not None
    taken = interpreter.get_tensor(1)
    taken[...] = 99  # a copy
    assert (interpreter.get_tensor(1) != 99).all()


def test_values_that_are_no_plain_arrays_are_set_or_refused_as_ever() -> None:
    interpreter = direct(relu(), X)
    for value in (X.tolist(), np.asfortranarray(X), np.repeat(X, 2, 1)[:, ::2], X.astype(">f4").astype("<f4")):
        interpreter.set_tensor(0, np.zeros_like(X))
        interpreter.set_tensor(0, np.asarray(value, np.float32))
        np.testing.assert_array_equal(interpreter.get_tensor(0), X)
    for wrong in (X.astype(np.float64), X.T.copy(), X[:1], 1.0, None):
        with pytest.raises(ValueError, match="Cannot set tensor"):
            interpreter.set_tensor(0, wrong)
        np.testing.assert_array_equal(interpreter.get_tensor(0), X)
    for index in (np.int64(1), True):
        np.testing.assert_array_equal(interpreter.get_tensor(index), Y)
    for index in (1.0, "1", None, [1]):
        with pytest.raises(TypeError):
            interpreter.get_tensor(index)
        with pytest.raises(TypeError):
            interpreter.set_tensor(index, X)
    for index in (-1, 2):
        with pytest.raises(ValueError, match="index"):
            interpreter.get_tensor(index)


def test_a_scalar_is_taken_as_one() -> None:
    interpreter = direct(relu(()), np.float32(3))
    assert type(interpreter.get_tensor(1)) is np.float32
    interpreter.set_tensor(0, np.array(-3, np.float32))
    interpreter.invoke()
    assert interpreter.get_tensor(1) == 0


def test_long_tensors_go_the_other_way() -> None:
    n = MAX_BYTES // 4 + 1
    interpreter = direct(relu((n,)), np.arange(n, dtype=np.float32))
    assert not interpreter._ownership.writable
    assert not interpreter._ownership.readable
    interpreter.set_tensor(0, np.full(n, 2, np.float32))
    interpreter.invoke()
    assert (interpreter.get_tensor(1) == 2).all()


def resized(interpreter: lite.Interpreter) -> None:
    interpreter.resize_tensor_input(0, [1, 4])
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.float32([[1, -1, 2, -2]]))
    interpreter.invoke()
    assert interpreter.get_tensor(1).tolist() == [[1, 0, 2, 0]]


def closed(interpreter: lite.Interpreter) -> None:
    interpreter.close()
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()


def without_delegates(interpreter: lite.Interpreter) -> None:
    interpreter.remove_all_delegates()
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), Y)


def profiled(interpreter: lite.Interpreter) -> None:
    assert [row["calls"] for row in interpreter.profile(runs=3)] == [3]


CHANGES: list[Callable[[lite.Interpreter], None]] = [resized, closed, without_delegates, profiled]


@pytest.mark.parametrize("change", CHANGES)
def test_there_is_no_direct_way_after_a_change(change: Callable[[lite.Interpreter], None]) -> None:
    interpreter = direct(relu(), X)
    change(interpreter)
    result = interpreter._ownership
    if change not in (resized, without_delegates):  # which ran it again
        assert (result.direct, result.writable, result.readable) == (None, {}, {})


def test_a_signature_runs_directly_where_shapes_stay() -> None:
    interpreter = direct(relu(), X)
    runner = interpreter.get_signature_runner()
    for x in (X, -X, X[:1], X[:1] * 2, X, np.asfortranarray(X)):
        result = runner(x=x)
        assert list(result) == ["y"]
        np.testing.assert_array_equal(result["y"], np.maximum(x, 0))
        assert interpreter._ownership.direct is not None
        result["y"][...] = -1  # a copy
    for wrong in ({}, {"z": X}, {"x": X, "z": X}, {"x": X.astype(np.int32)}):
        with pytest.raises(ValueError, match=r"Invalid|Cannot set tensor"):
            runner(**wrong)
    np.testing.assert_array_equal(runner(x=X)["y"], Y)
    interpreter._ownership.thread = threading.get_ident() + 1  # as if that ran the model
    with pytest.raises(RuntimeError, match="while it runs"):
        runner(x=X)
    interpreter._ownership.thread = 0


def test_a_signature_takes_long_tensors_too() -> None:
    n = MAX_BYTES // 4 + 1
    runner = direct(relu((n,)), np.zeros(n, np.float32)).get_signature_runner()
    for factor in (1, -1, 2):
        x = np.arange(n, dtype=np.float32) * factor
        np.testing.assert_array_equal(runner(x=x)["y"], np.maximum(x, 0))


def test_a_failed_guard_is_reported_in_the_operators_words() -> None:
    b = Build().tensor("t", data=np.float32([[1, 2], [3, 4]])).tensor("i", (2,), "INT32").tensor("y", (2, 2))
    interpreter = direct(b.op("GATHER", "t i", "y").done("i"), np.int32([1, 0]))
    index = interpreter.get_input_details()[0]["index"]
    out = interpreter.get_output_details()[0]["index"]
    for _ in range(2):
        interpreter.set_tensor(index, np.int32([0, 9]))
        with pytest.raises(RuntimeError, match="GATHER") as told:
            interpreter.invoke()
        assert "failed to invoke" in str(told.value)
        interpreter.set_tensor(index, np.int32([1, 1]))
        interpreter.invoke()
        assert interpreter.get_tensor(out).tolist() == [[3, 4], [3, 4]]


def test_watching_goes_node_by_node() -> None:
    interpreter = direct(relu(), X)
    with ow.flags(check_inputs=True):
        interpreter.invoke()
        assert interpreter._ownership.direct is not None
    np.testing.assert_array_equal(interpreter.get_tensor(1), Y)


def test_another_thread_waits_or_is_refused() -> None:
    interpreter = direct(relu(), X)
    interpreter._ownership.thread = threading.get_ident() + 1  # as if that ran the model
    for call in (interpreter.invoke, lambda: interpreter.set_tensor(0, X), lambda: interpreter.get_tensor(1)):
        with pytest.raises(RuntimeError, match="while it runs"):
            call()
    interpreter._ownership.thread = 0
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), Y)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_the_child_of_a_fork_finds_its_own_way() -> None:
    interpreter = direct(relu(), X)
    child = os.fork()
    if not child:
        fine = interpreter._ownership.direct is None
        interpreter.set_tensor(0, X * 2)
        interpreter.invoke()
        interpreter.invoke()
        os._exit(0 if fine and (interpreter.get_tensor(1) == Y * 2).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(interpreter.get_tensor(1), Y)
