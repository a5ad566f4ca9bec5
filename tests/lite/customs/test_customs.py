"""Test the shipped custom operators: names, resolution, precedence, and errors."""

from __future__ import annotations

import json
import struct
import subprocess
import sys

import numpy as np
import pytest
from custom_models import answers, custom_model

import opwright as ow
from opwright import lite
from opwright.lite import customs
from opwright.tools.compatibility import check_model
from opwright.tools.selective_build import write_resolver

rng = np.random.default_rng(0)


def f32(*shape):
    return rng.normal(0, 1, shape).astype(np.float32)


def test_every_name_has_a_definition_with_a_formula():
    assert customs.list_names() == sorted(customs.list_names())
    for name in customs.list_names():
        for low, high in customs.versions_of(name):
            for version in range(low, high + 1):
                operator = customs.get(name, version)
                assert operator.formula, name
                assert operator.versions == (low, high)
        assert customs.find(name, 99) is None


def test_names_that_are_none():
    assert customs.find("Atan", 1) is None
    assert customs.versions_of("Atan") == []
    with pytest.raises(ow.errors.NotFoundError, match="no custom operator of this name is shipped"):
        customs.get("Atan")
    with pytest.raises(ow.errors.NotFoundError, match="no such version"):
        customs.get("Mfcc", 2)


