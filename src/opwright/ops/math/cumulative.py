"""Running sums and products along an axis.

Lives here: Cumsum, Cumprod, CumulativeLogsumexp, and what the gradient of products needs: LinearRecurrence, ShiftByOne.
Not here: reductions to one element (reduction.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import floating, floating_or_complex, numeric
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device, math
from ..accumulation import wide
from ..array_functions import scanned
from ..attributes import Attr
from ..definition import operator
from ..registry import documented_by
from ..shape_inference import is_static, static_int
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .arithmetic import _conj


def _scan_spec(op: Any) -> TensorSpec:
    """Return the spec of a scan: that of `x`, whose rank must have the axis."""
    spec = op.x.spec
    rank = spec.shape.rank
    if rank is not None and not -rank <= op.axis < rank:
        raise InvalidArgumentError(
            what=f"Expected scan axis in the range [{-rank}, {rank}), but got {op.axis}", found=spec.short()
        )
    result: TensorSpec = spec
    return result


@operator
class Cumsum(OperatorDefinition):
    """Running sum along an axis.

    .. math:: y_i = \\sum_{j \\le i} x_j

    exclusive: without the element itself (j < i); reverse: from the end (j >= i, or j > i).
    raises InvalidArgumentError for an axis out of range
    """

    x = Input(numeric)
    y = Output(like="x")
    axis = Attr(int, default=0)
    exclusive = Attr(bool, default=False)
    reverse = Attr(bool, default=False)
    no_need_buffer = ("x",)
    infer = _scan_spec

    def compute(op, x: Any) -> np.ndarray:
        return scanned(np.add, x, op.axis, 0, op.exclusive, op.reverse)

    def gradient(op, dy: Any) -> Tensor:
        return Cumsum(dy, axis=op.axis, exclusive=op.exclusive, reverse=not op.reverse)


def _along(op: Any, x: Any, axis: Any, exclusive: bool, reverse: bool, name: str | None) -> Tensor:
    """Call a scan along an axis that may be a tensor."""
    if is_static(axis):
        result: Tensor = op(x, axis=static_int(axis, "axis"), exclusive=exclusive, reverse=reverse, name=name)
        return result
    return array.run_time_axes.along(lambda y: op(y, axis=0, exclusive=exclusive, reverse=reverse), x, axis, name)


@documented_by(Cumsum)
def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Return cumulative sums along an axis."""
    return _along(Cumsum, x, axis, exclusive, reverse, name)


@operator
class Cumprod(OperatorDefinition):
    """Running product along an axis.

    .. math:: y_i = \\prod_{j \\le i} x_j

    exclusive: without the element itself (j < i); reverse: from the end (j >= i, or j > i).
    raises InvalidArgumentError for an axis out of range
    """

    x = Input(numeric)
    y = Output(like="x")
    axis = Attr(int, default=0)
    exclusive = Attr(bool, default=False)
    reverse = Attr(bool, default=False)
    infer = _scan_spec

    def compute(op, x: Any) -> np.ndarray:
        return scanned(np.multiply, x, op.axis, 1, op.exclusive, op.reverse)

    def gradient(op, dy: Any) -> Tensor:
        # dx_k = (product before k) * sum_{i >= k} dy_i * (product after k, up to i), the sum by a recurrence from the
        # end: no division, so zeros are not an exception
        x, back = _conj(op.x), not op.reverse
        before = Cumprod(x, axis=op.axis, exclusive=True, reverse=op.reverse)
        if op.exclusive:
            dy = ShiftByOne(dy, axis=op.axis, reverse=back)
        after = ShiftByOne(x, axis=op.axis, reverse=back)
        return before * LinearRecurrence(dy, after, axis=op.axis, reverse=back)


