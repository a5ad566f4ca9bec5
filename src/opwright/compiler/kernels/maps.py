"""Maps: element-wise loops over broadcast operands.

Lives here: the selector of Map, its family of kernels, how axes are joined.
Not here: what an element is (expression.py).

Axes of one are dropped and neighbours joined where every operand allows it. The innermost axis that is left runs in
vectors; along it an operand has an element each, or one for all. The other axes are rows, found by their strides, so
that one kernel serves every shape of the same pattern. An item is a block of about 32 KB of the output.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType
from .. import language as kl
from ..inlined_kernels import is_endless
from ..language import i64
from ..loops.buffers import Buffer
from ..loops.expressions import Expr, arg, parametrised
from ..loops.ops import Map
from ..loops.plans import word
from . import NoKernel, selector
from .epilogue import number, weight
from .expression import check, evaluate, tables
from .tiling import SERIAL_BYTES, grain

if TYPE_CHECKING:
    from ..language import Pointer, Value
    from ..loops.plan_builder import Builder

BLOCK = 32768  # bytes of the widest buffer that an item goes through
ITEM = 64  # elements: blocks are multiples of them
MANY = 64  # items of which one more than half is not felt
SHORT = 128  # elements; a shorter innermost axis is lengthened where only constants stand in the way
EACH, COLUMN, ONE, TABLE, WIDE = "each", "column", "one", "table", "wide"
"""What an operand has along the innermost axis: an element each (COLUMN: those of all rows), or one; TABLE: 256
bytes to look up; WIDE: a larger table."""
LABOUR = 4  # instructions of an expression from which columns are gone down, so that what all rows share is done once


@dataclass(frozen=True)
class Pattern:
    """What decides a kernel of the family. kinds, dtypes: of the operands; params: of the expression's numbers.

    outer: number of axes beside the innermost. bytes: how many of them a vector should have, where there are some.
    """

    expr: Expr
    kinds: tuple[str, ...]
    dtypes: tuple[DType, ...]
    params: tuple[DType, ...]
    outer: int
    bytes: int

    def masks(self, target: Any) -> bool:
        """Whether the last elements of a row go by a vector of which some lanes are none; else one by one."""
        return bool(target.has("avx512bw")) and not is_endless(self.expr)

    def lanes(self, target: Any) -> tuple[int, int]:
        """Elements of a vector, and vectors that a turn of the loop computes.

        As many elements as the widest dtype has in one, but where there are bytes more of them: these are packed all at
        once.
        """
        sizes = [d.size for d in _dtypes(self.expr)]
        width: int = target.vector_bytes
        count = max(width // max(sizes), min(self.bytes, width // min(sizes)))
        work = weight(self.expr) * count * max(sizes) // width
        return count, 4 if work <= 12 else 2 if work <= 40 else 1


def _dtypes(expr: Expr) -> set[DType]:
    found, todo = set(), [expr]
    while todo:
        e = todo.pop()
        found.add(e.dtype)
        todo += e.args[:1] if e.op == "lookup" else e.args
    return found


@kl.family
def map_elements(work, inner: i64, rows: i64, block_rows: i64, block: i64, *more: i64, pattern: Pattern):
    """Items: blocks of so many elements of the innermost axis (`block` >= inner: all), of `block_rows` rows.

    more: the addresses of the output and the operands; with axes outside the innermost one their sizes, and for the
    output and each operand the strides along them, in elements; then the expression's numbers.
    """
    count = len(pattern.kinds)
    out = kl.pointer(more[0], pattern.expr.dtype)
    operands = [kl.pointer(x, d) for x, d in zip(more[1:], pattern.dtypes)]
    outer = pattern.outer
    sizes = more[count + 1 : count + 1 + outer]
    at = count + 1 + outer
    strides = [more[at + outer * k : at + outer * (k + 1)] for k in range(count + 1)] if outer else []
    numbers = [number(x, d) for x, d in zip(more[at + len(strides) * outer :], pattern.params)]
    tables_here = [_near(p) if kind == TABLE else p for p, kind in zip(operands, pattern.kinds)]
    if outer == 0:
        for item in work.items():
            start = item * block
            _row(work, pattern, out, operands, tables_here, numbers, start, kl.minimum(inner - start, block))
    else:
        pieces = (inner + block - 1) // block
        for item in work.items():
            first = item // pieces * block_rows
            start = item % pieces * block
            n = kl.minimum(inner - start, block)
            last = kl.minimum(first + block_rows, rows)
            if COLUMN in pattern.kinds:
                _columns(work, pattern, out, operands, tables_here, numbers, (start, n), (first, last), strides)
                continue
            for row in range(first, last):
                places = _places(row, sizes, strides)
                here = [p + place for p, place in zip(operands, places[1:])]
                _row(work, pattern, out + places[0], here, tables_here, numbers, start, n)


def _near(table: Pointer) -> Pointer:
    """A copy on the stack of 256 bytes, which no store can change: it stays in registers."""
    near = kl.stack(table.dtype, 256)
    for i in range(0, 256, 64):
        near.store(table.load(i, 64), i)
    return near


def _places(row: Any, sizes: Sequence[Value], strides: Sequence[Sequence[Value]]) -> list[Value]:
    """The first elements of a row, of the output and each operand."""
    found = [kl.value(0) for _ in strides]
    for axis in reversed(range(len(sizes))):
        here = row % sizes[axis] if axis else row
        row = row // sizes[axis] if axis else row
        found = [place + here * s[axis] for place, s in zip(found, strides)]
    return found


def _row(
    work: Any,
    pattern: Pattern,
    out: Pointer,
    operands: Sequence[Pointer],
    near: Sequence[Any],
    numbers: Sequence[Value],
    start: Value,
    n: Value,
) -> None:
    """n elements of a row from `start` on."""
    lanes, unroll = pattern.lanes(work.target)
    fixed = [p[0] if kind == ONE else table for p, kind, table in zip(operands, pattern.kinds, near)]

    def compute(at: Any, count: int, mask: Any = None) -> Value:
        args = [
            p.load(at, count, mask=mask) if kind == EACH else given
            for p, kind, given in zip(operands, pattern.kinds, fixed)
        ]
        return evaluate(pattern.expr, args, numbers)

    wide = lanes * unroll
    end = start + n
    whole = end - n % wide
    if unroll > 1:
        for i in range(start, whole, wide):
            found = [compute(i + k * lanes, lanes) for k in range(unroll)]
            for k in range(unroll):
                out.store(kl.splat(found[k], lanes), i + k * lanes)
    else:
        whole = start + 0
    last = end - n % lanes
    for i in range(whole, last, lanes):
        out.store(kl.splat(compute(i, lanes), lanes), i)
    if pattern.masks(work.target):
        rest = end - last
        if rest > 0:
            mask = kl.first(rest, lanes)
            out.store(kl.splat(compute(last, lanes, mask), lanes), last, mask=mask)
    else:
        for i in range(last, end):
            out[i] = compute(i, 0)


def _columns(
    work: Any,
    pattern: Pattern,
    out: Pointer,
    operands: Sequence[Pointer],
    near: Sequence[Any],
    numbers: Sequence[Value],
    columns: tuple[Value, Value],
    rows: tuple[Value, Value],
    strides: Any,
) -> None:
    """A block of rows, a vector's width of columns at a time. columns: the first, and how many; rows: first and end."""
    lanes, _ = pattern.lanes(work.target)
    count = len(operands)
    alike = frozenset(i for i, kind in enumerate(pattern.kinds) if kind == COLUMN)
    shared, rest = hoisted(pattern.expr, alike, count)

    def column(at: Any, lanes: int, mask: Any = None) -> None:
        once = [p.load(at, lanes, mask=mask) if i in alike else p for i, p in enumerate(operands)]
        done = [evaluate(e, once, numbers) for e in shared]
        for row in range(*rows):
            args = [
                (p + row * s[0]).load(at, lanes, mask=mask) if kind == EACH else p[row * s[0]] if kind == ONE else table
                for p, kind, table, s in zip(operands, pattern.kinds, near, strides[1:])
            ]
            found = evaluate(rest, [*args, *done], numbers)
            (out + row * strides[0][0]).store(kl.splat(found, lanes), at, mask=mask)

    end = columns[0] + columns[1]
    last = end - columns[1] % lanes
    for i in range(columns[0], last, lanes):
        column(i, lanes)
    if pattern.masks(work.target):
        if last < end:
            column(last, lanes, kl.first(end - last, lanes))
    else:
        for i in range(last, end):
            column(i, 0)


