"""The arena of a subgraph: which tensors it holds, how long each lives, and binding them to their place.

Lives here: lifetimes and binding.  Not here: the packing of buffers (compiler/memory.py), tensors with memory of
their own.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...compiler.memory import Allocation, plan_arena
from .node import Node, check_bytes
from .tensor import ARENA, Tensor

ALIGNMENT = 64


def place(nodes: list[Node], kept: Iterable[Tensor]) -> int:
    """Plan one arena for the tensors of `nodes`, allocate it as zeros, and bind them; its size in bytes.

    kept: tensors that live all the time, such as the subgraph's inputs and outputs. The others live from the first
    node that touches them to the last, a node's temporaries only while it runs.
    raises ResourceExhaustedError above the flag max_activation_bytes
    """
    lives: dict[int, tuple[int, int, Tensor]] = {}

    def touch(t: Tensor | None, first: int, last: int) -> None:
        if t is not None and t.kind == ARENA:
            known = lives.get(id(t))
            lives[id(t)] = (first, last, t) if known is None else (min(first, known[0]), max(last, known[1]), t)

    for t in kept:
        touch(t, 0, len(nodes))
    for i, node in enumerate(nodes):
        for t_ in node.tensors_in:
            touch(t_, i, i)
        for t in node.tensors_out:
            touch(t, i, i)
        for view in (*node.temporaries, *node.intermediates):
            touch(None if view is None else view.tensor, i, i)
    tensors = [t for _, _, t in lives.values()]
    offsets, total = plan_arena([Allocation(t.nbytes, first, last) for first, last, t in lives.values()], ALIGNMENT)
    check_bytes(total, "the arena of activations")
    base = np.zeros(total + ALIGNMENT, np.uint8)
    skip = -base.ctypes.data % ALIGNMENT
    for t, offset in zip(tensors, offsets):
        at = skip + offset
        t.bind(base[at : at + t.nbytes].view(t.dtype.np).reshape(t.shape))
    return total
