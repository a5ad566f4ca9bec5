"""The compiled engine on drawn models that move elements, reduce them or normalise rows: the official answers.

A gap of one step of quantised numbers is allowed beyond what the row allows; floats are as close as the row says.
"""

from __future__ import annotations

import pytest
from compiled_kit import NARROW, agrees, compiled_gaps
from drawn_table import ROWS

from thorough import THOROUGH, sampled

NAMES = frozenset(
    (
        "SUM",
        "MEAN",
        "REDUCE_MAX",
        "REDUCE_MIN",
        "REDUCE_PROD",
        "REDUCE_ANY",
        "REDUCE_ALL",
        "ARG_MAX",
        "ARG_MIN",
        "SOFTMAX",
        "LOG_SOFTMAX",
        "L2_NORMALIZATION",
        "LOCAL_RESPONSE_NORMALIZATION",
        "TRANSPOSE",
        "SLICE",
        "STRIDED_SLICE",
        "PAD",
        "PADV2",
        "MIRROR_PAD",
        "CONCATENATION",
        "SPLIT",
        "SPLIT_V",
        "PACK",
        "UNPACK",
        "TILE",
        "BROADCAST_TO",
        "SPACE_TO_DEPTH",
        "DEPTH_TO_SPACE",
        "SPACE_TO_BATCH_ND",
        "BATCH_TO_SPACE_ND",
        "REVERSE_V2",
        "GATHER",
        "EMBEDDING_LOOKUP",
        "RESHAPE",
        "SQUEEZE",
        "EXPAND_DIMS",
        "BATCH_MATMUL",
        "LSTM",
        "CUMSUM",
        "GATHER_ND",
        "HASHTABLE_LOOKUP",
        "SCATTER_ND",
        "DYNAMIC_UPDATE_SLICE",
        "TOPK_V2",
        "NON_MAX_SUPPRESSION_V4",
        "NON_MAX_SUPPRESSION_V5",
        "TFLite_Detection_PostProcess",
        "CONV_3D",
        "CONV_3D_TRANSPOSE",
        "SEGMENT_SUM",
        "UNSORTED_SEGMENT_SUM",
        "UNSORTED_SEGMENT_PROD",
        "UNSORTED_SEGMENT_MAX",
        "UNSORTED_SEGMENT_MIN",
        "REVERSE_SEQUENCE",
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "BIDIRECTIONAL_SEQUENCE_LSTM",
    )
)
UNTAKEN = ("STRING", "INT4", "UINT4", "INT2")
"""Types that stay with the interpreter."""
FIRST = ("FLOAT32", "INT8")
"""Types that are tried in each run of the tests."""
PAIRS = [(row, kind) for row in ROWS if row.name in NAMES for kind in row.kinds if kind not in UNTAKEN]
EACH = [
    pytest.param(
        row,
        kind,
        id=f"{row.label}-{kind}-{row.path}".replace(" ", "_"),
        marks=() if kind in FIRST else pytest.mark.slow,
    )
    for row, kind in PAIRS
]
EACH = sampled(EACH, by=lambda row, kind: (row.name, kind))
MODELS = 2 if THOROUGH else 1


@pytest.mark.parametrize(("row", "kind"), EACH)
def test_compiled_agrees_with_the_official_kernels(row, kind):
    agrees(row, kind, MODELS)


TAKEN = [
    ("SOFTMAX", "INT8"),
    ("SOFTMAX", "INT16"),
    ("SOFTMAX", "FLOAT32"),
    ("LOG_SOFTMAX", "FLOAT32"),
    ("L2_NORMALIZATION", "FLOAT32"),
    ("LOCAL_RESPONSE_NORMALIZATION", "FLOAT32"),
    ("MEAN", "INT8"),
    ("MEAN", "FLOAT32"),
    ("SUM", "INT32"),
    ("REDUCE_MAX", "UINT8"),
    ("REDUCE_MIN", "INT64"),
    ("REDUCE_PROD", "FLOAT32"),
    ("REDUCE_ANY", "BOOL"),
    ("REDUCE_ALL", "BOOL"),
    ("ARG_MAX", "FLOAT32"),
    ("ARG_MIN", "INT8"),
    ("TRANSPOSE", "BFLOAT16"),
    ("SLICE", "INT64"),
    ("STRIDED_SLICE", "FLOAT32"),
    ("PAD", "INT8"),
    ("MIRROR_PAD", "FLOAT32"),
    ("CONCATENATION", "INT8"),
    ("CONCATENATION rescaled", "UINT8"),
    ("SPLIT", "FLOAT32"),
    ("SPLIT_V", "FLOAT32"),
    ("PACK", "INT32"),
    ("UNPACK", "FLOAT32"),
    ("TILE", "FLOAT32"),
    ("BROADCAST_TO", "BOOL"),
    ("SPACE_TO_DEPTH", "INT8"),
    ("DEPTH_TO_SPACE", "FLOAT32"),
    ("BATCH_TO_SPACE_ND", "FLOAT32"),
    ("SPACE_TO_BATCH_ND", "FLOAT32"),
    ("REVERSE_V2", "FLOAT32"),
    ("GATHER", "FLOAT32"),
    ("EMBEDDING_LOOKUP", "FLOAT32"),
    ("RESHAPE", "FLOAT32"),
    ("SQUEEZE", "INT8"),
    ("CUMSUM", "FLOAT32"),
    ("GATHER_ND", "INT8"),
    ("HASHTABLE_LOOKUP", "COMPLEX64"),
    ("HASHTABLE_LOOKUP", "COMPLEX128"),
    ("SCATTER_ND", "FLOAT32"),
    ("DYNAMIC_UPDATE_SLICE", "FLOAT32"),
    ("EXPAND_DIMS", "INT16"),
    ("BATCH_MATMUL", "FLOAT32"),
    ("LSTM", "FLOAT32"),
    ("TOPK_V2", "FLOAT32"),
    ("TOPK_V2", "INT64"),
    ("TOPK_V2", "INT8"),
    ("NON_MAX_SUPPRESSION_V4", "FLOAT32"),
    ("NON_MAX_SUPPRESSION_V5", "FLOAT32"),
    ("TFLite_Detection_PostProcess", "FLOAT32"),
    ("TFLite_Detection_PostProcess", "UINT8"),
    ("CONV_3D", "FLOAT32"),
    ("CONV_3D computed weights", "FLOAT32"),
    ("CONV_3D_TRANSPOSE computed weights", "FLOAT32"),
    ("CONV_3D_TRANSPOSE", "FLOAT32"),
    ("SEGMENT_SUM", "FLOAT32"),
    ("UNSORTED_SEGMENT_MAX", "FLOAT32"),
    ("UNSORTED_SEGMENT_PROD", "INT32"),
    ("REVERSE_SEQUENCE", "FLOAT32"),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", "FLOAT32"),
    ("BIDIRECTIONAL_SEQUENCE_LSTM", "FLOAT32"),
]


@pytest.mark.parametrize(("name", "kind"), TAKEN)
def test_it_is_compiled(name, kind):
    """At least one of a few models of each, whose axes and sizes are in the file."""
    rows = [row for row in ROWS if name in (row.name, row.label) and kind in row.kinds]
    reasons = []
    for row in rows:
        for seed in range(20):
            gap, whole, why = compiled_gaps(row, kind, seed)
            if whole:
                assert gap <= row.within + (1 if kind in NARROW else 1e-5), (row.label, seed, gap)
                return
            reasons.append(why)
    pytest.fail(f"none was compiled: {reasons[:4]}")
