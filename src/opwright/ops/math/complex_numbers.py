"""Complex numbers and their parts; absolute value and sign of any number.

Lives here: Complex, Real, Imag, Conj, Angle, Abs, ComplexAbs, Sign.
Not here: functions of complex numbers (elementary.py).

The gradient g of a real loss L by a complex z is what gives dL = Re(conj(g) dz), as in TensorFlow; so a holomorphic f
has the gradient dy * conj(f'(z)).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, complexes, signed
from ...core.shapes import broadcast
from ...core.specs import TensorSpec
from ...scalar.table import FUNCTIONS
from .. import array, dispatch, like_device
from ..definition import operator
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor

COMPLEX_OF: dict[DType, DType] = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


def _real_spec(op: Any) -> TensorSpec:
    """Return the spec of the real numbers that correspond to `op.input`."""
    spec = op.input.spec
    result: TensorSpec = spec.with_dtype(spec.dtype.real_dtype)
    return result


@operator
class Complex(OperatorDefinition):
    """The complex number of two parts: complex64 of float32, complex128 of float64.

    .. math:: out = real + i \\cdot imag
    """

    real = Input((dtypes.float32, dtypes.float64))
    imag = Input((dtypes.float32, dtypes.float64), like="real")
    out = Output()
    elementwise = True

    def infer(op) -> TensorSpec:
        x, y = op.real.spec, op.imag.spec
        return TensorSpec(broadcast(x.shape, y.shape), COMPLEX_OF[x.dtype])

    def compute(op, real: Any, imag: Any) -> np.ndarray:
        shape, dtype = np.broadcast_shapes(real.shape, imag.shape), np.result_type(real.dtype, np.complex64)
        out = like_device.empty(real, shape, dtype)
        out.real, out.imag = real, imag
        return out

    def gradient(op, dout: Any) -> tuple[Tensor, Tensor]:
        return Real(dout), Imag(dout)


complex: signatures.Complex = Complex.as_function("complex")


@operator
class Real(OperatorDefinition):
    """The real part.

    .. math:: output = \\Re(input)
    """

    input = Input(complexes)
    output = Output()
    elementwise = True
    infer = _real_spec
    views = {"output": "input"}

    def compute(op, input: Any) -> np.ndarray:
        result: np.ndarray = input.real
        return result

    def gradient(op, doutput: Any) -> Tensor:
        return Complex(doutput, array.zeros_like(doutput))


def _numbers(value: Any) -> Tensor:
    """Return a tensor of numbers. Raises TypeError for other dtypes."""
    tensor = dispatch.to_tensor(value)
    if not (tensor.dtype.is_complex or tensor.dtype.is_floating or tensor.dtype.is_integer):
        raise TypeError(f"input must be a numeric tensor, but got tensor with dtype {tensor.dtype!r}")
    return tensor


@documented_by(Real)
def real(input: Any, name: str | None = None) -> Tensor:
    """Return the real part; real tensors unchanged."""
    input = _numbers(input)
    return Real(input, name=name) if input.dtype.is_complex else input


@operator
class Imag(OperatorDefinition):
    """The imaginary part.

    .. math:: output = \\Im(input)
    """

    input = Input(complexes)
    output = Output()
    elementwise = True
    infer = _real_spec
    views = {"output": "input"}

    def compute(op, input: Any) -> np.ndarray:
        result: np.ndarray = input.imag
        return result

    def gradient(op, doutput: Any) -> Tensor:
        return Complex(array.zeros_like(doutput), doutput)


@documented_by(Imag)
def imag(input: Any, name: str | None = None) -> Tensor:
    """Return the imaginary part; zeros for real tensors."""
    input = _numbers(input)
    return Imag(input, name=name) if input.dtype.is_complex else array.zeros_like(input)


@operator
class Conj(OperatorDefinition):
    """The complex conjugate.

    .. math:: output = \\Re(input) - i \\cdot \\Im(input)
    """

    input = Input(complexes)
    output = Output(like="input")
    elementwise = True
    inplace = {"output": "input"}
    compute = np.conjugate

    def gradient(op, doutput: Any) -> Tensor:
        return Conj(doutput)


@documented_by(Conj)
def conj(x: Any, name: str | None = None) -> Tensor:
    """Return the complex conjugate; real tensors unchanged."""
    x = dispatch.to_tensor(x)
    if x.dtype.is_complex:
        return Conj(x, name=name)
    if not (x.dtype.is_floating or x.dtype.is_integer):
        raise TypeError(f"Expected numeric or variant tensor, got dtype {x.dtype!r}")
    result: Tensor = x
    return result


@operator
class Angle(OperatorDefinition):
    """The angle of a complex number, in radians, in (-pi, pi].

    .. math:: output = atan2(\\Im(input), \\Re(input))
    """

    input = Input(complexes)
    output = Output()
    elementwise = True
    infer = _real_spec

    def compute(op, input: Any) -> np.ndarray:
        result: np.ndarray = np.arctan2(input.imag, input.real)
        return result

    def gradient(op, doutput: Any) -> Tensor:
        # d angle = Im(dz / z) = Re(conj(i z / |z|^2) dz)
        x, y = real(op.input), imag(op.input)
        scale = doutput / (x * x + y * y)
        return complex(-y * scale, x * scale)


@documented_by(Angle)
def angle(input: Any, name: str | None = None) -> Tensor:
    """Return the angle in radians; for real tensors 0, or pi if negative."""
    input = _numbers(input)
    if input.dtype.is_complex:
        return Angle(input, name=name)
    zero = array.zeros_like(input)
    return array.where(input < 0, zero + math.pi, zero)


@operator
class Abs(OperatorDefinition):
    """Absolute value of real numbers. The most negative integer stays itself.

    .. math:: y = |x|
    """

    x = Input(tuple(d for d in signed if not d.is_complex))
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["abs"].numpy

    def gradient(op, dy: Any) -> Tensor:
        result: Tensor = dy * Sign(op.x)
        return result


@operator
class ComplexAbs(OperatorDefinition):
    """Absolute value of complex numbers: float32 of complex64, float64 of complex128.

    .. math:: y = \\sqrt{\\Re(input)^2 + \\Im(input)^2}
    """

    input = Input(complexes)
    y = Output()
    elementwise = True
    infer = _real_spec
    compute = np.absolute

    def gradient(op, dy: Any) -> Tensor:
        return complex(dy, array.zeros_like(dy)) * Sign(op.input)


@documented_by(Abs, ComplexAbs)
def abs(x: Any, name: str | None = None) -> Tensor:
    """Return the absolute value, for complex tensors the modulus."""
    x = dispatch.to_tensor(x)
    return ComplexAbs(x, name=name) if x.dtype.is_complex else Abs(x, name=name)


@operator
class Sign(OperatorDefinition):
    """-1, 0 or 1; of complex numbers x / |x|, and 0 of 0. NaN stays NaN.

    .. math:: y = x / |x| \\text{ if } x \\ne 0 \\text{ else } 0
    """

    x = Input(signed)
    y = Output(like="x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["sign"].numpy

    def gradient(op, dy: Any) -> Tensor:
        if not op.x.dtype.is_complex:
            return array.zeros_like(dy)
        # y moves along the unit circle only: what of dy points along y is lost; at 0 all of it is
        along, size = real(dy * Conj(op.y)), abs(op.x)
        some, one, zero = size > 0, array.ones_like(size), array.zeros_like(size)
        scale = array.where(some, one / array.where(some, size, one), zero)
        result: Tensor = (dy - op.y * complex(along, zero)) * complex(scale, zero)
        return result


sign: signatures.Sign = Sign.as_function("sign")
