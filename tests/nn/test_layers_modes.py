"""Training and not, random numbers, kept states, masks on their way, and what layers refuse."""

import numpy as np
import pytest

ONES = np.ones((200, 50), np.float32)


def layers_of_noise(L):
    return {
        "dropout": L.Dropout(0.4),
        "gaussian_dropout": L.GaussianDropout(0.4),
        "noise": L.GaussianNoise(0.5),
        "alpha": L.AlphaDropout(0.3),
    }


@pytest.mark.parametrize(
    ("name", "mean", "deviation"),
    [
        ("dropout", 1.0, (0.4 / 0.6) ** 0.5),
        ("gaussian_dropout", 1.0, (0.4 / 0.6) ** 0.5),
        ("noise", 1.0, 0.5),
        ("alpha", None, None),
    ],
)
def test_noise(tf, name, mean, deviation):
    layer = layers_of_noise(tf.keras.layers)[name]
    y = np.asarray(layer(ONES, training=True))
    if mean is not None:
        assert y.mean() == pytest.approx(mean, abs=0.05)
        assert y.std() == pytest.approx(deviation, rel=0.05)
    assert len(np.unique(y)) > 1
    np.testing.assert_array_equal(layer(ONES, training=False), ONES)
    np.testing.assert_array_equal(layer(ONES), ONES)
    traced = tf.function(lambda x: layer(x, training=True))
    a, b = np.asarray(traced(ONES)), np.asarray(traced(ONES))
    assert np.any(a != b)
    assert a.std() == pytest.approx(y.std(), rel=0.05)


def test_alpha_dropout_keeps_mean_and_variance(tf):
    x = np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32)
    y = np.asarray(tf.keras.layers.AlphaDropout(0.2, seed=1)(x, training=True))
    assert y.mean() == pytest.approx(0.0, abs=0.02)
    assert y.std() == pytest.approx(1.0, abs=0.02)


def test_dropped_whole(tf):
    L = tf.keras.layers
    for layer, shape, axes in (
        (L.SpatialDropout1D(0.5), (20, 4, 6), (1,)),
        (L.SpatialDropout2D(0.5), (20, 3, 4, 6), (1, 2)),
        (L.SpatialDropout2D(0.5, data_format="channels_first"), (20, 6, 3, 4), (2, 3)),
        (L.SpatialDropout3D(0.5), (20, 2, 3, 2, 6), (1, 2, 3)),
        (L.Dropout(0.5, noise_shape=(None, 1, 6)), (20, 4, 6), (1,)),
    ):
        y = np.asarray(layer(np.ones(shape, np.float32), training=True))
        assert set(np.unique(y)) == {0.0, 2.0}
        assert np.all(y.min(axes) == y.max(axes))


def test_equal_seeds_are_equal_sequences(tf):
    a, b = tf.keras.layers.Dropout(0.5, seed=7), tf.keras.layers.Dropout(0.5, seed=7)
    first, second = np.asarray(a(ONES, training=True)), np.asarray(a(ONES, training=True))
    np.testing.assert_array_equal(b(ONES, training=True), first)
    np.testing.assert_array_equal(b(ONES, training=True), second)
    assert np.any(first != second)
    assert a.weights == []


def test_rates_out_of_range(tf):
    for make in (tf.keras.layers.Dropout, tf.keras.layers.GaussianDropout):
        with pytest.raises(ValueError, match="rate"):
            make(1.5)


@pytest.mark.ours
def test_a_tensor_decides_the_mode(tf):
    layer = tf.keras.layers.Dropout(0.5)
    norm = tf.keras.layers.BatchNormalization(momentum=0.5)
    x = np.random.default_rng(1).standard_normal((50, 3)).astype(np.float32) + 3
    norm(x)

    @tf.function
    def f(x, training):
        return layer(x, training=training), norm(x, training=training)

    y, z = f(tf.constant(x), tf.constant(False))
    np.testing.assert_array_equal(y, x)
    np.testing.assert_allclose(norm.moving_mean.numpy(), 0)
    y, z = f(tf.constant(x), tf.constant(True))
    assert np.any(y.numpy() != x)
    np.testing.assert_allclose(norm.moving_mean.numpy(), x.mean(0) / 2, rtol=1e-5)
    np.testing.assert_allclose(z.numpy().mean(0), 0, atol=1e-5)
    assert f.experimental_get_tracing_count() == 1
    z, _ = layer(tf.constant(x), training=tf.constant(False)), None
    np.testing.assert_array_equal(z, x)


