"""Rules of ATen operators: each a function of the operator's arguments, as its schema has them, on catalogue operators.

Lives here: `TABLE`, after all modules of rules; `AtenCall`, the context of a rule. Not here: the walk (importer.py).
"""

from .table import TABLE, AtenCall, load_rules

__all__ = ["TABLE", "AtenCall", "load_rules"]
