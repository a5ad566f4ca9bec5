"""`ow.saved_model`: objects with their variables and functions in a folder.

Lives here: the public names.  Not here: what they do (saver.py, loader.py). docs/saved_model.md has the format.
"""

from __future__ import annotations

from typing import Any

from . import manifest
from .loader import LoadOptions, load
from .saver import SaveOptions, save
from .signatures import DEFAULT_KEY as DEFAULT_SERVING_SIGNATURE_DEF_KEY

__all__ = ["DEFAULT_SERVING_SIGNATURE_DEF_KEY", "LoadOptions", "SaveOptions", "contains_saved_model", "load", "save"]


def contains_saved_model(export_dir: Any) -> bool:
    """Return whether a folder contains a saved model."""
    return manifest.contains(export_dir)
