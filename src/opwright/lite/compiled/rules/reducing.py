"""Windows over tensors of any rank, and updates: REDUCE_WINDOW, STABLEHLO_REDUCE_WINDOW, STABLEHLO_SCATTER,
STABLEHLO_GATHER.

Lives here: their rules.  Not here: pools over images (pooling.py), GATHER_ND and SCATTER_ND (lookups.py).

A window of several axes is reduced an axis after the other. Of the ways in which StableHLO gathers and scatters, whole
slices at coordinates along the first axes have kernels, and slices along one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....compiler.loops.expressions import apply, arg, const, convert
from ....compiler.loops.forms import Buffer, Gather, GatherNd, Map, ReduceWindow, ScatterNd
from ....core.dtypes import bool as bool_
from ....core.dtypes import int32, int64, uint8
from ....core.errors import OpError
from ...ops.stablehlo_reducing import computation
from ...ops.windows import REDUCERS
from ..nodes import At, Operand, Refused
from . import rule
from .elementwise import truth
from .filling import padded
from .moving import same_numbers

KINDS: dict[Any, str] = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logical_and: "all",
    np.logical_or: "any",
}  # fmt: skip
"""By what joins two numbers, the kind of a reduction."""
OF_TRUTH = {"sum": "max", "any": "max", "max": "max", "prod": "min", "all": "min", "min": "min"}
"""Of truth values, as bytes of 0 and 1, what a kind is."""


@rule("REDUCE_WINDOW")
def reduce_window(at: At) -> None:
    x = at.operand(0)
    window, strides, dilations = ([int(n) for n in at.constant(place)] for place in (2, 3, 4))
    function = REDUCERS.get(at.option("reduce_function"))
    if function is None or not len(window) == len(strides) == len(dilations) == len(x.shape):
        raise Refused(f"windows {window} over {x}")
    _windows(at, x.buffer, at.operand(1), KINDS[function], window, strides, dilations)


@rule("STABLEHLO_REDUCE_WINDOW")
def stablehlo_reduce_window(at: At) -> None:
    """The tensor is spread and padded with the first number before."""
    x, start, rank = at.operand(0), at.operand(1), len(at.operand(0).shape)
    window, strides, base, dilations = (_numbers(at, name) or [1] * rank for name in (
        "window_dimensions", "window_strides", "base_dilations", "window_dilations"))  # fmt: skip
    padding = _numbers(at, "padding") or [0] * (2 * rank)
    kind = _kind(at, "body_subgraph_index")
    lists = (window, strides, base, dilations)
    if kind is None or len(padding) != 2 * rank or any(len(numbers) != rank for numbers in lists):
        raise Refused(f"windows {window} over {x}")
    source = x.buffer
    if any(padding) or any(n != 1 for n in base):
        low, high = padding[::2], padding[1::2]
        sizes = [a + (n - 1) * k + 1 + b for a, n, k, b in zip(low, x.shape, base, high)]
        if min(sizes, default=1) < 1 or not x.size:
            raise Refused(f"{x} padded to {sizes}")
        source = at.new(x.dtype, sizes, ".padded")
        padded(at, source, x, low, [k - 1 for k in base], start)
    _windows(at, source, start, kind, window, strides, dilations)


def _numbers(at: At, name: str) -> list[int]:
    found = getattr(at.node.options, name, None)
    return [] if found is None else [int(n) for n in found]


def _kind(at: At, name: str, may_be_second: bool = False) -> str | None:
    """What a subgraph does with two numbers; None where it gives the second. Raises Refused for others."""
    try:
        found = computation(at.node, int(getattr(at.node.options, name)), may_be_second)
    except OpError as error:
        raise Refused(error.message) from None
    return None if found is None else KINDS[found]


def _windows(at: At, x: Buffer, start: Operand, kind: str, window: Sequence[int], strides: Sequence[int],
             dilations: Sequence[int]) -> None:  # fmt: skip
    """Windows along the last axis first. Raises Refused where there are none."""
    shape = [(n - (w - 1) * d - 1) // s + 1 for n, w, s, d in zip(x.shape, window, strides, dilations)]
    if min(*window, *strides, *dilations, *shape, 1) < 1 or start.size != 1 or start.dtype is not x.dtype:
        raise Refused(f"windows {list(window)} over {x}")
    y = at.output(shape)
    if y.dtype is not x.dtype:
        raise Refused(f"windows over {x} to {y}")
    first, target, close = at.viewed(start.buffer, ()), y.buffer, None
    if x.dtype is bool_:
        kind = OF_TRUTH[kind]
        x, first = at.bits(x, uint8, x.shape), at.bits(first, uint8, ())
        target = at.new(uint8, shape, ".truth")
        close = target
    elif kind in ("all", "any"):
        x, first = (_as_truth(at, b) for b in (x, first))
        kind = OF_TRUTH[kind]
    axes = [axis for axis in reversed(range(len(shape))) if window[axis] > 1 or strides[axis] > 1] or [len(shape) - 1]
    for number, axis in enumerate(axes):
        last = number == len(axes) - 1
        sizes = (*x.shape[:axis], shape[axis], *x.shape[axis + 1 :])
        made = target if last else at.new(x.dtype, sizes, f".axis{axis}")
        at.form(ReduceWindow, made, x, axis, window[axis], strides[axis], dilations[axis], kind,
                (first,) if last else ())  # fmt: skip
        x = made
    if close is not None:
        at.form(Map, y.buffer, (close,), truth("not_equal", arg(0, uint8), const(0, uint8)))


def _as_truth(at: At, b: Buffer) -> Buffer:
    """1 for what is not 0."""
    made = at.new(b.dtype, b.shape, f".{b.name}.truth")
    at.form(Map, made, (b,), convert(truth("not_equal", arg(0, b.dtype), const(0, b.dtype)), b.dtype))
    return made


# ---- slices at coordinates -----------------------------------------------------------------------------------------


def _vectors(at: At, indices: Operand, along: int, depth: int) -> Buffer:
    """Index vectors [..., depth]. Raises Refused where they lie along another axis than the last."""
    rank = len(indices.shape)
    if indices.dtype not in (int32, int64) or along not in (rank - 1, rank) or (along == rank and depth != 1):
        raise Refused(f"index vectors {indices} along axis {along}")
    return indices.buffer if along < rank else at.viewed(indices.buffer, (*indices.shape, 1))


@rule("STABLEHLO_SCATTER")
def scatter(at: At) -> None:
    x, indices, updates = (at.operand(i) for i in range(3))
    window, inserted, to = (_numbers(at, name) for name in (
        "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"))  # fmt: skip
    depth, rank = len(to), len(updates.shape)
    y = at.output(x.shape)
    first = list(range(depth))
    if to != first or inserted != first or window != list(range(rank - len(window), rank)) or not depth \
            or len({x.dtype, updates.dtype, y.dtype}) > 1:  # fmt: skip
        raise Refused(f"updates {updates} of {x} along {to}")
    vectors = _vectors(at, indices, int(at.node.options.index_vector_dim), depth)
    if updates.shape != (*vectors.shape[:-1], *x.shape[depth:]):
        raise Refused(f"updates {updates} of parts of slices of {x}")
    kind = _kind(at, "update_computation_subgraph_index", may_be_second=True)
    if kind in ("all", "any") and x.dtype is not bool_:
        raise Refused(f"{kind} of {x.dtype.name}")
    at.form(ScatterNd, y.buffer, updates.buffer, vectors, 0.0, (x.buffer,),
            OF_TRUTH[kind] if kind in ("all", "any") else kind or "set", "left out")  # fmt: skip


@rule("STABLEHLO_GATHER")
def gather(at: At) -> None:
    x, indices = at.operand(0), at.operand(1)
    sizes, collapsed, mapped_, offsets = (_numbers(at, name) for name in (
        "slice_sizes", "collapsed_slice_dims", "start_index_map", "offset_dims"))  # fmt: skip
    depth = len(mapped_)
    vectors = _vectors(at, indices, int(at.option("index_vector_dim")), depth)
    batch = len(vectors.shape) - 1
    whole = [d for d in range(len(x.shape)) if d not in mapped_]
    wanted = [x.shape[d] if d in whole else 1 for d in range(len(x.shape))]
    if not depth or collapsed != mapped_ or sizes != wanted:
        raise Refused(f"slices {sizes} of {x} along {mapped_}")
    last = np.array([x.shape[d] - 1 for d in mapped_], vectors.dtype.np)
    inside = at.new(vectors.dtype, vectors.shape, ".inside")  # a slice that would leave the tensor is moved inside
    limits = Buffer(f"{inside.name}.limits", vectors.dtype, last.shape, last)
    held = apply("minimum", apply("maximum", arg(0, vectors.dtype), const(0, vectors.dtype)), arg(1, vectors.dtype))
    at.form(Map, inside, (vectors, limits), held)
    axis = mapped_[0]
    if mapped_ == list(range(depth)) and offsets == list(range(batch, batch + len(whole))):
        y = at.output((*vectors.shape[:-1], *(x.shape[d] for d in whole)))
        same_numbers(x, y)
        at.form(GatherNd, y.buffer, x.buffer, inside)
    elif depth == 1 and offsets == [*range(axis), *range(axis + batch, batch + len(whole))]:
        y = at.output((*x.shape[:axis], *vectors.shape[:-1], *x.shape[axis + 1 :]))
        same_numbers(x, y)
        at.form(Gather, y.buffer, x.buffer, at.viewed(inside, vectors.shape[:-1]), axis)
    else:
        raise Refused(f"slices of {x} put at {offsets}")
