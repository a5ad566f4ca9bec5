"""Reductions over axes: sums, products, extremes, any and all, of rows and of columns.

Lives here: the selector of Reduce, its two families.
Not here: positions of extremes (sorting.py), softmax (rows.py).

Adjacent axes that are all reduced, or all kept, are joined; the last group of reduced axes is reduced first, so that
each pass is [outer, n, inner] to [outer, inner]: rows if inner is 1, else columns. Long ones are split into blocks of a
fixed size, whose results are reduced by another pass: threads share the work, float32 sums remain accurate, and results
do not depend on the number of threads. Sums of bytes use dot products with ones, four at a time, or 16 bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from .. import language as kl
from ..language import i8, i16, i32, i64, ptr, u8, u16
from ..loops.expressions import arg
from ..loops.ops import Reduce
from ..target import host
from . import NoKernel, selector
from .epilogue import Epilogue, epilogue_of
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

ROW = 65536  # elements of a row per work item
COLUMN = 1024  # elements of a column per work item
VECTORS = 8  # accumulators in registers
WIDTHS = (VECTORS, 2)  # vectors of columns reduced together; the remaining ones singly
LONG = 4096  # floats of a row whose sum is blocked
SPAN = 32  # vectors of floats that are added one after the other in an accumulator of a row
NARROW_ROWS = 128  # bytes whose sum fits into 16 bits

KINDS = frozenset({"sum", "max", "min", "prod", "any", "all"})


def combine_ignoring_nan(kind: str, a: Value, b: Value) -> Value:
    """Combine an element a with an accumulator; extremes of floats ignore NaN (pooling.combine propagates it)."""
    if kind == "sum":
        return a + b
    if kind == "prod":
        return a * b
    return kl.maximum(a, b) if kind in ("max", "any") else kl.minimum(a, b)


def neutral(kind: str, dtype: DType) -> float:
    """Return the identity element of a reduction."""
    if kind in ("sum", "any"):
        return 0
    if kind in ("prod", "all"):
        return 1
    if dtype.is_floating:
        return -math.inf if kind == "max" else math.inf
    return int(dtype.min if kind == "max" else dtype.max)


def accumulator_dtype(before: Epilogue) -> DType:
    """Return the dtype of accumulators; bools are accumulated in bytes."""
    return u8 if before.expr.dtype.is_bool else before.expr.dtype


def is_sum_of_bytes(kind: str, before: Epilogue) -> bool:
    """Return whether the reduction is a plain sum of int8 or uint8 in int32."""
    e = before.expr
    return (
        kind == "sum" and e.op == "convert" and e.dtype is i32 and e.args[0].op == "arg" and e.args[0].dtype in (i8, u8)
    )


class ReducedElements:
    """The elements of a reduction, loaded in the accumulator dtype; masked lanes are the identity element."""

    def __init__(self, kind: str, before: Epilogue, words: Sequence[Value]) -> None:
        self.kind, self.dtype = kind, accumulator_dtype(before)
        self._compute = before.bind(words)

    def load(self, p: Pointer, i: Any, lanes: int, mask: Value | None = None) -> Value:
        """Load elements from p[i] on."""
        v = self._compute(p.load(i, lanes, mask), 0, 0, lanes, mask).to(self.dtype)
        return v if mask is None else kl.select(mask, v, neutral(self.kind, self.dtype))

    def zeros(self, lanes: int) -> Value:
        """Return initial accumulators."""
        return kl.full(self.dtype, lanes, neutral(self.kind, self.dtype))


def finished(after: Callable[..., Value], before: Epilogue, v: Value, lanes: int) -> Value:
    """Convert accumulators to elements of the output."""
    return after(v.to(before.expr.dtype), 0, 0, lanes)


@kl.family(addressed=True)
def reduce_rows(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    n: i64,
    size: i64,
    blocks: i64,
    *more: i64,
    kind: str,
    source: DType,
    before: Epilogue,
    after: Epilogue,
    is_long: bool,
) -> None:
    """Reduce rows of n elements in `blocks` blocks of `size`. A work item is a block, which yields one element of y."""
    x, y = x.cast(source, source.size), y.cast(after.expr.dtype, after.expr.dtype.size)
    elements = ReducedElements(kind, before, more)
    finish = after.bind(more[len(before.params) :])
    bytes_summed = is_sum_of_bytes(kind, before)
    lanes = work.target.lanes(elements.dtype.size)
    for item in work.items():
        block = item % blocks
        a = x + ((item // blocks) * n + block * size)
        count = kl.minimum(size, n - block * size)
        if bytes_summed:
            total = _sum_of_bytes(a, count, source, lanes)
        else:
            total = kl.reduce_lanes(
                _row(elements, a, count, lanes, is_long), functools.partial(combine_ignoring_nan, kind)
            )
        y[item] = finished(finish, before, total, 0)


def _row(elements: ReducedElements, a: Pointer, count: Value, lanes: int, is_long: bool) -> Value:
    """Reduce a row to one vector. Long sums are those of SPAN terms, which are added."""
    if not is_long:
        return _part_of_row(elements, a, count, lanes)
    total, i, span = elements.zeros(lanes), kl.value(0), SPAN * VECTORS * lanes
    while i < count:
        total = total + _part_of_row(elements, a + i, kl.minimum(count - i, span), lanes)
        i = i + span
    return total


def _part_of_row(elements: ReducedElements, a: Pointer, count: Value, lanes: int) -> Value:
    kind, sums = elements.kind, kl.registers(elements.dtype, lanes, VECTORS)
    for k in range(VECTORS):
        sums[k] = elements.zeros(lanes)
    i = kl.value(0)
    while i + VECTORS * lanes <= count:
        for k in range(VECTORS):
            sums[k] = combine_ignoring_nan(kind, elements.load(a, i + k * lanes, lanes), sums[k])
        i = i + VECTORS * lanes
    while i + lanes <= count:
        sums[0] = combine_ignoring_nan(kind, elements.load(a, i, lanes), sums[0])
        i = i + lanes
    if i < count:
        sums[1] = combine_ignoring_nan(kind, elements.load(a, i, lanes, kl.first(count - i, lanes)), sums[1])
    width = VECTORS
    while width > 1:
        width = width // 2
        for k in range(width):
            sums[k] = combine_ignoring_nan(kind, sums[k], sums[k + width])
    return sums[0]


def _sum_of_bytes(a: Pointer, count: Value, source: DType, lanes: int) -> Value:
    """Sum int8 or uint8 in int32, four at a time."""
    ones = kl.full(i8 if source is u8 else u8, 4 * lanes, 1)
    sums = kl.registers(i32, lanes, 4)
    for k in range(4):
        sums[k] = kl.zeros(i32, lanes)

    def add(k: int, v: Value) -> None:
        sums[k] = kl.dot4(sums[k], v, ones) if source is u8 else kl.dot4(sums[k], ones, v)

    i = kl.value(0)
    while i + 16 * lanes <= count:
        for k in range(4):
            add(k, a.load(i + 4 * k * lanes, 4 * lanes))
        i = i + 16 * lanes
    while i + 4 * lanes <= count:
        add(0, a.load(i, 4 * lanes))
        i = i + 4 * lanes
    if i < count:
        add(1, a.load(i, 4 * lanes, kl.first(count - i, 4 * lanes)))
    return kl.reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]))


@kl.family(addressed=True)
def reduce_columns(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    n: i64,
    size: i64,
    blocks: i64,
    inner: i64,
    panels: i64,
    *more: i64,
    kind: str,
    source: DType,
    before: Epilogue,
    after: Epilogue,
) -> None:
    """Reduce arrays [outer, n, inner] to [outer, blocks, inner]. A work item is a panel of columns of a block."""
    x, y = x.cast(source, source.size), y.cast(after.expr.dtype, after.expr.dtype.size)
    elements = ReducedElements(kind, before, more)
    finish = after.bind(more[len(before.params) :])
    lanes = work.target.lanes(elements.dtype.size)
    narrow = is_sum_of_bytes(kind, before)
    for item in work.items():
        panel, block = item % panels, (item // panels) % blocks
        outer = item // (panels * blocks)
        a = x + ((outer * n + block * size) * inner)
        b = y + (outer * blocks + block) * inner
        count = kl.minimum(size, n - block * size)
        column = panel * (VECTORS * lanes)
        end = kl.minimum(inner, column + VECTORS * lanes)
        for width in WIDTHS:
            while column + width * lanes <= end:
                if narrow:
                    sums = _columns_of_bytes(a + column, inner, count, source, lanes, width)
                else:
                    sums = _columns(elements, a + column, inner, count, lanes, width, None)
                for k in range(width):
                    b.store(finished(finish, before, sums[k], lanes), column + k * lanes)
                column = column + width * lanes
        while column < end:
            mask = kl.tail_mask(end - column, lanes)
            sums = _columns(elements, a + column, inner, count, lanes, 1, mask)
            b.store(finished(finish, before, sums[0], lanes), column, mask=mask)
            column = column + lanes


def _columns(
    elements: ReducedElements, a: Pointer, pitch: Value, count: Value, lanes: int, width: int, mask: Value | None
) -> list[Value]:
    """Reduce columns of `count` rows to `width` accumulators, with as many rows at a time as registers permit."""
    rows = VECTORS // width
    sums = kl.registers(elements.dtype, lanes, rows, width)
    for r in range(rows):
        for k in range(width):
            sums[r, k] = elements.zeros(lanes)
    i, p = kl.value(0), a
    while i + rows <= count:
        for r in range(rows):
            for k in range(width):
                v = elements.load(p, k * lanes, lanes, mask)
                sums[r, k] = combine_ignoring_nan(elements.kind, v, sums[r, k])
            p = p + pitch
        i = i + rows
    while i < count:
        for k in range(width):
            sums[0, k] = combine_ignoring_nan(elements.kind, elements.load(p, k * lanes, lanes, mask), sums[0, k])
        p, i = p + pitch, i + 1
    while rows > 1:
        rows = rows // 2
        for r in range(rows):
            for k in range(width):
                sums[r, k] = combine_ignoring_nan(elements.kind, sums[r, k], sums[r + rows, k])
    return [sums[0, k] for k in range(width)]


def _columns_of_bytes(a: Pointer, pitch: Value, count: Value, source: DType, lanes: int, width: int) -> list[Value]:
    """Sum columns of int8 or uint8: up to NARROW_ROWS rows in 16 bits, then in int32."""
    half, wide = width // 2, 2 * lanes
    short = i16 if source is i8 else u16
    totals, sums = kl.registers(i32, wide, half), kl.registers(short, wide, half)
    for k in range(half):
        totals[k] = kl.zeros(i32, wide)
    start, p = kl.value(0), a
    while start < count:
        for k in range(half):
            sums[k] = kl.zeros(short, wide)
        end = kl.minimum(count, start + NARROW_ROWS)
        for _ in range(start, end):
            for k in range(half):
                sums[k] = sums[k] + p.load(k * wide, wide).to(short)
            p = p + pitch
        for k in range(half):
            totals[k] = totals[k] + sums[k].to(i32)
        start = end
    return [kl.part(totals[k // 2], k % 2 * lanes, lanes) for k in range(width)]


@selector(Reduce)
def select_reduce(form: Reduce, build: Builder) -> None:
    """Build a pass for each group of reduced axes, the last first, and for each level of blocks."""
    x, y = form.input, form.output
    if x.parent is not None or y.parent is not None or not x.size:
        raise NoKernel("a reduction of a slice" if x.size else "an empty reduction")
    dtype = form.before.dtype
    if form.kind not in KINDS or (dtype.is_floating and dtype.size < 4):
        raise NoKernel(f"{form.kind} of {dtype.name}")
    first = epilogue_of(form.before, (), y, build)
    after, more = epilogue_of(form.expr, (), y, build)
    plain = arg(0, dtype)
    passes = list(_passes(x.shape, form.axes))
    source, address = x.dtype, build.pointer(x)
    for i, (outer, n, inner, size) in enumerate(passes):
        blocks = -(-n // size)
        last = i == len(passes) - 1
        before, words = first if i == 0 else epilogue_of(plain, (), y, build)
        pass_after, pass_words = (after, more) if last else epilogue_of(plain, (), y, build)
        target = build.pointer(y) if last else build.temporary(outer * blocks * inner * pass_after.expr.dtype.size)
        constants = {"kind": form.kind, "source": source, "before": before, "after": pass_after}
        _add_pass((source, constants), (address, target), (outer, n, inner, size), [*words, *pass_words], build)
        source, address = pass_after.expr.dtype, target


def _add_pass(kernel: Any, addresses: Any, sizes: tuple[int, int, int, int], more: list[Any], build: Builder) -> None:
    (source, constants), (address, target), (outer, n, inner, size) = kernel, addresses, sizes
    blocks = -(-n // size)
    words, count = [address, target, n, size, blocks], {"more": len(more)}
    if inner == 1:
        items = outer * blocks
        is_float_sum = constants["kind"] == "sum" and accumulator_dtype(constants["before"]).is_floating
        code = reduce_rows.code(**constants, **count, is_long=is_float_sum and min(n, size) >= LONG)
        build.step(code, [*words, *more], items, chunk=grain(min(n, size) * source.size, items))
        return
    panels = -(-inner // (VECTORS * host().vector_bytes // accumulator_dtype(constants["before"]).size))
    items = outer * blocks * panels
    code = reduce_columns.code(**constants, **count)
    work = grain(min(n, size) * inner * source.size // panels, items)
    build.step(code, [*words, inner, panels, *more], items, chunk=work)


def _passes(shape: tuple[int, ...], axes: tuple[int, ...]) -> Iterator[tuple[int, int, int, int]]:
    """Yield (outer, n, inner, elements of a block along n) of each pass."""
    groups: list[tuple[bool, int]] = []
    for axis, n in enumerate(shape):
        if n == 1:
            continue
        reduced = axis in axes
        if groups and groups[-1][0] == reduced:
            groups[-1] = (reduced, groups[-1][1] * n)
        else:
            groups.append((reduced, n))
    reduced_any = False
    while any(reduced for reduced, _ in groups):
        last = max(i for i, (reduced, _) in enumerate(groups) if reduced)
        outer, inner = (math.prod(n for _, n in part) for part in (groups[:last], groups[last + 1 :]))
        n = groups[last][1]
        size = min(n, ROW if inner == 1 else COLUMN)
        yield outer, n, inner, size
        reduced_any = True
        blocks = -(-n // size)
        if blocks > 1:
            groups[last] = (True, blocks)
        else:
            del groups[last]
            if 0 < last < len(groups):  # both adjacent groups are kept axes
                groups[last - 1 : last + 1] = [(False, groups[last - 1][1] * groups[last][1])]
    if not reduced_any:  # no reduced axis: one element each
        yield math.prod(shape), 1, 1, 1
