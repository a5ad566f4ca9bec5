"""Expressions in kernels: the table of operations, and the walk that computes a tree on the language's values.

Lives here: `OPERATIONS`, `evaluate`, `tables`, and what `quantize`, `convert` and the other operations are.
Not here: the trees (../loops/expressions.py), what they are in NumPy (../loops/arrays.py), the maker of element-wise
loops (maps.py).

Everything serves numbers and vectors of any length alike. Integers wrap. Float16 and bfloat16 are computed in float32
and rounded once an operation. NaN: `minimum` and `maximum` give their second operand, activations keep it, `quantize`
gives the least integer. Mathematical functions are the quickest that are within 1e-6 (gelu_tanh 1e-5) of the exact
value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InternalError
from .. import language as kl
from ..loops.expressions import Expr
from . import Unmade

if TYPE_CHECKING:
    from ..language import Pointer, Value

Operation = Callable[..., Any]


def evaluate(expr: Expr, args: Sequence[Value | Pointer], params: Sequence[Value] = (), *,
             finite: bool = False) -> Value:  # fmt: skip
    """What the expression is of these operands. args[i], params[i]: what stands for arg i and param i. finite: whether
    all floats among them are, but for arg 0.

    Operands are vectors of one length, or numbers; a `lookup`'s table is a Pointer. The result is a vector where one of
    the operands that matter is. raises Unmade for an operation that the table does not have
    """
    known: dict[Expr, Any] = {}

    def walk(e: Expr) -> Any:
        found = known.get(e)
        if found is None:
            if finite and e.op == "quantize" and _is_number(e.args[0]):
                found = known[e] = _quantize(e.dtype, *map(walk, e.args), number=True)
            else:
                found = known[e] = _one(e, walk, args, params)
        return found

    return walk(expr)


def _is_number(e: Expr) -> bool:
    """Whether it is a product of an integer and a float that is read, which is no NaN where those are finite."""
    return e.op == "mul" and all(
        (a.op == "arg" and a.value > 0) or a.op in ("param", "scalar", "const")
        or (a.op == "convert" and not a.args[0].dtype.is_floating) for a in e.args)  # fmt: skip


def _one(e: Expr, walk: Callable[[Expr], Any], args: Sequence[Any], params: Sequence[Value]) -> Any:
    if e.op in ("arg", "param"):
        found = args[e.value] if e.op == "arg" else params[e.value]
        if found.dtype is not e.dtype:
            raise InternalError(op="kernel", what=f"{e!r} is read as {e.dtype.name}", found=found.dtype.name)
        return found
    if e.op in ("const", "scalar"):
        return kl.full(e.dtype, 0, e.value)
    if e.op == "call":
        return e.value.stage(*map(walk, e.args))
    operation = OPERATIONS.get(e.op)
    if operation is None:
        raise Unmade(f"no operation {e.op} in kernels")
    return operation(e.dtype, *map(walk, e.args))


def tables(expr: Expr) -> frozenset[int]:
    """Which args are tables of a `lookup`, handed over as a pointer: an element for each value of 8 or 16 bits."""
    found: set[int] = set()
    todo = [expr]
    while todo:
        e = todo.pop()
        if e.op == "lookup":
            found.add(e.args[1].value)
            todo.append(e.args[0])
        else:
            todo += e.args
    return frozenset(found)


def check(expr: Expr) -> None:
    """Raises Unmade for an expression that `evaluate` cannot do: makers ask before anything is compiled."""
    todo = [expr]
    while todo:
        e = todo.pop()
        if e.args and e.op not in OPERATIONS and e.op != "call":
            raise Unmade(f"no operation {e.op} in kernels")
        if e.dtype not in DTYPES:
            raise Unmade(f"{e.op} of {e.dtype.name}")
        of_float32 = e.op in FLOAT32 or (e.op == "pow" and e.dtype.is_floating)
        if e.args and of_float32 and e.dtype not in NARROW and e.dtype is not dtypes.float32:
            raise Unmade(f"{e.op} of {e.dtype.name}")
        todo += e.args


DTYPES = frozenset((dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int8, dtypes.uint8,
                    dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64,
                    dtypes.bool))  # fmt: skip
NARROW = frozenset((dtypes.float16, dtypes.bfloat16))
"""Floats that are computed in float32."""


# ---- making operations --------------------------------------------------------------------------------------------


def _wide(function: Callable[..., Value]) -> Operation:
    """An operation whose narrow floats are computed in float32."""

    def operation(dtype: DType, *xs: Value) -> Value:
        found = function(*(x.to(dtypes.float32) if x.dtype in NARROW else x for x in xs))
        return found.to(dtype) if dtype in NARROW else found

    return operation


def _named(name: str) -> Operation:
    """A function of the language, which is loaded when a kernel is staged."""
    return _wide(lambda *xs: getattr(kl, name)(*xs))


def _mathematical(name: str) -> Operation:
    """A function of float32 by name: the quickest of mathematics/single.py, approximate.py and mathematics/."""

    def function(*xs: Value) -> Value:
        from .. import approximate
        from ..mathematics import single

        quick = getattr(single, name, None) or getattr(approximate, name, None)
        if quick is None:
            return getattr(kl, name)(*xs)
        return kl.Value(quick(*(x.lanes for x in _alike(*xs))).x, dtypes.float32)

    return _wide(function)


def _alike(*xs: Value) -> tuple[Value, ...]:
    count = max(x.count for x in xs)
    return tuple(x.splat(count) for x in xs)


def _bits(function: Callable[..., Value]) -> Operation:
    """An operation on integers or masks as they are."""
    return lambda dtype, *xs: function(*xs)


# ---- arithmetic ----------------------------------------------------------------------------------------------------


def _divide(x: Value, y: Value) -> Value:
    """Floats as they are; integers toward zero, and 0 where y is 0. float64 has integers of 32 bits exactly."""
    if x.dtype.is_floating:
        return x / y
    if x.dtype.size > 4:
        return _safe(x, y, lambda a, b: a // b)
    x, y = kl.select(y == 0, 0, x), kl.select(y == 0, 1, y)
    return (x.to(dtypes.float64) / y.to(dtypes.float64)).to(dtypes.int64).to(x.dtype)


def _safe(x: Value, y: Value, divide: Callable[[Value, Value], Value]) -> Value:
    """An integer division that neither traps at 0, where it divides 0 by 1, nor at the least number by -1."""
    x, y = kl.select(y == 0, 0, x), kl.select(y == 0, 1, y)
    if x.dtype.is_unsigned:
        return divide(x, y)
    found = divide(x, kl.select(y == -1, 1, y))
    return kl.select(y == -1, _of_minus_one(divide, x), found)


def _of_minus_one(divide: Callable[[Value, Value], Value], x: Value) -> Value:
    """x / -1 is -x, x mod -1 is 0."""
    return -divide(x, kl.full(x.dtype, x.count, 1))


def _remainder(x: Value, y: Value) -> Value:
    """x - y trunc(x / y), with the sign of x; 0 where y is 0. Of integers."""
    if x.dtype.size > 4:
        return kl.select(y == 0, 0, _safe(x, y, lambda a, b: a % b))
    return kl.select(y == 0, 0, x - _divide(x, y) * y)


def _by_division(name: str, x: Value, y: Value) -> Value:
    """A function of floats in mathematics/division.py."""
    from ..mathematics import division

    return kl.Value(getattr(division, name)(*(v.lanes for v in _alike(x, y))).x, x.dtype)


def _floor_divide(x: Value, y: Value) -> Value:
    """floor(x / y); of integers 0 where y is 0."""
    if x.dtype.is_floating:
        return _by_division("floor_quotient", x, y)
    if x.dtype.is_unsigned:
        return _divide(x, y)
    q = _divide(x, y)
    off = (q * y != x) & ((x < 0) != (y < 0)) & (y != 0)
    return q - off.to(x.dtype)


def _floor_remainder(x: Value, y: Value) -> Value:
    """x - y floor(x / y), with the sign of y; of integers 0 where y is 0."""
    if x.dtype.is_floating:
        return _by_division("floor_remainder", x, y)
    r = _remainder(x, y)
    if x.dtype.is_unsigned:
        return r
    return kl.select((r != 0) & ((r < 0) != (y < 0)), r + y, r)


def _power(x: Value, y: Value) -> Value:
    """x^y; of integers by squaring, 0 to the negative is 0, 1 / x^-y toward zero otherwise."""
    if x.dtype.is_floating:
        return kl.pow(*_alike(x, y))
    total, base, rest = kl.full(x.dtype, 0, 1), x, kl.maximum(y, 0)
    for _ in range(x.dtype.size * 8 - 1):
        total = kl.select((rest & 1) != 0, total * base, total)
        base, rest = base * base, rest >> 1
    if x.dtype.is_unsigned:
        return total
    odd = (y & 1) != 0
    below = kl.select(x == 1, 1, kl.select(x == -1, kl.select(odd, kl.full(x.dtype, 0, -1), 1), 0))
    return kl.select(y < 0, below, total)


def _power_or_least(x: Value, y: Value) -> Value:
    """x^y of int32, the least int32 where it is beyond them; y is not negative."""
    wide, most = dtypes.int64, 1 << 31
    total, base, rest = kl.full(wide, x.count, 1), x.to(wide), y
    for _ in range(x.dtype.size * 8 - 1):
        total = kl.select((rest & 1) != 0, kl.clamp(total * base, -most, most), total)
        base, rest = kl.clamp(base * base, -most, most), rest >> 1
    return kl.select((total >= most) | (total <= -most), -most, total).to(x.dtype)


def _sign(x: Value) -> Value:
    """-1, 0 or 1; NaN stays, and 0.0 is the sign of both zeros."""
    if x.dtype.is_unsigned:
        return kl.minimum(x, 1)
    one = kl.full(x.dtype, 0, 1)
    return kl.select(x > 0, one, kl.select(x < 0, -one, x + 0.0 if x.dtype.is_floating else x))


def _square(x: Value) -> Value:
    return x * x


def _squared_difference(x: Value, y: Value) -> Value:
    return _square(x - y)


def _round_away(x: Value) -> Value:
    """The nearest whole number, of two the one away from zero."""
    whole = kl.trunc(x)
    return whole + kl.select(kl.abs(x - whole) >= 0.5, _sign(x), 0.0)


def _rsqrt(x: Value) -> Value:
    return 1.0 / kl.sqrt(x)


# ---- activations ---------------------------------------------------------------------------------------------------


def _clamp(x: Value, low: Any, high: Any) -> Value:
    """Within [low, high]; NaN stays."""
    return kl.minimum(high, kl.maximum(low, x))


def _relu(x: Value) -> Value:
    """max(x, 0); NaN and -0.0 stay."""
    return kl.maximum(0, x)


def _leaky_relu(x: Value, alpha: Any) -> Value:
    """x, below 0 alpha x; alpha: a number or, of PRELU, elements."""
    return kl.select(x < 0, x * alpha, x)


def _hard_swish(x: Value) -> Value:
    """x (min(max(x + 3, 0), 6) / 6)."""
    return x * (_clamp(x + 3.0, 0.0, 6.0) * (1.0 / 6.0))


# ---- other dtypes --------------------------------------------------------------------------------------------------


def _convert(dtype: DType, x: Value) -> Value:
    """Integers by their sign, cut off; floats to integers toward zero, those outside to the nearest end."""
    if x.dtype.is_floating and not dtype.is_floating:
        x = x.to(dtypes.float32) if x.dtype in NARROW else x
        from ..language.integers import to_integer

        return x != 0 if dtype.is_bool else to_integer(x, dtype)
    return x.to(dtype)


def _quantize(dtype: DType, x: Value, zero_point: Value, low: Any = None, high: Any = None, *,
              number: bool = False) -> Value:  # fmt: skip
    """round(x) + zero_point, the nearest even of two, within [low, high] of int32, by default the dtype's range.

    It is held within the range before it is rounded, so that a float is never too large for int32; NaN becomes low.
    number: whether x is known to be none.
    """
    if dtype.size == 1 and x.count:
        found = kl.round_bytes(x, zero_point, dtype, number)
        return found if low is None else kl.clamp(found, low.to(dtype), high.to(dtype))
    zero = zero_point.to(dtypes.float32)
    least = (float(dtype.min) if low is None else low.to(dtypes.float32)) - zero
    most = (float(dtype.max) if high is None else high.to(dtypes.float32)) - zero
    held = kl.clamp(x, least, most)
    return (kl.to_int(held) + zero_point).to(dtype)


def _lookup(dtype: DType, x: Value, table: Pointer) -> Value:
    """table[the bits of x as an unsigned integer]."""
    if x.dtype.size == 1 and table.dtype.size == 1:
        return kl.lookup(table, x.to(dtypes.uint8) if not x.count else kl.bitcast(x, dtypes.uint8))
    index = x.to(dtypes.uint8 if x.dtype.size == 1 else dtypes.uint16).to(dtypes.int64)
    return kl.gather(table, index) if x.count else table[index]


def _select(dtype: DType, mask: Value, a: Value, b: Value) -> Value:
    return kl.select(mask, a, b)


def _shift_right(x: Value, by: Value) -> Value:
    """x 2^-by toward minus infinity; by is held within [0, bits - 1]."""
    return x >> kl.clamp(by, 0, x.dtype.size * 8 - 1)


def _shift_left(x: Value, by: Value) -> Value:
    """x 2^by, with the bits beyond the type lost; 0 for a negative `by`, and from as many bits on."""
    bits = x.dtype.size * 8
    inside = (by >= 0) & (by < bits)
    return kl.select(inside, x << kl.select(inside, by, 0), 0)


FLOAT32 = frozenset((
    "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "sigmoid", "softplus", "gelu", "gelu_tanh", "elu",
))  # fmt: skip
"""Operations of float32, float16 and bfloat16 alone."""

OPERATIONS: dict[str, Operation] = {
    # name: (dtype of the result, operands) -> result
    "add": _wide(lambda x, y: x + y),
    "sub": _wide(lambda x, y: x - y),
    "mul": _wide(lambda x, y: x * y),
    "div": _wide(_divide),
    "floor_div": _wide(_floor_divide),
    "floor_mod": _wide(_floor_remainder),
    "pow": _wide(_power),
    "pow_or_least": _bits(_power_or_least),
    "fma": _named("fma"),
    "minimum": _named("minimum"),
    "maximum": _named("maximum"),
    "squared_difference": _wide(_squared_difference),
    "neg": _wide(lambda x: -x),
    "abs": _named("abs"),
    "sign": _wide(_sign),
    "square": _wide(_square),
    "sqrt": _named("sqrt"),
    "reciprocal": _wide(lambda x: 1.0 / x),
    "floor": _named("floor"),
    "ceil": _named("ceil"),
    "round_even": _named("round_even"),
    "round_away": _wide(_round_away),
    "trunc": _named("trunc"),
    **{name: _mathematical(name) for name in sorted(FLOAT32)},
    "rsqrt": _wide(_rsqrt),
    "relu": _wide(_relu),
    "relu6": _wide(lambda x: _clamp(x, 0, 6)),
    "clamp": _wide(_clamp),
    "leaky_relu": _wide(_leaky_relu),
    "hard_swish": _wide(_hard_swish),
    "equal": _wide(lambda x, y: x == y),
    "not_equal": _wide(lambda x, y: x != y),
    "less": _wide(lambda x, y: x < y),
    "less_equal": _wide(lambda x, y: x <= y),
    "greater": _wide(lambda x, y: x > y),
    "greater_equal": _wide(lambda x, y: x >= y),
    "logical_and": _bits(lambda x, y: x & y),
    "logical_or": _bits(lambda x, y: x | y),
    "logical_not": _bits(lambda x: ~x),
    "bitwise_and": _bits(lambda x, y: x & y),
    "bitwise_or": _bits(lambda x, y: x | y),
    "bitwise_xor": _bits(lambda x, y: x ^ y),
    "bitwise_not": _bits(lambda x: ~x),
    "shift_left": _bits(_shift_left),
    "shift_right": _bits(_shift_right),
    "select": _select,
    "convert": _convert,
    "bitcast": lambda dtype, x: kl.bitcast(x, dtype),
    "quantize": _quantize,
    "lookup": _lookup,
}
"""By name of an operation, what computes it."""
