"""Rules for reductions.

Lives here: Sum, Mean, Max, Min, Prod, All, Any and what they have in common.
Not here: arg reductions, running sums, sorting (indexing.py), softmax and norms (nn.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ....core.dtypes import int32
from ....core.specs import TensorSpec
from ....graph import Node, Value
from ..lowering import Lowered, Lowering, Rule, table


def axes_tensor(low: Lowering, x: Value, axis: Sequence[int] | None) -> Value:
    """The axes as a constant, counted from the front where the rank is known; all of them for None."""
    rank = x.spec.shape.rank
    if axis is not None:
        return low.int32([a + rank if a < 0 and rank is not None else a for a in axis])
    if rank is not None:
        return low.int32(range(rank))
    zero, one = low.constant(0, int32), low.constant(1, int32)
    return low.emit("RANGE", zero, low.emit("RANK", x), one, like=TensorSpec([None], int32))


def reduction(op: str, lite: str) -> Rule:
    """A reduction; `axis` of the catalogue is an operand of the lite operator."""

    def lower(node: Node, low: Lowering) -> Lowered:
        (x,), axis, keep = node.operands, node.attrs["axis"], node.attrs["keepdims"]
        if axis == () or x.spec.shape.rank == 0:
            return x  # nothing to reduce
        return low.emit(lite, x, axes_tensor(low, x, axis), keep_dims=keep, like=node.outputs[0].spec)

    return Rule(lite.lower(), op, lower)


REDUCTIONS = table(
    *(reduction(op, lite) for op, lite in (
        ("Sum", "SUM"), ("Mean", "MEAN"), ("Max", "REDUCE_MAX"), ("Min", "REDUCE_MIN"), ("Prod", "REDUCE_PROD"),
        ("All", "REDUCE_ALL"), ("Any", "REDUCE_ANY"),
    )),
)  # fmt: skip
