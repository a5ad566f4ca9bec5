"""What the operators on sequences share: checks of what they are given, and where the rows of sequences are.

Lives here: arrays made of offsets, once for all sequences; reductions of each sequence; rules of inference.
Not here: the operators (the other modules of this package), LoDs of several levels (core/lod.py).

Sequences are stretches of packed rows: sequence i has the rows offsets[i] to offsets[i + 1]. Any may be empty, all
too. Widths come from the dimensions of a row, never from a division by the number of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes, lod
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape
from ...core.specs import TensorSpec
from .. import like_device

HALVES = (dtypes.float16.np, dtypes.bfloat16.np)
# A sequence of so many numbers is reduced by itself, the others together by `reduceat`, which takes 0.9 ns or more for
# each number where NumPy's own loop takes 0.2, but 2 us to begin. The size of a sequence alone decides, since the two
# add in another order: whatever else is in a batch, its sum has the same bits. [2661, 128] in 64: 160 us, not 310.
LONG = 2560


def wide(x: np.ndarray) -> np.ndarray:
    """x, in float32 where it has 16 bits, in which NumPy computes slowly and adds up badly."""
    return x.astype(np.float32) if x.dtype in HALVES else x


# ---- checks ----------------------------------------------------------------------------------------------------------


def lengths_of(offsets: np.ndarray, rows: int | None = None, of: str = "x") -> np.ndarray:
    """The length of each sequence.

    raises InvalidArgumentError where the offsets do not start at 0, fall, or do not end at the number of rows
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


def check_rank(found: int | None, least: int, of: str = "x") -> None:
    """Raises InvalidArgumentError for a rank below `least`; None, not known, passes."""
    if found is not None and found < least:
        raise InvalidArgumentError(
            what=f"input {of!r} has too few dimensions",
            found=f"rank {found}",
            wanted=f"rank {least} or more: [rows, ...]",
        )


def check_width_one(shape: Any, of: str = "x") -> None:
    """Raises InvalidArgumentError where rows are not one number each, as [n, 1]."""
    if shape.rank is not None and (shape.rank != 2 or shape[1] not in (1, None)):
        raise InvalidArgumentError(
            what=f"input {of!r} has not one number in each row",
            found=f"shape {shape}",
            wanted="shape [rows, 1]",
            do="ow.reshape(..., [-1, 1])",
        )


def check_widths(found: dict[str, Any]) -> None:
    """Raises InvalidArgumentError where shapes, by name, differ behind their first dimension."""
    first = None
    for name, shape in found.items():
        shape = TensorShape(shape)
        if shape.rank is None:
            continue
        row = TensorShape(shape[1:])
        if first is None:
            first = row
        elif not first.is_compatible_with(row):
            raise InvalidArgumentError(
                what=f"the rows of {name} have another shape than those before", found=found, wanted="rows of one shape"
            )


# ---- inference -------------------------------------------------------------------------------------------------------


def count(offsets: Any) -> int | None:
    """The number of sequences, where known. offsets: as `infer` has them, two or more."""
    n = offsets.spec.shape[0]
    if n is not None and n < 2:
        raise InvalidArgumentError(what="there are too few offsets", found=n, wanted="two or more, the first 0")
    return None if n is None else n - 1


def rows_like(x: Any, rows: int | None) -> TensorSpec:
    """The spec of other rows such as those of x."""
    spec = x.spec
    check_rank(spec.shape.rank, 1)
    return TensorSpec(UNKNOWN if spec.shape.rank is None else [rows, *spec.shape[1:]], spec.dtype)


def offsets_like(offsets: Any) -> TensorSpec:
    """The spec of as many offsets."""
    return TensorSpec([offsets.spec.shape[0]], dtypes.int64)


# ---- places of rows --------------------------------------------------------------------------------------------------


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Offsets from lengths."""
    offsets = like_device.zeros(lengths, len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def owners(lengths: np.ndarray) -> np.ndarray:
    """For each row the sequence it is in."""
    return np.repeat(like_device.arange(lengths, len(lengths)), lengths)


def windows(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The rows starts[i], starts[i] + 1, ... of each i, lengths[i] of them, one after another."""
    offsets = offsets_of(lengths)
    array: np.ndarray = np.repeat(starts - offsets[:-1], lengths) + like_device.arange(lengths, int(offsets[-1]))
    return array


# ---- each sequence to one row ----------------------------------------------------------------------------------------


def reduced(ufunc: np.ufunc, x: np.ndarray, offsets: np.ndarray, lengths: np.ndarray, empty: Any) -> np.ndarray:
    """`ufunc` over the rows of each sequence, `empty` where there are none; sums of 16-bit floats as float32."""
    x = wide(x)
    if not like_device.on_host(x):
        from ..math.segment import reduce_rows

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
    """values [n] as [n, 1, ...], with the rank of x."""
    return values.reshape(-1, *[1] * (x.ndim - 1))
