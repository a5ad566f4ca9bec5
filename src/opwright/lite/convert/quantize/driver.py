"""The stages of quantisation in order, and the report of what cannot be.

Lives here: `quantize`.  Not here: the stages (the other modules of this package).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...format import Model
from ..errors import ConverterError
from . import modes, weights
from .calibrate import calibrate
from .modes import Mode
from .plan import Graph, Plan, Range
from .releases import plan_for
from .rewrite import Rewriter
from .rules import Rule
from .tables import Tables
from .trained import carried, trained
from .written import rules_of_users

PASSING = ("IF", "WHILE", "CALL")  # pass real numbers on and compute nothing; what they call is quantised inside
SHOWN = 5  # nodes named for each reason


def quantize(model: Model, mode: Mode, dataset: Any = None, *, custom_ops: Any = (), op_resolver: Any = None,
             at: Callable[[int, int], str | None] = lambda subgraph, operator: None) -> Model:  # fmt: skip
    """The quantised form of a float model, which is left as it was.

    dataset: representative data, where the mode wants it; None where FAKE_QUANTs say all ranges. custom_ops,
    op_resolver: what the model needs to run, as for the Interpreter. at: the user's line behind an operator of a
    subgraph, for errors.
    raises ConverterError where the mode wants integers alone and an operator has none; InvalidArgumentError for data
    that does not fit the model
    """
    if mode.kind == modes.FLOAT:
        return model
    model = Model.read(model.to_bytes())  # as a reader sees it: vectors are arrays, however they were made
    if mode.kind == modes.FLOAT16:
        return weights.float16(model)
    learned = trained(model)
    given = [part.ranges for part in learned]

    customs = rules_of_users(model, custom_ops, op_resolver)

    def line(s: int, i: int) -> str | None:
        return at(s, learned[s].numbers[i])

    if mode.kind == modes.DYNAMIC:
        if any(given):  # then their operators run on integers, and what is left is quantised by its weights
            model = _integers(model, mode._replace(kind=modes.INT8), given, line, customs)
        return weights.dynamic_range(model, mode)
    if dataset is None:
        return _integers(model, mode, given, line, customs)
    seen = calibrate(model, dataset, custom_ops, op_resolver)
    return _integers(model, mode, [a | b for a, b in zip(seen, given)], line, customs)


def _integers(model: Model, mode: Mode, ranges: list[dict[int, Range]], at: Callable[[int, int], str | None],
              customs: Mapping[str, Rule]) -> Model:  # fmt: skip
    graphs = [Graph(model, subgraph, known, customs) for subgraph, known in zip(model.subgraphs, ranges)]
    for graph in graphs:
        carried(graph)
    plans = [plan_for(graph, mode) for graph in graphs]
    if not mode.allow_float:
        _refuse_floats(graphs, plans, at)
    outer = {0, *(int(d.subgraph_index) for d in model.signature_defs)}
    tables = Tables(model)
    pairs = enumerate(zip(graphs, plans))
    return tables.finish([Rewriter(graph, made, mode, tables, i in outer).subgraph() for i, (graph, made) in pairs])


def _refuse_floats(graphs: list[Graph], plans: list[Plan], at: Callable[[int, int], str | None]) -> None:
    """Raises ConverterError listing every operator that would compute on real numbers."""
    found: dict[tuple[str, str], list[str]] = {}
    for s, (graph, made) in enumerate(zip(graphs, plans)):
        for i, reason in made.kept.items():
            if graph.names[i] in PASSING:
                continue
            name = f"{graph.tensors[graph.outputs[i][0]].name!r}" if graph.outputs[i] else f"operator {i}"
            line = at(s, i)
            code = graph.model.operator_codes[graph.operators[i].opcode_index]
            op = code.custom_code or graph.names[i]
            found.setdefault((op, reason), []).append(name + (f" at {line}" if line else ""))
    if not found:
        return
    lines = []
    for (name, reason), nodes in found.items():
        more = f" and {len(nodes) - SHOWN} more" if len(nodes) > SHOWN else ""
        lines.append(f"    Quantization not yet supported for op: '{name}' ({reason}): "
                     f"{', '.join(nodes[:SHOWN])}{more}")  # fmt: skip
    raise ConverterError(
        what="target_spec.supported_ops allows integer operators alone, and these have none\n" + "\n".join(lines),
        do="add OpsSet.TFLITE_BUILTINS to target_spec.supported_ops, so that they stay float, or rewrite the function "
        "without them",
    )
