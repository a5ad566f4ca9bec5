"""Framing of signals; window functions.

Lives here: Frame and OverlapAndAdd, gradients of each other, and their functions; hann_window, hamming_window,
kaiser_window, kaiser_bessel_derived_window, vorbis_window.
Not here: transforms of frames (spectra.py).

Windows of 16-bit floats are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, as_dtype, index, numeric
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN
from .. import array, dispatch, like_device, lod_propagation
from ..accumulation import widened
from ..array import run_time_axes
from ..attributes import Attr
from ..definition import operator
from ..math.arithmetic import maximum
from ..math.bessel import bessel_i0e
from ..math.cumulative import cumsum
from ..math.elementary import cos, exp, sin, sqrt, square
from ..math.reduction import Sum
from ..registry import documented_by
from ..shape_inference import axis_in, is_static, static_int
from ..slots import Input, OperatorDefinition, Output
from .fourier import crop_or_pad

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..tensor import Tensor


def _window_arguments(window_length: Any, dtype: Any) -> tuple[Any, DType, DType]:
    """Return the length, an int if it is known; the dtype; and the dtype of the computation."""
    dtype = as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {dtype}")
    length = dispatch.to_tensor(window_length, dtypes.int32)
    if length.shape.rank not in (0, None):
        raise ValueError(f"window_length is a scalar; found one of shape {length.shape}")
    constant = length.constant
    return (length if constant is None else int(constant)), dtype, dtypes.float32 if dtype.size < 4 else dtype


def _samples(length: Any, dtype: DType) -> Tensor:
    """Return the numbers 0 to length - 1."""
    return array.cast(array.range(length), dtype)


def _scalar(value: Any, dtype: DType) -> Tensor:
    return array.cast(value, dtype) if hasattr(value, "dtype") else dispatch.to_tensor(value, dtype)


def _handle_length_one(window: Tensor, length: Any) -> Tensor:
    """Return a window, or 1 if the length is one at run time."""
    return window if isinstance(length, int) else array.where(length == 1, array.ones_like(window), window)


def _raised_cosine(
    window_length: Any, periodic: Any, dtype: Any, base: float, amplitude: float, name: str | None
) -> Tensor:
    length, dtype, compute_dtype = _window_arguments(window_length, dtype)
    if isinstance(length, int) and length == 1:
        return array.ones([1], dtype, name=name)
    even = 1 - length % 2
    is_periodic = (
        int(periodic) if isinstance(periodic, bool) else array.cast(dispatch.to_tensor(periodic), dtypes.int32)
    )
    period = _scalar(length + is_periodic * even - 1, compute_dtype)
    angle = _samples(length, compute_dtype) * (2 * math.pi) / maximum(period, _scalar(1, compute_dtype))
    return array.cast(_handle_length_one(base - amplitude * cos(angle), length), dtype, name=name)


def hann_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Return the Hann window, [window_length]; 1 for a single sample.

    .. math:: w_n = \\frac{1}{2} - \\frac{1}{2} \\cos(2 \\pi n / N)

    periodic: N is the length if it is even, as spectral analysis requires; otherwise the length minus 1.
    raises ValueError for a dtype that is not floating, or a length that is not a scalar
    """
    return _raised_cosine(window_length, periodic, dtype, 0.5, 0.5, name)


def hamming_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Return the Hamming window, [window_length]; 1 for a single sample. periodic, errors: as in `hann_window`.

    .. math:: w_n = 0.54 - 0.46 \\cos(2 \\pi n / N)
    """
    return _raised_cosine(window_length, periodic, dtype, 0.54, 0.46, name)


def kaiser_window(window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Return the Kaiser window, [window_length]; 1 for a single sample.

    .. math:: w_n = I_0\\left(\\beta \\sqrt{1 - \\left(\\frac{2 n}{N - 1} - 1\\right)^2}\\right) / I_0(\\beta)

    beta: the shape parameter; larger values narrow the window. raises ValueError as `hann_window` does
    """
    length, dtype, compute_dtype = _window_arguments(window_length, dtype)
    if isinstance(length, int) and length == 1:
        return array.ones([1], dtype, name=name)
    middle = (_scalar(length, compute_dtype) - 1) / 2
    position = (_samples(length, compute_dtype) - middle) / maximum(middle, _scalar(0.5, compute_dtype))
    beta = _scalar(beta, compute_dtype)
    x = beta * sqrt(maximum(1 - square(position), _scalar(0, compute_dtype)))
    window = exp(x - beta) * (bessel_i0e(x) / bessel_i0e(beta))
    return array.cast(_handle_length_one(window, length), dtype, name=name)


