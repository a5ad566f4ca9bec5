"""Values of the kernel language: scalars, vectors and masks, with Python's operators.

Lives here: `Value`; select, minimum and maximum, bit casts and shuffles, which its conversions use.
Not here: the kernel being staged (trace.py), loads and stores (pointers.py), other functions of values (functions.py,
dots.py), functions of the scalar table (operators.py), control flow (control.py).

The same code computes one element or a vector of them with the same rounding, so a result does not depend on the
position of its element. Integers wrap; `//` and `%` of integers round toward zero, as processors do. Comparisons of
floats are false if an operand is NaN, except `!=`, which is true. A scalar operand of a vector is broadcast; a Python
number takes the dtype of the other operand. Other dtypes do not mix: `x.to(dtype)` converts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from ...ops.tensor import Tensor
from .llvm_types import F32, I32, KIND, SHORT_FLOATS, SplatConstant, is_number, number, suffix, typed, undefined
from .trace import current, intrinsic

DIVISIONS = ("sdiv", "srem", "udiv", "urem")
REMAINDERS = ("srem", "urem")


if TYPE_CHECKING:
    # The element types of the language are names of Value for checkers, which must pass as dtypes, too.
    class _ElementType(DType, type): ...  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
else:
    _ElementType = type


class Value(Tensor, metaclass=_ElementType):
    """A scalar or a vector. x: LLVM's value; dtype: the element type. A mask is a vector of bool."""

    __slots__ = ("count", "dtype", "x")

    dtype: DType
    """Element type."""
    count: int
    """Number of lanes; 0 for a scalar."""

    def __init__(self, x: ir.Value, dtype: DType) -> None:
        self.x, self.count = x, x.type.count if isinstance(x.type, ir.VectorType) else 0
        self.dtype = dtype  # pyright: ignore[reportIncompatibleMethodOverride]
        current().count_value()

    @property
    def shape(self) -> TensorShape:
        """Return (): operators of the catalogue treat a value as one element."""
        return self.spec.shape

    @property
    def spec(self) -> TensorSpec:
        """Return the spec of a scalar of this dtype."""
        return TensorSpec((), self.dtype)

    def __bool__(self) -> bool:
        raise TypeError(
            "a kernel's scalar has no truth value in Python that is not converted (a lambda without its "
            "source, a library's function): use ow.where(condition, a, b)"
        )

    def __repr__(self) -> str:
        return f"<{self.dtype.short}{f' x {self.count}' if self.count else ''} of kernel {current().name!r}>"

    def splat(self, count: int) -> Value:
        """Broadcast a scalar to `count` lanes; a vector must already have as many."""
        if self.count == count:
            return self
        if self.count:
            raise TypeError(f"vectors of {self.count} and of {count or 1} lanes do not go together")
        kind = typed(self.dtype, count)
        if isinstance(self.x, ir.Constant):
            return Value(SplatConstant(kind, self.x), self.dtype)
        return Value(current().builder.splat(self.x, kind), self.dtype)

    def _with_operand(self, other: Any) -> tuple[Value, Value]:
        """Return this value and the other operand with one number of lanes. Raises TypeError for other dtypes."""
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
        a, c = self._with_operand(other)
        if swap:
            a, c = c, a
        name = floating if a.dtype.is_floating else (unsigned or signed) if a.dtype.is_unsigned else signed
        if a.dtype in SHORT_FLOATS:
            raise TypeError(f"kernels store {a.dtype.name} and compute in float32: x.to(f32)")
        if name is None or (a.dtype.is_bool and name not in ("and_", "or_", "xor")):
            raise TypeError(f"this operator is not defined for {a.dtype.name}")
        divide = current().division
        if name in DIVISIONS and divide is not None:
            result: Value = divide(name, a, c)
            return result
        if name in REMAINDERS and current().shares_divisions and not (a.count or isinstance(c.x, ir.Constant)):
            return a - a // c * c
        return Value(getattr(current().builder, name)(a.x, c.x), a.dtype)

    def __add__(self, o: Any) -> Value:
        if not isinstance(o, Value) and hasattr(o, "prefetch"):  # a pointer, whose __radd__ takes the offset
            return NotImplemented
        return self if self._is_same_plus(o) else self._arithmetic(o, "fadd", "add")

    def _is_same_plus(self, o: Any) -> bool:
        """Return whether adding a Python number changes nothing: kernels add offsets that are often 0."""
        return type(o) is int and o == 0 and self.dtype.is_integer

    def __radd__(self, o: Any) -> Value:
        return self if self._is_same_plus(o) else self._arithmetic(o, "fadd", "add", swap=True)

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
        return self._arithmetic(o, None, "and_")

    def __or__(self, o: Any) -> Value:
        return self._arithmetic(o, None, "or_")

    def __ror__(self, o: Any) -> Value:
        return self._arithmetic(o, None, "or_")

    def __xor__(self, o: Any) -> Value:
        return self._arithmetic(o, None, "xor")

    def __rxor__(self, o: Any) -> Value:
        return self._arithmetic(o, None, "xor")

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

    def _compare(self, sign: str, o: Any) -> Value:
        a, c = self._with_operand(o)
        b = current().builder
        if a.dtype in SHORT_FLOATS:
            raise TypeError(f"kernels store {a.dtype.name} and compute in float32: x.to(f32)")
        if a.dtype.is_floating:
            compare = b.fcmp_unordered if sign == "!=" else b.fcmp_ordered
        else:
            compare = b.icmp_unsigned if a.dtype.is_unsigned or a.dtype.is_bool else b.icmp_signed
        return Value(compare(sign, a.x, c.x), dtypes.bool)

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

    def __getitem__(self, lane: Any) -> Value:
        """Return one lane."""
        guards = current().guards
        if isinstance(lane, Value):
            if lane.count or lane.dtype.is_floating:
                raise TypeError(f"the index of a lane must be an integer, found {lane!r}")
            if guards is not None:
                wide = lane.to(dtypes.int64)
                holds = Value(wide.x, dtypes.uint64) < self.count
                guards.check(holds, f"lane outside of a vector of {self.count}")
        elif not 0 <= lane < self.count:
            raise IndexError(f"a vector of {self.count} lanes has no lane {lane}")
        index = lane.x if isinstance(lane, Value) else ir.Constant(I32, lane)
        return Value(current().builder.extract_element(self.x, index), self.dtype)

    def __iter__(self) -> Iterator[Value]:
        return (self[i] for i in range(self.count))

    def to(self, dtype: DType) -> Value:
        """Convert to a dtype: extend or truncate integers, round floats; floats become integers toward zero."""
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
        """Convert integers to a narrower dtype with saturation."""
        low, high = max(dtype.min, self.dtype.min), min(dtype.max, self.dtype.max)
        return clamp(self, low, high).to(dtype)


