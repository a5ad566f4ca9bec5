"""Calls of every operator of the catalogue, taken from the rows of the tables: what walks go over.

Lives here: `calls`, `walk`.  Not here: the rows (cases_*.py), the checks (`opwright.testing`, checks*.py).
"""

from __future__ import annotations

import collections
import functools
import warnings
from collections.abc import Callable
from typing import Any

import checks
import numpy as np
import pytest
import test_operators

from opwright.eager.tensor import make
from opwright.ops.tensor import ShapeOnlyTensor
from opwright.testing.operator_call import CheckedCall, NotApplicable
from thorough import THOROUGH

MOST = None if THOROUGH else 4  # rows of a key that are looked at for calls
FEW = 2 if THOROUGH else 1  # kinds of calls of an operator that every run walks over; the slow one goes over all
AMOUNTS = [pytest.param(False, id="kinds"), pytest.param(True, id="all", marks=pytest.mark.slow)]
# Where a call works and its gradient is refused, in these words.
WITHOUT_GRADIENT = {
    "MatrixDeterminant": "not invertible",  # the gradient has the inverse in it
    "LogMatrixDeterminant": "not invertible",
    "Svd": "no gradient with full_matrices",
    "Qr": "no gradient with full_matrices",
    "SequencePool": "keeps no indices, which gradients need",
}


# Hundreds of small steps a call, each of which an asynchronous device queues: 9 of 14 s of a walk at one.
_SERIES = """
    BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselY0 BesselY1 Betainc Dawsn Expint FresnelCos FresnelSin
    Igamma IgammaGradA Igammac Lgamma Polygamma
"""
SERIES = frozenset(_SERIES.split())


@functools.cache
def calls(every: bool = False) -> list[tuple[str, CheckedCall, Any]]:
    """Calls of each operator that run in the tables, helpers too: the row's key, the call, its result.

    Of one operator a few that differ in the dtypes and ranks of inputs, or in whether they are empty; with `every` all
    that differ in these, in attributes or in shapes.
    """
    actual: dict[str, dict[Any, tuple[str, CheckedCall, Any]]] = collections.defaultdict(dict)
    for key, rows in test_operators.TABLES.items():
        for row in rows if every else rows[:MOST]:
            if row.raises:
                continue
            try:
                with checks.watched() as watched:
                    row.run()
            except Exception:  # its own test says so
                continue
            for op, bound, inputs, result in watched:
                if not op.catalogue or op.control or op.effect in ("random", "write"):
                    continue
                trial = CheckedCall(op, tuple(inputs), bound.attrs)
                trial = trial.over([_whole(t) for t in trial.tensors()])
                kind: Any = tuple((t.dtype.name, t.shape.rank, 0 in t.shape) for t in trial.tensors())
                if every:
                    kind = repr((kind, bound, [t.shape for t in trial.tensors()]))
                elif len(actual[op.name]) == FEW:
                    continue
                actual[op.name].setdefault(kind, (key, trial, result))
    return [call for several in actual.values() for call in several.values()]


def _whole(t: Any) -> Any:
    """The tensor; for one of which a gradient knows the shape alone, NaN or zeros of that shape."""
    if not isinstance(t, ShapeOnlyTensor):
        return t
    return make(np.full(t.shape.as_list(), np.nan if t.dtype.is_floating or t.dtype.is_complex else 0, t.dtype.np))


def walk(
    check: Callable[[CheckedCall, Any], Any], every: bool = False, leave: frozenset[str] = frozenset()
) -> tuple[dict[str, list[Any]], list[str]]:
    """Run a check on each of the calls: results by operator, and failures in words. leave: operators left out."""
    inputs: dict[str, list[Any]] = collections.defaultdict(list)
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key, trial, result in calls(every):
            if trial.op.name in leave:
                continue
            try:
                inputs[trial.op.name].append(check(trial, result))
            except NotApplicable:
                continue
            except Exception as error:
                words = " ".join(str(error).split())[:300]
                if WITHOUT_GRADIENT.get(trial.op.name, "?") in words:
                    continue
                wrong.append(f"{key} ({trial.op.name}): {type(error).__name__}: {words}")
    return inputs, wrong
