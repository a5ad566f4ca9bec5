"""Functions of the kernel language's values, each one or a few instructions.

Lives here: arithmetic, rounding, conversion, table lookup, per-lane code, rare lanes; `FUNCTIONS`, their namespace.
Not here: select and extremes (values.py), rows of the scalar table (operators.py), functions of whole vectors
(vectors.py), dot products and lookups with instructions specific to each target (dots.py).

Formulas of `scalar/` use the names of this module and of values.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from ...scalar import formulas
from . import values
from .llvm_types import F32, I32, I64, KIND, constants, number, suffix, typed
from .neon import nearest
from .trace import current, define, intrinsic
from .values import Value, alike, concat, part, same_type

if TYPE_CHECKING:
    from ...scalar.namespace import MathNamespace


def zeros(dtype: DType, count: int = 0) -> Value:
    """Return a vector of zeros; a scalar if count is 0."""
    return full(dtype, count, 0)


def full(dtype: DType, count: int, x: Any) -> Value:
    """Return a vector with x in every lane; a scalar if count is 0."""
    return x.splat(count) if isinstance(x, Value) else Value(number(dtype, x, count), dtype)


def full_like(x: Value, number: Any, dtype: DType | None = None) -> Value:
    """Return a scalar of x's dtype, or of another one; it broadcasts to the lanes of x."""
    return full(dtype or x.dtype, 0, number)


def type_of(x: Value) -> DType:
    """Return the dtype of a value."""
    return x.dtype


def fma(a: Any, c: Any, d: Any) -> Value:
    """Return a * c + d, rounded once if the target has fused multiply-add."""
    a, c, d = alike(a, c, d)
    return same_type("fmuladd", a, c, d) if a.dtype.is_floating else a * c + d


def abs(x: Value) -> Value:
    """Return |x|; the smallest integer of a dtype is returned unchanged."""
    return x.__abs__()


def truncated_quotient(a: Any, c: Any) -> Value:
    """Return the quotient of integers, rounded toward zero. c must not be 0, nor -1 if a is the smallest integer.

    Vectors are divided in a float with at least half as many bits again: processors divide only vectors of floats. A
    quotient that is no integer is then farther from one than it is rounded.
    """
    a, c = alike(a, c)
    if a.count and a.dtype.size <= 4:
        wide = dtypes.float64 if a.dtype.size == 4 else dtypes.float32
        exact: Value = a.to(wide) / c.to(wide)
        # int64 is what AVX2 converts one by one: uint32 is shifted to int32
        if a.dtype is dtypes.uint32:
            return (trunc(exact) - 2.0**31).to(dtypes.int32).to(a.dtype) ^ 0x80000000
        return exact.to(dtypes.int32).to(a.dtype)
    b = current().builder
    return Value((b.udiv if a.dtype.is_unsigned else b.sdiv)(a.x, c.x), a.dtype)


def divided(name: str, a: Value, c: Value) -> Value:
    """Return the quotient or remainder of integers for any divisor: 0 for a divisor of 0, on which processors trap.

    name: the LLVM instruction. raises ZeroDivisionError for a constant divisor of 0
    """
    if not isinstance(c.x, ir.Constant):
        divide = formulas.remainder if name.endswith("rem") else formulas.quotient
        result: Value = divide(FUNCTIONS, a, c)
        return result
    if 0 in (constants(c.x) or ()):
        raise ZeroDivisionError(f"{a.dtype.name} is divided by 0")
    return Value(getattr(current().builder, name)(a.x, c.x), a.dtype)


def wide_product(a: Value, c: Value) -> tuple[Value, Value]:
    """Return the lower and the upper half of the product of two uint64 scalars: one instruction of processors."""
    b, wide = current().builder, ir.IntType(128)
    product = b.mul(b.zext(a.x, wide), b.zext(c.x, wide))
    upper = b.lshr(product, ir.Constant(wide, 64))
    return Value(b.trunc(product, I64), a.dtype), Value(b.trunc(upper, I64), a.dtype)


def float_remainder(a: Value, c: Value) -> Value:
    """Return a - c trunc(a / c) of floats, like fmod of the C library."""
    return Value(current().builder.frem(a.x, c.x), a.dtype)


