"""`saved_model.load`: objects, variables and functions from a folder.

Lives here: `load`, `LoadOptions`.  Not here: the files (manifest.py), what it gives (loaded.py), traces (traces.py).
"""

from __future__ import annotations

import inspect
import os
from typing import Any

import numpy as np

from ..core.errors import DataLossError
from ..core.shapes import TensorShape
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..tracing.concrete import ConcreteFunction
from ..tracing.trace import init_scope
from . import structure
from .files import Reader
from .loaded import LoadedCallable, LoadedFunction, LoadedObject, LoadedSignature, SignatureMap
from .manifest import Tensors, read_graphs, read_manifest
from .streams import with_fresh_streams
from .traces import Parts, rebuild

DEEPEST = 100  # lists in lists


class LoadOptions:
    """Options of `load`, under TensorFlow's names; all are accepted and change nothing here."""

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
    """The object that `save` wrote, without the program that made it.

    Its attributes are the variables, functions, objects, lists, tuples, dictionaries and plain values that the saved
    one had. Functions pick among the traces that were saved; gradients flow through them. `signatures` has the
    signatures.
    tags: accepted for TensorFlow's sake.
    raises NotFoundError where there is no saved model, or one of its files, classes or operators is not there;
    DataLossError where it is damaged; UnimplementedError where a newer opwright wrote it
    """
    del tags, options
    with init_scope():
        return _Loader(os.fspath(export_dir)).load()


