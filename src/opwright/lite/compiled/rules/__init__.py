"""Rules that build on arithmetic of the lite dialect's operators, added to the table of lowering rules.

Lives here: which operators these are.  Not here: all other rules, the table (compiler/lowering/).
"""

from __future__ import annotations

from ....compiler.lowering.registry import CUSTOM, LITE, TABLE

TABLE.add_modules(
    __name__,
    LITE,
    {
        "random": "RANDOM_UNIFORM RANDOM_STANDARD_NORMAL MULTINOMIAL STABLEHLO_RNG_BIT_GENERATOR",
        "reducing": "REDUCE_WINDOW STABLEHLO_REDUCE_WINDOW",
        "slices": "STABLEHLO_SCATTER STABLEHLO_GATHER",
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
