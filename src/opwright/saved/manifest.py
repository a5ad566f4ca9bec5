"""The files of a saved model: what they are called, and reading them with every check.

Lives here: names, versions, limits, `SavedModelReader` for the variables alone, and the reading of graphs.
Not here: writing (saving.py), objects and functions made of it (loading.py). docs/saved_model.md describes the format.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.errors import DataLossError, NotFoundError, OpError, UnimplementedError
from ..graph import Graph, GraphRewriter, Node
from ..graph.builder import map_subgraphs
from ..graph.parsing import parse_all
from ..graph.verify import verify
from ..ops import registry, versioning
from . import encoding, files
from .files import Reader
from .index import CheckpointReader, check_format
from .safetensors import TensorFile

FORMAT, VERSION = "opwright.saved_model", 1
MANIFEST, GRAPHS, VARIABLES = "saved_model.json", "graphs.txt", "variables.safetensors"
MAX_GRAPHS = 1 << 27  # bytes of graph text; a node takes about a hundred
INLINE_BYTES = 256  # constants larger than this are kept among the tensors


def contains(folder: Any) -> bool:
    """Whether there is a saved model in a folder."""
    return os.path.isfile(os.path.join(os.fspath(folder), MANIFEST))


def read_manifest(folder: str) -> tuple[dict[str, Any], str]:
    """The manifest of a saved model and its path. Raises NotFoundError, DataLossError, UnimplementedError."""
    path = os.path.join(folder, MANIFEST)
    if not os.path.isfile(path):
        raise NotFoundError(
            what=f"SavedModel file does not exist at: {path}",
            found="a folder without it" if os.path.isdir(folder) else "no such folder",
            do="give the folder that saved_model.save wrote",
        )
    content = files.read_json(path, "a saved model's manifest")
    check_format(content, path, FORMAT, VERSION)
    return content, path


class SavedModelReader(CheckpointReader):
    """The variables of a saved model by name, as those of a checkpoint."""

    def __init__(self, folder: str) -> None:
        self.prefix = folder
        content, path = read_manifest(folder)
        self._start(content, path, "variables")


class Tensors:
    """The tensors of an open saved model: each is read once."""

    def __init__(self, content: dict[str, Any], path: str) -> None:
        read = Reader(path)
        self._entries: dict[str, Any] = read.get(content, "tensors", dict)
        name = files.plain_name(read.get(content, "variables", str), path)
        self._file = TensorFile(os.path.join(os.path.dirname(path), name))
        self._path, self._found = path, {}  # type: ignore[var-annotated]

    def read(self, name: str) -> tuple[np.ndarray, dtypes.DType]:
        """A tensor and its dtype. The array is shared by all who ask: it is not to be written to."""
        if name not in self._found:
            if name not in self._entries:
                raise DataLossError(what=f"{self._path} is damaged: it has no tensor {name[:200]!r}")
            array, dtype = encoding.read(self._file, name, self._entries[name], self._path)
            array.setflags(write=False)
            self._found[name] = array, dtype
        return self._found[name]

    def array(self, name: str) -> np.ndarray:
        """A tensor's array."""
        return self.read(name)[0]


