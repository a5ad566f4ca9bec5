"""Schemas that the package `onnx` knows: of the standard's operators, and of operators that other packages register.

Lives here: `call_of_schema`. Not here: nodes of models (execution.py).
"""

from __future__ import annotations

from typing import Any

from ..missing_operators import ForeignCall, Required
from .files import onnx_module

_KINDS = {"INT": "int", "INTS": "[int]", "FLOAT": "float", "FLOATS": "[float]", "STRING": "str", "STRINGS": "[str]"}


def call_of_schema(name: str) -> ForeignCall | None:
    """Return an operator, such as "Conv" or "my.domain::Op", by its newest schema; None if onnx knows none."""
    onnx = onnx_module()
    domain, _, operator = name.rpartition("::")
    domain = "" if domain == "ai.onnx" else domain
    try:
        schema = onnx.defs.get_schema(operator, domain=domain)
    except onnx.defs.SchemaError:
        return None
    options = {"Optional": "Tensor?", "Variadic": "Tensor[]"}
    inputs = tuple((slot.name, options.get(slot.option.name, "Tensor")) for slot in schema.inputs)
    attributes: dict[str, Any] = {}
    for attribute in schema.attributes.values():
        default = attribute.default_value
        kind = _KINDS.get(attribute.type.name, "object")
        if default.type:
            value = onnx.helper.get_attribute_value(default)
            attributes[attribute.name] = value.decode() if isinstance(value, bytes) else value
        else:
            attributes[attribute.name] = Required(kind if attribute.required else f"{kind}, default=None")
    return ForeignCall(f"{domain}::{operator}" if domain else operator, "", inputs, attributes, len(schema.outputs))