def hoisted(expr: Expr, alike: frozenset[int], first: int) -> tuple[list[Expr], Expr]:
    """The largest parts of an expression that have no args but those, and the expression of these as args from `first`
    on."""
    shared: list[Expr] = []

    def walk(e: Expr) -> Expr:
        used = _used(e)
        if used and used <= alike:
            if e not in shared:
                shared.append(e)
            return arg(first + shared.index(e), e.dtype)
        walked = e.args[:1] if e.op == "lookup" else e.args
        return Expr(e.op, e.dtype, (*map(walk, walked), *e.args[len(walked) :]), e.value) if e.args else e

    rest = walk(expr)
    return shared, rest


def _used(expr: Expr) -> set[int]:
    return {expr.value} if expr.op == "arg" else set().union(*map(_used, expr.args))


# ---- axes ----------------------------------------------------------------------------------------------------------

Strides = tuple[int, ...]


def strides_of(buffer: Buffer, shape: tuple[int, ...]) -> Strides:
    """Elements from one to the next along each axis of a shape that the buffer is broadcast to: 0 where it has one."""
    found = [0] * len(shape)
    step = 1
    for k, size in enumerate(reversed(buffer.shape)):
        if size != 1:
            found[-1 - k] = step
        step = buffer.pitch if k == 0 else step * size
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def joined(shape: tuple[int, ...], strides: tuple[Strides, ...]) -> tuple[tuple[int, ...], tuple[Strides, ...]]:
    """The fewest axes that are the same walk through every tensor; at least one."""
    sizes: list[int] = []
    steps: list[list[int]] = []
    for size, here in reversed([(n, s) for n, *s in zip(shape, *strides) if n != 1]):
        if sizes and all(outer == inner * sizes[-1] for outer, inner in zip(here, steps[-1])):
            sizes[-1] *= size
        else:
            sizes.append(size)
            steps.append(here)
    if not sizes:
        return (1,), tuple((0,) for _ in strides)
    return tuple(reversed(sizes)), tuple(tuple(s[k] for s in reversed(steps)) for k in range(len(strides)))


