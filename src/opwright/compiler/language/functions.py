"""Functions of the kernel language's values: one instruction each or a few.

Lives here: arithmetic, roundings, conversions, tables, code for single lanes and for rare ones; `FUNCTIONS`.
Not here: choices (values.py), the rows of the scalar table (operators.py), vectors as such (vectors.py), dot products
and look-ups, which each target has its own instructions for (dots.py).

Formulas of `scalar/` are written over the names of this module and of values.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from ...scalar import arithmetic
from . import values
from .kinds import I32, I64, KIND, constants, number, suffix, typed
from .neon import nearest
from .trace import current, define, intrinsic
from .values import Value, alike, concat, part, same_type

# ---- made of numbers -------------------------------------------------------------------------------------------------


def zeros(dtype: DType, count: int = 0) -> Value:
    """Return a vector of zeros; count 0: a number."""
    return full(dtype, count, 0)


def full(dtype: DType, count: int, x: Any) -> Value:
    """Return a vector of one number; count 0: the number."""
    return x.splat(count) if isinstance(x, Value) else Value(number(dtype, x, count), dtype)


def full_like(x: Value, number: Any, dtype: DType | None = None) -> Value:
    """Return a number of x's dtype, or of another, which stands for as many lanes as x has."""
    return full(dtype or x.dtype, 0, number)


def type_of(x: Value) -> DType:
    """Return the dtype of a value."""
    return x.dtype


# ---- arithmetic and roundings ----------------------------------------------------------------------------------------


def fma(a: Any, c: Any, d: Any) -> Value:
    """Return a * c + d, rounded once where the target can."""
    a, c, d = alike(a, c, d)
    return same_type("fmuladd", a, c, d) if a.dtype.is_floating else a * c + d


def abs(x: Value) -> Value:
    """Return |x|; of the least integer itself."""
    return x.__abs__()


def truncated_quotient(a: Any, c: Any) -> Value:
    """Return a / c of integers, rounded toward zero; c is not 0, nor -1 below the least integer.

    float64 has integers of up to 32 bits exactly, and processors divide vectors of floats alone.
    """
    a, c = alike(a, c)
    if a.count and a.dtype.size <= 4:
        return (a.to(dtypes.float64) / c.to(dtypes.float64)).to(dtypes.int64).to(a.dtype)
    b = current().builder
    return Value((b.udiv if a.dtype.is_unsigned else b.sdiv)(a.x, c.x), a.dtype)


def divided(name: str, a: Value, c: Value) -> Value:
    """Return a quotient of integers, or the remainder, whatever the divisor is: 0 by 0, which processors trap on.

    name: of LLVM's instruction. raises ZeroDivisionError for a constant divisor of 0
    """
    if not isinstance(c.x, ir.Constant):
        divide = arithmetic.remainder if name.endswith("rem") else arithmetic.quotient
        found: Value = divide(FUNCTIONS, a, c)
        return found
    if 0 in (constants(c.x) or ()):
        raise ZeroDivisionError(f"{a.dtype.name} is divided by 0")
    return Value(getattr(current().builder, name)(a.x, c.x), a.dtype)


def float_remainder(a: Value, c: Value) -> Value:
    """Return a - c trunc(a / c) of floats, as the C library's fmod."""
    return Value(current().builder.frem(a.x, c.x), a.dtype)


def copysign(x: Value, sign: Any) -> Value:
    """Return |x| with the sign of another float."""
    return same_type("copysign", *alike(x, sign))


def convert(x: Value, dtype: DType) -> Value:
    """Convert: integers are extended by their sign or cut off, floats rounded; floats to integers toward zero."""
    return x.to(dtype)


def to_integer(x: Value, dtype: DType) -> Value:
    """Convert floats to integers toward zero; numbers beyond the dtype become its nearest end, NaN becomes 0."""
    kind = typed(dtype, x.count)
    name = "fptoui" if dtype.is_unsigned else "fptosi"
    return Value(intrinsic(f"{name}.sat.{suffix(kind)}.{suffix(x.x.type)}", kind, x.x), dtype)


def sqrt(x: Value) -> Value:
    """Return the square root, correctly rounded."""
    return same_type("sqrt", x)


def round_even(x: Value) -> Value:
    """Round to the nearest whole number, of two the even one; the result is a float."""
    return same_type("rint", x)


def to_int(x: Value) -> Value:
    """Convert float32 to the nearest int32, of two the even one. x is within int32's range."""
    if current().target.is_x86 and x.count in (4, 8, 16):
        name = {4: "x86.sse2.cvtps2dq", 8: "x86.avx.cvt.ps2dq.256", 16: "x86.avx512.mask.cvtps2dq.512"}[x.count]
        kind = typed(dtypes.int32, x.count)
        if x.count * 4 <= current().target.vector_bytes:
            more = (
                () if x.count < 16 else (ir.Constant(kind, None), ir.Constant(ir.IntType(16), -1), ir.Constant(I32, 4))
            )
            return Value(intrinsic(name, kind, x.x, *more), dtypes.int32)
    if current().target.is_aarch64 and x.count % 4 == 0:
        return nearest(x)
    return round_even(x).to(dtypes.int32)


def floor(x: Value) -> Value:
    """Return the greatest whole number that is not greater."""
    return same_type("floor", x)


