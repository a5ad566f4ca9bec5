"""The headers of the C interface against the facts: layouts, values, signatures, names, paths; in C and C++."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest
from abi_kit import ABI, cpp_symbols, declared, functions, has_compiler, needs_compiler, run_compiler, symbols_of

from opwright import lite
from opwright.core import flags
from opwright.lite.native import build_cache, toolchain
from thorough import sampled

HEADERS = ["c_api.h", "c_api_experimental.h", "c_api_opaque.h", "common.h", "operator.h", "builtin_op_data.h"]
INCLUDES = "".join(f'#include "tensorflow/lite/core/c/{name}"\n' for name in HEADERS)
INCLUDES += '#include "tensorflow/lite/builtin_ops.h"\n#include "tensorflow/lite/core/async/c/async_kernel.h"\n'
ALL = [("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++14"), ("c++", "c++17"), ("c++", "c++20")]
QUICK = {"c99", "c++11", "c++20"}
STANDARDS = [pytest.param(*row, marks=() if row[1] in QUICK else pytest.mark.slow) for row in ALL]
PRIVATE = {"TfLiteOperator (private layout)"}


def layout_checks():
    """Size and offsets of every struct, the value of every enumerator: C that compiles where all are right."""
    checks = []
    for name, struct in ABI["structs"].items():
        if name in PRIVATE:
            continue
        checks.append(f"sizeof({name}) == {struct['size_lp64']}")
        checks += [f"offsetof({name}, {field['name']}) == {field['offset']}" for field in struct["fields"]]
    for name, enum in ABI["enums"].items():
        if name != "(unnamed)":
            checks.append(f"sizeof({name}) == {enum['bytes']}")
        for constant, value in enum["values"].items():
            checks.append(f"{constant} == {value}{'ULL' if value > 2**63 else ''}")
    return checks


def as_program(checks):
    """`typedef char check[1 or -1]`: what every standard has."""
    return "".join(f"typedef char check_{i}[({check}) ? 1 : -1]; /* {check} */\n" for i, check in enumerate(checks))


def signature_checks():
    """A pointer of each function's type, set to the function."""
    lines = []
    for f in functions():
        parameters = ", ".join(declared(p["type"], p["name"]) for p in f["params"]) or "void"
        variadic = ", ..." if f.get("variadic") else ""
        create = f["name"] in ("TfLiteOperatorCreate", "TfLiteRegistrationExternalCreate")
        if not create:  # these two take several numbers of arguments
            lines.append(f"{f['returns']} (*p_{f['name']})({parameters}{variadic}) = {f['name']};")
    return "\n".join(lines) + "\n"


@needs_compiler
@pytest.mark.parametrize(("language", "standard"), STANDARDS, ids=lambda v: v)
def test_layouts_values_and_signatures(tmp_path, language, standard):
    checks = layout_checks()
    assert len(checks) > 450  # the table was read
    text = INCLUDES + as_program(checks) + signature_checks()
    run_compiler(tmp_path, text, language, standard, "-Wno-sign-compare", "-Wno-missing-field-initializers")


def test_every_function_is_there():
    if not has_compiler():
        pytest.skip("no C compiler here")
    provider = toolchain.provider()
    names = [f["name"] for f in functions()] + cpp_symbols()
    assert len(set(names)) > 295
    assert not [name for name in names if not hasattr(provider, name)]


CREATION = """
static TfLiteOperator* all(void* data) {
  TfLiteRegistrationExternal* a = TfLiteRegistrationExternalCreate("A", 1);
  TfLiteRegistrationExternal* b = TfLiteRegistrationExternalCreate(kTfLiteBuiltinCustom, "B", 1);
  TfLiteOperator* c = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "C", 1);
  TfLiteOperator* d = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "D", 1, data);
  TfLiteRegistrationExternalSetInplaceOperator(a, kTfLiteInplaceOpInput0Shared);
  TfLiteRegistrationExternalDelete(b);
  TfLiteOperatorDelete(c);
  return TfLiteOperatorGetVersion(a) ? a : d;
}
void* keep_all = (void*)0;
TfLiteOperator* use(void* data);
TfLiteOperator* use(void* data) { return all(data); }
"""


