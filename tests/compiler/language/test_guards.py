"""Guards against every integer: each form of access, each dtype of its index, the ends of the integers, next to pages
that nobody may touch. Ranges at the ends of the integers; numbers that a parameter cannot hold.

What is expected is Python's own: `0 <= i <= n - width`, `range`, the limits of NumPy's dtypes.
"""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np
import pytest
from foreign import HERE

import opwright as ow
from opwright import language as kl
from opwright.compiler.language import trace
from thorough import sampled

INDICES = {
    "i8": kl.i8,
    "u8": kl.u8,
    "i16": kl.i16,
    "u16": kl.u16,
    "i32": kl.i32,
    "u32": kl.u32,
    "i64": kl.i64,
    "u64": kl.u64,
}
N, WIDTH = 24, 8
PAGE = mmap.PAGESIZE
EDGES = (
    0,
    1,
    -1,
    N - 1,
    N,
    N + 1,
    N - WIDTH,
    N - WIDTH + 1,
    -WIDTH,
    1 - N,
    127,
    -128,
    255,
    2**15 - 1,
    -(2**15),
    2**31 - 1,
    2**31,
    -(2**31),
    2**32 - 1,
    2**32,
    2**61,
    2**62,
    2**63 - WIDTH,
    2**63 - 1,
    2**63,
    2**63 + 2**40,
    2**64 - WIDTH,
    2**64 - 1,
    -(2**63),
    1 - 2**63,
)


def between_pages(at_end: bool, dtype=np.float32) -> np.ndarray:
    """Return N numbers next to a guard page, at its begin or end."""
    memory = mmap.mmap(-1, 3 * PAGE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for place in (base, base + 2 * PAGE):
        assert protect(ctypes.c_void_p(place), ctypes.c_size_t(PAGE), 0) == 0
    n = N * np.dtype(dtype).itemsize
    whole = np.frombuffer(memory, np.uint8)
    result = whole[PAGE : PAGE + n] if not at_end else whole[2 * PAGE - n : 2 * PAGE]
    result = result.view(dtype)
    result[:] = np.arange(N)
    return result


def kernels(i: ow.DType) -> dict[str, tuple[ow.Kernel, int]]:
    """The forms of access by an index of this dtype, and how many elements each touches."""

    @ow.kernel
    def read(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, 1), at: i):
        y[0] = x[at]

    @ow.kernel
    def write(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, 1), at: i):
        x[at] = -1.0

    @ow.kernel
    def load(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, 1), at: i):
        y[0] = kl.reduce_add(x.load(at, count=8))

    @ow.kernel
    def store(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, 1), at: i):
        x.store(kl.full(kl.f32, 8, -1.0), at)

    @ow.kernel
    def load_some(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, 1), at: i):
        y[0] = kl.reduce_add(x.load(at, count=16, only=8))

    @ow.kernel
    def store_some(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, 1), at: i):
        x.store(kl.full(kl.f32, 16, -1.0), at, only=y[0].to(kl.i32))

    @ow.kernel
    def gather(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, 1), at: i):
        y[0] = kl.reduce_add(x.gather(kl.insert(kl.zeros(i, 8), 3, at)))

    @ow.kernel
    def in_a_loop(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, 1), at: i):
        for _ in range(x.shape[0]):
            x[at] = x[at] + 1.0

    @ow.kernel
    def stack(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, 1), at: i):
        m = kl.stack(kl.f32, 24)
        for k in kl.loop(24):
            m[k] = x[k]
        y[0] = m[at]

    @ow.kernel
    def stack_vector(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, 1), at: i):
        m = kl.stack(kl.f32, 24)
        for k in kl.loop(24):
            m[k] = x[k]
        (m + at).store(kl.full(kl.f32, 8, -1.0))
        x.store(m.load(0, 8), 0)

    return {
        "read": (read, 1),
        "write": (write, 1),
        "load": (load, WIDTH),
        "store": (store, WIDTH),
        "load_some": (load_some, WIDTH),
        "store_some": (store_some, WIDTH),
        "gather": (gather, 1),
        "in_a_loop": (in_a_loop, 1),
        "stack": (stack, 1),
        "stack_vector": (stack_vector, WIDTH),
    }


