"""One run of an instance: what it reads and writes, its order, its errors, what the switches stop."""

from __future__ import annotations

import copy
import re
import threading
from typing import Any

import numpy as np
import pytest

import opwright as ow

CPU, SIM = ow.CPUPlace(), ow.SimulatedPlace(0)


def op(name: str) -> Any:
    return ow.ops.get(name)


def filled(**values: Any) -> ow.Scope:
    scope = ow.Scope()
    for name, value in values.items():
        scope.var(name).set(value)
    return scope


def add() -> ow.OpInstance:
    return op("Add").on({"x": "a", "y": "b"}, {"z": "c"})


def fresh(**settings: Any) -> Any:
    def compute(op: Any, x: Any) -> Any:
        return x * 2

    body = {"x": ow.Input(dtypes=(ow.float32, ow.float64)), "y": ow.Output(like="x"), "compute": compute, **settings}
    return ow.operator(type("Twice", (), {"__doc__": ".. math:: y = 2 x", **body}))


def test_the_same_instance_on_two_scopes_two_dtypes_and_after_a_deep_copy() -> None:
    one, instance = filled(a=np.float32([1, 2]), b=np.float32([3, 4])), add()
    two = filled(a=np.float64([5, 6]), b=np.float64([7, 8]))
    for run in (instance, instance, copy.deepcopy(instance)):
        for scope, dtype, expected in [(one, ow.float32, [4.0, 6.0]), (two, ow.float64, [12.0, 14.0])]:
            run.run(scope, CPU)
            assert scope.var("c").value.dtype is dtype
            assert scope.var("c").value.numpy().tolist() == expected
            scope.erase("c")


def test_the_kernel_is_chosen_again_for_another_dtype() -> None:
    twice, seen = fresh(), []
    ow.ops.register_kernel(twice, dtype=ow.float32)(lambda op, x: seen.append(x.dtype) or x + x)
    instance = twice.on({"x": "a"}, {"y": "b"})
    assert instance.run(filled(a=np.float32([1])), CPU).branch == "kernel"
    assert instance.run(filled(a=np.float64([1])), CPU).branch == "reference"  # never the kernel of before
    assert seen == [np.dtype("float32")]


def test_one_instance_in_many_threads() -> None:
    instance, wrong = add(), []

    def work(i: int) -> None:
        scope = filled(a=np.full(100, i), b=np.ones(100, int))
        for _ in range(20):
            instance.run(scope, CPU)
            if (scope.var("c").value.numpy() != i + 1).any():
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_names_resolve_at_run_time_and_outward() -> None:
    outer = filled(a=[1.0], b=[2.0])
    inner = outer.new_scope()
    add().run(inner, CPU)
    assert inner.local_var_names() == ["c"]  # made where the run is
    inner.var("a").set([10.0])
    outer.var("c")
    inner.erase("c")
    add().run(inner, CPU)
    assert inner.local_var_names() == ["a"]  # one around it had the name
    assert outer.var("c").value.numpy().tolist() == [12.0]


def test_without_a_scope_or_place_the_global_scope_and_the_cpu() -> None:
    with ow.scope_guard(filled(a=[1.0], b=[2.0])) as scope:
        assert add().run().place == CPU
    assert scope.var("c").value.numpy().tolist() == [3.0]


def test_an_output_may_have_an_inputs_name() -> None:
    scope = filled(a=[1.0], b=[2.0])
    instance = op("Add").on({"x": "a", "y": "b"}, {"z": "a"})
    for place, expected in ((CPU, [3.0]), (SIM, [5.0])):
        instance.run(scope, place)
        assert scope.var("a").value.numpy().tolist() == expected


