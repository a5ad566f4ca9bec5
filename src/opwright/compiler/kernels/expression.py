"""Expression trees in kernels: evaluation on values of the kernel language.

Lives here: `evaluate`, `evaluate_all`, `fast`, `check`, `tables`, `cost`; the operations `quantize`, `convert` and
`lookup`.
Not here: functions (scalar/table.py), the trees (../loops/expressions.py), their evaluation in NumPy
(../loops/expressions.py), element-wise loops (maps.py).

Operands are numbers, or vectors of any length. Integers wrap. Float16 and bfloat16 are computed in float32 and rounded
after each operation. Functions are the fast code of their rows; `quantize` of NaN is the lowest integer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InternalError
from ...scalar.numerics import single
from ...scalar.table import FUNCTIONS, ScalarFunction
from .. import language as kl
from ..loops.expressions import Expr
from ..native.image import address_of
from . import NoKernel

if TYPE_CHECKING:
    from ..language import Pointer, Value

Leaf = TypeVar("Leaf", "Value", "Pointer")


def evaluate(
    expr: Expr,
    args: Sequence[Value | Pointer],
    params: Sequence[Value] = (),
    row_scale: Value | None = None,
    *,
    finite: bool = False,
    small: bool = False,
) -> Value:
    """Evaluate an expression as `evaluate_all` does."""
    return evaluate_all((expr,), args, params, row_scale, finite=finite, small=small)[0]


def evaluate_all(
    exprs: Sequence[Expr],
    args: Sequence[Value | Pointer],
    params: Sequence[Value] = (),
    row_scale: Value | None = None,
    *,
    finite: bool = False,
    small: bool = False,
) -> list[Value]:
    """Evaluate expressions; parts that they share are computed once.

    args[i], params[i]: values of arg i and param i. row_scale: the value of that leaf. finite: whether all floats among
    them are finite, except arg 0; small: whether these are also below 1 in absolute value.
    Operands are vectors of one length, or numbers; the table of a `lookup` is a Pointer. A result is a vector if one
    of the operands that it depends on is. raises NoKernel for an unknown operation
    """
    values: dict[Expr, Value] = {}

    def walk(e: Expr) -> Value:
        value = values.get(e)
        if value is None:
            if e.op == "row_scale":
                if row_scale is None:
                    raise InternalError(op="kernel", what="the scale of a row is read, and rows are not quantized")
                value = values[e] = row_scale
            elif finite and e.op == "quantize" and _is_number(e.args[0]):
                value = values[e] = _quantize(e.dtype, *map(walk, e.args), number=True, small=small)
            elif finite and e.op in EXTREMES and e.dtype is dtypes.float32 and _is_read(e.args[1]):
                value = values[e] = getattr(kl, e.op)(*map(walk, e.args), number=True)
            else:
                value = values[e] = _evaluate_node(e, walk, args, params)
        return value

    return [walk(expr) for expr in exprs]


def _is_number(e: Expr) -> bool:
    """Return whether it is a product of an integer and an operand, which is not NaN for finite operands."""
    return e.op == "mul" and all(_is_read(a) or (a.op == "convert" and not a.args[0].dtype.is_floating) for a in e.args)


def _is_read(e: Expr) -> bool:
    """Return whether it is an operand other than arg 0, or a constant."""
    return (e.op == "arg" and e.value > 0) or e.op in ("param", "scalar", "const")


EXTREMES = frozenset(("minimum", "maximum"))


def _evaluate_node(
    e: Expr, walk: Callable[[Expr], Value], args: Sequence[Value | Pointer], params: Sequence[Value]
) -> Value:
    """Evaluate one node. walk: evaluates its operands."""
    if e.op in ("arg", "param"):
        return _operand(e, args if e.op == "arg" else params, kl.Value)
    if e.op in ("const", "scalar"):
        return kl.full(e.dtype, 0, e.value)
    if e.op == "call":
        result: Value = e.value.stage(*map(walk, e.args))
        return result
    if e.op == "lookup":
        index, table = e.args
        return _lookup(e.dtype, walk(index), _operand(table, args, kl.Pointer))
    row = FUNCTIONS.get(e.op)
    if row is not None:
        return _function(row, *map(walk, e.args))
    if e.op not in STRUCTURAL:
        raise NoKernel(f"no operation {e.op} in kernels")
    return STRUCTURAL[e.op](e.dtype, *map(walk, e.args))


def _operand(e: Expr, operands: Sequence[Value | Pointer], kind: type[Leaf]) -> Leaf:
    """Return the operand that a leaf reads."""
    operand = operands[e.value]
    if operand.dtype is not e.dtype or not isinstance(operand, kind):
        found = f"{type(operand).__name__} of {operand.dtype.name}"
        raise InternalError(op="kernel", what=f"{e!r} is read as {kind.__name__} of {e.dtype.name}", found=found)
    return operand


def tables(expr: Expr) -> frozenset[int]:
    """Return which args are tables of a `lookup`, passed as pointers: an element for each value of 8 or 16 bits."""
    indices: set[int] = set()
    pending = [expr]
    while pending:
        e = pending.pop()
        if e.op == "lookup":
            indices.add(e.args[1].value)
            pending.append(e.args[0])
        else:
            pending += e.args
    return frozenset(indices)


def check(expr: Expr) -> None:
    """Raise NoKernel for an expression that `evaluate` does not support: selectors ask before anything is compiled."""
    pending = [expr]
    while pending:
        e = pending.pop()
        if e.dtype not in DTYPES:
            raise NoKernel(f"{e.op} of {e.dtype.name}")
        if e.args and e.op not in STRUCTURAL and e.op != "call":
            _check_function(e.op, e.args[-1].dtype)
        pending += e.args


def _check_function(name: str, dtype: DType) -> None:
    """Raise NoKernel for a function that is not in the table, or has no code for operands of this dtype."""
    row = FUNCTIONS.get(name)
    if row is None:
        raise NoKernel(f"no operation {name} in kernels")
    if not row.takes(dtype) or (_is_wide(row, dtype) and not _has_float64(row)):
        raise NoKernel(f"{name} of {dtype.name}")


def _is_wide(row: ScalarFunction, dtype: DType) -> bool:
    """Return whether a function is of float64, and its fast code for float32 only."""
    return dtype is dtypes.float64 and row.only_float32


def _has_float64(row: ScalarFunction) -> bool:
    """Return whether there is code of float64, or the C library has a function, or all that its formula calls."""
    if row.double:
        return True
    if row.libm:
        return address_of(row.libm) is not None
    return row.formula is not None and all(_has_float64(FUNCTIONS[n]) for n in row.calls if FUNCTIONS[n].only_float32)


def cost(e: Expr) -> int:
    """Estimate the instructions of an operation per vector."""
    if e.op == "call":
        return int(e.value.weight)
    row = FUNCTIONS.get(e.op)
    return row.cost if row is not None else CONVERSION_COST.get(e.op, 1 if e.args else 0)


DTYPES = frozenset(
    (
        dtypes.float16,
        dtypes.bfloat16,
        dtypes.float32,
        dtypes.float64,
        dtypes.int8,
        dtypes.uint8,
        dtypes.int16,
        dtypes.uint16,
        dtypes.int32,
        dtypes.uint32,
        dtypes.int64,
        dtypes.uint64,
        dtypes.bool,
    )
)
NARROW = frozenset((dtypes.float16, dtypes.bfloat16))
"""Floats that are computed in float32."""


# ---- functions of the table ----------------------------------------------------------------------------------------


def fast(name: str, *xs: Value) -> Value:
    """Evaluate a function of the table by its fast code, for values of one dtype."""
    return _function(FUNCTIONS[name], *xs)


def exp_nonpositive(x: Value) -> Value:
    """Evaluate exp of x <= 0, as softmax needs it; 0 where it is not a normal number."""
    return kl.apply(single.exp_nonpositive, x)


def _function(row: ScalarFunction, *xs: Value) -> Value:
    """Evaluate a function: for floats its fast code, otherwise its formula. Narrow floats are computed in float32;
    functions of float64 whose fast code is for float32 only, by that for float64, or by the C library."""
    dtype = xs[0].dtype  # of a mask: bool
    if _is_wide(row, dtype):
        from ..language.operators import evaluate as by_table  # which needs llvmlite

        return by_table(row, *xs, accuracy="double", libm=True)
    if dtype in NARROW:
        result = _function(row, *(x.to(dtypes.float32) for x in xs))
        return result if row.is_test else result.to(dtype)
    code = row.numerics("fast") if dtype.is_floating else None
    computed: Value = row.code(kl, *xs) if code is None else kl.apply(code, *xs)
    return computed


# ---- other dtypes --------------------------------------------------------------------------------------------------


def _convert(dtype: DType, x: Value) -> Value:
    """Convert: integers are truncated or extended by their sign; floats to integers saturate, toward zero."""
    if x.dtype.is_floating and not dtype.is_floating:
        x = x.to(dtypes.float32) if x.dtype in NARROW else x
        return x != 0 if dtype.is_bool else kl.to_integer(x, dtype)
    return x.to(dtype)


def _quantize(
    dtype: DType,
    x: Value,
    zero_point: Value,
    low: Value | None = None,
    high: Value | None = None,
    *,
    number: bool = False,
    small: bool = False,
) -> Value:
    """Return round(x) + zero_point, half to even, within [low, high] of int32, by default the range of the dtype.

    x is clamped before it is rounded, so that int32 holds it; NaN becomes low. number: whether x cannot be NaN; small:
    whether int32 holds every x.
    """
    if dtype.size == 1 and x.count:
        rounded = kl.round_bytes(x, zero_point, dtype, number, small)
        return rounded if low is None or high is None else kl.clamp(rounded, low.to(dtype), high.to(dtype))
    zero = zero_point.to(dtypes.float32)
    minimum = (float(dtype.min) if low is None else low.to(dtypes.float32)) - zero
    maximum = (float(dtype.max) if high is None else high.to(dtypes.float32)) - zero
    return (kl.to_int(kl.clamp(x, minimum, maximum)) + zero_point).to(dtype)


def _lookup(dtype: DType, x: Value, table: Pointer) -> Value:
    """Return table[x], where the bits of x are an unsigned index."""
    if x.dtype.size == 1 and table.dtype.size == 1:
        return kl.lookup(table, x.to(dtypes.uint8) if not x.count else kl.bitcast(x, dtypes.uint8))
    index = x.to(dtypes.uint8 if x.dtype.size == 1 else dtypes.uint16).to(dtypes.int64)
    return kl.gather(table, index) if x.count else table[index]


STRUCTURAL: dict[str, Callable[..., Value]] = {
    # name: (dtype of the result, operands) -> result
    "convert": _convert,
    "bitcast": lambda dtype, x: kl.bitcast(x, dtype),
    "quantize": _quantize,
    "lookup": _lookup,
}
"""Operations by name that are not functions of the table."""

CONVERSION_COST = {"quantize": 5, "lookup": 4}
"""Instructions of the operations that take more than one or two."""
