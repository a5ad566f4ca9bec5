"""Shape inference of both dialects: shapes given as tensors, axes, numbers of steps, and the rules of structural
operators: slices, splits, blocks of space, scattered updates, bitcasts.

Lives here: helpers of `infer` rules, rules of more than one operator, and their errors.
Not here: rules of single operators (ops/array, lite/ops), their array functions (array_functions.py), broadcasting
(core/shapes.py).

A size or bound is an int, or None if unknown; a rule of operands takes them as a shape rule does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError
from ..core.shapes import UNKNOWN, TensorShape
from ..core.specs import TensorSpec


def shape_from(operand: Any) -> TensorShape:
    """Return the shape that a 1-D integer tensor specifies, as far as it is known; a size of -1 is unknown.

    raises InvalidArgumentError for sizes below -1
    """
    constant = operand.constant
    if constant is not None:
        sizes: Iterable[Any] = constant.reshape(-1).tolist()
    else:
        partial = getattr(operand, "partial", None)  # traced tensors know what of a shape is known
        if partial is None:
            length = operand.spec.shape
            if length.rank == 1 and length[0] is not None:
                return TensorShape([None] * length[0])
            return UNKNOWN
        sizes = partial
    dims = []
    for size in sizes:
        if size is not None and size < -1:
            raise InvalidArgumentError(what=f"Dimension {size} must be >= 0", found=list(sizes))
        dims.append(None if size is None or size == -1 else int(size))
    return TensorShape(dims)


def elements_of(operand: Any) -> list[int | None] | None:
    """Return the elements of a 1-D integer tensor, None for unknown ones; None if their number is unknown."""
    constant = operand.constant
    if constant is not None:
        result: list[int | None] | None = constant.reshape(-1).tolist()
        return result
    partial = getattr(operand, "partial", None)
    if partial is not None:
        return list(partial)
    length = operand.spec.shape
    return [None] * length[0] if length.rank == 1 and length[0] is not None else None


def refuse(what: str, found: object = None, wanted: object = None, do: str | None = None) -> InvalidArgumentError:
    """Return the error of a shape rule; the caller of the rule adds operator and node."""
    return InvalidArgumentError(what=what, found=found, wanted=wanted, do=do)


def axis_in(axis: int, rank: int, what: str = "axis") -> int:
    """Return `axis` counted from the front. Raises InvalidArgumentError unless it is in [-rank, rank)."""
    if not -rank <= axis < rank:
        raise InvalidArgumentError(what=f"{what} {axis} is out of range", wanted=f"in [{-rank}, {rank})")
    return axis + rank if axis < 0 else axis


def axes_in(axes: Any, rank: int) -> tuple[int, ...]:
    """Return axes counted from the front, each once; None means all. Raises InvalidArgumentError."""
    if axes is None:
        return tuple(range(rank))
    normalized = tuple(axis_in(a, rank) for a in axes)
    if len(set(normalized)) != len(normalized):
        raise InvalidArgumentError(what="an axis is given twice", found=list(axes), wanted="each axis once")
    return normalized


def reduced_dims(dims: Sequence[int | None], axes: Any, keepdims: bool) -> list[int | None]:
    """Return the sizes of a reduction over axes counted from the front."""
    return [1 if i in axes else d for i, d in enumerate(dims) if keepdims or i not in axes]


def static_axes(axis: Any, what: str = "axis") -> tuple[int, ...] | None:
    """Return constant axes: from None, an int, a sequence, or a tensor or array whose value is known.

    raises TypeError for a tensor whose value is known only when the graph runs
    """
    if axis is None:
        return None
    if type(axis) is int:
        return (axis,)
    value = known_value(axis)
    if hasattr(value, "reshape"):
        value = value.reshape(-1).tolist()
    several = isinstance(value, Iterable)
    values = [known_value(a) for a in value] if several else [value]
    if any(a is None for a in values):
        raise TypeError(f"{what} must be known while tracing; found {axis!r}. Pass Python integers")
    return tuple(map(int, values)) if several else (values[0].__index__(),)


def known_value(value: Any) -> Any:
    """Return the value of a tensor if it is known without running, else None; other objects as they are.

    Known are constants, and in a trace small tensors that follow from constants, shapes and ranks.
    """
    constant = getattr(value, "constant", value)
    return constant if constant is not None else getattr(value, "static_value", None)


def is_static(axis: Any) -> bool:
    """Return whether `static_axes` and `static_int` accept an argument: no part is a tensor of unknown value."""
    if axis is None or isinstance(axis, int):
        return True
    value = known_value(axis)
    if isinstance(value, (list, tuple)):
        return all(known_value(a) is not None for a in value)
    return value is not None


def static_int(value: Any, what: str) -> int:
    """Return one integer from an int or a tensor whose value is known. Raises TypeError otherwise."""
    if type(value) is int:
        return value
    axes = static_axes(value, what)
    if axes is None or len(axes) != 1:
        raise TypeError(f"{what} is one integer; found {value!r}")
    return axes[0]


def number_of_steps(start: Any, limit: Any, delta: Any) -> int | None:
    """Return ceil((limit - start) / delta) of NumPy scalars, delta of the right sign; None if not finite.

    The quotient of floats is rounded to their dtype first, as in TensorFlow: in float32 range(0.1, 1.1, 0.1) has 10
    numbers, though the quotient of these three numbers is 10.00000007.
    """
    if start.dtype.kind in "iu":
        return -((int(start) - int(limit)) // int(delta))
    with np.errstate(all="ignore"):
        count = float((limit - start) / delta)
    return math.ceil(count) if math.isfinite(count) and count < 2**62 else None


Sizes = Sequence[int | None]


def slice_dims(dims: Sizes, begin: Sizes, size: Sizes, sizes_known: bool = True) -> list[int | None]:
    """Return the sizes of a slice. sizes_known: whether all of `size` is known, so that -1 means the rest.

    raises InvalidArgumentError naming the first dimension in which the slice is not inside the tensor
    """
    return [_slice_size(i, d, b, s, sizes_known) for i, (d, b, s) in enumerate(zip(dims, begin, size))]


def _slice_size(i: int, d: int | None, begin: int | None, size: int | None, size_known: bool) -> int | None:
    if size is not None and (size < -1 or (d is not None and size > d)):
        raise _out_of_range(f"size[{i}]", size, d)
    if begin is not None and (begin < 0 or (d is not None and begin > d)):
        raise _out_of_range(f"begin[{i}]", begin, d)
    if size is None or size == -1:
        return d - begin if size_known and size == -1 and d is not None and begin is not None else None
    if begin is not None and d is not None and begin + size > d:
        raise _out_of_range(f"size[{i}]", size, d - begin)
    return size


def _out_of_range(what: str, value: int, limit: int | None) -> InvalidArgumentError:
    room = f"in [0, {limit}]" if limit is not None else "of at least 0"
    return InvalidArgumentError(what=f"Expected {what} {room}, but got {value}", found=value, wanted=room)


class SliceMasks:
    """The five masks of a strided slice, which determine a Python index together with begin, end and strides."""

    __slots__ = ("begin", "ellipsis", "end", "new_axis", "shrink_axis")

    def __init__(self, op: Any) -> None:
        self.begin, self.end, self.ellipsis = op.begin_mask, op.end_mask, op.ellipsis_mask
        self.new_axis, self.shrink_axis = op.new_axis_mask, op.shrink_axis_mask

    def plan(self, begin: Sizes, end: Sizes, strides: Sizes, dims: Sizes) -> list[Any]:
        """Return the key item by item: None for a new axis, an int, or a (begin, end, stride, size of the dimension)
        each of which is None where unknown or left out.

        raises InvalidArgumentError where the key does not fit a tensor of sizes `dims`
        """
        n = len(strides)
        if not len(begin) == len(end) == n:
            raise InvalidArgumentError(
                what="begin, end and strides differ in length",
                found={"begin": len(begin), "end": len(end), "strides": n},
                wanted="one length",
            )
        if self.ellipsis & (self.ellipsis - 1):
            raise InvalidArgumentError(
                what="Multiple ellipses in slice spec not allowed", found=bin(self.ellipsis), wanted="one at most"
            )
        indexed = sum(not (self.ellipsis | self.new_axis) >> i & 1 for i in range(n))
        if indexed > len(dims):
            raise InvalidArgumentError(
                what=f"Index out of range using input dim {len(dims)}; input has only {len(dims)} dims",
                found=f"{indexed} indices",
                wanted=f"at most {len(dims)} indices other than None and ...",
            )
        items: list[Any] = []
        axis = 0
        for i in range(n):
            bit = 1 << i
            if self.ellipsis & bit:
                omitted = len(dims) - indexed
                items.extend((None, None, 1, d) for d in dims[axis : axis + omitted])
                axis += omitted
            elif self.new_axis & bit:
                items.append(None)
            else:
                items.append(self._item(i, bit, begin[i], end[i], strides[i], dims[axis], axis))
                axis += 1
        items.extend((None, None, 1, d) for d in dims[axis:])
        return items

    def _item(
        self, i: int, bit: int, begin: int | None, end: int | None, stride: int | None, d: int | None, axis: int
    ) -> object:
        if stride == 0:
            raise InvalidArgumentError(what=f"strides[{i}] must be non-zero", found=0, wanted="any other number")
        if self.shrink_axis & bit:
            if stride is not None and stride < 0:
                raise InvalidArgumentError(
                    what="only stride 1 allowed on non-range indexing.", found=f"strides[{i}] = {stride}", wanted="1"
                )
            if begin is not None and d is not None and not -d <= begin < d:
                raise InvalidArgumentError(
                    what=f"slice index {begin} of dimension {axis} out of bounds", found=begin, wanted=f"in [{-d}, {d})"
                )
            return -1 if begin is None else begin
        is_static = (
            (begin is not None or self.begin & bit) and (end is not None or self.end & bit) and stride is not None
        )
        return (None if self.begin & bit else begin, None if self.end & bit else end, stride, d if is_static else None)


def key_of_plan(items: Sequence[Any]) -> tuple[Any, ...]:
    """Return the NumPy index of a plan of `SliceMasks`."""
    return (*(slice(*item[:3]) if isinstance(item, tuple) else item for item in items), ...)


def dims_of_plan(items: Sequence[Any]) -> list[int | None]:
    """Return the sizes of a slice by a plan of `SliceMasks`, None for unknown ones."""
    return [_length(item) for item in items if not isinstance(item, int)]


def _length(item: Any) -> int | None:
    if item is None:
        return 1
    begin, end, stride, d = item
    return None if d is None else len(range(*slice(begin, end, stride).indices(d)))


def part_sizes(sizes: Sequence[int], n: int, axis: int) -> list[int]:
    """Return the sizes of a split, with a -1 resolved.

    raises InvalidArgumentError unless they sum to n, the size of the axis
    """
    inferred = [i for i, s in enumerate(sizes) if s == -1]
    total = sum(s for s in sizes if s > 0)
    if len(inferred) > 1 or any(s < -1 for s in sizes) or (total > n if inferred else total != n):
        raise InvalidArgumentError(
            what=f"size_splits do not make up dimension {axis} of size {n}",
            found=list(sizes),
            wanted=f"sizes that add up to {n}, of which one may be -1",
        )
    return [n - total if s == -1 else s for s in sizes]


def known_bounds(bounds: np.ndarray) -> list[int]:
    """Return bounds as numbers. Raises TypeError if one is unknown: tracing follows shapes through slices."""
    return bounds.tolist() if bounds.dtype != object else [int(b) for b in bounds]


# ---- blocks of space ------------------------------------------------------------------------------------------------


def depth_spec(x: TensorSpec, axes: tuple[int, int, int], size: int, to_depth: bool) -> TensorSpec:
    """Return the spec of images whose blocks of pixels move to their channels, or back.

    axes: of height, width and channels. raises InvalidArgumentError for sizes that the block does not divide
    """
    dims = x.shape.with_rank(4).as_list()
    out, factors = list(dims), dict(zip(axes, (size, size, size * size)))
    for i, factor in factors.items():
        d = dims[i]
        if d is None:
            continue
        if (i == axes[2]) == to_depth:
            out[i] = d * factor
        elif d % factor == 0:
            out[i] = d // factor
        elif to_depth:
            raise InvalidArgumentError(
                what=f"dimension {i} of size {d} should be divisible by block_size {size}",
                found=x.short(),
                wanted=f"a multiple of {size}",
            )
        else:
            raise InvalidArgumentError(
                what=f"depth dimension {d} should be divisible by block_size squared, {factor}",
                found=x.short(),
                wanted=f"a multiple of {factor}",
            )
    return x.with_shape(out)


def batch_blocks_spec(x: TensorSpec, block_shape: Any, borders: Any, to_batch: bool) -> TensorSpec:
    """Return the spec of x [n, *space, *rest] with blocks of its padded space moved to the batch, or back and cropped.

    borders: the operand of paddings or crops, [m, 2].
    raises InvalidArgumentError where the sizes do not fit
    """
    name = "paddings" if to_batch else "crops"
    form, dims = borders.spec.shape, x.shape.dims
    m = block_shape.spec.shape[0] if block_shape.spec.shape.rank else None
    if not form.is_compatible_with((m, 2)):
        raise InvalidArgumentError(
            what=f"{name} must have a row of 2 for each of block_shape's {m} sizes", found=form, wanted=f"({m}, 2)"
        )
    if dims is None:
        return x.with_shape(UNKNOWN)
    if m is None:
        return x.with_shape([None] * len(dims))
    if len(dims) < m + 1:
        raise InvalidArgumentError(
            what=f"input rank should be >= {m + 1} instead of {len(dims)}",
            found=x.short(),
            wanted="a dimension for the batch and for each of block_shape",
        )
    out = [None] * (m + 1) + list(dims[m + 1 :])
    if block_shape.constant is None:
        return x.with_shape(out)
    sizes = block_shape.constant.tolist()
    if any(b < 1 for b in sizes):
        raise InvalidArgumentError(what="block_shape values must be positive", found=sizes, wanted="at least 1")
    block = math.prod(sizes)
    if dims[0] is not None:
        if not to_batch and dims[0] % block:
            raise InvalidArgumentError(
                what=f"Batch dimension {dims[0]} should be divisible by {block}, the product of block_shape",
                found=x.short(),
                wanted=f"a multiple of {block}",
            )
        out[0] = dims[0] * block if to_batch else dims[0] // block
    if borders.constant is not None:
        for i, (size, b, (before, after)) in enumerate(zip(dims[1 : m + 1], sizes, borders.constant.tolist()), 1):
            if before < 0 or after < 0:
                raise InvalidArgumentError(
                    what=f"{name} cannot be negative", found=[before, after], wanted="at least 0"
                )
            if size is not None:
                out[i] = blocks_size(i, size, b, before, after, to_batch)
    return x.with_shape(out)


def blocks_size(i: int, size: int, block: int, before: int, after: int, to_batch: bool) -> int:
    """Return the size of a dimension in blocks after padding, or as blocks before cropping.

    raises InvalidArgumentError where a block does not divide it, or the crops are larger
    """
    if not to_batch:
        if size * block < before + after:
            raise InvalidArgumentError(
                what=f"crops {before} and {after} are more than dimension {i} has, {size * block}",
                found=before + after,
                wanted=f"at most {size * block} together",
            )
        return size * block - before - after
    if (size + before + after) % block:
        raise InvalidArgumentError(
            what=f"padded dimension {i} of size {size + before + after} is not divisible by its block {block}",
            found=size + before + after,
            wanted=f"a multiple of {block}",
        )
    return (size + before + after) // block


# ---- updates by index, elements of other types ----------------------------------------------------------------------


def check_updates(indices: TensorShape, updates: TensorShape, shape: TensorShape) -> None:
    """Check that updates.shape is indices.shape[:-1] + shape[K:]. Raises InvalidArgumentError."""
    if indices.rank == 0:
        raise InvalidArgumentError(what="indices must have rank at least 1", found="a scalar", wanted="index vectors")
    if indices.rank is None or shape.rank is None or indices[-1] is None:
        return
    if indices[-1] > shape.rank:
        raise InvalidArgumentError(
            what=f"indices name {indices[-1]} dimensions, the shape has {shape.rank}",
            found={"indices": indices, "shape": shape},
            wanted="no more than the shape has",
        )
    expected = indices[:-1].concatenate(shape[indices[-1] :])
    if not expected.is_compatible_with(updates):
        raise InvalidArgumentError(
            what="updates do not have the shape that indices and shape ask for",
            found={"indices": indices, "updates": updates, "shape": shape},
            wanted=f"updates of shape {expected}",
        )


def bitcast_spec(x: TensorSpec, dtype: DType) -> TensorSpec:
    """Return the spec of the bits of x as elements of another dtype: a wider one takes the last dimension, a narrower
    one adds one. Raises InvalidArgumentError where the last dimension is not as long as the wider one asks for."""
    size, target_size = x.dtype.size, dtype.size
    if size == target_size or x.shape.rank is None:
        return x.with_dtype(dtype)
    if size > target_size:
        return TensorSpec([*x.shape, size // target_size], dtype)
    if x.shape.rank == 0 or x.shape[-1] not in (None, target_size // size):
        raise InvalidArgumentError(
            what=f"Cannot bitcast from {x.dtype.name} to {dtype.name}",
            found=x.short(),
            wanted=f"a last dimension of {target_size // size}",
        )
    return TensorSpec(x.shape[:-1], dtype)
