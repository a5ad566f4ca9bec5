"""Programs and files made for an old version of an operator, under a new one that grew as it may.

Lives here: operators in two versions, their saved models, `.tflite` files, graph texts and calls.  Not here: which
changes are allowed (test_compatibility.py), files of earlier releases (test_old_models.py).
The expected numbers follow from the operators' formulas, in NumPy.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.graph import parse, text
from opwright.lite import Interpreter, TFLiteConverter
from opwright.ops import registry
from opwright.ops.specification import document

pytestmark = pytest.mark.ours
X = np.float32([[-1.5, 0.25, 2.0], [4.0, -0.5, 1.0]])


def first() -> Any:
    """Version 1: y = min(x, limit) * times."""

    @ow.operator(name="CompatClip")
    class CompatClip:
        """Clip and scale.

        .. math:: y = \\min(x, limit) times
        """

        x = ow.Input(ow.floating)
        y = ow.Output(like="x")
        limit = ow.Attr(float, check=ow.attr.between(0.0, 10.0))
        times = ow.Attr(float, default=2.0)

        def compute(op, x):
            return np.minimum(x, x.dtype.type(op.limit)) * x.dtype.type(op.times)

        def gradient(op, dy):
            return dy * op.times * ow.cast(op.x < op.limit, dy.dtype)

    return CompatClip


def second() -> Any:
    """Version 2 has a floor, a bias that may be given, and keeps where it clipped; the limit may be larger."""

    @ow.operator(name="CompatClip", version=2)
    class CompatClip:
        """Clip on both sides and scale.

        .. math:: y = \\max(\\min(x, limit), floor) times + bias
        """

        x = ow.Input(ow.floating)
        bias = ow.Input(ow.floating, like="x", optional=True, since=2)
        y = ow.Output(like="x")
        inside = ow.Output(dtype="bool", intermediate=True, since=2)
        limit = ow.Attr(float, check=ow.attr.between(0.0, 20.0))
        times = ow.Attr(float, default=2.0)
        floor = ow.Attr(float, default=-np.inf, since=2)

        def infer(op):
            return op.x.spec, ow.TensorSpec(op.x.shape, "bool")

        def compute(op, x, bias):
            inside = (x < op.limit) & (x > op.floor)
            y = np.clip(x, op.floor, op.limit).astype(x.dtype) * x.dtype.type(op.times)
            return (y if bias is None else y + bias), inside

        def gradient(op, dy, _):
            return dy * op.times * ow.cast(op.inside, dy.dtype), None

    return CompatClip


def wanted(x: np.ndarray, limit: float, times: float) -> np.ndarray:
    return np.minimum(x.astype(np.float64), limit) * times


class Model(ow.Module):
    """The operator by itself, inside control flow, and with what follows it."""

    def __init__(self, op: Any) -> None:
        super().__init__()
        self.op, self.w = op, ow.Variable(np.float32(3.0))

    @ow.function(input_signature=[ow.TensorSpec([None, 3], ow.float32)])
    def run(self, x: Any) -> Any:
        return self.op(x, 1.0) + self.op(x * self.w, 2.0, 0.5)

    @ow.function(input_signature=[ow.TensorSpec([None, 3], ow.float32), ow.TensorSpec([], ow.bool)])
    def branch(self, x: Any, yes: Any) -> Any:
        return ow.cond(yes, lambda: self.op(x, 1.0), lambda: x)


def ran(x: np.ndarray) -> np.ndarray:
    return wanted(x, 1.0, 2.0) + wanted(x * 3.0, 2.0, 0.5)


def test_the_change_is_allowed() -> None:
    old, new = (ow.ops.spec([make()]) for make in (first, second))
    changes = ow.ops.compatibility(old, new)
    assert {(c.part, c.name, c.rule) for c in changes} == {
        ("operator", "", "version"),
        ("input", "bias", "added"),
        ("output", "inside", "added"),
        ("attribute", "floor", "added"),
        ("attribute", "limit", "condition"),
    }
    assert all(c.allowed for c in changes)
    assert not all(c.allowed for c in ow.ops.compatibility(new, old))


@pytest.mark.parametrize("make", [first, second])
def test_calls_by_position_mean_the_same(make: Any) -> None:
    op = make()
    np.testing.assert_allclose(op(X, 1.0), wanted(X, 1.0, 2.0), rtol=1e-6)
    np.testing.assert_allclose(op(X, 1.0, 0.5), wanted(X, 1.0, 0.5), rtol=1e-6)
    np.testing.assert_allclose(op(X, limit=1.0, times=3.0), wanted(X, 1.0, 3.0), rtol=1e-6)


def test_what_is_new_comes_last_by_position() -> None:
    op = second()
    assert op.profile.positions == ("x", "limit", "times", "bias", "floor")
    bias = np.float32([1, 2, 3])
    np.testing.assert_allclose(op(X, 1.0, 1.0, bias, 0.0), np.clip(X, 0, 1) + bias, rtol=1e-6)
    function = op.as_function("compat_clip")
    np.testing.assert_allclose(function(X, 1.0, 1.0, bias, 0.0), np.clip(X, 0, 1) + bias, rtol=1e-6)


@pytest.mark.parametrize("make", [first, second])
def test_a_saved_model_runs_under_both(make: Any, tmp_path: Any) -> None:
    ow.saved_model.save(Model(first()), str(tmp_path))
    make()
    loaded = ow.saved_model.load(str(tmp_path))
    np.testing.assert_allclose(loaded.run(X), ran(X), rtol=1e-6)
    np.testing.assert_allclose(loaded.branch(X, True), wanted(X, 1.0, 2.0), rtol=1e-6)
    np.testing.assert_array_equal(loaded.branch(X, False), X)


def test_a_saved_model_is_differentiated_and_saved_again(tmp_path: Any) -> None:
    ow.saved_model.save(Model(first()), str(tmp_path / "1"))
    second()
    loaded = ow.saved_model.load(str(tmp_path / "1"))
    x = ow.constant(X)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = loaded.run(x)
    np.testing.assert_allclose(tape.gradient(y, x), 2.0 * (X < 1) + 1.5 * (X * 3 < 2), rtol=1e-6)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = loaded.branch(x, ow.constant(True))
    np.testing.assert_allclose(tape.gradient(y, x), 2.0 * (X < 1), rtol=1e-6)
    ow.saved_model.save(loaded, str(tmp_path / "2"))
    again = ow.saved_model.load(str(tmp_path / "2"))
    np.testing.assert_allclose(again.run(X), ran(X), rtol=1e-6)
    manifest = json.loads((tmp_path / "2" / "saved_model.json").read_text())
    assert manifest["operators"]["CompatClip"] == {"version": 2, "user": True}


@pytest.mark.parametrize("make", [first, second])
@pytest.mark.parametrize("place", ["code", "options"])
def test_a_tflite_file_runs_under_both(make: Any, place: str) -> None:
    model = Model(first())
    converter = TFLiteConverter.from_concrete_functions([model.run.get_concrete_function()], model)
    converter.allow_custom_ops, converter.custom_version_in = True, place
    content = converter.convert()
    interpreter = Interpreter(model_content=content, custom_ops=[make()])
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], X.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    interpreter.invoke()
    actual = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(actual, ran(X), rtol=1e-6)


def test_a_graph_text_of_the_old_one_is_read_by_the_new_one() -> None:
    first()
    source = "graph g(x: f32[2,3]) {\n  y: f32[2,3] = CompatClip(x, limit=1.0, times=2.0)\n  return y\n}"
    assert text(parse(source, registry.get)) == source
    op = second()
    (node,) = parse(source, registry.get).nodes
    assert node.op is op
    assert (node.attrs["limit"], node.attrs["floor"], node.inputs[1:]) == (1.0, -np.inf, (None,))


# ---- lists that grew ------------------------------------------------------------------------------------------------


def many(version: int) -> Any:
    """y = sum of xs; version 2 may add a bias after the list."""
    body: dict[str, Any] = {
        "__doc__": "Sum.\n\n.. math:: y = \\sum xs",
        "__module__": __name__,
        "xs": ow.Input(ow.floating, repeated=True),
        "y": ow.Output(),
        "infer": lambda op: op.xs[0].spec,
        "compute": (lambda op, xs: sum(xs)) if version == 1 else lambda op, xs, b: sum(xs) + (0 if b is None else b),
    }
    if version == 2:
        body["bias"] = ow.Input(ow.floating, like="xs", optional=True, since=2)
    return ow.operator(name="CompatSum", version=version)(type("CompatSum", (), body))


@pytest.mark.parametrize("place", ["code", "options"])
@pytest.mark.parametrize(("written", "bias", "wanted"), [(1, False, 6.0), (2, False, 6.0), (2, True, 16.0)])
def test_a_list_in_a_tflite_file_of_either_version(place: str, written: int, bias: bool, wanted: float) -> None:
    op = many(written)
    more = {"bias": np.float32([10.0])} if bias else {}
    function = ow.function(lambda a, b, c: op([a, b, c], **more), [ow.TensorSpec([1], ow.float32)] * 3)
    converter = TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    converter.allow_custom_ops, converter.custom_version_in = True, place
    interpreter = Interpreter(model_content=converter.convert(), custom_ops=[many(2)])
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), (1.0, 2.0, 3.0)):
        interpreter.set_tensor(detail["index"], np.float32([value]))
    interpreter.invoke()
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist() == [wanted]


# ---- what cannot be, and its words ----------------------------------------------------------------------------------


def saved(folder: Any, make: Any = first) -> Any:
    ow.saved_model.save(Model(make()), str(folder))
    return folder


def test_an_operator_that_is_gone(tmp_path: Any) -> None:
    saved(tmp_path)
    del registry._users["CompatClip"]
    with pytest.raises(ow.errors.NotFoundError, match=r"not defined here: CompatClip(.|\n)*import the modules"):
        ow.saved_model.load(str(tmp_path))


def test_an_operator_of_the_catalogue_that_is_gone(tmp_path: Any) -> None:
    path = saved(tmp_path) / "saved_model.json"
    path.write_text(path.read_text().replace('"Mul"', '"Mull"'))
    with pytest.raises(ow.errors.NotFoundError, match=r"does not have: Mull(.|\n)*found(.|\n)*which wrote it"):
        ow.saved_model.load(str(tmp_path))


def test_a_newer_file_on_an_older_definition(tmp_path: Any) -> None:
    saved(tmp_path, second)
    first()
    with pytest.raises(ow.errors.UnimplementedError, match=r"CompatClip 2 \(here 1\)"):
        ow.saved_model.load(str(tmp_path))


@pytest.mark.parametrize("place", ["code", "options"])
def test_a_newer_tflite_file_on_an_older_definition(place: str) -> None:
    """Where nothing new is used the older definition reads it; else it says what it lacks."""
    for attrs in ({}, {"floor": -1.0}):
        op = second()
        function = ow.function(lambda x, op=op, attrs=attrs: op(x, 1.0, **attrs))
        concrete = function.get_concrete_function(ow.TensorSpec([2, 3], ow.float32))
        converter = TFLiteConverter.from_concrete_functions([concrete])
        converter.allow_custom_ops, converter.custom_version_in = True, place
        interpreter = Interpreter(model_content=converter.convert(), custom_ops=[first()])
        if attrs:
            with pytest.raises(ow.errors.OpError, match=r"CompatClip(.|\n)*version 2(.|\n)*version 1(.|\n)*newer def"):
                interpreter.allocate_tensors()
            continue
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
        interpreter.invoke()
        actual = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_allclose(actual, wanted(X, 1.0, 2.0), rtol=1e-6)


def test_an_attribute_that_the_same_version_does_not_have(tmp_path: Any) -> None:
    """Somebody changed an operator and left its version as it was."""
    saved(tmp_path)
    body = {"x": ow.Input(ow.floating), "y": ow.Output(like="x"), "limit": ow.Attr(float), "compute": lambda op, x: x}
    ow.operator(name="CompatClip")(type("CompatClip", (), body))
    with pytest.raises(ow.errors.DataLossError, match=r"argument 'times'(.|\n)*version 1(.|\n)*here is version 1"):
        ow.saved_model.load(str(tmp_path))


def test_an_input_that_the_new_one_requires(tmp_path: Any) -> None:
    """A change that is not allowed: the specification says so, and loading fails with a name."""
    saved(tmp_path)
    body = {
        "x": ow.Input(ow.floating),
        "b": ow.Input(ow.floating),
        "y": ow.Output(like="x"),
        "limit": ow.Attr(float),
        "times": ow.Attr(float, default=2.0),
        "compute": lambda op, x, b: x,
    }
    broken = ow.operator(name="CompatClip")(type("CompatClip", (), body))
    changes = ow.ops.compatibility(ow.ops.spec([first()]), ow.ops.spec([broken]))
    assert [c.name for c in changes if not c.allowed and c.part == "input"] == ["b"]
    ow.operator(name="CompatClip")(type("CompatClip", (), body))
    with pytest.raises(ow.errors.OpError, match="CompatClip"):
        ow.saved_model.load(str(tmp_path))


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (lambda: ow.Input(since=2), "optional"),
        (lambda: ow.Output(like="x", since=2), "intermediate"),
        (lambda: ow.Attr(int, since=2), "default"),
    ],
)
def test_later_results_must_be_unread(part: Any, words: str) -> None:
    body = {"x": ow.Input(ow.floating), "y": ow.Output(like="x"), "newer": part()}
    with pytest.raises(ValueError, match=f"CompatWrong: .*newer has since > 1, so it .*{words}"):
        ow.operator(name="CompatWrong", version=2)(type("CompatWrong", (), body))


def test_newer_parts_stand_last() -> None:
    body = {"a": ow.Input(optional=True, since=2), "x": ow.Input(ow.floating), "y": ow.Output(like="x")}
    with pytest.raises(ValueError, match=r"x \(since=1\) stands after a part with since=2"):
        ow.operator(name="CompatWrong", version=2)(type("CompatWrong", (), body))
    body = {"x": ow.Input(ow.floating), "a": ow.Input(optional=True, since=2), "y": ow.Output(like="x")}
    with pytest.raises(ValueError, match="version 1 is below the `since` of a"):
        ow.operator(name="CompatWrong")(type("CompatWrong", (), body))


def test_a_document_of_users_operators() -> None:
    old = json.loads(json.dumps(document(ow.ops.spec([first()]))))
    assert all(c.allowed for c in ow.ops.compatibility(old, document(ow.ops.spec([second()]))))
