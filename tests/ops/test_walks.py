"""Every operator of the catalogue: gradients by the graph, gradients of what is spoilt, memory used again, LoD levels.

Lives here: walks over calls of every operator (catalogue_calls.py) by the checks of `opwright.testing`.
Not here: runs on scopes (test_on_scopes.py), whole rows (checks_graphs.py), the checks on one's own operators
(test_operator_checks.py).
"""

from __future__ import annotations

import contextlib
from typing import Any

import catalogue_calls
import pytest

from opwright.testing import gradient_check, scope_checks
from opwright.testing.operator_call import CheckedCall, NotApplicable


@pytest.mark.parametrize("every", catalogue_calls.AMOUNTS)
def test_lod_levels_declared_are_levels_produced(every: bool) -> None:
    """Without exemptions (6.4); an input's gradient has the input's LoD (10.5)."""
    inputs, wrong = catalogue_calls.walk(lambda trial, _: scope_checks.lod_as_declared(trial), every)
    assert not wrong, "\n".join(wrong)
    assert sum(any(result) for result in inputs.values()) > 320


@pytest.mark.parametrize("every", catalogue_calls.AMOUNTS)
def test_gradients_read_what_they_declare(every: bool) -> None:
    """Values kept by shape alone, or not at all, may be NaN when the gradient runs."""
    inputs, wrong = catalogue_calls.walk(lambda trial, _: gradient_check.gradient_reads_no_more(trial), every)
    assert not wrong, "\n".join(wrong)
    assert sum(any(result) for result in inputs.values()) > 150


@pytest.mark.parametrize("every", catalogue_calls.AMOUNTS)
def test_gradients_on_graphs_are_the_tapes(every: bool) -> None:
    """`append_backward` gives the same bits, under names with @GRAD."""
    inputs, wrong = catalogue_calls.walk(
        lambda trial, _: gradient_check.backward_is_tape(*gradient_check.as_function(gradient_check.widened(trial))),
        every,
    )
    assert not wrong, "\n".join(wrong)
    assert sum(any(result) for result in inputs.values()) > 150


def _reuse(trial: CheckedCall, _: Any) -> int:
    with contextlib.suppress(NotApplicable):
        trial = gradient_check.widened(trial)
    return scope_checks.reuse_changes_no_bits(trial.flat, trial.tensors())


@pytest.mark.parametrize("every", catalogue_calls.AMOUNTS)
def test_memory_used_again_changes_no_bit(every: bool) -> None:
    """The call, its gradient, the gradient of that, with reuse on and off (14.5)."""
    inputs, wrong = catalogue_calls.walk(_reuse, every)
    assert not wrong, "\n".join(wrong)
    assert sum(any(result) for result in inputs.values()) > 150, "graphs in which memory is used again"
