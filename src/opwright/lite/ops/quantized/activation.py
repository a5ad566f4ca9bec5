"""Integer rules of activations: RELU and its variants, LEAKY_RELU, PRELU, HARD_SWISH, ELU, GELU, LOGISTIC, TANH; over
rows SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION.

Lives here: these rules, and the table of the logistic function that LOGISTIC and TANH of int16 interpolate.
Not here: exp, reciprocals and inverse square roots in fixed point (opwright/scalar), tables (fixed_point.py).

Softmax of 8 bits: differences to the row's greatest in Q5.26, their exponentials in Q0.31 (a table, as there are 256
differences), their sum in Q12.19, times its reciprocal. For 16 bits: tables of exp over [-10, 0] and of 1 / (1 + x),
interpolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....scalar import numpy_namespace
from ....scalar.fixed_point import interpolation_table, multiplier, short_multiplier
from ....scalar.fixed_point_layers import SoftmaxOfInt16, tables_of
from ....scalar.formulas import CLAMPS, GELU_CUBIC, GELU_SLOPE
from .fixed_point import INT16, INT32, Function, byte_table, interpolated, look_up, tabulated
from .operand import Operand, check_output, check_scaled, check_symmetric, check_types, quantize_real

BYTES = ("INT8 INT8", "UINT8 UINT8")
ALL = (*BYTES, "INT16 INT16")
Rule = Callable[[Any, Operand, Operand], Any]
_f = np.float32


def _rescaling(op: Any, x: Operand, y: Operand) -> tuple[int, int]:
    """Return the factor from steps of x to those of y. Raises InvalidArgumentError for types without a rule."""
    kind = check_types(op, ALL, x, y)
    check_scaled(x, y)
    if kind == "INT16":
        check_symmetric(x, y)
    m, e = multiplier(float(x.scale / y.scale))
    return m, e


def _clipped(low: float, high: float | None) -> Rule:
    """Return the rule of a RELU with two real bounds: rescale the input, then clamp."""

    def rule(op: Any, x: Operand, y: Operand) -> Function:
        m, e = _rescaling(op, x, y)
        lower = max(y.low, quantize_real(low, y))
        upper = y.high if high is None else min(y.high, quantize_real(high, y))
        return tabulated(lambda q: y.saturated(INT32.rescale(x.centred(q), m, e), lower, upper), x)

    return rule


relu, relu6, relu_n1_to_1, relu_0_to_1 = (
    _clipped(*CLAMPS[name]) for name in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
)


def leaky_relu(op: Any, x: Operand, y: Operand) -> Function:
    m, e = _rescaling(op, x, y)
    slope = float(x.scale * _f(op.alpha) / y.scale)
    m_below, e_below = multiplier(abs(slope))
    m_below = -m_below if slope < 0 else m_below

    def run(q: np.ndarray) -> np.ndarray:
        v = x.centred(q)
        steps = np.where(v >= 0, INT32.rescale(v, m, e), INT32.rescale(v, m_below, e_below))
        return y.saturated(steps)

    return tabulated(run, x)


def prelu(op: Any, x: Operand, alpha: Operand, y: Operand) -> Callable[..., Any]:
    check_types(op, ("INT8 INT8 INT8", "UINT8 UINT8 UINT8", "INT16 INT8 INT16"), x, alpha, y)
    check_scaled(x, alpha, y)
    m, e = multiplier(float(x.scale / y.scale))
    m_below, e_below = multiplier(float(x.scale * alpha.scale / y.scale))

    def run(q: np.ndarray, a: np.ndarray) -> np.ndarray:
        v = x.centred(q)
        below = INT32.rescale(v * alpha.centred(a), m_below, e_below)
        return y.saturated(np.where(v >= 0, INT32.rescale(v, m, e), below))

    return run


def hard_swish(op: Any, x: Operand, y: Operand) -> Function:
    """Compute x relu6(x + 3) / 6 in 16-bit arithmetic."""
    check_types(op, BYTES, x, y)
    check_scaled(x, y)
    fine = x.scale / _f(128)
    m_out, e_out = multiplier(float(fine / y.scale))
    m_relu, e_relu = multiplier(float(fine / _f(3.0 / 32768.0)))
    short_out, short_relu = short_multiplier(m_out), short_multiplier(m_relu)
    if e_out > 0:
        raise y.wrong(
            "has a scale too small for this input",
            [float(x.scale), float(y.scale)],
            wanted="a larger scale of the output",
        )

    def run(q: np.ndarray) -> np.ndarray:
        v = x.centred(q) * 128
        product = INT16.high_product(v, short_out)
        gate = v if e_relu <= 0 else INT16.saturated(v << (e_relu - 1))
        gate = INT16.high_product(gate, short_relu)
        if e_relu > 0:
            gate = INT16.saturated(gate << 1)
        elif e_relu < 0:
            gate = INT32.shifted_right(gate, -e_relu)
        gated = ((gate + 32768) >> 1) * product
        truncated = np.where(gated >= 0, gated >> 15, -(-gated >> 15))
        return y.saturated(INT32.shifted_right(INT16.saturated(truncated), -e_out))

    return tabulated(run, x)


def tabled(f: Function) -> Callable[[Operand, Operand], Function]:
    """Return the rule of a function computed by table lookup; f: on float64, its result is rounded to float32."""

    def kernel(x: Operand, y: Operand) -> Function:
        check_scaled(x, y)
        with np.errstate(all="ignore"):
            table = byte_table(lambda v: f(v.astype(np.float64)).astype(_f), x, y)
        return lambda q: look_up(table, q)

    return kernel


def wide_tabled(f: Function) -> Callable[[Operand, Operand], Function]:
    """Return the rule for int16, by an interpolated table; f: on float32."""

    def kernel(x: Operand, y: Operand) -> Function:
        check_scaled(x, y)
        with np.errstate(all="ignore"):
            table = interpolation_table(
                f, real_of(x, x.low), real_of(x, x.high), real_of(y, y.low), real_of(y, y.high), _f
            )
        return lambda q: interpolated(table, q)

    return kernel


def single(f: Any) -> Callable[..., Any]:
    """Return a function that computes in float64 and rounds once: NumPy's float32 functions differ."""
    return lambda v: f(v.astype(np.float64)).astype(_f)


