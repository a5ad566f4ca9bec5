"""Expressions in kernels: the walk that computes a tree on the language's values.

Lives here: `evaluate`, `fast`, `check`, `tables`, `cost`, and what `quantize`, `convert` and `lookup` are.
Not here: functions (scalar/table.py), the trees (../loops/expressions.py), their evaluation in NumPy
(../loops/expression_evaluation.py), the selector of element-wise loops (maps.py).

Everything serves numbers and vectors of any length alike. Integers wrap. Float16 and bfloat16 are computed in float32
and rounded once an operation. Functions are the fast code of their rows; `quantize` of NaN is the least integer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InternalError
from ...scalar.table import FUNCTIONS, ScalarFunction
from .. import language as kl
from ..loops.expressions import Expr
from . import NoKernel

if TYPE_CHECKING:
    from ..language import Pointer, Value


def evaluate(
    expr: Expr,
    args: Sequence[Value | Pointer],
    params: Sequence[Value] = (),
    *,
    finite: bool = False,
    small: bool = False,
) -> Value:
    """What the expression is of these operands. args[i], params[i]: what stands for arg i and param i. finite: whether
    all floats among them are, but for arg 0; small: whether these are below 1, too, their signs aside.

    Operands are vectors of one length, or numbers; a `lookup`'s table is a Pointer. The result is a vector where one of
    the operands that matter is. raises NoKernel for an operation that the table does not have
    """
    known: dict[Expr, Any] = {}

    def walk(e: Expr) -> Any:
        found = known.get(e)
        if found is None:
            if finite and e.op == "quantize" and _is_number(e.args[0]):
                found = known[e] = _quantize(e.dtype, *map(walk, e.args), number=True, small=small)
            elif finite and e.op in EXTREMES and e.dtype is dtypes.float32 and _is_read(e.args[1]):
                found = known[e] = getattr(kl, e.op)(*map(walk, e.args), number=True)
            else:
                found = known[e] = _one(e, walk, args, params)
        return found

    return walk(expr)


def _is_number(e: Expr) -> bool:
    """Whether it is a product of an integer and a float that is read, which is no NaN where those are finite."""
    return e.op == "mul" and all(_is_read(a) or (a.op == "convert" and not a.args[0].dtype.is_floating) for a in e.args)


def _is_read(e: Expr) -> bool:
    """Whether it is read as it is, but for arg 0."""
    return (e.op == "arg" and e.value > 0) or e.op in ("param", "scalar", "const")


EXTREMES = frozenset(("minimum", "maximum"))


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
    row = FUNCTIONS.get(e.op)
    if row is not None:
        return _function(row, *map(walk, e.args))
    if e.op not in STRUCTURAL:
        raise NoKernel(f"no operation {e.op} in kernels")
    return STRUCTURAL[e.op](e.dtype, *map(walk, e.args))


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
    """Raises NoKernel for an expression that `evaluate` cannot do: selectors ask before anything is compiled."""
    todo = [expr]
    while todo:
        e = todo.pop()
        if e.dtype not in DTYPES:
            raise NoKernel(f"{e.op} of {e.dtype.name}")
        if e.args and e.op not in STRUCTURAL and e.op != "call":
            _check_function(e.op, e.args[-1].dtype)
        todo += e.args


def _check_function(name: str, dtype: DType) -> None:
    """Raises NoKernel for a function that is not in the table, or has no code for operands of this dtype."""
    row = FUNCTIONS.get(name)
    if row is None:
        raise NoKernel(f"no operation {name} in kernels")
    wide = dtype.is_floating and row.only_float32 and dtype is not dtypes.float32 and dtype not in NARROW
    if not row.takes(dtype) or wide:
        raise NoKernel(f"{name} of {dtype.name}")


def cost(e: Expr) -> int:
    """Instructions of an operation for a vector, about."""
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
    """A function of the table by name, of values of one dtype, by its fast code."""
    return _function(FUNCTIONS[name], *xs)


def _function(row: ScalarFunction, *xs: Value) -> Value:
    """A function of values: of floats its fast code, else its formula. Narrow floats are computed in float32."""
    if row is SELECT:
        return row.code(kl, *xs)
    dtype = xs[0].dtype
    if dtype in NARROW:
        found = _function(row, *(x.to(dtypes.float32) for x in xs))
        return found if row.is_test else found.to(dtype)
    code = row.numerics("fast") if dtype.is_floating else None
    if code is None:
        return row.code(kl, *xs)
    return kl.apply(code, *xs)


# ---- other dtypes --------------------------------------------------------------------------------------------------


def _convert(dtype: DType, x: Value) -> Value:
    """Integers by their sign, cut off; floats to integers toward zero, those outside to the nearest end."""
    if x.dtype.is_floating and not dtype.is_floating:
        x = x.to(dtypes.float32) if x.dtype in NARROW else x
        return x != 0 if dtype.is_bool else kl.to_integer(x, dtype)
    return x.to(dtype)


def _quantize(
    dtype: DType,
    x: Value,
    zero_point: Value,
    low: Any = None,
    high: Any = None,
    *,
    number: bool = False,
    small: bool = False,
) -> Value:
    """round(x) + zero_point, the nearest even of two, within [low, high] of int32, by default the dtype's range.

    It is held within the range before it is rounded, so that a float is never too large for int32; NaN becomes low.
    number: whether x is known to be none; small: whether int32 is known to hold it.
    """
    if dtype.size == 1 and x.count:
        found = kl.round_bytes(x, zero_point, dtype, number, small)
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


SELECT = FUNCTIONS["select"]

STRUCTURAL: dict[str, Callable[..., Any]] = {
    # name: (dtype of the result, operands) -> result
    "convert": _convert,
    "bitcast": lambda dtype, x: kl.bitcast(x, dtype),
    "quantize": _quantize,
    "lookup": _lookup,
}
"""By name, the operations that are no functions of the table."""

CONVERSION_COST = {"quantize": 5, "lookup": 4}
"""Instructions of the operations that take more than one or two."""
