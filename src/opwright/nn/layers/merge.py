"""Layers that merge several inputs.

Lives here: Add, Subtract, Multiply, Average, Maximum, Minimum, Concatenate, Dot, and functions of these names.
Not here: attention (multi_head_attention.py).

Inputs are lists of tensors. Tensors of lower rank get dimensions of size 1 after the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from ...ops import array, dispatch, linalg, math
from ..layer_calls import mask_of, set_mask
from .configurable_layer import ConfigurableLayer

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def _broadcast(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(a) < len(b):
        a, b = b, a
    out = list(a[: len(a) - len(b)])
    for i, j in zip(a[len(a) - len(b) :], b):
        if i is None or j is None:
            out.append(None)
            continue
        if 1 not in (i, j) and i != j:
            raise ValueError(f"Inputs have incompatible shapes. Received shapes {a} and {b}")
        out.append(max(i, j) if 1 in (i, j) and 0 not in (i, j) else i)
    return tuple(out)


class _Merge(ConfigurableLayer):
    """Base class of merge layers."""

    min_inputs = 1

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Check the shapes."""
        name = type(self).__name__
        if not input_shape or not isinstance(input_shape[0], (list, tuple)):
            raise ValueError(
                f"A merge layer should be called on a list of inputs. Received: input_shape={input_shape} "
                "(not a list of shapes)"
            )
        if len(input_shape) < self.min_inputs:
            raise ValueError(
                f"A `{name}` layer should be called on a list of at least {self.min_inputs} inputs. "
                f"Received: input_shape={input_shape}"
            )
        batches = {s[0] for s in input_shape if s} - {None}
        if len(batches) > 1 and 1 not in batches:
            raise ValueError(
                f"Cannot merge tensors with different batch sizes. Received tensors with shapes {input_shape}"
            )
        self.compute_output_shape(input_shape)

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Tensor: ...

    def call(self, inputs: Any) -> Tensor:
        """Merge the inputs."""
        if not isinstance(inputs, (list, tuple)):
            raise ValueError(
                f"A merge layer should be called on a list of inputs. Received: inputs={inputs} (not a list of tensors)"
            )
        inputs = [dispatch.to_tensor(x) for x in inputs]
        ranks = {x.shape.rank for x in inputs}
        if None not in ranks and len(ranks) > 1 and not isinstance(self, Dot):
            rank = max(ranks)
            masks = [mask_of(x) for x in inputs]
            padded = []
            for x, mask in zip(inputs, masks):
                y = x
                for _ in range(rank - x.shape.rank):
                    y = array.expand_dims(y, 1)
                if y is not x and mask is not None and mask.shape.rank == x.shape.rank:
                    set_mask(y, mask)
                padded.append(y)
            inputs = padded
        return self._merge_inputs(inputs)

    def _merge_inputs(self, inputs: list[Any]) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _merged(inputs)")

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the broadcast shape of the inputs."""
        batches = [s[0] for s in input_shape if s[0] is not None]
        return (batches[0] if batches else None, *reduce(_broadcast, (tuple(s)[1:] for s in input_shape)))

    def _check_masks(self, inputs: Any, mask: Any) -> None:
        for what, value in (("inputs", inputs), ("mask", mask)):
            if not isinstance(value, (list, tuple)):
                raise ValueError(f"`{what}` should be a list. Received: {what}={value}")
        if len(mask) != len(inputs):
            raise ValueError(
                f"The lists `inputs` and `mask` should have the same length. Received: {len(inputs)} and {len(mask)}"
            )

    def compute_mask(self, inputs: Sequence[Tensor], mask: Sequence[Tensor | None] | None = None) -> Tensor | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the disjunction of the masks; None unless every input has one."""
        if mask is None:
            return None
        self._check_masks(inputs, mask)
        masks = [array.cast(m, "bool") for m in mask if m is not None]
        return reduce(math.logical_or, masks) if len(masks) == len(mask) else None


class Add(_Merge):
    """Element-wise sum of the inputs."""

    def _merge_inputs(self, inputs: list[Tensor]) -> Tensor:
        return reduce(math.add, inputs)


class Multiply(_Merge):
    """Element-wise product of the inputs; masked positions count as 1, or as 0 if masked in every input."""

    def _merge_inputs(self, inputs: list[Tensor]) -> Tensor:
        masks = [mask_of(x) for x in inputs]
        if all(m is None for m in masks):
            return reduce(math.multiply, inputs)
        return _masked_product(inputs, masks)


