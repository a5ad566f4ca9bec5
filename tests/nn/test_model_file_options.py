"""Options of files of models and weights: shards, skipped layers, code, shared layers, names of classes."""

from __future__ import annotations

import json
import os
import zipfile

import numpy as np
import pytest

from opwright import keras
from opwright.core.errors import DataLossError, UnimplementedError
from opwright.nn import function_code

pytest.importorskip("h5py")
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)


def two_layers():
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Dense(2)])


def set_to(model, value):
    model.set_weights([np.full_like(w, value) for w in model.get_weights()])


def test_weights_in_several_files(tmp_path):
    model, other = two_layers(), two_layers()
    path = tmp_path / "w.weights.json"
    model.save_weights(path, max_shard_size=64 / 2**30)  # kernel and bias of the first layer are 60 bytes
    listed = json.loads(path.read_text())
    assert listed == {  # as Keras 3.15 writes it
        "metadata": {"total_size": 92},
        "weight_map": {"/layers/dense/vars": "w_00000.weights.h5", "/layers/dense_1/vars": "w_00001.weights.h5"},
    }
    other.load_weights(path)
    for a, b in zip(model.get_weights(), other.get_weights()):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="exceeds the maximum shard size"):
        model.save_weights(path, max_shard_size=8 / 2**30)
    with pytest.raises(ValueError, match="max_shard_size"):
        model.save_weights(path)
    for damaged in ("{", "[]", '{"weight_map": {}}', '{"weight_map": {"/a": "../w_00000.weights.h5"}}'):
        path.write_text(damaged)
        with pytest.raises(DataLossError, match="not a list of files"):
            other.load_weights(path)
    path.write_text('{"weight_map": {"/a": "absent.weights.h5"}}')
    with pytest.raises(DataLossError, match="cannot be read"):
        other.load_weights(path)


def test_layers_that_are_skipped(tmp_path):
    model, other = two_layers(), two_layers()
    set_to(model, 1.0), set_to(other, 2.0)
    path = tmp_path / "w.weights.h5"
    keras.saving.save_weights(model, path, objects_to_skip=[model.layers[0]])
    with pytest.raises(ValueError, match="received 0 variables"):
        other.load_weights(path)
    other.load_weights(path, objects_to_skip=[other.layers[0]])
    assert other.layers[0].kernel.numpy().max() == 2.0
    assert other.layers[1].kernel.numpy().max() == 1.0
    with pytest.raises(ValueError, match="only supports loading"):
        other.load_weights("w.keras", objects_to_skip=[])


def test_weights_by_name(tmp_path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="a"), keras.layers.Dense(3, name="b")])
    other = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="c"), keras.layers.Dense(3, name="b")])
    set_to(model, 1.0), set_to(other, 2.0)
    model.save(tmp_path / "m.h5")
    other.load_weights(tmp_path / "m.h5", by_name=True)
    assert other.layers[0].kernel.numpy().max() == 2.0
    assert other.layers[1].kernel.numpy().max() == 1.0
    with pytest.raises(ValueError, match="by_name"):
        other.load_weights(tmp_path / "m.weights.h5", by_name=True)


@pytest.mark.filterwarnings("ignore:The object being serialized")
def test_code_of_lambdas(tmp_path):
    """A lambda's bytecode is stored, with closure and defaults, and runs only if the caller allows it."""
    offset = 3.0
    model = keras.Sequential([keras.Input((4,)), keras.layers.Lambda(lambda x, k=2.0: x * k + offset)])
    with pytest.warns(UserWarning, match="lambda"):
        model.save(tmp_path / "m.keras")
    with pytest.raises(ValueError, match="arbitrary code execution"):
        keras.models.load_model(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras", safe_mode=False)
    np.testing.assert_array_equal(loaded(X).numpy(), X * 2 + 3)
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        keras_form = json.loads(archive.read("config.json"))
    function = keras_form["config"]["layers"][1]["config"]["function"]
    assert function["class_name"] == "__lambda__"  # the form that Keras reads
    with zipfile.ZipFile(tmp_path / "k.keras", "w") as keras_file, zipfile.ZipFile(tmp_path / "m.keras") as archive:
        for name in ("config.json", "metadata.json", "model.weights.h5"):  # as one that Keras wrote
            keras_file.writestr(name, archive.read(name))
    with pytest.raises(UnimplementedError, match="safe_mode=False"):
        keras.models.load_model(tmp_path / "k.keras")
    loaded = keras.models.load_model(tmp_path / "k.keras", safe_mode=False)
    np.testing.assert_array_equal(loaded(X).numpy(), X * 2 + 3)
    config = function_code.encode(lambda x: x + 1)
    with function_code.SafeModeScope(False):  # which functions that are called inside follow
        assert keras.saving.deserialize_keras_object(config)(2) == 3
    with pytest.raises(ValueError, match="arbitrary code execution"):
        keras.saving.deserialize_keras_object(config)
    with function_code.SafeModeScope(False), pytest.raises(DataLossError, match="damaged"):
        function_code.decode({"code": "AAAA"})


def test_layers_that_occur_twice(tmp_path):
    """A layer that two wrappers call is one layer in the file, and in the model that is read."""
    shared = keras.layers.Dense(4)
    i = keras.Input((5, 4))
    model = keras.Model(i, keras.layers.TimeDistributed(shared)(keras.layers.TimeDistributed(shared)(i)))
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    assert len(loaded.weights) == 2
    assert loaded.layers[1].layer is loaded.layers[2].layer
    x = np.ones((1, 5, 4), np.float32)
    np.testing.assert_array_equal(loaded(x).numpy(), model(x).numpy())
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        text = archive.read("config.json").decode()
    assert text.count("shared_object_id") == 2  # of nothing else


def test_folders_and_names(tmp_path):
    model = two_layers()
    model.compile("adam", "mse")
    model.save(tmp_path / "m", zipped=False)
    assert {"config.json", "metadata.json", "model.weights.h5"} <= set(os.listdir(tmp_path / "m"))
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "m")(X).numpy(), model(X).numpy())
    with pytest.raises(ValueError, match="should not end in"):
        model.save(tmp_path / "m.keras", zipped=False)
    with pytest.raises(ValueError, match="Invalid filepath extension"):
        model.save(tmp_path / "m.tflite")
    with pytest.raises(ValueError, match="File format not supported"):
        keras.models.load_model(tmp_path / "m.pkl")


