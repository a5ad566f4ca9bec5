"""Object graphs: the variables of an object and the objects that hold them, by attribute; classes of loaded objects.

Lives here: which attributes count, the walk from a root, the names of values; loaded objects with attributes, functions
with traces but no Python, signatures.
Not here: saving functions (function_records.py), files (checkpoint_files.py, manifest.py), reading objects (loader.py).

An object's children are its attributes that are variables, modules, optimizers, functions, or lists, tuples and dicts
that contain such; a list's children are "0", "1" ..., a dict's its keys, which must be text. Every object is visited
once, breadth first, and a value is named by its shortest path:

    encoder/layers/0/kernel/.ATTRIBUTES/VARIABLE_VALUE

with . written as .. and / as .S inside the name of an attribute or a key.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.specs import TensorSpec
from ..eager import generator_state as generator_state
from ..eager.variable import Variable
from ..nn.module import Module
from ..nn.network import InputLayer
from ..optimizers.base import Optimizer
from ..tracing.concrete import ConcreteFunction
from ..tracing.container_type import ContainerType
from ..tracing.function import Function
from ..tracing.signature import CastContext
from ..tracing.trace_type import SpecContext

VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
FUNCTIONS = (Function, ConcreteFunction)
# Attributes that refer to objects owned elsewhere, or to the current run.
_TRANSIENT = frozenset(
    {
        "nodes",
        "_losses",
        "_loss_owners",
        "_regularizers",
        "_parent",
        "history",
        "_initial_weights",
        "_index",
        "_undecayed",
        "_keras_history",
        "_stack",
    }
)


def is_object(value: Any) -> bool:
    """Return whether a value is tracked as an object: modules, optimizers, and classes with `_is_trackable = True`."""
    if isinstance(value, (Module, Optimizer)):
        return True
    cls = type(value)
    return bool(getattr(cls, "_is_trackable", False)) and not isinstance(value, type)


def is_tracked(value: Any, also: tuple[type, ...] = (), depth: int = 0) -> bool:
    """Return whether a value counts as a child. also: further types that do."""
    if isinstance(value, Variable) or is_object(value):
        return True
    if isinstance(value, also):
        return True
    if depth < 32 and not getattr(type(value), "_untracked", False):
        if isinstance(value, Mapping):
            return any(is_tracked(v, also, depth + 1) for v in value.values())
        if isinstance(value, (list, tuple)):
            return any(is_tracked(v, also, depth + 1) for v in value)
    return False


def children(value: Any, also: tuple[type, ...] = ()) -> dict[str, Any]:
    """Return the children of an object or container by name. also: further types that count.

    raises ValueError for a dictionary with a key that is not text and leads to a variable
    """
    if isinstance(value, (Variable, *FUNCTIONS, *also)):
        return {}
    own = getattr(type(value), "_trackable_children", None)
    if own is not None:
        return dict(own(value))
    if isinstance(value, Mapping):
        result = {k: v for k, v in value.items() if is_tracked(v, also)}
        for key in result:
            if not isinstance(key, str):
                raise ValueError(
                    f"Unable to save the object {_brief(value)}. The wrapped dictionary contains a non-string key "
                    f"which maps to a trackable object or mutable data structure: {key!r}. Use text for keys"
                )
        return result
    if isinstance(value, (list, tuple)):
        return {str(i): v for i, v in enumerate(value) if is_tracked(v, also)}
    attributes = getattr(value, "__dict__", {})
    result = {k: v for k, v in attributes.items() if k not in _TRANSIENT and is_tracked(v, also)}
    if attributes.get("_network") is not None or "_stack" in attributes:
        # A functional model: its layers are not attributes; input layers are not matched.
        layers = [layer for layer in value._sublayers() if not isinstance(layer, InputLayer)]
        result.update({f"layer-{i}": layer for i, layer in enumerate(layers)})
    return result


def walk(root: Any) -> Iterator[tuple[str, Any]]:
    """Yield every object below `root` once, breadth first, with its name: "" for the root."""
    seen = {id(root)}
    keep = [root]  # ids stay unique while the objects are alive
    waiting = [("", root)]
    for name, value in waiting:
        yield name, value
        for key, child in children(value).items():
            if id(child) not in seen:
                seen.add(id(child))
                keep.append(child)
                waiting.append((f"{name}/{escaped(key)}" if name else escaped(key), child))


def escaped(key: str) -> str:
    """Return an attribute's name or a key, escaped as part of a value's name."""
    return key.replace(".", "..").replace("/", ".S")


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."


class _OverridableProperty:
    """A property that an attribute of the same name overrides, as saved objects may have any names."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self.wrapped.__get__(instance, owner)


class LoadedObject(Module):
    """An object of a saved model: its variables, functions, objects and plain values are attributes.

    saved_class: the name of its original class, which need not be available. signatures, of the root object only: the
    saved signatures by key.
    """

    saved_class: str

    def __init__(self, saved_class: str) -> None:
        vars(self)["saved_class"] = saved_class

    def __repr__(self) -> str:
        return f"<loaded {self.__dict__.get('saved_class', 'object')}: {', '.join(sorted(vars(self))[:20])}>"


