"""Element types: every read of a form's expression has the dtype of the buffer that it reads.

Lives here: `check_types`, the table of what each form's expressions read and give.
Not here: forms (ops.py), graphs (graph.py), whose construction asks for this check.

An expression names its operands by number and says their dtypes; a buffer has a dtype of its own. Nothing may follow
from one where the other is different: memory would be read as another type. A mismatch is a mistake of a rule and
raises InternalError when the graph is made or rewritten; the nodes then stay with the interpreter.
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
"""What an argument of an expression is: dtype and shape; of an element that the form computes, the shape is ()."""


def check_types(form: LoopOp) -> None:
    """Raise InternalError where an expression of a form reads or gives another dtype than its buffers have."""
    for kind, elements in ELEMENTS.items():
        if isinstance(form, kind):
            for expr, reads, result in elements(form):
                _check(expr, tuple(reads), result)


def _of(buffers: Sequence[Buffer]) -> list[Read]:
    return [(b.dtype, b.shape) for b in buffers]


@functools.lru_cache(maxsize=4096)
def _check(expr: Expr, reads: tuple[Read, ...], result: DType) -> None:
    if expr.dtype is not result:
        raise InternalError(
            op="loop graph", what=f"an expression of {expr.dtype.name} is written as {result.name}", found=repr(expr)
        )
    known, todo = {id(expr)}, [expr]
    while todo:
        e = todo.pop()
        if e.op == "arg":
            _check_read(e, reads)
        elif e.op == "lookup":
            _check_table(e, reads)
        for a in e.args:
            if id(a) not in known:
                known.add(id(a))
                todo.append(a)


def _check_read(e: Expr, reads: tuple[Read, ...]) -> None:
    if not 0 <= e.value < len(reads):
        raise InternalError(op="loop graph", what=f"{e!r} is none of {len(reads)} operands")
    if reads[e.value][0] is not e.dtype:
        raise InternalError(
            op="loop graph", what=f"operand {e.value} is read as {e.dtype.name}", found=reads[e.value][0].name
        )


def _check_table(e: Expr, reads: tuple[Read, ...]) -> None:
    """A table has an element for each value of its index, and the dtype that the look-up gives."""
    index, table = e.args
    wanted = (1 << 8 * index.dtype.size,) if index.dtype.is_integer and index.dtype.size <= 2 else None
    if (
        table.op != "arg"
        or table.dtype is not e.dtype
        or not 0 <= table.value < len(reads)
        or reads[table.value][1] != wanted
    ):
        raise InternalError(
            op="loop graph",
            what=f"{e!r} looks up what is no table of {e.dtype.name} for each {index.dtype.name}",
            found=reads[table.value] if table.op == "arg" else None,
        )


# ---- what expressions of each form read and give -------------------------------------------------------------------

Elements = Iterator[tuple[Expr, Sequence[Read], DType]]


def _map(form: Map) -> Elements:
    yield form.expr, _of(form.operands), form.output.dtype


def _sum(input: Buffer) -> DType:
    """The dtype of a sum of products with elements of a buffer."""
    if input.dtype.is_floating:
        return float64 if input.dtype is float64 else float32
    return int64 if input.dtype is int16 else int32


def _contraction(form: Any) -> Elements:
    source = form.a if isinstance(form, MatMul) else form.input
    yield form.expr, [(_sum(source), ()), *_of(form.operands)], form.output.dtype


def _attention(form: Attention) -> Elements:
    yield form.before, [(float32, ()), *_of(form.operands)], float32


def _pool(form: Pool) -> Elements:
    first = form.input.dtype if form.kind == "max" else float32 if form.input.dtype.is_floating else int32
    yield form.expr, [(first, ()), (float32, ())], form.output.dtype


def _reduction(form: Reduce) -> Elements:
    yield form.before, [(form.input.dtype, ())], form.before.dtype
    yield form.expr, [(form.before.dtype, ())], form.output.dtype


def _resize(form: Resize) -> Elements:
    yield form.expr, [(float32 if form.kind == "bilinear" else form.input.dtype, ())], form.output.dtype


def _row_pass(form: RowPass) -> Elements:
    yield form.before, [(form.input.dtype, ())], float32
    yield form.expr, [(float32, ())], form.output.dtype


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
