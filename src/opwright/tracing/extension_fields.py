"""Fields of ExtensionTypes: which annotations there are, and values made to fit them.

Lives here: checking annotations, converting values and specs, `ImmutableDict`.  Not here: the classes
(extension_type.py).

    annotation                          a value                               in the Spec
    int, float, str, bytes, bool, None  an instance (a bool is no int here)   itself
    Tensor                              what `convert_to_tensor` takes        TensorSpec
    a TensorSpec or other TypeSpec      a value it is compatible with         its spec
    ExtensionType or other composite    an instance                           its `_type_spec`
    DType, TensorShape                  what `as_dtype`, TensorShape take     itself
    Tuple[A, B], Tuple[A, ...]          a list or tuple                       a tuple of these
    Mapping[K, V]                       a mapping, kept as ImmutableDict      an ImmutableDict of these
    Union[A, B], Optional[A]            the first that fits                   as that
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
    """A mapping that cannot be changed: what Mapping fields hold."""

    __slots__ = ("_items",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._items = dict(*args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"ImmutableDict({self._items})"


def check_annotation(field: str, wanted: Any) -> None:
    """Raises TypeError unless fields may have this annotation."""
    if wanted is None or wanted in PRIMITIVE or wanted in (DType, TensorShape) or isinstance(wanted, TypeSpec):
        return
    if isinstance(wanted, type) and typing.get_origin(wanted) is None:
        if issubclass(wanted, (Tensor, CompositeTensor, TypeSpec)):
            return
        raise TypeError(f"In field {field!r}: Unsupported type annotation {wanted.__name__!r}")
    origin, parts = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in _UNIONS or (origin is tuple and parts) or (origin is collections.abc.Mapping and len(parts) == 2):
        for part in parts:
            if part is not Ellipsis:
                check_annotation(field, part)
        return
    raise TypeError(f"In field {field!r}: Unsupported type annotation {_name(wanted)}")


def _name(wanted: Any) -> str:
    return repr(wanted.__name__) if isinstance(wanted, type) and not typing.get_args(wanted) else str(wanted)


def convert(value: Any, wanted: Any, path: str, spec: bool = False) -> Any:
    """`value` as the annotation wants it. spec: whether specs stand for tensors and composites.

    raises TypeError naming the field's path
    """
    if wanted is None or wanted is type(None):
        if value is None:
            return None
    elif isinstance(wanted, TypeSpec):
        return _by_spec(value, wanted, path, spec)
    elif typing.get_origin(wanted) in _UNIONS:
        return _one_of(value, wanted, path, spec)
    elif typing.get_origin(wanted) is tuple:
        return _tuple(value, wanted, path, spec)
    elif typing.get_origin(wanted) is collections.abc.Mapping:
        if isinstance(value, Mapping):
            k, v = typing.get_args(wanted)
            return ImmutableDict(
                {convert(a, k, f"{path}[key]"): convert(b, v, f"{path}[{a!r}]", spec) for a, b in value.items()}
            )
    elif wanted is DType:
        return _tried(as_dtype, value, wanted, path)
    elif wanted is TensorShape:
        return _tried(TensorShape, value, wanted, path)
    elif issubclass(wanted, Tensor):
        if spec:
            if isinstance(value, TensorSpec):
                return value
        elif isinstance(value, Tensor):
            return value
        elif value is not None and not isinstance(value, (CompositeTensor, TypeSpec)):
            return _tried(dispatch.to_tensor, value, wanted, path)
    elif issubclass(wanted, CompositeTensor):
        if spec:
            if isinstance(value, TypeSpec) and issubclass(value.value_type, wanted):
                return value
        elif isinstance(value, wanted):
            return value
        elif wanted in _made_from:
            return _tried(_made_from[wanted], value, wanted, path)
    elif isinstance(value, wanted) and (wanted is bool or type(value) is not bool):
        return value
    raise TypeError(f"{path}: expected {_name(wanted)}, got {type(value).__name__!r}")


_made_from: dict[type, Callable[[Any], Any]] = {}


def _tried(make: Callable[[Any], Any], value: Any, wanted: Any, path: str) -> Any:
    try:
        return make(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{path}: expected {_name(wanted)}, got {type(value).__name__!r}: {error}") from None


def _by_spec(value: Any, wanted: TypeSpec, path: str, spec: bool) -> Any:
    if spec:
        if isinstance(value, TypeSpec) and wanted.is_compatible_with(value):
            return value
        raise TypeError(f"{path}: expected a spec compatible with {wanted!r}, got {value!r}")
    if isinstance(wanted, TensorSpec) and not isinstance(value, (TensorLike, CompositeTensor)):
        dtype = wanted.dtype
        value = _tried(lambda v: dispatch.to_tensor(v, dtype), value, wanted, path)
    elif isinstance(value, Variable):
        value = value.value()
    if not wanted.is_compatible_with(value):
        found = getattr(value, "_type_spec", None) or getattr(value, "spec", type(value).__name__)
        raise TypeError(f"{path}: expected a value compatible with {wanted!r}, got {found!r}")
    return value


def _one_of(value: Any, wanted: Any, path: str, spec: bool) -> Any:
    options = typing.get_args(wanted)
    exact = [o for o in options if isinstance(o, type) and type(value) is (type(None) if o is None else o)]
    for option in (*exact, *options):
        try:
            return convert(value, option, path, spec)
        except TypeError:
            continue
    raise TypeError(f"{path}: expected {wanted}, got {type(value).__name__!r}")


def _tuple(value: Any, wanted: Any, path: str, spec: bool) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{path}: expected tuple, got {type(value).__name__!r}")
    parts = typing.get_args(wanted)
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


def to_spec(value: Any) -> Any:
    """A field's value with specs for its tensors and composites."""
    if isinstance(value, CompositeTensor):
        return value._type_spec
    if isinstance(value, Tensor):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, Mapping):
        return ImmutableDict({k: to_spec(v) for k, v in value.items()})
    return tuple(map(to_spec, value)) if type(value) is tuple else value


def specs_in(value: Any, found: list[Any]) -> list[Any]:
    """The specs in a field of a Spec, in order."""
    if isinstance(value, TypeSpec):
        found.append(value)
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            specs_in(value[key], found)
    elif type(value) is tuple:
        for item in value:
            specs_in(item, found)
    return found


def parts_in(value: Any, spec: Any, found: list[Any]) -> list[Any]:
    """The values that stand where a field of a Spec has specs, in the same order."""
    if isinstance(spec, TypeSpec):
        found.append(value)
    elif isinstance(spec, Mapping):
        for key in sorted(spec, key=repr):
            parts_in(value[key], spec[key], found)
    elif type(spec) is tuple:
        for v, s in zip(value, spec):
            parts_in(v, s, found)
    return found


def filled(spec: Any, parts: Iterator[Any]) -> Any:
    """A field of a Spec with values in the places of its specs."""
    if isinstance(spec, TypeSpec):
        return next(parts)
    if isinstance(spec, Mapping):
        made = {key: filled(spec[key], parts) for key in sorted(spec, key=repr)}
        return ImmutableDict({key: made[key] for key in spec})
    return tuple([filled(s, parts) for s in spec]) if type(spec) is tuple else spec
