"""Structures of functional models: nested outputs and their losses, optional inputs, parts of models, groups of steps.

Run with OPWRIGHT_TESTS_AGAINST=tensorflow, the same tests hold for Keras.  Not here: layers and graphs
(test_layers_graphs.py), forms of data (test_fit.py).
"""

import numpy as np
import pytest

X = np.random.default_rng(3).normal(size=(12, 3)).astype("float32")


@pytest.fixture
def keras(tf):
    return tf.keras


def constant_outputs(keras, structure, *values):
    """A model whose outputs are constants: sums of zero times the input and biases of these values."""
    x = keras.Input((3,))
    ones = [keras.layers.Dense(1, "linear", True, "zeros", name=f"y{i}")(x) for i in range(len(values))]
    model = keras.Model(x, structure(ones))
    for i, value in enumerate(values):
        model.get_layer(f"y{i}").bias.assign([value])
    return model


def losses_of(model, y, **kwargs):
    model.compile("sgd", **kwargs)
    return model.evaluate(X, y, verbose=0, return_dict=True)


def zeros(n):
    return [np.zeros((len(X), 1), "float32")] * n


def test_losses_of_structures_of_outputs(keras):
    """A loss of a pair of outputs, next to one of each: by hand, (2 + 3) / 2, 4, 9."""

    def both(y_true, y_pred):
        return (abs(y_pred[0] - y_true[0]) + abs(y_pred[1] - y_true[1])) / 2

    model = constant_outputs(keras, tuple, 2.0, 3.0)
    logs = losses_of(model, tuple(zeros(2)), loss=[both, ("mse", "mse")], loss_weights=[1.0, (0.5, 2.0)])
    expected = {"loss": 2.5 + 0.5 * 4 + 2 * 9, "y0_loss": 4.0, "y1_loss": 9.0, "y0_y1_loss": 2.5}
    assert logs == pytest.approx(expected)


def test_losses_of_nested_outputs(keras):
    model = constant_outputs(keras, lambda t: {"a": t[0], "b": {"c": t[1], "d": t[2]}}, 1.0, 2.0, 3.0)
    y = {"a": zeros(1)[0], "b": {"c": zeros(1)[0], "d": zeros(1)[0]}}
    logs = losses_of(model, y, loss={"a": "mse", "b": {"c": "mae", "d": "mse"}})
    assert logs == pytest.approx({"loss": 1.0 + 2.0 + 9.0, "a_loss": 1.0, "b/c_loss": 2.0, "b/d_loss": 9.0})


@pytest.mark.ours  # Keras takes the first of them
def test_several_losses_of_one_output(keras):
    model = constant_outputs(keras, lambda t: t[0], 2.0)
    assert losses_of(model, zeros(1)[0], loss=["mse", "mae"])["loss"] == pytest.approx(4.0 + 2.0)


@pytest.mark.parametrize(
    ("structure", "loss", "error", "says"),
    [
        (lambda t: {"a": t[0], "b": t[1]}, {"a": "mse", "c": "mse"}, KeyError, "can't be found in either"),
        (list, {"y0": "mse", "c": "mse"}, ValueError, "Expected keys"),
    ],
)
def test_losses_of_outputs_that_lack(keras, structure, loss, error, says):
    model = constant_outputs(keras, structure, 1.0, 2.0)
    y = {"a": zeros(1)[0], "b": zeros(1)[0]} if "a" in loss else zeros(2)
    with pytest.raises(error, match=says):
        losses_of(model, y, loss=loss)


def test_targets_of_outputs_with_a_loss_alone(keras):
    model = constant_outputs(keras, list, 1.0, 3.0)
    assert losses_of(model, zeros(1), loss=[None, "mse"])["loss"] == pytest.approx(9.0)


def test_a_loss_that_compares_other_outputs_than_the_model_has(keras):
    class Halves(keras.Model):
        def compute_loss(self, x, y, y_pred, sample_weight, training=True):
            return super().compute_loss(x, y, [y_pred, 2 * y_pred], sample_weight, training)

    x = keras.Input((3,))
    model = Halves(x, keras.layers.Dense(1, "linear", True, "zeros", "ones")(x))
    assert losses_of(model, zeros(2), loss=["mse", "mae"])["loss"] == pytest.approx(1.0 + 2.0)


def optional_sum(keras):
    class Sum(keras.layers.Layer):
        def call(self, x, y=None):
            return x if y is None else x + y

        def compute_output_shape(self, shape):
            return shape

    inputs = [keras.Input((3,), name="a"), keras.Input((3,), name="b", optional=True)]
    return keras.Model(dict(zip("ab", inputs)), Sum()(*inputs))


