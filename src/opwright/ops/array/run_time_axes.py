"""Functions along axes known only at run time.

Lives here: reductions, concatenation, splits and others along such axes.
Not here: the operators, whose axes are attributes, and Permute (permutation.py).

Each function permutes the tensor, by a permutation computed in the graph, so that the axes come first, calls the
operator along axis 0, and permutes the result back. Gradients, conversion and compilation are those of the operators.
Permute validates the permutation, and thereby the axes: out of range or repeated, they do not yield a permutation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core import dtypes
from .. import array, dispatch, math
from .concatenation import Concat
from .constants import range as range_
from .permutation import Permute
from .shape_operators import dims_tensor, expand_dims, rank, reshape, shape_op, size
from .slices import getitem
from .type_conversion import cast

if TYPE_CHECKING:
    from ..tensor import Tensor


class AxesFirst(NamedTuple):
    """A tensor with some axes moved to the front.

    tensor: the permuted tensor; perm: the permutation; axis_count: the number of axes moved, None if unknown.
    """

    tensor: Any
    perm: Any
    axis_count: int | None

    def restore(self, tensor: Any, name: str | None = None) -> Tensor:
        """Apply the inverse permutation to a tensor of the same rank."""
        return Permute(tensor, math.invert_permutation(self.perm), name=name)


def as_axis(axis: Any, limit: Any) -> Tensor:
    """Convert an axis to a nonnegative int32 scalar. limit: the rank as a tensor."""
    axis = cast(axis, dtypes.int32)
    if axis.shape.rank != 0:
        axis = reshape(axis, [])
    result: Tensor = axis + cast(axis < 0, dtypes.int32) * limit
    return result


def as_axes(axes: Any, limit: Any) -> Tensor:
    """Convert axes to a nonnegative int32 vector. axes: a tensor, or a list whose elements may be tensors."""
    if isinstance(axes, (list, tuple)):
        axes = dims_tensor(list(axes))
    axes = reshape(cast(axes, dtypes.int32), [-1])
    result: Tensor = axes + cast(axes < 0, dtypes.int32) * limit
    return result


def _concat_vectors(*parts: Any) -> Tensor:
    """Concatenate int32 scalars and vectors."""
    vectors = [dispatch.to_tensor(p, dtypes.int32) if isinstance(p, (int, list)) else p for p in parts]
    return Concat([reshape(v, [1]) if v.shape.rank == 0 else v for v in vectors], axis=0)


def _interval(start: Any, stop: Any) -> Tensor:
    """Return the int32 numbers in [start, stop)."""
    return range_(start, math.maximum(start, stop))


def _axis_first(x: Any, axis: Any) -> AxesFirst:
    """Move one axis to the front."""
    n = rank(x)
    a = as_axis(axis, n)
    perm = _concat_vectors(a, _interval(0, a), _interval(a + 1, n))
    return AxesFirst(Permute(x, perm, name="axis_first"), perm, 1)


def _axes_first(x: Any, axes: Any) -> AxesFirst:
    """Move several axes to the front, in their order."""
    n = rank(x)
    front, every = as_axes(axes, n), range_(n)
    others = array.boolean_mask(every, ~math.reduce_any(math.equal(expand_dims(every, 1), front), axis=1))
    perm = _concat_vectors(front, others)
    return AxesFirst(Permute(x, perm, name="axes_first"), perm, front.shape[0])


def reduce(op: Any, x: Any, axes: Any, keepdims: bool, name: str | None = None) -> Tensor:
    """Reduce a tensor over axes. op: the operator, with attributes `axis` and `keepdims`."""
    x = dispatch.to_tensor(x)
    front = _axes_first(x, axes)
    shape = shape_op(front.tensor)
    count = front.axis_count if front.axis_count is not None else size(axes)
    reduced_sizes, sizes = getitem(shape, slice(None, count)), getitem(shape, slice(count, None))
    flat = reshape(front.tensor, _concat_vectors(math.reduce_prod(reduced_sizes), sizes))
    y = op(flat, axis=(0,), keepdims=False)
    if not keepdims:
        return reshape(y, sizes, name=name)
    return front.restore(reshape(y, _concat_vectors(array.ones_like(reduced_sizes), sizes)), name)


def along(call: Callable[[Any], Any], x: Any, axis: Any, name: str | None = None) -> Tensor:
    """Apply a shape-preserving function along axis 0 to another axis."""
    x = dispatch.to_tensor(x)
    front = _axis_first(x, axis)
    return _merge_static_shape(front.restore(call(front.tensor), name), x)


def _merge_static_shape(y: Tensor, x: Any) -> Tensor:
    y.set_shape(x.shape)
    return y


def reduce_along(call: Callable[[Any], Tensor], x: Any, axis: Any) -> Tensor:
    """Apply a function that removes axis 0 to another axis."""
    return call(_axis_first(dispatch.to_tensor(x), axis).tensor)


def concat(values: Sequence[Any], axis: Any, name: str | None = None) -> Tensor:
    """Concatenate tensors along an axis."""
    fronts = [_axis_first(v, axis) for v in values]
    return fronts[0].restore(Concat([f.tensor for f in fronts], axis=0), name)


def split(call: Callable[[Any], list[Any]], x: Any, axis: Any) -> list[Any]:
    """Apply a function that splits along axis 0 to another axis."""
    front = _axis_first(dispatch.to_tensor(x), axis)
    return [front.restore(part) for part in call(front.tensor)]


def insert_axis(x: Any, axis: Any, name: str | None = None) -> Tensor:
    """Insert a dimension of size 1 at an axis."""
    x = dispatch.to_tensor(x)
    n = rank(x) + 1
    return Permute(expand_dims(x, 0), _leading_axes_to(as_axis(axis, n), 1, n), name=name)


def _leading_axes_to(axis: Any, count: Any, n: Any) -> Tensor:
    """Return the permutation of `n` axes that moves the first `count` axes to position `axis`."""
    return _concat_vectors(_interval(count, count + axis), _interval(0, count), _interval(count + axis, n))


def reverse(call: Callable[[Any, int], Any], x: Any, axes: Any, name: str | None = None) -> Tensor:
    """Apply a shape-preserving function of a tensor and a number of leading axes to other axes.

    raises TypeError if the number of axes is unknown
    """
    x = dispatch.to_tensor(x)
    front = _axes_first(x, axes)
    if front.axis_count is None:
        raise TypeError(f"axis: the number of axes must be known while tracing; found {axes!r}")
    return _merge_static_shape(front.restore(call(front.tensor, front.axis_count), name), x)


def reduce_along_axes(call: Callable[[Any, int], Tensor], x: Any, axes: Any, keepdims: bool) -> Tensor:
    """Apply a function of a tensor and a number of leading axes, which it removes, to other axes.

    raises TypeError if the number of axes is unknown
    """
    front = _axes_first(dispatch.to_tensor(x), axes)
    if front.axis_count is None:
        raise TypeError(f"axis: the number of axes must be known while tracing; found {axes!r}")
    y = call(front.tensor, front.axis_count)
    if not keepdims:
        return y
    return front.restore(reshape(y, _concat_vectors(array.ones([front.axis_count], dtypes.int32), shape_op(y))))


def gather(
    call: Callable[[Any, Any, int], Any], params: Any, indices: Any, axis: Any, batch_dims: int, name: str | None = None
) -> Tensor:
    """Gather along an axis. call: a function of params, indices and a static axis.

    raises ValueError for negative batch_dims if the rank of indices is unknown
    """
    params, indices = dispatch.to_tensor(params), dispatch.to_tensor(indices)
    if batch_dims < 0:
        if indices.shape.rank is None:
            raise ValueError(f"gather: batch_dims {batch_dims} of indices of unknown rank")
        batch_dims += indices.shape.rank
    n, b, q = rank(params), batch_dims, rank(indices)
    a = as_axis(axis, n)
    order = _concat_vectors(_interval(0, b), a, _interval(b, a), _interval(a + 1, n))
    gathered = call(Permute(params, order), indices, b)  # batch, other dimensions of indices, other ones of params
    restored = _concat_vectors(
        _interval(0, b), _interval(q, q + a - b), _interval(b, q), _interval(q + a - b, q + n - 1 - b)
    )
    return Permute(gathered, restored, name=name)


def replace_axes(
    call: Callable[[Any], Any], x: Any, axis: Any, before: int = 1, after: int = 1, name: str | None = None
) -> Tensor:
    """Apply a function that replaces the first `before` axes by `after` axes to the axes that begin at `axis`."""
    n = rank(x)
    a = as_axis(axis, n)
    order = _concat_vectors(_interval(a, a + before), _interval(0, a), _interval(a + before, n))
    y = call(Permute(x, order, name="axis_first"))
    return Permute(y, _leading_axes_to(a, after, n - before + after), name=name)
