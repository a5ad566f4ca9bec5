"""Drawn models of one operator run by the compiled engine, against the official kernels.

Lives here: `compiled_gaps`, `agrees`, `taken`.  Not here: the rows (drawn_rows_*.py), the tests (test_compiled_*.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn import Draw, Row, answers, feeds, gap_of, model_of
from one_operator import official_interpreter

from opwright.core import flags
from opwright.lite import Interpreter


def taken(interpreter: Any) -> bool:
    """Whether every node is run as machine code; the fast path is a plan of all nodes, of an earlier process."""
    if interpreter._fast_path is not None:
        return True
    engine = interpreter._engine
    plan = interpreter._subgraphs[0].execution_plan
    return engine is not None and engine.delegate is not None and all(n.delegate is engine.delegate for n in plan)


def compiled_gaps(row: Row, kind: str, seed: int) -> tuple[float, bool, str]:
    """The largest gap to the official answers (see drawn.gap_of), whether it was compiled, and why not."""
    drawn = row.draw(Draw(seed, kind))
    model = model_of(row.name, drawn)
    with flags.override(compiled=True, background=False):
        interpreter = Interpreter(model_content=model.to_bytes())
        actual = answers(interpreter, feeds(drawn), drawn.runs)
        whole = taken(interpreter)
        delegate = interpreter._engine.delegate if interpreter._engine is not None else None
        why = "; ".join((delegate.refused if delegate is not None else {}).values())
    expected = answers(official_interpreter(model, row.path), feeds(drawn), drawn.runs)
    if drawn.defined is not None:
        actual, expected = drawn.defined(actual), drawn.defined(expected)
    for a, b in zip(actual, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), (a.shape, a.dtype, b.shape, b.dtype)
    gaps = [float(np.max(gap_of(a, b), initial=0)) for a, b in zip(actual, expected)]
    return max(gaps, default=0.0), whole, why


NARROW = ("INT8", "UINT8", "INT16")
"""Kinds that may stand for real numbers: a step more than the row allows is right."""


def agrees(row: Row, kind: str, models: int) -> None:
    """The first of a row's drawn models give the official answers within what the row allows."""
    pytest.importorskip("ai_edge_litert.interpreter")
    allowed = row.within + (1 if kind in NARROW else 0)
    for seed in range(models):
        gap, _, _ = compiled_gaps(row, kind, seed)
        assert gap <= allowed, f"seed {seed}: {gap:.3g} from the official answer, allowed {allowed:.3g}"
