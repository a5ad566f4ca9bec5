"""`opwright bench`: time loading and running a model file, its nodes, and other interpreters with `--vs`.

Lives here: measuring, the figures; other interpreters on the same inputs, in separate processes, with errors for models
that they cannot run.
Not here: the tables of nodes and operators (profiles.py), the page (bench_report.py), inputs (model_runner.py), timing
nodes (lite/runtime/profiler.py).

The official interpreter is tried first. From Python it accepts only its own custom operators; if it
lacks one, the run time's CompiledModel is tried, with the kernels that run here registered (lite/litert).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.progress import track
from rich.table import Table

from .. import lite
from ..lite.format.runtime_requirements import requirements
from .inspection import read_model
from .model_runner import feed, operators_for
from .profiles import print_profile
from .report import BadFile, notes, out, print_json, write_file

BASELINES = {"litert": "ai_edge_litert.interpreter"}
"""The modules of other interpreters, imported in a separate process if installed."""

_INTERPRETER = """
import importlib, json, sys, time
import numpy as np
asked = json.loads(sys.argv[1])
peer = importlib.import_module(asked["module"])
seconds = {"load": [], "allocate": [], "runs": []}
for _ in range(asked["loads"]):
    start = time.perf_counter()
    interpreter = peer.Interpreter(model_path=asked["model"], num_threads=asked["threads"])
    middle = time.perf_counter()
    interpreter.allocate_tensors()
    seconds["load"].append(middle - start)
    seconds["allocate"].append(time.perf_counter() - middle)
values = [np.load(file, allow_pickle=True) for file in asked["inputs"]]
details = interpreter.get_input_details()
for detail, value in zip(details, values):
    if list(detail["shape"]) != list(value.shape):
        interpreter.resize_tensor_input(detail["index"], value.shape)
interpreter.allocate_tensors()
for detail, value in zip(details, values):
    interpreter.set_tensor(detail["index"], value)
for i in range(asked["warmups"] + asked["runs"]):
    start = time.perf_counter()
    interpreter.invoke()
    if i >= asked["warmups"]:
        seconds["runs"].append(time.perf_counter() - start)
print(json.dumps(seconds))
"""

_COMPILED_MODEL = """
import json, sys, time
import numpy as np
from opwright.lite import Model
from opwright.lite.litert import CompiledModel
from opwright.tools.model_runner import operators_for
asked = json.loads(sys.argv[1])
custom_ops = operators_for(Model.read(asked["model"]), asked["customs"])
seconds = {"load": [], "allocate": [], "runs": []}
values = [np.load(file, allow_pickle=True) for file in asked["inputs"]]
for _ in range(asked["loads"]):
    start = time.perf_counter()
    model = CompiledModel(asked["model"], custom_ops, num_threads=asked["threads"])
    middle = time.perf_counter()
    for i, value in enumerate(values):
        if value.shape != tuple(model.get_input_details(asked["signature"])[i]["shape"]):
            model.resize_input_tensor(i, value.shape, 0, False)
    outputs = model.create_output_buffers(0)
    seconds["load"].append(middle - start)
    seconds["allocate"].append(time.perf_counter() - middle)
inputs = model.create_input_buffers(0)
for buffer, value in zip(inputs, values):
    buffer.write(value)
for i in range(asked["warmups"] + asked["runs"]):
    start = time.perf_counter()
    model.run_by_index(0, inputs, outputs)
    if i >= asked["warmups"]:
        seconds["runs"].append(time.perf_counter() - start)
print(json.dumps(seconds | {"native": model.native_nodes}))
"""


@dataclass(frozen=True)
class BaselineTimes:
    """A baseline's times: seconds of each load, allocation and run; how: the interface used."""

    load: Sequence[float]
    allocate: Sequence[float]
    runs: Sequence[float]
    how: str


