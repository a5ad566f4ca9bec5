"""Shape rules of arrays joined, indexed, padded, tiled, permuted, reshaped and multiplied.

Lives here: the rules of both dialects' operators, and their errors.
Not here: the operators (ops/array, ops/linalg, lite/ops), their array functions (array_functions.py), slices, splits
and blocks, axes (shape_inference.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.errors import InvalidArgumentError
from ..core.shapes import TensorShape, broadcast
from ..core.specs import TensorSpec
from .shape_inference import Sizes, axis_in, refuse

Dims = list[int | None]
_UNKNOWN: Dims = [None]  # one size


# ---- several arrays ------------------------------------------------------------------------------------------------


def merged_dims(values: Sequence[Any], free: int | None, name: str) -> Dims | None:
    """Merge the sizes of all values, except along dimension `free`; None if no rank is known.

    raises InvalidArgumentError naming the first two values that disagree, and the dimension
    """
    ranked = [(i, v.spec.shape.dims) for i, v in enumerate(values) if v.spec.shape.dims is not None]
    if not ranked:
        return None
    first, dims = ranked[0]
    merged, source = list(dims), [first] * len(dims)
    for i, other in ranked[1:]:
        if len(other) != len(dims):
            raise refuse(
                f"{name}[{first}] and {name}[{i}] differ in rank",
                f"{values[first].spec.short()}, {values[i].spec.short()}",
                "one rank for all",
            )
        for axis, size in enumerate(other):
            if axis == free or size is None or merged[axis] == size:
                continue
            if merged[axis] is not None:
                raise refuse(
                    f"Dimension {axis} of {name}[{source[axis]}] and {name}[{i}] differ: {merged[axis]} and {size}",
                    f"{values[source[axis]].spec.short()}, {values[i].spec.short()}",
                    "equal sizes in every dimension" + ("" if free is None else f" but {free}"),
                )
            merged[axis], source[axis] = size, i
    if free is not None and free < len(merged):
        merged[free] = None
    return merged


def concatenated_dims(values: Sequence[Any], axis: int, name: str) -> Dims | None:
    """Return the sizes of values one after the other along an axis; None if no rank is known.

    raises InvalidArgumentError without values, for scalars, and as `merged_dims`
    """
    if not values:
        raise refuse("no tensors to concatenate", [], "at least one")
    ranks = [v.spec.shape.rank for v in values if v.spec.shape.rank is not None]
    if not ranks:
        return None
    if ranks[0] == 0:
        raise refuse("a scalar cannot be concatenated", f"{name} of rank 0", "at least one dimension", do="ow.stack")
    axis = axis_in(axis, ranks[0])
    dims = merged_dims(values, axis, name)
    assert dims is not None
    sizes = [None if v.spec.shape.rank is None else v.spec.shape[axis] for v in values]
    dims[axis] = None if None in sizes else sum(n for n in sizes if n)
    return dims


def stacked_dims(values: Sequence[Any], axis: int, name: str) -> Dims | None:
    """Return the sizes of values of one shape along a new axis; None if no rank is known. Raises as `merged_dims`."""
    if not values:
        raise refuse("no tensors to stack", [], "at least one")
    dims = merged_dims(values, None, name)
    if dims is not None:
        dims.insert(axis_in(axis, len(dims) + 1), len(values))
    return dims


def unstacked_dims(x: TensorSpec, axis: int, num: int) -> Dims:
    """Return the sizes of the `num` slices along an axis, without it. Raises InvalidArgumentError for other numbers."""
    if x.shape.rank == 0:
        raise refuse("a scalar cannot be unstacked", x.short(), "at least one dimension")
    dims = x.shape.as_list()
    axis = axis_in(axis, len(dims))
    if dims[axis] not in (None, num):
        raise refuse(f"num is {num}, dimension {axis} has size {dims[axis]}", x.short(), f"num {dims[axis]}")
    return [*dims[:axis], *dims[axis + 1 :]]


def product_dims(a: TensorSpec, b: TensorSpec, transpose_a: bool, transpose_b: bool) -> Dims | None:
    """Return the sizes of products of matrices, the last two dimensions, whose leading dimensions broadcast; None if a
    rank is unknown. transpose_a, transpose_b: whether the matrices are stored transposed.

    raises InvalidArgumentError for ranks below 2, inner sizes that differ, batches that do not broadcast
    """
    for name, operand in (("In[0]", a), ("In[1]", b)):
        if operand.shape.rank is not None and operand.shape.rank < 2:
            raise refuse(f"{name} ndims must be >= 2", f"{a.short()}, {b.short()}", "matrices, or batches of them")
    if a.shape.dims is None or b.shape.dims is None:
        return None
    m, k = a.shape.dims[-2:][:: -1 if transpose_a else 1]
    inner, n = b.shape.dims[-2:][:: -1 if transpose_b else 1]
    if None not in (k, inner) and k != inner:
        raise refuse(
            f"Matrix size-incompatible: inner sizes differ, {k} and {inner}",
            {"a": a.short(), "b": b.short()},
            "a [..., m, k] and b [..., k, n]",
            do="transpose_a=True or transpose_b=True",
        )
    try:
        batch = broadcast(TensorShape(a.shape.dims[:-2]), TensorShape(b.shape.dims[:-2]))
    except InvalidArgumentError:
        raise refuse(
            "In[0] and In[1] must have compatible batch dimensions",
            {"a": a.short(), "b": b.short()},
            "batch dimensions that broadcast",
        ) from None
    return [*batch, m, n]


# ---- indices -------------------------------------------------------------------------------------------------------


def batch_dims_of(batch_dims: int, rank: int) -> int:
    """Return a number of batch dimensions counted from the front. Raises InvalidArgumentError beyond the rank."""
    if not -rank <= batch_dims <= rank:
        raise refuse(f"batch_dims {batch_dims} is out of range", batch_dims, f"in [{-rank}, {rank}]")
    return batch_dims + rank if batch_dims < 0 else batch_dims


def _merged_batch(params: TensorShape, indices: TensorShape, batch: int) -> Dims:
    """Merge the batch dimensions of params and indices. Raises InvalidArgumentError if they differ."""
    merged = []
    for i in range(batch):
        a, b = params[i], indices[i]
        if a is not None and b is not None and a != b:
            raise refuse(
                f"params.shape[{i}]: {a} should be equal to indices.shape[{i}]: {b}",
                {"params": params, "indices": indices},
                "equal batch dimensions",
            )
        merged.append(b if a is None else a)
    return merged


def gathered_dims(params: TensorSpec, indices: TensorShape, axis: int, batch_dims: int) -> Dims | None:
    """Return the sizes of slices of params along an axis by indices; None if a rank is unknown.

    raises InvalidArgumentError for an axis or batch_dims out of range, batches that differ
    """
    shape = params.shape
    if shape.rank is None or indices.rank is None:
        return None
    batch = batch_dims_of(batch_dims, indices.rank)
    if shape.rank == 0:
        raise refuse("params must be at least 1 dimensional", params.short(), "a dimension to gather along")
    axis = axis_in(axis, shape.rank)
    if batch > axis:
        raise refuse(f"batch_dims {batch} must be less than or equal to axis {axis}", batch, f"at most {axis}")
    return [*_merged_batch(shape, indices, batch), *shape[batch:axis], *indices[batch:], *shape[axis + 1 :]]


def vectors_gathered_dims(params: TensorSpec, indices: TensorSpec, batch: int = 0) -> Dims | None:
    """Return the sizes of the slices of params at index vectors; None if a rank or the length of a vector is unknown.

    raises InvalidArgumentError for longer vectors than params has dimensions, batches that differ
    """
    shape, rank = indices.shape, params.shape.rank
    if shape.rank is None or rank is None:
        return None
    if shape.rank <= batch or rank < batch:
        raise refuse(
            "batch_dims leaves no dimension of indices",
            {"params": params.short(), "indices": indices.short(), "batch_dims": batch},
            "indices of a higher rank than batch_dims",
        )
    merged, depth = _merged_batch(params.shape, shape, batch), shape[-1]
    if depth is None:
        return None
    if depth > rank - batch:
        raise refuse(
            f"index innermost dimension length must be <= params rank; saw: {depth} vs. {rank - batch}",
            {"params": params.short(), "indices": indices.short()},
            f"at most {rank - batch}",
        )
    return [*merged, *shape[batch:-1], *params.shape[batch + depth :]]


# ---- sizes changed -------------------------------------------------------------------------------------------------


def tiled_dims(x: TensorSpec, multiples: Sizes | None) -> Dims | None:
    """Return the sizes of x repeated multiples[i] times along dimension i; None if neither rank is known.

    raises InvalidArgumentError for a negative multiple, and unless there is one for each dimension
    """
    rank = x.shape.rank
    if multiples is None:
        return None if rank is None else _UNKNOWN * rank
    if any(m is not None and m < 0 for m in multiples):
        raise refuse("Expected multiples to be at least 0", list(multiples), "numbers of at least 0")
    if rank is None:
        return _UNKNOWN * len(multiples)
    if rank != len(multiples):
        raise refuse(
            f"Expected multiples argument to be a vector of length {rank} but got length {len(multiples)}",
            x.short(),
            f"{rank} multiples",
        )
    return [None if d is None or m is None else d * m for d, m in zip(x.shape, multiples)]


def padded_dims(
    x: TensorSpec, paddings: Any, mode: str = "CONSTANT", sign: int = 1, reflects_empty: bool = False
) -> Dims | None:
    """Return the sizes of x with paddings added (sign 1) or removed (sign -1); None if no rank is known.

    paddings: the operand, [rank, 2]. mode, reflects_empty: see `check_paddings`.
    raises InvalidArgumentError for another shape, and as `check_paddings`
    """
    form, rank = paddings.spec.shape, x.shape.rank
    if rank is None and form.rank is not None:
        rank = form[0]
    if rank is None:
        return None
    if not form.is_compatible_with((rank, 2)):
        raise refuse("paddings must be a matrix with 2 columns and a row for each dimension", form, f"({rank}, 2)")
    pairs, dims = paddings.constant, x.shape.dims
    if pairs is None or dims is None:
        return _UNKNOWN * rank
    check_paddings(pairs.tolist(), dims if sign > 0 else [None] * rank, mode, reflects_empty)
    sizes = [None if d is None else d + sign * (before + after) for d, (before, after) in zip(dims, pairs.tolist())]
    if any(n is not None and n < 0 for n in sizes):
        raise refuse("a dimension is smaller than its paddings", x.short(), "the padded sizes")
    return sizes


def check_paddings(
    pairs: Sequence[Sequence[int]], dims: Sizes, mode: str = "CONSTANT", reflects_empty: bool = False
) -> None:
    """Raise InvalidArgumentError for a padding that is negative or exceeds the elements to mirror.

    mode: CONSTANT, SYMMETRIC, which repeats the edge, or REFLECT. reflects_empty: whether REFLECT accepts a dimension
    without elements that has no padding, as in files
    """
    for i, ((before, after), d) in enumerate(zip(pairs, dims)):
        if before < 0 or after < 0:
            raise refuse(
                f"Paddings must be non-negative: {before} {after} in dimension {i}",
                [before, after],
                "numbers of at least 0",
            )
        if d is None or mode == "CONSTANT" or (reflects_empty and before == after == 0):
            continue
        limit = d - 1 if mode == "REFLECT" else d
        if before > limit or after > limit:
            raise refuse(
                f"paddings must be {'less' if mode == 'REFLECT' else 'no greater'} than the dimension size: "
                f"{before}, {after} in dimension {i} of size {d}",
                [before, after],
                f"at most {limit}",
            )


def permutation(perm: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return a permutation with nonnegative axes. Raises InvalidArgumentError if it is not one of `rank` dimensions."""
    axes = tuple(p + rank if p < 0 else p for p in perm)
    if sorted(axes) != list(range(rank)):
        raise refuse(
            "perm is not a permutation of the dimensions",
            list(perm),
            f"each of 0 to {rank - 1} once" if rank else "an empty list, for a scalar",
        )
    return axes


