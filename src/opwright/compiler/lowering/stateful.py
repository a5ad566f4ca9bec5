"""Operators with state: variables and random generators.

Lives here: the rules of READ_VARIABLE, ASSIGN_VARIABLE, CALL_ONCE, odml.update_kv_cache; of RANDOM_UNIFORM,
RANDOM_STANDARD_NORMAL, MULTINOMIAL, STABLEHLO_RNG_BIT_GENERATOR, RandomUniform, RandomUniformInt, RandomStandardNormal,
Multinomial; of the catalogue's StatelessRandomUniform, ...Int, ...FullInt and ...Normal, StatelessMultinomial;
`ResourceState`, memory that persists from run to run; the operations `Reading` and `Assignment`, and `with_stores`,
which replaces those of one plan by views at its start and Stores at its end.
Not here: resources, which the graph's owner has; in-place computation of stored values (../loops/planner.py).

After an assignment, a variable is the assigned buffer, so that no read within a plan waits for memory. A compiled node
and its reference kernel draw from the same random sequence, so that both return the same numbers and may alternate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence
from typing import Any, Protocol

import numpy as np

from ...core.dtypes import DType, bfloat16, float16, float32, float64, int8, int32, int64, uint16, uint32, uint64
from ...core.dtypes import bool as bool_
from ...core.records import record
from ...graph import Node, Value
from ...scalar.counter_generators import BIT_TYPES, BLOCK_WORDS, ZIGGURAT_END
from ..loops.buffers import Buffer, IndexMap, SameMemory
from ..loops.domain_ops import AcceptedElements, Advanced, Classes, NormalPairs, RandomElements, RandomWords
from ..loops.expressions import Expr, apply, arg, const, convert, scalar, substitute
from ..loops.indexing_ops import AppendEntries
from ..loops.ops import Checked, LoopOp, Map, Move, Reinterpret, Store, View
from .context import LoweringContext, NoLowering, RuleOperand
from .registry import rule
from .type_conversion import check_whole_bytes


class ResourceState(Protocol):
    """Resources of a graph: variables by the values of their handles, generator states by node."""

    def variable(self, handle: Value) -> tuple[str, Hashable] | None:
        """Return the name of a handle's memory and the variable, or None if it is determined at run time."""
        ...

    def cache(self, node: Node, layer: int) -> Sequence[tuple[str, Hashable]]:
        """Return the names of the memory and the variables of a layer's key-value cache: the keys, the values, and the
        position of entry 0 as the node counts it."""
        ...

    def sequence(self, node: Node, seeds: tuple[int, int]) -> tuple[str, Hashable]:
        """Return the name of the memory and the resource of a node's random numbers."""
        ...


@record
class Reading(LoopOp):
    """The value of a variable at this point of the plan."""

    variable: Buffer


@record
class Assignment(LoopOp):
    """An assignment of a variable. output: a placeholder without readers."""

    input: Buffer
    variable: Buffer


def with_stores(ops: Sequence[LoopOp]) -> tuple[list[LoopOp], list[Buffer], list[Buffer]]:
    """Return a plan's operations with views for reads and Stores at the end; the variables; their values afterwards."""
    lowered: list[LoopOp] = []
    variables: dict[int, Buffer] = {}
    now: dict[int, Assignment] = {}
    for op in ops:
        if isinstance(op, Reading | Assignment):
            variables[id(op.variable)] = op.variable
        if isinstance(op, Assignment):
            now[id(op.variable)] = op
        elif isinstance(op, Reading):
            last = now.get(id(op.variable))
            lowered.append(View(op.output, op.variable if last is None else last.input, origin=op.origin))
        else:
            lowered.append(op)
    after: list[Buffer] = []
    for key, op in now.items():
        v = variables[key]
        after.append(SameMemory(v.name, v.dtype, v.shape, of=v))
        lowered.append(Store(after[-1], op.input, origin=op.origin))
    return lowered, list(variables.values()), after


def sequence_of(ctx: LoweringContext, seeds: tuple[int, int]) -> Buffer:
    """Return the memory of the node's random generator. Raises NoLowering if sizes are assumed."""
    name, resource = _resources(ctx).sequence(ctx.node.node, seeds)
    memory = Buffer(name, uint64, (3,))
    ctx.buffers.state[resource] = memory, None
    return memory