def test_optional_inputs(keras):
    model = optional_sum(keras)
    np.testing.assert_allclose(model({"a": X, "b": X}), 2 * X)
    np.testing.assert_allclose(model({"a": X, "b": None}), X)
    np.testing.assert_allclose(model.predict({"a": X, "b": None}, verbose=0), X)
    model.compile("sgd", "mse")
    assert model.evaluate({"a": X, "b": None}, X, verbose=0) == 0.0
    with pytest.raises(ValueError, match="not optional"):
        model({"a": None, "b": X})


def test_part_of_a_model_has_no_layers_before_it(keras):
    x = keras.Input((3,))
    first, second = keras.layers.Dense(4), keras.layers.Dense(5)
    hidden = first(x)
    whole = keras.Model(x, second(hidden))
    part = keras.Model(hidden, whole.output)
    assert part.count_params() == 4 * 5 + 5
    assert [type(layer).__name__ for layer in part.layers] == ["InputLayer", "Dense"]
    np.testing.assert_allclose(part(first(X)), whole(X), rtol=1e-6)
    assert tuple(second.input.shape) == (None, 4)  # of the first call


def test_inputs_in_another_structure(keras):
    a, b = keras.Input((3,), name="z"), keras.Input((3,), name="y")
    model = keras.Model({"z": a, "y": b}, keras.layers.subtract([a, b]))
    with pytest.raises(ValueError, match="The structure of `inputs` doesn't match"):
        model([X, X])  # in which order?
    model = keras.Model({"y": b, "z": a}, keras.layers.subtract([a, b]))
    with pytest.warns(UserWarning, match="The structure of `inputs` doesn't match"):
        np.testing.assert_allclose(model([X, 3 * X]), 2 * X, rtol=1e-6)


def test_configurations_keep_tuples_and_names(keras):
    a, b = keras.Input((3,)), keras.Input((3,))
    model = keras.Model((a, b), (a + b, keras.layers.Dense(2)(a)), trainable=False)
    again = keras.models.model_from_json(model.to_json())
    assert again.to_json() == model.to_json()
    assert isinstance(type(model).from_config(model.get_config())((X, X)), tuple)
    assert not again.trainable_weights


def test_summary_with_operators(keras, capsys):
    x = keras.Input((3,))
    keras.Model(x, x * 2 + x).summary()
    assert "Add" in capsys.readouterr().out


def test_sequential_that_begins_with_a_model(keras):
    x = keras.Input((3,))
    inner = keras.Model(x, keras.layers.Dense(4)(x))
    model = keras.Sequential([inner, keras.layers.Dense(2)])
    assert model.built
    assert model.count_params() == 3 * 4 + 4 + 4 * 2 + 2
    with pytest.raises(ValueError, match="already been configured"):
        model.build((None, 7))


def test_layers_cannot_be_set(keras):
    for model in (keras.Model(), keras.Sequential()):
        with pytest.raises(AttributeError, match=r"attribute is reserved|Use `add"):
            model.layers = []


def test_variables_by_path(keras):
    x = keras.Input((3,))
    model = keras.Model(x, keras.layers.Dense(1, name="y")(x))
    model.compile("adam", "mse")
    tree = model.get_state_tree("numpy_array")
    assert tree["trainable_variables"]["y"]["kernel"].shape == (3, 1)
    (state,) = tree["optimizer_variables"].values()
    assert state["learning_rate"] == np.float32(0.001)
    model.set_state_tree({"trainable_variables": {"y": {"bias": [7.0]}}})
    np.testing.assert_array_equal(model.layers[-1].get_weights()[1], [7.0])


class Steps:
    """Records which batches callbacks see."""

    def __new__(cls, keras):
        class Recorder(keras.callbacks.Callback):
            def __init__(self):
                super().__init__()
                self.seen = []

            def on_train_batch_begin(self, batch, logs=None):
                self.seen.append(batch)

            def on_train_batch_end(self, batch, logs=None):
                self.seen.append(-batch)

        return Recorder()


def linear(keras, group):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=group)
    return model


def test_callbacks_of_groups_of_steps(keras):
    record = Steps(keras)
    linear(keras, 2).fit(X, X[:, :1], batch_size=4, callbacks=[record], verbose=0)  # 3 batches
    assert record.seen == [0, -1, 2, -3]


def test_an_epoch_ends_with_the_data(keras):
    record = Steps(keras)
    with pytest.warns(UserWarning, match="ran out of data"):
        linear(keras, 1).fit(X, X[:, :1], batch_size=4, steps_per_epoch=2, epochs=2, callbacks=[record], verbose=0)
    assert record.seen == [0, 0, 1, -1, 0, 0]  # 3 batches: the second epoch has one


