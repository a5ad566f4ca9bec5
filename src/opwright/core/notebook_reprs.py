"""How objects are shown in notebooks: `_repr_html_` of classes in all layers.

Lives here: `shown_as`. Not here: the markup (views/notebooks.py), which is imported when a notebook shows an object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .lazy_imports import import_module


def shown_as(kind: str) -> Callable[[Any], str]:
    """Return the method `_repr_html_` of a class. kind: the function of views/notebooks.py that writes its markup."""

    def _repr_html_(self: Any) -> str:
        markup: str = getattr(import_module("opwright.views.notebooks"), kind)(self)
        return markup

    return _repr_html_
