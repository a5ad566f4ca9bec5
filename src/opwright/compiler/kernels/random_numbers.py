"""Counter-based random numbers: Philox and ThreeFry, uniform and normal numbers and classes drawn from them.

Lives here: kernels of `RandomWords`, `Advanced`, `NormalPairs` and `Classes`, of files; of `RandomElements` and
`AcceptedElements`, of the catalogue.
Not here: how seeds become keys (the lowering rules), the references (scalar/counter_generators.py, ops/random/).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType, float32, float64, int32, int64, uint32, uint64
from ...scalar.counter_generators import (
    BLOCK_WORDS,
    MASK,
    MULTIPLIERS,
    WIDE_MULTIPLIERS,
    ZIGGURAT_END,
    philox,
    threefry,
    wide_philox,
)
from .. import language as kl
from ..language import f32, f64, i64, ptr, u8, u32, u64
from ..loops.domain_ops import AcceptedElements, Advanced, Classes, NormalPairs, RandomElements, RandomWords
from ..loops.expressions import Expr, parametrised
from ..loops.plans import word
from ..target import host
from . import NoKernel, selector
from .epilogue import number, subexpressions
from .exponential import exp_f64
from .expression import check, evaluate, fast
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder


@kl.family
def random_words(
    work: Work, state: ptr[u64], y: ptr[u32], n: i64, *, algorithm: str, upper: int, carries: bool, pairs: bool
) -> None:
    """Generate n words. A work item is a vector of blocks. upper: index of the counter's upper half in the state.
    pairs: see `RandomWords`."""
    lanes = work.target.lanes(8)
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
        turned = 1 if pairs and work.target.is_big_endian else 0
        order = [(part ^ turned) * lanes + lane for lane in range(lanes) for part in range(words)]
        y.store(kl.shuffle(rows, None, order), first, kl.tail_mask(n - first, lanes * words))


@selector(RandomWords)
def select_words(form: RandomWords, build: Builder) -> None:
    """Build the step that generates words, several counter blocks per work item."""
    state, y = form.state, form.output
    if state.dtype is not uint64 or y.dtype is not uint32 or any(b.parent is not None for b in (state, y)):
        raise NoKernel(f"random words {y!r} of {state!r}")
    per_item = host().lanes(8) * BLOCK_WORDS[form.algorithm]
    items = -(-y.size // per_item)
    upper = 2 if state.size == 3 else 0
    code = random_words.code(algorithm=form.algorithm, upper=upper, carries=form.carries, pairs=form.pairs)
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


STREAM_BLOCK = 32
"""Bytes of a block of `wide_philox`."""
ITEM_ELEMENTS = 1024
"""Elements of a work item of `random_elements`, whose words stay in the first cache."""


@dataclass(frozen=True)
class ElementsPattern:
    """The constants of `random_elements`: a form's expression, the dtypes of its scalars, the dtype of a word, and
    whether the key has the number of a call."""

    expr: Expr
    params: tuple[DType, ...]
    word: DType
    numbered: bool

    def lanes(self, target: Any) -> int:
        """Return the elements of a vector."""
        count: int = target.lanes(max(e.dtype.size for e in subexpressions(self.expr)))
        return count


def _write_stream(words: Pointer, key: Pointer, numbered: bool, first: Any, blocks: Any, size: int, big: bool) -> None:
    """Write blocks of the stream from block `first` on, four words each; NumPy's generator starts at counter 1.

    size: bytes of the numbers as which words are read, the lowest first. big: whether the target is big-endian.
    """
    zero, number_of_call = kl.full(u64, 0, 0), key[2] if numbered else kl.full(u64, 0, 0)
    multipliers = kl.full(u64, 0, WIDE_MULTIPLIERS[0]), kl.full(u64, 0, WIDE_MULTIPLIERS[1])
    pair = key[0], key[1]
    for block in range(blocks):
        counter = (first + block + 1).to(u64), zero, number_of_call, zero
        for i, w in enumerate(wide_philox(pair, counter, multipliers, kl.wide_product)):
            words[4 * block + i] = _parts_reversed(w, size) if big else w


def _parts_reversed(x: Value, size: int) -> Value:
    """Return an uint64 with its parts of `size` bytes, at least two, in reverse order."""
    if size < 8:
        x = (x << 32) | (x >> 32)
    if size < 4:
        x = ((x & 0x0000FFFF0000FFFF) << 16) | ((x >> 16) & 0x0000FFFF0000FFFF)
    return x


@kl.family
def random_elements(work: Work, key: ptr[u64], n: i64, *more: i64, pattern: ElementsPattern) -> None:
    """Evaluate an expression of n words. more: the output's address, the expression's scalars."""
    out = kl.pointer(more[0], pattern.expr.dtype)
    numbers = [number(x, dtype) for x, dtype in zip(more[1:], pattern.params)]
    stream = kl.stack(u64, ITEM_ELEMENTS * pattern.word.size // 8)
    words, lanes = stream.cast(pattern.word), pattern.lanes(work.target)
    per_block, size, big = STREAM_BLOCK // pattern.word.size, pattern.word.size, work.target.is_big_endian
    for item in work.items():
        start = item * ITEM_ELEMENTS
        count = kl.minimum(n - start, ITEM_ELEMENTS)
        _write_stream(
            stream, key, pattern.numbered, start // per_block, (count + (per_block - 1)) // per_block, size, big
        )
        whole = count - count % lanes
        for i in range(0, whole, lanes):
            out.store(kl.splat(evaluate(pattern.expr, [words.load(i, lanes)], numbers), lanes), start + i)
        for i in range(whole, count):
            out[start + i] = evaluate(pattern.expr, [words[i]], numbers)


@selector(RandomElements)
def select_elements(form: RandomElements, build: Builder) -> None:
    check(form.expr)
    key, y = form.key, form.output
    if key.dtype is not uint64 or key.size not in (2, 3) or any(b.parent is not None for b in (key, y)):
        raise NoKernel(f"random elements {y!r} by {key!r}")
    skeleton, scalars = parametrised(form.expr)
    pattern = ElementsPattern(skeleton, tuple(dtype for _, dtype in scalars), form.word, key.size == 3)
    words = [build.pointer(y), *(word(value, dtype) for value, dtype in scalars)]
    items = -(-y.size // ITEM_ELEMENTS)
    code = random_elements.code(pattern=pattern, more=len(words))
    build.step(code, [build.pointer(key), y.size, *words], items, chunk=grain(8 * ITEM_ELEMENTS, items))


def _uniform_at(stream: Pointer, key: Pointer, numbered: bool, place: Value, big: bool) -> Value:
    """Return the word at a place of the stream as a float32 in [0, 1), for rare use. stream: memory for a block; big:
    see `_write_stream`."""
    _write_stream(stream, key, numbered, place // 8, kl.value(1), 4, big)
    return (stream.cast(u32)[place % 8] >> 8).to(i64).to(f32) * 2.0**-24


@kl.family
def normal_elements(work: Work, key: ptr[u64], y: ptr[f32], layers: ptr[u32], n: i64, *, numbered: bool) -> None:
    """Draw n normal numbers. One work item: where a number begins in the stream depends on all before it.

    99 of 100 numbers take one word: a layer, a sign and a place in the layer that lies below the density.
    """
    stream, block = kl.stack(u64, ITEM_ELEMENTS // 2), kl.stack(u64, 4)
    words, big = stream.cast(u32), work.target.is_big_endian
    for _ in work.items():
        i, place, start = kl.value(0), kl.value(0), kl.value(0)
        while i < n:
            _write_stream(stream, key, numbered, start // 8, kl.value(ITEM_ELEMENTS // 8), 4, big)
            end = start + ITEM_ELEMENTS
            while (i < n) & (place < end):
                bits = words[place - start]
                layer, width = (bits & 0xFF).to(i64), bits >> 9
                x = width.to(i64).to(f32) * kl.bitcast(layers[layer + 256], f32)
                x = kl.bitcast(kl.bitcast(x, u32) ^ ((bits & 0x100) << 23), f32)
                place = place + 1
                if kl.likely(width < layers[layer]):
                    y[i] = x
                    i = i + 1
                elif layer == 0:
                    tail, again = kl.full(f32, 0, 0.0), kl.value(1)
                    while again == 1:
                        u, v = (_uniform_at(block, key, numbered, place + k, big).to(f64) for k in range(2))
                        place = place + 2
                        tail = fast("log1p", -u).to(f32) * (-1.0 / ZIGGURAT_END)
                        level = fast("log1p", -v).to(f32) * -1.0
                        again = kl.select(level + level > tail * tail, kl.value(0), 1)
                    beyond = tail + ZIGGURAT_END
                    y[i] = kl.select((width >> 8) & 1 == 1, -beyond, beyond)
                    i = i + 1
                else:
                    low, high = (kl.bitcast(layers[layer + k], f32) for k in (512, 511))
                    level = (high - low) * _uniform_at(block, key, numbered, place, big) + low
                    place = place + 1
                    wide = x.to(f64)
                    if level.to(f64) < exp_f64(-0.5 * wide * wide):
                        y[i] = x
                        i = i + 1
            start = end


@kl.family
def bounded_elements(work: Work, key: ptr[u64], y: ptr[u32], span: i64, n: i64, *, numbered: bool) -> None:
    """Draw n integers below `span`. One work item, as of `normal_elements`."""
    stream = kl.stack(u64, ITEM_ELEMENTS // 2)
    words, big = stream.cast(u32), work.target.is_big_endian
    for _ in work.items():
        below = ((1 << 32) - span) % span  # products whose lower half is below would favour some numbers
        i, start = kl.value(0), kl.value(0)
        while i < n:
            _write_stream(stream, key, numbered, start // 8, kl.value(ITEM_ELEMENTS // 8), 4, big)
            for place in range(kl.value(ITEM_ELEMENTS)):
                product = words[place].to(u64) * span.to(u64)
                if (i < n) & ((product & MASK).to(i64) >= below):
                    y[i] = (product >> 32).to(u32)
                    i = i + 1
            start = start + ITEM_ELEMENTS


@selector(AcceptedElements)
def select_accepted(form: AcceptedElements, build: Builder) -> None:
    key, y = form.key, form.output
    if key.dtype is not uint64 or key.size not in (2, 3) or any(b.parent is not None for b in (key, y)):
        raise NoKernel(f"random elements {y!r} by {key!r}")
    if y.dtype is not (uint32 if form.span else float32):
        raise NoKernel(f"random elements {y!r}")
    words = [build.pointer(key), build.pointer(y), *map(build.pointer, form.layers)]
    if form.span:
        build.step(bounded_elements.code(numbered=key.size == 3), [*words, form.span, y.size], 1)
    else:
        build.step(normal_elements.code(numbered=key.size == 3), [*words, y.size], 1)


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
            total = total + kl.select(kl.abs(v) < math.inf, exp_f64(v - max_logit), 0.0)
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
