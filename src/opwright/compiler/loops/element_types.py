"""Element types: every read of an operation's expression has the dtype of the buffer that it reads.

Lives here: `check_types`, the table of the types that each operation's expressions read and return.
Not here: operations (ops.py), graphs (graph.py), whose construction calls this check.

An expression names its operands by number and their dtypes; a buffer has its own dtype. A mismatch would read memory as
another type: it is a defect of a rule and raises InternalError when the graph is built or rewritten; the nodes then
remain with the interpreter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core.dtypes import DType, float32, float64, int16, int32, int64
from ...core.errors import InternalError
from .buffers import Buffer
from .expressions import Expr
from .image_ops import Resize
from .ops import Attention, Contract, Depthwise, LoopOp, Map, MatMul, Pool, Reduce, RowPass, TransposedContract

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
            what=f"{e!r} looks up what is no table of {e.dtype.name} for each {index.dtype.name}",
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
    yield op.expr, [(_sum(source), ()), *_of(op.operands)], op.output.dtype


def _attention(op: Attention) -> Elements:
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


ELEMENTS: dict[type[LoopOp], Callable[[Any], Elements]] = {
    Map: _map,
    Contract: _contraction,
    Depthwise: _contraction,
    TransposedContract: _contraction,
    MatMul: _contraction,
    Attention: _attention,
    Pool: _pool,
    Reduce: _reduction,
    Resize: _resize,
    RowPass: _row_pass,
}
"""By form, its expressions with what they read, by number, and the dtype of what they give."""
