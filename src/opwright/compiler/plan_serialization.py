"""Write plans to the plan cache, for later processes.

Lives here: `save`: relocatable images of plans, and their constants.
Not here: the format of the file, reading it (plan_cache.py), planning (loops/planner.py).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core import flags
from .cache import objects
from .loops.buffers import Buffer
from .loops.plans import ARENA, Address, LoopPlan, PackedConstant, relocatable
from .native.executor import ALIGNMENT, aligned
from .native.host import keep_description
from .native.image import runs_images
from .native.store import digests_by_address, loaded, packed
from .plan_cache import HEAD, digest_of

MOST_CONSTANTS = 1 << 28  # bytes
_RUNNING = ("executor", "builtins")
"""Machine code that executes every plan: in one file with its kernels, loading takes half a millisecond less."""


CONSTANTS = "constants"


class _NotPortable(Exception):
    """These plans cannot be cached."""


def file_tensors(plan: LoopPlan) -> dict[Buffer, int]:
    """Return the numbers of a plan's inputs and outputs that are tensors of a file, named `t0`, `t1`, ..."""
    return {b: int(b.name.removeprefix("t")) for b in plan.outside}


def save(
    key: str,
    plans: Sequence[LoopPlan],
    note: Any,
    tensors: Mapping[int, np.ndarray],
    numbers: Callable[[LoopPlan], dict[Buffer, int]] = file_tensors,
    helpers: Mapping[str, int] | None = None,
) -> None:
    """Write plans, with packed constants, for `plan_cache.find(key)`.

    note: a JSON value; tensors: the elements of constant tensors that later processes read in place, by number;
    numbers: of a plan's inputs and outputs, by which they are connected; helpers: addresses of further kernels to
    store, by name. Does nothing if there are too many constants, or a kernel is not in the cache.
    """
    if not runs_images():
        return
    with contextlib.suppress(_NotPortable):
        writer = _PlanWriter(tensors)
        rows = [writer.plan(plan, numbers(plan)) for plan in plans]
        kept_helpers = {name: writer.kernels[writer.kernel(address)] for name, address in (helpers or {}).items()}
        code = packed(writer.kernels, loaded(*_RUNNING))
        if code is None:
            return
        body = writer.body()
        arrays = np.concatenate([np.zeros(0, np.int64), *writer.arrays])
        text = json.dumps(
            {
                "note": note,
                "plans": rows,
                "kernels": writer.kernels,
                "helpers": kept_helpers,
                "constants": body.size,
                "lengths": [n.size for n in writer.arrays],
            }
        ).encode()
        text += b" " * (-len(text + code) % 8)
        head = HEAD.pack(len(text), len(code), arrays.size) + text + code + arrays.tobytes()
        keep_description()
        objects(flags.cache_dir).keep_mapped(digest_of(key), head, body.data)


class _PlanWriter:
    """Plans under serialization. kernels: digests of called kernels; arrays: integers of plans."""

    def __init__(self, tensors: Mapping[int, np.ndarray]) -> None:
        self._tensors = [(a.__array_interface__["data"][0], a.nbytes, i) for i, a in tensors.items() if a.nbytes]
        self._tensors.sort()
        self._starts = [start for start, _, _ in self._tensors]
        self._blocks: dict[tuple[int, int], tuple[int, np.ndarray]] = {}  # offset, array; by address, bytes
        self._size = 0
        self._digests = digests_by_address()
        self.kernels: list[str] = []
        self.arrays: list[np.ndarray] = []

    def plan(self, plan: LoopPlan, numbers: Mapping[Buffer, int]) -> dict[str, Any]:
        """Return the JSON description of a plan; append its integers to `arrays`."""
        block, places = relocatable(plan, lambda code: self.kernel(code.address), lambda w: self._locate(w, numbers))
        outside = sorted(set(numbers.values()))
        inside = sorted(i for i in places if isinstance(i, int) and i not in outside)
        none = np.zeros(0, np.int64)
        self.arrays += [block, *(places.get(key, none) for key in (ARENA, CONSTANTS, *outside, *inside))]
        steps = [[s.name, *(s.op.origin if s.op else ())] for s in plan.origins]
        return {"arena": plan.arena, "scratch": plan.scratch, "outside": outside, "inside": inside, "steps": steps}

    def kernel(self, address: int) -> int:
        """Return the index of a kernel in `kernels`."""
        digest = self._digests.get(address)
        if digest is None:
            raise _NotPortable
        if digest not in self.kernels:
            self.kernels.append(digest)
        return self.kernels.index(digest)

    def _locate(self, w: Address, numbers: Mapping[Buffer, int]) -> tuple[Any, int]:
        """Return the number of the tensor that an address word refers to, or CONSTANTS, and the offset in it."""
        of = w.of
        if isinstance(of, Buffer) and of in numbers:
            return numbers[of], w.offset
        array = of.array if isinstance(of, PackedConstant) else of.constant
        if array is None or not array.flags.c_contiguous:
            raise _NotPortable
        start = array.__array_interface__["data"][0]
        if not isinstance(of, PackedConstant):
            index = np.searchsorted(self._starts, start, "right") - 1
            if index >= 0:
                base, size, tensor = self._tensors[index]
                if start + array.nbytes <= base + size:
                    return tensor, start - base + w.offset
        block = start, array.nbytes  # two constants that start at one place may have different lengths
        if block not in self._blocks:
            self._blocks[block] = self._size, array
            self._size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
            if self._size > MOST_CONSTANTS:
                raise _NotPortable
        return CONSTANTS, self._blocks[block][0] + w.offset

    def body(self) -> np.ndarray:
        """Return all constants concatenated."""
        body = aligned(self._size)
        for offset, array in self._blocks.values():
            body[offset : offset + array.nbytes] = array.reshape(-1).view(np.uint8)
        return body
