"""Networks of keras.applications have Keras's layers, and its outputs for the same weights."""

import json
import pathlib
import re

import numpy as np
import pytest

import networks
import opwright as ow
from opwright import keras
from thorough import sampled

RESULTS = json.loads(pathlib.Path(__file__).with_name("networks.json").read_text())


@pytest.mark.parametrize("name", sampled(networks.NAMES, len(networks.NAMES)))
def test_outputs(name):
    expected, result = RESULTS[name], networks.outputs(keras, name)
    assert result["weights"] == expected["weights"]
    without_numbers = [[re.sub(r"_\d+$", "", str(n)) for n in r["layers"]] for r in (result, expected)]
    assert without_numbers[0] == without_numbers[1]
    largest = np.abs(expected["output"]).max()
    np.testing.assert_allclose(result["output"], expected["output"], rtol=2e-3, atol=1e-5 * max(1, largest))


def test_pictures_as_networks_take_them():
    x = np.arange(24).reshape(2, 2, 2, 3)
    tf_mode = keras.applications.mobilenet_v2.preprocess_input(x)
    np.testing.assert_allclose(tf_mode, x / 127.5 - 1, rtol=1e-6)
    caffe = keras.applications.vgg16.preprocess_input(ow.constant(x, ow.float32)).numpy()
    np.testing.assert_allclose(caffe, x[..., ::-1] - [103.939, 116.779, 123.68], rtol=1e-5)
    torch = keras.applications.densenet.preprocess_input(x.astype("float32"))
    np.testing.assert_allclose(torch, (x / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225], rtol=1e-5)
    assert keras.applications.efficientnet.preprocess_input(x) is x


def test_weights_are_local_files(tmp_path):
    with pytest.raises(ValueError, match=r"nothing is downloaded.*save_weights"):
        keras.applications.MobileNet(weights="imagenet")
    options = {"alpha": 0.25, "input_shape": (32, 32, 3), "include_top": False, "pooling": "avg"}
    model = keras.applications.MobileNet(**options)
    path = tmp_path / "mobile.weights.h5"
    model.save_weights(path)
    again = keras.applications.MobileNet(weights=path, **options)
    x = np.ones((1, 32, 32, 3), "float32")
    np.testing.assert_array_equal(again(x), model(x))
    with pytest.raises(ValueError, match="at least 32x32"):
        keras.applications.VGG16(input_shape=(16, 16, 3))


def test_names_of_classes(tmp_path):
    path = tmp_path / "names.json"
    path.write_text(json.dumps({str(i): [f"n{i}", f"class {i}"] for i in range(1000)}))
    rows = np.zeros((1, 1000))
    rows[0, [7, 3]] = 0.7, 0.3
    decoded = keras.applications.imagenet_utils.decode_predictions(rows, 2, class_index=path)
    assert decoded == [[("n7", "class 7", 0.7), ("n3", "class 3", 0.3)]]
    with pytest.raises(ValueError, match="1000"):
        keras.applications.resnet.decode_predictions(rows[:, :5])
