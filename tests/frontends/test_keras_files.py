"""Models of Keras: files that Keras wrote, with the outputs that it computed (tests/data/keras/make_files.py); damaged
and hostile ones; layers that have no equivalent."""

from __future__ import annotations

import ast
import contextlib
import copy
import importlib
import io
import json
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import opwright as ow
from opwright.core import extras
from opwright.core.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    UnimplementedError,
)
from opwright.frontends.keras import archives
from opwright.nn.keras_form import keras_configuration
from opwright.tools.cli import cli
from thorough import examples, sampled

FILES = Path(__file__).parents[1] / "data" / "keras"
EXPECTED = np.load(FILES / "expected.npz")
NAMES = ("network", "operations", "functions", "classifier")


def arrays(name, what):
    return [EXPECTED[f"{name}.{what}{i}"] for i in range(100) if f"{name}.{what}{i}" in EXPECTED]


def called(model, inputs):
    outputs = model(inputs if len(inputs) > 1 else inputs[0], training=False)
    return outputs if isinstance(outputs, (list, tuple)) else [outputs]


def rewritten(name, into, configuration=None, weights=None, **members):
    """A copy of a file with a changed configuration (a function of it), weights (of an open file), other members."""
    with zipfile.ZipFile(FILES / f"{name}.keras") as archive:
        parts = {n: archive.read(n) for n in archive.namelist()}
    if configuration is not None:
        changed = json.loads(parts["config.json"])
        parts["config.json"] = json.dumps(configuration(changed) or changed).encode()
    if weights is not None:
        path = into.with_suffix(".h5")
        path.write_bytes(parts["model.weights.h5"])
        with h5py.File(path, "r+") as file:
            weights(file)
        parts["model.weights.h5"] = path.read_bytes()
    parts |= members
    with zipfile.ZipFile(into, "w") as archive:
        for n, content in parts.items():
            if content is not None:
                archive.writestr(n, content)
    return into


@pytest.mark.parametrize("name", NAMES)
def test_outputs_equal_the_ones_of_keras(name):
    model = ow.from_keras(FILES / f"{name}.keras")
    actual, expected = called(model, arrays(name, "input")), arrays(name, "output")
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected):
        assert a.numpy().dtype == b.dtype
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-5, atol=2e-6)


