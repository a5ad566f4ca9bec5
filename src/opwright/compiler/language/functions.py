"""Functions of the kernel language's values: one instruction each or a few.

Lives here: making vectors, selection, roundings, shuffles, reductions, mathematical functions.
Not here: dot products and look-ups, which each target has its own instructions for (dots.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from ...scalar.table import ScalarFunction
from .. import lane_functions
from .. import language as namespace
from ..lanes import Lanes
from .kinds import I1, I32, KIND, POINTER, number, suffix, typed
from .places import Pointer, Registers, allocate
from .values import Value, current, intrinsic


def _values(*xs: Any) -> tuple[Value, ...]:
    """Operands of one dtype and length; Python numbers take those of the others."""
    first = next((x for x in xs if isinstance(x, Value)), None)
    if first is None:
        raise TypeError("one operand at least is a kernel's value")
    found = [x if isinstance(x, Value) else Value(number(first.dtype, x), first.dtype) for x in xs]
    wrong = next((x for x in found if x.dtype is not first.dtype), None)
    if wrong is not None:
        raise TypeError(f"{first.dtype.name} and {wrong.dtype.name} do not mix in a kernel: x.to(dtype) converts")
    count = max(x.count for x in found)
    return tuple(x.splat(count) for x in found)


def _same(name: str, x: Value, *others: Value) -> Value:
    """llvm.NAME of operands of one type, which is the result's."""
    return Value(intrinsic(f"{name}.{suffix(x.x.type)}", x.x.type, x.x, *(o.x for o in others)), x.dtype)


# ---- made of numbers --------------------------------------------------------------------------------------------


def zeros(dtype: DType, count: int = 0) -> Value:
    """So many lanes of 0."""
    return full(dtype, count, 0)


def full(dtype: DType, count: int, x: Any) -> Value:
    """So many lanes of a number; count 0: the number."""
    return x.splat(count) if isinstance(x, Value) else Value(number(dtype, x, count), dtype)


def full_like(x: Value, number: Any, dtype: DType | None = None) -> Value:
    """A number of x's dtype, or of another, which stands for as many lanes as x has."""
    return full(dtype or x.dtype, 0, number)


def type_of(x: Value) -> DType:
    """The dtype of a value."""
    return x.dtype


def splat(x: Value, count: int) -> Value:
    """So many lanes of a number."""
    return x.splat(count)


def constant_vector(dtype: DType, numbers: Sequence[Any]) -> Value:
    """A vector of these numbers."""
    kind = ir.VectorType(KIND[dtype], len(numbers))
    return Value(ir.Constant(kind, [number(dtype, n) for n in numbers]), dtype)


def iota(dtype: DType, count: int) -> Value:
    """0, 1, 2 ..."""
    return constant_vector(dtype, range(count))


def first(n: Any, count: int) -> Value:
    """The mask of the first n of so many lanes."""
    if isinstance(n, int):
        return constant_vector(dtypes.bool, [i < n for i in range(count)])
    if count in (32, 64) and current().target.has("avx512bw"):  # a mask is a number there
        n = n.to(dtypes.int64)
        bits = select(n > 63, -1, (full(dtypes.int64, 0, 1) << clamp(n, 0, 63)) - 1)
        b = current().builder
        held = bits.x if count == 64 else b.trunc(bits.x, I32)
        return Value(b.bitcast(held, ir.VectorType(I1, count)), dtypes.bool)
    return iota(dtypes.int32, count) < n.to(dtypes.int32)


def registers(dtype: DType, count: int, *shape: int) -> Registers:
    """A tile of vectors (count 0: of numbers), for registers to hold. Its elements are not set."""
    return Registers(dtype, count, shape)


def stack(dtype: DType, n: int, align: int = 64) -> Pointer:
    """Memory for n elements that lives as long as this call of the kernel."""
    place = allocate(KIND[dtype], n, align)
    place.type = POINTER  # llvmlite takes it for a pointer to dtype alone
    memory: Pointer = current().owned(Pointer(place, dtype, align), n)
    return memory


