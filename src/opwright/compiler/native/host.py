"""This processor, described without LLVM where it was described before.

Lives here: `host_words`, finding them in the cache, asking LLVM; asking Linux for tiles; `cache_bytes`.
Not here: what a Target is (target.py).

Importing llvmlite takes longer than loading all kernels of a model. So what LLVM says of a processor is kept in the
object cache, under a digest of what the system says of it, and of the llvmlite at hand.
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
_MOST_BYTES = 1 << 14  # of the first processor: a few thousand
# The lines that say what it is; the others change from one moment or core to the next.
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
"""Linux's names of features of 64-bit ARM that LLVM does not look for, and LLVM's. Source: Linux,
Documentation/arch/arm64/elf_hwcaps.rst."""
_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18
"""The system call, ARCH_REQ_XCOMP_PERM, and the state asked for. Source: Linux, Documentation/arch/x86/xstate.rst."""


class HostWords(NamedTuple):
    """This processor in LLVM's words, and the bytes of its vectors."""

    triple: str
    cpu: str
    features: str
    vector_bytes: int


def host_words() -> HostWords:
    """What LLVM says of this processor, less what the system does not let this process have."""
    words = _known()
    if "+amx-tile" in words.features and not _may_use_tiles():
        words = words._replace(features=words.features.replace("+amx-", "-amx-"))
    return words


def _may_use_tiles() -> bool:
    """Ask Linux for tiles, which no process may use before it asked. Its threads and children may use them, too."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or sys.maxsize <= 1 << 32:
        return False
    return bool(library().syscall(*(ctypes.c_long(n) for n in (_ARCH_PRCTL, _REQUEST, _TILE_DATA))) == 0)


_at_hand: HostWords | None = None
"""What LLVM says, once this process has it."""


def is_described() -> bool:
    """Whether LLVM need not be asked. Where it is to be, the cache has no code for this processor: who can do without
    code spares the time that importing LLVM takes."""
    if _at_hand is not None:
        return True
    name = _name()
    return name is None or _kept(name) is not None  # None: it is asked in every process


def keep_description() -> None:
    """Keep what LLVM says where the cache lacks it: beside code for this processor, which nobody finds without."""
    name = _name()
    if name is not None and _at_hand is not None and _kept(name) is None:
        _keep(name, _at_hand)


def _known() -> HostWords:
    """What LLVM says; from the cache where it holds that."""
    global _at_hand
    name = _name()
    words = None if name is None else _kept(name)
    if words is None:
        words = _asked()
        if name is not None:
            _keep(name, words)
    _at_hand = words
    return words


def _name() -> str | None:
    """What LLVM's words are kept as; None where the system does not say what the processor is."""
    signs = _signs()
    return None if signs is None else digest(f"host 2\0{signs}".encode())


def _keep(name: str, words: HostWords) -> None:
    objects(flags.cache_dir).keep(name, "\0".join(map(str, words)).encode())


def _kept(name: str) -> HostWords | None:
    kept = objects(flags.cache_dir).find(name)
    return None if kept is None else _read(kept)


def _read(kept: bytes) -> HostWords | None:
    match kept.decode(errors="replace").split("\0"):
        case [triple, cpu, features, wide] if wide in ("16", "32", "64"):
            return HostWords(triple, cpu, features, int(wide))
    return None


@functools.cache
def cache_bytes(level: int = 2) -> int:
    """Bytes of the second-level cache, a processor's own, or the third-level one, which several share; 1 and 32 MiB
    where the system does not say."""
    folders: list[str] = []
    with contextlib.suppress(OSError):
        folders = sorted(name for name in os.listdir(_CACHES) if name.startswith("index"))
    for folder in folders:
        try:
            found, kind, size = (_words(os.path.join(_CACHES, folder, name)) for name in ("level", "type", "size"))
            if found == str(level) and kind != "Instruction":
                return int(size.removesuffix("K")) * 1024
        except (OSError, ValueError):
            continue
    return {2: 1 << 20, 3: 1 << 25}[level]


def _words(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def _asked() -> HostWords:
    from llvmlite import binding as llvm

    with LLVM:
        features = llvm.get_host_cpu_features()
        wide = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
        listed = ",".join(filter(None, (features.flatten(), *_listed_for_arm())))
        return HostWords(llvm.get_process_triple(), llvm.get_host_cpu_name(), listed, wide)


def _listed_for_arm() -> list[str]:
    """Features of a 64-bit ARM that the system lists and LLVM does not look for, as LLVM's target takes them."""
    if platform.machine() not in ("aarch64", "arm64"):
        return []
    lines = [line.partition(":")[2].split() for line in _first_processor().splitlines() if line.startswith("Features")]
    return [f"+{llvm}" for linux, llvm in _ARM_FEATURES.items() if lines and linux in lines[0]]


def _first_processor() -> str:
    """What the system says of the first processor; nothing where it does not."""
    try:
        with open(_CPUINFO, "rb") as file:
            return file.read(_MOST_BYTES).partition(b"\n\n")[0].decode(errors="replace")
    except OSError:
        return ""


def _signs() -> str | None:
    """Return the processor's identification and features as the system lists them, or None if it does not."""
    lines = [line for line in _first_processor().splitlines() if line.startswith(_LINES)]
    if not lines:
        return None
    return "\0".join((*lines, sys.platform, platform.machine(), compiler_stamp()))


def compiler_stamp() -> str:
    """Which llvmlite there is, without importing it: the size and time of the files that say its version."""
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
