"""Vectors and memory in kernels: lanes by number, reductions, look-ups, and what LLVM is to take for granted.

Lives here: vectors of several numbers, reductions, memory of the kernel's own, `gather`, `likely`, `opaque`, `after`.
Not here: functions of each lane by itself (functions.py), shuffles (values.py), pointers (places.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from .functions import full
from .kinds import I1, I32, KIND, POINTER, number, suffix, typed
from .places import Pointer, Registers, allocate
from .trace import current, intrinsic
from .values import Value, alike, clamp, maximum, minimum, part, select

# ---- lanes by number -------------------------------------------------------------------------------------------------


def splat(x: Value, count: int) -> Value:
    """Return a vector of one number."""
    return x.splat(count)


def constant_vector(dtype: DType, numbers: Sequence[Any]) -> Value:
    """Return a vector of these numbers."""
    kind = ir.VectorType(KIND[dtype], len(numbers))
    return Value(ir.Constant(kind, [number(dtype, n) for n in numbers]), dtype)


def iota(dtype: DType, count: int) -> Value:
    """Return 0, 1, 2 ..."""
    return constant_vector(dtype, range(count))


def first(n: Any, count: int) -> Value:
    """Return the mask of the first n lanes."""
    if isinstance(n, int):
        return constant_vector(dtypes.bool, [i < n for i in range(count)])
    if count in (32, 64) and current().target.has("avx512bw"):  # a mask is a number there
        n = n.to(dtypes.int64)
        bits = select(n > 63, -1, (full(dtypes.int64, 0, 1) << clamp(n, 0, 63)) - 1)
        b = current().builder
        held = bits.x if count == 64 else b.trunc(bits.x, I32)
        return Value(b.bitcast(held, ir.VectorType(I1, count)), dtypes.bool)
    return iota(dtypes.int32, count) < n.to(dtypes.int32)


def insert(v: Value, lane: int, x: Any) -> Value:
    """Return the vector with one lane changed."""
    (one,) = alike(x) if isinstance(x, Value) else (Value(number(v.dtype, x), v.dtype),)
    return Value(current().builder.insert_element(v.x, one.x, ir.Constant(I32, lane)), v.dtype)


# ---- reductions ------------------------------------------------------------------------------------------------------


def reduce_add(v: Value) -> Value:
    """Return the sum of the lanes; of floats in pairs, halves first."""
    if not v.dtype.is_floating:
        return Value(intrinsic(f"vector.reduce.add.{suffix(v.x.type)}", KIND[v.dtype], v.x), v.dtype)
    return _halved(v, lambda a, c: a + c)


def reduce_max(v: Value) -> Value:
    """Return the largest lane."""
    return _halved(v, maximum)


def reduce_min(v: Value) -> Value:
    """Return the smallest lane."""
    return _halved(v, minimum)


def _halved(v: Value, join: Callable[[Value, Value], Value]) -> Value:
    while v.count > 1:
        half = v.count // 2
        v = join(part(v, 0, half), part(v, half, half))
    return v[0]


def all(mask: Value) -> Value:
    """Whether a mask holds in every lane."""
    return Value(intrinsic(f"vector.reduce.and.{suffix(mask.x.type)}", KIND[dtypes.bool], mask.x), dtypes.bool)


# ---- memory ----------------------------------------------------------------------------------------------------------


def registers(dtype: DType, count: int, *shape: int) -> Registers:
    """Return a tile of vectors (count 0: of numbers), for registers to hold. Its elements are not set."""
    return Registers(dtype, count, shape)


def stack(dtype: DType, n: int, align: int = 64) -> Pointer:
    """Allocate memory for n elements, which lives as long as this call of the kernel."""
    place = allocate(KIND[dtype], n, align)
    place.type = POINTER  # llvmlite takes it for a pointer to dtype alone
    memory: Pointer = current().owned(Pointer(place, dtype, align), n)
    return memory


def null(dtype: DType) -> Pointer:
    """Return the null pointer."""
    return Pointer(ir.Constant(POINTER, None), dtype)


def pointer(address: Value, dtype: DType) -> Pointer:
    """Return the pointer to an address, an int64."""
    return Pointer(current().builder.inttoptr(address.x, POINTER), dtype)


def gather(p: Pointer, indices: Value, mask: Value | None = None) -> Value:
    """Load the elements at these indices; of a number, the one at it."""
    if not indices.count:
        return p[indices]
    b, count = current().builder, indices.count
    at = b.gep(p.x, [indices.to(dtypes.int64).x], source_etype=KIND[p.dtype])
    at.type = ir.VectorType(POINTER, count)  # llvmlite takes it for one pointer
    kind = typed(p.dtype, count)
    held = constant_vector(dtypes.bool, [True] * count) if mask is None else mask
    return Value(
        intrinsic(
            f"masked.gather.{suffix(kind)}.v{count}p0",
            kind,
            at,
            ir.Constant(I32, p.dtype.size),
            held.x,
            ir.Constant(kind, None),
        ),
        p.dtype,
    )


# ---- what LLVM knows -------------------------------------------------------------------------------------------------


def opaque(v: Value) -> Value:
    """Return the same vector or number, opaque to LLVM: an instruction keeps it as an operand as it is.

    A vector only where it fills a register of x86 or AArch64; otherwise LLVM sees through.
    """
    target, kind = current().target, v.x.type
    register = "r" if not v.count else "x" if target.is_x86 else "w" if target.is_aarch64 else None
    if register is None or (v.count and v.count * v.dtype.size not in (16, target.vector_bytes)):
        return v
    empty = ir.InlineAsm(ir.FunctionType(kind, [kind]), "", f"={register},0", side_effect=False)
    return Value(current().builder.call(empty, [v.x]), v.dtype)


def opaque_pointer(p: Pointer) -> Pointer:
    """Return the same pointer, opaque to LLVM: it has a register of its own.

    So rows at one pitch are read by one index from registers that say where they begin, rather than by sums that are
    computed again at each step.
    """
    empty = ir.InlineAsm(ir.FunctionType(POINTER, [POINTER]), "", "=r,0", side_effect=False)
    return Pointer(current().builder.call(empty, [p.x]), p.dtype, p.align)


EXPECT = "llvm.expect.i1"
"""The call that marks a condition as likely; branches.py reads it."""


def likely(condition: Value) -> Value:
    """Return the same condition, which LLVM takes to hold nearly always.

    The code for where it does not hold gets no registers that the rest wants.
    """
    kind = condition.x.type
    return Value(intrinsic(EXPECT.removeprefix("llvm."), kind, condition.x, ir.Constant(kind, 1)), condition.dtype)


def after(p: Pointer, v: Value) -> Pointer:
    """Return the same pointer, which LLVM takes to depend on a vector.

    Nothing is loaded from it before the vector is known, when registers hold something else.
    """
    register = "x" if current().target.is_x86 else "w"
    empty = ir.InlineAsm(ir.FunctionType(POINTER, [POINTER, v.x.type]), "", f"=r,0,{register}", side_effect=False)
    return Pointer(current().builder.call(empty, [p.x, v.x]), p.dtype, p.align)
