"""LU factors with partial pivoting, and systems of linear equations by them.

Lives here: the selectors of LuFactor and LuSolution, their families.
Not here: substitution in a strip of columns (substitution.py), the operators (ops/linalg/).

Factors are computed strip by strip of columns: the rows above the diagonal block are a triangular system, what the
columns before contribute to the rows below is a product, and the strip's own columns are eliminated one by one. Each
exchange moves whole rows of the result, so that later strips find theirs in order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.dtypes import DType, int64
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.matrix_ops import LuFactor, LuSolution
from ..target import host
from . import NoKernel, selector
from .substitution import HEIGHT, StripRows, Triangle, check_matrix, strip_vectors, substitute_rows
from .tiling import chunk_of

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder


@kl.family
def lu(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    rows: ptr[i64],
    parities: ptr[u8],
    size: i64,
    *,
    source: DType,
    vectors: int,
    transposed: bool,
    singular: bool,
) -> Value:
    """Compute the factors of matrices. Items: matrices. Scratch: a strip of columns."""
    lanes = work.lanes(source)
    width = vectors * lanes
    height = math.gcd(HEIGHT, width)
    x, y, parities = (p.cast(source, source.size) for p in (x, y, parities))
    strip = work.scratch(source)
    failed = kl.value(0)
    for item in work.items():
        matrix, result, order = x + item * size * size, y + item * size * size, rows + item * size
        _copy(matrix, result, size, transposed)
        for i in range(size):
            order[i] = i
        exchanges = kl.value(0)
        for first in range(0, size, width):
            columns = result + first
            masks = [kl.tail_mask(size - first - k * lanes, lanes) for k in range(vectors)]
            unit = Triangle(result, size, 1)
            rows_of_strip = StripRows(columns, size, masks)
            load = rows_of_strip.load
            for i in range(0, first, height):
                substitute_rows(unit.of_rows(i), strip, i, i, load, height, vectors, lanes, source, unit=True)
            whole = size - (size - first) % height
            for i in range(first, whole, height):
                substitute_rows(unit.of_rows(i), strip, i, first, load, height, vectors, lanes, source, solves=False)
            for i in range(whole, size):
                substitute_rows(unit.of_rows(i), strip, i, first, load, 1, vectors, lanes, source, solves=False)
            for c in range(kl.minimum(size - first, width)):
                pivot = _largest(strip + c, first + c, size, width)
                if pivot != first + c:
                    exchanges = exchanges + 1
                    _exchange(strip, first + c, pivot, kl.value(width), lanes)
                    _exchange(result, first + c, pivot, size, lanes)
                    kept = order[first + c]
                    order[first + c] = order[pivot]
                    order[pivot] = kept
                divisor = strip[(first + c) * width + c]
                failed = kl.select(divisor == 0.0, 1, failed)
                divisor = kl.select(divisor == 0.0, 1.0, divisor)  # of a column of zeros
                _eliminate(strip, first + c, c, divisor, size, vectors, lanes)
            for i in range(size):
                for k in range(vectors):
                    rows_of_strip.store((strip + i * width).load(k * lanes, lanes), i, k, lanes)
        parities[item] = (1 - exchanges % 2 * 2).to(source)
    return kl.value(0) if singular else failed


def _copy(matrix: Pointer, result: Pointer, size: Value, transposed: bool) -> None:
    if transposed:
        for i in range(size):
            for j in range(size):
                result[i * size + j] = matrix[j * size + i]
    else:
        for i in range(size * size):
            result[i] = matrix[i]


def _largest(column: Pointer, first: Value | int, size: Value, width: int) -> Value:
    """Return the row of the first of the largest magnitudes of a column, or of the first NaN."""
    best, at = kl.abs(column[first * width]), kl.value(first)
    for i in range(first + 1, size):
        x = kl.abs(column[i * width])
        better = (x > best) | ((x != x) & (best == best))
        best, at = kl.select(better, x, best), kl.select(better, i, at)
    return at


def _exchange(matrix: Pointer, i: Value | int, j: Value | int, pitch: Value | int, lanes: int) -> None:
    """Exchange two rows."""
    p, q = matrix + i * pitch, matrix + j * pitch
    for k in range(0, pitch, lanes):
        mask = kl.tail_mask(pitch - k, lanes)
        kept, other = p.load(k, lanes, mask), q.load(k, lanes, mask)
        p.store(other, k, mask)
        q.store(kept, k, mask)


def _eliminate(
    strip: Pointer, row: Value | int, c: Value | int, divisor: Value, size: Value, vectors: int, lanes: int
) -> None:
    """Divide a column below its pivot, and subtract its products by the pivot's row from the columns after it."""
    width = vectors * lanes
    pivot = strip + row * width
    kind = kl.type_of(divisor)
    parts = [pivot.load(k * lanes, lanes) for k in range(vectors)]
    before = [kl.tail_mask(c + 1 - k * lanes, lanes) for k in range(vectors)]
    parts = [kl.select(before[k], kl.zeros(kind, lanes), parts[k]) for k in range(vectors)]
    for i in range(row + 1, size):
        target = strip + i * width
        factor = target[c] / divisor
        for k in range(vectors):
            present = target.load(k * lanes, lanes)
            rest = kl.fma(-factor.splat(lanes), parts[k], present)
            target.store(kl.select(before[k], present, rest), k * lanes)
        target[c] = factor


