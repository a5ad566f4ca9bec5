"""Branches and loops of compiled subgraphs: the official interpreter's answers, and no Python between the turns."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_kit import engine, plan_of

sys.path.append(str(Path(__file__).parents[1] / "state"))

from state_harness import Build, official, ours

import opwright as ow
from opwright import lite
from opwright.core import flags
from opwright.core.errors import OpError
from opwright.lite.runtime.steps import Chain

X = np.float32([1.5, -2.0, 0.25])


@pytest.fixture(autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with engine(), flags.override(cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


def invoke(interpreter: Any, *values: Any) -> list[np.ndarray]:
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], np.asarray(value, detail["dtype"]))
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def ready(interpreter: Any) -> Any:
    interpreter.allocate_tensors()
    return interpreter


def converted(function: Callable[..., Any], **inputs: Any) -> bytes:
    """Return the file of a function of named inputs."""
    specs = [ow.TensorSpec(np.shape(value), np.asarray(value).dtype, name=name) for name, value in inputs.items()]
    result = ow.function(function, input_signature=specs).get_concrete_function()
    return bytes(lite.TFLiteConverter.from_concrete_functions([result]).convert())


def counted(a: Any, n: Any) -> Any:
    i = ow.constant(0)
    while i < n:
        a = ow.tanh(a) * 1.5
        i += 1
    return a


def swapping(a: Any, n: Any) -> Any:
    b, i = a * 2.0, ow.constant(0)
    while i < n:
        a, b = b, a + 1.0
        i += 1
    return a - b


def nested(a: Any, n: Any) -> Any:
    i = ow.constant(0)
    while i < n:
        j = ow.constant(0)
        while j < i:
            a = a * 0.5 + 1.0
            j += 1
        if ow.reduce_sum(a) > 3.0:
            a = a - 2.0
        i += 1
    return a


def chosen(a: Any, n: Any) -> Any:
    a = ow.tanh(a)
    if n > 2:
        a = ow.exp(a) + 1.0
    elif n > 0:
        a = a * a
    return a - 1.0


def handed_on(a: Any, n: Any) -> Any:
    b = a + 1.0
    if n > 1:
        a, b = b, a
    return a * 2.0 - b


@pytest.mark.parametrize("function", [counted, swapping, nested, chosen, handed_on])
def test_programs(function: Callable[..., Any]) -> None:
    content = converted(function, a=X, n=np.int32(0))
    mine, peer = ready(ours(content)), ready(official(content, delegates=False))
    for n in (0, 1, 5, 2, 0, 7, 3, 3):
        for actual, expected in zip(invoke(mine, X * (1 + n), n), invoke(peer, X * (1 + n), n), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6, err_msg=str(n))


def calls(run: Callable[[], Any]) -> int:
    """How many functions of Python it calls."""
    count = 0

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("function", [counted, swapping, nested])
def test_turns_call_no_python(function: Callable[..., Any]) -> None:
    interpreter = ready(ours(converted(function, a=X, n=np.int32(0))))
    result = []
    for n in (9, 9, 9, 2, 30):  # the first runs connect the subgraphs
        for detail, value in zip(interpreter.get_input_details(), (X, np.int32(n)), strict=True):
            interpreter.set_tensor(detail["index"], value)
        result.append(calls(interpreter.invoke))
    assert result[-3] == result[-2] == result[-1] <= 6, result
    assert result[0] > 6, result


def state(index: bool = False) -> bytes:
    """Adds x to a variable, n times; index: what it was is the place of x in a table of four."""
    b = Build().subgraph("main").tensor("x", (3,)).tensor("n", (), "INT32").handle("v")
    b.tensor("zero", (), "INT32", np.int32(0))
    for name in ("i", "m"):
        b.tensor(f"{name}.last", (), "INT32")
    b.tensor("y", (3,)).tensor("x.last", (3,)).tensor("v.last", (), "RESOURCE")
    b.node("WHILE", "zero n x v", "i.last m.last x.last v.last", cond_subgraph_index=1, body_subgraph_index=2)
    b.op("READ_VARIABLE", "v", "y").ends("x n", "y")
    arguments = [("i", (), "INT32"), ("n", (), "INT32"), ("x", (3,), "FLOAT32"), ("v", (), "RESOURCE")]
    b.subgraph("cond")
    for argument in arguments:
        b.tensor(*argument)
    b.tensor("c", (), "BOOL").op("LESS", "i n", "c").ends("i n x v", "c").subgraph("body")
    for argument in arguments:
        b.tensor(*argument)
    b.tensor("one", (), "INT32", np.int32(1)).tensor("next", (), "INT32").tensor("r", (3,)).tensor("s", (3,))
    b.op("READ_VARIABLE", "v", "r").op("ADD", "r x", "s").op("ASSIGN_VARIABLE", "v s").op("ADD", "i one", "next")
    if index:
        b.tensor("table", (), "INT32", np.int32([0, 0, 0, 0])).tensor("at", (3,), "INT32").op("CAST", "r", "at")
        b.tensor("zeros", (3,), "INT32").op("GATHER", "table at", "zeros").tensor("axis", (), "INT32", np.int32([0]))
        b.tensor("sum", (), "INT32").op("SUM", "zeros axis", "sum").tensor("after", (), "INT32")
        b.op("ADD", "next sum", "after").ends("i n x v", "after n x v")
    else:
        b.ends("i n x v", "next n x v")
    b.subgraph("set").tensor("x", (3,)).handle("v").op("ASSIGN_VARIABLE", "v x").ends("x", "x")
    return bytes(b.done())


def with_signatures(content: bytes) -> bytes:
    from opwright.lite.format import Model, objects

    model = Model.read(content)
    for key, index in (("run", 0), ("set", 3)):
        subgraph = model.subgraphs[index]
        maps = [
            [objects.TensorMap(name=subgraph.tensors[i].name, tensor_index=int(i)) for i in side]
            for side in (subgraph.inputs, subgraph.outputs)
        ]
        model.signature_defs.append(
            objects.SignatureDef(signature_key=key, subgraph_index=index, inputs=maps[0], outputs=maps[1])
        )
    return model.to_bytes()


def test_a_variable_that_a_loop_is_handed() -> None:
    interpreter = ours(with_signatures(state()))
    run, put = map(interpreter.get_signature_runner, ("run", "set"))
    with pytest.raises(OpError, match="variable 'v' is read before anything was assigned to it"):
        run(x=X, n=np.int32(2))
    put(x=np.zeros(3, np.float32))
    for n, expected in ((2, 2), (0, 2), (40, 42), (1, 43)):
        np.testing.assert_allclose(run(x=X, n=np.int32(n))["y"], expected * X)
    put(x=np.ones(3, np.float32))
    np.testing.assert_allclose(run(x=X, n=np.int32(4))["y"], 1 + 4 * X)
    assert plan_of(interpreter, 2) == ["Opwright"]
    assert interpreter._engine.delegate.failure is None
    assert isinstance(interpreter._subgraphs[0].chain, Chain)


def test_a_guard_in_a_turn_is_the_operators_error_and_no_turn_runs_twice() -> None:
    interpreter = ours(with_signatures(state(index=True)))
    run, put = map(interpreter.get_signature_runner, ("run", "set"))
    ones = np.ones(3, np.float32)
    put(x=0 * ones)
    for _ in range(2):
        put(x=0 * ones)
        assert run(x=ones, n=np.int32(4))["y"].tolist() == [4, 4, 4]
    put(x=0 * ones)
    with pytest.raises(OpError, match="GATHER"):
        run(x=ones, n=np.int32(9))  # 0 to 3 are places; at 4 the turn has assigned 5 already
    assert run(x=ones, n=np.int32(0))["y"].tolist() == [5, 5, 5]


def test_branches_by_number_and_nodes_that_share_a_subgraph() -> None:
    b = Build().subgraph("main").tensor("x", (3,)).tensor("n", (), "INT32").tensor("y", (3,)).tensor("z", (3,))
    table = np.int32([1, 2, 1])
    b.node("STABLEHLO_CASE", "n x", "y", branch_subgraph_indices=table)
    b.node("STABLEHLO_CASE", "n y", "z", branch_subgraph_indices=table).ends("x n", "y z")
    for name in ("NEG", "EXP"):
        b.subgraph(name).tensor("a", (3,)).tensor("b", (3,)).op(name, "a", "b").ends("a", "b")
    interpreter = ready(ours(b.done()))
    for n in (0, 1, 2, 7, -1, 1, 1, 0, 0):
        step = np.exp if n == 1 else np.negative
        y, z = invoke(interpreter, X, n)
        np.testing.assert_allclose(y, step(X), rtol=1e-5)
        np.testing.assert_allclose(z, step(step(X)), rtol=1e-5)


def test_calls_are_native_steps() -> None:
    b = Build().subgraph("main").tensor("x", (3,)).tensor("y", (3,)).tensor("h", (3,)).tensor("z", (3,))
    b.node("CALL", "x", "y", subgraph=1).op("TANH", "y", "h")
    b.node("STABLEHLO_COMPOSITE", "h", "z", decomposition_subgraph_index=1, name="opwright.exp").ends("x", "y z")
    b.subgraph("exp").tensor("a", (3,)).tensor("b", (3,)).op("EXP", "a", "b").ends("a", "b")
    interpreter = ready(ours(b.done()))
    for x in (X, -X, X * 0.5):
        y, z = invoke(interpreter, x)
        np.testing.assert_allclose(y, np.exp(x), rtol=1e-5)
        np.testing.assert_allclose(z, np.exp(np.tanh(np.exp(x))), rtol=1e-5)
    (step,) = interpreter._subgraphs[0].joined
    assert isinstance(step, Chain)


def test_a_branch_in_python_between_native_ones() -> None:
    """A branch that no machine code runs stays in Python, and nothing runs twice."""
    b = Build().subgraph("main").tensor("x", (3,)).tensor("c", (), "BOOL").tensor("h", (3,)).tensor("i", (3,))
    b.op("TANH", "x", "h").node("IF", "c h", "i", then_subgraph_index=1, else_subgraph_index=2)
    b.tensor("y", (3,)).op("NEG", "i", "y").ends("x c", "y")
    b.subgraph("then").tensor("a", (3,)).tensor("b", (3,)).custom("Ours", "a", "b").ends("a", "b")
    b.subgraph("else").tensor("a", (3,)).tensor("b", (3,)).op("EXP", "a", "b").ends("a", "b")
    runs = []

    def run(context: Any, node: Any) -> None:
        runs.append(1)
        node.outputs[0].data[...] = node.inputs[0].data + 1

    interpreter = lite.Interpreter(model_content=b.done(), custom_ops={"Ours": lite.Registration(invoke=run)})
    ready(interpreter)
    for count, c in enumerate((True, False, False, True, True, False)):
        (y,) = invoke(interpreter, X, c)
        expected = -(np.tanh(X) + 1) if c else -np.exp(np.tanh(X))
        np.testing.assert_allclose(y, expected, rtol=1e-5)
        assert len(runs) == sum((True, False, False, True, True, False)[: count + 1])


def test_a_signal_ends_a_loop_without_end() -> None:
    interpreter = ready(ours(converted(counted, a=X, n=np.int32(0))))
    for n in (3, 3):
        invoke(interpreter, X, n)
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            invoke(interpreter, X, 2**31 - 1)
        assert time.monotonic() - start < 60
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    np.testing.assert_allclose(invoke(interpreter, X, 1)[0], 1.5 * np.tanh(X), rtol=1e-5)


def test_profiles_and_resized_inputs() -> None:
    """Watching nodes runs them one by one; another shape connects everything again."""

    def program(a: Any, n: Any) -> Any:
        i = ow.constant(0)
        while i < n:
            a = ow.tanh(a)
            i += 1
        return a

    specs = [ow.TensorSpec((None,), ow.float32, name="a"), ow.TensorSpec((), ow.int32, name="n")]
    result = ow.function(program, input_signature=specs).get_concrete_function()
    interpreter = lite.Interpreter(model_content=lite.TFLiteConverter.from_concrete_functions([result]).convert())
    at = interpreter.get_input_details()[0]["index"]
    for size in (3, 5, 3):
        interpreter.resize_tensor_input(at, [size])
        ready(interpreter)
        x = np.linspace(-1, 1, size, dtype=np.float32)
        for _ in range(3):
            np.testing.assert_allclose(invoke(interpreter, x, 2)[0], np.tanh(np.tanh(x)), rtol=1e-5)
        assert [row["calls"] for row in interpreter.profile(runs=4)] == [4]
        np.testing.assert_allclose(invoke(interpreter, x, 1)[0], np.tanh(x), rtol=1e-5)


def test_a_forks_child_runs_loops_on_threads_of_its_own() -> None:
    interpreter = lite.Interpreter(model_content=converted(nested, a=X, n=np.int32(0)), num_threads=2)
    ready(interpreter)
    expected = [invoke(interpreter, X, n)[0].tobytes() for n in (4, 4, 6)]
    child = os.fork()
    if child == 0:
        actual = [invoke(interpreter, X, n)[0].tobytes() for n in (4, 4, 6)]
        os._exit(0 if actual == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert invoke(interpreter, X, 6)[0].tobytes() == expected[-1]
