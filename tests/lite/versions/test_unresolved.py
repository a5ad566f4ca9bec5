"""Test that one error lists everything unresolved when an interpreter is created; old, new, contradictory codes.

Words: those of the official interpreter where it has them. It is asked itself about operator codes.
"""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import opwright as ow
from each_row import each_row
from opwright.lite import BuiltinOpResolver, Interpreter, Model, MutableOpResolver, Registration
from opwright.lite.format import objects, schema, versions

B = schema.BuiltinOperator
NONE = "CONCAT_EMBEDDINGS"  # the official run time has no kernel for it either
NOTHING = Registration(prepare=lambda c, n: c.resize_tensor(n.outputs[0], n.inputs[0].shape), invoke=lambda c, n: None)


def chain(*codes: object, graphs: int = 1) -> bytes:
    """A model of unary operators in a row, one for each operator code, the same in each subgraph."""
    n = len(codes)
    subgraphs = [
        objects.SubGraph(
            tensors=[objects.Tensor(name=f"t{i}", shape=[3], type=schema.TensorType.FLOAT32) for i in range(n + 1)],
            inputs=[0],
            outputs=[n],
            name=f"g{k}",
            operators=[objects.Operator(opcode_index=i, inputs=[i], outputs=[i + 1]) for i in range(n)],
        )
        for k in range(graphs)
    ]
    return Model(operator_codes=list(codes), subgraphs=subgraphs, buffers=[objects.Buffer()]).to_bytes()


def builtin(name: str, version: int = 1) -> object:
    return versions.operator_code(name, version)


def custom(name: str, version: int = 1) -> object:
    return versions.operator_code("CUSTOM", version, name)


def said_by_official(content: bytes) -> str:
    official = pytest.importorskip("ai_edge_litert.interpreter")
    with pytest.raises(ValueError, match=r".") as caught:
        official.Interpreter(model_content=content)
    return str(caught.value)


DIDNT = (
    "Didn't find op for builtin opcode '{}' version '{}'. An older version of this builtin might be supported. "
    "Are you using an old Opwright with a newer model?"
)


@pytest.mark.parametrize("version", [99, 0, -1, 2**31 - 1, -(2**31)])
def test_the_words_for_a_version_that_is_not_there(version):
    content = chain(builtin("NEG"), builtin("EXP", version))
    with pytest.raises(ValueError, match="Didn't find op") as caught:
        Interpreter(model_content=content)
    assert isinstance(caught.value, ow.errors.InvalidArgumentError)
    lines = str(caught.value).splitlines()
    assert DIDNT.format("EXP", version) in lines[0]
    assert lines[1] == "Registration failed."
    assert f"EXP version {version} at node number 1" in lines[2]
    assert "EXP version 1..2" in lines[3]
    assert DIDNT.format("EXP", version).replace("an old Opwright", "an old TFLite binary") in said_by_official(content)


def test_everything_that_is_missing_is_listed_at_once():
    codes = (builtin("EXP", 7), custom("Mine", 2), builtin("NEG"), custom("FlexNoSuchOperator"), builtin(NONE))
    content = chain(*codes, graphs=2)
    with pytest.raises(ValueError, match="Didn't find op") as caught:
        Interpreter(model_content=content, custom_ops={"Other": NOTHING})
    text = str(caught.value)
    assert DIDNT.format("EXP", 7) in text
    assert DIDNT.format(NONE, 1) in text
    assert "Encountered unresolved custom op: Mine." in text
    assert "They are: FlexNoSuchOperator." in text
    assert "NEG" not in text
    assert "EXP version 7 at node number 0, node number 0 of subgraph 1; CONCAT_EMBEDDINGS version 1 at node" in text
    assert "Mine version 2 at node number 1, node number 1 of subgraph 1" in text
    assert "EXP version 1..2, CONCAT_EMBEDDINGS version none, custom operators among those given: Other" in text
    assert "custom_ops=[Mine, FlexNoSuchOperator]" in text
    assert "opwright explain OW102" in text


