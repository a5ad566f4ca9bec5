"""Names of layers, metrics and losses; families of objects that configurations name.

Lives here: `Family` (get, serialize, deserialize): a class or function for each name, and to dictionaries and back;
names in snake case, numbered from the second on; objects of the user's own and their scope.
Not here: the families themselves (initializers.py, activations.py ...), names of nodes in graphs (tracing/).
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

_USED: Counter[str] = Counter()


def snake_case(name: str) -> str:
    """Convert a class name to snake case, as layers do: `MyConv2D` to `my_conv2d`.

    >>> snake_case("MultiHeadAttention"), snake_case("Conv2DTranspose")
    ('multi_head_attention', 'conv2d_transpose')
    """
    name = re.sub(r"\W+", "", name)
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def fresh(class_name: str) -> str:
    """Return a unique layer name: dense, dense_1, dense_2, ..."""
    base = snake_case(class_name)
    count = _USED[base]
    _USED[base] += 1
    return f"{base}_{count}" if count else base


def reset() -> None:
    """Reset all name counters."""
    _USED.clear()


CUSTOM: dict[str, Any] = {}  # classes and functions of the user's own, for every family; see CustomObjectScope


class CustomObjectScope:
    """Context manager in which configurations may refer to {name: class or function}."""

    def __init__(self, custom_objects: dict[str, Any]) -> None:
        self.custom_objects = custom_objects

    def __enter__(self) -> CustomObjectScope:
        self._saved = dict(CUSTOM)
        CUSTOM.update(self.custom_objects)
        return self

    def __exit__(self, *_: Any) -> None:
        CUSTOM.clear()
        CUSTOM.update(self._saved)


def snake(name: str) -> str:
    """Convert a class name to snake case, as families do: L1L2 to l1_l2, VarianceScaling to variance_scaling."""
    spaced = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", spaced).lower()


class Family:
    """Registry of the classes or functions of a module such as `keras.initializers`.

    kind: the word for one of them in messages. module: under which name configurations know it. functions: whether
    members are functions (activations), which are named by a string alone.
    """

    def __init__(self, kind: str, module: str, functions: bool = False) -> None:
        self.kind, self.module, self.functions = kind, module, functions
        self.members: dict[str, Any] = {}

    def add(self, members: Iterable[Any], **aliases: Any) -> None:
        """Register classes or functions by name, classes also by snake-case name, and aliases."""
        for member in members:
            self.members[member.__name__] = member
            if inspect.isclass(member):
                self.members.setdefault(snake(member.__name__), member)
        self.members.update(aliases)

    def find(self, name: str, custom_objects: dict[str, Any] | None = None) -> Any:
        """Return the class or function of a name. Raises ValueError that lists the known names."""
        for known in (custom_objects or {}, CUSTOM, self.members):
            if name in known:
                return known[name]
        raise ValueError(
            f"Could not interpret {self.kind} identifier: {name!r}. Known are "
            f"{', '.join(sorted(self.members))}; give others in `custom_objects`"
        )

    def serialize(self, value: Any) -> Any:
        """Return a member as plain values: a dictionary of class and configuration, or a function's name."""
        if value is None or isinstance(value, (str, dict)):
            return value
        if hasattr(value, "get_config"):
            module = self.module if self.members.get(type(value).__name__) is type(value) else type(value).__module__
            return {
                "module": module,
                "class_name": type(value).__name__,
                "config": value.get_config(),
                "registered_name": None,
            }
        name = getattr(value, "__name__", None)
        if name is None or name == "<lambda>":
            raise ValueError(f"Cannot serialize the {self.kind} {value!r}: it has neither a name nor get_config()")
        return name

    def deserialize(self, config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
        """Return the object of a serialized configuration. custom_objects: user classes and functions by name."""
        if isinstance(config, str):
            return self.find(config, custom_objects)
        if not isinstance(config, dict) or "class_name" not in config:
            raise ValueError(f"Could not interpret {self.kind} identifier: {config!r}")
        inner = config.get("config") or {}
        if isinstance(inner, str):  # a function, as a dictionary
            return self.find(inner, custom_objects)
        found = self.find(config["class_name"], custom_objects)
        make: Callable[..., Any] | None = getattr(found, "from_config", None)
        return make(inner) if make is not None else found(**inner)

    def get(self, identifier: Any) -> Any:
        """Return the member for a name, a dictionary, a class, an instance (unchanged) or None (None)."""
        if identifier is None:
            return None
        if isinstance(identifier, dict):
            identifier = self.deserialize(identifier)
        elif isinstance(identifier, str):
            identifier = self.find(identifier)
        if inspect.isclass(identifier):
            identifier = identifier()
        if callable(identifier):
            return identifier
        raise ValueError(f"Could not interpret {self.kind} identifier: {identifier!r}")


class Configured:
    """Object serialized by its constructor's arguments: `arguments` lists them, each an attribute."""

    arguments: tuple[str, ...] = ()

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {key: getattr(self, key) for key in self.arguments}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Configured:
        """Return the object of a configuration."""
        return cls(**config)
