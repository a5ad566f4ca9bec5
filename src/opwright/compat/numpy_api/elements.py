"""Functions of `ow.experimental.numpy` whose rule of dtypes is the same for many: tables.

Lives here: functions of elements, and others of a tensor in its own dtype or of two in their common one.
Not here: the rules (dtypes.py), arrays (arrays.py), reductions (reductions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...nn import keras_ops as K
from ...ops import array as arrays
from ...ops import math as ow_math
from ...ops.bitwise import invert
from .dtypes import promoted, promoted_floats, to_floats, to_tensor

__all__ = [*("around", "divmod", "fix", "logical_not", "round")]

Prepared = Callable[..., Any]


def _prepared(name: str, count: int, prepare: Callable[..., Any], function: Callable[..., Any]) -> Prepared:
    """Return a function whose first `count` arguments are prepared."""

    def call(*args: Any, **kwargs: Any) -> Any:
        first = prepare(*args[:count])
        return function(*(first if count > 1 else [first]), *args[count:], **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return `numpy.{name}` of tensors."
    return call


def _positions(function: Callable[..., Any], default: int | None = None) -> Callable[..., Any]:
    """Return a function with results in int64. default: its axis"""

    def call(x: Any, axis: int | None = default, kind: str = "quicksort", order: None = None) -> Any:
        return arrays.cast(function(x, axis), "int64")

    return call


_MATCHING = {
    "add": lambda a, b: ow_math.logical_or(a, b) if a.dtype.is_bool else a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: ow_math.logical_and(a, b) if a.dtype.is_bool else a * b,
    "power": ow_math.pow,
    "float_power": ow_math.pow,
    "matmul": K.matmul,
    "dot": K.dot,
    "inner": K.inner,
    "outer": K.outer,
    "kron": K.kron,
    "vdot": K.vdot,
    "cross": K.cross,
    "tensordot": K.tensordot,
    "maximum": K.maximum,
    "minimum": K.minimum,
    "mod": K.mod,
    "remainder": K.mod,
    "floor_divide": ow_math.floordiv,
    "gcd": K.gcd,
    "lcm": K.lcm,
    "bitwise_and": K.bitwise_and,
    "bitwise_or": K.bitwise_or,
    "bitwise_xor": K.bitwise_xor,
    **{n: getattr(K, n) for n in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
    "true_divide": ow_math.truediv,
    "divide": ow_math.truediv,
    "append": K.append,
    "heaviside": K.heaviside,
}
"""Functions of two arguments, in the common dtype."""
_MATCHING_FLOATS = {n: getattr(K, n) for n in ("arctan2", "hypot", "logaddexp", "logaddexp2", "nextafter")}
_FLOATS = {
    n: getattr(K, n)
    for n in (
        *("arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "cos", "cosh", "deg2rad"),
        *("exp", "exp2", "expm1", "floor", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "log", "log10"),
        *("log1p", "log2", "rad2deg", "sin", "sinc", "sinh", "sqrt", "tan", "tanh", "angle", "signbit"),
    )
}
"""Functions of one argument, which becomes a floating-point number."""
_SAME = {
    **{
        n: getattr(K, n)
        for n in (
            *("abs", "absolute", "conj", "conjugate", "imag", "negative", "real", "sign", "square"),
            *("broadcast_to", "diag", "diagflat", "diff", "expand_dims", "flip"),
            *("fliplr", "flipud", "max", "amax", "min", "amin", "moveaxis", "ravel", "reshape", "repeat"),
            *("roll", "rot90", "sort", "squeeze", "swapaxes", "tile", "tril", "triu", "transpose", "ptp", "all", "any"),
            *("vander", "take_along_axis", "hsplit", "vsplit", "dsplit", "split", "diagonal", "isreal"),
        )
    },
    "fabs": K.abs,
    "positive": lambda x: x,
    "reciprocal": lambda x: ow_math.reciprocal(x) if not x.dtype.is_integer else K.floor_divide(1, x),
    "bitwise_not": invert,
    "ascontiguousarray": lambda x: x,
    "copy": arrays.identity,
    **{n: _positions(getattr(K, n)) for n in ("argmax", "argmin", "count_nonzero")},
    "argsort": _positions(K.argsort, -1),
    "nonzero": lambda x: [arrays.cast(part, "int64") for part in K.nonzero(x)],
}
"""Functions of one tensor in its own dtype."""
_LISTS = {n: getattr(K, n) for n in ("concatenate", "stack", "hstack", "vstack", "dstack")}
"""Functions of a list of arrays, in the common dtype."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{n: _prepared(n, 2, promoted, f) for n, f in _MATCHING.items()},
    **{n: _prepared(n, 2, promoted_floats, f) for n, f in _MATCHING_FLOATS.items()},
    **{n: _prepared(n, 1, to_floats, f) for n, f in _FLOATS.items()},
    **{n: _prepared(n, 1, to_tensor, f) for n, f in _SAME.items()},
    **{n: _prepared(n, 1, lambda xs: promoted(*xs), f) for n, f in _LISTS.items()},
    **{
        n: _prepared(n, 2, lambda a, b: [to_tensor(x, np.bool_) for x in (a, b)], getattr(ow_math, n))
        for n in ("logical_and", "logical_or", "logical_xor")
    },
}
"""By name, what `__init__.py` exports."""


def logical_not(x: Any) -> Any:
    """Return whether elements are zero."""
    return ow_math.logical_not(to_tensor(x, np.bool_))


def fix(x: Any) -> Any:
    """Round towards zero."""
    x = to_floats(x)
    return K.where(x >= 0, K.floor(x), K.ceil(x))


def around(a: Any, decimals: int = 0) -> Any:
    """Round to decimals."""
    x = to_tensor(a)
    return x if x.dtype.is_integer and decimals >= 0 else arrays.cast(K.round(to_floats(x), decimals), x.dtype)


round = around


def divmod(x1: Any, x2: Any) -> Any:
    """Return floored quotients and remainders."""
    a, b = promoted(x1, x2)
    return ow_math.floordiv(a, b), ow_math.floormod(a, b)
