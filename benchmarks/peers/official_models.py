"""The official converter's files of the networks: `python -m benchmarks.peers.official_models NETWORK KIND PATH`.

Lives here: Keras's applications with random weights and statistics, made files by TensorFlow, whose Python runs this.
Not here: where the files are kept, and our converter's (../models.py).
"""

from __future__ import annotations

import sys
from pathlib import Path

APPLICATIONS = {
    "mobilenet_v2": "MobileNetV2",
    "mobilenet_v3_small": "MobileNetV3Small",
    "efficientnet_b0": "EfficientNetB0",
    "resnet50": "ResNet50",
}


def main(network: str, kind: str, path: str) -> None:
    """Write a file; int8: integers throughout, input and output too."""
    import numpy as np
    import tensorflow as tf

    from benchmarks.models import samples

    tf.keras.utils.set_random_seed(3)
    model = getattr(tf.keras.applications, APPLICATIONS[network])(weights=None, input_shape=(224, 224, 3))
    rng = np.random.default_rng(7)
    for layer in model.layers:
        if isinstance(layer, tf.keras.layers.BatchNormalization):
            layer.set_weights([rng.uniform(0.7, 1.3, np.shape(w)) for w in layer.get_weights()])
    image = tf.keras.Input(batch_shape=(1, 224, 224, 3))
    converter = tf.lite.TFLiteConverter.from_keras_model(tf.keras.Model(image, model(image)))
    if kind == "int8":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: samples(network)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    Path(path).write_bytes(converter.convert())


if __name__ == "__main__":
    main(*sys.argv[1:])
