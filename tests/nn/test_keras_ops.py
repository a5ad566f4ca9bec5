"""`keras.ops` and the results of Keras 3.15 on JAX, recorded in data/keras_ops.npz.

Lives here: values and dtypes of every call, KerasTensors, gradients.  Not here: the calls (keras_ops_calls.py).
"""

from __future__ import annotations

import json
import pathlib

import keras_ops_calls
import numpy as np
import pytest

import opwright as ow
from each_row import each_row
from opwright.nn import keras_ops
from opwright.nn.keras_ops import promotion

with np.load(pathlib.Path(__file__).parents[1] / "data" / "keras_ops.npz") as _file:
    DATA, INDEX = _file["data"], json.loads(str(_file["index"]))
NAMES = {name: getattr(keras_ops, name) for name in keras_ops.__all__}
ARRAYS = {name: ow.constant(a) for name, a in keras_ops_calls.arrays().items()}
# Python's numbers are weak in all functions here; these of Keras make them float32 first.
OTHER_DTYPE = {f"{name}(h, 0.5)" for name in ("arctan2", "logaddexp", "logaddexp2", "nextafter")}

WRONG_IN_KERAS = {"sparsemax(x)"}  # its rows do not sum to 1


def leaves(result):
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(result)]


@each_row("call", [call for call in INDEX["results"] if call not in WRONG_IN_KERAS], by=lambda call: call.split("(")[0])
def test_results_equal_keras(call):
    actual = leaves(eval(call, {**NAMES, **ARRAYS}))
    expected = [
        np.frombuffer(DATA, dtype, np.prod(shape, dtype=int), at).reshape(shape)
        for dtype, shape, at in INDEX["results"][call]
    ]
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected):
        assert a.shape == e.shape
        if call not in OTHER_DTYPE:
            assert a.dtype == e.dtype, f"{a.dtype}, wanted {e.dtype}"
        rtol = 2e-3 if "float16" in (a.dtype.name, e.dtype.name) else 2e-5
        np.testing.assert_allclose(a.astype(e.dtype), e, rtol=rtol, atol=rtol)


def test_every_call_is_recorded():
    assert INDEX["refused"] == {}
    assert sorted(INDEX["results"]) == sorted(keras_ops_calls.CALLS)


def test_images_are_mirrored_beyond_their_ends():
    """Shifts by whole pixels are NumPy's padding by reflection, and by half of one means of two; one for each image."""
    x = np.random.default_rng(1).normal(size=(2, 5, 6, 3)).astype(np.float32)
    by_pixels = [[1, 0, 2, 0, 1, -3, 0, 0], [1, 0, -1, 0, 1, 4, 0, 0]]
    for image, moved, (right, down) in zip(
        x, keras_ops.image.affine_transform(x, by_pixels, fill_mode="mirror").numpy(), ((2, -3), (-1, 4))
    ):
        padded = np.pad(image, ((4, 4), (4, 4), (0, 0)), mode="reflect")
        np.testing.assert_array_equal(moved, padded[4 + down : 9 + down, 4 + right : 10 + right])
    half = keras_ops.image.affine_transform(x[0], [1, 0, 0.5, 0, 1, 0, 0, 0], fill_mode="mirror").numpy()
    padded = np.pad(x[0], ((0, 0), (0, 1), (0, 0)), mode="reflect")
    np.testing.assert_allclose(half, (padded[:, :-1] + padded[:, 1:]) / 2, rtol=1e-6, atol=1e-7)
    first = np.moveaxis(x, -1, 1)
    flipped = keras_ops.image.affine_transform(
        first, [-1, 0, 5, 0, 1, 0, 0, 0], "nearest", "mirror", data_format="channels_first"
    )
    np.testing.assert_array_equal(flipped.numpy(), first[..., ::-1])


def test_functional_models_are_built_of_them():
    x = ow.keras.Input((4,))
    y = keras_ops.concatenate(
        [keras_ops.mean(x, axis=-1, keepdims=True), keras_ops.maximum(x, 0), keras_ops.add(x, 1)], -1
    )
    model = ow.keras.Model(x, keras_ops.norm(y, axis=1))
    a = keras_ops_calls.arrays()["x"]
    expected = [np.linalg.norm([r.mean(), *np.maximum(r, 0), *(r + 1)]) for r in a]
    np.testing.assert_allclose(model(a), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (("int64", "float16"), "float16"),
        (("float16", "bfloat16"), "float32"),
        (("uint64", "int8"), "float32"),
        (("uint8", "int8"), "int16"),
        (("uint32", "int32"), "int64"),
        (("bool", int), "int32"),
        (("int8", int), "int8"),
        (("int8", float), "float32"),
        (("bfloat16", float), "bfloat16"),
        ((int, float), "float32"),
        (("float64", "complex64"), "complex128"),
        ((), "float32"),
    ],
)
def test_dtypes_promote_by_the_lattice_of_jax(dtypes, expected):
    assert promotion.result_type(*dtypes) == expected


def test_strings_promote_to_nothing():
    with pytest.raises(ValueError, match="string are not numbers"):
        promotion.result_type("string", "float32")


def test_gradients_and_tracing():
    a = keras_ops_calls.arrays()["x"]

    @ow.function
    def f(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = keras_ops.logsumexp(x, axis=1)
        return tape.gradient(y, x)

    e = np.exp(a.astype(np.float64))
    np.testing.assert_allclose(f(ow.constant(a)), e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: keras_ops.quantile(x, 0.5, method="best"), "linear, lower, higher"),
        (lambda x: keras_ops.where(True, x), "both"),
        (lambda x: keras_ops.scatter_update(x, [[0]], x[:1], "div"), "'div'"),
        (lambda x: keras_ops.cross(x, x), "must be either 2 or 3"),
        (lambda x: keras_ops.correlate(x[0], x[0], "all"), "valid"),
        (lambda x: keras_ops.conv(x, x), "1 to 3 spatial axes"),
        (lambda x: keras_ops.image.pad_images(x[..., None], 1, 1), "exactly two"),
        (lambda x: keras_ops.norm(x, "big", axis=(0, 1)), "ord=big"),
        (lambda x: keras_ops.fft(x), "real and imaginary"),
        (lambda x: keras_ops.pad(x, 1, "odd"), "symmetric"),
    ],
)
def test_wrong_arguments_are_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call(ow.constant(keras_ops_calls.arrays()["x"]))


def test_names_of_keras_lead_here():
    keras = ow.keras
    assert keras.ops is keras_ops
    assert keras.Variable is ow.Variable
    assert keras.__version__ == ow.__version__
    assert keras.config.backend() == "opwright"
    assert keras.tree.flatten({"a": [1, (2,)]}) == [1, 2]
    assert keras.saving.load_model is keras.models.load_model
    assert issubclass(keras.optimizers.Adam, keras.Optimizer)
    assert isinstance(keras.initializers.get("zeros"), keras.Initializer)