def time_baseline(
    baseline: str,
    path: str,
    model: Any,
    interpreter: Any,
    *,
    threads: int,
    warmups: int,
    runs: int,
    loads: int,
    customs: Sequence[str],
) -> BaselineTimes:
    """Time a baseline on the inputs that our interpreter has. customs: as for `custom_operators`.

    raises BadFile if it is not installed or cannot run the model, with the operators that it lacks
    """
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for i, detail in enumerate(interpreter.get_input_details()):
            files.append(str(Path(folder) / f"{i}.npy"))
            np.save(files[-1], interpreter.get_tensor(detail["index"]))
        request = {
            "module": BASELINES[baseline],
            "model": path,
            "threads": threads,
            "warmups": warmups,
            "runs": runs,
            "inputs": files,
            "loads": loads,
            "customs": list(customs),
            "signature": _signature(model),
        }
        times, message = _run_script(_INTERPRETER, request)
        missing = [n.operator for n in requirements(model) if n.custom and n.operator in message]
        if times is None and missing:
            names = ", ".join(dict.fromkeys(missing))
            times, message = _run_script(_COMPILED_MODEL, request)
            if times is None:
                raise BadFile(f"{path}: {baseline} has no custom operator {names}, and cannot be given it: {message}")
            is_native = times["native"].values()
            how = f"CompiledModel, given {names}: {sum(is_native)} of {len(is_native)} nodes as native code"
            return BaselineTimes(times["load"], times["allocate"], times["runs"], how)
    if times is None:
        advice = "; pip install ai-edge-litert" if "ModuleNotFoundError" in message else ""
        raise BadFile(f"{path}: {baseline} cannot run it: {message}{advice}")
    return BaselineTimes(times["load"], times["allocate"], times["runs"], "Interpreter")


def _signature(model: Any) -> str | None:
    keys = [s.signature_key for s in model.signature_defs or () if s.subgraph_index == 0]
    return keys[0] if keys else None


