"""Memory of activations: the arena of a subgraph, and the limit on the memory of one interpreter's subgraphs.

Lives here: sharing of memory between tensors, binding to the arena; `MemoryUsage` (of one subgraph), `check_bytes`,
`bytes_for`, `subgraph_memory` with its `Footprint`.
Not here: lifetimes and the packing of buffers (compiler/memory.py), tensors with memory of their own, values of
resources (resources.py, which also calls `check_bytes`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compiler.memory import Allocation, Lifetimes, plan_arena
from ...core import flags
from ...core.errors import InvalidArgumentError, ResourceExhaustedError
from ...core.lazy_imports import later
from ...core.named_tuples import NamedTuple
from .node import Node
from .tensor import ARENA, CONSTANT, Tensor

if TYPE_CHECKING:
    from ..format import constants
else:
    constants = later("..format.constants", __package__)  # not needed by models with a cached plan

ALIGNMENT = 64


def plan_memory(nodes: list[Node], permanent: Iterable[Tensor], results: Iterable[Tensor] = ()) -> int:
    """Plan one arena for the tensors of `nodes`, allocate it as zeros and bind them; return its size in bytes.

    kept: tensors that live during the whole run, such as the subgraph's inputs. results: tensors that live from the
    first node that touches them to the end, such as its outputs. Other tensors live from the first node that touches
    them to the last, a node's temporaries only while it runs. An output may reuse the memory of an input that dies.
    raises ResourceExhaustedError above the flag max_activation_bytes
    """
    lives: Lifetimes[int] = Lifetimes()
    tensors: dict[int, Tensor] = {}

    def touch(t: Tensor | None, first: int, last: int) -> None:
        if t is not None and t.kind == ARENA:
            tensors[id(t)] = t
            lives.touch(id(t), first, last)

    for t in permanent:
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
    starts, total = plan_arena(list(buffers.values()), ALIGNMENT)
    offsets = dict(zip(buffers, starts))
    check_bytes(total, "the arena of activations")
    base = np.zeros(total + ALIGNMENT, np.uint8)
    skip = -base.ctypes.data % ALIGNMENT
    for key, t in tensors.items():
        offset = skip + offsets[lives.root(key)]
        t.bind(base[offset : offset + t.nbytes].view(t.dtype.np).reshape(t.shape))
    return total


def _share(nodes: list[Node], lives: Lifetimes[int]) -> None:
    """Assign outputs to the memory of inputs that die.

    This requires that the operator declares it (`inplace`), both are in the arena with one dtype and size in bytes, the
    node reads the input once and writes the output once, and their lifetimes allow it.
    """
    for i, node in enumerate(nodes):
        for t in _overwritable(node):
            out = node.tensors_out[0]
            if t.kind == out.kind == ARENA and lives.may_share(id(t), id(out), i) and may_overwrite(node, t, out):
                lives.share(id(t), id(out))
                break


def _overwritable(node: Node) -> list[Tensor]:
    """Return the inputs whose memory the node's operator declares that its only output may take, best first."""
    operator = getattr(node.registration, "operator", None)
    if operator is None or not operator.inplace or len(node.tensors_out) != 1 or not operator.profile.single:
        return []
    places = operator.profile.inplace_places
    return [t for index in places if index < len(node.tensors_in) and (t := node.tensors_in[index]) is not None]


def may_overwrite(node: Node, t: Tensor, out: Tensor) -> bool:
    """Return whether a node computes its output in the memory of an input, if that is not needed later."""
    everything = [x for x in (*node.tensors_in, *node.tensors_out) if x is not None]
    return (
        any(x is t for x in _overwritable(node))
        and t.dtype is out.dtype
        and t.nbytes == out.nbytes
        and not t.is_variable
        and not out.is_variable
        and sum(x is t for x in everything) == 1 == sum(x is out for x in everything)
    )


