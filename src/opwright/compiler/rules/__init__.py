"""Rules: what forms of the loop graph a catalogue operator becomes, for `function(jit_compile=True)`.

Lives here: the table `MODULES`, the decorator `rule`, `forms_of`.
Not here: the rules (one module a family of operators), what they are given (nodes.py), files' operators
(lite/compiled/rules/).

    @rule("Transpose")
    def transpose(at):
        x = at.operand(0)
        at.moved_whole(at.output(), x, places(x).transpose(at.attr("perm")))

A rule raises Refused(why) for a node that it has no forms for: that runs as it is, between native stretches.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.origins import load
from ..loops.forms import Form
from .nodes import At, Buffers, Refused

__all__ = ["MODULES", "At", "Buffers", "Refused", "forms_of", "rule"]

Rule = Callable[[At], None]

MODULES: dict[str, str] = {
    name: module
    for module, names in {
        "elementwise": """Abs Acos Acosh Add AddN Asin Asinh Atan Atan2 Atanh BiasAdd BitwiseAnd BitwiseOr BitwiseXor
            Cast Ceil ClipByValue Cos Cosh DivNoNan Elu Equal Erf Erfc Exp Expm1 Floor FloorDiv FloorMod Gelu Greater
            GreaterEqual Invert IsFinite IsInf IsNan LeakyRelu Less LessEqual Log Log1p LogicalAnd LogicalNot LogicalOr
            Maximum Minimum Mul Neg NotEqual Pow RealDiv Reciprocal Relu Relu6 Rint Round Rsqrt Select Selu
            Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Square SquaredDifference Sub Tan Tanh Xdivy""",
        "contractions": "Conv2D DepthwiseConv2dNative MatMul",
        "contraction_gradients": "Conv2DBackpropFilter Conv2DBackpropInput",
        "pools": "AvgPool AvgPoolGrad MaxPool MaxPoolGrad ResizeBilinear ResizeNearestNeighbor",
        "reductions": "All Any ArgMax ArgMin BiasAddGrad Cumsum L2Loss Max Mean Min Prod Sum SumToLike",
        "rows": """FusedBatchNorm LRN LayerNorm LogSoftmax Softmax SoftmaxCrossEntropyWithLogits
            SparseSoftmaxCrossEntropyWithLogits""",
        "ordering": "Sort TopK",
        "recurrent": "DynamicGru",
        "shaping": "EnsureShape ExpandDims Reshape Squeeze",
        "movement": """BatchToSpaceND BroadcastTo Concat DepthToSpace Gather GatherNd OneHot Pack Pad Reverse
            Slice SpaceToBatchND SpaceToDepth Split SplitV StridedSlice StridedSliceGrad Tile Transpose Unpack""",
    }.items()
    for name in names.split()
}
"""By operator, the module of this package that has its rule; loaded on demand. Users' operators: written.py."""

_rules: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: this function is the rule of these operators."""

    def register(function: Rule) -> Rule:
        _rules.update(dict.fromkeys(names, function))
        return function

    return register


def forms_of(at: At) -> list[Form]:
    """The forms of a node. Raises Refused where there are none."""
    op = at.node.op
    name = op.name
    if not op.catalogue:
        from .written import written

        written(at)
        return at.forms
    if name not in MODULES:
        raise Refused(f"no rule for {name}")
    load(f"{__name__}.{MODULES[name]}")
    _rules[name](at)
    return at.forms