def null(dtype: DType) -> Pointer:
    """The pointer to nothing."""
    return Pointer(ir.Constant(POINTER, None), dtype)


def pointer(address: Value, dtype: DType) -> Pointer:
    """The pointer to an address, an int64."""
    return Pointer(current().builder.inttoptr(address.x, POINTER), dtype)


# ---- choices and roundings --------------------------------------------------------------------------------------


def select(mask: Any, a: Any, c: Any) -> Value:
    """a where the mask holds, else c."""
    if isinstance(a, Pointer):
        if hasattr(a, "select"):  # memory with bounds
            return a.select(mask, c)
        return Pointer(current().builder.select(mask.x, a.x, c.x), a.dtype, min(a.align, c.align))  # type: ignore[return-value]
    a, c = _values(a, c)
    count = max(mask.count, a.count)
    a, c = a.splat(count), c.splat(count)
    chosen = mask.x if mask.count else mask.splat(count).x if count else mask.x
    return Value(current().builder.select(chosen, a.x, c.x), a.dtype)


def minimum(a: Any, c: Any, *, number: bool = False) -> Value:
    """The smaller; of floats c where one is NaN. number: whether c is known to be no NaN."""
    a, c = _values(a, c)
    if a.dtype.is_floating:
        found = lane_functions.extreme("min", a.lanes, c.lanes, number)
        return select(a < c, a, c) if found is None else Value(found.x, a.dtype)
    return _same("umin" if a.dtype.is_unsigned else "smin", a, c)


def maximum(a: Any, c: Any, *, number: bool = False) -> Value:
    """The larger; of floats c where one is NaN. number: whether c is known to be no NaN."""
    a, c = _values(a, c)
    if a.dtype.is_floating:
        found = lane_functions.extreme("max", a.lanes, c.lanes, number)
        return select(a > c, a, c) if found is None else Value(found.x, a.dtype)
    return _same("umax" if a.dtype.is_unsigned else "smax", a, c)


def clamp(x: Value, low: Any, high: Any) -> Value:
    """x within [low, high]; of floats low where x is NaN."""
    return minimum(maximum(x, low), high)


def fma(a: Any, c: Any, d: Any) -> Value:
    """a * c + d, rounded once where the target can."""
    a, c, d = _values(a, c, d)
    return _same("fmuladd", a, c, d) if a.dtype.is_floating else a * c + d


def abs(x: Value) -> Value:
    """|x|; of the least integer itself."""
    if x.dtype.is_floating:
        return _same("fabs", x)
    return x if x.dtype.is_unsigned else select(x < 0, -x, x)


def truncated_quotient(a: Any, c: Any) -> Value:
    """a / c of integers, rounded toward zero; c is not 0, nor -1 below the least integer.

    float64 has integers of up to 32 bits exactly, and processors divide vectors of floats alone.
    """
    a, c = _values(a, c)
    if a.count and a.dtype.size <= 4:
        return (a.to(dtypes.float64) / c.to(dtypes.float64)).to(dtypes.int64).to(a.dtype)
    b = current().builder
    return Value((b.udiv if a.dtype.is_unsigned else b.sdiv)(a.x, c.x), a.dtype)


def sqrt(x: Value) -> Value:
    """The square root, rounded right."""
    return _same("sqrt", x)


def round_even(x: Value) -> Value:
    """The nearest whole number, of two the even one, as a float."""
    return _same("rint", x)


