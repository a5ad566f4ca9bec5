"""Updates added at coordinates, against NumPy."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, targets

from opwright.compiler.kernels.scatter import scatter
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.indexing_ops import ScatterAt
from opwright.compiler.native.executor import StepFailed
from opwright.core import dtypes

RNG = np.random.default_rng(14)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int32, np.int64, np.bool_])
@pytest.mark.parametrize(
    ("shape", "count", "depth"),
    [((7,), (20,), 1), ((5, 40), (9,), 1), ((5, 4), (3, 2), 2), ((3, 4, 100), (30,), 2), ((6,), (), 1)],
)
def test_scatters(shape, count, depth, dtype):
    indices = np.stack([RNG.integers(0, n, count) for n in shape[:depth]], -1).astype(np.int32)
    updates = np.asarray(RNG.integers(-5 if dtype is not np.uint8 else 0, 5, (*count, *shape[depth:]))).astype(dtype)
    a, b = buffer(updates, "updates"), buffer(indices, "indices")
    form = ScatterAt(Buffer("y", dtypes.as_dtype(updates.dtype), shape), a, b)
    expected = np.zeros(shape, dtype)
    add = np.logical_or if dtype is np.bool_ else np.add
    add.at(expected, tuple(indices[..., k] for k in range(depth)), updates)
    np.testing.assert_array_equal(run(form, {a: updates, b: indices}), expected)
    for wrong in (-1, shape[depth - 1]):
        outside = indices.copy()
        outside[..., -1] = wrong
        with pytest.raises(StepFailed):
            run(form, {a: updates, b: outside})


@targets(
    (scatter, {"source": dtypes.float32, "places": dtypes.int32, "depth": 2, "kind": "sum"}),
    (scatter, {"source": dtypes.bool, "places": dtypes.int64, "depth": 1, "kind": "min"}),
)
def test_scatters_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