def copysign(x: Value, sign: Any) -> Value:
    """Return |x| with the sign of `sign`."""
    return same_type("copysign", *alike(x, sign))


def convert(x: Value, dtype: DType) -> Value:
    """Convert to a dtype: extend or truncate integers, round floats; floats become integers toward zero."""
    return x.to(dtype)


_BELOW_2_31 = 2.0**31 - 2.0**7
"""The largest float32 below 2^31."""


def to_integer(x: Value, dtype: DType) -> Value:
    """Convert floats to integers toward zero with saturation; NaN becomes 0.

    x86 has no such instruction, and LLVM expands the intrinsic lane by lane: vectors of float32 are clamped first, to
    the largest float32 below the end.
    """
    if current().target.is_x86 and x.count and x.dtype is dtypes.float32 and dtype.size <= 4 and dtype != dtypes.uint32:
        least, most = float(dtype.min), float(dtype.max) if dtype.size < 4 else _BELOW_2_31
        integer = values.clamp(values.select(x == x, x, 0.0), least, most).to(dtypes.int32)
        return integer.to(dtype) if dtype.size < 4 else values.select(x > most, dtype.max, integer)
    kind = typed(dtype, x.count)
    name = "fptoui" if dtype.is_unsigned else "fptosi"
    return Value(intrinsic(f"{name}.sat.{suffix(kind)}.{suffix(x.x.type)}", kind, x.x), dtype)


def sqrt(x: Value) -> Value:
    """Return the square root, correctly rounded."""
    return same_type("sqrt", x)


def round_even(x: Value) -> Value:
    """Round to the nearest integer, ties to even; the result is a float."""
    return same_type("rint", x)


def to_int(x: Value) -> Value:
    """Convert float32 to the nearest int32, ties to even. x must be within the range of int32."""
    if current().target.is_x86 and x.count in (4, 8, 16):
        name = {4: "x86.sse2.cvtps2dq", 8: "x86.avx.cvt.ps2dq.256", 16: "x86.avx512.mask.cvtps2dq.512"}[x.count]
        kind = typed(dtypes.int32, x.count)
        if x.count * 4 <= current().target.vector_bytes:
            masked = ir.Constant(kind, None), ir.Constant(ir.IntType(16), -1), ir.Constant(I32, 4)
            return Value(intrinsic(name, kind, x.x, *(masked if x.count == 16 else ())), dtypes.int32)
    if current().target.is_aarch64 and x.count % 4 == 0:
        return nearest(x)
    if current().target.has("vfp2sp") and x.count < 2:  # VCVTR rounds as FPSCR says, which is to even
        return map_lanes(_vcvtr, dtypes.int32, x)
    return round_even(x).to(dtypes.int32)


def _vcvtr(x: ir.Value) -> ir.Value:
    return current().builder.bitcast(intrinsic("arm.vcvtr.f32", F32, x), I32)


def floor(x: Value) -> Value:
    """Round toward negative infinity; the result is a float."""
    return same_type("floor", x)


def ceil(x: Value) -> Value:
    """Round toward positive infinity; the result is a float."""
    return same_type("ceil", x)


def trunc(x: Value) -> Value:
    """Round toward zero; the result is a float."""
    return same_type("trunc", x)


def any(mask: Value) -> Value:
    """Return whether any lane of a mask is true."""
    if not mask.count:
        return mask
    return Value(intrinsic(f"vector.reduce.or.{suffix(mask.x.type)}", KIND[dtypes.bool], mask.x), dtypes.bool)


def map_lanes(function: Callable[..., ir.Value], dtype: DType, *xs: Value) -> Value:
    """Apply a function of LLVM scalars to each lane. dtype: of the result."""
    b, count = current().builder, xs[0].count
    if not count:
        return Value(function(*(x.x for x in xs)), dtype)
    result: ir.Value = ir.Constant(typed(dtype, count), ir.Undefined)
    for i in range(count):
        lane = ir.Constant(I32, i)
        elements = [b.extract_element(x.x, lane) for x in xs]
        result = b.insert_element(result, function(*elements), lane)
    return Value(result, dtype)


