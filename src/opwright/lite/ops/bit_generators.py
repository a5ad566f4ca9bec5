"""Sequences of counter-based random bits: Philox 4x32-10, as the official run time draws them, and ThreeFry 2x32-20.

Lives here: `Philox`, blocks of words, and the distributions over Philox.
Not here: the rounds (scalar/counter_generators.py), operators (random.py), the library's own random numbers
(opwright.ops.random), which are other ones.

The key is the first seed, the upper half of the counter begins as the second.
"""

from __future__ import annotations

import os

import numpy as np

from ...scalar.counter_generators import MASK, MULTIPLIERS, philox, threefry

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
