"""Element-wise functions, transforms and data movement: Sign, Atan2, Table, RFFT2D, IRFFT2D, Complex, Roll,
BroadcastGradientArgs, aeq.hadamard_rotation; NumericVerify.

Lives here: these operators, as TensorFlow's converter and quantizers write them.
Not here: the builtins SIGN, ATAN2 (lite/ops/elementwise.py) and RFFT2D (lite/ops/spectral.py), QUANTIZE and DEQUANTIZE
(lite/ops/quantization.py), the tables of quantized functions (lite/ops/quantized/fixed_point.py), audio (audio.py).

Transform lengths need not be powers of 2, unlike those of the builtin RFFT2D. The rotation spreads outliers before
quantization; NumericVerify measures the distance of a quantized tensor from the floats that it represents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import any_dtype, complex64, float16, float32, float64, int8, int16, int32, int64
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.slots import Input, Output
from ...scalar import numpy_namespace
from ...scalar.fixed_point import FixedPoint
from ..ops.definition import LiteDefinition
from ..ops.quantized.operand import Operand, check_scaled
from ..ops.shapes import axis_in, broadcast, ints, refuse, same, spec, text
from ..ops.spectral import spectrum_spec
from .definition import custom_operator


@custom_operator("Sign")
class SignOp(LiteDefinition):
    """-1, 0 or 1.

    .. math:: y = \\operatorname{sign} x
    """

    x = Input((float32, float64, int32))
    y = Output(like="x")
    elementwise = True

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        result: np.ndarray = np.sign(x)
        return result


@custom_operator("Atan2")
class Atan2Op(LiteDefinition):
    """The angle of a point.

    .. math:: y = \\operatorname{atan2}(a, b)

    a, b: of one shape
    """

    a = Input((float32, float64))
    b = Input((float32, float64), like="a")
    y = Output(like="a")

    def infer(op: Any) -> TensorSpec:
        a, b = op.a.spec.shape, op.b.spec.shape
        if not a.is_compatible_with(b):
            raise refuse("a and b differ in shape", found={"a": text(a), "b": text(b)}, wanted="one shape")
        result: TensorSpec = op.a.spec
        return result

    def compute(op: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result: np.ndarray = np.arctan2(a, b)
        return result


def _looked_up(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return a table's entry for each integer of int8; of int16 what lies between two."""
    if x.dtype == np.int8:
        return table[x.astype(np.int16) + 128]
    entries = FixedPoint(numpy_namespace, 8 * table.itemsize)
    return entries.interpolated(table.astype(np.int32), x.astype(np.int32)).astype(table.dtype)


@custom_operator("Table")
class TableOp(LiteDefinition):
    """The table's entry for each integer: of int8, one for each of -128..127; of int16, 513, with linear interpolation
    between the two around it.

    .. math:: y = table_{x + 128}

    x: int8 or int16; table: int8 or int16 [256], [513] where x is int16. The entries of the table include the scales.
    """

    x = Input((int8, int16))
    table = Input((int8, int16), rank=1)
    y = Output(like="table")
    moves = True

    def infer(op: Any) -> TensorSpec:
        entries, size = op.table.spec.shape[0], 256 if op.x.spec.dtype is int8 else 513
        if entries not in (None, size):
            raise refuse(
                "the table has the wrong size for the type of x",
                found=entries,
                wanted=f"{size} entries for {op.x.spec.dtype.name}",
            )
        return TensorSpec(op.x.spec.shape, op.table.spec.dtype)

    def compute(op: Any, x: np.ndarray, table: np.ndarray) -> np.ndarray:
        return _looked_up(x, table)


@custom_operator("Complex")
class ComplexOp(LiteDefinition):
    """Complex numbers of their two parts.

    .. math:: y = real + i \\cdot imag

    real, imag: of shapes that broadcast
    """

    real = Input((float32,))
    imag = Input((float32,))
    y = Output(dtype=complex64)

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(broadcast(op.real, op.imag), complex64)

    def compute(op: Any, real: np.ndarray, imag: np.ndarray) -> np.ndarray:
        y = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.complex64)
        y.real, y.imag = real, imag
        return y


