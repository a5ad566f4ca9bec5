"""Expressions as data: equality, sizes, rewriting that keeps what is shared; chains that would double without end."""

from __future__ import annotations

import pickle

import numpy as np

from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.expressions import (
    Expr,
    apply,
    arg,
    const,
    evaluate_arrays,
    ordered,
    parametrised,
    scalar,
    simplified,
    substitute,
)
from opwright.compiler.loops.fusion import fused
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.map_fusion import MAX_SIZE
from opwright.compiler.loops.ops import Map
from opwright.core.dtypes import float16, float32, int32


def test_equal_where_the_text_is_equal() -> None:
    x = arg(0, float32)
    assert apply("add", x, const(1.0, float32)) == apply("add", arg(0, float32), const(1.0, float32))
    different = [const(0.0, float32), const(-0.0, float32), const(0, int32), scalar(0.0, float32), x, arg(0, int32)]
    assert len(set(different)) == len(different)
    assert const(float("nan"), float32) == const(float("nan"), float32)
    assert pickle.loads(pickle.dumps(apply("neg", x))) == apply("neg", x)


def test_x_sigmoid_x_is_silu_where_it_is_the_same_x_of_float32() -> None:
    x, y = (apply("add", arg(0, float32), arg(i, float32)) for i in (1, 2))
    gate = apply("sigmoid", apply("add", arg(0, float32), arg(1, float32)))
    assert simplified(apply("mul", x, gate)) == simplified(apply("mul", gate, x)) == apply("silu", x)
    half = arg(0, float16)
    for other in (apply("mul", y, gate), apply("mul", half, apply("sigmoid", half)), apply("add", x, gate)):
        assert simplified(other) == other


def test_tanh_of_softplus_is_one_exponential() -> None:
    x = arg(0, float32)
    for one in (scalar(1.0, float32), const(1.0, float32)):
        for terms in ((apply("exp", x), one), (one, apply("exp", x))):
            expr = simplified(apply("tanh", apply("log", apply("add", *terms))))
            assert "tanh" not in repr(expr)
            values = np.float32([-np.inf, -104, -88, -17, -1e-3, 0, 1e-3, 1, 9, 19.9, 20.1, 44.5, 90, np.inf, np.nan])
            values = np.concatenate([values, np.linspace(-30, 30, 1001, dtype=np.float32)])
            got = evaluate_arrays(expr, [values]).astype(np.float64)
            with np.errstate(invalid="ignore"):
                expected = np.tanh(np.logaddexp(0, values.astype(np.float64)))
            np.testing.assert_allclose(got, expected, rtol=5e-7, atol=1e-44)  # a denormal
    for other in (scalar(2.0, float32), arg(1, float32)):
        unchanged = apply("tanh", apply("log", apply("add", apply("exp", x), other)))
        assert simplified(unchanged) == unchanged


def test_what_is_shared_stays_shared() -> None:
    s = scalar(2.0, float32)
    y = apply("mul", arg(0, float32), s)
    twice = apply("add", y, y)
    skeleton, numbers = parametrised(twice)
    assert numbers == ((2.0, float32),)
    assert skeleton.args[0] is skeleton.args[1]
    moved = substitute(twice, {0: arg(3, float32)})
    assert moved.args[0] is moved.args[1]
    assert twice.size == 7
    assert parametrised(apply("add", scalar(2.0, float32), scalar(2.0, float32)))[1] == ((2.0, float32),) * 2


def test_operands_of_sums_and_products_have_one_order() -> None:
    total, rest, bias = (arg(i, float32) for i in (0, 2, 1))
    biased = apply("add", total, bias)
    code = parametrised(apply("relu", apply("add", biased, rest)))[0]
    assert repr(code) == "relu(add(add(arg0:f32, arg1:f32), arg2:f32))"
    assert parametrised(apply("relu", apply("add", rest, apply("add", bias, total))))[0] == code
    gate = apply("sigmoid", total)
    assert ordered(apply("mul", gate, total)) == ordered(apply("mul", total, gate))
    scaled = apply("add", scalar(2.0, float32), apply("mul", scalar(3.0, float32), total))
    skeleton, numbers = parametrised(scaled)
    assert repr(skeleton) == "add(mul(arg0:f32, param0:f32), param1:f32)"
    assert numbers == ((3.0, float32), (2.0, float32))
    less = apply("sub", rest, total)
    assert ordered(less) is less


def test_chains_that_read_twice_are_cut() -> None:
    n = 40
    buffers = [Buffer(f"x{i}", float32, (8,)) for i in range(n + 1)]
    x = arg(0, float32)
    step = apply("mul", x, apply("sub", scalar(1.9, float32), x))
    forms = tuple(Map(buffers[i + 1], (buffers[i],), step) for i in range(n))
    after, _ = fused(LoopGraph("logistic", (buffers[0],), (buffers[n],), forms))
    assert 1 < len(after.ops) < n
    held: dict[Buffer, np.ndarray] = {buffers[0]: np.linspace(0.1, 0.9, 8).astype(np.float32)}
    expected = held[buffers[0]].astype(np.float64)
    for _ in range(n):
        expected = expected * (1.9 - expected)
    for form in after.ops:
        assert isinstance(form, Map)
        assert isinstance(form.expr, Expr)
        assert form.expr.size <= MAX_SIZE
        held[form.output] = evaluate_arrays(form.expr, [held[b] for b in form.operands])
    np.testing.assert_allclose(held[buffers[n]], expected, rtol=1e-4)
