"""Segments of packed rows: checks, index arrays and reductions for all sequence operators; their order by time step.

Lives here: index arrays derived from offsets; reductions per sequence; inference rules; for the recurrent operators
`TimeBatches`, in-place activations and their derivatives.
Not here: the operators (the other modules of this package), LoDs of several levels (core/lod.py).

Sequence i consists of rows offsets[i] to offsets[i + 1] of the packed tensor. Any sequence may be empty, and all may
be. Widths are derived from the dimensions of a row, never by division by the number of rows.

For a recurrence, sequences are sorted by descending length, and their rows by time step: a step of all active sequences
is contiguous and needs one matrix product. Nothing is padded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...core import dtypes, lod
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape
from ...core.specs import TensorSpec
from .. import like_device
from ..accumulation import widened
from ..math.segment import reduce_rows

# Sequences of at least this many numbers are reduced one by one, the others together by `reduceat`, which takes 0.9 ns
# per number; NumPy's reduce takes 0.2 ns, but 2 us per call. Only the size of the sequence decides, as the two add in
# different orders: the bits of a sum do not depend on the batch. [2661, 128] in 64: 160 us instead of 310.
LONG = 2560


# ---- checks ----------------------------------------------------------------------------------------------------------


def lengths_of(offsets: np.ndarray, rows: int | None = None, of: str = "x") -> np.ndarray:
    """Return the length of each sequence.

    raises InvalidArgumentError unless the offsets begin with 0, ascend and end with the number of rows
    """
    lengths = offsets[1:] - offsets[:-1]
    if offsets.size < 2 or offsets[0] or (rows is not None and offsets[-1] != rows) or lengths.min() < 0:
        why = lod.wrong((offsets,), rows)
        raise InvalidArgumentError(
            what=f"the offsets of {of!r} are not those of its rows: {why}",
            found=offsets.tolist() if len(offsets) <= 12 else f"{len(offsets)} offsets",
            wanted="offsets from 0 up that end at the number of rows",
        )
    array: np.ndarray = lengths
    return array


def check_rank(rank: int | None, min_rank: int, of: str = "x") -> None:
    """Raise InvalidArgumentError for a rank below `min_rank`. rank: None if unknown."""
    if rank is not None and rank < min_rank:
        raise InvalidArgumentError(
            what=f"input {of!r} has too few dimensions",
            found=f"rank {rank}",
            wanted=f"rank {min_rank} or more: [rows, ...]",
        )


def check_width_one(shape: Any, of: str = "x") -> None:
    """Raise InvalidArgumentError for a shape other than [n, 1]."""
    if shape.rank is not None and (shape.rank != 2 or shape[1] not in (1, None)):
        raise InvalidArgumentError(
            what=f"input {of!r} has not one number in each row",
            found=f"shape {shape}",
            wanted="shape [rows, 1]",
            do="ow.reshape(..., [-1, 1])",
        )


def check_widths(shapes: dict[str, Any]) -> None:
    """Raise InvalidArgumentError if shapes, by name, differ after their first dimension."""
    first = None
    for name, shape in shapes.items():
        shape = TensorShape(shape)
        if shape.rank is None:
            continue
        row = TensorShape(shape[1:])
        if first is None:
            first = row
        elif not first.is_compatible_with(row):
            raise InvalidArgumentError(
                what=f"the rows of {name} have another shape than those before",
                found=shapes,
                wanted="rows of one shape",
            )


# ---- inference -------------------------------------------------------------------------------------------------------


def count(offsets: Any) -> int | None:
    """Infer the number of sequences. offsets: an operand. Raises InvalidArgumentError for fewer than two offsets."""
    n = offsets.spec.shape[0]
    if n is not None and n < 2:
        raise InvalidArgumentError(what="there are too few offsets", found=n, wanted="two or more, the first 0")
    return None if n is None else n - 1


def rows_like(x: Any, rows: int | None) -> TensorSpec:
    """Infer the spec of `rows` rows of the shape and dtype of x's."""
    spec = x.spec
    check_rank(spec.shape.rank, 1)
    return TensorSpec(UNKNOWN if spec.shape.rank is None else [rows, *spec.shape[1:]], spec.dtype)


def offsets_like(offsets: Any) -> TensorSpec:
    """Infer the spec of as many offsets."""
    return TensorSpec([offsets.spec.shape[0]], dtypes.int64)


# ---- indices of rows -------------------------------------------------------------------------------------------------


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Convert lengths to offsets."""
    offsets = like_device.zeros(lengths, len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def owners(lengths: np.ndarray) -> np.ndarray:
    """Return the index of the sequence of each row."""
    return np.repeat(like_device.arange(lengths, len(lengths)), lengths)


def windows(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Concatenate the ranges of lengths[i] rows beginning at starts[i]."""
    offsets = offsets_of(lengths)
    array: np.ndarray = np.repeat(starts - offsets[:-1], lengths) + like_device.arange(lengths, int(offsets[-1]))
    return array


# ---- reductions ------------------------------------------------------------------------------------------------------


def reduced(ufunc: np.ufunc, x: np.ndarray, offsets: np.ndarray, lengths: np.ndarray, empty: Any) -> np.ndarray:
    """Reduce the rows of each sequence by `ufunc`; 16-bit floats in float32. empty: the value of empty sequences."""
    x = widened(x)
    if not like_device.on_host(x):
        return reduce_rows(ufunc, x, owners(lengths), len(lengths), empty)
    long = (lengths * (x.size // max(len(x), 1)) >= LONG).nonzero()[0]
    if not len(long) and lengths.all():
        return ufunc.reduceat(x, offsets[:-1], axis=0, dtype=x.dtype)
    out = like_device.full(x, (len(lengths), *x.shape[1:]), empty, x.dtype)
    for i, a, b in zip(long.tolist(), offsets[long].tolist(), offsets[long + 1].tolist()):
        ufunc.reduce(x[a:b], axis=0, dtype=x.dtype, out=out[i, ...])
    short = lengths > 0
    short[long] = False
    n = lengths[short]
    if len(n):
        starts, rows = offsets[:-1][short], x
        if len(long):
            rows, starts = x.take(windows(starts, n), 0), offsets_of(n)[:-1]
        out[short] = ufunc.reduceat(rows, starts, axis=0, dtype=x.dtype)
    return out


def as_column(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Reshape values [n] to [n, 1, ...], of the rank of x."""
    return values.reshape(-1, *[1] * (x.ndim - 1))


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
