"""Pointers that know how many elements they point into: memory of a kernel whose accesses are checked.

Lives here: `BoundedPointer`.  Not here: pointers without bounds (places.py), arrays (arrays.py).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError
from .guards import Guards, as_index, first_fits, within
from .places import Pointer
from .trace import current
from .values import Value, select, value
from .vectors import all as every
from .vectors import iota


class BoundedPointer(Pointer):
    """The place of element `start` of `size` elements, checked at each access. x: where element 0 is."""

    __slots__ = ("guards", "size", "start")

    def __init__(self, base: Pointer, size: Any, guards: Guards, start: Any = 0) -> None:
        super().__init__(base.x, base.dtype, base.align)
        self.size, self.guards, self.start = size, guards, start

    def moved(self, start: Any) -> BoundedPointer:
        """The same memory from another element on."""
        return BoundedPointer(Pointer(self.x, self.dtype, self.align), self.size, self.guards, start)

    def same_memory(self, other: Any) -> bool:
        """Whether another pointer points into the same memory, with elements of the same dtype."""
        return isinstance(other, BoundedPointer) and other.x is self.x and other.dtype is self.dtype

    def _element(self, i: Any) -> Any:
        i = as_index(i, "stack memory")
        if isinstance(i, Value) and i.count:
            raise TypeError(f"stack memory is indexed by numbers, found {i!r}")
        return self.start + i

    def _checked(self, i: Any, n: int = 1) -> Any:
        """Element i, after a check that n elements from there on are inside."""
        at = self._element(i)
        if isinstance(at, int) and isinstance(self.size, int):
            if not 0 <= at <= self.size - n:
                raise InvalidArgumentError(
                    op=current().name,
                    what=f"element {at} is outside of stack memory",
                    found=f"{n} from {at} on",
                    wanted=f"within {self.size}",
                )
        else:
            holds = within(at, self.size) if n == 1 else first_fits(at, self.size, n)
            self.guards.check(holds, "index outside of stack memory")
        return at

    def _plain(self) -> Pointer:
        return Pointer(self.x, self.dtype, self.align)

    def __add__(self, i: Any) -> BoundedPointer:
        return self.moved(self._element(i))

    __radd__ = __add__

    def load(self, i: Any = 0, count: int = 0, mask: Value | None = None, *, temporal: bool = True) -> Value:
        """As Pointer.load; lanes that are read lie inside."""
        return self._plain().load(self._lanes(i, count, mask), count, mask, temporal=temporal)

    def store(self, v: Any, i: Any = 0, mask: Value | None = None, *, temporal: bool = True) -> None:
        """As Pointer.store; lanes that are written lie inside."""
        count = v.count if isinstance(v, Value) else 0
        self._plain().store(v, self._lanes(i, count, mask), mask, temporal=temporal)

    def _lanes(self, i: Any, count: int, mask: Value | None) -> Any:
        if mask is None:
            return self._checked(i, count or 1)
        at = value(self._element(i))
        self.guards.check(
            every(~mask | within(iota(dtypes.int64, count) + at, self.size)), "vector outside of stack memory"
        )
        return at

    def cast(self, dtype: DType, align: int = 1) -> BoundedPointer:
        """The same place as elements of another dtype, as many as there is room for from here on."""
        at = self._checked(0, 0)
        rest = (self.size - at) * self.dtype.size // dtype.size
        return BoundedPointer(Pointer(self._plain()._at(at), dtype, align), rest, self.guards)

    def prefetch(self, i: Any = 0, *, write: bool = False, locality: int = 3) -> None:
        """As Pointer.prefetch, which touches no memory."""
        self._plain().prefetch(self._element(i), write=write, locality=locality)

    def address(self) -> Value:
        """The address as an int64."""
        return (self._plain() + self.start).address()

    def chosen(self, mask: Any, other: Any) -> BoundedPointer:
        """This pointer where the mask holds, else another one into the same memory. Raises TypeError for others."""
        if not self.same_memory(other):
            raise TypeError("select of pointers takes two into the same memory")
        return self.moved(select(mask, value(self.start), value(other.start)))

    def spanning(self, nbytes: Any) -> ir.Value:
        """LLVM's pointer, after a check that so many bytes from here on are inside. nbytes: int64, not negative."""
        room = (value(self.size) - value(self.start)) * self.dtype.size
        inside = first_fits(self.start, self.size, 0) & (value(nbytes) >= 0) & (value(nbytes) <= room)
        self.guards.check(inside, "tile outside of stack memory")
        return self._plain()._at(self.start)
