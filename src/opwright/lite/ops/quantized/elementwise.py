"""Integer rules of ABS, EXP, LOG, SQRT and RSQRT.

Lives here: these rules.  Not here: activations (activation.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core.errors import InvalidArgumentError
from ....scalar.quantization import multiplier
from .activation import real_of, single, tabled, wide_tabled
from .fixed_point import INT32
from .operand import Operand, check_scaled, check_types

_exp = tabled(np.exp)
_log = tabled(lambda v: np.where(v > 0, np.log(v), -np.inf))


def absolute(op: Any, x: Operand, y: Operand) -> Any:
    check_types(op, ("INT8 INT8", "INT16 INT16"), x, y)
    check_scaled(x, y)
    m, e = multiplier(float(x.scale / y.scale))

    def run(q: Any) -> Any:
        v = np.abs(x.centred(q))
        return np.clip((v if x.scale == y.scale else INT32.rescale(v, m, e)) + y.zero_point, y.low, y.high)

    return run


def exp(op: Any, x: Operand, y: Operand) -> Any:
    kind = check_types(op, ("INT8 INT8", "INT16 INT16"), x, y)
    return _exp(x, y) if kind == "INT8" else wide_tabled(single(np.exp))(x, y)


def log(op: Any, x: Operand, y: Operand) -> Any:
    kind = check_types(op, ("INT8 INT8", "INT16 INT16"), x, y)
    least = np.float32(real_of(y, y.low))  # what has no logarithm
    return _log(x, y) if kind == "INT8" else wide_tabled(lambda v: np.where(v > 0, single(np.log)(v), least))(x, y)


def _not_negative(x: Operand, q: Any, name: str) -> None:
    if q.size and int(q.min()) < x.zero_point:
        raise InvalidArgumentError(
            what=f"{name} is only defined for positive values",
            found=int(q.min()),
            wanted=f"integers from the zero point, {x.zero_point}, on",
        )


def rsqrt(op: Any, x: Operand, y: Operand) -> Any:
    """1 / sqrt(x) in fixed point, of int16 by table; 0 gives the greatest output."""
    if check_types(op, ("INT8 INT8", "INT16 INT16"), x, y) == "INT16":
        most = np.float32(real_of(y, y.high))
        wide = wide_tabled(lambda v: np.where(v > 0, np.float32(1) / np.sqrt(v), most))(x, y)

        def run_wide(q: Any) -> Any:
            _not_negative(x, q, "Rsqrt")
            return wide(q)

        return run_wide
    check_scaled(x, y)
    bits = 20  # that keep 1 / sqrt(q) an integer
    m, e = multiplier(1.0 / (math.sqrt(float(x.scale)) * float(y.scale)))

    def run(q: Any) -> Any:
        _not_negative(x, q, "Rsqrt")
        v = x.centred(q)
        root, shift = INT32.inverse_root(np.maximum(v, 1))
        found = INT32.rescale(INT32.rescale(np.ones_like(v), root, shift + bits), m, e - bits)
        return np.clip(np.where(v == 0, y.high, found + y.zero_point), y.low, y.high)

    return run


def sqrt(op: Any, x: Operand, y: Operand) -> Any:
    """sqrt(x) in float32, its fraction cut off."""
    check_types(op, ("INT8 INT8", "INT16 INT16"), x, y)
    check_scaled(x, y)

    def run(q: Any) -> Any:
        _not_negative(x, q, "Sqrt")
        v = x.centred(q, np.float32)
        return np.clip(np.trunc(np.sqrt(x.scale * v) / y.scale) + np.float32(y.zero_point), y.low, y.high)

    return run
