"""Configured: a layer as plain values and back.

Lives here: `get_config`, `from_config`, the arguments a layer was made with.  Not here: models (model_config.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

_PLAIN = (str, int, float, bool, type(None), np.generic)


class Configured:
    """Mixin of layers: serialization by the constructor's arguments."""

    name: Any
    _dtype_name: str
    base_init: ClassVar[Callable[..., None]]
    """The constructor of the class that has no arguments of its own to describe: `Layer`'s."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        self.__dict__["_made_with"] = (args, kwargs)
        return self

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments; no override is needed if all of them are plain values.

        raises NotImplementedError naming the arguments that are not
        """
        config: dict[str, Any] = {
            "name": self.name,
            "trainable": getattr(self, "_trainable", True),
            "dtype": self._dtype_name,
        }
        if type(self).get_config is not Configured.get_config or type(self).__init__ is self.base_init:
            return config
        config.update(self._own_arguments())
        return config

    def _own_arguments(self) -> dict[str, Any]:
        args, kwargs = self.__dict__["_made_with"]
        parameters = inspect.signature(type(self).__init__)
        bound = parameters.bind(self, *args, **kwargs).arguments
        given: dict[str, Any] = {}
        for name, value in list(bound.items())[1:]:
            kind = parameters.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                given.update(value)
            elif kind is inspect.Parameter.VAR_POSITIONAL:
                if value:
                    raise self._unplain(name)
            else:
                given[name] = value
        for name, value in given.items():
            if not _plain(value):
                raise self._unplain(name)
        return {k: v for k, v in given.items() if k not in ("name", "trainable", "dtype")}

    def _unplain(self, argument: str) -> NotImplementedError:
        return NotImplementedError(
            f"Object {type(self).__name__} was created by passing non-serializable argument values in `__init__()` "
            f"({argument!r}), and therefore the object must override `get_config()` in order to be serializable. "
            "Give a `get_config` with all arguments of `__init__` in it, and `from_config` if they need undoing."
        )

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Return a new object with the constructor's arguments in `config`; its weights are new.

        raises TypeError where the constructor does not take them
        """
        try:
            return cls(**config)
        except TypeError as error:
            raise TypeError(
                f"Error when deserializing class '{cls.__name__}' using config={config}.\n\n"
                f"Exception encountered: {error}"
            ) from error


def _plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and _plain(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    return isinstance(value, _PLAIN)
