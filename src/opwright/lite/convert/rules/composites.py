"""Rules for operators without a lite form, decomposed into a few operators that have one.

Lives here: decompositions that are short and as accurate as the operator, each with the reason: of functions, of
FakeQuantWithMinMax* by FAKE_QUANT or, for bounds that it does not take, in steps.
Not here: operators without such a form (Atan, Asin, Acos, Erfinv, Lgamma ...), which become custom operators;
operators on bits (bits.py), quantisation by the bounds (../quantize).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....core.dtypes import float32, int32, int64
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ....scalar.formulas import SELU_ALPHA, SELU_SCALE
from ....scalar.numerics import polynomials
from ..rewriter import LiteRewriter, NoMatch, Rewrite, RuleResult, constant_of, number, only, rule_table
from .axes import axes_tensor
from .direct import broadcastable


def _reciprocal(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return rewriter.emit("DIV", number(rewriter, 1, x), x)


def _tan(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return rewriter.emit("DIV", rewriter.emit("SIN", x), rewriter.emit("COS", x))


def _polynomial(rewriter: LiteRewriter, x: Value, coefficients: Sequence[float]) -> Value:
    total = rewriter.emit("MUL", x, number(rewriter, coefficients[-1], x))
    for c in coefficients[-2:0:-1]:
        total = rewriter.emit("MUL", rewriter.emit("ADD", total, number(rewriter, c, x)), x)
    return rewriter.emit("ADD", total, number(rewriter, coefficients[0], x))


def _erf_parts(rewriter: LiteRewriter, x: Value, decay: Value | None = None) -> tuple[Value, Value, Value]:
    """Emit whether |x| < 1, erf(x) there by a polynomial, and erfc(|x|) elsewhere, with the coefficients and within the
    error of `single.erf`. decay: e^(-x^2), by default of the rounded square, which 1 - erfc(|x|) does not show."""
    only(x, float32)
    size, one = rewriter.emit("ABS", x), number(rewriter, 1, x)
    square = rewriter.emit("MUL", x, x)
    near = rewriter.emit("MUL", _polynomial(rewriter, square, polynomials.SINGLE_ERF), x)
    t = rewriter.emit("DIV", one, rewriter.emit("ADD", rewriter.emit("MUL", size, number(rewriter, 0.4, x)), one))
    scaled = rewriter.emit("MUL", _polynomial(rewriter, t, polynomials.SINGLE_ERFC), t)
    if decay is None:
        decay = rewriter.emit("EXP", rewriter.emit("NEG", square))
    far = rewriter.emit("MUL", decay, scaled)
    return rewriter.emit("LESS", size, one), near, far


def _erf(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    inside, near, beyond = _erf_parts(rewriter, x)
    far = rewriter.emit("SUB", number(rewriter, 1, x), beyond)
    negative = rewriter.emit("LESS", x, number(rewriter, 0, x))
    far = rewriter.emit("SELECT_V2", negative, rewriter.emit("NEG", far), far)
    return rewriter.emit("SELECT_V2", inside, near, far)


def _erfc(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    only(x, float32)
    inside, near, beyond = _erf_parts(rewriter, x, _gaussian(rewriter, x))
    negative = rewriter.emit("LESS", x, number(rewriter, 0, x))
    far = rewriter.emit("SELECT_V2", negative, rewriter.emit("SUB", number(rewriter, 2, x), beyond), beyond)
    return rewriter.emit("SELECT_V2", inside, rewriter.emit("SUB", number(rewriter, 1, x), near), far)


def _gaussian(rewriter: LiteRewriter, x: Value) -> Value:
    """Emit e^(-x^2) as e^(-h^2) e^(-(|x| - h)(|x| + h)), where h, |x| in steps of 1/64, has an exact square."""
    size = rewriter.emit("MINIMUM", rewriter.emit("ABS", x), number(rewriter, 16, x))  # e^-256 is 0
    steps = rewriter.emit("FLOOR", rewriter.emit("MUL", size, number(rewriter, 64, x)))
    h = rewriter.emit("MUL", steps, number(rewriter, 1 / 64, x))
    rest = rewriter.emit("MUL", rewriter.emit("SUB", size, h), rewriter.emit("ADD", size, h))
    factors = (rewriter.emit("EXP", rewriter.emit("NEG", v)) for v in (rewriter.emit("MUL", h, h), rest))
    return rewriter.emit("MUL", *factors)


def _expm1(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    half = rewriter.emit("TANH", rewriter.emit("MUL", x, number(rewriter, 0.5, x)))
    return rewriter.emit("MUL", half, rewriter.emit("ADD", rewriter.emit("EXP", x), number(rewriter, 1, x)))


def log1p(rewriter: LiteRewriter, x: Value) -> Value:
    """Emit log(1 + x), corrected to first order for the rounding of 1 + x."""
    u = rewriter.emit("ADD", x, number(rewriter, 1, x))
    rounded = rewriter.emit("SUB", u, number(rewriter, 1, x))
    log_u = rewriter.emit("LOG", u)
    lost = rewriter.emit("DIV", rewriter.emit("SUB", rounded, x), u)
    return rewriter.emit("SELECT_V2", rewriter.emit("EQUAL", rounded, x), log_u, rewriter.emit("SUB", log_u, lost))


def _log1p(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return log1p(rewriter, x)


def _softplus(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return rewriter.emit(
        "ADD",
        rewriter.emit("RELU", x),
        log1p(rewriter, rewriter.emit("EXP", rewriter.emit("NEG", rewriter.emit("ABS", x)))),
    )


def _softsign(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return rewriter.emit("DIV", x, rewriter.emit("ADD", rewriter.emit("ABS", x), number(rewriter, 1, x)))


def _cosh(rewriter: LiteRewriter, x: Value) -> Value:
    both = rewriter.emit("ADD", rewriter.emit("EXP", x), rewriter.emit("EXP", rewriter.emit("NEG", x)))
    return rewriter.emit("MUL", both, number(rewriter, 0.5, x))


def _sinh(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return rewriter.emit("MUL", rewriter.emit("TANH", x), _cosh(rewriter, x))


def _atanh(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    both = rewriter.emit("SUB", log1p(rewriter, x), log1p(rewriter, rewriter.emit("NEG", x)))
    return rewriter.emit("MUL", both, number(rewriter, 0.5, x))


def _asinh(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    size, one = rewriter.emit("ABS", x), number(rewriter, 1, x)
    small = rewriter.emit("MINIMUM", size, number(rewriter, LARGE, x))  # its square would overflow
    square = rewriter.emit("MUL", small, small)
    root = rewriter.emit("SQRT", rewriter.emit("ADD", square, one))
    near = log1p(rewriter, rewriter.emit("ADD", small, rewriter.emit("DIV", square, rewriter.emit("ADD", root, one))))
    far = rewriter.emit("ADD", rewriter.emit("LOG", size), number(rewriter, math.log(2), x))
    least = rewriter.emit("SELECT_V2", rewriter.emit("LESS", size, number(rewriter, LARGE, x)), near, far)
    return rewriter.emit("MUL", rewriter.emit("SIGN", x), least)


def _acosh(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    t = rewriter.emit("SUB", rewriter.emit("MINIMUM", x, number(rewriter, LARGE, x)), number(rewriter, 1, x))
    # The root of each factor: below -1 their product is positive, and the function has no value.
    root = rewriter.emit(
        "MUL", rewriter.emit("SQRT", t), rewriter.emit("SQRT", rewriter.emit("ADD", t, number(rewriter, 2, x)))
    )
    near = log1p(rewriter, rewriter.emit("ADD", t, root))
    far = rewriter.emit("ADD", rewriter.emit("LOG", x), number(rewriter, math.log(2), x))
    return rewriter.emit("SELECT_V2", rewriter.emit("LESS", x, number(rewriter, LARGE, x)), near, far)


LARGE = 1e8  # from here on 1 + x^2 is x^2 in float32


def _selu(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    below = rewriter.emit("ELU", rewriter.emit("MINIMUM", x, number(rewriter, 0, x)))
    above = rewriter.emit("MUL", rewriter.emit("RELU", x), number(rewriter, SELU_SCALE, x))
    return rewriter.emit("ADD", above, rewriter.emit("MUL", below, number(rewriter, SELU_SCALE * SELU_ALPHA, x)))


def _or_zero(lite: str) -> Rewrite:
    """Emit x op y, but 0 where y is 0 (DivNoNan, MulNoNan)."""

    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        x, y = node.operands
        zero = number(rewriter, 0, y)
        return rewriter.emit("SELECT_V2", rewriter.emit("EQUAL", y, zero), zero, rewriter.emit(lite, x, y))

    return lower


def _x_times(lite: str) -> Rewrite:
    """Emit x * f(y), but 0 where x is 0 (Xlogy, Xdivy)."""

    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        x, y = node.operands
        zero = number(rewriter, 0, x)
        value = rewriter.emit("DIV", x, y) if lite == "DIV" else rewriter.emit("MUL", x, rewriter.emit(lite, y))
        return rewriter.emit("SELECT_V2", rewriter.emit("EQUAL", x, zero), zero, value)

    return lower


def _xlog1py(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, y = node.operands
    zero = number(rewriter, 0, x)
    return rewriter.emit(
        "SELECT_V2", rewriter.emit("EQUAL", x, zero), zero, rewriter.emit("MUL", x, log1p(rewriter, y))
    )


def _truncate_mod(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, y = node.operands
    if x.dtype is int32:
        return rewriter.emit("SUB", x, rewriter.emit("MUL", rewriter.emit("DIV", x, y), y))
    if x.dtype.is_integer:  # the size of the least integer is none
        rest = rewriter.emit("FLOOR_MOD", x, y)
        zero = number(rewriter, 0, x)
        signs_differ = rewriter.emit("NOT_EQUAL", rewriter.emit("LESS", x, zero), rewriter.emit("LESS", y, zero))
        floored = rewriter.emit("LOGICAL_AND", signs_differ, rewriter.emit("NOT_EQUAL", rest, zero))
        return rewriter.emit("SELECT_V2", floored, rewriter.emit("SUB", rest, y), rest)
    rest = rewriter.emit("FLOOR_MOD", _size_of(rewriter, x), _size_of(rewriter, y))
    negative = rewriter.emit("LESS", x, number(rewriter, 0, x))
    signed = rewriter.emit("SELECT_V2", negative, rewriter.emit("NEG", rest), rest)
    zero = rewriter.emit("EQUAL", rest, number(rewriter, 0, x))  # of the dividend's sign, also that of -0
    return rewriter.emit("SELECT_V2", zero, rewriter.emit("MUL", x, number(rewriter, 0, x)), signed)


QUOTIENT_STEPS = 3
"""Corrections of a quotient by float32: an error of 2^41, 2^19, none of a multiple of up to 2^63."""


def _quotient(rewriter: LiteRewriter, x: Value, y: Value) -> Value:
    """Return x / y of int64, of which no builtin operator divides: x is a multiple of y. Each step divides what remains
    in float32 and subtracts the product, which is exact."""
    total: Value | None = None
    for step in range(QUOTIENT_STEPS):
        ratio = rewriter.emit("DIV", rewriter.cast(x, float32), rewriter.cast(y, float32))
        part = rewriter.cast(rewriter.emit("ROUND", ratio), int64)
        total = part if total is None else rewriter.emit("ADD", total, part)
        if step + 1 < QUOTIENT_STEPS:
            x = rewriter.emit("SUB", x, rewriter.emit("MUL", part, y))
    assert total is not None
    return total


def _floor_div(node: Node, rewriter: LiteRewriter) -> RuleResult:
    if node.outputs[0].dtype is not int64:
        return NoMatch("FLOOR_DIV has the type")
    rest = _truncate_mod(node, rewriter)
    if not isinstance(rest, Value):
        return NoMatch("the remainder is not a value")
    x, y = broadcastable(node, rewriter, "FLOOR_MOD")
    # x - FLOOR_MOD(x, y) may be out of range: the quotient truncated, less 1 where the remainders differ.
    quotient = _quotient(rewriter, rewriter.emit("SUB", x, rest), y)
    is_lower = rewriter.emit("NOT_EQUAL", rest, rewriter.emit("FLOOR_MOD", x, y))
    return rewriter.emit("SUB", quotient, rewriter.cast(is_lower, int64))


def _truncate_div(node: Node, rewriter: LiteRewriter) -> RuleResult:
    if node.outputs[0].dtype is not int64:
        return NoMatch("DIV has the type")
    rest = _truncate_mod(node, rewriter)
    if not isinstance(rest, Value):
        return NoMatch("the remainder is not a value")
    x, y = node.operands
    return _quotient(rewriter, rewriter.emit("SUB", x, rest), y)


def _size_of(rewriter: LiteRewriter, x: Value) -> Value:
    return rewriter.emit("MAXIMUM", x, rewriter.emit("NEG", x)) if x.dtype is int64 else rewriter.emit("ABS", x)


def _approximate_equal(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, y = node.operands
    return rewriter.emit(
        "LESS", rewriter.emit("ABS", rewriter.emit("SUB", x, y)), number(rewriter, node.attrs["tolerance"], x)
    )


def _roll(node: Node, rewriter: LiteRewriter) -> RuleResult:
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
            parts = rewriter.emit_many(
                "SPLIT_V",
                x,
                rewriter.int32([size - last, last]),
                rewriter.constant(axis % len(dims), int32),
                num_splits=2,
            )
            x = rewriter.emit("CONCATENATION", parts[::-1], axis=axis % len(dims), like=x.spec)
    return x


def _is_nan(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return rewriter.emit("NOT_EQUAL", x, x)


def _against_infinity(lite: str) -> Rewrite:
    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        (x,) = node.operands
        return rewriter.emit(lite, rewriter.emit("ABS", x), number(rewriter, math.inf, x))

    return lower


def _clip(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, least, greatest = node.operands
    return rewriter.emit("MAXIMUM", rewriter.emit("MINIMUM", x, greatest), least)


def _l2_loss(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    total = rewriter.emit("SUM", rewriter.emit("SQUARE", x), axes_tensor(rewriter, x, None))
    return rewriter.emit("MUL", total, number(rewriter, 0.5, x))


def _norm(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    axes = axes_tensor(rewriter, x, node.attrs["axis"])
    return rewriter.emit(
        "SQRT", rewriter.emit("SUM", rewriter.emit("SQUARE", x), axes, keep_dims=node.attrs["keepdims"])
    )


def _size(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,), dtype = node.operands, node.attrs["out_type"]
    count = rewriter.emit("REDUCE_PROD", rewriter.emit("SHAPE", x, out_type="INT32"), rewriter.int32([0]))
    return count if dtype is int32 else rewriter.cast(count, dtype)


def _square(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    return rewriter.emit("MUL", x, x) if x.dtype.is_integer else NoMatch("SQUARE takes floats, and MUL integers")


def _sum_to_like(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, like = node.operands
    dims, target = x.spec.shape.dims, like.spec.shape.dims
    if dims is None or target is None:
        return NoMatch("SumToLike needs a known rank")
    if None in target:
        return _sum_where_sizes_differ(node, rewriter)
    new = len(dims) - len(target)
    axes = [*range(new), *(i + new for i, d in enumerate(target) if d == 1 and dims[i + new] != 1)]
    if axes:
        x = rewriter.emit("SUM", x, rewriter.int32(axes), keep_dims=True)
    return rewriter.emit("RESHAPE", x, rewriter.int32([d or 0 for d in target]), like=node.outputs[0].spec)


def _sum_where_sizes_differ(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Sum over the dimensions whose sizes differ at run time."""
    x, like = node.operands
    sizes = rewriter.emit("SHAPE", like, out_type="INT32")
    new = len(x.spec.shape) - len(like.spec.shape)
    aligned = rewriter.emit("CONCATENATION", (rewriter.int32([1] * new), sizes), axis=0) if new else sizes
    differs = rewriter.emit("WHERE", rewriter.emit("NOT_EQUAL", rewriter.emit("SHAPE", x, out_type="INT32"), aligned))
    axes = rewriter.emit("RESHAPE", rewriter.cast(differs, int32), rewriter.int32([-1]))
    return rewriter.emit("RESHAPE", rewriter.emit("SUM", x, axes, keep_dims=True), sizes, like=node.outputs[0].spec)


