"""Normalizations of rows: softmax, norms, local response normalization.

Lives here: the selectors of RowPass and TabledSoftmax, their families, the table of kinds.
Not here: reductions to one element (reductions.py); the arithmetic of softmax of int16 (opwright/scalar), its tables
(lite/ops/quantized/activation.py).

The first pass converts a row to float32 in the thread's scratch memory, unless it is float32 already; later passes hit
the L1 cache.

    softmax         exp(x - max x) / sum exp(x - max x)
    log_softmax     x - max x - ln sum exp(x - max x)
    l2_norm         x / max(sqrt(sum x^2), epsilon)
    rms_norm        x / sqrt(mean x^2 + epsilon) * gamma
    layer_norm      (x - mean x) / sqrt(mean (x - mean x)^2 + epsilon) * gamma + beta
    local_response  x / (bias + alpha sum of x_j^2 over |j - i| <= radius)^beta
    response_of_positive  the same where bias is above 0 and alpha not below

Softmax of int16 looks up exp and the reciprocal in tables, bit-exact with the reference.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ...core.dtypes import DType, int16
from ...scalar.fixed_point import ENTRIES
from ...scalar.fixed_point_layers import SoftmaxOfInt16
from .. import language as kl
from ..language import f32, i16, i32, i64, ptr, u8
from ..loops.domain_ops import TabledSoftmax
from ..loops.ops import RowPass
from ..target import host
from . import NoKernel, selector
from .epilogue import Epilogue, epilogue_of
from .expression import exp_nonpositive, fast
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

VECTORS = 4  # accumulators in registers
LONG = 1024  # elements of a row whose sums are blocked, which costs 20 ns
SPAN = 32  # terms that are added one after the other; equal terms of 65536 have an error of 7.5e-6 otherwise
NUMBERS = {
    "softmax": 0,
    "log_softmax": 0,
    "l2_norm": 1,
    "rms_norm": 1,
    "layer_norm": 1,
    "local_response": 4,
    "response_of_positive": 4,
}
"""Number of parameters by kind: epsilon; radius, bias, alpha and beta."""
WINDOWED = ("local_response", "response_of_positive")
"""Kinds that read elements within a radius, their first parameter."""
SCALED = {"rms_norm": 1, "layer_norm": 2}
"""Kinds with operands as long as a row, and their maximal number: gamma, beta."""


class ScratchRow:
    """A row of n float32, with passes over its vectors: in place, or in scratch memory from the first pass on.

    is_long: whether sums are blocked. fetch(i, mask): loads a vector of the source as float32. source: the row itself,
    where its passes may read it; None where they read scratch memory.
    """

    def __init__(
        self,
        memory: Pointer,
        n: Value,
        lanes: int,
        is_long: bool,
        fetch: Callable[[Value, Value | None], Value],
        source: Pointer | None,
    ) -> None:
        self.memory, self.n, self.lanes, self.is_long = memory, n, lanes, is_long
        self.fetch, self.source = fetch, source

    def first(self, i: Value, mask: Value | None) -> Value:
        """Load a vector in the first pass, which visits each once; lanes beyond the end are 0."""
        v = self.fetch(i, mask)
        # full vectors padded with zeros: masked stores do not forward to later loads
        v = v if mask is None else kl.select(mask, v, 0.0)
        return v if self.source is not None else self.store(v, i)

    def keep(self) -> None:
        """Store the row in scratch memory, where a kind has no first pass of its own."""
        self.source = None

        def visit(i: Value, mask: Value | None, k: int) -> None:
            self.first(i, mask)

        self.each(visit)

    def each(
        self,
        visit: Callable[[Value, Value | None, int], None],
        width: int = 1,
        begin: Value | int = 0,
        end: Value | None = None,
    ) -> None:
        """Call visit(i, mask, k) for every vector from an element to another, with `width` vectors per iteration.

        i: the first element; mask: None, or of the elements before the end; k: index of the vector in an iteration.
        """
        i, lanes = kl.value(begin), self.lanes
        end = self.n if end is None else end
        while i + width * lanes <= end:
            for k in range(width):
                visit(i + k * lanes, None, k)
            i = i + width * lanes
        while i < end:
            visit(i, kl.tail_mask(end - i, lanes), 0)
            i = i + lanes

    def reduce(
        self,
        vector_of: Callable[[Value, Value | None], Value],
        combine: Callable[[Value, Value], Value],
        identity: float,
        width: int = VECTORS,
    ) -> Value:
        """Reduce the vectors vector_of(i, mask) to one number. width: independent accumulators, which hide latency."""
        return kl.reduce_lanes(self._reduced(vector_of, combine, identity, width, 0, self.n), combine)

    def sum(self, vector_of: Callable[[Value, Value | None], Value], width: int = VECTORS) -> Value:
        """Sum the vectors vector_of(i, mask); in long rows SPAN at a time, and as many such sums, so that
        rounding errors do not add up."""
        if not self.is_long:
            return self.reduce(vector_of, _add, 0.0, width)
        total, i = kl.zeros(f32, self.lanes), kl.value(0)
        while i < self.n:
            middle, end = kl.zeros(f32, self.lanes), kl.minimum(self.n, i + SPAN * SPAN * width * self.lanes)
            while i < end:
                stop = kl.minimum(end, i + SPAN * width * self.lanes)
                middle = middle + self._reduced(vector_of, _add, 0.0, width, i, stop)
                i = stop
            total = total + middle
        return kl.reduce_lanes(total, _add)

    def _reduced(
        self,
        vector_of: Callable[[Value, Value | None], Value],
        combine: Callable[[Value, Value], Value],
        identity: float,
        width: int,
        begin: Value | int,
        end: Value,
    ) -> Value:
        """Return the vectors of a part of the row as one vector."""
        sums = kl.registers(f32, self.lanes, width)
        for k in range(width):
            sums[k] = kl.full(f32, self.lanes, identity)

        def visit(i: Value, mask: Value | None, k: int) -> None:
            v = vector_of(i, mask)
            sums[k] = combine(v if mask is None else kl.select(mask, v, identity), sums[k])

        self.each(visit, width, begin, end)
        while width > 1:
            width = width // 2
            for k in range(width):
                sums[k] = combine(sums[k], sums[k + width])
        return sums[0]

    def load(self, i: Any, mask: Value | None = None) -> Value:
        """Load a vector after the first pass; lanes beyond the end are undefined."""
        return self.memory.load(i, self.lanes) if self.source is None else self.source.load(i, self.lanes, mask)

    def store(self, v: Value, i: Any) -> Value:
        """Store a vector and return it."""
        self.memory.store(v, i)
        return v


ElementFunction: TypeAlias = "Callable[[Value, Value], Value]"  # of an element and its index


def _add(a: Value, b: Value) -> Value:
    return a + b


def _softmax(row: ScratchRow, numbers: Sequence[Value]) -> ElementFunction:
    greatest = row.reduce(row.first, kl.maximum, -math.inf)
    total = row.sum(lambda i, mask: row.store(exp_nonpositive(row.load(i, mask) - greatest), i), 1)
    row.source = None  # exponentials are in scratch memory
    factor = 1.0 / total
    return lambda v, i: v * factor


def _log_softmax(row: ScratchRow, numbers: Sequence[Value]) -> ElementFunction:
    greatest = row.reduce(row.first, kl.maximum, -math.inf)
    total = row.sum(lambda i, mask: exp_nonpositive(row.load(i, mask) - greatest), 1)
    logarithm = kl.log(total)
    return lambda v, i: (v - greatest) - logarithm


def _squares(row: ScratchRow) -> Value:
    def square(i: Value, mask: Value | None) -> Value:
        v = row.first(i, mask)
        return v * v

    return row.sum(square)


def _l2_norm(row: ScratchRow, numbers: Sequence[Value]) -> ElementFunction:
    factor = 1.0 / kl.maximum(kl.sqrt(_squares(row)), numbers[0])
    return lambda v, i: v * factor


def _rms_norm(row: ScratchRow, numbers: Sequence[Value]) -> ElementFunction:
    factor = 1.0 / kl.sqrt(_squares(row) / row.n.to(f32) + numbers[0])
    return lambda v, i: v * factor


def _layer_norm(row: ScratchRow, numbers: Sequence[Value]) -> ElementFunction:
    mean = row.sum(row.first) / row.n.to(f32)

    def square(i: Value, mask: Value | None) -> Value:
        distance = row.load(i, mask) - mean
        return distance * distance

    total = row.sum(square)
    factor = 1.0 / kl.sqrt(total / row.n.to(f32) + numbers[0])
    return lambda v, i: (v - mean) * factor


def _local_response(row: ScratchRow, numbers: Sequence[Value], positive: bool = False) -> ElementFunction:
    """Normalize by sums of squares within the radius, with zeros beyond the row's ends (`margin`).

    positive: the base of the power is positive, which takes a third of the time.
    """
    radius = numbers[0].to(i64)
    row.keep()

    def compute(v: Value, i: Value) -> Value:
        near = kl.zeros(f32, row.lanes)
        for j in range(-radius, radius + 1):
            w = row.load(i + j)
            near = near + w * w
        base = near * numbers[2] + numbers[1]
        if positive:
            return v * fast("exp", fast("log", base) * -numbers[3])
        return v * kl.pow(base, kl.zeros(f32, row.lanes) - numbers[3])

    return compute


KINDS: dict[str, Callable[[ScratchRow, Sequence[Value]], ElementFunction]] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "l2_norm": _l2_norm,
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "local_response": _local_response,
    "response_of_positive": functools.partial(_local_response, positive=True),
}
"""By name: computes the statistics of a row, beginning with `first`, and returns the function of an element and its
index."""


@kl.family(addressed=True)
def row_pass(
    work: Work,
    x: ptr[u8],
    y: ptr[u8],
    n: i64,
    x_pitch: i64,
    y_pitch: i64,
    margin: i64,
    gamma: ptr[f32],
    beta: ptr[f32],
    n0: f32,
    n1: f32,
    n2: f32,
    n3: f32,
    *more: i64,
    kind: str,
    source: DType,
    before: Epilogue,
    after: Epilogue,
    operands: int,
    is_long: bool,
) -> None:
    """Normalize rows. A work item is a row of n elements. margin: zeros before and after the row in scratch memory."""
    x, y = x.cast(source, source.size), y.cast(after.expr.dtype, after.expr.dtype.size)
    read, finish = before.bind(more), after.bind(more[len(before.params) :])
    lanes = work.lanes(f32)
    memory = work.scratch(f32)
    for i in range(0, margin, lanes):
        memory.store(kl.zeros(f32, lanes), i)
        memory.store(kl.zeros(f32, lanes), margin + n + i)
    scales = (gamma, beta)[:operands]
    for item in work.items():
        a, b = x + item * x_pitch, y + item * y_pitch

        def fetch(i: Value, mask: Value | None, a: Pointer = a) -> Value:
            return read(a.load(i, lanes, mask), 0, 0, lanes, mask)

        in_place = source is f32 and before.expr.op == "arg"
        row = ScratchRow(memory + margin, n, lanes, is_long, fetch, a if in_place else None)
        _normalize_row(row, b, kind, (n0, n1, n2, n3), scales, finish)


def _normalize_row(
    row: ScratchRow,
    b: Pointer,
    kind: str,
    numbers: Sequence[Value],
    scales: Sequence[Pointer],
    finish: Callable[..., Value],
) -> None:
    """Normalize a row and store it at b."""
    compute = KINDS[kind](row, numbers)

    def write(i: Value, mask: Value | None, k: int) -> None:
        v = compute(row.load(i, mask), i)
        if scales:
            v = v * scales[0].load(i, row.lanes, mask)
        if len(scales) > 1:
            v = v + scales[1].load(i, row.lanes, mask)
        b.store(finish(v, 0, 0, row.lanes, mask), i, mask=mask)

    row.each(write)


@selector(RowPass)
def select_row_pass(form: RowPass, build: Builder) -> None:
    """Select for rows of any dtype that `before` converts to float32."""
    x, y = form.input, form.output
    if form.kind not in KINDS or form.before.dtype is not f32:
        raise NoKernel(f"rows: {form.kind} of {form.before.dtype.name}")
    if x.shape != y.shape or not x.size or len(form.numbers) != NUMBERS[form.kind]:
        raise NoKernel(f"rows: {x!r} to {y!r}")
    n = x.shape[-1] if x.shape else 1
    mismatched = [p for p in form.operands if p.dtype is not f32 or p.shape != (n,)]
    if mismatched or len(form.operands) > SCALED.get(form.kind, 0):
        raise NoKernel(f"rows: {form.kind} with {list(form.operands)}")
    before, words = epilogue_of(form.before, (), y, build)
    after, more = epilogue_of(form.expr, (), y, build)
    lanes = host().vector_bytes // 4
    margin = 0
    if form.kind in WINDOWED:
        radius = min(int(form.numbers[0]), n - 1)  # elements farther away are zeros
        margin = -(-radius // lanes) * lanes
        form_numbers: tuple[float, ...] = (float(radius), *form.numbers[1:])
    else:
        form_numbers = form.numbers
    pointers = [*map(build.pointer, form.operands), 0, 0][:2]
    numbers = [*form_numbers, 0.0, 0.0, 0.0, 0.0][:4]
    rows = x.size // n
    if x.dtype is y.dtype:
        build.share(x)
    code = row_pass.code(
        kind=form.kind,
        source=x.dtype,
        before=before,
        after=after,
        operands=len(form.operands),
        is_long=n >= LONG and form.kind not in WINDOWED,
        more=len(words) + len(more),
    )
    arguments = [build.pointer(x), build.pointer(y), n, x.pitch, y.pitch, margin, *pointers, *numbers, *words, *more]
    scratch = 4 * (2 * margin + -(-n // lanes) * lanes + lanes)
    build.step(code, arguments, rows, scratch=scratch, chunk=grain(16 * n, rows))


MAX_LENGTH = 65535  # elements of a row, whose sum has 31 bits
ARITHMETIC = SoftmaxOfInt16(kl)
LOW, HIGH = int(int16.min), int(int16.max)


@kl.family
def tabled_softmax(
    work: Work, x: ptr[i16], y: ptr[i16], tables: ptr[i64], n: i64, x_pitch: i64, y_pitch: i64, m: i64, exponent: i64
) -> None:
    """Compute softmax. A work item is a row of n elements."""
    lanes = work.target.lanes(8)
    exponentials = work.scratch(i32)
    inverses = tables + ENTRIES
    multiplier, power = m.splat(lanes), exponent.splat(lanes)
    for item in work.items():
        a, b = x + item * x_pitch, y + item * y_pitch
        running_max, i = kl.full(i16, lanes, LOW), kl.value(0)
        while i < n:
            mask = kl.tail_mask(n - i, lanes)
            running_max = kl.maximum(kl.select(mask, a.load(i, lanes, mask), LOW), running_max)
            i = i + lanes
        greatest = kl.reduce_max(running_max).to(i64).splat(lanes)
        sums, i = kl.zeros(i64, lanes), kl.value(0)
        while i < n:
            mask = kl.tail_mask(n - i, lanes)
            difference = kl.select(mask, a.load(i, lanes, mask), LOW).to(i64) - greatest
            e = ARITHMETIC.exponential(tables, difference, multiplier, power)
            exponentials.store(e.to(i32), i)
            sums = sums + kl.select(mask, e, 0)
            i = i + lanes
        reciprocal, shift = ARITHMETIC.reciprocal(inverses, kl.reduce_add(sums))
        i = kl.value(0)
        while i < n:
            mask = kl.tail_mask(n - i, lanes)
            b.store(ARITHMETIC.share(exponentials.load(i, lanes).to(i64), reciprocal, shift).to(i16), i, mask=mask)
            i = i + lanes


@selector(TabledSoftmax)
def select_tabled_softmax(form: TabledSoftmax, build: Builder) -> None:
    """Select for rows of up to MAX_LENGTH elements."""
    x, y, (m, e) = form.input, form.output, form.factor
    n = x.shape[-1]
    if x.dtype is not int16 or y.dtype is not int16 or x.shape != y.shape or not 0 < n <= MAX_LENGTH:
        raise NoKernel(f"softmax of {x!r} to {y!r}")
    if form.tables.shape != (2, ENTRIES) or form.tables.dtype.name != "int64" or not -31 <= e <= 31:
        raise NoKernel(f"softmax of {x!r} by {form.tables!r}, factor {form.factor}")
    build.share(x)
    words = [build.pointer(x), build.pointer(y), build.pointer(form.tables), n, x.pitch, y.pitch, m, e]
    rows = x.size // n
    build.step(tabled_softmax.code(), words, rows, scratch=4 * (n + 64), chunk=grain(32 * n, rows))
