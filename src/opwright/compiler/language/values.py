"""Values of the kernel language: numbers, vectors and masks, with Python's operators.

Lives here: `Value`; choices, extremes, bits and lanes, which its conversions are written with.
Not here: the kernel being staged (trace.py), where values are read and written (places.py), other functions of values
(functions.py, dots.py), functions of the scalar table (operators.py), control flow (control.py).

The same code serves one element and a vector of them, and rounds alike in both: a result does not depend on the place
of its element. Integers wrap; `//` and `%` of integers round toward zero, as processors do. Comparisons of floats are
false where one is NaN, but `!=`, which is true. A number next to a vector stands for as many of it; a Python number
takes the dtype of the other operand. Other dtypes do not mix: `x.to(dtype)` converts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from ...core.specs import TensorSpec
from ...ops.tensor import Tensor
from .kinds import F32, I32, KIND, SHORT_FLOATS, is_number, number, suffix, typed
from .trace import current, intrinsic

DIVISIONS = ("sdiv", "srem", "udiv", "urem")
REMAINDERS = ("srem", "urem")


if TYPE_CHECKING:
    # The element types of the language are names of Value for checkers, which must pass as dtypes, too.
    class _ElementType(DType, type): ...  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
else:
    _ElementType = type


class Value(Tensor, metaclass=_ElementType):
    """A number, or a vector of them. x: LLVM's value; dtype: of one number. A mask is a vector of bool."""

    __slots__ = ("count", "dtype", "x")

    dtype: DType
    """Element type."""
    count: int
    """Number of lanes; 0 for a number that is no vector."""

    def __init__(self, x: ir.Value, dtype: DType) -> None:
        self.x, self.count = x, x.type.count if isinstance(x.type, ir.VectorType) else 0
        self.dtype = dtype  # pyright: ignore[reportIncompatibleMethodOverride]
        current().count_value()

    @property
    def shape(self) -> Any:
        """Always (): operators of the catalogue take a value for one element."""
        return self.spec.shape

    @property
    def spec(self) -> TensorSpec:
        """A scalar of this dtype."""
        return TensorSpec((), self.dtype)

    def __bool__(self) -> bool:
        raise TypeError(
            "a kernel's scalar has no truth value in Python that is not converted (a lambda without its "
            "source, a library's function): use ow.where(condition, a, b)"
        )

    def __repr__(self) -> str:
        return f"<{self.dtype.short}{f' x {self.count}' if self.count else ''} of kernel {current().name!r}>"

    # ---- operands -----------------------------------------------------------------------------------------------

    def splat(self, count: int) -> Value:
        """Return a vector of this number; a vector of as many lanes as it is."""
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

    def _arithmetic(
        self, other: Any, floating: str | None, signed: str | None, unsigned: str | None = None, swap: bool = False
    ) -> Value:
        a, c = self._beside(other)
        if swap:
            a, c = c, a
        name = floating if a.dtype.is_floating else (unsigned or signed) if a.dtype.is_unsigned else signed
        if a.dtype in SHORT_FLOATS:
            raise TypeError(f"kernels store {a.dtype.name} and compute in float32: x.to(f32)")
        if name is None or (a.dtype.is_bool and name not in ("and_", "or_", "xor")):
            raise TypeError(f"this operator is not defined for {a.dtype.name}")
        if name in DIVISIONS and current().division is not None:
            return current().division(name, a, c)
        if name in REMAINDERS and current().shares_divisions and not (a.count or isinstance(c.x, ir.Constant)):
            return a - a // c * c
        return Value(getattr(current().builder, name)(a.x, c.x), a.dtype)

    def __add__(self, o: Any) -> Value:
        if not isinstance(o, Value) and hasattr(o, "prefetch"):  # a pointer, whose __radd__ takes the offset
            return NotImplemented
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

    def __rand__(self, o: Any) -> Value:
        return self & o

    def __or__(self, o: Any) -> Value:
        return self._arithmetic(o, None, "or_")

    def __ror__(self, o: Any) -> Value:
        return self | o

    def __xor__(self, o: Any) -> Value:
        return self._arithmetic(o, None, "xor")

    def __rxor__(self, o: Any) -> Value:
        return self ^ o

    def __lshift__(self, o: Any) -> Value:
        return self._arithmetic(o, None, "shl")

    def __rshift__(self, o: Any) -> Value:
        """Shift right: arithmetic for signed integers, logical for unsigned ones."""
        return self._arithmetic(o, None, "ashr", "lshr")

    def __neg__(self) -> Value:
        b = current().builder
        return Value(b.fneg(self.x) if self.dtype.is_floating else b.neg(self.x), self.dtype)

    def __pos__(self) -> Value:
        return self

    def __invert__(self) -> Value:
        return Value(current().builder.not_(self.x), self.dtype)

    def __abs__(self) -> Value:
        if self.dtype.is_floating:
            return same_type("fabs", self)
        return self if self.dtype.is_unsigned else select(self < 0, -self, self)

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

    __hash__ = None

    # ---- lanes and conversions ----------------------------------------------------------------------------------

    def __getitem__(self, lane: Any) -> Value:
        """Return one lane."""
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
        """Convert: integers are extended by their sign or cut off, floats rounded; floats to integers toward zero."""
        if dtype is self.dtype:
            return self
        if dtype.is_bool:
            return self != 0
        if self.dtype in SHORT_FLOATS or dtype in SHORT_FLOATS:
            wide = _widened_float(self) if self.dtype in SHORT_FLOATS else self.to(dtypes.float32)
            return _narrowed_float(wide, dtype) if dtype in SHORT_FLOATS else wide.to(dtype)
        b, old = current().builder, self.dtype
        kind = typed(dtype, self.count)
        if old in (dtypes.int8, dtypes.uint8) and dtype.size >= 4 and self.count >= 8 and current().target.is_aarch64:
            return _widened_bytes(self, dtype)
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
        """Convert integers to a narrower dtype; numbers beyond it become its nearest end."""
        low, high = max(dtype.min, self.dtype.min), min(dtype.max, self.dtype.max)
        return clamp(self, low, high).to(dtype)