def test_inputs_are_never_written_and_outputs_have_memory_of_their_own() -> None:
    scope = filled(a=ow.LoDTensor([[1.0], [2.0]], [[0, 1, 2]]), shape=np.int32([2, 1]))
    before = scope.var("a").value.numpy().tobytes(), scope.var("a").value.lod()
    op("Reshape").on({"tensor": "a", "shape": "shape"}, {"output": "b"}).run(scope, CPU)
    a, b = scope.var("a").get_tensor().values._array, scope.var("b").get_tensor().values._array
    assert not np.shares_memory(a, b)
    assert (scope.var("a").value.numpy().tobytes(), scope.var("a").value.lod()) == before

    def compute(op: Any, x: Any) -> Any:
        x += 1
        return x

    with pytest.raises(ow.errors.PermissionDeniedError, match=r"Twice.*'x'"):
        fresh(compute=compute).on({"x": "a"}, {"y": "b"}).run(filled(a=[1.0]), CPU)


def test_a_lod_passes_as_the_operator_says() -> None:
    scope = filled(a=ow.LoDTensor([[1.0], [2.0], [3.0]], [[0, 1, 3]]), b=[[1.0]])
    for place in (CPU, SIM):
        op("Add").on({"x": "a", "y": "b"}, {"z": "c"}).run(scope, place)
        assert scope.var("c").value.lod() == [[0, 1, 3]]
        op("Sum").on({op("Sum").input_names[0]: "a"}, {op("Sum").output_names[0]: "s"}, axis=[0]).run(scope, place)
        assert not isinstance(scope.var("s").value, ow.LoDTensor)


def test_no_variable_is_an_error_only_where_the_input_is_required() -> None:
    scope = filled(a=[[1.0]], p=np.int32([[1, 0], [0, 0]]))
    pad = op("Pad").on({"input": "a", "paddings": "p", "constant_values": "nobody"}, {"output": "y"})
    pad.run(scope, CPU)
    assert scope.var("y").value.numpy().tolist() == [[0.0], [1.0]]
    with pytest.raises(ow.errors.InvalidArgumentError) as error:
        add().run(scope, CPU)
    for word in ("Add", "input 'y'", "'b'", "test_execution.py"):
        assert word in str(error.value)


def test_rows_are_not_read_as_a_dense_tensor() -> None:
    scope = filled(a=ow.IndexedSlices(ow.ones([1, 2]), ow.constant([1]), ow.constant([3, 2])), b=[1.0])
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"Add.*'x' takes a dense tensor(.|\n)*'a'"):
        add().run(scope, CPU)


def test_rows_go_where_the_operator_takes_them() -> None:
    def rows(*indices: int) -> Any:
        return ow.IndexedSlices(ow.ones([len(indices), 2]), ow.constant(indices), ow.constant([3, 2]))

    scope = filled(a=rows(2, 0), b=rows(2), d=np.full((3, 2), 10.0, np.float32))
    result = op("AddN").on({"inputs": ["a", "b"]}, {"sum": "c"}).run(scope, CPU)
    assert (result.branch, scope.var("c").kind) == ("host", "rows")
    assert scope.var("c").value.to_dense().numpy().tolist() == [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]
    scope.var("d").get_tensor().set(scope.var("d").value, SIM)
    op("AddN").on({"inputs": ["a", "d"]}, {"sum": "e"}).run(scope, SIM)
    assert scope.var("e").value.numpy().tolist() == [[11.0, 11.0], [10.0, 10.0], [11.0, 11.0]]


def test_a_list_fills_a_repeated_input_and_empty_members_of_concat_are_left_out() -> None:
    scope = filled(parts=[np.float32([1]), np.float32([2, 3])], more=np.float32([4]))
    scope.var("empty")
    concat = op("Concat").on({"values": ["parts", "empty", "more"]}, {"output": "y"}, axis=0)
    for place in (CPU, SIM):
        concat.run(scope, place)
        assert scope.var("y").value.numpy().tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"Concat.*'values'(.|\n)*no variable 'typo'"):
        op("Concat").on({"values": ["parts", "typo"]}, {"output": "y"}, axis=0).run(scope, CPU)
    pack = op("Pack").on({"values": ["more", "empty"]}, {"output": "y"}, axis=0)
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"Pack.*'values'(.|\n)*'empty'"):
        pack.run(scope, CPU)  # positions count there


