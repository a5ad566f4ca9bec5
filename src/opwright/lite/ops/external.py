"""Nodes of the lite dialect that are no builtin operators: operators without a definition here, and state.

Lives here: `ExternalOp` and its attributes, `VARIABLE`, `is_source`, `parse_graph`.
Not here: operators with definitions (the catalogue, users'), those of the framework (lite/flex/).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core import introspection
from ...core.errors import UnimplementedError
from ...graph import Graph, Node
from ...graph.ir import Effect
from ...graph.parsing import parse
from ...ops import registry
from .families import get, list_names
from .specs import detailed


class ExternalOp:
    """A custom operator without a definition: any tensors to any tensors. Equal by name.

    Its nodes have three attributes: `options`, bytes of the file or None for none, `version` and `effect`. Graph text
    has its name as a string, which tells it from builtin operators.
    """

    __slots__ = ("name",)

    catalogue = False
    effect: Effect = "write"  # of nodes that state none

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def text_name(self) -> str:
        """The name as a string."""
        return repr(self.name)

    def effect_rule(self, attrs: Mapping[str, Any]) -> Effect:
        """Return a node's effect."""
        return attrs["effect"]

    def evaluate(self, operands: Any, attrs: Any) -> Any:
        """Raise UnimplementedError: what the operator computes is not known."""
        raise UnimplementedError(op=self.name, what="a custom operator without a definition cannot be computed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExternalOp) and self.name == other.name

    def __hash__(self) -> int:
        return hash((ExternalOp, self.name))

    def __repr__(self) -> str:
        return f"<external operator {self.name}>"

    def __reduce__(self) -> Any:
        return ExternalOp, (self.name,)


def external_attrs(options: bytes | None, effect: Effect = None, version: int = 1) -> dict[str, Any]:
    """Return the attributes of a node of an external operator. options: bytes of the file."""
    return {"options": options, "version": version, "effect": effect}


class _Variable:
    """The tensor that keeps its elements from run to run, such as the state of an LSTM: a node without inputs."""

    __slots__ = ()
    name, effect, catalogue = "VARIABLE", "read", False
    inputs: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return "<state of the lite dialect>"

    def __reduce__(self) -> str:
        return "VARIABLE"


VARIABLE = _Variable()


def is_source(node: Node) -> bool:
    """Whether a node stands for a tensor that no operator writes: a constant, or state."""
    return node.op.name == "Const" or node.op is VARIABLE


def find(name: str) -> Any:
    """Return the operator that a name stands for in text of the lite dialect. Raises KeyError."""
    if name[:1] in "'\"":
        return ExternalOp(introspection.literal(name))
    if name == VARIABLE.name:
        return VARIABLE
    if name == "Const":
        return registry.get("Const")
    if name not in list_names():
        raise KeyError(name)
    return get(name)


def parse_graph(text: str) -> Graph:
    """Read a graph of the lite dialect from its text. Raises InvalidArgumentError as `graph.parsing.parse`."""
    return parse(text, find, detailed=detailed)
