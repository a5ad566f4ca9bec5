"""Plans: steps as data, the arena that they work in and their constants.

Lives here: `LoopPlan` and its text form, `KernelStep`, `Address`, `PackedConstant`; `relocatable`, a plan as integers.
Not here: planning (planner.py), plans bound to memory (../native/executor.py), the machine code that executes steps
(../native/executor.py).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...core import dtypes
from ...core.errors import InternalError
from ..language.parameters import number_word
from ..native import executor as native
from ..native.executor import ALIGNMENT, BoundPlan, PlanImage, StepOrigin, aligned
from .buffers import Buffer
from .graph import LoopGraph
from .ops import LoopOp

Fill = Callable[[np.ndarray], Any]
Views = Callable[[np.ndarray], Sequence[np.ndarray]]


class KernelCode(Protocol):
    """Machine code of a kernel. parameters: types of the words, DTypes or others for pointers; guarded: whether it may
    stop the plan."""

    @property
    def name(self) -> str: ...
    @property
    def address(self) -> int: ...
    @property
    def parameters(self) -> Sequence[Any]: ...
    @property
    def guarded(self) -> bool: ...


class PackedConstant:
    """An array in a plan's block of constants. array: its memory once packed. numbers, key: see Builder.packed."""

    __slots__ = ("array", "dtype", "fill", "key", "numbers", "shape")

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Fill, key: Any = None, numbers: Views | None = None
    ) -> None:
        self.shape, self.dtype, self.key, self.numbers = shape, dtype, key, numbers
        self.fill: Fill | None = fill  # None once packed, to release the source
        self.array: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def name(self) -> str:
        """Name in a plan's text."""
        return f"packed {dtypes.as_dtype(self.dtype).short}{list(self.shape)}"


class Address(NamedTuple):
    """A pointer word: bytes from the start of a buffer or of a packed constant."""

    of: Buffer | PackedConstant
    offset: int = 0

    def moved(self, nbytes: int) -> Address:
        """Return the address advanced by a number of bytes."""
        return Address(self.of, self.offset + nbytes)


class ArenaOffset(NamedTuple):
    """A pointer word: bytes from the start of the arena."""

    offset: int


Word = int | float | Address | ArenaOffset
"""An argument of a kernel."""


class KernelStep(NamedTuple):
    """A kernel over [0, items). words: ints, floats, Addresses and ArenaOffsets. scratch: bytes per thread. chunk:
    items that a thread takes at a time. position: of the operation in the plan.

    covers: number of following steps that belong to the strands that this step heads, each executed by one thread.
    strand: index of the step's strand. A jump covers JUMP steps, and its strand is the distance to its target.
    committed: whether variables are written by then, so that no signal may stop the plan any more.
    """

    code: KernelCode
    words: tuple[Word, ...]
    items: int
    scratch: int
    chunk: int | None
    position: int
    op: LoopOp | None
    covers: int = 0
    strand: int = 0
    committed: bool = False


class Strands:
    """The code of a step that heads strands, which the executor implements."""

    name, address, guarded = "strands", 0, False
    parameters: Sequence[Any] = ()


JUMP = -1


class JumpCode:
    """The code of a jump, which the executor implements. Its words: the address of the selector or 0, its size in
    bytes, the value that does not jump, and a count of unconditional jumps. A signal may stop a plan there."""

    name, address, guarded = "jump", 0, True
    parameters: Sequence[Any] = ()


class PlanLayout(NamedTuple):
    """Memory of a plan. arena: its size; unshared: its size without sharing; places: buffers in the arena, with
    offsets."""

    steps: list[KernelStep]
    arena: int
    unshared: int
    constants: list[PackedConstant]
    places: list[tuple[Buffer, int]]


_FLOATS = {dtypes.float32: "<f4x", dtypes.float64: "<d"}


def word(value: Any, parameter: Any) -> int:
    """Return a number as the 8-byte word of a parameter. Raises InternalError for a value that is not a number of its
    type."""
    if parameter is dtypes.float32:
        try:
            return int(struct.unpack("<q", struct.pack("<f4x", value))[0])
        except OverflowError:  # beyond float32's range: an infinity
            return number_word(value, parameter)
    if parameter is dtypes.float64:
        return int(struct.unpack("<q", struct.pack("<d", value))[0])
    if parameter is dtypes.float16 or parameter is dtypes.bfloat16:
        return int(np.asarray(value, parameter.np).view(np.uint16))
    if isinstance(value, float) and not value.is_integer():
        raise InternalError(what=f"a kernel's integer parameter is given {value!r}")
    return int(value)


