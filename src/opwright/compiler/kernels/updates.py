"""Updates in place: element-wise loops that write several arrays of one shape.

Lives here: the selector of Update, its family of kernels; `update_rows`, of merged rows by index and of all others.
Not here: rows inside of plans (row_steps.py), the computation of an element (expression.py), maps into new memory
(maps.py), the formulas of optimizers (ops/optimizer_rules.py, which ../lowering/updates.py reads).

A step of Adam reads a gradient, a variable and two moments, and writes three of them: one pass over memory. A work item
is a block of elements; each element is read before it is written, and by no other item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from .. import language as kl
from ..language import i64, ptr
from ..loops.expressions import Expr
from ..loops.ops import Update
from . import NoKernel, selector
from .epilogue import weight
from .expression import check, evaluate_all
from .maps import BLOCK, EACH, ITEM, ONE, balanced_block
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

UNROLLED_WEIGHT = 24
"""Instructions of the expressions up to which an iteration computes two vectors."""


@dataclass(frozen=True)
class UpdatePattern:
    """The constants of a kernel. exprs: one per target; kinds, dtypes: of the targets, then of the operands."""

    exprs: tuple[Expr, ...]
    kinds: tuple[str, ...]
    dtypes: tuple[DType, ...]

    def lanes(self, target: Any) -> tuple[int, int]:
        """Return the elements of a vector, and the vectors per iteration."""
        count: int = target.lanes(max(d.size for d in self.dtypes))
        return count, 2 if sum(map(weight, self.exprs)) <= UNROLLED_WEIGHT else 1


@kl.family
def update_elements(work: Work, n: i64, block: i64, *more: i64, pattern: UpdatePattern) -> None:
    """Evaluate the expressions for n elements. more: addresses of the targets and the operands."""
    arrays = [kl.pointer(x, d) for x, d in zip(more, pattern.dtypes)]
    for item in work.items():
        start = item * block
        update(work, pattern, arrays, start, kl.minimum(start + block, n))


def update(work: Any, pattern: UpdatePattern, arrays: Sequence[Pointer], start: Value, end: Value) -> None:
    """Update the elements [start, end)."""
    lanes, unroll = pattern.lanes(work.target)
    numbers = [p[0] if kind == ONE else p for p, kind in zip(arrays, pattern.kinds)]

    def compute(i: Any, count: int, mask: Value | None = None) -> list[Value]:
        args = [
            p.load(i, count, mask=mask) if kind == EACH else number
            for p, kind, number in zip(arrays, pattern.kinds, numbers)
        ]
        return evaluate_all(pattern.exprs, args)

    n = end - start
    unrolled_end = end - n % (lanes * unroll)
    if unroll > 1:
        for i in range(start, unrolled_end, lanes * unroll):
            vectors = [compute(i + k * lanes, lanes) for k in range(unroll)]
            for k in range(unroll):
                for p, y in zip(arrays, vectors[k]):
                    p.store(kl.splat(y, lanes), i + k * lanes)
    else:
        unrolled_end = start + 0
    last = end - n % lanes
    for i in range(unrolled_end, last, lanes):
        for p, y in zip(arrays, compute(i, lanes)):
            p.store(kl.splat(y, lanes), i)
    if work.target.has("avx512bw"):
        if last < end:
            mask = kl.first(end - last, lanes)
            for p, y in zip(arrays, compute(last, lanes, mask)):
                p.store(kl.splat(y, lanes), last, mask=mask)
    else:
        for i in range(last, end):
            for p, y in zip(arrays, compute(i, 0)):
                p[i] = y


@dataclass(frozen=True)
class RowsPattern:
    """The constants of `update_rows`. targets: their number; step: of rows with a gradient, reading the targets, the
    gradient and scalars; idle: of all others, reading the targets and scalars; None if they stay."""

    targets: int
    step: UpdatePattern
    idle: UpdatePattern | None


def rows_pattern(
    step: tuple[Expr, ...], idle: tuple[Expr, ...], dtype: DType, scalars: int, moves_idle: bool
) -> tuple[RowsPattern, int]:
    """Return the pattern of `update_rows` and the number of its further words. moves_idle: whether rows without a
    gradient change."""

    def pattern(exprs: tuple[Expr, ...], arrays: int) -> UpdatePattern:
        kinds = (EACH,) * arrays + (ONE,) * scalars
        return UpdatePattern(exprs, kinds, (dtype,) * len(kinds))

    targets = len(step)
    resting = pattern(idle, targets) if moves_idle else None
    return RowsPattern(targets, pattern(step, targets + 1), resting), targets + 1 + scalars


@kl.family
def update_rows(work: Work, rows: ptr[i64], height: i64, width: i64, *more: i64, pattern: RowsPattern) -> None:
    """Update rows of tables of `height` rows in place.

    rows: distinct and ascending, then `height`. more: addresses of the targets, the gradient's rows and scalars. A work
    item is a row of the gradient; with idle rows, there is one item.
    """
    arrays = [kl.pointer(x, d) for x, d in zip(more, pattern.step.dtypes)]
    targets, gradient, scalars = arrays[: pattern.targets], arrays[pattern.targets], arrays[pattern.targets + 1 :]
    zero = height - height
    for item in work.items():
        if pattern.idle is None:
            own = [p + rows[item] * width for p in targets]
            update(work, pattern.step, [*own, gradient + item * width, *scalars], zero, width)
        else:
            k = zero
            for row in range(height):
                own = [p + row * width for p in targets]
                if rows[k] == row:
                    update(work, pattern.step, [*own, gradient + k * width, *scalars], zero, width)
                    k = k + 1
                else:
                    update(work, pattern.idle, [*own, *scalars], zero, width)


@selector(Update)
def select_update(form: Update, build: Builder) -> None:
    """Build one step. Raises NoKernel for operations or dtypes without code, and for arrays of other shapes."""
    for expr in form.exprs:
        check(expr)
    buffers, shape, n = (*form.targets, *form.operands), form.output.shape, form.output.size
    for b in buffers:
        if b.parent is not None or (b.shape != shape and (b.size != 1 or b in form.targets)):
            raise NoKernel(f"an update of {form.output!r} with {b!r}")
    kinds = tuple(EACH if b.shape == shape else ONE for b in buffers)
    pattern = UpdatePattern(form.exprs, kinds, tuple(b.dtype for b in buffers))
    moved = sum(b.dtype.size for b, kind in zip(buffers, kinds) if kind == EACH)
    block = balanced_block(n, BLOCK // max(b.dtype.size for b in buffers), moved, ITEM)
    items = -(-n // block)
    words = [build.pointer(b) for b in buffers]
    build.step(
        update_elements.code(pattern=pattern, more=len(words)),
        [n, block, *words],
        items,
        chunk=grain(min(n, block) * moved, items),
    )
