"""Digests that name and authenticate what is kept between processes.

Lives here: `digest`, `mac`, `is_mac`.  Not here: digests of large contents (hashlib's SHA-256, which is twice as fast).

BLAKE2b (RFC 7693), which takes a key of itself. It comes from where `hashlib` has it: that module loads OpenSSL, too,
which takes longer than reading all of a model's plan.
"""

from __future__ import annotations

from _operator import _compare_digest  # what hmac.compare_digest is, without hashlib
from collections.abc import Iterable

try:
    from _blake2 import blake2b
except ImportError:  # a Python that has all its digests from OpenSSL
    from hashlib import blake2b

BYTES = 32


def digest(content: bytes) -> str:
    """The digest of a short content, in hexadecimal."""
    return blake2b(content, digest_size=BYTES).hexdigest()


def mac(key: bytes, parts: Iterable[bytes | memoryview]) -> bytes:
    """The keyed digest of parts that follow one another."""
    made = blake2b(key=key, digest_size=BYTES)
    for part in parts:
        made.update(part)
    return made.digest()


def is_mac(found: bytes | memoryview, wanted: bytes) -> bool:
    """Whether two keyed digests are equal, in a time that does not tell where they differ."""
    return bool(_compare_digest(wanted, found))
