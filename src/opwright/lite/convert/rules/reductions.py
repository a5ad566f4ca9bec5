"""Rules for reductions over axes, and for what is searched or sorted along one.

Lives here: Sum, Mean, Max, Min, Prod, All, Any and what they have in common; ArgMax, ArgMin, TopK, Sort.
Not here: running sums (direct.py, sequences.py), softmax and norms (nn.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ....core.dtypes import bfloat16, float16, float32, int8, int16, int32, int64, uint8, uint16, uint32
from ....core.specs import TensorSpec
from ....graph import Node, Value
from ....graph.passes.rewriting import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from .direct import front


def axes_tensor(low: LiteRewriter, x: Value, axis: Sequence[int] | None) -> Value:
    """The axes as a constant, counted from the front where the rank is known; all of them for None."""
    rank = x.spec.shape.rank
    if axis is not None:
        return low.int32([front(a, rank) for a in axis])
    if rank is not None:
        return low.int32(range(rank))
    zero, one = low.constant(0, int32), low.constant(1, int32)
    return low.emit("RANGE", zero, low.emit("RANK", x), one, like=TensorSpec([None], int32))


def reduction(op: str, lite: str) -> RewriteRule:
    """A reduction; `axis` of the catalogue is an operand of the lite operator."""

    def lower(node: Node, low: LiteRewriter) -> RuleResult:
        (x,), axis, keep = node.operands, node.attrs["axis"], node.attrs["keepdims"]
        if axis == () or x.spec.shape.rank == 0:
            return x  # nothing to reduce
        return low.emit(lite, x, axes_tensor(low, x, axis), keep_dims=keep, like=node.outputs[0].spec)

    return RewriteRule(lite.lower(), op, lower)


def _arg(op: str, lite: str) -> RewriteRule:
    def lower(node: Node, low: LiteRewriter) -> RuleResult:
        (x,), wanted = node.operands, node.attrs["output_type"]
        axis = low.constant(front(node.attrs["axis"], x.spec.shape.rank), int32)
        if wanted in (int32, int64):
            return low.emit(lite, x, axis, output_type=wanted.name.upper(), like=node.outputs[0].spec)
        return low.cast(low.emit(lite, x, axis, output_type="INT32"), wanted)

    return RewriteRule(lite.lower(), op, lower)


def _top_k(node: Node, low: LiteRewriter) -> RuleResult:
    x, k = node.operands
    values, indices = low.emit_many(
        "TOPK_V2", x, low.int32(k) if k.dtype in (int16, int64) else k, likes=[node.outputs[0].spec]
    )
    wanted = node.outputs[1].dtype
    return values, indices if wanted is int32 else low.cast(indices, wanted)


WIDER = {**dict.fromkeys((int8, uint8, int16, uint16), int32), uint32: int64, float16: float32, bfloat16: float32}
"""By dtype, one in which its numbers are sorted alike."""


def _sort(node: Node, low: LiteRewriter) -> RuleResult:
    """The top n of n are all, largest first; the other way round they are the top n of -x, of ~x = -1 - x for integers
    (which never overflows)."""
    (x,) = node.operands
    n = x.spec.shape.dims[-1] if x.spec.shape.dims else None
    if n is None:
        return NoMatch("TOPK_V2 needs to know how many there are")

    dtype = WIDER.get(x.dtype, x.dtype)  # of others TOPK_V2 or SUB has no kernel
    x = x if dtype is x.dtype else low.cast(x, dtype)

    def turn(v: Value) -> Value:
        if node.attrs["direction"] == "DESCENDING":
            return v
        if not v.dtype.is_integer:
            return low.emit("NEG", v)
        return low.emit("SUB", low.constant(-1, v.dtype), v)

    values, indices = low.emit_many("TOPK_V2", turn(x), low.constant(n, int32))
    values, wanted = turn(values), node.outputs[0].dtype
    return values if values.dtype is wanted else low.cast(values, wanted), indices


REDUCTIONS = rule_table(
    *(
        reduction(op, lite)
        for op, lite in (
            ("Sum", "SUM"),
            ("Mean", "MEAN"),
            ("Max", "REDUCE_MAX"),
            ("Min", "REDUCE_MIN"),
            ("Prod", "REDUCE_PROD"),
            ("All", "REDUCE_ALL"),
            ("Any", "REDUCE_ANY"),
        )
    ),
    _arg("ArgMax", "ARG_MAX"),
    _arg("ArgMin", "ARG_MIN"),
    RewriteRule("topk_v2", "TopK", _top_k),
    RewriteRule("sort", "Sort", _sort, "TOPK_V2 is stable and puts NaN last, as Sort does"),
)
