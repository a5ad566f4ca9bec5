"""How many batches a task has: enough that sending it costs little, few enough that no worker waits at the end.

Lives here: `TaskSize`.  Not here: tasks and their flow (dispatcher.py), what a batch costs (inference.py measures it).

Sending a task takes the driver and its engine half a millisecond of a processor, whatever is in it: for a batch of 5 ms
a tenth. A batch has the same elements in any task, so that results do not depend on times.
"""

from __future__ import annotations

import math

TASK_SECONDS, TASK_BYTES, MOST_BATCHES = 0.1, 2 << 20, 64
"""A task of several batches, at most: time of its worker, bytes of inputs and outputs, batches. Bytes of more than a
second-level cache bring nothing, and the driver keeps those of all tasks in flight and of results that wait."""
SHARES = 2
"""Near the end, a worker's part of the remaining batches has at least this number of tasks."""


class TaskSize:
    """The size of tasks of a job. most: batches of one; total: elements of the job, None if they are not counted."""

    def __init__(self, batch: int, most: int, total: int | None) -> None:
        self._batch, self._most, self._total = batch, most, total
        self._seconds = self._bytes = 0.0

    def measure(self, seconds: float, size: float) -> None:
        """Take the seconds and the bytes of a batch that has been computed."""
        old = self._seconds or seconds
        self._seconds = min(seconds, (old + seconds) / 2)  # the first batch opens the model and may compile it
        self._bytes = max(self._bytes, size)

    def elements(self, start: int, workers: int, most: int | None) -> int:
        """Return the number of elements of the task that begins at element `start`. most: of them, by its sink.

        Near the end tasks become smaller (guided self-scheduling: Polychronopoulos and Kuck, 1987).
        """
        if self._most == 1 or not self._seconds:
            return self._batch
        limit = min(TASK_SECONDS / self._seconds, TASK_BYTES / max(1.0, self._bytes), self._most)
        count = 2.0 ** math.floor(math.log2(max(1.0, limit)))  # few sizes, as slots of another size take new memory
        if self._total is not None:
            count = min(count, (self._total - start) / (SHARES * self._batch * workers))
        if most is not None:
            count = min(count, most / self._batch)
        return max(1, int(count)) * self._batch
