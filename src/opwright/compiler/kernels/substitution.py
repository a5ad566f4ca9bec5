"""Triangular systems of linear equations, by substitution; Cholesky factors.

Lives here: the selectors of TriangularSystem and CholeskyFactor, their families; `Triangle`, `StripRows`,
`strip_vectors`, `substitute_rows`.
Not here: factors with exchanged rows (lu.py), the operators (ops/linalg/).

Columns of the unknowns are computed in strips of a few vectors, whose rows are adjacent in the scratch memory of a
thread, so that they do not evict each other from the first-level cache. Rows are computed by tiles of HEIGHT: what the
rows before them contribute is accumulated in registers, as in a product of matrices, and the tile's own triangle is
solved there. A Cholesky factor is a triangular system whose matrix is the part of the result that is known: A = U^T U,
strip by strip of U, of which L is the transpose.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.dtypes import DType, float32, float64
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.buffers import Buffer
from ..loops.matrix_ops import CholeskyFactor, TriangularSystem
from ..target import host
from . import NoKernel, selector
from .matmul import STEP_LIMIT, product_batches
from .tiling import chunk_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

HEIGHT = 4
"""Rows of a tile; with three vectors of columns, sums and operands fill 16 registers."""
MOST_VECTORS = 3


class Triangle(NamedTuple):
    """Coefficients of a system: that of row i and unknown j is at i * row + j * column."""

    elements: Pointer
    row: Value | int
    column: Value | int

    def of_rows(self, i: Value | int) -> Triangle:
        """Return the coefficients from row i on."""
        return self._replace(elements=self.elements + i * self.row)

    def from_unknown(self, j: Value | int) -> Triangle:
        """Return the coefficients from unknown j on."""
        return self._replace(elements=self.elements + j * self.column)

    def __call__(self, i: int, j: Value | int) -> Value:
        return self.elements[i * self.row + j * self.column]


class StripRows(NamedTuple):
    """Rows of a strip of columns of a matrix. masks: which lanes of each vector are columns."""

    elements: Pointer
    pitch: Value | int
    masks: list[Any]

    def load(self, i: Value | int, k: int, lanes: int) -> Value:
        """Return vector k of row i."""
        row: Value = (self.elements + i * self.pitch).load(k * lanes, lanes, self.masks[k])
        return row

    def store(self, v: Value, i: Value | int, k: int, lanes: int) -> None:
        (self.elements + i * self.pitch).store(v, k * lanes, self.masks[k])


def _subtract_products(
    sums: Any, triangle: Triangle, strip: Pointer, depth: Value | int, height: int, vectors: int
) -> None:
    """Subtract from a tile what the first `depth` unknowns, rows of a strip, contribute."""
    lanes = sums[0, 0].count
    for j in range(depth):
        parts = [(strip + j * (vectors * lanes)).load(k * lanes, lanes) for k in range(vectors)]
        for r in range(height):
            factor = -triangle(r, j).splat(lanes)
            for k in range(vectors):
                sums[r, k] = kl.fma(factor, parts[k], sums[r, k])


def _solve_tile(sums: Any, triangle: Triangle, height: int, vectors: int, unit: bool) -> None:
    """Solve the system of a tile's own unknowns. unit: the diagonal is ones, whatever the memory has."""
    lanes = sums[0, 0].count
    for r in range(height):
        for q in range(r):
            factor = -triangle(r, q).splat(lanes)
            for k in range(vectors):
                sums[r, k] = kl.fma(factor, sums[q, k], sums[r, k])
        if not unit:
            divisor = triangle(r, r).splat(lanes)
            for k in range(vectors):
                sums[r, k] = sums[r, k] / divisor


def substitute_rows(
    rows: Triangle,
    strip: Pointer,
    i: Value | int,
    depth: Value | int,
    load: Callable[[Value | int, int, int], Value],
    height: int,
    vectors: int,
    lanes: int,
    dtype: DType,
    solves: bool = True,
    unit: bool = False,
) -> Any:
    """Compute rows i to i + height of a strip of columns: what `load` returns without what the first `depth` unknowns
    contribute. Return their registers.

    rows: the coefficients from row i on; load(i, k, lanes): returns vector k of the right-hand side of row i; solves:
    whether the tile's own unknowns, from i on, are solved, too
    """
    sums = kl.registers(dtype, lanes, height, vectors)
    for r in range(height):
        for k in range(vectors):
            sums[r, k] = load(i + r, k, lanes)
    _subtract_products(sums, rows, strip, depth, height, vectors)
    if solves:
        _solve_tile(sums, rows.from_unknown(i), height, vectors, unit)
    for r in range(height):
        for k in range(vectors):
            (strip + (i + r) * (vectors * lanes)).store(sums[r, k], k * lanes)
    return sums


