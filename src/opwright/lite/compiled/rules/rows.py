"""Operators that need a whole row at once: SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION, LOCAL_RESPONSE_NORMALIZATION.

Lives here: these rules.  Not here: the row kernels.
"""

from __future__ import annotations

import numpy as np

from ....compiler.loops.expressions import apply, arg, convert, scalar
from ....compiler.loops.forms import Buffer, RowPass, TabledSoftmax
from ....core.dtypes import bfloat16, float16, float32, int16, int64
from ...ops.quantized.softmax import tables_of
from ..nodes import At, Operand, Refused, real, stored
from . import rule
from .elementwise import integer_kernel


def _row(at: At) -> tuple[Operand, Operand]:
    """Of int16 the official kernels of other functions than softmax are further than a step from what they say."""
    x = at.operand(0)
    y = at.output(x.shape)
    if x.dtype is not y.dtype or x.dtype is int16 or not x.shape:
        raise Refused(f"rows of {x} to {y}")
    return x, y


@rule("SOFTMAX")
def softmax(at: At) -> None:
    if at.operand(0).dtype is int16:
        _of_int16(at)
        return
    x, y = _row(at)
    beta = at.option("beta")
    # Below 0, beta * (x - max) has its greatest at the least x, which the row's pass does not subtract; from 1e30 on it
    # overflows before the difference is taken.
    if not 0 < beta < 1e30:
        raise Refused(f"softmax with beta {beta}")
    short = x.dtype in (float16, bfloat16)
    value = convert(arg(0, x.dtype), float32) if short else real(x, 0)
    before = apply("mul", value, scalar(beta, float32))
    after = convert(arg(0, float32), x.dtype) if short else stored(arg(0, float32), y)
    at.form(RowPass, y.buffer, x.buffer, (), "softmax", before, after)


def _of_int16(at: At) -> None:
    x = at.operand(0)
    y = at.output(x.shape)
    if not x.shape or y.dtype is not int16:
        raise Refused(f"rows of {x} to {y}")
    integer_kernel(at)  # refuses scales that the operator refuses
    factor, *tables = tables_of(x.scale, at.option("beta"))
    both = np.stack(tables).astype(np.int64)
    at.form(TabledSoftmax, y.buffer, x.buffer, Buffer("softmax.tables", int64, both.shape, both), factor)


@rule("LOG_SOFTMAX")
def log_softmax(at: At) -> None:
    x, y = _row(at)
    at.form(RowPass, y.buffer, x.buffer, (), "log_softmax", real(x, 0), stored(arg(0, float32), y))


@rule("L2_NORMALIZATION")
def l2_normalization(at: At) -> None:
    x, y = _row(at)
    at.form(RowPass, y.buffer, x.buffer, (), "l2_norm", real(x, 0), stored(arg(0, float32), y), (1e-6,))


@rule("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(at: At) -> None:
    x, y = _row(at)
    radius, bias, alpha, beta = (at.option(name) for name in ("radius", "bias", "alpha", "beta"))
    if x.dtype is not float32 or len(x.shape) != 4 or radius < 0:
        raise Refused(f"rows of {x}, radius {radius}")
    numbers = (float(radius), float(bias), float(alpha), float(beta))
    at.form(RowPass, y.buffer, x.buffer, (), "local_response", arg(0, float32), arg(0, float32), numbers)
