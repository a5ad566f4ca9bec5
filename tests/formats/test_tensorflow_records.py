"""Files and messages against TensorFlow's bytes and values, recorded by make_tensorflow_records.py."""

import base64
import gzip
import json
import pathlib
import zlib

import ml_dtypes
import numpy as np
import pytest

import opwright as ow

RECORDED = json.loads((pathlib.Path(__file__).parent / "tensorflow_records.json").read_text())
NUMPY = {"bfloat16": ml_dtypes.bfloat16}


def raw(text):
    return base64.b64decode(text)


def array(recorded):
    if recorded["dtype"] == "string":
        result = np.empty(len(recorded["values"]), object)
        result[:] = [raw(v) for v in recorded["values"]]
        return result.reshape(recorded["shape"])
    dtype = NUMPY.get(recorded["dtype"], recorded["dtype"])
    return np.frombuffer(raw(recorded["bytes"]), dtype).reshape(recorded["shape"])


def same(actual, recorded):
    """Whether a tensor has the recorded dtype, shape and bits."""
    expected = array(recorded)
    assert actual.dtype.name == recorded["dtype"]
    assert list(actual.shape) == recorded["shape"]
    value = np.asarray(actual)
    if expected.dtype == object:
        assert value.tolist() == expected.tolist()
    else:
        assert value.tobytes() == expected.tobytes()


def eagerly_and_in_a_map(function, *operands):
    """The result of a function of tensors, which a dataset's trace gives too."""
    eager = function(*map(ow.constant, operands))
    (mapped,) = ow.data.Dataset.from_tensors(operands).map(function)
    pairs = zip(ow.nest.flatten(eager), ow.nest.flatten(mapped))
    for one, other in pairs:
        assert one.dtype == other.dtype
        assert np.asarray(one).tolist() == np.asarray(other).tolist()
    return eager


# ---- records and messages --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_records(kind, tmp_path):
    records = [raw(r) for r in RECORDED["records"]["records"]]
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.write_bytes(raw(RECORDED["records"]["files"][kind]))
    assert [r.numpy() for r in ow.data.TFRecordDataset(str(theirs), kind)] == records
    with ow.io.TFRecordWriter(ours, ow.io.TFRecordOptions(kind, compression_level=9 if kind else None)) as writer:
        for record in records:
            writer.write(record)
    unpack = {"": bytes, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}[kind]
    assert unpack(ours.read_bytes()) == unpack(theirs.read_bytes())


def messages():
    def feature(**kinds):
        ((kind, values),) = kinds.items()
        lists = {"bytes": ow.train.BytesList, "floats": ow.train.FloatList, "ints": ow.train.Int64List}
        names = {"bytes": "bytes_list", "floats": "float_list", "ints": "int64_list"}
        return ow.train.Feature(**{names[kind]: lists[kind](value=values)})

    def example(**features):
        return ow.train.Example(features=ow.train.Features(feature=features))

    return {
        "empty": ow.train.Example(),
        "no features": example(),
        "unset feature": example(a=ow.train.Feature()),
        "mixed": example(
            name=feature(bytes=[b"x", b"", b"\xff\0"]),
            weight=feature(floats=[0.1, -2.5, float("inf"), 1e-42]),
            number=feature(ints=[0, 1, -1, 2**63 - 1, -(2**63), 300]),
            none=feature(ints=[]),
        ),
        "row": example(age=feature(ints=[37]), pair=feature(floats=[1.5, 2.5]), name=feature(bytes=[b"ada"])),
        "row 2": example(age=feature(ints=[5]), pair=feature(floats=[3.5, 4.5]), tags=feature(bytes=[b"p", b"q"])),
    }


@pytest.mark.parametrize("name", RECORDED["examples"])
def test_examples(name):
    theirs, ours = raw(RECORDED["examples"][name]), messages()[name]
    assert ours.SerializeToString() == theirs
    assert ow.train.Example.FromString(theirs) == ours
    texts = [str(ours), RECORDED["texts"][name]]  # whose entries are in another order
    assert sorted(texts[0].splitlines()) == sorted(line for line in texts[1].splitlines() if line)


