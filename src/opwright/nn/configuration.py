"""Configurations: layers and other objects as plain values, and registries of objects that configurations name.

Lives here: `ConstructorConfig` (`get_config` of layers), `AttributeConfig` (of initializers and the like),
`ObjectRegistry` (get, serialize, deserialize by name), unique layer names, user classes and their scope.
Not here: models (model_config.py), the registries' members (initializers.py, activations.py ...).
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from ..core.class_names import snake_case

_PLAIN = (str, int, float, bool, type(None), np.generic)


class ConstructorConfig:
    """Mixin of layers: serialization by the constructor's arguments."""

    name: Any
    base_init: ClassVar[Callable[..., None]]
    """Constructor of the base class without arguments of its own, `Layer`."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        self.__dict__["_constructor_arguments"] = (args, kwargs)
        return self

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments; no override is needed if all of them are plain values.

        raises NotImplementedError that names the other arguments
        """
        config = self._base_config()
        if type(self).get_config is not ConstructorConfig.get_config or type(self).__init__ is self.base_init:
            return config
        config.update(self._own_arguments())
        return config

    def _base_config(self) -> dict[str, Any]:
        """Return the arguments of the base class."""
        raise NotImplementedError(f"{type(self).__name__} must define _base_config()")

    @classmethod
    def _base_arguments(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Return arguments of the base class that differ from those in its configuration."""
        return {}

    def _own_arguments(self) -> dict[str, Any]:
        args, kwargs = self.__dict__["_constructor_arguments"]
        parameters = inspect.signature(type(self).__init__)
        bound = parameters.bind(self, *args, **kwargs).arguments
        arguments: dict[str, Any] = {}
        for name, value in list(bound.items())[1:]:
            kind = parameters.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                arguments.update(value)
            elif kind is inspect.Parameter.VAR_POSITIONAL:
                if value:
                    raise self._not_serializable(name)
            else:
                arguments[name] = value
        for name, value in arguments.items():
            if not _is_plain(value):
                raise self._not_serializable(name)
        return {k: v for k, v in arguments.items() if k not in ("name", "trainable", "dtype", "activity_regularizer")}

    def _not_serializable(self, argument: str) -> NotImplementedError:
        return NotImplementedError(
            f"Object {type(self).__name__} was created by passing non-serializable argument values in `__init__()` "
            f"({argument!r}), and therefore the object must override `get_config()` in order to be serializable. "
            "Return all arguments of `__init__` from `get_config`, and override `from_config` to convert them back."
        )

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return a new object with the constructor's arguments in `config`; its weights are new.

        raises TypeError if the constructor rejects them
        """
        config = {**config, **cls._base_arguments(config)}
        try:
            return cls(**config)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Error when deserializing class '{cls.__name__}' using config={config}.\n\n"
                f"Exception encountered: {error}"
            ) from error


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_plain(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


_USED: Counter[str] = Counter()


def fresh(class_name: str) -> str:
    """Return a unique layer name: dense, dense_1, dense_2, ..."""
    base = snake_case(class_name)
    count = _USED[base]
    _USED[base] += 1
    return f"{base}_{count}" if count else base


@contextlib.contextmanager
def names_restored() -> Iterator[None]:
    """Return a context after which layers are named as if nothing had been named in it."""
    before = dict(_USED)
    try:
        yield
    finally:
        _USED.clear()
        _USED.update(before)


def count_of(prefix: str) -> int:
    """Return how often this was called with a prefix, from 1."""
    _USED[prefix] += 1
    return _USED[prefix]


def reset() -> None:
    """Reset all name counters."""
    _USED.clear()


JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

CUSTOM: dict[str, Any] = {}  # user classes and functions, for every registry; see CustomObjectScope


def registered_name(thing: Any) -> str | None:
    """Return the name under which a user's class or function is registered, "package>name"; None if it is not."""
    return next((name for name, member in CUSTOM.items() if member is thing and ">" in name), None)


def function_config(function: Any) -> dict[str, Any]:
    """Return a function that has a name as plain values."""
    return {
        "module": getattr(function, "__module__", None),
        "class_name": "function",
        "config": function.__name__,
        "registered_name": registered_name(function),
    }


class CustomObjectScope:
    """Context manager in which configurations may refer to {name: class or function}."""

    def __init__(self, custom_objects: dict[str, Any] | None) -> None:
        self.custom_objects = custom_objects or {}

    def __enter__(self) -> CustomObjectScope:
        self._saved = dict(CUSTOM)
        CUSTOM.update(self.custom_objects)
        return self

    def __exit__(self, *_: Any) -> None:
        CUSTOM.clear()
        CUSTOM.update(self._saved)


def registry_name(name: str) -> str:
    """Convert a class name to snake case, as families do: L1L2 to l1_l2, VarianceScaling to variance_scaling."""
    spaced = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", spaced).lower()


class ObjectRegistry:
    """Registry of the classes or functions of a module such as `keras.initializers`.

    kind: the noun of its members in messages. module: the module name in configurations. functions: whether members
    are functions (activations), which are serialized as their names.
    """

    def __init__(self, kind: str, module: str, functions: bool = False) -> None:
        self.kind, self.module, self.functions = kind, module, functions
        self.members: dict[str, Any] = {}

    def add(self, members: Iterable[Any], **aliases: Any) -> None:
        """Register classes or functions by name, classes also by snake-case name, and aliases."""
        for member in members:
            self.members[member.__name__] = member
            if inspect.isclass(member):
                self.members.setdefault(registry_name(member.__name__), member)
        self.members.update(aliases)

    def find(self, name: str, custom_objects: dict[str, Any] | None = None) -> Callable[..., Any]:
        """Return the class or function of a name. Raises ValueError that lists the known names."""
        names: dict[str, Callable[..., Any]]
        for names in (custom_objects or {}, CUSTOM, self.members):
            if name in names:
                return names[name]
        raise ValueError(
            f"Could not interpret {self.kind} identifier: {name!r}. Known are "
            f"{', '.join(sorted(self.members))}; pass others in `custom_objects`"
        )

    def serialize(self, value: Any) -> str | dict[str, Any] | None:
        """Return a member as plain values: a dictionary of class and configuration, or a function's name."""
        if isinstance(value, (str, dict, type(None))):
            return value
        if hasattr(value, "get_config"):
            module = self.module if self.members.get(type(value).__name__) is type(value) else type(value).__module__
            return {
                "module": module,
                "class_name": type(value).__name__,
                "config": value.get_config(),
                "registered_name": registered_name(type(value)),
            }
        name: str | None = getattr(value, "__name__", None)
        if name is None or name == "<lambda>":
            raise ValueError(f"Cannot serialize the {self.kind} {value!r}: it has neither a name nor get_config()")
        return name if self.members.get(name) is value else function_config(value)

    def deserialize(self, config: Any, custom_objects: dict[str, Any] | None = None) -> Callable[..., Any]:
        """Return the object of a serialized configuration. custom_objects: user classes and functions by name."""
        if isinstance(config, str):
            return self.find(config, custom_objects)
        if not isinstance(config, dict) or "class_name" not in config:
            raise ValueError(f"Could not interpret {self.kind} identifier: {config!r}")
        inner = config.get("config") or {}
        is_function = isinstance(inner, str)  # serialized as a dictionary
        name = str(inner if is_function else config["class_name"])
        registered = config.get("registered_name")
        for objects in (custom_objects or {}, CUSTOM):
            name = registered if registered in objects else name
        if not is_function and name not in {**self.members, **CUSTOM, **(custom_objects or {})}:
            of_models: Any = import_module(".model_config", __package__)  # a layer as an activation
            if of_models.is_known(name):
                layer: Callable[..., Any] = of_models.deserialize(config, custom_objects)
                return layer
        member = self.find(name, custom_objects)
        if is_function:
            return member
        make: Callable[..., Any] | None = getattr(member, "from_config", None)
        instance: Callable[..., Any] = make(inner) if make is not None else member(**inner)
        return instance

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


class AttributeConfig:
    """Object serialized by its constructor's arguments: `arguments` lists them, each an attribute."""

    arguments: tuple[str, ...] = ()

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {key: getattr(self, key) for key in self.arguments}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> AttributeConfig:
        """Return the object of a configuration."""
        return cls(**config)
