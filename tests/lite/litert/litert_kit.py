"""Helpers of the tests of the official run time with Opwright's operators: availability, operators, models."""

from __future__ import annotations

import contextlib
import importlib.util

import numpy as np
import pytest
from lite_kit import Build

import opwright as ow
import opwright.compiler.language as kl
from opwright.core import flags

needs_wheel = pytest.mark.skipif(
    importlib.util.find_spec("ai_edge_litert") is None, reason="the wheel ai-edge-litert is not installed"
)


@ow.operator(name="LitertScale", version=2)
class Scale:
    """y = factor x + s, s broadcast to x or x to s."""

    x, s = ow.Input(), ow.Input()
    y = ow.Output()
    factor = ow.Attr(float, default=1.0)
    cubed = ow.Attr(bool, default=False, since=2)

    def infer(op):
        x, s = op.x.spec, op.s.spec
        if not (x.shape.is_fully_defined() and s.shape.is_fully_defined()):
            return x
        return ow.TensorSpec(np.broadcast_shapes(tuple(x.shape), tuple(s.shape)), x.dtype)

    def compute(op, x, s):
        return ((x**3 if op.cubed else x) * np.asarray(op.factor, x.dtype) + s).astype(x.dtype)

    @ow.kernel
    def kernel(x, s, *, factor, cubed):
        if cubed:
            x = x * x * x
        return x * factor + s


@ow.operator(name="LitertSwap")
class Swap:
    """Two results, computed in Python: rows from last to first, and the bias less x; without a bias, x twice."""

    x = ow.Input()
    bias = ow.Input(optional=True)
    first, second = ow.Output(like="x"), ow.Output(like="x")

    def compute(op, x, bias=None):
        return x[::-1].copy(), x + x if bias is None else (bias - x).astype(x.dtype)


@ow.operator(name="LitertTotal")
class Total:
    """y = x + 2 s, of any numbers."""

    x, s = ow.Input(), ow.Input()
    y = ow.Output(like="x")

    def compute(op, x, s):
        return x + s + s

    @ow.kernel
    def kernel(x, s):
        return x + s + s


@ow.operator(name="LitertPick")
class Pick:
    """Rows of x by index, and the sum of each, by a kernel on arrays: an index outside stops it."""

    x, i = ow.Input(), ow.Input(dtypes=(ow.int32,))
    y, total = ow.Output(), ow.Output()

    def infer(op):
        x, i = op.x.spec, op.i.spec
        return ow.TensorSpec((i.shape[0], x.shape[1]), x.dtype), ow.TensorSpec(i.shape, x.dtype)

    def compute(op, x, i):
        if i.size and not (i.min() >= 0 and i.max() < len(x)):
            raise ow.errors.OutOfRangeError(f"no row {int(i.max())}")
        y = x[i]
        return y, y.sum(1)

    @ow.kernel
    def kernel(
        x: kl.Array(kl.f32, "n", "k"),
        i: kl.Array(kl.i32, "m"),
        y: kl.Array(kl.f32, "m", "k"),
        total: kl.Array(kl.f32, "m"),
    ):
        for row in kl.parallel(i.shape[0]):
            s = kl.value(0.0, kl.f32)
            for j in range(x.shape[1]):
                v = x[i[row], j]
                y[row, j] = v
                s = s + v
            total[row] = s


CUSTOMS = [Scale, Swap, Total, Pick]


@contextlib.contextmanager
def compiling(on=True):
    """Within: operators run as machine code, or none does."""
    with flags.override(compiled=on):
        yield


def scales(*options, shape=(2, 3), version=1, dtype="FLOAT32", **fields):
    """x, s -> y: a chain of Scale, each with the options given for it."""
    b = Build().tensor("x", shape, dtype, **fields).tensor("s", (3,), dtype)
    before = "x"
    for i, inputs in enumerate(options):
        name = "y" if i == len(options) - 1 else f"h{i}"
        b.tensor(name, shape, dtype, **fields).custom("LitertScale", f"{before} s", name, version, **inputs)
        before = name
    return b.done("x s", "y")


def of_scales(x, s, *options):
    """Compute `scales` in float64."""
    y = x.astype(np.float64)
    for inputs in options:
        y = (y**3 if inputs.get("cubed") else y) * inputs.get("factor", 1.0) + s
    return y


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
