"""Sums over many rows are as accurate as those along a row."""

import numpy as np
import pytest

from opwright.ops.accumulation import mean_over, sum_over


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((100_003, 3), (0,)),
        ((257, 5), (0,)),
        ((40, 50, 60, 2), (2, 0, 1)),
        ((30, 40, 50, 3), (0, -3)),
        ((400_000,), (0,)),
    ],
)
def test_sums_of_equal_elements(shape, axis, keepdims):
    x = np.full(shape, 1.1, np.float32)
    count = np.prod([shape[a] for a in axis])
    total = sum_over(x, axis, x.dtype, keepdims)
    assert total.shape == np.sum(x, axis, keepdims=keepdims).shape
    assert total.dtype == np.float32
    np.testing.assert_allclose(total, count * np.float64(x.flat[0]), 2e-6)  # one after the other: 1e-3
    np.testing.assert_allclose(mean_over(x, axis, x.dtype, keepdims), x.flat[0], 2e-6)


def test_each_row_is_added_once():
    x = np.random.default_rng(3).integers(0, 9, (64 * 64 * 5 + 77, 2)).astype(np.float32)  # sums are exact
    np.testing.assert_array_equal(sum_over(x, (0,), x.dtype), x.astype(np.float64).sum(0))
    np.testing.assert_array_equal(sum_over(x.T, (1,), x.dtype), x.astype(np.float64).sum(0))
