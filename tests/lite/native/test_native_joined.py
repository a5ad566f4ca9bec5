"""Nodes of operators in C that follow one another run by one call, with the results and errors of single ones."""

from __future__ import annotations

import numpy as np
import pytest
from lite_kit import Build
from native_kit import chain, probes, run

from opwright.core import flags


@pytest.fixture(scope="module")
def p():
    return probes()


def calls(interpreter):
    """How many nodes each call of a run stands for."""
    (subgraph,) = interpreter._subgraphs
    return [len(step.nodes) if hasattr(step, "failed") else 1 for step in subgraph.joined]


PLANS = {
    "one": (["A"], [1]),
    "four": (["A"] * 4, [4]),
    "two and two": (["A", "A", "-", "A", "A"], [2, 1, 2]),
    "a dynamic one": (["A", "A", "D", "A"], [2, 1, 1]),  # what follows it is prepared while the model runs
}


@pytest.mark.parametrize("plan", PLANS)
def test_which_nodes_run_together(p, plan):
    names, expected = PLANS[plan]
    b = Build()
    for i, kind in enumerate(names):
        ends = f"t{i - 1}" if i else "x", f"t{i}" if i < len(names) - 1 else "y"
        if kind == "-":
            b.op("NEG", *ends)
        else:
            b.custom({"A": "PROBE", "D": "COUNT_UP"}[kind], *ends)
    interpreter = p.interpreter(b.done())
    interpreter.allocate_tensors()
    assert calls(interpreter) == expected


def test_values_and_other_shapes(p):
    interpreter = p.interpreter(chain(*["PROBE"] * 6))
    for size in (5, 1, 300):
        interpreter.resize_tensor_input(0, [size])
        interpreter.allocate_tensors()
        assert calls(interpreter) == [6]
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(run(interpreter, x), x + 6)


@pytest.mark.parametrize("place", range(4))
def test_an_error_names_the_node_that_failed(p, place):
    names = ["PROBE"] * 4
    names[place] = "FAIL_INVOKE"
    interpreter = p.interpreter(chain(*names))
    interpreter.allocate_tensors()
    assert calls(interpreter) == [4]
    for _ in range(2):
        with pytest.raises(RuntimeError, match=rf"Node number {place} \(FAIL_INVOKE\) failed to invoke"):
            run(interpreter, np.full(5, -10))


def test_watching_and_profiles_see_each_node(p):
    interpreter = p.interpreter(chain(*["PROBE"] * 3))
    interpreter.allocate_tensors()
    assert [row["node"] for row in interpreter.profile(2)] == [0, 1, 2]
    assert calls(interpreter) == [3]
    with flags.override(check_inputs=True):
        np.testing.assert_array_equal(run(interpreter, np.zeros(5)), np.full(5, 3))
