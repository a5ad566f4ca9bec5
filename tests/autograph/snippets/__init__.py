"""The snippets, in the order of their files: each module adds its own to the table."""

from . import branches, expressions, for_loops, lists, while_loops
from .table import CASES

__all__ = ["CASES", "branches", "expressions", "for_loops", "lists", "while_loops"]
