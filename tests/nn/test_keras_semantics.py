"""Semantics of Keras 3 that programs rely on: modes, dtypes, weights, saving, backups, checked arguments.

The same tests run against TensorFlow with Keras 3.15 (OPWRIGHT_TESTS_AGAINST=tensorflow): its figures are the oracle.
"""

import numpy as np
import pytest


def mode_layer(tf, default):
    """A layer that doubles in training; its `call` has that default of `training`."""
    if default is None:

        class Mode(tf.keras.layers.Layer):
            def call(self, x, training=None):
                return x * (2.0 if training else 1.0)
    else:

        class Mode(tf.keras.layers.Layer):
            def call(self, x, training=False):
                return x * (2.0 if training else 1.0)

    return Mode()


def plain(tf, layer):
    x = tf.keras.Input((2,))
    return tf.keras.Model(x, layer(x))


def in_a_functional_model(tf, layer):
    x = tf.keras.Input((2,))
    return tf.keras.Model(x, plain(tf, layer)(x))


def in_a_subclass(tf, layer):
    class Inner(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = layer

        def call(self, x, training=False):
            return self.inner(x, training=training)

    return plain(tf, Inner())


def in_a_sequential(tf, layer):
    return tf.keras.Sequential([tf.keras.Input((2,)), layer])


@pytest.mark.parametrize("default", [None, False])
@pytest.mark.parametrize("around", [plain, in_a_functional_model, in_a_subclass, in_a_sequential])
def test_the_mode_reaches_every_layer(tf, around, default):
    model, x = around(tf, mode_layer(tf, default)), np.ones((1, 2), np.float32)
    assert [float(np.asarray(model(x, training=mode))[0, 0]) for mode in (True, False, None)] == [2.0, 1.0, 1.0]


def test_fit_trains_in_training_mode(tf):
    seen = []

    class Seen(tf.keras.layers.Layer):
        def call(self, x, training=False):
            seen.append(training)
            return x

    x = tf.keras.Input((2,))
    model = tf.keras.Model(x, tf.keras.layers.Dense(1)(Seen()(x)))
    model.compile("sgd", "mse")
    seen.clear()
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    assert any(bool(mode) for mode in seen)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16", "float64"])
@pytest.mark.parametrize("build", ["sequential", "functional", "unbuilt"])
def test_layers_of_other_dtypes_follow_one_another(tf, policy, build):
    layers = [tf.keras.layers.Dense(4, dtype=policy), tf.keras.layers.Dense(1)]
    if build == "functional":
        x = tf.keras.Input((2,))
        model = tf.keras.Model(x, layers[1](layers[0](x)))
    else:
        model = tf.keras.Sequential([tf.keras.Input((2,)), *layers] if build == "sequential" else layers)
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    assert model(np.ones((1, 2))).dtype == tf.float32


def test_an_unbuilt_sequential_takes_datasets_of_float64(tf):
    model = tf.keras.Sequential([tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((np.ones((8, 2)), np.ones((8, 1)))).batch(4)
    model.fit(data, verbose=0)
    assert np.isfinite(model.evaluate(data, verbose=0))
    assert model.predict(data, verbose=0).shape == (8, 1)


# ---- weights of samples ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "weight", "mean"),
    [
        ([[1, 3], [5, 7]], [[1, 0]], 3.0),  # sum(1, 5) / sum(1, 0, 1, 0) * ...: the weights of both rows count
        ([[1, 3], [5, 7]], [[1], [0]], 2.0),
        ([[1, 3], [5, 7]], [1, 0], 2.0),
        ([[1, 3], [5, 7]], [2.0], 4.0),
        ([[1, 3], [5, 7]], 2.0, 4.0),
        ([1, 3, 5, 7], [2.0], 4.0),
        ([1, 3, 5, 7], [1, 1, 0, 0], 2.0),
        ([[[1, 3], [5, 7]]], [[[1, 0]]], 3.0),
    ],
)
def test_weights_that_broadcast_count_as_often_as_they_are_used(tf, values, weight, mean):
    metric = tf.keras.metrics.Mean()
    metric.update_state(np.float32(values), sample_weight=np.float32(weight))
    assert float(metric.result()) == pytest.approx(mean)


def test_weighted_means_of_functions(tf):
    metric = tf.keras.metrics.MeanSquaredError()
    metric.update_state(np.zeros((4, 1)), np.full((4, 1), 2.0), sample_weight=[2.0])
    assert float(metric.result()) == 4.0
    metric = tf.keras.metrics.Accuracy()
    metric.update_state([[1, 2], [3, 4]], [[1, 0], [3, 0]], sample_weight=[[1, 0]])
    assert float(metric.result()) == 1.0


def test_an_ignored_class_counts_in_the_metric_unless_there_are_weights(tf):
    p = np.eye(3, dtype=np.float32) * 0.5 + 0.1
    loss = -np.log(0.6 / 0.8)
    metric = tf.keras.metrics.SparseCategoricalCrossentropy(ignore_class=0)
    metric.update_state(np.array([0, 1, 2]), p / p.sum(-1, keepdims=True))
    assert float(metric.result()) == pytest.approx(loss * 2 / 3, rel=1e-5)
    metric.reset_state()
    metric.update_state(np.array([0, 1, 2]), p / p.sum(-1, keepdims=True), sample_weight=np.float32([1, 2, 3]))
    assert float(metric.result()) == pytest.approx(loss, rel=1e-5)


def test_labels_that_are_no_class_do_not_count(tf):
    metric = tf.keras.metrics.MeanIoU(2)
    metric.update_state([0, 1, 5, 1], [0, 1, 1, 0])
    assert float(metric.result()) == pytest.approx(0.5)


def test_top_k_takes_k_of_equal_ones(tf):
    for k, precision in ((3, 0.0), (4, 0.25)):
        metric = tf.keras.metrics.Precision(top_k=k)
        metric.update_state([[0, 0, 0, 1, 1]], [[0.5, 0.5, 0.5, 0.5, 0.5]])
        assert float(metric.result()) == precision


@pytest.mark.parametrize("loss", ["BinaryCrossentropy", "BinaryFocalCrossentropy", "CategoricalCrossentropy"])
def test_labels_and_predictions_have_one_shape(tf, loss):
    with pytest.raises(ValueError, match="must have the same shape"):
        getattr(tf.keras.losses, loss)()(np.zeros((2, 3), np.float32), np.full((2, 1), 0.5, np.float32))


# ---- saving ---------------------------------------------------------------------------------------------------------


def test_optimizers_and_schedules_go_through_configurations(tf):
    utils, schedules = tf.keras.utils, tf.keras.optimizers.schedules
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl", "Lion"):
        result = getattr(tf.keras.optimizers, name)(0.25)
        again = utils.deserialize_keras_object(utils.serialize_keras_object(result))
        assert type(again) is type(result)
        assert again.get_config() == result.get_config()
    schedule = schedules.ExponentialDecay(0.1, 10, 0.5)
    again = utils.deserialize_keras_object(utils.serialize_keras_object(schedule))
    assert type(again) is type(schedule)
    assert again.get_config() == schedule.get_config()
    result = tf.keras.optimizers.Adam(schedule)
    again = utils.deserialize_keras_object(utils.serialize_keras_object(result))
    assert float(again._learning_rate(10)) == pytest.approx(0.05)


def test_a_subclass_with_a_from_config_of_its_own_is_loaded(tf, tmp_path):
    class Own(tf.keras.Model):
        @classmethod
        def from_config(cls, config):
            return super().from_config(config)

    x = tf.keras.Input((2,))
    model = Own(x, tf.keras.layers.Dense(1)(x))
    model.save(tmp_path / "own.keras")
    loaded = tf.keras.models.load_model(tmp_path / "own.keras", custom_objects={"Own": Own})
    assert type(loaded) is Own
    one = np.ones((1, 2), np.float32)
    np.testing.assert_array_equal(np.asarray(loaded(one)), np.asarray(model(one)))


def test_a_layer_may_save_its_own_variables(tf, tmp_path):
    class Table(tf.keras.layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.table = [0, 0, 0]

        def call(self, x):
            return x

        def save_own_variables(self, store):
            store["table"] = np.asarray(self.table)

        def load_own_variables(self, store):
            self.table = np.asarray(store["table"]).tolist()

    x = tf.keras.Input((2,))
    table = Table()
    model = tf.keras.Model(x, tf.keras.layers.Dense(1)(table(x)))
    table.table = [7, 8, 9]
    model.save(tmp_path / "own.keras")
    loaded = tf.keras.models.load_model(tmp_path / "own.keras", custom_objects={"Table": Table})
    assert loaded.layers[1].table == [7, 8, 9]
    one = np.ones((1, 2), np.float32)
    np.testing.assert_array_equal(np.asarray(loaded(one)), np.asarray(model(one)))


def test_tuples_in_configurations_stay_tuples(tf, tmp_path):
    x = tf.keras.Input((2, 3, 4))
    attention = tf.keras.layers.MultiHeadAttention(2, 3, attention_axes=(1, 2))
    tf.keras.Model(x, attention(x, x)).save(tmp_path / "tuples.keras")
    loaded = tf.keras.models.load_model(tmp_path / "tuples.keras")
    assert loaded.layers[1].get_config()["attention_axes"] == (1, 2)


def test_a_clone_of_a_compiled_model_is_compiled(tf):
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.25), "mse", metrics=["mae"])
    clone = tf.keras.models.clone_model(model)
    assert clone.compiled
    assert clone.optimizer is not model.optimizer
    assert float(clone.optimizer.learning_rate) == 0.25
    clone.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)


