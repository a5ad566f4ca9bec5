"""The loop graph: operations in execution order, between input and output buffers; its editor.

Lives here: `LoopGraph`, its text form, `verify`; `Rewriting`, a graph under edit by fusion.
Not here: operations (ops.py), rules of fusion (fusion.py), plans (planner.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ...core.errors import InternalError
from .buffers import Buffer
from .element_types import check_types
from .indexing_ops import GUARDS
from .ops import Banded, LoopOp


@dataclasses.dataclass(frozen=True, eq=False)
class LoopGraph:
    """Operations in execution order. inputs, outputs: buffers with external memory.

    A buffer has one operation that writes it; a parent is written by the operations of its slices. Construction raises
    InternalError if an operation reads a buffer as another dtype.
    """

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    ops: tuple[LoopOp, ...]

    def __post_init__(self) -> None:
        for op in self.ops:
            check_types(op)

    def __str__(self) -> str:
        lines = [f"loops {self.name}({', '.join(map(repr, self.inputs))}) {{"]
        lines += [f"  {text(op)}" for op in self.ops]
        return "\n".join([*lines, f"  return {', '.join(b.name for b in self.outputs)}", "}"])


def text(op: LoopOp) -> str:
    """Return an operation in a line: output, class, fields and originating operators; parts of a composite on lines of
    their own."""
    parts = []
    for f in dataclasses.fields(op):
        value = getattr(op, f.name)
        if f.name in ("output", "origin") or (f.default is not dataclasses.MISSING and value == f.default):
            continue
        parts.append(_part(f.name, value))
    line = f"{_place(op.output)} = {type(op).__name__}({', '.join(p for p in parts if p)})"
    if isinstance(op, Banded):
        return "\n    ".join([f"{line}:", *map(text, op.parts)])
    return f"{line}  # {' + '.join(op.origin)}" if op.origin else line


def _place(buffer: Buffer) -> str:
    within = f" in {buffer.parent.name} from {buffer.start}" if buffer.parent is not None else ""
    return f"{buffer!r}{within}"


def _part(name: str, value: object) -> str:
    if isinstance(value, Buffer):
        return _operand(value)
    if isinstance(value, tuple) and value and isinstance(value[0], Buffer):
        return ", ".join(map(_operand, value))
    if isinstance(value, tuple) and value and isinstance(value[0], LoopOp):
        return ""
    if name == "window":
        return repr(value).removeprefix("Window").strip("()")
    return f"{name}={value!r}" if value != () else ""


def _operand(buffer: Buffer) -> str:
    return f"const {buffer!r}" if buffer.constant is not None else buffer.name


def verify(graph: LoopGraph) -> None:
    """Raise InternalError if an operation reads an unwritten buffer, or two write the same buffer."""
    written = {id(b) for b in graph.inputs}
    for op in graph.ops:
        for b in op.inputs:
            if b.constant is None and not _covered(b, written):
                raise InternalError(op=graph.name, what=f"{text(op)} reads {b.name}, which is not yet written")
        if id(op.output) in written or op.output.constant is not None:
            raise InternalError(op=graph.name, what=f"{text(op)} writes {op.output.name}, which is already written")
        written |= {id(op.output)}
        written |= {id(b) for b in parents(op.output)}
    for b in graph.outputs:
        if id(b) not in written and b.constant is None:
            raise InternalError(op=graph.name, what=f"no operation writes the output {b.name}")


def _covered(buffer: Buffer, written: set[int]) -> bool:
    return id(buffer) in written or any(id(b) in written for b in parents(buffer))


def parents(buffer: Buffer) -> list[Buffer]:
    """Return the buffers of which this one is a slice, the nearest first."""
    buffers = []
    while buffer.parent is not None:
        buffer = buffer.parent
        buffers.append(buffer)
    return buffers


def readers(ops: Sequence[LoopOp]) -> dict[int, list[LoopOp]]:
    """Return the operations that read each buffer, by its identity."""
    by_buffer: dict[int, list[LoopOp]] = {}
    for op in ops:
        for b in dict.fromkeys(op.inputs):
            by_buffer.setdefault(id(b), []).append(op)
    return by_buffer


class Rewriting:
    """The operations in order while fusion replaces them; operations and buffers themselves are immutable.

    parts: the operations that a fused operation replaces.
    """

    def __init__(self, graph: LoopGraph) -> None:
        self._graph = graph
        self._slots: list[tuple[LoopOp, ...]] = [(op,) for op in graph.ops]
        self._slot: dict[LoopOp, int] = {op: i for i, op in enumerate(graph.ops)}
        self._outputs = {id(b) for b in graph.outputs}
        self._writers: dict[int, LoopOp] = {}
        self._readers: dict[int, dict[LoopOp, None]] = {}
        self._replaced: dict[LoopOp, LoopOp | None] = {}
        self.parts: dict[LoopOp, Sequence[LoopOp]] = {}
        for op in graph.ops:
            self._add(op)

    def of(self, kind: type[LoopOp]) -> list[LoopOp]:
        """Return the current operations of a class, in order."""
        return [op for op in self._order() if isinstance(op, kind)]

    def _order(self) -> list[LoopOp]:
        """Return all operations in order; replacements are at the positions of the replaced ones."""
        return [op for slot in self._slots for op in slot]

    def latest(self, op: LoopOp) -> LoopOp | None:
        """Return the current replacement of an operation, or None if it was removed."""
        current: LoopOp | None = op
        while current is not None and current in self._replaced:
            current = self._replaced[current]
        return current

    def writer(self, buffer: Buffer) -> LoopOp | None:
        """Return the operation that writes a buffer; None for inputs, constants and parents."""
        return self._writers.get(id(buffer))

    def readers(self, buffer: Buffer) -> list[LoopOp]:
        """Return the operations that read a buffer."""
        return list(self._readers.get(id(buffer), ()))

    def only_reader(self, buffer: Buffer, op: LoopOp) -> bool:
        """Whether an operation is the only reader of a buffer that is no output."""
        readers = self._readers.get(id(buffer), {})
        return len(readers) == 1 and op in readers and id(buffer) not in self._outputs

    def is_output(self, buffer: Buffer) -> bool:
        """Whether a buffer is an output of the graph."""
        return id(buffer) in self._outputs

    def replace(self, old: LoopOp, *new: LoopOp) -> None:
        """Replace an operation by others, the last of which is its successor."""
        self._drop(old)
        self._replaced[old] = new[-1] if new else None
        self._fill(old, new)
        for op in new:
            self._add(op)

    def join(self, producer: LoopOp, reader: LoopOp, fused: LoopOp) -> None:
        """Replace a producer and its only reader by one operation."""
        self._drop(producer)
        self._fill(producer, ())
        self._replaced[producer] = None
        self.parts[fused] = (producer, reader)
        self.replace(reader, fused)

    def _fill(self, old: LoopOp, new: tuple[LoopOp, ...]) -> None:
        slot = self._slot.pop(old)
        self._slot.update(dict.fromkeys(new, slot))
        self._slots[slot] = tuple(f for op in self._slots[slot] for f in (new if op is old else (op,)))

    def _add(self, op: LoopOp) -> None:
        check_types(op)
        self._writers[id(op.output)] = op
        for b in op.inputs:
            if b.constant is None:
                self._readers.setdefault(id(b), {})[op] = None

    def _drop(self, op: LoopOp) -> None:
        if self._writers.get(id(op.output)) is op:
            del self._writers[id(op.output)]
        for b in op.inputs:
            self._readers.get(id(b), {}).pop(op, None)

    def graph(self) -> LoopGraph:
        """Return the current graph, without operations whose results are unused, except guards."""
        g, live, needed = self._graph, [], set(self._outputs)
        for op in reversed(self._order()):
            b: Buffer | None = op.output
            while b is not None and id(b) not in needed:
                b = b.parent
            if b is not None or isinstance(op, GUARDS):
                live.append(op)
                needed.update(id(i) for i in op.inputs)
        return LoopGraph(g.name, g.inputs, g.outputs, tuple(reversed(live)))