for _name, _property in vars(Module).items():
    if isinstance(_property, property):
        setattr(LoadedObject, _name, _OverridableProperty(_property))


class LoadedCallable(LoadedObject):
    """A loaded object whose class had a function `__call__`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return vars(self)["__call__"](*args, **kwargs)


class LoadedFunction(Function[..., Any]):
    """A function of a saved model: calls select one of its traces; it cannot be traced again.

    raises ValueError listing the traces for arguments that match none
    """

    def __init__(self, name: str, signature: inspect.Signature, input_signature: Any) -> None:
        def body(*args: Any, **kwargs: Any) -> object:  # only reached with run_functions_eagerly
            return self._find(self.signature.bind(args, kwargs))(*args, **kwargs)

        body.__signature__ = signature  # type: ignore[attr-defined]
        body.__name__ = body.__qualname__ = name
        super().__init__(body, input_signature, autograph=False, name=name)

    def adopt(self, traces: Sequence[ConcreteFunction]) -> None:
        """Add the traces to select from."""
        for trace in traces:
            self._table.add(trace.kind, trace)
        if self.signature.constraint is not None and len(traces) == 1:
            self._table.add(self.signature.constraint, traces[0])

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        """The traces, without duplicates."""
        return list({id(t): t for t in self._table.values()}.values())

    def _find(self, bound: Any) -> ConcreteFunction:
        try:
            return super()._find(bound)
        except _NoTraceError:
            pass
        for trace in self.concrete_functions:  # convertible values: lists for tensors, other namedtuples
            args, kwargs = trace.kind.parts
            assert isinstance(args, ContainerType)
            assert isinstance(kwargs, ContainerType)
            try:
                args.cast(bound[0], _CompatibleCast())
                kwargs.cast(bound[1], _CompatibleCast())
            except (TypeError, ValueError):
                continue
            return trace
        raise ValueError(self._no_match(*bound))

    def _make(self, kind: ContainerType, named: ContainerType, context: Any, call: Any = None) -> ConcreteFunction:
        raise _NoTraceError(self._no_match_of_types(kind))

    def _copy(self, python_function: Any) -> LoadedFunction:
        new = LoadedFunction(self.name, self.signature.python, self.signature.input_signature)
        new.adopt(self.concrete_functions)
        return new

    def __get__(self, instance: Any, owner: Any = None) -> LoadedFunction:
        return self

    def _options(self) -> str:
        traces = self.concrete_functions
        if not traces:
            return (
                f"Found zero restored functions for caller function {self.name!r}: it had no trace when it was "
                "saved. Call it, or give it an input_signature, before saving"
            )
        shown = [_arguments_text(*t.structured_input_signature) for t in traces]
        options = "\n\n".join(f"Option {i}:\n{text}" for i, text in enumerate(shown, 1))
        return f" Expected these arguments to match one of the following {len(traces)} option(s):\n\n{options}"

    def _no_match(self, args: Any, kwargs: Any) -> str:
        return (
            "Could not find matching concrete function to call loaded from the SavedModel. Got:\n"
            f"{_arguments_text(args, kwargs)}\n\n{self._options()}"
        )

    def _no_match_of_types(self, kind: ContainerType) -> str:
        args, kwargs = kind.placeholder_value(SpecContext())
        return self._no_match(args, kwargs)


class _NoTraceError(ValueError):
    """No trace matches the types of the arguments."""


class _CompatibleCast(CastContext):
    """A cast that accepts tensors of equal dtype and compatible shape."""

    def tensor(self, value: Any, spec: TensorSpec) -> Any:
        """Return `value` as a tensor. Raises TypeError if it cannot have this spec."""
        if isinstance(value, TensorSpec):
            if value.dtype is not spec.dtype or not value.shape.is_compatible_with(spec.shape):
                raise TypeError(f"{value!r} is not a {spec!r}")
            return value
        return super().tensor(value, spec)


def _arguments_text(args: Any, kwargs: Any) -> str:
    lines = [f"  Positional arguments ({len(args)} total):", *(f"    * {_shortened(a)}" for a in args)]
    return "\n".join([*lines, f"  Keyword arguments: {kwargs}"])


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else text[:297] + "..."


class LoadedSignature(ConcreteFunction):
    """A signature: takes tensors by name and returns a dictionary of tensors."""

    @property
    def structured_outputs(self) -> dict[str, TensorSpec]:
        """The names and types of the results."""
        return {k: TensorSpec(t.shape, t.dtype, k) for k, t in self._structure.items()}


class SignatureMap(Mapping[str, Any]):
    """Signatures by key."""

    _untracked = True

    def __init__(self, signatures: Mapping[str, Any]) -> None:
        self._signatures = dict(signatures)

    def __getitem__(self, key: str) -> object:
        return self._signatures[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._signatures)

    def __len__(self) -> int:
        return len(self._signatures)

    def __repr__(self) -> str:
        return f"_SignatureMap({self._signatures})"
