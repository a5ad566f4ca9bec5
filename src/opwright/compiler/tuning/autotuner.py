"""Autotuning: the alternatives of a query, compiled and timed alternately on the same numbers.

Lives here: `measured`, `questions_of`, `tune`.
Not here: choices (choices.py), rows (choices.py), when models are measured (lite/compiled/).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...core import flags
from ..kernels import NoKernel
from ..loops.buffers import Buffer
from ..loops.fusion import fused
from ..loops.graph import LoopGraph, parents
from ..loops.ops import LoopOp
from ..loops.planner import plan_of, plan_while_compiling
from ..loops.plans import LoopPlan
from ..native.executor import BoundPlan, StepFailed, aligned
from ..native.host import cache_bytes
from ..native.store import without_code
from . import choices
from .choices import MeasuredRow, Question, answering, asking

SHORT_S = 5e-5
"""Runs shorter than this are timed in batches of about this duration."""
ITERATIONS, FIRST_ITERATIONS = 10, 4
"""Minimum iterations of each alternative, and the number after which slow ones are discarded."""
DISCARD_RATIO = 1.5
"""Alternatives slower than the best by this ratio are discarded, except the default."""
OTHERS = 8
"""Assumed ratio of a network's weights to a layer's."""


def questions_of(graph: LoopGraph) -> list[Question]:
    """Return the distinct queries of planning a graph. Nothing is compiled."""
    with asking() as asked, without_code():
        after, apart = fused(graph)
        plan_of(after, parts_of=apart)
    return list(asked.values())


def measured(question: Question, seconds: float) -> MeasuredRow:
    """Time the alternatives of a query. seconds: approximate duration without compilation.

    raises NoKernel if no kernel implements the query's operations
    """
    graph = _graph_of(question.ops)
    arrays = {b: _numbers(b) for b in graph.inputs} | {b: _memory(b) for b in graph.outputs}
    sources = [(arrays[b], arrays[b].copy()) for b in graph.inputs]
    runs = {way: _running(_plan(graph, question, way), arrays) for way in question.ways}
    weights = sum(b.size * b.dtype.size for op in question.ops for b in op.inputs if b.constant is not None)
    other_data = np.ones(min(max(2 * cache_bytes(), OTHERS * weights), 2 * cache_bytes(3)) // 8)

    def evict() -> None:
        other_data.sum()
        for array, original in sources:
            np.copyto(array, original)

    return _race({way: running.run for way, running in runs.items()}, question.default, evict, seconds)


def _graph_of(ops: Sequence[LoopOp]) -> LoopGraph:
    """Return the graph of some operations alone: its inputs are read and not written, its outputs written
    and not read."""
    written_ids = {id(b) for op in ops for b in (op.output, *parents(op.output))}
    read = {id(b): b for op in ops for b in op.inputs}
    inputs = {id(b): b for b in map(_whole, read.values()) if b.constant is None and id(b) not in written_ids}
    outputs = {id(b): b for op in ops if id(op.output) not in read for b in [_whole(op.output)]}
    return LoopGraph("measured", tuple(inputs.values()), tuple(outputs.values()), tuple(ops))


def _whole(buffer: Buffer) -> Buffer:
    return [buffer, *parents(buffer)][-1]


def _plan(graph: LoopGraph, question: Question, way: int) -> LoopPlan:
    with answering({question.key: way}):
        after, apart = fused(graph)
        plan = plan_while_compiling(after, parts_of=apart)
    plan.pack()
    return plan


def _running(plan: LoopPlan, arrays: dict[Buffer, np.ndarray]) -> BoundPlan:
    running = plan.bind()
    running.connect({b: a.__array_interface__["data"][0] for b, a in arrays.items()})
    return running


def _memory(b: Buffer) -> np.ndarray:
    memory: np.ndarray = aligned(b.size * b.dtype.size).view(b.dtype.np).reshape(b.shape)
    return memory


def _numbers(b: Buffer) -> np.ndarray:
    """Return an array of a buffer's shape and dtype: normally distributed floats, or random bytes."""
    array, rng = _memory(b), np.random.default_rng(1)
    if b.dtype.is_floating:
        array[...] = rng.standard_normal(b.shape, np.float32)
    else:
        array.reshape(-1).view(np.uint8)[:] = rng.integers(0, 256, array.nbytes, np.uint8)
    return array


class _Times(NamedTuple):
    """Seconds of the runs of an alternative, and the number of runs timed at once."""

    runs: list[float]
    batch: int

    @property
    def noise(self) -> float:
        minimum = min(self.runs)
        return abs(min(self.runs[::2]) - min(self.runs[1::2])) / minimum


def _race(
    runs: dict[int, Callable[[], object]], default: int, evict: Callable[[], None], seconds: float
) -> MeasuredRow:
    """Time alternatives alternately and return their row. evict: evicts caches before each long run."""
    times = {way: _Times([], _batch(run)) for way, run in runs.items()}
    end, iteration = time.perf_counter() + seconds, 0
    while iteration < ITERATIONS or time.perf_counter() < end:
        order = sorted(times, reverse=bool(iteration % 2))  # so that each runs after different ones
        best_time = min((min(t.runs) for t in times.values() if t.runs), default=0.0)
        for way in order:
            record = times[way]
            if iteration >= FIRST_ITERATIONS and way != default and min(record.runs) > best_time * DISCARD_RATIO:
                continue
            record.runs.append(_time(runs[way], record.batch, evict))
        iteration += 1
    best = min(times, key=lambda way: min(times[way].runs))
    noise = max(times[default].noise, times[best].noise)
    return MeasuredRow({way: min(t.runs) * 1e9 for way, t in times.items()}, noise)


def _batch(run: Callable[[], object]) -> int:
    """Return the number of runs to time at once, more than one for short runs."""
    run()
    start = time.perf_counter()
    run()
    return max(1, int(SHORT_S / max(time.perf_counter() - start, 1e-7)))


def _time(run: Callable[[], object], batch: int, evict: Callable[[], None]) -> float:
    clock = time.perf_counter
    if batch == 1:
        evict()
        start = clock()
        run()
        return clock() - start
    start = clock()
    for _ in range(batch):
        run()
    return (clock() - start) / batch


MAX_S = 60.0
"""Seconds of one graph's choices, after which no further one begins."""
EACH_S = 0.1
"""Seconds of running a query's alternatives, without compilation."""


def tune(graph: LoopGraph) -> bool:
    """Measure the unmeasured queries of a graph; return whether all are answered."""
    end = time.perf_counter() + MAX_S
    try:
        questions = questions_of(graph)
    except NoKernel:  # planned again without operations that have no kernel
        return False
    unmeasured = [question for question in questions if choices.find_measured(*question.key) is None]
    for question in unmeasured:
        if time.perf_counter() > end:
            return False
        _measure(question)
    return True


def _measure(question: Question) -> None:
    try:
        row = measured(question, EACH_S)
    except (NoKernel, StepFailed):
        return
    choices.keep_measured(*question.key, row)
    if "time" in flags.show:
        times = ", ".join(f"{way}: {ns / 1e3:.1f} us" for way, ns in row.ns.items())
        chosen = choices.decided(row, question.ways, question.default)
        print(f"measured {question}: {times}; {chosen}, by default {question.default}", file=sys.stderr)
