"""Writes quantize_official.json: what TensorFlow's converter makes of the networks. Run with TensorFlow installed:

    python tests/lite/quantize/quantize_official.py

Of each network and kind of quantisation: the file's size, its operators, scale and zero point of each quantised tensor
(of more than one scale: all scales), and the signal-to-noise ratio in dB of its answers beside the float function's.
Of each with sparse weights: the file's size, and whether the official run time takes it.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from quantize_networks import NETWORKS, OPERATORS, SPARSE, samples_of, weights_of  # noqa: E402

KINDS = ("float16", "dynamic", "int8", "int16x8")
INT16 = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8


def converted(function: object, name: str, kind: str) -> bytes:
    """The official converter's file."""
    specs = [tf.TensorSpec(shape, tf.float32) for shape in (NETWORKS | SPARSE)[name].shapes]
    with tempfile.TemporaryDirectory() as folder:  # the way that writes signatures, as ours does
        module = tf.Module()
        module.call = function
        tf.saved_model.save(module, folder, signatures=signature_of(function, specs))
        return configured(tf.lite.TFLiteConverter.from_saved_model(folder), name, kind).convert()


def signature_of(function: object, specs: list) -> object:
    """The function with its results by name, as a signature wants them."""
    named = tf.function(lambda *xs: {f"output_{i}": y for i, y in enumerate(tf.nest.flatten(function(*xs)))})
    return named.get_concrete_function(*(tf.TensorSpec(s.shape, s.dtype, name=f"x{i}") for i, s in enumerate(specs)))


def configured(converter: object, name: str, kind: str) -> object:
    """With the settings of a kind."""
    converter.optimizations = [tf.lite.Optimize.DEFAULT] if kind != "float" else []
    if name in SPARSE:
        converter.optimizations.append(tf.lite.Optimize.EXPERIMENTAL_SPARSITY)
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if kind.startswith("int"):
        named = [{f"x{i}": v for i, v in enumerate(sample)} for sample in samples_of(name)]
        converter.representative_dataset = lambda: iter(named)
    if kind == "int16x8":
        converter.target_spec.supported_ops = [INT16, tf.lite.OpsSet.TFLITE_BUILTINS]
    return converter


def facts(content: bytes, function: object, name: str) -> dict:
    """Return the stored properties of a file."""
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    scales = []
    for detail in interpreter.get_tensor_details():
        result = detail["quantization_parameters"]
        if len(result["scales"]):
            scales.append(
                [
                    detail["dtype"].__name__,
                    [float(f"{s:.9g}") for s in result["scales"].tolist()],
                    int(result["zero_points"][0]),
                ]
            )
    operators = sorted(op["op_name"] for op in interpreter._get_ops_details() if op["op_name"] != "DELEGATE")
    return {"size": len(content), "operators": operators, "scales": scales, "snr": snr(interpreter, function, name)}


def snr(interpreter: object, function: object, name: str) -> float:
    """Over samples that calibration has not seen."""
    signal = noise = 1e-30
    for sample in samples_of(name, seed=2):
        for detail, value in zip(sorted(interpreter.get_input_details(), key=lambda d: d["name"]), sample):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        expected = tf.nest.flatten(function(*map(tf.constant, sample)))
        for detail, value in zip(sorted(interpreter.get_output_details(), key=lambda d: d["name"]), expected):
            value = value.numpy().astype(np.float64)
            signal += np.sum(value**2)
            noise += np.sum((interpreter.get_tensor(detail["index"]) - value) ** 2)
    return round(float(10 * np.log10(signal / noise)), 1)


def runs(content: bytes) -> bool:
    """Whether the official run time takes its own converter's file."""
    try:
        tf.lite.Interpreter(model_content=content).allocate_tensors()
    except RuntimeError:
        return False
    return True


def main() -> None:
    kept: dict = {}
    for name, network in NETWORKS.items():
        function = tf.function(network.make(tf, weights_of(name)))
        for kind in KINDS if name not in OPERATORS else ("int8",):
            kept.setdefault(name, {})[kind] = facts(converted(function, name, kind), function, name)
    for name, network in SPARSE.items():
        function = tf.function(network.make(tf, weights_of(name)))
        for kind in ("float", "float16", "dynamic", "int8"):
            content = converted(function, name, kind)
            kept.setdefault(f"sparse: {name}", {})[kind] = {"size": len(content), "runs": runs(content)}
    rows = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in kept.items()]
    HERE.joinpath("quantize_official.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
