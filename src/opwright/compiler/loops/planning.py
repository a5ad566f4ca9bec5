"""Planning: a loop graph becomes steps in one arena, with its constants packed in one block.

Lives here: `Builder` (what selectors are given), `plan_of`, which memory buffers share.
Not here: plans and running them (plans.py), where in the arena what lies (../memory.py), the selectors (../kernels/).

Addresses stay symbolic until all forms are made: a selector asks for the word of a buffer, and whether that is arena,
constant or memory from outside is decided at the end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, uint8
from ...core.errors import InternalError
from ..kernels import NoKernel, select
from ..memory import Allocation, Lifetimes, plan_arena
from ..tuning.choices import Choice, choose
from .forms import (
    WITHOUT_GUARDS,
    Bitcast,
    Buffer,
    Form,
    IndexMap,
    Move,
    Ring,
    Rows,
    SameMemory,
    Store,
    View,
    slice_copy,
)
from .graph import LoopGraph
from .plans import Address, Code, Constant, Fill, InArena, Layout, Plan, Step, Strands
from .storing import Share, copies


class Mark(NamedTuple):
    """How far a builder is."""

    steps: int
    constants: int
    shares: int


class Builder:
    """Collects the steps of a loop graph's forms; a selector is given one and the form."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.constants: list[Constant] = []
        self.shares: list[Share] = []
        self._by_key: dict[Any, Constant] = {}
        self._form: Form | None = None
        self._place = -1
        self._strand, self._in_part = 0, False

    # ---- what selectors call -----------------------------------------------------------------------------------------

    def pointer(self, buffer: Buffer, offset: int = 0) -> Address:
        """The address of a buffer's element `offset`; a slice of another starts within that one (see buffer.pitch).

        raises InternalError for a constant whose elements do not lie in order
        """
        if buffer.constant is not None and not buffer.constant.flags.c_contiguous:
            raise InternalError(
                op="loop graph",
                what=f"the constant {buffer!r} is read where it is, but has gaps",
                found=buffer.constant.strides,
            )
        return Address(buffer, offset * buffer.dtype.size)

    def constant(self, array: np.ndarray, key: Any = None) -> Address:
        """The address of a copy of the array in the plan's block of constants, at a multiple of 64."""
        return self.packed(array.shape, array.dtype, lambda out: np.copyto(out, array), key)

    def packed(self, shape: Sequence[int], dtype: Any, fill: Fill, key: Any = None) -> Address:
        """The address of an array in the block of constants that `fill(out)` will write: later, into zeroed memory.

        key: equal keys mean equal elements, which are there once; it may hold arrays, which stand for their memory.
        """
        full = None if key is None else _key((key, tuple(shape), np.dtype(dtype).str))
        found = self._by_key.get(full) if full is not None else None
        if found is None:
            found = Constant(tuple(shape), np.dtype(dtype), fill, full)
            self.constants.append(found)
            if full is not None:
                self._by_key[full] = found
        return Address(found)

    def temporary(self, nbytes: int) -> Address:
        """Memory that all steps of this form share, and no other form's."""
        return Address(Buffer("temporary", uint8, (nbytes,)))

    def choose(self, choice: Choice, ways: Sequence[int], default: int, *sizes: int) -> int:
        """The way to take, by measure. Parts of a form take the default: what says that a form may be done in parts
        relies on it."""
        assert self._form is not None
        return default if self._in_part else choose(choice, ways, default, (self._form,), *sizes)

    def share(self, operand: Buffer) -> None:
        """Say that this form's output may be written over the operand, where nobody reads that later: each item reads
        an element of it before it writes that place, and reads no place that another item writes."""
        assert self._form is not None
        if not self._in_part:  # else other parts of the whole form may read that place
            self.shares.append(Share(self._place, operand, self._form.output))

    def step(self, code: Code, words: Sequence[Any], items: int, scratch: int = 0, chunk: int | None = None) -> None:
        """Add a step: `code` over [0, items). words: addresses, ints and floats, one for each parameter.

        scratch: bytes for each thread. chunk: items that a thread takes at a time, where the selector knows better.
        """
        if items > 0:
            self.steps.append(
                Step(code, tuple(words), items, scratch, chunk, self._place, self._form, strand=self._strand)
            )

    def strands(self, number: int, make_strand: Callable[[int], None]) -> None:
        """Add so many sequences of steps that are independent of each other: each is one thread's, from its first step
        to its last. make_strand: adds the steps of one, by `part`."""
        head = len(self.steps)
        self.steps.append(Step(Strands(), (), number, 0, 1, self._place, None))
        try:
            for self._strand in range(number):
                make_strand(self._strand)
        finally:
            self._strand = 0
        self.steps[head] = self.steps[head]._replace(covers=len(self.steps) - head - 1)

    def part(self, form: Form) -> None:
        """The steps of a form that does some of what the whole form does, by its own selectors. Raises NoKernel."""
        whole, self._form, self._in_part = self._form, form, True
        try:
            select(form, self)
        finally:
            self._form, self._in_part = whole, False

    # ---- what `make` calls ------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """Where it is, to come back to."""
        return Mark(len(self.steps), len(self.constants), len(self.shares))

    def rewind(self, mark: Mark) -> None:
        """Forget what came after the mark."""
        del self.steps[mark.steps :], self.shares[mark.shares :]
        for constant in self.constants[mark.constants :]:
            self._by_key.pop(constant.key, None)
        del self.constants[mark.constants :]

    def begin(self, place: int, form: Form) -> None:
        """The steps that follow are this form's."""
        self._place, self._form = place, form


