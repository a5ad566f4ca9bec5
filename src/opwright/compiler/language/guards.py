"""Guards: checks in a kernel's code, and the error that a failed one becomes.

Lives here: `Guards`, the comparisons that hold for every integer (`within`, `first_fits`), `as_index`.
Not here: what is checked (arrays.py, bounded.py, control.py), raising the error (calling.py).

A guard that fails ends the kernel with the guard's number. LLVM drops the guards that its range analysis proves.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...core import dtypes
from ...core.errors import InvalidArgumentError, OpError, OutOfRangeError
from ...core.introspection import users_line
from .kinds import I64
from .trace import current
from .values import Value, value


class Guards:
    """The checks of one kernel. places: the line and the message of guard i + 1; errors: the class it raises.

    on: whether accesses are checked; `require` checks in any case.
    """

    def __init__(self, on: bool) -> None:
        self.on = on
        self.places: list[str] = []
        self.errors: list[type[OpError]] = []

    def check(self, holds: Value, what: str) -> None:
        """Go on where an access is inside of its array; else end the kernel with the guard's number."""
        if self.on:
            self._add(holds, what, OutOfRangeError)

    def require(self, holds: Value, what: str) -> None:
        """Go on where an argument has a meaning; else end the kernel, which then raises InvalidArgumentError."""
        self._add(holds, what, InvalidArgumentError)

    def _add(self, holds: Value, what: str, error: type[OpError]) -> None:
        self.places.append(f"{users_line() or 'kernel'}: {what}")
        self.errors.append(error)
        b = current().builder
        failed, fine = b.append_basic_block("guard.failed"), b.append_basic_block("guard.holds")
        b.cbranch(holds.x, fine, failed)
        b.position_at_end(failed)
        b.ret(ir.Constant(I64, len(self.places)))
        b.position_at_end(fine)

    def error(self, op: str, status: int) -> OpError:
        """The error of the guard whose number a kernel returned."""
        return self.errors[status - 1](op=op, what=self.places[status - 1])


def as_index(i: Any, label: str) -> Any:
    """An index as a Python int or an int64, which of a uint64 has the bits. Raises TypeError for other things."""
    if isinstance(i, Value) and not i.dtype.is_floating:
        return i.to(dtypes.int64)
    if isinstance(i, int):
        return int(i)
    raise TypeError(f"{label}: an index is an integer, found {i!r}")


def within(i: Any, size: Any) -> Value:
    """0 <= i < size. i: int64, or the bits of a uint64: as an unsigned number each that is outside is too large."""
    i = value(i)
    return Value(i.x, dtypes.uint64) < Value(value(size).splat(i.count).x, dtypes.uint64)


def first_fits(i: Any, size: Any, n: int) -> Value:
    """0 <= i and i + n <= size, in a form that does not wrap: a size less n is at least -n."""
    i = value(i)
    return (i >= 0) & (i <= value(size) - n)
