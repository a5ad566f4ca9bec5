"""Rules of sorting by a region that compares.

Lives here: comparisons of one key after the other as keys; any other order by counting.
Not here: lexicographic orders of keys (jax/rules/sorting.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....ops import array, bitwise, math
from ...importing import tensor_of
from ...jax.operands import cast, dims, dtype_of, like, reshape, transpose
from ...jax.rules.sorting import along_last
from ..execution import RULES, ModuleContext, primitive
from ..module import HloValue, Operation, Region

MAX_COUNTED = 4096
"""The greatest number of elements along the axis that are ordered by comparing all pairs."""


class SortKey(NamedTuple):
    """A value of the left element that is compared with the same of the right one."""

    value: HloValue
    descending: bool
    total: bool


def _keys(region: Region) -> list[SortKey] | None:
    """Return the keys by which a region compares two elements; None for another order."""
    left = set(region.arguments[::2])

    def mirrored(a: HloValue, b: HloValue) -> bool:
        """Return whether b is of the right element what a is of the left one."""
        if a in region.arguments or b in region.arguments:
            return a in left and region.arguments.index(a) + 1 == (
                region.arguments.index(b) if b in region.arguments else -1
            )
        if a.owner is None or b.owner is None or a.owner.name != b.owner.name:
            return a is b
        if a is b:
            return a.owner not in region.operations
        same = repr(a.owner.attributes) == repr(b.owner.attributes)
        return (
            same
            and len(a.owner.operands) == len(b.owner.operands)
            and all(
                x is y if x not in region.arguments and x.owner not in region.operations else mirrored(x, y)
                for x, y in zip(a.owner.operands, b.owner.operands)
            )
        )

    def compared(value: HloValue, directions: Sequence[str]) -> Operation | None:
        owner = value.owner
        if owner is None or owner.name != "stablehlo.compare":
            return None
        fits = owner.attributes["comparison_direction"] in directions and mirrored(*owner.operands)
        return owner if fits else None

    def chain(value: HloValue, depth: int) -> list[SortKey] | None:
        order = compared(value, ("LT", "GT"))
        if order is not None:
            descending = order.attributes["comparison_direction"] == "GT"
            plain = order.operands[0] in region.arguments
            total = plain and order.attributes.get("compare_type") == "TOTALORDER"
            return [SortKey(order.operands[0], descending, total)]
        owner = value.owner
        if owner is None or owner.name != "stablehlo.or" or depth > 16:
            return None
        first, rest = chain(owner.operands[0], depth + 1), owner.operands[1].owner
        if first is None or len(first) > 1 or rest is None or rest.name != "stablehlo.and":
            return None
        same, others = compared(rest.operands[0], ("EQ",)), chain(rest.operands[1], depth + 1)
        return None if same is None or others is None or same.operands[0] is not first[0].value else [*first, *others]

    return chain(region.outputs[0], 0)


def _evaluated(context: ModuleContext, region: Region, key: SortKey, rows: Sequence[Any]) -> Any:
    """Return a key of all elements."""
    part = Region()
    part.arguments, part.operations, part.outputs = region.arguments, region.operations, [key.value]
    value = context.mapped(part, [row for row in rows for _ in range(2)], dims(rows[0]))[0]
    value = cast(value, np.uint8) if dtype_of(value).is_bool else tensor_of(value)
    if key.total and value.dtype.is_floating:
        return _ordered_bits(value, key.descending)
    if not key.descending:
        return value
    return math.negative(value) if value.dtype.is_floating else bitwise.invert(value)


def _ordered_bits(x: Any, descending: bool) -> Any:
    """Return integers in the total order of floats: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""
    signed: Any = {2: np.int16, 4: np.int32, 8: np.int64}[x.dtype.size]
    word = array.bitcast(x, signed)
    greatest = like(np.iinfo(signed).max, word)
    ordered = array.where(math.less(word, like(0, word)), bitwise.bitwise_xor(word, greatest), word)
    return bitwise.invert(ordered) if descending else ordered


@RULES.rule("stablehlo.sort")
def sort(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the operands in the order of the region, a stable one."""
    rank, region = len(dims(inputs[0])), context.operation.regions[0]
    axis = int(attributes.get("dimension", -1)) % max(rank, 1)
    if dims(inputs[0])[axis] < 2:
        return list(inputs)
    keys = _keys(region)
    order = [i for i in range(rank) if i != axis] + [axis]
    back = [int(i) for i in np.argsort(order)]
    rows = [tensor_of(transpose(v, order)) for v in inputs]
    if keys is None:
        indices = _by_counting(context, region, rows)
        return [transpose(along_last(v, indices), back) for v in rows]
    values = [_evaluated(context, region, key, rows) for key in keys]
    sole = len(inputs) == 1 and len(keys) == 1 and not keys[0].descending and not keys[0].total
    if sole and not dtype_of(inputs[0]).is_bool:
        return primitive("sort", context, inputs, dimension=axis, num_keys=1)
    results = primitive("sort", context, [*values, *rows], dimension=rank - 1, num_keys=len(values))
    return [transpose(v, back) for v in results[len(values) :]]


def _by_counting(context: ModuleContext, region: Region, rows: Sequence[Any]) -> Any:
    """Return the indices of any order: an element's place is how many others stand before it."""
    sizes = dims(rows[0])
    n, batch = sizes[-1], sizes[:-1]
    if n > MAX_COUNTED:
        raise ValueError(f"an order that is not a comparison of keys is for at most {MAX_COUNTED} elements, found {n}")
    full = [*batch, n, n]
    pairs = []
    for row in rows:
        pairs.append(array.broadcast_to(tensor_of(reshape(row, [*batch, n, 1])), full))
        pairs.append(array.broadcast_to(tensor_of(reshape(row, [*batch, 1, n])), full))
    before = context.mapped(region, pairs, full)[0]  # [i, j]: i stands before j
    swapped = transpose(before, [*range(len(batch)), len(batch) + 1, len(batch)])
    earlier = np.arange(n)[:, None] < np.arange(n)
    tied = math.logical_and(math.logical_not(math.logical_or(before, swapped)), tensor_of(earlier))
    place = math.reduce_sum(cast(math.logical_or(before, tied), np.int32), len(batch))
    return math.argsort(place, axis=len(batch), stable=True)
