"""Quantising for an older run time: no operator gets a form that came later.

Lives here: `plan_for`, a plan within a run time; `late`, whether an operator of some types and options came later.
Not here: which version that is (format/versions.py), plans as such (plan.py), float forms (../older).

An operator whose integer form is too new stays float, which changes what its neighbours read, so all is planned anew.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ...format import objects, schema, versions
from .modes import INT16, Mode
from .plan import Graph, Plan, activations, plan
from .rules import NONE


def plan_for(graph: Graph, mode: Mode) -> Plan:
    """The plan of a subgraph in which every operator on integers is there in the run time asked for."""
    kept: dict[int, str] = {}
    while True:
        made = plan(graph, mode, kept)
        found = {i: reason for i in made.rule if (reason := _late(graph, made, mode, i))} if mode.runtime else {}
        if not found:
            return made
        kept |= found


def late(mode: Mode, graph: Graph, i: int, forms: Mapping[int, Any], **options: Any) -> str:
    """Why an operator is too new for the mode's run time once tensors have these forms and options these values; "".

    forms: tables of tensors, by their indices, in place of those of the graph.
    """

    def tensors(indices: list[int]) -> list[Any]:
        return [None if t < 0 else forms.get(t, graph.tensors[t]) for t in indices]

    operator, name = graph.operators[i], graph.names[i]
    if graph.model.operator_codes[operator.opcode_index].custom_code is not None:
        return ""  # run times know nothing of users' operators
    found = operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
    if options and found is not None:
        found = copy.copy(found)
        for key, value in options.items():
            setattr(found, key, value)
    view = versions.OperatorView(tensors(graph.inputs[i]), tensors(graph.outputs[i]), found)
    version = versions.stamp(name, view)
    needed = versions.min_runtime(name, version)
    return f"in this form it is version {version}, of run time {needed}" if mode.too_new(needed) else ""


def _late(graph: Graph, made: Plan, mode: Mode, i: int) -> str:
    rule = made.rule[i]
    forms = {t: _quantized(graph, t, made.wanted(i, t)) for t in activations(graph, i, rule)}
    if rule.linear is not None:
        ins, types = graph.inputs[i], schema.enum("TensorType")
        for place, dtype in ((rule.linear.weights, "int8"), (rule.linear.bias, mode.bias)):
            if place < len(ins) and ins[place] >= 0:
                forms[ins[place]] = _of_type(graph, ins[place], types[dtype.upper()])
    if rule.results is not NONE:
        forms |= {t: _quantized(graph, t, made.produced[t]) for t in graph.outputs[i] if graph.is_float(t)}
    return late(mode, graph, i, forms, **({"pot_scale_int16": False} if rule.sum and mode.kind == INT16 else {}))


def _quantized(graph: Graph, t: int, parameters: Any) -> Any:
    tensor = _of_type(graph, t, parameters.tensor_type)
    tensor.quantization = parameters.table()
    return tensor


def _of_type(graph: Graph, t: int, member: Any) -> Any:
    tensor = copy.copy(graph.tensors[t])
    tensor.type, tensor.quantization = member, objects.QuantizationParameters()
    return tensor