def test_sequence_examples_go_round():
    for data in map(raw, RECORDED["sequences"].values()):
        assert ow.train.SequenceExample.FromString(data).SerializeToString() == data


FIXED, VARYING = ow.io.FixedLenFeature, ow.io.FixedLenSequenceFeature
SPECS = {
    "dense": {"age": FIXED([], ow.int64), "pair": FIXED([2], ow.float32)},
    "default": {"name": FIXED([], ow.string, b"none"), "pair": FIXED([2, 1], ow.float32)},
    "default vector": {"missing": FIXED([2], ow.int64, [8, 9]), "age": FIXED([1], ow.int64)},
    "padded": {"tags": VARYING([], ow.string, True), "pair": VARYING([], ow.float32, True, -1.0)},
    "padded pairs": {"pair": VARYING([2], ow.float32, True), "none": VARYING([], ow.int64, True)},
    "missing": {"name": FIXED([], ow.string)},
    "another type": {"age": FIXED([], ow.float32)},
    "another size": {"pair": FIXED([3], ow.float32)},
    "uneven": {"tags": VARYING([3], ow.string, True)},
}


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("which", ["single", "batch"])
def test_parsed_examples(which, name):
    recorded = RECORDED["parsing"][f"{which} {name}"]
    rows = [raw(RECORDED["examples"][key]) for key in ("row", "row 2")]
    parse, operand = (
        (ow.io.parse_single_example, rows[1]) if which == "single" else (ow.io.parse_example, np.array(rows, object))
    )

    def function(serialized):
        return parse(serialized, SPECS[name])

    if isinstance(recorded, str):
        with pytest.raises(getattr(ow.errors, recorded), match=r"Feature: |Key: "):
            function(operand)
        with pytest.raises(getattr(ow.errors, recorded)):
            list(ow.data.Dataset.from_tensors(operand).map(function))
        return
    parsed = eagerly_and_in_a_map(function, operand)
    assert set(parsed) == set(recorded)
    for key, tensor in parsed.items():
        same(tensor, recorded[key])
    spec = ow.data.Dataset.from_tensors(operand).map(function).element_spec
    for key, tensor in parsed.items():
        assert spec[key].shape.is_compatible_with(tensor.shape)
        assert spec[key].shape.rank == tensor.shape.rank


def test_parsed_sequence_examples():
    context = {"id": FIXED([], ow.int64), "title": FIXED([], ow.string, b"-")}
    sequences = {"tokens": VARYING([2], ow.int64), "words": VARYING([], ow.string, allow_missing=True)}
    long, short = (raw(RECORDED["sequences"][key]) for key in ("long", "short"))
    single = eagerly_and_in_a_map(lambda s: ow.io.parse_single_sequence_example(s, context, sequences), long)
    batch = eagerly_and_in_a_map(
        lambda s: ow.io.parse_sequence_example(s, context, sequences), np.array([long, short], object)
    )
    for parts, recorded in ((single, "sequence single"), (batch, "sequence batch")):
        assert len(parts) == len(RECORDED["parsing"][recorded])
        for part, expected in zip(parts, RECORDED["parsing"][recorded]):
            assert set(part) == set(expected)
            for key, tensor in part.items():
                same(tensor, expected[key])
    without = {"tokens": VARYING([2], ow.int64), "other": VARYING([], ow.int64)}
    with pytest.raises(ow.errors.InvalidArgumentError, match="'other' is required"):
        ow.io.parse_single_sequence_example(long, None, without)


@pytest.mark.parametrize("name", RECORDED["tensors"])
def test_serialized_tensors(name):
    proto, recorded = raw(RECORDED["tensors"][name]["proto"]), RECORDED["tensors"][name]["value"]
    same(eagerly_and_in_a_map(lambda s: ow.io.parse_tensor(s, recorded["dtype"]), proto), recorded)
    if not name.endswith("values"):
        assert ow.io.serialize_tensor(ow.constant(array(recorded), recorded["dtype"])).numpy() == proto


