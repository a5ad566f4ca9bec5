"""Layers with kernels of int8, int4 and float8: values by NumPy, gradients, files of Keras, policies."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import ml_dtypes
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
    four = make()
    four.quantize("int4")
    four.save(tmp_path / "four.keras")
    x = RANDOM.normal(size=(2, 5, 8)).astype(np.float32)
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "m.keras")(x).numpy(), model(x).numpy())
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "four.keras")(x).numpy(), four(x).numpy())
    model.save_weights(tmp_path / "int8.weights.h5")
    for one, name in ((other, "int8"), (model, "float")):
        with pytest.raises(ValueError, match=r"is quantized|received 0|no dataset"):
            one.load_weights(tmp_path / f"{name}.weights.h5")
    other.quantize("int8")
    other.load_weights(tmp_path / "int8.weights.h5")
    np.testing.assert_array_equal(other(x).numpy(), model(x).numpy())
    with pytest.raises(UnimplementedError, match="quantized"):
        model.save(tmp_path / "k.keras", keras_format=True)


def blocks_of(values, size):
    """Return a matrix after quantization to 4 bits, with scale and zero point for each block of rows, in float64."""
    result = np.zeros(values.shape)
    for first in range(0, len(values), size):
        block = values[first : first + size]
        padded = np.concatenate([block, np.zeros((size - len(block), block.shape[1]))])
        scale = (padded.max(0) - padded.min(0) + 1e-7) / 15
        zero = np.clip(np.round(-padded.min(0) / scale) - 8, -8, 7)
        result[first : first + size] = (np.clip(np.round(block / scale) + zero, -8, 7) - zero) * scale
    return result


def channels_of(values, axis):
    """Return a matrix after quantization to 4 bits, with a scale for each channel."""
    scale = 7 / (np.abs(values).max(axis, keepdims=True) + 1e-7)
    return np.clip(np.round(values * scale), -8, 7) / scale


@pytest.mark.parametrize("size", [None, 4])
def test_four_bits(size):
    config, w = keras.quantizers.Int4QuantizationConfig(block_size=size), KERNEL.astype(np.float64)
    of_product = channels_of(w, 0) if size is None else blocks_of(w, size)
    of_rows = channels_of(w, 1) if size is None else blocks_of(w.T, size).T
    dense, _ = next(layers_and_expected())
    dense.quantize(config=config)
    assert dense._kernel.shape == (6, 2)
    assert dense.dtype_policy.name == f"int4/{size or -1}_from_float32"
    np.testing.assert_allclose(dense(X).numpy(), X @ of_product, rtol=1e-4, atol=1e-5)
    traced = ow.function(dense, jit_compile=True)(ow.constant(X))
    np.testing.assert_allclose(traced.numpy(), X @ of_product, rtol=1e-4, atol=1e-5)
    x = ow.constant(X)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = ow.reduce_sum(dense(x))
    expected = np.broadcast_to(of_product.sum(1), X.shape)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected, rtol=1e-4, atol=1e-5)
    einsum = keras.layers.EinsumDense("abc,cde->abde", output_shape=(None, 2, 2))
    einsum.build((None, 5, 6))
    einsum.set_weights([KERNEL.reshape(6, 2, 2)])
    einsum.quantize(config=config)
    np.testing.assert_allclose(einsum(X).numpy().reshape(3, 5, 4), X @ of_product, rtol=1e-4, atol=1e-5)
    for tied in True, False:
        table = keras.layers.ReversibleEmbedding(6, 4, tie_weights=tied)
        table.build()
        table.set_weights([KERNEL] if tied else [KERNEL, KERNEL.T])
        table.quantize(config=config)
        np.testing.assert_allclose(table(np.array([[1, 5]])).numpy()[0], of_rows[[1, 5]], rtol=1e-4, atol=1e-5)
        x = X[..., :4]
        np.testing.assert_allclose(table(x, reverse=True).numpy(), x @ of_rows.T, rtol=1e-4, atol=1e-4)


def test_tables_are_read_in_both_directions():
    table = keras.layers.ReversibleEmbedding(6, 4)
    table.build()
    table.set_weights([KERNEL])
    table.quantize("int8")
    x, w = X[..., :4].astype(np.float64), KERNEL.astype(np.float64)
    np.testing.assert_allclose(table(x, reverse=True), rounded(x, -1) @ rounded(w, 1).T, rtol=1e-4, atol=1e-5)
    with pytest.raises(NotImplementedError, match="Invalid quantization mode"):
        keras.layers.ReversibleEmbedding(6, 4, dtype="float8_from_float32").build()


def test_low_rank_products_of_quantized_layers():
    for mode in "int8", "int4":
        dense, _ = next(layers_and_expected())
        dense.quantize(mode)
        before = dense(X).numpy()
        dense.enable_lora(2)
        np.testing.assert_allclose(dense(X).numpy(), before, rtol=1e-6)
        dense.lora_kernel_b.assign(np.ones((2, 4)))
        product = np.asarray(dense.lora_kernel_a) @ np.ones((2, 4))
        np.testing.assert_allclose(dense(X).numpy(), before + X @ product, rtol=1e-4, atol=1e-4)
        assert {v.name for v in dense.trainable_weights} >= {dense.lora_kernel_a.name, dense.lora_kernel_b.name}


def test_floats_of_8_bits_and_their_scales():
    """Operands are those of ml_dtypes; optimizers assign scales that follow the greatest magnitudes of past steps."""
    dense = keras.layers.Dense(4, use_bias=False)
    dense.build((None, 6))
    dense.set_weights([KERNEL])
    dense.quantize("float8")
    optimizer = keras.optimizers.SGD(0.0)
    kinds = {
        "inputs": ml_dtypes.float8_e4m3fn,
        "kernel": ml_dtypes.float8_e4m3fn,
        "outputs_grad": ml_dtypes.float8_e5m2,
    }
    limits = {part: float(ml_dtypes.finfo(kind).max) for part, kind in kinds.items()}
    scale, greatest = dict.fromkeys(kinds, 1.0), dict.fromkeys(kinds, 0.0)

    def as_float8(x, part):
        limited = np.clip(x / scale[part], -limits[part], limits[part])
        return limited.astype(kinds[part]).astype(np.float64) * scale[part]

    for step in range(3):
        x = (RANDOM.normal(size=(5, 6)) * 10.0**step).astype(np.float32)
        upstream = RANDOM.normal(size=(5, 4)).astype(np.float32)
        with ow.GradientTape() as tape:
            y = dense(x, training=True)
            loss = ow.reduce_sum(y * upstream)
        grads = tape.gradient(loss, dense.trainable_variables)
        np.testing.assert_allclose(
            y.numpy(), as_float8(x, "inputs") @ as_float8(KERNEL, "kernel"), rtol=1e-4, atol=1e-4
        )
        expected = as_float8(x, "inputs").T @ as_float8(upstream, "outputs_grad")
        np.testing.assert_allclose(grads[0].numpy(), expected, rtol=1e-4, atol=1e-4)
        optimizer.apply(grads, dense.trainable_variables)
        for part, value in ("inputs", x), ("kernel", KERNEL), ("outputs_grad", upstream):
            scale[part] = greatest[part] / limits[part] if greatest[part] else scale[part]
            greatest[part] = max(greatest[part], np.abs(value).max())
            np.testing.assert_allclose(getattr(dense, f"{part}_scale").numpy(), scale[part], rtol=1e-5)
            assert getattr(dense, f"{part}_amax_history").numpy()[0] == np.abs(value).max()
    assert len(dense.trainable_variables) == 7


def test_files_of_keras_with_quantized_layers(tmp_path):
    """Outputs equal Keras's, and files written here have its weights, in its places."""
    h5py = pytest.importorskip("h5py")

    def arrays(path):
        with zipfile.ZipFile(path) as archive, archive.open("model.weights.h5") as file, h5py.File(file) as root:
            members = {}
            root.visititems(
                lambda name, item: members.update({name: np.asarray(item)} if hasattr(item, "dtype") else {})
            )
            return members

    archive = zipfile.ZipFile(Path(__file__).parents[1] / "data" / "keras" / "quantized.zip")
    x = np.arange(10).reshape(2, 5) % 11
    for name in "int8", "int4", "channels", "float8":
        path, again = tmp_path / f"{name}.keras", tmp_path / f"{name}_again.keras"
        path.write_bytes(archive.read(f"{name}.keras"))
        model = keras.models.load_model(path)
        expected = np.load(io.BytesIO(archive.read(f"{name}.npy")))
        np.testing.assert_allclose(model(x).numpy(), expected, rtol=1e-5, atol=1e-7, err_msg=name)
        model.save(again)
        theirs, ours = arrays(path), arrays(again)
        assert theirs.keys() == ours.keys()
        for key, value in theirs.items():
            assert value.dtype == ours[key].dtype
            np.testing.assert_allclose(value, ours[key], rtol=1e-5, atol=1e-6, err_msg=f"{name} {key}")
        np.testing.assert_allclose(keras.models.load_model(again)(x).numpy(), expected, rtol=1e-5, atol=1e-7)


