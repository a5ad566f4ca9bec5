"""Users' operators that say in their classes how they compute on quantised tensors: they run on integers, too.

Lives here: their rules.  Not here: builtin operators' (rules.py), what such classes say (lite/ops/quantized/users.py).

An operator whose class says `quantized = "reals"` or has a method of that name gets integers. One that says nothing
stays float, between DEQUANTIZE and QUANTIZE, as in the official converter.
"""

from __future__ import annotations

from typing import Any

from ...ops.definition import LiteOperator
from ...ops.external import ExternalOp, is_source
from ...ops.module import LiteModule
from ...registration import OperatorRegistration
from ...resolver import BuiltinOpResolver, with_customs
from .rules import ALL, INT8, Rule


def rules_of_users(module: LiteModule, custom_ops: Any, op_resolver: Any) -> dict[str, Rule]:
    """Return the rule of each custom operator of the model that has one, by name.

    custom_ops, op_resolver: as for the Interpreter.
    """
    resolver = with_customs(op_resolver or BuiltinOpResolver(), custom_ops)
    found = {}
    for graph in module.all_graphs:
        for node in graph.nodes:
            if isinstance(node.op, LiteOperator) or is_source(node):
                continue
            version = node.attrs["version"] if isinstance(node.op, ExternalOp) else node.op.version
            registration = resolver.find_custom(node.op.name, version)
            if isinstance(registration, OperatorRegistration) and registration.operator.says_quantized:
                said = registration.operator.quantized_rule
                if callable(said):
                    found[node.op.name] = Rule(operands=ALL, types=INT8)
                elif said == "reals":
                    found[node.op.name] = Rule(operands=ALL)
    return found
