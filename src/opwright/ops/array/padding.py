"""Padding of tensors with a constant or by reflection.

Lives here: Pad, MirrorPad, MirrorPadGrad, `pad`.  Not here: padding of convolutions and pools (ops/windows.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN
from .. import dispatch, like_device, lod_rules, math
from ..array_functions import mirror_indices, mirrored, padded
from ..attributes import Attr, one_of
from ..definition import operator
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from .shape_operators import shape_op
from .slicing import Slice, getitem

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from ..tensor import Tensor


def _infer_padded(op: Any, sign: int) -> TensorSpec:
    """Infer the input's spec with the paddings added (sign 1) or removed (sign -1)."""
    spec: TensorSpec = op.input.spec
    padding_shape = op.paddings.spec.shape
    rank = spec.shape.rank
    if rank is None and padding_shape.rank is not None:
        rank = padding_shape[0]
    if rank is None:
        return spec.with_shape(UNKNOWN)
    if not padding_shape.is_compatible_with((rank, 2)):
        raise InvalidArgumentError(
            what="paddings must be a matrix with 2 columns and a row for each dimension",
            found=padding_shape,
            wanted=f"({rank}, 2)",
        )
    paddings, dims = op.paddings.constant, spec.shape.dims
    if paddings is None or dims is None:
        return spec.with_shape([None] * rank)
    _check_paddings(op, paddings, dims if sign > 0 else [None] * rank)
    sizes = [None if d is None else d + sign * n for d, n in zip(dims, paddings.sum(1).tolist())]
    if any(n is not None and n < 0 for n in sizes):
        raise InvalidArgumentError(what="a dimension is smaller than its paddings", found=spec.short())
    return spec.with_shape(sizes)


def _check_paddings(op: Any, paddings: np.ndarray, dims: Any) -> None:
    """Raise InvalidArgumentError for a padding that is negative or exceeds the elements to mirror."""
    mode = op.attrs.get("mode", "CONSTANT")
    for i, ((before, after), d) in enumerate(zip(paddings.tolist(), dims)):
        if before < 0 or after < 0:
            raise InvalidArgumentError(what=f"Paddings must be non-negative: {before} {after} in dimension {i}")
        if d is None or mode == "CONSTANT":
            continue
        limit = d - 1 if mode == "REFLECT" else d
        if before > limit or after > limit:
            raise InvalidArgumentError(
                what=f"paddings must be {'less' if mode == 'REFLECT' else 'no greater'} than the dimension size: "
                f"{before}, {after} in dimension {i} of size {d}"
            )


@operator
class Pad(OperatorDefinition):
    """Pad a tensor with a constant, by default zero.

    .. math:: output[i] = input[i - before] \\text{ inside, } constant\\_values \\text{ outside}

    paddings: int32 or int64 [rank, 2], before and after each dimension. constant_values: a scalar.
    raises InvalidArgumentError for a negative padding or paddings of another shape
    """

    input = Input()
    paddings = Input(index, rank=2)
    constant_values = Input(like="input", optional=True, rank=0)
    output = Output(like="input")
    no_need_buffer = ("input", "constant_values")
    lod = lod_rules.first_of("paddings", "input", lambda sizes: not sizes.any())

    def infer(op) -> TensorSpec:
        return _infer_padded(op, 1)

    def compute(op, input: Any, paddings: Any, constant_values: Any) -> np.ndarray:
        _check_paddings(op, paddings, input.shape)
        fill = constant_values if constant_values is not None else b"" if input.dtype == object else 0
        return padded(input, paddings.tolist(), fill)

    def gradient(op, doutput: Any) -> tuple[Tensor, None, Tensor | None]:
        dx = Slice(doutput, getitem(op.paddings, (slice(None), 0)), shape_op(op.input, op.paddings.dtype))
        if op.constant_values is None:
            return dx, None, None
        return dx, None, math.reduce_sum(doutput) - math.reduce_sum(dx)


@operator
class MirrorPad(OperatorDefinition):
    """Pad a tensor by mirroring it at its edges: REFLECT omits the edge elements, SYMMETRIC repeats them.

    .. math:: output[i] = input[|i - before|] \\text{ (REFLECT, before the front)}

    paddings: int32 or int64 [rank, 2], at most the size of the dimension, for REFLECT one less.
    raises InvalidArgumentError for other paddings
    """

    input = Input()
    paddings = Input(index, rank=2)
    output = Output(like="input")
    mode = Attr(
        str, check=one_of("REFLECT", "SYMMETRIC"), doc="REFLECT omits the edge elements, SYMMETRIC repeats them"
    )
    lod = lod_rules.first_of("paddings", "input", lambda sizes: not sizes.any())

    def infer(op) -> TensorSpec:
        return _infer_padded(op, 1)

    def compute(op, input: Any, paddings: Any) -> Any:
        _check_paddings(op, paddings, input.shape)
        return mirrored(input, paddings.tolist(), op.mode)

    def gradient(op, doutput: Any) -> tuple[Tensor, None]:
        return MirrorPadGrad(doutput, op.paddings, op.mode), None


@operator
class MirrorPadGrad(OperatorDefinition):
    """Compute the gradient of MirrorPad: add each border element to the element it copies.

    .. math:: output[j] = \\sum_{i \\text{ copy of } j} input[i]
    """

    input = Input()
    paddings = Input(index, rank=2, doc="elements added before and after each dimension")
    output = Output(like="input")
    mode = Attr(
        str, check=one_of("REFLECT", "SYMMETRIC"), doc="REFLECT omits the edge elements, SYMMETRIC repeats them"
    )
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return _infer_padded(op, -1)

    def compute(op, input: np.ndarray, paddings: np.ndarray) -> np.ndarray:
        folded = input
        for axis, (before, after) in enumerate(paddings.tolist()):
            n = folded.shape[axis] - before - after
            sums = like_device.zeros(input, (n, *folded.shape[:axis], *folded.shape[axis + 1 :]), input.dtype)
            indices = like_device.array(input, mirror_indices(n, before, after, op.mode))
            np.add.at(sums, indices, np.moveaxis(folded, axis, 0))
            folded = np.moveaxis(sums, 0, axis)
        return folded

    def gradient(op, doutput: Any) -> tuple[Tensor, None]:
        return MirrorPad(doutput, op.paddings, op.mode), None


@documented_by(Pad, MirrorPad)
def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> Tensor:
    """Pad a tensor with a value (CONSTANT) or by reflection (REFLECT, SYMMETRIC). mode: case-insensitive.

    raises ValueError for another mode
    """
    mode, tensor = str(mode).upper(), dispatch.to_tensor(tensor)
    if mode in ("REFLECT", "SYMMETRIC"):
        return MirrorPad(tensor, paddings, mode, name=name)
    if mode != "CONSTANT":
        raise ValueError(
            "Value of argument `mode` expected to be one of 'CONSTANT', 'REFLECT', or 'SYMMETRIC'. "
            f"Received `mode` = {mode}"
        )
    is_zero = (
        not hasattr(constant_values, "dtype") and not isinstance(constant_values, (str, bytes)) and constant_values == 0
    )
    if is_zero and tensor.dtype is not dtypes.string:
        constant_values = None
    return Pad(tensor, paddings, constant_values, name=name)
