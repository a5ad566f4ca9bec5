"""Shared libraries export the functions of the header and compute the same; without a linker there is a reason."""

import ctypes
import importlib.util
import json
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from test_libraries import has_compiler, interpreted, network

from opwright import aot
from opwright.aot import shared_libraries
from opwright.core.errors import InvalidArgumentError
from opwright.tools.cli import cli
from thorough import sampled


@has_compiler
@pytest.mark.skipif(not shutil.which("nm"), reason="needs nm")
def test_a_shared_library_exports_the_header_s_functions_alone(tmp_path):
    content, image = network()
    library = aot.build(content, out=tmp_path, name="net", weights="file", shared=True)
    assert "libnet.so" in library.files
    assert library.unlinked == ""
    command = ["nm", "-D", "--defined-only", tmp_path / "libnet.so"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert {line.split()[-1] for line in listed.splitlines()} == {"net_run", "net_map_weights"}
    functions = ctypes.CDLL(str(tmp_path / "libnet.so"))
    weights, file = (ctypes.c_void_p * 1)(), np.memmap(tmp_path / "net.weights", np.uint8, "r")
    assert functions.net_map_weights(ctypes.c_void_p(file.ctypes.data), ctypes.c_size_t(file.nbytes), weights) == 0
    notes = json.loads((tmp_path / "net.json").read_text())
    arena = np.zeros(notes["arena"] + 64, np.uint8)
    outputs = {p["name"]: np.zeros(p["shape"], p["dtype"]) for p in notes["signatures"][0]["outputs"]}
    fields = (ctypes.c_void_p * 1)(image.ctypes.data), (ctypes.c_void_p * 2)(*(a.ctypes.data for a in outputs.values()))
    start = ctypes.c_void_p(arena.ctypes.data + -arena.ctypes.data % 64)
    assert functions.net_run(*fields, weights, start, ctypes.c_size_t(notes["arena"])) == 0
    for actual, expected in zip(outputs.values(), interpreted(content, [image]), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("target", "compiler", "emulator", "file"),
    [
        ("aarch64", "aarch64-linux-gnu-gcc", ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"), "libnet.so"),
        pytest.param("x86-64-v3-windows", "x86_64-w64-mingw32-gcc", ("wine",), "net.dll", marks=pytest.mark.slow),
    ],
)
def test_shared_libraries_of_other_systems_run(target, compiler, emulator, file, tmp_path):
    if not shutil.which(compiler) or not shutil.which(emulator[0]):
        pytest.skip(f"needs {compiler} and {emulator[0]}: cmake, qemu")
    content, image = network()
    assert file in aot.build(content, target, tmp_path, name="net", shared=True).files
    (tmp_path / "libnet.a").unlink()
    command = [compiler, "main.c", file, "-lm", "-Wl,-rpath,.", "-o", "example.exe"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "image.bin").write_bytes(image.tobytes())
    program = [*emulator, "./example.exe", "image.bin"]
    lines = subprocess.run(program, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.splitlines()
    for line, expected in zip(lines, interpreted(content, [image]), strict=True):
        actual = np.array(line.split()[1:], np.float32)
        np.testing.assert_allclose(actual, expected.reshape(-1)[:10], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("linker", ["zig", "MinGW"])
def test_libraries_for_windows_export_the_header_s_functions_alone(linker, tmp_path, monkeypatch):
    """zig's C library lacks `_fltused`, and both linkers export constants of LLVM unless they have a list."""
    content, image = network()
    if linker == "zig":
        if not importlib.util.find_spec("ziglang"):
            pytest.skip("needs zig")
        monkeypatch.setenv("PATH", str(tmp_path))
    elif not shutil.which("x86_64-w64-mingw32-gcc"):
        pytest.skip("needs x86_64-w64-mingw32-gcc: cmake, gcc")
    library = aot.build(content, "x86-64-v3-windows", tmp_path, name="net", shared=True)
    assert not library.unlinked
    assert exported_names((tmp_path / "net.dll").read_bytes()) == ["net_run"]
    monkeypatch.undo()
    if linker == "MinGW" or not shutil.which("wine"):
        return
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu"]  # the static library, too
    subprocess.run([*command, "main.c", "libnet.a", "-o", "net.exe"], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "image.bin").write_bytes(image.tobytes())
    program = ["wine", "./net.exe", "image.bin"]
    lines = subprocess.run(program, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.splitlines()
    for line, expected in zip(lines, interpreted(content, [image]), strict=True):
        np.testing.assert_allclose(
            np.array(line.split()[1:], np.float32), expected.reshape(-1)[:10], rtol=1e-5, atol=1e-6
        )


def exported_names(file):
    """Return the names that a PE file exports.

    Source: PE format specification, sections 2.3 (file header), 3.4 (data directories), 6.3 (export tables).
    """
    header = int.from_bytes(file[0x3C:0x40], "little") + 4
    sections, optional = struct.unpack_from("<H", file, header + 2)[0], header + 20
    table = optional + struct.unpack_from("<H", file, header + 16)[0]
    parts = [struct.unpack_from("<8sIIII", file, table + 40 * i)[1:] for i in range(sections)]

    def place(address):
        return next(at + address - start for size, start, _, at in parts if start <= address < start + size)

    exports = place(struct.unpack_from("<I", file, optional + 112)[0])
    (count,), (names,) = struct.unpack_from("<I", file, exports + 24), struct.unpack_from("<I", file, exports + 32)
    starts = [place(a) for a in struct.unpack_from(f"<{count}I", file, place(names))]
    return [file[a : file.index(b"\0", a)].decode() for a in starts]


@pytest.mark.parametrize("target", sampled(["aarch64-macos", "x86-64-v2", "cortex-m4"]))
def test_without_a_linker_there_is_a_reason_and_a_static_library(target, tmp_path, monkeypatch):
    """A cold machine without compilers, or a target without shared libraries."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shared_libraries.importlib.util, "find_spec", lambda name: None)
    content, _ = network()
    (tmp_path / "net.tflite").write_bytes(content)
    arguments = ["build", str(tmp_path / "net.tflite"), "--target", target, "-o", str(tmp_path / "out"), "--shared"]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    reason = "has no shared libraries" if target == "cortex-m4" else "no linker here"
    assert reason in " ".join(done.output.split())
    assert (tmp_path / "out" / "libnet.a").is_file()
    assert not [*(tmp_path / "out").glob("*.so"), *(tmp_path / "out").glob("*.dylib")]


def test_a_linker_that_fails_is_quoted(tmp_path, monkeypatch):
    program = tmp_path / "cc"
    program.write_text("#!/bin/sh\necho 'no space left' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("CC", str(program))
    monkeypatch.setattr(shared_libraries.shutil, "which", lambda name, **more: name if name == str(program) else None)
    monkeypatch.setattr(shared_libraries.importlib.util, "find_spec", lambda name: None)
    content, _ = network()
    library = aot.build(content, "x86-64-v2", tmp_path / "out", name="net", shared=True)
    assert "cc: no space left" in library.unlinked
    with pytest.raises(InvalidArgumentError, match='format="lib"'):
        aot.build(content, out=tmp_path, format="object", shared=True)
