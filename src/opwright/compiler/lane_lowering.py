"""What a catalogue operator becomes in a kernel on scalars: instructions on lanes.

Lives here: the table LOWER, operator name -> rule(trace, call, lanes...) -> lanes, derived from the functions of one
element (scalar/table.py); operators that are no such functions.
Not here: staging (elementwise.py), formulas and mathematical functions (scalar/).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..core.errors import UnimplementedError
from ..scalar.table import FUNCTIONS, OF_OPERATOR, ScalarFunction, chosen
from . import lane_functions
from .lanes import F32, F64, I1, KINDS, Lanes
from .native.image import address_of

# What `fast_math` leaves to LLVM: regrouping, x * y + z at once, reciprocals, the sign of zeros. Never that there are
# no NaN or infinities, nor anything about calls of the C library, pow among them. Users' list: core/numerics.py.
FAST = ("reassoc", "contract", "arcp", "nsz")
FLAGGED = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
"""Functions of floats whose instruction takes these flags."""

Rule = Callable[..., Lanes]


class LaneNamespace:
    """The array namespace of one kernel: functions of lanes, and by their names those of the table."""

    def __init__(self, trace: Any, op: Any) -> None:
        self._trace, self._op = trace, op

    def __getattr__(self, name: str) -> Any:
        found = getattr(lane_functions, name, None)
        if found is not None:
            return found
        row = FUNCTIONS.get(name)
        if row is None:
            raise AttributeError(f"lanes have no {name!r}")
        return lambda *xs: apply(row, self._trace, self._op, *xs)


def apply(row: ScalarFunction, trace: Any, op: Any, *xs: Any) -> Lanes:
    """A function of the table on lanes; the last operands may be numbers.

    float32 is computed by its exact code, under `fast_math` by its relaxed code, float64 by the C library; what has
    none, and integers, by the formula.
    """
    kind = xs[-1].kind if row.name == "select" else xs[0].kind
    if kind in (F32, F64):
        if row.name in FLAGGED:
            x, y = xs
            return Lanes(x.b, getattr(x.b, FLAGGED[row.name])(x.x, y.x, flags=trace.leave))
        code = row.numerics("relaxed" if trace.fast else "exact")
        if code is not None and (kind == F32 or row.takes_float64):
            return code(lane_functions, *xs)
        if row.libm and kind == F64:
            return _libm(row.libm, op, *xs)
    found: Lanes = row.code(LaneNamespace(trace, op), *xs)
    return found


def _libm(symbol: str, op: Any, *xs: Lanes) -> Lanes:
    """A function of the C library on float64, one element at a time."""
    if address_of(symbol) is None:
        raise UnimplementedError(op=op.operator.name, what=f"the C library has no {symbol}")
    b = xs[0].b
    module = b.module
    function = module.globals.get(symbol) or ir.Function(module, ir.FunctionType(F64, [F64] * len(xs)), symbol)
    function.attributes.add("readnone")
    return xs[0].map(lambda *each: b.call(function, each), F64, *xs[1:])


def _of_row(row: ScalarFunction) -> Rule:
    def lower(trace: Any, op: Any, *xs: Lanes) -> Lanes:
        def attribute(name: str) -> Any:
            return getattr(op, name)

        return apply(chosen(row, attribute), trace, op, *xs, *map(attribute, row.attributes))

    return lower


def _cast(trace: Any, op: Any, x: Lanes) -> Lanes:
    kind = KINDS.get(op.dtype)
    if kind is None:
        raise UnimplementedError(op="Cast", what=f"a kernel has no scalars of dtype {op.dtype.name}")
    return x != 0 if kind == I1 and x.kind != I1 else x.to(kind)


LOWER: dict[str, Rule] = {
    **{name: _of_row(row) for name, row in OF_OPERATOR.items()},
    "Cast": _cast,
    "Identity": lambda trace, op, x: x,
    "StopGradient": lambda trace, op, x: x,
    "Const": lambda trace, op: trace.to_tensor(op.value[()]).lanes,
}