def axes_last(axes: Sequence[int], rank: int) -> tuple[list[int], list[int]]:
    """Return the permutation that moves axes to the end, in their order, and the one that moves them back."""
    last = [axis_in(a, rank) for a in axes]
    perm = [*(i for i in range(rank) if i not in last), *last]
    return perm, [perm.index(i) for i in range(rank)]


def axes_moved(source: Sequence[int] | int, destination: Sequence[int] | int, rank: int) -> list[int]:
    """Return the permutation that moves axes to places of the result; the rest keep their order."""
    sources, places = ([a] if isinstance(a, int) else a for a in (source, destination))
    moved = {axis_in(d, rank): axis_in(s, rank) for s, d in zip(sources, places, strict=True)}
    rest = iter([i for i in range(rank) if i not in moved.values()])
    return [moved[i] if i in moved else next(rest) for i in range(rank)]


def squeezed_dims(x: TensorSpec, axes: Sequence[int]) -> Dims | None:
    """Return the sizes of x without dimensions of size 1, those of `axes` or all; None if their number is unknown.

    raises InvalidArgumentError for an axis out of range or of another size
    """
    dims = x.shape.dims
    if dims is None or (not axes and None in dims):
        return None
    removed = {axis_in(a, len(dims)) for a in axes} or {i for i, d in enumerate(dims) if d == 1}
    for i in removed:
        if dims[i] not in (1, None):
            raise refuse(
                f"Can not squeeze dim[{i}], expected a dimension of 1, got {dims[i]}", x.short(), "dimensions of size 1"
            )
    return [d for i, d in enumerate(dims) if i not in removed]


