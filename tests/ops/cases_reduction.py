"""Rows for reductions, scans, segments, sorting and counting: `ops/math/{reduction,moments,cumulative,...}.py`."""

from __future__ import annotations

import itertools
import math

import numpy as np
from harness import bad, bf16, bools, c64, c128, case, f16, f32, f64, i8, i32, u8

inf, nan = math.inf, math.nan


def over(function, axis=None, keepdims=False):
    """An oracle: `function` of each list of numbers that a reduction over `axis` brings together."""

    def oracle(x):
        x = np.asarray(x)
        axes = range(x.ndim) if axis is None else [a % x.ndim for a in axis]
        kept = [i for i in range(x.ndim) if i not in axes]
        shape = [x.shape[i] for i in kept]
        flat = []
        for at in itertools.product(*map(range, shape)):
            where = [slice(None)] * x.ndim
            for i, j in zip(kept, at):
                where[i] = j
            flat.append(function(x[tuple(where)].ravel().tolist()))
        return np.array(flat).reshape([1 if i in axes else d for i, d in enumerate(x.shape)] if keepdims else shape)

    return oracle


def reduction_rows(function, x=f64, floats=True):
    """The rows every reduction has: all axes, some, none; kept or not."""
    return [
        case(x(2, 3), expect=over(function)),
        case(x(2, 3, 4), axis=(1,), expect=over(function, (1,))),
        case(x(2, 3, 4), axis=(-1, 0), expect=over(function, (-1, 0))),
        case(x(2, 3, 4), axis=(0, 2), keepdims=True, expect=over(function, (0, 2), True)),
        case(x(2, 3), axis=(), expect=over(function, ())),
        case(x(), expect=over(function)),
        bad(x(2, 3), axis=(2,), says="out of range"),
        bad(x(2, 3), axis=(1, 1), says="twice"),
        bad(x(2, 3), axis=1, says="axis"),
    ]


def cut(total, n):
    """The mean of integers as C has it."""
    return math.trunc(total / n)


zeros_in = np.array([[0.0, 2.0, -1.5], [0.0, 0.0, 3.0], [1.0, -2.0, 0.5]])
tied = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])


def scan(function, first, exclusive=False, reverse=False, axis=0):
    """An oracle: `function` of each list of numbers that a scan has met."""

    def line(xs):
        xs = xs[::-1] if reverse else xs
        out = [function(xs[: i + (0 if exclusive else 1)]) if i or not exclusive else first for i in range(len(xs))]
        return np.array(out[::-1] if reverse else out, np.asarray(xs).dtype)

    return lambda x: np.apply_along_axis(lambda xs: line(list(xs)), axis, np.asarray(x))


def scan_rows(function, first, x=f64):
    return [
        case(x(5), expect=scan(function, first)),
        case(x(3, 4), axis=1, expect=scan(function, first, axis=1)),
        case(x(3, 4), axis=-2, exclusive=True, expect=scan(function, first, True, axis=0)),
        case(x(3, 4), axis=1, reverse=True, expect=scan(function, first, reverse=True, axis=1)),
        case(x(2, 4), axis=1, reverse=True, exclusive=True, expect=scan(function, first, True, True, axis=1)),
        case(x(0, 3), expect=np.zeros((0, 3))),
        bad(x(2, 3), axis=2, says="[-2, 2)"),
        bad(x(), says="axis"),
    ]


def logsumexp(xs):
    return math.log(sum(math.exp(v) for v in xs)) if len(xs) else -inf


ids = np.array([0, 0, 2, 2, 2], np.int32)
unsorted = np.array([2, 0, -1, 2, 0], np.int32)


def segments(function, empty, n=None):
    """An oracle: `function` of the rows of each segment, element by element."""

    def oracle(data, ids, count=None):
        rows = data.reshape(-1, *data.shape[ids.ndim :])
        flat = ids.reshape(-1)
        out = np.full((int(flat[-1]) + 1 if count is None else int(count), *rows.shape[1:]), empty, np.float64)
        for i in range(len(out)):
            mine = rows[flat == i]
            if len(mine):
                out[i] = (
                    np.apply_along_axis(lambda v: function(v.tolist()), 0, mine)
                    if mine.ndim > 1
                    else function(mine.tolist())
                )
        return out if data.dtype.kind == "f" else out.astype(np.int64)

    return oracle


