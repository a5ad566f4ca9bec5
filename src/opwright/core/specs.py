"""TensorSpec: the type of a tensor, with dtype, shape and name, and its subtyping.

Lives here: `TensorSpec`.
Not here: the types of composites (core/type_spec.py), the trace types of Python values (tracing/).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from . import dtypes
from .dtypes import DType, as_dtype
from .shapes import TensorShape, as_shape
from .structures import register_leaf
from .type_spec import TraceType, TypeSpec, register_type_spec_from_value_converter

__all__ = ["HasSpec", "TensorSpec", "TraceType", "spec_of_short"]


@runtime_checkable
class HasSpec(Protocol):
    """Any object with a dtype and a shape: tensors, variables, arrays."""

    @property
    def dtype(self) -> object: ...

    @property
    def shape(self) -> object: ...


class TensorSpec(TypeSpec):
    """The type of a tensor: `shape` (TensorShape), `dtype` (DType) and an optional name. Immutable.

    The name is part of equality, but not of subtyping.

    >>> TensorSpec([None, 3], float32).is_compatible_with(constant([[1., 2., 3.]]))
    True
    """

    __slots__ = ("dtype", "name", "shape")
    shape: TensorShape
    dtype: DType
    name: str | None

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        init = object.__setattr__
        init(self, "shape", as_shape(shape))
        init(self, "dtype", as_dtype(dtype))
        init(self, "name", name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; cannot set {name}")

    @classmethod
    def from_spec(cls, spec: TensorSpec, name: str | None = None) -> TensorSpec:
        """Return the same type with another name."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: HasSpec, name: str | None = None) -> TensorSpec:
        """Return the spec of a tensor, variable or array: its full shape and dtype."""
        return cls(tensor.shape, tensor.dtype, name or getattr(tensor, "spec_name", None))

    @property
    def spec(self) -> TensorSpec:
        """The spec itself, so that inference accepts specs and tensors alike."""
        return self

    @property
    def rank(self) -> int | None:
        """Number of dimensions, None if unknown."""
        return self.shape.rank

    @property
    def constant(self) -> None:
        """None: a type has no value."""
        return None

    quantization: Any = None
    """The mapping from elements to real numbers; None if they are equal."""

    @property
    def details(self) -> dict[str, Any]:
        """Additional properties of a tensor in a dialect, as attributes of graph text: none here."""
        return {}

    def with_shape(self, shape: Any) -> TensorSpec:
        """Return this dtype with another shape."""
        return TensorSpec(shape, self.dtype)

    def with_dtype(self, dtype: Any) -> TensorSpec:
        """Return this shape with another dtype."""
        return TensorSpec(self.shape, dtype)

    def is_compatible_with(self, value: Any) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]  # name of API
        """Return whether `value`, a spec or any object with dtype and shape, could be of this type."""
        try:
            return as_dtype(value.dtype) is self.dtype and self.shape.is_compatible_with(value.shape)
        except (AttributeError, TypeError):
            return False

    def is_subtype_of(self, other: Any) -> bool:
        """Return whether the dtype is the same and the shape a subtype."""
        return type(other) is type(self) and self.dtype is other.dtype and self.shape.is_subtype_of(other.shape)

    def most_specific_common_supertype(self, others: Sequence[Any]) -> TensorSpec | None:
        """Return the spec with the common supertype of all shapes; None for other dtypes or classes."""
        if any(type(o) is not type(self) or o.dtype is not self.dtype for o in others):
            return None
        return TensorSpec(self.shape.most_specific_common_supertype([o.shape for o in others]), self.dtype, self.name)

    def most_specific_compatible_type(self, other: TensorSpec) -> TensorSpec:
        """Return the nearest common supertype. Raises ValueError if dtypes differ."""
        supertype = self.most_specific_common_supertype([other])
        if supertype is None:
            raise ValueError(f"No TypeSpec is compatible with both {self!r} and {other!r}")
        return supertype

    def flatten(self) -> list[TensorSpec]:
        """Return the spec in a list."""
        return [self]

    # ---- the protocol of composites: a tensor is its only component ---------------------------------------------

    @property
    def value_type(self) -> type[Any]:
        """The class of the values: Tensor, once it is registered."""
        return _tensor_class[0]

    @property
    def _component_specs(self) -> TensorSpec:
        return self

    def _to_components(self, value: Any) -> object:
        return value

    def _from_components(self, components: Any) -> object:
        return components

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.name

    def placeholder_value(self, placeholder_context: Any) -> object:
        """Return a placeholder of the argument."""
        return placeholder_context.tensor(self)

    def to_tensors(self, value: Any) -> list[Any]:
        """Return the tensor in a list."""
        return [value]

    def from_tensors(self, tensors: Iterator[Any]) -> object:
        """Return the next tensor."""
        return next(tensors)

    def cast(self, value: Any, cast_context: Any) -> object:
        """Convert `value` to a tensor of this type. Raises TypeError if it is not convertible."""
        if getattr(cast_context, "allow_specs", False) and isinstance(value, TensorSpec):
            if not value.is_subtype_of(self):
                raise TypeError(f"Can not cast {value!r} to {self!r}")
            return self
        return cast_context.tensor(value, self)

    def short(self) -> str:
        """Return the type as in graph text: f32[2,?], f32[...] if the rank is unknown."""
        dims = self.shape.dims
        inside = "..." if dims is None else ",".join("?" if d is None else str(d) for d in dims)
        return f"{self.dtype.short}[{inside}]"

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self)
            and self.dtype is other.dtype
            and self.shape == other.shape
            and self.name == other.name
        )

    def __hash__(self) -> int:
        return hash((self.dtype.name, self.shape.dims))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.shape, self.dtype, self.name)


def spec_of_short(text: str) -> TensorSpec:
    """Parse a spec from graph text, such as f32[2,?]. Raises ValueError."""
    head, bracket, inside = text.partition("[")
    if not bracket or not inside.endswith("]"):
        raise ValueError(f"a type reads like f32[2,3], found {text!r}")
    inside = inside[:-1].strip()
    try:
        dtype = dtypes.of_short(head.strip())
        if inside == "...":
            return TensorSpec(None, dtype)
        dims = [None if d.strip() == "?" else int(d) for d in inside.split(",")] if inside else []
    except (KeyError, ValueError):
        raise ValueError(f"a type reads like f32[2,?] or f32[...], found {text!r}") from None
    return TensorSpec(dims, dtype)


_tensor_class: list[type[Any]] = [object]


def install_tensor_class(cls: type) -> None:
    """Register the class of tensors, the `TensorSpec.value_type`; called once, by ops/."""
    _tensor_class[0] = cls
    register_type_spec_from_value_converter(cls, lambda tensor: TensorSpec(tensor.shape, tensor.dtype))


register_leaf(TensorSpec)
