"""Test the programs of Keras's guides: custom steps, names, order and form of metrics, callbacks, summaries."""

import io
import re
from contextlib import redirect_stdout

import numpy as np
import pytest


@pytest.fixture
def keras(tf):
    return tf.keras


def rows(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def linear(keras, cls=None, **compiled):
    x = keras.Input((3,))
    model = (cls or keras.Model)(x, keras.layers.Dense(1, kernel_initializer="ones")(x))
    model.compile(**{"optimizer": keras.optimizers.SGD(0.1), "loss": "mse", "metrics": ["mae"], **compiled})
    return model


def test_a_train_step_that_updates_the_metrics_by_hand(tf, keras):
    class Custom(keras.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=y_pred)
            variables = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, variables), variables)
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, y_pred)
            return {m.name: m.result() for m in self.metrics}

    x, y = rows(12, 3), rows(12, 1, seed=1)
    got = linear(keras, Custom).fit(x, y, batch_size=4, epochs=2, verbose=0, shuffle=False).history
    want = linear(keras).fit(x, y, batch_size=4, epochs=2, verbose=0, shuffle=False).history
    assert sorted(got) == sorted(want) == ["loss", "mae"]
    for key in want:
        np.testing.assert_allclose(got[key], want[key], rtol=1e-5)


