"""Models whose `call` has Python control flow on tensors: trained, called and laid out, it is part of the graph.

Keras 3 refuses these; Keras 2 took them, and so do we.
"""

import numpy as np
import pytest

pytestmark = pytest.mark.ours


def model_of(tf):
    class Branching(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden = tf.keras.layers.Dense(4, activation="relu", kernel_initializer="ones")
            self.out = tf.keras.layers.Dense(1, kernel_initializer="ones")

        def call(self, x, training=False):
            h = self.hidden(x)
            if tf.reduce_mean(h) > 0.5:
                h = h * 0.5
            for _ in tf.range(2):
                h = h + 0.1
            return self.out(h)

    return Branching()


def test_the_branch_is_taken_by_value(tf):
    call = tf.function(model_of(tf))
    np.testing.assert_allclose(call(tf.ones([2, 3])).numpy(), np.full((2, 1), 4 * (3 * 0.5 + 0.2)), rtol=1e-6)
    np.testing.assert_allclose(call(tf.fill([2, 3], 0.1)).numpy(), np.full((2, 1), 4 * (0.3 + 0.2)), rtol=1e-6)


def test_it_trains(tf):
    model = model_of(tf)
    model.compile(tf.keras.optimizers.SGD(0.0), "mse")
    x, y = np.ones((8, 3), "float32"), np.zeros((8, 1), "float32")
    history = model.fit(x, y, epochs=2, verbose=0)
    np.testing.assert_allclose(history.history["loss"], [6.8**2] * 2, rtol=1e-5)
    assert model.predict(x, verbose=0).shape == (8, 1)
