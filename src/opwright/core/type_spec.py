"""TypeSpec: the type of a value composed of tensors, and the protocol by which such values are flattened.

Lives here: `TraceType` (which selects the traces of a `function`), `TypeSpec`, `CompositeTensor` and
`type_spec_from_value`. Not here: the type of tensors (core/specs.py), the trace types of Python values (tracing/),
annotated classes (tracing/extension_type.py).

A composite value is defined as follows (IndexedSlices, TensorArray, datasets, iterators and ExtensionType are
examples):

    class PairSpec(TypeSpec):
        def __init__(self, element):        self.element = element
        @property
        def value_type(self):               return Pair
        def _serialize(self):               return (self.element,)      # arguments of __init__, by which types compare
        @property
        def _component_specs(self):         return (self.element, self.element)   # nested TypeSpecs
        def _to_components(self, value):    return (value.a, value.b)             # nested tensors, same nesting
        def _from_components(self, parts):  return Pair(*parts)

    class Pair(CompositeTensor):
        @property
        def _type_spec(self):               return PairSpec(TensorSpec.from_tensor(self.a))

* The rest follows: `nest.flatten(x, expand_composites=True)` returns the tensors, `nest.pack_sequence_as` of a
  value *or of its spec* packs tensors again, `function` accepts and returns such values, control flow carries them.
* `_serialize()` is a tuple of Python values, specs, shapes, dtypes or nestings of these. Two specs are equal if
  class and serialization are; shapes and specs inside determine subtyping and the common supertype; all other values
  compare by equality.
* A component may be a handle: a tensor of dtype `resource` or `variant` with `TensorSpec((), dtypes.variant)`.
* In a trace components are symbolic; `_from_components` must not read their values, nor execute checks on them.
* A value with an identity (a dataset that captures tensors) has its handle as component; its constituents are part of
  the spec only if they are hashable and part of the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .errors import compose
from .structures import register_type_specs


class TraceType:
    """The protocol of argument types, by which `function` selects its traces.

    A subclass defines subtyping, the nearest common supertype, and the placeholder of the argument while tracing.
    """

    __slots__ = ()

    def is_subtype_of(self, other: TraceType) -> bool:
        """Return whether a trace for `other` also accepts arguments of this type."""
        raise TypeError(f"{type(self).__name__} must define is_subtype_of(other)")

    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TraceType | None:
        """Return the nearest supertype of this and all of `others`; None if there is none."""
        raise TypeError(f"{type(self).__name__} must define most_specific_common_supertype(others)")

    def placeholder_value(self, placeholder_context: Any) -> object:
        """Return the argument of the Python function while it is traced. If not overridden, the actual argument is
        used.
        """
        raise TypeError(f"{type(self).__name__} does not define placeholder_value(context)")

    def to_tensors(self, value: Any) -> list[Any]:
        """Return the tensors of a value of this type, in the order of `flatten`."""
        return []

    def from_tensors(self, tensors: Iterator[Any]) -> object:
        """Build a value of this type from its tensors, which are taken from the iterator."""
        raise TypeError(f"{type(self).__name__} does not define from_tensors(tensors)")

    def flatten(self) -> list[Any]:
        """Return the types of the tensors in a value, in order."""
        return []

    def cast(self, value: Any, cast_context: Any) -> object:
        """Convert `value` to this type; unchanged by default. Raises TypeError if it does not match."""
        return value

    def __eq__(self, other: object) -> bool:
        raise TypeError(f"{type(self).__name__} must define __eq__")

    def __hash__(self) -> int:
        raise TypeError(f"{type(self).__name__} must define __hash__")


class TypeSpec(TraceType):
    """The type of a composite value; the text of this module describes the methods that a subclass defines.

    raises TypeError if a subclass lacks a required method
    """

    __slots__ = ()

    # ---- defined by subclasses --------------------------------------------------------------------------------

    @property
    def value_type(self) -> type[Any]:
        """The class of the values."""
        raise TypeError(f"{type(self).__name__} must define value_type")

    @property
    def _component_specs(self) -> object:
        raise TypeError(f"{type(self).__name__} must define _component_specs")

    def _to_components(self, value: Any) -> object:
        raise TypeError(f"{type(self).__name__} must define _to_components(value)")

    def _from_components(self, components: Any) -> object:
        raise TypeError(f"{type(self).__name__} must define _from_components(components)")

    def _serialize(self) -> tuple[Any, ...]:
        raise TypeError(f"{type(self).__name__} must define _serialize()")

    @classmethod
    def _deserialize(cls, serialization: tuple[Any, ...]) -> TypeSpec:
        return cls(*serialization)

    # ---- comparison -------------------------------------------------------------------------------------------

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Return whether one value could be of both types. A value represents its type."""
        other = spec_or_value
        if not isinstance(other, TypeSpec):
            try:
                other = type_spec_from_value(spec_or_value)
            except TypeError:
                return False
        return type(self) is type(other) and _agree(self._serialize(), other._serialize(), _compatible)

    def is_subtype_of(self, other: Any) -> bool:
        """Return whether the class is the same and all parts are subtypes or equal."""
        return type(self) is type(other) and _agree(self._serialize(), other._serialize(), _subtype)

    def most_specific_common_supertype(self, others: Sequence[Any]) -> TypeSpec | None:
        """Return the nearest supertype of this and all of `others`; None for other classes or parts without one."""
        if any(type(o) is not type(self) for o in others):
            return None
        try:
            return self._deserialize(_common_supertype(self._serialize(), [o._serialize() for o in others]))
        except _NoSupertype:
            return None

    def most_specific_compatible_type(self, other: Any) -> TypeSpec:
        """Return the nearest common supertype. Raises ValueError if there is none."""
        supertype = self.most_specific_common_supertype([other]) if isinstance(other, TypeSpec) else None
        if supertype is None:
            raise ValueError(f"No TypeSpec is compatible with both {self!r} and {other!r}")
        return supertype

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and comparable(self._serialize()) == comparable(other._serialize())

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), comparable(self._serialize())))

    # ---- as a trace type --------------------------------------------------------------------------------------

    def __tf_tracing_type__(self, context: Any) -> TypeSpec:
        """Return the spec itself, the type of an argument that is a spec."""
        return self

    def placeholder_value(self, placeholder_context: Any) -> object:
        """Return a value of this type whose tensors are placeholders."""
        return self._from_components(_map(lambda s: s.placeholder_value(placeholder_context), self._component_specs))

    def to_tensors(self, value: Any) -> list[Any]:
        """Return the value's tensors, in the order of `flatten`."""
        tensors: list[Any] = []
        parts = self._to_components(value)
        _zip(lambda spec, part: tensors.extend(spec.to_tensors(part)), self._component_specs, parts)
        return tensors

    def from_tensors(self, tensors: Iterator[Any]) -> object:
        """Build a value from its tensors."""
        return self._from_components(_map(lambda s: s.from_tensors(tensors), self._component_specs))

    def flatten(self) -> list[Any]:
        """Return the specs of the tensors in a value."""
        flat: list[Any] = []
        _map(lambda s: flat.extend(s.flatten()), self._component_specs)
        return flat

    def cast(self, value: Any, cast_context: Any) -> object:
        """Return the value with its components cast. Raises TypeError if it is not a value of this type."""
        if getattr(cast_context, "allow_specs", False) and isinstance(value, TypeSpec):
            if not value.is_subtype_of(self):
                raise TypeError(f"Can not cast {value!r} to {self!r}: it is not a subtype of it")
            return self
        value_spec = getattr(value, "_type_spec", None)
        if value_spec is None or type(value_spec) is not type(self):
            raise TypeError(f"Can not cast {value!r} to {self!r}: expected a value of type {self.value_type}")
        parts = self._to_components(value)
        changed = [False]

        def cast_part(spec: Any, part: Any) -> object:
            cast = spec.cast(part, cast_context)
            changed[0] |= cast is not part
            return cast

        cast = _zip(cast_part, self._component_specs, parts)
        return self._from_components(cast) if changed[0] else value

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self._serialize())

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._serialize()!r}"


