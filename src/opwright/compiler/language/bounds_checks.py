"""Bounds checks: guards in a kernel's code, their errors, and pointers whose accesses are checked.

Lives here: `Guards`, comparisons that are correct for every integer (`within`, `first_fits`), `as_index`,
`BoundedPointer`.
Not here: other checked accesses (arrays.py), unchecked pointers (pointers.py), raising the error (array_kernels.py).

A failed guard ends the kernel with the number of the guard. LLVM removes guards that its range analysis proves.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError, OpError, OutOfRangeError
from ...core.introspection import users_line
from .llvm_types import I64
from .pointers import Pointer
from .trace import current
from .values import Value, select, value
from .vectors import all as every
from .vectors import iota


class Guards:
    """The checks of one kernel. messages: the line and message of guard i + 1; errors: the class that it raises.

    on: whether accesses are checked; `require` checks in any case.
    """

    def __init__(self, on: bool) -> None:
        self.on = on
        self.messages: list[str] = []
        self.errors: list[type[OpError]] = []

    def check(self, condition: Value, what: str) -> None:
        """Emit a guard of an access, which raises OutOfRangeError if the condition is false."""
        if self.on:
            self._add(condition, what, OutOfRangeError)

    def require(self, condition: Value, what: str) -> None:
        """Emit a guard of an argument, which raises InvalidArgumentError if the condition is false."""
        self._add(condition, what, InvalidArgumentError)

    def _add(self, condition: Value, what: str, error: type[OpError]) -> None:
        self.messages.append(f"{users_line() or 'kernel'}: {what}")
        self.errors.append(error)
        b = current().builder
        failed, passed = b.append_basic_block("guard.failed"), b.append_basic_block("guard.holds")
        b.cbranch(condition.x, passed, failed)
        b.position_at_end(failed)
        b.ret(ir.Constant(I64, len(self.messages)))
        b.position_at_end(passed)

    def error(self, op: str, status: int) -> OpError:
        """Return the error of the guard whose number a kernel returned."""
        return self.errors[status - 1](op=op, what=self.messages[status - 1])


def as_index(i: Any, label: str) -> Value | int:
    """Return an index as a Python int or an int64 (with the bits of a uint64). Raises TypeError for other values."""
    if isinstance(i, Value) and not i.dtype.is_floating:
        return i.to(dtypes.int64)
    if isinstance(i, int):
        return int(i)
    raise TypeError(f"{label}: an index is an integer, found {i!r}")


def within(i: Any, size: Any) -> Value:
    """Return 0 <= i < size. i: int64, or the bits of a uint64: as unsigned numbers, negative indices are too large."""
    i = value(i)
    return Value(i.x, dtypes.uint64) < Value(value(size).splat(i.count).x, dtypes.uint64)


def first_fits(i: Any, size: Any, n: int) -> Value:
    """Return 0 <= i and i + n <= size, without overflow: size - n is at least -n."""
    index = value(i)
    return (index >= 0) & (index <= value(size) - n)


class BoundedPointer(Pointer):
    """A pointer to element `start` of `size` elements, with checked accesses. x: the address of element 0."""

    __slots__ = ("guards", "size", "start")

    def __init__(self, base: Pointer, size: Any, guards: Guards, start: Any = 0) -> None:
        super().__init__(base.x, base.dtype, base.align)
        self.size, self.guards, self.start = size, guards, start

    def moved(self, start: Any) -> BoundedPointer:
        """Return a pointer to another element of the same memory."""
        return BoundedPointer(Pointer(self.x, self.dtype, self.align), self.size, self.guards, start)

    def same_memory(self, other: Any) -> bool:
        """Return whether another pointer points into the same memory with the same dtype."""
        return isinstance(other, BoundedPointer) and other.x is self.x and other.dtype is self.dtype

    def _element(self, i: Any) -> Value | int:
        i = as_index(i, "stack memory")
        if isinstance(i, Value) and i.count:
            raise TypeError(f"indices of stack memory are scalars, found {i!r}")
        element: Value | int = self.start + i
        return element

    def _checked(self, i: Any, n: int = 1) -> Value | int:
        """Return the index of element i after a check that n elements from it on are inside."""
        index = self._element(i)
        if isinstance(index, int) and isinstance(self.size, int):
            if not 0 <= index <= self.size - n:
                raise InvalidArgumentError(
                    op=current().name,
                    what=f"element {index} is outside of stack memory",
                    found=f"{n} from {index} on",
                    wanted=f"within {self.size}",
                )
        else:
            inside = within(index, self.size) if n == 1 else first_fits(index, self.size, n)
            self.guards.check(inside, "index outside of stack memory")
        return index

    def _plain(self) -> Pointer:
        return Pointer(self.x, self.dtype, self.align)

    def __add__(self, i: Any) -> BoundedPointer:
        return self.moved(self._element(i))

    __radd__ = __add__

    def load(self, i: Any = 0, count: int = 0, mask: Value | None = None, *, temporal: bool = True) -> Value:
        """Load as Pointer.load does; check the lanes that are read."""
        return self._plain().load(self._lanes(i, count, mask), count, mask, temporal=temporal)

    def store(self, v: Any, i: Any = 0, mask: Value | None = None, *, temporal: bool = True) -> None:
        """Store as Pointer.store does; check the lanes that are written."""
        count = v.count if isinstance(v, Value) else 0
        self._plain().store(v, self._lanes(i, count, mask), mask, temporal=temporal)

    def _lanes(self, i: Any, count: int, mask: Value | None) -> Value | int:
        if mask is None:
            return self._checked(i, count or 1)
        index = value(self._element(i))
        inside = every(~mask | within(iota(dtypes.int64, count) + index, self.size))
        self.guards.check(inside, "vector outside of stack memory")
        return index

    def cast(self, dtype: DType, align: int = 1) -> BoundedPointer:
        """Return a pointer to the remaining memory as elements of another dtype."""
        start = self._checked(0, 0)
        size = (self.size - start) * self.dtype.size // dtype.size
        return BoundedPointer(Pointer(self._plain().element(start), dtype, align), size, self.guards)

    def prefetch(self, i: Any = 0, *, write: bool = False, locality: int = 3) -> None:
        """Prefetch as Pointer.prefetch does, unchecked: a prefetch does not fault."""
        self._plain().prefetch(self._element(i), write=write, locality=locality)

    def address(self) -> Value:
        """Return the address as an int64."""
        element: Pointer = self._plain() + self.start
        return element.address()

    def chosen(self, mask: Any, other: Any) -> BoundedPointer:
        """Select between pointers into the same memory. Raises TypeError for other memory."""
        if not self.same_memory(other):
            raise TypeError("select of pointers takes two into the same memory")
        return self.moved(select(mask, value(self.start), value(other.start)))

    def spanning(self, nbytes: Any) -> ir.Value:
        """Return the LLVM pointer after a check that `nbytes` bytes from it on are inside. nbytes: int64, >= 0."""
        remaining = (value(self.size) - value(self.start)) * self.dtype.size
        inside = first_fits(self.start, self.size, 0) & (value(nbytes) >= 0) & (value(nbytes) <= remaining)
        self.guards.check(inside, "tile outside of stack memory")
        return self._plain().element(self.start)
