"""FarmHash's fingerprint: 64 bits of a string that never change.

Lives here: fingerprint64.  Not here: the operator (numbers.py).
Source: Geoff Pike, FarmHash (MIT licence), farmhashna::Hash64.
"""

from __future__ import annotations

_WORD = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _rotated(x: int, by: int) -> int:
    x &= _WORD
    return (x >> by | x << 64 - by) & _WORD


def _mixed(x: int) -> int:
    x &= _WORD
    return x ^ x >> 47


def _of_two(u: int, v: int, times: int) -> int:
    """Two words hashed to one."""
    a = _mixed((u ^ v & _WORD) * times)
    return _mixed((v ^ a) * times) * times & _WORD


def fingerprint64(s: bytes) -> int:
    """The fingerprint of a string, an unsigned integer of 64 bits."""
    n = len(s)
    if n <= 16:
        return _of_16(s, n)
    if n <= 32:
        return _of_32(s, n)
    return _of_64(s, n) if n <= 64 else _of_long(s, n)


def _at(s: bytes, place: int) -> int:
    return int.from_bytes(s[place : place + 8], "little")


def _of_16(s: bytes, n: int) -> int:
    times = _K2 + n * 2
    if n >= 8:
        a, b = _at(s, 0) + _K2, _at(s, n - 8)
        return _of_two((_rotated(b, 37) * times + a) & _WORD, (_rotated(a, 25) + b) * times & _WORD, times)
    if n >= 4:
        first, last = int.from_bytes(s[:4], "little"), int.from_bytes(s[n - 4 :], "little")
        return _of_two(n + (first << 3) & _WORD, last, times)
    if n == 0:
        return _K2
    y, z = s[0] + (s[n >> 1] << 8), n + (s[n - 1] << 2)
    return _mixed(y * _K2 & _WORD ^ z * _K0 & _WORD) * _K2 & _WORD


def _ends(s: bytes, n: int, first: int) -> tuple[int, int, int, int]:
    """What 17 to 64 bytes have in common: two words of the first and the last 16 bytes, and the factor."""
    times = _K2 + n * 2
    a, b, c, d = _at(s, 0) * first, _at(s, 8), _at(s, n - 8) * times, _at(s, n - 16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d & _WORD
    return y, a + _rotated(b + _K2, 18) + c & _WORD, times, a & _WORD


def _of_32(s: bytes, n: int) -> int:
    y, z, times, _ = _ends(s, n, _K1)
    return _of_two(y, z, times)


def _of_64(s: bytes, n: int) -> int:
    y, z, times, a = _ends(s, n, _K2)
    z = _of_two(y, z, times)
    e, f = _at(s, 16) * times, _at(s, 24)
    g, h = (y + _at(s, n - 32)) * times, (z + _at(s, n - 24)) * times
    return _of_two(_rotated(e + f, 43) + _rotated(g, 30) + h & _WORD, e + _rotated(f + a, 18) + g & _WORD, times)


def _weak(s: bytes, place: int, a: int, b: int) -> tuple[int, int]:
    """Two words made of 32 bytes and two words."""
    w, x, y, z = (_at(s, place + 8 * i) for i in range(4))
    a += w
    b = _rotated(b + a + z, 21)
    c = a
    a += x + y
    b += _rotated(a, 44)
    return a + z & _WORD, b + c & _WORD


def _of_long(s: bytes, n: int) -> int:
    x, y = 81, 81 * _K1 + 113 & _WORD
    z = _mixed(y * _K2 + 113) * _K2 & _WORD
    x = x * _K2 + _at(s, 0) & _WORD
    v, w = (0, 0), (0, 0)

    def round(at: int, times: int, extra: int) -> None:
        nonlocal x, y, z, v, w
        x = _rotated(x + y + v[0] + _at(s, at + 8), 37) * times & _WORD
        y = _rotated(y + v[1] + _at(s, at + 48), 42) * times & _WORD
        x ^= w[1] * extra & _WORD
        y = y + v[0] * extra + _at(s, at + 40) & _WORD
        z = _rotated(z + w[0], 33) * times & _WORD
        v = _weak(s, at, v[1] * times, x + w[0])
        w = _weak(s, at + 32, z + w[1], y + _at(s, at + 16))
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
