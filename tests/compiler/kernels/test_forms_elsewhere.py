"""Forms on other processors: what their selectors choose there, under qemu-user and Node.js, against NumPy in
float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from foreign import RUNNERS
from foreign_plans import run_forms_on
from form_kit import running_sums as sums_along
from windows import correlated, output_size, patches

from opwright.compiler.loops.buffers import Buffer, IndexMap, Window
from opwright.compiler.loops.expressions import apply, arg, const, convert, quantize, scalar
from opwright.compiler.loops.indexing_ops import Gather
from opwright.compiler.loops.ops import (
    ArgReduce,
    Contract,
    Depthwise,
    FusedAttention,
    LoopOp,
    Map,
    MatMul,
    Move,
    Pool,
    Reduce,
    RowPass,
    TransposedContract,
)
from opwright.core.dtypes import as_dtype, float32, int8, int32

RNG = np.random.default_rng(17)
X, SUM = arg(0, float32), arg(0, int32)


class Case(NamedTuple):
    """forms; what they are given; what the last one writes; steps of an integer that it may be off."""

    forms: Sequence[LoopOp]
    given: dict[Buffer, np.ndarray]
    wanted: np.ndarray
    steps: int = 0


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def integers(*shape: int) -> np.ndarray:
    return RNG.integers(-128, 128, shape).astype(np.int8)


def buffer(name: str, x: np.ndarray, constant: bool = False) -> Buffer:
    return Buffer(name, as_dtype(x.dtype), x.shape, x if constant else None)


def out(dtype: Any, *shape: int) -> Buffer:
    return Buffer("y", dtype, shape)


def maps() -> Case:
    x, row = floats(7, 37), floats(37)
    a, b = buffer("x", x), buffer("row", row, True)
    expr = apply("mul", apply("sigmoid", apply("fma", X, arg(1, float32), scalar(0.3, float32))), X)
    wide = x.astype(np.float64)
    return Case([Map(out(float32, 7, 37), (a, b), expr)], {a: x}, wide / (1 + np.exp(-(wide * row + np.float32(0.3)))))


def quantised_sum() -> Case:
    x, y = integers(3, 77), integers(3, 77)
    a, b = buffer("x", x), buffer("z", y)
    parts = [apply("mul", convert(arg(i, int8), float32), scalar(s, float32)) for i, s in enumerate((0.37, 0.81))]
    exact = np.clip(np.rint(x * 0.37 + y * 0.81) - 5, -128, 127)
    return Case([Map(out(int8, 3, 77), (a, b), quantize(apply("add", *parts), -5, int8))], {a: x, b: y}, exact, 1)


def sums(axis: int) -> Case:
    x = floats(9, 43)
    a = buffer("x", x)
    expr = apply("mul", X, const(0.5, float32))
    expected = x.astype(np.float64).sum(axis) * 0.5
    return Case([Reduce(out(float32, *expected.shape), a, (axis,), "sum", X, expr)], {a: x}, expected)


def softmax() -> Case:
    x = floats(5, 29) * 3
    a = buffer("x", x)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return Case([RowPass(out(float32, 5, 29), a, (), "softmax", X, X)], {a: x}, e / e.sum(1, keepdims=True))


def largest() -> Case:
    x = integers(6, 31)
    a = buffer("x", x)
    return Case([ArgReduce(out(int32, 6), a, 1, "max")], {a: x}, x.argmax(1))


def running_sums() -> Case:
    x = floats(4, 11)
    a = buffer("x", x)
    return Case([sums_along(out(float32, 4, 11), a, 1)], {a: x}, x.astype(np.float64).cumsum(1))


def transposed() -> Case:
    x = floats(19, 23)
    a = buffer("x", x)
    return Case([Move(out(float32, 23, 19), (a,), (IndexMap((0, 0), (23, 19), 0, (1, 23)),))], {a: x}, x.T)


def padded_bytes() -> Case:
    x = integers(5, 9)
    a = buffer("x", x)
    move = Move(out(int8, 8, 14), (a,), (IndexMap((1, 2), (5, 9), 0, (9, 1)),), 3)
    return Case([move], {a: x}, np.pad(x, ((1, 2), (2, 3)), constant_values=3))


def picked() -> Case:
    x, i = floats(12, 6), np.array([3, 11, 0, 3], np.int32)
    a, b = buffer("x", x), buffer("i", i)
    return Case([Gather(out(float32, 4, 6), a, b, 0)], {a: x, b: i}, x[i])


def product() -> Case:
    x, y = floats(2, 9, 14), floats(2, 14, 21)
    a, b = buffer("x", x), buffer("z", y)
    return Case([MatMul(out(float32, 2, 9, 21), a, b, (), X)], {a: x, b: y}, x.astype(np.float64) @ y)


def attention() -> Case:
    q, k, v = floats(2, 5, 8), floats(2, 9, 8), floats(2, 9, 6)
    inputs = {buffer(n, x): x for n, x in (("q", q), ("k", k), ("v", v))}
    scores = np.exp(q.astype(np.float64) @ k.transpose(0, 2, 1) * 0.5)
    form = FusedAttention(out(float32, 2, 5, 6), *inputs, (), apply("mul", X, scalar(0.5, float32)))
    return Case([form], inputs, scores / scores.sum(2, keepdims=True) @ v)


WINDOWS = [Window((3, 3), (1, 1), (1, 1), (1, 1, 1, 1)), Window((3, 2), (2, 2), (1, 1), (0, 1, 1, 0))]


def pool(kind: Any, window: Window) -> Case:
    x = floats(1, 9, 10, 13)
    a = buffer("x", x)
    size = output_size(x.shape, window)
    expr = X if kind == "max" else apply("div", X, arg(1, float32))
    seen = np.stack([p for *_, p in patches(x.astype(np.float64), window, np.nan)])
    expected = np.nanmax(seen, 0) if kind == "max" else np.nanmean(seen, 0)
    return Case([Pool(out(float32, 1, *size, 13), a, kind, expr, window)], {a: x}, expected)


def depthwise(window: Window) -> Case:
    x, w, bias = floats(1, 9, 10, 21), floats(*window.size, 21), floats(21)
    a = buffer("x", x)
    expr = apply("relu", apply("add", X, arg(1, float32)))
    form = Depthwise(
        out(float32, 1, *output_size(x.shape, window), 21),
        a,
        buffer("w", w, True),
        (buffer("bias", bias, True),),
        expr,
        window,
    )
    exact = correlated(x.astype(np.float64), window, lambda pixels, i, j: pixels * w[i, j]) + bias
    return Case([form], {a: x}, np.maximum(exact, 0))


SCALED = quantize(apply("mul", convert(SUM, float32), scalar(0.004, float32)), 7, int8)


def depthwise_bytes(window: Window) -> Case:
    x, w = integers(1, 9, 10, 21), integers(*window.size, 21)
    a = buffer("x", x)
    form = Depthwise(
        out(int8, 1, *output_size(x.shape, window), 21), a, buffer("w", w, True), (), SCALED, window, input_zero=-9
    )
    exact = correlated(x.astype(np.int64) + 9, window, lambda pixels, i, j: pixels * w[i, j])
    return Case([form], {a: x}, np.clip(np.rint(exact * 0.004) + 7, -128, 127), 1)


def convolution(window: Window) -> Case:
    x, w, bias = floats(1, 9, 10, 5), floats(11, *window.size, 5), floats(11)
    a = buffer("x", x)
    form = Contract(
        out(float32, 1, *output_size(x.shape, window), 11),
        a,
        buffer("w", w, True),
        (buffer("bias", bias, True),),
        apply("add", X, arg(1, float32)),
        window,
    )
    wide = w.astype(np.float64)
    return Case([form], {a: x}, correlated(x.astype(np.float64), window, lambda p, i, j: p @ wide[:, i, j].T) + bias)


def convolution_bytes(window: Window) -> Case:
    x, w = integers(1, 9, 10, 6), integers(19, *window.size, 6)
    a = buffer("x", x)
    form = Contract(
        out(int8, 1, *output_size(x.shape, window), 19), a, buffer("w", w, True), (), SCALED, window, input_zero=-9
    )
    whole = w.astype(np.int64)
    exact = correlated(x.astype(np.int64) + 9, window, lambda p, i, j: p @ whole[:, i, j].T)
    return Case([form], {a: x}, np.clip(np.rint(exact * 0.004) + 7, -128, 127), 1)


def grouped_bytes(window: Window) -> Case:
    """Eight groups of three channels and two outputs."""
    x, w = integers(1, 9, 10, 24), integers(16, *window.size, 3)
    a = buffer("x", x)
    y = out(int8, 1, *output_size(x.shape, window), 16)
    form = Contract(y, a, buffer("w", w, True), (), SCALED, window, groups=8, input_zero=-9)
    filters = w.astype(np.int64).reshape(8, 2, *window.size, 3)

    def sums(pixels: np.ndarray, i: int, j: int) -> np.ndarray:
        by_group = pixels.reshape(*pixels.shape[:-1], 8, 3)
        return np.einsum("nhwgc,gfc->nhwgf", by_group, filters[:, :, i, j]).reshape(*pixels.shape[:-1], 16)

    exact = correlated(x.astype(np.int64) + 9, window, sums)
    return Case([form], {a: x}, np.clip(np.rint(exact * 0.004) + 7, -128, 127), 1)


def spread() -> Case:
    x, w = floats(1, 4, 5, 6), floats(7, 3, 3, 6)
    a = buffer("x", x)
    exact = np.zeros((1, 9, 11, 7))
    for i, j in np.ndindex(4, 5):
        exact[0, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += np.einsum("c,fhwc->hwf", x[0, i, j].astype(np.float64), w)
    form = TransposedContract(out(float32, 1, 9, 11, 7), a, buffer("w", w, True), (), X, Window((3, 3), (2, 2)))
    return Case([form], {a: x}, exact)


CASES: dict[str, Callable[[], Case]] = {
    "map": maps,
    "int8 sum": quantised_sum,
    "row sums": lambda: sums(1),
    "column sums": lambda: sums(0),
    "softmax": softmax,
    "argmax": largest,
    "cumsum": running_sums,
    "transpose": transposed,
    "pad": padded_bytes,
    "gather": picked,
    "matmul": product,
    "attention": attention,
    "transposed convolution": spread,
    **{
        f"{name} {i}": lambda make=make, w=w: make(w)
        for i, w in enumerate(WINDOWS)
        for name, make in {
            "max pool": lambda w: pool("max", w),
            "average pool": lambda w: pool("sum", w),
            "depthwise": depthwise,
            "int8 depthwise": depthwise_bytes,
            "convolution": convolution,
            "int8 convolution": convolution_bytes,
            "int8 convolution in groups": grouped_bytes,
        }.items()
    },
}
QUICK = {"int8 convolution 0", "depthwise 0"}


@pytest.mark.parametrize(
    "target", [pytest.param(t, marks=() if t == "aarch64-dotprod" else pytest.mark.slow) for t in sorted(RUNNERS)]
)
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in sorted(CASES)])
def test_runs_on(name: str, target: str, tmp_path: Path) -> None:
    case = CASES[name]()
    result = run_forms_on(target, tmp_path, case.forms, case.given).astype(np.float64)
    if case.wanted.dtype.kind in "iu" or case.forms[-1].output.dtype.is_integer:
        assert np.abs(result - case.wanted).max() <= case.steps
    else:
        np.testing.assert_allclose(result, case.wanted, rtol=2e-5, atol=1e-5)
