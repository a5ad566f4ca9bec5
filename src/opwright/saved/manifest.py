"""The files of a saved model: their names, and reading and writing them, with all checks.

Lives here: names, versions, limits, `SavedModelReader` for the variables alone, reading graphs, `write_folder`, which
writes all files or none. Not here: their contents (saver.py), objects and functions (loader.py). docs/saved_model.md
describes the format.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.errors import AlreadyExistsError, DataLossError, NotFoundError, OpError, UnimplementedError
from ..core.files import replacing, replacing_folder
from ..graph import Graph, GraphRewriter, Node
from ..graph.builder import map_subgraphs, verify
from ..graph.parser import parse_all
from ..ops import registry
from ..ops.call import node_error, with_outputs
from . import json_files, safetensors
from .checkpoint_files import CheckpointReader, check_format
from .json_files import JsonReader
from .safetensors import TensorFile

FORMAT, VERSION = "opwright.saved_model", 1
MANIFEST, GRAPHS, VARIABLES = "saved_model.json", "graphs.txt", "variables.safetensors"
MAX_GRAPHS = 1 << 27  # bytes of graph text, at about a hundred per node
INLINE_BYTES = 256  # larger constants are stored as tensors


def contains(folder: Any) -> bool:
    """Return whether a folder contains a saved model."""
    return os.path.isfile(os.path.join(os.fspath(folder), MANIFEST))


def read_manifest(folder: str) -> tuple[dict[str, Any], str]:
    """Return the manifest of a saved model and its path. Raises NotFoundError, DataLossError, UnimplementedError."""
    path = os.path.join(folder, MANIFEST)
    if not os.path.isfile(path):
        raise NotFoundError(
            what=f"SavedModel file does not exist at: {path}",
            found="a folder without it" if os.path.isdir(folder) else "no such folder",
            do="pass the folder that saved_model.save wrote",
        )
    content = json_files.read_json(path, "a saved model's manifest")
    check_format(content, path, FORMAT, VERSION)
    return content, path


class SavedModelReader(CheckpointReader):
    """The variables of a saved model by name, read like a checkpoint's."""

    def __init__(self, folder: str) -> None:
        self.prefix = folder
        content, path = read_manifest(folder)
        self._start(content, path, "variables")


class SavedTensors:
    """The tensors of an open saved model, each read once."""

    def __init__(self, content: dict[str, Any], path: str) -> None:
        read = JsonReader(path)
        self._entries: dict[str, Any] = read.get(content, "tensors", dict)
        name = json_files.plain_name(read.get(content, "variables", str), path)
        self._file = TensorFile(os.path.join(os.path.dirname(path), name))
        self._path, self._loaded = path, {}  # type: ignore[var-annotated]

    def read(self, name: str) -> tuple[np.ndarray, dtypes.DType]:
        """Return a tensor and its dtype. The array is shared and read-only."""
        if name not in self._loaded:
            if name not in self._entries:
                raise DataLossError(what=f"{self._path} is damaged: it has no tensor {name[:200]!r}")
            array, dtype = safetensors.read(self._file, name, self._entries[name], self._path)
            array.setflags(write=False)
            self._loaded[name] = array, dtype
        result: tuple[np.ndarray, dtypes.DType] = self._loaded[name]
        return result

    def array(self, name: str) -> np.ndarray:
        """Return a tensor's array."""
        return self.read(name)[0]


