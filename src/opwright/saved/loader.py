"""`saved_model.load`: restore objects, variables and functions from a folder.

Lives here: `load`, `LoadOptions`; `with_fresh_streams`, which renumbers the random number streams of loaded graphs. Not
here: the files (manifest.py), loaded objects (object_graph.py), functions (function_records.py), streams of random
numbers (ops/random/state.py).
"""

from __future__ import annotations

import inspect
import operator
import os
from typing import Any

import numpy as np

from ..core.errors import DataLossError
from ..core.shapes import TensorShape
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..graph import Graph, GraphRewriter
from ..graph.builder import map_subgraphs
from ..ops.random.state import new_stream
from ..tracing.concrete import ConcreteFunction
from ..tracing.trace import init_scope
from . import json_files
from .function_records import RecordReader, rebuild
from .json_files import JsonReader
from .manifest import SavedTensors, read_graphs, read_manifest
from .object_graph import LoadedCallable, LoadedFunction, LoadedObject, LoadedSignature, SignatureMap

MAX_DEPTH = 100  # of nested containers


class LoadOptions:
    """Options of `load`, under TensorFlow's names; all are accepted and have no effect."""

    def __init__(
        self,
        allow_partial_checkpoint: bool = False,
        experimental_io_device: Any = None,
        experimental_skip_checkpoint: bool = False,
        experimental_variable_policy: Any = None,
        experimental_load_function_aliases: bool = False,
    ) -> None:
        self.allow_partial_checkpoint = allow_partial_checkpoint
        self.experimental_io_device = experimental_io_device
        self.experimental_skip_checkpoint = experimental_skip_checkpoint
        self.experimental_variable_policy = experimental_variable_policy
        self.experimental_load_function_aliases = experimental_load_function_aliases


def load(export_dir: Any, tags: Any = None, options: LoadOptions | None = None) -> Any:
    """Return the object that `save` wrote, without the program that created it.

    Its attributes are the variables, functions, objects, lists, tuples, dictionaries and plain values of the saved
    object. Functions select among the saved traces; gradients flow through them. `signatures` has the signatures. tags:
    accepted for compatibility with TensorFlow. raises NotFoundError if there is no saved model, or one of its files,
    classes or operators is missing; DataLossError if it is damaged; UnimplementedError if a newer opwright wrote it
    """
    del tags, options
    with init_scope():
        return _Loader(os.fspath(export_dir)).load()


