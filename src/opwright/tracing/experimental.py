"""`ow.experimental`: extension types and optionals under TensorFlow's names.

Lives here: the names.  Not here: the definitions (extension_type.py, data/optional.py).
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace

from .extension_type import BatchableExtensionType, ExtensionType, ExtensionTypeSpec, as_dict

extension_type = SimpleNamespace(as_dict=as_dict)

__all__ = ["BatchableExtensionType", "ExtensionType", "ExtensionTypeSpec", "Optional", "extension_type"]  # noqa: F822  by __getattr__


def __getattr__(name: str) -> object:
    if name == "Optional":  # defined in a layer above this one, and imported on first use
        return importlib.import_module("opwright.data.optional").Optional
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
