"""Concatenation, stacking and tiling.

Lives here: Concat, Pack, Tile, TileGrad, and `concat`, `stack`, `repeat` over them.
Not here: splitting (splits.py), blocks to batch (padding.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array, dispatch, lod_propagation, math
from ..array_shapes import concatenated_dims, stacked_dims, tiled_dims
from ..attributes import Attr
from ..definition import operator
from ..kernels import KernelKey
from ..registry import documented_by
from ..shape_inference import axis_in, elements_of, is_static, shape_from, static_int
from ..slots import Input, OperatorDefinition, Output
from ..strategies import Strategies, Strategy
from ..tensor import TensorLike
from .shape_operators import dims_tensor, expand_dims, reshape, shape_op
from .type_conversion import cast

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


@operator
class Concat(OperatorDefinition):
    """Concatenate tensors along an existing dimension.

    .. math:: output[..., o_k + j, ...] = values_k[..., j, ...], \\quad o_k = \\sum_{l<k} n_l

    values: tensors of one dtype and rank, with equal sizes in all dimensions but `axis`.
    raises InvalidArgumentError naming which values disagree on which dimension, or for scalars
    """

    values = Input(repeated=True)
    output = Output(like="values")
    axis = Attr(int)
    no_need_buffer = ("values",)
    lod = lod_propagation.concat

    def expected_kernel_key(op, place: Any) -> KernelKey:
        return KernelKey(place, op.dtype_of("values", skip_empty=True))  # empty variables contribute nothing

    def infer(op) -> TensorSpec:
        return TensorSpec(concatenated_dims(op.values, op.axis, "values"), op.values[0].spec.dtype)

    def compute(op, values: Any) -> np.ndarray:
        output: np.ndarray = CONCAT(op, values)
        return output

    def gradient(op, doutput: Any) -> list[Any] | list[Tensor]:
        if len(op.values) == 1:
            return [doutput]
        sizes = [v.shape[op.axis] if v.shape.rank is not None else None for v in op.values]
        if None in sizes:
            sizes = [array.getitem(shape_op(v), op.axis) if n is None else n for v, n in zip(op.values, sizes)]
        return array.split(doutput, dims_tensor(sizes), op.axis, num=len(sizes))


def _are_columns(op: Any, values: Any) -> bool:
    """Return whether to concatenate by rows: many columns of a length at which strided writes are slow."""
    first = values[0]
    return (
        len(values) >= 16
        and first.ndim == 2
        and op.axis in (1, -1)
        and 1 << 13 <= first.shape[0] <= 1 << 15
        and first.shape[0] * first.itemsize % 4096 != 0
        and all(v.shape[1] == 1 for v in values)
    )


def _concat_columns(op: Any, values: Any) -> np.ndarray:
    """Concatenate as rows, then transpose: writes full cache lines, where columns write single elements."""
    return np.ascontiguousarray(np.concatenate([v.T for v in values]).T)


CONCAT = Strategies(
    "Concat",
    lambda op, values: np.concatenate(values, op.axis),
    Strategy(
        "columns",
        _concat_columns,
        _are_columns,
        "at least 16 columns [n, 1], 8192 <= n <= 32768, n items not a multiple of 4 KiB",
        "concat_columns",
        fits=lambda op, values: values[0].ndim == 2 and op.axis in (1, -1),
    ),
)


@documented_by(Concat)
def concat(values: Any, axis: Any, name: str | None = "concat") -> Tensor:
    """Concatenate tensors along an axis. values: a list; a single tensor is returned unchanged."""
    if hasattr(values, "concatenated"):  # a list of tensors in a graph
        joined: Tensor = values.concatenated(static_int(axis, "axis"))
        return joined
    if not isinstance(values, (list, tuple)):
        values = [values]
    if not is_static(axis):
        return array.run_time_axes.concat(values, axis, name)
    return Concat(values, axis=static_int(axis, "axis"), name=name)


@operator
class Pack(OperatorDefinition):
    """Stack tensors of one shape along a new dimension.

    .. math:: output[..., k, ...] = values_k[...]

    raises InvalidArgumentError naming which values disagree on which dimension
    """

    values = Input(repeated=True)
    output = Output(like="values")
    axis = Attr(int, default=0)
    no_need_buffer = ("values",)
    lod = lod_propagation.added_axis("axis", "values")

    def infer(op) -> TensorSpec:
        return TensorSpec(stacked_dims(op.values, op.axis, "values"), op.values[0].spec.dtype)

    def compute(op, values: Any) -> np.ndarray:
        if isinstance(values[0], np.generic):  # usually the sizes of a shape or an index
            try:
                return np.array(values, values[0].dtype)
            except ValueError:
                pass  # different shapes
        return np.stack(values, op.axis)

    def gradient(op, doutput: Any) -> list[Tensor]:
        return array.unstack(doutput, len(op.values), op.axis)


@documented_by(Pack)
def stack(values: Any, axis: Any = 0, name: str | None = "stack") -> Tensor:
    """Stack tensors along a new axis.

    values: a list, or one tensor, whose slices along the first dimension are stacked.
    """
    if isinstance(values, TensorLike):
        values = array.unstack(values)
    elif hasattr(values, "stacked"):  # a list of tensors in a graph
        stacked: Tensor = values.stacked(static_int(axis, "axis"))
        return stacked
    return Pack(values, axis=static_int(axis, "axis"), name=name)


parallel_stack = stack


@operator
class Tile(OperatorDefinition):
    """Repeat a tensor along each dimension.

    .. math:: output[i_0, ..., i_n] = input[i_0 \\bmod d_0, ..., i_n \\bmod d_n]

    multiples: int32 or int64 [rank], at least 0. Output sizes: d_k multiples_k.
    """

    input = Input()
    multiples = Input(index, rank=1)
    output = Output(like="input")
    no_need_buffer = ("input",)
    lod = lod_propagation.first_of("multiples", "input", lambda times: times == 1)

    def infer(op) -> TensorSpec:
        return TensorSpec(tiled_dims(op.input.spec, elements_of(op.multiples)), op.input.spec.dtype)

    def compute(op, input: Any, multiples: Any) -> np.ndarray:
        return np.tile(input, tuple(multiples.tolist())) if multiples.size else input

    def gradient(op, doutput: Any) -> tuple[Tensor, None]:
        return TileGrad(doutput, op.multiples, shape_op(op.input)), None


tile: signatures.Tile = Tile.as_function("tile")


@operator
class TileGrad(OperatorDefinition):
    """Sums over the repetitions of tiling: the gradient of Tile.

    .. math:: output[j] = \\sum_{i \\bmod shape = j} input[i]

    shape: of the tensor that was tiled.
    raises InvalidArgumentError if tiling that shape does not give the input's
    """

    input = Input()
    multiples = Input(index, rank=1, doc="how often each dimension was repeated")
    shape = Input(index, rank=1)
    output = Output(like="input")
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        spec, shape, multiples = op.input.spec, shape_from(op.shape), elements_of(op.multiples)
        if spec.shape.dims is not None and shape.dims is not None and multiples is not None:
            tiled = [None if d is None or m is None else d * m for d, m in zip(shape, multiples)]
            if not (len(multiples) == shape.rank and spec.shape.is_compatible_with(tiled)):
                raise InvalidArgumentError(
                    what=f"{shape} tiled by {multiples} does not give the input", found=spec.short()
                )
        return spec.with_shape(shape)

    def compute(op, input: np.ndarray, multiples: np.ndarray, shape: np.ndarray) -> np.ndarray:
        parts = [n for m, d in zip(multiples.tolist(), shape.tolist()) for n in (m, d)]
        output: np.ndarray = input.reshape(parts).sum(tuple(range(0, len(parts), 2)), dtype=input.dtype)
        return output

    def gradient(op, doutput: Any) -> tuple[Tensor, None, None]:
        return tile(doutput, op.multiples), None, None


def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Repeat each slice along `axis` `repeats` times; with axis None, each element of the flattened tensor.

    .. math:: output[..., o_i + j, ...] = input[..., i, ...] \\text{ for } 0 \\le j < repeats_i, \\quad
              o_i = \\sum_{k<i} repeats_k

    repeats: one number for all slices, or one per slice.
    raises InvalidArgumentError if their number does not fit, ValueError for repeats of more than one dimension
    """
    data, repeats = dispatch.to_tensor(input), dispatch.to_tensor(repeats)
    repeats = repeats if repeats.dtype in index else cast(repeats, dtypes.int32)
    if axis is None or data.shape.rank == 0:
        data, axis = reshape(data, [-1]), 0
    if repeats.shape.rank not in (None, 0, 1):
        raise ValueError(f"repeat: repeats has at most one dimension; found shape {repeats.shape}")
    axis = static_int(axis, "axis")
    if data.shape.rank is None or repeats.shape.rank is None:
        return _repeat_rows(data, repeats, axis, name)
    axis = axis_in(axis, data.shape.rank)
    n, count = data.shape[axis], None if repeats.shape.rank == 0 else repeats.shape[0]
    if count == 1 or repeats.shape.rank == 0:
        times = repeats if repeats.shape.rank == 0 else reshape(repeats, [])  # a constant stays one
        return _repeat_all(data, times, axis, name)
    if n is not None and count is not None and n != count:
        raise InvalidArgumentError(
            op="repeat",
            node=name,
            what=f"{count} repeats for {n} slices",
            found=data.spec.short(),
            wanted="one for each slice, or one for all",
        )
    return _gather_repeated(data, repeats, axis, name)


