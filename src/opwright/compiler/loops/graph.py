"""The loop graph: operations in execution order, between input and output buffers; its editor and its checks.

Lives here: `LoopGraph`, its text form, `verify`; `Rewriting`, a graph under edit by fusion; `check_types`, the table of
the types that each operation's expressions read and return.
Not here: operations (ops.py), rules of fusion (fusion.py), plans (planner.py).

An expression names its operands by number and their dtypes; a buffer has its own dtype. A mismatch would read memory as
another type: it is a defect of a rule and raises InternalError when the graph is built or rewritten; the nodes then
remain with the interpreter.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core.dtypes import DType, float32, float64, int16, int32, int64
from ...core.errors import InternalError
from .buffers import Buffer
from .domain_ops import Resize
from .expressions import Expr
from .indexing_ops import GUARDS
from .ops import (
    Banded,
    Contract,
    Depthwise,
    FusedAttention,
    LoopOp,
    Map,
    MatMul,
    Pool,
    Reduce,
    RowPass,
    TransposedContract,
    Update,
)

Read = tuple[DType, tuple[int, ...]]
"""Dtype and shape of an argument of an expression; of an element that the operation computes, the shape is ()."""


def check_types(op: LoopOp) -> None:
    """Raise InternalError if an expression of an operation reads or returns another dtype than its buffers have."""
    for kind, elements in ELEMENTS.items():
        if isinstance(op, kind):
            for expr, reads, result in elements(op):
                _check(expr, tuple(reads), result)


def _of(buffers: Sequence[Buffer]) -> list[Read]:
    return [(b.dtype, b.shape) for b in buffers]


@functools.lru_cache(maxsize=4096)
def _check(expr: Expr, reads: tuple[Read, ...], result: DType) -> None:
    if expr.dtype is not result:
        raise InternalError(
            op="loop graph", what=f"an expression of {expr.dtype.name} is written as {result.name}", found=repr(expr)
        )
    visited, stack = {id(expr)}, [expr]
    while stack:
        e = stack.pop()
        if e.op == "arg":
            _check_read(e, reads)
        elif e.op == "lookup":
            _check_table(e, reads)
        for a in e.args:
            if id(a) not in visited:
                visited.add(id(a))
                stack.append(a)


def _check_read(e: Expr, reads: tuple[Read, ...]) -> None:
    if not 0 <= e.value < len(reads):
        raise InternalError(op="loop graph", what=f"{e!r} is none of {len(reads)} operands")
    if reads[e.value][0] is not e.dtype:
        raise InternalError(
            op="loop graph", what=f"operand {e.value} is read as {e.dtype.name}", found=reads[e.value][0].name
        )


def _check_table(e: Expr, reads: tuple[Read, ...]) -> None:
    """Raise InternalError unless a table has an element for each value of its index, and the dtype of the look-up."""
    index, table = e.args
    table_shape = (1 << 8 * index.dtype.size,) if index.dtype.is_integer and index.dtype.size <= 2 else None
    if (
        table.op != "arg"
        or table.dtype is not e.dtype
        or not 0 <= table.value < len(reads)
        or reads[table.value][1] != table_shape
    ):
        raise InternalError(
            op="loop graph",
            what=f"{e!r} looks up what is not a table of {e.dtype.name} for each {index.dtype.name}",
            found=reads[table.value] if table.op == "arg" else None,
        )


Elements = Iterator[tuple[Expr, Sequence[Read], DType]]


def _map(op: Map) -> Elements:
    yield op.expr, _of(op.operands), op.output.dtype


def _sum(input: Buffer) -> DType:
    """Return the dtype of a sum of products with elements of a buffer."""
    if input.dtype.is_floating:
        return float64 if input.dtype is float64 else float32
    return int64 if input.dtype is int16 else int32


def _contraction(op: Any) -> Elements:
    source = op.a if isinstance(op, MatMul) else op.input
    is_integer = op.rounding and getattr(op, "scales", None) is None
    yield op.expr, [(int32 if is_integer else _sum(source), ()), *_of(op.operands)], op.output.dtype


def _attention(op: FusedAttention) -> Elements:
    yield op.before, [(float32, ()), *_of(op.operands)], float32


def _pool(op: Pool) -> Elements:
    first = op.input.dtype if op.kind == "max" else float32 if op.input.dtype.is_floating else int32
    yield op.expr, [(first, ()), (float32, ())], op.output.dtype


def _reduction(op: Reduce) -> Elements:
    yield op.before, [(op.input.dtype, ())], op.before.dtype
    yield op.expr, [(op.before.dtype, ())], op.output.dtype


def _resize(op: Resize) -> Elements:
    yield op.expr, [(float32 if op.kind == "bilinear" else op.input.dtype, ())], op.output.dtype


def _row_pass(op: RowPass) -> Elements:
    yield op.before, [(op.input.dtype, ())], float32
    yield op.expr, [(float32, ())], op.output.dtype


def _update(op: Update) -> Elements:
    reads = _of((*op.targets, *op.operands))
    for target, expr in zip(op.targets, op.exprs, strict=True):
        yield expr, reads, target.dtype


ELEMENTS: dict[type[LoopOp], Callable[[Any], Elements]] = {
    Map: _map,
    Contract: _contraction,
    Depthwise: _contraction,
    TransposedContract: _contraction,
    MatMul: _contraction,
    FusedAttention: _attention,
    Pool: _pool,
    Reduce: _reduction,
    Resize: _resize,
    RowPass: _row_pass,
    Update: _update,
}
"""By form, its expressions with what they read, by number, and the dtype of what they give."""


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
        """Return whether an operation is the only reader of a buffer that is not an output."""
        readers = self._readers.get(id(buffer), {})
        return len(readers) == 1 and op in readers and id(buffer) not in self._outputs

    def is_read(self, buffer: Buffer) -> bool:
        """Return whether an operation reads a buffer, or it is an output of the graph, or a slice."""
        return bool(self._readers.get(id(buffer))) or self.is_output(buffer) or buffer.parent is not None

    def position(self, op: LoopOp) -> int:
        """Return the place of an operation in the order; replacements of one may share it."""
        return self._slot[op]

    def is_output(self, buffer: Buffer) -> bool:
        """Return whether a buffer is an output of the graph."""
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
