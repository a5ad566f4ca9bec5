"""OPWRIGHT_TUNE=1: the questions of a model are measured when it is loaded, and the answers kept.

Lives here: `tune`.  Not here: one question's measurement (racing.py), where rows are kept (kept.py), who loads
models (lite/compiled/delegate.py).

What is known already is not measured again, so a load that was cut short goes on where it was.
"""

from __future__ import annotations

import sys
import time

from ...core import flags
from ..kernels import Unmade
from ..loops.graph import LoopGraph
from ..native.executor import StepFailed
from . import kept
from .choices import Question
from .racing import measured, questions_of
from .rows import decided

MOST_S = 60.0
"""Seconds of one graph's measurements, after which no other is begun."""
EACH_S = 0.1
"""Seconds that the ways of a question run, beside compiling them."""


def tune(graph: LoopGraph) -> bool:
    """Measure what this machine has not measured of a graph's questions; return whether all are answered."""
    end = time.perf_counter() + MOST_S
    try:
        asked = questions_of(graph)
    except Unmade:  # it is planned again without what nobody makes
        return False
    todo = [question for question in asked if kept.find(*question.key) is None]
    for question in todo:
        if time.perf_counter() > end:
            return False
        _measure(question)
    return True


def _measure(question: Question) -> None:
    try:
        row = measured(question, EACH_S)
    except (Unmade, StepFailed):
        return
    kept.keep(*question.key, row)
    if "time" in flags.show:
        times = ", ".join(f"{way}: {ns / 1e3:.1f} us" for way, ns in row.ns.items())
        chosen = decided(row, question.ways, question.default)
        print(f"measured {question}: {times}; {chosen}, by default {question.default}", file=sys.stderr)
