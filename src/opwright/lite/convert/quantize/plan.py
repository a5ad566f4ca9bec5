"""The plan of one subgraph: which operators run on integers, and the parameters of every quantised tensor.

Lives here: `plan`, which joins the rows of rules.py over a graph.  Not here: new tables (rewrite.py).

1. An operator runs on integers where its row, its types and the ranges allow.
2. Backwards: where an operator wants several tensors alike (JOIN) its parameters are asked of their producers, through
   operators that pass them on (SAME), as far as these are free to take them and nobody else loses by it.
3. Forwards: outputs get what was asked of them, else what their row or range says. Where a reader wants others than the
   producer gave, rewrite.py puts a QUANTIZE between the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...format import versions
from .masks import narrowed
from .modes import Mode
from .parameters import Parameters, of_range
from .rules import ALL, FREE, JOIN, NONE, RULES, SAME, Linear, Rule

Range = tuple[float, float]
COARSER = 2.0  # a tensor with other readers takes a scale this much coarser than its own, and no more
LEAST_SUM = 2.0**-18  # of an output's scale beside the inputs': below, the sum's multiplier would pass 1
CLAMPS = ("RELU6", "RELU_N1_TO_1")
LEAST_CLAMPED = 2.0**-28  # below, the bound 6 of these would pass int32
LEAST_PRODUCT = 2.0**-6  # of an output's scale beside that of a product: below, the accumulator would be shifted out


class Graph:
    """A subgraph with what is asked about it often: operators by name, producers, readers, constants, ranges.

    customs: rules of custom operators, by their names
    """

    def __init__(self, model: Any, subgraph: Any, ranges: Mapping[int, Range],
                 customs: Mapping[str, Rule] = MappingProxyType({})) -> None:  # fmt: skip
        self.customs = customs
        self.model, self.subgraph, self.ranges = model, subgraph, dict(ranges)
        self.narrowed: dict[int, Range] = {}  # what is used in place of what was seen
        self.tensors = subgraph.tensors
        self.operators = subgraph.operators
        self.names = [versions.op_name(model.operator_codes[op.opcode_index]) for op in self.operators]
        self.inputs = [np.asarray(op.inputs).tolist() for op in self.operators]
        self.outputs = [np.asarray(op.outputs).tolist() for op in self.operators]
        self.producer = {t: i for i, outs in enumerate(self.outputs) for t in outs}
        self.readers: dict[int, int] = {}
        for t in [t for ins in self.inputs for t in ins] + np.asarray(subgraph.outputs).tolist():
            self.readers[t] = self.readers.get(t, 0) + 1

    def rule(self, i: int) -> Rule | None:
        """What an operator asks of quantised operands; None where it has no integer kernel."""
        custom = self.model.operator_codes[self.operators[i].opcode_index].custom_code
        return RULES.get(self.names[i]) if custom is None else self.customs.get(custom)

    def fused(self, i: int) -> str:
        """The activation that is fused into an operator."""
        return getattr(getattr(self.operators[i].builtin_options, "fused_activation_function", None), "name", "NONE")

    def is_float(self, t: int) -> bool:
        """Whether an operand is there and float32."""
        return t >= 0 and self.tensors[t].type.name == "FLOAT32"

    def constant(self, t: int) -> np.ndarray | None:
        """The elements of a constant of float32."""
        tensor = self.tensors[t]
        data = self.model.buffers[tensor.buffer].data
        if not self.is_float(t) or data is None or tensor.is_variable or t in self.producer:
            return None
        shape = np.asarray(tensor.shape).tolist()
        array = np.frombuffer(memoryview(data), np.dtype("<f4"))
        return array.reshape(shape) if array.size == np.prod(shape, dtype=np.int64) and len(data) else None

    def range_of(self, t: int) -> Range | None:
        """The least and greatest element that was seen, of a constant those it has; None where none was."""
        if t in self.narrowed:
            return self.narrowed[t]
        array = self.constant(t)
        if array is None:
            return self.ranges.get(t)
        return (float(array.min()), float(array.max())) if array.size and np.isfinite(array).all() else None


class Plan:
    """What `plan` found. rule: of each operator that runs on integers. produced: parameters of each tensor at its
    producer (or behind the QUANTIZE after it, where that is float). joined: of the operands of a JOIN."""

    def __init__(self) -> None:
        self.rule: dict[int, Rule] = {}
        self.produced: dict[int, Parameters] = {}
        self.joined: dict[int, Parameters] = {}
        self.kept: dict[int, str] = {}  # why an operator with float operands stays float
        self.loose: set[int] = set()  # operators that take their operands in any form

    def wanted(self, operator: int, t: int) -> Parameters:
        """What an operator that runs on integers reads an operand with."""
        return self.joined.get(operator) or self.produced[t]


def plan(graph: Graph, mode: Mode, late: Mapping[int, str] = MappingProxyType({})) -> Plan:
    """The plan of a subgraph for a mode with calibrated activations. late: operators to leave float, and why."""
    made = Plan()
    graph.narrowed = graph.narrowed or narrowed(graph)
    for i in range(len(graph.names)):
        operands = [t for t in graph.inputs[i] + graph.outputs[i] if graph.is_float(t)]
        if not operands:
            continue
        reason = late[i] if i in late else _declines(graph, i, mode)
        if reason is None:
            rule = graph.rule(i)
            assert rule is not None
            made.rule[i] = rule
        elif reason:
            made.kept[i] = reason
        else:
            made.loose.add(i)
    asked = _asked(graph, made, mode.activations)
    _assign(graph, made, asked, mode.activations)
    return made


def activations(graph: Graph, i: int, rule: Rule) -> list[int]:
    """The tensors that an operator reads as activations."""
    ins = graph.inputs[i]
    places = range(len(ins)) if rule.operands == ALL else [p for p in rule.operands if p < len(ins)]
    return [ins[p] for p in places if graph.is_float(ins[p])]


def _declines(graph: Graph, i: int, mode: Mode) -> str | None:
    """Why an operator stays float; "" where that is no matter, None where it does not."""
    rule = graph.rule(i)
    if rule is None:
        return "it has no integer kernel"
    if rule.any_form:
        return ""
    if mode.activations not in rule.types:
        return f"it has no {mode.activations} kernel"
    read = activations(graph, i, rule)
    outs = graph.outputs[i]
    if any(t.is_variable for t in map(graph.tensors.__getitem__, [*read, *outs])):
        return "it reads or writes a variable"
    if rule.unfused and graph.fused(i) != "NONE":
        return "its integer kernel takes no fused activation"
    if graph.fused(i) not in ("NONE", "RELU", *CLAMPS):
        return "no integer kernel takes the activation fused into it"
    if len(read) < len(rule.operands):
        return "an operand is not float32"
    for t in [*read, *(t for t in outs if graph.is_float(t) and rule.results is not NONE)]:
        if graph.range_of(t) is None:
            return f"no range was seen of tensor {graph.tensors[t].name!r}"
    if rule.linear is not None:
        return _linear_declines(graph, i, rule.linear)
    if rule.divisor is not None:
        array = graph.constant(graph.inputs[i][rule.divisor])
        if array is None or np.abs(array).min() * 254 < np.ptp(np.append(array, 0.0)):
            return "a divisor may become zero"
    return None


def _linear_declines(graph: Graph, i: int, linear: Linear) -> str | None:
    ins = graph.inputs[i]
    weights = graph.constant(ins[linear.weights])
    if weights is None:
        return "its weights are no constant"
    if not weights.size or not np.isfinite(weights).all():
        return "its weights are empty or not finite"
    bias = ins[linear.bias] if linear.bias < len(ins) else -1
    if bias >= 0 and (graph.constant(bias) is None or graph.range_of(bias) is None):
        return "its bias is no finite constant"
    return None


def _natural(graph: Graph, t: int, dtype: str) -> Parameters:
    found = graph.range_of(t)
    assert found is not None
    return of_range(*found, dtype)


def _fixed(rule: Rule, dtype: str) -> Parameters | None:
    if isinstance(rule.results, str):
        return None
    scale, zero = rule.results[dtype]
    return Parameters(dtype, (scale,), zero)


def _given(graph: Graph, made: Plan, t: int, dtype: str) -> Parameters | None:
    """The parameters that a tensor cannot help having: those fixed at its source."""
    while True:
        i = graph.producer.get(t)
        rule = made.rule.get(i) if i is not None else None
        if i is None or rule is None:
            return None
        if rule.results is not SAME:
            return _fixed(rule, dtype)
        t = activations(graph, i, rule)[0]


def _asked(graph: Graph, made: Plan, dtype: str) -> dict[int, Parameters]:
    """What is asked of tensors by those that read them; of JOINs also what they settle on."""
    asked: dict[int, Parameters] = {}

    def ask(t: int, parameters: Parameters) -> None:
        i = graph.producer.get(t)
        rule = made.rule.get(i) if i is not None else None
        alone = graph.readers.get(t, 0) == 1
        found = graph.range_of(t)
        if t in asked or (rule is not None and _fixed(rule, dtype)):
            return
        if alone or (found is not None and parameters.covers(*found)
                     and parameters.scale <= COARSER * of_range(*found, dtype).scale):  # fmt: skip
            asked[t] = parameters

    for i in sorted(made.rule, reverse=True):
        rule, outs = made.rule[i], graph.outputs[i]
        read = activations(graph, i, rule)
        if rule.results is SAME and graph.is_float(outs[0]) and outs[0] in asked:
            wanted = asked.pop(outs[0])  # what the operand gets it will have
            if all(asked.pop(t, wanted) == wanted for t in outs[1:]):
                found = graph.range_of(read[0])
                if found is not None and wanted.covers(*found) and graph.constant(read[0]) is None:
                    ask(read[0], wanted)
        elif rule.results is JOIN:
            moving = [t for t in read if graph.constant(t) is None]
            given = {_given(graph, made, t, dtype) for t in moving}
            common = given.pop() if len(given) == 1 else None
            wanted = asked.get(outs[0]) or _natural(graph, outs[0], dtype)
            found = graph.range_of(outs[0])
            if common is not None and found is not None and common.covers(*found):
                wanted = common
            made.joined[i] = wanted
            for t in moving:
                ask(t, wanted)
    return asked


def _assign(graph: Graph, made: Plan, asked: Mapping[int, Parameters], dtype: str) -> None:
    produced = made.produced

    def source(t: int) -> Parameters:
        """Of a tensor that is born float, or is constant."""
        if t not in produced:
            produced[t] = asked.get(t) or _natural(graph, t, dtype)
        return produced[t]

    for i, rule in made.rule.items():
        read = activations(graph, i, rule)
        if rule.results is not JOIN:
            for t in read:
                source(t)
        for t in graph.outputs[i]:
            if not graph.is_float(t) or rule.results is NONE:
                continue
            if rule.results is SAME:
                produced[t] = produced[read[0]]
            elif rule.results is JOIN:
                produced[t] = made.joined[i]
            elif rule.results is FREE:
                produced[t] = asked.get(t) or _natural(graph, t, dtype)
                produced[t] = _at_least(produced[t], _least_scale(graph, i, rule, [produced[u] for u in read]))
            else:
                fixed = _fixed(rule, dtype)
                assert fixed is not None
                produced[t] = fixed


def _least_scale(graph: Graph, i: int, rule: Rule, read: list[Parameters]) -> float:
    """The least scale of the output that the kernel's arithmetic bears."""
    clamped = graph.names[i] in CLAMPS or graph.fused(i) in CLAMPS
    return max(LEAST_CLAMPED if clamped else 0.0, _least_of_products(graph, i, rule, read))


def _least_of_products(graph: Graph, i: int, rule: Rule, read: list[Parameters]) -> float:
    if rule.sum:
        return LEAST_SUM * max(p.scale for p in read)
    if rule.linear is not None:
        weights = graph.constant(graph.inputs[i][rule.linear.weights])
        assert weights is not None
        return LEAST_PRODUCT * read[0].scale * float(np.abs(weights).max()) / 127.0
    return 0.0


def _at_least(parameters: Parameters, scale: float) -> Parameters:
    """With a scale of at least that, by a range that is wider on both sides of the zero point."""
    return parameters if parameters.scale >= scale else parameters._replace(scales=(float(np.float32(scale)),))
