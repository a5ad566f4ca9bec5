"""Transformations between elements and batches: batch, padded_batch, unbatch, rebatch.

Lives here: the classes, stacking, and the parsing of `padded_shapes` and `padding_values`.
Not here: windows (combination.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DataLossError, InvalidArgumentError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..ops import dispatch
from ..ops.lod_tensor import LoDTensorSpec
from ..tracing.symbolic import SymbolicTensor
from .base import UNKNOWN, Rows, int_operand, static_int
from .composites import STACK, has_composites, sized_parts, split
from .dataset import Dataset
from .functions import Failure, IteratorContext
from .sources import row_spec
from .structure import ElementStructure, Flat, flatten, is_structure, map_leaves, operand, row

if TYPE_CHECKING:
    from ..core.type_spec import TypeSpec


def batched_spec(spec: Any, size: int | None) -> TypeSpec:
    """Return the type of stacked elements. Raises TypeError if they cannot be stacked."""
    if isinstance(spec, TensorSpec) and not spec.dtype.is_handle:
        dims = spec.shape.dims
        return TensorSpec(None if dims is None else (size, *dims), spec.dtype)
    batch: Callable[[int | None], TypeSpec] | None = getattr(spec, "_batch", None)
    if batch is None:
        do = ""
        if isinstance(spec, LoDTensorSpec):
            do = ". A LoDTensor is a batch already; to batch sequences, use padded_batch and ow.sequence.unpad"
        raise TypeError(
            f"`batch` of elements of type {spec!r} is not supported: they cannot be stacked to a tensor{do}"
        )
    return batch(size)


def stack_elements(items: Sequence[Flat], form: ElementStructure) -> Failure | tuple[Any, ...]:
    """Stack flat elements to one, or return the Failure that explains why they cannot be stacked."""
    columns: list[Any] = []
    for leaf, start, stop in form.parts:
        stack = STACK.get(type(leaf))
        if stack is None:
            failure = _stack_arrays(items, form, range(start, stop), columns)
            if failure is not None:
                return failure
            continue
        stacked = stack([item[start:stop] for item in items])
        if isinstance(stacked, Failure):
            return stacked
        columns.extend(stacked)
    return tuple(columns)


def _stack_arrays(items: Sequence[Flat], form: ElementStructure, numbers: range, columns: list[Any]) -> Failure | None:
    """Append stacked arrays of some components, or return why they cannot be stacked."""
    n = len(items)
    for k in numbers:
        spec, first = form.components[k], items[0][k]
        shape = first.shape
        out = np.empty((n, *shape), spec.dtype.np)
        for i, item in enumerate(items):
            array = item[k]
            if array.shape != shape:
                what = (
                    f"Cannot batch tensors with different shapes in component {k}. First element had shape "
                    f"{list(shape)} and element {i} had shape {list(array.shape)}. Cannot add tensor to the batch: "
                    f"number of elements does not match. Shapes are: [tensor]: {list(array.shape)}, [batch]: "
                    f"{list(shape)}"
                )
                return Failure(InvalidArgumentError(op="Dataset.batch", what=what, do="padded_batch"))
            out[i, ...] = array  # without the ellipsis, an array of one string would be the element
        columns.append(out)
    return None


class _BatchDataset(Dataset):
    def __init__(self, input_dataset: Any, batch_size: Any, drop_remainder: Any) -> None:
        size = int_operand(batch_size, "batch_size")
        self._drop = static_bool(drop_remainder)
        static_size = static_int(size) if self._drop else None
        spec = map_leaves(lambda s: batched_spec(s, static_size), input_dataset.element_spec)
        super().__init__(spec, (input_dataset,), (size,))
        self.begin()

    def begin(self) -> None:
        check_batch_size(self._operands[0], "batch")

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        size, source = int(self._operands[0]), self._inputs[0]
        rows = source.rows(context.input())
        if rows is not None:
            return _batch_rows(rows, size, self._drop)
        items, form = source.flow(context.input()), source._form
        return _batch_elements(items, size, self._drop, lambda elements: stack_elements(elements, form))

    def _cardinality(self) -> int:
        return batch_count(self, self._operands[0], self._drop)


def batch_count(dataset: Any, size: Any, drop: bool) -> int:
    """Return the number of batches of `size` in the input of `dataset`."""
    n = int(dataset._inputs[0]._cardinality())
    if n < 0:
        return n
    if not dataset._is_known():
        return UNKNOWN
    return n // int(size) if drop else -(-n // int(size))


def static_bool(value: Any) -> bool:
    """Return a truth value that may be a constant tensor."""
    constant = getattr(value, "constant", value)
    if constant is None and value is not None:
        raise ValueError(f"drop_remainder must be known while tracing; found {value!r}")
    return bool(constant)


def check_batch_size(size: Any, name: str) -> None:
    """Raise InvalidArgumentError for a batch size below 1."""
    if type(size) is not SymbolicTensor and size < 1:
        raise InvalidArgumentError(op=f"Dataset.{name}", what="Batch size must be greater than zero.", found=size)


def _batch_rows(rows: Rows, size: int, drop: bool) -> Iterator[Any]:
    """Yield batches of rows of arrays: a slice for consecutive rows, else one indexing operation."""
    arrays, order = rows
    numbers = order()
    while True:
        chosen = list(itertools.islice(numbers, size))
        n = len(chosen)
        if n < size and (drop or n == 0):
            return
        first = chosen[0]
        if chosen[-1] - first == n - 1 and chosen == list(range(first, first + n)):
            yield tuple([a[first : first + n] for a in arrays])
        else:
            yield tuple([a.take(chosen, 0) for a in arrays])


def _batch_elements(
    items: Iterator[Any], size: int, drop: bool, stack: Callable[[Sequence[Flat]], Any]
) -> Iterator[Any]:
    """Yield stacks of `size` elements. A failure is yielded in the place of the batch that it was to be part of."""
    buffer: list[Flat] = []
    for item in items:
        if type(item) is Failure:
            buffer = []
            yield item
            continue
        buffer.append(item)
        if len(buffer) == size:
            yield stack(buffer)
            buffer = []
    if buffer and not drop:
        yield stack(buffer)


class _UnbatchDataset(Dataset):
    def __init__(self, input_dataset: Any) -> None:
        spec = input_dataset.element_spec
        size: int | None = None
        self._composite = has_composites(input_dataset._form)
        for component in sized_parts(input_dataset._form):
            if component.shape.rank == 0:
                raise ValueError("Cannot unbatch an input with scalar components.")
            if component.shape.rank and component.shape[0] is not None:
                if size is not None and size != component.shape[0]:
                    raise ValueError(
                        "`unbatch()` is only supported for datasets of elements whose components have a matching "
                        f"leading dimension. Encountered both {size} and {component.shape[0]}."
                    )
                size = component.shape[0]
        self._size = size
        super().__init__(map_leaves(row_spec, spec), (input_dataset,))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        for item in self._inputs[0].flow(context.input()):
            if type(item) is Failure:
                yield item
                continue
            if self._composite:
                rows = split(self._inputs[0]._form, item, "Dataset.unbatch")
                if isinstance(rows, Failure):
                    yield rows
                else:
                    count, get = rows
                    yield from map(get, range(count))
                continue
            sizes = {a.shape[0] if a.ndim else -1 for a in item}
            if len(sizes) > 1 or -1 in sizes:
                what = f"Dataset.unbatch: the components of an element differ in their first dimension: {sizes}"
                yield Failure(InvalidArgumentError(op="Dataset.unbatch", what=what))
                continue
            for i in range(sizes.pop()):
                yield tuple([row(a, i) for a in item])

    def _cardinality(self) -> int:
        n = int(self._inputs[0]._cardinality())
        return UNKNOWN if self._size is None and n != 0 else n if n < 0 else n * (self._size or 0)


class _RebatchDataset(Dataset):
    """Batches of other sizes, used in turn."""

    def __init__(self, input_dataset: Any, batch_size: Any, drop_remainder: Any) -> None:
        sizes = operand(dispatch.to_tensor(batch_size))
        self._drop = static_bool(drop_remainder)
        static_size = None
        if type(sizes) is not SymbolicTensor:
            sizes = np.asarray(sizes, np.int64).reshape(-1)
            if sizes.size == 0 or (sizes < 1).any():
                raise InvalidArgumentError(
                    op="Dataset.rebatch", found=sizes.tolist(), what="batch sizes must be greater than zero"
                )
            n = int(input_dataset._cardinality())
            total = input_dataset._form.components[0].shape
            even = n >= 0 and total.rank and total[0] is not None and n * total[0] % int(sizes.sum()) == 0
            if (self._drop or even) and len(set(sizes.tolist())) == 1:
                static_size = int(sizes[0])

        def rebatched_spec(spec: Any) -> TensorSpec:
            if not isinstance(spec, TensorSpec) or spec.shape.rank == 0:
                raise ValueError(
                    "Invalid `batch_sizes`. Expected dataset with rank of >= 1 but found a dataset with "
                    "scalar elements. Fix the issue by adding the `batch` transformation to the dataset."
                )
            return TensorSpec(None if spec.shape.rank is None else (static_size, *spec.shape[1:]), spec.dtype)

        super().__init__(map_leaves(rebatched_spec, input_dataset.element_spec), (input_dataset,), (sizes,))

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        sizes = itertools.cycle(np.asarray(self._operands[0]).reshape(-1).tolist())
        parts: list[Flat] = []
        buffered, target = 0, next(sizes)
        for item in self._inputs[0].flow(context.input()):
            if type(item) is Failure:
                yield item
                continue
            offset, n = 0, len(item[0])
            while n - offset + buffered >= target:
                end = offset + target - buffered
                parts.append(tuple([a[offset:end] for a in item]))
                yield _concatenated(parts)
                parts, buffered, offset, target = [], 0, end, next(sizes)
            if offset < n:
                parts.append(tuple([a[offset:] for a in item]))
                buffered += n - offset
        if parts and not self._drop:
            yield _concatenated(parts)


def _concatenated(parts: Sequence[Flat]) -> Flat:
    return parts[0] if len(parts) == 1 else tuple(np.concatenate(column) for column in zip(*parts))


class _PaddedBatchDataset(Dataset):
    """Batches of elements padded at the end of each dimension to a common shape."""

    def __init__(
        self, input_dataset: Any, batch_size: Any, padded_shapes: Any, padding_values: Any, drop_remainder: Any
    ) -> None:
        spec, form = input_dataset.element_spec, input_dataset._form
        for leaf in flatten(spec):
            if not isinstance(leaf, TensorSpec):
                raise TypeError(f"`padded_batch` is only supported for datasets of tensors, found a component {leaf!r}")
        size = int_operand(batch_size, "batch_size")
        self._drop = static_bool(drop_remainder)
        shapes = _padded_shapes(padded_shapes, spec)
        values = _padding_values(padding_values, spec)
        static_size = static_int(size) if self._drop else None
        specs = [TensorSpec(_padded_dims(static_size, s), c.dtype) for s, c in zip(shapes, form.components)]
        self._shapes = tuple(tuple(s) if type(s) is list else None for s in shapes)
        operands = [size, *values, *(s for s in shapes if type(s) is SymbolicTensor)]
        remaining = iter(specs)
        super().__init__(map_leaves(lambda _: next(remaining), spec), (input_dataset,), operands)
        self.begin()

    def begin(self) -> None:
        check_batch_size(self._operands[0], "padded_batch")

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        form = self._inputs[0]._form
        n = len(form.components)
        size, values, symbolic_shapes = int(self._operands[0]), self._operands[1 : n + 1], iter(self._operands[n + 1 :])
        shapes = [
            s if s is not None else tuple(None if d < 0 else int(d) for d in next(symbolic_shapes))
            for s in self._shapes
        ]
        negative = [list(s) for s in self._operands[n + 1 :] if np.any(np.asarray(s) < -1)]
        if negative:
            what = "padded_shapes must be sizes, or -1 for the longest of a batch"
            yield Failure(InvalidArgumentError(op="Dataset.padded_batch", what=what, found=negative))
            return
        yield from _batch_elements(
            self._inputs[0].flow(context.input()),
            size,
            self._drop,
            lambda elements: _pad_and_stack(elements, form, shapes, values),
        )

    def _cardinality(self) -> int:
        return batch_count(self, self._operands[0], self._drop)


def _padded_dims(size: int | None, shape: Any) -> list[int | None] | tuple[Any, ...] | None:
    """Return the known sizes of a padded batch."""
    if type(shape) is SymbolicTensor:
        rank = shape.shape[0] if shape.shape.rank else None
        return None if rank is None else [size] + [None] * rank
    return (size, *shape)


def _padded_shapes(padded_shapes: Any, spec: Any) -> list[Any]:
    """Return a list of sizes per component, None for the longest of the batch. Raises ValueError or TypeError."""
    leaves = flatten(spec)
    if padded_shapes is None:
        for leaf in leaves:
            if leaf.shape.rank is None:
                raise ValueError(
                    f"You must provide `padded_shapes` argument because component {leaf!r} has unknown rank."
                )
        return [list(leaf.shape) for leaf in leaves]
    shapes: list[Any] = []

    def add_shape(leaf: Any, shape: Any) -> None:
        if type(shape) is SymbolicTensor:
            shapes.append(shape)
            return
        sizes = None if shape is None or hasattr(shape, "dims") else np.asarray([-1 if d is None else d for d in shape])
        if sizes is not None and sizes.size and (sizes.ndim != 1 or sizes.dtype.kind not in "iu"):
            where = f"shape was {sizes.shape}" if sizes.ndim != 1 else f"element type was {sizes.dtype.name}"
            error = ValueError if sizes.ndim != 1 else TypeError
            raise error(f"Padded shape {shape} must be a 1-D tensor of tf.int64 values, but its {where}.")
        dims = TensorShape(None if shape is None else [None if d is None or d == -1 else int(d) for d in shape])
        if dims.rank is None or (leaf.shape.rank is not None and dims.rank != leaf.shape.rank):
            raise ValueError(
                f"The padded shape {dims} is not compatible with the corresponding input component shape {leaf.shape}."
            )
        for size, target in zip(leaf.shape.dims or (), dims):
            if size is not None and target is not None and size > target:
                raise ValueError(
                    f"The padded shape {dims} is not compatible with the corresponding input component shape "
                    f"{leaf.shape}."
                )
        shapes.append(list(dims))

    if not is_structure(spec):
        add_shape(spec, padded_shapes)
        return shapes
    _map_parts(spec, padded_shapes, add_shape, "padded_shapes")
    return shapes


def _map_parts(spec: Any, argument_value: Any, function: Any, argument: str) -> None:
    """Call `function(leaf, part)` for each leaf of spec and the corresponding part. Raises ValueError on mismatch."""
    if not is_structure(spec):
        function(spec, argument_value)
        return
    if argument_value is None:  # the default of each
        for part in [spec[k] for k in sorted(spec)] if isinstance(spec, dict) else spec:
            _map_parts(part, None, function, argument)
        return
    keys = spec.keys() if isinstance(spec, dict) else range(len(spec))
    try:
        if len(argument_value) != len(spec):
            raise KeyError(len(argument_value))
        parts = [(spec[k], argument_value[k]) for k in (sorted(keys) if isinstance(spec, dict) else keys)]
    except (KeyError, TypeError, IndexError):
        raise ValueError(
            f"`{argument}` does not have the structure of the elements: {argument_value!r} for {spec!r}"
        ) from None
    for part, value in parts:
        _map_parts(part, value, function, argument)


def _padding_values(padding_values: Any, spec: Any) -> list[Any]:
    """Return a scalar per component, by default zero or the empty string. Raises TypeError or ValueError."""
    values: list[Any] = []

    def add_value(leaf: Any, value: Any) -> None:
        dtype = leaf.dtype
        if value is None:
            value = b"" if dtype.name == "string" else np.zeros((), dtype.np)
        try:
            tensor = dispatch.to_tensor(value, dtype)
        except (TypeError, ValueError) as error:
            raise TypeError(f"padding_values: {error}") from None
        if tensor.shape.rank not in (0, None):
            raise ValueError(f"Padding value should be a scalar, found one of shape {tensor.shape}")
        if tensor.dtype is not dtype:
            raise TypeError(f"The padding value {value!r} is of dtype {tensor.dtype.name}, wanted {dtype.name}")
        values.append(operand(tensor))

    if padding_values is None or not is_structure(padding_values):  # one value for all
        for leaf in flatten(spec):
            add_value(leaf, padding_values)
    else:
        _map_parts(spec, padding_values, add_value, "padding_values")
    return values


def _pad_and_stack(
    items: Sequence[Flat], form: ElementStructure, shapes: Sequence[Any], values: Sequence[Any]
) -> Failure | tuple[Any, ...]:
    columns: list[Any] = []
    for k, (spec, shape, value) in enumerate(zip(form.components, shapes, values)):
        arrays = [item[k] for item in items]
        for array in arrays:
            if array.ndim != len(shape):
                what = (
                    f"All elements in a batch must have the same rank as the padded shape for component {k}: "
                    f"expected rank {len(shape)} but got element with rank {array.ndim}"
                )
                return Failure(InvalidArgumentError(op="Dataset.padded_batch", what=what))
        sizes = [max(a.shape[d] for a in arrays) if target is None else target for d, target in enumerate(shape)]
        if any(a.shape[d] > sizes[d] for a in arrays for d in range(len(sizes))):
            what = "Attempted to pad to a smaller size than the input element."
            return Failure(
                DataLossError(
                    op="Dataset.padded_batch",
                    what=what,
                    wanted=f"at most {sizes}",
                    found=[list(a.shape) for a in arrays],
                )
            )
        out = np.empty((len(arrays), *sizes), spec.dtype.np)
        out[...] = value
        for i, array in enumerate(arrays):
            window: Any = (i, *map(slice, array.shape))
            out[window] = array
        columns.append(out)
    return tuple(columns)
