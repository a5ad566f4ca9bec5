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
from .baselines import timed
from .custom_arguments import operators_for
from .inspection import read_model
from .model_runner import feed
from .profiles import html_page, print_profile
from .report import notes, out, print_json, write_file

LOADS = 5
COMPILATIONS = 8  # at most so many waits: what cannot be compiled is planned anew without it


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
    _settle(interpreter)
    for _ in range(settings.warmups):
        interpreter.invoke()
    times = _timed(interpreter.invoke, settings.runs)
    figures = {"load": float(np.median(loads)), "allocate": float(np.median(allocations)), **_figures(times)}
    wanted = settings.by_operator or settings.page is not None
    profile = interpreter.profile(max(10, settings.runs // 10), memory=True) if wanted else None
    rival, how = _rival(path, model, interpreter, settings) if settings.rival else (None, "")
    if settings.page is not None and profile is not None:
        write_file(settings.page, html_page(path, figures, profile).encode())
        notes().print(f"page: {settings.page}")
    if as_json:
        print_json(_document(path, settings, figures, profile, rival, how))
        return
    out().print(_table(path, figures, rival, settings.rival))
    if how:
        notes().print(f"{settings.rival}: {how}")
    if profile is not None and settings.by_operator:
        print_profile(profile, [s.name or "" for s in model.subgraphs])


def _settle(interpreter: lite.Interpreter) -> None:
    """Run it until nothing is compiled for it in the background any more: what is timed is a model in use, and not how
    far the compiler happened to be."""
    for _ in range(COMPILATIONS):
        interpreter.invoke()
        compiling = [t for t in threading.enumerate() if t.name == "opwright-compiler"]
        if not compiling:
            return
        for thread in compiling:
            thread.join()


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
        "invoke_first": times[0],
        "invoke_median": float(np.median(times)),
        "invoke_average": float(np.mean(times)),
        "invoke_fastest": min(times),
        "invoke_slowest": max(times),
        "invoke_deviation": float(np.std(times)),
        "invoke_95_percent": float(np.percentile(times, 95)),
    }


def _rival(path: str, model: Any, interpreter: lite.Interpreter, settings: Settings) -> tuple[dict[str, float], str]:
    """The same figures of another interpreter, on the same inputs, and by which interface of it. Raises BadFile."""
    found = timed(
        settings.rival or "",
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
        "load": float(np.median(found.load)),
        "allocate": float(np.median(found.allocate)),
        **_figures(found.runs),
    }
    return figures, found.how


def _document(
    path: str, settings: Settings, figures: dict[str, float], profile: Any, rival: Any, how: str
) -> dict[str, Any]:
    """As one JSON document."""
    found = {
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
        found |= {"bytes": profile.footprint._asdict(), "nodes": list(profile), "operators": profile.operators()}
        found["subgraphs"] = {
            i: {"nodes": rows, "operators": profile.operators(i)} for i, rows in profile.called.items()
        }
    if rival is not None:
        found[settings.rival or ""] = rival
        found["vs"] = {"name": settings.rival, "by": how}
    return found


def _table(path: str, figures: dict[str, float], rival: dict[str, float] | None, name: str | None) -> Table:
    table = Table("", "time", *([str(name), f"{name} / ours"] if rival else []), title=path)
    for label, seconds in figures.items():
        cells = [] if rival is None else [f"{rival[label] * 1e6:.1f} us", f"{rival[label] / seconds:.2f}"]
        table.add_row(label.replace("_", " "), f"{seconds * 1e6:.1f} us", *cells)
    return table
