"""Counter-based random numbers: Philox 4x32-10 and ThreeFry 2x32-20, normal numbers and classes drawn from them.

Lives here: kernels of `RandomWords`, `Advanced`, `NormalPairs` and `Classes`.  Not here: how seeds become keys
(the lowering rules), the reference (lite/ops/bit_generators.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...core.dtypes import DType, float32, float64, int32, int64, uint32, uint64
from ...scalar.counter_generators import BLOCK_WORDS, MASK, MULTIPLIERS, philox, threefry
from .. import language as kl
from ..language import f32, f64, i64, ptr, u8, u32, u64
from ..loops.domain_ops import Advanced, Classes, NormalPairs, RandomWords
from ..target import host
from . import NoKernel, selector
from .expression import fast
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Value, Work
    from ..loops.plan_builder import Builder


@kl.family
def random_words(
    work: Work, state: ptr[u64], y: ptr[u32], n: i64, *, algorithm: str, upper: int, carries: bool
) -> None:
    """Generate n words. A work item is a vector of blocks. upper: index of the counter's upper half in the state."""
    lanes = work.target.vector_bytes // 8
    words = BLOCK_WORDS[algorithm]
    for item in work.items():
        low = kl.iota(i64, lanes).to(u64) + (state[1] + (item * lanes).to(u64))
        if algorithm == "philox":
            high = kl.splat(state[upper], lanes)
            if carries:
                high = kl.select(low < state[1], high + 1, high)
            m0, m1 = (kl.full(u64, lanes, m) for m in MULTIPLIERS)
            block = list(philox((state[0] & MASK, state[0] >> 32), low, high, (m0, m1)))
        else:
            key_low, key_high = (state[0] & MASK).to(u32), (state[0] >> 32).to(u32)
            block = list(threefry((key_low, key_high), (low & MASK).to(u32), (low >> 32).to(u32)))
        first = item * lanes * words
        rows = kl.joined([part.to(u32) for part in block])
        order = [part * lanes + lane for lane in range(lanes) for part in range(words)]
        y.store(kl.shuffle(rows, None, order), first, kl.tail_mask(n - first, lanes * words))


