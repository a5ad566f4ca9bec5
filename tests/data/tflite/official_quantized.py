"""Quantised, float16 and sparse models of the official corpus, as a table. Run by make_official.py."""

import numpy as np
import official_state
import tensorflow as tf
from official_float import cnn_float, small_cnn, spec, weights

MODELS = {}
OPS = tf.lite.OpsSet
INT16 = [OPS.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]


def model(function):
    """Add a maker to the table, under its name."""
    MODELS[function.__name__] = function
    return function


def samples(**shapes):
    """A representative dataset of eight seeded samples, by argument."""

    def generate():
        rng = np.random.default_rng(2)
        for _ in range(8):
            yield {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}

    def unnamed():
        for sample in generate():
            yield list(sample.values())

    return unnamed if "keras_tensor" in shapes else generate


DEFAULT = {"optimizations": [tf.lite.Optimize.DEFAULT]}


def full(ops=(OPS.TFLITE_BUILTINS_INT8,), io=None, **shapes):
    """Settings for full integer quantisation."""
    settings = DEFAULT | {"representative_dataset": samples(**shapes), "supported_ops": list(ops)}
    return settings | ({"inference_input_type": io, "inference_output_type": io} if io else {})


@model
def cnn_float16(rng):
    return cnn_float(rng) | DEFAULT | {"supported_types": [tf.float16]}


@model
def cnn_int8(rng):
    return cnn_float(rng) | full(x=(1, 16, 16, 3))


@model
def cnn_int8_io(rng):
    return cnn_float(rng) | full(io=tf.int8, x=(1, 16, 16, 3))


@model
def cnn_uint8_io(rng):
    return cnn_float(rng) | full(io=tf.uint8, x=(1, 16, 16, 3))


@model
def cnn_int16x8(rng):
    return cnn_float(rng) | full(INT16, x=(1, 16, 16, 3))


@model
def cnn_int16_io(rng):
    return cnn_float(rng) | full(INT16, tf.int16, x=(1, 16, 16, 3))


@model
def cnn_int8_unknown_batch(rng):
    result = full(x=(1, 16, 16, 3))
    return {"functions": {"serving_default": (small_cnn(rng), {"x": spec(None, 16, 16, 3)})}} | result


def dense(rng, n=64, m=48):
    w, b = weights(rng, n, m), weights(rng, m)
    return lambda x: {"y": tf.nn.relu(tf.matmul(x, w) + b)}


@model
def dense_dynamic_range(rng):
    """int8 weights, float activations: hybrid."""
    return {"functions": {"serving_default": (dense(rng), {"x": spec(3, 64)})}} | DEFAULT


@model
def conv_dynamic_range(rng):
    k, d = weights(rng, 3, 3, 8, 16), weights(rng, 3, 3, 16, 8)
    run = lambda x: {"y": tf.nn.conv2d(tf.nn.relu(tf.nn.conv2d(x, k, 1, "SAME")), d, 2, "SAME")}  # noqa: E731
    return {"functions": {"serving_default": (run, {"x": spec(1, 6, 6, 8)})}} | DEFAULT


@model
def dense_int8(rng):
    return {"functions": {"serving_default": (dense(rng, 16, 8), {"x": spec(3, 16)})}} | full(x=(3, 16))


@model
def mixed_int8(rng):
    """Integer kernels other than convolutions."""

    def run(x, y):
        a = tf.concat([x + y, x * y], 2)
        b = tf.nn.softmax(a) - tf.sigmoid(a)
        c = tf.reduce_mean(tf.tanh(b), 1, keepdims=True)
        d = tf.pad(x - y, [[0, 0], [1, 1], [0, 0]])
        return {
            "b": b,
            "c": c,
            "d": d,
            "e": tf.reduce_max(x, 2),
            "f": tf.maximum(x, y),
            "g": tf.transpose(x, [0, 2, 1]),
            "h": tf.nn.leaky_relu(x, 0.2),
            "i": x[:, :2],
            "j": tf.gather(x, [1, 0], axis=1),
            "k": tf.math.rsqrt(tf.abs(x) + 1.0),
        }

    return {"functions": {"serving_default": (run, {"x": spec(2, 3, 4), "y": spec(2, 3, 4)})}} | full(
        [OPS.TFLITE_BUILTINS_INT8, OPS.TFLITE_BUILTINS], x=(2, 3, 4), y=(2, 3, 4)
    )


@model
def matmul_int8(rng):
    run = lambda x, y: {"z": tf.matmul(x, y)}  # noqa: E731
    return {"functions": {"serving_default": (run, {"x": spec(2, 3, 4), "y": spec(2, 4, 5)})}} | full(
        x=(2, 3, 4), y=(2, 4, 5)
    )


def fake_quant_model(rng, bits):
    w, b = weights(rng, 16, 8), weights(rng, 8)

    def run(x):
        x = tf.quantization.fake_quant_with_min_max_args(x, -3, 3)
        q = tf.quantization.fake_quant_with_min_max_vars(w, -0.7, 0.7, num_bits=bits, narrow_range=True)
        return {"y": tf.quantization.fake_quant_with_min_max_args(tf.matmul(x, q) + b, -4, 4)}

    return {"functions": {"serving_default": (run, {"x": spec(2, 16)})}}


@model
def quantization_aware(rng):
    """Ranges from training (FAKE_QUANT)."""
    return fake_quant_model(rng, 8) | DEFAULT


@model
def dense_int4(rng):
    """Weights in four bits."""
    return fake_quant_model(rng, 4) | DEFAULT | {"_experimental_low_bit_qat": True}


@model
def fake_quant(rng):
    run = lambda x: {"y": tf.quantization.fake_quant_with_min_max_args(x, -1, 1, num_bits=8)}  # noqa: E731
    return {"functions": {"serving_default": (run, {"x": spec(2, 5)})}}


def pruned(rng, block):
    w = rng.standard_normal((64, 64)).astype(np.float32) / 8
    keep = rng.random((64 // block[0], 64 // block[1])) < 0.2
    w = tf.constant((w.T * np.kron(keep, np.ones(block))).T.astype(np.float32))
    return {
        "functions": {"serving_default": (lambda x: {"y": tf.matmul(x, w)}, {"x": spec(2, 64)})},
        "optimizations": [tf.lite.Optimize.EXPERIMENTAL_SPARSITY],
    }


@model
def sparse_random(rng):
    return pruned(rng, (1, 1))


@model
def sparse_blocks(rng):
    return pruned(rng, (1, 4))


@model
def sparse_int8(rng):
    """Sparse and hybrid."""
    result = pruned(rng, (1, 16))
    return result | {"optimizations": [tf.lite.Optimize.EXPERIMENTAL_SPARSITY, tf.lite.Optimize.DEFAULT]}


@model
def lstm_int8(rng):
    return official_state.fused_lstm(rng, 4, 5, 3) | full([OPS.TFLITE_BUILTINS_INT8, OPS.TFLITE_BUILTINS], x=(1, 5, 3))


@model
def lstm_dynamic_range(rng):
    return official_state.fused_lstm(rng, 32, 4, 16) | DEFAULT
