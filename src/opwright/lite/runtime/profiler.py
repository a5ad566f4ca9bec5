"""Profiling: execution time and memory of a model's nodes.

Lives here: `Profile`, `profile`; `observed`.  Not here: when and on which thread nodes ran (timeline.py), tables for
people (tools/profiles.py), running nodes (subgraph.py).

Observers of all subgraphs measure the time, including subgraphs that nodes call. Memory is traced in one more run, as
tracing slows down everything.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...core.notebook_reprs import shown_as
from ..delegate import DelegateFlags
from .memory import Footprint, subgraph_memory
from .node import Node
from .subgraph import Subgraph

Row = dict[str, Any]
Key = tuple[int, int]  # subgraph and number of a node


class Profile(list[Row]):
    """A list of rows (dicts), one for each node of the main subgraph, in execution order.

    subgraph, node: numbers. operator: name. custom: whether it is a custom operator. version: in the file. name: of the
    outputs. calls: number of calls in all runs. first, average, seconds (the median), fastest, slowest: seconds per
    run, summed over its calls. share, cumulative: of the average of all rows of the subgraph, 0 to 1. bytes: of the
    outputs. memory: the peak number of bytes that the node allocated in addition to the arena (None if not measured). A
    delegate's node is the operator DELEGATE with two more keys: `delegate`, its name, and `nodes`, the nodes it
    replaces.

    runs: their number. called: the rows of each other subgraph that ran, by index. footprint: bytes of the model's
    arenas, of tensors with memory of their own, of mapped and of copied constants.
    """

    def __init__(self, runs: int, rows: Sequence[Row], called: dict[int, list[Row]], footprint: Footprint) -> None:
        super().__init__(rows)
        self.runs, self.called, self.footprint = runs, called, footprint

    _repr_html_ = shown_as("profile")

    def operators(self, subgraph: int = 0) -> list[Row]:
        """Return a row for each operator of a subgraph, the slowest first.

        operator, custom, version (of a custom operator; None for a builtin one), count (of nodes), calls, average,
        seconds and fastest (of a run: sums of the nodes' averages, medians and minima), share, cumulative, memory (the
        maximum over nodes).
        """
        by_operator: dict[Any, Row] = {}
        for row in self if subgraph == 0 else self.called[subgraph]:
            version = row["version"] if row["custom"] else None
            kind = by_operator.setdefault(
                (row["operator"], row["custom"], version),
                {
                    "operator": row["operator"],
                    "custom": row["custom"],
                    "version": version,
                    "count": 0,
                    "calls": 0,
                    "average": 0.0,
                    "seconds": 0.0,
                    "fastest": 0.0,
                    "memory": row["memory"],
                },
            )
            kind["count"] += 1
            kind["calls"] += row["calls"]
            for figure in ("average", "seconds", "fastest"):
                kind[figure] += row[figure]
            kind["memory"] = None if row["memory"] is None else max(kind["memory"], row["memory"])
        return _with_shares(sorted(by_operator.values(), key=lambda row: -row["average"]))


def _with_shares(rows: list[Row]) -> list[Row]:
    """Add share and cumulative to the rows."""
    total = sum(row["average"] for row in rows) or 1.0
    so_far = 0.0
    for row in rows:
        so_far += row["average"]
        row["share"], row["cumulative"] = row["average"] / total, so_far / total
    return rows


def profile(family: Sequence[Subgraph], runs: int, memory: bool) -> Profile:
    """Invoke the main subgraph `runs` times, and once more to trace memory.

    raises RuntimeError (errors.OpError, too) as invoke does
    """
    main = family[0]
    if not main.ready:
        main.invoke()  # raises
    timing = _TimingObserver()
    events: list[list[dict[int, float]]] = []  # by run and subgraph
    with observed(family, timing):
        for _ in range(runs):
            times: list[dict[int, float]] = [{} for _ in family]
            for subgraph, of_one in zip(family, times):
                subgraph.context.events = of_one
            timing.begin()
            try:
                main.invoke()
                events.append(times)
            finally:
                for subgraph in family:
                    subgraph.context.events = None
    memory_observer = _MemoryObserver() if memory else None
    if memory_observer is not None:
        with observed(family, memory_observer), memory_observer.tracing():
            main.invoke()
    rows = [_rows(subgraph, timing, memory_observer, [run[i] for run in events]) for i, subgraph in enumerate(family)]
    footprint = Footprint(*map(sum, zip(*(subgraph_memory(subgraph) for subgraph in family))))
    return Profile(
        runs, rows[0], {i: subgraph_rows for i, subgraph_rows in enumerate(rows) if i and subgraph_rows}, footprint
    )


@contextmanager
def observed(family: Sequence[Subgraph], observer: Any) -> Iterator[None]:
    """Set the observer of every subgraph within the block."""
    before = [subgraph.observer for subgraph in family]
    try:
        for subgraph in family:
            subgraph.observe(observer)
        yield
    finally:
        for subgraph, was in zip(family, before):
            subgraph.observe(was)


class _TimingObserver:
    """Observer of execution times: for each run the seconds of each node, and its number of calls."""

    def __init__(self) -> None:
        self.seconds: list[dict[Key, float]] = []
        self.calls: dict[Key, int] = {}
        self._started: list[float] = []

    def begin(self) -> None:
        self.seconds.append({})
        self._started.clear()

    def __call__(self, node: Node, after: bool, clock: Any = time.perf_counter) -> None:
        if not after:
            self._started.append(clock())
            return
        took = clock() - self._started.pop()
        key = node.subgraph.index, node.number
        run = self.seconds[-1]
        run[key] = run.get(key, 0.0) + took
        self.calls[key] = self.calls.get(key, 0) + 1


class _MemoryObserver:
    """Observer of allocations: the peak number of bytes of each node, including nodes that it calls."""

    def __init__(self) -> None:
        self.bytes: dict[Key, int] = {}
        self._open: list[tuple[int, int]] = []  # of running nodes: bytes before, peak so far

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Trace allocations of NumPy and Python within the block, unless tracing is already on."""
        mine = not tracemalloc.is_tracing()
        if mine:
            tracemalloc.start(1)
        try:
            yield
        finally:
            if mine:
                tracemalloc.stop()

    def __call__(self, node: Node, after: bool) -> None:
        now, peak = tracemalloc.get_traced_memory()
        if self._open:  # the peak since the last event belongs to the running nodes
            self._open = [(before, max(most, peak)) for before, most in self._open]
        if not after:
            self._open.append((now, now))
        else:
            before, most = self._open.pop()
            key = node.subgraph.index, node.number
            self.bytes[key] = max(self.bytes.get(key, 0), most - before)
        tracemalloc.reset_peak()


