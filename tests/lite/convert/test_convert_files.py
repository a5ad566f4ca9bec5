"""Test the contents of converted files: identity, names, shapes, buffers, versions, metadata, custom options."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from convert_harness import converter, f32, official, ours
from lite_kit import op_names
from test_convert_refusals import ConvertTestClip

import opwright as ow
from opwright.lite.format import Model, flexbuffers, schema, versions
from opwright.tools import demo


def concrete(function: object, *specs: ow.TensorSpec) -> object:
    return ow.function(function).get_concrete_function(*specs)


def spec(*shape: int | None, name: str = "x", dtype: object = ow.float32) -> ow.TensorSpec:
    return ow.TensorSpec(shape, dtype, name=name)


def test_identity_and_metadata() -> None:
    content = converter(concrete(ow.sin, spec(5))).convert()
    assert content[4:8] == b"TFL3"
    model = Model.read(content)
    assert model.version == 3
    assert len(bytes(model.buffers[0].data or b"")) == 0
    (metadata,) = model.metadata
    assert metadata.name == versions.METADATA_NAME
    assert bytes(model.buffers[metadata.buffer].data) == versions.metadata_of(versions.min_runtime("SIN", 1))
    assert re.fullmatch(r"Opwright [\w.+]+ Converted\.", model.description)
    plain = Model.read(converter(concrete(ow.sin, spec(5)), exclude_conversion_metadata=True).convert())
    assert plain.description == "Opwright Converted."


def test_weights_are_copied_one_at_a_time_for_a_file_and_once_for_bytes(tmp_path: Path) -> None:
    """A convolution with a batch norm folded into it, products with transposed weights: NumPy's memory is traced."""
    kernel, scale = ow.Variable(f32(3, 3, 256, 512)), ow.constant(f32(512))
    weights = [ow.Variable(f32(512, 1024)), *(ow.Variable(f32(1024, 1024)) for _ in range(5))]

    def function(x: object) -> object:
        y = ow.nn.conv2d(x, kernel, 1, "SAME") * scale
        y = ow.reduce_mean(y, [1, 2])
        for matrix in weights:
            y = ow.matmul(y, matrix)
        return y

    size = sum(variable.numpy().nbytes for variable in (kernel, *weights))
    call = concrete(function, spec(1, 4, 4, 256))
    converter(call).convert()  # modules, caches
    path = tmp_path / "model.tflite"
    peaks = []
    for run in (lambda: converter(call).write(path), lambda: converter(call).convert()):
        tracemalloc.start()
        result = run()
        peaks.append(tracemalloc.get_traced_memory()[1] / size)
        tracemalloc.stop()
    assert path.read_bytes() == result
    assert peaks[0] < 0.5  # the convolution's weights times the scale, and one transposed at a time
    assert peaks[1] < 1.5


def test_products_of_weights_are_computed_when_they_are_written(tmp_path: Path) -> None:
    """A network of convolutions, each with a batch norm folded into it: NumPy's memory is traced."""
    kernels = [ow.Variable(f32(3, 3, 96, 96, seed=i)) for i in range(8)]
    scales = [f32(96, seed=i) + 2 for i in range(8)]

    def function(x: object) -> object:
        for kernel, scale in zip(kernels, scales):
            x = ow.nn.relu(ow.nn.conv2d(x, kernel, 1, "SAME") * scale * 0.05)
        return x

    size = sum(kernel.numpy().nbytes for kernel in kernels)
    call = concrete(function, spec(1, 4, 4, 96))
    content = converter(call).convert()
    path = tmp_path / "model.tflite"
    peaks = []
    for run in (lambda: converter(call).write(path), lambda: converter(call).convert()):
        tracemalloc.start()
        run()
        peaks.append(tracemalloc.get_traced_memory()[1] / size)
        tracemalloc.stop()
    assert path.read_bytes() == content
    assert peaks[0] < 0.4
    assert peaks[1] < 1.4
    x = f32(1, 4, 4, 96)
    (expected,) = ow.nest.flatten(function(ow.constant(x)))
    assert op_names(content) == ["CONV_2D"] * 8
    for run_file in (official, ours):
        (actual,) = run_file(content, [x])
        np.testing.assert_allclose(actual, expected.numpy(), rtol=0, atol=1e-5 * np.abs(expected.numpy()).max())


def test_the_demos_sin_file_runs_in_the_official_interpreter_to_1e_6() -> None:
    model, offset = demo.train("sin", steps=100)
    x = np.array(demo.X, np.float32)
    (got,) = official(demo.convert(model, allow_custom_ops=False), [x])
    np.testing.assert_allclose(got, model(x).numpy(), rtol=0, atol=1e-6)
    exact = np.sin(x.astype(np.float64) + np.float64(offset.numpy()))
    np.testing.assert_allclose(got, exact, rtol=0, atol=2e-5)  # float32 holds x + offset = 202 to 8e-6


def test_signature_names_are_the_parameters_and_the_keys() -> None:
    def function(left: object, right: object) -> object:
        return {"total": left + right, "difference": left - right}

    model = Model.read(converter(concrete(function, spec(2, name=None), spec(2, name=None))).convert())
    (signature,) = model.signature_defs
    assert signature.signature_key == "serving_default"
    assert [t.name for t in signature.inputs] == ["left", "right"]
    assert [t.name for t in signature.outputs] == ["difference", "total"]
    graph = model.subgraphs[0]
    assert [graph.tensors[t.tensor_index].name for t in signature.inputs] == ["left", "right"]


def test_outputs_without_keys_are_numbered_and_run_through_signatures() -> None:
    content = converter(concrete(lambda x: (x + 1.0, [x * 2.0]), spec(2))).convert()
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(model_content=content).get_signature_runner()
    result = runner(x=np.ones(2, np.float32))
    assert sorted(result) == ["output_0", "output_1"]
    np.testing.assert_array_equal(result["output_1"], [2, 2])


