"""Timing the nodes of a model, and what memory they take.

Lives here: `Profile`, `profile`.  Not here: the tables that people read (tools/profiles.py), what runs the nodes.

Nodes are timed by observers of all subgraphs, those that other nodes run included; memory is traced in one more run,
since tracing slows everything down.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..delegate import DelegateFlags
from .memory import Footprint, subgraph_memory
from .node import Node
from .subgraph import Subgraph

Row = dict[str, Any]
Key = tuple[int, int]  # of a node: its subgraph and its number


class Profile(list[Row]):
    """A row for each node of the main subgraph, in the order they run; it is a list of dicts.

    subgraph, node: numbers; operator: name; custom: whether it is a custom one; version: in the file; name: of the
    outputs; calls: how often it ran in all runs; first, average, seconds (the median), fastest, slowest: seconds a run,
    of all its calls in it; share, cumulative: of the average of all rows of the subgraph, 0 to 1; bytes: of the
    outputs; memory: the greatest number of bytes that the node had allocated at a time, beside the arena (None where it
    was not asked for). A delegate's node is the operator DELEGATE and has `delegate`, its name, and `nodes`, those it
    stands for.

    runs: how many; called: the rows of each other subgraph that ran, by its index; footprint: bytes of the model's
    arenas, of tensors with memory of their own, of constants in the file's memory and of those that are copies.
    """

    def __init__(self, runs: int, rows: Sequence[Row], called: dict[int, list[Row]], footprint: Footprint) -> None:
        super().__init__(rows)
        self.runs, self.called, self.footprint = runs, called, footprint

    def operators(self, subgraph: int = 0) -> list[Row]:
        """A row for each operator of a subgraph, the slowest first: operator, custom, version (of a custom one, each
        by itself; None of a builtin one), count (of nodes), calls, average, seconds and fastest (of a run: the sums of
        its nodes' averages, medians and least), share, cumulative, memory (the greatest of a node)."""
        found: dict[Any, Row] = {}
        for row in self if subgraph == 0 else self.called[subgraph]:
            version = row["version"] if row["custom"] else None
            kind = found.setdefault(
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
        return _with_shares(sorted(found.values(), key=lambda row: -row["average"]))


def _with_shares(rows: list[Row]) -> list[Row]:
    """The rows with share and cumulative."""
    total = sum(row["average"] for row in rows) or 1.0
    so_far = 0.0
    for row in rows:
        so_far += row["average"]
        row["share"], row["cumulative"] = row["average"] / total, so_far / total
    return rows


def profile(family: Sequence[Subgraph], runs: int, memory: bool) -> Profile:
    """Invoke the first of the model's subgraphs so many times, and once more where memory is asked for.

    raises RuntimeError (errors.OpError, too) as invoke does
    """
    main = family[0]
    if not main.ready:
        main.invoke()  # raises
    watch = _TimingObserver()
    events: list[list[dict[int, float]]] = []  # by run and subgraph
    with _observed(family, watch):
        for _ in range(runs):
            told: list[dict[int, float]] = [{} for _ in family]
            for subgraph, of_one in zip(family, told):
                subgraph.context.events = of_one
            watch.begin()
            try:
                main.invoke()
                events.append(told)
            finally:
                for subgraph in family:
                    subgraph.context.events = None
    taken = _MemoryObserver() if memory else None
    if taken is not None:
        with _observed(family, taken), taken.tracing():
            main.invoke()
    rows = [_rows(subgraph, watch, taken, [run[i] for run in events]) for i, subgraph in enumerate(family)]
    footprint = Footprint(*map(sum, zip(*(subgraph_memory(subgraph) for subgraph in family))))
    return Profile(runs, rows[0], {i: found for i, found in enumerate(rows) if i and found}, footprint)


@contextmanager
def _observed(family: Sequence[Subgraph], observer: Any) -> Iterator[None]:
    """Every node tells the observer."""
    before = [subgraph.observer for subgraph in family]
    try:
        for subgraph in family:
            subgraph.observe(observer)
        yield
    finally:
        for subgraph, was in zip(family, before):
            subgraph.observe(was)


class _TimingObserver:
    """An observer: of each run the seconds of each node, and how often it was called."""

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
    """An observer: the greatest number of bytes each node had allocated at a time, of its own and of what it ran."""

    def __init__(self) -> None:
        self.bytes: dict[Key, int] = {}
        self._open: list[tuple[int, int]] = []  # of nodes that run: what there was before; the most inside, so far

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Traces what NumPy and Python allocate, unless somebody does so already."""
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
        if self._open:  # what peaked since the last event belongs to the nodes that are open
            self._open = [(before, max(most, peak)) for before, most in self._open]
        if not after:
            self._open.append((now, now))
        else:
            before, most = self._open.pop()
            key = node.subgraph.index, node.number
            self.bytes[key] = max(self.bytes.get(key, 0), most - before)
        tracemalloc.reset_peak()


def _rows(
    subgraph: Subgraph, watch: _TimingObserver, taken: _MemoryObserver | None, events: Sequence[dict[int, float]]
) -> list[Row]:
    """The rows of one subgraph; of a delegate whose kernels time operators themselves, these, if any were reported."""
    rows = []
    for node in subgraph.execution_plan:
        key = subgraph.index, node.number
        times = [run.get(key, 0.0) for run in watch.seconds]
        if key not in watch.calls:
            continue
        row = _row(node, times, watch.calls[key]) | {"memory": None if taken is None else taken.bytes.get(key, 0)}
        delegate = node.delegate
        if delegate is None:
            rows.append(row)
            continue
        told = delegate.flags & DelegateFlags.PER_OPERATOR_PROFILING
        inside = [n for n in node.replaced if told and any(n.number in run for run in events)]
        for n in inside:
            took = [run[n.number] for run in events if n.number in run]
            rows.append(
                _row(n, took, watch.calls[key]) | {"memory": None if taken is None else 0, "delegate": delegate.name}
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
