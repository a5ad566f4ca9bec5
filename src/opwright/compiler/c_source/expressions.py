"""C expressions: text with its precedence, types and numbers.

Lives here: `CExpression`, `c_type`, `literal`.  Not here: the expression of an instruction (instructions.py).

Integers of LLVM have no sign; C variables hold them as signed. Arithmetic that wraps is unsigned, as signed overflow is
undefined in C, so an expression records whether its type is unsigned.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np
from llvmlite import ir

from ...core.errors import UnimplementedError

PRIMARY, UNARY, MUL, ADD, SHIFT, COMPARE, EQUAL, AND, XOR, OR, CHOICE = range(11)
"""Precedences of the operators of C, the tightest first."""

_WIDTHS = (8, 16, 32, 64)


@dataclass(frozen=True)
class CExpression:
    """A C expression. unsigned: whether its type is. reads: variables and memory ("*") that it reads."""

    text: str
    precedence: int = PRIMARY
    unsigned: bool = False
    reads: frozenset[str] = frozenset()

    def within(self, precedence: int) -> str:
        """Return the text as an operand, in parentheses if it binds less tightly."""
        return self.text if self.precedence <= precedence else f"({self.text})"


def reads(*operands: CExpression) -> frozenset[str]:
    """Return the union of what the operands read."""
    return frozenset().union(*(o.reads for o in operands))


def c_type(kind: ir.Type, unsigned: bool = False) -> str:
    """Return the C name of a type. Raises UnimplementedError for vectors and integers of other widths."""
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
    """Return whether a type is boolean."""
    return isinstance(kind, ir.IntType) and kind.width == 1


def literal(kind: ir.Type, value: object) -> CExpression:
    """Return a number in C, which reads back bit for bit."""
    if value is None:
        value = 0
    if isinstance(kind, ir.FloatType | ir.DoubleType):
        return _floating(float(value), isinstance(kind, ir.FloatType))  # type: ignore[arg-type]
    if isinstance(kind, ir.PointerType):
        return CExpression("NULL")
    c_type(kind)  # refuses vectors
    number = int(value)  # type: ignore[call-overload]
    width = kind.width
    if width == 1:
        return CExpression("true" if number & 1 else "false")
    number = (number + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
    if number == -(1 << (width - 1)):
        return CExpression(f"INT{width}_MIN")
    text = str(abs(number)) if abs(number) < 1 << 31 else f"INT64_C({abs(number)})"
    return CExpression(f"-{text}", UNARY) if number < 0 else CExpression(text)


def _floating(value: float, single: bool) -> CExpression:
    if math.isnan(value):
        return CExpression("NAN")
    negative = math.copysign(1.0, value) < 0
    if math.isinf(value):
        text = "INFINITY"
    elif single:
        exact = struct.unpack("f", struct.pack("f", abs(value)))[0]
        text = _with_point(str(np.float32(exact))) + "f"
    else:
        text = _with_point(repr(abs(value)))
    return CExpression(f"-{text}", UNARY) if negative else CExpression(text)


def _with_point(text: str) -> str:
    return text if "." in text or "e" in text else f"{text}.0"
