"""Operators with windows, tables and strings in the manner of public libraries, built against our headers alone.

The oracles: NumPy, by formulas in float64.
"""

from __future__ import annotations

import ctypes as C
import struct
import warnings

import numpy as np
import pytest
from abi_kit import needs_compiler, run_compiler
from lite_kit import Build
from native_kit import HERE, run

from opwright import lite
from opwright.lite.format import objects, versions
from opwright.lite.native import toolchain
from opwright.lite.native.toolchain import build_library
from thorough import sampled

pytestmark = needs_compiler
SOURCE = HERE / "windows.cc"
SAME, VALID = 1, 2


@pytest.fixture(scope="module")
def path():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of the compiler: some come with -O2 alone
        return str(build_library([SOURCE]))


@pytest.fixture(scope="module")
def ops(path):
    return lite.load_custom_ops(
        path,
        {
            "Pool": "RegisterPoolWithPlaces",
            "Transposed": "RegisterTransposedWithBias",
            "Means": "Register_MEANS_3D",
            "Table": "Register_LOOKED_UP",
            "Turned": "Register_TURNED",
        },
    )


@pytest.fixture(scope="module")
def code(path):
    toolchain.provider()
    return C.CDLL(path)


@pytest.mark.parametrize(
    "standard", [pytest.param(standard, marks=pytest.mark.slow) for standard in ("c++11", "c++20")]
)
def test_it_compiles_without_a_warning(tmp_path, standard):
    run_compiler(tmp_path, SOURCE.read_text(), "c++", standard, "-Wno-missing-field-initializers")


def with_struct(build, name, inputs, outputs, *fields):
    """A node whose options are a struct of ints."""
    raw = np.frombuffer(struct.pack(f"<{len(fields)}i", *fields), np.uint8)
    return build.operator(versions.operator_code("CUSTOM", 1, name), inputs, outputs, custom_options=raw)