@documented_by(Cumprod)
def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Return cumulative products along an axis."""
    return _along(Cumprod, x, axis, exclusive, reverse, name)


@operator
class ShiftByOne(OperatorDefinition):
    """Shift elements by one along an axis, with a zero first.

    .. math:: y_i = x_{i-1}, \\quad y_0 = 0

    reverse: one place back instead, a zero in the last.
    """

    x = Input(floating_or_complex)
    y = Output(like="x")
    axis = Attr(int, default=0)
    reverse = Attr(bool, default=False)
    no_need_buffer = ("x",)
    infer = _scan_spec

    def compute(op, x: np.ndarray) -> np.ndarray:
        y = np.zeros_like(x)
        source, target = np.moveaxis(x, op.axis, 0), np.moveaxis(y, op.axis, 0)
        if op.reverse:
            target[:-1] = source[1:]
        else:
            target[1:] = source[:-1]
        return y

    def gradient(op, dy: Any) -> Tensor:
        return ShiftByOne(dy, axis=op.axis, reverse=not op.reverse)


@operator
class LinearRecurrence(OperatorDefinition):
    """Running sum with a decay factor at every step.

    .. math:: y_i = x_i + factor_i \\, y_{i-1}, \\quad y_{-1} = 0

    x, factor: one shape and dtype. reverse: from the end, with y_{i+1} for y_{i-1}.
    """

    x = Input(floating_or_complex)
    factor = Input(floating_or_complex, like="x")
    y = Output(like="x")
    axis = Attr(int, default=0)
    reverse = Attr(bool, default=False)

    def infer(op) -> TensorSpec:
        spec = _scan_spec(op)
        if not spec.shape.is_compatible_with(op.factor.spec.shape):
            raise InvalidArgumentError(
                what="x and factor differ in shape", found=f"{spec.short()}, {op.factor.spec.short()}"
            )
        return TensorSpec(spec.shape.merge_with(op.factor.spec.shape), spec.dtype)

    def compute(op, x: np.ndarray, factor: np.ndarray) -> np.ndarray:
        dtype = wide(x.dtype)
        lines, factors = np.moveaxis(x, op.axis, 0).astype(dtype), np.moveaxis(factor, op.axis, 0).astype(dtype)
        places = range(len(lines))
        running = like_device.zeros(lines, lines.shape[1:], dtype)
        for i in reversed(places) if op.reverse else places:
            lines[i] = running = lines[i] + factors[i] * running
        return np.moveaxis(lines, 0, op.axis).astype(x.dtype, copy=False)

    def gradient(op, dy: Any) -> tuple[Tensor, Any]:
        back = not op.reverse
        dx = LinearRecurrence(dy, ShiftByOne(_conj(op.factor), axis=op.axis, reverse=back), axis=op.axis, reverse=back)
        return dx, dx * _conj(ShiftByOne(op.y, axis=op.axis, reverse=op.reverse))


@operator
class CumulativeLogsumexp(OperatorDefinition):
    """Running logarithm of the sum of exponentials along an axis, without overflow.

    .. math:: y_i = \\log \\sum_{j \\le i} e^{x_j}

    exclusive: without the element itself (j < i), minus infinity for the first; reverse: from the end.
    raises InvalidArgumentError for an axis out of range
    """

    x = Input(floating)
    y = Output(like="x")
    axis = Attr(int, default=0)
    exclusive = Attr(bool, default=False)
    reverse = Attr(bool, default=False)
    infer = _scan_spec

    def compute(op, x: Any) -> np.ndarray:
        return scanned(np.logaddexp, x, op.axis, -np.inf, op.exclusive, op.reverse)

    def gradient(op, dy: Any) -> Tensor:
        # dx_k = sum_{i >= k} dy_i exp(x_k - y_i), the sums for positive and negative dy_i by this operator itself
        ones, nothing = array.ones_like(dy), array.zeros_like(dy) - np.inf
        dx = array.zeros_like(dy)
        for sign in (1.0, -1.0):
            part = sign * dy
            mask = (part > 0) & (op.y > -np.inf)
            logs = math.log(array.where(mask, part, ones))
            weight = array.where(mask, logs - array.where(mask, op.y, ones), nothing)
            back = CumulativeLogsumexp(weight, axis=op.axis, exclusive=op.exclusive, reverse=not op.reverse)
            some = (back > -np.inf) & (op.x > -np.inf)
            zero = array.zeros_like(dy)
            exponent = array.where(some, array.where(some, back, zero) + array.where(some, op.x, zero), nothing)
            dx = dx + sign * math.exp(exponent)
        return dx


@documented_by(CumulativeLogsumexp)
def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Return cumulative logarithms of sums of exponentials along an axis."""
    return _along(CumulativeLogsumexp, dispatch.to_tensor(x), axis, exclusive, reverse, name)
