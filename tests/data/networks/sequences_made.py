"""Networks for sequences of the corpus of networks. Run by make_networks.py.

Recurrent layers of Keras 2 (tf_keras): those of Keras 3 crash the converter's calibration.
"""

import tensorflow as tf
import tf_keras
from networks_table import adder

NETWORKS = {}
network = adder(NETWORKS)
L, L2 = tf.keras.layers, tf_keras.layers


def sequence(*shape, dtype=None):
    """An input of one sequence."""
    return tf.keras.Input(shape, batch_size=1, dtype=dtype)


def older(*layers):
    """A model of Keras 2."""
    tf_keras.utils.set_random_seed(1)
    return tf_keras.Sequential(layers)


@network("float", "int8")
def lstms():
    """Two LSTMs, fused."""
    return older(L2.Input((7, 6), batch_size=1), L2.LSTM(12, return_sequences=True), L2.LSTM(8), L2.Dense(3))


@network("int8")
def small_cells():
    """Text: embeddings so small that the scale of the LSTMs' cells lies below 2^-15."""
    return older(
        L2.Input((9,), batch_size=1, dtype="int32"),
        L2.Embedding(20, 6),
        L2.LSTM(8, return_sequences=True),
        L2.LSTM(6, return_sequences=True),
        L2.GlobalMaxPooling1D(),
        L2.Dense(4, activation="softmax"),
    )


@network("float", "int8")
def both_ways():
    """An LSTM in both directions."""
    return older(L2.Input((5, 4), batch_size=1), L2.Bidirectional(L2.LSTM(6, return_sequences=True)), L2.Dense(3))


@network("float")
def stacked():
    """Cells on each other, in a loop of the file."""
    cells = L2.StackedRNNCells([L2.LSTMCell(8), L2.GRUCell(8)])
    return older(L2.Input((5, 6), batch_size=1), L2.RNN(cells))


@network("float")
def frames():
    """An LSTM of images."""
    return older(L2.Input((4, 6, 6, 2), batch_size=1), L2.ConvLSTM2D(4, 3))


@network("float", "int8")
def unrolled():
    """GRUs without a loop, one of them backwards."""
    x = sequence(4, 6)
    y = L.GRU(8, unroll=True, return_sequences=True)(x)
    return tf.keras.Model(x, L.GRU(6, unroll=True, reset_after=False, go_backwards=True)(y))


@network("float", "int8", "int16x8")
def causal():
    """Dilated causal convolutions with gates, as for sound."""
    x = sequence(40, 3)
    y, sums = L.Conv1D(8, 2, padding="causal")(x), []
    for rate in (1, 2, 4):
        new = L.Conv1D(8, 2, padding="causal", dilation_rate=rate, activation="tanh")(y)
        z = L.Conv1D(8, 1)(new * L.Conv1D(8, 2, padding="causal", dilation_rate=rate, activation="sigmoid")(y))
        y = y + z
        sums.append(z)
    y = L.GlobalMaxPooling1D()(L.Conv1D(6, 1, activation="relu")(L.Add()(sums)))
    return tf.keras.Model(x, L.Dense(4)(y))


@network("float", "float16", "int8")
def encoder():
    """A transformer's encoder."""
    x = y = sequence(6, 12)
    y = L.LayerNormalization()(y + L.MultiHeadAttention(2, 6)(y, y))
    y = L.LayerNormalization()(y + L.Dense(12)(L.Dense(24, activation="relu")(y)))
    return tf.keras.Model(x, L.Dense(4)(L.GlobalAveragePooling1D()(y)))


@network("float")
def decoder():
    """Attention with a mask, across, additive, and with fewer keys than queries."""
    a, b = sequence(6, 12), sequence(5, 12)
    memory = a + L.MultiHeadAttention(2, 6)(a, a)
    y = b + L.MultiHeadAttention(2, 6)(b, b, use_causal_mask=True)
    y = y + L.MultiHeadAttention(3, 4, value_dim=5)(y, memory)
    others = [L.Attention()([y, memory]), L.AdditiveAttention()([y, memory]), L.GroupQueryAttention(4, 4, 2)(y, memory)]
    return tf.keras.Model([a, b], [y, *others])


@network("float")
def line():
    """One-dimensional layers of every kind."""
    x = sequence(12, 8)
    y = L.SeparableConv1D(12, 3)(L.Conv1D(12, 4, padding="causal")(x))
    y = L.AveragePooling1D(2)(L.DepthwiseConv1D(3)(y))
    y = L.ZeroPadding1D(1)(L.UpSampling1D(2)(L.Conv1DTranspose(4, 3, 2)(y)))
    return tf.keras.Model(x, L.Cropping1D(1)(y))