def rows(i: ow.DType) -> dict[str, ow.Kernel]:
    """The same in arrays of two axes, whose rows have an index each."""

    @ow.kernel
    def element(x: kl.Array(kl.f32, "m", "n"), row: i, at: i):
        x[row, at] = -1.0

    @ow.kernel
    def part(x: kl.Array(kl.f32, "m", "n"), row: i, at: i):
        x[row][at] = -1.0

    @ow.kernel
    def some(x: kl.Array(kl.f32, "m", "n"), row: i, at: i):
        x.store(kl.full(kl.f32, 8, -1.0), row, at, only=1)

    return {"element": element, "part": part, "some": some}


def edges(dtype: ow.DType) -> list[int]:
    return [e for e in EDGES if int(dtype.min) <= e <= int(dtype.max)]


def fails(kernel: ow.Kernel, *arguments: object) -> bool:
    try:
        kernel(*arguments)
    except ow.errors.OutOfRangeError as error:
        return "test_guards.py:" in str(error)
    return False


@pytest.mark.skipif(os.name != "posix", reason="pages are protected by mprotect")
@pytest.mark.parametrize(
    ("index", "code"),
    [
        pytest.param(
            index,
            code,
            id=f"{index}-{code}",
            marks=pytest.mark.slow if code != "host" and index not in ("i8", "u32", "i64", "u64") else (),
        )
        for index in INDICES
        for code in HERE
    ],
)
def test_each_access_with_each_index(index: str, code: str) -> None:
    with ow.flags(target=code):
        table = kernels(INDICES[index])
        for at_end in (False, True):
            x, y = between_pages(at_end), np.full(1, WIDTH, np.float32)
            for name, (kernel, width) in table.items():
                for at in edges(INDICES[index]):
                    y[0] = WIDTH
                    x[:] = np.arange(N)
                    expected = not 0 <= at <= N - width
                    assert fails(kernel, x, y, at) == expected, (name, at)
                    if expected:
                        assert y[0] == WIDTH, (name, at)
                        np.testing.assert_array_equal(x, np.arange(N), err_msg=f"{name} {at}")


@pytest.mark.parametrize("index", ["i8", "u8", "i64", "u64"])
def test_each_axis_has_its_own_guard(index: str) -> None:
    x = between_pages(True).reshape(4, 6)
    for name, kernel in rows(INDICES[index]).items():
        for row in edges(INDICES[index]):
            for at in (0, 5, 6, 7, *edges(INDICES[index])[-2:]):
                assert fails(kernel, x, row, at) == (not (0 <= row < 4 and 0 <= at < 6)), (name, row, at)


@ow.kernel
def some_lanes(x: kl.Array(kl.f32, "n"), at: kl.i64, only: kl.u64):
    x.store(kl.full(kl.f32, 8, -1.0), at, only=only)


@pytest.mark.parametrize("only", [0, 1, 7, 8, 9, 2**31, 2**32 + 1, 2**63, 2**64 - 1])
def test_how_many_lanes(only: int) -> None:
    x = between_pages(True)
    for at in edges(kl.i64):
        x[:] = 1
        outside = not (0 <= at <= N - only and only <= 8)
        assert fails(some_lanes, x, at, only) == outside, at
        assert (x == -1).sum() == (0 if outside else only)


@ow.kernel
def one_lane(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, 1), at: kl.u64):
    y[0] = x.load(0, count=8)[at]


@pytest.mark.parametrize("at", [0, 7, 8, 2**32, 2**63, 2**64 - 1])
def test_a_lane_of_a_vector(at: int) -> None:
    assert fails(one_lane, between_pages(True), np.zeros(1, np.float32), at) == (at > 7)


# ---- ranges ---------------------------------------------------------------------------------------------------------


def counting(i: ow.DType) -> tuple[ow.Kernel, ow.Kernel]:
    """A kernel whose step is known as it runs, and one whose step is known before."""

    @ow.kernel
    def late(turns: kl.Array(kl.i64, 1), last: kl.Array(i, 1), start: i, stop: i, step: i):
        n = 0
        for k in range(start, stop, step):
            n += 1
            last[0] = k
        turns[0] = n

    @ow.kernel
    def early(turns: kl.Array(kl.i64, 1), last: kl.Array(i, 1), start: i, stop: i, *, step):
        n = 0
        for k in range(start, stop, step):
            n += 1
            last[0] = k
        turns[0] = n

    return late, early


