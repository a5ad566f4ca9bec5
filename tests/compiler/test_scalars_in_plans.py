"""Operators between scalars are written as Python's: the same bits as the ufuncs they stand for."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import opwright as ow
from opwright.compiler.writer import INFIX

VALUES = {
    ow.int32: [0, 1, -1, 7, 2**31 - 1, -(2**31)],
    ow.int64: [0, 1, -1, 7, 2**63 - 1, -(2**63)],
    ow.float32: [0.0, -0.0, 1.5, -2.25, 3.4e38, 1e-45, np.inf, -np.inf, np.nan],
    ow.float64: [0.0, -0.0, 1.5, -2.25, 1.7e308, 5e-324, np.inf, -np.inf, np.nan],
    ow.bool: [False, True],
}
CASES = [(ufunc, dtype) for ufunc, (_, taken) in INFIX.items() for dtype in sorted(taken, key=str)]


@pytest.mark.parametrize(("ufunc", "dtype"), CASES, ids=lambda v: getattr(v, "__name__", None) or v.name)
def test_expressions_are_the_ufuncs_to_the_last_bit(ufunc, dtype):
    text, _ = INFIX[ufunc]
    expression = eval("lambda *v: " + text.replace("{}", "v[{}]").format(0, 1), {"true": np.True_})
    values = [np.array(v, dtype.np) for v in VALUES[dtype]]
    with np.errstate(all="ignore"):
        for x in values:
            for y in values if ufunc.nin == 2 else [x]:
                inputs = (x, y)[: ufunc.nin]
                expected = ufunc(*inputs)
                for form in (tuple, lambda g: tuple(v[()] for v in g), lambda g: (g[0], *(v[()] for v in g[1:]))):
                    actual = expression(*form(inputs))
                    assert isinstance(actual, (np.generic, np.ndarray))
                    assert actual.dtype == expected.dtype
                    assert actual.tobytes() == expected.tobytes() or (actual != actual and expected != expected)


@pytest.mark.parametrize(
    ("source", "target"),
    [(ow.int32, ow.int64), (ow.int32, ow.float32), (ow.int32, ow.float64), (ow.float32, ow.float64)],
)
def test_casts_of_scalars_are_those_of_arrays(source, target):

    @ow.function
    def cast(x):
        return ow.cast(x, target)

    for value in VALUES[source]:
        x = np.array(value, source.np)
        assert cast(ow.constant(x)).numpy().tobytes() == x.astype(target.np).tobytes()


def test_a_loop_of_scalars_calls_no_kernels():
    @ow.function(jit_compile=False)
    def power(x, n):
        i, y = ow.constant(0), ow.ones_like(x)
        while i < n:
            i, y = i + 1, y * x
        return y

    x, n = ow.constant(1.5), ow.constant(5)
    assert power(x, n).numpy() == np.float32(1.5) ** 5
    plan = power.get_concrete_function(x, n).program.plan.source
    loop = plan[plan.index("while True") :]
    assert "(" not in "".join(line.partition("#")[0] for line in loop.splitlines()[:-1])


def test_arguments_read_in_nested_branches_and_loops():
    @ow.function
    def f(n, limit, use):
        total = ow.constant(0)
        for i in ow.range(n):
            for j in ow.range(n):
                if use:
                    if i * j > limit:
                        total += limit
                else:
                    total -= n
        return total, limit, n

    for n, limit, use in ((4, 2, True), (3, 1, False), (0, 5, True)):
        total = sum((limit if i * j > limit else 0) if use else -n for i in range(n) for j in range(n))
        result = f(ow.constant(n), ow.constant(limit), ow.constant(use))
        assert [int(v) for v in result] == [total, limit, n]
        assert all(isinstance(v.numpy().dtype, np.dtype) for v in result)


def test_integers_wrap_around_in_silence(recwarn):
    @ow.function
    def f(x):
        return operator.add(x, x)

    assert int(f(ow.constant(2**31 - 1))) == -2
    assert not recwarn.list
