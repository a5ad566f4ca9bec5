"""Object graphs: the variables of an object and the objects that hold them, by attribute.

Lives here: which attributes count, the walk from a root, the names of values. Not here: functions
(function_records.py), files (checkpoint_files.py, manifest.py).

An object's children are its attributes that are variables, modules, optimizers, functions, or lists, tuples and dicts
that contain such; a list's children are "0", "1" ..., a dict's its keys, which must be text. Every object is visited
once, breadth first, and a value is named by its shortest path:

    encoder/layers/0/kernel/.ATTRIBUTES/VARIABLE_VALUE

with . written as .. and / as .S inside the name of an attribute or a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..eager.variable import Variable
from ..nn.input_layer import InputLayer
from ..nn.module import Module
from ..optimizers.base import Optimizer
from ..tracing.concrete import ConcreteFunction
from ..tracing.function import Function

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
