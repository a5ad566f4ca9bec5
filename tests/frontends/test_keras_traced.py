"""Layers and models of Keras without an equivalent, recorded by Keras's backend: KERAS_BACKEND is jax or torch."""

from __future__ import annotations

import os

import numpy as np
import pytest

import opwright as ow

if os.environ.get("KERAS_BACKEND") not in ("jax", "torch"):
    pytest.skip("KERAS_BACKEND is not jax or torch", allow_module_level=True)
keras = pytest.importorskip("keras")
layers = keras.layers
X = np.random.default_rng(24).normal(size=(5, 8)).astype(np.float32)


class Gate(layers.Layer):
    """A layer of a user: weights, an inner layer, operations, an argument by name."""

    def build(self, input_shape):
        self.gain = self.add_weight(name="gain", shape=(input_shape[-1],), initializer="random_normal")
        self.inner = layers.Dense(input_shape[-1])
        self.inner.build(input_shape)

    def call(self, x, power=1.0):
        return keras.ops.tanh(self.inner(x)) * self.gain**2 + keras.ops.sin(x * power)


class Average(layers.Layer):
    """A layer with a moving average, which training updates."""

    def build(self, input_shape):
        self.mean = self.add_weight(name="mean", shape=(input_shape[-1],), initializer="zeros", trainable=False)

    def call(self, x, training=False):
        if training:
            self.mean.assign(0.5 * self.mean + 0.5 * keras.ops.mean(x, 0))
        return x - self.mean


class Block(layers.Layer):
    """A layer whose weights are of several kinds in one shape, with a tensor by name."""

    def build(self, input_shape):
        self.norm, self.dense = layers.BatchNormalization(), layers.Dense(input_shape[-1])
        self.norm.build(input_shape)
        self.dense.build(input_shape)
        self.last = self.add_weight(name="last", shape=(input_shape[-1],), initializer="ones")

    def call(self, x, other=None):
        return self.dense(self.norm(x)) * self.last + other


class Net(keras.Model):
    """A model that is a class of a user."""

    def __init__(self):
        super().__init__()
        self.first, self.gate, self.last = layers.Dense(6, activation="elu"), Gate(), layers.Dense(3)

    def call(self, x):
        return self.last(self.gate(self.first(x)))


def functional():
    x = keras.Input((8,))
    y = Gate(name="gate")(layers.Dense(6, activation="relu")(x), power=2.0)
    y = Block()(Average(name="average")(y), other=y)
    model = keras.Model(x, layers.Dense(2)(y))
    draw = np.random.default_rng(5)
    model.set_weights([draw.uniform(0.2, 1.0, w.shape).astype(np.float32) for w in model.get_weights()])
    return model


def subclassed():
    model = Net()
    model(X)
    return model


@pytest.mark.parametrize("make", [functional, subclassed])
def test_outputs_gradients_and_files(make):
    source = make()
    expected = np.asarray(keras.ops.convert_to_numpy(source(X)))
    model = ow.from_keras(source)
    np.testing.assert_allclose(model(X).numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model(X[:2]).numpy(), expected[:2], rtol=1e-5, atol=1e-6)
    assert len(model.trainable_weights) == len(source.trainable_weights)
    with ow.GradientTape() as tape:
        loss = ow.reduce_sum(model(X) ** 2)
    gain = next(w for w in model.trainable_weights if w.shape.as_list() == [6] and "gain" in w.name)
    place = next(i for i, w in enumerate(source.weights) if w.path.endswith("gain"))
    (gradient,) = tape.gradient(loss, [gain])
    step = 1e-3
    values = source.get_weights()
    for k in range(2):
        sums = []
        for sign in (1, -1):
            moved = [v.copy() for v in values]
            moved[place][k] += sign * step
            source.set_weights(moved)
            sums.append(float((np.asarray(keras.ops.convert_to_numpy(source(X)), np.float64) ** 2).sum()))
        source.set_weights(values)
        np.testing.assert_allclose(gradient.numpy()[k], (sums[0] - sums[1]) / (2 * step), rtol=2e-2, atol=1e-3)
    function = ow.function(lambda x: model(x), input_signature=[ow.TensorSpec([5, 8])])
    content = ow.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()]).convert()
    interpreter = ow.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    interpreter.invoke()
    y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_training_updates_moving_averages():
    source = functional()
    model = ow.from_keras(source)
    model(X, training=True)
    source(X, training=True)
    (mean,) = model.get_layer("average").weights
    (other,) = source.get_layer("average").weights
    np.testing.assert_allclose(mean.numpy(), keras.ops.convert_to_numpy(other.value), rtol=1e-5, atol=1e-6)
    model.compile("sgd", "mse")
    history = model.fit(X, np.zeros((5, 2), np.float32), epochs=3, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]


def test_a_recorded_layer_has_no_configuration():
    model = ow.from_keras(functional())
    with pytest.raises(ow.errors.UnimplementedError, match="a Gate that was recorded has no configuration"):
        model.get_layer("gate").get_config()
