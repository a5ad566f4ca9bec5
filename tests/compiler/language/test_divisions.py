"""Integers are divided toward zero, by anything: what processors trap on gives 0 or wraps, as in C that is exported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright import language as kl

DTYPES = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]


def kernels(name: str) -> tuple[Any, Any]:
    kind: Any = getattr(kl, name)

    @ow.kernel
    def one(x: kl.Array(kind, "n"), y: kl.Array(kind, "n"), z: kl.Array(kind, "n"), left: kl.Array(kind, "n")):
        for i in kl.parallel(x.shape[0]):
            z[i] = x[i] // y[i]
            left[i] = x[i] % y[i]

    @ow.kernel
    def lanes(x: kl.Array(kind, "n"), y: kl.Array(kind, "n"), z: kl.Array(kind, "n"), left: kl.Array(kind, "n")):
        n = x.shape[0]
        for i in range(0, n, 8):
            some = kl.minimum(n - i, 8)
            a, b = x.load(i, count=8, only=some), y.load(i, count=8, only=some)
            z.store(a // b, i, only=some)
            left.store(a % b, i, only=some)

    return one, lanes


def exact(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By Python's integers."""
    quotients = [
        0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x.tolist(), y.tolist())
    ]
    lefts = [0 if b == 0 else a - q * b for a, b, q in zip(x.tolist(), y.tolist(), quotients)]
    return tuple(
        np.array([v % (1 << 8 * x.itemsize) for v in vs], f"u{x.itemsize}").view(x.dtype) for vs in (quotients, lefts)
    )  # type: ignore[return-value]


@pytest.mark.parametrize("name", DTYPES)
def test_every_divisor(name: str) -> None:
    dtype = np.dtype(getattr(kl, name).np)
    info = np.iinfo(dtype)
    every = np.array([0, 1, 2, 3, 7, 100, info.max, info.max - 1, info.min, *([-1, -2, -7] if info.min else [])], dtype)
    x, y = np.repeat(every, every.size), np.tile(every, every.size)
    for kernel in kernels(name):
        z, left = np.empty_like(x), np.empty_like(x)
        kernel(x, y, z, left)
        for actual, expected in zip((z, left), exact(x, y)):
            np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("count", [0, 4])
def test_by_a_zero_that_is_known(count: int) -> None:
    @ow.kernel
    def kernel(x: kl.Array(kl.i32, "n")):
        v = x.load(0, count=4) if count else x[0]
        x.store(v // 0, 0) if count else x.__setitem__(0, v % 0)

    with pytest.raises(ZeroDivisionError, match="int32 is divided by 0"):
        kernel(np.ones(4, np.int32))


@ow.operator(name="DivisionsMod")
class Mod:
    """What is left.

    .. math:: z = x \\bmod y
    """

    x = ow.Input((ow.int32,))
    y = ow.Input((ow.int32,), like="x")
    z = ow.Output(like="x")
    gradient = None

    def compute(op, x: Any, y: Any) -> Any:
        return exact(x, y)[1]

    @ow.kernel
    def kernel(x: kl.Array(kl.i32, "n"), y: kl.Array(kl.i32, "n"), z: kl.Array(kl.i32, "n")):
        for i in kl.parallel(x.shape[0]):
            z[i] = x[i] % y[i]


def test_an_operator_returns_the_same_everywhere() -> None:
    x, y = np.array([7, -7, -(2**31), 5], np.int32), np.array([0, 2, -1, 3], np.int32)
    result = {o.check: o.state for o in ow.testing.check_operator(Mod, [{"x": x, "y": y}])}
    assert result["compiled"] == result["kernel is compute"] == "ok"
