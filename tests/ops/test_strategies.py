"""Algorithms by shape: all give what the plain one gives, on both sides of each threshold, and where it is hard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.ops import autotuner, registry
from opwright.ops.strategies import TABLE
from opwright.ops.windows import window

registry.load_all()  # every operator puts its strategies into TABLE
RNG = np.random.default_rng(11)
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "strategies.json"
F, I = np.float32, np.int64


def floats(*shape: int, dtype: Any = F) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def segments(n: int, width: int, count: int, dtype: Any = F) -> Any:
    data = floats(n, width, dtype=dtype) if width else floats(n, dtype=dtype)
    return data, RNG.integers(-1, count, n), count


def conv(image: Any, kernel: Any, stride: int = 1, dtype: Any = F) -> Any:
    windows = [window(image[1 + i], kernel[i], stride, 1, "SAME") for i in range(2)]
    return floats(*image, dtype=dtype), floats(*kernel, dtype=dtype), windows


def columns(n: int, count: int) -> Any:
    return ([floats(n, 1) for _ in range(count)],)


def one_hot(n: int, depth: int) -> Any:
    return RNG.integers(-2, depth + 2, n), np.int32(depth), F(2.5), F(-1)


AT = {"Concat": {"axis": 1}, "Conv2D": {"strides": [1, 1, 1, 1], "padding": "SAME"}}
# operator, row, arguments, whether the heuristic takes it: at threshold - 1, threshold, threshold + 1
CASES: list[tuple[str, str, Any, bool]] = [
    *(
        ("Concat", "concat_columns", columns(n, c), took)
        for n, c, took in [
            (8191, 16, False),
            (8192, 16, False),
            (8193, 16, True),
            (8300, 15, False),
            (8300, 17, True),
            (9215, 16, True),
            (9216, 16, False),
            (9217, 16, True),
            (32767, 16, True),
            (32769, 16, False),
        ]
    ),
    *(
        ("OneHot", "one_hot", one_hot(n, d), took)
        for n, d, took in [
            (4095, 1, False),
            (4096, 1, True),
            (4097, 1, True),
            (64, 63, False),
            (64, 64, True),
            (64, 65, True),
        ]
    ),
    *(("TopK", "top_k_one", (floats(3, n), k), took) for n, k, took in [(5, 1, True), (5, 2, False), (1, 1, True)]),
    *(
        ("TopK", "top_k_part", (floats(r, n), k), took)
        for r, n, k, took in [
            (1, 8191, 2, False),
            (1, 8192, 2, True),
            (1, 8193, 2, True),
            (1024, 15, 2, False),
            (1024, 16, 2, True),
            (1024, 17, 2, True),
            (1024, 16, 3, False),
        ]
    ),
    *(
        ("UnsortedSegmentSum", "segment_sum_scalars", segments(n, 0, 5, dtype), True)
        for n in (1, 50)
        for dtype in (F, np.float64)
    ),
    *(
        ("UnsortedSegmentSum", "segment_sum_few", segments(n, w, c), took)
        for n, w, c, took in [
            (127, 8, 32, False),
            (128, 8, 32, True),
            (129, 8, 32, True),
            (200, 7, 32, False),
            (200, 9, 32, True),
            (200, 8, 33, False),
            (200, 8, 31, True),
            (16383, 8, 3, True),
            (16384, 8, 3, True),
            (16385, 8, 3, False),
        ]
    ),
    *(
        ("UnsortedSegmentSum", "segment_sum_many", segments(n, w, c), took)
        for n, w, c, took in [
            (1023, 32, 600, False),
            (1024, 32, 600, True),
            (1025, 32, 600, True),
            (1100, 31, 600, False),
            (1100, 33, 600, True),
            (1100, 32, 549, False),
            (1100, 32, 550, True),
            (1100, 32, 551, True),
        ]
    ),
    *(
        ("SegmentSum", "segment_sum_rising", (d, np.sort(np.abs(i)), c), True)
        for d, i, c in [
            segments(20, 3, 9),
            segments(20, 0, 9, np.float16),
            segments(1, 2, 1),
            segments(30, 2, 50, np.int32),
        ]
    ),
    *(
        ("MatMul", "matmul_flat", (floats(n, m, 6), floats(6, 5)), took)
        for n, m, took in [(4, 1, False), (5, 1, True), (6, 1, True), (9, 2, False)]
    ),
    *(
        ("Conv2D", "conv_point", conv(i, k, s), took)
        for i, k, s, took in [
            ((2, 5, 6, 3), (1, 1, 3, 4), 1, True),
            ((2, 5, 6, 3), (1, 1, 3, 4), 2, True),
            ((1, 5, 5, 4), (1, 1, 2, 4), 1, False),
            ((1, 5, 5, 3), (1, 2, 3, 4), 1, False),
        ]
    ),
    *(
        ("Conv2D", "conv_taps", conv((1, h, 32, c), (k, k, c, f), s), took)
        for h, c, k, f, s, took in [
            (63, 32, 3, 8, 1, False),
            (64, 32, 3, 8, 1, True),
            (65, 32, 3, 8, 1, True),
            (64, 31, 3, 8, 1, False),
            (64, 33, 2, 8, 1, True),
            (64, 32, 4, 8, 1, False),
            (64, 32, 3, 129, 1, False),
            (64, 32, 3, 8, 2, False),
        ]
    ),
]


def parts(op: str, row: str) -> Any:
    table = TABLE[op]
    return table, next(s for s in table.others if s.row == row), ow.ops.get(op).bind(AT.get(op, {}))


@pytest.mark.parametrize(("op", "row", "args", "took"), CASES, ids=[f"{c[1]}-{i}" for i, c in enumerate(CASES)])
def test_each_agrees_with_the_plain_one_on_both_sides_of_its_thresholds(
    op: Any, row: Any, args: Any, took: Any
) -> None:
    table, strategy, call = parts(op, row)
    assert bool(strategy.pays(call, *args) and strategy.fits(call, *args)) is took
    plain = table.plain(call, *args)
    np.testing.assert_array_equal(table(call, *args).shape, plain.shape)
    if not strategy.fits(call, *args):
        return
    result = strategy.run(call, *args)
    assert (result.dtype, result.shape) == (plain.dtype, plain.shape) or row.startswith("top_k")
    if strategy.tolerance == 0:
        np.testing.assert_array_equal(result, plain)
        if result.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(result), np.signbit(plain))
    assert autotuner.agree(plain, result, strategy.tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int64])
@pytest.mark.parametrize("k", [1, 2, 5, 8, 15])
def test_top_k_keeps_the_lower_index_first_and_nan_before_all(dtype: Any, k: int) -> None:
    x = RNG.integers(0, 4, (40, 16)).astype(dtype)  # ties everywhere
    if x.dtype.kind == "f":
        x[::3, 2], x[::4, 3], x[1::5, 4], x[2::7] = np.nan, np.inf, -np.inf, np.nan
    call = ow.ops.get("TopK").bind({})
    # by the rule itself: descending, NaN as inf, ties by index
    value = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x
    want = np.array([sorted(range(16), key=lambda i, row=row: (-float(row[i]), i))[:k] for row in value])
    for one in TABLE["TopK"].fitting(call, x, k):
        np.testing.assert_array_equal(one.run(call, x, k), want, err_msg=one.name)
    np.testing.assert_array_equal(ow.math.top_k(x, k).indices.numpy(), want)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_stays_in_its_segment(bad: float) -> None:
    data, ids = np.ones((200, 8), F), np.arange(200) % 10
    data[3, 2] = bad
    y = ow.math.unsorted_segment_sum(data, ids, 10).numpy()
    np.testing.assert_array_equal(y[3, 2], F(bad))
    y[3, 2] = 20
    np.testing.assert_array_equal(y, np.full((10, 8), 20))


def test_sums_of_numbers_are_as_good_as_float64s() -> None:
    data, ids = RNG.standard_normal(20000).astype(F), RNG.integers(0, 7, 20000)
    y = ow.math.unsorted_segment_sum(data, ids, 7).numpy()
    np.testing.assert_array_equal(y, np.array([data[ids == i].astype(np.float64).sum() for i in range(7)]).astype(F))


def test_empty_parts_add_nothing_to_a_concatenation() -> None:
    values = [np.zeros((0, 1), F), *columns(5, 3)[0]]
    with pytest.raises(ow.errors.InvalidArgumentError):
        ow.concat(values, 1)
    wide = [np.zeros((9000, 0), F), *columns(9000, 20)[0]]
    np.testing.assert_array_equal(ow.concat(wide, 1).numpy(), np.hstack(wide))


def test_gather_of_one_index_along_any_axis() -> None:
    x = floats(3, 4, 5)
    for axis in (-3, -2, -1, 0, 1, 2):
        np.testing.assert_array_equal(ow.gather(x, 2, axis=axis).numpy(), np.take(x, 2, axis))
        with pytest.raises(ow.errors.InvalidArgumentError):
            ow.gather(x, 7, axis=axis)


def test_explain_reports_which_algorithm_and_why() -> None:
    result = ow.ops.explain("TopK", [ow.TensorSpec([100, 5000]), np.int32(5)])
    want = "select: k is at most an eighth of the row, in at least 8192 elements (benchmark top_k_part)"
    assert result.algorithm == want
    assert "algorithm   select" in str(result)
    assert ow.ops.explain("TopK", [ow.TensorSpec([9, 9]), ow.TensorSpec([], ow.int32)]).algorithm.startswith("open")
    assert ow.ops.explain("MatMul", [ow.TensorSpec([None, 1, 4]), ow.TensorSpec([4, 4])]).algorithm.startswith("open")
    assert ow.ops.explain("Add", [ow.TensorSpec([9, 9])] * 2).algorithm is None


def test_every_row_has_its_benchmark_and_wins() -> None:
    result = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = {s.row for table in TABLE.values() for s in table.others}
    assert rows == set(result)
    for row, entry in result.items():
        inside = [c["ratio"] for c in entry["cases"] if c["inside"]]
        assert entry["kept"], row
        assert np.median(inside) >= 1.2, row
        assert min(inside) >= 1.0, row
