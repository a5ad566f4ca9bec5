"""Attention found in graphs: which are fused, and that the numbers stay."""

import numpy as np
import pytest

from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.expressions import apply, arg, scalar
from opwright.compiler.loops.fusion import fused
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import FusedAttention, Map, MatMul, RowPass
from opwright.compiler.loops.planner import plan_of
from opwright.core.dtypes import float32

RNG = np.random.default_rng(13)
X = arg(0, float32)
SCALED = apply("mul", X, scalar(0.25, float32))


def buffer(name, *shape):
    return Buffer(name, float32, shape)


def graph(mask=None, rows=20, also=False, turned=True):
    """q k^T (scaled), perhaps plus a mask, softmax, times v."""
    q, k, v = buffer("q", 3, rows, 8), buffer("k", 3, *((30, 8) if turned else (8, 30))), buffer("v", 3, 30, 9)
    s, p, y = buffer("s", 3, rows, 30), buffer("p", 3, rows, 30), buffer("y", 3, rows, 9)
    forms = [MatMul(s, q, k, (), SCALED, transpose_b=turned)]
    inputs = [q, k, v]
    last = s
    if mask is not None:
        extra, last = buffer("mask", *mask), buffer("masked", 3, rows, 30)
        forms.append(Map(last, (s, extra), apply("add", X, arg(1, float32))))
        inputs.append(extra)
    forms += [RowPass(p, last, (), "softmax", apply("mul", X, scalar(1.5, float32)), X), MatMul(y, p, v, (), X)]
    return LoopGraph("test", tuple(inputs), (y, p) if also else (y,), tuple(forms))


def result(g):
    plan = plan_of(*fused(g))
    plan.pack()
    running = plan.bind()
    rng = np.random.default_rng(1)
    arrays = {b: rng.normal(size=b.shape).astype(np.float32) for b in g.inputs}
    outs = {b: np.zeros(b.shape, np.float32) for b in g.outputs}
    running.connect({b: a.ctypes.data for b, a in {**arrays, **outs}.items()})
    running.run()
    return outs[g.outputs[0]], [arrays[b].astype(np.float64) for b in g.inputs]


def expected(arrays, turned=True):
    q, k, v, *mask = arrays
    s = q @ (k.swapaxes(1, 2) if turned else k) * 0.25
    s = (s + mask[0] if mask else s) * 1.5
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("mask", [None, (3, 20, 30), (1, 1, 30), (20, 30), (3, 20, 1)])
def test_attention_is_found(mask, turned):
    g = graph(mask, turned=turned)
    (form,) = fused(g)[0].ops
    assert isinstance(form, FusedAttention)
    actual, arrays = result(g)  # of the last mask no kernel makes it: the parts run
    np.testing.assert_allclose(actual, expected(arrays, turned), rtol=1e-5, atol=1e-6)


def test_what_others_read_is_not_fused():
    assert not any(isinstance(f, FusedAttention) for f in fused(graph(also=True))[0].ops)


def test_few_rows_run_in_parts():
    g = graph(rows=2)
    assert isinstance(fused(g)[0].ops[0], FusedAttention)
    actual, arrays = result(g)
    np.testing.assert_allclose(actual, expected(arrays), rtol=1e-5, atol=1e-6)
