"""Random numbers: RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL, STABLEHLO_RNG_BIT_GENERATOR; RandomUniform,
RandomUniformInt, RandomStandardNormal, Multinomial.

Lives here: their rules.  Not here: memory of states (variables.py).

A node draws from the sequence that its reference kernel draws from, wherever that is: so both give the same numbers,
and take turns.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.dtypes import float32, float64, int8, int32, int64, uint32, uint64
from ...scalar.counter_generators import BIT_TYPES, BLOCK_WORDS
from ..loops.buffers import Buffer, IndexMap
from ..loops.expressions import Expr, apply, arg, const, convert, scalar, substitute
from ..loops.numeric_ops import Advanced, Classes, NormalPairs, RandomWords
from ..loops.ops import Bitcast, Map, Move, View
from .context import LoweringContext, NoLowering, RuleOperand
from .registry import rule
from .variables import Assignment, Reading, sequence_of


def _words(ctx: LoweringContext, count: int, blocks: int | None = None) -> Buffer:
    """The next words of the node's sequence, which goes on behind so many blocks."""
    memory = sequence_of(ctx, ctx.node.call.seeds())
    state, after = (ctx.new(uint64, memory.shape, f".{name}") for name in ("state", "after"))
    words = ctx.new(uint32, (count,), ".words")
    ctx.add(Reading, state, memory)
    ctx.add(RandomWords, words, state, "philox", True)
    ctx.add(Advanced, after, state, -(-count // BLOCK_WORDS["philox"]) if blocks is None else blocks, True)
    ctx.add(Assignment, Buffer(f"{memory.name}.after", uint64, memory.shape), after, memory)
    return words


def _check_filled(ctx: LoweringContext) -> RuleOperand:
    """Return the output. Raises NoLowering if its shape is not the constant first input, or it has no elements."""
    y = ctx.output(ctx.constant(0).reshape(-1).tolist())
    if not y.size:
        raise NoLowering(f"random numbers {y}")
    return y


def _uniform(ctx: LoweringContext, out: Buffer) -> None:
    """float32 in [0, 1) of the lower 23 bits of each word."""
    bits = apply("bitwise_and", arg(0, uint32), const(0x7FFFFF, uint32))
    ones = apply("bitwise_or", bits, const(127 << 23, uint32))
    value = apply("sub", Expr("bitcast", float32, (ones,)), const(1.0, float32))
    ctx.add(Map, out, (_words(ctx, out.size),), value)


def _doubles(ctx: LoweringContext, count: int, blocks: int | None = None) -> tuple[Buffer, Expr]:
    """float64 in [0, 1) as expressions of pairs of words, which are an integer each: 20 bits of the first word, all of
    the second."""
    pairs = ctx.new(uint64, (count,), ".pairs")
    ctx.add(Bitcast, pairs, _words(ctx, 2 * count, blocks))
    pair, half = arg(0, uint64), const(32, uint64)
    upper = apply("shift_left", apply("bitwise_and", pair, const(0xFFFFF, uint64)), half)
    bits = apply("bitwise_or", apply("bitwise_or", upper, apply("shift_right", pair, half)), const(1023 << 52, uint64))
    return pairs, apply("sub", Expr("bitcast", float64, (bits,)), const(1.0, float64))


@rule("RANDOM_UNIFORM")
def uniform(ctx: LoweringContext) -> None:
    y = _check_filled(ctx)
    with ctx.reshaped(y, (y.size,)) as out:
        _uniform(ctx, out)


@rule("RANDOM_STANDARD_NORMAL")
def normal(ctx: LoweringContext) -> None:
    y = _check_filled(ctx)
    numbers = ctx.new(float32, (y.size + y.size % 2,), ".uniform")
    _uniform(ctx, numbers)
    ctx.add(NormalPairs, y.buffer, numbers)


@rule("MULTINOMIAL", custom=("Multinomial",))
def multinomial(ctx: LoweringContext) -> None:
    """The builtin passes over blocks that others may use, the custom one does not."""
    logits, samples = ctx.operand(0), ctx.constant(1).reshape(-1)
    builtin = ctx.operator == "MULTINOMIAL"
    if samples.size != 1 or len(logits.shape) != 2 or not logits.size:
        raise NoLowering(f"samples of {logits}")
    batch, n = logits.shape[0], int(samples[0])
    y = ctx.output((batch, n))
    if not y.size or y.dtype not in (int32, int64):
        raise NoLowering(f"samples {y}")
    pairs, value = _doubles(ctx, batch * n, ctx.node.call.blocks(batch, n) if builtin else None)
    numbers = ctx.new(float64, (batch * n,), ".numbers")
    ctx.add(Map, numbers, (pairs,), value)
    ctx.add(Classes, y.buffer, logits.buffer, numbers, not builtin)


@rule("STABLEHLO_RNG_BIT_GENERATOR")
def random_bits(ctx: LoweringContext) -> None:
    state = ctx.operand(0)
    algorithm = "threefry" if ctx.attr("algorithm") == "THREEFRY" else "philox"
    after, y = ctx.output(state.shape), ctx.output(place=1)
    if (
        state.dtype is not uint64
        or state.shape not in [(n,) for n in ctx.node.call.state_sizes()]
        or y.dtype not in BIT_TYPES
        or not y.size
    ):
        raise NoLowering(f"random bits {y} of {state}")
    count = y.size * y.dtype.size // 4
    words = ctx.new(uint32, (count,), ".words")
    ctx.add(RandomWords, words, state.buffer, algorithm, False)
    ctx.add(Bitcast if y.dtype is not uint32 else View, y.buffer, words)
    ctx.add(Advanced, after.buffer, state.buffer, -(-count // BLOCK_WORDS[algorithm]), False)


# ---- under TensorFlow's names ---------------------------------------------------------------------------------------


@rule(custom=("RandomUniform",))
def custom_uniform(ctx: LoweringContext) -> None:
    """Of float64; rounding to float32 may give 1, which is outside the law."""
    y = _check_filled(ctx)
    pairs, value = _doubles(ctx, y.size)
    if y.dtype is float32:
        most = float(np.nextafter(np.float32(1), np.float32(0)))
        value = apply("minimum", convert(value, float32), const(most, float32))
    _written(ctx, y, value, pairs)


@rule(custom=("RandomUniformInt",))
def custom_integers(ctx: LoweringContext) -> None:
    """Limits are known, and no further apart than float64 has whole numbers."""
    low, high = (int(ctx.constant(i).reshape(-1)[0]) for i in (1, 2))
    y = _check_filled(ctx)
    if not 0 < high - low < 1 << 52 or y.dtype not in (int8, int32, int64):
        raise NoLowering(f"integers from {low} to {high}, {y}")
    pairs, value = _doubles(ctx, y.size)
    steps = convert(apply("mul", value, scalar(float(high - low), float64)), int64)
    found = apply("add", apply("minimum", steps, scalar(high - low - 1, int64)), scalar(low, int64))
    _written(ctx, y, convert(found, y.dtype), pairs)


@rule(custom=("RandomStandardNormal",))
def custom_normal(ctx: LoweringContext) -> None:
    """Box and Muller's cosines: of 2 n numbers in [0, 1) the first n are radii, the others turns."""
    y = _check_filled(ctx)
    if y.dtype is not float32:
        raise NoLowering(f"normal numbers {y}")
    pairs, value = _doubles(ctx, 2 * y.size)
    halves = [ctx.new(uint64, (y.size,), f".{name}") for name in ("radii", "turns")]
    for i, half in enumerate(halves):
        ctx.add(Move, half, (pairs,), (IndexMap((0,), half.shape, i * y.size, (1,)),))
    from_one = convert(apply("sub", const(1.0, float64), value), float32)
    radius = apply("sqrt", apply("mul", apply("log", from_one), const(-2.0, float32)))
    angle = convert(apply("mul", substitute(value, {0: arg(1, uint64)}), const(2 * math.pi, float64)), float32)
    _written(ctx, y, apply("mul", radius, apply("cos", angle)), *halves)


def _written(ctx: LoweringContext, y: RuleOperand, value: Expr, *operands: Buffer) -> None:
    with ctx.reshaped(y, (y.size,)) as out:
        ctx.add(Map, out, operands, value)