def reshaped_dims(x: TensorSpec, sizes: Sequence[int], zeros_cancel: bool = True) -> Dims:
    """Return the sizes of a reshape, of which one may be -1, with that one inferred if the number of elements is known.

    zeros_cancel: see `with_inferred_size`
    raises InvalidArgumentError for sizes below -1, several of -1, and another number of elements
    """
    negative = [s for s in sizes if s < -1]
    if negative:
        raise refuse(f"Dimension {negative[0]} must be >= 0", list(sizes), "sizes of at least 0, or -1")
    inferred = sizes.count(-1)
    if inferred > 1:
        raise refuse("Only one input size may be -1", list(sizes), "one -1 at most")
    n, product = x.shape.num_elements(), math.prod(s for s in sizes if s >= 0)
    if n is not None and (n != product if not inferred else n % product if product else n):
        raise refuse(
            f"Input to reshape is a tensor with {n} values, but the requested shape has {product}"
            + (" times an unknown size" if inferred else ""),
            x.short(),
            f"shape {list(sizes)}",
        )
    if not inferred or n is not None or not (product or zeros_cancel):
        return list(with_inferred_size(x.shape.dims or (), sizes, zeros_cancel))
    return [None if s == -1 else s for s in sizes]


def with_inferred_size(dims: Sizes, sizes: Sequence[int], zeros_cancel: bool = True) -> list[int]:
    """Return the sizes of a reshape of known, fitting sizes with a -1 inferred.

    zeros_cancel: whether zeros on both sides cancel, so that [0, 2] as [0, -1] is [0, 2]; otherwise -1 is then 1
    """
    if -1 not in sizes:
        return list(sizes)
    known = [s for s in sizes if s >= 0]
    if 0 in known and not zeros_cancel:
        return [1 if s == -1 else s for s in sizes]
    elements = math.prod(d for d in dims if d is not None and (d or 0 not in known))
    return [elements // math.prod(s for s in known if s) if s == -1 else s for s in sizes]
