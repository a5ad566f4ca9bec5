"""Memory of a plan: which buffers share memory, their lifetimes and offsets, and the stores of variables.

Lives here: `PlanMemory`; `copies`, which computes values of variables in place or copies them at the end.
Not here: packing of the arena (../memory.py), which nodes read and assign variables (../lowering/variables.py).

A variable has one block of memory: the graph reads the value of before the run and writes the next one. A value is
computed in place if no later operation reads the old one and no later guard can stop the plan: the caller of a stopped
plan repeats the run by other means and must find all variables unchanged. All other values are copied at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from .plans import Address, ArenaOffset, KernelStep, PackedConstant, PlanLayout, Word

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
"""Operations whose kernels have no guards; an expression that calls a user's kernel may have some."""


def copies(
    stores: Sequence[Store],
    ops: Sequence[LoopOp],
    spans: dict[int, tuple[int, int]],
    shares: Sequence[Share],
    memory: PlanMemory,
) -> list[LoopOp]:
    """Return the moves for the values that are not computed in place.

    ops: all before; spans: by identity of a buffer with memory, the first and the last of them that access it; shares:
    permissions to overwrite operands.
    """
    unguarded = _unguarded_from(ops)
    stored_roots = {id(memory.root(store.output)[0]) for store in stores}
    saved: list[LoopOp] = []
    moves: list[LoopOp] = []
    accesses = dict(spans)
    for index, store in enumerate(stores):
        root, offset = memory.root(store.input)
        target = memory.root(store.output)[0]
        if id(root) not in stored_roots or (root is target and not offset):
            continue
        # The old value of a variable that is also written: it is saved before.
        accesses[id(root)] = min(accesses[id(root)][0], len(ops)) if id(root) in accesses else len(ops), len(ops)
        between = Buffer(f"{store.input.name}.{index}", store.input.dtype, store.input.shape)
        saved.append(slice_copy(store.input, between, store.origin))
        stores = [*stores[:index], Store(store.output, between, origin=store.origin), *stores[index + 1 :]]
    for store in stores:
        root, offset = memory.root(store.input)
        target = memory.root(store.output)[0]
        if root is target and not offset:
            continue
        first, last = accesses.get(id(root), (-1, -1))[0], accesses.get(id(target), (-1, -1))[1]
        fits = memory.own(root) and not offset and _bytes(root) == _bytes(target) and store.input.parent is None
        may_overwrite = last == first >= 0 and fits and _may_overwrite(target, root, ops[first], first, shares, memory)
        if fits and first >= unguarded and (last < first or may_overwrite):
            memory.place(root, target)
        else:
            moves.append(slice_copy(store.input, _under(store.output, store.input.shape), store.origin))
    return [*saved, *moves]


def _may_overwrite(
    old: Buffer, new: Buffer, op: LoopOp, position: int, shares: Sequence[Share], memory: PlanMemory
) -> bool:
    """Whether an operation, the only one that reads the old value and writes the new one, may do so in place."""
    for share in shares:
        if (
            share.position == position
            and memory.root(share.operand) == (old, 0)
            and memory.root(share.output) == (new, 0)
        ):
            dense = share.operand.parent is None and share.output.parent is None
            return dense and all(b is share.operand or memory.root(b)[0] is not old for b in op.inputs)
    return False


def _unguarded_from(ops: Sequence[LoopOp]) -> int:
    """Return the position from which on no operation can stop the plan."""
    for position in range(len(ops) - 1, -1, -1):
        op = ops[position]
        expr = getattr(op, "expr", None)
        if not isinstance(op, CERTAIN) or (expr is not None and functions_of(expr)):
            return position + 1
    return 0


def _bytes(buffer: Buffer) -> int:
    return buffer.size * buffer.dtype.size


def _under(buffer: Buffer, shape: tuple[int, ...]) -> Buffer:
    return buffer if buffer.shape == shape else SameMemory(buffer.name, buffer.dtype, shape, of=buffer)


