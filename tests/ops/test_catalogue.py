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
from test_operators import TABLES

import opwright.ops
from each_row import each_row
from opwright import lite
from opwright.compiler.writer import CONTROL
from opwright.lite import customs
from opwright.ops import definition_checks, registry
from opwright.tracing.control.branches import CONTROL_RECORDS

CATALOGUE = registry.catalogue()

# Operators that no row of a table can call by itself: what tests them instead.
TESTED_ELSEWHERE = dict.fromkeys(
    (
        "ReadVariable",
        "AssignVariable",
        "AssignAddVariable",
        "AssignSubVariable",
        "ScatterUpdateVariable",
        "ScatterAddVariable",
        "ScatterSubVariable",
        "ScatterMulVariable",
        "ScatterDivVariable",
        "ScatterMaxVariable",
        "ScatterMinVariable",
    ),
    "tests/eager/test_eager_variable.py",
)
TESTED_ELSEWHERE |= {
    "UpdateVariable": "tests/optimizers/test_optimizers_updates.py",
    "UpdateRows": "tests/optimizers/test_optimizers_sparse.py",
}
TESTED_ELSEWHERE |= dict.fromkeys(
    ("Assert", "EagerPyFunc", "EagerPyFuncGrad", "Print", "PyFunc", "PyFuncStateless", "Timestamp"), "tests/effects"
)
TESTED_ELSEWHERE |= dict.fromkeys(
    (
        "BuildDataset",
        "DatasetCardinality",
        "DatasetReduce",
        "IteratorHasNext",
        "IteratorNext",
        "IteratorNextAsOptional",
        "MakeIterator",
        "MakeOptional",
        "OptionalGetValue",
        "OptionalHasValue",
    ),
    "tests/data/test_data_functions.py",
)
TESTED_ELSEWHERE |= dict.fromkeys(("If", "Case", "While", "Undefined"), "tests/tracing/test_branches.py, test_loops.py")


def covered(which: Callable[[harness.Case], Any] = lambda row: True) -> set[str]:
    """Names of operators that a table has rows for, by name or by public function. which: rows that count."""
    names = {key for key, rows in TABLES.items() if any(map(which, rows))}
    for key in tuple(names):
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


def test_every_operator_has_rows() -> None:
    assert set(CATALOGUE) - set(TESTED_ELSEWHERE) - covered() == set()


def test_every_operator_has_a_row_of_an_error_or_takes_anything() -> None:
    """A row that must fail, unless nothing can: no attributes, one input at most, no rank that is wrong."""
    refused = covered(lambda row: row.raises)
    several = {name for name, op in CATALOGUE.items() if len(op.inputs) > 1}
    assert several - set(TESTED_ELSEWHERE) - refused == set(), "several inputs and no row says what does not fit"


@each_row("op", CATALOGUE.values(), ids=list(CATALOGUE))
def test_lint(op: Any) -> None:
    """Names, words, formulas, dtypes, gradients: the rules of ops/definition_lint.py."""
    assert opwright.ops.lint(op) == []


def test_plans_write_out_all_control_flow() -> None:
    control = {op.name for op in CATALOGUE.values() if op.control}
    assert set(CONTROL) == set(CONTROL_RECORDS) == control  # gradients pass it by a record of its own


def test_rules() -> None:
    for op in CATALOGUE.values():
        assert (op.compute_rule is not None) != op.control, f"{op.name}: compute, unless plans write it out"
        assert op.catalogue, op.name


