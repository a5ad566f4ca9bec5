"""Files, gfile, messages and codecs: what goes round, errors by name, and damaged bytes."""

import os
import random
import struct

import numpy as np
import pytest

import opwright as ow
from opwright.core import extras
from opwright.io.audio import wav_bytes


def test_whole_files(tmp_path):
    path = tmp_path / "a" / "b.txt"
    ow.io.write_file(str(path), "text")
    assert path.read_bytes() == ow.io.read_file(path).numpy() == b"text"

    @ow.function
    def appended(name, extra):
        ow.io.write_file(name, ow.io.read_file(name) + extra)
        return ow.io.read_file("file://" + name)

    assert appended(str(path), b"\xff").numpy() == b"text\xff"
    assert appended(str(path), b"!").numpy() == b"text\xff!"  # each run reads again
    names = [str(tmp_path / n) for n in ("x1", "x2", ".x3", "y")]
    for name in names:
        ow.io.write_file(name, "")
    assert ow.io.matching_files(str(tmp_path / "x?")).numpy().tolist() == [n.encode() for n in names[:2]]
    both = ow.io.matching_files([str(tmp_path / "*x?"), str(tmp_path / "y")])
    assert both.numpy().tolist() == sorted(n.encode() for n in names)
    assert ow.io.matching_files(str(tmp_path / "none")).shape == (0,)
    assert next(iter(ow.data.Dataset.from_tensors(str(path)).map(ow.io.read_file))).numpy() == b"text\xff!"
    with pytest.raises(ow.errors.NotFoundError, match="none; No such file"):
        ow.io.read_file(str(tmp_path / "none"))
    with pytest.raises(ow.errors.NotFoundError, match="No such file"):
        list(ow.data.Dataset.from_tensors(str(tmp_path / "none")).map(ow.io.read_file))
    with pytest.raises(ow.errors.FailedPreconditionError, match="directory"):
        ow.io.read_file(str(tmp_path))
    with pytest.raises(ow.errors.UnimplementedError, match="scheme 'gs'"):
        ow.io.read_file("gs://bucket/x")
    with pytest.raises(ow.errors.InvalidArgumentError, match="rank 0"):
        ow.io.read_file(["a", "b"])
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"string[\s\S]*int32"):
        ow.io.read_file(1)


def test_gfile(tmp_path):
    g = ow.io.gfile
    folder = g.join(str(tmp_path), "d", "e")
    g.makedirs(folder)
    g.makedirs(folder)
    path = g.join(folder, "f.txt")
    with g.GFile(path, "w") as file:
        file.write("one\ntwo\n")
        file.write("drei: \u00fc")
        assert file.size() == 16
    with g.GFile(path) as file:
        assert (file.readline(), file.tell(), list(file)) == ("one\n", 4, ["two\n", "drei: \u00fc"])
        file.seek(4)
        assert file.read(3) == "two"
    assert g.GFile(path, "rb").readlines() == [b"one\n", b"two\n", b"drei: \xc3\xbc"]
    with g.GFile(path, "ab") as file:
        file.write(b"!")
    assert g.stat(path).length == os.path.getsize(path) == 17
    assert g.stat(folder).is_directory
    assert (g.exists(path), g.isdir(path), g.isdir(folder), g.listdir(folder)) == (True, False, True, ["f.txt"])
    assert g.glob(g.join(str(tmp_path), "*", "*", "*.txt")) == [path]
    other = g.join(folder, "g.txt")
    g.copy(path, other)
    with pytest.raises(ow.errors.AlreadyExistsError, match=r"g\.txt"):
        g.copy(path, other)
    g.rename(other, path, overwrite=True)
    assert [files for _, _, files in g.walk(str(tmp_path))] == [[], [], ["f.txt"]]
    for call in (
        lambda: g.remove(other),
        lambda: g.GFile(other).read(),
        lambda: g.stat(other),
        lambda: g.listdir(other),
    ):
        with pytest.raises(ow.errors.NotFoundError):
            call()
    with pytest.raises(ow.errors.FailedPreconditionError):
        g.remove(folder)
    with pytest.raises(ow.errors.InvalidArgumentError, match="mode"):
        g.GFile(path, "x")
    g.remove(path)
    g.rmtree(g.join(str(tmp_path), "d"))
    assert not g.exists(folder)


# ---- messages --------------------------------------------------------------------------------------------------------


