"""Models, functions and files as graphs to draw.

Lives here: `source_of`, `ViewSource`. Not here: their values of JSON (graph_documents.py), importers (frontends/,
lite/, saved/).
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import InvalidArgumentError, NotFoundError, OpError
from ..core.lazy_imports import later
from ..graph.builder import GraphBuilder
from ..graph.ir import Graph, Value
from ..lite.format import Model
from ..lite.format.runtime_requirements import Requirement, least_runtime, requirements, stored_runtime
from ..lite.importer import Importer
from ..lite.ops.module import LiteModule, all_graphs, is_source

if TYPE_CHECKING:
    from ..frontends import keras
    from ..frontends.onnx import model as onnx
    from ..frontends.stablehlo import program as stablehlo
    from ..frontends.torch import importer as torch
    from ..lite.convert import converter
    from ..nn import layer, model_files
    from ..saved import loader, signatures
    from ..tracing import concrete, function
else:  # a page of a .tflite file needs none of them, which take most of a second to import
    converter, keras, onnx, stablehlo, torch, layer, model_files, loader, signatures, concrete, function = (
        later(name, __package__)
        for name in (
            "..lite.convert.converter",
            "..frontends.keras",
            "..frontends.onnx.model",
            "..frontends.stablehlo.program",
            "..frontends.torch.importer",
            "..nn.layer",
            "..nn.model_files",
            "..saved.loader",
            "..saved.signatures",
            "..tracing.concrete",
            "..tracing.function",
        )
    )


class ViewSource(NamedTuple):
    """A model to draw. graphs: the entries; facts: names and texts; path: of a .tflite file, for runs; needs: of its
    nodes, by subgraph and number; stored: bytes of its constants; model: of a .tflite file; lines: of the calls that
    its nodes stand for, by subgraph and number."""

    title: str
    graphs: tuple[Graph, ...]
    facts: tuple[tuple[str, object], ...]
    path: str | None = None
    needs: dict[tuple[int, int], Requirement] | None = None
    stored: Mapping[Value, int] = MappingProxyType({})
    model: Model | None = None
    lines: Mapping[tuple[int, int], str] = MappingProxyType({})


SUFFIXES = (".tflite", ".onnx", ".pt2", ".keras", ".mlir", ".stablehlo")
OWN_MEMBERS = {"model.safetensors", "opwright.json"}  # of the .keras files of this package; those of Keras have neither


def source_of(model: Any) -> ViewSource:
    """Return the graphs of a model.

    model: the path of a file of SUFFIXES or of a saved model's folder; the bytes of a .tflite file, a `lite.Model` or a
    `LiteModule`; a `TFLiteConverter`, for the file that it makes; a function, its trace, a layer or model of known
    input shapes, a graph
    raises NotFoundError, InvalidArgumentError for other objects, and the errors of importers
    """
    if isinstance(model, str | os.PathLike):
        return _of_path(os.fspath(model))
    if isinstance(model, bytes | bytearray | memoryview):
        return _of_lite(Model.read(bytes(model)), "model", None)
    if isinstance(model, Model):
        return _of_lite(model, "model", None)
    if isinstance(model, LiteModule):
        return ViewSource("module", tuple(model.graphs), ())
    if isinstance(model, converter.TFLiteConverter):
        return _of_converter(model)
    if isinstance(model, Graph):
        return ViewSource(model.name, (model,), ())
    if isinstance(model, concrete.ConcreteFunction):
        return ViewSource(model.name, (model.optimized_graph,), (("trace", str(model)),))
    if isinstance(model, function.Function):
        return _of_function(model)
    if isinstance(model, layer.Layer):
        call = signatures.functions_of(model).get(signatures.CALL)
        if call is None:
            raise InvalidArgumentError(
                op="view",
                what="the shapes of this layer's inputs are unknown",
                found=repr(model)[:200],
                do="build it, or call it once",
            )
        return _of_function(call)._replace(title=model.name)
    raise InvalidArgumentError(
        op="view",
        what="this object has no graph",
        found=type(model).__name__,
        wanted=f"a path ({', '.join(SUFFIXES)}, the folder of a saved model), a function, a trace, a layer, a graph",
    )


def _of_function(traced: Any) -> ViewSource:
    """Return the trace of a function with a signature, or all traces that there are."""
    traces: Sequence[Any]
    if traced.input_signature is not None:
        traces = [traced.get_concrete_function()]
    else:
        traces = list({id(t): t for t in traced._table.values()}.values())
    if not traces:
        raise InvalidArgumentError(
            op="view",
            what="this function has not been traced, as its arguments are unknown",
            found=repr(traced)[:200],
            do="call it once, or view function.get_concrete_function(...)",
        )
    name = getattr(traced, "__name__", "function")
    return ViewSource(name, tuple(t.optimized_graph for t in traces), (("traces", len(traces)),))


def _of_path(path: str) -> ViewSource:
    name = Path(path).name
    if os.path.isdir(path):
        return _of_saved(path)
    if not os.path.isfile(path):
        raise NotFoundError(op="view", what="no such file", found=path)
    suffix = Path(path).suffix.lower()
    facts = (("file", path), ("bytes", os.path.getsize(path)))
    if suffix == ".keras":
        own = zipfile.is_zipfile(path) and not OWN_MEMBERS.isdisjoint(zipfile.ZipFile(path).namelist())
        return source_of(model_files.load_model(path) if own else keras.from_keras(path))._replace(
            title=name, facts=facts
        )
    if suffix in SUFFIXES[1:]:
        imported = _importer(suffix)(path)
        if imported.input_signature is None:
            raise InvalidArgumentError(
                op="view",
                what="sizes or values of inputs decide about this graph",
                found=path,
                do="import it by ow.from_onnx, from_torch or from_stablehlo, call the function once and view it",
            )
        return _of_function(imported)._replace(title=name, facts=facts)
    return _of_lite(Model.read(path), name, path)


def _importer(suffix: str) -> Callable[[str], Any]:
    if suffix == ".onnx":
        return onnx.from_onnx
    return torch.from_torch if suffix == ".pt2" else stablehlo.from_stablehlo


def _of_saved(path: str) -> ViewSource:
    loaded = loader.load(path)
    traces = dict(loaded.signatures)
    if not traces:  # functions by the name of their attribute
        functions = {k: v for k, v in vars(loaded).items() if isinstance(v, function.Function)}
        for key, traced in functions.items():
            of_one = {id(t): t for t in traced._table.values()}.values()
            traces |= {f"{key} {i}" if i else key: trace for i, trace in enumerate(of_one)}
    if not traces:
        raise InvalidArgumentError(
            op="view",
            what="this saved model has no signatures and no traced functions",
            found=path,
            do="save it with signatures=, or view a function of ow.saved_model.load",
        )
    graphs = tuple(trace.optimized_graph for trace in traces.values())
    return ViewSource(Path(path).name, graphs, (("folder", path), ("signatures", ", ".join(traces))))


class _ModelGraphs(Importer):
    """An importer for which an operator that it cannot read is an external one: a page shows every verified model."""

    def unreadable(self, error: OpError) -> None:
        """Ignore the error: the node is drawn without attributes."""


def _of_converter(made: Any) -> ViewSource:
    """Return the graphs of the file that a converter makes; their nodes have the rules that made them."""
    module = made.module()
    source = _of_lite(Model.read(made.model_of(module).to_bytes()), made.functions[0].name, None)
    lines: dict[tuple[int, int], str] = {}
    graphs = module.all_graphs
    every = all_graphs(source.graphs)
    for i, (own, read) in enumerate(zip(graphs, every, strict=True)):
        origins = [node for node in own.nodes if not is_source(node)]
        for k, (origin, node) in enumerate(zip(origins, (n for n in read.nodes if not is_source(n)), strict=True)):
            GraphBuilder.attribute(node, origin.rules)
            if origin.at:
                lines[i, k] = origin.at
    return source._replace(lines=lines)


def _of_lite(model: Model, title: str, path: str | None) -> ViewSource:
    model.verify()
    importer = _ModelGraphs(model, None)
    imported = [importer.subgraph(i) for i in range(len(model.subgraphs))]
    graphs = tuple(subgraph.graph for subgraph in imported)
    stored = {
        value: len(data)
        for subgraph, source in zip(imported, model.subgraphs)
        for value, number in subgraph.tensors.items()
        if value.constant is not None and (data := model.tensor_data(source.tensors[number])) is not None
    }
    needs = requirements(model)
    keys = ", ".join(s.signature_key or "" for s in model.signature_defs or ())
    facts: list[tuple[str, object]] = [] if path is None else [("file", path), ("bytes", os.path.getsize(path))]
    facts += [
        ("description", model.description or ""),
        ("signatures", keys),
        ("needs run time", least_runtime(needs)),
        ("run time in its metadata", stored_runtime(model) or ""),
    ]
    by_node = {(n.subgraph, n.node): n for n in needs if n.subgraph is not None and n.node is not None}
    return ViewSource(title, graphs, tuple((k, v) for k, v in facts if v != ""), path, by_node, stored, model)
