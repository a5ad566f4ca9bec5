"""`opwright bench`: time loading and running a model file, and its nodes.

Lives here: measuring, and the figures.  Not here: the tables of nodes and operators (profiles.py), inputs
(model_runner.py), other interpreters (baselines.py), timing nodes (lite/runtime/profiling.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.progress import track
from rich.table import Table

from .. import lite
from .baselines import time_baseline
from .custom_arguments import operators_for
from .inspection import read_model
from .model_runner import feed
from .profiles import html_page, print_profile
from .report import notes, out, print_json, write_file

LOADS = 5
MAX_COMPILATION_WAITS = 8  # a partition that cannot be compiled is planned again, so waits are bounded


@dataclass(frozen=True)
class Settings:
    """The options of the command. inputs, shapes: as for `feed`; baseline: another interpreter to time; customs: as for
    `custom_operators`.
    """

    runs: int = 200
    warmup: int | None = None
    threads: int = 1
    by_operator: bool = False
    baseline: str | None = None
    page: str | None = None
    inputs: Sequence[str] = ()
    shapes: Sequence[str] = ()
    seed: int = 0
    customs: Sequence[str] = ()

    @property
    def warmups(self) -> int:
        """The number of runs before the timed ones: by default a twentieth of them, at least 3."""
        return max(3, self.runs // 20) if self.warmup is None else self.warmup


def bench_model(path: str, settings: Settings, as_json: bool) -> None:
    """Time loading, allocation and runs; print the figures, and write the page if requested. Raises BadFile."""
    model = read_model(path)  # reports an invalid file
    custom_ops = operators_for(model, settings.customs)
    loads, allocations = [], []
    for _ in range(LOADS):
        start = time.perf_counter()
        interpreter = lite.Interpreter(model_path=path, num_threads=settings.threads, custom_ops=custom_ops)
        middle = time.perf_counter()
        interpreter.allocate_tensors()
        loads.append(middle - start)
        allocations.append(time.perf_counter() - middle)
    feed(interpreter, model, settings.inputs, settings.seed, settings.shapes)
    _wait_for_compilation(interpreter)
    for _ in range(settings.warmups):
        interpreter.invoke()
    times = _measure(interpreter.invoke, settings.runs)
    figures = {"load": float(np.median(loads)), "allocate": float(np.median(allocations)), **_figures(times)}
    needs_profile = settings.by_operator or settings.page is not None
    profile = interpreter.profile(max(10, settings.runs // 10), memory=True) if needs_profile else None
    baseline, how = _baseline_figures(path, model, interpreter, settings) if settings.baseline else (None, "")
    if settings.page is not None and profile is not None:
        write_file(settings.page, html_page(path, figures, profile).encode())
        notes().print(f"page: {settings.page}")
    if as_json:
        print_json(_document(path, settings, figures, profile, baseline, how))
        return
    out().print(_table(path, figures, baseline, settings.baseline))
    if how:
        notes().print(f"{settings.baseline}: {how}")
    if profile is not None and settings.by_operator:
        print_profile(profile, [s.name or "" for s in model.subgraphs])


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
) -> tuple[dict[str, float], str]:
    """Return the same figures of another interpreter on the same inputs, and its interface. Raises BadFile."""
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
    return figures, times.how


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
