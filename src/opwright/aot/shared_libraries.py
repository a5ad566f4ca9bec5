"""Shared libraries: the object file of a library, linked by a linker of this machine.

Lives here: `shared_library_of`, `shared_name`, `LINKERS`. Not here: the object file (modules.py), static libraries
(archives.py), compilers of operators (lite/native/toolchain.py).

The object file has no global symbols but the functions of the header, so these are all that a shared library exports;
for Windows, where linkers export constants of LLVM, too, they have a list (a module definition file).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ..compiler.target import Target, processor
from ..core.errors import OpError, UnavailableError
from ..lite.native.toolchain import find_compiler
from .targets import object_format

LINKERS = {
    "aarch64-linux": ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu"),
    "aarch64-android": ("aarch64-linux-android21-clang", ""),
    "armv7-linux": ("arm-linux-gnueabihf-gcc", "arm-linux-gnueabihf"),
    "riscv64-linux": ("riscv64-linux-gnu-gcc", "riscv64-linux-gnu"),
    "powerpc64le-linux": ("powerpc64le-linux-gnu-gcc", "powerpc64le-linux-gnu"),
    "s390x-linux": ("s390x-linux-gnu-gcc", "s390x-linux-gnu"),
    "x86_64-linux": ("x86_64-linux-gnu-gcc", "x86_64-linux-gnu"),
    "x86_64-windows": ("x86_64-w64-mingw32-gcc", "x86_64-windows-gnu"),
    "x86_64-apple": ("", "x86_64-macos"),
    "arm64-apple": ("", "aarch64-macos"),
}
"""For a processor and a system: GCC as it is installed for it, and the target of zig's compiler."""
_EMULATIONS = {
    "aarch64": "aarch64linux",
    "x86_64": "elf_x86_64",
    "riscv64": "elf64lriscv",
    "armv7": "armelf_linux_eabi",
}
"""Names of ld.lld for processors."""
_SUFFIXES = {"ELF": ".so", "COFF": ".dll", "Mach-O": ".dylib"}
_SECONDS = 600


def shared_name(name: str, target: Target) -> str:
    """Return the name of a shared library's file, as its system has it."""
    kind = object_format(target)
    return f"{'' if kind == 'COFF' else 'lib'}{name}{_SUFFIXES.get(kind, '.so')}"


def shared_library_of(name: str, target: Target, code: bytes, functions: Iterable[str]) -> bytes:
    """Return the shared library of an object file. name: of the library; functions: that it exports.

    raises UnavailableError, which says why no linker of this machine writes one
    """
    kind = object_format(target)
    if target.is_bare or target.is_wasm:
        raise UnavailableError(
            op="aot.build", what="the target has no shared libraries", found=target.triple, do="link the static one"
        )
    file = shared_name(name, target)
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="opwright-link-") as folder:
        (Path(folder) / "library.o").write_bytes(code)
        (Path(folder) / "library.def").write_text("\n".join(["EXPORTS", *functions, ""]))
        for command in _commands(target, file, kind):
            try:
                done = subprocess.run(
                    command, cwd=folder, capture_output=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, check=False
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                failures.append(f"{Path(command[0]).name}: {error}")
                continue
            if not done.returncode:
                return (Path(folder) / file).read_bytes()
            messages = done.stderr.decode(errors="replace").strip().splitlines() or [f"status {done.returncode}"]
            failures.append(f"{Path(command[0]).name}: {messages[-1]}")
    raise UnavailableError(
        op="aot.build",
        what="no linker here writes a shared library for the target",
        found="; ".join(failures) or f"none for {target.triple} on the PATH, no ziglang",
        do=f"pip install 'opwright[c]' (it brings one), or link lib{name}.a with the target's",
    )


def _commands(target: Target, file: str, kind: str) -> list[list[str]]:
    """Return the commands that may link library.o to a file, the one that fits best first."""
    arguments = {
        "ELF": ["-shared", f"-Wl,-soname,{file}", "-Wl,-z,noexecstack", "library.o", "-lm", "-o", file],
        "COFF": ["-shared", "library.o", "library.def", "-o", file],
        "Mach-O": ["-dynamiclib", f"-Wl,-install_name,@rpath/{file}", "library.o", "-o", file],
    }[kind]
    system = next((s for s in ("linux", "windows", "apple") if s in target.triple), "")
    arch = target.triple.partition("-")[0]
    system = next((s for s in ("android", "ios") if s in target.triple), system)
    key = f"{'armv7' if arch.startswith('armv7') else arch}-{system}"
    gcc, zig = LINKERS.get(key, ("", ""))
    commands: list[list[str]] = []
    if _is_native(target, key):
        try:
            compiler = find_compiler("c")
        except OpError:
            compiler = None
        if compiler is not None:
            commands.append([*compiler.command, *compiler.extra, *arguments])
    if gcc and (program := shutil.which(gcc)):
        commands.append([program, *arguments])
    if zig and importlib.util.find_spec("ziglang") is not None:
        commands.append([sys.executable, "-m", "ziglang", "cc", "-target", zig, *arguments])
    lld = shutil.which("ld.lld") if kind == "ELF" else None
    if lld and key.partition("-")[0] in _EMULATIONS:
        emulation = ["-m", _EMULATIONS[key.partition("-")[0]]]
        commands.append([lld, *emulation, "-shared", "-soname", file, "library.o", "-o", file])
    return commands


def _is_native(target: Target, key: str) -> bool:
    """Return whether compilers of this machine link for the target without more."""
    here = processor().triple
    systems = {"linux": "linux", "darwin": "apple", "win32": "windows"}
    same = here.partition("-")[0] == target.triple.partition("-")[0]
    return same and key.endswith(systems.get(sys.platform, os.name)) and "android" not in target.triple
