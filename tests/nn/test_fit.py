"""fit, evaluate and predict: forms of data, callbacks, options.

That they compute what Keras does: test_keras_figures.py.
"""

import gc
import threading
import time

import numpy as np
import pytest


@pytest.fixture
def keras(tf):
    return tf.keras


X = np.random.default_rng(1).normal(size=(40, 3)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5]])).astype("float32")


def linear(keras, **kwargs):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.1), "mse", **kwargs)
    return model


def wanted(epochs=2, batch=10):
    """The same steps of gradient descent in float64."""
    w, b, losses = np.zeros((3, 1)), np.zeros(1), []
    for _ in range(epochs):
        total = 0.0
        for at in range(0, len(X), batch):
            x, error = X[at : at + batch], X[at : at + batch] @ w + b - Y[at : at + batch]
            total += np.mean(error**2) * len(x)
            w, b = w - 0.2 * x.T @ error / len(x), b - 0.2 * error.mean(0)
        losses.append(total / len(X))
    return losses


def test_arrays(keras):
    history = linear(keras).fit(X, Y, batch_size=10, epochs=2, shuffle=False, verbose=0)
    np.testing.assert_allclose(history.history["loss"], wanted(), rtol=1e-5)
    assert history.epoch == [0, 1]


def test_a_last_batch_that_is_smaller(keras):
    history = linear(keras).fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    np.testing.assert_allclose(history.history["loss"], wanted(batch=16), rtol=1e-5)


def test_tensors(tf, keras):
    history = linear(keras).fit(tf.constant(X), tf.constant(Y), batch_size=10, epochs=2, shuffle=False, verbose=0)
    np.testing.assert_allclose(history.history["loss"], wanted(), rtol=1e-5)


def test_datasets(tf, keras):
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(10)
    model = linear(keras)
    history = model.fit(dataset, epochs=2, verbose=0, validation_data=dataset)
    np.testing.assert_allclose(history.history["loss"], wanted(), rtol=1e-5)
    np.testing.assert_allclose(model.evaluate(dataset, verbose=0), history.history["val_loss"][-1], rtol=1e-5)
    assert model.predict(dataset, verbose=0).shape == (40, 1)


def test_generators(keras):
    def batches():
        while True:
            for at in range(0, len(X), 10):
                yield X[at : at + 10], Y[at : at + 10]

    history = linear(keras).fit(batches(), steps_per_epoch=4, epochs=2, verbose=0)
    np.testing.assert_allclose(history.history["loss"], wanted(), rtol=1e-5)


def test_eager_steps(keras):
    history = linear(keras, run_eagerly=True).fit(X, Y, batch_size=10, epochs=2, shuffle=False, verbose=0)
    np.testing.assert_allclose(history.history["loss"], wanted(), rtol=1e-5)


def test_steps_per_execution(keras):
    seen = []
    model = linear(keras, steps_per_execution=2)
    told = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
    history = model.fit(X, Y, batch_size=10, epochs=1, shuffle=False, verbose=0, callbacks=[told])
    np.testing.assert_allclose(history.history["loss"], wanted(1), rtol=1e-5)
    assert seen == [1, 3]


def test_shuffling_uses_all_of_the_data_each_epoch(tf, keras):
    model = linear(keras)
    model.optimizer.learning_rate = 0.0
    history = model.fit(X, Y, batch_size=7, epochs=3, verbose=0)
    np.testing.assert_allclose(history.history["loss"], [np.mean(Y**2)] * 3, rtol=1e-5)


def test_single_batches(keras):
    model = linear(keras, metrics=["mae"])
    loss, mae = model.train_on_batch(X, Y)
    np.testing.assert_allclose(float(loss), np.mean(Y**2), rtol=1e-5)
    np.testing.assert_allclose(float(mae), np.mean(np.abs(Y)), rtol=1e-5)
    actual = model.test_on_batch(X, Y, return_dict=True)
    assert sorted(actual) == ["loss", "mae"]
    assert model.predict_on_batch(X[:4]).shape == (4, 1)


