"""Slices at start vectors, gathered and scattered along any dimensions, against NumPy, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, targets

from opwright.compiler.kernels.slices import gather_slices, scatter_slices
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.indexing_ops import GatherSlices, ScatterSlices, SliceLayout
from opwright.core import dtypes

RNG = np.random.default_rng(31)
LAYOUTS: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], SliceLayout], ...] = (
    # shape, of a slice, of start vectors, layout
    ((5, 40), (2, 33), (3, 2), SliceLayout((0, 1), (1, 2), (0, 1))),
    ((5, 40), (2, 40), (3, 1), SliceLayout((0,), (1, 2), (0, 1))),  # rows are whole
    ((4, 3, 6), (1, 2, 3), (2, 5, 3), SliceLayout((2, 0, 1), (0, 3), (1, 2))),  # slices between their numbers
    ((7,), (1,), (9, 1), SliceLayout((0,), (), ())),
    ((3, 8), (3, 1), (4, 1), SliceLayout((1,), (0,), (0,))),
)


def _slices(shape: Any, sizes: Any, layout: SliceLayout) -> tuple[int, ...]:
    """The shape of an array of slices."""
    kept, batch = iter(sizes[d] for d in layout.kept), iter(shape[:-1])
    return tuple(next(kept) if d in layout.offsets else next(batch) for d in range(len(layout.kept) + len(shape) - 1))


def _place(index: tuple[int, ...], starts: np.ndarray, layout: SliceLayout, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """The start, and the place in its slice, of an element of an array of slices."""
    start, inside = np.zeros((2, rank), np.int64)
    start[list(layout.mapped)] = starts[tuple(n for d, n in enumerate(index) if d not in layout.offsets)]
    inside[list(layout.kept)] = [index[d] for d in layout.offsets]
    return start, inside


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.complex128])
@pytest.mark.parametrize("case", LAYOUTS, ids=str)
def test_slices_are_moved_inside_and_gathered(case: Any, dtype: Any) -> None:
    shape, sizes, vectors, layout = case
    x, starts = RNG.integers(-99, 99, shape).astype(dtype), RNG.integers(-2, 9, vectors).astype(np.int64)
    expected = np.empty(_slices(vectors, sizes, layout), dtype)
    for index in np.ndindex(expected.shape):
        start, inside = _place(index, starts, layout, len(shape))
        expected[index] = x[tuple(np.clip(start, 0, np.subtract(shape, sizes)) + inside)]
    a, b = buffer(x, "x"), buffer(starts, "starts")
    form = GatherSlices(Buffer("y", a.dtype, expected.shape), a, b, layout, sizes)
    np.testing.assert_array_equal(run(form, {a: x, b: starts}), expected)


JOINED = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "set": lambda a, b: b}


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("sum", np.float32),
        ("sum", np.float16),
        ("prod", np.int16),
        ("max", np.int64),
        ("min", np.uint8),
        ("set", np.float64),
    ],
)
@pytest.mark.parametrize("case", LAYOUTS, ids=str)
def test_updates_outside_are_left_out_and_others_come_in_order(case: Any, kind: str, dtype: Any) -> None:
    shape, sizes, vectors, layout = case
    expected, starts = RNG.integers(0, 9, shape).astype(dtype), RNG.integers(-2, 9, vectors).astype(np.int32)
    base, updates = expected.copy(), RNG.integers(0, 5, _slices(vectors, sizes, layout)).astype(dtype)
    for index in np.ndindex(updates.shape):
        place = tuple(np.add(*_place(index, starts, layout, len(shape))))
        if all(0 <= p < n for p, n in zip(place, shape)):
            expected[place] = JOINED[kind](expected[place], updates[index])
    a, b, c = buffer(base, "base"), buffer(updates, "updates"), buffer(starts, "starts")
    form = ScatterSlices(Buffer("y", a.dtype, shape), a, b, c, layout, kind)
    np.testing.assert_array_equal(run(form, {a: base, b: updates, c: starts}), expected)


@targets(
    (gather_slices, {"places": dtypes.int32, "components": 2, "axes": 3, "width": 16}),
    (
        scatter_slices,
        {
            "source": dtypes.float32,
            "places": dtypes.int64,
            "kind": "max",
            "axes": (-1, 1),
            "mapped": (0, 1),
            "rank": 3,
            "along": True,
        },
    ),
)
def test_slices_compile_for_every_target(family: Any, constants: Any, names: Any) -> None:
    compiles_for(names, family, **constants)