def every_node(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of the graphs inside it."""
    waiting = [graph]
    for one in waiting:
        for node in one.nodes:
            yield node
            waiting.extend(node.subgraphs)


def operators_of(content: dict[str, Any], path: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The operators that a saved model uses, by name, and the versions it was written with.

    raises NotFoundError naming those that are not defined here, UnimplementedError for newer versions
    """
    read = Reader(path)
    found: dict[str, Any] = {}
    versions: dict[str, int] = {}
    missing: list[str] = []
    gone: list[str] = []
    newer: list[str] = []
    for name, entry in read.get(content, "operators", dict).items():
        version, user = read.get(entry, "version", int), read.get(entry, "user", bool, False)
        op = registry._users.get(name) if user else None
        if op is None and not user:
            try:
                op = registry.get(name)
            except KeyError:
                op = None
        if op is None or op.name != name:
            (missing if user else gone).append(name[:100])
        elif op.version < version:
            newer.append(f"{name} {version} (here {op.version})")
        found[name], versions[name] = op, version
    if missing:
        raise NotFoundError(
            what=f"{path} uses operators that are not defined here: {', '.join(missing[:50])}",
            do="import the modules that define them with @ow.operator, then load again",
        )
    if gone:
        raise NotFoundError(
            what=f"{path} uses operators that the catalogue does not have: {', '.join(gone[:50])}",
            found=f"opwright {files.producer()}",
            wanted=f"opwright {str(content.get('producer'))[:40]}, which wrote it",
            do="load it with that version, or a newer one",
        )
    if newer:
        raise UnimplementedError(
            what=f"{path} uses newer versions of operators: {', '.join(newer)}",
            do="load it with a newer opwright, or newer definitions",
        )
    return found, versions


def read_graphs(content: dict[str, Any], path: str, tensors: Tensors) -> list[Graph]:
    """The graphs of a saved model, checked: each node fits its operator, and its outputs are what inference gives.

    raises DataLossError with the line where the text is damaged
    """
    read = Reader(path)
    operators, versions = operators_of(content, path)
    name = files.plain_name(read.get(content, "graphs", str), path)
    where = os.path.join(os.path.dirname(path), name)
    source = files.read_bytes(where, MAX_GRAPHS, "the graphs of a saved model")
    crc = content.get("graphs_crc32")
    if crc is not None and crc != zlib.crc32(source):
        raise DataLossError(what=f"{where} is damaged: its checksum differs", do="copy the files anew, or save again")
    try:
        graphs = parse_all(source.decode(), operators.__getitem__, tensors.array)
        for graph in graphs:
            verify(graph)
        return [_checked(graph, versions) for graph in graphs]
    except (DataLossError, NotFoundError):
        raise
    except (OpError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise DataLossError(what=f"{where} is damaged: {str(error)[:1000]}") from None


def _checked(graph: Graph, versions: dict[str, int]) -> Graph:
    """Return the graph with what its operators got since it was written. Raises DataLossError for a node that cannot
    be."""
    rewriter = GraphRewriter(graph)
    for saved in graph.nodes:
        inner = map_subgraphs(saved, lambda held: _checked(held, versions))
        node = rewriter.insert(_whole(rewriter.remap(inner), graph, versions))
        rewriter.replace(saved, node.outputs)
    return rewriter.finish()


def _whole(node: Node, graph: Graph, versions: dict[str, int]) -> Node:
    """Return the node with all attributes and outputs that its operator has."""
    op = node.op
    try:
        bound = op.bind(dict(node.attrs))
        for declared, operand in zip(op.inputs, node.inputs):
            if declared.repeated is not isinstance(operand, tuple) and operand is not None:
                raise ValueError(f"input {declared.name!r} is {'no list' if declared.repeated else 'a list'}")
        specs = op.infer(bound, node.inputs)
        found = [s for spec in specs for s in (spec if isinstance(spec, list) else (spec,))]
        whole = versioning.with_outputs(graph, node, bound.attrs, specs)  # attributes: as older versions had them
        fine = whole is not None and all(
            s.dtype is v.dtype and s.shape.is_compatible_with(v.shape) for s, v in zip(found, whole.outputs)
        )
    except DataLossError:
        raise
    except Exception as error:  # rules of operators meet what no program would give them
        words = versioning.refused(node, error, versions.get(op.name))
        raise DataLossError(what=f"node {node.name!r} ({op.name}) cannot be: {words}") from None
    if not fine:
        raise DataLossError(
            what=f"node {node.name!r} ({op.name}) does not give what is written",
            found=", ".join(v.spec.short() for v in node.outputs),
            wanted=", ".join(s.short() for s in found),
        )
    assert whole is not None
    return whole
