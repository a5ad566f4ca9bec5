"""The official run time restricted to a part of this processor's instructions: x86-64 under Linux.

Lives here: `restrict`, after which `ai_edge_litert` is a copy of the installed package that sees no more than a target
has; `targets`, what this processor can be restricted to.
Not here: what is measured with it (../duels.py), our own restriction (the flag `target`).

The run time asks CPUID what the processor has. In the copy each CPUID is UD2 (two bytes as well), which raises SIGILL;
the handler, machine code made by LLVM, executes CPUID itself and clears the bits of what the target lacks. objdump
finds the instructions: the same two bytes also occur inside of others. Importing nothing of Opwright.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

CPUID, UD2 = b"\x0f\xa2", b"\x0f\x0b"
FEATURES = 7
"""The leaf of CPUID that has what targets differ by. Source: Intel, Software Developer's Manual, volume 2, CPUID."""
BEYOND_AVX2 = {  # bits of subleaf 0: AVX-512 and its parts; VPCLMULQDQ and such are of 256 bits, too
    "ebx": (16, 17, 21, 26, 27, 28, 30, 31),
    "ecx": (1, 6, 11, 12, 14),
    "edx": (2, 3, 8, 22, 23, 24, 25),  # the last three: AMX, and 23 FP16
}
AVX_VNNI = 1 << 4
"""The bit of subleaf 1's EAX, which stays where a target has it; all other bits of that subleaf are cleared."""
KEPT = {"x86-64-v3": 0, "x86-64-v3-vnni": AVX_VNNI}
HAS = {"x86-64-v3": {"avx2", "fma"}, "x86-64-v3-vnni": {"avx2", "fma", "avx_vnni"}}
LACKS = {"x86-64-v3": {"avx512f", "avx_vnni"}, "x86-64-v3-vnni": {"avx512f"}}
"""By target, in the words of /proc/cpuinfo: what it has, and of which a processor that has more has one at least."""

REGISTERS = {"rbx": 11, "rdx": 12, "rax": 13, "rcx": 14, "rip": 16}
"""Where registers are in a ucontext_t, in words from the first. Source: sys/ucontext.h of the C library."""
FIRST_REGISTER = 40
"""Bytes before them: flags, a link, the signal's stack."""
SA_SIGINFO, SA_NODEFER = 4, 0x40000000


class _Action(ctypes.Structure):
    """struct sigaction of the C library on x86-64."""

    _fields_ = [
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    ]


def targets() -> list[str]:
    """Return the targets that this processor can be restricted to."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return []
    has = features()
    return [name for name in KEPT if has >= HAS[name] and has & LACKS[name]]


def features() -> set[str]:
    """Return what /proc/cpuinfo lists of this processor, nothing on other systems than Linux."""
    path = Path("/proc/cpuinfo")
    flags = re.search(r"^flags\s*:(.*)$", path.read_text(), re.MULTILINE) if path.exists() else None
    return set(flags[1].split()) if flags else set()


def has_vnni() -> bool:
    """Return whether this processor multiplies bytes by VNNI."""
    return bool(features() & {"avx512_vnni", "avx_vnni"})


def restrict(target: str) -> None:
    """Let `ai_edge_litert` be a copy that takes this processor for a target. raises RuntimeError where it cannot be"""
    if target not in targets():
        raise RuntimeError(f"this processor cannot be restricted to {target}")
    if "ai_edge_litert" in sys.modules:
        raise RuntimeError("ai_edge_litert is imported already, and asked the processor what it has")
    sys.path.insert(0, str(_package()))
    importlib.invalidate_caches()
    _install(KEPT[target])


def _package() -> Path:
    """The folder of the copy, made once for each version of the package."""
    from benchmarks import models

    spec = importlib.util.find_spec("ai_edge_litert")
    if spec is None or spec.origin is None:
        raise RuntimeError("ai_edge_litert is not installed")
    folder = models.folder() / f"restricted-{importlib.metadata.version('ai-edge-litert')}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
            copy = Path(unfinished) / "restricted"
            shutil.copytree(Path(spec.origin).parent, copy / "ai_edge_litert")
            if not sum(_trap(path) for path in sorted(copy.rglob("*.so"))):
                raise RuntimeError("no library of ai_edge_litert has a CPUID instruction")
            os.replace(copy, folder)
    return folder


def _trap(path: Path) -> int:
    """Make UD2 of each CPUID of a library, and say how many there were."""
    code = bytearray(path.read_bytes())
    if CPUID not in code:
        return 0
    tool = shutil.which("objdump")
    if tool is None:
        raise RuntimeError("objdump (of GNU binutils) finds the CPUID instructions of ai_edge_litert, and is not here")
    quiet = subprocess.run([tool, "-h", "-j", ".text", str(path)], capture_output=True, text=True, check=True).stdout
    section = re.search(r"\.text\s+\w+\s+(\w+)\s+\w+\s+(\w+)", quiet)
    if section is None:
        raise RuntimeError(f"{path.name}: objdump lists no section .text")
    offset = int(section[2], 16) - int(section[1], 16)  # of the file, from an address
    listing = subprocess.Popen(
        [tool, "-d", "--no-show-raw-insn", "-j", ".text", str(path)], stdout=subprocess.PIPE, text=True
    )
    assert listing.stdout is not None
    sites = [int(line.split(":")[0], 16) + offset for line in listing.stdout if line.rstrip().endswith("\tcpuid")]
    if listing.wait():
        raise RuntimeError(f"{path.name}: objdump failed with {listing.returncode}")
    for site in sites:
        if code[site : site + 2] != CPUID:
            raise RuntimeError(f"{path.name}: no CPUID at {site:#x}, where objdump has one")
        code[site : site + 2] = UD2
    path.write_bytes(code)
    return len(sites)


def _install(kept: int) -> None:
    """Have SIGILL handled. kept: bits of subleaf 1's EAX."""
    library = ctypes.CDLL(None, use_errno=True)
    action = _Action(_handler(kept), flags=SA_SIGINFO | SA_NODEFER)
    if library.sigaction(int(signal.SIGILL), ctypes.byref(action), None):
        raise RuntimeError(f"sigaction: {os.strerror(ctypes.get_errno())}")


