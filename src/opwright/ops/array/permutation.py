"""Permutations of elements: transposition, reversal, rotation.

Lives here: Transpose, Reverse, Roll, ReverseSequence.  Not here: batches and blocks of images (padding.py).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import index
from ...core.errors import InvalidArgumentError
from .. import array, dispatch, lod_propagation, math
from ..array_functions import check_lengths, reversed_sequences
from ..array_shapes import permutation
from ..attributes import Attr
from ..definition import operator
from ..index_shapes import check_sequences
from ..registry import documented_by
from ..shape_inference import axes_in, axis_in, elements_of, is_static, static_axes, static_int
from ..slots import Input, OperatorDefinition, Output
from .shape_operators import dims_tensor, reshape
from .type_conversion import cast

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..tensor import Tensor


@operator
class Transpose(OperatorDefinition):
    """Permute the dimensions of a tensor; without perm, reverse their order.

    .. math:: output[i_{perm_0}, ..., i_{perm_n}] = a[i_0, ..., i_n]

    raises InvalidArgumentError if perm does not name each dimension once
    """

    a = Input()
    output = Output(like="a")
    perm = Attr([int], default=None)
    views = {"output": "a"}
    lod = lod_propagation.transpose

    def infer(op) -> TensorSpec:
        spec = op.a.spec
        if spec.shape.rank is None:
            return spec if op.perm is None else spec.with_shape([None] * len(op.perm))
        if op.perm is None:
            return spec.with_shape(spec.shape[::-1])
        return spec.with_shape([spec.shape[p] for p in permutation(op.perm, spec.shape.rank)])

    def compute(op, a: Any) -> np.ndarray:
        return np.transpose(a, op.perm)

    def gradient(op, doutput: Any) -> Tensor:
        if op.perm is None:
            return Transpose(doutput)
        return Transpose(doutput, perm=np.argsort(permutation(op.perm, len(op.perm))).tolist())


@operator
class Permute(OperatorDefinition):
    """Permute the dimensions of a tensor by a computed permutation: Transpose with `perm` as an input.

    .. math:: output[i_{perm_0}, ..., i_{perm_n}] = a[i_0, ..., i_n]

    perm: int32 or int64 [rank].
    raises InvalidArgumentError if perm does not name each dimension once
    """

    a = Input()
    perm = Input(index, rank=1)
    output = Output(like="a")
    no_need_buffer = ("a",)
    views = {"output": "a"}
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        spec, perm = op.a.spec, elements_of(op.perm)
        rank = spec.shape.rank
        if rank is None:
            return spec if perm is None else spec.with_shape([None] * len(perm))
        if perm is None:
            return spec.with_shape([None] * rank)
        if len(perm) != rank:
            raise InvalidArgumentError(
                what="perm names another number of dimensions than the input has", found=perm, wanted=f"{rank} numbers"
            )
        axes = [p for p in perm if p is not None]
        if len(axes) < rank:
            return spec.with_shape([None if p is None or not -rank <= p < rank else spec.shape[p] for p in perm])
        return spec.with_shape([spec.shape[p] for p in permutation(tuple(axes), rank)])

    def compute(op, a: Any, perm: Any) -> np.ndarray:
        return np.transpose(a, permutation(tuple(perm.tolist()), a.ndim))

    def gradient(op, doutput: Any) -> tuple[Tensor, None]:
        n = array.rank(op.a)
        perm = cast(op.perm, n.dtype)
        return Permute(doutput, math.invert_permutation(perm + cast(perm < 0, n.dtype) * n)), None


@documented_by(Transpose)
def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> Tensor:
    """Permute the dimensions of a tensor.

    perm: by default the reverse order; a computed perm runs Permute. conjugate: also take the complex
    conjugate.
    """
    if is_static(perm):
        transposed = Transpose(a, perm=static_axes(perm, "perm"), name=name)
    else:
        transposed = Permute(a, dims_tensor(list(perm)) if isinstance(perm, (list, tuple)) else perm, name=name)
    if conjugate and transposed.dtype.is_complex:
        transposed = math.conj(transposed)
    return transposed


@operator
class Reverse(OperatorDefinition):
    """Reverse the order of elements along axes.

    .. math:: output[..., i, ...] = tensor[..., d - 1 - i, ...]

    raises InvalidArgumentError for an axis given twice or out of range
    """

    tensor = Input()
    output = Output(like="tensor")
    axis = Attr([int])
    views = {"output": "tensor"}
    lod = lod_propagation.along("axis", "tensor")

    def infer(op) -> TensorSpec:
        if op.tensor.spec.shape.rank is not None:
            axes_in(op.axis, op.tensor.spec.shape.rank)
        return op.tensor.spec

    def compute(op, tensor: Any) -> np.ndarray:
        return np.flip(tensor, op.axis)

    def gradient(op, doutput: Any) -> Tensor:
        return Reverse(doutput, axis=op.axis)


@documented_by(Reverse)
def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Reverse a tensor along axes."""
    if not is_static(axis):
        return array.run_time_axes.reverse(lambda x, n: Reverse(x, axis=tuple(range(n))), tensor, axis, name)
    return Reverse(tensor, axis=static_axes(axis) or (), name=name)


