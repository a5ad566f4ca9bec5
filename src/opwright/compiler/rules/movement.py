"""Operators that move elements: each is a move by index maps, or a look-up.

Lives here: these rules. A map is read off a NumPy view: what the operator does to an array of places says which of them
it takes, by offset and strides.
Not here: shapes alone (shaping.py), moves as index maps (../loops/forms.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...ops import registry
from ..loops.expressions import Expr, apply
from ..loops.forms import Buffer, Gather, GatherNd
from .elementwise import mapped
from .nodes import At, Refused, places
from .registry import rule


@rule("BroadcastTo", "Reverse", "Slice", "Split", "SplitV", "StridedSlice", "Transpose", "Unpack")
def by_view(at: At) -> None:
    """Operators whose computation gives views: they are asked for those of an array of places."""
    x = at.operand(0)
    constants = [at.constant(i) for i in range(1, len(at.node.inputs))]
    for place, view in enumerate(taken(at.node.op, at.node.attrs, places(x), constants)):
        at.moved_whole(at.output(place), x, view)


def taken(op: Any, attrs: Mapping[str, Any], dummy: np.ndarray, constants: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The views of an array of places that an operator takes; one of a single element has one axis.

    raises Refused where it copies
    """
    compute = op.reference(op.bind(dict(attrs)))
    views = list(op.flat_outputs(compute(dummy, *constants)))
    if any(not isinstance(v, np.ndarray) for v in views):  # single elements: NumPy gives numbers, not views
        numbers = op.flat_outputs(compute(np.arange(dummy.size).reshape(dummy.shape), *constants))
        flat = dummy.reshape(-1)
        views = [v if isinstance(v, np.ndarray) else flat[int(n) : int(n) + 1] for v, n in zip(views, numbers)]
    if any(v.size and not np.may_share_memory(v, dummy) for v in views):
        raise Refused("the computation gives no view")
    return views


@rule("Concat", "Pack")
def joined(at: At) -> None:
    y, parts = at.output(), at.several(0)
    axis, packed = int(at.attr("axis")) % len(y.shape), at.node.op.name == "Pack"
    moves, begin = [], 0
    for part in parts:
        view = places(part)
        view = np.expand_dims(view, axis) if packed else view
        moves.append((part, view, tuple(begin if i == axis else 0 for i in range(len(y.shape)))))
        begin += view.shape[axis]
    if begin != y.shape[axis]:
        raise Refused(f"{begin} rows for {y}")
    at.moved(y, *moves)


@rule("Pad")
def pad(at: At) -> None:
    x, y, margins = at.operand(0), at.output(), at.constant(1)
    value = None if len(at.node.inputs) < 3 or at.node.inputs[2] is None else at.constant(2)
    if (margins < 0).any() or tuple(np.add(x.shape, margins.sum(1))) != y.shape:
        raise Refused(f"margins {margins.tolist()}")
    fill = 0 if value is None else value.reshape(-1)[0].item()
    at.moved(y, (x, places(x), margins[:, 0].tolist()), fill=fill)


