"""ThreeFry 2x32-20, the counter-based generator that STABLEHLO_RNG_BIT_GENERATOR may name.

Lives here: the generator.  Not here: Philox (philox.py), operators (random.py, stablehlo_random.py).

After Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3": twenty rounds of addition, rotation and xor mix
a counter of two words with a key of two; after every fourth round the next part of the key is added.
"""

from __future__ import annotations

import numpy as np

_MASK = 0xFFFFFFFF
_PARITY = 0x1BD11BDA
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def blocks(key: int, first: int, count: int) -> np.ndarray:
    """The words of the counters first, first + 1, ... modulo 2^64: uint32 [count, 2]."""
    keys = [key & _MASK, key >> 32 & _MASK]
    keys.append(keys[0] ^ keys[1] ^ _PARITY)
    counter = np.arange(count, dtype=np.uint64) + np.uint64(first)
    a = counter.astype(np.uint32) + np.uint32(keys[0])
    b = (counter >> np.uint64(32)).astype(np.uint32) + np.uint32(keys[1])
    for part in range(1, 6):
        for turn in _ROTATIONS[(part - 1) % 2]:
            a = a + b
            b = (b << np.uint32(turn) | b >> np.uint32(32 - turn)) ^ a
        a = a + np.uint32(keys[part % 3])
        b = b + np.uint32(keys[(part + 1) % 3] + part & _MASK)
    return np.stack([a, b], -1)
