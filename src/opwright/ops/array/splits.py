"""Splits along a dimension; dynamic partition and stitch.

Lives here: Unpack, Split, SplitV with `unstack` and `split`; DynamicPartition, DynamicStitch.
Not here: slices of several dimensions (slices.py), concatenation (concatenation.py).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape
from ...core.specs import TensorSpec
from .. import array, dispatch, like_device, lod_propagation
from ..array_functions import put_last
from ..array_shapes import unstacked_dims
from ..attributes import Attr, at_least
from ..definition import operator
from ..index_shapes import equal_part_dims
from ..registry import documented_by
from ..shape_inference import axis_in, elements_of, is_static, part_sizes, static_int
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from .concatenation import concat, stack
from .constants import range as range_
from .indexing import gather
from .shape_operators import dims_tensor, reshape, shape_op, size

if TYPE_CHECKING:
    from .. import signatures


@operator
class Unpack(OperatorDefinition[list[Tensor]]):
    """Split a tensor into its slices along a dimension, which is removed.

    .. math:: output_k[...] = value[..., k, ...]

    num: the size of the dimension.
    raises InvalidArgumentError for a scalar, or another size than num
    """

    value = Input()
    output = Output(like="value", repeated=True)
    num = Attr(int, check=at_least(0))
    axis = Attr(int, default=0)
    views = {"output": "value"}
    lod = lod_propagation.along("axis", "value")

    def infer(op) -> list[Any]:
        spec = op.value.spec
        if spec.shape.rank is None:
            return [spec] * op.num
        return [spec.with_shape(unstacked_dims(spec, op.axis, op.num))] * op.num

    def compute(op, value: Any) -> list[Any]:
        if value.shape[op.axis] != op.num:
            raise InvalidArgumentError(what=f"num is {op.num}, dimension {op.axis} has size {value.shape[op.axis]}")
        front = np.moveaxis(value, op.axis, 0)
        return [front[k, ...] for k in range(op.num)]

    def gradient(op, doutput: Any) -> Tensor | None:
        return stack(doutput, op.axis) if op.num else None


@documented_by(Unpack)
def unstack(value: Any, num: int | None = None, axis: Any = 0, name: str | None = "unstack") -> list[Tensor]:
    """Split a tensor into its slices along an axis. num: by default the size of the axis; raises ValueError if
    unknown.
    """
    value, axis = dispatch.to_tensor(value), static_int(axis, "axis")
    if num is None:
        if value.shape.rank:
            if not -value.shape.rank <= axis < value.shape.rank:
                raise ValueError(f"Argument `axis` = {axis} not in range [{-value.shape.rank}, {value.shape.rank})")
            num = value.shape[axis]
        if num is None:
            if value.shape.rank == 0:
                raise ValueError("unstack: a scalar has no dimension to unstack")
            raise ValueError(f"Cannot infer argument `num` from shape {value.shape}")
    return Unpack(value, num=num, axis=axis, name=name)


@operator
class Split(OperatorDefinition[list[Tensor]]):
    """Split a tensor along a dimension into equal parts.

    .. math:: output_k[..., j, ...] = value[..., k n + j, ...]

    raises InvalidArgumentError if the size is not a multiple of num_split
    """

    value = Input()
    output = Output(like="value", repeated=True)
    num_split = Attr(int, check=at_least(1))
    axis = Attr(int, default=0)
    views = {"output": "value"}
    lod = lod_propagation.along("axis", "value")

    def infer(op) -> list[Any]:
        spec = op.value.spec
        if spec.shape.rank is None:
            return [spec] * op.num_split
        return [spec.with_shape(equal_part_dims(spec, op.axis, op.num_split))] * op.num_split

    def compute(op, value: Any) -> list[np.ndarray] | list[Any]:
        n, remainder = divmod(value.shape[op.axis], op.num_split)
        if remainder:
            return np.split(value, op.num_split, op.axis)  # raises the error
        before = (slice(None),) * (op.axis % value.ndim)
        return [value[(*before, slice(k * n, k * n + n))] for k in range(op.num_split)]

    def gradient(op, doutput: Any) -> Tensor:
        return concat(doutput, op.axis)


@operator
class SplitV(OperatorDefinition[list[Tensor]]):
    """Split a tensor along a dimension into parts of given sizes. A size of -1 is inferred.

    .. math:: output_k[..., j, ...] = value[..., o_k + j, ...], \\quad o_k = \\sum_{l<k} size\\_splits_l

    size_splits: int32 or int64 [num_split].
    raises InvalidArgumentError if the sizes do not add up to the dimension's, or more than one is -1
    """

    value = Input()
    size_splits = Input(index, rank=1)
    output = Output(like="value", repeated=True)
    num_split = Attr(int, check=at_least(1))
    axis = Attr(int, default=0)
    views = {"output": "value"}
    lod = lod_propagation.along("axis", "value")

    def infer(op) -> list[Any]:
        spec, sizes = op.value.spec, elements_of(op.size_splits)
        unknown: list[int | None] = [None] * op.num_split
        if sizes is not None and len(sizes) != op.num_split:
            raise InvalidArgumentError(what=f"num is {op.num_split}, there are {len(sizes)} sizes", found=sizes)
        if spec.shape.rank is None:
            return [spec] * op.num_split
        axis = axis_in(op.axis, spec.shape.rank)
        if op.size_splits.constant is not None and spec.shape[axis] is not None:
            sizes = [*part_sizes(op.size_splits.constant.tolist(), spec.shape[axis], axis)]
        parts = [None if s is None or s < 0 else s for s in sizes or unknown]
        return [spec.with_shape([*spec.shape[:axis], s, *spec.shape[axis + 1 :]]) for s in parts]

    def compute(op, value: Any, size_splits: Any) -> list[Any]:
        sizes = part_sizes(size_splits.tolist(), value.shape[op.axis], op.axis)
        before = (slice(None),) * (op.axis % value.ndim)
        ends = list(itertools.accumulate(sizes))
        return [value[(*before, slice(end - n, end))] for end, n in zip(ends, sizes)]

    def gradient(op, doutput: Any) -> tuple[Any, None]:
        return concat(doutput, op.axis), None


@documented_by(Split, SplitV)
def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str | None = "split"
) -> list[Tensor]:
    """Split a tensor along an axis, into equal parts (an int) or parts of given sizes (a list or 1-D tensor).

    num: the number of parts, required for a tensor of sizes of unknown length.
    raises ValueError if the number of parts is unknown
    """
    value = dispatch.to_tensor(value)
    if not is_static(axis):
        return array.run_time_axes.split(lambda x: split(x, num_or_size_splits, 0, num), value, axis)
    axis = static_int(axis, "axis")
    if isinstance(num_or_size_splits, (int, np.integer)):
        return Split(value, num_split=int(num_or_size_splits), axis=axis, name=name)
    if isinstance(num_or_size_splits, (list, tuple)):
        num_or_size_splits = dims_tensor(num_or_size_splits)
    sizes = dispatch.to_tensor(num_or_size_splits)
    if sizes.shape.rank == 0:
        return Split(value, num_split=static_int(sizes, "num_or_size_splits"), axis=axis, name=name)
    if num is None:
        num = sizes.shape[0]
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {sizes.shape}")
    return SplitV(value, sizes, num_split=num, axis=axis, name=name)


@operator
class DynamicPartition(OperatorDefinition[list[Tensor]]):
    """Partition the slices of `data` into num_partitions tensors, in their order.

    .. math:: outputs_k = (data[i] : partitions[i] = k)

    partitions: int32, its shape a prefix of data's. outputs: [n_k, *data.shape[rank(partitions):]].
    raises InvalidArgumentError for a partition outside [0, num_partitions)
    """

    data = Input()
    partitions = Input(dtypes.int32)
    outputs = Output(like="data", repeated=True)
    num_partitions = Attr(int, check=at_least(1))
    no_need_buffer = ("data",)
    lod = "vanishes"

    def infer(op) -> list[Any]:
        spec, partitions = op.data.spec, op.partitions.spec.shape
        if partitions.rank is None or spec.shape.rank is None:
            return [spec.with_shape(UNKNOWN)] * op.num_partitions
        if not partitions.is_compatible_with(spec.shape[: partitions.rank]):
            raise InvalidArgumentError(
                what="data.shape must start with partitions.shape",
                found={"data": spec.short(), "partitions": partitions},
            )
        return [spec.with_shape([None, *spec.shape[partitions.rank :]])] * op.num_partitions

    def compute(op, data: Any, partitions: Any) -> list[Any]:
        bad = (partitions < 0) | (partitions >= op.num_partitions)
        if bad.any():
            first = np.argwhere(bad)[0]
            raise InvalidArgumentError(
                what=f"partitions{first.tolist() or ''} = {partitions[tuple(first)]} is not in [0, {op.num_partitions})"
            )
        return [data[partitions == k] for k in range(op.num_partitions)]

    def gradient(op, doutputs: Any) -> tuple[Any, None]:
        indices = reshape(range_(size(op.partitions)), shape_op(op.partitions))
        stitched = dynamic_stitch(dynamic_partition(indices, op.partitions, op.num_partitions), doutputs)
        return reshape(stitched, shape_op(op.data)), None


dynamic_partition: signatures.DynamicPartition = DynamicPartition.as_function("dynamic_partition")


@operator
class DynamicStitch(OperatorDefinition):
    """Interleave slices of several tensors by index; of equal indices the last one wins.

    .. math:: merged[indices_m[i]] = data_m[i]

    indices: int32 tensors; data: as many, data_m.shape = indices_m.shape + slice shape. Rows without an index are zero.
    raises InvalidArgumentError for a negative index or incompatible shapes
    """

    indices = Input(dtypes.int32, repeated=True)
    data = Input(repeated=True)
    merged = Output(like="data")
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        if not op.data or len(op.data) != len(op.indices):
            raise InvalidArgumentError(
                what="as many tensors of indices as of data are needed, at least one",
                found={"indices": len(op.indices), "data": len(op.data)},
            )
        slice_shape = UNKNOWN
        for m, (indices, data) in enumerate(zip(op.indices, op.data)):
            rank, shape = indices.spec.shape.rank, data.spec.shape
            if rank is None or shape.rank is None:
                continue
            if not indices.spec.shape.is_compatible_with(shape[:rank]):
                raise InvalidArgumentError(
                    what=f"data[{m}].shape must start with indices[{m}].shape",
                    found={"data": data.spec.short(), "indices": indices.spec.short()},
                )
            if not slice_shape.is_compatible_with(shape[rank:]):
                raise InvalidArgumentError(
                    what=f"data[{m}] has slices of shape {shape[rank:]}, others of {slice_shape}"
                )
            slice_shape = slice_shape.merge_with(shape[rank:])
        constants = [k for indices in op.indices if (k := indices.constant) is not None]
        rows = None
        if len(constants) == len(op.indices):
            rows = max((int(k.max()) + 1 for k in constants if k.size), default=0)
        return TensorSpec(TensorShape([rows]).concatenate(slice_shape), op.data[0].spec.dtype)

    def compute(op, indices: Any, data: Any) -> np.ndarray:
        for m, numbers in enumerate(indices):
            if numbers.size and numbers.min() < 0:
                raise InvalidArgumentError(
                    what=f"indices[{m}] has {numbers.min()}, which is out of range", wanted="indices >= 0"
                )
        rows = max((int(n.max()) + 1 for n in indices if n.size), default=0)
        merged = like_device.zeros(data[0], (rows, *data[0].shape[indices[0].ndim :]), data[0].dtype)
        if merged.dtype == object:
            merged.fill(b"")
        for numbers, slices in zip(indices, data):
            put_last(merged, (numbers,), slices)
        return merged

    def gradient(op, dmerged: Any) -> tuple[None, list[Any]]:
        return None, [gather(dmerged, numbers) for numbers in op.indices]


dynamic_stitch: signatures.DynamicStitch = DynamicStitch.as_function("dynamic_stitch")
