"""Rules of random bits: Threefry by its definition, and what JAX composes of it.

Lives here: threefry2x32; random_bits, _split, _fold_in, _seed, _wrap and _unwrap. Not here: distributions, which JAX
writes as arithmetic on bits.

The operators on keys are traced by JAX's own definition of the key's generator, so the bits are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.lazy_imports import import_module
from ....ops import bitwise, math
from ...importing import tensor_of
from ..execution import BROADCASTING, RULES, JaxprContext
from ..operands import like, operands, shaped
from .integers import rotate_left

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
"""Constants of Threefry-2x32 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011)."""
BROADCASTING.add("threefry2x32")


@RULES.rule("threefry2x32")
def threefry2x32(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the two words that Threefry of 20 rounds gives for a key (two words) and a counter (two words)."""
    first, second, x, y = operands(inputs)
    keys = [first, second, bitwise.bitwise_xor(bitwise.bitwise_xor(first, second), like(PARITY, first))]
    x, y = math.add(x, keys[0]), math.add(y, keys[1])
    for i in range(5):
        for rotation in ROTATIONS[i % 2]:
            x = math.add(x, y)
            y = bitwise.bitwise_xor(rotate_left(y, rotation), x)
        x = math.add(x, keys[(i + 1) % 3])
        y = math.add(math.add(y, keys[(i + 2) % 3]), like(i + 1, y))
    return [shaped(x, context.shape), shaped(y, context.shape)]


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