class _InLists(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.blocks = [[keras.layers.Dense(4)], (keras.layers.Dense(4), {"a": keras.layers.Dense(4)})]
        self._last = keras.layers.Dense(2)

    @property
    def last(self):
        return self._last

    def call(self, x):
        for layer in (self.blocks[0][0], self.blocks[1][0], self.blocks[1][1]["a"]):
            x = layer(x)
        return self.last(x)


def test_layers_in_lists_of_lists(tmp_path):
    """The groups of a file are those of Keras: containers in containers, and a property before a private attribute."""
    h5py = pytest.importorskip("h5py")
    model, other = _InLists(), _InLists()
    model(X), other(X)
    model.save_weights(tmp_path / "m.weights.h5")
    with h5py.File(tmp_path / "m.weights.h5") as file:
        groups: list[str] = []
        file.visit(lambda name: groups.append(name) if name.endswith("vars/0") else None)
    assert sorted(groups) == [
        "blocks/container/dense/vars/0",
        "blocks/container_1/container/dense/vars/0",
        "blocks/container_1/dense/vars/0",
        "last/vars/0",
    ]
    other.load_weights(tmp_path / "m.weights.h5")
    np.testing.assert_array_equal(other(X).numpy(), model(X).numpy())
    model.blocks.append(model.blocks)  # which contains itself now
    model.save_weights(tmp_path / "again.weights.h5")
    set_to(other, 0.0)
    other.load_weights(tmp_path / "again.weights.h5")
    np.testing.assert_array_equal(other(X).numpy(), model(X).numpy())


def test_links_to_other_files_are_not_followed(tmp_path):
    h5py = pytest.importorskip("h5py")
    model = two_layers()
    model.save_weights(tmp_path / "all.weights.h5")
    for link in (h5py.ExternalLink(str(tmp_path / "all.weights.h5"), "/layers"), h5py.SoftLink("/real")):
        with h5py.File(tmp_path / "m.weights.h5", "w") as file, h5py.File(tmp_path / "all.weights.h5") as source:
            source.copy("/layers", file, "real")
            file["layers"] = link
        with pytest.raises(DataLossError, match="no group /layers"):
            model.load_weights(tmp_path / "m.weights.h5")


def test_classes_of_one_name(tmp_path):
    """The registered name decides between classes of one name; a name that nothing has is an error."""

    @keras.saving.register_keras_serializable(package="first")
    class Scale(keras.layers.Layer):
        factor = 2.0

        def call(self, x):
            return x * self.factor

    first = Scale

    @keras.saving.register_keras_serializable(package="second")
    class Scale(keras.layers.Layer):
        def call(self, x):
            return x * 3.0

    for cls, factor in ((first, 2.0), (Scale, 3.0)):
        model = keras.Sequential([keras.Input((4,)), cls()])
        model.save(tmp_path / "m.keras")
        np.testing.assert_allclose(keras.models.load_model(tmp_path / "m.keras")(X).numpy(), X * factor)
    config = {"module": "keras.layers", "class_name": "Dense", "config": {"units": 1}, "registered_name": "mine>Dense"}
    with pytest.raises(ValueError, match="resolved to a Keras built-in"):
        keras.saving.deserialize_keras_object(config)


@keras.saving.register_keras_serializable(package="mine")
def error(y, p):
    return keras.ops.mean(keras.ops.abs(y - p))


@keras.saving.register_keras_serializable(package="mine")
def act(x):
    return x * 2.0


def test_registered_functions(tmp_path):
    """Functions and layers as arguments keep their registered names, in Keras's form as well."""
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(3, activation=act), keras.layers.Dense(2, keras.layers.LeakyReLU(0.3))]
    )
    model.compile("adam", error, metrics=[error])
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    assert loaded.loss is error
    assert loaded.layers[0].activation is act
    np.testing.assert_array_equal(loaded(X).numpy(), model(X).numpy())
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        config = json.loads(archive.read("config.json"))
    assert config["compile_config"]["loss"]["registered_name"] == "mine>error"
    assert config["config"]["layers"][1]["config"]["activation"]["registered_name"] == "mine>act"