def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Return the Kaiser-Bessel-derived window: symmetric square roots of cumulative sums of a Kaiser window.

    .. math:: w_n = \\sqrt{\\sum_{j=0}^n k_j / \\sum_{j=0}^{N/2} k_j}, \\quad w_{N-1-n} = w_n

    k: the Kaiser window of half the length. Shape: [window_length], minus 1 for an odd length. beta, errors: as in
    `kaiser_window`.
    """
    length, dtype, compute_dtype = _window_arguments(window_length, dtype)
    sums = cumsum(kaiser_window(length // 2 + 1, beta, compute_dtype))
    rising = sqrt(sums[:-1] / sums[-1])
    return array.cast(array.concat([rising, array.reverse(rising, [0])], 0), dtype, name=name)


def vorbis_window(window_length: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Return the Vorbis power-complementary window, [window_length].

    .. math:: w_n = \\sin\\left(\\frac{\\pi}{2} \\sin^2\\left(\\frac{\\pi}{N} (n + \\frac{1}{2})\\right)\\right)

    raises ValueError as `hann_window` does
    """
    length, dtype, compute_dtype = _window_arguments(window_length, dtype)
    angle = (_samples(length, compute_dtype) + 0.5) * math.pi / _scalar(length, compute_dtype)
    return array.cast(sin(square(sin(angle)) * (math.pi / 2)), dtype, name=name)


def _static_scalar(x: Any, name: str, minimum: int) -> int | None:
    """Return the value of a scalar input if it is known. Raises InvalidArgumentError below `minimum`."""
    if x.constant is None:
        return None
    value = int(x.constant)
    if value < minimum:
        raise InvalidArgumentError(what=f"{name} is too small", found=value, wanted=f"at least {minimum}")
    return value


