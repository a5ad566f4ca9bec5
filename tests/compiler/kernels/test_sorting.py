"""The first places of rows in order as kernels, against stable sorting of NumPy."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from each_row import each_row
from opwright.compiler.kernels.radix_sort import sort_rows
from opwright.compiler.kernels.sorting import order_rows
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.ops import Ordered
from opwright.core.dtypes import float32, int8, int16, int32, int64, uint32
from thorough import crossed

RNG = np.random.default_rng(7)


def expected(x, k, rising, nan):
    if nan == "infinite":
        x = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x
    keys = x if rising else -x if x.dtype.kind == "f" else np.invert(x)
    return np.argsort(keys, -1, kind="stable")[..., :k].astype(np.int32)


def drawn(dtype, shape, ties):
    if np.dtype(dtype).kind == "f":
        x = RNG.normal(0, 3, shape).astype(dtype)
        special = RNG.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3e38], shape).astype(dtype)
        x = np.where(RNG.random(shape) < 0.2, special, x)
        return np.round(x) if ties else x
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = RNG.integers(low, high, shape, dtype, endpoint=True)
    extreme = RNG.choice(np.array([low, high], dtype), shape)
    return x % np.array(5, dtype) if ties else np.where(RNG.random(shape) < 0.1, extreme, x)


@pytest.mark.parametrize(
    ("dtype", "ties", "rising", "nan"),
    crossed(
        [np.float32, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64],
        [False, True],
        [False, True],
        ["last", "infinite"],
        every=4,
    ),
)
@each_row("shape, k", [((1,), 1), ((6, 37), 1), ((3, 200), 20), ((2, 65), 65), ((1000,), 7), ((2, 700), 600)])
def test_places_are_those_of_a_stable_sort(shape, k, dtype, ties, rising, nan):
    x = drawn(dtype, shape, ties)
    operand = buffer(x)
    form = Ordered(Buffer("y", int32, (*shape[:-1], k)), operand, rising, nan)
    reference = expected(x, k, rising, nan)
    np.testing.assert_array_equal(run(form, {operand: x}), reference)
    np.testing.assert_array_equal(split(form, {operand: x}, 2), reference)


@targets(
    (order_rows, {"source": float32, "places": int32, "rising": False, "nan": "last"}),
    (order_rows, {"source": int8, "places": int16, "rising": False, "nan": "last"}),
    (order_rows, {"source": uint32, "places": int64, "rising": True, "nan": "last"}),
    (order_rows, {"source": int64, "places": int32, "rising": True, "nan": "infinite"}),
    (sort_rows, {"source": float32, "places": int32, "rising": True, "nan": "last"}),
)
def test_they_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
