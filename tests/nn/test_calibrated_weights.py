"""GPTQ and AWQ: codes of Keras, errors less than of rounding, files, and what is refused."""

import json

import calibrated_weights as cases
import numpy as np
import pytest

from opwright import keras

RESULTS = json.loads(cases.RESULTS.read_text())
TOKENS = np.arange(18).reshape(2, 9)


def quantized(name):
    model, before, blocks = cases.transformer(keras)
    config = cases.config_of(keras, name, before, blocks)
    with pytest.warns(UserWarning, match="does not have a `quantize`"):
        model.quantize(config.mode, config=config)
    return model, blocks


@pytest.mark.parametrize("name", list(cases.CONFIGS))
def test_codes_equal_keras(name, tmp_path):
    model, blocks = quantized(name)
    for number, (block, recorded) in enumerate(zip(blocks, RESULTS[name]["codes"])):
        for kernel, codes in cases.codes(block, number).items():
            ours, theirs = (np.frombuffer(bytes.fromhex(v), np.uint8) for v in (codes, recorded[kernel]))
            assert (ours == theirs).mean() > 0.99, (kernel, number)  # rounding of ties
    outputs = model(TOKENS).numpy()
    np.testing.assert_allclose(outputs.ravel()[::6], RESULTS[name]["outputs"], rtol=0.02, atol=0.02)
    assert model.get_layer("head").quantization_mode is None  # not in a block: its weights stay
    pytest.importorskip("h5py")
    model.save(tmp_path / "model.keras", keras_format=True)
    back = keras.models.load_model(tmp_path / "model.keras")
    assert back.layers[2].get_layer("up0").dtype_policy.name == blocks[0].get_layer("up0").dtype_policy.name
    np.testing.assert_array_equal(back(TOKENS).numpy(), outputs)


def dense(kernel, config, x):
    """Return the layer of a kernel that a configuration quantizes, and data that it is calibrated by."""
    layer = keras.layers.Dense(kernel.shape[1])
    layer.build((None, len(kernel)))
    layer.set_weights([kernel, np.zeros(kernel.shape[1])])
    layer.quantize(config=config)
    assert not layer.is_gptq_calibrated
    assert not layer.is_awq_calibrated
    layer.begin_calibration()
    np.testing.assert_allclose(layer(x).numpy(), x @ kernel, rtol=1e-4, atol=1e-4)  # by the kernel until then
    layer.end_calibration()
    return layer


@pytest.mark.parametrize(("config", "least"), [(keras.quantizers.GPTQConfig, 0.5), (keras.quantizers.AWQConfig, 0.6)])
def test_outputs_change_less_than_by_rounding(config, least):
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=(160, 8)).astype(np.float32)  # of more inputs than a block of GPTQ
    x = (rng.normal(size=(400, 6)) @ rng.normal(size=(6, 160)) * np.geomspace(0.01, 10, 160)).astype(np.float32)
    errors = []
    for data in np.eye(160, dtype=np.float32), x:
        layer = dense(kernel, config([], None, group_size=-1), data)
        assert layer.is_gptq_calibrated or layer.is_awq_calibrated
        errors.append(np.square(layer(x).numpy() - x @ kernel).mean())
    assert errors[1] < least * errors[0]


def test_weights_of_one_sign():
    kernel = np.random.default_rng(1).uniform(1, 2, (16, 4)).astype(np.float32)
    for symmetric, steps in (False, 15), (True, 7):
        config = keras.quantizers.GPTQConfig([], None, group_size=4, symmetric=symmetric)
        layer = dense(kernel, config, np.eye(16, dtype=np.float32))
        assert np.abs(layer(np.eye(16, dtype=np.float32)).numpy() - kernel).max() <= 2 / steps


def test_invalid_arguments(tmp_path):
    model, before, blocks = cases.transformer(keras)
    with pytest.raises(ValueError, match="must pass `GPTQConfig"):
        model.quantize("gptq")
    with pytest.raises(ValueError, match="quantization structure must be provided"):
        model.quantize(config=keras.quantizers.AWQConfig(["a"], cases.Letters()))
    config = cases.config_of(keras, "gptq", before, blocks)
    for dataset, error, says in (
        ("text", TypeError, "iterable"),
        ([], ValueError, "empty"),
        (None, ValueError, "requires"),
    ):
        config.dataset = dataset
        with pytest.raises(error, match=says):
            model.quantize(config=config)
    config.quantization_layer_structure = {"sequential_blocks": []}
    with pytest.raises(ValueError, match="No sequential blocks"):
        model.quantize(config=config)
    for options, says in (
        ({"weight_bits": 5}, "weight_bits"),
        ({"num_samples": 0}, "num_samples"),
        ({"group_size": 0}, "group_size"),
        ({"hessian_damping": 2}, "hessian_damping"),
    ):
        with pytest.raises(ValueError, match=says):
            keras.quantizers.GPTQConfig([], None, **options)
    for policy, says in (
        ("gptq/4", "format"),
        ("gptq/a/1", "integers"),
        ("gptq/5/1", "weight_bits"),
        ("awq/4/0", "group"),
    ):
        with pytest.raises(ValueError, match=says):
            keras.dtype_policies.get(f"{policy}_from_float32")
    layer = blocks[0].get_layer("up0")
    with pytest.raises(ValueError, match="Implicitly enabling GPTQ"):
        layer.dtype_policy = "gptq/4/12_from_float32"
    layer.quantize(config=keras.quantizers.AWQConfig([], None))
    with pytest.raises(ValueError, match="has no weights of mode 'awq' yet"):
        model.save(tmp_path / "model.keras")
    with pytest.raises(NotImplementedError, match="lora"):
        layer.enable_lora(2)
    other = keras.layers.EinsumDense("abc,dc->abd", (None, 3))
    other.build((None, 2, 4))
    with pytest.raises(NotImplementedError, match="summed axes are its first"):
        other.quantize(config=config)
