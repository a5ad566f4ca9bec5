"""FarmHash's 64-bit string fingerprint, which is stable across versions.

Lives here: `fingerprint64`; `prefixed_fingerprints64` of many strings at once; `fingerprint_of` for any representation
of bytes, which kernels trace.
Not here: the operator (conversion.py), kernels (compiler/kernels/lsh_projection.py).
Source: Geoff Pike, FarmHash (MIT licence), farmhashna::Hash64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

_WORD = (1 << 64) - 1
_FEW = 8
"""Pairs up to which Python's integers are faster than arrays, whose every operation costs a microsecond."""
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


class Word(Protocol):
    """A 64-bit unsigned integer: Python's, an array of NumPy's, or a value of a kernel."""

    def __add__(self, other: Any, /) -> Word: ...
    def __mul__(self, other: Any, /) -> Word: ...
    def __and__(self, other: Any, /) -> Word: ...
    def __or__(self, other: Any, /) -> Word: ...
    def __xor__(self, other: Any, /) -> Word: ...
    def __lshift__(self, other: Any, /) -> Word: ...
    def __rshift__(self, other: Any, /) -> Word: ...
    def __radd__(self, other: Any, /) -> Word: ...


class ByteReader(Protocol):
    """Little-endian reads of bytes, as words."""

    def word(self, offset: int) -> Word:
        """Read eight bytes."""
        ...

    def half(self, offset: int) -> Word:
        """Read four bytes."""
        ...

    def byte(self, offset: int) -> Word:
        """Read one byte."""
        ...

    def fold(self, count: int, step: Callable[[Any, State], State], state: State) -> State:
        """Return the state after a step for each number below a count."""
        ...


State = tuple[Word, ...]


def _fold(count: int, step: Callable[[Any, State], State], state: State) -> State:
    for i in range(count):
        state = step(i, state)
    return state


def _wrapped(x: Word) -> Word:
    """Return an integer modulo 2^64; words of arrays and kernels wrap by themselves."""
    return x & _WORD if type(x) is int else x


def _rotr(x: Word, n: int) -> Word:
    x = _wrapped(x)
    return _wrapped(x >> n | x << 64 - n)


def _shift_mix(x: Word) -> Word:
    x = _wrapped(x)
    return x ^ x >> 47


def _hash_16(u: Word, v: Word, mul: Word) -> Word:
    """Hash two words to one."""
    a = _shift_mix((u ^ _wrapped(v)) * mul)
    return _wrapped(_shift_mix((v ^ a) * mul) * mul)


class _BytesReader:
    def __init__(self, s: bytes) -> None:
        self.s = s

    def word(self, offset: int) -> int:
        return int.from_bytes(self.s[offset : offset + 8], "little")

    def half(self, offset: int) -> int:
        return int.from_bytes(self.s[offset : offset + 4], "little")

    def byte(self, offset: int) -> int:
        return self.s[offset]

    def fold(self, count: int, step: Callable[[Any, State], State], state: State) -> State:
        return _fold(count, step, state)


def fingerprint64(s: bytes) -> int:
    """Return the fingerprint of a string, an unsigned 64-bit integer."""
    fingerprint: int = fingerprint_of(_BytesReader(s), len(s))
    return fingerprint


