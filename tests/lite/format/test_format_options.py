"""Custom options and string buffers: round trips, the peer's reader, damaged bytes."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from flatbuffers import flexbuffers
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.core import errors
from opwright.lite.format import pack_strings, unpack_strings
from opwright.lite.format.flexbuffers import MAX_DEPTH, decode, decode_options, encode_options
from thorough import THOROUGH, examples

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
KEYS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(
    SCALARS | st.binary(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=5) | st.lists(st.integers(-(2**63), 2**63 - 1)) | st.dictionaries(KEYS, inner)
    ),
    max_leaves=12,
)

MANY = {
    "flag": True,
    "count": 7,
    "big": 2**64 - 1,
    "low": -(2**63),
    "rate": 0.1,
    "half": 0.5,
    "name": "é",
    "raw": b"\0\1",
    "ints": [1, 2, 300],
    "floats": [0.5, 1e300],
    "bools": [True, False],
    "mixed": [1, "a", None, 2.5],
    "empty": [],
    "inner": {"a": {"b": [{"c": 1}]}},
    "none": None,
    "long": "x" * 300,
}


@settings(deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_options_come_back(options):
    data = encode_options(options)
    assert decode_options(data) == options
    assert encode_options(dict(reversed(options.items()))) == data


def test_kinds_of_values():
    data = encode_options(MANY)
    assert decode_options(data) == MANY
    assert {k: type(v) for k, v in decode_options(data).items()} == {k: type(v) for k, v in MANY.items()}
    assert decode_options(np.frombuffer(data, np.uint8)) == MANY
    assert decode_options(b"") == {}
    root = flexbuffers.GetRoot(data).AsMap
    assert root["ints"].IsTypedVector
    assert list(root["ints"].AsTypedVector.Value) == [1, 2, 300]
    assert root["count"].AsInt == 7
    assert root["name"].AsString == "é"


def test_arrays_and_numpy_scalars():
    options = {"a": np.array([1, 2], np.int16), "b": np.float32(0.5), "c": np.bool_(True), "d": (1, 2)}
    assert decode_options(encode_options(options)) == {"a": [1, 2], "b": 0.5, "c": True, "d": [1, 2]}


def test_fixed_and_indirect_values_of_other_writers():
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key("fixed")
        builder.FixedTypedVectorFromElements([1, 2, 3])
        builder.Key("indirect")
        builder.IndirectFloat(2.5)
        builder.Key("keys")
        with builder.TypedVector():
            builder.Key("k1")
            builder.Key("k2")
    assert decode_options(builder.Finish()) == {"fixed": [1, 2, 3], "indirect": 2.5, "keys": ["k1", "k2"]}


def nested(depth: int):
    return {"a": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"x": object()}, r"options\['x'\] cannot be stored"),
        ({"x": [1, {2: 3}]}, r"options\['x'\]\[1\] has a key that is not text"),
        ({"x": 2**64}, "64 bits"),
        ({"a\0b": 1}, "key"),
        ({"x": np.zeros((2, 2))}, "rank 2"),
        ({"x": "\ud800"}, "not valid text"),
        (nested(MAX_DEPTH + 5), "too deep"),
        ([1], "not a dict"),
    ],
)
def test_what_cannot_be_stored_is_named(options, says):
    with pytest.raises(errors.InvalidArgumentError, match=says):
        encode_options(options)


def test_a_document_that_is_no_map():
    with pytest.raises(errors.InvalidArgumentError, match="not a map"):
        decode_options(flexbuffers.Dumps([1, 2]))


def test_damaged_options_raise_and_nothing_else():
    data, draw, failed = encode_options(MANY), random.Random(3), 0
    mutants = [data[:n] for n in range(len(data))] + [data[n:] for n in range(len(data))]
    for _ in range(examples(3000)):
        mutant = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            mutant[draw.randrange(len(data))] = draw.choice((0, 1, 255, draw.randrange(256)))
        mutants.append(bytes(mutant))
    for mutant in mutants:
        try:
            decode(mutant)
        except errors.DataLossError:
            failed += 1
    assert failed > (500 if THOROUGH else len(mutants) // 7)


def test_a_document_that_holds_itself():
    # a vector whose only element is an offset to the vector: length 1, offset 0 back to it, type vector; root
    with pytest.raises(errors.DataLossError, match="nests deeper"):
        decode(bytes(100) + bytes([1, 0, 10 << 2, 2, 10 << 2, 1]))


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_strings_come_back(strings):
    data = pack_strings(strings)
    assert unpack_strings(data).tolist() == strings
    count, first = struct.unpack_from("<2i", data)
    assert (count, first) == (len(strings), 4 * (len(strings) + 2))


def test_strings_of_a_shape():
    data = pack_strings(["a", "é", b"", "d"])
    assert unpack_strings(data, [2, 2]).tolist() == [[b"a", "é".encode()], [b"", b"d"]]
    with pytest.raises(errors.InvalidArgumentError, match="4 strings"):
        unpack_strings(data, [3])
    with pytest.raises(errors.InvalidArgumentError, match="element 0"):
        pack_strings([1])


def test_damaged_strings_raise_and_nothing_else():
    data = pack_strings(["a", "bc", ""])
    for at in range(0, 20, 4):
        for number in (-1, 0, 2, 100, 2**31 - 1, -(2**31)):
            mutant = data[:at] + struct.pack("<i", number) + data[at + 4 :]
            try:
                unpack_strings(mutant)
            except errors.DataLossError:
                continue
    for n in range(4 * 5):
        with pytest.raises(errors.DataLossError):
            unpack_strings(data[:n])