def test_an_interpreter_imports_no_family_it_does_not_need():
    code = (
        "import sys; from opwright import lite; lite.BuiltinOpResolver().find_custom('Atan'); "
        "found = [m for m in sys.modules if m.startswith('opwright.lite.customs.')]; "
        "assert {m.rpartition('.')[2] for m in found} == {'definition'}, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@ow.operator(name="Roll", version=3)
class Mine:
    """Something else.   .. math:: y = 2 x"""

    x = ow.Input(dtypes=ow.floating)
    shift = ow.Input()
    axis = ow.Input()
    y = ow.Output(like="x")

    def compute(op, x, shift, axis):
        return 2 * x


def test_custom_ops_go_first():
    inputs = [f32(3), np.array(1, np.int32), np.array(0, np.int32)]
    assert np.array_equal(answers("Roll", inputs, ["FLOAT32"])[0], np.roll(inputs[0], 1))
    assert np.array_equal(answers("Roll", inputs, ["FLOAT32"], custom_ops=[Mine])[0], 2 * inputs[0])
    resolver = lite.MutableOpResolver()
    resolver.add_custom("Roll", Mine, 1, 3)
    assert np.array_equal(answers("Roll", inputs, ["FLOAT32"], op_resolver=resolver)[0], 2 * inputs[0])
    with pytest.raises(RuntimeError, match="Encountered unresolved custom op: Roll"):
        answers("Roll", inputs, ["FLOAT32"], op_resolver=lite.MutableOpResolver())


def test_a_version_that_is_not_shipped_is_an_error():
    with pytest.raises(RuntimeError, match=r"(?s)unresolved custom op: Roll.*wanted  Roll version 1"):
        answers("Roll", [f32(3), np.array(1), np.array(0)], ["FLOAT32"], version=2)


def test_check_and_resolver_know_what_is_shipped(tmp_path, capsys):
    model = tmp_path / "m.tflite"
    inputs = [f32(1, 2, 2), f32(1, 4, 4)]
    custom_model("TransformLandmarks", inputs, ["FLOAT32"], b"", 2).write(model)
    assert check_model(str(model), None, [], strict=True, as_json=True)
    result = json.loads(capsys.readouterr().out)
    assert [(row["operator"], row["here"], row["known"]) for row in result["operators"]] == [
        ("TransformLandmarks", "yes", "shipped")
    ]
    out = tmp_path / "my_resolver.py"
    assert write_resolver([str(model)], str(out), measure=False, as_json=False)
    scope: dict = {}
    exec(out.read_text("utf-8"), scope)
    assert scope["SHIPPED"] == {"TransformLandmarks": (2, 2)}
    content = model.read_bytes()
    interpreter = lite.Interpreter(model_content=content, op_resolver=scope["Resolver"]())
    interpreter.allocate_tensors()


def test_options_are_read_as_the_official_kernels_read_them():
    """Keys that are not known count nothing; numbers are converted; what is missing has its default."""
    x = f32(64, 1)
    want = answers("AudioSpectrogram", [x], ["FLOAT32"], {"window_size": 20, "stride": 10})[0]
    loose = {"window_size": 20.0, "stride": 10.9, "magnitude_squared": 0, "_output_quantized": True, "other": "x"}
    assert np.array_equal(answers("AudioSpectrogram", [x], ["FLOAT32"], loose)[0], want)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_files_of_our_converter_run_by_themselves(dtype):
    def f(x):
        return ow.nn.max_pool_with_argmax(x, 2, 2, "SAME", output_dtype=ow.as_dtype(dtype))

    x = f32(2, 5, 5, 2)
    run = ow.function(f, input_signature=[ow.TensorSpec(x.shape, ow.float32)])
    converter = lite.TFLiteConverter.from_concrete_functions([run.get_concrete_function()], run)
    converter.allow_custom_ops = True
    interpreter = lite.Interpreter(model_content=converter.convert())
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    for detail, expected in zip(interpreter.get_output_details(), run(x), strict=True):
        actual = interpreter.get_tensor(detail["index"])
        assert actual.dtype == expected.numpy().dtype
        assert np.array_equal(actual, expected.numpy())


DETECTION = {
    "max_detections": 3,
    "max_classes_per_detection": 1,
    "num_classes": 2,
    "nms_iou_threshold": 0.5,
    "nms_score_threshold": 0.0,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}
FOUR = ["FLOAT32"] * 4
BOXES = [f32(1, 5, 4), f32(1, 5, 3), np.abs(f32(5, 4))]
MFCC = {
    "upper_frequency_limit": 4000,
    "lower_frequency_limit": 20,
    "filterbank_channel_count": 4,
    "dct_coefficient_count": 3,
}
CROP = {
    "subset_idxs": [0, 1],
    "left_rotation_idx": 0,
    "right_rotation_idx": 1,
    "output_height": 2,
    "output_width": 2,
    "scale_x": 1.0,
    "scale_y": 1.0,
}
VOLUME = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 1, 1, 1], "padding": "VALID"}
BAD = {
    "TFLite_Detection_PostProcess": [
        (BOXES, FOUR, {**DETECTION, "nms_iou_threshold": 0.0}, 1, "nms_iou_threshold is out of its range"),
        (BOXES, FOUR, {**DETECTION, "num_classes": 4}, 1, "scores have another number of classes"),
        (BOXES, FOUR, {**DETECTION, "max_classes_per_detection": 0}, 1, "max_classes_per_detection is too small"),
        (BOXES, FOUR, {**DETECTION, "max_detections": 2**60}, 1, "the list of boxes would take"),
        (BOXES, FOUR, {**DETECTION, "h_scale": 0.0}, 1, "h_scale is not positive"),
        (BOXES, FOUR, {**DETECTION, "max_detections": "many"}, 1, "option 'max_detections' has the wrong type"),
        ([BOXES[0], BOXES[1], BOXES[2][:4]], FOUR, DETECTION, 1, "do not fit each other"),
        ([f32(2, 5, 4), f32(2, 5, 3), BOXES[2]], FOUR, DETECTION, 1, "more than one image"),
        ([BOXES[0], BOXES[1], -BOXES[2]], FOUR, DETECTION, 1, "a box ends before it begins"),
        (BOXES[:2], FOUR, DETECTION, 1, "wrong number of inputs"),
        (BOXES, FOUR[:3], DETECTION, 1, "another number of outputs"),
        (BOXES, FOUR, b"\x01\x02\x03", 1, "FlexBuffers"),
    ],
    "AudioSpectrogram": [
        ([f32(9, 1)], ["FLOAT32"], {"window_size": 1, "stride": 1}, 1, "window_size is too short"),
        ([f32(9, 1)], ["FLOAT32"], {"window_size": 4, "stride": 0}, 1, "stride is not positive"),
        ([f32(9, 1)], ["FLOAT32"], {"window_size": 2**40, "stride": 1}, 1, "the window would take"),
        ([f32(9)], ["FLOAT32"], {"window_size": 4, "stride": 1}, 1, "rank"),
    ],
    "Mfcc": [
        ([f32(1, 2, 9), np.array([8000], np.int32)], ["FLOAT32"], {**MFCC, "dct_coefficient_count": 5}, 1, "range"),
        ([f32(1, 2, 9), np.array([8000], np.int32)], ["FLOAT32"], {**MFCC, "upper_frequency_limit": 20}, 1, "a range"),
        ([f32(1, 2, 9), np.array([0], np.int32)], ["FLOAT32"], MFCC, 1, "sample_rate is not positive"),
        ([f32(1, 2, 1), np.array([8000], np.int32)], ["FLOAT32"], MFCC, 1, "too few frequencies"),
    ],
    "NumericVerify": [
        ([f32(3).astype(np.float16), f32(3) + 9], ["FLOAT32"], {"tolerance": 1.0, "log_if_failed": True}, 1, "too far"),
        ([f32(3), f32(3)], ["FLOAT32"], {}, 1, "x is not quantised"),
    ],
    "aeq.hadamard_rotation": [
        ([f32(2, 6)], ["FLOAT32"], {"hadamard_size": 6}, 1, "not a power of 2"),
        ([f32(2, 6)], ["FLOAT32"], {"hadamard_size": 4}, 1, "does not divide the features"),
        ([f32(4)], ["FLOAT32"], {"hadamard_size": 4}, 1, "neither a matrix"),
    ],
    "MaxPoolingWithArgmax2D": [
        ([f32(1, 4, 4, 1)], ["FLOAT32"] * 2, struct.pack("<6i", 0, 1, 1, 2, 2, 0), 1, "neither SAME nor VALID"),
        ([f32(1, 4, 4, 1)], ["FLOAT32"] * 2, struct.pack("<6i", 1, 0, 1, 2, 2, 0), 1, "stride_w must be positive"),
        ([f32(1, 4, 4, 1)], ["FLOAT32"] * 2, b"", 1, "must be positive"),
    ],
    "MaxPoolWithArgmax": [
        ([f32(1, 4, 4, 1)], ["FLOAT32", "INT64"], {"ksize": [1, 2, 2]}, 1, "ksize does not fit a pool of rank 4"),
        (
            [f32(1, 4, 4, 1)],
            ["FLOAT32", "INT8"],
            {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME"},
            1,
            "the indices have no index type",
        ),
    ],
    "AvgPool3D": [
        ([f32(1, 3, 3, 3, 1)], ["FLOAT32"], {**VOLUME, "padding": "FULL"}, 1, "neither SAME nor VALID"),
        ([f32(1, 3, 3, 3, 1)], ["FLOAT32"], {**VOLUME, "data_format": "NCDHW"}, 1, "data_format is not NDHWC"),
        ([f32(1, 3, 3, 3, 1)], ["FLOAT32"], {**VOLUME, "strides": [1, 0, 1, 1, 1]}, 1, "strides does not fit a pool"),
    ],
    "Convolution2DTransposeBias": [
        ([f32(1, 2, 2, 3), f32(2, 2, 2, 4), f32(2)], ["FLOAT32"], struct.pack("<3i", 1, 1, 1), 1, "channels of filter"),
        ([f32(1, 2, 2, 3), f32(2, 2, 2, 3), f32(3)], ["FLOAT32"], struct.pack("<3i", 1, 1, 1), 1, "the bias does not"),
    ],
    "DenseImageWarp": [([f32(1, 1, 3, 2), f32(1, 1, 3, 2)], ["FLOAT32"], b"", 1, "the image is too small")],
    "TransformTensorBilinear": [
        ([f32(1, 3, 3, 2), f32(1, 4, 4)], ["FLOAT32"], {"output_height": 0, "output_width": 2}, 2, "no pixels"),
        ([f32(1, 3, 3, 2), f32(1, 3, 3)], ["FLOAT32"], {"output_height": 2, "output_width": 2}, 2, "16 elements"),
        ([f32(1, 3, 3, 2), f32(1, 4, 4)], ["FLOAT32"], {"output_size": [2, 2], "mode": "nearest"}, 1, "mode"),
    ],
    "TransformLandmarks": [
        ([f32(1, 1, 1, 9), f32(1, 4, 4)], ["FLOAT32"], {"dimensions": 4}, 1, "neither 2 nor 3"),
        ([f32(1, 1, 1, 8), f32(1, 4, 4)], ["FLOAT32"], {"dimensions": 3}, 1, "not hold whole points"),
    ],
    "Landmarks2TransformMatrix": [
        ([f32(1, 3, 3)], ["FLOAT32"], {**CROP, "subset_idxs": [0, 3]}, 2, "subset_idxs names landmarks"),
        ([f32(1, 3, 3)], ["FLOAT32"], {**CROP, "subset_idxs": []}, 2, "subset_idxs names landmarks"),
        ([f32(1, 3, 3)], ["FLOAT32"], {**CROP, "scale_x": 0.0}, 2, "scale_x is not positive"),
    ],
    "Roll": [
        ([f32(3, 2), np.array(1), np.array(2)], ["FLOAT32"], b"", 1, "axis 2 is out of range"),
        ([f32(3, 2), np.array([1, 2]), np.array([0])], ["FLOAT32"], b"", 1, "shift and axis do not fit"),
    ],
    "BroadcastGradientArgs": [([np.array([2]), np.array([3])], ["INT64"] * 2, b"", 1, "the shapes do not broadcast")],
    "Table": [([np.zeros(3, np.int8), np.zeros(513, np.int8)], ["INT8"], b"", 1, "256 entries")],
    "IRFFT2D": [
        ([f32(3, 3).astype(np.complex64), np.array([0, 4], np.int32)], ["FLOAT32"], b"", 1, "not positive"),
        ([f32(3, 3).astype(np.complex64), np.array([2**20, 2**20], np.int32)], ["FLOAT32"], b"", 1, "would take"),
    ],
    "RandomUniformInt": [
        ([np.array([3], np.int32), np.array(4), np.array(4)], ["INT64"], {}, 1, "minval is not below maxval")
    ],
    "odml.scaled_dot_product_attention": [
        ([f32(1, 2, 3, 4), f32(1, 5, 2, 4), f32(1, 5, 2, 4), f32(1, 1, 1, 5)], ["FLOAT32"], {}, 1, "do not fit each"),
        ([f32(1, 2, 2, 4), f32(1, 5, 2, 4), f32(1, 5, 2, 4), f32(1, 4, 2, 5)], ["FLOAT32"], {}, 1, "broadcast"),
    ],
    "odml.update_external_kv_cache": [
        (
            [f32(1, 4, 1, 2), f32(1, 4, 1, 2), np.array([4], np.int32), f32(1, 1, 1, 2), f32(1, 1, 1, 2)],
            ["FLOAT32"] * 2,
            b"",
            1,
            "a position is outside the cache",
        )
    ],
    "odml.update_kv_cache": [
        ([np.arange(5), f32(1, 5, 1, 2), f32(1, 5, 1, 2)], ["FLOAT32"] * 2, {"kv_cache_max": 4}, 1, "the cache holds"),
        (
            [np.arange(2), f32(1, 2, 1, 2), f32(1, 2, 1, 2)],
            ["FLOAT32"] * 2,
            {"kv_cache_max": 4, "num_layers": 1, "layer_index": 1},
            1,
            "layer_index is out",
        ),
    ],
    "HashTableV2": [
        ([], ["INT32"], {"key_dtype": 5, "value_dtype": 4}, 1, "the table has no name"),
        ([], ["INT32"], {"table_name": "a", "key_dtype": 0, "value_dtype": 4}, 1, "no hash table has these types"),
        ([], ["FLOAT32"], {"table_name": "a"}, 1, "handle has the wrong type"),
    ],
    "LookupTableSizeV2": [([np.array([5], np.int32)], ["INT64"], b"", 1, "does not stand for a hash table")],
}
EACH = [pytest.param(name, *row, id=f"{name}-{i}") for name, rows in BAD.items() for i, row in enumerate(rows)]


@pytest.mark.parametrize(("name", "inputs", "outputs", "options", "version", "says"), EACH)
def test_what_is_wrong_is_said(name, inputs, outputs, options, version, says):
    with pytest.raises((RuntimeError, ValueError, ow.errors.OpError), match=says) as caught:
        answers(name, inputs, outputs, options, version)
    assert name in str(caught.value)
