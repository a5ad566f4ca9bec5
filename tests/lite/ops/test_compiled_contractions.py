"""The compiled engine on drawn convolutions and products with a filter: the official answers.

A gap of one step of quantised numbers is allowed beyond what the row allows; floats are as close as the row says.
"""

from __future__ import annotations

import pytest
from compiled_kit import compiled_gaps
from drawn_table import ROWS

NAMES = frozenset(("CONV_2D", "FULLY_CONNECTED", "BATCH_MATMUL"))
NARROW = ("INT8", "UINT8", "INT16")
EACH = [pytest.param(row, kind, id=f"{row.label}-{kind}-{row.path}".replace(" ", "_"))
        for row in ROWS if row.name in NAMES for kind in row.kinds]  # fmt: skip
MODELS = 3


@pytest.mark.parametrize(("row", "kind"), EACH)
def test_compiled_agrees_with_the_official_kernels(row, kind):
    pytest.importorskip("ai_edge_litert.interpreter")
    allowed = row.within + (1 if kind in NARROW else 0)
    for seed in range(MODELS):
        gap, _, _ = compiled_gaps(row, kind, seed)
        assert gap <= allowed, f"seed {seed}: {gap:.3g} from the official answer, allowed {allowed:.3g}"


TAKEN = ["CONV_2D", "CONV_2D hybrid", "CONV_2D int4", "FULLY_CONNECTED", "FULLY_CONNECTED hybrid",
         "FULLY_CONNECTED int4", "FULLY_CONNECTED hybrid int4", "BATCH_MATMUL", "BATCH_MATMUL hybrid"]  # fmt: skip


@pytest.mark.parametrize(("row", "kind"), [
    pytest.param(row, kind, id=f"{row.label}-{kind}".replace(" ", "_")) for row in ROWS if row.label in TAKEN
    for kind in row.kinds if row.path == "REF" and (row.name, kind) != ("BATCH_MATMUL", "INT16")])  # fmt: skip
def test_it_is_compiled(row, kind):
    """At least one of a few models of each."""
    reasons = []
    for seed in range(20):
        _, whole, why = compiled_gaps(row, kind, seed)
        if whole:
            return
        reasons.append(why)
    pytest.fail(f"none of {len(reasons)} models compiled: {sorted(set(reasons))}")