def value(x: Any, dtype: DType = dtypes.int64) -> Value:
    """Return a Python number as a value of this dtype; a value as it is."""
    return x if isinstance(x, Value) else Value(number(dtype, x), dtype)


def alike(*xs: Any) -> tuple[Value, ...]:
    """Return operands of one dtype and length; Python numbers take those of the others."""
    values = [x for x in xs if isinstance(x, Value)]
    if not values:
        raise TypeError("one operand at least is a kernel's value")
    dtype, count = values[0].dtype, 0
    for v in values:
        if v.dtype is not dtype:
            raise TypeError(f"{dtype.name} and {v.dtype.name} do not mix in a kernel: x.to(dtype) converts")
        count = max(count, v.count)
    return tuple([x.splat(count) if isinstance(x, Value) else Value(number(dtype, x, count), dtype) for x in xs])


def same_type(name: str, x: Value, *others: Value) -> Value:
    """Call llvm.NAME of operands of one type, which is the result's."""
    return Value(intrinsic(f"{name}.{suffix(x.x.type)}", x.x.type, x.x, *(o.x for o in others)), x.dtype)


# ---- choices, bits and lanes -----------------------------------------------------------------------------------------


def select(mask: Any, a: Any, c: Any) -> Value:
    """Return a where the mask holds, else c."""
    if not isinstance(a, Value) and hasattr(a, "chosen"):  # a pointer
        return a.chosen(mask, c)
    a, c = alike(a, c)
    count = max(mask.count, a.count)
    a, c = a.splat(count), c.splat(count)
    chosen = mask.x if mask.count else mask.splat(count).x if count else mask.x
    return Value(current().builder.select(chosen, a.x, c.x), a.dtype)


def minimum(a: Any, c: Any, *, number: bool = False) -> Value:
    """Return the smaller; of floats c where one is NaN. number: whether c is known to be no NaN."""
    x, y = alike(a, c)
    found = _extreme("min", x, y, number)
    return select(a < c, x, y) if found is None else found


def maximum(a: Any, c: Any, *, number: bool = False) -> Value:
    """Return the larger; of floats c where one is NaN. number: whether c is known to be no NaN."""
    x, y = alike(a, c)
    found = _extreme("max", x, y, number)
    return select(a > c, x, y) if found is None else found


def _extreme(name: str, a: Value, c: Value, number: bool) -> Value | None:
    """Return min or max by one instruction; None where there is none.

    Of floats 64-bit ARM has some: FMIN and FMAX keep a NaN, FMINNM and FMAXNM pass over it, so that they serve where
    one operand is known to be a number. -0.0 is less than 0.0.
    """
    if not a.dtype.is_floating:
        sign = "u" if a.dtype.is_unsigned else "s"
        return same_type(f"{sign}{name}", a, c) if current().has_extremes else None
    if not current().target.is_aarch64:
        return None
    if number or is_number(c.x):
        return same_type(f"{name}num", a, c)
    return same_type(f"{name}imum", a, c) if is_number(a.x) else None


def clamp(x: Value, low: Any, high: Any) -> Value:
    """Return x within [low, high]; of floats low where x is NaN."""
    return minimum(maximum(x, low), high)


def bitcast(x: Value, dtype: DType) -> Value:
    """Return the same bits as another dtype; a vector's number of lanes follows."""
    bits = x.dtype.size * (x.count or 1)
    if bits % dtype.size:
        raise TypeError(f"{bits} bytes are no whole number of {dtype.name}")
    count = bits // dtype.size
    kind = typed(dtype, count if x.count or count > 1 else 0)
    return Value(current().builder.bitcast(x.x, kind), dtype)


