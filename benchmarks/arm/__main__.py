"""Instructions of a network's run on 64-bit ARM, of Opwright and the official interpreter, counted under QEMU.

Lives here: the command line, the emulator's runs, the table.  Not here: the processors (machines.py), what runs inside
(guest.py), the counting (counter.c).

Needed: QEMU's user mode with plugins, versions 6 to 8 (Debian: qemu-user), a C compiler, and a folder that is the root
of an ARM system with a Python and the packages numpy, llvmlite, ml_dtypes, flatbuffers, safetensors, click, rich and
ai-edge-litert in the folder --site of it. On Debian it is made by

    debootstrap --foreign --arch=arm64 --variant=minbase --include=python3,libstdc++6 bookworm ROOT
    for deb in ROOT/var/cache/apt/archives/*.deb; do dpkg-deb -x $deb ROOT; done
    pip download --no-deps --only-binary=:all: --python-version 3.11 --platform manylinux_2_28_aarch64
        --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 -d WHEELS numpy llvmlite ...
    for wheel in WHEELS/*.whl; do unzip $wheel -d ROOT/opt/site; done

Nothing is fetched here. A count does not depend on what else the machine does, but the emulator takes a hundred times
as long as a processor; --cache keeps our compiled code for the next time. Exit code 1 if a run failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import duels, measure, models
from benchmarks.arm.machines import MACHINES, lay_out

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
LIMIT_S = 3600


def build(folder: Path) -> Path:
    """Build the plugin."""
    library = folder / "counter.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(HERE / "counter.c"), "-o", str(library)], check=True)
    return library


@contextlib.contextmanager
def prefix(machine: str, root: Path) -> Iterator[Path]:
    """A folder that the emulator takes for the root of a system with this processor."""
    with tempfile.TemporaryDirectory(prefix="opwright-arm-") as folder:
        lay_out(MACHINES[machine], root, Path(folder))
        yield Path(folder)


def count(machine: str, side: str, path: str, options: argparse.Namespace, plugin: Path, marks: Path) -> int:
    """Instructions of one run of a file. Raises RuntimeError with what the run said where it failed."""
    inside = {
        **measure.QUIET,
        "PYTHONPATH": f"{options.site}:{PROJECT / 'src'}:{PROJECT}",
        "OPWRIGHT_BACKGROUND": "0",
        "OPWRIGHT_CACHE_DIR": f"{options.cache}/{machine}",
    }
    arguments = f"{plugin},out={marks}" + (",profile=on" if options.profile else "")
    with prefix(machine, options.root) as there:
        command = [options.qemu, "-cpu", MACHINES[machine].cpu, "-L", str(there), "-plugin", arguments]
        command += [word for name, value in inside.items() for word in ("-E", f"{name}={value}")]
        command += [str(options.root / "usr/bin/python3"), "-m", "benchmarks.arm.guest", side, path]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        raise RuntimeError(f"{side} on {machine}: {done.stderr.strip()[-2000:] or done.returncode}")
    at = {int(n): int(value) for n, value in (line.split()[1:] for line in marks.open() if line.startswith("mark "))}
    return at[1] - at[0]


def rows(options: argparse.Namespace, console: Console) -> list[dict[str, Any]]:
    """A row for each network, kind and processor."""
    result = []
    with tempfile.TemporaryDirectory(prefix="opwright-arm-") as folder, console.status("") as status:
        plugin = build(Path(folder))
        for network, kind in options.networks:
            path = models.path_of(network, kind)
            for machine in options.machines:
                row: dict[str, Any] = {"network": network, "kind": kind, "machine": machine}
                for side in options.sides:
                    status.update(f"{network} {kind} on {machine}, {side}")
                    marks = Path(options.profile or folder) / f"{network}_{kind}_{machine}_{side}.txt"
                    try:
                        row[side] = count(machine, side, path, options, plugin, marks)
                    except (RuntimeError, subprocess.TimeoutExpired) as error:
                        console.print(str(error), markup=False)
                        row[side] = None
                result.append(row)
    return result


def print_table(result: list[dict[str, Any]], console: Console) -> None:
    """Millions of instructions, and ours as a share of the official interpreter's."""
    table = Table("network", "processor", "ours", "official", "ratio", title="Millions of instructions a run")
    for row in result:
        ours, official = row.get("ours"), row.get("litert")
        ratio = f"{ours / official:.2f}" if ours and official else ""
        shown = (f"{n / 1e6:.1f}" if n else "" for n in (ours, official))
        table.add_row(f"{row['network']} {row['kind']}", row["machine"], *shown, ratio)
    console.print(table)


def _network(text: str) -> tuple[str, str]:
    name, _, kind = text.rpartition("_")
    if name not in models.NETWORKS or kind not in models.KINDS:
        raise argparse.ArgumentTypeError(f"{text} is none of {', '.join(models.NETWORKS)} with _f32 or _int8")
    return name, kind


def main() -> int:
    class Formatter(argparse.RawDescriptionHelpFormatter):
        """Keeps the lines of this module's docstring."""

    every = [(n, k) for n in models.NETWORKS for k in models.KINDS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arm", description=__doc__, formatter_class=Formatter)
    parser.add_argument("networks", nargs="*", type=_network, metavar="NETWORK", help="only these, as mobilenet_v2_f32")
    parser.add_argument("--root", type=Path, required=True, help="the root of an ARM system, see above")
    parser.add_argument("--site", default="/opt/site", help="the folder of packages inside the root (%(default)s)")
    parser.add_argument("--cache", default=str(models.folder() / "arm"), help="our compiled code (%(default)s)")
    parser.add_argument("--qemu", default="qemu-aarch64", help="the emulator (%(default)s)")
    parser.add_argument("--machines", nargs="+", choices=MACHINES, default=list(MACHINES), help="only these processors")
    parser.add_argument("--sides", nargs="+", choices=duels.SIDES, default=list(duels.SIDES), help="only these")
    parser.add_argument("--profile", metavar="FOLDER", help="write which blocks of code ran how often into files here")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args()
    options.networks = options.networks or every
    options.root = options.root.resolve()
    if shutil.which(options.qemu) is None:
        parser.error(f"{options.qemu} is not installed (Debian: qemu-user)")
    if not (options.root / "usr/bin/python3").exists():
        parser.error(f"{options.root} has no usr/bin/python3: it is to be made first, see --help")
    result = rows(options, Console(stderr=True))
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        print_table(result, Console(width=None if sys.stdout.isatty() else 110))
    return 1 if any(row.get(side) is None for row in result for side in options.sides) else 0


if __name__ == "__main__":
    sys.exit(main())
