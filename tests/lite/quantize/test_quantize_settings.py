"""Settings of quantisation: what each asks for, TensorFlow's words for those at odds, and the forms of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from quantize_harness import INT16, convert, converter_of, litert, operators, run, tensor_types

import opwright as ow
from opwright.core.errors import InvalidArgumentError
from opwright.lite.format import Model, versions

DEFAULT, SETS = ow.lite.Optimize.DEFAULT, ow.lite.OpsSet
RANDOM = np.random.RandomState(0)
WEIGHTS = RANDOM.randn(40, 32).astype(np.float32)
SHAPE = (2, 40)


def dense(x: Any) -> Any:
    return ow.nn.relu(ow.matmul(x, WEIGHTS) + 0.5)


def samples() -> Any:
    return ([np.full(SHAPE, v, np.float32)] for v in (-1.0, 0.5, 1.0))


def converter(function: Any = dense, shape: tuple[int | None, ...] = SHAPE, **settings: Any) -> Any:
    target = {key: settings.pop(key) for key in ("supported_ops", "supported_types") if key in settings}
    made = converter_of(ow.function(function), [shape], kind="float", **settings)
    for key, value in target.items():
        setattr(made.target_spec, key, value)
    return made


INTEGER = {"optimizations": [DEFAULT], "representative_dataset": samples}

KINDS = [  # settings, types of tensors that tell the kind, types of input and output
    ({"optimizations": [DEFAULT]}, {"FLOAT32", "INT8"}, "float32", "float32"),
    ({"optimizations": {ow.lite.Optimize.OPTIMIZE_FOR_SIZE}}, {"FLOAT32", "INT8"}, "float32", "float32"),
    ({"optimizations": [ow.lite.Optimize.OPTIMIZE_FOR_LATENCY]}, {"FLOAT32", "INT8"}, "float32", "float32"),
    ({"optimizations": [DEFAULT], "supported_types": [ow.float16]}, {"FLOAT32", "FLOAT16"}, "float32", "float32"),
    ({"optimizations": [DEFAULT], "supported_types": [ow.float32]}, {"FLOAT32"}, "float32", "float32"),
    (INTEGER | {"supported_types": [ow.float16]}, {"FLOAT32", "FLOAT16"}, "float32", "float32"),
    (INTEGER | {"supported_types": [ow.float16, ow.int8]}, {"FLOAT32", "INT8", "INT32"}, "float32", "float32"),
    (INTEGER, {"FLOAT32", "INT8", "INT32"}, "float32", "float32"),
    (INTEGER | {"supported_ops": [SETS.TFLITE_BUILTINS_INT8]}, {"FLOAT32", "INT8", "INT32"}, "float32", "float32"),
    (
        INTEGER | {"supported_types": [ow.int8], "inference_input_type": ow.int8, "inference_output_type": ow.uint8},
        {"INT8", "INT32", "UINT8"},
        "int8",
        "uint8",
    ),
    (
        INTEGER | {"inference_input_type": ow.uint8, "inference_output_type": ow.float32},
        {"FLOAT32", "INT8", "INT32", "UINT8"},
        "uint8",
        "float32",
    ),
    (
        INTEGER | {"inference_input_type": ow.int16, "inference_output_type": ow.int16},
        {"INT8", "INT16", "INT32"},
        "int16",
        "int16",
    ),
    (
        INTEGER | {"supported_ops": [INT16, SETS.TFLITE_BUILTINS]},
        {"FLOAT32", "INT8", "INT16", "INT64"},
        "float32",
        "float32",
    ),
    (
        INTEGER | {"supported_ops": {INT16}, "inference_input_type": ow.int16, "inference_output_type": ow.int16},
        {"INT8", "INT16", "INT64"},
        "int16",
        "int16",
    ),
    (
        INTEGER | {"supported_ops": {INT16}, "_experimental_full_integer_quantization_bias_type": ow.int32},
        {"FLOAT32", "INT8", "INT16", "INT32"},
        "float32",
        "float32",
    ),
]


@pytest.mark.parametrize(("settings", "types", "inputs", "outputs"), KINDS, ids=range(len(KINDS)))
def test_settings_mean_what_they_mean_to_the_official_converter(
    settings: dict[str, Any], types: set[str], inputs: str, outputs: str
) -> None:
    content = converter(**settings).convert()
    assert tensor_types(content) == types
    interpreter = litert(content)
    assert np.dtype(interpreter.get_input_details()[0]["dtype"]).name == inputs
    assert np.dtype(interpreter.get_output_details()[0]["dtype"]).name == outputs
    x = np.ones(SHAPE, np.float32)
    expected = np.maximum(x @ WEIGHTS + 0.5, 0)
    assert np.abs(run(interpreter, [x])[0] - expected).max() < 0.02 * expected.max()


REFUSALS = [
    (
        {"optimizations": [DEFAULT], "inference_input_type": ow.int8},
        r"The inference_input_type and inference_output_type must be tf.float32\.",
    ),
    (INTEGER | {"inference_input_type": ow.int8, "supported_ops": [INT16]}, r"must be in \['tf.float32', 'tf.int16'\]"),
    (INTEGER | {"inference_output_type": ow.int32}, "inference_output_type"),
    (
        {"optimizations": [DEFAULT], "supported_ops": [SETS.TFLITE_BUILTINS_INT8]},
        "For full integer quantization, a `representative_dataset` must be specified.",
    ),
    (
        {"optimizations": [DEFAULT], "supported_types": [ow.int8]},
        "For full integer quantization, a `representative_dataset` must be specified.",
    ),
    (
        {"optimizations": [DEFAULT], "supported_ops": [INT16]},
        "For full integer quantization, a `representative_dataset` must be specified.",
    ),
    (
        INTEGER | {"supported_ops": [SETS.TFLITE_BUILTINS_INT8], "supported_types": [ow.float16]},
        "thus `target_spec.supported_types` should be left uninitizalized or set to {tf.int8}",
    ),
    ({"representative_dataset": samples}, "nothing would use it"),
    ({"representative_dataset": samples, "supported_ops": [SETS.TFLITE_BUILTINS_INT8]}, "no optimization is enabled"),
    ({"supported_types": [ow.float16]}, "no optimization is enabled"),
    (
        INTEGER | {"_experimental_full_integer_quantization_bias_type": ow.int64},
        "Expected bias type to be `dtypes.int32`",
    ),
    (
        INTEGER | {"supported_ops": [INT16], "_experimental_full_integer_quantization_bias_type": ow.int16},
        "Expected bias type to be `dtypes.int32` or `dtypes.int64`",
    ),
    (
        {"optimizations": [DEFAULT], "_experimental_full_integer_quantization_bias_type": ow.int32},
        "`full_integer_quantization_bias_type` is only supported for full integer quantization.",
    ),
    ({"optimizations": [DEFAULT], "representative_dataset": [[1.0]]}, "is not a function"),
    ({"optimizations": [DEFAULT], "representative_dataset": lambda: iter(())}, "yields no sample"),
]


@pytest.mark.parametrize(("settings", "words"), REFUSALS, ids=range(len(REFUSALS)))
def test_settings_at_odds_are_refused_in_the_official_words(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        converter(**settings).convert()


def two(x: Any, y: Any) -> Any:
    return x * 2.0 + y


X, Y = np.full((1, 4), 0.5, np.float32), np.full((1, 4), -3.0, np.float32)

FORMS = [
    [X, Y],
    (X, Y),
    {"x": X, "y": Y},
    {"y": Y, "x": X},
    ("serving_default", {"x": X, "y": Y}),
    [ow.constant(X), ow.constant(Y)],
    [X.tolist(), Y.tolist()],
]


@pytest.mark.parametrize("sample", FORMS, ids=range(len(FORMS)))
@pytest.mark.parametrize("wrapped", [False, True])
def test_samples_have_the_official_forms(sample: Any, wrapped: bool) -> None:
    dataset: Any = lambda: [sample]  # noqa: E731
    if wrapped:
        dataset = ow.lite.RepresentativeDataset(dataset)
    content = convert(two, (1, 4), (1, 4), representative_dataset=dataset, inference_input_type=ow.int8)
    first, second = (d["quantization"] for d in litert(content).get_input_details())
    assert first == (pytest.approx(0.5 / 255), -128)
    assert second == (pytest.approx(3.0 / 255), 127)


BAD_SAMPLES = [
    ([X], "other inputs"),
    ({"x": X}, "other names"),
    ({"x": X, "y": Y, "z": X}, "other names"),
    (("other", {"x": X, "y": Y}), 'Invalid signature_key provided: "other"'),
    (("serving_default", [X, Y]), "a dictionary with input names and values in the second argument"),
    (X, "You need to provide either a dictionary"),
    (3.0, "You need to provide either a dictionary"),
    ([X, Y.astype(np.float64)], "sample 0.*FLOAT64"),
    ([X, np.full((1, 4), np.nan, np.float32)], "tensor 'y' holds what has no range"),
    ([X, np.full((1, 4), -np.inf, np.float32)], "tensor 'y' holds what has no range"),
    ([np.full((1, 4), 3e38, np.float32), Y], "sample 0.*tensor 'Mul' holds what has no range"),
]


@pytest.mark.parametrize(("sample", "words"), BAD_SAMPLES, ids=range(len(BAD_SAMPLES)))
def test_samples_that_do_not_fit_are_named(sample: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"(?is){words}"):
        convert(two, (1, 4), (1, 4), representative_dataset=lambda: [sample])


def test_ranges_are_those_over_all_samples_of_any_batch() -> None:
    data = [[np.full((n, 4), v, np.float32)] for n, v in ((1, 1.0), (3, -2.0), (2, 0.0), (7, 4.0))]
    function = ow.function(lambda x: ow.nn.relu(x))
    content = converter_of(function, [(None, 4)], data, inference_input_type=ow.int8).convert()
    interpreter = litert(content)
    detail = interpreter.get_input_details()[0]
    assert detail["quantization"] == (pytest.approx(6 / 255), -43)
    assert detail["shape_signature"].tolist() == [-1, 4]
    interpreter.resize_tensor_input(detail["index"], [5, 4])
    interpreter.allocate_tensors()
    x = np.linspace(-2, 4, 20, dtype=np.float32).reshape(5, 4)
    assert np.abs(run(interpreter, [x])[0] - np.maximum(x, 0)).max() <= 6 / 255


def test_several_signatures_are_calibrated_each_on_its_samples() -> None:
    def function(scale: float) -> Any:
        return ow.function(lambda x: x * scale).get_concrete_function(ow.TensorSpec((2,), ow.float32))

    made = ow.lite.TFLiteConverter.from_concrete_functions([function(2.0), function(3.0)])
    keys = list(ow.lite.Interpreter(model_content=made.convert()).get_signature_list())
    made.optimizations = [DEFAULT]
    made.representative_dataset = lambda: [
        (keys[0], {"x": np.array([0, 1], np.float32)}),
        (keys[1], {"x": np.array([-5, 0], np.float32)}),
    ]
    interpreter = litert(made.convert())
    for key, scale, x in ((keys[0], 2, [0.25, 0.75]), (keys[1], 3, [-4.5, -1.0])):
        result = interpreter.get_signature_runner(key)(x=np.array(x, np.float32))["output_0"]
        assert np.abs(result - scale * np.array(x)).max() < 0.1
    made.representative_dataset = lambda: [[np.zeros(2, np.float32)]]
    with pytest.raises(InvalidArgumentError, match="2 signatures"):
        made.convert()
    made.representative_dataset = lambda: [(keys[0], {"x": np.zeros(2, np.float32)})]
    with pytest.raises(InvalidArgumentError, match=f"no sample.*{keys[1]}"):
        made.convert()


def scales_of(content: bytes) -> set[int]:
    return {len(t.quantization.scale) for t in Model.read(content).subgraphs[0].tensors if t.quantization}


@pytest.mark.parametrize("kind", ["dynamic", "int8"])
def test_one_scale_for_all_channels_where_asked(kind: str) -> None:
    assert scales_of(convert(dense, SHAPE, kind=kind)) - {0, 1} == {32}
    every = "_experimental_disable_per_channel"
    for flag in (every, f"{every}_quantization_for_dense_layers"):
        content = convert(dense, SHAPE, kind=kind, **{flag: True})
        assert not scales_of(content) - {0, 1}
        x = np.random.default_rng(1).uniform(-1, 1, SHAPE).astype(np.float32)
        expected = np.maximum(x @ WEIGHTS + 0.5, 0)
        assert np.abs(run(litert(content), [x])[0] - expected).max() < 0.05 * expected.max()


def test_only_dense_layers_lose_their_scales() -> None:
    filter = np.random.default_rng(2).standard_normal((3, 3, 4, 32), np.float32)
    content = convert(
        lambda x: ow.nn.conv2d(x, filter, 1, "SAME"),
        (1, 8, 8, 4),
        kind="dynamic",
        _experimental_disable_per_channel_quantization_for_dense_layers=True,
    )
    assert scales_of(content) - {0, 1} == {32}


def test_integers_alone_or_an_error_with_operators_lines_and_ways_out() -> None:
    def function(x: Any) -> Any:
        return ow.sin(ow.floor(x) + 1.0)

    with pytest.raises(ValueError, match="integer operators alone") as caught:
        convert(function, (4,), kind="integers")
    text = str(caught.value)
    assert "Quantization not yet supported for op: 'FLOOR'" in text
    assert "Quantization not yet supported for op: 'SIN'" in text
    assert "test_quantize_settings.py" in text
    assert "OpsSet.TFLITE_BUILTINS" in text
    assert "ADD" not in text
    result = convert(
        function,
        (4,),
        kind="integers",
        samples=[[np.ones(4, np.float32)]],
        target_spec=ow.lite.TargetSpec([SETS.TFLITE_BUILTINS, SETS.TFLITE_BUILTINS_INT8]),
    )
    assert operators(result) == ["FLOOR", "QUANTIZE", "ADD", "DEQUANTIZE", "SIN"]


def test_versions_and_run_time_are_stamped_for_the_quantised_operators() -> None:
    filter = np.random.default_rng(3).standard_normal((3, 3, 4, 8), np.float32)
    for kind, expected in (("float", 1), ("int8", 3), ("int16x8", 8)):
        settings = {} if kind != "float" else {"representative_dataset": None}
        content = convert(lambda x: ow.nn.conv2d(x, filter, 1, "SAME"), (1, 8, 8, 4), kind=kind, **settings)
        model = Model.read(content)
        actual = {versions.op_name(code): code.version for code in model.operator_codes}
        assert actual["CONV_2D"] == expected
        assert [code.version for code in model.operator_codes] == versions.versions_of_model(model)
        entry = next(m for m in model.metadata if m.name == versions.METADATA_NAME)
        written = bytes(model.buffers[entry.buffer].data).rstrip(b"\0").decode()
        assert written == versions.min_runtime_of_model(model)


def test_the_same_settings_give_the_same_bytes_and_leave_the_converter_as_it_was() -> None:
    made = converter(**INTEGER)
    assert made.convert() == made.convert() == converter(**INTEGER).convert()


def test_a_run_time_too_old_for_the_integer_operator_is_named() -> None:
    made = converter(**INTEGER)
    made.target_spec.runtime = "1.10"
    with pytest.raises(ValueError, match=r"run time 1\.10"):
        made.convert()


def test_integers_alone_name_custom_operators_by_their_own_names() -> None:
    concrete = ow.function(lambda x: ow.math.lgamma(x) + 1.0).get_concrete_function(ow.TensorSpec([4], ow.float32))
    converter = ow.lite.TFLiteConverter.from_concrete_functions([concrete])
    converter.allow_custom_ops = True
    converter.optimizations = [ow.lite.Optimize.DEFAULT]
    converter.target_spec.supported_ops = [ow.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.representative_dataset = lambda: [[np.ones(4, np.float32)]]
    with pytest.raises(ValueError, match=r"Quantization not yet supported for op: 'Lgamma' .*settings\.py:\d+"):
        converter.convert()
