"""Element-wise operators as machine code: the drawn models of the table operator x type, against the official kernels.

Floats within 1e-5 of the greatest, integers equal, quantised ones within one step. What stays with the interpreter, and
why, is in a table, too.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter

import numpy as np
import pytest
from drawn import Draw, Row, T, answers, feeds, gap_of, model_of
from drawn_table import ROWS
from one_operator import case, official_interpreter, output_types
from one_operator import feeds as feeds_of
from one_operator import model_of as model_of_case

from each_row import each_row
from opwright.compiler.lowering.registry import MODULES as RULES
from opwright.core import flags
from opwright.lite import Interpreter
from opwright.lite.compiled.delegate import CompiledDelegate
from thorough import THOROUGH, sampled

pytestmark = pytest.mark.usefixtures("reference_engine")  # the delegate under test is passed by hand

MINE = ("arithmetic", "functions", "type_conversion", "quantization")
MODULES = {name: module.rpartition(".")[2] for name, module in RULES.items()}
PROGRAMS = ("STABLEHLO_COMPOSITE",)
"""Operators whose rows are programs (lite/compiled/test_composites.py)."""
PAIRS = [
    (row, kind) for row in ROWS if MODULES.get(row.name) in MINE and row.name not in PROGRAMS for kind in row.kinds
]
MODELS = int(os.environ.get("OPWRIGHT_MODELS", "2" if THOROUGH else "1"))
ROUNDING = {"FLOAT16": 1e-3, "BFLOAT16": 8e-3, "FLOAT64": 1e-15}

INTERPRETED = {  # (label, kind; None: all): what the refusal says
    ("EQUAL", "STRING"): "str",
    ("NOT_EQUAL", "STRING"): "str",
}


def expected(row: Row, kind: str) -> str | None:
    return INTERPRETED.get((row.label, kind), INTERPRETED.get((row.label, None)))


def within(row: Row, kind: str, output: T) -> float:
    if output.type.startswith(("FLOAT", "BFLOAT")):
        return max(row.within, ROUNDING.get(output.type, 1e-5), ROUNDING.get(kind, 0))
    exact = row.name in ("MAXIMUM", "MINIMUM", "SELECT_V2", "BITWISE_XOR") or row.label.endswith("by shifts")
    scaled = output.scale is not None and not exact
    return max(row.within, float(scaled))


def filled(row: Row, kind: str) -> list[int]:
    """The first seeds that draw no empty tensor: those have nothing to compute."""
    seeds = (s for s in range(100 * MODELS) if all(t is None or t.values.size for t in row.draw(Draw(s, kind)).inputs))
    return list(itertools.islice(seeds, MODELS))


def tried(row: Row, kind: str, seed: int) -> str:
    """Why the model stays with the interpreter; "" where it does not, and gives what the official kernels give."""
    drawn = row.draw(Draw(seed, kind))
    model = model_of(row.name, drawn)
    content = model.to_bytes()
    ours = Interpreter(model_content=content, experimental_delegates=[])
    delegate = CompiledDelegate()
    ours._delegate(delegate, strict=True)
    ours.allocate_tensors()
    assert delegate.failure is None
    if delegate.refused:
        return next(iter(delegate.refused.values()))
    actual = answers(ours, feeds(drawn), 1)
    reference = answers(official_interpreter(model, row.path, content=content), feeds(drawn), 1)
    for a, b, t in zip(actual, reference, drawn.outputs, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        gap = float(gap_of(a, b).max(initial=0))
        assert gap <= within(row, kind, t), (seed, gap, a, b, [x.values for x in drawn.inputs if x is not None])
    return ""


@each_row(
    "row, kind",
    sampled(
        [pytest.param(r, k, id=f"{r.label}-{k}-{r.path}") for r, k in PAIRS],
        every=12,
        by=lambda row, kind: row.label.split()[0],
    ),
    by=lambda row, kind: row.label.split()[0],
)
def test_gives_what_the_official_kernels_give(row: Row, kind: str) -> None:
    pytest.importorskip("ai_edge_litert.interpreter")
    reasons = Counter(tried(row, kind, seed) for seed in filled(row, kind))
    reason = expected(row, kind)
    if reason is None:
        assert reasons[""], reasons
    else:
        assert all(reason in actual for actual in reasons if actual), reasons
        assert not reasons[""], "it has a kernel now: the table is out of date"


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_a_shift_beyond_the_type_leaves_nothing(dtype: type, compiled: bool) -> None:
    """StableHLO's specification of shift_left, in Python's integers."""
    bits = np.dtype(dtype).itemsize * 8
    x, by = np.meshgrid([1, -1, 77, -(1 << bits - 1)], [0, 1, bits - 1, bits, bits + 1, -1, -bits, 100])
    row = case(x.astype(dtype), by.astype(dtype), oracle=False)
    model = model_of_case("STABLEHLO_SHIFT_LEFT", row, output_types("STABLEHLO_SHIFT_LEFT", row))
    with flags.override(compiled=compiled, background=False):
        (actual,) = answers(Interpreter(model_content=model.to_bytes()), feeds_of(row), 1)
    reference = [
        (a << b) % (1 << bits) if 0 <= b < bits else 0 for a, b in zip(x.ravel().tolist(), by.ravel().tolist())
    ]
    assert (actual.ravel().astype(np.int64) % (1 << bits)).tolist() == reference
