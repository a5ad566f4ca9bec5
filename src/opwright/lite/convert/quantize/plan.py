"""The quantisation plan of one graph: nodes that run on integers, and the parameters of every quantised value.

Lives here: `plan`, which applies the rows of rules.py to a graph; `plan_for`, `late`: plans within a run time.
Not here: the choice of parameters for a range (parameters.py), the new graph (driver.py), the ranges (calibration.py),
versions (lite/format/versions.py), older float forms (../downlevel).

1. An operator runs on integers if its row, its types and the ranges allow it.
2. Backwards: an operator that wants its operands alike (JOIN) asks their producers for its parameters, through
   operators that pass parameters on (SAME), as far as these are free to take them and no other reader loses precision.
3. Forwards: outputs take the parameters asked for, else those of their row or range. Where a reader wants others,
   driver.py inserts a QUANTIZE.

An operator whose integer form is too new for the run time stays float. This changes the operands of its neighbours, so
the whole graph is planned again.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ....core.specs import TensorSpec
from ....graph import Node, Value
from ....graph.ir import flat
from ....scalar.formulas import FUSED_CLAMPS
from ...format import versions
from ...ops.definition import LiteOperator
from ...ops.specs import LiteTensorSpec, Quantization, name_of
from ..downlevel import version_of
from ..rewriter import fused_activation
from .graphs import CalibratedGraph, constant, is_float, operand, producer
from .masks import narrowed
from .modes import INT16, Mode
from .parameters import QuantizationParameters, of_range, weights_grid
from .rules import ALL, AVERAGING, FREE, JOIN, NONE, SAME, LinearOperands, QuantizationRule

COARSER = 2.0  # a tensor with other readers takes a scale this much coarser than its own, and no more
LEAST_SUM = 2.0**-18  # of an output's scale relative to the inputs': below, the sum's multiplier would pass 1
CLAMPS = tuple(name for name in FUSED_CLAMPS if name != "RELU")
LEAST_CLAMPED = 2.0**-28  # below, the bound 6 of these would pass int32
BOUNDING = ("ADD", "MAXIMUM")
OF_DIVISORS = ("SQRT", "RESHAPE", "EXPAND_DIMS", "SQUEEZE", "TRANSPOSE", "BROADCAST_TO", "TILE")
LEAST_PRODUCT = 2.0**-6  # of an output's scale relative to a product's: below, the accumulator would be shifted out


class QuantizationPlan:
    """Result of `plan`.

    rule: of each node that runs on integers. produced: parameters of each value at its producer (or behind the QUANTIZE
    after it, where that is float). joined: of the operands of a JOIN. kept: why a node with float operands stays float.
    loose: nodes that take their operands in any form.
    """

    def __init__(self) -> None:
        self.rule: dict[Node, QuantizationRule] = {}
        self.produced: dict[Value, QuantizationParameters] = {}
        self.joined: dict[Node, QuantizationParameters] = {}
        self.kept: dict[Node, str] = {}
        self.loose: set[Node] = set()

    def parameters_read(self, node: Node, value: Value) -> QuantizationParameters:
        """Return the parameters with which a node on integers reads an operand."""
        return self.joined.get(node) or self.produced[value]


def plan(graph: CalibratedGraph, mode: Mode, late: Mapping[Node, str] = MappingProxyType({})) -> QuantizationPlan:
    """Return the plan of a graph for a mode with calibrated activations. late: nodes to leave float, and why."""
    result = QuantizationPlan()
    graph.narrowed = graph.narrowed or narrowed(graph)
    if not mode.explicit:
        _keep_divisors(graph)
    for node in graph.operators:
        if not any(map(is_float, (*node.operands, *node.outputs))):
            continue
        reason = late[node] if node in late else _declines(graph, node, mode)
        if reason is None:
            rule = graph.rule(node)
            assert rule is not None
            result.rule[node] = rule
        elif reason:
            result.kept[node] = reason
        else:
            result.loose.add(node)
    asked = _demanded(graph, result, mode.activations, mode.explicit)
    _assign(graph, result, asked, mode.activations)
    return result


def _keep_divisors(graph: CalibratedGraph) -> None:
    """Keep float what computes divisors, back to the sum or maximum that keeps them above 0, as of a variance and its
    epsilon: an integer for both is 0, and the quotient infinite."""
    for node in graph.operators:
        rule = graph.rule(node)
        value = operand(node, rule.divisor) if rule is not None and rule.divisor is not None else None
        chain: list[Node] = []
        while value is not None and (source := producer(value)) is not None:
            chain.append(source)
            if source.op.name in BOUNDING:
                if any((array := constant(v)) is not None and array.min(initial=1) > 0 for v in source.operands):
                    graph.kept.update(dict.fromkeys(chain, "its result is a divisor"))
                break
            value = operand(source, 0) if source.op.name in OF_DIVISORS else None


def activations(node: Node, rule: QuantizationRule) -> list[Value]:
    """Return the values that a node reads as activations."""
    operands = flat(node.inputs)
    places = range(len(operands)) if rule.operands == ALL else [p for p in rule.operands if p < len(operands)]
    return [operands[p] for p in places if is_float(operands[p])]


def _declines(graph: CalibratedGraph, node: Node, mode: Mode) -> str | None:
    """Return why a node remains float; "" if it reads operands in any form, None if it runs on integers."""
    rule = graph.rule(node)
    if rule is None:
        return "it has no integer kernel"
    if node in graph.kept:
        return graph.kept[node]
    if rule.any_form:
        return ""
    if mode.activations not in rule.types:
        return f"it has no {mode.activations} kernel"
    read = activations(node, rule)
    if any(getattr(v.spec, "is_variable", False) for v in (*read, *node.outputs)):
        return "it reads or writes a variable"
    if rule.unfused and fused_activation(node) != "NONE":
        return "its integer kernel takes no fused activation"
    if fused_activation(node) not in ("NONE", "RELU", *CLAMPS):
        return "no integer kernel takes the activation fused into it"
    if len(read) < len(rule.operands):
        return "an operand is not float32"
    for value in [*read, *(v for v in node.outputs if is_float(v) and rule.results is not NONE)]:
        if graph.range_of(value) is None:
            return f"no range was seen of tensor {name_of(value)!r}"
    if mode.explicit and node.op.name in AVERAGING and graph.range_of(read[0]) != graph.range_of(node.outputs[0]):
        return "its result has another scale than its operand"
    if rule.linear is not None:
        return _linear_declines(graph, node, rule.linear, mode)
    if rule.divisor is not None:
        array = constant(operand(node, rule.divisor))
        if array is None or np.abs(array).min() * 254 < np.ptp(np.append(array, 0.0)):
            return "a divisor may become zero"
    return None


def _linear_declines(graph: CalibratedGraph, node: Node, linear: LinearOperands, mode: Mode) -> str | None:
    weights = constant(operand(node, linear.weights))
    if weights is None:
        return "its weights are not constant"
    if not weights.size or not np.isfinite(weights).all():
        return "its weights are empty or not finite"
    if mode.explicit and weights_grid(weights, linear.axis) is None:
        return "its weights were not quantized"
    bias = operand(node, linear.bias)
    if bias is not None and (constant(bias) is None or graph.range_of(bias) is None):
        return "its bias is not a finite constant"
    return None


def _natural(graph: CalibratedGraph, value: Value, dtype: str) -> QuantizationParameters:
    measured = graph.range_of(value)
    assert measured is not None
    return of_range(*measured, dtype)


def _fixed(rule: QuantizationRule, dtype: str) -> QuantizationParameters | None:
    if isinstance(rule.results, str):
        return None
    scale, zero = rule.results[dtype]
    return QuantizationParameters(dtype, (scale,), zero)


def _source_parameters(graph_plan: QuantizationPlan, value: Value, dtype: str) -> QuantizationParameters | None:
    """Return the parameters that are fixed at a value's source, if any."""
    while True:
        node = producer(value)
        rule = graph_plan.rule.get(node) if node is not None else None
        if node is None or rule is None:
            return None
        if rule.results is not SAME:
            return _fixed(rule, dtype)
        value = activations(node, rule)[0]


