"""The table of rules that lower operators to the loop graph.

Lives here: `RuleTable`, `TABLE`, the decorator `rule`, `lower`.
Not here: the rules, a module for each family; rules of other packages, which add their modules to the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...core.lazy_imports import load
from ...scalar.table import OF_OPERATOR
from ..loops.forms import Form
from .context import LoweringContext, NoLowering

CATALOGUE, LITE, CUSTOM, USER = "catalogue", "lite", "custom", "user"
"""Dialects: the catalogue's operators, the builtins of files, shipped custom operators, users' operators. One rule,
under the dialect's name, lowers the kernels of all users' operators."""

Rule = Callable[[LoweringContext], None]


class RuleTable:
    """Rules by dialect and operator, each in a module that is imported when the rule is first looked up.

    modules: by dialect and operator, the module with its rule.
    """

    def __init__(self) -> None:
        self.modules: dict[str, dict[str, str]] = {}
        self._rules: dict[tuple[str, str], Rule] = {}

    def add_modules(self, package: str, dialect: str, operators: Mapping[str, str]) -> None:
        """Declare the rules of a package. operators: by module, names separated by spaces."""
        modules = self.modules.setdefault(dialect, {})
        for module, names in operators.items():
            modules.update(dict.fromkeys(names.split(), f"{package}.{module}"))

    def rule(self, *names: str) -> Callable[[Rule], Rule]:
        """Register the decorated function as its module's rule of these operators, of any dialect."""

        def register(function: Rule) -> Rule:
            self._rules.update(((function.__module__, name), function) for name in names)
            return function

        return register

    def find(self, dialect: str, name: str) -> Rule | None:
        """Return the rule of an operator, or None if it has none; imports its module."""
        module = self.modules.get(dialect, {}).get(name)
        if module is None:
            return None
        load(module)
        return self._rules.get((module, name))