def _rows(
    subgraph: Subgraph,
    timing: _TimingObserver,
    memory_observer: _MemoryObserver | None,
    events: Sequence[dict[int, float]],
) -> list[Row]:
    """Return the rows of one subgraph. A delegate whose kernels time operators has rows for these instead."""
    rows = []
    for node in subgraph.execution_plan:
        key = subgraph.index, node.number
        times = [run.get(key, 0.0) for run in timing.seconds]
        if key not in timing.calls:
            continue
        row = _row(node, times, timing.calls[key]) | {
            "memory": None if memory_observer is None else memory_observer.bytes.get(key, 0)
        }
        delegate = node.delegate
        if delegate is None:
            rows.append(row)
            continue
        reports_operators = delegate.flags & DelegateFlags.PER_OPERATOR_PROFILING
        inside = [n for n in node.replaced if reports_operators and any(n.number in run for run in events)]
        for n in inside:
            took = [run[n.number] for run in events if n.number in run]
            rows.append(
                _row(n, took, timing.calls[key])
                | {"memory": None if memory_observer is None else 0, "delegate": delegate.name}
            )
        if not inside:
            row |= {"operator": "DELEGATE", "delegate": delegate.name, "nodes": [n.number for n in node.replaced]}
            rows.append(row)
    return _with_shares(rows)


def _row(node: Node, times: Sequence[float], calls: int) -> Row:
    return {
        "subgraph": node.subgraph.index,
        "node": node.number,
        "operator": node.name,
        "custom": isinstance(node.options, bytes),
        "version": node.version,
        "name": ";".join(t.name for t in node.tensors_out),
        "calls": calls,
        "first": times[0],
        "average": float(np.mean(times)),
        "seconds": float(np.median(times)),
        "fastest": min(times),
        "slowest": max(times),
        "bytes": sum(t.nbytes for t in node.tensors_out),
    }