def _demanded(
    graph: CalibratedGraph, graph_plan: QuantizationPlan, dtype: str, explicit: bool
) -> dict[Value, QuantizationParameters]:
    """Return the parameters that readers demand of values; for JOIN, also the parameters they agree on."""
    asked: dict[Value, QuantizationParameters] = {}

    def ask(value: Value, parameters: QuantizationParameters) -> None:
        node = producer(value)
        rule = graph_plan.rule.get(node) if node is not None else None
        measured = graph.range_of(value)
        if value in asked or (rule is not None and _fixed(rule, dtype)):
            return
        if explicit and (measured is None or parameters != of_range(*measured, dtype)):
            return  # the program clamps the value to its own range first
        close = measured is not None and parameters.covers(*measured)
        if graph.readers[value] == 1 or (
            close and measured is not None and parameters.scale <= COARSER * of_range(*measured, dtype).scale
        ):
            asked[value] = parameters

    for node, rule in reversed(graph_plan.rule.items()):
        outs = node.outputs
        read = activations(node, rule)
        if rule.results is SAME and is_float(outs[0]) and outs[0] in asked:
            target = asked.pop(outs[0])  # the output takes the operand's parameters
            if all(asked.pop(v, target) == target for v in outs[1:]):
                measured = graph.range_of(read[0])
                if measured is not None and target.covers(*measured) and constant(read[0]) is None:
                    ask(read[0], target)
        elif rule.results is JOIN:
            moving = [v for v in read if constant(v) is None]
            fixed = {_source_parameters(graph_plan, v, dtype) for v in moving}
            common = fixed.pop() if len(fixed) == 1 else None
            target = asked.get(outs[0]) or _natural(graph, outs[0], dtype)
            measured = graph.range_of(outs[0])
            if common is not None and measured is not None and common.covers(*measured):
                target = common
            graph_plan.joined[node] = target
            for value in moving:
                ask(value, target)
    return asked


