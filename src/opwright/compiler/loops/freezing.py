"""Keeping plans, for later processes to find frozen.

Lives here: `keep`: a plan's words by what they are addresses of, the constants that a file needs.
Not here: the form of the file, reading it (frozen.py), making plans (planning.py).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core import flags
from ..cache import objects
from ..native import executor as native
from ..native.executor import ALIGNMENT, aligned
from ..native.host import keep_description
from ..native.image import runs_images
from ..native.store import digests_by_address, loaded, packed
from .forms import Buffer
from .frozen import HEAD, digest_of
from .plans import Address, Constant, InArena, Plan, word

MOST_CONSTANTS = 1 << 28  # bytes
_RUNNING = ("executor", "builtins")
"""Machine code that every plan is run by: in one file with its kernels it takes half a millisecond less to load."""


class _Unfrozen(Exception):
    """These plans cannot be kept."""


def keep(key: str, plans: Sequence[Plan], note: Any, tensors: Mapping[int, np.ndarray], meta: bytes = b"") -> None:
    """Keep plans, whose constants are packed, for `find(key)`.

    note: anything that JSON can write; meta: anything; tensors: the elements of the file's constant tensors, by index:
    what plans read of them where they are. A graph's inputs and outputs are tensors by their names `t0`, `t1`, ...
    Does nothing where there are too many constants, or a kernel that is not in the cache.
    """
    if not runs_images():
        return
    with contextlib.suppress(_Unfrozen):
        writer = _Writer(tensors)
        told = [writer.plan(plan) for plan in plans]
        code = packed(writer.kernels, loaded(*_RUNNING))
        if code is None:
            return
        body = writer.body()
        numbers = np.concatenate([np.zeros(0, np.int64), *writer.numbers])
        text = json.dumps({"note": note, "plans": told, "kernels": writer.kernels,
                           "constants": body.size, "lengths": [n.size for n in writer.numbers]}).encode()  # fmt: skip
        text += b" " * (-len(meta + text + code) % 8)
        head = HEAD.pack(len(meta), len(text), len(code), numbers.size) + meta + text + code + numbers.tobytes()
        keep_description()
        objects(flags.cache_dir).keep_mapped(digest_of(key), head, body.data)


class _Writer:
    """Plans on their way into a file."""

    def __init__(self, tensors: Mapping[int, np.ndarray]) -> None:
        self._tensors = [(a.__array_interface__["data"][0], a.nbytes, i) for i, a in tensors.items() if a.nbytes]
        self._tensors.sort()
        self._starts = [start for start, _, _ in self._tensors]
        self._blocks: dict[tuple[int, int], tuple[int, np.ndarray]] = {}  # by place and bytes: where in the body, what
        self._size = 0
        self._digests = digests_by_address()
        self.kernels: list[str] = []
        self.numbers: list[np.ndarray] = []

    def plan(self, plan: Plan) -> dict[str, Any]:
        """What the text says of a plan; its integers are among `numbers` then."""
        outside = {id(b): int(b.name.removeprefix("t")) for b in (*plan.graph.inputs, *plan.graph.outputs)}
        steps = len(plan.steps)
        rows = np.zeros((steps, native.ROW), np.int64)
        words: list[int] = []
        kernels = []
        at: dict[Any, list[int]] = {"arena": [], "constants": []}
        first = native.ROW * steps
        for row, s in zip(rows, plan.steps):
            row[1:6] = first + len(words), s.items, s.chunk or 0, s.covers, s.strand
            kernels.append(0 if s.covers else self._kernel(s.code.address))
            kinds = s.code.parameters
            for place, w in enumerate(s.words):
                if isinstance(w, InArena):
                    kind, value = "arena", w.offset
                elif isinstance(w, Address):
                    kind, value = self._address(w, outside)
                else:
                    kind, value = None, word(w, kinds[place] if place < len(kinds) else None)
                if kind is not None:
                    at.setdefault(kind, []).append(first + len(words))
                words.append(value)
        given = sorted(set(outside.values()))
        inside = sorted(i for i in at if isinstance(i, int) and i not in given)
        block = np.concatenate([rows.reshape(-1), np.array(words, np.int64)])
        for numbers in (block, kernels, *(at.get(k, []) for k in ("arena", "constants", *given, *inside))):
            self.numbers.append(np.array(numbers, np.int64))
        return {"arena": plan.arena, "scratch": max((s.scratch for s in plan.steps), default=0), "outside": given,
                "inside": inside,
                "steps": [[s.code.name, *(s.form.origin if s.form else ())] for s in plan.steps]}  # fmt: skip

    def _kernel(self, address: int) -> int:
        digest = self._digests.get(address)
        if digest is None:
            raise _Unfrozen
        if digest not in self.kernels:
            self.kernels.append(digest)
        return self.kernels.index(digest)

    def _address(self, w: Address, outside: Mapping[int, int]) -> tuple[Any, int]:
        """Of what a word is the address, a tensor's index for one, and the offset in it."""
        of = w.of
        if isinstance(of, Buffer) and id(of) in outside:
            return outside[id(of)], w.offset
        array = of.array if isinstance(of, Constant) else of.constant
        if array is None or not array.flags.c_contiguous:
            raise _Unfrozen
        start = array.__array_interface__["data"][0]
        if not isinstance(of, Constant):
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
                raise _Unfrozen
        return "constants", self._blocks[block][0] + w.offset

    def body(self) -> np.ndarray:
        """All constants, one after the other."""
        body = aligned(self._size)
        for at, array in self._blocks.values():
            body[at : at + array.nbytes] = array.reshape(-1).view(np.uint8)
        return body
