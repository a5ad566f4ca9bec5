"""Scans as kernels, against NumPy: running sums, products, logarithms of sums of exponentials, linear recurrences."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels.scans import running
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.expressions import apply, arg
from opwright.compiler.loops.ops import Scan
from opwright.compiler.lowering.scans import STEPS
from opwright.core.dtypes import float32, float64, int64

RNG = np.random.default_rng(6)
NUMPY = {"Cumsum": np.add, "Cumprod": np.multiply, "CumulativeLogsumexp": np.logaddexp}


def form_of(name, operand, axis, exclusive=False, reverse=False):
    combine, start = STEPS[name]
    step = combine(arg(0, operand.dtype), arg(1, operand.dtype))
    return Scan(Buffer("y", operand.dtype, operand.shape), (operand,), axis, step, start, exclusive, reverse)


def expected(name, x, axis, exclusive, reverse):
    turned = np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0)
    y = NUMPY[name].accumulate(turned, 0, dtype=x.dtype)
    if exclusive:
        y = np.concatenate([np.full_like(y[:1], STEPS[name][1]), y[:-1]])
    y = np.moveaxis(y, 0, axis)
    return np.flip(y, axis) if reverse else y


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((3, 50), 1), ((50, 3), 0), ((2, 9, 37), 1), ((4, 1, 5), 1)])
def test_sums(shape, axis, dtype, reverse, exclusive):
    x = RNG.normal(0, 50, shape).astype(dtype)
    operand = buffer(x)
    form = form_of("Cumsum", operand, axis, exclusive, reverse)
    reference = expected("Cumsum", x, axis, exclusive, reverse)
    np.testing.assert_array_equal(run(form, {operand: x}), reference)
    np.testing.assert_array_equal(split(form, {operand: x}, 2), reference)


@pytest.mark.parametrize("name", ["Cumprod", "CumulativeLogsumexp"])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 2e-6), (np.float64, 1e-14)])
def test_products_and_logarithms(name, dtype, rtol):
    for shape, axis, exclusive, reverse in (((3, 50), 1, False, True), ((20, 11), 0, True, False)):
        x = RNG.uniform(-1.5, 1.5, shape).astype(dtype)
        operand = buffer(x)
        form = form_of(name, operand, axis, exclusive, reverse)
        reference = expected(name, x.astype(np.float64), axis, exclusive, reverse)
        np.testing.assert_allclose(run(form, {operand: x}), reference, rtol, rtol)


def test_logarithms_of_infinities():
    x = np.array([-np.inf, -np.inf, 1.0, -np.inf, np.inf, np.inf, 2.0, np.nan, 1.0], np.float32)
    operand = buffer(x)
    with np.errstate(invalid="ignore"):
        reference = np.logaddexp.accumulate(x)
    np.testing.assert_allclose(run(form_of("CumulativeLogsumexp", operand, 0), {operand: x}), reference, 2e-7)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((9,), 0), ((5, 21), 0), ((2, 6, 4), 1)])
def test_recurrences(shape, axis, reverse):
    x, decay = RNG.normal(size=shape), RNG.uniform(0.2, 1.1, shape)
    a, b = buffer(x, "x"), buffer(decay, "decay")
    step = apply("add", arg(1, float64), apply("mul", arg(2, float64), arg(0, float64)))
    lines, factors = (np.moveaxis(np.flip(v, axis) if reverse else v, axis, 0) for v in (x, decay))
    reference = np.empty_like(lines)
    for i, line in enumerate(lines):
        reference[i] = line + (factors[i] * reference[i - 1] if i else 0)
    reference = np.moveaxis(reference, 0, axis)
    form = Scan(Buffer("y", float64, shape), (a, b), axis, step, 0, False, reverse)
    actual = run(form, {a: x, b: decay})
    np.testing.assert_allclose(actual, np.flip(reference, axis) if reverse else reference, 1e-14)


def _constants(name, dtype, **others):
    combine, start = STEPS[name]
    step = combine(arg(0, dtype), arg(1, dtype))
    return {"source": dtype, "operands": 1, "step": step, "start": start, **others}


@targets(
    (running, _constants("Cumsum", float32, lanes=16, exclusive=False, reverse=True)),
    (running, _constants("Cumprod", int64, lanes=0, exclusive=True, reverse=False)),
)
def test_scans_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
