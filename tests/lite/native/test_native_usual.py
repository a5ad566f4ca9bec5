"""Operators in the manner of public libraries: what they include and call, resolvers, options by flexbuffers::Map.

The oracles: NumPy, whole numbers of Python, the FlatBuffers project's own writer of FlexBuffers.
"""

from __future__ import annotations

import ctypes as C
import functools
import math
import subprocess
import sys
import warnings

import flatbuffers.flexbuffers as official_flexbuffers
import numpy as np
import pytest
from abi_kit import SANITIZED, needs_compiler, run_compiler
from hypothesis import given
from hypothesis import strategies as st
from lite_kit import Build
from native_kit import HERE, run, single

import opwright as ow
from opwright import lite
from opwright.lite.native import toolchain
from opwright.lite.native.toolchain import build_library
from thorough import sampled

pytestmark = needs_compiler
SOURCE = HERE / "usual.cc"
OPTIONS = HERE / "options.cc"


@pytest.fixture(scope="module")
def path():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of the compiler: some come with -O2 alone
        return str(build_library([SOURCE], defines={"RESOLVERS": None}))


@pytest.fixture(scope="module")
def code(path):
    toolchain.provider()
    return C.CDLL(path)


@pytest.mark.parametrize("standard", ["c++11", pytest.param("c++20", marks=pytest.mark.slow)])
def test_it_compiles_without_a_warning(tmp_path, standard):
    run_compiler(tmp_path, SOURCE.read_text(), "c++", standard, "-DRESOLVERS", "-Wno-missing-field-initializers")


# --- what they compute ----------------------------------------------------------------------------------------------


