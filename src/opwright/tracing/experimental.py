"""`ow.experimental`: extension types and optionals under TensorFlow's names.

Lives here: names.  Not here: what they do (extension_type.py, data/optional.py).
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

from .extension_type import BatchableExtensionType, ExtensionType, ExtensionTypeSpec, as_dict

extension_type = SimpleNamespace(as_dict=as_dict)

__all__ = ["BatchableExtensionType", "ExtensionType", "ExtensionTypeSpec", "Optional", "extension_type"]  # noqa: F822  by __getattr__


def __getattr__(name: str) -> Any:
    if name == "Optional":  # of a floor above this one: loaded when asked for, as the package's late names are
        return importlib.import_module("opwright.data.optional").Optional
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
