"""Test that the declared needs of gradients are the actual ones, for the whole catalogue.

Lives here: each operator's gradient with everything replaced by identities that it is not said to read by value, bit
for bit equal to the one with everything kept; and that nothing is kept for nothing.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from harness import as_tensors
from test_operators import TABLES

import opwright as ow
from each_row import each_row
from opwright.ops import dispatch, registry
from opwright.ops.autodiff import OpRecord
from opwright.ops.indexed_slices import IndexedSlices
from opwright.ops.tensor import tensor_identity
from thorough import some

WITH_GRADIENT = sorted(name for name, op in registry.catalogue().items() if op.gradient_rule is not None)
CALLS = 12  # of one operator

# Handles have no elements: what is kept of a list is its structure, which these ask for its length.
KEEPS_A_LIST = {"ListGather", "ListGet", "ListPop", "ListResize", "ListScatter", "ListSet"}


@dataclass
class Called:
    """A call that a row of a table made."""

    bound: Any
    structure: Any
    identities: Any
    outputs: Any


@contextlib.contextmanager
def collecting(found: dict[str, list[Called]]) -> Iterator[None]:
    light = OpRecord.light.__func__

    def collect(cls: Any, op: Any, bound: Any, structure: Any, identities: Any, outputs: Any) -> Any:
        known = found.setdefault(op.name, [])
        flows = any(y.dtype.is_floating or y.dtype.is_complex for y in outputs)
        if len(known) < CALLS and flows and registry.catalogue().get(op.name) is op:
            known.append(Called(bound, structure, identities, outputs))
        return light(cls, op, bound, structure, identities, outputs)

    OpRecord.light = classmethod(collect)
    try:
        yield
    finally:
        OpRecord.light = classmethod(light)


@functools.cache
def calls() -> dict[str, list[Called]]:
    """Every operator's calls under a tape, by all rows of all tables."""
    found: dict[str, list[Called]] = {}
    with collecting(found):
        for rows in TABLES.values():
            for row in rows:
                if row.raises is not None:
                    continue
                tensors = as_tensors(row.inputs)
                flat = [x for x in ow.nest.flatten(tensors) if isinstance(x, ow.Tensor) and x.dtype.has_gradient]
                beside = ow.GradientTape()  # machine code records calls of one tape, and not through OpRecord.light
                with beside, ow.GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch(flat)
                    row.function()(*tensors, **row.attrs)
    return found


def gradients(record: Any, outputs: Any, backward: Any = None) -> list[np.ndarray | None]:
    rng = np.random.default_rng(3)
    dys = [
        dispatch.to_tensor(np.asarray(rng.uniform(0.5, 1.5, tuple(y.shape))).astype(y.dtype.np), y.dtype)
        if y.dtype.is_floating or y.dtype.is_complex
        else None
        for y in outputs
    ]
    found = [g.to_dense() if isinstance(g, IndexedSlices) else g for g in (backward or record.backward)(dys)]
    return [None if g is None or g.dtype.is_handle else np.asarray(g) for g in found]


def assert_same(found: list[np.ndarray | None], wanted: list[np.ndarray | None]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            assert (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes())


def without(op: Any, call: Called, name: str) -> Any:
    """The record of a call with everything kept but one input or output, of which only the identity is."""

    def outlined(part: str, value: Any) -> Any:
        if part != name or value is None:
            return value
        return type(value)(map(tensor_identity, value)) if isinstance(value, (tuple, list)) else tensor_identity(value)

    record = OpRecord(op, call.bound, [outlined(n, x) for n, x in zip(op.input_names, call.structure)], call.outputs)
    packed = [outlined(n, y) for n, y in zip(op.output_names, op.pack_all(call.outputs))]
    record.results = [y for part in packed for y in (part if isinstance(part, (tuple, list)) else [part])]
    record.inputs, record.outputs = call.identities, list(map(tensor_identity, call.outputs))
    return record


def run(op: Any, call: Called) -> list[np.ndarray | None] | None:
    """With everything kept; None where the rule refuses these attributes, or singular matrices."""
    try:
        return gradients(OpRecord(op, call.bound, call.structure, call.outputs), call.outputs)
    except (ow.errors.UnimplementedError, ow.errors.InvalidArgumentError):
        return None


@each_row("name", WITH_GRADIENT, by=lambda name: name[:1])
def test_outlines_give_the_same_gradient(name: str) -> None:
    op = registry.get(name)
    for call in some(calls().get(name, ())):
        kept = run(op, call)
        if kept is not None:
            light = OpRecord.light(op, call.bound, call.structure, call.identities, call.outputs)
            assert_same(gradients(light, call.outputs), kept)
            reached = set(map(id, light.inputs))
            assert_same(gradients(light, call.outputs, functools.partial(light.backward_to, reached=reached)), kept)


@each_row("name", WITH_GRADIENT, by=lambda name: name[:1])
def test_nothing_is_kept_for_nothing(name: str) -> None:
    """A value that is kept is read in some row; otherwise `no_need_buffer` must name it."""
    op = registry.get(name)
    needs = {**op.gradient_needs.inputs, **op.gradient_needs.outputs}
    cases = [(call, kept) for call in calls().get(name, ()) if (kept := run(op, call)) is not None]
    if name in KEEPS_A_LIST or not cases:
        return
    for part in [n for n, need in needs.items() if need == "value"]:
        for call, kept in cases:
            try:
                assert_same(gradients(without(op, call, part), call.outputs), kept)
            except (AssertionError, ValueError, TypeError, AttributeError):
                break  # it is read
        else:
            pytest.fail(
                f"{name}: the gradient gives the same without the elements of {part!r}; name it in "
                f"no_need_buffer = {(*op.no_need_buffer, part)!r}"
            )


def test_most_operators_are_reached() -> None:
    """The tables call all but those that they cannot call by themselves (test_catalogue.TESTED_ELSEWHERE)."""
    from test_catalogue import TESTED_ELSEWHERE

    missing = {name for name in WITH_GRADIENT if not calls().get(name)} - set(TESTED_ELSEWHERE)
    assert not {name for name in missing if not name.endswith("Grad") and not name.startswith("List")}
