"""What a catalogue operator becomes in a kernel: instructions on lanes.

Lives here: the table LOWER, operator name -> rule(trace, call, lanes...) -> lanes.
Not here: staging (elementwise.py), mathematical functions of float32 (mathematics/; approximate.py under `fast_math`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..core import dtypes
from ..core.constants import GELU_CUBIC, GELU_SLOPE, SELU_ALPHA, SELU_SCALE
from ..core.dtypes import DType
from ..core.errors import UnimplementedError
from . import approximate, mathematics
from .lanes import F32, F64, I1, I32, I64, Lanes, is_nan, select
from .mathematics import division
from .native.image import address_of

KINDS: dict[DType, ir.Type] = {
    dtypes.float32: F32, dtypes.float64: F64, dtypes.int32: I32, dtypes.int64: I64, dtypes.bool: I1,
}  # fmt: skip
"""The dtypes that kernels have, and the type of a lane."""

# What `fast_math` leaves to LLVM: regrouping, x * y + z at once, reciprocals, the sign of zeros. Never that there are
# no NaN or infinities, nor anything about calls of the C library, pow among them. Users' list: core/numerics.py.
FAST = ("reassoc", "contract", "arcp", "nsz")

Rule = Callable[..., Lanes]


def _arithmetic(floating: str, integer: str) -> Rule:
    def lower(trace: Any, op: Any, x: Lanes, y: Lanes) -> Lanes:
        if x.is_float:
            return Lanes(x.b, getattr(x.b, floating)(x.x, y.x, flags=trace.leave))
        return Lanes(x.b, getattr(x.b, integer)(x.x, y.x))

    return lower


def _compare(predicate: str) -> Rule:
    return lambda trace, op, x, y: x.compare(predicate, y)


def _extremum(predicate: str) -> Rule:
    def lower(trace: Any, op: Any, x: Lanes, y: Lanes) -> Lanes:
        chosen = select(x.compare(predicate, y), x, y)
        return select(is_nan(x), x, chosen) if x.is_float else chosen  # a NaN in y is chosen already

    return lower


def _intrinsic(name: str) -> Rule:
    return lambda trace, op, x: x.intrinsic(name)


def _libm(name: str) -> Rule:
    """A function of the C library, one element at a time."""

    def lower(trace: Any, op: Any, *xs: Lanes) -> Lanes:
        symbol, kind = name + ("f" if xs[0].kind == F32 else ""), xs[0].kind
        if address_of(symbol) is None:
            raise UnimplementedError(op=op.operator.name, what=f"the C library has no {symbol}")
        b = xs[0].b
        module = b.module
        function = module.globals.get(symbol) or ir.Function(module, ir.FunctionType(kind, [kind] * len(xs)), symbol)
        function.attributes.add("readnone")
        return xs[0].map(lambda *each: b.call(function, each), kind, *xs[1:])

    return lower


def _mathematical(name: str, of_float64: Rule | None = None) -> Rule:
    """A function of mathematics/ for float32, for float64 `of_float64`, by default the C library's of that name.

    Under `fast_math` one of approximate.py for float32, if it has it.
    """
    exact, wide = mathematics.FUNCTIONS[name], of_float64 or _libm(name)
    quick = getattr(approximate, name, None)

    def lower(trace: Any, op: Any, *xs: Lanes) -> Lanes:
        if xs[0].kind != F32:
            return wide(trace, op, *xs)
        return quick(*xs) if trace.fast and quick is not None else exact(*xs)

    return lower


def _cast(trace: Any, op: Any, x: Lanes) -> Lanes:
    kind = KINDS.get(op.dtype)
    if kind is None:
        raise UnimplementedError(op="Cast", what=f"a kernel has no scalars of dtype {op.dtype.name}")
    return x != 0 if kind == I1 and x.kind != I1 else x.to(kind)


def _absolute(trace: Any, op: Any, x: Lanes) -> Lanes:
    return x.intrinsic("fabs") if x.is_float else select(x < 0, -x, x)


def _sigmoid(trace: Any, op: Any, x: Lanes) -> Lanes:
    """1 / (1 + e) or e / (1 + e) with e = exp(-|x|): far below 0 it is e itself, as the reference has it."""
    e = _libm("exp")(trace, op, -x.intrinsic("fabs"))
    return select(x < 0.0, e, 1.0) / (e + 1.0)


def _softplus(trace: Any, op: Any, x: Lanes) -> Lanes:
    """max(x, 0) + log1p(exp(-|x|))."""
    small = _libm("log1p")(trace, op, _libm("exp")(trace, op, -x.intrinsic("fabs")))
    return small + select(x > 0.0, x, 0.0)


def _gelu(trace: Any, op: Any, x: Lanes) -> Lanes:
    """x erfc(-x / sqrt 2) / 2; approximate: x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3))."""
    if op.approximate:
        inner = (x * x * x * GELU_CUBIC + x) * (2.0 * GELU_SLOPE)
        return x * LOWER["Sigmoid"](trace, op, inner)
    if x.kind == F32:
        return mathematics.FUNCTIONS["gelu"](x)
    return x * 0.5 * _libm("erfc")(trace, op, x * -math.sqrt(0.5))


def _shift(way: str) -> Rule:
    """Distances are brought into [0, width - 1]."""

    def lower(trace: Any, op: Any, x: Lanes, y: Lanes) -> Lanes:
        by = select(y < 0, 0, select(y > x.kind.width - 1, x.kind.width - 1, y))
        return x << by if way == "left" else x >> by

    return lower


def _sign(trace: Any, op: Any, x: Lanes) -> Lanes:
    rest = select(x == 0, 0, x)  # 0, of -0.0 too, and NaN
    return select(x > 0, 1, select(x < 0, -1, rest))


def _clip(trace: Any, op: Any, x: Lanes, low: Lanes, high: Lanes) -> Lanes:
    return LOWER["Maximum"](trace, op, LOWER["Minimum"](trace, op, x, high), low)


def _leaky_relu(trace: Any, op: Any, x: Lanes) -> Lanes:
    return select(x > 0.0, x, x * op.alpha)


def _elu(trace: Any, op: Any, x: Lanes) -> Lanes:
    return LOWER["Maximum"](trace, op, x, LOWER["Expm1"](trace, op, LOWER["Minimum"](trace, op, x, x.full(0.0))))


def _selu(trace: Any, op: Any, x: Lanes) -> Lanes:
    below = LOWER["Expm1"](trace, op, LOWER["Minimum"](trace, op, x, x.full(0.0)))
    return LOWER["Relu"](trace, op, x) * SELU_SCALE + below * (SELU_SCALE * SELU_ALPHA)


LOWER: dict[str, Rule] = {
    "Add": _arithmetic("fadd", "add"),
    "Sub": _arithmetic("fsub", "sub"),
    "Mul": _arithmetic("fmul", "mul"),
    "RealDiv": _arithmetic("fdiv", "sdiv"),
    "Neg": lambda trace, op, x: -x,
    "Abs": _absolute,
    "Maximum": _extremum(">"),
    "Minimum": _extremum("<"),
    "Relu": lambda trace, op, x: _extremum(">")(trace, op, x, x.full(0)),
    "Square": lambda trace, op, x: _arithmetic("fmul", "mul")(trace, op, x, x),
    "Sqrt": _intrinsic("sqrt"),
    "Floor": _intrinsic("floor"),
    "Ceil": _intrinsic("ceil"),
    "Round": _intrinsic("rint"),
    "Rint": _intrinsic("rint"),
    **{name: _mathematical(name.lower()) for name in (
        "Exp", "Log", "Tanh", "Log1p", "Expm1", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Atan2", "Sinh", "Cosh",
        "Asinh", "Acosh", "Atanh", "Erf", "Erfc", "Pow")},
    "Rsqrt": _mathematical("rsqrt", lambda trace, op, x: 1.0 / x.intrinsic("sqrt")),
    "Softplus": _mathematical("softplus", _softplus),
    "Gelu": _gelu,
    "Sigmoid": _mathematical("sigmoid", _sigmoid),
    "Equal": _compare("=="),
    "NotEqual": _compare("!="),
    "Less": _compare("<"),
    "LessEqual": _compare("<="),
    "Greater": _compare(">"),
    "GreaterEqual": _compare(">="),
    "LogicalAnd": lambda trace, op, x, y: x & y,
    "LogicalOr": lambda trace, op, x, y: x | y,
    "LogicalNot": lambda trace, op, x: ~x,
    "FloorDiv": lambda trace, op, x, y: division.floor_quotient(x, y),
    "FloorMod": lambda trace, op, x, y: division.floor_remainder(x, y),
    "TruncateDiv": lambda trace, op, x, y: division.truncated_quotient(x, y),
    "TruncateMod": lambda trace, op, x, y: division.remainder(x, y),
    "BitwiseAnd": lambda trace, op, x, y: x & y,
    "BitwiseOr": lambda trace, op, x, y: x | y,
    "BitwiseXor": lambda trace, op, x, y: x ^ y,
    "Invert": lambda trace, op, x: ~x,
    "LeftShift": _shift("left"),
    "RightShift": _shift("right"),
    "Sign": _sign,
    "SquaredDifference": lambda trace, op, x, y: (x - y) * (x - y),
    "DivNoNan": lambda trace, op, x, y: select(y == 0.0, 0.0, x / y),
    "Reciprocal": lambda trace, op, x: 1.0 / x,
    "IsNan": lambda trace, op, x: is_nan(x),
    "IsInf": lambda trace, op, x: x.intrinsic("fabs") == math.inf,
    "IsFinite": lambda trace, op, x: x.intrinsic("fabs") < math.inf,
    "ClipByValue": _clip,
    "Relu6": lambda trace, op, x: _clip(trace, op, x, x.full(0), x.full(6)),
    "LeakyRelu": _leaky_relu,
    "Elu": _elu,
    "Selu": _selu,
    "Softsign": lambda trace, op, x: x / (x.intrinsic("fabs") + 1.0),
    "Select": lambda trace, op, c, x, y: select(c, x, y),
    "Cast": _cast,
    "Identity": lambda trace, op, x: x,
    "StopGradient": lambda trace, op, x: x,
    "Const": lambda trace, op: trace.to_tensor(op.value[()]).lanes,
}  # fmt: skip
