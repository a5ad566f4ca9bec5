"""Data movement as boxes: against NumPy's own indexing, for every size of element, whole and in parts."""

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels import NoKernel
from opwright.compiler.kernels.boxes import join_pairs, move_interleaved, take_every_second
from opwright.compiler.kernels.moves import move_block, move_elements, move_runs, move_transposed
from opwright.compiler.loops.buffers import Buffer, IndexMap
from opwright.compiler.loops.ops import Move
from opwright.core import dtypes

RNG = np.random.default_rng(7)
DTYPES = (
    np.int8,
    np.float32,
    np.complex128,
    pytest.param(np.int16, marks=pytest.mark.slow),
    pytest.param(np.float64, marks=pytest.mark.slow),
)


def drawn(shape, dtype=np.float32):
    return RNG.integers(-100, 100, shape).astype(dtype)


def boxed(x, view):
    """The move whose output is a strided view of x."""
    size = x.itemsize
    offset = (view.ctypes.data - x.ctypes.data) // size
    strides = tuple(s // size for s in view.strides)
    operand = buffer(x)
    box = IndexMap((0,) * view.ndim, view.shape, offset, strides)
    return Move(Buffer("y", operand.dtype, view.shape), (operand,), (box,)), {operand: x}


VIEWS = {
    "nothing moved": ((6, 7), lambda x: x),
    "long run": ((70001,), lambda x: x),
    "transposed": ((33, 47), lambda x: x.T),
    "transposed, a power of two": ((64, 64), lambda x: x.T),
    "to channels first": ((2, 9, 19, 37), lambda x: x.transpose(0, 3, 1, 2)),
    "to channels last": ((2, 37, 9, 19), lambda x: x.transpose(0, 2, 3, 1)),
    "three channels first": ((1, 17, 23, 3), lambda x: x.transpose(0, 3, 1, 2)),
    "three channels last": ((1, 3, 17, 23), lambda x: x.transpose(0, 2, 3, 1)),
    "two planes": ((1000, 2), lambda x: x.T),
    "pixels of two": ((3, 2, 517), lambda x: x.transpose(0, 2, 1)),
    "pixels of three, many": ((3, 100, 101), lambda x: x.transpose(1, 2, 0)),
    "planes of three, many": ((2, 100, 101, 3), lambda x: x.transpose(0, 3, 1, 2)),
    "pixels of four": ((4, 70), lambda x: x.T),
    "planes of four": ((5, 70, 4), lambda x: x.transpose(0, 2, 1)),
    "two of three planes": ((3, 9, 30), lambda x: x[1:].transpose(1, 2, 0)),
    "all axes": ((3, 5, 7, 2, 4), lambda x: x.transpose(4, 2, 0, 3, 1)),
    "rows of heads": ((2, 11, 3, 16), lambda x: x.transpose(0, 2, 1, 3)),
    "slice": ((9, 10, 11), lambda x: x[2:7, 3:, 1:9]),
    "every second": ((8199,), lambda x: x[1::2]),
    "every second of rows": ((3, 2, 131), lambda x: x[:, 1, ::2]),
    "steps": ((9, 40), lambda x: x[::2, ::3]),
    "steps backwards": ((9, 41), lambda x: x[::-3, ::-2]),
    "reversed rows": ((9, 41), lambda x: x[::-1]),
    "reversed": ((3, 131), lambda x: x[:, ::-1]),
    "reversed channels": ((5, 5, 3), lambda x: x[..., ::-1]),
    "one channel": ((5, 9, 3), lambda x: x[..., 1:2]),
    "broadcast columns": ((13, 1), lambda x: np.broadcast_to(x, (13, 29))),
    "broadcast rows": ((1, 29), lambda x: np.broadcast_to(x, (13, 29))),
    "broadcast both": ((3, 1, 5, 1), lambda x: np.broadcast_to(x, (2, 3, 4, 5, 6))),
    "one element": ((1,), lambda x: np.broadcast_to(x, (3, 100))),
    "a number": ((), lambda x: x),
    "depth to space": ((2, 3, 4, 12), lambda x: x.reshape(2, 3, 4, 2, 2, 3).transpose(0, 1, 3, 2, 4, 5)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VIEWS)
def test_views(name, dtype):
    shape, of = VIEWS[name]
    x = np.ascontiguousarray(drawn(shape, dtype)).reshape(shape)
    view = of(x)
    form, inputs = boxed(x, view)
    np.testing.assert_array_equal(run(form, inputs), view)
    for parts in (2, 5):
        np.testing.assert_array_equal(split(form, inputs, parts), view)


@pytest.mark.parametrize("widths", [(3, 5), (24, 40), (1, 1), (16, 7)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_concatenation(widths, dtype):
    parts = [drawn((2, 5, w), dtype) for w in widths]
    buffers = [buffer(p, f"x{i}") for i, p in enumerate(parts)]
    boxes, start = [], 0
    for p in parts:
        boxes.append(IndexMap((0, 0, start), p.shape, 0, (5 * p.shape[2], p.shape[2], 1)))
        start += p.shape[2]
    form = Move(Buffer("y", buffers[0].dtype, (2, 5, sum(widths))), tuple(buffers), tuple(boxes))
    np.testing.assert_array_equal(run(form, dict(zip(buffers, parts))), np.concatenate(parts, -1))


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(33,), (3, 1367), (5,)])
def test_two_arrays_by_turns(shape, dtype):
    parts = [drawn(shape, dtype) for _ in range(2)]
    buffers = [buffer(p, f"x{i}") for i, p in enumerate(parts)]
    steps = (*(s // parts[0].itemsize for s in parts[0].strides), 1)
    boxes = tuple(IndexMap((*(0 for _ in shape), k), (*shape, 1), 0, steps) for k in range(2))
    form = Move(Buffer("y", buffers[0].dtype, (*shape, 2)), tuple(buffers), boxes)
    for number in (1, 2, 3):
        np.testing.assert_array_equal(split(form, dict(zip(buffers, parts)), number), np.stack(parts, -1))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.float64])
def test_fill_around_a_box(dtype):
    x = drawn((2, 5, 6, 3), dtype)
    around = ((0, 1), (2, 1), (1, 0), (0, 2))
    operand, expected = buffer(x), np.pad(x, around, constant_values=-3)
    box = IndexMap(tuple(a for a, _ in around), x.shape, 0, (90, 18, 3, 1))
    form = Move(Buffer("y", operand.dtype, expected.shape), (operand,), (box,), fill=-3.0)
    np.testing.assert_array_equal(run(form, {operand: x}), expected)


def test_fill_around_several_boxes():
    x = drawn((4, 4))
    operand, expected = buffer(x), np.full((8, 9), 2.5, np.float32)
    expected[:4, :4], expected[4:, 5:] = x, x[::-1]
    boxes = (IndexMap((0, 0), (4, 4), 0, (4, 1)), IndexMap((4, 5), (4, 4), 12, (-4, 1)))
    form = Move(Buffer("y", operand.dtype, (8, 9)), (operand, operand), boxes, fill=2.5)
    np.testing.assert_array_equal(run(form, {operand: x}), expected)


def test_into_a_slice_and_out_of_one():
    x = drawn((6, 10))
    operand = buffer(x)
    whole = Buffer("whole", dtypes.float32, (6, 32))
    part = Buffer("part", dtypes.float32, (6, 10), parent=whole, start=7)
    into = Move(part, (operand,), (IndexMap((0, 0), (6, 10), 0, (10, 1)),))
    result = run(into, {operand: x})
    np.testing.assert_array_equal(result[:, 7:17], x)
    y = drawn((6, 32))
    out = Move(Buffer("y", dtypes.float32, (10, 6)), (part,), (IndexMap((0, 0), (10, 6), 0, (1, 10)),))
    np.testing.assert_array_equal(run(out, {whole: y}), y[:, 7:17].T)


@pytest.mark.parametrize("rows", [5, 9, 77, 1017])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.float64])
def test_transposition_into_lines_of_one_set_of_the_cache(dtype, rows):
    """With a multiple of 4 KB from column to column; what lies next to the slice stays."""
    x = drawn((rows, 21), dtype)
    operand = buffer(x)
    whole = Buffer("whole", operand.dtype, (21, 4096))
    part = Buffer("part", operand.dtype, (21, rows), parent=whole, start=7)
    form = Move(part, (operand,), (IndexMap((0, 0), (21, rows), 0, (1, 21)),))
    result = run(form, {operand: x})
    np.testing.assert_array_equal(result[:, 7 : 7 + rows], x.T)
    assert len(np.unique(result[:, :7])) == len(np.unique(result[:, 7 + rows :])) == 1