class _PrefixedReader:
    """Reads every pair of a prefix, uint8[prefixes, p], and a row, uint8[rows, length]: broadcast to [prefixes, rows].

    Pairs are not stored: bytes behind the prefix are read once for all prefixes.
    """

    def __init__(self, prefixes: np.ndarray, rows: np.ndarray) -> None:
        self.prefixes, self.rows = prefixes, rows
        count = max((rows.shape[1] - 4) // 8, 0)
        words = np.ascontiguousarray(rows[:, 4 : 4 + 8 * count]).view("<u8")
        self.words = np.ascontiguousarray(words.T)  # at offsets 8, 16, ... behind a prefix of four bytes

    def _read(self, offset: int, size: int) -> np.ndarray:
        start = offset - self.prefixes.shape[1]
        if start >= 0:
            part = np.ascontiguousarray(self.rows[:, start : start + size])
            return part.view(f"<u{size}").astype(np.uint64).reshape(1, -1)
        split = min(-start, size)
        head = np.zeros((len(self.prefixes), 8), np.uint8)
        head[:, :split] = self.prefixes[:, offset : offset + split]
        tail = np.zeros((len(self.rows), 8), np.uint8)
        tail[:, split:size] = self.rows[:, : size - split]
        result: np.ndarray = head.view("<u8") | tail.view("<u8").T
        return result

    def word(self, offset: int) -> np.ndarray:
        if offset >= 8 and offset % 8 == 0 and self.prefixes.shape[1] == 4 and offset // 8 <= len(self.words):
            return self.words[offset // 8 - 1 : offset // 8]
        return self._read(offset, 8)

    def half(self, offset: int) -> np.ndarray:
        return self._read(offset, 4)

    def byte(self, offset: int) -> np.ndarray:
        return self._read(offset, 1)

    def fold(self, count: int, step: Callable[[Any, State], State], state: State) -> State:
        return _fold(count, step, state)


def prefixed_fingerprints64(prefixes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the fingerprint of each prefix followed by each row, as uint64[prefixes, rows].

    prefixes: uint8[prefixes, p]; rows: uint8[rows, length]
    """
    if len(prefixes) * len(rows) <= _FEW:
        pairs = [[fingerprint64(p.tobytes() + row.tobytes()) for row in rows] for p in prefixes]
        return np.array(pairs, np.uint64).reshape(len(prefixes), len(rows))
    fingerprints = fingerprint_of(_PrefixedReader(prefixes, rows), prefixes.shape[1] + rows.shape[1])
    return np.broadcast_to(np.asarray(fingerprints, np.uint64), (len(prefixes), len(rows)))


def fingerprint_of(s: ByteReader, n: int) -> Any:
    """Return the fingerprint of n bytes."""
    if n <= 16:
        return _hash_0_to_16(s, n)
    if n <= 32:
        return _hash_17_to_32(s, n)
    return _hash_33_to_64(s, n) if n <= 64 else _hash_long(s, n)


def _hash_0_to_16(s: ByteReader, n: int) -> Word:
    mul = _K2 + n * 2
    if n >= 8:
        a, b = s.word(0) + _K2, s.word(n - 8)
        return _hash_16(_wrapped(_rotr(b, 37) * mul + a), _wrapped((_rotr(a, 25) + b) * mul), mul)
    if n >= 4:
        return _hash_16(_wrapped((s.half(0) << 3) + n), s.half(n - 4), mul)
    if n == 0:
        return _K2
    y, z = s.byte(0) + (s.byte(n >> 1) << 8), (s.byte(n - 1) << 2) + n
    return _wrapped(_shift_mix(_wrapped(y * _K2) ^ _wrapped(z * _K0)) * _K2)


def _hash_ends(s: ByteReader, n: int, first: int) -> tuple[Word, Word, int, Word]:
    """Return two words of the first and last 16 of 17 to 64 bytes, the multiplier, and the first word's product."""
    mul = _K2 + n * 2
    a, b, c, d = s.word(0) * first, s.word(8), s.word(n - 8) * mul, s.word(n - 16) * _K2
    y = _wrapped(_rotr(a + b, 43) + _rotr(c, 30) + d)
    return y, _wrapped(a + _rotr(b + _K2, 18) + c), mul, _wrapped(a)


def _hash_17_to_32(s: ByteReader, n: int) -> Word:
    y, z, mul, _ = _hash_ends(s, n, _K1)
    return _hash_16(y, z, mul)


def _hash_33_to_64(s: ByteReader, n: int) -> Word:
    y, z, mul, a = _hash_ends(s, n, _K2)
    z = _hash_16(y, z, mul)
    e, f = s.word(16) * mul, s.word(24)
    g, h = (y + s.word(n - 32)) * mul, (z + s.word(n - 24)) * mul
    return _hash_16(_wrapped(_rotr(e + f, 43) + _rotr(g, 30) + h), _wrapped(e + _rotr(f + a, 18) + g), mul)


def _weak_hash_32(s: ByteReader, offset: int, a: Word, b: Word) -> tuple[Word, Word]:
    """Hash 32 bytes and two words to two words."""
    w, x, y, z = (s.word(offset + 8 * i) for i in range(4))
    first = a + w
    b = _rotr(b + first + z, 21)
    a = first + x + y
    return _wrapped(a + z), _wrapped(b + _rotr(a, 44) + first)


def _hash_long(s: ByteReader, n: int) -> Word:
    none = s.word(0) ^ s.word(0)  # of the kind of words, so that the states of a loop in a kernel are of one kind
    x: Word = 81
    y = _wrapped(81 * _K1 + 113)
    z = _wrapped(_shift_mix(y * _K2 + 113) * _K2)
    x = _wrapped(s.word(0) + _wrapped(x * _K2))

    def step(i: Any, state: State) -> State:
        return _hash_block(s, i * 64, _K1, 1, state)

    state: State = (x, none + y, none + z, none, none, none, none)
    x, y, z, v0, v1, w0, w1 = s.fold((n - 1) // 64, step, state)
    mul = _K1 + ((z & 255) << 1)
    w0 = _wrapped(w0 + (n - 1 & 63))
    v0 = _wrapped(v0 + w0)
    w0 = _wrapped(w0 + v0)
    x, y, z, v0, v1, w0, w1 = _hash_block(s, n - 64, mul, 9, (x, y, z, v0, v1, w0, w1))
    first = _wrapped(_hash_16(v0, w0, mul) + _shift_mix(y) * _K0 + z)
    return _hash_16(first, _wrapped(_hash_16(v1, w1, mul) + x), mul)


def _hash_block(s: ByteReader, offset: int, mul: Word, extra: int, state: State) -> State:
    """Hash 64 bytes and the seven words of a state to a state."""
    x, y, z, v0, v1, w0, w1 = state
    x = _wrapped(_rotr(x + y + v0 + s.word(offset + 8), 37) * mul)
    y = _wrapped(_rotr(y + v1 + s.word(offset + 48), 42) * mul)
    x = x ^ _wrapped(w1 * extra)
    y = _wrapped(y + v0 * extra + s.word(offset + 40))
    z = _wrapped(_rotr(z + w0, 33) * mul)
    v0, v1 = _weak_hash_32(s, offset, v1 * mul, x + w0)
    w0, w1 = _weak_hash_32(s, offset + 32, z + w1, y + s.word(offset + 16))
    return z, y, x, v0, v1, w0, w1