def _rank(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    rank = x.spec.shape.rank
    return rewriter.emit("RANK", x) if rank is None else rewriter.constant(rank, int32)


COMPOSITES = rule_table(
    # operator                                          why it is as good
    RewriteRule("reciprocal", "Reciprocal", _reciprocal, "its definition"),
    RewriteRule("tan", "Tan", _tan, "sin / cos: two roundings more"),
    RewriteRule("floor_div_int64", "FloorDiv", _floor_div, "a remainder leaves a multiple, whose quotient is exact"),
    RewriteRule("truncate_div_int64", "TruncateDiv", _truncate_div, "the same"),
    RewriteRule("erf", "Erf", _erf, "the float32 function of scalar/numerics/single.py"),
    RewriteRule("erfc", "Erfc", _erfc, "the same, whose tail has no cancellation"),
    RewriteRule("expm1", "Expm1", _expm1, "tanh(x/2) (e^x + 1) is e^x - 1 without its cancellation near 0"),
    RewriteRule("log1p", "Log1p", _log1p, "Kahan's correction: log u - ((u - 1) - x) / u, u = 1 + x, keeps small x"),
    RewriteRule("softplus", "Softplus", _softplus, "max(x, 0) + log(1 + e^-|x|) never overflows"),
    RewriteRule("softsign", "Softsign", _softsign, "its definition"),
    RewriteRule("cosh", "Cosh", lambda node, rewriter: _cosh(rewriter, next(node.operands)), "its definition"),
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
    RewriteRule(
        "truncate_mod",
        "TruncateMod",
        _truncate_mod,
        "the floored remainder less the divisor where signs differ; of floats, that of the sizes",
    ),
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


def _bounds(node: Node) -> tuple[Value, np.ndarray, np.ndarray]:
    if "min" in node.attrs:
        (x,) = node.operands
        low, high = (np.array(node.attrs[name], np.float32) for name in ("min", "max"))
    else:
        x, *bounds = node.operands
        low, high = (constant_of(b, "a bound") for b in bounds)
    only(x, float32)
    return x, low, high


def _whole(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, least, most = _bounds(node)
    if least.ndim or not (least <= 0 <= most and least < most) or node.attrs["narrow_range"]:
        return NoMatch("FAKE_QUANT takes one pair of bounds, with 0 between them, and no narrow range")
    return rewriter.emit("FAKE_QUANT", x, min=float(least), max=float(most), num_bits=node.attrs["num_bits"])


def _steps(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Emit a clamp, then rounding by FLOOR, as the kernel computes."""
    x, least, most = _bounds(node)
    first, last = np.float32(node.attrs["narrow_range"]), np.float32(2 ** node.attrs["num_bits"] - 1)
    scale = (most - least) / (last - first)
    if not (np.isfinite(scale) & (scale > 0)).all():
        return NoMatch("bounds that are equal or apart by more than a number")
    zero = np.floor(np.clip(first - least / scale, first, last) + np.float32(0.5))
    start, end, scale = (
        rewriter.constant(v.astype(np.float32), float32) for v in ((first - zero) * scale, (last - zero) * scale, scale)
    )
    clipped = rewriter.emit("MINIMUM", rewriter.emit("MAXIMUM", x, start), end)
    half = rewriter.constant(np.float32(0.5), float32)
    steps = rewriter.emit(
        "FLOOR", rewriter.emit("ADD", rewriter.emit("DIV", rewriter.emit("SUB", clipped, start), scale), half)
    )
    return rewriter.emit("ADD", rewriter.emit("MUL", steps, scale), start, like=node.outputs[0].spec)


_FAKE_QUANT = "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars"

QUANTIZING = rule_table(
    RewriteRule("fake_quant", _FAKE_QUANT, _whole),
    RewriteRule("fake_quant_by_steps", f"{_FAKE_QUANT} FakeQuantWithMinMaxVarsPerChannel", _steps, "its definition"),
)
