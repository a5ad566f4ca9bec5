"""`saved_model.save`: write objects, variables and functions to a folder.

Lives here: `save`, `SaveOptions`, the walk over the object graph. Not here: functions (function_records.py), signatures
(signatures.py), the format and its files (manifest.py).
"""

from __future__ import annotations

import inspect
import logging
import os
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError
from ..core.structures import is_namedtuple
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..graph.printer import text
from ..ops import dispatch, registry
from ..tracing.concrete import ConcreteFunction
from ..tracing.function import Function
from ..tracing.trace import init_scope
from . import json_files, safetensors, signatures
from .function_records import RecordWriter, describe
from .manifest import FORMAT, GRAPHS, INLINE_BYTES, VARIABLES, VERSION, every_node, write_folder
from .object_graph import FUNCTIONS, VALUE, LoadedObject, children, escaped, is_tracked

_log = logging.getLogger("opwright")
_VALUE_TYPES = (EagerTensor, np.ndarray)  # attributes of these types are saved too
_LEAF_TYPES = (*FUNCTIONS, *_VALUE_TYPES)


class SaveOptions:
    """Options of `save`, under TensorFlow's names.

    experimental_custom_gradients: whether functions under `custom_gradient` keep their gradients (they always do). The
    others are accepted and have no effect.
    """

    def __init__(
        self,
        namespace_whitelist: Any = None,
        save_debug_info: bool = False,
        function_aliases: Any = None,
        experimental_debug_stripper: bool = False,
        experimental_io_device: Any = None,
        experimental_variable_policy: Any = None,
        experimental_custom_gradients: bool = True,
        experimental_image_format: bool = False,
        experimental_skip_saver: bool = False,
        experimental_sharding_callback: Any = None,
        extra_tags: Any = None,
    ) -> None:
        self.namespace_whitelist, self.save_debug_info = namespace_whitelist, save_debug_info
        self.function_aliases, self.extra_tags = function_aliases, extra_tags
        self.experimental_debug_stripper = experimental_debug_stripper
        self.experimental_io_device = experimental_io_device
        self.experimental_variable_policy = experimental_variable_policy
        self.experimental_custom_gradients = experimental_custom_gradients
        self.experimental_image_format = experimental_image_format
        self.experimental_skip_saver = experimental_skip_saver
        self.experimental_sharding_callback = experimental_sharding_callback


def save(obj: Any, export_dir: Any, signatures: Any = None, options: SaveOptions | None = None) -> None:
    """Write an object with its variables and functions to a folder, to be loaded without its Python.

    obj: a Module, layer or model, or any object with attributes. Saved are variables, tensors, plain values, modules,
    lists, tuples and dictionaries of such, by attribute; and every trace of every `function` among the attributes and
    methods. signatures: a function with an input_signature, a concrete function, or a dictionary of them by key; by
    default the only function of that kind that `obj` has becomes "serving_default". The folder appears when it is
    complete; an existing one retains its old content until then. raises ValueError for an object or signatures that
    cannot be saved, AssertionError if a function uses a variable that is not reachable by attributes,
    InvalidArgumentError if it contains Python code
    """
    del options
    if dispatch.state.trace is not None:
        raise AssertionError(
            "tf.saved_model.save is not supported inside a traced @tf.function. Move the call to the outer "
            "eagerly-executed context."
        )
    if (
        not (is_tracked(obj) or hasattr(obj, "__dict__"))
        or isinstance(obj, (type, *FUNCTIONS, *_VALUE_TYPES, Variable))
        or inspect.ismodule(obj)
        or inspect.isroutine(obj)
    ):
        raise ValueError(
            "Expected an object of type `Trackable`, such as `tf.Module` or a subclass of the `Trackable` class, for "
            f"export. Got {obj!r} with type {type(obj)}."
        )
    with init_scope():
        _Saver(obj, signatures).write(os.fspath(export_dir))


