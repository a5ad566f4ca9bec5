"""Quantized ONNX models become quantized files: results of onnxruntime, operators on integers."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import opwright as ow
from thorough import sampled

pytestmark = pytest.mark.usefixtures("reference_unless_thorough")
onnx = pytest.importorskip("onnx")
FILE, inputs_of = (getattr(pytest.importorskip("record_quantized_models"), name) for name in ("FILE", "inputs_of"))

# Operators that no pair can turn into one on integers, with the number of float operators expected in the file.
FLOAT = {"exp_of_reals": 0, "elu_of_reals": 1, "average_pool_finer": 1, "mobile_qdq_uint8_weights": 9}
STEPS = {"mobile_qdq_uint8": 2, "mobile_qdq_int16": 2}
"""Scales of the result by which networks may be off, where rounding of one layer is amplified by others."""


@functools.cache
def recorded():
    with np.load(FILE) as arrays:
        return {name: arrays[name] for name in arrays.files}


NAMES = sorted(name.partition(".")[0] for name in recorded() if name.endswith(".model"))


def read(name):
    """Return a model, its inputs, the result of onnxruntime and the scale of the result."""
    model = onnx.load_from_string(recorded()[f"{name}.model"].tobytes())
    return model, inputs_of(model), recorded()[f"{name}.y"], float(recorded()[f"{name}.step"])


def converted(model):
    f = ow.from_onnx(model)
    return ow.lite.TFLiteConverter.from_concrete_functions([f.named().get_concrete_function()]).convert()


def run(interpreter, inputs):
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(
            detail["index"], inputs[detail["name"].partition(":")[0].removeprefix("serving_default_")]
        )
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def on_reals(content):
    """Return the operators of a file that compute on float32."""
    model = ow.lite.Model.read(content)
    graph = model.subgraphs[0]
    names = []
    for node in graph.operators:
        name = model.operator_codes[node.opcode_index].builtin_code.name
        first = [graph.tensors[i].type.name for i in node.inputs if i >= 0]
        if name not in ("QUANTIZE", "DEQUANTIZE") and "FLOAT32" in first:
            names.append(name)
    return names


@pytest.mark.parametrize("name", sampled(NAMES, 4))
def test_files_compute_on_integers_as_onnxruntime(name):
    model, inputs, expected, step = read(name)
    got = ow.from_onnx(model)(**inputs).numpy()
    np.testing.assert_allclose(got.astype("f8"), expected.astype("f8"), rtol=0, atol=1.01 * step)
    content = converted(model)
    assert len(on_reals(content)) == FLOAT.get(name, 0), on_reals(content)
    from ai_edge_litert.interpreter import Interpreter

    for interpreter in (ow.lite.Interpreter(model_content=content), Interpreter(model_content=content)):
        got = run(interpreter, inputs)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(
            got.astype("f8"), expected.astype("f8"), rtol=0, atol=1.01 * step * STEPS.get(name, 1), err_msg=name
        )
