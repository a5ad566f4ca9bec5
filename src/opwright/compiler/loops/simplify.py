"""Expressions made simpler without changing what they give, but for roundings of `silu`.

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
    return apply(
        "minimum", apply("maximum", steps, scalar(float(low - less), float32)), scalar(float(high - less), float32)
    )


def _silu(e: Expr) -> Expr | None:
    """x sigmoid(x), for which float32 has a function of its own: one division, and no product."""
    if e.dtype is not float32:
        return None
    for x, factor in (e.args, e.args[::-1]):
        if factor.op == "sigmoid" and factor.args[0] == x:
            return apply("silu", x)
    return None


RULES: dict[str, tuple[Callable[[Expr], Expr | None], ...]] = {
    "convert": (_numbers_in_float,),
    "sub": (_centred,),
    "mul": (_silu,),
}
"""By operation, what is tried on it, before its operands are looked at."""


def simplified(expr: Expr) -> Expr:
    """The expression after all rules, from the outside in; parts that are one object stay one."""
    known: dict[int, Expr] = {}
    kept: list[Expr] = []  # so that identities stay unique

    def walk(e: Expr) -> Expr:
        found = known.get(id(e))
        if found is None:
            kept.append(e)
            found = known[id(e)] = _one(e, walk)
        return found

    return walk(expr)


def _one(e: Expr, walk: Callable[[Expr], Expr]) -> Expr:
    for rule in RULES.get(e.op, ()):
        found = rule(e)
        if found is not None:
            return walk(found)
    args = tuple(map(walk, e.args))
    return e if all(a is b for a, b in zip(args, e.args)) else Expr(e.op, e.dtype, args, e.value)
