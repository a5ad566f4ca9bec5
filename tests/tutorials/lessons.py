"""Tutorials in small: each trains something on data made on the spot, and returns a figure of merit.

Rewritten from descriptions of tutorials of tensorflow.org and keras.io. A lesson returns its figure, which does not
depend on seeds but for noise: test_lessons.py demands that the task is learnt, and compares with TensorFlow's figures
where they are recorded. `python tests/tutorials/lessons.py [NAME ...]` with a Python that has TensorFlow renews
lessons.json, with OPWRIGHT as a name the times of this package. With LONGER among the names, steps are those of a
second run with LONGER times the epochs: steps become machine code once they have taken about as long as compiling,
which the few epochs of a lesson do not reach.
"""

import importlib
import json
import pathlib
import sys
import tempfile
import time
from typing import NamedTuple

import numpy as np


class Lesson(NamedTuple):
    """A tutorial. run: of the library, returns the figure; noise: how much figures of two libraries may differ; least,
    most: of a network that has learnt its task; subject: the field."""

    run: object
    noise: float
    subject: str
    least: float
    most: float


LESSONS = {}


def lesson(subject, noise, least, most):
    """Register a tutorial."""

    def register(run):
        LESSONS[run.__name__] = Lesson(run, noise, subject, least, most)
        return run

    return register


def blobs(seed=0, count=240, classes=3, size=4):
    """Return points around a center for each class, and their classes."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(classes, size)) * 3
    labels = rng.integers(classes, size=count)
    return (centers[labels] + rng.normal(size=(count, size))).astype("float32"), labels.astype("int32")


def pictures(seed=0, count=160, size=12):
    """Return gray pictures with a horizontal or a vertical bar, [count, size, size, 1], and which."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, size, size, 1)).astype("float32") * 0.2
    labels = rng.integers(2, size=count)
    for picture, label, place in zip(x, labels, rng.integers(2, size - 2, size=count)):
        line = picture[place : place + 1] if label else picture[:, place : place + 1]
        line += 1.0
    return x, labels.astype("int32")


SENTENCES = (
    ["a great and lovely film", "what a wonderful story", "lovely acting great fun", "wonderful great film"] * 8,
    ["a terrible and boring film", "what an awful story", "boring acting no fun", "awful terrible film"] * 8,
)


def reviews():
    """Return sentences and whether they praise."""
    texts = [*SENTENCES[0], *SENTENCES[1]]
    labels = [1] * len(SENTENCES[0]) + [0] * len(SENTENCES[1])
    order = np.random.default_rng(1).permutation(len(texts))
    return np.array(texts)[order], np.array(labels, "float32")[order]


def waves(count=400):
    """Return a sum of two sines with noise."""
    t = np.arange(count)
    noise = np.random.default_rng(2).normal(size=count) * 0.05
    return (np.sin(t / 5) + 0.5 * np.sin(t / 11) + noise).astype("float32")


def windows(series, width=16):
    """Return windows of a series and the value after each."""
    x = np.lib.stride_tricks.sliding_window_view(series, width)[:-1]
    return x[..., None].astype("float32"), series[width:, None]


# ---- beginners -----------------------------------------------------------------------------------------------------


