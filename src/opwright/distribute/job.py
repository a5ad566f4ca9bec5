"""The job of batch inference as workers see it: the arguments of tasks, by pickle or through memory, and their results.

Lives here: `InferenceJob`.
Not here: elements and results in order (inference.py), which tasks run when (dispatcher.py), the worker (worker.py).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np

from . import slots, worker
from .dispatcher import Task
from .elements import ElementColumns, packed
from .executors import Workers
from .portable_model import SAVED_MODEL, PortableModel
from .task_size import TaskSize

LEAST_SHARED = 1 << 14
"""Bytes of a task, inputs and outputs, from which on they go through memory that processes share."""


class InferenceJob:
    """A model and the workers that run it."""

    def __init__(
        self, model: PortableModel, workers: Workers, customs: tuple[Any, ...], load: Callable[[Any], Any] | None
    ) -> None:
        self.model, self.workers = model, workers
        self._customs, self._load = customs, load
        self.reference = model.reference
        if workers.shares_process and model.reference.kind == SAVED_MODEL:  # threads of functions are the process's
            self.reference = model.reference._replace(num_threads=0)
        self._job = secrets.token_hex(8)
        self._shared: Any = None  # the model's bytes as the engine hands them to its workers
        self._bytes: np.ndarray | None = None
        self._needing: set[int] = set()  # starts of tasks whose worker needs the bytes
        self._slots = slots.Slots(usable=workers.shares_memory)
        self._slot_of: dict[Task, slots.Slot] = {}
        self._output_bytes = 0.0  # of an element, at most, in a slot
        self.size = TaskSize(1, 1, None)  # `Results` sets it

    def submit(self, task: Task) -> Future[Any]:
        """Start a task; with the model's bytes if its worker asked for them. Raises BrokenExecutor."""
        content = self._shared
        if content is None and task.start in self._needing:
            self._needing.discard(task.start)
            content = self._bytes
        slot, elements = self._sent(task)
        reference = None if slot is None else slot.reference()
        arguments = (self._customs, self._job, self._load, elements, task.batch, reference, content)
        try:
            future = self.workers.submit(worker.run_task, self.reference, *arguments)
        except BaseException:
            if slot is not None:
                self._slots.release(slot)
            raise
        if slot is not None:
            self._slot_of[task] = slot
            future.add_done_callback(lambda future: self._keep_or_retire(task, future))
        return future

    def _sent(self, task: Task) -> tuple[slots.Slot | None, Any]:
        """Return a task's elements as they are sent, and the slot that has their arrays, if it has one."""
        if self.workers.shares_process:
            return None, packed(task.elements) if isinstance(task.elements, np.ndarray) else task.elements
        elements = packed(task.elements)
        size = slots.placed_size(elements) + math.ceil(self._output_bytes * task.count)
        slot = self._slots.acquire(size) if size >= LEAST_SHARED else None
        if slot is not None:
            return slot, slots.put_all(slot, elements)
        return None, elements.stacked() if isinstance(elements, ElementColumns) else elements

    def _keep_or_retire(self, task: Task, future: Future[Any]) -> None:
        """Give up the slot of a task that failed or was cancelled: its worker may be writing to it."""
        if future.cancelled() or future.exception() is not None:
            self._retire(task)

    def _retire(self, task: Task) -> None:
        slot = self._slot_of.pop(task, None)
        if slot is not None:
            self._slots.retire(slot)

    def receive(self, task: Task, result: Any) -> Any:
        """Return the outcomes of a task's batches, or of its model; None if the task must be sent in another way."""
        slot = self._slot_of.pop(task, None)
        if isinstance(result, worker.ModelNeeded):
            if self._bytes is None:
                self._bytes = self.model.content()
                self._shared = self.workers.share(self._bytes)
            self._needing.add(task.start)
            result = None
        elif isinstance(result, worker.SlotUnseen):
            self._slots.usable = False
            result = None
        elif isinstance(result, list):
            size = sum(slots.placed_size(outcome.stacked) + slots.placed_size(outcome.rows) for outcome in result)
            self._output_bytes = max(self._output_bytes, size / task.count)
            size += 0 if slot is None else slot.at
            self.size.measure(min(outcome.seconds for outcome in result), size / len(result))
            if slot is not None:
                result = [_copied(slot, outcome) for outcome in result]
            task.drop_elements()
        if slot is not None:
            self._slots.release(slot)
        return result

    def close(self) -> None:
        """Shut down the workers that the job started."""
        self._shared = self._bytes = None
        self.workers.close()
        for task in list(self._slot_of):
            self._retire(task)  # it runs on the caller's executor
        self._slots.close()
        self.model.close()


def _copied(slot: slots.Slot, outcome: worker.BatchOutcome) -> worker.BatchOutcome:
    """Return an outcome with copies of the arrays that are in a slot, which then is free."""
    stacked = slots.get_all(slot, outcome.stacked, copy=True)
    return outcome._replace(stacked=stacked, rows=slots.get_all(slot, outcome.rows, copy=True))
