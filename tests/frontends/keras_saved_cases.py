"""Models that are saved as files for Keras 3: a row for each layer that both libraries have, and each form of model.

Lives here: `CASES`, `filled`, `layout`. Not here: the checks (test_keras_archives.py), what Keras stores of them
(tests/data/keras/saved_layouts.json, written by tests/data/keras/make_layouts.py).
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np

import opwright as ow

K, L = ow.keras, ow.keras.layers
CASES: dict[str, tuple[Callable[[], Any], tuple[tuple[int, ...], ...], str]] = {}
"""By name: a function that makes the model, the shapes of its inputs, their dtype."""


def case(name: str, make: Callable[[], Any], *shapes: tuple[int, ...], dtype: str = "float32") -> None:
    assert name not in CASES, name
    CASES[name] = make, shapes, dtype


def stack(name: str, shape: tuple[int, ...], *layers: Callable[[], Any], dtype: str = "float32") -> None:
    case(name, lambda: K.Sequential([K.Input(shape, dtype=dtype), *(make() for make in layers)]), shape, dtype=dtype)


def graph(name: str, shape: tuple[int, ...], call: Callable[[Any], Any]) -> None:
    def make() -> Any:
        x = K.Input(shape)
        return K.Model(x, call(x))

    case(name, make, shape)


def of(name: str, *args: Any, **kwargs: Any) -> Callable[[], Any]:
    return lambda: getattr(L, name)(*args, **kwargs)


IMAGES = {1: (8, 3), 2: (8, 6, 3), 3: (6, 5, 4, 3)}
options = {
    "activation": "gelu",
    "kernel_regularizer": K.regularizers.L1L2(0.1, 0.2),
    "kernel_constraint": K.constraints.MaxNorm(2.0),
    "bias_initializer": K.initializers.Constant(0.3),
}
stack("Dense", (4,), of("Dense", 3, **options))
stack("EinsumDense", (3, 4), of("EinsumDense", "abc,cd->abd", (None, 5), bias_axes="d"))
stack("Embedding", (5,), of("Embedding", 10, 4), of("LSTM", 3), dtype="int32")
for name in ("ReLU", "LeakyReLU", "PReLU", "ELU", "Softmax", "Identity"):
    stack(name, (4,), of("Dense", 4), of(name))
stack("Activation", (4,), of("Activation", "tanh"), of("Activation", K.activations.selu))
for name in ("Dropout", "SpatialDropout1D", "GaussianNoise", "GaussianDropout", "AlphaDropout"):
    stack(name, (3, 4), of(name, 0.3), of("Dense", 2))
stack("SpatialDropout2D", IMAGES[2], of("SpatialDropout2D", 0.3))
stack("SpatialDropout3D", IMAGES[3], of("SpatialDropout3D", 0.3))
stack("Flatten", (3, 4), of("Flatten"), of("Dense", 2))
stack("Reshape", (12,), of("Reshape", (3, 4)), of("Permute", (2, 1)), of("Dense", 2))
stack("RepeatVector", (4,), of("RepeatVector", 3), of("GRU", 3, return_sequences=True))
for rank, shape in IMAGES.items():
    for name in (f"Conv{rank}D", f"Conv{rank}DTranspose"):
        stack(name, shape, of(name, 2, 2, padding="same"))
    for name in ("MaxPooling", "AveragePooling"):
        stack(f"{name}{rank}D", shape, of(f"{name}{rank}D", 2, padding="same"))
    for name in ("GlobalMaxPooling", "GlobalAveragePooling"):
        stack(f"{name}{rank}D", shape, of(f"{name}{rank}D", keepdims=True))
    for name in ("AdaptiveAveragePooling", "AdaptiveMaxPooling"):
        stack(f"{name}{rank}D", shape, of(f"{name}{rank}D", 2))
    for name, argument in (("UpSampling", 2), ("ZeroPadding", 1), ("Cropping", 1)):
        stack(f"{name}{rank}D", shape, of(f"{name}{rank}D", argument))
for name in ("SeparableConv1D", "SeparableConv2D"):
    stack(name, IMAGES[int(name[-2])], of(name, 5, 3))
for name in ("DepthwiseConv1D", "DepthwiseConv2D"):
    stack(name, IMAGES[int(name[-2])], of(name, 3, depth_multiplier=2))
for name in ("BatchNormalization", "LayerNormalization", "UnitNormalization", "RMSNormalization"):
    stack(name, (5, 4), of(name))
stack("GroupNormalization", (5, 4), of("GroupNormalization", 2))
stack("SpectralNormalization", (4,), lambda: L.SpectralNormalization(L.Dense(3)))
stack("Normalization", (4,), of("Normalization", mean=[1.0, 2.0, 3.0, 4.0], variance=[1.0, 4.0, 9.0, 2.0]))
stack("Rescaling", (4,), of("Rescaling", 0.5, 1.0))
stack("Resizing", (8, 8, 3), of("Resizing", 4, 5))
stack("CategoryEncoding", (3,), of("CategoryEncoding", 5, "multi_hot"), dtype="int32")
stack("Discretization", (3,), of("Discretization", bin_boundaries=[0.0, 1.0]))
for name in ("RandomFlip", "AutoContrast", "Solarization"):
    stack(name, (8, 8, 3), of(name))
stack("RandomRotation", (8, 8, 3), of("RandomRotation", 0.1))
stack("CenterCrop", (8, 8, 3), of("CenterCrop", 4, 4))
for name in ("LSTM", "GRU", "SimpleRNN"):
    stack(name, (5, 4), of(name, 3, return_sequences=True, dropout=0.1), of(name, 2))
stack("Bidirectional", (5, 4), lambda: L.Bidirectional(L.LSTM(3)))
stack("RNN", (5, 4), lambda: L.RNN([L.LSTMCell(3), L.GRUCell(2)]))
stack("StackedRNNCells", (5, 4), lambda: L.RNN(L.StackedRNNCells([L.SimpleRNNCell(3), L.GRUCell(2)])))
stack("TimeDistributed", (5, 4), lambda: L.TimeDistributed(L.Dense(3)))
for rank in IMAGES:
    stack(f"ConvLSTM{rank}D", (2, *[4] * rank, 2), of(f"ConvLSTM{rank}D", 2, 2))
for name in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate"):
    graph(name, (3,), lambda x, name=name: getattr(L, name)()([L.Dense(4)(x), L.Dense(4)(x)]))
graph("Dot", (3,), lambda x: L.Dot(axes=1)([L.Dense(4)(x), L.Dense(4)(x)]))
for name in ("Attention", "AdditiveAttention"):
    graph(name, (5, 4), lambda x, name=name: getattr(L, name)()([x, L.Dense(4)(x)]))
graph("MultiHeadAttention", (5, 4), lambda x: L.MultiHeadAttention(2, 3)(x, x))
graph("GroupedQueryAttention", (5, 4), lambda x: L.GroupedQueryAttention(3, 4, 2)(x, x))
stack("Masking", (5, 4), of("Masking", 0.0), of("LSTM", 3))
stack("ActivityRegularization", (4,), of("ActivityRegularization", 0.1), of("Dense", 2))
stack("policy", (4,), of("Dense", 3, dtype="float16"), of("Dense", 2))


# ---- forms of models -------------------------------------------------------------------------------------------------


def nested(x: Any) -> Any:
    inner = K.Input((4,))
    first = K.Model(inner, L.Dense(4)(inner))
    return K.Sequential([L.Dense(3, activation="gelu"), L.Dense(2)], name="last")(first(x))


def parallel(x: Any) -> Any:
    deep = L.Conv2D(4, 1)(L.Conv2D(3, 3, padding="same")(x))
    return L.Concatenate()([L.Conv2D(4, 1)(x), deep, L.Conv2D(4, 1)(L.MaxPooling2D(3, 1, "same")(x))])


def operators(x: Any) -> Any:
    halves = ow.reshape(x, [-1, 2, 2])
    return [
        ow.reduce_mean(L.Dense(3)(x) * 2.0 + 1.0, -1),
        ow.nn.relu(x[:, 1:3]),
        ow.concat([x, -x], -1) / 3.0,
        1.0 - ow.transpose(halves, [0, 2, 1]),
        ow.where(x > 0.0, x, ow.exp(x)),
        ow.cast(ow.argmax(x, -1), "int32"),
        ow.squeeze(ow.expand_dims(x, 1), 1) ** 2.0,
        x[:, 0],
        ow.stack([x, ow.maximum(x, 0.1)], 1),
        ow.reduce_max(x, axis=1, keepdims=True) @ ow.constant([[1.0, 2.0]]),
    ]


def shared() -> Any:
    a, b, dense = K.Input((4,)), K.Input((4,)), L.Dense(3)
    return K.Model([a, b], [L.Add()([dense(a), dense(b)]), L.Dense(2)(dense(a))])


@K.utils.register_keras_serializable("Rows")
class Scale(L.Layer):
    def __init__(self, factor: float = 2.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.factor = factor

    def build(self, input_shape: Any) -> None:
        self.w = self.add_weight(name="w", shape=(input_shape[-1],), initializer="ones")

    def call(self, x: Any) -> Any:
        return x * self.w * self.factor

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "factor": self.factor}


@K.utils.register_keras_serializable("Rows")
class Net(K.Model):
    def __init__(self, units: int = 3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.zed = L.Dense(units)
        self.blocks = [L.Dense(4, activation="relu"), L.Dense(4)]
        self.alpha, self.scale = L.Dense(2), Scale(3.0)

    def call(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.alpha(self.scale(self.zed(x)))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


def subclass() -> Any:
    model = Net(5)
    model.build((None, 4))
    return model


graph("nested", (4,), nested)
graph("parallel", (8, 8, 3), parallel)
graph("operators", (4,), operators)
case("shared", shared, (4,), (4,))
stack("registered", (4,), lambda: Scale(1.5), of("Dense", 2))
case("subclass", subclass, (4,))


# ---- values ----------------------------------------------------------------------------------------------------------


def filled(name: str) -> tuple[Any, Any]:
    """Return the model of a row with weights that depend on the row alone, and its inputs."""
    make, shapes, dtype = CASES[name]
    rng = np.random.default_rng(list(name.encode()))
    model = make()
    for weight in model.weights:
        array = np.asarray(weight.numpy())
        if array.dtype.kind == "f":
            weight.assign(rng.uniform(0.2, 0.8, array.shape).astype(array.dtype))
    draw = (lambda s: rng.integers(0, 5, s)) if dtype == "int32" else rng.standard_normal
    inputs = [np.asarray(draw((2, *shape)), dtype) for shape in shapes]
    return model, inputs[0] if len(inputs) == 1 else inputs


def layout(path: Any) -> dict[str, list[int]]:
    """Return the shapes of the weights in a .keras file by their places."""
    shapes: dict[str, list[int]] = {}
    with zipfile.ZipFile(path) as archive, h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as file:
        file.visititems(lambda n, x: shapes.update({n: list(x.shape)}) if isinstance(x, h5py.Dataset) else None)
    return shapes
