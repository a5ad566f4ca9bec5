"""The compiled engine of the interpreter: when it takes nodes, what stays, what it says when something goes wrong."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import warnings
import weakref

import numpy as np
import pytest
from engine_kit import answer, chain, engine, names, plain, plan_of
from lite_kit import Build

from opwright import lite
from opwright.compiler.loops import planner
from opwright.lite.compiled import ahead, partition_plans
from opwright.lite.compiled import engine as engines
from opwright.lite.compiled.ahead import Ahead
from opwright.lite.interpreter import OpResolverType

X = np.linspace(-2, 2, 15, dtype=np.float32).reshape(3, 5)


def made(content, **more):
    return lite.Interpreter(model_content=content, **more)


def doubled():
    """A custom operator: two times its input."""
    return {
        "Twice": lite.Registration(
            prepare=lambda context, node: context.resize_tensor(node.outputs[0], node.inputs[0].shape),
            invoke=lambda context, node: np.multiply(node.inputs[0].data, 2, out=node.outputs[0].data),
        )
    }


# ---- what is taken -------------------------------------------------------------------------------------------------


def test_a_whole_model_is_one_node_and_returns_the_same():
    content = chain(names())
    with engine():
        interpreter = made(content)
        found = answer(interpreter, X)
        assert plan_of(interpreter) == ["Opwright"]
    np.testing.assert_allclose(found, plain(content, X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "more",
    [
        {"experimental_op_resolver_type": OpResolverType.BUILTIN_REF},
        {"experimental_op_resolver_type": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES},
        {"experimental_preserve_all_tensors": True},
    ],
    ids=lambda more: next(iter(more)),
)
def test_who_asks_for_the_interpreters_kernels_gets_them(more):
    with engine():
        interpreter = made(chain(["ABS", "NEG"]), **more)
        interpreter.allocate_tensors()
        assert plan_of(interpreter) == ["ABS", "NEG"]


def test_custom_operators_stay_and_are_prepared_once():
    calls = []

    def prepare(context, node):
        calls.append(node.number)
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    twice = {"Twice": lite.Registration(prepare=prepare, invoke=doubled()["Twice"].invoke)}
    content = Build().op("ABS", "x", "a").op("NEG", "a", "b").custom("Twice", "b", "c").op("ABS", "c", "y").done()
    with engine():
        interpreter = made(content, custom_ops=twice)
        found = answer(interpreter, X[0])
        assert plan_of(interpreter) == ["Opwright", "Twice", "Opwright"]
        assert calls == [2]
    np.testing.assert_array_equal(found, 2 * np.abs(X[0]))


def test_a_builtin_that_a_resolver_serves_otherwise_stays():
    resolver = lite.BuiltinOpResolver()
    resolver.add_builtin("NEG", doubled()["Twice"])
    with engine():
        interpreter = made(Build().op("ABS", "x", "a").op("NEG", "a", "y").done(), op_resolver=resolver)
        found = answer(interpreter, X[0])
        assert plan_of(interpreter) == ["Opwright", "NEG"]
    np.testing.assert_array_equal(found, 2 * np.abs(X[0]))


def test_nodes_of_unknown_shape_are_taken_after_a_run():
    b = Build().tensor("x", (6,)).tensor("shape", (2,), "INT32").op("ABS", "x", "a")
    content = b.op("RESHAPE", "a shape", "r").op("NEG", "r", "y").done("x shape")
    with engine():
        interpreter = made(content)
        interpreter.allocate_tensors()
        for sizes in ([2, 3], [6, 1]):
            interpreter.set_tensor(0, np.arange(6, dtype=np.float32))
            interpreter.set_tensor(1, np.int32(sizes))
            interpreter.invoke()
            assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).shape == tuple(sizes)
        assert plan_of(interpreter) == ["Opwright", "Opwright"]


def test_a_tensor_that_two_nodes_write_stays_with_the_interpreter():
    content = Build().op("ABS", "x", "a").op("NEG", "x", "a").op("NEG", "a", "y").done()
    with engine():
        interpreter = made(content)
        np.testing.assert_array_equal(answer(interpreter, X[0]), X[0])
        assert "Opwright" not in plan_of(interpreter)


def test_both_branches_of_an_if_are_compiled():
    b = Build("main").tensor("c", (), "BOOL").tensor("x").tensor("y")
    b.node("IF", "c x", "y", then_subgraph_index=1, else_subgraph_index=2).ends("c x", "y")
    b.subgraph("then").op("ABS", "x", "y").ends("x", "y")
    content = b.subgraph("else").op("NEG", "x", "y").done()
    with engine():
        interpreter = made(content)
        interpreter.allocate_tensors()
        for choice, wanted in ((True, np.abs(X[0])), (False, -X[0])):
            interpreter.set_tensor(0, np.array(choice))
            interpreter.set_tensor(1, X[0])
            interpreter.invoke()
            np.testing.assert_array_equal(interpreter.get_tensor(2), wanted)
        assert plan_of(interpreter, 1) == plan_of(interpreter, 2) == ["Opwright"]


# ---- shapes, threads, life ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [True, False])
def test_another_shape_is_planned_again(whole):
    b = Build().tensor("x", (3, 5)).tensor("a", (3, 5)).tensor("y", (3, 5)).op("TANH", "x", "a")
    content = b.op("NEG", "a", "y").done() if whole else b.custom("Twice", "a", "y").done()
    with engine():
        interpreter = made(content, custom_ops={} if whole else doubled())
        for shape in ((3, 5), (1, 5), (7, 2), (3, 5)):
            x = np.linspace(-1, 1, np.prod(shape), dtype=np.float32).reshape(shape)
            found = answer(interpreter, x)
            np.testing.assert_allclose(found, np.tanh(x) * (-1 if whole else 2), rtol=1e-5, atol=1e-6)
            assert plan_of(interpreter)[0] == "Opwright"


def test_interpreters_run_concurrently():
    content = chain(names(), (64, 33))
    xs = [np.random.default_rng(i).normal(size=(64, 33)).astype(np.float32) for i in range(6)]
    wanted, found = [plain(content, x) for x in xs], {}

    def work(i):
        interpreter = made(content, num_threads=1 + i % 3)
        found[i] = [answer(interpreter, xs[i]) for _ in range(5)]

    with engine():
        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    for i, w in enumerate(wanted):
        for one in found[i]:
            np.testing.assert_allclose(one, w, rtol=1e-5, atol=1e-6)


def test_memory_is_given_back_with_the_interpreter():
    gc.disable()
    try:
        with engine():
            interpreter = made(chain(["ABS", "NEG"]))
            interpreter.allocate_tensors()
            running = weakref.ref(interpreter._subgraphs[0].execution_plan[0].registration._running)
            assert running() is not None
            del interpreter
            assert running() is None
    finally:
        gc.enable()


def test_a_tensor_inside_is_an_error_and_reports_where():
    with engine():
        interpreter = made(chain(["ABS", "NEG", "ABS"]))
        answer(interpreter, X)
        inner = interpreter._subgraphs[0].nodes[1].tensors_out[0].index
        with pytest.raises(ValueError, match=r"inside node 3, which delegate Opwright runs"):
            interpreter.get_tensor(inner)


def test_delegates_go_before_the_engine():
    class Takes(lite.SimpleDelegate):
        supported = {"NEG": 9}
        dynamic_tensors = "split"

        def create_delegate_kernel(self):
            class Kernel(lite.DelegateKernel):
                def invoke(self, context, node):
                    np.negative(node.inputs[0].data, out=node.outputs[0].data)

            return Kernel()

    with engine():
        interpreter = made(Build().op("ABS", "x", "a").op("NEG", "a", "y").done())
        assert answer(interpreter, X[0]).tolist() == (-np.abs(X[0])).tolist()
        assert plan_of(interpreter) == ["Opwright"]
        interpreter.modify_graph_with_delegate(Takes())
        assert plan_of(interpreter) == ["Opwright", "Takes"]
        assert answer(interpreter, X[0]).tolist() == (-np.abs(X[0])).tolist()
        interpreter.remove_all_delegates()
        assert answer(interpreter, X[0]).tolist() == (-np.abs(X[0])).tolist()
        assert plan_of(interpreter) == ["ABS", "NEG"]


def test_operators_inside_are_profiled():
    b = Build().tensor("x", (40, 50)).tensor("a", (40, 50)).tensor("y", (40,))
    b.tensor("axis", type="INT32", data=np.int32([1]))
    content = b.op("ABS", "x", "a").op("SUM", "a axis", "y").done()
    with engine():
        interpreter = made(content)
        interpreter.allocate_tensors()
        rows = interpreter.profile(3, memory=True)
    assert [(r["operator"], r["delegate"], r["calls"]) for r in rows] == [(n, "Opwright", 3) for n in ("ABS", "SUM")]
    assert sum(r["seconds"] for r in rows) > 0


# ---- what goes wrong ------------------------------------------------------------------------------------------------


def test_an_index_outside_names_the_operator_and_leaves_the_interpreter_usable():
    b = Build().tensor("x", (3, 5)).tensor("i", (2,), "INT32").tensor("g", (2, 5)).tensor("y", (2, 5))
    content = b.op("GATHER", "x i", "g").op("NEG", "g", "y").done("x i")
    with engine():
        interpreter = made(content)
        interpreter.allocate_tensors()
        assert plan_of(interpreter) == ["Opwright"]
        interpreter.set_tensor(0, X)
        interpreter.set_tensor(1, np.int32([0, 3]))
        with pytest.raises(RuntimeError) as raised:
            interpreter.invoke()
        reference = made(content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        reference.allocate_tensors()
        reference.set_tensor(1, np.int32([0, 3]))
        with pytest.raises(RuntimeError, match=r"Node number 0 \(GATHER\) failed to invoke") as wanted:
            reference.invoke()
        assert str(raised.value) == str(wanted.value)
        interpreter.set_tensor(1, np.int32([2, 0]))
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), -X[[2, 0]])


def test_options_that_are_wrong_are_the_interpreters_error():
    content = Build().op("ABS", "x", "y").done()
    model = lite.Model.read(content)
    from opwright.lite.format import objects

    model.subgraphs[0].operators[0].builtin_options = objects.table_class("SoftmaxOptions")(beta=1.0)
    with engine(), pytest.raises(RuntimeError, match="options are those of another operator"):
        answer(made(model.to_bytes()), X[0])


def test_where_nothing_can_be_compiled_models_run_and_one_warning_reports_it(monkeypatch):
    def fail(*args, **more):
        raise OSError("no compiler here")

    content = chain(names())
    monkeypatch.setattr(partition_plans, "plan_of", fail)
    monkeypatch.setattr(planner, "plan_of", fail)
    monkeypatch.setattr(engines, "_warned", threading.Event())
    with engine(), pytest.warns(RuntimeWarning, match="without compiled kernels: no compiler here"):
        assert answer(made(content), X).tolist() == plain(content, X).tolist()
    with engine(), warnings.catch_warnings():
        warnings.simplefilter("error")
        answer(made(content), X)


# ---- compiled in the background -------------------------------------------------------------------------------------


def test_the_interpreter_answers_while_kernels_are_compiled_and_then_switches():
    content = chain(names())
    with engine(background=True):
        interpreter = made(content)
        interpreter.allocate_tensors()
        if interpreter._waiting:
            assert "Opwright" not in plan_of(interpreter)
        interpreter.set_tensor(0, X)
        interpreter.invoke()
        first = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        interpreter._engine.wait()
        interpreter.invoke()  # with the input that was set before
        assert plan_of(interpreter) == ["Opwright"]
        assert not interpreter._waiting
        second = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(second, first, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(first, plain(content, X), rtol=1e-5, atol=1e-6)


def test_the_switch_waits_for_views_and_keeps_what_custom_operators_prepared():
    calls = []
    kernel = lite.Registration(
        init=lambda context, options: calls.append("init"),
        prepare=lambda context, node: calls.append("prepare"),
        invoke=doubled()["Twice"].invoke,
    )
    b = Build()
    for i, op in enumerate(ops := names()):
        b.op(op, f"t{i}" if i else "x", f"t{i + 1}")
    content = b.custom("Twice", f"t{len(ops)}", "y").done()
    with engine(background=True):
        interpreter = made(content, custom_ops={"Twice": kernel})
        interpreter.allocate_tensors()
        view = interpreter.tensor(0)()
        view[...] = X[0]
        interpreter._engine.wait()
        interpreter.invoke()
        assert "Opwright" not in plan_of(interpreter)
        del view
        interpreter.invoke()
        assert plan_of(interpreter) == ["Opwright", "Twice"]
        found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert calls == ["init", "prepare"]
    np.testing.assert_allclose(found, plain(content, X[0], custom_ops=doubled()), rtol=1e-5, atol=1e-6)


# ---- plans of earlier processes -------------------------------------------------------------------------------------


def test_a_plan_is_kept_and_found(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(chain(names()))
    wanted = plain(path.read_bytes(), X)
    with engine(cache_dir=tmp_path / "cache"):
        first = lite.Interpreter(str(path))
        np.testing.assert_allclose(answer(first, X), wanted, rtol=1e-5, atol=1e-6)
        assert first._fast_path is None
        second = lite.Interpreter(str(path))
        assert second._fast_path is not None
        np.testing.assert_array_equal(answer(second, X), answer(first, X))
        again = made(path.read_bytes(), custom_ops=doubled())
        np.testing.assert_array_equal(answer(again, X), answer(first, X))
        x = np.concatenate([X, X])
        np.testing.assert_allclose(answer(second, x), np.concatenate([wanted, wanted]), rtol=1e-5, atol=1e-6)


def test_a_model_is_planned_for_the_shapes_it_has_now_while_the_reference_kernels_answer(monkeypatch):
    """Its first shapes are not, even where the thread already waits for their first answer."""
    monkeypatch.setattr(ahead, "PATIENCE", 600.0)
    content = chain(names())
    wide = np.linspace(-1, 1, 7 * 5, dtype=np.float32).reshape(7, 5)
    with engine(background=True):
        interpreter = made(content)
        interpreter.allocate_tensors()
        assert isinstance(interpreter._engine, Ahead)
        while "_work" in vars(interpreter._engine._job):  # the thread has not taken it
            time.sleep(0.001)
        np.testing.assert_allclose(answer(interpreter, wide), plain(content, wide), rtol=1e-5, atol=1e-6)
        interpreter._engine.wait()
        np.testing.assert_allclose(answer(interpreter, wide), plain(content, wide), rtol=1e-5, atol=1e-6)
        assert plan_of(interpreter) == ["Opwright"]
        again = made(content)  # the plan that was kept is for other shapes
        again.allocate_tensors()
        assert isinstance(again._engine, Ahead)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(partition_plans, "lower", None)  # asking any rule would raise
            again.resize_tensor_input(0, (7, 5))
            other = made(content)
            other.resize_tensor_input(0, (7, 5))
            other.allocate_tensors()
            assert plan_of(other) == ["Opwright"]


APART = """
import sys
from opwright import lite
from opwright.lite import interpreter as interpreters
here, plan = [], interpreters._plan_ahead
interpreters._plan_ahead = lambda *given: here.append(plan(*given))
sys.executable = sys.argv[2] or sys.executable
interpreter = lite.Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.invoke()
first = interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist()
interpreter._engine.wait()
interpreter.invoke()
assert interpreter._engine.runs_nodes()
assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist() == first
print(len(here))
"""


def test_a_model_is_planned_in_a_child_process_and_here_where_there_can_be_none(tmp_path):
    path = tmp_path / "model.tflite"
    environ = os.environ | {"OPWRIGHT_COMPILED": "1", "OPWRIGHT_BACKGROUND": "1"}
    for program, here in (("", "0"), ("/no/program", "1")):
        path.write_bytes(chain(["RELU"], (3, 4 + len(program))))
        done = subprocess.run(
            [sys.executable, "-c", APART, str(path), program], env=environ, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == [here]


class Idle(lite.Delegate):
    """Takes no node."""

    def prepare(self, context):
        pass


def test_a_delegate_or_a_close_while_a_model_is_planned_ends_that():
    content = chain(names())
    with engine(background=True):
        closed, delegated = made(content), made(content)
        for one in (closed, delegated):
            one.allocate_tensors()
            assert isinstance(one._engine, Ahead)
        job = closed._engine._job
        closed.close()
        job.wait()
        with pytest.raises(RuntimeError):
            closed.invoke()
        delegated.modify_graph_with_delegate(Idle())
        assert not isinstance(delegated._engine, Ahead)
        np.testing.assert_allclose(answer(delegated, X), plain(content, X), rtol=1e-5, atol=1e-6)