@rule("StridedSliceGrad")
def strided_slice_grad(at: At) -> None:
    """The gradient where it was taken from, zeros elsewhere; for slices of neighbours."""
    y, dy = at.output(), at.operand(4)
    op = registry.get("StridedSlice")
    dummy = places(y)
    (view,) = taken(op, at.node.attrs, dummy, [at.constant(i) for i in (1, 2, 3)])
    start = view.__array_interface__["data"][0] - dummy.__array_interface__["data"][0]
    first, box, at_axis = [], [], 0
    for stride, n in zip(dummy.strides, y.shape):
        first.append(start // stride % n if n else 0)
        whole = at_axis < view.ndim and view.strides[at_axis] == stride and view.shape[at_axis] <= n
        box.append(view.shape[at_axis] if whole else 1)
        at_axis += whole
    if at_axis != view.ndim or math.prod(box) != dy.size:
        raise Refused("a slice with steps")
    source = at.viewed(dy, tuple(box))
    at.moved(y, (source, places(source), first), fill=0)


@rule("Tile")
def tile(at: At) -> None:
    x, y, times = at.operand(0), at.output(), at.constant(1).tolist()
    shape = [v for m, n in zip(times, x.shape) for v in (m, n)]
    apart = places(x).reshape([v for n in x.shape for v in (1, n)])
    at.moved_whole(y, x, np.broadcast_to(apart, shape))


@rule("SpaceToDepth", "DepthToSpace")
def blocks(at: At) -> None:
    x, s = at.operand(0), int(at.attr("block_size"))
    if at.attr("data_format") != "NHWC":
        raise Refused("images with channels first")
    n, h, w, c = x.shape
    if at.node.op.name == "SpaceToDepth":
        cut = places(x).reshape(n, h // s, s, w // s, s, c)
    else:
        cut = places(x).reshape(n, h, w, s, s, c // (s * s))
    at.moved_whole(at.output(), x, cut.transpose(0, 1, 3, 2, 4, 5))


@rule("SpaceToBatchND")
def space_to_batch(at: At) -> None:
    x, sizes, margins = at.operand(0), at.constant(1).tolist(), at.constant(2).tolist()
    m, rest = len(sizes), len(x.shape) - len(sizes) - 1
    borders = [(0, 0), *map(tuple, margins), *[(0, 0)] * rest]
    padded = x
    if any(map(any, borders)):
        padded = at.new(x.dtype, [d + sum(p) for d, p in zip(x.shape, borders)])
        at.moved(padded, (x, places(x), [b for b, _ in borders]), fill=0)
    n, spatial, tail = x.shape[0], padded.shape[1 : m + 1], x.shape[m + 1 :]
    cut = places(padded).reshape([n, *(v for d, b in zip(spatial, sizes) for v in (d // b, b)), *tail])
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, 2 * m + 1 + rest)]
    at.moved_whole(at.output(), padded, cut.transpose(order))


@rule("BatchToSpaceND")
def batch_to_space(at: At) -> None:
    x, sizes, crops = at.operand(0), at.constant(1).tolist(), at.constant(2)
    m, n = len(sizes), x.shape[0] // math.prod(sizes)
    spatial, tail = x.shape[1 : m + 1], x.shape[m + 1 :]
    if crops.any():
        raise Refused("crops")
    cut = places(x).reshape([*sizes, n, *spatial, *tail])
    order = [m, *(v for i in range(m) for v in (m + 1 + i, i)), *range(2 * m + 1, cut.ndim)]
    at.moved_whole(at.output(), x, cut.transpose(order))


@rule("Gather")
def gather(at: At) -> None:
    x, indices = at.operand(0), at.operand(1)
    axis, batch = int(at.attr("axis")) % max(len(x.shape), 1), int(at.attr("batch_dims"))
    if not x.shape or batch < 0:
        raise Refused(f"rows of {x}")
    at.form(Gather, at.output(), x, indices, axis, batch)


@rule("GatherNd")
def gather_nd(at: At) -> None:
    if int(at.attr("batch_dims")):
        raise Refused("batches")
    at.form(GatherNd, at.output(), at.operand(0), at.operand(1))


@rule("OneHot")
def one_hot(at: At) -> None:
    """on where the place along the new axis is the index, off elsewhere."""
    indices, y = at.operand(0), at.output()
    axis = int(at.attr("axis")) % len(y.shape)
    depth = y.shape[axis]
    column = np.arange(depth, dtype=indices.dtype.np).reshape(depth, *[1] * (len(y.shape) - axis - 1))
    counted = Buffer(f"{at.node.name}.places", indices.dtype, column.shape, column)
    spread = at.viewed(indices, (*indices.shape[:axis], 1, *indices.shape[axis:]))

    def expr(i: Expr, k: Expr, on: Expr, off: Expr) -> Expr:
        return apply("select", apply("equal", i, k, dtype=bool_), on, off, dtype=y.dtype)

    mapped(at, y, [spread, counted, at.operand(2), at.operand(3)], expr)
