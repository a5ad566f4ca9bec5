"""The compiled engine on drawn models of operators that no other module of tests is about: the official answers, of all
types, and machine code for at least one model of each type, on both kinds of vectors."""

from __future__ import annotations

import pytest
from compiled_kit import NARROW, compiled_gaps
from drawn_table import ROWS
from foreign import HERE

from opwright.core import flags
from thorough import THOROUGH

NAMES = (
    "ONE_HOT",
    "DILATE",
    "STABLEHLO_PAD",
    "MATRIX_DIAG",
    "MATRIX_SET_DIAG",
    "BITCAST",
    "BUCKETIZE",
    "STABLEHLO_ADD",
    "STABLEHLO_MULTIPLY",
    "STABLEHLO_MAXIMUM",
    "STABLEHLO_MINIMUM",
    "STABLEHLO_AND",
    "STABLEHLO_SHIFT_LEFT",
    "RFFT2D",
    "REAL",
    "IMAG",
    "COMPLEX_ABS",
    "RNN",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    "BIDIRECTIONAL_SEQUENCE_RNN",
    "SVDF",
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "AudioSpectrogram",
    "Mfcc",
    "EMBEDDING_LOOKUP_SPARSE",
    "PADV2",
    "SHAPE",
    "RANK",
    "aeq.hadamard_rotation",
    "odml.scaled_dot_product_attention",
    "STABLEHLO_GATHER",
    "STABLEHLO_SCATTER",
    "STABLEHLO_RNG_BIT_GENERATOR",
    "LSH_PROJECTION",
    "NumericVerify",
    "odml.update_external_kv_cache",
    "odml.update_kv_cache",
)
SLOW = ("REDUCE_WINDOW", "STABLEHLO_REDUCE_WINDOW")
"""Of which many models are drawn until one has windows; lite/compiled/test_compiled_reductions.py has quick ones."""
INTERPRETED = {("SHAPE", "STRING"), ("RANK", "STRING"), ("LSH_PROJECTION", "STRING")}
"""Operators and types that stay with the interpreter."""
REORDERED = {"FLOAT32": 1e-6, "FLOAT64": 1e-15}
"""The tolerance of float sums in another order."""
MANY = 2
"""Rows of an operator that share their types: each row tries every second type."""
MODELS = 1
MOST = 12  # models of a type until one is compiled


def check(name: str, every: int) -> None:
    """All rows of an operator. every: the step between the types of a row; the next begins with another."""
    pytest.importorskip("ai_edge_litert.interpreter")
    rows = [row for row in ROWS if row.name == name]
    if len(rows) >= MANY and not THOROUGH:
        every *= 2
    for number, row in enumerate(rows):
        for kind in row.kinds[number % every :: every] or row.kinds:
            allowed = row.within + (1 if kind in NARROW else REORDERED.get(kind, 0))
            reasons, seed, taken = set(), 0, False
            while seed < MODELS or not (taken or seed >= MOST or (name, kind) in INTERPRETED):
                gap, whole, why = compiled_gaps(row, kind, seed)
                assert gap <= allowed, (row.label, kind, seed, gap)
                taken, seed = taken or whole, seed + 1
                reasons.add(why)
            assert taken != ((name, kind) in INTERPRETED), (row.label, kind, reasons)


@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("name", [*NAMES, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_compiled_agrees_with_the_official_kernels(name, target):
    with flags.override(target=target, verify=True):
        check(name, 1 if target == HERE[0] or THOROUGH else 2)  # types differ less on the second kind of vectors


RARE = [
    ("DEPTHWISE_CONV_2D hybrid", "FLOAT32", 4),  # several images of which each has 105 elements
    ("EMBEDDING_LOOKUP_SPARSE", "FLOAT32", 3),  # a dense shape of one number
    ("RESHAPE by option, scaled", "INT16", 0),  # to [0], a scalar of old files
    ("CAST", "COMPLEX64", 7),  # to its own type
]
"""Rows, types and the first draws that have a form which other draws lack."""


@pytest.mark.parametrize(("label", "kind", "seed"), RARE)
def test_rare_forms_are_compiled_and_agree(label, kind, seed):
    pytest.importorskip("ai_edge_litert.interpreter")
    row = next(row for row in ROWS if row.label == label and kind in row.kinds)
    gap, _, why = compiled_gaps(row, kind, seed)
    assert gap <= row.within + REORDERED["FLOAT32"], gap
    assert not why, why