class _Loader:
    def __init__(self, folder: str) -> None:
        self.content, self.path = read_manifest(folder)
        self.read = JsonReader(self.path)
        self.tensors = SavedTensors(self.content, self.path)
        self.nodes = self.read.get(self.content, "objects", list)
        self.objects: list[Any] = [None] * len(self.nodes)
        self._depths: dict[int, int] = {}

    def load(self) -> LoadedObject:
        """Restore all objects, each after those it depends on."""
        read = self.read
        kinds = [read.get(node, "kind", str) for node in self.nodes]
        if not kinds or kinds[0] != "object":
            raise read.fail("its first node is not an object")
        for i, kind in enumerate(kinds):
            if kind not in _CONSTRUCTORS:
                raise read.fail(f"object {i} is of a kind that is not known", kind[:60])
        graphs = [with_fresh_streams(g) for g in read_graphs(self.content, self.path, self.tensors)]
        for i, kind in enumerate(kinds):
            if kind in ("variable", "tensor"):
                self.objects[i] = _CONSTRUCTORS[kind](self, self.nodes[i])
        self.records_reader = RecordReader(read, self.variable, self.tensor, graphs)
        signatures = read.get(self.content, "signatures", dict)
        records = read.get(self.content, "functions", list)
        signature_records = {read.index(n, records, f"signature {key[:60]!r}") for key, n in signatures.items()}
        self.owners: dict[int, Any] = {}
        for i, kind in enumerate(kinds):
            if kind == "function":
                self.objects[i] = self._function(self.nodes[i], records)
        empty = inspect.Signature()
        self.traces = [self._trace(r, i in signature_records, self.owners.get(i, empty)) for i, r in enumerate(records)]
        for node, value in zip(self.nodes, self.objects):
            if isinstance(value, LoadedFunction):
                value.adopt([self.traces[n] for n in node["traces"]])
        for i, kind in enumerate(kinds):
            if self.objects[i] is None:
                self.objects[i] = _CONSTRUCTORS[kind](self, self.nodes[i])
        for i in range(len(kinds)):
            self._fill(i)
        root: LoadedObject = self.objects[0]
        vars(root)["signatures"] = SignatureMap({k: self.traces[n] for k, n in signatures.items()})
        return root

    def _trace(self, record: Any, is_signature: bool, signature: Any) -> ConcreteFunction:
        try:
            trace = rebuild(
                record, self.records_reader, signature, LoadedSignature if is_signature else ConcreteFunction
            )
        except (TypeError, ValueError, AttributeError, LookupError, RecursionError) as error:
            raise DataLossError(
                what=f"{self.path}: function {record.get('name')!r:.100} cannot be made again: "
                f"{type(error).__name__}: {str(error)[:500]}"
            ) from error
        if is_signature and not (type(trace._structure) is dict and all(type(k) is str for k in trace._structure)):
            raise self.read.fail("a signature does not give a dictionary")
        return trace

    # ---- objects ----------------------------------------------------------------------------------------------------

    def variable(self, number: Any) -> Variable:
        """Return the variable with an object's number."""
        value = self.objects[self.read.index(number, self.objects, "objects")]
        if not isinstance(value, Variable):
            raise self.read.fail(f"object {number} is not a variable")
        return value

    def tensor(self, name: Any) -> EagerTensor:
        """Return a tensor by its name in the file."""
        return EagerTensor(*self.tensors.read(self.read.of(name, str, "a tensor's name")))

    def _variable(self, node: Any) -> Variable:
        array, dtype = self.tensors.read(self.read.get(node, "value", str))
        shape: Any = array.shape
        if "shape" in node:
            try:
                shape = TensorShape(node["shape"])
                if not shape.is_compatible_with(array.shape):
                    raise ValueError(f"{shape} for a value of shape {array.shape}")
            except (TypeError, ValueError, OverflowError) as error:
                raise self.read.fail(f"a variable has no valid shape: {str(error)[:200]}") from None
        name = self.read.get(node, "name", str).rpartition(":")[0]
        return Variable(
            EagerTensor(array, dtype), self.read.get(node, "trainable", bool), name=name, dtype=dtype, shape=shape
        )

    def _tensor(self, node: Any) -> np.ndarray | EagerTensor:
        tensor = self.tensor(node.get("tensor"))
        return np.array(tensor._array) if node.get("numpy") is True else tensor

    def _function(self, node: Any, records: Any) -> LoadedFunction:
        read = self.read
        decoder = json_files.Decoder(read)
        parameters = []
        try:
            for p in read.get(node, "parameters", list):
                kind = _KINDS[read.get(p, "kind", str)]
                default = inspect.Parameter.empty
                if "default" in p:
                    default = decoder.decode(p["default"])
                elif p.get("opaque") is True:
                    default = Opaque  # type: ignore[assignment]
                parameters.append(inspect.Parameter(read.get(p, "name", str), kind, default=default))
            signature = inspect.Signature(parameters)
            input_signature = decoder.decode(node.get("input_signature"))
            function = LoadedFunction(read.get(node, "name", str), signature, input_signature)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise read.fail(f"a function's parameters cannot be: {str(error)[:300]}") from None
        for number in read.get(node, "traces", list):
            self.owners[read.index(number, records, "functions")] = signature
        return function

    def _concrete(self, node: Any) -> ConcreteFunction:
        return self.traces[self.read.index(node.get("trace"), self.traces, "functions")]

    def _object(self, node: Any) -> LoadedObject:
        kind = LoadedCallable if "__call__" in self.read.get(node, "children", dict) else LoadedObject
        return kind(self.read.get(node, "class", str, "object"))

    def _container(self, node: Any) -> object:
        return {"list": list, "dict": dict, "tuple": _TuplePlaceholder}[node["kind"]]()

    # ---- children ---------------------------------------------------------------------------------------------------

    def _fill(self, number: int, depth: int = 0) -> object:
        """Add an object's children; return the object, complete if it is a container."""
        read, node, value = self.read, self.nodes[number], self.objects[number]
        kind = node["kind"]
        if kind not in ("object", "list", "dict", "tuple") or (kind == "object" and depth):
            return value
        if self._depths.get(number) == -1 or depth > MAX_DEPTH:
            raise read.fail("lists or dictionaries lie in each other without end")
        if number in self._depths:
            return value
        self._depths[number] = -1
        children: dict[str, Any] = {}
        for name, child in read.get(node, "children", dict).items():
            children[name] = self._fill(read.index(child, self.nodes, f"child {name[:60]!r}"), depth + 1)
        plain = {k: self.records_reader.decoder.decode(v) for k, v in read.get(node, "plain", dict, {}).items()}
        if kind == "object":
            vars(value).update({**plain, **children})
        elif kind == "dict":
            order = (
                read.each(node, "keys", lambda k: read.of(k, str, "a key")) if "keys" in node else [*plain, *children]
            )
            both = {**plain, **children}
            value.update({k: both[k] for k in order if k in both})
        else:
            value = self._sequence(number, node, {**plain, **children})
        self._depths[number] = depth
        return value

    def _sequence(self, number: int, node: Any, children: dict[str, Any]) -> object:
        read = self.read
        length = read.get(node, "length", int)
        if not len(children) == length or any(str(i) not in children for i in range(length)):
            raise read.fail(f"a list of {length} items has {len(children)}")
        items = [children[str(i)] for i in range(length)]
        if node["kind"] == "list":
            self.objects[number].extend(items)
            return self.objects[number]
        if "namedtuple" in node:
            fields = read.each(node, "fields", lambda f: read.of(f, str, "a field"))
            try:
                result: Any = json_files.namedtuple_of(read.get(node, "namedtuple", str), tuple(fields))(*items)
            except (TypeError, ValueError) as error:
                raise read.fail(f"a namedtuple cannot be: {str(error)[:200]}") from None
        else:
            result = tuple(items)
        self.objects[number] = result
        return result


