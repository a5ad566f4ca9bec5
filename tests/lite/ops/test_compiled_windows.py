"""The compiled engine on drawn models that slide windows over images or resize them: the official answers.

A gap of one step of quantised numbers is allowed beyond what the row allows; floats are as close as the row says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled_kit import agrees, compiled_gaps
from drawn_table import ROWS
from lite_kit import Build, run

from opwright import lite
from opwright.core import flags
from thorough import sampled

RNG = np.random.default_rng(5)

NAMES = frozenset(
    (
        "DEPTHWISE_CONV_2D",
        "TRANSPOSE_CONV",
        "AVERAGE_POOL_2D",
        "MAX_POOL_2D",
        "RESIZE_BILINEAR",
        "RESIZE_NEAREST_NEIGHBOR",
        "L2_POOL_2D",
        "Convolution2DTransposeBias",
    )
)
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


TAKEN = [
    *(
        (name, kind)
        for name in sorted(NAMES)
        for kind in ("FLOAT32", "INT8")
        if name not in ("L2_POOL_2D", "Convolution2DTransposeBias")
    ),
    ("Convolution2DTransposeBias", "FLOAT32"),
    ("TRANSPOSE_CONV hybrid", "FLOAT32"),
    ("L2_POOL_2D", "FLOAT32"),
    ("MAX_POOL_2D", "INT16"),
    ("DEPTHWISE_CONV_2D hybrid", "FLOAT32"),
    ("DEPTHWISE_CONV_2D int4", "INT8"),
    ("DEPTHWISE_CONV_2D any shape, int4", "INT8"),
    ("AVERAGE_POOL_2D", "INT16"),
    ("DEPTHWISE_CONV_2D", "INT16"),
    ("TRANSPOSE_CONV", "INT16"),
    ("RESIZE_BILINEAR", "INT16"),
    ("RESIZE_NEAREST_NEIGHBOR", "INT16"),
]


@pytest.mark.parametrize(("label", "kind"), TAKEN)
def test_it_is_compiled(label, kind):
    """At least one of a few models of each, whose sizes are in the file."""
    reasons = []
    for row in (row for row in ROWS if label in (row.name, row.label) and kind in row.kinds):
        for seed in range(20):
            _, whole, why = compiled_gaps(row, kind, seed)
            if whole:
                return
            reasons.append(why)
    pytest.fail(f"{len(reasons)} models, none compiled: {sorted(set(reasons))}")


def test_the_dilation_of_a_window_of_one_column_may_be_any_number() -> None:
    x, w = (RNG.normal(size=shape).astype(np.float32) for shape in ((1, 4, 6, 8), (1, 3, 1, 8)))
    build = Build().tensor("x", x.shape).tensor("w", data=w).tensor("b", data=np.zeros(8, np.float32))
    options: dict[str, Any] = {
        "padding": "SAME",
        "stride_w": 1,
        "stride_h": 1,
        "depth_multiplier": 1,
        "dilation_h_factor": 1,
    }
    options |= dict.fromkeys(("stride_w", "stride_h", "depth_multiplier"), 1)
    content = build.tensor("y", x.shape).op("DEPTHWISE_CONV_2D", "x w b", "y", 2, **options)
    with flags.override(compiled=True, background=False):
        interpreter = lite.Interpreter(model_content=content.done())
        interpreter.allocate_tensors()
        (y,) = run(interpreter, [x])
    rows = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (0, 0), (0, 0)))
    np.testing.assert_allclose(y, sum(rows[:, i : i + 4] * w[0, i, 0] for i in range(3)), rtol=1e-5, atol=1e-6)