def real_of(o: Operand, q: int) -> float:
    """Return the real number that an integer represents."""
    return float(o.scale * _f(q - o.zero_point))


# The sum is a float32, too: its rounding decides ties.
_logistic = tabled(lambda v: _f(1) / (_f(1) + np.exp(-v).astype(_f)))
_tanh = tabled(np.tanh)
_elu = tabled(lambda v: np.where(v < 0, np.expm1(np.minimum(v, 0)), v))
_erf: Function = np.frompyfunc(math.erf, 1, 1)


def _gelu(v: Any) -> np.ndarray:
    result: np.ndarray = 0.5 * v * (1 + _erf(v * math.sqrt(0.5)).astype(np.float64))
    return result


def _gelu_by_tanh(v: np.ndarray) -> np.ndarray:
    result: np.ndarray = 0.5 * v * (1 + np.tanh(GELU_SLOPE * (v + GELU_CUBIC * v**3)))
    return result


GELUS = {by_tanh: (tabled(f), wide_tabled(single(f))) for by_tanh, f in ((False, _gelu), (True, _gelu_by_tanh))}


def logistic(op: Any, x: Operand, y: Operand) -> Function:
    kind = check_types(op, ALL, x, y)
    check_scaled(x, y)
    if kind == "INT16":
        check_symmetric(x)
        check_output(y, 1 / 32768, 0)
        return logistic_wide(x)
    check_output(y, 1 / 256, y.zero_point)  # any zero point
    return _logistic(x, y)


