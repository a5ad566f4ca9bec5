"""Rules of catalogue operators against the operators themselves, on the rows of their own tables (tests/ops/cases_*).

Each row is recorded, compiled whatever the size, and run both as native calls and as NumPy's: float64 rows as float32
too, integers beside the first input as constants, as axes and sizes are in models. Operators that no row reaches so
are in test_rules_by_hand.py.
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from opwright.compiler import partitioner
from opwright.compiler.calls import function_of
from opwright.compiler.lowering.registry import MODULES
from opwright.compiler.native_plan import specialize
from opwright.compiler.plan import Plan
from opwright.ops import registry
from opwright.ops.dispatch import quietly

sys.path.append(str(Path(__file__).parents[2] / "ops"))
import checks
import test_operators

from thorough import THOROUGH

RTOL = {2: 4e-3, 4: 1e-5, 8: 1e-12}
ROWS = 2 if THOROUGH else 1
RULED = set(MODULES) & set(registry.catalogue())
NEVER = {"EnsureShape"}  # of known shapes a graph has none left
UNSEEN = {
    "AvgPool3DGrad",
    "AvgPoolGrad",
    "BatchToSpaceND",
    "Conv2DBackpropInput",
    "Conv3DBackpropInput",
    "DepthwiseConv2dNativeBackpropInput",
    "DynamicGru",
    "Fill",
    "FusedBatchNorm",
    "MaxPool3DGrad",
    "StridedSliceGrad",
}  # by hand; gradients of volumes: test_convolution_gradients.py
SEEDED = {name for name in RULED if name.startswith("Stateless")}
"""Functions of a seed, which is a constant here: tests/tracing/test_jit_compile.py."""
LISTS = {
    "ListAdd",
    "ListPop",
    "ListPush",
    "ListReserve",
    "ListResize",
    "ListSet",
    "ListStack",
    "ListUnset",
    "ListZerosLike",
}
"""Operators whose rows have tensors of an unknown number of rows: tests/tracing/test_tensor_loops.py has them, and
tests/compiler/test_fixed_lists.py ListResize."""


def as_float32(x):
    if isinstance(x, (np.ndarray, np.generic)):
        with np.errstate(over="ignore"):
            return x.astype(np.float32) if x.dtype == np.float64 else x
    return type(x)(map(as_float32, x)) if type(x) in (list, tuple) else x


def _whole(x):
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "iu" and x.dtype.itemsize >= 4


def recorded(row, single):
    """The row's graph for its shapes, and its arrays; None where it cannot be recorded so."""
    inputs = tuple(map(as_float32, row.inputs)) if single else row.inputs
    static = tuple(i for i, x in enumerate(inputs) if i in row.static or (i and _whole(x)))
    copy = dataclasses.replace(row, inputs=inputs, static=static)
    copy.key = row.key
    try:
        traced, arrays = checks._traced(copy, False)
        concrete = traced.get_concrete_function()
    except Exception:
        return None
    operands = [*map(np.asarray, arrays), *(c._array for c in concrete.program.captured)]
    graph = concrete.optimized_graph
    shapes = [None if v.dtype.is_handle else np.shape(a) for v, a in zip(graph.inputs, operands)]
    return specialize(graph, shapes), operands


def native(graph):
    """The names of the operators that ran natively, and the plan."""
    result = partitioner.compile_regions(graph, function_of)
    return {n.op.name for s in result.regions for n in s.nodes}, Plan(result.graph)


def same(actual, expected, what):
    for i, (x, y) in enumerate(zip(actual, expected, strict=True)):
        y = np.asarray(y)
        assert (x.shape, x.dtype) == (y.shape, y.dtype), f"{what}, result {i}"
        if y.dtype.kind in "biu":
            np.testing.assert_array_equal(x, y, err_msg=f"{what}, result {i}")
        elif y.dtype.kind in "fV":
            rtol = RTOL[y.dtype.itemsize] * (10 if y.dtype.kind == "V" else 1)
            np.testing.assert_allclose(x.astype(np.float64), y.astype(np.float64), rtol, rtol, err_msg=f"{what}, {i}")


def tried(name, row, single):
    """Whether the operator ran natively in this row; checks that the results are those of NumPy."""
    actual = recorded(row, single)
    if actual is None or not any(n.op.name == name for n in actual[0].nodes):
        return False
    graph, arrays = actual
    names, plan = native(graph)
    if name not in names:
        return False
    try:
        expected = quietly(Plan(graph).run, *arrays)
    except Exception:
        return False
    same(quietly(plan.run, *arrays), expected, row.key)
    return True


@pytest.fixture(autouse=True)
def whatever_the_size(monkeypatch):
    monkeypatch.setattr(partitioner.Partitioner, "_pays", lambda self, nodes: len(nodes) > 0)


def rows_of(name):
    """Rows of the operator itself, then of functions."""
    rows = [r for r in test_operators.TABLES.get(name, ()) if checks._traces(r) and not checks.is_random(r)]
    others = [
        r
        for key, rs in test_operators.TABLES.items()
        if key != name
        for r in rs
        if key.rpartition(".")[2].replace("_", "") == name.lower() and checks._traces(r)
    ]
    return [*rows, *others]


@pytest.mark.parametrize("name", sorted(RULED - NEVER - UNSEEN - SEEDED - LISTS))
def test_an_operator_on_its_rows(name):
    """A row of each operator runs natively; in a thorough run two."""
    seen = 0
    for row in rows_of(name):
        seen += tried(name, row, single=True)
        if seen == ROWS:
            return
    assert seen or not rows_of(name), f"{name}: none of {len(rows_of(name))} rows ran natively"


@pytest.mark.slow
def test_all_rows():
    """Every row whose graph has a rule for one of its nodes, in its own dtypes and in float32."""
    count = 0
    for key, rows in test_operators.TABLES.items():
        for row in rows:
            if not checks._traces(row) or checks.is_random(row):
                continue
            for single in (False, True):
                actual = recorded(row, single)
                if actual is None or not any(n.op.name in RULED for n in actual[0].nodes):
                    continue
                names, plan = native(actual[0])
                try:
                    expected = quietly(Plan(actual[0]).run, *actual[1])
                except Exception:
                    continue
                same(quietly(plan.run, *actual[1]), expected, key)
                count += bool(names)
    assert count > 1500