class _Compiled(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(2)

    def call(self, x):
        return self.dense(x)

    def compile(self, optimizer, loss, more=1):
        super().compile(optimizer, loss)


def test_compile_of_a_subclass(tmp_path):
    model = _Compiled()
    model.compile("sgd", "mse", more=2)
    model(X)
    model.save(tmp_path / "m.keras")
    with pytest.warns(UserWarning, match="method is custom"):
        loaded = keras.models.load_model(tmp_path / "m.keras", custom_objects={"_Compiled": _Compiled})
    assert not loaded.compiled


def test_files_of_layers(tmp_path):
    """Vocabularies lie where Keras has them, and are read from files of Keras and of earlier versions."""
    lookup = keras.layers.StringLookup()
    lookup.adapt(np.array(["a", "b", "a", "c"]))
    words = keras.Input((2,), dtype="string")
    model = keras.Model(words, keras.layers.Embedding(5, 2)(lookup(words)))
    model.save(tmp_path / "m.keras")
    name = "assets/layers/string_lookup/vocabulary.txt"
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        files = {member: archive.read(member) for member in archive.namelist()}
    assert files[name].decode().splitlines() == ["[UNK]", "a", "c", "b"]
    own = {"opwright.json": files.pop("opwright.json")}
    layouts = {"keras": files, "older": {**files, **own, "assets/1/vocabulary.txt": files[name]}}
    layouts["older"].pop(name)
    x = np.array([["a", "c"], ["b", "z"]])
    for layout, members in layouts.items():
        with zipfile.ZipFile(tmp_path / f"{layout}.keras", "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        loaded = keras.models.load_model(tmp_path / f"{layout}.keras")
        np.testing.assert_array_equal(loaded(x).numpy(), model(x).numpy())


def test_operations_in_h5_files_without_modules(tmp_path):
    """Keras 3 writes `x + y` into .h5 files as a class without module, as it writes layers."""
    h5py = pytest.importorskip("h5py")
    i = keras.Input((4,))
    model = keras.Model(i, keras.ops.relu(keras.layers.Dense(4)(i) + i))
    model.save(tmp_path / "m.h5")

    def without_modules(value):
        if isinstance(value, dict):
            return {k: without_modules(v) for k, v in value.items() if k not in ("module", "registered_name")}
        return [without_modules(v) for v in value] if isinstance(value, list) else value

    with h5py.File(tmp_path / "m.h5", "a") as file:
        config = json.loads(file.attrs["model_config"])
        file.attrs["model_config"] = json.dumps(without_modules(config))
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "m.h5")(X).numpy(), model(X).numpy())


@keras.saving.register_keras_serializable(package="mine")
class _Counted(keras.layers.Layer):
    def get_build_config(self):
        return {"size": 4}

    def build_from_config(self, config):
        self.read = config
        self.build((None, config["size"]))

    def build(self, input_shape):
        self.weight = self.add_weight(shape=(input_shape[-1],), initializer="ones")

    def call(self, x):
        return x * self.weight


def test_build_configurations(tmp_path):
    """A class's `get_build_config` is in the file, as in Keras's, and builds the new layer."""
    model = keras.Sequential([keras.Input((4,)), _Counted()])
    model.save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        config = json.loads(archive.read("config.json"))
    assert config["config"]["layers"][1]["build_config"] == {"size": 4}
    assert keras.models.load_model(tmp_path / "m.keras").layers[0].read == {"size": 4}
    dense = keras.layers.Dense(2)
    dense.build((None, 4))
    other = keras.layers.Dense(2)
    other.build_from_config(dense.get_build_config())
    assert other.kernel.shape == (4, 2)


def test_built_layers_of_a_model_without_inputs(tmp_path):
    """Their weights are read, though nothing has called the model."""
    dense = keras.layers.Dense(3)
    dense.build((None, 4))
    model = keras.Sequential([dense, keras.layers.ReLU()])
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded.layers[0].kernel.numpy(), dense.kernel.numpy())
    np.testing.assert_array_equal(loaded(X).numpy(), model(X).numpy())
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        config = json.loads(archive.read("config.json"))
    assert config["config"]["layers"][0]["build_config"] == {"input_shape": [None, 4]}  # as Keras has it
