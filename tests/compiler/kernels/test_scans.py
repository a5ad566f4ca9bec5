"""Running sums as kernels, against NumPy."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels.sorting import running_sums
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.ops import Scan
from opwright.core.dtypes import float32, int64

RNG = np.random.default_rng(6)


def expected(x, axis, exclusive, reverse):
    turned = np.flip(x, axis) if reverse else x
    y = turned.cumsum(axis, dtype=x.dtype)
    y = y - turned if exclusive and x.dtype.kind != "f" else y
    if exclusive and x.dtype.kind == "f":
        y = np.roll(y, 1, axis)
        np.moveaxis(y, axis, 0)[:1] = 0
    return np.flip(y, axis) if reverse else y


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((3, 50), 1), ((50, 3), 0), ((2, 9, 37), 1), ((4, 1, 5), 1)])
def test_scans(shape, axis, dtype, reverse, exclusive):
    x = RNG.normal(0, 50, shape).astype(dtype)
    operand = buffer(x)
    form = Scan(Buffer("y", operand.dtype, shape), operand, axis, exclusive, reverse)
    reference = expected(x, axis, exclusive, reverse)
    np.testing.assert_array_equal(run(form, {operand: x}), reference)
    np.testing.assert_array_equal(split(form, {operand: x}, 2), reference)


@targets(
    (running_sums, {"source": float32, "lanes": 16, "exclusive": False, "reverse": True}),
    (running_sums, {"source": int64, "lanes": 0, "exclusive": True, "reverse": False}),
)
def test_scans_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
