"""Small networks in as few operators as the official converter makes of them, or fewer, with the same results.

The numbers are what official_counts.py beside this printed with TensorFlow 2.21; its networks are these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from convert_harness import assert_same, f32, ints, official, ours
from lite_kit import op_names

import opwright as ow

L = ow.keras.layers
IMAGE = (16, 16, 8)


def block(*layers: Any) -> Callable[[Any], Any]:
    def network(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    return network


def residual(x: Any) -> Any:
    y = L.ReLU(6.0)(L.BatchNormalization()(L.Conv2D(24, 1, use_bias=False)(x)))
    y = L.ReLU(6.0)(L.BatchNormalization()(L.DepthwiseConv2D(3, padding="same", use_bias=False)(y)))
    return L.Add()([x, L.BatchNormalization()(L.Conv2D(8, 1, use_bias=False)(y))])


def squeeze_excite(x: Any) -> Any:
    s = L.GlobalAveragePooling2D(keepdims=True)(x)
    s = L.Conv2D(2, 1, activation="relu")(s)
    return L.Multiply()([x, L.Conv2D(8, 1, activation="sigmoid")(s)])


def hard_swish(x: Any) -> Any:
    return L.Conv2D(4, 3)(x) * ow.nn.relu6(L.Conv2D(4, 3)(x) + 3.0) / 6.0


def transformer(x: Any) -> Any:
    y = L.LayerNormalization()(x + L.MultiHeadAttention(2, 8)(x, x))
    return L.LayerNormalization()(y + L.Dense(16)(L.Dense(32, activation="relu")(y)))


#    name                  input   network   operators of the official converter
NETWORKS: dict[str, tuple[tuple[int, ...], Callable[[], Callable[[Any], Any]], int]] = {
    "conv_bn_relu": (IMAGE, lambda: block(L.Conv2D(4, 3), L.BatchNormalization(), L.ReLU()), 1),
    "conv_bn_relu6": (IMAGE, lambda: block(L.Conv2D(4, 3), L.BatchNormalization(), L.ReLU(6.0)), 1),
    "depthwise_bn_relu6": (IMAGE, lambda: block(L.DepthwiseConv2D(3), L.BatchNormalization(), L.ReLU(6.0)), 1),
    "separable_bn_relu": (IMAGE, lambda: block(L.SeparableConv2D(4, 3), L.BatchNormalization(), L.ReLU()), 2),
    "transpose_conv_bn": (IMAGE, lambda: block(L.Conv2DTranspose(4, 3, 2), L.BatchNormalization(), L.ReLU()), 1),
    "bn_conv": (IMAGE, lambda: block(L.BatchNormalization(), L.Conv2D(4, 3)), 2),
    "dense_stack": (
        (8,),
        lambda: block(L.Dense(16, activation="relu"), L.Dense(16, activation="relu"), L.Dense(3), L.Softmax()),
        4,
    ),
    "dense_bn_relu": ((8,), lambda: block(L.Dense(16), L.BatchNormalization(), L.ReLU()), 1),
    "bn_dense": ((8,), lambda: block(L.BatchNormalization(), L.Dense(16)), 1),
    "dense_on_sequences": ((5, 8), lambda: block(L.Dense(16, activation="relu"), L.Dense(4)), 2),
    "pad_conv_stride_2": (IMAGE, lambda: block(L.ZeroPadding2D(((0, 1), (0, 1))), L.Conv2D(4, 3, 2), L.ReLU()), 1),
    "global_pool_head": (IMAGE, lambda: block(L.GlobalAveragePooling2D(), L.Dense(4), L.Softmax()), 3),
    "flatten_head": (IMAGE, lambda: block(L.MaxPooling2D(), L.Flatten(), L.Dense(4)), 3),
    "upsampling": (IMAGE, lambda: block(L.UpSampling2D(2), L.Conv2D(4, 3, padding="same")), 6),
    "upsampling_bilinear": (IMAGE, lambda: block(L.UpSampling2D(2, interpolation="bilinear")), 1),
    "prelu": (IMAGE, lambda: block(L.Conv2D(4, 3), L.PReLU(shared_axes=[1, 2])), 2),
    "leaky_relu": (IMAGE, lambda: block(L.Conv2D(4, 3), L.LeakyReLU()), 2),
    "conv1d_bn_relu": ((20, 8), lambda: block(L.Conv1D(4, 3), L.BatchNormalization(), L.ReLU()), 3),
    "conv_dilated": (IMAGE, lambda: block(L.Conv2D(4, 3, dilation_rate=2, padding="same", activation="relu")), 1),
    "layer_norm": ((5, 16), lambda: block(L.LayerNormalization()), 10),
    "attention": ((5, 16), lambda: lambda x: L.MultiHeadAttention(2, 8)(x, x), 16),
    "transformer": ((5, 16), lambda: transformer, 40),
    "gelu_mlp": ((5, 16), lambda: block(L.Dense(32, activation="gelu"), L.Dense(16)), 3),
    "inverted_residual": (IMAGE, lambda: residual, 4),
    "squeeze_excite": (IMAGE, lambda: squeeze_excite, 5),
    "hard_swish": (IMAGE, lambda: hard_swish, 4),
    "embedding_mean": ((6,), lambda: block(L.Embedding(10, 4), L.GlobalAveragePooling1D(), L.Dense(2)), 6),
    "unit_norm": ((8,), lambda: block(L.UnitNormalization()), 5),
    "softmax_axis": ((4, 5), lambda: block(L.Softmax(axis=1)), 3),
    "group_norm": (IMAGE, lambda: block(L.GroupNormalization(2)), 13),
}


def example(name: str) -> np.ndarray:
    shape = (1, *NETWORKS[name][0])
    return ints(*shape, low=0, high=10) if name.startswith("embedding") else f32(*shape)


def model_of(name: str) -> Any:
    """The network with weights other than those it begins with."""
    x = example(name)
    result = NETWORKS[name][1]()
    inputs = ow.keras.Input(x.shape[1:], batch_size=1, dtype=x.dtype.name)
    model = ow.keras.Model(inputs, result(inputs))
    rng = np.random.default_rng(5)
    for variable in model.variables:
        scale = (
            rng.uniform(0.5, 1.5, variable.shape)
            if "variance" in variable.name or "gamma" in variable.name
            else (rng.uniform(-0.5, 0.5, variable.shape))
        )
        variable.assign(scale.astype(np.float32))
    return model


@pytest.mark.parametrize("name", NETWORKS)
def test_no_more_operators_than_the_official_converter(name: str) -> None:
    model, x = model_of(name), example(name)
    content = ow.lite.TFLiteConverter.from_keras_model(model).convert()
    expected = [np.asarray(model(x))]
    assert_same(official(content, [x]), expected, 1e-5)
    assert_same(ours(content, [x]), expected, 1e-5)
    actual = op_names(content)
    assert len(actual) <= NETWORKS[name][2], actual