def _restored(cls: type[TypeSpec], serialization: tuple[Any, ...]) -> TypeSpec:
    return cls._deserialize(serialization)


class CompositeTensor:
    """Base of values composed of tensors. A subclass has `_type_spec`, a TypeSpec that flattens it."""

    __slots__ = ()

    @property
    def _type_spec(self) -> TypeSpec:
        raise TypeError(f"{type(self).__name__} must define _type_spec")

    def shape_tensor(self, dtype: Any) -> Any:
        """Return the shape as integers [rank], None of values that are converted to a tensor for it."""
        return None

    def _with_components(self, components: Any) -> object:
        """Return a value like this one with other components; used by loops and branches."""
        return self._type_spec._from_components(components)

    def __tf_tracing_type__(self, context: Any) -> TypeSpec:
        """Return the type by which `function` selects its traces."""
        return self._type_spec


_converters: list[tuple[type, Callable[[Any], TypeSpec]]] = []


def register_type_spec_from_value_converter(cls: type, converter: Callable[[Any], TypeSpec]) -> None:
    """Register `converter(value)` as the `type_spec_from_value` of instances of `cls`. Later converters take
    precedence.
    """
    _converters.insert(0, (cls, converter))


def type_spec_from_value(value: Any) -> TypeSpec:
    """Return the TypeSpec of a tensor, array, number or composite. Raises TypeError for other values."""
    spec = getattr(value, "_type_spec", None)
    if isinstance(spec, TypeSpec):
        return spec
    for cls, converter in _converters:
        if isinstance(value, cls):
            return converter(value)
    description = f"{value!r} of type {type(value).__name__}"
    raise TypeError(
        compose(
            "no TypeSpec describes this value",
            op="type_spec_from_value",
            found=description,
            wanted="a tensor or a composite",
        )
    )