def _frames(n: int | None, length: int | None, step: int | None, padded: bool) -> int | None:
    """Return the number of frames of n samples."""
    if n is None or step is None or (length is None and not padded):
        return None
    return -(-n // step) if padded or length is None else max(0, (n - length + step) // step)


@operator
class Frame(OperatorDefinition):
    """Split one dimension into frames, which overlap if frame_step is less than frame_length.

    .. math:: output_{f, j} = signal_{f \\cdot frame\\_step + j}

    signal: [..., n, ...]; output: [..., frames, frame_length, ...]. Without pad_value, frames are inside the signal:
    (n - frame_length) / frame_step + 1, rounded down; with it, they begin inside the signal and are padded at its end.
    axis: the dimension to split.
    raises InvalidArgumentError for a scalar, an axis out of range, a frame_step below 1 or a frame_length below 0
    """

    signal = Input()
    frame_length = Input(index, rank=0)
    frame_step = Input(index, rank=0)
    pad_value = Input(like="signal", rank=0, optional=True)
    output = Output(like="signal")
    axis = Attr(int, default=-1)
    no_need_buffer = ("signal", "pad_value")
    lod = lod_propagation.along("axis", "signal")

    def infer(op) -> TensorSpec:
        spec, length = op.signal.spec, _static_scalar(op.frame_length, "frame_length", 0)
        step = _static_scalar(op.frame_step, "frame_step", 1)
        if spec.shape.dims is None:
            return spec.with_shape(UNKNOWN)
        if not spec.shape.dims:
            raise InvalidArgumentError(what="a scalar cannot be framed", found=spec.short(), wanted="rank 1 or more")
        axis, dims = axis_in(op.axis, len(spec.shape.dims)), spec.shape.dims
        frames = _frames(dims[axis], length, step, op.pad_value is not None)
        return spec.with_shape([*dims[:axis], frames, length, *dims[axis + 1 :]])

    def compute(op, signal: Any, frame_length: Any, frame_step: Any, pad_value: Any) -> np.ndarray:
        length, step, axis = int(frame_length), int(frame_step), op.axis % signal.ndim
        if length < 0 or step < 1:
            raise InvalidArgumentError(what="frame_length or frame_step is too small", found=(length, step))
        n = signal.shape[axis]
        frames = _frames(n, length, step, pad_value is not None) or 0
        x, missing = np.moveaxis(signal, axis, -1), (frames - 1) * step + length - n
        if frames and missing > 0:
            x = np.concatenate([x, like_device.full(x, (*x.shape[:-1], missing), pad_value, x.dtype)], -1)
        indices = like_device.arange(x, frames)[:, None] * step + like_device.arange(x, length)
        return np.moveaxis(x[..., indices], (-2, -1), (axis, axis + 1))

    def gradient(op, doutput: Any) -> tuple[Any, None, None, Tensor | None]:
        dsignal = OverlapAndAdd(doutput, op.frame_step, axis=op.axis)
        dpad = None
        if op.pad_value is not None:
            is_padding = Frame(
                array.zeros_like(op.signal), op.frame_length, op.frame_step, array.ones_like(op.pad_value), axis=op.axis
            )
            dpad = Sum(doutput * is_padding)
        return crop_or_pad(dsignal, op.signal), None, None, dpad


@operator
class OverlapAndAdd(OperatorDefinition):
    """Reconstruct a signal from frames, adding overlapping ones.

    .. math:: output_t = \\sum_{f, j : f \\cdot frame\\_step + j = t} signal_{f, j}

    signal: [..., frames, frame_length, ...]; output: [..., (frames - 1) frame_step + frame_length, ...].
    axis: the reconstructed dimension of the output. 16-bit floats are accumulated in float32.
    raises InvalidArgumentError for a rank below 2, an axis out of range or a frame_step below 1
    """

    signal = Input(numeric)
    frame_step = Input(index, rank=0)
    output = Output(like="signal")
    axis = Attr(int, default=-1)
    no_need_buffer = ("signal",)
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        spec, step = op.signal.spec, _static_scalar(op.frame_step, "frame_step", 1)
        if spec.shape.dims is None:
            return spec.with_shape(UNKNOWN)
        dims = spec.shape.dims
        if len(dims) < 2:
            raise InvalidArgumentError(what=f"Shape {spec.shape} must have rank at least 2", found=spec.short())
        axis = axis_in(op.axis, len(dims) - 1)
        frames, length = dims[axis : axis + 2]
        n = None
        if frames is not None and length is not None and step is not None:
            n = max(0, (frames - 1) * step + length)
        return spec.with_shape([*dims[:axis], n, *dims[axis + 2 :]])

    def compute(op, signal: Any, frame_step: Any) -> np.ndarray:
        step, axis = int(frame_step), op.axis % (signal.ndim - 1)
        if step < 1:
            raise InvalidArgumentError(what="frame_step is too small", found=step, wanted="at least 1")
        x = np.moveaxis(widened(signal), (axis, axis + 1), (-2, -1))
        frames, length = x.shape[-2:]
        n, pieces = max(0, (frames - 1) * step + length), -(-length // step)
        rows = like_device.zeros(x, (*x.shape[:-2], max(frames + pieces - 1, -(-n // step)), step), x.dtype)
        for i in range(pieces):  # piece i of each frame, of frame_step samples, is added i rows later
            piece = x[..., i * step : (i + 1) * step]
            rows[..., i : i + frames, : piece.shape[-1]] += piece
        output = rows.reshape(*x.shape[:-2], rows.shape[-2] * step)[..., :n]
        return np.moveaxis(output, -1, axis).astype(signal.dtype, copy=False)

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        length_axis = op.axis + 1 if op.axis >= 0 else op.axis
        length = array.shape_op(op.signal)[length_axis]
        return crop_or_pad(Frame(doutput, length, op.frame_step, None, axis=op.axis), op.signal), None


@documented_by(Frame)
def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: Any = -1,
    name: str | None = None,
) -> Tensor:
    """Split a signal into frames. pad_end: whether frames may extend beyond the end, filled with pad_value."""
    signal = dispatch.to_tensor(signal)
    pad = dispatch.to_tensor(pad_value, signal.dtype) if pad_end else None
    length, step = dispatch.to_tensor(frame_length), dispatch.to_tensor(frame_step)
    if not is_static(axis):
        return run_time_axes.replace_axes(
            lambda x: Frame(x, length, step, pad, axis=0), signal, axis, after=2, name=name
        )
    return Frame(signal, length, step, pad, axis=static_int(axis, "axis"), name=name)


@documented_by(OverlapAndAdd)
def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """Reconstruct a signal from its frames, adding where they overlap."""
    return OverlapAndAdd(signal, dispatch.to_tensor(frame_step), name=name)


def crop_or_pad_last(x: Tensor, n: Any) -> Tensor:
    """Crop the last dimension of x, or pad it with zeros, to n, an int or a scalar tensor."""
    dims = x.shape.dims
    size = dims[-1] if dims else None
    if isinstance(n, int) and dims and size is not None:
        if n <= size:
            return x if n == size else array.getitem(x, (..., slice(None, n)))
        return array.pad(x, [[0, 0]] * (len(dims) - 1) + [[0, n - size]])
    x = array.getitem(x, (..., slice(None, n)))
    n = array.cast(n, dtypes.int32)
    missing = array.stack([0, n - array.shape_op(x)[-1]])
    before = array.zeros(array.stack([array.rank(x) - 1, 2]), dtypes.int32)
    return array.pad(x, array.concat([before, array.expand_dims(missing, 0)], 0))
