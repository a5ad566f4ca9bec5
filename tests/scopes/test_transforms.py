"""Transforms of inputs: when they happen, in which order, and that the original stays as it is."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import opwright as ow

CPU, SIM = ow.CPUPlace(), ow.SimulatedPlace(0)
IMAGE = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)  # NHWC


def op(name: str) -> Any:
    return ow.ops.get(name)


def scope_of(**values: Any) -> ow.Scope:
    scope = ow.Scope()
    for name, value in values.items():
        scope.var(name).set(value)
    return scope


def with_layout(scope: ow.Scope, name: str, array: np.ndarray, layout: str, place: Any = None) -> None:
    tensor = scope.var(name).get_tensor()
    tensor.set(array, place)
    tensor.layout = layout


def test_float32_next_to_float64_is_an_error_not_a_cast() -> None:
    scope = scope_of(a=np.float32([1]), b=np.float64([1]))
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"Add(.|\n)*'a' float32(.|\n)*'b' float64"):
        op("Add").on({"x": "a", "y": "b"}, {"z": "c"}).run(scope, CPU)


def test_a_dtype_is_cast_only_where_the_definition_asks_for_it() -> None:
    def cast_y(op: Any, held: Any, expected: Any) -> Any:
        return ow.KernelKey(expected.place, expected.dtype if held.slot == "y" else held.dtype)

    mixed = ow.operator(
        type(
            "AddCast",
            (),
            {
                "__doc__": ".. math:: z = x + y",
                "x": ow.Input(ow.floating),
                "y": ow.Input(ow.numeric),
                "z": ow.Output(like="x"),
                "compute": lambda op, x, y: x + y,
                "infer": lambda op: op.x.spec,
                "input_kernel_key": cast_y,
            },
        )
    )
    scope = scope_of(a=np.float32([1.5]), b=np.int64([2]))
    actual = mixed.on({"x": "a", "y": "b"}, {"z": "c"}).run(scope, CPU)
    assert [str(t) for t in actual.transforms] == ["y 'b': dtype int64 -> float32"]
    assert scope.var("c").value.numpy().tolist() == [3.5]
    assert scope.var("b").value.dtype is ow.int64


def test_places_differ_by_kind_and_by_number() -> None:
    other, scope = ow.SimulatedPlace(1), scope_of(b=np.float32([2]))
    scope.var("a").get_tensor().set(np.float32([1]), SIM)
    add = op("Add").on({"x": "a", "y": "b"}, {"z": "c"})
    assert [str(t) for t in add.run(scope, SIM).transforms] == ["y 'b': place cpu:0 -> sim:0"]
    assert [str(t) for t in add.run(scope, CPU).transforms] == ["x 'a': place sim:0 -> cpu:0"]
    result = add.run(scope, other)
    assert [str(t) for t in result.transforms] == ["x 'a': place sim:0 -> sim:1", "y 'b': place cpu:0 -> sim:1"]
    assert (scope.var("a").place, scope.var("b").place, scope.var("c").place) == (SIM, CPU, other)
    assert scope.var("c").value.numpy().tolist() == [3.0]
    assert scope.kids == ()


def test_layout_then_dtype_then_place() -> None:
    both = ow.operator(
        type(
            "HalfNchw",
            (),
            {
                "__doc__": ".. math:: y = 2 x",
                "x": ow.Input(ow.numeric),
                "y": ow.Output(),
                "infer": lambda op: ow.TensorSpec(op.x.shape, ow.float64),
                "compute": lambda op, x: x * 2,
                "expected_kernel_key": lambda op, place: ow.KernelKey(place, ow.float64, "NCHW"),
                "input_kernel_key": lambda op, held, expected: expected,
            },
        )
    )
    scope = ow.Scope()
    with_layout(scope, "a", IMAGE, "NHWC")
    actual = both.on({"x": "a"}, {"y": "b"}).run(scope, SIM)
    assert [t.what for t in actual.transforms] == ["layout", "dtype", "place"]
    b = scope.var("b")
    assert (b.place, b.layout, b.dtype) == (SIM, "NCHW", ow.float64)
    np.testing.assert_array_equal(b.value.numpy(), 2.0 * IMAGE.transpose(0, 3, 1, 2))
    a = scope.var("a")
    assert (a.place, a.layout, a.dtype) == (CPU, "NHWC", ow.float32)  # the original is untouched
    np.testing.assert_array_equal(a.value.numpy(), IMAGE)


@pytest.mark.parametrize("place", [CPU, SIM], ids=str)
def test_a_layout_that_is_not_the_operators_is_turned(place: Any) -> None:
    filters, scope = np.ones((2, 2, 5, 6), np.float32), ow.Scope()
    with_layout(scope, "nchw", np.ascontiguousarray(IMAGE.transpose(0, 3, 1, 2)), "NCHW", place)
    with_layout(scope, "nhwc", IMAGE, "NHWC")
    scope.var("f").set(filters)
    conv = op("Conv2D")
    x, f = conv.input_names[:2]
    y = conv.output_names[0]
    attrs = {"strides": [1, 1, 1, 1], "padding": "VALID"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on the simulated device the CPU does it, and says so once
        result = conv.on({x: "nchw", f: "f"}, {y: "y"}, **attrs).run(scope, place)
    assert result.requested.layout == "NHWC"
    assert "layout" in [t.what for t in result.transforms]
    assert [t.slot for t in result.transforms if t.what == "layout"] == [x]  # filters have no layout
    conv.on({x: "nhwc", f: "f"}, {y: "z"}, **attrs).run(scope, CPU)
    np.testing.assert_array_equal(scope.var("y").value.numpy(), scope.var("z").value.numpy())
    assert (scope.var("y").layout, scope.var("z").layout) == ("NHWC", "NHWC")


def test_element_wise_operators_go_by_the_first_layout_and_pass_it_on() -> None:
    scope = scope_of(plain=np.ones((1,), np.float32))
    with_layout(scope, "a", IMAGE, "NHWC")
    with_layout(scope, "b", np.ascontiguousarray(IMAGE.transpose(0, 3, 1, 2)), "NCHW")
    result = op("Add").on({"x": "a", "y": "b"}, {"z": "c"}).run(scope, CPU)
    assert [str(t) for t in result.transforms] == ["y 'b': layout NCHW -> NHWC"]
    np.testing.assert_array_equal(scope.var("c").value.numpy(), IMAGE + IMAGE)
    assert scope.var("c").layout == "NHWC"
    op("Add").on({"x": "plain", "y": "b"}, {"z": "d"}).run(scope, CPU)
    assert scope.var("d").layout == "NCHW"


def test_a_layout_is_turned_of_four_dimensions_only() -> None:
    scope = ow.Scope()
    with_layout(scope, "a", IMAGE, "NHWC")
    with_layout(scope, "b", IMAGE[0], "NCHW")
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"Add(.|\n)*'y' cannot change its layout(.|\n)*four"):
        op("Add").on({"x": "a", "y": "b"}, {"z": "c"}).run(scope, CPU)


def test_lods_are_carried_over() -> None:
    scope = scope_of(b=np.float32([[1.0]]))
    tensor = scope.var("a").get_tensor()
    tensor.set(np.float32([[1], [2], [3]]), SIM)
    tensor.set_lod([[0, 1, 3]])
    op("Add").on({"x": "a", "y": "b"}, {"z": "c"}).run(scope, CPU)
    assert scope.var("c").value.lod() == [[0, 1, 3]]
    assert scope.var("a").get_tensor().lod() == [[0, 1, 3]]


def test_inputs_of_which_the_shape_alone_is_read_are_not_touched() -> None:
    scope = ow.Scope()
    scope.var("a").get_tensor().set(IMAGE, SIM)
    shape = op("Shape")
    result = shape.on({shape.input_names[0]: "a"}, {shape.output_names[0]: "s"}).run(scope, CPU)
    assert result.transforms == ()
    assert scope.var("s").value.numpy().tolist() == [2, 3, 4, 5]


def test_explain_lists_what_a_run_then_does() -> None:
    scope = scope_of(b=np.float32([2]))
    scope.var("a").get_tensor().set(np.float32([1]), SIM)
    add = op("Add").on({"x": "a", "y": "b"}, {"z": "c"})
    for place in (CPU, SIM):
        before = add.explain(scope, place)
        after = add.run(scope, place)
        assert before.transforms == after.transforms
        assert (before.requested, before.chosen, before.reason) == (after.requested, after.chosen, after.reason)


def test_a_switch_prints_transforms(capsys: pytest.CaptureFixture[str]) -> None:
    scope = scope_of(a=np.float32([1]), b=np.float32([2]))
    add = op("Add").on({"x": "a", "y": "b"}, {"z": "c"})
    add.run(scope, SIM)
    assert capsys.readouterr().err == ""
    with ow.flags(log_transforms=True):
        add.run(scope, SIM)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Add (")
    assert lines[0].endswith("at sim:0: x 'a': place cpu:0 -> sim:0")
    assert len(lines) == 2