def segment_rows(function, empty):
    return [
        case(f64(5, 2), ids, expect=segments(function, empty)),
        case(f32(5), ids.astype(np.int64), expect=segments(function, empty)),
        case(i32(5), ids, expect=segments(function, empty)),
        case(f32(0, 2), np.zeros(0, np.int32), expect=np.zeros((0, 2))),
        bad(f32(2), np.array([1, 0], np.int32), says="not increasing"),
        bad(f32(2), np.array([-1, 0], np.int32), says="out of range"),
        bad(f32(2), np.array([0], np.int32), says="same size"),
        bad(f32(), np.array([0], np.int32), says="scalar"),
    ]


three = np.array(3, np.int32)


def unsorted_rows(function, empty_float, empty_int):
    return [
        case(f64(5, 2), unsorted, three, expect=segments(function, empty_float(np.float64)), half=False),
        case(
            f32(5),
            unsorted.astype(np.int64),
            np.array(3, np.int64),
            expect=segments(function, empty_float(np.float32)),
            half=False,
        ),
        case(f64(2, 2, 3), np.array([[0, 1], [1, 0]], np.int32), np.array(2, np.int32), expect=segments(function, 0.0)),
        case(i32(5), unsorted, three, expect=segments(function, empty_int)),
        bad(f32(2), np.array([0, 3], np.int32), three, says="segment_ids[1] = 3 is out of range [0, 3)"),
        bad(f32(3), np.array([0, 1], np.int32), three, says="does not start with"),
        bad(f32(1), np.array([0], np.int32), np.array(-1, np.int32), says="must not be negative"),
    ]


def mean(xs):
    return sum(xs) / len(xs)


def descending(x):
    return -np.sort(-x, -1)


ties = np.array([[2.0, 1.0, 2.0, 1.0]])


def gradient_of(key, **attrs):
    """The gradient of the sum of an operator's result, for rows where differences cannot tell it."""

    def gradient(x, *rest):
        from harness import resolve

        from opwright.eager.tape import GradientTape

        with GradientTape() as tape:
            tape.watch(x)
            y = resolve(key)(x, *rest, **attrs)
        return tape.gradient(y, x)

    return gradient


thirds = np.array([[0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]])

