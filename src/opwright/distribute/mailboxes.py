"""Communicators over engines whose workers call each other: a mailbox for each worker.

Lives here: `Mailbox`, `MailboxCommunicator`.  Not here: the calls, which are the engine's (ray_workers.py,
dask_workers.py).

An exchange is one message to each other worker, the arrays for it, under the number of the exchange: messages may
arrive in any order, and of a later exchange before those of an earlier one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import InternalError
from .communicators import TIMEOUT, Communicator, Messages, WorkerLostError


class Mailbox:
    """Messages for one worker, until it takes them; `deliver` may be called by any thread."""

    def __init__(self) -> None:
        self._messages: dict[tuple[int, int], Sequence[np.ndarray]] = {}
        self._arrived = threading.Condition()
        self._failure: str | None = None

    def deliver(self, number: int, source: int, arrays: Sequence[np.ndarray]) -> None:
        """Add the message of worker `source` in an exchange."""
        with self._arrived:
            self._messages[number, source] = arrays
            self._arrived.notify_all()

    def fail(self, reason: str) -> None:
        """Let the worker that waits, now or later, raise WorkerLostError."""
        with self._arrived:
            self._failure = reason
            self._arrived.notify_all()

    def take(self, number: int, source: int, timeout: float) -> Sequence[np.ndarray]:
        """Wait for a message, and remove it. Raises WorkerLostError after `timeout` seconds, or if a worker failed."""
        end = time.monotonic() + timeout
        with self._arrived:
            while (number, source) not in self._messages:
                remaining = end - time.monotonic()
                self._check()
                if remaining <= 0:
                    raise _lost(f"worker {source} has not answered for {timeout:.0f} s")
                self._arrived.wait(remaining)
            return self._messages.pop((number, source))

    def check(self) -> None:
        """Raise WorkerLostError if a worker failed."""
        with self._arrived:
            self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise _lost(self._failure)


def _lost(reason: str) -> WorkerLostError:
    return WorkerLostError(
        op="Mailbox", what=reason, do="resume from the last checkpoint, on the workers that there are"
    )


class MailboxCommunicator(Communicator):
    """Workers with mailboxes.

    mailbox: this worker's. deliver: of the engine, deliver(target, number, source, arrays) calls that method of another
    worker's mailbox, and returns before or after it has run.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        mailbox: Mailbox,
        deliver: Callable[[int, int, int, list[np.ndarray]], Any],
        timeout: float = TIMEOUT,
    ) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self._mailbox, self._deliver = mailbox, deliver
        self._number = 0

    def exchange(self, sent: Messages, received: Messages) -> None:
        """Implement Communicator."""
        number, self._number = self._number, self._number + 1
        for step in range(1, self.size):
            target = (self.rank + step) % self.size
            arrays = [np.asarray(a, order="C") for a in sent[target] if a.size]
            if arrays:
                self._deliver(target, number, self.rank, arrays)
        for step in range(1, self.size):
            source = (self.rank - step) % self.size
            places = [a for a in received[source] if a.size]
            if not places:
                continue
            arrays = list(self._mailbox.take(number, source, self.timeout))
            if [a.shape for a in arrays] != [p.shape for p in places]:
                raise InternalError(
                    op="MailboxCommunicator",
                    what=f"workers {self.rank} and {source} run different collectives",
                    found=[a.shape for a in arrays],
                    wanted=[p.shape for p in places],
                )
            for place, array in zip(places, arrays):
                place[...] = array
