"""Test the second run of an operator on equal inputs: cached state, uncached state, and equal results."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.core import flags
from opwright.scopes import execution, fast_path

ADD = ow.ops.get("Add").on({"x": "a", "y": "b"}, {"z": "c"})


def scope_of(**values: Any) -> ow.Scope:
    scope = ow.Scope()
    for name, value in values.items():
        scope.var(name).set(value)
    return scope


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators that went the long way."""
    went: list[str] = []
    whole = execution._execute

    def execute(instance: Any, *rest: Any) -> Any:
        went.append(instance.type.name)
        return whole(instance, *rest)

    monkeypatch.setattr(execution, "_execute", execute)
    return went


def doubler(name: str, **rules: Any) -> Any:
    rules = {
        "x": ow.Input(dtypes=ow.floating),
        "y": ow.Output(like="x"),
        "compute": lambda op, x: x * 2,
        "__doc__": ".. math:: y = 2 x",
        "__module__": __name__,
    } | rules
    return ow.operator(type(name, (), rules))


def test_the_second_run_on_such_inputs_goes_the_short_way_and_reports_the_same(long_ways: list[str]) -> None:
    scope = scope_of(a=np.float32([1, 2]), b=np.float32([3, 4]))
    other = scope_of(a=np.float32([5, 6]), b=np.float32([7, 8]))
    first = ADD.run(scope)
    del long_ways[:]
    assert ADD.run(other) == first
    assert long_ways == []
    assert other.find_var("c").value.numpy().tolist() == [12, 14]
    assert copy.deepcopy(ADD).run(scope) == first
    assert long_ways == []  # it is the operator that remembers
    for again in (np.float64([1, 2]), np.float32([[1, 2]]), np.int32([1, 2])):
        key = ADD.run(scope_of(a=again, b=again)).requested
        assert key.dtype.np == again.dtype


def test_only_plain_tensors_of_the_cpu_go_it(long_ways: list[str]) -> None:
    x = np.float32([[1], [2]])
    ADD.run(scope_of(a=x, b=x))
    ADD.run(scope_of(a=x, b=x))
    del long_ways[:]
    lod = scope_of(a=ow.create_lod_tensor(x, [[1, 1]]), b=x)
    ADD.run(lod)
    assert lod.find_var("c").value.recursive_sequence_lengths() == [[1, 1]]
    image = np.zeros((1, 2, 3, 4), np.float32)
    for _ in range(2):
        laid = scope_of(a=image, b=image)
        laid.find_var("a").get_tensor().layout = "NHWC"
        ADD.run(laid)
        assert laid.find_var("c").layout == "NHWC"
    assert len(long_ways) == 3


def test_an_output_that_has_the_name_of_an_input() -> None:
    again = ow.ops.get("Add").on({"x": "a", "y": "b"}, {"z": "a"})
    scope = scope_of(a=np.float32(1), b=np.float32([1, 2, 3]))
    for _ in range(3):  # the shape of `a` is another after the first
        again.run(scope)
    assert scope.find_var("a").value.numpy().tolist() == [4, 7, 10]


def test_results_have_memory_of_their_own_in_every_run() -> None:
    for name, attrs in (("Identity", {}), ("Reshape", None)):
        scope = scope_of(x=np.float32([1, 2]), shape=np.int32([2, 1]))
        op = ow.ops.get(name)
        inputs = {declared.name: v for declared, v in zip(op.inputs, ("x", "shape"))}
        instance = op.on(inputs, {op.output_names[0]: "y"}, **(attrs or {}))
        for _ in range(3):
            instance.run(scope)
            x, y = (scope.find_var(n).get_tensor().values._array for n in "xy")
            assert not np.shares_memory(x, y)


def test_shapes_that_follow_from_values_are_inferred_each_time() -> None:
    scope = scope_of(x=np.arange(6, dtype=np.float32), shape=np.int32([2, 3]))
    instance = ow.ops.get("Reshape").on({"tensor": "x", "shape": "shape"}, {"output": "y"})
    for shape in ([2, 3], [3, 2], [6, 1], [2, 3]):
        scope.var("shape").set(np.int32(shape))
        instance.run(scope)
        assert scope.find_var("y").value.shape.as_list() == shape


