"""Traces of plans: which thread executed which items of which step, from when to when.

Lives here: `StepCall`, `CallLog`, `trace_calls`, `trace_plan`. Not here: the machine code (call_traces.ll), the time of
each step without its threads (`Executor.run_profiled`), what is shown of a trace (lite/runtime/timeline.py).

A traced run has the division of items and the threads of any other; a call takes some 60 ns more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ...core.forks import once
from ...core.named_tuples import NamedTuple
from ..target import host
from .executor import COVERS, ROW, BoundPlan, Executor, StepError, StepOrigin
from .image import address_of, runs_images
from .store import find_or_make, read_text
from .workers import DECLARED, threads_text

CALLS = 1 << 15
"""Calls that a trace has room for, in less than a huge page, whose zeros would take a millisecond; more are counted."""
_RECORD, _HEAD, _COLUMNS = 4, 2, 6  # words of a record, of the beginning of a log, of its rows


class StepCall(NamedTuple):
    """A call of a step's kernel. step: its index; begin, end: the items; thread: its number in the system, as of
    `threading.get_ident`; start, stop: nanoseconds of a monotonic clock."""

    step: int
    begin: int
    end: int
    thread: int
    start: int
    stop: int


@once
def _kernel() -> int:
    """Return the address of the kernel of call_traces.ll, compiled or from the cache."""

    def text() -> str:
        return f"{read_text(threads_text(host().triple))}\n{read_text('call_traces.ll')}"

    if not runs_images():
        from .linker import provide  # LLVM

        provide({name: address_of(name) for name in re.findall(DECLARED, text())})
    return find_or_make("call_traces", "", None, lambda: (text(), "call_traces")).address


class CallLog:
    """The log of one run, as machine code wrote it. origins: of the plan's steps; first: how many are ahead of them."""

    def __init__(self, words: np.ndarray, origins: Sequence[StepOrigin] = (), first: int = 0) -> None:
        self._words, self._origins, self._first = words, origins, first

    @property
    def lost(self) -> int:
        """How many calls there was no room for."""
        return max(int(self._words[0]) - CALLS, 0)

    @property
    def calls(self) -> list[StepCall]:
        """The calls, in the order in which they began."""
        count = min(int(self._words[0]), CALLS)
        rows = self._words[_HEAD : _HEAD + _COLUMNS * count].reshape(count, _COLUMNS)
        ordered = rows[np.argsort(rows[:, 4], kind="stable")].tolist()
        return [
            StepCall(step, begin, end, thread % (1 << 64), start, stop)
            for step, begin, end, thread, start, stop in ordered
        ]

    @property
    def of_steps(self) -> list[tuple[StepOrigin, StepCall]]:
        """The calls of the plan's own steps, with the origins of these."""
        return [(self._origins[c.step - self._first], c) for c in self.calls if c.step >= self._first]


def trace_calls(executor: Executor) -> CallLog:
    """Run all steps once; return the calls of their kernels. Plans that steps run are one call. Raises StepError."""
    rows = executor.block[: ROW * executor.steps].reshape(-1, ROW)
    kernels = np.flatnonzero(rows[:, COVERS] == 0)  # heads of strands and jumps have none
    before = rows[kernels, :2].copy()
    log = np.zeros(_HEAD + _COLUMNS * CALLS, np.int64)
    log[1] = CALLS
    records = np.zeros((len(kernels), _RECORD), np.int64)
    records[:, :2], records[:, 2], records[:, 3] = before, kernels, log.ctypes.data
    try:
        rows[kernels, 0] = _kernel()
        rows[kernels, 1] = records.ctypes.data + 8 * _RECORD * np.arange(len(kernels))
        executor.run()
    finally:
        rows[kernels, :2] = before
    return CallLog(log)


def trace_plan(running: BoundPlan) -> CallLog:
    """Run a bound plan once; return the calls of its steps. Raises StepFailed."""
    try:
        log = trace_calls(running.executor)
    except StepError as error:
        raise running.failure(error) from None
    return CallLog(log._words, running.image.steps, running.first)
