"""Rules of computed indices: gather, scatter, dynamic slices.

Lives here: dimension numbers in the form of lax. Not here: their meaning (jax/rules/indexing.py and scatter.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ....ops import array
from ....ops.array_shapes import axes_last
from ...importing import tensor_of
from ...jax.operands import dims, reshape, transpose
from ..execution import RULES, ModuleContext, primitive
from .arrays import numbers
from .reduction import single

SCATTERS = {
    "stablehlo.add": "scatter-add",
    "stablehlo.maximum": "scatter-max",
    "stablehlo.minimum": "scatter-min",
    "stablehlo.multiply": "scatter-mul",
    "stablehlo.subtract": "scatter-sub",
    "stablehlo.or": "scatter-max",
    "stablehlo.and": "scatter-min",
}
"""The primitive that combines by an operation; `or` and `and` of bool only."""


def _axes(roles: Mapping[str, Any], *names: str) -> dict[str, list[int]]:
    return {name: [int(i) for i in roles.get(name, ())] for name in names}


def _indices_last(indices: Any, roles: Mapping[str, Any]) -> Any:
    """Return indices with their vectors along the last axis."""
    axis, rank = int(roles["index_vector_dim"]) if "index_vector_dim" in roles else 0, len(dims(indices))
    if axis == rank:
        return reshape(indices, [*dims(indices), 1])
    return transpose(indices, axes_last([axis], rank)[0])


def _gather(context: ModuleContext, x: Any, indices: Any, roles: Mapping[str, Any], sizes: Sequence[int]) -> Any:
    names = ("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims")
    numbers_ = SimpleNamespace(**_axes(roles, *names, "start_indices_batching_dims"))
    indices = _indices_last(indices, roles)
    removed = {*numbers_.collapsed_slice_dims, *numbers_.operand_batching_dims}
    batch, offsets = iter(dims(indices)[:-1]), iter(s for i, s in enumerate(sizes) if i not in removed)
    rank = len(numbers_.offset_dims) + len(dims(indices)) - 1
    context.sizes = tuple(next(offsets) if d in numbers_.offset_dims else next(batch) for d in range(rank))
    return primitive("gather", context, [x, indices], dimension_numbers=numbers_, slice_sizes=tuple(sizes), mode="CLIP")


@RULES.rule("stablehlo.gather")
def gather(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return slices at indices, which are moved so that slices lie within x."""
    sizes = [int(s) for s in attributes["slice_sizes"]]
    return _gather(context, inputs[0], inputs[1], attributes["dimension_numbers"], sizes)


@RULES.rule("stablehlo.dynamic_gather")
def dynamic_gather(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the same of computed sizes."""
    sizes = numbers(inputs[2], "a size of a slice")
    return _gather(context, inputs[0], inputs[1], attributes["dimension_numbers"], sizes)


@RULES.rule("stablehlo.scatter")
def scatter(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return x with updates at indices combined by the region; updates that do not lie within x are dropped."""
    count, region = len(inputs) // 2, context.operation.regions[0]
    roles = attributes["scatter_dimension_numbers"]
    numbers_ = _axes(roles, "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims")
    numbers_["operand_batching_dims"] = [int(i) for i in roles.get("input_batching_dims", ())]
    numbers_ |= _axes(roles, "scatter_indices_batching_dims")
    indices = _indices_last(inputs[count], roles)
    names = _combinations(region, count)
    values, updates = inputs[:count], inputs[count + 1 :]
    return [
        primitive(name, context, [x, indices, u], dimension_numbers=SimpleNamespace(**numbers_), mode="FILL_OR_DROP")
        for name, x, u in zip(names, values, updates)
    ]


def _combinations(region: Any, count: int) -> list[str]:
    """Return the primitive of each operand. Raises ValueError for regions that no operator computes."""
    names = []
    for i, output in enumerate(region.outputs):
        if output is region.arguments[count + i]:
            names.append("scatter")
            continue
        name = SCATTERS.get(single(region, i, count) or "", "")
        if not name or (
            region.outputs[i].owner.name in ("stablehlo.or", "stablehlo.and") and not output.type.dtype.is_bool
        ):
            raise ValueError("a scatter whose region is not one operation of the two numbers has no operator")
        names.append(name)
    return names


@RULES.rule("stablehlo.dynamic_slice")
def dynamic_slice(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the slice of static sizes at starts, which are moved so that it lies within x."""
    return primitive("dynamic_slice", context, inputs, slice_sizes=[int(s) for s in attributes["slice_sizes"]])


@RULES.rule("stablehlo.dynamic_update_slice")
def dynamic_update_slice(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return x with a slice replaced."""
    return primitive("dynamic_update_slice", context, inputs)


@RULES.rule("stablehlo.torch_index_select")
def torch_index_select(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return x at indices along an axis."""
    batch = int(attributes["batch_dims"])
    return array.gather(tensor_of(inputs[0]), tensor_of(inputs[1]), axis=int(attributes["dim"]), batch_dims=batch)
