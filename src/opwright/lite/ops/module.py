"""A whole model in the lite dialect: its graphs and how callers know them.

Lives here: `LiteModule`, `Signature`, the order of graphs.
Not here: reading files into one (lite/importer.py), writing one (lite/convert/export.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...graph import Graph
from ..format import versions

RUNTIME = (versions.METADATA_NAME, b"")
"""The metadata entry whose contents follow from the operators when a model is written."""


class Signature(NamedTuple):
    """How a caller knows one graph: its key, and by name which of the graph's inputs and outputs; number of the graph
    in its module."""

    key: str
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    graph: int = 0


class LiteModule(NamedTuple):
    """A model. graphs: in the order of its subgraphs; graphs held by nodes may be left out. metadata: names and
    contents, in order. attachment: the zip archive behind the file."""

    graphs: Sequence[Graph]
    signatures: Sequence[Signature] = ()
    description: str | None = None
    metadata: Sequence[tuple[str, bytes]] = (RUNTIME,)
    attachment: bytes | None = None

    @property
    def all_graphs(self) -> list[Graph]:
        """The graphs and the graphs held by their nodes, each once: the module's first, then by depth."""
        return all_graphs(self.graphs)


def all_graphs(graphs: Iterable[Graph]) -> list[Graph]:
    """Return the graphs and the graphs held by their nodes, each once, by depth."""
    found = dict.fromkeys(graphs)
    level = list(found)
    while level:
        level = [inner for graph in level for node in graph.nodes for inner in node.subgraphs]
        level = [graph for graph in dict.fromkeys(level) if graph not in found]
        found.update(dict.fromkeys(level))
    return list(found)
