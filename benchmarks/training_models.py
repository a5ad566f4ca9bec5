"""The models of the training workloads and their step, written once with the names of TensorFlow and Keras.

Lives here: one function for each workload, the loss, the step of a custom loop.  Not here: sizes and batches
(workloads.py), which framework runs them (training.py, peers/training_tensorflow.py).

tf: TensorFlow, or Opwright under its names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.workloads import Sizes

LEARNING_RATE = 1e-3


def mlp(tf: Any, s: Sizes) -> Any:
    layers = tf.keras.layers
    hidden = [layers.Dense(s["hidden"], activation="relu") for _ in range(2)]
    return tf.keras.Sequential([tf.keras.Input((s["features"],)), *hidden, layers.Dense(s["classes"])])


def cnn(tf: Any, s: Sizes) -> Any:
    """TensorFlow's tutorial on images of CIFAR."""
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((s["image"], s["image"], s["channels"])),
            layers.Conv2D(s["first"], 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(s["filters"], 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(s["filters"], 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(s["filters"], activation="relu"),
            layers.Dense(s["classes"]),
        ]
    )


def lstm(tf: Any, s: Sizes) -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [tf.keras.Input((s["steps"], s["features"])), layers.LSTM(s["units"]), layers.Dense(s["classes"])]
    )


def encoder(tf: Any, s: Sizes) -> Any:
    """Normalisation after each sum, as in Vaswani et al. 2017; the mean over the steps is classified."""
    layers = tf.keras.layers
    x = inputs = tf.keras.Input((s["steps"], s["width"]))
    for _ in range(s["layers"]):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(s["heads"], s["width"] // s["heads"])(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(s["width"])(layers.Dense(s["hidden"], activation="relu")(x)))
    return tf.keras.Model(inputs, layers.Dense(s["classes"])(layers.GlobalAveragePooling1D()(x)))


MODELS: dict[str, Callable[[Any, Sizes], Any]] = {"mlp": mlp, "cnn": cnn, "lstm": lstm, "encoder": encoder}


def loss_of(tf: Any, name: str) -> Any:
    """Return the loss of a workload, of targets and logits."""
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def optimizer_of(tf: Any, name: str) -> Any:
    return tf.keras.optimizers.Adam(LEARNING_RATE)


def step_of(tf: Any, name: str, model: Any) -> Callable[[Any, Any], Any]:
    """Return the step of a custom loop, of inputs and targets; it returns the loss. Not traced."""
    loss_function, optimizer = loss_of(tf, name), optimizer_of(tf, name)
    optimizer.build(model.trainable_variables)

    def step(inputs: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_function(targets, model(inputs, training=True))
            for penalty in model.losses:
                loss = loss + penalty
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return step
