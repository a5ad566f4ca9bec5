"""The plan of one graph: which operators run on integers, and the parameters of every quantised value.

Lives here: `plan`, which joins the rows of rules.py over a graph.  Not here: the new graph (rewrite.py).

1. An operator runs on integers where its row, its types and the ranges allow.
2. Backwards: where an operator wants several tensors alike (JOIN) its parameters are asked of their producers, through
   operators that pass them on (SAME), as far as these are free to take them and nobody else loses by it.
3. Forwards: outputs get what was asked of them, else what their row or range says. Where a reader wants others than the
   producer gave, rewrite.py puts a QUANTIZE between the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ....core.constants import FUSED_CLAMPS
from ....graph import Node, Value
from ....graph.ir import flat
from ...ops.specs import name_of
from .calibrated_graph import CalibratedGraph, constant, fused, is_float, operand, producer
from .masks import narrowed
from .modes import Mode
from .parameters import Parameters, of_range
from .rules import ALL, FREE, JOIN, NONE, SAME, Linear, Rule

COARSER = 2.0  # a tensor with other readers takes a scale this much coarser than its own, and no more
LEAST_SUM = 2.0**-18  # of an output's scale beside the inputs': below, the sum's multiplier would pass 1
CLAMPS = tuple(name for name in FUSED_CLAMPS if name != "RELU")
LEAST_CLAMPED = 2.0**-28  # below, the bound 6 of these would pass int32
LEAST_PRODUCT = 2.0**-6  # of an output's scale beside that of a product: below, the accumulator would be shifted out


class Plan:
    """What `plan` found.

    rule: of each node that runs on integers. produced: parameters of each value at its producer (or behind the QUANTIZE
    after it, where that is float). joined: of the operands of a JOIN. kept: why a node with float operands stays float.
    loose: nodes that take their operands in any form.
    """

    def __init__(self) -> None:
        self.rule: dict[Node, Rule] = {}
        self.produced: dict[Value, Parameters] = {}
        self.joined: dict[Node, Parameters] = {}
        self.kept: dict[Node, str] = {}
        self.loose: set[Node] = set()

    def wanted(self, node: Node, value: Value) -> Parameters:
        """Return what a node that runs on integers reads an operand with."""
        return self.joined.get(node) or self.produced[value]


def plan(graph: CalibratedGraph, mode: Mode, late: Mapping[Node, str] = MappingProxyType({})) -> Plan:
    """Return the plan of a graph for a mode with calibrated activations. late: nodes to leave float, and why."""
    made = Plan()
    graph.narrowed = graph.narrowed or narrowed(graph)
    for node in graph.operators:
        if not any(map(is_float, (*node.operands, *node.outputs))):
            continue
        reason = late[node] if node in late else _declines(graph, node, mode)
        if reason is None:
            rule = graph.rule(node)
            assert rule is not None
            made.rule[node] = rule
        elif reason:
            made.kept[node] = reason
        else:
            made.loose.add(node)
    asked = _asked(graph, made, mode.activations)
    _assign(graph, made, asked, mode.activations)
    return made


def activations(node: Node, rule: Rule) -> list[Value]:
    """Return the values that a node reads as activations."""
    operands = flat(node.inputs)
    places = range(len(operands)) if rule.operands == ALL else [p for p in rule.operands if p < len(operands)]
    return [operands[p] for p in places if is_float(operands[p])]


def _declines(graph: CalibratedGraph, node: Node, mode: Mode) -> str | None:
    """Return why a node stays float; "" where that is no matter, None where it does not."""
    rule = graph.rule(node)
    if rule is None:
        return "it has no integer kernel"
    if rule.any_form:
        return ""
    if mode.activations not in rule.types:
        return f"it has no {mode.activations} kernel"
    read = activations(node, rule)
    if any(getattr(v.spec, "is_variable", False) for v in (*read, *node.outputs)):
        return "it reads or writes a variable"
    if rule.unfused and fused(node) != "NONE":
        return "its integer kernel takes no fused activation"
    if fused(node) not in ("NONE", "RELU", *CLAMPS):
        return "no integer kernel takes the activation fused into it"
    if len(read) < len(rule.operands):
        return "an operand is not float32"
    for value in [*read, *(v for v in node.outputs if is_float(v) and rule.results is not NONE)]:
        if graph.range_of(value) is None:
            return f"no range was seen of tensor {name_of(value)!r}"
    if rule.linear is not None:
        return _linear_declines(graph, node, rule.linear)
    if rule.divisor is not None:
        array = constant(operand(node, rule.divisor))
        if array is None or np.abs(array).min() * 254 < np.ptp(np.append(array, 0.0)):
            return "a divisor may become zero"
    return None


def _linear_declines(graph: CalibratedGraph, node: Node, linear: Linear) -> str | None:
    weights = constant(operand(node, linear.weights))
    if weights is None:
        return "its weights are no constant"
    if not weights.size or not np.isfinite(weights).all():
        return "its weights are empty or not finite"
    bias = operand(node, linear.bias)
    if bias is not None and (constant(bias) is None or graph.range_of(bias) is None):
        return "its bias is no finite constant"
    return None


def _natural(graph: CalibratedGraph, value: Value, dtype: str) -> Parameters:
    found = graph.range_of(value)
    assert found is not None
    return of_range(*found, dtype)


def _fixed(rule: Rule, dtype: str) -> Parameters | None:
    if isinstance(rule.results, str):
        return None
    scale, zero = rule.results[dtype]
    return Parameters(dtype, (scale,), zero)


def _given(made: Plan, value: Value, dtype: str) -> Parameters | None:
    """Return the parameters that a value cannot help having: those fixed at its source."""
    while True:
        node = producer(value)
        rule = made.rule.get(node) if node is not None else None
        if node is None or rule is None:
            return None
        if rule.results is not SAME:
            return _fixed(rule, dtype)
        value = activations(node, rule)[0]


def _asked(graph: CalibratedGraph, made: Plan, dtype: str) -> dict[Value, Parameters]:
    """Return the parameters that readers demand of values; for JOIN, also the parameters they agree on."""
    asked: dict[Value, Parameters] = {}

    def ask(value: Value, parameters: Parameters) -> None:
        node = producer(value)
        rule = made.rule.get(node) if node is not None else None
        found = graph.range_of(value)
        if value in asked or (rule is not None and _fixed(rule, dtype)):
            return
        close = found is not None and parameters.covers(*found)
        if graph.readers[value] == 1 or (
            close and found is not None and parameters.scale <= COARSER * of_range(*found, dtype).scale
        ):
            asked[value] = parameters

    for node, rule in reversed(made.rule.items()):
        outs = node.outputs
        read = activations(node, rule)
        if rule.results is SAME and is_float(outs[0]) and outs[0] in asked:
            wanted = asked.pop(outs[0])  # what the operand gets it will have
            if all(asked.pop(v, wanted) == wanted for v in outs[1:]):
                found = graph.range_of(read[0])
                if found is not None and wanted.covers(*found) and constant(read[0]) is None:
                    ask(read[0], wanted)
        elif rule.results is JOIN:
            moving = [v for v in read if constant(v) is None]
            given = {_given(made, v, dtype) for v in moving}
            common = given.pop() if len(given) == 1 else None
            wanted = asked.get(outs[0]) or _natural(graph, outs[0], dtype)
            found = graph.range_of(outs[0])
            if common is not None and found is not None and common.covers(*found):
                wanted = common
            made.joined[node] = wanted
            for value in moving:
                ask(value, wanted)
    return asked


def _assign(graph: CalibratedGraph, made: Plan, asked: Mapping[Value, Parameters], dtype: str) -> None:
    produced = made.produced

    def source(value: Value) -> Parameters:
        """Return those of a value that is born float, or is constant."""
        if value not in produced:
            produced[value] = asked.get(value) or _natural(graph, value, dtype)
        return produced[value]

    for node, rule in made.rule.items():
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
                produced[value] = made.joined[node]
            elif rule.results is FREE:
                produced[value] = asked.get(value) or _natural(graph, value, dtype)
                produced[value] = _at_least(produced[value], _least_scale(node, rule, [produced[v] for v in read]))
            else:
                fixed = _fixed(rule, dtype)
                assert fixed is not None
                produced[value] = fixed


def _least_scale(node: Node, rule: Rule, read: list[Parameters]) -> float:
    """Return the least scale of the output that the kernel's arithmetic bears."""
    clamped = node.op.name in CLAMPS or fused(node) in CLAMPS
    return max(LEAST_CLAMPED if clamped else 0.0, _least_of_products(node, rule, read))


def _least_of_products(node: Node, rule: Rule, read: list[Parameters]) -> float:
    if rule.sum:
        return LEAST_SUM * max(p.scale for p in read)
    if rule.linear is not None:
        weights = constant(operand(node, rule.linear.weights))
        assert weights is not None
        return LEAST_PRODUCT * read[0].scale * float(np.abs(weights).max()) / 127.0
    return 0.0


def _at_least(parameters: Parameters, scale: float) -> Parameters:
    """With a scale of at least that, by a range that is wider on both sides of the zero point."""
    return parameters if parameters.scale >= scale else parameters._replace(scales=(float(np.float32(scale)),))