class _TuplePlaceholder:
    """A placeholder for a tuple until its items are available."""


class _Opaque:
    def __repr__(self) -> str:
        return "<a default that was not saved>"


Opaque = _Opaque()
_KINDS = {k.name.lower(): k for k in inspect._ParameterKind}
_CONSTRUCTORS: dict[str, Any] = {
    "object": _Loader._object,
    "list": _Loader._container,
    "dict": _Loader._container,
    "tuple": _Loader._container,
    "variable": _Loader._variable,
    "tensor": _Loader._tensor,
    "function": _Loader._function,
    "concrete": _Loader._concrete,
}


def with_fresh_streams(graph: Graph, fresh: dict[int, int] | None = None) -> Graph:
    """Return the graph with its random number streams renumbered: equal ones stay equal. The same graph if it has none.

    The attribute `stream` numbers sequences within a process; a number from a file would collide with another's.
    """
    fresh = {} if fresh is None else fresh
    rewriter = GraphRewriter(graph)

    def renumbered(key: str, value: Any) -> object:
        if key == "stream" and type(value) is int and value != 0:
            if value not in fresh:
                fresh[value] = new_stream()
            return fresh[value]
        return value

    for node in graph.nodes:
        new = rewriter.remap(map_subgraphs(node, lambda subgraph: with_fresh_streams(subgraph, fresh)))
        attrs = {key: renumbered(key, value) for key, value in new.attrs.items()}
        if any(attrs[key] is not value for key, value in new.attrs.items()):
            new = new.replaced(attrs=attrs)
        rewriter.replace(node, rewriter.insert(new).outputs)
    return rewriter.finish() if any(map(operator.is_not, rewriter.nodes, graph.nodes)) else graph
