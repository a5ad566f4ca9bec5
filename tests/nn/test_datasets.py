"""`keras.datasets` from files as Keras keeps them, written here; layers MelSpectrogram and Pipeline."""

import gzip
import io
import json
import os
import pickle
import tarfile

import numpy as np
import pytest
from opwright.keras.datasets import (
    boston_housing,
    california_housing,
    cifar10,
    cifar100,
    fashion_mnist,
    imdb,
    mnist,
    reuters,
)

import opwright as ow
from opwright import keras


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    (tmp_path / "datasets" / "fashion-mnist").mkdir(parents=True)
    return tmp_path / "datasets"


def objects(lists):
    array = np.empty(len(lists), object)
    array[:] = lists
    return array


def test_pictures(folder):
    x, y = np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28), np.uint8([3, 7])
    np.savez(folder / "mnist.npz", x_train=x, y_train=y, x_test=x[:1], y_test=y[:1])
    (x_train, y_train), (x_test, y_test) = mnist.load_data()
    assert np.array_equal(x_train, x)
    assert np.array_equal(y_train, y)
    assert x_test.shape == (1, 28, 28)
    assert y_test == [3]
    for part, count in (("train", 2), ("t10k", 1)):
        for name, header, content in (("images-idx3", 16, x[:count]), ("labels-idx1", 8, y[:count])):
            with gzip.open(folder / "fashion-mnist" / f"{part}-{name}-ubyte.gz", "wb") as file:
                file.write(bytes(header) + content.tobytes())
    (x_train, y_train), (x_test, _) = fashion_mnist.load_data()
    assert np.array_equal(x_train, x)
    assert np.array_equal(y_train, y)
    assert np.array_equal(x_test, x[:1])
    (folder / "fashion-mnist" / "t10k-images-idx3-ubyte.gz").write_bytes(b"no gzip")
    with pytest.raises(ow.errors.DataLossError, match="damaged"):
        fashion_mnist.load_data()