@needs_compiler
@pytest.mark.parametrize(("language", "standard"), STANDARDS, ids=lambda v: v)
def test_operators_are_created_with_two_to_four_arguments(tmp_path, language, standard):
    run_compiler(tmp_path, INCLUDES + CREATION, language, standard)


MACROS = """
static TfLiteStatus classic(TfLiteContext* context, TfLiteNode* node, int s) {
  TF_LITE_ENSURE(context, node != NULL);
  TF_LITE_ENSURE_MSG(context, s == 1, "s is %d", s);
  TF_LITE_ENSURE_MSG(context, s == 1, "s is not 1");
  TF_LITE_ENSURE_STATUS(s == 1 ? kTfLiteOk : kTfLiteError); /* a variable called s */
  TF_LITE_ENSURE_EQ(context, s, 1);
  TF_LITE_ENSURE_TYPES_EQ(context, kTfLiteInt8, kTfLiteInt8);
  TF_LITE_ENSURE_NEAR(context, 1.0, 1.25f, 0.5);
  TF_LITE_ENSURE_OK(context, kTfLiteOk);
  TF_LITE_ENSURE_OK(context, s == 1 ? kTfLiteOk : kTfLiteError, "s is %d and not %d", s, 1);
  TF_LITE_KERNEL_LOG(context, "%d", s);
  if (s == 1) TF_LITE_MAYBE_KERNEL_LOG(context, "one");
  else TF_LITE_MAYBE_KERNEL_LOG(context, "%s", "another");
  return kTfLiteOk;
}
static TfLiteStatus opaque(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node, int s) {
  TF_LITE_OPAQUE_ENSURE(context, node != NULL);
  TF_LITE_OPAQUE_ENSURE_MSG(context, s == 1, "s is not 1");
  TF_LITE_OPAQUE_ENSURE_EQ(context, s, 1);
  TF_LITE_OPAQUE_ENSURE_TYPES_EQ(context, kTfLiteInt8, kTfLiteInt8);
  TF_LITE_OPAQUE_ENSURE_NEAR(context, 1.0, 1.25f, 0.5);
  TF_LITE_OPAQUE_KERNEL_LOG(context, "%d", s);
  if (s == 1) TF_LITE_OPAQUE_MAYBE_KERNEL_LOG(context, "one");
  else TF_LITE_OPAQUE_MAYBE_KERNEL_LOG(context, "%s", "another");
  return kTfLiteOk;
}
int keep(int s);
int keep(int s) { return (classic(NULL, NULL, s) != kTfLiteOk) + (opaque(NULL, NULL, s) != kTfLiteOk); }
"""


@needs_compiler
@pytest.mark.parametrize(("language", "standard"), STANDARDS, ids=lambda v: v)
def test_macros_compile_without_a_warning(tmp_path, language, standard):
    run_compiler(tmp_path, INCLUDES + MACROS, language, standard)


HELPERS = """
template <typename... A> struct Take { template <typename R> static void* of(R (*f)(A...)) { return (void*)f; } };
"""


@needs_compiler
@pytest.mark.parametrize("standard", ["c++11", pytest.param("c++20", marks=pytest.mark.slow)])
def test_helpers_of_cpp_have_the_official_names(tmp_path, standard):
    """The mangled name has the types of all parameters in it."""
    names = ("kernels/kernel_util.h", "kernels/internal/tensor_ctypes.h", "string_util.h")
    text = "".join(f'#include "tensorflow/lite/{name}"\n' for name in names)
    taken = []
    for row in ABI["kernel_util_cpp_symbols"]["symbols"]:
        name, parameters = row["signature"].replace("[abi:cxx11]", "").rstrip(")").split("(", 1)
        taken.append(f"Take<{parameters}>::of(&{name})")
    text += HELPERS + f"void* taken[] = {{{', '.join(taken)}}};\n"
    actual = symbols_of(run_compiler(tmp_path, text, "c++", standard))
    expected = {row["symbol"] for row in ABI["kernel_util_cpp_symbols"]["symbols"]}
    if any("__1" in name for name in actual):  # libc++ has other names for its strings and lists
        expected = {name for name in expected if "cxx11" not in name and "initializer_list" not in name}
    assert expected <= actual


