"""Direct invocation of a subgraph and direct access to its tensors, for callers that cannot afford the checked path.

Lives here: `DirectInvocation`, a run by one native call; `DirectTensors`, reads and writes that bypass the subgraph.
Not here: who may use them, and until when (ownership.py), the native call (compiled/plan_registration.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...compiler.native.builtins import bound, builtins
from ...core.named_tuples import NamedTuple
from ..ops import types
from .tensor import ARENA, DYNAMIC, OWN, Tensor


class DirectInvocation(NamedTuple):
    """A run of everything by one call. run: gives 0, or the status of what stopped it; recover: called with that
    status, goes on from there or raises the error; calls_back: whether code that it runs may ask what runs; follow:
    goes on by machine code alone after it has stopped, and says whether that was all; else recover is to be called."""

    run: Callable[[], int]
    recover: Callable[[int], Any]
    calls_back: bool = False
    follow: Callable[[], bool] | None = None


class DirectTensors(NamedTuple):
    """Small input and output tensors by index, whose addresses are fixed until the next allocation.

    writable: copies a value into the tensor where it is an array of just its dtype and shape, and gives 1, else 0, with
    nothing changed; readable: gives a copy, or a NumPy scalar. follows: whether `move` tells of outputs that get other
    memory as the model runs; else those are not among them.
    """

    writable: dict[int, Callable[[Any], int]]
    readable: dict[int, Callable[[], Any]]
    follows: bool = False

    @classmethod
    def of(cls, inputs: Iterable[Tensor], outputs: Iterable[Tensor], follows: bool = False) -> DirectTensors:
        """For the inputs and outputs that are such tensors."""
        found = builtins()
        if found is None:
            return NO_TENSORS
        inputs, outputs = [*inputs], [*outputs]
        writable = {
            t.index: bound(found.put, t.array) for t in inputs if t.kind in (ARENA, OWN) and _has_fixed_address(t)
        }
        reach = cls(writable, {}, follows)
        reach._read([t for t in (*inputs, *outputs) if follows or t.kind != DYNAMIC])
        return reach

    def move(self, outputs: Iterable[Tensor]) -> None:
        """These outputs have other memory now."""
        if self.follows:
            self._read(outputs)

    def _read(self, tensors: Iterable[Tensor]) -> None:
        found = builtins()
        assert found is not None, "there are machine codes for what is in reach"
        for t in tensors:
            if _has_fixed_address(t):
                self.readable[t.index] = bound(found.take, t.array)
            else:
                self.readable.pop(t.index, None)


NO_TENSORS = DirectTensors({}, {})
MAX_BYTES = 1 << 15  # bytes: a microsecond, during which no other thread of Python runs


def _has_fixed_address(t: Tensor) -> bool:
    """Whether the elements lie as they are given and taken, and are soon copied."""
    array = t.array
    if array is None or t.is_object or t.type.name in types.IN_BYTES:
        return False
    return array.nbytes <= MAX_BYTES and array.flags.c_contiguous and array.flags.aligned