@selector(RandomWords)
def select_words(form: RandomWords, build: Builder) -> None:
    """Build the step that generates words, several counter blocks per work item."""
    state, y = form.state, form.output
    if state.dtype is not uint64 or y.dtype is not uint32 or any(b.parent is not None for b in (state, y)):
        raise NoKernel(f"random words {y!r} of {state!r}")
    per_item = host().vector_bytes // 8 * BLOCK_WORDS[form.algorithm]
    items = -(-y.size // per_item)
    code = random_words.code(algorithm=form.algorithm, upper=2 if state.size == 3 else 0, carries=form.carries)
    build.step(code, [build.pointer(state), build.pointer(y), y.size], items, chunk=grain(16 * per_item, items))


@kl.family
def advance(work: Work, state: ptr[u64], y: ptr[u64], blocks: i64, *, size: int, carries: bool) -> None:
    """Advance the counter of a state by `blocks`; may run in place."""
    parts = [state[i] for i in range(size)]
    low = parts[1] + blocks.to(u64)
    if carries:
        parts[2] = kl.select(low < parts[1], parts[2] + 1, parts[2])
    parts[1] = low
    for i in range(size):
        y[i] = parts[i]


@selector(Advanced)
def select_advance(form: Advanced, build: Builder) -> None:
    """Advance in place if the state has no other reader."""
    state, y = form.state, form.output
    if {state.dtype, y.dtype} != {uint64} or state.size != y.size or state.size not in (2, 3):
        raise NoKernel(f"the state {state!r} as {y!r}")
    if any(b.parent is not None for b in (state, y)) or not 0 <= form.blocks < 1 << 63:
        raise NoKernel(f"the state {state!r} advanced by {form.blocks} blocks")
    build.share(state)
    code = advance.code(size=state.size, carries=form.carries)
    build.step(code, [build.pointer(state), build.pointer(y), form.blocks], 1, chunk=1)


UNIFORM_MIN = 1e-7  # lower limit of a uniform number before taking its logarithm


@kl.family
def normal_pairs(work: Work, x: ptr[f32], y: ptr[f32], n: i64) -> None:
    """Transform uniform numbers to n normal numbers by Box-Muller. A work item is a vector of pairs."""
    lanes = work.lanes(f32)
    for item in work.items():
        first = item * 2 * lanes
        uniform = x.load(first, 2 * lanes, kl.tail_mask(n + n % 2 - first, 2 * lanes))
        u, v = (kl.shuffle(uniform, None, range(k, 2 * lanes, 2)) for k in range(2))
        radius = kl.sqrt(-2.0 * fast("log", kl.maximum(u, UNIFORM_MIN)))
        angle = v * (2 * math.pi)
        both = kl.concat(fast("sin", angle) * radius, fast("cos", angle) * radius)
        order = [k * lanes + i for i in range(lanes) for k in range(2)]
        y.store(kl.shuffle(both, None, order), first, kl.tail_mask(n - first, 2 * lanes))


@selector(NormalPairs)
def select_normal_pairs(form: NormalPairs, build: Builder) -> None:
    x, y = form.uniform, form.output
    if {x.dtype, y.dtype} != {float32} or x.size != y.size + y.size % 2 or any(b.parent is not None for b in (x, y)):
        raise NoKernel(f"normal numbers {y!r} of {x!r}")
    per_item = host().vector_bytes // 2
    items = -(-y.size // per_item)
    words = [build.pointer(x), build.pointer(y), y.size]
    build.step(normal_pairs.code(), words, items, chunk=grain(64 * per_item, items))


LN2 = 0.693147180369123816490, 1.90821492927058770002e-10
"""ln 2 in two parts; products of the first with integers below 2^21 are exact (Cody and Waite 1980)."""
TERMS = 14
"""Terms of the series of exp on [-ln 2 / 2, ln 2 / 2], with a remainder below 2^-57."""


def exp_nonpositive(x: Value) -> Value:
    """Return e^x of float64 x <= 0; 0 below -708."""
    k = kl.round_even(x * (1.0 / math.log(2)))
    r = x - k * LN2[0] - k * LN2[1]
    total = kl.full(f64, 0, 1.0 / math.factorial(TERMS - 1))
    for i in reversed(range(TERMS - 1)):
        total = kl.fma(total, r, kl.full(f64, 0, 1.0 / math.factorial(i)))
    scale = kl.bitcast((kl.maximum(k, -1022.0).to(i64) + 1023) << 52, f64)
    return kl.select(x < -708.0, 0.0, total * scale)


@kl.family
def classes(
    work: Work,
    logits: ptr[u8],
    numbers: ptr[f64],
    y: ptr[u8],
    n: i64,
    count: i64,
    *,
    source: DType,
    result: DType,
    capped: bool,
) -> None:
    """Draw classes. A work item is a row of `count` logits and n uniform numbers. Scratch: cumulative weights."""
    logits, y = logits.cast(source, source.size), y.cast(result, result.size)
    sums = work.scratch(f64)
    for item in work.items():
        row = logits + item * count
        max_logit, some_finite = kl.full(f64, 0, -math.inf), kl.value(0)
        for i in range(count):
            v = row[i].to(f64)
            finite = kl.abs(v) < math.inf
            max_logit = kl.select(finite & (v > max_logit), v, max_logit)
            some_finite = kl.select(finite, 1, some_finite)
        max_logit = kl.select(some_finite == 1, max_logit, 0.0)
        total = kl.full(f64, 0, 0.0)
        for i in range(count):
            v = row[i].to(f64)
            total = total + kl.select(kl.abs(v) < math.inf, exp_nonpositive(v - max_logit), 0.0)
            sums[i] = total
        for j in range(n):
            threshold = numbers[item * n + j] * total
            low, high = kl.value(0), count + 0
            while low < high:
                middle = (low + high) // 2
                below = sums[middle] <= threshold
                low, high = kl.select(below, middle + 1, low), kl.select(below, high, middle)
            y[item * n + j] = (kl.minimum(low, count - 1) if capped else low).to(result)


@selector(Classes)
def select_classes(form: Classes, build: Builder) -> None:
    logits, numbers, y = form.logits, form.numbers, form.output
    if logits.dtype not in (float32, float64) or numbers.dtype is not float64 or y.dtype not in (int32, int64):
        raise NoKernel(f"classes {y!r} by {logits!r}")
    if len(logits.shape) != 2 or numbers.size != y.size or any(b.parent is not None for b in (logits, numbers, y)):
        raise NoKernel(f"classes {y!r} by {logits!r}")
    rows, count = logits.shape
    n = y.size // rows
    code = classes.code(source=logits.dtype, result=y.dtype, capped=form.capped)
    words = [build.pointer(logits), build.pointer(numbers), build.pointer(y), n, count]
    build.step(code, words, rows, scratch=8 * count, chunk=grain(64 * (n + count), rows))
