"""Versions of operators of one's own: old and new definitions against each other's files, by property.

The expected numbers follow from the operators' formula; the least version from what a call uses, counted by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright as ow
from opwright.lite import Interpreter, Model, MutableOpResolver, Registration, TFLiteConverter
from opwright.lite.format import flexbuffers, schema
from opwright.lite.format.flexbuffers import custom_version
from opwright.lite.format.runtime_requirements import requirements
from opwright.ops.call import least_version
from opwright.tools.selective_build import used_by
from thorough import examples

X = np.float32([[-1.5, 0.25, 2.0], [4.0, -0.5, 1.0]])
# attribute: the version that brought it, its default, what it is multiplied by
ATTRS = {"a": (1, 1, 1.0), "b": (2, 1, 10.0), "c": (2, False, 100.0), "d": (3, 0.5, 1000.0), "e": (3, (1, 2), 1e4)}
TYPES = {"a": int, "b": int, "c": bool, "d": float, "e": [int]}
NAME = "VersionTestGrowing"


def definition(version: int) -> Any:
    """The operator as it was in that version: y = x + each attribute times its number (+ bias, since 2)."""
    attrs = {n: row for n, row in ATTRS.items() if row[0] <= version}

    def infer(op: Any) -> Any:
        y = op.x.spec
        return (y, ow.TensorSpec(y.shape, "bool")) if version >= 2 else y

    def compute(op: Any, x: np.ndarray, bias: Any = None) -> Any:
        y = x.astype(np.float64)
        for name, (_, default, times) in attrs.items():
            value = getattr(op, name)
            y = y + times * (float(sum(value)) - 3 if name == "e" else float(value) - float(default))
        y = (y if bias is None else y + bias).astype(x.dtype)
        return (y, x > 0) if version >= 2 else y

    body: dict[str, Any] = {"x": ow.Input(ow.floating), "y": ow.Output(like="x"), "infer": infer, "compute": compute}
    if version >= 2:
        body["bias"] = ow.Input(ow.floating, like="x", optional=True, since=2)
        body["positive"] = ow.Output(dtype="bool", intermediate=True, since=2)
    for name, (since, default, _) in attrs.items():
        body[name] = ow.Attr(TYPES[name], default=default, since=since)
    return ow.operator(name=NAME, version=version)(type(NAME, (), {"__doc__": "Grows.", **body}))


def expected(given: dict[str, Any], bias: bool) -> np.ndarray:
    y = X.astype(np.float64)
    for name, value in given.items():
        _, default, times = ATTRS[name]
        y = y + times * (sum(value) - 3 if name == "e" else float(value) - float(default))
    return y + 7.0 if bias else y


def least(given: dict[str, Any], bias: bool) -> int:
    used = [ATTRS[n][0] for n, v in given.items() if v != ATTRS[n][1]]
    return max([1, *used, 2 if bias else 1])


def file(version: int, given: dict[str, Any], bias: bool, place: str) -> bytes:
    op = definition(version)
    b = np.full(X.shape, 7.0, np.float32)
    function = ow.function(lambda x: op(x, bias=b, **given) if bias else op(x, **given))
    converter = TFLiteConverter.from_concrete_functions([function.get_concrete_function(ow.TensorSpec([2, 3]))])
    converter.allow_custom_ops, converter.custom_version_in = True, place
    return converter.convert()


def run(content: bytes, op: Any) -> np.ndarray:
    interpreter = Interpreter(model_content=content, custom_ops=[op])
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


CALLS = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(0, 3),
        "b": st.integers(0, 2),
        "c": st.booleans(),
        "d": st.sampled_from([0.5, 0.25]),
        "e": st.sampled_from([(1, 2), (), (4,)]),
    },
)


@settings(max_examples=examples(60), deadline=None)
@given(CALLS, st.booleans(), st.integers(1, 3), st.sampled_from(["code", "options"]))
def test_every_definition_reads_what_it_can_express(given, bias, reader, place):
    """The newest definition writes. A definition of version v reads it exactly where the call needs no more than v."""
    content = file(3, given, bias, place)
    model, needed = Model.read(content), least(given, bias)
    (code,) = [c for c in model.operator_codes if c.builtin_code == schema.BuiltinOperator.CUSTOM]
    assert (code.custom_code, code.version) == (NAME, needed if place == "code" else 1)
    (node,) = model.subgraphs[0].operators
    options = flexbuffers.decode_options(node.custom_options)
    assert options.pop("_version", None) == (needed if place == "options" else None)
    assert set(options) == {n for n, row in ATTRS.items() if row[0] <= needed}
    assert len(node.outputs) == (2 if needed >= 2 else 1)
    assert len(node.inputs) == (2 if needed >= 2 else 1)
    if reader >= needed:
        np.testing.assert_allclose(run(content, definition(reader)), expected(given, bias), rtol=1e-6)
        return
    with pytest.raises(RuntimeError, match=rf"{NAME}(.|\n)*version {needed}(.|\n)*newer definition"):
        run(content, definition(reader))


@settings(max_examples=examples(30), deadline=None)
@given(CALLS, st.booleans(), st.integers(1, 3), st.sampled_from(["code", "options"]))
def test_newer_definitions_read_what_older_ones_wrote(given, bias, writer, place):
    given = {n: v for n, v in given.items() if ATTRS[n][0] <= writer}
    bias = bias and writer >= 2
    content = file(writer, given, bias, place)
    np.testing.assert_allclose(run(content, definition(3)), expected(given, bias), rtol=1e-6)


def test_one_operator_code_for_each_version():
    op = definition(3)
    function = ow.function(lambda x: op(op(op(op(x), b=2), d=0.25), b=0))
    converter = TFLiteConverter.from_concrete_functions([function.get_concrete_function(ow.TensorSpec([2, 3]))])
    converter.allow_custom_ops = True
    model = Model.read(converter.convert())
    assert [(c.custom_code, c.version) for c in model.operator_codes] == [(NAME, 1), (NAME, 2), (NAME, 3)]
    assert [o.opcode_index for o in model.subgraphs[0].operators] == [0, 1, 2, 1]
    converter.custom_version_in = "options"
    model = Model.read(converter.convert())
    assert [(c.custom_code, c.version) for c in model.operator_codes] == [(NAME, 1)]
    actual = [flexbuffers.decode_options(o.custom_options)["_version"] for o in model.subgraphs[0].operators]
    assert actual == [1, 2, 3, 2]


@pytest.mark.parametrize(
    ("attrs", "read", "version"),
    [
        ({"d": 0.5}, (True, False), 1),
        ({"d": -0.5}, (True, False), 3),
        ({}, (True, True), 2),
        ({"e": (1, 2)}, (), 1),
        ({"c": True}, (True, False), 2),
        ({"a": 7}, (True, False), 1),
    ],
)
def test_least_version(attrs, read, version):
    assert least_version(definition(3), attrs, [X, None], read) == version


def test_a_version_that_nothing_explains_is_needed_by_every_call():
    @ow.operator(name="VersionTestSilent", version=3)
    class Silent:
        """Version 2 brought b, version 3 something that is not written down."""

        x = ow.Input(ow.floating)
        y = ow.Output(like="x")
        b = ow.Attr(int, default=1, since=2)

        def compute(op, x):
            return x * op.b

    assert least_version(Silent, {"b": 1}, [X]) == 3


def test_rules_of_types_and_shapes():
    @ow.operator(name="VersionTestTyped", version=4)
    class Typed:
        """Version 2 takes int32, version 3 matrices, version 4 has `k`."""

        x = ow.Input((ow.float32, ow.int32))
        y = ow.Output(like="x")
        k = ow.Attr(int, default=1, since=4)

        def version_needed(op):
            return 3 if op.x.shape.rank == 2 else 2 if op.x.dtype == ow.int32 else 1

        def compute(op, x):
            return x * op.k

    def version(spec, **attrs):
        function = ow.function(lambda x: Typed(x, **attrs)).get_concrete_function(spec)
        converter = TFLiteConverter.from_concrete_functions([function])
        converter.allow_custom_ops = True
        return Model.read(converter.convert()).operator_codes[0].version

    assert version(ow.TensorSpec([3])) == 1
    assert version(ow.TensorSpec([3], ow.int32)) == 2
    assert version(ow.TensorSpec([3, 2], ow.int32)) == 3
    assert version(ow.TensorSpec([3]), k=2) == 4
    assert version(ow.TensorSpec([3, 2]), k=1) == 3


@pytest.mark.parametrize("gives", [0, 3, 1.0, True, None, "2"])
def test_a_rule_that_returns_no_version_is_named(gives):
    body = {
        "x": ow.Input(ow.floating),
        "y": ow.Output(like="x"),
        "compute": lambda op, x: x,
        "version_needed": lambda op: gives,
    }
    op = ow.operator(name="VersionTestBad", version=2)(type("VersionTestBad", (), body))
    with pytest.raises(ow.errors.DefinitionError, match=r"version_needed(.|\n)*1\.\.2"):
        least_version(op, {}, [X])


def with_custom(content: bytes, version: int = 1, inside: Any = None) -> bytes:
    """The model with another version in the operator code, and in the options."""
    model = Model.read(content)
    model.operator_codes[0].version = version
    node = model.subgraphs[0].operators[0]
    options = flexbuffers.decode_options(node.custom_options)
    options.pop("_version", None)
    if inside is not None:
        options["_version"] = inside
    node.custom_options = np.frombuffer(flexbuffers.encode_options(options), np.uint8)
    return model.to_bytes()


@pytest.mark.parametrize(
    ("version", "inside", "says"),
    [
        (1, 4, r"version 4(.|\n)*1\.\.3(.|\n)*newer definition"),
        (4, None, r"unresolved custom op(.|\n)*1\.\.3"),
        (0, None, "unresolved custom op"),
        (-1, None, "unresolved custom op"),
        (2**31 - 1, None, "version 2147483647"),
        (1, 0, "at least 1"),
        (1, -5, "at least 1"),
        (1, 2**40, "version 1099511627776"),
        (1, "2", "at least 1"),
        (1, 2.0, "at least 1"),
        (1, True, "at least 1"),
        (2, 3, "contradicts itself"),
    ],
)
def test_versions_that_cannot_be(version, inside, says):
    content = with_custom(file(3, {"a": 2}, False, "code"), version, inside)
    with pytest.raises(RuntimeError, match=says):
        Interpreter(model_content=content, custom_ops=[definition(3)]).allocate_tensors()


@pytest.mark.parametrize(("version", "inside"), [(2, 2), (1, 3), (3, None), (1, None), (1, 1)])
def test_versions_that_can_be(version, inside):
    content = with_custom(file(3, {"a": 2}, False, "code"), version, inside)
    np.testing.assert_allclose(run(content, definition(3)), expected({"a": 2}, False), rtol=1e-6)


PLACES = pytest.mark.parametrize("place", ["code", "options"])


@PLACES
def test_a_resolver_says_itself_which_versions_a_definition_serves(place):
    content = file(3, {"d": 0.25}, False, place)
    for most, works in ((1, False), (2, False), (3, True)):
        resolver = MutableOpResolver()
        resolver.add_custom(NAME, definition(3), 1, most)
        interpreter = Interpreter(model_content=content, op_resolver=resolver)
        if works:
            interpreter.allocate_tensors()
        else:
            with pytest.raises(RuntimeError, match=rf"{NAME} version 3(.|\n)*wanted.*{NAME} version 1"):
                interpreter.allocate_tensors()


@PLACES
def test_hand_written_registrations_have_versions_too(place):
    content = file(3, {"b": 2}, False, place)
    for version in (1, 2):
        kernel = Registration(
            prepare=lambda c, n: c.resize_tensor(n.outputs[0], n.inputs[0].shape),
            invoke=lambda c, n: None,
            version=version,
        )
        interpreter = Interpreter(model_content=content, custom_ops={NAME: kernel})
        if version == 2:
            continue
        with pytest.raises(RuntimeError, match=rf"unresolved custom op: {NAME}"):
            interpreter.allocate_tensors()


@PLACES
def test_all_nodes_whose_version_is_not_there_are_listed_and_reported(place, tmp_path):
    op = definition(3)
    function = ow.function(lambda x: op(op(op(x, a=2), b=3), d=0.25))
    converter = TFLiteConverter.from_concrete_functions([function.get_concrete_function(ow.TensorSpec([2, 3]))])
    converter.allow_custom_ops, converter.custom_version_in = True, place
    content = converter.convert()
    says = rf"{NAME} version 2 at node number 1; {NAME} version 3 at node number 2\n *wanted *{NAME} version 1\n"
    with pytest.raises(RuntimeError, match=says):
        Interpreter(model_content=content, custom_ops=[definition(1)]).allocate_tensors()
    model = Model.read(content)
    assert [(n.operator, n.version) for n in requirements(model)] == [(NAME, 1), (NAME, 2), (NAME, 3)]
    assert used_by([model]).customs == {NAME: (1, 3)}


def test_options_that_are_no_map_carry_no_version():
    for options in (
        None,
        b"",
        b"_version\0",
        b"\xff" * 40 + b"_version\0",
        flexbuffers.encode_options({"_version": "2"}),
        flexbuffers.encode_options({"_version": -2}),
        flexbuffers.encode_options({"x": "_version"}),
    ):
        assert custom_version(1, options) == 1
    assert custom_version(1, flexbuffers.encode_options({"_version": 2})) == 2
    assert custom_version(4, flexbuffers.encode_options({"_version": 2})) == 4
