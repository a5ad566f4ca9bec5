"""Slices by index: against NumPy, guards included."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler import language as kl
from opwright.compiler.kernels import NoKernel
from opwright.compiler.kernels.gather import copy_unless_shared, gather_places, gather_runs, slice_box, update_box
from opwright.compiler.kernels.moves import BLOCK
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.indexing_ops import Gather, GatherAt, SliceAt, UpdateSlice
from opwright.compiler.native.executor import StepFailed
from opwright.core.dtypes import int16, int32, int64

RNG = np.random.default_rng(5)
CASES = [
    # x, indices, axis, batch dims
    ((10, 7), (5,), 0, 0),
    ((100, 300), (2, 3), 0, 0),
    ((4, 9), (6,), 1, 0),
    ((3, 5, 2), (4,), 1, 0),
    ((13,), (40,), 0, 0),
    ((6, 8, 3), (6, 4), 1, 1),
    ((2, 3, 4, 5), (2, 3, 7), 2, 2),
    ((2, 3, 4, 5), (2, 6), 3, 1),
    ((9, 4), (), 0, 0),
]


def gathered(x, indices, axis, batch):
    a, b = buffer(x), buffer(indices, "indices")
    shape = (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :])
    return Gather(Buffer("y", a.dtype, shape), a, b, axis, batch), {a: x, b: indices}


def taken(x, indices, axis, batch):
    if not batch:
        return x.take(indices, axis)
    return np.stack([taken(*pair, axis - 1, batch - 1) for pair in zip(x, indices)])


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.complex128])
@pytest.mark.parametrize("places", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize(("shape", "of", "axis", "batch"), CASES)
def test_gathers(shape, of, axis, batch, places, dtype):
    x = RNG.integers(-100, 100, shape).astype(dtype)
    indices = np.asarray(RNG.integers(0, shape[axis], of), places)
    form, inputs = gathered(x, indices, axis, batch)
    np.testing.assert_array_equal(run(form, inputs), taken(x, indices, axis, batch))
    np.testing.assert_array_equal(split(form, inputs, 3), taken(x, indices, axis, batch))


@pytest.mark.parametrize("wrong", [-1, 10, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("at", [0, 4])
def test_indices_outside_fail(wrong, at):
    x, indices = RNG.normal(size=(10, 7)).astype(np.float32), np.zeros(5, np.int32)
    indices[at] = wrong
    with pytest.raises(StepFailed):
        run(*gathered(x, indices, 0, 0))


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.complex128])
@pytest.mark.parametrize(("shape", "of"), [((5, 6, 7), (4, 2)), ((5, 6), (3, 2, 2)), ((9,), (1,)), ((3, 400), (5, 1))])
def test_gathers_at_coordinates(shape, of, dtype):
    x = RNG.integers(-100, 100, shape).astype(dtype)
    depth = of[-1]
    indices = np.stack([RNG.integers(0, n, of[:-1]) for n in shape[:depth]], -1).astype(np.int32).reshape(of)
    a, b = buffer(x), buffer(indices, "indices")
    expected = np.asarray(x[tuple(indices[..., k] for k in range(depth))])
    form = GatherAt(Buffer("y", a.dtype, expected.shape), a, b)
    np.testing.assert_array_equal(run(form, {a: x, b: indices}), expected)
    np.testing.assert_array_equal(split(form, {a: x, b: indices}, 2), expected)
    indices[..., -1].reshape(-1)[-1:] = shape[depth - 1]
    indices = np.where(np.arange(indices.size).reshape(of) == indices.size - 1, shape[depth - 1], indices).astype(
        np.int32
    )
    with pytest.raises(StepFailed):
        run(form, {a: x, b: indices})


@pytest.mark.parametrize("nbytes", [0, 3, 64, 1000, 4096, 70_001])
@pytest.mark.parametrize("offset", [0, 1, 60, 64])
def test_copies_past_the_caches_write_all_bytes_and_no_others(nbytes, offset):
    source, out = RNG.integers(0, 255, nbytes + 200).astype(np.uint8), np.full(nbytes + 200, 7, np.uint8)
    expected = out.copy()
    expected[offset : offset + nbytes] = source[5 : 5 + nbytes]
    words = [source.ctypes.data + 5, out.ctypes.data + offset, nbytes, BLOCK]
    kl.call(copy_unless_shared.code(streamed=True), words, items=-(-nbytes // BLOCK))
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("places", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("shape", "part", "starts"),
    [
        ((8,), (3,), (2,)),
        ((8,), (3,), (7,)),
        ((8,), (3,), (-5,)),
        ((4, 5, 6), (2, 5, 6), (1, 0, 0)),
        ((), (), ()),
        ((4, 5, 6), (2, 3, 4), (1, 1, 1)),
        ((4, 5, 6), (4, 5, 6), (3, 3, 3)),
        ((2, 300, 70), (1, 1, 70), (1, 123, 9)),
    ],
)
def test_updates(shape, part, starts, places):
    x, update = (RNG.normal(size=s).astype(np.float32) if s else np.float32([1]).reshape(()) for s in (shape, part))
    where = np.array(starts, places)
    operands = buffer(x), buffer(update, "update"), buffer(where, "starts")
    form = UpdateSlice(Buffer("y", operands[0].dtype, shape), *operands)
    if not shape:
        with pytest.raises(NoKernel):
            run(form, dict(zip(operands, (x, update, where))))
        return
    expected = x.copy()
    corner = [min(max(s, 0), n - u) for s, n, u in zip(starts, shape, part)]
    expected[tuple(slice(c, c + u) for c, u in zip(corner, part))] = update
    inputs = dict(zip(operands, (x, update, where)))
    np.testing.assert_array_equal(run(form, inputs), expected)
    np.testing.assert_array_equal(split(form, inputs, 2), expected)


@pytest.mark.parametrize("places", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("shape", "part", "starts"),
    [
        ((8,), (3,), (2,)),
        ((8,), (3,), (5,)),
        ((4, 5, 6), (2, 5, 6), (1, 0, 0)),
        ((4, 5, 6), (2, 3, 4), (1, 1, 1)),
        ((4, 5, 6), (4, 5, 6), (0, 0, 0)),
        ((2, 300, 70), (1, 1, 70), (1, 123, 0)),
    ],
)
def test_slices_at_computed_places(shape, part, starts, places):
    x, where = RNG.normal(size=shape).astype(np.float32), np.array(starts, places)
    operands = buffer(x), buffer(where, "starts")
    form = SliceAt(Buffer("y", operands[0].dtype, part), *operands)
    expected = x[tuple(slice(s, s + n) for s, n in zip(starts, part))]
    np.testing.assert_array_equal(run(form, dict(zip(operands, (x, where)))), expected)
    np.testing.assert_array_equal(split(form, dict(zip(operands, (x, where))), 2), expected)
    for wrong in (-1, shape[-1] - part[-1] + 1):
        outside = where.copy()
        outside[-1] = wrong
        with pytest.raises(StepFailed):
            run(form, dict(zip(operands, (x, outside))))


@targets(
    *((gather_runs, {"places": p, "width": w}) for p, w in ((int16, 0), (int32, 16), (int64, 1))),
    (gather_places, {"places": int32, "width": 8, "depth": 3}),
    (slice_box, {"places": int32, "width": 16, "rank": 2, "outer": 1}),
    (copy_unless_shared, {"streamed": False}),
    (copy_unless_shared, {"streamed": True}),
    (update_box, {"places": int64, "width": 0, "rank": 3, "outer": 2, "guarded": False}),
    (update_box, {"places": int32, "width": 8, "rank": 1, "outer": 0, "guarded": True}),
)
def test_gathers_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