def test_a_kernel_registered_later_serves_the_next_run() -> None:
    op = doubler("ShortcutLater")
    instance, scope = op.on({"x": "x"}, {"y": "y"}), scope_of(x=np.float32([1]))
    assert [instance.run(scope).branch for _ in range(2)] == ["reference"] * 2

    @ow.ops.register_kernel(op, dtype=ow.float32)
    def fast(op: Any, x: Any) -> Any:
        return x * 20

    assert [instance.run(scope).branch for _ in range(2)] == ["kernel"] * 2
    assert scope.find_var("y").value.numpy().tolist() == [20]


def test_a_kernel_that_declines_hands_over_in_every_run() -> None:
    op = doubler("ShortcutDeclines")

    @ow.ops.register_kernel(op, dtype=ow.float32)
    def fast(op: Any, x: Any) -> Any:
        return NotImplemented if x.sum() > 5 else x + x

    instance = op.on({"x": "x"}, {"y": "y"})
    for value, branch in ((1, "kernel"), (9, "reference"), (1, "kernel"), (9, "reference")):
        scope = scope_of(x=np.float32([value]))
        assert instance.run(scope).branch == branch
        assert scope.find_var("y").value.numpy().tolist() == [2 * value]


def test_promises_are_kept_in_every_run() -> None:
    lies = [0]

    def compute(op: Any, x: Any) -> Any:
        lies[0] += 1
        return x if lies[0] == 1 else x[:1] if lies[0] == 2 else x.astype(np.complex64)

    op = doubler("ShortcutLies", compute=compute)
    instance, scope = op.on({"x": "x"}, {"y": "y"}), scope_of(x=np.float32([1, 2]))
    instance.run(scope)
    for words in ("another shape", "another dtype"):
        with pytest.raises(ow.errors.DefinitionError, match=f"ShortcutLies(.|\n)*{words}"):
            instance.run(scope)


def test_errors_of_a_later_run_have_operator_and_line() -> None:
    def compute(op: Any, x: Any) -> Any:
        if x[0] > 1:
            raise ValueError("too large")
        return x * 1

    instance = doubler("ShortcutFails", compute=compute).on({"x": "x"}, {"y": "y"})
    scope = scope_of(x=np.float32([1]), y=np.float32([7]))
    instance.run(scope)
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"ShortcutFails \(.*test_fast_path.py:\d+\): .*too large"):
        instance.run(scope_of(x=np.float32([2])))
    assert instance.run(scope).branch == "reference"


@pytest.mark.parametrize("switch", ["check_numerics", "check_inputs", "check_unused_inputs", "benchmark"])
def test_switches_see_every_run(switch: str, long_ways: list[str]) -> None:
    scope = scope_of(a=np.float32([1, 2]), b=np.float32([3, 4]))
    ADD.run(scope)
    ADD.run(scope)
    del long_ways[:]
    with flags.override(**{switch: True}):
        ADD.run(scope)
    assert long_ways == ["Add"]


def test_what_is_remembered_is_bounded_and_dies_with_a_graph() -> None:
    for n in range(1, 200):
        ADD.run(scope_of(a=np.zeros(n, np.float32), b=np.zeros(n, np.float32)))
    assert len(ADD.type.bind({}).remembered) <= fast_path._MAX_CACHED

    @ow.function
    def shifted(x: Any) -> Any:
        return x + np.full(1000, 3, np.float32)

    graph = shifted.get_concrete_function(ow.TensorSpec([1000], ow.float32)).graph
    scope = scope_of(**{graph.inputs[0].name: np.zeros(1000, np.float32)})
    for _ in range(3):
        (y,) = ow.run_graph(graph, scope)
    assert y.value.numpy().tolist() == [3.0] * 1000
    gone = weakref.ref(graph)
    del graph, shifted, y
    gc.collect()
    assert gone() is None


def test_one_instance_on_many_scopes_in_many_threads() -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        scope = ow.Scope()
        for turn in range(200):
            n = (seed + turn) % 5 + 1
            a = np.full(n, seed, [np.float32, np.float64][turn % 2])
            scope.var("a").set(a)
            scope.var("b").set(a)
            ADD.run(scope)
            c = scope.find_var("c").value.numpy()
            if c.dtype != a.dtype or c.tolist() != [2 * seed] * n:
                wrong.append((seed, turn, c))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
