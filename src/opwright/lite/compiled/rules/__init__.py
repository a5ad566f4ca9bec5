"""Rules that need the interpreter or the shipped custom operators, added to the table of lowering rules.

Lives here: which operators these are, and which builtins have rules of a special kind.
Not here: all other rules, the table (compiler/lowering/).
"""

from __future__ import annotations

from ....compiler.lowering.registry import CUSTOM, LITE, TABLE, USER

STATEFUL = frozenset(
    {
        "LSTM",
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        "RNN",
        "SVDF",
        "UNIDIRECTIONAL_SEQUENCE_RNN",
        "BIDIRECTIONAL_SEQUENCE_RNN",
    }
)
"""Builtins whose rules read and write variables: those among a node's inputs."""

ON_RESOURCES = frozenset({"READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE", "VAR_HANDLE"})
"""Builtins on variables by name, which are known when tensors are allocated. VAR_HANDLE has no rule: it is settled."""

BY_SUBGRAPH = frozenset({"STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SCATTER"})
"""Builtins with rules that join numbers as a subgraph says, which has one operator."""

COUNTED = frozenset({"WHERE", "UNIQUE", "RANGE"})
"""Builtins whose first output has as many rows as they find. Each is a plan of its own, which is right for any number
of them."""

TABLE.add_modules(
    __name__,
    LITE,
    {
        "random": "RANDOM_UNIFORM RANDOM_STANDARD_NORMAL MULTINOMIAL STABLEHLO_RNG_BIT_GENERATOR",
        "reducing": "REDUCE_WINDOW STABLEHLO_REDUCE_WINDOW",
        "slices": "STABLEHLO_SCATTER STABLEHLO_GATHER",
        "variables": "READ_VARIABLE ASSIGN_VARIABLE CALL_ONCE",
    },
)
TABLE.add_modules(
    __name__,
    CUSTOM,
    {
        "audio": "AudioSpectrogram Mfcc",
        "place_pools": "MaxPoolingWithArgmax2D MaxPoolWithArgmax MaxUnpooling2D",
        "random": "RandomUniform RandomUniformInt RandomStandardNormal Multinomial",
        "shipped": "Table Sign Atan2 Roll MeanVarianceNormalization MaxPool3D AvgPool3D AveragePool3D "
        "Convolution2DTransposeBias NumericVerify aeq.hadamard_rotation odml.scaled_dot_product_attention",
    },
)
TABLE.add_modules(__name__, USER, {"written": LITE})
