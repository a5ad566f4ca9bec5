"""Random numbers of a device context: a seed, and how far it has been drawn.

Lives here: `ContextRandom`.  Not here: the random operators and their seeds (ops/random/), distributions.

The generators are Philox's, as those of the operators: a function of a key and a counter, so that all there is to keep
is the key and how many generators were given out. Numbers are drawn on the host whatever the device is, so the same
seed gives the same numbers, to the bit, on device n of every kind.
"""

from __future__ import annotations

import secrets

import numpy as np

from ..core import forks

_MASK = (1 << 64) - 1


class ContextRandom:
    """A sequence of generators, each with 2^128 blocks of numbers that no other of them gives.

    device: the second word of the key, so that devices with one seed give different numbers.
    """

    def __init__(self, device: int = 0, seed: int | None = None) -> None:
        self._device = device
        self._lock = forks.lock()
        self.reseed(secrets.randbits(63) if seed is None else seed)

    def reseed(self, seed: int) -> None:
        """Begin the sequence of this seed; any integer, of which 64 bits count."""
        value = seed.__index__() & _MASK
        with self._lock:
            self._seed, self._counter = value, 0

    @property
    def state(self) -> tuple[int, int]:
        """(seed, generators given out); assigning one that was read continues from there."""
        with self._lock:
            return self._seed, self._counter

    @state.setter
    def state(self, value: tuple[int, int]) -> None:
        seed, counter = value
        with self._lock:
            self._seed, self._counter = seed & _MASK, counter & _MASK

    def next(self) -> np.random.Generator:
        """The next generator of the sequence. Threads get different ones, in the order they ask."""
        with self._lock:
            seed, call = self._seed, self._counter
            self._counter = (call + 1) & _MASK
        return np.random.Generator(np.random.Philox(key=[seed, self._device], counter=[0, 0, call, 0]))
