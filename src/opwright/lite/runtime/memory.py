"""The arena of a subgraph: which tensors it holds, how long each lives, and binding them to their place.

Lives here: lifetimes and binding.  Not here: the packing of buffers (compiler/memory.py), tensors with memory of
their own.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...compiler.memory import Allocation, plan_arena
from ...core import flags
from .holding import check_bytes
from .node import Node
from .tensor import ARENA, Tensor

ALIGNMENT = 64


def place(nodes: list[Node], kept: Iterable[Tensor], results: Iterable[Tensor] = ()) -> int:
    """Plan one arena for the tensors of `nodes`, allocate it as zeros, and bind them; its size in bytes.

    kept: tensors that live all the time, such as the subgraph's inputs. results: tensors that live from the first node
    that touches them on, such as its outputs. The others live from the first node that touches them to the last, a
    node's temporaries only while it runs. An output that may be written into an input that dies (`takers`) has its
    place.
    raises ResourceExhaustedError above the flag max_activation_bytes
    """
    lives: dict[int, tuple[int, int, Tensor]] = {}

    def touch(t: Tensor | None, first: int, last: int) -> None:
        if t is not None and t.kind == ARENA:
            known = lives.get(id(t))
            lives[id(t)] = (first, last, t) if known is None else (min(first, known[0]), max(last, known[1]), t)

    kept, results = list(kept), list(results)
    for t in kept:
        touch(t, 0, len(nodes))
    for i, node in enumerate(nodes):
        for t_ in node.tensors_in:
            touch(t_, i, i)
        for t in node.tensors_out:
            touch(t, i, i)
        for view in (*node.temporaries, *node.intermediates):
            touch(None if view is None else view.tensor, i, i)
    for t in results:
        touch(t, len(nodes), len(nodes))
    tensors = [t for _, _, t in lives.values()]
    share = takers(nodes, {id(t) for t in (*kept, *results)}) if flags.inplace else {}
    buffers: dict[int, Allocation] = {}
    for first, last, t in lives.values():
        at = share.get(id(t), id(t))
        b = buffers.get(at, Allocation(t.nbytes, first, last))
        buffers[at] = Allocation(b.size, min(b.first, first), max(b.last, last))
    found, total = plan_arena(list(buffers.values()), ALIGNMENT)
    places = dict(zip(buffers, found))
    offsets = [places[share.get(id(t), id(t))] for t in tensors]
    check_bytes(total, "the arena of activations")
    base = np.zeros(total + ALIGNMENT, np.uint8)
    skip = -base.ctypes.data % ALIGNMENT
    for t, offset in zip(tensors, offsets):
        at = skip + offset
        t.bind(base[at : at + t.nbytes].view(t.dtype.np).reshape(t.shape))
    return total


def takers(nodes: list[Node], kept: set[int]) -> dict[int, int]:
    """Of tensors that lie where another does: by id, the id of the first of them.

    An output lies where an input does if the operator declares it (`inplace`), both are in the arena and have one
    dtype and so many bytes, this node is the last to touch the input and reads it once, the first to touch the output
    and gives it once, the input is not kept, and neither has another such partner on that side.
    """
    touched: dict[int, tuple[int, int]] = {}
    for i, node in enumerate(nodes):
        views = (*node.temporaries, *node.intermediates)
        for t in (*node.tensors_in, *node.tensors_out, *(None if v is None else v.tensor for v in views)):
            if t is not None:
                touched[id(t)] = (touched.get(id(t), (i, i))[0], i)
    share: dict[int, int] = {}
    for i, node in enumerate(nodes):
        operator = getattr(node.registration, "operator", None)
        if operator is None or not operator.inplace or len(node.tensors_out) != 1 or not operator.single:
            continue
        out = node.tensors_out[0]
        everything = [t for t in (*node.tensors_in, *node.tensors_out) if t is not None]
        for place in operator.inplace_places:
            t = node.tensors_in[place] if place < len(node.tensors_in) else None
            if (t is not None and t.kind == out.kind == ARENA and t.dtype is out.dtype and t.nbytes == out.nbytes
                    and touched[id(t)][1] == i and touched[id(out)][0] == i and id(t) not in kept
                    and not t.is_variable and not out.is_variable
                    and sum(x is t for x in everything) == 1 == sum(x is out for x in everything)):  # fmt: skip
                share[id(out)] = share.get(id(t), id(t))
                break
    return share