@lesson("vision", 0.05, 0.9, 1.0)
def quickstart(tf):
    x, y = pictures()
    model = tf.keras.models.Sequential(
        [
            tf.keras.layers.Flatten(input_shape=(12, 12, 1)),
            tf.keras.layers.Dense(32, activation="relu"),
            tf.keras.layers.Dropout(0.2),
            tf.keras.layers.Dense(2),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=tf.keras.optimizers.Adam(0.005), loss=loss, metrics=["accuracy"])
    model.fit(x, y, epochs=25, verbose=0)
    return model.evaluate(x, y, verbose=0)[1]


@lesson("vision", 0.05, 0.9, 1.0)
def quickstart_for_experts(tf):
    x, y = pictures(1)
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(200).batch(32)

    class Network(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.conv1 = tf.keras.layers.Conv2D(8, 3, activation="relu")
            self.flatten = tf.keras.layers.Flatten()
            self.d1 = tf.keras.layers.Dense(16, activation="relu")
            self.d2 = tf.keras.layers.Dense(2)

        def call(self, x):
            return self.d2(self.d1(self.flatten(self.conv1(x))))

    model, optimizer = Network(), tf.keras.optimizers.Adam(0.005)
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy()

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = loss_object(labels, predictions)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        accuracy(labels, predictions)

    for _ in range(8):
        accuracy.reset_state()
        for images, labels in data:
            train_step(images, labels)
    return float(accuracy.result())


@lesson("structured data", 0.1, 0.0, 0.3)
def regression(tf):
    rng = np.random.default_rng(3)
    x = (rng.normal(size=(200, 3)) * [1, 10, 100] + 5).astype("float32")
    y = (x @ np.array([2.0, -0.3, 0.01]) + 1).astype("float32")
    normalizer = tf.keras.layers.Normalization(axis=-1)
    normalizer.adapt(x)
    model = tf.keras.Sequential([normalizer, tf.keras.layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.Adam(learning_rate=0.2), loss="mean_absolute_error")
    history = model.fit(x, y, epochs=40, verbose=0, validation_split=0.2)
    return history.history["val_loss"][-1]


@lesson("structured data", 0.08, 0.85, 1.0)
def overfitting_and_stopping(tf):
    x, y = blobs(4)
    layers, regularizers = tf.keras.layers, tf.keras.regularizers
    model = tf.keras.Sequential(
        [
            layers.Dense(32, activation="elu", kernel_regularizer=regularizers.l2(0.001), input_shape=(4,)),
            layers.Dropout(0.3),
            layers.Dense(3, activation="softmax"),
        ]
    )
    schedule = tf.keras.optimizers.schedules.InverseTimeDecay(0.02, decay_steps=100, decay_rate=1, staircase=False)
    model.compile(tf.keras.optimizers.Adam(schedule), "sparse_categorical_crossentropy", metrics=["accuracy"])
    stop = tf.keras.callbacks.EarlyStopping(monitor="val_loss", patience=5, restore_best_weights=True)
    model.fit(x[:180], y[:180], epochs=30, validation_data=(x[180:], y[180:]), callbacks=[stop], verbose=0)
    return model.evaluate(x[180:], y[180:], verbose=0)[1]


@lesson("structured data", 0.02, 0.0, 1e-06)
def saving_and_loading(tf):
    x, y = blobs(5)
    model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(3)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/best.keras"
        keep = tf.keras.callbacks.ModelCheckpoint(path, save_best_only=True, monitor="loss")
        model.fit(x, y, epochs=6, verbose=0, callbacks=[keep])
        again = tf.keras.models.load_model(path)
        return float(np.abs(again.predict(x, verbose=0) - model.predict(x, verbose=0)).max())


@lesson("structured data", 0.06, 0.85, 1.0)
def columns_of_tables(tf):
    rng = np.random.default_rng(6)
    ages, kinds = rng.normal(40, 12, 240).astype("float32"), rng.choice(["cat", "dog", "bird"], 240)
    y = ((ages > 40) ^ (kinds == "dog")).astype("float32")
    age = tf.keras.Input(shape=(1,), name="age")
    kind = tf.keras.Input(shape=(1,), name="kind", dtype="string")
    normalize = tf.keras.layers.Normalization()
    normalize.adapt(ages[:, None])
    lookup = tf.keras.layers.StringLookup(vocabulary=["cat", "dog", "bird"], output_mode="one_hot")
    merged = tf.keras.layers.concatenate([normalize(age), lookup(kind)])
    hidden = tf.keras.layers.Dense(24, activation="relu")(merged)
    model = tf.keras.Model([age, kind], tf.keras.layers.Dense(1)(hidden))
    loss = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.02), loss, metrics=["accuracy"])
    data = tf.data.Dataset.from_tensor_slices(({"age": ages[:, None], "kind": kinds[:, None]}, y)).batch(40)
    model.fit(data, epochs=40, verbose=0)
    return model.evaluate(data, verbose=0)[1]


@lesson("structured data", 0.06, 0.85, 1.0)
def feature_space(tf):
    rng = np.random.default_rng(7)
    table = {"size": rng.normal(size=240).astype("float32"), "color": rng.choice(["red", "blue"], 240)}
    y = ((table["size"] > 0) & (table["color"] == "red")).astype("float32")
    space = tf.keras.utils.FeatureSpace({"size": "float_normalized", "color": "string_categorical"})
    space.adapt(tf.data.Dataset.from_tensor_slices(table))
    data = tf.data.Dataset.from_tensor_slices((table, y)).batch(32).map(lambda x, y: (space(x), y))
    hidden = tf.keras.layers.Dense(16, activation="relu")(space.get_encoded_features())
    training = tf.keras.Model(space.get_encoded_features(), tf.keras.layers.Dense(1, activation="sigmoid")(hidden))
    training.compile(tf.keras.optimizers.Adam(0.02), "binary_crossentropy", metrics=["accuracy"])
    training.fit(data, epochs=20, verbose=0)
    return training.evaluate(data, verbose=0)[1]


@lesson("structured data", 0.06, 0.8, 1.0)
def imbalanced_classes(tf):
    x, y = blobs(8, 400, 2, 3)
    keep = (y == 0) | (np.random.default_rng(0).random(len(y)) < 0.15)
    x, y = x[keep], y[keep].astype("float32")
    bias = tf.keras.initializers.Constant(np.log(y.mean() / (1 - y.mean())))
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(16, activation="relu", input_shape=(3,)),
            tf.keras.layers.Dense(1, activation="sigmoid", bias_initializer=bias),
        ]
    )
    metrics = [tf.keras.metrics.Precision(name="p"), tf.keras.metrics.AUC(name="auc", curve="PR")]
    model.compile(tf.keras.optimizers.Adam(0.01), tf.keras.losses.BinaryCrossentropy(), metrics=metrics)
    model.fit(x, y, epochs=20, class_weight={0: 0.6, 1: 3.0}, verbose=0)
    return model.evaluate(x, y, verbose=0, return_dict=True)["auc"]


