"""Test that scopes, eager calls and functions select the same kernel by the same key rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow

SIM = ow.SimulatedPlace(0)
FLOATS = (ow.float32, ow.float64)
Key = ow.KernelKey


def define(**rules: Any) -> Any:
    body = {
        "x": ow.Input(dtypes=FLOATS),
        "y": ow.Output(like="x"),
        "infer": lambda op: op.x.spec,
        "compute": lambda op, x, *more: x * 1,
        "__doc__": ".. math:: y = x",
    } | rules
    return ow.operator(type("OneChoice", (), body))


def times(factor: float) -> Any:
    return lambda op, x, *more: x * factor


def answers(op: Any, inputs: dict[str, Any], **attrs: Any) -> list[float]:
    """The first element of the result: on a scope twice, eagerly, in a function."""
    scope = ow.Scope()
    for name, value in inputs.items():
        scope.var(name).set(value)
    instance = op.on({n: n for n in inputs}, {"y": "y"}, **attrs)
    result = []
    for _ in range(2):
        instance.run(scope)
        result.append(scope.find_var("y").value.numpy())
    tensors = [ow.constant(v) for v in inputs.values()]
    result.append(op(*tensors, **attrs).numpy())
    result.append(ow.function(lambda *given: op(*given, **attrs))(*tensors).numpy())
    return [float(f.ravel()[0]) for f in result]


ONE = np.ones((1, 2, 3, 4), np.float32)


@pytest.mark.parametrize(("library", "wanted"), [("foreign", 2), ("compiled", 3), ("reference", 4), ("any", 2)])
def test_a_library_forced_by_an_attribute(library: str, wanted: float) -> None:
    op = define(
        library=ow.Attr(str, default="any"),
        expected_kernel_key=lambda op, place: Key(place, op.dtype_of("x"), library=op.library),
    )
    for factor, name in ((2, "foreign"), (3, "compiled"), (4, "reference")):
        ow.ops.register_kernel(op, library=name)(times(factor))
    assert answers(op, {"x": ONE}, library=library) == [wanted] * 4


def test_a_dtype_that_is_not_the_first_inputs() -> None:
    op = define(
        w=ow.Input(dtypes=(ow.int32, ow.int64), mixed=True),
        expected_kernel_key=lambda op, place: Key(place, op.dtype_of("w")),
    )
    ow.ops.register_kernel(op, dtype=ow.int64)(times(5))
    assert answers(op, {"x": ONE, "w": np.int64([1])}) == [5] * 4
    assert answers(op, {"x": ONE, "w": np.int32([1])}) == [1] * 4


def test_a_kernel_for_one_layout_serves_where_the_attribute_asks_for_it() -> None:
    op = define(data_format=ow.Attr(str, default="NHWC"))
    ow.ops.register_kernel(op, layout="NCHW")(times(6))
    assert answers(op, {"x": ONE}) == [1] * 4
    assert answers(op, {"x": ONE}, data_format="NCHW") == [6] * 4
    with ow.flags(tune=True):
        assert answers(op, {"x": ONE}) == [1] * 4


def test_a_layout_forced_by_the_rule() -> None:
    op = define(expected_kernel_key=lambda op, place: Key(place, op.dtype_of("x"), layout="NCHW"))
    ow.ops.register_kernel(op, layout="NCHW", dtype=ow.float32)(times(7))
    assert answers(op, {"x": ONE}) == [7] * 4
    assert answers(op, {"x": ONE.astype(np.float64)}) == [1] * 4


def test_a_rule_may_keep_its_operator_on_the_cpu() -> None:
    op = define(expected_kernel_key=lambda op, place: Key("cpu", op.dtype_of("x")))
    ow.ops.register_kernel(op, place=SIM)(times(8))
    scope = ow.Scope()
    scope.var("x").set(ONE, SIM)
    done = op.on({"x": "x"}, {"y": "y"}).run(scope, SIM)
    assert (done.branch, done.place, done.reason) == ("host", ow.CPUPlace(), "its expected_kernel_key asks for the CPU")
    assert [str(t) for t in done.transforms] == ["x: place sim:0 -> cpu:0"]
    assert scope.find_var("y").value.numpy().max() == 1


MISTAKES = {
    "another device": ({"expected_kernel_key": lambda op, place: Key("sim", "float32")}, "asks for another device"),
    "elements": ({"expected_kernel_key": lambda op, place: op.x.constant}, "may not look into input 'x'"),
    "no key": ({"input_kernel_key": lambda op, held, expected: None}, "input_kernel_key gave no key for input 'x'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_rules_that_are_wrong(mistake: str) -> None:
    rules, words = MISTAKES[mistake]
    scope = ow.Scope()
    scope.var("x").set(ONE)
    with pytest.raises(ow.errors.DefinitionError, match=f"OneChoice .*{words}"):
        define(**rules).on({"x": "x"}, {"y": "y"}).run(scope)


def test_where_no_kernel_serves_the_advice_is_one_that_helps() -> None:
    op = ow.operator(
        type("OneChoice", (), {"x": ow.Input(dtypes=FLOATS), "y": ow.Output(like="x"), "__doc__": ".. math:: y = x"})
    )
    ow.ops.register_kernel(op, dtype=ow.float64)(times(2))
    scope = ow.Scope()
    scope.var("x").set(ONE)
    with pytest.raises(ow.errors.NotFoundError, match=r"(?s)found +\(cpu, float64, .*or a `compute`\n.*define compute"):
        op.on({"x": "x"}, {"y": "y"}).run(scope)
    with pytest.raises(ow.errors.UnimplementedError, match=r"(?s)OneChoice: no `compute`.*found +\(cpu, float64"):
        op(ow.constant(ONE))
    with ow.flags(kernel_fallback=False), pytest.raises(ow.errors.NotFoundError, match="switch kernel_fallback"):
        op.on({"x": "x"}, {"y": "y"}).run(scope, SIM)


REGISTRATIONS: dict[str, tuple[Any, str]] = {
    "an unknown kind of places": (lambda op: ow.ops.register_kernel(op, place="tpu"), "no places of kind 'tpu'"),
    "no operator": (lambda op: ow.ops.register_kernel(5), "this is not an operator"),
    "no function": (lambda op: ow.ops.register_kernel(op)(3), "a kernel is a function"),
}


@pytest.mark.parametrize("mistake", REGISTRATIONS)
def test_registrations_that_would_never_serve(mistake: str) -> None:
    register, words = REGISTRATIONS[mistake]
    with pytest.raises(ValueError, match=words):
        register(define())


@pytest.mark.parametrize("name", ["gpu:1", "cuda", "/device:GPU:0"])
def test_a_place_by_its_name_is_its_kind(name: str) -> None:
    op = define()
    ow.ops.register_kernel(op, place=name)(times(2))
    assert list(op.kernels) == [Key(ow.CUDAPlace(0), library="foreign")]