def each_lane(name: str, function: Callable[..., Value], x: Value, dtype: DType) -> Value:
    """Apply `function(m, scalar)` to each lane by calls of an LLVM function `name`. dtype: of the result."""
    staged = current()
    callee = staged.builder.module.globals.get(name)
    if callee is None:
        with staged.inside(define(staged.builder.module, name, KIND[dtype], [("", KIND[x.dtype])])) as inner:
            callee = inner.function
            callee.linkage = "internal"
            inner.ret(function(FUNCTIONS, Value(callee.args[0], x.dtype)).x)
    return map_lanes(lambda element: staged.builder.call(callee, [element]), dtype, x)


def where_any(mask: Value, compute: Callable[[], Value], otherwise: Value) -> Value:
    """Return `compute()` if any lane of the mask is true, else `otherwise`, by a branch around the computation."""
    b = current().builder
    otherwise = otherwise.splat(mask.count)
    entry = b.block
    with b.if_then(any(mask).x, likely=False):
        result = compute()
        end = b.block
    merged = b.phi(otherwise.x.type)
    merged.add_incoming(otherwise.x, entry)
    merged.add_incoming(result.x, end)
    return Value(merged, otherwise.dtype)


def table_element(name: str, words: Sequence[int], index: Value) -> Value:
    """Return an element of a constant table of uint32, zero-extended to int64."""
    b = current().builder
    kind = ir.ArrayType(I32, len(words))
    table = b.module.globals.get(name)
    if table is None:
        table = ir.GlobalVariable(b.module, kind, name)
        table.initializer, table.global_constant, table.linkage = ir.Constant(kind, list(words)), True, "internal"
    word = b.load(b.gep(table, [ir.Constant(I32, 0), index.x]), typ=I32)
    return Value(b.zext(word, I64), dtypes.int64)


_FLOOR, _EVEN = 9, 8
"""Immediates of AVX-512 for these rounding modes, with exceptions suppressed."""
_QUIET, _CURRENT = 8, 4
"""Rounding operands of AVX-512: exceptions suppressed; the current mode."""


def has_exponents(x: Value) -> bool:
    """Return whether the target has AVX-512's exponent instructions for the lanes of x."""
    return x.count in (16, 32, 64) and bool(current().target.has("avx512dq"))


def fraction(x: Value) -> Value:
    """Return x - floor(x); 0 for infinities."""
    return _masked("reduce", x, ir.Constant(I32, _FLOOR), _QUIET)


def round_exponent(x: Value) -> Value:
    """Round to the nearest integer, ties to even."""
    return _masked("rndscale", x, ir.Constant(I32, _EVEN), _QUIET)


def scale(x: Value, exponent: Value) -> Value:
    """Return x 2^floor(exponent), which may overflow or underflow."""
    return _masked("scalef", x, exponent, _CURRENT)


def _masked(name: str, x: Value, operand: Value | ir.Constant, rounding: int) -> Value:
    """Apply an instruction of AVX-512 to float32, 16 lanes at a time. operand: a vector with as many lanes, or a
    constant."""
    if x.count > 16:
        half = x.count // 2
        operands = [part(operand, i, half) if isinstance(operand, Value) else operand for i in (0, half)]
        return concat(*(_masked(name, part(x, i * half, half), operands[i], rounding) for i in (0, 1)))
    kind = x.x.type
    more = ir.Constant(kind, None), ir.Constant(ir.IntType(16), -1), ir.Constant(I32, rounding)
    second = operand.x if isinstance(operand, Value) else operand
    return Value(intrinsic(f"x86.avx512.mask.{name}.ps.512", kind, x.x, second, *more), x.dtype)


class KernelNamespace:
    """The array namespace of kernels: the functions of this module and of values.py, extended by `more(name)`."""

    def __init__(self, more: Callable[[str], Any] | None = None) -> None:
        self._more = more

    def __getattr__(self, name: str) -> Any:
        function = globals().get(name) or getattr(values, name, None)
        if function is None and self._more is not None:
            function = self._more(name)
        if function is None:
            raise AttributeError(f"kernels have no function {name!r}")
        setattr(self, name, function)
        return function


FUNCTIONS = cast("MathNamespace[Value]", KernelNamespace())  # which has its functions by name
