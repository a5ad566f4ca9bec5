"""Maps: element-wise loops over broadcast operands.

Lives here: the selector of Map, its family of kernels, joining of axes.
Not here: the computation of an element (expression.py).

Axes of size 1 are dropped and adjacent axes joined if every operand allows it. The innermost remaining axis is
vectorized; along it an operand has one element per lane, or one for all. The other axes are rows, addressed by strides,
so that one kernel serves every shape of the same pattern. A work item is a block of about 32 KB of the output.
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
from ..loops.expressions import Expr, arg, parametrised, used_arguments
from ..loops.ops import Map
from ..loops.plans import word
from . import NoKernel, selector
from .epilogue import number, weight
from .expression import check, evaluate, tables
from .tiling import SERIAL_BYTES, grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

BLOCK = 32768  # bytes of the widest buffer per work item
ITEM = 64  # elements; block sizes are multiples of it
MAX_BALANCED_ITEMS = 64  # with more items, an odd one is negligible
SHORT = 128  # elements; a shorter innermost axis is extended if only constants prevent joining
EACH, COLUMN, ONE, TABLE, WIDE = "each", "column", "one", "table", "wide"
"""Kinds of operands: one element per lane (COLUMN: the same in all rows), or one for all; TABLE: 256 bytes to look up;
WIDE: a larger table."""
COLUMN_COST = 4  # instructions of an expression from which kernels iterate down columns, to share work between rows


@dataclass(frozen=True)
class MapPattern:
    """The constants of a kernel. kinds, dtypes: of the operands; params: dtypes of the expression's parameters.

    outer: number of axes other than the innermost. bytes: preferred vector length for bytes, if there are any.
    """

    expr: Expr
    kinds: tuple[str, ...]
    dtypes: tuple[DType, ...]
    params: tuple[DType, ...]
    outer: int
    bytes: int

    def masks(self, target: Any) -> bool:
        """Return whether the end of a row uses a masked vector; else a scalar loop."""
        return bool(target.has("avx512bw")) and not is_endless(self.expr)

    def lanes(self, target: Any) -> tuple[int, int]:
        """Return the elements of a vector, and the vectors per iteration.

        A vector has as many elements as fit of the widest dtype, or more of bytes, which are packed together.
        """
        sizes = [d.size for d in _dtypes(self.expr)]
        width: int = target.vector_bytes
        count = max(1, width // max(sizes), min(self.bytes, width // min(sizes)))
        work = weight(self.expr) * count * max(sizes) // width
        return count, 4 if work <= 12 else 2 if work <= 40 else 1


def _dtypes(expr: Expr) -> set[DType]:
    dtypes, pending = set(), [expr]
    while pending:
        e = pending.pop()
        dtypes.add(e.dtype)
        pending += e.args[:1] if e.op == "lookup" else e.args
    return dtypes


@kl.family
def map_elements(
    work: Work, inner: i64, rows: i64, block_rows: i64, block: i64, *more: i64, pattern: MapPattern
) -> None:
    """Evaluate an expression. A work item is a block of elements of the innermost axis, of `block_rows` rows.

    more: the addresses of the output and the operands; the sizes of the outer axes and, for the output and each
    operand, the strides along them in elements; then the expression's parameters.
    """
    count = len(pattern.kinds)
    out = kl.pointer(more[0], pattern.expr.dtype)
    operands = [kl.pointer(x, d) for x, d in zip(more[1:], pattern.dtypes)]
    outer = pattern.outer
    sizes = more[count + 1 : count + 1 + outer]
    offset = count + 1 + outer
    strides = [more[offset + outer * k : offset + outer * (k + 1)] for k in range(count + 1)] if outer else []
    numbers = [number(x, d) for x, d in zip(more[offset + len(strides) * outer :], pattern.params)]
    near = [_copy_table(p) if kind == TABLE else p for p, kind in zip(operands, pattern.kinds)]
    if outer == 0:
        for item in work.items():
            start = item * block
            _map_row(work, pattern, out, operands, near, numbers, start, kl.minimum(inner - start, block))
    else:
        pieces = (inner + block - 1) // block
        for item in work.items():
            first = item // pieces * block_rows
            start = item % pieces * block
            n = kl.minimum(inner - start, block)
            last = kl.minimum(first + block_rows, rows)
            if COLUMN in pattern.kinds:
                _map_columns(work, pattern, out, operands, near, numbers, (start, n), (first, last), strides)
                continue
            for row in range(first, last):
                starts = _row_starts(row, sizes, strides)
                row_operands = [p + place for p, place in zip(operands, starts[1:])]
                _map_row(work, pattern, out + starts[0], row_operands, near, numbers, start, n)


def _copy_table(table: Pointer) -> Pointer:
    """Copy a table of 256 bytes to the stack: LLVM keeps it in registers, since no store aliases it."""
    near = kl.stack(table.dtype, 256)
    for i in range(0, 256, 64):
        near.store(table.load(i, 64), i)
    return near


def _row_starts(row: Any, sizes: Sequence[Value], strides: Sequence[Sequence[Value]]) -> list[Value]:
    """Return the offset of the first element of a row in the output and each operand."""
    starts = [kl.value(0) for _ in strides]
    for axis in reversed(range(len(sizes))):
        index = row % sizes[axis] if axis else row
        row = row // sizes[axis] if axis else row
        starts = [start + index * s[axis] for start, s in zip(starts, strides)]
    return starts


def _map_row(
    work: Any,
    pattern: MapPattern,
    out: Pointer,
    operands: Sequence[Pointer],
    near: Sequence[Any],
    numbers: Sequence[Value],
    start: Value,
    n: Value,
) -> None:
    """Compute n elements of a row from `start` on."""
    lanes, unroll = pattern.lanes(work.target)
    fixed = [p[0] if kind == ONE else table for p, kind, table in zip(operands, pattern.kinds, near)]

    def compute(i: Any, count: int, mask: Value | None = None) -> Value:
        args = [
            p.load(i, count, mask=mask) if kind == EACH else operand
            for p, kind, operand in zip(operands, pattern.kinds, fixed)
        ]
        return evaluate(pattern.expr, args, numbers)

    wide = lanes * unroll
    end = start + n
    unrolled_end = end - n % wide
    if unroll > 1:
        for i in range(start, unrolled_end, wide):
            vectors = [compute(i + k * lanes, lanes) for k in range(unroll)]
            for k in range(unroll):
                out.store(kl.splat(vectors[k], lanes), i + k * lanes)
    else:
        unrolled_end = start + 0
    last = end - n % lanes
    for i in range(unrolled_end, last, lanes):
        out.store(kl.splat(compute(i, lanes), lanes), i)
    if pattern.masks(work.target):
        remaining = end - last
        if remaining > 0:
            mask = kl.first(remaining, lanes)
            out.store(kl.splat(compute(last, lanes, mask), lanes), last, mask=mask)
    else:
        for i in range(last, end):
            out[i] = compute(i, 0)


def _map_columns(
    work: Any,
    pattern: MapPattern,
    out: Pointer,
    operands: Sequence[Pointer],
    near: Sequence[Any],
    numbers: Sequence[Value],
    columns: tuple[Value, Value],
    rows: tuple[Value, Value],
    strides: Any,
) -> None:
    """Compute a block of rows, one vector of columns at a time. columns: first and number; rows: first and end."""
    lanes, _ = pattern.lanes(work.target)
    count = len(operands)
    invariant = frozenset(i for i, kind in enumerate(pattern.kinds) if kind == COLUMN)
    shared, remaining = hoisted(pattern.expr, invariant, count)

    def column(at: Any, lanes: int, mask: Value | None = None) -> None:
        once = [p.load(at, lanes, mask=mask) if i in invariant else p for i, p in enumerate(operands)]
        hoisted_values = [evaluate(e, once, numbers) for e in shared]
        for row in range(*rows):
            args = [
                (p + row * s[0]).load(at, lanes, mask=mask) if kind == EACH else p[row * s[0]] if kind == ONE else table
                for p, kind, table, s in zip(operands, pattern.kinds, near, strides[1:])
            ]
            y = evaluate(remaining, [*args, *hoisted_values], numbers)
            (out + row * strides[0][0]).store(kl.splat(y, lanes), at, mask=mask)

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
    """Split an expression into its largest loop-invariant subexpressions and the expression of their results.

    alike: the invariant arguments; first: the argument number of the first subexpression in the second part.
    """
    shared: list[Expr] = []

    def walk(e: Expr) -> Expr:
        used = used_arguments(e)
        if used and used <= alike:
            if e not in shared:
                shared.append(e)
            return arg(first + shared.index(e), e.dtype)
        walked = e.args[:1] if e.op == "lookup" else e.args
        return Expr(e.op, e.dtype, (*map(walk, walked), *e.args[len(walked) :]), e.value) if e.args else e

    remaining = walk(expr)
    return shared, remaining


Strides = tuple[int, ...]


def strides_of(buffer: Buffer, shape: tuple[int, ...]) -> Strides:
    """Return the strides, in elements, of a buffer broadcast to a shape: 0 along axes of size 1."""
    strides = [0] * len(shape)
    step = 1
    for k, size in enumerate(reversed(buffer.shape)):
        if size != 1:
            strides[-1 - k] = step
        step = buffer.pitch if k == 0 else step * size
    return tuple(strides)


@functools.lru_cache(maxsize=4096)
def join_axes(shape: tuple[int, ...], strides: tuple[Strides, ...]) -> tuple[tuple[int, ...], tuple[Strides, ...]]:
    """Join adjacent axes that are contiguous in every tensor; return sizes and strides, of at least one axis."""
    sizes: list[int] = []
    steps: list[list[int]] = []
    for size, axis_steps in reversed([(n, s) for n, *s in zip(shape, *strides) if n != 1]):
        if sizes and all(outer == inner * sizes[-1] for outer, inner in zip(axis_steps, steps[-1])):
            sizes[-1] *= size
        else:
            sizes.append(size)
            steps.append(axis_steps)
    if not sizes:
        return (1,), tuple((0,) for _ in strides)
    return tuple(reversed(sizes)), tuple(tuple(s[k] for s in reversed(steps)) for k in range(len(strides)))


def _rows_to_join(sizes: tuple[int, ...], strides: tuple[Strides, ...], constant: Sequence[bool]) -> int:
    """Return how many rows of a short innermost axis to join by repeating constants; 1 if others prevent joining."""
    if len(sizes) < 2 or sizes[-1] >= SHORT:
        return 1
    for s, is_constant in zip(strides, constant):
        contiguous = s[-2] == s[-1] * sizes[-1]
        if not contiguous and not (is_constant and not any(s[:-1])):
            return 1
    least = -(-SHORT // sizes[-1])
    divisors = (d for d in range(least, min(sizes[-2], 64 * least) + 1) if sizes[-2] % d == 0)
    return next(divisors, 1)


@selector(Map)
def select_map(form: Map, build: Builder) -> None:
    """Build one step. Raises NoKernel for unsupported operations or dtypes, and for gaps along the innermost axis."""
    check(form.expr)
    output, lookups = form.output, tables(form.expr)
    plain = [b for i, b in enumerate(form.operands) if i not in lookups]
    addresses = {id(b): build.pointer(b) for b in form.operands}
    sizes, steps = _axes(output, plain, addresses, build)
    inner, outer, rows = sizes[-1], len(sizes) - 1, math.prod(sizes[:-1])
    stride_rows = iter(steps[1:])
    operand_strides = [(0,) * (outer + 1) if i in lookups else next(stride_rows) for i in range(len(form.operands))]
    columns = outer == 1 and weight(form.expr) >= COLUMN_COST
    kinds = tuple(
        (TABLE if b.size * b.dtype.size == 256 else WIDE) if i in lookups else _kind(s, columns)
        for i, (b, s) in enumerate(zip(form.operands, operand_strides))
    )
    skeleton, scalars = parametrised(form.expr)
    pattern = MapPattern(
        skeleton,
        kinds,
        tuple(b.dtype for b in form.operands),
        tuple(d for _, d in scalars),
        outer,
        _bytes(inner) if len({d.size for d in _dtypes(skeleton)}) > 1 else 64,
    )
    if all(b.parent is None for b in plain):  # the output could overwrite a slice before it is read
        for b in plain:
            if b.shape == output.shape and b.dtype.size == output.dtype.size:
                build.share(b)
    words: list[Any] = [build.pointer(output), *(addresses[id(b)] for b in form.operands)]
    if outer:
        words += sizes[:-1]
        for s in (steps[0], *operand_strides):
            words += s[:-1]
    words += [word(value, dtype) for value, dtype in scalars]
    widths = [b.dtype.size for b in (output, *plain)]
    block, block_rows = BLOCK // max(widths), 1
    if outer:
        block_rows = balanced_block(rows, max(1, block // inner), inner * sum(widths))
    else:
        block = balanced_block(inner, block, sum(widths), ITEM)
    items = -(-rows // block_rows) * -(-inner // block)
    build.step(
        map_elements.code(pattern=pattern, more=len(words)),
        [inner, rows, block_rows, block, *words],
        items,
        chunk=grain(min(inner, block) * block_rows * sum(widths), items),
    )


def balanced_block(n: int, limit: int, nbytes: int, unit: int = 1) -> int:
    """Return a block size of at most `limit` of n for which two threads have equal work.

    nbytes: read and written per element; unit: a divisor of the block size.
    """
    items = -(-n // limit)
    if items % 2 == 0 or items > MAX_BALANCED_ITEMS or n * nbytes <= SERIAL_BYTES:
        return limit
    size = -(-n // (items + 1))
    return -(-size // unit) * unit


def _axes(
    output: Buffer, operands: Sequence[Buffer], addresses: dict[int, Any], build: Builder
) -> tuple[tuple[int, ...], tuple[Strides, ...]]:
    """Return the sizes of the joined axes, and the strides of the output and each operand along them.

    Constants with one short row are repeated for several, and their addresses replaced.
    """
    shape = output.shape
    sizes, steps = join_axes(shape, (strides_of(output, shape), *(strides_of(b, shape) for b in operands)))
    repeat = _rows_to_join(sizes, steps, [b.constant is not None for b in (output, *operands)])
    if repeat > 1:
        for b, s in zip(operands, steps[1:]):
            if s[-1] and not any(s[:-1]):
                assert b.constant is not None
                addresses[id(b)] = build.packed(
                    (repeat, sizes[-1]), b.dtype.np, functools.partial(_fill, b.constant), (b, "rows")
                )
        steps = tuple((*s[:-2], s[-2] * repeat, s[-1]) for s in steps)
        sizes, steps = join_axes((*sizes[:-2], sizes[-2] // repeat, sizes[-1] * repeat), steps)
    if any(s[-1] not in (0, 1) for s in steps):
        raise NoKernel("an operand with gaps along the innermost axis")
    return sizes, steps


BYTES = {16: 1.35, 32: 1.1, 64: 1.0}
"""Relative time per element, by elements of a vector."""


@functools.lru_cache(maxsize=4096)
def _bytes(inner: int) -> int:
    """Return the fastest vector length for rows of `inner` bytes; the last vector may be partial."""
    return min(BYTES, key=lambda n: -(-inner // n) * n * BYTES[n])


def _kind(strides: Strides, columns: bool) -> str:
    if not strides[-1]:
        return ONE
    return COLUMN if columns and not strides[0] else EACH


def _fill(constant: np.ndarray, out: np.ndarray) -> None:
    out[...] = constant.reshape(-1)
