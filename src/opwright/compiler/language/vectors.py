"""Vectors and memory in kernels: constant vectors, reductions, gathers, and hints to LLVM.

Lives here: vectors of several numbers, reductions, stack memory, `gather`, `likely`, `opaque`, `after`.
Not here: lane-wise functions (functions.py), shuffles (values.py), pointers (pointers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from .functions import full
from .llvm_types import I1, I32, KIND, POINTER, number, suffix, typed
from .pointers import Pointer, Registers, TailMask, allocate
from .trace import current, intrinsic
from .values import Value, alike, clamp, maximum, minimum, part, select


def splat(x: Value, count: int) -> Value:
    """Broadcast a scalar to a vector."""
    return x.splat(count)


def constant_vector(dtype: DType, numbers: Sequence[Any]) -> Value:
    """Return a constant vector."""
    kind = ir.VectorType(KIND[dtype], len(numbers))
    return Value(ir.Constant(kind, [number(dtype, n) for n in numbers]), dtype)


def iota(dtype: DType, count: int) -> Value:
    """Return the vector 0, 1, 2 ..."""
    return constant_vector(dtype, range(count))


def first(n: Any, count: int) -> Value:
    """Return the mask of the first n lanes."""
    if isinstance(n, int):
        return constant_vector(dtypes.bool, [i < n for i in range(count)])
    if count in (32, 64) and current().target.has("avx512bw"):  # a mask is a number there
        n = n.to(dtypes.int64)
        bits = select(n > 63, -1, (full(dtypes.int64, 0, 1) << clamp(n, 0, 63)) - 1)
        b = current().builder
        mask = bits.x if count == 64 else b.trunc(bits.x, I32)
        return Value(b.bitcast(mask, ir.VectorType(I1, count)), dtypes.bool)
    limit: Value = n.to(dtypes.int32)
    return iota(dtypes.int32, count) < limit


def tail_mask(remaining: Any, count: int) -> Value:
    """Return the mask of a vector at the end of a loop: the first `remaining` lanes, at most `count`."""
    mask = first(minimum(remaining, count), count)
    return mask if isinstance(remaining, int) else TailMask(mask.x, remaining >= count)


def insert(v: Value, lane: int, x: Any) -> Value:
    """Return the vector with one lane replaced."""
    (one,) = alike(x) if isinstance(x, Value) else (Value(number(v.dtype, x), v.dtype),)
    return Value(current().builder.insert_element(v.x, one.x, ir.Constant(I32, lane)), v.dtype)


def reduce_add(v: Value) -> Value:
    """Return the sum of the lanes; floats are added pairwise, by halves."""
    if not v.dtype.is_floating:
        return Value(intrinsic(f"vector.reduce.add.{suffix(v.x.type)}", KIND[v.dtype], v.x), v.dtype)
    return reduce_lanes(v, lambda a, c: a + c)


def reduce_max(v: Value) -> Value:
    """Return the largest lane."""
    return reduce_lanes(v, maximum)


def reduce_min(v: Value) -> Value:
    """Return the smallest lane."""
    return reduce_lanes(v, minimum)


def reduce_lanes(v: Value, combine: Callable[[Value, Value], Value]) -> Value:
    """Combine the lanes of a vector pairwise, by halves."""
    while v.count > 1:
        half = v.count // 2
        v = combine(part(v, 0, half), part(v, half, half))
    return v[0]


def all(mask: Value) -> Value:
    """Return whether every lane of a mask is true."""
    return Value(intrinsic(f"vector.reduce.and.{suffix(mask.x.type)}", KIND[dtypes.bool], mask.x), dtypes.bool)


def registers(dtype: DType, count: int, *shape: int) -> Registers:
    """Return a register tile of vectors, of scalars if count is 0, with undefined elements."""
    return Registers(dtype, count, shape)


def stack(dtype: DType, n: int, align: int = 64) -> Pointer:
    """Allocate stack memory for n elements, valid during this call of the kernel."""
    memory = allocate(KIND[dtype], n, align)
    memory.type = POINTER  # llvmlite's type is a pointer to one dtype
    return current().owned(Pointer(memory, dtype, align), n)


def null(dtype: DType) -> Pointer:
    """Return the null pointer."""
    return Pointer(ir.Constant(POINTER, None), dtype)


def pointer(address: Value, dtype: DType) -> Pointer:
    """Convert an address, an int64, to a pointer."""
    return Pointer(current().builder.inttoptr(address.x, POINTER), dtype)


def gather(p: Pointer, indices: Value, mask: Value | None = None) -> Value:
    """Load the elements at the indices of a vector, or the element at a scalar index."""
    if not indices.count:
        return p[indices]
    b, count = current().builder, indices.count
    addresses = b.gep(p.x, [indices.to(dtypes.int64).x], source_etype=KIND[p.dtype])
    addresses.type = ir.VectorType(POINTER, count)  # llvmlite's type is a scalar pointer
    kind = typed(p.dtype, count)
    lanes = constant_vector(dtypes.bool, [True] * count) if mask is None else mask
    return Value(
        intrinsic(
            f"masked.gather.{suffix(kind)}.v{count}p0",
            kind,
            addresses,
            ir.Constant(I32, p.dtype.size),
            lanes.x,
            ir.Constant(kind, None),
        ),
        p.dtype,
    )


def opaque(v: Value) -> Value:
    """Return the same value, opaque to LLVM's optimizations.

    Vectors are opaque only if they fill a register of x86 or AArch64.
    """
    target, kind = current().target, v.x.type
    register = "r" if not v.count else "x" if target.is_x86 else "w" if target.is_aarch64 else None
    if register is None or (v.count and v.count * v.dtype.size not in (16, target.vector_bytes)):
        return v
    empty = ir.InlineAsm(ir.FunctionType(kind, [kind]), "", f"={register},0", side_effect=False)
    return Value(current().builder.call(empty, [v.x]), v.dtype)


def opaque_pointer(p: Pointer) -> Pointer:
    """Return the same pointer, opaque to LLVM, which keeps it in a register.

    Rows of one pitch are then addressed by their base registers and a common index, instead of by sums that are
    recomputed at each step.
    """
    empty = ir.InlineAsm(ir.FunctionType(POINTER, [POINTER]), "", "=r,0", side_effect=False)
    return Pointer(current().builder.call(empty, [p.x]), p.dtype, p.align)


EXPECT = "llvm.expect.i1"
"""The call that marks a condition as likely; branches.py reads it."""


def likely(condition: Value) -> Value:
    """Return the same condition, which LLVM assumes to be true nearly always.

    The code of the unlikely branch then takes no registers from the likely one.
    """
    kind = condition.x.type
    return Value(intrinsic(EXPECT.removeprefix("llvm."), kind, condition.x, ir.Constant(kind, 1)), condition.dtype)


def after(p: Pointer, v: Value) -> Pointer:
    """Return the same pointer with a dependence on a vector, which delays loads until the vector is computed.

    Earlier loads would occupy registers.
    """
    target = current().target
    register = "v" if target.has("avx512f") else "x" if target.is_x86 else "w"
    empty = ir.InlineAsm(ir.FunctionType(POINTER, [POINTER, v.x.type]), "", f"=r,0,{register}", side_effect=False)
    return Pointer(current().builder.call(empty, [p.x, v.x]), p.dtype, p.align)
