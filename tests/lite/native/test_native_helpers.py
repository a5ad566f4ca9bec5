"""The C++ helpers of the run time, called by the names that libraries of the official headers have undefined.

The oracle: NumPy's broadcasting, whole numbers of Python, and the formulas of fixed-point multipliers in float64.
"""

from __future__ import annotations

import ctypes as C
import pathlib

import numpy as np
import pytest
from abi_kit import ABI, needs_compiler
from hypothesis import given
from hypothesis import strategies as st

from opwright.lite.native import toolchain

pytestmark = needs_compiler
HERE = pathlib.Path(__file__).parent
TYPES = ABI["enums"]["TfLiteType"]["values"]
LIMITS = {"kTfLiteUInt8": (0, 255), "kTfLiteInt8": (-128, 127), "kTfLiteInt16": (-32768, 32767)}


class Host:
    """A context of the provider's own, with a report that can be read."""

    def __init__(self):
        self.provider = toolchain.provider()
        self.provider.ow_size_of.restype = C.c_size_t
        sizes = [self.provider.ow_size_of(i) for i in range(2)]
        self.context, self.host = C.create_string_buffer(sizes[1]), C.create_string_buffer(sizes[0])
        self.provider.ow_context_init(self.context, self.host)
        self.code = C.CDLL(str(toolchain.build_library([HERE / "helpers.cc"])))


@pytest.fixture(scope="module")
def host():
    return Host()


def ints(*values):
    return (C.c_int * max(len(values), 1))(*values)


SHAPES = st.lists(st.sampled_from([1, 1, 2, 3, 5]), max_size=4)


@given(st.lists(SHAPES, min_size=2, max_size=3))
def test_broadcasting(host, shapes):
    out = ints(*[0] * 8)
    flat = [size for shape in shapes for size in shape]
    rank = host.code.broadcast(host.context, len(shapes), ints(*map(len, shapes)), ints(*flat), out)
    try:
        expected = np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        expected = None
    assert (tuple(out[:rank]) if rank >= 0 else None) == expected


@given(st.lists(st.integers(1, 7), min_size=1, max_size=9))
def test_shapes_by_value(host, shape):
    for place, size in enumerate(shape):
        flat = C.c_int()
        assert host.code.shape_of(len(shape), ints(*shape), place, C.byref(flat)) == size
        assert flat.value == int(np.prod(shape))


@pytest.mark.parametrize("shape", [[], [3], [2, 100, 7], list(range(20))])
def test_strings_by_value(host, shape):
    text = C.create_string_buffer(4096)
    expected = "[" + ", ".join(map(str, shape)) + "]"
    assert host.code.strings(len(shape), ints(*shape), text) == len(expected)
    assert text.value.decode() == expected + "{INT8, " + expected + "}" + "!" * 100


@given(*[st.one_of(st.integers(-2, 9), st.integers(2**31 - 9, 2**31 - 1), st.just(2**16))] * 3)
def test_checked_products(host, a, b, d):
    wide, narrow = C.c_size_t(), C.c_int()
    failed = host.code.product(host.context, a, b, d, C.byref(wide), C.byref(narrow))
    bad, running = min(a, b, d) < 0, 1
    for size in (a, b, d):  # from left to right, as the helper goes: 0 at the end does not mend what overflowed
        running = running * size
        bad = bad or running >= 2**64
    expected = 7 if bad else (0 if a * b * d < 2**31 else 4)
    assert failed == expected
    if not bad:
        assert wide.value == a * b * d


@pytest.mark.parametrize("name", list(LIMITS))
@given(activation=st.integers(0, 6), scale=st.floats(2**-14, 10, width=32), zero_point=st.integers(-128, 255))
def test_activation_ranges(host, name, activation, scale, zero_point):
    low, high = C.c_int(), C.c_int()
    result = host.code.range(
        host.context, TYPES[name], activation, C.c_float(scale), zero_point, C.byref(low), C.byref(high)
    )
    lowest, highest = LIMITS[name]
    floor, ceiling = {1: (0, None), 2: (-1, 1), 3: (0, 6)}.get(activation, (None, None))
    assert result == 0
    assert low.value == (lowest if floor is None else max(lowest, zero_point + half_away(floor, scale)))
    assert high.value == (highest if ceiling is None else min(highest, zero_point + half_away(ceiling, scale)))


