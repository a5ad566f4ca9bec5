"""The choice of a kernel: the key asked for, each branch of what serves it, what is done to inputs; and `explain`."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import opwright as ow
from each_row import each_row
from opwright.core import dtypes
from opwright.core.specs import TensorSpec
from opwright.ops import registry
from opwright.ops.kernel_operands import KernelOperand
from opwright.ops.kernel_selection import expected_kernel_key
from opwright.ops.kernels import KernelKey, libraries, serving

CPU, SIM, GPU = ow.CPUPlace(), ow.SimulatedPlace(0), ow.CUDAPlace(0)
explain = ow.ops.explain


def fresh(**settings: Any) -> Any:
    def compute(op: Any, x: Any) -> Any:
        return x * 2

    body = {"x": ow.Input(dtypes=(ow.float32, ow.float64)), "y": ow.Output(like="x"), "compute": compute, **settings}
    return ow.operator(type("Twice", (), {"__doc__": ".. math:: y = 2 x", **body}))


def held(op: str, slot: str, spec: TensorSpec | None, name: str = "v", **how: Any) -> KernelOperand:
    return KernelOperand(op, slot, name, spec, **how)


# ---- keys -----------------------------------------------------------------------------------------------------------


def test_keys_forget_the_number_of_the_device_and_take_what_stands_for_their_parts() -> None:
    one, two = ow.KernelKey(ow.CUDAPlace(0), "float32"), ow.KernelKey(ow.CUDAPlace(1), ow.float32)
    assert one == two == ow.KernelKey("gpu", np.float32)
    assert hash(one) == hash(two)
    assert (
        len(
            {
                ow.KernelKey(*k)
                for k in itertools.product(
                    ("cpu", "gpu"), (ow.float32, ow.float64, None), ("any", "NHWC"), ("any", "cudnn")
                )
            }
        )
        == 24
    )
    for bad in ({"layout": "NC"}, {"library": "magic"}, {"place": ""}):
        with pytest.raises(ValueError, match="KernelKey"):
            ow.KernelKey(**{"place": "cpu", **bad})


def test_libraries_of_gpus_are_no_cpus() -> None:
    twice = fresh()
    with pytest.raises(ValueError, match=r"Twice: cublas.*GPU"):
        ow.ops.register_kernel(twice, library="cublas")
    ow.ops.register_kernel(twice, place=GPU, library="cublas")(lambda op, x: x)
    with pytest.raises(ow.errors.AlreadyExistsError, match=r"Twice(.|\n)*cublas"):
        ow.ops.register_kernel(twice, place=ow.CUDAPlace(3), library="cublas")(lambda op, x: x)
    with pytest.raises(ValueError, match="control flow"):
        ow.ops.register_kernel(ow.ops.get("If"))


def test_kernels_serve_by_library_then_dtype_then_layout() -> None:
    twice = fresh()
    for library in ("foreign", "compiled"):
        for dtype in (ow.float32, None):
            for layout in ("NCHW", "any"):
                ow.ops.register_kernel(twice, dtype=dtype, layout=layout, library=library)(lambda op, x: x)
    result = [k for k, _ in serving(twice, ow.KernelKey(CPU, ow.float32, "NCHW"))]
    assert [(k.library, k.dtype, k.layout) for k in result] == [
        (library, dtype, layout)
        for library in ("foreign", "compiled")
        for dtype in (ow.float32, None)
        for layout in ("NCHW", "any")
    ]
    assert {k.layout for k, _ in serving(twice, ow.KernelKey(CPU, ow.float32, "NHWC"))} == {"any"}
    assert {k.dtype for k, _ in serving(twice, ow.KernelKey(CPU, ow.float64))} == {None}
    assert serving(twice, ow.KernelKey(GPU, ow.float32)) == ()
    asked = serving(twice, ow.KernelKey(CPU, ow.float32, "any", "compiled"))
    assert [k.library for k, _ in asked] == ["compiled"] * 2 + ["foreign"] * 2  # a library named comes first
    assert libraries()[-1] == "reference"


# ---- the key asked for ----------------------------------------------------------------------------------------------


def test_by_default_every_input_is_looked_at() -> None:
    f32 = TensorSpec([2], ow.float32)
    assert explain("Add", {"x": f32, "y": f32}).requested == ow.KernelKey(CPU, ow.float32)
    with pytest.raises(ow.errors.InvalidArgumentError) as error:
        explain("Add", [held("Add", "x", f32, "a"), held("Add", "y", None, "b")])
    for word in ("Add", "input 'y'", "'b'", "not initialized"):
        assert word in str(error.value)
    with pytest.raises(ow.errors.InvalidArgumentError) as error:
        explain("Add", [held("Add", "x", f32, "a"), held("Add", "y", TensorSpec([2], ow.float64), "b")])
    for word in ("Add", "x 'a' float32", "y 'b' float64"):
        assert word in str(error.value)
    with pytest.raises(ow.errors.SignatureError, match=r"Add: input 'y' is missing"):
        explain("Add", [f32])
    with pytest.raises(ow.errors.SignatureError, match=r"Add: there is no input 'X'"):
        explain("Add", {"X": f32})


def test_nothing_found_is_an_error() -> None:
    @ow.operator
    class Nothing:
        """.. math:: y = 0"""

        x = ow.Input(optional=True)
        y = ow.Output()

        def infer(op) -> Any:
            return TensorSpec([], ow.float32)

    with pytest.raises(ow.errors.NotFoundError, match=r"Nothing(.|\n)*expected_kernel_key"):
        explain(Nothing, [None])


def test_optional_inputs_may_be_absent_or_empty_and_lists_are_checked_whole() -> None:
    f32, i32 = TensorSpec([2, 2], ow.float32), TensorSpec([2, 2], ow.int32)
    assert explain("Pad", [f32, i32]).requested.dtype is ow.float32
    empty = held("Pad", "constant_values", None)
    assert explain("Pad", [f32, i32, empty]).requested.dtype is ow.float32
    with pytest.raises(ow.errors.InvalidArgumentError, match="Pack"):
        explain("Pack", [[f32, held("Pack", "values", None)]], axis=0)
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"Pack(.|\n)*float32(.|\n)*int32"):
        explain("Pack", [[f32, i32]], axis=0)
    some = [held("Concat", "values", None), f32]
    assert explain("Concat", [some], axis=0).requested.dtype is ow.float32
    with pytest.raises(ow.errors.NotFoundError, match="Concat"):
        explain("Concat", [[held("Concat", "values", None)]], axis=0)


def test_without_inputs_the_dtype_is_an_attributes() -> None:
    assert explain("Const", value=np.float64([1])).requested.dtype is ow.float64
    assert explain("Undefined", dtype=ow.int8, shape=[2]).requested.dtype is ow.int8
    assert (
        explain(
            "Shape",
            [held("Shape", ow.ops.get("Shape").input_names[0], TensorSpec([2]), by_shape=True)],
            out_type=ow.int64,
        ).requested.dtype
        is ow.int64
    )


def test_a_definition_may_ask_otherwise_with_the_same_checks() -> None:
    def rule(op: Any, place: Any) -> Any:
        return ow.KernelKey(place, op.dtype_of("table"), "NHWC", "foreign")

    lookup = ow.operator(
        type(
            "Lookup",
            (),
            {
                "__doc__": ".. math:: y = table_{ids}",
                "ids": ow.Input(ow.integer),
                "table": ow.Input(ow.floating),
                "y": ow.Output(like="table"),
                "compute": lambda op, ids, table: table[ids],
                "expected_kernel_key": rule,
                "infer": lambda op: TensorSpec(None, op.table.dtype),
            },
        )
    )
    ids, table = TensorSpec([3], ow.int64), TensorSpec([5, 2], ow.float64)
    assert explain(lookup, [ids, table]).requested == ow.KernelKey(CPU, ow.float64, "NHWC", "foreign")
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"Lookup: input 'table' is not initialized"):
        explain(lookup, [ids, held("Lookup", "table", None)])
    with pytest.raises(ow.errors.DefinitionError, match="gave no key"):
        explain(fresh(expected_kernel_key=lambda op, place: "cpu"), [table])
    with pytest.raises(ow.errors.DefinitionError, match="'z', which is not an input"):
        explain(fresh(expected_kernel_key=lambda op, place: op.dtype_of("z")), [table])


def test_a_rule_may_not_look_into_an_input_of_which_the_shape_alone_is_read() -> None:
    y = ow.Output(dtype=ow.float32)
    settings = {"shape_only": ("x",), "infer": lambda op: TensorSpec(op.x.shape, ow.float32), "y": y}
    with pytest.raises(ow.errors.DefinitionError, match=r"may not look into input 'x'"):
        explain(
            fresh(expected_kernel_key=lambda op, place: ow.KernelKey(place, op.dtype_of("x")), **settings),
            [ow.TensorSpec([2])],
        )
    assert explain(fresh(**settings), [ow.TensorSpec([2], ow.float64)]).requested.dtype is ow.float32


def dtype_taken(declared: Any) -> Any:
    return next((d for d in (dtypes.float32, dtypes.int32) if d in declared.dtypes), declared.dtypes[0])


@each_row("name", sorted(registry.catalogue()))
def test_every_operator_of_the_catalogue_has_a_key(name: str) -> None:
    """With one tensor in each required input the key has a dtype; an empty variable in any of them is named."""
    op = registry.get(name)
    if op.control:
        assert not op.kernels
        return
    call = op._call_class()
    call.operator = op
    for attr, declared in op.attr_defs.items():
        result = {"DType": dtypes.float32, "ndarray": np.zeros(2, np.float32)}.get(declared.type_name())
        setattr(call, attr, result if declared.required else declared.default)
    leaders = {i.name: dtype_taken(i) for i in op.inputs}
    operands: list[Any] = []
    for i in op.inputs:
        dtype = leaders[i.like] if i.like and leaders[i.like] in i.dtypes else leaders[i.name]
        one = held(name, i.name, TensorSpec([2], dtype), f"v_{i.name}", by_shape=i.name in op.shape_only)
        operands.append(None if i.optional else (one, one) if i.repeated else one)
    key = expected_kernel_key(op, call, operands, CPU)
    assert key.place == "cpu"
    assert key.dtype is not None
    for at, i in enumerate(op.inputs):
        if i.optional or i.name in op.shape_only:
            continue
        empty = held(name, i.name, None, "nobody")
        broken = [*operands[:at], (empty, empty) if i.repeated else empty, *operands[at + 1 :]]
        with pytest.raises((ow.errors.InvalidArgumentError, ow.errors.NotFoundError)) as error:
            expected_kernel_key(op, call, broken, CPU)
        assert name in str(error.value)
        assert i.name in str(error.value)


def test_whatever_takes_float32_takes_float64() -> None:
    one_only = [
        f"{op.name}.{i.name}"
        for op in registry.catalogue().values()
        for i in op.inputs
        if (dtypes.float32 in i.dtypes) != (dtypes.float64 in i.dtypes)
    ]
    assert one_only == []


# ---- each branch ----------------------------------------------------------------------------------------------------

X = np.float32([1.0, 2.0])


def run(op: Any, place: Any, value: Any = X, **flags: Any) -> Any:
    scope = ow.Scope()
    scope.var("a").set(value)
    with ow.flags(**flags):
        record = op.on({"x": "a"}, {"y": "b"}).run(scope, place)
    assert scope.var("b").value.numpy().tolist() == (2 * np.asarray(value)).tolist()
    return record


def refusing() -> Any:
    """An operator whose reference does not run on arrays of a device."""
    return fresh(compute=lambda op, x: np.asarray(x) * 2)


@pytest.mark.parametrize("place", [CPU, SIM], ids=str)
def test_branch_exact(place: Any) -> None:
    twice = fresh()
    ow.ops.register_kernel(twice, place=place, dtype=ow.float32)(lambda op, x: x + x)
    for result in (explain(twice, [X], place), run(twice, place)):
        assert (result.branch, result.chosen) == ("kernel", ow.KernelKey(place, ow.float32, "any", "foreign"))
        assert "just this key" in result.reason
    assert explain(twice, [np.float64([1])], place).branch == "reference"  # no dtype stands in for another


def test_branch_any_dtype_any_layout_and_another_library() -> None:
    twice = fresh(expected_kernel_key=lambda op, place: ow.KernelKey(place, op.dtype_of("x"), "NHWC", "cudnn"))
    ow.ops.register_kernel(twice, place=SIM)(lambda op, x: x + x)
    result = explain(twice, [X], SIM)
    assert (result.requested.library, result.chosen.library) == ("cudnn", "foreign")
    assert "any dtype and any layout" in result.reason
    assert "none of cudnn" in result.reason


def test_branch_declined() -> None:
    twice = fresh()
    ow.ops.register_kernel(twice)(lambda op, x: NotImplemented if x.size > 1 else x + x)
    assert run(twice, CPU, np.float32([1])).branch == "kernel"
    assert run(twice, CPU).branch == "reference"
    assert [c.branch for c in explain(twice, [X]).otherwise] == ["reference"]


def test_branch_reference_on_the_device() -> None:
    for result in (explain(fresh(), [X], SIM), run(fresh(), SIM)):
        assert (result.branch, result.place, result.chosen.library) == ("reference", SIM, "reference")
    assert "NumPy function," in explain("Add", [X, X], SIM).reason


def test_branch_host() -> None:
    result = explain("ReadVariable", [ow.TensorSpec([], dtypes.resource)], SIM, dtype=ow.float32, shape=[])
    assert (result.branch, result.place) == ("host", CPU)
    assert result.transforms == ()
    assert explain("StringLength", [ow.TensorSpec([2], ow.string)], SIM).branch == "host"
    assert explain("Shape", [ow.TensorSpec([2])], SIM).branch == "host"


def test_branch_fallback_warns_once_and_is_remembered() -> None:
    twice = refusing()
    twice.name = "TwiceOnTheHost"
    with pytest.warns(RuntimeWarning, match=r"TwiceOnTheHost runs on the CPU, not at sim:0.*host.*copied"):
        result = run(twice, SIM)
    assert (result.branch, result.place) == ("fallback", CPU)
    assert result.chosen == ow.KernelKey(CPU, ow.float32, "any", "reference")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(twice, SIM).branch == "fallback"
    result = explain(twice, [X], SIM)
    assert result.branch == "fallback"
    assert "computes on the host" in result.reason
    assert explain(twice, [np.float64([1])], SIM).branch == "reference"  # of another key nothing is known


def test_the_fallback_copies_inputs_visibly() -> None:
    twice, scope = refusing(), ow.Scope()
    scope.var("a").get_tensor().set(X, SIM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = twice.on({"x": "a"}, {"y": "b"}).run(scope, SIM)
    assert [str(t) for t in result.transforms] == ["x 'a': place sim:0 -> cpu:0"]
    assert (scope.var("a").place, scope.var("b").place) == (SIM, CPU)


def test_branch_none() -> None:
    twice = refusing()
    ow.ops.register_kernel(twice, dtype=ow.float32)(lambda op, x: x + x)
    with pytest.raises(ow.errors.NotFoundError) as error:
        run(twice, SIM, kernel_fallback=False)
    for word in (
        "Twice",
        "(sim, float32, any layout, any library)",
        "(cpu, float32, any layout, foreign)",
        "computes on the host",
        "kernel_fallback",
    ):
        assert word in str(error.value)
    with ow.flags(kernel_fallback=False):
        result = explain(twice, [X], SIM)
    assert (result.branch, result.chosen) == ("none", None)
    assert "there is no kernel" in result.reason
    bare = ow.operator(type("Bare", (), {"__doc__": ".. math:: y = x", "x": ow.Input(), "y": ow.Output(like="x")}))
    assert explain(bare, [X]).branch == "none"


def test_a_wrong_call_is_worded_by_the_cpu_and_remembers_nothing() -> None:
    strict = fresh(compute=lambda op, x: x.reshape(3))
    scope = ow.Scope()
    scope.var("a").set(X)
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"Twice.*reshape"):
        strict.on({"x": "a"}, {"y": "b"}).run(scope, SIM)
    assert strict.refused == {}


def test_branch_control() -> None:
    graph = ow.function(lambda x: x).get_concrete_function(ow.TensorSpec([])).graph
    result = explain("If", [], then_branch=graph, else_branch=graph)
    assert (result.branch, result.requested, result.chosen) == ("control", None, None)


def test_an_explanation_prints_key_kernel_reason_transforms_and_what_comes_next() -> None:
    text = str(explain("Add", [X, X], SIM))
    assert text.splitlines() == [
        "Add at SimulatedPlace(0)",
        "  asked for   (sim, float32, any layout, any library)",
        "  chosen      (sim, float32, any layout, reference): "
        "the reference is a NumPy function, which arrays of the device speak",
        "  transform   x: place cpu:0 -> sim:0",
        "  transform   y: place cpu:0 -> sim:0",
        "  otherwise   (cpu, float32, any layout, reference): nothing computes it on sim, the CPU does",
    ]


def test_libraries_of_ones_own_and_onednn_are_tried_in_their_order():
    name = ow.ops.register_library("selection_own", before="compiled")
    assert ow.ops.register_library("selection_own", before="compiled") == name  # once more is not a change
    assert libraries().index(name) + 1 == libraries().index("compiled")

    @ow.operator
    class SelectionLibraries:
        x = ow.Input(ow.floating)
        y = ow.Output(like="x")

        def compute(op, x):
            return x * 1

    ow.ops.register_kernel(SelectionLibraries, library=name)(lambda op, x: x * 2)
    assert float(SelectionLibraries(1.0)) == 2
    assert ow.ops.explain(SelectionLibraries, [ow.TensorSpec([])]).chosen.library == name
    ow.ops.register_kernel(SelectionLibraries, library="mkldnn")(lambda op, x: x * 3)
    assert float(SelectionLibraries(1.0)) == 3
    assert ow.ops.explain(SelectionLibraries, [ow.TensorSpec([])]).chosen == KernelKey("cpu", library="onednn")
    assert KernelKey("cpu", library="mkldnn") == KernelKey("cpu", library="onednn")
    with pytest.raises(ow.errors.AlreadyExistsError, match="has another place in the order"):
        ow.ops.register_library(name, before="cudnn")


@pytest.mark.parametrize(
    ("name", "before", "words"),
    [
        ("two words", "foreign", "identifier"),
        ("any", "foreign", "identifier"),
        ("mkldnn", "foreign", "identifier"),
        (3, "foreign", "identifier"),
        ("selection_new", "nobody", "is not one of cudnn"),
    ],
)
def test_names_that_are_no_libraries(name, before, words):
    with pytest.raises(ValueError, match=words):
        ow.ops.register_library(name, before=before)
    with pytest.raises(ValueError, match=r"ow\.ops\.register_library enters another"):
        KernelKey("cpu", library="selection_unknown")