def pooled(x, padding, stride, size):
    """The largest of each window, and where it is in the image, by a window at a time."""
    n, h, w, c = x.shape
    out = [-(-length // stride) if padding == "SAME" else (length - size) // stride + 1 for length in (h, w)]
    before = [
        max((o - 1) * stride + size - length, 0) // 2 if padding == "SAME" else 0 for o, length in zip(out, (h, w))
    ]
    y, places = np.zeros((n, *out, c), np.float32), np.zeros((n, *out, c), np.int32)
    for b, i, j, k in np.ndindex(*y.shape):
        rows, columns = (
            range(max(p * stride - d, 0), min(p * stride - d + size, length))
            for p, d, length in zip((i, j), before, (h, w))
        )
        best = max((float(x[b, r, q, k]), -(r * w + q)) for r in rows for q in columns)
        y[b, i, j, k], places[b, i, j, k] = np.clip(best[0], -6, 6), -best[1] * c + k
    return y, places


@pytest.mark.parametrize(
    ("padding", "stride", "size"), sampled([("SAME", 2, 2), ("SAME", 1, 3), ("VALID", 1, 1), ("VALID", 2, 3)])
)
def test_pooling_with_places(path, padding, stride, size):
    ops = lite.load_custom_ops(path, {"Pool": "RegisterPoolWithPlaces"})
    b = Build().tensor("x", (1, 1, 1, 1)).tensor("y", (1, 1, 1, 1)).tensor("places", (1, 1, 1, 1), "INT32")
    b.custom("Pool", "x", "y places", padding=padding, strides=[1, stride, stride, 1], ksize=[1, size, size, 1])
    interpreter = lite.Interpreter(model_content=b.done("x", "y places"), custom_ops=ops)
    for shape in ((2, 5, 7, 3), (1, 4, 4, 1)):
        x = 5 * np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        interpreter.resize_tensor_input(0, shape)
        interpreter.allocate_tensors()
        expected = pooled(x, padding, stride, size)
        np.testing.assert_array_equal(run(interpreter, x), expected[0])
        actual = interpreter.get_tensor(interpreter.get_output_details()[1]["index"])
        np.testing.assert_array_equal(actual, expected[1])


def test_options_that_are_missing_are_an_error_of_the_node(path):
    ops = lite.load_custom_ops(path, {"Pool": "RegisterPoolWithPlaces"})
    b = Build().tensor("x", (1, 2, 2, 1)).tensor("y", (1, 2, 2, 1)).tensor("places", (1, 2, 2, 1), "INT32")
    interpreter = lite.Interpreter(
        model_content=b.custom("Pool", "x", "y places").done("x", "y places"), custom_ops=ops
    )
    with pytest.raises(RuntimeError, match=r"strides are above 0(.|\n)*Node number 0 \(Pool\) failed to prepare"):
        interpreter.allocate_tensors()


def test_any_number_of_inputs_and_a_type_that_is_refused(path, capfd):
    ops = lite.load_custom_ops(path, {"Total": "RegisterTotal"})
    b = Build().tensor("a").tensor("b").tensor("c").tensor("y").custom("Total", "a b c a", "y")
    interpreter = lite.Interpreter(model_content=b.done("a b c"), custom_ops=ops)
    interpreter.allocate_tensors()
    x = np.random.default_rng(0).integers(-9, 9, (3, 5)).astype(np.float32)
    np.testing.assert_array_equal(run(interpreter, *x), 2 * x[0] + x[1] + x[2])
    assert "INFO: 4 inputs" in capfd.readouterr().err
    interpreter = lite.Interpreter(model_content=single("Total", types=("INT16", "INT16")), custom_ops=ops)
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match="Total does not take type INT16"):
        interpreter.invoke()


# --- fixed point ----------------------------------------------------------------------------------------------------


def nearest(number, halves):
    """A fraction's nearest whole number. halves: the rounding of those in the middle."""
    low = math.floor(number)
    return low if number - low < 0.5 else low + 1 if number - low > 0.5 else halves(low)


@given(x=st.integers(-(2**20), 2**20), real=st.floats(2.0**-20, 512))
def test_products_with_a_factor(code, x, real):
    code.multiplied.restype, code.multiplied.argtypes = C.c_int32, (C.c_int32, C.c_double)
    fraction, exponent = math.frexp(real)
    multiplier = round(fraction * 2**31)
    high, rest = divmod(x * 2 ** max(exponent, 0) * multiplier, 2**31)  # exact, of whole numbers
    high += rest >= 2**30
    exact = high / 2 ** max(-exponent, 0)
    away = nearest(exact, lambda low: low + 1 if low >= 0 else low)
    if multiplier < 2**31 and abs(x * 2 ** max(exponent, 0)) < 2**31:
        assert code.multiplied(x, real) == away
    assert abs(code.multiplied(x, real) - x * real) <= 1 + abs(x * real) * 2.0**-30


# --- functions that take a resolver ---------------------------------------------------------------------------------


def test_what_is_added_to_a_resolver_is_found(path):
    ops = lite.load_custom_ops(path, "usual::AddAllOfUs")
    assert {name: op.version for name, op in ops.items()} == {"Pool": 3, "Rescale": 1}
    content = (
        Build()
        .tensor("x", (4,), "INT8", quantization=quantized(0.5, -10))
        .tensor("y", (4,), "INT8", quantization=quantized(0.25, 3))
        .custom("Rescale", "x", "y")
        .done()
    )
    interpreter = lite.Interpreter(model_content=content, custom_ops=ops)
    interpreter.allocate_tensors()
    x = np.int8([-20, -10, 0, 100])
    np.testing.assert_array_equal(run(interpreter, x), np.clip(np.maximum((x + 10) * 2.0, 0) + 3, -128, 127))


def quantized(scale, zero_point):
    from opwright.lite.format import objects

    return objects.QuantizationParameters(scale=[scale], zero_point=[zero_point])


def test_c_functions_and_names(path):
    (one,) = lite.load_custom_ops(path, ["RegisterOne"]).values()
    assert (one.name, one.version) == ("One", 2)  # of a string that is gone
    assert list(lite.load_custom_ops(path, {"Mine": "RegisterOne"})) == ["Mine"]
    assert list(lite.load_custom_ops(path, {"Pool": "AddAllOfUs"})) == ["Pool"]
    with pytest.raises(ow.errors.NotFoundError, match="adds no operator 'Mine'") as caught:
        lite.load_custom_ops(path, {"Mine": "AddAllOfUs"})
    assert "Pool, Rescale" in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("AddNothing", "adds no operators to its resolver"),
        ("AddBuiltin", "adds a kernel of a builtin operator"),
        ("AddNameless", "without a name"),
    ],
)
def test_functions_that_add_what_is_none(path, entry, words):
    with pytest.raises(ow.errors.InvalidArgumentError, match=words) as caught:
        lite.load_custom_ops(path, {"Mine": entry})
    assert path in str(caught.value)
    assert f"usual::{entry}" in str(caught.value)


