"""ExtensionType: user-defined classes of values with annotated fields of tensors and Python values.

Lives here: the base classes, and the Spec that each class gets. Not here: the supported annotations and conversions
(extension_fields.py), the protocol of composites (core/type_spec.py).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core import nest
from ..core.specs import TensorSpec
from ..core.type_spec import CompositeTensor, TypeSpec
from ..ops import math
from .extension_fields import append_parts, append_specs, check_annotation, convert, filled, to_spec

_RESERVED = ("self", "_type_spec", "Spec")
_IN_CONSTRUCTOR = "_tf_extension_type_in_constructor"


class ExtensionTypeSpec(TypeSpec):
    """The type of an ExtensionType's values. Each class has its own, `MyType.Spec`, with a parameter per field: specs
    in place of tensors, other values unchanged.
    """

    _type: type[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = self._value_class()
        fields = fields_of(cls)
        arguments = _parameters(fields, {}).bind(*args, **kwargs).arguments
        for name, value in arguments.items():
            object.__setattr__(self, name, convert(value, fields[name], name, spec=True))

    @classmethod
    def _value_class(cls) -> type[Any]:
        if cls._type is None:
            raise TypeError(f"{cls.__name__} is not the Spec of an ExtensionType: use MyType.Spec")
        return cls._type

    @property
    def value_type(self) -> type[Any]:
        """The ExtensionType."""
        return self._value_class()

    @classmethod
    def from_value(cls, value: Any) -> ExtensionTypeSpec:
        """Return the type of a value. Raises TypeError if it is not an instance of the ExtensionType."""
        if not isinstance(value, cls._value_class()):
            raise TypeError(f"{cls.__qualname__} describes {cls._value_class().__name__}, found {value!r}")
        return cls._deserialize(tuple(to_spec(getattr(value, n)) for n in fields_of(type(value))))

    def _serialize(self) -> tuple[Any, ...]:
        return tuple(getattr(self, n) for n in fields_of(self._value_class()))

    @classmethod
    def _deserialize(cls, serialization: tuple[Any, ...]) -> ExtensionTypeSpec:
        spec = object.__new__(cls)
        for name, value in zip(fields_of(cls._value_class()), serialization):
            object.__setattr__(spec, name, value)
        return spec

    @property
    def _component_specs(self) -> tuple[Any, ...]:
        specs: list[Any] = []
        for value in self._serialize():
            append_specs(value, specs)
        return tuple(specs)

    def _to_components(self, value: Any) -> tuple[Any, ...]:
        parts: list[Any] = []
        for name in fields_of(self._value_class()):
            append_parts(getattr(value, name), getattr(self, name), parts)
        return tuple(parts)

    def _from_components(self, components: Any) -> object:
        parts = iter(components)
        cls = self._value_class()
        value = object.__new__(cls)
        for name in fields_of(cls):
            object.__setattr__(value, name, filled(getattr(self, name), parts))
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        frame = sys._getframe(1)  # a Spec's own constructor may set fields
        if frame.f_code.co_name != "__init__" or frame.f_locals.get("self") is not self:
            raise AttributeError(f"Cannot mutate attribute `{name}` of a {type(self).__qualname__}: it is immutable")
        object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _spec_restored, (self._value_class(), self._serialize())

    def __repr__(self) -> str:
        cls = self._value_class()
        shown = ", ".join(f"{n}={getattr(self, n)!r}" for n in fields_of(cls))
        return f"{cls.__qualname__}.Spec({shown})"


def _spec_restored(cls: type[ExtensionType], serialization: tuple[Any, ...]) -> TypeSpec:
    spec: TypeSpec = cls.Spec._deserialize(serialization)
    return spec


class ExtensionType(CompositeTensor):
    """Base of immutable classes with annotated fields: tensors, Python values, tuples, mappings, other such types.

    A class gets a constructor with a parameter per field (its own `__init__` may set the fields instead), `==`, which
    compares types and then all tensors, a repr, and `Spec`, its type. `__validate__` is called after construction.
    Values can be arguments and results of functions, parts of structures, and variables of control flow.

    >>> class Masked(ow.experimental.ExtensionType):
    ...     values: ow.Tensor
    ...     mask: ow.Tensor
    ...     name: str = "x"
    ...     def total(self):
    ...         return ow.reduce_sum(ow.where(self.mask, self.values, 0.0))
    >>> Masked([1.0, 2.0], [True, False]).total()
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>

    raises TypeError naming the field for a value that does not match its annotation, AttributeError for assignments
    """

    Spec: Any = ExtensionTypeSpec
    _tf_extension_type_fields: Any = {}
    if TYPE_CHECKING:
        _tf_extension_type_own_init: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("Spec")
        if own is None:
            cls.Spec = type("Spec", (cls._spec_base(),), {"__qualname__": f"{cls.__qualname__}.Spec"})
        elif not issubclass(own, TypeSpec):
            base = cls._spec_base()
            body = {k: v for k, v in vars(own).items() if k not in ("__dict__", "__weakref__")}
            cls.Spec = type("Spec", (base,), body)
        cls.Spec._type = cls
        cls.Spec.__module__ = cls.__module__
        cls._tf_extension_type_fields = None
        frame = sys._getframe(1)
        while frame.f_code.co_filename == __file__ and frame.f_back is not None:
            frame = frame.f_back
        with contextlib.suppress(NameError):  # a class that is not defined yet: resolved on first use
            fields_of(cls, dict(frame.f_locals))
        if "__init__" in cls.__dict__:
            checked: Any = _with_field_checks(cls.__dict__["__init__"])
            cls._tf_extension_type_own_init = checked
            cls.__init__ = checked  # type: ignore[method-assign]

    @classmethod
    def _spec_base(cls) -> type[TypeSpec]:
        return next((vars(b)["Spec"] for b in cls.__mro__[1:] if "Spec" in vars(b)), ExtensionTypeSpec)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = type(self)
        fields = fields_of(cls)
        bound = _parameters(fields, _defaults(cls)).bind(*args, **kwargs)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            object.__setattr__(self, name, convert(value, fields[name], name))
        if _IN_CONSTRUCTOR not in self.__dict__:
            self.__validate__()

    def __validate__(self) -> None:
        """Check invariants that annotations cannot express; called after construction. Does nothing by default."""

    @property
    def _type_spec(self) -> TypeSpec:
        spec: TypeSpec = type(self).Spec._deserialize(tuple(to_spec(getattr(self, n)) for n in fields_of(type(self))))
        return spec

    def __setattr__(self, name: str, value: Any) -> None:
        if _IN_CONSTRUCTOR not in self.__dict__:
            raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType.")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if _IN_CONSTRUCTOR not in self.__dict__:
            raise AttributeError(f"Cannot mutate attribute `{name}` outside the custom constructor of ExtensionType.")
        object.__delattr__(self, name)

    def __eq__(self, other: Any) -> Any:
        if type(self) is not type(other):
            return False
        spec = self._type_spec
        if spec != other._type_spec:
            return False
        pairs = zip(nest.flatten(self, expand_composites=True), nest.flatten(other, expand_composites=True))
        same = [math.reduce_all(math.equal(a, b)) for a, b in pairs]
        return functools.reduce(math.logical_and, same) if same else True

    def __ne__(self, other: object) -> Any:
        same = self == other
        if isinstance(same, bool):
            return not same
        return math.logical_not(same)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{n}={getattr(self, n, None)!r}" for n in fields_of(type(self)))
        return f"{type(self).__qualname__}({shown})"

    def __copy__(self) -> ExtensionType:
        return self

    def __deepcopy__(self, memo: Any) -> ExtensionType:
        return self  # all fields are immutable

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), {n: getattr(self, n) for n in fields_of(type(self))})


def _restored(cls: Any, fields: dict[str, Any]) -> object:
    value = object.__new__(cls)
    for name, field in fields.items():
        object.__setattr__(value, name, field)
    return value


class BatchableExtensionTypeSpec(ExtensionTypeSpec):
    """The type of a BatchableExtensionType's values."""

    def _batch(self, size: int | None) -> ExtensionTypeSpec:
        """Return the type of `size` values stacked along a new first axis of each tensor."""
        return self._with_specs(lambda spec: _batched(spec, size))

    def _unbatch(self) -> ExtensionTypeSpec:
        """Return the type of a row. Raises ValueError for scalar tensors and for parts without rows."""
        return self._with_specs(_row)

    def _with_specs(self, function: Any) -> ExtensionTypeSpec:
        parts = iter([function(spec) for spec in self._component_specs])
        return self._deserialize(tuple(filled(value, parts) for value in self._serialize()))


