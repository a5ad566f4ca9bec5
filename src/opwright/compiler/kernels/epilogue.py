"""Epilogues: what a kernel does with a sum before it writes it, as a compile-time constant and words.

Lives here: `Epilogue`, `epilogue_of` (which of a form's operands is read where), `without_bias`, `parts`, `weight`,
`number`.
Not here: expressions (../loops/expressions.py), the operations in kernels (expression.py), the kernels.

A selector splits a form's expression into what is code (`Epilogue`: hashable, the same for layers that differ in
numbers) and what is data (words for a kernel's `*more: i64`):

    epilogue, more = epilogue_of(form.expr, form.operands, form.output, build)
    build.step(kernel.code(..., more=len(more), epilogue=epilogue), [..., *more], items)

In the kernel `finish = epilogue.bind(more)`, then `finish(sums, row, column, lanes, mask)` gives the output's elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from .. import language as kl
from ..loops.buffers import Buffer
from ..loops.expressions import Expr, arg, parametrised
from ..loops.plans import word
from . import NoKernel
from .expression import check, cost, evaluate, tables

if TYPE_CHECKING:
    from ..language import Pointer, Value
    from ..loops.plan_builder import Builder

CHANNEL, ELEMENT, TABLE, ONE = "channel", "element", "table", "one"
"""What an operand has: a number a channel, a number an element of the output, 256 numbers to look up, a number."""


def parts(expr: Expr) -> list[Expr]:
    """Every part of an expression, those that several others share once."""
    known, todo = {id(expr): expr}, [expr]
    while todo:
        for a in todo.pop().args:
            if id(a) not in known:
                known[id(a)] = a
                todo.append(a)
    return list(known.values())


def weight(expr: Expr) -> int:
    """Instructions a vector, about."""
    return sum(map(cost, parts(expr)))


@dataclass(frozen=True)
class Epilogue:
    """An expression of a sum (arg 0) and operands (arg 1 ...), its scalars made parameters.

    kinds: of each operand what it has, and its dtype. params: dtypes of the scalars. finite: whether floats among both
    are constants and finite; small: and below 1, their signs aside. Words: for each operand its
    address, for those with an element each also the pitch of its rows, then the scalars.
    """

    expr: Expr
    kinds: tuple[tuple[str, DType], ...]
    params: tuple[DType, ...]
    finite: bool = False
    small: bool = False

    @property
    def weight(self) -> int:
        """Instructions a vector, about."""
        return weight(self.expr)

    def before_table(self) -> tuple[Epilogue, int] | None:
        """Of an epilogue that looks its result up in a table of bytes: what gives the index, and the table's word."""
        if self.expr.op != "lookup" or self.expr.args[1].op != "arg" or self.expr.args[0].dtype.size != 1:
            return None
        place = self.expr.args[1].value - 1
        if self.kinds[place][0] != TABLE or self.kinds[place][1].size != 1:
            return None
        word = sum(2 if kind == ELEMENT else 1 for kind, _ in self.kinds[:place])
        return replace(self, expr=self.expr.args[0]), word

    def bind(self, more: Sequence[Value]) -> Callable[..., Value]:
        """The function of a kernel that computes it, given its words.

        (sums: Value, row, column, lanes: int, mask=None, rows=1) -> Value: sums are of the output's row (all axes but
        the last) and of its channels from `column` on. lanes 0: one number. mask: lanes that exist. rows: a power of
        two; so many of the output's rows, one after the other in the vector: from `row` on, or a list of them.
        """
        at, operands = 0, []
        for kind, dtype in self.kinds:
            pitch = more[at + 1] if kind == ELEMENT else None
            operands.append((kind, kl.pointer(more[at], dtype), pitch))
            at += 2 if kind == ELEMENT else 1
        params = [number(x, dtype) for x, dtype in zip(more[at:], self.params)]

        def finish(sums: Value, row: Any, column: Any, lanes: int, mask: Value | None = None, rows: int = 1) -> Value:
            args: list[Value | Pointer] = [sums]
            each = row if isinstance(row, list) else [row + i for i in range(rows)]
            for kind, p, pitch in operands:
                if kind == ELEMENT:
                    args.append(_joined([(p + r * pitch).load(column, lanes, mask) for r in each]))
                elif kind == CHANNEL:
                    args.append(_joined([p.load(column, lanes, mask)] * rows))
                else:
                    args.append(p if kind == TABLE else p[0])
            found = evaluate(self.expr, args, params, finite=self.finite, small=self.small)
            return found.splat(lanes * rows) if lanes and not found.count else found

        return finish


