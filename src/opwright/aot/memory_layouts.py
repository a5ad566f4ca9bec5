"""Memory of a library: the arena, the constants and the fields of the state.

Lives here: `MemoryLayout`, `layout_of`, `weights_of`, `constant_word`, the constant words of calls.
Not here: code (modules.py), planning (model_plans.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..compiler.byte_order import in_other_order
from ..compiler.loops.buffers import Buffer
from ..compiler.loops.plans import Address, ArenaOffset, LoopPlan, PackedConstant, Views, word
from ..compiler.native.executor import ALIGNMENT
from .model_plans import ModelPlan


class MemoryLayout(NamedTuple):
    """Memory of a library. arena: bytes of the caller's memory, scratch of kernels included; weights: bytes of
    constants; places: their offsets, by the identity of their array; arrays: the stored ones, in order, in the byte
    order of the target; state: offsets of the fields of the state, and its size; apart: whether the constants are a
    file of their own; stride: bytes of the scratch memory of each thread of the caller, which is at the end of the
    arena, 0 for a library that runs on one."""

    arena: int
    weights: int
    places: dict[int, int]
    arrays: list[np.ndarray]
    state: list[int]
    apart: bool = False
    stride: int = 0

    @property
    def base(self) -> int:
        """Bytes of the arena that all threads share."""
        return self.arena - self.stride

    def scratch(self, plan: LoopPlan) -> int:
        """Return the offset of the scratch memory of a plan in the caller's memory."""
        return self.base if self.stride else _aligned(plan.arena)


SEPARATION = 128
"""Bytes that are fetched together: threads write to none of the same."""


def _aligned(n: int) -> int:
    return -(-n // ALIGNMENT) * ALIGNMENT


def layout_of(model: ModelPlan, apart: bool = False, threads: bool = False) -> MemoryLayout:
    """Lay out a model: equal constants once, aligned; the scratch memory of one thread after the arena of a plan; the
    state as C lays out a structure of arrays. apart: see `MemoryLayout`; threads: whether the caller may
    provide threads."""
    state, end = [], 0
    for tensor in model.state:
        size = tensor.initial.itemsize
        start = -(-end // size) * size
        state.append(start)
        end = start + max(tensor.nbytes, size)  # C has no arrays without elements
    places: dict[int, int] = {}
    arrays: list[np.ndarray] = []
    by_content: dict[bytes, int] = {}
    size = 0
    for array, numbers in _constants(model):
        if id(array) in places:
            continue
        stored = in_other_order(array, numbers) if model.target.is_big_endian else array
        content = hashlib.sha256(np.ascontiguousarray(stored).data).digest()
        if content not in by_content:
            by_content[content] = places[id(stored)] = size
            arrays.append(stored)
            size += _aligned(stored.nbytes)
        places[id(array)] = by_content[content]
    memory = MemoryLayout(0, size, places, arrays, [*state, end], apart)
    if threads:
        stride = max(-(-p.plan.scratch // SEPARATION) * SEPARATION or SEPARATION for p in model.plans)
        return memory._replace(arena=max(_aligned(p.plan.arena) for p in model.plans) + stride, stride=stride)
    return memory._replace(arena=max(_aligned(p.plan.arena) + _aligned(p.plan.scratch) for p in model.plans))


def _constants(model: ModelPlan) -> Iterable[tuple[np.ndarray, Views | None]]:
    """Return the arrays that plans and the function that initializes the state read, with the views of their numbers
    where they do not consist of these."""
    for step in (step for p in model.plans for step in p.plan.steps):
        for w in step.words:
            array = constant_of(w.of) if isinstance(w, Address) else None
            if array is not None:
                assert isinstance(w, Address)
                yield array, w.of.numbers if isinstance(w.of, PackedConstant) else None
    for field in model.state:
        if fill_of(field.initial) is None:
            yield field.initial, None


def fill_of(array: np.ndarray) -> int | None:
    """Return the byte that an array consists of, None for several."""
    values = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return None if values.size and (values != values[0]).any() else int(values[0]) if values.size else 0


def constant_of(of: Buffer | PackedConstant) -> np.ndarray | None:
    """Return the elements of a constant, None for other memory."""
    return of.array if isinstance(of, PackedConstant) else of.constant


def weights_of(layout: MemoryLayout) -> bytes:
    """Return the constants as one block."""
    block = bytearray(layout.weights)
    for array in layout.arrays:
        start = layout.places[id(array)]
        block[start : start + array.nbytes] = np.ascontiguousarray(array).tobytes()
    return bytes(block)


def constant_word(value: object, kind: object, layout: MemoryLayout, name: str) -> str | None:
    """Return a word of a call as a constant of LLVM, None for an address in the caller's memory. name: of the
    library."""
    if isinstance(value, ArenaOffset):
        return None
    if isinstance(value, Address):
        array = constant_of(value.of)
        if array is None or layout.apart:
            return None
        offset = layout.places[id(array)] + value.offset
        return f"ptrtoint (ptr getelementptr (i8, ptr @{name}_weights, i64 {offset}) to i64)"
    return str(word(value, kind))
