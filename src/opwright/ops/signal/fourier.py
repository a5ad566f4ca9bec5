"""Discrete Fourier transforms over the last dimensions.

Lives here: FFT, IFFT, RFFT, IRFFT of one, two and three dimensions, and their functions.
Not here: transforms over chosen axes, shifts (fourier_nd.py); functions over transforms (spectra.py).

Gradients of complex numbers are as in math/complex_numbers.py: the gradient of a linear map is its adjoint. The adjoint
of a Fourier transform is its inverse times n; for real transforms, frequencies that represent a conjugate pair count
twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, complexes
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device, lod_propagation
from ..definition import operator
from ..math.arithmetic import maximum, minimum
from ..math.complex_numbers import COMPLEX_OF
from ..math.reduction import Prod
from ..registry import documented_by
from ..shape_inference import elements_of
from ..slots import Input, Output

if TYPE_CHECKING:
    from .. import signatures
    from ..definition import Operator
    from ..tensor import Tensor

REALS = (dtypes.float32, dtypes.float64)
Dims = list["int | None"]


# ---- common parts of the operators ----------------------------------------------------------------------------------


def transform(
    kind: str, x: np.ndarray, lengths: list[int], axes: list[int], shape: list[int], dtype: Any
) -> np.ndarray:
    """Compute NumPy's transform `kind` of x, cropped or padded to lengths; for empty arrays, return zeros."""
    if x.size == 0 or 0 in lengths:
        return like_device.zeros(x, shape, dtype)
    spectrum: np.ndarray = getattr(np.fft, kind)(x, lengths, axes)
    return spectrum.astype(dtype, copy=False)


def half(n: int | None) -> int | None:
    """Return the number of frequencies of n real samples that are not conjugates of others."""
    return None if n is None else n // 2 + 1 if n else 0


def length_elements(fft_length: Any, rank: int | None) -> Dims | None:
    """Return the static elements of fft_length. Raises InvalidArgumentError for another number, or negative sizes."""
    shape = fft_length.spec.shape
    if shape.rank not in (1, None) or (rank is not None and shape.rank == 1 and shape[0] not in (rank, None)):
        raise InvalidArgumentError(
            what=f"fft_length must have shape [{'?' if rank is None else rank}]", found=fft_length.spec.short()
        )
    sizes = elements_of(fft_length)
    if sizes is not None and any(n is not None and n < 0 for n in sizes):
        raise InvalidArgumentError(what="fft_length must be at least 0", found=sizes)
    if sizes is None and rank is not None:
        unknown: Dims = [None] * rank
        return unknown
    return sizes


def crop_or_pad(x: Tensor, like: Any) -> Tensor:
    """Crop x, or pad it with zeros, at the ends of its dimensions to the shape of `like`."""
    if x.shape.is_fully_defined() and x.shape == like.shape:
        return x
    sizes, new_sizes = array.shape_op(x), array.shape_op(like)
    common = minimum(sizes, new_sizes)
    paddings = array.stack([array.zeros_like(common), maximum(new_sizes - common, 0)], 1)
    return array.pad(array.slice(x, array.zeros_like(common), common), paddings)


def size_product(sizes: Any, dtype: DType) -> Tensor:
    """Return the product of sizes, as a number of dtype."""
    return array.cast(Prod(sizes, axis=None), dtype)


