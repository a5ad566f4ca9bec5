"""Sparse tensors, `ow.sparse`: the elements that are not 0, with their positions.

Lives here: the public names.  Not here: sparse rows of gradients (../indexed_slices.py).
"""

from __future__ import annotations

from . import combinations, functions
from .combinations import *  # noqa: F403
from .functions import *  # noqa: F403

__all__ = [*functions.__all__, *combinations.__all__]  # pyright: ignore[reportUnsupportedDunderAll]
