"""Models of several subgraphs and signatures behave as in the official interpreter, from run to run.

Here: what rows of one operator (tests/lite/ops/drawn_rows_programs.py) cannot show: several signatures, resizes between
runs, results of rank 0, operators without kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_kit import Build

from opwright.core.errors import OpError
from opwright.lite import Interpreter
from opwright.lite.format import Model, objects, versions


class Program(Build):
    """A model line by line, with a signature on the subgraph being written."""

    def signed(self, key: str, inputs: str, outputs: str) -> Program:
        self.ends(inputs, outputs)
        maps = [
            [objects.TensorMap(name=n, tensor_index=self.names[n]) for n in side.split()] for side in (inputs, outputs)
        ]
        self.model.signature_defs.append(
            objects.SignatureDef(
                signature_key=key, inputs=maps[0], outputs=maps[1], subgraph_index=len(self.model.subgraphs) - 1
            )
        )
        return self

    def number(self, name: str, value: Any) -> Program:
        result: Program = self.tensor(name, type="INT32", data=np.int32(value))
        return result


def official(content: bytes) -> Any:
    return pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=content)


def both(content: bytes, act: Any) -> tuple[Any, Any]:
    return act(Interpreter(model_content=content)), act(official(content))


def shared_variable(kind: str) -> bytes:
    """Two signatures that each initialise one variable once, by the same subgraph; one adds to it, the other reads."""
    b = Program(None)
    for key in ("add", "read"):
        b.subgraph(key).tensor("h", (), "RESOURCE").tensor("x", (2,), kind).tensor("v", (2,), kind)
        b.tensor("y", (2,), kind).node("CALL_ONCE", "", "", init_subgraph_index=2)
        b.node("VAR_HANDLE", "", "h", shared_name="v").node("READ_VARIABLE", "h", "v")
        if key == "add":
            b.node("ADD", "v x", "y").node("ASSIGN_VARIABLE", "h y", "").signed(key, "x", "y")
        else:
            b.signed(key, "", "v")
    b.subgraph("init").tensor("h", (), "RESOURCE").tensor("k", type=kind, data=np.array([5, 7], kind.lower()))
    b.node("VAR_HANDLE", "", "h", shared_name="v").node("ASSIGN_VARIABLE", "h k", "").ends()
    return b.model.to_bytes()


@pytest.mark.parametrize("kind", ["FLOAT32", "INT32", "INT64"])
@pytest.mark.parametrize("order", ["read add read", "add add read", "read read add read"])
def test_signatures_share_a_variable_that_is_initialised_once(kind: str, order: str) -> None:
    def act(interpreter: Any) -> list[Any]:
        runners = {key: interpreter.get_signature_runner(key) for key in ("add", "read")}
        x = np.array([1, 2], kind.lower())
        actual = [runners[key](**({"x": x} if key == "add" else {})) for key in order.split()]
        return [next(iter(values.values())).tolist() for values in actual]

    actual, expected = both(shared_variable(kind), act)
    assert actual == expected


def sums() -> bytes:
    """Of x: its sum (of rank 0), itself doubled n times in a loop, and a number of the file."""
    b = Program().tensor("n", (), "INT32").tensor("x", (2,)).tensor("axis", type="INT32", data=np.int32([0]))
    b.tensor("s", ()).tensor("m", (), "INT32").tensor("y", (2,)).number("seven", 7)
    b.node("SUM", "x axis", "s").node("WHILE", "n x", "m y", cond_subgraph_index=1, body_subgraph_index=2)
    b.signed("sums", "n x", "s m y seven")
    b.subgraph("below").tensor("n", (), "INT32").tensor("x", (2,)).number("three", 3).tensor("go", (), "BOOL")
    b.node("LESS", "n three", "go").ends("n x", "go")
    b.subgraph("body").tensor("n", (), "INT32").tensor("x", (2,)).number("one", 1).tensor("m", (), "INT32")
    b.tensor("y", (2,)).node("ADD", "n one", "m").node("ADD", "x x", "y").ends("n x", "m y")
    return b.model.to_bytes()


def test_results_of_rank_0_are_scalars_as_officially() -> None:
    def act(interpreter: Any) -> Any:
        run = interpreter.get_signature_runner("sums")
        actual = run(n=np.int32(0), x=np.float32([1, 2]))
        return {k: (type(v), np.shape(v), np.asarray(v).tolist()) for k, v in actual.items()}

    actual, expected = both(sums(), act)
    assert actual == expected
    assert actual["s"] == (np.float32, (), 3.0)


def test_inputs_are_resized_between_runs_with_and_without_turns() -> None:
    def act(interpreter: Any) -> Any:
        run = interpreter.get_signature_runner("sums")
        return [
            run(n=np.int32(n), x=np.arange(size, dtype=np.float32))["y"].tolist()
            for n, size in ((0, 2), (3, 5), (9, 1), (1, 0), (2, 7), (0, 2))
        ]

    actual, expected = both(sums(), act)
    assert actual == expected


def two_loops() -> bytes:
    """Two loops over n and x, which turn until n is 1 and 5; a turn joins x with itself and keeps two rows."""
    b = Program().tensor("n", (), "INT32").tensor("x", (2, 2)).tensor("m", (), "INT32").tensor("y", (2, 2))
    b.tensor("k", (), "INT32").tensor("z", (2, 2))
    b.node("WHILE", "n x", "m y", cond_subgraph_index=1, body_subgraph_index=2)
    b.node("WHILE", "m y", "k z", cond_subgraph_index=3, body_subgraph_index=4).signed("loops", "n x", "k z")
    for limit in (1, 5):
        b.subgraph("below").tensor("n", (), "INT32").tensor("x", (2, 2)).number("limit", limit).tensor("go", (), "BOOL")
        b.node("LESS", "n limit", "go").ends("n x", "go")
        b.subgraph("body").tensor("n", (), "INT32").tensor("x", (2, 2)).number("one", 1).tensor("m", (), "INT32")
        b.tensor("joined", (4, 2)).tensor("y", (2, 2)).number("first", [0, 0]).number("size", [2, -1])
        b.node("CONCATENATION", "x x", "joined").node("SLICE", "joined first size", "y").node("ADD", "n one", "m")
        b.ends("n x", "m y")
    return b.model.to_bytes()


def test_a_loop_whose_shapes_were_known_late_runs_when_they_are_known_before() -> None:
    """It is ready for its shape already, but its node's arrays are others."""

    def act(interpreter: Any) -> Any:
        run = interpreter.get_signature_runner("loops")
        return [
            {k: np.asarray(v).tolist() for k, v in run(n=np.int32(0), x=np.ones((rows, 2), np.float32)).items()}
            for rows in (1, 2, 1, 2, 3, 2)
        ]

    actual, expected = both(two_loops(), act)
    assert actual == expected