OFFICIAL = """
#include <clocale>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>
#include "tensorflow/lite/c/common.h"
namespace tflite { // as the official headers declare it: a class with virtual functions and members of its own
enum BuiltinOperator : int32_t {};
class OpResolver {
 public:
  virtual const TfLiteRegistration* FindOp(BuiltinOperator op, int version) const = 0;
  virtual const TfLiteRegistration* FindOp(const char* op, int version) const = 0;
  virtual ~OpResolver() {}
};
class MutableOpResolver : public OpResolver {
 public:
  const TfLiteRegistration* FindOp(BuiltinOperator op, int version) const override;
  const TfLiteRegistration* FindOp(const char* op, int version) const override;
  void AddCustom(const char* name, const TfLiteRegistration* registration, int version = 1);
  void AddCustom(const char* name, const TfLiteRegistration* registration, int min_version, int max_version);
  std::unordered_map<std::string, TfLiteRegistration> ops_;
};
namespace ops { namespace custom {
static TfLiteStatus Prepare(TfLiteContext*, TfLiteNode*) { return kTfLiteOk; }
static TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  context->tensors[node->outputs->data[0]].data.f[0] = 4.5f;
  return kTfLiteOk;
}
void AddText(MutableOpResolver* resolver) {
  static TfLiteRegistration r = {nullptr, nullptr, Prepare, Invoke};
  resolver->AddCustom("Text", &r);
  resolver->AddCustom("Text2", &r, 1, 2);
}
} }
}
namespace flatbuffers { // which its headers want of its library
class ClassicLocale {
 public:
  static locale_t Get() { return instance_.locale_; }
  static ClassicLocale instance_;
  locale_t locale_;
};
}
extern "C" double number(const char* text) { return strtod_l(text, nullptr, flatbuffers::ClassicLocale::Get()); }
"""


@pytest.mark.skipif(sys.platform != "linux", reason="strtod_l is elsewhere")
def test_libraries_of_the_official_headers(tmp_path):
    (tmp_path / "official.cc").write_text(OFFICIAL)
    path = build_library([tmp_path / "official.cc"], flags="-Wno-missing-field-initializers")
    ops = lite.load_custom_ops(path)
    assert {name: op.version for name, op in ops.items()} == {"Text": 1, "Text2": 2}
    interpreter = lite.Interpreter(model_content=single("Text"), custom_ops=ops)
    interpreter.allocate_tensors()
    assert run(interpreter, np.zeros(5))[0] == 4.5
    code = C.CDLL(str(path))
    code.number.restype = C.c_double
    assert code.number(b"1.25") == 1.25


def test_functions_called_register_are_found_where_there_are_no_others():
    ops = lite.load_custom_ops(build_library([SOURCE], flags="-O0"))
    assert set(ops) == {"PoolWithPlaces", "Rescale", "Total"}


# --- options --------------------------------------------------------------------------------------------------------

VALUES = {
    "int": -7,
    "large": 2**62,
    "small": -(2**40),
    "real": 0.1,
    "wide": 1.1e38,
    "yes": True,
    "no": False,
    "text": "héllo",
    "empty": "",
    "number": "42",
    "sizes": [1, 2, 300],
    "reals": [0.5, -2.0],
    "mixed": [1, 2.5, "three", [4]],
    "none": [],
    "map": {"a": {"b": [5, 6]}, "c": "d"},
    "null": None,
}