def _lengthened(sizes: tuple[int, ...], strides: tuple[Strides, ...], constant: Sequence[bool]) -> int:
    """How many rows of a short innermost axis to take as one, where constants alone differ from row to row; else 1."""
    if len(sizes) < 2 or sizes[-1] >= SHORT:
        return 1
    for s, known in zip(strides, constant):
        alike = s[-2] == s[-1] * sizes[-1]
        if not alike and not (known and not any(s[:-1])):
            return 1
    wanted = -(-SHORT // sizes[-1])
    divisors = (d for d in range(wanted, min(sizes[-2], 64 * wanted) + 1) if sizes[-2] % d == 0)
    return next(divisors, 1)


@selector(Map)
def select_map(form: Map, build: Builder) -> None:
    """One step. Raises NoKernel for operations or dtypes that kernels lack, and for gaps along the innermost axis."""
    check(form.expr)
    output, lookups = form.output, tables(form.expr)
    plain = [b for i, b in enumerate(form.operands) if i not in lookups]
    addresses = {id(b): build.pointer(b) for b in form.operands}
    sizes, steps = _axes(output, plain, addresses, build)
    inner, outer, rows = sizes[-1], len(sizes) - 1, math.prod(sizes[:-1])
    walks = iter(steps[1:])
    along = [(0,) * (outer + 1) if i in lookups else next(walks) for i in range(len(form.operands))]
    columns = outer == 1 and weight(form.expr) >= LABOUR
    kinds = tuple(
        (TABLE if b.size * b.dtype.size == 256 else WIDE) if i in lookups else _kind(s, columns)
        for i, (b, s) in enumerate(zip(form.operands, along))
    )
    skeleton, scalars = parametrised(form.expr)
    pattern = Pattern(
        skeleton,
        kinds,
        tuple(b.dtype for b in form.operands),
        tuple(d for _, d in scalars),
        outer,
        _bytes(inner) if len({d.size for d in _dtypes(skeleton)}) > 1 else 64,
    )
    if all(b.parent is None for b in plain):  # a slice of another operand would be written before it is read
        for b in plain:
            if b.shape == output.shape and b.dtype.size == output.dtype.size:
                build.share(b)
    words: list[Any] = [build.pointer(output), *(addresses[id(b)] for b in form.operands)]
    if outer:
        words += sizes[:-1]
        for s in (steps[0], *along):
            words += s[:-1]
    words += [word(value, dtype) for value, dtype in scalars]
    widths = [b.dtype.size for b in (output, *plain)]
    block, block_rows = BLOCK // max(widths), 1
    if outer:
        block_rows = _evenly(rows, max(1, block // inner), inner * sum(widths))
    else:
        block = _evenly(inner, block, sum(widths), ITEM)
    items = -(-rows // block_rows) * -(-inner // block)
    build.step(
        map_elements.code(pattern=pattern, more=len(words)),
        [inner, rows, block_rows, block, *words],
        items,
        chunk=grain(min(inner, block) * block_rows * sum(widths), items),
    )


def _evenly(n: int, most: int, nbytes: int, unit: int = 1) -> int:
    """How many of n an item does, at most `most`, so that two threads have the same to do. nbytes: that one of them
    reads and writes; unit: what they are a multiple of."""
    items = -(-n // most)
    if items % 2 == 0 or items > MANY or n * nbytes <= SERIAL_BYTES:
        return most
    each = -(-n // (items + 1))
    return -(-each // unit) * unit


def _axes(
    output: Buffer, operands: Sequence[Buffer], addresses: dict[int, Any], build: Builder
) -> tuple[tuple[int, ...], tuple[Strides, ...]]:
    """The sizes of the joined axes, and along them the strides of the output and of each operand. Constants that have
    one short row are written out for several, and their addresses changed."""
    shape = output.shape
    sizes, steps = joined(shape, (strides_of(output, shape), *(strides_of(b, shape) for b in operands)))
    repeat = _lengthened(sizes, steps, [b.constant is not None for b in (output, *operands)])
    if repeat > 1:
        for b, s in zip(operands, steps[1:]):
            if s[-1] and not any(s[:-1]):
                assert b.constant is not None
                addresses[id(b)] = build.packed(
                    (repeat, sizes[-1]), b.dtype.np, functools.partial(_fill, b.constant), (b, "rows")
                )
        steps = tuple((*s[:-2], s[-2] * repeat, s[-1]) for s in steps)
        sizes, steps = joined((*sizes[:-2], sizes[-2] // repeat, sizes[-1] * repeat), steps)
    if any(s[-1] not in (0, 1) for s in steps):
        raise NoKernel("an operand with gaps along the innermost axis")
    return sizes, steps


BYTES = {16: 1.35, 32: 1.1, 64: 1.0}
"""By elements of a vector, the time of one."""


@functools.lru_cache(maxsize=4096)
def _bytes(inner: int) -> int:
    """The vector that a row of bytes goes by in the least time: the last one may be empty in part."""
    return min(BYTES, key=lambda n: -(-inner // n) * n * BYTES[n])


def _kind(strides: Strides, columns: bool) -> str:
    if not strides[-1]:
        return ONE
    return COLUMN if columns and not strides[0] else EACH


def _fill(constant: np.ndarray, out: np.ndarray) -> None:
    out[...] = constant.reshape(-1)