class _Saver:
    def __init__(self, root: Any, requested: Any) -> None:
        self.names: list[str] = []
        self.values: list[Any] = []
        self.number: dict[int, int] = {}
        self.plain: list[dict[str, Any]] = []
        self.links: list[dict[str, int]] = []
        self.stored: dict[str, np.ndarray] = {}
        self.tensors: dict[str, Any] = {}
        self._constants: dict[int, tuple[Any, str]] = {}
        methods = signatures.functions_of(root)
        self._walk(root, methods)
        top = {k: self.values[n] for k, n in self.links[0].items() if isinstance(self.values[n], FUNCTIONS)}
        if requested is None and isinstance(root, LoadedObject):
            requested = dict(vars(root).get("signatures", {}))
        if requested is None:
            selected = signatures.default_signature(
                {signatures.CALL: top[signatures.CALL]} if signatures.CALL in methods else top
            )
        else:
            selected = signatures.requested_signatures(requested)
        self.signatures = {key: signatures.signature_of(trace, key) for key, trace in selected.items()}
        self.writer = RecordWriter(self._variable_number, self._captured_tensor)
        self.records: list[dict[str, Any]] = []
        self._record_of: dict[int, int | None] = {}

    # ---- the object graph -------------------------------------------------------------------------------------------

    def _add(self, name: str, value: Any) -> int:
        number = self.number[id(value)] = len(self.values)
        self.names.append(name)
        self.values.append(value)
        return number

    def _walk(self, root: Any, methods: Mapping[str, Any]) -> None:
        """Assign a number to every object below the root, breadth first."""
        self._add("", root)
        for name, value in zip(self.names, self.values):  # the lists grow during the walk
            members = _children(value)
            if value is root:
                members.update(methods)
            links = {}
            for key, child in members.items():
                number = self.number.get(id(child))
                if number is None:
                    number = self._add(f"{name}/{escaped(key)}" if name else escaped(key), child)
                links[key] = number
            self.links.append(links)
            self.plain.append(_plain(value, links))

    def _variable_number(self, variable: Variable, user: str) -> int:
        number = self.number.get(id(variable))
        if number is None:
            raise AssertionError(
                f"Tried to export a function which references an 'untracked' resource. TensorFlow objects (e.g. "
                f"tf.Variable) captured by functions must be 'tracked' by assigning them to an attribute of a tracked "
                f"object or assigned to an attribute of the main object directly. Function {user!r} uses the variable "
                f"{variable.name!r}, shape {variable.shape}, which no attribute leads to."
            )
        return number

    def _captured_tensor(self, tensor: EagerTensor, user: str) -> str:
        return self._store_constant(tensor._array, tensor.dtype)

    def _store_constant(self, array: np.ndarray, dtype: DType) -> str:
        """Store an array as a tensor, once; return its name."""
        entry = self._constants.get(id(array))
        if entry is None:
            name = f"constant/{len(self._constants)}"
            self._store(name, array, dtype)
            entry = self._constants[id(array)] = (array, name)
        return entry[1]

    def _store(self, name: str, array: np.ndarray, dtype: DType) -> None:
        self.stored[name] = safetensors.encode(array, dtype)
        self.tensors[name] = safetensors.describe(array, dtype, self.stored[name])

    def _large(self, array: np.ndarray) -> str | None:
        size = sum(map(len, array.reshape(-1))) if array.dtype == object else array.nbytes
        return None if size <= INLINE_BYTES else self._store_constant(array, dtypes.of_numpy(array.dtype))

    # ---- records ----------------------------------------------------------------------------------------------------

    def _trace(self, trace: ConcreteFunction, required: bool) -> int | None:
        """Return the number of a trace's record; None if its arguments cannot be encoded."""
        if id(trace) not in self._record_of:
            try:
                record = describe(trace, self.writer)
            except json_files.NotEncodable as error:
                if required:
                    raise InvalidArgumentError(what=f"signature {trace.name!r} cannot be saved: {error}") from None
                _log.warning("a trace of function %s is not saved: an argument or result is %s", trace.name, error)
                self._record_of[id(trace)] = None
                return None
            self._record_of[id(trace)] = len(self.records)
            self.records.append(record)
        return self._record_of[id(trace)]

    def _node(self, number: int) -> dict[str, Any]:
        value, links = self.values[number], self.links[number]
        if isinstance(value, Variable):
            key = self.names[number] + VALUE
            self._store(key, value.read_array(), value.dtype)
            node = {"kind": "variable", "children": {}, "value": key, "name": value.name, "trainable": value.trainable}
            if not value.shape.is_fully_defined():
                node["shape"] = None if value.shape.dims is None else list(value.shape.dims)
            return node
        if isinstance(value, Function):
            return self._function(value)
        if isinstance(value, ConcreteFunction):
            return {"kind": "concrete", "children": {}, "trace": self._trace(value, True)}
        if isinstance(value, EagerTensor):
            return {"kind": "tensor", "children": {}, "tensor": self._store_constant(value._array, value.dtype)}
        if isinstance(value, np.ndarray):
            return {
                "kind": "tensor",
                "children": {},
                "numpy": True,
                "tensor": self._store_constant(value, dtypes.of_numpy(value.dtype)),
            }
        node = {"kind": "object", "children": links, "plain": self.plain[number]}
        if isinstance(value, Mapping):
            node["kind"], node["keys"] = "dict", [k for k in value if k in links or k in self.plain[number]]
        elif isinstance(value, (list, tuple)):
            node["kind"], node["length"] = "list" if isinstance(value, list) else "tuple", len(value)
            if is_namedtuple(type(value)):
                node["namedtuple"], node["fields"] = type(value).__name__, list(type(value)._fields)  # type: ignore[union-attr]
        else:
            node["class"] = vars(value).get("saved_class") if isinstance(value, LoadedObject) else type(value).__name__
        return node

    def _function(self, function: Function[..., Any]) -> dict[str, Any]:
        if signatures.has_one_trace(function) and signatures.has_or_makes_trace(function):
            function.get_concrete_function()
        traces = [
            t for t in {id(t): t for t in function._table.values()}.values() if not t.program.trace.variable_arguments
        ]  # they take variables, which a loaded function cannot be called with
        numbers = [n for n in (self._trace(t, False) for t in traces) if n is not None]
        parameters = []
        for p in function.signature.parameters:
            entry: dict[str, Any] = {"name": p.name, "kind": p.kind.name.lower()}
            if p.default is not p.empty:
                try:
                    entry["default"] = json_files.encode(p.default, None)
                except json_files.NotEncodable:
                    entry["opaque"] = True
            parameters.append(entry)
        return {
            "kind": "function",
            "children": {},
            "name": function.name,
            "parameters": parameters,
            "traces": numbers,
            "input_signature": json_files.encode(function.input_signature),
        }

    # ---- files ------------------------------------------------------------------------------------------------------

    def write(self, folder: str) -> None:
        """Describe all objects, then write the files."""
        objects = [self._node(i) for i in range(len(self.values))]
        keys = {key: self._trace(trace, True) for key, trace in self.signatures.items()}
        try:
            texts = [text(g, store=self._large) for g in self.writer.graphs]
        except TypeError as error:
            raise InvalidArgumentError(
                what=f"a function contains a constant that cannot be saved: {error}",
                do="leave Python code (py_function, numpy_function) out of functions that are saved",
            ) from None
        graphs = "\n\n".join(texts).encode()
        content = {
            "format": FORMAT,
            "version": VERSION,
            "producer": json_files.producer(),
            "graphs": GRAPHS,
            "graphs_crc32": zlib.crc32(graphs),
            "variables": VARIABLES,
            "operators": self._operators(),
            "signatures": keys,
            "objects": objects,
            "functions": self.records,
            "tensors": self.tensors,
        }
        write_folder(folder, content, graphs, self.stored)

    def _operators(self) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        used: dict[str, Any] = {}
        for graph in self.writer.graphs:
            for node in every_node(graph):
                op = node.op
                if used.setdefault(op.name, op) is not op:
                    raise InvalidArgumentError(
                        what=f"two operators of the name {op.name!r} are used", do="rename one of them"
                    )
                entries[op.name] = {"version": op.version} if op.catalogue else {"version": op.version, "user": True}
                if op.catalogue and registry.get(op.name) is not op:
                    raise InvalidArgumentError(op=op.name, what="the operator is not in the catalogue")
        return dict(sorted(entries.items()))