def _key(part: Any) -> Any:
    """A key in which arrays are replaced by where their elements are, and buffers by their constants."""
    if isinstance(part, Buffer):
        part = part.constant if part.constant is not None else id(part)
    if isinstance(part, np.ndarray):
        return part.__array_interface__["data"][0], part.shape, part.dtype.str, part.strides
    if isinstance(part, tuple):
        return tuple(map(_key, part))
    return part


def plan_of(graph: LoopGraph, apart: Callable[[Form], Sequence[Form] | None] = lambda form: None) -> Plan:
    """The plan of a loop graph. Its constants are not packed yet: `Plan.pack`.

    apart: of a form that fusion made, those it was made of, which run instead where no kernel does it.
    raises NoKernel with all forms that nobody makes
    """
    memory = _Memory(graph)
    builder = Builder()
    forms: list[Form] = []
    failed: dict[Form, str] = {}
    todo = list(reversed(graph.forms))
    while todo:
        form = todo.pop()
        if isinstance(form, Store):  # all that follow are
            stores = [form, *(s for s in reversed(todo) if isinstance(s, Store))]
            todo = list(reversed(copies(stores, forms, memory.touched(forms, builder), builder.shares, memory)))
            continue
        if isinstance(form, View | Bitcast) and memory.view(form):
            forms.append(form)
            continue
        if 0 in form.output.shape and isinstance(form, WITHOUT_GUARDS):
            forms.append(form)  # which takes no step
            continue
        builder.begin(len(forms), form)
        try:
            form = _of_something(form) if isinstance(form, Move) else form
            if any(0 in b.shape for b in (form.output, *form.inputs)):
                raise NoKernel("an array without elements")
            select(_copying(form) if isinstance(form, View | Bitcast) else form, builder)
        except NoKernel as why:
            parts = apart(form) or _beside(form)
            if parts is None:
                failed[form] = str(why)
            else:
                todo += reversed(parts)
            continue
        forms.append(form)
    if failed:
        unmade = NoKernel("; ".join(dict.fromkeys(failed.values())))
        unmade.forms = failed
        raise unmade
    return Plan(graph, tuple(forms), memory.lay_out(forms, builder))


def _of_something(form: Move) -> Move:
    """Data movement less what has no elements."""
    pairs = [(b, m) for b, m in zip(form.operands, form.maps) if 0 not in b.shape]
    if len(pairs) == len(form.maps):
        return form
    return dataclasses.replace(form, operands=tuple(b for b, _ in pairs), maps=tuple(m for _, m in pairs))


def _copying(form: View | Bitcast) -> Move:
    """A view whose two buffers both have memory: a copy, of bytes where their dtypes differ."""
    dtype = form.output.dtype if form.input.dtype is form.output.dtype else uint8
    source, target = _flat(form.input, dtype), _flat(form.output, dtype)
    return Move(target, (source,), (IndexMap((0,), target.shape, 0, (1,)),), origin=form.origin)


def _flat(buffer: Buffer, dtype: DType) -> Buffer:
    if buffer.parent is not None:
        raise NoKernel("a view of a slice")
    known, size = buffer.constant, buffer.size * buffer.dtype.size // dtype.size
    if known is not None:
        known = np.ascontiguousarray(known).reshape(-1).view(dtype.np)
    return SameMemory(buffer.name, dtype, (size,), known, of=buffer)


def _beside(form: Form) -> list[Form] | None:
    """A form that cannot write a slice in place: the form into a buffer of its own, and a copy."""
    out = form.output
    if out.parent is None or isinstance(form, Move):
        return None
    whole = Buffer(out.name, out.dtype, out.shape)
    return [dataclasses.replace(form, output=whole), slice_copy(whole, out, form.origin)]