@functools.cache
def _handler(kept: int) -> int:
    """The address of the handler, which stays where it is until the process ends."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # of CPUID, an instruction that LLVM has no other words for
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(_text(kept)), llvm.Target.from_default_triple().create_target_machine()
    )
    engine.finalize_object()
    _KEEP.append(engine)
    return int(engine.get_function_address("on_illegal_instruction"))


_KEEP: list[object] = []


def _text(kept: int) -> str:
    """The handler in LLVM's words: void (int signal, siginfo_t *, ucontext_t *).

    Anything else than UD2 gets what happens by default: the handler takes itself away, and the instruction runs again.
    """
    places = "\n  ".join(
        f"%{name}.at = getelementptr i8, ptr %context, i64 {FIRST_REGISTER + 8 * index}"
        for name, index in REGISTERS.items()
    )
    lines = []
    for i, name in enumerate(("eax", "ebx", "ecx", "edx")):
        held = ~sum(1 << bit for bit in BEYOND_AVX2.get(name, ())) & 0xFFFFFFFF
        lines += [
            f"%{name} = extractvalue {{i32, i32, i32, i32}} %all, {i}",
            f"%{name}.0 = and i32 %{name}, {held}",
            f"%{name}.1 = and i32 %{name}, {kept if name == 'eax' else 0}",
            f"%{name}.either = select i1 %first, i32 %{name}.0, i32 %{name}",
            f"%{name}.now = select i1 %second, i32 %{name}.1, i32 %{name}.either",
            f"%{name}.wide = zext i32 %{name}.now to i64",
            f"store i64 %{name}.wide, ptr %r{name[1:]}.at",
        ]
    answers, constraints = "\n  ".join(lines), "={ax},={bx},={cx},={dx},{ax},{cx}"
    return f"""
declare ptr @signal(i32, ptr)
define void @on_illegal_instruction(i32 %number, ptr %info, ptr %context) {{
  {places}
  %rip = load ptr, ptr %rip.at
  %bytes = load i16, ptr %rip, align 1
  %ours = icmp eq i16 %bytes, {int.from_bytes(UD2, "little")}
  br i1 %ours, label %answer, label %decline
decline:
  call ptr @signal(i32 %number, ptr null)
  ret void
answer:
  %leaf = load i32, ptr %rax.at
  %subleaf = load i32, ptr %rcx.at
  %all = call {{i32, i32, i32, i32}} asm "cpuid", "{constraints}"(i32 %leaf, i32 %subleaf)
  %features = icmp eq i32 %leaf, {FEATURES}
  %is.0 = icmp eq i32 %subleaf, 0
  %is.1 = icmp eq i32 %subleaf, 1
  %first = and i1 %features, %is.0
  %second = and i1 %features, %is.1
  {answers}
  %next = getelementptr i8, ptr %rip, i64 2
  store ptr %next, ptr %rip.at
  ret void
}}
"""
