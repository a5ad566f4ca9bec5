"""The compiled engine on drawn convolutions and products with a filter: the official answers.

A gap of one step of quantised numbers is allowed beyond what the row allows; floats are as close as the row says.
"""

from __future__ import annotations

import numpy as np
import pytest
from compiled_kit import agrees, compiled_gaps
from drawn import Draw, Drawn, Row, T, differences
from drawn_table import ROWS

from thorough import THOROUGH, sampled

NAMES = frozenset(("CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL"))
EACH = sampled(
    (
        pytest.param(row, kind, id=f"{row.label}-{kind}-{row.path}".replace(" ", "_"))
        for row in ROWS
        if row.name in NAMES
        for kind in row.kinds
    ),
    by=lambda row, kind: row.label,
)
MODELS = [1, pytest.param(12, marks=pytest.mark.slow)]


@pytest.mark.parametrize("models", MODELS)
@pytest.mark.parametrize(("row", "kind"), sampled(EACH, 3, by=lambda row, kind: row.name))
def test_compiled_agrees_with_the_official_kernels(row, kind, models):
    agrees(row, kind, models)


HYBRID = ("CONV_2D hybrid", "CONV_2D hybrid uint8", "DEPTHWISE_CONV_2D hybrid", "FULLY_CONNECTED hybrid")
HYBRID += ("BATCH_MATMUL hybrid", "FULLY_CONNECTED hybrid int4 by block")


@pytest.mark.parametrize("label", HYBRID)
def test_hybrid_products_are_the_official_bits(label):
    """Of both engines: scales, zero points, and the order in which sums are multiplied by the scales."""
    pytest.importorskip("ai_edge_litert.interpreter")
    row = next(row for row in ROWS if row.label == label)
    for seed in range(4 if THOROUGH else 2):
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


def _large_conv(d: Draw) -> Drawn:
    """Computed weights over an image of more rows, channels and features than a tile has."""
    x = d.x(2, 23, 19, 37, zero=0)
    w = d.w(70, 3, 3, 37, axis=0, kind="INT4" if d.kind == "INT8" else None)
    w.constant = False
    scale = float(np.float32(x.scale * float(w.scale.max()) * 900))
    options = {"stride_h": 1, "stride_w": 2, "dilation_h_factor": 2, "dilation_w_factor": 1}
    return Drawn([x, w, d.bias(x, w, 70)], [T(d.kind, (), scale, 0)], options)


def _large_shuffled(d: Draw) -> Drawn:
    x, w = d.x(4, 512, zero=128), T("UINT8", (260, 512), 0.01, 128, values=d.integers("UINT8", (260, 512)))
    w.constant = True
    outputs = [T("INT16", (), float(np.float32(x.scale * 0.01 * 300)), 0), T("UINT8", (4, 512))]
    return Drawn([x, w, d.bias(x, w, 260)], outputs, {"weights_format": "SHUFFLED4x16INT8"})


def _large_join(d: Draw) -> Drawn:
    parts = [d.x(2, 17, 13, n) for n in (1, 40, 96, 3)]
    return Drawn(parts, [T("UINT8", (), parts[1].scale, parts[1].zero)], {"axis": 3})


LARGE = [
    Row("CONV_2D", ("INT8", "INT16"), _large_conv, label="large convolution"),
    Row("FULLY_CONNECTED", ("UINT8",), _large_shuffled, label="large shuffled weights"),
    Row("CONCATENATION", ("UINT8",), _large_join, label="large parts of several scales"),
]


@pytest.mark.parametrize(("row", "kind"), [(row, kind) for row in LARGE for kind in row.kinds], ids=str)
def test_large_shapes(row, kind):
    pytest.importorskip("ai_edge_litert.interpreter")
    for seed in range(2):
        gap, whole, why = compiled_gaps(row, kind, seed)
        assert whole, why
        assert gap <= (row.name != "CONCATENATION"), (seed, gap)