@custom_operator("RFFT2D", "Rfft2d")
class CustomRFFT2DOp(LiteDefinition):
    """The Fourier transform of real images, without the symmetric half of the last dimension.

    .. math:: y_{pq} = \\sum_{jk} x_{jk} e^{-2 \\pi i (j p / h + k q / w)}

    x: [..., m, n], cut or filled with zeros to [..., h, w]; fft_length: int32 [2], h and w;
    y: complex64 [..., h, w / 2 + 1]
    """

    x = Input((float32,))
    fft_length = Input((int32,), rank=1)
    y = Output(dtype=complex64)

    def infer(op: Any) -> TensorSpec:
        return spectrum_spec(op, complex64, lambda w: w // 2 + 1)

    def compute(op: Any, x: np.ndarray, fft_length: np.ndarray) -> np.ndarray:
        h, w = (int(n) for n in fft_length)
        if 0 in x.shape:
            return np.zeros((*x.shape[:-2], h, w // 2 + 1), np.complex64)
        return np.fft.rfft2(x.astype(np.float64), (h, w)).astype(np.complex64)


@custom_operator("IRFFT2D", "Irfft2d")
class IRFFT2DOp(LiteDefinition):
    """The real image of which x is the first half of the Fourier transform.

    .. math:: y_{jk} = (h w)^{-1} \\sum_{pq} x_{pq} e^{2 \\pi i (j p / h + k q / w)}

    x: complex64 [..., m, n], cut or filled with zeros to [..., h, w / 2 + 1]; fft_length: int32 [2], h and w;
    y: float32 [..., h, w]
    """

    x = Input((complex64,))
    fft_length = Input((int32,), rank=1)
    y = Output(dtype=float32)

    def infer(op: Any) -> TensorSpec:
        return spectrum_spec(op, float32, lambda w: w)

    def compute(op: Any, x: np.ndarray, fft_length: np.ndarray) -> np.ndarray:
        h, w = (int(n) for n in fft_length)
        if 0 in x.shape:
            return np.zeros((*x.shape[:-2], h, w), np.float32)
        return np.fft.irfft2(x.astype(np.complex128), (h, w)).astype(np.float32)


_INDEX = (int32, int64)


@custom_operator("Roll")
class RollOp(LiteDefinition):
    """Elements rotated along axes: elements that pass the end reappear at the front.

    .. math:: y_{..., (i + shift) \\bmod n, ...} = x_{..., i, ...}

    x: any type and shape; shift, axis: one number each, or lists of one length; axes may be negative, and of an axis
    named twice the shifts add up.
    """

    x = Input(any_dtype)
    shift = Input(_INDEX)
    axis = Input(_INDEX)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        shift, axis = op.shift.spec.shape, op.axis.spec.shape
        if (shift.rank or 0) > 1 or (axis.rank or 0) > 1 or not same(shift.num_elements(), axis.num_elements()):
            raise refuse(
                "shift and axis do not fit each other",
                found={"shift": text(shift), "axis": text(axis)},
                wanted="one number each, or lists of one length",
            )
        axes = ints(op.axis)
        if axes is not None and op.x.spec.shape.rank is not None:
            for one in axes:
                axis_in(one, op.x.spec.shape.rank)
        result: TensorSpec = op.x.spec
        return result

    def compute(op: Any, x: np.ndarray, shift: np.ndarray, axis: np.ndarray) -> np.ndarray:
        axes = [axis_in(int(a), x.ndim) for a in axis.reshape(-1)]
        return np.roll(x, [int(s) for s in shift.reshape(-1)], axes)


@custom_operator("BroadcastGradientArgs")
class BroadcastGradientArgsOp(LiteDefinition):
    """By which axes of a broadcast result the gradients of its two operands are summed.

    .. math:: axes_a = \\{i : a_i = 1 \\ne b_i\\} \\cup \\{i : a_i = b_i = 1\\}, \\quad axes_b \\text{ likewise}

    a, b: shapes, int32 or int64 [rank]; the shorter one has ones before it. Both lists are empty where a = b.
    """

    a = Input(_INDEX, rank=1)
    b = Input(_INDEX, like="a", rank=1)
    axes_a = Output(like="a")
    axes_b = Output(like="a")

    def infer(op: Any) -> tuple[TensorSpec, ...]:
        a, b = ints(op.a), ints(op.b)
        counts = (None, None) if a is None or b is None else map(len, _broadcast_axes(a, b))
        return tuple(spec((count,), op.a.spec.dtype) for count in counts)

    def compute(op: Any, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(np.array(axes, a.dtype) for axes in _broadcast_axes(a.tolist(), b.tolist()))


def _broadcast_axes(a: Sequence[int], b: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the axes by which gradients of operands of these shapes are summed. Raises InvalidArgumentError."""
    if list(a) == list(b):
        return [], []
    rank = max(len(a), len(b))
    one, other = ([1] * (rank - len(s)) + list(s) for s in (a, b))
    if any(m != n and 1 not in (m, n) for m, n in zip(one, other, strict=True)):
        raise refuse(
            "the shapes do not broadcast",
            found={"a": list(a), "b": list(b)},
            wanted="sizes that are equal or 1, aligned at the last dimension",
        )
    return [i for i, n in enumerate(one) if n == 1], [i for i, n in enumerate(other) if n == 1]


@custom_operator("aeq.hadamard_rotation")
class HadamardRotationOp(LiteDefinition):
    """The normalised Walsh-Hadamard transform of each run of hadamard_size elements along the last axis.

    .. math:: y_i = n^{-1/2} \\sum_j (-1)^{|i \\wedge j|} x_j, \\quad n = hadamard\\_size

    x: [..., features], rank 2 or 3; hadamard_size: a power of 2 that divides features; i ∧ j: bits in both, counted.
    random_binary_vector is in files and has no effect.
    """

    x = Input((float32,))
    y = Output(like="x")
    hadamard_size = Attr(int, default=0)
    random_binary_vector = Attr([int], default=())

    def infer(op: Any) -> TensorSpec:
        n, shape = op.hadamard_size, op.x.spec.shape
        if n < 2 or n & (n - 1):
            raise refuse("hadamard_size is not a power of 2", found=n, wanted="2, 4, 8, ...")
        if shape.rank not in (None, 2, 3):
            raise refuse("x is neither a matrix nor a batch of them", found=text(shape), wanted="rank 2 or 3")
        if shape.rank and shape[-1] is not None and shape[-1] % n:
            raise refuse(
                "hadamard_size does not divide the features",
                found={"x": text(shape), "hadamard_size": n},
                wanted="a divisor of the last size of x",
            )
        result: TensorSpec = op.x.spec
        return result

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        y, half = x.reshape(-1, op.hadamard_size).copy(), 1
        while half < op.hadamard_size:
            pairs = y.reshape(-1, 2, half)
            a, b = pairs[:, 0].copy(), pairs[:, 1]
            pairs[:, 0] += b
            np.subtract(a, b, out=b)
            half *= 2
        y *= np.float32(1.0 / np.sqrt(op.hadamard_size))
        return y.reshape(x.shape)


def _difference(op: Any, real: np.ndarray, reference: np.ndarray, scale: Any) -> np.ndarray:
    y: np.ndarray = real - reference
    limit = np.float32(op.tolerance) * np.float32(scale)
    if op.is_checked() and np.any(np.abs(y) > limit):
        position = int(np.argmax(np.abs(y) > limit))
        value, expected = real.reshape(-1)[position], reference.reshape(-1)[position]
        raise InvalidArgumentError(
            what=f"element {position} is quantised to {value:g}, too far from {expected:g}",
            found=f"a difference of {abs(y.reshape(-1)[position]):g}",
            wanted=f"at most tolerance * scale, {op.tolerance:g} * {scale:g}",
        )
    return y


def _quantized(op: Any, x: Operand, reference: Operand, y: Operand) -> Callable[..., Any]:
    if x.type not in ("INT8", "UINT8", "INT16"):
        raise x.wrong("is not a quantised activation", x.type, "INT8, UINT8, INT16 or FLOAT16")
    check_scaled(x)
    return lambda q, r: _difference(op, x.centred(q, np.int32).astype(np.float32) * x.scale, r, x.scale)


@custom_operator("NumericVerify")
class NumericVerifyOp(LiteDefinition):
    """The difference between a quantized tensor and its reference.

    .. math:: y = dequantized(x) - expected

    x: int8, uint8 or int16 with a scale, or float16 (whose scale counts as 0); expected: float32 of x's shape.
    log_if_failed, with a tolerance of 0.1 or more: a difference above tolerance * scale is an error.
    """

    x = Input((float32, float16))
    expected = Input((float32,))
    y = Output(dtype=float32)
    tolerance = Attr(float, default=0.0)
    log_if_failed = Attr(bool, default=False)
    quantized = _quantized

    def is_checked(op: Any) -> bool:
        """Return whether too large a difference is an error; with smaller tolerances, differences are only computed."""
        return bool(op.log_if_failed) and op.tolerance >= 0.1

    def infer(op: Any) -> TensorSpec:
        x, expected = op.x.spec.shape, op.expected.spec.shape
        if not x.is_compatible_with(expected):
            raise refuse(
                "x and expected differ in shape", found={"x": text(x), "expected": text(expected)}, wanted="one shape"
            )
        return TensorSpec(x, float32)

    def compute(op: Any, x: np.ndarray, expected: np.ndarray) -> np.ndarray:
        if x.dtype != np.float16:
            raise refuse("x is not quantised", found=str(x.dtype), wanted="int8, uint8, int16 or float16")
        return _difference(op, x.astype(np.float32), expected, 0.0)