@selector(LuFactor)
def select_lu(form: LuFactor, build: Builder) -> None:
    """Add the factors of a batch of matrices."""
    x, (factors, rows, parities) = form.input, form.results
    size = check_matrix(x)
    if (factors[0].dtype, rows[0].dtype, parities[0].dtype) != (x.dtype, int64, x.dtype):
        raise NoKernel(f"the factors {factors[0]!r} with rows {rows[0]!r}")
    lanes, number = host().lanes(x.dtype.size), math.prod(x.shape[:-2])
    vectors = strip_vectors(size, lanes)
    code = lu.code(source=x.dtype, vectors=vectors, transposed=form.transposed, singular=form.singular)
    words = [build.pointer(x), *(build.pointer(form.output, start) for _, start in form.results), size]
    scratch = size * vectors * lanes * x.dtype.size
    build.step(code, words, number, scratch=scratch, chunk=chunk_of(number * size**3, number))


class OrderedRows(NamedTuple):
    """Rows of right-hand sides in the order of a matrix's. first: the column of the strip; identity: those of identity
    matrices."""

    elements: Pointer
    pitch: Value | int
    masks: list[Any]
    order: Pointer
    first: Value | int
    identity: bool

    def load(self, i: Value | int, k: int, lanes: int) -> Value:
        """Return vector k of row i."""
        if self.identity:
            kind = kl.type_of(self.elements[0])
            own = kl.iota(i64, lanes) + (self.first + k * lanes)
            return kl.select(own == self.order[i].splat(lanes), kl.full(kind, lanes, 1.0), 0.0)
        row: Value = (self.elements + self.order[i] * self.pitch).load(k * lanes, lanes, self.masks[k])
        return row


@kl.family
def lu_solve(
    work: Work,
    factors: ptr[u8],
    rows: ptr[i64],
    rhs: ptr[u8],
    y: ptr[u8],
    size: i64,
    columns: i64,
    *,
    source: DType,
    vectors: int,
    identity: bool,
) -> None:
    """Solve systems by their factors. Items: strips of columns. Scratch: a strip of L^-1 rhs and one of the unknowns
    from the last to the first. identity: the right-hand sides are identity matrices."""
    lanes = work.lanes(source)
    width = vectors * lanes
    factors, rhs, y = (p.cast(source, source.size) for p in (factors, rhs, y))
    middle = work.scratch(source)
    unknowns = middle + size * width
    strips = (columns + (width - 1)) // width
    for item in work.items():
        system, at = item // strips, item % strips * width
        matrix, order = factors + system * size * size, rows + system * size
        source_rows, target_rows = (p + (system * size * columns + at) for p in (rhs, y))
        masks = [kl.tail_mask(columns - at - k * lanes, lanes) for k in range(vectors)]

        right = OrderedRows(source_rows, columns, masks, order, at, identity)
        reversed_ = StripRows(middle + (size - 1) * width, -width, [None] * vectors)
        lower = Triangle(matrix, size, 1)
        upper = Triangle(matrix + (size * size - 1), -size, -1)
        whole = size - size % HEIGHT
        for i in range(0, whole, HEIGHT):
            substitute_rows(lower.of_rows(i), middle, i, i, right.load, HEIGHT, vectors, lanes, source, unit=True)
        for i in range(whole, size):
            substitute_rows(lower.of_rows(i), middle, i, i, right.load, 1, vectors, lanes, source, unit=True)
        for i in range(0, whole, HEIGHT):
            substitute_rows(upper.of_rows(i), unknowns, i, i, reversed_.load, HEIGHT, vectors, lanes, source)
        for i in range(whole, size):
            substitute_rows(upper.of_rows(i), unknowns, i, i, reversed_.load, 1, vectors, lanes, source)
        for i in range(size):
            for k in range(vectors):
                part = (unknowns + (size - 1 - i) * width).load(k * lanes, lanes)
                (target_rows + i * columns).store(part, k * lanes, masks[k])


@selector(LuSolution)
def select_lu_solution(form: LuSolution, build: Builder) -> None:
    """Add the solutions of a batch of systems."""
    factors, rhs, y = form.factors, form.rhs, form.output
    size, columns = check_matrix(factors), y.shape[-1]
    if y.dtype is not factors.dtype or y.parent is not None or form.rows.dtype is not int64:
        raise NoKernel(f"solutions {y!r}")
    if rhs is not None and (rhs.shape != y.shape or rhs.dtype is not y.dtype or rhs.parent is not None):
        raise NoKernel(f"right-hand sides {rhs!r}")
    lanes, number = host().lanes(y.dtype.size), math.prod(y.shape[:-2])
    vectors = strip_vectors(columns, lanes)
    code = lu_solve.code(source=y.dtype, vectors=vectors, identity=rhs is None)
    words = [*(build.pointer(b) for b in (factors, form.rows, factors if rhs is None else rhs, y)), *(size, columns)]
    items = number * -(-columns // (vectors * lanes))
    scratch = 2 * size * vectors * lanes * y.dtype.size
    build.step(code, words, items, scratch=scratch, chunk=chunk_of(2 * number * size * size * columns, items))
