"""Operators whose results are views: their input's elements under another shape or other strides.

Lives here: the rules of Reshape to Unpack and of their builtins; StridedSliceGrad.
Not here: concatenation, padding, and blocks (data_movement.py).

The operator's definition is the only statement of its meaning: its reference is applied to an array whose elements are
never read, and the strides of the result are the index map.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.dtypes import int32, uint8
from ...ops import registry
from ..loops.buffers import Buffer, IndexMap
from ..loops.expressions import const
from ..loops.indexing_ops import Expected, Gather, PutEntries, ScatterAt, SliceAt
from ..loops.ops import Map, Move, View
from .context import LoweringContext, NoLowering, RuleOperand
from .data_movement import layout, move, move_view
from .operand_expressions import same_numbers
from .registry import LITE, rule

MAX_NUMBERED = 4096
"""Largest tensor whose elements are numbered to locate one of them."""


@rule("Reshape", "ExpandDims", "Squeeze", "RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def reshape(ctx: LoweringContext) -> None:
    """Lower a reshape. Files declare the output's shape, graphs infer it."""
    x, y = ctx.operand(0), ctx.output()
    same_numbers(x, y)
    if x.size != y.size:
        raise NoLowering(f"{x} under the shape {list(y.shape)}")
    if ctx.node.dialect == LITE:
        ctx.output(_shape_of(ctx, x))
    ctx.add(View, y.buffer, x.buffer)


