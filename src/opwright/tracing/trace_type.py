"""Trace types of Python values: the types that select a trace, and their placeholders while tracing.

Lives here: literals, variables and other objects as types; `from_value`, which returns the type of any value. Not here:
containers (container_type.py), the protocol (core/type_spec.py), tensors (core/specs.py), selection of a trace
(dispatch_table.py).

    value                                         type                    matches
    tensor, NumPy array, NumPy scalar             TensorSpec              dtype; shapes by subtyping
    composite (CompositeTensor)                   its `_type_spec`        by its parts
    object with __tf_tracing_type__               the result of that      as it defines
    None, bool, int, str, enum, range, type ...   Literal                 the same type and an equal value
    list, tuple, namedtuple, dict, slice, attrs   ContainerType           part by part
    dataclass that compares by its fields         ContainerType           part by part
    Variable                                      VariableType            dtype, shape, trainable, constraint
    anything else                                 WeakReferenceType       equality, through a weak reference
"""

from __future__ import annotations

import copy
import dataclasses
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.specs import TensorSpec
from ..core.structures import STRUCTURES, is_namedtuple
from ..core.type_spec import CompositeTensor, TraceType, TypeSpec
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..ops.tensor import Tensor
from .container_type import LIST, SLICE, TUPLE, ContainerLayout, ContainerType
from .placeholders import VariableArgument

_CUSTOM, _MAPPING, _NAMEDTUPLE, _ATTRS = STRUCTURES[:4]
_HANDLE = TensorSpec((), "resource")


class TracingContext:
    """Context in which the trace types of one call are built. objects: the objects to which types hold weak references.

    by_identity: whether a variable's type is the variable itself. Otherwise variables of one dtype and shape have one
    type, which distinguishes repeated ones from new ones; they are listed in `variables`.
    """

    is_legacy_signature = False

    def __init__(self, by_identity: bool = True) -> None:
        self.objects: list[Any] = []
        self.by_identity = by_identity
        self.variables: list[Variable] = []
        self._aliases: dict[Any, int] = {}

    def type_of_variable(self, variable: Variable) -> TraceType:
        """Return the type of a variable among the arguments."""
        if self.by_identity or type(variable) not in (Variable, VariableArgument):
            self.objects.append(variable)
            return VariableReference(variable)
        for i, earlier in enumerate(self.variables):
            if earlier is variable:
                return VariableType(variable, i, False)
        self.variables.append(variable)
        return VariableType(variable, len(self.variables) - 1, True)

    def alias_global_id(self, global_id: Any) -> int:
        """Return a small number for an id, unique within one call: for types that distinguish aliases."""
        return self._aliases.setdefault(global_id, len(self._aliases))


class PlaceholderContext:
    """The creation of placeholders. placed: each placeholder with its spec, in order."""

    def __init__(self, place: Callable[[TensorSpec, str], Any]) -> None:
        self._place = place
        self.naming_scope = ""
        self.path: tuple[str, ...] = ()
        self.placed: list[tuple[Any, TensorSpec]] = []
        self.variables: dict[int, Any] = {}  # by their number in the call
        self.place_variable: Callable[[VariableType, str], Any] | None = None

    def variable(self, kind: VariableType) -> object:
        """Return the placeholder of a variable: one object per variable of the call."""
        if self.place_variable is None:
            return kind
        if kind.number not in self.variables:
            self.variables[kind.number] = self.place_variable(kind, self.naming_scope)
        return self.variables[kind.number]

    def tensor(self, spec: TensorSpec) -> object:
        """Return the placeholder of a tensor of this spec, named after the argument."""
        placeholder = self._place(spec, spec.name or self.naming_scope)
        name = spec.name or "_".join((self.naming_scope, *self.path))
        self.placed.append((placeholder, TensorSpec(spec.shape, spec.dtype, name)))
        return placeholder

    def part(self, key: Any, kind: TraceType) -> object:
        """Return the placeholder of a part of the current argument."""
        saved, self.path = self.path, (*self.path, str(key))
        try:
            return self.placeholder_for(kind)
        finally:
            self.path = saved

    def placeholder_for(self, kind: TraceType) -> object:
        """Return the placeholder of a value of this type."""
        return kind.placeholder_value(self)


