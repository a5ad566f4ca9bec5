"""Exported sources: any C compiler takes them, they are the same each time, and they read well."""

from __future__ import annotations

import importlib.util
import sys

import pytest
from export_kit import STRICT, Blend, Clip, CubeRoot, Elementary, Escape, Pair, Root, Whole, Within, compiled, needs_gcc

import opwright as ow
from thorough import sampled

OPERATORS = (Blend, Clip, CubeRoot, Elementary, Escape, Pair, Whole, Within)
ZIG = importlib.util.find_spec("ziglang") is not None


@needs_gcc
@pytest.mark.parametrize("op", sampled(OPERATORS, 3), ids=lambda op: op.name)
def test_gcc_takes_it_without_a_word(op, tmp_path):
    _, source, _ = ow.export_c(op, tmp_path)
    compiled(source, "-std=c99", "-O1", *STRICT)


@needs_gcc
@pytest.mark.parametrize(
    ("api", "standard"),
    [
        ("opaque", "c11"),
        *(pytest.param("opaque", standard, marks=pytest.mark.slow) for standard in ("c++11", "c++20")),
        ("external", "c++11"),
        ("struct", "c++11"),
    ],
)
def test_generations_of_the_api_in_c_and_cpp(api, standard, tmp_path):
    _, source, _ = ow.export_c(Escape, tmp_path, api=api)
    language = ("-x", "c++") if "+" in standard else ()
    compiled(source, *language, f"-std={standard}", "-O2", *STRICT)


@pytest.mark.skipif(not ZIG, reason="there is no ziglang")
@pytest.mark.slow  # its first call compiles what it has a cache of
@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("op", [Clip, Escape, Whole, Elementary], ids=lambda op: op.name)
def test_clang_takes_it_without_a_word(op, language, tmp_path):
    _, source, _ = ow.export_c(op, tmp_path)
    command = [sys.executable, "-m", "ziglang", "cc" if language == "c" else "c++"]
    compiled(source, "-x", language, "-O1", *STRICT, command=command)


@needs_gcc
def test_fast_math_is_refused(tmp_path):
    _, source, _ = ow.export_c(Clip, tmp_path)
    with pytest.raises(AssertionError, match="compile it without -ffast-math"):
        compiled(source, "-ffast-math")


def test_the_same_operator_returns_the_same_files(tmp_path):
    first, second = (ow.export_c(Elementary, tmp_path / name) for name in "ab")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert [p.name for p in first] == ["ExportedElementary.h", "ExportedElementary.c", "README.md"]


def test_the_source_names_the_python_it_came_from(tmp_path):
    header, source, page = (p.read_text() for p in ow.export_c(Clip, tmp_path))
    assert "static inline float exported_clip_f32(float x, double alpha, double limit) {" in source
    assert "return ow.minimum(x, limit) + alpha * ow.maximum(x - limit, 0.0) */" in source
    for text in (header, source, page):
        assert "Clip with a leak." in text
        assert "\\min(x, limit) + alpha \\max(x - limit, 0)" in text
    assert "/* at least" not in source
    assert "TfLiteOperatorCreate" in source
    assert 'resolver.AddCustom("ExportedClip", ExportedClipOpRegistration(), 1, 2);' in page
    assert "| `limit` | float | `6.0` | any | 2 |" in page
    assert "out of its range: at least 0.0" in source


def test_control_flow_is_structured(tmp_path):
    source = ow.export_c(Escape, tmp_path)[1].read_text()
    kernel = source[source.index("static inline float exported_escape") : source.index("FlexBuffer")]
    assert "for (;;) {" in kernel
    assert "goto" not in kernel


def test_unread_values_are_not_written_and_single_uses_are_inlined(tmp_path):
    source = ow.export_c(CubeRoot, tmp_path)[1].read_text()
    kernel = source[source.index("static inline float exported_cube") : source.index("static inline double")]
    assert kernel.count("fabsf(y * y * y - t) > (float)within * t") == 1
    assert kernel.count("t3 = ") == 1  # the mask of the turn: the condition before the first turn is not computed


def test_the_catalogues_operators_are_kernels_themselves(tmp_path):
    for name in ("Atan", "Gelu", "Atan2", "Select", "Greater", "LogicalNot", "Pow"):
        source = ow.export_c(name, tmp_path / name)[1].read_text()
        assert f'"{name}"' in source


@needs_gcc
def test_no_symbol_of_a_run_time_is_needed_by_the_struct_api(tmp_path):
    _, source, _ = ow.export_c(Clip, tmp_path, api="struct")
    compiled(source, "-O2")
    assert "TfLite" not in _undefined(source.with_suffix(".o"))


def _undefined(path):
    import shutil
    import subprocess

    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("there is no nm")
    return subprocess.run([nm, "-u", path], capture_output=True, text=True, check=True).stdout


def test_a_root_that_python_computes(tmp_path):
    source = ow.export_c(Root, tmp_path, attrs={"of": 2.0})[1].read_text()
    assert "x * 1.4142135f" in source