def tanh(op: Any, x: Operand, y: Operand) -> Function:
    kind = check_types(op, ALL, x, y)
    check_scaled(x, y)
    if kind == "INT16":
        check_symmetric(x)
        check_output(y, 1 / 32768, 0, 1e-3)
        return tanh_wide(x)
    return _tanh(x, y)


def elu(op: Any, x: Operand, y: Operand) -> Function:
    check_types(op, ("INT8 INT8",), x, y)
    return _elu(x, y)


def gelu(op: Any, x: Operand, y: Operand) -> Function:
    narrow, wide = GELUS[bool(op.approximate)]
    return (wide if check_types(op, ALL, x, y) == "INT16" else narrow)(x, y)


# The published table is 65536 / (1 + e^(-i / 24)) rounded, but for these entries, which are one more.
_ONE_MORE = (
    4,
    8,
    12,
    14,
    15,
    16,
    17,
    19,
    20,
    21,
    22,
    25,
    27,
    28,
    29,
    30,
    31,
    33,
    34,
    35,
    37,
    39,
    40,
    41,
    43,
    44,
    45,
    46,
    49,
    50,
    54,
    62,
    63,
    64,
    66,
    82,
    86,
    93,
    100,
    103,
    112,
    116,
    135,
)


def _table() -> np.ndarray:
    entries = np.minimum(np.floor(65536 / (1 + np.exp(-np.arange(256) / 24)) + 0.5).astype(np.int64), 65535)
    entries[list(_ONE_MORE)] += 1
    entries[255] = 65535
    return np.append(entries, 65535)  # what interpolation beyond the last entry reads and drops


LOGISTIC_TABLE = _table()


def _table_steps(x: Operand, max_shift: int) -> Callable[..., Any]:
    """Return the steps of the table, of unit 1 / (3 * 2^12), for integers of x.

    Scales of 2^-12 times 2^0..2^max_shift are met by a shift, others by a 15-bit factor.
    """
    exponent = x.log2_scale
    if exponent is not None and 0 <= exponent + 12 <= max_shift:
        return lambda q: q.astype(np.int64) * (3 << exponent + 12)
    factor, n = float(x.scale) * 4096 * 3, 0
    while factor <= 32767 / 2 and n <= 30:
        factor, n = factor * 2, n + 1
    factor_int, half = math.trunc(min(factor, 2.0**31)), (1 << n) >> 1  # more is beyond the table for all but 0
    return lambda q: (q.astype(np.int64) * factor_int + half) >> n


def logistic_wide(x: Operand) -> Callable[..., Any]:
    steps, table = _table_steps(x, 0), LOGISTIC_TABLE

    def run(q: np.ndarray) -> np.ndarray:
        v = steps(q)
        a = np.abs(v)
        i = np.minimum(a >> 9, 255)
        r = np.where(a >> 9 >= 255, 32767 << 10, (table[i] << 9) + (a & 511) * (table[i + 1] - table[i]))
        return np.where(v >= 0, r + 512, (1 << 25) - r + 511) >> 10

    return run


def tanh_wide(x: Operand) -> Callable[..., Any]:
    steps, table = _table_steps(x, 1), LOGISTIC_TABLE

    def run(q: np.ndarray) -> np.ndarray:
        v = steps(q)
        a = np.abs(v)
        i = np.minimum(a >> 8, 255)
        r = np.where(a >> 8 >= 255, 65535 << 8, (table[i] << 8) + (a & 255) * (table[i + 1] - table[i]))
        return np.where(v >= 0, r - (1 << 23) + 128, -r + (1 << 23) + 127) >> 8

    return run


SOFTMAX_OUTPUTS = {"INT8": (1 / 256, -128), "INT16": (1 / 32768, 0)}
"""Output scales that the official kernels require; for others they use 1/256 (uint8) and 1/65536 (int16 of 8 bits)."""
SOFTMAX_INTEGER_BITS = 5  # of differences
SOFTMAX_BITS = {"INT8": 8, "UINT8": 8, "INT16": 16}