def test_sources_without_end_and_loaders(keras):
    class Endless(keras.utils.PyDataset):
        @property
        def num_batches(self):
            return None

        def __getitem__(self, index):
            return X[:4], X[:4, :1]

    history = linear(keras, 1).fit(Endless(), steps_per_epoch=3, epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2


@pytest.mark.ours  # Keras takes PyTorch's class alone
def test_loaders_are_iterated(keras):
    class Loader:
        def __len__(self):
            return 3

        def __iter__(self):
            return iter([[X[i : i + 4], X[i : i + 4, :1]] for i in (0, 4, 8)])

    record = Steps(keras)
    linear(keras, 1).fit(Loader(), epochs=1, callbacks=[record], verbose=0)
    assert record.seen == [0, 0, 1, -1, 2, -2]


def test_messages_are_logged(keras, capsys, caplog):
    keras.config.disable_interactive_logging()
    try:
        assert not keras.config.is_interactive_logging_enabled()
        rate = keras.callbacks.LearningRateScheduler(lambda epoch: 0.5, verbose=1)
        with caplog.at_level("INFO"):
            linear(keras, 1).fit(X, X[:, :1], callbacks=[rate], verbose=0)
        assert "LearningRateScheduler setting learning rate to 0.5" in caplog.text
        assert not capsys.readouterr().out
    finally:
        keras.config.enable_interactive_logging()


def test_metrics_nested_as_the_outputs(keras):
    model = constant_outputs(keras, lambda t: {"a": t[0], "b": {"c": t[1]}}, 1.0, 2.0)
    y = {"a": zeros(1)[0], "b": {"c": zeros(1)[0]}}
    logs = losses_of(model, y, loss="mse", metrics={"a": "mae", "b": {"c": ["mse"]}})
    assert (logs["y0_mae"], logs["y1_mse"]) == pytest.approx((1.0, 4.0))


def test_monitors_of_unknown_direction(keras):
    stop = keras.callbacks.EarlyStopping(monitor="beauty")
    with pytest.raises(ValueError, match="mode='m"):
        linear(keras, 1).fit(X, X[:, :1], callbacks=[stop], verbose=0)
    on_loss = keras.callbacks.EarlyStopping(monitor="loss")
    linear(keras, 1).fit(X, X[:, :1], callbacks=[on_loss], verbose=0)
    assert on_loss.monitor_op is keras.ops.less


def test_backups_leave_no_folder(keras, tmp_path):
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
    linear(keras, 1).fit(X, X[:, :1], callbacks=[backup], verbose=0)
    assert not (tmp_path / "backup").exists()
    with pytest.raises(ValueError, match="Empty `backup_dir`"):
        keras.callbacks.BackupAndRestore("")


def test_tensors_that_become_inputs(keras):
    tensor = keras.KerasTensor((2, 3))
    x = keras.Input(tensor=tensor)
    assert x is tensor
    assert tuple(keras.Model(x, keras.layers.Dense(4)(x))(X[:2]).shape) == (2, 4)
    for arguments in ({"shape": (4,)}, {"batch_size": 5}, {"dtype": "float16"}):
        with pytest.raises(ValueError, match="incompatible"):
            keras.layers.InputLayer(input_tensor=keras.KerasTensor((2, 3)), **arguments)


def test_integers_of_dense_layers(keras):
    layer = keras.layers.Dense(2, kernel_initializer="ones")
    np.testing.assert_array_equal(layer(np.array([[1, 2], [3, 4]])), [[3.0, 3.0], [7.0, 7.0]])
    layer = keras.layers.EinsumDense("ab,bc->ac", (2,), kernel_initializer="ones")
    np.testing.assert_array_equal(layer(np.array([[1, 2], [3, 4]])), [[3.0, 3.0], [7.0, 7.0]])


def test_state_of_optimizers(keras):
    first, second = keras.optimizers.Adam(), keras.optimizers.Adam()
    weight = keras.Variable(np.ones(3, "float32"))
    first.apply([np.ones(3, "float32")], [weight])
    with pytest.raises(ValueError, match="You are calling"):
        second.set_weights(first.variables)
    second.build([weight])
    second.set_weights(first.variables)
    for own, other in zip(second.variables, first.variables):
        np.testing.assert_array_equal(np.asarray(own), np.asarray(other))
    keras.utils.clear_session()
    assert keras.optimizers.Adam().name == "adam"


def test_the_mode_of_a_model_replaces_the_mode_that_layers_were_called_with(tf):
    """As in Keras 3.15, whose files have `training=True` for RandomFlip: its `call` has that default."""
    inputs = tf.keras.Input((4, 4, 1))
    model = tf.keras.Model(inputs, tf.keras.layers.Dropout(0.5)(inputs, training=True))
    x = np.ones((8, 4, 4, 1), np.float32)
    np.testing.assert_array_equal(model(x, training=False), x)
    np.testing.assert_array_equal(model.predict(x, verbose=0), x)
    assert np.any(np.asarray(model(x)) != x)
