"""Rules of reductions by a region: over axes, of windows, and to the places of gradients of pools.

Lives here: which regions are sums, extrema, positions of extrema or running reductions. Not here: their meaning
(jax/rules/reduction.py, windows.py, cumulative.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ....ops import array
from ...importing import known, tensor_of
from ...jax.operands import dims, dtype_of
from ...jax.rules.cumulative import highest, lowest
from ...jax.rules.windows import padded_window, reduced_windows
from ..execution import RULES, ModuleContext, padding_pairs, primitive, window_numbers
from ..module import Operation, Region

REDUCTIONS = {
    "stablehlo.add": ("sum", "cumsum"),
    "stablehlo.multiply": ("prod", "cumprod"),
    "stablehlo.maximum": ("max", "cummax"),
    "stablehlo.minimum": ("min", "cummin"),
    "stablehlo.and": ("and", ""),
    "stablehlo.or": ("or", ""),
    "stablehlo.xor": ("xor", ""),
}
"""For regions of one operation: the suffix of the primitive that reduces, and the running reduction."""


def single(region: Region, result: int = 0, count: int = 1) -> str | None:
    """Return the operation of the two numbers that a region returns as a result, or None if it is another one."""
    pair = region.arguments[result], region.arguments[count + result]
    owner = region.outputs[result].owner
    if owner is None or len(owner.operands) != 2 or len(owner.results) != 1:
        return None
    ordered = tuple(owner.operands) == pair
    swapped = tuple(owner.operands) == pair[::-1] and owner.name != "stablehlo.subtract"
    return owner.name if ordered or swapped else None


def _neutral(name: str, dtype: Any) -> np.ndarray | None:
    kind = dtype.as_numpy_dtype
    if name in ("stablehlo.add", "stablehlo.or", "stablehlo.xor"):
        return np.zeros((), kind)
    if name == "stablehlo.multiply":
        return np.ones((), kind)
    if name == "stablehlo.and":
        return np.asarray(True) if dtype.is_bool else np.asarray(-1).astype(kind)
    extremum: np.ndarray | None = lowest(dtype) if name == "stablehlo.maximum" else highest(dtype)
    return None if dtype.is_complex else extremum


def _is_neutral(name: str, value: Any) -> bool:
    constant, neutral = known(value), _neutral(name, dtype_of(value))
    return constant is not None and neutral is not None and bool((np.asarray(constant) == neutral).all())


def _with_initial(context: ModuleContext, name: str, result: Any, initial: Any) -> Any:
    """Return a reduction combined with its initial value, unless that is neutral."""
    if _is_neutral(name, initial):
        return result
    context.sizes = dims(result)
    binary = {"stablehlo.maximum": "max", "stablehlo.minimum": "min", "stablehlo.multiply": "mul"}
    return primitive(binary.get(name, name.partition(".")[2]), context, [result, initial])


@RULES.rule("stablehlo.reduce")
def reduce(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return values reduced over axes by the region."""
    axes, region = [int(d) for d in attributes["dimensions"]], context.operation.regions[0]
    half = len(inputs) // 2
    names = [single(region, i, half) for i in range(half)]
    if all(name in REDUCTIONS for name in names):
        return [
            _with_initial(context, name, primitive(f"reduce_{REDUCTIONS[name][0]}", context, [x], axes=axes), initial)
            for name, x, initial in zip(map(str, names), inputs[:half], inputs[half:])
        ]
    position = _position(context, inputs, axes) if half == 2 and len(axes) == 1 else None
    if position is not None:
        return position
    return primitive("reduce", context, inputs, jaxpr=region, dimensions=axes)


# ---- positions of extrema --------------------------------------------------------------------------------------------


def _text(region: Region) -> str:
    """Return the operations of a region as text, in which equal regions are equal."""
    names = {v: f"a{i}" for i, v in enumerate(region.arguments)}

    def text(operation: Operation) -> str:
        rest = operation.attributes.get("comparison_direction", "")
        operands = ",".join(names.get(v) or (text(v.owner) if v.owner else "?") for v in operation.operands)
        return f"{operation.name.partition('.')[2]}{rest}({operands})"

    return ";".join(names.get(v) or (text(v.owner) if v.owner else "?") for v in region.outputs)


def _of_position(order: str, of_floats: bool) -> str:
    better = f"compare{order}(a0,a2)"
    first = f"or({better},compareNE(a0,a0))" if of_floats else better
    place = f"or({first},and(compareEQ(a0,a2),compareLT(a1,a3)))"
    return f"select({first},a0,a2);select({place},a1,a3)"


