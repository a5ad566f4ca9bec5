"""Counter-based random number generators: Philox 4x32-10 and 4x64-10, ThreeFry 2x32-20.

Lives here: their rounds over any array namespace: `philox`, `threefry`, on words of 32 bits; `wide_philox`, on words of
64 bits; the words of a block, types of random bits; in NumPy, the sequences of the official run time: `Philox`, blocks
of words, the distributions over Philox. The key is the first seed, the upper half of the counter begins as the second.
Not here: operators (lite/ops/random.py), kernels (compiler/kernels/random_numbers.py), the library's own random numbers
(ops/random/), which are other ones.

source: J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.dtypes import int32, int64, uint32, uint64

BLOCK_WORDS = {"philox": 4, "threefry": 2}
"""By generator, the words of a block."""
BIT_TYPES = (int32, int64, uint32, uint64)
"""Types whose elements are whole words of random bits."""
MASK = 0xFFFFFFFF
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
"""Constants of Philox-4x32 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011)."""
PARITY = 0x1BD11BDA
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""Constants of Threefry-2x32 (the same paper)."""


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
        k0, k1 = (k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK
    return c0, c1, c2, c3


WIDE_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WIDE_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)

ZIGGURAT_END = 3.6541528853610088
"""Where the tail of the normal distribution begins, for 256 layers of equal area."""


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
    keys = (*key, key[0] ^ key[1] ^ PARITY)
    a, b = low + keys[0], high + keys[1]
    for part in range(1, 6):
        for distance in ROTATIONS[(part - 1) % 2]:
            a = a + b
            b = ((b << distance) | (b >> (32 - distance))) ^ a
        a = a + keys[part % 3]
        b = b + keys[(part + 1) % 3] + part
    return a, b


_WIDE = (1 << 64) - 1


def begun(seed: int, seed2: int) -> np.ndarray:
    """Return the initial state of a sequence. Seeds of 0 and 0 are replaced by random ones."""
    if seed == 0 and seed2 == 0:
        seed, seed2 = (int.from_bytes(os.urandom(8), "little") for _ in range(2))
    return np.array([seed & _WIDE, 0, seed2 & _WIDE], np.uint64)


class Philox:
    """A sequence of blocks of four words. state: uint64, the key, then the number of the next block, lower half first;
    machine code of the same sequence reads and writes it, too."""

    __slots__ = ("state",)

    def __init__(self, state: np.ndarray) -> None:
        self.state = state

    def words(self, count: int) -> np.ndarray:
        """Return the next `count` words, uint32; the remainder of the last block is discarded."""
        key, low, high = map(int, self.state)
        used = -(-count // 4)
        words = blocks(key, low, high, used)
        self.skip(used)
        return words.reshape(-1)[:count]

    def skip(self, count: int) -> None:
        """Skip `count` blocks."""
        key, low, high = map(int, self.state)
        after = low + count
        self.state[:] = key, after & _WIDE, high + (after >> 64) & _WIDE


def blocks(key: int, first: int, upper: int, count: int) -> np.ndarray:
    """Return the words of the counters upper 2^64 + first, + 1, ...: uint32 [count, 4], modulo their bits."""
    first, upper = first & _WIDE, upper & _WIDE
    low = np.arange(count, dtype=np.uint64) + np.uint64(first)
    high = np.where(low < np.uint64(first), np.uint64(upper + 1 & _WIDE), np.uint64(upper))
    return np.stack(philox((key & MASK, key >> 32 & MASK), low, high, MULTIPLIERS), -1).astype(np.uint32)


def uniform(words: np.ndarray) -> np.ndarray:
    """Return float32 in [0, 1) from the lower 23 bits of each word."""
    return ((words & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)).view(np.float32) - np.float32(1)


def normal(words: np.ndarray) -> np.ndarray:
    """Return standard normal float32, two for each two words (Box and Muller 1958)."""
    pairs = uniform(words).reshape(-1, 2)
    radius = np.sqrt(np.float32(-2) * np.log(np.maximum(pairs[:, 0], np.float32(1e-7))))
    angle = np.float32(2 * np.pi) * pairs[:, 1]
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], -1).reshape(-1)


def doubles(words: np.ndarray) -> np.ndarray:
    """Return float64 in [0, 1), one for each two words: 20 bits of the first, all of the second."""
    pairs = words.reshape(-1, 2).astype(np.uint64)
    bits = (pairs[:, 0] & np.uint64(0xFFFFF)) << np.uint64(32) | pairs[:, 1] | np.uint64(1023 << 52)
    return bits.view(np.float64) - 1.0


def threefry_blocks(key: int, first: int, count: int) -> np.ndarray:
    """Return the words of the counters first, first + 1, ... modulo 2^64, by ThreeFry 2x32-20: uint32 [count, 2]."""
    halves = (np.array([key >> shift & MASK], np.uint32) for shift in (0, 32))  # arrays wrap, numbers warn
    counter = np.arange(count, dtype=np.uint64) + np.uint64(first)
    low, high = counter.astype(np.uint32), (counter >> np.uint64(32)).astype(np.uint32)
    return np.stack(threefry((next(halves), next(halves)), low, high), -1)
