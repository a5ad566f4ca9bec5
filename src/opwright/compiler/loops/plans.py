"""Plans: steps as data, the arena they work in and their constants; and plans bound to memory, which run.

Lives here: `Plan` with its text form, `Step`, `Address`, `Constant`, `Running`.
Not here: how a plan is made (planning.py), the machine code that runs the steps (../native/executor.py).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...core import dtypes
from ...core.errors import InternalError
from ..language.parameters import number_word
from ..native import executor as native
from ..native.executor import ALIGNMENT, StepFailed, aligned
from .forms import Buffer, Form
from .graph import LoopGraph

Fill = Callable[[np.ndarray], Any]


class Code(Protocol):
    """Machine code of a kernel. parameters: the type of each word: DTypes, and something else for pointers."""

    @property
    def name(self) -> str: ...
    @property
    def address(self) -> int: ...
    @property
    def parameters(self) -> Sequence[Any]: ...


class Constant:
    """An array in a plan's block of constants. array: where it is, once packed. key: see Builder.packed."""

    __slots__ = ("array", "dtype", "fill", "key", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Fill, key: Any = None) -> None:
        self.shape, self.dtype, self.key = shape, dtype, key
        self.fill: Fill | None = fill  # None once packed: it holds on to what was packed
        self.array: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        """Bytes it takes."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def name(self) -> str:
        """How a plan's text calls it."""
        return f"packed {dtypes.as_dtype(self.dtype).short}{list(self.shape)}"


class Address(NamedTuple):
    """A pointer word: bytes from the start of a buffer or of a packed constant."""

    of: Buffer | Constant
    offset: int = 0

    def moved(self, nbytes: int) -> Address:
        """So many bytes further on."""
        return Address(self.of, self.offset + nbytes)


class InArena(NamedTuple):
    """A pointer word: bytes from the start of the arena."""

    offset: int


class Step(NamedTuple):
    """A kernel over [0, items). words: ints, floats, Addresses and InArenas. scratch: bytes a thread. chunk: items that
    a thread takes at a time. place: of the form in the plan.

    covers: of a step that heads strands: so many steps follow that are theirs, each thread doing one strand after the
    other, whole. strand: which of them a step is of.
    """

    code: Code
    words: tuple[Any, ...]
    items: int
    scratch: int
    chunk: int | None
    place: int
    form: Form | None
    covers: int = 0
    strand: int = 0


class Strands:
    """The code of a step that heads strands: the executor's own."""

    name, address = "strands", 0
    parameters: Sequence[Any] = ()


class Layout(NamedTuple):
    """What the planner found. arena: its bytes; unshared: bytes without sharing; places: buffers in it, and where."""

    steps: list[Step]
    arena: int
    unshared: int
    constants: list[Constant]
    places: list[tuple[Buffer, int]]


_FLOATS = {dtypes.float32: "<f4x", dtypes.float64: "<d"}


def word(value: Any, parameter: Any) -> int:
    """A number as the 8-byte word of a parameter of this type. Raises InternalError for what is no number."""
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


