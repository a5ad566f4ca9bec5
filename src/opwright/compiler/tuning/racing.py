"""The clock: the ways of one question, compiled, run in turn on the same numbers.

Lives here: `questions_of` a loop graph, `measured`: a question's row; `tune`, which measures, when a model is loaded,
what this machine has not: a load that was cut short goes on where it was.
Not here: where rows are kept (measurements.py), who loads models (lite/compiled/partition_plans.py).

What a question is about runs alone, as a plan of its own on one thread. In a network other layers come between two
runs, so before each run of a long plan the second-level cache is filled with other memory, and then the inputs are
written, as the layer before would. Large weights are those of large networks, of which no cache holds all: there is
more of that other memory then. Short plans run in batches, on warm caches, as short networks do. The least time of a
way counts; noise is how far the least of its odd runs is from that of its even ones.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...core import flags
from ..bound_plan import BoundPlan
from ..kernels import NoKernel
from ..loops.buffers import Buffer
from ..loops.fusion import fused
from ..loops.graph import LoopGraph, parents
from ..loops.ops import LoopOp
from ..loops.planner import plan_of
from ..loops.plans import LoopPlan
from ..native.executor import StepFailed, aligned
from ..native.host import cache_bytes
from ..native.store import compiling_beside, without_code
from . import measurements
from .choices import Question, answering, asking
from .measurements import Row

SHORT_S = 5e-5
"""Seconds below which runs are timed in batches of about as many."""
TURNS, FIRST_TURNS = 10, 4
"""Times that each way is run at least, if it is not hopeless; after how many it may be."""
HOPELESS = 1.5
"""Ways other than the default that are so many times slower than the best are run no further."""
OTHERS = 8
"""Times a layer's weights that the rest of its network has."""


def questions_of(graph: LoopGraph) -> list[Question]:
    """The questions that planning a graph puts, each once. Nothing is compiled."""
    with asking() as asked, without_code():
        after, apart = fused(graph)
        plan_of(after, parts_of=apart)
    return list(asked.values())