def ceil(x: Value) -> Value:
    """Return the least whole number that is not less."""
    return same_type("ceil", x)


def trunc(x: Value) -> Value:
    """Round toward zero; the result is a float."""
    return same_type("trunc", x)


def any(mask: Value) -> Value:
    """Whether a mask holds in one lane at least."""
    if not mask.count:
        return mask
    return Value(intrinsic(f"vector.reduce.or.{suffix(mask.x.type)}", KIND[dtypes.bool], mask.x), dtypes.bool)


def map_lanes(function: Callable[..., ir.Value], dtype: DType, *xs: Value) -> Value:
    """Apply a function of LLVM's numbers to each lane by itself; dtype: of its result."""
    b, count = current().builder, xs[0].count
    if not count:
        return Value(function(*(x.x for x in xs)), dtype)
    found: ir.Value = ir.Constant(typed(dtype, count), ir.Undefined)
    for i in range(count):
        at = ir.Constant(I32, i)
        each = [b.extract_element(x.x, at) for x in xs]
        found = b.insert_element(found, function(*each), at)
    return Value(found, dtype)


def each_lane(name: str, function: Callable[..., Value], x: Value, dtype: DType) -> Value:
    """Apply `function(m, number)` to each lane by itself, as a function of the module; dtype: of its result."""
    staged = current()
    known = staged.builder.module.globals.get(name)
    if known is None:
        with staged.inside(define(staged.builder.module, name, KIND[dtype], [("", KIND[x.dtype])])) as inner:
            known = inner.function
            known.linkage = "internal"
            inner.ret(function(FUNCTIONS, Value(known.args[0], x.dtype)).x)
    return map_lanes(lambda one: staged.builder.call(known, [one]), dtype, x)


def where_any(mask: Value, compute: Callable[[], Value], otherwise: Value) -> Value:
    """Return `compute()` where the mask holds in one lane at least, else `otherwise`, by a branch around the rest."""
    b = current().builder
    otherwise = otherwise.splat(mask.count)
    entry = b.block
    with b.if_then(any(mask).x, likely=False):
        found = compute()
        end = b.block
    merged = b.phi(otherwise.x.type)
    merged.add_incoming(otherwise.x, entry)
    merged.add_incoming(found.x, end)
    return Value(merged, otherwise.dtype)


def table_element(name: str, words: Sequence[int], index: Value) -> Value:
    """Return the word of 32 bits at an index of a constant table, as an int64 that is not negative."""
    b = current().builder
    kind = ir.ArrayType(I32, len(words))
    table = b.module.globals.get(name)
    if table is None:
        table = ir.GlobalVariable(b.module, kind, name)
        table.initializer, table.global_constant, table.linkage = ir.Constant(kind, list(words)), True, "internal"
    word = b.load(b.gep(table, [ir.Constant(I32, 0), index.x]), typ=I32)
    return Value(b.zext(word, I64), dtypes.int64)


# ---- exponents of float32, by AVX-512 --------------------------------------------------------------------------------

_FLOOR, _EVEN = 9, 8
"""The immediates of these roundings, without exceptions."""
_QUIET, _CURRENT = 8, 4
"""Rounding modes: exceptions suppressed; the processor's."""


def has_exponents(x: Value) -> bool:
    """Whether the target has the instructions, for as many lanes."""
    return x.count in (16, 32, 64) and bool(current().target.has("avx512dq"))


def fraction(x: Value) -> Value:
    """Return x - floor(x); of infinities 0."""
    return _masked("reduce", x, ir.Constant(I32, _FLOOR), _QUIET)


def round_exponent(x: Value) -> Value:
    """Return the nearest whole number, of two the even one."""
    return _masked("rndscale", x, ir.Constant(I32, _EVEN), _QUIET)


def scale(x: Value, exponent: Value) -> Value:
    """Return x 2^floor(exponent), which may overflow and underflow."""
    return _masked("scalef", x, exponent, _CURRENT)


def _masked(name: str, x: Value, operand: Value | ir.Constant, rounding: int) -> Value:
    """Apply an instruction of AVX-512 to float32, 16 lanes at a time. operand: as many, or a constant."""
    if x.count > 16:
        half = x.count // 2
        operands = [part(operand, i, half) if isinstance(operand, Value) else operand for i in (0, half)]
        return concat(*(_masked(name, part(x, i * half, half), operands[i], rounding) for i in (0, 1)))
    kind = x.x.type
    more = ir.Constant(kind, None), ir.Constant(ir.IntType(16), -1), ir.Constant(I32, rounding)
    given = operand.x if isinstance(operand, Value) else operand
    return Value(intrinsic(f"x86.avx512.mask.{name}.ps.512", kind, x.x, given, *more), x.dtype)


class Functions:
    """The array namespace of kernels: functions of values by name, and the functions passed as keywords."""

    def __init__(self, more: Callable[[str], Any] | None = None) -> None:
        self._more = more

    def __getattr__(self, name: str) -> Any:
        found = globals().get(name) or getattr(values, name, None)
        if found is None and self._more is not None:
            found = self._more(name)
        if found is None:
            raise AttributeError(f"kernels have no function {name!r}")
        setattr(self, name, found)
        return found


FUNCTIONS = Functions()
