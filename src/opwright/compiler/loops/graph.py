"""The loop graph: forms in the order they run, between buffers that come from outside and go there.

Lives here: `LoopGraph`, its text form, `verify`.
Not here: forms (ops.py), fusion (fusion.py), plans (planner.py).
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
    """forms: each after those that write what it reads. inputs, outputs: whose memory is given from outside.
    Raises InternalError where a form reads a buffer as another dtype than it has.

    A buffer has one form that writes it; a parent is written by the forms of its slices.
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
    """A form in a line: what it writes, its class, what it is made of, and the operators it came from. What is made of
    others has a line for each."""
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
    """Raises InternalError where a form reads what nobody has written yet, or two write one buffer."""
    written = {id(b) for b in graph.inputs}
    for op in graph.ops:
        for b in op.inputs:
            if b.constant is None and not _covered(b, written):
                raise InternalError(op=graph.name, what=f"{text(op)} reads {b.name}, which is not written yet")
        if id(op.output) in written or op.output.constant is not None:
            raise InternalError(op=graph.name, what=f"{text(op)} writes {op.output.name}, which is written already")
        written |= {id(op.output)}
        written |= {id(b) for b in parents(op.output)}
    for b in graph.outputs:
        if id(b) not in written and b.constant is None:
            raise InternalError(op=graph.name, what=f"nobody writes the output {b.name}")


def _covered(buffer: Buffer, written: set[int]) -> bool:
    return id(buffer) in written or any(id(b) in written for b in parents(buffer))


def parents(buffer: Buffer) -> list[Buffer]:
    """The buffers that this one is a slice of, the nearest first."""
    found = []
    while buffer.parent is not None:
        buffer = buffer.parent
        found.append(buffer)
    return found


def readers(ops: Sequence[LoopOp]) -> dict[int, list[LoopOp]]:
    """By identity of a buffer, the forms that read it."""
    found: dict[int, list[LoopOp]] = {}
    for op in ops:
        for b in dict.fromkeys(op.inputs):
            found.setdefault(id(b), []).append(op)
    return found


class Rewriting:
    """The forms in order, to be replaced; forms and buffers themselves never change.

    parts: by form, those it was made of where a rule made it of several.
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
        """The forms of a class that there are now, in order."""
        return [op for op in self._order() if isinstance(op, kind)]

    def _order(self) -> list[LoopOp]:
        """All forms, each after those that write what it reads: those that stand in for others are in their places."""
        return [op for slot in self._slots for op in slot]

    def latest(self, op: LoopOp) -> LoopOp | None:
        """What stands in the place of a form now; None where nothing does."""
        found: LoopOp | None = op
        while found is not None and found in self._replaced:
            found = self._replaced[found]
        return found

    def writer(self, buffer: Buffer) -> LoopOp | None:
        """The form that writes a buffer; None for inputs, constants, and parents."""
        return self._writers.get(id(buffer))

    def readers(self, buffer: Buffer) -> list[LoopOp]:
        """The forms that read a buffer."""
        return list(self._readers.get(id(buffer), ()))

    def only_reader(self, buffer: Buffer, op: LoopOp) -> bool:
        """Whether nobody else needs the buffer: neither another form nor who runs the graph."""
        found = self._readers.get(id(buffer), {})
        return len(found) == 1 and op in found and id(buffer) not in self._outputs

    def is_output(self, buffer: Buffer) -> bool:
        """Whether who runs the graph is given it."""
        return id(buffer) in self._outputs

    # ---- changes ----------------------------------------------------------------------------------------------------

    def replace(self, old: LoopOp, *new: LoopOp) -> None:
        """Put forms in the place of one. The last of them stands for it from here on."""
        self._drop(old)
        self._replaced[old] = new[-1] if new else None
        self._fill(old, new)
        for op in new:
            self._add(op)

    def join(self, producer: LoopOp, reader: LoopOp, whole: LoopOp) -> None:
        """Put one form in the place of a reader and of the only form whose result nobody but it reads."""
        self._drop(producer)
        self._fill(producer, ())
        self._replaced[producer] = None
        self.parts[whole] = (producer, reader)
        self.replace(reader, whole)

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
        """The graph as it is now, without forms whose result nobody needs, but for guards."""
        g, kept, needed = self._graph, [], set(self._outputs)
        for op in reversed(self._order()):
            b: Buffer | None = op.output
            while b is not None and id(b) not in needed:
                b = b.parent
            if b is not None or isinstance(op, GUARDS):
                kept.append(op)
                needed.update(id(i) for i in op.inputs)
        return LoopGraph(g.name, g.inputs, g.outputs, tuple(reversed(kept)))
