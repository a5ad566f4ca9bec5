"""Measure what a resolver for some models saves: time, memory and modules, per kind of resolver, in separate processes.

Lives here: measuring, the table.  Not here: the resolver's text (selective_build.py), resolvers (lite/resolver.py).

Three are compared: the generated one; the default one, which imports a kernel when a model has the operator; and one
with every kernel, like run times that link all operators. The time is that of creating the resolver and looking up each
operator of the models, the memory the growth of the process after importing `opwright.lite`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from .report import BadFile

PROCESSES = 5

KINDS = {"this": "this one", "default": "the default one", "all": "one of all operators"}

_SCRIPT = """
import json, os, sys, time
kind, folder, builtins, customs = json.loads(sys.argv[1])
import opwright.lite, opwright.lite.resolver
from opwright.lite import Registration

def memory():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0

before, bytes_before, start = len(sys.modules), memory(), time.perf_counter()
if kind == "this":
    sys.path.insert(0, folder)
    import written_resolver
    made = written_resolver.Resolver(**{name: Registration(version=2**31 - 1) for name in customs})
else:
    made = opwright.lite.BuiltinOpResolver()
    if kind == "all":
        from opwright.lite import customs as shipped, ops
        kernels = [ops.get(name) for name in ops.list_names()] + [shipped.get(name) for name in shipped.list_names()]
for name, (least, most) in builtins.items():
    assert made.find_op(name, most) is not None
print(json.dumps([time.perf_counter() - start, memory() - bytes_before, len(sys.modules) - before]))
"""


class Cost(NamedTuple):
    """The cost of a kind of resolver: seconds, bytes (0 if the system does not report them), modules imported."""

    resolver: str
    seconds: float
    bytes: int
    modules: int


def measure_costs(text: str, used: Any) -> list[Cost]:
    """Return the costs of each kind, as medians over processes. text: of the module; used: the operators of the models.

    raises BadFile if a process fails
    """
    runs_by_kind: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "written_resolver.py").write_text(text, "utf-8")
        for _ in range(PROCESSES + 1):  # interleaved, so that noise affects all kinds
            for kind in KINDS:
                runs_by_kind[kind].append(_run_process(kind, folder, used.builtins, used.parameters))
    return [
        Cost(kind, *_medians(runs[1:])) for kind, runs in runs_by_kind.items()
    ]  # the first run fills the file cache


def _run_process(kind: str, folder: str, builtins: Mapping[str, Any], customs: Sequence[str]) -> list[float]:
    request = json.dumps([kind, folder, dict(builtins), list(customs)])
    process = subprocess.run([sys.executable, "-c", _SCRIPT, request], capture_output=True, text=True, check=False)
    if process.returncode:
        lines = process.stderr.strip().splitlines() or [f"it ended with status {process.returncode}"]
        raise BadFile(f"the resolver cannot be measured: {lines[-1]}")
    answer: list[float] = json.loads(process.stdout.splitlines()[-1])
    return answer


def _medians(runs: Sequence[Sequence[float]]) -> tuple[float, int, int]:
    seconds, size, modules = (statistics.median(column) for column in zip(*runs))
    return seconds, int(size), int(modules)


def table(costs: Sequence[Cost]) -> Table:
    """Return the costs as a table."""
    costs_table = Table("a resolver made, its kernels imported", "time", "memory", "modules")
    for c in costs:
        costs_table.add_row(KINDS[c.resolver], f"{c.seconds * 1e3:.1f} ms", f"{c.bytes / 1024:.0f} KB", str(c.modules))
    return costs_table
