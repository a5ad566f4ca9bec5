"""Padded batches: elements padded to a common shape and stacked.

Lives here: the class, and the parsing of `padded_shapes` and `padding_values`.  Not here: plain batches (batch.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.errors import DataLossError, InvalidArgumentError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..ops import dispatch
from ..tracing.symbolic import SymbolicTensor
from .base import int_operand, static_int
from .batch import batch_count, check_batch_size, static_bool
from .context import IteratorContext
from .dataset import Dataset
from .functions import Failure
from .structure import ElementStructure, Flat, flatten, is_structure, map_leaves, operand


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
        buffer: list[Flat] = []
        for item in self._inputs[0].flow(context.input()):
            if type(item) is Failure:
                buffer = []
                yield item
                continue
            buffer.append(item)
            if len(buffer) == size:
                yield _pad_and_stack(buffer, form, shapes, values)
                buffer = []
        if buffer and not self._drop:
            yield _pad_and_stack(buffer, form, shapes, values)

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
        if hasattr(shape, "numpy"):
            shape = shape.numpy()
        dims = TensorShape(None if shape is None else [None if d is None or d == -1 else int(d) for d in shape])
        if dims.rank is None or (leaf.shape.rank is not None and dims.rank != leaf.shape.rank):
            raise ValueError(
                f"The padded shape {dims} is not compatible with the shape {leaf.shape} of the "
                "corresponding input component."
            )
        for size, target in zip(leaf.shape.dims or (), dims):
            if size is not None and target is not None and size > target:
                raise ValueError(
                    f"The padded shape {dims} is not compatible with the shape {leaf.shape} of the "
                    "corresponding input component."
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