# ---- training that goes on ------------------------------------------------------------------------------------------


class Interrupted(Exception):
    """Raised to end a training early."""


def interrupted_at(tf, epoch, epochs):
    class Interrupt(tf.keras.callbacks.Callback):
        def on_epoch_begin(self, at, logs=None):
            epochs.append(at)
            if at == epoch:
                raise Interrupted

    return Interrupt()


@pytest.mark.parametrize(
    "kind",
    [  # Keras refuses to restore what is not built
        "built",
        *(pytest.param(kind, marks=pytest.mark.ours) for kind in ("unbuilt sequential", "subclass")),
    ],
)
def test_an_interrupted_training_goes_on_with_epoch_weights_and_optimizer(tf, tmp_path, kind):
    keras = tf.keras

    class Sub(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = keras.layers.Dense(1, kernel_initializer="ones")

        def call(self, x):
            return self.inner(x)

    def make():
        dense = keras.layers.Dense(1, kernel_initializer="ones")
        model = {
            "built": lambda: keras.Sequential([keras.Input((2,)), dense]),
            "unbuilt sequential": lambda: keras.Sequential([dense]),
            "subclass": Sub,
        }[kind]()
        model.compile(keras.optimizers.Adam(0.1), "mse")
        return model

    backup = keras.callbacks.BackupAndRestore
    x, y = np.float32([[1, 2], [3, 4], [5, 6], [7, 8]]), np.float32([[1], [0], [1], [0]])
    options = {"epochs": 4, "batch_size": 2, "shuffle": False, "verbose": 0}
    whole = make()
    whole.fit(x, y, **options)
    epochs = []
    model = make()
    with pytest.raises(Interrupted):
        model.fit(x, y, callbacks=[backup(tmp_path), interrupted_at(tf, 2, epochs)], **options)
    assert epochs == [0, 1, 2]
    epochs.clear()
    model = make()  # as a process does that starts again
    model.fit(x, y, callbacks=[backup(tmp_path), interrupted_at(tf, 9, epochs)], **options)
    assert epochs == [2, 3]
    assert int(model.optimizer.iterations) == int(whole.optimizer.iterations) == 8
    for actual, expected in zip(model.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]  # all went well


@pytest.mark.ours
def test_backups_by_batches_and_the_one_before(tf, tmp_path):
    from opwright.core.errors import DataLossError

    keras = tf.keras
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones((8, 2), np.float32), np.ones((8, 1), np.float32)
    backup = lambda **options: keras.callbacks.BackupAndRestore(tmp_path, save_freq=2, **options)  # noqa: E731
    with pytest.raises(Interrupted):
        model.fit(
            x,
            y,
            batch_size=2,
            epochs=3,
            verbose=0,
            callbacks=[backup(double_checkpoint=True), interrupted_at(tf, 1, [])],
        )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["backup.previous.safetensors", "backup.safetensors"]
    content = (tmp_path / "backup.safetensors").read_bytes()
    (tmp_path / "backup.safetensors").write_bytes(content[: len(content) // 2])
    epochs = []
    model.fit(x, y, batch_size=2, epochs=3, verbose=0, callbacks=[backup(), interrupted_at(tf, 9, epochs)])
    assert epochs == [0, 1, 2]  # the epoch that was not finished begins again
    (tmp_path / "backup.safetensors").write_bytes(content[:40])
    with pytest.raises(DataLossError, match="backup"):
        model.fit(x, y, verbose=0, callbacks=[backup()])
    with pytest.raises(ValueError, match="Unrecognized save_freq"):
        keras.callbacks.BackupAndRestore(tmp_path, save_freq="never")


def test_checkpoints_count_batches_where_steps_come_in_groups(tf, tmp_path):
    """The last group of an epoch, of two batches, counts as one of four, as Keras counts it."""
    keras = tf.keras
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=4)
    path = str(tmp_path / "{epoch}-{batch}.weights.h5")
    checkpoint = keras.callbacks.ModelCheckpoint(path, save_weights_only=True, save_freq=5)
    model.fit(np.ones((20, 2)), np.ones((20, 1)), batch_size=2, epochs=3, verbose=0, callbacks=[checkpoint])
    names = sorted(p.name.removesuffix(".weights.h5") for p in tmp_path.iterdir())
    assert names == ["1-8", "2-12", "2-4", "3-8"]


@pytest.mark.ours
def test_a_backup_of_another_model_or_optimizer_is_refused(tf, tmp_path):
    keras = tf.keras

    def fit(model, optimizer, epoch, **options):
        model.compile(optimizer, "mse", **options)
        model.fit(
            np.ones((4, 2)),
            np.ones((4, 1)),
            epochs=2,
            verbose=0,
            callbacks=[keras.callbacks.BackupAndRestore(tmp_path), interrupted_at(tf, epoch, [])],
        )

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    with pytest.raises(Interrupted):
        fit(model, "adam", 1)
    with pytest.raises(ValueError, match="another optimizer than SGD"):
        fit(model, "sgd", 9)
    with pytest.raises(ValueError, match="do not match model"):
        fit(keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(1)]), "adam", 9)
    with pytest.raises(ValueError, match="has no weights before its first step"):
        fit(keras.Sequential([keras.layers.Dense(1)]), "adam", 9, run_eagerly=True)


