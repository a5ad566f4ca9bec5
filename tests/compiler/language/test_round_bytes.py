"""Floats to bytes with a zero point: every way that targets have, at the ends, between two integers, not a number."""

import numpy as np
import pytest

from opwright.compiler import language as kl
from opwright.compiler.language import f32, i8, i32, i64, ptr, u8
from opwright.compiler.target import NAMED


@kl.family
def to_bytes(work, x: ptr[f32], y: ptr[i8], zero: i32, n: i64, *, count: int, unsigned: bool):
    for _ in work.items():
        for i in range(0, n, count):
            result = kl.round_bytes(kl.opaque(x.load(i, count)), zero, u8 if unsigned else i8)
            y.cast(u8 if unsigned else i8).store(result, i)


X = np.concatenate(
    [
        np.arange(-140, 140, 0.25),
        [np.nan, np.inf, -np.inf, 3e9, -3e9, 2147483648.0, -2147483648.0, 2147483520.0, 1e38, -0.0],
        np.random.default_rng(1).normal(0, 100, 900),
    ]
).astype(np.float32)
X = np.resize(X, -(-X.size // 64) * 64)


@pytest.mark.parametrize("zero", [0, 1, -128, 127, -7])
@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("count", [8, 16, 32, 64])
def test_round_bytes(zero, unsigned, count):
    zero += 128 * unsigned
    low, high = (0, 255) if unsigned else (-128, 127)
    expected = np.clip(np.rint(X.astype(np.float64)) + zero, low, high)
    expected[np.isnan(X)] = low
    y = np.zeros(X.size, np.int8)
    kl.call(to_bytes.code(count=count, unsigned=unsigned), [X, y, zero, X.size], items=1)
    np.testing.assert_array_equal(y.view(np.uint8 if unsigned else np.int8), expected)


@pytest.mark.parametrize("name", NAMED)
def test_compiles(name):
    for count in (16, 64):
        assert NAMED[name].object_code(str(to_bytes.emit(NAMED[name], count=count, unsigned=False)))
