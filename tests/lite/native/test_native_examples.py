"""The worked examples of operators in C and C++, built and run: the guides' programs first."""

from __future__ import annotations

import ctypes as C
import pathlib
import struct

import flatbuffers.flexbuffers as official_flexbuffers
import numpy as np
import pytest
from abi_kit import needs_compiler, run_compiler
from lite_kit import Build
from native_kit import run, single

from opwright import lite
from thorough import sampled

EXAMPLES = pathlib.Path(__file__).parent / "examples"
X = np.array([[-8.0, 0.5, 2.0], [2.2, 201.0, -0.25]], np.float32)

pytestmark = needs_compiler


def build(name, ops=None, **more):
    return lite.build_custom_ops([EXAMPLES / name], ops, **more)


def answer(ops, name, x, types=("FLOAT32", "FLOAT32"), y_shape=None, **options):
    interpreter = lite.Interpreter(model_content=single(name, x.shape, y_shape, types, **options), custom_ops=ops)
    interpreter.allocate_tensors()
    return run(interpreter, x)


# --- the guides' programs: the same operators by every function that they print -------------------------------------

GUIDES = [
    ("atan_opaque.cc", {"Atan": "AtanOpRegistrationExternal"}, np.arctan),
    ("atan_opaque.cc", {"Atan": "atan_op::AtanOpRegistrationExternal"}, np.arctan),
    ("atan_opaque.cc", {"Atan": "AtanOpRegistration"}, np.arctan),  # by value
    ("atan_opaque.c", {"Atan": "AtanOpRegistrationExternal"}, np.arctan),
    ("atan_opaque.c", {"Atan": "AtanOpRegistration"}, np.arctan),  # by value
    ("sin_struct.cc", {"Sin": "Register_SIN"}, np.sin),
    ("sin_struct.c", {"Sin": "Register_SIN"}, np.sin),
]


@pytest.mark.parametrize(("source", "ops", "function"), GUIDES, ids=lambda v: str(v))
def test_the_guides_operators(source, ops, function):
    (name,) = ops
    y = answer(build(source, ops), name, X)
    np.testing.assert_allclose(y, function(X.astype(np.float64)), rtol=2e-7)


@pytest.mark.parametrize("source", [f"{n}.{s}" for n in ("atan_opaque", "sin_struct") for s in ("c", "cc")])
def test_the_guides_names_are_found(source):
    expected = "ATAN" if source.startswith("atan") else "SIN"
    assert expected in build(source)  # what the operator, or its function, is called


@pytest.mark.parametrize(
    "standard", [pytest.param("c++11", marks=pytest.mark.slow), "c++17", pytest.param("c++20", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("source", sampled(sorted(p.name for p in EXAMPLES.glob("*.cc")), 9))
def test_examples_compile_in_every_cpp(tmp_path, source, standard):
    more = ["-Wno-missing-field-initializers"]  # the guide sets the first four fields
    if source == "atan_opaque.cc" and standard != "c++20":
        more.append("-Wno-pedantic")  # a field by its name is of C++20
    run_compiler(tmp_path, (EXAMPLES / source).read_text(), "c++", standard, *more)


@pytest.mark.parametrize("standard", ["c99"])
@pytest.mark.parametrize("source", sorted(p.name for p in EXAMPLES.glob("*.c") if p.name != "life_cycles.c"))
def test_examples_compile_in_every_c(tmp_path, source, standard):
    more = ["-DGENERATION=4"] if source == "generations.c" else []
    run_compiler(tmp_path, (EXAMPLES / source).read_text(), "c", standard, *more)


# --- state and options ----------------------------------------------------------------------------------------------

AFFINE = [("affine_opaque.c", "AffineOperator"), ("affine_struct.cc", "tflite::ops::custom::Register_MY_CUSTOM_OP")]


@pytest.mark.parametrize("options", [{}, {"alpha": 2.5}, {"beta": -1.0, "alpha": 3}, {"alpha": 0.1, "other": [1, 2]}])
@pytest.mark.parametrize(("source", "entry"), AFFINE)
def test_state_from_options(source, entry, options):
    y = answer(build(source, {"Affine": entry}), "Affine", X, **options)
    alpha, beta = np.float32(options.get("alpha", 1)), np.float32(options.get("beta", 0))
    np.testing.assert_allclose(y, np.float64(alpha) * X + np.float64(beta), rtol=3e-7)


def test_an_init_that_fails_is_an_error_of_the_model():
    ops = build("affine_opaque.c", {"Affine": "AffineOperator"})
    with pytest.raises(Exception, match="alpha is 0") as error:
        answer(ops, "Affine", X, alpha=0.0)
    assert "Affine" in str(error.value)
    np.testing.assert_array_equal(answer(ops, "Affine", X), X)  # the library goes on


# --- temporaries, dynamic outputs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "entry"), [("normalize_opaque.c", "NormalizeOperator"), ("normalize_struct.cc", "Register_NORMALIZE")]
)
def test_a_temporary_tensor(source, entry):
    ops = build(source, {"Normalize": entry})
    interpreter = lite.Interpreter(model_content=single("Normalize", X.shape), custom_ops=ops)
    interpreter.allocate_tensors()
    for x in (X, X[:1] * 3, np.concatenate([X, -X, X])):  # smaller and larger than at first
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], x.shape)
        interpreter.allocate_tensors()
        wide = x.astype(np.float64)
        np.testing.assert_allclose(run(interpreter, x), wide / np.abs(wide).sum(), rtol=2e-7)


