"""Fourier transforms of rows.

Lives here: the selector of Fourier, the family `fourier`, its tables.
Not here: images, whose rows and then columns are transformed; most lengths that are not powers of two
(../lowering/fourier.py).

A transform of M complex numbers is Stockham's: stages of radix 4 alternate between two arrays and leave the numbers in
order. With n the remaining length, s = M / n, and p < n / 4, q < s,

    a, b, c, d = x[q + s p + (0, 1, 2, 3) M / 4]
    y[q + s (4 p + (0, 1, 2, 3))] = a + c + b + d, w (a - c - i (b - d)), w^2 (a + c - b - d), w^3 (a - c + i (b - d))

with w = exp(-2 pi i p / n). Operands are contiguous over q and p; shuffles interleave results if s is less than a
vector. An odd power of two ends with a stage of radix 2. Rows of N real numbers are N / 2 complex ones, x[2 j] + i x[2
j + 1], whose transform Z yields, with w = exp(-2 pi i / N),

    X[k] = (Z[k] + conj Z[N / 2 - k]) / 2 - i w^k (Z[k] - conj Z[N / 2 - k]) / 2

Short rows, and short lengths that are not powers of two, are products with a matrix of sines.
Source: Van Loan, Computational Frameworks for the Fast Fourier Transform (1992), 1.7 and 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, float32, float64
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.buffers import Buffer, SameMemory
from ..loops.domain_ops import Fourier
from ..loops.expressions import arg
from ..loops.ops import MatMul
from ..target import host
from . import NoKernel, select, selector
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

SIZE_LIMIT = 1 << 16
"""The longest transform: stages are unrolled, and tables of a row stay in the second cache."""
MATRIX_LIMIT = 512
"""The longest row that is multiplied by a matrix."""


class Stage(NamedTuple):
    """A stage. s: contiguous elements of a residue; table: index of its factors; wide: whether each element has one."""

    s: int
    radix: int
    table: int
    wide: bool


def stages_of(m: int, lanes: int) -> tuple[list[Stage], int]:
    """Return the stages of a transform of m numbers, and the floats of their factors."""
    stages, s, table = [], 1, 0
    while m // s >= 4:
        p = m // s // 4
        wide = s < lanes and p > 1
        stages.append(Stage(s, 4, table, wide))
        table += 0 if p == 1 else 6 * (m // 4 if wide else p)
        s *= 4
    if s < m:
        stages.append(Stage(s, 2, table, False))
    return stages, table


def fill_factors(m: int, lanes: int, real: bool, out: np.ndarray) -> None:
    """Write w, w^2, w^3 of each stage, real and imaginary parts: planes of vectors, or six numbers for each p.

    For real rows, half of the cosines and sines of the last step follow.
    """
    stages, size = stages_of(m, lanes)
    for stage in stages:
        p = np.arange(m // stage.s // 4)
        if stage.radix != 4 or len(p) == 1:
            continue
        angles = -2 * np.pi * stage.s / m * np.multiply.outer(p, [1, 2, 3])
        factors = np.stack([np.cos(angles), np.sin(angles)], -1).reshape(len(p), 6)
        repeated = np.ascontiguousarray(np.repeat(factors, stage.s, 0).T) if stage.wide else factors
        out[stage.table : stage.table + repeated.size] = repeated.reshape(-1)
    if real:
        phases = np.pi / m * np.arange(m)
        out[size : size + m], out[size + m :] = 0.5 * np.cos(phases), 0.5 * np.sin(phases)


ComplexVector = tuple["Value", "Value"]
"""Real and imaginary parts."""


def _multiplied(x: ComplexVector, w: ComplexVector) -> ComplexVector:
    (a, b), (c, d) = x, w
    return a * c - b * d, a * d + b * c


def _butterfly(x: list[ComplexVector], w: list[ComplexVector]) -> list[ComplexVector]:
    """Return the four results of a radix-4 butterfly. w: factors of the last three; empty if they are 1."""
    (ar, ai), (br, bi), (cr, ci), (dr, di) = x
    sr, si, tr, ti = ar + cr, ai + ci, br + dr, bi + di
    ur, ui, vr, vi = ar - cr, ai - ci, br - dr, bi - di
    results = [(sr + tr, si + ti), (ur + vi, ui - vr), (sr - tr, si - ti), (ur - vi, ui + vr)]
    return [results[0], *(_multiplied(y, f) for y, f in zip(results[1:], w))] if w else results


def _interleaved_blocks(vectors: list[Value], s: int) -> list[Value]:
    """Interleave four vectors in blocks of s elements."""
    lanes = vectors[0].count
    halves = kl.concat(vectors[0], vectors[1]), kl.concat(vectors[2], vectors[3])
    results = []
    for j in range(4):
        positions = [divmod(j * lanes + e, 4 * s) for e in range(lanes)]
        results.append(kl.shuffle(*halves, [r // s * lanes + p * s + r % s for p, r in positions]))
    return results


class InterleavedRow(NamedTuple):
    """Complex numbers as pairs of floats. count: floats of the row; None if it is complete. swapped: whether parts
    change places."""

    x: Pointer
    count: Any
    swapped: bool = False

    def load(self, i: Any, lanes: int) -> ComplexVector:
        """Load `lanes` complex numbers from index i on; zeros beyond the last of them."""
        start = 2 * i
        masks: list[Any] = [None, None]
        if self.count is not None:
            masks = [kl.first(kl.clamp(self.count - start - k * lanes, 0, lanes), lanes) for k in range(2)]
        low, high = (self.x.load(start + k * lanes, lanes, masks[k]) for k in range(2))
        re, im = kl.shuffle(low, high, range(0, 2 * lanes, 2)), kl.shuffle(low, high, range(1, 2 * lanes, 2))
        return (im, re) if self.swapped else (re, im)


def _store_pairs(y: Pointer, i: Any, v: ComplexVector) -> None:
    lanes = v[0].count
    for k in range(2):
        order = [lanes * (j % 2) + j // 2 for j in range(k * lanes, (k + 1) * lanes)]  # also of one lane
        y.store(kl.shuffle(*v, order), 2 * i + k * lanes)


class ComplexPlanes(NamedTuple):
    """Complex numbers as two arrays, of real and of imaginary parts."""

    re: Pointer
    im: Pointer

    def load(self, i: Any, lanes: int) -> ComplexVector:
        """Load `lanes` complex numbers from index i on."""
        return self.re.load(i, lanes), self.im.load(i, lanes)

    def store(self, v: ComplexVector, i: Any) -> None:
        """Store complex numbers from index i on."""
        self.re.store(v[0], i)
        self.im.store(v[1], i)


def _stage(
    stage: Stage, x: InterleavedRow | ComplexPlanes, y: ComplexPlanes, factors: Pointer, m: int, lanes: int
) -> None:
    """Compute one stage."""
    s, quarter = stage.s, m // 4
    table = factors + stage.table
    if stage.radix == 2:
        for i in kl.loop(0, m // 2, lanes):
            (ar, ai), (br, bi) = x.load(i, lanes), x.load(i + m // 2, lanes)
            y.store((ar + br, ai + bi), i)
            y.store((ar - br, ai - bi), i + m // 2)
    elif s < lanes:
        for i in kl.loop(0, quarter, lanes):
            w = []
            if stage.wide:
                planes = [(table + k * quarter).load(i, lanes) for k in range(6)]
                w = [(planes[2 * k], planes[2 * k + 1]) for k in range(3)]
            results = _butterfly([x.load(i + k * quarter, lanes) for k in range(4)], w)
            for plane, parts in zip(y, zip(*results)):
                for j, v in enumerate(_interleaved_blocks(list(parts), s)):
                    plane.store(v, 4 * i + j * lanes)
    else:
        for p in kl.loop(0, quarter // s):
            w = []
            if quarter != s:
                scalars = [kl.splat(table[6 * p + k], lanes) for k in range(6)]
                w = [(scalars[2 * k], scalars[2 * k + 1]) for k in range(3)]
            for q in kl.loop(0, s, lanes):
                i = p * s + q
                results = _butterfly([x.load(i + k * quarter, lanes) for k in range(4)], w)
                for k in range(4):
                    y.store(results[k], 4 * s * p + q + k * s)


def plane_size(m: int) -> int:
    """Return the floats of one plane of scratch memory."""
    return -(-(m + 1) // 16) * 16


@kl.family
def fourier(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    factors: ptr[u8],
    pitch: i64,
    count: i64,
    *,
    dtype: DType,
    m: int,
    real: bool,
    whole: bool,
    inverse: bool,
) -> None:
    """Transform rows of m complex numbers, or of 2 m real ones, `count` floats of which exist. Items: rows.

    pitch: floats from a row to the next; whole: whether all floats exist. inverse: the transform of numbers with their
    parts exchanged is m times the inverse one with its parts exchanged.
    """
    x, y, factors = (p.cast(dtype, dtype.size) for p in (x, y, factors))
    lanes = work.lanes(dtype)
    stages, size = stages_of(m, lanes)
    scratch = work.scratch(dtype)
    planes = [ComplexPlanes(scratch + k * plane_size(m), scratch + (k + 1) * plane_size(m)) for k in (0, 2)]
    for item in work.items():
        row = InterleavedRow(x + item * pitch, None if whole else count, inverse)
        for number, stage in enumerate(stages):
            _stage(stage, planes[(number - 1) % 2] if number else row, planes[number % 2], factors, m, lanes)
        result = planes[(len(stages) - 1) % 2]
        if real:
            _real_transform(result, y + item * (2 * m + 2), factors + size, m, lanes)
        else:
            out = y + item * (2 * m)
            for i in kl.loop(0, m, lanes):
                re, im = result.load(i, lanes)
                _store_pairs(out, i, (im * (1.0 / m), re * (1.0 / m)) if inverse else (re, im))


def _real_transform(z: ComplexPlanes, out: Pointer, factors: Pointer, m: int, lanes: int) -> None:
    """Compute the transform of a real row from that of its pairs of numbers."""
    first, second = z.re[0], z.im[0]
    z.re[m], z.im[m] = first, second
    backwards = range(lanes - 1, -1, -1)
    for k in kl.loop(0, m, lanes):
        re, im = z.load(k, lanes)
        other_re, other_im = (kl.shuffle(v, None, backwards) for v in z.load(m - lanes + 1 - k, lanes))
        c, s = factors.load(k, lanes), (factors + m).load(k, lanes)
        odd_re, odd_im = re - other_re, im + other_im
        _store_pairs(
            out,
            k,
            (0.5 * (re + other_re) + (c * odd_im - s * odd_re), 0.5 * (im - other_im) - (c * odd_re + s * odd_im)),
        )
    out[2 * m], out[2 * m + 1] = first - second, kl.full(first.dtype, 0, 0.0)


@selector(Fourier)
def select_fourier(form: Fourier, build: Builder) -> None:
    """Add the steps of a transform by stages, or by a matrix."""
    x, y, size = form.input, form.output, form.size
    dtype = x.dtype
    if any(b.parent is not None for b in (x, y)) or y.dtype is not dtype or dtype not in (float32, float64):
        raise NoKernel(f"a transform of {x!r} to {y!r}")
    rows = x.shape[: -2 if form.complex else -1]
    expected = (*rows, size if form.complex else size // 2 + 1, 2)
    n = x.shape[len(rows)]
    if y.shape != expected or not 0 < n <= size or not x.size:
        raise NoKernel(f"a transform of {x!r} to {y!r}")
    lanes, m = host().vector_bytes // dtype.size, size if form.complex else size // 2
    if size & (size - 1) or m < 4 * lanes:
        _add_matrix_product(form, build)
        return
    if m > SIZE_LIMIT:
        raise NoKernel(f"a transform of {size} numbers")
    floats = n * (2 if form.complex else 1)
    real = not form.complex
    table = build.packed(
        (stages_of(m, lanes)[1] + (2 * m if real else 0),),
        dtype.np,
        lambda out: fill_factors(m, lanes, real, out),
        ("fourier", dtype.name, m, lanes, real),
    )
    code = fourier.code(dtype=dtype, m=m, real=real, whole=floats == 2 * m, inverse=form.inverse)
    items = math.prod(rows)
    build.step(
        code,
        [build.pointer(x), build.pointer(y), table, floats, floats],
        items,
        scratch=4 * dtype.size * plane_size(m),
        chunk=grain(16 * m * len(stages_of(m, lanes)[0]), items),
    )


def _add_matrix_product(form: Fourier, build: Builder) -> None:
    if form.size > MATRIX_LIMIT:
        raise NoKernel(f"a transform of {form.size} numbers, which is not a power of two")
    matrix = np.concatenate(list(_waves(form)), 0)
    x, y = form.input, form.output
    rows, columns = matrix.shape
    count = x.size // rows
    waves = Buffer("waves", x.dtype, (rows, columns), matrix)
    flat = [SameMemory(b.name, x.dtype, (count, n), b.constant, of=b) for b, n in ((x, rows), (y, columns))]
    select(MatMul(flat[1], flat[0], waves, (), arg(0, x.dtype)), build)


def _waves(form: Fourier) -> Iterator[np.ndarray]:
    """Yield the rows of the matrix; for complex input those of real and imaginary parts alternate."""
    n, size = form.input.shape[-2 if form.complex else -1], form.size
    steps = np.multiply.outer(np.arange(n), np.arange(form.output.shape[-2])) % size
    cos, sin = np.cos(2 * np.pi / size * steps), np.sin(2 * np.pi / size * steps)
    if form.inverse:
        cos, sin = cos / size, -sin / size
    dtype = form.input.dtype.np
    real = np.stack([cos, -sin], -1).reshape(n, -1).astype(dtype)
    if not form.complex:
        yield real
        return
    imaginary = np.stack([sin, cos], -1).reshape(n, -1).astype(dtype)
    yield np.stack([real, imaginary], 1).reshape(2 * n, -1)
