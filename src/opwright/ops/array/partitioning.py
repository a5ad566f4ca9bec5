"""Distributing slices over several tensors by number, and putting them together again.

Lives here: DynamicPartition, DynamicStitch.  Not here: cutting at fixed places (joining.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape
from ...core.specs import TensorSpec
from .. import beside
from ..attributes import Attr, at_least
from ..definition import Input, Output, operator
from .constants import range as range_
from .indexing import gather
from .row_arrays import put_last
from .shaping import reshape, shape_op, size


@operator
class DynamicPartition:
    """Slices of `data` sorted into num_partitions tensors; each keeps the order they had.

    .. math:: outputs_k = (data[i] : partitions[i] = k)

    partitions: int32, its shape the beginning of data's. outputs: [n_k, rest of data's shape].
    raises InvalidArgumentError for a partition outside [0, num_partitions)
    """

    data = Input()
    partitions = Input(dtypes.int32)
    outputs = Output(like="data", repeated=True)
    num_partitions = Attr(int, check=at_least(1))
    no_need_buffer = ("data",)
    lod = "vanishes"

    def infer(op) -> Any:
        spec, partitions = op.data.spec, op.partitions.spec.shape
        if partitions.rank is None or spec.shape.rank is None:
            return [spec.with_shape(UNKNOWN)] * op.num_partitions
        if not partitions.is_compatible_with(spec.shape[: partitions.rank]):
            raise InvalidArgumentError(what="data.shape must start with partitions.shape",
                                       found={"data": spec.short(), "partitions": partitions})  # fmt: skip
        return [spec.with_shape([None, *spec.shape[partitions.rank :]])] * op.num_partitions

    def compute(op, data, partitions) -> Any:
        bad = (partitions < 0) | (partitions >= op.num_partitions)
        if bad.any():
            at = np.argwhere(bad)[0]
            raise InvalidArgumentError(
                what=f"partitions{at.tolist() or ''} = {partitions[tuple(at)]} is not in [0, {op.num_partitions})"
            )
        return [data[partitions == k] for k in range(op.num_partitions)]

    def gradient(op, doutputs) -> Any:
        places = reshape(range_(size(op.partitions)), shape_op(op.partitions))
        stitched = dynamic_stitch(dynamic_partition(places, op.partitions, op.num_partitions), doutputs)
        return reshape(stitched, shape_op(op.data)), None


dynamic_partition = DynamicPartition.as_function("dynamic_partition")


@operator
class DynamicStitch:
    """Slices of several tensors put together by number; of equal numbers the last one wins.

    .. math:: merged[indices_m[i]] = data_m[i]

    indices: int32 tensors; data: as many, data_m.shape = indices_m.shape + rest. Rows that no index names are zero.
    raises InvalidArgumentError for a negative index or shapes that do not fit
    """

    indices = Input(dtypes.int32, repeated=True)
    data = Input(repeated=True)
    merged = Output(like="data")
    lod = "vanishes"

    def infer(op) -> Any:
        if not op.data or len(op.data) != len(op.indices):
            raise InvalidArgumentError(what="as many tensors of indices as of data are needed, at least one",
                                       found={"indices": len(op.indices), "data": len(op.data)})  # fmt: skip
        rest = UNKNOWN
        for m, (numbers, data) in enumerate(zip(op.indices, op.data)):
            rank, shape = numbers.spec.shape.rank, data.spec.shape
            if rank is None or shape.rank is None:
                continue
            if not numbers.spec.shape.is_compatible_with(shape[:rank]):
                found = {"data": data.spec.short(), "indices": numbers.spec.short()}
                raise InvalidArgumentError(what=f"data[{m}].shape must start with indices[{m}].shape", found=found)
            if not rest.is_compatible_with(shape[rank:]):
                raise InvalidArgumentError(what=f"data[{m}] has slices of shape {shape[rank:]}, others of {rest}")
            rest = rest.merge_with(shape[rank:])
        known = [numbers.constant for numbers in op.indices]
        rows = None if any(k is None for k in known) else max((int(k.max()) + 1 for k in known if k.size), default=0)
        return TensorSpec(TensorShape([rows]).concatenate(rest), op.data[0].spec.dtype)

    def compute(op, indices, data) -> Any:
        for m, numbers in enumerate(indices):
            if numbers.size and numbers.min() < 0:
                raise InvalidArgumentError(
                    what=f"indices[{m}] has {numbers.min()}, which is out of range", wanted="indices >= 0"
                )
        rows = max((int(n.max()) + 1 for n in indices if n.size), default=0)
        merged = beside.zeros(data[0], (rows, *data[0].shape[indices[0].ndim :]), data[0].dtype)
        if merged.dtype == object:
            merged.fill(b"")
        for numbers, slices in zip(indices, data):
            put_last(merged, (numbers,), slices)
        return merged

    def gradient(op, dmerged) -> Any:
        return None, [gather(dmerged, numbers) for numbers in op.indices]


dynamic_stitch = DynamicStitch.as_function("dynamic_stitch")
