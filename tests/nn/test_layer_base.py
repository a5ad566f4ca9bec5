"""Layers: building, weights and their order, training mode, masks, losses, configuration."""

import numpy as np
import pytest


@pytest.fixture
def scale(tf):
    class Scale(tf.keras.layers.Layer):
        def __init__(self, power=1, **kwargs):
            super().__init__(**kwargs)
            self.power = power
            self.supports_masking = True

        def build(self, input_shape):
            self.gain = self.add_weight(name="gain", shape=(input_shape[-1],), initializer="ones")
            self.count = self.add_weight(name="count", shape=(), initializer="zeros", trainable=False)

        def call(self, x, training=False):
            self.seen = training
            return x * self.gain**self.power

        def get_config(self):
            return {**super().get_config(), "power": self.power}

    return Scale


def test_weights_are_made_at_the_first_call(tf, scale):
    layer = scale()
    assert not layer.built
    assert layer.weights == []
    np.testing.assert_array_equal(layer(np.ones((2, 3), "float32")), np.ones((2, 3)))
    assert layer.built
    assert [tuple(w.shape) for w in layer.weights] == [(3,), ()]
    assert len(layer.trainable_weights) == len(layer.non_trainable_weights) == 1
    assert layer.count_params() == 4


def test_build_may_be_called(tf, scale):
    layer = scale()
    layer.build((None, 5))
    assert layer.built
    assert tuple(layer.gain.shape) == (5,)


def test_float64_arrays_become_the_layers_dtype(tf, scale):
    assert scale()(np.ones((2, 3))).dtype == tf.float32
    assert scale(dtype="float64")(np.ones((2, 3), "float32")).dtype == tf.float64


def test_names_are_numbered(tf, scale):
    tf.keras.backend.clear_session()
    assert [scale().name for _ in range(3)] == ["scale", "scale_1", "scale_2"]
    assert scale(name="mine").name == "mine"
    assert tf.keras.layers.MaxPooling2D().name == "max_pooling2d"


