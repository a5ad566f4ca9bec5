"""The registry of rules from catalogue operators to the loop graph.

Lives here: the table `MODULES`, the decorator `rule`.
Not here: the rules (one module a family of operators), asking one (`forms_of` of the package).
"""

from __future__ import annotations

from ...scalar.table import OF_OPERATOR
from ..loops.rule_table import RuleTable

IN_NUMPY = ("TruncateDiv", "TruncateMod")
"""Functions of the table whose quotients of floats, beyond 2^22, NumPy and kernels round differently."""

MODULES: dict[str, str] = {
    name: module
    for module, names in {
        "elementwise": f"AddN BiasAdd Cast {' '.join(name for name in OF_OPERATOR if name not in IN_NUMPY)}",
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

TABLE = RuleTable(__package__, MODULES)
rule = TABLE.rule
