"""Custom operators shipped with the interpreter: the official run time's, MediaPipe's, operators of generative models,
and operators that TensorFlow's converter writes under TensorFlow's names.

Lives here: a module for each family, the table of names by module, `get(name)`, `find(name, version)` (definition.py).
Not here: definitions' machinery (definition.py), which operator a model gets (lite/resolver.py).

A module is imported when a model has one of its operators. Operators in `custom_ops=` take precedence over those of the
same name here.
"""

from __future__ import annotations

from .definition import FAMILIES, CustomOperator, custom_operator, find, get, list_names, module_of, versions_of

__all__ = ["FAMILIES", "CustomOperator", "custom_operator", "find", "get", "list_names", "module_of", "versions_of"]
