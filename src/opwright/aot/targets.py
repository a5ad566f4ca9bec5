"""The processors that libraries are built for: short names, a word on each, the format of their object files.

Lives here: `TARGETS`, `find_target`, `object_format`. Not here: targets in general and those of kernels in wheels
(compiler/target.py).
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import NamedTuple

from ..compiler.background import LLVM
from ..compiler.target import NAMED, SCALAR, Target, processor
from ..core.errors import NotFoundError

_APPLE_INTEL, _APPLE_ARM = "x86_64-apple-macosx11.0", "arm64-apple-macosx11.0"
_WINDOWS = "x86_64-pc-windows-msvc"
_V3 = NAMED["x86-64-v3"]


class LibraryTarget(NamedTuple):
    """A target of libraries. about: where it runs; checked: how this project's tests check its libraries."""

    target: Target
    about: str
    checked: str


_HERE, _QEMU, _WINE = "run on the processor of the tests", "run under qemu-user", "run under Wine"
_FORMAT, _BOARD, _NODE = "object file read back", "run on boards of qemu-system-arm", "run in Node.js and wasmtime"
_AVX512 = "run if the processor of the tests has AVX-512"
_M4, _M33 = "thumbv7em-unknown-none-eabi", "thumbv8m.main-unknown-none-eabi"
_SOFT = "+soft-float,-fpregs,-vfp2sp"
_SOFTLY = "floats by functions of the compiler, in integer registers"

_ROWS = (
    (NAMED["generic"], "any x86-64 processor, Linux", _HERE),
    (NAMED["x86-64-v2"], "x86-64 since 2009 (SSE4.2), Linux", _HERE),
    (_V3, "x86-64 since 2013 (AVX2, FMA), Linux", _HERE),
    (NAMED["x86-64-v3-vnni"], "the same with AVX-VNNI: Alder Lake and later", _FORMAT),
    (NAMED["x86-64-v4"], "x86-64 with AVX-512, Linux", _AVX512),
    (NAMED["x86-64-v4-vnni"], "the same with VNNI: Ice Lake, Zen 4 and later", _AVX512),
    (NAMED["x86-64-v4-bf16"], "the same with products of bfloat16", _FORMAT),
    (NAMED["x86-64-v4-amx"], "the same with AMX tiles: Sapphire Rapids and later", _FORMAT),
    (Target("x86-64-v2-windows", _WINDOWS, "x86-64-v2"), "x86-64-v2, Windows", _FORMAT),
    (_V3._replace(name="x86-64-v3-windows", triple=_WINDOWS), "x86-64-v3, Windows", _WINE),
    (NAMED["x86-64-v4"]._replace(name="x86-64-v4-windows", triple=_WINDOWS), "x86-64-v4, Windows", _FORMAT),
    (Target("x86-64-v2-macos", _APPLE_INTEL, "x86-64-v2"), "x86-64-v2, macOS 11 and later", _FORMAT),
    (_V3._replace(name="x86-64-v3-macos", triple=_APPLE_INTEL), "x86-64-v3, macOS 11 and later", _FORMAT),
    (NAMED["x86-64-v4"]._replace(name="x86-64-v4-macos", triple=_APPLE_INTEL), "x86-64-v4, macOS", _FORMAT),
    (NAMED["aarch64"], "64-bit ARM, Linux", _QEMU),
    (NAMED["aarch64-dotprod"], "64-bit ARM since 2018 (Cortex-A55, A75), Linux", _QEMU),
    (NAMED["aarch64-i8mm"], "64-bit ARM since 2021 (Cortex-A510, A710), Linux", _QEMU),
    (
        Target("aarch64-android", "aarch64-linux-android21", "generic", "+neon"),
        "64-bit ARM, Android 5 and later",
        _FORMAT,
    ),
    (
        Target("aarch64-android-dotprod", "aarch64-linux-android21", "generic", "+neon,+dotprod"),
        "64-bit ARM since 2018, Android",
        _FORMAT,
    ),
    (Target("aarch64-macos", _APPLE_ARM, "apple-m1"), "Apple M1 and later, macOS 11 and later", _FORMAT),
    (Target("aarch64-ios", "arm64-apple-ios14.0", "apple-a10", "+neon"), "iPhone 7 and later, iOS 14", _FORMAT),
    (
        Target("armv7-neon", "armv7-unknown-linux-gnueabihf", "cortex-a7", "+neon,+vfp4"),
        "32-bit ARM with NEON (Cortex-A7, A15 and later), Linux",
        _QEMU,
    ),
    (
        Target("armv7-android", "armv7a-linux-androideabi21", "cortex-a8", "+neon"),
        "32-bit ARM with NEON, Android 5 and later",
        _FORMAT,
    ),
    (NAMED["riscv64"], "64-bit RISC-V without vectors (RV64GC), Linux", _QEMU),
    (NAMED["riscv64-v"], "64-bit RISC-V with vectors of at least 128 bits (V 1.0), Linux", _QEMU),
    (
        Target("cortex-m0plus", "thumbv6m-unknown-none-eabi", "cortex-m0plus", "", SCALAR),
        "Cortex-M0+, M0, M1 without an operating system",
        _BOARD,
    ),
    (Target("cortex-m3", "thumbv7m-unknown-none-eabi", "cortex-m3", "", SCALAR), "Cortex-M3", _BOARD),
    (Target("cortex-m4", f"{_M4}hf", "cortex-m4", "", SCALAR), "Cortex-M4F with DSP, floats in registers", _BOARD),
    (Target("cortex-m4-soft", _M4, "cortex-m4", _SOFT, SCALAR), f"Cortex-M4 with DSP, {_SOFTLY}", _BOARD),
    (Target("cortex-m7", f"{_M4}hf", "cortex-m7", "", SCALAR), "Cortex-M7 with float64", _BOARD),
    (Target("cortex-m7-soft", _M4, "cortex-m7", _SOFT, SCALAR), f"Cortex-M7, {_SOFTLY}", _FORMAT),
    (Target("cortex-m33", f"{_M33}hf", "cortex-m33", "", SCALAR), "Cortex-M33F with DSP", _BOARD),
    (Target("cortex-m33-soft", _M33, "cortex-m33", _SOFT, SCALAR), f"Cortex-M33 with DSP, {_SOFTLY}", _FORMAT),
    (
        Target("cortex-m55", "thumbv8.1m.main-unknown-none-eabihf", "cortex-m55", "", SCALAR),
        "Cortex-M55, by its DSP instructions",
        _BOARD,
    ),
    (
        Target("cortex-m55-mve", "thumbv8.1m.main-unknown-none-eabihf", "cortex-m55", "+mve.fp"),
        "Cortex-M55 by Helium (MVE): for models of floats",
        _FORMAT,
    ),
    (
        Target("riscv32", "riscv32-unknown-elf", "generic-rv32", "+m,+a,+c", SCALAR),
        "32-bit RISC-V without floats (RV32IMAC: ESP32-C3, C6, H2)",
        _FORMAT,
    ),
    (
        Target("riscv32-f", "riscv32-unknown-elf", "generic-rv32", "+m,+a,+f,+c", SCALAR),
        "32-bit RISC-V with floats (RV32IMAFC: ESP32-P4)",
        _FORMAT,
    ),
    (
        Target("riscv32-v", "riscv32-unknown-elf", "generic-rv32", "+m,+a,+f,+d,+c,+v"),
        "32-bit RISC-V with vectors of at least 128 bits",
        _FORMAT,
    ),
    (Target("wasm32", "wasm32-unknown-unknown", "generic"), "WebAssembly 2.0 without vectors", _NODE),
    (NAMED["wasm32-simd128"], "WebAssembly 2.0 with vectors of 128 bits", _NODE),
    (Target("ppc64le", "powerpc64le-unknown-linux-gnu", "pwr8"), "POWER8 and later, little endian, Linux", _QEMU),
    (Target("s390x", "s390x-unknown-linux-gnu", "z13"), "IBM z13 and later, big endian, Linux", _QEMU),
)