def measured(question: Question, seconds: float) -> Row:
    """Time the ways of a question. seconds: about how long, beside compiling them.

    raises NoKernel where no kernel does the question's forms
    """
    graph = _graph_of(question.ops)
    arrays = {b: _numbers(b) for b in graph.inputs} | {b: _memory(b) for b in graph.outputs}
    sources = [(arrays[b], arrays[b].copy()) for b in graph.inputs]
    runs = {way: _running(_plan(graph, question, way), arrays) for way in question.ways}
    weights = sum(b.size * b.dtype.size for op in question.ops for b in op.inputs if b.constant is not None)
    elsewhere = np.ones(min(max(2 * cache_bytes(), OTHERS * weights), 2 * cache_bytes(3)) // 8)

    def displace() -> None:
        elsewhere.sum()
        for there, before in sources:
            np.copyto(there, before)

    return _race({way: running.run for way, running in runs.items()}, question.default, displace, seconds)


def _graph_of(ops: Sequence[LoopOp]) -> LoopGraph:
    """The graph of some forms alone: what they read of others is its input, what nobody of them reads its output."""
    written = {id(b) for op in ops for b in (op.output, *parents(op.output))}
    read = {id(b): b for op in ops for b in op.inputs}
    inputs = {id(b): b for b in map(_whole, read.values()) if b.constant is None and id(b) not in written}
    outputs = {id(b): b for op in ops if id(op.output) not in read for b in [_whole(op.output)]}
    return LoopGraph("measured", tuple(inputs.values()), tuple(outputs.values()), tuple(ops))


def _whole(buffer: Buffer) -> Buffer:
    return [buffer, *parents(buffer)][-1]


def _plan(graph: LoopGraph, question: Question, way: int) -> LoopPlan:
    with answering({question.key: way}):
        after, apart = fused(graph)
        with compiling_beside():
            plan_of(after, parts_of=apart)
        plan = plan_of(after, parts_of=apart)
    plan.pack()
    return plan


def _running(plan: LoopPlan, arrays: dict[Buffer, np.ndarray]) -> BoundPlan:
    running = plan.bind()
    running.connect({b: a.__array_interface__["data"][0] for b, a in arrays.items()})
    return running


def _memory(b: Buffer) -> np.ndarray:
    return aligned(b.size * b.dtype.size).view(b.dtype.np).reshape(b.shape)


def _numbers(b: Buffer) -> np.ndarray:
    """An array of a buffer's shape and dtype: floats about 0 of deviation 1, or bytes of any value."""
    array, rng = _memory(b), np.random.default_rng(1)
    if b.dtype.is_floating:
        array[...] = rng.standard_normal(b.shape, np.float32)
    else:
        array.reshape(-1).view(np.uint8)[:] = rng.integers(0, 256, array.nbytes, np.uint8)
    return array


class _Times(NamedTuple):
    """Seconds of the runs of a way, and how many runs are timed at once."""

    runs: list[float]
    batch: int

    @property
    def noise(self) -> float:
        least = min(self.runs)
        return abs(min(self.runs[::2]) - min(self.runs[1::2])) / least


def _race(runs: dict[int, Callable[[], object]], default: int, displace: Callable[[], None], seconds: float) -> Row:
    """The row of some ways. displace: what is done before each run that is not short."""
    times = {way: _Times([], _batch(run)) for way, run in runs.items()}
    end, turn = time.perf_counter() + seconds, 0
    while turn < TURNS or time.perf_counter() < end:
        order = sorted(times, reverse=bool(turn % 2))  # so that none always runs after the same one
        least = min((min(t.runs) for t in times.values() if t.runs), default=0.0)
        for way in order:
            found = times[way]
            if turn >= FIRST_TURNS and way != default and min(found.runs) > least * HOPELESS:
                continue
            found.runs.append(_time(runs[way], found.batch, displace))
        turn += 1
    best = min(times, key=lambda way: min(times[way].runs))
    noise = max(times[default].noise, times[best].noise)
    return Row({way: min(t.runs) * 1e9 for way, t in times.items()}, noise)


def _batch(run: Callable[[], object]) -> int:
    """How many runs are timed at once: more than one of what is short."""
    run()
    start = time.perf_counter()
    run()
    return max(1, int(SHORT_S / max(time.perf_counter() - start, 1e-7)))


def _time(run: Callable[[], object], batch: int, displace: Callable[[], None]) -> float:
    clock = time.perf_counter
    if batch == 1:
        displace()
        start = clock()
        run()
        return clock() - start
    start = clock()
    for _ in range(batch):
        run()
    return (clock() - start) / batch


# ---- OPWRIGHT_TUNE=1 -------------------------------------------------------------------------------------------------

MOST_S = 60.0
"""Seconds of one graph's measurements, after which no other is begun."""
EACH_S = 0.1
"""Seconds that the ways of a question run, beside compiling them."""


def tune(graph: LoopGraph) -> bool:
    """Measure what this machine has not measured of a graph's questions; return whether all are answered."""
    end = time.perf_counter() + MOST_S
    try:
        asked = questions_of(graph)
    except NoKernel:  # it is planned again without what nobody makes
        return False
    todo = [question for question in asked if measurements.find(*question.key) is None]
    for question in todo:
        if time.perf_counter() > end:
            return False
        _measure(question)
    return True


def _measure(question: Question) -> None:
    try:
        row = measured(question, EACH_S)
    except (NoKernel, StepFailed):
        return
    measurements.keep(*question.key, row)
    if "time" in flags.show:
        times = ", ".join(f"{way}: {ns / 1e3:.1f} us" for way, ns in row.ns.items())
        chosen = measurements.decided(row, question.ways, question.default)
        print(f"measured {question}: {times}; {chosen}, by default {question.default}", file=sys.stderr)
