"""Every operator of the catalogue as an instance on a scope, at each place: bit for bit what it is eagerly.

Lives here: the walk over the rows of the tables (cases_*.py), at each place.
Not here: single sentences about runs (tests/runtime/).
"""

from __future__ import annotations

import collections
import warnings
from typing import Any

import checks
import numpy as np
import pytest
import test_operators

import opwright as ow

FEW = 3  # calls of one operator
ROUNDS = frozenset({"Cross"})  # complex numbers in another order of memory are added in another order


def calls() -> list[tuple[str, Any, Any, Any, Any]]:
    """Some calls of each operator that the tables have: the row, operator, attributes, inputs, result."""
    seen: collections.Counter[str] = collections.Counter()
    found = []
    for key, rows in test_operators.TABLES.items():
        for row in rows:
            if row.raises or checks.is_random(row):
                continue
            try:
                with checks.watched() as watched:
                    row.run()
            except Exception:  # its own test says so
                continue
            for op, bound, inputs, result in watched:
                if op.catalogue and not op.control and op.effect not in ("random", "write") and seen[op.name] < FEW:
                    seen[op.name] += 1
                    found.append((key, op, bound, inputs, result))
    return found


def run(op: Any, bound: Any, inputs: Any, result: Any, place: Any) -> None:
    scope, ins, outs, pairs = ow.Scope(), {}, {}, []
    for declared, value in zip(op.inputs, inputs):
        members = [] if value is None else value if isinstance(value, (tuple, list)) else [value]
        names = [f"{declared.name}{i}" for i in range(len(members))]
        for name, member in zip(names, members):
            scope.var(name).set(member)
        if value is not None:
            ins[declared.name] = names
    shown = [o for o in op.outputs if not o.intermediate]
    results = iter([result] if len(shown) == 1 else list(result) if shown else [])
    for o in op.outputs:
        if o.intermediate:
            outs[o.name] = "@EMPTY@"
            continue
        value = next(results)
        members = value if o.repeated else [value]
        outs[o.name] = [f"{o.name}_{i}" for i in range(len(members))]
        pairs += list(zip(outs[o.name], members))
    ow.OpInstance(op, ins, outs, bound.attrs).run(scope, place)
    for name, wanted in pairs:
        if wanted.dtype.is_handle:
            continue
        got, want = np.asarray(scope.var(name).value.numpy()), np.asarray(wanted.numpy())
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if op.name in ROUNDS and place.kind != "cpu":
            np.testing.assert_allclose(got, want, rtol=1e-6)
        else:
            np.testing.assert_array_equal(got, want)
    assert scope.kids == ()


@pytest.mark.parametrize("place", [ow.CPUPlace(), ow.SimulatedPlace(0)], ids=str)
def test_the_catalogue_runs_on_scopes(place: Any) -> None:
    wrong, names = [], set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key, op, bound, inputs, result in calls():
            names.add(op.name)
            try:
                run(op, bound, inputs, result, place)
            except Exception as error:
                wrong.append(f"{key} ({op.name}): {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)
    assert len(names) > 300
