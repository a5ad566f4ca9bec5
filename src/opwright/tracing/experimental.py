"""`ow.experimental`: extension types under TensorFlow's names.

Lives here: names.  Not here: what they do (extension_type.py).
"""

from __future__ import annotations

from types import SimpleNamespace

from .extension_type import BatchableExtensionType, ExtensionType, ExtensionTypeSpec, as_dict

extension_type = SimpleNamespace(as_dict=as_dict)

__all__ = ["BatchableExtensionType", "ExtensionType", "ExtensionTypeSpec", "extension_type"]
