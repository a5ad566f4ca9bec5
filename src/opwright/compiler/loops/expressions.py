"""Expressions: the computation of one element by a kernel, as an immutable tree.

Lives here: `Expr`, its leaves and constructors, `ordered`, `parametrised`, `simplified`, the text form;
`evaluate_arrays`, the evaluation on NumPy arrays.
Not here: functions (scalar/table.py), code generation (../kernels/expression.py), the operations that evaluate
expressions (ops.py).

    y = quantize(relu(convert(arg(0, i32) + arg(1, i32), f32) * arg(2, f32)), zero_point, i8)

A number that belongs to the structure (the 6 of relu6) is a `const` and part of the machine code; a number that belongs
to a model (a scale) is a `scalar` and passed to the kernel at run time, so that layers share code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.dtypes import DType, float32, float64, int32
from ...core.errors import InternalError
from ...scalar.table import FUNCTIONS


@dataclass(frozen=True, eq=False)
class Expr:
    """One operation. op: the name of a function of scalar/table.py or of a conversion, or a leaf: arg, const, scalar,
    param, row_scale.

    Equality is that of the text. size: number of operations and leaves, repeated ones counted each time. dtype: of the
    result. args: operands. value: of a leaf its index or number. The operations:

        add sub mul div neg abs minimum maximum fma (a * b + c) square sqrt rsqrt, floor ceil round_even
        less less_equal equal not_equal greater greater_equal (bool), logical_and logical_or logical_not,
        select (c, a, b); exp log tanh sigmoid erf ...: every row of scalar/table.py, by its name
        convert, bitcast (to dtype), quantize (x, zero_point[, low, high]), lookup (x, table)
        call (value: an InlinedKernel of the args, compiler/inlined_kernels.py)
    """

    op: str
    dtype: DType
    args: tuple[Expr, ...] = ()
    value: Any = None
    size: int = field(init=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", 1 + sum(a.size for a in self.args))
        object.__setattr__(self, "_hash", hash((self.op, self.dtype, self.args, repr(self.value))))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Compare numbers by repr, so that 0.0 differs from -0.0, and NaN equals NaN."""
        return self is other or (
            isinstance(other, Expr)
            and hash(self) == hash(other)
            and self.op == other.op
            and self.dtype is other.dtype
            and self.args == other.args
            and repr(self.value) == repr(other.value)
        )

    def __reduce__(self) -> tuple[type[Expr], tuple[Any, ...]]:
        return Expr, (self.op, self.dtype, self.args, self.value)

    def __repr__(self) -> str:
        if self.op == "arg":
            return f"arg{self.value}:{self.dtype.short}"
        if self.op == "const":
            return f"{self.value!r}:{self.dtype.short}"
        if self.op == "scalar":
            return f"<{self.value!r}>:{self.dtype.short}"
        if self.op == "param":
            return f"param{self.value}:{self.dtype.short}"
        inner = ", ".join(map(repr, self.args))
        if self.op == "call":
            return f"call:{self.dtype.short}[{self.value!r}]({inner})"
        return f"{self.op}:{self.dtype.short}({inner})" if self.op in CONVERTING else f"{self.op}({inner})"


CONVERTING = frozenset({"convert", "quantize", "bitcast", "lookup"})
"""Operations whose result may have another dtype than their operands; the text includes it."""


def arg(index: int, dtype: DType) -> Expr:
    """Return an operand of the operation; of a contraction, 0 is the sum."""
    return Expr("arg", dtype, value=index)


def const(value: float, dtype: DType) -> Expr:
    """Return a number that is part of the code."""
    return Expr("const", dtype, value=value)


def scalar(value: float, dtype: DType) -> Expr:
    """Return a number that the kernel receives at run time."""
    return Expr("scalar", dtype, value=value)


def row_scale() -> Expr:
    """Return the scale of the quantized row or image that a sum is of, in contractions that round their input."""
    return Expr("row_scale", float32)


def apply(op: str, *args: Expr, dtype: DType | None = None) -> Expr:
    """Return an operation on expressions. dtype: by default the first operand's."""
    return Expr(op, dtype or args[0].dtype, args)


def convert(x: Expr, dtype: DType) -> Expr:
    """Return x in another dtype: integers are sign-extended or truncated, floats truncated toward zero."""
    return x if x.dtype is dtype else Expr("convert", dtype, (x,))


def quantize(x: Expr, zero_point: int, dtype: DType, *within: int) -> Expr:
    """Return round(x) + zero_point, ties to even, clamped to dtype's range. x: float32, in steps of the result.

    within: bounds of the result, if an activation has narrower ones than the dtype
    """
    return Expr("quantize", dtype, (x, *(scalar(v, int32) for v in (zero_point, *within))))


