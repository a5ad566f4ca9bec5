"""Rules of random bits: Threefry by its definition, and what JAX composes of it.

Lives here: threefry2x32; rng_bit_generator (Threefry, Philox); random_bits, _split, _fold_in, _seed, _wrap and
_unwrap. Not here: distributions, which JAX writes as arithmetic on bits.

The operators on keys are traced by JAX's own definition of the key's generator, so the bits are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import as_dtype
from ....core.lazy_imports import import_module
from ....ops import array, bitwise, math
from ....scalar.counter_generators import MULTIPLIERS, PARITY, ROTATIONS, WEYL
from ...importing import tensor_of
from ..execution import BROADCASTING, RULES, JaxprContext
from ..operands import like, operands, shaped
from .arrays import part
from .integers import UNSIGNED, rotate_left

BROADCASTING.add("threefry2x32")


@RULES.rule("threefry2x32")
def threefry2x32(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the two words that Threefry of 20 rounds gives for a key (two words) and a counter (two words)."""
    x, y = threefry(*operands(inputs))
    return [shaped(x, context.shape), shaped(y, context.shape)]


def threefry(first: Any, second: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the two words of Threefry-2x32 with 20 rounds for a key and a counter of two words."""
    keys = [first, second, bitwise.bitwise_xor(bitwise.bitwise_xor(first, second), like(PARITY, first))]
    x, y = math.add(x, keys[0]), math.add(y, keys[1])
    for i in range(5):
        for rotation in ROTATIONS[i % 2]:
            x = math.add(x, y)
            y = bitwise.bitwise_xor(rotate_left(y, rotation), x)
        x = math.add(x, keys[(i + 1) % 3])
        y = math.add(math.add(y, keys[(i + 2) % 3]), like(i + 1, y))
    return x, y


def philox(keys: Sequence[Any], counters: Sequence[Any]) -> list[Any]:
    """Return the four words of Philox-4x32 with 10 rounds for a key of two words and a counter of four."""
    keys, c = list(keys), list(counters)
    for i in range(10):
        if i:
            keys = [math.add(k, like(w, k)) for k, w in zip(keys, WEYL)]
        products = [_wide_product(c[j], m) for j, m in zip((0, 2), MULTIPLIERS)]
        (high_0, low_0), (high_1, low_1) = products
        left = bitwise.bitwise_xor(bitwise.bitwise_xor(high_1, c[1]), keys[0])
        right = bitwise.bitwise_xor(bitwise.bitwise_xor(high_0, c[3]), keys[1])
        c = [left, low_1, right, low_0]
    return c


def _wide_product(x: Any, factor: int) -> tuple[Any, Any]:
    product = math.multiply(array.cast(x, "uint64"), np.uint64(factor))
    return _words(product)[::-1]


def _words(x: Any) -> tuple[Any, Any]:
    """Return the low and the high word of integers of 64 bits."""
    return array.cast(x, "uint32"), array.cast(bitwise.right_shift(x, like(32, x)), "uint32")


def _joined_words(low: Any, high: Any) -> Any:
    high = array.cast(high, "uint64")
    return bitwise.bitwise_or(array.cast(low, "uint64"), bitwise.left_shift(high, like(32, high)))


@RULES.rule("rng_bit_generator")
def rng_bit_generator(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the next state and random bits of Threefry or Philox, in XLA's order; by default Philox, as on CPUs.

    The state is words: two of the key, two of the counter, for Philox two more of the counter or the key again.
    """
    state = tensor_of(inputs[0])
    shape, dtype = [int(d) for d in params["shape"]], as_dtype(params["dtype"])
    is_threefry = "THREE_FRY" in str(getattr(params["algorithm"], "name", params["algorithm"]))
    words = [state[i] for i in range(int(state.shape[0]))]
    count = int(np.prod(shape, dtype=np.int64)) * (2 if dtype.size == 8 else 1)
    if is_threefry:
        steps, bits = _threefry_bits(words, shape, dtype)
    else:
        steps = -(-count // 4)
        counter = math.add(_joined_words(*words[2:4]), np.arange(steps, dtype=np.uint64))
        rest = [array.broadcast_to(w, [steps]) for w in (words[4:6] if len(words) > 4 else words[:2])]
        blocks = array.stack(philox(words[:2], [*_words(counter), *rest]), 1)
        bits = _packed(array.reshape(blocks, [-1])[:count], shape, dtype)
    following = _words(math.add(_joined_words(*words[2:4]), np.uint64(steps)))
    return [array.stack([*words[:2], *following, *words[4:]]), bits]


def _packed(words: Any, shape: Sequence[int], dtype: Any) -> Any:
    """Return words in a shape: two of them as one element of 64 bits, or the low bits of one."""
    if dtype.size == 8:
        pairs = array.reshape(words, [-1, 2])
        words = _joined_words(pairs[:, 0], pairs[:, 1])
    return _as(array.reshape(words, list(shape)), dtype)


def _as(bits: Any, dtype: Any) -> Any:
    unsigned = as_dtype(UNSIGNED[dtype.size])
    bits = bits if bits.dtype is unsigned else array.cast(bits, unsigned)
    return bits if unsigned is dtype else array.bitcast(bits, dtype)


def _threefry_bits(words: Sequence[Any], shape: Sequence[int], dtype: Any) -> tuple[int, Any]:
    """Return how far the counter moves, and bits: both words of a counter are one element of 64 bits, or two elements.

    These lie apart along the first axis of an even size, without one the first of the largest: [..., n / 2, word, ...].
    """
    axis = next((i for i, d in enumerate(shape) if d % 2 == 0), int(np.argmax(shape)) if shape else 0)
    half = list(shape)
    if dtype.size < 8 and shape:
        half[axis] = -(-shape[axis] // 2)
    steps = int(np.prod(half, dtype=np.int64))
    counter = math.add(_joined_words(*words[2:4]), np.arange(steps, dtype=np.uint64))
    first, second = threefry(words[0], words[1], *_words(counter))
    if dtype.size == 8:
        return steps, _as(array.reshape(_joined_words(first, second), list(shape)), dtype)
    if not shape:
        return steps, _as(array.reshape(first, []), dtype)
    pairs = array.stack([array.reshape(first, half), array.reshape(second, half)], axis + 1)
    joined = array.reshape(pairs, [*shape[:axis], 2 * half[axis], *shape[axis + 1 :]])
    return steps, _as(part(joined, axis, 0, shape[axis]), dtype)


@RULES.rule("iota_2x32_shape")
def iota_2x32_shape(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the high and low words of 0, 1, ... in row-major order of the shape."""
    count = np.arange(np.prod(params["shape"], dtype=np.int64), dtype=np.uint64).reshape(params["shape"])
    return [(count >> np.uint64(32)).astype(np.uint32), count.astype(np.uint32)]


def _implementation(equation: Any, params: Any) -> Any:
    impl = params.get("impl")
    return equation.invars[0].aval.dtype._impl if impl is None else impl


def _mapped(function: Any, axes: int) -> Any:
    jax = import_module("jax")
    for _ in range(axes):
        function = jax.vmap(function)
    return function


@RULES.rule("random_bits")
def random_bits(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return unsigned integers of bit_width bits for each key."""
    impl = _implementation(context.equation, params)
    keys = context.equation.invars[0].aval.shape
    function = _mapped(lambda key: impl.random_bits(key, params["bit_width"], tuple(params["shape"])), len(keys))
    return context.traced(function, inputs, [((*keys, *impl.key_shape), np.uint32)])


@RULES.rule("random_split")
def random_split(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return an array of new keys for each key."""
    impl = _implementation(context.equation, params)
    keys = context.equation.invars[0].aval.shape
    function = _mapped(lambda key: impl.split(key, tuple(params["shape"])), len(keys))
    return context.traced(function, inputs, [((*keys, *impl.key_shape), np.uint32)])


@RULES.rule("random_fold_in")
def random_fold_in(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return a new key for each key and number."""
    impl = _implementation(context.equation, params)
    keys, numbers = (v.aval for v in context.equation.invars)
    function = _mapped(impl.fold_in, len(keys.shape))
    kinds = [((*keys.shape, *impl.key_shape), np.uint32), (tuple(numbers.shape), numbers.dtype)]
    return context.traced(function, inputs, kinds)


@RULES.rule("random_seed")
def random_seed(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the key of each integer."""
    impl = params["impl"]
    seeds = context.equation.invars[0].aval
    function = _mapped(impl.seed, len(seeds.shape))
    return context.traced(function, inputs, [(tuple(seeds.shape), seeds.dtype)])


@RULES.rule("random_wrap", "random_unwrap", "random_clone")
def random_wrap(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return a key's words: keys are their words here."""
    return tensor_of(inputs[0])