class SpecContext(PlaceholderContext):
    """A context whose placeholders are the named specs, as in `structured_input_signature`."""

    def __init__(self) -> None:
        super().__init__(lambda spec, name: spec)

    def tensor(self, spec: TensorSpec) -> TensorSpec:
        """Return the spec with the argument's name."""
        return TensorSpec(spec.shape, spec.dtype, spec.name or "_".join((self.naming_scope, *self.path)))

    def placeholder_for(self, kind: TraceType) -> object:
        """Return composites as their specs."""
        return kind if isinstance(kind, TypeSpec) and type(kind) is not TensorSpec else kind.placeholder_value(self)


class Literal(TraceType):
    """A Python value that is part of the type: 3 and 4 select two traces, and so do 1, 1.0 and True."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key: Any = (type(value), value if value == value else "nan")  # one trace for all NaNs
        if type(value) is float and value == 0.0:
            self._key = (float, str(value))  # 1 / -0.0 differs from 1 / 0.0
        hash(self._key)

    def is_subtype_of(self, other: TraceType) -> bool:
        """Return whether it is the same literal."""
        return self == other

    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TraceType | None:
        """Return itself if all are the same literal, else None."""
        return self if all(o == self for o in others) else None

    def placeholder_value(self, placeholder_context: Any) -> object:
        """Return the value."""
        return self.value

    def from_tensors(self, tensors: Iterator[Any]) -> object:
        """Return the value."""
        return self.value

    def cast(self, value: Any, cast_context: Any) -> object:
        """Return the value if it is equal. Raises TypeError otherwise."""
        same = isinstance(value, TraceType) and value == self
        if not same:
            try:
                same = not isinstance(value, (Tensor, np.ndarray)) and bool(value == self.value)
            except (TypeError, ValueError):
                same = False
        if not same and not (value != value and self._key[1] == "nan"):
            raise TypeError(f"Can not cast {value!r} to {self!r}")
        return self.value

    def __eq__(self, other: object) -> bool:
        return type(other) is Literal and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Literal[{self.value!r}]"


class WeakReferenceType(TraceType):
    """Any other object, by weak reference: it matches equal objects while it lives, and nothing afterwards."""

    __slots__ = ("_hash", "_reference")

    def __init__(self, value: Any) -> None:
        self._reference = weakref.ref(value)
        self._hash = hash((WeakReferenceType, hash(value)))

    @property
    def value(self) -> object:
        """The object, or None if it is dead."""
        return self._reference()

    def is_subtype_of(self, other: TraceType) -> bool:
        """Return whether both live and are equal."""
        return self == other

    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TraceType | None:
        """Return itself if all are equal to it, else None."""
        return self if all(o == self for o in others) else None

    def placeholder_value(self, placeholder_context: Any) -> object:
        """Return the object itself."""
        return self._reference()

    def from_tensors(self, tensors: Iterator[Any]) -> object:
        """Return the object itself."""
        return self._reference()

    def cast(self, value: Any, cast_context: Any) -> object:
        """Return the object if it is equal. Raises TypeError otherwise."""
        mine = self._reference()
        if mine is None or not (value is mine or value == mine):
            raise TypeError(f"Can not cast {value!r} to {self!r}")
        return value

    def __eq__(self, other: object) -> bool:
        if type(other) is not WeakReferenceType:
            return False
        mine, its = self._reference(), other._reference()
        if mine is None or its is None:
            return False
        return mine is its or (type(mine) is type(its) and bool(mine == its))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Reference[{self._reference()!r}]"


class VariableType(TraceType):
    """The type of variables with one dtype and shape: the variable's handle is an input of the trace.

    number: the index of the variable in the call, by first occurrence. first: whether this is its first occurrence;
    further ones have no input of their own. A trace for two variables therefore does not accept one variable in both
    positions.
    """

    __slots__ = ("constraint", "dtype", "first", "name", "number", "shape", "trainable")

    def __init__(self, variable: Variable, number: int, first: bool) -> None:
        self.dtype, self.shape, self.trainable = variable.dtype, variable.shape, variable.trainable
        self.constraint, self.name = variable.constraint, variable.name
        self.number, self.first = number, first

    def is_subtype_of(self, other: TraceType) -> bool:
        """Return whether it is the same type."""
        return self == other

    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TraceType | None:
        """Return this type if all are the same, else None."""
        return self if all(o == self for o in others) else None

    def placeholder_value(self, placeholder_context: Any) -> object:
        """Return the variable's placeholder."""
        return placeholder_context.variable(self)

    def to_tensors(self, value: Any) -> list[Any]:
        """Return the variable if this is its first occurrence in the call."""
        return [value] if self.first else []

    def flatten(self) -> list[Any]:
        """Return the type of its handle if this is its first occurrence in the call."""
        return [_HANDLE] if self.first else []

    def cast(self, value: Any, cast_context: Any) -> Variable:
        """Return the variable. Raises TypeError for a variable of another type."""
        if not isinstance(value, Variable) or VariableType(value, self.number, self.first) != self:
            raise TypeError(f"Can not cast {value!r} to {self!r}")
        return value

    def _key(self) -> tuple[Any, ...]:
        return self.dtype, self.shape.dims, self.trainable, self.number, self.first

    def __eq__(self, other: object) -> bool:
        return type(other) is VariableType and self._key() == other._key() and self.constraint is other.constraint

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"VariableType(shape={self.shape}, dtype={self.dtype!r}, trainable={self.trainable}, number={self.number})"
        )