class _Memory:
    """Which buffers share memory, how long each piece lives, and where it goes."""

    def __init__(self, graph: LoopGraph) -> None:
        self.graph = graph
        self.outside = {id(b): b for b in (*graph.inputs, *graph.outputs)}
        self.given = {id(b) for b in graph.inputs}
        self._alias: dict[int, tuple[Buffer, int]] = {}  # by identity, whose memory it is in, and the byte there
        self._kept: list[Buffer] = []  # so that identities stay unique

    def root(self, buffer: Buffer) -> tuple[Buffer, int]:
        """The buffer that has memory, and the byte in it where this one starts."""
        offset = 0
        while True:
            if buffer.parent is not None:
                offset += buffer.start * buffer.dtype.size
                buffer = buffer.parent
            elif isinstance(buffer, Rows):
                offset += buffer.first * buffer.pitch * buffer.dtype.size
                buffer = buffer.of
            elif isinstance(buffer, Ring | SameMemory):
                buffer = buffer.of
            elif id(buffer) in self._alias:
                buffer, more = self._alias[id(buffer)]
                offset += more
            else:
                return buffer, offset

    def own(self, buffer: Buffer) -> bool:
        """Whether it may be put where another buffer is."""
        return (
            buffer.parent is None
            and buffer.constant is None
            and id(buffer) not in self.outside
            and id(buffer) not in self._alias
        )

    def view(self, form: View | Bitcast) -> bool:
        """Let a view's two buffers share memory; whether they can."""
        source, target = form.input, form.output
        if source.parent is not None:
            return False
        if self.own(target):
            self.place(target, source)
            return True
        root = self.root(source)[0]
        if (
            root.parent is None
            and self.own(root)
            and root.size * root.dtype.size == target.size * target.dtype.size
            and target.parent is None
            and self.root(target)[0] is not root
        ):
            self.place(root, target)
            return True
        return False

    def place(self, buffer: Buffer, within: Buffer) -> None:
        """Put a buffer where another one is."""
        self._alias[id(buffer)] = within, 0
        self._kept.append(buffer)

    def lay_out(self, forms: Sequence[Form], builder: Builder) -> Layout:
        """Offsets in the arena for all that lives there, and what each address of a step is relative to."""
        lives, buffers = self._lifetimes(forms, builder)
        unshared = sum(b.size * b.dtype.size for b in buffers.values() if self._in_arena(b))
        for share in builder.shares:
            self._share(share, lives, forms[share.place])
        arena = [(buffers[key], span) for key, span in lives.items() if self._in_arena(buffers[key])]
        needs = [Allocation(b.size * b.dtype.size, *span) for b, span in arena]
        offsets, size = plan_arena(needs)
        at = {id(b): offset for (b, _), offset in zip(arena, offsets)}
        steps = [Step(s.code, tuple(self._resolved(w, at) for w in s.words), *s[2:]) for s in builder.steps]
        return Layout(steps, size, unshared, builder.constants, [(b, at[id(b)]) for b, _ in arena])

    def touched(self, forms: Sequence[Form], builder: Builder) -> dict[int, tuple[int, int]]:
        """By identity of a buffer with memory, the places of the first and the last form that touch it."""
        return dict(self._lifetimes(forms, builder)[0].items())

    def _in_arena(self, buffer: Buffer) -> bool:
        return buffer.constant is None and id(buffer) not in self.outside

    def _lifetimes(self, forms: Sequence[Form], builder: Builder) -> tuple[Lifetimes[int], dict[int, Buffer]]:
        """Return the lifetimes of buffers with memory, in places of forms, and the buffers; both by identity."""
        lives: Lifetimes[int] = Lifetimes()
        buffers: dict[int, Buffer] = {}

        def touch(buffer: Buffer, place: int) -> None:
            root = self.root(buffer)[0]
            buffers[id(root)] = root
            lives.touch(id(root), place)

        for place, form in enumerate(forms):
            for b in (*form.inputs, form.output):
                touch(b, place)
        for step in builder.steps:
            for w in step.words:
                if isinstance(w, Address) and isinstance(w.of, Buffer):
                    touch(w.of, step.place)
        return lives, buffers

    def _share(self, share: Share, lives: Lifetimes[int], form: Form) -> None:
        operand, output = self.root(share.operand)[0], self.root(share.output)[0]
        if any(b is not share.operand and self.root(b)[0] is operand for b in form.inputs):
            return  # it reads the same memory in another way, too
        if not self.own(output) or not self._in_arena(operand):
            return
        if share.output.parent is not None or share.operand.parent is not None:
            return
        if operand.size * operand.dtype.size < output.size * output.dtype.size:
            return
        if lives.may_share(id(operand), id(output), share.place):
            self.place(output, operand)
            lives.share(id(operand), id(output))

    def _resolved(self, word: Any, at: dict[int, int]) -> Any:
        """An address relative to the arena (an int offset), a buffer from outside, or a constant."""
        if not isinstance(word, Address) or isinstance(word.of, Constant):
            return word
        root, offset = self.root(word.of)
        if root.constant is not None:
            return Address(root, offset + word.offset)
        if id(root) in self.outside:
            return Address(root, offset + word.offset)
        return InArena(at[id(root)] + offset + word.offset)
