"""Functions along axes that are known only when the graph runs.

Lives here: the form of reductions, joining, splitting and others for such an axis.
Not here: the operators, whose axes are attributes, and Permute (moving.py).

Each of them permutes the tensor by a permutation that the graph computes, so that the axes come first, calls the
operator along axis 0, and permutes the result back. Gradients, conversion and compilation are those of the operators.
Permute checks the permutation, and with it the axes: one that is out of range or occurs twice makes it none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core import dtypes
from .. import array, dispatch, math
from .casting import cast
from .constants import range as range_
from .joining import Concat
from .moving import Permute
from .shaping import dims_tensor, expand_dims, rank, reshape, shape_op, size
from .slicing import getitem

if TYPE_CHECKING:
    from ..tensor import Tensor


class Front(NamedTuple):
    """A tensor whose axes were moved to the front.

    tensor: the permuted one; perm: the permutation; moved: how many axes were moved, None where unknown.
    """

    tensor: Any
    perm: Any
    moved: int | None

    def back(self, tensor: Any, name: str | None = None) -> Tensor:
        """Permute a tensor of the same rank the other way."""
        return Permute(tensor, inverse(self.perm), name=name)


def inverse(perm: Any) -> Tensor:
    """The permutation that undoes another."""
    return math.invert_permutation(perm)


def as_axis(axis: Any, limit: Any) -> Any:
    """One axis as an int32 scalar counted from the front. limit: the rank as a tensor."""
    axis = cast(axis, dtypes.int32)
    if axis.shape.rank != 0:
        axis = reshape(axis, [])
    return axis + cast(axis < 0, dtypes.int32) * limit


def as_axes(axes: Any, limit: Any) -> Any:
    """Axes as an int32 vector counted from the front. axes: a tensor, or a list in which some may be tensors."""
    if isinstance(axes, (list, tuple)):
        axes = dims_tensor(list(axes))
    axes = reshape(cast(axes, dtypes.int32), [-1])
    return axes + cast(axes < 0, dtypes.int32) * limit


def joined(*parts: Any) -> Tensor:
    """int32 scalars and vectors one after another."""
    vectors = [dispatch.to_tensor(p, dtypes.int32) if isinstance(p, (int, list)) else p for p in parts]
    return Concat([reshape(v, [1]) if v.shape.rank == 0 else v for v in vectors], axis=0)


def between(start: Any, stop: Any) -> Tensor:
    """The int32 numbers from `start` up to `stop`; none where `stop` is below."""
    return range_(start, math.maximum(start, stop))


def to_front(x: Any, axis: Any) -> Front:
    """Move one axis to the front."""
    n = rank(x)
    a = as_axis(axis, n)
    perm = joined(a, between(0, a), between(a + 1, n))
    return Front(Permute(x, perm, name="axis_first"), perm, 1)


def axes_to_front(x: Any, axes: Any) -> Front:
    """Move several axes to the front, in their order."""
    n = rank(x)
    chosen, every = as_axes(axes, n), range_(n)
    others = array.boolean_mask(every, ~math.reduce_any(math.equal(expand_dims(every, 1), chosen), axis=1))
    perm = joined(chosen, others)
    return Front(Permute(x, perm, name="axes_first"), perm, chosen.shape[0])


def reduced(op: Any, x: Any, axes: Any, keepdims: bool, name: str | None = None) -> Tensor:
    """A reduction over axes. op: the operator, with attributes `axis` and `keepdims`."""
    x = dispatch.to_tensor(x)
    front = axes_to_front(x, axes)
    shape = shape_op(front.tensor)
    count = front.moved if front.moved is not None else size(axes)
    gone, kept = getitem(shape, slice(None, count)), getitem(shape, slice(count, None))
    y = op(reshape(front.tensor, joined(math.reduce_prod(gone), kept)), axis=(0,), keepdims=False)
    if not keepdims:
        return reshape(y, kept, name=name)
    return front.back(reshape(y, joined(array.ones_like(gone), kept)), name)


def along(call: Callable[[Any], Any], x: Any, axis: Any, name: str | None = None) -> Any:
    """A function of a tensor that works along axis 0 and keeps the shape, along another axis."""
    x = dispatch.to_tensor(x)
    front = to_front(x, axis)
    return with_shape_of(front.back(call(front.tensor), name), x)


def with_shape_of(y: Any, x: Any) -> Any:
    """`y`, of which the shape is known as far as that of `x`."""
    y.set_shape(x.shape)
    return y


def without(call: Callable[[Any], Any], x: Any, axis: Any) -> Any:
    """A function of a tensor that removes axis 0, along another axis."""
    return call(to_front(dispatch.to_tensor(x), axis).tensor)


def concat(values: Sequence[Any], axis: Any, name: str | None = None) -> Tensor:
    """`concat` along an axis."""
    fronts = [to_front(v, axis) for v in values]
    return fronts[0].back(Concat([f.tensor for f in fronts], axis=0), name)


def split(call: Callable[[Any], list[Any]], x: Any, axis: Any) -> list[Any]:
    """A function of a tensor that gives parts along axis 0, along another axis."""
    front = to_front(dispatch.to_tensor(x), axis)
    return [front.back(part) for part in call(front.tensor)]


def expanded(x: Any, axis: Any, name: str | None = None) -> Tensor:
    """`expand_dims` at an axis."""
    x = dispatch.to_tensor(x)
    n = rank(x) + 1
    return Permute(expand_dims(x, 0), _behind(as_axis(axis, n), 1, n), name=name)


def _behind(at: Any, moved: Any, n: Any) -> Tensor:
    """The permutation of `n` axes that moves the first `moved` ones behind the `at` axes after them."""
    return joined(between(moved, moved + at), between(0, moved), between(moved + at, n))


def reverse(call: Callable[[Any, int], Any], x: Any, axes: Any, name: str | None = None) -> Any:
    """A function of a tensor and a number of leading axes, over other axes.

    raises TypeError where the number of axes is unknown
    """
    x = dispatch.to_tensor(x)
    front = axes_to_front(x, axes)
    if front.moved is None:
        raise TypeError(f"axis: the number of axes must be known while tracing; found {axes!r}")
    return with_shape_of(front.back(call(front.tensor, front.moved), name), x)


def without_several(call: Callable[[Any, int], Any], x: Any, axes: Any, keepdims: bool) -> Any:
    """A function of a tensor and a number of leading axes, which it removes, over other axes.

    raises TypeError where the number of axes is unknown
    """
    front = axes_to_front(dispatch.to_tensor(x), axes)
    if front.moved is None:
        raise TypeError(f"axis: the number of axes must be known while tracing; found {axes!r}")
    y = call(front.tensor, front.moved)
    if not keepdims:
        return y
    return front.back(reshape(y, joined(array.ones([front.moved], dtypes.int32), shape_op(y))))


def gather(
    call: Callable[[Any, Any, int], Any], params: Any, indices: Any, axis: Any, batch_dims: int, name: str | None = None
) -> Tensor:
    """`gather` along an axis. call: of params, indices and an axis that is a number.

    raises ValueError for negative batch_dims where the rank of indices is unknown
    """
    params, indices = dispatch.to_tensor(params), dispatch.to_tensor(indices)
    if batch_dims < 0:
        if indices.shape.rank is None:
            raise ValueError(f"gather: batch_dims {batch_dims} of indices of unknown rank")
        batch_dims += indices.shape.rank
    n, b, q = rank(params), batch_dims, rank(indices)
    a = as_axis(axis, n)
    order = joined(between(0, b), a, between(b, a), between(a + 1, n))
    picked = call(Permute(params, order), indices, b)  # batch, the other dimensions of indices, the rest of params
    back = joined(between(0, b), between(q, q + a - b), between(b, q), between(q + a - b, q + n - 1 - b))
    return Permute(picked, back, name=name)


def remade(
    call: Callable[[Any], Any], x: Any, axis: Any, before: int = 1, after: int = 1, name: str | None = None
) -> Tensor:
    """Apply a function that turns the first `before` axes into `after` axes to the axes that begin at `axis`."""
    n = rank(x)
    a = as_axis(axis, n)
    order = joined(between(a, a + before), between(0, a), between(a + before, n))
    return Permute(call(Permute(x, order, name="axis_first")), _behind(a, after, n - before + after), name=name)
