"""Discrete Fourier transforms over chosen axes; the zero frequency shifted to the middle and back.

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
from .. import array, dispatch, lod_rules
from ..array import run_time_axes
from ..attributes import Attr
from ..definition import operator
from ..inference import axes_in, is_static, static_axes
from ..math.elementary import sqrt
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from .fourier import (
    COMPLEX_OF,
    REALS,
    count,
    fitted,
    full_length,
    half,
    length_elements,
    preferably,
    shares,
    transformed,
)

if TYPE_CHECKING:
    from ...core.shapes import TensorShape
    from ..tensor import Tensor


def _dims(op: Any, halved: bool = False) -> TensorShape | list[Any]:
    """The dimensions of the result; halved: of the last of axes about half."""
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
    """A vector along the last of axes, so that it multiplies the input's frequencies there."""
    axis = op.axes[-1]
    behind = -axis - 1 if axis < 0 else array.rank(op.input) - axis - 1
    ones = array.fill(array.reshape(behind, [1]), dispatch.to_tensor(1, dtypes.int32))
    return array.reshape(vector, array.concat([[-1], ones], 0))


@operator
class FFTND(OperatorDefinition):
    """Discrete Fourier transform over chosen axes.

    .. math:: output_k = \\sum_j input_j e^{-2 \\pi i \\sum_a k_a j_a / n_a}

    fft_length: the n_a, the sizes to which input is cut or padded with zeros, one for each of axes.
    raises InvalidArgumentError for axes out of range or given twice, or as many lengths as there are not axes
    """

    input = Input(complexes)
    fft_length = Input(dtypes.int32)
    output = Output(like="input")
    axes = Attr([int])
    no_need_buffer = ("input",)
    lod = lod_rules.along("axes", "input")

    def infer(op) -> TensorSpec:
        return op.input.spec.with_shape(_dims(op))

    def compute(op, input: Any, fft_length: Any) -> Any:
        n = fft_length.tolist()
        return transformed("fftn", input, n, list(op.axes), _shape(op, input, n), input.dtype)

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        n = count(op.fft_length, doutput.dtype)
        return fitted(IFFTND(doutput, op.fft_length, axes=op.axes) * n, op.input), None


@operator
class IFFTND(OperatorDefinition):
    """Inverse discrete Fourier transform over chosen axes.

    .. math:: output_j = \\frac{1}{\\prod_a n_a} \\sum_k input_k e^{2 \\pi i \\sum_a k_a j_a / n_a}

    fft_length, axes: as in FFTND.
    raises InvalidArgumentError as FFTND does
    """

    input = Input(complexes)
    fft_length = Input(dtypes.int32)
    output = Output(like="input")
    axes = Attr([int])
    no_need_buffer = ("input",)
    lod = lod_rules.along("axes", "input")

    def infer(op) -> TensorSpec:
        return op.input.spec.with_shape(_dims(op))

    def compute(op, input: Any, fft_length: Any) -> Any:
        n = fft_length.tolist()
        return transformed("ifftn", input, n, list(op.axes), _shape(op, input, n), input.dtype)

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        n = count(op.fft_length, doutput.dtype)
        return fitted(FFTND(doutput, op.fft_length, axes=op.axes) / n, op.input), None


@operator
class RFFTND(OperatorDefinition):
    """Discrete Fourier transform of real numbers over chosen axes.

    .. math:: output_k = \\sum_j input_j e^{-2 \\pi i \\sum_a k_a j_a / n_a}

    Of the last of axes n / 2 + 1 frequencies are given: the others are the conjugates of these.
    fft_length, axes: as in FFTND.
    raises InvalidArgumentError as FFTND does
    """

    input = Input(REALS)
    fft_length = Input(dtypes.int32)
    output = Output()
    axes = Attr([int])
    no_need_buffer = ("input", "output")
    lod = lod_rules.along("axes", "input")

    def infer(op) -> TensorSpec:
        return TensorSpec(_dims(op, halved=True), COMPLEX_OF[op.input.spec.dtype])

    def compute(op, input: Any, fft_length: Any) -> Any:
        n = fft_length.tolist()
        dtype = np.result_type(input.dtype, np.complex64)
        return transformed("rfftn", input, n, list(op.axes), _shape(op, input, n, halved=True), dtype)

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        real = op.input.dtype
        weight = _along(array.cast(shares(op.fft_length[-1], real), doutput.dtype), op)
        dinput = IRFFTND(doutput * weight, op.fft_length, axes=op.axes) * count(op.fft_length, real)
        return fitted(dinput, op.input), None


