"""Users' operators that say in their classes how they compute on quantised tensors: they run on integers, too.

Lives here: their rules.  Not here: builtin operators' (rules.py), what such classes say (lite/ops/quantized/users.py).

An operator whose class says `quantized = "reals"` or has a method of that name gets integers. One that says nothing
stays float, between DEQUANTIZE and QUANTIZE, as in the official converter.
"""

from __future__ import annotations

from typing import Any

from ...registration import OperatorRegistration
from ...resolver import BuiltinOpResolver, with_customs
from .rules import ALL, INT8, Rule


def rules_of_users(model: Any, custom_ops: Any, op_resolver: Any) -> dict[str, Rule]:
    """By the name of a custom operator of the model, its rule. custom_ops, op_resolver: as for the Interpreter."""
    resolver = with_customs(op_resolver or BuiltinOpResolver(), custom_ops)
    found = {}
    for code in model.operator_codes:
        name = code.custom_code
        registration = resolver.find_custom(name, int(code.version)) if name else None
        if isinstance(registration, OperatorRegistration) and registration.operator.says_quantized:
            said = registration.operator.quantized_rule
            if callable(said):
                found[name] = Rule(operands=ALL, types=INT8)
            elif said == "reals":
                found[name] = Rule(operands=ALL)
    return found
