"""Rows joined by segments, and sequences turned round by lengths, as kernels, against NumPy; places outside fail."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels.gather import reverse_starts
from opwright.compiler.kernels.scatter import join_segments
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.indexing_ops import ReverseStart, Segments
from opwright.compiler.native.executor import StepFailed
from opwright.core.dtypes import float32, int32, int64

RNG = np.random.default_rng(9)
JOINS = {"sum": np.add, "prod": np.multiply, "max": np.fmax, "min": np.fmin}


def start_of(kind, dtype):
    limits = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    return {"sum": 0, "prod": 1, "max": limits.min, "min": limits.max}[kind]


@pytest.mark.parametrize("kind", JOINS)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize(("ids", "rest"), [((1,), ()), ((40,), (3,)), ((4, 9), (600,)), ((12,), (5, 7))])
def test_segments(ids, rest, dtype, kind):
    x = RNG.normal(0, 5, (*ids, *rest)).astype(dtype)
    if dtype is np.float32:
        x[RNG.random(x.shape) < 0.1] = np.nan
    places = RNG.integers(-1, 6, ids, np.int32)
    expected = np.full((7, *rest), start_of(kind, dtype), dtype)  # the last has no elements
    rows, flat = x.reshape(-1, *rest), places.reshape(-1)
    JOINS[kind].at(expected, flat[flat >= 0], rows[flat >= 0])
    a, b = buffer(x), buffer(places, "ids")
    form = Segments(Buffer("y", a.dtype, expected.shape), a, b, kind)
    np.testing.assert_array_equal(run(form, {a: x, b: places}), expected)
    np.testing.assert_array_equal(split(form, {a: x, b: places}, 2), expected)


@pytest.mark.parametrize("kind", ["max", "min"])
def test_exact_extremes(kind):
    """Test NaN, infinities that are all of a segment, and a segment without rows, as NumPy's."""
    x = RNG.normal(0, 5, (40, 3)).astype(np.float32)
    x[:4] = [[np.nan, 1, 2], [3, np.inf, 4], [-np.inf, -np.inf, np.inf], [-np.inf, np.nan, np.inf]]
    places = RNG.integers(-1, 6, 40)
    places[2:4] = 6
    places[4:][places[4:] == 6] = 0
    expected = np.full((8, 3), start_of(kind, np.float32), np.float32)
    for s in set(places[places >= 0].tolist()):
        expected[s] = {"max": np.max, "min": np.min}[kind](x[places == s], axis=0)
    a, b = buffer(x), buffer(places, "ids")
    form = Segments(Buffer("y", float32, expected.shape), a, b, kind, True)
    np.testing.assert_array_equal(run(form, {a: x, b: places}), expected)


@pytest.mark.parametrize("outside", [3, 2**31 - 1])
def test_a_segment_behind_the_last_fails(outside):
    x, places = np.ones((2, 3), np.float32), np.array([0, outside], np.int32)
    a, b = buffer(x), buffer(places, "ids")
    with pytest.raises(StepFailed):
        run(Segments(Buffer("y", float32, (3, 3)), a, b, "sum"), {a: x, b: places})


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
@pytest.mark.parametrize(
    ("shape", "time", "batch"), [((4, 7), 1, 0), ((7, 4), 0, 1), ((2, 5, 3, 6, 2), 3, 1), ((3, 6, 2, 4), 1, 3)]
)
def test_sequences(shape, time, batch, dtype):
    x = RNG.integers(0, 200, shape).astype(dtype)
    lengths = RNG.integers(0, shape[time], shape[batch], endpoint=True).astype(np.int32)
    expected = np.moveaxis(x.copy(), (batch, time), (0, 1))
    for row, n in zip(expected, lengths):
        row[:n] = row[:n][::-1].copy()
    a, b = buffer(x), buffer(lengths, "lengths")
    form = ReverseStart(Buffer("y", a.dtype, shape), a, b, time, batch)
    expected = np.moveaxis(expected, (0, 1), (batch, time))
    np.testing.assert_array_equal(run(form, {a: x, b: lengths}), expected)
    np.testing.assert_array_equal(split(form, {a: x, b: lengths}, 3), expected)


@pytest.mark.parametrize("length", [-1, 4, 2**62])
def test_a_length_outside_fails(length):
    x, lengths = np.ones((1, 3), np.float32), np.array([length], np.int64)
    a, b = buffer(x), buffer(lengths, "lengths")
    with pytest.raises(StepFailed):
        run(ReverseStart(Buffer("y", float32, (1, 3)), a, b, 1, 0), {a: x, b: lengths})


@targets(
    (join_segments, {"source": float32, "index": int64, "kind": "max", "start": -3e38, "exact": True}),
    (join_segments, {"source": int32, "index": int32, "kind": "sum", "start": 0, "exact": False}),
    (reverse_starts, {"held": int64, "width": 4, "batch_first": True}),
)
def test_they_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
