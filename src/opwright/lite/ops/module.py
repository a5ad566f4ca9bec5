"""Whole models in the lite dialect, and their nodes that are not a builtin operators.

Lives here: `LiteModule`, `GraphSignature`, the order of graphs; `ExternalOp` and its attributes, `VARIABLE`,
`is_source`, `parse_graph`.
Not here: operators with definitions (the catalogue, users'), those of the framework (lite/flex/), reading files into
a module (lite/importer.py), writing one (lite/convert/export.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...core import introspection
from ...core.errors import UnimplementedError
from ...graph import Graph, Node
from ...graph.ir import Effect
from ...graph.parser import parse
from ...ops import registry
from ..format import versions
from .definition import get, list_names
from .specs import detailed

RUNTIME = (versions.METADATA_NAME, b"")
"""The metadata entry whose contents follow from the operators when a model is written."""


class GraphSignature(NamedTuple):
    """The signature of a graph: its key, the graph's inputs and outputs by name; number of the graph
    in its module."""

    key: str
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    graph: int = 0


class LiteModule(NamedTuple):
    """A model. graphs: in the order of its subgraphs; graphs held by nodes may be left out. metadata: names and
    contents, in order. attachment: the zip archive behind the file."""

    graphs: Sequence[Graph]
    signatures: Sequence[GraphSignature] = ()
    description: str | None = None
    metadata: Sequence[tuple[str, bytes]] = (RUNTIME,)
    attachment: bytes | None = None

    @property
    def all_graphs(self) -> list[Graph]:
        """The graphs and the graphs held by their nodes, each once: the module's first, then by depth."""
        return all_graphs(self.graphs)


def all_graphs(graphs: Iterable[Graph]) -> list[Graph]:
    """Return the graphs and the graphs held by their nodes, each once, by depth."""
    graphs_by_depth = dict.fromkeys(graphs)
    level = list(graphs_by_depth)
    while level:
        level = [inner for graph in level for node in graph.nodes for inner in node.subgraphs]
        level = [graph for graph in dict.fromkeys(level) if graph not in graphs_by_depth]
        graphs_by_depth.update(dict.fromkeys(level))
    return list(graphs_by_depth)


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
        result: Effect = attrs["effect"]
        return result

    def evaluate(self, operands: Any, attrs: Any) -> Any:
        """Raise UnimplementedError: the operator has no definition."""
        raise UnimplementedError(op=self.name, what="a custom operator without a definition cannot be computed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExternalOp) and self.name == other.name

    def __hash__(self) -> int:
        return hash((ExternalOp, self.name))

    def __repr__(self) -> str:
        return f"<external operator {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
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
    """Return whether a node represents a tensor that no operator writes: a constant, or state."""
    return node.op.name == "Const" or node.op is VARIABLE


def find(name: str) -> Any:
    """Return the operator of a name in text of the lite dialect. Raises KeyError."""
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
    """Read a graph of the lite dialect from its text. Raises InvalidArgumentError as `graph.parser.parse`."""
    return parse(text, find, detailed=detailed)
