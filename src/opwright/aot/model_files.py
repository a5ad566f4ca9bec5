"""The file of what a library is made of: a .tflite file as it is, functions converted.

Lives here: `content_of`. Not here: conversion (lite/convert/), planning (model_plans.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.errors import InvalidArgumentError


def content_of(model: Any) -> tuple[bytes, str]:
    """Return the bytes of a model's file and a name for it. model: as of `build`. Raises InvalidArgumentError, and
    ConverterError for functions that no file can hold."""
    if isinstance(model, bytes | bytearray | memoryview):
        return bytes(model), "model"
    if isinstance(model, str | os.PathLike):
        return Path(model).read_bytes(), Path(model).stem
    if isinstance(model, Mapping):
        return _converted(list(model.values()), list(model)), "model"
    if isinstance(model, Sequence):
        return _converted(model, None), "model"
    return _converted([model], None), getattr(model, "__name__", "model")


def _converted(functions: Sequence[Any], keys: list[str] | None) -> bytes:
    """Return the file whose signatures are functions, which share their variables. keys: by default their names."""
    from ..lite import TFLiteConverter

    concrete = []
    for function in functions:
        get = getattr(function, "get_concrete_function", None)
        if get is None and not hasattr(function, "structured_outputs"):
            raise InvalidArgumentError(
                op="aot.build",
                what="a model is a file, its bytes, a function, or several functions",
                found=type(function).__name__,
                do="decorate it with ow.function(input_signature=[...])",
            )
        concrete.append(function if get is None else get())
    converter = TFLiteConverter.from_concrete_functions(concrete, functions)
    converter.allow_custom_ops = True
    converter.signature_keys = keys
    return converter.convert()
