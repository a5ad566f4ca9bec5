"""Helpers of the tests of the C interface: its constants, building, symbols of object files."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess

import pytest

from opwright.core.errors import UnavailableError
from opwright.lite.native import toolchain

ABI = json.loads((pathlib.Path(__file__).parent / "tflite_c_abi.json").read_text())
"""Names, signatures, layouts and values of the interface, from its headers and the machine code of their users."""


def has_compiler(language: str = "c") -> bool:
    try:
        toolchain.find_compiler(language)
    except UnavailableError:
        return False
    return True


needs_compiler = pytest.mark.skipif(not (has_compiler("c") and has_compiler("c++")), reason="no C and C++ compiler")


def functions() -> list[dict]:
    """Every C function of the interface."""
    names = [
        "operator_api",
        "operator_api_old_only",
        "common_functions",
        "c_api_functions",
        "c_api_experimental_functions",
        "async_functions",
    ]
    result = [f for name in names for f in ABI[name]]
    return result + [f for part in ABI["opaque_api"].values() if isinstance(part, list) for f in part]


def cpp_symbols() -> list[str]:
    """Every mangled name of a C++ helper."""
    helpers = ABI["kernel_util_cpp_symbols"]
    further = [s for h in helpers["further_cpp_helpers_seen"] for s in h.get("symbols", ())]
    return [s["symbol"] for s in helpers["symbols"]] + further


def declared(type_: str, name: str) -> str:
    """A C declaration: function pointers hold the name inside."""
    pointer = re.match(r"(.*?)\(\*\)(.*)$", type_)
    if pointer:
        return f"{pointer[1]} (*{name}){pointer[2]}"
    array = re.match(r"(.*)\[\]$", type_)
    return f"{array[1]} {name}[]" if array else f"{type_} {name}"


def run_compiler(folder: pathlib.Path, text: str, language: str, standard: str, *more: str) -> str:
    """Compile a text with every warning an error; the object's path. The compiler's words become the failure."""
    source = folder / ("check.c" if language == "c" else "check.cc")
    source.write_text(text)
    compiler = toolchain.find_compiler(language)
    out = folder / "check.o"
    command = [
        *compiler.command,
        *compiler.extra,
        f"-std={standard}",
        "-Wall",
        "-Wextra",
        "-pedantic",
        "-Werror",
        *more,
        f"-I{toolchain.include_dir()}",
        "-c",
        str(source),
        "-o",
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)}\n{done.stderr[:6000]}", pytrace=False)
    return str(out)


SANITIZED = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


def program_of(source: pathlib.Path, folder: pathlib.Path, *flags: str) -> pathlib.Path:
    """A program in C with the provider in it, whose names libraries that it loads find."""
    c = toolchain.find_compiler("c")
    program = folder / source.stem
    subprocess.run(
        [
            *c.command,
            *c.extra,
            "-std=c11",
            *flags,
            "-I",
            toolchain.include_dir(),
            "-I",
            str(toolchain.PROVIDER),
            "-rdynamic",
            str(source),
            *map(str, sorted(toolchain.PROVIDER.glob("*.c"))),
            "-o",
            str(program),
            "-lm",
            "-ldl",
        ],
        check=True,
        capture_output=True,
    )
    return program


def symbols_of(path: str) -> set[str]:
    """Names in an object file, by `nm`."""
    if shutil.which("nm") is None:
        pytest.skip("no nm here")
    lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[-1] for line in lines}