def _masked_product(inputs: list[Any], masks: list[Any]) -> Tensor:
    """Multiply the inputs with masked positions as 1; positions masked in every input become 0 and stay masked."""
    filled = [
        x if m is None else array.where(array.expand_dims(m, -1), x, array.ones_like(x)) for x, m in zip(inputs, masks)
    ]
    y = reduce(math.multiply, filled)
    if all(m is not None for m in masks):
        unmasked = reduce(math.logical_or, masks)
        y = array.where(array.expand_dims(unmasked, -1), y, array.zeros_like(y))
        set_mask(y, unmasked)
    return y


class Subtract(_Merge):
    """Difference of two inputs. Raises ValueError for another number of inputs."""

    def build(self, input_shape: Any) -> None:
        """Check the shapes."""
        super().build(input_shape)
        if len(input_shape) != 2:
            raise ValueError(
                f"A `Subtract` layer should be called on exactly 2 inputs. Received: input_shape={input_shape}"
            )

    def _merge_inputs(self, inputs: list[Tensor]) -> Tensor:
        if len(inputs) != 2:
            raise ValueError(f"A `Subtract` layer should be called on exactly 2 inputs. Received: inputs={inputs}")
        return inputs[0] - inputs[1]


class Average(_Merge):
    """Element-wise mean of the inputs."""

    def _merge_inputs(self, inputs: list[Tensor]) -> Tensor:
        total = reduce(math.add, inputs)
        return (total if total.dtype.is_floating else array.cast(total, self.compute_dtype)) / float(len(inputs))


def _masked_extremum(choose: Callable[[Tensor, Tensor], Tensor], inputs: list[Tensor]) -> Tensor:
    """Reduce the inputs by maximum or minimum, ignoring masked positions."""
    y, unmasked = inputs[0], mask_of(inputs[0])
    unmasked = None if unmasked is None else array.expand_dims(unmasked, -1)
    masked = unmasked is not None
    for x in inputs[1:]:
        mask = mask_of(x)
        mask = None if mask is None else array.expand_dims(mask, -1)
        if mask is not None:
            x = array.where(mask, x, y)
        if unmasked is not None:
            y = array.where(unmasked, y, x)
        unmasked = math.logical_or(unmasked, mask) if unmasked is not None and mask is not None else None
        y = choose(y, x)
    if masked and unmasked is not None:
        set_mask(y, array.squeeze(unmasked, [-1]))
    return y


class Maximum(_Merge):
    """Element-wise maximum of the inputs."""

    def _merge_inputs(self, inputs: list[Any]) -> Tensor:
        return _masked_extremum(math.maximum, inputs)


class Minimum(_Merge):
    """Element-wise minimum of the inputs."""

    def _merge_inputs(self, inputs: list[Any]) -> Tensor:
        return _masked_extremum(math.minimum, inputs)


