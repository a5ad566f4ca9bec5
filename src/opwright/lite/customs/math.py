"""Element-wise functions, Fourier transforms and data movement: Sign, Atan2, Table, RFFT2D, IRFFT2D, Complex, Roll,
BroadcastGradientArgs.

Lives here: these operators, as TensorFlow's converter writes them.
Not here: the builtins SIGN, ATAN2 (lite/ops/elementwise.py, arithmetic.py) and RFFT2D (lite/ops/spectral.py), the
tables of quantized functions (lite/ops/quantized/fixed_point.py), audio (audio.py).

Transform lengths need not be powers of 2, unlike those of the builtin RFFT2D.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import any_dtype, complex64, complex128, float32, float64, int8, int16, int32, int64
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from ...scalar import numpy_namespace
from ...scalar.fixed_point import FixedPoint
from ..ops.definition import LiteDefinition
from ..ops.shapes import axis_in, bounded, broadcast, ints, refuse, same, spec, text
from .definition import custom_operator


@custom_operator("Sign")
class Sign(LiteDefinition):
    """-1, 0 or 1.

    .. math:: y = \\operatorname{sign} x
    """

    x = Input((float32, float64, int32))
    y = Output(like="x")
    elementwise = True

    def compute(op: Any, x: Any) -> Any:
        return np.sign(x)


@custom_operator("Atan2")
class Atan2(LiteDefinition):
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

    def compute(op: Any, a: Any, b: Any) -> Any:
        return np.arctan2(a, b)


def _looked_up(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return a table's entry for each integer of int8; of int16 what lies between two."""
    if x.dtype == np.int8:
        return table[x.astype(np.int16) + 128]
    entries = FixedPoint(numpy_namespace, 8 * table.itemsize)
    result: np.ndarray = entries.interpolated(table.astype(np.int32), x.astype(np.int32)).astype(table.dtype)
    return result


@custom_operator("Table")
class Table(LiteDefinition):
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


def _shape(op: Any, dtype: Any, columns: Any) -> TensorSpec:
    """Return the output's spec. columns: computes the last size from the second length."""
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


@custom_operator("Complex")
class Complex(LiteDefinition):
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
class RFFT2D(LiteDefinition):
    """The Fourier transform of real images; the last half of what is symmetric is left out.

    .. math:: y_{pq} = \\sum_{jk} x_{jk} e^{-2 \\pi i (j p / h + k q / w)}

    x: [..., m, n], cut or filled with zeros to [..., h, w]; fft_length: int32 [2], h and w;
    y: complex64 [..., h, w / 2 + 1]
    """

    x = Input((float32,))
    fft_length = Input((int32,), rank=1)
    y = Output(dtype=complex64)

    def infer(op: Any) -> TensorSpec:
        return _shape(op, complex64, lambda w: w // 2 + 1)

    def compute(op: Any, x: np.ndarray, fft_length: np.ndarray) -> np.ndarray:
        h, w = (int(n) for n in fft_length)
        if 0 in x.shape:
            return np.zeros((*x.shape[:-2], h, w // 2 + 1), np.complex64)
        return np.fft.rfft2(x.astype(np.float64), (h, w)).astype(np.complex64)


@custom_operator("IRFFT2D", "Irfft2d")
class IRFFT2D(LiteDefinition):
    """The real image of which x is the first half of the Fourier transform.

    .. math:: y_{jk} = (h w)^{-1} \\sum_{pq} x_{pq} e^{2 \\pi i (j p / h + k q / w)}

    x: complex64 [..., m, n], cut or filled with zeros to [..., h, w / 2 + 1]; fft_length: int32 [2], h and w;
    y: float32 [..., h, w]
    """

    x = Input((complex64,))
    fft_length = Input((int32,), rank=1)
    y = Output(dtype=float32)

    def infer(op: Any) -> TensorSpec:
        return _shape(op, float32, lambda w: w)

    def compute(op: Any, x: np.ndarray, fft_length: np.ndarray) -> np.ndarray:
        h, w = (int(n) for n in fft_length)
        if 0 in x.shape:
            return np.zeros((*x.shape[:-2], h, w), np.float32)
        return np.fft.irfft2(x.astype(np.complex128), (h, w)).astype(np.float32)


_INDEX = (int32, int64)


@custom_operator("Roll")
class Roll(LiteDefinition):
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
class BroadcastGradientArgs(LiteDefinition):
    """By which axes of a broadcast result the gradients of its two operands are summed.

    .. math:: axes_a = \\{i : a_i = 1 \\ne b_i\\} \\cup \\{i : a_i = b_i = 1\\}, \\quad axes_b \\text{ likewise}

    a, b: shapes, int32 or int64 [rank]; the shorter one has ones before it. Both lists are empty where a = b.
    """

    a = Input(_INDEX, rank=1)
    b = Input(_INDEX, like="a", rank=1)
    axes_a = Output(like="a")
    axes_b = Output(like="a")

    def infer(op: Any) -> tuple[TensorSpec, TensorSpec]:
        axes = spec((None,), op.a.spec.dtype)
        return axes, axes

    def compute(op: Any, a: Any, b: Any) -> Any:
        if a.shape == b.shape and np.array_equal(a, b):
            return np.zeros(0, a.dtype), np.zeros(0, a.dtype)
        rank = max(len(a), len(b))
        one, other = (np.concatenate([np.ones(rank - len(s), s.dtype), s]) for s in (a, b))
        if np.any((one != other) & (one != 1) & (other != 1)):
            raise refuse(
                "the shapes do not broadcast",
                found={"a": a.tolist(), "b": b.tolist()},
                wanted="sizes that are equal or 1, aligned at the last dimension",
            )
        return tuple(np.flatnonzero(s == 1).astype(a.dtype) for s in (one, other))