class Plan:
    """A loop graph made ready: what runs one after the other, and where in memory. It holds no memory but constants.

    graph: what it came from; forms: what was made, in order; steps; arena: bytes of the arena.
    """

    def __init__(self, graph: LoopGraph, forms: tuple[Form, ...], layout: Layout) -> None:
        self.graph, self.forms = graph, forms
        self.steps, self.arena, self.unshared, self.constants, self.places = layout

    def pack(self, every: int = 0, pause: Callable[[], Any] | None = None) -> None:
        """Write the constants into one block of memory; those that are packed already stay where they are.

        pause: called whenever so many bytes are written
        """
        todo = [c for c in self.constants if c.array is None]
        starts, size = [], 0
        for c in todo:
            starts.append(size)
            size += -(-c.nbytes // ALIGNMENT) * ALIGNMENT
        block, written = aligned(size), 0
        for c, start in zip(todo, starts):
            array = block[start : start + c.nbytes].view(c.dtype).reshape(c.shape)
            assert c.fill is not None
            c.fill(array)
            c.array, c.fill = array, None
            written += c.nbytes
            if pause is not None and written >= every:
                written = 0
                pause()

    def __str__(self) -> str:
        packed = sum(c.nbytes for c in self.constants)
        scratch = max((s.scratch for s in self.steps), default=0)
        lines = [f"plan of {self.graph.name}: {len(self.steps)} steps, arena {_bytes(self.arena)} "
                 f"({_bytes(self.unshared)} unshared), constants {_bytes(packed)}, "
                 f"scratch {_bytes(scratch)} a thread"]  # fmt: skip
        last = 0  # of the steps of strands
        for i, s in enumerate(self.steps):
            origin = " + ".join(s.form.origin) if s.form is not None else ""
            words = ", ".join(map(_word, s.words))
            inside = f"  {s.strand}: " if i < last else ""
            last = i + 1 + s.covers if s.covers else last
            lines.append(f"  {i:3d} {inside}{s.code.name}({words}) x {s.items}" + (f"  # {origin}" if origin else ""))
        return "\n".join(lines)


def _word(value: Any) -> str:
    if isinstance(value, InArena):
        return f"arena+{value.offset}"
    if isinstance(value, Address):
        return f"[{value.of.name}]" + (f"+{value.offset}" if value.offset else "")
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _bytes(n: int) -> str:
    return f"{n} B" if n < 10240 else f"{n / 1024:.0f} KiB" if n < 10 << 20 else f"{n / (1 << 20):.1f} MiB"


class Running:
    """A plan bound to an arena of its own and to threads. Memory from outside is connected before it runs.

    ahead: steps that run before the plan's: what connects memory by itself.
    """

    def __init__(self, plan: Plan, threads: int = 1, ahead: Sequence[native.Step] = ()) -> None:
        self.plan, self._ahead = plan, len(ahead)
        self._arena = aligned(plan.arena)
        base = self._arena.__array_interface__["data"][0]
        self._at: dict[int, int] = {}  # by identity of a buffer from outside, its address now
        self._patches: dict[int, list[tuple[int, int, int]]] = {}  # its words: step, place, offset
        steps = []
        for number, s in enumerate(plan.steps):
            words, kinds = [], s.code.parameters
            for place, w in enumerate(s.words):
                if isinstance(w, InArena):
                    words.append(base + w.offset)
                elif isinstance(w, Address):
                    words.append(self._address(w, number, place))
                else:
                    words.append(word(w, kinds[place] if place < len(kinds) else None))
            steps.append(native.Step(s.code.address, words, s.items, s.chunk or 0, s.scratch, s.covers, s.strand))
        self._executor = native.Executor([*ahead, *steps], threads, (self._arena, plan))

    def _address(self, w: Address, number: int, place: int) -> int:
        of = w.of
        array = of.array if isinstance(of, Constant) else of.constant
        if array is not None:
            return int(array.__array_interface__["data"][0]) + w.offset
        if isinstance(of, Constant):
            raise InternalError(what=f"the plan of {self.plan.graph.name} has constants that are not packed")
        self._patches.setdefault(id(of), []).append((number, place, w.offset))
        return 0

    def connect(self, addresses: Mapping[Buffer, int]) -> None:
        """Where inputs and outputs of the graph are."""
        for buffer, address in addresses.items():
            if self._at.get(id(buffer)) != address:
                self._at[id(buffer)] = address
                for number, place, offset in self._patches.get(id(buffer), ()):
                    self._executor.words[self._ahead + number][place] = address + offset

    def places(self, buffer: Buffer) -> list[tuple[int, int]]:
        """Where a buffer from outside is named: the addresses of words, each with the bytes to add to the buffer's."""
        words = self._executor.words
        return [(words[self._ahead + number].ctypes.data + 8 * place, offset)
                for number, place, offset in self._patches.get(id(buffer), ())]  # fmt: skip

    @property
    def executor(self) -> native.Executor:
        """What runs the steps: those ahead, then the plan's."""
        return self._executor

    def run(self) -> None:
        """Run all steps. Raises OpError naming the operator whose step failed."""
        try:
            self._executor.run()
        except native.StepError as error:
            raise self._failed(error) from None

    def profile(self) -> list[tuple[Step, float]]:
        """Run all steps, and say how many seconds each took. Raises as run."""
        try:
            nanoseconds = self._executor.run_profiled()
        except native.StepError as error:
            raise self._failed(error) from None
        return [(s, float(ns) * 1e-9) for s, ns in zip(self.plan.steps, nanoseconds[self._ahead :])]

    def _failed(self, error: native.StepError) -> StepFailed:
        s = self.plan.steps[error.step - self._ahead]
        return StepFailed.of(s.form, s.code.name, error.status)
