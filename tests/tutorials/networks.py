"""Networks of `keras.applications` with weights by rule, and what Keras computes with them.

`outputs(keras, name)` returns numbers of a network of either library. With a Python that has Keras, `python
tests/tutorials/networks.py [NAME ...]` renews networks.json.
"""

import json
import pathlib
import sys

import numpy as np

SMALL = {"MobileNet": {"alpha": 0.25}, "MobileNetV2": {"alpha": 0.35}}
NAMES = (
    *("MobileNet", "EfficientNetB0", "MobileNetV2", "ResNet50", "DenseNet121", "ResNet50V2", "Xception", "VGG16"),
    *("VGG19", "EfficientNetB1", "EfficientNetB3", "DenseNet169", "ResNet101", "ResNet101V2"),
    *("InceptionV3", "InceptionResNetV2", "MobileNetV3Small", "MobileNetV3Large", "EfficientNetV2B0"),
    *("EfficientNetV2B3", "EfficientNetV2S", "ConvNeXtTiny", "ConvNeXtSmall", "NASNetMobile"),
)
LOGITS = (
    *("ResNet50", "ResNet50V2", "Xception", "ResNet101", "ResNet101V2", "MobileNetV3Small", "MobileNetV3Large"),
    *("NASNetMobile", "InceptionResNetV2"),
)
"""Networks that with these weights are certain of a class, so that probabilities would tell little."""


def weight(index, variable):
    """Return values of a weight, small enough that deep networks neither vanish nor overflow."""
    rng = np.random.default_rng(index)
    shape = tuple(variable.shape)
    if "variance" in variable.path or "gamma" in variable.path:
        return rng.uniform(0.5, 1.5, shape).astype("float32")
    if len(shape) < 2:
        return (rng.normal(size=shape) * 0.1).astype("float32") if variable.dtype != "int64" else np.zeros(shape)
    fan_in = shape[0] * shape[1] if "depthwise" in variable.path else np.prod(shape[:-1])
    return (rng.standard_normal(shape, dtype="float32") * np.float32(np.sqrt(2 / fan_in))).astype("float32")


def outputs(keras, name):
    """Return the number of weights of a network, the names of its first and last layers, and outputs."""
    size = 75 if name in ("Xception", "InceptionV3", "InceptionResNetV2") else 64
    options = {"weights": None, "input_shape": (size, size, 3), **SMALL.get(name, {})}
    if name in LOGITS:
        options["classifier_activation"] = None
    model = getattr(keras.applications, name)(classes=5, **options)
    model.set_weights([weight(i, v) for i, v in enumerate(model.weights)])
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 255 if name.startswith("Eff") else 1, (2, size, size, 3)).astype("float32")
    y = np.asarray(model(x, training=False))
    names = [layer.name for layer in model.layers]
    return {"weights": model.count_params(), "layers": [len(names), *names[1:4], *names[-3:]], "output": y.tolist()}


if __name__ == "__main__":
    import keras

    path = pathlib.Path(__file__).with_name("networks.json")
    results = json.loads(path.read_text()) if path.exists() else {}
    results["made_with"] = f"keras {keras.__version__}"
    for name in sys.argv[1:] or NAMES:
        results[name] = outputs(keras, name)
    path.write_text(json.dumps(results) + "\n")
