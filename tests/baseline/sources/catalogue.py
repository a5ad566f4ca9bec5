"""Rows of the catalogue's tables (tests/ops/cases_*.py): as written, in the other floating dtypes, and their gradients.

Eagerly, traced, and compiled whatever the size, as tests/compiler/lowering do; in float32 also from a .tflite, by both
engines.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import checks
import numpy as np
import test_operators
import test_rules_on_rows
from assertions import HALVES, flat_arrays, is_floating
from harness import Case

from opwright.compiler import partitioner
from opwright.compiler.plan import Plan
from opwright.ops import dispatch

from ..execution import outcome
from ..outcomes import Entry, failed, inputs_digest
from . import files

FLOATS = {"float32": np.dtype(np.float32), **HALVES}

Run = Callable[[], Sequence[Any]]


def keys() -> list[str]:
    """The keys of the tables."""
    return list(test_operators.TABLES)


def entries(key: str, name: str) -> Iterator[Entry]:
    """The entries of a key's rows."""
    for row in test_operators.TABLES[key]:
        for label, variant in _variants(row):
            of = inputs_digest([*variant.inputs, variant.attrs])
            prefix = f"{name}/{row.number}/{label}"
            for way, run in _ways(variant, label):
                yield outcome(f"{prefix}/{way}", run, of)
            if _fits_files(variant, label):
                yield from _from_file(prefix, variant, of)


def _variants(row: Case) -> Iterator[tuple[str, Case]]:
    """The row, the same in other floating dtypes, and their gradients."""
    yield "written", row
    if not checks.works(row):
        return
    floats = {y.dtype for x in row.inputs for _, y in checks._members(x) if is_floating(y)}
    others = [name for name, dtype in FLOATS.items() if floats and floats != {dtype} and checks._takes(row, name)]
    for name in others:
        yield name, _with(row, [checks._as(x, FLOATS[name]) for x in row.inputs])
    if checks._differentiates(row):
        gradient = checks._as_gradient(row)
        yield "gradient", _with(gradient, gradient.inputs, row)
        if "float32" in others:
            single = [checks._as(x, FLOATS["float32"]) for x in row.inputs]
            yield "gradient-float32", _with(gradient, single, row)


def _with(row: Case, inputs: Sequence[Any], named: Case | None = None) -> Case:
    """The row's call on other inputs. named: whose key and number it has."""
    result = dataclasses.replace(row, inputs=tuple(inputs), call=row.function())
    result.key, result.number = (named or row).key, (named or row).number
    return result


def _ways(row: Case, label: str) -> Iterator[tuple[str, Run]]:
    yield "eager", lambda: flat_arrays(row.run())
    if not checks.works(row) or not row.trace:
        return
    yield "traced", lambda: _traced(row)
    if label in ("written", "float32", "gradient", "gradient-float32"):
        yield "jit", lambda: _native(row)


def _fits_files(row: Case, label: str) -> bool:
    """Whether it works in a function, and has no float64, which hardly an operator of files takes."""
    return checks.works(row) and row.trace and label in ("written", "float32") and not any(map(_is_wide, row.inputs))


def _is_wide(x: Any) -> bool:
    return any(is_floating(y) and y.dtype == np.float64 for _, y in checks._members(x))


def _traced(row: Case) -> list[np.ndarray]:
    function, arrays = checks._traced(row, False)
    return flat_arrays(function(*map(dispatch.to_tensor, arrays)))


def _native(row: Case) -> list[np.ndarray]:
    """By native calls wherever a node has a rule, however small it is."""
    result = test_rules_on_rows.recorded(row, False)
    if result is None:
        raise LookupError("the row is not recorded for its shapes")
    graph, arrays = result
    plan: Plan = test_rules_on_rows.native(graph)[1]
    return [np.asarray(y) for y in dispatch.quietly(plan.run, *arrays)]


def _from_file(name: str, row: Case, of: str) -> Iterator[Entry]:
    try:
        function, arrays = checks._traced(row, False)
        concrete = function.get_concrete_function()
    except Exception as error:
        yield failed(f"{name}/file", error, of)
        return
    yield from files.entries(name, lambda: files.Made(files.converted(concrete), arrays), of)


def prepare() -> None:
    """Let regions of one small node be compiled, too."""
    partitioner.Partitioner._pays = lambda self, nodes: len(nodes) > 0  # type: ignore[method-assign]
