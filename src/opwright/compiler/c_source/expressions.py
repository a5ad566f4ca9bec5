"""C expressions: text with its precedence, types and numbers.

Lives here: `Expr`, `c_type`, `literal`.  Not here: which expression an instruction is (instructions.py).

LLVM's integers have no sign; in C they are held as signed ones. Arithmetic that wraps is done on unsigned ones, as
overflow of signed integers is undefined in C, so an expression knows whether its text is an unsigned number.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np
from llvmlite import ir

from ...core.errors import UnimplementedError

PRIMARY, UNARY, MUL, ADD, SHIFT, COMPARE, EQUAL, AND, XOR, OR, CHOICE = range(11)
"""Precedences of C's operators, the tightest first."""

_WIDTHS = (8, 16, 32, 64)


@dataclass(frozen=True)
class Expr:
    """A C expression. unsigned: its type is the unsigned one. reads: variables and memory ("*") that it reads."""

    text: str
    precedence: int = PRIMARY
    unsigned: bool = False
    reads: frozenset[str] = frozenset()

    def within(self, precedence: int) -> str:
        """The text as an operand of an operator, in parentheses where it binds less tightly."""
        return self.text if self.precedence <= precedence else f"({self.text})"


def reads(*operands: Expr) -> frozenset[str]:
    """What all of these read."""
    return frozenset().union(*(o.reads for o in operands))


def c_type(kind: ir.Type, unsigned: bool = False) -> str:
    """C's name of a type. Raises UnimplementedError for what has none here: vectors, and integers of odd widths."""
    if isinstance(kind, ir.FloatType):
        return "float"
    if isinstance(kind, ir.DoubleType):
        return "double"
    if isinstance(kind, ir.IntType) and kind.width == 1:
        return "bool"
    if isinstance(kind, ir.IntType) and kind.width in _WIDTHS:
        return f"{'u' if unsigned else ''}int{kind.width}_t"
    if isinstance(kind, ir.VoidType):
        return "void"
    if isinstance(kind, ir.VectorType):
        raise UnimplementedError(
            what="the kernel works on vectors, which C has none of",
            found=f"{kind.count} lanes of {c_type(kind.element)}",
            do="write the kernel on numbers: C compilers make vectors of plain loops",
        )
    raise UnimplementedError(what="a type that C has no name for", found=str(kind))


def is_flag(kind: ir.Type) -> bool:
    """Whether it is true or false."""
    return isinstance(kind, ir.IntType) and kind.width == 1


def literal(kind: ir.Type, value: object) -> Expr:
    """A number of LLVM's type in C: read back, it is the same to the last bit."""
    if value is None:
        value = 0
    if isinstance(kind, ir.FloatType | ir.DoubleType):
        return _floating(float(value), isinstance(kind, ir.FloatType))  # type: ignore[arg-type]
    if isinstance(kind, ir.PointerType):
        return Expr("NULL")
    c_type(kind)  # which refuses vectors
    number = int(value)  # type: ignore[call-overload]
    width = kind.width
    if width == 1:
        return Expr("true" if number & 1 else "false")
    number = (number + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
    if number == -(1 << (width - 1)):
        return Expr(f"INT{width}_MIN")
    text = str(abs(number)) if abs(number) < 1 << 31 else f"INT64_C({abs(number)})"
    return Expr(f"-{text}", UNARY) if number < 0 else Expr(text)


def _floating(value: float, single: bool) -> Expr:
    if math.isnan(value):
        return Expr("NAN")
    negative = math.copysign(1.0, value) < 0
    if math.isinf(value):
        text = "INFINITY"
    elif single:
        exact = struct.unpack("f", struct.pack("f", abs(value)))[0]
        text = _with_point(str(np.float32(exact))) + "f"
    else:
        text = _with_point(repr(abs(value)))
    return Expr(f"-{text}", UNARY) if negative else Expr(text)


def _with_point(text: str) -> str:
    return text if "." in text or "e" in text else f"{text}.0"