TABLE = RuleTable()
TABLE.add_modules(
    __package__,
    LITE,
    {
        "contractions": "CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED",
        "arithmetic": "ADD SUB MUL DIV FLOOR_DIV FLOOR_MOD POW MAXIMUM MINIMUM SQUARED_DIFFERENCE ATAN2 STABLEHLO_ADD "
        "STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_AND STABLEHLO_SHIFT_LEFT",
        "comparison": "EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL SELECT SELECT_V2",
        "functions": "ABS NEG EXP LOG SQRT RSQRT SQUARE SIN COS TANH FLOOR CEIL ROUND SIGN LOGICAL_NOT LOGICAL_AND "
        "LOGICAL_OR BITWISE_XOR RIGHT_SHIFT LOGISTIC HARD_SWISH ELU ADD_N ZEROS_LIKE",
        "type_conversion": "CAST",
        "quantizing": "QUANTIZE DEQUANTIZE FAKE_QUANT DENSIFY",
        "activations": "RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 GELU LEAKY_RELU PRELU",
        "images": "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR",
        "pooling": "AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D",
        "moves": "PAD CONCATENATION PACK",
        "views": "RESHAPE SQUEEZE EXPAND_DIMS TRANSPOSE SLICE STRIDED_SLICE BROADCAST_TO REVERSE_V2 SPLIT SPLIT_V "
        "UNPACK",
        "blocks": "TILE SPACE_TO_DEPTH DEPTH_TO_SPACE SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND MIRROR_PAD",
        "filling": "FILL RANGE ONE_HOT DILATE PADV2 STABLEHLO_PAD MATRIX_DIAG MATRIX_SET_DIAG BITCAST BUCKETIZE",
        "lookups": "GATHER GATHER_ND SCATTER_ND EMBEDDING_LOOKUP DYNAMIC_UPDATE_SLICE SPARSE_TO_DENSE "
        "EMBEDDING_LOOKUP_SPARSE HASHTABLE_LOOKUP LSH_PROJECTION",
        "ordering": "TOPK_V2 SHAPE RANK BROADCAST_ARGS WHERE UNIQUE SEGMENT_SUM UNSORTED_SEGMENT_SUM "
        "UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN REVERSE_SEQUENCE",
        "products": "BATCH_MATMUL",
        "reductions": "SUM MEAN REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_ANY REDUCE_ALL ARG_MAX ARG_MIN CUMSUM",
        "spectral": "RFFT2D IRFFT2D REAL IMAG COMPLEX_ABS",
        "transposed_convolutions": "TRANSPOSE_CONV",
        "volumes": "CONV_3D CONV_3D_TRANSPOSE",
        "recurrent": "LSTM UNIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_LSTM",
        "recurrence": "RNN UNIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_RNN SVDF",
        "suppression": "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5",
        "rows": "SOFTMAX LOG_SOFTMAX L2_NORMALIZATION LOCAL_RESPONSE_NORMALIZATION",
        "variables": "READ_VARIABLE ASSIGN_VARIABLE CALL_ONCE",
        "random": "RANDOM_UNIFORM RANDOM_STANDARD_NORMAL MULTINOMIAL STABLEHLO_RNG_BIT_GENERATOR",
        "reduce_window": "REDUCE_WINDOW STABLEHLO_REDUCE_WINDOW",
        "slices": "STABLEHLO_SCATTER STABLEHLO_GATHER",
    },
)
TABLE.add_modules(
    __package__,
    CUSTOM,
    {
        "attention": "aeq.hadamard_rotation odml.scaled_dot_product_attention",
        "audio": "AudioSpectrogram Mfcc",
        "functions": "Sign Atan2",
        "images": "DenseImageWarp Resampler TransformLandmarks TransformTensorBilinear TransformTensor "
        "Landmarks2TransformMatrix",
        "lookups": "odml.update_external_kv_cache",
        "moves": "Roll",
        "norms": "MeanVarianceNormalization",
        "pooling_places": "MaxPoolingWithArgmax2D MaxPoolWithArgmax MaxUnpooling2D",
        "quantizing": "Table NumericVerify",
        "random": "RandomUniform RandomUniformInt RandomStandardNormal Multinomial",
        "recurrence": "UNIDIRECTIONAL_SEQUENCE_GRU",
        "spectral": "RFFT2D IRFFT2D Rfft2d Irfft2d Complex",
        "suppression": "TFLite_Detection_PostProcess",
        "transposed_convolutions": "Convolution2DTransposeBias",
        "volumes": "MaxPool3D AvgPool3D AveragePool3D",
    },
)
TABLE.add_modules(
    __package__,
    CATALOGUE,
    {
        "blocks": "BatchToSpaceND DepthToSpace SpaceToBatchND SpaceToDepth Tile",
        "contractions": "Conv2D DepthwiseConv2dNative",
        "filling": "OneHot",
        "functions": f"AddN BiasAdd Cast {' '.join(OF_OPERATOR)}",
        "gradients": "AvgPoolGrad Conv2DBackpropFilter MaxPoolGrad",
        "images": "ResizeBilinear ResizeNearestNeighbor",
        "lookups": "Gather GatherNd",
        "moves": "Concat Pack Pad",
        "norms": "FusedBatchNorm LayerNorm SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits",
        "ordering": "Sort TopK",
        "pooling": "AvgPool MaxPool",
        "products": "MatMul",
        "recurrence": "DynamicGru",
        "reductions": "All Any ArgMax ArgMin BiasAddGrad Cumsum L2Loss Max Mean Min Prod Sum SumToLike",
        "rows": "LogSoftmax LRN Softmax",
        "transposed_convolutions": "Conv2DBackpropInput",
        "views": "BroadcastTo EnsureShape ExpandDims Reshape Reverse Slice Split SplitV Squeeze StridedSlice "
        "StridedSliceGrad Transpose Unpack",
    },
)
TABLE.add_modules(__package__, USER, {"user_kernels": USER})
rule = TABLE.rule


def lower(ctx: LoweringContext) -> list[Form]:
    """Return the loops of a node. Raises NoLowering if there are none."""
    function = TABLE.find(ctx.node.dialect, ctx.operator)
    if function is None:
        raise NoLowering(f"no rule for {ctx.operator}")
    function(ctx)
    return ctx.forms
