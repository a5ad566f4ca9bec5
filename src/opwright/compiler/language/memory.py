"""Whole runs of memory in kernels.

Lives here: `copy`.  Not here: loads and stores of numbers and vectors (values.py).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .kinds import I1
from .places import Pointer
from .values import intrinsic, value


def copy(into: Pointer, source: Pointer, nbytes: Any) -> None:
    """Copy so many bytes between places that do not overlap: C's memcpy, or what LLVM makes of it."""
    intrinsic("memcpy.p0.p0.i64", ir.VoidType(), into.x, source.x, value(nbytes).x, ir.Constant(I1, 0))
