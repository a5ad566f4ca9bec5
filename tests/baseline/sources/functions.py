"""Functions of one and two numbers over the range of each floating dtype, in every way of running (tests/functions).

The ways that make machine code, for the least fast target too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import test_functions
from function_inputs import FLOATS
from function_ways import WAYS

import opwright as ow

from ..execution import outcome
from ..outcomes import Entry, inputs_digest
from .files import TARGETS

COUNT = 60
"""Magnitudes of each kind, about a quarter as many as in the tests; limits and special points are complete."""
INTERPRETED = ("eager", "traced", "lite")


def keys() -> list[str]:
    """The functions of the tables."""
    return [row.name for row in test_functions.ROWS]


def entries(key: str, name: str) -> Iterator[Entry]:
    """The entries of a function."""
    row = next(r for r in test_functions.ROWS if r.name == key)
    for dtype in FLOATS:
        arrays = test_functions.operands(row, dtype, COUNT)
        of = inputs_digest(arrays)
        for way, run in WAYS.items():
            if way == "kernel_on_arrays" and dtype != "float32":
                continue  # its arrays are float32
            for target in TARGETS[: 1 if way in INTERPRETED else None]:
                label = way if way in INTERPRETED else f"{way}-{target}"
                yield outcome(f"{name}/{dtype}/{label}", _run(run, row.function, arrays, target), of)


def _run(
    run: Callable[..., np.ndarray], function: Any, arrays: tuple[np.ndarray, ...], target: str
) -> Callable[[], list[np.ndarray]]:
    def result() -> list[np.ndarray]:
        with ow.flags(target=target):
            return [run(function, *arrays)]

    return result