def _assign(
    graph: CalibratedGraph, graph_plan: QuantizationPlan, asked: Mapping[Value, QuantizationParameters], dtype: str
) -> None:
    produced = graph_plan.produced

    def source(value: Value) -> QuantizationParameters:
        """Return the parameters of a constant, or of a value that a node on floats produces."""
        if value not in produced:
            produced[value] = asked.get(value) or _natural(graph, value, dtype)
        return produced[value]

    for node, rule in graph_plan.rule.items():
        read = activations(node, rule)
        if rule.results is not JOIN:
            for value in read:
                source(value)
        for value in node.outputs:
            if not is_float(value) or rule.results is NONE:
                continue
            if rule.results is SAME:
                produced[value] = produced[read[0]]
            elif rule.results is JOIN:
                produced[value] = graph_plan.joined[node]
            elif rule.results is FREE:
                produced[value] = asked.get(value) or _natural(graph, value, dtype)
                produced[value] = _at_least(produced[value], _least_scale(node, rule, [produced[v] for v in read]))
            else:
                fixed = _fixed(rule, dtype)
                assert fixed is not None
                produced[value] = fixed


def _least_scale(node: Node, rule: QuantizationRule, read: list[QuantizationParameters]) -> float:
    """Return the least scale of the output that the kernel's arithmetic supports."""
    clamped = node.op.name in CLAMPS or fused_activation(node) in CLAMPS
    return max(LEAST_CLAMPED if clamped else 0.0, _least_of_products(node, rule, read))


def _least_of_products(node: Node, rule: QuantizationRule, read: list[QuantizationParameters]) -> float:
    if rule.sum:
        return LEAST_SUM * max(p.scale for p in read)
    if rule.linear is not None:
        weights = constant(operand(node, rule.linear.weights))
        assert weights is not None
        return LEAST_PRODUCT * read[0].scale * float(np.abs(weights).max()) / 127.0
    return 0.0


def _at_least(parameters: QuantizationParameters, scale: float) -> QuantizationParameters:
    """Return parameters with a scale of at least `scale`: the range widens on both sides of the zero point."""
    return parameters if parameters.scale >= scale else parameters._replace(scales=(float(np.float32(scale)),))


def plan_for(graph: CalibratedGraph, mode: Mode) -> QuantizationPlan:
    """Return the plan of a graph whose operators on integers all exist in the target run time."""
    kept: dict[Node, str] = {}
    while True:
        candidate = plan(graph, mode, kept)
        too_new = (
            {node: reason for node in candidate.rule if (reason := _unsupported_by_runtime(candidate, mode, node))}
            if mode.runtime
            else {}
        )
        if not too_new:
            return candidate
        kept |= too_new


def unsupported_by_runtime(mode: Mode, node: Node, specs: Mapping[Value, TensorSpec], **attrs: Any) -> str:
    """Return why a node is too new for the mode's run time once values have these types and attributes; ""."""
    if mode.runtime is None or not isinstance(node.op, LiteOperator):
        return ""  # custom operators have no version rules
    version = version_of(node, specs, **attrs)
    needed = versions.min_runtime(node.op.name, version)
    return f"in this form it is version {version}, of run time {needed}" if mode.too_new(needed) else ""


def _unsupported_by_runtime(graph_plan: QuantizationPlan, mode: Mode, node: Node) -> str:
    rule = graph_plan.rule[node]
    specs = {v: graph_plan.parameters_read(node, v).of(v.spec) for v in activations(node, rule)}
    if rule.linear is not None:
        for place, dtype in ((rule.linear.weights, "int8"), (rule.linear.bias, mode.bias)):
            if (value := operand(node, place)) is not None:
                specs[value] = LiteTensorSpec(value.shape, dtype, quantization=Quantization())
    if rule.results is not NONE:
        specs |= {v: graph_plan.produced[v].of(v.spec) for v in node.outputs if is_float(v)}
    attrs = {"pot_scale_int16": False} if rule.sum and mode.kind == INT16 else {}
    return unsupported_by_runtime(mode, node, specs, **attrs)
