"""Memory of a plan: which buffers share memory, their lifetimes and offsets, and the stores of variables.

Lives here: `PlanMemory`; `copies`, which computes values of variables in place or copies them at the end.
Not here: packing of the arena (../memory.py), which nodes read and assign variables (../lowering/variables.py).

A variable has one block of memory: the graph reads the value of before the run and writes the next one. A value is
computed in place if no later operation reads the old one and no later guard can stop the plan: the caller of a stopped
plan repeats the run by other means and must find all variables unchanged. All other values are copied at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..inlined_kernels import functions_of
from ..memory import Allocation, Lifetimes, plan_arena
from .buffers import Buffer, Ring, RowBand, SameMemory
from .graph import LoopGraph
from .image_ops import Resize
from .numeric_ops import Advanced, Classes, NormalPairs, RandomWords
from .ops import (
    ArgReduce,
    Attention,
    Banded,
    Bitcast,
    Contract,
    Depthwise,
    LoopOp,
    Map,
    MatMul,
    Move,
    Pool,
    Reduce,
    RowPass,
    Scan,
    Store,
    TransposedContract,
    View,
    slice_copy,
)
from .plan_builder import Builder, Share
from .plans import Address, ArenaOffset, PackedConstant, PlanLayout, PlanStep

CERTAIN = (
    Advanced,
    ArgReduce,
    Attention,
    Banded,
    Bitcast,
    Classes,
    Contract,
    Depthwise,
    Map,
    MatMul,
    Move,
    NormalPairs,
    Pool,
    RandomWords,
    Reduce,
    Resize,
    RowPass,
    Scan,
    TransposedContract,
    View,
)
"""Forms whose kernels have no guards; an expression that calls a user's kernel may have some."""


def copies(
    stores: Sequence[Store],
    ops: Sequence[LoopOp],
    spans: dict[int, tuple[int, int]],
    shares: Sequence[Share],
    memory: PlanMemory,
) -> list[LoopOp]:
    """The moves for those values that are not computed where they are kept.

    forms: all before; spans: by identity of a buffer with memory, the first and the last of them that touch it; shares:
    which of them may write over an operand.
    """
    certain = _certain_from(ops)
    kept = {id(memory.root(store.output)[0]) for store in stores}
    aside: list[LoopOp] = []
    moves: list[LoopOp] = []
    held = dict(spans)
    for place, store in enumerate(stores):
        root, offset = memory.root(store.input)
        target = memory.root(store.output)[0]
        if id(root) not in kept or (root is target and not offset):
            continue
        # The old value of a variable that is written, too: it is put aside before that happens.
        held[id(root)] = min(held[id(root)][0], len(ops)) if id(root) in held else len(ops), len(ops)
        between = Buffer(f"{store.input.name}.{place}", store.input.dtype, store.input.shape)
        aside.append(slice_copy(store.input, between, store.origin))
        stores = [*stores[:place], Store(store.output, between, origin=store.origin), *stores[place + 1 :]]
    for store in stores:
        root, offset = memory.root(store.input)
        target = memory.root(store.output)[0]
        if root is target and not offset:
            continue
        first, read = held.get(id(root), (-1, -1))[0], held.get(id(target), (-1, -1))[1]
        fits = memory.own(root) and not offset and _bytes(root) == _bytes(target) and store.input.parent is None
        over = read == first >= 0 and fits and _may_overwrite(target, root, ops[first], first, shares, memory)
        if fits and first >= certain and (read < first or over):
            memory.place(root, target)
        else:
            moves.append(slice_copy(store.input, _under(store.output, store.input.shape), store.origin))
    return [*aside, *moves]


