"""Communicators: what data-parallel programs need of an engine, and sums in a fixed order over it.

Lives here: `Communicator`, `LocalCommunicator`, `WorkerLostError`; all-reduce and others over an exchange of arrays.
Not here: MPI (mpi.py), Ray and Dask (mailboxes.py), operators in functions (collectives.py).

An engine moves bytes, it never adds: sums run here, by rank, ((x_0 + x_1) + x_2) + ..., so that a result depends on the
number of workers but not on which message came first. An all-reduce is a reduce-scatter and an all-gather (Thakur,
Rabenseifner and Gropp, 2005): each worker sums one part for all, and every worker gets the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import UnavailableError
from ..ops.array_functions import merge
from .hosts import host_id

SHORT, PACKED = 1 << 15, 1 << 18
"""Bytes below which an all-reduce gathers whole arrays, one exchange instead of two; and below which arrays are copied
next to each other, to be one message."""
TIMEOUT = 600.0
"""Seconds that a worker waits for the others by default."""

Messages = Sequence[Sequence[np.ndarray]]
"""Arrays by worker."""
Rows = tuple[np.ndarray, np.ndarray]
"""Indices [n] and values [n, ...] of sparse rows."""


class WorkerLostError(UnavailableError):
    """A worker of a data-parallel program ended, or did not answer in time: training resumes from a checkpoint."""


class Communicator:
    """The workers of a data-parallel program, and the exchange of arrays between them.

    rank: number of this worker, 0 to size - 1. size: number of workers. timeout: seconds to wait for the others.
    A communicator of another engine overrides `exchange`, and what else the engine does better. Every worker calls the
    same methods in the same order, from one thread at a time.
    """

    rank: int = 0
    size: int = 1
    timeout: float = TIMEOUT

    def exchange(self, sent: Messages, received: Messages) -> None:
        """Send the arrays sent[r] to worker r, and receive received[r] from it, for all r but this worker's own.

        sent, received: C-contiguous arrays by worker, of sizes that the two agree on; of size 0 they may be left out.
        raises WorkerLostError
        """
        raise NotImplementedError(f"{type(self).__name__} has no exchange(sent, received)")

    def broadcast(self, array: np.ndarray, root: int = 0) -> None:
        """Overwrite an array by that of worker `root`. Raises WorkerLostError."""
        nothing: list[Sequence[np.ndarray]] = [()] * self.size
        if self.rank == root:
            self.exchange([[array]] * self.size, nothing)
        else:
            self.exchange(nothing, [[array] if r == root else () for r in range(self.size)])

    def all_gather(self, array: np.ndarray) -> np.ndarray:
        """Return the arrays of all workers, of equal shapes, by rank: [size, ...]. Raises WorkerLostError."""
        array = np.asarray(array, order="C")
        gathered = np.empty((self.size, *array.shape), array.dtype)
        gathered[self.rank] = array
        self.exchange([[array]] * self.size, [[gathered[r, ...]] for r in range(self.size)])
        return gathered

    def all_to_all(self, parts: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
        """Send the arrays parts[r] to worker r; return those received, by rank. They differ in their first axes only.

        raises WorkerLostError
        """
        lengths = self.all_gather(np.array([[len(a) for a in arrays] for arrays in parts], np.int64))[:, self.rank]
        kinds = [(a.shape[1:], a.dtype) for a in parts[self.rank]]
        sent = [[np.asarray(a, order="C") for a in arrays] for arrays in parts]
        received = [[np.empty((int(n), *shape), dtype) for n, (shape, dtype) in zip(row, kinds)] for row in lengths]
        received[self.rank] = sent[self.rank]
        self.exchange(sent, received)
        return received

    def all_reduce(self, arrays: Sequence[np.ndarray], divisor: float = 1) -> list[np.ndarray]:
        """Return the sums over all workers, added by rank, divided by `divisor`. Raises WorkerLostError."""
        return self.all_reduce_with_rows(arrays, [], divisor)[0]

    def all_reduce_with_rows(
        self, arrays: Sequence[np.ndarray], rows: Sequence[Rows], divisor: float = 1
    ) -> tuple[list[np.ndarray], list[Rows]]:
        """Return the sums over all workers of arrays and of sparse rows, by the same messages.

        rows: indices [n] and values [n, ...], with n of its own on each worker; the sums have each index once,
        ascending. raises WorkerLostError
        """
        flats, owners = packed(arrays)
        if self.size == 1:
            sums = [f.copy() for f in flats]
            merged = [merge(np.asarray(i), np.asarray(v)) for i, v in rows]
        elif not rows and len(flats) == 1 and flats[0].nbytes <= SHORT:
            sums, merged = [summed(self.all_gather(flats[0]))], []
        else:
            sums, merged = self._all_reduced(flats, rows, divisor)
            divisor = 1
        if divisor != 1:
            sums = [divided(s, divisor) for s in sums]
            merged = [(i, divided(v.copy(), divisor)) for i, v in merged]
        return unpacked(sums, owners, arrays), merged

    def _all_reduced(
        self, flats: Sequence[np.ndarray], rows: Sequence[Rows], divisor: float
    ) -> tuple[list[np.ndarray], list[Rows]]:
        """Sum by a reduce-scatter and an all-gather, rows travel with the first; two workers sum all in one exchange,
        of as many bytes."""
        size, rank = self.size, self.rank
        once = size == 2
        bounds = [[f.size * r // size for r in range(size + 1)] for f in flats]
        sent = [[f if once else f[b[r] : b[r + 1]] for f, b in zip(flats, bounds)] for r in range(size)]
        received = [[p if r == rank else np.empty_like(p) for p in sent[rank]] for r in range(size)]
        summands = [list(parts) for parts in zip(*received)]
        gathered: list[Rows] = []
        if rows:
            lengths = self.all_gather(np.array([len(i) for i, _ in rows], np.int64))
            for (indices, values), counts in zip(rows, lengths.T):
                ends = np.cumsum(counts)
                pair = np.empty(ends[-1], indices.dtype), np.empty((ends[-1], *values.shape[1:]), values.dtype)
                own = np.asarray(indices, order="C"), np.asarray(values, order="C")
                for r, (start, end) in enumerate(zip(ends - counts, ends)):
                    places = pair[0][start:end], pair[1][start:end]
                    if r == rank:
                        places[0][...], places[1][...] = own
                    sent[r] += own
                    received[r] += places
                gathered.append(pair)
        self.exchange(sent, received)
        if once:
            totals = [divided(summed(parts, parts[1 - rank]), divisor) for parts in summands]
        else:
            totals = [np.empty_like(f) for f in flats]
            parts = [[t[b[r] : b[r + 1]] for t, b in zip(totals, bounds)] for r in range(size)]
            for part, collected in zip(parts[rank], summands):
                divided(summed(collected, part), divisor)
            self.exchange([parts[rank]] * size, parts)
        merged = [merge(i, v) for i, v in gathered]
        return totals, [(i, divided(v, divisor)) for i, v in merged]

    def barrier(self) -> None:
        """Wait until all workers call it. Raises WorkerLostError."""
        self.all_gather(np.zeros((), np.int8))

    def local_size(self) -> int:
        """Return the number of workers on this host. Raises WorkerLostError."""
        if self.size == 1:
            return 1
        digest = np.frombuffer(hashlib.sha256(host_id().encode()).digest(), np.uint8)
        return int((self.all_gather(digest) == digest).all(1).sum())

    def abort(self, error: BaseException) -> None:
        """Let the other workers end: this one has failed and leaves the collectives they wait in."""


class LocalCommunicator(Communicator):
    """The communicator of one worker: a strategy over it trains as without one."""

    def exchange(self, sent: Messages, received: Messages) -> None:
        """Return: there is no other worker."""


def packed(arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[list[int]]]:
    """Return flat arrays, the small ones of a dtype as one, and by each the indices of the arrays in it."""
    small: dict[Any, list[int]] = {}
    large = []
    for i, a in enumerate(arrays):
        if a.nbytes < PACKED:
            small.setdefault(a.dtype, []).append(i)
        else:
            large.append([i])
    owners = [*small.values(), *large]
    flat = [[np.asarray(arrays[i], order="C").reshape(-1) for i in indices] for indices in owners]
    return [f[0] if len(f) == 1 else np.concatenate(f) for f in flat], owners


def unpacked(
    flats: Sequence[np.ndarray], owners: Sequence[Sequence[int]], like: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Return the arrays of `packed`, each with memory of its own, in the shapes of `like`."""
    results: list[Any] = [None] * len(like)
    for flat, indices in zip(flats, owners):
        offset = 0
        for i in indices:
            part = flat[offset : offset + like[i].size]
            results[i] = np.array(part).reshape(like[i].shape) if len(indices) > 1 else part.reshape(like[i].shape)
            offset += part.size
    return results


def summed(arrays: Sequence[np.ndarray] | np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return ((x_0 + x_1) + x_2) + ... in `out`, by default x_0. 16-bit floats are added in float32.

    out: none of the arrays but x_0 or x_1
    """
    total = arrays[0]
    out = total if out is None else out
    if total.dtype.itemsize < 4 and total.dtype.kind not in "iub":
        out[...] = summed([x.astype(np.float32) for x in arrays])
        return out
    for x in arrays[1:]:
        total = np.add(total, x, out=out)
    return total


def divided(array: np.ndarray, divisor: float) -> np.ndarray:
    """Divide an array in place, and return it."""
    if divisor != 1:
        np.divide(array, array.dtype.type(divisor), out=array, casting="unsafe")
    return array
