"""Rows of operators that make tensors of a few numbers, sort and add up by place (see drawn.Row).

Lives here: BROADCAST_ARGS to TOPK_V2, of every type that an official kernel takes, without scales.
Not here: operators that move elements (drawn_rows_movement.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from drawn import Draw, Drawn, Row, plain
from drawn_rows_movement import SIX, WIDE, data, places, sizes

INTEGERS = ("INT32", "INT64")
FIVE = ("FLOAT32", "INT8", "UINT8", "INT32", "INT64")


def broadcast_args(d: Draw) -> Drawn:
    whole = [d.size(0, 4) for _ in range(d.size(0, 6))]
    parts = []
    for _ in range(2):
        kept = whole[d.size(0, len(whole)) :]
        parts.append([d.one(1, n, n) for n in kept])
    return Drawn([places(d, part, d.kind) for part in parts], [plain(d.kind)])


def fill(d: Draw) -> Drawn:
    shape = sizes(d, 0, 6)
    return Drawn([places(d, shape), data(d)], [plain(d.kind)])


def fill_nothing(d: Draw) -> Drawn:
    return Drawn([places(d, [*sizes(d, 0, 3), 0], fixed=True), data(d)], [plain(d.kind)])


def numbers(d: Draw) -> Drawn:
    """Floats of few bits, so that how often one fits is no matter of rounding."""
    start, delta = d.size(-9, 9), d.one(-3, -2, -1, 1, 2, 3)
    ends = (start, start + delta * d.size(1, 12) - d.one(0, 1) * (1 if delta > 0 else -1), delta)
    scale = d.one(0.25, 1.0, 8.0) if d.kind == "FLOAT32" else 1
    return Drawn([places(d, scale * v, d.kind) for v in ends], [plain(d.kind)])


def tenths(d: Draw) -> Drawn:
    """Steps that float32 does not hold: what is added up differs from what is multiplied."""
    delta = d.one(0.1, 0.01, 1 / 3, 0.7) * d.one(-1, 1)
    start = float(d.rng.uniform(-9, 9))
    ends = (start, start + delta * (d.size(1, 200) + 0.5), delta)
    return Drawn([places(d, v, "FLOAT32") for v in ends], [plain("FLOAT32")])


def one_hot(d: Draw) -> Drawn:
    """Indices that are out of range, too."""
    shape, depth = sizes(d, 0, 5), d.size(1, 5)
    indices = places(d, d.rng.integers(-1, depth + 1, shape), *INTEGERS)
    axis = d.one(-1, d.size(0, len(shape)))
    return Drawn([indices, places(d, depth, "INT32"), data(d), data(d)], [plain(d.kind)], {"axis": axis})


def segment_sum(d: Draw) -> Drawn:
    shape = sizes(d, 1, 5)
    ids = np.cumsum([0, *d.rng.integers(0, 2, shape[0] - 1)])  # officially none may be without rows
    return Drawn([data(d, *shape), places(d, ids, "INT32")], [plain(d.kind)])


def unsorted(d: Draw) -> Drawn:
    """Ids below 0 are left out."""
    shape, count = sizes(d, 1, 5), d.size(1, 5)
    ids = d.rng.integers(-1, count, shape[: d.size(1, len(shape))])
    return Drawn([data(d, *shape), places(d, ids, "INT32"), places(d, count, "INT32")], [plain(d.kind)])


def top(kind: str) -> Callable[[Draw], Drawn]:
    """Numbers with repetition; indices of that type."""

    def draw(d: Draw) -> Drawn:
        shape = sizes(d, 1, 5)
        x = d.t(*shape, low=-3, high=3)
        return Drawn([x, places(d, d.size(1, shape[-1]), "INT16", "INT32")], [plain(d.kind), plain(kind)])

    return draw


ROWS = [
    Row("BROADCAST_ARGS", INTEGERS, broadcast_args),
    Row("FILL", (*WIDE, "STRING"), fill),
    Row("FILL", WIDE, fill_nothing, label="FILL with nothing"),
    Row("RANGE", ("FLOAT32", *INTEGERS), numbers),
    Row("RANGE", ("FLOAT32",), tenths, label="RANGE in tenths"),
    Row("ONE_HOT", (*FIVE, "BOOL"), one_hot),
    Row("SEGMENT_SUM", ("FLOAT32", "INT32"), segment_sum, path="OPT"),  # the reference kernels do not register it
    *(Row(f"UNSORTED_SEGMENT_{what}", ("FLOAT32", "INT32"), unsorted) for what in ("SUM", "PROD", "MAX", "MIN")),
    *(Row("TOPK_V2", SIX, top(k), label=f"TOPK_V2 plain, indices {k.lower()}") for k in ("INT32", "INT16")),
]