def shuffle(a: Value, c: Value | None, indices: Sequence[int]) -> Value:
    """Select lanes of a and, counted on, of c by constant indices; -1 for any."""
    other = ir.Constant(a.x.type, ir.Undefined) if c is None else c.x
    lanes = [ir.Constant(I32, max(i, 0)) for i in indices]
    mask = ir.Constant(ir.VectorType(I32, len(lanes)), lanes)
    return Value(current().builder.shuffle_vector(a.x, other, mask), a.dtype)


def concat(a: Value, c: Value) -> Value:
    """Return the lanes of both, one after the other."""
    return shuffle(a, c, range(a.count + c.count))


def part(a: Value, start: int, count: int) -> Value:
    """Return count lanes from start on."""
    return shuffle(a, None, range(start, start + count))


def joined(vectors: list[Value]) -> Value:
    """Concatenate vectors."""
    count = sum(v.count for v in vectors)
    while len(vectors) > 1:
        vectors = vectors + vectors[-1:] * (len(vectors) % 2)
        vectors = [concat(vectors[i], vectors[i + 1]) for i in range(0, len(vectors), 2)]
    return vectors[0] if vectors[0].count == count else part(vectors[0], 0, count)


# ---- short floats: stored as 16 bits, computed in float32 ------------------------------------------------------------

_HALF = ir.HalfType()


def _lanes(kind: ir.Type, x: Value) -> ir.Type:
    return ir.VectorType(kind, x.count) if x.count else kind


def _has_half() -> bool:
    target = current().target
    return target.is_aarch64 or target.has("f16c")


def _widened_float(x: Value) -> Value:
    """Convert float16 or bfloat16 to float32, exactly.

    By integer arithmetic where a target has no instruction, so that no target needs a library.
    """
    b = current().builder
    if x.dtype is dtypes.float16 and _has_half():
        half = b.bitcast(x.x, _lanes(_HALF, x))
        return Value(b.fpext(half, _lanes(F32, x)), dtypes.float32)
    wide = Value(x.x, dtypes.uint16).to(dtypes.int32)
    if x.dtype is dtypes.bfloat16:
        return bitcast(wide << 16, dtypes.float32)
    exponents = 2.0**112  # between the biases of the two dtypes; exact for denormal numbers
    magnitude = bitcast((wide & 0x7FFF) << 13, dtypes.float32) * exponents
    special = bitcast(magnitude, dtypes.int32) | 0x7F800000  # infinities and NaN
    found = select((wide & 0x7FFF) >= 0x7C00, special, bitcast(magnitude, dtypes.int32))
    return bitcast(found | ((wide & 0x8000) << 16), dtypes.float32)


def _narrowed_float(x: Value, dtype: DType) -> Value:
    """Round float32 to the nearest float16 or bfloat16, of two the even one; NaN stays NaN."""
    b = current().builder
    short = _lanes(ir.IntType(16), x)
    if dtype is dtypes.float16 and _has_half():
        return Value(b.bitcast(b.fptrunc(x.x, _lanes(_HALF, x)), short), dtype)
    bits = bitcast(x, dtypes.int32)
    magnitude = bits & 0x7FFFFFFF
    is_nan = magnitude > 0x7F800000
    if dtype is dtypes.bfloat16:
        odd = Value(bits.x, dtypes.uint32) >> 16 & 1
        rounded = (Value(bits.x, dtypes.uint32) + odd + 0x7FFF) >> 16
        quiet = (Value(bits.x, dtypes.uint32) >> 16) | 0x40
        return Value(b.trunc(select(is_nan, quiet, rounded).x, short), dtype)
    normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - (112 << 23)) >> 13
    half = bitcast(magnitude, dtypes.float32) + 0.5  # whose last place is the smallest float16
    small = bitcast(half, dtypes.int32) - 0x3F000000
    found = select(magnitude < 0x38800000, small, normal)
    found = select(magnitude >= 0x47800000, 0x7C00, found)
    found = select(is_nan, 0x7E00 | (magnitude >> 13 & 0x1FF), found)
    return Value(b.trunc((found | (bits >> 16 & 0x8000)).x, short), dtype)


def _widened_bytes(x: Value, dtype: DType) -> Value:
    """Convert a multiple of eight bytes to integers or floats of at least four bytes on 64-bit ARM.

    By SSHLL, SSHLL2 and SCVTF of each eight, where LLVM takes sixteen lanes apart by shuffles and shifts.
    """
    short, wide = (dtypes.uint16, dtypes.uint32) if x.dtype.is_unsigned else (dtypes.int16, dtypes.int32)
    words = [part(x, i, 8).to(short) for i in range(0, x.count, 8)]
    return joined([part(w, i, 4).to(wide).to(dtype) for w in words for i in (0, 4)])
