"""Test random operations on arrays next to guard pages: correct results, and no access out of bounds."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import random

import numpy as np
import pytest
from form_kit import buffer, running_sums

from opwright.compiler.loops.buffers import Buffer, IndexMap
from opwright.compiler.loops.expressions import arg, convert
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.indexing_ops import Gather, ReverseStart, Segments
from opwright.compiler.loops.ops import ArgReduce, Checked, FusedAttention, MatMul, Move, Ordered, Reduce, RowPass
from opwright.compiler.loops.planner import plan_of
from opwright.core import dtypes
from thorough import sampled

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pages are protected by mprotect")
PAGE = mmap.PAGESIZE
DTYPES = (np.int8, np.int16, np.float32, np.float64, np.complex128)


class Guarded:
    """Arrays between two guard pages, aligned to the end or to the beginning."""

    def __init__(self, at_end):
        self.at_end, self._maps = at_end, []

    def like(self, shape, dtype):
        n = math.prod(shape) * np.dtype(dtype).itemsize
        inside = -(-n // PAGE) * PAGE
        memory = mmap.mmap(-1, inside + 2 * PAGE)
        self._maps.append(memory)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for place in (base, base + PAGE + inside):
            assert protect(ctypes.c_void_p(place), ctypes.c_size_t(PAGE), 0) == 0
        start = base + PAGE + (inside - n if self.at_end else 0)
        return np.frombuffer((ctypes.c_uint8 * n).from_address(start), np.uint8).view(dtype).reshape(shape)


def check(form, inputs, expected, at_end, tolerance=0.0, gaps=None):
    """gaps: elements that are never written."""
    pages = Guarded(at_end)
    arrays = {form.output: pages.like(form.output.shape, form.output.dtype.np)}
    for b, x in inputs.items():
        arrays[b] = pages.like(x.shape, x.dtype)
        arrays[b][...] = x
    plan = plan_of(LoopGraph("test", tuple(inputs), (form.output,), (form,)))
    plan.pack()
    running = plan.bind()
    running.connect({b: x.__array_interface__["data"][0] for b, x in arrays.items()})
    running.run()
    if gaps is not None:
        arrays[form.output][gaps] = expected[gaps]
    np.testing.assert_allclose(arrays[form.output], expected, rtol=tolerance, atol=tolerance)


def sizes(rng, rank, most):
    return tuple(int(rng.integers(1, most if rng.random() < 0.5 else 6)) for _ in range(rank))


def numbers(rng, shape, dtype):
    return np.asarray(rng.integers(-100, 100, shape)).astype(dtype)


def view(rng):
    x = numbers(rng, sizes(rng, rng.integers(1, 5), 30), rng.choice(DTYPES))
    part = tuple(slice(None, None, int(rng.choice([1, 1, 1, 2, 3, -1, -2]))) for _ in x.shape)
    v = x[part].transpose(rng.permutation(x.ndim))
    operand = buffer(x)
    offset = (v.ctypes.data - x.ctypes.data) // x.itemsize
    box = IndexMap((0,) * v.ndim, v.shape, offset, tuple(s // x.itemsize for s in v.strides))
    return Move(Buffer("y", operand.dtype, v.shape), (operand,), (box,)), {operand: x}, v


def padded(rng):
    x = numbers(rng, sizes(rng, 3, 20), rng.choice(DTYPES))
    around = [tuple(int(n) for n in rng.integers(0, 4, 2)) for _ in x.shape]
    operand, expected = buffer(x), np.pad(x, around, constant_values=1)
    box = IndexMap(tuple(a for a, _ in around), x.shape, 0, (x.shape[1] * x.shape[2], x.shape[2], 1))
    return Move(Buffer("y", operand.dtype, expected.shape), (operand,), (box,), fill=1), {operand: x}, expected


def summed(rng):
    x = numbers(rng, sizes(rng, rng.integers(1, 5), 70), rng.choice([np.int8, np.int32]))
    axes = tuple(a for a in range(x.ndim) if rng.random() < 0.5)
    operand = buffer(x)
    shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    before = convert(arg(0, operand.dtype), dtypes.int32)
    form = Reduce(Buffer("y", dtypes.int32, shape), operand, axes, "sum", before, arg(0, dtypes.int32))
    return form, {operand: x}, x.sum(axes, dtype=np.int64)


def searched(rng):
    x = numbers(rng, sizes(rng, rng.integers(1, 4), 100), rng.choice([np.int8, np.float32]))
    axis = int(rng.integers(x.ndim))
    operand = buffer(x)
    shape = tuple(n for a, n in enumerate(x.shape) if a != axis)
    return ArgReduce(Buffer("y", dtypes.int32, shape), operand, axis, "max"), {operand: x}, x.argmax(axis)


def gathered(rng):
    x = numbers(rng, sizes(rng, rng.integers(1, 4), 50), rng.choice(DTYPES))
    axis = int(rng.integers(x.ndim))
    indices = np.asarray(rng.integers(0, x.shape[axis], sizes(rng, rng.integers(0, 3), 10)), np.int32)
    a, b, expected = buffer(x), buffer(indices, "indices"), x.take(indices, axis)
    return Gather(Buffer("y", a.dtype, expected.shape), a, b, axis), {a: x, b: indices}, expected


def scanned(rng):
    x = numbers(rng, sizes(rng, rng.integers(1, 4), 40), np.int32)
    axis, operand = int(rng.integers(x.ndim)), buffer(x)
    return (
        running_sums(Buffer("y", operand.dtype, x.shape), operand, axis),
        {operand: x},
        x.cumsum(axis, dtype=np.int32),
    )


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalised(rng):
    x = rng.normal(size=sizes(rng, rng.integers(1, 3), 200)).astype(np.float32)
    operand, plain = buffer(x), arg(0, dtypes.float32)
    form = RowPass(Buffer("y", operand.dtype, x.shape), operand, (), "softmax", plain, plain)
    return form, {operand: x}, softmax(x.astype(np.float64)), 1e-5


def attended(rng):
    heads, m, n, d, e = (int(rng.integers(*ends)) for ends in ((1, 4), (4, 40), (1, 90), (1, 40), (1, 40)))
    arrays = [rng.normal(size=(heads, *s)).astype(np.float32) for s in ((m, d), (n, d), (n, e))]
    q, k, v = map(buffer, arrays, "qkv")
    expected = softmax(arrays[0].astype(np.float64) @ arrays[1].swapaxes(1, 2)) @ arrays[2]
    form = FusedAttention(Buffer("y", dtypes.float32, (heads, m, e)), q, k, v, (), arg(0, dtypes.float32))
    return form, dict(zip((q, k, v), arrays)), expected, 1e-4


def ordered(rng):
    x = numbers(rng, sizes(rng, rng.integers(1, 3), 90), rng.choice([np.int8, np.float32, np.int64]))
    k, operand = int(rng.integers(1, x.shape[-1] + 1)), buffer(x)
    expected = np.argsort(-x.astype(np.int64), -1, kind="stable")[..., :k]
    return Ordered(Buffer("y", dtypes.int32, expected.shape), operand), {operand: x}, expected


def segmented(rng):
    x = numbers(rng, sizes(rng, 2, 300), np.int32)
    ids, count = rng.integers(-1, 5, x.shape[0], np.int32), int(rng.integers(5, 9))
    expected = np.zeros((count, x.shape[1]), np.int32)
    np.add.at(expected, ids[ids >= 0], x[ids >= 0])
    a, b = buffer(x), buffer(ids, "ids")
    return Segments(Buffer("y", dtypes.int32, expected.shape), a, b, "sum"), {a: x, b: ids}, expected


def reversed_starts(rng):
    x = numbers(rng, sizes(rng, 3, 30), rng.choice(DTYPES))
    lengths = rng.integers(0, x.shape[1], x.shape[0], np.int32, endpoint=True)
    expected = x.copy()
    for row, n in zip(expected, lengths):
        row[:n] = row[:n][::-1].copy()
    a, b = buffer(x), buffer(lengths, "lengths")
    return ReverseStart(Buffer("y", a.dtype, x.shape), a, b, 1, 0), {a: x, b: lengths}, expected


def divisors(rng):
    x = numbers(rng, sizes(rng, 2, 200), rng.choice([np.int8, np.int32, np.float32])) % 9 + 1
    operand = buffer(x)
    return Checked(Buffer("y", operand.dtype, x.shape), operand), {operand: x}, x


def multiplied_columns(rng):
    """A product of columns, whose tiles are copied by whole vectors."""
    depth, columns = int(rng.integers(257, 520)), int(32 * rng.integers(1, 4) - rng.integers(8))
    x, w = numbers(rng, (depth, 53), np.float32), numbers(rng, (depth, columns), np.float32)
    a, b = buffer(x, "a"), buffer(w, "b")
    form = MatMul(Buffer("y", dtypes.float32, (53, columns)), a, b, (), arg(0, dtypes.float32), transpose_a=True)
    return form, {a: x, b: w}, x.T.astype(np.float64) @ w


def multiplied_rows(rng):
    """A product of rows that lie in the same sets of a cache, so that they are copied."""
    columns = int(32 * rng.integers(1, 3) - rng.integers(8))
    x, w = numbers(rng, (105, 1024), np.float32), numbers(rng, (1024, columns), np.float32)
    a, b = buffer(x, "a"), buffer(w, "b")
    form = MatMul(Buffer("y", dtypes.float32, (105, columns)), a, b, (), arg(0, dtypes.float32))
    return form, {a: x, b: w}, x.astype(np.float64) @ w


DRAWS = [
    view,
    padded,
    summed,
    searched,
    gathered,
    scanned,
    normalised,
    attended,
    ordered,
    segmented,
    reversed_starts,
    divisors,
    multiplied_columns,
    multiplied_rows,
]


@pytest.mark.parametrize("draw", sampled(DRAWS, 4))
def test_nothing_outside_is_touched(draw):
    exploring = os.environ.get("OPWRIGHT_EXPLORE") == "1"
    for seed in [random.SystemRandom().getrandbits(32) for _ in range(400)] if exploring else range(12):
        form, inputs, expected, *tolerance = draw(np.random.default_rng(seed))
        for at_end in (True, False):
            check(form, inputs, expected, at_end, *tolerance)
