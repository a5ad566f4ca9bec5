"""Kernels that write several arrays in place: machine code for every target, ends of blocks, rows.

Lives here: their code and their sizes.  Not here: steps of optimizers (tests/optimizers/test_optimizers_compiled.py).
"""

from __future__ import annotations

import numpy as np
import pytest
from foreign import EACH

from opwright.compiler.kernels.updates import rows_pattern, update_elements, update_rows
from opwright.compiler.lowering.updates import rows_rule
from opwright.compiler.native import executor
from opwright.compiler.target import NAMED
from opwright.core.dtypes import float32

PATTERN, WORDS = rows_pattern(*rows_rule("momentum", float32), float32, 2, True)


def run(code, arguments, items):
    words = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
    assert executor.call(code.address, np.array(words, np.int64), 0, items) == 0


@pytest.mark.parametrize("name", EACH)
def test_they_compile_for_every_target(name):
    target = NAMED[name]
    for module in (
        update_elements.emit(target, pattern=PATTERN.step, more=WORDS),
        update_rows.emit(target, pattern=PATTERN, more=WORDS),
    ):
        assert len(target.object_code(str(module))) > 100


@pytest.mark.parametrize("n", [1, 7, 8, 9, 31, 64, 100, 131])
@pytest.mark.parametrize("block", [64, 200])
def test_every_element_is_updated_once_and_none_beyond(n, block):
    """u = 0.5 u - 0.25 g; w + u, in numbers that float32 represents."""
    w, u, g = (np.arange(n + 16, dtype="f4") * k for k in (1, 2, 4))
    rate, momentum = np.float32([0.25]), np.float32([0.5])
    run(update_elements.code(pattern=PATTERN.step, more=WORDS), [n, block, w, u, g, rate, momentum], -(-n // block))
    i = np.arange(n + 16)
    inside = i < n
    np.testing.assert_array_equal(u, np.where(inside, 0.5 * (2 * i) - 0.25 * (4 * i), 2 * i))
    np.testing.assert_array_equal(w, np.where(inside, i + u, i))


@pytest.mark.parametrize("rows", [[], [0], [4], [1, 2], [0, 1, 2, 3, 4]], ids=str)
@pytest.mark.parametrize("width", [1, 5, 33])
def test_rows_meet_their_gradient_and_others_none(rows, width):
    height = 5
    w, u = np.ones((height, width), "f4"), np.full((height, width), 8, "f4")
    g = np.full((max(len(rows), 1), width), 4, "f4")
    places = np.array([*rows, height])
    numbers = np.float32([0.25]), np.float32([0.5])
    run(update_rows.code(pattern=PATTERN, more=WORDS), [places, height, width, w, u, g, *numbers], 1)
    has_gradient = np.isin(np.arange(height), rows)[:, None] & np.ones((1, width), bool)
    np.testing.assert_array_equal(u, np.where(has_gradient, 4 - 1, 4))
    np.testing.assert_array_equal(w, 1 + u)
