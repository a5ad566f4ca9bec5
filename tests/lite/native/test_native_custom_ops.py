"""Loading libraries of operators: every form of a registration, names, and files that are no library for this machine.

Not here: running operators (test_native_lifecycle.py, test_native_tensors.py).
"""

from __future__ import annotations

import os
import pathlib
import platform
import shutil
import struct
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from native_kit import HERE, need_compiler, run, single

import opwright as ow
from opwright import lite
from opwright.core.errors import OpError
from opwright.lite.native import toolchain
from opwright.lite.native.elf import read_library
from opwright.lite.native.library import demangled, find_entry, looks_like_entry, operator_name
from opwright.lite.native.toolchain import build_library

pytestmark = pytest.mark.ours


@pytest.fixture(scope="module")
def forms():
    need_compiler()
    return str(build_library([HERE / "forms.c"]))


@pytest.fixture(scope="module")
def mangled():
    need_compiler("c++")
    return str(build_library([HERE / "mangled.cc"]))


def value_of(ops, name):
    """Return the value that an operator writes to every element of its output."""
    interpreter = lite.Interpreter(model_content=single(name), custom_ops=ops)
    interpreter.allocate_tensors()
    (value,) = set(run(interpreter, np.zeros(5)).tolist())
    interpreter.close()
    return value


FORMS = {
    # function                     operator        value
    "Register_BY_ADDRESS": ("BY_ADDRESS", 1),
    "ByValueRegistration": ("ByValue", 2),
    "ThreeRegistrationExternal": ("Three", 3),
    "FourOpRegistration": ("Four", 4),
    "FourByValueOpRegistration": ("Four", 4),
    "Register_OLD": ("OLD", 5),
    "Register_OLD_STATIC": ("OLD_STATIC", 5),
    "Register_MIXED": ("Four", 4),
}


@pytest.mark.parametrize("entry", FORMS)
def test_each_form_by_its_function(forms, entry):
    name, value = FORMS[entry]
    ops = lite.load_custom_ops(forms, [entry])
    assert list(ops) == [name]
    assert value_of(ops, name) == value
    assert value_of(lite.load_custom_ops(forms, {"Mine": entry}), "Mine") == value


def test_all_of_them_are_found(forms):
    ops = lite.load_custom_ops(forms)
    assert set(ops) == {name for name, _ in FORMS.values()}
    assert {name: value_of(ops, name) for name in ops} == dict(FORMS.values())
    assert ops["Three"].version == 2


def test_a_version_serves_those_before_it(forms):
    ops = lite.load_custom_ops(forms, {"Three": "ThreeRegistrationExternal"})
    assert value_of(ops, "Three") == 3  # a model with version 1


NONE = {
    "GivesNull": "returned null",
    "GivesNothing": "returns a record without invoke",
    "GivesNothingByValue": "returns a record without invoke",
    "GivesBareOperator": "returns a record without invoke",
    "GivesVersionZero": "an invalid version",
    "GivesNonsense": "returned an invalid address of a record",
    "GivesOdd": "returned an invalid address of a record",
    "GivesText": "returns a record of another layout: its init",
    "GivesShifted": "returns a record of another layout: its init",
    "GivesLarge": "larger than any TfLiteRegistration",
}


@pytest.mark.parametrize("entry", NONE)
def test_functions_that_give_no_registration(forms, entry):
    with pytest.raises(ow.errors.InvalidArgumentError, match=NONE[entry]) as caught:
        lite.load_custom_ops(forms, {"Mine": entry})
    assert forms in str(caught.value) and entry in str(caught.value)  # noqa: PT018


def test_a_function_that_is_not_there_suggests_the_nearest(forms):
    with pytest.raises(ow.errors.NotFoundError, match="has no function TreeRegistrationExternal") as caught:
        lite.load_custom_ops(forms, {"Three": "TreeRegistrationExternal"})
    assert "try     'ThreeRegistrationExternal'" in str(caught.value)


def test_names_of_cpp(mangled):
    for entry in (
        "first::ops::Register_ONE",
        "Register_ONE",
        "ops::Register_ONE",
        "Register_ONE()",
        "_ZN5first3ops12Register_ONEEv",
    ):
        assert value_of(lite.load_custom_ops(mangled, {"Mine": entry}), "Mine") == 1
    assert value_of(lite.load_custom_ops(mangled, ["second::TwoOpRegistration"]), "Two") == 2
    assert set(lite.load_custom_ops(mangled)) == {"ONE", "Two"}
    with pytest.raises(ow.errors.InvalidArgumentError, match="several functions are called Shared") as caught:
        lite.load_custom_ops(mangled, ["Shared"])
    assert "first::ops::Shared, second::Shared" in str(caught.value)
    with pytest.raises(ow.errors.InvalidArgumentError, match="has parameters"):
        lite.load_custom_ops(mangled, ["second::Register_WITH"])