def test_training_mode(tf, scale):
    inner = scale()

    class Outer(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def call(self, x):
            return self.inner(x)

    x = np.ones((1, 2), "float32")
    inner(x)
    assert inner.seen is False
    inner(x, training=True)
    assert inner.seen is True
    outer = Outer()
    outer(x, training=True)  # no parameter of `call`: it goes on to the layers inside
    assert inner.seen is True
    outer(x)
    assert inner.seen is False


def test_layers_in_lists_and_dicts_are_found(tf):
    dense = tf.keras.layers.Dense

    class Block(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.second = dense(3)
            self.first = [dense(4), dense(5)]
            self.third = {"a": dense(6)}

        def call(self, x):
            for layer in (*self.first, self.second, self.third["a"]):
                x = layer(x)
            return x

    block = Block()
    block(np.ones((1, 2), "float32"))
    # in the order in which they became attributes, not in that of the calls
    assert [tuple(w.shape) for w in block.weights] == [(5, 3), (3,), (2, 4), (4,), (4, 5), (5,), (3, 6), (6,)]


def test_freezing_goes_down_and_back(tf, scale):
    model = tf.keras.Sequential([tf.keras.Input((3,)), scale(), tf.keras.layers.Dense(2)])
    assert len(model.trainable_weights) == 3
    model.trainable = False
    assert model.trainable_weights == []
    assert len(model.non_trainable_weights) == len(model.weights) == 4
    assert not model.layers[1].trainable
    model.trainable = True
    assert len(model.trainable_weights) == 3
    model.layers[0].trainable = False
    assert len(model.trainable_weights) == 2


def test_get_and_set_weights(tf, scale):
    layer = scale()
    layer.build((None, 2))
    layer.set_weights([np.array([2.0, 3.0]), np.array(1.0)])
    np.testing.assert_array_equal(layer(np.ones((1, 2), "float32")), [[2.0, 3.0]])
    np.testing.assert_array_equal(layer.get_weights()[0], [2.0, 3.0])
    with pytest.raises(ValueError, match="weight list of length 1"):
        layer.set_weights([np.zeros(2)])
    with pytest.raises(ValueError, match="not compatible"):
        layer.set_weights([np.zeros(3), np.zeros(())])


def test_losses(tf):
    class Penalty(tf.keras.layers.Layer):
        def call(self, x):
            self.add_loss(tf.reduce_sum(x))
            return x

    dense = tf.keras.layers.Dense(2, kernel_initializer="ones", kernel_regularizer=tf.keras.regularizers.L2(0.5))
    model = tf.keras.Sequential([Penalty(), dense])
    for _ in range(2):  # the second call's take the place of the first's
        model(np.ones((2, 3), "float32"))
    assert sorted(float(v) for v in model.losses) == [3.0, 6.0]


def test_activity_regularizer(tf):
    layer = tf.keras.layers.Dense(2, kernel_initializer="ones", activity_regularizer=tf.keras.regularizers.L1(0.1))
    layer(np.ones((4, 3), "float32"))
    np.testing.assert_allclose(float(layer.losses[0]), 0.1 * 4 * 2 * 3 / 4, rtol=1e-6)


def test_configuration(tf, scale):
    layer = scale(power=2, name="s", trainable=False)
    config = layer.get_config()
    assert (config["power"], config["name"], config["trainable"]) == (2, "s", False)
    again = scale.from_config(config)
    assert (again.power, again.name, again.trainable) == (2, "s", False)


def test_configuration_without_get_config(tf):
    class Plain(tf.keras.layers.Layer):
        def __init__(self, units, bias=True, **kwargs):
            super().__init__(**kwargs)

    config = Plain(3, bias=False).get_config()
    assert (config["units"], config["bias"]) == (3, False)
    with pytest.raises(NotImplementedError, match="must override `get_config"):
        Plain(object()).get_config()


def test_shapes_without_running(tf, scale):
    x = tf.keras.Input((7,))
    assert tuple(scale()(x).shape) == (None, 7)


@pytest.mark.ours  # Keras wants the layer to define it
def test_output_shape_of_any_layer(tf, scale):
    assert scale().compute_output_shape((None, 7)) == (None, 7)


def test_input_spec(tf):
    layer = tf.keras.layers.Dense(2)
    layer(np.ones((1, 3), "float32"))
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 3"):
        layer(np.ones((1, 4), "float32"))
    with pytest.raises(ValueError, match="expected min_ndim=2, found ndim=1"):
        layer(np.ones(3, "float32"))
    spec = tf.keras.layers.InputSpec(shape=(None, 3))
    assert spec.ndim == 2


def test_unknown_arguments_are_refused(tf):
    with pytest.raises(ValueError, match="Unrecognized keyword arguments"):
        tf.keras.layers.Dense(2, colour="red")


def test_super_init_is_needed(tf):
    class Bad(tf.keras.layers.Layer):
        def __init__(self):
            self.n = 1

        def call(self, x):
            return x

    with pytest.raises(RuntimeError, match="super"):
        Bad()(np.ones((1, 1), "float32"))


def test_layers_inside_functions(tf, scale):
    layer = scale()

    @tf.function
    def f(x):
        return layer(x)

    for n in (2, 3):
        np.testing.assert_array_equal(f(tf.ones([n, 4])), np.ones((n, 4)))
    assert len(layer.weights) == 2

    @tf.function
    def always_new(x):
        return tf.keras.layers.Dense(1)(x)

    with pytest.raises(ValueError, match=r"tf\.Variable"):
        always_new(tf.ones([1, 2]))


def test_masks_travel(tf, scale):
    ids = np.array([[1, 2, 0], [3, 0, 0]])
    embedding = tf.keras.layers.Embedding(5, 2, mask_zero=True)

    class Counts(tf.keras.layers.Layer):
        def call(self, x, mask=None):
            return tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)

    np.testing.assert_array_equal(Counts()(scale()(embedding(ids))), [2, 1])
    x = tf.keras.Input((3,), dtype="int32")
    model = tf.keras.Model(x, Counts()(scale()(embedding(x))))
    np.testing.assert_array_equal(model(ids.astype("int32")), [2, 1])


def test_modules(tf):
    class Inner(tf.Module):
        def __init__(self, name=None):
            super().__init__(name=name)
            with self.name_scope:
                self.w = tf.Variable(1.0, name="w")

    class Outer(tf.Module):
        def __init__(self):
            super().__init__()
            self.b_inner = Inner("second")
            self.a_inner = [Inner(), Inner()]
            self.z = tf.Variable(2.0, trainable=False, name="z")

        @tf.Module.with_name_scope
        def __call__(self):
            return tf.Variable(0.0, name="made")

    module = Outer()
    assert module.name == "outer"
    assert [v.name for v in module.variables] == ["z:0", "inner/w:0", "inner/w:0", "second/w:0"]
    assert [m.name for m in module.submodules] == ["inner", "inner", "second"]
    assert len(module.trainable_variables) == 3
    assert module().name == "outer/made:0"
    with pytest.raises(ValueError, match="not a valid module name"):
        Inner("two words")