@operator
class Roll(OperatorDefinition):
    """Rotate elements along axes: elements shifted beyond the last position re-enter at the first.

    .. math:: output[..., (i + shift) \\bmod d, ...] = input[..., i, ...]

    shift: int32 or int64, one for each axis. An axis may occur several times; the shifts add up.
    """

    input = Input()
    shift = Input(index, rank=1)
    output = Output(like="input")
    axis = Attr([int])
    lod = lod_propagation.along("axis", "input")

    def infer(op) -> TensorSpec:
        shape, shifts = op.input.spec.shape, op.shift.spec.shape
        if shifts.rank is not None and shifts[0] not in (None, len(op.axis)):
            raise InvalidArgumentError(
                what="shift and axis must have the same size", found={"shift": shifts[0], "axis": len(op.axis)}
            )
        if shape.rank == 0:
            raise InvalidArgumentError(what="input must be 1-D or higher", found=op.input.spec.short())
        if shape.rank is not None:
            for axis in op.axis:
                axis_in(axis, shape.rank)
        return op.input.spec

    def compute(op, input: Any, shift: Any) -> np.ndarray:
        return np.roll(input, tuple(shift.tolist()), op.axis)

    def gradient(op, doutput: Any) -> tuple[Tensor, None]:
        return Roll(doutput, -op.shift, axis=op.axis), None


def _roll_first(shift: Any, x: Any) -> Tensor:
    return Roll(x, shift, axis=(0,))


@documented_by(Roll)
def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Roll elements along axes, with wraparound. shift, axis: numbers, or lists of equal length."""
    shift = reshape(dispatch.to_tensor(shift), [-1])
    if not is_static(axis):
        return _roll_run_time_axes(dispatch.to_tensor(input), shift, axis, name)
    return Roll(input, shift, axis=static_axes(axis) or (), name=name)


def _roll_run_time_axes(x: Any, shift: Any, axis: Any, name: str | None) -> Tensor:
    """Roll along axes known only at run time, one after another, as an axis may occur several times."""
    axes = reshape(dims_tensor(list(axis)) if isinstance(axis, (list, tuple)) else axis, [-1])
    counts = {axes.shape[0], shift.shape[0]} - {None}
    if len(counts) != 1:
        if counts:
            raise InvalidArgumentError(
                op="Roll",
                node=name,
                what="shift and axis must have the same size",
                found={"shift": shift.shape[0], "axis": axes.shape[0]},
            )
        raise TypeError(f"axis: the number of axes must be known while tracing; found {axis!r}")
    for i in range(counts.pop()):
        roll = functools.partial(_roll_first, array.getitem(shift, slice(i, i + 1)))
        x = array.run_time_axes.along(roll, x, array.getitem(axes, i))
    return array.identity(x, name=name)


@operator
class ReverseSequence(OperatorDefinition):
    """Reverse the first seq_lengths[b] elements of each batch entry along seq_axis; keep the others.

    .. math:: output[b, i] = input[b, n_b - 1 - i] \\text{ if } i < n_b \\text{ else } input[b, i]

    seq_lengths: int32 or int64 [size of batch_axis].
    raises InvalidArgumentError for a length that is negative or larger than the dimension
    """

    input = Input()
    seq_lengths = Input(index, rank=1)
    output = Output(like="input")
    seq_axis = Attr(int)
    batch_axis = Attr(int, default=0)
    lod = lod_propagation.along("seq_axis", "input")

    def infer(op) -> TensorSpec:
        shape = op.input.spec.shape
        if shape.rank is None:
            return op.input.spec
        seq, batch = axis_in(op.seq_axis, shape.rank, "seq_axis"), axis_in(op.batch_axis, shape.rank, "batch_axis")
        check_sequences(op.input.spec, op.seq_lengths.spec, seq, batch)
        return op.input.spec

    def compute(op, input: np.ndarray, seq_lengths: np.ndarray) -> np.ndarray:
        check_lengths(seq_lengths, input.shape[op.seq_axis])
        return reversed_sequences(input, seq_lengths, op.seq_axis, op.batch_axis)

    def gradient(op, doutput: Any) -> tuple[Tensor, None]:
        return ReverseSequence(doutput, op.seq_lengths, op.seq_axis, op.batch_axis), None


@documented_by(ReverseSequence)
def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: Any = None, batch_axis: Any = None, name: str | None = None
) -> Tensor:
    """Reverse the beginning of each sequence of a padded batch. seq_axis is required; batch_axis defaults to 0."""
    if seq_axis is None:
        raise ValueError("reverse_sequence: seq_axis is missing")
    batch_axis = 0 if batch_axis is None else static_int(batch_axis, "batch_axis")
    return ReverseSequence(input, seq_lengths, static_int(seq_axis, "seq_axis"), batch_axis, name=name)
