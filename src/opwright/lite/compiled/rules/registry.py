"""The registry of rules from builtin operators to the loop graph.

Lives here: the table `MODULES`, the decorator `rule`, which operators have rules of a special kind.
Not here: the rules (one module a family of operators), asking one (`forms_of` of the package).
"""

from __future__ import annotations

from ....compiler.loops.rule_table import RuleTable

MODULES: dict[str, str] = {
    name: module
    for module, names in {
        "contractions": "CONV_2D DEPTHWISE_CONV_2D TRANSPOSE_CONV FULLY_CONNECTED Convolution2DTransposeBias",
        "arithmetic": "ADD SUB MUL DIV FLOOR_DIV FLOOR_MOD POW MAXIMUM MINIMUM SQUARED_DIFFERENCE ATAN2 ADD_N",
        "stablehlo": "STABLEHLO_ADD STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_AND "
                     "STABLEHLO_SHIFT_LEFT",
        "audio": "AudioSpectrogram Mfcc",
        "comparison": "EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL LOGICAL_AND LOGICAL_OR BITWISE_XOR "
                      "RIGHT_SHIFT SELECT SELECT_V2",
        "elementwise": "ABS NEG EXP LOG SQRT RSQRT SQUARE SIN COS TANH FLOOR CEIL ROUND SIGN LOGICAL_NOT ZEROS_LIKE",
        "casting": "CAST",
        "quantizing": "QUANTIZE DEQUANTIZE FAKE_QUANT DENSIFY NumericVerify",
        "activations": "RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 LOGISTIC HARD_SWISH ELU GELU LEAKY_RELU PRELU",
        "images": "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR",
        "place_pools": "MaxPoolingWithArgmax2D MaxPoolWithArgmax MaxUnpooling2D",
        "pooling": "AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D",
        "moving": "PAD RESHAPE SQUEEZE EXPAND_DIMS CONCATENATION PACK",
        "views": "TRANSPOSE SLICE STRIDED_SLICE BROADCAST_TO REVERSE_V2 SPLIT SPLIT_V UNPACK",
        "blocks": "TILE SPACE_TO_DEPTH DEPTH_TO_SPACE SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND MIRROR_PAD",
        "filling": "FILL RANGE ONE_HOT DILATE PADV2 STABLEHLO_PAD MATRIX_DIAG MATRIX_SET_DIAG BITCAST BUCKETIZE",
        "sizes": "SHAPE RANK BROADCAST_ARGS WHERE UNIQUE",
        "caches": "odml.update_external_kv_cache",
        "landmarks": "DenseImageWarp Resampler TransformLandmarks TransformTensorBilinear TransformTensor "
                     "Landmarks2TransformMatrix",
        "lookups": "GATHER GATHER_ND SCATTER_ND EMBEDDING_LOOKUP DYNAMIC_UPDATE_SLICE SPARSE_TO_DENSE "
                   "EMBEDDING_LOOKUP_SPARSE HASHTABLE_LOOKUP",
        "hashing": "LSH_PROJECTION",
        "ordering": "TOPK_V2",
        "products": "BATCH_MATMUL",
        "reductions": "SUM MEAN REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_ANY REDUCE_ALL ARG_MAX ARG_MIN CUMSUM",
        "spectral": "RFFT2D Rfft2d IRFFT2D Irfft2d REAL IMAG COMPLEX_ABS Complex",
        "volumes": "CONV_3D CONV_3D_TRANSPOSE",
        "random": "RANDOM_UNIFORM RANDOM_STANDARD_NORMAL MULTINOMIAL STABLEHLO_RNG_BIT_GENERATOR RandomUniform "
                  "RandomUniformInt RandomStandardNormal Multinomial",
        "segments": "SEGMENT_SUM UNSORTED_SEGMENT_SUM UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN "
                    "REVERSE_SEQUENCE",
        "variables": "READ_VARIABLE ASSIGN_VARIABLE CALL_ONCE",
        "recurrent": "LSTM UNIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_LSTM",
        "recurrence": "RNN UNIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_RNN SVDF UNIDIRECTIONAL_SEQUENCE_GRU",
        "suppression": "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 TFLite_Detection_PostProcess",
        "reducing": "REDUCE_WINDOW STABLEHLO_REDUCE_WINDOW",
        "slices": "STABLEHLO_SCATTER STABLEHLO_GATHER",
        "shipped": "Table Sign Atan2 Roll MeanVarianceNormalization MaxPool3D AvgPool3D AveragePool3D "
                   "aeq.hadamard_rotation odml.scaled_dot_product_attention",
        "rows": "SOFTMAX LOG_SOFTMAX L2_NORMALIZATION LOCAL_RESPONSE_NORMALIZATION",
    }.items()
    for name in names.split()
}
"""By operator, builtin or shipped custom, the module with its rule; loaded on demand. Users' operators: written.py."""

STATEFUL = frozenset({"LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", "RNN", "SVDF",
                      "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN"})
"""Builtins whose rules read and write variables: those among a node's inputs."""

ON_RESOURCES = frozenset({"READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE", "VAR_HANDLE"})
"""Builtins on variables by name, which are known when tensors are allocated. VAR_HANDLE has no rule: it is settled."""

BY_SUBGRAPH = frozenset({"STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SCATTER"})
"""Builtins with rules that join numbers as a subgraph says, which has one operator."""

COUNTED = frozenset({"WHERE", "UNIQUE", "RANGE"})
"""Builtins whose first output has as many rows as they find. Each is a plan of its own, which is right for any number
of them."""

TABLE = RuleTable(__package__, MODULES)
rule = TABLE.rule
