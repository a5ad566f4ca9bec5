"""Python functions without a name as code in configurations, as Keras stores them.

Lives here: `encode` and `decode` of lambdas, `SafeModeScope`, which decides whether `decode` may.
Not here: functions that have a name, which configurations name (model_config.py).

A file that holds code is as trustworthy as its author: `decode` refuses it unless the caller said `safe_mode=False`.
"""

from __future__ import annotations

import base64
import contextvars
import importlib
import inspect
import marshal
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import DataLossError

CLASS = "__lambda__"
"""The class name of such a configuration."""
_SAFE: contextvars.ContextVar[bool | None] = contextvars.ContextVar("safe_mode", default=None)
_ALWAYS = {"unsafe": False}


class SafeModeScope:
    """Context manager in which configurations may hold code (safe_mode=False), or may not; None leaves it as it is."""

    def __init__(self, safe_mode: bool | None = True) -> None:
        self.safe_mode = safe_mode

    def __enter__(self) -> SafeModeScope:
        self._token = _SAFE.set(_SAFE.get() if self.safe_mode is None else self.safe_mode)
        return self

    def __exit__(self, *_: Any) -> None:
        _SAFE.reset(self._token)


def in_safe_mode() -> bool:
    """Return whether code in configurations is refused."""
    return _SAFE.get() is not False and not _ALWAYS["unsafe"]


def scoped(safe_mode: bool) -> bool:
    """Return what the innermost `SafeModeScope` says, of functions that are called while a model is read; else the
    argument."""
    scope = _SAFE.get()
    return safe_mode if scope is None else scope


def enable_unsafe_deserialization() -> None:
    """Let configurations hold code from now on, in this process, as safe_mode=False does for one call."""
    _ALWAYS["unsafe"] = True


def unserializable(value: object) -> TypeError:
    """Return the error of a value that no configuration can hold."""
    return TypeError(f"{value!r} cannot be serialized: it has neither get_config() nor a name")


def encode(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a lambda as its bytecode, defaults and closure, with a warning.

    raises TypeError for a callable without bytecode
    """
    package = __name__.partition(".")[0]
    if not isinstance(function, types.FunctionType) or str(function.__module__).partition(".")[0] == package:
        raise unserializable(function)
    warnings.warn(
        "The object being serialized includes a `lambda`: its bytecode is stored, which only this version of Python "
        "loads, and only with `safe_mode=False`. Use a named function, registered by register_keras_serializable",
        stacklevel=2,
    )
    closure = inspect.getclosurevars(function).nonlocals
    return {
        "class_name": CLASS,
        "config": {
            "code": base64.encodebytes(marshal.dumps(function.__code__)).decode("ascii"),
            "defaults": list(function.__defaults__) if function.__defaults__ else None,
            "closure": [closure.get(name) for name in function.__code__.co_freevars] or None,
        },
    }


def decode(config: Any) -> Callable[..., Any]:
    """Return the function of a configuration. It sees `np`, `keras`, `ow` and, the same, `tf`.

    raises ValueError in safe mode, DataLossError for damaged code and that of another version of Python
    """
    if in_safe_mode():
        raise ValueError(
            "Requested the deserialization of a Python lambda, such as that of a `Lambda` layer. This carries a "
            "potential risk of arbitrary code execution and thus it is disallowed by default. If you trust the source "
            "of the artifact, pass `safe_mode=False` to the loading function, or call "
            "`keras.config.enable_unsafe_deserialization()`."
        )
    package = importlib.import_module(__name__.partition(".")[0])
    names = {"np": np, "numpy": np, "ow": package, "tf": package, "keras": package.keras, "ops": package.keras.ops}
    if isinstance(config, dict) and "value" in config:  # Keras's form outside of a Lambda layer
        config = dict(zip(("code", "defaults", "closure"), config["value"]))
    try:
        code = marshal.loads(base64.decodebytes(config["code"].encode("ascii")))
        defaults, closure = config.get("defaults"), config.get("closure")
        return types.FunctionType(
            code,
            names,
            code.co_name,
            None if defaults is None else tuple(defaults),
            None if closure is None else tuple(map(types.CellType, closure)),
        )
    except (AttributeError, EOFError, KeyError, TypeError, ValueError) as error:
        raise DataLossError(
            what=f"the code of a lambda is damaged, or of another version of Python: {error}",
            do="define the function with a name and pass it in custom_objects",
        ) from error
