"""Fields of ExtensionTypes: the supported annotations, and the conversion of values to them.

Lives here: validation of annotations, conversion of values and specs, `ImmutableDict`.
Not here: the classes (extension_type.py).

    annotation                          a value                               in the Spec
    int, float, str, bytes, bool, None  an instance (a bool is not an int here)   itself
    Tensor                              convertible by `convert_to_tensor`    TensorSpec
    a TensorSpec or other TypeSpec      a value it is compatible with         its spec
    ExtensionType or other composite    an instance                           its `_type_spec`
    DType, TensorShape                  convertible by `as_dtype`, TensorShape itself
    Tuple[A, B], Tuple[A, ...]          a list or tuple                       a tuple of these
    Mapping[K, V]                       a mapping, stored as ImmutableDict    an ImmutableDict of these
    Union[A, B], Optional[A]            the first alternative that matches    as for the alternative
"""

from __future__ import annotations

import collections.abc
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..core.dtypes import DType, as_dtype
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..core.type_spec import CompositeTensor, TypeSpec
from ..eager.variable import Variable
from ..ops import dispatch
from ..ops.tensor import Tensor, TensorLike

PRIMITIVE = (int, float, str, bytes, bool, type(None))
_UNIONS = (typing.Union, types.UnionType)


class ImmutableDict(Mapping[Any, Any]):
    """An immutable mapping, the value of Mapping fields."""

    __slots__ = ("_items",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._items = dict(*args, **kwargs)

    def __getitem__(self, key: Any) -> object:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"ImmutableDict({self._items})"


def check_annotation(field: str, annotation: Any) -> None:
    """Raise TypeError unless fields support this annotation."""
    if (
        annotation is None
        or annotation in PRIMITIVE
        or annotation in (DType, TensorShape)
        or isinstance(annotation, TypeSpec)
    ):
        return
    if isinstance(annotation, type) and typing.get_origin(annotation) is None:
        if issubclass(annotation, (Tensor, CompositeTensor, TypeSpec)):
            return
        raise TypeError(f"In field {field!r}: Unsupported type annotation {annotation.__name__!r}")
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in _UNIONS or (origin is tuple and parts) or (origin is collections.abc.Mapping and len(parts) == 2):
        for part in parts:
            if part is not Ellipsis:
                check_annotation(field, part)
        return
    raise TypeError(f"In field {field!r}: Unsupported type annotation {_name(annotation)}")


def _name(annotation: Any) -> str:
    return (
        repr(annotation.__name__)
        if isinstance(annotation, type) and not typing.get_args(annotation)
        else str(annotation)
    )


def convert(value: Any, annotation: Any, path: str, spec: bool = False) -> object:
    """Convert `value` to an annotation. spec: whether specs replace tensors and composites.

    raises TypeError naming the field's path
    """
    if annotation is None or annotation is type(None):
        if value is None:
            return None
    elif isinstance(annotation, TypeSpec):
        return _convert_to_spec(value, annotation, path, spec)
    elif typing.get_origin(annotation) in _UNIONS:
        return _convert_to_union(value, annotation, path, spec)
    elif typing.get_origin(annotation) is tuple:
        return _convert_to_tuple(value, annotation, path, spec)
    elif typing.get_origin(annotation) is collections.abc.Mapping:
        if isinstance(value, Mapping):
            k, v = typing.get_args(annotation)
            return ImmutableDict(
                {convert(a, k, f"{path}[key]"): convert(b, v, f"{path}[{a!r}]", spec) for a, b in value.items()}
            )
    elif annotation is DType:
        return _construct(as_dtype, value, annotation, path)
    elif annotation is TensorShape:
        return _construct(TensorShape, value, annotation, path)
    elif issubclass(annotation, Tensor):
        if spec:
            if isinstance(value, TensorSpec):
                return value
        elif isinstance(value, Tensor):
            return value
        elif value is not None and not isinstance(value, (CompositeTensor, TypeSpec)):
            return _construct(dispatch.to_tensor, value, annotation, path)
    elif issubclass(annotation, CompositeTensor):
        if spec:
            if isinstance(value, TypeSpec) and issubclass(value.value_type, annotation):
                return value
        elif isinstance(value, annotation):
            return value
        elif annotation in _constructors:
            return _construct(_constructors[annotation], value, annotation, path)
    elif isinstance(value, annotation) and (annotation is bool or type(value) is not bool):
        return value
    raise TypeError(f"{path}: expected {_name(annotation)}, got {type(value).__name__!r}")


_constructors: dict[type, Callable[[Any], Any]] = {}


def _construct(constructor: Callable[[Any], Any], value: Any, annotation: Any, path: str) -> object:
    try:
        return constructor(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{path}: expected {_name(annotation)}, got {type(value).__name__!r}: {error}") from None


def _convert_to_spec(value: Any, required: TypeSpec, path: str, spec: bool) -> object:
    if spec:
        if isinstance(value, TypeSpec) and required.is_compatible_with(value):
            return value
        raise TypeError(f"{path}: expected a spec compatible with {required!r}, got {value!r}")
    if isinstance(required, TensorSpec) and not isinstance(value, (TensorLike, CompositeTensor)):
        dtype = required.dtype
        value = _construct(lambda v: dispatch.to_tensor(v, dtype), value, required, path)
    elif isinstance(value, Variable):
        value = value.value()
    if not required.is_compatible_with(value):
        actual = getattr(value, "_type_spec", None) or getattr(value, "spec", type(value).__name__)
        raise TypeError(f"{path}: expected a value compatible with {required!r}, got {actual!r}")
    return value


def _convert_to_union(value: Any, annotation: Any, path: str, spec: bool) -> object:
    options = typing.get_args(annotation)
    exact = [o for o in options if isinstance(o, type) and type(value) is (type(None) if o is None else o)]
    for option in (*exact, *options):
        try:
            return convert(value, option, path, spec)
        except TypeError:
            continue
    raise TypeError(f"{path}: expected {annotation}, got {type(value).__name__!r}")


def _convert_to_tuple(value: Any, annotation: Any, path: str, spec: bool) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{path}: expected tuple, got {type(value).__name__!r}")
    parts = typing.get_args(annotation)
    if len(parts) == 2 and parts[1] is Ellipsis:
        return tuple(convert(v, parts[0], f"{path}[{i}]", spec) for i, v in enumerate(value))
    if parts == ((),):
        parts = ()
    if len(parts) != len(value):
        raise TypeError(
            f"{path}: expected tuple with length {len(parts)}, got {type(value).__name__!r} with length {len(value)}"
        )
    return tuple(convert(v, p, f"{path}[{i}]", spec) for i, (v, p) in enumerate(zip(value, parts)))


# ---- fields and their specs ------------------------------------------------------------------------------------------


def to_spec(value: Any) -> object:
    """Return a field's value with specs in place of its tensors and composites."""
    if isinstance(value, CompositeTensor):
        return value._type_spec
    if isinstance(value, Tensor):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, Mapping):
        return ImmutableDict({k: to_spec(v) for k, v in value.items()})
    return tuple(map(to_spec, value)) if type(value) is tuple else value


def append_specs(value: Any, specs: list[Any]) -> None:
    """Append the specs in a field of a Spec to a list, in order."""
    if isinstance(value, TypeSpec):
        specs.append(value)
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            append_specs(value[key], specs)
    elif type(value) is tuple:
        for item in value:
            append_specs(item, specs)


def append_parts(value: Any, spec: Any, parts: list[Any]) -> None:
    """Append the values that correspond to the specs in a field of a Spec to a list, in the same order."""
    if isinstance(spec, TypeSpec):
        parts.append(value)
    elif isinstance(spec, Mapping):
        for key in sorted(spec, key=repr):
            append_parts(value[key], spec[key], parts)
    elif type(spec) is tuple:
        for v, s in zip(value, spec):
            append_parts(v, s, parts)


def filled(spec: Any, parts: Iterator[Any]) -> object:
    """Return a field of a Spec with values in place of its specs."""
    if isinstance(spec, TypeSpec):
        return next(parts)
    if isinstance(spec, Mapping):
        filled_items = {key: filled(spec[key], parts) for key in sorted(spec, key=repr)}
        return ImmutableDict({key: filled_items[key] for key in spec})
    return tuple([filled(s, parts) for s in spec]) if type(spec) is tuple else spec