def test_messages_as_programs_write_them():
    example = ow.train.Example()
    example.features.feature["label"].int64_list.value.extend([1, 2])
    example.features.feature["name"].bytes_list.value.append(b"x")
    example.features.feature["weight"].float_list.value[:] = [0.1]
    assert example.features.feature["weight"].float_list.value == [float(np.float32(0.1))]
    assert sorted(example.features.feature) == ["label", "name", "weight"]
    assert example.features.feature["label"].WhichOneof("kind") == "int64_list"
    assert example.HasField("features")
    assert not ow.train.Example().HasField("features")
    copy = ow.train.Example.FromString(example.SerializeToString())
    assert copy == example
    copy.features.feature["label"].float_list.value.append(1.0)  # a feature has one kind
    assert copy.features.feature["label"].WhichOneof("kind") == "float_list"
    assert copy != example
    copy.CopyFrom(example)
    assert copy == example
    copy.Clear()
    assert (copy.SerializeToString(), str(copy), copy.ByteSize()) == (b"", "", 0)
    steps = ow.train.FeatureList()
    steps.feature.add().int64_list.value.append(5)
    assert len(ow.train.FeatureList.FromString(steps.SerializeToString()).feature) == 1


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: ow.train.BytesList(value=["a"]), TypeError, "has type str, but expected one of: bytes"),
        (lambda: ow.train.Int64List(value=[1.5]), TypeError, "has type float, but expected one of: int"),
        (lambda: ow.train.Int64List(value=[1 << 63]), ValueError, "out of range"),
        (lambda: ow.train.FloatList(value=["a"]), TypeError, "has type str"),
        (lambda: ow.train.Features(feature={"a": 1}), TypeError, "expected a Feature"),
        (lambda: ow.train.Feature(other=1), ValueError, 'no "other" field'),
        (lambda: ow.train.Example.FromString(b"\x0a\x05a"), ow.errors.DataLossError, "runs past its end"),
        (lambda: setattr(ow.train.Example(), "features", 1), AttributeError, "CopyFrom"),
    ],
)
def test_messages_refuse(call, error, says):
    with pytest.raises(error, match=says):
        call()


@pytest.mark.parametrize(
    ("feature", "error", "says"),
    [
        (ow.io.FixedLenFeature([None], ow.int64), ValueError, "not fully defined"),
        (ow.io.FixedLenFeature([], ow.int32), ow.errors.InvalidArgumentError, "int32"),
        (ow.io.FixedLenFeature([2], ow.int64, [1]), ValueError, "default_value"),
        (ow.io.FixedLenSequenceFeature([], ow.int64), ValueError, "allow_missing"),
        (5, ow.errors.InvalidArgumentError, "Unsupported int"),
    ],
)
def test_features_that_cannot_be_parsed(feature, error, says):
    with pytest.raises(error, match=says):
        ow.io.parse_single_example(b"", {"a": feature})


def test_batches_of_records(tmp_path):
    """Strings that a function returns are elements of their batch, which parse_example reads at once."""
    with ow.io.TFRecordWriter(tmp_path / "x") as writer:
        for _ in range(3):
            writer.write(a_varied_example())
    spec = {"f": ow.io.FixedLenFeature([2], ow.float32)}
    records = ow.data.TFRecordDataset(str(tmp_path / "x")).map(lambda r: r + "").batch(2)
    assert [type(r) for r in next(iter(records)).numpy()] == [bytes, bytes]
    parsed = records.map(lambda r: ow.io.parse_example(r, spec)["f"])
    assert [x.numpy().tolist() for x in parsed] == [[[1.0, 2.0]] * 2, [[1.0, 2.0]]]


def test_values_of_several_occurrences_are_joined():
    """As protocol buffers read packed and unpacked numbers, and messages in parts."""
    packed, alone = b"\x0a\x03\x01\x02\x03", b"\x08\x04"
    feature = b"\x1a" + bytes([len(packed + alone)]) + packed + alone + b"\x1a\x02\x08\x05"
    entry = b"\x0a\x01a\x12" + bytes([len(feature)]) + feature
    features = b"\x0a" + bytes([len(entry)]) + entry
    example = b"\x0a" + bytes([len(features)]) + features
    spec = {"a": ow.io.FixedLenSequenceFeature([], ow.int64, True)}
    assert ow.io.parse_single_example(example, spec)["a"].numpy().tolist() == [1, 2, 3, 4, 5]
    assert ow.train.Example.FromString(example).features.feature["a"].int64_list.value == [1, 2, 3, 4, 5]


def test_long_lists_of_numbers():
    values = [*range(1000), 2**63 - 1, -(2**63), -1, *range(2**40, 2**40 + 50)]
    message = ow.train.Feature(int64_list=ow.train.Int64List(value=values))
    example = ow.train.Example(features=ow.train.Features(feature={"a": message})).SerializeToString()
    assert ow.train.Example.FromString(example).features.feature["a"].int64_list.value == values
    parsed = ow.io.parse_single_example(example, {"a": ow.io.FixedLenFeature([len(values)], ow.int64)})
    assert parsed["a"].numpy().tolist() == values