def _gather_repeated(data: Any, repeats: Any, axis: int, name: str | None) -> Tensor:
    """Compute `repeat` with one number per slice, by Gather."""
    indices = array.getitem(array.where(array.sequence_mask(repeats)), (slice(None), 0))
    return array.gather(data, indices, axis=axis, name=name)


def _repeat_rows(data: Any, repeats: Any, axis: int, name: str | None) -> Tensor:
    """Compute `repeat` for data or repeats of unknown rank. A scalar counts as a vector of one element."""
    if data.shape.rank is None:
        shape = shape_op(data)
        data = reshape(data, concat([shape, array.fill([math.maximum(1 - array.rank(data), 0)], 1)], 0))
    n = array.getitem(shape_op(data), axis)
    return _gather_repeated(data, array.broadcast_to(repeats, [n]), axis, name)


def _repeat_all(data: Any, times: Any, axis: int, name: str | None) -> Tensor:
    sizes = [array.getitem(shape_op(data), i) if d is None else d for i, d in enumerate(data.shape)]
    sizes[axis] = sizes[axis] * (cast(times, dtypes.int32) if times.constant is None else int(times.constant))
    multiples = [1] * (data.shape.rank + 1)
    multiples[axis + 1] = times
    return reshape(tile(expand_dims(data, axis + 1), dims_tensor(multiples)), dims_tensor(sizes), name=name)
