"""The lite dialect: the builtin operators of `.tflite` files, each defined once.

Lives here: a module for each family of operators, the table of them and `get(name)` (families.py).
Not here: the catalogue that programs call (opwright.ops), rules from one to the other (lite/convert/).

A family is imported when one of its operators is first asked for, so a model costs the families it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.importing import lazily

if TYPE_CHECKING:
    from .definition import LiteOperator, lite_operator
    from .families import FAMILIES, family_of, get, list_names, operators

_HOMES = {
    ".definition": "LiteOperator, lite_operator",
    ".families": "FAMILIES, family_of, get, list_names, operators",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = ["FAMILIES", "LiteOperator", "family_of", "get", "list_names", "lite_operator", "operators"]
