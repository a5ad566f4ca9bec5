"""Discrete Fourier transforms over chosen axes; shifts of the zero frequency.

Lives here: FFTND, IFFTND, RFFTND, IRFFTND and their functions; fftshift, ifftshift.
Not here: transforms over the last dimensions (fourier.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import complexes
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from .. import array, dispatch, lod_propagation
from ..array import run_time_axes
from ..attributes import Attr
from ..definition import operator
from ..math.complex_numbers import COMPLEX_OF
from ..math.elementary import sqrt
from ..registry import documented_by
from ..shape_inference import axes_in, is_static, static_axes
from ..slots import Input, OperatorDefinition, Output
from .fourier import (
    REALS,
    conjugate_weights,
    crop_or_pad,
    full_length,
    half,
    length_elements,
    size_product,
    to_tensor_with_default,
    transform,
)

if TYPE_CHECKING:
    from ...core.shapes import TensorShape
    from ..tensor import Tensor


def _infer_dims(op: Any, halved: bool = False) -> TensorShape | list[Any]:
    """Infer the dimensions of the result. halved: the last axis has `half` of the frequencies."""
    spec, axes = op.input.spec, op.axes
    lengths = length_elements(op.fft_length, len(axes))
    assert lengths is not None
    if not axes:
        raise InvalidArgumentError(what="axes is empty", wanted="at least one axis")
    if spec.shape.dims is None:
        return UNKNOWN
    dims = list(spec.shape.dims)
    chosen = axes_in(axes, len(dims))
    for axis, n in zip(chosen, lengths):
        dims[axis] = n
    if halved:
        dims[chosen[-1]] = half(lengths[-1])
    return dims


def _shape(op: Any, input: np.ndarray, lengths: list[int], halved: bool = False) -> list[int]:
    shape = list(input.shape)
    for axis, n in zip(op.axes, lengths):
        shape[axis] = n
    if halved:
        shape[op.axes[-1]] = half(lengths[-1]) or 0
    return shape


def _along(vector: Any, op: Any) -> Tensor:
    """Reshape a vector to broadcast along the last of axes."""
    axis = op.axes[-1]
    trailing = -axis - 1 if axis < 0 else array.rank(op.input) - axis - 1
    ones = array.fill(array.reshape(trailing, [1]), dispatch.to_tensor(1, dtypes.int32))
    return array.reshape(vector, array.concat([[-1], ones], 0))


@operator
class FFTND(OperatorDefinition):
    """Compute the discrete Fourier transform over chosen axes.

    .. math:: output_k = \\sum_j input_j e^{-2 \\pi i \\sum_a k_a j_a / n_a}

    fft_length: the n_a, the sizes to which input is cropped or padded with zeros, one per axis.
    raises InvalidArgumentError for axes out of range or repeated, or a different number of lengths
    """

    input = Input(complexes)
    fft_length = Input(dtypes.int32)
    output = Output(like="input")
    axes = Attr([int])
    no_need_buffer = ("input",)
    lod = lod_propagation.along("axes", "input")

    def infer(op) -> TensorSpec:
        return op.input.spec.with_shape(_infer_dims(op))

    def compute(op, input: Any, fft_length: Any) -> np.ndarray:
        n = fft_length.tolist()
        return transform("fftn", input, n, list(op.axes), _shape(op, input, n), input.dtype)

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        n = size_product(op.fft_length, doutput.dtype)
        return crop_or_pad(IFFTND(doutput, op.fft_length, axes=op.axes) * n, op.input), None


@operator
class IFFTND(OperatorDefinition):
    """Compute the inverse discrete Fourier transform over chosen axes.

    .. math:: output_j = \\frac{1}{\\prod_a n_a} \\sum_k input_k e^{2 \\pi i \\sum_a k_a j_a / n_a}

    fft_length, axes: as in FFTND.
    raises InvalidArgumentError as FFTND does
    """

    input = Input(complexes)
    fft_length = Input(dtypes.int32)
    output = Output(like="input")
    axes = Attr([int])
    no_need_buffer = ("input",)
    lod = lod_propagation.along("axes", "input")

    def infer(op) -> TensorSpec:
        return op.input.spec.with_shape(_infer_dims(op))

    def compute(op, input: Any, fft_length: Any) -> np.ndarray:
        n = fft_length.tolist()
        return transform("ifftn", input, n, list(op.axes), _shape(op, input, n), input.dtype)

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        n = size_product(op.fft_length, doutput.dtype)
        return crop_or_pad(FFTND(doutput, op.fft_length, axes=op.axes) / n, op.input), None


@operator
class RFFTND(OperatorDefinition):
    """Compute the discrete Fourier transform of real numbers over chosen axes.

    .. math:: output_k = \\sum_j input_j e^{-2 \\pi i \\sum_a k_a j_a / n_a}

    Returns n / 2 + 1 frequencies of the last of axes; the others are their conjugates.
    fft_length, axes: as in FFTND.
    raises InvalidArgumentError as FFTND does
    """

    input = Input(REALS)
    fft_length = Input(dtypes.int32)
    output = Output()
    axes = Attr([int])
    no_need_buffer = ("input", "output")
    lod = lod_propagation.along("axes", "input")

    def infer(op) -> TensorSpec:
        return TensorSpec(_infer_dims(op, halved=True), COMPLEX_OF[op.input.spec.dtype])

    def compute(op, input: Any, fft_length: Any) -> np.ndarray:
        n = fft_length.tolist()
        dtype = np.result_type(input.dtype, np.complex64)
        return transform("rfftn", input, n, list(op.axes), _shape(op, input, n, halved=True), dtype)

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        real = op.input.dtype
        weight = _along(array.cast(conjugate_weights(op.fft_length[-1], real), doutput.dtype), op)
        dinput = IRFFTND(doutput * weight, op.fft_length, axes=op.axes) * size_product(op.fft_length, real)
        return crop_or_pad(dinput, op.input), None


@operator
class IRFFTND(OperatorDefinition):
    """Compute the inverse real Fourier transform over chosen axes.

    .. math:: output_j = \\frac{1}{\\prod_a n_a} \\sum_k input_k e^{2 \\pi i \\sum_a k_a j_a / n_a}

    Reads n / 2 + 1 frequencies of the last of axes; the others are assumed to be their conjugates.
    fft_length: the sizes of output along axes.
    raises InvalidArgumentError as FFTND does
    """

    input = Input(complexes)
    fft_length = Input(dtypes.int32)
    output = Output()
    axes = Attr([int])
    no_need_buffer = ("input", "output")
    lod = lod_propagation.along("axes", "input")

    def infer(op) -> TensorSpec:
        return TensorSpec(_infer_dims(op), op.input.spec.dtype.real_dtype)

    def compute(op, input: Any, fft_length: Any) -> np.ndarray:
        n = fft_length.tolist()
        return transform("irfftn", input, n, list(op.axes), _shape(op, input, n), input.real.dtype)

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        real = doutput.dtype
        weight = 1 / (conjugate_weights(op.fft_length[-1], real) * size_product(op.fft_length, real))
        dinput = RFFTND(doutput, op.fft_length, axes=op.axes)
        return crop_or_pad(dinput * _along(array.cast(weight, dinput.dtype), op), op.input), None


def _transform_nd(
    op: Any, input_tensor: Any, fft_length: Any, axes: Any, norm: Any, name: str | None, real_in: bool
) -> Tensor:
    """Call an operator with default axes and lengths, then scale the result according to norm."""
    function = op.name.lower()
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"{function}: norm is one of None, 'backward', 'ortho', 'forward'; found {norm!r}")
    x = to_tensor_with_default(input_tensor, dtypes.float32 if real_in else dtypes.complex64)
    chosen = static_axes(axes, "axes")
    if chosen is None:
        if x.shape.rank is None:
            raise TypeError(f"{function}: the rank must be known while tracing, or axes be given")
        chosen = tuple(range(x.shape.rank))
    if fft_length is None:
        shape = array.shape_op(x)
        dims = x.shape.dims
        fft_length = [shape[a] if dims is None or dims[a] is None else dims[a] for a in _nonnegative_axes(chosen, x)]
        if op is IRFFTND and fft_length:
            fft_length[-1] = full_length(fft_length[-1])
    length = dispatch.to_tensor(fft_length, dtypes.int32)
    scaled = norm in ("ortho", "forward")
    result: Tensor = op(x, length, axes=chosen, name=None if scaled else name)
    if not scaled:
        return result
    scale = size_product(length, result.dtype.real_dtype if result.dtype.is_complex else result.dtype)
    scale = sqrt(scale) if norm == "ortho" else scale
    scale = array.cast(scale, result.dtype)
    return array.identity(result / scale if op in (FFTND, RFFTND) else result * scale, name=name)


def _nonnegative_axes(axes: tuple[int, ...], x: Any) -> tuple[int, ...]:
    """Return nonnegative axes if the rank is known."""
    return axes if x.shape.rank is None else axes_in(axes, x.shape.rank)


@documented_by(FFTND)
def fftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: Any = None, name: str | None = None
) -> Tensor:
    """Compute the Fourier transform over any axes. axes: None for all; fft_length: by default the sizes of the
    axes.

    norm: None or "backward" for no scaling; "ortho" divides by the square root of the product of fft_length, "forward"
    by the product.
    """
    return _transform_nd(FFTND, input_tensor, fft_length, axes, norm, name, real_in=False)


@documented_by(IFFTND)
def ifftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: Any = None, name: str | None = None
) -> Tensor:
    """Compute the inverse Fourier transform over any axes. axes, fft_length: as in `fftnd`. norm: that of the
    forward transform.
    """
    return _transform_nd(IFFTND, input_tensor, fft_length, axes, norm, name, real_in=False)


@documented_by(RFFTND)
def rfftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: Any = None, name: str | None = None
) -> Tensor:
    """Compute the real Fourier transform over any axes. axes, fft_length, norm: as in `fftnd`."""
    return _transform_nd(RFFTND, input_tensor, fft_length, axes, norm, name, real_in=True)


@documented_by(IRFFTND)
def irfftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: Any = None, name: str | None = None
) -> Tensor:
    """Compute the inverse real Fourier transform over any axes.

    axes: as in `fftnd`; fft_length: by default the sizes of the axes, 2 (n - 1) for the last.

    norm: that of the forward transform.
    """
    return _transform_nd(IRFFTND, input_tensor, fft_length, axes, norm, name, real_in=False)


def _shift(function: str, x: Any, axes: Any, sign: int, name: str | None) -> Tensor:
    x = dispatch.to_tensor(x)
    if not is_static(axes):
        axes = run_time_axes.as_axes(axes, array.rank(x))
        return array.roll(x, sign * (array.gather(array.shape_op(x), axes) // 2), axes, name=name)
    chosen = static_axes(axes, "axes")
    if chosen is None:
        if x.shape.rank is None:
            raise TypeError(f"{function}: the rank must be known while tracing, or axes be given")
        chosen = tuple(range(x.shape.rank))
    if not chosen:
        return array.identity(x, name=name)
    by = sign * (array.gather(array.shape_op(x), _positions(chosen, x)) // 2)
    return array.roll(x, by, list(chosen), name=name)


def _positions(axes: tuple[int, ...], x: Any) -> list[Any] | Tensor:
    """Convert axes to positions in the shape."""
    if x.shape.rank is not None:
        return [a + x.shape.rank if a < 0 else a for a in axes]
    return array.stack([array.rank(x) + a if a < 0 else a for a in axes])


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Roll each axis by half its size, which moves the zero frequency to the center.

    .. math:: output_{(i + \\lfloor n / 2 \\rfloor) \\bmod n} = x_i

    axes: an int, several, or None for all of them.
    """
    return _shift("fftshift", x, axes, 1, name)


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Invert `fftshift`, from which it differs for odd sizes.

    .. math:: output_i = x_{(i + \\lfloor n / 2 \\rfloor) \\bmod n}

    axes: an int, several, or None for all of them.
    """
    return _shift("ifftshift", x, axes, -1, name)