def conjugate_weights(n: Any, dtype: DType) -> Tensor:
    """Return [n // 2 + 1] weights: 1 for the frequencies 0 and n / 2, 1/2 for the others (conjugate pairs)."""
    k = array.range(n // 2 + 1)
    is_self_conjugate = (k == 0) | (k * 2 == n)
    return array.where(is_self_conjugate, array.ones([], dtype), array.ones([], dtype) * 0.5)


def check_min_rank(spec: TensorSpec, rank: int) -> None:
    """Raise InvalidArgumentError for a rank known to be lower than `rank`."""
    if spec.shape.rank is not None and spec.shape.rank < rank:
        raise InvalidArgumentError(
            what=f"Input must have rank of at least {rank} but got: {spec.shape}", found=spec.short()
        )


# ---- the operators --------------------------------------------------------------------------------------------------

_BY_NAME: dict[str, Any] = {}
_EXPONENT = "\\sum_i k_i j_i / n_i"


def _define_complex(name: str, inverse: bool, rank: int) -> Operator:
    """Define FFT or IFFT over the last `rank` dimensions."""
    kind, other = ("ifftn", name[1:]) if inverse else ("fftn", f"I{name}")
    axes = list(range(-rank, 0))

    class ComplexTransform:
        input = Input(complexes)
        output = Output(like="input")
        lod = lod_propagation.batched("input", rank)

        def infer(op) -> TensorSpec:
            check_min_rank(op.input.spec, rank)
            return op.input.spec

        def compute(op, input: Any) -> np.ndarray:
            return transform(kind, input, list(input.shape[-rank:]), axes, list(input.shape), input.dtype)

        def gradient(op, doutput: Any) -> Tensor:
            n = size_product(array.shape_op(doutput)[-rank:], doutput.dtype)
            dinput: Tensor = _BY_NAME[other](doutput)
            return dinput / n if inverse else dinput * n

    direction = "inverse discrete" if inverse else "discrete"
    scale, sign = ("\\frac{1}{\\prod_i n_i} ", "") if inverse else ("", "-")
    ComplexTransform.__doc__ = f"""Compute the {direction} Fourier transform over the last {_dimensions(rank)}.

    .. math:: output_k = {scale}\\sum_j input_j e^{{{sign}2 \\pi i {_EXPONENT}}}

    input: complex, of rank {rank} or more; output: of its shape.
    raises InvalidArgumentError for a lower rank
    """
    op = operator(name=name)(ComplexTransform)
    _BY_NAME[name] = op
    return op


def _dimensions(rank: int) -> str:
    return "dimension" if rank == 1 else f"{rank} dimensions"


def _define_real(name: str, rank: int) -> Operator:
    """Define RFFT over the last `rank` dimensions."""
    axes = list(range(-rank, 0))

    class RealTransform:
        input = Input(REALS)
        fft_length = Input(dtypes.int32)
        output = Output()
        no_need_buffer = ("input",)
        lod = lod_propagation.batched("input", rank)

        def infer(op) -> TensorSpec:
            spec, lengths = op.input.spec, length_elements(op.fft_length, rank)
            check_min_rank(spec, rank)
            if spec.shape.dims is None or lengths is None:
                return TensorSpec(UNKNOWN, COMPLEX_OF[spec.dtype])
            return TensorSpec([*spec.shape[:-rank], *lengths[:-1], half(lengths[-1])], COMPLEX_OF[spec.dtype])

        def compute(op, input: Any, fft_length: Any) -> np.ndarray:
            lengths = fft_length.tolist()
            shape = [*input.shape[:-rank], *lengths[:-1], half(lengths[-1])]
            return transform("rfftn", input, lengths, axes, shape, np.result_type(input.dtype, np.complex64))

        def gradient(op, doutput: Any) -> tuple[Any, None]:
            real = op.input.dtype
            weight = array.cast(conjugate_weights(op.fft_length[-1], real), doutput.dtype)
            dinput = _BY_NAME[f"I{name}"](doutput * weight, op.fft_length)
            return crop_or_pad(dinput * size_product(op.fft_length, real), op.input), None

    RealTransform.__doc__ = f"""Compute the Fourier transform of real numbers over the last {_dimensions(rank)}.

    .. math:: output_k = \\sum_j input_j e^{{-2 \\pi i {_EXPONENT}}}

    Returns n / 2 + 1 of n frequencies of the last dimension; the others are their conjugates.
    input: of rank {rank} or more; fft_length: [{rank}], the n_i, to which input is cropped or padded with zeros.
    raises InvalidArgumentError for a lower rank, or an fft_length of another size
    """
    op = operator(name=name)(RealTransform)
    _BY_NAME[name] = op
    return op


def _define_inverse_real(name: str, rank: int) -> Operator:
    """Define IRFFT over the last `rank` dimensions."""
    axes = list(range(-rank, 0))

    class InverseRealTransform:
        input = Input(complexes)
        fft_length = Input(dtypes.int32)
        output = Output()
        no_need_buffer = ("input",)
        lod = lod_propagation.batched("input", rank)

        def infer(op) -> TensorSpec:
            spec, lengths = op.input.spec, length_elements(op.fft_length, rank)
            check_min_rank(spec, rank)
            if spec.shape.dims is None or lengths is None:
                return TensorSpec(UNKNOWN, spec.dtype.real_dtype)
            return TensorSpec([*spec.shape[:-rank], *lengths], spec.dtype.real_dtype)

        def compute(op, input: Any, fft_length: Any) -> np.ndarray:
            lengths = fft_length.tolist()
            shape = [*input.shape[:-rank], *lengths]
            return transform("irfftn", input, lengths, axes, shape, input.real.dtype)

        def gradient(op, doutput: Any) -> tuple[Any, None]:
            real = doutput.dtype
            weight = 1 / (conjugate_weights(op.fft_length[-1], real) * size_product(op.fft_length, real))
            dinput = _BY_NAME[name[1:]](doutput, op.fft_length) * array.cast(weight, op.input.dtype)
            return crop_or_pad(dinput, op.input), None

    InverseRealTransform.__doc__ = f"""Compute the inverse real Fourier transform over the last {_dimensions(rank)}.

    .. math:: output_j = \\frac{{1}}{{\\prod_i n_i}} \\sum_k input_k e^{{2 \\pi i {_EXPONENT}}}

    Reads n / 2 + 1 frequencies of the last dimension; the others are assumed to be their conjugates.
    input: of rank {rank} or more; fft_length: [{rank}], the n_i, the sizes of output, to which input is cropped or
    padded.
    raises InvalidArgumentError for a lower rank, or an fft_length of another size
    """
    op = operator(name=name)(InverseRealTransform)
    _BY_NAME[name] = op
    return op


FFT, FFT2D, FFT3D = (
    _define_complex("FFT", False, 1),
    _define_complex("FFT2D", False, 2),
    _define_complex("FFT3D", False, 3),
)
IFFT, IFFT2D, IFFT3D = (
    _define_complex("IFFT", True, 1),
    _define_complex("IFFT2D", True, 2),
    _define_complex("IFFT3D", True, 3),
)
RFFT, RFFT2D, RFFT3D = _define_real("RFFT", 1), _define_real("RFFT2D", 2), _define_real("RFFT3D", 3)
IRFFT, IRFFT2D, IRFFT3D = (
    _define_inverse_real("IRFFT", 1),
    _define_inverse_real("IRFFT2D", 2),
    _define_inverse_real("IRFFT3D", 3),
)

fft: signatures.FFT = FFT.as_function("fft")
fft2d: signatures.FFT2D = FFT2D.as_function("fft2d")
fft3d: signatures.FFT3D = FFT3D.as_function("fft3d")
ifft: signatures.IFFT = IFFT.as_function("ifft")
ifft2d: signatures.IFFT2D = IFFT2D.as_function("ifft2d")
ifft3d: signatures.IFFT3D = IFFT3D.as_function("ifft3d")


# ---- functions with default lengths ---------------------------------------------------------------------------------


def to_tensor_with_default(value: Any, dtype: DType) -> Tensor:
    """Convert a value to a tensor; Python integers become `dtype`."""
    tensor = dispatch.to_tensor(value)
    if hasattr(value, "dtype") or tensor.dtype in (*REALS, *complexes):
        return tensor
    return dispatch.to_tensor(value, dtype)


def sizes_of(x: Any, rank: int) -> list[Any]:
    """Return the last `rank` sizes: numbers if they are all known, else scalar tensors."""
    dims = x.shape.dims
    if dims is not None and len(dims) >= rank and None not in dims[-rank:]:
        return list(dims[-rank:])
    shape = array.shape_op(x)
    return [shape[i - rank] for i in range(rank)]


def full_length(n: Any) -> int | Tensor:
    """Return the even number of real samples that n frequencies represent."""
    return max(0, 2 * (n - 1)) if isinstance(n, int) else maximum(0, 2 * (n - 1))


def _forward(op: Any, input_tensor: Any, fft_length: Any, rank: int, name: str | None) -> Tensor:
    x = to_tensor_with_default(input_tensor, dtypes.float32)
    if fft_length is None:
        op.check_dtypes([x.dtype, dtypes.int32], name)
        check_min_rank(x.spec, rank)
        fft_length = sizes_of(x, rank)
    output: Tensor = op(x, dispatch.to_tensor(fft_length, dtypes.int32), name=name)
    return output


def _backward(op: Any, input_tensor: Any, fft_length: Any, rank: int, name: str | None) -> Tensor:
    x = to_tensor_with_default(input_tensor, dtypes.complex64)
    if fft_length is None:
        check_min_rank(x.spec, rank)
        *others, last = sizes_of(x, rank)
        fft_length = [*others, full_length(last)]
    output: Tensor = op(x, dispatch.to_tensor(fft_length, dtypes.int32), name=name)
    return output


@documented_by(RFFT)
def rfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Compute the real Fourier transform. fft_length: by default the size of the last dimension."""
    return _forward(RFFT, input_tensor, fft_length, 1, name)


@documented_by(RFFT2D)
def rfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Compute the 2-D real Fourier transform. fft_length: by default the sizes of the last two dimensions."""
    return _forward(RFFT2D, input_tensor, fft_length, 2, name)


@documented_by(RFFT3D)
def rfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Compute the 3-D real Fourier transform. fft_length: by default the sizes of the last three dimensions."""
    return _forward(RFFT3D, input_tensor, fft_length, 3, name)


@documented_by(IRFFT)
def irfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Compute the inverse real Fourier transform.

    fft_length: by default 2 (n - 1) for n frequencies; odd lengths must be given.
    """
    return _backward(IRFFT, input_tensor, fft_length, 1, name)


@documented_by(IRFFT2D)
def irfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Compute the inverse 2-D real Fourier transform.

    fft_length: by default the sizes of the last dimensions, for the last one as in `irfft`.
    """
    return _backward(IRFFT2D, input_tensor, fft_length, 2, name)


@documented_by(IRFFT3D)
def irfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Compute the inverse 3-D real Fourier transform.

    fft_length: by default the sizes of the last dimensions, for the last one as in `irfft`.
    """
    return _backward(IRFFT3D, input_tensor, fft_length, 3, name)
