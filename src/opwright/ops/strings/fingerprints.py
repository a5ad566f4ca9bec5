"""FarmHash's fingerprint: 64 bits of a string that never change.

Lives here: `fingerprint64`, `fingerprints64` of many strings at once, and `fingerprint_of` bytes wherever they are, so
that kernels stage the same rule.
Not here: the operator (conversion.py), kernels (compiler/kernels/lsh_projection.py).
Source: Geoff Pike, FarmHash (MIT licence), farmhashna::Hash64.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

_WORD = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _rotated(x: Any, by: int) -> Any:
    x &= _WORD
    return (x >> by | x << 64 - by) & _WORD


def _mixed(x: Any) -> Any:
    x &= _WORD
    return x ^ x >> 47


def _of_two(u: Any, v: Any, times: Any) -> Any:
    """Two words hashed to one."""
    a = _mixed((u ^ v & _WORD) * times)
    return _mixed((v ^ a) * times) * times & _WORD


class Readable(Protocol):
    """Bytes by their place, as integers of 64 bits: Python's, or a kernel's values."""

    def word(self, place: int) -> Any:
        """Eight bytes, the lowest first."""

    def half(self, place: int) -> Any:
        """Four bytes, the lowest first."""

    def byte(self, place: int) -> Any:
        """One."""


class _Bytes:
    def __init__(self, s: bytes) -> None:
        self.s = s

    def word(self, place: int) -> int:
        return int.from_bytes(self.s[place : place + 8], "little")

    def half(self, place: int) -> int:
        return int.from_bytes(self.s[place : place + 4], "little")

    def byte(self, place: int) -> int:
        return self.s[place]


def fingerprint64(s: bytes) -> int:
    """The fingerprint of a string, an unsigned integer of 64 bits."""
    found: int = fingerprint_of(_Bytes(s), len(s))
    return found


class _Rows:
    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def _read(self, place: int, dtype: str) -> np.ndarray:
        size = np.dtype(dtype).itemsize
        return np.ascontiguousarray(self.rows[:, place : place + size]).view(dtype)[:, 0].astype(np.uint64)

    def word(self, place: int) -> np.ndarray:
        return self._read(place, "<u8")

    def half(self, place: int) -> np.ndarray:
        return self._read(place, "<u4")

    def byte(self, place: int) -> np.ndarray:
        return self._read(place, "<u1")


def fingerprints64(rows: np.ndarray) -> np.ndarray:
    """Return the fingerprint of each row of uint8[strings, length], as uint64[strings]."""
    found = fingerprint_of(_Rows(rows), rows.shape[1])
    return np.broadcast_to(np.asarray(found, np.uint64), rows.shape[:1])  # of no bytes, it is one number


def fingerprint_of(s: Readable, n: int) -> Any:
    """The fingerprint of n bytes."""
    if n <= 16:
        return _of_16(s, n)
    if n <= 32:
        return _of_32(s, n)
    return _of_64(s, n) if n <= 64 else _of_long(s, n)


def _of_16(s: Readable, n: int) -> Any:
    times = _K2 + n * 2
    if n >= 8:
        a, b = s.word(0) + _K2, s.word(n - 8)
        return _of_two((_rotated(b, 37) * times + a) & _WORD, (_rotated(a, 25) + b) * times & _WORD, times)
    if n >= 4:
        return _of_two((s.half(0) << 3) + n & _WORD, s.half(n - 4), times)
    if n == 0:
        return _K2
    y, z = s.byte(0) + (s.byte(n >> 1) << 8), (s.byte(n - 1) << 2) + n
    return _mixed(y * _K2 & _WORD ^ z * _K0 & _WORD) * _K2 & _WORD


def _ends(s: Readable, n: int, first: int) -> tuple[Any, Any, Any, Any]:
    """What 17 to 64 bytes have in common: two words of the first and the last 16 bytes, and the factor."""
    times = _K2 + n * 2
    a, b, c, d = s.word(0) * first, s.word(8), s.word(n - 8) * times, s.word(n - 16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d & _WORD
    return y, a + _rotated(b + _K2, 18) + c & _WORD, times, a & _WORD


def _of_32(s: Readable, n: int) -> Any:
    y, z, times, _ = _ends(s, n, _K1)
    return _of_two(y, z, times)


def _of_64(s: Readable, n: int) -> Any:
    y, z, times, a = _ends(s, n, _K2)
    z = _of_two(y, z, times)
    e, f = s.word(16) * times, s.word(24)
    g, h = (y + s.word(n - 32)) * times, (z + s.word(n - 24)) * times
    return _of_two(_rotated(e + f, 43) + _rotated(g, 30) + h & _WORD, e + _rotated(f + a, 18) + g & _WORD, times)


def _weak(s: Readable, place: int, a: Any, b: Any) -> tuple[Any, Any]:
    """Two words made of 32 bytes and two words."""
    w, x, y, z = (s.word(place + 8 * i) for i in range(4))
    first = a + w
    b = _rotated(b + first + z, 21)
    a = first + x + y
    return a + z & _WORD, b + _rotated(a, 44) + first & _WORD


def _of_long(s: Readable, n: int) -> Any:
    x, y = 81, 81 * _K1 + 113 & _WORD
    z = _mixed(y * _K2 + 113) * _K2 & _WORD
    x = s.word(0) + (x * _K2 & _WORD) & _WORD
    v, w = (0, 0), (0, 0)

    def round(at: int, times: Any, extra: int) -> None:
        nonlocal x, y, z, v, w
        x = _rotated(x + y + v[0] + s.word(at + 8), 37) * times & _WORD
        y = _rotated(y + v[1] + s.word(at + 48), 42) * times & _WORD
        x ^= w[1] * extra & _WORD
        y = y + v[0] * extra + s.word(at + 40) & _WORD
        z = _rotated(z + w[0], 33) * times & _WORD
        v = _weak(s, at, v[1] * times, x + w[0])
        w = _weak(s, at + 32, z + w[1], y + s.word(at + 16))
        z, x = x, z

    for at in range(0, (n - 1) // 64 * 64, 64):
        round(at, _K1, 1)
    times = _K1 + ((z & 255) << 1)
    w = (w[0] + (n - 1 & 63) & _WORD, w[1])
    v = (v[0] + w[0] & _WORD, v[1])
    w = (w[0] + v[0] & _WORD, w[1])
    round(n - 64, times, 9)
    first = _of_two(v[0], w[0], times) + _mixed(y) * _K0 + z & _WORD
    return _of_two(first, _of_two(v[1], w[1], times) + x & _WORD, times)