def _resources(ctx: LoweringContext) -> ResourceState:
    if ctx.buffers.seen is not None or ctx.buffers.resources is None:  # plans of assumed sizes bind tensors alone
        raise NoLowering("it has state, and sizes that are known at run time only")
    return ctx.buffers.resources


def _variable_of(ctx: LoweringContext, value: Buffer, assigned: bool = False) -> Buffer:
    """Return the memory of the variable whose handle is the first input, as `memory_of`."""
    return memory_of(ctx, ctx.node.inputs[0] if ctx.node.inputs else None, value, assigned)


def memory_of(ctx: LoweringContext, handle: Any, value: Buffer, assigned: bool = False) -> Buffer:
    """Return the memory of the variable of a handle, for values like this one.

    raises NoLowering if the handle is known at run time only, or other nodes read or assign values of another type or
    shape
    """
    if handle is None:
        raise NoLowering("input 0 is omitted")
    variable_of_handle = _resources(ctx).variable(handle)
    if variable_of_handle is None:
        raise NoLowering(f"the variable of {handle!r} is unknown before a run")
    return _named_memory(ctx, *variable_of_handle, value, assigned)


def _named_memory(ctx: LoweringContext, name: str, variable: Hashable, value: Buffer, assigned: bool) -> Buffer:
    """Return the memory of a variable for values like this one; name: of new memory. Raises NoLowering as
    `memory_of`."""
    memory, shape = ctx.buffers.state.get(variable, (None, None))
    if memory is None:
        memory = Buffer(name, value.dtype, value.shape)
    if memory.dtype is not value.dtype or memory.size != value.size:
        raise NoLowering(f"{variable!r} is {memory} elsewhere")
    if assigned and shape not in (None, value.shape):
        raise NoLowering(f"{variable!r} gets the shape {list(shape or ())} elsewhere")
    ctx.buffers.state[variable] = memory, value.shape if assigned else shape
    return memory


@rule("READ_VARIABLE")
def read(ctx: LoweringContext) -> None:
    y = ctx.output()
    check_whole_bytes(y)
    ctx.add(Reading, y.buffer, _variable_of(ctx, y.buffer))


@rule("ASSIGN_VARIABLE")
def assign(ctx: LoweringContext) -> None:
    x = ctx.operand(1)
    check_whole_bytes(x)
    variable = _variable_of(ctx, x.buffer, assigned=True)
    ctx.add(Assignment, Buffer(f"{variable.name}.after", x.dtype, x.shape), x.buffer, variable)


@rule(custom=("odml.update_kv_cache",))
def update_cache(ctx: LoweringContext) -> None:
    """Lower keys and values that are put into a layer's cache, which is kept from run to run."""
    position, parts = ctx.operand(0), [ctx.operand(i) for i in (1, 2)]
    n, inner = parts[0].shape[1], parts[0].shape[2:]
    outputs = [ctx.output(index=i) for i in range(2)]
    entries = outputs[0].shape[1]
    if any(o.dtype is not float32 or not o.size for o in (*parts, *outputs)) or position.dtype is not int64:
        raise NoLowering(f"{parts} in a cache {outputs[0]}")
    if any(o.shape != (1, entries, *inner) for o in outputs) or any(o.shape != (1, n, *inner) for o in parts):
        raise NoLowering(f"{parts} in a cache {outputs[0]}")
    *caches, counted = _resources(ctx).cache(ctx.node.node, ctx.node.call.layer())
    first, after = ctx.new(int64, (1,), ".first"), ctx.new(int64, (1,), ".first.after")
    memory = _named_memory(ctx, *counted, first, True)
    ctx.add(Reading, first, memory)
    begin, offset, at = (ctx.new(int64, (1,), f".{name}") for name in ("begin", "offset", "checked"))
    ctx.add(Move, begin, (position.buffer,), (IndexMap((0,), (1,), 0, (1,)),))
    a, b, spare = arg(0, int64), arg(1, int64), const(entries - n, int64)
    is_before = Expr("less", bool_, (a, b))
    ctx.add(Map, offset, (begin, first), Expr("select", int64, (is_before, const(-1, int64), apply("sub", a, b))))
    ctx.add(Checked, at, offset, "below", 0)
    shift = apply("maximum", apply("sub", b, spare), const(0, int64))
    ctx.add(Map, after, (first, at), apply("add", a, shift))
    ctx.add(Assignment, Buffer(f"{memory.name}.after", int64, (1,)), after, memory)
    for y, part, (name, variable) in zip(outputs, parts, caches):
        before, now = (ctx.new(float32, (entries, *inner), f".{y.buffer.name}.{when}") for when in ("before", "now"))
        memory = _named_memory(ctx, name, variable, before, True)
        ctx.add(Reading, before, memory)
        ctx.add(AppendEntries, now, before, ctx.viewed(part.buffer, (n, *inner)), at)
        ctx.add(Assignment, Buffer(f"{memory.name}.after", float32, now.shape), now, memory)
        ctx.add(View, y.buffer, now)