class VariableReference(TraceType):
    """A variable, by identity: a trace that reads and assigns one variable is specific to it."""

    __slots__ = ("_id", "_reference", "dtype", "shape")

    def __init__(self, variable: Variable) -> None:
        self._reference, self._id = weakref.ref(variable), id(variable)
        self.dtype, self.shape = variable.dtype, variable.shape

    def is_subtype_of(self, other: TraceType) -> bool:
        """Return whether it is the same variable."""
        return self == other

    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TraceType | None:
        """Return itself if all are the same variable, else None."""
        return self if all(o == self for o in others) else None

    def placeholder_value(self, placeholder_context: Any) -> Variable | None:
        """Return the variable: the trace captures it."""
        return self._reference()

    def from_tensors(self, tensors: Iterator[Any]) -> Variable | None:
        """Return the variable."""
        return self._reference()

    def cast(self, value: Any, cast_context: Any) -> Variable | None:
        """Return the variable. Raises TypeError for any other."""
        if value is not self._reference():
            raise TypeError(f"Can not cast {value!r} to {self!r}: another variable")
        return value

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is VariableReference
            and self._id == other._id
            and self._reference() is other._reference() is not None
        )

    def __hash__(self) -> int:
        return hash((VariableReference, self._id))

    def __repr__(self) -> str:
        variable = self._reference()
        name = "dead" if variable is None else variable.name.partition(":")[0]
        return f"Variable[{name!r}, shape={self.shape}, dtype={self.dtype!r}]"


class UserType(TraceType):
    """A user-defined type without `placeholder_value`: the argument itself is used while tracing."""

    __slots__ = ("_value", "inner")

    def __init__(self, inner: Any, value: Any) -> None:
        self.inner = inner
        try:
            self._value: Any = weakref.ref(value)
        except TypeError:
            self._value = lambda: value

    def is_subtype_of(self, other: TraceType) -> bool:
        """Delegate to the user's type."""
        return bool(self.inner.is_subtype_of(_inner(other)))

    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TraceType | None:
        """Delegate to the user's type."""
        supertype = self.inner.most_specific_common_supertype([_inner(o) for o in others])
        if supertype is None:
            return None
        value = self._value()
        return self if supertype == self.inner else UserType(supertype, value)

    def placeholder_value(self, placeholder_context: Any) -> object:
        """Return the argument."""
        return self._value()

    def from_tensors(self, tensors: Iterator[Any]) -> object:
        """Return the argument."""
        return self._value()

    def cast(self, value: Any, cast_context: Any) -> object:
        """Delegate to the user's type."""
        return self.inner.cast(value, cast_context)

    def __eq__(self, other: object) -> bool:
        return type(other) is UserType and bool(self.inner == other.inner)

    def __hash__(self) -> int:
        return hash(self.inner)

    def __repr__(self) -> str:
        return repr(self.inner)


def _inner(kind: Any) -> object:
    return kind.inner if type(kind) is UserType else kind


_LITERALS = (type(None), bool, int, float, complex, str, bytes)
_BY_VALUE = (type, types.BuiltinFunctionType, types.ModuleType)


