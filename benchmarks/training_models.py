"""The models of the training workloads and their step, written once with the names of TensorFlow and Keras.

Lives here: one function for each workload, the loss, the step of a custom loop.  Not here: sizes and batches
(workloads.py), which framework runs them (training.py, peers/training_tensorflow.py).

tf: TensorFlow, or Opwright under its names.
"""

from __future__ import annotations

import inspect
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


def resnet18(tf: Any, s: Sizes) -> Any:
    """ResNet-18 (He et al. 2015, table 1) with the stem that images of 32 x 32 get: 3 x 3, no pooling."""
    layers = tf.keras.layers

    def convolution(x: Any, channels: int, size: int, stride: int) -> Any:
        x = layers.Conv2D(channels, size, stride, padding="same", use_bias=False)(x)
        return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

    relu = tf.keras.activations.relu
    inputs = tf.keras.Input((s["image"], s["image"], s["channels"]))
    x = layers.Activation(relu)(convolution(inputs, s["first"], 3, 1))
    for stage in range(s["stages"]):
        channels = s["first"] << stage
        for block in range(2):
            stride = 2 if stage and not block else 1
            y = layers.Activation(relu)(convolution(x, channels, 3, stride))
            y = convolution(y, channels, 3, 1)
            x = convolution(x, channels, 1, stride) if stride == 2 else x
            x = layers.Activation(relu)(layers.Add()([x, y]))
    return tf.keras.Model(inputs, layers.Dense(s["classes"])(layers.GlobalAveragePooling2D()(x)))


def unet(tf: Any, s: Sizes) -> Any:
    """U-Net (Ronneberger et al. 2015) with padded convolutions: a class for each pixel."""
    layers = tf.keras.layers

    def double(x: Any, channels: int) -> Any:
        for _ in range(2):
            x = layers.Conv2D(channels, 3, padding="same", activation="relu")(x)
        return x

    x = inputs = tf.keras.Input((s["image"], s["image"], s["channels"]))
    passed = []
    for level in range(s["levels"]):
        x = double(x, s["first"] << level)
        passed.append(x)
        x = layers.MaxPooling2D(2)(x)
    x = double(x, s["first"] << s["levels"])
    for level in reversed(range(s["levels"])):
        x = layers.Conv2DTranspose(s["first"] << level, 2, 2)(x)
        x = double(layers.Concatenate()([passed[level], x]), s["first"] << level)
    return tf.keras.Model(inputs, layers.Conv2D(s["classes"], 1)(x))


def gpt(tf: Any, s: Sizes) -> Any:
    """GPT-2 (Radford et al. 2019): normalisation before each part, exact GELU, no dropout."""
    layers, width = tf.keras.layers, s["width"]

    class Positions(layers.Layer):
        def build(self, shape):
            self.table = self.add_weight(name="table", shape=tuple(shape[1:]), initializer="random_normal")

        def call(self, x):
            return x + self.table

    inputs = tf.keras.Input((s["steps"],), dtype="int32")
    x = Positions()(layers.Embedding(s["classes"], width)(inputs))
    for _ in range(s["layers"]):
        y = layers.LayerNormalization(epsilon=1e-5)(x)
        x = x + layers.MultiHeadAttention(s["heads"], width // s["heads"])(y, y, use_causal_mask=True)
        y = layers.LayerNormalization(epsilon=1e-5)(x)
        x = x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(y))
    x = layers.LayerNormalization(epsilon=1e-5)(x)
    return tf.keras.Model(inputs, layers.Dense(s["classes"], use_bias=False)(x))


def dlrm(tf: Any, s: Sizes) -> Any:
    """DLRM (Naumov et al. 2019): all categories in one table, products of all pairs of vectors."""
    layers = tf.keras.layers
    n = s["categories"] + 1
    pairs = [i * n + j for i in range(n) for j in range(i)]

    class Pairs(layers.Layer):
        def call(self, vectors):
            products = tf.matmul(vectors, vectors, transpose_b=True)
            return tf.gather(tf.reshape(products, (-1, n * n)), pairs, axis=1)

    def perceptron(x: Any, widths: tuple[int, ...]) -> Any:
        for width in widths:
            x = layers.Dense(width, activation="relu")(x)
        return x

    numbers = tf.keras.Input((s["features"],))
    rows = tf.keras.Input((s["categories"],), dtype="int32")
    bottom = perceptron(numbers, (s["hidden"], s["hidden"] // 2, s["width"]))
    vectors = layers.Concatenate(axis=1)(
        [layers.Reshape((1, s["width"]))(bottom), layers.Embedding(s["rows"], s["width"])(rows)]
    )
    top = perceptron(layers.Concatenate()([bottom, Pairs()(vectors)]), (s["hidden"], s["hidden"] // 2))
    return tf.keras.Model([numbers, rows], layers.Dense(1)(top))


def vae(tf: Any, s: Sizes) -> Any:
    """VAE (Kingma and Welling 2013): logits of the pixels; the divergence is a loss of the layer that draws."""
    layers = tf.keras.layers

    class Sample(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.seeds = tf.keras.random.SeedGenerator(7)

        def call(self, mean, log_variance):
            divergence = tf.exp(log_variance) + tf.square(mean) - 1.0 - log_variance
            self.add_loss(0.5 * tf.reduce_mean(tf.reduce_sum(divergence, axis=-1)) / s["features"])
            noise = tf.keras.random.normal(tf.shape(mean), dtype="float32", seed=self.seeds)
            return mean + tf.exp(0.5 * log_variance) * tf.cast(noise, mean.dtype)

    inputs = tf.keras.Input((s["features"],))
    x = layers.Dense(s["hidden"], activation="relu")(inputs)
    x = Sample()(layers.Dense(s["latent"])(x), layers.Dense(s["latent"])(x))
    x = layers.Dense(s["hidden"], activation="relu")(x)
    return tf.keras.Model(inputs, layers.Dense(s["features"])(x))


MODELS: dict[str, Callable[[Any, Sizes], Any]] = {
    "mlp": mlp,
    "cnn": cnn,
    "lstm": lstm,
    "encoder": encoder,
    "resnet18": resnet18,
    "unet": unet,
    "gpt": gpt,
    "dlrm": dlrm,
    "vae": vae,
}


def loss_of(tf: Any, name: str) -> Any:
    """Return the loss of a workload, of targets and logits."""
    losses = tf.keras.losses
    if name in ("dlrm", "vae"):
        return losses.BinaryCrossentropy(from_logits=True)
    return losses.SparseCategoricalCrossentropy(from_logits=True)


def optimizer_of(tf: Any, name: str, rate: float = LEARNING_RATE) -> Any:
    """Adam, where rows that a batch doesn't read are unchanged if the framework can."""
    lazy = name == "dlrm" and "lazy_mode" in inspect.signature(tf.keras.optimizers.Adam).parameters
    return tf.keras.optimizers.Adam(rate, **{"lazy_mode": True} if lazy else {})


def step_of(tf: Any, name: str, model: Any, rate: float = LEARNING_RATE) -> Callable[[Any, Any], Any]:
    """Return the step of a custom loop, of inputs and targets; it returns the loss. Not traced."""
    loss_function, optimizer = loss_of(tf, name), optimizer_of(tf, name, rate)
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