def test_state_and_random_numbers_are_the_hosts_wherever_they_run() -> None:
    v = ow.Variable([1.0, 2.0])
    scope = filled(v=v, one=np.float32([1, 1]))
    for place in (CPU, SIM):
        op("AssignAddVariable").on({"handle": "v", "value": "one"}, {}).run(scope, place)
        result = op("ReadVariable").on({"handle": "v"}, {"value": "r"}, dtype=v.dtype, shape=v.shape).run(scope, place)
    assert scope.var("r").value.numpy().tolist() == v.numpy().tolist() == [3.0, 4.0]
    assert (result.branch, result.place) == ("host", CPU)


def test_errors_have_the_operator_and_the_line_where_the_instance_was_made() -> None:
    scope = filled(a=np.ones((2, 3)), b=np.ones((4, 5)))
    instance = add()
    line = instance.at.rpartition(":")[2]
    with pytest.raises(ow.errors.InvalidArgumentError) as error:
        instance.run(scope, CPU)
    assert error.value.op == "Add"
    assert f"test_execution.py:{line}" in str(error.value)

    def odd(op: Any, x: Any) -> Any:
        raise KeyError("of its own")

    with pytest.raises(KeyError) as other:
        fresh(compute=odd).on({"x": "a"}, {"y": "b"}).run(scope, CPU)
    assert isinstance(other.value, ow.errors.OpError)
    assert re.search(r"^Twice \(.*test_execution.py:\d+\): compute raised KeyError: 'of its own'", str(other.value))


def test_a_failed_run_leaves_scope_and_place_usable() -> None:
    scope = filled(a=[1.0, 2.0], b=[1.0, 2.0, 3.0], c=[7.0])
    for place in (CPU, SIM):
        with pytest.raises(ow.errors.InvalidArgumentError, match="Add"):
            add().run(scope, place)
        assert scope.kids == ()  # temporaries are gone
        assert scope.var("c").value.numpy().tolist() == [7.0]
        op("Add").on({"x": "a", "y": "a"}, {"z": "d"}).run(scope, place)
        assert scope.var("d").value.numpy().tolist() == [2.0, 4.0]


def test_inference_runs_again_on_the_shapes_there_are() -> None:
    twice = fresh(compute=lambda op, x: x[:1])
    with pytest.raises(ow.errors.DefinitionError, match="another shape than was inferred"):
        twice.on({"x": "a"}, {"y": "b"}).run(filled(a=[1.0, 2.0]), CPU)


def test_a_list_of_outputs_has_as_many_names() -> None:
    split = op("Split")
    scope = filled(**{split.input_names[0]: np.float32([1, 2, 3, 4])})
    ins = {n: n for n in split.input_names if n in scope}
    attrs = {k: v for k, v in {"num": 2, "num_split": 2, "axis": 0}.items() if k in split.attr_defs}
    name = split.output_names[0]
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"Split.*gives 2 tensors(.|\n)*3 names"):
        split.on(ins, {name: ["p", "q", "r"]}, **attrs).run(scope, CPU)
    split.on(ins, {name: ["p", "q"]}, **attrs).run(scope, CPU)
    assert scope.var("q").value.numpy().tolist() == [3.0, 4.0]


# ---- switches -------------------------------------------------------------------------------------------------------


def test_an_input_without_readers_is_reported() -> None:
    @ow.operator
    class First:
        """.. math:: z = x"""

        x = ow.Input()
        y = ow.Input()
        z = ow.Output(like="x")

        def compute(op, x: Any, y: Any) -> Any:
            return np.zeros(y.shape, x.dtype) + x

    scope = filled(a=[1.0], b=[2.0])
    instance = First.on({"x": "a", "y": "b"}, {"z": "c"})
    instance.run(scope, CPU)
    with ow.flags(check_unused_inputs=True):
        with pytest.raises(ow.errors.PermissionDeniedError, match=r"First.*'y' is never read"):
            instance.run(scope, CPU)
        add().run(scope, CPU)
        for name in ("Shape", "Rank"):
            source, result = op(name).input_names[0], op(name).output_names[0]
            op(name).on({source: "a"}, {result: "s"}).run(scope, CPU)  # declared: they read the shape alone


