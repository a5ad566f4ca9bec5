"""Where a kernel's values are read and written: pointers, memory on the stack, tiles of registers.

Lives here: `Pointer`, `Registers`, `allocate`, `copy`.  Not here: values (values.py), arrays with bounds (arrays.py).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from .kinds import I1, I32, I64, KIND, number, stored, suffix, typed
from .trace import current, intrinsic
from .values import Value, value


class Pointer:
    """The place of elements of one dtype. Bounds are the kernel's to keep.

    `p[i]` reads a number, `p[i] = v` writes a number or a vector; `p + i` is i elements further.
    align: bytes that its address is known to be a multiple of.
    """

    __slots__ = ("align", "dtype", "x")

    def __init__(self, x: ir.Value, dtype: DType, align: int | None = None) -> None:
        self.x, self.dtype, self.align = x, dtype, align or dtype.size

    def __add__(self, i: Any) -> Pointer:
        if isinstance(i, int) and i == 0:
            return self
        return Pointer(self._at(i), self.dtype, min(self.align, self.dtype.size))

    __radd__ = __add__

    def __sub__(self, i: Any) -> Pointer:
        return self + (-i)

    def _at(self, i: Any) -> ir.Value:
        if isinstance(i, int) and i == 0:
            return self.x
        index = value(i)
        if index.dtype.size < 8:
            index = index.to(dtypes.int64)
        return current().builder.gep(self.x, [index.x], source_etype=KIND[stored(self.dtype)])

    def __eq__(self, o: Any) -> Value:  # type: ignore[override]
        return Value(current().builder.icmp_unsigned("==", self.x, o.x), dtypes.bool)

    def __ne__(self, o: Any) -> Value:  # type: ignore[override]
        return Value(current().builder.icmp_unsigned("!=", self.x, o.x), dtypes.bool)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, i: Any) -> Value:
        return self.load(i, 0)

    def __setitem__(self, i: Any, v: Any) -> None:
        self.store(v, i)

    def _alignment(self, i: Any) -> int:
        return (
            self.align
            if isinstance(i, int) and i * self.dtype.size % self.align == 0
            else min(self.align, self.dtype.size)
        )

    def load(self, i: Any = 0, count: int = 0, mask: Value | None = None, *, temporal: bool = True) -> Value:
        """Load count elements from i on; count 0: one, as a number. mask: lanes that are read; others are 0."""
        b, at = current().builder, self._at(i)
        kind = typed(stored(self.dtype), count)
        if mask is None:
            x = b.load(at, align=self._alignment(i), typ=kind)
            if not temporal:
                x.set_metadata("nontemporal", b.module.add_metadata([ir.Constant(I32, 1)]))
        else:
            x = intrinsic(
                f"masked.load.{suffix(kind)}.p0",
                kind,
                at,
                ir.Constant(I32, self._alignment(i)),
                mask.x,
                ir.Constant(kind, None),
            )
        found = Value(x, stored(self.dtype))
        return found != 0 if self.dtype.is_bool else found

    def store(self, v: Any, i: Any = 0, mask: Value | None = None, *, temporal: bool = True) -> None:
        """Write a number or a vector from i on. mask: lanes that are written. temporal=False: past the caches."""
        b, at = current().builder, self._at(i)
        v = v if isinstance(v, Value) else Value(number(self.dtype, v), self.dtype)
        if v.dtype is not self.dtype:
            raise TypeError(f"a pointer to {self.dtype.name} takes no {v.dtype.name}: x.to(dtype) converts")
        if v.dtype.is_bool:
            v = v.to(dtypes.uint8)
        if mask is None:
            written = b.store(v.x, at, align=self._alignment(i))
            if not temporal:
                written.set_metadata("nontemporal", b.module.add_metadata([ir.Constant(I32, 1)]))
        else:
            intrinsic(
                f"masked.store.{suffix(v.x.type)}.p0",
                ir.VoidType(),
                v.x,
                at,
                ir.Constant(I32, self._alignment(i)),
                mask.x,
            )

    def cast(self, dtype: DType, align: int = 1) -> Pointer:
        """Return the same place as elements of another dtype; align: bytes that its address is a multiple of."""
        return Pointer(self.x, dtype, align)

    def prefetch(self, i: Any = 0, *, write: bool = False, locality: int = 3) -> None:
        """Ask for the cache line of element i. locality: 3 into the first cache ... 0 soon not needed."""
        intrinsic("prefetch.p0", ir.VoidType(), self._at(i), *(ir.Constant(I32, n) for n in (int(write), locality, 1)))

    def address(self) -> Value:
        """Return the address as an int64."""
        return Value(current().builder.ptrtoint(self.x, I64), dtypes.int64)

    def chosen(self, mask: Value, other: Any) -> Pointer:
        """Return this pointer where the mask holds, else another one."""
        return Pointer(current().builder.select(mask.x, self.x, other.x), self.dtype, min(self.align, other.align))

    def __repr__(self) -> str:
        return f"<ptr[{self.dtype.short}] of kernel {current().name!r}>"


def allocate(kind: ir.Type, size: int = 1, align: int | None = None) -> ir.Value:
    """Allocate memory on the stack, in the function's first block."""
    b = current().builder
    with b.goto_entry_block():
        place = b.alloca(kind, ir.Constant(I64, size) if size != 1 else None)
        if align is not None:
            place.align = align
    return place


class Registers:
    """A tile of numbers or vectors that a kernel keeps in registers: `tile[i, j]`, read and written by Python ints."""

    __slots__ = ("count", "dtype", "places", "shape")

    def __init__(self, dtype: DType, count: int, shape: tuple[int, ...]) -> None:
        self.dtype, self.count, self.shape = dtype, count, shape
        self.places: dict[tuple[int, ...], ir.Value] = {}

    def _place(self, at: Any) -> ir.Value:
        at = at if isinstance(at, tuple) else (at,)
        if len(at) != len(self.shape) or not all(isinstance(i, int) and 0 <= i < n for i, n in zip(at, self.shape)):
            raise IndexError(
                f"a tile of registers of shape {list(self.shape)} has no {list(at)}: indices are Python "
                "ints, of unrolled loops"
            )
        if at not in self.places:
            self.places[at] = allocate(typed(self.dtype, self.count))
        return self.places[at]

    def __getitem__(self, at: Any) -> Value:
        return Value(current().builder.load(self._place(at), typ=typed(self.dtype, self.count)), self.dtype)

    def __setitem__(self, at: Any, v: Any) -> None:
        v = v if isinstance(v, Value) else Value(number(self.dtype, v), self.dtype)
        if v.dtype is not self.dtype:
            raise TypeError(f"a tile of {self.dtype.name} takes no {v.dtype.name}: x.to(dtype) converts")
        current().builder.store(v.splat(self.count).x, self._place(at))


def copy(into: Pointer, source: Pointer, nbytes: Any) -> None:
    """Copy so many bytes between places that do not overlap: C's memcpy, or what LLVM makes of it."""
    intrinsic("memcpy.p0.p0.i64", ir.VoidType(), into.x, source.x, value(nbytes).x, ir.Constant(I1, 0))
