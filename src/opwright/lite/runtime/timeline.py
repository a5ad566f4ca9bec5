"""The timeline of a run: nodes, and the steps of compiled plans on the threads that executed them.

Lives here: `Timeline`, `TimelineEvent`, `timeline`. Not here: statistics of several runs (profiler.py), calls of
kernels on threads (compiler/native/call_traces.py), files of traces and charts (tools/).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import get_ident
from typing import TYPE_CHECKING

from ...core.named_tuples import NamedTuple
from .node import Node
from .profiler import observed
from .subgraph import Subgraph

if TYPE_CHECKING:
    from ...compiler.native.call_traces import CallLog


class TimelineEvent(NamedTuple):
    """A node, or a call of a plan's step, in a run.

    name: of the operator, of the nodes that a step computes; kind: "node", "delegate" (a node that replaces others) or
    "step"; thread: 0 is the caller; start, seconds: from the beginning of the run; subgraph; nodes: their numbers;
    kernel: of a step; begin, end: its items
    """

    name: str
    kind: str
    thread: int
    start: float
    seconds: float
    subgraph: int
    nodes: tuple[int, ...]
    kernel: str = ""
    begin: int = 0
    end: int = 0


class Timeline(NamedTuple):
    """The events of the fastest of several runs, by start. seconds: of that run; threads: that executed steps; lost:
    calls of steps that were not recorded, of more than 32768 in one plan."""

    events: tuple[TimelineEvent, ...]
    seconds: float
    threads: int
    lost: int


def timeline(family: Sequence[Subgraph], runs: int = 5) -> Timeline:
    """Run the main subgraph `runs` times and return the timeline of the fastest run.

    A node costs some microseconds more than in other runs, a step 60 ns. raises RuntimeError (errors.OpError, too) as
    invoke does
    """
    main = family[0]
    if not main.ready:
        main.invoke()  # raises
    best: tuple[int, _TimelineRecorder] | None = None
    for _ in range(runs):
        recorder = _TimelineRecorder()
        with observed(family, recorder):
            for subgraph in family:
                subgraph.context.events, subgraph.context.calls = {}, recorder.plans
            try:
                start = time.perf_counter_ns()
                main.invoke()
                took = time.perf_counter_ns() - start
            finally:
                for subgraph in family:
                    subgraph.context.events = subgraph.context.calls = None
        recorder.start = start
        if best is None or took < best[0]:
            best = took, recorder
    assert best is not None, "no run"
    took, recorder = best
    events = recorder.events()
    threads = len({event.thread for event in events} | {0})
    return Timeline(tuple(events), took * 1e-9, threads, sum(log.lost for *_, log in recorder.plans))


class _TimelineRecorder:
    """Observer of one run. plans: when each plan began and ended, and its calls."""

    def __init__(self) -> None:
        self.start = 0
        self.plans: list[tuple[int, int, CallLog]] = []
        self._nodes: list[tuple[Node, int, int, range]] = []  # node, start, stop, the plans that ran meanwhile
        self._open: list[tuple[int, int]] = []

    def __call__(self, node: Node, after: bool) -> None:
        if not after:
            self._open.append((time.perf_counter_ns(), len(self.plans)))
            return
        stop = time.perf_counter_ns()
        start, first = self._open.pop()
        self._nodes.append((node, start, stop, range(first, len(self.plans))))

    def events(self) -> list[TimelineEvent]:
        rows = []
        for node, start, stop, plans in self._nodes:
            delegate = node.delegate
            numbers = (node.number,) if delegate is None else tuple(n.number for n in node.replaced)
            name = node.name if delegate is None else delegate.name
            kind, index = "node" if delegate is None else "delegate", node.subgraph.index
            rows.append(
                TimelineEvent(name, kind, 0, (start - self.start) * 1e-9, (stop - start) * 1e-9, index, numbers)
            )
            if delegate is not None:
                rows += self._steps(index, plans)
        return sorted(rows, key=lambda event: (event.start, -event.seconds))

    def _steps(self, subgraph: int, plans: range) -> list[TimelineEvent]:
        numbers = {get_ident(): 0}
        rows = []
        for began, ended, log in (self.plans[i] for i in plans):
            calls = log.of_steps
            if not calls:
                continue
            first, last = calls[0][1].start, max(call.stop for _, call in calls)
            shift = -self.start
            if not began <= first <= last <= ended:  # by another clock than that of Python
                shift += began - first
            for origin, call in calls:
                names = origin.op.origin if origin.op is not None else ()
                operators = dict.fromkeys(name.rpartition(" ")[0].rpartition(".")[2] for name in names)
                thread = numbers.setdefault(call.thread, len(numbers))
                rows.append(
                    TimelineEvent(
                        " + ".join(operators) or origin.name,
                        "step",
                        thread,
                        (call.start + shift) * 1e-9,
                        (call.stop - call.start) * 1e-9,
                        subgraph,
                        tuple(int(name.rpartition(" ")[2]) for name in names),
                        origin.name,
                        call.begin,
                        call.end,
                    )
                )
        return rows
