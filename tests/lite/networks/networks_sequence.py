"""Networks of words, series and tables: recurrence, attention, several inputs and outputs; see networks_all.py."""

from __future__ import annotations

from typing import Any

from networks_kit import network


@network((2, 12), words=30, dtype="int32")
def lstm_text(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((12,), dtype="int32")
    x = L.Embedding(30, 8)(i)
    x = L.LSTM(6, return_sequences=True)(x)
    x = L.LSTM(5)(x)
    return K.Model(i, L.Dense(3, activation="softmax")(x))


@network((2, 12), words=30, dtype="int32")
def bilstm_mask(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((12,), dtype="int32")
    x = L.Embedding(30, 8, mask_zero=True)(i)
    x = L.Bidirectional(L.LSTM(6, return_sequences=True))(x)
    x = L.Bidirectional(L.GRU(5))(x)
    return K.Model(i, L.Dense(3, activation="softmax")(x))


@network((2, 9), words=30, dtype="int64")
def gru_unknown_length(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((None,), dtype="int64")
    x = L.Embedding(30, 8)(i)
    x = L.GRU(6, return_sequences=True, reset_after=True)(x)
    x = L.GRU(6, reset_after=False)(x)
    return K.Model(i, L.Dense(1, activation="sigmoid")(x))


@network((2, 6, 4))
def simple_rnn_unrolled(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((6, 4))
    x = L.SimpleRNN(5, return_sequences=True)(i)
    x = L.LSTM(5, unroll=True, return_sequences=True)(x)
    x = L.TimeDistributed(L.Dense(3, activation="tanh"))(x)
    return K.Model(i, x)


@network((2, 6, 4))
def rnn_cells_states(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((6, 4))
    x, h, c = L.LSTM(5, return_sequences=True, return_state=True, go_backwards=True)(i)
    y = L.RNN([L.LSTMCell(4), L.GRUCell(3)], return_sequences=True)(x)
    z = L.Masking(0.5)(x)
    z = L.GRU(4)(z)
    return K.Model(i, [y, h, c, z])


@network((2, 10), words=40, dtype="int32")
def transformer(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((10,), dtype="int32")
    x = L.Embedding(40, 16)(i)
    for _ in range(2):
        a = L.MultiHeadAttention(2, 8, dropout=0.1)(x, x)
        x = L.LayerNormalization(epsilon=1e-6)(x + a)
        f = L.Dense(32, activation="gelu")(x)
        f = L.Dense(16)(f)
        x = L.LayerNormalization(epsilon=1e-6)(x + f)
    x = L.GlobalAveragePooling1D()(x)
    return K.Model(i, L.Dense(4, activation="softmax")(x))


@network((2, 10), words=40, dtype="int32")
def transformer_masked(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((10,), dtype="int32")
    x = L.Embedding(40, 16, mask_zero=True)(i)
    a, s = L.MultiHeadAttention(2, 8, value_dim=6)(x, x, use_causal_mask=True, return_attention_scores=True)
    x = L.LayerNormalization()(L.Add()([x, a]))
    x = L.EinsumDense("abc,cd->abd", output_shape=(None, 12), bias_axes="d", activation="relu")(x)
    return K.Model(i, [x, s])


@network((2, 5, 8), (2, 7, 8))
def attention_layers(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    q, v = K.Input((5, 8)), K.Input((7, 8))
    x = L.Attention(use_scale=True)([q, v])
    y = L.AdditiveAttention()([q, v])
    z = L.Dot(axes=2, normalize=True)([q, v])
    g = L.GroupQueryAttention(4, 4, 2)(q, v)
    return K.Model([q, v], [x, y, z, g])


@network((3, 4), (3, 6), (3, 1))
def wide_deep(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    a, b, c = K.Input((4,), name="wide"), K.Input((6,), name="deep"), K.Input((1,), name="extra_one")
    d = L.Dense(8, activation="relu")(b)
    d = L.Dense(8, activation="elu")(d)
    x = L.concatenate([a, d, c])
    o1 = L.Dense(1, name="price")(x)
    o2 = L.Dense(2, activation="softmax", name="kind")(d)
    return K.Model(inputs=[a, b, c], outputs=[o1, o2])


@network((3, 4), (3, 4), names=("age", "weight"))
def dict_io(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    a, b = K.Input((4,), name="age"), K.Input((4,), name="weight")
    x = L.Dense(3, activation="selu")(L.subtract([a, b]))
    return K.Model(inputs={"age": a, "weight": b}, outputs={"sum": L.Dense(1)(x), "hidden": x})


@network((2, 6))
def activations(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((6,))
    x = L.Dense(6)(i)
    names = """elu selu softplus softsign tanh sigmoid hard_sigmoid exponential swish gelu relu6 mish log_softmax celu
               leaky_relu hard_swish linear glu hard_tanh hard_shrink squareplus sparsemax tanh_shrink log_sigmoid"""
    outs = [L.Activation(a)(x) for a in names.split()]
    more = [L.PReLU(), L.LeakyReLU(), L.ELU(), L.ReLU(max_value=4, negative_slope=0.1, threshold=0.2), L.ReLU(1.0)]
    return K.Model(i, outs + [layer(x) for layer in more])


@network((3,), words=5, dtype="int32")
def category(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((), dtype="int32")
    return K.Model(i, [L.CategoryEncoding(5, output_mode="one_hot")(i)])


@network((2, 6), (2, 6))
def siamese_shared(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    base = K.Sequential([L.Dense(5, activation="relu"), L.Dense(4)])
    a, b = K.Input((6,)), K.Input((6,))
    x, y = base(a), base(b)
    d = L.Lambda(lambda t: tf.math.abs(t[0] - t[1]))([x, y])
    return K.Model([a, b], L.Dense(1, activation="sigmoid")(d))


@network((4, 6))
def mlp_bn(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    first = [K.Input((6,)), L.Dense(8, use_bias=False), L.BatchNormalization(), L.ReLU(), L.Dropout(0.5)]
    second = [L.GaussianNoise(0.1), L.Dense(8, activation="relu"), L.BatchNormalization(), L.Dense(3), L.Softmax()]
    return K.Sequential(first + second)


@network((1, 4, 8, 8, 1))
def video_gru(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((4, 8, 8, 1))
    x = L.TimeDistributed(L.Conv2D(3, 3, activation="relu"))(i)
    x = L.TimeDistributed(L.MaxPooling2D())(x)
    x = L.TimeDistributed(L.Flatten())(x)
    return K.Model(i, L.GRU(4)(x))


@network((2, 6))
def subclassed(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers

    class Block(L.Layer):
        def __init__(self, n: int) -> None:
            super().__init__()
            self.n = n

        def build(self, shape: Any) -> None:
            self.w = self.add_weight(shape=(shape[-1], self.n), initializer="glorot_uniform", name="w")
            self.b = self.add_weight(shape=(self.n,), initializer="zeros", name="b")

        def call(self, x: Any) -> Any:
            return tf.nn.relu(tf.matmul(x, self.w) + self.b)

    class Net(K.Model):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = [Block(5), Block(4)]
            self.head = L.Dense(2)
            self.drop = L.Dropout(0.5)

        def call(self, x: Any, training: bool = False) -> Any:
            for b in self.blocks:
                x = b(x)
            x = self.drop(x, training=training)
            return {"logits": self.head(x), "hidden": x}

    return Net()