def _batched(spec: Any, size: int | None) -> TypeSpec:
    if isinstance(spec, TensorSpec):
        return spec.with_shape(spec.shape.dims if spec.shape.dims is None else [size, *spec.shape])
    if not hasattr(spec, "_batch"):
        raise TypeError(f"`batch` of elements with parts of type {spec!r} is not supported")
    batched: TypeSpec = spec._batch(size)
    return batched


def _row(spec: Any) -> TypeSpec:
    if isinstance(spec, TensorSpec):
        if spec.shape.rank == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return spec.with_shape(spec.shape.dims if spec.shape.dims is None else spec.shape[1:])
    if not hasattr(spec, "_unbatch"):
        raise ValueError(f"values of type {spec!r} have no rows to take one by one")
    row: TypeSpec = spec._unbatch()
    return row


class BatchableExtensionType(ExtensionType):
    """An ExtensionType whose values can be stacked and unstacked along the first axis of all tensors, by datasets and
    `map_fn`.
    """

    class Spec(BatchableExtensionTypeSpec):
        """The type of its values."""


def _with_field_checks(constructor: Any) -> Callable[..., None]:
    """Wrap a class's own constructor: fields may be set while it runs, and are then converted and checked."""

    @functools.wraps(constructor)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        outermost = _IN_CONSTRUCTOR not in self.__dict__
        object.__setattr__(self, _IN_CONSTRUCTOR, True)
        try:
            constructor(self, *args, **kwargs)
            if outermost:
                _finish(self)
        finally:
            if outermost:
                self.__dict__.pop(_IN_CONSTRUCTOR, None)
        if outermost:
            self.__validate__()

    return init


