"""Tensors of types below a byte go in and out of the interpreter as bytes, as they do officially."""

from __future__ import annotations

import numpy as np
import pytest
from lite_kit import Build

from opwright.core.errors import InvalidArgumentError
from opwright.lite import Interpreter

HELD = {"INT4": (np.int8, -8, 7), "UINT4": (np.uint8, 0, 15), "INT2": (np.int8, -2, 1)}


def _to_float(kind: str) -> bytes:
    """x of that type, y its numbers as float32."""
    return Build().tensor("x", (4,), kind).tensor("y", (4,)).op("CAST", "x", "y", 8).done()


def _from_float(kind: str) -> bytes:
    return Build().tensor("x", (4,)).tensor("y", (4,), kind).op("CAST", "x", "y", 8, out_data_type=kind).done()


@pytest.mark.parametrize("kind", HELD)
def test_details_name_the_type_that_is_set_and_got(kind):
    dtype, low, high = HELD[kind]
    interpreter = Interpreter(model_content=_to_float(kind))
    interpreter.allocate_tensors()
    assert interpreter.get_input_details()[0]["dtype"] is dtype
    x = np.array([low, high, 0, 1], dtype)
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    assert interpreter.get_tensor(0).dtype == dtype
    assert interpreter.get_tensor(0).tolist() == x.tolist()
    assert interpreter.get_tensor(1).tolist() == x.astype(float).tolist()


@pytest.mark.parametrize("kind", HELD)
def test_numbers_beyond_the_type_are_refused(kind):
    dtype, low, high = HELD[kind]
    interpreter = Interpreter(model_content=_to_float(kind))
    interpreter.allocate_tensors()
    words = rf"Cannot set tensor: Values for {kind} input must be between {low} and {high}\."
    with pytest.raises(InvalidArgumentError, match=words):
        interpreter.set_tensor(0, np.array([0, 1, 0, high + 1], dtype))
    with pytest.raises(InvalidArgumentError, match=f"expected type {kind} for input 0"):
        interpreter.set_tensor(0, np.zeros(4, np.int16))


@pytest.mark.parametrize("kind", HELD)
def test_as_the_official_interpreter(kind):
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    _, low, high = HELD[kind]
    answers = []
    for make in (Interpreter, peer.Interpreter):
        interpreter = make(model_content=_from_float(kind))
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.array([low - 3, low, high, np.nan], np.float32))
        interpreter.invoke()
        answers.append(
            (
                interpreter.get_tensor(1).tolist(),
                interpreter.get_tensor(1).dtype,
                interpreter.get_output_details()[0]["dtype"],
            )
        )
    assert answers[0] == answers[1]