OFFICIAL_READER = "flatbuffers/flexbuffers.h"
TYPES = """
#include <type_traits>
using namespace flexbuffers;
static_assert(!std::is_convertible<TypedVector, Vector>::value, "");
static_assert(!std::is_convertible<Vector, TypedVector>::value, "");
static_assert(!std::is_convertible<FixedTypedVector, TypedVector>::value, "");
static_assert(!std::is_convertible<String, Blob>::value, "");
static_assert(std::is_convertible<const Map&, const Vector&>::value, "");
static_assert(std::is_same<decltype(GetRoot(nullptr, 0).AsMap().Values()), Vector>::value, "");
static_assert(std::is_same<decltype(GetRoot(nullptr, 0).AsMap().Keys()), TypedVector>::value, "");
"""


@functools.cache
def has_official_reader():
    """Whether FlatBuffers' own header is where the compiler looks by itself: Debian's libflatbuffers-dev, CPATH."""
    command = [*toolchain.find_compiler("c++").command, "-std=c++11", "-x", "c++", "-fsyntax-only", "-"]
    text = f"#include <{OFFICIAL_READER}>\n"
    return subprocess.run(command, input=text, text=True, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    "header", ["opwright/lite/flexbuffers.h", pytest.param(OFFICIAL_READER, marks=pytest.mark.slow)]
)
def test_types_convert_as_in_flatbuffers_own_header(tmp_path, header):
    """What compiles with our reader compiles with FlatBuffers' own, which takes its place where it is installed."""
    run_compiler(tmp_path, f'#include "{header}"\n{TYPES}', "c++", "c++11", "-Wno-pedantic")


@pytest.fixture(scope="module", params=["ours", "official"])
def reader(request):
    """The reader of options as a library: ours, and FlatBuffers' own where it is installed."""
    if request.param == "official" and not has_official_reader():
        pytest.skip("FlatBuffers' own headers are not installed (libflatbuffers-dev)")
    defines = {} if request.param == "ours" else {"FLEXBUFFERS": f'"{OFFICIAL_READER}"'}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = str(build_library([OPTIONS], defines=defines))
    toolchain.provider()  # flatbuffers::ClassicLocale is there
    return C.CDLL(path)


@pytest.fixture(scope="module")
def options():
    content = bytes(official_flexbuffers.Dumps(VALUES))
    return C.create_string_buffer(content, len(content)), C.c_size_t(len(content))


def paths(value, at=""):
    yield at.removesuffix("/"), value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths(inner, f"{at}{key}/")


@pytest.mark.parametrize(("at", "value"), [p for p in paths(VALUES) if p[0]], ids=lambda v: str(v)[:20])
def test_values_of_options(reader, options, at, value):
    reader.flex_int.restype, reader.flex_uint.restype, reader.flex_double.restype = C.c_int64, C.c_uint64, C.c_double
    where = (*options, at.encode())
    texts = (None, "", "héllo", "three", "d")  # no numbers
    number = len(value) if isinstance(value, list) else 0 if isinstance(value, dict) or value in texts else float(value)
    assert reader.flex_double(*where) == number
    if abs(number) < 2**63:
        assert reader.flex_int(*where) == int(value if isinstance(value, int | str) and number else number)
    if isinstance(value, bool | int | float) and abs(value) < 2**63:
        assert bool(reader.flex_bool(*where)) == bool(int(value))  # 0.5 is false
    if isinstance(value, str):
        out = C.create_string_buffer(64)
        size = reader.flex_text(*where, out, 64)
        assert out.raw[:size].decode() == value


def test_unsigned_fixed_and_named_lists(reader):
    reader.flex_uint.restype, reader.flex_int.restype = C.c_uint64, C.c_int64
    builder = official_flexbuffers.Builder()
    with builder.Map():
        builder.UInt("most", 2**64 - 1)
        builder.FixedTypedVectorFromElements("three", [7, -8, 9])
        builder.TypedVectorFromElements("flags", [True, False, True])
        builder.Blob("blob", b"abc")
        builder.IndirectInt("far", -5)
        builder.IndirectFloat("away", 2.5)
    content = bytes(builder.Finish())
    where = C.create_string_buffer(content, len(content)), C.c_size_t(len(content))
    assert reader.flex_uint(*where, b"most") == 2**64 - 1
    assert reader.flex_int(*where, b"most") == -1  # as in C++
    assert [reader.flex_int(*where, f"three/{i}".encode()) for i in range(4)] == [7, -8, 9, 0]
    assert [reader.flex_int(*where, f"flags/{i}".encode()) for i in range(3)] == [1, 0, 1]
    assert reader.flex_int(*where, b"far") == -5
    assert reader.flex_double(*where, b"away") == 2.5
    assert reader.flex_int(*where, b"not there") == 0
    assert reader.flex_type(*where, b"not there") == 0


