"""Custom operators that the interpreter knows by itself: those of the official run time, of MediaPipe, of generative
models, and the ones that TensorFlow's converter writes under TensorFlow's names.

Lives here: a module for each family, the table of names by module, `get(name)`, `find(name, version)` (families.py).
Not here: definitions' machinery (definition.py), which operator a model gets (lite/resolver.py).

A module is imported when a model has one of its operators. `custom_ops=` goes before what is here, and one that is
given under a name of this table takes its place.
"""

from __future__ import annotations

from .definition import CustomOperator, custom_operator
from .families import FAMILIES, find, get, list_names, module_of, versions_of

__all__ = ["FAMILIES", "CustomOperator", "custom_operator", "find", "get", "list_names", "module_of", "versions_of"]
