"""Programs that quantize values themselves: which arithmetic is a pair, and which settings keep it."""

from __future__ import annotations

import numpy as np
import pytest
from lite_kit import op_names

import opwright as ow

S, Z, T = np.float32(0.05), 7, np.float32(0.04)
W = (np.float32([[1, -127, 3], [64, 5, -6], [7, 100, 9], [-2, 33, 127]]) * np.float32(0.01)).astype(np.float32)


def divided(x, s, z, dtype=np.int8):
    """Quantize as the ONNX standard writes it."""
    q = ow.math.rint(x / s) + np.float32(z)
    return ow.cast(ow.minimum(ow.maximum(q, np.float32(-128)), np.float32(127)), dtype)


def multiplied(x, s, z):
    """Quantize as PyTorch writes it."""
    q = ow.round(x * np.float32(1 / s)) + np.float32(z)
    return ow.cast(ow.clip_by_value(q, np.float32(-128), np.float32(127)), np.int8)


def on_integers(x, s, z):
    """Quantize with the zero point added to integers."""
    q = ow.cast(ow.math.rint(x / s), np.int32) + np.int32(z)
    return ow.cast(ow.minimum(np.int32(127), ow.maximum(np.int32(-128), q)), np.int8)


def restored(q, s, z):
    return ow.cast(ow.cast(q, np.int32) - np.int32(z), np.float32) * s


def restored_in_reals(q, s, z):
    return s * (ow.cast(q, np.float32) - np.float32(z))


def of_halves(x, s, z):
    """Miss: the zero point is no integer."""
    return divided(x, s, z + 0.5)


def by_channel(x, s, z):
    """Miss: a scale for each channel."""
    return divided(x, s * np.arange(1, x.shape[-1] + 1, dtype=np.float32), z)


def content_of(quantize, dequantize, **settings):
    @ow.function(input_signature=[ow.TensorSpec([2, 4])])
    def layer(x):
        y = dequantize(quantize(x, S, Z), S, Z) @ W
        return dequantize(quantize(y, T, -3), T, -3)

    converter = ow.lite.TFLiteConverter.from_concrete_functions([layer.get_concrete_function()])
    for name, value in settings.items():
        setattr(converter, name, value)
    return layer, converter.convert()


def agree(layer, content):
    x = np.random.default_rng(0).normal(0, 3, (2, 4)).astype(np.float32)
    interpreter = ow.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(got, layer(x).numpy(), rtol=0, atol=1.01 * T)


INTEGERS = ["QUANTIZE", "FULLY_CONNECTED", "DEQUANTIZE"]


@pytest.mark.parametrize("dequantize", [restored, restored_in_reals])
@pytest.mark.parametrize("quantize", [divided, multiplied, on_integers])
def test_forms_of_a_pair(quantize, dequantize):
    layer, content = content_of(quantize, dequantize)
    assert op_names(content) == INTEGERS
    agree(layer, content)


@pytest.mark.parametrize("quantize", [of_halves, by_channel])
def test_other_arithmetic_stays(quantize):
    layer, content = content_of(quantize, restored)
    assert "FULLY_CONNECTED" in op_names(content)
    assert "QUANTIZE" not in op_names(content)
    agree(layer, content)


def test_weights_keep_their_integers():
    """Integers of 0.01 are those of the file, whatever the greatest is."""
    _, content = content_of(divided, restored)
    model = ow.lite.Model.read(content)
    graph = model.subgraphs[0]
    (weights,) = (t for t in graph.tensors if t.type.name == "INT8" and tuple(t.shape) == (3, 4) and t.buffer)
    stored = np.frombuffer(bytes(model.buffers[weights.buffer].data), np.int8).reshape(3, 4)
    scales = np.asarray(weights.quantization.scale)[:, None]
    np.testing.assert_allclose(stored * scales, W.T, rtol=1e-6)
    np.testing.assert_array_equal(stored[2], [3, -6, 9, 127])


def test_settings_and_pairs():
    data = {"representative_dataset": lambda: [[np.ones((2, 4), np.float32)]]}
    default = {"optimizations": [ow.lite.Optimize.DEFAULT]}
    for settings in (default, default | data):
        layer, content = content_of(divided, restored, **settings)
        assert op_names(content) == INTEGERS
        agree(layer, content)
    target = ow.lite.TargetSpec()
    target.supported_ops = [ow.lite.OpsSet.TFLITE_BUILTINS_INT8]
    _, content = content_of(
        divided, restored, **default, target_spec=target, inference_input_type=ow.int8, inference_output_type=ow.int8
    )
    assert op_names(content) == ["FULLY_CONNECTED"]
