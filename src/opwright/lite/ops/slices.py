"""Parts of tensors by place: SLICE, STRIDED_SLICE, GATHER, GATHER_ND, SCATTER_ND, DYNAMIC_UPDATE_SLICE.

Lives here: these operators.  Not here: splitting (concatenation.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import bfloat16, float16, float32, int4, int8, int16, int32, int64, string, uint8
from ...core.dtypes import bool as bool_
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.array_functions import gathered
from ...ops.array_shapes import batch_dims_of, gathered_dims, vectors_gathered_dims
from ...ops.shape_inference import Sizes, SliceMasks, check_updates, dims_of_plan, key_of_plan, slice_dims
from ...ops.slots import Input, Output
from ..format.constants import MAX_RANK
from ..runtime.builtin_registrations import DynamicUpdateSliceRegistration
from .definition import LiteDefinition, lite_operator
from .shapes import fixed, ints, refuse, same, spec, spec_of_sizes, text
from .types import ANY, INDEX

_GATHERED = (float32, float16, bfloat16, int32, int64, int4, int8, uint8, int16, bool_, string)


@lite_operator("SLICE")
class SliceOp(LiteDefinition):
    """size[i] elements from begin[i] along each dimension; a size of -1 takes the rest."""

    x = Input(ANY)
    begin = Input(INDEX, rank=1)
    size = Input(INDEX, rank=1, like="begin")
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        dims, begin, size = op.x.spec.shape.dims, ints(op.begin), ints(op.size)
        if dims is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype)
        for part, name in ((op.begin, "begin"), (op.size, "size")):
            if not same(part.spec.shape[0], len(dims)):
                raise refuse(f"{name} does not fit the input", found=part.spec.short(), wanted=f"{len(dims)} numbers")
        hidden: Sizes = [None] * len(dims)
        sizes = slice_dims(dims, begin or hidden, hidden if size is None else size, size is not None)
        return spec(sizes, op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
        return x[tuple(slice(int(b), None if s == -1 else int(b) + int(s)) for b, s in zip(begin, size))]


@lite_operator("STRIDED_SLICE")
class StridedSliceOp(LiteDefinition):
    """x[begin:end:strides, ...] as in NumPy. Bit i of a mask applies to entry i:

    begin_mask, end_mask: the bound is left out; ellipsis_mask: as many full dimensions as are left; new_axis_mask: a
    new dimension of size 1; shrink_axis_mask: one element, and the dimension goes. offset: end counts from begin, in
    which case end_mask has no effect.
    """

    x = Input(ANY)
    begin = Input((int32,), rank=1)
    end = Input((int32,), rank=1)
    strides = Input((int32,), rank=1)
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        dims, count, bounds = op.x.spec.shape.dims, op.begin.spec.shape[0], (op.begin, op.end, op.strides)
        if not same(count, op.end.spec.shape[0], op.strides.spec.shape[0]):
            raise refuse(
                "begin, end and strides differ in length", found=[i.spec.short() for i in bounds], wanted="one length"
            )
        if dims is None or count is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype)
        if count > MAX_RANK:
            raise refuse("more entries than dimensions", found=f"{count} entries", wanted=f"at most {MAX_RANK}")
        hidden: Sizes = [None] * count
        begin, end, strides = (hidden if (values := ints(bound)) is None else values for bound in bounds)
        return spec(dims_of_plan(_plan(op, dims, begin, end, strides)), op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray) -> np.ndarray:
        result: np.ndarray = x[key_of_plan(_plan(op, x.shape, begin.tolist(), end.tolist(), strides.tolist()))]
        return result


def _plan(op: Any, dims: Sizes, begin: Sizes, end: Sizes, strides: Sizes) -> list[Any]:
    """Plan a strided slice. Differs from the catalogue's: begin_mask sets the index of shrink_axis_mask to 0, and with
    `offset` entries of `end` count from `begin`."""
    masks, zeroed = SliceMasks(op), op.begin_mask & op.shrink_axis_mask
    masks.ellipsis &= (1 << len(begin)) - 1
    if op.offset:
        masks.end = 0
    items = masks.plan([0 if zeroed >> i & 1 else b for i, b in enumerate(begin)], end, strides, dims)
    if not op.offset:
        return items
    return [_from_begin(*i) if isinstance(i, tuple) and i[1] is not None else i for i in items]


def _from_begin(begin: int | None, count: int, stride: int | None, size: int | None) -> tuple[int | None, ...]:
    """Return the item of a plan for `count` places from `begin`. Raises InvalidArgumentError where they leave the
    dimension."""
    if size is None or stride is None:
        return None, None, stride, None
    first, _, _ = slice(begin, None, stride).indices(size)
    last = first + count
    if (stride > 0 and last > size) or (stride < 0 and last < -1):
        raise refuse("the slice leaves the input", found={"begin": first, "offset": count}, wanted=f"within {size}")
    return first, None if last == -1 and stride < 0 else max(last, 0), stride, size


def _check_range(indices: Any, size: int | None, what: str) -> None:
    if size is not None and indices.size and (int(indices.min()) < 0 or int(indices.max()) >= size):
        raise refuse(
            f"{what} index out of bounds",
            found=f"{int(indices.min())} to {int(indices.max())}",
            wanted=f"0 to {size - 1}",
        )


@lite_operator("GATHER")
class GatherOp(LiteDefinition):
    """Slices of x along an axis, by indices; the first batch_dims dimensions of both go together.

    .. math:: y_{b, o, i, r} = x_{b, o, indices_{b, i}, r}
    """

    x = Input(_GATHERED)
    indices = Input((int32, int64, int16))
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        x = op.x.spec
        dims = gathered_dims(x, op.indices.spec.shape, op.axis, op.batch_dims)
        if dims is not None and (elements := fixed(op.indices)) is not None:
            _check_range(elements, x.shape[op.axis], "gather")
        return spec(dims, x.dtype)

    def compute(op: Any, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        axis, batch = op.axis % x.ndim, batch_dims_of(op.batch_dims, indices.ndim)
        _check_range(indices, x.shape[axis], "gather")
        return gathered(x, indices, axis, batch)


def _locate(indices: Any, shape: Sequence[int | None], what: str) -> tuple[Any, ...]:
    """Return an index array for each of the first dimensions of an array of that shape, after checking their range."""
    parts = tuple(indices[..., i] for i in range(indices.shape[-1]))
    for part, size in zip(parts, shape):
        _check_range(part, size, what)
    return parts


@lite_operator("GATHER_ND")
class GatherNdOp(LiteDefinition):
    """The slice of x at each index vector: y[i] = x[indices[i, 0], indices[i, 1], ...]."""

    x = Input(_GATHERED)
    indices = Input((int32, int64, int16))
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        x = op.x.spec
        if x.shape.rank == 0:
            raise refuse("the input is a scalar", found=x.short(), wanted="one dimension or more")
        dims = vectors_gathered_dims(x, op.indices.spec)
        if dims is not None and (elements := fixed(op.indices)) is not None:
            _locate(elements, x.shape.as_list(), "gather_nd")
        return spec(dims, x.dtype)

    def compute(op: Any, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        if not indices.shape[-1]:
            return np.broadcast_to(x, (*indices.shape[:-1], *x.shape))
        result: np.ndarray = x[_locate(indices, x.shape, "gather_nd")]
        return result


@lite_operator("SCATTER_ND")
class ScatterNdOp(LiteDefinition):
    """Zeros of a shape, with each update added at its index vector."""

    indices = Input((int32,))
    updates = Input((float32, int32, int64, int8, uint8, bool_))
    shape = Input((int32,), rank=1)
    y = Output(like="updates")
    moves = True

    def infer(op: Any) -> TensorSpec:
        result, sizes = spec_of_sizes(op.shape, op.updates.spec.dtype)
        if sizes is not None:
            check_updates(op.indices.spec.shape, op.updates.spec.shape, result.shape)
            if (elements := fixed(op.indices)) is not None:
                _locate(elements, sizes, "scatter_nd")
        return result

    def compute(op: Any, indices: np.ndarray, updates: np.ndarray, shape: np.ndarray) -> np.ndarray:
        sizes = tuple(int(d) for d in shape)
        y = np.zeros(sizes, updates.dtype)
        add: Any = np.logical_or if updates.dtype.kind == "b" else np.add
        coordinates = _locate(indices, sizes, "scatter_nd")
        if coordinates:
            add.at(y, coordinates, updates)
        else:  # every update is of the whole
            add.reduce(updates.reshape(-1, *sizes), 0, updates.dtype, y)
        return y


_UPDATED = tuple(d for d in ANY if d is not string)


@lite_operator("DYNAMIC_UPDATE_SLICE")
class DynamicUpdateSliceOp(LiteDefinition):
    """x with a part replaced; where the part would leave x, it is moved inside.

    x, update: of one rank, update no larger; start_indices: int32 or int64 [rank]
    """

    x = Input(_UPDATED)
    update = Input(_UPDATED, like="x")
    start_indices = Input(INDEX, rank=1)
    y = Output(like="x")
    inplace = {"y": "x"}
    moves = True

    def infer(op: Any) -> TensorSpec:
        x, update = op.x.spec.shape.dims, op.update.spec.shape.dims
        if (
            x is not None
            and update is not None
            and (len(x) != len(update) or any(None not in (d, u) and u > d for d, u in zip(x, update)))
        ):
            raise refuse(
                "the update does not fit the operand",
                found={"x": text(x), "update": text(update)},
                wanted="the same rank, and sizes that are no larger",
            )
        if x is not None and not same(op.start_indices.spec.shape[0], len(x)):
            raise refuse(
                "start_indices does not fit the operand", found=text(op.start_indices.spec.shape), wanted=f"[{len(x)}]"
            )
        return TensorSpec(op.x.spec.shape, op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, update: np.ndarray, start_indices: np.ndarray) -> np.ndarray:
        y = np.array(x)
        starts = [min(max(int(i), 0), d - u) for i, d, u in zip(start_indices, x.shape, update.shape)]
        y[tuple(slice(s, s + u) for s, u in zip(starts, update.shape))] = update
        return y

    registration = DynamicUpdateSliceRegistration
