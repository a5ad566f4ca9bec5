"""keras.utils on files of this machine: get_file, plot_model, sounds in folders."""

import hashlib
import math
import pathlib
import shutil
import tarfile
import zipfile

import numpy as np
import pytest

import opwright as ow

utils = ow.keras.utils


@pytest.fixture
def origin(tmp_path):
    path = tmp_path / "source" / "data.txt"
    path.parent.mkdir()
    path.write_text("content")
    return path


def test_files_are_copied_once_and_checked(origin, tmp_path):
    cache = str(tmp_path / "cache")
    digits = hashlib.sha256(b"content").hexdigest()
    path = utils.get_file(origin=origin.as_uri(), cache_dir=cache, file_hash=digits)
    assert path == f"{cache}/datasets/data.txt"
    assert pathlib.Path(path).read_text() == "content"
    origin.write_text("other")
    assert pathlib.Path(utils.get_file(origin=str(origin), cache_dir=cache)).read_text() == "content"
    assert pathlib.Path(utils.get_file(origin=str(origin), cache_dir=cache, force_download=True)).read_text() == "other"
    with pytest.raises(ValueError, match=r"sha256 hash of .* does not match"):
        utils.get_file(origin=str(origin), cache_dir=cache, file_hash=digits)
    short = hashlib.md5(b"other").hexdigest()
    assert utils.get_file("short.txt", str(origin), cache_dir=cache, md5_hash=short, cache_subdir="x").endswith(
        "x/short.txt"
    )


def test_nothing_is_loaded_from_a_network(origin, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"in a network.*Save it as"):
        utils.get_file(origin="https://example.org/data.zip", cache_dir=tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        utils.get_file(origin=str(tmp_path / "absent"), cache_dir=tmp_path)
    with pytest.raises(ValueError, match="file name"):
        utils.get_file("../up", str(origin), cache_dir=tmp_path)
    with pytest.raises(ValueError, match="origin"):
        utils.get_file("name")


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_archives_are_extracted(origin, tmp_path, kind):
    archive = tmp_path / f"files.{kind}"
    if kind == "tar":
        with tarfile.open(archive, "w:gz") as file:
            file.add(origin, "inner/data.txt")
    else:
        with zipfile.ZipFile(archive, "w") as file:
            file.write(origin, "inner/data.txt")
    folder = utils.get_file(origin=str(archive), cache_dir=tmp_path / "cache", extract=True)
    assert pathlib.Path(f"{folder}/inner/data.txt").read_text() == "content"
    with pytest.raises(ValueError, match="not an archive"):
        utils.get_file(origin=str(origin), cache_dir=tmp_path / "cache", extract=True)


def test_models_are_drawn(tmp_path):
    inputs = ow.keras.Input((4,), name="first")
    hidden = ow.keras.layers.Dense(3, name="hidden")(inputs)
    model = ow.keras.Model(inputs, ow.keras.layers.Add(name="sum")([hidden, hidden]))
    text = utils.model_to_dot(model, show_shapes=True, show_layer_names=True)
    assert '"first" -> "hidden";' in text
    assert text.count('"hidden" -> "sum";') == 1
    assert "output (None, 3)" in text
    utils.plot_model(model, tmp_path / "model.html")
    assert "hidden" in (tmp_path / "model.html").read_text()
    utils.plot_model(model, tmp_path / "model.dot", show_shapes=True, show_layer_names=True)
    assert (tmp_path / "model.dot").read_text() == text
    with pytest.raises(ValueError, match="ends in"):
        utils.plot_model(model, tmp_path / "model.txt")
    if shutil.which("dot") is None:
        with pytest.raises(ImportError, match="Graphviz"):
            utils.plot_model(model, tmp_path / "model.png")


def test_sounds_of_folders(tmp_path):
    for kind, length in ("low", 4), ("high", 6):
        (tmp_path / kind).mkdir()
        for i in range(2):
            samples = np.float32([[math.sin(k)] for k in range(length + i)])
            ow.io.write_file(str(tmp_path / kind / f"{i}.wav"), ow.audio.encode_wav(samples, 16000))
    dataset = utils.audio_dataset_from_directory(tmp_path, shuffle=False, verbose=False)
    ((sounds, labels),) = dataset
    assert dataset.class_names == ["high", "low"]
    assert labels.numpy().tolist() == [0, 0, 1, 1]
    assert sounds.shape == (4, 7, 1)
    assert np.abs(sounds.numpy()[2, :, 0] - [0, math.sin(1), math.sin(2), math.sin(3), 0, 0, 0]).max() < 1e-4
    cut = utils.audio_dataset_from_directory(tmp_path, shuffle=False, verbose=False, output_sequence_length=3)
    assert next(iter(cut))[0].shape == (4, 3, 1)
    with pytest.raises(ValueError, match="sampling_rate"):
        utils.audio_dataset_from_directory(tmp_path, sampling_rate=8000)


def test_damaged_folders_of_datasets(tmp_path):
    with pytest.raises(ow.errors.NotFoundError, match=r"no dataset saved by Dataset\.save"):
        ow.data.Dataset.load(tmp_path)
    ow.data.Dataset.range(3).save(tmp_path)
    with pytest.raises(ValueError, match="has elements of type"):
        ow.data.Dataset.load(tmp_path, ow.TensorSpec([], ow.float32))
    (tmp_path / "elements").write_bytes((tmp_path / "elements").read_bytes()[:-9])
    with pytest.raises(ow.errors.DataLossError):
        list(ow.data.Dataset.load(tmp_path))
    (tmp_path / "spec.json").write_text("{}")
    with pytest.raises(ow.errors.DataLossError, match="damaged"):
        ow.data.Dataset.load(tmp_path)
