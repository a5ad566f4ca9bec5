"""FILL and RANGE of known sizes in compiled plans, against the official interpreter."""

from __future__ import annotations

import ai_edge_litert.interpreter as peer
import numpy as np
import pytest
from engine_kit import answer, engine, plan_of
from lite_kit import Build

from opwright import lite


def compare(content: bytes, *inputs: np.ndarray) -> None:
    official = peer.Interpreter(model_content=content)
    with engine():
        mine = lite.Interpreter(model_content=content)
        for x in inputs:
            np.testing.assert_array_equal(answer(mine, x), answer(official, x))
        assert plan_of(mine)[-1] == "Opwright"
        assert not mine._engine.delegate.refused


@pytest.mark.parametrize("type", ["FLOAT32", "INT8", "INT16", "INT32", "INT64", "BOOL"])
@pytest.mark.parametrize("sizes", [[2, 3], [70], [1, 1, 1], []])
def test_a_computed_value(type: str, sizes: list[int]) -> None:
    b = Build().tensor("x", (), type).tensor("y", sizes, type)
    b.tensor("sizes", (), "INT32", np.int32(sizes)).op("FILL", "sizes x", "y", version=4)
    compare(b.done(), np.array(1).astype(type.lower()), np.array(0).astype(type.lower()))


def test_sizes_of_another_tensor() -> None:
    b = Build().tensor("x", (1, 5), shape_signature=[-1, 5]).tensor("s", (2,), "INT32").tensor("f", (1, 5))
    b.op("SHAPE", "x", "s", out_type="INT32").tensor("two", (), "FLOAT32", np.float32(2)).op("FILL", "s two", "f")
    compare(b.tensor("y", (1, 5)).op("MUL", "x f", "y").done(), *(np.ones((n, 5), np.float32) for n in (1, 4, 300)))


def test_numbers_that_are_many() -> None:
    b = Build().tensor("x", (3000,), "INT32").tensor("r", (3000,), "INT32").tensor("y", (3000,), "INT32")
    for name, value in (("start", 7), ("limit", 9007), ("delta", 3)):
        b.tensor(name, (), "INT32", np.int32(value))
    b.op("RANGE", "start limit delta", "r").op("ADD", "x r", "y")
    compare(b.done(), np.arange(3000, dtype=np.int32))
