"""Write a float model, its int8 form, samples and the statistics of TensorFlow's QuantizationDebugger (2.21).

Needs tensorflow. The statistics are those of `layer_statistics_dump`.
"""

import numpy as np
import tensorflow as tf

layers = tf.keras.layers
tf.keras.utils.set_random_seed(0)
x = tf.keras.Input((8, 8, 3), batch_size=1)
y = layers.Conv2D(8, 3, padding="same", activation="relu")(x)
y = layers.DepthwiseConv2D(3, padding="same")(y)
y = layers.ReLU(6.0)(y)
y = layers.Add()([y, layers.Conv2D(8, 1)(y)])
y = layers.GlobalAveragePooling2D()(y)
model = tf.keras.Model(x, layers.Dense(5, activation="softmax")(y))
rng = np.random.default_rng(0)
samples = [rng.standard_normal((1, 8, 8, 3)).astype(np.float32) for _ in range(6)]


def dataset():
    for sample in samples:
        yield [sample]


with open("float.tflite", "wb") as file:
    file.write(tf.lite.TFLiteConverter.from_keras_model(model).convert())
converter = tf.lite.TFLiteConverter.from_keras_model(model)
converter.optimizations = [tf.lite.Optimize.DEFAULT]
converter.representative_dataset = dataset
debugger = tf.lite.experimental.QuantizationDebugger(converter=converter, debug_dataset=dataset)
debugger.run()
with open("int8.tflite", "wb") as file:
    file.write(debugger.get_nondebug_quantized_model())
with open("layer_statistics.csv", "w") as file:
    debugger.layer_statistics_dump(file)
np.savez("data.npz", *samples)