def every_node(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph and of its subgraphs."""
    waiting = [graph]
    for current in waiting:
        for node in current.nodes:
            yield node
            waiting.extend(node.subgraphs)


def operators_of(content: dict[str, Any], path: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the operators that a saved model uses, by name, and the versions it was written with.

    raises NotFoundError naming undefined ones, UnimplementedError for newer versions
    """
    read = JsonReader(path)
    operators: dict[str, Any] = {}
    versions: dict[str, int] = {}
    missing: list[str] = []
    removed: list[str] = []
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
            (missing if user else removed).append(name[:100])
        elif op.version < version:
            newer.append(f"{name} {version} (here {op.version})")
        operators[name], versions[name] = op, version
    if missing:
        raise NotFoundError(
            what=f"{path} uses operators that are not defined here: {', '.join(missing[:50])}",
            do="import the modules that define them with @ow.operator, then load again",
        )
    if removed:
        raise NotFoundError(
            what=f"{path} uses operators that the catalogue does not have: {', '.join(removed[:50])}",
            found=f"opwright {json_files.producer()}",
            wanted=f"opwright {str(content.get('producer'))[:40]}, which wrote it",
            do="load it with that version, or a newer one",
        )
    if newer:
        raise UnimplementedError(
            what=f"{path} uses newer versions of operators: {', '.join(newer)}",
            do="load it with a newer opwright, or newer definitions",
        )
    return operators, versions


def read_graphs(content: dict[str, Any], path: str, tensors: SavedTensors) -> list[Graph]:
    """Return the graphs of a saved model, verified: each node matches its operator, its outputs match inference.

    raises DataLossError with the line if the text is damaged
    """
    read = JsonReader(path)
    operators, versions = operators_of(content, path)
    name = json_files.plain_name(read.get(content, "graphs", str), path)
    where = os.path.join(os.path.dirname(path), name)
    source = json_files.read_bytes(where, MAX_GRAPHS, "the graphs of a saved model")
    crc = content.get("graphs_crc32")
    if crc is not None and crc != zlib.crc32(source):
        raise DataLossError(what=f"{where} is damaged: its checksum differs", do="copy the files again, or save again")
    try:
        graphs = parse_all(source.decode(), operators.__getitem__, tensors.array)
        for graph in graphs:
            verify(graph)
        return [_upgraded_graph(graph, versions) for graph in graphs]
    except (DataLossError, NotFoundError):
        raise
    except (OpError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise DataLossError(what=f"{where} is damaged: {str(error)[:1000]}") from None


def _upgraded_graph(graph: Graph, versions: dict[str, int]) -> Graph:
    """Return the graph upgraded to the current operators. Raises DataLossError for an invalid node."""
    rewriter = GraphRewriter(graph)
    for saved in graph.nodes:
        inner = map_subgraphs(saved, lambda subgraph: _upgraded_graph(subgraph, versions))
        node = rewriter.insert(_upgraded(rewriter.remap(inner), graph, versions))
        rewriter.replace(saved, node.outputs)
    return rewriter.finish()


def _upgraded(node: Node, graph: Graph, versions: dict[str, int]) -> Node:
    """Return the node with all attributes and outputs of its operator's current version."""
    op = node.op
    try:
        bound = op.bind(dict(node.attrs))
        for declared, operand in zip(op.inputs, node.inputs):
            if declared.repeated is not isinstance(operand, tuple) and operand is not None:
                raise ValueError(f"input {declared.name!r} is {'no list' if declared.repeated else 'a list'}")
        specs = op.infer(bound, node.inputs)
        inferred = [s for spec in specs for s in (spec if isinstance(spec, list) else (spec,))]
        upgraded = with_outputs(graph, node, bound.attrs, specs)  # attributes: as older versions had them
        is_consistent = upgraded is not None and all(
            s.dtype is v.dtype and s.shape.is_compatible_with(v.shape) for s, v in zip(inferred, upgraded.outputs)
        )
    except DataLossError:
        raise
    except Exception as error:  # rules meet arguments that no program would pass
        reason = node_error(node, error, versions.get(op.name))
        raise DataLossError(what=f"node {node.name!r} ({op.name}) cannot be: {reason}") from None
    if not is_consistent:
        raise DataLossError(
            what=f"node {node.name!r} ({op.name}) has other outputs than its operator infers",
            found=", ".join(v.spec.short() for v in node.outputs),
            wanted=", ".join(s.short() for s in inferred),
        )
    assert upgraded is not None
    return upgraded


def write_folder(folder: str, content: dict[str, Any], graphs: bytes, stored: Mapping[str, np.ndarray]) -> None:
    """Write a saved model's files: a new folder appears complete; in an existing one the manifest is replaced last."""
    folder = folder.rstrip("/" + os.sep) or folder
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise AlreadyExistsError(what=f"{folder} is a file", wanted="a folder, or nothing yet")
    parent = os.path.dirname(os.path.abspath(folder))
    os.makedirs(parent, exist_ok=True)
    if not os.path.isdir(folder) or not os.listdir(folder):
        complete = False
        try:
            with replacing_folder(folder) as inside:
                _write_files(inside, content, graphs, stored)
                json_files.sync_folder(inside)
                complete = True
            json_files.sync_folder(parent)
            return
        except OSError:
            if not (complete and os.path.isdir(folder)):  # else another process created it meanwhile
                raise
    old = _referenced_files(folder)
    mark = f"{zlib.crc32(graphs, zlib.crc32(repr(content['tensors']).encode())):08x}"
    content = {**content, "graphs": f"graphs-{mark}.txt", "variables": f"variables-{mark}.safetensors"}
    _write_files(folder, content, graphs, stored)
    json_files.sync_folder(folder)
    for name in old - {content["graphs"], content["variables"]}:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, name))


def _referenced_files(folder: str) -> set[str]:
    """Return the files that the existing manifest of a saved model refers to."""
    path = os.path.join(folder, MANIFEST)
    try:
        content = json_files.read_json(path, "a saved model's manifest")
        return {json_files.plain_name(content.get(key), path) for key in ("graphs", "variables")} - {MANIFEST}
    except OpError:
        return set()


def _write_files(folder: str, content: dict[str, Any], graphs: bytes, stored: Mapping[str, np.ndarray]) -> None:
    with replacing(os.path.join(folder, content["variables"]), sync=True) as file:
        safetensors.write(file, stored, {"format": FORMAT})
    with replacing(os.path.join(folder, content["graphs"]), sync=True) as file:
        file.write(graphs)
    json_files.write_json(os.path.join(folder, MANIFEST), content)