def test_custom_operators_alone_wait_for_a_delegate():
    interpreter = Interpreter(model_content=chain(custom("A"), custom("A", 3), custom("B")), custom_ops={"A": NOTHING})
    with pytest.raises(RuntimeError) as caught:
        interpreter.allocate_tensors()
    text = str(caught.value)
    assert isinstance(caught.value, ow.errors.NotFoundError)
    assert "A version 3 at node number 1; B version 1 at node number 2" in text
    assert "A version 1, custom operators among those given: A" in text
    assert "get a newer definition of A" in text
    assert "custom_ops=[B]" in text
    assert text.splitlines()[-1] == "Node number 1 (A) failed to prepare."


def test_a_code_that_no_node_uses_counts_as_in_the_official_interpreter():
    model = Model.read(chain(builtin("NEG"), builtin("EXP", 50)))
    model.subgraphs[0].operators.pop()
    model.subgraphs[0].outputs = [1]
    content = model.to_bytes()
    assert "'EXP' version '50'" in said_by_official(content)
    with pytest.raises(ValueError, match=r"'EXP' version '50'(.|\n)*EXP version 50 at no node"):
        Interpreter(model_content=content)


def test_nodes_are_listed_up_to_a_few():
    model = Model.read(chain(*[builtin("EXP", 9)] * 9))
    for operator in model.subgraphs[0].operators:
        operator.opcode_index = 0
    with pytest.raises(ValueError, match="node number 0, node number 1, node number 2, node number 3, 5 more"):
        Interpreter(model_content=model.to_bytes())


# ---- operator codes --------------------------------------------------------------------------------------------------


def code(deprecated: int, number: int, version: int = 1) -> object:
    return objects.OperatorCode(deprecated_builtin_code=deprecated, builtin_code=number, version=version)


@pytest.mark.parametrize(
    ("deprecated", "number", "means"),
    [
        (B.NEG, B.NEG, "NEG"),
        (B.NEG, 0, "NEG"),
        (0, B.NEG, "NEG"),
        (-1, B.NEG, "NEG"),
        (-128, B.NEG, "NEG"),
        (B.EXP, B.NEG, "NEG"),
        (B.NEG, B.EXP, "NEG"),
        (B.NEG, -5, "NEG"),
        (B.NEG, B.SIGN, "SIGN"),
        (127, B.SIGN, "SIGN"),
        (0, B.SIGN, "SIGN"),
        (-1, B.SIGN, "SIGN"),
    ],
)
def test_the_greater_of_both_fields_counts(deprecated, number, means):
    """SIGN (158) has its number in the new field only; below 127 the old field counts as well."""
    official = pytest.importorskip("ai_edge_litert.interpreter")
    content = chain(code(int(deprecated), int(number)))
    x, result = np.float32([-2, 0, 3]), []
    for interpreter in (Interpreter(model_content=content), official.Interpreter(model_content=content)):
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        result.append(interpreter.get_tensor(1))
        assert interpreter._get_ops_details()[0]["op_name"] == means
    np.testing.assert_array_equal(result[0], result[1])
    np.testing.assert_array_equal(result[0], -x if means == "NEG" else np.sign(x))
    assert versions.op_name(Model.read(content).operator_codes[0]) == means


def test_files_from_before_the_new_field():
    """The field builtin_code does not exist in them at all."""
    content = chain(code(int(B.NEG), 0))
    read = Model.read(content)
    assert read.operator_codes[0].builtin_code == 0
    assert Model.read(read.to_bytes()).operator_codes[0] == read.operator_codes[0]  # kept as it was
    assert versions.op_name(read.operator_codes[0]) == "NEG"
    versions.stamp_model(read)
    assert read.operator_codes[0].version == 1


@pytest.mark.parametrize(("deprecated", "number"), [(127, 127), (127, 0), (0, 300), (127, 2**31 - 1), (-1, -1)])
def test_codes_that_are_no_operator(deprecated, number):
    content = chain(code(deprecated, number))
    said_by_official(content)
    with pytest.raises(ValueError, match=r"operator|builtin"):
        Interpreter(model_content=content)


@each_row("name", [m.name for m in B if "special" not in versions.facts(m.name)])
def test_both_fields_are_written(name):
    result, number = versions.operator_code(name), int(B[name])
    assert result.builtin_code == number
    assert result.deprecated_builtin_code == (number if number < 127 else 127)
    assert versions.op_name(Model.read(chain(result)).operator_codes[0]) == name