@pytest.mark.parametrize(
    "box",
    [IndexMap((0, 0), (3, 4), 1, (4, 1)), IndexMap((0, 0), (3, 4), 0, (-4, 1)), IndexMap((1, 0), (3, 4), 0, (4, 1))],
)
def test_boxes_outside_are_refused(box):
    x = drawn((3, 4))
    operand = buffer(x)
    with pytest.raises(NoKernel):
        run(Move(Buffer("y", operand.dtype, (3, 4)), (operand,), (box,)), {operand: x})


@targets(
    (move_runs, {"kind": "copy", "size": 1, "width": 16, "outer": 2}),
    (move_runs, {"kind": "copy", "size": 1, "width": 0, "outer": 0}),
    (move_runs, {"kind": "spread", "size": 16, "width": 16, "outer": 1}),
    (move_runs, {"kind": "reverse", "size": 2, "width": 64, "outer": 1}),
    (move_block, {}),
    (move_elements, {"size": 16, "outer": 1}),
    (move_elements, {"size": 2, "outer": 3}),
    (move_interleaved, {"size": 4, "count": 3, "apart": True, "outer": 1}),
    (move_interleaved, {"size": 1, "count": 4, "apart": False, "outer": 0}),
    (join_pairs, {"size": 4}),
    (take_every_second, {"size": 8, "outer": 1}),
    (move_transposed, {"size": 1, "tile": 16, "across": 16, "parts": 1, "outer": 1}),
    (move_transposed, {"size": 4, "tile": 8, "across": 4, "parts": 2, "outer": 1}),
    (move_transposed, {"size": 8, "tile": 2, "across": 2, "parts": 1, "outer": 0}),
)
def test_compiles_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