def test_the_folder_has_every_header():
    folder = Path(lite.include_dir())
    result = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.h")}
    include = build_cache.INCLUDE
    ours = {path.relative_to(include).as_posix(): path.read_text() for path in include.rglob("*.h")}
    assert result == {**build_cache.forwarding_headers(), **ours}
    assert result["tensorflow/lite/core/c/common.h"] == '#include "opwright/lite/common.h"\n'
    assert len(result) > 180


def test_a_damaged_folder_is_written_again(tmp_path):
    files = {"a/b.h": "int b;\n", "c.h": "int c;\n"}
    folder = build_cache._write_headers(tmp_path / "include", files)
    (folder / "c.h").write_text("int")
    assert build_cache._write_headers(folder, files) == folder
    assert {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*.h")} == files


def test_without_a_cache_the_folder_is_the_process_s_own(tmp_path):
    (tmp_path / "file").write_text("")
    with flags.override(cache_dir=tmp_path / "file" / "cache"):
        assert Path(lite.include_dir(), "tflite/c/c_api.h").exists()


@needs_compiler
@pytest.mark.parametrize(("language", "standard"), [("c", "c99"), ("c++", "c++11")], ids=lambda v: v)
def test_every_path_can_be_included(tmp_path, language, standard):
    in_c = ("/c/", "/builtin_ops.h", "/builtin_op_data.h", "/context.h")  # the rest is C++
    paths = [p for p in build_cache.forwarding_headers() if language == "c++" or any(part in p for part in in_c)]
    paths.append("opwright/flexbuffer.h")
    text = "".join(f'#include "{path}"\n' for path in paths)
    run_compiler(tmp_path, text + "TfLiteRegistration registration;\n", language, standard)


@needs_compiler
@pytest.mark.parametrize(
    "name", sampled(sorted(p.name for p in (build_cache.INCLUDE / "opwright" / "lite").glob("*.h")), 6)
)
def test_each_header_stands_alone(tmp_path, name):
    only_cpp = "is for C++" in (build_cache.INCLUDE / "opwright" / "lite" / name).read_text()
    language, standard = ("c++", "c++11") if only_cpp else ("c", "c99")
    run_compiler(tmp_path, f'#include "opwright/lite/{name}"\nextern int unused;\n', language, standard)


@pytest.mark.slow
@pytest.mark.parametrize(("language", "standard"), ALL, ids=lambda v: v)
def test_clang_takes_the_headers_too(tmp_path, monkeypatch, language, standard):
    pytest.importorskip("ziglang")
    monkeypatch.setenv("CC", f"{sys.executable} -m ziglang cc")
    monkeypatch.setenv("CXX", f"{sys.executable} -m ziglang c++")
    checks = as_program(layout_checks()) + signature_checks()
    run_compiler(tmp_path, INCLUDES + checks, language, standard, "-Wno-sign-compare")
    run_compiler(tmp_path, INCLUDES + CREATION, language, standard)
    run_compiler(tmp_path, INCLUDES + MACROS, language, standard)
    if language == "c++":
        paths = list(build_cache.forwarding_headers())
        run_compiler(tmp_path, "".join(f'#include "{path}"\n' for path in paths), language, standard)


def test_sizes_of_the_provider_are_the_facts():
    if not has_compiler():
        pytest.skip("no C compiler here")
    size_of = toolchain.provider().ow_size_of
    size_of.restype = ctypes.c_size_t
    names = ["TfLiteContext", "TfLiteTensor", "TfLiteNode", "TfLiteRegistration"]
    assert [size_of(i + 1) for i in range(4)] == [ABI["structs"][name]["size_lp64"] for name in names]
