"""The lite dialect: the builtin operators of `.tflite` files, each defined once.

Lives here: a module for each family of operators, the table of them and `get(name)` (definition.py).
Not here: the catalogue that programs call (opwright.ops), rules from one to the other (lite/convert/).

A family is imported when one of its operators is first asked for, so a model costs the families it uses.
"""

from ...core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
