"""Models of single layers and functions of the official corpus, in float and quantised. Run by make_official.py."""

import numpy as np
import tensorflow as tf
from official_float import spec

MODELS = {}
L = tf.keras.layers
OPS = tf.lite.OpsSet
INT16X8 = OPS.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8


def keras(name, shape, *layers, **settings):
    """A model of some layers. quantized: INT8 or INT16X8, with random representative data."""

    def make(rng):
        tf.keras.utils.set_random_seed(3)
        x = tf.keras.Input(shape, batch_size=1)
        y = x
        for layer in layers:
            y = layer()(y)
        result = {"keras": tf.keras.Model(x, y), "functions": {"serving_default": None}, **settings}
        kind = result.pop("quantized", None)
        if kind is not None:
            data = [[rng.standard_normal((1, *shape)).astype(np.float32)] for _ in range(8)]
            result |= {
                "optimizations": [tf.lite.Optimize.DEFAULT],
                "representative_dataset": lambda: iter(data),
                "supported_ops": [kind, OPS.TFLITE_BUILTINS],
            }
        return result

    MODELS[name] = make


def function(name, run, **specs):
    """A model of a function that gives a dict."""
    MODELS[name] = lambda rng: {"functions": {"serving_default": (run, specs)}}


def attention():
    """Self-attention, causal."""
    layer = L.MultiHeadAttention(2, 3)
    return lambda x: layer(x, x, use_causal_mask=True)


keras("layer_attention", (6, 4), attention)
keras("layer_attention_int8", (6, 4), attention, quantized=OPS.TFLITE_BUILTINS_INT8)
keras("layer_norms", (4, 4, 4), L.LayerNormalization, lambda: L.GroupNormalization(2), L.UnitNormalization)
keras(
    "layer_norms_int8",
    (4, 4, 4),
    L.LayerNormalization,
    lambda: L.GroupNormalization(2),
    quantized=OPS.TFLITE_BUILTINS_INT8,
)
keras(
    "layer_activations_int8",
    (8,),
    *(lambda a=a: L.Activation(a) for a in ("gelu", "silu", "mish", "elu", "softsign")),
    quantized=OPS.TFLITE_BUILTINS_INT8,
)
keras(
    "layer_activations_int16x8",
    (8,),
    *(lambda a=a: L.Activation(a) for a in ("relu6", "silu", "tanh", "softmax")),
    quantized=INT16X8,
)
keras(
    "layer_separable_int8",
    (8, 8, 3),
    lambda: L.SeparableConv2D(4, 3, padding="same"),
    lambda: L.UpSampling2D(2),
    L.PReLU,
    L.GlobalAveragePooling2D,
    quantized=OPS.TFLITE_BUILTINS_INT8,
)
keras(
    "layer_transposed_int16x8",
    (4, 4, 2),
    lambda: L.Conv2DTranspose(3, 3, strides=2, padding="same"),
    lambda: L.LeakyReLU(0.2),
    L.GlobalMaxPooling2D,
    quantized=INT16X8,
)
keras(
    "layer_volume",
    (4, 4, 4, 2),
    lambda: L.Conv3D(3, 2, activation="relu"),
    lambda: L.Conv3DTranspose(2, 2),
    L.GlobalMaxPooling3D,
)
keras("layer_lstm_unrolled_int8", (4, 3), lambda: L.LSTM(3, unroll=True), quantized=OPS.TFLITE_BUILTINS_INT8)
keras("layer_gru_unrolled_int16x8", (4, 3), lambda: L.GRU(3, unroll=True), quantized=INT16X8)
keras("layer_conv_lstm", (3, 5, 5, 2), lambda: L.ConvLSTM2D(2, 3, return_sequences=True))
keras("layer_time_distributed", (3, 6, 6, 2), lambda: L.TimeDistributed(L.Conv2D(2, 3)))
function(
    "suppression_padded",
    lambda boxes, scores: dict(
        zip("iv", tf.image.non_max_suppression_padded(boxes, scores, 3, pad_to_max_output_size=True))
    ),
    boxes=spec(5, 4),
    scores=spec(5),
)
function(
    "spectrogram",
    lambda x: {
        "mel": tf.matmul(
            tf.abs(tf.signal.stft(x, 32, 16, fft_length=32))[0], tf.signal.linear_to_mel_weight_matrix(8, 17, 16000)
        )
    },
    x=spec(1, 96),
)