def from_value(value: Any, context: TracingContext) -> TraceType:
    """Return the type of an argument.

    raises TypeError for an object that is neither hashable nor weakly referenceable
    """
    kind = type(value)
    if kind is EagerTensor:
        return TensorSpec(value.shape, value._dtype)
    if kind in _LITERALS or isinstance(value, np.str_):
        return Literal(value)
    leaf: object = value
    if isinstance(leaf, Tensor) and not isinstance(leaf, CompositeTensor):
        return TensorSpec(leaf.shape, leaf.dtype)
    if kind is TensorSpec:
        return TensorSpec(value.shape, value.dtype) if value.name and not context.is_legacy_signature else value
    if isinstance(value, Variable):
        return context.type_of_variable(value)
    if isinstance(value, TraceType):
        return value
    if hasattr(kind, "__tf_tracing_type__"):
        user_type = value.__tf_tracing_type__(context)
        if not isinstance(user_type, TraceType):
            raise TypeError(
                f"Expected an instance of TraceType for Tracing Protocol call to {value!r} but got {user_type!r}"
            )
        if type(user_type).placeholder_value is TraceType.placeholder_value:
            return UserType(user_type, value)
        return user_type
    if isinstance(value, weakref.ref):
        raise TypeError(f"weakref input {value} not supported for tf.function.")
    if kind is list or isinstance(value, list):
        return ContainerType(LIST, [from_value(v, context) for v in value])
    if kind is tuple:
        return ContainerType(TUPLE, [from_value(v, context) for v in value])
    if kind is slice:
        return ContainerType(SLICE, [from_value(getattr(value, n), context) for n in SLICE.names])
    if is_namedtuple(kind):
        return ContainerType(ContainerLayout("NamedTuple", kind, kind._fields), [from_value(v, context) for v in value])
    if isinstance(value, tuple):
        return ContainerType(TUPLE, [from_value(v, context) for v in value])
    if isinstance(value, Mapping):
        return _mapping(value, context)
    if hasattr(kind, "__attrs_attrs__"):
        names = tuple(a.name for a in kind.__attrs_attrs__)
        form = ContainerLayout("Attrs", kind, names, template=_without_fields(value, names))
        return ContainerType(form, [from_value(getattr(value, n), context) for n in names])
    if isinstance(value, (np.ndarray, np.generic)):
        return TensorSpec(value.shape, dtypes.of_numpy(value.dtype))
    if _CUSTOM.has(kind):
        metadata, parts = value.__tf_flatten__()
        return ContainerType(ContainerLayout("CustomNest", kind, (), metadata), [from_value(v, context) for v in parts])
    if dataclasses.is_dataclass(kind) and kind.__dataclass_params__.eq:  # type: ignore[attr-defined]  # where dataclasses keep it
        names = tuple(f.name for f in dataclasses.fields(value))
        form = ContainerLayout("Fields", kind, names, template=_without_fields(value, names))
        return ContainerType(form, [from_value(getattr(value, n), context) for n in names])
    return _object(value, context)


def _without_fields(value: Any, names: Sequence[str]) -> object:
    """Return a copy without its fields' values, so that a type keeps no argument alive."""
    new = copy.copy(value)
    for name in names:
        object.__setattr__(new, name, None)
    return new


def _mapping(value: Mapping[Any, Any], context: TracingContext) -> ContainerType:
    try:
        names = tuple(sorted(value))
    except TypeError:
        raise TypeError(f"the keys of a dictionary given to a function must sort, found {list(value)!r}") from None
    kind = type(value)
    template: Any = dict.fromkeys(value)
    if kind is not dict:
        template = _MAPPING.rebuild(value, [None] * len(names))
    return ContainerType(
        ContainerLayout("Dict", None, names, template=template), [from_value(value[k], context) for k in names]
    )


def _object(value: Any, context: TracingContext) -> TraceType:
    try:
        if isinstance(value, _BY_VALUE):
            return Literal(value)
        reference = WeakReferenceType(value)
    except TypeError:
        try:
            return Literal(value)
        except TypeError:
            raise TypeError(
                f"Could not generate a generic TraceType for {value!r}. Please verify that it is immutable/hashable. "
                "Otherwise, consider implementing the Tracing Protocol for it."
            ) from None
    context.objects.append(value)
    return reference


def type_of(value: Any) -> TraceType:
    """Return the type of one value by itself, with the names of specs; for results of a trace."""
    return from_value(value, TracingContext())
