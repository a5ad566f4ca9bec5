"""Plans of models that have nodes without a kernel are kept: a later interpreter plans nothing and answers the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from engine_kit import answer, engine, plain, plan_of
from lite_kit import Build, any_batch, run

import opwright as ow
from opwright import lite
from opwright.compiler.cache import objects
from opwright.compiler.native import store
from opwright.core import flags
from opwright.lite.compiled import partition_plans
from opwright.lite.compiled.plan_registration import CachedPlanRegistration

X = np.random.default_rng(2).standard_normal((2, 6)).astype(np.float32)


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with engine(verify=True), flags.override(cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


class Ours:
    """A kernel in Python, whose result may have another number of rows."""

    rows = 2

    def registration(self) -> lite.Registration:
        def prepare(context: Any, node: Any) -> None:
            context.resize_tensor(node.outputs[0], (self.rows, 6))

        def invoke(context: Any, node: Any) -> None:
            node.outputs[0].data[...] = np.resize(node.inputs[0].data, (self.rows, 6)) + 1

        return lite.Registration(prepare=prepare, invoke=invoke)


def between() -> bytes:
    b = Build().tensor("x", (2, 6)).tensor("h", (2, 6)).tensor("i", (2, 6)).tensor("y", (2, 6))
    return b.op("TANH", "x", "h").custom("Ours", "h", "i").op("EXP", "i", "y").done()


def sizes() -> bytes:
    """A node without a kernel reads what was worked out of a shape inside of a plan."""
    b = Build().tensor("x", (2, 6)).tensor("h", (2, 6)).op("TANH", "x", "h").tensor("s", (2,), "INT32")
    b.op("SHAPE", "h", "s", out_type="INT32").tensor("u", (2,), "INT32").tensor("k", (2,), "INT32")
    b.op("UNIQUE", "s", "u k", idx_out_type="INT32").tensor("y", (2, 6)).op("EXP", "h", "y")
    return b.done("x", "y u k")


def opened(content: bytes, **more: Any) -> lite.Interpreter:
    result = lite.Interpreter(model_content=content, **more)
    result.allocate_tensors()
    return result


def is_kept(interpreter: Any, subgraph: int = 0) -> bool:
    plan = interpreter._subgraphs[subgraph].execution_plan
    kinds = {isinstance(n.registration, CachedPlanRegistration) for n in plan if n.delegate is not None}
    assert len(kinds) == 1, plan
    return kinds.pop()


@pytest.fixture
def no_rules(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called: from here on, to ask a rule is an error, which the switch `verify` lets through."""

    def refuse(at: Any) -> None:
        raise AssertionError(f"a rule is asked for {at.node}")

    return lambda: monkeypatch.setattr(partition_plans, "lower", refuse)


def test_around_a_node_in_python(no_rules: Callable[[], None]) -> None:
    customs = {"Ours": Ours().registration()}
    first = opened(between(), custom_ops=customs)
    expected = answer(first, X)
    np.testing.assert_allclose(expected, np.exp(np.tanh(X) + 1), rtol=1e-5)
    assert plan_of(first) == ["Opwright", "Ours", "Opwright"]
    assert not is_kept(first)
    no_rules()
    second = opened(between(), custom_ops=customs)
    assert plan_of(second) == ["Opwright", "Ours", "Opwright"]
    assert is_kept(second)
    assert answer(second, X).tobytes() == expected.tobytes()
    assert answer(second, -X).tobytes() == answer(first, -X).tobytes()


def test_a_python_kernel_that_gives_another_shape_is_no_stale_plan() -> None:
    kernel = Ours()
    customs = {"Ours": kernel.registration()}
    assert answer(opened(between(), custom_ops=customs), X).shape == (2, 6)
    kernel.rows = 3
    expected = np.exp(np.resize(np.tanh(X), (3, 6)) + 1)
    with pytest.warns(lite.DelegateWarning, match="kept plan is for another shape of 'i'"):
        changed = opened(between(), custom_ops=customs)
    np.testing.assert_allclose(answer(changed, X), expected, rtol=1e-5)
    anew = opened(between(), custom_ops=customs)  # without a warning
    assert not is_kept(anew)
    np.testing.assert_allclose(answer(anew, X), expected, rtol=1e-5)


