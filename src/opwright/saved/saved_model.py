"""`ow.saved_model`: objects with their variables and functions in a folder.

Lives here: the public names.  Not here: what they do (saving.py, loading.py). docs/saved_model.md has the format.
"""

from __future__ import annotations

from typing import Any

from . import manifest
from .loading import LoadOptions, load
from .saving import SaveOptions, save
from .signatures import DEFAULT_KEY as DEFAULT_SERVING_SIGNATURE_DEF_KEY

__all__ = ["DEFAULT_SERVING_SIGNATURE_DEF_KEY", "LoadOptions", "SaveOptions", "contains_saved_model", "load", "save"]


def contains_saved_model(export_dir: Any) -> bool:
    """Whether there is a saved model in a folder."""
    return manifest.contains(export_dir)