class LoopPlan:
    """A loop graph ready to be executed: steps and their memory. It owns no memory but constants.

    graph: its source; ops: the planned operations, in order; arena: its size in bytes.
    """

    def __init__(self, graph: LoopGraph, ops: tuple[LoopOp, ...], layout: PlanLayout) -> None:
        self.graph, self.ops = graph, ops
        self.steps, self.arena, self.unshared, self.constants, self.places = layout
        self._image: PlanImage | None = None

    @property
    def outside(self) -> tuple[Buffer, ...]:
        """Keys of the external buffers: inputs, then outputs."""
        return (*self.graph.inputs, *self.graph.outputs)

    def bind(self, threads: int = 1, address: Any = None, ahead: Sequence[native.Step] = ()) -> BoundPlan:
        """Implement PlanImage.bind, with buffers as keys. Packs constants that are not packed yet."""
        if self._image is None:
            self.pack()
            block, places = relocatable(self, lambda code: code.address, self._locate)
            in_arena = places.pop(ARENA)
            self._image = PlanImage(block, self.origins, self.arena, self.scratch, in_arena, places)
        return BoundPlan(self._image, threads, address, ahead, self)

    @property
    def origins(self) -> list[StepOrigin]:
        """Origin of each step."""
        return [StepOrigin(s.op, s.code.name) for s in self.steps]

    @property
    def scratch(self) -> int:
        """Scratch bytes per thread."""
        return max((s.scratch for s in self.steps), default=0)

    def _locate(self, address: Address) -> tuple[Buffer | None, int]:
        of = address.of
        array = of.array if isinstance(of, PackedConstant) else of.constant
        if array is not None:
            return None, int(array.__array_interface__["data"][0]) + address.offset
        assert isinstance(of, Buffer)
        return of, address.offset

    def pack(self, every: int = 0, pause: Callable[[], Any] | None = None) -> None:
        """Write the constants into one block of memory; packed ones remain in place.

        pause: called after each `every` bytes
        """
        todo = [c for c in self.constants if c.array is None]
        starts, size = [], 0
        for c in todo:
            starts.append(size)
            size += -(-c.nbytes // ALIGNMENT) * ALIGNMENT
        block, pending = aligned(size), 0
        for c, start in zip(todo, starts):
            array = block[start : start + c.nbytes].view(c.dtype).reshape(c.shape)
            assert c.fill is not None
            c.fill(array)
            c.array, c.fill = array, None
            pending += c.nbytes
            if pause is not None and pending >= every:
                pending = 0
                pause()

    def __str__(self) -> str:
        packed = sum(c.nbytes for c in self.constants)
        lines = [
            f"plan of {self.graph.name}: {len(self.steps)} steps, arena {_bytes(self.arena)} "
            f"({_bytes(self.unshared)} unshared), constants {_bytes(packed)}, "
            f"scratch {_bytes(self.scratch)} a thread"
        ]
        last = 0  # end of the steps of strands
        for i, s in enumerate(self.steps):
            origin = " + ".join(s.op.origin) if s.op is not None else ""
            words = ", ".join(map(_word, s.words))
            inside = f"  {s.strand}: " if i < last else f"  to {i + s.strand}: " if s.covers == JUMP else ""
            last = i + 1 + s.covers if s.covers > 0 else last
            lines.append(f"  {i:3d} {inside}{s.code.name}({words}) x {s.items}" + (f"  # {origin}" if origin else ""))
        return "\n".join(lines)


ARENA = "arena"


def relocatable(
    plan: LoopPlan, code: Callable[[KernelCode], int], locate: Callable[[Address], tuple[Hashable, int]]
) -> tuple[np.ndarray, dict[Any, np.ndarray]]:
    """Return the steps and words of a plan in the executor's format, and the indices of address words by their base.

    code: the integer that represents a kernel; locate: the key of an address's base, None if it is absolute, and the
    offset. The base of words in the arena is ARENA.
    """
    rows = np.zeros((len(plan.steps), native.ROW), np.int64)
    words: list[int] = []
    places: dict[Any, list[int]] = {ARENA: []}
    first = rows.size
    for row, s in zip(rows, plan.steps):
        row[:6] = 0 if s.covers else code(s.code), first + len(words), s.items, s.chunk or 0, s.covers, s.strand
        row[6] = s.committed
        parameters = s.code.parameters
        for index, w in enumerate(s.words):
            key: Hashable = None
            if isinstance(w, ArenaOffset):
                key, value = ARENA, w.offset
            elif isinstance(w, Address):
                key, value = locate(w)
            else:
                value = word(w, parameters[index] if index < len(parameters) else None)
            if key is not None:
                places.setdefault(key, []).append(first + len(words))
            words.append(value)
    block = np.concatenate([rows.reshape(-1), np.array(words, np.int64)])
    return block, {key: np.array(indices, np.int64) for key, indices in places.items()}


def _word(value: Any) -> str:
    if isinstance(value, ArenaOffset):
        return f"arena+{value.offset}"
    if isinstance(value, Address):
        return f"[{value.of.name}]" + (f"+{value.offset}" if value.offset else "")
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _bytes(n: int) -> str:
    return f"{n} B" if n < 10240 else f"{n / 1024:.0f} KiB" if n < 10 << 20 else f"{n / (1 << 20):.1f} MiB"