# ---- vision --------------------------------------------------------------------------------------------------------


@lesson("vision", 0.06, 0.85, 1.0)
def convolutional_network(tf):
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((12, 12, 1)), layers.Conv2D(8, 3, activation="relu")])
    model.add(layers.MaxPooling2D())
    model.add(layers.Conv2D(8, 3, activation="relu"))
    model.add(layers.GlobalMaxPooling2D())
    model.add(layers.Dense(2))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    x, y = pictures(2)
    model.fit(x, y, epochs=12, verbose=0)
    return model.evaluate(x, y, verbose=0)[1]


@lesson("vision", 0.08, 0.8, 1.0)
def data_augmentation(tf):
    layers = tf.keras.layers
    x, y = pictures(3)
    augment = tf.keras.Sequential([layers.RandomFlip("horizontal_and_vertical"), layers.RandomTranslation(0.1, 0.1)])
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
    data = data.map(lambda x, y: (augment(x, training=True), y)).prefetch(tf.data.AUTOTUNE)
    model = tf.keras.Sequential(
        [layers.Conv2D(8, 5, activation="relu"), layers.GlobalMaxPooling2D(), layers.Dense(2, activation="softmax")]
    )
    model.compile(tf.keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(data, epochs=15, verbose=0)
    return model.evaluate(x, y, verbose=0)[1]


@lesson("vision", 0.08, 0.85, 1.0)
def transfer_learning(tf):
    layers = tf.keras.layers
    x, y = pictures(4)
    base = tf.keras.Sequential([layers.Input((12, 12, 1)), layers.Conv2D(8, 3, activation="relu"), layers.Flatten()])
    pretrained = tf.keras.Sequential([base, layers.Dense(2, activation="softmax")])
    pretrained.compile(tf.keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
    pretrained.fit(x, y, epochs=6, verbose=0)
    base.trainable = False
    before = [w.copy() for w in base.get_weights()]
    inputs = tf.keras.Input((12, 12, 1))
    outputs = layers.Dense(2, activation="softmax")(layers.Dropout(0.1)(base(inputs, training=False)))
    model = tf.keras.Model(inputs, outputs)
    model.compile(tf.keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, 1 - y, epochs=10, verbose=0)
    assert all((a == b).all() for a, b in zip(before, base.get_weights()))
    return model.evaluate(x, 1 - y, verbose=0)[1]


@lesson("vision", 0.06, 0.85, 1.0)
def segmentation(tf):
    layers = tf.keras.layers
    x, _ = pictures(5, 96)
    y = (x[..., 0] > 0.6).astype("int32")
    inputs = tf.keras.Input((12, 12, 1))
    down = layers.Conv2D(8, 3, padding="same", activation="relu")(inputs)
    middle = layers.Conv2D(12, 3, strides=2, padding="same", activation="relu")(down)
    up = layers.Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu")(middle)
    outputs = layers.Conv2D(2, 1)(layers.Concatenate()([up, down]))
    model = tf.keras.Model(inputs, outputs)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    model.fit(x, y, epochs=10, verbose=0)
    return model.evaluate(x, y, verbose=0)[1]


@lesson("vision", 0.1, 0.8, 1.0)
def vision_transformer(tf):
    layers = tf.keras.layers
    x, y = pictures(6)
    inputs = tf.keras.Input((12, 12, 1))
    patches = layers.Conv2D(16, 3, strides=3)(inputs)
    tokens = layers.Reshape((16, 16))(patches)

    class Positions(layers.Layer):
        def build(self, shape):
            self.table = self.add_weight(name="table", shape=shape[1:], initializer="random_normal")

        def call(self, x):
            return x + self.table

    tokens = Positions()(tokens)
    attended = layers.MultiHeadAttention(2, 8)(layers.LayerNormalization()(tokens), tokens)
    tokens = layers.Add()([tokens, attended])
    tokens = layers.Add()([tokens, layers.Dense(16, activation="gelu")(layers.LayerNormalization()(tokens))])
    model = tf.keras.Model(inputs, layers.Dense(2, activation="softmax")(layers.Flatten()(tokens)))
    model.compile(tf.keras.optimizers.AdamW(0.005), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=15, verbose=0)
    return model.evaluate(x, y, verbose=0)[1]


@lesson("vision", 0.2, 0.75, 1.0)
def metric_learning(tf):
    x, y = blobs(9, 150, 3, 4)
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(4), tf.keras.layers.UnitNormalization()]
    )
    model.compile(tf.keras.optimizers.Adam(0.01), tf.keras.losses.Circle(gamma=16))
    model.fit(x, y, epochs=20, batch_size=50, verbose=0)
    e = model.predict(x, verbose=0)
    nearest = (e @ e.T - 2 * np.eye(len(e))).argmax(1)
    return float((y[nearest] == y).mean())


