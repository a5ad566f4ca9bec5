"""Details of layers as Keras 3.15 has them: configurations, paths, states of seeds, encodings of several axes.

Expected values are Keras's, of its TensorFlow backend, or NumPy's.
"""

from __future__ import annotations

import numpy as np
import pytest

from opwright import keras
from opwright.ops.ragged import RaggedTensor

layers = keras.layers


def test_paths_and_states_of_seeds():
    keras.utils.clear_session()
    stack = keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.Dropout(0.5)])
    expected = ["sequential/dense/kernel", "sequential/dense/bias", "seed_generator/seed_generator_state"]
    assert [v.path for v in stack.variables] == expected
    assert [v.path for v in stack.non_trainable_variables] == expected[2:]
    assert len(stack.weights) == 2
    nested = keras.Sequential([layers.Dense(3), keras.Sequential([layers.Dense(2)])])
    nested.build((None, 4))
    inner = "sequential_2/sequential_1/dense_2"
    assert [v.path for v in nested.weights][2:] == [f"{inner}/kernel", f"{inner}/bias"]
    both = layers.Bidirectional(layers.LSTM(2))
    both.build((None, 2, 2))
    assert both.weights[0].path == "bidirectional/forward_lstm/lstm_cell/kernel"

    class Own(keras.Model):
        def __init__(self):
            super().__init__(name="own")
            self.inner = layers.Dense(2, name="inner")

        def call(self, x):
            return self.inner(x)

    own = Own()
    own(np.ones((1, 3), np.float32))
    own.inner.enable_lora(2)
    assert own.inner.lora_kernel_a.path == "own/inner/lora_kernel_a"
    assert "lora_kernel_a" in own.get_state_tree()["trainable_variables"]["own"]["inner"]


def test_policies_in_configurations():
    config = layers.Dense(2, dtype="mixed_bfloat16").get_config()
    assert config["dtype"]["config"] == {"name": "mixed_bfloat16"}
    assert "activity_regularizer" not in config
    assert layers.Dense.from_config(config).compute_dtype == "bfloat16"

    class Own(layers.Dense):
        def __init__(self, *args, dtype, **kwargs):
            assert dtype == "bfloat16"  # a name, as in Keras
            super().__init__(*args, dtype=dtype, **kwargs)

    assert Own.from_config(Own(2, dtype="bfloat16").get_config()).dtype == "bfloat16"
    policies = keras.dtype_policies.DTypePolicyMap(policy_map={"model/own": "float64"})
    inner = layers.Dense(2, name="own", dtype=policies)
    model = keras.Sequential([keras.Input((3,)), inner], name="model")
    assert model.weights[0].dtype == "float64"
    inner.dtype_policy = "mixed_float16"
    assert policies["model/own"].name == "mixed_float16"
    with pytest.raises(TypeError, match="Error when deserializing"):
        layers.Embedding.from_config({"input_dim": 3.5, "output_dim": 2})
    with pytest.raises(ValueError, match="Lambda"):
        layers.Lambda.from_config(layers.Lambda(lambda x: x).get_config())


def test_encodings_are_of_the_axis_after_the_batch():
    x = np.random.default_rng(0).uniform(-1, 6, (2, 3, 4)).astype(np.float32)
    one_hot = np.eye(5)[np.digitize(x, [0.0, 1.0, 2.0, 5.0])]
    for mode, expected in ("count", one_hot.sum(1)), ("multi_hot", one_hot.max(1)), ("one_hot", one_hot):
        layer = layers.Discretization([0.0, 1.0, 2.0, 5.0], output_mode=mode)
        np.testing.assert_array_equal(layer(x), expected)
        assert layer(keras.Input((3, 4))).shape == (None, *expected.shape[1:])
        encoding = layers.CategoryEncoding(5, output_mode=mode)
        np.testing.assert_array_equal(encoding(np.digitize(x, [0.0, 1.0, 2.0, 5.0])), expected)
    shares = np.arange(24.0).reshape(2, 3, 4)
    counted = layers.CategoryEncoding(5, output_mode="count")(
        np.digitize(x, [0.0, 1.0, 2.0, 5.0]), count_weights=shares
    )
    np.testing.assert_allclose(counted, (one_hot * shares[..., None]).sum(1))