def loop_of_branches() -> bytes:
    """Two loops, in each of which a branch adds a half to x and another joins x with itself and keeps two rows."""
    b = Program().tensor("n", (), "INT32").tensor("x", (2, 2)).tensor("m", (), "INT32").tensor("y", (2, 2))
    b.tensor("k", (), "INT32").tensor("z", (2, 2))
    b.node("WHILE", "n x", "m y", cond_subgraph_index=1, body_subgraph_index=2)
    b.node("WHILE", "m y", "k z", cond_subgraph_index=5, body_subgraph_index=6).signed("loops", "n x", "k z")
    for limit, then in ((2, 3), (5, 7)):
        b.subgraph("below").tensor("n", (), "INT32").tensor("x", (2, 2)).number("limit", limit).tensor("go", (), "BOOL")
        b.node("LESS", "n limit", "go").ends("n x", "go")
        b.subgraph("body").tensor("n", (), "INT32").tensor("x", (2, 2)).number("one", 1).tensor("m", (), "INT32")
        b.tensor("c", (), "BOOL").tensor("y", (2, 2)).node("LESS", "n one", "c").node("ADD", "n one", "m")
        b.node("IF", "c x", "y", then_subgraph_index=then, else_subgraph_index=then + 1).ends("n x", "m y")
        b.subgraph("join").tensor("x", (2, 2)).tensor("joined", (4, 2)).tensor("y", (2, 2)).number("first", [0, 0])
        b.number("size", [2, -1]).node("CONCATENATION", "x x", "joined").node("SLICE", "joined first size", "y")
        b.ends("x", "y")
        b.subgraph("add").tensor("x", (2, 2)).tensor("h", data=np.float32([0.5])).tensor("y", (2, 2))
        b.node("ADD", "x h", "y").ends("x", "y")
    return b.model.to_bytes()


