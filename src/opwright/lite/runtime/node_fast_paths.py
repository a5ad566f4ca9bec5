"""Fast paths of nodes: adjacent nodes run by one call, shapes reused from the last run, updates in place.

Lives here: `joined`, `JoinedStep`; `Repeat` and `Noting`, which shape rules read to make one; the registration of
DYNAMIC_UPDATE_SLICE whose result shares its operand's memory, so that only the update is written.
Not here: which nodes can be joined (their registrations' `is_joinable` and `bind_many`), shapes as functions of values
(../registration.py), when memory is shared (memory.py, and loop.py for loop-carried tensors).

Two calls cost more than a small node. The steps of single nodes remain, because observers look at nodes one by one.
Sizes, axes and paddings that a node reads while the model runs are mostly those of the run before: comparing them takes
a microsecond, inferring and checking shapes again ten.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...compiler.native.image import runs_images
from ..registration import OperatorRegistration
from .chains import Chain, NativeStep
from .node import Context, Node
from .settling import nothing
from .tensor import DYNAMIC, Tensor

if TYPE_CHECKING:
    from .node import Node

class JoinedStep(Protocol):
    """Runs several nodes in order. failed: after it has raised, which of them did."""

    failed: int
    nodes: Sequence[Node]

    def __call__(self) -> None: ...


def joined(context: Context, plan: Sequence[Node], steps: Sequence[Callable[[], Any]],
           deferred: Container[int], called: bool = False) -> list[Callable[[], Any]]:  # fmt: skip
    """The steps, with one in the place of several where nodes can run by one call, and none for settled nodes.

    plan, steps: nodes and their own steps, in the same order. deferred: numbers of nodes that may be prepared while the
    model runs, which run alone. called: whether a node of another subgraph runs these, by machine code if they are one.
    """

    def kind(i: int) -> Any:
        """What binds such nodes together; None for a node that runs alone."""
        registration: Any = plan[i].registration
        bind_many = getattr(registration, "bind_many", None)
        return bind_many if bind_many and plan[i].number not in deferred and registration.is_joinable(plan[i]) else None

    found: list[tuple[Node, Callable[[], Any]]] = []
    for bind_many, group in groupby(range(len(plan)), kind):
        places = list(group)
        if bind_many is None or len(places) == 1:
            found += [(plan[i], steps[i]) for i in places if steps[i] is not nothing]
        else:
            found.append((plan[places[0]], bind_many(context, [plan[i] for i in places])))
    return _chained(found, called) if runs_images() else [step for _, step in found]


def _chained(steps: Sequence[tuple[Node, Any]], called: bool) -> list[Callable[[], Any]]:
    """The steps, with a chain in the place of native ones that follow one another, or gain by it alone."""
    if called and not steps:
        return [Chain((), ())]
    found: list[Callable[[], Any]] = []
    for native, group in groupby(steps, lambda entry: isinstance(entry[1], NativeStep)):
        nodes, members = zip(*group)
        if native and (called or len(members) > 1 or members[0].alone):
            found.append(Chain(nodes, members))
        else:
            found += members
    return found


MOST_READ = 1 << 8  # bytes of the values that shapes follow from: what is larger is data
MOST_HELD = 1 << 16  # bytes of a node's tensors, which live as long as its step


class Noting:
    """A tensor whose elements are there now, which notes that shape rules ask for them."""

    __slots__ = ("_read", "_tensor", "spec")
    fixed = False

    def __init__(self, t: Tensor, read: list[Tensor]) -> None:
        self._tensor, self._read, self.spec = t, read, t.spec

    @property
    def constant(self) -> np.ndarray | None:
        """The elements."""
        self._read.append(self._tensor)
        return self._tensor.array

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.spec.dtype

    @property
    def shape(self) -> Any:
        """The shape."""
        return self.spec.shape


class Repeat:
    """A node's step, right while its tensors lie where they did and values that shapes followed from are the same."""

    __slots__ = ("_held", "_read", "step")

    def __init__(self, node: Node, read: Sequence[Tensor], step: Callable[[], Any]) -> None:
        self._held = [(t, t.array) for t in (*node.tensors_in, *node.tensors_out) if t is not None]
        self._read = [(t.array, t.array.tobytes()) for t in {id(t): t for t in read}.values()
                      if t.constant is None and t.array is not None]  # fmt: skip
        self.step = step

    @classmethod
    def of(cls, node: Node, read: Sequence[Tensor], step: Callable[[], Any]) -> Repeat | None:
        """The repeat of a step that has just run; None where too much would be compared or held. read: the tensors
        whose elements shape rules asked for."""
        tensors = [t for t in (*node.tensors_in, *node.tensors_out) if t is not None and t.constant is None]
        if any(t.array is None or t.is_object for t in tensors):
            return None
        small = sum(t.nbytes for t in tensors) <= MOST_HELD and sum(t.nbytes for t in read) <= MOST_READ
        return cls(node, read, step) if small else None

    @property
    def is_right(self) -> bool:
        """Whether the step does what the node is to do now."""
        for t, array in self._held:
            if t.array is not array:
                return False
        return all(array.tobytes() == was for array, was in self._read)


class Update(OperatorRegistration):
    """Runs on raw elements, so on quantised tensors of one scale too, as the definition says."""

    __slots__ = ()

    def bind(self, context: Context, node: Node) -> Callable[[], Any]:
        if node.kernel is not None or any(t.kind == DYNAMIC for t in node.tensors_out):
            return super().bind(context, node)
        x, update, starts = (t.readonly for t in node.tensors_in if t is not None)
        out: Any = node.tensors_out[0].array
        assert x is not None
        assert update is not None
        same = x.__array_interface__["data"][0] == out.__array_interface__["data"][0]
        most = tuple(d - u for d, u in zip(x.shape, update.shape))
        return functools.partial(_run, None if same else x, update, starts, out, most, update.shape)


def _run(x: Any, update: np.ndarray, starts: Any, out: np.ndarray, most: tuple[int, ...], sizes: Any) -> None:
    if x is not None:
        np.copyto(out, x)
    at = tuple([slice(s := min(max(i, 0), m), s + u) for i, m, u in zip(starts.tolist(), most, sizes)])
    out[at] = update
