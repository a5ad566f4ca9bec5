"""Layers with int8 kernels: values by NumPy, gradients, files and policies."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

import opwright as ow
from opwright import keras
from opwright.core.errors import UnimplementedError

RANDOM = np.random.default_rng(0)
KERNEL = RANDOM.normal(size=(6, 4)).astype(np.float32)
X = RANDOM.normal(size=(3, 5, 6)).astype(np.float32)


def rounded(x, axis):
    """Return what an array is after quantization by the greatest magnitude along axes, and its integers and scale."""
    scale = 127 / (np.abs(x).max(axis, keepdims=True) + 1e-7)
    return np.round(x * scale) / scale


def layers_and_expected():
    """Yield layers, and their outputs by NumPy in float64."""
    x, w = X.astype(np.float64), KERNEL.astype(np.float64)
    dense = keras.layers.Dense(4, use_bias=False)
    dense.build((None, 5, 6))
    dense.set_weights([KERNEL])
    yield dense, rounded(x, -1) @ rounded(w, 0)
    heads = KERNEL.reshape(6, 2, 2)
    einsum = keras.layers.EinsumDense("abc,cde->abde", output_shape=(None, 2, 2))
    einsum.build((None, 5, 6))
    einsum.set_weights([heads])
    yield einsum, np.einsum("abc,cde->abde", rounded(x, -1), rounded(heads.astype(np.float64), 0))
    turned = RANDOM.normal(size=(4, 6, 5)).astype(np.float32)
    einsum = keras.layers.EinsumDense("abc,dcb->ad", output_shape=4)
    einsum.build((None, 5, 6))
    einsum.set_weights([turned])
    yield einsum, np.einsum("abc,dcb->ad", rounded(x, (1, 2)), rounded(turned.astype(np.float64), (1, 2)))


def test_products_of_integers():
    for layer, expected in layers_and_expected():
        layer.quantize("int8")
        assert layer._kernel.dtype == "int8"
        assert layer.dtype_policy.name == "int8_from_float32"
        assert not layer.trainable_weights
        np.testing.assert_allclose(layer(X).numpy(), expected, rtol=1e-5, atol=1e-5)
        traced = ow.function(layer, jit_compile=True)(ow.constant(X))
        np.testing.assert_allclose(traced.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_gradients_use_the_float_kernel():
    dense, _ = next(layers_and_expected())
    dense.quantize("int8")
    x = ow.constant(X)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = ow.reduce_sum(dense(x))
    expected = np.broadcast_to(rounded(KERNEL.astype(np.float64), 0).sum(1), X.shape)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected, rtol=1e-5)


def test_rows_of_integers():
    table = keras.layers.Embedding(6, 4)
    table.build()
    table.set_weights([KERNEL])
    table.quantize("int8")
    np.testing.assert_allclose(table(np.array([[1, 5]])).numpy()[0], rounded(KERNEL, 1)[[1, 5]], rtol=1e-5)


def test_models_and_their_files(tmp_path):
    pytest.importorskip("h5py")
    model = keras.Sequential(
        [keras.Input((5,), dtype="int32"), keras.layers.Embedding(7, 4), keras.layers.Flatten(), keras.layers.Dense(3)]
    )
    x = np.arange(10).reshape(2, 5) % 7
    before = model.predict(x, verbose=0)
    model.quantize("int8", filters="dense")
    assert model.layers[0].quantization_mode is None
    model.quantize("int8", filters=lambda layer: isinstance(layer, keras.layers.Embedding))
    after = model.predict(x, verbose=0)
    assert 0 < np.abs(after - before).max() < 0.02
    model.save(tmp_path / "m.keras")
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "m.keras").predict(x, verbose=0), after)
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        config = json.loads(archive.read("config.json"))
    arguments = {"mode": "int8", "source_name": "float32"}
    policy = {"module": "keras", "class_name": "QuantizedDTypePolicy", "config": arguments, "registered_name": None}
    assert config["config"]["layers"][3]["config"]["dtype"] == policy
    assert keras.dtype_policies.get(policy) == model.layers[0].dtype_policy
    assert keras.dtype_policies.serialize(model.layers[0].dtype_policy)["config"] == arguments


def test_layers_inside_of_others(tmp_path):
    """Attention's projections are int8 in its own file; weights of the other kind are refused."""
    pytest.importorskip("h5py")

    def make():
        i = keras.Input((5, 8))
        return keras.Model(i, keras.layers.MultiHeadAttention(2, 4)(i, i))

    model, other = make(), make()
    model.save_weights(tmp_path / "float.weights.h5")
    model.quantize("int8")
    model.save(tmp_path / "m.keras")
    x = RANDOM.normal(size=(2, 5, 8)).astype(np.float32)
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "m.keras")(x).numpy(), model(x).numpy())
    model.save_weights(tmp_path / "int8.weights.h5")
    for one, name in ((other, "int8"), (model, "float")):
        with pytest.raises(ValueError, match=r"is quantized|received 0|no dataset"):
            one.load_weights(tmp_path / f"{name}.weights.h5")
    other.quantize("int8")
    other.load_weights(tmp_path / "int8.weights.h5")
    np.testing.assert_array_equal(other(x).numpy(), model(x).numpy())
    with pytest.raises(UnimplementedError, match="quantized"):
        model.save(tmp_path / "k.keras", keras_format=True)


def test_modes_and_classes_that_are_refused():
    dense, _ = next(layers_and_expected())
    for mode in ("int4", "float8", "int7"):
        with pytest.raises(ValueError, match="Invalid quantization mode"):
            dense.quantize(mode)
    dense.quantize("int8")
    with pytest.raises(ValueError, match="already quantized"):
        dense.quantize("int8")

    with pytest.raises(ValueError, match="int8 kernels"):
        dense.enable_lora(2)
    with pytest.raises(ValueError, match="isn't yet built"):
        keras.layers.Dense(2).quantize("int8")

    tied = keras.layers.ReversibleEmbedding(4, 2)
    tied.build()
    for make in (tied.quantize, keras.layers.ReversibleEmbedding(4, 2, dtype="int8_from_float32").build):
        with pytest.raises(NotImplementedError, match="does not have a `quantize"):
            make()

    class Own(keras.layers.Dense):
        pass

    model = keras.Sequential([keras.Input((6,)), Own(2)])
    with pytest.warns(UserWarning, match="does not have a `quantize"):
        model.quantize("int8")
    with pytest.raises(ValueError, match="Invalid quantization mode"):
        keras.dtype_policies.QuantizedDTypePolicy("int8", "float16")