def test_compute_loss_of_the_older_signature(tf):
    class Older(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = tf.keras.layers.Dense(1)

        def call(self, x):
            return self.inner(x)

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
            return tf.reduce_mean((y - y_pred) ** 2)

    model = Older()
    model.compile("sgd")
    history = model.fit(np.ones((4, 2), np.float32), np.ones((4, 1), np.float32), verbose=0)
    assert np.isfinite(history.history["loss"][0])
    assert np.isfinite(model.evaluate(np.ones((4, 2), np.float32), np.ones((4, 1), np.float32), verbose=0))


# ---- layers ---------------------------------------------------------------------------------------------------------


def test_a_stateful_layer_keeps_its_batch_in_predict(tf):
    x = tf.keras.Input(batch_shape=(1, None, 1))
    for layer in (tf.keras.layers.LSTM, tf.keras.layers.GRU, tf.keras.layers.SimpleRNN):
        model = tf.keras.Model(x, layer(4, stateful=True)(x))
        first, second = (model.predict(np.ones((1, 3, 1)), verbose=0) for _ in range(2))
        assert first.shape == (1, 4)
        assert not np.allclose(first, second)  # the states went on


def test_normalization_adapts_to_what_a_dataset_gives(tf):
    numbers = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    pairs = tf.data.Dataset.from_tensor_slices((numbers, np.ones(4))).batch(2)
    for data in (numbers, pairs, pairs.map(lambda x, y: x), [numbers[:2], numbers[2:]]):
        layer = tf.keras.layers.Normalization()
        layer.adapt(data)
        np.testing.assert_allclose(np.asarray(layer.mean), [[3.0, 4.0]])
        np.testing.assert_allclose(np.asarray(layer.variance), [[5.0, 5.0]])


def test_masking_of_integers(tf):
    result = tf.keras.layers.Masking()(np.array([[[1, 2], [0, 0]]], np.int32))
    assert np.asarray(result).tolist() == [[[1, 2], [0, 0]]]


def test_masks_of_numbers_and_batches_of_nothing(tf):
    x, numbers = np.ones((2, 3), np.float32), np.float32([[1, 0, 1], [0, 0, 1]])
    result = tf.keras.layers.Add().compute_mask([x, x], [numbers, np.zeros((2, 3))])
    assert np.asarray(result).tolist() == numbers.astype(bool).tolist()
    layer = tf.keras.layers.ActivityRegularization(l1=0.1)
    layer(np.zeros((0, 3), np.float32))
    assert float(layer.losses[0]) == 0.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda keras: keras.layers.Embedding(-1, 2), "input_dim"),
        (lambda keras: keras.layers.Embedding(3, 0), "output_dim"),
        (lambda keras: keras.layers.GroupNormalization(groups=0), "groups"),
        (lambda keras: keras.layers.Layer(trainable=3), "trainable"),
        (lambda keras: keras.metrics.Precision(class_id=1).update_state([0, 1], [0.2, 0.8]), "2D"),
    ],
)
def test_arguments_are_checked(tf, make, words):
    with pytest.raises(ValueError, match=words):
        make(tf.keras)


