"""Every row of the table: converted, valid, in the operators promised, and giving the function's results."""

from __future__ import annotations

from collections import Counter

from control_cases import CONTROL
from convert_cases import CASES
from convert_cases_parts import PARTS
from convert_harness import Case, assert_same, converted, converter, eager, official, ours
from lite_kit import op_names, op_versions

from each_row import each_row
from opwright.lite.convert.rules import RULES
from opwright.lite.convert.rules.arrays import RANDOM
from opwright.lite.format import Model
from opwright.ops import registry
from thorough import sampled


def rows(check: object) -> object:
    return each_row("row", CASES, by=lambda row: row.name[:1].lower())(check)


@rows
def test_file_holds_the_operators_promised(row: Case) -> None:
    content = converted(row)
    Model.read(content).verify()
    if row.ops is not None:
        assert op_names(content) == list(row.ops)
    result = op_versions(content)
    assert {name: result[name] for name in row.versions} == row.versions


@rows
def test_official_interpreter_agrees(row: Case) -> None:
    assert_same(official(converted(row), row.inputs), eager(row), row.rtol)


@each_row("row", sampled(CASES, 3, by=lambda row: row.name.split()[0]), by=lambda row: row.name[:1].lower())
def test_our_interpreter_agrees(row: Case) -> None:
    assert_same(ours(converted(row), row.inputs), eager(row), row.rtol)


LEFT = frozenset({"PADV2", "STRIDED_SLICE"})


def test_the_official_delegate_takes_parts_whole() -> None:
    """One node of the delegate runs the whole graph, unless an operator that it leaves is promised."""
    from ai_edge_litert.interpreter import Interpreter

    for row in PARTS:
        if row.ops is None or (row.ops and LEFT & set(row.ops)):
            continue
        interpreter = Interpreter(model_content=converted(row))
        interpreter.allocate_tensors()
        (inside,) = (op for op in interpreter._get_ops_details() if op["op_name"] == "DELEGATE")
        ends = {d["index"] for d in (*interpreter.get_input_details(), *interpreter.get_output_details())}
        assert ends <= {*inside["inputs"].tolist(), *inside["outputs"].tolist()}, row.name


def test_names_are_given_once() -> None:
    repeated = [name for name, n in Counter(f"{c.name} {c.inputs[0].dtype}" for c in CASES).items() if n > 1]
    assert not repeated


def test_every_rule_names_an_operator_of_the_catalogue() -> None:
    assert not set(RULES) - set(registry.catalogue())


FAKE_QUANT = {f"FakeQuantWithMinMax{kind}" for kind in ("Args", "Vars", "VarsPerChannel")}


def test_every_rule_has_a_row() -> None:
    """Random numbers and ranges for quantisation have tests of their own (test_convert_random.py, quantize/)."""
    used = set()
    graphs = [row.concrete().graph for row in (*CASES, *CONTROL)]
    for graph in graphs:
        used.update(node.op.name for node in graph.nodes)
        graphs += [inner for node in graph.nodes for inner in node.subgraphs]
    assert set(RULES) - used - set(RANDOM) - FAKE_QUANT == set()


def test_same_bytes_every_time() -> None:
    for row in CASES[::20]:  # both now: running a row may have changed its variables
        first, second = (converter(row.concrete()).convert() for _ in range(2))
        assert first == second