@pytest.mark.parametrize(
    ("source", "entry"), [("nonzero_opaque.c", "NonZeroOperator"), ("nonzero_struct.cc", "Register_NONZERO")]
)
def test_a_dynamic_output(source, entry):
    ops = build(source, {"NonZero": entry})
    content = single("NonZero", (6,), (0,), ("FLOAT32", "INT32"))
    interpreter = lite.Interpreter(model_content=content, custom_ops=ops)
    interpreter.allocate_tensors()
    for x in ([1, 0, 0, 2, 3, 0], [0] * 6, [1] * 6, [0, 0, 0, 0, 0, 7]):
        np.testing.assert_array_equal(run(interpreter, x), np.flatnonzero(x))


# --- the style of the official sources ------------------------------------------------------------------------------


def test_options_that_are_a_struct():
    """Unpooling undoes pooling where the largest elements were; the struct is written as C lays it out."""
    ops = build("unpool_struct.cc", {"Unpool": "Register_UNPOOL"})
    rng = np.random.default_rng(0)
    whole = rng.permutation(2 * 4 * 6 * 3).astype(np.float32).reshape(2, 4, 6, 3)
    blocks = whole.reshape(2, 2, 2, 3, 2, 3).transpose(0, 1, 3, 5, 2, 4).reshape(2, 2, 3, 3, 4)
    place, x = blocks.argmax(-1), blocks.max(-1)
    i, j, c = np.meshgrid(range(2), range(3), range(3), indexing="ij")
    indices = (((2 * i + place // 2) * 6 + 2 * j + place % 2) * 3 + c).astype(np.int32)
    kept = np.where(blocks == x[..., None], blocks, 0).reshape(2, 2, 3, 3, 2, 2)
    expected = kept.transpose(0, 1, 4, 2, 5, 3).reshape(whole.shape)

    content = Build().tensor("x", x.shape).tensor("i", indices.shape, "INT32").tensor("y", (0, 0, 0, 0))
    content = content.custom("Unpool", "x i", "y")
    options = struct.pack("<10i", 1, 2, 2, 2, 2, 0, 0, 0, 0, 0)
    content.main.operators[-1].custom_options = np.frombuffer(options, np.uint8)
    interpreter = lite.Interpreter(model_content=content.done("x i"), custom_ops=ops)
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, x, indices), expected)
    with pytest.raises(Exception, match="indices"):
        run(interpreter, x, indices + 1000)


def test_strings_in_and_out():
    ops = build("words_struct.cc", {"Words": "Register_WORDS"})
    content = Build().tensor("x", (3,), "STRING").tensor("y", (0,), "STRING").tensor("n", (3,), "INT32")
    interpreter = lite.Interpreter(model_content=content.custom("Words", "x", "y n").done("x", "y n"), custom_ops=ops)
    interpreter.allocate_tensors()
    for texts in ([b"to be or", b"", b" not  to "], [b"", b"", b""], [b"a" * 1000, "é ü".encode(), b"x\0y z"]):
        run(interpreter, np.array(texts, object))
        words, counts = (interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details())
        expected = [[w for w in text.split(b" ") if w] for text in texts]
        assert words.tolist() == [w for part in expected for w in part]
        assert counts.tolist() == [len(part) for part in expected]


# --- failures -------------------------------------------------------------------------------------------------------


def test_one_that_fails_in_prepare():
    ops = build("refuses.c", {"Trace": "TraceOperator"})
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    assert answer(ops, "Trace", x, y_shape=()) == np.trace(x)
    interpreter = lite.Interpreter(model_content=single("Trace", (2, 3), ()), custom_ops=ops)
    with pytest.raises(Exception, match="a trace is of a square matrix, found 2 x 3") as error:
        interpreter.allocate_tensors()
    assert "Trace" in str(error.value)
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], (2, 2))  # and it goes on
    interpreter.allocate_tensors()
    assert run(interpreter, [[1, 2], [3, 4]]) == 5


