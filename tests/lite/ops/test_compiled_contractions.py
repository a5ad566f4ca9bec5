"""The compiled engine on drawn convolutions and products with a filter: the official answers.

A gap of one step of quantised numbers is allowed beyond what the row allows; floats are as close as the row says.
"""

from __future__ import annotations

import pytest
from compiled_kit import agrees, compiled_gaps
from drawn import differences
from drawn_table import ROWS

NAMES = frozenset(("CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL"))
EACH = [
    pytest.param(row, kind, id=f"{row.label}-{kind}-{row.path}".replace(" ", "_"))
    for row in ROWS
    if row.name in NAMES
    for kind in row.kinds
]
MODELS = [2, pytest.param(12, marks=pytest.mark.slow)]


@pytest.mark.parametrize("models", MODELS)
@pytest.mark.parametrize(("row", "kind"), EACH)
def test_compiled_agrees_with_the_official_kernels(row, kind, models):
    agrees(row, kind, models)


HYBRID = ("CONV_2D hybrid", "CONV_2D hybrid uint8", "DEPTHWISE_CONV_2D hybrid", "FULLY_CONNECTED hybrid")
HYBRID += ("BATCH_MATMUL hybrid", "FULLY_CONNECTED hybrid int4 by block")


@pytest.mark.parametrize("label", HYBRID)
def test_hybrid_products_are_the_official_bits(label):
    """Of both engines: scales, zero points, and the order in which sums are multiplied by the scales."""
    pytest.importorskip("ai_edge_litert.interpreter")
    row = next(row for row in ROWS if row.label == label)
    for seed in range(4):
        assert compiled_gaps(row, "FLOAT32", seed)[0] == 0, seed
        assert max(float(gap.max(initial=0)) for gap in differences(row, "FLOAT32", seed)) == 0, seed


TAKEN = [
    "CONV_2D",
    "CONV_2D hybrid",
    "CONV_2D hybrid uint8",
    "CONV_2D int4",
    "CONV_2D any shape, int4",
    "CONV_2D computed weights",
    "CONV_2D int4, computed weights",
    "FULLY_CONNECTED",
    "FULLY_CONNECTED hybrid",
    "FULLY_CONNECTED hybrid uint8",
    "FULLY_CONNECTED int4",
    "FULLY_CONNECTED hybrid int4",
    "FULLY_CONNECTED shuffled",
    "FULLY_CONNECTED to int16",
    "FULLY_CONNECTED computed weights",
    "BATCH_MATMUL",
    "BATCH_MATMUL hybrid",
]


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        pytest.param(row, kind, id=f"{row.label}-{kind}".replace(" ", "_"))
        for row in ROWS
        if row.label in TAKEN
        for kind in row.kinds
        if row.path == "REF" and (row.name, kind) != ("BATCH_MATMUL", "INT16")
    ],
)
def test_it_is_compiled(row, kind):
    """At least one of a few models of each."""
    reasons = []
    for seed in range(20):
        _, whole, why = compiled_gaps(row, kind, seed)
        if whole:
            return
        reasons.append(why)
    pytest.fail(f"none of {len(reasons)} models compiled: {sorted(set(reasons))}")
