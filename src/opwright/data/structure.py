"""The structure of elements: nested types, and conversion between flat arrays and nested tensors.

Lives here: the traversal of element structures, `ElementStructure`, and `structure_of_value`.
Not here: structures in general (core/nest.py), types of composites (core/type_spec.py).

A list is not a structure here but one tensor, as in TensorFlow: tuples, namedtuples, dicts and attrs classes are
structures. Inside pipelines an element is a flat tuple of NumPy arrays (and of handles, for nested datasets), one for
each component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..core.dtypes import int64
from ..core.specs import TensorSpec
from ..core.structures import PLAIN
from ..core.type_spec import CompositeTensor, TypeSpec
from ..eager.tensor import EagerTensor
from ..ops import dispatch
from ..tracing.symbolic import SymbolicTensor

if TYPE_CHECKING:
    from ..core.dtypes import DType
    from ..core.structures import Structure

T = TypeVar("T")

Flat = tuple[Any, ...]
_LEAVES = ("list", "sequence", "view")  # structures elsewhere; a tuple is one here too


def _structure_of(value: Any) -> Structure | None:
    row = PLAIN[type(value)]
    return None if row is None or (row.name in _LEAVES and not isinstance(value, tuple)) else row


def is_structure(value: Any) -> bool:
    """Return whether `value` is a structure of elements."""
    return _structure_of(value) is not None


def flatten(value: Any) -> list[Any]:
    """Return the leaves, depth first; of dicts by sorted key."""
    row = _structure_of(value)
    return [value] if row is None else [leaf for part in row.children(value) for leaf in flatten(part)]


def map_leaves(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """Map a function over corresponding leaves, in the structure of the first argument.

    raises TypeError or ValueError if the structures differ
    """
    row = _structure_of(first)
    if row is None:
        return function(first, *others)
    columns = [row.children(first)]
    for other in others:
        theirs = _structure_of(other)
        if theirs is None or theirs.name != row.name:
            raise TypeError(f"the structures differ: {type(first).__name__} and {type(other).__name__}")
        parts = theirs.children(other)
        if len(parts) != len(columns[0]) or list(row.keys(first)) != list(theirs.keys(other)):
            raise ValueError(f"the parts differ: {list(row.keys(first))} and {list(theirs.keys(other))}")
        columns.append(parts)
    return row.rebuild(first, [map_leaves(function, *parts) for parts in zip(*columns)])


def pack(structure: Any, leaves: Iterable[Any]) -> Any:
    """Return the structure with these leaves."""
    remaining = iter(leaves)
    return map_leaves(lambda _: next(remaining), structure)


class NoneTensorSpec(TypeSpec):
    """Type of None in an element: it has no tensors."""

    __slots__ = ()

    @property
    def value_type(self) -> type[None]:
        """NoneType."""
        return type(None)

    def _serialize(self) -> tuple[Any, ...]:
        return ()

    @property
    def _component_specs(self) -> tuple[()]:
        return ()

    def _to_components(self, value: Any) -> tuple[()]:
        return ()

    def _from_components(self, components: Any) -> None:
        return None

    def _batch(self, size: int | None) -> NoneTensorSpec:
        return self

    def _unbatch(self) -> NoneTensorSpec:
        return self


class ElementStructure:
    """Type of elements. spec: nested TypeSpecs, a dataset's element_spec. components: the specs of the flat tensors.

    arrays_to_tensors: converts a flat element to nested eager tensors. parts: each leaf of spec, with the first of its
    components and the first behind them.
    """

    __slots__ = ("arrays_to_tensors", "components", "dtypes", "parts", "spec")

    def __init__(self, spec: Any) -> None:
        self.spec = spec
        leaves = flatten(spec)
        self.components: list[TensorSpec] = []
        self.parts: list[tuple[Any, int, int]] = []
        for leaf in leaves:
            start = len(self.components)
            self.components += leaf.flatten()
            self.parts.append((leaf, start, len(self.components)))
        self.dtypes = tuple(c.dtype for c in self.components)
        self.arrays_to_tensors: Callable[[Flat], Any] = self._pack_function(leaves)

    def _pack_function(self, leaves: Sequence[Any]) -> Callable[[Flat], Any]:
        dtypes = self.dtypes
        if not all(type(leaf) is TensorSpec for leaf in leaves):
            return lambda flat: self.tensors_to_value(list(map(EagerTensor, flat, dtypes)))
        if type(self.spec) is TensorSpec:
            (dtype,) = dtypes
            return lambda flat: EagerTensor(flat[0], dtype)
        if type(self.spec) is tuple and all(type(part) is TensorSpec for part in self.spec):
            return lambda flat: tuple(map(EagerTensor, flat, dtypes))
        spec = self.spec
        return lambda flat: pack(spec, map(EagerTensor, flat, dtypes))

    def tensors_to_value(self, tensors: Iterable[Any]) -> Any:
        """Pack flat tensors, eager or symbolic, to a nested value."""
        remaining = iter(tensors)
        return map_leaves(lambda spec: spec.from_tensors(remaining), self.spec)

    def value_to_tensors(self, value: Any) -> list[Any]:
        """Flatten a nested value to tensors. Raises TypeError or ValueError if its structure differs."""
        tensors: list[Any] = []
        map_leaves(lambda spec, part: tensors.extend(tensors_of(part, spec)), self.spec, value)
        return tensors

    @property
    def attrs(self) -> dict[str, Any]:
        """Types as attributes of operators that return elements."""
        return {"dtypes": list(self.dtypes), "shapes": [c.shape for c in self.components]}


def tensors_of(value: Any, spec: Any) -> list[Any]:
    """Return the tensors of one leaf of a known type."""
    if type(spec) is TensorSpec:
        return [dispatch.to_tensor(value, spec.dtype)]
    result: list[Any] = spec.to_tensors(value)
    return result


def structure_of_value(value: Any) -> tuple[Any, list[Any]]:
    """Return the element_spec and the flat tensors of a nested value. Raises TypeError or ValueError."""
    tensors: list[Any] = []

    def leaf(part: Any) -> TypeSpec:
        if part is None:
            return NoneTensorSpec()
        if isinstance(part, CompositeTensor):
            tensors.extend(part._type_spec.to_tensors(part))
            return part._type_spec
        stack = getattr(type(part[0]), "_stack_datasets", None) if isinstance(part, list) and part else None
        if stack is not None:  # a list of datasets
            spec: TypeSpec
            spec, tensor = stack(part)
            tensors.append(tensor)
            return spec
        tensor = dispatch.to_tensor(part)
        tensors.append(tensor)
        return TensorSpec(tensor.shape, tensor.dtype)

    return map_leaves(leaf, value), tensors


def row(array: Any, i: int) -> Any:
    """Return row `i` of an array as a view, or as a handle if rows are handles."""
    view = array[i, ...]
    return view[()] if view.ndim == 0 and view.dtype == object and hasattr(view[()], "dataset") else view


def operand(tensor: Any) -> np.ndarray | SymbolicTensor:
    """Return a tensor's array if it has one, else the symbolic tensor."""
    if type(tensor) is SymbolicTensor:
        return tensor if tensor.constant is None else tensor.constant
    array: np.ndarray = tensor._array
    return array


