"""Values of the kernel language while a kernel is staged: numbers, vectors and masks.

Lives here: `Value`, `Staging` and `current` (the kernel being staged), `intrinsic`.
Not here: where values are read and written (places.py), functions of values (functions.py, dots.py), control flow
(control.py), what is staged (emitting.py).

Integers wrap; `//` and `%` of integers round toward zero, as processors do. A number beside a vector stands for as many
of it; a Python number takes the dtype of what stands beside it. Other dtypes do not mix: `x.to(dtype)` converts.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from llvmlite import ir

from ...core import dtypes, flags
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError
from ...core.frames import OURS
from ...ops import dispatch
from ...scalar import arithmetic
from .. import language as namespace
from ..lanes import Lanes
from ..scalars import KernelScalar, KernelTrace
from .kinds import I32, KIND, SHORT_FLOATS, number, typed

_KERNELS = os.path.join(OURS, "compiler", "kernels") + os.sep


def _is_between(file: str) -> bool:
    """Whether a frame is of what stages kernels, not of a kernel."""
    return file.startswith(OURS) and not file.startswith(_KERNELS)


MOST_VALUES = 100_000
"""Values that a kernel may compute while it is staged, with copies of unrolled loops: LLVM needs minutes for more."""


class TooLarge(InvalidArgumentError):
    """A kernel unrolls more than may be compiled. Its forms are run another way."""


DIVISIONS = ("sdiv", "srem", "udiv", "urem")
REMAINDERS = ("srem", "urem")


class Staging(KernelTrace):
    """The staging of one kernel: the builder, and the target it is for.

    divides_anything: whether integers are divided by elements of arrays, whatever these are; Opwright's own kernels
    divide by sizes and constants.
    """

    divides_anything = False
    counts_anything = False
    """Whether ranges have any limits and steps; those of Opwright's own kernels end far from their integer's."""
    functions_poll = False
    """Whether the loops of functions on scalars that are inlined ask now and then whether they are to go on."""
    shares_divisions = False
    """Whether a remainder is computed of the quotient, which next to it costs no second division."""
    guards: Any = None
    """The checks of a kernel whose accesses are checked (guards.py)."""

    def __init__(self, builder: ir.IRBuilder, name: str, target: Any) -> None:
        super().__init__(builder, name, 0)
        self.target = target
        self.lines = "kernel" in flags.show  # whether the IR names the lines of Python
        self.values = 0  # computed so far
        self.tiles: dict[int, tuple[Any, Any]] = {}  # sizes of the tiles that the kernel configured
        self._line: tuple[str, int] | None = None

    def owned(self, memory: Any, size: int) -> Any:
        """The pointer to memory of the kernel's own; a kernel with guards knows its size in elements."""
        return memory

    def mark(self) -> None:
        """Write the line of the kernel's Python into the IR, where it is another than before."""
        frame: Any = sys._getframe(2)
        while frame is not None and _is_between(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is not None and (line := (frame.f_code.co_filename, frame.f_lineno)) != self._line:
            self._line = line
            self.builder.comment(f"{os.path.basename(line[0])}:{line[1]}")

    def record(self, op: Any, inputs: Any, bound: Any, name: str | None) -> Any:
        """A catalogue operator on values: vectors are as long as the longest operand."""
        count = max((v.count for v in inputs if isinstance(v, Value)), default=0)
        self.count = count
        given = [v.splat(count) if isinstance(v, Value) else v for v in inputs]
        found = super().record(op, given, bound, name)
        return Value(found.lanes.x, found.dtype)

    def to_tensor(self, value: Any, dtype: Any = None, name: str | None = None) -> Any:
        """A Python number as a value."""
        if isinstance(value, KernelScalar):
            return value
        found = super().to_tensor(value, dtype, name)
        return Value(found.lanes.x, found.dtype)


def current() -> Staging:
    """The kernel being staged. Raises RuntimeError outside of one."""
    trace = dispatch.state.trace
    if not isinstance(trace, Staging):
        raise RuntimeError("the kernel language's values exist only inside a kernel")
    return trace


def intrinsic(name: str, result: ir.Type, *operands: ir.Value) -> ir.Value:
    """A call of llvm.NAME, given whole, with its suffix."""
    b = current().builder
    full = f"llvm.{name}"
    kinds = [x.type for x in operands]
    function = b.module.globals.get(full) or ir.Function(b.module, ir.FunctionType(result, kinds), full)
    return b.call(function, operands)


class Value(KernelScalar):
    """A number, or a vector of them. count: of lanes; 0 for a number. dtype: of one. A mask is a vector of bool."""

    __slots__ = ()

    def __init__(self, x: ir.Value, dtype: DType) -> None:
        staged = current()
        super().__init__(Lanes(staged.builder, x), dtype)
        staged.values += 1
        if staged.values > MOST_VALUES:
            raise TooLarge(op=staged.name, what="the kernel unrolls too much", found=f"more than {MOST_VALUES} values",
                           do="kl.loop(n) is a loop where range(n) is copies of its body")  # fmt: skip
        if staged.lines:
            staged.mark()

    @property
    def x(self) -> ir.Value:
        """LLVM's value."""
        return self.lanes.x

    @property
    def count(self) -> int:
        """Number of lanes; 0 for a number that is no vector."""
        return self.lanes.count

    # ---- operands -----------------------------------------------------------------------------------------------

    def splat(self, count: int) -> Value:
        """So many lanes of this number; itself where it has them."""
        if self.count == count:
            return self
        if self.count:
            raise TypeError(f"vectors of {self.count} and of {count or 1} lanes do not go together")
        b = current().builder
        kind = typed(self.dtype, count)
        if isinstance(self.x, ir.Constant):
            return Value(ir.Constant(kind, [self.x] * count), self.dtype)
        one = b.insert_element(ir.Constant(kind, ir.Undefined), self.x, ir.Constant(I32, 0))
        zeros = ir.Constant(ir.VectorType(I32, count), None)
        return Value(b.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros), self.dtype)

    def _beside(self, other: Any) -> tuple[Value, Value]:
        if not isinstance(other, Value):
            if not isinstance(other, int | float | bool):
                raise TypeError(f"a kernel computes on its values and on numbers, not on {other!r}"[:200])
            return self, Value(number(self.dtype, other, self.count), self.dtype)
        if other.dtype is not self.dtype:
            raise TypeError(f"{self.dtype.name} and {other.dtype.name} do not mix in a kernel: x.to(dtype) converts")
        count = max(self.count, other.count)
        return self.splat(count), other.splat(count)

    def _arithmetic(self, other: Any, floating: str | None, signed: str | None, unsigned: str | None = None,
                    swap: bool = False) -> Value:  # fmt: skip
        a, c = self._beside(other)
        if swap:
            a, c = c, a
        name = floating if a.dtype.is_floating else (unsigned or signed) if a.dtype.is_unsigned else signed
        if a.dtype in SHORT_FLOATS:
            raise TypeError(f"kernels store {a.dtype.name} and compute in float32: x.to(f32)")
        if name is None or (a.dtype.is_bool and name not in ("and_", "or_", "xor")):
            raise TypeError(f"this operator is not defined for {a.dtype.name}")
        if name in DIVISIONS and current().divides_anything:
            return _divided(name, a, c)
        if name in REMAINDERS and current().shares_divisions and not (a.count or isinstance(c.x, ir.Constant)):
            return a - a // c * c
        return Value(getattr(current().builder, name)(a.x, c.x), a.dtype)

    def __add__(self, o: Any) -> Any:
        if not isinstance(o, Value) and hasattr(o, "prefetch"):  # a pointer: an offset from it
            return o + self
        return self._arithmetic(o, "fadd", "add")

    def __radd__(self, o: Any) -> Value:
        return self._arithmetic(o, "fadd", "add", swap=True)

    def __sub__(self, o: Any) -> Value:
        return self._arithmetic(o, "fsub", "sub")

    def __rsub__(self, o: Any) -> Value:
        return self._arithmetic(o, "fsub", "sub", swap=True)

    def __mul__(self, o: Any) -> Value:
        return self._arithmetic(o, "fmul", "mul")

    def __rmul__(self, o: Any) -> Value:
        return self._arithmetic(o, "fmul", "mul", swap=True)

    def __truediv__(self, o: Any) -> Value:
        return self._arithmetic(o, "fdiv", None)

    def __rtruediv__(self, o: Any) -> Value:
        return self._arithmetic(o, "fdiv", None, swap=True)

    def __floordiv__(self, o: Any) -> Value:
        return self._arithmetic(o, None, "sdiv", "udiv")

    def __rfloordiv__(self, o: Any) -> Value:
        return self._arithmetic(o, None, "sdiv", "udiv", swap=True)

    def __mod__(self, o: Any) -> Value:
        return self._arithmetic(o, "frem", "srem", "urem")

    def __rmod__(self, o: Any) -> Value:
        return self._arithmetic(o, "frem", "srem", "urem", swap=True)

    def __and__(self, o: Any) -> Value:
        return self._arithmetic(o, None, "and_")

    def __or__(self, o: Any) -> Value:
        return self._arithmetic(o, None, "or_")

    def __xor__(self, o: Any) -> Value:
        return self._arithmetic(o, None, "xor")

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, o: Any) -> Value:
        return self._arithmetic(o, None, "shl")

    def __rshift__(self, o: Any) -> Value:
        """With the sign for signed integers."""
        return self._arithmetic(o, None, "ashr", "lshr")

    def __neg__(self) -> Value:
        b = current().builder
        return Value(b.fneg(self.x) if self.dtype.is_floating else b.neg(self.x), self.dtype)

    def __pos__(self) -> Value:
        return self

    def __invert__(self) -> Value:
        return Value(current().builder.not_(self.x), self.dtype)

    def __abs__(self) -> Value:
        from .functions import abs as absolute

        return absolute(self)

    # ---- comparisons --------------------------------------------------------------------------------------------

    def _compare(self, sign: str, o: Any) -> Value:
        a, c = self._beside(o)
        b = current().builder
        if a.dtype in SHORT_FLOATS:
            raise TypeError(f"kernels store {a.dtype.name} and compute in float32: x.to(f32)")
        if a.dtype.is_floating:
            found = (b.fcmp_unordered if sign == "!=" else b.fcmp_ordered)(sign, a.x, c.x)
        else:
            unsigned = a.dtype.is_unsigned or a.dtype.is_bool
            found = (b.icmp_unsigned if unsigned else b.icmp_signed)(sign, a.x, c.x)
        return Value(found, dtypes.bool)

    def __lt__(self, o: Any) -> Value:
        return self._compare("<", o)

    def __le__(self, o: Any) -> Value:
        return self._compare("<=", o)

    def __gt__(self, o: Any) -> Value:
        return self._compare(">", o)

    def __ge__(self, o: Any) -> Value:
        return self._compare(">=", o)

    def __eq__(self, o: Any) -> Value:  # type: ignore[override]
        return self._compare("==", o)

    def __ne__(self, o: Any) -> Value:  # type: ignore[override]
        return self._compare("!=", o)

    __hash__ = None  # type: ignore[assignment]

    # ---- lanes and conversions ----------------------------------------------------------------------------------

    def __getitem__(self, lane: Any) -> Value:
        """One lane."""
        guards = current().guards
        if isinstance(lane, Value):
            if lane.count or lane.dtype.is_floating:
                raise TypeError(f"a lane is named by an integer, found {lane!r}")
            if guards is not None:
                wide = lane.to(dtypes.int64)
                holds = Value(wide.x, dtypes.uint64) < self.count
                guards.check(holds, f"lane outside of a vector of {self.count}")
        elif not 0 <= lane < self.count:
            raise IndexError(f"a vector of {self.count} lanes has no lane {lane}")
        at = lane.x if isinstance(lane, Value) else ir.Constant(I32, lane)
        return Value(current().builder.extract_element(self.x, at), self.dtype)

    def __iter__(self) -> Any:
        return (self[i] for i in range(self.count))

    def to(self, dtype: DType) -> Value:
        """Converted: integers extended by their sign or cut off, floats rounded; floats to integers toward zero."""
        if dtype is self.dtype:
            return self
        if dtype.is_bool:
            return self != 0
        if self.dtype in SHORT_FLOATS or dtype in SHORT_FLOATS:
            from .narrow import narrowed, widened

            wide = widened(self) if self.dtype in SHORT_FLOATS else self.to(dtypes.float32)
            return narrowed(wide, dtype) if dtype in SHORT_FLOATS else wide.to(dtype)
        b, old = current().builder, self.dtype
        kind = typed(dtype, self.count)
        if old in (dtypes.int8, dtypes.uint8) and dtype.size >= 4 and self.count >= 8 and current().target.is_aarch64:
            from .neon import widened_bytes

            return widened_bytes(self, dtype)
        if old.is_floating and dtype.is_floating:
            name = "fpext" if dtype.size > old.size else "fptrunc"
        elif old.is_floating:
            name = "fptoui" if dtype.is_unsigned else "fptosi"
        elif dtype.is_floating:
            name = "uitofp" if old.is_unsigned or old.is_bool else "sitofp"
        elif KIND[dtype].width == KIND[old].width:
            return Value(self.x, dtype)
        elif KIND[dtype].width < KIND[old].width:
            name = "trunc"
        else:
            name = "zext" if old.is_unsigned or old.is_bool else "sext"
        return Value(getattr(b, name)(self.x, kind), dtype)

    def saturate(self, dtype: DType) -> Value:
        """Integers as a narrower integer dtype; what lies outside becomes its nearest end."""
        from .functions import clamp

        low, high = max(dtype.min, self.dtype.min), min(dtype.max, self.dtype.max)
        return clamp(self, low, high).to(dtype)

    def __repr__(self) -> str:
        return f"<{self.dtype.short}{f' x {self.count}' if self.count else ''} of kernel {current().name!r}>"


def value(x: Any, dtype: DType = dtypes.int64) -> Value:
    """A Python number as a value of this dtype; a value as it is."""
    return x if isinstance(x, Value) else Value(number(dtype, x), dtype)


def _divided(name: str, a: Value, c: Value) -> Value:
    """A quotient of integers, or what is left; 0 by 0, which processors trap on."""
    if not isinstance(c.x, ir.Constant):
        divide = arithmetic.remainder if name.endswith("rem") else arithmetic.quotient
        found: Value = divide(namespace, a, c)
        return found
    lanes = c.x.constant if isinstance(c.x.constant, list) else [c.x]
    if any(one.constant == 0 for one in lanes):
        raise ZeroDivisionError(f"{a.dtype.name} is divided by 0")
    return Value(getattr(current().builder, name)(a.x, c.x), a.dtype)
