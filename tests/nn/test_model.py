"""Models: stacks, graphs of layers, subclasses; their configuration, files and summary."""

import json

import numpy as np
import pytest

import opwright as ow


@pytest.fixture
def keras(tf):
    return tf.keras


def x_of(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def test_sequential(keras):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(2)], name="stack")
    assert model.built
    assert [tuple(w.shape) for w in model.weights] == [(3, 4), (4,), (4, 2), (2,)]
    assert len(model.layers) == 2
    assert (model.input_shape, model.output_shape) == ((None, 3), (None, 2))
    top = model.pop()
    assert top is None or tuple(top.weights[0].shape) == (4, 2)
    model.add(keras.layers.Dense(7))
    assert model(x_of(5, 3)).shape == (5, 7)
    assert model.count_params() == 3 * 4 + 4 + 4 * 7 + 7


def test_sequential_is_built_later(keras):
    model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(2)])
    assert not model.built
    assert model.weights == []
    model.build((None, 6))
    assert tuple(model.weights[0].shape) == (6, 4)
    other = keras.Sequential([keras.layers.Dense(4)])
    other(x_of(2, 3))
    assert tuple(other.weights[0].shape) == (3, 4)


def test_sequential_refuses(keras):
    with pytest.raises(ValueError, match="Only instances of"):
        keras.Sequential([3])
    with pytest.raises(ValueError, match="unique"):
        keras.Sequential([keras.layers.Dense(1, name="a"), keras.layers.Dense(1, name="a")])


def graph(keras):
    a, b = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    shared = keras.layers.Dense(4, name="shared")
    joined = keras.layers.Concatenate(name="joined")([shared(a), shared(b)])
    return keras.Model(inputs=[a, b], outputs=[keras.layers.Dense(2, name="out")(joined), joined], name="graph")


def test_functional(keras):
    model = graph(keras)
    assert [layer.name for layer in model.layers] == ["a", "b", "shared", "joined", "out"]
    assert len(model.weights) == 4
    assert [tuple(t.shape) for t in model.outputs] == [(None, 2), (None, 8)]
    a, b = x_of(5, 3), x_of(5, 3) + 1
    out, joined = model([a, b])
    kernel, bias = model.get_layer("shared").get_weights()
    np.testing.assert_allclose(joined, np.concatenate([a @ kernel + bias, b @ kernel + bias], 1), rtol=1e-5, atol=1e-6)
    by_name = model({"b": b, "a": a})
    np.testing.assert_array_equal(by_name[0], out)
    assert model.get_layer(index=2).name == "shared"
    with pytest.raises(ValueError, match="No such layer: other"):
        model.get_layer("other")


def test_dict_outputs(keras):
    x = keras.Input((3,))
    model = keras.Model(x, {"p": keras.layers.Dense(1)(x), "q": keras.layers.Dense(2)(x)})
    result = model(x_of(4, 3))
    assert sorted(result) == ["p", "q"]
    assert result["q"].shape == (4, 2)


def test_models_inside_models(keras):
    inner = graph(keras)
    x = keras.Input((3,))
    model = keras.Model(x, inner([x, x])[0])
    data = x_of(2, 3)
    np.testing.assert_allclose(model(data), inner([data, data])[0], rtol=1e-6)
    assert len(model.weights) == 4
    part = keras.Model(inner.inputs, inner.get_layer("joined").output)
    assert part([data, data]).shape == (2, 8)


def test_inputs_that_do_not_fit(keras):
    model = graph(keras)
    with pytest.raises(ValueError, match="expects 2 "):
        model(x_of(2, 3))
    with pytest.raises(ValueError, match="expected shape"):
        model([x_of(2, 3), x_of(2, 4)])
    with pytest.raises(ValueError, match=r"disconnected|cannot find parent|not connected"):
        keras.Model(keras.Input((3,)), keras.layers.Dense(1)(keras.Input((3,))))