def test_official_files_have_the_fields_as_we_write_them():
    corpus = pathlib.Path(__file__).parents[2] / "data" / "tflite"
    seen = set()
    for path in corpus.glob("*.tflite"):
        for result in Model.read(path).operator_codes:
            created = versions.operator_code(versions.op_name(result), int(result.version), result.custom_code)
            assert created == result, path.name
            seen.add(int(result.builtin_code))
    assert max(seen) > 127 > min(seen)


# ---- resolvers -------------------------------------------------------------------------------------------------------


def test_versions_default_to_1_as_the_field_has_it():
    resolver = MutableOpResolver()
    kernel = Registration(invoke=lambda c, n: None, version=4)
    resolver.add_builtin("ADD", kernel)
    resolver.add_custom("Mine", kernel)
    for name in ("ADD", "Mine"):
        assert [resolver.find_op(name, v) is not None for v in (0, 1, 2, 4)] == [False, True, False, False]


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        (0, 1, "range"),
        (2, 1, "max_version=4"),
        (2, 2**31, "range"),
        (1.0, 2, "integers"),
        (True, 1, "integers"),
        (1, None, "integers"),
        (-1, 1, "range"),
    ],
)
def test_ranges_that_are_none(low, high, says):
    resolver, kernel = MutableOpResolver(), Registration(version=4)
    for add, name in ((resolver.add_builtin, "ADD"), (resolver.add_custom, "Mine")):
        with pytest.raises(ow.errors.InvalidArgumentError, match=says):
            add(name, kernel, low, high)


@pytest.mark.parametrize("op", ["CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES", 32, 127, -1, 9999, None, "?"])
def test_what_is_no_builtin_operator(op):
    with pytest.raises(ow.errors.InvalidArgumentError, match="no builtin operator"):
        MutableOpResolver().add_builtin(op, NOTHING)


@ow.operator(name="UnresolvedTestTwice")
class Twice:
    """2 x.  .. math:: y = 2 x"""

    x = ow.Input(ow.floating)
    y = ow.Output(like="x")

    def compute(op, x):
        return x + x


@ow.operator(name="UnresolvedTestThrice", version=2)
class Thrice:
    """3 x.  .. math:: y = 3 x"""

    x = ow.Input(ow.floating)
    y = ow.Output(like="x")

    def compute(op, x):
        return x + x + x


def as_resolver(*ops):
    resolver = MutableOpResolver()
    for op in ops:
        resolver.add_custom(op.name, op, 1, op.version)
    return resolver


SETS = {
    "list": [Twice, Thrice],
    "set": {Twice, Thrice},
    "mapping": {Twice.name: Twice, Thrice.name: Thrice},
    "resolver": as_resolver(Twice, Thrice),
    "list of sets": [{Twice}, {Thrice.name: Thrice}],
    "set and resolver": [as_resolver(Twice), Thrice],
    "resolver last": [Thrice, as_resolver(Twice)],
    "iterator": iter([Twice, Thrice]),
}


@pytest.mark.parametrize("given", SETS.values(), ids=SETS)
def test_several_custom_operators_as_a_set(given):
    content = chain(custom(Twice.name), custom(Thrice.name, 2), builtin("NEG"))
    interpreter = Interpreter(model_content=content, custom_ops=given)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.float32([1, 2, 3]))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(3), [-6, -12, -18])


@pytest.mark.parametrize("given", ["Twice", b"Twice", [3], {Twice, 3}, [["x"]]])
def test_what_is_no_set_of_operators(given):
    with pytest.raises(TypeError, match="custom_ops"):
        Interpreter(model_content=chain(builtin("NEG")), custom_ops=given)


def test_a_resolver_among_custom_operators_overrides_builtins():
    resolver = MutableOpResolver()
    resolver.add_builtin("NEG", Twice)
    interpreter = Interpreter(model_content=chain(builtin("NEG"), builtin("EXP")), custom_ops=resolver)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.float32([1, 2, 3]))
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(2), np.exp([2.0, 4.0, 6.0]), rtol=1e-6)


def test_add_all_of_the_builtin_resolver_stays_lazy_and_whole():
    resolver = MutableOpResolver()
    resolver.add_all(BuiltinOpResolver())
    for name in ("ADD", "SOFTMAX"):
        assert resolver.find_op(name, 1) is BuiltinOpResolver().find_op(name, 1)
        assert resolver.builtin_versions(name) == BuiltinOpResolver().builtin_versions(name)
