"""Models and weights in .h5 files, of Keras 2.21 and 3.15 (data/keras/legacy_h5.zip), and back.

The files were written by tf_keras and keras on TensorFlow, each after two steps of Adam; what they predict and
evaluate stands below. Not here: .weights.h5 and .keras files (test_keras_files.py).
"""

import io
import pathlib
import zipfile

import numpy as np
import pytest

import opwright as ow
from replaced_files import replace_file

h5py = pytest.importorskip("h5py")
ARCHIVE = pathlib.Path(__file__).parents[1] / "data" / "keras" / "legacy_h5.zip"
X = np.linspace(-1, 1, 64).reshape(2, 4, 4, 2).astype("float32")
PREDICTED = {
    "keras2": [[0.646753, -0.194095, 0.012899], [-0.191411, 0.054864, -0.137339]],
    "keras3": [[-1.215559, 0.511671, 0.883458], [1.741306, -0.06786, 1.261556]],
    "keras2_sequential": [[-1.078986], [-1.019675]],
}
EVALUATED = {"keras2": (1.0218830, 0.9680549), "keras3": (1.1531694, 0.8151919)}


@pytest.fixture
def path(tmp_path):
    def extracted(name):
        with zipfile.ZipFile(ARCHIVE) as archive:
            return archive.extract(f"{name}.h5", tmp_path)

    return extracted


@pytest.mark.parametrize("name", ["keras2", "keras3"])
def test_models_compiled_as_they_were(path, name):
    model = ow.keras.models.load_model(path(name))
    np.testing.assert_allclose(model.predict(X, verbose=0), PREDICTED[name], rtol=1e-4, atol=2e-6)
    losses = model.evaluate(X, np.ones((2, 3), "float32"), verbose=0)
    np.testing.assert_allclose(losses, EVALUATED[name], rtol=1e-4)
    assert int(model.optimizer.iterations) == (2 if name == "keras3" else 0)  # Keras 2 orders its state otherwise


def test_sequential_models(path):
    model = ow.keras.models.load_model(path("keras2_sequential"), compile=False)
    assert not model.compiled
    np.testing.assert_allclose(model.predict(X.reshape(-1, 4)[:2]), PREDICTED["keras2_sequential"], rtol=1e-4)


@pytest.mark.parametrize("name", ["keras2_only", "keras2_sequential"])
def test_weights_alone(path, name):
    layers = ow.keras.layers
    model = ow.keras.Sequential([ow.keras.Input((4,)), layers.Dense(3, "tanh"), layers.Dense(1)])
    model.load_weights(path(name))
    np.testing.assert_allclose(model.predict(X.reshape(-1, 4)[:2]), PREDICTED["keras2_sequential"], rtol=1e-4)
    with pytest.raises(ValueError, match="Layer count mismatch"):
        ow.keras.Sequential([ow.keras.Input((4,)), layers.Dense(3)]).load_weights(path(name))
    wider = ow.keras.Sequential([ow.keras.Input((4,)), layers.Dense(3), layers.Dense(2)])
    before = wider.get_weights()[2]
    with pytest.raises(ow.errors.DataLossError, match="does not fit"):
        wider.load_weights(path(name))
    with pytest.warns(UserWarning, match="not loaded"):
        wider.load_weights(path(name), skip_mismatch=True)
    np.testing.assert_array_equal(wider.get_weights()[2], before)
    np.testing.assert_array_equal(wider.get_weights()[0], model.get_weights()[0])


def test_writing_and_back(tmp_path):
    layers = ow.keras.layers
    x = ow.keras.Input((4,))
    model = ow.keras.Model(x, layers.BatchNormalization()(layers.Dense(3)(x)) + 1.0)
    model.compile("adam", "mse")
    data = X.reshape(-1, 4)
    model.fit(data, data[:, :3], verbose=0)
    model.save(tmp_path / "model.h5")
    again = ow.keras.models.load_model(tmp_path / "model.h5")
    np.testing.assert_array_equal(again.predict(data), model.predict(data))
    for ours, theirs in zip(again.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with h5py.File(tmp_path / "model.h5") as file:  # as Keras reads it
        names = [n.decode() for n in file["model_weights"].attrs["layer_names"]]
        assert names == [layer.name for layer in model.layers]
        dense = file["model_weights"]["dense" if "dense" in names else names[1]]
        assert [dense[n].shape for n in dense.attrs["weight_names"]] == [(4, 3), (3,)]

    class Own(ow.keras.Model):
        def call(self, x):
            return x

    with pytest.raises(NotImplementedError, match="Functional"):
        Own().save(tmp_path / "own.h5")


def test_damaged_files(path, tmp_path):
    content = pathlib.Path(path("keras3")).read_bytes()
    random, raised = np.random.default_rng(5), 0
    for _ in range(40):
        damaged = bytearray(content[: random.integers(100, len(content))] if random.random() < 0.3 else content)
        damaged[random.integers(0, len(damaged))] ^= int(random.integers(1, 256))
        replace_file(tmp_path / "damaged.h5", damaged)
        try:
            ow.keras.models.load_model(tmp_path / "damaged.h5")
        except (ow.errors.OpError, ValueError):
            raised += 1
    assert raised > 5


def test_weights_of_keras_archives_and_open_files(tmp_path):
    layers = ow.keras.layers
    model = ow.keras.Sequential([ow.keras.Input((4,)), layers.Dense(3)])
    data = X.reshape(-1, 4)
    for form in (True, False):
        model.save(tmp_path / "model.keras", keras_format=form)
        other = ow.keras.Sequential([ow.keras.Input((4,)), layers.Dense(3)])
        other.load_weights(tmp_path / "model.keras")
        np.testing.assert_array_equal(other.predict(data), model.predict(data))
        file = io.BytesIO()
        model.save(file, keras_format=form)
        again = ow.keras.models.load_model(io.BytesIO(file.getvalue()))
        np.testing.assert_array_equal(again.predict(data), model.predict(data))
    for kind in (ValueError, FileNotFoundError):  # of Keras, of Python
        with pytest.raises(kind, match="File not found"):
            ow.keras.models.load_model(tmp_path / "nothing.keras")


@pytest.mark.parametrize("other", ["float16", "float32", "float64"])
def test_bfloat16_weights_in_other_dtypes(tmp_path, other):
    def model(dtype):
        return ow.keras.Sequential([ow.keras.Input((4,)), ow.keras.layers.Dense(3, dtype=dtype)])

    stored = model("bfloat16")
    stored.save_weights(tmp_path / "w.weights.h5")
    read = model(other)
    read.load_weights(tmp_path / "w.weights.h5")
    kernel = np.asarray(stored.get_weights()[0], np.float64)
    np.testing.assert_allclose(np.asarray(read.get_weights()[0], np.float64), kernel, rtol=1e-3)


def test_registered_names_and_bytes():
    @ow.keras.saving.register_keras_serializable("legacy_files", "Renamed")
    class Original(ow.keras.layers.Layer):
        pass

    config = ow.keras.saving.serialize_keras_object([Original(name="x"), b"a\xff", (1, {"b": None})])
    assert config[0]["registered_name"] == "legacy_files>Renamed"
    layer, data, pair = ow.keras.saving.deserialize_keras_object(config)
    assert (type(layer), layer.name, data, pair) == (Original, "x", b"a\xff", (1, {"b": None}))
    with pytest.raises(ValueError, match="get_config"):
        ow.keras.saving.register_keras_serializable()(type("Bare", (), {}))
