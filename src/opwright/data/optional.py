"""Optionals: values that may be missing, as returned by `get_next_as_optional` of iterators.

Lives here: `Optional` and its type; `HandleSpec`, the base of types of handles; `Recipe` and `in_trace`, by which
handles become values of a graph.
Not here: iterators (iterator.py), the operators (ops/control.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.errors import InvalidArgumentError
from ..core.specs import TensorSpec
from ..core.type_spec import CompositeTensor, TypeSpec
from ..eager.tensor import EagerTensor
from ..ops import control, dispatch
from ..tracing.trace import FuncTrace
from .structure import ElementStructure, structure_of_value

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

state = dispatch.state


class Recipe:
    """Named function from a graph's values to a value; an attribute of nodes, compared by identity."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str, make: Callable[[Any], Any]) -> None:
        self.name, self._make = name, make

    def __call__(self, values: Any) -> Any:
        return self._make(values)

    def __repr__(self) -> str:
        return f"<{self.name}>"


def in_trace(handle: Any) -> Tensor:
    """Return a handle as a tensor of the active trace."""
    trace = state.trace
    assert isinstance(trace, FuncTrace)
    tensor: Tensor = trace.to_tensor(handle)
    return tensor


class OptionalValue:
    """Value of an optional's handle: flat arrays, or None if it is empty."""

    __slots__ = ("components",)
    shape = ()

    def __init__(self, components: Any) -> None:
        self.components = components

    def __repr__(self) -> str:
        return "<empty optional>" if self.components is None else "<optional>"


class Optional(CompositeTensor):
    """Value that may be missing; see `from_value`, `empty` and iterators' `get_next_as_optional`."""

    def __init__(self, handle: Any, form: ElementStructure) -> None:
        self._handle, self._form = handle, form

    @staticmethod
    def from_value(value: Any) -> Optional:
        """Return an optional with a nested value."""
        spec, tensors = structure_of_value(value)
        form = ElementStructure(spec)
        if state.trace is None:
            return Optional(EagerTensor(OptionalValue(tuple(t._array for t in tensors)), dtypes.resource), form)
        return Optional(control.MakeOptional(tensors, recipe=Recipe("from_value", OptionalValue)), form)

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """Return an optional without a value."""
        form = ElementStructure(element_spec)
        if state.trace is None:
            return Optional(EagerTensor(OptionalValue(None), dtypes.resource), form)
        return Optional(control.MakeOptional([], recipe=Recipe("empty", lambda _: OptionalValue(None))), form)

    def has_value(self, name: str | None = None) -> EagerTensor | Tensor:
        """Return whether it has a value: a scalar bool."""
        if state.trace is None:
            return EagerTensor(np.array(self._handle._array.components is not None), dtypes.bool)
        return control.OptionalHasValue(in_trace(self._handle))

    def get_value(self, name: str | None = None) -> Any:
        """Return the value. Raises InvalidArgumentError if it is empty."""
        if state.trace is None:
            flat = self._handle._array.components
            if flat is None:
                raise InvalidArgumentError(
                    op="OptionalGetValue",
                    what="The given optional does not have a value.",
                    wanted="one for which has_value() is true",
                )
            return self._form.arrays_to_tensors(flat)
        tensors: Any = control.OptionalGetValue(in_trace(self._handle), **self._form.attrs)
        return self._form.tensors_to_value(tensors)

    @property
    def element_spec(self) -> Any:
        """Type of the value."""
        return self._form.spec

    @property
    def _type_spec(self) -> OptionalSpec:
        return OptionalSpec(self._form.spec)


class HandleSpec(TypeSpec):
    """Base of types whose values are one handle, such as iterators and optionals, by element type."""

    __slots__ = ("_element_spec",)

    def __init__(self, element_spec: Any) -> None:
        self._element_spec = element_spec

    @classmethod
    def from_value(cls, value: Any) -> HandleSpec:
        """Return the type of such a value."""
        return cls(value.element_spec)

    def _serialize(self) -> tuple[Any, ...]:
        return (self._element_spec,)

    @property
    def _component_specs(self) -> TensorSpec:
        return TensorSpec((), dtypes.resource)

    def _to_components(self, value: Any) -> Tensor:
        handle: Tensor = value._handle
        return handle


class OptionalSpec(HandleSpec):
    """Type of an optional by the type of its value."""

    __slots__ = ()

    @property
    def value_type(self) -> type[Optional]:
        """Optional."""
        return Optional

    def _from_components(self, components: Any) -> Optional:
        return Optional(components, ElementStructure(self._element_spec))