def as_array(value: Any, dtype: DType) -> Any:
    """Convert a kernel's result to an array; handles are unchanged."""
    return value if type(value) is np.ndarray or dtype.is_handle else EagerTensor(value, dtype)._array


def check_spec_structure(spec: T, what: str) -> T:
    """Check a user's structure of TypeSpecs. Raises TypeError for other leaves."""
    for leaf in flatten(spec):
        if not isinstance(leaf, TypeSpec):
            raise TypeError(
                f"`{what}` must contain objects that are subclass of `tf.TypeSpec` but found {type(leaf)} which is not."
            )
    return spec


def is_scalar_int64(spec: Any) -> bool:
    """Return whether elements of a spec are int64 scalars, as far as is known."""
    return isinstance(spec, TensorSpec) and spec.shape.rank in (0, None) and spec.dtype is int64


def common_spec(datasets: Sequence[Any]) -> Any:
    """Return the common element type of datasets. Raises TypeError if there is none."""
    first = datasets[0].element_spec
    for other in datasets[1:]:
        joined = common_supertype(first, other.element_spec)
        if joined is None:
            raise TypeError(f"Incompatible dataset elements:\n  {first!r} vs.   {other.element_spec!r}")
        first = joined
    return first


def common_supertype(a: Any, b: Any) -> Any:
    """Return the most specific common supertype of element types, or None."""
    try:
        joined = map_leaves(lambda x, y: x.most_specific_common_supertype([y]), a, b)
    except (TypeError, ValueError):
        return None
    return None if any(leaf is None for leaf in flatten(joined)) else joined