def test_callbacks_are_called_in_order(keras):
    told = []

    class Told(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            told.append("train")

        def on_epoch_begin(self, epoch, logs=None):
            told.append(f"epoch {epoch}")

        def on_train_batch_end(self, batch, logs=None):
            told.append(f"batch {batch} {sorted(logs)}")

        def on_test_begin(self, logs=None):
            told.append("test")

        def on_epoch_end(self, epoch, logs=None):
            told.append(f"end {epoch} {sorted(logs)}")
            self.model.stop_training = epoch == 0

    linear(keras).fit(X, Y, batch_size=20, epochs=3, validation_data=(X, Y), verbose=0, callbacks=[Told()])
    assert told == ["train", "epoch 0", "batch 0 ['loss']", "batch 1 ['loss']", "test", "end 0 ['loss', 'val_loss']"]


def test_validation_frequency(keras):
    history = linear(keras).fit(X, Y, epochs=4, validation_split=0.25, validation_freq=2, verbose=0)
    assert len(history.history["val_loss"]) == 2


def test_checkpoints(keras, tmp_path):
    model = linear(keras)
    path = str(tmp_path / "at-{epoch:02d}.keras")
    saver = keras.callbacks.ModelCheckpoint(path, monitor="loss", save_best_only=True)
    model.fit(X, Y, epochs=2, verbose=0, callbacks=[saver])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["at-01.keras", "at-02.keras"]
    again = keras.models.load_model(str(tmp_path / "at-02.keras"))
    np.testing.assert_allclose(again.get_weights()[0], model.get_weights()[0])


def test_csv(keras, tmp_path):
    path = tmp_path / "log.csv"
    linear(keras).fit(
        X, Y, batch_size=10, epochs=2, shuffle=False, verbose=0, callbacks=[keras.callbacks.CSVLogger(str(path))]
    )
    rows = [line.split(",") for line in path.read_text().split()]
    assert rows[0][:2] == ["epoch", "loss"]
    np.testing.assert_allclose([float(r[1]) for r in rows[1:]], wanted(), rtol=1e-5)


def test_training_ends_at_nan(keras):
    model = linear(keras)
    model.optimizer.learning_rate = 1e30
    history = model.fit(X, Y, batch_size=4, epochs=5, verbose=0, callbacks=[keras.callbacks.TerminateOnNaN()])
    assert len(history.history["loss"]) == 1


def test_output_is_plain_where_there_is_no_terminal(keras, capsys):
    linear(keras).fit(X, Y, epochs=2, verbose=2)
    lines = capsys.readouterr().out.strip().split("\n")
    assert lines[0] == "Epoch 1/2"
    assert lines[1].startswith("2/2 - ") or lines[1].startswith("2/2 ")
    assert "loss: " in lines[1]
    linear(keras).fit(X, Y, verbose=0)
    assert capsys.readouterr().out == ""


def test_errors(keras):
    model = linear(keras)
    with pytest.raises(ValueError, match="cardinality"):
        model.fit(X, Y[:5], verbose=0)
    with pytest.raises(ValueError, match="compile"):
        keras.Sequential([keras.layers.Dense(1)]).fit(X, Y, verbose=0)


@pytest.mark.ours  # Keras fails with a TypeError about None
def test_losses_of_outputs_that_are_not_there(keras):
    model = linear(keras)
    model.compile("sgd", loss={"other": "mse"})
    with pytest.raises(ValueError, match=r"Expected keys .* found loss.keys\(\)=\['other'\]"):
        model.fit(X, Y, verbose=0)


def test_a_list_of_one_loss_is_that_loss(keras):
    x = keras.Input((2,))
    model = keras.Model(x, {"y": keras.layers.Dense(1, name="y")(x)})
    rows, labels = np.ones((4, 2), "float32"), np.ones((4, 1), "float32")
    losses = []
    for loss in ("mse", ["mse"], {"y": "mse"}, {"y": ["mse"]}):
        model.compile("sgd", loss=loss)
        losses.append(float(model.evaluate(rows, labels, verbose=0)))
    assert losses == [losses[0]] * 4


def test_one_trace_serves_all_batch_sizes(tf, keras):
    traced = []

    class Layer(keras.layers.Layer):
        def call(self, x):
            traced.append(tuple(x.shape))
            return x

    model = keras.Sequential([keras.Input((3,)), Layer(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=10, epochs=1, verbose=0)
    before = len(traced)
    model.fit(X, Y, batch_size=16, epochs=2, verbose=0)
    assert len(traced) - before <= 1  # Keras may trace once more for other sizes


def test_utilities(keras):
    np.testing.assert_array_equal(keras.utils.to_categorical([0, 2, 1], 3), np.eye(3)[[0, 2, 1]])
    keras.utils.set_random_seed(3)
    first = keras.layers.Dense(2)(X[:1]).numpy()
    keras.utils.set_random_seed(3)
    np.testing.assert_array_equal(keras.layers.Dense(2)(X[:1]).numpy(), first)
    assert keras.backend.epsilon() == 1e-7
    assert keras.backend.floatx() == "float32"


# ---- the next batch is drawn while a step runs -----------------------------------------------------------------------


class SlowBatches:
    """A generator of batches that take a while, what it saw and whether it was closed. fails: a batch that raises."""

    def __init__(self, count=6, fails=None):
        self.count, self.fails, self.seen, self.closed, self.outside = count, fails, [], False, False

    def batches(self):
        try:
            for i in range(self.count):
                assert not self.outside, "drawn while callbacks run"
                if i == self.fails:
                    raise LookupError("no such batch")
                time.sleep(0.002)
                self.seen.append(("draw", i, threading.current_thread().name))
                yield X[:10] + np.float32(i), Y[:10]
        finally:
            self.closed = True


def watching(keras, source, stops_after=None, fails_after=None):
    class Watching(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            source.outside = True
            time.sleep(0.001)
            source.seen.append(("end", batch, ""))
            self.model.stop_training = batch == stops_after
            source.outside = False
            if batch == fails_after:
                raise ArithmeticError("a callback fails")

    return Watching()


def no_thread_remains():
    for thread in threading.enumerate():
        if thread.name == "batches":
            thread.join(5)
            assert not thread.is_alive()


def test_the_next_batch_comes_while_a_step_runs(keras):
    source = SlowBatches()
    linear(keras).fit(source.batches(), verbose=0, callbacks=[watching(keras, source)])
    steps = [("draw", 0), ("end", 0), ("draw", 1)]  # the first step is traced: initial values may be drawn in it
    steps += [step for i in range(1, 5) for step in (("draw", i + 1), ("end", i))]
    assert [step[:2] for step in source.seen] == [*steps, ("end", 5)]
    assert [name == "batches" for what, i, name in source.seen if what == "draw"] == [i > 1 for i in range(6)]
    assert source.closed
    no_thread_remains()


def test_an_error_of_a_batch_is_raised_at_its_step(keras):
    source = SlowBatches(fails=4)
    with pytest.raises(LookupError, match="no such batch") as error:
        linear(keras).fit(source.batches(), verbose=0, callbacks=[watching(keras, source)])
    assert [i for what, i, _ in source.seen if what == "end"] == [0, 1, 2, 3]
    assert "batches" in {entry.name for entry in error.traceback}
    no_thread_remains()


@pytest.mark.parametrize("after", [0, 3])
def test_nothing_is_drawn_after_training_stops(keras, after):
    for how in ("stops_after", "fails_after"):
        source = SlowBatches()
        callback = watching(keras, source, **{how: after})
        if how == "fails_after":
            with pytest.raises(ArithmeticError):
                linear(keras).fit(source.batches(), verbose=0, callbacks=[callback])
        else:
            linear(keras).fit(source.batches(), verbose=0, callbacks=[callback])
        drawn = [i for what, i, _ in source.seen if what == "draw"]
        assert drawn == list(range(after + (2 if after else 1)))
        no_thread_remains()
        del callback
        gc.collect()
        assert source.closed  # nothing refers to the generator


def test_a_limit_on_steps_draws_nothing_behind_it(keras):
    source = SlowBatches()
    batches = source.batches()
    linear(keras).fit(batches, steps_per_epoch=2, epochs=2, verbose=0)
    assert [i for _, i, _ in source.seen] == [0, 1, 2, 3]
    next(batches)
    assert source.seen[-1][1] == 4


def test_draws_ahead_change_no_number(tf, keras, monkeypatch):
    """Shuffled arrays and datasets, dropout with and without seeds, validation: the same in any case."""

    def run(worth):
        monkeypatch.setattr("opwright.nn.training.batches.WORTH", worth)
        tf.random.set_seed(4)
        layers = [keras.Input((3,)), keras.layers.Dense(8), keras.layers.Dropout(0.5), keras.layers.Dense(1)]
        model = keras.Sequential([*layers[:3], keras.layers.Dropout(0.2, seed=2), layers[3]])
        model.compile("adam", "mse")
        first = model.fit(X, Y, batch_size=7, epochs=3, validation_split=0.2, verbose=0)
        dataset = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(40, seed=3).batch(9)
        second = model.fit(dataset, epochs=2, verbose=0, class_weight=None)
        return first.history, second.history, model.predict(X, batch_size=6, verbose=0)

    without, ahead = run(np.inf), run(0.0)
    assert without[:2] == ahead[:2]
    np.testing.assert_array_equal(without[2], ahead[2])


def test_dropout_without_a_seed_draws_the_same_numbers_eagerly_and_in_functions(tf):
    losses = []
    for mode in ({"run_eagerly": True}, {}, {"jit_compile": True}):
        tf.keras.utils.set_random_seed(1)
        layers = tf.keras.layers
        model = tf.keras.Sequential([layers.Dense(8), layers.Dropout(0.3), layers.GaussianNoise(0.1), layers.Dense(3)])
        model.compile("adam", "mse", **mode)
        x = np.random.default_rng(0).standard_normal((64, 5)).astype(np.float32)
        losses.append(model.fit(x, x[:, :3], batch_size=16, epochs=2, verbose=0, shuffle=False).history["loss"])
    np.testing.assert_allclose(losses[1:], losses[:1] * 2, rtol=1e-5)