def _may_overwrite(
    old: Buffer, new: Buffer, op: LoopOp, place: int, shares: Sequence[Share], memory: PlanMemory
) -> bool:
    """Whether a form, the only one that reads the old value and writes the new one, may do so in one place."""
    for share in shares:
        if share.place == place and memory.root(share.operand) == (old, 0) and memory.root(share.output) == (new, 0):
            dense = share.operand.parent is None and share.output.parent is None
            return dense and all(b is share.operand or memory.root(b)[0] is not old for b in op.inputs)
    return False


def _certain_from(ops: Sequence[LoopOp]) -> int:
    """The place from which on no form can stop the plan."""
    for place in range(len(ops) - 1, -1, -1):
        op = ops[place]
        expr = getattr(op, "expr", None)
        if not isinstance(op, CERTAIN) or (expr is not None and functions_of(expr)):
            return place + 1
    return 0


def _bytes(buffer: Buffer) -> int:
    return buffer.size * buffer.dtype.size


def _under(buffer: Buffer, shape: tuple[int, ...]) -> Buffer:
    return buffer if buffer.shape == shape else SameMemory(buffer.name, buffer.dtype, shape, of=buffer)


class PlanMemory:
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
            elif isinstance(buffer, RowBand):
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

    def view(self, op: View | Bitcast) -> bool:
        """Let a view's two buffers share memory; whether they can."""
        source, target = op.input, op.output
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

    def lay_out(self, ops: Sequence[LoopOp], builder: Builder) -> PlanLayout:
        """Offsets in the arena for all that lives there, and what each address of a step is relative to."""
        lives, buffers = self._lifetimes(ops, builder)
        unshared = sum(b.size * b.dtype.size for b in buffers.values() if self._in_arena(b))
        for share in builder.shares:
            self._share(share, lives, ops[share.place])
        arena = [(buffers[key], span) for key, span in lives.items() if self._in_arena(buffers[key])]
        needs = [Allocation(b.size * b.dtype.size, *span) for b, span in arena]
        offsets, size = plan_arena(needs)
        at = {id(b): offset for (b, _), offset in zip(arena, offsets)}
        steps = [PlanStep(s.code, tuple(self._resolved(w, at) for w in s.words), *s[2:]) for s in builder.steps]
        return PlanLayout(steps, size, unshared, builder.constants, [(b, at[id(b)]) for b, _ in arena])

    def touched(self, ops: Sequence[LoopOp], builder: Builder) -> dict[int, tuple[int, int]]:
        """By identity of a buffer with memory, the places of the first and the last form that touch it."""
        return dict(self._lifetimes(ops, builder)[0].items())

    def _in_arena(self, buffer: Buffer) -> bool:
        return buffer.constant is None and id(buffer) not in self.outside

    def _lifetimes(self, ops: Sequence[LoopOp], builder: Builder) -> tuple[Lifetimes[int], dict[int, Buffer]]:
        """Return the lifetimes of buffers with memory, in places of forms, and the buffers; both by identity."""
        lives: Lifetimes[int] = Lifetimes()
        buffers: dict[int, Buffer] = {}

        def touch(buffer: Buffer, place: int) -> None:
            root = self.root(buffer)[0]
            buffers[id(root)] = root
            lives.touch(id(root), place)

        for place, op in enumerate(ops):
            for b in (*op.inputs, op.output):
                touch(b, place)
        for step in builder.steps:
            for w in step.words:
                if isinstance(w, Address) and isinstance(w.of, Buffer):
                    touch(w.of, step.place)
        return lives, buffers

    def _share(self, share: Share, lives: Lifetimes[int], op: LoopOp) -> None:
        operand, output = self.root(share.operand)[0], self.root(share.output)[0]
        if any(b is not share.operand and self.root(b)[0] is operand for b in op.inputs):
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
        if not isinstance(word, Address) or isinstance(word.of, PackedConstant):
            return word
        root, offset = self.root(word.of)
        if root.constant is not None:
            return Address(root, offset + word.offset)
        if id(root) in self.outside:
            return Address(root, offset + word.offset)
        return ArenaOffset(at[id(root)] + offset + word.offset)
