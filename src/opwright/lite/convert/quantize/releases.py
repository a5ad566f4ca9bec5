"""Quantising for an older run time: no operator gets a form that came later.

Lives here: `plan_for`, a plan within a run time; `late`, whether an operator of some types and options came later.
Not here: which version that is (format/versions.py), plans as such (plan.py), float forms (../older).

An operator whose integer form is too new stays float, which changes what its neighbours read, so all is planned anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....core.specs import TensorSpec
from ....graph import Node, Value
from ...format import versions
from ...ops.definition import LiteOperator
from ...ops.specs import LiteTensorSpec, Quantization
from ..required_version import version_of
from .calibrated_graph import CalibratedGraph, is_float, operand
from .modes import INT16, Mode
from .plan import Plan, activations, plan
from .rules import NONE


def plan_for(graph: CalibratedGraph, mode: Mode) -> Plan:
    """Return the plan of a graph in which every operator on integers is there in the run time asked for."""
    kept: dict[Node, str] = {}
    while True:
        made = plan(graph, mode, kept)
        found = {node: reason for node in made.rule if (reason := _late(made, mode, node))} if mode.runtime else {}
        if not found:
            return made
        kept |= found


def late(mode: Mode, node: Node, specs: Mapping[Value, TensorSpec], **attrs: Any) -> str:
    """Return why a node is too new for the mode's run time once values have these types and attributes; ""."""
    if mode.runtime is None or not isinstance(node.op, LiteOperator):
        return ""  # run times know nothing of users' operators
    version = version_of(node, specs, **attrs)
    needed = versions.min_runtime(node.op.name, version)
    return f"in this form it is version {version}, of run time {needed}" if mode.too_new(needed) else ""


def _late(made: Plan, mode: Mode, node: Node) -> str:
    rule = made.rule[node]
    specs = {v: made.wanted(node, v).of(v.spec) for v in activations(node, rule)}
    if rule.linear is not None:
        for place, dtype in ((rule.linear.weights, "int8"), (rule.linear.bias, mode.bias)):
            if (value := operand(node, place)) is not None:
                specs[value] = LiteTensorSpec(value.shape, dtype, quantization=Quantization())
    if rule.results is not NONE:
        specs |= {v: made.produced[v].of(v.spec) for v in node.outputs if is_float(v)}
    return late(mode, node, specs, **({"pot_scale_int16": False} if rule.sum and mode.kind == INT16 else {}))
