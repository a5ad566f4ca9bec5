"""Rules for operators without a lite form, decomposed into a few operators that have one.

Lives here: decompositions that are short and as accurate as the operator, each with the reason.
Not here: operators without such a form (Atan, Asin, Acos, Erf, Lgamma ...), which become custom operators.
"""

from __future__ import annotations

import math
from typing import Any

from ....core.constants import SELU_ALPHA, SELU_SCALE
from ....core.dtypes import int32
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from .emission import number
from .reductions import axes_tensor


def _reciprocal(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return low.emit("DIV", number(low, 1, x), x)


def _tan(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return low.emit("DIV", low.emit("SIN", x), low.emit("COS", x))


def _expm1(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    half = low.emit("TANH", low.emit("MUL", x, number(low, 0.5, x)))
    return low.emit("MUL", half, low.emit("ADD", low.emit("EXP", x), number(low, 1, x)))


def log1p(low: LiteRewriter, x: Value) -> Value:
    """Emit log(1 + x), corrected to first order for the rounding of 1 + x."""
    u = low.emit("ADD", x, number(low, 1, x))
    rounded = low.emit("SUB", u, number(low, 1, x))
    log_u = low.emit("LOG", u)
    lost = low.emit("DIV", low.emit("SUB", rounded, x), u)
    return low.emit("SELECT_V2", low.emit("EQUAL", rounded, x), log_u, low.emit("SUB", log_u, lost))


def _log1p(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return log1p(low, x)


def _softplus(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return low.emit("ADD", low.emit("RELU", x), log1p(low, low.emit("EXP", low.emit("NEG", low.emit("ABS", x)))))


def _softsign(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return low.emit("DIV", x, low.emit("ADD", low.emit("ABS", x), number(low, 1, x)))


def _cosh(low: LiteRewriter, x: Value) -> Value:
    both = low.emit("ADD", low.emit("EXP", x), low.emit("EXP", low.emit("NEG", x)))
    return low.emit("MUL", both, number(low, 0.5, x))


def _sinh(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return low.emit("MUL", low.emit("TANH", x), _cosh(low, x))


def _atanh(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    both = low.emit("SUB", log1p(low, x), log1p(low, low.emit("NEG", x)))
    return low.emit("MUL", both, number(low, 0.5, x))


def _asinh(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    size, one = low.emit("ABS", x), number(low, 1, x)
    small = low.emit("MINIMUM", size, number(low, LARGE, x))  # its square would overflow
    square = low.emit("MUL", small, small)
    root = low.emit("SQRT", low.emit("ADD", square, one))
    near = log1p(low, low.emit("ADD", small, low.emit("DIV", square, low.emit("ADD", root, one))))
    far = low.emit("ADD", low.emit("LOG", size), number(low, math.log(2), x))
    least = low.emit("SELECT_V2", low.emit("LESS", size, number(low, LARGE, x)), near, far)
    return low.emit("MUL", low.emit("SIGN", x), least)


def _acosh(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    t = low.emit("SUB", low.emit("MINIMUM", x, number(low, LARGE, x)), number(low, 1, x))
    # The root of each factor: below -1 their product is positive, and the function has no value.
    root = low.emit("MUL", low.emit("SQRT", t), low.emit("SQRT", low.emit("ADD", t, number(low, 2, x))))
    near = log1p(low, low.emit("ADD", t, root))
    far = low.emit("ADD", low.emit("LOG", x), number(low, math.log(2), x))
    return low.emit("SELECT_V2", low.emit("LESS", x, number(low, LARGE, x)), near, far)


LARGE = 1e8  # from here on 1 + x^2 is x^2 in float32


def _selu(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    below = low.emit("ELU", low.emit("MINIMUM", x, number(low, 0, x)))
    above = low.emit("MUL", low.emit("RELU", x), number(low, SELU_SCALE, x))
    return low.emit("ADD", above, low.emit("MUL", below, number(low, SELU_SCALE * SELU_ALPHA, x)))


def _or_zero(lite: str) -> Any:
    """Emit x op y, but 0 where y is 0 (DivNoNan, MulNoNan)."""

    def lower(node: Node, low: LiteRewriter) -> RuleResult:
        x, y = node.operands
        zero = number(low, 0, y)
        return low.emit("SELECT_V2", low.emit("EQUAL", y, zero), zero, low.emit(lite, x, y))

    return lower


def _x_times(lite: str) -> Any:
    """Emit x * f(y), but 0 where x is 0 (Xlogy, Xdivy)."""

    def lower(node: Node, low: LiteRewriter) -> RuleResult:
        x, y = node.operands
        zero = number(low, 0, x)
        value = low.emit("DIV", x, y) if lite == "DIV" else low.emit("MUL", x, low.emit(lite, y))
        return low.emit("SELECT_V2", low.emit("EQUAL", x, zero), zero, value)

    return lower


def _xlog1py(node: Node, low: LiteRewriter) -> RuleResult:
    x, y = node.operands
    zero = number(low, 0, x)
    return low.emit("SELECT_V2", low.emit("EQUAL", x, zero), zero, low.emit("MUL", x, log1p(low, y)))


def _truncate_mod(node: Node, low: LiteRewriter) -> RuleResult:
    x, y = node.operands
    if not x.dtype.is_integer:
        return NoMatch("only the DIV of integers cuts fractions off")
    return low.emit("SUB", x, low.emit("MUL", low.emit("DIV", x, y), y))


def _approximate_equal(node: Node, low: LiteRewriter) -> RuleResult:
    x, y = node.operands
    return low.emit("LESS", low.emit("ABS", low.emit("SUB", x, y)), number(low, node.attrs["tolerance"], x))


def _roll(node: Node, low: LiteRewriter) -> RuleResult:
    x, shift = node.operands
    dims = x.spec.shape.dims
    if dims is None or shift.constant is None:
        return NoMatch("the shifts must be constants, and the rank known")
    for by, axis in zip(shift.constant.reshape(-1).tolist(), node.attrs["axis"]):
        size = dims[axis]
        if size is None:
            return NoMatch(f"the size of axis {axis} is not known")
        last = by % size if size else 0
        if last:
            parts = low.emit_many(
                "SPLIT_V", x, low.int32([size - last, last]), low.constant(axis % len(dims), int32), num_splits=2
            )
            x = low.emit("CONCATENATION", parts[::-1], axis=axis % len(dims), like=x.spec)
    return x


def _is_nan(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return low.emit("NOT_EQUAL", x, x)


def _against_infinity(lite: str) -> Any:
    def lower(node: Node, low: LiteRewriter) -> RuleResult:
        (x,) = node.operands
        return low.emit(lite, low.emit("ABS", x), number(low, math.inf, x))

    return lower


def _clip(node: Node, low: LiteRewriter) -> RuleResult:
    x, least, greatest = node.operands
    return low.emit("MAXIMUM", low.emit("MINIMUM", x, greatest), least)


def _l2_loss(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    total = low.emit("SUM", low.emit("SQUARE", x), axes_tensor(low, x, None))
    return low.emit("MUL", total, number(low, 0.5, x))


def _norm(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    axes = axes_tensor(low, x, node.attrs["axis"])
    return low.emit("SQRT", low.emit("SUM", low.emit("SQUARE", x), axes, keep_dims=node.attrs["keepdims"]))


def _size(node: Node, low: LiteRewriter) -> RuleResult:
    (x,), dtype = node.operands, node.attrs["out_type"]
    count = low.emit("REDUCE_PROD", low.emit("SHAPE", x, out_type="INT32"), low.int32([0]))
    return count if dtype is int32 else low.cast(count, dtype)


def _square(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return low.emit("MUL", x, x) if x.dtype.is_integer else NoMatch("SQUARE takes floats, and MUL integers")


def _sum_to_like(node: Node, low: LiteRewriter) -> RuleResult:
    x, like = node.operands
    dims, target = x.spec.shape.dims, like.spec.shape.dims
    if dims is None or target is None:
        return NoMatch("SumToLike needs a known rank")
    if None in target:
        return _sum_where_sizes_differ(node, low)
    new = len(dims) - len(target)
    axes = [*range(new), *(i + new for i, d in enumerate(target) if d == 1 and dims[i + new] != 1)]
    if axes:
        x = low.emit("SUM", x, low.int32(axes), keep_dims=True)
    return low.emit("RESHAPE", x, low.int32([d or 0 for d in target]), like=node.outputs[0].spec)


def _sum_where_sizes_differ(node: Node, low: LiteRewriter) -> RuleResult:
    """Sum over the dimensions whose sizes differ at run time."""
    x, like = node.operands
    sizes = low.emit("SHAPE", like, out_type="INT32")
    new = len(x.spec.shape) - len(like.spec.shape)
    aligned = low.emit("CONCATENATION", (low.int32([1] * new), sizes), axis=0) if new else sizes
    differs = low.emit("WHERE", low.emit("NOT_EQUAL", low.emit("SHAPE", x, out_type="INT32"), aligned))
    axes = low.emit("RESHAPE", low.cast(differs, int32), low.int32([-1]))
    return low.emit("RESHAPE", low.emit("SUM", x, axes, keep_dims=True), sizes, like=node.outputs[0].spec)


def _rank(node: Node, low: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    rank = x.spec.shape.rank
    return low.emit("RANK", x) if rank is None else low.constant(rank, int32)


COMPOSITES = rule_table(
    # operator                                          why it is as good
    RewriteRule("reciprocal", "Reciprocal", _reciprocal, "its definition"),
    RewriteRule("tan", "Tan", _tan, "sin / cos: two roundings more"),
    RewriteRule("expm1", "Expm1", _expm1, "tanh(x/2) (e^x + 1) is e^x - 1 without its cancellation near 0"),
    RewriteRule("log1p", "Log1p", _log1p, "Kahan's correction: log u - ((u - 1) - x) / u, u = 1 + x, keeps small x"),
    RewriteRule("softplus", "Softplus", _softplus, "max(x, 0) + log(1 + e^-|x|) never overflows"),
    RewriteRule("softsign", "Softsign", _softsign, "its definition"),
    RewriteRule("cosh", "Cosh", lambda node, low: _cosh(low, next(node.operands)), "its definition"),
    RewriteRule("sinh", "Sinh", _sinh, "tanh x cosh x is e^x/2 - e^-x/2 without its cancellation near 0"),
    RewriteRule(
        "asinh", "Asinh", _asinh, "log1p(|x| + x^2 / (1 + sqrt(1 + x^2))) with the sign of x; log(2 |x|) for large x"
    ),
    RewriteRule("acosh", "Acosh", _acosh, "log1p(t + sqrt(t (t + 2))), t = x - 1; log(2 x) for large x"),
    RewriteRule("atanh", "Atanh", _atanh, "half of log1p(x) - log1p(-x)"),
    RewriteRule("selu", "Selu", _selu, "its two halves"),
    RewriteRule("div_no_nan", "DivNoNan", _or_zero("DIV"), "its definition"),
    RewriteRule("mul_no_nan", "MulNoNan", _or_zero("MUL"), "its definition"),
    RewriteRule("xlogy", "Xlogy", _x_times("LOG"), "its definition"),
    RewriteRule("xlog1py", "Xlog1py", _xlog1py, "its definition, with Log1p's form"),
    RewriteRule("truncate_mod", "TruncateMod", _truncate_mod, "its definition; integers divide toward zero"),
    RewriteRule("approximate_equal", "ApproximateEqual", _approximate_equal, "its definition"),
    RewriteRule("roll", "Roll", _roll, "two parts change places"),
    RewriteRule("xdivy", "Xdivy", _x_times("DIV"), "its definition"),
    RewriteRule("is_nan", "IsNan", _is_nan, "only NaN differs from itself"),
    RewriteRule("is_inf", "IsInf", _against_infinity("EQUAL"), "its definition"),
    RewriteRule("is_finite", "IsFinite", _against_infinity("LESS"), "false for NaN too"),
    RewriteRule("clip", "ClipByValue", _clip, "its definition"),
    RewriteRule("l2_loss", "L2Loss", _l2_loss, "its definition"),
    RewriteRule("euclidean_norm", "EuclideanNorm", _norm, "its definition"),
    RewriteRule("size", "Size", _size, "the product of the sizes"),
    RewriteRule("rank", "Rank", _rank),
    RewriteRule("square_int", "Square", _square, "its definition"),
    RewriteRule("sum_to_like", "SumToLike", _sum_to_like, "its definition"),
)