def softmax(op: Any, x: Operand, y: Operand) -> Function:
    kind = check_types(op, ("INT8 INT8", "UINT8 UINT8", "INT8 INT16", "UINT8 INT16", "INT16 INT16"), x, y)
    check_scaled(x, y)
    if kind == y.type and kind in SOFTMAX_OUTPUTS:
        check_output(y, *SOFTMAX_OUTPUTS[kind], 1e-3)
    return _by_tables(op, x) if kind == "INT16" else _in_fixed_point(op, x, y)


def _in_fixed_point(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    m, e = multiplier(min(op.beta * float(x.scale) * (1 << 26), 2.0**31 - 1))
    lowest = -math.floor(31 * 2.0**26 / 2.0**e)
    differences = -np.arange(256)
    is_counted = differences >= lowest
    steps = INT32.high_product(np.left_shift(differences * is_counted, max(e, 0)), m)
    exponentials = np.where(is_counted, INT32.exp_on_negatives(steps, SOFTMAX_INTEGER_BITS), 0)
    summands = INT32.shifted_right(exponentials, 12)
    shift = 31 - SOFTMAX_BITS[y.type]

    def run(q: np.ndarray) -> np.ndarray:
        if not q.size:
            return q
        below = q.max(-1, keepdims=True).astype(np.int32) - q  # 0 to 255
        r, k = INT32.reciprocal(summands[below].sum(-1, keepdims=True))
        out = INT32.shifted_right(INT32.high_product(r, exponentials[below]), k + shift) + y.low
        return np.clip(np.where(is_counted[below], out, y.low), y.low, y.high)

    return run


def log_softmax(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    """Compute in float32, as the official optimized kernels do; their reference kernel differs by at most one."""
    check_types(op, ("INT8 INT8", "UINT8 UINT8"), x, y)
    check_scaled(x, y)
    check_output(y, 16 / 256, y.high, 1e-3)
    exponentials = np.exp(-float(x.scale) * np.arange(256)).astype(np.float32)
    factor = x.scale / y.scale

    def run(q: np.ndarray) -> np.ndarray:
        if not q.size:
            return q
        wide = np.atleast_1d(q).astype(np.int32)  # a scalar is a row of its own
        greatest = wide.max(-1, keepdims=True)
        total = np.cumsum(exponentials[greatest - wide], -1, dtype=np.float32)[..., -1:]
        constant = (x.scale * greatest.astype(np.float32) + np.log(total)) / y.scale
        logs = np.rint(factor * wide.astype(np.float32) - constant) + y.zero_point
        result: np.ndarray = np.clip(logs, y.low, y.high).reshape(q.shape)
        return result

    return run


def _by_tables(op: Any, x: Operand) -> Callable[..., Any]:
    (m, e), exp_table, inverse_table = tables_of(x.scale, op.beta)

    arithmetic = SoftmaxOfInt16(numpy_namespace)

    def run(q: np.ndarray) -> np.ndarray:
        if not q.size:
            return q
        wide = q.astype(np.int64)
        exps = arithmetic.exponential(exp_table, wide - wide.max(-1, keepdims=True), m, e)
        return arithmetic.share(exps, *arithmetic.reciprocal(inverse_table, exps.sum(-1, keepdims=True)))

    return run


def l2_normalization(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    """.. math:: q_y = z_y + 128 (q_x - z_x) / \\sqrt{\\sum (q_x - z_x)^2}"""
    check_types(op, ("INT8 INT8", "UINT8 UINT8"), x, y)
    check_scaled(x, y)
    check_output(y, 1 / 128, 0 if y.type == "INT8" else 128)

    def run(q: np.ndarray) -> np.ndarray:
        v = x.centred(q)
        root, shift = INT32.inverse_root(np.square(v).sum(-1, keepdims=True))
        # 128 times: of int8 in the multiplier, of uint8 in the number, which rounds otherwise
        out = INT32.rescale(v, root, shift + 7) if y.type == "INT8" else INT32.rescale(v * 128, root, shift)
        return y.saturated(out)

    return run
