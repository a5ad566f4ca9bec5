"""The kernel language: what kernels on arrays are written in (docs/kernels.md).

    from opwright import language as kl
"""

from typing import Any

from .compiler import language as _language
from .compiler.language import *  # noqa: F403
from .compiler.language.functions import MATHEMATICAL as _MATHEMATICAL

_OF_FAMILIES = {"Family", "FamilyCode", "LoopRange", "Pointer", "Work", "call", "copy", "family", "gather", "lookup",
                "null", "pointer", "ptr", "value"}  # fmt: skip  # with pointers, which know no bounds
__all__ = sorted({*_language.__all__, *_MATHEMATICAL} - _OF_FAMILIES)


def __getattr__(name: str) -> Any:
    return getattr(_language, name)
