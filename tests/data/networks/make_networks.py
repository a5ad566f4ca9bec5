"""Makes the corpus of networks: small .tflite files by TensorFlow's converter.

    python tests/data/networks/make_networks.py [NAME ...]        where TensorFlow and tf_keras are installed
    python tests/data/networks/make_torch_networks.py             where litert-torch is: its files (no answers)
    python tests/data/networks/answer_networks.py                 where ai-edge-litert is: official.npz for all files

Lives here: converting each network of the tables (vision_made.py, sequences_made.py, programs_made.py) in its kinds to
NAME_KIND.tflite beside this file.  Not here: networks of other producers, the answers.

A file is made in a process of its own: the converter's calibration crashes for some networks.
"""

import os
import pathlib
import sys
import tempfile

import numpy as np
import programs_made
import sequences_made
import tensorflow as tf
import vision_made

HERE = pathlib.Path(__file__).parent
TABLE = {**vision_made.NETWORKS, **sequences_made.NETWORKS, **programs_made.NETWORKS}
OPS = tf.lite.OpsSet
INT8, INT16 = OPS.TFLITE_BUILTINS_INT8, OPS.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
FULL = {"optimizations": [tf.lite.Optimize.DEFAULT], "supported_ops": [INT8, OPS.TFLITE_BUILTINS]}
KINDS = {
    "float": {},
    "float16": {"optimizations": [tf.lite.Optimize.DEFAULT], "supported_types": [tf.float16]},
    "dynamic": {"optimizations": [tf.lite.Optimize.DEFAULT]},
    "int8": FULL,
    "tensors": FULL | {"_experimental_disable_per_channel": True},  # one scale a tensor
    "bytes": FULL | {"inference_input_type": tf.int8, "inference_output_type": tf.int8},
    "uint8": FULL | {"inference_input_type": tf.uint8, "inference_output_type": tf.uint8},
    "older": FULL | {"experimental_new_quantizer": False},
    "int16x8": FULL | {"supported_ops": [INT16, OPS.TFLITE_BUILTINS]},
}
"""Converter settings by kind of file."""


def samples(model):
    """Representative data for a Keras model: normal floats, integers below 8."""
    rng = np.random.default_rng(5)
    for _ in range(4):
        drawn = []
        for x in model.inputs:
            shape, dtype = [1, *(size or 9 for size in x.shape[1:])], tf.as_dtype(x.dtype)
            values = rng.standard_normal(shape) if dtype.is_floating else rng.integers(0, 8, shape)
            drawn.append(values.astype(dtype.as_numpy_dtype))
        yield drawn


def enliven(model):
    """Statistics and biases as training leaves them, not zeros and ones."""
    rng = np.random.default_rng(11)
    for weight in model.weights:
        path = getattr(weight, "path", weight.name)
        if "moving_var" in path or ("gamma" in path and len(weight.shape) == 1):
            weight.assign(rng.uniform(0.7, 1.3, weight.shape).astype("float32"))
        elif "moving_mean" in path or "beta" in path or "bias" in path:
            weight.assign(rng.normal(0, 0.1, weight.shape).astype("float32"))


def converter_of(result, folder):
    """The converter of what a maker of the tables gave: a model of Keras 3 or 2, or functions by signature."""
    if isinstance(result, tf.Module) and hasattr(result, "signatures_made"):
        concrete = {}
        for key, (function, specs) in result.signatures_made.items():
            traced = tf.function(function)
            setattr(result, f"f_{key}", traced)
            concrete[key] = traced.get_concrete_function(**specs)
        tf.saved_model.save(result, folder, signatures=concrete)
        return tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=list(concrete))
    enliven(result)
    if isinstance(result, tf.keras.Model):
        return tf.lite.TFLiteConverter.from_keras_model(result)
    run = tf.function(lambda x: result(x))
    spec = tf.TensorSpec([1, *result.inputs[0].shape[1:]], result.inputs[0].dtype)
    return tf.lite.TFLiteConverter.from_concrete_functions([run.get_concrete_function(spec)], result)


def make(name, kind):
    """Write one file."""
    tf.keras.utils.set_random_seed(3)
    result = TABLE[name].build()
    with tempfile.TemporaryDirectory() as folder:
        converter = converter_of(result, folder)
        settings = KINDS[kind] | TABLE[name].settings
        if KINDS[kind].get("supported_ops"):
            settings["representative_dataset"] = lambda: samples(result)
        for key, value in settings.items():
            setattr(converter.target_spec if key.startswith("supported_") else converter, key, value)
        content = converter.convert()
    (HERE / f"{name}_{kind}.tflite").write_bytes(content)
    print(f"{name}_{kind}: {len(content)} bytes", file=sys.stderr, flush=True)


def main():
    """Make every file of the networks named, or of all."""
    failed = []
    for name in sys.argv[1:] or TABLE:
        for kind in TABLE[name].kinds:
            child = os.fork()
            if child == 0:
                try:
                    make(name, kind)
                except Exception as error:
                    print(f"{name}_{kind}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr, flush=True)
                    os._exit(1)
                os._exit(0)
            if os.waitpid(child, 0)[1]:
                failed.append(f"{name}_{kind}")
    print("failed:", failed, file=sys.stderr)


if __name__ == "__main__":
    main()