class Concatenate(_Merge):
    """Concatenation of the inputs along an axis; other sizes must match."""

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._set_arguments(axis=axis)

    def _merge_inputs(self, inputs: list[Any]) -> Tensor:
        return array.concat(inputs, self.axis)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the shape with the sizes along the axis added. Raises ValueError if other sizes differ."""
        ranks = {len(s) for s in input_shape}
        axis = self.axis % len(input_shape[0]) if input_shape[0] else 0
        others = [[d for i, d in enumerate(s) if i != axis] for s in input_shape]
        if len(ranks) > 1 or any(len({d for d in sizes if d is not None}) > 1 for sizes in zip(*others)):
            raise ValueError(
                "A `Concatenate` layer requires inputs with matching shapes except for the concatenation "
                f"axis. Received: input_shape={[tuple(s) for s in input_shape]}"
            )
        along = [s[axis] for s in input_shape]
        output_shape = [next((s[i] for s in input_shape if s[i] is not None), None) for i in range(len(input_shape[0]))]
        output_shape[axis] = None if None in along else sum(along)
        return tuple(output_shape)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Tensor | None:
        """Return the concatenated masks; inputs without a mask are unmasked."""
        if mask is None:
            return None
        self._check_masks(inputs, mask)
        if all(m is None for m in mask):
            return None
        wide = []
        for x, m in zip(inputs, [None if m is None else array.cast(m, "bool") for m in mask]):
            everywhere = array.ones_like(array.cast(x, "bool"))
            if m is None:
                wide.append(everywhere)
            elif m.shape.rank < everywhere.shape.rank:
                wide.append(math.logical_and(array.expand_dims(m, -1), everywhere))
            else:
                wide.append(m)
        return math.reduce_any(array.concat(wide, self.axis), axis=-1)


class Dot(_Merge):
    """Batched dot product of two inputs along an axis of each.

    axes: one integer for both, or two. normalize: whether to normalize the inputs first, for cosine similarity.
    [batch, *a, n] and [batch, n, *b] yield [batch, *a, *b], at least [batch, 1].
    raises ValueError if the sizes along the axes differ, or for the batch axis
    """

    def __init__(self, axes: Any, normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(axes, int):
            if not isinstance(axes, (list, tuple)):
                raise TypeError(
                    f"Invalid type for argument `axes`: it should be a list or an int. Received: axes={axes}"
                )
            if len(axes) != 2 or not all(isinstance(a, int) for a in axes):
                raise ValueError(
                    f"Invalid format for argument `axes`: it should contain two integers. Received: axes={axes}"
                )
        self._set_arguments(axes=axes, normalize=normalize)

    def _pair(self, ranks: Any) -> tuple[int, int]:
        axes = (self.axes,) * 2 if isinstance(self.axes, int) else self.axes
        return axes[0] % ranks[0], axes[1] % ranks[1]

    def _merge_inputs(self, inputs: list[Any]) -> Tensor:
        if len(inputs) != 2:
            raise ValueError(f"A `Dot` layer should be called on exactly 2 inputs. Received: inputs={inputs}")
        x, y = inputs
        ranks = x.shape.rank, y.shape.rank
        i, j = self._pair(ranks)
        if 0 in (i, j):
            raise ValueError(
                "Cannot perform batch_dot over axis 0. If your inputs are not batched, add a dummy batch "
                "dimension to your inputs using keras.ops.expand_dims(x, 0)"
            )
        if self.normalize:
            x, y = linalg.l2_normalize(x, axis=i), linalg.l2_normalize(y, axis=j)
        letters = "abcdefghijklmnopqrstuvw"
        first = ["z", *letters[: ranks[0] - 1]]
        second = ["z", *letters[ranks[0] - 1 : ranks[0] + ranks[1] - 2]]
        second[j] = first[i]
        out = "".join(c for c in first if c != first[i]) + "".join(c for c in second[1:] if c != first[i])
        z = linalg.einsum(f"{''.join(first)},{''.join(second)}->{out}", x, y)
        return array.expand_dims(z, -1) if len(out) == 1 else z

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the remaining sizes, the first input's first."""
        if len(input_shape) != 2:
            raise ValueError(
                f"A `Dot` layer should be called on a list of 2 inputs. Received: input_shape={input_shape}"
            )
        a, b = (list(s) for s in input_shape)
        i, j = self._pair((len(a), len(b)))
        if a[i] is not None and b[j] is not None and a[i] != b[j]:
            raise ValueError(
                f"Incompatible input shapes: axis values {a[i]} (at axis {i}) != {b[j]} (at axis {j}). "
                f"Full "
                f"input shapes: {tuple(a)}, {tuple(b)}"
            )
        del a[i], b[j]
        out = (*a, *b[1:])
        return out if len(out) > 1 else (*out, 1)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Return None: the output has no mask."""
        return


def add(inputs: Any, **kwargs: Any) -> Tensor:
    """Return the element-wise sum of tensors, using an `Add` layer."""
    return Add(**kwargs)(inputs)


def subtract(inputs: Any, **kwargs: Any) -> Tensor:
    """Return the difference of two tensors, using a `Subtract` layer."""
    return Subtract(**kwargs)(inputs)


def multiply(inputs: Any, **kwargs: Any) -> Tensor:
    """Return the element-wise product of tensors, using a `Multiply` layer."""
    return Multiply(**kwargs)(inputs)


def average(inputs: Any, **kwargs: Any) -> Tensor:
    """Return the element-wise mean of tensors, using an `Average` layer."""
    return Average(**kwargs)(inputs)


def maximum(inputs: Any, **kwargs: Any) -> Tensor:
    """Return the element-wise maximum of tensors, using a `Maximum` layer."""
    return Maximum(**kwargs)(inputs)


def minimum(inputs: Any, **kwargs: Any) -> Tensor:
    """Return the element-wise minimum of tensors, using a `Minimum` layer."""
    return Minimum(**kwargs)(inputs)


def concatenate(inputs: Any, axis: int = -1, **kwargs: Any) -> Tensor:
    """Return the concatenation of tensors, using a `Concatenate` layer."""
    return Concatenate(axis=axis, **kwargs)(inputs)


def dot(inputs: Any, axes: Any = -1, **kwargs: Any) -> Tensor:
    """Return the dot product of two tensors, using a `Dot` layer."""
    return Dot(axes=axes, **kwargs)(inputs)
