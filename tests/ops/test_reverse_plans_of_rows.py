"""Plans of the reverse pass for every operator: built on the inputs of a row, right for other elements, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_gradient_needs import WITH_GRADIENT, Called, calls

import opwright as ow
from each_row import each_row
from opwright.eager import reverse_plans, short_calls
from opwright.ops import registry
from thorough import some


def _gradients(op: Any, bound: Any, structure: Any) -> list[Any]:
    """Return the gradients of the first output, by the elements of all inputs."""
    tensors = [x for x in structure if isinstance(x, ow.Tensor) and x.dtype.has_gradient]
    with ow.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(tensors)
        y = ow.ops.dispatch.call(op, structure, bound)
    grads = tape.gradient(y, tensors)
    return [None if g is None else ow.convert_to_tensor(g)._array for g in grads]


def _rolled(x: Any) -> Any:
    """Return a tensor with the same elements in another order."""
    if not isinstance(x, ow.Tensor) or x.dtype.is_handle:
        return x
    return ow.constant(np.roll(x._array, 1), x.dtype)


def _plan_of(op: Any, call: Called, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(reverse_plans, "_plans", {})
    monkeypatch.setattr(reverse_plans, "SIGHTINGS", 0)
    monkeypatch.setattr(reverse_plans, "_signature_function", short_calls.signature_function())
    _gradients(op, call.bound, call.structure)
    return any(callable(plan) for plan, _ in reverse_plans._plans.values())


@each_row("name", WITH_GRADIENT, by=lambda name: name[:1])
def test_plans_hold_for_other_elements(name: str) -> None:
    op = registry.get(name)
    if not (op.profile.simple and op.profile.single) or op.effect is not None:
        return
    for call in some(calls().get(name, ())):
        with pytest.MonkeyPatch.context() as monkeypatch:
            try:
                if not _plan_of(op, call, monkeypatch):
                    continue
                others = [_rolled(x) for x in call.structure]
                planned = _gradients(op, call.bound, others)
            except (ow.errors.OpError, ValueError, np.linalg.LinAlgError):
                continue  # no gradient of these attributes, or elements that the operator refuses
            monkeypatch.setattr(reverse_plans, "_signature", lambda *_: None)
            expected = _gradients(op, call.bound, others)
        for a, b in zip(planned, expected, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def test_most_operators_have_plans() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        names = (
            "Add",
            "Mul",
            "RealDiv",
            "Tanh",
            "Sigmoid",
            "Exp",
            "MatMul",
            "Sum",
            "Mean",
            "Softmax",
            "Transpose",
            "Square",
        )
        for name in names:
            assert _plan_of(registry.get(name), calls()[name][0], monkeypatch), name
