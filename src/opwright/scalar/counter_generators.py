"""Rounds of counter-based random number generators, over any array namespace: Philox 4x32-10 and 4x64-10, ThreeFry
2x32-20.

Lives here: `philox`, `threefry`, on words of 32 bits; `wide_philox`, on words of 64 bits; the words of a block,
types of random bits.
Not here: sequences and distributions (lite/ops/bit_generators.py), kernels (compiler/kernels/random_numbers.py).

source: J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.dtypes import int32, int64, uint32, uint64

BLOCK_WORDS = {"philox": 4, "threefry": 2}
"""By generator, the words of a block."""
BIT_TYPES = (int32, int64, uint32, uint64)
"""Types whose elements are whole words of random bits."""
MASK = 0xFFFFFFFF
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_PARITY = 0x1BD11BDA
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def philox(key: tuple[Any, Any], low: Any, high: Any, multipliers: tuple[Any, Any]) -> tuple[Any, Any, Any, Any]:
    """Mix a counter of four words with a key of two, in ten rounds of multiplications.

    low, high: the counter's halves, 64 bits wide; multipliers: MULTIPLIERS in the caller's namespace. Returns four
    words, each in the lower half of 64 bits.
    """
    k0, k1 = key
    m0, m1 = multipliers
    c0, c1, c2, c3 = low & MASK, low >> 32, high & MASK, high >> 32
    for _ in range(10):
        p0, p1 = m0 * c0, m1 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + _WEYL[0]) & MASK, (k1 + _WEYL[1]) & MASK
    return c0, c1, c2, c3


WIDE_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WIDE_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)


def wide_philox(
    key: tuple[Any, Any], counter: Sequence[Any], multipliers: tuple[Any, Any], product: Callable[[Any, Any], Any]
) -> tuple[Any, Any, Any, Any]:
    """Mix a counter of four words of 64 bits with a key of two: the generator of `numpy.random.Philox`.

    multipliers: WIDE_MULTIPLIERS in the caller's namespace, whose integers wrap; product: returns the lower and the
    upper half of a product.
    """
    (k0, k1), (m0, m1), (c0, c1, c2, c3) = key, multipliers, counter
    for _ in range(10):
        (low0, high0), (low1, high1) = product(m0, c0), product(m1, c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + _WIDE_WEYL[0], k1 + _WIDE_WEYL[1]
    return c0, c1, c2, c3


def threefry(key: tuple[Any, Any], low: Any, high: Any) -> tuple[Any, Any]:
    """Mix a counter of two words with a key of two, in twenty rounds of addition, rotation and xor.

    Words are 32 bits wide and wrap; after every fourth round the next part of the key is added.
    """
    keys = (*key, key[0] ^ key[1] ^ _PARITY)
    a, b = low + keys[0], high + keys[1]
    for part in range(1, 6):
        for distance in _ROTATIONS[(part - 1) % 2]:
            a = a + b
            b = ((b << distance) | (b >> (32 - distance))) ^ a
        a = a + keys[part % 3]
        b = b + keys[(part + 1) % 3] + part
    return a, b
