"""The table of the lite dialect's operators, by the module that defines them.

Lives here: `FAMILIES`, `get(name)`, `list_names()`, `operators()`, the operators defined so far.
Not here: what an operator is (definition.py).

`make families` writes the table, from the classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import InternalError, NotFoundError
from ...core.lazy_imports import load

if TYPE_CHECKING:
    from .definition import LiteOperator

defined: dict[str, LiteOperator] = {}  # by the modules imported so far

# module -> the operators it defines
FAMILIES: dict[str, str] = {
    "activation": "GELU L2_NORMALIZATION LEAKY_RELU LOCAL_RESPONSE_NORMALIZATION LOG_SOFTMAX PRELU SOFTMAX",
    "arithmetic": (
        "ADD ADD_N ATAN2 BITWISE_XOR DIV EQUAL FLOOR_DIV FLOOR_MOD GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND "
        "LOGICAL_OR MAXIMUM MINIMUM MUL NOT_EQUAL POW RIGHT_SHIFT SQUARED_DIFFERENCE SUB"
    ),
    "concatenation": "CONCATENATION MIRROR_PAD PACK PAD PADV2 REVERSE_V2 SPLIT SPLIT_V UNPACK",
    "control": "CALL IF STABLEHLO_CASE STABLEHLO_COMPOSITE WHILE",
    "convolution": "CONV_2D CONV_3D CONV_3D_TRANSPOSE DEPTHWISE_CONV_2D TRANSPOSE_CONV",
    "creation": "DENSIFY FILL MATRIX_DIAG MATRIX_SET_DIAG ONE_HOT RANGE SPARSE_TO_DENSE",
    "elementwise": (
        "ABS CAST CEIL COS ELU EXP FLOOR HARD_SWISH LOG LOGICAL_NOT LOGISTIC NEG RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 "
        "ROUND RSQRT SIGN SIN SQRT SQUARE TANH ZEROS_LIKE"
    ),
    "hash_tables": "HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE",
    "images": (
        "BATCH_TO_SPACE_ND DEPTH_TO_SPACE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SPACE_TO_BATCH_ND SPACE_TO_DEPTH"
    ),
    "lookup": "EMBEDDING_LOOKUP EMBEDDING_LOOKUP_SPARSE HASHTABLE_LOOKUP LSH_PROJECTION",
    "lstm": "BIDIRECTIONAL_SEQUENCE_LSTM LSTM UNIDIRECTIONAL_SEQUENCE_LSTM",
    "matmul": "BATCH_MATMUL FULLY_CONNECTED",
    "pooling": "AVERAGE_POOL_2D DILATE L2_POOL_2D MAX_POOL_2D REDUCE_WINDOW",
    "quantization": "DEQUANTIZE FAKE_QUANT QUANTIZE",
    "random": "MULTINOMIAL RANDOM_STANDARD_NORMAL RANDOM_UNIFORM STABLEHLO_RNG_BIT_GENERATOR",
    "reduction": (
        "CUMSUM MEAN REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD SEGMENT_SUM SUM UNSORTED_SEGMENT_MAX "
        "UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM"
    ),
    "reshape": "BITCAST BROADCAST_ARGS BROADCAST_TO EXPAND_DIMS RANK RESHAPE SHAPE SQUEEZE TILE TRANSPOSE",
    "rnn": "BIDIRECTIONAL_SEQUENCE_RNN RNN SVDF UNIDIRECTIONAL_SEQUENCE_RNN",
    "selection": "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SELECT SELECT_V2 WHERE",
    "slicing": "DYNAMIC_UPDATE_SLICE GATHER GATHER_ND SCATTER_ND SLICE STRIDED_SLICE",
    "sorting": "ARG_MAX ARG_MIN BUCKETIZE REVERSE_SEQUENCE SKIP_GRAM TOPK_V2 UNIQUE",
    "spectral": "COMPLEX_ABS IMAG REAL RFFT2D",
    "stablehlo": (
        "STABLEHLO_ADD STABLEHLO_AND STABLEHLO_GATHER STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_MULTIPLY "
        "STABLEHLO_PAD STABLEHLO_SHIFT_LEFT"
    ),
    "stablehlo_reduction": "STABLEHLO_REDUCE_WINDOW STABLEHLO_SCATTER",
    "state": "ASSIGN_VARIABLE CALL_ONCE READ_VARIABLE VAR_HANDLE",
}

_family_of = {name: module for module, names in FAMILIES.items() for name in names.split()}


def get(name: str) -> LiteOperator:
    """Return the builtin operator of that name, such as "CONV_2D"; imports its family. Raises NotFoundError."""
    load(f"{__package__}.{family_of(name)}")
    if name not in defined:
        raise InternalError(what=f"lite.ops.{family_of(name)} does not define {name}", do="correct lite.ops.FAMILIES")
    return defined[name]


def family_of(name: str) -> str:
    """Return the module of lite.ops that defines an operator. Raises NotFoundError."""
    try:
        return _family_of[name]
    except KeyError:
        raise NotFoundError(
            what="the lite dialect has no operator of this name",
            found=repr(name),
            do="lite.ops.list_names() gives them all",
        ) from None


def list_names() -> list[str]:
    """Return the sorted names of the dialect's operators. Imports nothing."""
    return sorted(_family_of)


def operators() -> dict[str, LiteOperator]:
    """Return the dialect's operators by name, sorted. Imports every family."""
    return {name: get(name) for name in list_names()}