@pytest.mark.ours  # Keras 3 wants keras.ops there
def test_operators_and_functions_of_keras_tensors(tf, keras):
    x = keras.Input((4,))
    y = keras.layers.Dense(4, use_bias=False, kernel_initializer="identity")(x)
    z = tf.nn.relu(x + 2.0 * y) - tf.reduce_mean(y, axis=-1, keepdims=True)
    z = tf.concat([z, 1.0 - x[:, :2], x @ np.ones((4, 1), "float32")], axis=1)
    model = keras.Model(x, z)
    data = x_of(3, 4)
    first = np.maximum(3 * data, 0) - data.mean(-1, keepdims=True)
    expected = np.concatenate([first, 1 - data[:, :2], data.sum(1, keepdims=True)], 1)
    np.testing.assert_allclose(model(data), expected, rtol=1e-5, atol=1e-6)
    again = keras.Model.from_config(json.loads(json.dumps(model.get_config())))
    np.testing.assert_allclose(again(data), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(TypeError, match="KerasTensor"):
        bool(x[0, 0] > 1)


def test_subclass(tf, keras):
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden = keras.layers.Dense(4, activation="relu")
            self.drop = keras.layers.Dropout(0.5)
            self.out = keras.layers.Dense(1)

        def call(self, x, training=None):
            return self.out(self.drop(self.hidden(x), training=training))

    net = Net()
    data = x_of(6, 3)
    assert net(data).shape == (6, 1)
    assert len(net.weights) == 4
    assert [type(layer).__name__ for layer in net.layers] == ["Dense", "Dropout", "Dense"]
    net.compile("sgd", "mse")
    net.fit(data, data[:, :1], epochs=1, verbose=0)
    np.testing.assert_allclose(net.predict(data, verbose=0), net(data), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="compile"):
        Net().fit(data, data, verbose=0)


def test_own_train_step(tf, keras):
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.w = self.add_weight(shape=(3, 1), initializer="zeros", name="w")
            self.own = keras.metrics.Mean(name="own")

        def call(self, x):
            return tf.matmul(x, self.w)

        @property
        def metrics(self):
            return [self.own]

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
            grads = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
            self.own.update_state(loss)
            return {"own": self.own.result()}

    x = x_of(8, 3)
    y = x @ np.ones((3, 1), "float32")
    net = Net()
    net.compile(keras.optimizers.SGD(0.1))
    history = net.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0).history["own"]
    w, expected = np.zeros((3, 1)), []
    for _ in range(3):
        expected.append(np.mean((x @ w - y) ** 2))
        w -= 0.1 * 2 * x.T @ (x @ w - y) / 8
    np.testing.assert_allclose(history, expected, rtol=1e-5)


def test_configuration(keras):
    model = graph(keras)
    again = keras.Model.from_config(model.get_config())
    again.set_weights(model.get_weights())
    data = [x_of(2, 3), x_of(2, 3) * 2]
    for got, expected in zip(again(data), model(data)):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    stack = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, activation="relu", name="d")])
    other = keras.models.model_from_json(stack.to_json())
    assert other.get_layer("d").get_config()["units"] == 2
    assert [tuple(w.shape) for w in other.weights] == [(3, 2), (2,)]
    copy = keras.models.clone_model(stack)
    assert len(copy.weights) == 2
    assert copy.weights[0] is not stack.weights[0]


@pytest.mark.ours  # safetensors are our files
def test_weights_in_files(keras, tmp_path):
    model, other = graph(keras), graph(keras)
    path = tmp_path / "w.safetensors"
    model.save_weights(path)
    other.load_weights(path)
    for a, b in zip(model.get_weights(), other.get_weights()):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="HDF5"):
        model.save_weights(tmp_path / "w.h5")
    wrong = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="do not match"):
        wrong.load_weights(path)
    wrong.load_weights(path, skip_mismatch=True)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(Exception, match="corrupt"):
        other.load_weights(path)


