"""Neural-network operators over the steps of sequences: convolution, softmax.

Lives here: SequenceConv, the extraction of context windows (SequenceContext) and its gradient, `conv`; SequenceSoftmax,
its gradient, `softmax`.
Not here: convolutions and softmax over axes (ops/nn), recurrent operators (lstm.py, gru.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import floating
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape
from ...core.specs import TensorSpec
from .. import like_device, linalg
from ..accumulation import widened
from ..attributes import Attr, greater_than
from ..definition import operator
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .pooling import SequenceExpandAs, SequencePool
from .segments import count, lengths_of, reduced

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..tensor import Tensor


def _padding_rows(start: int, length: int) -> tuple[int, int]:
    """Return the number of rows by which windows extend before the first and after the last row of a sequence."""
    return max(0, -start), max(0, start + length - 1)


def _window_rows(offsets: np.ndarray, lengths: np.ndarray, start: int, length: int, padded: bool) -> np.ndarray:
    """Return the rows of each window, [rows, length]; rows of the padding follow those of x.

    Without trainable padding there is one padding row of zeros.
    """
    n = int(offsets[-1])
    begins, ends = np.repeat(offsets[:-1], lengths)[:, None], np.repeat(offsets[1:], lengths)[:, None]
    rows = like_device.arange(offsets, n)[:, None] + (start + like_device.arange(offsets, length))
    up = max(0, -start)
    above = np.where(rows < begins, n + up + rows - begins if padded else n, rows)
    return np.where(rows >= ends, n + up + rows - ends if padded else n, above)


def _check_padding(padding: Any, width: int | None, start: int, length: int) -> None:
    up, down = _padding_rows(start, length)
    if up + down == 0:
        raise InvalidArgumentError(
            what="no window reaches beyond its sequence, so there is no padding to train",
            found=f"context_start {start}, context_length {length}",
        )
    if not TensorShape(padding).is_compatible_with([up + down, width]):
        raise InvalidArgumentError(
            what="padding_data has another shape",
            found=f"shape {padding}",
            wanted=f"shape [{up + down}, {'n' if width is None else width}]",
        )


@operator
class SequenceContext(OperatorDefinition):
    """Concatenate the rows of a context window at each row; zeros or padding rows beyond the sequence.

    .. math:: y_t = (x_{t + start}, ..., x_{t + start + length - 1})

    x: [rows, n] with one LoD level; padding_data: [up + down, n], up = max(0, -start) rows before a sequence and down =
    max(0, start + length - 1) after it, read if padding_trainable. y: [rows, length * n].
    raises InvalidArgumentError for missing padding_data or another shape
    """

    x = Input(floating, rank=2, lod=1)
    padding_data = Input(floating, like="x", optional=True)
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    y = Output(like="x")
    context_length = Attr(int, check=greater_than(0))
    context_start = Attr(int, default=0)
    padding_trainable = Attr(bool, default=False)
    no_need_buffer = ("x", "padding_data")

    def infer(op) -> TensorSpec:
        x = op.x.spec.shape
        _check_trainable(op)
        width = None if x.rank is None or x[1] is None else x[1] * op.context_length
        return TensorSpec([x[0] if x.rank else None, width], op.x.spec.dtype)

    def compute(op, x: Any, padding_data: Any, offsets: Any) -> np.ndarray:
        return _windows(op, x, padding_data, offsets).reshape(len(x), -1 if x.size else x.shape[1] * op.context_length)

    def gradient(op, dy: Any) -> tuple[Tensor, Tensor | None, None]:
        dx, dpadding = SequenceContextGrad(dy, op.offsets, **_window_attrs(op))
        return dx, dpadding if op.padding_trainable else None, None


def _window_attrs(op: Any) -> dict[str, Any]:
    return {
        "context_length": op.context_length,
        "context_start": op.context_start,
        "padding_trainable": op.padding_trainable,
    }


def _check_trainable(op: Any) -> None:
    if op.padding_trainable:
        if op.padding_data is None:
            raise InvalidArgumentError(what="padding_trainable needs input 'padding_data'", found="none")
        x = op.x.spec.shape
        _check_padding(op.padding_data.spec.shape, x[1] if x.rank else None, op.context_start, op.context_length)


def _windows(op: Any, x: np.ndarray, padding: np.ndarray | None, offsets: np.ndarray) -> np.ndarray:
    """Return the rows of all windows, [rows, length, n]."""
    lengths = lengths_of(offsets, len(x))
    padding_rows = like_device.zeros(x, (1, x.shape[1]), x.dtype)
    if op.padding_trainable and padding is not None:
        _check_padding(padding.shape, x.shape[1], op.context_start, op.context_length)
        padding_rows = padding
    rows = _window_rows(offsets, lengths, op.context_start, op.context_length, op.padding_trainable)
    return np.concatenate([x, padding_rows]).take(rows, 0)


@operator
class SequenceContextGrad(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Compute the gradient of SequenceContext: add windows to the rows they were taken from.

    .. math:: dx_s = \\sum_{t, j: t + start + j = s} dy_{t, j}

    dy: [rows, length * n]. dx: [rows, n]; dpadding: [up + down, n], without padding_trainable [0, n].
    raises InvalidArgumentError if the width of dy is not a multiple of length
    """

    dy = Input(floating, rank=2)
    offsets = Input(dtypes.int64, rank=1, lod_of="dy")
    dx = Output(like="dy")
    dpadding = Output(like="dy", rows=False)
    context_length = Attr(int, check=greater_than(0))
    context_start = Attr(int, default=0)
    padding_trainable = Attr(bool, default=False)

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        shape = op.dy.spec.shape
        width = shape[1] if shape.rank else None
        if width is not None and width % op.context_length:
            raise InvalidArgumentError(
                what="rows of dy are not whole windows",
                found=f"width {width}",
                wanted=f"a multiple of {op.context_length}",
            )
        n = None if width is None else width // op.context_length
        padding_rows = sum(_padding_rows(op.context_start, op.context_length)) if op.padding_trainable else 0
        rows = shape[0] if shape.rank else None
        return TensorSpec([rows, n], op.dy.spec.dtype), TensorSpec([padding_rows, n], op.dy.spec.dtype)

    def compute(op, dy: Any, offsets: Any) -> tuple[Any, Any]:
        lengths, rows = lengths_of(offsets, len(dy)), len(dy)
        parts = widened(dy).reshape(rows, op.context_length, dy.shape[1] // op.context_length)
        window_rows = _window_rows(offsets, lengths, op.context_start, op.context_length, op.padding_trainable)
        dx = like_device.zeros(parts, (rows, parts.shape[2]), parts.dtype)
        padding_rows = sum(_padding_rows(op.context_start, op.context_length)) if op.padding_trainable else 0
        dpadding = like_device.zeros(parts, (padding_rows, parts.shape[2]), parts.dtype)
        for j in range(op.context_length):  # rows of x are distinct within one window position
            sources, part = window_rows[:, j], parts[:, j]
            in_x = sources < rows
            if in_x.all():
                dx[sources] += part
                continue
            dx[sources[in_x]] += part[in_x]
            if padding_rows:
                np.add.at(dpadding, sources[~in_x] - rows, part[~in_x])
        return dx.astype(dy.dtype, copy=False), dpadding.astype(dy.dtype, copy=False)

    def gradient(op, ddx: Any, ddpadding: Any) -> tuple[Tensor, None]:
        padding = ddpadding if op.padding_trainable else None
        return SequenceContext(ddx, padding, op.offsets, **_window_attrs(op)), None


@operator
class SequenceConv(OperatorDefinition):
    """Convolve each sequence with a filter over a context window; zeros or trained rows pad the sequences.

    .. math:: y_t = (s_0, ..., s_{length - 1}) F, \\quad s_j = x_p \\text{ of its sequence, } p = t + start + j, \\text{
              else } 0, \\text{ or } P_{p + up} \\; (p < 0), \\; P_{up + p - n} \\; (p \\ge n)

    x: [rows, n] with one LoD level; filter: [context_length * n, m]; padding_data, P: [up + down, n] with up = max(0,
    -context_start) and down = max(0, context_start + context_length - 1), read if padding_trainable. y: [rows, m].
    context_stride: must be 1.
    raises InvalidArgumentError for x without LoD, with more levels or of another rank, a filter or padding_data of
    another shape, padding_trainable if no window extends beyond its sequence, and another stride
    """

    x = Input(floating, rank=2, lod=1)
    filter = Input(floating, rank=2, like="x")
    padding_data = Input(floating, like="x", optional=True)
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    y = Output(like="x")
    context_length = Attr(int, check=greater_than(0))
    context_start = Attr(int, default=0)
    context_stride = Attr(int, default=1, check=greater_than(0))
    padding_trainable = Attr(bool, default=False)

    def infer(op) -> TensorSpec:
        if op.context_stride != 1:
            raise InvalidArgumentError(
                what="windows can only move by one row", wanted="context_stride 1", found=op.context_stride
            )
        x, filter = op.x.spec.shape, op.filter.spec.shape
        _check_trainable(op)
        width, height = x[1] if x.rank else None, filter[0] if filter.rank else None
        if width is not None and height is not None and width * op.context_length != height:
            _raise_filter_mismatch(filter, width * op.context_length)
        if x.rank is None and filter.rank is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype)
        return TensorSpec([x[0] if x.rank else None, filter[1] if filter.rank else None], op.x.spec.dtype)

    def compute(op, x: np.ndarray, filter: np.ndarray, padding_data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        if len(filter) != x.shape[1] * op.context_length:
            _raise_filter_mismatch(filter.shape, x.shape[1] * op.context_length)
        windows = _windows(op, x, padding_data, offsets).reshape(len(x), len(filter))
        y: np.ndarray = (widened(windows) @ widened(filter)).astype(x.dtype, copy=False)
        return y

    def gradient(op, dy: Any) -> tuple[Tensor, Any, Tensor | None, None]:
        padding = op.padding_data if op.padding_trainable else None
        windows = SequenceContext(op.x, padding, op.offsets, **_window_attrs(op))
        dwindows = linalg.matmul(dy, op.filter, transpose_b=True)
        dx, dpadding = SequenceContextGrad(dwindows, op.offsets, **_window_attrs(op))
        dfilter = linalg.matmul(windows, dy, transpose_a=True)
        return dx, dfilter, dpadding if op.padding_trainable else None, None


def _raise_filter_mismatch(filter: Any, height: int) -> None:
    raise InvalidArgumentError(
        what="the filter has not a row for each number of a window",
        found=f"shape {list(filter)}",
        wanted=f"{height} rows, context_length times the width of x",
    )


@documented_by(SequenceConv)
def conv(
    x: Any,
    filter: Any,
    context_length: int = 3,
    context_start: int | None = None,
    padding_data: Any = None,
    context_stride: int = 1,
    name: str | None = None,
) -> Tensor:
    """Convolve sequences with a filter over a context window.

    context_start: by default the window is centered. padding_data: None for zeros.

    >>> x = ow.LoDTensor([[1.0], [2.0], [3.0]], [[0, 2, 3]])
    >>> ow.sequence.conv(x, ow.constant([[1.0], [10.0], [100.0]])).to_nested()
    [[[210.0], [21.0]], [[30.0]]]
    """
    start = -(context_length // 2) if context_start is None else context_start
    trained = padding_data is not None
    return SequenceConv(
        x,
        filter,
        padding_data,
        context_length=context_length,
        context_start=start,
        context_stride=context_stride,
        padding_trainable=trained,
        name=name,
    )


@operator
class SequenceSoftmax(OperatorDefinition):
    """Apply softmax over the rows of each sequence.

    .. math:: y_t = \\frac{e^{x_t - m_i}}{\\sum_s e^{x_s - m_i}}, \\quad m_i = \\max_s x_s, \\; o_i \\le s, t < o_{i+1}

    x: [rows] or [rows, 1] with a LoD; its last level determines the sequences. y: the same shape and LoD.
    raises InvalidArgumentError for x without LoD, or of another width than 1
    """

    x = Input(floating, rank=(1, 2))
    offsets = Input(dtypes.int64, rank=1, lod_of="x")
    y = Output(like="x")
    no_need_buffer = ("x",)

    def infer(op) -> TensorSpec:
        if op.x.spec.shape.rank is not None:
            _check_steps(op.x.spec.shape)
        count(op.offsets)
        return op.x.spec

    def compute(op, x: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        lengths = lengths_of(offsets, len(x))
        _check_steps(x.shape)
        flat = widened(x.reshape(-1))
        y = flat - np.repeat(reduced(np.maximum, flat, offsets, lengths, 0.0), lengths)
        np.exp(y, out=y)
        y /= np.repeat(reduced(np.add, y, offsets, lengths, 1.0), lengths)
        result: np.ndarray = y.astype(x.dtype, copy=False).reshape(x.shape)
        return result

    def gradient(op, dy: Any) -> tuple[Tensor, None]:
        return SequenceSoftmaxGrad(dy, op.y, op.offsets), None


@operator
class SequenceSoftmaxGrad(OperatorDefinition):
    """Compute the gradient of SequenceSoftmax.

    .. math:: dx_t = y_t (dy_t - \\sum_s dy_s y_s), \\quad o_i \\le s, t < o_{i+1}

    dy, y: [rows] or [rows, 1]. dx: the same shape.
    raises InvalidArgumentError if dy and y differ in shape
    """

    dy = Input(floating, rank=(1, 2))
    y = Input(floating, like="dy", rank=(1, 2))
    offsets = Input(dtypes.int64, rank=1, lod_of="y")
    dx = Output(like="dy")

    def infer(op) -> TensorSpec:
        count(op.offsets)
        if not op.dy.spec.shape.is_compatible_with(op.y.spec.shape):
            raise InvalidArgumentError(
                what="dy and y differ in shape", found={"dy": op.dy.spec.shape, "y": op.y.spec.shape}
            )
        return op.dy.spec

    def compute(op, dy: np.ndarray, y: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        lengths = lengths_of(offsets, len(y), "y")
        shares = widened(y.reshape(-1))
        dx = widened(dy.reshape(-1)) * shares
        dx -= shares * np.repeat(reduced(np.add, dx, offsets, lengths, 0.0), lengths)
        result: np.ndarray = dx.astype(dy.dtype, copy=False).reshape(dy.shape)
        return result

    def gradient(op, ddx: Any) -> tuple[Tensor, Any, None]:
        def sequence_sum(x: Any) -> Tensor:
            return SequenceExpandAs(SequencePool(x, op.offsets, pooltype="SUM"), offsets=op.offsets)

        dy = ddx * (op.dy - sequence_sum(op.dy * op.y)) - op.dy * sequence_sum(ddx * op.y)
        return SequenceSoftmaxGrad(ddx, op.y, op.offsets), dy, None


def _check_steps(shape: Any) -> None:
    if len(shape) == 2 and shape[1] not in (1, None):
        raise InvalidArgumentError(
            what="a step has more than one number", found=f"shape {list(shape)}", wanted="shape [rows] or [rows, 1]"
        )


@documented_by(SequenceSoftmax)
def softmax(x: Any, name: str | None = None) -> Tensor:
    """Compute softmax within each sequence.

    >>> ow.sequence.softmax(ow.LoDTensor([1000.0, 1000.0, -3.0], [[0, 2, 3]])).to_nested()
    [[0.5, 0.5], [1.0]]
    """
    return SequenceSoftmax(x, name=name)
