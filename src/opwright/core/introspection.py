"""Looking at Python functions.

Lives here: their signatures.  Not here: binding arguments (tracing/signature.py), their source (staging/source.py).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

if sys.version_info >= (3, 14):
    from annotationlib import Format

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """`inspect.signature`. Annotations may name what is not there (yet): Python evaluates them when asked."""
        return inspect.signature(function, annotation_format=Format.FORWARDREF)

else:

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """`inspect.signature`. Annotations may name what is not there (yet): Python evaluates them when asked."""
        return inspect.signature(function)


def copy_annotations(function: Callable[..., Any], to: Callable[..., Any]) -> None:
    """Give `to` the annotations of a function, not evaluated where they are not yet."""
    annotate = getattr(function, "__annotate__", None)  # Python 3.14
    if annotate is not None:
        to.__annotate__ = annotate  # type: ignore[attr-defined]
    else:
        to.__annotations__ = function.__annotations__
