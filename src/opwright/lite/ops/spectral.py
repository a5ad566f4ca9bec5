"""Complex numbers and Fourier transforms: REAL, IMAG, COMPLEX_ABS, RFFT2D.

Lives here: these operators; `spectrum_spec`, which lite/customs/math.py shares.
Not here: arithmetic that takes complex numbers too (elementwise.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import DType, complex64, complex128, float32, int32
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from .definition import LiteDefinition, LiteOperator, lite_operator
from .shapes import bounded, ints, refuse, same, spec, text


def part(name: str, compute: Any, formula: str) -> LiteOperator:
    """Define a real function of complex numbers, element by element."""

    def infer(op: Any) -> TensorSpec:
        result: TensorSpec = op.x.spec.with_dtype(op.x.spec.dtype.real_dtype)
        return result

    def computed(op: Any, x: np.ndarray) -> np.ndarray:
        result: np.ndarray = compute(x)
        return result

    body = {
        "__doc__": f"{name}, element by element: complex64 to float32, complex128 to float64.\n\n"
        f".. math:: y = {formula}",
        "__module__": __name__,
        "x": Input((complex64, complex128)),
        "y": Output(dtype=float32),
        "infer": infer,
        "compute": computed,
    }
    return lite_operator(name)(type(name, (), body))


PARTS = (
    ("REAL", lambda x: x.real, r"\operatorname{Re} x"),
    ("IMAG", lambda x: x.imag, r"\operatorname{Im} x"),
    ("COMPLEX_ABS", np.absolute, "|x|"),
)

for row in PARTS:
    part(*row)


def spectrum_spec(op: Any, dtype: DType, columns: Callable[[int], int]) -> TensorSpec:
    """Infer a transform over [h, w], given by the operand `fft_length`. columns: of w, the last size."""
    dims, lengths = op.x.spec.shape.dims, ints(op.fft_length)
    if not same(op.fft_length.spec.shape[0], 2):
        raise refuse("fft_length is not two numbers", found=text(op.fft_length.spec.shape), wanted="[h, w]")
    if dims is not None and len(dims) < 2:
        raise refuse("no image", found=text(dims), wanted="two dimensions or more")
    if lengths is not None and min(lengths) < 1:
        raise refuse("an fft_length is not positive", found=lengths, wanted="at least 1")
    if dims is None or lengths is None:
        return spec(None if dims is None else (*dims[:-2], None, None), dtype)
    if None not in dims:
        bounded((*dims[:-2], *lengths), complex128, "the padded image")
    return spec((*dims[:-2], lengths[0], columns(lengths[1])), dtype)


@lite_operator("RFFT2D")
class RFFT2DOp(LiteDefinition):
    """The Fourier transform of real images, in two dimensions, without the symmetric half of the last one.

    .. math:: y_{pq} = \\sum_{jk} x_{jk} e^{-2 \\pi i (j p / h + k q / w)}

    x: [..., m, n], cut or filled with zeros to [..., h, w]; fft_length: int32 [2], h and w, powers of 2;
    y: complex64 [..., h, w / 2 + 1]
    """

    x = Input((float32,))
    fft_length = Input((int32,), rank=1)
    y = Output(dtype=complex64)

    def infer(op: Any) -> TensorSpec:
        lengths = ints(op.fft_length)
        if lengths is not None and any(n < 1 or n & (n - 1) for n in lengths):
            raise refuse("an fft_length is not a power of 2", found=lengths, wanted="powers of 2")
        return spectrum_spec(op, complex64, lambda width: width // 2 + 1)

    def compute(op: Any, x: np.ndarray, fft_length: np.ndarray) -> np.ndarray:
        lengths = [int(n) for n in fft_length]
        if 0 in x.shape[-2:]:  # nothing but padding
            return np.zeros((*x.shape[:-2], lengths[0], lengths[1] // 2 + 1), np.complex64)
        return np.fft.rfft2(x.astype(np.float64), lengths).astype(np.complex64)
