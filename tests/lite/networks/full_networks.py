"""Makes full-size networks with random weights by TensorFlow's converter: NAME_KIND.tflite in a folder.

    python tests/lite/networks/full_networks.py FOLDER        where TensorFlow and tf_keras are installed

Lives here: the ten networks, kinds of files (float, dynamic, int8).  Not here: running them (test_networks_full.py).
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf
import tf_keras as keras

A, L = keras.applications, keras.layers


def u_net():
    """Three levels down and up."""
    x = y = keras.Input((96, 96, 3))
    across = []
    for n in (16, 32, 64):
        y = L.BatchNormalization()(L.Conv2D(n, 3, padding="same", activation="relu")(y))
        across.append(y)
        y = L.MaxPool2D()(y)
    y = L.Conv2D(128, 3, padding="same", activation="relu")(y)
    for n in (64, 32, 16):
        y = L.Concatenate()([L.Conv2DTranspose(n, 3, strides=2, padding="same")(y), across.pop()])
        y = L.Conv2D(n, 3, padding="same", activation="relu")(y)
    return keras.Model(x, L.Conv2D(4, 1, activation="softmax")(L.UpSampling2D(2, interpolation="bilinear")(y)))


def text():
    """Words through an LSTM and one in both directions."""
    x = keras.Input((40,), dtype="int32")
    y = L.Bidirectional(L.LSTM(32))(L.LSTM(64, return_sequences=True)(L.Embedding(5000, 64)(x)))
    return keras.Model(x, L.Dense(2, activation="softmax")(L.Dense(32, activation="relu")(y)))


def encoder():
    """Words through four layers of a transformer."""
    x = keras.Input((64,), dtype="int32")
    y = L.Embedding(5000, 128)(x)
    for _ in range(4):
        y = L.LayerNormalization(epsilon=1e-6)(y + L.MultiHeadAttention(4, 32)(y, y))
        y = L.LayerNormalization(epsilon=1e-6)(y + L.Dense(128)(L.Dense(512, activation="gelu")(y)))
    return keras.Model(x, L.Dense(4)(L.GlobalAveragePooling1D()(y)))


NETWORKS = {
    "mobilenet_v1": lambda: A.MobileNet(weights=None),
    "mobilenet_v2": lambda: A.MobileNetV2(weights=None),
    "mobilenet_v3": lambda: A.MobileNetV3Small(weights=None, input_shape=(224, 224, 3)),
    "efficientnet": lambda: A.EfficientNetB0(weights=None),
    "resnet50": lambda: A.ResNet50(weights=None),
    "densenet": lambda: A.DenseNet121(weights=None),
    "inception": lambda: A.InceptionV3(weights=None),
    "unet": u_net,
    "lstm_text": text,
    "transformer": encoder,
}


def samples(shape, dtype, high):
    """Representative data: words below `high`, or images of that range."""
    rng = np.random.default_rng(7)
    for _ in range(3):
        yield [
            rng.integers(0, high, shape).astype(np.int32)
            if dtype == "int32"
            else rng.uniform(0 if high > 1 else -1, high, shape).astype(np.float32)
        ]


def main(folder):
    """Write the files that are not there."""
    for name, build in NETWORKS.items():
        keras.utils.set_random_seed(3)
        model, rng = build(), np.random.default_rng(7)
        for layer in model.layers:
            if isinstance(layer, L.BatchNormalization):
                layer.set_weights([rng.uniform(0.7, 1.3, np.shape(w)) for w in layer.get_weights()])
        shape, dtype = (1, *model.inputs[0].shape[1:]), model.inputs[0].dtype
        run = tf.function(lambda x, model=model: model(x, training=False))
        concrete = run.get_concrete_function(tf.TensorSpec(shape, dtype))
        high = 5000 if dtype == tf.int32 else 255.0 if name in ("mobilenet_v3", "efficientnet") else 1.0
        for kind in ("float", "dynamic", "int8"):
            path = pathlib.Path(folder) / f"{name}_{kind}.tflite"
            if path.exists():
                continue
            converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], model)
            converter.optimizations = [] if kind == "float" else [tf.lite.Optimize.DEFAULT]
            if kind == "int8":
                converter.representative_dataset = lambda s=shape, d=dtype.name, h=high: samples(s, d, h)
                converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
            path.write_bytes(converter.convert())


if __name__ == "__main__":
    main(sys.argv[1])