def to_int(x: Value) -> Value:
    """float32 to int32, the nearest, of two the even one. x is within int32's range."""
    if current().target.is_x86 and x.count in (4, 8, 16):
        name = {4: "x86.sse2.cvtps2dq", 8: "x86.avx.cvt.ps2dq.256", 16: "x86.avx512.mask.cvtps2dq.512"}[x.count]
        kind = typed(dtypes.int32, x.count)
        if x.count * 4 <= current().target.vector_bytes:
            more = () if x.count < 16 else (
                ir.Constant(kind, None), ir.Constant(ir.IntType(16), -1), ir.Constant(I32, 4))  # fmt: skip
            return Value(intrinsic(name, kind, x.x, *more), dtypes.int32)
    if current().target.is_aarch64 and x.count % 4 == 0:
        from .neon import nearest

        return nearest(x)
    return round_even(x).to(dtypes.int32)


def floor(x: Value) -> Value:
    """The greatest whole number that is not greater."""
    return _same("floor", x)


def ceil(x: Value) -> Value:
    """The least whole number that is not less."""
    return _same("ceil", x)


def trunc(x: Value) -> Value:
    """Toward zero, as a float."""
    return _same("trunc", x)


# ---- bits and lanes ---------------------------------------------------------------------------------------------


def convert(x: Value, dtype: DType) -> Value:
    """Integers extended by their sign or cut off, floats rounded; floats, within its range, to integers toward zero."""
    return x.to(dtype)


def bitcast(x: Value, dtype: DType) -> Value:
    """The same bits as another dtype; a vector's number of lanes follows."""
    bits = x.dtype.size * (x.count or 1)
    if bits % dtype.size:
        raise TypeError(f"{bits} bytes are no whole number of {dtype.name}")
    count = bits // dtype.size
    kind = typed(dtype, count if x.count or count > 1 else 0)
    return Value(current().builder.bitcast(x.x, kind), dtype)


def shuffle(a: Value, c: Value | None, indices: Sequence[int]) -> Value:
    """Lanes of a and, counted on, of c, by constant indices; -1 for any."""
    other = ir.Constant(a.x.type, ir.Undefined) if c is None else c.x
    lanes = [ir.Constant(I32, max(i, 0)) for i in indices]
    mask = ir.Constant(ir.VectorType(I32, len(lanes)), lanes)
    return Value(current().builder.shuffle_vector(a.x, other, mask), a.dtype)


def concat(a: Value, c: Value) -> Value:
    """The lanes of both, one after the other."""
    return shuffle(a, c, range(a.count + c.count))


def part(a: Value, start: int, count: int) -> Value:
    """count lanes from start on."""
    return shuffle(a, None, range(start, start + count))


def opaque(v: Value) -> Value:
    """The same vector or number, of which LLVM knows nothing more: an instruction keeps it as an operand as it is.

    A vector only where it fills a register of x86 or AArch64; otherwise LLVM sees through.
    """
    target, kind = current().target, v.x.type
    register = "r" if not v.count else "x" if target.is_x86 else "w" if target.is_aarch64 else None
    if register is None or (v.count and v.count * v.dtype.size not in (16, target.vector_bytes)):
        return v
    empty = ir.InlineAsm(ir.FunctionType(kind, [kind]), "", f"={register},0", side_effect=False)
    return Value(current().builder.call(empty, [v.x]), v.dtype)


def opaque_pointer(p: Pointer) -> Pointer:
    """The same pointer, of which LLVM knows nothing more: it has a register of its own.

    So rows at one pitch are read by one index from registers that say where they begin, rather than by sums that are
    computed again at each step.
    """
    empty = ir.InlineAsm(ir.FunctionType(POINTER, [POINTER]), "", "=r,0", side_effect=False)
    return Pointer(current().builder.call(empty, [p.x]), p.dtype, p.align)


EXPECT = "llvm.expect.i1"
"""The call that marks a condition as likely; control.py reads it."""


def likely(condition: Value) -> Value:
    """The same condition, which LLVM takes to hold nearly always: what follows where it does not gets no registers that
    the rest wants."""
    kind = condition.x.type
    return Value(intrinsic(EXPECT.removeprefix("llvm."), kind, condition.x, ir.Constant(kind, 1)), condition.dtype)