def test_a_node_without_options_reads_as_null():
    toolchain.provider()
    reader = C.CDLL(str(build_library([OPTIONS])))
    assert reader.flex_type(None, C.c_size_t(0), b"int") == 0
    assert reader.flex_int(None, C.c_size_t(0), b"int") == 0


DAMAGED = """
#include "options.cc"
#include <cstdio>
#include <cstdlib>
#include <cstring>
int main(int, char** arguments) {
  FILE* file = std::fopen(arguments[1], "rb");
  uint8_t whole[4096];
  const size_t size = std::fread(whole, 1, sizeof whole, file);
  volatile double sum = 0; /* so that nothing is left out */
  for (size_t i = 0; i < size; ++i) {
    for (int byte = 0; byte < 256; byte += 15) { /* every byte replaced, in a block of the very size */
      uint8_t* copy = static_cast<uint8_t*>(std::malloc(size));
      std::memcpy(copy, whole, size);
      copy[i] = static_cast<uint8_t>(byte);
      sum = sum + flex_sum(copy, size);
      std::free(copy);
    }
    uint8_t* cut = static_cast<uint8_t*>(std::malloc(i == 0 ? 1 : i)); /* and every end cut off */
    std::memcpy(cut, whole + (size - i), i);
    sum = sum + flex_sum(cut, i);
    std::free(cut);
  }
  return 0;
}
"""


@pytest.mark.slow
def test_damaged_options_are_not_read_outside(tmp_path):
    compiler = toolchain.find_compiler("c++")
    (tmp_path / "damaged.cc").write_text(DAMAGED)
    (tmp_path / "options").write_bytes(bytes(official_flexbuffers.Dumps(VALUES)))
    done = subprocess.run(
        [
            *compiler.command,
            *SANITIZED,
            f"-I{toolchain.include_dir()}",
            f"-I{HERE}",
            str(tmp_path / "damaged.cc"),
            "-o",
            str(tmp_path / "damaged"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 and "asan" in done.stderr:
        pytest.skip("no sanitizers here")
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [str(tmp_path / "damaged"), str(tmp_path / "options")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.parametrize("unused", [False, True])
def test_flatbuffers_own_header_goes_first_where_it_is(tmp_path, unused):
    """A folder of headers in which the project's own header is, behind ours."""
    (tmp_path / "flatbuffers").mkdir()
    if not unused:
        (tmp_path / "flatbuffers" / "flexbuffers.h").write_text("namespace flexbuffers { const int kOwn = 1; }\n")
    name = "kOwn" if not unused else "FBT_MAP"
    text = f'#include "flatbuffers/flexbuffers.h"\nint used() {{ return flexbuffers::{name}; }}\n'
    run_compiler(tmp_path, text, "c++", "c++11", f"-I{toolchain.include_dir()}", f"-I{tmp_path}")


@given(st.text(alphabet="_ZNEPSv0123456789abt17MutableOpResolver", max_size=50))
def test_any_text_is_some_name(text):
    from opwright.lite.native.library import find_entries, operator_name

    assert all(operator_name(name) for name in find_entries([text, "_Z" + text]))


def test_a_record_by_value_and_one_model(path):
    """A library's registrations by a function and by a resolver are one operator."""
    ops = {**lite.load_custom_ops(path, ["RegisterRescale"]), **lite.load_custom_ops(path, ["RegisterOne"])}
    assert ops["Rescale"].record.invoke == ops["One"].record.invoke
    with pytest.raises(RuntimeError, match="INT8"):
        lite.Interpreter(model_content=single("Rescale"), custom_ops=ops).allocate_tensors()