POSITIONS = {
    _of_position(order, f): name for order, name in (("GT", "argmax"), ("LT", "argmin")) for f in (True, False)
}
"""The regions by which JAX reduces values and positions, and the primitive that computes the positions."""


def _position(context: ModuleContext, inputs: Sequence[Any], axes: Sequence[int]) -> list[Any] | None:
    """Return an extremum and its first position, if that is what the region reduces; else None."""
    if len(context.operation.regions[0].operations) > 12:
        return None
    name = POSITIONS.get(_text(context.operation.regions[0]))
    places, combination = known(inputs[1]), "stablehlo.maximum" if name == "argmax" else "stablehlo.minimum"
    if name is None or places is None or not _is_neutral(combination, inputs[2]) or known(inputs[3]) != 0:
        return None
    (axis,) = axes
    counted = np.arange(places.shape[axis]).reshape([-1 if i == axis else 1 for i in range(places.ndim)])
    if not (places == counted).all():
        return None
    suffix = REDUCTIONS[combination][0]
    index = primitive(name, context, inputs[:1], axes=axes, index_dtype=places.dtype)
    return [primitive(f"reduce_{suffix}", context, inputs[:1], axes=axes), index]


# ---- windows ---------------------------------------------------------------------------------------------------------


def _window(attributes: Any, rank: int) -> dict[str, Any]:
    """Return the parameters of windows as lax has them."""

    def row(name: str) -> list[int]:
        return window_numbers(attributes, name, rank)

    return {
        "window_dimensions": row("window_dimensions"),
        "window_strides": row("window_strides"),
        "base_dilation": row("base_dilations"),
        "window_dilation": row("window_dilations"),
        "padding": padding_pairs(attributes.get("padding"), rank),
    }


def _running(window: dict[str, Any], sizes: Sequence[int]) -> tuple[int, bool] | None:
    """Return the axis of windows that reach from one end to each place, and whether from the last; else None."""
    axes = [i for i, w in enumerate(window["window_dimensions"]) if w > 1]
    plain = all(n == 1 for k in ("window_strides", "base_dilation", "window_dilation") for n in window[k])
    if len(axes) != 1 or not plain or window["window_dimensions"][axes[0]] != sizes[axes[0]]:
        return None
    axis, n = axes[0], sizes[axes[0]]
    if any(any(p) for i, p in enumerate(window["padding"]) if i != axis):
        return None
    ends = {(n - 1, 0): False, (0, n - 1): True}
    return (axis, ends[window["padding"][axis]]) if window["padding"][axis] in ends else None


@RULES.rule("stablehlo.reduce_window")
def reduce_window(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return windows of the operands reduced by the region."""
    region, half = context.operation.regions[0], len(inputs) // 2
    window = _window(attributes, len(dims(inputs[0])))
    name = single(region) if half == 1 else None
    if name in REDUCTIONS and _is_neutral(str(name), inputs[1]):
        suffix, running = REDUCTIONS[str(name)]
        end = _running(window, dims(inputs[0]))
        if end is not None and running:
            return primitive(running, context, inputs[:1], axis=end[0], reverse=end[1])
        if suffix in ("sum", "max", "min"):
            return primitive(f"reduce_window_{suffix}", context, inputs[:1], **window)
    values = [tensor_of(padded_window(x, fill, window)) for x, fill in zip(inputs[:half], inputs[half:])]

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        return context.mapped(region, [*a, *b], dims(a[0]))

    results = reduced_windows(values, combine, window)
    if all(
        _is_neutral(single(region, i, half) or "", f) for i, f in enumerate(inputs[half:]) if single(region, i, half)
    ):
        return results
    starts = [array.broadcast_to(tensor_of(f), list(dims(r))) for f, r in zip(inputs[half:], results)]
    return combine(starts, results)


@RULES.rule("stablehlo.select_and_scatter")
def select_and_scatter(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the source added at the greatest (or least) element of each window of the operand."""
    select, scatter = context.operation.regions
    operand, source, initial = inputs
    owner: Any = select.outputs[0].owner
    direction = "" if owner is None else owner.attributes.get("comparison_direction", "")
    if direction not in ("GE", "GT", "LE", "LT") or list(owner.operands) != select.arguments:
        raise ValueError("windows whose selection is not a comparison of the two numbers have no operator")
    if single(scatter) != "stablehlo.add":
        raise ValueError("a scatter that does not add has no operator")
    chosen = SimpleNamespace(name="ge" if direction in ("GE", "GT") else "le")
    window = _window(attributes, len(dims(operand)))
    result = primitive("select_and_scatter_add", context, [source, operand], select_prim=chosen, **window)
    return _with_initial(context, "stablehlo.add", result, initial)