def _shape_of(ctx: LoweringContext, x: RuleOperand) -> list[int]:
    """Return the output's shape as the builtin computes it."""
    if ctx.operator == "EXPAND_DIMS":
        axis = int(ctx.constant(1).reshape(-1)[0])
        shape = list(x.shape)
        shape.insert(axis if axis >= 0 else axis + len(shape) + 1, 1)
        return shape
    if ctx.operator == "SQUEEZE":
        dims = ctx.attr("squeeze_dims")
        rank = len(x.shape)
        axes = [] if isinstance(dims, int) or dims is None else [int(a) % rank for a in dims]
        axes = axes or [i for i, n in enumerate(x.shape) if n == 1]
        return [n for i, n in enumerate(x.shape) if i not in axes]
    listed = ctx.optional(1)
    if listed is not None and listed.dtype is int32 and len(listed.shape) == 1:
        shape = ctx.constant(1).tolist()
    else:  # the option, by which old files specify a scalar as [0]
        option = ctx.attr("new_shape")
        shape = [] if isinstance(option, int) or option is None or tuple(option) == (0,) else list(option)
    product = int(np.prod([n for n in shape if n != -1], dtype=np.int64))
    return [x.size // product if n == -1 and product else n for n in shape]


@rule("EnsureShape")
def ensure_shape(ctx: LoweringContext) -> None:
    """Lower EnsureShape of a known shape; if it is incompatible, the operator raises its error."""
    x, shape = ctx.operand(0), ctx.attr("shape")
    if not shape.is_compatible_with(x.shape):
        raise NoLowering(f"{x} is not of the shape {shape}")
    ctx.add(View, ctx.output(x.shape).buffer, x.buffer)


DATA_INPUT = {"SPLIT": 1}
"""Index of the input whose elements are moved, if not the first."""
OF_ANY_SCALE = ("REVERSE_V2",)
"""Operators to whose results TensorFlow's quantizer gives scales of their own; kernels move integers as they are."""


@rule(
    "BroadcastTo",
    "Reverse",
    "Slice",
    "Split",
    "SplitV",
    "Transpose",
    "Unpack",
    "BROADCAST_TO",
    "REVERSE_V2",
    "SPLIT",
    "SPLIT_V",
    "TRANSPOSE",
    "UNPACK",
)
def view(ctx: LoweringContext) -> None:
    index = DATA_INPUT.get(ctx.operator, 0)
    x = ctx.operand(index)
    source = layout(x)
    for i, part in enumerate(_applied(ctx, index, source)):
        y = ctx.output(np.shape(part), i)
        if ctx.operator not in OF_ANY_SCALE or x.dtype is not y.dtype:
            same_numbers(x, y)
        if isinstance(part, np.ndarray):
            move_view(ctx, y.buffer, x.buffer, part, source)
        elif x.size <= MAX_NUMBERED:  # NumPy returns a number, and no view, for one element
            number = _applied(ctx, index, np.arange(x.size).reshape(x.shape))[i]
            ctx.add(Move, y.buffer, (x.buffer,), (IndexMap((), (), int(number), ()),))
        else:
            raise NoLowering(f"one element of {x}")


def _applied(ctx: LoweringContext, index: int, source: np.ndarray) -> list[np.ndarray]:
    """Apply the operator to `source` as one of its inputs. Raises NoLowering if another input is not constant."""
    operands = ctx.operands
    return ctx.node.evaluate(operands, [source if i == index else ctx.constant(i) for i in range(len(operands))])


@rule("StridedSlice", "STRIDED_SLICE")
def strided_slice(ctx: LoweringContext) -> None:
    """Lower a slice at computed indices of some axes and of all elements along the others, as x[i] and x[..., i], to
    gathers; other slices to views."""
    x = ctx.operand(0)
    axes = _indexed_axes(ctx, x)
    if axes is None:
        view(ctx)
        return
    y = ctx.output()
    shape = [n for axis, n in enumerate(x.shape) if axis not in axes]
    if math.prod(shape) != y.size:
        raise NoLowering(f"a slice {y} of {x}")
    same_numbers(x, y)
    part = x.buffer
    for gathered, (axis, entry) in enumerate(sorted(axes.items())):
        axis -= gathered
        sizes = (*part.shape[:axis], *part.shape[axis + 1 :])
        if gathered == len(axes) - 1:
            with ctx.reshaped(y, sizes) as out:
                ctx.add(Gather, out, part, _index(ctx, entry), axis)
        else:
            rows = ctx.new(x.dtype, sizes, f".at{entry}")
            ctx.add(Gather, rows, part, _index(ctx, entry), axis)
            part = rows


def _indexed_axes(ctx: LoweringContext, x: RuleOperand) -> dict[int, int] | None:
    """Return the axes along which a slice of x, or its gradient, takes one element, and their entries in the computed
    vector of starts; None unless all others are taken whole."""
    start = ctx.operand(1)
    if start.constant is not None or len(start.shape) != 1 or not x.shape:
        return None
    begin, end, ellipsis, new, shrunk = (
        ctx.attr(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    )
    axes, axis, added = {}, 0, bin(new & ~ellipsis).count("1")
    for entry in range(start.size):
        bit = 1 << entry
        if ellipsis & bit:
            axis += len(x.shape) - (start.size - 1 - added)
        elif not new & bit:
            if shrunk & bit and not begin & bit:
                axes[axis] = entry
            elif not (begin & end & bit) or ctx.constant(3)[entry] != 1:
                return None
            axis += 1
    return axes if axes and axis <= len(x.shape) else None


def _index(ctx: LoweringContext, entry: int) -> Buffer:
    """Return an element of the vector of starts."""
    starts = ctx.operand(1).buffer
    if starts.shape == (1,):
        return ctx.viewed(starts, ())
    index = ctx.new(starts.dtype, (1,), f".start{entry}")
    move(ctx, index, (starts, layout(starts)[entry : entry + 1], (0,)))
    return ctx.viewed(index, ())


@rule("SLICE")
def slice_(ctx: LoweringContext) -> None:
    """Lower a slice of constant size, at a computed start."""
    x, starts = ctx.operand(0), ctx.operand(1)
    if starts.constant is not None:
        view(ctx)
        return
    sizes = tuple(int(n) for n in ctx.constant(2))
    if REST in sizes and ctx.buffers.seen is not None and len(sizes) == len(x.shape) == starts.size:
        sizes = _as_observed(ctx, x, starts, sizes)
    fits = len(sizes) == len(x.shape) and all(0 <= s <= n for s, n in zip(sizes, x.shape))
    if starts.shape != (len(x.shape),) or not fits:
        raise NoLowering(f"a slice of {x} at {starts}")
    y = ctx.output(sizes)
    same_numbers(x, y)
    ctx.add(SliceAt, y.buffer, x.buffer, starts.buffer)


REST = -1
"""The size of a slice that reaches the end of an axis."""


def _as_observed(ctx: LoweringContext, x: RuleOperand, starts: RuleOperand, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return sizes with those of an earlier run for REST, and guard the starts that follow from them; other starts may
    vary."""
    observed = ctx.output().shape
    axes = [axis for axis, n in enumerate(sizes) if n == REST]
    guarded = ctx.new(starts.dtype, (len(axes),), ".guarded")
    flat = ctx.viewed(starts.buffer, (starts.size,))
    places = layout(flat)
    move(ctx, guarded, *((flat, places[axis : axis + 1], (i,)) for i, axis in enumerate(axes)))
    expected = np.array([x.shape[axis] - observed[axis] for axis in axes], starts.dtype.np)
    elements = Buffer(f"{guarded.name}.expected", starts.dtype, expected.shape, expected)
    ctx.add(Expected, Buffer(f"{guarded.name}.guard", uint8, (1,)), guarded, elements)
    return tuple(observed[axis] if n == REST else n for axis, n in enumerate(sizes))


@rule("StridedSliceGrad")
def strided_slice_grad(ctx: LoweringContext) -> None:
    """Lower the gradient of a slice to a move into zeros, with steps run by run; at a computed index for x[i]."""
    y, dy = ctx.output(), ctx.operand(4)
    axes = _indexed_axes(ctx, y)
    if axes == {0: 0} and ctx.operand(1).shape == (1,):
        zeros, row = ctx.new(y.dtype, y.shape, ".zeros"), ctx.viewed(dy.buffer, (1, *y.shape[1:]))
        ctx.add(Map, zeros, (), const(0, y.dtype))
        ctx.add(PutEntries, y.buffer, zeros, row, ctx.viewed(ctx.operand(1).buffer, (1,)))
        return
    if axes is not None:
        _put_at(ctx, y, dy, axes)
        return
    op, target, constants = registry.get("StridedSlice"), layout(y), [ctx.constant(i) for i in (1, 2, 3)]
    slice_of = op.reference(op.bind(dict(ctx.node.node.attrs)))
    part = slice_of(target, *constants)
    if not isinstance(part, np.ndarray):  # NumPy returns a number, and no view, for one element
        number = int(slice_of(np.arange(target.size).reshape(target.shape), *constants))
        part = target.reshape(-1)[number : number + 1]
    part = part.reshape([n for n in part.shape if n != 1])  # axes of one element have any stride
    start = part.__array_interface__["data"][0] - target.__array_interface__["data"][0]
    first, box, axis = [], [], 0
    for stride, n in zip(target.strides, y.shape):
        first.append(start // stride % n if n else 0)
        is_sliced = axis < part.ndim and part.strides[axis] == stride and part.shape[axis] <= n
        box.append(part.shape[axis] if is_sliced else 1)
        axis += is_sliced
    if axis == part.ndim and math.prod(box) == dy.size:
        source = ctx.viewed(dy.buffer, tuple(box))
        move(ctx, y.buffer, (source, layout(source), first), fill=0)
        return
    _put_runs(ctx, y, dy, slice_of(np.arange(target.size).reshape(target.shape), *constants))


def _put_at(ctx: LoweringContext, y: RuleOperand, dy: RuleOperand, axes: dict[int, int]) -> None:
    """Write the elements of dy to y at computed indices of these axes, zeros elsewhere. axes: see `_indexed_axes`."""
    depth = max(axes) + 1
    boxes = tuple(1 if axis in axes else n for axis, n in enumerate(y.shape[:depth]))
    count, starts = math.prod(boxes), ctx.operand(1).buffer
    if not dy.size or count > MOST_RUNS:
        raise NoLowering(f"a slice at {starts}, of {count} runs")
    places, numbers = ctx.new(starts.dtype, (count, depth), ".places"), np.indices(boxes).reshape(depth, count)
    parts = []
    for axis in range(depth):
        if axis in axes:
            column, entry = starts, axes[axis]
            of = np.broadcast_to(layout(starts)[entry : entry + 1, None], (count, 1))
        else:
            constant = np.ascontiguousarray(numbers[axis], starts.dtype.np)
            column = Buffer(f"{places.name}.{axis}", starts.dtype, (count,), constant)
            of = layout(column)[:, None]
        parts.append((column, of, (0, axis)))
    move(ctx, places, *parts)
    inner = y.shape[depth:]
    ctx.add(ScatterAt, y.buffer, ctx.viewed(dy.buffer, (count, *inner)), places, 0.0, (), "set")


MOST_RUNS = 1 << 16
"""Most pieces of a slice with steps, whose positions are constants."""


def _put_runs(ctx: LoweringContext, y: RuleOperand, dy: RuleOperand, numbers: np.ndarray) -> None:
    """Write the elements of dy to those of y, zeros elsewhere, by runs of adjacent ones. numbers: of elements of y."""
    run, expected = 1, np.arange(y.size)
    for n in y.shape[::-1]:
        rows = numbers.reshape(-1, run * n) if numbers.size % (run * n) == 0 else None
        if rows is None or (rows[:, :1] % (run * n)).any() or (rows - rows[:, :1] != expected[: run * n]).any():
            break
        run *= n
    starts = numbers.reshape(-1, run)[:, :1] // run
    if not dy.size or len(starts) > MOST_RUNS:
        raise NoLowering(f"a slice with steps, of {len(starts)} runs")
    places = Buffer(f"{y.buffer.name}.places", int32, starts.shape, starts.astype(np.int32))
    with ctx.reshaped(y, (y.size // run, run)) as out:
        ctx.add(ScatterAt, out, ctx.viewed(dy.buffer, (dy.size // run, run)), places, 0.0, (), "set")