def padded(x, sizes, strides, padding, fill):
    """An image with what stands around it, and the size of the output, one spatial dimension after the other."""
    out, widths = [], [(0, 0)]
    for length, size, stride in zip(x.shape[1:-1], sizes, strides):
        out.append(-(-length // stride) if padding == SAME else (length - size) // stride + 1)
        missing = max((out[-1] - 1) * stride + size - length, 0) if padding == SAME else 0
        widths.append((missing // 2, missing - missing // 2))
    return np.pad(x, [*widths, (0, 0)], constant_values=fill), out


@pytest.mark.parametrize(("padding", "stride", "size"), sampled([(SAME, 2, 3), (VALID, 2, 3), (VALID, 1, 2)]))
def test_pooling(ops, padding, stride, size):
    x = np.random.default_rng(0).permutation(2 * 5 * 6 * 3).reshape(2, 5, 6, 3).astype(np.float32) - 90
    b = Build().tensor("x", x.shape)
    with_struct(b, "Pool", "x", "y places", padding, stride, stride, size, size, 1)  # 1: RELU
    interpreter = lite.Interpreter(model_content=b.done("x", "y places"), custom_ops=ops)
    interpreter.allocate_tensors()
    around, out = padded(x, (size, size), (stride, stride), padding, -np.inf)
    views = np.lib.stride_tricks.sliding_window_view(around, (size, size), (1, 2))[:, ::stride, ::stride]
    flat = views[:, : out[0], : out[1]].reshape(2, *out, 3, -1)
    np.testing.assert_array_equal(run(interpreter, x), np.maximum(flat.max(-1), 0))
    places = interpreter.get_tensor(interpreter.get_output_details()[1]["index"])
    np.testing.assert_array_equal(places, flat.argmax(-1))


@pytest.mark.parametrize(("padding", "strides", "size"), [(SAME, (2, 2), 3), (VALID, (1, 2), 2), (SAME, (2, 1), 2)])
def test_transposed_convolution(ops, padding, strides, size):
    rng = np.random.default_rng(1)
    x, w, bias = (rng.integers(-4, 5, s).astype(np.float32) for s in ((2, 4, 5, 3), (2, size, size, 3), (2,)))
    b = Build().tensor("x", x.shape).tensor("w", data=w).tensor("b", data=bias)
    with_struct(b, "Transposed", "x w b", "y", padding, strides[1], strides[0], 0, 0)
    interpreter = lite.Interpreter(model_content=b.done(), custom_ops=ops)
    interpreter.allocate_tensors()
    whole = np.zeros((2, *(s * (n - 1) + size for s, n in zip(strides, (4, 5))), 2))
    for i, j, r, q in np.ndindex(4, 5, size, size):
        whole[:, i * strides[0] + r, j * strides[1] + q] += x[:, i, j].astype(np.float64) @ w[:, r, q].T
    cut = [max(0, size - (n - 1) % s - 1) if padding == SAME else 0 for s, n in zip(strides, (4, 5))]
    rows, columns = (slice(c // 2, n - (c - c // 2)) for c, n in zip(cut, whole.shape[1:3]))
    np.testing.assert_array_equal(run(interpreter, x), whole[:, rows, columns] + bias)


@pytest.mark.parametrize("kind", ["FLOAT32", "INT8"])
@pytest.mark.parametrize(("padding", "stride", "size"), [("SAME", 2, 3), ("VALID", 1, 2)])
def test_means_in_three_dimensions(ops, kind, padding, stride, size):
    more = {} if kind == "FLOAT32" else {"quantization": objects.QuantizationParameters(scale=[0.5], zero_point=[0])}
    x = np.random.default_rng(2).integers(-100, 100, (1, 4, 5, 6, 2)).astype(kind.lower())
    b = Build().tensor("x", x.shape, kind, **more).tensor("y", (1, 1, 1, 1, 1), kind, **more)
    b.custom("Means", "x", "y", padding=padding, ksize=[1, size, size, size, 1], strides=[1, stride, stride, stride, 1])
    interpreter = lite.Interpreter(model_content=b.done(), custom_ops=ops)
    interpreter.allocate_tensors()
    around, out = padded(x.astype(np.float64), (size,) * 3, (stride,) * 3, SAME if padding == "SAME" else VALID, np.nan)
    views = np.lib.stride_tricks.sliding_window_view(around, (size,) * 3, (1, 2, 3))[:, ::stride, ::stride, ::stride]
    means = np.nanmean(views[:, : out[0], : out[1], : out[2]], (-3, -2, -1))
    if kind == "INT8":  # halves away from 0
        np.testing.assert_array_equal(run(interpreter, x), np.trunc(means + np.copysign(0.5, means)))
    else:
        np.testing.assert_allclose(run(interpreter, x), np.maximum(means, 0), rtol=1e-6)


def test_tables_of_8_bits(ops, code):
    lut = np.zeros(256, np.int8)
    arguments = C.c_float(0.04), C.c_int(-5), C.c_float(1 / 128), C.c_int(3)
    code.tanh_table_int8(*arguments, lut.ctypes.data_as(C.c_void_p))
    exact = np.tanh(0.04 * (np.arange(-128, 128) + 5)) * 128 + 3
    assert np.abs(lut - np.clip(exact, -128, 127)).max() <= 0.5 + 1e-4
    x = np.arange(-128, 128).astype(np.int8)
    b = Build().tensor("x", x.shape, "INT8").tensor("lut", data=lut, type="INT8").tensor("y", x.shape, "INT8")
    interpreter = lite.Interpreter(model_content=b.custom("Table", "x lut", "y").done(), custom_ops=ops)
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, x), lut)

    powers = np.zeros(256, np.uint8)
    arguments = C.c_float(1 / 255), C.c_int(0), C.c_float(1 / 255), C.c_int(0), C.c_float(2.5)
    code.power_table_uint8(*arguments, powers.ctypes.data_as(C.c_void_p))
    assert np.abs(powers - (np.arange(256) / 255) ** 2.5 * 255).max() <= 0.5 + 1e-4


def test_tables_of_16_bits(ops, code):
    """513 points, 65535 / 512 apart when they are computed and 128 when they are read, as in the official sources: up
    to a step of x, which is up to 4 steps of y here; and a step of rounding."""
    lut = np.zeros(513, np.int16)
    arguments = C.c_float(4 / 32768), C.c_int(0), C.c_float(1 / 32768), C.c_int(0)
    code.tanh_table_int16(*arguments, lut.ctypes.data_as(C.c_void_p))
    x = np.arange(-32768, 32768, 7).astype(np.int16)
    b = Build().tensor("x", x.shape, "INT16").tensor("lut", data=lut, type="INT16").tensor("y", x.shape, "INT16")
    interpreter = lite.Interpreter(model_content=b.custom("Table", "x lut", "y").done(), custom_ops=ops)
    interpreter.allocate_tensors()
    exact = np.tanh(x * (4 / 32768)) * 32768
    assert np.abs(run(interpreter, x) - np.clip(exact, -32768, 32767)).max() <= 5


@pytest.mark.parametrize(
    ("kind", "x"),
    [
        ("FLOAT32", np.arange(12, dtype=np.float32).reshape(3, 4)),
        ("BOOL", np.arange(8).reshape(2, 4) % 3 == 0),
        ("STRING", np.array([[b"a", b"", b"ccc"], [b"dd", b"e\0e", b"f"]], object)),
    ],
)
def test_writers(ops, kind, x):
    b = Build().tensor("x", x.shape, kind).tensor("by", data=np.int32([2]), type="INT32").tensor("y", x.shape, kind)
    interpreter = lite.Interpreter(model_content=b.custom("Turned", "x by", "y").done(), custom_ops=ops)
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, x), np.roll(x, 2, -1))


def test_numbers(code):
    out = (C.c_int * 6)()
    code.numbers(out)
    assert list(out) == [0, 32, 67, 0, 12, 20]


# --- whose headers come first ---------------------------------------------------------------------------------------


def test_headers_of_the_caller_come_first(tmp_path):
    """A folder of include_dirs may have other headers under the same names: the official ones."""
    (tmp_path / "tensorflow/lite/kernels").mkdir(parents=True)
    (tmp_path / "tensorflow/lite/kernels/padding.h").write_text("static const int kWhose = 7;\n")
    (tmp_path / "whose.cc").write_text(
        '#include "tensorflow/lite/kernels/padding.h"\n'
        '#include "tensorflow/lite/c/common.h"\n'
        'extern "C" int whose() { return kWhose + (kTfLiteOk == 0); }\n'
    )
    path = build_library([tmp_path / "whose.cc"], include_dirs=[tmp_path])
    toolchain.provider()
    assert C.CDLL(str(path)).whose() == 8