def test_a_field_that_is_no_input_is_warned_of(tf):
    a, b = tf.keras.Input((2,), name="a"), tf.keras.Input((2,), name="b")
    model = tf.keras.Model({"a": a, "b": b}, tf.keras.layers.Add()([a, b]))
    one = np.ones((1, 2), np.float32)
    with pytest.warns(UserWarning, match="c"):
        model({"a": one, "b": one, "c": one})


def test_attributes_of_metrics(tf):
    assert tf.keras.metrics.TopKCategoricalAccuracy(k=3).k == 3
    assert tf.keras.metrics.SparseTopKCategoricalAccuracy(k=3).k == 3
    counts = [
        getattr(tf.keras.metrics.AUC(50), name)
        for name in ("true_positives", "false_positives", "true_negatives", "false_negatives")
    ]
    assert [tuple(c.shape) for c in counts] == [(50,)] * 4
    assert tf.keras.metrics.Precision(name="p").true_positives.path == "p/true_positives"


def test_records_of_a_dataset_are_written(tf, tmp_path):
    records = [b"a", b"", b"bc" * 100]
    for kind in (None, "GZIP"):
        path = str(tmp_path / f"x{kind}.tfrecord")
        writer = tf.data.experimental.TFRecordWriter(path, kind)
        writer.write(tf.data.Dataset.from_tensor_slices(records))
        assert [r.numpy() for r in tf.data.TFRecordDataset(path, kind)] == records
    with pytest.raises(TypeError, match="scalar"):
        tf.data.experimental.TFRecordWriter(path).write(tf.data.Dataset.range(3))
