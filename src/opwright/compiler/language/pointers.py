"""Memory of kernels: pointers, stack memory, register tiles.

Lives here: `Pointer`, `TailMask`, `Registers`, `allocate`, `copy`.
Not here: values (values.py), pointers with bounds (bounds_checks.py), arrays (arrays.py).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from .llvm_types import I1, I32, I64, KIND, number, stored, suffix, typed
from .trace import current, intrinsic
from .values import Value, value


class TailMask(Value):
    """The mask of a vector at the end of a loop. full: whether all its lanes are set, a scalar of bool.

    Loads and stores branch to plain ones where the target's masked ones are slow.
    """

    __slots__ = ("full",)

    def __init__(self, x: ir.Value, full: Value) -> None:
        super().__init__(x, dtypes.bool)
        self.full = full


class Pointer:
    """A pointer to elements of one dtype, without bounds.

    `p[i]` loads a scalar, `p[i] = v` stores a scalar or a vector; `p + i` points i elements further.
    align: a known power of two that divides the address.
    """

    __slots__ = ("align", "dtype", "x")

    def __init__(self, x: ir.Value, dtype: DType, align: int | None = None) -> None:
        self.x, self.dtype, self.align = x, dtype, align or dtype.size

    def __add__(self, i: Any) -> Pointer:
        if isinstance(i, int) and i == 0:
            return self
        return Pointer(self.element(i), self.dtype, min(self.align, self.dtype.size))

    __radd__ = __add__

    def __sub__(self, i: Any) -> Pointer:
        return self.__add__(-i)

    def element(self, i: Any) -> ir.Value:
        """Return the LLVM pointer to element i."""
        if isinstance(i, int) and i == 0:
            return self.x
        index = value(i)
        if index.dtype.size < 8:
            index = index.to(dtypes.int64)
        return current().builder.element(self.x, index.x, KIND[stored(self.dtype)])

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
        """Load `count` elements from i on; a scalar if count is 0. mask: lanes to read; others are 0."""
        b, address = current().builder, self.element(i)
        kind, alignment = typed(stored(self.dtype), count), self._alignment(i)
        if mask is None:
            x = b.load(address, align=alignment, typ=kind)
            if not temporal:
                x.set_metadata("nontemporal", b.module.add_metadata([ir.Constant(I32, 1)]))
        elif isinstance(mask, TailMask) and not current().target.masks_loads(self.dtype.size):
            with b.if_else(mask.full.x) as (full, tail):
                with full:
                    whole, full_block = b.load(address, align=alignment, typ=kind), b.block
                with tail:
                    lanes, tail_block = _masked_load(kind, address, alignment, mask), b.block
            x = b.phi(kind)
            x.add_incoming(whole, full_block)
            x.add_incoming(lanes, tail_block)
        else:
            x = _masked_load(kind, address, alignment, mask)
        element = Value(x, stored(self.dtype))
        return element != 0 if self.dtype.is_bool else element

    def store(self, v: Any, i: Any = 0, mask: Value | None = None, *, temporal: bool = True) -> None:
        """Store a scalar or a vector from i on. mask: lanes to write. temporal=False: bypass the caches."""
        b, address = current().builder, self.element(i)
        v = v if isinstance(v, Value) else Value(number(self.dtype, v), self.dtype)
        if v.dtype is not self.dtype:
            raise TypeError(f"a pointer to {self.dtype.name} takes no {v.dtype.name}: x.to(dtype) converts")
        if v.dtype.is_bool:
            v = v.to(dtypes.uint8)
        alignment = self._alignment(i)
        if mask is None:
            store = b.store(v.x, address, align=alignment)
            if not temporal:
                store.set_metadata("nontemporal", b.module.add_metadata([ir.Constant(I32, 1)]))
        elif isinstance(mask, TailMask) and not current().target.masks_stores:
            with b.if_else(mask.full.x) as (full, tail):
                with full:
                    b.store(v.x, address, align=alignment)
                with tail:
                    _masked_store(v, address, alignment, mask)
        else:
            _masked_store(v, address, alignment, mask)

    def cast(self, dtype: DType, align: int = 1) -> Pointer:
        """Return the same address as a pointer to another dtype."""
        return Pointer(self.x, dtype, align)

    def prefetch(self, i: Any = 0, *, write: bool = False, locality: int = 3) -> None:
        """Prefetch the cache line of element i. locality: 3, into the first cache, to 0, not temporal."""
        intrinsic(
            "prefetch.p0", ir.VoidType(), self.element(i), *(ir.Constant(I32, n) for n in (int(write), locality, 1))
        )

    def address(self) -> Value:
        """Return the address as an int64."""
        return Value(current().builder.ptrtoint(self.x, I64), dtypes.int64)

    def chosen(self, mask: Value, other: Any) -> Pointer:
        """Return this pointer if the mask is true, else another one."""
        return Pointer(current().builder.select(mask.x, self.x, other.x), self.dtype, min(self.align, other.align))

    def __repr__(self) -> str:
        return f"<ptr[{self.dtype.short}] of kernel {current().name!r}>"


def _masked_load(kind: ir.Type, address: ir.Value, alignment: int, mask: Value) -> ir.Value:
    zeros = ir.Constant(kind, None)
    return intrinsic(f"masked.load.{suffix(kind)}.p0", kind, address, ir.Constant(I32, alignment), mask.x, zeros)


def _masked_store(v: Value, address: ir.Value, alignment: int, mask: Value) -> None:
    name = f"masked.store.{suffix(v.x.type)}.p0"
    intrinsic(name, ir.VoidType(), v.x, address, ir.Constant(I32, alignment), mask.x)


def allocate(kind: ir.Type, size: int = 1, align: int | None = None) -> ir.Value:
    """Allocate stack memory in the function's entry block."""
    return current().builder.allocate(kind, size, align)


class Registers:
    """A tile of scalars or vectors in registers: `tile[i, j]`, indexed by Python ints."""

    __slots__ = ("count", "dtype", "shape", "slots")

    def __init__(self, dtype: DType, count: int, shape: tuple[int, ...]) -> None:
        self.dtype, self.count, self.shape = dtype, count, shape
        self.slots: dict[tuple[int, ...], ir.Value] = {}

    def _slot(self, index: Any) -> ir.Value:
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != len(self.shape) or not all(
            isinstance(i, int) and 0 <= i < n for i, n in zip(index, self.shape)
        ):
            raise IndexError(
                f"a tile of registers of shape {list(self.shape)} has no {list(index)}: indices are Python "
                "ints, of unrolled loops"
            )
        if index not in self.slots:
            self.slots[index] = allocate(typed(self.dtype, self.count))
        return self.slots[index]

    def __getitem__(self, index: Any) -> Value:
        return Value(current().builder.get(self._slot(index), typed(self.dtype, self.count)), self.dtype)

    def __setitem__(self, index: Any, v: Any) -> None:
        v = v if isinstance(v, Value) else Value(number(self.dtype, v), self.dtype)
        if v.dtype is not self.dtype:
            raise TypeError(f"a tile of {self.dtype.name} takes no {v.dtype.name}: x.to(dtype) converts")
        current().builder.put(self._slot(index), v.splat(self.count).x)


def copy(into: Pointer, source: Pointer, nbytes: Any) -> None:
    """Copy bytes between memory that does not overlap, like memcpy of C."""
    intrinsic("memcpy.p0.p0.i64", ir.VoidType(), into.x, source.x, value(nbytes).x, ir.Constant(I1, 0))


def fence() -> None:
    """Complete all earlier stores, including stores past the caches, before any later access to memory."""
    current().builder.fence("seq_cst")
