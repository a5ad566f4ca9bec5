"""Planning: a loop graph becomes steps in one arena, with packed constants in one block.

Lives here: `plan_of`, `plan_while_compiling`; `PlanMemory`: which buffers share memory, their lifetimes and offsets,
and the stores of variables; `copies`, which computes values of variables in place or copies them at the end.
Not here: plans (plans.py), their builder (plan_builder.py), selectors of kernels (../kernels/), packing of the arena
(../memory.py), which nodes read and assign variables (../lowering/stateful.py), where updates run (update_order.py).

A variable has one block of memory: the graph reads the value of before the run and writes the next one. A value is
computed in place if no later operation reads the old one and no later guard can stop the plan: the caller of a stopped
plan repeats the run by other means and must find all variables unchanged. All other values are copied at the end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from ...core.dtypes import DType, uint8
from ..kernels import NoKernel, select
from ..memory import Allocation, Lifetimes, plan_arena
from ..native.store import compiling_in_background
from .buffers import Buffer, IndexMap, Ring, RowBand, SameMemory
from .control_flow import BlockOp, Jump, WhileLoop, Yielded, plan_control_flow
from .domain_ops import Resize, TabledSoftmax
from .graph import LoopGraph
from .indexing_ops import UpdateSlice
from .ops import (
    Checked,
    Contract,
    Depthwise,
    LoopOp,
    Map,
    MatMul,
    Move,
    Part,
    Pool,
    Reduce,
    Reinterpret,
    RowPass,
    Scan,
    Store,
    TransposedContract,
    Update,
    View,
    slice_copy,
)
from .plan_builder import Builder, Share
from .plans import Address, ArenaOffset, KernelStep, LoopPlan, PackedConstant, PlanLayout, Word
from .update_order import GuardBehindUpdate, stops, unguarded_from, update_order


def copies(
    stores: Sequence[Store],
    ops: Sequence[LoopOp],
    spans: dict[int, tuple[int, int]],
    shares: Sequence[Share],
    memory: PlanMemory,
    earliest: int,
) -> list[LoopOp]:
    """Return the moves for the values that are not computed in place.

    ops: all before; spans: by identity of a buffer with memory, the first and the last of them that access it; shares:
    permissions to overwrite operands; earliest: position from which on operations may compute values in place.
    """
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
        if fits and first >= earliest and (last < first or may_overwrite):
            memory.place(root, target)
        else:
            moves.append(slice_copy(store.input, _under(store.output, store.input.shape), store.origin))
    return [*saved, *moves]


def _may_overwrite(
    old: Buffer, new: Buffer, op: LoopOp, position: int, shares: Sequence[Share], memory: PlanMemory
) -> bool:
    """Return whether an operation, the only one that reads the old value and writes the new one, may do so in place."""
    for share in shares:
        if (
            share.position == position
            and memory.root(share.operand) == (old, 0)
            and memory.root(share.output) == (new, 0)
        ):
            dense = share.operand.parent is None and share.output.parent is None
            return dense and all(b is share.operand or memory.root(b)[0] is not old for b in op.inputs)
    return False


def _bytes(buffer: Buffer) -> int:
    return buffer.size * buffer.dtype.size


def _under(buffer: Buffer, shape: tuple[int, ...]) -> Buffer:
    return buffer if buffer.shape == shape else SameMemory(buffer.name, buffer.dtype, shape, of=buffer)


class PlanMemory:
    """The arena of a plan: which buffers share memory, their lifetimes and offsets."""

    def __init__(self, graph: LoopGraph) -> None:
        self.graph = graph
        self.outside = {id(b): b for b in (*graph.inputs, *graph.outputs)}
        self._alias: dict[int, tuple[Buffer, int]] = {}  # by identity, the buffer whose memory it is in, and the offset
        self._alive: list[Buffer] = []  # so that identities stay unique
        self.loops: list[tuple[int, int]] = []  # first and last position of repeated operations, inner loops first

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
        """Return whether a buffer may be placed in the memory of another."""
        return (
            buffer.parent is None
            and buffer.constant is None
            and id(buffer) not in self.outside
            and id(buffer) not in self._alias
        )

    def view(self, op: View | Reinterpret | Part) -> bool:
        """Let both buffers of a view, or of a part of several results, share memory; return whether they can."""
        source, target = op.input, op.output
        if source.parent is not None:
            return False
        if self.own(target):
            self.place(target, source, op.start if isinstance(op, Part) else 0)
            return True
        if isinstance(op, Part):
            return False
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

    def place(self, buffer: Buffer, within: Buffer, offset: int = 0) -> None:
        """Place a buffer in the memory of another one, from a byte on."""
        self._alias[id(buffer)] = within, offset
        self._alive.append(buffer)

    def lay_out(self, ops: Sequence[LoopOp], builder: Builder) -> PlanLayout:
        """Assign arena offsets, and resolve the addresses of steps."""
        lives, buffers = self._lifetimes(ops, builder.steps)
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

    def touched(self, ops: Sequence[LoopOp], steps: Sequence[KernelStep]) -> dict[int, tuple[int, int]]:
        """Return the positions of the first and the last operation that access each buffer with memory, by its
        identity."""
        return dict(self._lifetimes(ops, steps)[0].items())

    def _in_arena(self, buffer: Buffer) -> bool:
        return buffer.constant is None and id(buffer) not in self.outside

    def _lifetimes(
        self, ops: Sequence[LoopOp], steps: Sequence[KernelStep]
    ) -> tuple[Lifetimes[int], dict[int, Buffer]]:
        """Return the lifetimes of buffers with memory, in positions of operations, and the buffers; both by
        identity."""
        lives: Lifetimes[int] = Lifetimes()
        buffers: dict[int, Buffer] = {}

        def touch(buffer: Buffer, position: int) -> None:
            root = self.root(buffer)[0]
            buffers[id(root)] = root
            lives.touch(id(root), position)

        for position, op in enumerate(ops):
            for b in (*op.inputs, op.output, *(op.results if isinstance(op, WhileLoop) else ())):
                touch(b, position)
        for step in steps:
            for w in step.words:
                if isinstance(w, Address) and isinstance(w.of, Buffer):
                    touch(w.of, step.position)
        for start, end in self.loops:
            for key, (first, last) in list(lives.items()):
                if first < start <= last:
                    lives.touch(key, end)
        return lives, buffers

    def _share(self, share: Share, lives: Lifetimes[int], op: LoopOp) -> None:
        (operand, offset), output = self.root(share.operand), self.root(share.output)[0]
        if offset:
            return  # one of several results
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


WITHOUT_GUARDS = (
    Map,
    Contract,
    Depthwise,
    TransposedContract,
    MatMul,
    Pool,
    Reduce,
    Scan,
    RowPass,
    TabledSoftmax,
    Move,
    Resize,
    View,
    Reinterpret,
    Checked,
)
"""Operations with one output and no guards except on the values that they write: no step where they write no
elements."""


def plan_of(graph: LoopGraph, parts_of: Callable[[LoopOp], Sequence[LoopOp] | None] = lambda op: None) -> LoopPlan:
    """Return the plan of a loop graph; `LoopPlan.pack` packs its constants later.

    parts_of: returns the parts of a fused operation, which are executed if no kernel implements it.
    raises NoKernel with all operations without a kernel, GuardBehindUpdate if one that is no update may stop the plan
    behind an update
    """
    planning = _Planning(graph, parts_of)
    planning.plan(graph.ops)
    if not planning.failed:
        planning.place_updates()
    if planning.failed:
        no_kernel = NoKernel("; ".join(dict.fromkeys(planning.failed.values())))
        no_kernel.ops = planning.failed
        raise no_kernel
    return LoopPlan(graph, tuple(planning.ops), planning.memory.lay_out(planning.ops, planning.builder))


def plan_while_compiling(
    graph: LoopGraph, parts_of: Callable[[LoopOp], Sequence[LoopOp] | None] = lambda op: None
) -> LoopPlan:
    """Return the plan of a loop graph, whose missing kernels another thread compiles meanwhile; see `plan_of`.

    A kernel whose address a selector has read, as of a user's kernel, is missing in the plan: then it is made again.
    """
    with compiling_in_background():
        plan = plan_of(graph, parts_of)
    return plan if all(step.covers or step.code.address for step in plan.steps) else plan_of(graph, parts_of)


class _Planning:
    """A plan in progress. ops: those planned, in order; failed: reasons of those without a kernel, of operations of the
    graph."""

    def __init__(self, graph: LoopGraph, parts_of: Callable[[LoopOp], Sequence[LoopOp] | None]) -> None:
        copied = sum(op.output.size * op.output.dtype.size for op in graph.ops if isinstance(op, UpdateSlice))
        self.memory = PlanMemory(graph)
        self.builder = Builder(copied, self.memory.root)
        self.ops: list[LoopOp] = []
        self.failed: dict[LoopOp, str] = {}
        self._parts_of = parts_of
        self._outermost: LoopOp | None = None  # control flow that contains the operations
        self._after_blocks = 0  # position behind all control flow

    def plan(self, ops: Sequence[LoopOp]) -> None:
        """Plan operations after all others; Stores are at the end."""
        stack = list(reversed(ops))
        while stack:
            op = stack.pop()
            if isinstance(op, Store):
                stores = [op, *(s for s in reversed(stack) if isinstance(s, Store))]
                self.store(stores, unguarded_from(self.builder.steps))
                return
            if isinstance(op, BlockOp):
                self._plan_control_flow(op)
                continue
            if isinstance(op, View | Reinterpret | Part) and self.memory.view(op):
                self.ops.append(op)
                continue
            if isinstance(op, Yielded) or (0 in op.output.shape and isinstance(op, WITHOUT_GUARDS)):
                self.ops.append(op)  # without a step
                continue
            self.builder.begin(self.position, op)
            try:
                op = _without_empty(op) if isinstance(op, Move) else op
                if any(0 in b.shape for b in (op.output, *op.inputs)):
                    raise NoKernel("an array without elements")
                select(_copying(op) if isinstance(op, View | Reinterpret) else op, self.builder)
            except NoKernel as why:
                parts = self._parts_of(op) or _via_copy(op)
                if parts is None:
                    self.failed[self._outermost or op] = str(why)
                else:
                    stack += reversed(parts)
                continue
            self.ops.append(op)

    def store(self, stores: Sequence[Store], first: int) -> None:
        """Write values, computed from the operation `first` on, to other buffers: in place or by copies."""
        spans = self.memory.touched(self.ops, self.builder.steps)
        self.plan(copies(stores, self.ops, spans, self.builder.shares, self.memory, first))

    def place_updates(self) -> None:
        """Move the updates, and the operations behind the first of them, to the first positions where they may run.
        Raises GuardBehindUpdate."""
        first = next((i for i, op in enumerate(self.ops) if isinstance(op, Update)), len(self.ops))
        if first == len(self.ops):
            return
        behind = [s for s in self.builder.steps if s.position >= first and not isinstance(self.ops[s.position], Update)]
        if any(map(stops, behind)):
            raise GuardBehindUpdate
        before = [step for step in self.builder.steps if step.position < first]
        last_access = {key: last for key, (_, last) in self.memory.touched(self.ops[:first], before).items()}
        earliest = max(unguarded_from(before), self._after_blocks)
        order = update_order(self.ops, first, earliest, last_access, lambda buffer: id(self.memory.root(buffer)[0]))
        self.ops = [self.ops[position] for position in order]
        places = {position: place for place, position in enumerate(order)}
        self.builder.reorder(places)
        self.builder.commit(min(places[position] for position in range(first, len(order))))

    # ---- control flow ---------------------------------------------------------------------------------------------

    def _plan_control_flow(self, op: BlockOp) -> None:
        outer, self._outermost = self._outermost, self._outermost or op
        self.ops.append(op)
        try:
            plan_control_flow(op, self)
        except NoKernel as why:
            self.failed[self._outermost] = str(why)
        finally:
            self._outermost = outer
            self._after_blocks = self.position

    @property
    def position(self) -> int:
        """Position of the next operation."""
        return len(self.ops)

    @property
    def next_step(self) -> int:
        """Index of the next step."""
        return len(self.builder.steps)

    def jump(self, op: Jump) -> int:
        """Plan a jump; return the index of its step."""
        self.builder.begin(self.position, op)
        self.ops.append(op)
        return self.builder.jump(op)

    def land(self, jump: int, target: int | None = None) -> None:
        """Set the target of a jump, by default the next step."""
        self.builder.land(jump, self.next_step if target is None else target)

    def alias(self, buffer: Buffer, of: Buffer) -> None:
        """Let a buffer be another one."""
        self.memory.place(buffer, of)

    def repeat(self, first: int) -> None:
        """Declare that the operations from `first` on are repeated."""
        self.memory.loops.append((first, self.position - 1))


def _without_empty(op: Move) -> Move:
    """Remove empty operands of a move."""
    pairs = [(b, m) for b, m in zip(op.operands, op.maps) if 0 not in b.shape]
    if len(pairs) == len(op.maps):
        return op
    return dataclasses.replace(op, operands=tuple(b for b, _ in pairs), maps=tuple(m for _, m in pairs))


def _copying(op: View | Reinterpret) -> Move:
    """Return the copy of a view whose buffers both have memory; of bytes if their dtypes differ."""
    dtype = op.output.dtype if op.input.dtype is op.output.dtype else uint8
    source, target = _flat(op.input, dtype), _flat(op.output, dtype)
    return Move(target, (source,), (IndexMap((0,), target.shape, 0, (1,)),), origin=op.origin)


def _flat(buffer: Buffer, dtype: DType) -> Buffer:
    if buffer.parent is not None:
        raise NoKernel("a view of a slice")
    constant, size = buffer.constant, buffer.size * buffer.dtype.size // dtype.size
    if constant is not None:
        constant = np.ascontiguousarray(constant).reshape(-1).view(dtype.np)
    return SameMemory(buffer.name, dtype, (size,), constant, of=buffer)


def _via_copy(op: LoopOp) -> list[LoopOp] | None:
    """Return an operation that cannot write a slice in place as the operation into its own buffer and a copy."""
    out = op.output
    if out.parent is None or isinstance(op, Move):
        return None
    buffer = Buffer(out.name, out.dtype, out.shape)
    return [dataclasses.replace(op, output=buffer), slice_copy(buffer, out, op.origin)]
