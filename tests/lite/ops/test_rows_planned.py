"""Every row of the table operator x type is planned by the compiled engine, before or after a run.

Plans before a run are made without code, so that all rows can be tried; test_compiled_*.py compare results.
"""

from __future__ import annotations

from typing import Any

import pytest
from drawn import Draw, Row, answers, feeds, model_of
from drawn_table import ROWS

from opwright.compiler.native.builtins import make_builtins
from opwright.compiler.native.store import without_code
from opwright.compiler.native.string_calls import string_calls
from opwright.compiler.native.workers import functions
from opwright.core import flags
from opwright.lite import Interpreter
from opwright.lite.compiled.delegate import CompiledDelegate

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("reference_engine")]  # the delegate is passed by hand

AT_RUN_TIME = ("is not a constant", "unknown before a run", "under the shape")
"""Words of refusals for sizes that are inputs: nodes that are planned after a run (test_specialised_plans.py)."""
CALLERS = ("IF", "STABLEHLO_CASE", "STABLEHLO_COMPOSITE", "CALL_ONCE", "HASHTABLE")
"""Operators that call subgraphs, which are planned on their own, and tables of strings."""
MODELS = 20


class Planner(CompiledDelegate):
    """The engine's delegate, which plans nodes and leaves them to the interpreter."""

    def __init__(self) -> None:
        super().__init__()
        self.planned: set[int] = set()

    def _register(self, context: Any, params: Any, *rest: Any) -> None:
        self.planned.update(number for p in params for number in p.nodes_to_replace)


def refusal(row: Row, kind: str, seed: int) -> str:
    """Why a drawn model is not planned; "" if it is."""
    model = model_of(row.name, row.draw(Draw(seed, kind)))
    planner = Planner()
    with without_code():
        interpreter = Interpreter(model_content=model.to_bytes(), experimental_delegates=[])
        interpreter._delegate(planner, strict=True)
        interpreter.allocate_tensors()
    assert planner.failure is None, planner.failure
    if all(node.number in planner.planned for node in interpreter._subgraphs[0].execution_plan):
        return ""
    return "; ".join(planner.refused.values()) or "nodes are left without a reason"


NAMES = sorted({row.name for row in ROWS if row.name not in CALLERS})


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_each_row_is_planned(name: str) -> None:
    make_builtins()
    functions()
    string_calls()  # all code that the interpreter runs
    for row in (row for row in ROWS if row.name == name):
        for kind in (kind for kind in row.kinds if kind != "STRING"):
            reasons: list[str] = []
            planned = False
            while not planned and len(reasons) < MODELS:
                reason = refusal(row, kind, len(reasons))
                planned = not reason or any(words in reason for words in AT_RUN_TIME)
                reasons.append(reason)
            assert planned, (row.label, kind, set(reasons))


def unplanned(row: Row, kind: str, seed: int) -> tuple[str, ...]:
    """Nodes of a drawn model that run in Python after four runs, but those without elements."""
    drawn = row.draw(Draw(seed, kind))
    content = model_of(row.name, drawn).to_bytes()
    with flags.override(compiled=True, background=False):
        interpreter = Interpreter(model_content=content)
        answers(interpreter, feeds(drawn), 4)
    nodes = [node for node in interpreter._subgraphs[0].execution_plan if node.name != "Opwright"]
    arrays = [t.array for node in nodes for t in (*node.tensors_in, *node.tensors_out) if t is not None]
    return () if any(x is None or x.size == 0 for x in arrays) else tuple(node.name for node in nodes)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"HASHTABLE"}))
def test_models_that_are_not_planned_before_a_run_are_after_it(name: str) -> None:
    """Sizes that are inputs are guards of plans for those of a run."""
    make_builtins()
    functions()
    string_calls()
    for row in (row for row in ROWS if row.name == name):
        for kind in (kind for kind in row.kinds if kind != "STRING"):
            for seed in [seed for seed in range(8) if refusal(row, kind, seed)][:3]:
                assert not unplanned(row, kind, seed), (row.label, kind, seed)