@pytest.mark.filterwarnings("ignore:`model.compiled_loss")
def test_a_train_step_of_the_older_guides(tf, keras):
    class Older(keras.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compiled_loss(y, y_pred, regularization_losses=self.losses)
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            self.compiled_metrics.update_state(y, y_pred)
            return {"loss": loss}

    history = linear(keras, Older).fit(rows(8, 3), rows(8, 1, seed=1), batch_size=8, epochs=3, verbose=0).history
    assert history["loss"][2] < history["loss"][0]


def test_figures_come_sorted_by_name(keras):
    x, y = rows(8, 3), rows(8, 1, seed=1)
    history = linear(keras, metrics=["mse", "mae"]).fit(x, y, verbose=0, validation_data=(x, y)).history
    assert list(history) == ["loss", "mae", "mse", "val_loss", "val_mae", "val_mse"]


def test_verbose_2_is_a_line_an_epoch(keras):
    out = io.StringIO()
    with redirect_stdout(out):
        linear(keras).fit(rows(8, 3), rows(8, 1), batch_size=4, epochs=2, verbose=2)
    lines = out.getvalue().splitlines()
    assert lines[0] == "Epoch 1/2"
    assert re.fullmatch(r"2/2 - \d+s - \d+[mu]?s/step - loss: \d\.\d{4} - mae: \d\.\d{4}", lines[1])


def test_callbacks_always_get_a_dict(keras):
    heard = []

    class All(keras.callbacks.Callback):
        pass

    for event in ("train_begin", "train_end", "test_begin", "test_end", "predict_begin", "predict_end"):
        setattr(All, f"on_{event}", lambda self, logs=None, event=event: heard.append((event, sorted(logs.keys()))))
    for event in ("epoch_begin", "train_batch_begin", "test_batch_begin", "predict_batch_begin"):
        setattr(All, f"on_{event}", lambda self, n, logs=None, event=event: heard.append((event, sorted(logs.keys()))))
    model = linear(keras)
    model.fit(rows(4, 3), rows(4, 1), verbose=0, callbacks=[All()])
    model.evaluate(rows(4, 3), rows(4, 1), verbose=0, callbacks=[All()])
    model.predict(rows(4, 3), verbose=0, callbacks=[All()])
    assert heard == [
        ("train_begin", []),
        ("epoch_begin", []),
        ("train_batch_begin", []),
        ("train_end", ["loss", "mae"]),
        ("test_begin", []),
        ("test_batch_begin", []),
        ("test_end", ["loss", "mae"]),
        ("predict_begin", []),
        ("predict_batch_begin", []),
        ("predict_end", []),
    ]


def test_train_on_batch_returns_the_figures_of_that_batch(keras):
    model = linear(keras, optimizer=keras.optimizers.SGD(0.0))
    x, y = rows(4, 3), rows(4, 1, seed=1)
    first = model.train_on_batch(x, y)
    model.train_on_batch(10 * x, y)
    np.testing.assert_allclose(model.test_on_batch(x, y), first, rtol=1e-6)


def test_validation_begins_with_the_first_batch_each_time(tf, keras):
    model = linear(keras, optimizer=keras.optimizers.SGD(0.0))
    data = tf.data.Dataset.from_tensor_slices((rows(12, 3), rows(12, 1, seed=1))).batch(3)
    losses = model.fit(data, epochs=3, verbose=0, validation_data=data, validation_steps=1).history["val_loss"]
    assert losses[0] == losses[1] == losses[2]


def test_losses_and_metrics_of_several_outputs(keras):
    x = keras.Input((3,))
    dense = keras.layers.Dense
    model = keras.Model(x, {"z": dense(1, name="one")(x), "a": dense(2, name="two")(x)})
    targets = {"z": rows(4, 1), "a": rows(4, 2)}
    weighted = {"z": ["mae"], "a": ["mse"]}
    model.compile("sgd", {"z": "mse", "a": "mae"}, metrics={"z": ["mae"]}, weighted_metrics=weighted)
    weights = {"z": np.ones(4), "a": np.ones(4)}
    result = model.fit(rows(4, 3), targets, sample_weight=weights, verbose=0).history
    assert list(result) == ["a_loss", "a_mse", "loss", "z_loss", "z_mae", "z_weighted_mae"]
    assert model.metrics_names == ["loss", "compile_metrics", "z_loss", "a_loss"]
    listed = model.evaluate(rows(4, 3), targets, verbose=0)
    named = model.evaluate(rows(4, 3), targets, verbose=0, return_dict=True)
    order = ["loss", "z_loss", "a_loss", "a_mse", "z_mae", "z_weighted_mae"]
    np.testing.assert_allclose(listed, [named[k] for k in order], rtol=1e-6)


def test_losses_of_outputs_without_names(keras):
    class Two(keras.Model):
        def __init__(self):
            super().__init__()
            self.p, self.q = keras.layers.Dense(1), keras.layers.Dense(2)

        def call(self, x):
            return self.p(x), self.q(x)

    model = Two()
    model.compile("sgd", ["mse", "mae"], metrics=[["mae"], ["mse"]])
    result = model.fit(rows(4, 3), [rows(4, 1), rows(4, 2)], verbose=0).history
    assert list(result) == ["loss", "mae", "mae_loss", "mse", "mse_loss"]


def test_a_subclassed_model_is_loaded_with_its_weights(keras, tmp_path):
    @keras.utils.register_keras_serializable(package="test_guides")
    class Named(keras.Model):
        def __init__(self, units=2, **kwargs):
            super().__init__(**kwargs)
            self.units = units
            self.inner = keras.layers.Dense(units)

        def call(self, x):
            return self.inner(x)

        def get_config(self):
            return {"units": self.units}

    model = Named(3)
    want = model(rows(2, 4))
    model.save(tmp_path / "model.keras")
    np.testing.assert_allclose(keras.models.load_model(tmp_path / "model.keras")(rows(2, 4)), want, rtol=1e-6)


def test_a_class_nobody_registered_is_a_type_error(keras, tmp_path):
    class Unknown(keras.layers.Layer):
        def call(self, x):
            return x

    keras.Sequential([keras.Input((3,)), Unknown()]).save(tmp_path / "model.keras")
    with pytest.raises(TypeError):
        keras.models.load_model(tmp_path / "model.keras")


def test_a_model_exported_is_served(tf, keras, tmp_path):
    model = linear(keras)
    model.export(str(tmp_path / "served"), verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "served"))
    want = model(rows(2, 3))
    np.testing.assert_allclose(loaded.serve(tf.constant(rows(2, 3))), want, rtol=1e-6)
    (got,) = loaded.signatures["serving_default"](tf.constant(rows(2, 3))).values()
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_csv_has_columns_for_a_validation_to_come(keras, tmp_path):
    log = keras.callbacks.CSVLogger(str(tmp_path / "log.csv"))
    x, y = rows(4, 3), rows(4, 1)
    linear(keras).fit(x, y, epochs=2, verbose=0, validation_data=(x, y), validation_freq=2, callbacks=[log])
    lines = (tmp_path / "log.csv").read_text().splitlines()
    assert lines[0] == "epoch,loss,mae,val_loss,val_mae"
    assert lines[1].endswith(",NA,NA")
    assert "NA" not in lines[2]