def value(x: Any, dtype: DType = dtypes.int64) -> Value:
    """Return a Python number as a value of this dtype; return a value unchanged."""
    return x if isinstance(x, Value) else Value(number(dtype, x), dtype)


def alike(*xs: Any) -> tuple[Value, ...]:
    """Convert operands to one dtype and number of lanes, which Python numbers take from the values among them."""
    values = [x for x in xs if isinstance(x, Value)]
    if not values:
        raise TypeError("at least one operand must be a value of the kernel")
    dtype, count = values[0].dtype, 0
    for v in values:
        if v.dtype is not dtype:
            raise TypeError(f"{dtype.name} and {v.dtype.name} do not mix in a kernel: x.to(dtype) converts")
        count = max(count, v.count)
    return tuple([x.splat(count) if isinstance(x, Value) else Value(number(dtype, x, count), dtype) for x in xs])


def same_type(name: str, x: Value, *others: Value) -> Value:
    """Call the intrinsic llvm.NAME, whose operands and result have one type."""
    return Value(intrinsic(f"{name}.{suffix(x.x.type)}", x.x.type, x.x, *(o.x for o in others)), x.dtype)


def select(mask: Any, a: Any, c: Any) -> Value:
    """Return a where the mask is true, else c. Also selects between pointers."""
    if not isinstance(a, Value) and hasattr(a, "chosen"):  # a pointer
        pointer: Value = a.chosen(mask, c)
        return pointer
    a, c = alike(a, c)
    count = max(mask.count, a.count)
    a, c = a.splat(count), c.splat(count)
    lanes = mask.x if mask.count else mask.splat(count).x if count else mask.x
    return Value(current().builder.select(lanes, a.x, c.x), a.dtype)