def _joined(vectors: list[Value]) -> Value:
    """Vectors one after the other; their number is a power of two."""
    while len(vectors) > 1:
        vectors = [kl.concat(vectors[i], vectors[i + 1]) for i in range(0, len(vectors), 2)]
    return vectors[0]


def number(x: Value, dtype: DType) -> Value:
    """A scalar from the low bytes of its word."""
    if dtype.size == 8:
        return kl.bitcast(x, dtype)
    if not dtype.is_floating:
        return x.to(dtype)
    if dtype is dtypes.float32:
        return kl.bitcast(x.to(dtypes.int32), dtype)
    return kl.bitcast(x.to(dtypes.int16), dtype)


def epilogue_of(
    expr: Expr, operands: Sequence[Buffer], output: Buffer, build: Builder, channel: int = 0
) -> tuple[Epilogue, list[Any]]:
    """An expression over a sum and operands as code and words. channel: where the kernel's channel 0 is in the output.

    raises NoKernel for operands of other shapes
    """
    check(expr)
    found, skeleton = [], parametrised(expr)
    lookups = tables(expr)
    words: list[Any] = []
    for i, operand in enumerate(operands, 1):
        kind = TABLE if i in lookups else _kind(operand, output)
        found.append((kind, operand.dtype))
        words.append(build.pointer(operand, channel if kind in (ELEMENT, CHANNEL) else 0))
        if kind == ELEMENT:
            words.append(operand.pitch)
    words += [word(value, dtype) for value, dtype in skeleton[1]]
    return Epilogue(
        skeleton[0], tuple(found), tuple(dtype for _, dtype in skeleton[1]), *_known(operands, skeleton[1])
    ), words


def _known(operands: Sequence[Buffer], scalars: Sequence[tuple[Any, DType]]) -> tuple[bool, bool]:
    """Whether floats that an epilogue reads beside the sum are constants and finite, and whether they are below 1."""
    floats = [b.constant for b in operands if b.dtype.is_floating]
    floats += [np.asarray(value) for value, dtype in scalars if dtype.is_floating]
    largest = [math.inf if c is None else float(np.abs(c).max(initial=0)) for c in floats]
    return all(math.isfinite(x) for x in largest), all(x < 1 for x in largest)


def _kind(operand: Buffer, output: Buffer) -> str:
    if operand.shape == output.shape:
        return ELEMENT
    if operand.size == 1:
        return ONE
    if operand.size == operand.shape[-1] == output.shape[-1]:
        return CHANNEL
    raise NoKernel(f"an operand of shape {list(operand.shape)} beside an output of {list(output.shape)}")


def without_bias(expr: Expr, operands: Sequence[Buffer]) -> tuple[Buffer | None, Expr, tuple[Buffer, ...]]:
    """The constant vector that an expression adds to its sum, and the expression of a sum that starts with it.

    None, and all as it was, where the sum or the vector is used otherwise too.
    """
    nothing = None, expr, tuple(operands)
    found = parts(expr)

    def users(index: int) -> list[Expr]:
        return [e for e in found if any(a.op == "arg" and a.value == index for a in e.args)]

    added = users(0)
    if not added or added[0].op != "add" or any(e != added[0] for e in added) or expr.op == "arg":
        return nothing
    other = next((a.value for a in added[0].args if a.op == "arg" and a.value), None)
    if other is None or len(users(other)) != len(added):
        return nothing
    bias = operands[other - 1]
    if bias.constant is None or bias.shape[-1:] != (bias.size,):
        return nothing
    known: dict[int, Expr] = {id(e): arg(0, e.dtype) for e in added}

    def rewritten(e: Expr) -> Expr:
        if id(e) not in known:
            if e.op == "arg":
                known[id(e)] = arg(e.value - (e.value > other), e.dtype)
            else:
                known[id(e)] = Expr(e.op, e.dtype, tuple(map(rewritten, e.args)), e.value) if e.args else e
        return known[id(e)]

    return bias, rewritten(expr), tuple(b for i, b in enumerate(operands, 1) if i != other)