def test_normalization_shows_what_it_found(keras):
    layer = keras.layers.Normalization(axis=-1)
    data = rows(10, 3)
    layer.adapt(data)
    np.testing.assert_allclose(layer.mean.numpy(), data.mean(0, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(layer.variance.numpy(), data.var(0, keepdims=True), rtol=1e-5)


def test_windows_of_a_series(keras):
    make = keras.utils.timeseries_dataset_from_array
    data, targets = np.arange(10), np.arange(10) * 10
    (x, y), *rest = make(data, targets, sequence_length=3, sequence_stride=2, sampling_rate=2, batch_size=8)
    assert not rest
    np.testing.assert_array_equal(x, [[0, 2, 4], [2, 4, 6], [4, 6, 8]])
    np.testing.assert_array_equal(y, [0, 20, 40])
    (only,) = make(data, None, sequence_length=4, start_index=2, end_index=7)
    np.testing.assert_array_equal(only, [[2, 3, 4, 5], [3, 4, 5, 6]])
    shuffled = np.concatenate([b.numpy() for b in make(data, None, 3, batch_size=2, shuffle=True, seed=1)])
    assert sorted(map(tuple, shuffled)) == [(i, i + 1, i + 2) for i in range(8)]
    with pytest.raises(ValueError, match="sampling_rate"):
        make(data, None, 3, sampling_rate=0)


def test_rows_looked_up_by_int32_and_int64_add_up(tf, keras):
    layer = keras.layers.Embedding(4, 2, embeddings_initializer="ones")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(tf.constant([0, 1]))) + tf.reduce_sum(layer(tf.constant([1, 2], tf.int64)))
    gradient = tf.convert_to_tensor(tape.gradient(loss, layer.trainable_variables[0]))
    np.testing.assert_array_equal(gradient, [[1, 1], [2, 2], [1, 1], [0, 0]])


def test_repeated_sizes_are_known(keras):
    x = keras.Input((8, 8, 2))
    assert tuple(keras.layers.UpSampling2D((2, 3))(x).shape) == (None, 16, 24, 2)


def test_summary_of_a_chain(keras):
    x = keras.Input((4,))
    inner = keras.Model(x, keras.layers.Dense(3, name="dense_a")(x), name="inner")
    y = keras.Input((4,), name="start")
    outer = keras.Model(y, keras.layers.Dense(1, name="dense_b")(inner(y)), name="outer")
    lines = []
    outer.summary(line_length=60, print_fn=lambda text, **_: lines.extend(text.splitlines()))
    text = "\n".join(lines)
    assert "inner (Functional)" in text
    assert "Connected to" not in text
    assert "├" in text


def test_a_kernel_is_a_variable_in_mixed_precision_too(tf, keras):
    for layer, x in (
        (keras.layers.Dense(2, dtype="mixed_float16"), rows(1, 3)),
        (keras.layers.Conv1D(2, 1, dtype="mixed_float16"), rows(1, 3, 3)),
        (keras.layers.EinsumDense("ab,bc->ac", 2, dtype="mixed_float16"), rows(1, 3)),
    ):
        assert layer(x).dtype == tf.float16
        assert np.asarray(layer.trainable_variables[0]).dtype == np.float32
        layer.kernel.assign(tf.ones(layer.kernel.shape))
        np.testing.assert_allclose(np.asarray(layer(x), "float32"), x.sum(-1, keepdims=True).repeat(2, -1), atol=1e-2)


def test_batches_made_by_a_class(keras):
    x, y = rows(8, 3), rows(8, 1, seed=1)

    class Batches(keras.utils.PyDataset):
        epochs = 0

        def __len__(self):
            return 2

        def __getitem__(self, index):
            return x[index * 4 : index * 4 + 4], y[index * 4 : index * 4 + 4]

        def on_epoch_end(self):
            self.epochs += 1

    batches = Batches()
    got = linear(keras).fit(batches, epochs=2, verbose=0, shuffle=False).history["loss"]
    want = linear(keras).fit(x, y, batch_size=4, epochs=2, verbose=0, shuffle=False).history["loss"]
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert batches.epochs >= 2


def test_images_of_another_ratio_are_cut_or_framed(tf, keras, tmp_path):
    Image = pytest.importorskip("PIL.Image")
    pixels = np.arange(4 * 2 * 3, dtype=np.uint8).reshape(4, 2, 3)
    (tmp_path / "a").mkdir()
    Image.fromarray(pixels).save(tmp_path / "a" / "0.png")

    def first(size, **options):
        images = keras.utils.image_dataset_from_directory(
            str(tmp_path), labels=None, image_size=size, batch_size=1, shuffle=False, verbose=False, **options
        )
        return next(iter(images)).numpy()[0]

    Image.fromarray(pixels).save(tmp_path / "1.png")  # outside of the folder: without labels, all files count
    everything = keras.utils.image_dataset_from_directory(str(tmp_path), label_mode=None, verbose=False)
    assert [tuple(batch.shape) for batch in everything] == [(2, 256, 256, 3)]
    np.testing.assert_array_equal(first((2, 2), crop_to_aspect_ratio=True), pixels[1:3])
    np.testing.assert_array_equal(first((4, 4), pad_to_aspect_ratio=True), np.pad(pixels, [(0, 0), (1, 1), (0, 0)]))
    channels_first = first((4, 2), data_format="channels_first")
    np.testing.assert_array_equal(channels_first, pixels.transpose(2, 0, 1))
    with pytest.raises(ValueError, match="Only one of"):
        first((2, 2), crop_to_aspect_ratio=True, pad_to_aspect_ratio=True)


def test_a_bar_shows_means_over_steps(keras):
    bar = keras.utils.Progbar(3, stateful_metrics=["last"])
    with redirect_stdout(io.StringIO()) as text:
        for step, value in ((1, 1.0), (3, 4.0)):  # the second of two steps
            bar.update(step, [("mean", value), ("last", value)])
    assert re.search(r"mean: 3\.0+.* - last: 4\.0+", text.getvalue())
    with pytest.raises(ValueError, match="Only one of"):
        keras.utils.Progbar(3, stateful_metrics=[], stateless_metrics=[])


def test_models_are_saved_where_the_metric_is_unknown(keras, tmp_path):
    model = linear(keras)
    checkpoint = keras.callbacks.ModelCheckpoint(
        str(tmp_path / "m.keras"), monitor="unknown", save_best_only=True, mode="min"
    )
    with pytest.warns(UserWarning, match="unknown"):
        model.fit(rows(4, 3), rows(4, 1), verbose=0, callbacks=[checkpoint])
    assert (tmp_path / "m.keras").exists()


def test_vectors_of_tensors_and_arrays(tf, keras):
    x = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    for order, length in ((1, 7.0), (2, 5.0)):
        expected = np.array([[3 / length, 4 / length], [0.0, 0.0]], np.float32)
        np.testing.assert_allclose(keras.utils.normalize(x, order=order), expected)
        result = keras.utils.normalize(tf.constant(x), order=order)
        assert hasattr(result, "numpy")
        np.testing.assert_allclose(result.numpy(), expected)
    sound = tf.audio.encode_wav(np.zeros((3, 1)), 1000)  # float64, as TensorFlow takes it
    assert tf.audio.decode_wav(sound).audio.shape == (3, 1)
    padded = keras.ops.image.resize(np.full((2, 1, 3), 7, np.uint8), (2, 2), pad_to_aspect_ratio=True)
    assert np.asarray(padded).tolist() == [[[7, 7, 7], [0, 0, 0]]] * 2
