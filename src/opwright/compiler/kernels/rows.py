"""What needs a whole row at once: softmax and the norms.

Lives here: the selector of RowPass, its family, the table of kinds.  Not here: reductions to one element
(reductions.py).

A row is read once, as float32 into the thread's scratch memory, where the turns over it find it in the first cache.

    softmax         exp(x - max x) / sum exp(x - max x)
    log_softmax     x - max x - ln sum exp(x - max x)
    l2_norm         x / max(sqrt(sum x^2), epsilon)
    rms_norm        x / sqrt(mean x^2 + epsilon) * gamma
    layer_norm      (x - mean x) / sqrt(mean (x - mean x)^2 + epsilon) * gamma + beta
    local_response  x / (bias + alpha sum of x_j^2 over |j - i| <= radius)^beta
    response_of_positive  the same where bias is above 0 and alpha not below
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType
from .. import language as kl
from ..language import f32, i64, ptr, u8
from ..loops.ops import RowPass
from ..target import host
from . import NoKernel, selector
from .epilogue import Epilogue, epilogue_of
from .expression import fast
from .tiling import grain

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

VECTORS = 4  # accumulators in registers
NUMBERS = {
    "softmax": 0,
    "log_softmax": 0,
    "l2_norm": 1,
    "rms_norm": 1,
    "layer_norm": 1,
    "local_response": 4,
    "response_of_positive": 4,
}
"""How many numbers each kind has: epsilon; radius, bias, alpha and beta."""
AROUND = ("local_response", "response_of_positive")
"""Kinds that read elements around each, as far as their first number says."""
SCALED = {"rms_norm": 1, "layer_norm": 2}
"""Kinds with operands as long as a row, and the most of them: gamma, beta."""


class Row:
    """One row: n float32 in scratch memory, and turns over it, vector by vector."""

    def __init__(self, memory: Any, n: Any, lanes: int) -> None:
        self.memory, self.n, self.lanes = memory, n, lanes

    def each(self, turn: Callable[[Any, Any, int], None], width: int = 1) -> None:
        """turn(i, mask, k) for every vector from element i on, `width` in a loop's turn; k: which of these; mask: None,
        or of the elements that there are."""
        i, lanes = kl.value(0), self.lanes
        while i + width * lanes <= self.n:
            for k in range(width):
                turn(i + k * lanes, None, k)
            i = i + width * lanes
        while i < self.n:
            turn(i, kl.tail_mask(self.n - i, lanes), 0)
            i = i + lanes

    def total(
        self, of: Callable[[Any, Any], Any], join: Callable[[Any, Any], Any], start: float, width: int = VECTORS
    ) -> Any:
        """The elements of(i, mask) joined to one number; start: what changes nothing. width: as many accumulators, so
        that short expressions need not wait for each other."""
        found = kl.registers(f32, self.lanes, width)
        for k in range(width):
            found[k] = kl.full(f32, self.lanes, start)

        def turn(i: Any, mask: Any, k: int) -> None:
            v = of(i, mask)
            found[k] = join(v if mask is None else kl.select(mask, v, start), found[k])

        self.each(turn, width)
        while width > 1:
            width = width // 2
            for k in range(width):
                found[k] = join(found[k], found[k + width])
        v = found[0]
        while v.count > 1:
            half = v.count // 2
            v = join(kl.part(v, 0, half), kl.part(v, half, half))
        return v[0]

    def load(self, i: Any) -> Any:
        """A vector; lanes behind the end hold anything."""
        return self.memory.load(i, self.lanes)

    def keep(self, v: Any, i: Any) -> Any:
        """Write a vector, and give it."""
        self.memory.store(v, i)
        return v


def _add(a: Any, b: Any) -> Any:
    return a + b


def _exp(x: Any) -> Any:
    return fast("exp", x)


def _softmax(row: Row, numbers: Any) -> Callable[[Any, Any], Any]:
    greatest = row.total(lambda i, mask: row.load(i), kl.maximum, -math.inf)
    total = row.total(lambda i, mask: row.keep(_exp(row.load(i) - greatest), i), _add, 0.0, 1)
    factor = 1.0 / total
    return lambda v, i: v * factor


def _log_softmax(row: Row, numbers: Any) -> Callable[[Any, Any], Any]:
    greatest = row.total(lambda i, mask: row.load(i), kl.maximum, -math.inf)
    total = row.total(lambda i, mask: _exp(row.load(i) - greatest), _add, 0.0, 1)
    logarithm = kl.log(total)
    return lambda v, i: (v - greatest) - logarithm


def _squares(row: Row) -> Any:
    return row.total(lambda i, mask: row.load(i) * row.load(i), _add, 0.0)


def _l2_norm(row: Row, numbers: Any) -> Callable[[Any, Any], Any]:
    factor = 1.0 / kl.maximum(kl.sqrt(_squares(row)), numbers[0])
    return lambda v, i: v * factor


def _rms_norm(row: Row, numbers: Any) -> Callable[[Any, Any], Any]:
    factor = 1.0 / kl.sqrt(_squares(row) / row.n.to(f32) + numbers[0])
    return lambda v, i: v * factor


def _layer_norm(row: Row, numbers: Any) -> Callable[[Any, Any], Any]:
    mean = row.total(lambda i, mask: row.load(i), _add, 0.0) / row.n.to(f32)
    total = row.total(lambda i, mask: (row.load(i) - mean) * (row.load(i) - mean), _add, 0.0)
    factor = 1.0 / kl.sqrt(total / row.n.to(f32) + numbers[0])
    return lambda v, i: (v - mean) * factor


def _local_response(row: Row, numbers: Any, positive: bool = False) -> Callable[[Any, Any], Any]:
    """Sums of squares within the radius; behind the row's ends there are zeros, as `margin` says. positive: what is
    raised to a power is above 0, which takes a third of the time."""
    radius = numbers[0].to(i64)

    def compute(v: Any, i: Any) -> Any:
        near = kl.zeros(f32, row.lanes)
        for j in range(-radius, radius + 1):
            w = row.load(i + j)
            near = near + w * w
        base = near * numbers[2] + numbers[1]
        if positive:
            return v * fast("exp", fast("log", base) * -numbers[3])
        return v * kl.pow(base, kl.zeros(f32, row.lanes) - numbers[3])

    return compute


KINDS: dict[str, Callable[[Row, Any], Callable[[Any, Any], Any]]] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "l2_norm": _l2_norm,
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "local_response": _local_response,
    "response_of_positive": functools.partial(_local_response, positive=True),
}
"""By name, what is found out of a row first; it gives the function of an element and its place."""


@kl.family
def row_pass(
    work,
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
):
    """An item is a row of n elements. margin: zeros before and behind the row in the scratch memory."""
    x, y = x.cast(source, source.size), y.cast(after.expr.dtype, after.expr.dtype.size)
    read, finish = before.bind(more), after.bind(more[len(before.params) :])
    lanes = work.lanes(f32)
    memory = work.scratch(f32)
    for i in range(0, margin, lanes):
        memory.store(kl.zeros(f32, lanes), i)
        memory.store(kl.zeros(f32, lanes), margin + n + i)
    scales = (gamma, beta)[:operands]
    for item in work.items():
        row = Row(memory + margin, n, lanes)
        _one_row(row, x + item * x_pitch, y + item * y_pitch, kind, (n0, n1, n2, n3), scales, read, finish)


def _one_row(row: Row, a: Any, b: Any, kind: str, numbers: Any, scales: Any, read: Any, finish: Any) -> None:
    """From a to b by way of the row's memory."""

    def fetch(i: Any, mask: Any, k: int) -> None:
        v = read(a.load(i, row.lanes, mask), 0, 0, row.lanes, mask)
        # whole vectors, zeros behind the end: what is stored by a mask is not handed on to the load that follows
        row.memory.store(v if mask is None else kl.select(mask, v, 0.0), i)

    row.each(fetch)
    compute = KINDS[kind](row, numbers)

    def write(i: Any, mask: Any, k: int) -> None:
        v = compute(row.load(i), i)
        if scales:
            v = v * scales[0].load(i, row.lanes, mask)
        if len(scales) > 1:
            v = v + scales[1].load(i, row.lanes, mask)
        b.store(finish(v, 0, 0, row.lanes, mask), i, mask=mask)

    row.each(write)


