"""DTypes: what names one, its limits, its groups."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

from opwright.core import dtypes
from opwright.core.dtypes import as_dtype

# TensorFlow's name, bytes, smallest and largest value as the formats' specifications have them
TABLE = [
    ("float16", 2, -65504.0, 65504.0),
    ("bfloat16", 2, -(2.0**128 - 2.0**120), 2.0**128 - 2.0**120),
    ("float32", 4, -(2.0**128 - 2.0**104), 2.0**128 - 2.0**104),
    ("float64", 8, -(2.0**1023) * (2 - 2.0**-52), 2.0**1023 * (2 - 2.0**-52)),
    ("int4", 1, -8, 7),
    ("int8", 1, -128, 127),
    ("uint8", 1, 0, 255),
    ("int16", 2, -32768, 32767),
    ("uint16", 2, 0, 65535),
    ("int32", 4, -(2**31), 2**31 - 1),
    ("uint32", 4, 0, 2**32 - 1),
    ("int64", 8, -(2**63), 2**63 - 1),
    ("uint64", 8, 0, 2**64 - 1),
    ("bool", 1, False, True),
    ("string", 0, None, None),
    ("complex64", 8, None, None),
    ("complex128", 16, None, None),
]


@pytest.mark.parametrize(("name", "size", "low", "high"), TABLE, ids=[t[0] for t in TABLE])
def test_size_and_limits(name, size, low, high):
    dtype = as_dtype(name)
    assert (dtype.name, dtype.size) == (name, size)
    if low is None:
        with pytest.raises(TypeError, match=name):
            _ = dtype.min
    else:
        kind = float if dtype.is_floating else int
        assert (kind(dtype.min), kind(dtype.max)) == (low, high)
        assert tuple(map(kind, dtype.limits)) == (low, high)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.name)
def test_every_way_to_name_one(dtype):
    assert as_dtype(dtype) is dtype
    assert as_dtype(dtype.name) is dtype
    assert as_dtype(dtype.as_numpy_dtype) is dtype
    assert as_dtype(dtype.np) is dtype
    assert dtypes.of_numpy(dtype.np) is dtype
    assert dtypes.of_short(dtype.short) is dtype
    assert dtype == dtype.name
    assert dtype != "no such dtype"
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype
    assert (repr(dtype), str(dtype)) == (f"tf.{dtype.name}", f"<dtype: '{dtype.name}'>")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (float, "float32"),
        (int, "int32"),
        (bool, "bool"),
        (complex, "complex128"),
        (str, "string"),
        (bytes, "string"),
        ("half", "float16"),
        ("float", "float32"),
        ("double", "float64"),
        ("f4", "float32"),
        (np.dtype(">f4"), "float32"),
        (np.dtype("S3"), "string"),
        (np.dtype("U3"), "string"),
        (np.int64, "int64"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (np.dtype(ml_dtypes.int4), "int4"),
    ],
    ids=str,
)
def test_as_dtype(value, name):
    assert as_dtype(value).name == name


NOT_DTYPES = ["", "float33", "qint8", np.dtype("M8[s]"), None, 3.5, [1], object()]


@pytest.mark.parametrize("value", NOT_DTYPES, ids=lambda v: "object" if type(v) is object else repr(v))
def test_what_is_no_dtype(value):
    with pytest.raises(TypeError, match=r"dtype|DType"):
        as_dtype(value)


def test_groups_agree_with_kinds():
    assert set(dtypes.floating) == {d for d in dtypes.ALL if d.is_floating}
    assert set(dtypes.integer) | {dtypes.int4} == {d for d in dtypes.ALL if d.is_integer}
    assert set(dtypes.unsigned_integer) == {d for d in dtypes.ALL if d.is_unsigned}
    assert set(dtypes.complexes) == {d for d in dtypes.ALL if d.is_complex}
    assert [d for d in dtypes.ALL if d.is_bool] == [dtypes.bool]
    assert set(dtypes.numeric) == set(dtypes.real) | set(dtypes.complexes)
    assert len({d.short for d in dtypes.any_dtype}) == len({d.name for d in dtypes.any_dtype}) == len(dtypes.any_dtype)


def test_subtyping_is_equality():
    for a in dtypes.ALL:
        for b in dtypes.ALL:
            assert a.is_subtype_of(b) == a.is_compatible_with(b) == (a is b)


def test_real_dtype():
    assert dtypes.complex64.real_dtype is dtypes.float32
    assert dtypes.complex128.real_dtype is dtypes.float64
    assert dtypes.int8.real_dtype is dtypes.int8


def test_usable_as_dict_keys():
    assert {dtypes.float32: 1}[as_dtype(np.float32)] == 1