class PlanMemory:
    """Which buffers share memory, and their lifetimes and offsets."""

    def __init__(self, graph: LoopGraph) -> None:
        self.graph = graph
        self.outside = {id(b): b for b in (*graph.inputs, *graph.outputs)}
        self._alias: dict[int, tuple[Buffer, int]] = {}  # by identity, the buffer whose memory it is in, and the offset
        self._alive: list[Buffer] = []  # so that identities stay unique

    def root(self, buffer: Buffer) -> tuple[Buffer, int]:
        """Return the buffer that owns the memory, and the offset of this one in it."""
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
        """Whether a buffer may be placed in the memory of another."""
        return (
            buffer.parent is None
            and buffer.constant is None
            and id(buffer) not in self.outside
            and id(buffer) not in self._alias
        )

    def view(self, op: View | Bitcast) -> bool:
        """Let both buffers of a view share memory; return whether they can."""
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
        """Place a buffer in the memory of another one."""
        self._alias[id(buffer)] = within, 0
        self._alive.append(buffer)

    def lay_out(self, ops: Sequence[LoopOp], builder: Builder) -> PlanLayout:
        """Assign arena offsets, and resolve the addresses of steps."""
        lives, buffers = self._lifetimes(ops, builder)
        unshared = sum(b.size * b.dtype.size for b in buffers.values() if self._in_arena(b))
        for share in builder.shares:
            self._share(share, lives, ops[share.position])
        arena = [(buffers[key], span) for key, span in lives.items() if self._in_arena(buffers[key])]
        needs = [Allocation(b.size * b.dtype.size, *span) for b, span in arena]
        offsets, size = plan_arena(needs)
        offset_of = {id(b): offset for (b, _), offset in zip(arena, offsets)}
        steps = [
            KernelStep(s.code, tuple(self._resolved(w, offset_of) for w in s.words), *s[2:]) for s in builder.steps
        ]
        return PlanLayout(steps, size, unshared, builder.constants, [(b, offset_of[id(b)]) for b, _ in arena])

    def touched(self, ops: Sequence[LoopOp], builder: Builder) -> dict[int, tuple[int, int]]:
        """Return the positions of the first and the last operation that access each buffer with memory, by its
        identity."""
        return dict(self._lifetimes(ops, builder)[0].items())

    def _in_arena(self, buffer: Buffer) -> bool:
        return buffer.constant is None and id(buffer) not in self.outside

    def _lifetimes(self, ops: Sequence[LoopOp], builder: Builder) -> tuple[Lifetimes[int], dict[int, Buffer]]:
        """Return the lifetimes of buffers with memory, in positions of operations, and the buffers; both by
        identity."""
        lives: Lifetimes[int] = Lifetimes()
        buffers: dict[int, Buffer] = {}

        def touch(buffer: Buffer, position: int) -> None:
            root = self.root(buffer)[0]
            buffers[id(root)] = root
            lives.touch(id(root), position)

        for position, op in enumerate(ops):
            for b in (*op.inputs, op.output):
                touch(b, position)
        for step in builder.steps:
            for w in step.words:
                if isinstance(w, Address) and isinstance(w.of, Buffer):
                    touch(w.of, step.position)
        return lives, buffers

    def _share(self, share: Share, lives: Lifetimes[int], op: LoopOp) -> None:
        operand, output = self.root(share.operand)[0], self.root(share.output)[0]
        if any(b is not share.operand and self.root(b)[0] is operand for b in op.inputs):
            return  # it also reads the same memory under another index map
        if not self.own(output) or not self._in_arena(operand):
            return
        if share.output.parent is not None or share.operand.parent is not None:
            return
        if operand.size * operand.dtype.size < output.size * output.dtype.size:
            return
        if lives.may_share(id(operand), id(output), share.position):
            self.place(output, operand)
            lives.share(id(operand), id(output))

    def _resolved(self, word: Word, offset_of: dict[int, int]) -> Word:
        """Return an address relative to the arena, an external buffer or a constant."""
        if not isinstance(word, Address) or isinstance(word.of, PackedConstant):
            return word
        root, offset = self.root(word.of)
        if root.constant is not None:
            return Address(root, offset + word.offset)
        if id(root) in self.outside:
            return Address(root, offset + word.offset)
        return ArenaOffset(offset_of[id(root)] + offset + word.offset)
