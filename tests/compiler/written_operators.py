"""Operators in the kernel language that tests of several rooms run, each with its meaning in NumPy."""

from __future__ import annotations

import numpy as np

import opwright as ow
from opwright import language as kl


@ow.operator
class LeakyLimit:
    r"""A limit with a leak.   .. math:: y = \min(x, limit) + alpha \max(x - limit, 0)"""

    x = ow.Input(dtypes=ow.floating)
    y = ow.Output(like="x")
    alpha = ow.Attr(float, default=0.25)
    limit = ow.Attr(float, default=1.0)

    def compute(op, x):
        return np.minimum(x, op.limit) + op.alpha * np.maximum(x - op.limit, 0)

    @ow.kernel
    def kernel(x, *, alpha, limit):
        if x > limit:
            y = limit + (x - limit) * alpha
        else:
            y = x
        return y


@ow.operator
class BlendOfTwo:
    r"""The larger less half of the smaller.   .. math:: y = \max(a, b) - \min(a, b) / 2"""

    a = ow.Input(dtypes=ow.floating)
    b = ow.Input(dtypes=ow.floating, like="a")
    y = ow.Output(like="a")
    elementwise = True

    def compute(op, a, b):
        return np.maximum(a, b) - np.minimum(a, b) * a.dtype.type(0.5)

    @ow.kernel
    def kernel(a, b):
        return ow.maximum(a, b) - ow.minimum(a, b) * 0.5


@ow.operator
class DoublingsToOne:
    r"""How often x is doubled until it is 1 or more; of 0 it would never be.   .. math:: \lceil -\log_2 x \rceil"""

    x = ow.Input(dtypes=ow.floating)
    y = ow.Output(like="x")

    def compute(op, x):
        return np.maximum(np.ceil(-np.log2(x)), 0).astype(x.dtype)

    @ow.kernel
    def kernel(x):
        n = 0.0 * x
        while x < 1.0:
            x = x * 2.0
            n += 1.0
        return n


@ow.operator
class WholeSteps:
    r"""Integers in steps.   .. math:: y = 3 x - step"""

    x = ow.Input(dtypes=(ow.int32, ow.int64))
    y = ow.Output(like="x")
    step = ow.Attr(int, default=2)

    def compute(op, x):
        return 3 * x - op.step

    @ow.kernel
    def kernel(x, *, step):
        return x * 3 - step


@ow.operator
class RowNorms:
    r"""Rows over their norms, and the norms.   .. math:: y = x / n, \quad n = \sqrt{\sum x^2 + epsilon}"""

    x = ow.Input(dtypes=(ow.float32, ow.float64), rank=2)
    y = ow.Output(like="x")
    norms = ow.Output(dtype=ow.float32)
    epsilon = ow.Attr(float, default=1e-6)

    def infer(op):
        return op.x.spec, ow.TensorSpec(op.x.spec.shape[:-1], ow.float32)

    def compute(op, x):
        norms = np.sqrt((x * x).sum(-1) + x.dtype.type(op.epsilon))
        return x / norms[..., None], norms.astype(np.float32)

    @ow.kernel
    def kernel(
        x: kl.Array(kl.f32, "rows", "n"),
        y: kl.Array(kl.f32, "rows", "n"),
        norms: kl.Array(kl.f32, "rows"),
        epsilon: kl.f32,
    ):
        for r in kl.parallel(x.shape[0]):
            total = epsilon
            for i in range(x.shape[1]):
                total += x[r, i] * x[r, i]
            norms[r] = kl.sqrt(total)
            for i in range(x.shape[1]):
                y[r, i] = x[r, i] / kl.sqrt(total)


@ow.operator
class TakenAt:
    r"""Elements by their places.   .. math:: y_i = scale x_{p_i}"""

    x = ow.Input(dtypes=(ow.float32,), rank=1)
    places = ow.Input(dtypes=(ow.int32,), rank=1)
    y = ow.Output(dtype=ow.float32)
    scale = ow.Attr(int, default=1)

    def infer(op):
        return ow.TensorSpec(op.places.spec.shape, ow.float32)

    @ow.kernel
    def kernel(x: kl.Array(kl.f32, "n"), places: kl.Array(kl.i32, "m"), y: kl.Array(kl.f32, "m"), *, scale):
        for i in range(places.shape[0]):
            y[i] = x[places[i]] * float(scale)


@ow.operator
class CentredRows:
    r"""Elements of the last axis less their mean, and a flat sum of all.   .. math:: y = x - \bar x"""

    x = ow.Input(dtypes=(ow.float32,))
    y = ow.Output(like="x")
    gain = ow.Input(dtypes=(ow.float32,), rank=1)

    def compute(op, x, gain):
        return (x - x.mean(-1, keepdims=True)) * gain

    @ow.kernel
    def kernel(x: kl.Array(kl.f32, ..., "n"), gain: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, ..., "n"), *, lanes=8):
        n = x.shape[1]
        for r in kl.parallel(x.shape[0]):
            total = kl.zeros(kl.f32, lanes)
            for i in range(0, n, lanes):
                total = total + x.load(r, i, count=lanes, only=kl.minimum(n - i, lanes))
            mean = kl.reduce_add(total) / n.to(kl.f32)
            for i in range(n):
                y[r, i] = (x[r, i] - mean) * gain[i]


def meant(op, *arrays, **attrs):
    """Return the result of `compute`."""
    return op.reference(op.bind(attrs))(*arrays)
