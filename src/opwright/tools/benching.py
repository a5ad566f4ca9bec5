"""`opwright bench`: how fast a model file loads and runs, and where the time goes.

Lives here: measuring, and the figures.  Not here: the tables of nodes and operators (profiles.py), inputs (running.py),
timing nodes (lite/runtime/profiling.py).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track
from rich.table import Table

from .. import lite
from .customs import custom_operators
from .models import read_model
from .profiles import html_page, print_profile
from .report import BadFile, notes, out, print_json, write_file
from .running import feed

LOADS = 5

RIVALS = {"litert": "ai_edge_litert.interpreter"}
"""The modules of other interpreters, which a process of its own imports where they are installed."""


@dataclass(frozen=True)
class Settings:
    """What a person asked for. inputs, shapes: as `feed` takes them; rival: whose interpreter runs it, too; customs: as
    `custom_operators` takes them."""

    runs: int = 200
    warmup: int | None = None
    threads: int = 1
    by_operator: bool = False
    rival: str | None = None
    page: str | None = None
    inputs: Sequence[str] = ()
    shapes: Sequence[str] = ()
    seed: int = 0
    customs: Sequence[str] = ()

    @property
    def warmups(self) -> int:
        """Runs before those that are timed: by default a twentieth of them, at least 3."""
        return max(3, self.runs // 20) if self.warmup is None else self.warmup


def bench_model(path: str, settings: Settings, as_json: bool) -> None:
    """Time loading, allocation and runs; print it, and write the page where one is asked for. Raises BadFile."""
    model = read_model(path)  # a bad file is told of as such
    custom_ops = custom_operators(settings.customs)
    loads, allocations = [], []
    for _ in range(LOADS):
        start = time.perf_counter()
        interpreter = lite.Interpreter(model_path=path, num_threads=settings.threads, custom_ops=custom_ops)
        middle = time.perf_counter()
        interpreter.allocate_tensors()
        loads.append(middle - start)
        allocations.append(time.perf_counter() - middle)
    feed(interpreter, model, settings.inputs, settings.seed, settings.shapes)
    for _ in range(settings.warmups):
        interpreter.invoke()
    times = _timed(interpreter.invoke, settings.runs)
    figures = {"load": float(np.median(loads)), "allocate": float(np.median(allocations)), **_figures(times)}
    wanted = settings.by_operator or settings.page is not None
    profile = interpreter.profile(max(10, settings.runs // 10), memory=True) if wanted else None
    rival = _rival(path, interpreter, settings) if settings.rival else None
    if settings.page is not None and profile is not None:
        write_file(settings.page, html_page(path, figures, profile).encode())
        notes().print(f"page: {settings.page}")
    if as_json:
        print_json(_document(path, settings, figures, profile, rival))
        return
    out().print(_table(path, figures, rival, settings.rival))
    if profile is not None and settings.by_operator:
        print_profile(profile, [s.name or "" for s in model.subgraphs])


def _timed(invoke: Callable[[], Any], runs: int) -> list[float]:
    times = []
    for _ in track(range(runs), "running", console=notes(), transient=True, disable=not notes().is_terminal):
        start = time.perf_counter()
        invoke()
        times.append(time.perf_counter() - start)
    return times


def _figures(times: Sequence[float]) -> dict[str, float]:
    """Seconds of runs, in the order they were taken."""
    return {
        "invoke_first": times[0], "invoke_median": float(np.median(times)), "invoke_average": float(np.mean(times)),
        "invoke_fastest": min(times), "invoke_slowest": max(times), "invoke_deviation": float(np.std(times)),
        "invoke_95_percent": float(np.percentile(times, 95)),
    }  # fmt: skip


_SCRIPT = """
import importlib, json, sys, time
import numpy as np
module, model, threads, warmups, runs, inputs, loads = json.loads(sys.argv[1])
peer = importlib.import_module(module)
seconds = {"load": [], "allocate": [], "runs": []}
for _ in range(loads):
    start = time.perf_counter()
    interpreter = peer.Interpreter(model_path=model, num_threads=threads)
    middle = time.perf_counter()
    interpreter.allocate_tensors()
    seconds["load"].append(middle - start)
    seconds["allocate"].append(time.perf_counter() - middle)
values = [np.load(file, allow_pickle=True) for file in inputs]
details = interpreter.get_input_details()
for detail, value in zip(details, values):
    if list(detail["shape"]) != list(value.shape):
        interpreter.resize_tensor_input(detail["index"], value.shape)
interpreter.allocate_tensors()
for detail, value in zip(details, values):
    interpreter.set_tensor(detail["index"], value)
for i in range(warmups + runs):
    start = time.perf_counter()
    interpreter.invoke()
    if i >= warmups:
        seconds["runs"].append(time.perf_counter() - start)
print(json.dumps(seconds))
"""


def _rival(path: str, interpreter: lite.Interpreter, settings: Settings) -> dict[str, float]:
    """The same figures of another interpreter, on the same inputs, in a process of its own. Raises BadFile."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for i, detail in enumerate(interpreter.get_input_details()):
            files.append(str(Path(folder) / f"{i}.npy"))
            np.save(files[-1], interpreter.get_tensor(detail["index"]))
        asked = [RIVALS[settings.rival or ""], path, settings.threads, settings.warmups, settings.runs, files, LOADS]
        done = subprocess.run([sys.executable, "-c", _SCRIPT, json.dumps(asked)], capture_output=True, text=True,
                              check=False)  # fmt: skip
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"]
        advice = "; pip install ai-edge-litert" if "ModuleNotFoundError" in said[-1] else ""
        raise BadFile(f"{path}: {settings.rival} cannot run it: {said[-1]}{advice}")
    seconds = json.loads(done.stdout.strip().splitlines()[-1])
    return {"load": float(np.median(seconds["load"])), "allocate": float(np.median(seconds["allocate"])),
            **_figures(seconds["runs"])}  # fmt: skip


def _document(path: str, settings: Settings, figures: dict[str, float], profile: Any, rival: Any) -> dict[str, Any]:
    found = {"file": path, "runs": settings.runs, "threads": settings.threads, "seconds": figures,
             "bytes": {}, "nodes": [], "operators": [], "subgraphs": {}}  # fmt: skip
    if profile is not None:
        found |= {"bytes": profile.footprint._asdict(), "nodes": list(profile), "operators": profile.operators()}
        found["subgraphs"] = {i: {"nodes": rows, "operators": profile.operators(i)}
                              for i, rows in profile.called.items()}  # fmt: skip
    if rival is not None:
        found[settings.rival or ""] = rival
    return found


def _table(path: str, figures: dict[str, float], rival: dict[str, float] | None, name: str | None) -> Table:
    table = Table("", "time", *([str(name), f"{name} / ours"] if rival else []), title=path)
    for label, seconds in figures.items():
        cells = [] if rival is None else [f"{rival[label] * 1e6:.1f} us", f"{rival[label] / seconds:.2f}"]
        table.add_row(label.replace("_", " "), f"{seconds * 1e6:.1f} us", *cells)
    return table