def test_an_input_declared_by_shape_that_is_read_is_reported() -> None:
    sly = fresh(
        shape_only=("x",),
        infer=lambda op: ow.TensorSpec(op.x.shape, ow.float32),
        y=ow.Output(dtype=ow.float32),
        compute=lambda op, x: x + np.float32(1),
    )
    says = "'x' is in shape_only"
    with ow.flags(check_unused_inputs=True), pytest.raises(ow.errors.PermissionDeniedError, match=says):
        sly.on({"x": "a"}, {"y": "b"}).run(filled(a=[1.0]), CPU)


def test_check_numerics_names_the_operator_and_floats_alone_count() -> None:
    scope = filled(a=np.float32([1.0, 0.0]), i=np.int32([2**31 - 1]))
    log = op("Log").on({op("Log").input_names[0]: "a"}, {op("Log").output_names[0]: "y"})
    log.run(scope, CPU)
    with ow.flags(check_numerics=True):
        for place in (CPU, SIM):
            says = r"Log(.|\n)*test_execution.py(.|\n)*output 0(.|\n)*Inf"
            with pytest.raises(ow.errors.InvalidArgumentError, match=says):
                log.run(scope, place)
        op("Add").on({"x": "i", "y": "i"}, {"z": "j"}).run(scope, CPU)


def test_benchmark_waits_for_the_device() -> None:
    device, scope = ow.DeviceContextPool.instance().get(SIM), filled(a=[1.0], b=[2.0])
    waits: list[int] = []
    usual = type(device).wait
    try:
        type(device).wait = lambda self: (waits.append(1), usual(self))[1]  # type: ignore[assignment, method-assign]
        add().run(scope, SIM)
        before = len(waits)
        with ow.flags(benchmark=True):
            add().run(scope, SIM)
    finally:
        type(device).wait = usual  # type: ignore[method-assign]
    assert (before, len(waits)) == (0, 1)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [([1.0, 2.0], [1.0, 2.0]), ((1, 2), [1.0, 2.0]), (ow.constant([1.0, 2.0]), [1.0, 2.0])],
    ids=["list", "tuple", "tensor"],
)
def test_what_compute_may_give_is_the_same_eagerly_and_on_scopes(given: Any, wanted: list[float]) -> None:
    give = fresh(compute=lambda op, x: given)
    scope = filled(a=np.float32([5, 6]))
    for _ in range(2):
        give.on({"x": "a"}, {"y": "b"}).run(scope)
        assert scope.find_var("b").value.numpy().tolist() == give(np.float32([5, 6])).numpy().tolist() == wanted


@pytest.mark.parametrize("given", [None, "text", object()], ids=["None", "text", "object"])
def test_what_is_no_array_is_an_error_that_reports_it(given: Any) -> None:
    give = fresh(compute=lambda op, x: given)
    with pytest.raises(ow.errors.DefinitionError, match=r"Twice .*compute gave no (?s:.)*wanted +f32.2."):
        give.on({"x": "a"}, {"y": "b"}).run(filled(a=np.float32([5, 6])))


@pytest.mark.parametrize("given", [None, 3, "text", [3]])
def test_an_infer_rule_that_returns_no_spec(given: Any) -> None:
    wrong = fresh(infer=lambda op: given)
    with pytest.raises(ow.errors.DefinitionError, match=r"Twice.*infer gave something that is not a spec"):
        wrong.on({"x": "a"}, {"y": "b"}).run(filled(a=np.float32([5, 6])))
    with pytest.raises(ow.errors.DefinitionError, match="infer gave something that is not a spec"):
        wrong(np.float32([5, 6]))
