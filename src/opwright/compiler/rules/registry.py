"""The registry of rules from catalogue operators to the loop graph.

Lives here: the table `MODULES`, the decorator `rule`, the rules of the modules imported so far.
Not here: the rules (one module a family of operators), asking one (`forms_of` of the package).
"""

from __future__ import annotations

from collections.abc import Callable

from .nodes import At

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

RULES: dict[str, Rule] = {}
"""Of the modules imported so far."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: this function is the rule of these operators."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register