def test_frozen_batch_normalization(tf):
    layer = tf.keras.layers.BatchNormalization()
    x = np.random.default_rng(1).standard_normal((50, 3)).astype(np.float32) + 3
    layer(x)
    layer.trainable = False
    before = layer.get_weights()
    y = np.asarray(layer(x, training=True))
    np.testing.assert_allclose(y, x / np.sqrt(1.001), rtol=1e-5)
    for a, b in zip(before, layer.get_weights()):
        np.testing.assert_array_equal(a, b)


def test_moving_averages_in_functions(tf):
    layer = tf.keras.layers.BatchNormalization(momentum=0.9)
    x = np.random.default_rng(2).standard_normal((40, 3)).astype(np.float32) * 2 + 1
    layer.build((None, 3))
    step = tf.function(lambda x: layer(x, training=True))
    for _ in range(3):
        step(x)
    share = 1 - 0.9**3
    np.testing.assert_allclose(np.asarray(layer.moving_mean), share * x.mean(0), rtol=1e-4)
    np.testing.assert_allclose(np.asarray(layer.moving_variance), share * x.var(0) + 1 - share, rtol=1e-4)


# ---- recurrent ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["SimpleRNN", "GRU", "LSTM"])
def test_kept_states(tf, kind):
    """A stateful layer over two halves gives what one without gives over the whole."""
    x = np.random.default_rng(3).standard_normal((2, 6, 3)).astype(np.float32)
    make = getattr(tf.keras.layers, kind)
    whole, halves = make(4), make(4, stateful=True)
    expected = np.asarray(whole(x))
    halves.build((2, 3, 3))
    halves.set_weights(whole.get_weights())
    assert len(halves.weights) == 3
    halves(x[:, :3])
    np.testing.assert_allclose(halves(x[:, 3:]), expected, atol=1e-6)
    halves.reset_state()
    step = tf.function(halves)
    step(x[:, :3])
    np.testing.assert_allclose(step(x[:, 3:]), expected, atol=1e-6)
    with pytest.raises(ValueError, match="batch size"):
        halves(x[:1, :3])


@pytest.mark.parametrize("kind", ["SimpleRNN", "GRU", "LSTM"])
@pytest.mark.parametrize("rates", [(0.5, 0.0), (0.0, 0.5), (0.3, 0.3)])
def test_dropout_in_recurrent_layers(tf, kind, rates):
    x = np.random.default_rng(3).standard_normal((4, 5, 3)).astype(np.float32)
    layer = getattr(tf.keras.layers, kind)(6, dropout=rates[0], recurrent_dropout=rates[1])
    off = np.asarray(layer(x))
    np.testing.assert_array_equal(layer(x, training=False), off)
    a, b = np.asarray(layer(x, training=True)), np.asarray(layer(x, training=True))
    assert np.any(a != b)
    assert np.any(a != off)
    traced = tf.function(lambda x: layer(x, training=True))
    assert np.any(np.asarray(traced(x)) != np.asarray(traced(x)))
    np.testing.assert_allclose(tf.function(lambda x: layer(x, training=False))(x), off, atol=1e-6)


def test_input_dropout_stays_over_time(tf):
    """With dropout alone a feature is gone at all steps: units that sum inputs give multiples of the time."""
    layer = tf.keras.layers.SimpleRNN(
        1, activation="linear", use_bias=False, dropout=0.5, kernel_initializer="ones", recurrent_initializer="ones"
    )
    y = np.asarray(layer(np.ones((64, 8, 3), np.float32), training=True)).ravel()
    assert set(np.unique(y)) <= {0.0, 16.0, 32.0, 48.0}
    assert len(np.unique(y)) > 1


def test_cells_of_ones_own(tf):
    class Adding(tf.keras.layers.Layer):
        state_size = 3
        output_size = 2

        def call(self, inputs, states):
            total = states[0] + inputs
            return total[:, :2] * 10.0, [total]

    x = np.arange(12, dtype=np.float32).reshape(1, 4, 3)
    layer = tf.keras.layers.RNN(Adding(), return_sequences=True, return_state=True)
    for call in (layer, tf.function(layer)):
        y, state = call(x)
        np.testing.assert_allclose(y, 10 * x.cumsum(1)[:, :, :2])
        np.testing.assert_allclose(state, x.sum(1))
    last = tf.keras.layers.RNN(Adding())
    np.testing.assert_allclose(last(x), 10 * x.sum(1)[:, :2])
    np.testing.assert_allclose(tf.function(last)(x), 10 * x.sum(1)[:, :2])


