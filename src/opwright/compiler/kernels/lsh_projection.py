"""Locality-sensitive hashing: signs of weighted sums of fingerprints.

Lives here: the selector of Projection, its family.
Not here: the fingerprint, whose Python is staged directly (ops/strings/fingerprints.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...core.dtypes import float32, int32, uint8
from ...ops.strings.fingerprints import fingerprint_of
from .. import language as kl
from ..language import f32, f64, i32, i64, ptr, u8, u32, u64
from ..loops.domain_ops import Projection
from . import NoKernel, selector
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

SEED_BYTES = 4  # the seed precedes each row


class HashedBytes:
    """Bytes at a pointer, the input of `fingerprint_of`. is_big: whether numbers in memory are big-endian."""

    def __init__(self, start: Pointer, is_big: bool) -> None:
        self.start, self.is_big = start, is_big

    def word(self, offset: int) -> Value:
        return self._joined(offset, 8) if self.is_big else (self.start + offset).cast(u64, 1)[0]

    def half(self, offset: int) -> Value:
        return self._joined(offset, 4) if self.is_big else (self.start + offset).cast(u32, 1)[0].to(u64)

    def _joined(self, offset: int, size: int) -> Value:
        """Return a little-endian number."""
        total = self.byte(offset)
        for i in range(1, size):
            total = total | (self.byte(offset + i) << (8 * i))
        return total

    def byte(self, offset: int) -> Value:
        return self.start[offset].to(u64)

    def fold(self, count: int, step: Callable[[Any, Any], Any], state: Any) -> Any:
        def body(values: Sequence[Value]) -> list[Value]:
            number, *words = values
            return [number + 1, *step(number, tuple(words))]

        start = [kl.full(i64, 0, 0), *map(kl.value, state)]
        return kl.while_loop(lambda values: values[0] < count, body, start)[1:]


@kl.family
def project(
    work: Work,
    hash: ptr[f32],
    x: ptr[u8],
    weights: ptr[f32],
    y: ptr[i32],
    rows: i64,
    bits: i64,
    *,
    n: int,
    size: int,
    weighted: bool,
    sparse: bool,
) -> None:
    """Compute the bits of hash functions. A work item is a function. Scratch: a seed and a row. size: bytes of an
    element, which are hashed in the order of files, little-endian."""
    text, is_big = work.scratch(u8), work.target.is_big_endian
    for item in work.items():
        number = kl.full(i64, 0, 0)
        for bit in range(bits):
            if is_big:
                _copy_reversed(text, hash.cast(u8) + (item * bits + bit) * SEED_BYTES, SEED_BYTES, SEED_BYTES)
            else:
                text.cast(f32, 4)[0] = hash[item * bits + bit]
            total = kl.full(f64, 0, 0.0)
            for row in range(rows):
                if is_big:
                    _copy_reversed(text + SEED_BYTES, x + row * n, n, size)
                else:
                    kl.copy(text + SEED_BYTES, x + row * n, n)
                fingerprint = fingerprint_of(HashedBytes(text, is_big), SEED_BYTES + n).to(i64).to(f64)
                total = total + (weights[row].to(f64) * fingerprint if weighted else fingerprint)
            positive = (total > 0.0).to(i64)
            number = number * 2 + positive
            if not sparse:
                y[item * bits + bit] = positive.to(i32)
        if sparse:
            one = kl.full(i64, 0, 1)
            y[item] = (number + item * (one << bits)).to(i32)


def _copy_reversed(target: Pointer, source: Pointer, n: int, size: int) -> None:
    """Copy n bytes, those of each element in reverse order."""
    for i in range(kl.value(n)):
        target[i] = source[i ^ (size - 1)]


@selector(Projection)
def select_projection(form: Projection, build: Builder) -> None:
    hash, x, y = form.hash, form.x, form.output
    rows, n = x.shape
    functions, bits = hash.shape
    if hash.dtype is not float32 or x.dtype is not uint8 or y.dtype is not int32:
        raise NoKernel(f"hashes of {x!r} by {hash!r}")
    if any(w.dtype is not float32 or w.size != rows for w in form.weights) or any(
        b.parent is not None for b in (hash, x, y, *form.weights)
    ):
        raise NoKernel(f"hashes of {x!r} by {hash!r}")
    if y.size != functions * (1 if form.sparse else bits):
        raise NoKernel(f"hashes {y!r} of {x!r}")
    code = project.code(n=n, size=form.size, weighted=bool(form.weights), sparse=form.sparse)
    weights: Any = build.pointer(form.weights[0]) if form.weights else 0
    words = [build.pointer(hash), build.pointer(x), weights, build.pointer(y), rows, bits]
    build.step(code, words, functions, scratch=SEED_BYTES + n + 8, chunk=grain(bits * rows * (n + 64), functions))
