"""Products of matrices of float32 against float64: batches, broadcasting, transposes, any split."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels import NoKernel, gemm_deep_f32
from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.gemv_f32 import gevm
from opwright.compiler.kernels.matmul import product_batches
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.expressions import apply, arg, scalar
from opwright.compiler.loops.ops import MatMul
from opwright.core.dtypes import float16, float32
from thorough import crossed

SUM = arg(0, float32)

CASES = [
    # a's shape, b's shape as a product takes them
    ((1, 1), (1, 1)),
    ((3, 5), (5, 7)),
    ((49, 33), (33, 40)),
    ((130, 64), (64, 130)),
    ((2, 3, 17, 31), (2, 3, 31, 33)),
    ((12, 20, 8), (12, 8, 16)),
    ((4, 15, 6), (6, 50)),
    ((15, 6), (3, 6, 50)),
    ((2, 1, 9, 6), (1, 3, 6, 20)),
    ((2, 3, 9, 6), (3, 6, 20)),
    ((2, 1, 4, 9, 6), (5, 1, 6, 20)),
    ((5, 1, 6), (5, 6, 70)),
    ((3, 2, 1, 40), (3, 2, 40, 100)),
    ((3, 4, 33), (33, 17)),
    # in blocks of steps: rows at a pitch of which a first-level cache has all in the same sets, and long columns
    ((105, 1024), (1024, 62)),
    ((2, 105, 300), (2, 300, 32)),
    ((60, 300), (300, 317)),
    # several products, of which one with transposed rows reads them in place
    ((3, 70, 40), (3, 40, 64)),
    ((2, 3, 100, 33), (33, 48)),
]


def of(a, b, *, transpose_a=False, transpose_b=False, constant=False, dtype=float32, expr=SUM, operands=()):
    """The form, what it is given, and its product in float64."""
    rng = np.random.default_rng(5)
    xs = rng.standard_normal(a).astype(np.float32)
    ys = rng.standard_normal(b).astype(dtype.np)
    expected = xs.astype(np.float64) @ ys.astype(np.float64)
    xs = np.ascontiguousarray(xs.swapaxes(-1, -2)) if transpose_a else xs
    ys = np.ascontiguousarray(ys.swapaxes(-1, -2)) if transpose_b else ys
    left, right = buffer(xs, "a"), Buffer("b", dtype, ys.shape, ys if constant else None)
    form = MatMul(Buffer("y", float32, expected.shape), left, right, operands, expr, transpose_a, transpose_b)
    return form, {left: xs} | ({} if constant else {right: ys}), expected


@pytest.mark.parametrize(
    ("shapes", "order", "constant"), crossed(CASES, ["ab", "Ab", "aB", "AB"], [False, True], every=4), ids=str
)
def test_products(shapes, order, constant):
    """order: capital letters are transposed."""
    (a, b), transpose_a, transpose_b = shapes, "A" in order, "B" in order
    form, inputs, expected = of(a, b, transpose_a=transpose_a, transpose_b=transpose_b, constant=constant)
    actual = run(form, inputs)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * a[-1] ** 0.5)
    assert np.array_equal(split(form, inputs, 3), actual)


def test_epilogues():
    bias = np.random.default_rng(2).standard_normal(20).astype(np.float32)
    _check_epilogue((2, 9, 30), (2, 30, 20), bias)
    _check_epilogue((2, 9, 30), (30, 20), bias)
    _check_epilogue((2, 51, 1024), (1024, 32), np.arange(32, dtype=np.float32))
    for rows in (2, 9, 51):  # few rows read b unpacked
        _check_epilogue((1, rows, 1024), (1024, 20), bias, is_computed=True)
        _check_epilogue((1, rows, 1024), (1024, 48), np.arange(48, dtype=np.float32), is_computed=True)


def _check_epilogue(a, b, bias, is_computed=False):
    rest = np.random.default_rng(3).standard_normal((*a[:-1], bias.size)).astype(np.float32)
    operands = Buffer("bias", float32, bias.shape, None if is_computed else bias), buffer(rest, "rest")
    expr = apply("add", apply("mul", apply("add", SUM, arg(1, float32)), scalar(0.5, float32)), arg(2, float32))
    form, inputs, expected = of(a, b, expr=expr, operands=operands)
    actual = run(form, inputs | {operands[1]: rest} | ({operands[0]: bias} if is_computed else {}))
    np.testing.assert_allclose(actual, (expected + bias) * 0.5 + rest, rtol=1e-5, atol=1e-4)


def test_blocks_of_steps_change_no_bit(monkeypatch):
    form, inputs, _ = of((105, 1024), (1024, 32))
    blocked = run(form, inputs)
    monkeypatch.setattr(gemm_deep_f32, "CONFLICTING", 1 << 20)
    assert np.array_equal(run(form, inputs), blocked)
    form, inputs, _ = of((105, 600), (600, 61), transpose_a=True)
    packed_in_blocks = run(form, inputs)
    monkeypatch.setattr(gemm_deep_f32, "PACKINGS", 0)
    assert np.array_equal(run(form, inputs), packed_in_blocks)
    form, inputs, _ = of((3, 70, 40), (3, 40, 64), transpose_a=True)
    read_in_place = run(form, inputs)
    monkeypatch.setattr(gemm_deep_f32, "SHORT_DEPTH", 1 << 20)
    assert np.array_equal(run(form, inputs), read_in_place)


def test_narrow_constants():
    form, inputs, expected = of((9, 30), (30, 20), dtype=float16, constant=True)
    np.testing.assert_allclose(run(form, inputs), expected, rtol=1e-5, atol=1e-4)


def test_batches_that_no_step_does():
    form, inputs, _ = of((100, 1, 2, 2), (1, 3, 2, 2))
    with pytest.raises(NoKernel, match="batches"):
        run(form, inputs)


def test_batches():
    one = [tuple(b) for b in product_batches((2, 3), (2, 3), (3,))]
    assert one == [(3, 0, 0, True, True, 0), (3, 3, 0, True, True, 3)]
    assert [tuple(b) for b in product_batches((), (), ())] == [(1, 0, 0, False, False, 0)]


@targets((gevm, {"more": 0, "rows": 2, "dtype": float16, "epilogue": Epilogue(SUM, (), ())}))
def test_targets(family, constants, names):
    compiles_for(names, family, **constants)