@pytest.mark.parametrize(
    ("symbol", "wanted"),
    [
        ("_Z12Register_SINv", ("Register_SIN", "v")),
        ("_ZN7atan_op18AtanOpRegistrationEv", ("atan_op::AtanOpRegistration", "v")),
        ("_ZN6tflite3ops6custom21Register_MY_CUSTOM_OPEv", ("tflite::ops::custom::Register_MY_CUSTOM_OP", "v")),
        ("_ZN1a1fB5cxx11Ev", ("a::f", "v")),
        ("_Z1fi", ("f", "i")),
        ("_ZN1a3fooILi3EEEvv", None),
        ("plain", None),
        ("_ZN", None),
        ("_Z99x", None),
        ("_Z999999999999x", None),
        ("_Z", None),
    ],
)
def test_mangled_names(symbol, wanted):
    assert demangled(symbol) == wanted


@given(st.text(alphabet="_ZNEv0123456789abLB:xI", max_size=40))
def test_any_text_is_some_name(text):
    demangled("_Z" + text)
    looks_like_entry(text)
    operator_name(text)
    with pytest.raises(OpError):
        find_entry("not there", [text], "lib")


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("Register_SIN", "SIN"),
        ("AtanOpRegistrationExternal", "Atan"),
        ("_ZN7atan_op18AtanOpRegistrationEv", "Atan"),
        ("AtanRegistration", "Atan"),
        ("my_op", "my_op"),
        ("OpRegistration", "Op"),
    ],
)
def test_an_operator_without_a_name_is_called_after_its_function(function, name):
    assert operator_name(function) == name


@pytest.mark.parametrize("ops", [3, {"A": 3}, {3: "x"}, [None], {"": "x"}, {"A": ""}])
def test_arguments_of_another_kind(forms, ops):
    with pytest.raises(TypeError, match="load_custom_ops takes"):
        lite.load_custom_ops(forms, ops)


# ---- files -----------------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_there(forms, tmp_path):
    (tmp_path / "libatan.so").write_bytes(b"")
    with pytest.raises(ow.errors.NotFoundError, match="there is no library") as caught:
        lite.load_custom_ops(tmp_path / "libatn.so")
    assert "libatan.so" in str(caught.value)
    with pytest.raises(ow.errors.NotFoundError, match="no folder"):
        lite.load_custom_ops(tmp_path / "nowhere" / "libatan.so")
    with pytest.raises(ow.errors.InvalidArgumentError, match="is a folder"):
        lite.load_custom_ops(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "is empty"),
        ("a\0b", "cannot be read"),
        ("/dev/zero", "is not a file"),
        ("pipe", "is not a file"),
        ("loop", "cannot be read"),
    ],
)
def test_paths_that_are_no_file(tmp_path, monkeypatch, path, words):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    os.symlink("loop", "loop")
    with pytest.raises(ow.errors.InvalidArgumentError, match=words):
        lite.load_custom_ops(path)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "an empty file"),
        (b"int main(void) { return 0; }\n", "a text file"),
        (b"!<arch>\nabc", "an archive"),
        (b"PK\x03\x04", "a zip file"),
        (b"\0\0\0\x18TFL3", "a .tflite model"),
        (bytes(range(256)), "begins with the bytes"),
        (b"MZ\x90\0", "a Windows DLL"),
        (b"\xcf\xfa\xed\xfe", "a Mach-O library"),
    ],
)
def test_files_that_are_no_library(tmp_path, content, found):
    path = tmp_path / "libops.so"
    path.write_bytes(content)
    with pytest.raises(ow.errors.InvalidArgumentError, match=found):
        lite.load_custom_ops(path)


def test_files_are_looked_at_before_a_compiler_is_asked_for(tmp_path, monkeypatch):
    """Where there is none, a file that is no library is still refused for what it is."""

    def provider():
        raise ow.errors.UnavailableError(what="there is no C compiler")

    monkeypatch.setattr("opwright.lite.native.custom_ops.provider", provider)
    (tmp_path / "libops.so").write_bytes(b"PK\x03\x04")
    with pytest.raises(ow.errors.InvalidArgumentError, match="a zip file"):
        lite.load_custom_ops(tmp_path / "libops.so")