def test_outputs_of_different_lengths_are_ragged():
    model = keras.Sequential([keras.Input((None, 1)), layers.ZeroPadding1D(1)])
    batches = [np.arange(4.0).reshape(2, 2, 1), np.arange(3.0).reshape(1, 3, 1)]
    result = model.predict(iter(batches), verbose=0)
    assert isinstance(result, RaggedTensor)
    assert [np.ravel(row).tolist() for row in result.to_list()] == [[0, 0, 1, 0], [0, 2, 3, 0], [0, 0, 1, 2, 0]]


def test_integers_and_masks_are_averaged():
    mask = layers.Masking()
    a, b = (mask(np.array(v, np.int32)) for v in ([[[0, 0], [1, 2], [3, 4]]], [[[0, 0], [0, 0], [3, 4]]]))
    np.testing.assert_array_equal(layers.Average()([a, b]), [[[0, 0], [0.5, 1], [3, 4]]])


def test_text_is_encoded_before_there_is_a_vocabulary():
    model = keras.Sequential(
        [keras.Input((), dtype="string"), layers.TextVectorization(max_tokens=10, output_mode="tf_idf")]
    )
    assert model.output.shape == (None, None)
    words = np.array(["foo bar", "bar baz", "baz bada boom"])
    model.layers[0].adapt(words)
    rows = model(words).numpy()
    documents = {"bar": 2, "baz": 2, "foo": 1, "boom": 1, "bada": 1}
    for word, count in documents.items():
        column = model.layers[0].get_vocabulary().index(word)
        present = [word in text.split() for text in words]
        np.testing.assert_allclose(rows[:, column], np.log(1 + 3 / (1 + count)) * np.array(present), rtol=1e-6)


def test_pictures_are_scaled_in_place():
    x = np.random.default_rng(1).uniform(0, 255, (2, 3, 3, 3))
    before = x.copy()
    np.testing.assert_allclose(keras.applications.imagenet_utils.preprocess_input(x, mode="tf"), before / 127.5 - 1)
    np.testing.assert_allclose(x, before / 127.5 - 1)
    x = before.copy()
    swapped = keras.applications.imagenet_utils.preprocess_input(x, mode="caffe")
    np.testing.assert_allclose(swapped, before[..., ::-1] - [103.939, 116.779, 123.68])
    np.testing.assert_allclose(x, swapped[..., ::-1])


def test_settings_as_attributes():
    config = keras.utils.Config(rate=0.1)
    config.units = 3
    config["depth"] = 2
    assert (config.units, config["rate"], len(config), "depth" in config) == (3, 0.1, 3, True)
    assert config.as_dict() == {"rate": 0.1, "units": 3, "depth": 2}
    assert config.to_json() == '{"rate": 0.1, "units": 3, "depth": 2}'
    config.freeze()
    for change in lambda: setattr(config, "units", 4), lambda: config.pop("units"), lambda: config.update(units=1):
        with pytest.raises(ValueError, match="frozen"):
            change()
    config.unfreeze()
    assert config.pop("units") == 3
    with pytest.raises(AttributeError, match="Did you mean 'rate'"):
        config.rates  # noqa: B018


def test_products_with_jacobians():
    x, t = np.array([0.5, 1.5]), np.array([1.0, -2.0])
    y, product, aux = keras.ops.linalg.jvp(lambda a, b: (keras.ops.sin(a) * b, 7), (x, x), (t, 3 * t), has_aux=True)
    np.testing.assert_allclose(y, np.sin(x) * x)
    np.testing.assert_allclose(product, np.cos(x) * x * t + np.sin(x) * 3 * t)
    assert aux == 7
    assert keras.backend.result_type("int32", "bfloat16") == "bfloat16"
    assert keras.backend.is_keras_tensor(keras.Input((2,)))