def ranges(least: int, most: int) -> list[tuple[int, int, int]]:
    low, high = max(least, -7), min(most, 11)
    return [
        (0, 5, 1),
        (0, 5, 2),
        (5, 0, -2),
        (0, 5, -1),
        (5, 0, 1),
        (low, high, 3),
        (high, low, -4),
        (0, 0, 1),
        (most - 3, most, 5),
        (most - 3, most, 2),
        (most - 4, most, 1),
        (most, most - 9, -4),
        (most, least, least or -most),
        (least, least + 5, 3),
        (least + 7, least, -5),
        (least + 2, least, -1),
        (0, most, most),
        (least, most, most),
        (least, most, most - 1),
    ]


@pytest.mark.parametrize("index", sampled(INDICES, 4))
def test_ranges_count_as_pythons(index: str) -> None:
    dtype = INDICES[index]
    least, most = int(dtype.min), int(dtype.max)
    late, early = counting(dtype)
    for start, stop, step in ranges(least, most):
        expected = range(start, stop, step)
        for kernel, word, constant in ((late, (step,), {}), (early, (), {"step": step})):
            if word and not least <= step <= most:
                continue  # a parameter of unsigned integers cannot be negative
            turns, last = np.zeros(1, np.int64), np.zeros(1, dtype.np)
            kernel(turns, last, start, stop, *word, **constant)
            assert turns[0] == len(expected), (start, stop, step)
            assert not len(expected) or last[0] == expected[-1], (start, stop, step)


@pytest.mark.parametrize("checked", [True, False])
def test_a_step_of_nothing_is_an_error_with_its_line(checked: bool) -> None:
    @ow.kernel(checked=checked)
    def steps(x: kl.Array(kl.i32, 1), step: kl.i64):
        for _ in range(0, 5, step):
            x[0] += 1

    x = np.zeros(1, np.int32)
    with pytest.raises(ValueError, match=r"test_guards.py:\d+: range\(\) arg 3 must not be zero"):
        steps(x, 0)
    assert x[0] == 0


@pytest.mark.parametrize(
    ("bounds", "error"), [((0, 5, 0), ValueError), ((0, 2.5), TypeError), ((True, 3, 1.0), TypeError)]
)
def test_loops_of_no_range(bounds: tuple, error: type[Exception]) -> None:
    @ow.kernel
    def never(x: kl.Array(kl.i32, 1)):
        for _ in kl.loop(*bounds):
            x[0] = 1

    with pytest.raises(error):
        never(np.zeros(1, np.int32))


def test_a_range_with_a_break_at_the_end_of_the_integers() -> None:
    @ow.kernel
    def search(x: kl.Array(kl.i64, 1), start: kl.i64, stop: kl.i64):
        for k in range(start, stop, 5):
            x[0] = k
            if k % 2 == 0:
                break

    x = np.zeros(1, np.int64)
    most = 2**63 - 1
    search(x, most - 12, most)
    assert x[0] == next(k for k in range(most - 12, most, 5) if k % 2 == 0)


# ---- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", INDICES)
def test_numbers_that_a_parameter_cannot_hold(index: str) -> None:
    dtype = INDICES[index]

    @ow.kernel
    def keep(x: kl.Array(dtype, 1), number: dtype):
        x[0] = number

    x = np.zeros(1, dtype.np)
    least, most = int(dtype.min), int(dtype.max)
    for number in (least, most, 0, 1, np.int8(3), np.uint64(7), True, 2.0):
        keep(x, number)
        assert x[0] == number
    for number in (least - 1, most + 1, 2**40 if most < 2**40 else 2**70, 1.9, float("nan"), float("inf"), -1e300):
        with pytest.raises(ow.errors.InvalidArgumentError, match=rf"keep: argument number[\s\S]*{dtype.name}"):
            keep(x, number)


def test_floats_beyond_float32_are_infinite_as_in_numpy() -> None:
    @ow.kernel
    def keep(x: kl.Array(kl.f32, 1), number: kl.f32):
        x[0] = number

    x = np.zeros(1, np.float32)
    for number in (1e300, -1e300, 3.5e38, 1e-60, float("nan")):
        keep(x, number)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(x[0], np.float32(number))


def test_what_is_unrolled_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MAX_VALUES", 2000)

    @ow.kernel
    def copies(x: kl.Array(kl.f32, 1)):
        for _ in range(10**9):
            x[0] = x[0] + 1.0

    with pytest.raises(ow.errors.InvalidArgumentError, match="unrolls too much"):
        copies(np.zeros(1, np.float32))