# ---- text ----------------------------------------------------------------------------------------------------------


@lesson("text", 0.1, 0.85, 1.0)
def text_classification(tf):
    texts, labels = reviews()
    vectorize = tf.keras.layers.TextVectorization(max_tokens=100, output_sequence_length=6)
    vectorize.adapt(texts)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [vectorize, layers.Embedding(100, 8), layers.GlobalAveragePooling1D(), layers.Dense(1, activation="sigmoid")]
    )
    model.compile(tf.keras.optimizers.Adam(0.05), "binary_crossentropy", metrics=["accuracy"])
    data = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(16)
    model.fit(data, epochs=15, verbose=0)
    return model.evaluate(data, verbose=0)[1]


@lesson("text", 0.1, 0.8, 1.0)
def recurrent_text_classification(tf):
    texts, labels = reviews()
    layers = tf.keras.layers
    encoder = layers.TextVectorization(max_tokens=50)
    encoder.adapt(tf.data.Dataset.from_tensor_slices(texts).batch(8))
    model = tf.keras.Sequential(
        [
            encoder,
            layers.Embedding(len(encoder.get_vocabulary()), 8, mask_zero=True),
            layers.Bidirectional(layers.LSTM(8)),
            layers.Dense(1),
        ]
    )
    loss = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.02), loss, metrics=["accuracy"])
    data = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(16)
    model.fit(data, epochs=10, verbose=0)
    return model.evaluate(data, verbose=0)[1]


@lesson("text", 0.1, 0.85, 1.0)
def tokenized_text(tf):
    texts, labels = reviews()
    tokenizer = tf.keras.preprocessing.text.Tokenizer(num_words=40, oov_token="<oov>")
    tokenizer.fit_on_texts(texts)
    x = tf.keras.utils.pad_sequences(tokenizer.texts_to_sequences(texts), maxlen=6, padding="post")
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Embedding(40, 8), layers.Conv1D(8, 2, activation="relu")])
    model.add(layers.GlobalMaxPooling1D())
    model.add(layers.Dense(1, activation="sigmoid"))
    model.compile(tf.keras.optimizers.Adam(0.03), "binary_crossentropy", metrics=["accuracy"])
    model.fit(x, labels, epochs=12, verbose=0)
    return model.evaluate(x, labels, verbose=0)[1]


