"""The models of this example as libraries: `python models.py FOLDER [TARGET [FORMAT]]` writes FOLDER/shapes_f32 and
_int8: for classify.c, with the target wasm32-simd128 for page.html, with the format arduino for classify/classify.ino.

A classifier of small images: is the bright region on the left, on the right, above or below? Its weights are computed,
not trained: the filters of the first layer are averages, those of the second differences.
"""

import sys
from pathlib import Path

import numpy as np

import opwright as ow

SIZE = 16


def classifier():
    """Return the function: one image [1, 16, 16, 1] in [0, 1] to the scores of four classes."""
    smoothing = np.full((3, 3, 1, 4), 1 / 9, np.float32)
    y, x = np.mgrid[-1:1:8j, -1:1:8j].astype(np.float32)
    sides = np.stack([-x, x, -y, y], -1)[..., None, :] / 16  # left, right, above, below
    product = np.ascontiguousarray(np.broadcast_to(sides, (8, 8, 4, 4)).reshape(8 * 8 * 4, 4))

    @ow.function(input_signature=[ow.TensorSpec([1, SIZE, SIZE, 1], ow.float32, name="image")])
    def classify(image):
        features = ow.nn.relu(ow.nn.conv2d(image, smoothing, 2, "SAME"))
        return {"scores": ow.nn.softmax(ow.reshape(features, [1, -1]) @ product)}

    return classify


def samples(count: int) -> list[list[np.ndarray]]:
    """Return images with a bright band at one of the sides, for the ranges of the quantized model."""
    rng = np.random.default_rng(0)
    images = rng.uniform(0, 0.2, (count, 1, SIZE, SIZE, 1)).astype(np.float32)
    for number, image in enumerate(images):
        width = rng.integers(3, 8)
        band = slice(width) if number % 2 else slice(SIZE - width, SIZE)
        image[0, :, band] = 1
        if number % 4 < 2:
            image[0] = image[0].swapaxes(0, 1).copy()
    return [[image] for image in images]


def main(folder: str, target: str = "host", format: str | None = None) -> None:
    """Convert both forms and build their libraries."""
    function = classifier()
    for kind in ("f32", "int8"):
        converter = ow.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()], function)
        if kind == "int8":
            converter.optimizations = [ow.lite.Optimize.DEFAULT]
            converter.representative_dataset = lambda: samples(50)
            converter.target_spec.supported_ops = [ow.lite.OpsSet.TFLITE_BUILTINS_INT8]
            converter.inference_input_type = converter.inference_output_type = ow.int8
        name = f"shapes_{kind}"
        path = Path(folder) / name
        path.mkdir(parents=True, exist_ok=True)
        content = converter.convert()
        (path / f"{name}.tflite").write_bytes(content)
        library = ow.aot.build(content, target, path, name=name, format=format)
        print(f"{name}: code {library.code} bytes, weights {library.weights}, arena {library.arena}")


if __name__ == "__main__":
    main(*sys.argv[1:])
