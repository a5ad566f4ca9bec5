"""Words of counter-based random numbers: Philox 4x32-10 and ThreeFry 2x32-20.

Lives here: the makers of RandomWords and Advanced, their families.
Not here: what is made of words (random_laws.py), the same in NumPy, with the source (lite/ops/philox.py, threefry.py).

A vector has a block in each of its lanes of 64 bits, which hold a word each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import uint32, uint64
from .. import language as kl
from ..language import i64, ptr, u32, u64
from ..loops.random_forms import Advanced, RandomWords
from ..target import host
from . import Unmade, maker
from .grains import grain

if TYPE_CHECKING:
    from ..loops.planning import Builder

MASK = 0xFFFFFFFF
MULTIPLIERS, WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
PARITY, ROTATIONS = 0x1BD11BDA, ((13, 15, 26, 6), (17, 29, 16, 24))
WORDS = {"philox": 4, "threefry": 2}
"""By algorithm, the words of a block."""


@kl.family
def random_words(work, state: ptr[u64], y: ptr[u32], n: i64, *, algorithm: str, upper: int, carries: bool):  # fmt: skip
    """n words. An item is a vector of blocks. upper: where in the state the upper half of their number is."""
    lanes = work.target.vector_bytes // 8
    words = WORDS[algorithm]
    for item in work.items():
        low = kl.iota(i64, lanes).to(u64) + (state[1] + (item * lanes).to(u64))
        if algorithm == "philox":
            high = kl.splat(state[upper], lanes)
            if carries:
                high = kl.select(low < state[1], high + 1, high)
            block = _philox(state[0], low, high)
        else:
            block = _threefry(state[0], low)
        first = item * lanes * words
        rows = _together([part.to(u32) for part in block])
        order = [part * lanes + lane for lane in range(lanes) for part in range(words)]
        y.store(kl.shuffle(rows, None, order), first, kl.first(kl.minimum(n - first, lanes * words), lanes * words))


def _together(parts: list[Any]) -> Any:
    """The lanes of two or four vectors, one after the other."""
    while len(parts) > 1:
        parts = [kl.concat(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]


def _philox(key: Any, low: Any, high: Any) -> tuple[Any, ...]:
    """Ten rounds on counters whose halves these are; each word in the lower half of its lane."""
    c0, c1, c2, c3 = low & MASK, low >> 32, high & MASK, high >> 32
    k0, k1 = key & MASK, key >> 32
    m0, m1 = (kl.full(u64, low.count, m) for m in MULTIPLIERS)
    for _ in range(10):
        p0, p1 = m0 * c0, m1 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK
    return c0, c1, c2, c3


def _threefry(key: Any, counter: Any) -> tuple[Any, ...]:
    """Twenty rounds; after every fourth the next part of the key is added."""
    keys = [(key & MASK).to(u32), (key >> 32).to(u32)]
    keys.append(keys[0] ^ keys[1] ^ PARITY)
    a, b = (counter & MASK).to(u32) + keys[0], (counter >> 32).to(u32) + keys[1]
    for part in range(1, 6):
        for turn in ROTATIONS[(part - 1) % 2]:
            a = a + b
            b = ((b << turn) | (b >> (32 - turn))) ^ a
        a = a + keys[part % 3]
        b = b + keys[(part + 1) % 3] + part
    return a, b


@maker(RandomWords)
def make_words(form: RandomWords, build: Builder) -> None:
    """Emit the step that fills the output with words, a whole number of counter blocks for each item."""
    state, y = form.state, form.output
    if state.dtype is not uint64 or y.dtype is not uint32 or any(b.parent is not None for b in (state, y)):
        raise Unmade(f"random words {y!r} of {state!r}")
    per_item = host().vector_bytes // 8 * WORDS[form.algorithm]
    items = -(-y.size // per_item)
    code = random_words.code(algorithm=form.algorithm, upper=2 if state.size == 3 else 0, carries=form.carries)
    build.step(code, [build.pointer(state), build.pointer(y), y.size], items, chunk=grain(16 * per_item, items))


@kl.family
def advance(work, state: ptr[u64], y: ptr[u64], blocks: i64, *, size: int, carries: bool):
    """The number of the next block, `blocks` further on; in place, too."""
    parts = [state[i] for i in range(size)]
    low = parts[1] + blocks.to(u64)
    if carries:
        parts[2] = kl.select(low < parts[1], parts[2] + 1, parts[2])
    parts[1] = low
    for i in range(size):
        y[i] = parts[i]


@maker(Advanced)
def make_advance(form: Advanced, build: Builder) -> None:
    """In place where nobody reads the state later."""
    state, y = form.state, form.output
    if {state.dtype, y.dtype} != {uint64} or state.size != y.size or state.size not in (2, 3):
        raise Unmade(f"the state {state!r} as {y!r}")
    if any(b.parent is not None for b in (state, y)) or not 0 <= form.blocks < 1 << 63:
        raise Unmade(f"the state {state!r}, {form.blocks} blocks further on")
    build.share(state)
    code = advance.code(size=state.size, carries=form.carries)
    build.step(code, [build.pointer(state), build.pointer(y), form.blocks], 1, chunk=1)
