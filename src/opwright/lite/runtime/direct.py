"""The direct way to run a subgraph and to reach its tensors, for calls whose own cost counts.

Lives here: `Direct`, a run by one native call; `Reach`, tensors to write and read without a look at the subgraph.
Not here: who may use them, and until when (ownership.py), the native call (compiled/kernel.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ...compiler.native.builtins import bound, builtins
from ..ops import types
from .tensor import ARENA, DYNAMIC, OWN, Tensor


class Direct(NamedTuple):
    """A run of everything by one call. run: gives 0, or the status of what stopped it; recover: called with that
    status, goes on from there or raises the error; calls_back: whether code that it runs may ask what runs."""

    run: Callable[[], int]
    recover: Callable[[int], Any]
    calls_back: bool = False


class Reach(NamedTuple):
    """Small input and output tensors by index, whose addresses are fixed until the next allocation.

    writable: copies a value into the tensor where it is an array of just its dtype and shape, and gives 1, else 0, with
    nothing changed; readable: gives a copy, or a NumPy scalar
    """

    writable: dict[int, Callable[[Any], int]]
    readable: dict[int, Callable[[], Any]]

    @classmethod
    def of(cls, inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> Reach:
        """For the inputs and outputs that are such tensors."""
        found = builtins()
        if found is None:
            return NOTHING
        inputs = [*inputs]
        writable = {t.index: bound(found.put, t.array) for t in inputs if t.kind in (ARENA, OWN) and _stays(t)}
        readable = {t.index: bound(found.take, t.array) for t in (*inputs, *outputs) if t.kind != DYNAMIC and _stays(t)}
        return cls(writable, readable)


NOTHING = Reach({}, {})
MOST = 1 << 15  # bytes: a microsecond, during which no other thread of Python runs


def _stays(t: Tensor) -> bool:
    """Whether the elements lie as they are given and taken, and are soon copied."""
    array = t.array
    if array is None or t.is_object or t.type.name in types.IN_BYTES:
        return False
    return array.nbytes <= MOST and array.flags.c_contiguous and array.flags.aligned