def lookup(x: Expr, table: Expr) -> Expr:
    """Return table[x as uint8], a function of one byte. x: int8 or uint8; table: an `arg` with 256 elements."""
    return Expr("lookup", table.dtype, (x, table))


def rewritten(expr: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    """Return the expression with each leaf replaced; shared parts remain shared."""
    results: dict[int, Expr] = {}

    def walk(e: Expr) -> Expr:
        result = results.get(id(e))
        if result is None:
            if not e.args:
                result = leaf(e)
            else:
                args = tuple(map(walk, e.args))
                same = all(a is b for a, b in zip(args, e.args))
                result = e if same else Expr(e.op, e.dtype, args, e.value)
            results[id(e)] = result
        return result

    return walk(expr)


def used_arguments(expr: Expr) -> set[int]:
    """Return the indices of the operands that an expression reads."""
    return {expr.value} if expr.op == "arg" else set().union(*map(used_arguments, expr.args))


def substitute(expr: Expr, args: dict[int, Expr]) -> Expr:
    """Return the expression with some of its args replaced."""
    return rewritten(expr, lambda e: args.get(e.value, e) if e.op == "arg" else e)


COMMUTATIVE = ("add", "mul")
"""Operations whose operands have one order in code. IEEE 754 leaves only the payload of a NaN to the order."""


def ordered(expr: Expr) -> Expr:
    """Return the expression with the operands of commutative operations in one order, so that x + y and y + x share
    code: by the first `arg` that an operand reads, numbers last."""
    results: dict[int, tuple[float, Expr]] = {}

    def walk(e: Expr) -> tuple[float, Expr]:
        result = results.get(id(e))
        if result is None:
            operands = [walk(a) for a in e.args]
            if e.op in COMMUTATIVE:
                operands.sort(key=lambda operand: (operand[0], operand[1].size, operand[1].op))
            args = tuple(operand for _, operand in operands)
            same = all(a is b for a, b in zip(args, e.args))
            first = e.value if e.op == "arg" else min((first for first, _ in operands), default=math.inf)
            result = results[id(e)] = first, e if same else Expr(e.op, e.dtype, args, e.value)
        return result

    return walk(expr)[1]


def parametrised(expr: Expr) -> tuple[Expr, tuple[tuple[float, DType], ...]]:
    """Return the expression in one order, with scalars replaced by `param` i, and the scalars: code and data."""
    scalars: list[tuple[float, DType]] = []

    def leaf(e: Expr) -> Expr:
        if e.op != "scalar":
            return e
        scalars.append((e.value, e.dtype))
        return Expr("param", e.dtype, value=len(scalars) - 1)

    return rewritten(ordered(expr), leaf), tuple(scalars)


def _numbers_in_float(e: Expr) -> Expr | None:
    """Simplify float(quantize(x, zero)) without narrowing: rounded steps plus the zero point, clamped."""
    (q,) = e.args
    if q.op != "quantize" or e.dtype is not float32:
        return None
    return _bounded(q, 0.0)


def _centred(e: Expr) -> Expr | None:
    """Simplify float(quantize(x, zero)) - zero', which needs one addition less."""
    x, zero = e.args
    if x.op != "convert" or x.args[0].op != "quantize" or zero.op != "scalar" or e.dtype is not float32:
        return None
    return _bounded(x.args[0], zero.value)


def _bounded(q: Expr, less: float) -> Expr | None:
    x, *parameters = q.args
    if any(r.op != "scalar" for r in parameters):
        return None
    zero, low, high = [r.value for r in parameters] + ([] if len(parameters) == 3 else [int(v) for v in q.dtype.limits])
    steps = apply("round_even", x)
    if zero != less:
        steps = apply("add", steps, scalar(float(zero - less), float32))
    return apply(
        "minimum", apply("maximum", steps, scalar(float(low - less), float32)), scalar(float(high - less), float32)
    )


def _silu(e: Expr) -> Expr | None:
    """Simplify x sigmoid(x) to float32's own function: one division and no product."""
    if e.dtype is not float32:
        return None
    for x, factor in (e.args, e.args[::-1]):
        if factor.op == "sigmoid" and factor.args[0] == x:
            return apply("silu", x)
    return None


def _tanh_of_softplus(e: Expr) -> Expr | None:
    """Simplify tanh(log(1 + exp(x))), of mish, to u / (u + 2) with u = t (t + 2), t = exp(x): one function of three.

    Beyond 20 it is 1 in float32, and t t would overflow beyond 44.
    """
    (y,) = e.args
    if e.dtype is not float32 or y.op != "log" or y.args[0].op != "add":
        return None
    for one, exp in (y.args[0].args, y.args[0].args[::-1]):
        if one.op in ("scalar", "const") and one.value == 1 and exp.op == "exp":
            two = scalar(2.0, float32)
            t = apply("exp", apply("minimum", scalar(20.0, float32), exp.args[0]))  # of NaN the second
            u = apply("mul", t, apply("add", t, two))
            return apply("div", u, apply("add", u, two))
    return None


RULES: dict[str, tuple[Callable[[Expr], Expr | None], ...]] = {
    "convert": (_numbers_in_float,),
    "sub": (_centred,),
    "mul": (_silu,),
    "tanh": (_tanh_of_softplus,),
}
"""Rules by operation, applied before its operands are visited."""


def simplified(expr: Expr) -> Expr:
    """Return the expression after all rules, applied from the root; shared parts remain shared. Equal but for roundings
    of `silu` and of the tanh of a softplus."""
    results: dict[int, Expr] = {}
    alive: list[Expr] = []  # so that identities stay unique

    def walk(e: Expr) -> Expr:
        result = results.get(id(e))
        if result is None:
            alive.append(e)
            result = results[id(e)] = _simplify(e, walk)
        return result

    return walk(expr)


def _simplify(e: Expr, walk: Callable[[Expr], Expr]) -> Expr:
    for rule in RULES.get(e.op, ()):
        replacement = rule(e)
        if replacement is not None:
            return walk(replacement)
    args = tuple(map(walk, e.args))
    return e if all(a is b for a, b in zip(args, e.args)) else Expr(e.op, e.dtype, args, e.value)


def evaluate_arrays(expr: Expr, args: Sequence[np.ndarray]) -> np.ndarray:
    """Evaluate an expression on arrays that broadcast; args[i] is the value of arg i, or a look-up table.

    raises KeyError for an operation that the table does not have, InternalError for an array of another dtype than the
    expression reads
    """
    results: dict[int, Any] = {}

    def walk(e: Expr) -> np.ndarray:
        value = results.get(id(e))
        if value is None:
            value = results[id(e)] = _one(e, walk, args)
        return value

    with np.errstate(all="ignore"):  # integers that are divided by 0 are 0
        result: np.ndarray = np.asarray(walk(expr)).astype(expr.dtype.np, copy=False)
    return result


def _one(e: Expr, walk: Callable[[Expr], np.ndarray], args: Sequence[np.ndarray]) -> np.ndarray:
    if e.op == "arg":
        return _wide(_read(e, args), e.dtype)
    if e.op in ("const", "scalar"):
        return _wide(np.asarray(e.value, e.dtype.np), e.dtype)
    if e.op == "lookup":
        index, table = e.args[0], _read(e.args[1], args)
        if table.shape != (1 << 8 * index.dtype.size,):
            raise InternalError(op="loop graph", what=f"a table for {index.dtype.name}", found=list(table.shape))
        entries: np.ndarray = table[np.asarray(walk(index)).astype(np.int64) & (table.size - 1)]
        return entries
    if e.op == "call":
        return _wide(e.value.of_arrays(*map(walk, e.args)), e.dtype)
    operation, operands = STRUCTURAL.get(e.op), map(walk, e.args)
    value = FUNCTIONS[e.op].of_arrays(*operands) if operation is None else operation(e.dtype, *operands)
    return value if e.dtype is float32 or e.dtype is float64 else np.asarray(value).astype(e.dtype.np, copy=False)


def _read(e: Expr, args: Sequence[np.ndarray]) -> np.ndarray:
    array: np.ndarray = args[e.value]
    if array.dtype != e.dtype.np:
        raise InternalError(op="loop graph", what=f"operand {e.value} is read as {e.dtype.name}", found=array.dtype)
    return array


def _wide(x: np.ndarray, dtype: DType) -> np.ndarray:
    return x.astype(np.float64) if dtype.is_floating else x


def _is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind == "f"


def _quantize(dtype: DType, x: Any, zero: Any, low: Any = None, high: Any = None) -> np.ndarray:
    type_min, type_max = dtype.limits
    low, high = type_min if low is None else low, type_max if high is None else high
    rounded: np.ndarray = np.clip(np.where(np.isnan(x), -np.inf, np.rint(x)) + zero, float(low), float(high))
    return rounded


def _convert(dtype: DType, x: Any) -> np.ndarray:
    if dtype.is_floating:
        return np.asarray(x).astype(dtype.np).astype(np.float64)
    if not _is_float(x) or dtype.is_bool:
        return np.asarray(x).astype(dtype.np)
    low, high = dtype.limits
    truncated = np.trunc(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf))
    inside = (truncated >= float(low)) & (truncated < float(high))
    converted = np.where(inside, truncated, 0.0).astype(dtype.np)
    return np.where(inside, converted, np.where(truncated < 0, np.array(low, dtype.np), np.array(high, dtype.np)))


STRUCTURAL: dict[str, Callable[..., Any]] = {
    "quantize": _quantize,
    "convert": _convert,
    "bitcast": lambda dtype, x: np.asarray(x).view(dtype.np),
}
"""Conversions by name, as functions of a dtype and arrays."""
