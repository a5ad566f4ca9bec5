"""Windows over tensors of any rank: REDUCE_WINDOW, STABLEHLO_REDUCE_WINDOW.

Lives here: their rules; `joining`, what a subgraph does with two numbers.
Not here: pools over images (pooling.py), updates joined in place (slices.py).

A window of several axes is reduced an axis after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....compiler.loops.expressions import arg, const, convert
from ....compiler.loops.forms import Buffer, Map, Move, ReduceWindow
from ....core.dtypes import bool as bool_
from ....core.dtypes import uint8
from ....core.errors import OpError
from ...ops.stablehlo_reducing import computation
from ...ops.windows import REDUCERS
from ..nodes import At, Operand, Refused
from .elementwise import truth
from .filling import padded
from .registry import rule

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
    window, strides, base, dilations = (numbers_of(at, name) or [1] * rank for name in (
        "window_dimensions", "window_strides", "base_dilations", "window_dilations"))  # fmt: skip
    padding = numbers_of(at, "padding") or [0] * (2 * rank)
    kind = joining(at, "body_subgraph_index")
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


def numbers_of(at: At, name: str) -> list[int]:
    """An option that is a list; empty where the file has none."""
    found = getattr(at.node.options, name, None)
    return [] if found is None else [int(n) for n in found]


def joining(at: At, name: str, may_be_second: bool = False) -> str | None:
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
    if min(*window, *strides, *dilations, 1) < 1 or start.size != 1 or start.dtype is not x.dtype:
        raise Refused(f"windows {list(window)} over {x}")
    y = at.output([max(n, 0) for n in shape])
    if y.dtype is not x.dtype:
        raise Refused(f"windows over {x} to {y}")
    if not y.size:
        at.form(Move, y.buffer, (), (), 0)
        return
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
