"""Windows over tensors of any rank: REDUCE_WINDOW, STABLEHLO_REDUCE_WINDOW.

Lives here: their rules; `combination_kind`, the kind of reduction that a subgraph of two numbers computes.
Not here: pooling over images (pooling.py), scatter (slices.py).

A window over several axes is reduced one axis after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import uint8
from ...core.errors import OpError
from ..loops.buffers import Buffer
from ..loops.expressions import arg, const, convert
from ..loops.ops import Map, Move, ReduceWindow
from .context import LoweringContext, NoLowering, RuleOperand
from .elementwise import truth
from .padding import padded
from .registry import rule

KINDS: dict[Any, str] = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}
"""Kinds of reductions by the function of two numbers."""
BOOL_KINDS = {"sum": "max", "any": "max", "max": "max", "prod": "min", "all": "min", "min": "min"}
"""Kinds of reductions of booleans as bytes of 0 and 1."""


@rule("REDUCE_WINDOW")
def reduce_window(ctx: LoweringContext) -> None:
    x = ctx.operand(0)
    window, strides, dilations = ([int(n) for n in ctx.constant(index)] for index in (2, 3, 4))
    function = ctx.node.call.reducer()
    if function is None or not len(window) == len(strides) == len(dilations) == len(x.shape):
        raise NoLowering(f"windows {window} over {x}")
    _windows(ctx, x.buffer, ctx.operand(1), KINDS[function], window, strides, dilations)


@rule("STABLEHLO_REDUCE_WINDOW")
def stablehlo_reduce_window(ctx: LoweringContext) -> None:
    """Lower STABLEHLO_REDUCE_WINDOW; the tensor is first dilated and padded with the initial value."""
    x, start, rank = ctx.operand(0), ctx.operand(1), len(ctx.operand(0).shape)
    window, strides, base, dilations = (
        numbers_of(ctx, name) or [1] * rank
        for name in ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    )
    padding = numbers_of(ctx, "padding") or [0] * (2 * rank)
    kind = combination_kind(ctx)
    lists = (window, strides, base, dilations)
    if kind is None or len(padding) != 2 * rank or any(len(numbers) != rank for numbers in lists):
        raise NoLowering(f"windows {window} over {x}")
    source = x.buffer
    if any(padding) or any(n != 1 for n in base):
        low, high = padding[::2], padding[1::2]
        sizes = [a + (n - 1) * k + 1 + b for a, n, k, b in zip(low, x.shape, base, high)]
        if min(sizes, default=1) < 1 or not x.size:
            raise NoLowering(f"{x} padded to {sizes}")
        source = ctx.new(x.dtype, sizes, ".padded")
        padded(ctx, source, x, low, [k - 1 for k in base], start)
    _windows(ctx, source, start, kind, window, strides, dilations)


def numbers_of(ctx: LoweringContext, name: str) -> list[int]:
    """Return an attribute that is a list; empty if the file omits it."""
    return [int(n) for n in ctx.attr(name) or ()]


def combination_kind(ctx: LoweringContext) -> str | None:
    """Return the kind of reduction that the node's graph of two numbers computes; None for its second argument
    itself."""
    try:
        function = ctx.node.call.combination()
    except OpError as error:
        raise NoLowering(error.message) from None
    return None if function is None else KINDS[function]


def _windows(
    ctx: LoweringContext,
    x: Buffer,
    start: RuleOperand,
    kind: str,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> None:
    """Reduce windows, the last axis first. Raises NoLowering for unsupported windows."""
    shape = [(n - (w - 1) * d - 1) // s + 1 for n, w, s, d in zip(x.shape, window, strides, dilations)]
    if min(*window, *strides, *dilations, 1) < 1 or start.size != 1 or start.dtype is not x.dtype:
        raise NoLowering(f"windows {list(window)} over {x}")
    y = ctx.output([max(n, 0) for n in shape])
    if y.dtype is not x.dtype:
        raise NoLowering(f"windows over {x} to {y}")
    if not y.size:
        ctx.add(Move, y.buffer, (), (), 0)
        return
    first, target, close = ctx.viewed(start.buffer, ()), y.buffer, None
    if x.dtype is bool_:
        kind = BOOL_KINDS[kind]
        x, first = ctx.bits(x, uint8, x.shape), ctx.bits(first, uint8, ())
        target = ctx.new(uint8, shape, ".truth")
        close = target
    elif kind in ("all", "any"):
        x, first = (_as_truth(ctx, b) for b in (x, first))
        kind = BOOL_KINDS[kind]
    axes = [axis for axis in reversed(range(len(shape))) if window[axis] > 1 or strides[axis] > 1] or [len(shape) - 1]
    for number, axis in enumerate(axes):
        last = number == len(axes) - 1
        sizes = (*x.shape[:axis], shape[axis], *x.shape[axis + 1 :])
        reduced = target if last else ctx.new(x.dtype, sizes, f".axis{axis}")
        ctx.add(
            ReduceWindow, reduced, x, axis, window[axis], strides[axis], dilations[axis], kind, (first,) if last else ()
        )
        x = reduced
    if close is not None:
        ctx.add(Map, y.buffer, (close,), truth("not_equal", arg(0, uint8), const(0, uint8)))


def _as_truth(ctx: LoweringContext, b: Buffer) -> Buffer:
    """Return elements as 0 or 1."""
    flags = ctx.new(b.dtype, b.shape, f".{b.name}.truth")
    ctx.add(Map, flags, (b,), convert(truth("not_equal", arg(0, b.dtype), const(0, b.dtype)), b.dtype))
    return flags