CASES = {
    "Sum": [
        *reduction_rows(math.fsum),
        case(i32(3, 4), expect=over(sum)),
        case(c128(2, 3), axis=(1,), expect=over(sum, (1,))),
        case(np.full((3,), 100, np.int8), expect=np.array(300 - 256, np.int8), gives="int8"),
        case(np.ones(5000, np.float16), expect=5000.0, gives="float16"),
        case(bf16(300), expect=lambda x: x.sum(), half=False),
        case(f32(0, 3), axis=(0,), expect=np.zeros(3)),
        bad(bools(2), says="dtype"),
    ],
    "reduce_sum": [
        case(f64(2, 3), 1, expect=lambda x, axis: x.sum(1)),
        case(f64(2, 3), [0, 1], expect=lambda x, axis: x.sum()),
        case(f64(2, 3), np.array(-1, np.int32), True, static=(1,), expect=lambda x, *_: x.sum(1, keepdims=True)),
    ],
    "Mean": [
        *reduction_rows(mean),
        case(np.array([-7, 0], np.int32), expect=-3, gives="int32"),
        case(np.array([127, 127], np.int8), expect=127, gives="int8"),
        case(u8(3, 4), axis=(1,), expect=over(lambda v: cut(sum(v), len(v)), (1,))),
        case(c64(2, 3), axis=(0,), expect=over(mean, (0,))),
        case(np.zeros(0, np.float32), expect=nan, half=False),
        case(np.zeros(0, np.int32), expect=0),
        case(np.full(70000, 2.0, np.float16), expect=2.0, grad=False),
        case(f32(2, 0), axis=(0,), expect=np.zeros(0)),
        bad(bools(2), says="dtype"),
    ],
    "Prod": [
        *reduction_rows(math.prod),
        case(zeros_in, axis=(1,), expect=over(math.prod, (1,))),
        case(zeros_in, axis=(0, 1), expect=0.0),
        case(np.array([0.0, 2.0, 3.0]), expect=0.0),
        case(c128(2, 3), axis=(1,), expect=over(math.prod, (1,))),
        case(np.zeros((2, 0), np.float32), axis=(1,), expect=np.ones(2)),
        case(i32(2, 2), axis=(0,), expect=over(math.prod, (0,))),
    ],
    "Max": [
        *reduction_rows(max),
        case(tied, axis=(1,), expect=np.array([3.0, 2.0]), grad=False),
        case(tied, call=gradient_of("Max", axis=(1,)), expect=thirds, grad=False),
        case(np.zeros(0, np.float32), expect=-inf, half=False),
        case(np.zeros(0, np.int32), expect=-(2**31)),
        case(np.array([[nan, 1.0, 2.0], [0.0, 1.0, -inf]]), axis=(1,), expect=np.array([nan, 1.0]), grad=False),
        case(i8(2, 3), axis=(0,), expect=over(max, (0,)), gives="int8"),
        bad(c64(2), says="dtype"),
    ],
    "Min": [
        *reduction_rows(min),
        case(tied, axis=(1,), expect=np.array([1.0, 2.0]), grad=False),
        case(
            tied,
            call=gradient_of("Min", axis=(1,), keepdims=True),
            expect=np.array([[1, 0, 0], [1 / 3, 1 / 3, 1 / 3]]),
            grad=False,
        ),
        case(np.zeros((2, 0), np.float32), axis=(1,), expect=np.full(2, inf), half=False),
        case(np.zeros(0, np.uint8), expect=255),
        case(np.array([nan, 1.0]), expect=nan, grad=False),
        bad(c64(2), says="dtype"),
    ],
    "All": [*reduction_rows(all, bools), case(np.zeros(0, bool), expect=True), bad(i32(2), says="dtype")],
    "Any": [*reduction_rows(any, bools), case(np.zeros(0, bool), expect=False), bad(i32(2), says="dtype")],
    "EuclideanNorm": [
        *reduction_rows(lambda v: math.sqrt(math.fsum(x * x for x in v)))[:-4],
        case(np.array([3, 4, 1], np.int32), expect=5, gives="int32"),
        case(np.array([1 + 2j, 3 - 1j]), expect=np.array(math.sqrt(15) + 0j)),
        case(np.zeros(0, np.float32), expect=0.0, half=False),
        case(np.full(100, 60.0, np.float16), expect=600.0, grad=False),
        bad(bools(2), says="dtype"),
    ],
    "math.reduce_logsumexp": [
        case(f64(2, 3), expect=over(logsumexp)),
        case(f32(2, 3), axis=1, expect=over(logsumexp, (1,))),
        case(f64(2, 3), axis=[0], keepdims=True, expect=over(logsumexp, (0,), True)),
        case(np.array([1000.0, 1000.0]), expect=1000.0 + math.log(2)),
        case(np.array([-inf, -inf]), expect=-inf, grad=False),
        case(np.array([inf, 1.0]), expect=inf, grad=False),
        case(np.zeros(0, np.float32), expect=-inf, half=False, grad=False),
    ],
    "math.reduce_variance": [
        case(f64(2, 3), expect=lambda x: ((x - x.mean()) ** 2).mean()),
        case(
            f32(2, 3),
            axis=1,
            keepdims=True,
            expect=lambda x: ((x - x.mean(1, keepdims=True)) ** 2).mean(1, keepdims=True),
        ),
        case(np.array([1 + 2j, 3 - 1j]), expect=3.25),
        bad(i32(3), says="integer", raises=TypeError),
    ],
    "math.reduce_std": [case(f64(2, 3), axis=0, expect=lambda x: np.sqrt(((x - x.mean(0)) ** 2).mean(0)))],
    "math.l2_normalize": [
        case(f64(2, 3), axis=1, expect=lambda x: x / np.sqrt((x * x).sum(1, keepdims=True))),
        case(f32(2, 3), expect=lambda x: x / np.sqrt((x * x).sum())),
        case(np.zeros(2), expect=np.zeros(2), grad=False, half=False),  # epsilon is 0 there
        case(np.array([3 + 4j]), expect=np.array([0.6 + 0.8j])),
    ],
    "Cumsum": [
        *scan_rows(sum, 0),
        case(i32(4), expect=scan(sum, 0)),
        case(np.full(3, 100, np.int8), expect=np.array([100, -56, 44]), gives="int8"),
        case(f16(6), expect=np.cumsum, half=False),
        case(c64(3, 2), axis=1, expect=scan(sum, 0, axis=1)),
    ],
    "Cumprod": [
        *scan_rows(math.prod, 1),
        case(zeros_in, axis=1, expect=scan(math.prod, 1, axis=1)),
        case(zeros_in, axis=0, exclusive=True, expect=scan(math.prod, 1, True)),
        case(np.array([0.0, 2.0, 0.0, 3.0]), reverse=True, expect=scan(math.prod, 1, reverse=True)),
        case(c128(4), expect=scan(math.prod, 1)),
        case(i32(4), expect=scan(math.prod, 1)),
    ],
    "math.cumsum": [
        case(f64(2, 3), np.array(1, np.int32), True, static=(1,), expect=lambda x, *_: scan(sum, 0, True, axis=1)(x))
    ],
    "math.cumprod": [case(f64(2, 3), -1, expect=lambda x, *_: scan(math.prod, 1, axis=1)(x))],
    "ShiftByOne": [
        case(f64(3), expect=lambda x: np.array([0, x[0], x[1]])),
        case(f64(2, 3), axis=1, reverse=True, expect=lambda x: np.stack([x[:, 1], x[:, 2], 0 * x[:, 0]], 1)),
        case(f32(0), expect=np.zeros(0)),
        bad(f32(2), axis=1, says="axis"),
    ],
    "LinearRecurrence": [
        case(
            f64(3), f64(3), expect=lambda x, c: np.array([x[0], x[1] + c[1] * x[0], x[2] + c[2] * (x[1] + c[1] * x[0])])
        ),
        case(
            f64(2, 3),
            f64(2, 3),
            axis=1,
            reverse=True,
            expect=lambda x, c: np.stack(
                [x[:, 0] + c[:, 0] * (x[:, 1] + c[:, 1] * x[:, 2]), x[:, 1] + c[:, 1] * x[:, 2], x[:, 2]], 1
            ),
        ),
        case(
            f32(3, 2),
            f32(3, 2),
            expect=lambda x, c: np.stack([x[0], x[1] + c[1] * x[0], x[2] + c[2] * (x[1] + c[1] * x[0])]),
        ),
        bad(f32(2), f32(3), says="shape"),
    ],
    "CumulativeLogsumexp": [
        *scan_rows(logsumexp, -inf)[:2],
        case(f64(3, 4), axis=1, reverse=True, expect=scan(logsumexp, -inf, reverse=True, axis=1)),
        case(f64(4), exclusive=True, expect=scan(logsumexp, -inf, True), grad=False),
        case(
            f64(4),
            exclusive=True,
            reverse=True,
            call=lambda x, **k: _cumulative(x, **k)[:-1],
            expect=lambda x: scan(logsumexp, -inf, True, True)(x)[:-1],
        ),
        case(
            f64(4),
            exclusive=True,
            call=lambda x, **k: _cumulative(x, **k)[1:],
            expect=lambda x: scan(logsumexp, -inf, True)(x)[1:],
        ),
        case(np.array([-inf, -inf, 3.0]), expect=np.array([-inf, -inf, 3.0]), grad=False),
        case(np.array([1000.0, 1000.0]), expect=np.array([1000.0, 1000.0 + math.log(2)])),
        bad(i32(2), says="dtype"),
        bad(f32(2), axis=1, says="[-1, 1)"),
    ],
    "math.cumulative_logsumexp": [case(f64(2, 3), axis=1, expect=scan(logsumexp, -inf, axis=1))],
    "SegmentSum": segment_rows(math.fsum, 0.0),
    "SegmentMean": [
        *segment_rows(mean, 0.0)[:2],
        *segment_rows(mean, 0.0)[3:],
        case(np.array([1, 2, 4, -3, 0], np.int32), ids, expect=np.array([1, 0, 0]), gives="int32"),
    ],
    "SegmentMax": [
        *segment_rows(max, 0.0),
        case(np.array([1.0, 1.0, 5.0]), np.array([0, 0, 1], np.int32), expect=np.array([1.0, 5.0]), grad=False),
        case(
            np.array([1.0, 1.0, 5.0]),
            np.array([0, 0, 1], np.int32),
            call=gradient_of("SegmentMax"),
            expect=np.array([0.5, 0.5, 1.0]),
            grad=False,
        ),
    ],
    "SegmentMin": segment_rows(min, 0.0),
    "SegmentProd": [
        *segment_rows(math.prod, 1.0)[:3],
        *segment_rows(math.prod, 1.0)[4:],
        case(np.array([0.0, 2.0, 0.0, 3.0, 0.0]), ids, expect=np.array([0.0, 1.0, 0.0])),
    ],
    "UnsortedSegmentSum": [
        *unsorted_rows(math.fsum, lambda d: 0.0, 0),
        case(c64(3), np.array([1, 0, 1], np.int32), three, expect=lambda x, i, n: np.array([x[1], x[0] + x[2], 0])),
    ],
    "UnsortedSegmentMax": [
        *unsorted_rows(max, lambda d: np.finfo(d).min, -(2**31)),
        case(
            np.array([1.0, 2.0, 5.0, 1.0, 0.0]),
            unsorted,
            three,
            call=gradient_of("UnsortedSegmentMax"),
            expect=np.array([0.5, 1.0, 0.0, 0.5, 0.0]),
            grad=False,
        ),
    ],
    "UnsortedSegmentMin": unsorted_rows(min, lambda d: np.finfo(d).max, 2**31 - 1),
    "UnsortedSegmentProd": [
        *unsorted_rows(math.prod, lambda d: 1.0, 1),
        case(np.array([0.0, 2.0, 5.0, 0.0, 0.0]), unsorted, three, expect=np.array([0.0, 1.0, 0.0])),
    ],
    "math.unsorted_segment_mean": [
        case(f64(5, 2), unsorted, three, expect=segments(mean, 0.0)),
        case(
            np.array([1, 2, 4], np.int32),
            np.array([0, 0, 1], np.int32),
            three,
            expect=np.array([1.5, 4.0, 0.0]),
            gives="float64",
        ),
    ],
    "math.unsorted_segment_sqrt_n": [
        case(f64(5, 2), unsorted, three, expect=segments(lambda v: sum(v) / math.sqrt(len(v)), 0.0))
    ],
    "ArgMax": [
        case(
            f32(3, 4),
            expect=lambda x: np.array([max(range(3), key=x[:, j].__getitem__) for j in range(4)]),
            gives="int64",
        ),
        case(f32(3, 4), axis=-1, expect=lambda x: np.array([max(range(4), key=r.__getitem__) for r in x])),
        case(np.array([1, 3, 3], np.int32), output_type=np.int32, expect=1, gives="int32"),
        case(np.array([1.0, nan, 2.0]), expect=2),
        case(np.array([False, True, True]), expect=1),
        case(np.zeros((2, 0), np.float32), expect=np.zeros(0)),
        case(bf16(5), expect=lambda x: int(np.argsort(-x, kind="stable")[0]), half=False),
        bad(np.zeros(0, np.float32), says="axis 0 is empty"),
        bad(f32(2), axis=3, says="[-1, 1)"),
        bad(c64(2), says="dtype"),
        bad(f32(2), output_type=np.float32, says="output_type"),
    ],
    "ArgMin": [
        case(f32(3, 4), axis=1, expect=lambda x: np.array([min(range(4), key=r.__getitem__) for r in x])),
        case(np.array([1, 0, 0], np.uint8), expect=1),
        case(np.array([nan, 1.0, 2.0]), expect=1),
        bad(f32(2), axis=-2, says="[-1, 1)"),
    ],
    "math.argmax": [
        case(f32(3, 4), expect=lambda x: np.array([max(range(3), key=x[:, j].__getitem__) for j in range(4)]))
    ],
    "math.argmin": [
        case(
            f32(3, 4),
            np.array(1, np.int32),
            static=(1,),
            expect=lambda x, a: np.array([min(range(4), key=r.__getitem__) for r in x]),
        )
    ],
    "Sort": [
        case(
            f64(2, 5),
            expect=lambda x: (
                np.array([sorted(r) for r in x]),
                np.array([sorted(range(5), key=r.__getitem__) for r in x]),
            ),
        ),
        case(
            f64(2, 3, 4),
            direction="DESCENDING",
            expect=lambda x: (
                np.array([[sorted(r, reverse=True) for r in m] for m in x]),
                np.array([[sorted(range(4), key=(-r).__getitem__) for r in m] for m in x]),
            ),
        ),
        case(
            np.array([3, 200, 3], np.uint8), direction="DESCENDING", expect=(np.array([200, 3, 3]), np.array([1, 0, 2]))
        ),
        case(
            np.array([3, -128, 127], np.int8),
            direction="DESCENDING",
            expect=(np.array([127, 3, -128]), np.array([2, 0, 1])),
        ),
        case(np.array([1.0, nan, 0.0]), expect=(np.array([0.0, 1.0, nan]), np.array([2, 0, 1])), grad=False),
        case(f32(2, 0), expect=(np.zeros((2, 0)), np.zeros((2, 0), int))),
        bad(f32(), says="scalar"),
        bad(f32(2), direction="UP", says="direction"),
    ],
    "sort": [
        case(f64(3, 4), axis=0, expect=lambda x: np.array([sorted(c) for c in x.T]).T),
        case(f64(4), direction="DESCENDING", expect=lambda x: np.array(sorted(x, reverse=True))),
        bad(f32(2), direction="up", says="direction", raises=ValueError),
        bad(f32(2), axis=1, says="out of range"),
    ],
    "argsort": [
        case(np.array([2, 1, 2, 1], np.int32), expect=np.array([1, 3, 0, 2]), gives="int32"),
        case(np.array([2, 1, 2, 1], np.int32), direction="DESCENDING", expect=np.array([0, 2, 1, 3])),
        case(
            f32(3, 2),
            axis=0,
            stable=True,
            expect=lambda x: np.array([sorted(range(3), key=c.__getitem__) for c in x.T]).T,
        ),
    ],
    "TopK": [
        case(
            f64(2, 5),
            np.array(2, np.int32),
            expect=lambda x, k: (
                np.array([sorted(r, reverse=True)[:2] for r in x]),
                np.array([sorted(range(5), key=(-r).__getitem__)[:2] for r in x]),
            ),
        ),
        case(
            f32(4),
            np.array(4, np.int32),
            expect=lambda x, k: (np.array(sorted(x, reverse=True)), np.array(sorted(range(4), key=(-x).__getitem__))),
        ),
        case(
            f64(2, 2, 3),
            np.array(1, np.int32),
            expect=lambda x, k: (
                np.array([[[max(r)] for r in m] for m in x]),
                np.array([[[max(range(3), key=r.__getitem__)] for r in m] for m in x]),
            ),
        ),
        case(
            np.array([1, 3, 3, 2], np.int32),
            np.array(3, np.int32),
            index_type=np.int64,
            expect=(np.array([3, 3, 2]), np.array([1, 2, 3])),
            gives=["int32", "int64"],
        ),
        case(
            np.array([1.0, nan, 3.0]),
            np.array(2, np.int32),
            expect=(np.array([nan, 3.0]), np.array([1, 2])),
            grad=False,
        ),
        case(f32(2, 3), np.array(0, np.int32), expect=(np.zeros((2, 0)), np.zeros((2, 0), int))),
        bad(f32(2), np.array(3, np.int32), says="at least k columns. Had 2, needed 3"),
        bad(f32(2), np.array(-1, np.int32), says="Need k >= 0, got -1"),
        bad(f32(), np.array(1, np.int32), says=">= 1-D"),
    ],
    "math.top_k": [
        case(
            f64(5),
            k=2,
            expect=lambda x: (np.array(sorted(x)[:-3:-1]), np.array(sorted(range(5), key=(-x).__getitem__)[:2])),
        )
    ],
    "InTopK": [
        case(
            np.array([1, 0, 5], np.int32),
            np.array([[0.1, 0.9, 0.3]] * 3, np.float32),
            np.array(2, np.int32),
            expect=np.array([True, False, False]),
        ),
        case(
            np.array([1, 0], np.int64),
            np.array([[0.1, nan, 0.3], [inf, 0.9, 0.3]], np.float32),
            np.array(2, np.int64),
            expect=np.array([False, False]),
        ),
        case(
            np.array([1], np.int32),
            np.array([[0.5, 0.5, 0.5]], np.float32),
            np.array(1, np.int32),
            expect=np.array([True]),
        ),
        bad(np.array([1, 2], np.int32), f32(1, 3), np.array(1, np.int32), says="must match length"),
    ],
    "math.in_top_k": [
        case(np.array([1], np.int32), np.array([[0.1, 0.9, 0.3]], np.float32), k=1, expect=np.array([True]))
    ],
    "is_non_decreasing": [
        case(np.float32([[1, 1], [2, 3]]), expect=np.array(True), gives="bool"),
        case(np.int32([1, 3, 2]), expect=np.array(False)),
        case(np.zeros(0, np.float32), expect=np.array(True)),
    ],
    "is_strictly_increasing": [
        case(np.int32([1, 2, 5]), expect=np.array(True), gives="bool"),
        case(np.float32([1, 1]), expect=np.array(False)),
        case(np.zeros(1, np.float32), expect=np.array(True)),
    ],
    "InvertPermutation": [
        case(np.array([2, 0, 1], np.int32), expect=np.array([1, 2, 0]), gives="int32"),
        case(np.zeros(0, np.int64), expect=np.zeros(0)),
        bad(np.array([0, 2, 3], np.int32), says="3 is not between 0 and 3"),
        bad(np.array([0, 1, 1], np.int32), says="1 is duplicated"),
        bad(np.zeros((2, 2), np.int32), says="rank"),
    ],
    "DenseBincount": [
        case(
            np.array([1, 1, 3, 9], np.int32),
            np.array(4, np.int32),
            np.zeros(0, np.int32),
            expect=np.array([0, 2, 0, 1]),
        ),
        case(
            np.array([[1, 1], [0, 3]], np.int64),
            np.array(4, np.int64),
            np.zeros(0, np.float32),
            binary_output=True,
            expect=np.array([[0, 1, 0, 0], [1, 0, 0, 1.0]]),
        ),
        case(
            np.array([1, 1, 3], np.int32), np.array(4, np.int32), np.array([0.5, 1, 2]), expect=np.array([0, 1.5, 0, 2])
        ),
        bad(np.array([-1], np.int32), np.array(4, np.int32), np.zeros(0, np.int32), says="non-negative"),
        bad(np.array([1], np.int32), np.array(-4, np.int32), np.zeros(0, np.int32), says="non-negative"),
        bad(np.array([1], np.int32), np.array(4, np.int32), np.zeros(2, np.int32), says="same shape"),
    ],
    "HistogramFixedWidth": [
        case(
            f32(40),
            np.array([-1, 1.5], np.float32),
            np.int32(7),
            static=(2,),
            expect=lambda v, r, n: np.histogram(np.clip(v, *r), int(n), r)[0],
            gives="int32",
        ),
        case(
            i32(3, 4),
            np.array([-2, 3], np.int32),
            np.int32(5),
            dtype="int64",
            gives="int64",
            expect=lambda v, r, n: np.histogram(np.clip(v, *r), int(n), r)[0],
        ),
        case(
            np.array([2**31 - 1, -(2**31), 0], np.int32),
            np.array([-(2**31), 2**31 - 1], np.int32),
            np.int32(2),
            expect=[1, 2],
        ),
        case(np.array([np.inf, -np.inf]), np.array([0.0, 1.0]), np.int32(3), expect=[1, 0, 1]),
        bad(np.array([np.nan]), np.array([0.0, 1.0]), np.int32(3), says="NaN"),
        bad(f32(2), np.array([1, 1], np.float32), np.int32(3), says="value_range"),
        bad(f32(2), np.array([0, np.inf], np.float32), np.int32(3), says="value_range"),
        bad(f32(2), f32(3), np.int32(3), says="value_range"),
        bad(f32(2), np.array([0, 1], np.float32), np.int32(0), says="positive"),
        bad(f32(2), np.array([0, 1], np.float32), np.int32(1), dtype="float32", says="int32 or int64"),
    ],
    "histogram_fixed_width": [
        case(np.array([-1.0, 0.0, 1.5, 2.0, 5.0, 15]), [0.0, 5.0], nbins=5, expect=[2, 1, 1, 0, 2], gives="int32"),
        case(np.array([1.0]), [0.0, 5.0], dtype="int64", holds=lambda out, *_: out.shape == (100,), gives="int64"),
    ],
    "math.bincount": [
        case(np.array([1, 1, 3], np.int32), expect=np.array([0, 2, 0, 1]), gives="int32"),
        case(np.array([1, 1, 3], np.int32), minlength=6, expect=np.array([0, 2, 0, 1, 0, 0])),
        case(np.array([1, 1, 3], np.int32), maxlength=2, expect=np.array([0, 2])),
        case(
            np.array([1, 1, 3], np.int32),
            np.array([0.5, 1, 2], np.float32),
            expect=np.array([0, 1.5, 0, 2]),
            grad=False,
        ),
        case(np.array([[1, 1], [0, 3]], np.int32), axis=-1, expect=np.array([[0, 2, 0, 0], [1, 0, 0, 1]])),
        case(np.array([[1, 1], [0, 3]], np.int32), expect=np.array([1, 2, 0, 1])),
        case(np.zeros(0, np.int32), expect=np.zeros(0, int)),
        bad(i32(2), np.zeros(2, np.float32), binary_output=True, says="mutually exclusive", raises=ValueError),
    ],
    "math.count_nonzero": [
        case(np.array([[0.0, nan], [1.0, 0.0]]), axis=0, expect=np.array([1, 1]), gives="int64"),
        case(np.array([b"a", b"", b""], object), expect=1),
        case(np.array([[True, False]]), axis=1, keepdims=True, dtype=np.int32, expect=np.array([[1]]), gives="int32"),
    ],
    "math.zero_fraction": [
        case(np.array([0.0, 1.0, 0.0], np.float32), expect=2 / 3, gives="float32", half=False, grad=False),
        case(np.zeros(0, np.float32), expect=nan, half=False, grad=False),
    ],
    "ConfusionMatrix": [
        case(
            np.array([1, 2, 2], np.int64),
            np.array([2, 2, 2], np.int64),
            three.astype(np.int64),
            np.array([0.5, 2, 1]),
            expect=np.array([[0, 0, 0], [0, 0, 0.5], [0, 0, 3]]),
        ),
        bad(np.array([1, 3]), np.array([0, 0]), three, np.ones(2), says="`labels` out of bound"),
        bad(np.array([1, 0]), np.array([0, -1]), three, np.ones(2), says="`predictions` contains negative"),
        bad(np.array([1, 0]), np.array([0]), three, np.ones(2), says="shape"),
    ],
    "math.confusion_matrix": [
        case(
            np.array([1, 2, 4], np.int32),
            np.array([2, 2, 4], np.int32),
            gives="int32",
            expect=np.array([[0, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]]),
        ),
        case(
            np.array([[1], [0]], np.int64),
            np.array([1, 1], np.int64),
            num_classes=2,
            weights=[0.5, 2.0],
            dtype=np.float32,
            expect=np.array([[0, 2], [0, 0.5]]),
            unknown=False,
        ),
    ],
}


def _cumulative(x, **attrs):
    from opwright.ops.math.cumulative import CumulativeLogsumexp

    return CumulativeLogsumexp(x, **attrs)