def test_it_trains_converts_and_is_saved(tmp_path):
    model = ow.from_keras(str(FILES / "classifier.keras"))
    (x,), before = arrays("classifier", "input"), [np.array(w) for w in model.get_weights()]
    model.save(tmp_path / "own.keras")
    model.save(tmp_path / "saved")
    for again in (ow.keras.models.load_model(tmp_path / "own.keras"), ow.keras.models.load_model(tmp_path / "saved")):
        np.testing.assert_array_equal(again(x).numpy(), called(model, [x])[0].numpy())
    content = ow.lite.TFLiteConverter.from_keras_model(model).convert()
    interpreter = ow.lite.Interpreter(model_content=content)
    interpreter.resize_tensor_input(0, x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(y, arrays("classifier", "output")[0], rtol=1e-4, atol=1e-6)
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(x, np.array([0, 3]), epochs=2, verbose=0)
    assert not any(np.array_equal(a, b) for a, b in zip(before, model.get_weights()))


def test_the_command_line_converts_files(tmp_path):
    output = tmp_path / "network.tflite"
    runner = CliRunner()
    done = runner.invoke(cli, ["convert", str(FILES / "network.keras"), "-o", str(output)])
    assert done.exit_code == 0, done.output
    interpreter = ow.lite.Interpreter(model_path=str(output))
    (x,) = arrays("network", "input")
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    actual = sorted((interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()), key=np.ndim)
    for a, b in zip(actual, sorted(arrays("network", "output"), key=np.ndim)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert runner.invoke(cli, ["convert", str(tmp_path / "none.keras"), "-o", str(output)]).exit_code


def test_operations_are_kept_in_files_of_ours(tmp_path):
    model = ow.from_keras(FILES / "operations.keras")
    model.save(tmp_path / "own.keras")
    again = ow.keras.models.load_model(tmp_path / "own.keras")
    inputs = arrays("operations", "input")
    for a, b in zip(called(again, inputs), called(model, inputs)):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def lists(value):
    """Return a configuration with lists instead of what Keras writes for tuples."""
    if isinstance(value, dict):
        return lists(value["items"]) if "items" in value else {k: lists(v) for k, v in value.items()}
    return [lists(v) for v in value] if isinstance(value, list) else value


def test_functions_on_inputs_are_written_as_keras_writes_them():
    """The model that Keras wrote, made by the same lines with this package."""
    tree = ast.parse((FILES / "make_files.py").read_text())
    (definition,) = (node for node in tree.body if getattr(node, "name", None) == "functions")
    names = {"keras": ow.keras, "ops": ow.keras.ops, "np": np}
    exec(compile(ast.Module([definition], []), "make_files.py", "exec"), names)
    model = names["functions"]()
    for a, b in zip(called(model, arrays("functions", "input")), arrays("functions", "output"), strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=2e-5)
    with zipfile.ZipFile(FILES / "functions.keras") as archive:
        theirs = json.loads(archive.read("config.json"))
    own, others = (
        {layer["name"]: (layer["module"], layer["class_name"], layer["config"]) for layer in c["config"]["layers"]}
        for c in (keras_configuration(model), theirs)
    )
    assert sorted(row[:2] for row in own.values()) == sorted(row[:2] for row in others.values())
    functions = own.keys() & others.keys()  # others are Python's operators, which have names of their own
    assert len(functions) > 40
    for name in functions:
        written, arguments = (lists(row[2]) for row in (own[name], others[name]))  # Keras writes defaults, too
        assert own[name][:2] == others[name][:2]
        if ".ops." in own[name][0]:
            assert {k: v for k, v in written.items() if arguments.get(k) != v}.keys() <= {"name"}


# ---- what has no equivalent ------------------------------------------------------------------------------------------


def replace_classes(configuration):
    for layer in configuration["config"]["layers"]:
        if layer["class_name"] in ("Embedding", "Flatten"):
            name = f"My{layer['class_name']}"
            layer |= {"module": "mine", "class_name": name, "registered_name": f"Package>{name}"}
        if layer["class_name"] == "Dense":
            layer["config"]["use_tables"] = 3


def test_one_error_lists_all_that_is_missing(tmp_path):
    path = rewritten("classifier", tmp_path / "m.keras", replace_classes)
    with pytest.raises(UnimplementedError) as raised:
        ow.from_keras(path)
    text = str(raised.value)
    for part in (
        "3 parts",
        "Package>MyEmbedding",
        "Package>MyFlatten",
        "'input_dim': 11",
        "Dense(use_tables)",
        "custom=",
    ):
        assert part in text


def test_classes_of_users_take_their_place(tmp_path):
    class MyEmbedding(ow.keras.layers.Embedding):
        pass

    class MyFlatten(ow.keras.layers.Flatten):
        pass

    def change(configuration):
        replace_classes(configuration)
        configuration["config"]["layers"][-1]["config"].pop("use_tables")

    path = rewritten(
        "classifier", tmp_path / "m.keras", change, lambda f: f["layers"].move("embedding", "my_embedding")
    )
    model = ow.from_keras(path, custom={"Package>MyEmbedding": MyEmbedding, "MyFlatten": MyFlatten})
    assert type(model.layers[0]) is MyEmbedding
    (y,) = called(model, arrays("classifier", "input"))
    np.testing.assert_allclose(y.numpy(), arrays("classifier", "output")[0], rtol=1e-5, atol=1e-6)


def test_code_in_a_configuration_is_never_executed(tmp_path):
    def change(configuration):
        code = {"class_name": "__lambda__", "config": {"code": "4wEAAAA=", "defaults": None, "closure": None}}
        configuration["config"]["layers"][3] |= {"class_name": "Lambda", "config": {"function": code}}

    with pytest.raises(UnimplementedError, match="Python code, which is executed with safe_mode=False only"):
        ow.from_keras(rewritten("classifier", tmp_path / "m.keras", change))


def test_other_objects_are_rejected():
    with pytest.raises(InvalidArgumentError, match="neither a Keras model nor a path"):
        ow.from_keras(3)
    with pytest.raises(FileNotFoundError):
        ow.from_keras("nowhere.keras")


def test_without_h5py_the_extra_is_named(monkeypatch):
    importing = importlib.import_module

    def absent(name, package=None):
        if name == "h5py":
            raise ModuleNotFoundError(f"No module named {name!r}")
        return importing(name, package)

    monkeypatch.setattr(extras.importlib, "import_module", absent)
    with pytest.raises(FailedPreconditionError, match=r"pip install 'opwright\[keras\]'"):
        ow.from_keras(FILES / "classifier.keras")


# ---- damaged and hostile files ---------------------------------------------------------------------------------------


def test_archives_that_are_damaged(tmp_path, monkeypatch):
    path = tmp_path / "m.keras"
    path.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(DataLossError, match=r"not a \.keras file"):
        ow.from_keras(path)
    with pytest.raises(DataLossError, match=r"has no model\.weights\.h5"):
        ow.from_keras(rewritten("classifier", path, **{"model.weights.h5": None}))
    with pytest.raises(DataLossError, match=r"config\.json of .* is damaged"):
        ow.from_keras(rewritten("classifier", path, **{"config.json": b"[" * 100_000}))
    with pytest.raises(DataLossError, match=r"weights\.h5 of .* is not a file of weights, or is damaged"):
        ow.from_keras(rewritten("classifier", path, **{"model.weights.h5": b"\x89HDF\r\n\x1a\n" + bytes(100)}))
    with zipfile.ZipFile(FILES / "classifier.keras") as archive:
        content = archive.read("model.weights.h5")
    assert b"SNOD" in content
    with pytest.raises(DataLossError, match=r"damaged: .*symbol table"):
        ow.from_keras(rewritten("classifier", path, **{"model.weights.h5": content.replace(b"SNOD", b"SNXX")}))
    start = (whole := rewritten("classifier", path).read_bytes()).index(b"PK\x01\x02")
    path.write_bytes(whole[: start + 6] + b"\x65" + whole[start + 7 :])  # to be extracted by version 10.1
    with pytest.raises(DataLossError, match="zip file version"):
        ow.from_keras(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("config.json", b" " * (32 << 20))
    monkeypatch.setattr(archives, "MOST_TEXT", 16 << 20)
    with pytest.raises(DataLossError, match="expands to 33,554,432 bytes"):
        ow.from_keras(path)


def linked(file):
    del file["layers/dense/vars/0"]
    file["layers/dense/vars/0"] = h5py.ExternalLink("/etc/hostname", "/")


def soft(file):
    del file["layers/dense/vars/0"]
    file["layers/dense/vars/0"] = h5py.SoftLink("/layers/dense/vars/1")


def external(file):
    shape = file["layers/dense/vars/0"].shape
    del file["layers/dense/vars/0"]
    file.create_dataset("layers/dense/vars/0", shape, "f4", external=[("/etc/hostname", 0, 4 * int(np.prod(shape)))])


def other_shape(file):
    del file["layers/dense/vars/0"]
    file["layers/dense/vars/0"] = np.zeros((1 << 10, 1 << 10), np.float32)


def absent(file):
    del file["layers/separable_conv1d"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (linked, "no dataset /layers/dense/vars/0"),
        (soft, "no dataset /layers/dense/vars/0"),
        (external, "lies in another file"),
        (other_shape, "does not fit its layer"),
        (absent, "no group /layers/separable_conv1d"),
    ],
)
def test_weights_that_do_not_fit_or_lie_elsewhere(tmp_path, change, words):
    with pytest.raises(DataLossError, match=words):
        ow.from_keras(rewritten("classifier", tmp_path / "m.keras", weights=change))


def places(value, path=()):
    """All paths into a configuration."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


@pytest.mark.parametrize("name", sampled(NAMES))
def test_changed_configurations_are_models_or_errors_with_a_name(tmp_path, name):
    with zipfile.ZipFile(FILES / f"{name}.keras") as archive:
        original = json.loads(archive.read("config.json"))
    rng = np.random.default_rng(0)
    paths = [p for p in places(original) if p]
    for number in rng.choice(len(paths), examples(60), replace=False):
        changed = copy.deepcopy(original)
        *parents, last = paths[number]
        inside = changed
        for key in parents:
            inside = inside[key]
        inside[last] = [None, -1, "x", [], {}, 3.5, {"class_name": "Dense"}][rng.integers(7)]
        path = rewritten(name, tmp_path / "m.keras", lambda _, changed=changed: changed)
        with contextlib.suppress(OpError):
            assert isinstance(ow.from_keras(path), ow.keras.Model)


# ---- with Keras ------------------------------------------------------------------------------------------------------

APPLICATIONS = {
    "MobileNet": 32,
    "MobileNetV2": 32,
    "MobileNetV3Small": 32,
    "ResNet50": 32,
    "ResNet50V2": 32,
    "DenseNet121": 32,
    "EfficientNetB0": 32,
    "EfficientNetV2B0": 32,
    "ConvNeXtTiny": 32,
    "VGG16": 32,
    "InceptionV3": 75,
    "InceptionResNetV2": 75,
    "Xception": 71,
    "NASNetMobile": 32,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", APPLICATIONS)
def test_applications(tmp_path, name):
    keras = pytest.importorskip("keras")
    size, rng = APPLICATIONS[name], np.random.default_rng(0)
    theirs = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=7)
    for v in theirs.variables:
        if v.dtype == "float32" and len(v.shape) <= 1 and "seed" not in v.path:
            v.assign((np.asarray(v) + rng.uniform(0, 0.3, v.shape)).astype("f4"))
    x = rng.uniform(0, 1, (2, size, size, 3)).astype("f4")
    expected = np.asarray(theirs(x, training=False))
    theirs.save(tmp_path / "model.keras")
    for source in (theirs, tmp_path / "model.keras"):
        np.testing.assert_allclose(ow.from_keras(source)(x).numpy(), expected, rtol=1e-4, atol=1e-5)


# ---- weights ---------------------------------------------------------------------------------------------------------


def datasets(content):
    """The paths and values of an HDF5 file's weights of layers; states of random numbers and of optimizers are not."""
    rows = {}
    with h5py.File(io.BytesIO(content), "r") as file:
        file.visititems(lambda path, x: rows.update({path: x[()]}) if isinstance(x, h5py.Dataset) else None)
    return {k: v for k, v in rows.items() if "seed_generator" not in k and not k.startswith("optimizer")}


@pytest.mark.parametrize("name", ["network", "classifier"])
def test_files_of_weights_equal_files_of_keras(name, tmp_path):
    with zipfile.ZipFile(FILES / f"{name}.keras") as archive:
        written = archive.read("model.weights.h5")
    model = ow.from_keras(FILES / f"{name}.keras")
    model.save_weights(tmp_path / "ours.weights.h5")
    ours, keras = datasets((tmp_path / "ours.weights.h5").read_bytes()), datasets(written)
    assert ours.keys() == keras.keys()
    for path, value in keras.items():
        np.testing.assert_array_equal(ours[path], value, err_msg=path)
    for weight in model.weights:
        weight.assign(weight * 0)
    (tmp_path / "keras.weights.h5").write_bytes(written)
    model.load_weights(tmp_path / "keras.weights.h5")
    for actual, expected in zip(called(model, arrays(name, "input")), arrays(name, "output"), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_damaged_files_of_weights_change_nothing(tmp_path, monkeypatch):
    model = ow.keras.Sequential([ow.keras.Input((3,)), ow.keras.layers.Dense(2), ow.keras.layers.Dense(2)])
    path = tmp_path / "w.weights.h5"
    model.save_weights(path)
    before = model.get_weights()
    with h5py.File(path, "r+") as file:
        file["layers/dense/vars/0"][...] = 7
        del file["layers/dense_1/vars/1"]
    with pytest.raises(DataLossError, match="there is no dataset /layers/dense_1/vars/1"):
        model.load_weights(path)
    path.write_bytes(b"nothing")
    with pytest.raises(DataLossError, match="is not a file of weights"):
        model.load_weights(path)
    for a, b in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match=r"\.weights\.h5"):
        model.save_weights(tmp_path / "w.h5")

    class Owner(ow.keras.layers.Dense):
        def save_own_variables(self, store):
            store["state"] = np.arange(2.0)

        def load_own_variables(self, store):
            self.bias.assign(store["state"])

    owner = ow.keras.Sequential([ow.keras.Input((3,)), Owner(2)])
    owner.save_weights(path)
    with h5py.File(path) as file:  # as Keras stores them
        np.testing.assert_array_equal(file["layers/owner/vars/state"], [0, 1])
    owner.load_weights(path)
    np.testing.assert_array_equal(owner.layers[0].bias.numpy(), [0, 1])
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(FailedPreconditionError, match=r"pip install 'opwright\[keras\]'"):
        model.save_weights(tmp_path / "none.weights.h5")
    assert not (tmp_path / "none.weights.h5").exists()


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: ow.keras.layers.Dense(4), (3,)),
        (lambda: ow.keras.layers.Conv2D(4, 3), (6, 6, 2)),
        (lambda: ow.keras.layers.Embedding(10, 4), (5,)),
    ],
    ids=["dense", "convolution", "embedding"],
)
def test_adapted_kernels_are_stored_with_their_product(make, shape, tmp_path):
    """A file of a model with LoRA is one without, as Keras writes it; read back, the product is in the kernel."""
    adapted, plain = make(), make()
    models = [ow.keras.Sequential([ow.keras.Input(shape), layer]) for layer in (adapted, plain)]
    adapted.enable_lora(2)
    draw = np.random.default_rng(1)
    adapted.lora_kernel_b.assign(draw.normal(size=adapted.lora_kernel_b.shape))
    x = draw.integers(0, 10, (2, *shape)).astype(np.float32)
    expected = models[0](x).numpy()
    models[0].save_weights(tmp_path / "w.weights.h5")
    models[1].load_weights(tmp_path / "w.weights.h5")
    np.testing.assert_allclose(models[1](x).numpy(), expected, rtol=1e-6)
    assert plain.weights[0].numpy().shape == adapted.weights[0].numpy().shape
    models[1].save_weights(tmp_path / "w.weights.h5")
    models[0].load_weights(tmp_path / "w.weights.h5")
    np.testing.assert_allclose(models[0](x).numpy(), expected, rtol=1e-6)
    assert not adapted.lora_kernel_b.numpy().any()


def test_the_mode_of_a_call_reaches_layers():
    """Keras writes the mode in which the model was made at each layer; a call of the model overrides it."""
    model = ow.from_keras(FILES / "network.keras")
    assert any(isinstance(layer, ow.keras.layers.Dropout) and layer.rate for layer in model.layers)
    inputs = arrays("network", "input")
    inputs = inputs if len(inputs) > 1 else inputs[0]
    first, second = (ow.nest.flatten(model(inputs, training=True)) for _ in range(2))
    assert any((a.numpy() != b.numpy()).any() for a, b in zip(first, second))


def test_a_class_of_a_user_with_the_name_of_a_layer_is_not_that_layer(tmp_path):
    def change(configuration):
        configuration["config"]["layers"][-1] |= {"module": "mine", "registered_name": "Dense"}

    with pytest.raises(UnimplementedError, match="Dense: no such class"):
        ow.from_keras(rewritten("classifier", tmp_path / "m.keras", change))