# --- nestings in serializations and components: tuples, lists, dicts; all other values are parts --------------------


class _NoSupertype(Exception):
    """Two serializations have no common supertype."""


def _map(function: Callable[[Any], Any], nesting: Any) -> Any:
    if isinstance(nesting, Mapping):
        return {k: _map(function, nesting[k]) for k in nesting}
    if isinstance(nesting, tuple) and hasattr(nesting, "_fields"):
        return type(nesting)(*(_map(function, v) for v in nesting))
    if isinstance(nesting, (list, tuple)):
        return type(nesting)([_map(function, v) for v in nesting])
    return None if nesting is None else function(nesting)


def _zip(function: Callable[[Any, Any], Any], specs: Any, parts: Any) -> Any:
    if isinstance(specs, Mapping):
        return {k: _zip(function, specs[k], parts[k]) for k in specs}
    if isinstance(specs, tuple) and hasattr(specs, "_fields"):
        return type(specs)(*(_zip(function, s, p) for s, p in zip(specs, parts)))
    if isinstance(specs, (list, tuple)):
        return type(specs)([_zip(function, s, p) for s, p in zip(specs, parts)])
    return None if specs is None else function(specs, parts)


def _agree(a: Any, b: Any, test: Callable[[Any, Any], bool]) -> bool:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_agree(a[k], b[k], test) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(_agree(x, y, test) for x, y in zip(a, b))
    return test(a, b)


def _compatible(a: Any, b: Any) -> bool:
    test = getattr(a, "is_compatible_with", None)
    return bool(test(b)) if test is not None and type(a) is type(b) else comparable(a) == comparable(b)


def _subtype(a: Any, b: Any) -> bool:
    test = getattr(a, "is_subtype_of", None)
    return bool(test(b)) if test is not None else comparable(a) == comparable(b)


def _common_supertype(first: Any, others: Sequence[Any]) -> Any:
    if isinstance(first, Mapping):
        if any(not isinstance(o, Mapping) or o.keys() != first.keys() for o in others):
            raise _NoSupertype
        return {k: _common_supertype(first[k], [o[k] for o in others]) for k in first}
    if isinstance(first, (list, tuple)):
        if any(type(o) is not type(first) or len(o) != len(first) for o in others):
            raise _NoSupertype
        parts = [_common_supertype(v, [o[i] for o in others]) for i, v in enumerate(first)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    join = getattr(first, "most_specific_common_supertype", None)
    if join is not None:
        supertype = join(list(others))
        if supertype is None:
            raise _NoSupertype
        return supertype
    if any(comparable(o) != comparable(first) for o in others):
        raise _NoSupertype
    return first


def comparable(value: Any) -> object:
    """Return a key that is equal for equal nestings of Python values and arrays, and hashable where all of these are.

    1, 1.0 and True differ. Arrays compare by dtype, shape and elements.
    """
    if isinstance(value, Mapping):
        return ("mapping", tuple(sorted(((repr(k), k, comparable(v)) for k, v in value.items()), key=lambda e: e[0])))
    if isinstance(value, (list, tuple)):
        return (type(value), *map(comparable, value))
    if isinstance(value, (set, frozenset)):
        return (type(value), frozenset(map(comparable, value)))
    if isinstance(value, np.ndarray):
        return (
            np.ndarray,
            value.dtype.str,
            value.shape,
            value.tobytes() if value.dtype != object else comparable(value.tolist()),
        )
    return (type(value), value)


register_type_specs(CompositeTensor, TypeSpec)
