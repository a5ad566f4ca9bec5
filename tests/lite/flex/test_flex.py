"""Flex operators: TensorFlow runs the NodeDefs we write, and our interpreter gives what it gives."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from flex_cases import CASES, X, f32
from flex_harness import ALONE, SETS, converted, flex_nodes, run
from lite_kit import op_names

import opwright as ow
from opwright.core.errors import DataLossError, InvalidArgumentError
from opwright.core.node_protos import Typed
from opwright.lite.convert import ConverterError
from opwright.lite.flex import nodedef, to_flex
from opwright.lite.flex.conversion import MAPPINGS, declaration, mapping_for
from opwright.lite.format import Model, objects, versions
from opwright.lite.format.flexbuffers import decode, encode_strings
from opwright.ops import registry
from thorough import crossed

OPEN = ("Svd", "SelfAdjointEig")  # TensorFlow leaves outputs that were not asked for unset


@functools.cache
def answers():
    with np.load(Path(__file__).parent / "answers.npz") as kept:
        return {name: kept[name] for name in kept.files}


def close(actual, expected, name):
    if expected.dtype.kind == "S":
        assert [bytes(x) for x in actual.reshape(-1)] == [bytes(x) for x in expected.reshape(-1)]
        return
    assert actual.shape == expected.shape or name.startswith(OPEN)
    if expected.dtype.kind in "fc" and actual.shape == expected.shape:
        np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-5)
    elif actual.shape == expected.shape:
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", CASES)
def test_nodes_are_those_that_tensorflow_ran_and_give_its_answers(name):
    function, *inputs = CASES[name]
    nodes = flex_nodes(converted(function, inputs, ALONE), inputs)
    assert nodes
    for i, (code, data, operands) in enumerate(nodes):
        key = f"{name}/{i}"
        assert data == answers()[f"{key}/node"].tobytes(), "run make_answers.py: TensorFlow has not seen this NodeDef"
        for j in range(len([k for k in answers() if k.startswith(f"{key}/result")])):
            result = run_alone(code, data, operands, key, j)
            close(result, answers()[f"{key}/result{j}"], name)


def run_alone(code, data, operands, key, output):
    """One Flex operator in a file of its own, with constants for inputs."""
    from opwright.core.dtypes import of_numpy, string
    from opwright.lite.format import pack_strings, schema
    from opwright.lite.ops import types

    def tensor(array, buffer=0):
        dtype = string if array.dtype.kind in "OS" else of_numpy(array.dtype)
        return objects.Tensor(shape=list(array.shape), type=schema.TensorType[types.name_of(dtype)], buffer=buffer)

    results = [answers()[k] for k in sorted(k for k in answers() if k.startswith(f"{key}/result"))]
    buffers = [objects.Buffer()]
    for x in operands:
        contents = pack_strings(list(x.reshape(-1))) if x.dtype == object else x.tobytes()
        buffers.append(objects.Buffer(data=np.frombuffer(contents, np.uint8)))
    n = len(operands)
    options = np.frombuffer(encode_strings([nodedef.decode(data).op.encode(), data]), np.uint8)
    model = Model(
        operator_codes=[versions.operator_code("CUSTOM", 1, code)],
        buffers=buffers,
        subgraphs=[
            objects.SubGraph(
                tensors=[*(tensor(x, i + 1) for i, x in enumerate(operands)), *map(tensor, results)],
                inputs=[],
                outputs=list(range(n, n + len(results))),
                operators=[
                    objects.Operator(
                        inputs=list(range(n)), outputs=list(range(n, n + len(results))), custom_options=options
                    )
                ],
            )
        ],
    )
    interpreter = ow.lite.Interpreter(model_content=model.to_bytes())
    interpreter.allocate_tensors()
    interpreter.invoke()
    return interpreter.get_tensor(n + output)


@pytest.mark.parametrize(("name", "sets"), crossed(CASES, [SETS, ALONE]))
def test_converted_files_give_what_the_function_gives(name, sets):
    function, *inputs = CASES[name]
    actual = run(converted(function, inputs, sets), inputs)
    expected = [y.numpy() for y in ow.nest.flatten(function(*(ow.constant(x) for x in inputs)))]
    for a, b in zip(actual, expected, strict=True):
        close(a, np.asarray(b).astype(bytes) if np.asarray(b).dtype == object else np.asarray(b), "")


def test_builtins_go_first_and_users_operators_stay_custom():
    @ow.operator
    class Twice:
        x = ow.Input("float32")
        y = ow.Output(like="x")

        def infer(op):
            return op.x.spec

        def compute(op, x):
            return 2 * x

    def function(x):
        return Twice(ow.math.lgamma(ow.exp(x)))

    assert op_names(converted(function, [X], SETS, allow_custom_ops=True)) == ["EXP", "FlexLgamma", "Twice"]
    with pytest.raises(ConverterError, match=r"'tf\.Twice' op is neither a custom op nor a flex op"):
        converted(function, [X], SETS)


def test_the_error_without_select_ops_names_the_way():
    with pytest.raises(ConverterError) as caught:
        converted(ow.math.lgamma, [X], [ow.lite.OpsSet.TFLITE_BUILTINS])
    text = str(caught.value)
    for words in (
        "error: 'tf.Lgamma' op is neither a custom op nor a flex op",
        "operators for which you will need custom implementations: Lgamma.",
        "SELECT_TF_OPS",
    ):
        assert words in text


def test_an_operator_that_tensorflow_lacks_is_marked_as_ours():
    content = converted(lambda x: ow.nn.softmax(x, axis=0), [X], ALONE)
    (operator,) = Model.read(content).subgraphs[0].operators
    name, data = decode(bytes(operator.custom_options))
    node = nodedef.decode(data.encode("utf-8", "surrogateescape"))
    assert (name, node.op, node.attrs["_opwright"], node.attrs["axis"]) == ("Softmax", "Softmax", True, 0)
    np.testing.assert_allclose(run(content, [X])[0], ow.nn.softmax(X, axis=0).numpy(), rtol=1e-6)


def test_forms_agree_with_declarations():
    for name, forms in MAPPINGS.items():
        operator = registry.get(name)
        for form in forms:
            declared = declaration(form.op)
            assert declared is not None, form.op
            assert mapping_for(form.op) == (name, form)
            assert set(form.attrs) <= set(declared.attrs)
            ours = {*form.attrs.values(), *form.needs, *form.drops, *form.alike, *form.alike.values()}
            assert ours <= set(operator.attr_defs), form
            if form.inputs is not None:
                assert len(form.inputs) == len(declared.inputs), form.op


def test_unknown_batch_and_dynamic_results():
    @ow.function(input_signature=[ow.TensorSpec([None, 3], "float32")])
    def model(x):
        return ow.math.digamma(ow.boolean_mask(x, x[:, 0] > 0.0))

    converter = ow.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()])
    converter.target_spec.supported_ops = SETS
    runner = ow.lite.Interpreter(model_content=converter.convert()).get_signature_runner()
    for rows in (2, 5):
        x = f32(rows, 3, seed=rows, low=-1.0, high=3.0)
        (result,) = runner(**{next(iter(runner.get_input_details())): x}).values()
        np.testing.assert_allclose(result, model(x).numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (None, "without a NodeDef"),
        ([b"Erf"], "without a NodeDef"),
        ([b"Erf", b"\x12\x7fErf"], "runs past its end"),
        ([b"Erf", b"\x12\x80"], "has no end"),
        ([b"Erf", b"\x0b"], "wire type 3"),
        ([b"NoSuch", nodedef.encode(nodedef.FlexNodeDef("NoSuch"))], "which is not here"),
        ([b"MatrixInverse", nodedef.encode(nodedef.FlexNodeDef("MatrixInverse", attrs={"new": 3}))], "new"),
    ],
    ids=["none", "no_node", "length", "number", "wire_type", "no_operator", "no_attribute"],
)
def test_damaged_options_are_errors_that_say_so(options, says):
    options = b"" if options is None else encode_strings(options)
    model = Model(
        operator_codes=[versions.operator_code("CUSTOM", 1, "FlexMatrixInverse")],
        buffers=[objects.Buffer()],
        subgraphs=[
            objects.SubGraph(
                tensors=[objects.Tensor(shape=[2, 2], name="x"), objects.Tensor(shape=[2, 2], name="y")],
                inputs=[0],
                outputs=[1],
                operators=[objects.Operator(inputs=[0], outputs=[1], custom_options=np.frombuffer(options, np.uint8))],
            )
        ],
    )
    interpreter = ow.lite.Interpreter(model_content=model.to_bytes())
    with pytest.raises(RuntimeError, match=says):
        interpreter.allocate_tensors()


def test_node_definitions_read_back():
    attrs = {
        "b": True,
        "i": -5,
        "f": 0.5,
        "s": b"\xff\0",
        "t": ow.int64,
        "h": ow.TensorShape([2, None]),
        "li": [1, -1],
        "lf": Typed("float", [1.0, 2.0]),
        "ls": [b"a", b""],
        "lt": [ow.float32],
        "u": ow.TensorShape(None),
        "none": Typed("int", []),
    }
    node = nodedef.FlexNodeDef("Op", "n", ["a", "b"], attrs)
    again = nodedef.decode(nodedef.encode(node))
    assert (again.op, again.name, again.inputs) == ("Op", "n", ["a", "b"])
    expected = attrs | {"lf": [1.0, 2.0], "none": []}
    assert {k: v.dims if isinstance(v, ow.TensorShape) else v for k, v in again.attrs.items()} == {
        k: v.dims if isinstance(v, ow.TensorShape) else v for k, v in expected.items()
    }


def test_random_bytes_are_no_node_definition_but_no_crash():
    rng = np.random.default_rng(0)
    good = nodedef.encode(nodedef.FlexNodeDef("Svd", attrs={"T": ow.float32, "compute_uv": True, "l": [1, 2]}))
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(len(data))] = rng.integers(256)
        try:
            nodedef.decode(bytes(data[: rng.integers(1, len(data) + 1)]))
        except (DataLossError, InvalidArgumentError):
            continue


def test_a_user_s_operator_of_a_catalogue_name_is_not_carried():
    @ow.operator
    class Lgamma:
        x = ow.Input("float32")
        y = ow.Output(like="x")

        def infer(op):
            return op.x.spec

        def compute(op, x):
            return x

    concrete = ow.function(Lgamma).get_concrete_function(ow.TensorSpec([2], "float32"))
    node = next(n for n in concrete.graph.nodes if n.op.name == "Lgamma")
    with pytest.raises(InvalidArgumentError, match="not the catalogue's"):
        to_flex(node)


def test_a_model_with_flex_operators_is_quantised_around_them():
    """Also in a loop, which calibration sees in all of its turns. Expected: the function itself, in float."""
    weight = f32(8, 8)

    @ow.function(input_signature=[ow.TensorSpec([2, 8], name="x")])
    def main(x):
        for _ in ow.range(2):
            x = ow.math.lgamma(ow.sigmoid(ow.matmul(x, weight)) + 1.0)
        return x

    samples = [f32(2, 8) * k for k in (-1, 1)]
    converter = ow.lite.TFLiteConverter.from_concrete_functions([main.get_concrete_function()], main)
    converter.target_spec.supported_ops = SETS
    converter.optimizations = [ow.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: [[x] for x in samples]
    content = converter.convert()
    body = max((op_names(content, i) for i in range(len(Model.read(content).subgraphs))), key=len)
    assert {"QUANTIZE", "FULLY_CONNECTED", "FlexLgamma"} <= set(body)
    runner = ow.lite.Interpreter(model_content=content).get_signature_runner()
    for x in samples:
        np.testing.assert_allclose(runner(x=x)["output_0"], main(x).numpy(), atol=0.02)