def _run_script(script: str, request: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return the result of a script; None and its error message if it failed."""
    command = [sys.executable, "-c", script, json.dumps(request)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        return None, _last_error(process.stderr) or f"it ended with status {process.returncode}"
    return json.loads(process.stdout.strip().splitlines()[-1]), ""


def _last_error(stderr: str) -> str:
    """Return the error at the end of a traceback, on one line."""
    lines = stderr.strip().splitlines()
    starts = [i for i, line in enumerate(lines) if line and not line[0].isspace() and "Error" in line.split(":")[0]]
    return " ".join(" ".join(lines[starts[-1] if starts else -1 :]).split())


LOADS = 5
MAX_COMPILATION_WAITS = 8  # a partition that cannot be compiled is planned again, so waits are bounded


@dataclass(frozen=True)
class Settings:
    """The options of the command. inputs, shapes: as for `feed`; baseline: another interpreter to time; page,
    trace: files to write; customs: as for
    `custom_operators`.
    """

    runs: int = 200
    warmup: int | None = None
    threads: int = 1
    by_operator: bool = False
    baseline: str | None = None
    page: str | None = None
    trace: str | None = None
    inputs: Sequence[str] = ()
    shapes: Sequence[str] = ()
    seed: int = 0
    customs: Sequence[str] = ()

    @property
    def warmups(self) -> int:
        """The number of runs before the timed ones: by default a twentieth of them, at least 3."""
        return max(3, self.runs // 20) if self.warmup is None else self.warmup


class ModelTimes(NamedTuple):
    """A measured model: its interpreter, the medians and other statistics of its seconds by name, those of each run."""

    model: Any
    interpreter: lite.Interpreter
    figures: dict[str, float]
    runs: list[float]


def measure_model(path: str, settings: Settings) -> ModelTimes:
    """Time loading, allocation and runs. Raises BadFile."""
    model = read_model(path)  # reports an invalid file
    custom_ops = operators_for(model, settings.customs)
    loads, allocations = [], []
    while True:
        start = time.perf_counter()
        interpreter = lite.Interpreter(model_path=path, num_threads=settings.threads, custom_ops=custom_ops)
        middle = time.perf_counter()
        interpreter.allocate_tensors()
        loads.append(middle - start)
        allocations.append(time.perf_counter() - middle)
        if len(loads) == LOADS:
            break
    feed(interpreter, model, settings.inputs, settings.seed, settings.shapes)
    _wait_for_compilation(interpreter)
    for _ in range(settings.warmups):
        interpreter.invoke()
    times = _measure(interpreter.invoke, settings.runs)
    figures = {"load": float(np.median(loads)), "allocate": float(np.median(allocations)), **_figures(times)}
    return ModelTimes(model, interpreter, figures, times)


def bench_model(path: str, settings: Settings, as_json: bool) -> None:
    """Time loading, allocation and runs; print the figures, and write the page if requested. Raises BadFile."""
    measured = measure_model(path, settings)
    model, interpreter, figures, _ = measured
    needs_profile = settings.by_operator or settings.page is not None
    profile = interpreter.profile(max(10, settings.runs // 10), memory=True) if needs_profile else None
    baseline, how, others = (
        _baseline_figures(path, model, interpreter, settings) if settings.baseline else (None, "", [])
    )
    if settings.page is not None or settings.trace is not None:
        _write_pictures(path, settings, measured, profile, (baseline, how, others))
    if as_json:
        print_json(_document(path, settings, figures, profile, baseline, how))
        return
    out().print(_table(path, figures, baseline, settings.baseline))
    if how:
        notes().print(f"{settings.baseline}: {how}")
    if profile is not None and settings.by_operator:
        print_profile(profile, [s.name or "" for s in model.subgraphs])


def _write_pictures(path: str, settings: Settings, measured: ModelTimes, profile: Any, baseline: Any) -> None:
    """Record a timeline; write the page and the trace that are asked for. Raises BadFile."""
    from .bench_report import BenchReport, html_page, values_alive
    from .diagnostics import machine_facts
    from .trace_file import trace_document

    timeline = measured.interpreter.timeline()
    alive = values_alive(measured.model, timeline)
    facts = [
        ("measured", time.strftime("%Y-%m-%d %H:%M:%S %z")),
        ("bytes of the file", str(Path(path).stat().st_size)),
        ("runs, after as many warm-ups", f"{settings.runs}, {settings.warmups}"),
        ("threads", str(settings.threads)),
        *machine_facts(),
    ]
    if settings.page is not None:
        figures, how, runs = baseline
        report = BenchReport(
            path,
            measured.figures,
            measured.runs,
            profile,
            timeline,
            alive,
            facts,
            settings.baseline or "",
            how,
            figures,
            runs,
        )
        write_file(settings.page, html_page(report).encode())
        notes().print(f"page: {settings.page}")
    if settings.trace is not None:
        document = trace_document(path, timeline, alive, dict(facts))
        write_file(settings.trace, json.dumps(document, allow_nan=False).encode())
        notes().print(f"trace: {settings.trace}")


def _wait_for_compilation(interpreter: lite.Interpreter) -> None:
    """Run until background compilation has finished, to time the steady state."""
    for _ in range(MAX_COMPILATION_WAITS):
        interpreter.invoke()
        compiling = [t for t in threading.enumerate() if t.name == "opwright-compiler"]
        if not compiling:
            return
        for thread in compiling:
            thread.join()


def _measure(invoke: Callable[[], Any], runs: int) -> list[float]:
    times = []
    for _ in track(range(runs), "running", console=notes(), transient=True, disable=not notes().is_terminal):
        start = time.perf_counter()
        invoke()
        times.append(time.perf_counter() - start)
    return times


def _figures(times: Sequence[float]) -> dict[str, float]:
    """Return statistics of the runs' seconds, in the order of the runs."""
    return {
        "invoke_first": times[0],
        "invoke_median": float(np.median(times)),
        "invoke_average": float(np.mean(times)),
        "invoke_fastest": min(times),
        "invoke_slowest": max(times),
        "invoke_deviation": float(np.std(times)),
        "invoke_95_percent": float(np.percentile(times, 95)),
    }


def _baseline_figures(
    path: str, model: Any, interpreter: lite.Interpreter, settings: Settings
) -> tuple[dict[str, float], str, Sequence[float]]:
    """Return the same figures of another interpreter on the same inputs, its interface, and the seconds of its runs.

    raises BadFile
    """
    times = time_baseline(
        settings.baseline or "",
        path,
        model,
        interpreter,
        threads=settings.threads,
        warmups=settings.warmups,
        runs=settings.runs,
        loads=LOADS,
        customs=settings.customs,
    )
    figures = {
        "load": float(np.median(times.load)),
        "allocate": float(np.median(times.allocate)),
        **_figures(times.runs),
    }
    return figures, times.how, times.runs


def _document(
    path: str, settings: Settings, figures: dict[str, float], profile: Any, baseline: Any, how: str
) -> dict[str, Any]:
    """Return the figures as one JSON document."""
    document = {
        "file": path,
        "runs": settings.runs,
        "threads": settings.threads,
        "seconds": figures,
        "bytes": {},
        "nodes": [],
        "operators": [],
        "subgraphs": {},
    }
    if profile is not None:
        document |= {"bytes": profile.footprint._asdict(), "nodes": list(profile), "operators": profile.operators()}
        document["subgraphs"] = {
            i: {"nodes": rows, "operators": profile.operators(i)} for i, rows in profile.called.items()
        }
    if baseline is not None:
        document[settings.baseline or ""] = baseline
        document["vs"] = {"name": settings.baseline, "by": how}
    return document


def _table(path: str, figures: dict[str, float], baseline: dict[str, float] | None, name: str | None) -> Table:
    table = Table("", "time", *([str(name), f"{name} / ours"] if baseline else []), title=path)
    for label, seconds in figures.items():
        cells = [] if baseline is None else [f"{baseline[label] * 1e6:.1f} us", f"{baseline[label] / seconds:.2f}"]
        table.add_row(label.replace("_", " "), f"{seconds * 1e6:.1f} us", *cells)
    return table
