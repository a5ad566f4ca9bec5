"""`opwright doctor`: check the installation's requirements and optional parts.

Lives here: the table of checks.  Not here: repairs.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.table import Table
from rich.text import Text

from ..core import flag_effects, flags
from ..core.private_files import fault_of_folder
from ..ops import plugins
from .report import out, print_json

Finding = tuple[str, str, bool]  # subject, value, whether it is as required

RUN_TIME = ("numpy", "llvmlite", "flatbuffers", "ml_dtypes", "safetensors", "click", "rich")
OPTIONAL = ("ai-edge-litert", "ziglang")


def _python() -> Iterator[Finding]:
    yield "Python", platform.python_version(), sys.version_info >= (3, 11)
    yield "system", f"{platform.system()} {platform.machine()}", True


def _packages() -> Iterator[Finding]:
    for name in RUN_TIME:
        try:
            yield name, importlib.metadata.version(name), True
        except importlib.metadata.PackageNotFoundError:
            yield name, "missing", False
    for name in OPTIONAL:
        try:
            yield f"{name} (optional)", importlib.metadata.version(name), True
        except importlib.metadata.PackageNotFoundError:
            yield f"{name} (optional)", "not installed", True


def _processor() -> Iterator[Finding]:
    try:
        from llvmlite import binding as llvm

        features = llvm.get_host_cpu_features()
        reported = ("avx2", "fma", "avx512f", "avx512vnni", "neon", "dotprod", "i8mm")
        yield "processor", llvm.get_host_cpu_name(), True
        yield "vector features", ", ".join(f for f in reported if features.get(f)) or "none known", True
    except Exception as error:
        yield "LLVM", f"does not load: {error}", False
    yield "cores", str(os.cpu_count()), True


def _kernel() -> Iterator[Finding]:
    import numpy as np

    try:
        from ..compiler.elementwise import compile_elementwise

        x = np.arange(5, dtype=np.float32)
        y = compile_elementwise(lambda v: v * v + 1.0, "doctor", [x.dtype], {}).over(x.shape, [x])
        is_correct = bool((y == x * x + 1).all())
        yield "compiling a kernel", "works" if is_correct else f"gives {y.tolist()}", is_correct
    except Exception as error:
        yield "compiling a kernel", f"{type(error).__name__}: {error}", False


def _compilers() -> Iterator[Finding]:
    compiler = shutil.which("cc") or shutil.which("clang")
    yield "C compiler (optional)", compiler or "none; pip install 'opwright[c]' brings one", True


def _devices() -> Iterator[Finding]:
    from ..devices.cpu import cores
    from ..devices.cuda_host import report

    yield "CPU threads", f"{flags.get('num_threads') or cores()} for one operator", True
    yield "GPUs (optional)", report(), True


def _cache() -> Iterator[Finding]:
    folder = flags.get("cache_dir")
    if folder is None:
        yield "cache folder", "none: this user has no home directory, and OPWRIGHT_CACHE_DIR is not set", False
        return
    folder = Path(folder)
    nearest = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    fault = fault_of_folder(nearest, above=nearest != folder)
    if fault is not None:
        yield "cache folder", f"{folder} is not used: {fault.path} {fault.found}", False
    else:
        yield "cache folder", str(folder), os.access(nearest, os.W_OK)


def _switches() -> Iterator[Finding]:
    for row in flags.table():
        value = ",".join(sorted(row.value)) if isinstance(row.value, frozenset) else str(row.value)
        yield row.variable, f"{value or 'nothing'} ({row.source})", True
    for name in flags.unknown_variables():
        yield name, "is not a switch of Opwright", False


def _operators() -> Iterator[Finding]:
    """Yield the operators of installed packages; each is imported as a check."""
    for name in plugins.entries():
        loaded = plugins.load(name)
        sources = ", ".join(f"{f.entry.package} ({f.entry.value})" for f in loaded)
        yield f"operator {name}", plugins.troubles(name) or sources, not plugins.troubles(name)


def _numbers() -> Iterator[Finding]:
    """Yield the effects of the switches that change numbers, in force or not."""
    for change in flag_effects.FLAG_EFFECTS:
        value = change.on if flags.get(change.flag) else f"{change.off}; with the switch: {change.on}"
        yield f"{change.flag}: {change.what}", value, True


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _python,
    _packages,
    _processor,
    _kernel,
    _compilers,
    _devices,
    _cache,
    _switches,
    _operators,
    _numbers,
)


def run_doctor(as_json: bool) -> bool:
    """Print every finding; True if all requirements are met."""
    findings = [f for check in CHECKS for f in check()]
    if as_json:
        print_json([{"what": w, "found": f, "ok": ok} for w, f, ok in findings])
    else:
        table = Table("", "found", "")
        for subject, value, ok in findings:
            table.add_row(subject, value, Text("ok", "green") if ok else Text("not as it must be", "red"))
        out().print(table)
    return all(ok for _, _, ok in findings)
