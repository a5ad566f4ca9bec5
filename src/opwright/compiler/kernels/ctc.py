"""The loss of connectionist temporal classification and its gradient: sums over all paths, forward and backward.

Lives here: the selector of Alignment, its family.
Not here: the operator, which computes the same in NumPy (ops/nn/ctc.py).

Probabilities of paths are beyond the range of float64. Each is a pair of float64, f and an integer e, that stands for
f 2^e with f between the roots of 1/2 and 2, or 0 with e of `NOTHING`: sums take no logarithm, and their relative error
is float64's whatever their size.

States are blank, label, blank, ..., label, blank. State s is at s + 2 of each array, after two of probability 0, and is
followed by two vectors of them, so that the states s - 2 to s + 2 exist for each vector.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.dtypes import DType, float32, int32, int64
from ...scalar.numerics.exponential import LN2, decompose, exp_parts, power_of_two, wide_log
from .. import language as kl
from ..language import f32, f64, i64, ptr, u8
from ..loops.domain_ops import Alignment
from ..target import host
from . import NoKernel, selector

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

MATH: Any = kl  # whose functions numerics.exponential calls
NOTHING = -1e300
"""The exponent of 0: below all others, and added to itself a few times still finite."""
LEAST_POWER = -1000.0
"""Smaller powers of two are this one, which adds nothing to sums of more than one half."""
FRONT = 2
"""States of probability 0 before the first."""
MOST_SCRATCH = 1 << 28
"""Bytes of scratch memory for a sequence; longer ones are left to NumPy."""


class Probabilities(NamedTuple):
    """An array of numbers f 2^e."""

    f: Pointer
    e: Pointer

    def load(self, i: Value | int, lanes: int) -> tuple[Value, Value]:
        return self.f.load(i, lanes), self.e.load(i, lanes)

    def store(self, numbers: tuple[Value, Value], i: Value | int) -> None:
        self.f.store(numbers[0], i)
        self.e.store(numbers[1], i)

    def row(self, offset: Value) -> Probabilities:
        return Probabilities(self.f + offset, self.e + offset)

    def clear(self, i: Value | int, lanes: int) -> None:
        """Set one vector to 0."""
        self.store((kl.zeros(f64, lanes), kl.full(f64, lanes, NOTHING)), i)

    def put(self, i: Value | int, other: Probabilities, j: Value | int) -> None:
        """Copy one number."""
        self.f[i] = other.f[j]
        self.e[i] = other.e[j]


def normalized(f: Value, e: Value) -> tuple[Value, Value]:
    """Return f 2^e in its form, of f that is 0 or normal."""
    n, part = decompose(MATH, f)
    none = f == 0.0
    return kl.select(none, 0.0, part), kl.select(none, NOTHING, e + n)


def power(e: Value) -> Value:
    result: Value = power_of_two(MATH, kl.maximum(e, LEAST_POWER))
    return result


def total(terms: list[tuple[Value, Value]]) -> tuple[Value, Value]:
    """Return the sum of numbers, not normalized."""
    largest = terms[0][1]
    for _, e in terms[1:]:
        largest = kl.maximum(largest, e)
    parts = [f * power(e - largest) for f, e in terms]
    sum_ = parts[0]
    for part in parts[1:]:
        sum_ = sum_ + part
    return sum_, largest


def kept(number: tuple[Value, Value], skips: Value) -> tuple[Value, Value]:
    """Return a number where skips is 1, else 0."""
    return kl.select(skips > 0.5, number[0], 0.0), kl.select(skips > 0.5, number[1], NOTHING)


@kl.family
def align(
    work: Work,
    logits: ptr[f32],
    labels: ptr[u8],
    label_lengths: ptr[u8],
    logit_lengths: ptr[u8],
    losses: ptr[f32],
    gradient: ptr[f32],
    steps: i64,
    batch: i64,
    classes: i64,
    most_labels: i64,
    room: i64,
    blank: i64,
    *,
    label: DType,
    label_length: DType,
    logit_length: DType,
) -> Value:
    """Compute losses and gradients. A work item is a sequence. room: float64 for the states of a step.

    Scratch, float64: f and e of emissions and of sums forward [steps, room] each, of sums backward [room], of classes
    [padded]; which states may follow the state two before [room]; the share of each [room]; what a class gets [padded].
    """
    lanes = work.lanes(f64)
    labels = labels.cast(label, label.size)
    label_lengths = label_lengths.cast(label_length, label_length.size)
    logit_lengths = logit_lengths.cast(logit_length, logit_length.size)
    padded, by_step = classes + lanes, steps * room
    memory = work.scratch(f64)
    emitted = Probabilities(memory, memory + by_step)
    forward = Probabilities(memory + 2 * by_step, memory + 3 * by_step)
    memory = memory + 4 * by_step
    backward = Probabilities(memory, memory + room)
    skips, share = memory + 2 * room, memory + 3 * room
    memory = memory + 4 * room
    by_class, received = Probabilities(memory, memory + padded), memory + 2 * padded
    failed = kl.value(0)
    for item in work.items():
        count, length = label_lengths[item].to(i64), logit_lengths[item].to(i64)
        row = labels + item * most_labels
        fits = (count >= 0) & (count <= most_labels) & (length >= 0) & (length <= steps)
        failed = kl.select(fits, failed, 1)
        count, length = kl.select(fits, count, 0), kl.select(fits, length, 0)
        for j in range(count):
            inside = (row[j].to(i64) >= 0) & (row[j].to(i64) < classes)
            failed = kl.select(inside, failed, 1)
            length = kl.select(inside, length, 0)
        states = 2 * count + 1
        _set_skips(skips, row, count, states, lanes)
        unknown = kl.value(0)  # 1: a logit is NaN, or all of a step or one of it are infinite
        for t in range(length):
            at = (t * batch + item) * classes
            mass = _distribute(logits + at, by_class, gradient + at, classes, lanes)
            unknown = kl.select(mass == mass, unknown, 1)
            _emit(emitted.row(t * room), by_class, row, count, blank, lanes)
        if length > 0:
            _clear(forward, states, lanes)
            for k in kl.unroll(2):
                forward.put(FRONT + k, emitted, FRONT + k)
        for t in range(1, length):
            _step_forward(forward, emitted.row(t * room), skips, t * room, room, states, lanes)
        last = forward.row(kl.maximum(length - 1, 0) * room)
        end = FRONT + states - 1
        whole, whole_e = kl.full(f64, 0, 0.0), kl.full(f64, 0, NOTHING)
        if length > 0:
            whole, whole_e = normalized(*total([(last.f[end], last.e[end]), (last.f[end - 1], last.e[end - 1])]))
        elif count == 0:
            whole, whole_e = kl.full(f64, 0, 1.0), kl.full(f64, 0, 0.0)
        loss = -(wide_log(MATH, kl.select(whole > 0.0, whole, 1.0)) + whole_e * LN2)
        loss = kl.select(whole > 0.0, loss, math.inf)
        losses[item] = kl.select(unknown == 1, math.nan, loss).to(f32)
        possible = (whole > 0.0) & (unknown == 0)
        counted = kl.select(possible, length, 0)
        _clear(backward, states, lanes)
        for back in range(counted):
            step = counted - 1 - back
            if back == 0:
                backward.f[end] = 1.0
                backward.e[end] = 0.0
                if count > 0:
                    backward.f[end - 1] = 1.0
                    backward.e[end - 1] = 0.0
            else:
                _step_back(backward, emitted.row((step + 1) * room), skips, states, lanes)
            sums = forward.row(step * room)
            for s in range(0, states, lanes):
                (f, e), (g, h) = sums.load(FRONT + s, lanes), backward.load(FRONT + s, lanes)
                share.store(f * g / whole * power(e + h - whole_e), s)
            target = gradient + (step * batch + item) * classes
            received[blank] = target[blank].to(f64)
            for j in range(count):
                c = row[j].to(i64)
                received[c] = target[c].to(f64)
            for j in range(count):
                c = row[j].to(i64)
                received[blank] = received[blank] - share[2 * j]
                received[c] = received[c] - share[2 * j + 1]
            received[blank] = received[blank] - share[2 * count]
            target[blank] = received[blank].to(f32)
            for j in range(count):
                c = row[j].to(i64)
                target[c] = received[c].to(f32)
        for t in range(counted, steps):
            target = gradient + (t * batch + item) * classes
            for c in range(classes):
                target[c] = kl.value(0.0, f32)
    return failed


def _clear(numbers: Probabilities, states: Value, lanes: int) -> None:
    """Set an array of states to 0, with those before and after them."""
    for s in range(0, FRONT + states + lanes, lanes):
        numbers.clear(s, lanes)


def _set_skips(skips: Pointer, row: Pointer, count: Value, states: Value, lanes: int) -> None:
    """Set which states may follow the state two before: labels that differ from the label before."""
    for s in range(0, FRONT + states + lanes, lanes):
        skips.store(kl.zeros(f64, lanes), s)
    for j in range(1, count):
        differs = row[j].to(i64) != row[j - 1].to(i64)
        skips[FRONT + 2 * j + 1] = kl.select(differs, kl.full(f64, 0, 1.0), 0.0)


def _emit(
    emissions: Probabilities, by_class: Probabilities, row: Pointer, count: Value, blank: Value, lanes: int
) -> None:
    """Write the probabilities of the labels of all states at a step; those of the states around them are 0."""
    emissions.clear(0, lanes)
    for j in range(count):
        emissions.put(FRONT + 2 * j, by_class, blank)
        emissions.put(FRONT + 2 * j + 1, by_class, row[j].to(i64))
    emissions.put(FRONT + 2 * count, by_class, blank)
    for k in kl.unroll(2):
        emissions.clear(FRONT + 2 * count + 1 + k * lanes, lanes)


def _distribute(row: Pointer, by_class: Probabilities, target: Pointer, classes: Value, lanes: int) -> Value:
    """Write the softmax of a row of logits, as numbers and as float32; return its divisor, NaN if there is none."""
    largest = row[0]
    for c in range(1, classes):
        largest = kl.select(row[c] > largest, row[c], largest)
    top = largest.to(f64).splat(lanes)
    sums = kl.zeros(f64, lanes)
    for c in range(0, classes, lanes):
        mask = kl.tail_mask(classes - c, lanes)
        x = row.load(c, lanes, mask).to(f64) - top
        none, unknown = x == -math.inf, x != x
        f, e = exp_parts(MATH, kl.select(none | unknown, 0.0, x))
        f, e = kl.select(none, 0.0, kl.select(unknown, math.nan, f)), kl.select(none, NOTHING, e)
        by_class.store((f, e), c)
        sums = sums + kl.select(mask, f * power(e), 0.0)
    mass = kl.reduce_add(sums)
    divisor, n = normalized(mass, kl.full(f64, 0, 0.0))
    for c in range(0, classes, lanes):
        mask = kl.tail_mask(classes - c, lanes)
        f, e = by_class.load(c, lanes)
        f, e = f / divisor.splat(lanes), e - n.splat(lanes)
        by_class.store((f, e), c)
        target.store((f * power(e)).to(f32), c, mask)
    return mass


def _step_forward(
    forward: Probabilities, emissions: Probabilities, skips: Pointer, at: Value, room: Value, states: Value, lanes: int
) -> None:
    """Write the sums of the paths up to a step, whose row begins at `at`, from those of the step before."""
    sums, earlier = forward.row(at), forward.row(at - room)
    sums.clear(0, lanes)
    for s in range(0, states, lanes):
        terms = [earlier.load(FRONT + s - k, lanes) for k in range(3)]
        terms[2] = kept(terms[2], skips.load(FRONT + s, lanes))
        f, e = emissions.load(FRONT + s, lanes)
        sum_, largest = total(terms)
        sums.store(normalized(sum_ * f, largest + e), FRONT + s)


def _step_back(backward: Probabilities, emissions: Probabilities, skips: Pointer, states: Value, lanes: int) -> None:
    """Replace the sums of the paths after the next step by those after this one; a vector reads none before itself."""
    for s in range(0, states, lanes):
        terms = []
        for k in range(3):
            (f, e), (g, h) = (a.load(FRONT + s + k, lanes) for a in (backward, emissions))
            terms.append((f * g, e + h))
        terms[2] = kept(terms[2], skips.load(FRONT + s + 2, lanes))
        backward.store(normalized(*total(terms)), FRONT + s)


@selector(Alignment)
def select_alignment(form: Alignment, build: Builder) -> None:
    steps, batch, classes = form.logits.shape
    operands = (form.logits, form.labels, form.label_length, form.logit_length)
    if form.logits.dtype is not float32 or any(b.dtype not in (int32, int64) for b in operands[1:]):
        raise NoKernel(f"logits {form.logits!r} and labels {form.labels!r}")
    if not form.logits.size or form.blank >= classes or any(b.parent is not None for b in operands):
        raise NoKernel(f"logits {form.logits!r} and the blank {form.blank}")
    most_labels, lanes = form.labels.shape[1], host().vector_bytes // 8
    room = FRONT + 2 * most_labels + 1 + 3 * lanes
    scratch = 8 * (4 * steps * room + 4 * room + 3 * (classes + lanes))
    if scratch > MOST_SCRATCH:
        raise NoKernel(f"{scratch} bytes for a sequence of {steps} steps with {most_labels} labels")
    code = align.code(label=operands[1].dtype, label_length=operands[2].dtype, logit_length=operands[3].dtype)
    results = [build.pointer(form.output, start) for _, start in form.results]
    words = [*map(build.pointer, operands), *results, steps, batch, classes, most_labels, room, form.blank]
    build.step(code, words, batch, scratch=scratch, chunk=1)
