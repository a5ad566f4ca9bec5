"""Writes tensorflow_records.json: bytes that TensorFlow writes, and values that it reads.

Run it with a Python that has TensorFlow and Pillow: python tests/formats/make_tensorflow_records.py
"""

import base64
import io
import json
import pathlib
import struct
import tempfile
import zlib

import numpy as np
import tensorflow as tf
from PIL import Image

HERE = pathlib.Path(__file__).parent
F, I, B = tf.train.FloatList, tf.train.Int64List, tf.train.BytesList


def text(data):
    return base64.b64encode(data).decode()


def plain(value):
    """Return an array as {"dtype", "shape", "values"}: strings and raw bytes in base64."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    array = np.array(value, object) if isinstance(value, bytes) else np.asarray(value)
    if array.dtype == object:
        values = [text(item) for item in array.reshape(-1)]
        return {"dtype": "string", "shape": list(array.shape), "values": values}
    return {"dtype": array.dtype.name, "shape": list(array.shape), "bytes": text(array.tobytes())}


# ---- records and messages ------------------------------------------------------------------------------------------

RECORDS = [b"", b"a", b"opwright" * 40, bytes(range(256))]


def records():
    result = {}
    for kind in ("", "GZIP", "ZLIB"):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/x"
            with tf.io.TFRecordWriter(path, kind) as writer:
                for record in RECORDS:
                    writer.write(record)
            result[kind] = text(pathlib.Path(path).read_bytes())
    return {"records": [text(record) for record in RECORDS], "files": result}


def feature(**kinds):
    (item,) = kinds.items()
    make = {"bytes": ("bytes_list", B), "floats": ("float_list", F), "ints": ("int64_list", I)}[item[0]]
    return tf.train.Feature(**{make[0]: make[1](value=item[1])})


def example(**features):
    return tf.train.Example(features=tf.train.Features(feature=features))


EXAMPLES = {
    "empty": tf.train.Example(),
    "no features": example(),
    "unset feature": example(a=tf.train.Feature()),
    "mixed": example(
        name=feature(bytes=[b"x", b"", b"\xff\0"]),
        weight=feature(floats=[0.1, -2.5, float("inf"), 1e-42]),
        number=feature(ints=[0, 1, -1, 2**63 - 1, -(2**63), 300]),
        none=feature(ints=[]),
    ),
    "row": example(age=feature(ints=[37]), pair=feature(floats=[1.5, 2.5]), name=feature(bytes=[b"ada"])),
    "row 2": example(age=feature(ints=[5]), pair=feature(floats=[3.5, 4.5]), tags=feature(bytes=[b"p", b"q"])),
}
SEQUENCE = tf.train.SequenceExample(
    context=tf.train.Features(feature={"id": feature(ints=[7]), "title": feature(bytes=[b"t"])}),
    feature_lists=tf.train.FeatureLists(
        feature_list={
            "tokens": tf.train.FeatureList(feature=[feature(ints=[1, 2]), feature(ints=[3, 4]), feature(ints=[5, 6])]),
            "words": tf.train.FeatureList(feature=[feature(bytes=[b"a"]), feature(bytes=[b"b"])]),
            "none": tf.train.FeatureList(),
        }
    ),
)
SHORT = tf.train.SequenceExample(
    context=tf.train.Features(feature={"id": feature(ints=[8])}),
    feature_lists=tf.train.FeatureLists(feature_list={"tokens": tf.train.FeatureList(feature=[feature(ints=[9, 10])])}),
)


def wire(message):
    return text(message.SerializeToString(deterministic=True))


def parsing():
    """Return values, or the class of the error, of parse_example and its kin."""
    row, row2 = (EXAMPLES[k].SerializeToString(deterministic=True) for k in ("row", "row 2"))
    fixed, varying = tf.io.FixedLenFeature, tf.io.FixedLenSequenceFeature
    specs = {
        "dense": {"age": fixed([], tf.int64), "pair": fixed([2], tf.float32)},
        "default": {"name": fixed([], tf.string, b"none"), "pair": fixed([2, 1], tf.float32)},
        "default vector": {"missing": fixed([2], tf.int64, [8, 9]), "age": fixed([1], tf.int64)},
        "padded": {"tags": varying([], tf.string, True), "pair": varying([], tf.float32, True, -1.0)},
        "padded pairs": {"pair": varying([2], tf.float32, True), "none": varying([], tf.int64, True)},
        "missing": {"name": fixed([], tf.string)},
        "another type": {"age": fixed([], tf.float32)},
        "another size": {"pair": fixed([3], tf.float32)},
        "uneven": {"tags": varying([3], tf.string, True)},
    }
    result = {}
    for name, spec in specs.items():
        for which, call in (
            ("single", lambda s: tf.io.parse_single_example(row2, s)),
            ("batch", lambda s: tf.io.parse_example([row, row2], s)),
        ):
            try:
                result[f"{which} {name}"] = plain({k: v.numpy() for k, v in call(spec).items()})
            except tf.errors.OpError as error:
                result[f"{which} {name}"] = type(error).__name__
    long, short = (m.SerializeToString(deterministic=True) for m in (SEQUENCE, SHORT))
    context = {"id": fixed([], tf.int64), "title": fixed([], tf.string, b"-")}
    sequences = {"tokens": varying([2], tf.int64), "words": varying([], tf.string, allow_missing=True)}
    single = tf.io.parse_single_sequence_example(long, context, sequences)
    result["sequence single"] = [plain({k: v.numpy() for k, v in part.items()}) for part in single]
    batch = tf.io.parse_sequence_example([long, short], context, sequences)
    result["sequence batch"] = [plain({k: v.numpy() for k, v in part.items()}) for part in batch]
    return result


NUMBERS = (
    *("float16", "float32", "float64", "int8", "int16", "int32"),
    *("int64", "uint8", "uint16", "uint32", "uint64", "complex64"),
)
TENSORS = {
    **{name: np.arange(6).reshape(2, 3).astype(name) for name in NUMBERS},
    "bool": np.array([True, False, True]),
    "scalar": np.float32(1.5),
    "none": np.zeros((0, 3), np.int32),
    "string": np.array([[b"a", b""], [b"\xff\0", b"word"]], object),
    "negative": np.array([-1, -(2**31)], np.int32),
}


def tensors():
    protos = {name: tf.io.serialize_tensor(tf.constant(value)).numpy() for name, value in TENSORS.items()}
    result = {name: {"proto": text(protos[name]), "value": plain(value)} for name, value in TENSORS.items()}
    bfloat = tf.cast([1.0, -2.5], tf.bfloat16)
    result["bfloat16"] = {
        "proto": text(tf.io.serialize_tensor(bfloat).numpy()),
        "value": {"dtype": "bfloat16", "shape": [2], "bytes": text(bfloat.numpy().tobytes())},
    }
    for name in (*NUMBERS, "bool", "complex128"):  # the other form: a field of values, of which the last is repeated
        value = True if name == "bool" else 3
        proto = tf.compat.v1.make_tensor_proto(value, name, [2, 2]).SerializeToString(deterministic=True)
        result[f"{name} values"] = {"proto": text(proto), "value": plain(tf.io.parse_tensor(proto, name).numpy())}
    return result


# ---- images ----------------------------------------------------------------------------------------------------------


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def palette_png(transparent):
    rows = np.arange(12).reshape(3, 4).astype(np.uint8) % 4
    data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    palette = bytes([255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30])
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 3, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", palette)
        + (chunk(b"tRNS", bytes([255, 128, 0])) if transparent else b"")
        + chunk(b"IDAT", data)
        + chunk(b"IEND", b"")
    )


def bmp(pixels, bottom_up=True):
    height, width, channels = pixels.shape
    order = pixels[..., [2, 1, 0, 3][:channels]] if channels > 2 else pixels
    lines = [row.tobytes() + bytes(-len(row.tobytes()) % 4) for row in order]
    data = b"".join(lines[::-1] if bottom_up else lines)
    palette = b"".join(bytes([i, i, i, 0]) for i in range(256)) if channels == 1 else b""
    offset = 54 + len(palette)
    head = b"BM" + struct.pack("<IHHI", offset + len(data), 0, 0, offset)
    size = height if bottom_up else -height
    return (
        head + struct.pack("<IiiHHIIiiII", 40, width, size, 1, 8 * channels, 0, len(data), 0, 0, 0, 0) + palette + data
    )


def smooth(height, width, channels, most=255):
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    return (most * (0.5 + 0.5 * np.sin(0.3 * y + 0.2 * x + c))).round()


def gif(frames):
    file = io.BytesIO()
    images = [Image.fromarray(frame).quantize(8) for frame in frames]
    images[0].save(file, "GIF", save_all=True, append_images=images[1:], duration=100, loop=0)
    return file.getvalue()


def images():
    files, decoded = {}, {}
    for channels in (1, 2, 3, 4):
        for dtype in ("uint8", "uint16"):
            pixels = smooth(5, 7, channels, np.iinfo(dtype).max).astype(dtype)
            files[f"png {dtype} {channels}"] = tf.io.encode_png(pixels).numpy()
    files["png palette"], files["png palette alpha"] = palette_png(False), palette_png(True)
    files["jpeg 1"] = tf.io.encode_jpeg(smooth(17, 23, 1).astype(np.uint8)).numpy()
    files["jpeg 3"] = tf.io.encode_jpeg(smooth(17, 23, 3).astype(np.uint8)).numpy()
    files["jpeg full"] = tf.io.encode_jpeg(
        smooth(17, 23, 3).astype(np.uint8), quality=80, chroma_downsampling=False
    ).numpy()
    files["jpeg progressive"] = tf.io.encode_jpeg(smooth(17, 23, 3).astype(np.uint8), progressive=True).numpy()
    files["bmp 3"], files["bmp down"] = (
        bmp(smooth(5, 6, 3).astype(np.uint8)),
        bmp(smooth(5, 6, 3).astype(np.uint8), False),
    )
    files["bmp 4"], files["bmp 1"] = bmp(smooth(5, 6, 4).astype(np.uint8)), bmp(smooth(5, 6, 1).astype(np.uint8))
    files["gif"] = gif([smooth(6, 9, 3).astype(np.uint8), smooth(6, 9, 3).astype(np.uint8)[::-1]])
    for name, data in files.items():
        kind = name.split()[0]
        for channels in (0, 1, 3, 4) if kind == "png" else (0, 1, 3) if kind == "jpeg" else (0,):
            calls = {f"{name} -> {channels}": lambda d, c: tf.io.decode_image(d, c)}
            if kind == "png":
                calls[f"{name} -> {channels} uint16"] = lambda d, c: tf.io.decode_png(d, c, tf.uint16)
            if kind == "jpeg":  # Pillow has no other transform
                exact = {"dct_method": "INTEGER_ACCURATE"}
                calls = {f"{name} -> {channels}": lambda d, c, e=exact: tf.io.decode_jpeg(d, c, **e)}
                if channels == 0:
                    calls[f"{name} ratio 2"] = lambda d, c, e=exact: tf.io.decode_jpeg(d, c, ratio=2, **e)
                    calls[f"{name} crop"] = lambda d, c, e=exact: tf.io.decode_and_crop_jpeg(d, [2, 3, 10, 8], **e)
                    calls[f"{name} shape"] = lambda d, c: tf.io.extract_jpeg_shape(d)
            for key, call in calls.items():
                try:
                    decoded[key] = plain(call(data, channels).numpy())
                except tf.errors.OpError as error:
                    decoded[key] = type(error).__name__
    decoded["float"] = plain(tf.io.decode_image(files["png uint8 3"], 3, tf.float32).numpy())
    return {"files": {name: text(data) for name, data in files.items()}, "decoded": decoded}


# ---- text, raw bytes and sound ---------------------------------------------------------------------------------------

CSV = {
    "types": (["1,2.5,x,4", '3,4,"a,b",5'], [[0], [0.0], [b""], tf.constant([0], tf.int64)], {}),
    "defaults": (["1,,", ",2,z"], [[7], [8.5], [b"d"]], {}),
    "quotes": (['"a""b","","x\ny"'], [[b""], [b"d"], [b""]], {}),
    "delimiter": (["1;2"], [[0], [0]], {"field_delim": ";"}),
    "no quotes": (['"a",b'], [[b""], [b""]], {"use_quote_delim": False}),
    "na": (["NA,1"], [[5], [0]], {"na_value": "NA"}),
    "select": (["a,2,c,4"], [[0], [0]], {"select_cols": [1, 3]}),
    "scalar": ("1,2", [[0], [0.0]], {}),
    "spaces": ([" 1 , 2 "], [[0], [0.0]], {}),
    "carriage": (["1,2\r\n"], [[0], [b""]], {}),
    "too few": (["1,2"], [[0], [0], [0]], {}),
    "too many": (["1,2,3"], [[0], [0]], {}),
    "no number": (["a,2"], [[0], [0]], {}),
    "required": ([",2"], [tf.constant([], tf.int32), [0]], {}),
    "open quote": (['"a,2'], [[b""], [0]], {}),
    "inner quote": (['a"b,2'], [[b""], [0]], {}),
    "after quote": (['"a"b,2'], [[b""], [0]], {}),
    "overflow": (["99999999999"], [[0]], {}),
    "empty": ([""], [[3]], {}),
    "trailing": (["1,"], [[0], [b"d"]], {}),
}


def csv():
    result = {}
    for name, (lines, defaults, options) in CSV.items():
        kinds = [(d.dtype.name, d.numpy().tolist()) if tf.is_tensor(d) else (None, d) for d in defaults]
        kinds = [(k, [v.decode() if isinstance(v, bytes) else v for v in values]) for k, values in kinds]
        try:
            values = plain([column.numpy() for column in tf.io.decode_csv(lines, defaults, **options)])
        except tf.errors.OpError as error:
            values = type(error).__name__
        result[name] = {"lines": lines, "defaults": kinds, "options": options, "values": values}
    return result


def raw():
    data = bytes(range(1, 13))
    cases = {
        f"{name} {little}": plain(tf.io.decode_raw([data, data[::-1]], tf.as_dtype(name), little).numpy())
        for name in ("uint8", "int16", "float32", "int32", "uint16")
        for little in (True, False)
    }
    cases["fixed 8"] = plain(tf.io.decode_raw([data, data[:3]], tf.int16, fixed_length=8).numpy())
    words = [b"", b"a", b"ab", b"abc", bytes([255, 254, 253, 252])]
    base = {str(pad): [text(v) for v in tf.io.encode_base64(words, pad).numpy()] for pad in (False, True)}
    return {"data": text(data), "cases": cases, "words": [text(w) for w in words], "base64": base}


def sound():
    samples = np.array([[0.0, 0.5], [1.0, -1.0], [2.0, -2.0], [0.1, -0.1], [1e-5, 0.99999]], np.float32)
    result = {}
    for channels in (1, 2):
        data = tf.audio.encode_wav(samples[:, :channels], 16000).numpy()
        result[f"{channels}"] = {"file": text(data), "samples": plain(samples[:, :channels])}
        for desired in ((-1, -1), (1, -1), (2, -1), (-1, 3), (-1, 8)):
            try:
                audio, rate = tf.audio.decode_wav(data, *desired)
                result[f"{channels}"][str(desired)] = [plain(audio.numpy()), int(rate)]
            except tf.errors.OpError as error:
                result[f"{channels}"][str(desired)] = type(error).__name__
    return result


if __name__ == "__main__":
    figures = {
        "made_with": f"tensorflow {tf.__version__}",
        "records": records(),
        "examples": {name: wire(message) for name, message in EXAMPLES.items()},
        "texts": {name: str(message) for name, message in EXAMPLES.items()},
        "sequences": {"long": wire(SEQUENCE), "short": wire(SHORT)},
        "parsing": parsing(),
        "tensors": tensors(),
        "images": images(),
        "csv": csv(),
        "raw": raw(),
        "sound": sound(),
    }
    (HERE / "tensorflow_records.json").write_text(json.dumps(figures, indent=0) + "\n")
