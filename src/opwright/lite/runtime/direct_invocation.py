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
    """A run of a whole subgraph by one call.

    run: returns 0, or the status of the step that stopped. recover: called with that status, resumes or raises the
    error. calls_back: whether the run may call Python. follow: resumes in machine code and returns whether the run is
    complete; if not, call recover.
    """

    run: Callable[[], int]
    recover: Callable[[int], Any]
    calls_back: bool = False
    follow: Callable[[], bool] | None = None


class DirectTensors(NamedTuple):
    """Small input and output tensors by index, whose addresses are fixed until the next allocation.

    writable: functions that copy a value into the tensor if it is an array of exactly its dtype and shape, and return
    1, else 0 without effect. readable: functions that return a copy, or a NumPy scalar. follows: whether `move` reports
    outputs that get other memory during a run; otherwise these are excluded.
    """

    writable: dict[int, Callable[[Any], int]]
    readable: dict[int, Callable[[], Any]]
    follows: bool = False

    @classmethod
    def of(cls, inputs: Iterable[Tensor], outputs: Iterable[Tensor], follows: bool = False) -> DirectTensors:
        """Return direct access to those inputs and outputs that qualify."""
        functions = builtins()
        if functions is None:
            return NO_TENSORS
        inputs, outputs = [*inputs], [*outputs]
        writable = {
            t.index: bound(functions.put, t.array) for t in inputs if t.kind in (ARENA, OWN) and _has_fixed_address(t)
        }
        reach = cls(writable, {}, follows)
        reach._read([t for t in (*inputs, *outputs) if follows or t.kind != DYNAMIC])
        return reach

    def move(self, outputs: Iterable[Tensor]) -> None:
        """Update outputs that moved to other memory."""
        if self.follows:
            self._read(outputs)

    def _read(self, tensors: Iterable[Tensor]) -> None:
        functions = builtins()
        assert functions is not None, "there are machine codes for what is in reach"
        for t in tensors:
            if _has_fixed_address(t):
                self.readable[t.index] = bound(functions.take, t.array)
            else:
                self.readable.pop(t.index, None)


NO_TENSORS = DirectTensors({}, {})
MAX_BYTES = 1 << 15  # copied in a microsecond, during which no other Python thread runs


def _has_fixed_address(t: Tensor) -> bool:
    """Return whether the elements are stored as callers exchange them, contiguously, and are cheap to copy."""
    array = t.array
    if array is None or t.is_object or t.type.name in types.IN_BYTES:
        return False
    return array.nbytes <= MAX_BYTES and array.flags.c_contiguous and array.flags.aligned
