"""Files that Keras 3 opens: their layout and Keras's, values and training after Keras opened them, and back."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import keras_saved_cases as rows
import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import FailedPreconditionError, UnimplementedError

RECORD = json.loads((Path(__file__).parents[1] / "data" / "keras" / "saved_layouts.json").read_text())
K = ow.keras


def objects(value):
    """Yield the serialized objects of a configuration."""
    if isinstance(value, list):
        for member in value:
            yield from objects(member)
    elif isinstance(value, dict):
        if isinstance(value.get("class_name"), str) and isinstance(value.get("config"), dict):
            yield value
        for member in value.values():
            yield from objects(member)


def flat(value):
    return [np.asarray(v) for v in ow.nest.flatten(value)]


def test_places_of_weights_and_arguments_of_classes_equal_keras(tmp_path):
    path, failures = tmp_path / "m.keras", []
    for name in rows.CASES:
        model, _ = rows.filled(name)
        model.save(path, keras_format=True)
        if rows.layout(path) != RECORD["layouts"][name]:
            failures.append(f"{name}: {rows.layout(path)}, Keras has {RECORD['layouts'][name]}")
        with zipfile.ZipFile(path) as archive:
            config = json.loads(archive.read("config.json"))
        for member in objects(config):
            known = RECORD["classes"].get(f"{member.get('module')}.{member['class_name']}")
            unknown = set(member["config"]) - set(known or member["config"])
            if unknown or (known is None and str(member.get("module")).startswith("keras.layers")):
                failures.append(f"{name}: {member['class_name']} with {unknown or 'an unknown class'}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("name", ["Dense", "nested", "parallel", "operators", "shared", "subclass", "registered"])
@pytest.mark.parametrize("keras_format", [True, False])
def test_either_format_is_read_back(name, keras_format, tmp_path):
    model, inputs = rows.filled(name)
    model.save(tmp_path / "m.keras", keras_format=keras_format)
    loaded = K.models.load_model(tmp_path / "m.keras")
    for a, b in zip(flat(loaded(inputs)), flat(model(inputs)), strict=True):
        np.testing.assert_array_equal(a, b)
    config = json.dumps(model.get_config()["layers"]) if name == "parallel" else ""
    assert not config or config == json.dumps(loaded.get_config()["layers"])


def trained(optimizer):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((16, 4)).astype(np.float32), rng.standard_normal((16, 2)).astype(np.float32)
    model = K.Sequential([K.Input((4,)), K.layers.Dense(3, activation="tanh"), K.layers.Dense(2)])
    model.compile(optimizer, "mse", metrics=["mae", K.metrics.RootMeanSquaredError()])
    model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return model, lambda m: m.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0).history


OPTIMIZERS = {
    "SGD": lambda: K.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "Adam": lambda: K.optimizers.Adam(K.optimizers.schedules.CosineDecay(0.1, 100), amsgrad=True),
    "AdamW": lambda: K.optimizers.AdamW(0.01, weight_decay=0.1, clipnorm=1.0, use_ema=True),
    "RMSprop": lambda: K.optimizers.RMSprop(0.01, momentum=0.5, centered=True),
    "Nadam": lambda: K.optimizers.Nadam(0.01, gradient_accumulation_steps=2),
    "Ftrl": lambda: K.optimizers.Ftrl(0.1),
    "Adadelta": lambda: K.optimizers.Adadelta(0.5),
}


@pytest.mark.parametrize("name", ["Adam"])
def test_training_continues_from_a_file(name, tmp_path):
    model, train = trained(OPTIMIZERS[name]())
    model.save(tmp_path / "m.keras", keras_format=True)
    assert train(K.models.load_model(tmp_path / "m.keras")) == train(model)


def test_models_without_a_form_in_keras_are_saved_for_opwright_alone(tmp_path):
    model = K.Sequential([K.Input((4,)), K.layers.Dense(2)])
    x = model.inputs[0]
    model = K.Model(x, [ow.math.lgamma(model(x)), ow.linalg.matmul(x, x, transpose_a=True)])
    with pytest.raises(UnimplementedError, match=r"(?s)Lgamma.*MatMul.*keras_format"):
        model.save(tmp_path / "m.keras", keras_format=True)
    model.save(tmp_path / "m.keras")
    assert "model.safetensors" in zipfile.ZipFile(tmp_path / "m.keras").namelist()
    value = np.ones((4, 4), np.float32)
    np.testing.assert_array_equal(flat(K.models.load_model(tmp_path / "m.keras")(value))[0], flat(model(value))[0])


def test_without_h5py_files_are_for_opwright_alone(tmp_path, monkeypatch):
    model, _ = rows.filled("Dense")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(FailedPreconditionError, match=r"opwright\[keras\]"):
        model.save(tmp_path / "m.keras", keras_format=True)
    model.save(tmp_path / "m.keras", keras_format=False)
    assert K.models.load_model(tmp_path / "m.keras").count_params() == model.count_params()


# ---- with Keras ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_keras_predicts_the_same_and_its_files_are_read_back(tmp_path):
    pytest.importorskip("keras.layers", reason="could not import 'keras'")
    from keras_peer import opened

    failures = []
    for name in rows.CASES:
        try:
            model, inputs = rows.filled(name)
            model.save(tmp_path / "m.keras", keras_format=True)
            peer = opened(tmp_path / "m.keras")
            peer.save(tmp_path / "k.keras")
            back = K.models.load_model(tmp_path / "k.keras")
            tolerance = 2e-3 if name == "policy" else 5e-5
            for other in (peer(inputs, training=False), back(inputs, training=False)):
                for a, b in zip(flat(other), flat(model(inputs, training=False)), strict=True):
                    np.testing.assert_allclose(a, b, rtol=2e-4, atol=tolerance)
        except Exception as error:
            failures.append(f"{name}: {type(error).__name__} {str(error)[:300]}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_keras_continues_the_training(name, tmp_path):
    pytest.importorskip("keras.layers", reason="could not import 'keras'")
    from keras_peer import opened

    model, train = trained(OPTIMIZERS[name]())
    model.save(tmp_path / "m.keras", keras_format=True)
    peer = opened(tmp_path / "m.keras")
    for a, b in zip(peer.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_allclose(np.asarray(a), b.numpy(), rtol=1e-6)
    peer.save(tmp_path / "k.keras")
    histories = [train(m) for m in (model, peer, K.models.load_model(tmp_path / "k.keras"))]
    for history in histories[1:]:
        for key, values in histories[0].items():
            np.testing.assert_allclose(history[key], values, rtol=1e-3)