# ---- images ----------------------------------------------------------------------------------------------------------

IMAGES = RECORDED["images"]


def decoded(key):
    """The result of the call that a key of the record names."""
    name, _, rest = key.partition(" -> ")
    if rest.endswith("uint16"):
        return ow.io.decode_png(raw(IMAGES["files"][name]), int(rest.split()[0]), ow.uint16)
    if rest:
        return eagerly_and_in_a_map(lambda s: ow.image.decode_image(s, int(rest)), raw(IMAGES["files"][name]))
    for suffix, call in (
        (" ratio 2", lambda s: ow.io.decode_jpeg(s, ratio=2)),
        (" crop", lambda s: ow.io.decode_and_crop_jpeg(s, [2, 3, 10, 8])),
        (" shape", ow.io.extract_jpeg_shape),
    ):
        if key.endswith(suffix):
            return call(raw(IMAGES["files"][key.removesuffix(suffix)]))
    raise KeyError(key)


def test_images_of_floats():
    """Within an ulp: TensorFlow's kernel multiplies by a rounded 1/255."""
    pytest.importorskip("PIL")
    image = ow.io.decode_image(raw(IMAGES["files"]["png uint8 3"]), 3, ow.float32)
    np.testing.assert_array_max_ulp(image.numpy(), array(IMAGES["decoded"]["float"]), 1)


@pytest.mark.parametrize("key", [key for key in IMAGES["decoded"] if key != "float"])
def test_decoded_images(key):
    pytest.importorskip("PIL")
    if isinstance(IMAGES["decoded"][key], str):
        with pytest.raises(getattr(ow.errors, IMAGES["decoded"][key])):
            decoded(key)
    else:
        same(decoded(key), IMAGES["decoded"][key])


# ---- text, raw bytes and sound ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDED["csv"])
def test_csv(name):
    case = RECORDED["csv"][name]
    defaults = [ow.constant(values, kind) if kind else values for kind, values in case["defaults"]]

    def function(lines):
        return ow.io.decode_csv(lines, defaults, **case["options"])

    if isinstance(case["values"], str):
        with pytest.raises(getattr(ow.errors, case["values"]), match=r"[Ff]ield|Quote"):
            function(case["lines"])
        return
    for column, recorded in zip(eagerly_and_in_a_map(lambda x: tuple(function(x)), case["lines"]), case["values"]):
        same(column, recorded)


def test_raw_bytes():
    record = RECORDED["raw"]
    data = raw(record["data"])
    for key, recorded in record["cases"].items():
        name, which = key.split()
        if name == "fixed":
            same(ow.io.decode_raw([data, data[:3]], ow.int16, fixed_length=8), recorded)
        else:
            same(ow.io.decode_raw([data, data[::-1]], name, little_endian=which == "True"), recorded)


@pytest.mark.parametrize("pad", [True, False])
def test_base64(pad):
    words = np.array([raw(w) for w in RECORDED["raw"]["words"]], object)
    texts = [raw(t) for t in RECORDED["raw"]["base64"][str(pad)]]
    assert eagerly_and_in_a_map(lambda w: ow.io.encode_base64(w, pad), words).numpy().tolist() == texts
    assert ow.io.decode_base64(texts).numpy().tolist() == words.tolist()


@pytest.mark.parametrize("channels", ["1", "2"])
def test_sound(channels):
    case = RECORDED["sound"][channels]
    data = raw(case["file"])
    assert ow.audio.encode_wav(array(case["samples"]), 16000).numpy() == data
    for desired in [key for key in case if key[0] == "("]:
        sizes = list(map(int, desired.strip("()").split(",")))
        audio, rate = eagerly_and_in_a_map(lambda s, sizes=sizes: ow.audio.decode_wav(s, *sizes), data)
        same(audio, case[desired][0])
        assert (int(rate), rate.dtype.name) == (case[desired][1], "int32")