def a_varied_example():
    example = ow.train.Example()
    example.features.feature["i"].int64_list.value.extend([1, -1, 300])
    example.features.feature["f"].float_list.value.extend([1.0, 2.0])
    example.features.feature["s"].bytes_list.value.append(b"word")
    return example.SerializeToString()


SPEC = {
    "i": ow.io.FixedLenSequenceFeature([], ow.int64, True),
    "f": ow.io.FixedLenFeature([2], ow.float32),
    "s": ow.io.FixedLenFeature([], ow.string, b""),
}
READERS = {
    "example": (lambda d: ow.io.parse_single_example(d, SPEC), a_varied_example),
    "message": (ow.train.Example.FromString, a_varied_example),
    "tensor": (lambda d: ow.io.parse_tensor(d, ow.int32), lambda: ow.io.serialize_tensor([[1, 2], [3, 4]]).numpy()),
    "wav": (ow.audio.decode_wav, lambda: wav_bytes(np.ones((5, 2), np.int16), 8000)),
    "png": (ow.io.decode_png, lambda: ow.io.encode_png(np.ones((3, 4, 3), np.uint8)).numpy()),
    "png 16": (
        lambda d: ow.io.decode_png(d, 0, ow.uint16),
        lambda: ow.io.encode_png(np.ones((3, 4, 3), np.uint16)).numpy(),
    ),
    "jpeg": (ow.io.decode_image, lambda: ow.io.encode_jpeg(np.ones((9, 9, 3), np.uint8)).numpy()),
    "csv": (lambda d: ow.io.decode_csv(d, [[0], [""], [0.0]]), lambda: b'1,"a""b",2.5'),
}


@pytest.mark.parametrize("name", READERS)
def test_damaged_bytes_are_errors_by_name(name):
    """Changed, cut and repeated bytes are read, or an error of ow.errors."""
    if name in ("png", "png 16", "jpeg"):
        pytest.importorskip("PIL")
    read, original = READERS[name][0], READERS[name][1]()
    draw, errors = random.Random(name), 0
    for _ in range(150):
        data = bytearray(original)
        for _ in range(draw.randint(1, 4)):
            kind, at = draw.randrange(4), draw.randrange(len(data)) if data else 0
            if kind == 0 and data:
                data[at] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)])
            elif kind == 1:
                del data[at:]
            elif kind == 2:
                data[at:at] = data[at : at + 8]
            elif kind == 3 and data:
                del data[at]
        try:
            read(bytes(data))
        except ow.errors.OpError:
            errors += 1
    assert errors > 15


def test_sizes_that_bytes_announce_are_bounded():
    huge = b"\x08\x01\x12\x0a\x12\x08\x08" + b"\x80\x80\x80\x80\x80\x20" + b"\x20\x00" + b"\x2d\0\0\0\0"
    with pytest.raises(ow.errors.OpError):
        ow.io.parse_tensor(huge, ow.float32)
    shape = b"\x12\x08\x12\x06\x08\x80\x80\x80\x80\x20"  # 2**33 floats of one value
    with pytest.raises(ow.errors.ResourceExhaustedError, match="max_activation_bytes"):
        ow.io.parse_tensor(b"\x08\x01" + shape + b"\x2a\x04\0\0\0\0", ow.float32)
    header = struct.pack(">IIBBBBB", 1 << 30, 1 << 30, 16, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" + header + b"\0\0\0\0\0\0\0\0IEND\0\0\0\0"
    with pytest.raises(ow.errors.ResourceExhaustedError, match="max_activation_bytes"):
        ow.io.decode_png(png, 0, ow.uint16)


# ---- codecs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_png_goes_round(dtype, channels):
    pytest.importorskip("PIL")
    pixels = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, (2, 6, 5, channels), dtype)
    for each, data in zip(pixels, ow.io.encode_png(pixels).numpy()):
        assert np.array_equal(ow.io.decode_png(data, dtype=dtype), each)
        assert np.array_equal(ow.io.decode_png(data, channels, dtype=dtype), each)


def test_filters_of_png_with_16_bits():
    """Every filter, written by a straight reading of the specification."""
    import zlib

    pixels = np.random.default_rng(1).integers(0, 1 << 16, (5, 4, 3), np.uint16)
    raw = pixels.astype(">u2").view(np.uint8).reshape(5, -1).astype(int)
    rows = []
    for i, row in enumerate(raw):
        left, up, corner = (np.zeros(len(row), int) for _ in range(3))
        left[6:] = row[:-6]
        if i:
            up, corner[6:] = raw[i - 1], raw[i - 1][:-6]
        p = left + up - corner
        nearest = np.argmin([abs(p - left), abs(p - up), abs(p - corner)], axis=0)
        predictions = [0, left, up, (left + up) // 2, np.choose(nearest, [left, up, corner])]
        rows.append(bytes([i]) + ((row - predictions[i]) % 256).astype(np.uint8).tobytes())

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 4, 5, 16, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b"")
    assert np.array_equal(ow.io.decode_png(b"\x89PNG\r\n\x1a\n" + body, dtype=ow.uint16), pixels)


