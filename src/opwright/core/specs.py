"""TensorSpec: the type of a tensor, dtype and shape and a name, with its subtyping.

Lives here: `TraceType` (the protocol of types that `function` dispatches on) and `TensorSpec`, `VariableSpec`.
Not here: the trace types of Python values (tracing/).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from . import dtypes
from .dtypes import DType, as_dtype
from .shapes import TensorShape, as_shape


@runtime_checkable
class HasSpec(Protocol):
    """Anything that has a dtype and a shape: tensors, variables, arrays."""

    @property
    def dtype(self) -> Any: ...

    @property
    def shape(self) -> Any: ...


class TraceType:
    """The protocol of types of arguments, under which `function` keeps and finds its traces.

    A subclass says when one type is a kind of another, which type is the nearest above several, and what stands for
    the argument while tracing.
    """

    __slots__ = ()

    def is_subtype_of(self, other: TraceType) -> bool:
        """Whether a trace made for `other` also serves arguments of this type."""
        raise TypeError(f"{type(self).__name__} must define is_subtype_of(other)")

    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TraceType | None:
        """The nearest type above this and all of `others`; None if there is none."""
        raise TypeError(f"{type(self).__name__} must define most_specific_common_supertype(others)")

    def placeholder_value(self, placeholder_context: Any) -> Any:
        """What the Python function is called with while it is traced. By default the argument itself is used."""
        raise TypeError(f"{type(self).__name__} does not define placeholder_value(context)")

    def cast(self, value: Any, cast_context: Any) -> Any:
        """`value` made to fit this type; by default itself."""
        return value

    def flatten(self) -> list[Any]:
        """The tensor specs inside, in order."""
        return []

    def __eq__(self, other: object) -> bool:
        raise TypeError(f"{type(self).__name__} must define __eq__")

    def __hash__(self) -> int:
        raise TypeError(f"{type(self).__name__} must define __hash__")


class TensorSpec(TraceType):
    """A tensor's type: `shape` (TensorShape), `dtype` (DType) and perhaps a name. Immutable; the name does not take
    part in subtyping, but in equality.

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
        """The same type under another name."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: HasSpec, name: str | None = None) -> TensorSpec:
        """The spec of a tensor, variable or array: its full shape and dtype."""
        return cls(tensor.shape, tensor.dtype, name or getattr(tensor, "spec_name", None))

    @property
    def spec(self) -> TensorSpec:
        """Itself, so that what is inferred from may be written alike for specs and tensors."""
        return self

    @property
    def rank(self) -> int | None:
        """Number of dimensions, None if unknown."""
        return self.shape.rank

    @property
    def constant(self) -> None:
        """No value is known of a type alone."""
        return None

    def with_shape(self, shape: Any) -> TensorSpec:
        """This dtype with another shape."""
        return TensorSpec(shape, self.dtype)

    def with_dtype(self, dtype: Any) -> TensorSpec:
        """This shape with another dtype."""
        return TensorSpec(self.shape, dtype)

    def is_compatible_with(self, value: Any) -> bool:
        """Whether `value`, a spec or anything with dtype and shape, could be of this type."""
        try:
            return as_dtype(value.dtype) is self.dtype and self.shape.is_compatible_with(value.shape)
        except (AttributeError, TypeError):
            return False

    def is_subtype_of(self, other: Any) -> bool:
        """Same dtype, and a shape that knows at least as much."""
        return type(other) is type(self) and self.dtype is other.dtype and self.shape.is_subtype_of(other.shape)

    def most_specific_common_supertype(self, others: Sequence[Any]) -> TensorSpec | None:
        """Same dtype, and what all shapes agree on; None for other dtypes or kinds."""
        if any(type(o) is not type(self) or o.dtype is not self.dtype for o in others):
            return None
        return TensorSpec(self.shape.most_specific_common_supertype([o.shape for o in others]), self.dtype, self.name)

    def most_specific_compatible_type(self, other: TensorSpec) -> TensorSpec:
        """The nearest spec above both. Raises ValueError where dtypes differ."""
        found = self.most_specific_common_supertype([other])
        if found is None:
            raise ValueError(f"No TypeSpec is compatible with both {self!r} and {other!r}")
        return found

    def flatten(self) -> list[TensorSpec]:
        """Itself."""
        return [self]

    def short(self) -> str:
        """The type as graph text has it: f32[2,?], f32[...] where the rank is unknown."""
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

    def __reduce__(self) -> Any:
        return type(self), (self.shape, self.dtype, self.name)


def spec_of_short(text: str) -> TensorSpec:
    """The spec of its text in a graph, such as f32[2,?]. Raises ValueError."""
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
