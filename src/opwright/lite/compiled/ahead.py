"""Planning ahead of the engine: a model that nothing is kept of is planned and compiled by a thread, on an interpreter
of its own, while the reference kernels answer. The engine then uses the plans that the job has cached.

Lives here: `Ahead`, in the engine's place until then; whether a model was planned before.
Not here: the engine (engine.py), which this module does not import: 54 ms that the first answer need not wait for.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ...compiler import plan_cache
from ...compiler.background import Job, compiling
from ...compiler.cache import objects
from ...compiler.native.host import is_described, keep_description
from ...core import flags
from ..runtime.subgraph import Subgraph

PATIENCE = 0.2
"""Delay of planning in favor of the first answer: both run Python, and concurrently each takes as long as both."""

Shapes = list[list[tuple[int, ...]]]


class Ahead:
    """A model that is being planned. plan: called by the thread with the inputs' shapes, by subgraph; it references
    nothing of the interpreter, which may be dropped meanwhile."""

    def __init__(self, subgraphs: Sequence[Subgraph], plan: Callable[[Shapes], Any]) -> None:
        self._subgraphs, self._plan = subgraphs, plan
        self._shapes: Shapes = []
        self._answered, self._dropped = threading.Event(), threading.Event()
        self._job: Job | None = None

    def compile_missing(self) -> bool:
        """Request plans of the model for its shapes, after allocation. Return True: something is missing."""
        shapes = shapes_of(self._subgraphs)
        if self._job is None or shapes != self._shapes:
            self.cancel()
            self._shapes, self._answered, self._dropped = shapes, threading.Event(), threading.Event()
            self._job = compiling.submit(_patient(self._plan, shapes, self._answered, self._dropped))
            weakref.finalize(self, self._job.cancel).atexit = False  # it has no other reader
        return True

    @property
    def done(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._job is not None and self._job.done

    @property
    def answered(self) -> bool:
        """Whether the model has run."""
        return self._answered.is_set()

    @property
    def lost(self) -> bool:
        """Whether planning runs in the parent process of a fork."""
        return self._job is not None and self._job.lost

    def note_run(self) -> None:
        """Plan now, after a run."""
        self._answered.set()

    def wait(self) -> None:
        """Wait until planning is done."""
        self.note_run()
        if self._job is not None:
            self._job.wait()

    def cancel(self) -> None:
        """Drop the work if planning has not begun."""
        if self._job is not None:
            self._job.cancel()
        self._dropped.set()
        self.note_run()

    def runs_nodes(self) -> bool:
        """Return whether nodes are claimed."""
        return False

    def withdraw(self) -> None:
        """Restore the nodes: there are none."""
        self.cancel()


def _patient(
    plan: Callable[[Shapes], Any], shapes: Shapes, answered: threading.Event, dropped: threading.Event
) -> Callable[[], None]:
    """Return the work, which begins after the first answer, or after a while, unless it was dropped by then."""
    until = time.monotonic() + PATIENCE

    def work() -> None:
        answered.wait(max(until - time.monotonic(), 0.0))
        if not dropped.is_set():
            plan(shapes)

    return work


def shapes_of(subgraphs: Sequence[Subgraph]) -> Shapes:
    """Return the shapes of each subgraph's inputs."""
    return [[s.tensors[i].shape for i in s.inputs] for s in subgraphs]


def was_planned(identity: str, shapes: Shapes) -> bool:
    """Return whether an interpreter has planned a model for these shapes, here or in an earlier process."""
    return is_described() and objects(flags.cache_dir).find(_digest(identity, shapes)) is not None


def note_planned(identity: str, shapes: Shapes) -> None:
    """Record that a model was planned, whatever the result."""
    keep_description()
    objects(flags.cache_dir).keep(_digest(identity, shapes), b"planned")


def _digest(identity: str, shapes: Shapes) -> str:
    return plan_cache.digest_of(f"planned {identity} {shapes}")
