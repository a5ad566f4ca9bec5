"""Batching of sequences by time step, for the recurrent operators.

Lives here: `TimeBatches`, in-place activations and their derivatives.  Not here: the recurrences (lstm.py, gru.py).

Sequences are sorted by descending length, and their rows by time step: a step of all active sequences is contiguous and
needs one matrix product. Nothing is padded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .. import like_device
from .segments import lengths_of


class TimeBatches:
    """The order by time step of packed rows.

    order: sequences by descending length. rows: int64 [rows], the row of x at each position of the order.
    sizes: the number of sequences of each step. starts: the first position of each step, and the end.
    reverse: steps run from the ends of sequences; results keep the order of the rows.
    """

    def __init__(self, offsets: np.ndarray, reverse: bool, rows: int, of: str = "x") -> None:
        template = offsets
        if not like_device.on_host(offsets):  # sizes of steps are computed on the host, which runs the loop
            offsets = np.array(offsets.tolist(), np.int64)
        lengths = lengths_of(offsets, rows, of)
        self.order = np.argsort(-lengths, kind="stable")
        steps = np.arange(lengths.max())
        self.sizes = len(lengths) - np.searchsorted(lengths[self.order][::-1], steps, side="right")
        self.starts = np.zeros(len(steps) + 1, np.int64)
        np.cumsum(self.sizes, out=self.starts[1:])
        rank = np.arange(rows) - np.repeat(self.starts[:-1], self.sizes)
        step = np.repeat(steps, self.sizes)
        packed = (offsets[1:] - 1)[self.order][rank] - step if reverse else offsets[:-1][self.order][rank] + step
        self.order, self.rows = like_device.array(template, self.order), like_device.array(template, packed)

    @property
    def active(self) -> np.ndarray:
        """Return the nonempty sequences by descending length."""
        return self.order[: self.sizes[0]] if len(self.sizes) else self.order[:0]

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Iterate over steps: first and last position, and the number of sequences that continue."""
        ends = self.starts[1:].tolist()
        return iter(zip(self.starts[:-1].tolist(), ends, [*self.sizes[1:].tolist(), 0]))

    def before(self, state: np.ndarray, first: np.ndarray | None) -> np.ndarray:
        """Return the previous state at each position. first: initial states [sequences, d], or zeros."""
        previous = np.empty_like(state)
        n = int(self.sizes[0]) if len(self.sizes) else 0
        previous[:n] = 0 if first is None else first[self.active]
        positions = np.arange(n, len(state)) - np.repeat(self.sizes[:-1], self.sizes[1:])
        previous[n:] = state.take(like_device.array(state, positions), 0)
        return previous

    def sort(self, x: np.ndarray) -> np.ndarray:
        """Sort packed rows by time step."""
        array: np.ndarray = x.take(self.rows, 0)
        return array

    def restore(self, x: np.ndarray) -> np.ndarray:
        """Restore the packed order of rows sorted by time step."""
        packed = np.empty_like(x)
        packed[self.rows] = x
        return packed

    def spread(self, state: np.ndarray, n: int) -> np.ndarray:
        """Scatter values of the active sequences to [n, d]; zeros for empty sequences."""
        values = like_device.zeros(state, (n, state.shape[1]), state.dtype)
        values[self.active] = state
        return values


# ---- activations -----------------------------------------------------------------------------------------------------

MAX_SIGMOID_ARGUMENT = 13.0  # as in PaddlePaddle: larger arguments are clipped


def _sigmoid(x: np.ndarray) -> None:
    np.minimum(x, MAX_SIGMOID_ARGUMENT, out=x)
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

SLOPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # derivatives as functions of the activation's result
    "sigmoid": lambda y: y * (1.0 - y),
    "tanh": lambda y: 1.0 - y * y,
    "relu": lambda y: (y > 0.0).astype(y.dtype),
    "identity": np.ones_like,
}
