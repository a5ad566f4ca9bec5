"""The catalogue as a whole: every operator has its parts, and rows that test it.

Lives here: what must hold for each of the catalogue's operators.  Not here: what they compute (cases_*.py).
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import harness
import pytest
from test_operators import TABLES

import opwright.ops
from opwright.compiler.writer import CONTROL
from opwright.core.dtypes import float32, float64
from opwright.ops import registry
from opwright.tracing.control.branches import CONTROL_RECORDS

CATALOGUE = registry.catalogue()

# Operators that no row of a table can call by itself: what tests them instead.
TESTED_ELSEWHERE = dict.fromkeys(
    ("ReadVariable", "AssignVariable", "AssignAddVariable", "AssignSubVariable", "ScatterUpdateVariable",
     "ScatterAddVariable", "ScatterSubVariable", "ScatterMulVariable", "ScatterDivVariable", "ScatterMaxVariable",
     "ScatterMinVariable"),
    "tests/eager/test_eager_variable.py",
)  # fmt: skip
TESTED_ELSEWHERE["UpdateRows"] = "tests/optimizers/test_optimizers_sparse.py"
TESTED_ELSEWHERE |= dict.fromkeys(
    ("Assert", "EagerPyFunc", "EagerPyFuncGrad", "Print", "PyFunc", "PyFuncStateless", "Timestamp"), "tests/effects"
)
TESTED_ELSEWHERE |= dict.fromkeys(
    ("BuildDataset", "DatasetCardinality", "DatasetReduce", "IteratorHasNext", "IteratorNext",
     "IteratorNextAsOptional", "MakeIterator", "MakeOptional", "OptionalGetValue", "OptionalHasValue"),
    "tests/data/test_data_functions.py",
)  # fmt: skip
TESTED_ELSEWHERE |= dict.fromkeys(("If", "Case", "While", "Undefined"), "tests/tracing/test_branches.py, test_loops.py")


@pytest.fixture(params=CATALOGUE.values(), ids=CATALOGUE)
def op(request: pytest.FixtureRequest) -> Any:
    return request.param


def covered() -> set[str]:
    """Names of operators that a table has rows for, by name or by public function."""
    names = set(TABLES)
    for key in TABLES:
        try:
            made_of = harness.operator_of(key)
        except LookupError:
            continue
        if made_of is not None:
            names.add(made_of.name)
    return names


def test_exceptions_are_still_needed() -> None:
    assert set(TESTED_ELSEWHERE) <= set(CATALOGUE)
    assert not set(TESTED_ELSEWHERE) & covered()


def test_every_operator_has_rows(op: Any) -> None:
    if op.name in TESTED_ELSEWHERE:
        return
    assert op.name in covered(), f"no cases_*.py has rows for {op.name}"


def test_every_operator_has_a_row_of_an_error_or_takes_anything(op: Any) -> None:
    """A row that must fail, unless nothing can: no attributes, one input at most, no rank that is wrong."""
    if op.name in TESTED_ELSEWHERE:
        return
    rows = [row for key, rows in TABLES.items() if _names(key, op) for row in rows]
    if any(row.raises for row in rows):
        return
    assert len(op.inputs) <= 1, f"{op.name}: several inputs and no row says what does not fit together"


def _names(key: str, op: Any) -> bool:
    try:
        return key == op.name or harness.operator_of(key) is op
    except LookupError:
        return False


def test_words(op: Any) -> None:
    assert op.doc, f"{op.name}: no docstring"
    assert op.formula, f"{op.name}: no `.. math::` formula"
    assert op.doc.split("\n")[0].rstrip().endswith((".", ":")), f"{op.name}: the first line is no sentence"


def test_plans_write_out_all_control_flow() -> None:
    control = {op.name for op in CATALOGUE.values() if op.control}
    assert set(CONTROL) == set(CONTROL_RECORDS) == control  # gradients pass it by a record of its own


def test_rules(op: Any) -> None:
    assert (op.compute_rule is not None) != op.control, f"{op.name}: compute, unless plans write it out"
    floats = any(d.is_floating or d.is_complex for i in op.inputs for d in i.dtypes)
    assert op.has_gradient_rule or op.control or not floats, (
        f"{op.name}: takes floats, has no gradient; write one, or `gradient = None` where differentiation ends"
    )
    assert op.catalogue


def test_names(op: Any) -> None:
    assert op.name.isidentifier()
    assert op.name[0].isupper()
    assert not op.name.endswith(("V2", "V3")), f"{op.name}: TensorFlow's name, without the suffix"
    for part in (*op.input_names, *op.output_names, *op.attr_defs):
        assert part == part.lower() or op.name.startswith("FusedBatchNorm"), f"{op.name}: {part}"


def test_floats_of_both_sizes(op: Any) -> None:
    for declared in op.inputs:
        floats = {d for d in declared.dtypes if d.is_floating}
        if floats:
            taken = sorted(d.name for d in floats)
            assert {float32, float64} <= floats, f"{op.name}: input {declared.name} takes {taken}"


def test_pickles_by_name(op: Any) -> None:
    assert registry.get(op.name) is op
    assert op.__reduce__() == (registry.get, (op.name,))


def public_functions() -> Iterator[Any]:
    """Every public function of every family: what its package lists in `__all__`."""
    for found in pkgutil.iter_modules(opwright.ops.__path__):
        module = importlib.import_module(f"opwright.ops.{found.name}")
        if not found.ispkg and not hasattr(module, "__all__"):
            continue
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield pytest.param(value, id=f"{found.name}.{name}")


# Functions of `__all__` that families share among themselves; users do not call them.
INTERNAL = {"identity_without_record", "sum_to_shape_of", "compatibility", "get", "list_names", "spec",
            "register_kernel", "explain"}  # fmt: skip
# What TensorFlow itself has after `name`; positions are kept, so that calls by position mean the same.
AFTER_NAME = {
    "embedding_lookup": ["padding_idx"],
    "bincount": ["axis", "binary_output"],
    "diag": ["k", "num_rows", "num_cols", "padding_value", "align"],
    "linspace": ["axis"],
    "diag_part": ["k", "padding_value", "align"],
    "set_diag": ["k", "align"],
    "matrix_transpose": ["conjugate"],
    "non_max_suppression_padded": ["sorted_input", "canonicalized_coordinates", "tile_size"],
    "fused_batch_norm": ["exponential_avg_factor"],
    "stateless_normal": ["alg"], "stateless_truncated_normal": ["alg"], "stateless_uniform": ["alg"],
    "tridiagonal_solve": ["partial_pivoting", "perturb_singular"],
}  # fmt: skip


@pytest.mark.parametrize("function", list(public_functions()))
def test_public_functions(function: Callable[..., Any]) -> None:
    """A docstring, and `name` as the last parameter with default None, as TensorFlow has it."""
    if function.__name__ in INTERNAL:
        return
    assert inspect.getdoc(function), f"{function.__name__}: no docstring"
    parameters = list(inspect.signature(function).parameters.values())
    named = [p for p in parameters if p.name == "name"]
    if named and parameters[-1].kind is not inspect.Parameter.VAR_KEYWORD:
        after = [p.name for p in parameters[parameters.index(named[0]) + 1 :]]
        assert named[0].default is not inspect.Parameter.empty, f"{function.__name__}: name has no default"
        assert after == AFTER_NAME.get(function.__name__, []), f"{function.__name__}: parameters after name: {after}"