def test_jpeg_and_arguments():
    pytest.importorskip("PIL")
    y, x = np.mgrid[:40, :56]
    pixels = np.stack([y * 5, x * 4, 255 - x * 4], -1).astype(np.uint8)
    data = ow.io.encode_jpeg(pixels).numpy()
    assert np.abs(ow.io.decode_jpeg(data).numpy().astype(int) - pixels).mean() < 2
    assert ow.io.is_jpeg([data, b"x"]).numpy().tolist() == [True, False]
    assert ow.io.extract_jpeg_shape(data).numpy().tolist() == [40, 56, 3]
    assert len(ow.io.encode_jpeg(pixels, quality=20).numpy()) < len(data)
    spec = ow.data.Dataset.from_tensors(data).map(lambda d: ow.image.decode_jpeg(d, channels=3)).element_spec
    assert spec == ow.TensorSpec([None, None, 3], ow.uint8)
    for call in (
        lambda: ow.io.decode_jpeg(data, channels=4),
        lambda: ow.io.decode_jpeg(data, ratio=3),
        lambda: ow.io.decode_gif(data),
        lambda: ow.io.decode_and_crop_jpeg(data, [39, 0, 2, 2]),
        lambda: ow.io.decode_image(b"nothing"),
        lambda: ow.io.encode_jpeg(pixels.astype(np.float32)),
        lambda: ow.io.encode_jpeg(pixels, quality=200),
        lambda: ow.io.encode_png(pixels[..., 0]),
    ):
        with pytest.raises(ow.errors.InvalidArgumentError):
            call()


def test_without_pillow_the_extra_is_named(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    decode = ow.io.decode_jpeg  # imported before imports fail
    monkeypatch.setattr(extras.importlib, "import_module", missing)
    with pytest.raises(ow.errors.FailedPreconditionError, match=r"opwright\[image\]"):
        decode(b"\xff\xd8\xff")


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: ow.io.decode_raw([b"ab", b"a"], ow.uint8), ow.errors.InvalidArgumentError, "one length"),
        (lambda: ow.io.decode_raw(b"abc", ow.int16), ow.errors.InvalidArgumentError, "multiple"),
        (lambda: ow.io.decode_raw(b"abc", ow.string), ow.errors.InvalidArgumentError, "out_type"),
        (lambda: ow.io.decode_base64("a"), ow.errors.InvalidArgumentError, "base64"),
        (lambda: ow.io.decode_base64("a+b/"), ow.errors.InvalidArgumentError, "base64"),
        (lambda: ow.io.decode_csv("1", [[0]], field_delim=";;"), ValueError, "1 char"),
        (lambda: ow.io.decode_csv("1,2", [[0], [0]], select_cols=[1, 0]), ValueError, "select_cols"),
        (lambda: ow.io.decode_csv("1", [ow.constant([True])]), ow.errors.InvalidArgumentError, "bool"),
        (lambda: ow.io.decode_compressed(b"words", "GZIP"), ow.errors.DataLossError, "damaged"),
        (lambda: ow.io.decode_compressed(b"x", "LZ"), ow.errors.InvalidArgumentError, "compression_type"),
        (lambda: ow.audio.decode_wav(b"RIFF"), ow.errors.InvalidArgumentError, "RIFF"),
        (lambda: ow.audio.decode_wav(b"", desired_samples=-5), ow.errors.InvalidArgumentError, "desired_samples"),
        (lambda: ow.audio.encode_wav([1.0], 8000), ow.errors.InvalidArgumentError, "float32"),
        (lambda: ow.io.parse_tensor(ow.io.serialize_tensor([1]), ow.float32), ow.errors.InvalidArgumentError, "Type"),
        (lambda: ow.io.TFRecordWriter("/nowhere/x"), ow.errors.NotFoundError, "No such"),
        (lambda: ow.io.TFRecordOptions("LZ"), ow.errors.InvalidArgumentError, "compression_type"),
    ],
)
def test_errors(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_decompression():
    import gzip

    assert ow.io.decode_compressed([gzip.compress(b"abc" * 100)], "GZIP").numpy().tolist() == [b"abc" * 100]
    with pytest.raises(ow.errors.DataLossError, match="truncated"):
        ow.io.decode_compressed(gzip.compress(b"abc" * 100)[:-9], "GZIP")