TARGETS = {target.name: LibraryTarget(target, about, checked) for target, about, checked in _ROWS} | {
    name: LibraryTarget(target, f"{target.cpu} on {target.triple}", _FORMAT)
    for name, target in NAMED.items()
    if name not in {row[0].name for row in _ROWS}
}
"""Targets by short name; `host` is this machine."""


_SYSTEMS = (
    *("linux", "android", "windows", "mingw", "darwin", "macos", "ios", "tvos", "watchos", "xros", "freebsd", "netbsd"),
    *("openbsd", "solaris", "haiku", "fuchsia", "wasi", "emscripten", "elf", "eabi", "uefi", "aix"),
)
"""Beginnings of the systems and environments in LLVM's triples."""


def find_target(name: str, cpu: str = "", features: str = "") -> Target:
    """Return a target by its short name, or by a triple of LLVM.

    cpu: replaces that of the short name; features: in addition to its. Raises NotFoundError for a triple, a processor
    or a feature that LLVM does not know.
    """
    if name == "host":
        return processor()
    row = TARGETS.get(name)
    if row is None:
        parts = name.split("-")[1:]
        is_known = any(part.startswith(_SYSTEMS) for part in parts) or parts[-1:] in (["none"], ["unknown"])
        if parts and not is_known:  # LLVM takes any word for a system
            raise NotFoundError(
                op="aot.build",
                what="no such system in the triple",
                found=name,
                wanted="linux, windows, macosx, ios, none-eabi, ...",
                do="a short name of `opwright build --list-targets`, or a triple such as aarch64-unknown-linux-gnu",
            )
        return _checked(Target.of(name, cpu, features))
    if not cpu and not features:
        return row.target
    words = ",".join(filter(None, (row.target.features, features)))
    return _checked(Target.of(row.target.triple, cpu or row.target.cpu, words))


def _checked(target: Target) -> Target:
    """Return a target whose processor and features LLVM knows: it ignores others, and tells stderr alone."""
    with LLVM, tempfile.TemporaryFile() as file:
        stderr = os.dup(2)
        try:
            os.dup2(file.fileno(), 2)
            target.machine()
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        file.seek(0)
        text = file.read().decode(errors="replace")
    unknown = dict.fromkeys(re.findall(r"'(.*?)' is not a recognized (processor|feature)", text))
    if unknown:
        raise NotFoundError(
            op="aot.build",
            what=f"LLVM knows no such processor or feature of {target.triple}",
            found=", ".join(f"{kind} {word}" for word, kind in unknown),
            do="names as of clang's -mcpu and -mattr: cortex-a76, +dotprod",
        )
    return target


def object_format(target: Target) -> str:
    """Return the format of a target's object files: ELF, Mach-O, COFF or WebAssembly."""
    triple = target.triple
    if target.is_wasm:
        return "WebAssembly"
    return "COFF" if "windows" in triple or "mingw" in triple else "Mach-O" if "apple" in triple else "ELF"