@operator
class IRFFTND(OperatorDefinition):
    """Inverse of the discrete Fourier transform of real numbers, over chosen axes.

    .. math:: output_j = \\frac{1}{\\prod_a n_a} \\sum_k input_k e^{2 \\pi i \\sum_a k_a j_a / n_a}

    Of the last of axes n / 2 + 1 frequencies are looked at: the others are taken to be the conjugates of these.
    fft_length: the sizes of output along axes.
    raises InvalidArgumentError as FFTND does
    """

    input = Input(complexes)
    fft_length = Input(dtypes.int32)
    output = Output()
    axes = Attr([int])
    no_need_buffer = ("input", "output")
    lod = lod_rules.along("axes", "input")

    def infer(op) -> TensorSpec:
        return TensorSpec(_dims(op), op.input.spec.dtype.real_dtype)

    def compute(op, input: Any, fft_length: Any) -> Any:
        n = fft_length.tolist()
        return transformed("irfftn", input, n, list(op.axes), _shape(op, input, n), input.real.dtype)

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        real = doutput.dtype
        weight = 1 / (shares(op.fft_length[-1], real) * count(op.fft_length, real))
        dinput = RFFTND(doutput, op.fft_length, axes=op.axes)
        return fitted(dinput * _along(array.cast(weight, dinput.dtype), op), op.input), None


def _called(op: Any, input_tensor: Any, fft_length: Any, axes: Any, norm: Any, name: str | None, real_in: bool) -> Any:
    """The call with its defaults filled in, then scaled as norm says."""
    function = op.name.lower()
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"{function}: norm is one of None, 'backward', 'ortho', 'forward'; found {norm!r}")
    x = preferably(input_tensor, dtypes.float32 if real_in else dtypes.complex64)
    chosen = static_axes(axes, "axes")
    if chosen is None:
        if x.shape.rank is None:
            raise TypeError(f"{function}: the rank must be known while tracing, or axes be given")
        chosen = tuple(range(x.shape.rank))
    if fft_length is None:
        shape = array.shape_op(x)
        dims = x.shape.dims
        fft_length = [shape[a] if dims is None or dims[a] is None else dims[a] for a in _from_front(chosen, x)]
        if op is IRFFTND and fft_length:
            fft_length[-1] = full_length(fft_length[-1])
    length = dispatch.to_tensor(fft_length, dtypes.int32)
    scaled = norm in ("ortho", "forward")
    result = op(x, length, axes=chosen, name=None if scaled else name)
    if not scaled:
        return result
    scale = count(length, result.dtype.real_dtype if result.dtype.is_complex else result.dtype)
    scale = sqrt(scale) if norm == "ortho" else scale
    scale = array.cast(scale, result.dtype)
    return array.identity(result / scale if op in (FFTND, RFFTND) else result * scale, name=name)


def _from_front(axes: tuple[int, ...], x: Any) -> tuple[int, ...]:
    """The axes from the front, as far as that can be said."""
    return axes if x.shape.rank is None else axes_in(axes, x.shape.rank)


@documented_by(FFTND)
def fftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: Any = None, name: str | None = None
) -> Any:
    """Compute the Fourier transform over any axes. axes: None for all; fft_length: by default the sizes of the
    axes.

    norm: None or "backward" as it is; "ortho" divided by the root of the product of fft_length, "forward" by it.
    """
    return _called(FFTND, input_tensor, fft_length, axes, norm, name, real_in=False)


@documented_by(IFFTND)
def ifftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: Any = None, name: str | None = None
) -> Any:
    """Compute the inverse Fourier transform over any axes. axes, fft_length: as in `fftnd`. norm: that of the
    forward transform.
    """
    return _called(IFFTND, input_tensor, fft_length, axes, norm, name, real_in=False)


@documented_by(RFFTND)
def rfftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: Any = None, name: str | None = None
) -> Any:
    """Compute the real Fourier transform over any axes. axes, fft_length, norm: as in `fftnd`."""
    return _called(RFFTND, input_tensor, fft_length, axes, norm, name, real_in=True)


@documented_by(IRFFTND)
def irfftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: Any = None, name: str | None = None
) -> Any:
    """Compute the inverse real Fourier transform over any axes.

    axes: as in `fftnd`; fft_length: by default the sizes of the axes, 2 (n - 1) for the last.

    norm: what undoes `rfftnd` with the same.
    """
    return _called(IRFFTND, input_tensor, fft_length, axes, norm, name, real_in=False)


def _shifted(function: str, x: Any, axes: Any, sign: int, name: str | None) -> Tensor:
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
    """Numbers of axes as positions in the shape."""
    if x.shape.rank is not None:
        return [a + x.shape.rank if a < 0 else a for a in axes]
    return array.stack([array.rank(x) + a if a < 0 else a for a in axes])


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Each axis rolled by half its size, so that the frequency 0, which comes first, comes in the middle.

    axes: an int, several, or None for all of them. See Roll.

    .. math:: output_{(i + \\lfloor n / 2 \\rfloor) \\bmod n} = x_i
    """
    return _shifted("fftshift", x, axes, 1, name)


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """What undoes `fftshift`; for odd sizes the two differ.

    .. math:: output_i = x_{(i + \\lfloor n / 2 \\rfloor) \\bmod n}
    """
    return _shifted("ifftshift", x, axes, -1, name)