@lesson("text", 0.25, 0.0, 0.5)
def character_generation(tf):
    text = "hello world. " * 40
    characters = sorted(set(text))
    ids = tf.keras.layers.StringLookup(vocabulary=characters, mask_token=None)
    codes = ids(tf.strings.unicode_split(text, "UTF-8"))
    sequences = tf.data.Dataset.from_tensor_slices(codes).batch(13, drop_remainder=True)
    data = sequences.map(lambda s: (s[:-1], s[1:])).shuffle(50).batch(8)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Embedding(12, 8), layers.GRU(24, return_sequences=True), layers.Dense(len(characters) + 1)]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.02), loss)
    history = model.fit(data, epochs=15, verbose=0)
    return history.history["loss"][-1]


@lesson("text", 0.5, 0.0, 0.65)
def word_embeddings(tf):
    rng = np.random.default_rng(10)
    sequence = np.repeat(rng.permutation(np.tile([1, 4, 7], 60)), 3) + np.tile([0, 1, 2], 180)
    couples, labels = tf.keras.preprocessing.sequence.skipgrams(sequence.tolist(), 10, window_size=1, seed=1)
    pairs, labels = np.array(couples), np.array(labels, "float32")

    class Word2Vec(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.target, self.context = tf.keras.layers.Embedding(10, 8), tf.keras.layers.Embedding(10, 8)

        def call(self, pair):
            return tf.einsum("be,be->b", self.target(pair[:, 0]), self.context(pair[:, 1]))

    model = Word2Vec()
    model.compile(tf.keras.optimizers.Adam(0.05), tf.keras.losses.BinaryCrossentropy(from_logits=True))
    history = model.fit(pairs, labels, epochs=8, verbose=0)
    return history.history["loss"][-1]


@lesson("text", 0.35, 0.7, 1.0)
def sampled_softmax(tf):
    rng = np.random.default_rng(11)
    x = rng.integers(30, size=600)
    y = (x * 7 + 1) % 30
    table, out = tf.Variable(rng.normal(size=(30, 8)).astype("float32")), tf.Variable(tf.zeros([30, 8]))
    bias, optimizer = tf.Variable(tf.zeros([30])), tf.keras.optimizers.Adam(0.05)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            inputs = tf.nn.embedding_lookup(table, x)
            loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(out, bias, y[:, None], inputs, 10, 30))
        variables = [table, out, bias]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    for _ in range(15):
        for i in range(0, 600, 60):
            step(tf.constant(x[i : i + 60]), tf.constant(y[i : i + 60]))
    logits = tf.matmul(tf.nn.embedding_lookup(table, tf.constant(x)), out, transpose_b=True) + bias
    return float((logits.numpy().argmax(1) == y).mean())


@lesson("text", 0.3, 0.7, 1.0)
def translation_with_attention(tf):
    rng = np.random.default_rng(12)
    source = rng.integers(1, 8, size=(256, 5))
    target = source[:, ::-1]
    layers = tf.keras.layers
    inputs, previous = tf.keras.Input((5,), dtype="int32"), tf.keras.Input((5,), dtype="int32")
    encoded, state = layers.GRU(24, return_sequences=True, return_state=True)(layers.Embedding(8, 12)(inputs))
    decoded = layers.GRU(24, return_sequences=True)(layers.Embedding(8, 12)(previous), initial_state=state)
    attended = layers.Attention()([decoded, encoded])
    outputs = layers.Dense(8)(layers.Concatenate()([decoded, attended]))
    model = tf.keras.Model([inputs, previous], outputs)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    shifted = np.concatenate([np.zeros((256, 1), target.dtype), target[:, :-1]], axis=1)
    model.fit([source, shifted], target, epochs=20, verbose=0)
    return model.evaluate([source, shifted], target, verbose=0)[1]


# ---- audio and series ----------------------------------------------------------------------------------------------


@lesson("audio", 0.1, 0.85, 1.0)
def audio_recognition(tf):
    rng = np.random.default_rng(13)
    labels = rng.integers(2, size=96)
    t = np.arange(512) / 512
    sounds = np.sin(2 * np.pi * (30 + 60 * labels[:, None]) * t) + rng.normal(size=(96, 512)) * 0.3
    spectrogram = tf.abs(tf.signal.stft(tf.constant(sounds, tf.float32), frame_length=64, frame_step=32))
    x = np.asarray(spectrogram)[..., None]
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Resizing(8, 16), layers.Conv2D(4, 3, activation="relu"), layers.Flatten()])
    model.add(layers.Dense(2))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.005), loss, metrics=["accuracy"])
    model.fit(x, labels, epochs=8, verbose=0)
    return model.evaluate(x, labels, verbose=0)[1]


