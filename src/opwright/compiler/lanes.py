"""Lanes: what a kernel computes on, a number or a fixed vector of them, with Python's operators.

Lives here: `Lanes`, and the dtypes they have; `constants`, `is_number`.
Not here: functions of lanes (lane_functions.py), mathematical ones (scalar/), where lanes come from and go to
(elementwise.py).

The same code serves one element and a vector of them, and does the same roundings in both: a result does not hang on
the place of its element. Comparisons of floats are false where one is NaN, but `!=`, which is true. Integers wrap.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..core import dtypes
from ..core.dtypes import DType

F32, F64, I1, I32, I64 = ir.FloatType(), ir.DoubleType(), ir.IntType(1), ir.IntType(32), ir.IntType(64)

KINDS: dict[DType, ir.Type] = {
    dtypes.float32: F32, dtypes.float64: F64, dtypes.int32: I32, dtypes.int64: I64, dtypes.bool: I1,
}
"""The dtypes that kernels on scalars have, and the type of a lane."""


def constant(kind: ir.Type, value: Any, count: int) -> ir.Constant:
    """So many lanes of a number, or one scalar where count is 0."""
    number: Any = float(value) if kind in (F32, F64) else int(value)
    if kind == F32:  # LLVM refuses constants that are not exact
        number = struct.unpack("f", struct.pack("f", number))[0]
    one = ir.Constant(kind, number)
    return ir.Constant(ir.VectorType(kind, count), [one] * count) if count else one


class Lanes:
    """An LLVM value, scalar or vector, and the builder that adds instructions. count: of lanes; 0 for a scalar."""

    __slots__ = ("b", "x")

    def __init__(self, b: ir.IRBuilder, x: ir.Value) -> None:
        self.b, self.x = b, x

    @property
    def count(self) -> int:
        return self.x.type.count if isinstance(self.x.type, ir.VectorType) else 0

    @property
    def kind(self) -> ir.Type:
        """The type of one lane."""
        return self.x.type.element if isinstance(self.x.type, ir.VectorType) else self.x.type

    @property
    def is_float(self) -> bool:
        return isinstance(self.kind, ir.FloatType | ir.DoubleType)

    def full(self, value: float, kind: ir.Type | None = None) -> Lanes:
        """So many lanes of one number, rounded to the kind."""
        return Lanes(self.b, constant(kind or self.kind, value, self.count))

    def _operand(self, other: Any) -> ir.Value:
        return other.x if isinstance(other, Lanes) else self.full(other).x

    def _new(self, x: ir.Value) -> Lanes:
        return Lanes(self.b, x)

    def _typed(self, kind: ir.Type) -> ir.Type:
        return ir.VectorType(kind, self.count) if self.count else kind

    # ---- operators ------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Lanes:
        return self._new((self.b.fadd if self.is_float else self.b.add)(self.x, self._operand(other)))

    def __sub__(self, other: Any) -> Lanes:
        return self._new((self.b.fsub if self.is_float else self.b.sub)(self.x, self._operand(other)))

    def __rsub__(self, other: Any) -> Lanes:
        return self._new((self.b.fsub if self.is_float else self.b.sub)(self._operand(other), self.x))

    def __mul__(self, other: Any) -> Lanes:
        return self._new((self.b.fmul if self.is_float else self.b.mul)(self.x, self._operand(other)))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Lanes:
        return self._new(self.b.fdiv(self.x, self._operand(other)))

    def __rtruediv__(self, other: Any) -> Lanes:
        return self._new(self.b.fdiv(self._operand(other), self.x))

    def __neg__(self) -> Lanes:
        return self._new(self.b.fneg(self.x) if self.is_float else self.b.neg(self.x))

    def __and__(self, other: Any) -> Lanes:
        return self._new(self.b.and_(self.x, self._operand(other)))

    def __or__(self, other: Any) -> Lanes:
        return self._new(self.b.or_(self.x, self._operand(other)))

    def __xor__(self, other: Any) -> Lanes:
        return self._new(self.b.xor(self.x, self._operand(other)))

    def __invert__(self) -> Lanes:
        return self._new(self.b.not_(self.x))

    def __lshift__(self, other: Any) -> Lanes:
        return self._new(self.b.shl(self.x, self._operand(other)))

    def __rshift__(self, other: Any) -> Lanes:
        """With the sign."""
        return self._new(self.b.ashr(self.x, self._operand(other)))

    def compare(self, predicate: str, other: Any) -> Lanes:
        """A mask: predicate is one of < <= > >= == !=."""
        if self.is_float:
            compare = self.b.fcmp_unordered if predicate == "!=" else self.b.fcmp_ordered
        else:
            compare = self.b.icmp_signed
        return self._new(compare(predicate, self.x, self._operand(other)))

    def __lt__(self, other: Any) -> Lanes:
        return self.compare("<", other)

    def __le__(self, other: Any) -> Lanes:
        return self.compare("<=", other)

    def __gt__(self, other: Any) -> Lanes:
        return self.compare(">", other)

    def __ge__(self, other: Any) -> Lanes:
        return self.compare(">=", other)

    def __eq__(self, other: Any) -> Lanes:  # type: ignore[override]
        return self.compare("==", other)

    def __ne__(self, other: Any) -> Lanes:  # type: ignore[override]
        return self.compare("!=", other)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("lanes have no truth value while a kernel is staged: use select(mask, a, b)")

    # ---- other kinds -----------------------------------------------------------------------------------------------

    def to(self, kind: ir.Type) -> Lanes:
        """Converted to another kind; a float to an integer toward zero, which it must be able to hold."""
        if kind == self.kind:
            return self
        wide, to_float = self._typed(kind), kind in (F32, F64)
        if self.is_float and to_float:
            return self._new((self.b.fpext if kind == F64 else self.b.fptrunc)(self.x, wide))
        if self.is_float:
            return self._new(self.b.fptosi(self.x, wide))
        if to_float:
            return self._new((self.b.uitofp if self.kind == I1 else self.b.sitofp)(self.x, wide))
        if kind.width < self.kind.width:
            return self._new(self.b.trunc(self.x, wide))
        return self._new((self.b.zext if self.kind == I1 else self.b.sext)(self.x, wide))

    def intrinsic(self, name: str, *others: Any) -> Lanes:
        """llvm.<name> of these and other lanes."""
        operands = [self.x, *map(self._operand, others)]
        return self._new(self.b.call(_declared(self.b.module, name, self.x.type, self.x.type, len(operands)), operands))

    def any(self) -> ir.Value:
        """Whether a mask holds in one lane at least: an i1."""
        if not self.count:
            return self.x
        return self.b.call(_declared(self.b.module, "vector.reduce.or", self.x.type, I1, 1), [self.x])

    def map(self, function: Callable[..., ir.Value], kind: ir.Type, *others: Lanes) -> Lanes:
        """What a function makes of each lane by itself (and of the same one of others); it gives `kind`."""
        if not self.count:
            return self._new(function(self.x, *(other.x for other in others)))
        found: ir.Value = ir.Constant(ir.VectorType(kind, self.count), ir.Undefined)
        for i in range(self.count):
            at = ir.Constant(I32, i)
            each = [self.b.extract_element(lanes.x, at) for lanes in (self, *others)]
            found = self.b.insert_element(found, function(*each), at)
        return self._new(found)


_SUFFIX = {F32: "f32", F64: "f64", I1: "i1", I32: "i32", I64: "i64"}


def _declared(module: ir.Module, name: str, kind: ir.Type, result: ir.Type, count: int) -> ir.Function:
    """An intrinsic of `count` operands of one type."""
    vector = isinstance(kind, ir.VectorType)
    suffix = f"v{kind.count}{_SUFFIX[kind.element]}" if vector else _SUFFIX[kind]
    full = f"llvm.{name}.{suffix}"
    return module.globals.get(full) or ir.Function(module, ir.FunctionType(result, [kind] * count), full)


def constants(x: ir.Value) -> list[Any] | None:
    """The numbers that a constant's lanes are, a number's too; None where they are not known."""
    held = x.constant if isinstance(x, ir.Constant) else None
    lanes = [lane.constant for lane in held] if isinstance(held, list) else [held]
    return lanes if all(isinstance(lane, (int, float)) for lane in lanes) else None


def is_number(x: ir.Value) -> bool:
    """Whether it is a constant without a NaN."""
    lanes = constants(x)
    return lanes is not None and all(lane == lane for lane in lanes)