def test_sizes_for_a_node_that_is_left(no_rules: Callable[[], None]) -> None:
    expected = answer(opened(sizes()), X)
    no_rules()
    second = opened(sizes())
    assert is_kept(second)
    assert answer(second, X).tobytes() == expected.tobytes()
    assert [second.get_tensor(d["index"]).tolist() for d in second.get_output_details()[1:]] == [[2, 6], [0, 1]]


def test_for_inputs_of_each_size() -> None:
    for shape in ((2, 6), (4, 10), (2, 6), (4, 10)):
        x = np.ones(shape, np.float32)
        interpreter = lite.Interpreter(model_content=any_batch())
        assert answer(interpreter, x).tobytes() == plain(any_batch(), x).tobytes()


def test_bodies_of_loops_and_branches(no_rules: Callable[[], None]) -> None:
    @ow.function(input_signature=[ow.TensorSpec((2, 6), ow.float32, name="x")])
    def program(x: Any) -> Any:
        for _ in ow.range(ow.constant(3)):
            x = ow.tanh(x) if ow.reduce_sum(x) > 0.0 else ow.exp(x) - 1.0
        return x

    content = lite.TFLiteConverter.from_concrete_functions([program.get_concrete_function()]).convert()
    first = opened(content)
    expected = [answer(first, x).tobytes() for x in (X, -X)]
    no_rules()
    second = opened(content)
    assert [answer(second, x).tobytes() for x in (X, -X)] == expected
    assert plan_of(second) == ["WHILE"]
    assert "_planner" not in vars(second._engine.delegate)  # nor is it asked for the loop, which no rule lowers


def test_another_delegate_has_its_nodes() -> None:
    """Plans of models with another delegate are not cached, and cached plans are not used there."""

    class Exp(lite.SimpleDelegate):
        supported = {"EXP": 2}

        def create_delegate_kernel(self) -> Any:
            return lite.Registration(invoke=lambda context, node: np.exp(node.inputs[0].data, node.outputs[0].data))

    customs = {"Ours": Ours().registration()}
    for _ in range(2):
        result = opened(between(), custom_ops=customs, experimental_delegates=[Exp()])
        assert plan_of(result) == ["Opwright", "Ours", "Exp"]
        np.testing.assert_allclose(answer(result, X), np.exp(np.tanh(X) + 1), rtol=1e-5)
    assert plan_of(opened(between(), custom_ops=customs)) == ["Opwright", "Ours", "Opwright"]


def test_a_plan_is_kept_where_the_cache_lacks_what_runs_every_plan(
    no_rules: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process has the executor from elsewhere: from another cache, or from another model's plan."""
    answer(opened(sizes()), X)  # whatever loads it
    running = store.loaded("executor", "builtins")
    assert running
    for digest in running:
        monkeypatch.delitem(store._folders, digest, raising=False)
        objects(flags.cache_dir).drop(digest)
    first = opened(between(), custom_ops={"Ours": Ours().registration()})
    result = answer(first, X)
    no_rules()
    second = opened(between(), custom_ops={"Ours": Ours().registration()})
    assert is_kept(second)
    np.testing.assert_array_equal(answer(second, X), result)


def test_a_result_of_another_type_than_the_file_states() -> None:
    content = Build().tensor("x", (2, 6), "INT8").tensor("y", (2, 6)).op("NEG", "x", "y").done()
    x = np.arange(-6, 6, dtype=np.int8).reshape(2, 6)
    for kept in (False, True):
        interpreter = opened(content)
        assert is_kept(interpreter) is kept
        (y,) = run(interpreter, [x])
        np.testing.assert_array_equal(y, -x, strict=True)
