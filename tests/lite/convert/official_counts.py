"""Print the numbers of operators that the official converter makes of the networks of the converter's tests.

Run where TensorFlow is installed: `python official_counts.py`. Nothing in the tests imports it.
"""

from __future__ import annotations

import collections

import tensorflow as tf

L = tf.keras.layers
IMAGE = (16, 16, 8)


def block(*layers):
    return lambda x: [x := layer(x) for layer in layers][-1]


def residual(x):
    y = L.ReLU(6.0)(L.BatchNormalization()(L.Conv2D(24, 1, use_bias=False)(x)))
    y = L.ReLU(6.0)(L.BatchNormalization()(L.DepthwiseConv2D(3, padding="same", use_bias=False)(y)))
    return L.Add()([x, L.BatchNormalization()(L.Conv2D(8, 1, use_bias=False)(y))])


def squeeze_excite(x):
    s = L.GlobalAveragePooling2D(keepdims=True)(x)
    s = L.Conv2D(2, 1, activation="relu")(s)
    return L.Multiply()([x, L.Conv2D(8, 1, activation="sigmoid")(s)])


def hard_swish(x):
    return L.Conv2D(4, 3)(x) * tf.keras.ops.relu6(L.Conv2D(4, 3)(x) + 3.0) / 6.0


def transformer(x):
    y = L.LayerNormalization()(x + L.MultiHeadAttention(2, 8)(x, x))
    return L.LayerNormalization()(y + L.Dense(16)(L.Dense(32, activation="relu")(y)))


NETWORKS = {
    "conv_bn_relu": (IMAGE, block(L.Conv2D(4, 3), L.BatchNormalization(), L.ReLU())),
    "conv_bias_bn_relu6": (IMAGE, block(L.Conv2D(4, 3, use_bias=True), L.BatchNormalization(), L.ReLU(6.0))),
    "depthwise_bn_relu6": (IMAGE, block(L.DepthwiseConv2D(3), L.BatchNormalization(), L.ReLU(6.0))),
    "separable_bn_relu": (IMAGE, block(L.SeparableConv2D(4, 3), L.BatchNormalization(), L.ReLU())),
    "transpose_conv_bn": (IMAGE, block(L.Conv2DTranspose(4, 3, 2), L.BatchNormalization(), L.ReLU())),
    "bn_conv": (IMAGE, block(L.BatchNormalization(), L.Conv2D(4, 3))),
    "dense_stack": (
        (8,),
        block(L.Dense(16, activation="relu"), L.Dense(16, activation="relu"), L.Dense(3), L.Softmax()),
    ),
    "dense_bn_relu": ((8,), block(L.Dense(16), L.BatchNormalization(), L.ReLU())),
    "bn_dense": ((8,), block(L.BatchNormalization(), L.Dense(16))),
    "dense_on_sequences": ((5, 8), block(L.Dense(16, activation="relu"), L.Dense(4))),
    "pad_conv_stride_2": (IMAGE, block(L.ZeroPadding2D(((0, 1), (0, 1))), L.Conv2D(4, 3, 2), L.ReLU())),
    "global_pool_head": (IMAGE, block(L.GlobalAveragePooling2D(), L.Dense(4), L.Softmax())),
    "flatten_head": (IMAGE, block(L.MaxPooling2D(), L.Flatten(), L.Dense(4))),
    "upsampling": (IMAGE, block(L.UpSampling2D(2), L.Conv2D(4, 3, padding="same"))),
    "upsampling_bilinear": (IMAGE, block(L.UpSampling2D(2, interpolation="bilinear"))),
    "prelu": (IMAGE, block(L.Conv2D(4, 3), L.PReLU(shared_axes=[1, 2]))),
    "leaky_relu": (IMAGE, block(L.Conv2D(4, 3), L.LeakyReLU())),
    "conv1d_bn_relu": ((20, 8), block(L.Conv1D(4, 3), L.BatchNormalization(), L.ReLU())),
    "conv_dilated": (IMAGE, block(L.Conv2D(4, 3, dilation_rate=2, padding="same", activation="relu"))),
    "layer_norm": ((5, 16), block(L.LayerNormalization())),
    "attention": ((5, 16), lambda x: L.MultiHeadAttention(2, 8)(x, x)),
    "transformer": ((5, 16), transformer),
    "gelu_mlp": ((5, 16), block(L.Dense(32, activation="gelu"), L.Dense(16))),
    "inverted_residual": (IMAGE, residual),
    "squeeze_excite": (IMAGE, squeeze_excite),
    "hard_swish": (IMAGE, hard_swish),
    "embedding_mean": ((6,), block(L.Embedding(10, 4), L.GlobalAveragePooling1D(), L.Dense(2))),
    "unit_norm": ((8,), block(L.UnitNormalization())),
    "softmax_axis": ((4, 5), block(L.Softmax(axis=1))),
    "group_norm": (IMAGE, block(L.GroupNormalization(2))),
}


def operators(model):
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    return [op["op_name"] for op in interpreter._get_ops_details() if op["op_name"] != "DELEGATE"]


def main():
    for name, (shape, network) in NETWORKS.items():
        x = tf.keras.Input(shape, batch_size=1, dtype="int32" if name.startswith("embedding") else "float32")
        result = operators(tf.keras.Model(x, network(x)))
        counts = " ".join(f"{n}x{k}" for k, n in sorted(collections.Counter(result).items()))
        print(f'    "{name}": {len(result)},  # {counts}')


if __name__ == "__main__":
    main()
