"""Rules for strings, which few official kernels take: operators that only move elements become one GATHER.

Lives here: these operators.  Not here: operators whose kernels take strings as they are (arrays.py, indexing.py).

Known shapes determine the position of each element of a result: the operator runs on element numbers, and GATHER takes
these from the flat tensor.
"""

from __future__ import annotations

import numpy as np

from ....core.dtypes import int32, string
from ....core.errors import OpError
from ....core.specs import TensorSpec
from ....graph import Node
from ....graph.passes.rewrite_rules import RewriteRule
from ....ops import registry
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table

MOVERS = ("BroadcastTo", "Gather", "Reverse", "Roll", "Split", "SplitV", "Transpose")
LARGEST = 1 << 16  # elements of all results: each costs the file four bytes


def _by_number(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, *others = node.operands
    if x.dtype is not string:
        return NoMatch("it is for strings")
    if not x.spec.shape.is_fully_defined() or any(v.constant is None for v in others):
        return NoMatch("where each string comes from must be known: give x a fixed shape, and constants for the rest")
    sizes = [d or 0 for d in x.spec.shape.dims or ()]
    numbers = np.arange(int(np.prod(sizes)), dtype=np.int32).reshape(sizes)
    stand_in = Node(registry.get("Const"), (), {"value": numbers}, [TensorSpec(sizes, int32)], "numbers").outputs[0]
    try:
        places = node.op.evaluate((stand_in, *node.inputs[1:]), node.attrs)
    except OpError as error:
        return NoMatch(error.message)
    if sum(p.size for p in places) > LARGEST:
        return NoMatch(f"it gives more than {LARGEST} strings")
    flat = x if len(sizes) == 1 else rewriter.emit("RESHAPE", x, rewriter.int32([-1]))
    return tuple(
        rewriter.emit("GATHER", flat, rewriter.constant(np.ascontiguousarray(p, np.int32), int32), like=v.spec)
        for p, v in zip(places, node.outputs)
    )


def _gather_rows(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, indices = list(node.operands)[:2]
    if x.dtype is not string or node.attrs["axis"] != 0 or node.attrs["batch_dims"]:
        return NoMatch("it is for strings, taken along the first axis")
    if indices.spec.shape.rank is None:
        return NoMatch("the rank of the indices is not known")
    places = rewriter.emit("EXPAND_DIMS", indices, rewriter.int32([indices.spec.shape.rank]))
    return rewriter.emit("GATHER_ND", x, places, like=node.outputs[0].spec)


STRINGS = rule_table(
    *(RewriteRule("strings_by_number", name, _by_number, "the numbers go the same way") for name in MOVERS),
    RewriteRule("strings_by_rows", "Gather", _gather_rows, "GATHER_ND takes strings of any rank"),
)