@lesson("audio", 8.0, 0.0, 12.0)
def speech_without_alignment(tf):
    rng = np.random.default_rng(14)
    labels = rng.integers(1, 4, size=(64, 3))
    x = np.repeat(np.eye(4)[labels], 4, axis=1) + rng.normal(size=(64, 12, 4)) * 0.1
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Conv1D(16, 3, padding="same", activation="relu"), layers.Dense(4)])
    model.compile(tf.keras.optimizers.Adam(0.01), tf.keras.losses.CTC())
    history = model.fit(x.astype("float32"), labels, epochs=10, verbose=0)
    return history.history["loss"][-1]


@lesson("forecasting", 0.03, 0.0, 0.05)
def forecasting_with_lstm(tf):
    x, y = windows(waves())
    model = tf.keras.Sequential([tf.keras.layers.LSTM(16), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    model.fit(x[:300], y[:300], epochs=10, verbose=0)
    return model.evaluate(x[300:], y[300:], verbose=0)[0]


@lesson("forecasting", 0.06, 0.0, 0.05)
def forecasting_with_convolutions(tf):
    series = waves()
    data = tf.keras.utils.timeseries_dataset_from_array(series[:-16, None], series[16:], 16, batch_size=32)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input((16, 1)),
            layers.Conv1D(16, 3, dilation_rate=2, activation="relu"),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    model.compile(tf.keras.optimizers.Adam(0.005), tf.keras.losses.Huber())
    model.fit(data, epochs=10, verbose=0)
    return model.evaluate(data, verbose=0)


@lesson("forecasting", 0.1, 0.0, 0.25)
def anomalies(tf):
    x, _ = windows(waves(), 16)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Conv1D(8, 3, padding="same", strides=2, activation="relu"),
            layers.Conv1DTranspose(8, 3, padding="same", strides=2, activation="relu"),
            layers.Conv1D(1, 3, padding="same"),
        ]
    )
    model.compile(tf.keras.optimizers.Adam(0.01), "mse")
    model.fit(x, x, epochs=10, verbose=0)
    error = np.abs(model.predict(x, verbose=0) - x).mean((1, 2))
    return float(error.mean())


# ---- generative, reinforcement, more -------------------------------------------------------------------------------


@lesson("generative", 0.08, 0.0, 0.2)
def autoencoder(tf):
    x, _ = pictures(7)

    class Autoencoder(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.encoder = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(16, "relu")])
            self.decoder = tf.keras.Sequential([tf.keras.layers.Dense(144), tf.keras.layers.Reshape((12, 12, 1))])

        def call(self, x):
            return self.decoder(self.encoder(x))

    model = Autoencoder()
    model.compile(optimizer="adam", loss=tf.keras.losses.MeanSquaredError())
    model.fit(x, x, epochs=15, verbose=0)
    return model.evaluate(x, x, verbose=0)