@pytest.mark.ours
def test_no_time(tf):
    """A sequence without steps gives the initial state's zeros."""
    layer = tf.keras.layers.GRU(3)
    layer.build((None, None, 2))
    traced = tf.function(layer, input_signature=[tf.TensorSpec([None, None, 2], tf.float32)])
    np.testing.assert_array_equal(traced(np.zeros((2, 0, 2), np.float32)), np.zeros((2, 3)))


@pytest.mark.ours
def test_the_loop_over_time_is_one_loop(tf):
    layer = tf.keras.layers.LSTM(3)
    layer.build((None, None, 2))
    traced = tf.function(layer)

    def size(time):
        return len(traced.get_concrete_function(tf.TensorSpec([2, time, 2], tf.float32)).graph.nodes)

    assert size(5) == size(50)
    unrolled = tf.function(tf.keras.layers.LSTM(3, unroll=True))
    assert len(unrolled.get_concrete_function(tf.TensorSpec([2, 9, 2], tf.float32)).graph.nodes) > size(9)


# ---- masks ----------------------------------------------------------------------------------------------------------


def test_masks_travel(tf):
    """Embedding's mask passes through Dense and Dropout to the recurrent layer."""
    L = tf.keras.layers
    ids = np.array([[1, 2, 0, 0], [3, 4, 1, 2]], np.int32)
    embedding, dense, gru = L.Embedding(5, 3, mask_zero=True), L.Dense(3), L.GRU(2)
    y = np.asarray(gru(L.Dropout(0.5)(dense(embedding(ids)))))
    short = np.asarray(gru(dense(embedding(ids[:1, :2]))))
    np.testing.assert_allclose(y[0], short[0], atol=1e-6)
    traced = tf.function(lambda ids: gru(dense(embedding(ids))))
    np.testing.assert_allclose(traced(ids), y, atol=1e-6)
    np.testing.assert_array_equal(embedding.compute_mask(ids), ids != 0)


