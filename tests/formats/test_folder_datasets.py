"""`keras.utils` on files and sequences against Keras, recorded by keras_files.py."""

import json
import pathlib

import keras_files
import numpy as np
import pytest

import opwright as ow

RECORDED = json.loads(pathlib.Path(keras_files.__file__).with_suffix(".json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    keras_files.fill(path)
    return path


def compare(calls):
    for name, value in calls.items():
        if name.startswith("images"):
            for (image, label), (expected, expected_label) in zip(value, RECORDED[name], strict=True):
                np.testing.assert_allclose(image, expected, atol=2e-4)  # both rounded to 4 digits
                assert label == expected_label
        else:
            assert value == RECORDED[name], name


def test_sequences_and_directories(folder):
    compare(keras_files.every(ow.keras, folder))


def test_pictures(folder):
    pytest.importorskip("PIL")
    compare(keras_files.of_pictures(ow.keras, folder))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"validation_split": 0.5}, "subset"),
        ({"validation_split": 0.5, "subset": "training"}, "seed"),
        ({"validation_split": 2.0, "subset": "training"}, "between 0 and 1"),
        ({"label_mode": "other"}, "label_mode"),
        ({"class_names": ["pos", "none"]}, "class_names"),
        ({"labels": [1, 2]}, "len"),
        ({"labels": None, "class_names": ["pos"]}, "inferred"),
    ],
)
def test_arguments_of_directories(folder, options, says):
    with pytest.raises(ValueError, match=says):
        ow.keras.utils.text_dataset_from_directory(folder / "texts", verbose=False, **options)


def test_folders_without_files(folder, tmp_path):
    with pytest.raises(ValueError, match=r"no files in .* end in \.txt"):
        ow.keras.utils.text_dataset_from_directory(tmp_path, verbose=False)
    with pytest.raises(ValueError, match="does not exist"):
        ow.keras.utils.image_dataset_from_directory(tmp_path / "none", verbose=False)
    with pytest.raises(ValueError, match="color_mode"):
        ow.keras.utils.image_dataset_from_directory(folder / "images", color_mode="hsv")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ow.keras.utils.pad_sequences([1, 2]), "list of iterables"),
        (lambda: ow.keras.utils.pad_sequences([[1]], padding="middle"), "not understood"),
        (lambda: ow.keras.utils.pad_sequences([[1]], value="a"), "not compatible"),
        (lambda: ow.keras.utils.pad_sequences([[[1]], [[1, 2]]]), "different from expected"),
        (lambda: ow.keras.utils.img_to_array(np.zeros(3)), "Unsupported image shape"),
    ],
)
def test_arguments(call, says):
    with pytest.raises(ValueError, match=says):
        call()
