"""The arena of a subgraph: which tensors it holds, how long each lives, and binding them to their place.

Lives here: which tensors may share memory, binding.
Not here: lifetimes and the packing of buffers (compiler/memory.py), tensors with memory of their own.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...compiler.memory import Allocation, Lifetimes, plan_arena
from ...core import flags
from .holding import check_bytes
from .node import Node
from .tensor import ARENA, Tensor

ALIGNMENT = 64


def place(nodes: list[Node], kept: Iterable[Tensor], results: Iterable[Tensor] = ()) -> int:
    """Plan one arena for the tensors of `nodes`, allocate it as zeros, and bind them; its size in bytes.

    kept: tensors that live all the time, such as the subgraph's inputs. results: tensors that live from the first node
    that touches them on, such as its outputs. The others live from the first node that touches them to the last, a
    node's temporaries only while it runs. An output that may be written into an input that dies has its place.
    raises ResourceExhaustedError above the flag max_activation_bytes
    """
    lives: Lifetimes[int] = Lifetimes()
    tensors: dict[int, Tensor] = {}

    def touch(t: Tensor | None, first: int, last: int) -> None:
        if t is not None and t.kind == ARENA:
            tensors[id(t)] = t
            lives.touch(id(t), first, last)

    for t in kept:
        touch(t, 0, len(nodes))
    for i, node in enumerate(nodes):
        views = (*node.temporaries, *node.intermediates)
        for t_ in (*node.tensors_in, *node.tensors_out, *(None if v is None else v.tensor for v in views)):
            touch(t_, i, i)
    for t in results:
        touch(t, len(nodes), len(nodes))
    if flags.inplace:
        _share(nodes, lives)
    buffers = {key: Allocation(tensors[key].nbytes, *span) for key, span in lives.items()}
    found, total = plan_arena(list(buffers.values()), ALIGNMENT)
    offsets = dict(zip(buffers, found))
    check_bytes(total, "the arena of activations")
    base = np.zeros(total + ALIGNMENT, np.uint8)
    skip = -base.ctypes.data % ALIGNMENT
    for key, t in tensors.items():
        at = skip + offsets[lives.root(key)]
        t.bind(base[at : at + t.nbytes].view(t.dtype.np).reshape(t.shape))
    return total


def _share(nodes: list[Node], lives: Lifetimes[int]) -> None:
    """Put outputs where inputs are that die.

    An output lies where an input does if the operator declares it (`inplace`), both are in the arena and have one
    dtype and as many bytes, the node reads the input once and gives the output once, and lifetimes allow it.
    """
    for i, node in enumerate(nodes):
        operator = getattr(node.registration, "operator", None)
        if operator is None or not operator.inplace or len(node.tensors_out) != 1 or not operator.single:
            continue
        out = node.tensors_out[0]
        everything = [t for t in (*node.tensors_in, *node.tensors_out) if t is not None]
        for place in operator.inplace_places:
            t = node.tensors_in[place] if place < len(node.tensors_in) else None
            if (t is not None and t.kind == out.kind == ARENA and t.dtype is out.dtype and t.nbytes == out.nbytes
                    and lives.may_share(id(t), id(out), i) and not t.is_variable and not out.is_variable
                    and sum(x is t for x in everything) == 1 == sum(x is out for x in everything)):  # fmt: skip
                lives.share(id(t), id(out))
                break
