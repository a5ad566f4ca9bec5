"""Variables by name in compiled plans: the official interpreter's answers, in whatever order nodes read and assign."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_kit import engine, plan_of

sys.path.append(str(Path(__file__).parents[1] / "state"))

from state_harness import Build, official, ours, run
from streaming_models import WHOLE, wake_word

from opwright import lite
from opwright.core import flags
from opwright.core.errors import OpError

X = np.float32([1.5, -2.0, 4.0])


def invoke(interpreter: Any, x: np.ndarray) -> list[np.ndarray]:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


SMALL = ([5], [7, 11]), 16


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Plans of earlier runs are not found; kernels are, as all tests of a process share them."""
    with flags.override(cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


def nodes_of(interpreter: Any) -> list[str]:
    """The nodes that run, by operator."""
    return [name for name in plan_of(interpreter) if name != "VAR_HANDLE"]


@pytest.mark.parametrize("shape", [SMALL, pytest.param((WHOLE, 64), marks=pytest.mark.slow)], ids=["small", "whole"])
def test_a_streaming_network_is_one_plan_and_answers_as_officially(shape: Any, tmp_path: Path) -> None:
    path = tmp_path / "wake.tflite"
    path.write_bytes(wake_word(*shape))
    peer = official(path.read_bytes())
    peer.allocate_tensors()
    rng = np.random.default_rng(1)
    rows = rng.integers(-128, 128, (30, 1, 3, 40)).astype(np.int8)
    expected = [invoke(peer, x)[0] for x in rows]
    assert len({w.item() for w in expected}) > 5
    with engine():
        for _ in range(2):  # planned, then found in the cache
            interpreter = lite.Interpreter(str(path))
            interpreter.allocate_tensors()
            actual = [invoke(interpreter, x)[0] for x in rows]
            assert nodes_of(interpreter) == ["Opwright"]
            worst = np.abs(np.int32(actual) - np.int32(expected)).max()
            assert worst <= 1  # rounding of one step, as in the official default delegate


def start(**variables: Any) -> Build:
    """A model of one input, with a handle for each variable, which CALL_ONCE sets."""
    b = Build().subgraph("main").tensor("x", (3,)).once()
    b.first = variables  # type: ignore[attr-defined]
    for name in variables:
        b.handle(name, name)
    return b


def finished(b: Any, outputs: str = "y") -> bytes:
    b.ends("x", outputs)
    b.subgraph("init")
    for name, value in b.first.items():
        b.handle(name, name).tensor(f"{name}.0", data=np.float32(value)).op("ASSIGN_VARIABLE", f"{name} {name}.0")
    return bytes(b.ends().done())


ONES, TWOS = [1, 1, 1], [2, 2, 2]
# The official default delegate crashes on some of these; its own kernels are the oracle.
PROGRAMS: dict[str, Any] = {
    # lines: "v = t" assigns, "t = v" reads, "t = OP a b" computes; variables are v and w, results y and z
    "counter": "r = v; y = ADD r x; v = y",
    "the old value is returned": "y = v; z = ADD y x; v = z",
    "an old value is read after the new one is made": "r = v; n = NEG x; v = n; y = ADD r n",
    "swapped": "a = v; b = w; v = b; w = a; y = ADD a x; z = NEG b",
    "a shift register": "a = v; w = a; v = x; y = NEG a",
    "a value for two": "n = NEG x; v = n; w = n; y = EXP n",
    "itself": "a = v; v = a; y = ADD a x",
    "assigned twice": "n = NEG x; v = n; m = ADD n x; v = m; y = EXP x",
    "assigned, then read": "n = NEG x; v = n; a = v; y = ADD a x; w = a",
    "read, assigned, read, assigned": "a = v; n = ADD a x; v = n; b = v; m = ADD b b; v = m; y = NEG m",
    "the input": "a = v; v = x; y = ADD a a",
    "reads alone": "a = v; b = w; y = ADD a b; z = NEG b",
    "assignments alone": "v = x; y = NEG x",
    "no tensor between": "a = v; n = NEG a; v = n; y = EXP x",
    "one reads what the other gets": "a = v; b = w; n = ADD a b; w = n; m = NEG n; v = m; y = ADD b n",
}


def program(text: str) -> bytes:
    b = start(v=ONES, w=TWOS)
    named = set()
    for line in text.split("; "):
        target, _, source = line.partition(" = ")
        words = source.split()
        if target in ("v", "w"):
            b.op("ASSIGN_VARIABLE", f"{target} {source}")
            continue
        named.add(target)
        b.tensor(target, (3,))
        if source in ("v", "w"):
            b.op("READ_VARIABLE", source, target)
        else:
            b.op(words[0], " ".join(words[1:]), target)
    return finished(b, " ".join(sorted(named & {"y", "z"})))


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_reads_and_assignments_in_any_order(text: str) -> None:
    content = program(text)
    with engine():
        interpreter = ours(content)
        actual = run(interpreter, [X], 4)
        assert nodes_of(interpreter) == ["Opwright"]
    for mine, expected in zip(actual, run(official(content, delegates=False), [X], 4), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-5)


def test_drawn_programs() -> None:
    rng = np.random.default_rng(5)
    for _ in range(12):
        lines, tensors = [], ["x"]
        for n in range(rng.integers(4, 10)):
            kind, variable, t = rng.integers(3), rng.choice(["v", "w"]), rng.choice(tensors)
            if kind == 0:
                lines.append(f"{variable} = {t}")
                continue
            tensors.append(f"t{n}")
            lines.append(f"t{n} = {variable}" if kind == 1 else f"t{n} = SUB {t} {rng.choice(tensors[:-1])}")
        text = "; ".join([*lines, f"y = NEG {tensors[-1]}"])
        content = program(text)
        with engine():
            actual = run(ours(content), [X], 3)
        for mine, expected in zip(actual, run(official(content, delegates=False), [X], 3), strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-5, err_msg=text)


def test_a_guard_that_stops_the_plan_leaves_variables_to_the_operators() -> None:
    """A place outside of a table is the operator's error; what the nodes before it have assigned is assigned once."""
    b = start(v=ONES).tensor("table", data=np.float32([5, 6, 7, 8])).tensor("i", (3,), "INT32").tensor("n", (3,))
    b.tensor("r", (3,)).op("READ_VARIABLE", "v", "r").op("ADD", "r x", "n").op("ASSIGN_VARIABLE", "v n")
    b.op("CAST", "n", "i").tensor("g", (3,)).op("GATHER", "table i", "g").tensor("y", (3,)).op("NEG", "g", "y")
    content = finished(b, "y")
    with engine():
        interpreter = ours(content)
        interpreter.allocate_tensors()
        assert invoke(interpreter, np.float32([0, 1, 1]))[0].tolist() == [-6, -7, -7]  # v is 1 2 2
        assert nodes_of(interpreter) == ["Opwright"]
        with pytest.raises(OpError, match="GATHER"):
            invoke(interpreter, np.float32([8, 0, 0]))  # v is 9 2 2
        assert invoke(interpreter, np.float32([-7, 0, 0]))[0].tolist() == [-7, -7, -7]


def shaped() -> bytes:
    """A subgraph that adds three numbers to a variable, and one that keeps a vector of any size in it."""
    b = Build().subgraph("main").tensor("x", (3,)).handle("v").tensor("r", (3,)).op("READ_VARIABLE", "v", "r")
    b.tensor("y", (3,)).op("ADD", "r x", "y").op("ASSIGN_VARIABLE", "v y")
    b.ends("x", "y").subgraph("keep").tensor("x", (1,), shape_signature=[-1]).handle("v").op("ASSIGN_VARIABLE", "v x")
    return bytes(b.ends("x", "x").done())


def test_another_value_from_another_signature() -> None:
    """A value of another place, shape or type: the plan goes on with it, or the operators say what is wrong."""
    from opwright.lite.format import Model, objects

    model = Model.read(shaped())
    names = [(["x"], ["y"]), (["x"], ["x"])]
    for index, (key, (ins, outs)) in enumerate(zip(("add", "keep"), names)):
        subgraph = model.subgraphs[index]
        maps = [
            [objects.TensorMap(name=n, tensor_index=int(i)) for n, i in zip(side, indices)]
            for side, indices in ((ins, subgraph.inputs), (outs, subgraph.outputs))
        ]
        model.signature_defs.append(
            objects.SignatureDef(signature_key=key, subgraph_index=index, inputs=maps[0], outputs=maps[1])
        )
    with engine():
        interpreter = lite.Interpreter(model_content=model.to_bytes())
        add, keep = map(interpreter.get_signature_runner, ("add", "keep"))
        with pytest.raises(OpError, match="variable 'v' is read before anything was assigned to it"):
            add(x=X)
        keep(x=np.float32([1, 2, 3]))
        assert add(x=X)["y"].tolist() == [2.5, 0, 7]
        assert add(x=X)["y"].tolist() == [4, -2, 11]
        keep(x=np.float32([1, 2]))
        with pytest.raises(OpError, match="another number of elements"):
            add(x=X)
        keep(x=np.float32([0, 0, 1]))
        assert add(x=X)["y"].tolist() == [1.5, -2, 5]
        assert nodes_of(interpreter) == ["Opwright"]


def test_the_short_way_keeps_variables_and_hands_them_over(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    content = program(PROGRAMS["counter"])
    path.write_bytes(content)
    with engine():
        lite.Interpreter(str(path)).allocate_tensors()
        lite.Interpreter(model_content=content).allocate_tensors()
        for runs, source in itertools.product((0, 1, 2), ({"model_path": str(path)}, {"model_content": content})):
            short = lite.Interpreter(**source)
            short.allocate_tensors()
            for count in range(runs):
                assert invoke(short, X)[0].tolist() == (1 + (1 + count) * X).tolist()
            assert short._fast_path is not None
            short.reset_all_variables()  # resources stay
            assert short._fast_path is not None
            short.num_subgraphs()  # needs the file
            assert short._fast_path is None
            assert invoke(short, X)[0].tolist() == (1 + (1 + runs) * X).tolist()


def test_no_short_way_where_more_than_constants_is_assigned_first(tmp_path: Path) -> None:
    b = start(v=ONES).op("READ_VARIABLE", "v", "y").ends("x", "y")
    b.subgraph("init").tensor("c", data=np.float32(ONES)).handle("v", "v").tensor("d", (3,)).op("NEG", "c", "d")
    path = tmp_path / "model.tflite"
    path.write_bytes(b.op("ASSIGN_VARIABLE", "v d").ends().done())
    with engine():
        for _ in range(3):
            interpreter = lite.Interpreter(str(path))
            interpreter.allocate_tensors()
            assert invoke(interpreter, X)[0].tolist() == [-1, -1, -1]


def test_two_interpreters_have_variables_of_their_own() -> None:
    content = program(PROGRAMS["counter"])
    with engine():
        one, other = ours(content), ours(content)
        assert [r[0].tolist() for r in run(one, [X], 2)] == [[2.5, -1, 5], [4, -3, 9]]
        assert [r[0].tolist() for r in run(other, [X], 1)] == [[2.5, -1, 5]]
        assert [r[0].tolist() for r in run(one, [X], 1)] == [[5.5, -5, 13]]


def test_a_kernel_that_replaces_a_variable_is_seen() -> None:
    """Switching to compiled nodes and back leaves variables as they are."""
    content = program(PROGRAMS["counter"])
    with engine():
        interpreter = ours(content)
        assert run(interpreter, [X], 2)[1][0].tolist() == [4, -3, 9]
        interpreter.remove_all_delegates()
        assert run(interpreter, [X], 1)[0][0].tolist() == [5.5, -5, 13]
        assert "Opwright" not in plan_of(interpreter)
