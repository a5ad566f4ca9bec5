"""Operators on types that no builtin operator takes: computed in a wider type, between casts.

Lives here: `WiderTypes`, which derives rules for such nodes from the tables; the operators for which that is exact.
Not here: the rules (rules/), types that official kernels refuse (rewriter.py). float64 and uint64 have no wider type.

Results of float16 and bfloat16 are those of float32, rounded; between two such operators they are not rounded, as XLA
does by default ("excess precision"). Integers keep all their bits: sums and products of int32 wrap to those of fewer
bits, and quotients, remainders and comparisons of numbers that fit int32 are the same there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from ...core.dtypes import DType, bfloat16, float16, float32, int8, int16, int32, int64, uint8, uint16, uint32
from ...graph import Node, Value
from ...graph.ir import map_operands
from ...graph.passes.rewrite_rules import RewriteRule
from .rewriter import LiteRewriter, NoMatch, Rewrite, RuleResult

WIDER_FLOAT: dict[DType, DType] = {float16: float32, bfloat16: float32}
WIDER_INTEGER: dict[DType, DType] = {int8: int32, uint8: int32, int16: int32, uint16: int32, uint32: int64}
EXACT_FLOAT: dict[DType, DType] = {int8: float32, uint8: float32, int16: float32, uint16: float32}

ON_BITS = frozenset(["AsString", "AssignVariable", "Bitcast", "Cast", "Const", "NextAfter", "Print", "ReadVariable"])
"""Operators whose result depends on the type itself."""

_SAME_INTEGERS = """
Abs Add AddN BitwiseAnd BitwiseOr BitwiseXor ClipByValue Cumprod Cumsum Equal FloorDiv FloorMod Greater GreaterEqual
Invert LeftShift Less LessEqual Max Maximum Min Minimum Mul Neg NotEqual Prod Range Relu RightShift Sign Square
SquaredDifference Sub Sum TopK TruncateDiv TruncateMod
"""
ON_INTEGERS = frozenset(_SAME_INTEGERS.split())
"""Operators that give the same integers in a wider type, after the cast back."""

OF_MAXIMA = frozenset(["MaxPool"])
"""Operators that select elements, for which the builtin operator is one of float32."""


class WiderTypes:
    """The wider types of one graph. exact: results by value of the new graph, before they were rounded."""

    def __init__(self, rewriter: LiteRewriter) -> None:
        self._rewriter = rewriter
        self.exact: dict[Value, Value] = {}

    def rules(self, node: Node, rules: Sequence[RewriteRule]) -> Iterator[RewriteRule]:
        """Yield the rules of a node's operator, each for the node in a wider type; none if no type would be exact."""
        wider = self._wider(node)
        for rule in rules if wider else ():
            yield dataclasses.replace(rule, rewrite=self._in(wider, rule))

    def _wider(self, node: Node) -> dict[DType, DType]:
        name, here = node.op.name, {v.dtype for v in (*node.operands, *node.outputs)}
        if name in ON_BITS or any(node.subgraphs):
            return {}
        integers = WIDER_INTEGER if name in ON_INTEGERS else EXACT_FLOAT if name in OF_MAXIMA else {}
        result = {d: w for d, w in (WIDER_FLOAT | integers).items() if d in here}
        return {} if any(type(a) is DType and a in result for a in node.attrs.values()) else result

    def _in(self, wider: dict[DType, DType], rule: RewriteRule) -> Rewrite:
        def widened(value: Value) -> Value:
            if value.dtype not in wider:
                return value
            to = wider[value.dtype]
            if value.constant is not None:
                return self._rewriter.constant(value.constant.astype(to.np), to)
            return self.exact.get(value) or self._rewriter.cast(value, to)

        def rewrite(node: Node, rewriter: LiteRewriter) -> RuleResult:
            specs = [v.spec.with_dtype(wider.get(v.dtype, v.dtype)) for v in node.outputs]
            result = rule.rewrite(node.replaced(inputs=map_operands(widened, node.inputs), specs=specs), rewriter)
            if isinstance(result, NoMatch):
                return result
            values = (result,) if isinstance(result, Value) else tuple(result)
            narrow = []
            for old, value in zip(node.outputs, values):
                narrow.append(value if value.dtype is old.dtype else rewriter.cast(value, old.dtype))
                if old.dtype in WIDER_FLOAT and value.dtype is float32:
                    self.exact[narrow[-1]] = value
            return narrow

        return rewrite
