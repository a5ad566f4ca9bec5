"""Calls of `keras.utils` on files and sequences, for Keras and for this package: `every(keras, folder)`."""

import json
import pathlib
import struct

import numpy as np

SEQUENCES = [[1], [2, 3, 4], [], [5, 6]]


def bmp(pixels):
    """The bytes of an RGB image, bottom up, which needs no library."""
    height, width, _ = pixels.shape
    lines = [row.tobytes() + bytes(-3 * width % 4) for row in pixels[::-1, :, ::-1]]
    data = b"".join(lines)
    head = b"BM" + struct.pack("<IHHI", 54 + len(data), 0, 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(data), 0, 0, 0, 0) + data


def fill(folder):
    """Write texts and images of two classes."""
    draw = np.random.RandomState(0)
    for kind in ("pos", "neg"):
        for i in range(6):
            path = pathlib.Path(folder, "texts", kind, f"{i}.txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{kind} text {i}")
            path = pathlib.Path(folder, "images", kind, "deep" if i % 2 else "", f"{i}.bmp")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bmp(draw.randint(0, 256, (9, 7, 3)).astype(np.uint8)))


def every(keras, folder):
    utils, result = keras.utils, {}
    for name, options in {
        "all": {},
        "long": {"maxlen": 4, "padding": "post", "value": 9},
        "cut": {"maxlen": 2},
        "cut behind": {"maxlen": 2, "truncating": "post", "dtype": "float32"},
    }.items():
        result[f"pad {name}"] = np.asarray(utils.pad_sequences(SEQUENCES, **options)).tolist()
    result["pad rows"] = utils.pad_sequences([[[1, 2]], [[3, 4], [5, 6]]]).tolist()

    def names(dataset):
        return [pathlib.Path(path).relative_to(folder).as_posix() for path in dataset.file_paths]

    texts, images = f"{folder}/texts", f"{folder}/images"
    for name, options in {
        "in order": {"shuffle": False},
        "shuffled": {"seed": 3},
        "classes": {"class_names": ["pos", "neg"], "shuffle": False, "label_mode": "categorical"},
        "training": {"validation_split": 0.3, "subset": "training", "seed": 5},
        "validation": {"validation_split": 0.3, "subset": "validation", "seed": 5, "shuffle": False},
        "no labels": {"labels": None, "shuffle": False, "max_length": 5},
        "binary": {"label_mode": "binary", "shuffle": False, "batch_size": 5},
    }.items():
        length = options.pop("max_length", None)
        dataset = utils.image_dataset_from_directory(images, image_size=(2, 2), verbose=False, **options)
        result[f"files {name}"] = [names(dataset), getattr(dataset, "class_names", None)]
        if options.get("shuffle") is False:
            dataset = utils.text_dataset_from_directory(texts, max_length=length, verbose=False, **options)
            parts = [part if isinstance(part, tuple) else (part,) for part in dataset]
            values = [[np.asarray(tensor).tolist() for tensor in part] for part in parts]
            result[f"texts {name}"] = json.loads(json.dumps(values, default=bytes.decode))
    both = utils.image_dataset_from_directory(images, validation_split=0.25, subset="both", seed=1, verbose=False)
    result["files both"] = [names(part) for part in both]
    for name, options in {
        "resized": {"image_size": (4, 5)},
        "nearest": {"image_size": (11, 6), "interpolation": "nearest"},
    }.items():
        dataset = utils.image_dataset_from_directory(images, shuffle=False, verbose=False, batch_size=None, **options)
        result[f"images {name}"] = [[np.asarray(x).round(4).tolist(), int(y)] for x, y in dataset.take(3)]
        result[f"files {name}"] = names(dataset)
    return result


def of_pictures(keras, folder):
    """Calls that need Pillow."""
    utils, path = keras.utils, next(pathlib.Path(folder, "images", "neg").glob("0.bmp"))
    result = {}
    for name, options in {
        "as it is": {},
        "gray": {"color_mode": "grayscale", "target_size": (4, 4)},
        "cut": {"target_size": (3, 5), "interpolation": "bilinear", "keep_aspect_ratio": True},
        "with alpha": {"color_mode": "rgba"},
    }.items():
        result[f"picture {name}"] = utils.img_to_array(utils.load_img(path, **options)).tolist()
    ramp = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    result["scaled"] = utils.img_to_array(utils.array_to_img(ramp)).tolist()
    result["as numbers"] = utils.img_to_array(utils.array_to_img(ramp, scale=False), dtype="uint8").tolist()
    utils.save_img(f"{folder}/saved.png", ramp)
    result["saved"] = utils.img_to_array(utils.load_img(f"{folder}/saved.png"), "channels_first").tolist()
    return result


if __name__ == "__main__":  # with a Python that has TensorFlow, Keras and Pillow
    import tempfile

    import keras

    with tempfile.TemporaryDirectory() as root:
        fill(root)
        figures = {"made_with": f"keras {keras.__version__}", **every(keras, root), **of_pictures(keras, root)}
    file = pathlib.Path(__file__).with_name("keras_files.json")
    file.write_text(json.dumps(figures, separators=(",", ":")) + "\n")