def _children(value: Any) -> dict[str, Any]:
    """Return the saved members of a value: its children, tensors, and the functions among its methods."""
    members = children(value, _LEAF_TYPES)
    if not isinstance(value, (Variable, Mapping, list, tuple, *_LEAF_TYPES)):
        for cls in reversed(type(value).__mro__):
            for name, attribute in vars(cls).items():
                if isinstance(attribute, Function) and name not in vars(value):
                    bound = getattr(value, name, None)
                    if isinstance(bound, Function):
                        members[name] = bound
    return members


def _plain(value: Any, links: Mapping[str, int]) -> dict[str, Any]:
    """Return the encoded attributes or items that are plain values."""
    if isinstance(value, (Variable, *_LEAF_TYPES)):
        return {}
    if isinstance(value, Mapping):
        items = {k: v for k, v in value.items() if isinstance(k, str)}
    elif isinstance(value, (list, tuple)):
        items = {str(i): v for i, v in enumerate(value)}
    else:
        items = {k: v for k, v in getattr(value, "__dict__", {}).items() if not k.startswith("_")}
        items.pop("saved_class", None)
    encoded = {}
    for key, item in items.items():
        if key not in links:
            in_list = isinstance(value, (list, tuple))
            try:
                if json_files.is_plain(item):
                    encoded[key] = json_files.encode(item)
                elif in_list:
                    encoded[key] = None  # placeholder, so that other items keep their index
            except json_files.NotEncodable:
                if in_list:
                    encoded[key] = None
    return encoded
