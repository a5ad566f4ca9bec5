"""Test every operator of the catalogue as an instance on scopes: at each place, and repeatedly, equal to eager calls.

Lives here: the walk over calls of every operator (catalogue_calls.py), the operators that run on the simulated device
and on the host, inputs that are never read.
Not here: tests of runs (tests/scopes/), the check itself (`opwright.testing.scope_checks`).
"""

from __future__ import annotations

from typing import Any

import catalogue_calls
import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import PermissionDeniedError
from opwright.core.places import CPUPlace
from opwright.testing import scope_checks
from opwright.testing.operator_call import CheckedCall

_FALLS_BACK = """
    BandedTriangularSolve CTCBeamSearch CombinedNonMaxSuppression IsotonicRegression MatrixLogarithm
    MatrixSquareRoot MatrixTriangularSolve
    NonMaxSuppression NonMaxSuppressionPadded NonMaxSuppressionWithOverlaps StatelessRandomBinomial
    StatelessRandomGamma StatelessRandomNormal StatelessRandomPoisson StatelessRandomUniform
    StatelessRandomUniformFullInt StatelessRandomUniformInt StatelessSampleDistortedBoundingBox
    StatelessTruncatedNormal TridiagonalSolve UnicodeScript
"""
FALLS_BACK: frozenset[str] = frozenset(_FALLS_BACK.split())
"""Operators of which some call cannot be computed by arrays of the simulated device, which speak NumPy's functions and
nothing else: random numbers are drawn on the host by design, the others go element by element, or through tables and
solvers of the host. Their inputs are copied to the CPU. A kernel for a device (ops/cuda_kernels.py), or a `compute`
in NumPy's functions with its own arrays from ops/like_device.py, takes an operator off this list."""


def _wanted(trial: CheckedCall, result: Any) -> Any:
    """Return the eager results, with offsets as the public call returns them."""
    return None if any(o.lod_of for o in trial.op.outputs) else result


# Inputs that are read in some calls only, which those are that do not read them.
NOT_READ = {
    ("Conv2D", "filters"): "no pixels, or no images",
    ("Frame", "pad_value"): "no frame reaches over the end",
    ("GRUSequence", "recurrent_kernel"): "no steps",
    ("LSTMSequence", "recurrent_kernel"): "no steps",
    ("ListPush", "item"): "kept, not read",
    ("LodReset", "y"): "it has a LoD, which is an input of its own",
    ("NonMaxSuppressionPadded", "iou_threshold"): "no boxes",
    ("RFFT", "input"): "a length of 0",
    ("StridedSlice", "end"): "all ends are masked",
}


def _on_the_cpu(trial: CheckedCall, result: Any) -> Any:
    expected = _wanted(trial, result)
    try:
        return scope_checks.on_scopes(trial, CPUPlace(), expected, unused=True)
    except PermissionDeniedError as error:
        if not any(op == trial.op.name and f"input {name!r} is never read" in str(error) for op, name in NOT_READ):
            raise
        return scope_checks.on_scopes(trial, CPUPlace(), expected)


@pytest.mark.parametrize("every", catalogue_calls.AMOUNTS)
def test_on_the_cpu_bits_are_the_eager_ones(every: bool) -> None:
    """Same instance, other scope, deep copy; inputs stay, no output lies in an input; each input is read (12.4)."""
    inputs, wrong = catalogue_calls.walk(_on_the_cpu, every)
    assert not wrong, "\n".join(wrong)
    assert len(inputs) > 350
    assert all(e.branch != "fallback" and e.place == CPUPlace() for result in inputs.values() for e in result)


@pytest.mark.parametrize("every", catalogue_calls.AMOUNTS)
def test_at_the_simulated_device_numbers_are_the_eager_ones(every: bool) -> None:
    """And each operator runs there, is the host's alone, or is listed as one that falls back to the CPU."""
    leave = frozenset() if every else catalogue_calls.SERIES
    inputs, wrong = catalogue_calls.walk(
        lambda t, result: scope_checks.on_scopes(t, "sim:0", _wanted(t, result)), every, leave
    )
    assert not wrong, "\n".join(wrong)
    back = {name for name, actual in inputs.items() if any(e.branch == "fallback" for e in actual)}
    assert not back - FALLS_BACK, "these fall back to the CPU; give them a kernel, or list them"
    assert not FALLS_BACK - back, "these run there by now: take them off the list"
    host = {name for name, actual in inputs.items() if {e.branch for e in actual} == {"host"}}
    there = inputs.keys() - back - host
    # over 310 run there, 40 on text, lists and shapes are the host's, 19 need the CPU for some call at least
    assert len(there) + len(leave) >= 305, f"{len(there)} operators run there"


def test_a_run_that_differs_is_found() -> None:
    """The check itself: an operator that counts its calls, one that writes its input, one that gives its input away."""
    counted = iter(range(9))

    def defined(compute: Any, **body: Any) -> Any:
        parts = {"__doc__": "x", "x": ow.Input(ow.floating), "y": ow.Output(like="x"), "compute": compute, **body}
        return ow.operator(name="ScopeTrial")(type("ScopeTrial", (), parts))

    def forced(op: Any, x: Any) -> Any:
        x.flags.writeable = True
        x += 1
        return x * 2

    for compute, words in ((lambda op, x: x + next(counted), "wanted"), (forced, "was written")):
        trial = CheckedCall.of(defined(compute), {"x": np.array([1.0, 2.0])})
        with pytest.raises(AssertionError, match=words):
            scope_checks.on_scopes(trial)
    two = defined(lambda op, x, w: x + 1, w=ow.Input(like="x"))
    trial = CheckedCall.of(two, {"x": np.array([1.0]), "w": np.array([2.0])})
    assert scope_checks.on_scopes(trial).branch == "reference"
    with pytest.raises(PermissionDeniedError, match="'w' is never read"):
        scope_checks.on_scopes(trial, unused=True)