def test_pickles_by_name() -> None:
    for name, op in CATALOGUE.items():
        assert registry.get(name) is op, name
        assert op.__reduce__() == (registry.get, (name,))


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function of every family: what its package lists in `__all__`."""
    for result in pkgutil.iter_modules(opwright.ops.__path__):
        module = importlib.import_module(f"opwright.ops.{result.name}")
        if not result.ispkg and not hasattr(module, "__all__"):
            continue
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield f"{result.name}.{name}", value


# Functions of `__all__` that families share among themselves; users do not call them.
INTERNAL = {
    "identity_without_record",
    "sum_to_shape_of",
    "compatibility",
    "lint",
    "get",
    "list_names",
    "spec",
    "register_kernel",
    "explain",
}
# What TensorFlow itself has after `name`; positions are kept, so that calls by position mean the same.
AFTER_NAME = {
    "decode_image": ["expand_animations"],
    "embedding_lookup": ["padding_idx"],
    "quantize_and_dequantize": ["narrow_range", "axis"],
    "quantize_and_dequantize_v2": ["narrow_range", "axis"],
    "sparse.cross": ["separator"],
    "bincount": ["axis", "binary_output"],
    "sparse.bincount": [],
    "sparse.segment_sum": ["sparse_gradient"],
    "sparse.segment_mean": ["sparse_gradient"],
    "sparse.segment_sqrt_n": ["sparse_gradient"],
    "diag": ["k", "num_rows", "num_cols", "padding_value", "align"],
    "linspace": ["axis"],
    "diag_part": ["k", "padding_value", "align"],
    "set_diag": ["k", "align"],
    "matrix_transpose": ["conjugate"],
    "non_max_suppression_padded": ["sorted_input", "canonicalized_coordinates", "tile_size"],
    "fused_batch_norm": ["exponential_avg_factor"],
    "stateless_normal": ["alg"],
    "stateless_truncated_normal": ["alg"],
    "stateless_uniform": ["alg"],
    "embedding_lookup_sparse": ["allow_fast_lookup"],
    "safe_embedding_lookup_sparse": ["allow_fast_lookup"],
    "tridiagonal_solve": ["partial_pivoting", "perturb_singular"],
}
# Where TensorFlow has an option behind a flag, or PaddlePaddle for layers over sequences; positions are kept.
FLAG_FIRST = {
    "as_string",
    "ctc_greedy_decoder",
    "ctc_loss",
    "decode_jpeg",
    "dynamic_lstm",
    "encode_jpeg",
    "extract_glimpse",
    "fractional_avg_pool",
    "fractional_max_pool",
    "isotonic_regression",
    "quantize_and_dequantize",
    "quantize_and_dequantize_v2",
    "eigh_tridiagonal",
    "frame",
    "fused_batch_norm",
    "hamming_window",
    "hann_window",
    "matmul",
    "mdct",
    "non_max_suppression_padded",
    "reduce_join",
    "sampled_softmax_loss",
    "top_k",
}


def test_parameters_stand_by_importance() -> None:
    """What must be given first, then options, then flags, then the name; an operator's inputs as it declares them."""
    for name, function in public_functions():
        parameters = list(inspect.signature(function).parameters.values())
        by_position = [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and p.name != "name"]
        flags = [isinstance(p.default, bool) for p in by_position]
        in_order = flags == sorted(flags)
        assert in_order or function.__name__ in FLAG_FIRST, f"{name}: an option stands behind a flag"
        operator = getattr(function, "operator", None)
        if operator is not None:
            data = [i.name for i in operator.inputs if not i.optional]
            assert [p.name for p in by_position][: len(data)] == data, f"{name}: inputs come first"


def test_exceptions_of_order_are_still_needed() -> None:
    names = {name for where, function in public_functions() for name in (function.__name__, where)}
    assert names >= {*FLAG_FIRST, *AFTER_NAME}


def test_public_functions() -> None:
    """A docstring, and `name` as the last parameter with default None, as TensorFlow has it."""
    for where, function in public_functions():
        if function.__name__ in INTERNAL:
            continue
        assert inspect.getdoc(function), f"{where}: no docstring"
        parameters = list(inspect.signature(function).parameters.values())
        named = [p for p in parameters if p.name == "name"]
        if named and parameters[-1].kind is not inspect.Parameter.VAR_KEYWORD:
            after = [p.name for p in parameters[parameters.index(named[0]) + 1 :]]
            assert named[0].default is not inspect.Parameter.empty, f"{where}: name has no default"
            allowed = AFTER_NAME.get(where, AFTER_NAME.get(function.__name__, []))
            assert after == allowed, f"{where}: parameters after name: {after}"


def test_every_definition_of_this_package_is_well_formed() -> None:
    """Nothing checks them when they are imported."""
    shipped = [customs.get(name) for name in customs.list_names()]
    for op in (*CATALOGUE.values(), *lite.ops.operators().values(), *shipped):
        definition_checks.check(op, op._helpers)