@rule("CALL_ONCE")
def call_once(ctx: LoweringContext) -> None:
    """Add no operation: the caller runs the subgraph before the plan."""


def _words(ctx: LoweringContext, count: int, blocks: int | None = None, pairs: bool = False) -> Buffer:
    """Draw words from the node's sequence, which advances by `blocks`. pairs: see `RandomWords`."""
    memory = sequence_of(ctx, ctx.node.call.seeds())
    state, after = (ctx.new(uint64, memory.shape, f".{name}") for name in ("state", "after"))
    words = ctx.new(uint32, (count,), ".words")
    ctx.add(Reading, state, memory)
    ctx.add(RandomWords, words, state, "philox", True, pairs)
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
    """Add float32 numbers in [0, 1) from the low 23 bits of each word."""
    bits = apply("bitwise_and", arg(0, uint32), const(0x7FFFFF, uint32))
    ones = apply("bitwise_or", bits, const(127 << 23, uint32))
    value = apply("sub", Expr("bitcast", float32, (ones,)), const(1.0, float32))
    ctx.add(Map, out, (_words(ctx, out.size),), value)


def _doubles(ctx: LoweringContext, count: int, blocks: int | None = None) -> tuple[Buffer, Expr]:
    """Return float64 numbers in [0, 1) as expressions of word pairs: 20 bits of the first word, all of the second."""
    pairs = ctx.new(uint64, (count,), ".pairs")
    ctx.add(Reinterpret, pairs, _words(ctx, 2 * count, blocks, True))
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
    """Lower sampling of classes; the builtin skips blocks of the sequence, the custom operator does not."""
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
    after, y = ctx.output(state.shape), ctx.output(index=1)
    if (
        state.dtype is not uint64
        or state.shape not in [(n,) for n in ctx.node.call.state_sizes()]
        or y.dtype not in BIT_TYPES
        or not y.size
    ):
        raise NoLowering(f"random bits {y} of {state}")
    count = y.size * y.dtype.size // 4
    words = ctx.new(uint32, (count,), ".words")
    ctx.add(RandomWords, words, state.buffer, algorithm, False, y.dtype.size == 8)
    ctx.add(Reinterpret if y.dtype is not uint32 else View, y.buffer, words)
    ctx.add(Advanced, after.buffer, state.buffer, -(-count // BLOCK_WORDS[algorithm]), False)


@rule(custom=("RandomUniform",))
def custom_uniform(ctx: LoweringContext) -> None:
    """Lower RandomUniform, computed in float64; a result rounded to 1 in float32 is out of range and clamped."""
    y = _check_filled(ctx)
    pairs, value = _doubles(ctx, y.size)
    if y.dtype is float32:
        below_one = float(np.nextafter(np.float32(1), np.float32(0)))
        value = apply("minimum", convert(value, float32), const(below_one, float32))
    _write(ctx, y, value, pairs)


@rule(custom=("RandomUniformInt",))
def custom_integers(ctx: LoweringContext) -> None:
    """Lower RandomUniformInt of constant limits whose distance is exact in float64."""
    low, high = (int(ctx.constant(i).reshape(-1)[0]) for i in (1, 2))
    y = _check_filled(ctx)
    if not 0 < high - low < 1 << 52 or y.dtype not in (int8, int32, int64):
        raise NoLowering(f"integers from {low} to {high}, {y}")
    pairs, value = _doubles(ctx, y.size)
    steps = convert(apply("mul", value, scalar(float(high - low), float64)), int64)
    value = apply("add", apply("minimum", steps, scalar(high - low - 1, int64)), scalar(low, int64))
    _write(ctx, y, convert(value, y.dtype), pairs)


@rule(custom=("RandomStandardNormal",))
def custom_normal(ctx: LoweringContext) -> None:
    """Lower RandomStandardNormal by the cosines of the Box-Muller transform: of 2 n uniform numbers, the first n are
    radii, the others angles."""
    y = _check_filled(ctx)
    if y.dtype not in (float32, float64):
        raise NoLowering(f"normal numbers {y}")
    pairs, value = _doubles(ctx, 2 * y.size)
    halves = [ctx.new(uint64, (y.size,), f".{name}") for name in ("radii", "turns")]
    for i, half in enumerate(halves):
        ctx.add(Move, half, (pairs,), (IndexMap((0,), half.shape, i * y.size, (1,)),))
    from_one = convert(apply("sub", const(1.0, float64), value), y.dtype)
    radius = apply("sqrt", apply("mul", apply("log", from_one), const(-2.0, y.dtype)))
    angle = convert(apply("mul", substitute(value, {0: arg(1, uint64)}), const(2 * math.pi, float64)), y.dtype)
    _write(ctx, y, apply("mul", radius, apply("cos", angle)), *halves)


def _write(ctx: LoweringContext, y: RuleOperand, value: Expr, *operands: Buffer) -> None:
    with ctx.reshaped(y, (y.size,)) as out:
        ctx.add(Map, out, operands, value)


def _key(ctx: LoweringContext, index: int = 1) -> Buffer:
    """Return the seed of a stateless operator of the catalogue, by default its second input, as the key of a stream."""
    seed = ctx.operand(index)
    if seed.shape not in ((2,), (3,)) or seed.dtype not in (int32, int64, uint32, uint64):
        raise NoLowering(f"the seed {seed}")
    if seed.dtype.size == 8:
        return ctx.bits(seed.buffer, uint64, seed.shape)
    wide = ctx.new(int64, seed.shape, ".seed")
    ctx.add(Map, wide, (seed.buffer,), convert(arg(0, seed.dtype), int64))
    return ctx.bits(wide, uint64, seed.shape)


def _elements(ctx: LoweringContext, y: RuleOperand, word: DType, value: Expr) -> None:
    """Add random elements. value: of a word of the stream, arg 0."""
    ctx.add(RandomElements, y.buffer, _key(ctx), word, value)


def _upper_bits(word: DType, bits: int) -> Expr:
    """Return the upper bits of a word as an integer."""
    if bits == 8 * word.size:
        return arg(0, word)
    return apply("shift_right", arg(0, word), const(8 * word.size - bits, word))


_FRACTIONS = {float16: (uint16, 11), bfloat16: (uint16, 8), float32: (uint32, 24), float64: (uint64, 53)}
"""By type, the words that uniform floats are drawn from, and how many bits of them, as ops/random/stateful.uniform."""


@rule("StatelessRandomUniform")
def stateless_uniform(ctx: LoweringContext) -> None:
    y = _check_filled(ctx)
    _elements(ctx, y, _FRACTIONS[y.dtype][0], _fraction(y.dtype))


def _fraction(dtype: DType) -> Expr:
    """Return a uniform number in [0, 1) of a word of the stream."""
    word, bits = _FRACTIONS[dtype]
    wide = float64 if dtype is float64 else float32
    whole = convert(_upper_bits(word, bits), int64 if wide is float64 else int32)
    return convert(apply("mul", convert(whole, wide), const(0.5**bits, wide)), dtype)


@rule("StatelessMultinomial")
def stateless_multinomial(ctx: LoweringContext) -> None:
    """Lower classes by weights, which uniform float64 numbers choose."""
    logits, samples = ctx.operand(0), int(ctx.constant(1).reshape(-1)[0])
    y = ctx.output((logits.shape[0], samples))
    if not logits.size or not y.size or y.dtype not in (int32, int64):
        raise NoLowering(f"samples {y} of {logits}")
    numbers = ctx.new(float64, y.shape, ".numbers")
    ctx.add(RandomElements, numbers, _key(ctx, 2), _FRACTIONS[float64][0], _fraction(float64))
    ctx.add(Classes, y.buffer, logits.buffer, numbers, True)


@rule("StatelessRandomUniformFullInt")
def stateless_full_int(ctx: LoweringContext) -> None:
    y = _check_filled(ctx)
    _integers(ctx, y, int(y.dtype.min), 8 * y.dtype.size)


@rule("StatelessRandomUniformInt")
def stateless_integers(ctx: LoweringContext) -> None:
    """Lower integers of constant limits; those whose distance is a power of two take one word each."""
    low, high = (int(ctx.constant(i).reshape(-1)[0]) for i in (2, 3))
    y, bits = _check_filled(ctx), (high - low).bit_length() - 1
    if not low < high or (bits >= 32 and high - low != 1 << bits):
        raise NoLowering(f"integers from {low} to {high}")
    if high - low == 1 << bits:
        _integers(ctx, y, low, bits)
        return
    drawn, unsigned = ctx.new(uint32, y.shape, ".drawn"), uint32 if y.dtype.size == 4 else uint64
    ctx.add(AcceptedElements, drawn, _key(ctx), span=high - low)
    value = apply("add", convert(arg(0, uint32), unsigned), const(low % (1 << 8 * y.dtype.size), unsigned))
    ctx.add(Map, y.buffer, (drawn,), value if y.dtype is unsigned else Expr("bitcast", y.dtype, (value,)))


def _integers(ctx: LoweringContext, y: RuleOperand, low: int, bits: int) -> None:
    """Add `low` plus random bits, the upper ones of a word (Lemire 2019, for powers of two)."""
    word, wrapped = (uint32 if bits <= 32 else uint64), low % (1 << 8 * y.dtype.size)
    unsigned = uint32 if y.dtype.size == 4 else uint64
    if not bits:  # no word is drawn
        raise NoLowering(f"a single integer, {low}")
    value = apply("add", convert(_upper_bits(word, bits), unsigned), const(wrapped, unsigned))
    _elements(ctx, y, word, value if y.dtype is unsigned else Expr("bitcast", y.dtype, (value,)))


@rule("StatelessRandomNormal")
def stateless_normal(ctx: LoweringContext) -> None:
    """Lower normal numbers of float32, and of narrow floats, which are those rounded."""
    y = _check_filled(ctx)
    if y.dtype is float64:
        raise NoLowering("the layers of NumPy's ziggurat for float64 are unknown")
    numbers = y.buffer if y.dtype is float32 else ctx.new(float32, y.shape, ".wide")
    layers = _ziggurat()
    ctx.add(AcceptedElements, numbers, _key(ctx), (Buffer("ziggurat", uint32, layers.shape, layers),))
    if numbers is not y.buffer:
        ctx.add(Map, y.buffer, (numbers,), convert(arg(0, float32), y.dtype))


@functools.cache
def _ziggurat() -> np.ndarray:
    """Return the layers of a ziggurat over exp(-x^2 / 2) for numbers of 23 bits: `AcceptedElements.layers`.

    Layer k > 0 reaches to x[k], x[255] = r, and all have the area v; layer 0 is as wide as if the tail were in it
    (Marsaglia and Tsang 2000). Equal to the tables of NumPy's `standard_normal` of float32.
    """
    r, v, steps = ZIGGURAT_END, 0.0049286732339746519, 2.0**23
    x, density = [0.0] * 256, [1.0] * 256
    x[255], density[255] = r, math.exp(-0.5 * r * r)
    for k in range(254, 0, -1):
        x[k] = math.sqrt(-2 * math.log(v / x[k + 1] + density[k + 1]))
        density[k] = math.exp(-0.5 * x[k] * x[k])
    x[0] = v / density[255]
    limits = np.array([r / x[0], 0.0, *(x[k] / x[k + 1] for k in range(1, 255))]) * steps
    widths, densities = (np.array(a).astype(np.float32).view(np.uint32) for a in (np.array(x) / steps, density))
    return np.stack([np.rint(limits).astype(np.uint32), widths, densities])
