"""The communicator of MPI, through mpi4py: arrays are sent from and received into their own memory.

Lives here: `MPICommunicator`.  Not here: sums (communicators.py), the launcher, which is `mpiexec`.
"""

from __future__ import annotations

import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import FailedPreconditionError
from .communicators import TIMEOUT, Communicator, Messages, WorkerLostError

if TYPE_CHECKING:
    from mpi4py import MPI

_TAG = 1177
_SPIN, _PAUSE = 5e-3, 2e-5
"""Seconds of polling without a pause, and of a pause: a worker that waits long leaves its core to others."""


class MPICommunicator(Communicator):
    """The processes of an MPI program: `mpiexec -n 4 python train.py`.

    comm: a communicator of mpi4py, COMM_WORLD by default, which is duplicated. timeout: seconds to wait for the others.
    raises FailedPreconditionError without mpi4py, or if MPI allows calls of one thread alone
    """

    def __init__(self, comm: MPI.Comm | None = None, timeout: float = TIMEOUT) -> None:
        try:
            from mpi4py import MPI
        except ImportError as error:
            raise FailedPreconditionError(
                op="MPICommunicator", what=f"MPI cannot be loaded: {error}", do="pip install 'opwright[mpi]'"
            ) from None
        if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
            raise FailedPreconditionError(
                op="MPICommunicator",
                what="MPI was initialised for one thread",
                wanted="THREAD_SERIALIZED or more",
                do="leave mpi4py.rc.thread_level as it is",
            )
        self._bytes, self._request = MPI.BYTE, MPI.Request
        self._comm = (MPI.COMM_WORLD if comm is None else comm).Dup()
        self.rank, self.size, self.timeout = self._comm.Get_rank(), self._comm.Get_size(), timeout

    def exchange(self, sent: Messages, received: Messages) -> None:
        """Implement Communicator."""
        requests = []
        for step in range(1, self.size):  # each worker starts with the next one, so that no one is asked by all at once
            source, target = (self.rank - step) % self.size, (self.rank + step) % self.size
            requests += [self._comm.Irecv(self._message(a), source, _TAG) for a in received[source] if a.size]
            requests += [self._comm.Isend(self._message(a), target, _TAG) for a in sent[target] if a.size]
        self._wait(requests)

    def all_gather(self, array: np.ndarray) -> np.ndarray:
        """Implement Communicator."""
        array = np.asarray(array, order="C")
        gathered = np.empty((self.size, *array.shape), array.dtype)
        self._wait([self._comm.Iallgather(self._message(array), self._message(gathered))])
        return gathered

    def broadcast(self, array: np.ndarray, root: int = 0) -> None:
        """Implement Communicator."""
        self._wait([self._comm.Ibcast(self._message(array), root)])

    def barrier(self) -> None:
        """Implement Communicator."""
        self._wait([self._comm.Ibarrier()])

    def abort(self, error: BaseException) -> None:
        """Print the error and end all processes of the program."""
        if self.size > 1:
            traceback.print_exception(error, file=sys.stderr)
            print(f"worker {self.rank} of {self.size} failed: the program ends", file=sys.stderr, flush=True)
            self._comm.Abort(1)

    def _message(self, array: np.ndarray) -> list[Any]:
        return [array.reshape(-1).view(np.uint8), self._bytes]

    def _wait(self, requests: list[Any]) -> None:
        start = time.monotonic()
        while not self._request.Testall(requests):
            waited = time.monotonic() - start
            if waited > self.timeout:
                raise WorkerLostError(
                    op="MPICommunicator",
                    what=f"worker {self.rank} has waited {waited:.0f} s for the other {self.size - 1}",
                    do="resume from the last checkpoint with mpiexec, on any number of workers",
                )
            if waited > _SPIN:
                time.sleep(_PAUSE)