@kl.family
def triangular_solve(
    work: Work,
    matrix: ptr[u8],
    rhs: ptr[u8],
    y: ptr[u8],
    size: i64,
    columns: i64,
    first: i64,
    row: i64,
    column: i64,
    start: i64,
    pitch: i64,
    matrix_step: i64,
    rhs_step: i64,
    *,
    source: DType,
    vectors: int,
) -> Value:
    """Solve triangular systems. Items: strips of columns. Scratch: the unknowns of a strip.

    first, row, column: where the coefficient of the first unknown to be computed is, and the distances of rows and
    unknowns, negative from the last to the first; start, pitch: of the rows of rhs and y. matrix_step, rhs_step: from
    one system to the next.
    """
    lanes = work.lanes(source)
    width = vectors * lanes
    matrix, rhs, y = (p.cast(source, source.size) for p in (matrix, rhs, y))
    strip = work.scratch(source)
    strips = (columns + (width - 1)) // width
    failed = kl.value(0)
    for item in work.items():
        system, at = item // strips, item % strips * width
        triangle = Triangle(matrix + (system * matrix_step + first), row, column)
        masks = [kl.tail_mask(columns - at - k * lanes, lanes) for k in range(vectors)]
        source_rows = StripRows(rhs + (system * rhs_step + start + at), pitch, masks)
        target_rows = StripRows(y + (system * size * columns + start + at), pitch, masks)
        for i in range(size):
            failed = kl.select(triangle.elements[i * (row + column)] == 0.0, 1, failed)
        whole = size - size % HEIGHT
        for i in range(0, whole, HEIGHT):
            _solve_rows(triangle, strip, i, source_rows, target_rows, HEIGHT, lanes, source)
        for i in range(whole, size):
            _solve_rows(triangle, strip, i, source_rows, target_rows, 1, lanes, source)
    return failed


def _solve_rows(
    triangle: Triangle,
    strip: Pointer,
    i: Value | int,
    rhs: StripRows,
    y: StripRows,
    height: int,
    lanes: int,
    dtype: DType,
) -> None:
    vectors = len(rhs.masks)
    sums = substitute_rows(triangle.of_rows(i), strip, i, i, rhs.load, height, vectors, lanes, dtype)
    for r in range(height):
        for k in range(vectors):
            y.store(sums[r, k], i + r, k, lanes)


