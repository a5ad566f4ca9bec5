"""Epilogues of sums: a compile-time expression and the words of its operands.

Lives here: `Epilogue`, `epilogue_of` (how the operands of a form are read), `share_output`, `without_bias`,
`subexpressions`, `weight`, `number`.
Not here: expressions (../loops/expressions.py), the operations in kernels (expression.py), the kernels.

A selector splits the expression of a form into code (`Epilogue`: hashable, equal for layers that differ in numbers) and
data (words for `*more: i64` of a kernel):

    epilogue, more = epilogue_of(form.expr, form.operands, form.output, build)
    build.step(kernel.code(..., more=len(more), epilogue=epilogue), [..., *more], items)

In the kernel, `finish = epilogue.bind(more)`; then `finish(sums, row, column, lanes, mask)` returns output elements.
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
from ..loops.expressions import Expr, apply, arg, parametrised
from ..loops.plans import word
from ..target import host
from . import NoKernel
from .expression import check, cost, evaluate, tables

if TYPE_CHECKING:
    from ..language import Pointer, Value
    from ..loops.plan_builder import Builder

CHANNEL, ELEMENT, TABLE, ONE = "channel", "element", "table", "one"
"""Kinds of operands: a number per channel, a number per output element, a table of 256 numbers, one number."""


def subexpressions(expr: Expr) -> list[Expr]:
    """Return every subexpression, shared ones once."""
    unique, pending = {id(expr): expr}, [expr]
    while pending:
        for a in pending.pop().args:
            if id(a) not in unique:
                unique[id(a)] = a
                pending.append(a)
    return list(unique.values())


def weight(expr: Expr) -> int:
    """Estimate the instructions per vector."""
    return sum(map(cost, subexpressions(expr)))


@dataclass(frozen=True)
class Epilogue:
    """An expression of a sum (arg 0) and operands (arg 1 ...), whose scalars are parameters.

    kinds: kind and dtype of each operand. params: dtypes of the scalars. finite: whether floats among both are finite
    constants; small: and below 1 in absolute value. Words: the address of each operand, followed by the pitch of its
    rows for those of kind ELEMENT, then the scalars.
    """

    expr: Expr
    kinds: tuple[tuple[str, DType], ...]
    params: tuple[DType, ...]
    finite: bool = False
    small: bool = False

    @property
    def weight(self) -> int:
        """Estimated instructions per vector."""
        return weight(self.expr)

    def before_table(self) -> tuple[Epilogue, int] | None:
        """Split an epilogue that ends with a lookup of bytes: return the epilogue of the index and the word of the
        table.

        Returns None for other epilogues.
        """
        if self.expr.op != "lookup" or self.expr.args[1].op != "arg" or self.expr.args[0].dtype.size != 1:
            return None
        operand = self.expr.args[1].value - 1
        if self.kinds[operand][0] != TABLE or self.kinds[operand][1].size != 1:
            return None
        word = sum(2 if kind == ELEMENT else 1 for kind, _ in self.kinds[:operand])
        return replace(self, expr=self.expr.args[0]), word

    def bind(self, more: Sequence[Value]) -> Callable[..., Value]:
        """Return the function of a kernel that computes the expression.

        (sums: Value, row, column, lanes: int, mask=None, rows=1, row_scale=None) -> Value: sums are of the output's
        row (all axes but the last) and of its channels from `column` on. lanes: 0 for a scalar. mask: lanes that exist.
        rows: a power of two, the number of output rows that are concatenated in the vector: from `row` on, or a list of
        them. row_scale: of the row that was quantized.
        """
        index, operands = 0, []
        for kind, dtype in self.kinds:
            pitch = more[index + 1] if kind == ELEMENT else None
            operands.append((kind, kl.pointer(more[index], dtype), pitch))
            index += 2 if kind == ELEMENT else 1
        params = [number(x, dtype) for x, dtype in zip(more[index:], self.params)]

        def finish(
            sums: Value,
            row: Any,
            column: Any,
            lanes: int,
            mask: Value | None = None,
            rows: int = 1,
            row_scale: Value | None = None,
        ) -> Value:
            args: list[Value | Pointer] = [sums]
            each = row if isinstance(row, list) else [row + i for i in range(rows)]
            for kind, p, pitch in operands:
                if kind == ELEMENT:
                    args.append(kl.joined([(p + r * pitch).load(column, lanes, mask) for r in each]))
                elif kind == CHANNEL:
                    args.append(kl.joined([p.load(column, lanes, mask)] * rows))
                else:
                    args.append(p if kind == TABLE else p[0])
            result = evaluate(self.expr, args, params, row_scale, finite=self.finite, small=self.small)
            return result.splat(lanes * rows) if lanes and not result.count else result

        return finish


def number(x: Value, dtype: DType) -> Value:
    """Return a scalar from the low bytes of its word."""
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
    """Split an expression over a sum and operands into code and words. channel: of the output, channel 0 of the kernel.

    raises NoKernel for operands of other shapes
    """
    check(expr)
    kinds, skeleton = [], parametrised(expr)
    lookups = tables(expr)
    words: list[Any] = []
    for i, operand in enumerate(operands, 1):
        kind = TABLE if i in lookups else _kind(operand, output)
        kinds.append((kind, operand.dtype))
        words.append(build.pointer(operand, channel if kind in (ELEMENT, CHANNEL) else 0))
        if kind == ELEMENT:
            words.append(operand.pitch)
    words += [word(value, dtype) for value, dtype in skeleton[1]]
    dtypes_of_scalars = tuple(dtype for _, dtype in skeleton[1])
    return Epilogue(skeleton[0], tuple(kinds), dtypes_of_scalars, *_bounds(operands, skeleton[1])), words


def _bounds(operands: Sequence[Buffer], scalars: Sequence[tuple[Any, DType]]) -> tuple[bool, bool]:
    """Return whether floats that an epilogue reads, except the sum, are finite constants; whether all are below 1."""
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
    raise NoKernel(f"an operand of shape {list(operand.shape)} with an output of {list(output.shape)}")


def with_bounds(epilogue: Epilogue, words: list[Any]) -> tuple[Epilogue, list[Any]]:
    """Return an epilogue that is a ReLU, a ReLU6 or nothing as bounds that are words, infinite ones among them, so that
    layers with and without an activation share a kernel; others unchanged. The bits are the same.

    On 64-bit ARM, bounds that are known are other instructions (FMINNM, FMAXNM).
    """
    low, high, e = -math.inf, math.inf, epilogue.expr
    if epilogue.kinds or epilogue.params or e.dtype is not dtypes.float32 or not host().is_x86:
        return epilogue, words
    if e.op == "minimum" and e.args[0].op == "const":
        high, e = e.args[0].value, e.args[1]
    if e.op == "maximum" and e.args[0].op == "const":
        low, e = e.args[0].value, e.args[1]
    if e.op != "arg" or math.isnan(low) or math.isnan(high):
        return epilogue, words
    bounds = [Expr("param", e.dtype, value=i) for i in range(2)]
    clamped = apply("minimum", bounds[1], apply("maximum", bounds[0], e))
    return Epilogue(clamped, (), (e.dtype, e.dtype)), [word(low, e.dtype), word(high, e.dtype)]


def share_output(form: Any, build: Builder, operands: tuple[Buffer, ...], epilogue: Epilogue) -> None:
    """Let the output reuse the memory of an operand that has an element for each of its own."""
    read = form.inputs[:2]
    for operand, (kind, dtype) in zip(operands, epilogue.kinds):
        if kind == ELEMENT and dtype.size == form.output.dtype.size and operand not in read:
            build.share(operand)
            return


def without_bias(expr: Expr, operands: Sequence[Buffer]) -> tuple[Buffer | None, Expr, tuple[Buffer, ...]]:
    """Split off the constant vector that an expression adds to its sum: return it, the rest, and other operands.

    Returns None, and the arguments, if the expression also uses the sum or the vector otherwise.
    """
    unchanged = None, expr, tuple(operands)
    nodes = subexpressions(expr)

    def users(index: int) -> list[Expr]:
        return [e for e in nodes if any(a.op == "arg" and a.value == index for a in e.args)]

    added = users(0)
    if not added or added[0].op != "add" or any(e != added[0] for e in added) or expr.op == "arg":
        return unchanged
    other = next((a.value for a in added[0].args if a.op == "arg" and a.value), None)
    if other is None or len(users(other)) != len(added):
        return unchanged
    bias = operands[other - 1]
    if bias.constant is None or bias.shape[-1:] != (bias.size,):
        return unchanged
    rewrites: dict[int, Expr] = {id(e): arg(0, e.dtype) for e in added}

    def rewritten(e: Expr) -> Expr:
        if id(e) not in rewrites:
            if e.op == "arg":
                rewrites[id(e)] = arg(e.value - (e.value > other), e.dtype)
            else:
                rewrites[id(e)] = Expr(e.op, e.dtype, tuple(map(rewritten, e.args)), e.value) if e.args else e
        return rewrites[id(e)]

    return bias, rewritten(expr), tuple(b for i, b in enumerate(operands, 1) if i != other)