def _finish(self: Any) -> None:
    cls = type(self)
    fields, defaults = fields_of(cls), _defaults(cls)
    for name, value in defaults.items():
        if name not in self.__dict__:
            object.__setattr__(self, name, value)
    missing = [n for n in fields if n not in self.__dict__]
    if missing:
        raise ValueError(f"Missing required fields: {set(missing)}")
    extra = [n for n in self.__dict__ if n not in fields and n != _IN_CONSTRUCTOR]
    if extra:
        raise ValueError(f"Got unexpected fields: {set(extra)}")
    for name, annotation in fields.items():
        object.__setattr__(self, name, convert(self.__dict__[name], annotation, name))


def fields_of(cls: Any, scope: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the fields of a class with their annotations, those of its bases first.

    raises TypeError or ValueError for unsupported annotations and reserved names
    """
    cached = cls.__dict__.get("_tf_extension_type_fields")
    if cached is not None:
        result: dict[str, Any] = cached
        return result
    scope = {**(scope or {}), cls.__name__: cls}
    hints = typing.get_type_hints(_own_hints(cls), vars(sys.modules[cls.__module__]), scope)
    fields: dict[str, Any] = {}
    for base in cls.__mro__[1:]:
        if base is not ExtensionType and issubclass(base, ExtensionType) and base is not cls:
            fields = {**fields_of(base), **fields}
    for name, annotation in hints.items():
        if typing.get_origin(annotation) is typing.ClassVar:
            continue
        if name in _RESERVED or name.startswith("_tf_extension_type"):
            raise ValueError(f"The field annotations for {cls.__name__} are invalid. Field {name!r} is reserved.")
        check_annotation(name, annotation)
        fields[name] = annotation
    cls._tf_extension_type_fields = fields
    for name in hints:
        if name in fields and name in cls.__dict__:
            try:
                setattr(cls, name, convert(cls.__dict__[name], fields[name], f"default value for {name}"))
            except TypeError:
                cls._tf_extension_type_fields = None
                raise
    cls.__signature__ = (
        _parameters(fields, _defaults(cls))
        if "__init__" not in cls.__dict__
        else inspect.signature(cls.__dict__["__init__"]).replace(
            parameters=list(inspect.signature(cls.__dict__["__init__"]).parameters.values())[1:]
        )
    )
    return fields


def _own_hints(cls: Any) -> type:
    """Return the annotations of the class alone, in a form that get_type_hints accepts."""
    return type(cls.__name__, (), {"__annotations__": inspect.get_annotations(cls), "__module__": cls.__module__})


def _defaults(cls: Any) -> dict[str, Any]:
    defaults = {}
    for name in fields_of(cls):
        for base in cls.__mro__:
            if name in base.__dict__:
                defaults[name] = base.__dict__[name]
                break
    return defaults


def _parameters(fields: dict[str, Any], defaults: dict[str, Any]) -> inspect.Signature:
    empty = inspect.Parameter.empty
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    required = [inspect.Parameter(n, kind, annotation=a) for n, a in fields.items() if n not in defaults]
    optional = [
        inspect.Parameter(n, kind, annotation=a, default=defaults[n]) for n, a in fields.items() if n in defaults
    ]
    in_order = list(fields)
    if [p.name for p in (*required, *optional)] != in_order:  # a required field after an optional one is keyword-only
        late = inspect.Parameter.KEYWORD_ONLY
        first = next(i for i, n in enumerate(in_order) if n in defaults)
        parameters = []
        for i, name in enumerate(in_order):
            after = i >= first
            parameters.append(
                inspect.Parameter(
                    name, late if after else kind, annotation=fields[name], default=defaults.get(name, empty)
                )
            )
        return inspect.Signature(parameters)
    return inspect.Signature([*required, *optional])


def as_dict(value: ExtensionType) -> dict[str, Any]:
    """Return the fields of a value by name."""
    return {name: getattr(value, name) for name in fields_of(type(value))}


__all__ = ["BatchableExtensionType", "ExtensionType", "ExtensionTypeSpec", "as_dict"]
