"""Fixed-point arithmetic of int32 in kernels: rescaling and inverse square roots, to the bit as gemmlowp has them.

Lives here: these two, what they need.
Not here: functions of int16 (fixed_int16.py), the same on NumPy arrays (lite/ops/quantized/fixed_point.py).

Values are int64 that hold int32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import language as kl
from ..language import f64, i32, i64

if TYPE_CHECKING:
    from ..language import Value

GREATEST = (1 << 31) - 1
HALF_ROOT = 1518500250  # sqrt(1/2) in Q0.31


def high_product(a: Value, b: Value | int) -> Value:
    """a b / 2^31 to the nearest, halves up; the one overflow gives the greatest int32."""
    return kl.minimum((a * b + (1 << 30)) >> 31, GREATEST)


def saturated(x: Value) -> Value:
    """Within int32."""
    return kl.clamp(x, -GREATEST - 1, GREATEST)


def rescaled(x: Value, m: Value, e: Value) -> Value:
    """x m 2^(e - 31): shifted left, which wraps, the product rounded, shifted right and rounded again."""
    right, one = kl.maximum(-e, 0), kl.full(i64, 0, 1)
    y = ((x << kl.maximum(e, 0)).to(i32).to(i64) * m + (1 << 30)) >> 31
    return kl.select(right > 0, (y + ((one << right) >> 1) + (y >> 63)) >> right, y)


def multiplier_of(numbers: Any, place: int) -> tuple[Value, Value]:
    """m and e of a table."""
    return numbers[place], numbers[place + 1]


def inverse_root(x: Value) -> tuple[Value, Value]:
    """(m, e) with m 2^(e - 31) = 1 / sqrt(x) for a number x of int32 (below 1 it counts as 1): five steps of Newton."""
    x = kl.maximum(x, 1)
    small, shift = x <= 1, kl.full(i64, 0, 11)
    for _ in range(2):
        large = x >= 1 << 29
        x, shift = kl.select(large, x >> 2, x), kl.select(large, shift + 1, shift)
    zeros = 31 - ((kl.bitcast(x.to(f64), i64) >> 52) - 1023)
    pairs = (zeros - 1) // 2 - 1
    shift = shift - pairs
    scaled = kl.select(small, 1 << 28, x << (pairs * 2)) >> 1
    half, root = (scaled + 1) >> 1, kl.full(i64, 0, 1 << 28)
    for _ in range(5):
        cube = saturated(high_product(high_product(root, root), root) << 6)
        root = saturated((high_product(root, (1 << 28) + (1 << 27)) - high_product(half, cube)) << 3)
    root = high_product(root, HALF_ROOT) << kl.maximum(-shift, 0)
    return kl.select(small, GREATEST, root), kl.select(small, 0, kl.minimum(-shift, 0))