class MemoryUsage:
    """Memory of one subgraph: its arena, tensors with memory of their own, and of these the results of constants.

    family: the usage of all subgraphs of the interpreter, to which this one is appended. Results of constants, such as
    weights as floats, count as a part of the model, like weights unpacked from fewer bits; all else are activations.
    """

    __slots__ = ("_of_constants", "_own", "activations", "arena", "family")

    def __init__(self, family: list[MemoryUsage]) -> None:
        self.family = family
        self.arena = 0
        self.activations = 0  # bytes of all but results of constants
        self._own: dict[int, int] = {}  # by id of the tensor
        self._of_constants: dict[int, int] = {}
        family.append(self)

    @property
    def own(self) -> int:
        """Bytes of tensors with memory of their own: variables, persistent and dynamic ones, results of constants."""
        return sum(self._own.values()) + sum(self._of_constants.values())

    def check(self, t: Tensor, sizes: tuple[int, ...], running: bool) -> None:
        """Raise ResourceExhaustedError if a tensor of these sizes would exceed the limit.

        running: whether the arena stays; otherwise the next allocation replaces it.
        """
        others = sum([usage.activations for usage in self.family])
        others -= self._own.get(id(t), 0) + (0 if running else self.arena)
        check_bytes(bytes_for(t, sizes) + others, lambda: f"tensor {t.name!r} {t.dtype.name}{list(sizes)}")

    def allocate(self, t: Tensor, running: bool, of_constants: bool = False) -> None:
        """Allocate memory of its own for a tensor. of_constants: whether it is computed of constants alone. Raises as
        `check`."""
        if of_constants:
            others = sum(sum(u._of_constants.values()) for u in self.family) - self._of_constants.get(id(t), 0)
            check_bytes(
                bytes_for(t, t.shape) + others,
                lambda: f"tensor {t.name!r} {t.dtype.name}{list(t.shape)}, computed of constants,",
                "max_model_bytes",
            )
        else:
            self.check(t, t.shape, running)
        t.allocate()
        self.forget((t,))
        if of_constants:
            self._of_constants[id(t)] = t.nbytes
        else:
            self._own[id(t)] = t.nbytes
            self.activations += t.nbytes

    def set_arena(self, nbytes: int) -> None:
        """Record the size of a new arena. Raises ResourceExhaustedError if all arenas exceed the limit."""
        self.activations += nbytes - self.arena
        self.arena = nbytes
        elsewhere = sum(usage.activations for usage in self.family if usage is not self)
        check_bytes(nbytes + elsewhere, "the arenas of all subgraphs")

    def forget(self, tensors: Iterable[Tensor]) -> None:
        """Remove tensors that have no memory of their own any more."""
        for t in tensors:
            self.activations -= self._own.pop(id(t), 0)
            self._of_constants.pop(id(t), None)

    def clear(self) -> None:
        """Remove the arena and all tensors."""
        self.arena = self.activations = 0
        self._own.clear()
        self._of_constants.clear()


class Footprint(NamedTuple):
    """Bytes of a subgraph.

    arena: planned tensors. own: tensors with memory of their own (variables, persistent and dynamic ones, results
    of constants). mapped: constants that are views of the file. copied: constants that are copies (packed, sparse,
    unaligned, strings), each array once.
    """

    arena: int
    own: int
    mapped: int
    copied: int


def subgraph_memory(subgraph: Any) -> Footprint:
    """Return the footprint of a `Subgraph`; arena and own are 0 before its tensors are allocated."""
    mapped, copied = 0, {}
    for t in subgraph.tensors:
        if t.kind == CONSTANT and t.is_held:
            root = t.array
            while isinstance(root.base, np.ndarray):
                root = root.base
            if root.flags.owndata:
                copied[id(root)] = root.nbytes
            else:  # the file's bytes belong to no array
                mapped += t.array.nbytes
    return Footprint(subgraph.memory_usage.arena, subgraph.memory_usage.own, mapped, sum(copied.values()))


def check_bytes(size: int, what: str | Callable[[], str], flag: str = "max_activation_bytes") -> None:
    """Raise ResourceExhaustedError if memory would exceed a flag, by default that for activations. what: text, or a
    function that returns it."""
    limit = flags.get(flag)
    if size > limit:
        raise ResourceExhaustedError(
            what=f"{what if isinstance(what, str) else what()} would take {size} bytes",
            found=size,
            wanted=f"at most {limit}",
            do=f"set the flag {flag} higher if the model is right",
        )


def bytes_for(t: Tensor, sizes: tuple[int, ...]) -> int:
    """Return the bytes of a tensor of these sizes. Raises InvalidArgumentError if no array can have them."""
    if not constants.countable(sizes):
        raise InvalidArgumentError(
            what=f"no array can have the shape given to tensor {t.name!r}",
            found=f"{len(sizes)} dimensions: {str(list(sizes))[:120]}",
            wanted="at most 64 dimensions, and a number of bytes below 2**63",
        )
    result: int = math.prod(sizes) * max(t.dtype.np.itemsize, 1)
    return result