def test_one_that_fails_in_invoke():
    ops = build("refuses.c", {"Root": "Register_ROOT"})
    interpreter = lite.Interpreter(model_content=single("Root", (3,)), custom_ops=ops)
    interpreter.allocate_tensors()
    with pytest.raises(Exception, match=r"element 1 is -4, below 0") as error:
        run(interpreter, [1, -4, 9])
    assert "Root" in str(error.value)
    np.testing.assert_allclose(run(interpreter, [1, 4, 9]), [1, 2, 3])


# --- libraries of other times ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("generation", range(1, 9))
def test_every_generation(generation):
    ops = build("generations.c", {"Add": "Entry"}, defines={"GENERATION": generation})
    np.testing.assert_array_equal(answer(ops, "Add", X), X + np.float32(generation))


# --- options as others write them -----------------------------------------------------------------------------------

READER = """
#include "opwright/flexbuffer.h"
#include "tensorflow/lite/c/c_api_opaque.h"
int as_double(const char* b, size_t n, const char* k, double* v) { return ow_flex_double(b, n, k, v); }
int as_int(const char* b, size_t n, const char* k, int64_t* v) { return ow_flex_int64(b, n, k, v); }
int as_string(const char* b, size_t n, const char* k, const char** v, size_t* s) {
  return ow_flex_string(b, n, k, v, s);
}
int as_doubles(const char* b, size_t n, const char* k, double* v, size_t most, size_t* c) {
  return ow_flex_doubles(b, n, k, v, most, c);
}
"""


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    from opwright.lite.native import toolchain

    source = tmp_path_factory.mktemp("flex") / "reader.c"
    source.write_text(READER)
    toolchain.provider()
    return C.CDLL(str(toolchain.build_library([source])))


def read(reader, function, data, name, box, *more):
    held = C.create_string_buffer(bytes(data), len(data))
    result = getattr(reader, function)(held, C.c_size_t(len(data)), name.encode(), C.byref(box), *more)
    return held if result else None


@pytest.mark.parametrize(
    "value", [0, 1, -1, 127, -128, 255, 40000, -(2**31), 2**40, 2**62, 0.5, -1e38, 1e-3, True, False]
)
def test_numbers_of_flexbuffers(reader, value):
    data = official_flexbuffers.Dumps({"a": 7, "value": value, "z": "text"})
    real, whole = C.c_double(), C.c_int64()
    assert read(reader, "as_double", data, "value", real)
    assert real.value == float(value)
    is_whole = float(value) == int(value) and abs(value) < 2**63
    assert bool(read(reader, "as_int", data, "value", whole)) == is_whole
    if is_whole:
        assert whole.value == int(value)
    assert not read(reader, "as_double", data, "valu", real)
    assert not read(reader, "as_double", data, "z", real)


def test_strings_and_lists_of_flexbuffers(reader):
    values = {
        "words": "héllo",
        "empty": "",
        "sizes": [1, 2, 300],
        "mixed": [1, 2.5, True],
        "reals": [0.5, 1e9],
        "none": [],
    }
    data = official_flexbuffers.Dumps(values)
    for name in ("words", "empty"):
        text, size = C.c_char_p(), C.c_size_t()
        held = read(reader, "as_string", data, name, text, C.byref(size))
        assert held is not None
        assert C.string_at(text, size.value).decode() == values[name]
    for name in ("sizes", "mixed", "reals", "none"):
        numbers, count = (C.c_double * 8)(), C.c_size_t()
        assert read(reader, "as_doubles", data, name, numbers, C.c_size_t(8), C.byref(count))
        assert list(numbers)[: count.value] == [float(v) for v in values[name]]


def test_damaged_flexbuffers_are_not_read_outside(reader):
    """Every byte replaced and every cut: an answer or none, nothing else. (The sanitised run is in life cycles.)"""
    data = official_flexbuffers.Dumps({"alpha": 0.25, "names": ["a", "b"], "n": 70000, "sizes": [1, 2, 3]})
    numbers, count = (C.c_double * 4)(), C.c_size_t()
    cuts = [data[i:j] for i in range(0, len(data), 3) for j in range(i, len(data) + 1, 2)]
    changed = [data[:i] + bytes([b]) + data[i + 1 :] for i in range(len(data)) for b in (0, 1, 0x7F, 0x80, 0xFF)]
    for bad in cuts + changed:
        for name in ("alpha", "n", "sizes", "names"):
            read(reader, "as_double", bad, name, C.c_double())
            read(reader, "as_doubles", bad, name, numbers, C.c_size_t(4), C.byref(count))
            read(reader, "as_string", bad, name, C.c_char_p(), C.byref(count))