def half_away(value, scale):
    """The quotient in float32, rounded to the nearest whole number, halves away from 0."""
    quotient = float(np.float32(value) / np.float32(scale))
    return int(np.copysign(np.floor(abs(quotient) + 0.5), quotient))


def test_an_output_without_a_range_is_refused(host):
    assert host.code.range(host.context, TYPES["kTfLiteFloat32"], 1, C.c_float(1), 0, ints(0), ints(0)) == 1


SCALES = st.floats(2**-17, 1e3, width=32)


@given(scale_in=SCALES, filters=st.lists(SCALES, min_size=1, max_size=5), out=SCALES)
def test_multipliers_of_convolutions(host, scale_in, filters, out):
    multipliers, shifts = (C.c_int32 * 5)(), (C.c_int32 * 5)()
    filter_scales = (C.c_float * len(filters))(*filters)
    bias = float(np.float32(scale_in) * np.float32(filters[0]))
    result = host.code.convolution(
        host.context,
        TYPES["kTfLiteInt8"],
        C.c_float(scale_in),
        len(filters),
        filter_scales,
        C.c_float(out),
        C.c_float(bias),
        ints(0),
        ints(0),
        multipliers,
        shifts,
    )
    assert result == 0
    for scale, m, e in zip(filters, multipliers, shifts):
        real = scale_in * scale / out
        if real < 2.0**-33:
            assert m == 0
            continue
        assert 2**30 <= m < 2**31 or real < 2.0**-31
        assert abs(m * 2.0 ** (e - 31) - real) <= real * 2.0**-31 or real < 2.0**-31


def test_a_bias_of_another_scale_is_refused(host):
    arguments = (host.context, TYPES["kTfLiteUInt8"], C.c_float(0.5), 1, (C.c_float * 1)(0.25), C.c_float(1.0))
    more = ints(0), ints(0), (C.c_int32 * 1)(), (C.c_int32 * 1)()
    assert host.code.convolution(*arguments, C.c_float(0.125), *more) == 0
    assert more[0][0] == 2**30  # 0.125 = 2^30 * 2^(-2 - 31 + ...)
    assert more[1][0] == 2
    assert host.code.convolution(*arguments, C.c_float(0.2), *more) == 1


@pytest.mark.parametrize("name", sorted(TYPES))
def test_sizes_of_types(host, name):
    widths = {
        "Float": None,
        "Int4": 4,
        "UInt4": 4,
        "Int2": 2,
        "Bool": 8,
        "BFloat16": 16,
        "Complex64": 64,
        "Complex128": 128,
        "NoType": 0,
        "String": 0,
        "Resource": 0,
        "Variant": 0,
        "Float8E4M3FN": 8,
        "Float8E5M2": 8,
    }
    short = name.removeprefix("kTfLite")
    expected = widths.get(short, int("".join(c for c in short if c.isdigit()) or 0))
    bits = C.c_int()
    assert host.code.sizes(TYPES[name], C.byref(bits)) == (expected + 7) // 8
    assert bits.value == expected


def test_getters(host):
    assert host.code.getters(host.context) == 0b11_1111_1111


def test_a_shape_from_a_tensor(host):
    out = ints(0, 0, 0)
    values = (C.c_int32 * 3)(4, 0, 9)
    assert host.code.shape_from(host.context, TYPES["kTfLiteInt32"], 3, values, out) == 0
    assert list(out) == [4, 0, 9]
    assert host.code.shape_from(host.context, TYPES["kTfLiteInt64"], 3, values, out) == 1
