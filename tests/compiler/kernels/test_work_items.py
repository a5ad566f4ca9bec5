"""How steps are cut for two threads: parts of the same size, and none of what is over before another thread knows."""

import numpy as np
import pytest

from opwright.compiler.kernels.maps import BLOCK, balanced_block
from opwright.compiler.kernels.tiling import SERIAL_BYTES, WorkBlocks, evened, grain
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.expressions import apply, arg
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import Contract, Map
from opwright.compiler.loops.planner import plan_of
from opwright.core.dtypes import float32, int8, int32

RNG = np.random.default_rng(4)


def steps(form, *inputs):
    return plan_of(LoopGraph("g", inputs, (form.output,), (form,))).steps


def connected(x, features):
    """A fully connected layer of one row, or of an image's pixels."""
    kind = float32 if x.dtype is float32 else int32
    w = RNG.normal(size=(features, 1, 1, x.shape[3])).astype(x.dtype.np)
    out = Buffer("y", kind, (*x.shape[:3], features))
    return steps(Contract(out, x, Buffer("w", x.dtype, w.shape, w), (), arg(0, kind), Window((1, 1))), x)


@pytest.mark.parametrize(
    ("n", "most", "nbytes", "unit"),
    [(150528, 8192, 8, 64), (57600, 8192, 8, 64), (196, 17, 3840, 1), (28224, 32768, 2, 64), (49, 56, 4608, 1)],
)
def test_items_are_even_in_number(n, most, nbytes, unit):
    each = balanced_block(n, most, nbytes, unit)
    assert each <= most
    assert each % unit == 0
    assert -(-n // each) % 2 == 0


@pytest.mark.parametrize(("n", "most", "nbytes"), [(4096, 8192, 8), (10 * 8192, 8192, 8), (99 * 8192, 8192, 8)])
def test_what_is_little_even_or_in_many_parts_is_left(n, most, nbytes):
    assert balanced_block(n, most, nbytes, 64) == most


def test_maps():
    for shape in ((1, 224, 224, 3), (1, 7, 7, 576)):
        x, y = Buffer("x", float32, shape), Buffer("y", float32, shape)
        (step,) = steps(Map(y, (x,), apply("tanh", arg(0, float32))), x)
        assert step.items % 2 == 0
    x, y = Buffer("x", float32, (64,)), Buffer("y", float32, (64,))
    (step,) = steps(Map(y, (x,), apply("tanh", arg(0, float32))), x)
    assert (step.items, step.chunk) == (1, 1)
    assert BLOCK >= SERIAL_BYTES


@pytest.mark.parametrize(("dtype", "shared"), [(float32, (576, 600)), (int8, (1280, 1000))])
def test_rows_alone_are_shared_by_the_bytes_of_their_weights(dtype, shared):
    depth, features = shared
    *_, step = connected(Buffer("x", dtype, (1, 1, 1, depth)), features)
    assert step.chunk is None or step.chunk < step.items
    *_, step = connected(Buffer("x", dtype, (1, 1, 1, 16)), 32)
    assert step.chunk == step.items


def test_short_sums_of_bytes_cost_their_epilogue():
    """16 products a sum: 0.8 M of operations, but 50,000 outputs."""
    x = Buffer("x", int8, (1, 56, 56, 16))
    (step,) = connected(x, 64)
    assert step.chunk is None


def test_items_of_floats_divide_between_two_threads():
    """Into an even number, or into more than 30: 61 tiles of 13 rows have no even number of blocks."""
    (step,) = connected(Buffer("x", float32, (1, 28, 28, 64)), 64)
    assert step.items % 2 == 0 or step.items > 30
    assert evened(WorkBlocks(3, 1, 19), 56, 1).items % 2 == 0


def test_grains():
    assert grain(SERIAL_BYTES // 8, 8) == 8
    assert grain(SERIAL_BYTES, 2) == 1
