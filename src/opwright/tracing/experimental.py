"""`ow.experimental`: extension types and optionals under TensorFlow's names.

Lives here: the names.  Not here: the definitions (extension_type.py, data/optional.py).
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace

from ..core.lazy_imports import MissingNameError
from .extension_type import BatchableExtensionType, ExtensionType, ExtensionTypeSpec, as_dict

extension_type = SimpleNamespace(as_dict=as_dict)

ABOVE = {"Optional": ("opwright.data.optional", "Optional"), "numpy": ("opwright.compat.numpy_api", None)}
"""Names that are defined in layers above this one, and imported on first use: module, and name in it."""
__all__ = ["BatchableExtensionType", "ExtensionType", "ExtensionTypeSpec", "Optional", "extension_type", "numpy"]  # noqa: F822  by __getattr__


def __getattr__(name: str) -> object:
    if name in ABOVE:
        module, member = ABOVE[name]
        home = importlib.import_module(module)
        return home if member is None else getattr(home, member)
    raise MissingNameError(__name__, name)
