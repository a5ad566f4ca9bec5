"""Data-parallel programs on Dask: a task on each worker, and an actor in its process that the others call.

Lives here: `run_on_dask`.  Not here: mailboxes (mailboxes.py), executors (executors.py).

Arrays travel as arguments of actor calls, from worker to worker, and never through the scheduler or the client.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from ..core import forks
from ..core.errors import FailedPreconditionError
from .communicators import TIMEOUT, WorkerLostError
from .mailboxes import Mailbox, MailboxCommunicator

ANSWER_SECONDS = 2.0
"""How long a call of an actor is waited for, until the program is asked whether it has failed: Dask leaves calls of a
worker that is lost at the wrong moment without an answer."""
TELL_SECONDS, TELL_ATTEMPTS = 20.0, 3
"""How long, and how often, the client tries to reach a worker that waits for one that was lost."""

_mailboxes: dict[str, Mailbox] = {}  # of the programs that run in this process, by name
_lock = forks.lock()


def _mailbox(name: str) -> Mailbox:
    with _lock:
        return _mailboxes.setdefault(name, Mailbox())


class _Post:
    """The actor of one worker of a program."""

    def __init__(self, name: str) -> None:
        self._mailbox = _mailbox(name)

    def deliver(self, number: int, source: int, arrays: Sequence[Any]) -> None:
        """Add a message to the mailbox."""
        self._mailbox.deliver(number, source, arrays)

    def ready(self) -> None:
        """Return: a first call, by which Dask connects the caller."""

    def fail(self, reason: str) -> None:
        """End the program where it waits for others."""
        self._mailbox.fail(reason)


def _run(
    function: Callable[..., Any], name: str, rank: int, posts: Sequence[Any], args: Sequence[Any], timeout: float
) -> Any:
    """Return function(communicator, *args), in a task of worker `rank`."""
    pending: list[Any] = []
    mailbox = _mailbox(name)

    def finish(count: int) -> None:
        while len(pending) > count:
            _wait(pending.pop(0), mailbox, timeout)

    def deliver(target: int, number: int, source: int, arrays: list[Any]) -> None:
        pending.append(posts[target].deliver(number, source, arrays))
        finish(4 * len(posts))

    try:
        for post in posts:  # from here: kernels call in contexts in which Dask does not know its worker
            _wait(post.ready(), mailbox, timeout)
        communicator = MailboxCommunicator(rank, len(posts), mailbox, deliver, timeout)
        result = function(communicator, *args)
        finish(0)
        return result
    finally:
        with _lock:
            _mailboxes.pop(name, None)


def _wait(call: Any, mailbox: Mailbox, timeout: float) -> None:
    """Wait for the answer of a call. Raises WorkerLostError if the program fails meanwhile, or after `timeout`."""
    end = time.monotonic() + timeout
    while True:
        try:
            call.result(timeout=ANSWER_SECONDS)
            return
        except TimeoutError:
            mailbox.check()
            if time.monotonic() > end:
                raise WorkerLostError(
                    op="run_on_dask", what=f"another worker has not answered for {timeout:.0f} s"
                ) from None
        except (OSError, RuntimeError) as error:  # Dask's of a call that did not arrive
            raise WorkerLostError(op="run_on_dask", what=f"another worker was lost: {error}") from None


def run_on_dask(
    client: Any,
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    workers: int | None = None,
    restarts: int = 0,
    timeout: float = TIMEOUT,
) -> list[Any]:
    """Return function(communicator, *args) of each worker of a data-parallel program on Dask, by rank.

    client: a `dask.distributed.Client`. workers: as many as the cluster has by default. restarts: how often the program
    starts again after a worker was lost, on the workers that the cluster has then: the function resumes from its last
    checkpoint. timeout: seconds that a worker waits for the others.
    raises WorkerLostError if a worker is lost once more than that, what the function raised, FailedPreconditionError
    without Dask or without workers
    """
    try:
        import distributed  # noqa: F401  of the client
    except ImportError:
        raise FailedPreconditionError(
            op="run_on_dask", what="Dask is not installed", do="pip install 'opwright[dask]'"
        ) from None
    for attempt in itertools.count():
        names, addresses, creating = _posts(client, workers, attempt == 0, timeout)
        runs: list[Any] = []
        try:
            posts = [future.result() for future in creating]
            runs = [
                client.submit(
                    _run,
                    function,
                    name,
                    rank,
                    posts,
                    list(args),
                    timeout,
                    workers=[address],
                    allow_other_workers=False,
                    pure=False,
                    retries=0,
                )
                for rank, (name, address) in enumerate(zip(names, addresses))
            ]
            return _results(client, runs, posts, addresses)
        except WorkerLostError:
            if attempt == restarts:
                raise
        finally:
            client.cancel([*runs, *creating], force=True)
    raise AssertionError("the loop returns or raises")


def _posts(client: Any, workers: int | None, is_first: bool, timeout: float) -> tuple[list[str], list[str], list[Any]]:
    """Return names, addresses and the actors, as futures that are done, of the workers that a program gets.

    is_first: wait for all `workers`; a restart takes the present ones. The scheduler may still list a worker that has
    died: then the actors are created again on the others.
    """
    end = time.monotonic() + timeout
    needed = (workers or 1) if is_first else 1
    while True:
        addresses = sorted(client.nthreads())[:workers]
        if len(addresses) >= needed:
            names = [f"opwright-{uuid.uuid4()}-{rank}" for rank in range(len(addresses))]
            creating = [
                client.submit(_Post, name, actor=True, workers=[address], allow_other_workers=False, pure=False)
                for name, address in zip(names, addresses)
            ]
            while set(addresses) <= set(client.nthreads()) and time.monotonic() < end:
                if all(future.status == "finished" for future in creating):
                    return names, addresses, creating
                time.sleep(0.05)
            client.cancel(creating, force=True)
        if time.monotonic() > end:
            raise FailedPreconditionError(
                op="run_on_dask", what=f"{len(addresses)} workers are ready after {timeout:.0f} s", wanted=f"{needed}"
            )
        time.sleep(0.1)


def _results(client: Any, runs: list[Any], posts: list[Any], addresses: Sequence[str]) -> list[Any]:
    """Wait for all workers. Raises WorkerLostError as soon as the cluster misses one of them."""
    error: BaseException | None = None
    while error is None and any(not run.done() for run in runs):
        gone = set(addresses) - set(client.nthreads())
        if gone:
            ranks = sorted(map(addresses.index, gone))
            error = WorkerLostError(op="run_on_dask", what=f"worker {ranks[0]} of {len(runs)} was lost: {min(gone)}")
        elif any(run.status == "error" for run in runs):
            error = next(run.exception() for run in runs if run.status == "error")
        else:
            time.sleep(0.05)
    if error is None:
        try:
            return [run.result() for run in runs]
        except Exception as raised:
            error = raised
    lost = type(error).__name__ in ("KilledWorker", "CancelledError", "FutureCancelledError")
    if lost or (isinstance(error, RuntimeError) and "holding Actor" in str(error)):  # of Dask, of a worker that is gone
        error = WorkerLostError(op="run_on_dask", what=f"a worker was lost: {error}")
    for post, address in zip(posts, addresses):
        _fail(client, post, address, str(error))
    raise error


def _fail(client: Any, post: Any, address: str, reason: str) -> None:
    """Let a worker that is left end: until then its thread takes no other task."""
    for _ in range(TELL_ATTEMPTS):
        if address not in client.nthreads():
            return
        try:
            post.fail(reason).result(timeout=TELL_SECONDS)
            return
        except RuntimeError:  # Dask's of an actor that is lost
            return
        except OSError:  # also TimeoutError
            continue
