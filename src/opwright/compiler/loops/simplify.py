"""Expressions made simpler without changing what they give.

Lives here: `simplified`, the table of its rules.  Not here: what expressions are (expressions.py), fusion.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.dtypes import float32
from .expressions import Expr, apply, scalar


def _numbers_in_float(e: Expr) -> Expr | None:
    """float(quantize(x, zero)) without narrowing: the rounded steps plus the zero point, between the bounds."""
    (q,) = e.args
    if q.op != "quantize" or e.dtype is not float32:
        return None
    return _bounded(q, 0.0)


def _centred(e: Expr) -> Expr | None:
    """float(quantize(x, zero)) - zero': the same, with one number less to add."""
    x, zero = e.args
    if x.op != "convert" or x.args[0].op != "quantize" or zero.op != "scalar" or e.dtype is not float32:
        return None
    return _bounded(x.args[0], zero.value)


def _bounded(q: Expr, less: float) -> Expr | None:
    x, *rest = q.args
    if any(r.op != "scalar" for r in rest):
        return None
    zero, low, high = [r.value for r in rest] + ([] if len(rest) == 3 else [int(v) for v in q.dtype.limits])
    steps = apply("round_even", x)
    if zero != less:
        steps = apply("add", steps, scalar(float(zero - less), float32))
    return apply("minimum", apply("maximum", steps, scalar(float(low - less), float32)),
                 scalar(float(high - less), float32))  # fmt: skip


RULES: dict[str, tuple[Callable[[Expr], Expr | None], ...]] = {
    "convert": (_numbers_in_float,),
    "sub": (_centred,),
}
"""By operation, what is tried on it, before its operands are looked at."""


def simplified(expr: Expr) -> Expr:
    """The expression after all rules, from the outside in."""
    for rule in RULES.get(expr.op, ()):
        found = rule(expr)
        if found is not None:
            return simplified(found)
    if not expr.args:
        return expr
    args = tuple(map(simplified, expr.args))
    return expr if all(a is b for a, b in zip(args, expr.args)) else Expr(expr.op, expr.dtype, args, expr.value)