class _Loader:
    def __init__(self, folder: str) -> None:
        self.content, self.path = read_manifest(folder)
        self.read = Reader(self.path)
        self.tensors = Tensors(self.content, self.path)
        self.nodes = self.read.get(self.content, "objects", list)
        self.objects: list[Any] = [None] * len(self.nodes)
        self._depths: dict[int, int] = {}

    def load(self) -> Any:
        """Everything, in an order in which what is needed is there."""
        read = self.read
        kinds = [read.get(node, "kind", str) for node in self.nodes]
        if not kinds or kinds[0] != "object":
            raise read.fail("its first object is none")
        for i, kind in enumerate(kinds):
            if kind not in _MAKE:
                raise read.fail(f"object {i} is of a kind that is not known", kind[:60])
        graphs = [with_fresh_streams(g) for g in read_graphs(self.content, self.path, self.tensors)]
        for i, kind in enumerate(kinds):
            if kind in ("variable", "tensor"):
                self.objects[i] = _MAKE[kind](self, self.nodes[i])
        self.parts = Parts(read, self.variable, self.tensor, graphs)
        signatures = read.get(self.content, "signatures", dict)
        records = read.get(self.content, "functions", list)
        special = {read.index(n, records, f"signature {key[:60]!r}") for key, n in signatures.items()}
        self.owners: dict[int, Any] = {}
        for i, kind in enumerate(kinds):
            if kind == "function":
                self.objects[i] = self._function(self.nodes[i], records)
        empty = inspect.Signature()
        self.traces = [self._trace(r, i in special, self.owners.get(i, empty)) for i, r in enumerate(records)]
        for node, one in zip(self.nodes, self.objects):
            if isinstance(one, LoadedFunction):
                one.adopt([self.traces[n] for n in node["traces"]])
        for i, kind in enumerate(kinds):
            if self.objects[i] is None:
                self.objects[i] = _MAKE[kind](self, self.nodes[i])
        for i in range(len(kinds)):
            self._fill(i)
        root = self.objects[0]
        vars(root)["signatures"] = SignatureMap({k: self.traces[n] for k, n in signatures.items()})
        return root

    def _trace(self, record: Any, is_signature: bool, signature: Any) -> ConcreteFunction:
        try:
            found = rebuild(record, self.parts, signature, LoadedSignature if is_signature else ConcreteFunction)
        except (TypeError, ValueError, AttributeError, LookupError, RecursionError) as error:
            raise DataLossError(
                what=f"{self.path}: function {record.get('name')!r:.100} cannot be made again: "
                f"{type(error).__name__}: {str(error)[:500]}"
            ) from error
        if is_signature and not (type(found._structure) is dict and all(type(k) is str for k in found._structure)):
            raise self.read.fail("a signature does not give a dictionary")
        return found

    # ---- objects ----------------------------------------------------------------------------------------------------

    def variable(self, number: Any) -> Variable:
        """The variable of an object's number."""
        found = self.objects[self.read.index(number, self.objects, "objects")]
        if not isinstance(found, Variable):
            raise self.read.fail(f"object {number} is no variable")
        return found

    def tensor(self, name: Any) -> EagerTensor:
        """A tensor by its name in the file."""
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

    def _tensor(self, node: Any) -> Any:
        tensor = self.tensor(node.get("tensor"))
        return np.array(tensor._array) if node.get("numpy") is True else tensor

    def _function(self, node: Any, records: Any) -> LoadedFunction:
        read = self.read
        decoder = structure.Decoder(read)
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
            given = decoder.decode(node.get("input_signature"))
            made = LoadedFunction(read.get(node, "name", str), signature, given)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise read.fail(f"a function's parameters cannot be: {str(error)[:300]}") from None
        for number in read.get(node, "traces", list):
            self.owners[read.index(number, records, "functions")] = signature
        return made

    def _concrete(self, node: Any) -> ConcreteFunction:
        return self.traces[self.read.index(node.get("trace"), self.traces, "functions")]

    def _object(self, node: Any) -> LoadedObject:
        kind = LoadedCallable if "__call__" in self.read.get(node, "children", dict) else LoadedObject
        return kind(self.read.get(node, "class", str, "object"))

    def _container(self, node: Any) -> Any:
        return {"list": list, "dict": dict, "tuple": _Later}[node["kind"]]()

    # ---- what hangs on them -----------------------------------------------------------------------------------------

    def _fill(self, number: int, depth: int = 0) -> Any:
        """Give an object its children; the object, complete where it is a container."""
        read, node, made = self.read, self.nodes[number], self.objects[number]
        kind = node["kind"]
        if kind not in ("object", "list", "dict", "tuple") or (kind == "object" and depth):
            return made
        if self._depths.get(number) == -1 or depth > DEEPEST:
            raise read.fail("lists or dictionaries lie in each other without end")
        if number in self._depths:
            return made
        self._depths[number] = -1
        found: dict[str, Any] = {}
        for name, child in read.get(node, "children", dict).items():
            found[name] = self._fill(read.index(child, self.nodes, f"child {name[:60]!r}"), depth + 1)
        plain = {k: self.parts.decoder.decode(v) for k, v in read.get(node, "plain", dict, {}).items()}
        if kind == "object":
            vars(made).update({**plain, **found})
        elif kind == "dict":
            order = read.each(node, "keys", lambda k: read.of(k, str, "a key")) if "keys" in node else [*plain, *found]
            both = {**plain, **found}
            made.update({k: both[k] for k in order if k in both})
        else:
            made = self._sequence(number, node, {**plain, **found})
        self._depths[number] = depth
        return made

    def _sequence(self, number: int, node: Any, found: dict[str, Any]) -> Any:
        read = self.read
        length = read.get(node, "length", int)
        if not len(found) == length or any(str(i) not in found for i in range(length)):
            raise read.fail(f"a list of {length} items has {len(found)}")
        items = [found[str(i)] for i in range(length)]
        if node["kind"] == "list":
            self.objects[number].extend(items)
            return self.objects[number]
        if "namedtuple" in node:
            fields = read.each(node, "fields", lambda f: read.of(f, str, "a field"))
            try:
                made: Any = structure.namedtuple_of(read.get(node, "namedtuple", str), tuple(fields))(*items)
            except (TypeError, ValueError) as error:
                raise read.fail(f"a namedtuple cannot be: {str(error)[:200]}") from None
        else:
            made = tuple(items)
        self.objects[number] = made
        return made


class _Later:
    """Where a tuple will be, once its items are there."""


class _Opaque:
    def __repr__(self) -> str:
        return "<a default that was not saved>"


Opaque = _Opaque()
_KINDS = {k.name.lower(): k for k in inspect._ParameterKind}
_MAKE: dict[str, Any] = {
    "object": _Loader._object,
    "list": _Loader._container,
    "dict": _Loader._container,
    "tuple": _Loader._container,
    "variable": _Loader._variable,
    "tensor": _Loader._tensor,
    "function": _Loader._function,
    "concrete": _Loader._concrete,
}
