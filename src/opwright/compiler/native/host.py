"""The description of this processor, cached so that it does not require LLVM.

Lives here: `host_words`, its cache, the request to LLVM; the permission of Linux for AMX tiles; `cache_bytes`.
Not here: targets (target.py).

To import llvmlite takes longer than to load all kernels of a model. So the description by LLVM is in the object cache,
under a digest of the description by the system, and of the installed llvmlite.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import sys
from importlib.machinery import PathFinder

from ...core import flags
from ...core.files import digest
from ...core.named_tuples import NamedTuple
from ..background import LLVM
from ..cache import objects
from .image import library

_CPUINFO, _CACHES = "/proc/cpuinfo", "/sys/devices/system/cpu/cpu0/cache"
_CPUINFO_BYTES = 1 << 14  # of the first processor, which needs a few thousand
# Lines that identify the processor; others vary over time or by core.
_LINES = (
    "vendor_id",
    "cpu family",
    "model",
    "stepping",
    "flags",  # x86
    "CPU ",
    "Features",
    "isa",
    "mvendorid",
    "marchid",
    "mimpid",
)  # Arm, RISC-V
_ARM_FEATURES = {
    "asimdhp": "fullfp16",
    "asimdrdm": "rdm",
    "asimddp": "dotprod",
    "asimdfhm": "fp16fml",
    "i8mm": "i8mm",
    "bf16": "bf16",
}
"""Features of 64-bit ARM that LLVM does not detect: names in Linux and in LLVM. Source: Linux,
Documentation/arch/arm64/elf_hwcaps.rst."""
_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18
"""The system call, ARCH_REQ_XCOMP_PERM, and the requested state. Source: Linux, Documentation/arch/x86/xstate.rst."""


class HostWords(NamedTuple):
    """This processor in the terms of LLVM, and the bytes of its vectors."""

    triple: str
    cpu: str
    features: str
    vector_bytes: int


def host_words() -> HostWords:
    """Return the description of this processor, without features that the system denies to this process."""
    words = _description()
    if "+amx-tile" in words.features and not _may_use_tiles():
        words = words._replace(features=words.features.replace("+amx-", "-amx-"))
    return words


def _may_use_tiles() -> bool:
    """Request the permission of Linux to use AMX tiles, for this process, its threads and children."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or sys.maxsize <= 1 << 32:
        return False
    return bool(library().syscall(*(ctypes.c_long(n) for n in (_ARCH_PRCTL, _REQUEST, _TILE_DATA))) == 0)


_loaded: HostWords | None = None
"""The description, once this process has it."""


def is_described() -> bool:
    """Return whether the description is available without LLVM.

    If it is not, the cache has no code for this processor: callers that do not need code avoid the import of LLVM.
    """
    if _loaded is not None:
        return True
    name = _name()
    return name is None or _cached(name) is not None  # None: LLVM describes it in every process


def keep_description() -> None:
    """Cache the description if missing: code for this processor is not found without it."""
    name = _name()
    if name is not None and _loaded is not None and _cached(name) is None:
        _write(name, _loaded)


def _description() -> HostWords:
    """Return the description from the cache, or from LLVM."""
    global _loaded
    name = _name()
    words = None if name is None else _cached(name)
    if words is None:
        words = _from_llvm()
        if name is not None:
            _write(name, words)
    _loaded = words
    return words


def _name() -> str | None:
    """Return the digest of the description; None if the system does not identify the processor."""
    identification = _identification()
    return None if identification is None else digest(f"host 2\0{identification}".encode())


def _write(name: str, words: HostWords) -> None:
    objects(flags.cache_dir).keep(name, "\0".join(map(str, words)).encode())


def _cached(name: str) -> HostWords | None:
    data = objects(flags.cache_dir).find(name)
    return None if data is None else _parse(data)


def _parse(data: bytes) -> HostWords | None:
    match data.decode(errors="replace").split("\0"):
        case [triple, cpu, features, wide] if wide in ("16", "32", "64"):
            return HostWords(triple, cpu, features, int(wide))
    return None


@functools.cache
def cache_bytes(level: int = 2) -> int:
    """Return the bytes of the second-level cache of a processor, or of the shared third-level one.

    They are 1 and 32 MiB if the system does not report them.
    """
    folders: list[str] = []
    with contextlib.suppress(OSError):
        folders = sorted(name for name in os.listdir(_CACHES) if name.startswith("index"))
    for folder in folders:
        try:
            actual, kind, size = (_words(os.path.join(_CACHES, folder, name)) for name in ("level", "type", "size"))
            if actual == str(level) and kind != "Instruction":
                return int(size.removesuffix("K")) * 1024
        except (OSError, ValueError):
            continue
    return {2: 1 << 20, 3: 1 << 25}[level]


def _words(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def _from_llvm() -> HostWords:
    from llvmlite import binding as llvm

    with LLVM:
        features = llvm.get_host_cpu_features()
        wide = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
        listed = ",".join(filter(None, (features.flatten(), *_listed_for_arm())))
        return HostWords(llvm.get_process_triple(), llvm.get_host_cpu_name(), listed, wide)


def _listed_for_arm() -> list[str]:
    """Return features of 64-bit ARM that the system lists and LLVM does not detect, in the format of LLVM."""
    if platform.machine() not in ("aarch64", "arm64"):
        return []
    lines = [line.partition(":")[2].split() for line in _first_processor().splitlines() if line.startswith("Features")]
    return [f"+{llvm}" for linux, llvm in _ARM_FEATURES.items() if lines and linux in lines[0]]


def _first_processor() -> str:
    """Return the description of the first processor by the system, or an empty text."""
    try:
        with open(_CPUINFO, "rb") as file:
            return file.read(_CPUINFO_BYTES).partition(b"\n\n")[0].decode(errors="replace")
    except OSError:
        return ""


def _identification() -> str | None:
    """Return the identification and features of the processor as the system lists them, or None."""
    lines = [line for line in _first_processor().splitlines() if line.startswith(_LINES)]
    if not lines:
        return None
    return "\0".join((*lines, sys.platform, platform.machine(), compiler_stamp()))


def compiler_stamp() -> str:
    """Identify the installed llvmlite without importing it, by the size and time of the files with its version."""
    spec = PathFinder.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return ""
    stats = []
    for name in ("__init__.py", "_version.py"):
        path = os.path.join(os.path.dirname(spec.origin), name)
        if os.path.exists(path):
            stat = os.stat(path)
            stats.append(f"{stat.st_size}.{stat.st_mtime_ns}")
    return " ".join(stats)