def test_several_functions_are_several_signatures() -> None:
    @ow.function
    def double(x: object) -> object:
        return x * 2.0

    @ow.function
    def half(x: object) -> object:
        return x / 2.0

    functions = [f.get_concrete_function(spec(2)) for f in (double, half)]
    content = converter(*functions).convert()
    model = Model.read(content)
    assert [s.signature_key for s in model.signature_defs] == ["double", "half"]
    assert [op_names(content, i) for i in (0, 1)] == [["MUL"], ["DIV"]]
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=content)
    for key, expected in (("double", 4.0), ("half", 1.0)):
        actual = interpreter.get_signature_runner(key)(x=np.full(2, 2.0, np.float32))
        np.testing.assert_array_equal(actual["output_0"], [expected] * 2)


def test_unknown_sizes_are_1_with_a_signature_of_minus_1() -> None:
    model = Model.read(converter(concrete(ow.sin, spec(None, 3, None))).convert())
    for tensor in model.subgraphs[0].tensors:
        assert tensor.shape.tolist() == [1, 3, 1]
        assert tensor.shape_signature.tolist() == [-1, 3, -1]
        assert tensor.has_rank


def test_equal_constants_share_a_buffer() -> None:
    weights = f32(40, 40)

    def function(x: object) -> object:
        return ow.matmul(x, weights) + ow.matmul(ow.sin(x), weights.copy())

    model = Model.read(converter(concrete(function, spec(2, 40))).convert())
    large = [b for b in model.buffers if b.data is not None and len(b.data) == weights.nbytes]
    assert len(large) == 1


def test_variables_are_frozen_to_their_values() -> None:
    v = ow.Variable([1.0, 2.0])
    function = concrete(lambda x: x * v + v, spec(2))
    made = converter(function)
    v.assign([3.0, 4.0])
    content = made.convert()
    assert op_names(content) == ["MUL", "ADD"]
    np.testing.assert_array_equal(official(content, [np.ones(2, np.float32)])[0], [6, 8])
    v.assign([0.0, 0.0])
    assert made.convert() != content


def test_captured_tensors_are_constants() -> None:
    c = ow.constant([1.0, 2.0])
    content = converter(concrete(lambda x: x + c, spec(2))).convert()
    np.testing.assert_array_equal(official(content, [np.ones(2, np.float32)])[0], [2, 3])


@pytest.mark.parametrize(
    ("attrs", "version"), [({}, 1), ({"limit": 0.25}, 2), ({"kind": "int8"}, 3), ({"limit": 0.25, "kind": "int8"}, 3)]
)
@pytest.mark.parametrize("place", ["code", "options"])
def test_custom_operators_carry_attributes_and_the_least_version(place: str, attrs: dict, version: int) -> None:
    function = concrete(lambda x: ConvertTestClip(x, **attrs), spec(2))
    model = Model.read(converter(function, allow_custom_ops=True, custom_version_in=place).convert())
    (code,) = model.operator_codes
    assert code.builtin_code == schema.BuiltinOperator.CUSTOM
    assert (code.custom_code, code.version) == ("ConvertTestClip", version if place == "code" else 1)
    (operator,) = model.subgraphs[0].operators
    everything = {"limit": (2, 6.0), "names": (1, ["a", "b"]), "kind": (3, "int32")}
    expected = {name: attrs.get(name, default) for name, (since, default) in everything.items() if since <= version}
    inside = {"_version": version} if place == "options" else {}
    assert flexbuffers.decode_options(operator.custom_options) == expected | inside


def test_weights_lie_as_the_kernel_wants_them() -> None:
    filters = f32(3, 3, 4, 5)
    model = Model.read(converter(concrete(lambda x: ow.nn.conv2d(x, filters, 1, "SAME"), spec(1, 8, 8, 4))).convert())
    graph = model.subgraphs[0]
    tensor = graph.tensors[graph.operators[0].inputs[1]]
    assert tensor.shape.tolist() == [5, 3, 3, 4]
    held = np.frombuffer(bytes(model.buffers[tensor.buffer].data), np.float32).reshape(5, 3, 3, 4)
    np.testing.assert_array_equal(held, filters.transpose(3, 0, 1, 2))


def test_activations_are_merged_into_one_operator() -> None:
    def function(x: object) -> object:
        return ow.nn.relu6(ow.matmul(x, f32(4, 3)) + f32(3))

    model = Model.read(converter(concrete(function, spec(None, 4))).convert())
    (operator,) = model.subgraphs[0].operators
    assert operator.builtin_options.fused_activation_function == schema.ActivationFunctionType.RELU6
    assert len(model.subgraphs[0].tensors) == 4


def test_files_are_no_larger_than_what_they_hold() -> None:
    content = converter(concrete(lambda x: ow.matmul(x, f32(64, 64)), spec(1, 64))).convert()
    assert len(content) < 64 * 64 * 4 + 1500


def test_small_files_are_no_larger_than_the_official_converter_s() -> None:
    """648 bytes: what the official converter of 2.21 writes for this function."""
    assert len(converter(concrete(ow.sin, spec(5))).convert()) <= 648


def test_large_weights_fold_too() -> None:
    weights = ow.Variable(f32(600, 700))
    function = concrete(lambda x: ow.matmul(x, ow.transpose(weights * 2.0)), spec(None, 700))
    assert op_names(converter(function).convert()) == ["FULLY_CONNECTED"]


def test_the_sets_of_operators_say_their_names():
    assert ow.lite.OpsSet.get_options()[:3] == ["TFLITE_BUILTINS", "SELECT_TF_OPS", "TFLITE_BUILTINS_INT8"]