@selector(RowPass)
def select_row_pass(form: RowPass, build: Builder) -> None:
    """Rows of any dtype that `before` makes float32."""
    x, y = form.input, form.output
    if form.kind not in KINDS or form.before.dtype is not f32:
        raise NoKernel(f"rows: {form.kind} of {form.before.dtype.name}")
    if x.shape != y.shape or not x.size or len(form.numbers) != NUMBERS[form.kind]:
        raise NoKernel(f"rows: {x!r} to {y!r}")
    n = x.shape[-1] if x.shape else 1
    wrong = [p for p in form.operands if p.dtype is not f32 or p.shape != (n,)]
    if wrong or len(form.operands) > SCALED.get(form.kind, 0):
        raise NoKernel(f"rows: {form.kind} with {list(form.operands)}")
    before, words = epilogue_of(form.before, (), y, build)
    after, more = epilogue_of(form.expr, (), y, build)
    lanes = host().vector_bytes // 4
    margin = 0
    if form.kind in AROUND:
        radius = min(int(form.numbers[0]), n - 1)  # farther there is nothing
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
        more=len(words) + len(more),
    )
    given = [build.pointer(x), build.pointer(y), n, x.pitch, y.pitch, margin, *pointers, *numbers, *words, *more]
    scratch = 4 * (2 * margin + -(-n // lanes) * lanes + lanes)
    build.step(code, given, rows, scratch=scratch, chunk=grain(16 * n, rows))
