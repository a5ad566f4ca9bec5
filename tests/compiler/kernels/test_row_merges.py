"""Sparse rows merged by machine code have the bits of sums in the order of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from opwright.compiler import merge_calls
from opwright.ops import array_functions

ROWS = [  # rows, height of the table, width, dtypes
    (300, 10, 5, np.float64, np.int64),
    (700, 1, 9, np.float32, np.int32),
    (900, 1 << 11, 17, np.float32, np.int32),  # two digits: the highest row is one above the last of one digit
    (900, (1 << 31) - 2, 4, np.float32, np.int64),
    (256, 40, 64, np.float32, np.int64),
]


@pytest.mark.parametrize(("n", "height", "width", "dtype", "index"), ROWS)
def test_rows_are_summed_in_their_order(n, height, width, dtype, index):
    rng = np.random.default_rng(n)
    indices = rng.integers(0, height, n).astype(index)
    indices[[3, n // 2]] = height - 1
    values = rng.standard_normal((n, width)).astype(dtype)
    result = merge_calls.merged_rows(indices, values)
    assert result is not None
    rows, inverse = np.unique(indices, return_inverse=True)
    sums = np.full((len(rows), width), -0.0, dtype)
    np.add.at(sums, inverse, values)
    np.testing.assert_array_equal(result[0], rows)
    np.testing.assert_array_equal(result[1].view(np.uint8), sums.view(np.uint8))
    assert [a.dtype for a in result] == [np.dtype(index), np.dtype(dtype)]


@pytest.mark.parametrize(
    ("indices", "values"),
    [
        (np.arange(9, 0, -1), np.ones((9, 8), np.float32)),
        (np.arange(300, 0, -1), np.ones((300, 3), np.float32)),
        (np.arange(300, 0, -1), np.ones((300, 8), np.float16)),
        (np.arange(300, 0, -1).astype(np.int16), np.ones((300, 8), np.float32)),
        (np.arange(200, -100, -1), np.ones((300, 8), np.float32)),
        (np.arange(300, 0, -1), np.ones((8, 300), np.float32).T),
        (np.full(300, 1 << 31), np.ones((300, 8), np.float32)),
    ],
    ids=["few", "narrow", "half", "int16", "negative", "columns", "high"],
)
def test_other_rows_are_left_to_numpy(indices, values):
    assert merge_calls.merged_rows(indices, values) is None


def test_merge_calls_the_kernel_for_rows_that_do_not_ascend():
    array_functions.set_merge_kernel(lambda indices, values: (indices[:1], values[:1]))
    try:
        assert len(array_functions.merge(np.array([2, 1]), np.ones((2, 4)))[0]) == 1
        assert len(array_functions.merge(np.array([1, 2]), np.ones((2, 4)))[0]) == 2
        array_functions.set_merge_kernel(lambda indices, values: None)
        assert array_functions.merge(np.array([2, 1]), np.ones((2, 4)))[0].tolist() == [1, 2]
    finally:
        array_functions.set_merge_kernel(None)
