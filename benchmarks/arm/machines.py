"""The processors that are emulated, and what the system says of them.

Lives here: `MACHINES`, `lay_out`.  Not here: running them (__main__.py).

QEMU's user mode shows the files of the machine that it runs on: a program that reads /proc/cpuinfo or /sys would find
an x86 there. It looks into its prefix first, so the prefix has files of these names that say what it emulates.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Machine(NamedTuple):
    """cpu: in QEMU's words. part: its implementer and part number. features: as Linux lists them."""

    cpu: str
    part: tuple[int, int]
    features: str


_ARMV8 = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"
_ARMV82 = f"{_ARMV8} atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"
_ARMV86 = f"{_ARMV82} jscvt fcma sha3 sha512 asimdfhm dit ilrcpc flagm dcpodp flagm2 frint i8mm bf16"
MACHINES = {
    "neon": Machine("cortex-a72", (0x41, 0xD08), _ARMV8),
    "dotprod": Machine("neoverse-n1", (0x41, 0xD0C), _ARMV82),
    "i8mm": Machine("max,sve=off,sme=off", (0x00, 0x051), _ARMV86),
}
"""By what kernels ask for. QEMU's `max` has all that it can emulate; its vectors of variable length are left out."""

_PROCESSOR = """processor\t: 0
BogoMIPS\t: 100.00
Features\t: {features}
CPU implementer\t: {implementer:#04x}
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: {part:#05x}
CPU revision\t: 1

"""
_ONE_CORE = {
    "present": "0",
    "possible": "0",
    "online": "0",
    "kernel_max": "0",
    **{
        f"cpu0/topology/{name}": "0"
        for name in (
            "core_id",
            "physical_package_id",
            "core_siblings_list",
            "package_cpus_list",
            "core_cpus_list",
            "cluster_cpus_list",
            "thread_siblings_list",
        )
    },
    "cpu0/cache/index2/level": "2",
    "cpu0/cache/index2/type": "Unified",
    "cpu0/cache/index2/size": "1024K",
    "cpu0/cache/index2/shared_cpu_list": "0",
}


def lay_out(machine: Machine, root: Path, prefix: Path) -> None:
    """Make a prefix of the foreign root's folders, as links, and of files that say which processor this is."""
    for entry in root.iterdir():
        if entry.name not in ("proc", "sys", "dev"):
            (prefix / entry.name).symlink_to(entry.resolve())
    (prefix / "proc").mkdir()
    implementer, part = machine.part
    (prefix / "proc" / "cpuinfo").write_text(
        _PROCESSOR.format(features=machine.features, implementer=implementer, part=part)
    )
    for name, text in _ONE_CORE.items():
        path = prefix / "sys" / "devices" / "system" / "cpu" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