@lesson("generative", 3.0, 0.0, 30.0)
def variational_autoencoder(tf):
    x = pictures(8)[0].reshape(-1, 144)

    class Sampling(tf.keras.layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.seeds = tf.keras.random.SeedGenerator(1)

        def call(self, inputs):
            mean, log_variance = inputs
            noise = tf.keras.random.normal(shape=tf.keras.ops.shape(mean), seed=self.seeds)
            return mean + tf.keras.ops.exp(0.5 * log_variance) * noise

    class Variational(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden, self.mean = tf.keras.layers.Dense(24, "relu"), tf.keras.layers.Dense(4)
            self.log_variance, self.sampling = tf.keras.layers.Dense(4), Sampling()
            self.decoder = tf.keras.Sequential([tf.keras.layers.Dense(24, "relu"), tf.keras.layers.Dense(144)])

        def call(self, x):
            h = self.hidden(x)
            mean, log_variance = self.mean(h), self.log_variance(h)
            divergence = -0.5 * tf.reduce_sum(1 + log_variance - tf.square(mean) - tf.exp(log_variance), axis=1)
            self.add_loss(tf.reduce_mean(divergence))
            return self.decoder(self.sampling([mean, log_variance]))

    model = Variational()
    model.compile(tf.keras.optimizers.Adam(0.005), lambda y, p: tf.reduce_sum(tf.square(y - p), axis=-1))
    return model.fit(x, x, epochs=12, verbose=0).history["loss"][-1]


@lesson("generative", 1.0, 0.0, 1.2)
def adversarial_network(tf):
    layers = tf.keras.layers
    real = (np.random.default_rng(15).normal(size=(256, 2)) * 0.3 + [1.0, -1.0]).astype("float32")

    class Gan(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.generator = tf.keras.Sequential([layers.Input((4,)), layers.Dense(16, "relu"), layers.Dense(2)])
            self.critic = tf.keras.Sequential([layers.Input((2,)), layers.Dense(16, "relu"), layers.Dense(1)])

        def compile(self, critic_optimizer, generator_optimizer):
            super().compile()
            self.critic_optimizer, self.generator_optimizer = critic_optimizer, generator_optimizer
            self.loss_fn = tf.keras.losses.BinaryCrossentropy(from_logits=True)

        def train_step(self, data):
            noise = tf.random.normal([tf.shape(data)[0], 4])
            with tf.GradientTape() as tape:
                fake = self.generator(noise)
                scores = tf.concat([self.critic(data), self.critic(fake)], 0)
                truth = tf.concat([tf.ones_like(scores[: tf.shape(data)[0]]), tf.zeros([tf.shape(data)[0], 1])], 0)
                loss = self.loss_fn(truth, scores)
            variables = self.critic.trainable_weights
            self.critic_optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            with tf.GradientTape() as tape:
                scores = self.critic(self.generator(noise))
                generator_loss = self.loss_fn(tf.ones_like(scores), scores)
            variables = self.generator.trainable_weights
            self.generator_optimizer.apply_gradients(zip(tape.gradient(generator_loss, variables), variables))
            return {"critic": loss, "generator": generator_loss}

    model = Gan()
    model.compile(tf.keras.optimizers.Adam(0.01), tf.keras.optimizers.Adam(0.01))
    model.fit(tf.data.Dataset.from_tensor_slices(real).batch(64), epochs=25, verbose=0)
    drawn = np.asarray(model.generator(tf.random.normal([200, 4])))
    return float(np.linalg.norm(drawn.mean(0) - [1.0, -1.0]))


@lesson("generative", 0.3, 0.0, 0.95)
def adversarial_examples(tf):
    x, y = blobs(16)
    model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(3)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.02), loss, metrics=["accuracy"])
    model.fit(x, y, epochs=10, verbose=0)
    images = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(images)
        value = loss(y, model(images))
    attacked = images + 2.0 * tf.sign(tape.gradient(value, images))
    return model.evaluate(attacked, y, verbose=0)[1]


@lesson("reinforcement learning", 0.2, 0.75, 1.0)
def actor_critic(tf):
    rng = np.random.default_rng(17)
    inputs = tf.keras.Input((2,))
    common = tf.keras.layers.Dense(16, activation="relu")(inputs)
    model = tf.keras.Model(inputs, [tf.keras.layers.Dense(2)(common), tf.keras.layers.Dense(1)(common)])
    optimizer, huber = tf.keras.optimizers.Adam(0.03), tf.keras.losses.Huber(reduction="sum")

    @tf.function
    def train_step(states, actions, rewards):
        with tf.GradientTape() as tape:
            logits, values = model(states)
            log_probabilities = tf.gather(tf.nn.log_softmax(logits), actions, axis=1, batch_dims=1)
            advantage = rewards - tf.squeeze(values, 1)
            loss = -tf.reduce_sum(log_probabilities * tf.stop_gradient(advantage))
            loss += huber(rewards[:, None], values)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    rewards = np.zeros(1)
    for _ in range(60):
        states = rng.normal(size=(64, 2)).astype("float32")
        probabilities = np.asarray(tf.nn.softmax(model(states)[0]))[:, 1]
        actions = (rng.random(64) < probabilities).astype("int32")
        rewards = (actions == (states[:, 0] > states[:, 1])).astype("float32")
        train_step(tf.constant(states), tf.constant(actions), tf.constant(rewards))
    return float(rewards.mean())


@lesson("structured data", 0.15, 0.85, 1.0)
def mixed_precision(tf):
    x, y = blobs(18)
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        inputs = tf.keras.Input((4,))
        hidden = tf.keras.layers.Dense(16, activation="relu")(inputs)
        outputs = tf.keras.layers.Activation("softmax", dtype="float32")(tf.keras.layers.Dense(3)(hidden))
        model = tf.keras.Model(inputs, outputs)
        model.compile(tf.keras.optimizers.RMSprop(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
        model.fit(x, y, epochs=8, verbose=0)
        return model.evaluate(x, y, verbose=0)[1]
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")


@lesson("structured data", 0.1, 0.85, 1.0)
def records_in_files(tf):
    x, y = blobs(19, 120)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/data.tfrecord"
        with tf.io.TFRecordWriter(path) as writer:
            for row, label in zip(x, y):
                feature = {
                    "row": tf.train.Feature(float_list=tf.train.FloatList(value=row)),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
        spec = {"row": tf.io.FixedLenFeature([4], tf.float32), "label": tf.io.FixedLenFeature([], tf.int64)}

        def parse(record):
            example = tf.io.parse_single_example(record, spec)
            return example["row"], example["label"]

        data = tf.data.TFRecordDataset(path).map(parse).cache().shuffle(200).batch(20)
        model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(3)])
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.Adam(0.02), loss, metrics=["accuracy"])
        model.fit(data, epochs=10, verbose=0)
        return model.evaluate(data, verbose=0)[1]


LONGER = 20


class StepTimes:
    """While it is entered, `fit` notes the milliseconds of each training step, from callback to callback.

    longer: by which epochs are multiplied
    """

    def __init__(self, keras, longer=1):
        self._keras, self._fit, self._longer = keras, keras.Model.fit, longer
        self.milliseconds = []

    def __enter__(self):
        times, fit = self.milliseconds, self._fit

        class Clock(self._keras.callbacks.Callback):
            def on_train_batch_begin(self, batch, logs=None):
                self.start = time.perf_counter()

            def on_train_batch_end(self, batch, logs=None):
                times.append((time.perf_counter() - self.start) * 1e3)

        def timed(model, *args, callbacks=(), epochs=1, **kwargs):
            return fit(model, *args, callbacks=[*callbacks, Clock()], epochs=epochs * self._longer, **kwargs)

        self._keras.Model.fit = timed
        return self

    def __exit__(self, *error):
        self._keras.Model.fit = self._fit

    def least(self):
        """Return the milliseconds of the quickest step, None without `fit`."""
        return round(min(self.milliseconds), 3) if self.milliseconds else None


def figures(tf, names=tuple(LESSONS), longer=1):
    """Return the figure of lessons, their seconds, and the milliseconds of the quickest step of `fit`.

    longer: times the epochs, in a second run, of which the steps are
    """
    results = {}
    for name in names:
        tf.keras.utils.set_random_seed(1)
        start = time.perf_counter()
        with StepTimes(tf.keras) as times:
            figure = float(LESSONS[name].run(tf))
        seconds = round(time.perf_counter() - start, 2)
        if longer > 1:
            with StepTimes(tf.keras, longer) as times:
                LESSONS[name].run(tf)
        results[name] = {"figure": round(figure, 4), "seconds": seconds, "step_ms": times.least(), "longer": longer}
        print(name, results[name], flush=True)
    return results


def renew(names):
    """Write the figures of TensorFlow, or with OPWRIGHT among the names those of this package, to lessons.json."""
    own = "OPWRIGHT" in names
    longer = LONGER if "LONGER" in names else 1
    names = [name for name in names if name not in ("OPWRIGHT", "LONGER")] or list(LESSONS)
    tf = importlib.import_module("opwright" if own else "tensorflow")
    path = pathlib.Path(__file__).with_name("lessons.json")
    results = json.loads(path.read_text())
    if not own:
        results["made_with"] = f"tensorflow {tf.__version__}, keras {tf.keras.__version__}"
    for name in names:
        row = figures(tf, [name], longer)[name]
        results[name] = results.get(name, {}) | ({f"opwright_{k}": v for k, v in row.items()} if own else row)
        path.write_text(json.dumps(results, indent=0) + "\n")


if __name__ == "__main__":
    renew(sys.argv[1:])