def strip_vectors(columns: int, lanes: int) -> int:
    """Return the number of vectors of a strip: the largest with the fewest lanes without a column."""
    return min(range(MOST_VECTORS, 0, -1), key=lambda n: -(-columns // (n * lanes)) * n)


def check_matrix(b: Buffer) -> int:
    """Return the size of float matrices that are square and adjacent. Raises NoKernel for others."""
    if b.dtype not in (float32, float64) or len(b.shape) < 2 or b.shape[-1] != b.shape[-2] or not b.size:
        raise NoKernel(f"the matrices {b!r}")
    if b.parent is not None:
        raise NoKernel(f"{b!r} within another")
    return b.shape[-1]


@selector(TriangularSystem)
def select_triangular_system(form: TriangularSystem, build: Builder) -> None:
    """Add a step for each run of systems whose operands are at equal distances."""
    matrix, rhs, y = form.matrix, form.rhs, form.output
    size, columns = check_matrix(matrix), rhs.shape[-1]
    if {rhs.dtype, y.dtype} != {matrix.dtype} or rhs.parent is not None or y.parent is not None or not y.size:
        raise NoKernel(f"right-hand sides {rhs!r}")
    parts = list(product_batches(y.shape[:-2], matrix.shape[:-2], rhs.shape[:-2]))
    if len(parts) > STEP_LIMIT:
        raise NoKernel(f"batches {list(matrix.shape[:-2])} of {list(rhs.shape[:-2])}")
    lanes = host().lanes(matrix.dtype.size)
    vectors = strip_vectors(columns, lanes)
    row, column = (1, size) if form.transposed else (size, 1)
    upwards = form.lower == form.transposed
    first, start = (size * size - 1, (size - 1) * columns) if upwards else (0, 0)
    sign = -1 if upwards else 1
    code = triangular_solve.code(source=matrix.dtype, vectors=vectors)
    for part in parts:
        words = [
            build.pointer(matrix, part.a * size * size),
            build.pointer(rhs, part.b * size * columns),
            build.pointer(y, part.first * size * columns),
            *(size, columns, first, sign * row, sign * column, start, sign * columns),
            *(size * size * part.a_moves, size * columns * part.b_moves),
        ]
        items = part.products * -(-columns // (vectors * lanes))
        operations = part.products * size * size * columns
        scratch = size * vectors * lanes * matrix.dtype.size
        build.step(code, words, items, scratch=scratch, chunk=chunk_of(operations, items))
    if rhs.shape == y.shape:
        build.share(rhs)


@kl.family
def cholesky(work: Work, x: ptr[u8], y: ptr[u8], size: i64, *, source: DType, vectors: int) -> Value:
    """Compute Cholesky factors. Items: matrices. Scratch: strips of U, one after the other, whose last is padded by
    columns of the identity."""
    lanes = work.lanes(source)
    width = vectors * lanes
    height = math.gcd(HEIGHT, width)
    x, y = x.cast(source, source.size), y.cast(source, source.size)
    upper = work.scratch(source)
    padded = (size + (width - 1)) // width * width
    failed = kl.value(0)
    for item in work.items():
        matrix, result = x + item * size * size, y + item * size * size
        for first in range(0, size, width):
            strip = upper + first * padded
            _load_strip(strip, matrix, first, size, width)
            load = StripRows(strip, width, [None] * vectors).load
            for i in range(0, first, height):  # rows of a tile are adjacent in the strip that has their columns
                above = Triangle(upper + (i // width * (width * padded) + i % width), 1, width)
                substitute_rows(above, strip, i, i, load, height, vectors, lanes, source)
            for i in range(first, first + width, height):
                above = Triangle(strip + (i - first), 1, width)
                substitute_rows(above, strip, i, first, load, height, vectors, lanes, source, solves=False)
            failed = kl.maximum(failed, _factor_diagonal(strip + first * width, vectors, lanes))
            _store_strip(strip, result, first, size, width)
    return failed


def _factor_diagonal(block: Pointer, vectors: int, lanes: int) -> Value:
    """Replace the upper triangle of a block by its factor; return 1 for a pivot of 0 or less, else 0."""
    failed, width = kl.value(0), vectors * lanes
    for i in kl.loop(width):
        row = block + i * width
        pivot = row[i]
        failed = kl.select(pivot <= 0.0, 1, failed)
        root = kl.sqrt(pivot).splat(lanes)
        parts = [row.load(k * lanes, lanes) / root for k in range(vectors)]
        for k in range(vectors):
            row.store(parts[k], k * lanes)
        for j in range(i + 1, width):
            factor = -row[j].splat(lanes)
            target = block + j * width
            for k in range(vectors):
                target.store(kl.fma(factor, parts[k], target.load(k * lanes, lanes)), k * lanes)
    return failed


def _load_strip(strip: Pointer, matrix: Pointer, first: Value | int, size: Value, width: int) -> None:
    """Write rows of a matrix's lower triangle as the columns of a strip, and zeros below; identity behind the last."""
    kind = kl.type_of(matrix[0])
    for c in kl.loop(width):
        j = first + c
        row = matrix + kl.minimum(j, size - 1) * size
        length = kl.select(j < size, j + 1, 0)
        for i in range(length):
            strip[i * width + c] = row[i]
        for i in range(length, first + width):
            strip[i * width + c] = kl.value(0.0, kind)
        if j >= size:
            strip[j * width + c] = kl.value(1.0, kind)


def _store_strip(strip: Pointer, result: Pointer, first: Value | int, size: Value, width: int) -> None:
    """Write the columns of a strip as rows of a lower triangular matrix."""
    kind = kl.type_of(result[0])
    for j in range(first, kl.minimum(first + width, size)):
        row = result + j * size
        for i in range(j + 1):
            row[i] = strip[i * width + (j - first)]
        for i in range(j + 1, size):
            row[i] = kl.value(0.0, kind)


@selector(CholeskyFactor)
def select_cholesky(form: CholeskyFactor, build: Builder) -> None:
    """Add the factors of a batch of matrices."""
    x, y = form.input, form.output
    size = check_matrix(x)
    if y.dtype is not x.dtype or y.parent is not None:
        raise NoKernel(f"the factors {y!r}")
    lanes, number = host().lanes(x.dtype.size), math.prod(x.shape[:-2])
    vectors = strip_vectors(size, lanes)
    padded = -(-size // (vectors * lanes)) * vectors * lanes
    words = [build.pointer(x), build.pointer(y), size]
    scratch = padded * padded * x.dtype.size
    code = cholesky.code(source=x.dtype, vectors=vectors)
    build.step(code, words, number, scratch=scratch, chunk=chunk_of(number * size**3 // 3, number))
