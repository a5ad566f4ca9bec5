"""Softmax of int16 by tables: rows of all lengths in parts, on every target.

That its numbers are the official kernel's to the bit is tested in tests/lite/ops/test_compiled_rows.py.
"""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels.rows import tabled_softmax
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.domain_ops import TabledSoftmax
from opwright.core.dtypes import int16, int64
from opwright.scalar.fixed_point_layers import tables_of

RNG = np.random.default_rng(8)
SCALE = 3e-4


@pytest.mark.parametrize("shape", [(1,), (3, 7), (2, 16), (5, 37), (1, 5000)])
def test_rows_are_near_the_softmax_of_reals(shape):
    x = RNG.integers(-32768, 32767, shape, np.int16, endpoint=True)
    factor, *tables = tables_of(SCALE, 1.0)
    both = np.stack(tables)
    operand = buffer(x)
    form = TabledSoftmax(Buffer("y", int16, shape), operand, Buffer("t", int64, both.shape, both), factor)
    actual = run(form, {operand: x})
    np.testing.assert_array_equal(split(form, {operand: x}, 2), actual)
    powers = np.exp(SCALE * (x - x.max(-1, keepdims=True).astype(np.float64)))
    expected = powers / powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(actual / 2.0**15, expected, 2e-3, 1e-4)


@targets((tabled_softmax, {}))
def test_it_compiles_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
