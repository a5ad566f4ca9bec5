"""Random numbers: RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL, STABLEHLO_RNG_BIT_GENERATOR; RandomUniform,
RandomUniformInt, RandomStandardNormal, Multinomial.

Lives here: their rules.
Not here: the operators (lite/ops/random.py, stablehlo_random.py, lite/customs/random.py), what states are kept in
(lite/runtime/resources.py).

A node draws from the sequence that its reference kernel draws from, wherever that is: so both give the same numbers,
and take turns.
"""

from __future__ import annotations

import math

import numpy as np

from ....compiler.loops.expressions import Expr, apply, arg, const, convert, scalar, substitute
from ....compiler.loops.forms import Bitcast, Buffer, IndexMap, Map, Move, View
from ....compiler.loops.random_forms import Advanced, Classes, NormalPairs, RandomWords
from ....core.dtypes import float32, float64, int8, int32, int64, uint32, uint64
from ...ops.random import blocks_of_samples, seeds_of
from ...ops.stablehlo_random import ALGORITHMS, BITS
from ..nodes import At, Operand, Refused
from ..variables import Assignment, Reading
from .elementwise import registered
from .registry import rule

PER_BLOCK = ALGORITHMS["PHILOX"][1]
"""Words of a block of Philox."""


def _words(at: At, count: int, blocks: int | None = None) -> Buffer:
    """The next words of the node's sequence, which goes on behind so many blocks."""
    memory = at.sequence(seeds_of(registered(at)._call(at.node)))
    state, after = (at.new(uint64, memory.shape, f".{name}") for name in ("state", "after"))
    words = at.new(uint32, (count,), ".words")
    at.form(Reading, state, memory)
    at.form(RandomWords, words, state, "philox", True)
    at.form(Advanced, after, state, -(-count // PER_BLOCK) if blocks is None else blocks, True)
    at.form(Assignment, Buffer(f"{memory.name}.after", uint64, memory.shape), after, memory)
    return words


def _check_filled(at: At) -> Operand:
    """The output. Raises Refused where its shape is not the constant that the first input is, or it has no elements."""
    y = at.output(at.constant(0).reshape(-1).tolist())
    if not y.size:
        raise Refused(f"random numbers {y}")
    return y


def _uniform(at: At, out: Buffer) -> None:
    """float32 in [0, 1) of the lower 23 bits of each word."""
    bits = apply("bitwise_and", arg(0, uint32), const(0x7FFFFF, uint32))
    ones = apply("bitwise_or", bits, const(127 << 23, uint32))
    value = apply("sub", Expr("bitcast", float32, (ones,)), const(1.0, float32))
    at.form(Map, out, (_words(at, out.size),), value)


def _doubles(at: At, count: int, blocks: int | None = None) -> tuple[Buffer, Expr]:
    """float64 in [0, 1) as expressions of pairs of words, which are an integer each: 20 bits of the first word, all of
    the second."""
    pairs = at.new(uint64, (count,), ".pairs")
    at.form(Bitcast, pairs, _words(at, 2 * count, blocks))
    pair, half = arg(0, uint64), const(32, uint64)
    upper = apply("shift_left", apply("bitwise_and", pair, const(0xFFFFF, uint64)), half)
    bits = apply("bitwise_or", apply("bitwise_or", upper, apply("shift_right", pair, half)), const(1023 << 52, uint64))
    return pairs, apply("sub", Expr("bitcast", float64, (bits,)), const(1.0, float64))


@rule("RANDOM_UNIFORM")
def uniform(at: At) -> None:
    y = _check_filled(at)
    out, close = at.under(y, (y.size,))
    _uniform(at, out)
    close()


@rule("RANDOM_STANDARD_NORMAL")
def normal(at: At) -> None:
    y = _check_filled(at)
    numbers = at.new(float32, (y.size + y.size % 2,), ".uniform")
    _uniform(at, numbers)
    at.form(NormalPairs, y.buffer, numbers)


@rule("MULTINOMIAL", "Multinomial")
def multinomial(at: At) -> None:
    """The builtin passes over blocks that others may use, the custom one does not."""
    logits, samples = at.operand(0), at.constant(1).reshape(-1)
    builtin = at.node.name == "MULTINOMIAL"
    if samples.size != 1 or len(logits.shape) != 2 or not logits.size:
        raise Refused(f"samples of {logits}")
    batch, n = logits.shape[0], int(samples[0])
    y = at.output((batch, n))
    if not y.size or y.dtype not in (int32, int64):
        raise Refused(f"samples {y}")
    pairs, value = _doubles(at, batch * n, blocks_of_samples(batch, n) if builtin else None)
    numbers = at.new(float64, (batch * n,), ".numbers")
    at.form(Map, numbers, (pairs,), value)
    at.form(Classes, y.buffer, logits.buffer, numbers, not builtin)


@rule("STABLEHLO_RNG_BIT_GENERATOR")
def random_bits(at: At) -> None:
    state = at.operand(0)
    sizes, per_block, _ = ALGORITHMS[at.option("algorithm") or "DEFAULT"]
    after, y = at.output(state.shape), at.output(place=1)
    if state.dtype is not uint64 or state.shape not in [(n,) for n in sizes] or y.dtype not in BITS or not y.size:
        raise Refused(f"random bits {y} of {state}")
    count = y.size * y.dtype.size // 4
    algorithm = "threefry" if at.option("algorithm") == "THREEFRY" else "philox"
    words = at.new(uint32, (count,), ".words")
    at.form(RandomWords, words, state.buffer, algorithm, False)
    at.form(Bitcast if y.dtype is not uint32 else View, y.buffer, words)
    at.form(Advanced, after.buffer, state.buffer, -(-count // per_block), False)


# ---- under TensorFlow's names ---------------------------------------------------------------------------------------


@rule("RandomUniform")
def custom_uniform(at: At) -> None:
    """Of float64; rounding to float32 may give 1, which is outside the law."""
    y = _check_filled(at)
    pairs, value = _doubles(at, y.size)
    if y.dtype is float32:
        most = float(np.nextafter(np.float32(1), np.float32(0)))
        value = apply("minimum", convert(value, float32), const(most, float32))
    _written(at, y, value, pairs)


@rule("RandomUniformInt")
def custom_integers(at: At) -> None:
    """Limits are known, and no further apart than float64 has whole numbers."""
    low, high = (int(at.constant(i).reshape(-1)[0]) for i in (1, 2))
    y = _check_filled(at)
    if not 0 < high - low < 1 << 52 or y.dtype not in (int8, int32, int64):
        raise Refused(f"integers from {low} to {high}, {y}")
    pairs, value = _doubles(at, y.size)
    steps = convert(apply("mul", value, scalar(float(high - low), float64)), int64)
    found = apply("add", apply("minimum", steps, scalar(high - low - 1, int64)), scalar(low, int64))
    _written(at, y, convert(found, y.dtype), pairs)


@rule("RandomStandardNormal")
def custom_normal(at: At) -> None:
    """Box and Muller's cosines: of 2 n numbers in [0, 1) the first n are radii, the others turns."""
    y = _check_filled(at)
    if y.dtype is not float32:
        raise Refused(f"normal numbers {y}")
    pairs, value = _doubles(at, 2 * y.size)
    halves = [at.new(uint64, (y.size,), f".{name}") for name in ("radii", "turns")]
    for i, half in enumerate(halves):
        at.form(Move, half, (pairs,), (IndexMap((0,), half.shape, i * y.size, (1,)),))
    from_one = convert(apply("sub", const(1.0, float64), value), float32)
    radius = apply("sqrt", apply("mul", apply("log", from_one), const(-2.0, float32)))
    angle = convert(apply("mul", substitute(value, {0: arg(1, uint64)}), const(2 * math.pi, float64)), float32)
    _written(at, y, apply("mul", radius, apply("cos", angle)), *halves)


def _written(at: At, y: Operand, value: Expr, *operands: Buffer) -> None:
    out, close = at.under(y, (y.size,))
    at.form(Map, out, operands, value)
    close()