def after(p: Pointer, v: Value) -> Pointer:
    """The same pointer, which LLVM takes to depend on a vector: what is loaded from it is not loaded before that is
    known, when registers hold something else."""
    register = "x" if current().target.is_x86 else "w"
    empty = ir.InlineAsm(ir.FunctionType(POINTER, [POINTER, v.x.type]), "", f"=r,0,{register}", side_effect=False)
    return Pointer(current().builder.call(empty, [p.x, v.x]), p.dtype, p.align)


def insert(v: Value, lane: int, x: Any) -> Value:
    """The vector with one lane changed."""
    (one,) = _values(x) if isinstance(x, Value) else (Value(number(v.dtype, x), v.dtype),)
    return Value(current().builder.insert_element(v.x, one.x, ir.Constant(I32, lane)), v.dtype)


def reduce_add(v: Value) -> Value:
    """The sum of the lanes; of floats in pairs, halves first."""
    if not v.dtype.is_floating:
        return Value(intrinsic(f"vector.reduce.add.{suffix(v.x.type)}", KIND[v.dtype], v.x), v.dtype)
    return _halved(v, lambda a, c: a + c)


def reduce_max(v: Value) -> Value:
    """The largest lane."""
    return _halved(v, maximum)


def reduce_min(v: Value) -> Value:
    """The smallest lane."""
    return _halved(v, minimum)


def _halved(v: Value, join: Callable[[Value, Value], Value]) -> Value:
    while v.count > 1:
        half = v.count // 2
        v = join(part(v, 0, half), part(v, half, half))
    return v[0]


def any(mask: Value) -> Value:
    """Whether a mask holds in one lane at least."""
    return Value(intrinsic(f"vector.reduce.or.{suffix(mask.x.type)}", KIND[dtypes.bool], mask.x), dtypes.bool)


def all(mask: Value) -> Value:
    """Whether a mask holds in every lane."""
    return Value(intrinsic(f"vector.reduce.and.{suffix(mask.x.type)}", KIND[dtypes.bool], mask.x), dtypes.bool)


def gather(p: Pointer, indices: Value, mask: Value | None = None) -> Value:
    """The elements at these indices; of a number, the one at it."""
    if not indices.count:
        return p[indices]
    b, count = current().builder, indices.count
    at = b.gep(p.x, [indices.to(dtypes.int64).x], source_etype=KIND[p.dtype])
    at.type = ir.VectorType(POINTER, count)  # llvmlite takes it for one pointer
    kind = typed(p.dtype, count)
    held = constant_vector(dtypes.bool, [True] * count) if mask is None else mask
    return Value(intrinsic(f"masked.gather.{suffix(kind)}.v{count}p0", kind, at, ir.Constant(I32, p.dtype.size), held.x,
                           ir.Constant(kind, None)), p.dtype)  # fmt: skip


# ---- functions of the table -------------------------------------------------------------------------------------


def on_lanes(function: Callable[..., Lanes], *xs: Any) -> Value:
    """A function of scalar/numerics, `function(m, *lanes)`, of values of one dtype, which is the result's."""
    values = _values(*xs)
    return Value(function(lane_functions, *(x.lanes for x in values)).x, values[0].dtype)


def function_of(row: ScalarFunction) -> Callable[..., Value]:
    """A row of the table as a function of the language: of floats its exact code, where it has none its formula."""

    def compute(*xs: Any) -> Value:
        values = _values(*xs)
        dtype = values[0].dtype
        exact = row.numerics("exact") if dtype.is_floating else None
        if exact is None:
            found: Value = row.code(namespace, *values)
            return found
        if dtype is not dtypes.float32 and not row.takes_float64:
            raise TypeError(f"{row.name} is of float32, found {dtype.name}")
        return on_lanes(exact, *values)

    compute.__name__ = compute.__qualname__ = row.name
    compute.__doc__ = f"{row.name}, of float32 within {row.exact_ulps:g} unit in the last place (scalar/table.py)."
    return compute