def test_masks_of_merged_inputs(tf):
    L = tf.keras.layers
    masking = L.Masking()
    a = np.array([[[1.0], [0.0], [3.0]]], np.float32)
    b = np.array([[[1.0], [2.0], [0.0]]], np.float32)
    summing = L.SimpleRNN(
        1, activation="linear", use_bias=False, kernel_initializer="ones", recurrent_initializer="ones"
    )
    assert float(summing(L.Concatenate(axis=1)([masking(a), masking(b)]))[0, 0]) == 7.0
    assert float(summing(L.Multiply()([masking(a), masking(b)]))[0, 0]) == 6.0
    assert float(summing(L.Maximum()([masking(a), masking(b)]))[0, 0]) == 6.0


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "shape", "words"),
    [
        (lambda L: L.Dense(0), None, "units"),
        (lambda L: L.Conv2D(3, 3, padding="full"), None, "padding"),
        (lambda L: L.Conv2D(3, (1, 2, 3)), None, "kernel_size"),
        (lambda L: L.Conv2D(3, 3, groups=2), None, "groups"),
        (lambda L: L.Conv2D(3, 3, strides=2, dilation_rate=2), None, "dilation_rate"),
        (lambda L: L.Conv2D(3, 3), (1, 2, 2, 1), "zero or negative"),
        (lambda L: L.Conv2D(4, 3, groups=2), (1, 5, 5, 3), "groups"),
        (lambda L: L.Conv2D(3, 3), (4, 5), "ndim"),
        (lambda L: L.Conv2D(3, 3, data_format="nhwc"), None, "data_format"),
        (lambda L: L.Conv2DTranspose(3, 3, strides=2, output_padding=2), None, "output_padding"),
        (lambda L: L.Reshape((4, 2)), (2, 3), "total size"),
        (lambda L: L.Permute((0, 1)), None, "dims"),
        (lambda L: L.Cropping2D(3), (1, 4, 4, 1), "cropping"),
        (lambda L: L.GroupNormalization(groups=3), (2, 4), "groups"),
        (lambda L: L.RNN([1, 2]), None, "call"),
        (lambda L: L.Bidirectional(3), None, "Layer"),
        (lambda L: L.Bidirectional(L.GRU(2), merge_mode="both"), None, "merge mode"),
        (lambda L: L.MaxPooling2D(0), None, "pool_size"),
        (lambda L: L.ReLU(max_value=-1.0), None, "max_value"),
        (lambda L: L.EinsumDense("ab->b", 3), (2, 3), "equation"),
        (lambda L: L.Attention(score_mode="sum"), None, "score_mode"),
        (lambda L: L.UpSampling2D(interpolation="near"), (1, 2, 2, 1), "interpolation|near"),
        (lambda L: L.Dense(3, surprise=1), None, "surprise"),
    ],
)
def test_refused(tf, make, shape, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make(tf.keras.layers)(np.ones(shape or (2, 2), np.float32))


def test_merging_is_refused(tf):
    L = tf.keras.layers
    one, other = np.ones((2, 3), np.float32), np.ones((2, 4), np.float32)
    with pytest.raises(ValueError, match="shapes"):
        L.Add()([one, other])
    with pytest.raises(ValueError, match="list"):
        L.Add()(one)
    with pytest.raises(ValueError, match="2 inputs"):
        L.Subtract()([one, one, one])
    with pytest.raises(ValueError, match="matching shapes"):
        L.Concatenate(axis=1)([np.ones((2, 3, 4), np.float32), np.ones((2, 3, 5), np.float32)])


def test_functions_that_merge(tf):
    L = tf.keras.layers
    a, b = np.array([[1.0, 5.0]], np.float32), np.array([[3.0, 2.0]], np.float32)
    for name, expected in (
        ("add", a + b),
        ("subtract", a - b),
        ("multiply", a * b),
        ("average", (a + b) / 2),
        ("maximum", np.maximum(a, b)),
        ("minimum", np.minimum(a, b)),
        ("concatenate", np.concatenate([a, b], -1)),
        ("dot", (a * b).sum(-1, keepdims=True)),
    ):
        np.testing.assert_allclose(getattr(L, name)([a, b]), expected)


def test_normalization_adapts(tf):
    x = np.random.default_rng(4).standard_normal((100, 3)).astype(np.float32) * 2 + 5
    layer = tf.keras.layers.Normalization()
    layer.adapt(x)
    np.testing.assert_allclose(layer(x), (x - x.mean(0)) / x.std(0), rtol=1e-3, atol=1e-4)


def test_mixed_precision(tf):
    L = tf.keras.layers
    x = np.random.default_rng(4).standard_normal((2, 6, 6, 4)).astype(np.float32)
    for layer in (
        L.Conv2D(3, 3, dtype="mixed_float16"),
        L.Dense(3, dtype="mixed_float16"),
        L.BatchNormalization(dtype="mixed_float16"),
        L.LayerNormalization(dtype="mixed_float16"),
    ):
        y = layer(x)
        assert tf.as_dtype(y.dtype) == tf.float16
        assert {tf.as_dtype(w.dtype) for w in layer.weights} == {tf.float32}


def test_weights_are_exchanged(tf):
    """A model's weights in Keras's order: its own, trained ones first, layer by layer."""
    L = tf.keras.layers
    layer = L.Bidirectional(L.LSTM(2))
    layer(np.ones((1, 3, 4), np.float32))
    assert [tuple(w.shape) for w in layer.weights] == [(4, 8), (2, 8), (8,)] * 2
    norm = L.BatchNormalization()
    norm(np.ones((2, 3), np.float32))
    assert [w.name.rpartition("/")[2].partition(":")[0] for w in norm.weights] == [
        "gamma",
        "beta",
        "moving_mean",
        "moving_variance",
    ]
    assert len(norm.trainable_weights) == 2


@pytest.mark.ours  # Keras 3 does not stage them
def test_functions_of_users_are_converted(tf):
    """Python's `if` on tensors works in Lambda and Activation inside a function."""

    def bent(x):
        if tf.reduce_sum(x) > 0:
            y = x * 2.0
        else:
            y = x - 1.0
        return y

    x = np.ones((2, 3), np.float32)
    for layer in (tf.keras.layers.Lambda(bent), tf.keras.layers.Activation(bent)):
        traced = tf.function(layer)
        np.testing.assert_allclose(traced(x), 2 * x)
        np.testing.assert_allclose(traced(-x), -x - 1)
