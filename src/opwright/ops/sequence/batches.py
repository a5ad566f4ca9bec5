"""What the recurrent operators share: the order of their work, their activations.

Lives here: `TimeBatches`, activations in place and their slopes.  Not here: the recurrences (lstm.py, gru.py).

Sequences are sorted by length, the longest first. The rows of step t of all that are so long follow each other, step
after step: one matrix product serves a step, and no step works on a sequence that has ended. Nothing is padded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .. import like_device
from .segments import lengths_of


class TimeBatches:
    """The order by steps of packed rows.

    order: sequences, the longest first. rows: int64 [rows], for each place of this order the row of x that is there.
    sizes: how many sequences each step has. starts: where the rows of each step begin, and the end.
    reverse: sequences are walked from their ends; results stand where the rows do.
    """

    def __init__(self, offsets: np.ndarray, reverse: bool, rows: int, of: str = "x") -> None:
        near = offsets
        if not like_device.on_host(offsets):  # how many sequences each step has is for the host, which counts the steps
            offsets = np.array(offsets.tolist(), np.int64)
        lengths = lengths_of(offsets, rows, of)
        self.order = np.argsort(-lengths, kind="stable")
        steps = np.arange(lengths.max())
        self.sizes = len(lengths) - np.searchsorted(lengths[self.order][::-1], steps, side="right")
        self.starts = np.zeros(len(steps) + 1, np.int64)
        np.cumsum(self.sizes, out=self.starts[1:])
        rank = np.arange(rows) - np.repeat(self.starts[:-1], self.sizes)
        step = np.repeat(steps, self.sizes)
        places = (offsets[1:] - 1)[self.order][rank] - step if reverse else offsets[:-1][self.order][rank] + step
        self.order, self.rows = like_device.array(near, self.order), like_device.array(near, places)

    @property
    def active(self) -> np.ndarray:
        """The sequences that have rows, the longest first."""
        return self.order[: self.sizes[0]] if len(self.sizes) else self.order[:0]

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """For each step where its rows begin, where they end, and how many sequences go on after it."""
        ends = self.starts[1:].tolist()
        return iter(zip(self.starts[:-1].tolist(), ends, [*self.sizes[1:].tolist(), 0]))

    def before(self, state: np.ndarray, first: np.ndarray | None) -> np.ndarray:
        """For each place the state of its sequence one step before. first: [sequences, d], else zeros."""
        found = np.empty_like(state)
        n = int(self.sizes[0]) if len(self.sizes) else 0
        found[:n] = 0 if first is None else first[self.active]
        places = np.arange(n, len(state)) - np.repeat(self.sizes[:-1], self.sizes[1:])
        found[n:] = state.take(like_device.array(state, places), 0)
        return found

    def sort(self, x: np.ndarray) -> np.ndarray:
        """Packed rows by steps."""
        array: np.ndarray = x.take(self.rows, 0)
        return array

    def restore(self, x: np.ndarray) -> np.ndarray:
        """Rows by steps where they stand in the packed tensor."""
        found = np.empty_like(x)
        found[self.rows] = x
        return found

    def spread(self, state: np.ndarray, n: int) -> np.ndarray:
        """[n, d]: values of the sequences that have rows, zeros for the others."""
        found = like_device.zeros(state, (n, state.shape[1]), state.dtype)
        found[self.active] = state
        return found


# ---- activations -----------------------------------------------------------------------------------------------------

HIGHEST = 13.0  # the exponents of models trained elsewhere end here: above it a gate is held at sigmoid(13)


def _sigmoid(x: np.ndarray) -> None:
    np.minimum(x, HIGHEST, out=x)
    np.negative(x, out=x)
    np.exp(x, out=x)
    x += 1.0
    np.reciprocal(x, out=x)


def _tanh(x: np.ndarray) -> None:
    np.tanh(x, out=x)


def _relu(x: np.ndarray) -> None:
    np.maximum(x, 0.0, out=x)


def _identity(x: np.ndarray) -> None:
    pass


ACTIVATIONS: dict[str, Callable[[np.ndarray], None]] = {
    "sigmoid": _sigmoid,
    "tanh": _tanh,
    "relu": _relu,
    "identity": _identity,
}

SLOPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # from what the activation gave
    "sigmoid": lambda y: y * (1.0 - y),
    "tanh": lambda y: 1.0 - y * y,
    "relu": lambda y: (y > 0.0).astype(y.dtype),
    "identity": np.ones_like,
}
