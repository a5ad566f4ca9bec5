"""Variables: where the values that they keep are computed, and which of them are copied.

Lives here: `copies`, what the Stores at a graph's end become.
Not here: memory in general (planning.py), which nodes read and assign variables (../lowering/variables.py).

A variable has one piece of memory, which the graph reads as it was before the run and writes for the next one. A value
is computed right there if nothing reads the old one from then on, and if no guard can stop the plan from then on: the
caller of a stopped plan repeats it by other means, and finds all variables as they were. Any other value is copied at
the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..inlined_kernels import functions_of
from .forms import (
    ArgReduce,
    Attention,
    Banded,
    Bitcast,
    Buffer,
    Contract,
    Depthwise,
    Form,
    Map,
    MatMul,
    Move,
    Pool,
    Reduce,
    Resize,
    RowPass,
    SameMemory,
    Scan,
    Store,
    TransposedContract,
    View,
    slice_copy,
)
from .numeric_forms import Advanced, Classes, NormalPairs, RandomWords

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


class Share(NamedTuple):
    """Permission to write a form's output over one of its operands."""

    place: int
    operand: Buffer
    output: Buffer


class Memory(Protocol):
    """What is known of the memory of the forms before: as the planner's."""

    def root(self, buffer: Buffer) -> tuple[Buffer, int]: ...
    def own(self, buffer: Buffer) -> bool: ...
    def place(self, buffer: Buffer, within: Buffer) -> None: ...


def copies(
    stores: Sequence[Store],
    forms: Sequence[Form],
    spans: dict[int, tuple[int, int]],
    shares: Sequence[Share],
    memory: Memory,
) -> list[Form]:
    """The moves for those values that are not computed where they are kept.

    forms: all before; spans: by identity of a buffer with memory, the first and the last of them that touch it; shares:
    which of them may write over an operand.
    """
    certain = _certain_from(forms)
    kept = {id(memory.root(store.output)[0]) for store in stores}
    aside: list[Form] = []
    moves: list[Form] = []
    held = dict(spans)
    for place, store in enumerate(stores):
        root, offset = memory.root(store.input)
        target = memory.root(store.output)[0]
        if id(root) not in kept or (root is target and not offset):
            continue
        # The old value of a variable that is written, too: it is put aside before that happens.
        held[id(root)] = min(held[id(root)][0], len(forms)) if id(root) in held else len(forms), len(forms)
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
        over = read == first >= 0 and fits and _may_overwrite(target, root, forms[first], first, shares, memory)
        if fits and first >= certain and (read < first or over):
            memory.place(root, target)
        else:
            moves.append(slice_copy(store.input, _under(store.output, store.input.shape), store.origin))
    return [*aside, *moves]


def _may_overwrite(old: Buffer, new: Buffer, form: Form, place: int, shares: Sequence[Share], memory: Memory) -> bool:
    """Whether a form, the only one that reads the old value and writes the new one, may do so in one place."""
    for share in shares:
        if share.place == place and memory.root(share.operand) == (old, 0) and memory.root(share.output) == (new, 0):
            dense = share.operand.parent is None and share.output.parent is None
            return dense and all(b is share.operand or memory.root(b)[0] is not old for b in form.inputs)
    return False


def _certain_from(forms: Sequence[Form]) -> int:
    """The place from which on no form can stop the plan."""
    for place in range(len(forms) - 1, -1, -1):
        form = forms[place]
        expr = getattr(form, "expr", None)
        if not isinstance(form, CERTAIN) or (expr is not None and functions_of(expr)):
            return place + 1
    return 0


def _bytes(buffer: Buffer) -> int:
    return buffer.size * buffer.dtype.size


def _under(buffer: Buffer, shape: tuple[int, ...]) -> Buffer:
    return buffer if buffer.shape == shape else SameMemory(buffer.name, buffer.dtype, shape, of=buffer)
