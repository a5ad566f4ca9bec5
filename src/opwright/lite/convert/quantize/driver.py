"""The driver of quantisation: its stages in order, and the report of nodes without an integer form.

Lives here: `quantize`, `sparsify`.  Not here: the stages (the other modules of this package).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ....graph import Graph, Value
from ....graph.builder import GraphTransform
from ...ops.definition import LiteOperator
from ...ops.module import LiteModule
from ...ops.specs import name_of
from ..errors import ConverterError
from . import modes, sparsity, weights
from .calibrated_graph import CalibratedGraph, Range
from .calibration import calibrate, carried, trained
from .graph_quantizer import GraphQuantizer
from .modes import Mode
from .plan import QuantizationPlan, plan_for
from .rules import QuantizationRule, rules_of_users

PASSING = ("IF", "WHILE", "CALL")  # pass real numbers on and compute nothing; what they call is quantised inside
SHOWN = 5  # nodes named for each reason


def quantize(
    module: LiteModule, mode: Mode, dataset: Any = None, *, custom_ops: Any = (), op_resolver: Any = None
) -> LiteModule:
    """Return the quantised form of a float model, which is left as it was.

    dataset: representative data, where the mode wants it; None where FAKE_QUANTs say all ranges. custom_ops,
    op_resolver: what the model needs to run, as for the Interpreter.
    raises ConverterError where the mode wants integers alone and an operator has none; InvalidArgumentError for data
    that does not fit the model
    """
    if mode.kind == modes.FLOAT:
        return module
    if mode.kind == modes.FLOAT16:
        return _each(module, weights.float16)
    ranges: dict[Value, Range] = {}
    module = _each(module, lambda graph, inside: trained(graph, inside, ranges))
    customs = rules_of_users(module, custom_ops, op_resolver)
    if mode.kind == modes.DYNAMIC:
        if ranges:  # then their operators run on integers, and what is left is quantised by its weights
            module = _integers(module, mode._replace(kind=modes.INT8), ranges, customs)
        return _each(module, lambda graph, inside: weights.dynamic_range(graph, inside, mode))
    if dataset is not None:
        ranges = calibrate(module, dataset, custom_ops, op_resolver) | ranges
    return _integers(module, mode, ranges, customs)


def sparsify(module: LiteModule, mode: Mode) -> LiteModule:
    """Return the model with its weights of many zeros in sparse form. mode: of the quantisation, which was before."""
    return _each(module, lambda graph, inside: sparsity.sparsify(graph, inside, mode))


def _each(module: LiteModule, change: Callable[[Graph, Callable[[Graph], Graph]], Graph]) -> LiteModule:
    """Apply a change to every graph of a module, once."""
    changed = GraphTransform(change)
    return module._replace(graphs=[changed(graph) for graph in module.graphs])


def _integers(
    module: LiteModule, mode: Mode, ranges: Mapping[Value, Range], customs: Mapping[str, QuantizationRule]
) -> LiteModule:
    graphs = {graph: CalibratedGraph(graph, ranges, customs) for graph in module.all_graphs}
    for graph in graphs.values():
        carried(graph)
    plans = {graph: plan_for(calibrated, mode) for graph, calibrated in graphs.items()}
    if not mode.allow_float:
        _refuse_floats(plans.values())
    outer = {module.graphs[0], *(module.graphs[s.graph] for s in module.signatures)}
    return _each(
        module,
        lambda graph, inside: GraphQuantizer(graphs[graph], plans[graph], mode, graph in outer, inside).rewritten(),
    )


def _refuse_floats(plans: Iterable[QuantizationPlan]) -> None:
    """Raise ConverterError listing every operator that would compute on real numbers."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for node, reason in (item for plan in plans for item in plan.kept.items()):
        if isinstance(node.op, LiteOperator) and node.op.name in PASSING:
            continue
        name = repr(name_of(node.outputs[0]) if node.outputs else node.name)
        by_reason.setdefault((node.op.name, reason), []).append(name + (f" at {node.at}" if node.at else ""))
    if not by_reason:
        return
    lines = []
    for (name, reason), nodes in by_reason.items():
        more = f" and {len(nodes) - SHOWN} more" if len(nodes) > SHOWN else ""
        lines.append(
            f"    Quantization not yet supported for op: '{name}' ({reason}): {', '.join(nodes[:SHOWN])}{more}"
        )
    raise ConverterError(
        what="target_spec.supported_ops allows integer operators alone, and these have none\n" + "\n".join(lines),
        do="add OpsSet.TFLITE_BUILTINS to target_spec.supported_ops, so that they stay float, or rewrite the function "
        "without them",
    )
