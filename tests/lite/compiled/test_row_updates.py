"""Rows of lists that are replaced by two slices and a concatenation: one step, so that loops are machine code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine_kit import engine, plan_of
from lite_kit import Build, run

from opwright import lite
from opwright.lite.interpreter import OpResolverType

DATA = Path(__file__).parents[2] / "data"
X = np.arange(12, dtype=np.float32).reshape(4, 3)
ROW = np.float32([[-1, -2, -3]])


def update(step: int = 1, rest: int = -1, also: bool = False, rows: int = 1, reads: str = "x") -> bytes:
    """y: x with row i replaced, as converters write it. step: from the row to what follows; rest: of the first slice's
    size; also: whether a slice is a result, too; rows: that go in; reads: what the second slice is of."""
    b = Build().tensor("x", (4, 3)).tensor("row", (rows, 3)).tensor("i", (), "INT32").tensor("z", (4, 3))
    for name, value in (
        ("one", [1]),
        ("step", step),
        ("rest", [rest]),
        ("zero", [0]),
        ("zeros", [0, 0]),
        ("all", [-1, -1]),
    ):
        b.tensor(name, type="INT32", data=np.int32(value))
    b.tensor("j", (), "INT32").op("ADD", "i step", "j").op("NEG", "x", "z")
    for name, of, tail in (("i1", "i", "rest"), ("j1", "j", "zero")):
        b.tensor(name, (1,), "INT32").tensor(f"{name}v", (2,), "INT32")
        b.op("RESHAPE", f"{of} one", name).op("CONCATENATION", f"{name} {tail}", f"{name}v", axis=0)
    b.tensor("before", (1, 1)).op("SLICE", "x zeros i1v", "before")
    b.tensor("after", (1, 3)).op("SLICE", f"{reads} j1v all", "after")
    b.tensor("whole", (4, 3)).op("CONCATENATION", "before row after", "whole", axis=0)
    return b.tensor("y", (4, 3)).op("ABS", "whole", "y").done("x row i", "y before" if also else "y")


def answers(content: bytes, row: np.ndarray, i: int, **more) -> list[np.ndarray]:
    return run(lite.Interpreter(model_content=content, **more), [X, row, np.int32(i)])


@pytest.mark.parametrize("i", range(4))
def test_each_row(i: int) -> None:
    expected = np.abs(X)
    expected[i] = np.abs(ROW)
    with engine(verify=True):
        interpreter = lite.Interpreter(model_content=update())
        (actual,) = run(interpreter, [X, ROW, np.int32(i)])
        assert set(plan_of(interpreter)) == {"Opwright"}
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("i", [-2, 4, 100])
def test_a_row_that_there_is_not(i: int) -> None:
    """The operators' own kernels say what is wrong, and the interpreter goes on."""
    with engine():
        interpreter = lite.Interpreter(model_content=update())
        with pytest.raises(RuntimeError) as said:
            run(interpreter, [X, ROW, np.int32(i)])
        (actual,) = run(interpreter, [X, ROW, np.int32(2)])
    assert actual[2].tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError) as expected:
        answers(update(), ROW, i, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    assert str(expected.value).splitlines()[0] == str(said.value).splitlines()[0]


OTHERS = {
    "a row is left out": ({"step": 2}, ROW),
    "part of the columns": ({"rest": 2}, ROW),
    "a slice is a result": ({"also": True}, ROW),
    "two rows": ({"rows": 2}, np.repeat(ROW, 2, 0)),
    "of another tensor": ({"reads": "z"}, ROW),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("i", [0, 1, 3])
def test_what_is_none(name: str, i: int) -> None:
    """Graphs that look much like it give what the interpreter's own kernels give, errors too."""
    options, row = OTHERS[name]
    content = update(**options)

    def outcome(**more):
        try:
            return answers(content, row, i, **more)
        except RuntimeError as error:
            return str(error).splitlines()[0]

    with engine():
        actual = outcome()
    expected = outcome(experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    if isinstance(expected, str):
        assert actual == expected
    else:
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["gru", "lstm_keras", "tensor_array", "bidirectional_lstm"])
def test_bodies_of_loops_are_plans_alone(name: str) -> None:
    with engine():
        interpreter = lite.Interpreter(str(DATA / "tflite" / f"{name}.tflite"))
        interpreter.allocate_tensors()
        names = {node for s in interpreter._subgraphs[1:] for node in plan_of(interpreter, s.index)}
    assert names == {"Opwright"}
