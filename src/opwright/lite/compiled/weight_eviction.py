"""Evict the pages of a mapped file whose weights are packed, so that weights are not in memory twice.

Lives here: `pack_and_release`, `mapping_of`.
Not here: packing (compiler/loops/plans.py), mapping the file (format/model.py).

Pages of a mapped file that will not be read soon are dropped from the process while packing goes on, so that the file
and its packed copy are never both in memory; a page that is read again comes back from the file.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from ...compiler.loops.plans import LoopPlan
from ..runtime.node import Node
from ..runtime.tensor import CONSTANT

EVICTION_INTERVAL = 8 << 20  # bytes of constants packed between evictions


def pack_and_release(plan: LoopPlan, node: Node) -> None:
    """Pack a plan's constants, and evict the pages of the file with the node's constants meanwhile."""
    mapping = next(
        (
            mapped
            for t in node.tensors_in
            if t is not None and t.kind == CONSTANT and (mapped := mapping_of(t.array)) is not None
        ),
        None,
    )
    advise: Any = getattr(mapping, "madvise", None)
    if advise is None or not hasattr(mmap, "MADV_DONTNEED"):
        plan.pack()
        return
    plan.pack(EVICTION_INTERVAL, lambda: advise(mmap.MADV_DONTNEED))
    advise(mmap.MADV_DONTNEED)


def mapping_of(array: Any) -> mmap.mmap | None:
    """Return the mapped file that contains an array's elements, if any."""
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    base = base.obj if isinstance(base, memoryview) else base
    return base if isinstance(base, mmap.mmap) else None
