"""Timing the nodes of a subgraph.

Lives here: `profile_rows`.  Not here: what runs them (subgraph.py).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..delegate import DelegateFlags
from .subgraph import Subgraph


def profile_rows(subgraph: Subgraph, runs: int) -> list[dict[str, Any]]:
    """Invoke so many times; of each node its number, its operator and the median of its seconds.

    A delegate's node is DELEGATE, with the delegate's name and the nodes it stands for. Where the delegate says that
    its kernels time operators themselves, these are there instead, if any were reported.
    """
    times, events = _timed(subgraph, runs)
    rows: list[dict[str, Any]] = []
    for node, seconds in zip(subgraph.execution_plan, zip(*times)):
        delegate = node.delegate
        row: dict[str, Any] = {"node": node.number, "operator": node.name, "seconds": float(np.median(seconds))}
        if delegate is None:
            rows.append(row)
            continue
        told = delegate.flags & DelegateFlags.PER_OPERATOR_PROFILING
        inside = [n for n in node.replaced if told and any(n.number in run for run in events)]
        for n in inside:
            took = [run[n.number] for run in events if n.number in run]
            rows.append({"node": n.number, "operator": n.name, "seconds": float(np.median(took)),
                         "delegate": delegate.name})  # fmt: skip
        if not inside:
            row |= {"operator": "DELEGATE", "delegate": delegate.name, "nodes": [n.number for n in node.replaced]}
            rows.append(row)
    return rows


def _timed(subgraph: Subgraph, runs: int) -> tuple[list[list[float]], list[dict[int, float]]]:
    """Of each run the seconds of each node of the plan, and those that delegates' kernels reported, by node."""
    marks: list[float] = []
    clock = time.perf_counter

    def timed(step: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            step()
            marks.append(clock())

        return run

    plain, taken = subgraph.steps, []
    events: list[dict[int, float]] = []
    subgraph.steps = [timed(step) for step in plain]
    try:
        for _ in range(runs):
            found: dict[int, float] = {}
            subgraph.context.events = found
            marks[:] = [clock()]
            subgraph.invoke()
            taken.append([end - start for start, end in itertools.pairwise(marks)])
            events.append(found)
    finally:
        subgraph.steps = plain
        subgraph.context.events = None
    return taken, events