def write_archive(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            data = pickle.dumps(content, protocol=2)
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def test_pictures_in_pickles(folder):
    pixels = np.arange(2 * 3072, dtype=np.int64).astype(np.uint8).reshape(2, 3072)
    batch = {b"data": pixels, b"labels": [1, 9], b"fine_labels": [4, 5], b"coarse_labels": [0, 1]}
    names = [f"cifar-10-batches-py/data_batch_{i}" for i in range(1, 6)] + ["cifar-10-batches-py/test_batch"]
    write_archive(folder / "cifar10.tar.gz", dict.fromkeys(names, batch))
    keras.utils.get_file("cifar-10-batches-py-target", str(folder / "cifar10.tar.gz"), extract=True)
    (x_train, y_train), (x_test, y_test) = cifar10.load_data()
    assert x_train.shape == (10, 32, 32, 3)
    assert y_train[:2].tolist() == [[1], [9]]
    assert y_test.shape == (2, 1)
    assert np.array_equal(x_test[1].transpose(2, 0, 1).reshape(-1), pixels[1])
    write_archive(folder / "cifar100.tar.gz", {f"cifar-100-python/{n}": batch for n in ("train", "test")})
    keras.utils.get_file("cifar-100-python-target", str(folder / "cifar100.tar.gz"), extract=True)
    assert cifar100.load_data("coarse")[0][1].tolist() == [[0], [1]]
    with pytest.raises(ValueError, match="label_mode"):
        cifar100.load_data("middle")


def test_pickles_run_no_code(folder, tmp_path):
    class Command:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    texts = objects([[1, 2], [3]])
    np.savez(folder / "imdb.npz", x_train=objects([Command()]), y_train=[1], x_test=texts, y_test=[0, 1])
    with pytest.raises(ow.errors.DataLossError, match=r"mkdir"):
        imdb.load_data()
    assert not (tmp_path / "made").exists()
    (folder / "mnist.npz").write_bytes(b"PK no archive")
    with pytest.raises(ow.errors.DataLossError, match="damaged"):
        mnist.load_data()


def test_texts_as_numbers(folder):
    train, test = objects([[1, 5, 9], [2, 2], [7]]), objects([[3, 4, 5, 6], [1]])
    np.savez(folder / "imdb.npz", x_train=train, y_train=[1, 0, 1], x_test=test, y_test=[0, 1])
    (x, y), (x_test, _) = imdb.load_data(num_words=9, seed=7)
    random = np.random.RandomState(7)
    order, other = np.arange(3), np.arange(2)
    random.shuffle(order)
    random.shuffle(other)
    assert list(x) == [[1, *(w + 3 if w + 3 < 9 else 2 for w in train[i])] for i in order]
    assert list(x_test) == [[1, *(w + 3 if w + 3 < 9 else 2 for w in test[i])] for i in other]
    assert y.tolist() == [[1, 0, 1][i] for i in order]
    (short, _), _ = imdb.load_data(maxlen=4, start_char=None, index_from=0, oov_char=None, skip_top=2, seed=7)
    assert list(short) == [[w for w in train[i] if 2 <= w < 9] for i in order]
    with pytest.raises(ValueError, match="Increase maxlen"):
        imdb.load_data(maxlen=1)
    (folder / "imdb_word_index.json").write_text(json.dumps({"the": 1}))
    assert imdb.get_word_index() == {"the": 1}
    np.savez(folder / "reuters.npz", x=train, y=[4, 5, 6])
    (x, y), (x_test, y_test) = reuters.load_data(test_split=0.4, oov_char=None, start_char=None, index_from=0)
    assert len(x) == 1
    assert len(x_test) == 2
    assert sorted([*y, *y_test]) == [4, 5, 6]
    assert reuters.get_label_names()[3] == "earn"
    assert len(reuters.get_label_names()) == 46


def test_tables(folder):
    x, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    np.savez(folder / "boston_housing.npz", x=x, y=y)
    np.savez(folder / "california_housing.npz", x=x, y=y)
    order = np.arange(10)
    np.random.RandomState(113).shuffle(order)
    for load in (boston_housing.load_data, california_housing.load_data):
        (x_train, y_train), (x_test, y_test) = load()
        assert y_train.tolist() == y[order][:8].tolist()
        assert np.array_equal(x_test, x[order][8:])
        assert len(y_test) == 2
        assert x_train.shape == (8, 2)
    with pytest.raises(ValueError, match="test_split"):
        boston_housing.load_data(test_split=1.0)
    with pytest.raises(ValueError, match="version"):
        california_housing.load_data("middle")


def test_a_missing_file_is_an_error_with_its_path(folder):
    with pytest.raises(FileNotFoundError, match=r"mnist\.npz"):
        mnist.load_data()


def test_mel_spectrogram_is_the_logarithm_of_bands_of_power():
    x = np.random.RandomState(0).randn(2, 4000).astype("f")
    layer = keras.layers.MelSpectrogram(fft_length=512, sequence_stride=128, num_mel_bins=40)
    y = np.asarray(layer(x))
    padded = np.pad(x.astype(np.float64), [(0, 0), (256, 256)], mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(512) / 512)
    frames = np.stack([padded[:, i * 128 : i * 128 + 512] for i in range(32)], 1)
    power = np.abs(np.fft.rfft(frames * window)) ** 2
    mel = 1127 * np.log1p(np.linspace(0, 8000, 257)[1:, None] / 700)
    edges = np.linspace(1127 * np.log1p(20 / 700), 1127 * np.log1p(8000 / 700), 42)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    bands = np.maximum(0, np.minimum((mel - low) / (middle - low), (high - mel) / (high - middle)))
    expected = 10 * np.log10(np.maximum(power @ np.pad(bands, [(1, 0), (0, 0)]), 1e-10))
    expected = np.maximum(expected, expected.max() - 80).transpose(0, 2, 1)
    assert y.shape == (2, 40, 32)
    np.testing.assert_allclose(y, expected, atol=2e-3)
    again = keras.layers.MelSpectrogram.from_config(layer.get_config())
    np.testing.assert_array_equal(again(x), y)
    with pytest.raises(ValueError, match="fft_length"):
        keras.layers.MelSpectrogram(fft_length=256, sequence_length=512)


def test_a_pipeline_is_one_layer():
    layer = keras.layers.Pipeline([keras.layers.Rescaling(2.0), keras.layers.CenterCrop(2, 2)])
    x = np.arange(48, dtype="f").reshape(1, 4, 4, 3)
    np.testing.assert_array_equal(layer(x), 2 * x[:, 1:3, 1:3])
    again = keras.layers.Pipeline.from_config(layer.get_config())
    assert [type(step).__name__ for step in again.layers] == ["Rescaling", "CenterCrop"]
    (mapped,) = ow.data.Dataset.from_tensors(x).map(layer)
    np.testing.assert_array_equal(mapped, 2 * x[:, 1:3, 1:3])
    with pytest.raises(ValueError, match="layers"):
        keras.layers.Pipeline.from_config({})