def test_configurations_of_quantizers():
    q = keras.quantizers
    config = q.Int8QuantizationConfig(q.AbsMaxQuantizer(axis=0, value_range=(-64, 64)), None)
    dense, _ = next(layers_and_expected())
    other = keras.layers.Dense(4)
    other.build((None, 6))
    dense.quantize(config=config)
    scale = 64 / (np.abs(KERNEL.astype(np.float64)).max(0, keepdims=True) + 1e-7)
    np.testing.assert_allclose(dense(X).numpy(), X @ (np.round(KERNEL * scale) / scale), rtol=1e-4, atol=1e-5)
    again = keras.layers.Dense.from_config(json.loads(json.dumps(dense.get_config())))
    assert again.quantization_config.activation_quantizer is None
    assert again.quantization_config.weight_quantizer.value_range == (-64, 64)
    for arguments, message in (
        ({"mode": "int8", "config": q.Int4QuantizationConfig()}, "Contradictory"),
        ({"config": 3}, "must be an instance"),
        ({}, "either `mode` or `config`"),
        ({"mode": "gptq"}, "must pass `GPTQConfig"),
    ):
        with pytest.raises(ValueError, match=message):
            other.quantize(**arguments)
    for make, message in (
        (lambda: q.Int4QuantizationConfig(block_size=0), "block_size must be"),
        (lambda: q.Int4QuantizationConfig(q.AbsMaxQuantizer(0, (-8, 7))), "does not support custom"),
        (lambda: q.Int4QuantizationConfig(q.AbsMaxQuantizer(0), block_size=-1), r"value_range=\(-8, 7\)"),
        (lambda: q.AbsMaxQuantizer(value_range=(-300, 300)), "interval"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    numbers = np.resize(np.arange(-8, 8, dtype=np.int8), (3, 5))
    packed, shape, size = q.pack_int4(numbers, axis=1)
    assert (shape, size) == ((3, 3), 5)
    np.testing.assert_array_equal(q.unpack_int4(packed, 5, 1), numbers)


def test_modes_and_classes_that_are_refused():
    dense, _ = next(layers_and_expected())
    with pytest.raises(ValueError, match="Invalid quantization mode"):
        dense.quantize("int7")
    dense.quantize("int8")
    with pytest.raises(ValueError, match="already quantized"):
        dense.quantize("int8")

    with pytest.raises(ValueError, match="isn't yet built"):
        keras.layers.Dense(2).quantize("int8")

    class Own(keras.layers.Dense):
        pass

    model = keras.Sequential([keras.Input((6,)), Own(2)])
    with pytest.warns(UserWarning, match="does not have a `quantize"):
        model.quantize("int8")
    with pytest.raises(ValueError, match="work well"):
        keras.dtype_policies.QuantizedDTypePolicy("int8", "float16")