def minimum(a: Any, c: Any, *, number: bool = False) -> Value:
    """Return the smaller operand; c if either is NaN. number: whether c is never NaN."""
    x, y = alike(a, c)
    result = _extreme("min", x, y, number)
    return select(a < c, x, y) if result is None else result


def maximum(a: Any, c: Any, *, number: bool = False) -> Value:
    """Return the larger operand; c if either is NaN. number: whether c is never NaN."""
    x, y = alike(a, c)
    result = _extreme("max", x, y, number)
    return select(a > c, x, y) if result is None else result


def _extreme(name: str, a: Value, c: Value, number: bool) -> Value | None:
    """Return min or max by one instruction; None if the target has none.

    For floats, only 64-bit ARM is used: FMIN and FMAX propagate NaN, FMINNM and FMAXNM ignore it, so they match if one
    operand is never NaN. They order -0.0 before 0.0.
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
    """Return x limited to [low, high]; low if x is NaN."""
    return minimum(maximum(x, low), high)


def bitcast(x: Value, dtype: DType) -> Value:
    """Reinterpret the bits as another dtype, with the number of lanes that they fill."""
    bits = x.dtype.size * (x.count or 1)
    if bits % dtype.size:
        raise TypeError(f"{bits} bytes are not a whole number of {dtype.name}")
    count = bits // dtype.size
    kind = typed(dtype, count if x.count or count > 1 else 0)
    return Value(current().builder.bitcast(x.x, kind), dtype)


def shuffle(a: Value, c: Value | None, indices: Sequence[int]) -> Value:
    """Select lanes of the concatenation of a and c by constant indices; -1 leaves a lane undefined."""
    other = undefined(a.x.type) if c is None else c.x
    lanes = [ir.Constant(I32, max(i, 0)) for i in indices]
    mask = ir.Constant(ir.VectorType(I32, len(lanes)), lanes)
    return Value(current().builder.shuffle_vector(a.x, other, mask), a.dtype)


def concat(a: Value, c: Value) -> Value:
    """Concatenate two vectors."""
    return shuffle(a, c, range(a.count + c.count))


def part(a: Value, start: int, count: int) -> Value:
    """Return `count` lanes, beginning with lane `start`."""
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

    Uses integer arithmetic if the target has no instruction, so that no target needs a library.
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
    result_bits = select((wide & 0x7FFF) >= 0x7C00, special, bitcast(magnitude, dtypes.int32))
    return bitcast(result_bits | ((wide & 0x8000) << 16), dtypes.float32)


def _narrowed_float(x: Value, dtype: DType) -> Value:
    """Round float32 to the nearest float16 or bfloat16, ties to even; NaN stays NaN."""
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
    result_bits = select(magnitude < 0x38800000, small, normal)
    result_bits = select(magnitude >= 0x47800000, 0x7C00, result_bits)
    result_bits = select(is_nan, 0x7E00 | (magnitude >> 13 & 0x1FF), result_bits)
    return Value(b.trunc((result_bits | (bits >> 16 & 0x8000)).x, short), dtype)


def _widened_bytes(x: Value, dtype: DType) -> Value:
    """Convert a multiple of eight bytes to integers or floats of at least four bytes on 64-bit ARM.

    Uses SSHLL, SSHLL2 and SCVTF on eight lanes each; LLVM splits sixteen lanes by shuffles and shifts.
    """
    short, wide = (dtypes.uint16, dtypes.uint32) if x.dtype.is_unsigned else (dtypes.int16, dtypes.int32)
    words = [part(x, i, 8).to(short) for i in range(0, x.count, 8)]
    return joined([part(w, i, 4).to(wide).to(dtype) for w in words for i in (0, 4)])
