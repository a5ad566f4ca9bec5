"""Builtins into and out of arrays by machine code: what they take, and what they leave alone."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opwright.compiler.native.builtins import Builtins, bound, make_builtins, objects
from opwright.compiler.native.image import runs_images

pytestmark = pytest.mark.skipif(not runs_images(), reason="no images of machine code here")
DTYPES = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint16, np.int64, np.bool_, np.complex64)
SHAPES = ((), (1,), (5,), (2, 3), (2, 1, 4), (3, 0), (0,), (1, 1, 1, 2, 3))


@pytest.fixture(scope="module")
def functions() -> Builtins:
    result = make_builtins()
    assert result is not None
    return result


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    return (
        np.random.default_rng(seed).integers(0, 2, shape).astype(dtype)
        if dtype is np.bool_
        else (np.random.default_rng(seed).integers(0, 100, shape).astype(dtype))
    )


def test_values_of_the_dtype_and_shape_are_copied(functions: Builtins) -> None:
    for dtype in DTYPES:
        for shape in SHAPES:
            array, value = np.zeros(shape, dtype), numbers(shape, dtype)
            assert bound(functions.put, array)(value) == 1
            assert array.tobytes() == value.tobytes(), (dtype, shape)
            taken = bound(functions.take, array)()
            assert type(taken) is type(array.copy()[()]), (dtype, shape)
            assert (taken.dtype, taken.shape) == (array.dtype, shape)
            assert np.asarray(taken).tobytes() == value.tobytes()
            if shape and array.size:
                assert not np.shares_memory(taken, array)
                assert taken.flags.carray
                assert taken.flags.owndata


def test_anything_else_is_refused_and_changes_nothing(functions: Builtins) -> None:
    class Sub(np.ndarray):
        pass

    value = numbers((2, 3), np.float32)
    unaligned = np.frombuffer(b"x" + value.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3)
    refused = [
        value.astype(np.float64),
        value.astype(np.int32),
        value.astype(">f4"),
        value.reshape(3, 2),
        value.reshape(6),
        value[:1],
        value.reshape(1, 2, 3),
        np.asfortranarray(value),
        np.repeat(value, 2, 1)[:, ::2],
        unaligned,
        value.view(Sub),
        value.tolist(),
        1.0,
        None,
        "text",
        np.float32(1),
        value.data,
        value.astype(object),
    ]
    array = np.full((2, 3), 7, np.float32)
    put = bound(functions.put, array)
    for one in refused:
        assert put(one) == 0, one
        assert (array == 7).all()
    array.flags.writeable = False
    assert put(value) == 0
    assert (array == 7).all()


def test_an_array_may_be_copied_onto_itself(functions: Builtins) -> None:
    memory = np.arange(9, dtype=np.int32)
    array, value = memory[:8], memory[1:]
    assert bound(functions.put, array)(value) == 1
    assert memory.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 8]


def test_nothing_is_held_longer_than_it_is_used(functions: Builtins) -> None:
    array, value = np.zeros((4, 4), np.float32), np.ones((4, 4), np.float32)
    put, take = bound(functions.put, array), bound(functions.take, array)
    counts = [sys.getrefcount(o) for o in (array, value, array.dtype)]
    for _ in range(100):
        put(value)
        take()
    assert [sys.getrefcount(o) for o in (array, value, array.dtype)] == counts
    taken = weakref.ref(take())
    assert taken() is None
    alive = weakref.ref(array)
    del array, put, take
    gc.collect()
    assert alive() is None


def test_scalars_are_arrays_of_rank_0(functions: Builtins) -> None:
    for dtype in DTYPES:
        array, value = np.zeros((), dtype), numbers((), dtype)[()]
        own = dtype is not ml_dtypes.bfloat16  # of NumPy
        assert bound(functions.put, array)(value) == own
        assert array.tobytes() == (value.tobytes() if own else bytes(array.itemsize))
        assert bound(functions.put, np.zeros(1, dtype))(value) == 0
    array = np.full((), 7, np.float32)
    for refused in (np.float64(1), np.int32(1), 1.0, 1, True, None, "text", np.datetime64(1, "s"), object()):
        assert bound(functions.put, array)(refused) == 0
    assert array == 7
    array.flags.writeable = False
    assert bound(functions.put, array)(np.float32(1)) == 0


def test_strings_are_copied_if_all_are_bytes(functions: Builtins) -> None:
    old, new = bytes(bytearray(b"an old one")), bytes(bytearray(b"a new one"))
    array, value = np.empty((2, 3), object), np.empty((2, 3), object)
    array.fill(old)
    value.fill(new)
    put = bound(functions.put_strings, objects(array, bytes))
    counts = sys.getrefcount(old), sys.getrefcount(new)
    assert put(value) == 1
    assert (array == new).all()
    assert (sys.getrefcount(old), sys.getrefcount(new)) == (counts[0] - 6, counts[1] + 6)

    class Sub(bytes):
        pass

    for item in ("text", None, 1, Sub(b"x")):
        mixed = np.full((2, 3), old, object)
        mixed[1, 2] = item
        assert put(mixed) == 0
    for refused in (value[:1], value.T, value.astype("S"), value.tolist(), new, np.zeros((2, 3))):
        assert put(refused) == 0
    assert (array == new).all()
