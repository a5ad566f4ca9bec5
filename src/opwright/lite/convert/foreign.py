"""Operators of others in the graph that is converted: known by the name, version and options that the file will have.

Lives here: `Foreign`.  Not here: fused operators (fused.py), those of the framework (lite/flex/), operators of one's
own, which have definitions (custom.py).
"""

from __future__ import annotations

from typing import Any

from ...core.errors import UnimplementedError
from ...graph.ir import Effect


class Foreign:
    """A custom operator without a definition here. It takes any tensors and gives any; options: bytes of the file."""

    __slots__ = ("effect", "name", "options", "version")

    catalogue = False

    def __init__(self, name: str, options: bytes, effect: Effect = None, version: int = 1) -> None:
        self.name, self.options, self.effect, self.version = name, options, effect, version

    def evaluate(self, operands: Any, attrs: Any) -> Any:
        """It cannot be computed ahead: nobody here knows what it does."""
        raise UnimplementedError(op=self.name, what="an operator of others has no definition here")

    def __repr__(self) -> str:
        return f"<operator {self.name} of others>"