@pytest.mark.parametrize(
    ("offset", "value", "found"),
    [
        (18, struct.pack("<H", 183), "aarch64"),
        (18, struct.pack("<H", 40), "arm"),
        (18, struct.pack("<H", 999), "999"),
        (4, b"\1", "32 bits"),
        (5, b"\2", "big-endian"),
        (16, struct.pack("<H", 1), "an object file"),
        (16, struct.pack("<H", 2), "a program"),
    ],
)
def test_libraries_for_another_machine(forms, tmp_path, offset, value, found):
    content = bytearray(pathlib.Path(forms).read_bytes())
    if content[18:20] == value:
        pytest.skip("this machine is that one")
    content[offset : offset + len(value)] = value
    path = tmp_path / "libops.so"
    path.write_bytes(content)
    with pytest.raises(ow.errors.InvalidArgumentError, match=found) as caught:
        lite.load_custom_ops(path)
    assert str(path) in str(caught.value)


def test_a_library_cut_short(forms, tmp_path):
    content = pathlib.Path(forms).read_bytes()
    path = tmp_path / "libops.so"
    for size in (5, 20, 63, 64, 1000, len(content) // 2):
        path.write_bytes(content[:size])
        with pytest.raises(OpError):
            lite.load_custom_ops(path)


def without_sections(content):
    """A library as `sstrip` leaves it: no section headers, and nothing behind what is loaded."""
    header = list(struct.unpack_from("<16sHHIQQQIHHHHHH", content))
    rows = [struct.unpack_from("<IIQQQQQQ", content, header[5] + i * header[9]) for i in range(header[10])]
    end = max(offset + size for _, _, offset, _, _, size, _, _ in rows)
    header[6] = header[11] = header[12] = header[13] = 0
    return struct.pack("<16sHHIQQQIHHHHHH", *header) + content[64:end]


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_libraries_without_section_headers(tmp_path, style):
    need_compiler()
    whole = build_library([HERE / "forms.c"], link_flags=[f"-Wl,--hash-style={style}"])
    content = whole.read_bytes()
    path = tmp_path / f"lib{style}.so"
    path.write_bytes(without_sections(content))
    stripped, full = read_library("lib", path.read_bytes()), read_library("lib", content)
    assert stripped is not None
    assert full is not None
    assert stripped.defined == full.defined
    assert sorted(stripped.undefined) == sorted(full.undefined)
    assert stripped.needed == full.needed
    ops = lite.load_custom_ops(path, list(FORMS))
    assert value_of(ops, "ByValue") == FORMS["ByValueRegistration"][1]
    assert lite.load_custom_ops(path)


def test_an_operator_of_two_libraries_is_warned_of(forms, tmp_path):
    other = tmp_path / "libother.so"
    other.write_bytes(pathlib.Path(forms).read_bytes())
    named = {"ByValue": "ByValueRegistration"}
    one, two = lite.load_custom_ops(forms, named), lite.load_custom_ops(other, named)
    with pytest.warns(RuntimeWarning, match=rf"two libraries have an operator 'ByValue': {forms} and {other}"):
        lite.Interpreter(model_content=single("ByValue"), custom_ops=[one, two])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lite.Interpreter(model_content=single("ByValue"), custom_ops=[one, one])
        lite.Interpreter(model_content=single("ByValue"), custom_ops={**one, **two})  # which says so itself


@pytest.mark.parametrize("sections", [True, False])
@given(data=st.data())
def test_reading_damaged_libraries_never_fails_otherwise(forms, sections, data):
    whole = pathlib.Path(forms).read_bytes()
    content = bytearray(whole if sections else without_sections(whole))
    header = struct.unpack_from("<16sHHIQQQIHHHHHH", content)
    sections = header[6] or len(content) // 2
    for _ in range(data.draw(st.integers(1, 6))):
        low, high = data.draw(st.sampled_from([(24, 64), (sections, len(content) - 32), (0x40, 0x400)]))
        at = data.draw(st.integers(low, max(low, high - 1)))
        content[at] = data.draw(st.integers(0, 255))
    try:
        read_library("lib", bytes(content))
    except OpError as error:
        assert "lib" in error.message  # noqa: PT017


def compile_(tmp_path, text, *arguments, name="libops.so"):
    need_compiler()
    source = tmp_path / "ops.c"
    source.write_text(text)
    out = tmp_path / name
    compiler = toolchain.find_compiler("c")
    subprocess.run(
        [
            *compiler.command,
            *compiler.extra,
            "-shared",
            "-fPIC",
            f"-I{lite.include_dir()}",
            str(source),
            "-o",
            str(out),
            *arguments,
        ],
        check=True,
        capture_output=True,
    )
    return out


def test_functions_that_nobody_provides_are_named(tmp_path):
    path = compile_(
        tmp_path,
        """
        int nobody_has_this(void); void nor_this(void);
        void _ZN6tflite12RuntimeShapeEi(int);
        void* Register_X(void) { nor_this(); _ZN6tflite12RuntimeShapeEi(nobody_has_this()); return 0; }
    """,
    )
    with pytest.raises(ow.errors.NotFoundError, match="requires undefined functions") as caught:
        lite.load_custom_ops(path)
    text = str(caught.value)
    for name in ("nobody_has_this", "nor_this", "tflite::RuntimeShape"):
        assert name in text


def test_a_library_that_another_is_missing_for(tmp_path):
    other = compile_(tmp_path, "int f(void) { return 1; }", name="libother.so")
    path = compile_(
        tmp_path, "int f(void); void* Register_X(void) { return f() ? 0 : &f; }", "-L", str(tmp_path), "-lother"
    )
    other.unlink()
    with pytest.raises(ow.errors.NotFoundError, match=r"requires undefined functions|libother\.so"):
        lite.load_custom_ops(path)


def test_a_library_that_registers_nothing(tmp_path):
    path = compile_(
        tmp_path, "int helper(void) { return 1; } static void* Register_X(void) { return 0; } void* u = &Register_X;"
    )
    with pytest.raises(ow.errors.NotFoundError, match="registers nothing") as caught:
        lite.load_custom_ops(path)
    assert "helper" in str(caught.value)


SOURCE = """
#include "tensorflow/lite/c/common.h"
static TfLiteStatus invoke(TfLiteContext* c, TfLiteNode* n) {
  for (int i = 0; i < 5; ++i) c->tensors[n->outputs->data[0]].data.f[i] = VALUE;
  return kTfLiteOk;
}
TfLiteRegistration Register_CONST(void) { TfLiteRegistration r = {0, 0, 0, invoke}; return r; }
"""


def test_a_library_that_was_built_again_is_loaded_again(tmp_path):
    path = compile_(tmp_path, SOURCE, "-DVALUE=1")
    first = lite.load_custom_ops(path)
    path.unlink()
    compile_(tmp_path, SOURCE, "-DVALUE=2")
    second = lite.load_custom_ops(path)
    assert [value_of(ops, "CONST") for ops in (first, second, lite.load_custom_ops(path))] == [1, 2, 2]


@pytest.mark.parametrize(("said", "version"), [("", 1), ("r.version = 3;", 3), ("r.version = -2;", 1)])
def test_the_version_of_a_classic_record(tmp_path, said, version):
    """The official run time asks the resolver alone; a record that says nothing is of version 1."""
    path = compile_(tmp_path, SOURCE.replace("return r;", f"{said} return r;"), "-DVALUE=4")
    ops = lite.load_custom_ops(path)
    assert ops["CONST"].version == version
    assert value_of(ops, "CONST") == 4


def test_paths_of_every_kind(tmp_path, monkeypatch):
    path = compile_(tmp_path, SOURCE, "-DVALUE=3")
    monkeypatch.chdir(tmp_path)
    strange = tmp_path / "a folder" / "libé ops.so"
    strange.parent.mkdir()
    shutil.copy(path, strange)
    for given_path in ("libops.so", path, str(strange)):
        assert value_of(lite.load_custom_ops(given_path), "CONST") == 3
    with pytest.raises(TypeError):
        lite.load_custom_ops(3)


def test_two_operators_of_one_name(tmp_path):
    path = compile_(
        tmp_path,
        SOURCE
        + """
        static TfLiteStatus other(TfLiteContext* c, TfLiteNode* n) { return kTfLiteError; }
        TfLiteRegistration CONSTRegistration(void) { TfLiteRegistration r = {0, 0, 0, other}; return r; }
    """,
        "-DVALUE=1",
    )
    with pytest.raises(ow.errors.InvalidArgumentError, match="two functions give an operator 'CONST'"):
        lite.load_custom_ops(path)
    assert set(lite.load_custom_ops(path, {"A": "Register_CONST", "B": "CONSTRegistration"})) == {"A", "B"}


@pytest.mark.slow  # the compiler builds its C library first
def test_a_library_for_another_processor_by_a_cross_compiler(tmp_path):
    pytest.importorskip("ziglang")
    target = "x86_64-linux-gnu" if platform.machine() in ("aarch64", "arm64") else "aarch64-linux-gnu"
    source = tmp_path / "ops.c"
    source.write_text("int Register_X(void) { return 0; }")
    out = tmp_path / "libops.so"
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-shared", "-o", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=200)
    if done.returncode:
        pytest.skip("the cross compiler does not run here")
    with pytest.raises(ow.errors.InvalidArgumentError, match="is built for another machine") as caught:
        lite.load_custom_ops(out)
    assert target.split("-")[0] in str(caught.value)
