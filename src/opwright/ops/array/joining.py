"""Joining tensors and taking them apart along a dimension.

Lives here: Concat, Pack, Unpack, Split, SplitV, Tile, TileGrad, and `stack`, `unstack`, `split`, `repeat` over them.
Not here: slices (slicing.py), batches made of blocks (spaces.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import index
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from .. import dispatch
from ..attributes import Attr, at_least
from ..definition import Input, Output, operator
from ..inference import axis_in, elements_of, shape_from, static_int
from .casting import cast
from .shaping import dims_tensor, expand_dims, reshape, shape_op


def _common_dims(values: Any, free: int | None, name: str) -> list[int | None] | None:
    """The sizes that all of `values` have, None for unknown ones and at `free`; None if no rank is known.

    raises InvalidArgumentError naming the first two that disagree, and the dimension
    """
    known = [(i, v.spec.shape.dims) for i, v in enumerate(values) if v.spec.shape.dims is not None]
    if not known:
        return None
    first, dims = known[0]
    merged, source = list(dims), [first] * len(dims)
    for i, other in known[1:]:
        if len(other) != len(dims):
            raise InvalidArgumentError(what=f"{name}[{first}] and {name}[{i}] differ in rank",
                                       found=f"{values[first].spec.short()}, {values[i].spec.short()}",
                                       wanted="one rank for all")  # fmt: skip
        for axis, size in enumerate(other):
            if axis == free or size is None or merged[axis] == size:
                continue
            if merged[axis] is not None:
                raise InvalidArgumentError(
                    what=f"Dimension {axis} of {name}[{source[axis]}] and {name}[{i}] differ: {merged[axis]} and {size}",
                    found=f"{values[source[axis]].spec.short()}, {values[i].spec.short()}",
                    wanted="equal sizes in every dimension" + ("" if free is None else f" but {free}"))  # fmt: skip
            merged[axis], source[axis] = size, i
    if free is not None and free < len(merged):
        merged[free] = None
    return merged


@operator
class Concat:
    """Tensors one after another along an existing dimension.

    .. math:: output[..., o_k + j, ...] = values_k[..., j, ...], \\quad o_k = \\sum_{l<k} n_l

    values: tensors of one dtype and rank, with equal sizes in all dimensions but `axis`.
    raises InvalidArgumentError naming which values disagree on which dimension, or for scalars
    """

    values = Input(repeated=True)
    output = Output(like="values")
    axis = Attr(int)

    def infer(op) -> Any:
        if not op.values:
            raise InvalidArgumentError(what="no tensors to concatenate", wanted="at least one")
        dtype = op.values[0].spec.dtype
        ranks = [v.spec.shape.rank for v in op.values if v.spec.shape.rank is not None]
        if not ranks:
            return TensorSpec(UNKNOWN, dtype)
        if ranks[0] == 0:
            raise InvalidArgumentError(what="a scalar cannot be concatenated", wanted="at least one dimension", do="ow.stack")
        axis = axis_in(op.axis, ranks[0])
        dims = _common_dims(op.values, axis, "values")
        assert dims is not None
        sizes = [None if v.spec.shape.rank is None else v.spec.shape[axis] for v in op.values]
        dims[axis] = None if None in sizes else sum(sizes)
        return TensorSpec(dims, dtype)

    def compute(op, values) -> Any:
        return np.concatenate(values, op.axis)

    def gradient(op, doutput) -> Any:
        if len(op.values) == 1:
            return [doutput]
        sizes = [v.shape[op.axis] if v.shape.rank is not None else None for v in op.values]
        if None in sizes:
            from .slicing import getitem

            sizes = [getitem(shape_op(v), op.axis) if n is None else n for v, n in zip(op.values, sizes)]
        return split(doutput, dims_tensor(sizes), op.axis, num=len(sizes))


def concat(values: Any, axis: Any, name: str | None = "concat") -> Any:
    """See Concat. values: a list, or one tensor, which is given back."""
    if not isinstance(values, (list, tuple)):
        values = [values]
    return Concat(values, axis=static_int(axis, "axis"), name=name)


@operator
class Pack:
    """Tensors of one shape side by side along a new dimension.

    .. math:: output[..., k, ...] = values_k[...]

    raises InvalidArgumentError naming which values disagree on which dimension
    """

    values = Input(repeated=True)
    output = Output(like="values")
    axis = Attr(int, default=0)

    def infer(op) -> Any:
        if not op.values:
            raise InvalidArgumentError(what="no tensors to stack", wanted="at least one")
        dims = _common_dims(op.values, None, "values")
        if dims is None:
            return TensorSpec(UNKNOWN, op.values[0].spec.dtype)
        dims.insert(axis_in(op.axis, len(dims) + 1), len(op.values))
        return TensorSpec(dims, op.values[0].spec.dtype)

    def compute(op, values) -> Any:
        return np.stack(values, op.axis)

    def gradient(op, doutput) -> Any:
        return Unpack(doutput, num=len(op.values), axis=op.axis)


def stack(values: Any, axis: Any = 0, name: str | None = "stack") -> Any:
    """See Pack."""
    return Pack(values, axis=static_int(axis, "axis"), name=name)


parallel_stack = stack


@operator
class Unpack:
    """The slices along a dimension, without it.

    .. math:: output_k[...] = value[..., k, ...]

    num: how many; the size of the dimension.
    raises InvalidArgumentError for a scalar, or another size than num
    """

    value = Input()
    output = Output(like="value", repeated=True)
    num = Attr(int, check=at_least(0))
    axis = Attr(int, default=0)

    def infer(op) -> Any:
        spec = op.value.spec
        if spec.shape.rank is None:
            return [spec] * op.num
        if spec.shape.rank == 0:
            raise InvalidArgumentError(what="a scalar cannot be unstacked", wanted="at least one dimension")
        at = axis_in(op.axis, spec.shape.rank)
        if spec.shape[at] not in (None, op.num):
            raise InvalidArgumentError(what=f"num is {op.num}, dimension {at} has size {spec.shape[at]}", found=spec.short())
        return [spec.with_shape([*spec.shape[:at], *spec.shape[at + 1 :]])] * op.num

    def compute(op, value) -> Any:
        if value.shape[op.axis] != op.num:
            raise InvalidArgumentError(what=f"num is {op.num}, dimension {op.axis} has size {value.shape[op.axis]}")
        front = np.moveaxis(value, op.axis, 0)
        return [front[k, ...] for k in range(op.num)]

    def gradient(op, doutput) -> Any:
        return stack(doutput, op.axis) if op.num else None


def unstack(value: Any, num: int | None = None, axis: Any = 0, name: str | None = "unstack") -> Any:
    """See Unpack. num: by default the size of the dimension, which then must be known. Raises ValueError if it is not."""
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
class Split:
    """Equal parts of a tensor along a dimension.

    .. math:: output_k[..., j, ...] = value[..., k n + j, ...]

    raises InvalidArgumentError if the size is not a multiple of num_split
    """

    value = Input()
    output = Output(like="value", repeated=True)
    num_split = Attr(int, check=at_least(1))
    axis = Attr(int, default=0)

    def infer(op) -> Any:
        spec = op.value.spec
        if spec.shape.rank is None:
            return [spec] * op.num_split
        at = axis_in(op.axis, spec.shape.rank)
        n = spec.shape[at]
        if n is not None and n % op.num_split:
            raise InvalidArgumentError(what=f"dimension {at} of size {n} does not split into {op.num_split} equal parts",
                                       found=spec.short())  # fmt: skip
        part = [*spec.shape[:at], None if n is None else n // op.num_split, *spec.shape[at + 1 :]]
        return [spec.with_shape(part)] * op.num_split

    def compute(op, value) -> Any:
        return np.split(value, op.num_split, op.axis)

    def gradient(op, doutput) -> Any:
        return concat(doutput, op.axis)


@operator
class SplitV:
    """Parts of given sizes along a dimension; one size may be -1 and is then what is left.

    .. math:: output_k[..., j, ...] = value[..., o_k + j, ...], \\quad o_k = \\sum_{l<k} size\\_splits_l

    size_splits: int32 or int64 [num_split].
    raises InvalidArgumentError if the sizes do not add up to the dimension's, or more than one is -1
    """

    value = Input()
    size_splits = Input(index, rank=1)
    output = Output(like="value", repeated=True)
    num_split = Attr(int, check=at_least(1))
    axis = Attr(int, default=0)

    def infer(op) -> Any:
        spec, sizes = op.value.spec, elements_of(op.size_splits)
        if sizes is not None and len(sizes) != op.num_split:
            raise InvalidArgumentError(what=f"num is {op.num_split}, there are {len(sizes)} sizes", found=sizes)
        if spec.shape.rank is None:
            return [spec] * op.num_split
        at = axis_in(op.axis, spec.shape.rank)
        if op.size_splits.constant is not None and spec.shape[at] is not None:
            sizes = _part_sizes(sizes, spec.shape[at], at)
        known = [None if s is None or s < 0 else s for s in sizes or [None] * op.num_split]
        return [spec.with_shape([*spec.shape[:at], s, *spec.shape[at + 1 :]]) for s in known]

    def compute(op, value, size_splits) -> Any:
        sizes = _part_sizes(size_splits.tolist(), value.shape[op.axis], op.axis)
        return np.split(value, np.cumsum(sizes)[:-1], op.axis)

    def gradient(op, doutput) -> Any:
        return concat(doutput, op.axis), None


def _part_sizes(sizes: Any, n: int, axis: int) -> list[int]:
    """Sizes with a -1 worked out. Raises InvalidArgumentError where they do not make up `n`."""
    rest = [i for i, s in enumerate(sizes) if s == -1]
    total = sum(s for s in sizes if s > 0)
    if len(rest) > 1 or any(s < -1 for s in sizes) or (total > n if rest else total != n):
        raise InvalidArgumentError(what=f"size_splits do not make up dimension {axis} of size {n}", found=list(sizes),
                                   wanted=f"sizes that add up to {n}, of which one may be -1")  # fmt: skip
    return [n - total if s == -1 else s for s in sizes]


def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str | None = "split") -> Any:
    """Equal parts for an int (see Split), parts of given sizes for a list or 1-D tensor (see SplitV).

    num: how many parts, where sizes are a tensor of unknown length.
    raises ValueError where the number of parts cannot be known
    """
    value, axis = dispatch.to_tensor(value), static_int(axis, "axis")
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
class Tile:
    """The tensor repeated as a whole along each dimension.

    .. math:: output[i_0, ..., i_n] = input[i_0 \\bmod d_0, ..., i_n \\bmod d_n]

    multiples: int32 or int64 [rank], at least 0. Output sizes: d_k multiples_k.
    """

    input = Input()
    multiples = Input(index, rank=1)
    output = Output(like="input")

    def infer(op) -> Any:
        spec, multiples = op.input.spec, elements_of(op.multiples)
        if multiples is None:
            return spec.with_shape([None] * spec.shape.rank if spec.shape.rank is not None else UNKNOWN)
        negative = [m for m in multiples if m is not None and m < 0]
        if negative:
            raise InvalidArgumentError(what=f"Expected multiples to be at least 0, found {negative[0]}", found=multiples)
        if spec.shape.rank is None:
            return spec.with_shape([None] * len(multiples))
        if spec.shape.rank != len(multiples):
            raise InvalidArgumentError(what=f"Expected multiples argument to be a vector of length {spec.shape.rank} but "
                                       f"got length {len(multiples)}", found=spec.short())  # fmt: skip
        return spec.with_shape([None if d is None or m is None else d * m for d, m in zip(spec.shape, multiples)])

    def compute(op, input, multiples) -> Any:
        return np.tile(input, tuple(multiples.tolist())) if multiples.size else input

    def gradient(op, doutput) -> Any:
        return TileGrad(doutput, op.multiples, shape_op(op.input)), None


tile = Tile.as_function("tile")


@operator
class TileGrad:
    """What tiling repeated, added up: the gradient of Tile.

    .. math:: output[j] = \\sum_{i \\bmod shape = j} input[i]

    shape: of the tensor that was tiled.
    """

    input = Input()
    multiples = Input(index, rank=1)
    shape = Input(index, rank=1)
    output = Output(like="input")

    def infer(op) -> Any:
        return op.input.spec.with_shape(shape_from(op.shape))

    def compute(op, input, multiples, shape) -> Any:
        parts = [n for m, d in zip(multiples.tolist(), shape.tolist()) for n in (m, d)]
        return np.asarray(input).reshape(parts).sum(tuple(range(0, len(parts), 2)), dtype=input.dtype)

    def gradient(op, doutput) -> Any:
        return tile(doutput, op.multiples), None, None


def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Any:
    """Each slice along `axis` repeated `repeats` times; axis None: of the flat tensor. Built of Tile, or of Gather.

    repeats: one number for all slices, or one for each.
    raises InvalidArgumentError if their number does not fit, ValueError where the rank is not known
    """
    data, repeats = dispatch.to_tensor(input), dispatch.to_tensor(repeats)
    repeats = repeats if repeats.dtype in index else cast(repeats, dtypes.int32)
    if axis is None or data.shape.rank == 0:
        data, axis = reshape(data, [-1]), 0
    if data.shape.rank is None or repeats.shape.rank not in (0, 1):
        raise ValueError(f"repeat: the rank of the input must be known and that of repeats 0 or 1; found shapes {data.shape}, "
                         f"{repeats.shape}")  # fmt: skip
    axis = axis_in(static_int(axis, "axis"), data.shape.rank)
    n, count = data.shape[axis], None if repeats.shape.rank == 0 else repeats.shape[0]
    if count == 1 or repeats.shape.rank == 0:
        return _repeat_all(data, reshape(repeats, []), axis, name)
    if n is not None and count is not None and n != count:
        raise InvalidArgumentError(op="repeat", node=name, what=f"{count} repeats for {n} slices",
                                   found=data.spec.short(), wanted="one for each slice, or one for all")  # fmt: skip
    from .indexing import gather
    from .selecting import sequence_mask, where
    from .slicing import getitem

    return gather(data, getitem(where(sequence_mask(repeats)), (slice(None), 0)), axis=axis, name=name)


def _repeat_all(data: Any, times: Any, axis: int, name: str | None) -> Any:
    from .slicing import getitem

    sizes = [getitem(shape_op(data), i) if d is None else d for i, d in enumerate(data.shape)]
    sizes[axis] = sizes[axis] * (cast(times, dtypes.int32) if times.constant is None else int(times.constant))
    multiples = [1] * (data.shape.rank + 1)
    multiples[axis + 1] = times
    return reshape(tile(expand_dims(data, axis + 1), dims_tensor(multiples)), dims_tensor(sizes), name=name)
