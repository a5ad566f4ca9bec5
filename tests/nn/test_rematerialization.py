"""Layers in a RematScope compute again for gradients, with the numbers, draws and statistics of layers that do not."""

import numpy as np
import pytest

import opwright as ow
from opwright import keras

X = np.random.default_rng(3).normal(size=(6, 5)).astype(np.float32)


class Counted(keras.layers.Layer):
    """Two products, dropout and normalization, which count their runs."""

    def __init__(self):
        super().__init__(name="counted")
        self.inner, self.noise = keras.layers.Dense(4, kernel_initializer="ones"), keras.layers.Dropout(0.5, seed=7)
        self.norm, self.runs = keras.layers.BatchNormalization(), 0

    def call(self, x, scale=None, training=False):
        self.runs += 1
        return ow.tanh(self.norm(self.noise(self.inner(x), training=training), training=training)) * scale


def run(layer, traced):
    """Return output and gradients of inputs, of an argument by name and of weights, and the statistics after."""

    def step(x, scale):
        with ow.GradientTape() as tape:
            tape.watch([x, scale])
            y = layer(x, scale=scale, training=True)
            loss = ow.reduce_sum(y * y)
        return [y, *tape.gradient(loss, [x, scale, *layer.trainable_weights])]

    layer(X, scale=1.0)
    layer.runs = 0
    results = (ow.function(step) if traced else step)(ow.constant(X), ow.constant(0.5))
    seeds = [] if layer.noise.seed_generator._state is None else [layer.noise.seed_generator.state]
    return [np.asarray(v) for v in [*results, *layer.non_trainable_weights, *seeds]]


@pytest.mark.parametrize("traced", [False, True])
def test_gradients_draws_and_statistics_are_as_without_a_scope(traced):
    plain = Counted()
    expected = run(plain, traced)
    with keras.RematScope("list_of_layers", layer_names=["counted"]):
        layer = Counted()
    results = run(layer, traced)
    assert (plain.runs, layer.runs) == (1, 2)
    assert len(results) == len(expected)
    for result, reference in zip(results, expected):
        np.testing.assert_allclose(result, reference, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("arguments", "again"),
    [
        (("full",), True),
        (("larger_than", 20), True),
        (("larger_than", 24), False),
        (("list_of_layers",), False),
        ((None,), False),
        (("activations",), True),
    ],
    ids=str,
)
def test_modes(arguments, again):
    runs = []
    with keras.RematScope("full"), keras.RematScope(*arguments):
        layer = keras.layers.Dense(4, activation=lambda y: (runs.append(1), ow.tanh(y))[1])
    layer.build((None, 5))
    del runs[:]
    with ow.GradientTape() as tape:
        y = layer(X)
    before = len(runs)
    tape.gradient(y, layer.kernel)
    assert (len(runs) > before) is again


def test_remat_of_functions_and_other_modes():
    x = ow.constant(X)
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(x)
        plain, again = ow.sin(x) * x, keras.remat(lambda a, b: ow.sin(a) * b)(x, b=x)
    np.testing.assert_allclose(tape.gradient(again, x), tape.gradient(plain, x), rtol=1e-6)
    with pytest.raises(ValueError, match="Invalid mode 'half'"):
        keras.RematScope("half")


def test_a_layer_knows_its_metrics_and_takes_policies_and_shapes():
    class Measured(keras.layers.Layer):
        def __init__(self, inner=None):
            super().__init__()
            self.inner, self.metric = inner, keras.metrics.MeanSquaredError()
            self.gain = self.add_weight((3, 4), "ones", "float32")

    layer = Measured(Measured())
    assert len(layer.metrics) == 2
    assert len(layer.metrics_variables) == 4
    assert len(layer.weights) == 2
    np.testing.assert_array_equal(layer.gain, np.ones((3, 4)))
    layer.dtype_policy = "mixed_bfloat16"
    assert (layer.compute_dtype, layer.variable_dtype) == ("bfloat16", "float32")
    with pytest.raises(NotImplementedError, match="does not have a `quantize` method"):
        layer.quantize("int8")
    with pytest.raises(ValueError, match="both positionally"):
        layer.add_weight((3, 4), shape=(3, 4))
    dense = keras.layers.Dense(2)
    dense.build((None, 3))
    dense.dtype_policy = "int8_from_float32"
    assert len(dense.weights) == 3
    assert dense.quantization_mode == "int8"


@pytest.mark.parametrize(
    ("names", "text"),
    [(("foo_shape", "bar"), "`bar`, which does not end"), (("foo_shape", "baz_shape"), "argument `baz`")],
)
def test_parameters_of_build_that_call_lacks(names, text):
    space = {"__name__": __name__}
    exec(f"def build(self, {', '.join(names)}): pass\ndef call(self, foo, bar): return foo", space)
    layer = type("Odd", (keras.layers.Layer,), {"build": space["build"], "call": space["call"]})()
    with pytest.raises(ValueError, match=text):
        layer(X, X)
