"""Vectors at the end of a loop: what is read and written of arrays of any length, with any kind of masked access."""

import numpy as np
import pytest

import opwright as ow
from opwright.compiler import language as kl
from opwright.compiler.language import f32, i8, i16, i64, ptr, u8
from opwright.compiler.target import processor

LANES = 8


@kl.family
def doubled_tail(work, x: ptr[u8], y: ptr[u8], n: i64, *, dtype: object):
    """y = 2 x, for n elements, by vectors of which the last is partial."""
    source, target = x.cast(dtype, dtype.size), y.cast(dtype, dtype.size)
    for _ in work.items():
        for i in range(0, n, LANES):
            mask = kl.tail_mask(n - i, LANES)
            v = source.load(i, LANES, mask)
            target.store(v + v, i, mask)


@pytest.mark.parametrize("target", ["host", *(["x86-64-v2", "x86-64-v3"] if processor().has("avx2") else [])])
@pytest.mark.parametrize("dtype", [f32, i16, i8])
def test_the_tail_is_read_and_written_alone(dtype, target):
    with ow.flags(target=target):
        for n in (0, 1, 7, 8, 9, 16, 23):
            x = np.arange(1, n + 1).astype(dtype.np)
            y = np.full(n + 2 * LANES, 77, dtype.np)
            kl.call(doubled_tail.code(dtype=dtype), [x, y, n], items=1)
            np.testing.assert_array_equal(y[:n], 2 * x)
            assert (y[n:] == 77).all()