def test_whole_models_in_files(keras, tmp_path):
    model = graph(keras)
    model.compile(keras.optimizers.Adam(0.01), loss=["mse", "mae"], metrics=[["mae"], None])
    data = [x_of(8, 3), x_of(8, 3) * 2]
    model.fit(data, [x_of(8, 2), x_of(8, 8)], verbose=0)
    path = str(tmp_path / "model.keras")
    model.save(path)
    again = keras.models.load_model(path)
    for got, expected in zip(again.predict(data, verbose=0), model.predict(data, verbose=0)):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert int(again.optimizer.iterations) == 1
    for one in (model, again):  # the optimizer's state goes on where it was
        one.fit(data, [x_of(8, 2), x_of(8, 8)], verbose=0, shuffle=False)
    for got, expected in zip(again.get_weights(), model.get_weights()):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_summary(keras):
    lines = []
    graph(keras).summary(print_fn=lambda text, **_: lines.append(text))
    text = "\n".join(lines)
    for part in ("graph", "shared (Dense)", "(None, 4)", "Total params: 34", "Trainable params: 34"):
        assert part in text, part


def test_functions_of_models(tf, keras):
    model = graph(keras)
    f = tf.function(lambda a, b: model([a, b])[0])
    a = tf.constant(x_of(2, 3))
    np.testing.assert_allclose(f(a, a), model([a, a])[0], rtol=1e-6)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(f(a, a))
    assert all(g is not None for g in tape.gradient(loss, model.trainable_variables))


def test_clones_by_functions_of_layers(keras):
    layers = keras.layers
    x = keras.Input((3,))
    inner = keras.Sequential([keras.Input((4,)), layers.Dense(4, name="inner")], name="nested")
    model = keras.Model(x, layers.Dense(2, name="top")(inner(layers.Dense(4, name="first")(x))))

    def with_dropout(layer, *args, **kwargs):
        y = layer(*args, **kwargs)
        return layers.Dropout(0.5)(y) if isinstance(layer, layers.Dense) else y

    data = np.random.default_rng(0).normal(size=(2, 3)).astype("float32")
    shared = keras.models.clone_model(model, clone_function=lambda layer: layer, call_function=with_dropout)
    assert [type(layer).__name__ for layer in shared.layers].count("Dropout") == 2
    np.testing.assert_array_equal(shared(data), model(data))  # the same layers; dropout is for training

    def wider(layer):
        return type(layer).from_config({**layer.get_config(), "name": f"{layer.name}_copy"})

    renamed = keras.models.clone_model(model, clone_function=wider, recursive=True)
    names = [layer.name for layer in renamed._flatten_layers()]
    assert {"first_copy", "inner_copy", "top_copy"} <= set(names)
    renamed.set_weights(model.get_weights())
    np.testing.assert_allclose(renamed(data), model(data), rtol=1e-6)

    z = keras.Input((3,), name="other")
    placed = keras.models.clone_model(model, input_tensors=z)
    assert placed.inputs[0] is z
    with pytest.raises(ValueError, match="same structure"):
        keras.models.clone_model(model, input_tensors=(z, x))
    with pytest.raises(ValueError, match="not supported with Sequential"):
        keras.models.clone_model(inner, call_function=with_dropout)


def test_draws_of_beta_and_binomial_have_their_moments(keras):
    shares = np.asarray(keras.random.beta((20000,), [2.0], 5.0, seed=3))
    np.testing.assert_allclose([shares.mean(), shares.var()], [2 / 7, 10 / (49 * 8)], rtol=0.03)
    counts = np.asarray(keras.random.binomial((20000,), 10.0, 0.3, seed=3))
    np.testing.assert_allclose([counts.mean(), counts.var()], [3.0, 2.1], rtol=0.03)
    draw = ow.function(lambda: keras.random.beta((3,), 1.0, 1.0))
    assert (np.asarray(draw()) != np.asarray(draw())).all()