def test_branches_in_loops_after_resizes() -> None:
    """Against the formula: the official interpreter aborts on some of these resizes."""
    run = Interpreter(model_content=loop_of_branches()).get_signature_runner("loops")
    for n, rows in [(0, 1), (0, 2), (1, 2), (0, 1), (3, 2), (0, 3), (0, 2), (2, 1)]:
        actual = run(n=np.int32(n), x=np.ones((rows, 2), np.float32))
        expected = np.ones((rows, 2), np.float32)
        for turn in range(n, 5):
            expected = np.concatenate([expected, expected])[:2] if turn < 1 else expected + np.float32(0.5)
        assert (int(actual["k"]), actual["z"].tolist()) == (5, expected.tolist()), (n, rows)


@pytest.mark.parametrize(
    "given",
    [
        {"n": np.int32(0)},
        {"n": np.int32(0), "x": np.zeros(2, np.float32), "z": 1},
        {"n": np.int32(0), "z": np.zeros(2)},
        {"n": np.int32(0), "x": np.zeros(2)},
        {},
    ],
    ids=["missing", "extra", "unknown", "float64", "none"],
)
def test_wrong_inputs_of_a_signature_are_reported_in_the_official_words(given: dict[str, Any]) -> None:
    def act(interpreter: Any) -> str:
        with pytest.raises(ValueError) as raised:  # noqa: PT011
            interpreter.get_signature_runner("sums")(**given)
        return str(raised.value).splitlines()[0].strip()

    actual, expected = both(sums(), act)
    assert actual == expected


@pytest.mark.parametrize("name", ["STABLEHLO_DIVIDE", "STABLEHLO_WHILE", "CONCAT_EMBEDDINGS", "DELEGATE"])
def test_builtins_that_no_run_time_has_kernels_for(name: str) -> None:
    main = objects.SubGraph(tensors=[], inputs=[], outputs=[], operators=[objects.Operator(inputs=[], outputs=[])])
    model = Model(operator_codes=[versions.operator_code(name)], subgraphs=[main], buffers=[objects.Buffer()])
    with pytest.raises(ValueError, match="Didn't find op for builtin opcode") as expected:
        official(model.to_bytes())
    with pytest.raises(OpError, match=f"no run time has a kernel for {name}") as excinfo:
        Interpreter(model_content=model.to_bytes())
    assert str(excinfo.value).split(". ")[0] == str(expected.value).split(". ")[0]
    assert isinstance(excinfo.value, ValueError)


def test_a_subgraph_that_calls_itself_is_refused() -> None:
    b = Program().tensor("c", (), "BOOL").tensor("x", (2,)).tensor("y", (2,))
    b.node("IF", "c x", "y", then_subgraph_index=0, else_subgraph_index=0).ends("c x", "y")
    with pytest.raises(OpError, match="calls itself"):
        Interpreter(model_content=b.model.to_bytes())


def test_a_handle_is_no_value_of_a_variable() -> None:
    b = Program().tensor("h", (), "RESOURCE").tensor("g", (), "RESOURCE").node("VAR_HANDLE", "", "h", shared_name="a")
    b.node("VAR_HANDLE", "", "g", shared_name="b").node("ASSIGN_VARIABLE", "h g", "").ends()
    interpreter = Interpreter(model_content=b.model.to_bytes())
    with pytest.raises(OpError, match="input 'g' is a handle"):
        interpreter.allocate_tensors()
