"""Random numbers of other laws than the uniform one: standard normal, and classes by weights.

Lives here: the makers of NormalPairs and Classes, their families; exp of float64.
Not here: random words (random_words.py), uniform numbers, which are maps of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType, float32, float64, int32, int64
from .. import language as kl
from ..language import f32, f64, i64, ptr, u8
from ..loops.random_forms import Classes, NormalPairs
from ..target import host
from . import Unmade, maker
from .expression import fast
from .grains import grain

if TYPE_CHECKING:
    from ..loops.planning import Builder

LEAST = 1e-7  # what a uniform number counts as at least, before its logarithm is taken


@kl.family
def normal_pairs(work, x: ptr[f32], y: ptr[f32], n: i64):
    """n numbers of as many, and of one more where n is odd. An item is a vector of pairs."""
    lanes = work.lanes(f32)
    for item in work.items():
        first = item * 2 * lanes
        given = x.load(first, 2 * lanes, kl.first(kl.minimum(n + n % 2 - first, 2 * lanes), 2 * lanes))
        u, v = (kl.shuffle(given, None, range(k, 2 * lanes, 2)) for k in range(2))
        radius = kl.sqrt(-2.0 * fast("log", kl.maximum(u, LEAST)))
        angle = v * (2 * math.pi)
        both = kl.concat(fast("sin", angle) * radius, fast("cos", angle) * radius)
        order = [k * lanes + i for i in range(lanes) for k in range(2)]
        y.store(kl.shuffle(both, None, order), first, kl.first(kl.minimum(n - first, 2 * lanes), 2 * lanes))


@maker(NormalPairs)
def make_normal_pairs(form: NormalPairs, build: Builder) -> None:
    x, y = form.uniform, form.output
    if {x.dtype, y.dtype} != {float32} or x.size != y.size + y.size % 2 or any(b.parent is not None for b in (x, y)):
        raise Unmade(f"normal numbers {y!r} of {x!r}")
    per_item = host().vector_bytes // 2
    items = -(-y.size // per_item)
    words = [build.pointer(x), build.pointer(y), y.size]
    build.step(normal_pairs.code(), words, items, chunk=grain(64 * per_item, items))


# ---- classes --------------------------------------------------------------------------------------------------------

LN2 = 0.693147180369123816490, 1.90821492927058770002e-10
"""ln 2 in two parts, of which the first times an integer below 2^21 is exact (Cody and Waite 1980)."""
TERMS = 14
"""Of the series of exp on [-ln 2 / 2, ln 2 / 2]: what is left out is below 2^-57."""


def exp_of_double(x: Any) -> Any:
    """e^x of float64 that are not above 0; 0 below -708."""
    k = kl.round_even(x * (1.0 / math.log(2)))
    r = x - k * LN2[0] - k * LN2[1]
    total = kl.full(f64, 0, 1.0 / math.factorial(TERMS - 1))
    for i in reversed(range(TERMS - 1)):
        total = kl.fma(total, r, kl.full(f64, 0, 1.0 / math.factorial(i)))
    scale = kl.bitcast((kl.maximum(k, -1022.0).to(i64) + 1023) << 52, f64)
    return kl.select(x < -708.0, 0.0, total * scale)


@kl.family
def classes(work, logits: ptr[u8], numbers: ptr[f64], y: ptr[u8], n: i64, count: i64,
            *, source: DType, result: DType, capped: bool):  # fmt: skip
    """An item is a row of `count` logits and n numbers. Scratch: the sums of weights up to each class."""
    logits, y = logits.cast(source, source.size), y.cast(result, result.size)
    sums = work.scratch(f64)
    for item in work.items():
        row = logits + item * count
        most, some = kl.full(f64, 0, -math.inf), kl.value(0)
        for i in range(count):
            v = row[i].to(f64)
            finite = kl.abs(v) < math.inf
            most = kl.select(finite & (v > most), v, most)
            some = kl.select(finite, 1, some)
        most = kl.select(some == 1, most, 0.0)
        total = kl.full(f64, 0, 0.0)
        for i in range(count):
            v = row[i].to(f64)
            total = total + kl.select(kl.abs(v) < math.inf, exp_of_double(v - most), 0.0)
            sums[i] = total
        for j in range(n):
            wanted = numbers[item * n + j] * total
            low, high = kl.value(0), count + 0
            while low < high:
                middle = (low + high) // 2
                below = sums[middle] <= wanted
                low, high = kl.select(below, middle + 1, low), kl.select(below, high, middle)
            y[item * n + j] = (kl.minimum(low, count - 1) if capped else low).to(result)


@maker(Classes)
def make_classes(form: Classes, build: Builder) -> None:
    logits, numbers, y = form.logits, form.numbers, form.output
    if logits.dtype not in (float32, float64) or numbers.dtype is not float64 or y.dtype not in (int32, int64):
        raise Unmade(f"classes {y!r} by {logits!r}")
    if len(logits.shape) != 2 or numbers.size != y.size or any(b.parent is not None for b in (logits, numbers, y)):
        raise Unmade(f"classes {y!r} by {logits!r}")
    rows, count = logits.shape
    n = y.size // rows
    code = classes.code(source=logits.dtype, result=y.dtype, capped=form.capped)
    words = [build.pointer(logits), build.pointer(numbers), build.pointer(y), n, count]
    build.step(code, words, rows, scratch=8 * count, chunk=grain(64 * (n + count), rows))
