"""Shapes of the inputs and outputs of layers, in the structure of the tensors.

Lives here: `BuildShape`, which `build` receives; shapes of tensors, KerasTensors of shapes.
Not here: shapes of tensors (core/shapes.py), KerasTensor (keras_tensor.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import nest
from .keras_tensor import KerasTensor

if TYPE_CHECKING:
    from .keras_tensor import KerasTensors


class BuildShape(tuple[Any, ...]):
    """Shape passed to `build`: a tuple of sizes, None if unknown, with attributes of TensorShape."""

    __slots__ = ()

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self)

    ndims = rank
    dims = property(lambda self: tuple(self))

    def as_list(self) -> list[int | None]:
        """Return the sizes as a list."""
        return list(self)


def is_shape(value: Any) -> bool:
    """Return whether a value is one shape, and not a structure of shapes."""
    return not isinstance(value, dict) and all(v is None or isinstance(v, (int, np.integer)) for v in value)


def keras_tensors(shapes: Any, dtype: str) -> KerasTensors:
    """Return KerasTensors of these shapes, in their structure."""
    if isinstance(shapes, dict):
        return {k: keras_tensors(v, dtype) for k, v in shapes.items()}
    if is_shape(shapes):
        return KerasTensor(tuple(shapes), dtype)
    tensors: Sequence[KerasTensors] = type(shapes)([keras_tensors(v, dtype) for v in shapes])
    return tensors


def plain_shapes(value: Any) -> Any:
    """Return the shapes of tensors as tuples, in their structure."""
    return nest.map_structure(lambda t: None if t.shape.dims is None else tuple(t.shape.dims), value)


def shapes_of(value: Any) -> Any:
    """Return the shapes of tensors, in their structure; None for leaves without a shape."""
    if value is None:
        return None

    def leaf(x: Any) -> BuildShape | None:
        shape = getattr(x, "shape", None)
        if shape is None:
            return BuildShape(()) if isinstance(x, (int, float)) else None
        dims = getattr(shape, "dims", shape)
        return None if dims is None else BuildShape(dims)

    return nest.map_structure(leaf, value)
